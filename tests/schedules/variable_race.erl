-module(variable_race).
-export([main/0]).

%% Two processes count in the environment.
main() ->
    os:putenv("COUNT", "0"),
    Ms = [spawn_monitor(fun add/0) || _ <- [1, 2]],
    [receive {'DOWN', R, process, P, _} -> ok end || {P, R} <- Ms],
    halt(case os:getenv("COUNT") of "2" -> 0; _ -> 1 end).

add() ->
    N = list_to_integer(os:getenv("COUNT")),
    os:putenv("COUNT", integer_to_list(N + 1)).
