-module(variable_right).
-export([main/0]).

%% As variable_race, but each has a variable of its own.
main() ->
    Names = ["ONE", "TWO"],
    [os:putenv(N, "0") || N <- Names],
    Ms = [spawn_monitor(fun() -> add(N) end) || N <- Names],
    [receive {'DOWN', R, process, P, _} -> ok end || {P, R} <- Ms],
    halt(case [os:getenv(N) || N <- Names] of ["1", "1"] -> 0; _ -> 1 end).

add(Name) ->
    N = list_to_integer(os:getenv(Name)),
    os:putenv(Name, integer_to_list(N + 1)).
