%% Pauses and restarts call counters: where they run, where they do not, and where there are
%% breakpoints of other kinds.
-module(trace_counters).
-export([main/0, f/1]).

f(X) -> X.

main() ->
    Before = [[], [{true, [local]}], [{true, [global]}], [{true, [meta]}], [{true, [call_count]}], [{true, [call_time]}],
              [{true, [local]}, {true, [global]}], [{true, [local]}, {false, [local]}], [{true, [global]}, {true, [local]}],
              [{true, [call_count]}, {pause, [call_count]}], [{true, [meta]}, {false, [meta]}],
              [{true, [local]}, {true, [meta]}, {false, [local]}]],
    Last = [{V, Fs} || V <- [restart, pause],
                       Fs <- [[call_count], [call_time], [local, call_count], [call_count, call_time], [meta, call_count]]],
    [io:format("~0p then ~0p: ~0p~n", [B, L, after_all(B ++ [L])]) || B <- Before, L <- Last],
    [io:format("~0p: ~0p~n", [K, erlang:seq_trace_info(K)]) || K <- [spawn, send, label]],
    ok.

after_all(Calls) ->
    MFA = {?MODULE, f, 1},
    [erlang:trace_pattern(MFA, false, [F]) || F <- [local, meta, call_count, call_time, global]],
    Ns = [erlang:trace_pattern(MFA, V, Fs) || {V, Fs} <- Calls],
    [1, 2] = [?MODULE:f(X) || X <- [1, 2]],
    {Ns, [erlang:trace_info(MFA, K) || K <- [traced, call_count, call_time]]}.
