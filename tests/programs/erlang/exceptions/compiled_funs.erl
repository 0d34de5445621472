%% Machine code makes and calls funs with environments of any size and of any arity, as tail calls
%% and otherwise. @stress @fence
-module(compiled_funs).
-export([main/0]).

main() ->
    L = rounds(200, []),
    io:format("~p~n", [[length(L), lists:usort(L)]]),
    Pid = self(),
    {pid, P} = erlang:fun_info(make(3, a), pid),
    io:format("~p~n", [P =:= Pid]),
    io:format("~p~n", [[erlang:fun_info(make(N, a), arity) || N <- lists:seq(0, 9)]]),
    io:format("~p~n", [[element(2, erlang:fun_info(make(N, a), env)) || N <- lists:seq(0, 9)]]),
    io:format("~p~n", [shape(catch (make(2, a))(1, 2))]),
    io:format("~p~n", [shape(catch (id(not_fun))(1))]).

rounds(0, R) -> R;
rounds(N, R) -> rounds(N - 1, [all(N rem 3) | R]).

all(X) ->
    Fs = [make(K, X) || K <- lists:seq(0, 9)],
    garbage(20),
    {[F(1) || F <- Fs], [last(F) || F <- Fs], many(X), lists:map(fun(Y) -> {X, Y} end, [1, 2]), external(fun lists:reverse/1), self_made(X, 5)}.

last(F) -> F(2).
external(F) -> F([1, 2, 3]).
self_made(X, N) ->
    F = fun G(0) -> X; G(K) -> [K | G(K - 1)] end,
    F(N).

make(0, _) -> fun(Z) -> Z end;
make(1, A) -> fun(Z) -> {A, Z} end;
make(2, A) -> B = {A}, fun(Z) -> {A, B, Z} end;
make(3, A) -> B = {A}, C = [B], fun(Z) -> {A, B, C, Z} end;
make(4, A) -> B = {A}, C = [B], D = {C}, fun(Z) -> {A, B, C, D, Z} end;
make(5, A) -> B = {A}, C = [B], D = {C}, E = {D}, fun(Z) -> {A, B, C, D, E, Z} end;
make(6, A) -> B = {A}, C = [B], D = {C}, E = {D}, F = 1.5, fun(Z) -> {A, B, C, D, E, F, A, Z} end;
make(7, A) -> B = {A}, C = [B], D = {C}, E = {D}, F = [A, B], G = {F}, fun(Z) -> {A, B, C, D, E, F, G, Z} end;
make(8, A) -> B = {A}, C = [B], D = {C}, E = {D}, F = [A, B], G = {F}, H = {G}, fun(Z) -> {A, B, C, D, E, F, G, H, Z} end;
make(N, A) -> B = {A}, C = [B], D = {C}, E = {D}, F = [A, B], G = {F}, H = {G}, I = {N}, fun(Z) -> {A, B, C, D, E, F, G, H, I, Z} end.

many(X) ->
    F = fun(A, B, C, D, E, F, G, H) -> {X, A, B, C, D, E, F, G, H} end,
    G = fun(A, B, C, D, E, H) -> [H, E, D, C, B, A, X] end,
    {F(1, 2, 3, 4, 5, 6, 7, 8), G(1, 2, 3, 4, 5, 6), tail8(F), tail6(G)}.
tail8(F) -> F(a, b, c, d, e, f, g, h).
tail6(F) -> F(a, b, c, d, e, f).

garbage(0) -> ok;
garbage(N) -> _ = [N, {N}], garbage(N - 1).
id(X) -> X.
shape({'EXIT', {{R, _}, [_ | _]}}) -> R.
