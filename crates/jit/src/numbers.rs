//! Stubs for boxed floats. Templates use them if the operands are not both small integers.
//!
//! Their operands are in R10 and RCX, and they keep R10 and R12. Other numbers, and results that
//! are not finite, are left to the caller.

use crate::asm::Label;
use crate::asm::x64::*;
use crate::registers::{E, HP, boxed, new};
use purlin_term::layout::{FLOAT_BITS, FLOAT_WORDS};
use purlin_term::word::{
    ARITY_SHIFT, SMALL_SHIFT, SUBTAG_SHIFT, Subtag, TAG_BOXED, TAG_MASK, TAG_SMALL, header,
};

const X0: Xmm = Xmm(0);
const X1: Xmm = Xmm(1);

/// Loads the float `r` into `v`. Jumps to `no_pointer` if `r` is not boxed, and to `other` if it is
/// boxed but no float. Uses R11.
fn float(a: &mut Asm, r: Reg, v: Xmm, no_pointer: Label, other: Label) {
    a.lea(R11, boxed(r, 0));
    a.test8_i(R11, TAG_MASK as u8);
    a.jcc(Cond::Ne, no_pointer);
    a.load32(R11, boxed(r, 0));
    a.alu_i(Width::D, Alu::And, R11, (1 << ARITY_SHIFT) - 1);
    a.alu_i(
        Width::D,
        Alu::Cmp,
        R11,
        (Subtag::Float as i32) << SUBTAG_SHIFT,
    );
    a.jcc(Cond::Ne, other);
    a.movsd_load(v, boxed(r, FLOAT_BITS));
}

/// Computes `R10 op RCX` as floats. At least one operand is a float, except for `/`. RCX is the
/// result, made at the top of the heap. It is 0 if an operand is something else, the result is not
/// finite, or there is no room.
pub(crate) fn operation(a: &mut Asm, op: Sse) -> Label {
    let (first, second, both) = (a.label(), a.label(), a.label());
    let (left, right, fail) = (a.label(), a.label(), a.label());
    a.align(16);
    let start = a.here_label();
    a.bind(first);
    float(a, R10, X0, left, fail);
    float(a, RCX, X1, right, fail);
    a.bind(both);
    a.sse_op(op, X0, X1);
    // All bits of the exponent are set: infinite, or not a number.
    a.movq_from(R11, X0);
    a.shift_i(Width::Q, Shift::Shr, R11, 52);
    a.invert(R11);
    a.test32_i(R11, 0x7FF);
    a.jcc(Cond::E, fail);
    a.lea(R11, new(FLOAT_WORDS));
    a.alu(Width::Q, Alu::Cmp, R11, E);
    a.jcc(Cond::A, fail);
    a.store_i(new(0), header(Subtag::Float, 1) as i32);
    a.movsd_store(new(FLOAT_BITS), X0);
    a.lea(RCX, at(HP, TAG_BOXED as i32));
    a.mov(HP, R11);
    a.ret();
    a.bind(left);
    if_not_small(a, R10, fail);
    a.mov(R11, R10);
    a.shift_i(Width::Q, Shift::Sar, R11, SMALL_SHIFT as u8);
    a.cvtsi2sd(X0, R11);
    a.bind(second);
    // Two small integers have a float result only for their quotient.
    float(a, RCX, X1, if op == Sse::Div { right } else { fail }, fail);
    a.jmp(both);
    a.bind(right);
    if_not_small(a, RCX, fail);
    a.shift_i(Width::Q, Shift::Sar, RCX, SMALL_SHIFT as u8);
    a.cvtsi2sd(X1, RCX);
    a.jmp(both);
    a.bind(fail);
    a.alu(Width::D, Alu::Xor, RCX, RCX);
    a.ret();
    start
}

fn if_not_small(a: &mut Asm, r: Reg, to: Label) {
    const { assert!(TAG_SMALL == 15) }
    a.lea(R11, at(r, 1));
    a.test8_i(R11, TAG_SMALL as u8);
    a.jcc(Cond::Ne, to);
}

/// Computes in RCX whether `R10 < RCX`, as the helper `less` does, whose address is in R11. Decides
/// three cases here: two floats; a float, and an integer that converts without loss; and a small
/// integer, and a term that is neither small nor boxed. Uses R12.
pub(crate) fn less(a: &mut Asm, helper: Label) -> Label {
    let (both, second) = (a.label(), a.label());
    let (left, right) = (a.label(), a.label());
    a.align(16);
    let start = a.here_label();
    // R11 is kept for the helper.
    a.mov(R12, R11);
    let other = a.label();
    // A list, an atom or a pid is greater than any number: guards such as `C >= 0, C =< 255` are
    // applied to all kinds of terms.
    for (term, number, is) in [(R10, RCX, 0), (RCX, R10, 1)] {
        let (next, found) = (a.label(), a.label());
        a.lea(R11, boxed(term, 0));
        a.test8_i(R11, TAG_MASK as u8);
        a.jcc(Cond::E, next);
        if_not_small(a, term, found);
        a.jmp(next);
        a.bind(found);
        if_not_small(a, number, other);
        a.mov_i(RCX, is);
        a.ret();
        a.bind(next);
    }
    float(a, R10, X0, left, other);
    float(a, RCX, X1, right, other);
    a.bind(both);
    a.mov_i(RCX, 1);
    a.ucomisd(X1, X0);
    let is = a.label();
    a.jcc(Cond::A, is);
    a.mov_i(RCX, 0);
    a.bind(is);
    a.ret();
    a.bind(left);
    exact(a, R10, X0, other);
    a.bind(second);
    float(a, RCX, X1, other, other);
    a.jmp(both);
    a.bind(right);
    exact(a, RCX, X1, other);
    a.jmp(both);
    a.bind(other);
    a.mov(R11, R12);
    a.jmp(helper);
    start
}

/// Converts the small integer in `r` to a float, if it has at most 53 bits.
fn exact(a: &mut Asm, r: Reg, v: Xmm, other: Label) {
    if_not_small(a, r, other);
    a.mov(R11, r);
    a.shift_i(Width::Q, Shift::Shl, R11, 7);
    a.shift_i(Width::Q, Shift::Sar, R11, 7);
    a.alu(Width::Q, Alu::Cmp, R11, r);
    a.jcc(Cond::Ne, other);
    a.shift_i(Width::Q, Shift::Sar, R11, SMALL_SHIFT as u8);
    a.cvtsi2sd(v, R11);
}
