-module(once_race).
-export([main/0]).

%% The connection of a key is to be opened once.
main() ->
    ets:new(pool, [named_table, public]),
    Opened = counters:new(1, []),
    Me = self(),
    Get = fun() -> Me ! {self(), connection(db, Opened)} end,
    Pids = [spawn_link(Get) || _ <- [1, 2]],
    Got = [receive {P, C} -> C end || P <- Pids],
    halt(case {lists:usort(Got), counters:get(Opened, 1)} of {[_], 1} -> 0; _ -> 1 end).

connection(Key, Opened) ->
    case ets:lookup(pool, Key) of
        [{_, C}] -> C;
        [] ->
            C = make_ref(),
            counters:add(Opened, 1, 1),
            ets:insert(pool, {Key, C}),
            C
    end.
