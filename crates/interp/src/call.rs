//! Calls of all kinds: local, external, natives, funs, apply; and what happens where a call cannot be made.
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
use super::handler::{Flavour, go, go_on, op, outlined};
use super::operands::{C, Label, Src, X, Y, source};
use super::room::{collect, collect_after};
use super::{Exit, instr};
use crate::code;
use crate::collect::{Also, make_room_for_calls};
use crate::cx::{Cx, Fail};
use crate::lazy_atoms;
use crate::process::saved;
use purlin_isa::ops::{self, Form, Op, arith as arith_number, dirty};
use purlin_native::nif::{NifFunction, Pool};
use purlin_term::arith::Effort;
use purlin_term::fun::Export;
use purlin_term::layout::FUN_WORDS;
use purlin_term::release::{self, INCREMENTS_SHOWN};
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term, am, arith};
use smallvec::SmallVec;

lazy_atoms! {
    erts_code_purger = "erts_code_purger";
    pending_purge_lambda = "pending_purge_lambda";
}

/// Where a call by the export goes. Acquire: code that another thread has just loaded is seen whole.
#[inline(always)]
fn address(export: &Export) -> *const u64 {
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
    if saved::goes_on(&mut *cx, None) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live)
});

/// A call by an export.
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
    if saved::goes_on(&mut *cx, Some(call_of(export))) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live)
}

/// A call of fun `f` with `n` arguments, whose code starts at `pc`: it is not looked up again, since a purge may have begun
/// that has the fun lead nowhere. The heap's top stands in the context.
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
    if saved::goes_on(&mut *cx, call_of_fun(f)) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at::<F>(cx, pc, e, hp, reds, live_of(f, n))
}

fn call_of(e: &Export) -> saved::Call {
    saved::Call::Function(e.module, e.function, e.arity as usize)
}

/// The function behind fun `f`, if it is one by name.
unsafe fn call_of_fun(f: Term) -> Option<saved::Call> {
    let p = f.ptr();
    // Layout of a fun: see `purlin_term::layout`. A fun by name has its export in word 1.
    let by_name = (*p.add(3)).raw() >> 16 & 1 != 0;
    by_name.then(|| call_of(&*((*p.add(1)).raw() as *const Export)))
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

/// The same, of fun `$f`, whose code starts at `$to`.
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

// As `call_fun` and `call_fun2`, of any fun.
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

/// Where the code of `f` starts, if it is a fun of `n` arguments without an environment, which is no function by name; else null.
#[inline(always)]
unsafe fn bare_target(f: Term, n: usize) -> *const u64 {
    if !f.is_fun() {
        return std::ptr::null();
    }
    let p = f.ptr();
    // Arguments, words of the environment, whether it is a function by name.
    // One comparison for all three; no environment, so no register is written.
    if (*p.add(3)).raw() & 0x1_FFFF != n as u64 {
        return std::ptr::null();
    }
    let entry = (*p.add(1)).raw() as *const purlin_term::fun::FunEntry;
    (*entry).address()
}

/// Registers that the code of fun `f` reads.
#[inline(always)]
unsafe fn live_of(f: Term, n: usize) -> usize {
    n + ((*f.ptr().add(3)).raw() >> 8 & 0xFF) as usize
}

/// Puts the environment of `f` behind its `n` arguments, and tells where its code starts; null, and nothing put, if `f`
/// is no fun of that arity, or its module is gone: the register that holds the fun may be one of those.
#[inline(always)]
unsafe fn fun_target(cx: *mut Cx, f: Term, n: usize) -> *const u64 {
    if !f.is_fun() {
        return std::ptr::null();
    }
    let p = f.ptr();
    let m = (*p.add(3)).raw();
    // The arity, in the low byte.
    if m & 0xFF != n as u64 {
        return std::ptr::null();
    }
    if m >> 16 & 1 != 0 {
        return address(&*((*p.add(1)).raw() as *const Export));
    }
    let entry = (*p.add(1)).raw() as *const purlin_term::fun::FunEntry;
    // Null while a purge of the module is under way, or when the module has gone.
    let to = (*entry).address();
    if !to.is_null() {
        put_environment(cx, f, n);
    }
    to
}

/// Puts the environment of `f`, a fun with code of its own, behind its `n` arguments.
#[inline(always)]
unsafe fn put_environment(cx: *mut Cx, f: Term, n: usize) {
    let p = f.ptr();
    let free = ((*p.add(3)).raw() >> 8 & 0xFF) as usize;
    let x = (*cx).x.as_mut_ptr().add(n);
    for i in 0..free {
        x.add(i).write(*p.add(FUN_WORDS + i));
    }
}

/// The first `n` X registers as a list. Making it moves nothing.
pub(super) unsafe fn args_list(cx: &mut Cx, n: usize) -> Term {
    let v: Vec<Term> = cx.x[..n].to_vec();
    cx.list(&v)
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
    // Only here does it matter which of the four ops it was: arity, fun, and the words of the stack that a tail call drops.
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

/// Where the call of a fun at `pc` returns to, if it isn't a tail call.
unsafe fn return_of(pc: *const u64) -> Option<*const u64> {
    match Op::of(code::opcode_at(pc)) {
        Some(Op::CallFun) => Some(instr::CallFun::at(pc).next()),
        Some(Op::CallFun2) => Some(instr::CallFun2::at(pc).next()),
        _ => None,
    }
}
/// Writes the return address of the call at `pc`, unless it is a tail call: then the caller's stands there.
unsafe fn push_return(cx: &mut Cx, pc: *const u64) {
    if let Some(back) = return_of(pc) {
        (cx.heap.stop as *mut u64).write(back as u64);
    }
}

/// The address that the stub of `erlang:apply/2`, or `/3`, at `pc` returns to, if a call that names this function led
/// there: stock then has an instruction for it, and shows no entry of the function.
unsafe fn applied_by_name(cx: &Cx, pc: *const u64) -> Option<*const u64> {
    let arity = match pc {
        _ if cx.heap.stop >= cx.heap.hend => return None,
        p if p == code::stubs().apply_fun.as_ptr() => 2,
        p if p == code::stubs().apply.as_ptr() => 3,
        _ => return None,
    };
    // The stub was jumped to, and has made no frame: the first slot has the caller's return address.
    let back = (*cx.heap.stop).raw() as *const u64;
    code::find(back.wrapping_sub(1))?;
    let apply = code::called(am::ERLANG, am::APPLY, arity);
    // Where the call begins is known for one that has that number, ends there and calls that export.
    let call = |words: usize| back.sub(words);
    macro_rules! calls_it {
        ($($op:ident $(<$s:ident>)? = [$($form:ident),*];)*) => {
            $({
                const NUMBER: Option<u16> = Op::$op.variant(&[$(Form::$form),*]);
                const WORDS: usize = instr::$op $(::<$s>)? ::WORDS;
                let pc = call(WORDS);
                Some(code::opcode_at(pc)) == NUMBER && std::ptr::eq(instr::$op $(::<$s>)? ::at(pc).export(), apply)
            })||*
        };
    }
    let called = calls_it! {
        CallExt = [Q, H];
        MoveCallExt<X> = [X, Q, H];
        MoveCallExt<Y> = [Y, Q, H];
        MoveCallExt<C> = [C, Q, H];
    };
    called.then_some(back)
}

/// Raises what the call of `f` at `pc` failed with.
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

/// The next instruction of a call of `f`, which is no fun of arity `n` that leads anywhere. `drop` words of the stack go if
/// something else is called in its place.
unsafe fn no_fun_pc(cx: &mut Cx, pc: *const u64, f: Term, n: usize, drop: usize) -> *const u64 {
    if let Some(v) = f.as_fun() {
        let args = args_list(cx, n);
        // A fun of another arity: the arguments are part of the error.
        if v.arity as usize != n {
            let pair = cx.tuple(&[f, args]);
            let fail = cx.error2(am::BADARITY, pair);
            return raise_no_fun(cx, pc, fail);
        }
        // A purge may have ended since, or another have begun: where the fun leads by now counts.
        let purged = loop {
            let Some(entry) = v.local() else { break false };
            let before = code::purge::under_way(entry.module);
            let to = entry.address();
            if !to.is_null() {
                put_environment(cx, f, n);
                cx.heap.stop = cx.heap.stop.add(drop);
                push_return(cx, pc);
                return count_call(cx, to, call_of_fun(f), live_of(f, n));
            }
            // Read before and after the address: if both agree, the address belongs to that state of the purge.
            if code::purge::under_way(entry.module) == before {
                break before;
            }
        };
        // A fun that the loaded version of its module doesn't have is no fun any more.
        let loaded = |m: Term| !purged && code::current(m).is_some();
        if let Some(entry) = v.local().filter(|e| !loaded(e.module)) {
            let module = entry.module;
            cx.heap.stop = cx.heap.stop.add(drop);
            if purged {
                // Once the purge has ended the fun leads somewhere again, or nowhere for good: until then the process is
                // suspended.
                let me = cx.self_pid();
                if code::purge::add_caller(module, me) {
                    let p = cx.process();
                    p.ext_mut().suspended.push((me, 1));
                    p.state.suspend();
                }
                // The call is made by `erts_code_purger:pending_purge_lambda/3`, once the process runs again.
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
            let handler = super::call::error_handler_of(cx);
            let target = code::export(handler, am::UNDEFINED_LAMBDA, 3);
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

/// The form of operand `name` of the instruction at `pc`.
unsafe fn form_of(pc: *const u64, name: &str) -> Option<Form> {
    let (row, variant) = ops::lookup(code::opcode_at(pc))?;
    let at = row.operands.iter().position(|o| o.name == name)?;
    row.forms(variant).get(at).copied()
}

/// `+` or `-` failed in a body; what to raise stands in the context.
/// The heap's pointers are in the context, where the general case of the op has stored them.
#[cold]
#[inline(never)]
pub(super) unsafe fn arith_failed<F: Flavour>(
    cx: *mut Cx,
    pc: *const u64,
    reds: i64,
    a: Term,
    b: Term,
    sub: bool,
) -> F::Out {
    let c = &mut *cx;
    c.reds = reds;
    let value = c.exc.value;
    let fail = c.error(value);
    let args = [a, b];
    // With a small integer in the instruction stock had an op that isn't the native, and didn't show it.
    let of_a = form_of(pc, "a");
    let of_b = form_of(pc, "b");
    let constant =
        |t: Term, form, other| t.is_small() && form == Some(Form::C) && other != Some(Form::C);
    let plain = match sub {
        true => constant(b, of_b, of_a) && b.small_value() >= 0,
        false => constant(a, of_a, of_b) || constant(b, of_b, of_a),
    };
    let name = if sub { am::MINUS } else { am::PLUS };
    let first = match plain && !release::has(INCREMENTS_SHOWN) {
        true => First::None,
        false => First::Native(am::ERLANG, name, &args),
    };
    let next = exc::raise(c, pc, fail, first);
    go_on::<F>(cx, next)
}

/// An operation on integers failed in a body; what to raise stands in the context.
#[cold]
#[inline(never)]
pub(super) unsafe fn int_failed<F: Flavour>(
    cx: *mut Cx,
    pc: *const u64,
    reds: i64,
    a: Term,
    b: Term,
    n: usize,
) -> F::Out {
    let c = &mut *cx;
    c.reds = reds;
    let value = c.exc.value;
    let fail = c.error(value);
    let name = purlin_term::atom::intern(ops::arith::OPS[n].0);
    let next = exc::raise(c, pc, fail, First::Native(am::ERLANG, name, &[a, b]));
    go_on::<F>(cx, next)
}

op!(
/// A float operation has no finite result.
#[cold]
#[inline(never)]
fn badarith(cx, pc, e, hp, reds) {
    let c = &mut *cx;
    c.heap.htop = hp;
    c.heap.stop = e;
    c.reds = reds;
    let fail = c.error(am::BADARITH);
    let next = exc::raise(c, pc, fail, First::None);
    go_on::<F>(cx, next)
});

op! {
    op_call_bif => call_bif;
    op_call_bif_last => call_bif_last;
    op_call_bif_only => call_bif_only;
    op_apply => apply;
    op_apply_last => apply_last;
    op_i_apply => i_apply;
    op_i_apply_fun => i_apply_fun;
    op_i_apply_last => i_apply_last;
    op_i_apply_fun_last => i_apply_fun_last;
    op_func_info => func_info;
    op_error_handler => error_handler;
    op_process_exit => process_exit;
    op_call_dirty => call_dirty;
    op_bif0 => bif0;
    op_bif1 => bif1;
    op_bif2 => bif2;
    op_bif3 => bif3;
    op_arith => arith_op;
    op_make_fun => make_fun;
    nif_apart => nif;
}

// The common part of the ops that call natives.
const _: () = {
    let export = Op::CallBif.row().unit("export");
    let native = Op::CallBif.row().unit("native");
    let all = [Op::CallBifLast, Op::CallBifOnly, Op::CallDirty];
    let mut i = 0;
    while i < all.len() {
        assert!(all[i].row().unit("export") == export && all[i].row().unit("native") == native);
        i += 1;
    }
};

/// The way on behind a native.
enum After {
    /// Its value is in x0.
    Value,
    /// Go there in its place.
    Jump(*const u64),
    /// As [`After::Jump`], and it returns to behind the call, even where that was a tail call.
    Trap(*const u64),
    /// Its value is in x0, and the time slice ends.
    Yield,
}

/// Calls the native of a `call_bif` op of any kind.
#[inline(always)]
unsafe fn native(cx: &mut Cx, pc: *const u64, n: usize) -> After {
    // Export and native stand at the same place in all of them.
    let op = instr::CallBif::at(pc);
    let (export, f) = (op.export(), op.native());
    cx.bif_pc = pc;
    // The call itself; the native may count more for its work.
    cx.reds -= 1;
    // The native is called all the same. The next call of code ends the time slice.
    if cx.reds <= 0 {
        bif_used_up(cx, pc, export);
    }
    let args = cx.x.as_ptr();
    match f(cx.env_ptr(), args) {
        Ok(t) => {
            // The arguments are dead now; fragments that the native made become a part of the heap.
            cx.x[0] = t;
            collect_after(cx, 1, Also::NONE);
            After::Value
        }
        Err(fail) => native_failed(cx, pc, export, n, fail),
    }
}

/// The reductions of the time slice are used up by a call of a native, which is made still.
#[cold]
#[inline(never)]
unsafe fn bif_used_up(cx: &mut Cx, pc: *const u64, export: &Export) {
    // A call that came through the export has been noted.
    let noted = pc == export.stub.as_ptr() as *const u64;
    saved::goes_on(cx, (!noted).then(|| call_of(export)));
}

/// Err of a native, by kind. Arguments are in x still: `n` of them are live where it is called again.
#[inline(never)]
unsafe fn native_failed(
    cx: &mut Cx,
    pc: *const u64,
    export: &Export,
    n: usize,
    fail: Fail,
) -> After {
    match fail {
        Fail::Trap => {
            // Arguments of the continuation: roots from here on, since the collection below may move them.
            let argc = cx.trap.argc;
            for i in 0..argc {
                cx.x[i] = cx.trap.args[i];
            }
            collect_after(cx, argc, Also::NONE);
            After::Trap((*cx.trap.target).address())
        }
        Fail::Again | Fail::Wait | Fail::Dirty => {
            collect_after(cx, n, Also::NONE);
            // The same instruction runs again, on this thread or another: its call was told already.
            super::traced::again(cx, pc);
            cx.interp.pc = pc;
            cx.interp.live = n;
            cx.interp.exit = match fail {
                Fail::Wait => Exit::Wait,
                Fail::Dirty => Exit::DirtyIo,
                _ => Exit::Yield,
            };
            After::Jump(std::ptr::null())
        }
        // The process has ended within the native: its reason stands in the context.
        Fail::Exited => {
            cx.interp.exit = Exit::Exited;
            After::Jump(std::ptr::null())
        }
        Fail::Yield => {
            cx.x[0] = cx.trap.args[0];
            After::Yield
        }
        _ => {
            // Raising writes x1 to x3, and the trace shows the arguments.
            let args: SmallVec<[Term; 8]> = SmallVec::from_slice(&cx.x[..n]);
            let other = cx.exc.native.filter(|_| fail == Fail::Raised);
            let (m, f) = other.unwrap_or((export.module, export.function));
            After::Jump(exc::raise(cx, pc, fail, First::Native(m, f, &args)))
        }
    }
}

/// The stub of the native that the instruction at `pc` calls, if it is traced.
#[inline(always)]
unsafe fn detour(pc: *const u64) -> Option<*const u64> {
    if !crate::code::breakpoint::natives() {
        return None;
    }
    super::traced::traced_native(instr::CallBif::at(pc).export()).filter(|&s| s != pc)
}

/// As [`detour`] for a native that is called last: as it would be if it weren't traced, the frame of the function that
/// calls it stays. It returns to behind the instruction, where the frame is dropped.
#[inline(always)]
unsafe fn last_detour(cx: &mut Cx, pc: *const u64, framed: bool) -> Option<After> {
    if !crate::code::breakpoint::natives() {
        return None;
    }
    last_detour_slow(cx, pc, framed)
}
#[cold]
#[inline(never)]
unsafe fn last_detour_slow(cx: &mut Cx, pc: *const u64, framed: bool) -> Option<After> {
    let to = detour(pc)?;
    let back = match framed {
        true => instr::CallBifLast::at(pc).next(),
        false => instr::CallBifOnly::at(pc).next(),
    };
    if !framed {
        // A function without a frame has no slot for the return address: one is made, for which there may be no room.
        let live = instr::CallBifOnly::at(pc).arity();
        if cx.heap.free_words() < 1 + cx.heap.stack_reserve + live {
            collect(cx, 1 + live, live);
        }
        cx.heap.stop = cx.heap.stop.sub(1);
    }
    (cx.heap.stop as *mut u64).write(back as u64);
    Some(After::Jump(to))
}

/// x0 = native. May collect with x0 live, raise, trap, leave for later or for a dirty thread.
unsafe fn call_bif(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::CallBif::at(pc);
    // A traced native is called through the stub of its export, where the breakpoint is.
    if let Some(to) = detour(pc) {
        (cx.heap.stop as *mut u64).write(op.next() as u64);
        return to;
    }
    match native(cx, pc, op.arity()) {
        After::Value => op.next(),
        After::Jump(to) => to,
        After::Trap(to) => {
            (cx.heap.stop as *mut u64).write(op.next() as u64);
            to
        }
        After::Yield => go_on_later(cx, op.next()),
    }
}
/// The time slice ends before the instruction at `pc`, to which a native has returned.
unsafe fn go_on_later(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.interp.pc = pc;
    // The value, in x0.
    cx.interp.live = 1;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}
/// A native of a dirty pool, reached through the stub of its export: the return address is on the stack already.
unsafe fn call_dirty(cx: &mut Cx, pc: *const u64) -> *const u64 {
    // Three cases: a native of a dirty pool that begins here and goes on there if it has to; one that is sent to its pool; and the
    // call on the thread of the pool, after which the process goes back to a scheduler in any case.
    let op = instr::CallDirty::at(pc);
    let n = op.arity();
    if !cx.dirty && op.pool() == dirty::IO_LATER as usize {
        return match native(cx, pc, n) {
            After::Value => do_return(cx),
            After::Yield => {
                let to = do_return(cx);
                go_on_later(cx, to)
            }
            After::Trap(to) | After::Jump(to) => to,
        };
    }
    if !cx.dirty {
        super::traced::again(cx, pc);
        cx.interp.pc = pc;
        cx.interp.live = n;
        cx.interp.exit = if op.pool() == dirty::CPU as usize {
            Exit::DirtyCpu
        } else {
            Exit::DirtyIo
        };
        return std::ptr::null();
    }
    let (next, live) = match native(cx, pc, n) {
        After::Value | After::Yield => (do_return(cx), 1),
        After::Trap(to) => (to, cx.trap.argc),
        After::Jump(to) if to.is_null() => return to,
        // A handler: class, reason and trace stand in x1 to x3.
        After::Jump(to) => (to, 4),
    };
    cx.interp.pc = next;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}
/// The end of an op that returns: takes the address out of the slot, and clears it (see the invariants of the crate).
unsafe fn do_return(cx: &mut Cx) -> *const u64 {
    let e = cx.heap.stop as *mut u64;
    let to = e.read();
    e.write(0);
    to as *const u64
}
/// The frame stays until the native has returned: it may trap, and what it traps to returns to the op behind this one, which
/// drops the frame.
unsafe fn call_bif_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::CallBifLast::at(pc);
    let after = match last_detour(cx, pc, true) {
        Some(a) => a,
        None => native(cx, pc, op.arity()),
    };
    match after {
        After::Value => {
            // Now that the native has returned the frame can go.
            cx.heap.stop = cx.heap.stop.add(op.frame() + 1);
            do_return(cx)
        }
        After::Jump(to) => to,
        After::Trap(to) => {
            (cx.heap.stop as *mut u64).write(op.next() as u64);
            to
        }
        After::Yield => {
            cx.heap.stop = cx.heap.stop.add(op.frame() + 1);
            let to = do_return(cx);
            go_on_later(cx, to)
        }
    }
}
/// As [`call_bif_last`], without a frame: where the native traps a slot is made for the return address.
unsafe fn call_bif_only(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::CallBifOnly::at(pc);
    let after = match last_detour(cx, pc, false) {
        Some(a) => a,
        None => native(cx, pc, op.arity()),
    };
    match after {
        After::Value => do_return(cx),
        After::Jump(to) => to,
        After::Trap(to) => {
            // A stub has no place of its own.
            if pc != op.export().stub.as_ptr() as *const u64 {
                let live = cx.trap.argc;
                if cx.heap.free_words() < 1 + cx.heap.stack_reserve + live {
                    collect(cx, 1 + live, live);
                }
                cx.heap.stop = cx.heap.stop.sub(1);
                (cx.heap.stop as *mut u64).write(op.next() as u64);
            }
            to
        }
        After::Yield => {
            let to = do_return(cx);
            go_on_later(cx, to)
        }
    }
}

/// Raises for a native called by a `bif` op, or jumps to its label.
#[cold]
unsafe fn bif_failed(
    cx: &mut Cx,
    pc: *const u64,
    label: Label,
    x: &Export,
    args: &[Term],
    fail: Fail,
) -> *const u64 {
    if let Some(to) = label.given() {
        return to;
    }
    // Stock has an instruction for the plus sign, which isn't shown as a native, or as a sum with zero.
    let with_zero = [args.first().copied().unwrap_or(NIL), Term::small(0)];
    let first = match (x.function, args.len()) {
        (am::PLUS, 1) if release::has(INCREMENTS_SHOWN) => {
            First::Native(am::ERLANG, am::PLUS, &with_zero)
        }
        (am::PLUS, 1) => First::None,
        _ => First::Native(x.module, x.function, args),
    };
    exc::raise(cx, pc, fail, first)
}

/// A guard BIF without arguments: `dst` gets its value. It has no label, and makes nothing that asks for a collection.
unsafe fn bif0(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Bif0::at(pc);
    let args = cx.x.as_ptr();
    match (op.native())(cx.env_ptr(), args) {
        Ok(t) => {
            op.dst().put(cx, t);
            op.next()
        }
        Err(fail) => exc::raise(cx, pc, fail, First::None),
    }
}

/// BIFs in guards and bodies. Arguments are copied out of the registers, so that `dst` may be one of these. May collect with
/// `live` and the result; where one fails it goes to the label, and raises if there is none.
macro_rules! bif_ops {
    ($($name:ident = $op:ident($($a:ident),*);)*) => {$(
        unsafe fn $name(cx: &mut Cx, pc: *const u64) -> *const u64 {
            let op = instr::$op::at(pc);
            let args = [$(op.$a().value(cx)),*];
            cx.bif_pc = pc;
            match (op.native())(cx.env_ptr(), args.as_ptr()) {
                Ok(t) => {
                    op.dst().put(cx, t);
                    collect_after(cx, op.live(), op.dst().also());
                    op.next()
                }
                Err(fail) => bif_failed(cx, pc, op.fail(), op.export(), &args, fail),
            }
        }
    )*};
}
bif_ops! {
    bif1 = Bif1(a);
    bif2 = Bif2(a, b);
    bif3 = Bif3(a, b, c);
}

/// What the effort of each operation grows with: by its place in `ops::arith::OPS`.
pub const EFFORTS: [Effort; arith_number::OPS.len()] = [
    Effort::Longer,
    Effort::Longer,
    Effort::Product,
    Effort::Quotient,
    Effort::Quotient,
    Effort::Longer,
    Effort::Longer,
    Effort::Longer,
    Effort::Result,
    Effort::Result,
    Effort::Longer,
];

/// Operations whose operands may be anything; `n` is a place in `ops::arith::OPS`. Reads both operands before it makes anything, and
/// collects after the result is written, with that as a root.
unsafe fn arith_op(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Arith::at(pc);
    let (a, b) = (op.a().value(cx), op.b().value(cx));
    let n = op.operation();
    let small = a.is_small() && b.is_small();
    // Of no meaning unless both are small.
    let (x, y) = (a.small_value(), b.small_value());
    let quick = match n {
        5 if small => Some(Term::small(x & y)),
        6 if small => Some(Term::small(x | y)),
        7 if small => Some(Term::small(x ^ y)),
        2 if small => x.checked_mul(y).and_then(Term::try_small),
        // The least small integer by -1 is no small integer.
        3 if small && y != 0 => Term::try_small(x / y),
        4 if small && y != 0 => Some(Term::small(x % y)),
        // A longer shift, or one to the left, is left to the general case.
        9 if small && (0..64).contains(&y) => Some(Term::small(x >> y)),
        _ => None,
    };
    let v = match quick {
        Some(t) => Ok(t),
        None => {
            let h = &mut cx.heap;
            match n {
                0 => arith::add(h, a, b),
                1 => arith::sub(h, a, b),
                2 => arith::mul(h, a, b),
                3 => arith::int_div(h, a, b),
                4 => arith::int_rem(h, a, b),
                5 => arith::band(h, a, b),
                6 => arith::bor(h, a, b),
                7 => arith::bxor(h, a, b),
                arith_number::NEGATE => arith::neg(h, b),
                8 => arith::bsl(h, a, b),
                _ => arith::bsr(h, a, b),
            }
        }
    };
    match v {
        Ok(t) => {
            cx.bump(EFFORTS[n].reductions(a, b, t));
            op.dst().put(cx, t);
            collect_after(cx, op.live(), op.dst().also());
            op.next()
        }
        Err(e) => {
            if let Some(to) = op.fail().given() {
                return to;
            }
            let fail = match e {
                arith::ArithError::BadArith => cx.error(am::BADARITH),
                arith::ArithError::SystemLimit => cx.error(am::SYSTEM_LIMIT),
            };
            let (name, arity) = ops::arith::OPS[n];
            let name = purlin_term::atom::intern(name);
            let args = [a, b];
            let args = &args[2 - arity as usize..];
            exc::raise(cx, pc, fail, First::Native(am::ERLANG, name, args))
        }
    }
}

/// Where a call of `m:f` with the `n` arguments in x goes; null where `m` or `f` is no atom.
fn callee(m: Term, f: Term, n: usize) -> *const u64 {
    if !m.is_atom() || !f.is_atom() {
        return std::ptr::null();
    }
    // Made if there is none: it leads to the error handler then.
    let e = code::export(m, f, n as u32);
    e.address()
}

unsafe fn bad_apply(cx: &mut Cx, pc: *const u64, m: Term, f: Term, args: Term) -> *const u64 {
    let fail = cx.error(am::BADARG);
    let at = place_of_apply(cx, pc);
    let first = First::Native(am::ERLANG, am::APPLY, &[m, f, args]);
    exc::raise(cx, at, fail, first)
}

/// Where a call of `apply` at `pc` failed: nowhere that is shown, if it is the function's own code in place of an instruction.
unsafe fn place_of_apply(cx: &Cx, pc: *const u64) -> *const u64 {
    // The first function of a process is called by `apply/3` in any case.
    let begins = pc == code::stubs().apply.as_ptr()
        && (cx.heap.stop >= cx.heap.hend
            || (*cx.heap.stop).raw() == code::stubs().exit.as_ptr() as u64);
    match begins || applied_by_name(cx, pc).is_some() {
        true => std::ptr::null(),
        false => pc,
    }
}

/// Module and function stand behind the arguments, in x[n] and x[n + 1].
unsafe fn apply(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Apply::at(pc);
    let n = op.arity();
    let (m, f, n) = unfold(cx, cx.x[n], cx.x[n + 1], n);
    if m == am::ERLANG
        && f == am::APPLY
        && n == 3
        && cx.x[2]
            .list_to_vec()
            .is_none_or(|v| v.len() <= crate::cx::MAX_ARGS)
    {
        return bad_apply(cx, pc, cx.x[0], cx.x[1], cx.x[2]);
    }
    // `erlang:error/1` and its like raise at this instruction, not at their own stub.
    if let Some(next) = raise_here(cx, pc, (m, f, n), Tail::No) {
        return next;
    }
    let to = callee(m, f, n);
    if to.is_null() {
        let args = args_list(cx, n);
        return bad_apply(cx, pc, m, f, args);
    }
    // Only now is it known that there is a call: what failed before has left the slot as it was.
    (cx.heap.stop as *mut u64).write(op.next() as u64);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}
/// As [`apply`], as the last thing that the function does.
unsafe fn apply_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::ApplyLast::at(pc);
    let n = op.arity();
    let (m, f, n) = unfold(cx, cx.x[n], cx.x[n + 1], n);
    if m == am::ERLANG
        && f == am::APPLY
        && n == 3
        && cx.x[2]
            .list_to_vec()
            .is_none_or(|v| v.len() <= crate::cx::MAX_ARGS)
    {
        return bad_apply(cx, pc, cx.x[0], cx.x[1], cx.x[2]);
    }
    if let Some(next) = raise_here(cx, pc, (m, f, n), Tail::Framed(op.next())) {
        return next;
    }
    let to = callee(m, f, n);
    if to.is_null() {
        let args = args_list(cx, n);
        return bad_apply(cx, pc, m, f, args);
    }
    cx.heap.stop = cx.heap.stop.add(op.frame() + 1);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}
/// The function that a call of `m:f` with `n` arguments leads to: calls of `erlang:apply/3` are made on the spot, so that whoever
/// asked for them is seen in the stack trace of what fails.
fn unfold(cx: &mut Cx, mut m: Term, mut f: Term, mut n: usize) -> (Term, Term, usize) {
    while m == am::ERLANG && f == am::APPLY && n == 3 && cx.x[0].is_atom() && cx.x[1].is_atom() {
        let Some(args) = cx.x[2].list_to_vec() else {
            break;
        };
        if args.len() > crate::cx::MAX_ARGS {
            break;
        }
        (m, f, n) = (cx.x[0], cx.x[1], args.len());
        cx.x[..n].copy_from_slice(&args);
    }
    (m, f, n)
}
/// Whether a call is the last of its function, which has a frame or none, and the instruction behind it.
#[derive(Clone, Copy)]
enum Tail {
    No,
    Framed(*const u64),
    Frameless(*const u64),
}
/// Natives that always raise are called where the instruction is: its function is the first in the stack trace, even
/// where the call would have dropped its frame. None for other functions.
unsafe fn raise_here(
    cx: &mut Cx,
    pc: *const u64,
    (m, f, n): (Term, Term, usize),
    tail: Tail,
) -> Option<*const u64> {
    if !exc::raises(m, f, n) {
        return None;
    }
    if crate::code::breakpoint::natives() {
        // A call that is told goes by the stub, where the breakpoint is.
        let export = crate::code::export(m, f, n as u32);
        if let Some(stub) = super::traced::traced_native(export) {
            let back = match tail {
                Tail::No => return None,
                _ if crate::code::module_at(pc).is_none() => return None,
                Tail::Framed(next) => next,
                Tail::Frameless(next) => {
                    if cx.heap.free_words() < 1 + cx.heap.stack_reserve + n {
                        collect(cx, 1 + n, n);
                    }
                    cx.heap.stop = cx.heap.stop.sub(1);
                    next
                }
            };
            (cx.heap.stop as *mut u64).write(back as u64);
            return Some(stub);
        }
    }
    let (_, native) = crate::code::native(m, f, n as u32)?;
    // Raising writes x1 to x3, and the trace shows the arguments.
    let args: SmallVec<[Term; 8]> = cx.x[..n].into();
    // `erlang:apply/3` as a function is the runtime's own code: whoever called it is meant.
    let (pc, at) = match crate::code::module_at(pc) {
        Some(_) => (pc, pc),
        None => (std::ptr::null(), *(cx.heap.stop as *const *const u64)),
    };
    cx.bif_pc = at;
    match (native.call)(cx.env_ptr(), args.as_ptr()) {
        Ok(_) => None,
        Err(fail) => Some(exc::raise(cx, pc, fail, First::Native(m, f, &args))),
    }
}
/// Counts a call of `to`; null if the time slice has ended with it. `live` registers hold its arguments.
unsafe fn count_call(
    cx: &mut Cx,
    to: *const u64,
    call: Option<saved::Call>,
    live: usize,
) -> *const u64 {
    cx.reds -= 1;
    if cx.reds > 0 || saved::goes_on(cx, call) {
        return to;
    }
    cx.interp.pc = to;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}
/// Most arguments that `apply/3` takes, and `apply/2`: more than any function has, which is then found not to be there.
pub(super) const MOST_APPLIED: usize = crate::cx::X_REGS - 1;
const MOST_APPLIED_FUN: usize = MOST_APPLIED - 1;

/// Spreads a list over the registers: how many; `None` if it is no proper list or longer than `most`.
fn spread(cx: &mut Cx, list: Term, most: usize) -> Option<usize> {
    // Registers are written although the list may turn out to be improper. The register that held it may be among them, so
    // callers have it in hand.
    let mut it = list.list_iter();
    let mut n = 0;
    for t in it.by_ref() {
        if n >= most {
            return None;
        }
        cx.x[n] = t;
        n += 1;
    }
    it.tail().is_nil().then_some(n)
}
/// The failure for arguments that could not be spread.
fn not_spread(cx: &mut Cx, list: Term, most: usize) -> Fail {
    match list.list_iter().take(most + 1).count() > most {
        true => Fail::SystemLimit,
        false => cx.error(am::BADARG),
    }
}
unsafe fn i_apply_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::IApplyLast::at(pc);
    apply_list(cx, pc, op.frame() + 1, Tail::Framed(op.next()))
}
/// Without a frame, as the function `erlang:apply/3` itself runs it.
pub(super) unsafe fn i_apply(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let next = instr::IApply::at(pc).next();
    apply_list(cx, pc, 0, Tail::Frameless(next))
}
/// Calls x0:x1 with the arguments in list x2; `drop` words of the stack go if it can be called.
unsafe fn apply_list(cx: &mut Cx, pc: *const u64, drop: usize, tail: Tail) -> *const u64 {
    let (m, f, n, args) = loop {
        let (m, f, args) = (cx.x[0], cx.x[1], cx.x[2]);
        let Some(n) = spread(cx, args, MOST_APPLIED) else {
            if m.is_atom() && f.is_atom() {
                let fail = not_spread(cx, args, MOST_APPLIED);
                let at = place_of_apply(cx, pc);
                let first = First::Native(am::ERLANG, am::APPLY, &[m, f, args]);
                return exc::raise(cx, at, fail, first);
            }
            return bad_apply(cx, pc, m, f, args);
        };
        // The function that `erlang:apply/3` is to call is called at once, by this instruction.
        if m != am::ERLANG || f != am::APPLY || n != 3 {
            break (m, f, n, args);
        }
    };
    if n > crate::cx::MAX_ARGS && m.is_atom() && f.is_atom() {
        cx.heap.stop = cx.heap.stop.add(drop);
        // No function has so many arguments, so it isn't there.
        return undefined(cx, std::ptr::null(), m, f, args);
    }
    if let Some(next) = raise_here(cx, pc, (m, f, n), tail) {
        return next;
    }
    let to = callee(m, f, n);
    if to.is_null() {
        return bad_apply(cx, pc, m, f, args);
    }
    cx.heap.stop = cx.heap.stop.add(drop);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}
unsafe fn i_apply_fun_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_fun_list(cx, pc, instr::IApplyFunLast::at(pc).frame() + 1)
}
unsafe fn i_apply_fun(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_fun_list(cx, pc, 0)
}
/// Calls fun x0 with the arguments in list x1; `drop` words of the stack go if it can be called.
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
    // The fun is `erlang:apply/2` itself: another stub tells traces that it was applied.
    if to == code::stubs().apply_fun.as_ptr() {
        to = code::stubs().reapply_fun.as_ptr();
    }
    cx.heap.stop = cx.heap.stop.add(drop);
    count_call(cx, to, call_of_fun(f), live_of(f, n))
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
unsafe fn undefined(cx: &mut Cx, pc: *const u64, m: Term, f: Term, args: Term) -> *const u64 {
    let module = super::call::error_handler_of(cx);
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

/// The instruction that the first function of a process returns to.
unsafe fn process_exit(cx: &mut Cx, _: *const u64) -> *const u64 {
    cx.interp.reason = am::NORMAL;
    cx.interp.crashed = false;
    cx.interp.exit = Exit::Exited;
    std::ptr::null()
}

/// Has no `live`, so it never collects: where the heap is full `alloc` gives a fragment.
unsafe fn make_fun(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::MakeFun::at(pc);
    let (entry, n, list) = (op.entry(), op.count(), op.environment());
    let p = cx.heap.alloc(FUN_WORDS + n);
    let w = p as *mut u64;
    // Word 2, the link of the off-heap list, is written by `link`.
    w.write(header(Subtag::Fun, FUN_WORDS - 1 + n));
    w.add(1).write(entry as u64);
    w.add(3).write(u64::from((*entry).arity) | (n as u64) << 8);
    let pid = cx.self_pid();
    p.add(4).write(pid);
    for i in 0..n {
        p.add(FUN_WORDS + i)
            .write(source(cx, cx.heap.stop, *list.add(i)));
    }
    // The count is given back when the fun dies, which the off-heap list tells the collector.
    (*entry).retain();
    cx.heap.off_heap.link(p);
    op.dst().put(cx, Term::boxed_at(p));
    op.next()
}

op!(
/// Where a native library may take over: runs its function, or the Erlang code if there is none. A function that schedulers call,
/// and that gives a value that nothing is to be done about, costs little more than the call.
fn op_nif(cx, pc, e, hp, reds) {
    let f = instr::Nif::at(pc).slot().get();
    // No library has filled the slot: the Erlang code of the function follows.
    if f.is_null() {
        go!(cx, instr::Nif::at(pc).next(), e, hp, reds)
    }
    // All other functions, and threads of dirty pools, take the long way.
    if !(*f).plain || (*cx).dirty {
        return nif_apart::<F>(cx, pc, e, hp, reds);
    }
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds - 1;
    (*cx).bif_pc = pc;
    // `f` may be gone after this.
    let t = ((*f).call)((*cx).env_ptr(), (*cx).x.as_ptr(), f);
    // A call that has used up the time slice yields at the next one, as any other.
    if t == Term::NON_VALUE || (*cx).heap.gc_wanted {
        return plain_nif_ended::<F>(cx, pc, t);
    }
    (*cx).x[0] = t;
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, (*cx).heap.htop, (*cx).reds)
});

/// The function that was called at `pc` has given `t`, and there is more to be done than to return it.
#[cold]
#[inline(never)]
unsafe fn plain_nif_ended<F: Flavour>(cx: *mut Cx, pc: *const u64, t: Term) -> F::Out {
    let next = outlined(&mut *cx, pc, |cx, pc| {
        let called = Called::of(&*instr::Nif::at(pc).slot().get());
        nif_ended(cx, pc, &called, t)
    });
    go_on::<F>(cx, next)
}

/// The names of a function of a library, as traces tell them. The function itself may be gone after the call: what a call had
/// asked for ends with it.
struct Called {
    module: Term,
    function: Term,
    arity: usize,
    /// Registers behind the arguments, of what it is called in the place of.
    more: usize,
}

impl Called {
    fn of(f: &NifFunction) -> Called {
        Called {
            module: f.module,
            function: f.function,
            arity: f.arity as usize,
            more: f.first as usize,
        }
    }
}

/// As [`op_nif`], of any function that there is.
unsafe fn nif(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let f = instr::Nif::at(pc).slot().get();
    let called = Called::of(&*f);
    let pool = (*f).pool;
    if (pool != Pool::Normal) != cx.dirty {
        return other_thread(cx, pc, pool, called.arity + called.more);
    }
    cx.bif_pc = pc;
    cx.reds -= 1;
    let args = cx.x.as_ptr();
    let t = ((*f).call)(cx.env_ptr(), args, f);
    nif_ended(cx, pc, &called, t)
}

/// A function of a library has given `t`, or none. The result is the next instruction, or null: the time slice or the process has
/// ended.
unsafe fn nif_ended(cx: &mut Cx, pc: *const u64, called: &Called, t: Term) -> *const u64 {
    if cx.dirty && cx.process().state.load().is_exiting() {
        // It has ended within the function. Its code may be gone.
        cx.interp.live = 0;
        cx.interp.exit = Exit::Yield;
        return std::ptr::null();
    }
    // A function that asks for another one in its place again and again calls nothing.
    let mut yields = false;
    let (next, live) = if t != Term::NON_VALUE {
        cx.x[0] = t;
        // The function found the heap full, and will be called again: see `make_room_for_calls`.
        if cx.heap.frag_words != 0 {
            make_room_for_calls(cx);
        }
        collect_after(cx, 1, Also::NONE);
        (do_return(cx), 1)
    } else if cx.failed == Fail::Scheduled {
        let Some(s) = cx.process().ext_mut().scheduled.as_mut() else {
            return exc::raise(cx, pc, Fail::Badarg, First::None);
        };
        // From here on the registers hold them, and the collection below leads them on.
        let args = std::mem::take(&mut s.args);
        let to = s.code.as_ptr();
        yields = cx.reds <= 0;
        cx.x[..args.len()].copy_from_slice(&args);
        collect_after(cx, args.len(), Also::NONE);
        (to, args.len())
    } else {
        // Of a call in the place of another, that one is told.
        let (n, more) = (called.arity, called.more);
        let told = if more > 0 { n..n + more } else { 0..n };
        let args: SmallVec<[Term; 8]> = cx.x[told].into();
        let first = First::Library(called.module, called.function, &args);
        let next = exc::raise(cx, pc, cx.failed, first);
        if next.is_null() {
            return next;
        }
        // A handler: class, reason and trace stand in x1 to x3.
        (next, 4)
    };
    if !yields && !cx.dirty {
        return next;
    }
    cx.interp.pc = next;
    cx.interp.live = live;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}

/// The function of a native library at `pc` is called by threads of that pool, which this one isn't of.
#[cold]
unsafe fn other_thread(cx: &mut Cx, pc: *const u64, pool: Pool, live: usize) -> *const u64 {
    super::traced::again(cx, pc);
    cx.interp.pc = pc;
    cx.interp.live = live;
    cx.interp.exit = match pool {
        Pool::Normal => Exit::Yield,
        Pool::DirtyCpu => Exit::DirtyCpu,
        Pool::DirtyIo => Exit::DirtyIo,
    };
    std::ptr::null()
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
