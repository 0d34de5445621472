%% Loading a module frees what it decodes and does not keep: binaries in attributes, and the
%% literals of a file that has a damaged one. @stress @shared @fence @seconds 120
-module(loading_keeps_no_garbage).
-export([main/0]).

-define(TIMES, 50).

main() ->
    logger:set_primary_config(level, none),
    Tuple = {tuple, 1, [{atom, 1, a}, {integer, 1, 1}]},
    Function = {function, 1, f, 0, [{clause, 1, [], [], [Tuple]}]},
    {ok, loaded, Plain} = compile:forms([{attribute, 1, module, loaded}, {attribute, 1, export, [{f, 0}]}, Function], []),
    {ok, _, Chunks} = beam_lib:all_chunks(Plain),
    With = fun(Name, Data) ->
                   {ok, Built} = beam_lib:build_module(lists:keystore(Name, 1, Chunks, {Name, Data})),
                   Built
           end,
    Large = binary:copy(<<"0123456789">>, 100000),
    {Results, Grown} = often(With("Attr", term_to_binary([{mydata, [Large]}]))),
    io:format("attributes: ~p ~p~n", [Results, Grown]),
    Whole = term_to_binary([Large]),
    Literals = <<2:32, (byte_size(Whole)):32, Whole/binary, 2:32, 131, 255>>,
    io:format("damaged: ~p~n", [often(With("LitT", <<(byte_size(Literals)):32, (zlib:compress(Literals))/binary>>))]).

%% Loads it often: the different results, and whether much more is held by binaries afterwards.
often(Binary) ->
    erlang:garbage_collect(),
    Before = erlang:memory(binary),
    Results = [begin
                   R = code:load_binary(loaded, "loaded.beam", Binary),
                   code:purge(loaded),
                   R
               end || _ <- lists:seq(1, ?TIMES)],
    code:delete(loaded),
    code:purge(loaded),
    erlang:garbage_collect(),
    case erlang:memory(binary) - Before of
        More when More < ?TIMES * 500000 -> {lists:usort(Results), little};
        More -> {lists:usort(Results), More}
    end.
