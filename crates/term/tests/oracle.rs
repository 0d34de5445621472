//! Random terms made by a stock `erl`, with its results for them: bytes, hashes, order and text
//! must agree. Skips if no `erl` is installed.

use purlin_term::etf::{self, NoHooks, decode};
use purlin_term::frag::Fragment;
use purlin_term::{Term, compare, hash, print};
use std::cmp::Ordering;
use std::process::Command;

/// Prints length-prefixed records (4 bytes) to a file: for each term its encodings and properties.
const SCRIPT: &str = r#"
-module(purlin_oracle).
-export([main/1]).
main([Out]) ->
    rand:seed(exsss, {1,2,3}),
    Ts = fixed() ++ [gen(5) || _ <- lists:seq(1, 3000)],
    {ok, F} = file:open(Out, [write, raw, binary, delayed_write]),
    put_(F, integer_to_binary(length(Ts))),
    lists:foldl(fun(T, Prev) ->
        put_(F, term_to_binary(T)),
        put_(F, term_to_binary(T, [{minor_version, 2}])),
        put_(F, term_to_binary(T, [{minor_version, 0}])),
        put_(F, term_to_binary(T, [{compressed, 6}])),
        put_(F, integer_to_binary(erlang:phash2(T, 1 bsl 32))),
        put_(F, integer_to_binary(erlang:phash(T, 1 bsl 32) - 1)),
        put_(F, integer_to_binary(ord(Prev, T))),
        put_(F, unicode:characters_to_binary(case has_big(T) of true -> ""; false -> io_lib:format("~w", [T]) end)),
        T end, 0, Ts),
    file:close(F), halt().
put_(F, B) -> file:write(F, [<<(byte_size(B)):32>>, B]).
ord(A, B) when A < B -> -1;
ord(A, B) when A > B -> 1;
ord(_, _) -> 0.
has_big(M) when is_map(M), map_size(M) > 32 -> true;
has_big(M) when is_map(M) -> has_big(maps:to_list(M));
has_big([H|T]) -> has_big(H) orelse has_big(T);
has_big(T) when is_tuple(T) -> has_big(tuple_to_list(T));
has_big(_) -> false.
fixed() ->
    Fs = [0.0, -0.0, 1.0, 0.1, 1.0e21, 1.0e22, 1.0e15, 1.0e16, 9007199254740991.0, 9007199254740992.0, 5.0e-324,
          1.0e-3, 1.0e-4, 1.0e-5, 1.7976931348623157e308, 123456.789, 100.0, 1.0e6, 1152921504606846976.0,
          576460752303423488.0, -576460752303423488.0, 1.8446744073709552e19],
    Is = [trunc(X) + D || X <- Fs, D <- [-1, 0, 1]],
    lists:append([[A, B] || A <- Fs, B <- Is]) ++ Is ++
    [list_to_atom([229]), list_to_atom([1024]), '', 'a b', 'end', 'A', '\n', list_to_atom("it's"), [], {}, #{}, <<>>,
     lists:duplicate(65535, 1), lists:duplicate(65536, 1), binary_to_list(<<1:2000>>), list_to_tuple(lists:seq(1, 300)),
     maps:from_list([{I, I * I} || I <- lists:seq(1, 1000)]),
     maps:from_list([{I, I} || I <- lists:seq(1, 100)]),
     maps:from_list([{I, I + 1} || I <- lists:seq(1, 100)]),
     maps:from_list([{{I, float(I)}, <<I:16>>} || I <- lists:seq(1, 500)]),
     maps:from_list([{integer_to_list(I), I} || I <- lists:seq(1, 100)]),
     maps:from_list([{<<"k", I:32>>, I} || I <- lists:seq(1, 40)]),
     maps:from_list([{[I, {I}|I bsl 70], I} || I <- lists:seq(1, 60)])].
gen(0) -> leaf();
gen(D) ->
    case rand:uniform(12) of
        1 -> [gen(D - 1) || _ <- lists:seq(1, rand:uniform(4))];
        2 -> [gen(D - 1) | gen(D - 1)];
        3 -> list_to_tuple([gen(D - 1) || _ <- lists:seq(1, rand:uniform(5) - 1)]);
        4 -> maps:from_list([{gen(D - 1), gen(D - 1)} || _ <- lists:seq(1, rand:uniform(6))]);
        5 -> maps:from_list([{key(), leaf()} || _ <- lists:seq(1, 20 + rand:uniform(60))]);
        6 -> [rand:uniform(256) - 1 || _ <- lists:seq(1, rand:uniform(9))] ++ gen(D - 1);
        _ -> leaf()
    end.
key() -> case rand:uniform(3) of 1 -> rand:uniform(1000); 2 -> rand:uniform(1000) / 4; 3 -> {rand:uniform(9), rand:uniform(99)} end.
leaf() ->
    case rand:uniform(14) of
        1 -> rand:uniform(300) - 20;
        2 -> rand:uniform(1 bsl 62) - (1 bsl 61);
        3 -> rand:uniform(1 bsl 200) - (1 bsl 199);
        4 -> rand:uniform() * math:pow(10, rand:uniform(60) - 30);
        5 -> lists:nth(rand:uniform(6), [a, b, ok, 'hello world', list_to_atom([1024, 97]), list_to_atom([228])]);
        6 -> rand:bytes(rand:uniform(100));
        7 -> N = rand:uniform(70), <<(rand:uniform(1 bsl 60)):N>>;
        8 -> <<_:3, B/bits>> = rand:bytes(rand:uniform(90)), B;
        9 -> [];
        10 -> rand:uniform(10) * 1.0;
        11 -> binary_to_term(<<131,88,119,3,$a,$@,$b,(rand:uniform(9)):32,(rand:uniform(3)):32,(rand:uniform(3)):32>>);
        12 -> binary_to_term(<<131,90,3:16,119,3,$a,$@,$b,(rand:uniform(3)):32,(rand:uniform(3)):32,(rand:uniform(3)):32,7:32>>);
        13 -> binary_to_term(<<131,89,119,3,$a,$@,$b,(rand:uniform(9)):32,(rand:uniform(3)):32>>);
        14 -> {rand:uniform(5), 1.0 * rand:uniform(5)}
    end.
"#;

fn records() -> Option<Vec<Vec<u8>>> {
    let dir = std::env::temp_dir().join(format!(
        "purlin-oracle-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::create_dir_all(&dir).ok()?;
    std::fs::write(dir.join("purlin_oracle.erl"), SCRIPT).ok()?;
    let run = |c: &mut Command| c.current_dir(&dir).status().is_ok_and(|s| s.success());
    let ok = run(Command::new("erlc").arg("purlin_oracle.erl"))
        && run(Command::new("erl").args(["-noshell", "-run", "purlin_oracle", "main", "out"]));
    let data = std::fs::read(dir.join("out"));
    let _ = std::fs::remove_dir_all(&dir);
    if !ok {
        return None;
    }
    let data = data.ok()?;
    let mut out = Vec::new();
    let mut d = &data[..];
    while d.len() >= 4 {
        let n = u32::from_be_bytes([d[0], d[1], d[2], d[3]]) as usize;
        out.push(d[4..4 + n].to_vec());
        d = &d[4 + n..];
    }
    Some(out)
}

#[test]
fn agrees_with_stock() {
    let Some(r) = records() else {
        println!("skipped: no erl and erlc to compare with");
        return;
    };
    let mut f = Fragment::new();
    let mut prev = Term::small(0);
    let mut wrong: std::collections::BTreeMap<&str, Vec<String>> = Default::default();
    for (i, row) in r[1..].chunks_exact(8).enumerate() {
        let text = |i: usize| String::from_utf8_lossy(&row[i]).into_owned();
        let mut fail = |what, got: String, want: String| {
            wrong
                .entry(what)
                .or_default()
                .push(format!("{i}: {} got {got} want {want}", text(7)));
        };
        let (t, used) = match decode(&row[0], &mut f, &NoHooks, Default::default()) {
            Ok(x) => x,
            Err(e) => {
                fail("decode", format!("{e:?}"), format!("{:?}", row[0]));
                continue;
            }
        };
        if used != row[0].len() {
            fail("used", used.to_string(), row[0].len().to_string());
        }
        for (col, minor) in [(0, 1), (1, 2), (2, 0)] {
            let got = etf::encode(
                t,
                etf::encode::Options {
                    minor_version: minor,
                    ..Default::default()
                },
            );
            if got != row[col] {
                fail("encode", format!("{got:?}"), format!("{:?}", row[col]));
            }
            match decode(&row[col], &mut f, &NoHooks, Default::default()) {
                // 20 digits do not always read back as the same float in old encodings.
                Ok((u, _)) if minor == 0 || compare::eq_exact(t, u) => {}
                x => fail("decode again", format!("{x:?}"), text(col)),
            }
        }
        match decode(&row[3], &mut f, &NoHooks, Default::default()) {
            Ok((u, n)) if n == row[3].len() && compare::cmp_exact(t, u).is_eq() => {}
            x => fail("compressed", format!("{x:?}"), text(3)),
        }
        let h = hash::phash2(t).to_string();
        if h != text(4) {
            fail("phash2", h, text(4));
        }
        let h = hash::phash(t).to_string();
        if h != text(5) {
            fail("phash", h, text(5));
        }
        let o = match compare::cmp(prev, t) {
            Ordering::Less => "-1",
            Ordering::Equal => "0",
            Ordering::Greater => "1",
        };
        if o != text(6) || compare::eq(prev, t) != (o == "0") {
            fail("order", o.into(), text(6));
        }
        let s = print::format_term(t, print::Style::Write, usize::MAX);
        // Pids, ports and references show the number of a node, which differs between runtimes.
        if !text(7).is_empty() && !text(7).contains(['<', '#']) && s != text(7) {
            fail("text", s, text(7));
        }
        prev = t;
    }
    for (what, v) in &wrong {
        println!("{what}: {} wrong", v.len());
        for l in v.iter().take(5) {
            println!("  {}", l.chars().take(600).collect::<String>());
        }
    }
    assert!(wrong.is_empty());
}

/// Damaged bytes must give an error or another term, never anything worse.
#[test]
fn damage_is_survived() {
    let Some(r) = records() else {
        println!("skipped: no erl and erlc to compare with");
        return;
    };
    let mut x = 88_172_645_463_325_252u64;
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x as usize
    };
    for row in r[1..].chunks_exact(8) {
        for col in &row[..4] {
            let mut b = col.clone();
            if b.len() > 5000 {
                continue;
            }
            for _ in 0..1 + random() % 3 {
                let at = 1 + random() % (b.len() - 1);
                b[at] = random() as u8;
            }
            let mut f = Fragment::new();
            if let Ok((t, _)) = decode(&b, &mut f, &NoHooks, Default::default()) {
                let back = etf::encode(t, Default::default());
                match decode(&back, &mut f, &NoHooks, Default::default()) {
                    Ok((u, _)) => assert!(compare::eq_exact(t, u), "{b:?}"),
                    e => panic!("{b:?}: {e:?}"),
                }
                print::format_term(t, print::Style::Display, 1000);
            }
            let cut = random() % b.len();
            let _ = decode(&b[..cut], &mut f, &NoHooks, Default::default());
        }
    }
}
