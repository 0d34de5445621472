%% An object has elements in regions that are not counted: literals of a module, and small values of
%% `persistent_term`. Each is small, but together they are a large part. @shared @stress
-module(ets_literals).
-export([main/0]).

main() ->
    Lists = [lists:seq(I, I + 9999) || I <- [1, 2, 3]],
    {ok, literals, Code} = compile:forms([{attribute, 1, module, literals}, {attribute, 1, export, [{all, 0}]},
                                          {function, 1, all, 0, [{clause, 1, [], [], [erl_parse:abstract(Lists)]}]}]),
    {module, literals} = code:load_binary(literals, "literals", Code),
    stored("literals", literals:all(), Lists),
    Small = [lists:seq(I, I + 99) || I <- lists:seq(1, 200)],
    [persistent_term:put({?MODULE, hd(L)}, L) || L <- Small],
    stored("persistent terms", [persistent_term:get({?MODULE, I}) || I <- lists:seq(1, 200)], Small),
    stored("both", literals:all() ++ [persistent_term:get({?MODULE, I}) || I <- lists:seq(1, 200)], Lists ++ Small),
    stored("lists in them", [tl(L) || L <- literals:all()], [tl(L) || L <- Lists]).

stored(What, Elements, Expected) ->
    T = ets:new(t, []),
    true = ets:insert(T, list_to_tuple([key | Elements])),
    garbage_collect(),
    [Object] = ets:lookup(T, key),
    ets:delete(T),
    garbage_collect(),
    [key | Read] = tuple_to_list(Object),
    io:format("~s: ~p~n", [What, Read =:= Expected]).
