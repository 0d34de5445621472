%% Processes build large terms for a request and wait. What they keep stays intact while their heaps
%% shrink and grow. Bytes are matched and selected by a jump table. @stress @shared
-module(heaps_of_waiting_processes).
-export([main/0]).

%% What a server holds besides a request's garbage: nothing, little, about as much, far more; and
%% some that is off the heap.
kept(N) -> {[{I, integer_to_binary(I)} || I <- lists:seq(1, N)], binary:copy(<<"kept">>, N), maps:from_list([{I, -I} || I <- lists:seq(1, N)])}.

page(Rows) ->
    lists:flatlength([[<<"<td>">>, integer_to_binary(N), "</td>", float(N), fun() -> N end, [N | escape(<<"a&b", N:16>>)]] || N <- lists:seq(1, Rows)]).

server(Kept) ->
    receive
        {page, From, Rows} -> From ! {self(), page(Rows)}, server(Kept);
        {keep, N} -> put(more, kept(N)), server(Kept);
        {wait, From} -> receive after 1 -> From ! {self(), waited} end, server(Kept);
        {sum, From} -> From ! {self(), erlang:phash2({Kept, get(more)})}, server(Kept)
    end.

ask(P, Request) -> P ! Request, receive {P, Answer} -> Answer end.

main() ->
    Servers = [spawn_opt(fun() -> server(kept(N)) end, Opts) || N <- [0, 10, 300, 3000], Opts <- [[], [{fullsweep_after, 0}], [{min_heap_size, 5000}]]],
    [begin
         Pages = [ask(P, {page, self(), R}) || P <- Servers],
         [P ! {keep, R} || P <- Servers, R rem 3 == 0],
         Sums = [ask(P, {sum, self()}) || P <- Servers],
         Waits = [ask(P, {wait, self()}) || P <- Servers],
         io:format("~p ~p ~p ~p~n", [R, lists:usort(Pages), Sums, lists:usort(Waits)])
     end || R <- [1, 10, 200, 201, 2000, 5, 200, 1000, 2, 999]],
    %% All at once.
    [P ! {page, self(), R} || R <- [700, 30, 900], P <- Servers],
    io:format("~p~n", [[receive {P, A} -> A end || _ <- [700, 30, 900], P <- Servers]]),
    Bytes = [<<>>, <<"plain">>, <<"&">>, <<"<a b=\"c\">&amp;</a>">>, <<0, 33, 34, 35, 37, 38, 39, 59, 60, 61, 62, 63, 255>>, binary:copy(<<"x<">>, 5000), <<5:3>>, <<"ab", 5:3>>, <<"a&", 1:1>>],
    [io:format("~p~n", [erlang:phash2(catch escape(B))]) || B <- Bytes],
    io:format("~p~n", [[kind(<<B>>) || B <- lists:seq(0, 255)]]),
    io:format("~p ~p ~p~n", [catch kind(<<>>), catch kind(<<1:7>>), catch kind(no_bits)]).

escape(B) -> escape(B, 0, 0, B).

escape(Text, From, N, <<C, Rest/binary>>) when C =:= $<; C =:= $>; C =:= $&; C =:= $" ->
    [binary_part(Text, From, N), entity(C) | escape(Text, From + N + 1, 0, Rest)];
escape(Text, From, N, <<_, Rest/binary>>) -> escape(Text, From, N + 1, Rest);
escape(Text, 0, _, <<>>) -> Text;
escape(Text, From, N, <<>>) -> [binary_part(Text, From, N)];
escape(_, _, _, Bits) -> [Bits].

entity($<) -> "&lt;";
entity($>) -> "&gt;";
entity($&) -> "&amp;";
entity($") -> "&quot;".

kind(<<0, _/bits>>) -> zero;
kind(<<1, _/bits>>) -> one;
kind(<<3, _/bits>>) -> three;
kind(<<200, _/bits>>) -> far;
kind(<<B, _/bits>>) when B > 250 -> {high, B};
kind(<<_, R/bits>>) -> R.
