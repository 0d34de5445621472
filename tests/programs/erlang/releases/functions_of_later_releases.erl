%% Calls functions that came with OTP 26 and later, by name. They are undefined in earlier releases.
%% @stress @shared
-module(functions_of_later_releases).
-export([main/0, id/1]).

main() ->
    numbers(), text(), tables(), floats(), local(), living(), patterns(), terms(), iterators(), sockets(), contexts().

t(M, F, A) ->
    io:format("~w:~w/~w ~p~n", [M, F, length(A), try apply(M, F, A) catch C:R -> {C, R} end]).

id(X) -> X.

numbers() ->
    [t(erts_internal, list_to_integer, A) || A <- [["12x", 10], ["", 10], [x, 10], ["1", 1], [[$1 | x], 10], ["ff", 16]]],
    [t(erts_internal, binary_to_integer, A) || A <- [[<<"12">>, 10], [<<"12x">>, 10], [x, 10], [<<"1">>, 1], [<<1:3>>, 10]]],
    [io:format("~p~n", [catch list_to_integer(L)]) || L <- ["1", "-17", "123456789012345678901234567890"]],
    [io:format("~p~n", [catch binary_to_integer(L, 16)]) || L <- [<<"1">>, <<"-Ff">>, <<"123456789012345678901234567890">>]],
    [t(erlang, is_integer, A) || A <- [[3, 1, 5], [a, 1, 5], [3, a, 5], [3, 1.0, 5], [1 bsl 70, 0, 1 bsl 71], [3, 5, 1]]],
    [t(erlang, F, [1, 2.0]) || F <- [min, max]].

text() ->
    [t(erlang, display_string, A) || A <- [[stdout, "ab\x{20ac}\n"], [stdout, <<"ab\n">>], [stdout, [a]], [stdout, [1 | 2]], [foo, "a"]]],
    [t(erts_internal, term_to_string, [T, L]) || T <- [{a, "b", <<"c">>, [1, 2], #{a => b}, 1.5}, 'A'], L <- [undefined, 0, x]].

tables() ->
    [begin
         T = ets:new(t, [Type]),
         ets:insert(T, [{K, K * 2} || K <- [1, 2]]),
         ets:insert(T, {2, 7}),
         S = fun(F, A) -> io:format("~w ~w ~p~n", [Type, F, try apply(ets, F, [T | A]) of L when is_list(L) -> lists:sort(L); V -> V catch C:R -> {C, R} end]) end,
         S(lookup_element, [9, 2, def]), S(lookup_element, [1, 2, def]), S(lookup_element, [1, 5, def]), S(lookup_element, [9, a, def]),
         S(update_element, [9, {2, x}, {9, a, b}]), S(update_element, [8, {2, x}, {1, a, b}]), S(update_element, [7, {5, x}, {7, a}]),
         S(update_element, [7, [], foo]), S(update_element, [1, {2, o}, {}]), S(tab2list, []),
         [S(F, [K]) || F <- [next_lookup, prev_lookup], K <- [77]],
         O = ets:new(o, [ordered_set]),
         ets:insert(O, [{K} || K <- lists:seq(1, 4)]),
         [t(ets, F, [O]) || F <- [first_lookup, last_lookup]],
         [t(ets, F, [O, K]) || F <- [next_lookup, prev_lookup], K <- [0, 2, 2.0, 9]]
     end || Type <- [set, ordered_set, bag]].

floats() ->
    P = id(0.0), N = id(-0.0),
    io:format("~w~n", [{P =:= N, P == N, {P} =:= {N}, erlang:phash2(P) =:= erlang:phash2(N), maps:size(#{P => 1, N => 2}), P < N,
                        lists:sort([P, N]), lists:usort([N, P]), lists:member(N, [P]), erts_internal:cmp_term(P, N), [P] -- [N],
                        lists:keyfind(N, 1, [{P}]), erts_internal:cmp_term([{N}], [{P}])}]),
    T = ets:new(x, []),
    ets:insert(T, [{P, 1}, {N, 2}]),
    io:format("~w ~w~n", [ets:info(T, size), maps:get(id(-0.0), maps:from_list([{F, F} || F <- [0.0, -0.0] ++ lists:seq(1, 40)]))]).

local() ->
    {ok, Port} = gen_udp:open(0, []),
    T = {self(), make_ref(), Port, [a, 1.5, <<"b">>]},
    Sound = fun(B) -> binary_to_term(B) =:= T end,
    io:format("~p~n", [try B = term_to_binary(T, [local]), {Sound(B), refused(<<131, 121, 0, 0, 0, 0, (binary:part(B, 6, byte_size(B) - 6))/binary>>)} catch C:R -> {C, R} end]),
    io:format("~p~n", [try Sound(term_to_binary(T, [local, compressed])) catch C1:R1 -> {C1, R1} end]),
    t(erlang, term_to_binary, [a, [local, deterministic]]),
    gen_udp:close(Port),
    io:format("~w~n", [term_to_binary([a, 'b c', 'å'])]).

refused(B) ->
    try binary_to_term(B) of _ -> false catch error:badarg -> true end.

living() ->
    Me = self(),
    P = spawn(fun() -> catch apply(proc_lib, set_label, [{a, b}]), put(k, v), Me ! labelled, receive X -> X end end),
    receive labelled -> ok end,
    [t(erlang, process_info, [P, I]) || I <- [label, {dictionary, k}, {dictionary, zz}, [{dictionary, k}, label], {label, k}, {dictionary}]],
    t(proc_lib, get_label, [P]),
    exit(P, kill),
    Q = spawn(fun() -> R = (catch apply(erlang, hibernate, [])), Me ! {r, case R of ok -> ok; _ -> none end, receive hi -> hi after 60000 -> late end} end),
    timer:sleep(20),
    Q ! hi,
    receive {r, R, S} -> io:format("~p ~p~n", [R, S]) end,
    t(erlang, exit_signal, [self(), normal, [priority]]),
    t(erlang, exit_signal, [self(), normal, [foo]]),
    t(erlang, exit, [spawn(fun() -> ok end), normal, []]),
    t(erlang, link, [foo, []]),
    t(erlang, link, [self(), [priority]]),
    F = fun F(I) -> case apply(erlang, processes_next, [I]) of none -> []; {A, J} -> [A | F(J)] end end,
    io:format("~p~n", [try lists:sort(F(apply(erlang, processes_iterator, []))) =:= lists:sort(erlang:processes()) catch C1:R1 -> {C1, R1} end]),
    by_alias().

%% An exit signal by way of an alias, which is active or not.
by_alias() ->
    Me = self(),
    [begin
         {P, M} = spawn_monitor(fun() -> A = alias(), [unalias(A) || not Active], Me ! {alias, A}, receive stop -> ok end end),
         receive {alias, A} -> ok end,
         t(erlang, exit, [A, why]),
         P ! stop,
         receive {'DOWN', M, _, _, Why} -> io:format("~p~n", [Why]) end
     end || Active <- [true, false]].

patterns() ->
    t(re, import, [foo]),
    io:format("~p~n", [try {ok, X} = re:compile("a(b)", [export, caseless]), re:run("xAb", apply(re, import, [X])) catch C:R -> {C, R} end]),
    [t(persistent_term, put_new, [r_key, V]) || V <- [1, 1, 2, 1.0]].

terms() ->
    t(erlang, system_monitor, []),
    t(code, get_debug_info, [?MODULE]),
    [t(erlang, is_record, [X]) || X <- [a, {a, b}]].

sockets() ->
    [t(net, getservbyname, A) || A <- [["http", tcp], [zzz, udp]]],
    t(net, getservbyport, [80, tcp]),
    {ok, L} = socket:open(inet, stream, tcp),
    ok = socket:bind(L, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    ok = socket:listen(L),
    {ok, Addr} = socket:sockname(L),
    {ok, C} = socket:open(inet, stream, tcp),
    ok = socket:connect(C, Addr),
    {ok, S} = socket:accept(L),
    Big = lists:duplicate(2000, binary:copy(<<"x">>, 1000)),
    Me = self(),
    spawn(fun() -> Me ! {sent, try apply(socket, sendv, [C, Big]) catch _:R -> R end} end),
    case erlang:function_exported(socket, sendv, 2) of
        true -> {ok, B} = socket:recv(S, 2000000), io:format("~p~n", [byte_size(B)]);
        false -> ok
    end,
    receive {sent, R} -> io:format("~p~n", [R]) end,
    {ok, T} = gen_tcp:listen(0, [binary, {active, false}]),
    {ok, Port} = inet:port(T),
    {ok, A} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    {ok, A2} = gen_tcp:accept(T),
    io:format("~p~n", [[gen_tcp:send(A, D) || D <- [<<"a">>, ["b", [<<"c">>]], [], lists:duplicate(20000, "x")]]]),
    io:format("~p~n", [gen_tcp:recv(A2, 3)]),
    io:format("~p~n", [catch gen_tcp:send(A, [a])]).

%% The size of what is left to match, where the compiler asks the match context.
contexts() ->
    io:format("~p~n", [[rest(B, N) || B <- [<<>>, <<"abc">>, <<1:13>>, binary:copy(<<"y">>, 100)], N <- [0, 1, 3]]]).

rest(B, N) ->
    case B of
        <<_:N/binary, C:2/binary, Rest/binary>> -> {C, byte_size(Rest)};
        <<_:N/binary, Rest/binary>> when byte_size(Rest) > 0 -> {Rest, byte_size(Rest)};
        <<_:N/binary, Rest/bitstring>> when bit_size(Rest) > 3 -> {Rest, bit_size(Rest)};
        _ -> none
    end.

iterators() ->
    M = maps:from_list([{K, -K} || K <- lists:seq(1, 50)]),
    [t(erts_internal, map_next, [Keys, M, Kind]) || Keys <- [[3, 1], [], [99], [1 | 2], [[]]], Kind <- [iterator, []]],
    [io:format("~w~n", [try maps:to_list(apply(maps, iterator, [M, Order])) catch error:undef -> undef end])
     || Order <- [ordered, reversed, fun(A, B) -> {A rem 7, A} =< {B rem 7, B} end]].
