%% Runs one of OTP's test suites under common_test and writes a line per event, so that what
%% happened is known even where the runtime does not survive:
%%
%%     start CASE              end CASE passed|failed|skipped REASON              done
%%
%% `erl -noshell -pa DIR -run conformance main SUITE SUITE_DIR LOG_DIR RESULTS [CASE_TO_LEAVE_OUT
%% ...]` It is its own common_test hook: common_test calls what is exported from `id/1` on.
-module(conformance).
-export([main/1]).
-export([id/1, init/2, post_init_per_suite/4, pre_init_per_testcase/4, post_end_per_testcase/5, on_tc_skip/4]).

main([Suite, Dir, Logs, Results | Left]) ->
    Skips = [{skip_cases, Dir, list_to_atom(Suite), [list_to_atom(C)], "left out"} || C <- Left],
    Spec = filename:join(Logs, "suite.spec"),
    ok = file:write_file(Spec, [io_lib:format("~tp.~n", [T]) || T <- [{suites, Dir, list_to_atom(Suite)} | Skips]]),
    Result = ct:run_test([{spec, Spec}, {logdir, Logs}, {auto_compile, false}, {ct_hooks, [{?MODULE, Results}]},
                          {scale_timetraps, false}, {verbosity, 0}]),
    line(Results, io_lib:format("done ~0p", [Result])),
    halt(0).

%% Opened anew for each line: nothing is lost with the runtime, and suites that close what they did
%% not open do no harm.
line(Results, Text) ->
    ok = file:write_file(Results, [one_line(lists:flatten(Text)), $\n], [append, raw]).

one_line(Text) -> unicode:characters_to_binary([case C of $\n -> $\s; _ -> C end || C <- Text]).

id(Results) -> Results.
init(Results, _) -> {ok, Results}.

post_init_per_suite(Suite, _, Return, Results) ->
    is_list(Return) orelse line(Results, io_lib:format("suite ~p ~0P", [Suite, Return, 30])),
    {Return, Results}.

pre_init_per_testcase(_, Case, Config, Results) ->
    line(Results, ["start ", path(Case, Config)]),
    {Config, Results}.

post_end_per_testcase(_, Case, Config, Return, Results) ->
    {Verdict, Reason} = case Return of
        {skip, R} -> {"skipped", R};
        {skipped, R} -> {"skipped", R};
        {error, R} -> {"failed", R};
        {failed, R} -> {"failed", R};
        {timetrap_timeout, _} -> {"failed", Return};
        {fail, R} -> {"failed", R};
        _ -> {"passed", ''}
    end,
    {Verdict2, Reason2} = case proplists:get_value(tc_status, Config) of
        {failed, R2} -> {"failed", R2};
        {skipped, R2} -> {"skipped", R2};
        _ -> {Verdict, Reason}
    end,
    line(Results, io_lib:format("end ~ts ~s ~0P", [path(Case, Config), Verdict2, Reason2, 40])),
    {Return, Results}.

on_tc_skip(_, Case, Reason, Results) ->
    Name = case Case of {C, Group} -> [atom_to_list(C), $@, atom_to_list(Group)]; C -> atom_to_list(C) end,
    line(Results, io_lib:format("end ~ts skipped ~0P", [Name, Reason, 40])),
    Results.

%% A case and, behind `@`, the group that it runs in.
path(Case, Config) ->
    case proplists:get_value(tc_group_properties, Config) of
        [{name, Group} | _] -> [atom_to_list(Case), $@, atom_to_list(Group)];
        _ -> atom_to_list(Case)
    end.
