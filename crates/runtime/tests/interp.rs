//! The interpreter against stock: the functions `t_*/0` of a sample module, compiled by stock `erlc` with and without
//! optimisation, must give the same terms. Needs `erlc` and `erl`; says so and passes where there are none.

use purlin_runtime::code;
use purlin_runtime::cx::Cx;
use purlin_runtime::interp::{self, Exit};
use purlin_runtime::process::Process;
use purlin_term::print::{Style, format_term};
use purlin_term::{NIL, Term, am, atom};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `m:f()` as the only process; what it returned or why it ended.
fn call(m: Term, f: Term) -> String {
    purlin_term::region::init();
    let mut cx: Box<Cx> = Cx::boxed(0);
    let mut cell: Box<std::mem::MaybeUninit<Process>> = Box::new(std::mem::MaybeUninit::zeroed());
    // SAFETY: only the pid is used; the stack holds the address that the first call returns to; the registers hold
    // immediates.
    unsafe {
        (*cell.as_mut_ptr()).pid = Term::pid(0);
        cx.proc = cell.as_mut_ptr();
        purlin_term::gc::collect(&mut cx.heap, 233, &mut [], false);
        cx.heap.stop = cx.heap.hend.sub(1);
        *(cx.heap.stop as *mut u64) = code::stubs().exit.as_ptr() as u64;
        cx.x[0] = m;
        cx.x[1] = f;
        cx.x[2] = NIL;
        let mut pc = code::stubs().apply.as_ptr();
        loop {
            cx.reds = 4000;
            match interp::run(&mut cx, pc) {
                Exit::Yield => {
                    let live = cx.interp.live;
                    let x = std::slice::from_raw_parts_mut(cx.x.as_mut_ptr(), live);
                    purlin_term::gc::collect(&mut cx.heap, 0, &mut [x], false);
                    pc = cx.interp.pc;
                }
                Exit::Exited if cx.interp.reason == am::NORMAL => {
                    return format_term(cx.x[0], Style::Write, usize::MAX);
                }
                Exit::Exited => {
                    return format!(
                        "EXIT {}",
                        format_term(cx.interp.reason, Style::Write, usize::MAX)
                    );
                }
                other => return format!("{other:?}"),
            }
        }
    }
}

fn compile(dir: &Path, options: &[&str]) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/interp_sample.erl");
    std::fs::create_dir_all(dir).ok()?;
    let ok = Command::new("erlc")
        .args(options)
        .arg("-o")
        .arg(dir)
        .arg(&source)
        .status()
        .ok()?;
    ok.success().then(|| dir.join("interp_sample.beam"))
}

fn stock(dir: &Path) -> Vec<(String, String)> {
    let program = "lists:foreach(fun({F, 0}) -> case atom_to_list(F) of \"t_\" ++ _ -> \
        io:format(\"~s ~w~n\", [F, interp_sample:F()]); _ -> ok end; (_) -> ok end, \
        interp_sample:module_info(exports)), halt().";
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

fn against_stock(name: &str, options: &[&str]) {
    let dir = std::env::temp_dir().join(format!("purlin-interp-{}-{name}", std::process::id()));
    let Some(beam) = compile(&dir, options) else {
        println!("skipped: no erlc");
        return;
    };
    let want = stock(&dir);
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
            wrong.push(format!("{f}\n  stock  {expected}\n  purlin {got}"));
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    assert!(!want.is_empty(), "stock printed nothing");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sample_gives_the_same_terms_as_stock() {
    against_stock("plain", &[]);
}
