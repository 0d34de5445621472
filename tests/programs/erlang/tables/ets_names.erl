%% An unnamed table has a name but is not found by it, also not after it was found by a tid that was
%% encoded and decoded.
-module(ets_names).
-export([main/0]).

main() ->
    %% Schedulers remember what they found: all that there are, in all places.
    Names = [list_to_atom("name_" ++ integer_to_list(I)) || I <- lists:seq(1, 64)],
    Found = [once(Name, Refs) || Refs <- lists:seq(1, 47), Name <- Names],
    io:format("~p wrong of ~p~n", [lists:sum(Found), length(Found)]),
    T = ets:new(plain, []),
    U = through(T),
    io:format("~p ~p~n", [ets:insert(U, {a, 1}), ets:lookup(T, a)]),
    io:format("~p ~p~n", [ets:info(U, name), ets:whereis(plain)]),
    N = ets:new(plain, [named_table]),
    ets:insert(N, {a, 2}),
    io:format("~p ~p ~p~n", [ets:lookup(plain, a), ets:lookup(T, a), ets:lookup(U, a)]),
    ets:delete(T),
    io:format("~p ~p~n", [ets:lookup(plain, a), element(1, catch ets:lookup(U, a))]).

through(T) ->
    binary_to_term(term_to_binary(T)).

%% `Refs`: so that the numbers of tables don't go up as those of atoms do.
once(Name, Refs) ->
    T = ets:new(Name, []),
    Refs = length([make_ref() || _ <- lists:seq(1, Refs)]),
    ets:insert(T, {a, 1}),
    U = through(T),
    [{a, 1}] = ets:lookup(U, a),
    Wrong =
        case {ets:whereis(Name), catch ets:lookup(Name, a), ets:info(Name)} of
            {undefined, {'EXIT', {badarg, _}}, undefined} -> 0;
            _ -> 1
        end,
    ets:delete(T),
    Wrong.
