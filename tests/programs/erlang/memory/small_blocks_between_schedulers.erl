%% One process allocates blocks of all sizes around the limits of the allocator (16 to 4,200 bytes)
%% and another frees them: messages, table objects, binaries that grow and shrink across the limits,
%% fragments, and heaps of short-lived processes. All contents are read before they are freed, and
%% sums are printed. Meanwhile most of the memory is freed at once and reused.
%% @stress @fence @shared @seconds 120
-module(small_blocks_between_schedulers).
-export([main/1]).

main(_) ->
    process_flag(trap_exit, true),
    io:format("messages ~p~n", [messages()]),
    io:format("objects ~p~n", [objects()]),
    io:format("binaries ~p~n", [binaries()]),
    io:format("processes ~p~n", [short_processes()]),
    io:format("waves ~p~n", [waves()]),
    ok.

%% Tuples of 1 to 520 words go round among four processes.
messages() ->
    Self = self(),
    Last = spawn_link(fun() -> forward(Self) end),
    First = lists:foldl(fun(_, Next) -> spawn_link(fun() -> forward(Next) end) end, Last, [1, 2, 3]),
    Sizes = [S || S <- lists:seq(1, 520, 7)] ++ [126, 127, 128, 129, 510, 511, 512, 513],
    Sum = lists:sum([begin
        [First ! {term, erlang:make_tuple(S, {S, N})} || N <- lists:seq(1, 10)],
        lists:sum([receive {term, T} -> sound(T) end || _ <- lists:seq(1, 10)])
    end || S <- Sizes]),
    exit(First, kill),
    Sum.

forward(Next) ->
    receive {term, T} -> Next ! {term, T}, forward(Next) end.

sound(T) ->
    E = element(1, T),
    [E] = lists:usort(tuple_to_list(T)),
    tuple_size(T) + element(2, E).

%% One process inserts objects of all sizes, another replaces and deletes them in another order.
objects() ->
    T = ets:new(t, [public, {write_concurrency, true}]),
    O = ets:new(o, [public, ordered_set]),
    Keys = lists:seq(1, 300),
    {A, RA} = spawn_monitor(fun() -> [ets:insert(X, {K, lists:seq(1, K * 2)}) || X <- [T, O], K <- Keys] end),
    receive {'DOWN', RA, _, A, normal} -> ok end,
    {B, RB} = spawn_monitor(fun() ->
        [begin [{K, L}] = ets:lookup(X, K), true = L =:= lists:seq(1, K * 2), ets:insert(X, {K, list_to_tuple(L)}) end || X <- [O, T], K <- lists:reverse(Keys)],
        [ets:delete(X, K) || X <- [T, O], K <- Keys, K rem 3 =:= 0]
    end),
    receive {'DOWN', RB, _, B, normal} -> ok end,
    Sums = [lists:sum([tuple_size(V) + lists:sum(tuple_to_list(V)) || {_, V} <- ets:tab2list(X)]) || X <- [T, O]],
    ets:delete(T),
    ets:delete(O),
    Sums.

%% Binaries grow by appending across the bound, and are freed by the process that got them.
binaries() ->
    Self = self(),
    Sum = lists:sum([begin
        P = spawn_link(fun() ->
            B = grown(<<>>, Step, 4200 div Step + 3, 0),
            Parts = [binary:copy(binary:part(B, 0, min(N, byte_size(B)))) || N <- [63, 64, 65, 100, 500, 1025, 4050, 4080, 4096, 4100]],
            Self ! {self(), B, Parts}
        end),
        receive {P, B, Parts} ->
            true = lists:all(fun(X) -> X =:= binary:part(B, 0, byte_size(X)) end, Parts),
            erlang:crc32([B | Parts]) rem 1000
        end
    end || Step <- [1, 3, 16, 60, 64, 100, 255, 1000, 2048, 4000]]),
    receive {'EXIT', _, killed} -> ok after 0 -> ok end,
    Sum.

grown(B, _, 0, _) -> B;
grown(B, Step, N, C) -> grown(<<B/binary, (binary:copy(<<(C rem 251)>>, Step))/binary>>, Step, N - 1, C + 1).

%% Short processes with heaps of all sizes.
short_processes() ->
    Self = self(),
    Pids = [spawn_opt(fun() -> L = lists:seq(1, N), Self ! {self(), lists:sum(L)} end, [{min_heap_size, N}]) || N <- lists:seq(10, 560, 5)],
    lists:sum([receive {P, S} -> S end || P <- Pids]).

%% Much is held, most of it is freed by others, and it is held again.
waves() ->
    [begin
        Holders = [spawn_link(fun() -> holder([{I, binary:copy(<<I>>, 65 + I)} || I <- lists:seq(1, 150)]) end) || _ <- lists:seq(1, 60)],
        Sums = [begin H ! {sum, self()}, receive {H, S} -> S end end || H <- Holders],
        [begin unlink(H), exit(H, kill) end || H <- Holders],
        [true = erlang:garbage_collect() || W rem 2 =:= 0],
        lists:usort(Sums)
    end || W <- [1, 2, 3]].

holder(L) ->
    receive {sum, From} -> From ! {self(), lists:sum([byte_size(B) + binary:last(B) || {_, B} <- L])}, holder(L) end.
