%% Names: each is held by one process at most, who has registered holds it until it gives it up or
%% ends, and the end frees it.
-module(storm_names).
-export([round/0]).

-define(LATE, (storm:late(15000))).

round() ->
    Tag = integer_to_list(storm:random(1000000)),
    Names = [list_to_atom("storm_name_" ++ Tag ++ "_" ++ integer_to_list(I)) || I <- [1, 2, 3]],
    Held = atomics:new(3, []),
    storm:run([{holder, 6, fun() -> holder(Names, Held, 40) end}, {looker, 2, fun() -> looker(Names, 150) end}]),
    [storm:check(whereis(N) =:= undefined, "~p is left registered", [N]) || N <- Names],
    storm:run([{killer, 4, fun() -> killer(Names) end}, {looker, 1, fun() -> looker(Names, 100) end}, {mail, 1, fun() -> mail(Tag) end}, {ports, 1, fun() -> ports(Tag) end}]),
    [storm:check(whereis(N) =:= undefined, "~p is left registered", [N]) || N <- Names].

%% Takes a name, if it can, sees that it is the only one, and gives it up.
holder(_, _, 0) -> ok;
holder(Names, Held, N) ->
    I = 1 + storm:random(length(Names)),
    Name = lists:nth(I, Names),
    case catch register(Name, self()) of
        true ->
            storm:check(atomics:add_get(Held, I, 1) =:= 1, "~p is held by two", [Name]),
            storm:check(whereis(Name) =:= self(), "whereis(~p) is not its holder", [Name]),
            storm:check(process_info(self(), registered_name) =:= {registered_name, Name}, "process_info doesn't know ~p", [Name]),
            storm:chance(3) andalso storm:wait(1),
            Other = lists:nth(1 + I rem length(Names), Names),
            storm:check(is_badarg(catch register(Other, self())), "a process has two names", []),
            storm:check(is_badarg(catch register(Name, self())), "a name is given twice", []),
            storm:check(whereis(Name) =:= self(), "whereis(~p) is not its holder any more", [Name]),
            %% What is sent to it comes here.
            Ref = make_ref(),
            Name ! Ref,
            receive Ref -> ok after ?LATE -> storm:fault("a message to a name is lost", []) end,
            atomics:sub(Held, I, 1),
            case storm:chance(6) of
                false ->
                    storm:check((catch unregister(Name)) =:= true, "~p could not be unregistered", [Name]);
                true ->
                    %% Another process takes it away.
                    [true] = storm:all(fun(_) -> (catch unregister(Name)) =:= true end, [1])
            end,
            storm:check(whereis(Name) =/= self(), "a name is there after unregister", []),
            storm:check(process_info(self(), registered_name) =:= [], "process_info shows a name that is gone", []);
        {'EXIT', {badarg, _}} ->
            storm:chance(3) andalso storm:wait(1)
    end,
    holder(Names, Held, N - 1).

is_badarg({'EXIT', {badarg, _}}) -> true;
is_badarg(_) -> false.

looker(_, 0) -> ok;
looker(Names, N) ->
    Registered = registered(),
    storm:check(length(lists:usort(Registered)) =:= length(Registered), "registered() has a name twice", []),
    case whereis(storm:choice(Names)) of
        undefined -> ok;
        P when is_pid(P) -> _ = process_info(P, registered_name)
    end,
    storm:chance(4) andalso storm:wait(1),
    looker(Names, N - 1).

%% Gives names to processes that end: whoever hears of the end finds the name free of them.
killer(Names) ->
    [begin
         Name = storm:choice(Names),
         Why = storm:choice([kill, stop, by_itself]),
         Me = self(),
         {P, M} = spawn_monitor(fun() ->
             case catch register(Name, self()) of
                 true when Why =:= by_itself -> Me ! {self(), true};
                 true -> Me ! {self(), true}, receive stop -> ok end;
                 _ -> Me ! {self(), false}
             end
         end),
         By = case storm:chance(3) of
                  true -> catch register(Name, P);
                  false -> no
              end,
         case Why of
             kill -> storm:wait(1), exit(P, kill);
             stop -> P ! stop;
             by_itself -> ok
         end,
         receive {'DOWN', M, process, P, _} -> ok after ?LATE -> storm:fault("~p does not end: ~0p", [P, process_info(P)]) end,
         storm:check(whereis(Name) =/= P, "~p is the name of a process that has ended (~p, ~0p)", [Name, Why, By]),
         storm:check(is_badarg(catch register(Name, P)), "a process that has ended gets a name", []),
         receive {P, _} -> ok after 0 -> ok end
     end || _ <- lists:seq(1, 30)].

%% Messages to a name that wanders: each that was taken is got by somebody, once.
mail(Tag) ->
    Name = list_to_atom("storm_mail_" ++ Tag),
    Me = self(),
    Readers = [spawn_link(fun() -> reader(Name, Me, 15) end) || _ <- [1, 2, 3]],
    Writers = [begin
                   P = spawn_link(fun() -> writer(Name, W, 1, 60, []), unlink(Me) end),
                   put(P, W), P
               end || W <- [1, 2]],
    Sent = lists:append([receive {sent, W, Numbers} -> [{W, N} || N <- Numbers] after 50000 -> exit({no_writer, process_info(P)}) end || P <- Writers, W <- [get(P)], tell(P, Me)]),
    [R ! finish || R <- Readers],
    Got = lists:append([receive {got, R, L} -> L after 50000 -> exit({no_reader, process_info(R)}) end || R <- Readers]),
    A = lists:sort(Sent), B = lists:sort(Got),
    storm:check(A =:= B, "messages to a name: lost ~0p, too many ~0p", [A -- B, B -- A]).

tell(P, Me) -> P ! {report, Me}, true.

writer(_, W, N, Last, Sent) when N > Last ->
    receive {report, To} -> To ! {sent, W, Sent} end;
writer(Name, W, N, Last, Sent) ->
    storm:chance(4) andalso storm:wait(1),
    case catch Name ! {mail, W, N} of
        {mail, W, N} -> writer(Name, W, N + 1, Last, [N | Sent]);
        {'EXIT', {badarg, _}} -> writer(Name, W, N + 1, Last, Sent)
    end.

%% Holds the name from time to time; what comes late is for it all the same.
reader(Name, Me, N) ->
    process_flag(message_queue_data, storm:choice([on_heap, off_heap])),
    turns(Name, N),
    receive finish -> ok end,
    Me ! {got, self(), [{W, I} || {mail, W, I} <- storm:flush()]},
    unlink(Me).

turns(_, 0) -> ok;
turns(Name, N) ->
    case catch register(Name, self()) of
        true -> storm:wait(2), unregister(Name);
        _ -> storm:wait(2)
    end,
    turns(Name, N - 1).

%% Ports have names, too.
ports(Tag) ->
    Name = list_to_atom("storm_port_" ++ Tag),
    [begin
         {ok, S} = gen_udp:open(0, [{ip, {127, 0, 0, 1}}]),
         true = register(Name, S),
         storm:check(whereis(Name) =:= S, "the name of a port leads elsewhere", []),
         storm:check(erlang:port_info(S, registered_name) =:= {registered_name, Name}, "port_info doesn't know a name", []),
         case storm:chance(2) of
             true -> gen_udp:close(S);
             false -> unregister(Name), gen_udp:close(S)
         end,
         storm:check(whereis(Name) =:= undefined, "the name of a port that was closed is there", [])
     end || _ <- lists:seq(1, 10)].
