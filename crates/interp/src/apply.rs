//! `apply`: calls of functions whose names, or whose arguments, are known only when they are made.
//!
//! A call of `erlang:apply/3` by name is made on the spot, so that whoever asked for it is seen in the stack trace of what fails, and
//! a native that always raises does so at the instruction. Both as in stock.

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
///
/// # Safety
/// `pc` is the instruction that runs, and the stack is in order.
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

/// The address that the stub of `erlang:apply/2`, or `/3`, at `pc` returns to, if a call that names this function led
/// there: stock then has an instruction for it, and shows no entry of the function.
///
/// # Safety
/// `pc` is the instruction that runs, and the stack is in order.
pub(super) unsafe fn applied_by_name(cx: &Cx, pc: *const u64) -> Option<*const u64> {
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

/// Whether what is to be applied is `apply/3` itself, whose arguments [`unfold`] could not put in the place of its own.
fn is_bad_again(cx: &Cx, (m, f, n): (Term, Term, usize)) -> bool {
    m == am::ERLANG
        && f == am::APPLY
        && n == 3
        && cx.x[2]
            .list_to_vec()
            .is_none_or(|v| v.len() <= crate::cx::MAX_ARGS)
}

/// Module and function stand behind the arguments, in x[n] and x[n + 1].
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
    // Only now is it known that there is a call: what failed before has left the slot as it was.
    (cx.heap.stop as *mut u64).write(op.next() as u64);
    count_call(cx, to, Some(saved::Call::Function(m, f, n)), n)
}

/// As [`apply`], as the last thing that the function does.
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
        Err(fail) => Some(exc::raise(cx, pc, fail, First::Told)),
    }
}

/// Most arguments that `apply/3` takes, and `apply/2`: more than any function has, which is then found not to be there.
pub(super) const MOST_APPLIED: usize = crate::cx::X_REGS - 1;

/// Spreads a list over the registers: how many; `None` if it is no proper list or longer than `most`.
pub(super) fn spread(cx: &mut Cx, list: Term, most: usize) -> Option<usize> {
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
