%% A journal that does not look at the results of its writes: it confirms entries that the disk
%% never took.
-module(ack_fails).
-export([main/0]).

-define(PATH, "ack_fails.log").

main() ->
    _ = file:delete(?PATH),
    case file:open(?PATH, [raw, write, binary]) of
        {ok, F} ->
            Confirmed = [add(F, N) || N <- lists:seq(1, 5)],
            _ = file:close(F),
            check(Confirmed);
        {error, _} ->
            ok
    end,
    _ = file:delete(?PATH),
    ok.

add(F, N) ->
    file:write(F, entry(N)),
    N.

entry(N) -> <<N:32, "entry">>.

check(Confirmed) ->
    case file:read_file(?PATH) of
        {ok, Bytes} ->
            Found = [N || <<N:32, "entry">> <= Bytes],
            [] = Confirmed -- Found;
        {error, _} ->
            ok
    end.
