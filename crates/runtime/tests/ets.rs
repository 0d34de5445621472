//! Compares module `ets` with that of an installed `erl`, over generated operations and match
//! specifications, and tests tables that several threads use at once.

use purlin_runtime::cx::{Cx, Fail};
use purlin_runtime::natives::{Bif, tables};
use purlin_runtime::process;
use purlin_term::etf::decode::{NoHooks, decode};
use purlin_term::print::{Style, format_term};
use purlin_term::{Alloc, Term, am, atom, compare};
use std::process::Command;

/// A script that writes two kinds of records, each preceded by its length: `{Options, [{Function,
/// Args, Outcome}]}` has operations on one table, which is left out of the arguments; `{spec, Args,
/// Outcome}` has calls of `erlang:match_spec_test/3`.
const SCRIPT: &str = include_str!("data/ets_oracle.erl");

/// The records of stock; `None` without a stock. Some generated specifications make it crash or
/// loop, so those without an answer within a time limit are left out.
fn records() -> Option<Vec<u8>> {
    let dir = std::env::temp_dir().join(format!("purlin-ets-{}", std::process::id()));
    std::fs::create_dir_all(&dir).ok()?;
    std::fs::write(dir.join("ets_oracle.erl"), SCRIPT).ok()?;
    let mut erlc = Command::new("erlc");
    if !erlc
        .current_dir(&dir)
        .arg("ets_oracle.erl")
        .status()
        .ok()?
        .success()
    {
        panic!("the script does not compile");
    }
    let mut all = Vec::new();
    for what in ["tables", "large", "table", "trace"] {
        for seed in if what == "large" { 1..=1 } else { 1..=4 } {
            let out = dir.join("out");
            let _ = std::fs::remove_file(&out);
            let mut c = Command::new("timeout");
            c.args(["20", "erl", "-noshell", "-run", "ets_oracle", "main", what]);
            let ran = c
                .args([&seed.to_string(), "out"])
                .current_dir(&dir)
                .status();
            match std::fs::read(&out) {
                Ok(d) if ran.is_ok_and(|s| s.success()) => all.extend(d),
                _ => println!("stock had no answer to {what} {seed}"),
            }
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    Some(all)
}

fn native(m: &str, f: &str, arity: usize) -> &'static Bif {
    tables()
        .into_iter()
        .flatten()
        .find(|b| b.module == m && b.name == f && b.arity as usize == arity)
        .unwrap_or_else(|| panic!("no native {m}:{f}/{arity}"))
}

/// A context in which a process of its own appears to run.
fn context() -> Box<Cx> {
    let mut cx = Cx::boxed(0);
    let (p, _) = process::table()
        .reserve(None)
        .unwrap_or_else(|_| panic!("full"));
    // SAFETY: a reserved cell, which is never given back.
    unsafe { cx.proc.set(p) };
    cx.reds = 1 << 50;
    cx
}

/// Calls a native and what it traps to. Returns the value, or class, reason and cause of an error.
fn call(cx: &mut Cx, m: &str, f: &str, args: &[Term]) -> Result<Term, (Term, Term)> {
    let mut args = args.to_vec();
    let mut b = native(m, f, args.len());
    loop {
        // SAFETY: as many arguments as the arity in the row.
        match unsafe { (b.call)(cx.env_ptr(), args.as_ptr()) } {
            Ok(t) => return Ok(t),
            Err(Fail::Trap) => {
                // SAFETY: exports are never freed.
                let e = unsafe { &*cx.trap.target };
                args = cx.trap.args[..cx.trap.argc].to_vec();
                b = native(atom::name(e.module), atom::name(e.function), args.len());
            }
            Err(Fail::Badarg) => return Err((am::BADARG, am::NONE)),
            Err(Fail::SystemLimit) => return Err((am::SYSTEM_LIMIT, am::NONE)),
            Err(Fail::Raised) => {
                let cause = if cx.exc.cause == Term::NON_VALUE {
                    am::NONE
                } else {
                    cx.exc.cause
                };
                return Err((cx.exc.value, cause));
            }
            Err(e) => panic!("{e:?}"),
        }
    }
}

fn outcome(cx: &mut Cx, r: Result<Term, (Term, Term)>) -> Term {
    match r {
        Ok(t) => cx.tuple(&[am::VALUE, t]),
        Err((reason, cause)) => cx.tuple(&[am::ERROR, reason, cause]),
    }
}

/// The results of calls with continuations, as a list of lists.
fn chunks(cx: &mut Cx, f: &str, args: &[Term]) -> Result<Term, (Term, Term)> {
    let mut out = Vec::new();
    let mut r = call(cx, "ets", f, args)?;
    loop {
        match r.as_tuple() {
            Some(&[l, c]) => {
                out.push(l);
                r = call(cx, "ets", f, &[c])?;
            }
            _ => {
                out.push(r);
                return Ok(cx.list(&out));
            }
        }
    }
}

/// The keys of a traversal by `first` and `next`, or backwards.
fn walk(cx: &mut Cx, t: Term, first: &str, next: &str) -> Result<Term, (Term, Term)> {
    let mut out = Vec::new();
    let mut k = call(cx, "ets", first, &[t])?;
    while k != am::END_OF_TABLE {
        out.push(k);
        k = call(cx, "ets", next, &[t, k])?;
    }
    Ok(cx.list(&out))
}

/// Whether two results of `match_spec_test/3` agree; of errors, whether both have the same.
fn same_test(a: Term, b: Term) -> bool {
    let errors = |t: Term| {
        let [_, r] = *t.as_tuple()? else { return None };
        let [am::ERROR, l] = *r.as_tuple()? else {
            return None;
        };
        let mut texts: Vec<String> = l.list_to_vec()?.into_iter().map(show).collect();
        texts.sort();
        texts.dedup();
        Some(texts)
    };
    compare::eq_exact(a, b) || errors(a).is_some() && errors(a) == errors(b)
}

fn show(t: Term) -> String {
    format_term(t, Style::Write, 4000)
        .chars()
        .take(600)
        .collect()
}

#[test]
fn agrees_with_stock() {
    let Some(data) = records() else {
        println!("skipped: no erl and erlc to compare with");
        return;
    };
    let mut d = &data[..];
    let (mut n, mut wrong) = (0, Vec::new());
    while d.len() >= 4 {
        let mut cx = context();
        let len = u32::from_be_bytes([d[0], d[1], d[2], d[3]]) as usize;
        let (rec, rest) = d[4..].split_at(len);
        d = rest;
        let (t, _) = decode(rec, &mut *cx, &NoHooks, Default::default()).expect("a term of erl's");
        match t.as_tuple() {
            Some(&[_, args, want]) => {
                let args = args.list_to_vec().expect("a list");
                let got = call(&mut cx, "erlang", "match_spec_test", &args);
                let got = outcome(&mut cx, got);
                n += 1;
                if !same_test(got, want) {
                    let args = cx.list(&args);
                    wrong.push(format!(
                        "match_spec_test {} got {} want {}",
                        show(args),
                        show(got),
                        show(want)
                    ));
                }
            }
            Some(&[options, ops]) => {
                let name = atom::intern("t");
                let tab = call(&mut cx, "ets", "new", &[name, options]).expect("a table");
                for op in ops.list_to_vec().expect("a list") {
                    let Some(&[f, args, want]) = op.as_tuple() else {
                        panic!("no operation")
                    };
                    let f = atom::name(f);
                    let mut args = args.list_to_vec().expect("a list");
                    args.insert(0, tab);
                    let got = match f.strip_prefix("chunks_") {
                        Some(f) => chunks(&mut cx, f, &args),
                        None if f == "walk" => walk(&mut cx, tab, "first", "next"),
                        None if f == "walk_back" => walk(&mut cx, tab, "last", "prev"),
                        None => call(&mut cx, "ets", f, &args),
                    };
                    let got = outcome(&mut cx, got);
                    n += 1;
                    if !compare::eq_exact(got, want) {
                        wrong.push(format!(
                            "{} {} got {} want {}",
                            show(options),
                            show(op),
                            show(got),
                            show(want)
                        ));
                        break;
                    }
                }
                let _ = call(&mut cx, "ets", "delete", &[tab]);
            }
            _ => panic!("no record"),
        }
    }
    println!("{n} cases, {} wrong", wrong.len());
    for w in wrong.iter().take(30) {
        println!("  {w}");
    }
    assert!(n > 10_000 && wrong.is_empty());
}

/// A table id for contexts of other threads.
fn public(cx: &mut Cx, options: &[Term], name: &str) -> Term {
    let options = cx.list(options);
    call(cx, "ets", "new", &[atom::intern(name), options]).expect("a table")
}

/// Runs threads that insert, delete, take, update and traverse at once. Objects that only one
/// thread touches must be as it left them, counters must lose no increment, and lists must be seen
/// whole or not at all.
fn stress(options: &[Term], name: &'static str) {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 4000;
    let named = atom::intern("named_table");
    let mut cx = context();
    let mut all = options.to_vec();
    all.extend([named, am::PUBLIC]);
    let tab = public(&mut cx, &all, name);
    let counter = cx.tuple(&[atom::intern("counter"), Term::small(0)]);
    call(&mut cx, "ets", "insert", &[tab, counter]).expect("inserted");
    std::thread::scope(|s| {
        for th in 0..THREADS {
            s.spawn(move || {
                let cx = &mut *context();
                let tab = atom::intern(name);
                let spec = |cx: &mut Cx| {
                    let head = cx.tuple(&[atom::intern("$1"), atom::intern("pair")]);
                    let body = cx.list(&[atom::intern("$1")]);
                    let clause = cx.tuple(&[head, purlin_term::NIL, body]);
                    cx.list(&[clause])
                };
                for i in 0..ROUNDS {
                    let key = Term::small(i * THREADS + th);
                    let big = cx.binary(&[th as u8; 100]);
                    let o = cx.tuple(&[key, big]);
                    call(cx, "ets", "insert", &[tab, o]).expect("inserted");
                    let got = call(cx, "ets", "lookup", &[tab, key]).expect("found");
                    let want = cx.list(&[o]);
                    assert!(compare::eq_exact(got, want));
                    if i % 3 != 0 {
                        let f = if i % 3 == 1 { "delete" } else { "take" };
                        call(cx, "ets", f, &[tab, key]).expect("deleted");
                        let got = call(cx, "ets", "member", &[tab, key]).expect("asked");
                        assert_eq!(got, am::FALSE);
                    }
                    let one = Term::small(1);
                    let c = atom::intern("counter");
                    call(cx, "ets", "update_counter", &[tab, c, one]).expect("counted");
                    if i % 4 == 0 {
                        // Two keys that exist together or not at all, while others make the table
                        // grow.
                        let pair = [Term::small(-1), Term::small(-2)]
                            .map(|k| cx.tuple(&[k, atom::intern("pair")]));
                        let pair = cx.list(&pair);
                        call(cx, "ets", "insert", &[tab, pair]).expect("inserted");
                    }
                    if i % 50 == 0 {
                        let spec = spec(cx);
                        call(cx, "ets", "select", &[tab, spec]).expect("selected");
                        call(cx, "ets", "safe_fixtable", &[tab, am::TRUE]).expect("fixed");
                        let mut k = call(cx, "ets", "first", &[tab]).expect("a key");
                        for _ in 0..200 {
                            if k == am::END_OF_TABLE {
                                break;
                            }
                            // The table is fixed: the traversal can continue from a key that
                            // existed.
                            k = call(cx, "ets", "next", &[tab, k]).expect("the next key");
                        }
                        call(cx, "ets", "safe_fixtable", &[tab, am::FALSE]).expect("freed");
                    }
                    // The terms that the natives made are no longer needed.
                    if i % 256 == 255 {
                        // SAFETY: no term made so far is used below.
                        unsafe { purlin_term::gc::destroy(&mut cx.heap) };
                        cx.heap = purlin_term::heap::Heap::empty();
                    }
                }
            });
        }
    });
    let got = call(
        &mut cx,
        "ets",
        "lookup_element",
        &[tab, atom::intern("counter"), Term::small(2)],
    );
    assert_eq!(got, Ok(Term::small(THREADS * ROUNDS)));
    let left = (0..THREADS * ROUNDS)
        .filter(|k| (k / THREADS) % 3 == 0)
        .count();
    let size = call(&mut cx, "ets", "info", &[tab, am::SIZE]).expect("a size");
    assert_eq!(size, Term::small(left as i64 + 3));
    let fixed = call(&mut cx, "ets", "info", &[tab, atom::intern("fixed")]);
    assert_eq!(fixed, Ok(am::FALSE));
    call(&mut cx, "ets", "delete", &[tab]).expect("deleted");
}

#[test]
fn threads_share_a_table() {
    stress(&[], "stress_set");
    stress(&[am::ORDERED_SET], "stress_ordered");
    let mut cx = context();
    let fine = cx.tuple(&[atom::intern("write_concurrency"), am::TRUE]);
    stress(&[fine], "stress_fine");
}

/// A thread empties a table while others split its buckets.
#[test]
fn threads_fill_a_table_that_is_emptied() {
    const KEYS: i64 = 3000;
    let mut cx = context();
    let fine = cx.tuple(&[atom::intern("write_concurrency"), am::TRUE]);
    for options in [vec![], vec![fine]] {
        let named = atom::intern("named_table");
        let mut all = options.clone();
        all.extend([named, am::PUBLIC]);
        let tab = public(&mut cx, &all, "is_emptied");
        let over = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|s| {
            for th in 0..2 {
                let over = &over;
                s.spawn(move || {
                    let tab = atom::intern("is_emptied");
                    for round in 0..10 {
                        let cx = &mut *context();
                        for i in 0..KEYS {
                            let o = cx.tuple(&[Term::small(2 * i + th), am::OK]);
                            call(cx, "ets", "insert", &[tab, o]).expect("inserted");
                        }
                        let many: Vec<Term> = (0..400)
                            .map(|i| cx.tuple(&[Term::small(-i - round), am::OK]))
                            .collect();
                        let many = cx.list(&many);
                        call(cx, "ets", "insert", &[tab, many]).expect("inserted");
                    }
                    over.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                });
            }
            while over.load(std::sync::atomic::Ordering::Relaxed) < 2 {
                call(&mut cx, "ets", "internal_delete_all", &[tab, am::UNDEFINED])
                    .expect("emptied");
                std::thread::yield_now();
            }
        });
        call(&mut cx, "ets", "internal_delete_all", &[tab, am::UNDEFINED]).expect("emptied");
        for i in 0..KEYS {
            let o = cx.tuple(&[Term::small(i), am::OK]);
            call(&mut cx, "ets", "insert", &[tab, o]).expect("inserted");
        }
        for i in 0..KEYS {
            let got = call(&mut cx, "ets", "member", &[tab, Term::small(i)]);
            assert_eq!(got, Ok(am::TRUE));
        }
        let size = call(&mut cx, "ets", "info", &[tab, am::SIZE]);
        assert_eq!(size, Ok(Term::small(KEYS)));
        call(&mut cx, "ets", "delete", &[tab]).expect("deleted");
    }
}

/// Tables are created and deleted while others use them by name.
#[test]
fn threads_meet_tables_that_go() {
    let go = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                let mut n = 0;
                while go.load(std::sync::atomic::Ordering::Relaxed) || n < 1000 {
                    let cx = &mut *context();
                    let tab = atom::intern("comes_and_goes");
                    for i in 0..100 {
                        let o = cx.tuple(&[Term::small(i), am::OK]);
                        let r = call(cx, "ets", "insert", &[tab, o]);
                        assert!(matches!(r, Ok(am::TRUE) | Err((am::BADARG, _))));
                        let r = call(cx, "ets", "match_object", &[tab, am::UNDERSCORE]);
                        assert!(matches!(r, Ok(_) | Err((am::BADARG, _))));
                    }
                    n += 100;
                }
            });
        }
        s.spawn(|| {
            for _ in 0..2000 {
                let cx = &mut *context();
                let options = [am::PUBLIC, atom::intern("named_table")];
                let tab = public(cx, &options, "comes_and_goes");
                std::thread::yield_now();
                call(cx, "ets", "delete", &[tab]).expect("deleted");
            }
            go.store(false, std::sync::atomic::Ordering::Relaxed);
        });
    });
}
