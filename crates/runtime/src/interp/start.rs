//! Where processes start, and start again: the first call of a new process, and hibernation.
//!
//! The bottom of every stack is one word, the address of the code that ends the process normally. It is there as long
//! as the process lives.

use super::call::{MOST_APPLIED, i_apply};
use super::{Exit, RECEIVE, exc, slow_op};
use crate::process::collect::{Also, Sweep};

use crate::code;
use crate::cx::Cx;
use purlin_term::heap::Heap;
use purlin_term::{Term, am};

/// Words that the bottom of a stack takes: a new process' first block has room for them at its end.
pub const BOTTOM_WORDS: usize = 1;

/// Puts the bottom of the stack at the end of the block, and drops whatever the stack held.
///
/// # Safety
/// The block of the heap has [`BOTTOM_WORDS`] words behind `htop`.
pub unsafe fn push_bottom(heap: &mut Heap) {
    heap.stop = heap.hend.sub(BOTTOM_WORDS);
    (heap.stop as *mut u64).write(code::stubs().exit.as_ptr() as u64);
}

/// Makes the process in the context one that starts with `apply(m, f, args)`: bottom of the stack, registers,
/// `interp.pc` and `interp.live`. Anything that is wrong with the three (no atoms, no proper list, no such function)
/// is an exception in the process, as in stock.
///
/// # Safety
/// As for [`push_bottom`]; the terms belong to the process.
pub unsafe fn enter_apply(cx: &mut Cx, m: Term, f: Term, args: Term) {
    push_bottom(&mut cx.heap);
    cx.x[0] = m;
    cx.x[1] = f;
    cx.x[2] = args;
    cx.interp.pc = apply_start();
    cx.interp.live = APPLY_LIVE;
}

/// As [`enter_apply`], for a process that starts by calling `fun` with the arguments in a list.
///
/// # Safety
/// As for [`enter_apply`].
pub unsafe fn enter_fun(cx: &mut Cx, fun: Term, args: Term) {
    push_bottom(&mut cx.heap);
    cx.x[0] = fun;
    cx.x[1] = args;
    cx.interp.pc = code::stubs().apply_fun.as_ptr();
    cx.interp.live = 2;
}

/// Where a process starts whose registers 0 to 2 hold module, function and argument list, for whoever writes the saved
/// registers of a process that isn't running: its stack must have a bottom, see [`push_bottom`].
pub fn apply_start() -> *const u64 {
    code::stubs().apply.as_ptr()
}
/// Registers that are live at [`apply_start`].
pub const APPLY_LIVE: usize = 3;

slow_op! {
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
    if !has_message(cx) {
        cx.collect(0, APPLY_LIVE, Also::NONE, Sweep::Exact);
    }
    hibernated(cx, code::stubs().hibernated.as_ptr())
}

/// Waits until there is a message, then calls what [`hibernate`] was told to.
unsafe fn hibernated(cx: &mut Cx, pc: *const u64) -> *const u64 {
    if has_message(cx) {
        return i_apply(cx, pc);
    }
    cx.interp.pc = pc;
    cx.interp.exit = Exit::Wait;
    std::ptr::null()
}

fn has_message(cx: &mut Cx) -> bool {
    // Signals may be acted on, which may collect.
    cx.interp.live = APPLY_LIVE;
    // Not `loop_rec`: what is to be called is in registers.
    RECEIVE.get().is_some_and(|r| (r.has_current)(cx))
}
