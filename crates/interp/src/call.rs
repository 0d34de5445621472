//! Calls, local and external; how all calls are made; and what happens where a function isn't there.
//!
//! # How a call is made
//! * Arguments stand in x0 and up. `*e`, the first slot of the caller's frame, gets the address to return to. A tail call has
//!   dropped the frame before (`frame + 1` words: the Y registers and that slot), so `*e` is what its caller wrote there.
//! * A call counts one reduction. Where none is left the process leaves before the first instruction of the function that is
//!   called, with its arguments live; the environment of a fun counts among them.
//! * A call of code that is there collects nothing, save for the slot of a return address where natives are traced. Natives make
//!   fragments, and the op collects behind them with x0 live.
//! * An op that fails to find what it calls leaves stack and registers as they were until it knows what follows.

use super::exc::{self, First};
use super::handler::{Flavour, go, op};
use super::operands::Src;
use super::room::collect_after;
use super::{Exit, instr};
use crate::code;
use crate::collect::Also;
use crate::cx::Cx;
use crate::process::saved;
use purlin_term::fun::Export;
use purlin_term::{Alloc, NIL, Term, am};

op! {
    op_func_info => func_info;
    op_error_handler => error_handler;
    op_process_exit => process_exit;
}

/// Where a call by the export goes. Acquire: code that another thread has just loaded is seen whole.
#[inline(always)]
pub(super) fn address(export: &Export) -> *const u64 {
    export.address()
}

op!(
/// The time slice ends before the instruction at `pc`.
/// `live` X registers hold terms there: the process may be collected before it goes on.
#[cold]
#[inline(never)]
fn yield_at(cx, pc, e, hp, reds, live: usize) {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    (*cx).interp.pc = pc;
    (*cx).interp.live = live;
    F::leave(cx, Exit::Yield)
});

// What follows where a call uses up the reductions of the time slice. Arguments are few enough for registers: with some in
// memory the ops that call these would need frames of their own.

op!(
/// A call of what is at `pc`.
#[cold]
#[inline(never)]
fn used_up(cx, pc, e, hp, reds, live: usize) {
    // `goes_on` notes the call, if the process saves its calls, and gives it the rest of the time slice in that case.
    (*cx).reds = reds;
    if saved::continue_slice(&mut *cx, None) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live)
});

/// A call by an export.
///
/// # Safety
/// As for handlers, of the call that is under way: its arguments are in the first `live` X registers.
#[cold]
#[inline(never)]
unsafe fn used_up_ext<F: Flavour>(
    cx: *mut Cx,
    export: &'static Export,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
    live: usize,
) -> F::Out {
    (*cx).reds = reds;
    let pc = address(export);
    if saved::continue_slice(&mut *cx, Some(call_of(export))) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live)
}

pub(super) fn call_of(e: &Export) -> saved::Call {
    saved::Call::Function(e.module, e.function, e.arity as usize)
}

/// The end of an op that calls code of the same module.
macro_rules! call_to {
    ($cx:ident, $to:expr, $e:expr, $hp:ident, $reds:ident, $live:expr) => {{
        let to: *const u64 = $to;
        let reds = $reds - 1;
        if reds <= 0 {
            return used_up::<F>($cx, to, $e, $hp, reds, $live);
        }
        go!($cx, to, $e, $hp, reds)
    }};
}

pub(super) use call_to;

/// The same, by an export: who counts calls is told its name.
macro_rules! call_ext_to {
    ($cx:ident, $export:expr, $e:expr, $hp:ident, $reds:ident, $live:expr) => {{
        let export: &'static Export = $export;
        let reds = $reds - 1;
        if reds <= 0 {
            return used_up_ext::<F>($cx, export, $e, $hp, reds, $live);
        }
        go!($cx, address(export), $e, $hp, reds)
    }};
}

// Those that move put their operand into x0 before. An op that saves registers would be slower, so none of the bodies calls a
// function that is not inlined, save as the last thing.
op! {
    op_move_call = MoveCall<S: Src>(cx, pc, e, hp, reds, op) {
        (*cx).x[0] = op.src().get(cx, e);
        (e as *mut u64).write(op.next() as u64);
        call_to!(cx, op.to().to(), e, hp, reds, op.arity())
    }
    op_move_call_last = MoveCallLast<S: Src>(cx, pc, e, hp, reds, op) {
        (*cx).x[0] = op.src().get(cx, e);
        call_to!(cx, op.to().to(), e.add(op.frame() + 1), hp, reds, op.arity())
    }
    op_move_call_only = MoveCallOnly<S: Src>(cx, pc, e, hp, reds, op) {
        (*cx).x[0] = op.src().get(cx, e);
        call_to!(cx, op.to().to(), e, hp, reds, op.arity())
    }
    op_move_call_ext = MoveCallExt<S: Src>(cx, pc, e, hp, reds, op) {
        (*cx).x[0] = op.src().get(cx, e);
        (e as *mut u64).write(op.next() as u64);
        call_ext_to!(cx, op.export(), e, hp, reds, op.arity())
    }
    op_move_call_ext_last = MoveCallExtLast<S: Src>(cx, pc, e, hp, reds, op) {
        (*cx).x[0] = op.src().get(cx, e);
        call_ext_to!(cx, op.export(), e.add(op.frame() + 1), hp, reds, op.arity())
    }
    op_move_call_ext_only = MoveCallExtOnly<S: Src>(cx, pc, e, hp, reds, op) {
        (*cx).x[0] = op.src().get(cx, e);
        call_ext_to!(cx, op.export(), e, hp, reds, op.arity())
    }
    op_call = Call(cx, pc, e, hp, reds, op) {
        (e as *mut u64).write(op.next() as u64);
        call_to!(cx, op.to().to(), e, hp, reds, op.arity())
    }
    op_call_last = CallLast(cx, pc, e, hp, reds, op) {
        call_to!(cx, op.to().to(), e.add(op.frame() + 1), hp, reds, op.arity())
    }
    op_call_only = CallOnly(cx, pc, e, hp, reds, op) {
        call_to!(cx, op.to().to(), e, hp, reds, op.arity())
    }
    op_call_ext = CallExt(cx, pc, e, hp, reds, op) {
        (e as *mut u64).write(op.next() as u64);
        call_ext_to!(cx, op.export(), e, hp, reds, op.arity())
    }
    op_call_ext_last = CallExtLast(cx, pc, e, hp, reds, op) {
        call_ext_to!(cx, op.export(), e.add(op.frame() + 1), hp, reds, op.arity())
    }
    op_call_ext_only = CallExtOnly(cx, pc, e, hp, reds, op) {
        call_ext_to!(cx, op.export(), e, hp, reds, op.arity())
    }
}

/// The first `n` X registers as a list. Making it moves nothing.
///
/// # Safety
/// The first `n` X registers hold terms, and the heap is in order.
pub(super) unsafe fn args_list(cx: &mut Cx, n: usize) -> Term {
    let v: Vec<Term> = cx.x[..n].to_vec();
    cx.list(&v)
}

/// Counts a call of `to`; null if the time slice has ended with it. `live` registers hold its arguments.
///
/// # Safety
/// `to` is the entry of a function whose arguments are in the first `live` X registers, and stack and heap are in order.
pub(super) unsafe fn count_call(
    cx: &mut Cx,
    to: *const u64,
    call: Option<saved::Call>,
    live: usize,
) -> *const u64 {
    cx.reds -= 1;
    if cx.reds > 0 || saved::continue_slice(cx, call) {
        return to;
    }
    cx.interp.pc = to;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// The end of an op that returns: takes the address out of the slot, and clears it (see the invariants of the crate).
///
/// # Safety
/// `heap.stop` is the slot of a return address, and that address is in it.
pub(super) unsafe fn do_return(cx: &mut Cx) -> *const u64 {
    let e = cx.heap.stop as *mut u64;
    let to = e.read();
    e.write(0);
    to as *const u64
}

/// No clause of the function takes the arguments, which stand in x.
unsafe fn func_info(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::FuncInfo::at(pc);
    let (m, f) = (op.module(), op.function());
    let args: Vec<Term> = cx.x[..op.arity()].to_vec();
    let fail = cx.error(am::FUNCTION_CLAUSE);
    exc::raise(cx, pc, fail, First::Function(m, f, &args))
}

/// The function of an export isn't there.
unsafe fn error_handler(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let x = instr::ErrorHandler::at(pc).export();
    let args = args_list(cx, x.arity as usize);
    undefined(cx, pc, x.module, x.function, args)
}

/// Has the error handler called for a function that isn't there, or fails for want of one.
///
/// # Safety
/// As for the instruction at `pc`, which calls `m:f` with `args`.
pub(super) unsafe fn undefined(
    cx: &mut Cx,
    pc: *const u64,
    m: Term,
    f: Term,
    args: Term,
) -> *const u64 {
    let module = error_handler_of(cx);
    let target = code::export(module, am::UNDEFINED_FUNCTION, 3);
    let to = target.address();
    // There is no error handler, or it is the module that lacks the function: calling it would never end.
    if to == target.stub.as_ptr() as *mut u64 || module == m {
        let args = args.list_to_vec().unwrap_or_default();
        let fail = cx.error(am::UNDEF);
        return exc::raise(cx, pc, fail, First::Function(m, f, &args));
    }
    cx.x[0] = m;
    cx.x[1] = f;
    cx.x[2] = args;
    collect_after(cx, 3, Also::NONE);
    to
}

/// The module whose `undefined_function/3` is called for what isn't there.
pub(super) fn error_handler_of(cx: &mut Cx) -> Term {
    if cx.proc.is_null() {
        return am::ERROR_HANDLER;
    }
    match cx.process().ext().map(|e| e.error_handler) {
        Some(m) if m != NIL => m,
        _ => am::ERROR_HANDLER,
    }
}

/// The instruction that the first function of a process returns to.
///
/// # Safety
/// As for handlers.
unsafe fn process_exit(cx: &mut Cx, _: *const u64) -> *const u64 {
    cx.interp.reason = am::NORMAL;
    cx.interp.crashed = false;
    cx.interp.exit = Exit::Exited;
    std::ptr::null()
}
