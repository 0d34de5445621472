%% A match that scans far between two steps, or starts at very many positions, delays no other
%% process, and its process can be inspected and killed. @seconds 240
-module(regex_that_scans_far).
-export([main/0]).

main() ->
    erlang:system_flag(schedulers_online, 1),
    A = binary:copy(<<"a">>, 400000),
    Far = binary:copy(<<"ab">>, 8000000),
    Text = binary:copy(<<"abc def, gh 12\n">>, 40000),
    Wide = binary:copy(<<"aä€ b"/utf8>>, 300000),
    Long = lists:flatten([["(?:", integer_to_list(N), "x|y+", integer_to_list(N), ")?"] || N <- lists:seq(1, 2000)]),
    Cases = [
        {"a*b|x", fun() -> re:run(A, "a*b|x", [{capture, none}]) end},
        {"a*?b", fun() -> re:run(A, "a*?b", [{capture, none}]) end},
        {"[ab]++c", fun() -> re:run(Far, "[ab]++c", [{capture, none}]) end},
        {"(?:a|b)*c", fun() -> re:run(Far, "(?:a|b)*c", [{capture, none}]) end},
        {"x", fun() -> re:run(Far, "x") end},
        {"caseless x", fun() -> re:run(Far, "x", [caseless]) end},
        {"look ahead", fun() -> re:run(A, "(?=a*)(?=a*)(?=a*)b") end},
        {"^.*c$ by lines", fun() -> re:run(Text, "^[a-z, ]*c$", [multiline, {capture, none}]) end},
        {"dotall", fun() -> re:run(Text, "d.*e.*z", [dotall, {capture, none}]) end},
        {"recursion", fun() -> re:run(A, "(a(?1)?b)", [{capture, none}]) end},
        {"utf", fun() -> re:run(Wide, <<"ß"/utf8>>, [unicode]) end},
        {"utf in the pattern", fun() -> re:run(Wide, "(*UTF8)\\x{100}") end},
        {"utf caseless", fun() -> re:run(Wide, <<"[äö]*ß"/utf8>>, [unicode, caseless]) end},
        {"invalid utf", fun() -> catch re:run(<<Wide/binary, 255>>, "b$", [unicode]) end},
        {"split", fun() -> length(re:split(Text, "[a-z]+,")) end},
        {"utf split", fun() -> length(re:split(Wide, <<"€ "/utf8>>, [unicode])) end},
        {"replace", fun() -> erlang:md5(re:replace(Text, "\\d+\n", "<&>", [global, {return, binary}])) end},
        {"global", fun() -> {match, L} = re:run(Text, "c d", [global]), length(L) end},
        {"global, far apart", fun() -> re:run(<<Far/binary, "x", Far/binary, "x">>, "x", [global]) end},
        {"compile", fun() -> {ok, _} = re:compile(Long), re:run("zz", Long) end}
    ],
    [io:format("~s: ~s~n", [Name, beside(F)]) || {Name, F} <- Cases],
    io:format("~p~n", [[tokens(Text, 0, 0), tokens(Wide, 0, 0)]]).

%% The words of a text, one by one: no match looks further than its word.
tokens(Text, At, N) when N < 500 ->
    case re:run(Text, <<"\\G(?:[a-zä€]+|\\d+|[^a-z])"/utf8>>, [unicode, {offset, At}, {capture, first, index}]) of
        {match, [{At, L}]} -> tokens(Text, At + L, N + 1);
        Else -> {Else, At, N}
    end;
tokens(_, At, N) -> {At, N}.

%% What a process that runs F does to one that looks at it, and how it ends if it is killed. A
%% result is only shown if it came soon.
beside(F) ->
    Me = self(),
    {Pid, M} = spawn_monitor(fun() -> Me ! {self(), F()} end),
    End = erlang:monotonic_time(millisecond) + 500,
    Gap = look(Pid, End, erlang:monotonic_time(), 0),
    exit(Pid, kill),
    Begun = erlang:monotonic_time(millisecond),
    receive {'DOWN', M, process, Pid, _} -> ok end,
    Ended = erlang:monotonic_time(millisecond) - Begun,
    receive {Pid, _} -> ok after 0 -> ok end,
    case {Gap, Ended} of
        _ when Gap < 1000, Ended < 1000 -> "no waiting";
        _ -> io_lib:format("~p ms without an answer, ended after ~p", [Gap, Ended])
    end.

look(Pid, End, Last, Longest) ->
    receive after 1 -> ok end,
    _ = erlang:process_info(Pid, [status, message_queue_len]),
    Alive = is_process_alive(Pid),
    Now = erlang:monotonic_time(),
    Gap = max(Longest, erlang:convert_time_unit(Now - Last, native, millisecond)),
    case Alive andalso erlang:convert_time_unit(Now, native, millisecond) < End of
        true -> look(Pid, End, Now, Gap);
        false -> Gap
    end.
