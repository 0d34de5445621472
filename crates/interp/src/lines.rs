//! Lines that can have breakpoints of a debugger. See `code::debugger` in the kernel.
//!
//! A breakpoint is a call that is not in the code: `erts_internal:breakpoint/4` notifies the
//! debugger and waits. The frame of the call keeps the X registers. It has, from the top of the
//! stack: the return address of the call, the registers, and the address of the line's next
//! instruction. Below is the function's own frame, whose slot is 0, or none.

use super::handler::{go, op};
use super::instr;
use super::room::collect;
use crate::code;
use crate::cx::Cx;
use purlin_native::lazy_atoms;
use purlin_term::{Term, am};

lazy_atoms! {
    erts_internal = "erts_internal";
}

op!(fn op_debug_line(cx, pc, e, hp, reds) {
    go!(cx, instr::DebugLine::at(pc).next(), e, hp, reds)
});

op! {
    op_line_breakpoint => line_breakpoint;
    op_line_resume => line_resume;
}

/// Number of words of the frame that are no registers.
const ADDRESSES: usize = 2;

unsafe fn line_breakpoint(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::LineBreakpoint::at(pc);
    let (live, next) = (op.live(), op.next());
    let target = code::export(erts_internal(), am::BREAKPOINT, 4);
    let to = target.address() as *const u64;
    let Some(place) = code::find(pc) else {
        return next;
    };
    let line = place.line.map_or(0, |l| i64::from(l.1));
    let itself = (place.module, place.function, place.arity)
        == (target.module, target.function, target.arity);
    // There is nothing to call, or it would never end.
    if itself || std::ptr::eq(to, target.stub.as_ptr() as *const u64) {
        return next;
    }
    let words = live + ADDRESSES;
    if cx.heap.free_words() < words + cx.heap.stack_reserve {
        collect(cx, words, live);
    }
    let at = cx.heap.stop.sub(words);
    (at as *mut u64).write(code::stubs().line_resume.as_ptr() as u64);
    for i in 0..live {
        at.add(1 + i).write(cx.x[i]);
    }
    (at.add(1 + live) as *mut u64).write(next as u64);
    cx.heap.stop = at;
    cx.x[0] = place.module;
    cx.x[1] = place.function;
    cx.x[2] = Term::small(i64::from(place.arity));
    cx.x[3] = Term::small(line);
    to
}

/// # Safety
/// As for handlers; the topmost frame must be one that [`line_breakpoint`] has made.
unsafe fn line_resume(cx: &mut Cx, _pc: *const u64) -> *const u64 {
    let mut at = cx.heap.stop.add(1);
    let mut i = 0;
    while !(*at).is_header() {
        cx.x[i] = *at;
        i += 1;
        at = at.add(1);
    }
    cx.heap.stop = at.add(1);
    (*at).raw() as *const u64
}
