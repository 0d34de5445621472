-module(early_right).
-export([main/0]).

%% Whether the answer is there at once makes no difference.
main() ->
    S = spawn(fun() -> receive {F, asked} -> F ! answer end end),
    S ! {self(), asked},
    receive answer -> halt(0)
    after 0 -> receive answer -> halt(0) end
    end.
