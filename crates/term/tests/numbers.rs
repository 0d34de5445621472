//! Arithmetic and maps compared with the stock runtime, if there is one: both run the same
//! generated operations, and every result must be the same text.

use purlin_term::arith::{self, Arith, ArithError};
use purlin_term::bits::{self, BsWriter};
use purlin_term::frag::Fragment;
use purlin_term::{Alloc, Term, map};
use std::process::Command;

/// The output of stock for `code` (one line per result); None if there is no stock runtime.
fn stock(code: &str) -> Option<String> {
    let dir = std::env::temp_dir().join(format!(
        "purlin-numbers-{}-{}",
        std::process::id(),
        code.len()
    ));
    std::fs::create_dir_all(&dir).ok()?;
    let file = dir.join("t.escript");
    std::fs::write(&file, format!("#!/usr/bin/env escript\n{code}")).ok()?;
    let out = Command::new("escript").arg(&file).output();
    let _ = std::fs::remove_dir_all(&dir);
    match out {
        Ok(o) if o.status.success() => Some(String::from_utf8_lossy(&o.stdout).into_owned()),
        Ok(o) => panic!(
            "{}{}",
            String::from_utf8_lossy(&o.stderr),
            String::from_utf8_lossy(&o.stdout)
        ),
        Err(e) => {
            println!("skipped: no escript ({e})");
            None
        }
    }
}

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn show(t: Term) -> String {
    match t.as_float() {
        Some(f) => format!("f{}", f.to_bits()),
        None => arith::print(t, 10).unwrap_or_else(|| "?".into()),
    }
}

fn shown(r: Arith) -> String {
    match r {
        Ok(t) => show(t),
        Err(ArithError::BadArith) => "badarith".into(),
        Err(ArithError::SystemLimit) => "system_limit".into(),
    }
}

#[test]
fn operators() {
    let mut a = Fragment::new();
    let mut r = Rng(88172645463325252);
    let mut ops: Vec<Term> = vec![];
    for v in [
        0,
        1,
        -1,
        2,
        63,
        64,
        65,
        -64,
        10,
        -7,
        (1 << 59) - 1,
        -(1 << 59),
        1 << 59,
        i64::MAX,
        i64::MIN,
    ] {
        ops.push(a.int(v));
    }
    for n in [1, 1, 2, 2, 3, 5, 30, 60] {
        for neg in [false, true] {
            let d: Vec<u64> = (0..n).map(|_| r.next()).collect();
            ops.push(a.big(neg, &d));
            let mut p = vec![0; n];
            p[n - 1] = 1 << (r.next() % 64);
            ops.push(a.big(neg, &p));
            // Products of these have as many bits as both together.
            ops.push(a.big(neg, &vec![u64::MAX; n]));
        }
    }
    ops.push(a.float(1.5));
    ops.push(a.float(-0.0));
    ops.push(a.float(1e300));
    ops.push(a.float(-123_456_789_012_345.67));
    let lit: Vec<String> = ops
        .iter()
        .map(|t| match t.as_float() {
            Some(f) => format!("f({})", f.to_bits()),
            None => show(*t),
        })
        .collect();
    let code = format!(
        "f(B) -> <<F/float>> = <<B:64>>, F.\n\
         sh(F) when is_float(F) -> <<B:64>> = <<F/float>>, [$f, integer_to_list(B)];\n\
         sh(I) -> integer_to_list(I).\n\
         main(_) ->\n L = [{}],\n\
         Bin = ['+','-','*','/','div','rem','band','bor','bxor','bsl','bsr'],\n\
         R1 = [try sh(erlang:Op(X,Y)) catch error:E -> atom_to_list(E) end || X <- L, Y <- L, Op <- Bin],\n\
         R2 = [try sh(erlang:Op(X)) catch error:E -> atom_to_list(E) end || X <- L, Op <- ['-','bnot',abs,float,trunc,round,floor,ceil]],\n\
         R3 = [integer_to_list(X, B) || X <- L, is_integer(X), B <- [2,7,16,36]],\n\
         io:put_chars(lists:join(\"\\n\", R1 ++ R2 ++ R3)).\n",
        lit.join(",")
    );
    let Some(want) = stock(&code) else { return };
    let mut got = vec![];
    type Op = fn(&mut Fragment, Term, Term) -> Arith;
    let bin: [Op; 11] = [
        arith::add,
        arith::sub,
        arith::mul,
        arith::div,
        arith::int_div,
        arith::int_rem,
        arith::band,
        arith::bor,
        arith::bxor,
        arith::bsl,
        arith::bsr,
    ];
    for &x in &ops {
        for &y in &ops {
            for op in bin {
                got.push(shown(op(&mut a, x, y)));
            }
        }
    }
    use arith::Rounding::*;
    for &x in &ops {
        got.push(shown(arith::neg(&mut a, x)));
        got.push(shown(arith::bnot(&mut a, x)));
        got.push(shown(arith::abs(&mut a, x)));
        got.push(arith::to_f64(x).map_or("badarg".into(), |f| format!("f{}", f.to_bits())));
        for how in [Trunc, Round, Floor, Ceil] {
            got.push(arith::to_integer(&mut a, x, how).map_or("badarg".into(), show));
        }
    }
    for &x in ops.iter().filter(|x| x.is_integer()) {
        if let Some(v) = x.as_small() {
            assert_eq!(v.to_string().as_bytes(), arith::decimal(v, &mut [0; 20]));
        }
        for base in [2, 7, 16, 36] {
            let s = arith::print(x, base).unwrap();
            let back = arith::parse(&mut a, s.as_bytes(), base).unwrap();
            assert_eq!(show(back), show(x));
            got.push(s);
        }
    }
    let want: Vec<&str> = want.lines().collect();
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert_eq!(
            g,
            w,
            "case {i}: {:?}",
            lit.get(i / 11 / ops.len()).zip(lit.get(i / 11 % ops.len()))
        );
    }
}

fn key(a: &mut Fragment, kind: usize, i: i64) -> Term {
    match kind {
        0 => a.int(i * 7919 - 500),
        1 => a.binary(format!("k{i}").as_bytes()),
        2 => {
            let s = a.string(&format!("s{i}"));
            let f = a.float(i as f64 / 2.0);
            let b = a.int(i << 40);
            let v = [Term::small(i), s, f, b];
            a.tuple(&v)
        }
        _ => a.float(i as f64),
    }
}

#[test]
fn map_order() {
    let code = "k(0,I) -> I*7919-500; k(1,I) -> iolist_to_binary([\"k\",integer_to_list(I)]);\n\
        k(2,I) -> {I,\"s\" ++ integer_to_list(I),I/2,I bsl 40}; k(3,I) -> float(I).\n\
        o(M) -> io:put_chars([[[integer_to_list(V),$ ] || V <- maps:values(M)],$\\n]).\n\
        main(_) -> [begin M = maps:from_list([{k(K,I),I} || I <- lists:seq(1,N)]), o(M),\n\
        M2 = lists:foldl(fun(I,A) -> maps:remove(k(K,I),A) end, M, lists:seq(1,N,3)), o(M2),\n\
        o(maps:merge(M2, maps:from_list([{k(K,I),-I} || I <- lists:seq(N-5,N+N div 2)]))) end\n\
        || K <- [0,1,2,3], N <- [5,31,32,33,48,49,1000,20000]].\n";
    let Some(want) = stock(code) else { return };
    let mut want = want.lines();
    let mut a = Fragment::new();
    let mut check = |a: &mut Fragment, m: Term, what: &str| {
        let got: String = map::values(a, m)
            .list_iter()
            .map(|v| format!("{} ", v.small_value()))
            .collect();
        assert!(Some(got.as_str()) == want.next(), "{what}");
        assert_eq!(map::iter(m).count(), map::size(m), "{what}");
    };
    for kind in 0..4 {
        for n in [5i64, 31, 32, 33, 48, 49, 1000, 20000] {
            let what = format!("kind {kind} n {n}");
            let pairs: Vec<(Term, Term)> = (1..=n)
                .map(|i| (key(&mut a, kind, i), Term::small(i)))
                .collect();
            let m = map::from_pairs(&mut a, &pairs);
            check(&mut a, m, &what);
            let mut one = a.flatmap(&[], &[]);
            for &(k, v) in &pairs {
                one = map::put(&mut a, one, k, v);
            }
            assert!(map::iter(m).eq(map::iter(one)), "{what}");
            for &(k, v) in &pairs {
                let k2 = purlin_term::copy::copy(k, &mut a);
                assert_eq!(map::get(m, k2), Some(v), "{what}");
            }
            let mut less = m;
            for i in (1..=n).step_by(3) {
                less = map::remove(&mut a, less, pairs[i as usize - 1].0);
            }
            check(&mut a, less, &what);
            let more: Vec<(Term, Term)> = (n - 5..=n + n / 2)
                .map(|i| (key(&mut a, kind, i), Term::small(-i)))
                .collect();
            let more = map::from_pairs(&mut a, &more);
            let merged = map::merge(&mut a, less, more);
            check(&mut a, merged, &what);
            // Stepping through gives the same pairs as iterating.
            let mut path = Term::small(0);
            let mut seen = vec![];
            loop {
                let (mut t, _) =
                    map::next(&mut a, path, merged, map::NextKind::Iterator, 50).unwrap();
                while let Some(&[k, v, rest]) = t.as_tuple() {
                    seen.push((k, v));
                    t = rest;
                }
                match t.as_cons() {
                    Some((p, _)) => path = p,
                    None => break,
                }
            }
            assert!(map::iter(merged).eq(seen), "{what}");
        }
    }
}

#[test]
fn bit_segments() {
    let mut r = Rng(0x1234_5678_9abc_def1);
    let data: Vec<u8> = (0..64).map(|_| r.next() as u8).collect();
    let text: Vec<String> = data.iter().map(u8::to_string).collect();
    let code = format!(
        "sh(F) when is_float(F) -> <<B:64>> = <<F/float>>, [$f, integer_to_list(B)];\n\
         sh(I) when is_integer(I) -> integer_to_list(I); sh(A) when is_atom(A) -> atom_to_list(A);\n\
         sh(B) -> [[integer_to_list(X),$,] || <<X>> <= <<B/bits, 0:((-bit_size(B)) band 7)>>].\n\
         g(D,P,N) -> <<_:P,A:N,_/bits>> = D, <<_:P,B:N/little,_/bits>> = D, <<_:P,C:N/signed,_/bits>> = D,\n\
         <<_:P,E:N/signed-little,_/bits>> = D, [A,B,C,E,<<5:3,A:N>>,<<5:3,A:N/little>>,<<1:(P rem 8),C:(N+9)>>,<<1:(P rem 8),C:(N+9)/little>>].\n\
         f(D,P,N) -> [case D of <<_:P,F:N/float,_/bits>> -> F; _ -> none end, case D of <<_:P,G:N/float-little,_/bits>> -> G; _ -> none end].\n\
         e(F,N) -> try <<1:3,F:N/float>> catch error:_ -> badarg end.\n\
         main(_) -> D = <<{}>>,\n\
         R1 = [g(D,P,N) || P <- lists:seq(0,17), N <- lists:seq(0,300,3) ++ lists:seq(1,80)],\n\
         R2 = [f(D,P,N) || P <- lists:seq(0,300), N <- [0,16,32,64]],\n\
         R3 = [e(F,N) || F <- [0,1,-1,65519,65520,65503.9,0.1,1.0e-7,5.9e-8,2.9e-8,6.1e-5,1.0e39,-3.4e38,2049,2051,1 bsl 70,1 bsl 2000,a], N <- [16,32,64]],\n\
         R4 = [[<<1:3,C/utf8>>,<<1:3,C/utf16>>,<<1:3,C/utf16-little>>,<<1:3,C/utf32>>,<<1:3,C/utf32-little>>] || C <- [0,127,128,2047,2048,16#D7FF,16#E000,16#FFFF,16#10000,16#10FFFF]],\n\
         R5 = [case <<X:32,0:8>> of <<C/utf8,_/bits>> -> C; _ -> none end || X <- L] ++ [case <<X:32>> of <<C/utf16,_/bits>> -> C; _ -> none end || X <- L] ++ [case <<X:32>> of <<C/utf32>> -> C; _ -> none end || X <- L],\n\
         io:put_chars(lists:join(\"\\n\", [sh(X) || X <- lists:flatten([R1,R2,R3,R4,R5])])).\n",
        text.join(",")
    );
    let tries: Vec<u32> = [
        0xC080_0000u32,
        0xC2BF_0000,
        0xE080_8000,
        0xE0A0_8000,
        0xEDA0_8000,
        0xED9F_BF00,
        0xF080_8080,
        0xF090_8080,
        0xF48F_BFBF,
        0xF490_8080,
        0xF5FF_FFFF,
        0x8000_0000,
        0xC27F_0000,
        0xD800_DC00,
        0xDBFF_DFFF,
        0xD800_0000,
        0xDC00_0000,
        0x0041_0000,
        0x41,
        0xD800,
        0x10FFFF,
        0x110000,
        0xFFFE,
        0xEFBF_BE00,
    ]
    .to_vec();
    let list: Vec<String> = tries.iter().map(u32::to_string).collect();
    let code = code.replace(
        "main(_) ->",
        &format!("main(_) -> L = [{}],", list.join(",")),
    );
    let Some(want) = stock(&code) else { return };
    let mut a = Fragment::new();
    let a = &mut a;
    let p = data.as_ptr();
    let mut got = vec![];
    let dump = |t: Term| {
        let v = t.as_bits().unwrap().shifted();
        v.iter().map(|b| format!("{b},")).collect::<String>()
    };
    let fl = |f: Option<f64>| f.map_or("none".to_string(), |f| format!("f{}", f.to_bits()));
    for pos in 0..=17usize {
        for n in (0..=300).step_by(3).chain(1..=80usize) {
            // SAFETY: 64 bytes hold 317 bits.
            let v = [(false, false), (false, true), (true, false), (true, true)]
                .map(|(s, l)| unsafe { bits::get_integer(a, p, pos, n, s, l).unwrap() });
            got.extend(v.map(show));
            for (lead, k, x, n, little) in [
                (5, 3, v[0], n, false),
                (5, 3, v[0], n, true),
                (1, pos % 8, v[2], n + 9, false),
                (1, pos % 8, v[2], n + 9, true),
            ] {
                let mut w = BsWriter::new(a, k + n);
                assert!(
                    w.integer(Term::small(lead), k, false)
                        && w.integer(x, n, little)
                        && w.left() == 0
                );
                got.push(dump(w.term));
            }
        }
    }
    for pos in 0..=300 {
        for n in [0, 16, 32, 64] {
            for little in [false, true] {
                // SAFETY: 364 bits are there.
                got.push(fl(unsafe { bits::get_float(p, pos, n, little) }));
            }
        }
    }
    let mut xs: Vec<Term> = [0, 1, -1, 65519, 65520].map(Term::small).to_vec();
    for f in [
        65503.9, 0.1, 1.0e-7, 5.9e-8, 2.9e-8, 6.1e-5, 1.0e39, -3.4e38,
    ] {
        xs.push(a.float(f));
    }
    xs.extend([2049, 2051].map(Term::small));
    for n in [70, 2000] {
        xs.push(arith::bsl(a, Term::small(1), Term::small(n)).unwrap());
    }
    xs.push(purlin_term::am::NONE);
    for x in xs {
        for n in [16, 32, 64] {
            let mut w = BsWriter::new(a, n + 3);
            w.integer(Term::small(1), 3, false);
            got.push(if w.float(x, n, false) {
                dump(w.term)
            } else {
                "badarg".into()
            });
        }
    }
    for c in [
        0, 127, 128, 2047, 2048, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF,
    ] {
        for (n, kind) in [
            (bits::utf8_bits(c), 0),
            (bits::utf16_bits(c), 1),
            (bits::utf16_bits(c), 2),
            (32, 3),
            (32, 4),
        ] {
            let mut w = BsWriter::new(a, n + 3);
            w.integer(Term::small(1), 3, false);
            assert!(match kind {
                0 => w.utf8(c),
                1 | 2 => w.utf16(c, kind == 2),
                _ => w.utf32(c, kind == 4),
            });
            got.push(dump(w.term));
        }
    }
    let ch = |c: Option<u32>| c.map_or("none".to_string(), |c| c.to_string());
    let b: Vec<[u8; 4]> = tries.iter().map(|t| t.to_be_bytes()).collect();
    // SAFETY: four bytes each.
    unsafe {
        got.extend(
            b.iter()
                .map(|b| ch(bits::get_utf8(b.as_ptr(), 0, 32).map(|c| c.0))),
        );
        got.extend(
            b.iter()
                .map(|b| ch(bits::get_utf16(b.as_ptr(), 0, 32, false).map(|c| c.0))),
        );
        got.extend(
            b.iter()
                .map(|b| ch(bits::get_utf32(b.as_ptr(), 0, 32, false))),
        );
    }
    let want: Vec<&str> = want.split('\n').collect();
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(&want).enumerate() {
        assert_eq!(g, w, "case {i}");
    }
}

#[test]
fn appending() {
    let mut a = Fragment::new();
    let mut b = a.binary(b"x");
    let mut all = vec![b'x'];
    let mut earlier = vec![];
    for i in 0..3000u32 {
        let (t, dst, pos) = bits::append(&mut a, b, 8, 8).unwrap();
        // SAFETY: append made room for 8 bits there.
        unsafe { bits::write_bits(dst, pos, 8, i as u64) };
        earlier.push((b, all.len()));
        b = t;
        all.push(i as u8);
    }
    assert_eq!(b.as_binary().unwrap(), all.as_slice());
    // A second append to an older binary must not touch the newer ones.
    for &(old, n) in earlier.iter().step_by(97) {
        let (t, dst, pos) = bits::append(&mut a, old, 5, 8).unwrap();
        // SAFETY: as above.
        unsafe { bits::write_bits(dst, pos, 5, 31) };
        assert_eq!(t.as_bits().unwrap().bit_len, n * 8 + 5);
        assert_eq!(old.as_binary().unwrap(), &all[..n]);
        assert!(bits::append(&mut a, t, 8, 8).is_err());
    }
    assert_eq!(b.as_binary().unwrap(), all.as_slice());
    let p = bits::init_writable(&mut a, 0);
    for i in 0..2000u64 {
        let (t, dst, pos) = bits::private_append(&mut a, p, 12, 1).unwrap();
        // SAFETY: as above.
        unsafe { bits::write_bits(dst, pos, 12, i) };
        // The term itself grows, even if the block under it was replaced by a larger one.
        assert_eq!(t, p);
    }
    let v = p.as_bits().unwrap();
    assert_eq!(v.bit_len, 24000);
    for i in 0..2000 {
        // SAFETY: 24000 bits are there.
        assert_eq!(unsafe { bits::read_bits(v.base, i * 12, 12) }, i as u64);
    }
    // SAFETY: none of the terms is used after this.
    unsafe { a.destroy() };
}
