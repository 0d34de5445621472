//! Compares the interpreter with stock.
//!
//! The functions `t_*/0` of a sample module, compiled by stock `erlc` with and without
//! optimisation, must return the same terms. Needs `erlc` and `erl`; without them it says so and
//! passes.

#[path = "common/call.rs"]
mod call;

use call::call;
use purlin_runtime::code;
use purlin_term::atom;
use std::path::{Path, PathBuf};
use std::process::Command;

fn compile(dir: &Path, module: &str, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{module}.erl"));
    std::fs::create_dir_all(dir).ok()?;
    let ok = Command::new("erlc")
        .arg("-W0")
        .args(options)
        .arg("-o")
        .arg(dir)
        .arg(&source)
        .status()
        .ok()?;
    assert!(ok.success(), "{module} does not compile");
    Some(dir.join(format!("{module}.beam")))
}

fn stock(dir: &Path, module: &str) -> Vec<(String, String)> {
    let program = "lists:foreach(fun({F, 0}) -> case atom_to_list(F) of \"t_\" ++ _ -> \
        io:format(\"~s ~w~n\", [F, MODULE:F()]); _ -> ok end; (_) -> ok end, \
        MODULE:module_info(exports)), halt()."
        .replace("MODULE", module);
    let out = Command::new("erl")
        .arg("-noshell")
        .arg("-pa")
        .arg(dir)
        .arg("-eval")
        .arg(program)
        .output();
    let Ok(out) = out else { return Vec::new() };
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .filter_map(|l| l.split_once(' '))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect()
}

fn against_stock(module: &str, name: &str, options: &[&str]) {
    let dir = std::env::temp_dir().join(format!(
        "purlin-interp-{}-{module}-{name}",
        std::process::id()
    ));
    let Some(beam) = compile(&dir, module, options) else {
        println!("skipped: no erlc");
        return;
    };
    let want = stock(&dir, module);
    let bytes = std::fs::read(&beam).expect("the compiled sample");
    let m = match code::load(&bytes) {
        Ok(m) => m.name,
        Err(e) => panic!("{e}"),
    };
    let mut wrong = Vec::new();
    for (f, expected) in &want {
        if std::env::var("ONLY").is_ok_and(|o| o != *f) {
            continue;
        }
        let got = call(m, atom::intern(f));
        if got != *expected {
            let same = got
                .bytes()
                .zip(expected.bytes())
                .take_while(|(a, b)| a == b);
            let from = same.count().saturating_sub(300);
            let part = |s: &str| {
                String::from_utf8_lossy(&s.as_bytes()[from..s.len().min(from + 700)]).into_owned()
            };
            wrong.push(format!(
                "{f} {name}\n  stock  {}\n  purlin {}",
                part(expected),
                part(&got)
            ));
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    // The version compiled the next way replaces it.
    assert_eq!(code::delete(m), Some(true));
    assert_eq!(code::purge::prepare(m, false), Some(true));
    // SAFETY: nothing runs.
    assert_eq!(unsafe { code::purge::complete(m) }, Some(true));
    assert!(!want.is_empty(), "stock printed nothing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Loads the library modules that the samples call.
fn load_libraries() {
    static DONE: std::sync::Once = std::sync::Once::new();
    DONE.call_once(|| {
        let which = "[io:format(\"~s~n\", [code:which(M)]) || M <- [lists, maps]], halt().";
        let out = Command::new("erl")
            .args(["-noshell", "-eval", which])
            .output();
        let Ok(out) = out else { return };
        purlin_runtime::natives::install();
        purlin_term::region::init();
        for path in String::from_utf8_lossy(&out.stdout).lines() {
            let bytes = std::fs::read(path).expect("a library module");
            assert!(code::load(&bytes).is_ok(), "{path}");
        }
    });
}

/// Compiler options for each sample: the newest instructions, those of OTP 24 (binaries built in
/// steps), those without optimisation, and those of OTP 22, which makes funs differently.
const WAYS: &[(&str, &[&str])] = &[
    ("plain", &[]),
    ("r24", &["+r24"]),
    ("r22", &["+r22"]),
    (
        "no_ssa_opt",
        &["+no_ssa_opt", "+no_type_opt", "+no_postopt"],
    ),
    ("inline", &["+inline", "+{inline_size,200}"]),
];

fn all_ways(module: &str) {
    load_libraries();
    for (name, options) in WAYS {
        against_stock(module, name, options);
    }
}

#[test]
fn sample_gives_the_same_terms_as_stock() {
    all_ways("interp_sample");
}
#[test]
fn more_of_the_same() {
    all_ways("interp_more");
}
#[test]
fn exceptions_are_those_of_stock() {
    all_ways("interp_errors");
}
