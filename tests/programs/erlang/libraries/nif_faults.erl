%% Faults in a native library end the emulator: checks the signal and the text on standard error.
%% @nif faults @seconds 300
-module(nif_faults).
-export([main/0, child/1]).
-export([store/1, give_up/1, sent/1, ignored/1, store_dirty/1, store_later/1]).
-nifs([store/1, give_up/1, sent/1, ignored/1, store_dirty/1, store_later/1]).

store(_) -> erlang:nif_error(stub).
give_up(_) -> erlang:nif_error(stub).
sent(_) -> erlang:nif_error(stub).
ignored(_) -> erlang:nif_error(stub).
store_dirty(_) -> erlang:nif_error(stub).
store_later(_) -> erlang:nif_error(stub).

%% In an emulator of its own.
child([Name]) ->
    ok = erlang:load_nif("../ebin/faults", []),
    io:format("in ~p~n", [self()]),
    outer(list_to_atom(Name)),
    io:format("still there~n").

outer(Name) -> [inner(Name), here].

inner(Name) ->
    X = (fun(A) -> ?MODULE:Name(A) end)(17),
    {X, Name}.

main() ->
    [io:format("~p: ~p~n", [F, fault(F)]) || F <- [store, give_up, sent, ignored, store_dirty, store_later]].

fault(Name) ->
    {ok, [[Program]]} = init:get_argument(progname),
    Command = lists:concat(["ulimit -c 0; exec ", Program, " -noshell -pa ../ebin -run nif_faults child ", Name, " -run init stop"]),
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Command]}, exit_status, stderr_to_stdout, binary,
                                                     {env, [{"ERL_CRASH_DUMP", "/dev/null"}]}]),
    {Status, Text} = output(Port, <<>>),
    {Status, told(Name, Text)}.

output(Port, Text) ->
    receive
        {Port, {data, D}} -> output(Port, <<Text/binary, D/binary>>);
        {Port, {exit_status, S}} -> {S, Text}
    end.

%% Stock says nothing.
told(Name, Text) ->
    case string:find(erlang:system_info(system_version), "[purlin") of
        nomatch when Name =:= ignored -> [<<"still there">>];
        nomatch -> lists:duplicate(7, true);
        _ -> really_told(Name, re:split(Text, "[\r\n]+", [trim]))
    end.

really_told(ignored, [_ | Lines]) -> Lines;
really_told(Name, [<<"in ", Pid/binary>> | Lines]) ->
    Has = fun(Pattern) -> lists:any(fun(L) -> re:run(L, Pattern) =/= nomatch end, Lines) orelse {no, Pattern} end,
    Signal = case Name of give_up -> "SIGABRT$"; sent -> "SIGSEGV at address 0x[0-9a-f]+$"; _ -> "SIGSEGV at address 0x8$" end,
    [Has(["^A native library has failed: ", Signal]),
     Has("^  library:  \\.\\./ebin/faults\\.so$"),
     Has(["^  function: nif_faults:", atom_to_list(Name), "/1$"]),
     Has(["^  process:  ", Pid, "$"]),
     Has("^  called by nif_faults:inner/1 .*nif_faults\\.erl:25\\)$"),
     Has("^  called by nif_faults:outer/1 .*nif_faults\\.erl:22\\)$"),
     not lists:member(<<"still there">>, Lines)].
