%% `process_info(P, monitored_by)` lists the files and sockets that `P` owns, and the sockets that
%% it waits for.
-module(files_and_sockets_watch_their_owners).
-export([main/0]).

main() ->
    {ok, F} = file:open("one", [raw, write]),
    {ok, G} = file:open("two", [raw, write]),
    #{handle := One} = element(3, F),
    #{handle := Two} = element(3, G),
    names("files", [{one, One}, {two, Two}], 2),
    ok = file:close(F),
    names("one is closed", [{one, One}, {two, Two}], 1),
    ok = file:close(G),
    names("both are closed", [{one, One}, {two, Two}], 0),
    {ok, L} = socket:open(inet, stream),
    ok = socket:bind(L, #{family => inet, addr => {127, 0, 0, 1}, port => 0}),
    ok = socket:listen(L),
    {ok, To} = socket:sockname(L),
    names("listens", [{listening, L}], 1),
    {select, I} = socket:accept(L, nowait),
    names("waits to accept", [{listening, L}], 2),
    Me = self(),
    P = spawn_link(fun() ->
                           {ok, C} = socket:open(inet, stream),
                           ok = socket:connect(C, To),
                           receive {wait_at, S} -> {select, _} = socket:recv(S, 0, nowait) end,
                           Me ! waits,
                           receive stop -> ok end
                   end),
    receive {'$socket', L, select, _} -> ok end,
    {ok, A} = socket:accept(L, nowait),
    {error, _} = socket:cancel(L, I),
    {select, _} = socket:recv(A, 0, nowait),
    names("waits to receive", [{listening, L}, {accepted, A}], 3),
    P ! {wait_at, A},
    receive waits -> ok end,
    names(P, "another waits, too", [{accepted, A}], 2),
    ok = socket:setopt(A, {otp, controlling_process}, P),
    names(P, "it owns the socket, too", [{accepted, A}], 3),
    names("and I wait", [{listening, L}, {accepted, A}], 2),
    ok = socket:close(L),
    names("closed", [{listening, L}, {accepted, A}], 1).

names(What, Known, N) -> names(self(), What, Known, N).
names(P, What, Known, N) -> names(P, What, Known, N, 100).

%% Monitors come and go by signals: waits until there are so many.
names(P, What, Known, N, Tries) ->
    {monitored_by, All} = process_info(P, monitored_by),
    Refs = [R || R <- All, is_reference(R)],
    case length(Refs) of
        Other when Other =/= N, Tries > 0 ->
            timer:sleep(10),
            names(P, What, Known, N, Tries - 1);
        _ ->
            io:format("~s: ~p~n", [What, lists:sort([name(R, Known) || R <- Refs])])
    end.

name(R, [{Name, R} | _]) -> Name;
name(R, [{Name, {'$socket', R}} | _]) -> Name;
name(R, [_ | Rest]) -> name(R, Rest);
name(_, []) -> other.
