//! Breakpoints of traced functions, and their returns. See [`crate::trace::calls`].

use super::{Exit, HANDLERS, collect, slow_op};
use crate::code;
use crate::cx::Cx;
use crate::trace::calls::{self, FRAME_WORDS};
use purlin_term::Term;

/// Runs what the breakpoint stands for, after it was told.
pub unsafe fn op_breakpoint(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    let (entry, original) = passing(&mut *cx, pc);
    let h = HANDLERS[original as usize];
    h(cx, entry, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
}

/// Where to go on, and the number of the instruction there.
#[inline(never)]
unsafe fn passing(cx: &mut Cx, pc: *const u64) -> (*const u64, u16) {
    let caller = (*(cx.heap.stop as *const u64)) as *const u64;
    let Some(p) = calls::pass(cx, pc, caller) else {
        // Cleared just now: what stands there is what it was.
        return (pc, *(pc as *const u16));
    };
    // What the match specification made is in fragments; registers stay where they are.
    if p.returns != 0 {
        let (m, f, n) = p.mfa;
        if cx.heap.free_words() < FRAME_WORDS + cx.heap.stack_reserve + n as usize {
            collect(cx, FRAME_WORDS + n as usize, n as usize);
        }
        let at = cx.heap.stop.sub(FRAME_WORDS);
        (at as *mut u64).write(code::stubs().return_trace.as_ptr() as u64);
        at.add(1).write(m);
        at.add(2).write(f);
        at.add(3).write(Term::small(n.into()));
        at.add(4).write(Term::small(p.returns.into()));
        cx.heap.stop = at;
    }
    (p.entry, p.original)
}

slow_op! {
    op_return_trace => return_trace;
}

unsafe fn return_trace(cx: &mut Cx, _pc: *const u64) -> *const u64 {
    let at = cx.heap.stop;
    let frame = [*at.add(1), *at.add(2), *at.add(3), *at.add(4)];
    let value = cx.x[0];
    calls::returned(cx, frame, None, value);
    let back = at.add(FRAME_WORDS);
    cx.heap.stop = back;
    let to = (back as *const u64).read();
    (back as *mut u64).write(0);
    to as *const u64
}
