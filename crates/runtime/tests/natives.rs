//! Compares natives of binaries, character data, I/O lists and patterns with those of an installed
//! `erl`.

use purlin_isa::known::{self, Way};
use purlin_runtime::cx::{Cx, Fail};
use purlin_runtime::natives::{Bif, tables};
use purlin_term::etf::decode::{NoHooks, decode};
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, am, compare};
use std::process::Command;

/// The loader's table of natives by name (`purlin_isa::known`) agrees with their rows.
#[test]
fn known_functions_agree_with_their_rows() {
    let rows: Vec<&Bif> = tables()
        .into_iter()
        .flatten()
        .filter(|b| b.module == known::MODULE)
        .collect();
    for k in known::all() {
        let Some(row) = rows.iter().find(|b| (b.name, b.arity) == (k.name, k.arity)) else {
            // These are code of the emulator, and no natives.
            let is_code = matches!(k.way, Way::Apply | Way::Tail(_));
            assert!(is_code, "{}/{} has no row", k.name, k.arity);
            continue;
        };
        assert_eq!(k.raises, row.traits.raises, "{}/{}", k.name, k.arity);
    }
    for row in rows.iter().filter(|b| b.traits.raises) {
        let k = known::known(row.module, row.name, row.arity.into());
        assert!(k.is_some_and(|k| k.raises), "{}/{}", row.name, row.arity);
    }
}

/// Writes `{M, F, Args, Outcome}` records, each preceded by its length.
const SCRIPT: &str = r#"
-module(purlin_natives).
-export([main/1]).
main([File]) ->
    rand:seed(exsss, {1, 2, 3}),
    Cases = fixed() ++ lists:append([random() || _ <- lists:seq(1, 400)]),
    Out = [begin
        R = try {value, apply(M, F, A)} catch _:E -> {error, E} end,
        B = term_to_binary({M, F, A, R}),
        <<(byte_size(B)):32, B/binary>>
    end || {M, F, A} <- Cases],
    ok = file:write_file(File, Out),
    halt().
bytes(N) -> rand:bytes(rand:uniform(N + 1) - 1).
ab(N) -> << <<(lists:nth(rand:uniform(3), "abc"))>> || _ <- lists:seq(1, rand:uniform(N)) >>.
unaligned(B) -> X = <<5:3, B/binary>>, <<_:3, Y/binary>> = X, Y.
io(0) -> rand:uniform(256) - 1;
io(D) ->
    case rand:uniform(8) of
        1 -> [];
        2 -> bytes(20);
        3 -> unaligned(bytes(300));
        4 -> [io(D - 1) | bytes(5)];
        5 -> rand:uniform(257) - 1;
        _ -> [io(D - 1) || _ <- lists:seq(1, rand:uniform(5))]
    end.
bits(0) -> rand:uniform(256) - 1;
bits(D) ->
    case rand:uniform(4) of
        1 -> N = rand:uniform(30), <<(rand:uniform(1 bsl 29)):N>>;
        _ -> [bits(D - 1) || _ <- lists:seq(1, rand:uniform(5))]
    end.
chars(0) -> lists:nth(rand:uniform(5), [65, 200, 1024, 16#10FFFF, 16#D800 + rand:uniform(400) * 10]);
chars(D) ->
    case rand:uniform(9) of
        1 -> [];
        2 -> <<"ab">>;
        3 -> unaligned(unicode:characters_to_binary([200, 1024, 70000]));
        4 -> B = unicode:characters_to_binary([200, 1024, 70000]), N = rand:uniform(byte_size(B)),
             <<X:N/binary, Y/binary>> = B, [X, [Y], chars(D - 1)];
        5 -> B = unicode:characters_to_binary([$a, 70000]), binary:part(B, 0, rand:uniform(byte_size(B)));
        6 -> [chars(D - 1) | <<"x">>];
        _ -> [chars(D - 1) || _ <- lists:seq(1, rand:uniform(4))]
    end.
random() ->
    Io = io(4), B = bytes(40), U = unaligned(bytes(40)), S = ab(30), P = ab(3), Ps = [ab(3) || _ <- lists:seq(1, rand:uniform(4))],
    Pos = rand:uniform(34) - 2, Len = rand:uniform(30) - 15, C = chars(4), Cs = {scope, {Pos, Len}},
    Int = rand:uniform(1 bsl (rand:uniform(200))),
    O = [X || X <- [global, trim, trim_all, Cs], rand:uniform(3) =:= 1],
    Re = lists:nth(rand:uniform(16), ["a", "a*b", "(a)|(b)", "(?<x>a+)(?<y>b)?", "^a", "c$", "[^a]+", "(a(b)?)+", "\\w+", "b{2,}",
        "(?:ab|ba)+", "(?<=a)b", "a??", ".", "(b)|c|(a)", ""]),
    Ro = [X || X <- [caseless, anchored, dotall, multiline, ungreedy, notempty, notbol, noteol, {offset, rand:uniform(2) - 1},
        {capture, lists:nth(rand:uniform(8), [all, first, all_but_first, none, [0, 2, 1], ["x", y, 7], all_names, [<<"y">>, -1]]),
         lists:nth(rand:uniform(3), [index, list, binary])}], rand:uniform(4) =:= 1],
    [{erlang, iolist_to_binary, [Io]}, {erlang, list_to_binary, [Io]}, {erlang, iolist_size, [Io]},
     {erlang, list_to_bitstring, [bits(3)]}, {erlang, binary_to_list, [U]}, {erlang, binary_to_list, [B, Pos, Pos + Len]},
     {erlang, bitstring_to_list, [<<U/binary, 5:3>>]}, {erlang, split_binary, [U, Pos]},
     {erlang, binary_part, [U, Pos, Len]}, {erlang, binary_part, [B, {Pos, Len}]},
     {binary, match, [S, P]}, {binary, match, [S, Ps, [Cs]]}, {binary, matches, [S, P]}, {binary, matches, [S, Ps]},
     {binary, matches, [S, Ps, [Cs]]}, {binary, split, [S, P]}, {binary, split, [S, Ps, O]}, {binary, split, [S, P, O]},
     {binary, at, [U, Pos]}, {binary, first, [U]}, {binary, last, [U]}, {binary, part, [B, Pos, Len]},
     {binary, copy, [U]}, {binary, copy, [B, rand:uniform(5) - 1]}, 
     {binary, list_to_bin, [Io]}, {binary, decode_unsigned, [B]}, {binary, decode_unsigned, [U, little]},
     {binary, encode_unsigned, [Int]}, {binary, encode_unsigned, [Int, little]},
     {binary, longest_common_prefix, [[S, P | Ps]]}, {binary, longest_common_suffix, [[S, P | Ps]]},
     {unicode, characters_to_binary, [C, unicode]}, {unicode, characters_to_list, [C, utf8]},
     {unicode, characters_to_binary, [C, latin1]}, {unicode, characters_to_list, [Io, latin1]},
     {unicode, characters_to_binary, [B, unicode]}, {unicode, characters_to_list, [U, unicode]},
     {unicode, characters_to_binary, [Io, latin1]}, {unicode, bin_is_7bit, [B]},
     {erlang, md5, [Io]}, {erlang, md5, [bytes(200)]}, {erlang, crc32, [Io]}, {erlang, crc32, [Pos, B]},
     {erlang, adler32, [Io]}, {erlang, adler32, [Int, B]}, {erlang, crc32_combine, [Pos, 77, Int]},
     {erlang, adler32_combine, [rand:uniform(1 bsl 32) - 1, 77, Int]},
     {erlang, decode_packet, packet()}, {erlang, decode_packet, packet()}, {erlang, decode_packet, packet()},
     {re, run, [S, Re, Ro]}, {re, run, [[S, $a | P], Re, Ro]}, {re, run, [unaligned(S), Re]},
     {re, run, [binary:copy(S, 9), Re, Ro]}].
packet() ->
    Lines = ["GET / HTTP/1.1\r\n", "GET http://a.b:80/c?d=1 HTTP/1.0\r\n", "OPTIONS * HTTP/1.1\n", "FOO bar:baz HTTP/1.1\r\n",
        "GET  x\r\n", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 404\r\n", "HTTP/12345678901.2  5  x y \r\n", "host: abc\r\n", "content-LENGTH:5\r\n",
        "X-Own-header:  v w\r\n more\r\n", "\r\n", "\n", "bad header\r\n", "GET https://h:x/ HTTP/1.1\r\n", "get HTTPS://h HTTP/1.1\r\n",
        "POST http://h:99999999999/ HTTP/1.1 x\r\n", lists:duplicate(60, $n) ++ ": v\n", "A:" ++ lists:duplicate(60, $v) ++ "\r\n x\r\nB:\r\n",
        "GET /" ++ lists:duplicate(60, $p) ++ " HTTP/1.1\r\n", [0, 5, "hello", 0], [0, 0, 0, 3, "abcd"], [3, "abc", 1],
        ["GIOP", 1, 2, 0, 3, 0, 0, 0, 2, "xyz"], ["GIOP", 1, 2, 1, 3, 2, 0, 0, 0, "xyz"], [1, 2, 3, 4, 0, 3, 2, 0, "abcdefgh"],
        [3, 0, 0, 9, "hello world"], [3, 0, 0, 2, "x"], [16#30, 3, "abcd"], [16#30, 16#82, 0, 3, "abcd"], [16#3f, 16#81, 1, 2, "abc"],
        [16#30, 16#80, 1], [16#30, 16#85, 1, 1, 1, 1, 1], [22, 3, 1, 0, 3, "abcd"], [16#80, 6, 1, 3, 1, "abcdef"], [16#80, 2, 1, 3, 1],
        [16#ff, 255, 255, 255, "x"], "one\ntwo\n", "one;two", "\tGET / HTTP/1.1\r\n"],
    L0 = iolist_to_binary([lists:nth(rand:uniform(length(Lines)), Lines) || _ <- lists:seq(1, rand:uniform(2))]),
    L1 = case rand:uniform(3) of
        1 -> N = rand:uniform(byte_size(L0)) - 1, <<X:N/binary, _, Y/binary>> = L0, <<X/binary, (rand:uniform(256) - 1), Y/binary>>;
        2 -> binary:part(L0, 0, rand:uniform(byte_size(L0)));
        _ -> L0
    end,
    L2 = case rand:uniform(3) of 1 -> unaligned(L1); 2 -> <<L1/binary, 5:3>>; _ -> L1 end,
    O = [X || X <- [{packet_size, rand:uniform(30) - 1}, {line_length, rand:uniform(30) - 1}, {line_delimiter, $;}], rand:uniform(6) =:= 1],
    [lists:nth(rand:uniform(16), [raw, 0, 1, 2, 4, asn1, sunrm, cdr, fcgi, line, tpkt, http, httph, http_bin, httph_bin, ssl_tls]), L2, O].
fixed() ->
    [{erlang, decode_packet, [K, L, O]} || K <- [raw, 0, 1, 2, 4, asn1, sunrm, cdr, fcgi, line, tpkt, http, httph, http_bin, httph_bin, ssl_tls, foo, 3],
        {L, O} <- [{<<>>, []}, {<<0>>, []}, {<<1:1>>, []}, {a, []}, {<<"a\n">>, [{packet_size, a}]}, {<<"a\n">>, [{packet_size, -1}]},
        {<<"a\n">>, [{packet_size, 1 bsl 32}]}, {<<"a\n">>, [{line_delimiter, 256}]}, {<<"a\n">>, [x]}, {<<"a\n">>, a}, {<<0:80>>, []},
        {<<-1:80>>, []}, {<<16#7fffffff:32>>, []}, {<<16#7ffffffb:32>>, []}, {<<16#7ffffffc:32>>, []}]] ++
    [{re, compile, [P, O]} || {P, O} <- [{"(", []}, {"*", []}, {"[a", []}, {"a{2,1}", []}, {"\\", []}, {"[b-a]", []},
        {"(?z)", []}, {"\\1", []}, {"(?#aa", []}, {"a", [foo]}, {"a", [global]}, {a, []}, {"a", bad}]] ++
    [{re, run, [<<B>>, P, [dotall | O]]} || B <- lists:seq(0, 255), {P, O} <- [{"\\w", []}, {"[[:punct:]]", []},
        {"[[:space:]]", []}, {"[[:lower:]]", []}, {"[[:print:]]", []}, {"[[:cntrl:]]", []}, {<<228>>, [caseless]}]] ++
    [{re, run, [S, P, O]} || {S, P, O} <- [
        {<<"a", 228/utf8, "b">>, <<228/utf8>>, [unicode]}, {<<228>>, <<"a">>, [unicode]},
        {"abc", "(", []}, {"abc", "(", [report_errors]}, {"a\r\nb", "a$", [multiline]}, {"a\r\nb", "a$", [multiline, {newline, crlf}]},
        {"a\rb", "^b", [multiline, {newline, anycrlf}]}, {"abc", "b", [{capture, [a | b]}]}, {"abc", "b", [{capture, all, foo}]},
        {"abab", "(?<n>a)|(?<n>b)", [dupnames, {capture, [n], list}]}, {"b", "(?<n>a)|(?<n>b)", [dupnames, {capture, all_names, list}]},
        {"aaa", "a", [{match_limit, -1}]}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaz", "(a+)*b", [{match_limit, 100}, no_start_optimize, report_errors]},
        {<<228/utf8>>, <<"\\w">>, [unicode, ucp]}, {<<196/utf8>>, <<228/utf8>>, [unicode, caseless]}, {<<1:3>>, "a", []}]] ++
    [{binary, F, A} || {F, A} <- [
        {match, [<<"abc">>, []]}, {match, [<<"abc">>, <<>>]}, {match, [<<"abc">>, <<"b">>, [{scope, {3, -2}}]]},
        {match, [<<"abc">>, [<<"b">>, a]]}, {match, [<<"abc">>, {bm, x}]}, {match, [<<1:3>>, <<"b">>]}, {split, [<<>>, <<"b">>]},
        {split, [<<>>, <<"b">>, [trim]]}, {split, [<<"b">>, <<"b">>, [trim]]}, {split, [<<"bb">>, <<"b">>, [foo]]},
        {copy, [<<1>>, -1]}, {copy, [<<1>>, 1 bsl 70]}, {encode_unsigned, [-1]}, {encode_unsigned, [0]},
        {decode_unsigned, [<<>>]}, {decode_unsigned, [<<1>>, foo]}, {longest_common_prefix, [[]]}, {longest_common_prefix, [[a]]},
        {compile_pattern, [<<>>]}, {compile_pattern, [[]]}, {list_to_bin, [<<1>>]}]] ++
    [{erlang, F, A} || {F, A} <- [
        {iolist_to_iovec, [[]]}, {iolist_to_iovec, [[1, <<2>> | <<3>>]]}, {iolist_to_iovec, [<<>>]}, {iolist_to_iovec, [1]},
        {iolist_to_iovec, [<<1:1>>]}, {list_to_binary, [<<1>>]}, {list_to_bitstring, [<<1:1>>]}, {iolist_size, [<<1:1>>]}]] ++
    [{unicode, characters_to_binary, [A, E]} || {A, E} <- [
        {a, utf8}, {[a], utf8}, {[16#d800, a], utf8}, {[1 | a], utf8}, {[1.0], utf8}, {[1 bsl 70], utf8}, {[-1], latin1},
        {<<16#f4, 16#90>>, utf8}, {<<16#ed, 16#a0>>, utf8}, {<<16#e0, 16#80>>, utf8}, {<<16#c0>>, utf8}, {<<16#f8>>, utf8},
        {[<<16#f0>>, <<16#a0>>, <<16#80>>, <<0, 65>>, 3], utf8}, {[<<195>>, [], <<>>], utf8}, {[[[<<195>>]], [], 5], utf8}]].
"#;

fn records() -> Option<Vec<u8>> {
    let dir = std::env::temp_dir().join(format!("purlin-natives-{}", std::process::id()));
    std::fs::create_dir_all(&dir).ok()?;
    std::fs::write(dir.join("purlin_natives.erl"), SCRIPT).ok()?;
    let run = |c: &mut Command| c.current_dir(&dir).status().is_ok_and(|s| s.success());
    let found = Command::new("erlc").arg("-help").output().is_ok();
    let ok = found
        && run(Command::new("erlc").arg("purlin_natives.erl"))
        && run(Command::new("erl").args(["-noshell", "-run", "purlin_natives", "main", "out"]));
    let data = std::fs::read(dir.join("out"));
    let _ = std::fs::remove_dir_all(&dir);
    assert!(ok || !found, "the script failed");
    data.ok()
}

fn native(m: Term, f: Term, arity: usize) -> Option<&'static Bif> {
    let (m, f) = (purlin_term::atom::name(m), purlin_term::atom::name(f));
    tables()
        .into_iter()
        .flatten()
        .find(|b| b.module == m && b.name == f && b.arity as usize == arity)
}

#[test]
fn agree_with_stock() {
    let Some(data) = records() else {
        println!("skipped: no erl and erlc to compare with");
        return;
    };
    let mut cx = Cx::boxed(0);
    let mut d = &data[..];
    let (mut n, mut wrong) = (0, Vec::new());
    while d.len() >= 4 {
        let len = u32::from_be_bytes([d[0], d[1], d[2], d[3]]) as usize;
        let (rec, rest) = d[4..].split_at(len);
        d = rest;
        let (t, _) = decode(rec, &mut *cx, &NoHooks, Default::default()).expect("a term of erl's");
        let Some(&[m, f, args, want]) = t.as_tuple() else {
            panic!("no record")
        };
        let args = args.list_to_vec().expect("a list");
        let Some(b) = native(m, f, args.len()) else {
            panic!("no native for {}", format_term(t, Style::Write, 1000));
        };
        cx.reds = 1 << 40;
        // SAFETY: as many arguments as the arity in the row.
        let got = unsafe { (b.call)(cx.env_ptr(), args.as_ptr()) };
        let (ok, got) = match (got, want.as_tuple()) {
            (Ok(v), Some(&[k, w])) => (k == am::VALUE && compare::eq_exact(v, w), v),
            (Err(e), Some(&[k, w])) => {
                let v = match e {
                    Fail::Badarg => am::BADARG,
                    Fail::SystemLimit => am::SYSTEM_LIMIT,
                    Fail::Raised => cx.exc.value,
                    other => panic!("{other:?}: {}", format_term(t, Style::Write, 1000)),
                };
                (k == am::ERROR && compare::eq_exact(v, w), v)
            }
            _ => (false, am::UNDEFINED),
        };
        n += 1;
        let text = format_term(t, Style::Write, 3000);
        if !ok {
            wrong.push(format!(
                "{text} got {}",
                format_term(got, Style::Write, 3000)
            ));
        }
    }
    println!("{n} cases, {} wrong", wrong.len());
    for w in wrong.iter().take(30) {
        println!("  {}", w.chars().take(500).collect::<String>());
    }
    assert!(n > 1000 && wrong.is_empty());
}
