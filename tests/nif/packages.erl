%% Uses native libraries that others have written, as `scripts/nif_packages.sh` finds them packaged.
%% What it prints is compared between stock and Purlin.
-module(packages).
-export([main/0]).

main() ->
    each(jiffy, fun() -> code:which(jiffy) =/= non_existing end, fun jiffy/0),
    each(fxml, fun() -> code:which(fxml) =/= non_existing end, fun xml/0),
    each(ets_cache, fun() -> code:which(ets_cache) =/= non_existing end, fun cache/0),
    each(ezlib, fun() -> code:which(ezlib) =/= non_existing end, fun deflate/0),
    each(fast_yaml, fun() -> code:which(fast_yaml) =/= non_existing end, fun yaml/0),
    each(esip, fun() -> code:which(esip_codec) =/= non_existing end, fun sip/0),
    each(iconv, fun() -> code:which(iconv) =/= non_existing end, fun iconv/0),
    each(stringprep, fun() -> code:which(stringprep) =/= non_existing end, fun stringprep/0),
    each(xmpp, fun() -> code:which(jid) =/= non_existing end, fun xmpp/0),
    each(mqtree, fun() -> code:which(mqtree) =/= non_existing end, fun mqtree/0),
    each(p1_sha, fun() -> code:which(p1_sha) =/= non_existing end, fun sha/0),
    each(fast_tls, fun() -> code:which(fast_tls) =/= non_existing end, fun tls/0),
    each(bitcask, fun() -> code:which(bitcask) =/= non_existing end, fun bitcask/0),
    each(sqlite3, fun() -> code:which(sqlite3) =/= non_existing end, fun sqlite/0),
    halt(0).

each(Name, Is, F) ->
    case Is() of
        false -> io:format("~p: not here~n", [Name]);
        true ->
            {P, R} = spawn_monitor(fun() -> exit({done, try F() catch C:E:T -> {C, E, T} end}) end),
            receive {'DOWN', R, process, P, V} -> io:format("~p: ~p~n", [Name, V]) end
    end.

doc(0) -> <<"leaf">>;
doc(N) ->
    #{<<"number">> => N, <<"float">> => N / 3, <<"list">> => [N, true, false, null, <<"täxt"/utf8>>], <<"big">> => 1 bsl (N * 3),
      <<"down">> => [doc(N - 1), doc(N - 1)]}.

jiffy() ->
    D = doc(10),
    J = iolist_to_binary(jiffy:encode(D)),
    Back = jiffy:decode(J, [return_maps]),
    Refused = [catch jiffy:decode(B) || B <- [<<"{">>, <<"[1,2">>, <<"nope">>, <<"\"\\ud800\"">>]],
    Odd = [catch jiffy:encode(T) || T <- [self, {[{a, 1}]}, <<255>>, {not_json}]],
    Pretty = iolist_to_binary(jiffy:encode({[{<<"a">>, [1, {[]}]}]}, [pretty])),
    {byte_size(J), erlang:phash2(D), Back =:= D, Refused, Odd, Pretty,
     pmap(fun(_) -> jiffy:decode(J, [return_maps]) =:= D end, lists:seq(1, 8)),
     catch jiffy:decode(binary:part(J, 0, byte_size(J) - 5))}.

pmap(F, L) ->
    Rs = [spawn_monitor(fun() -> exit({value, F(X)}) end) || X <- L],
    [receive {'DOWN', R, process, P, {value, V}} -> V end || {P, R} <- Rs].

xml() ->
    X = fxml_stream:parse_element(<<"<a x='1'><b>text &amp; more</b><c/><![CDATA[<raw>]]></a>">>),
    Bad = fxml_stream:parse_element(<<"<a><b></a>">>),
    S0 = fxml_stream:new(self()),
    S1 = lists:foldl(fun(P, S) -> fxml_stream:parse(S, P) end, S0, [<<"<stream:stream xmlns:stream='s'><mess">>, <<"age to='x'>hel">>, <<"lo</message>">>]),
    fxml_stream:close(S1),
    {X, Bad, fxml:element_to_binary(X), fxml:crypt(<<"<&>\"'">>), messages()}.

messages() -> receive M -> [M | messages()] after 300 -> [] end.

cache() ->
    {ok, _} = application:ensure_all_started(cache_tab),
    ok = ets_cache:new(c, [{max_size, 100}, {life_time, infinity}]),
    [ets_cache:lookup(c, I, fun() -> {ok, I * I} end) || I <- lists:seq(1, 50)],
    {ets_cache:lookup(c, 7), length(ets_cache:all()), ets_cache:delete(c, 7), ets_cache:lookup(c, 7), catch ets_cache:lookup(c, 7, fun() -> error end)}.

deflate() ->
    catch application:ensure_all_started(ezlib),
    Z = ezlib:new(),
    D = binary:copy(<<"compress me ">>, 1000),
    {ok, C0} = ezlib:compress(Z, D),
    C = iolist_to_binary(C0),
    Z2 = ezlib:new(),
    {ok, B} = ezlib:decompress(Z2, C),
    {byte_size(C) < byte_size(D), iolist_to_binary(B) =:= D, catch ezlib:decompress(ezlib:new(), <<"garbage in here">>)}.

yaml() ->
    {fast_yaml:decode(<<"a: 1\nb: [x, 2.5, ~]\nc:\n  - d: 'text'\n">>), fast_yaml:decode(<<"a: [">>),
     fast_yaml:decode(<<"k: v\n">>, [maps, plain_as_atom]), iolist_to_binary(fast_yaml:encode([{a, [1, 2]}, {b, <<"c">>}]))}.

sip() ->
    catch esip_codec:start(),
    {esip_codec:decode_uri(<<"sip:user:secret@example.org:5060;transport=tcp?a=b">>), esip_codec:unescape(<<"a%20b">>), esip_codec:to_lower(<<"ABC">>),
     esip_codec:decode(<<"OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z\r\nTo: <sip:a@b>\r\nFrom: <sip:c@d>;tag=1\r\nCall-ID: x\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n">>)}.

iconv() ->
    catch iconv:load_nif(),
    {iconv:convert("utf-8", "iso-8859-1", <<"äöü"/utf8>>), iconv:convert("koi8-r", "utf-8", <<193, 194>>), catch iconv:convert("none", "utf-8", <<"x">>)}.

stringprep() ->
    catch stringprep:start(),
    {stringprep:tolower(<<"ÄBC"/utf8>>), stringprep:nodeprep(<<"User">>), stringprep:nodeprep(<<"a@b">>), stringprep:resourceprep(<<"Res  ource">>)}.

xmpp() ->
    catch stringprep:start(), catch jid:start(), catch xmpp_uri:start(), catch xmpp_lang:start(),
    {jid:decode(<<"User@Example.ORG/Home">>), catch jid:decode(<<"@x">>), jid:encode(jid:make(<<"u">>, <<"h">>, <<"r">>)),
     [catch xmpp_uri:check(U) || U <- [<<"http://example.org/a?b#c">>, <<"not a uri">>]],
     [catch xmpp_lang:check(U) || U <- [<<"en-US">>, <<"x">>, <<"123456789-">>]]}.

mqtree() ->
    T = mqtree:new(),
    [mqtree:insert(T, P) || P <- [<<"a/b">>, <<"a/+">>, <<"#">>, <<"c">>]],
    {lists:sort(mqtree:match(T, <<"a/b">>)), lists:sort(mqtree:match(T, <<"c">>)), mqtree:size(T), mqtree:delete(T, <<"#">>), lists:sort(mqtree:to_list(T)),
     mqtree:register(tree, T), mqtree:whereis(tree) =/= undefined, catch mqtree:insert(a, b)}.

sha() -> {p1_sha:sha(<<"abc">>), p1_sha:sha256(<<"abc">>)}.

tls() ->
    {ok, _} = application:ensure_all_started(fast_tls),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), "nif_packages"),
    Pem = filename:join(Dir, "both.pem"),
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {reuseaddr, true}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    Me = self(),
    spawn_link(fun() ->
        {ok, S} = gen_tcp:accept(L),
        {ok, T} = fast_tls:tcp_to_tls(S, [{certfile, Pem}]),
        {ok, D} = fast_tls:recv(T, 0, 5000),
        ok = fast_tls:send(T, [<<"answer to ">>, D]),
        Me ! served,
        receive stop -> ok end
    end),
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, T} = fast_tls:tcp_to_tls(S, [connect]),
    ok = fast_tls:send(T, <<"question">>),
    {ok, A} = recv(T, 20),
    receive served -> ok after 5000 -> late end,
    {ok, C} = fast_tls:get_peer_certificate(T, der),
    {A, byte_size(C) > 300}.

recv(T, 0) -> {T, none};
recv(T, N) ->
    case fast_tls:recv(T, 0, 5000) of
        {ok, <<>>} -> recv(T, N - 1);
        R -> R
    end.

bitcask() ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"), "nif_packages_bitcask" ++ os:getpid()),
    B = bitcask:open(Dir, [read_write]),
    [ok = bitcask:put(B, <<I:32>>, binary:copy(<<I>>, I)) || I <- lists:seq(1, 100)],
    ok = bitcask:delete(B, <<7:32>>),
    R = {bitcask:get(B, <<42:32>>), bitcask:get(B, <<7:32>>), length(bitcask:list_keys(B)),
         bitcask:fold(B, fun(_, V, A) -> A + byte_size(V) end, 0)},
    ok = bitcask:close(B),
    B2 = bitcask:open(Dir),
    R2 = bitcask:get(B2, <<99:32>>),
    bitcask:close(B2),
    file:del_dir_r(Dir),
    {R, R2}.

%% A driver, not a library of functions.
sqlite() ->
    file:delete("packages.db"),
    {ok, _} = sqlite3:open(db, [{file, "packages.db"}]),
    Types = [{id, integer, [{primary_key, [asc, autoincrement]}]}, {name, text, [not_null]}, {age, integer}, {f, double}, {b, blob}],
    ok = sqlite3:create_table(db, user, Types),
    Written = [sqlite3:write(db, user, [{name, "n" ++ integer_to_list(I)}, {age, I}, {f, I / 7}, {b, {blob, <<I:64>>}}]) || I <- lists:seq(1, 50)],
    Read = [sqlite3:list_tables(db), sqlite3:table_info(db, user), sqlite3:read(db, user, {age, 3}),
            sqlite3:sql_exec(db, "SELECT name, b FROM user WHERE id < ? AND age > ?;", [{1, 4}, {2, 1}]),
            sqlite3:sql_exec(db, "SELECT nothing FROM nowhere;"), sqlite3:sql_exec(db, "SELECT NULL, 9223372036854775807, -1, 1.5, x'00ff';")],
    {ok, R} = sqlite3:prepare(db, "SELECT id, name FROM user WHERE age < ?"),
    ok = sqlite3:bind(db, R, [4]),
    Stepped = [sqlite3:columns(db, R), sqlite3:next(db, R), sqlite3:next(db, R), sqlite3:reset(db, R), sqlite3:finalize(db, R)],
    Me = self(),
    Parallel = fun(I) ->
        {ok, P} = sqlite3:open(list_to_atom("d" ++ integer_to_list(I)), [in_memory]),
        sqlite3:sql_exec(P, "CREATE TABLE t (a INTEGER);"),
        [sqlite3:sql_exec(P, "INSERT INTO t VALUES (?);", [N]) || N <- lists:seq(1, 100)],
        Me ! {I, sqlite3:sql_exec(P, "SELECT sum(a) FROM t;")},
        sqlite3:close(P)
    end,
    [spawn_link(fun() -> Parallel(I) end) || I <- lists:seq(1, 6)],
    Sums = [receive {I, S} -> S after 30000 -> late end || I <- lists:seq(1, 6)],
    {done, Written, Read, Stepped, Sums, sqlite3:close(db)}.
