//! Hibernation: a process drops its stack and starts again.

use super::apply::{MOST_APPLIED, i_apply};
use super::handler::op;
use super::{Exit, exc};
use crate::code;
use crate::code::start::{APPLY_LIVE, push_bottom};
use crate::collect::compact;
use crate::cx::Cx;
use purlin_term::am;

op! {
    op_hibernate => hibernate;
    op_hibernated => hibernated;
}

/// `erlang:hibernate/3`: x0 to x2 are module, function and argument list.
unsafe fn hibernate(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let (m, f, args) = (cx.x[0], cx.x[1], cx.x[2]);
    let mut n = 0;
    let mut it = args.list_iter();
    while it.next().is_some() && n <= MOST_APPLIED {
        n += 1;
    }
    if !m.is_atom() || !f.is_atom() || !it.tail().is_nil() || n > MOST_APPLIED {
        let name = purlin_term::atom::intern("hibernate");
        let first = exc::First::Native(am::ERLANG, name, &[m, f, args]);
        let fail = match args.list_to_vec() {
            Some(v) if m.is_atom() && f.is_atom() && v.len() > MOST_APPLIED => {
                crate::cx::Fail::SystemLimit
            }
            _ => crate::cx::Fail::Badarg,
        };
        return exc::raise(cx, pc, fail, first);
    }
    cx.reds -= 1;
    push_bottom(&mut cx.heap);
    if !has_message(cx) && compact::hibernates(cx, APPLY_LIVE) {
        return give_way(cx);
    }
    hibernated(cx, code::stubs().hibernated.as_ptr())
}

/// Continues with [`hibernated`] when others have run.
///
/// # Safety
/// The process must be at its bottom frame, with the call to make in its registers.
unsafe fn give_way(cx: &mut Cx) -> *const u64 {
    purlin_kernel::sched::mark_early_yield();
    cx.interp.pc = code::stubs().hibernated.as_ptr();
    cx.interp.live = APPLY_LIVE;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// Waits for a message, then makes the call that [`hibernate`] was given.
unsafe fn hibernated(cx: &mut Cx, pc: *const u64) -> *const u64 {
    if has_message(cx) {
        compact::cancel_hibernation(cx.process());
        return i_apply(cx, pc);
    }
    if compact::must_retry(cx.process()) && compact::hibernates(cx, APPLY_LIVE) {
        return give_way(cx);
    }
    cx.interp.pc = pc;
    cx.interp.exit = Exit::Wait;
    std::ptr::null()
}

fn has_message(cx: &mut Cx) -> bool {
    // Signals may be handled, which may collect.
    cx.interp.live = APPLY_LIVE;
    // Not `loop_rec`: the call to make is in registers.
    crate::signal::receive::has_current(cx)
}
