#!/usr/bin/env escript
%% compare_modules.escript ONE OTHER: compares the modules of two trees; see compare_trees in sources.sh.
-mode(compile).

main([One, Other]) ->
    Names = fun(Dir) -> filelib:wildcard("**/*.beam", Dir) end,
    All = lists:usort(Names(One) ++ Names(Other)),
    Found = [{compare(filename:join(One, N), filename:join(Other, N)), N} || N <- All],
    [io:format("~ts: ~ts~n", [N, describe(V)]) || {V, N} <- Found, V =/= same],
    Count = fun(P) -> length([x || {V, _} <- Found, P(V)]) end,
    io:format("~b of ~b modules identical~n", [Count(fun(V) -> V =:= same end), length(All)]),
    case Count(fun(V) -> V =/= same andalso element(1, V) =:= but end) of
        0 -> ok;
        N -> io:format("~b more but for compiled regular expressions or the order of a large map~n", [N])
    end,
    halt(case Count(fun(V) -> V =/= same andalso element(1, V) =/= but end) of 0 when All =/= [] -> 0; _ -> 1 end).

describe({but, What}) -> ["identical but for ", What];
describe({chunks, Names}) -> io_lib:format("differs in ~0p", [Names]);
describe({missing, Side}) -> [Side, " lacks it"].

compare(A, B) ->
    case {file:read_file(A), file:read_file(B)} of
        {{ok, Bin}, {ok, Bin}} -> same;
        {{ok, X}, {ok, Y}} -> chunks(X, Y);
        {{ok, _}, _} -> {missing, "the other"};
        _ -> {missing, "stock"}
    end.

chunks(X, Y) ->
    {ok, M, ChunksX} = beam_lib:all_chunks(X),
    {ok, M, ChunksY} = beam_lib:all_chunks(Y),
    Names = [N || {N, _} <- ChunksX],
    case Names =:= [N || {N, _} <- ChunksY] of
        false -> {chunks, Names -- [N || {N, _} <- ChunksY]};
        true ->
            Pairs = [{N, P, Q} || {{N, P}, {N, Q}} <- lists:zip(ChunksX, ChunksY), P =/= Q],
            Kinds = [{N, kind(N, P, Q)} || {N, P, Q} <- Pairs],
            Wrong = [N || {N, differs} <- Kinds],
            if
                Wrong =/= [] -> {chunks, Wrong};
                true ->
                    %% The version and the identity of funs come from a digest of the rest.
                    case lists:usort([K || {_, K} <- Kinds]) -- [digest] of
                        [] -> {chunks, [N || {N, _} <- Kinds]};
                        [regexes] -> {but, "compiled regular expressions"};
                        [order] -> {but, "the order of a large map"};
                        _ -> {but, "compiled regular expressions and the order of a large map"}
                    end
            end
    end.

kind("LitT", X, Y) -> verdict(literals(X), literals(Y));
kind("Dbgi", X, Y) -> verdict(binary_to_term(X), binary_to_term(Y));
kind("Attr", X, Y) ->
    Rest = fun(C) -> lists:keydelete(vsn, 1, binary_to_term(C)) end,
    digest(Rest(X) =:= Rest(Y));
kind("FunT", <<N:32, X/binary>>, <<N:32, Y/binary>>) ->
    Rest = fun(C) -> [F || <<F:20/binary, _Digest:32>> <= C] end,
    digest(Rest(X) =:= Rest(Y));
kind(_, _, _) -> differs.

digest(true) -> digest;
digest(false) -> differs.

literals(<<_:32, Packed/binary>>) ->
    <<_:32, Terms/binary>> = zlib:uncompress(Packed),
    [binary_to_term(T) || <<Size:32, T:Size/binary>> <= Terms].

verdict(X, X) -> same;
verdict(X, Y) ->
    A = plain(X), B = plain(Y),
    if
        A =:= B -> regexes;
        true -> case sorted(A) =:= sorted(B) of true -> order; false -> differs end
    end.

%% Without what the library of regular expressions made.
plain({re_pattern, N, Utf, CrLf, _}) -> {re_pattern, N, Utf, CrLf, compiled};
plain({Key, _}) when Key =:= re_pattern; Key =:= re_version -> Key;
plain(#{re_version := _} = M) -> plain_map(M#{re_version := version});
plain(M) when is_map(M) -> plain_map(M);
plain(T) when is_tuple(T) -> list_to_tuple(plain(tuple_to_list(T)));
plain([H | T]) -> [plain(H) | plain(T)];
plain(T) -> T.

plain_map(M) -> maps:map(fun(_, V) -> plain(V) end, M).

sorted(M) when is_map(M) -> maps:map(fun(_, V) -> sorted(V) end, M);
sorted(T) when is_tuple(T) -> list_to_tuple([sorted(E) || E <- tuple_to_list(T)]);
sorted(L) when is_list(L), length(L) >= 0 -> lists:sort([sorted(E) || E <- L]);
sorted(T) -> T.
