//! `apply`: calls of functions whose names or arguments are known only at run time.
//!
//! A call of `erlang:apply/3` by name is made by the same instruction. So the stack trace of an
//! error shows the caller, and a native that always raises does so at the instruction. Both are as
//! in stock.

use super::call::{args_list, count_call, undefined};
use super::exc::{self, First};
use super::handler::op;
use super::instr;
use super::operands::{C, X, Y};
use super::room::collect;
use crate::code;
use crate::cx::{Cx, Fail};
use crate::process::saved;
use purlin_isa::ops::{Form, Op};
use purlin_term::{Term, am};
use smallvec::SmallVec;

op! {
    op_apply => apply;
    op_apply_last => apply_last;
    op_i_apply => i_apply;
    op_i_apply_last => i_apply_last;
}

/// Returns where a call of `m:f` with the `n` arguments in x goes; null if `m` or `f` is no atom.
fn callee(m: Term, f: Term, n: usize) -> *const u64 {
    if !m.is_atom() || !f.is_atom() {
        return std::ptr::null();
    }
    // If there is no such export, one is made, which leads to the error handler.
    let e = code::export(m, f, n as u32);
    e.address()
}

unsafe fn bad_apply(cx: &mut Cx, pc: *const u64, m: Term, f: Term, args: Term) -> *const u64 {
    let fail = cx.error(am::BADARG);
    let at = place_of_apply(cx, pc);
    let first = First::Native(am::ERLANG, am::APPLY, &[m, f, args]);
    exc::raise(cx, at, fail, first)
}

/// Returns where a call of `apply` at `pc` failed, for the stack trace. The result is null if `pc`
/// is in the code of the function itself and not in an instruction for it.
///
/// # Safety
/// `pc` must be the running instruction, and the stack must be valid.
pub(super) unsafe fn place_of_apply(cx: &Cx, pc: *const u64) -> *const u64 {
    // The first function of a process is called by `apply/3` in any case.
    let begins = pc == code::stubs().apply.as_ptr()
        && (cx.heap.stop >= cx.heap.hend
            || (*cx.heap.stop).raw() == code::stubs().exit.as_ptr() as u64);
    match begins || applied_by_name(cx, pc).is_some() {
        true => std::ptr::null(),
        false => pc,
    }
}

/// Returns the address to which the stub of `erlang:apply/2` or `/3` at `pc` returns, if a call by
/// name led there. Stock has an instruction for such a call, and shows no entry of the function.
///
/// # Safety
/// `pc` must be the running instruction, and the stack must be valid.
pub(super) unsafe fn applied_by_name(cx: &Cx, pc: *const u64) -> Option<*const u64> {
    let arity = match pc {
        _ if cx.heap.stop >= cx.heap.hend => return None,
        p if p == code::stubs().apply_fun.as_ptr() => 2,
        p if p == code::stubs().apply.as_ptr() => 3,
        _ => return None,
    };
    // The stub was entered by a jump and has made no frame, so the first slot has the caller's
    // return address.
    let back = (*cx.heap.stop).raw() as *const u64;
    code::find(back.wrapping_sub(1))?;
    let apply = code::called(am::ERLANG, am::APPLY, arity);
    // The start of the call is only known if an instruction with that number ends there and calls
    // that export.
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

/// Whether the function to apply is `apply/3` itself, with arguments that [`unfold`] could not use
/// instead of its own.
fn is_bad_again(cx: &Cx, (m, f, n): (Term, Term, usize)) -> bool {
    m == am::ERLANG
        && f == am::APPLY
        && n == 3
        && cx.x[2]
            .list_to_vec()
            .is_none_or(|v| v.len() <= crate::cx::MAX_ARGS)
}

/// Applies a function. Module and name are after the arguments, in x[n] and x[n + 1].
unsafe fn apply(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Apply::at(pc);
    let n = op.arity();
    let (m, f, n) = unfold(cx, cx.x[n], cx.x[n + 1], n);
    if is_bad_again(cx, (m, f, n)) {
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
    // The slot is written only now that the call is certain: a failure must leave it as it was.
    (cx.heap.stop as *mut u64).write(op.next() as u64);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}

/// As [`apply`], as a tail call.
unsafe fn apply_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::ApplyLast::at(pc);
    let n = op.arity();
    let (m, f, n) = unfold(cx, cx.x[n], cx.x[n + 1], n);
    if is_bad_again(cx, (m, f, n)) {
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

/// Returns the function that a call of `m:f` with `n` arguments leads to. Calls of `erlang:apply/3`
/// are unfolded, so that the stack trace of an error shows the caller.
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

/// Whether a call is a tail call of a function with or without a frame. Otherwise it has the
/// instruction after it.
#[derive(Clone, Copy)]
enum Tail {
    No,
    Framed(*const u64),
    Frameless(*const u64),
}

/// Calls natives that always raise at the instruction itself. Its function is the first in the
/// stack trace, even if the call would have dropped its frame. Returns `None` for other functions.
///
/// # Safety
/// As for the instruction at `pc`, which applies `m:f` to the `n` arguments in x.
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
        // A traced call goes through the stub, where the breakpoint is.
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
    // `erlang:apply/3` as a function is code of the runtime: the trace shows its caller.
    let (pc, at) = match crate::code::module_at(pc) {
        Some(_) => (pc, pc),
        None => (std::ptr::null(), *(cx.heap.stop as *const *const u64)),
    };
    cx.bif_pc = at;
    match (native.call)(cx.env_ptr(), args.as_ptr()) {
        Ok(_) => None,
        Err(fail) => Some(exc::raise(cx, pc, fail, First::Caller)),
    }
}

/// Maximum number of arguments that `apply/3` and `apply/2` take. No function has that many, so the
/// call ends in `undef`.
pub(super) const MOST_APPLIED: usize = crate::cx::X_REGS - 1;

/// Spreads a list over the X registers and returns its length; `None` if it is no proper list or
/// longer than `most`.
pub(super) fn spread(cx: &mut Cx, list: Term, most: usize) -> Option<usize> {
    // Registers are written even if the list turns out to be improper. The register with the list
    // may be among them, so callers hold the list.
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

/// Returns the failure for arguments that could not be spread.
pub(super) fn not_spread(cx: &mut Cx, list: Term, most: usize) -> Fail {
    match list.list_iter().take(most + 1).count() > most {
        true => Fail::SystemLimit,
        false => cx.error(am::BADARG),
    }
}

unsafe fn i_apply_last(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::IApplyLast::at(pc);
    apply_list(cx, pc, op.frame() + 1, Tail::Framed(op.next()))
}

/// Applies a function without a frame, as code of `erlang:apply/3` itself.
pub(super) unsafe fn i_apply(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let next = instr::IApply::at(pc).next();
    apply_list(cx, pc, 0, Tail::Frameless(next))
}

/// Calls x0:x1 with the arguments in list x2; drops `drop` words of the stack if the function can
/// be called.
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
        // If the function is `erlang:apply/3`, this instruction continues to the function which
        // that would call.
        if m != am::ERLANG || f != am::APPLY || n != 3 {
            break (m, f, n, args);
        }
    };
    if n > crate::cx::MAX_ARGS && m.is_atom() && f.is_atom() {
        cx.heap.stop = cx.heap.stop.add(drop);
        // No function has that many arguments, so it is undefined.
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
