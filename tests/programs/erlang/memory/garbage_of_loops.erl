%% Loops produce garbage only by arithmetic and matching, without a frame, list or native that would
%% collect. After its loop each process has far less memory than the loop has allocated in all.
%% @stress @shared @fence @seconds 120
-module(garbage_of_loops).
-export([main/0]).

%% Turns of a loop with numbers of this many bytes, and what may lie there behind it.
-define(TURNS, 40000).
-define(SIZE, 800).
-define(MOST, 18000000).
%% Turns of a loop that makes floats or other small terms, and what may lie there behind it.
-define(QUICK, 60000).
-define(LITTLE, 600000).

main() ->
    process_flag(trap_exit, true),
    %% Nothing that the compiler knows anything of.
    {Large, Float} = binary_to_term(term_to_binary({(1 bsl (8 * ?SIZE)) - 12345, 0.5})),
    Loops =
        [{'bxor', ?MOST, fun() -> turn_bxor(?TURNS, Large) end},
         {'band', 2 * ?MOST, fun() -> turn_band(?TURNS, Large) end},
         {'bor', ?MOST, fun() -> turn_bor(?TURNS, Large) end},
         {'bnot', ?MOST, fun() -> turn_bnot(?TURNS, Large) end},
         {shift, 2 * ?MOST, fun() -> turn_shift(?TURNS, Large) end},
         {add, ?MOST, fun() -> turn_add(?TURNS, Large) end},
         {sub, ?MOST, fun() -> turn_sub(?TURNS, Large) end},
         {mul, 2 * ?MOST, fun() -> turn_mul(?TURNS, Large) end},
         {'rem', 2 * ?MOST, fun() -> turn_rem(?TURNS, Large, Large div 3) end},
         {sum, ?MOST, fun() -> sum(lists:duplicate(?TURNS, Large), 0) end},
         {difference, ?MOST, fun() -> difference(lists:duplicate(?TURNS, Large), 0) end},
         {total, ?MOST, fun() -> total(lists:duplicate(?TURNS, Large)) end},
         {float, ?LITTLE, fun() -> turn_float(?QUICK, Float, Float) end},
         {bytes, ?LITTLE, fun() -> bytes(binary:copy(<<"0123456789abcdef">>, ?QUICK div 4), 0) end},
         {words, ?LITTLE, fun() -> words(binary:copy(<<255:64, 0:64, -1:128>>, ?QUICK div 2), 0) end},
         {kept, 2 * ?MOST, fun() -> kept(?TURNS, Large, [a, Large], Large, Float, {Float, Large}) end}],
    [io:format("~p: ~p~n", [Name, run(Loop, Most)]) || {Name, Most, Loop} <- Loops].

%% The result by its hash, and whether what lies there is little.
run(Loop, Most) ->
    Run = fun() ->
                  R = Loop(),
                  {memory, M} = process_info(self(), memory),
                  exit({erlang:phash2(R), little(M, Most)})
          end,
    P = spawn_link(Run),
    receive {'EXIT', P, Reason} -> Reason end.

little(M, Most) when M < Most -> true;
little(M, _) -> M.

turn_bxor(0, A) -> A;
turn_bxor(N, A) -> turn_bxor(N - 1, A bxor N).

turn_band(0, A) -> A;
turn_band(N, A) -> turn_band(N - 1, A band (A bor N)).

turn_bor(0, A) -> A;
turn_bor(N, A) -> turn_bor(N - 1, A bor N).

turn_bnot(0, A) -> A;
turn_bnot(N, A) -> turn_bnot(N - 1, bnot A).

turn_shift(0, A) -> A;
turn_shift(N, A) -> turn_shift(N - 1, (A bsl 3) bsr 3).

turn_add(0, A) -> A;
turn_add(N, A) -> turn_add(N - 1, A + N).

turn_sub(0, A) -> A;
turn_sub(N, A) -> turn_sub(N - 1, N - A).

turn_mul(0, A) -> A;
turn_mul(N, A) -> turn_mul(N - 1, (A * 3) div 3).

turn_rem(0, A, _) -> A;
turn_rem(N, A, B) -> turn_rem(N - 1, A, (A - N) rem B + B div 2).

%% An addition and a call of the same function, with nothing in between.
sum([H | T], A) -> sum(T, A + H);
sum([], A) -> A.

difference([H | T], A) -> difference(T, A - H);
difference([], A) -> A.

%% An addition behind which the function returns.
total([H | T]) -> H + total(T);
total([]) -> 0.

turn_float(0, A, _) -> A;
turn_float(N, A, B) -> turn_float(N - 1, A + B, B).

%% Parts of a binary. They are made by the instruction that matches.
bytes(<<A:1/binary, B:3/binary, R/binary>>, S) -> bytes(R, S + byte_size(A) + byte_size(B));
bytes(<<>>, S) -> S.

words(<<A:64, B:64/signed, R/binary>>, S) -> words(R, (S bxor A) + B);
words(<<>>, S) -> S.

%% Registers beside those of the operations must survive.
kept(0, A, B, C, D, E) -> {A, B, C, D, E};
kept(N, A, B, C, D, E) -> kept(N - 1, A - N, B, C bxor A, D + N, E).
