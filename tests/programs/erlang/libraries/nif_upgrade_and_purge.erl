%% Checks native libraries during code changes: refused calls, upgrade, purge, unloading, and
%% resources that outlive their module. @nif upgrades @stress @fence
-module(nif_upgrade_and_purge).
-export([main/0]).

show(What, F) ->
    R = try F() catch C:E -> {C, E} end,
    io:format("~p: ~p~n", [What, R]).

%% A module that loads the library; `Mod` and `Functions` may not be what the library expects.
module(Mod, Functions, Attributes) ->
    L = 1,
    Stub = fun({N, A}) ->
        {function, L, N, A, [{clause, L, [{var, L, '_'} || _ <- lists:seq(1, A)], [], [{call, L, {remote, L, {atom, L, erlang}, {atom, L, nif_error}}, [{atom, L, stub}]}]}]}
    end,
    Load = {function, L, load, 2, [{clause, L, [{var, L, 'P'}, {var, L, 'I'}], [],
            [{call, L, {remote, L, {atom, L, erlang}, {atom, L, load_nif}}, [{var, L, 'P'}, {var, L, 'I'}]}]}]},
    Forms = [{attribute, L, module, Mod}, {attribute, L, export, [{load, 2} | Functions]}] ++ Attributes ++ [Load | [Stub(F) || F <- Functions]],
    {ok, Mod, Bin} = compile:forms(Forms, []),
    Bin.

fresh(Mod, Functions) -> fresh(Mod, Functions, []).
fresh(Mod, Functions, Attributes) ->
    code:purge(Mod),
    {module, Mod} = code:load_binary(Mod, "none", module(Mod, Functions, Attributes)).

told() -> receive M -> [M | told()] after 100 -> [] end.

collect() -> erlang:garbage_collect(), told().

main() ->
    register(nif_upgrade_and_purge, self()),
    All = [{version, 0}, {make, 1}],
    Lib = "../ebin/upgrades",
    M = n_versions,
    show(traced, fun() -> T = spawn(fun() -> receive stop -> ok end end),
        [begin
             erlang:trace_pattern({erlang, load_nif, 2}, Spec, [global]),
             erlang:trace(self(), true, [call, {tracer, T}]),
             fresh(M, All),
             R = M:load(Lib, []),
             erlang:trace(self(), false, [call]),
             erlang:trace_pattern({erlang, load_nif, 2}, false, [global]),
             code:purge(M), code:delete(M), code:purge(M),
             {R, length(collect())}
         end || Spec <- [true, [{'_', [], [{return_trace}]}]]] end),
    show(no_file, fun() -> fresh(M, All), M:load("./nothing", []) end),
    show(no_library, fun() -> ok = file:write_file("text.so", "no library at all"), M:load("./text", []) end),
    show(no_name, fun() -> M:load(nothing, []) end),
    show(apply, fun() -> erlang:apply(erlang, load_nif, [Lib, []]) end),
    show(other, fun() -> fresh(n_other, All), n_other:load(Lib, []) end),
    show(missing, fun() -> fresh(M, [{version, 0}]), M:load(Lib, []) end),
    show(undeclared, fun() -> fresh(M, All, [{attribute, 1, nifs, [{version, 0}]}]), M:load(Lib, []) end),
    show(refused, fun() -> fresh(M, All), M:load(Lib, 17) end),
    show(stub, fun() -> M:version() end),
    show(told, fun() -> told() end),
    show(load, fun() -> {M:load(Lib, []), M:version(), M:version(), told()} end),
    show(again, fun() -> {M:load(Lib, []), M:version()} end),
    show(apply, fun() -> {apply(M, version, []), (fun M:version/0)()} end),
    show(nifs, fun() -> lists:sort(M:module_info(nifs)) end),
    R = M:make(1),
    show(no_upgrade, fun() -> fresh(M, All), {M:load(Lib, 4), told(), catch M:version()} end),
    show(upgrade, fun() -> {M:load(Lib, []), told(), M:version()} end),
    show(purge, fun() -> {code:purge(M), told(), M:version()} end),
    show(reference, fun() -> is_reference(R) end),
    S = M:make(2),
    show(delete, fun() -> {code:delete(M), code:purge(M)} end),
    show(kept, fun() -> is_reference(S) end),
    show(gone, fun() -> lists:sort(collect()) end),
    show(anew, fun() -> fresh(M, All), {M:load(Lib, []), told(), M:version()} end),
    show(ends, fun() -> {code:delete(M), code:purge(M), told()} end),
    %% A function that was replaced is traced like any other.
    show(traced, fun() ->
        fresh(M, All), ok = M:load(Lib, []), told(),
        erlang:trace(self(), true, [call]),
        erlang:trace_pattern({M, version, 0}, [{'_', [], [{return_trace}]}], []),
        V = M:version(),
        erlang:trace(self(), false, [call]),
        V
    end).
