-module(hello_right).
-export([main/0]).

%% Searched to where its own compilation is deviated from: runs that are forked then have a file
%% open, each at its own place.
main() ->
    Me = self(),
    spawn(fun() -> Me ! hello end),
    receive hello -> halt(0) end.
