-module(early_race).
-export([main/0]).

%% An answer that is there at once is not expected.
main() ->
    S = spawn(fun() -> receive {F, asked} -> F ! answer end end),
    S ! {self(), asked},
    receive answer -> halt(1)
    after 0 -> receive answer -> halt(0) end
    end.
