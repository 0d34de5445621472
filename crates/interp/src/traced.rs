//! Breakpoints of traced functions, and their returns. See [`crate::code::breakpoint`].

use super::call::args_list;
use super::handler::{self, go, op};
use super::room::{collect, collect_after};
use crate::code;
use crate::code::breakpoint::{
    self, FRAME_WORDS, TIME_WORDS, Whom, behind_gate, breakpoints, frame_words, kind,
    return_address,
};
use crate::collect::Also;
use crate::cx::Cx;
use crate::events::sink;
use purlin_term::fun::Export;
use purlin_term::{NIL, Term, am};

op!(
/// Reports the call, then runs the instruction that the breakpoint replaces.
fn op_breakpoint(cx, pc, e, hp, reds) {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    let onward = passing(&mut *cx, pc);
    let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    match onward {
        Onward::Past(pc) => handler::again::<F>(cx, pc, e, hp, reds),
        Onward::To(pc) => go!(cx, pc, e, hp, reds),
    }
});

/// Where a call continues after a breakpoint.
enum Onward {
    /// At that instruction of the code, past the breakpoint there.
    Past(*const u64),
    /// At the instruction there: another breakpoint may follow.
    To(*const u64),
}

#[inline(never)]
unsafe fn passing(cx: &mut Cx, pc: *const u64) -> Onward {
    let resumed = cx.process().ext().is_some_and(|e| e.passed == pc as usize);
    if resumed {
        cx.process().ext_mut().passed = 0;
        return Onward::Past(pc);
    }
    let caller = return_address(cx.heap.stop);
    let Some(p) = breakpoints().passes(cx, pc, caller) else {
        // The breakpoint was just removed, so the original instruction is there. A word of an
        // export stands for the target of the export.
        return Onward::To(behind_gate(pc).unwrap_or(pc));
    };
    // The terms that the match specification made are in fragments; registers stay where they are.
    let (m, f, n) = p.mfa;
    if p.debug {
        return Onward::To(handled(cx, m, f, n as usize));
    }
    let number = |n: i64| Term::small(n);
    let live = n as usize;
    for whom in p.return_to {
        let words = [NIL, NIL, NIL, number(kind::RETURN_TO), whom];
        if !has_frame(cx.heap.stop, &words) {
            push_frame(cx, live, words);
        }
    }
    for (kind, whom) in p.returns {
        let word = match whom {
            Whom::Own(word) => word,
            Whom::Tracer(tracer) => tracer.term(cx),
        };
        // The word may be on the heap: until the frame exists it is in a register, where a
        // collection updates it.
        cx.x[live] = word;
        room(cx, FRAME_WORDS, live + 1);
        let word = cx.x[live];
        push_frame(cx, live, [m, f, number(n.into()), number(kind), word]);
    }
    for (before, whom) in p.time {
        // A tail call from a function whose calls are measured returns for both.
        if !is_timed(cx.heap.stop, number(whom)) {
            let stub = code::stubs().return_time.as_ptr();
            push(cx, live, stub, [number((before / 8) as i64), number(whom)]);
        }
    }
    Onward::Past(p.entry)
}

/// The debugger replaces the code of a function: its arguments go to the error handler.
///
/// # Safety
/// As for the first instruction of the function `m:f/arity`, whose arguments are in x.
unsafe fn handled(cx: &mut Cx, m: Term, f: Term, arity: usize) -> *const u64 {
    let target = code::export(super::call::error_handler_of(cx), am::BREAKPOINT, 3);
    let args = args_list(cx, arity);
    cx.x[0] = m;
    cx.x[1] = f;
    cx.x[2] = args;
    collect_after(cx, 3, Also::NONE);
    target.address()
}

/// Whether one of the trace frames at the top of the stack is of that kind, and for that tracer:
/// the last two `words`.
///
/// # Safety
/// `at` must be the top of a valid stack, and have at least the slot of a return address.
unsafe fn has_frame(mut at: *mut Term, words: &[Term; FRAME_WORDS - 1]) -> bool {
    while let Some(n) = frame_words(*(at as *const u64)) {
        if n == FRAME_WORDS && *at.add(4) == words[3] && *at.add(5) == words[4] {
            return true;
        }
        at = at.add(n);
    }
    false
}

/// Whether one of the trace frames at the top of the stack measures for `whom`.
///
/// # Safety
/// As for [`has_frame`].
unsafe fn is_timed(mut at: *mut Term, whom: Term) -> bool {
    while let Some(n) = frame_words(*(at as *const u64)) {
        if n == TIME_WORDS && *at.add(2) == whom {
            return true;
        }
        at = at.add(n);
    }
    false
}

/// Prepares to run a native at `pc`, which may be the entry of a traced function, again later: its
/// call has been traced already.
pub(super) unsafe fn again(cx: &mut Cx, pc: *const u64) {
    if breakpoint::is_breakpoint(pc) {
        cx.process().ext_mut().passed = pc as usize;
    }
}

/// Returns where a call of that native goes if it is traced: the stub of its export.
///
/// # Safety
/// The export must lead to a native: its stub has an instruction.
#[cold]
#[inline(never)]
pub(super) unsafe fn traced_native(export: &Export) -> Option<*const u64> {
    let stub = export.stub.as_ptr() as *const u64;
    breakpoint::is_breakpoint(stub).then_some(stub)
}

/// Pushes the frame of a traced call between those of the called function, with `live` arguments,
/// and its caller.
///
/// # Safety
/// As for [`push`]; the words must be those that `op_return_trace` reads.
unsafe fn push_frame(cx: &mut Cx, live: usize, words: [Term; FRAME_WORDS - 1]) {
    push(cx, live, code::stubs().return_trace.as_ptr(), words);
}

/// Ensures `words` free words on the stack, while `live` X registers hold terms.
///
/// # Safety
/// As for a collection with `live` registers.
unsafe fn room(cx: &mut Cx, words: usize, live: usize) {
    if cx.heap.free_words() < words + cx.heap.stack_reserve + live {
        collect(cx, words + live, live);
    }
}

/// The same for a frame that begins with `stub`.
///
/// # Safety
/// As for a collection with `live` registers; `stub` must be the instruction that reads the words
/// and drops the frame.
unsafe fn push<const N: usize>(cx: &mut Cx, live: usize, stub: *const u64, words: [Term; N]) {
    room(cx, 1 + N, live);
    let at = cx.heap.stop.sub(1 + N);
    (at as *mut u64).write(stub as u64);
    for (i, w) in words.into_iter().enumerate() {
        at.add(1 + i).write(w);
    }
    cx.heap.stop = at;
}

op! {
    op_return_trace => return_trace;
    op_return_time => return_time;
}

/// # Safety
/// As for handlers; the topmost frame must be one that [`push`] made for this stub.
unsafe fn return_time(cx: &mut Cx, _pc: *const u64) -> *const u64 {
    let at = cx.heap.stop;
    sink().measured(cx, [*at.add(1), *at.add(2)]);
    let back = at.add(TIME_WORDS);
    cx.heap.stop = back;
    let to = (back as *const u64).read();
    (back as *mut u64).write(0);
    to as *const u64
}

/// # Safety
/// As for handlers; the topmost frame must be one that [`push`] made for this stub.
unsafe fn return_trace(cx: &mut Cx, _pc: *const u64) -> *const u64 {
    let at = cx.heap.stop;
    let frame = [*at.add(1), *at.add(2), *at.add(3), *at.add(4), *at.add(5)];
    let back = at.add(FRAME_WORDS);
    if frame[3] == Term::small(kind::RETURN_TO) {
        sink().returned_to(cx, frame[4], return_address(back));
    } else {
        let value = cx.x[0];
        sink().returned(cx, frame, None, value);
    }
    cx.heap.stop = back;
    let to = (back as *const u64).read();
    (back as *mut u64).write(0);
    to as *const u64
}
