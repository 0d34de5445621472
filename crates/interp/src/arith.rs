//! Arithmetic on integers. Small operands are computed in place. Everything else goes to a second
//! handler with the same operands. It makes the result on the heap or in a fragment, and collects
//! afterwards if that is wanted.

use super::call::{call_to, used_up};
use super::exc::{self, First};
use super::fast::both_small;
use super::handler::{Flavour, go, go_on, op, out_of_line};
use super::operands::{Dest, Dst, Src};
use super::room::collect_after;
use super::{Exit, instr};
use crate::code;
use crate::collect::{Also, Collect, Sweep};
use crate::cx::{Cx, Fail};
use purlin_isa::ops::{self, Form, arith as arith_number};
use purlin_native::errors::arith as arith_error;
use purlin_native::reschedule;
use purlin_term::arith::Effort;
use purlin_term::pressure;
use purlin_term::release::{self, INCREMENTS_SHOWN};
use purlin_term::word::{SMALL_SHIFT, TAG_SMALL, TAG4_MASK};
use purlin_term::{NIL, Term, am, arith};

op! {
    op_arith => arith_op;
}

/// The general case of `+` and `-`; returns NON_VALUE if it fails. The result is made on the heap,
/// or in a fragment if that is full. Nothing moves, so `a` and `b` stay valid.
///
/// # Safety
/// As for handlers; `a` and `b` must be terms of the process.
#[inline(never)]
unsafe fn arith_slow(
    cx: *mut Cx,
    e: *mut Term,
    hp: *mut Term,
    a: Term,
    b: Term,
    sub: bool,
) -> Term {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    let r = if sub {
        arith::sub(&mut (*cx).heap, a, b)
    } else {
        arith::add(&mut (*cx).heap, a, b)
    };
    match r {
        Ok(t) => t,
        Err(err) => {
            (*cx).exc.class = crate::cx::Class::Error;
            (*cx).exc.value = match err {
                arith::ArithError::BadArith => am::BADARITH,
                arith::ArithError::SystemLimit => am::SYSTEM_LIMIT,
            };
            Term::NON_VALUE
        }
    }
}

/// Collects if the result of the general case, which has been written, makes that necessary. A loop
/// may contain nothing else that collects.
#[inline(always)]
unsafe fn collect_made(cx: *mut Cx, pc: *const u64, live: usize, also: Also, reds: i64) {
    (*cx).reds = reds;
    // For the accounts.
    (*cx).bif_pc = pc;
    collect_after(cx, live, also);
}

/// Collects all garbage if the budget of the process has no room for the result of operation `n`,
/// and returns the operands, which may have moved. None if there is no room then.
///
/// # Safety
/// As for handlers: the instruction at `pc` performs it on `a` and `b` in a body, and `live` X
/// registers hold terms that are needed afterwards. The tops of stack and heap, and the reductions,
/// must be stored in the context.
#[cold]
#[inline(never)]
unsafe fn make_room(
    cx: *mut Cx,
    pc: *const u64,
    live: usize,
    n: usize,
    a: Term,
    b: Term,
) -> Option<(Term, Term)> {
    let bytes = EFFORTS[n].bytes(a, b);
    let there = !(*cx).proc.is_null() && !(*cx).heap.window && live + 2 <= (*cx).x.len();
    if !pressure::refuses(bytes) || !there {
        return Some((a, b));
    }
    // The registers behind the live ones are free, even if the operands came from there.
    (*cx).x[live] = a;
    (*cx).x[live + 1] = b;
    (*cx).bif_pc = pc;
    (*cx).collect(0, live + 2, Also::NONE, Sweep::Full);
    match pressure::refuses(bytes) {
        true => None,
        false => Some(((*cx).x[live], (*cx).x[live + 1])),
    }
}

/// As for [`make_room`]: makes room in the general case of an operation, and fails if there is
/// none.
macro_rules! with_room {
    (
        $F:ident, $cx:ident, $pc:ident, $e:ident, $hp:ident, $reds:ident, $op:ident, $n:expr,
        $a:ident, $b:ident
    ) => {
        if pressure::is_limited() && $op.fail().given().is_none() && $op.live() != ops::NO_LIVE {
            (*$cx).heap.htop = $hp;
            (*$cx).heap.stop = $e;
            (*$cx).reds = $reds;
            let room = make_room($cx, $pc, $op.live(), $n, $a, $b);
            ($e, $hp, $reds) = ((*$cx).heap.stop, (*$cx).heap.htop, (*$cx).reds);
            match room {
                Some(operands) => ($a, $b) = operands,
                None => {
                    ($a, $b) = ((*$cx).x[$op.live()], (*$cx).x[$op.live() + 1]);
                    (*$cx).exc.class = crate::cx::Class::Error;
                    (*$cx).exc.value = am::SYSTEM_LIMIT;
                    return int_failed::<$F>($cx, $pc, $reds, $a, $b, $n);
                }
            }
        }
    };
}

macro_rules! add_op {
    ($($name:ident = $op:ident $general:ident $name_call:ident = $op_call:ident $general_call:ident $sub:literal |$a:ident, $b:ident| $fast:expr;)*) => {$(
        op!($name_call = $op_call<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if both_small($a, $b) {
                let (v, over) = $fast;
                if !over {
                    op.dst().set(cx, e, Term::from_raw(v as u64));
                    call_to!(cx, op.to().to(), e, hp, reds, op.arity())
                }
            }
            // Big integers, floats, overflow, or no number: the general case starts over.
            return $general_call::<F, A, B, D>(cx, pc, e, hp, reds);
        });
        op!(
        #[inline(never)]
        $general_call = $op_call<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            let t = arith_slow(cx, e, hp, $a, $b, $sub);
            if t == Term::NON_VALUE {
                return arith_failed::<F>(cx, pc, reds, $a, $b, $sub);
            }
            op.dst().set(cx, e, t);
            let reds = reds - Effort::Longer.reductions($a, $b, t) as i64;
            // The result is one of the arguments, so it is among the live registers.
            collect_made(cx, pc, op.arity(), Also::NONE, reds);
            let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
            call_to!(cx, op.to().to(), e, hp, reds, op.arity())
        });
        op!($name = $op<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if both_small($a, $b) {
                let (v, over) = $fast;
                if !over {
                    op.dst().set(cx, e, Term::from_raw(v as u64));
                    go!(cx, op.next(), e, hp, reds)
                }
            }
            return $general::<F, A, B, D>(cx, pc, e, hp, reds);
        });
        op!(
        #[inline(never)]
        $general = $op<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let mut $a = op.a().get(cx, e);
            let mut $b = op.b().get(cx, e);
            with_room!(F, cx, pc, e, hp, reds, op, $sub as usize, $a, $b);
            let t = arith_slow(cx, e, hp, $a, $b, $sub);
            if t == Term::NON_VALUE {
                if let Some(to) = op.fail().given() {
                    go!(cx, to, e, hp, reds)
                }
                return arith_failed::<F>(cx, pc, reds, $a, $b, $sub);
            }
            op.dst().set(cx, e, t);
            let reds = reds - Effort::Longer.reductions($a, $b, t) as i64;
            collect_made(cx, pc, op.live(), op.dst().dest().also(), reds);
            go!(cx, op.next(), (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
        });
    )*};
}

// `add` at the end of a function.
op!(op_add_return = AddReturn<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let a = op.a().get(cx, e);
    let b = op.b().get(cx, e);
    if both_small(a, b) {
        let (v, over) = (a.raw() as i64).overflowing_add(b.raw() as i64 - TAG_SMALL as i64);
        if !over {
            op.dst().set(cx, e, Term::from_raw(v as u64));
            e = e.add(op.frame() + 1);
            let to = (e as *const u64).read();
            (e as *mut u64).write(0);
            go!(cx, to as *const u64, e, hp, reds)
        }
    }
    return add_return::<F, A, B, D>(cx, pc, e, hp, reds);
});

op!(
#[inline(never)]
add_return = AddReturn<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
    let a = op.a().get(cx, e);
    let b = op.b().get(cx, e);
    let t = arith_slow(cx, e, hp, a, b, false);
    if t == Term::NON_VALUE {
        return arith_failed::<F>(cx, pc, reds, a, b, false);
    }
    op.dst().set(cx, e, t);
    let reds = reds - Effort::Longer.reductions(a, b, t) as i64;
    // A function returns one register.
    collect_made(cx, pc, 1, Also::NONE, reds);
    let e = (*cx).heap.stop.add(op.frame() + 1);
    let to = (e as *const u64).read();
    (e as *mut u64).write(0);
    go!(cx, to as *const u64, e, (*cx).heap.htop, (*cx).reds)
});

add_op! {
    // The tag is removed from `b`, so that the sum or difference has the tag of `a`.
    op_add = Add add op_add_call_only = AddCallOnly add_call_only false |a, b| (a.raw() as i64).overflowing_add(b.raw() as i64 - TAG_SMALL as i64);
    op_sub = Sub sub op_sub_call_only = SubCallOnly sub_call_only true |a, b| (a.raw() as i64).overflowing_sub(b.raw() as i64 - TAG_SMALL as i64);
}

/// The general case of an operation on integers. Returns no value if it fails.
///
/// # Safety
/// As for handlers; `a` and `b` must be terms of the process.
#[inline(never)]
unsafe fn int_slow(cx: *mut Cx, e: *mut Term, hp: *mut Term, a: Term, b: Term, op: IntOp) -> Term {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    match op(&mut (*cx).heap, a, b) {
        Ok(t) => t,
        Err(err) => {
            (*cx).exc.class = crate::cx::Class::Error;
            (*cx).exc.value = match err {
                arith::ArithError::BadArith => am::BADARITH,
                arith::ArithError::SystemLimit => am::SYSTEM_LIMIT,
            };
            Term::NON_VALUE
        }
    }
}

/// Where a long operation runs.
pub(super) enum Where {
    Here,
    /// On a dirty thread: the handler returns.
    Away,
    /// On this thread, which is dirty: the operation has made this result, and the process goes
    /// back to a scheduler. Without a value the operation has failed, and the context has the
    /// exception.
    Done(Term),
    Failed,
    /// The process has ended meanwhile.
    Ended,
}

/// Runs operation `n`, in a body, on a dirty thread if it takes long. There others may inspect and
/// end the process.
///
/// # Safety
/// As for handlers: the instruction at `pc` performs it on `a` and `b`, and `live` X registers hold
/// terms. The tops of stack and heap must be stored in the context.
#[cold]
#[inline(never)]
unsafe fn long_way(cx: *mut Cx, pc: *const u64, live: usize, n: usize, a: Term, b: Term) -> Where {
    let c = &mut *cx;
    if live == ops::NO_LIVE || c.proc.is_null() || c.heap.window {
        return Where::Here;
    }
    if !c.dirty {
        super::traced::again(c, pc);
        c.interp.pc = pc;
        c.interp.live = live;
        c.interp.exit = Exit::DirtyCpu;
        return Where::Away;
    }
    c.bif_pc = pc;
    let (name, arity) = arith_number::OPS[n];
    let name = (am::ERLANG, purlin_term::atom::intern(name), arity as usize);
    let env = &mut *c.env_ptr();
    let made = reschedule::open(env, name, |env| {
        arith_error(match n {
            2 => arith::mul(env, a, b),
            3 => arith::int_div(env, a, b),
            _ => arith::int_rem(env, a, b),
        })
    });
    let reason = match made {
        Ok(t) => return Where::Done(t),
        Err(Fail::Exited) => {
            c.interp.exit = Exit::Exited;
            return Where::Ended;
        }
        Err(Fail::SystemLimit) => am::SYSTEM_LIMIT,
        Err(_) => am::BADARITH,
    };
    c.exc.class = crate::cx::Class::Error;
    c.exc.value = reason;
    Where::Failed
}

/// Sends the process back to a scheduler, to continue with the instruction at `pc`; `dst` has been
/// written, besides the `live` registers.
///
/// # Safety
/// As for the end of a handler, on a dirty thread.
#[cold]
unsafe fn back(cx: *mut Cx, pc: *const u64, live: usize, dst: Dest) {
    let c = &mut *cx;
    let mut all = live;
    if let Some(x) = dst.x_register().filter(|&x| x >= live) {
        // The registers between them no longer hold terms.
        c.x[live..x].fill(NIL);
        all = x + 1;
    }
    c.interp.pc = pc;
    c.interp.live = all;
    c.interp.exit = Exit::Yield;
}

/// Handles on a scheduler what was raised on a dirty thread.
///
/// # Safety
/// `to` must be the result of raising.
#[cold]
pub(super) unsafe fn raised_away(cx: *mut Cx, to: *const u64) {
    let c = &mut *cx;
    if to.is_null() {
        return;
    }
    // The handler finds class, reason and trace in x1 to x3.
    c.interp.pc = to;
    c.interp.live = 4;
    c.interp.exit = Exit::Yield;
}

type IntOp = fn(&mut purlin_term::heap::Heap, Term, Term) -> arith::Arith;

macro_rules! int_op {
    ($($name:ident = $op:ident $general:ident $n:literal $slow:path, |$a:ident, $b:ident| $fast:expr;)*) => {$(
        op!($name = $op<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let $a = op.a().get(cx, e);
            let $b = op.b().get(cx, e);
            if both_small($a, $b) {
                let v: Option<Term> = $fast;
                if let Some(v) = v {
                    op.dst().set(cx, e, v);
                    go!(cx, op.next(), e, hp, reds)
                }
            }
            return $general::<F, A, B, D>(cx, pc, e, hp, reds);
        });
        op!(
        #[inline(never)]
        $general = $op<A: Src, B: Src, D: Dst>(cx, pc, e, hp, reds, op) {
            let mut $a = op.a().get(cx, e);
            let mut $b = op.b().get(cx, e);
            with_room!(F, cx, pc, e, hp, reds, op, $n, $a, $b);
            if EFFORTS[$n].is_long($a, $b) && op.fail().given().is_none() {
                (*cx).heap.htop = hp;
                (*cx).heap.stop = e;
                (*cx).reds = reds;
                match long_way(cx, pc, op.live(), $n, $a, $b) {
                    Where::Here => {}
                    Where::Away | Where::Ended => return F::leave(cx, (*cx).interp.exit),
                    Where::Failed => return int_failed::<F>(cx, pc, reds, $a, $b, $n),
                    Where::Done(t) => {
                        op.dst().set(cx, e, t);
                        let reds = reds - EFFORTS[$n].reductions($a, $b, t) as i64;
                        collect_made(cx, pc, op.live(), op.dst().dest().also(), reds);
                        back(cx, op.next(), op.live(), op.dst().dest());
                        return F::leave(cx, (*cx).interp.exit);
                    }
                }
            }
            let t = int_slow(cx, e, hp, $a, $b, $slow);
            if t == Term::NON_VALUE {
                if let Some(to) = op.fail().given() {
                    go!(cx, to, e, hp, reds)
                }
                return int_failed::<F>(cx, pc, reds, $a, $b, $n);
            }
            op.dst().set(cx, e, t);
            let reds = reds - EFFORTS[$n].reductions($a, $b, t) as i64;
            collect_made(cx, pc, op.live(), op.dst().dest().also(), reds);
            go!(cx, op.next(), (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
        });
    )*};
}

int_op! {
    op_mul = Mul mul 2 arith::mul, |a, b| {
        // One factor has its tag bits shifted out, the other has zeros in their place, so the
        // product is in position.
        let (v, over) = (a.raw() as i64 >> SMALL_SHIFT).overflowing_mul(b.raw() as i64 & !(TAG4_MASK as i64));
        (!over).then(|| Term::from_raw(v as u64 | TAG_SMALL))
    };
    op_int_div = IntDiv int_div 3 arith::int_div, |a, b| (b.small_value() != 0).then(|| a.small_value() / b.small_value()).and_then(Term::try_small);
    op_rem = Rem rem 4 arith::int_rem, |a, b| (b.small_value() != 0).then(|| Term::small(a.small_value() % b.small_value()));
    op_band = Band band 5 arith::band, |a, b| Some(Term::from_raw(a.raw() & b.raw()));
    op_bor = Bor bor 6 arith::bor, |a, b| Some(Term::from_raw(a.raw() | b.raw()));
    // Equal tags cancel each other.
    op_bxor = Bxor bxor 7 arith::bxor, |a, b| Some(Term::from_raw((a.raw() ^ b.raw()) | TAG_SMALL));
    op_bsl = Bsl bsl 8 arith::bsl, |a, b| {
        let (v, n) = (a.small_value(), b.small_value());
        ((0..60).contains(&n) && (v << n) >> n == v).then(|| v << n).and_then(Term::try_small)
    };
    op_bsr = Bsr bsr 9 arith::bsr, |a, b| {
        let n = b.small_value();
        (0..64).contains(&n).then(|| Term::small(a.small_value() >> n))
    };
}

/// Returns the form of operand `name` of the instruction at `pc`.
///
/// # Safety
/// There must be an instruction at `pc`.
unsafe fn form_of(pc: *const u64, name: &str) -> Option<Form> {
    let (row, variant) = ops::lookup(code::opcode_at(pc))?;
    let at = row.operands.iter().position(|o| o.name == name)?;
    row.forms(variant).get(at).copied()
}

/// Handles the failure of `+` or `-` in a body; the context has the exception, and the heap's
/// pointers as the general case stored them.
///
/// # Safety
/// As for the instruction at `pc`, whose operands are `a` and `b`; the tops of stack and heap must
/// be stored in the context.
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
    (*cx).reds = reds;
    let next = out_of_line(&mut *cx, pc, move |c, pc| {
        let value = c.exc.value;
        let fail = c.error(value);
        let args = [a, b];
        // With a small integer in the instruction some releases have an op that isn't the native,
        // and don't show it.
        let plain = !release::has(INCREMENTS_SHOWN) && {
            let (of_a, of_b) = (form_of(pc, "a"), form_of(pc, "b"));
            let constant = |t: Term, form, other| {
                t.is_small() && form == Some(Form::C) && other != Some(Form::C)
            };
            match sub {
                true => constant(b, of_b, of_a) && b.small_value() >= 0,
                false => constant(a, of_a, of_b) || constant(b, of_b, of_a),
            }
        };
        let name = if sub { am::MINUS } else { am::PLUS };
        let first = match plain {
            true => First::None,
            false => First::Native(am::ERLANG, name, &args),
        };
        exc::raise(c, pc, fail, first)
    });
    go_on::<F>(cx, next)
}

/// Handles the failure of an operation on integers in a body; the context has the exception.
///
/// # Safety
/// As for [`arith_failed`]; `n` must be the number of the operation.
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
    (*cx).reds = reds;
    let next = out_of_line(&mut *cx, pc, move |c, pc| {
        let value = c.exc.value;
        let fail = c.error(value);
        let name = purlin_term::atom::intern(ops::arith::OPS[n].0);
        exc::raise(c, pc, fail, First::Native(am::ERLANG, name, &[a, b]))
    });
    if (*cx).dirty {
        raised_away(cx, next);
        return F::leave(cx, (*cx).interp.exit);
    }
    go_on::<F>(cx, next)
}

/// The cost model of each operation, by its index in `ops::arith::OPS`.
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

/// Runs the operation of that number ([`ops::arith`]) on any terms.
pub fn operation(n: usize, h: &mut purlin_term::heap::Heap, a: Term, b: Term) -> arith::Arith {
    match n {
        arith_number::ADD => arith::add(h, a, b),
        arith_number::SUB => arith::sub(h, a, b),
        arith_number::MUL => arith::mul(h, a, b),
        arith_number::INT_DIV => arith::int_div(h, a, b),
        arith_number::REM => arith::int_rem(h, a, b),
        arith_number::BAND => arith::band(h, a, b),
        arith_number::BOR => arith::bor(h, a, b),
        arith_number::BXOR => arith::bxor(h, a, b),
        arith_number::BSL => arith::bsl(h, a, b),
        arith_number::BSR => arith::bsr(h, a, b),
        _ => arith::neg(h, b),
    }
}

/// Runs the operation with index `n` in `ops::arith::OPS` on any operands. It reads both before it
/// makes anything. It collects after the result is written, with the result as a root.
unsafe fn arith_op(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::Arith::at(pc);
    let (mut a, mut b) = (op.a().value(cx), op.b().value(cx));
    let n = op.operation();
    let small = a.is_small() && b.is_small();
    // Only meaningful if both are small.
    let (x, y) = (a.small_value(), b.small_value());
    let quick = match n {
        5 if small => Some(Term::small(x & y)),
        6 if small => Some(Term::small(x | y)),
        7 if small => Some(Term::small(x ^ y)),
        2 if small => x.checked_mul(y).and_then(Term::try_small),
        // The least small integer divided by -1 is no small integer.
        3 if small && y != 0 => Term::try_small(x / y),
        4 if small && y != 0 => Some(Term::small(x % y)),
        // The general case handles longer shifts and shifts to the left.
        9 if small && (0..64).contains(&y) => Some(Term::small(x >> y)),
        _ => None,
    };
    let mut refused = false;
    if quick.is_none()
        && pressure::is_limited()
        && op.fail().given().is_none()
        && op.live() != ops::NO_LIVE
    {
        // SAFETY: as at the end of the op, which collects with the same registers.
        match unsafe { make_room(cx, pc, op.live(), n, a, b) } {
            Some(operands) => (a, b) = operands,
            None => {
                (a, b) = (cx.x[op.live()], cx.x[op.live() + 1]);
                refused = true;
            }
        }
    }
    let mut away = false;
    if quick.is_none() && !refused && EFFORTS[n].is_long(a, b) && op.fail().given().is_none() {
        match long_way(cx, pc, op.live(), n, a, b) {
            Where::Here => {}
            Where::Away | Where::Ended => return std::ptr::null(),
            Where::Failed => away = true,
            Where::Done(t) => {
                cx.bump(EFFORTS[n].reductions(a, b, t));
                op.dst().put(cx, t);
                collect_after(cx, op.live(), op.dst().also());
                back(cx, op.next(), op.live(), op.dst());
                return std::ptr::null();
            }
        }
    }
    let v = match quick {
        Some(t) => Ok(t),
        None if away => Err(match cx.exc.value {
            am::SYSTEM_LIMIT => arith::ArithError::SystemLimit,
            _ => arith::ArithError::BadArith,
        }),
        None if refused => Err(arith::ArithError::SystemLimit),
        None => operation(n, &mut cx.heap, a, b),
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
            let next = exc::raise(cx, pc, fail, First::Native(am::ERLANG, name, args));
            if away {
                raised_away(cx, next);
                return std::ptr::null();
            }
            next
        }
    }
}
