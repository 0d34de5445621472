//! Calls of functions without a scheduler.

use purlin_runtime::code;
use purlin_runtime::cx::Cx;
use purlin_runtime::interp::{self, Exit};
use purlin_runtime::process::Process;
use purlin_term::print::{Style, format_term};
use purlin_term::{NIL, Term, am};

/// Runs `m:f()` as the only process. Returns the result or the exit reason.
pub fn call(m: Term, f: Term) -> String {
    purlin_runtime::natives::install();
    purlin_term::region::init();
    let mut cx: Box<Cx> = Cx::boxed(0);
    let mut cell: Box<std::mem::MaybeUninit<Process>> = Box::new(std::mem::MaybeUninit::zeroed());
    // SAFETY: only the pid is used; the stack holds the return address of the first call; the
    // registers hold immediates.
    unsafe {
        (*cell.as_mut_ptr())
            .id
            .store(0, purlin_term::sync::Ordering::Relaxed);
        cx.proc.set(cell.as_mut_ptr());
        purlin_term::gc::collect(&mut cx.heap, 233, &mut [], false);
        cx.heap.stop = cx.heap.hend.sub(1);
        *(cx.heap.stop as *mut u64) = code::stubs().exit.as_ptr() as u64;
        cx.x[0] = m;
        cx.x[1] = f;
        cx.x[2] = NIL;
        let mut pc = code::stubs().apply.as_ptr();
        // A sample takes a few hundred time slices.
        for _ in 0..100_000 {
            cx.reds = 4000;
            match interp::run(&mut cx, pc) {
                Exit::Yield => {
                    cx.dirty = false;
                    let live = cx.interp.live;
                    let x = std::slice::from_raw_parts_mut(cx.x.as_mut_ptr(), live);
                    purlin_term::gc::collect(&mut cx.heap, 0, &mut [x], false);
                    pc = cx.interp.pc;
                }
                Exit::DirtyIo | Exit::DirtyCpu => {
                    cx.dirty = true;
                    pc = cx.interp.pc;
                }
                Exit::Exited if cx.interp.reason == am::NORMAL => {
                    return format_term(cx.x[0], Style::Write, usize::MAX);
                }
                Exit::Exited => {
                    let why = format_term(cx.interp.reason, Style::Write, usize::MAX);
                    return format!("EXIT {why}");
                }
                other => return format!("{other:?}"),
            }
        }
    }
    "no end".to_owned()
}
