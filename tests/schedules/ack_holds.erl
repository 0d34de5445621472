%% A journal that confirms an entry when its write and its sync have succeeded.
-module(ack_holds).
-export([main/0]).

-define(PATH, "ack_holds.log").

main() ->
    _ = file:delete(?PATH),
    case file:open(?PATH, [raw, write, binary]) of
        {ok, F} ->
            Confirmed = [N || N <- lists:seq(1, 5), add(F, N) =:= ok],
            _ = file:close(F),
            check(Confirmed);
        {error, _} ->
            ok
    end,
    _ = file:delete(?PATH),
    ok.

add(F, N) ->
    case file:write(F, entry(N)) of
        ok -> file:sync(F);
        {error, _} = E -> E
    end.

entry(N) -> <<N:32, "entry">>.

check(Confirmed) ->
    case file:read_file(?PATH) of
        {ok, Bytes} ->
            Found = [N || <<N:32, "entry">> <= Bytes],
            [] = Confirmed -- Found;
        {error, _} ->
            ok
    end.
