//! Calls of all kinds: local, external, natives, funs, apply; and what happens where a call cannot be made.

use super::exc::{self, First};
use super::operands::*;
use super::{Exit, collect_after, go, slow_op};
use crate::code;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::process::collect::Also;
use crate::process::state::SUSPENDED;
use crate::trace::saved;
use purlin_isa::ops::{self, Form, arith as arith_number, dirty};
use purlin_term::fun::Export;
use purlin_term::layout::FUN_WORDS;
use purlin_term::word::{Subtag, header};
use purlin_term::{Alloc, NIL, Term, am, arith};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

lazy_atoms! {
    erts_code_purger = "erts_code_purger";
    pending_purge_lambda = "pending_purge_lambda";
}

type Native = unsafe fn(&mut Cx, *const Term) -> BifResult;

#[inline(always)]
unsafe fn h(pc: *const u64, unit: usize) -> usize {
    *(pc as *const u16).add(unit) as usize
}
#[inline(always)]
unsafe fn q(pc: *const u64, unit: usize) -> u64 {
    ((pc as *const u16).add(unit) as *const u64).read_unaligned()
}
#[inline(always)]
unsafe fn label(pc: *const u64) -> *const u64 {
    pc.offset(((pc as *const u16).add(1) as *const i32).read_unaligned() as isize)
}
#[inline(always)]
unsafe fn address(export: u64) -> *const u64 {
    (*(export as *const Export)).address.load(Ordering::Acquire)
}

/// The time slice ends before the instruction at `pc`.
#[cold]
#[inline(never)]
unsafe fn yield_at(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
    live: usize,
) -> Exit {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    (*cx).interp.pc = pc;
    (*cx).interp.live = live;
    Exit::Yield
}

// What follows where a call uses up the reductions of the time slice. Arguments are few enough for registers: with some in
// memory the ops that call these would need frames of their own.

/// A call of what is at `pc`.
#[cold]
#[inline(never)]
pub(super) unsafe fn used_up(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
    live: usize,
) -> Exit {
    (*cx).reds = reds;
    if saved::goes_on(&mut *cx, None) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at(cx, pc, e, hp, reds, live)
}

/// A call by an export.
#[cold]
#[inline(never)]
unsafe fn used_up_ext(
    cx: *mut Cx,
    export: u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
    live: usize,
) -> Exit {
    (*cx).reds = reds;
    let pc = address(export);
    if saved::goes_on(&mut *cx, Some(call_of(&*(export as *const Export)))) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at(cx, pc, e, hp, reds, live)
}

/// A call of fun `f` with `n` arguments, whose code starts at `pc`: it is not looked up again, since a purge may have begun
/// that has the fun lead nowhere. The heap's top stands in the context.
#[cold]
#[inline(never)]
unsafe fn used_up_fun(
    cx: *mut Cx,
    f: Term,
    e: *mut Term,
    pc: *const u64,
    reds: i64,
    n: usize,
) -> Exit {
    (*cx).reds = reds;
    let hp = (*cx).heap.htop;
    if saved::goes_on(&mut *cx, call_of_fun(f)) {
        go!(cx, pc, e, hp, (*cx).reds)
    }
    yield_at(cx, pc, e, hp, reds, live_of(f, n))
}

fn call_of(e: &Export) -> saved::Call {
    saved::Call::Function(e.module, e.function, e.arity as usize)
}

/// What is called where fun `f` is.
unsafe fn call_of_fun(f: Term) -> Option<saved::Call> {
    let p = f.ptr();
    let by_name = (*p.add(3)).raw() >> 16 & 1 != 0;
    by_name.then(|| call_of(&*((*p.add(1)).raw() as *const Export)))
}

macro_rules! call_to {
    ($cx:ident, $to:expr, $e:expr, $hp:ident, $reds:ident, $live:expr) => {{
        let to: *const u64 = $to;
        let reds = $reds - 1;
        if reds <= 0 {
            return used_up($cx, to, $e, $hp, reds, $live);
        }
        go!($cx, to, $e, $hp, reds)
    }};
}

pub(super) use call_to;

macro_rules! call_ext_to {
    ($cx:ident, $export:expr, $e:expr, $hp:ident, $reds:ident, $live:expr) => {{
        let export: u64 = $export;
        let reds = $reds - 1;
        if reds <= 0 {
            return used_up_ext($cx, export, $e, $hp, reds, $live);
        }
        go!($cx, address(export), $e, $hp, reds)
    }};
}

macro_rules! call_fun_to {
    ($cx:ident, $to:expr, $e:expr, $hp:ident, $reds:ident, $f:expr, $n:expr) => {{
        let reds = $reds - 1;
        if reds <= 0 {
            (*$cx).heap.htop = $hp;
            return used_up_fun($cx, $f, $e, $to, reds, $n);
        }
        go!($cx, $to, $e, $hp, reds)
    }};
}

macro_rules! move_call_ops {
    ($($name:ident<$s:ident>($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident) $body:block)*) => {$(
        pub unsafe fn $name<$s: Src>($cx: *mut Cx, $pc: *const u64, $e: *mut Term, $hp: *mut Term, $reds: i64) -> Exit {
            (*$cx).x[0] = $s::get($cx, $e, ($pc as *const u16).add(1));
            $body
        }
    )*};
}
/// The label at a unit.
#[inline(always)]
unsafe fn label_at(pc: *const u64, unit: usize) -> *const u64 {
    pc.offset(((pc as *const u16).add(unit) as *const i32).read_unaligned() as isize)
}
move_call_ops! {
    op_move_call<S>(cx, pc, e, hp, reds) {
        (e as *mut u64).write(pc.add(words(S::U + 3)) as u64);
        call_to!(cx, label_at(pc, 1 + S::U), e, hp, reds, h(pc, 3 + S::U))
    }
    op_move_call_last<S>(cx, pc, e, hp, reds) {
        call_to!(cx, label_at(pc, 1 + S::U), e.add(h(pc, 3 + S::U) + 1), hp, reds, h(pc, 4 + S::U))
    }
    op_move_call_only<S>(cx, pc, e, hp, reds) {
        call_to!(cx, label_at(pc, 1 + S::U), e, hp, reds, h(pc, 3 + S::U))
    }
    op_move_call_ext<S>(cx, pc, e, hp, reds) {
        (e as *mut u64).write(pc.add(words(S::U + 5)) as u64);
        call_ext_to!(cx, q(pc, 1 + S::U), e, hp, reds, h(pc, 5 + S::U))
    }
    op_move_call_ext_last<S>(cx, pc, e, hp, reds) {
        call_ext_to!(cx, q(pc, 1 + S::U), e.add(h(pc, 5 + S::U) + 1), hp, reds, h(pc, 6 + S::U))
    }
    op_move_call_ext_only<S>(cx, pc, e, hp, reds) {
        call_ext_to!(cx, q(pc, 1 + S::U), e, hp, reds, h(pc, 5 + S::U))
    }
}

macro_rules! call_ops {
    ($($name:ident($cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident) $body:block)*) => {$(
        pub unsafe fn $name($cx: *mut Cx, $pc: *const u64, $e: *mut Term, $hp: *mut Term, $reds: i64) -> Exit $body
    )*};
}
call_ops! {
    op_call(cx, pc, e, hp, reds) {
        (e as *mut u64).write(pc.add(words(3)) as u64);
        call_to!(cx, label(pc), e, hp, reds, h(pc, 3))
    }
    op_call_last(cx, pc, e, hp, reds) {
        call_to!(cx, label(pc), e.add(h(pc, 3) + 1), hp, reds, h(pc, 4))
    }
    op_call_only(cx, pc, e, hp, reds) {
        call_to!(cx, label(pc), e, hp, reds, h(pc, 3))
    }
    op_call_ext(cx, pc, e, hp, reds) {
        (e as *mut u64).write(pc.add(words(5)) as u64);
        call_ext_to!(cx, q(pc, 1), e, hp, reds, h(pc, 5))
    }
    op_call_ext_last(cx, pc, e, hp, reds) {
        call_ext_to!(cx, q(pc, 1), e.add(h(pc, 5) + 1), hp, reds, h(pc, 6))
    }
    op_call_ext_only(cx, pc, e, hp, reds) {
        call_ext_to!(cx, q(pc, 1), e, hp, reds, h(pc, 5))
    }
    op_call_fun(cx, pc, e, hp, reds) {
        let n = h(pc, 1);
        let f = (&(*cx).x)[n];
        let to = bare_target(f, n);
        if to.is_null() {
            return call_closure(cx, pc, e, hp, reds);
        }
        (e as *mut u64).write(pc.add(words(1)) as u64);
        call_fun_to!(cx, to, e, hp, reds, f, n)
    }
    op_call_fun2(cx, pc, e, hp, reds) {
        let n = h(pc, 1);
        let f = source(cx, e, q(pc, 2));
        let to = bare_target(f, n);
        if to.is_null() {
            return call_closure2(cx, pc, e, hp, reds);
        }
        (e as *mut u64).write(pc.add(words(5)) as u64);
        call_fun_to!(cx, to, e, hp, reds, f, n)
    }
    op_call_fun_last(cx, pc, e, hp, reds) {
        let n = h(pc, 1);
        let f = (&(*cx).x)[n];
        let to = fun_target(cx, f, n);
        if to.is_null() {
            return no_fun(cx, pc, e, hp, reds);
        }
        call_fun_to!(cx, to, e.add(h(pc, 2) + 1), hp, reds, f, n)
    }
    op_call_fun2_last(cx, pc, e, hp, reds) {
        let n = h(pc, 1);
        let f = source(cx, e, q(pc, 2));
        let to = fun_target(cx, f, n);
        if to.is_null() {
            return no_fun(cx, pc, e, hp, reds);
        }
        call_fun_to!(cx, to, e.add(h(pc, 6) + 1), hp, reds, f, n)
    }
    op_yield(cx, pc, e, hp, reds) {
        yield_at(cx, pc.add(words(1)), e, hp, reds, h(pc, 1))
    }
}

// As `call_fun` and `call_fun2`, of any fun.
#[inline(never)]
unsafe fn call_closure(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let n = h(pc, 1);
    let f = (&(*cx).x)[n];
    let to = fun_target(cx, f, n);
    if to.is_null() {
        return no_fun(cx, pc, e, hp, reds);
    }
    (e as *mut u64).write(pc.add(words(1)) as u64);
    call_fun_to!(cx, to, e, hp, reds, f, n)
}
#[inline(never)]
unsafe fn call_closure2(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let n = h(pc, 1);
    let f = source(cx, e, q(pc, 2));
    let to = fun_target(cx, f, n);
    if to.is_null() {
        return no_fun(cx, pc, e, hp, reds);
    }
    (e as *mut u64).write(pc.add(words(5)) as u64);
    call_fun_to!(cx, to, e, hp, reds, f, n)
}

/// Where the code of `f` starts, if it is a fun of `n` arguments without an environment, which is no function by name; else null.
#[inline(always)]
unsafe fn bare_target(f: Term, n: usize) -> *const u64 {
    if !f.is_fun() {
        return std::ptr::null();
    }
    let p = f.ptr();
    // Arguments, words of the environment, whether it is a function by name.
    if (*p.add(3)).raw() & 0x1_FFFF != n as u64 {
        return std::ptr::null();
    }
    let entry = (*p.add(1)).raw() as *const purlin_term::fun::FunEntry;
    (*entry).address.load(Ordering::Acquire)
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
    if m & 0xFF != n as u64 {
        return std::ptr::null();
    }
    if m >> 16 & 1 != 0 {
        return address((*p.add(1)).raw());
    }
    let entry = (*p.add(1)).raw() as *const purlin_term::fun::FunEntry;
    let to = (*entry).address.load(Ordering::Acquire);
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

pub(super) unsafe fn args_list(cx: &mut Cx, n: usize) -> Term {
    let v: Vec<Term> = cx.x[..n].to_vec();
    cx.list(&v)
}

/// A `call_fun` op whose fun leads nowhere by itself.
#[cold]
#[inline(never)]
unsafe fn no_fun(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit {
    let cx = &mut *cx;
    cx.heap.htop = hp;
    cx.heap.stop = e;
    cx.reds = reds;
    let n = h(pc, 1);
    let (f, drop) = match ops::lookup(*(pc as *const u16)).map(|r| r.0.name) {
        Some("call_fun") => (cx.x[n], 0),
        Some("call_fun_last") => (cx.x[n], h(pc, 2) + 1),
        Some("call_fun2") => (source(cx, e, q(pc, 2)), 0),
        _ => (source(cx, e, q(pc, 2)), h(pc, 6) + 1),
    };
    let next = no_fun_pc(cx, pc, f, n, drop);
    leave(cx, next)
}

/// Where the call of a fun at `pc` returns to, if it isn't a tail call.
unsafe fn return_of(pc: *const u64) -> Option<*const u64> {
    let back = match ops::lookup(*(pc as *const u16)).map(|r| r.0.name) {
        Some("call_fun") => words(1),
        Some("call_fun2") => words(5),
        _ => return None,
    };
    Some(pc.add(back))
}
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
    let back = (*cx.heap.stop).raw() as *const u64;
    code::find(back.wrapping_sub(1))?;
    let apply = code::called(am::ERLANG, am::APPLY, arity) as *const Export as u64;
    (2..=4).find_map(|n| {
        let call = back.sub(n);
        let (r, v) = ops::lookup(*(call as *const u16))?;
        let forms = r.forms(v);
        let before = match r.name {
            "call_ext" => 0,
            "move_call_ext" => forms[0].units(),
            _ => return None,
        };
        (ops::words(&forms) == n && q(call, 1 + before) == apply).then_some(back)
    })
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

/// What follows a call of `f`, which is no fun of arity `n` that leads anywhere. `drop` words of the stack go if
/// something else is called in its place.
unsafe fn no_fun_pc(cx: &mut Cx, pc: *const u64, f: Term, n: usize, drop: usize) -> *const u64 {
    if let Some(v) = f.as_fun() {
        let args = args_list(cx, n);
        if v.arity as usize != n {
            let pair = cx.tuple(&[f, args]);
            let fail = cx.error2(am::BADARITY, pair);
            return raise_no_fun(cx, pc, fail);
        }
        // A purge may have ended since, or another have begun: where the fun leads by now counts.
        let purged = loop {
            let Some(entry) = v.local() else { break false };
            let before = code::purge::under_way(entry.module);
            let to = entry.address.load(Ordering::Acquire);
            if !to.is_null() {
                put_environment(cx, f, n);
                cx.heap.stop = cx.heap.stop.add(drop);
                push_return(cx, pc);
                return count_call(cx, to, call_of_fun(f), live_of(f, n));
            }
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
                    p.state.set(SUSPENDED);
                }
                cx.x[0] = module;
                cx.x[1] = f;
                cx.x[2] = args;
                push_return(cx, pc);
                let target = code::export(erts_code_purger(), pending_purge_lambda(), 3);
                cx.interp.pc = target.address.load(Ordering::Acquire);
                cx.interp.live = 3;
                cx.interp.exit = Exit::Yield;
                return std::ptr::null();
            }
            // The module of the fun is gone: the error handler may load it again.
            let handler = cx.process_error_handler();
            let target = code::export(handler, am::UNDEFINED_LAMBDA, 3);
            cx.x[0] = module;
            cx.x[1] = f;
            cx.x[2] = args;
            push_return(cx, pc);
            return target.address.load(Ordering::Acquire);
        }
    }
    let fail = cx.error2(am::BADFUN, f);
    raise_no_fun(cx, pc, fail)
}

/// Goes on at `next`, or leaves with what the context says.
unsafe fn leave(cx: *mut Cx, next: *const u64) -> Exit {
    if next.is_null() {
        return (*cx).interp.exit;
    }
    go!(cx, next, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
}

/// `+` or `-` failed in a body; what to raise stands in the context.
#[cold]
#[inline(never)]
pub(super) unsafe fn arith_failed(
    cx: *mut Cx,
    pc: *const u64,
    reds: i64,
    a: Term,
    b: Term,
    sub: bool,
) -> Exit {
    let c = &mut *cx;
    c.reds = reds;
    let value = c.exc.value;
    let fail = c.error(value);
    let args = [a, b];
    // With a small integer in the instruction stock has an op that isn't the native, and doesn't show it.
    let forms = ops::lookup(*(pc as *const u16)).map_or(Vec::new(), |(r, v)| r.forms(v));
    let is_const = |i: usize| forms.get(i) == Some(&Form::C);
    let constant = |i: usize, t: Term| t.is_small() && is_const(i) && !is_const(3 - i);
    let plain = match sub {
        true => constant(2, b) && b.small_value() >= 0,
        false => constant(1, a) || constant(2, b),
    };
    let name = if sub { am::MINUS } else { am::PLUS };
    let first = match plain {
        true => First::None,
        false => First::Native(am::ERLANG, name, &args),
    };
    let next = exc::raise(c, pc, fail, first);
    leave(cx, next)
}

/// An operation on integers failed in a body; what to raise stands in the context.
#[cold]
#[inline(never)]
pub(super) unsafe fn int_failed(
    cx: *mut Cx,
    pc: *const u64,
    reds: i64,
    a: Term,
    b: Term,
    n: usize,
) -> Exit {
    let c = &mut *cx;
    c.reds = reds;
    let value = c.exc.value;
    let fail = c.error(value);
    let name = purlin_term::atom::intern(ops::arith::OPS[n].0);
    let next = exc::raise(c, pc, fail, First::Native(am::ERLANG, name, &[a, b]));
    leave(cx, next)
}

/// A float operation has no finite result.
#[cold]
#[inline(never)]
pub(super) unsafe fn badarith(
    cx: *mut Cx,
    pc: *const u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> Exit {
    let c = &mut *cx;
    c.heap.htop = hp;
    c.heap.stop = e;
    c.reds = reds;
    let fail = c.error(am::BADARITH);
    let next = exc::raise(c, pc, fail, First::None);
    leave(cx, next)
}

slow_op! {
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
    op_nif => nif;
}

/// What follows a native.
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

#[inline(always)]
unsafe fn native(cx: &mut Cx, pc: *const u64, n: usize) -> After {
    let export = &*(q(pc, 1) as *const Export);
    let f: Native = std::mem::transmute(q(pc, 5));
    cx.bif_pc = pc;
    cx.reds -= 1;
    if cx.reds <= 0 {
        bif_used_up(cx, pc, export);
    }
    let args = cx.x.as_ptr();
    match f(cx, args) {
        Ok(t) => {
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
            let argc = cx.trap.argc;
            for i in 0..argc {
                cx.x[i] = cx.trap.args[i];
            }
            collect_after(cx, argc, Also::NONE);
            After::Trap((*cx.trap.target).address.load(Ordering::Acquire))
        }
        Fail::Again | Fail::Wait => {
            collect_after(cx, n, Also::NONE);
            super::traced::again(cx, pc);
            cx.interp.pc = pc;
            cx.interp.live = n;
            cx.interp.exit = if fail == Fail::Wait {
                Exit::Wait
            } else {
                Exit::Yield
            };
            After::Jump(std::ptr::null())
        }
        Fail::Exited => {
            cx.interp.exit = Exit::Exited;
            After::Jump(std::ptr::null())
        }
        Fail::Yield => {
            cx.x[0] = cx.trap.args[0];
            After::Yield
        }
        _ => {
            let args: SmallVec<[Term; 8]> = cx.x[..n].into();
            let other = cx.exc.native.filter(|_| fail == Fail::Raised);
            let (m, f) = other.unwrap_or((export.module, export.function));
            After::Jump(exc::raise(cx, pc, fail, First::Native(m, f, &args)))
        }
    }
}

/// The stub of the native that the instruction at `pc` calls, if it is traced.
#[inline(always)]
unsafe fn detour(pc: *const u64) -> Option<*const u64> {
    if !crate::trace::calls::natives() {
        return None;
    }
    super::traced::traced_native(&*(q(pc, 1) as *const Export)).filter(|&s| s != pc)
}

/// As [`detour`] for a native that is called last: as it would be if it weren't traced, the frame of the function that
/// calls it stays. It returns to behind the instruction, where the frame is dropped.
#[inline(always)]
unsafe fn last_detour(cx: &mut Cx, pc: *const u64, framed: bool) -> Option<After> {
    if !crate::trace::calls::natives() {
        return None;
    }
    last_detour_slow(cx, pc, framed)
}
#[cold]
#[inline(never)]
unsafe fn last_detour_slow(cx: &mut Cx, pc: *const u64, framed: bool) -> Option<After> {
    let to = detour(pc)?;
    let length = if framed { 10 } else { 9 };
    if !framed {
        let live = h(pc, 9);
        if cx.heap.free_words() < 1 + cx.heap.stack_reserve + live {
            super::collect(cx, 1 + live, live);
        }
        cx.heap.stop = cx.heap.stop.sub(1);
    }
    (cx.heap.stop as *mut u64).write(pc.add(words(length)) as u64);
    Some(After::Jump(to))
}

unsafe fn call_bif(cx: &mut Cx, pc: *const u64) -> *const u64 {
    if let Some(to) = detour(pc) {
        (cx.heap.stop as *mut u64).write(pc.add(words(9)) as u64);
        return to;
    }
    match native(cx, pc, h(pc, 9)) {
        After::Value => pc.add(words(9)),
        After::Jump(to) => to,
        After::Trap(to) => {
            (cx.heap.stop as *mut u64).write(pc.add(words(9)) as u64);
            to
        }
        After::Yield => go_on_later(cx, pc.add(words(9))),
    }
}
/// The time slice ends before the instruction at `pc`, to which a native has returned.
unsafe fn go_on_later(cx: &mut Cx, pc: *const u64) -> *const u64 {
    cx.interp.pc = pc;
    cx.interp.live = 1;
    cx.interp.exit = Exit::Yield;
    std::ptr::null()
}
/// A native of a dirty pool, reached through the stub of its export: the return address is on the stack already.
unsafe fn call_dirty(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let n = h(pc, 9);
    if !cx.dirty {
        super::traced::again(cx, pc);
        cx.interp.pc = pc;
        cx.interp.live = n;
        cx.interp.exit = if h(pc, 10) == dirty::CPU as usize {
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
unsafe fn do_return(cx: &mut Cx) -> *const u64 {
    let e = cx.heap.stop as *mut u64;
    let to = e.read();
    e.write(0);
    to as *const u64
}
unsafe fn call_bif_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let after = match last_detour(cx, pc, true) {
        Some(a) => a,
        None => native(cx, pc, h(pc, 10)),
    };
    match after {
        After::Value => {
            cx.heap.stop = cx.heap.stop.add(h(pc, 9) + 1);
            do_return(cx)
        }
        After::Jump(to) => to,
        After::Trap(to) => {
            (cx.heap.stop as *mut u64).write(pc.add(words(10)) as u64);
            to
        }
        After::Yield => {
            cx.heap.stop = cx.heap.stop.add(h(pc, 9) + 1);
            let to = do_return(cx);
            go_on_later(cx, to)
        }
    }
}
unsafe fn call_bif_only(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let after = match last_detour(cx, pc, false) {
        Some(a) => a,
        None => native(cx, pc, h(pc, 9)),
    };
    match after {
        After::Value => do_return(cx),
        After::Jump(to) => to,
        After::Trap(to) => {
            // A stub has no place of its own.
            if pc != (*(q(pc, 1) as *const Export)).stub.as_ptr() as *const u64 {
                let live = cx.trap.argc;
                if cx.heap.free_words() < 1 + cx.heap.stack_reserve + live {
                    super::collect(cx, 1 + live, live);
                }
                cx.heap.stop = cx.heap.stop.sub(1);
                (cx.heap.stop as *mut u64).write(pc.add(words(9)) as u64);
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
    to: isize,
    export: u64,
    args: &[Term],
    fail: Fail,
) -> *const u64 {
    if to != 0 {
        return pc.offset(to);
    }
    let x = &*(export as *const Export);
    // Stock has an instruction for the plus sign, which isn't shown as a native.
    let first = match (x.function, args.len()) {
        (am::PLUS, 1) => First::None,
        _ => First::Native(x.module, x.function, args),
    };
    exc::raise(cx, pc, fail, first)
}

unsafe fn bif0(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let f: Native = std::mem::transmute(r.q());
    let d = r.d();
    match f(cx, cx.x.as_ptr()) {
        Ok(t) => {
            set_dst(cx, cx.heap.stop, d, t);
            r.end()
        }
        Err(fail) => exc::raise(cx, pc, fail, First::None),
    }
}

unsafe fn bif_n<const N: usize>(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let f: Native = std::mem::transmute(r.q());
    let mut args = [NIL; N];
    for a in &mut args {
        *a = r.s(cx);
    }
    let d = r.d();
    let export = r.q();
    let live = r.h() as usize;
    cx.bif_pc = pc;
    match f(cx, args.as_ptr()) {
        Ok(t) => {
            set_dst(cx, cx.heap.stop, d, t);
            collect_after(cx, live, Also::dst(d));
            r.end()
        }
        Err(fail) => bif_failed(cx, pc, to, export, &args, fail),
    }
}
unsafe fn bif1(cx: &mut Cx, pc: *const u64) -> *const u64 {
    bif_n::<1>(cx, pc)
}
unsafe fn bif2(cx: &mut Cx, pc: *const u64) -> *const u64 {
    bif_n::<2>(cx, pc)
}
unsafe fn bif3(cx: &mut Cx, pc: *const u64) -> *const u64 {
    bif_n::<3>(cx, pc)
}

unsafe fn arith_op(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let to = r.l();
    let (a, b) = (r.s(cx), r.s(cx));
    let d = r.d();
    let n = r.h() as usize;
    let live = r.h() as usize;
    let small = a.is_small() && b.is_small();
    let (x, y) = (a.small_value(), b.small_value());
    let quick = match n {
        5 if small => Some(Term::small(x & y)),
        6 if small => Some(Term::small(x | y)),
        7 if small => Some(Term::small(x ^ y)),
        2 if small => x.checked_mul(y).and_then(Term::try_small),
        3 if small && y != 0 => Term::try_small(x / y),
        4 if small && y != 0 => Some(Term::small(x % y)),
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
            set_dst(cx, cx.heap.stop, d, t);
            collect_after(cx, live, Also::dst(d));
            r.end()
        }
        Err(_) if to != 0 => pc.offset(to),
        Err(e) => {
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
    let e = code::export(m, f, n as u32);
    e.address.load(Ordering::Acquire)
}

unsafe fn bad_apply(cx: &mut Cx, pc: *const u64, m: Term, f: Term, args: Term) -> *const u64 {
    let fail = cx.error(am::BADARG);
    let at = place_of_apply(cx, pc);
    let first = First::Native(am::ERLANG, am::APPLY, &[m, f, args]);
    exc::raise(cx, at, fail, first)
}

/// Where a call of `apply` at `pc` failed: nowhere that is shown, if it is the function's own code in place of an instruction.
unsafe fn place_of_apply(cx: &Cx, pc: *const u64) -> *const u64 {
    // What a process begins with is called by `apply/3` in any case.
    let begins = pc == code::stubs().apply.as_ptr()
        && (cx.heap.stop >= cx.heap.hend
            || (*cx.heap.stop).raw() == code::stubs().exit.as_ptr() as u64);
    match begins || applied_by_name(cx, pc).is_some() {
        true => std::ptr::null(),
        false => pc,
    }
}

unsafe fn apply(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let n = h(pc, 1);
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
    if let Some(next) = raise_here(cx, pc, (m, f, n), Tail::No) {
        return next;
    }
    let to = callee(m, f, n);
    if to.is_null() {
        let args = args_list(cx, n);
        return bad_apply(cx, pc, m, f, args);
    }
    (cx.heap.stop as *mut u64).write(pc.add(words(1)) as u64);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}
unsafe fn apply_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let n = h(pc, 2);
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
    if let Some(next) = raise_here(cx, pc, (m, f, n), Tail::Framed(2)) {
        return next;
    }
    let to = callee(m, f, n);
    if to.is_null() {
        let args = args_list(cx, n);
        return bad_apply(cx, pc, m, f, args);
    }
    cx.heap.stop = cx.heap.stop.add(h(pc, 1) + 1);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}
/// What a call of `m:f` with `n` arguments comes to: calls of `erlang:apply/3` are made on the spot, so that whoever
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
/// Whether a call is the last of its function, which has a frame or none, and the words of the instruction.
enum Tail {
    No,
    Framed(usize),
    Frameless(usize),
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
    if crate::trace::calls::natives() {
        // A call that is told goes by the stub, where the breakpoint is.
        let export = crate::code::export(m, f, n as u32);
        if let Some(stub) = super::traced::traced_native(export) {
            let back = match tail {
                Tail::No => return None,
                _ if crate::code::module_at(pc).is_none() => return None,
                Tail::Framed(length) => pc.add(words(length)),
                Tail::Frameless(length) => {
                    if cx.heap.free_words() < 1 + cx.heap.stack_reserve + n {
                        super::collect(cx, 1 + n, n);
                    }
                    cx.heap.stop = cx.heap.stop.sub(1);
                    pc.add(words(length))
                }
            };
            (cx.heap.stop as *mut u64).write(back as u64);
            return Some(stub);
        }
    }
    let (_, native) = crate::code::native(m, f, n as u32)?;
    let args: SmallVec<[Term; 8]> = cx.x[..n].into();
    // `erlang:apply/3` as a function is the runtime's own code: whoever called it is meant.
    let (pc, at) = match crate::code::module_at(pc) {
        Some(_) => (pc, pc),
        None => (std::ptr::null(), *(cx.heap.stop as *const *const u64)),
    };
    cx.bif_pc = at;
    match (native.call)(cx, args.as_ptr()) {
        Ok(_) => None,
        Err(fail) => Some(exc::raise(cx, pc, fail, First::Native(m, f, &args))),
    }
}
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
/// What is wrong with arguments that could not be spread.
fn not_spread(cx: &mut Cx, list: Term, most: usize) -> Fail {
    match list.list_iter().take(most + 1).count() > most {
        true => Fail::SystemLimit,
        false => cx.error(am::BADARG),
    }
}
unsafe fn i_apply_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_list(cx, pc, h(pc, 1) + 1)
}
pub(super) unsafe fn i_apply(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_list(cx, pc, 0)
}
/// Calls x0:x1 with the arguments in list x2; `drop` words of the stack go if it can be called.
unsafe fn apply_list(cx: &mut Cx, pc: *const u64, drop: usize) -> *const u64 {
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
        // What `erlang:apply/3` is to call is called at once, by this instruction.
        if m != am::ERLANG || f != am::APPLY || n != 3 {
            break (m, f, n, args);
        }
    };
    if n > crate::cx::MAX_ARGS && m.is_atom() && f.is_atom() {
        cx.heap.stop = cx.heap.stop.add(drop);
        return undefined(cx, std::ptr::null(), m, f, args);
    }
    let tail = match drop {
        0 => Tail::Frameless(0),
        _ => Tail::Framed(1),
    };
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
    apply_fun_list(cx, pc, h(pc, 1) + 1)
}
unsafe fn i_apply_fun(cx: &mut Cx, pc: *const u64) -> *const u64 {
    apply_fun_list(cx, pc, 0)
}
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
    if to == code::stubs().apply_fun.as_ptr() {
        to = code::stubs().reapply_fun.as_ptr();
    }
    cx.heap.stop = cx.heap.stop.add(drop);
    count_call(cx, to, call_of_fun(f), live_of(f, n))
}

/// No clause of the function takes the arguments, which stand in x.
unsafe fn func_info(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let (m, f) = (Term::from_raw(q(pc, 1)), Term::from_raw(q(pc, 5)));
    let args: Vec<Term> = cx.x[..h(pc, 9)].to_vec();
    let fail = cx.error(am::FUNCTION_CLAUSE);
    exc::raise(cx, pc, fail, First::Function(m, f, &args))
}

/// The function of an export isn't there.
unsafe fn error_handler(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let x = &*(q(pc, 1) as *const Export);
    let args = args_list(cx, x.arity as usize);
    undefined(cx, pc, x.module, x.function, args)
}

/// Has the error handler called for a function that isn't there, or fails for want of one.
unsafe fn undefined(cx: &mut Cx, pc: *const u64, m: Term, f: Term, args: Term) -> *const u64 {
    let module = cx.process_error_handler();
    let target = code::export(module, am::UNDEFINED_FUNCTION, 3);
    let to = target.address.load(Ordering::Acquire);
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

unsafe fn process_exit(cx: &mut Cx, _: *const u64) -> *const u64 {
    cx.interp.reason = am::NORMAL;
    cx.interp.crashed = false;
    cx.interp.exit = Exit::Exited;
    std::ptr::null()
}

unsafe fn make_fun(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let mut r = Rd::new(pc);
    let entry = r.q() as *const purlin_term::fun::FunEntry;
    let d = r.d();
    let n = r.h() as usize;
    let list = r.end();
    let p = cx.heap.alloc(FUN_WORDS + n);
    let w = p as *mut u64;
    w.write(header(Subtag::Fun, FUN_WORDS - 1 + n));
    w.add(1).write(entry as u64);
    w.add(3).write(u64::from((*entry).arity) | (n as u64) << 8);
    let pid = cx.self_pid();
    p.add(4).write(pid);
    for i in 0..n {
        p.add(FUN_WORDS + i)
            .write(source(cx, cx.heap.stop, *list.add(i)));
    }
    (*entry).retain();
    cx.heap.off_heap.link(p);
    set_dst(cx, cx.heap.stop, d, Term::boxed_at(p));
    list.add(n)
}

/// Where a native library may take over; runs the Erlang code.
unsafe fn nif(_: &mut Cx, pc: *const u64) -> *const u64 {
    pc.add(words(0))
}

impl Cx {
    /// The module whose `undefined_function/3` is called for what isn't there.
    pub(super) fn process_error_handler(&mut self) -> Term {
        if self.proc.is_null() {
            return am::ERROR_HANDLER;
        }
        match self.process().ext().map(|e| e.error_handler) {
            Some(m) if m != NIL => m,
            _ => am::ERROR_HANDLER,
        }
    }
}
