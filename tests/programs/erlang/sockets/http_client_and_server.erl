%% Runs the HTTP server and client of inets: files, directories, scripts in Erlang, uploads, ranges,
%% errors.
-module(http_client_and_server).
-export([main/0, page/3, 'do'/1]).
-include_lib("inets/include/httpd.hrl").
%% A connection that is kept may close just when the next request goes out on it.
-define(CLOSE, {"connection", "close"}).

main() ->
    logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(inets),
    D = filename:absname("http_client_and_server." ++ os:getpid()),
    ok = file:make_dir(D),
    ok = file:write_file(D ++ "/index.html", "<p>index</p>"),
    ok = file:write_file(D ++ "/large.bin", binary:copy(<<"0123456789">>, 100000)),
    {ok, Pid} = inets:start(httpd, [{port, 0}, {server_name, "localhost"}, {server_root, D}, {document_root, D}, {bind_address, {127, 0, 0, 1}}, {directory_index, ["index.html"]},
        {modules, [mod_alias, mod_esi, mod_actions, mod_get, mod_head, ?MODULE]}, {erl_script_alias, {"/esi", [?MODULE]}}, {mime_types, [{"html", "text/html"}, {"bin", "application/octet-stream"}]}]),
    [{port, Port}] = httpd:info(Pid, [port]),
    U = "http://127.0.0.1:" ++ integer_to_list(Port),
    Get = fun(P) -> show(httpc:request(get, {U ++ P, [?CLOSE]}, [], [])) end,
    [io:format("~s ~p~n", [P, Get(P)]) || P <- ["/", "/index.html", "/none", "/large.bin", "/esi/http_client_and_server:page?a=b", "/esi/http_client_and_server:none", "/../etc/passwd"]],
    io:format("head ~p~n", [show(httpc:request(head, {U ++ "/large.bin", [?CLOSE]}, [], []))]),
    io:format("range ~p~n", [show(httpc:request(get, {U ++ "/large.bin", [{"range", "bytes=5-14"}, ?CLOSE]}, [], []))]),
    io:format("post ~p~n", [show(httpc:request(post, {U ++ "/post", [?CLOSE], "text/plain", binary:copy(<<"x">>, 200000)}, [], [{body_format, binary}]))]),
    io:format("put ~p~n", [show(httpc:request(put, {U ++ "/none", [?CLOSE], "text/plain", "x"}, [], []))]),
    {ok, R} = httpc:request(get, {U ++ "/large.bin", [?CLOSE]}, [], [{sync, false}, {stream, self}, {body_format, binary}]),
    io:format("stream ~p~n", [stream(R, 0)]),
    io:format("file ~p ~p~n", [httpc:request(get, {U ++ "/large.bin", [?CLOSE]}, [], [{stream, D ++ "/saved"}]), filelib:file_size(D ++ "/saved")]),
    Me = self(),
    [spawn(fun() -> Me ! {done, [element(1, Get("/")) || _ <- lists:seq(1, 20)]} end) || _ <- lists:seq(1, 20)],
    io:format("many ~w~n", [lists:usort(lists:append([receive {done, L} -> L end || _ <- lists:seq(1, 20)]))]),
    io:format("refused ~p~n", [element(1, httpc:request("http://127.0.0.1:1/"))]),
    ok = inets:stop(httpd, Pid),
    io:format("~p~n", [file:del_dir_r(D)]).

show({ok, {{_, Code, Text}, Headers, Body}}) ->
    {Code, Text, [H || {K, _} = H <- lists:sort(Headers), lists:member(K, ["content-type", "content-length", "content-range", "allow", "transfer-encoding", "x-own"])], size_of(iolist_to_binary(Body))};
show(E) -> E.
size_of(B) when size(B) < 100 -> B;
size_of(B) -> {size(B), erlang:md5(B)}.

stream(R, N) ->
    receive
        {http, {R, stream_start, _}} -> stream(R, N);
        {http, {R, stream, B}} -> stream(R, N + size(B));
        {http, {R, stream_end, _}} -> N
    after 10000 -> late
    end.

page(Session, Env, Input) ->
    mod_esi:deliver(Session, ["Content-Type: text/plain\r\nX-Own: 1\r\n\r\n", proplists:get_value(request_method, Env), " "]),
    mod_esi:deliver(Session, [Input, "\n"]).

'do'(#mod{method = "POST", entity_body = B}) ->
    {proceed, [{response, {200, ["got ", integer_to_list(iolist_size(B))]}}]};
'do'(#mod{data = D}) -> {proceed, D}.
