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
    let (m, f, n) = p.mfa;
    let number = |n: i64| Term::small(n);
    if p.returns != 0 {
        let words = [m, f, number(n.into()), number(p.returns.into())];
        push_frame(cx, n as usize, words);
    }
    if let Some(before) = p.time {
        // A function that is called last by one whose time is measured returns for both.
        let stub = code::stubs().return_trace.as_ptr();
        let at = cx.heap.stop;
        let last = *(at as *const u64) == stub as u64 && *at.add(4) == number(calls::TIMED);
        if !last {
            let words = [
                number((before / 8) as i64),
                number(0),
                number(0),
                number(calls::TIMED),
            ];
            push_frame(cx, n as usize, words);
        }
    }
    (p.entry, p.original)
}

/// Puts a frame between those of the function that is called with `live` arguments and its caller.
unsafe fn push_frame(cx: &mut Cx, live: usize, words: [Term; 4]) {
    if cx.heap.free_words() < FRAME_WORDS + cx.heap.stack_reserve + live {
        collect(cx, FRAME_WORDS + live, live);
    }
    let at = cx.heap.stop.sub(FRAME_WORDS);
    (at as *mut u64).write(code::stubs().return_trace.as_ptr() as u64);
    for (i, w) in words.into_iter().enumerate() {
        at.add(1 + i).write(w);
    }
    cx.heap.stop = at;
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
