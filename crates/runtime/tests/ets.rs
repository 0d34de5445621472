//! Module `ets` against that of an installed `erl`, over generated operations and match specifications; and under
//! threads that use tables at once.

use purlin_runtime::bif::{Bif, TABLES};
use purlin_runtime::cx::{Cx, Fail};
use purlin_runtime::process;
use purlin_term::etf::decode::{NoHooks, decode};
use purlin_term::print::{Style, format_term};
use purlin_term::{Alloc, Term, am, atom, compare};
use std::process::Command;

/// Writes, each behind its length, `{Options, [{Function, Args, Outcome}]}` (operations on one table, whose identity is
/// left out of the arguments) and `{spec, Args, Outcome}` (calls of `erlang:match_spec_test/3`).
const SCRIPT: &str = include_str!("data/ets_oracle.erl");

/// What stock did; `None` where there is no stock. Some generated specifications make it crash or loop: what it has no
/// answer to within a while is left out.
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
    TABLES
        .iter()
        .copied()
        .flatten()
        .find(|b| b.module == m && b.name == f && b.arity as usize == arity)
        .unwrap_or_else(|| panic!("no native {m}:{f}/{arity}"))
}

/// A context in which a process of its own seems to run.
fn context() -> Box<Cx> {
    let mut cx = Cx::boxed(0);
    let (p, _) = process::table()
        .reserve()
        .unwrap_or_else(|_| panic!("full"));
    cx.proc = p;
    cx.reds = 1 << 50;
    cx
}

/// Calls a native, and what it traps to: the value, or class, reason and cause of an error.
fn call(cx: &mut Cx, m: &str, f: &str, args: &[Term]) -> Result<Term, (Term, Term)> {
    let mut args = args.to_vec();
    let mut b = native(m, f, args.len());
    loop {
        // SAFETY: as many arguments as the row's arity.
        match unsafe { (b.call)(cx, args.as_ptr()) } {
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

/// The results of calls that go on with continuations, as one list of lists.
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

/// The keys of a walk with `first` and `next`, or backwards.
fn walk(cx: &mut Cx, t: Term, first: &str, next: &str) -> Result<Term, (Term, Term)> {
    let mut out = Vec::new();
    let mut k = call(cx, "ets", first, &[t])?;
    while k != am::END_OF_TABLE {
        out.push(k);
        k = call(cx, "ets", next, &[t, k])?;
    }
    Ok(cx.list(&out))
}

/// Whether two results of `match_spec_test/3` agree: of errors, which there are.
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
                        if std::env::var_os("ETS_HISTORY").is_some() {
                            println!("{}", format_term(ops, Style::Write, 100_000));
                        }
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
