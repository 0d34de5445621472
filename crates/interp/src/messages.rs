//! Messages: `send`, and the receive loop.
//!
//! A receive walks the mailbox with `loop_rec` and `loop_rec_end`. Between looking at a message and
//! removing it no X register is live: these ops yield with `live` 0, and the process may be
//! collected there.

use super::handler::{go, op};
use super::operands::{C, X};
use super::room::collect_after;
use super::skip::{EQ_CONSTANT, EQ_IMMED, Elements, TAGGED, number};
use super::{Exit, exc, instr};
use crate::code;
use crate::collect::Also;
use crate::cx::Cx;
use crate::process::SAVES;
use crate::process::saved::{self, Call};
use crate::signal::receive;
use crate::signal::send::deliver;
use purlin_isa::ops::{Form, Op};
use purlin_kernel::message::index::{Sought, key_of_word};
use purlin_term::layout::TUPLE_FIRST;
use purlin_term::{Term, am};

op! {
    op_send => send;
    loop_rec_first => loop_rec;
    loop_rec_end_first => loop_rec_end;
    op_remove_message => remove_message;
    op_wait => wait;
    op_wait_timeout => wait_timeout;
    op_timeout => timeout;
    op_recv_marker_reserve => marker_reserve;
    op_recv_marker_bind => marker_bind;
    op_recv_marker_clear => marker_clear;
    op_recv_marker_use => marker_use;
}

op!(
/// Looks at the next message. A receive that walks a queue goes from message to message without
/// leaving the interpreter.
fn op_loop_rec(cx, pc, e, hp, reds) {
    if receive::scans((*cx).proc.get()) {
        let (t, reds) = walk(cx, pc, e, reds);
        if t != Term::NON_VALUE {
            let rec = instr::LoopRec::at(pc);
            // It is read where it is: see `crate::signal::receive`.
            (*cx).heap.window = true;
            rec.dst().set(cx, e, t);
            go!(cx, rec.next(), e, hp, reds)
        }
        return loop_rec_first::<F>(cx, pc, e, hp, reds);
    }
    loop_rec_first::<F>(cx, pc, e, hp, reds)
});

// Variants for X registers.
const IS_TUPLE_OF_ARITY: u16 = number(Op::IsTupleOfArity, &[Form::L, Form::X, Form::Q]);

const LOOP_REC_END: u16 = Op::LoopRecEnd.only_variant();

// The tests have label and register at the same offset.
const _: () = {
    let (fail, src) = (
        Op::IsEqImmed.row().unit("fail"),
        Op::IsEqImmed.row().unit("src"),
    );
    assert!(
        Op::IsTaggedTuple.row().unit("fail") == fail && Op::IsTaggedTuple.row().unit("src") == src
    );
    assert!(
        Op::IsTupleOfArity.row().unit("fail") == fail
            && Op::IsTupleOfArity.row().unit("src") == src
    );
    assert!(Op::IsEqExact.row().unit("fail") == fail && Op::IsEqExact.row().unit("a") == src);
};

/// The next message for the `loop_rec` at `pc`, of a receive that has looked at messages already,
/// and the reductions that are left; no value: there is none. Where a simple test of the message
/// follows, and leads to the end of this loop if it fails, messages that fail it are gone past
/// here; so are those that fail tests of a tuple's elements right behind it.
///
/// A function of its own: a handler that has locals in memory would not end in a jump, and each
/// message would take native stack.
///
/// # Safety
/// As for the handler of the instruction at `pc`; the receive [`scans`](receive::scans).
#[inline(never)]
unsafe fn walk(cx: *mut Cx, pc: *const u64, e: *mut Term, reds: i64) -> (Term, i64) {
    let p = (*cx).proc.get();
    if !receive::filters(p) {
        let (found, reds) = receive::scan(p, reds, |_| true);
        return (found.unwrap_or(Term::NON_VALUE), reds);
    }
    let rec = instr::LoopRec::at(pc);
    // The instruction after `loop_rec`, which looks at the message.
    let test = rec.next();
    let number = code::opcode_at(test);
    // The test must read the register that `loop_rec` writes, and its label must lead to a
    // `loop_rec_end` that comes back here.
    let is_test = matches!(number, EQ_IMMED | TAGGED | IS_TUPLE_OF_ARITY | EQ_CONSTANT);
    let ends_here = is_test && {
        let same = instr::IsEqImmed::<X>::at(test);
        let end = same.fail().to();
        same.src().dest() == rec.dst()
            && code::opcode_at(end) == LOOP_REC_END
            && instr::LoopRecEnd::at(end).to().to() == pc
    };
    // Tests of elements that follow a test for a tuple with that header.
    let elements = |next, header| {
        let end = instr::IsEqImmed::<X>::at(test).fail().to();
        Elements::of(cx, e, next, rec.dst(), end, header)
    };
    let (found, reds) = match number {
        // The predicates below accept every message that the test would accept; the test itself
        // runs again on the message that is found.
        EQ_IMMED if ends_here => {
            let immed = instr::IsEqImmed::<X>::at(test).immed();
            receive::filter(p, reds, |t| t == immed)
        }
        TAGGED if ends_here => {
            let op = instr::IsTaggedTuple::<X>::at(test);
            let (w, tag) = (op.header(), op.tag());
            let rest = elements(op.next(), w);
            let by_tag = || Sought {
                header: w,
                at: TUPLE_FIRST,
                key: key_of_word(tag),
            };
            let sought = rest.sought(w).unwrap_or_else(by_tag);
            receive::search(p, reds, Some(sought), |t| {
                t.is_boxed()
                    && (*t.ptr()).raw() == w
                    && *t.ptr().add(TUPLE_FIRST) == tag
                    && rest.pass(t)
            })
        }
        IS_TUPLE_OF_ARITY if ends_here => {
            let op = instr::IsTupleOfArity::<X>::at(test);
            let w = op.header();
            let rest = elements(op.next(), w);
            receive::search(p, reds, rest.sought(w), |t| {
                t.is_boxed() && (*t.ptr()).raw() == w && rest.pass(t)
            })
        }
        // The test itself compares a message that begins like the tuple.
        EQ_CONSTANT
            if ends_here
                && instr::IsEqExact::<X, C>::at(test)
                    .b()
                    .get(cx, e)
                    .as_tuple()
                    .is_some_and(|c| !c.is_empty()) =>
        {
            let c = instr::IsEqExact::<X, C>::at(test).b().get(cx, e).ptr();
            let (w, first) = ((*c).raw(), *c.add(TUPLE_FIRST));
            receive::filter(p, reds, |t| {
                let same = |t: Term| t == first || !t.is_immed() || !first.is_immed();
                t.is_boxed() && (*t.ptr()).raw() == w && same(*t.ptr().add(TUPLE_FIRST))
            })
        }
        // Any other code looks at each message itself.
        _ => receive::scan(p, reds, |_| true),
    };
    (found.unwrap_or(Term::NON_VALUE), reds)
}

op!(fn op_loop_rec_end(cx, pc, e, hp, reds) {
    // Fast while messages are available and the time slice lasts.
    if reds > 1 && receive::scan_next((*cx).proc.get()) {
        let to = instr::LoopRecEnd::at(pc).to().to();
        go!(cx, to, e, hp, reds - 1)
    }
    loop_rec_end_first::<F>(cx, pc, e, hp, reds)
});

/// Reductions of a send, as in stock: it takes about as long as this many calls.
pub(super) const SEND_REDUCTIONS: i64 = 4;

/// Sends x1 to the receiver x0; the value is in x0. May collect with x0 live; with x0 and x1 if it
/// is to run again.
pub(super) unsafe fn send(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let (to, msg) = (cx.x[0], cx.x[1]);
    // Counted before, so that a sender which gives way to its receiver may be charged more.
    cx.reds -= SEND_REDUCTIONS;
    cx.bif_pc = pc;
    if cx.process().has(SAVES) {
        // As in stock, which counts the instruction as a call.
        saved::note(cx.process(), Call::Function(am::ERLANG, am::SEND, 2));
    }
    match deliver(cx, to, msg) {
        Ok(t) => {
            cx.x[0] = t;
            collect_after(cx, 1, Also::NONE);
            instr::Send::at(pc).next()
        }
        // Sending continues in a function, which returns to the instruction after this op.
        Err(crate::cx::Fail::Trap) => {
            for i in 0..cx.trap.argc {
                cx.x[i] = cx.trap.args[i];
            }
            // The continuation is called, so its frame returns to the instruction after the op.
            (cx.heap.stop as *mut u64).write(instr::Send::at(pc).next() as u64);
            (*cx.trap.target).address()
        }
        Err(f @ (crate::cx::Fail::Again | crate::cx::Fail::Wait)) => {
            cx.interp.pc = pc;
            cx.interp.live = 2;
            cx.interp.exit = if f == crate::cx::Fail::Wait {
                Exit::Wait
            } else {
                Exit::Yield
            };
            std::ptr::null()
        }
        Err(f) => exc::raise(
            cx,
            pc,
            f,
            exc::First::Native(am::ERLANG, am::SEND, &[to, msg]),
        ),
    }
}

/// Fetches signals if necessary, so links, exits and the like take effect here. Then it looks at
/// the next message in place, or finds none.
unsafe fn loop_rec(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::LoopRec::at(pc);
    cx.bif_pc = pc;
    match receive::loop_rec(cx) {
        receive::Current::Message(t) => {
            op.dst().put(cx, t);
            op.next()
        }
        receive::Current::Nothing => op.fail().to(),
        // A message of another node is decoded first, for as long as the time slice lasts: then the
        // op runs again.
        receive::Current::Later => {
            cx.interp.pc = pc;
            cx.interp.live = 0;
            cx.interp.exit = Exit::Yield;
            std::ptr::null()
        }
    }
}

unsafe fn loop_rec_end(cx: &mut Cx, pc: *const u64) -> *const u64 {
    receive::loop_rec_end(cx);
    let to = instr::LoopRecEnd::at(pc).to().to();
    // A skipped message counts as a call.
    cx.reds -= 1;
    if cx.reds > 0 {
        return to;
    }
    // A long mailbox must not keep others waiting.
    cx.interp.pc = to;
    cx.interp.live = 0;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// Takes the message over into the heap; what was read of it stays valid.
unsafe fn remove_message(cx: &mut Cx, pc: *const u64) -> *const u64 {
    receive::remove_message(cx);
    instr::RemoveMessage::at(pc).next()
}

/// Ends the receive without a message: the next one begins with the first.
unsafe fn timeout(cx: &mut Cx, pc: *const u64) -> *const u64 {
    receive::timeout(cx);
    instr::Timeout::at(pc).next()
}

/// Stops; when the process runs again it is at the label, the `loop_rec`.
unsafe fn wait(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.interp.pc = instr::Wait::at(pc).to().to();
    cx.interp.live = 0;
    cx.interp.exit = Exit::Wait;
    std::ptr::null()
}

/// As [`wait`], but if the time passes first the process continues after this op. An infinite time
/// sets no timer.
unsafe fn wait_timeout(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::WaitTimeout::at(pc);
    let (again, time) = (op.to().to(), op.time());
    if cx.process().has(crate::process::TIMER) {
        // Woken for another reason than the timeout, which was read when the timer was set. A
        // receive without patterns comes back to this instruction, and its register may be dead.
        cx.interp.pc = again;
        cx.interp.live = 0;
        cx.interp.exit = Exit::WaitTimeout;
        return std::ptr::null();
    }
    let t = time.value(cx);
    let ms = match t.as_small() {
        Some(0) => return op.next(),
        Some(n) if (0..=0xFFFF_FFFF).contains(&n) => n as u64,
        _ if t == am::INFINITY => {
            cx.interp.pc = again;
            // No timer remembers the time for the next round, so the X register that holds it must
            // survive. Those before it are dead while a process waits, and must not be stale
            // pointers.
            cx.interp.live = time.x_register().map_or(0, |x| x + 1);
            let live = cx.interp.live;
            cx.x[..live].fill(am::INFINITY);
            cx.interp.exit = Exit::Wait;
            return std::ptr::null();
        }
        _ => {
            // The program may catch this and receive again, from the first message on.
            receive::restart(cx);
            return exc::error(cx, pc, am::TIMEOUT_VALUE);
        }
    };
    cx.interp.pc = again;
    cx.interp.live = 0;
    cx.interp.timeout = ms;
    cx.interp.timeout_pc = op.next();
    cx.interp.exit = Exit::WaitTimeout;
    std::ptr::null()
}

/// The four ops of a receive marker. The place in the mailbox is recorded before a reference is
/// made (this op), bound to the reference, used by the receive that waits for an answer with that
/// reference, and cleared: see `crate::signal::receive`.
unsafe fn marker_reserve(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::RecvMarkerReserve::at(pc);
    let t = receive::marker_reserve(cx);
    op.dst().put(cx, t);
    op.next()
}

unsafe fn marker_bind(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::RecvMarkerBind::at(pc);
    let (m, x) = (op.marker().value(cx), op.reference().value(cx));
    receive::marker_bind(cx, m, x);
    op.next()
}

unsafe fn marker_clear(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::RecvMarkerClear::at(pc);
    let x = op.reference().value(cx);
    receive::marker_clear(cx, x);
    op.next()
}

unsafe fn marker_use(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::RecvMarkerUse::at(pc);
    let x = op.reference().value(cx);
    receive::marker_use(cx, x);
    op.next()
}
