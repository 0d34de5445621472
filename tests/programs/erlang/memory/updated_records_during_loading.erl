%% Several elements of records are updated while the module is reloaded. OTP 25's compiler copies
%% the record with `setelement/3` and then writes the other elements into the copy. If a collection
%% has moved the copy to the old generation, that must keep what is written: a literal of the
%% current version, or a part of a message. @stress @shared @fence @seconds 120
-module(updated_records_during_loading).
-export([main/0]).

-define(VERSIONS, 16).
%% Elements of the large record, beside its name.
-define(ELEMENTS, 1300).

main() ->
    Bins = list_to_tuple([compile_version(V) || V <- lists:seq(1, ?VERSIONS)]),
    load(Bins, 1),
    Asked = atomics:new(2, []),
    Loader = spawn_link(fun() -> loader(Bins, Asked) end),
    Load = fun(N) -> ask(Asked, N) end,
    %% A generation of more than a million words is made where the heap lies, once: each process
    %% crosses that line at another place.
    io:format("~p~n", [lists:usort([in_process(0, fun() -> large(Load, Words) end) || Words <- [1048570, 1048000, 1047000]])]),
    %% Small heaps with old generations of their own.
    io:format("~p~n", [lists:usort([in_process(F, fun() -> small(Load, lists:seq(1, 40)) end) || F <- [0, 65535, 3, 65535]])]),
    %% Parts of messages in place of literals.
    io:format("~p~n", [lists:usort([in_process(F, fun() -> parts(60) end) || F <- [0, 65535, 3, 65535]])]),
    unlink(Loader),
    exit(Loader, kill).

in_process(FullsweepAfter, F) ->
    {_, M} = spawn_opt(fun() -> exit({is, F()}) end, [monitor, {fullsweep_after, FullsweepAfter}]),
    receive {'DOWN', M, _, _, R} -> R end.

%% Loads versions for one that must not wait, since that would have made its terms old before.
loader(Bins, Asked) ->
    case atomics:get(Asked, 1) of
        0 -> receive after 1 -> ok end;
        N -> load(Bins, N), atomics:put(Asked, 1, 0), atomics:put(Asked, 2, N)
    end,
    loader(Bins, Asked).

ask(Asked, N) ->
    atomics:put(Asked, 2, 0),
    atomics:put(Asked, 1, N),
    answered(Asked, N).

answered(Asked, N) ->
    case atomics:get(Asked, 2) of
        N -> ok;
        _ -> erlang:yield(), answered(Asked, N)
    end.

%% ---- Versions ----

compile_version(V) ->
    Fields = lists:join(", ", [io_lib:format("f~w", [I]) || I <- lists:seq(1, ?ELEMENTS)]),
    Text = io_lib:format(
        "-module(updated_tuples).~n-export([update/2, update/1, small/0]).~n"
        "-record(large, {~s}).~n-record(small, {a, b, c, d, e, f, g, h, i, j, k, l}).~n"
        "small() -> #small{a = none, c = none, d = none, k = none, l = none}.~n"
        "update(S, X) -> S#large{f1 = ~w, f3 = ~w, f700 = ~w, f1300 = X}.~n"
        "update(S) -> S#small{a = ~w, c = ~w, d = ~w, k = ~w, l = none}.~n",
        [Fields, V, literal(V, 1), literal(V, 2), V, literal(V, 1), literal(V, 2), literal(V, 3)]),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    {ok, updated_tuples, Bin} = compile:forms([begin {ok, F} = erl_parse:parse_form(Ts), F end || Ts <- forms(Tokens, [])], []),
    Bin.

forms([], []) -> [];
forms([{dot, _} = D | Ts], Acc) -> [lists:reverse([D | Acc]) | forms(Ts, [])];
forms([T | Ts], Acc) -> forms(Ts, [T | Acc]).

literal(V, 1) -> {idle, [V, [V]], "of a version"};
literal(V, 2) -> [[V | I] || I <- lists:seq(1, 30)];
literal(V, 3) -> #{v => V, <<V:800>> => {V, 1 bsl (100 + V)}}.

%% No other version is left: what only code held goes.
load(Bins, N) ->
    code:purge(updated_tuples),
    {module, updated_tuples} = code:load_binary(updated_tuples, "updated_tuples.beam", element(1 + N rem ?VERSIONS, Bins)),
    code:purge(updated_tuples).

%% ---- Processes ----

large(Load, Words) ->
    %% Nothing else leads to literals, so that nobody who is asked about those of other versions
    %% collects because of them.
    S = erlang:make_tuple(1 + ?ELEMENTS, none, [{1, large}]),
    Bulk = lists:seq(1, Words div 2),
    Load(2),
    Filled = fill(S, []),
    %% There is no room for the copy: a collection follows, and what it leaves is old.
    T = updated_tuples:update(S, 0),
    [Load(K) || K <- lists:seq(1, ?VERSIONS)],
    erlang:garbage_collect(self(), [{type, minor}]),
    [Load(K) || K <- lists:seq(1, ?VERSIONS)],
    {length(Bulk) =:= Words div 2, [F || F <- Filled, tuple_size(F) < 100], is_right(T)}.

%% Fills the young heap, but for less than a copy of the record takes.
fill(S, Filled) ->
    {_, L} = process_info(self(), garbage_collection_info),
    [Block, Used, Stack] = [proplists:get_value(K, L) || K <- [heap_block_size, heap_size, stack_size]],
    case Block - Used - Stack of
        Free when Free > 3000 -> fill(S, [setelement(3, S, Free) | Filled]);
        Free when Free > 1200 -> fill(S, [erlang:make_tuple(101, Free) | Filled]);
        _ -> Filled
    end.

is_right(T) ->
    V = element(2, T),
    element(1301, T) =:= 0 andalso element(4, T) =:= literal(V, 1) andalso element(701, T) =:= literal(V, 2).

small(Load, Turns) ->
    Made = [begin Load(N), updated_tuples:update(updated_tuples:small()) end || N <- Turns],
    [begin Load(N), N rem 3 =:= 0 andalso erlang:garbage_collect(self(), [{type, minor}]) end || N <- Turns],
    [element(2, T) || T <- Made, [literal(element(2, T), K) || K <- [1, 2, 3]] =/= [element(K, T) || K <- [4, 5, 12]]].

-record(of_message, {a, b, c, d, e, f, g, h, i, j, k, l}).

parts(0) -> ok;
parts(N) ->
    S = self(),
    spawn(fun() -> S ! {part, N, [{N, I} || I <- lists:seq(1, 3000)], {N, [N | "x"]}, <<N:800>>} end),
    receive {part, N, A, B, C} -> ok end,
    put({made, N}, update(#of_message{}, A, B, C)),
    N rem 2 =:= 0 andalso erlang:garbage_collect(self(), [{type, minor}]),
    case get({made, N + 4}) of
        undefined -> ok;
        #of_message{a = A4, c = B4, k = C4} ->
            A4 = [{N + 4, I} || I <- lists:seq(1, 3000)],
            {B4, C4} = {{N + 4, [N + 4 | "x"]}, <<(N + 4):800>>},
            erase({made, N + 4})
    end,
    parts(N - 1).

update(R, A, B, C) -> R#of_message{a = A, c = B, k = C, l = x}.
