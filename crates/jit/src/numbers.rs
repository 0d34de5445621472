//! Stubs for boxed floats. Templates use them if the operands are not both small integers.
//!
//! Their operands are in `A` and `R`, and they keep `A` and `K`. Other numbers, and results that
//! are not finite, are left to the caller.

use crate::asm::Label;
use crate::machine::Alu::*;
use crate::machine::Shift::*;
use crate::machine::Width::*;
use crate::machine::*;
use purlin_term::layout::{FLOAT_BITS, FLOAT_WORDS};
use purlin_term::word::{ARITY_SHIFT, SMALL_SHIFT, SUBTAG_SHIFT, Subtag, TAG_BOXED, header};

const X0: Vector = Vector(0);
const X1: Vector = Vector(1);

/// Loads the float `r` into `v`. Jumps to `no_pointer` if `r` is not boxed, and to `other` if it is
/// boxed but no float. Uses `B`.
fn float(a: &mut impl Machine, r: Reg, v: Vector, no_pointer: Label, other: Label) {
    a.if_not_boxed(r, B, no_pointer);
    a.load32(B, boxed(r, 0));
    a.alu_i(D, And, B, (1 << ARITY_SHIFT) - 1);
    a.if_i(
        Cond::Ne,
        D,
        B,
        (Subtag::Float as i32) << SUBTAG_SHIFT,
        other,
    );
    a.load_float(v, boxed(r, FLOAT_BITS));
}

/// Computes `A op R` as floats. At least one operand is a float, except for `/`. `R` is the
/// result, made at the top of the heap. It is 0 if an operand is something else, the result is not
/// finite, or there is no room.
pub(crate) fn operation(a: &mut impl Machine, op: Float) -> Label {
    let (first, second, both) = (a.label(), a.label(), a.label());
    let (left, right, fail) = (a.label(), a.label(), a.label());
    a.align(16);
    let start = a.here_label();
    a.bind(first);
    float(a, A, X0, left, fail);
    float(a, R, X1, right, fail);
    a.bind(both);
    a.float(op, X0, X1);
    // All bits of the exponent are set: infinite, or not a number.
    a.if_not_finite(X0, B, fail);
    a.lea(B, new(FLOAT_WORDS));
    a.if_r(Cond::A, Q, B, E, fail);
    a.store_i(new(0), header(Subtag::Float, 1) as i32);
    a.store_float(new(FLOAT_BITS), X0);
    a.lea(R, at(HP, TAG_BOXED as i32));
    a.mov(HP, B);
    a.stub_ret();
    a.bind(left);
    if_not_small(a, A, fail);
    a.untag(B, A);
    a.to_float(X0, B);
    a.bind(second);
    // Two small integers have a float result only for their quotient.
    float(a, R, X1, if op == Float::Div { right } else { fail }, fail);
    a.jmp(both);
    a.bind(right);
    if_not_small(a, R, fail);
    a.shift_i(Q, Sar, R, SMALL_SHIFT as u8);
    a.to_float(X1, R);
    a.jmp(both);
    a.bind(fail);
    a.zero(R);
    a.stub_ret();
    start
}

fn if_not_small(a: &mut impl Machine, r: Reg, to: Label) {
    a.if_not_small(r, B, to);
}

/// Computes in `R` whether `A < R`, as the helper `less` does, whose address is in `B`. Decides
/// three cases here: two floats; a float, and an integer that converts without loss; and a small
/// integer, and a term that is neither small nor boxed. Uses `K`.
pub(crate) fn less(a: &mut impl Machine, helper: Label) -> Label {
    let (both, second) = (a.label(), a.label());
    let (left, right) = (a.label(), a.label());
    a.align(16);
    let start = a.here_label();
    // `B` is kept for the helper.
    a.mov(K, B);
    let other = a.label();
    // A list, an atom or a pid is greater than any number: guards such as `C >= 0, C =< 255` are
    // applied to all kinds of terms.
    for (term, number, is) in [(A, R, 0), (R, A, 1)] {
        let (next, found) = (a.label(), a.label());
        a.if_boxed(term, B, next);
        if_not_small(a, term, found);
        a.jmp(next);
        a.bind(found);
        if_not_small(a, number, other);
        a.mov_i(R, is);
        a.stub_ret();
        a.bind(next);
    }
    float(a, A, X0, left, other);
    float(a, R, X1, right, other);
    a.bind(both);
    a.mov_i(R, 1);
    let is = a.label();
    a.if_float_above(X1, X0, is);
    a.mov_i(R, 0);
    a.bind(is);
    a.stub_ret();
    a.bind(left);
    exact(a, A, X0, other);
    a.bind(second);
    float(a, R, X1, other, other);
    a.jmp(both);
    a.bind(right);
    exact(a, R, X1, other);
    a.jmp(both);
    a.bind(other);
    a.mov(B, K);
    a.jmp(helper);
    start
}

/// Converts the small integer in `r` to a float, if it has at most 53 bits.
fn exact(a: &mut impl Machine, r: Reg, v: Vector, other: Label) {
    if_not_small(a, r, other);
    a.mov(B, r);
    a.shift_i(Q, Shl, B, 7);
    a.shift_i(Q, Sar, B, 7);
    a.if_r(Cond::Ne, Q, B, r, other);
    a.shift_i(Q, Sar, B, SMALL_SHIFT as u8);
    a.to_float(v, B);
}
