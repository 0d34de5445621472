%% What module prim_file does with files, names and errors; each function works on names of its own in the current
%% directory.
-module(prim_file_sample).
-compile([export_all, nowarn_export_all]).
-include_lib("kernel/include/file.hrl").

%% Parts of a result are joined with lists:append/1, which has them evaluated in order; operands of ++ are not.

%% An outcome without what differs from run to run.
try_(F) ->
    try plain(F()) catch C:R -> {C, R} end.
plain(#file_info{} = I) ->
    I#file_info{atime = t, mtime = t, ctime = t, inode = i, major_device = d};
plain({ok, #file_info{} = I}) -> {ok, plain(I)};
plain({ok, #file_descriptor{}}) -> file;
plain(X) -> X.

open(N, M) -> {ok, F} = prim_file:open(N, M), F.

t_open() ->
    ok = prim_file:write_file("open1", <<"x">>),
    ok = prim_file:make_dir("open_dir"),
    [try_(fun() -> prim_file:open(N, M) end) ||
        N <- ["open1", "open_dir", "none", "none/x", "open1/x", "", [], <<"open1">>, <<>>, open1, "a\0b", <<"a\0b">>, [$a | b],
              [["op", [$e]], $n, [], "1"], [1 bsl 70], [-1], [16#D800], [256], 7, <<1:3>>, "open1\0", <<"open1\0">>],
        M <- [[read], [], [exclusive], [read, directory], [directory], [read, skip_type_check], [foo, {bar, 1}], [read | write]]].

t_write_read() ->
    F = open("wr", [read, write]),
    Big = binary:copy(<<"0123456789">>, 3000),
    <<_:3, Odd:800/bitstring, _/bitstring>> = Big,
    lists:append([
    [prim_file:write(F, D) || D <- [<<"abc">>, [], <<>>, "def", [1, [2 | <<3>>]], [Big, $x, Big | Big], [Odd], [[], [<<>>]]]],
    [try_(fun() -> prim_file:write(F, D) end) || D <- [a, [a], [256], [-1], <<1:3>>, [<<1:3>>]]],
    [prim_file:position(F, P) || P <- [bof, cur, eof, 0, 3, {bof, 2}, {cur, 1}, {cur, -100}, {eof, -1}, {eof, 1}, -1, {bof, -1}, foo,
                                        {foo, 1}, {bof, 1 bsl 70}, {bof, a}, 1 bsl 62, {bof, 5}]],
    [prim_file:read(F, N) || N <- [0, 1, 10, 100000, 1 bsl 28, 1, 0]],
    [try_(fun() -> prim_file:read(F, N) end) || N <- [-1, a, 1.0, 1 bsl 70]],
    [prim_file:pread(F, P, N) || {P, N} <- [{0, 3}, {5, 100}, {29999, 1 bsl 28}, {1 bsl 40, 1}, {0, 0}, {-1, 2}, {2, -1}, {1 bsl 70, 1}]],
    [prim_file:pread(F, [{0, 3}, {1, 2}, {1000000, 3}])],
    [prim_file:pwrite(F, P, D) || {P, D} <- [{0, "A"}, {1, <<"B">>}, {-1, "C"}, {1 bsl 70, "D"}, {100000, ["E", Big]}]],
    [prim_file:pwrite(F, [{3, "3"}, {5, "5"}])],
    [prim_file:pread(F, 0, 10), prim_file:position(F, cur), prim_file:read_file("wr"), prim_file:close(F), prim_file:close(F),
     prim_file:read(F, 1), prim_file:write(F, "a"), prim_file:position(F, 0), prim_file:sync(F), prim_file:truncate(F)]]).

t_modes() ->
    ok = prim_file:write_file("modes", "0123456789"),
    R = open("modes", [read]),
    A = open("modes", [append]),
    X = [prim_file:write(R, "a"), prim_file:write(R, []), prim_file:read(A, 2), prim_file:write(A, "abc"), prim_file:position(A, 0),
         prim_file:write(A, "def"), prim_file:read_file("modes"), prim_file:truncate(R)],
    RW = open("modes", [read, write]),
    Y = lists:append([[prim_file:position(RW, 4), prim_file:truncate(RW), prim_file:read_file("modes"), prim_file:allocate(RW, 0, 100),
         prim_file:allocate(RW, -1, 2), prim_file:allocate(RW, 0, 0), prim_file:datasync(RW), prim_file:sync(RW)],
        [try_(fun() -> prim_file:advise(RW, 0, 10, W) end) || W <- [normal, random, sequential, will_need, dont_need, no_reuse, foo]],
        [try_(fun() -> prim_file:advise(RW, a, 10, normal) end), try_(fun() -> prim_file:advise(RW, -1, 10, normal) end)]]),
    W = open("modes", [write]),
    Z = [prim_file:read(W, 1), prim_file:read_file("modes"), prim_file:open("modes", [write, exclusive]),
         try_(fun() -> prim_file:read_handle_info(RW) end), prim_file:open("modes", [read, write, exclusive])],
    S = open("modes", [write, sync]),
    [prim_file:close(F) || F <- [R, A, RW, W, S]] ++ X ++ Y ++ Z.

t_read_line() ->
    ok = prim_file:write_file("lines", ["one\ntwo\r\n", lists:duplicate(5000, $x), "\nlast"]),
    F = open("lines", [read, {read_ahead, 100}]),
    [prim_file:read_line(F) || _ <- lists:seq(1, 5)] ++ [prim_file:position(F, 2), prim_file:read(F, 4), prim_file:close(F)].

t_names() ->
    Names = ["plain", [228, 246], [1024, 70000], <<"raw", 255, 254>>, <<"ok", 195, 164>>, "sp ace", ".hidden", lists:duplicate(255, $n),
             lists:duplicate(256, $n), lists:duplicate(5000, $n), [127, 1, 10]],
    ok = prim_file:make_dir("names"),
    lists:append([
    [{prim_file:write_file(filename_(N), "x"), prim_file:read_file(filename_(N))} || N <- Names],
    [ok(prim_file:list_dir("names")), ok(prim_file:list_dir_all("names")),
     prim_file:make_symlink(<<"to", 255>>, "names_link"), prim_file:read_link("names_link"), prim_file:read_link_all("names_link"),
     prim_file:make_symlink([1024], "names_link2"), prim_file:read_link("names_link2"), prim_file:read_link("names"),
     prim_file:list_dir("none"), prim_file:list_dir("names/plain"), prim_file:is_translatable(<<255>>),
     prim_file:is_translatable(<<228/utf8>>), try_(fun() -> prim_file:is_translatable([1]) end)],
    [try_(fun() -> prim_file:internal_native2name(N) end) || N <- [<<>>, <<"abc">>, <<255>>, <<1024/utf8>>, "abc", <<1:1>>]],
    [try_(fun() -> prim_file:internal_name2native(N) end) || N <- [<<>>, "", abc, [1024], <<255>>, "a\0", {}, [["a"], [], "b"]]]]).

filename_(N) when is_list(N) -> "names/" ++ N;
filename_(N) -> <<"names/", N/binary>>.
ok({ok, L}) -> {ok, lists:sort(L)};
ok(E) -> E.

t_info() ->
    ok = prim_file:write_file("info", "12345"),
    ok = prim_file:make_symlink("info", "info_link"),
    ok = prim_file:make_symlink("nowhere", "info_dangling"),
    ok = prim_file:make_symlink("info_loop2", "info_loop1"),
    ok = prim_file:make_symlink("info_loop1", "info_loop2"),
    lists:append([
    [try_(fun() -> prim_file:F(N) end) || F <- [read_file_info, read_link_info],
        N <- ["info", "info_link", "info_dangling", "info_loop1", "/dev/null", "none", "info/x", "", abc]],
    [prim_file:open("info_loop1", [read]), prim_file:write_file("info_dangling", "now there"), prim_file:read_file("nowhere"),
     prim_file:make_link("info", "info_hard"), prim_file:make_link("none", "info_hard2"), prim_file:make_link("info", "info_hard"),
     try_(fun() -> prim_file:read_file_info("info_hard") end),
     prim_file:write_file_info("info", #file_info{mode = 8#640}), try_(fun() -> prim_file:read_file_info("info") end),
     prim_file:write_file_info("info", #file_info{mtime = {{2001, 2, 3}, {4, 5, 6}}, atime = {{2002, 2, 3}, {4, 5, 6}}})],
    [begin {ok, I} = prim_file:read_file_info("info", [{time, posix}]), {I#file_info.mtime, I#file_info.atime} end],
    [prim_file:write_file_info("none", #file_info{mode = 8#640}), prim_file:write_file_info("info", #file_info{mode = 8#100000777}),
     try_(fun() -> prim_file:read_file_info("info") end)]]).

t_dirs() ->
    ok = prim_file:make_dir("d1"),
    ok = prim_file:make_dir("d1/sub"),
    ok = prim_file:write_file("d1/sub/f", "1"),
    {ok, Top} = prim_file:get_cwd(),
    L = [prim_file:make_dir("d1"), prim_file:make_dir("none/sub"), prim_file:make_dir("d1/sub/f"), prim_file:del_dir("d1"),
     prim_file:del_dir("none"), prim_file:del_dir("d1/sub/f"), prim_file:delete("d1"), prim_file:delete("none"), prim_file:delete(""),
     prim_file:rename("d1/sub/f", "d1/g"), prim_file:rename("none", "x"), prim_file:rename("d1/g", "d1/sub"), prim_file:rename("d1", "d1/sub/x"),
     prim_file:rename("d1/sub", "d1/g"), prim_file:rename("/", "x"), prim_file:set_cwd("d1"), prim_file:set_cwd("none"), prim_file:set_cwd("g"),
     prim_file:read_file("g"), prim_file:del_dir("../d1"), prim_file:del_dir("."), prim_file:delete("g"),
     prim_file:set_cwd("sub"), prim_file:del_dir("../sub"), prim_file:get_cwd(), prim_file:open("x", [write]), prim_file:list_dir("."),
     prim_file:set_cwd(Top), prim_file:del_dir("d1"), prim_file:get_cwd(1), prim_file:altname("d1"), try_(fun() -> prim_file:set_cwd(a) end),
     prim_file:set_cwd(<<".">>), prim_file:make_dir("x\0y")],
    {ok, Now} = prim_file:get_cwd(),
    [Now =:= Top | L].

t_ipread() ->
    ok = prim_file:write_file("ip", <<5:32, 8:32, "hello", 9:32, 100:32, 1000:32, 8:32>>),
    F = open("ip", [read]),
    [try_(fun() -> prim_file:ipread_s32bu_p32bu(F, P, M) end) ||
        P <- [0, 13, 21, 24, 100, -1, 1 bsl 70, a], M <- [0, 4, 5, 2000, infinity, 1 bsl 31, -1]].

t_special() ->
    Full = open("/dev/full", [write, skip_type_check]),
    Null = open("/dev/null", [read, write]),
    Zero = open("/dev/zero", [read]),
    {ok, Version} = prim_file:read_file("/proc/version"),
    [prim_file:write(Full, "x"), prim_file:write(Full, []), prim_file:write(Full, lists:duplicate(3000, binary:copy(<<"x">>, 300))),
     prim_file:write(Null, lists:duplicate(3000, binary:copy(<<"x">>, 300))), prim_file:read(Null, 10), prim_file:position(Null, 10),
     prim_file:read(Zero, 5), prim_file:pread(Zero, 100, 3), prim_file:read_file("/dev/null"), byte_size(Version) > 10,
     prim_file:read_file("/"), prim_file:read_file("/none"), prim_file:close(Full), prim_file:allocate(Null, 0, 10),
     prim_file:truncate(Null), prim_file:datasync(Null)].

t_many_parts() ->
    F = open("parts", [write]),
    Parts = [binary:copy(<<N>>, N rem 700) || N <- lists:seq(1, 20000)],
    R = prim_file:write(F, [Parts, Parts]),
    {ok, B} = prim_file:read_file("parts"),
    S = prim_file:pwrite(F, 100, Parts),
    {ok, C} = prim_file:read_file("parts"),
    [R, S, B =:= iolist_to_binary([Parts, Parts]), C =:= iolist_to_binary([binary:part(B, 0, 100), Parts,
        binary:part(B, 100 + iolist_size(Parts), iolist_size(Parts) - 100)])].

t_handles() ->
    ok = prim_file:write_file("handle", "0123456789"),
    F = open("handle", [read]),
    <<Fd:32/native>> = prim_file:get_handle(F),
    {ok, G} = prim_file:file_desc_to_ref(Fd, [read]),
    [prim_file:read(F, 3), prim_file:read(G, 3), prim_file:close(G), prim_file:read(F, 1), prim_file:close(F),
     prim_file:file_desc_to_ref(100000, []), prim_file:file_desc_to_ref(a, []), prim_file:file_desc_to_ref(-1, []),
     prim_file:get_handle(F)].
