%% A counter is written to a new file, which then takes the place of the old one.
%% If the write fails, the old one stays.
%% Run: purlin schedules --nodes 2 --faults disk -- run full_disk_right.erl
-module(full_disk_right).
-export([main/1]).
-mode(compile).

main(_) ->
    first(),
    count(30).

%% The disk may be full from the start.
first() ->
    case file:write_file("counter", <<"0">>) of
        ok -> ok;
        {error, _} -> timer:sleep(100), first()
    end.

count(0) -> io:put_chars("counted\n");
count(N) ->
    timer:sleep(20),
    case file:read_file("counter") of
        {ok, <<>>} -> io:put_chars("FAIL: the counter is empty\n"), halt(1);
        {ok, B} -> write(integer_to_binary(binary_to_integer(B) + 1));
        %% A read may not fail here: only changes do.
        {error, Why} -> io:format("FAIL: ~w~n", [Why]), halt(1)
    end,
    count(N - 1).

write(B) ->
    case file:open("new", [write, raw, binary]) of
        {ok, F} ->
            Written = file:write(F, B),
            _ = file:close(F),
            _ = [file:rename("new", "counter") || Written =:= ok],
            ok;
        {error, _} -> ok
    end.
