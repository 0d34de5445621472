%% Writes nothing at a position after the end of a file in memory, which is filled up with zeros to
%% there.
-module(ram_file_with_nothing_written_behind_its_end).
-export([main/0]).

main() ->
    Ways = [fun(F) -> file:position(F, 6), file:write(F, <<>>) end,
            fun(F) -> file:position(F, 6), file:write(F, []), file:write(F, <<"x">>) end,
            fun(F) -> file:pwrite(F, 6, []) end,
            fun(F) -> file:pwrite(F, [{5, <<>>}, {7, []}]) end,
            fun(F) -> file:pwrite(F, 3, <<>>) end,
            fun(F) -> file:pwrite(F, 1, <<>>) end,
            fun(F) -> file:pwrite(F, []) end,
            fun(F) -> file:position(F, 9), file:truncate(F) end,
            fun(F) -> file:position(F, 9), file:read(F, 1) end],
    [begin
        {ok, F} = file:open(<<"abc">>, [ram, binary | Modes]),
        R = Way(F),
        io:format("~p ~p ~p~n", [R, file:position(F, cur), element(2, ram_file:get_file(F))]),
        file:close(F)
     end || Modes <- [[read, write], [read], [write]], Way <- Ways].
