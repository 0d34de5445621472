//! Measures the interpreter alone, without processes.
//!
//! `bench_interp FILE.beam [PROGRAM]...` calls `run(Program, Size)` of the module three times for
//! each pair that its `names/0` returns, and prints the minimum in milliseconds.

use purlin_runtime::code;
use purlin_runtime::code::start;
use purlin_runtime::cx::Cx;
use purlin_runtime::interp::{self, Exit};
use purlin_runtime::process::Process;
use purlin_term::print::{Style, format_term};
use purlin_term::{Alloc, Term, am, atom};
use std::time::Instant;

/// Runs `m:f(args)` as the only process and passes the result to `show`.
fn call(m: Term, f: Term, args: &[Term], show: impl FnOnce(Term)) {
    let mut cx: Box<Cx> = Cx::boxed(0);
    let mut cell: Box<std::mem::MaybeUninit<Process>> = Box::new(std::mem::MaybeUninit::zeroed());
    // SAFETY: only the pid of the cell is used; the stack gets its bottom before code runs.
    unsafe {
        (*cell.as_mut_ptr())
            .id
            .store(0, purlin_term::sync::Ordering::Relaxed);
        cx.proc.set(cell.as_mut_ptr());
        purlin_term::gc::collect(&mut cx.heap, 233, &mut [], false);
        let l = cx.list(args);
        start::enter_apply(&mut cx, m, f, l);
        loop {
            cx.reds = 4000;
            let pc = cx.interp.pc;
            match interp::run(&mut cx, pc) {
                Exit::Yield => {
                    if cx.heap.gc_wanted {
                        let live = cx.interp.live;
                        let x = std::slice::from_raw_parts_mut(cx.x.as_mut_ptr(), live);
                        purlin_term::gc::collect(&mut cx.heap, 0, &mut [x], false);
                        cx.heap.gc_wanted = false;
                    }
                }
                Exit::Exited if cx.interp.reason == am::NORMAL => break,
                other => {
                    let why = format_term(cx.interp.reason, Style::Write, 1000);
                    println!("{other:?} {why}");
                    return;
                }
            }
        }
        show(cx.x[0]);
        purlin_term::gc::destroy(&mut cx.heap);
    }
}

fn main() {
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let mut args = std::env::args().skip(1);
    let Some(file) = args.next() else {
        eprintln!("usage: bench_interp FILE.beam [PROGRAM]...");
        std::process::exit(64);
    };
    let only: Vec<String> = args.collect();
    let bytes = std::fs::read(&file).unwrap_or_default();
    let m = match code::load(&bytes) {
        Ok(m) => m.name,
        Err(e) => {
            eprintln!("{file}: {e}");
            std::process::exit(66);
        }
    };
    let mut programs: Vec<(Term, i64)> = Vec::new();
    call(m, atom::intern("names"), &[], |l| {
        for t in l.list_iter() {
            if let Some(&[f, n]) = t.as_tuple() {
                programs.push((f, n.as_small().unwrap_or(0)));
            }
        }
    });
    for (f, n) in programs {
        if !only.is_empty() && !only.iter().any(|o| o == atom::name(f)) {
            continue;
        }
        let best = (0..3)
            .map(|_| {
                let t = Instant::now();
                call(m, atom::intern("run"), &[f, Term::small(n)], |_| ());
                t.elapsed()
            })
            .min()
            .unwrap_or_default();
        println!("{} {n} {:.1}", atom::name(f), best.as_secs_f64() * 1000.0);
    }
}
