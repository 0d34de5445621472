%% A small HTTP/1.1 server of stock modules only: connections that are kept, chunked bodies both
%% ways, uploads.
%%
%%     purlin run examples/http/http_server.erl 8080
%%
%%     GET /              what there is
%%     GET /whole         a page of 1000 times 410 bytes
%%     GET /split         the same bytes, each 410 in two halves
%%     GET /count/N       N lines, as chunks, made while they are sent
%%     POST /upload       takes any body, tells its size and checksum
%%
%% Each connection has a process. Pages are I/O lists and go to the socket as such.
-module(http_server).
-export([main/1, start/1, stop/1]).

-define(IDLE_MS, 60000).
-define(MAX_BODY, 1 bsl 30).
-define(PIECE, 65536).
-record(request, {method, path, version, length = 0, chunked = false, keep, continue = false}).

main([]) -> main(["8080"]);
main([Port]) ->
    {Listener, Actual} = start(list_to_integer(Port)),
    io:format("http://127.0.0.1:~b/~n", [Actual]),
    Ref = monitor(process, Listener),
    receive {'DOWN', Ref, _, _, Why} -> exit(Why) end.

%% Starts on a port of 127.0.0.1 (0: any that is free): a process, which stop/1 ends, and the port.
start(Port) ->
    Parent = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Options = [binary, {ip, {127, 0, 0, 1}}, {active, false}, {packet, http_bin}, {reuseaddr, true}, {backlog, 1024},
                   {nodelay, true}, {send_timeout, ?IDLE_MS}, {send_timeout_close, true}],
        case gen_tcp:listen(Port, Options) of
            {ok, L} ->
                {ok, Actual} = inet:port(L),
                Parent ! {self(), Actual},
                _ = [acceptor(L) || _ <- lists:seq(1, 16)],
                receive stop -> gen_tcp:close(L) end;
            {error, Why} -> exit(Why)
        end
    end),
    receive
        {Pid, Actual} -> demonitor(Ref, [flush]), {Pid, Actual};
        {'DOWN', Ref, _, _, Why} -> error(Why)
    end.

stop(Pid) ->
    Ref = monitor(process, Pid),
    Pid ! stop,
    receive {'DOWN', Ref, _, _, _} -> ok end.

%% Waits for a connection and leaves the next to another like it.
acceptor(L) -> spawn(fun() -> accept(L) end).

accept(L) ->
    case gen_tcp:accept(L) of
        {ok, S} ->
            acceptor(L),
            connection(S);
        {error, closed} -> ok;
        {error, Why} when Why =:= emfile; Why =:= enfile; Why =:= system_limit ->
            %% No descriptors: some will be closed.
            timer:sleep(100),
            accept(L);
        {error, _} -> accept(L)
    end.

connection(S) ->
    case request(S) of
        {ok, R} ->
            case serve(S, R) of
                keep -> connection(S);
                close -> gen_tcp:close(S)
            end;
        {bad, Status} ->
            _ = answer(S, #request{keep = false, version = {1, 1}}, Status, <<"text/plain">>, [reason(Status), $\n]),
            gen_tcp:close(S);
        closed -> gen_tcp:close(S)
    end.

%% The head of the next request.
request(S) ->
    case gen_tcp:recv(S, 0, ?IDLE_MS) of
        {ok, {http_request, Method, {abs_path, Path}, Version}} ->
            headers(S, #request{method = Method, path = Path, version = Version, keep = Version >= {1, 1}});
        {ok, {http_error, Line}} when Line =:= <<"\r\n">>; Line =:= <<"\n">> -> request(S);
        {ok, _} -> {bad, 400};
        {error, emsgsize} -> {bad, 414};
        {error, _} -> closed
    end.

headers(S, R) ->
    case gen_tcp:recv(S, 0, ?IDLE_MS) of
        {ok, http_eoh} -> {ok, R};
        {ok, {http_header, _, 'Content-Length', _, V}} ->
            try binary_to_integer(V) of
                N when N >= 0, N =< ?MAX_BODY -> headers(S, R#request{length = N});
                N when N > 0 -> {bad, 413};
                _ -> {bad, 400}
            catch error:badarg -> {bad, 400}
            end;
        {ok, {http_header, _, 'Transfer-Encoding', _, V}} ->
            case string:lowercase(V) of
                <<"chunked">> -> headers(S, R#request{chunked = true});
                _ -> {bad, 501}
            end;
        {ok, {http_header, _, 'Connection', _, V}} ->
            case string:lowercase(V) of
                <<"close">> -> headers(S, R#request{keep = false});
                <<"keep-alive">> -> headers(S, R#request{keep = true});
                _ -> headers(S, R)
            end;
        {ok, {http_header, _, <<"Expect">>, _, V}} ->
            headers(S, R#request{continue = string:lowercase(V) =:= <<"100-continue">>});
        {ok, {http_header, _, _, _, _}} -> headers(S, R);
        {ok, _} -> {bad, 400};
        {error, emsgsize} -> {bad, 431};
        {error, _} -> closed
    end.

serve(S, #request{method = 'POST', path = <<"/upload">>} = R) ->
    Digest = fun(Data, {N, C}) -> {N + byte_size(Data), erlang:md5_update(C, Data)} end,
    case body(S, R, Digest, {0, erlang:md5_init()}) of
        {ok, {N, C}} ->
            Sum = [io_lib:format("~2.16.0b", [B]) || <<B>> <= erlang:md5_final(C)],
            answer(S, R, 200, <<"text/plain">>, [integer_to_binary(N), " bytes, md5 ", Sum, $\n]);
        {bad, Status} -> answer(S, R#request{keep = false}, Status, <<"text/plain">>, [reason(Status), $\n]);
        closed -> close
    end;
serve(S, R) ->
    case body(S, R, fun(_, A) -> A end, none) of
        {ok, none} -> page(S, R);
        {bad, Status} -> answer(S, R#request{keep = false}, Status, <<"text/plain">>, [reason(Status), $\n]);
        closed -> close
    end.

page(S, #request{method = M, path = Path} = R) when M =:= 'GET'; M =:= 'HEAD' ->
    case Path of
        <<"/">> -> answer(S, R, 200, <<"text/html">>, index());
        <<"/whole">> -> answer(S, R, 200, <<"text/html">>, whole(1000));
        <<"/split">> -> answer(S, R, 200, <<"text/html">>, split(1000));
        <<"/count/", N/binary>> ->
            try binary_to_integer(N) of
                Lines -> count(S, R, Lines)
            catch error:badarg -> answer(S, R, 404, <<"text/plain">>, "no such number\n")
            end;
        _ -> answer(S, R, 404, <<"text/plain">>, ["nothing at ", Path, $\n])
    end;
page(S, R) -> answer(S, R, 405, <<"text/plain">>, "GET, HEAD, or POST /upload\n").

index() ->
    [<<"<!doctype html><title>Purlin</title><h1>It serves</h1><p>Try <a href=/whole>whole</a>, <a href=/split>split</a>, "
       "<a href=/count/10>count</a>, or POST to /upload.<p>Runtime system: ">>,
     erlang:system_info(otp_release), <<".\n">>].

-define(HALF, "<p>Two hundred and five bytes of a page that is all one text: nothing in it is computed, so that what is measured "
        "is how the runtime brings parts of a page from where they are to the kernel, as it is.</p>\n").
whole(0) -> [];
whole(N) -> [<<?HALF ?HALF>> | whole(N - 1)].
split(0) -> [];
split(N) -> [<<?HALF>>, <<?HALF>> | split(N - 1)].

%% A body whose length isn't known when it is begun.
count(S, #request{version = V} = R, _) when V < {1, 1} ->
    answer(S, R, 505, <<"text/plain">>, "chunks need HTTP/1.1\n");
count(S, R, Lines) ->
    Head = head(R, 200, <<"text/plain">>, <<"Transfer-Encoding: chunked\r\n">>),
    case gen_tcp:send(S, Head) of
        ok when R#request.method =:= 'HEAD' -> next(R);
        ok -> chunks(S, R, 1, Lines);
        {error, _} -> close
    end.

chunks(S, R, I, Lines) when I > Lines -> sent(R, gen_tcp:send(S, "0\r\n\r\n"));
chunks(S, R, I, Lines) ->
    Line = [integer_to_binary(I), $\n],
    case gen_tcp:send(S, [integer_to_binary(iolist_size(Line), 16), "\r\n", Line, "\r\n"]) of
        ok -> chunks(S, R, I + 1, Lines);
        {error, _} -> close
    end.

answer(S, R, Status, Type, Body) ->
    Length = [<<"Content-Length: ">>, integer_to_binary(iolist_size(Body)), <<"\r\n">>],
    Head = head(R, Status, Type, Length),
    sent(R, gen_tcp:send(S, case R#request.method of 'HEAD' -> Head; _ -> [Head | Body] end)).

head(R, Status, Type, More) ->
    [<<"HTTP/1.1 ">>, integer_to_binary(Status), $\s, reason(Status), <<"\r\nContent-Type: ">>, Type,
     <<"; charset=utf-8\r\n">>, More,
     case R#request.keep of true -> <<"\r\n">>; false -> <<"Connection: close\r\n\r\n">> end].

sent(R, ok) -> next(R);
sent(_, {error, _}) -> close.

next(#request{keep = true}) -> keep;
next(_) -> close.

reason(200) -> <<"OK">>;
reason(400) -> <<"Bad Request">>;
reason(404) -> <<"Not Found">>;
reason(405) -> <<"Method Not Allowed">>;
reason(413) -> <<"Content Too Large">>;
reason(414) -> <<"URI Too Long">>;
reason(431) -> <<"Request Header Fields Too Large">>;
reason(501) -> <<"Not Implemented">>;
reason(505) -> <<"HTTP Version Not Supported">>.

%% Folds over the pieces of the body as they come, so that an upload of any size takes little
%% memory.
body(_, #request{length = 0, chunked = false}, _, A) -> {ok, A};
body(S, R, F, A) ->
    _ = [gen_tcp:send(S, "HTTP/1.1 100 Continue\r\n\r\n") || R#request.continue],
    Result =
        case R#request.chunked of
            true -> body_chunks(S, F, A, 0);
            false ->
                ok = inet:setopts(S, [{packet, raw}]),
                body_bytes(S, R#request.length, F, A)
        end,
    _ = inet:setopts(S, [{packet, http_bin}]),
    Result.

body_bytes(_, 0, _, A) -> {ok, A};
body_bytes(S, N, F, A) ->
    case gen_tcp:recv(S, min(N, ?PIECE), ?IDLE_MS) of
        {ok, Data} -> body_bytes(S, N - byte_size(Data), F, F(Data, A));
        {error, _} -> closed
    end.

body_chunks(S, F, A, Before) ->
    _ = inet:setopts(S, [{packet, line}]),
    case gen_tcp:recv(S, 0, ?IDLE_MS) of
        {ok, Line} ->
            try binary_to_integer(hd(binary:split(string:trim(Line), <<";">>)), 16) of
                0 -> trailer(S, A);
                N when N < 0 -> {bad, 400};
                N when Before + N > ?MAX_BODY -> {bad, 413};
                N ->
                    ok = inet:setopts(S, [{packet, raw}]),
                    case body_bytes(S, N, F, A) of
                        {ok, A1} ->
                            case gen_tcp:recv(S, 2, ?IDLE_MS) of
                                {ok, <<"\r\n">>} -> body_chunks(S, F, A1, Before + N);
                                {ok, _} -> {bad, 400};
                                {error, _} -> closed
                            end;
                        closed -> closed
                    end
            catch error:badarg -> {bad, 400}
            end;
        {error, _} -> closed
    end.

trailer(S, A) ->
    case gen_tcp:recv(S, 0, ?IDLE_MS) of
        {ok, Line} when Line =:= <<"\r\n">>; Line =:= <<"\n">> -> {ok, A};
        {ok, _} -> trailer(S, A);
        {error, _} -> closed
    end.
