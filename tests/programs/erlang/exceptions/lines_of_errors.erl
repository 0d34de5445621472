%% Checks the line of an error whose instruction has no line of its own. The last call before it in
%% the code decides, except for some calls.
-module(lines_of_errors).
-compile([export_all, nowarn_export_all]).
main() -> [io:format("~p ~p~n", [F, try ?MODULE:F(5) catch _:R:S -> {R, [{FF, L} || {lines_of_errors, FF, _, [_, {line, L}]} <- S]} end]) 
     || F <- [c1, c2, f,g,h,k,m,n,o,p,a1,a2,a3,a4,a5,a6,a7,a8,a9,b1,b2,b3,b4,b5,b6,b7,b8]].
id(X) -> X.
f(X) -> case X of [_|_] ->
   id(X),
   lists:merge(X, X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
g(X) -> case X of [_|_] ->
   ?MODULE:id(X),
   ?MODULE:id(X) + 1; _ ->
   receive after 1180591620717411303424 -> ok end end.
h(X) -> case X of [_|_] ->
   ?MODULE:id(X),
   ?MODULE:id(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
k(X) -> case X of [_|_] ->
   id(X),
   ets:lookup(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
m(X) -> case X of [_|_] ->
   id(X),
   atom_to_list(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
n(X) -> case X of [_|_] ->
   id(X),
   X(); _ ->
   receive after 1180591620717411303424 -> ok end end.
o(X) -> case X of [_|_] ->
   id(X),
   spawn(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
p(X) -> case X of [_|_] ->
   id(X),
   garbage_collect(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a1(X) -> case X of [_|_] ->
   id(X),
   apply(X, X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a2(X) -> case X of [_|_] ->
   id(X),
   apply(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a3(X) -> case X of [_|_] ->
   id(X),
   X:foo(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a4(X) -> case X of [_|_] ->
   id(X),
   erlang:hibernate(X, X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a5(X) -> case X of [_|_] ->
   lists:merge(X, X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a6(X) -> case X of [_|_] ->
   ets:lookup(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a7(X) -> case X of [_|_] ->
   id(X), error(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a8(X) -> case X of [_|_] ->
   id(X),
   nosuchmodule:error(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
a9(X) -> case X of [_|_] ->
   id(X),
   erlang:nosuchfunction(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
b1(X) -> case X of [_|_] ->
   id(X),
   max(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
b2(X) -> case X of [_|_] ->
   id(X),
   erlang:yield(); _ ->
   receive after 1180591620717411303424 -> ok end end.
b3(X) -> case X of [_|_] ->
   id(X),
   erlang:garbage_collect(); _ ->
   receive after 1180591620717411303424 -> ok end end.
b4(X) -> case X of [_|_] ->
   id(X),
   alias(); _ ->
   receive after 1180591620717411303424 -> ok end end.
b5(X) -> case X of [_|_] ->
   id(X),
   lists:keyfind(X, X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
b6(X) -> case X of [_|_] ->
   id(X),
   erlang:get_module_info(X); _ ->
   receive after 1180591620717411303424 -> ok end end.
b7(X) -> case X of [_|_] ->
   id(X),
   load_nif(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
load_nif(X, X) -> erlang:load_nif(X, X).
b8(X) -> case X of [_|_] ->
   id(X),
   crypto:hash(X, X); _ ->
   receive after 1180591620717411303424 -> ok end end.
c1(X) -> case X of [_|_] ->
   ?MODULE:id(X),
   id(hd(X)); _ ->
   receive after 1180591620717411303424 -> ok end end.
c2(X) -> case X of [_|_] ->
   id(hd(X)); _ ->
   receive after 1180591620717411303424 -> ok end end.
