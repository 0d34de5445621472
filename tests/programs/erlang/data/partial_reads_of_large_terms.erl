%% Checks natives that read only part of a large term: the first match in a binary, the first term,
%% a few keys of a large map, and the first difference between two similar terms. Prints sums over
%% pseudo-random choices, around the limits from which natives take long, and the reductions
%% charged. @stress @fence
-module(partial_reads_of_large_terms).
-export([main/1, twice/1]).

main(_) ->
    rand:seed(exsss, {7, 8, 9}),
    erts_debug:set_internal_state(available_internal_state, true),
    io:format("~p~n", [[matches(Limit) || Limit <- [default, 10, 60, 500]]]),
    erts_debug:set_internal_state(binary_loop_limit, default),
    erts_debug:set_internal_state(available_internal_state, false),
    io:format("~p~n", [long_words()]),
    io:format("~p~n", [charged()]),
    io:format("~p~n", [terms()]),
    io:format("~p~n", [erlang:phash2([merged(N) || N <- lists:seq(1, 300)])]),
    io:format("~p~n", [large_merges()]),
    io:format("~p~n", [erlang:phash2([alike(N) || N <- lists:seq(1, 400)])]),
    io:format("~p~n", [by_name()]).

%% The same choices each time: the limit does not show in the sum.
matches(Limit) ->
    rand:seed(exsss, {1, 2, 3}),
    erts_debug:set_internal_state(binary_loop_limit, Limit),
    erlang:phash2([match(N) || N <- lists:seq(1, 150)]).
match(N) ->
    Subject = text("abc", lists:nth(1 + N rem 4, [0, 50, 300, 3000])),
    Words = [text("abcd", rand:uniform(lists:nth(1 + N rem 3, [2, 5, 80]))) || _ <- lists:seq(1, rand:uniform(5))],
    Longer = [<<(hd(Words))/binary, "d">>, <<(hd(Words))/binary, (text("abc", 70))/binary>> | Words],
    From = rand:uniform(byte_size(Subject) + 1) - 1,
    Scope = [{scope, {From, byte_size(Subject) - From}}],
    [{binary:match(Subject, W), binary:match(Subject, W, Scope), binary:split(Subject, W), binary:split(Subject, W, Scope),
        binary:split(Subject, W, [trim])} || W <- [hd(Words), Words, Longer, binary:compile_pattern(Longer)]].

%% Words so long that they are searched for one by one.
long_words() ->
    A = fun(N) -> binary:copy(<<"a">>, N) end,
    S = iolist_to_binary([A(700), "b", A(1000), "cab", A(300), "b", text("abc", 2000), A(299), "b"]),
    Words = [[<<(A(N))/binary, "b">>, <<"cab">>, <<"b">>, A(M), <<"zq">>] || N <- [256, 299, 300, 999], M <- [257, 301]],
    Two = [<<(A(20000))/binary, "b">>, <<"ba">>],
    {[erlang:phash2({binary:matches(S, W), binary:matches(S, binary:compile_pattern(W)), binary:match(S, W), binary:split(S, W, [global]),
        binary:match(S, W, [{scope, {900, 1300}}]), binary:matches(S, W, [{scope, {0, 705}}])}) || W <- Words ++ [Two]],
        binary:match(S, [A(5000), A(5001)]), binary:matches(S, [<<"x">> | [<<(A(300))/binary, I>> || I <- lists:seq(1, 100)]])}.

%% Whether what lies behind is charged for.
charged() ->
    B = binary:copy(<<"abcdefg\n">>, 1000000),
    T = iolist_to_binary([term_to_binary({a, I}) || I <- lists:seq(1, 60000)]),
    {ok, Re} = re:compile("\n"),
    {ok, Utf} = re:compile("\n", [unicode]),
    M = maps:from_list([{I, I} || I <- lists:seq(1, 120000)]),
    {match, _} = re:run(B, Utf, [{offset, 16}]),
    [begin
         F(),
         {_, R0} = process_info(self(), reductions),
         F(),
         {_, R1} = process_info(self(), reductions),
         R1 - R0 < 2000
     end || F <- [fun() -> binary:split(B, <<"\n">>) end, fun() -> binary:match(B, [<<"f">>, <<"g\n">>]) end,
                  fun() -> binary:match(B, <<"g">>, [{scope, {80, byte_size(B) - 80}}]) end, fun() -> re:run(B, Re, [{offset, 80}]) end,
                  fun() -> binary_to_term(T, [used]) end, fun() -> erlang:decode_packet(line, B, []) end, fun() -> maps:merge(M, #{x => 1}) end,
                  fun() -> maps:merge(#{x => 1}, M) end]].

terms() ->
    Small = [{a, I} || I <- lists:seq(1, 50000)],
    Large = lists:seq(1, 20000),
    All = iolist_to_binary([[term_to_binary(T) || T <- Small], term_to_binary(Large), term_to_binary(Large, [compressed]), term_to_binary(x)]),
    L = taken(All),
    Bad = binary:part(All, 0, byte_size(All) - 1),
    {L =:= Small ++ [Large, Large, x], catch element(1, element(2, catch {'EXIT', taken(binary:part(Bad, 400000, 450000))})),
        catch binary_to_term(<<131, 97, 1, Bad/binary>>, [used, safe]), element(1, catch binary_to_term(<<131, 255, Bad/binary>>, [used]))}.
taken(<<>>) -> [];
taken(B) ->
    {T, N} = binary_to_term(B, [used]),
    <<_:N/binary, R/binary>> = B,
    [T | taken(R)].

merged(N) ->
    Key = lists:nth(1 + N rem 4, [fun(I) -> I end, fun(I) -> {k, I} end, fun integer_to_binary/1, fun(I) -> [I / 2, {I}] end]),
    [A, B] = [maps:from_list([{Key(rand:uniform(S * 2)), {M, I}} || I <- lists:seq(1, rand:uniform(S))])
              || {M, S} <- [{a, lists:nth(1 + N rem 3, [40, 150, 900])}, {b, lists:nth(1 + N rem 5, [40, 100, 150, 900, 2000])}]],
    C = maps:merge(A, B),
    C =:= maps:fold(fun maps:put/3, A, B) andalso C == maps:from_list(maps:to_list(A) ++ maps:to_list(B)) orelse error(N),
    D = maps:filter(fun(_, {_, I}) -> I rem 2 =:= 0 end, C),
    [D2, D3, C] = [maps:merge(D, D), maps:merge(D, A), maps:merge(C, C)],
    D2 =:= D andalso D3 =:= maps:fold(fun maps:put/3, D, A) andalso maps:merge(C, D) =:= C andalso maps:merge(D, C) =:= C orelse error({again, N}),
    {map_size(C), [V || {_, V} <- lists:sort(maps:to_list(C))], [map_size(maps:remove(K, C)) || K <- lists:sublist(maps:keys(D3), 3)]}.

large_merges() ->
    A = maps:from_list([{I, a} || I <- lists:seq(1, 60000)]),
    B = maps:from_list([{I, b} || I <- lists:seq(50001, 110000)]),
    C = maps:merge(A, B),
    D = maps:merge(B, A),
    {map_size(C), length([a || b <- maps:values(C)]), length([b || a <- maps:values(D)]), maps:merge(C, D) =:= D, C =:= D}.

%% Terms that are alike but for one place, or not at all.
alike(N) ->
    T = term(rand:uniform(6)),
    U = binary_to_term(term_to_binary(T)),
    V = case N rem 3 of 0 -> U; _ -> changed(U) end,
    {T =:= U, T =:= V, T == V, T < V, V < T, T =< V, #{T => 1} =:= #{V => 1}, [T | 1] == [V | 1.0], {1, T} == {1.0, V}, {1, T} =:= {1.0, V}}.
term(0) ->
    lists:nth(rand:uniform(9), [a, 1, 2.5, <<"bin">>, <<5:3>>, [], {}, 1 bsl 70, "text"]);
term(D) ->
    Sub = [term(rand:uniform(D) - 1) || _ <- lists:seq(1, rand:uniform(4))],
    case rand:uniform(5) of
        1 -> Sub;
        2 -> list_to_tuple(Sub);
        3 -> maps:from_list([{K, S} || {K, S} <- lists:zip(lists:sublist([a, {b}, 1, "c"], length(Sub)), Sub)]);
        4 -> [term(D - 1) | term(0)];
        5 -> maps:from_list([{{k, I}, hd(Sub)} || I <- lists:seq(1, 40)])
    end.
changed([H | T]) -> case rand:uniform(2) of 1 -> [changed(H) | T]; 2 -> [H | changed(T)] end;
changed(T) when is_tuple(T), tuple_size(T) > 0 -> I = rand:uniform(tuple_size(T)), setelement(I, T, changed(element(I, T)));
changed(M) when is_map(M), map_size(M) > 0 -> K = lists:nth(rand:uniform(map_size(M)), lists:sort(maps:keys(M))), M#{K := changed(map_get(K, M))};
changed(1) -> 1.0;
changed(X) -> {X}.

twice(X) -> 2 * X.
%% Functions by name, of code and natives, called until they have machine code and once they are not
%% there.
by_name() ->
    Fs = [fun ?MODULE:twice/1, fun erlang:abs/1, fun lists:sum/1, fun(X) -> X + 1 end],
    [Twice, Abs, Sum, Next] = Fs,
    S = lists:foldl(fun(I, A) -> (Twice(I) + Abs(-I) + Sum([I, 1]) + Next(I) + A) rem 1000003 end, 0, lists:seq(1, 200000)),
    {S, [try F(1, 2) catch error:E -> element(1, E) end || F <- Fs], try (fun ?MODULE:nothing/1)(1) catch error:undef -> undef end,
        lists:sum(lists:map(fun ?MODULE:twice/1, lists:seq(1, 1000)))}.

text(Alphabet, N) ->
    << <<(lists:nth(rand:uniform(length(Alphabet)), Alphabet))>> || _ <- lists:seq(1, N) >>.
