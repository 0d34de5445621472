//! Compares natives with an installed `erl`: a module there computes cases and their outcomes, and
//! the natives here are called with the same arguments.

use purlin_runtime::code::{self, CodeHooks};
use purlin_runtime::cx::{Cx, Fail};
use purlin_runtime::natives::{Bif, tables};
use purlin_term::atom::intern;
use purlin_term::etf::decode::decode;
use purlin_term::print::{Style, format_term};
use purlin_term::{Term, am, compare};
use std::process::Command;

/// A module that calls `cases/0` of the script and writes `{M, F, Args, Outcome}` records, each
/// preceded by its length.
const DRIVER: &str = r#"
-module(purlin_stock_driver).
-export([main/1]).
main([Module, File]) ->
    rand:seed(exsss, {1, 2, 3}),
    Out = [begin
        R = try {value, apply(M, F, A)} catch _:E -> {error, E} end,
        B = term_to_binary({M, F, A, R}),
        <<(byte_size(B)):32, B/binary>>
    end || {M, F, A} <- (list_to_atom(Module)):cases()],
    ok = file:write_file(File, Out),
    halt().
"#;

fn records(module: &str, script: &str) -> Option<Vec<u8>> {
    let dir = std::env::temp_dir().join(format!("{module}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).ok()?;
    let file = format!("{module}.erl");
    std::fs::write(dir.join(&file), script).ok()?;
    std::fs::write(dir.join("purlin_stock_driver.erl"), DRIVER).ok()?;
    let run = |c: &mut Command| c.current_dir(&dir).status().is_ok_and(|s| s.success());
    let found = Command::new("erlc").arg("-help").output().is_ok();
    let start = [
        "-noshell",
        "-run",
        "purlin_stock_driver",
        "main",
        module,
        "out",
    ];
    let ok = found
        && run(Command::new("erlc").args([&file, "purlin_stock_driver.erl"]))
        && run(Command::new("erl").args(start));
    let data = std::fs::read(dir.join("out"));
    let _ = std::fs::remove_dir_all(&dir);
    assert!(ok || !found, "the script failed");
    data.ok()
}

/// The native of that name.
pub fn native(m: &str, f: &str, arity: usize) -> Option<&'static Bif> {
    tables()
        .into_iter()
        .flatten()
        .find(|b| b.module == m && b.name == f && b.arity as usize == arity)
}

/// The outcome of a native: its value, or the class and reason of an exception.
pub fn call(cx: &mut Cx, b: &Bif, args: &[Term]) -> Result<Term, Term> {
    assert_eq!(args.len(), b.arity as usize);
    // SAFETY: as many arguments as the arity in the row.
    let got = unsafe { (b.call)(cx.env_ptr(), args.as_ptr()) };
    got.map_err(|e| match e {
        Fail::Badarg => am::BADARG,
        Fail::Badarith => am::BADARITH,
        Fail::SystemLimit => am::SYSTEM_LIMIT,
        Fail::Raised => cx.exc.value,
        other => panic!("{}:{}: {other:?}", b.module, b.name),
    })
}

/// Checks all cases of `script`, which exports `cases/0`; there must be at least `least`.
pub fn compare(module: &str, script: &str, least: usize) {
    let Some(data) = records(module, script) else {
        println!("skipped: no erl and erlc to compare with");
        return;
    };
    // Stock has loaded `lists`, whose functions a safe decoder knows.
    code::export(intern("lists"), intern("map"), 2);
    code::code_has_changed();
    let mut cx = Cx::boxed(0);
    let mut d = &data[..];
    let (mut n, mut wrong) = (0, Vec::new());
    while d.len() >= 4 {
        let len = u32::from_be_bytes([d[0], d[1], d[2], d[3]]) as usize;
        let (rec, rest) = d[4..].split_at(len);
        d = rest;
        let (t, _) =
            decode(rec, &mut *cx, &CodeHooks, Default::default()).expect("a term of erl's");
        let Some(&[m, f, args, want]) = t.as_tuple() else {
            panic!("no record")
        };
        let args = args.list_to_vec().expect("a list");
        let name = purlin_term::atom::name;
        let text = format_term(t, Style::Write, 3000);
        let Some(b) = native(name(m), name(f), args.len()) else {
            panic!("no native for {text}");
        };
        cx.reds = 1 << 40;
        let got = call(&mut cx, b, &args);
        let ok = match (got, want.as_tuple()) {
            (Ok(v), Some(&[k, w])) => k == am::VALUE && compare::eq_exact(v, w),
            (Err(v), Some(&[k, w])) => k == am::ERROR && compare::eq_exact(v, w),
            _ => false,
        };
        n += 1;
        if !ok {
            let got = format_term(got.unwrap_or_else(|e| e), Style::Write, 3000);
            wrong.push(format!("{text} got {got}"));
        }
    }
    println!("{n} cases, {} wrong", wrong.len());
    for w in wrong.iter().take(40) {
        println!("  {}", w.chars().take(600).collect::<String>());
    }
    assert!(n > least && wrong.is_empty());
}
