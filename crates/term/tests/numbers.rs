//! Arithmetic and maps compared with the stock runtime, where there is one: the same generated operations are run by
//! both, and every result must be the same text.

use purlin_term::arith::{self, Arith, ArithError};
use purlin_term::frag::Fragment;
use purlin_term::{Alloc, Term, map};
use std::process::Command;

/// What stock prints for `code` (one line per result); None where there is no stock runtime.
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
        }
    }
    ops.push(a.float(1.5));
    ops.push(a.float(-0.0));
    ops.push(a.float(1e300));
    ops.push(a.float(-123456789012345.675));
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
