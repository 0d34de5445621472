%% Checks the order of small-map keys that are preset atoms: by name up to OTP 25, then in the order
%% in which the emulator of that release makes them. All of them exist before libraries are loaded;
%% the order of later atoms varies between starts. @stress
-module(key_order_of_known_atoms).
-export([main/0]).

words() ->
    [id, name, type, value, user, data, count, total, list, map, size, path, host, port, address, date, time, second, first,
     last, next, prev, up, down, min, max, status, state, error, reason, ok, message, label, level, index, position, offset,
     length, start, stop, parent, node, tag, options, opts, config, version, description, active, enabled, visible, module,
     function, arity, file, line, true, false, undefined, nil, pid, timeout, info, warning, debug, scheme, code, exit, kill,
     normal, shutdown, restart, binary, integer, float, atom, string, record, table, read, write, open, close, mode, owner,
     local, remote, input, output, format, args, arg, env, command, request, session, domain, family, protocol, flags, events,
     report, msg, meta, gl, process, memory, reductions, messages, links, monitors, dictionary, priority, heap_size, 'DOWN',
     'EXIT', '_', '*', '+', '-'].

order(W) -> lists:sort(fun(A, B) -> A =:= B orelse hd(maps:keys(maps:from_list([{B, 2}, {A, 1}]))) =:= A end, W).

main() ->
    W = lists:usort(words()),
    io:format("~p~n", [order(W)]),
    io:format("~p~n", [#{zq_made_first => 0, name => 1, port => 2, type => 3, value => 4, error => 5, reason => 6}]),
    io:format("~0p~n", [maps:from_list([{K, 1} || K <- lists:sublist(W, 32)])]),
    io:format("~0p~n", [(maps:from_list([{K, 1} || K <- lists:nthtail(length(W) - 20, W)]))#{zq_made_here => 1, ok => 2, timeout => 3}]).
