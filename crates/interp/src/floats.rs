//! Floats. Float registers hold no terms, and the collector doesn't see them. A result that is not
//! finite raises.

use super::exc::{self, First};
use super::handler::{go, go_on, op};
use super::instr;
use crate::cx::Cx;
use purlin_term::release::{self, SIGNED_ZEROS};
use purlin_term::word::{Subtag, header};
use purlin_term::{Term, am, arith};

op! {
    op_fload => fload;
    op_fconv => fconv;
}

op!(op_fmove = FMove(cx, pc, e, hp, reds, op) {
    let f = &mut (*cx).fr;
    f[op.dst()] = f[op.src()];
    go!(cx, op.next(), e, hp, reds)
});

op!(op_fstore = FStore(cx, pc, e, hp, reds, op) {
    let v = (&(*cx).fr)[op.src()];
    // A `test_heap` has reserved two words.
    (hp as *mut u64).write(header(Subtag::Float, 1));
    (hp.add(1) as *mut u64).write(v.to_bits());
    op.dst().set(cx, e, Term::boxed_at(hp));
    go!(cx, op.next(), e, hp.add(2), reds)
});

/// Operations on float registers. They make no term; `fstore` does.
macro_rules! float_op {
    ($($name:ident = $op:ident |$a:ident$(, $b:ident)?| $r:expr;)*) => {$(
        op!($name = $op(cx, pc, e, hp, reds, op) {
            let f = &mut (*cx).fr;
            let $a = f[op.a()];
            $(let $b = f[op.$b()];)?
            let r: f64 = $r;
            // A result that is infinite, or not a number, raises.
            if r.is_finite() {
                f[op.dst()] = r;
                go!(cx, op.next(), e, hp, reds)
            }
            return badarith::<F>(cx, pc, e, hp, reds);
        });
    )*};
}

float_op! {
    op_fadd = FAdd |a, b| a + b;
    op_fsub = FSub |a, b| a - b;
    op_fmul = FMul |a, b| a * b;
    op_fdiv = FDiv |a, b| a / b;
    // As in stock, where the native returned -0.0 only before that became a value of its own.
    op_fnegate = FNegate |a| if release::has(SIGNED_ZEROS) { -a } else { 0.0 - a };
}

op!(
/// Raises `badarith`: a float operation has no finite result.
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

unsafe fn fload(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::FLoad::at(pc);
    let t = op.src().value(cx);
    match t.as_float() {
        Some(f) => {
            cx.fr[op.dst()] = f;
            op.next()
        }
        // The operands are the same.
        None => fconv(cx, pc),
    }
}

unsafe fn fconv(cx: &mut Cx, pc: *const u64) -> *const u64 {
    let op = instr::FConv::at(pc);
    let t = op.src().value(cx);
    match arith::to_f64(t) {
        Some(f) => {
            cx.fr[op.dst()] = f;
            op.next()
        }
        None => exc::error(cx, pc, am::BADARITH),
    }
}
