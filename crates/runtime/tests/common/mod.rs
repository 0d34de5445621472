//! Runs a compiled sample module in the interpreter and on stock, and compares the results of its
//! functions `t_*/0`. Needs `erlc` and `erl`; without them it says so and passes.

#[path = "call.rs"]
mod call;

use call::call;
use purlin_runtime::code;
use purlin_term::atom;
use std::path::{Path, PathBuf};
use std::process::Command;

fn compile(source: &str, dir: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(source);
    std::fs::create_dir_all(dir).ok()?;
    let ok = Command::new("erlc")
        .arg("-o")
        .arg(dir)
        .arg(&source)
        .status();
    let stem = source.with_extension("beam");
    ok.ok()?
        .success()
        .then(|| dir.join(stem.file_name().unwrap_or_default()))
}

fn stock(module: &str, dir: &Path, cwd: &Path) -> Vec<(String, String)> {
    let program = format!(
        "lists:foreach(fun({{F, 0}}) -> case atom_to_list(F) of \"t_\" ++ _ -> \
         io:format(\"~s ~w~n\", [F, {module}:F()]); _ -> ok end; (_) -> ok end, \
         {module}:module_info(exports)), halt()."
    );
    let out = Command::new("erl")
        .args(["+fnui", "-noshell", "-pa"])
        .arg(dir)
        .args(["-eval", &program])
        .current_dir(cwd)
        .output();
    let Ok(out) = out else { return Vec::new() };
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .filter_map(|l| l.split_once(' '))
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .collect()
}

/// Compares the module `source` (a file of `tests/data`) with stock, each in a fresh directory.
/// `needs` are modules of the installation that it calls.
pub fn against_stock(source: &str, needs: &[&str]) {
    let dir = std::env::temp_dir().join(format!("purlin-{source}-{}", std::process::id()));
    let Some(beam) = compile(source, &dir) else {
        println!("skipped: no erlc");
        return;
    };
    let (theirs, ours) = (dir.join("stock"), dir.join("purlin"));
    for d in [&theirs, &ours] {
        std::fs::create_dir_all(d).expect("a directory to work in");
    }
    // Modules loaded before the natives are installed keep their Erlang code, which calls itself.
    purlin_runtime::natives::install();
    let module = source.trim_end_matches(".erl");
    let want = stock(module, &dir, &theirs);
    let find = "io:put_chars([code:which(list_to_atom(M)) || [M|_] <- [init:get_plain_arguments()]]), halt().";
    for m in needs {
        let out = Command::new("erl")
            .args(["-noshell", "-eval", find, "-extra", m])
            .output()
            .expect("erl runs");
        let path = String::from_utf8(out.stdout).expect("a path");
        let path = if path.starts_with('/') {
            path
        } else {
            preloaded(m)
        };
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        code::load(&bytes).unwrap_or_else(|e| panic!("{e}"));
    }
    let bytes = std::fs::read(&beam).expect("the compiled sample");
    let m = code::load(&bytes).unwrap_or_else(|e| panic!("{e}")).name;
    std::env::set_current_dir(&ours).expect("a directory to work in");
    let mut wrong = Vec::new();
    for (f, expected) in &want {
        if std::env::var("ONLY").is_ok_and(|o| o != *f) {
            continue;
        }
        let got = call(m, atom::intern(f));
        if got != *expected {
            let same = expected
                .bytes()
                .zip(got.bytes())
                .take_while(|(a, b)| a == b)
                .count();
            let near = |s: &str| -> String {
                let part: Vec<u8> = s.bytes().skip(same.saturating_sub(100)).take(400).collect();
                String::from_utf8_lossy(&part).into_owned()
            };
            wrong.push(format!(
                "{f} at {same}\n  stock  {}\n  purlin {}",
                near(expected),
                near(&got)
            ));
        }
    }
    let _ = std::env::set_current_dir("/");
    let _ = std::fs::remove_dir_all(&dir);
    assert!(!want.is_empty(), "stock printed nothing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The file of a module that stock preloads.
fn preloaded(m: &str) -> String {
    let program = "io:put_chars(filelib:wildcard(code:lib_dir() ++ \"/erts-*/ebin\")), halt().";
    let out = Command::new("erl")
        .args(["-noshell", "-eval", program])
        .output()
        .expect("erl runs");
    let dir = String::from_utf8(out.stdout).expect("a path");
    format!("{dir}/{m}.beam")
}
