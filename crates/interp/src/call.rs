//! Calls, local and external; how all calls are made; and what happens if a function isn't defined.
//!
//! # How a call is made
//! - Arguments are in x0 and up. `*e`, the first slot of the caller's frame, gets the return
//!   address. A tail call has dropped the frame before (`frame + 1` words: the Y registers and that
//!   slot), so `*e` is what its own caller wrote there.
//! - A call counts one reduction. If none is left the process yields before the first instruction
//!   of the called function, with its arguments live; the environment of a fun counts as arguments.
//! - A call of loaded code collects nothing, except for the slot of a return address if natives are
//!   traced. Natives make fragments, and the op collects afterwards with x0 live.
//! - An op that doesn't find the function it calls leaves stack and registers unchanged until it
//!   knows what follows.

use super::exc::{self, First};
use super::handler::{Flavour, go, op};
use super::operands::Src;
use super::room::collect_after;
use super::{Exit, instr};
use crate::code;
use crate::collect::Also;
use crate::cx::Cx;
use crate::process::{SAVES, saved};
use purlin_term::fun::Export;
use purlin_term::{Alloc, NIL, Term, am};

op! {
    op_func_info => func_info;
    op_error_handler => error_handler;
    op_process_exit => process_exit;
}

/// Returns where a call by the export goes. Acquire: code that another thread has just loaded is
/// seen complete.
#[inline(always)]
pub(super) fn address(export: &Export) -> *const u64 {
    export.address()
}

op!(
/// Ends the time slice before the instruction at `pc`. `live` X registers hold terms there: the
/// process may be collected before it continues.
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

// Handlers for calls that use up the reductions of the time slice. They have few enough parameters
// for registers: with some in memory, the ops that call these would need frames of their own.

op!(
/// A call of the code at `pc`.
#[cold]
#[inline(never)]
fn used_up(cx, pc, e, hp, reds, live: usize) {
    // `continue_slice` records the call if the process saves its calls, and gives it the rest of
    // the time slice in that case.
    (*cx).reds = reds;
    if saved::continue_slice(&mut *cx, None) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live)
});

/// A call by an export.
///
/// # Safety
/// As for handlers, during the call: its arguments must be in the first `live` X registers.
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

/// The same by an export: code that records calls gets its name.
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

// The ops that move put their operand into x0 first. An op that saves registers would be slower, so
// none of the bodies calls a function that is not inlined, except at its end.
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

/// Returns the first `n` X registers as a list. Making it moves nothing.
///
/// # Safety
/// The first `n` X registers must hold terms, and the heap must be valid.
pub(super) unsafe fn args_list(cx: &mut Cx, n: usize) -> Term {
    let v: Vec<Term> = cx.x[..n].to_vec();
    cx.list(&v)
}

/// Counts a call of `to`; returns null if that ends the time slice. `live` registers hold its
/// arguments.
///
/// # Safety
/// `to` must be the entry of a function whose arguments are in the first `live` X registers; stack
/// and heap must be valid.
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

/// The end of an op that returns: takes the address out of the slot, and clears it (see the
/// invariants of the crate).
///
/// # Safety
/// `heap.stop` must be the slot of a return address, and hold that address.
pub(super) unsafe fn do_return(cx: &mut Cx) -> *const u64 {
    let e = cx.heap.stop as *mut u64;
    let to = e.read();
    e.write(0);
    to as *const u64
}

/// Raises `function_clause`: no clause of the function matches the arguments in x.
unsafe fn func_info(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::FuncInfo::at(pc);
    let (m, f) = (op.module(), op.function());
    let args: Vec<Term> = cx.x[..op.arity()].to_vec();
    let fail = cx.error(am::FUNCTION_CLAUSE);
    exc::raise(cx, pc, fail, First::Function(m, f, &args))
}

/// Handles a call of an export whose function isn't defined.
unsafe fn error_handler(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let x = instr::ErrorHandler::at(pc).export();
    let args = args_list(cx, (x.arity & 0xFF) as usize);
    undefined(cx, pc, x.module, x.function, args)
}

/// Calls the error handler for a function that isn't defined, or fails if there is none.
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
    // There is no error handler, or its module lacks the function: calling it would never end.
    if to == target.stub.as_ptr() as *mut u64 || module == m {
        let args = args.list_to_vec().unwrap_or_default();
        let fail = cx.error(am::UNDEF);
        return exc::raise(cx, pc, fail, First::Function(m, f, &args));
    }
    cx.x[0] = m;
    cx.x[1] = f;
    cx.x[2] = args;
    note_handler(cx, target);
    collect_after(cx, 3, Also::NONE);
    to
}

/// Records a call of an error handler if the process saves its calls.
pub(super) fn note_handler(cx: &mut Cx, handler: &Export) {
    if !cx.proc.is_null() && cx.process().has(SAVES) {
        saved::note(cx.process(), call_of(handler));
    }
}

/// Returns the module whose `undefined_function/3` is called for undefined functions.
pub(super) fn error_handler_of(cx: &mut Cx) -> Term {
    if cx.proc.is_null() {
        return am::ERROR_HANDLER;
    }
    match cx.process().ext().map(|e| e.error_handler) {
        Some(m) if m != NIL => m,
        _ => am::ERROR_HANDLER,
    }
}

/// The instruction to which the first function of a process returns.
///
/// # Safety
/// As for handlers.
unsafe fn process_exit(cx: &mut Cx, _: *const u64) -> *const u64 {
    cx.interp.reason = am::NORMAL;
    cx.interp.crashed = false;
    cx.interp.exit = Exit::Exited;
    std::ptr::null()
}
