%% Data that arrives while a receive times out, `active` changes or the owner changes stays in the
%% socket. Numbered packets go through sockets of several kinds while the receiver starts and stops
%% reading: it gets each packet once, in order. @seconds 120
-module(socket_switches_lose_nothing).
-export([main/0]).

-define(COUNT, 300).
%% So many datagrams are under way at most, so that none is dropped for want of room.
-define(WINDOW, 8).

main() ->
    one_byte(),
    Ways = [recv, recv_n, true, once, n, owner],
    Streams = [{Kind, Backend, Packet, Way}
               || Kind <- [ipv4, ipv6, local], Backend <- [inet, socket], Packet <- [raw, 4, line], Way <- Ways,
                  Way =/= recv_n orelse Packet =:= raw,
                  %% OTP's own library loses packets there.
                  Backend =:= inet orelse Packet =:= raw andalso Way =/= recv_n orelse Way =:= recv,
                  Kind =:= ipv4 orelse Backend =:= inet],
    Datagrams = [{Kind, Backend, datagram, Way}
                 || Kind <- [ipv4, ipv6, local], Backend <- [inet, socket], Way <- Ways -- [recv_n],
                    Kind =:= ipv4 orelse Backend =:= inet,
                    %% A process that gives such a socket away keeps the messages that it has.
                    Backend =:= inet orelse Way =/= owner],
    [io:format("~p: ~p~n", [What, R]) || {What, R} <- at_once(8, Streams ++ Datagrams)],
    halt(0).

%% The smallest case: nothing but one byte, which one receive wants or the next.
one_byte() ->
    {S, W} = pair(ipv4, inet, raw),
    Lost = [N || N <- lists:seq(1, 300), not one_byte(S, W, N)],
    io:format("one byte at a time: lost ~p~n", [Lost]).
one_byte(S, W, N) ->
    ok = inet:setopts(S, [{active, once}]),
    W ! {send, <<N:8>>},
    [erlang:yield() || _ <- lists:seq(1, N rem 16)],
    ok = inet:setopts(S, [{active, false}]),
    Byte = <<N:8>>,
    receive {tcp, S, Byte} -> true
    after 0 -> gen_tcp:recv(S, 0, 5000) =:= {ok, Byte}
    end.

%% Runs so many of them at once: the results in their order.
at_once(Most, All) -> at_once(Most, All, [], []).
at_once(_, [], [], Done) -> lists:reverse(Done);
at_once(Most, [What | Rest], Running, Done) when length(Running) < Most ->
    Me = self(),
    P = spawn_link(fun() -> Me ! {self(), run(What)} end),
    at_once(Most, Rest, Running ++ [{P, What}], Done);
at_once(Most, Rest, [{P, What} | Running], Done) ->
    R = receive {P, X} -> X after 30000 -> stuck end,
    at_once(Most, Rest, Running, [{What, R} | Done]).

run({Kind, Backend, datagram, Way}) -> run_with({Kind, Backend, {datagram, atomics:new(1, [])}, Way});
run(What) -> run_with(What).
run_with({Kind, Backend, Packet, Way}) ->
    {S, W} = pair(Kind, Backend, Packet),
    W ! numbers,
    R = case Way of
            owner ->
                Me = self(),
                Other = spawn_link(fun() -> owners(S, Packet, Me, Me) end),
                owner(S, Packet, Other, Me, {<<>>, 1}),
                receive {result, X} -> Other ! stop, X after 25000 -> {stuck, owner} end;
            _ -> receiver(S, W, Packet, Way, {<<>>, 1})
        end,
    W ! {stop, self()},
    receive {W, stopped} -> R after 5000 -> {sends, R} end.

%% Receives all that comes, in some way.
receiver(_, _, _, _, {wrong, _} = Wrong) -> Wrong;
receiver(_, _, _, _, {_, N}) when N > ?COUNT -> ok;
receiver(S, W, Packet, Way, State) ->
    receiver(S, W, Packet, Way, lists:foldl(fun(D, A) -> took(Packet, D, A) end, State, wanted(S, Packet, Way))).

%% Starts and stops to read: what has come.
wanted(S, Packet, Way) when Way =:= recv; Way =:= recv_n ->
    {Module, Bytes} = case {Packet, Way} of
                          {{datagram, _}, _} -> {gen_udp, 0};
                          {_, recv} -> {gen_tcp, 0};
                          {_, recv_n} -> {gen_tcp, rand:uniform(7)}
                      end,
    case Module:recv(S, Bytes, rand:uniform(3) - 1) of
        {ok, {_, _, D}} -> [D];
        {ok, D} -> [D];
        {error, timeout} -> []
    end;
wanted(S, _, Way) ->
    ok = inet:setopts(S, [{active, case Way of n -> rand:uniform(4); _ -> Way end}]),
    First = receive {tcp, S, D} -> [D];
                    {udp, S, _, _, D} -> [D]
            after rand:uniform(2) - 1 -> []
            end,
    ok = inet:setopts(S, [{active, false}]),
    First ++ messages(S).

messages(S) ->
    receive
        {tcp, S, D} -> [D | messages(S)];
        {udp, S, _, _, D} -> [D | messages(S)];
        {tcp_passive, S} -> messages(S);
        {udp_passive, S} -> messages(S)
    after 0 -> []
    end.

%% Two processes that give the socket to each other, which is active all the while. What the old
%% owner has got and not looked at goes to the new owner before the state does.
owners(S, Packet, Other, Who) ->
    receive
        {owner, State} -> owner(S, Packet, Other, Who, State), owners(S, Packet, Other, Who);
        stop -> ok
    end.

owner(_, _, _, Who, {wrong, _} = Wrong) -> Who ! {result, Wrong};
owner(_, _, _, Who, {_, N}) when N > ?COUNT -> Who ! {result, ok};
owner(S, Packet, Other, Who, State) ->
    ok = inet:setopts(S, [{active, true}]),
    Got = receive {tcp, S, D} -> [D];
                  {udp, S, _, _, D} -> [D]
          after 1 -> []
          end,
    After = lists:foldl(fun(X, A) -> took(Packet, X, A) end, State, Got),
    ok = (module(Packet)):controlling_process(S, Other),
    Other ! {owner, After},
    case self() of
        Who ->
            receive
                {owner, Next} -> owner(S, Packet, Other, Who, Next);
                {result, _} = R -> self() ! R
            after 20000 -> self() ! {result, stuck} end;
        _ -> ok
    end.

module({datagram, _}) -> gen_udp;
module(_) -> gen_tcp.

%% Takes the numbers out of what has come.
took(_, _, {wrong, _} = Wrong) -> Wrong;
took(_, <<>>, State) -> State;
took(raw, D, {Held, N}) ->
    numbers(<<Held/binary, D/binary>>, N);
took(line, D, {<<>>, N}) ->
    case integer_to_binary(N) of
        B when D =:= <<B/binary, $\n>> -> {<<>>, N + 1};
        _ -> {wrong, {N, D}}
    end;
took({datagram, Taken}, D, State) ->
    Next = took(4, D, State),
    atomics:add(Taken, 1, 1),
    Next;
took(4, D, {<<>>, N}) ->
    case D of
        <<N:32>> -> {<<>>, N + 1};
        _ -> {wrong, {N, D}}
    end.
numbers(<<N:32, Rest/binary>>, N) -> numbers(Rest, N + 1);
numbers(<<Other:32, _/binary>>, N) -> {wrong, {N, Other}};
numbers(Rest, N) -> {Rest, N}.

%% A connected socket, passive, and a process that sends to it.
pair(Kind, Backend, {datagram, _} = Packet) ->
    Me = self(),
    {To, R} = receiver_of_datagrams(Kind, Backend),
    W = spawn_link(fun() ->
                           {ok, C} = gen_udp:open(0, [binary, {active, false} | from(Kind)]),
                           Me ! {self(), ready},
                           writer(fun(D) -> ok = send_to(C, To, D) end, Packet)
                   end),
    receive {W, ready} -> ok end,
    {R, W};
pair(Kind, Backend, Packet) ->
    Me = self(),
    {Address, Options} = address(Kind),
    How = case Packet of raw -> []; _ -> [{packet, Packet}] end,
    {ok, L} = gen_tcp:listen(0, backend(Backend) ++ [binary, {active, false}] ++ How ++ Options),
    {To, Port} = case Kind of
                     local -> {ok, Name} = inet:sockname(L), {Name, 0};
                     _ -> {ok, {_, P}} = inet:sockname(L), {Address, P}
                 end,
    W = spawn_link(fun() ->
                           {ok, C} = gen_tcp:connect(To, Port, [binary, {active, false}] ++ delay(Kind) ++ How ++ family(Kind)),
                           Me ! {self(), ready},
                           writer(fun(D) -> ok = gen_tcp:send(C, D) end, Packet)
                   end),
    {ok, S} = gen_tcp:accept(L),
    receive {W, ready} -> ok end,
    {S, W}.

receiver_of_datagrams(Kind, Backend) ->
    {Address, Options} = address(Kind),
    {ok, R} = gen_udp:open(0, backend(Backend) ++ [binary, {active, false} | Options]),
    {ok, Name} = inet:sockname(R),
    case Kind of
        local -> {Name, R};
        _ -> {{Address, element(2, Name)}, R}
    end.

send_to(C, {local, _} = To, D) -> gen_udp:send(C, To, 0, D);
send_to(C, {A, P}, D) -> gen_udp:send(C, A, P, D).

backend(inet) -> [];
backend(socket) -> [{inet_backend, socket}].
delay(local) -> [];
delay(_) -> [{nodelay, true}].
family(ipv4) -> [];
family(ipv6) -> [inet6];
family(local) -> [local].
from(local) -> [local];
from(Kind) -> {_, Options} = address(Kind), Options.
address(ipv4) -> {{127, 0, 0, 1}, [{ip, {127, 0, 0, 1}}]};
address(ipv6) -> {{0, 0, 0, 0, 0, 0, 0, 1}, [inet6, {ip, {0, 0, 0, 0, 0, 0, 0, 1}}]};
address(local) -> {none, [local, {ifaddr, {local, name()}}]}.
name() -> "s" ++ integer_to_list(erlang:unique_integer([positive])).

writer(Send, Packet) ->
    receive
        {send, D} -> Send(D), writer(Send, Packet);
        numbers -> numbered(Send, Packet, 1), writer(Send, Packet);
        {stop, From} -> From ! {self(), stopped}
    end.
numbered(_, _, N) when N > ?COUNT -> ok;
numbered(Send, {datagram, Taken} = Packet, N) ->
    case N - atomics:get(Taken, 1) > ?WINDOW of
        true -> timer:sleep(1), numbered(Send, Packet, N);
        false -> number(Send, Packet, N)
    end;
numbered(Send, Packet, N) -> number(Send, Packet, N).
number(Send, Packet, N) ->
    Send(case Packet of line -> [integer_to_list(N), $\n]; _ -> <<N:32>> end),
    case N rem 3 of
        0 -> timer:sleep(1);
        1 -> erlang:yield();
        2 -> ok
    end,
    numbered(Send, Packet, N + 1).
