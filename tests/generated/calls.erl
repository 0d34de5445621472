%% Random calls of natives, with right and wrong arguments: what each gives, as a line. Both
%% runtimes are given the same seed and must print the same lines.
%%
%%   erl -noshell -run calls main FAMILY SEED COUNT      a line a call
%%   erl -noshell -run calls digests FAMILY SEED COUNT   a line a hundred calls: a digest of all there is to tell of them
%%   erl -noshell -run calls digest FAMILY SEED HUNDRED  the digest of that hundred
%%   erl -noshell -run calls some FAMILY SEED HUNDRED    the lines of that hundred
-module(calls).
-export([main/1, state/2, digests/1, digest/1, some/1, name/1, compile/1, text/2, plain/1, frames/2, inspected/1, steps/2, atomic/2, counter/3, persistent/1, environment/2, kind/2]).

-import(arguments, [arg/1]).

main([Family, Seed, Count]) -> main(Family, Seed, 1, list_to_integer(Count), fun(_, Called) -> [line(C) || C <- Called] end).
digests([Family, Seed, Count]) -> main(Family, Seed, 1, list_to_integer(Count), fun digest/2).
digest([Family, Seed, Hundred]) -> main(Family, Seed, list_to_integer(Hundred), 100, fun digest/2).
digest(N, Called) -> io_lib:format("~w ~s~n", [N, binary:encode_hex(erlang:md5(term_to_binary(Called)))]).
some([Family, Seed, Hundred]) -> main(Family, Seed, list_to_integer(Hundred), 100, fun(_, Called) -> [line(C) || C <- Called] end).

%% Each hundred begins with a state of the generator that is its own.
main(Family, Seed, First, Count, Show) ->
    Calls = list_to_tuple(families:calls(list_to_atom(Family))),
    ok = io:setopts([{encoding, latin1}]),
    logger:set_primary_config(level, none),
    %% Purlin puts a place of its own in front.
    os:putenv("PATH", "/usr/local/bin:/usr/bin:/bin"),
    %% Not to be waited for later; and what isn't loaded exports nothing.
    [{module, _} = code:ensure_loaded(M) || M <- [compiled, erl_erts_errors, erl_stdlib_errors, erl_kernel_errors, erl_posix_msg, unicode_util, zlib, base64, re]],
    [begin
         rand:seed(exsss, state(Seed, N)),
         io:put_chars(Show(N, [call(Calls) || _ <- lists:seq(1, min(100, Count - (N - First) * 100))]))
     end || N <- lists:seq(First, First + (Count - 1) div 100)],
    halt(0).

%% From numbers as they are the generator would have the same states for many a seed and number that
%% are near each other.
state(Seed, N) -> {erlang:phash2({Seed, N}), erlang:phash2({N, Seed}), N}.

call(Calls) ->
    {M, F, Kinds} = element(rand:uniform(tuple_size(Calls)), Calls),
    Args = possible(M, F, [arg(K) || K <- Kinds]),
    Way = way(M, F, length(Args), rand:uniform(12)),
    {M, F, plain(Args), Way, outcome(Way, M, F, Args)}.

%% What ends stock for want of memory is left out.
possible(binary, copy, [B, N]) when is_integer(N), N > 1 bsl 32 -> [B, 1 bsl 80];
possible(M, F, [N | T]) when (M =:= atomics orelse M =:= counters) andalso F =:= new orelse M =:= calls andalso (F =:= atomic orelse F =:= counter), is_integer(N), N >= 1 bsl 27, N < 1 bsl 60 ->
    [N bsr 8 | T];
possible(_, process_flag, [F, N]) when F =:= min_heap_size orelse F =:= min_bin_vheap_size, is_integer(N), N > 1 bsl 24 -> [F, 1 bsl 16];
possible(_, process_flag, [P, F, N]) when F =:= min_heap_size orelse F =:= min_bin_vheap_size, is_integer(N), N > 1 bsl 24 -> [P, F, 1 bsl 16];
%% Another number in each runtime.
possible(erlang, apply, [erlang, time_offset | A]) -> [erlang, abs | A];
possible(erlang, get_module_info, [M, K]) when K =:= exports; K =:= functions -> [M, module];
possible(erlang, memory, [L]) when is_list(L) -> [[strange | L]];
possible(erlang, memory, [A]) when is_atom(A) -> [[strange, A]];
possible(_, _, Args) -> Args.

line({M, F, Args, Way, Outcome}) -> io_lib:format("~w:~w(~ts) ~w ~ts~n", [M, F, text(Args, 400), Way, shown(Outcome)]).

shown({value, R}) -> ["= ", text(R, 600)];
shown({C, R, Frames, Explained}) -> [atom_to_list(C), " ", text(R, 200), " at ", lists:sublist(lists:flatten(io_lib:format("~w", [Frames])), 500), [[" ", text(T, 300)] || T <- Explained]];
shown({ended, R}) -> ["ended: ", text(R, 200)];
shown({ended, R, Frames}) -> ["ended: ", text(R, 200), " at ", lists:sublist(lists:flatten(io_lib:format("~w", [Frames])), 300)];
shown(A) -> atom_to_list(A).

%% How it is called: by name, by a fun, by code that was compiled with the call in it, as the first
%% thing of a process.
way(_, _, _, N) when N < 4 -> apply;
way(_, _, _, 4) -> 'fun';
way(_, _, _, 5) -> process;
way(_, _, _, 6) -> last_apply;
way(M, F, A, N) ->
    Way = element(N - 6, {body, body, body, last, last, guard}),
    case erlang:function_exported(compiled, direct(Way, M, F, A), A) of
        true -> Way;
        false -> apply
    end.

direct(Way, M, F, A) -> list_to_atom(lists:concat([Way, " ", M, ":", F, "/", A])).

%% Module `compiled`: all calls, written out.
compile([Dir]) ->
    Each = lists:usort([{M, F, length(Kinds)} || Family <- families:names(), {M, F, Kinds} <- families:calls(Family)]),
    Forms = [{attribute, 1, module, compiled}, {attribute, 1, compile, export_all} | lists:append([written(C) || C <- Each])],
    {ok, compiled, Beam} = compile:forms(Forms, [nowarn_export_all, report_errors]),
    ok = file:write_file(filename:join(Dir, "compiled.beam"), Beam),
    halt(0).

written({M, F, A}) ->
    Vars = [{var, 1, list_to_atom("A" ++ integer_to_list(N))} || N <- lists:seq(1, A)],
    Call = {call, 2, {remote, 2, {atom, 2, M}, {atom, 2, F}}, Vars},
    Function = fun(Way, Clauses) -> {function, 1, direct(Way, M, F, A), A, Clauses} end,
    [Function(body, [{clause, 1, Vars, [], [{match, 2, {var, 2, 'R'}, Call}, {call, 3, {remote, 3, {atom, 3, calls}, {atom, 3, name}}, Vars1}, {var, 4, 'R'}]}])
     || Vars1 <- [[{var, 3, 'R'}]]] ++
        [Function(last, [{clause, 1, Vars, [], [Call]}])] ++
        [Function(guard, [{clause, 1, Vars, [[{op, 2, '=:=', Call, {atom, 2, true}}]], [{atom, 2, true}]},
                          {clause, 3, Vars, [[{op, 3, '=/=', Call, {atom, 3, none}}]], [{atom, 3, fits}]},
                          {clause, 4, Vars, [], [{atom, 4, fails}]}])
         || M =:= erlang, F =/= is_record, erl_internal:guard_bif(F, A) orelse erl_internal:arith_op(F, A) orelse erl_internal:comp_op(F, A)
                orelse erl_internal:bool_op(F, A)].

%% In a process of its own, so that nothing of one call is left for the next.
outcome(process, M, F, Args) -> waited(spawn_opt(M, F, Args, options()), returned);
outcome(Way, M, F, Args) -> waited(spawn_opt(fun() -> exit(attempt(Way, M, F, Args)) end, options()), ended_normal).

options() -> [monitor, {max_heap_size, #{size => 20000000, kill => true, error_logger => false}}].

waited(Started, Normal) -> waited(Started, Normal, 10, none).

waited({Pid, Ref}, Normal, Left, Before) ->
    receive
        {'DOWN', Ref, process, Pid, {outcome, T}} -> T;
        {'DOWN', Ref, process, Pid, normal} -> Normal;
        {'DOWN', Ref, process, Pid, {R, [{M, F, _, _} | _] = S}} when is_atom(M), is_atom(F) -> {ended, plain(R), [frame(Fr) || Fr <- S]};
        {'DOWN', Ref, process, Pid, R} -> {ended, plain(R)}
    after 2000 ->
        %% What waits for so long won't end.
        case process_info(Pid, [status, current_function]) of
            Now when Left =:= 0; Left < 6, Now =:= Before, hd(Now) =:= {status, waiting} -> exit(Pid, kill), no_end;
            Now -> waited({Pid, Ref}, Normal, Left - 1, Now)
        end
    end.

attempt(Way, M, F, Args) ->
    {outcome, try called(Way, M, F, Args) of
                  R -> {value, plain(R)}
              catch
                  C:R:S -> {C, plain(R), [frame(Fr) || Fr <- S], explained(C, R, S)}
              end}.

called(apply, M, F, Args) -> name(apply(M, F, Args));
called(last_apply, M, F, Args) -> apply(M, F, Args);
called('fun', M, F, Args) -> A = length(Args), name(apply(fun M:F/A, Args));
called(Way, M, F, Args) -> apply(compiled, direct(Way, M, F, length(Args)), Args).

%% Where it failed, with the arguments that the trace has.
frames(S, Max) when is_list(S) -> lists:sublist(lists:flatten(io_lib:format("~w", [[frame(F) || F <- S]])), Max);
frames(S, _) -> text(plain(S), 100).

frame({M, F, A, I}) ->
    Arguments = case A of [_ | _] -> {'of', erlang:phash2(plain(A))}; [] -> 0; _ -> A end,
    {M, F, Arguments, [proplists:get_value(K, I) || K <- [line, error_info], lists:keymember(K, 1, I)]};
frame(F) -> plain(F).

%% What `erl_error` tells the user about the arguments.
explained(error, R, [{_, _, _, I} | _] = S) ->
    case lists:keyfind(error_info, 1, I) of
        {_, Info} ->
            Module = maps:get(module, Info, erl_erts_errors),
            [try apply(Module, format_error, [R, S]) catch _:_ -> unexplained end];
        false -> []
    end;
explained(_, _, _) -> [].

text(T, Max) ->
    S = lists:flatten(io_lib:format("~0p", [T])),
    case length(S) > Max of
        true -> [lists:sublist(S, Max), "... ", integer_to_list(erlang:phash2(S))];
        false -> S
    end.

%% Without what differs from run to run.
plain(T) when is_pid(T) -> 'PID';
plain(T) when is_port(T) -> 'PORT';
plain(T) when is_reference(T) -> 'REF';
plain(T) when is_function(T) -> {'FUN', erlang:fun_info(T, arity)};
%% How much memory is used.
plain([{total, N}, {processes, P} | T]) when is_integer(N), is_integer(P) -> [total, processes | [K || {K, _} <- T]];
%% In stock's order of exports shows what has been loaded before.
plain({exports, L}) when is_list(L) -> {exports, lists:sort(plain(L))};
plain([H | T]) -> [plain(H) | plain(T)];
plain({re_pattern, A, B, C, Code}) when is_binary(Code) -> {re_pattern, A, B, C};
%% How many of a fun there are by now.
plain(T) when T =:= heap_binary; T =:= refc_binary; T =:= sub_binary -> a_binary;
plain({refc, N}) when is_integer(N) -> refc;
plain(T) when is_tuple(T), tuple_size(T) < 1000 -> list_to_tuple(plain(tuple_to_list(T)));
plain(T) when is_map(T), map_size(T) =< 32 -> maps:map(fun(_, V) -> plain(V) end, T);
%% The order of large maps depends on the numbers of atoms.
plain(T) when is_map(T) -> {map, lists:sort(plain(maps:to_list(T)))};
plain(T) -> T.

%% Steps on something made for them; what each gives.
steps(Do, Steps) ->
    [try plain(Do(S))
     catch C:R:T -> {M, F, A, _} = hd(T), {C, plain(R), M, F, if is_list(A) -> length(A); true -> A end}
     end || S <- Steps].

atomic(N, Steps) ->
    A = atomics:new(N, []),
    {steps(fun({compare_exchange, I, X, Y}) -> atomics:compare_exchange(A, I, X, Y);
              ({info, _, _}) -> maps:remove(memory, atomics:info(A));
              ({get, I, _}) -> atomics:get(A, I);
              ({F, I, V}) -> atomics:F(A, I, V) end, Steps),
     steps(fun(I) -> atomics:get(A, I) end, lists:seq(1, min(N, 40)))}.

counter(N, Kind, Steps) ->
    C = counters:new(N, [K || K <- [atomics, write_concurrency], erlang:phash2(Kind, 2) =:= erlang:phash2(K, 2)]),
    {steps(fun({get, I, _}) -> counters:get(C, I); ({info, _, _}) -> counters:info(C); ({F, I, V}) -> counters:F(C, I, V); (_) -> none end,
           [S || S <- Steps, lists:member(element(1, S), [get, add, sub, put])]),
     steps(fun(I) -> counters:get(C, I) end, lists:seq(1, min(N, 40)))}.

persistent(Steps) ->
    R = steps(fun({put, K, V}) -> persistent_term:put({calls, K}, V);
                 ({get, K, D}) -> persistent_term:get({calls, K}, D);
                 ({get, K}) -> persistent_term:get({calls, K});
                 ({erase, K}) -> persistent_term:erase({calls, K});
                 ({all}) -> lists:sort([{K, V} || {{calls, K}, V} <- persistent_term:get()]) end, Steps),
    [persistent_term:erase(K) || {{calls, _} = K, _} <- persistent_term:get()],
    R.

environment(K, V) ->
    R = steps(fun(Do) -> Do() end, [fun() -> os:putenv(K, V) end, fun() -> os:getenv(K) end, fun() -> os:unsetenv(K) end, fun() -> os:getenv(K, V) end]),
    try os:unsetenv(K) catch _:_ -> ok end,
    R.

inspected(P) -> {ok, C} = re:compile(P), re:inspect(C, namelist).

%% What kind of thing a native without arguments gives.
kind(M, F) -> kind(M:F()).
kind(T) when is_integer(T) -> integer;
kind(T) when is_float(T); is_boolean(T) -> T;
kind(T) when is_atom(T) -> atom;
kind(T) when is_binary(T) -> binary;
kind([_ | _] = L) -> {list, lists:usort([kind(E) || E <- L])};
kind(T) when is_tuple(T) -> list_to_tuple([kind(E) || E <- tuple_to_list(T)]);
kind(T) when is_map(T) -> maps:map(fun(_, V) -> kind(V) end, T);
kind(T) -> plain(T).

name(T) -> T.
