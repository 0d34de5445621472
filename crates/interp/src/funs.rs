//! Funs: how they are made, called and applied, and what happens if one leads nowhere. Their words:
//! `purlin_term::layout`.
//!
//! A call puts the environment after the arguments, so that it counts among the live registers. An
//! op that finds no code leaves stack and registers unchanged until it knows what follows.

use super::apply::{MOST_APPLIED, applied_by_name, not_spread, place_of_apply, spread};
use super::call::{
    address, args_list, call_of, count_call, error_handler_of, note_handler, yield_at,
};
use super::exc::{self, First};
use super::handler::{Flavour, go, go_on, op};
use super::operands::source;
use super::{Exit, instr};
use crate::code;
use crate::cx::Cx;
use crate::process::saved;
use crate::signal::suspend;
use purlin_isa::ops::Op;
use purlin_native::lazy_atoms;
use purlin_term::layout::{FUN_WORDS, FunWords, Target};
use purlin_term::{Alloc, Term, am};

lazy_atoms! {
    erts_code_purger = "erts_code_purger";
    pending_purge_lambda = "pending_purge_lambda";
}

op! {
    op_i_apply_fun => i_apply_fun;
    op_i_apply_fun_last => i_apply_fun_last;
    op_make_fun => make_fun;
}

/// Returns the function that `f` refers to, if it is an external fun.
fn call_of_fun(f: Term) -> Option<saved::Call> {
    f.fun_words()?.export().map(call_of)
}

/// A call of fun `f` with `n` arguments, whose code starts at `pc`. The code is not looked up
/// again, since a purge may have begun, after which the fun leads nowhere. The heap's top is in the
/// context.
///
/// # Safety
/// As for handlers, during the call: `pc` must be the entry of the code of `f`, whose arguments and
/// environment must be in the first `n` X registers and those after them.
#[cold]
#[inline(never)]
unsafe fn used_up_fun<F: Flavour>(
    cx: *mut Cx,
    f: Term,
    e: *mut Term,
    pc: *const u64,
    reds: i64,
    n: usize,
) -> F::Out {
    (*cx).reds = reds;
    let hp = (*cx).heap.htop;
    if saved::continue_slice(&mut *cx, call_of_fun(f)) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live_of(f, n))
}

/// The same for fun `$f`, whose code starts at `$to`.
macro_rules! call_fun_to {
    ($cx:ident, $to:expr, $e:expr, $hp:ident, $reds:ident, $f:expr, $n:expr) => {{
        let reds = $reds - 1;
        if reds <= 0 {
            (*$cx).heap.htop = $hp;
            return used_up_fun::<F>($cx, $f, $e, $to, reds, $n);
        }
        go!($cx, $to, $e, $hp, reds)
    }};
}

op! {
    op_call_fun = CallFun(cx, pc, e, hp, reds, op) {
        let n = op.arity();
        let f = (&(*cx).x)[n];
        let to = bare_target(f, n);
        if to.is_null() {
            return call_closure::<F>(cx, pc, e, hp, reds);
        }
        (e as *mut u64).write(op.next() as u64);
        call_fun_to!(cx, to, e, hp, reds, f, n)
    }
    op_call_fun2 = CallFun2(cx, pc, e, hp, reds, op) {
        let n = op.arity();
        let f = op.fun().get(cx, e);
        let to = bare_target(f, n);
        if to.is_null() {
            return call_closure2::<F>(cx, pc, e, hp, reds);
        }
        (e as *mut u64).write(op.next() as u64);
        call_fun_to!(cx, to, e, hp, reds, f, n)
    }
    op_call_fun_last = CallFunLast(cx, pc, e, hp, reds, op) {
        let n = op.arity();
        let f = (&(*cx).x)[n];
        let to = fun_target(cx, f, n);
        if to.is_null() {
            return no_fun::<F>(cx, pc, e, hp, reds);
        }
        call_fun_to!(cx, to, e.add(op.frame() + 1), hp, reds, f, n)
    }
    op_call_fun2_last = CallFun2Last(cx, pc, e, hp, reds, op) {
        let n = op.arity();
        let f = op.fun().get(cx, e);
        let to = fun_target(cx, f, n);
        if to.is_null() {
            return no_fun::<F>(cx, pc, e, hp, reds);
        }
        call_fun_to!(cx, to, e.add(op.frame() + 1), hp, reds, f, n)
    }
}

// As `call_fun` and `call_fun2`, for any fun.
op!(
#[inline(never)]
call_closure = CallFun(cx, pc, e, hp, reds, op) {
    let n = op.arity();
    let f = (&(*cx).x)[n];
    let to = fun_target(cx, f, n);
    if to.is_null() {
        return no_fun::<F>(cx, pc, e, hp, reds);
    }
    (e as *mut u64).write(op.next() as u64);
    call_fun_to!(cx, to, e, hp, reds, f, n)
});

op!(
/// See [`call_closure`].
#[inline(never)]
call_closure2 = CallFun2(cx, pc, e, hp, reds, op) {
    let n = op.arity();
    let f = op.fun().get(cx, e);
    let to = fun_target(cx, f, n);
    if to.is_null() {
        return no_fun::<F>(cx, pc, e, hp, reds);
    }
    (e as *mut u64).write(op.next() as u64);
    call_fun_to!(cx, to, e, hp, reds, f, n)
});

/// Returns where the code of `f` starts, if it is a local fun of `n` arguments without an
/// environment; otherwise null.
///
/// # Safety
/// `f` must be a term of the process.
#[inline(always)]
unsafe fn bare_target(f: Term, n: usize) -> *const u64 {
    match f.fun_words() {
        // There is no environment, so no register is written.
        Some(f) if f.is_bare(n) => f.entry().address(),
        _ => std::ptr::null(),
    }
}

/// Returns the number of registers that the code of fun `f` reads.
#[inline(always)]
fn live_of(f: Term, n: usize) -> usize {
    n + f.fun_words().map_or(0, |f| f.free())
}

/// Puts the environment of `f` after its `n` arguments, and returns where its code starts. If `f`
/// is no fun of that arity, or its module is gone, it returns null and writes nothing, since the
/// register with the fun may be one of those.
///
/// # Safety
/// `f` must be a term of the process, and there must be X registers for `n` arguments and an
/// environment.
#[inline(always)]
unsafe fn fun_target(cx: *mut Cx, f: Term, n: usize) -> *const u64 {
    let Some(fun) = f.fun_words() else {
        return std::ptr::null();
    };
    if fun.arity() != n {
        return std::ptr::null();
    }
    if let Some(export) = fun.export() {
        return address(export);
    }
    // Null while a purge of the module is in progress, or when the module is gone.
    let to = fun.entry().address();
    if !to.is_null() {
        put_environment(cx, fun, n);
    }
    to
}

/// Puts the environment of local fun `f` after its `n` arguments.
///
/// # Safety
/// `f` must be a local fun, and there must be X registers for `n` arguments and its environment.
#[inline(always)]
unsafe fn put_environment(cx: *mut Cx, f: FunWords, n: usize) {
    let environment = f.environment();
    let x = (*cx).x.as_mut_ptr().add(n);
    for i in 0..f.free() {
        x.add(i).write(*environment.add(i));
    }
}

op!(
/// A `call_fun` op whose fun leads nowhere by itself.
#[cold]
#[inline(never)]
fn no_fun(cx, pc, e, hp, reds) {
    let cx = &mut *cx;
    cx.heap.htop = hp;
    cx.heap.stop = e;
    cx.reds = reds;
    // Only here it matters which of the four ops it was: arity, fun, and the words of the stack
    // that a tail call drops.
    let (n, f, drop) = match Op::of(code::opcode_at(pc)) {
        Some(Op::CallFun) => {
            let n = instr::CallFun::at(pc).arity();
            (n, cx.x[n], 0)
        }
        Some(Op::CallFunLast) => {
            let op = instr::CallFunLast::at(pc);
            (op.arity(), cx.x[op.arity()], op.frame() + 1)
        }
        Some(Op::CallFun2) => {
            let op = instr::CallFun2::at(pc);
            (op.arity(), op.fun().get(cx, e), 0)
        }
        _ => {
            let op = instr::CallFun2Last::at(pc);
            (op.arity(), op.fun().get(cx, e), op.frame() + 1)
        }
    };
    let next = no_fun_pc(cx, pc, f, n, drop);
    go_on::<F>(cx, next)
});

/// Returns the return address of the call of a fun at `pc`, unless it is a tail call.
///
/// # Safety
/// There must be an instruction at `pc`.
unsafe fn return_of(pc: *const u64) -> Option<*const u64> {
    match Op::of(code::opcode_at(pc)) {
        Some(Op::CallFun) => Some(instr::CallFun::at(pc).next()),
        Some(Op::CallFun2) => Some(instr::CallFun2::at(pc).next()),
        _ => None,
    }
}

/// Writes the return address of the call at `pc`, unless it is a tail call: then the caller's is
/// there.
unsafe fn push_return(cx: &mut Cx, pc: *const u64) {
    if let Some(back) = return_of(pc) {
        (cx.heap.stop as *mut u64).write(back as u64);
    }
}

/// Raises `fail`, the failure of the call of a fun at `pc`.
unsafe fn raise_no_fun(cx: &mut Cx, pc: *const u64, fail: crate::cx::Fail) -> *const u64 {
    if let Some(back) = applied_by_name(cx, pc) {
        return exc::raise(cx, back.sub(1), fail, First::Call(back));
    }
    let first = match return_of(pc) {
        Some(back) => First::Call(back),
        None => First::None,
    };
    exc::raise(cx, pc, fail, first)
}

/// Returns the next instruction for a call of `f`, which is no fun of arity `n` that leads
/// anywhere. `drop` words of the stack are dropped if something else is called instead.
unsafe fn no_fun_pc(cx: &mut Cx, pc: *const u64, f: Term, n: usize, drop: usize) -> *const u64 {
    if let (Some(v), Some(words)) = (f.as_fun(), f.fun_words()) {
        let args = args_list(cx, n);
        // A fun of another arity: the arguments are part of the error.
        if v.arity as usize != n {
            let pair = cx.tuple(&[f, args]);
            let fail = cx.error2(am::BADARITY, pair);
            return raise_no_fun(cx, pc, fail);
        }
        // A purge may have ended or begun since, so the fun's present target counts.
        let purged = loop {
            let Some(entry) = v.local() else { break false };
            let before = code::purge::under_way(entry.module);
            let to = entry.address();
            if !to.is_null() {
                put_environment(cx, words, n);
                cx.heap.stop = cx.heap.stop.add(drop);
                push_return(cx, pc);
                return count_call(cx, to, call_of_fun(f), live_of(f, n));
            }
            // Read before and after the address: if both agree, the address belongs to that state
            // of the purge.
            if code::purge::under_way(entry.module) == before {
                break before;
            }
        };
        // A fun that the loaded version of its module doesn't have is no longer a fun.
        let loaded = |m: Term| !purged && code::current(m).is_some();
        if let Some(entry) = v.local().filter(|e| !loaded(e.module)) {
            let module = entry.module;
            cx.heap.stop = cx.heap.stop.add(drop);
            if purged {
                // When the purge has ended, the fun leads somewhere again, or nowhere for good.
                // Until then the process is suspended.
                let me = cx.self_pid();
                if code::purge::add_caller(module, me) {
                    let p = cx.process();
                    suspend::suspend(p, me);
                }
                // `erts_code_purger:pending_purge_lambda/3` makes the call when the process runs
                // again.
                cx.x[0] = module;
                cx.x[1] = f;
                cx.x[2] = args;
                push_return(cx, pc);
                let target = code::export(erts_code_purger(), pending_purge_lambda(), 3);
                cx.interp.pc = target.address();
                cx.interp.live = 3;
                cx.interp.exit = Exit::Yield;
                return std::ptr::null();
            }
            // The module of the fun is gone: the error handler may load it again.
            let handler = error_handler_of(cx);
            let target = code::export(handler, am::UNDEFINED_LAMBDA, 3);
            note_handler(cx, target);
            cx.x[0] = module;
            cx.x[1] = f;
            cx.x[2] = args;
            push_return(cx, pc);
            return target.address();
        }
    }
    let fail = cx.error2(am::BADFUN, f);
    raise_no_fun(cx, pc, fail)
}

const MOST_APPLIED_FUN: usize = MOST_APPLIED - 1;

unsafe fn i_apply_fun_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_fun_list(cx, pc, instr::IApplyFunLast::at(pc).frame() + 1)
}

unsafe fn i_apply_fun(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_fun_list(cx, pc, 0)
}

/// Calls fun x0 with the arguments in list x1; `drop` words of the stack are dropped if it can be
/// called.
unsafe fn apply_fun_list(cx: &mut Cx, pc: *const u64, drop: usize) -> *const u64 {
    let (f, args) = (cx.x[0], cx.x[1]);
    let Some(n) = spread(cx, args, MOST_APPLIED_FUN) else {
        let fail = not_spread(cx, args, MOST_APPLIED_FUN);
        let at = place_of_apply(cx, pc);
        let first = First::Native(am::ERLANG, am::APPLY, &[f, args]);
        return exc::raise(cx, at, fail, first);
    };
    let mut to = fun_target(cx, f, n);
    if to.is_null() {
        return no_fun_pc(cx, pc, f, n, drop);
    }
    // The fun is `erlang:apply/2` itself: another stub shows traces that it was applied.
    if to == code::stubs().apply_fun.as_ptr() {
        to = code::stubs().reapply_fun.as_ptr();
    }
    cx.heap.stop = cx.heap.stop.add(drop);
    count_call(cx, to, call_of_fun(f), live_of(f, n))
}

/// Has no `live`, so it never collects: if the heap is full `alloc` returns a fragment.
unsafe fn make_fun(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::MakeFun::at(pc);
    let (entry, n, list) = (op.entry(), op.count(), op.environment());
    let p = cx.heap.alloc(FUN_WORDS + n);
    let pid = cx.self_pid();
    // `link` writes the link of the off-heap list.
    FunWords::write(p, Target::Entry(entry), (*entry).arity, n as u8, pid);
    for i in 0..n {
        p.add(FUN_WORDS + i)
            .write(source(cx, cx.heap.stop, *list.add(i)));
    }
    // The count is released when the fun dies, which the collector finds by the off-heap list.
    (*entry).retain();
    cx.heap.off_heap.link(p);
    op.dst().put(cx, Term::boxed_at(p));
    op.next()
}
