%% Checks zlib, checksums, hashes without crypto, base64, and zip and tar archives in memory.
-module(zlib_and_archives).
-export([main/0]).

main() ->
    D = binary:copy(<<"compress me, please. ">>, 500),
    io:format("~p~n", [[byte_size(F(D)) || F <- [fun zlib:compress/1, fun zlib:gzip/1, fun zlib:zip/1]]]),
    io:format("~p~n", [[zlib:uncompress(zlib:compress(D)) =:= D, zlib:gunzip(zlib:gzip(D)) =:= D, zlib:unzip(zlib:zip(D)) =:= D]]),
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, best_speed),
    C = [zlib:deflate(Z, binary:part(D, 0, 100)), zlib:deflate(Z, <<"rest">>, finish)],
    ok = zlib:deflateEnd(Z), zlib:close(Z),
    io:format("~p~n", [zlib:uncompress(iolist_to_binary(C)) =:= <<(binary:part(D, 0, 100))/binary, "rest">>]),
    io:format("~p~n", [catch zlib:uncompress(<<"garbage">>)]),
    {ok, {"m.zip", Zip}} = zip:create("m.zip", [{"a.txt", <<"hello">>}, {"b/c.txt", D}], [memory]),
    {ok, L} = zip:unzip(Zip, [memory]),
    io:format("~p~n", [[{N, byte_size(B)} || {N, B} <- L]]),
    io:format("~p~n", [base64:decode(base64:encode(D)) =:= D]),
    ok = erl_tar:create("t.tar.gz", [{"x/y.txt", <<"tar content">>}], [compressed]),
    io:format("~p~n", [erl_tar:extract("t.tar.gz", [memory, compressed])]),
    file:delete("t.tar.gz").
