%% Lays out the files of a program of one file, or of an escript, as an installation of OTP has them: main([Kind, Input, Out, Name, Apps]).
%% Kind is erl, beams (a folder), exs or escript. What the program's modules name decides which applications come along, and what those
%% say they need. Prints the arguments of the emulator, one a line.
-module(stage).
-export([main/1]).

main([Kind, Input, Out, Name, Apps]) ->
    {Modules, Main, Flags} = program(Kind, Input, Out, Name),
    Owners = owners(),
    Named = lists:usort(lists:flatmap(fun named/1, Modules) ++ words(Kind, Input)),
    Extra = [list_to_atom(A) || A <- string:lexemes(Apps, ",")],
    Own = [A || A <- Extra, not is_map_key(A, maps:get(apps, Owners))],
    Own =:= [] orelse stop("there is no application ~ts", [hd(Own)]),
    Found = [maps:get(M, Owners) || M <- Named, is_map_key(M, Owners)],
    Base = [kernel, stdlib] ++ [elixir || lists:any(fun is_elixir/1, [M || {M, _} <- Modules]) orelse Kind =:= "exs"]
        ++ [A || Kind =:= "exs", A <- [compiler, logger]],
    All = closure(lists:usort(Base ++ Extra ++ Found), maps:get(apps, Owners), #{}),
    Taken = [App || App <- maps:keys(All), not filelib:is_dir(filename:join([Out, "lib", App]))],
    [copy(maps:get(App, All), Out) || App <- lists:sort(Taken)],
    boot(Out),
    Start = case Main of
        none -> [];
        _ -> main_module(Main, Kind, lists:any(fun({M, _}) -> is_elixir(M) end, Modules) andalso Kind =/= "escript", Out), ["-s", "purlin_main"]
    end,
    [io:format("~ts~n", [W]) || W <- Flags ++ Start],
    ok.

stop(Format, Args) ->
    io:format(standard_error, "purlin: " ++ Format ++ "~n", Args),
    halt(1).

%% The module that the bytes of a file are.
name(Code, File) ->
    case beam_lib:chunks(Code, []) of
        {ok, {Module, _}} -> Module;
        {error, beam_lib, _} -> stop("~ts is no compiled module, or damaged", [File])
    end.

is_elixir(Module) -> lists:prefix("Elixir.", atom_to_list(Module)).

write(File, Bytes) ->
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Bytes).

%% The program's own modules, written to their place, what is called, and flags.
program("erl", File, Out, Name) ->
    case compile:file(File, [binary, deterministic, report]) of
        {ok, Module, Code} ->
            own([{Module, Code}], Out, Name),
            {[{Module, Code}], entry([{Module, Code}], File), []};
        error -> halt(1)
    end;
program("beams", Dir, Out, Name) ->
    Modules = [begin {ok, B} = file:read_file(F), {name(B, F), B} end
               || F <- lists:sort(filelib:wildcard(filename:join(Dir, "*.beam")))],
    own(Modules, Out, Name),
    {Modules, entry(Modules, Dir), []};
program("exs", File, Out, Name) ->
    {ok, Text} = file:read_file(File),
    write(filename:join([Out, "lib", Name, "priv", filename:basename(File)]), Text),
    {[], none, []};
program("escript", File, Out, Name) ->
    Sections = case escript:extract(File, [compile_source]) of
        {ok, Parts} -> Parts;
        {error, _} -> stop("~ts is no escript that can be read", [File])
    end,
    Flags = case proplists:get_value(emu_args, Sections) of
        Text when is_list(Text) -> string:lexemes(Text, " ");
        _ -> []
    end,
    {Told, Rest} = main_of(Flags, []),
    Base = list_to_atom(filename:basename(File, ".escript")),
    case Sections of
        _ when Sections =:= [] -> stop("~ts is no escript", [File]);
        _ -> ok
    end,
    case lists:last(Sections) of
        {archive, Zip} ->
            {ok, Files} = zip:unzip(Zip, [memory]),
            [write(filename:join([Out, "lib", in_archive(F)]), B) || {F, B} <- Files, lists:suffix("/", F) =:= false],
            Modules = [{name(B, F), B}
                       || {F, B} <- Files, filename:extension(F) =:= ".beam"],
            Main = case Told of none -> Base; _ -> Told end,
            {Modules, {Main, main, 1}, Rest};
        {source, Fresh} when is_binary(Fresh) ->
            {Module, Code} = lasting(Fresh, File),
            own([{Module, Code}], Out, Name),
            {[{Module, Code}], {Module, main, 1}, Rest};
        {beam, Code} ->
            Module = name(Code, File),
            own([{Module, Code}], Out, Name),
            {[{Module, Code}], {Module, main, 1}, Rest};
        _ -> stop("~ts holds no code", [File])
    end.

%% A script without a name of its own gets one that no other run of the compiler gives it. It is compiled once more under one that lasts,
%% so that the same script makes the same executable.
lasting(Code, File) ->
    Module = name(Code, File),
    case beam_lib:chunks(Code, [abstract_code]) of
        {ok, {Module, [{abstract_code, {raw_abstract_v1, Forms}}]}} ->
            Name = hd(string:split(atom_to_list(Module), "__escript__")),
            New = case list_to_atom(Name) of Module -> Module; _ -> list_to_atom(Name ++ "__escript") end,
            {ok, New, Same} = compile:forms(renamed(Forms, Module, New), [deterministic]),
            {New, Same};
        _ -> {Module, Code}
    end.

%% The macros MODULE and MODULE_STRING have put the name anywhere.
renamed(Old, Old, New) -> New;
renamed(Tuple, Old, New) when is_tuple(Tuple) -> list_to_tuple(renamed(tuple_to_list(Tuple), Old, New));
renamed([Head | Tail] = List, Old, New) ->
    case atom_to_list(Old) of
        List -> atom_to_list(New);
        _ -> [renamed(Head, Old, New) | renamed(Tail, Old, New)]
    end;
renamed(Other, _, _) -> Other.

%% Modules at the top of an archive have no folder.
in_archive(File) ->
    case filename:split(File) of
        [Only] -> filename:join(["escript", "ebin", Only]);
        _ -> File
    end.

main_of(["-escript", "main", Main | Rest], Before) -> {list_to_atom(Main), lists:reverse(Before, Rest)};
main_of([Word | Rest], Before) -> main_of(Rest, [Word | Before]);
main_of([], Before) -> {none, lists:reverse(Before)}.

own(Modules, Out, Name) ->
    [write(filename:join([Out, "lib", Name, "ebin", atom_to_list(M) ++ ".beam"]), B) || {M, B} <- Modules],
    ok.

entry(Modules, File) ->
    Exports = [{M, E} || {M, B} <- Modules, {ok, {_, [{exports, E}]}} <- [beam_lib:chunks(B, [exports])]],
    Found = [{M, F, A} || {F, A} <- [{main, 1}, {main, 0}, {start, 0}], {M, E} <- Exports, lists:member({F, A}, E)],
    case Found of
        [First | _] -> First;
        [] -> stop("~ts exports none of main/1, main/0, start/0", [File])
    end.

%% Whatever a module names may be a module.
named({_, Code}) ->
    {ok, {_, [{atoms, Atoms}]}} = beam_lib:chunks(Code, [atoms]),
    [A || {_, A} <- Atoms].

%% A script's text has them as Elixir writes them.
words("exs", File) ->
    {ok, Text} = file:read_file(File),
    Find = fun(Pattern) ->
        case re:run(Text, Pattern, [global, {capture, [1], list}, unicode]) of
            {match, All} -> [W || [W] <- All];
            nomatch -> []
        end
    end,
    [list_to_atom(W) || W <- Find(":([a-z][a-zA-Z0-9_]*)")] ++
        [list_to_atom("Elixir." ++ W) || W <- Find("\\b([A-Z][A-Za-z0-9_.]*[A-Za-z0-9_])")];
words(_, _) -> [].

%% Which application has a module, and under `apps` where each lies and what it needs.
owners() ->
    Dirs = [D || D <- code:get_path(), filename:basename(D) =:= "ebin"],
    lists:foldr(fun(Dir, Map) ->
        case [F || F <- filelib:wildcard(filename:join(Dir, "*.app"))] of
            [File | _] ->
                case file:consult(File) of
                    {ok, [{application, App, Keys}]} ->
                        Apps = maps:get(apps, Map),
                        Needs = proplists:get_value(applications, Keys, []) ++ proplists:get_value(included_applications, Keys, []),
                        Optional = proplists:get_value(optional_applications, Keys, []),
                        With = maps:from_list([{M, App} || M <- proplists:get_value(modules, Keys, [])]),
                        (maps:merge(Map, With))#{apps := Apps#{App => {filename:dirname(Dir), Needs -- Optional}}};
                    _ -> Map
                end;
            [] -> Map
        end
    end, #{apps => #{}}, Dirs).

closure([App | Rest], Apps, Done) when is_map_key(App, Done) -> closure(Rest, Apps, Done);
closure([App | Rest], Apps, Done) ->
    case Apps of
        #{App := {Dir, Needs}} -> closure(Needs ++ Rest, Apps, Done#{App => Dir});
        _ -> closure(Rest, Apps, Done)
    end;
closure([], _, Done) -> Done.

%% An application without what only compilers and debuggers read.
copy(Dir, Out) ->
    To = filename:join([Out, "lib", filename:basename(Dir)]),
    [begin
         {ok, Bytes} = file:read_file(F),
         Small = case filename:extension(F) of
             ".beam" -> stripped(Bytes);
             _ -> Bytes
         end,
         write(filename:join([To, "ebin", filename:basename(F)]), Small)
     end || F <- filelib:wildcard(filename:join([Dir, "ebin", "*.{beam,app}"]))],
    Priv = filename:join(Dir, "priv"),
    [begin
         {ok, Bytes} = file:read_file(F),
         New = filename:join([To, "priv", string:prefix(F, Priv ++ "/")]),
         write(New, Bytes),
         {ok, Info} = file:read_file_info(F),
         ok = file:change_mode(New, element(8, Info))
     end || F <- filelib:wildcard(filename:join(Priv, "**")), filelib:is_regular(F), is_of_use(F)],
    ok.

is_of_use(File) -> not lists:member(filename:extension(File), [".o", ".a", ".mk"]).

stripped(Bytes) ->
    case beam_lib:strip(Bytes) of
        {ok, {_, Small}} -> plain(Small);
        _ -> Bytes
    end.

%% What `beam_lib:strip/1` has compressed is mapped as it is.
plain(<<16#1f, 16#8b, _/binary>> = Packed) -> zlib:gunzip(Packed);
plain(Bytes) -> Bytes.

%% The installation's boot script, of which modules that few programs need are loaded when they are called.
boot(Out) ->
    {ok, Bytes} = file:read_file(filename:join([code:root_dir(), "bin", "no_dot_erlang.boot"])),
    {script, Name, Steps} = binary_to_term(Bytes),
    Late = [erl_eval, erl_lint, erl_parse, erl_scan, epp, beam_lib, c, erl_anno, erl_features, erl_internal, otp_internal, edlin,
            edlin_expand, io_lib_pretty, rand, peer, dets, dets_utils, dets_v9, user_drv, group, erl_pp, gb_trees, gb_sets],
    Fewer = [case S of {primLoad, Ms} -> {primLoad, Ms -- Late}; _ -> S end || S <- Steps],
    write(filename:join([Out, "bin", "purlin.boot"]), term_to_binary({script, Name, Fewer}, [{minor_version, 2}])).

%% What starts the program: its end is the end of the emulator.
main_module({Module, Function, Arity}, Kind, Binaries, Out) ->
    {Status, Prefix} = case Kind of "escript" -> {127, "escript: exception"}; _ -> {1, "**"} end,
    Args = case {Arity, Binaries} of
        {0, _} -> "";
        {1, false} -> "Args";
        {1, true} -> "[unicode:characters_to_binary(A) || A <- Args]"
    end,
    Before = case is_elixir(Module) orelse Binaries of
        true -> "{ok, _} = application:ensure_all_started(elixir), "
                "'Elixir.System':argv([unicode:characters_to_binary(A) || A <- Args]), ";
        false -> ""
    end,
    Text = lists:flatten(io_lib:format(
        "-module(purlin_main).~n"
        "-export([start/0]).~n"
        "start() -> spawn(fun() -> run(init:get_plain_arguments()) end).~n"
        "run(Args) ->~n"
        "    _ = Args,~n"
        "    try ~s~p:~p(~s) of~n"
        "        _ -> halt(0)~n"
        "    catch Class:Reason:Stack ->~n"
        "        Trim = fun(M, _, _) -> M =:= purlin_main end,~n"
        "        io:format(standard_error, \"~s ~~ts~~n\", [erl_error:format_exception(Class, Reason, Stack, #{stack_trim_fun => Trim})]),~n"
        "        halt(~w)~n"
        "    end.~n", [Before, Module, Function, Args, Prefix, Status])),
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, purlin_main, Code} = compile:forms(forms(Tokens, []), [deterministic]),
    write(filename:join([Out, "lib", "purlin_main", "ebin", "purlin_main.beam"]), Code).

forms(Tokens, Forms) ->
    case lists:splitwith(fun(T) -> element(1, T) =/= dot end, Tokens) of
        {Form, [Dot | Rest]} ->
            {ok, Parsed} = erl_parse:parse_form(Form ++ [Dot]),
            forms(Rest, [Parsed | Forms]);
        {[], []} -> lists:reverse(Forms)
    end.
