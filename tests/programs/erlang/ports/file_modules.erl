%% Uses files through the modules above prim_file: open modes, sorting, logs, tables on disk,
%% compression, names, errors.
-module(file_modules).
-export([main/0]).
-include_lib("kernel/include/file.hrl").

main() ->
    logger:set_primary_config(level, none),
    D = "file_modules." ++ os:getpid(),
    ok = file:make_dir(D),
    ok = file:set_cwd(D),
    [io:format("~p ~p~n", [N, outcome(F)]) || {N, F} <- tests()],
    ok = file:set_cwd(".."),
    io:format("~p~n", [file:del_dir_r(D)]).

outcome(F) -> try F() catch C:R -> {C, R} end.

tests() ->
    [{modes, fun modes/0}, {buffers, fun buffers/0}, {bad_modes, fun bad_modes/0}, {ram, fun ram/0}, {compressed, fun compressed/0}, {sorter, fun sorter/0}, {log, fun log/0}, {wrap, fun wrap/0},
     {halting_log, fun halting_log/0}, {dets, fun dets/0}, {positions, fun positions/0}, {bytes, fun bytes/0}, {lines, fun lines/0}, {info, fun info/0}, {links, fun links/0}, {directories, fun directories/0},
     {copies, fun copies/0}, {consult, fun consult/0}, {terms, fun terms/0}, {path, fun path/0}, {encodings, fun encodings/0}, {lib, fun lib/0}, {times, fun times/0}, {permissions, fun permissions/0}, {owners, fun owners/0},
     {pids, fun pids/0}, {special, fun special/0}, {errors, fun errors/0}, {advise, fun advise/0}, {allocate, fun allocate/0}, {sendfile, fun sendfile/0}, {native, fun native/0}].

modes() ->
    file:write_file("a", "0123456789"),
    [{M, try
        case file:open("a", M) of
            {ok, F} ->
                R = {file:read(F, 3), file:write(F, "ab"), file:position(F, cur), file:close(F), file:read_file("a")},
                file:write_file("a", "0123456789"), R;
            E -> E
        end catch C:X -> {C, X} end}
     || M <- [[read], [write], [read, write], [append], [read, append], [exclusive], [write, exclusive], [raw, read], [raw, write], [raw, read, write, binary], [raw, append], [raw, exclusive], [], [raw], [sync, write], [raw, sync, write],
              [read, binary], [raw, read, binary, read_ahead], [raw, append, delayed_write], [raw, read, write, {read_ahead, 4}, {delayed_write, 3, 1000}], [directory], [raw, directory, read], [read, {encoding, utf8}], [raw, {encoding, latin1}, read], [raw, {encoding, utf8}, read]]].

buffers() ->
    {ok, F} = file:open("b", [raw, write, {delayed_write, 1000, 60000}]),
    ok = file:write(F, "held"),
    Before = file:read_file("b"),
    ok = file:write(F, lists:duplicate(1000, $x)),
    {ok, After} = file:read_file("b"),
    ok = file:write(F, "more"),
    P = file:position(F, cur),
    ok = file:sync(F),
    {ok, Synced} = file:read_file("b"),
    ok = file:pwrite(F, 1, "EE"),
    ok = file:close(F),
    {ok, B} = file:read_file("b"),
    {ok, T} = file:open("b", [raw, write, {delayed_write, 100000, 20}]),
    ok = file:write(T, "timed"),
    timer:sleep(300),
    Timed = file:read_file("b"),
    file:close(T),
    file:write_file("b", [integer_to_list(N) ++ "\n" || N <- lists:seq(1, 1000)]),
    {ok, R} = file:open("b", [raw, read, binary, {read_ahead, 100}]),
    L = [file:read_line(R) || _ <- [1, 2, 3]],
    X = {file:read(R, 10), file:position(R, cur), file:pread(R, 0, 5), file:read(R, 3), file:position(R, {eof, -5}), file:read(R, 100), file:read(R, 1), file:read_line(R)},
    file:close(R),
    {Before, size(After), P, size(Synced), size(B), binary:part(B, 0, 6), Timed, L, X}.

bad_modes() -> [{M, outcome(fun() -> case file:open("a", M) of {ok, F} -> file:close(F); E -> E end end)} || M <- [x, [x], [read | x], [{read_ahead, -1}], [{read_ahead, x}], [{delayed_write, 1}], [raw, read, {delayed_write, x, 1}], [ram, directory], [{encoding, foo}], [read, {encoding, {utf16, big}}], [raw, compressed, write, read], [ram], [ram, read, foo]]].

ram() ->
    {ok, F} = file:open(<<"some bytes">>, [ram, read, write, binary]),
    R = [file:read(F, 4), file:position(F, 0), file:write(F, "SOME"), file:position(F, eof), file:write(F, [" and", <<" more">>]), file:pread(F, 0, 100), file:pread(F, [{0, 2}, {3, 4}, {100, 3}]),
         file:position(F, 5), file:truncate(F), file:pread(F, 0, 100), file:position(F, {cur, -10}), file:position(F, {bof, 100}), file:read(F, 1), file:write(F, "x"), file:pread(F, 90, 20), file:pwrite(F, [{1, "q"}, {3, "r"}]), file:read_line(F),
         file:sync(F), file:advise(F, 0, 0, normal), file:allocate(F, 0, 10), ram_file:get_size(F), ram_file:get_file(F), file:position(F, 0), file:copy(F, "ram.copy"), file:close(F), file:read(F, 1)],
    {ok, G} = file:open("abc", [ram]),
    {ok, H} = file:open(binary:copy(<<"abc">>, 1000), [ram, read, write]),
    S = [file:read(G, 10), file:write(G, "x"), ram_file:compress(H), size(element(2, ram_file:get_file(H))) < 100, ram_file:uncompress(H), ram_file:uuencode(H), ram_file:uudecode(H), outcome(fun() -> file:open("x", [ram, read, {encoding, utf8}]) end)],
    {R, S}.

compressed() ->
    Text = [io_lib:format("line ~p~n", [N]) || N <- lists:seq(1, 2000)],
    {ok, F} = file:open("c.gz", [write, compressed]),
    ok = io:put_chars(F, Text),
    ok = file:close(F),
    {ok, Raw} = file:read_file("c.gz"),
    {ok, G} = file:open("c.gz", [read, compressed, binary]),
    A = [file:read(G, 10), file:read_line(G), file:position(G, 100), file:read(G, 8), file:position(G, {cur, 10}), file:position(G, 5), file:read(G, 5), file:position(G, eof), file:pread(G, 3, 3), file:write(G, "x")],
    file:close(G),
    {ok, H} = file:open("c.gz", [raw, read, compressed, binary]),
    {ok, All} = file:read(H, 1 bsl 20),
    B = [file:read(H, 1), file:position(H, 0), size(element(2, file:read(H, 5))), file:close(H)],
    {ok, I} = file:open("c2.gz", [raw, write, compressed]),
    C = [file:write(I, "part one "), file:write(I, [<<"part ">>, "two"]), file:position(I, 3), file:sync(I), file:close(I)],
    file:write_file("plain", "not compressed"),
    {ok, J} = file:open("plain", [read, compressed]),
    P = [file:read(J, 5), file:position(J, 1), file:read(J, 100), file:close(J)],
    file:write_file("broken.gz", [binary:part(Raw, 0, 200), <<0:800>>]),
    {ok, K} = file:open("broken.gz", [read, compressed, raw]),
    Q = [element(1, file:read(K, 100000)), file:close(K)],
    {binary:part(Raw, 0, 3), A, All =:= iolist_to_binary(Text), zlib:gunzip(Raw) =:= All, B, C, zlib:gunzip(element(2, file:read_file("c2.gz"))), P, Q,
     [file:open("c3", [compressed, append]), element(1, file:open("nonesuch", [compressed, read]))]}.

sorter() ->
    rand:seed(exsss, {1, 2, 3}),
    T = [{rand:uniform(10000), N} || N <- lists:seq(1, 20000)],
    Write = fun(Name, L) -> {ok, F} = file:open(Name, [write, raw, delayed_write]), [begin B = term_to_binary(X), file:write(F, [<<(size(B)):32>>, B]) end || X <- L], file:close(F) end,
    Write("s1", T), Write("s2", lists:reverse(T)),
    In = fun(Name) -> {ok, B} = file:read_file(Name), [binary_to_term(X) || <<N:32, X:N/binary>> <= B] end,
    O = [{size, 30000}, {no_files, 4}],
    A = file_sorter:sort(["s1"], "s3", O), A1 = In("s3") =:= lists:sort(T),
    B = file_sorter:keysort(1, ["s1", "s2"], "s4", [{unique, true} | O]), B1 = length(In("s4")),
    Write("t1", lists:usort(T)), Write("t2", lists:seq(1, 100)),
    C = file_sorter:merge(["t1", "t2"], "t3", O), C1 = length(In("t3")),
    E = file_sorter:check("s3"), E1 = element(1, element(2, file_sorter:check("s1"))),
    file:write_file("u", ["b\n", "a\n", "c\n"]),
    G = file_sorter:sort("u", "v", [{format, fun(X) -> X end}]),
    H = file_sorter:sort("nonesuch", "w"),
    I = file_sorter:sort(fun(read) -> {[{3}, {1}], fun(read) -> end_of_input; (close) -> ok end}; (close) -> ok end, fun(close) -> []; (L) -> fun(close) -> L; (M) -> fun(close) -> L ++ M end end end, [{format, term}]),
    {A, A1, B, B1, C, C1, E, E1, element(1, G), H, I, file_sorter:sort(["s1"], "s5", [{compressed, true} | O]), file_sorter:sort(["s1"], "/nonesuch/x", O)}.

log() ->
    {ok, L} = disk_log:open([{name, l}, {file, "l.log"}]),
    A = [disk_log:log(l, {N, lists:duplicate(N, x)}) || N <- lists:seq(1, 50)],
    B = [disk_log:log_terms(L, [a, b, c]), disk_log:alog(L, later), disk_log:sync(L), disk_log:blog(L, term_to_binary(bin))],
    {C, Ts} = disk_log:chunk(L, start, 5),
    {_, Us} = disk_log:chunk(L, C, 100),
    I = [lists:keyfind(K, 1, disk_log:info(L)) || K <- [name, file, type, format, size, items, mode, status]],
    D = [disk_log:truncate(L, head), disk_log:reopen(L, "old.log"), disk_log:log(L, new), disk_log:close(L), disk_log:close(L)],
    {ok, B0} = file:read_file("l.log"),
    file:write_file("l.log", binary:part(B0, 0, size(B0) - 3)),
    R = disk_log:open([{name, l}, {file, "l.log"}, {repair, true}]),
    disk_log:close(l),
    file:write_file("l.log", "nonsense, no log"),
    S = disk_log:open([{name, l}, {file, "l.log"}]),
    {lists:usort(A), B, length(Ts), length(Us), I, D, R, S, disk_log:open([{name, m}, {file, "none.log"}, {mode, read_only}]), disk_log:log(nonesuch, x)}.

wrap() ->
    {ok, L} = disk_log:open([{name, w}, {file, "w"}, {type, wrap}, {size, {2000, 4}}, {notify, true}]),
    [ok = disk_log:log(L, {N, lists:duplicate(20, N)}) || N <- lists:seq(1, 500)],
    Wraps = wraps(0),
    I = [lists:keyfind(K, 1, disk_log:info(L)) || K <- [size, current_file, no_current_items, no_items, no_overflows]],
    F = first(L),
    ok = disk_log:inc_wrap_file(L),
    ok = disk_log:change_size(L, {2000, 2}),
    J = [lists:keyfind(K, 1, disk_log:info(L)) || K <- [size, current_file]],
    disk_log:close(L),
    {Wraps, I, F, J, lists:sort(filelib:wildcard("w.*"))}.
wraps(N) -> receive {disk_log, _, w, {wrap, _}} -> wraps(N + 1) after 100 -> N end.
first(L) -> {_, [T | _]} = disk_log:chunk(L, start, 1), element(1, T).

halting_log() ->
    {ok, L} = disk_log:open([{name, h}, {file, "h"}, {size, 1000}, {format, external}, {type, halt}]),
    R = [disk_log:blog(L, binary:copy(<<"x">>, 400)) || _ <- [1, 2, 3]],
    X = lists:keyfind(full, 1, disk_log:info(L)),
    disk_log:close(L),
    {R, X, filelib:file_size("h")}.

dets() ->
    {ok, T} = dets:open_file(t, [{file, "t.dets"}, {type, bag}, {keypos, 1}, {auto_save, 1000}]),
    [ok = dets:insert(T, {N rem 300, N, binary:copy(<<"v">>, N rem 50)}) || N <- lists:seq(1, 3000)],
    A = {dets:info(T, size), length(dets:lookup(T, 7)), dets:member(T, 7), dets:member(T, 999), dets:match(T, {5, '$1', '_'}) =/= [], dets:info(T, no_keys), dets:select_delete(T, [{{'_', '$1', '_'}, [{'>', '$1', 2500}], [true]}]),
         dets:delete(T, 3), dets:delete_object(T, {4, 4, <<"vvvv">>}), dets:foldl(fun(_, N) -> N + 1 end, 0, T), dets:sync(T), dets:first(T) =/= '$end_of_table', dets:update_counter(T, 5, 1)},
    dets:close(T),
    {ok, _} = dets:open_file(t, [{file, "t.dets"}, {type, bag}]),
    B = dets:info(t, size),
    C = dets:to_ets(t, ets:new(x, [bag])) =/= undefined,
    D = {dets:delete_all_objects(t), dets:info(t, size), dets:from_ets(t, begin E = ets:new(y, [bag]), ets:insert(E, [{1}, {2}]), E end), dets:info(t, size)},
    dets:close(t),
    {ok, Bin} = file:read_file("t.dets"),
    file:write_file("u.dets", binary:part(Bin, 0, size(Bin) - 10)),
    F = dets:open_file(u, [{file, "u.dets"}, {type, bag}, {repair, false}]),
    file:write_file("v.dets", "not one"),
    {A, B, C, D, F, dets:open_file(v, [{file, "v.dets"}]), dets:is_dets_file("t.dets"), dets:is_dets_file("v.dets"), dets:is_dets_file("none"), outcome(fun() -> dets:lookup(none, 1) end), element(1, dets:open_file("t.dets"))}.

positions() ->
    file:write_file("p", "abcdefghij"),
    {ok, F} = file:open("p", [raw, read, write]),
    R = [file:position(F, X) || X <- [0, 5, {cur, 2}, {cur, -100}, {eof, 0}, {eof, 5}, {bof, -1}, eof, bof, cur, -1, 1 bsl 70, x, {x, 1}]],
    S = [outcome(fun() -> file:pread(F, A, N) end) || {A, N} <- [{0, 3}, {8, 10}, {10, 1}, {100, 1}, {-1, 1}, {0, 0}, {0, -1}, {1 bsl 70, 1}, {0, x}]],
    T = [file:pread(F, [{0, 2}, {20, 1}, {4, 2}]), file:pwrite(F, [{0, "Z"}, {12, "Y"}]), file:pwrite(F, -1, "x"), outcome(fun() -> file:pwrite(F, 0, [foo]) end), file:read_file("p"), file:position(F, 3), file:truncate(F), file:read_file("p"),
         outcome(fun() -> file:read(F, -1) end), outcome(fun() -> file:read(F, x) end), outcome(fun() -> file:write(F, foo) end), file:datasync(F), file:close(F), file:close(F), file:read(F, 1), file:position(F, 0), file:truncate(F)],
    {R, S, T}.

bytes() ->
    {ok, F} = file:open("by", [raw, write]),
    R = [outcome(fun() -> file:write(F, X) end) || X <- [<<1:4>>, [1 | <<2>>], [256], [-1], [[[], [], <<>>]], [[<<"a">> | "b"], $c], lists:duplicate(100000, "xy"), binary:copy(<<"z">>, 1000000), [lists:duplicate(300, binary:copy(<<"q">>, 300))]]],
    file:close(F),
    {R, filelib:file_size("by"), erlang:md5(element(2, file:read_file("by")))}.

lines() ->
    file:write_file("li", "one\r\ntwo\n\n\rfour\nlast"),
    [begin {ok, F} = file:open("li", M), R = [file:read_line(F) || _ <- lists:seq(1, 7)], file:close(F), R end || M <- [[read], [raw, read], [read, binary], [raw, read, binary, {read_ahead, 3}]]].

info() ->
    file:write_file("in", "12345"),
    {ok, I} = file:read_file_info("in", [{time, posix}]),
    [file:read_file_info("in", [raw]) =/= x, I#file_info.size, I#file_info.type, I#file_info.access, I#file_info.mode band 8#777, I#file_info.links, is_integer(I#file_info.inode), is_integer(I#file_info.mtime),
     [element(#file_info.type, element(2, file:read_file_info(X))) || X <- [".", "/dev/null", "/dev/tty0", "/bin/sh"], element(1, file:read_file_info(X)) =:= ok], file:read_file_info("none"), file:read_file_info(""), outcome(fun() -> file:read_file_info("in", [{time, x}]) end),
     outcome(fun() -> file:read_file_info(foo) end), file:read_link_info("none"), element(#file_info.size, element(2, begin {ok, F} = file:open("in", [read]), X = file:read_file_info(F), file:close(F), X end))].

links() ->
    file:write_file("k", "x"),
    [file:make_link("k", "k2"), file:make_symlink("k", "k3"), file:make_symlink("none", "k4"), file:make_link("k", "k2"), file:make_link("none", "k5"), file:read_link("k3"), file:read_link("k"), file:read_link("none"), file:read_file("k3"), file:read_file("k4"),
     element(#file_info.links, element(2, file:read_file_info("k"))), filelib:is_regular("k3"), filelib:is_file("k4"), file:delete("k3"), file:delete("k2"), file:delete("k2"), file:make_symlink("/", "k6"), file:delete("k6"), file:read_link_all("k4")].

directories() ->
    [file:make_dir("d"), file:make_dir("d"), file:make_dir("none/d"), file:make_dir("k/d"), file:list_dir("d"), file:list_dir("none"), file:list_dir("k"), filelib:ensure_dir("d/e/f/g"), filelib:ensure_path("d/h/i"), file:del_dir("d"), file:del_dir("none"), file:del_dir("k"),
     file:rename("d", "dd"), file:rename("dd", "dd/e/x"), file:rename("k", "dd"), file:rename("dd", "k"), file:delete("dd"), file:rename("none", "x"), lists:sort(element(2, file:list_dir("dd"))), file:set_cwd("none"), file:set_cwd("k"), file:set_cwd(<<"dd">>), file:set_cwd(".."), outcome(fun() -> file:set_cwd(foo) end), outcome(fun() -> file:set_cwd([1, 2, x]) end), file:get_cwd("x"), file:del_dir_r("dd"), file:del_dir_r("none"), filelib:is_dir("dd")].

copies() ->
    file:write_file("co", binary:copy(<<"0123456789">>, 50000)),
    {ok, F} = file:open("co", [read, binary, raw]),
    {ok, G} = file:open("co3", [write, raw, compressed]),
    [file:copy("co", "co2"), file:copy("co", "co2", 7), file:read_file("co2"), file:copy(F, G, 100000), file:close(G), file:copy({"co3", [compressed, read]}, "co4"), filelib:file_size("co4"), file:copy("none", "x"), file:copy("co", "/nonesuch/x"), file:copy("co", "co2", 0), file:copy("/dev/null", "co2"), outcome(fun() -> file:copy("co", "co2", -1) end), file:close(F), file:copy(F, "x")].

consult() ->
    file:write_file("te", "{a, 1}. \"x\". \n%% c\n[<<1>>, #{a => b}].\n"),
    file:write_file("bad", "{a, 1}.\n{b, .\n"),
    file:write_file("sc", "X = 1 + N. X * 2."),
    file:write_file("la", <<"%% coding: latin-1\n\"", 229, "\".\n">>),
    [file:consult("te"), file:consult("bad"), file:consult("none"), file:script("sc", [{'N', 4}]), file:eval("sc", [{'N', 4}]), file:consult("la"), file:format_error(element(2, file:consult("bad"))), [file:format_error(E) || E <- [enoent, eacces, enospc, eisdir, badarg, terminated, system_limit, foo]]].

terms() ->
    {ok, F} = file:open("io", [write, {encoding, utf8}]),
    A = [io:format(F, "~ts ~p~n", [[229, 8364], {x}]), io:write(F, [1]), io:nl(F), file:write(F, <<"raw">>), io:setopts(F, [{encoding, latin1}]), io:getopts(F), io:put_chars(F, [8364]), io:put_chars(F, latin1, [229]), file:close(F)],
    {ok, G} = file:open("io", [read, {encoding, utf8}]),
    B = [io:get_line(G, ''), io:read(G, ''), io:get_chars(G, '', 2), io:get_line(G, ''), io:get_line(G, ''), io:get_line(G, ''), file:position(G, 0), file:read(G, 4), file:close(G)],
    {A, B}.

path() ->
    file:make_dir("pa"), file:make_dir("pb"),
    file:write_file("pb/x.txt", "{found}."),
    [element(1, file:path_open(["pa", "pb"], "x.txt", [read])), file:path_consult(["pa", "pb"], "x.txt"), file:path_consult(["pa"], "x.txt"), file:path_eval(["pa", "pb"], "none"), file:path_script(["pb"], "x.txt"), filename:join(["a", "/b", "c"]), file:path_open([], "x", [read])].

encodings() ->
    Names = [[229, 228, 246], [8364], <<"b", 255>>, [16#1F600]],
    [{file:write_file(N, "x"), file:read_file(N), file:delete(N)} || N <- Names] ++ [file:write_file([55296], "x"), file:write_file([1114112], "x"), outcome(fun() -> file:write_file([-1], "x") end), outcome(fun() -> file:read_file(["a", [b]]) end), file:read_file(atom_name), file:native_name_encoding(), outcome(fun() -> file:read_file({a}) end)].

lib() ->
    file:make_dir("g"), [file:write_file(["g/", [C], ".", E], [C]) || C <- "abc", E <- ["txt", "erl"]], file:make_dir("g/sub"), file:write_file("g/sub/d.txt", "d"), file:write_file("g/.hid", ""),
    [lists:sort(filelib:wildcard(P, "g")) || P <- ["*", "*.txt", "[ab].*", "{a,c}.erl", "**", "**/*.txt", "?.erl", "sub/*", "none*", ".*", "*/..", "../g/a.*", "[!a]*", "\\*"]] ++
    [lists:sort(filelib:fold_files("g", "txt$", true, fun(F, A) -> [F | A] end, [])), filelib:file_size("g/a.txt"), filelib:file_size("none"), filelib:last_modified("none"), outcome(fun() -> filelib:wildcard("{a") end), filelib:safe_relative_path("a/../../b", "g"), filelib:safe_relative_path("a/../b", "g"), filelib:find_file("a.txt", "g"), filelib:find_source("none.beam")].

times() ->
    file:write_file("ti", "x"),
    T = {{2001, 2, 3}, {4, 5, 6}},
    [file:change_time("ti", T), element(#file_info.mtime, element(2, file:read_file_info("ti"))), file:change_time("ti", T, {{1999, 1, 1}, {0, 0, 0}}), file:write_file_info("ti", #file_info{mtime = 1000000000}, [{time, posix}]), element(#file_info.mtime, element(2, file:read_file_info("ti", [{time, universal}]))), filelib:last_modified("ti") =/= 0, file:change_time("none", T), outcome(fun() -> file:change_time("ti", {{2001, 13, 3}, {4, 5, 6}}) end)].

permissions() ->
    file:write_file("pe", "x"),
    Mode = fun() -> element(#file_info.mode, element(2, file:read_file_info("pe"))) band 8#7777 end,
    [begin R = file:change_mode("pe", M), {R, Mode()} end || M <- [8#644, 0, 8#4755, 8#1000, 8#777]] ++ [file:change_mode("none", 0), outcome(fun() -> file:change_mode("pe", x) end), file:read_file_info("pe") =/= x].

owners() -> [file:change_owner("pe", 1000), element(#file_info.uid, element(2, file:read_file_info("pe"))), file:change_group("pe", 1001), element(#file_info.gid, element(2, file:read_file_info("pe"))), file:change_owner("pe", 0, 0), file:change_owner("none", 0)].

pids() ->
    {ok, F} = file:open("pe", [read]),
    {Pid, Ref} = spawn_monitor(fun() -> file:open("pe", [read]) end),
    receive {'DOWN', Ref, _, Pid, W} -> ok end,
    exit(F, kill),
    timer:sleep(50),
    {ok, R} = file:open("pe", [read, raw]),
    Other = self(),
    spawn(fun() -> Other ! {r, outcome(fun() -> file:read(R, 1) end)} end),
    X = receive {r, A} -> A end,
    {W, file:read(F, 1), X, file:pid2name(F)}.

special() ->
    {ok, Z} = file:open("/dev/zero", [read, raw, binary]),
    {ok, N} = file:open("/dev/null", [write, raw]),
    "" = os:cmd("mkfifo fifo"),
    R = [file:read(Z, 3), file:position(Z, 100), file:close(Z), file:write(N, "x"), file:close(N), element(1, file:read_file("/proc/self/status")), size(element(2, file:read_file("/proc/self/stat"))) > 0, file:read_file("/proc/none"), element(#file_info.type, element(2, file:read_file_info("fifo"))),
         file:open("/dev/null", [read, raw, directory])],
    R.

errors() ->
    file:write_file("er", "x"), file:make_symlink("loop2", "loop1"), file:make_symlink("loop1", "loop2"),
    Long = lists:duplicate(300, $x),
    [{F, kind(file:F(N))} || F <- [read_file, list_dir, delete, del_dir, make_dir, read_file_info, read_link, list_dir_all], N <- ["none", "er/x", "loop1/x", Long, "", "a\0b", "/proc/nonesuch/x"]] ++
    [file:write_file(N, "x") || N <- ["/proc/x", "none/x", ".", Long, "", "er/x", "loop1", "/dev/full"]] ++ [file:rename("er", "/dev/shm/none/er"), file:make_link("er", Long), file:make_symlink(Long ++ "/" ++ Long, "lnk"), outcome(fun() -> file:write_file("er", foo) end), outcome(fun() -> file:write_file("er", "x", foo) end), file:write_file("er", "y", [append]), file:read_file("er"), file:write_file("er", "z", [exclusive])].

kind({ok, I}) when is_record(I, file_info) -> I#file_info.type;
kind(X) -> X.

advise() ->
    {ok, F} = file:open("er", [read, raw]),
    R = [outcome(fun() -> file:advise(F, 0, 0, A) end) || A <- [normal, sequential, random, no_reuse, will_need, dont_need, foo]] ++ [file:advise(F, -1, 0, normal), file:close(F), file:advise(F, 0, 0, normal)],
    R.
allocate() ->
    {ok, F} = file:open("al", [write, raw]),
    R = [file:allocate(F, 0, 10000), filelib:file_size("al"), outcome(fun() -> file:allocate(F, -1, 5) end), file:close(F)],
    R.

sendfile() ->
    file:write_file("sf", binary:copy(<<"0123456789">>, 100000)),
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, P} = inet:port(L),
    Me = self(),
    spawn(fun() -> {ok, C} = gen_tcp:connect({127, 0, 0, 1}, P, [binary, {active, false}]), Me ! {all, all(C, [])} end),
    {ok, S} = gen_tcp:accept(L),
    {ok, F} = file:open("sf", [read, raw]),
    R = [file:sendfile("sf", S), file:sendfile(F, S, 10, 100, []), file:sendfile(F, S, 999990, 100, []), file:sendfile(F, S, 2000000, 100, []), file:sendfile("none", S), outcome(fun() -> file:sendfile(F, S, 5, 10, [{use_threads, true}, {chunk_size, 3}]) end)],
    gen_tcp:close(S),
    B = receive {all, X} -> X after 10000 -> none end,
    {R, size(B), erlang:md5(B), file:sendfile("sf", S)}.
all(C, A) -> case gen_tcp:recv(C, 0) of {ok, B} -> all(C, [A, B]); {error, closed} -> iolist_to_binary(A) end.

native() ->
    {ok, F} = prim_file:open("er", [read]),
    R = [size(prim_file:get_handle(F)), prim_file:close(F)] ++
        [outcome(G) || G <- [fun() -> prim_file:read(x, 1) end, fun() -> prim_file:open({x}, [read]) end, fun() -> prim_file:get_cwd(5) end, fun() -> prim_file:altname("er") end]],
    R.
