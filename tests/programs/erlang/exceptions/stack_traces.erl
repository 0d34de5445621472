%% Checks stack traces of an instruction that fails after a call in the same function, and the
%% segment that is reported for a failed binary construction with several segments.
-module(stack_traces).
-export([main/0]).

main() ->
    F = fun G([X | T]) -> X - G(T); G([]) -> none end,
    [show(fun() -> F(L) end) || L <- [[1], [1, 2], [1, 2, 3, 4]]],
    [show(fun() -> minus(L) end) || L <- [[1], [1, 2], [1, 2, 3, 4]]],
    [show(fun() -> turns(L) end) || L <- [[1], [1, 2], [1, 2, 3, 4]]],
    %% What only raises is no frame of its own, however it was called.
    [show(fun() -> raised(How, M, Args) end) || How <- [apply, 'fun', last, name], {M, Args} <- [{throw, [x]}, {error, [x]}, {error, [x, [y]]}, {exit, [x]}, {atom_to_list, [1]}, {raise, [error, x, []]}]],
    [show(fun() -> after_call(K, L) end) || K <- lists:seq(1, 14), L <- [[1], [1, 2], [1, 2, 3]]],
    Wrong = [a, 1.5, [], -1, 16#D800, 16#110000, 1 bsl 70],
    [show(fun() -> built(K, A, B) end) || K <- lists:seq(1, 8), A <- Wrong, B <- Wrong].

raised(apply, F, Args) -> [apply(erlang, F, Args)];
raised('fun', F, Args) -> G = erlang:make_fun(erlang, F, length(Args)), [apply(G, Args)];
raised(name, F, [A]) -> [erlang:F(A)];
raised(_, F, Args) -> apply(erlang, F, Args).

%% What fails right behind a call of the same function.
after_call(_, []) -> 1;
after_call(1, [_ | T]) -> error(after_call(1, T));
after_call(2, [_ | T]) -> [atom_to_list(after_call(2, T))];
after_call(3, [_ | T]) -> hd(after_call(3, T));
after_call(4, [_ | T]) -> [throw(after_call(4, T))];
after_call(5, [_ | T]) -> 2 = after_call(5, T);
after_call(6, [_ | T]) -> case after_call(6, T) of 2 -> 3 end;
after_call(7, [_ | T]) -> [ets:first(after_call(7, T))];
after_call(8, [_ | T]) -> (after_call(8, T))();
after_call(9, [_ | T]) -> [binary_to_term(after_call(9, T))];
after_call(10, [_ | T]) -> [nowhere:to_be_found(after_call(10, T))];
after_call(11, [_ | T]) -> [other(after_call(11, T))];
after_call(12, [_ | T]) -> [apply(erlang, binary_to_list, [after_call(12, T)])];
after_call(13, [_ | T]) -> F = fun erlang:hd/1, [F(after_call(13, T))];
after_call(14, [_ | T]) -> <<(after_call(14, T))/binary>>.

other([]) -> none.

minus([X | T]) -> X - minus(T);
minus([]) -> none.

turns([X | T]) -> hd(back(T)) + X;
turns([]) -> [].
back([X | T]) -> element(1, turns(T)) * X;
back([]) -> none.

built(1, A, B) -> <<A, B/utf32>>;
built(2, A, B) -> <<A/utf32, B/binary>>;
built(3, A, B) -> <<A/utf8, B/utf32>>;
built(4, A, B) -> <<A/utf16, B/utf8>>;
built(5, A, B) -> <<A/float, B/utf32>>;
built(6, A, B) -> <<A/utf32, 1:B>>;
built(7, A, B) -> <<1:A, B/utf32>>;
built(8, A, B) -> <<"text", A/binary, B/utf32, A/utf32>>.

show(F) ->
    try F() of
        V -> io:format("~p~n", [V])
    catch
        C:R:S -> io:format("~p ~p~n", [C, R]), [io:format("  ~p~n", [{M, N, if is_list(A) -> length(A); true -> A end, lists:keydelete(file, 1, I)}]) || {M, N, A, I} <- S, M =:= ?MODULE orelse M =:= erlang]
    end.
