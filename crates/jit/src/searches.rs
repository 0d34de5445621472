//! The stubs that search short lists, `lists:keyfind/3` and `lists:member/2`, for keys that are
//! compared as words. Calling the native would take longer than the search.

use crate::asm::Label;
use crate::asm::x64::*;
use purlin_term::word::{
    ARITY_SHIFT, KIND_MASK, Subtag, TAG_BOXED, TAG_LIST, TAG_MASK, TAG_SMALL, header,
};
use purlin_term::{NIL, Term, am};

/// Maximum number of elements to search. The natives count one more reduction for each sixteen.
const MOST: i32 = 15;

const LIST: i32 = TAG_LIST as i32;
const BOXED: i32 = TAG_BOXED as i32;

/// The part that both share. RCX is each element in turn, of the list in R12. `element` jumps to
/// its label with the result in RCX, and `found` follows. RAX may be used.
fn search(a: &mut Asm, found: Label, no_value: Label, element: impl FnOnce(&mut Asm, Label)) {
    let (end, next) = (a.label(), a.label());
    a.push(RAX);
    a.push(RDX);
    a.mov_i(RDX, MOST as u64 + 1);
    let more = a.here_label();
    a.lea(RAX, at(R12, -LIST));
    a.test8_i(RAX, TAG_MASK as u8);
    a.jcc(Cond::Ne, end);
    a.dec(RDX);
    a.jcc(Cond::E, no_value);
    a.load(RCX, at(R12, -LIST));
    a.load(R12, at(R12, 8 - LIST));
    element(a, next);
    a.bind(next);
    a.jmp(more);
    a.bind(end);
    a.mov_i(RCX, am::FALSE.raw());
    a.alu_i(Width::Q, Alu::Cmp, R12, NIL.raw() as i32);
    a.jcc(Cond::E, found);
    a.bind(no_value);
    a.mov_i(RCX, Term::NON_VALUE.raw());
    a.bind(found);
    a.pop(RDX);
    a.pop(RAX);
    a.ret();
}

/// Jumps unless R10 is an immediate.
fn if_no_immediate(a: &mut Asm, to: Label) {
    a.mov32(RCX, R10);
    a.alu_i(Width::D, Alu::And, RCX, TAG_MASK as i32);
    a.alu_i(Width::D, Alu::Cmp, RCX, TAG_MASK as i32);
    a.jcc(Cond::Ne, to);
}

/// R10 is the key, R11 eight times the position, R12 the list. RCX becomes the first tuple in it
/// that has the key at that position, or `false`. It becomes no value if the key is a number or no
/// immediate, or if the list is improper or longer than [`MOST`]. Uses R10 to R12.
pub(crate) fn find_key(a: &mut Asm) -> Label {
    a.align(16);
    let start = a.here_label();
    let (out, found, no_value) = (a.label(), a.label(), a.label());
    if_no_immediate(a, out);
    // A small integer may be equal to a float.
    const { assert!(TAG_SMALL == 15) }
    a.mov32(RCX, R10);
    a.alu_i(Width::D, Alu::And, RCX, 15);
    a.alu_i(Width::D, Alu::Cmp, RCX, TAG_SMALL as i32);
    a.jcc(Cond::E, out);
    search(a, found, no_value, |a, next| {
        a.lea(RAX, at(RCX, -BOXED));
        a.test8_i(RAX, TAG_MASK as u8);
        a.jcc(Cond::Ne, next);
        a.load(RAX, at(RCX, -BOXED));
        const { assert!(header(Subtag::Tuple, 0) == 0) }
        a.test8_i(RAX, KIND_MASK as u8);
        a.jcc(Cond::Ne, next);
        a.shift_i(Width::Q, Shift::Shr, RAX, ARITY_SHIFT as u8);
        a.shift_i(Width::Q, Shift::Shl, RAX, 3);
        a.alu(Width::Q, Alu::Cmp, RAX, R11);
        a.jcc(Cond::B, next);
        a.alu_m(Width::Q, Alu::Cmp, R10, indexed(RCX, R11, 1, -BOXED));
        a.jcc(Cond::E, found);
    });
    a.bind(out);
    a.mov_i(RCX, Term::NON_VALUE.raw());
    a.ret();
    start
}

/// R10 is the term to search for, R12 the list. RCX becomes `true`, `false`, or no value, as for
/// [`find_key`]; integers count as immediates here.
pub(crate) fn member(a: &mut Asm) -> Label {
    a.align(16);
    let start = a.here_label();
    let (out, found, no_value, is) = (a.label(), a.label(), a.label(), a.label());
    if_no_immediate(a, out);
    search(a, found, no_value, |a, _| {
        a.alu(Width::Q, Alu::Cmp, R10, RCX);
        a.jcc(Cond::E, is);
    });
    a.bind(is);
    a.mov_i(RCX, am::TRUE.raw());
    a.pop(RDX);
    a.pop(RAX);
    a.ret();
    a.bind(out);
    a.mov_i(RCX, Term::NON_VALUE.raw());
    a.ret();
    start
}
