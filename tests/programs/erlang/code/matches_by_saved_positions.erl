%% Code of compilers before OTP 22, written as bytes since no assembler knows it any more, saves the
%% position of a match, restores it, and returns the bit string. Stock refuses such code from OTP 25
%% on; Purlin loads it. @stress @fence
-module(matches_by_saved_positions).
-export([main/0]).

main() ->
    logger:set_primary_config(level, none),
    Given = [<<1, 2, 3, 4>>, <<1, 2>>, <<5:3>>, <<>>, <<7:12>>, <<1, 2, 3:5>>, not_one, {<<1>>}, binary:copy(<<9>>, 200)],
    Answers = case code:load_binary(saved_positions, "saved_positions", module()) of
        {module, _} -> [saved_positions:f(B) || B <- Given ++ [binary:part(binary:copy(<<8>>, 100), 3, 70)]];
        {error, _} -> refused
    end,
    Same = Answers =:= refused orelse Answers =:= [by_hand(B) || B <- Given ++ [binary:copy(<<8>>, 70)]],
    io:format("~p~n", [Same]).

%% The first byte and the second, both once more as one number, and all of it; or what was given.
by_hand(<<A, B, _/bits>> = All) ->
    {A, B, A bsl 8 bor B, All};
by_hand(All) -> All.

module() ->
    Get = fun(Bits, Dst) -> [117, f(3), x(0), u(4), i(Bits), u(1), u(0), x(Dst)] end,
    Code = [[1, u(1)], [2, a(1), a(2), u(1)], [1, u(2)],
            [116, f(3), x(0), u(1), u(2), x(0)],
            [[64, i(0), x(K)] || K <- [1, 2, 3]],
            [122, x(0), u(0)], Get(8, 1), [122, x(0), u(1)], Get(8, 2),
            [123, x(0), u(0)], Get(16, 3), [123, x(0), u(1)],
            [130, x(0)], [16, u(5), u(4)],
            [164, x(0), 16#17, u(4), x(1), x(2), x(3), x(0)], 19,
            [1, u(3)], [130, x(0)], 19, 3],
    %% All but the code is that of a function of the same name.
    {ok, _, Bin} = compile:forms([{attribute, 1, module, saved_positions}, {attribute, 1, export, [{f, 1}]},
                                  {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [], [{var, 1, 'X'}]}]}],
                                 [no_auto_import, no_docs, {no_line_info, true}]),
    {ok, _, Chunks} = beam_lib:all_chunks(Bin),
    Head = <<16:32, 0:32, 170:32, 4:32, 1:32>>,
    New = fun("Code", _) -> iolist_to_binary([Head, Code]); ("ExpT", _) -> <<1:32, 2:32, 1:32, 2:32>>; (_, Data) -> Data end,
    {ok, Made} = beam_lib:build_module([{N, New(N, D)} || {N, D} <- Chunks, N =/= "Line", N =/= "Type"]),
    Made.

u(N) -> arg(0, N).
i(N) -> arg(1, N).
a(N) -> arg(2, N).
x(N) -> arg(3, N).
f(N) -> arg(5, N).
arg(Tag, N) when N < 16 -> N bsl 4 bor Tag;
arg(Tag, N) when N < 2048 -> [((N bsr 3) band 16#E0) bor 8 bor Tag, N band 255].
