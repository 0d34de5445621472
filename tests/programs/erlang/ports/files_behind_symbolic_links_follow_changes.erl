%% Looks several times at files behind symbolic links while the links change, and finds their
%% current targets.
-module(files_behind_symbolic_links_follow_changes).
-export([main/0]).

main() ->
    {ok, Cwd} = file:get_cwd(),
    D = filename:join(Cwd, "links"),
    ok = file:make_dir(D),
    [paths(D, P) || P <- [D, "links", "./links/../links", D ++ "//"]],
    os:cmd("rm -rf links").

paths(D, P) ->
    os:cmd("rm -rf '" ++ D ++ "'"),
    [ok = filelib:ensure_dir(filename:join([D, X, "sub", "f"])) || X <- ["one", "two"]],
    [ok = file:write_file(filename:join([D, X, "sub", "f"]), T) || {X, T} <- [{"one", "1"}, {"two", "22"}]],
    ok = file:write_file(filename:join([D, "two", "only"]), "2"),
    Link = fun(To, Name) -> file:delete(filename:join(D, Name)), ok = file:make_symlink(To, filename:join(D, Name)) end,
    Link("one", "a"),
    Link("a", "b"),
    Link("../links/b/sub", "c"),
    Link(filename:join(D, "c"), "d"),
    Link("d/f", "e"),
    Link("nowhere", "dangling"),
    Link("loop2", "loop1"),
    Link("loop1", "loop2"),
    Look = fun(When) ->
                   R = [[look(P ++ "/" ++ N) || N <- names()] || _ <- lists:seq(1, 4)],
                   io:format("~ts: ~w~n~p~n", [When, length(lists:usort(R)), hd(R)])
           end,
    Look("as made"),
    Link("two", "a"),
    Look("another target"),
    %% In one step.
    Link("one", "new"),
    ok = file:rename(filename:join(D, "new"), filename:join(D, "a")),
    Look("renamed"),
    [begin Link(X, "a"), {ok, T} = file:read_file(P ++ "/d/f"), {ok, _} = file:read_file_info(P ++ "/b/sub/f"), {T, X} end || _ <- lists:seq(1, 50), X <- ["one", "two"]]
        =:= [{T, X} || _ <- lists:seq(1, 50), {X, T} <- [{"one", <<"1">>}, {"two", <<"22">>}]] orelse io:format("old targets~n"),
    file:delete(filename:join(D, "a")),
    Look("gone"),
    ok = filelib:ensure_dir(filename:join([D, "a", "sub", "f"])),
    ok = file:write_file(filename:join([D, "a", "sub", "f"]), "333"),
    Look("a directory"),
    os:cmd("rm -rf '" ++ D ++ "/a'"),
    ok = file:write_file(filename:join(D, "a"), "4444"),
    Look("a file").

names() -> ["a", "a/", "a/sub/f", "b/sub/f", "c/f", "d/f", "e", "e/", "d/../only", "b/only", "c/../../two/only", "dangling", "loop1", "loop1/x", "a/absent", "d/absent/x"].

look(N) ->
    {N1, _} = {lists:last(string:split(N, "links", trailing)), N},
    {N1, info(file:read_file_info(N)), info(file:read_link_info(N)), short(file:read_file(N)), short(file:list_dir(N)), opened(file:open(N, [read, raw, binary])),
     file:read_link(N) =:= {error, enoent}}.
info({ok, I}) -> {element(3, I), case element(3, I) of regular -> element(2, I); _ -> x end};
info(E) -> E.
short({ok, L}) when is_list(L) -> lists:sort(L);
short(R) -> R.
opened({ok, F}) -> R = file:read(F, 10), file:close(F), R;
opened(E) -> E.
