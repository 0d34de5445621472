%% A process that asks about itself does not see the signals that it did not send itself: monitors
%% by its new sockets, the end of a monitor that found nothing, and of its newest monitor of a
%% process that has ended. The next receive or yield changes that, and a message to itself, but for
%% the last.
-module(own_signals_in_transit).
-export([main/0]).

main() ->
    process_flag(trap_exit, true),
    Dead = spawn(fun() -> ok end),
    Port = open_port({spawn_driver, "ram_file_drv"}, []),
    port_close(Port),
    flush(),
    Before = watching(),
    Show = fun(What, F) ->
        erlang:yield(),
        R = [F(I) || I <- [1, 2, 3]],
        flush(),
        io:format("~s: ~w, ~w~n", [What, R, watching() - Before])
    end,
    Show("sockets", fun(_) -> socket(), watching() - Before end),
    Show("sockets, no receive", fun(_) -> socket(), receive after 0 -> ok end, watching() - Before end),
    Show("sockets, a receive", fun(_) -> socket(), receive nothing -> ok after 0 -> ok end, watching() - Before end),
    Show("sockets, yields", fun(_) -> socket(), erlang:yield(), watching() - Before end),
    Show("sockets, messages", fun(_) -> socket(), self() ! x, watching() - Before end),
    Show("sockets, another asked", fun(_) -> socket(), process_info(whereis(init), links), watching() - Before end),
    Show("closed sockets", fun(_) -> socket:close(socket()), watching() - Before end),
    Show("ended", fun(_) -> monitor(process, Dead), {monitors(), queued()} end),
    Show("ended, queue first", fun(_) -> monitor(process, Dead), {queued(), monitors()} end),
    Show("ended, then a message", fun(_) -> monitor(process, Dead), self() ! x, {queued(), monitors()} end),
    Show("a message, then ended", fun(_) -> self() ! x, monitor(process, Dead), {queued(), monitors()} end),
    Show("names", fun(_) -> monitor(process, unknown), {queued(), monitors()} end),
    Show("names, then demonitored", fun(_) -> demonitor(monitor(process, unknown)), {queued(), monitors()} end),
    Show("ports", fun(_) -> monitor(port, Port), {length(monitors()), queued()} end),
    Show("exit signals", fun(_) -> exit(self(), x), {queued(), length(element(2, process_info(self(), messages)))} end),
    Show("several items", fun(_) -> monitor(process, Dead), process_info(self(), [message_queue_len, trap_exit]) end),
    Show("many names", fun(_) -> [monitor(process, unknown) || _ <- lists:seq(1, 30)], queued() end),
    Show("many ended", fun(_) -> [monitor(process, Dead) || _ <- lists:seq(1, 30)], {queued(), length(monitors())} end),
    ok.

socket() ->
    {ok, S} = socket:open(inet, stream, tcp),
    S.

watching() -> length(element(2, process_info(self(), monitored_by))).
queued() -> element(2, process_info(self(), message_queue_len)).
monitors() ->
    {monitors, L} = process_info(self(), monitors),
    [case M of {process, {N, _}} -> N; {T, _} -> T end || M <- L].

flush() -> receive _ -> flush() after 20 -> ok end.
