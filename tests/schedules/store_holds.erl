%% A store whose supervisor starts it again when the disk has refused a file.
-module(store_holds).
-behaviour(supervisor).
-export([main/0, init/1, start/0, store/0]).

-define(PATH, "store_holds.dat").

main() ->
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(?MODULE, []),
    [put(N, save(N)) || N <- [1, 2]],
    %% The disk has room again, at once or soon.
    ok = save(3, 3),
    unlink(Sup),
    exit(Sup, shutdown),
    _ = file:delete(?PATH),
    ok.

init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 3, period => 5},
          [#{id => store, start => {?MODULE, start, []}, restart => permanent}]}}.

start() ->
    Pid = proc_lib:spawn_link(?MODULE, store, []),
    register(store, Pid),
    {ok, Pid}.

store() ->
    receive
        {save, From, Ref, N} ->
            ok = file:write_file(?PATH, integer_to_binary(N)),
            From ! {Ref, ok},
            store()
    end.

save(N, Times) ->
    timer:sleep(100),
    case save(N) of
        {error, _} when Times > 1 -> save(N, Times - 1);
        Result -> Result
    end.

save(N) ->
    case whereis(store) of
        undefined ->
            {error, noproc};
        Pid ->
            Ref = monitor(process, Pid),
            Pid ! {save, self(), Ref, N},
            receive
                {Ref, ok} -> demonitor(Ref, [flush]), ok;
                {'DOWN', Ref, _, _, _} -> {error, down}
            end
    end.
