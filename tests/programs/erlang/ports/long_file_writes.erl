%% Writes long I/O lists of every structure to raw files. All of a valid list arrives, and nothing
%% of an invalid one.
-module(long_file_writes).
-export([main/0]).

-define(FILE_NAME, "long_writes").

main() ->
    Large = [<<N:32, (binary:copy(<<N>>, 700))/binary>> || N <- lists:seq(1, 3000)],
    Small = [[N rem 256, <<N:16>>, "text"] || N <- lists:seq(1, 30000)],
    <<_:3, Bits/bitstring>> = binary:copy(<<16#5A>>, 100001),
    <<Odd:100000/binary, _/bitstring>> = Bits,
    Lists = [Large, Small, [Large, Small], [Small | Odd], lists:duplicate(2000, Odd),
             lists:foldl(fun(N, Acc) -> [Acc, N rem 256] end, [], lists:seq(1, 70000)), Odd, []],
    io:format("~p~n", [[written(fun file:write/2, L) || L <- Lists]]),
    io:format("~p~n", [[written(fun(F, Data) -> file:pwrite(F, 10, Data) end, L) || L <- Lists]]),
    io:format("~p~n", [[written(fun(F, Data) -> file:pwrite(F, [{0, Data}, {5, <<"five">>}, {3, Data}]) end, L) || L <- Lists]]),
    Bad = [[Large | atom], [Large, atom], [Small, 256], [Small, -1, Large], [Large, <<1:7>>], [Small, [Large | 7]], {Large}],
    io:format("~p~n", [[written(fun file:write/2, L) || L <- Bad]]),
    io:format("~p~n", [[written(fun(F, Data) -> file:pwrite(F, 10, Data) end, L) || L <- Bad]]),
    [io:format("~p~n", [catch erlang:iolist_to_iovec(L)]) || L <- [[1, <<2>> | 3], [<<1:7>>], [a], 1]],
    io:format("~p~n", [[iolist_to_binary(erlang:iolist_to_iovec(L)) =:= iolist_to_binary(L) || L <- Lists]]),
    file:delete(?FILE_NAME).

%% What a way to write answers, and what is in the file then.
written(Write, Data) ->
    {ok, F} = file:open(?FILE_NAME, [write, raw, binary]),
    Answer = Write(F, Data),
    ok = file:close(F),
    {ok, All} = file:read_file(?FILE_NAME),
    {Answer, byte_size(All), erlang:md5(All)}.
