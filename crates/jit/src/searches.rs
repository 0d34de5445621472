//! The stubs that search short lists, `lists:keyfind/3` and `lists:member/2`, for keys that are
//! compared as words. Calling the native would take longer than the search.

use crate::asm::Label;
use crate::machine::Shift::*;
use crate::machine::Width::*;
use crate::machine::*;
use purlin_term::layout::{CONS_HEAD, CONS_TAIL};
use purlin_term::word::{ARITY_SHIFT, KIND_MASK, Subtag, TAG_BOXED, TAG_MASK, TAG_SMALL, header};
use purlin_term::{NIL, Term, am};

/// Maximum number of elements to search. The natives count one more reduction for each sixteen.
const MOST_SEARCHED: i32 = 15;

const BOXED: i32 = TAG_BOXED as i32;

/// The part that both share. `R` is each element in turn, of the list in `K`. `element` jumps to
/// its label with the result in `R`, and `found` follows. `T` may be used.
fn search<M: Machine>(
    a: &mut M,
    found: Label,
    no_value: Label,
    element: impl FnOnce(&mut M, Label),
) {
    let (end, next) = (a.label(), a.label());
    a.spare();
    a.mov_i(U, MOST_SEARCHED as u64 + 1);
    let more = a.here_label();
    a.if_not_cons(K, T, end);
    a.dec_if(Cond::E, U, no_value);
    a.load(R, cons(K, CONS_HEAD));
    a.load(K, cons(K, CONS_TAIL));
    element(a, next);
    a.bind(next);
    a.jmp(more);
    a.bind(end);
    a.mov_i(R, am::FALSE.raw());
    a.if_i(Cond::E, Q, K, NIL.raw() as i32, found);
    a.bind(no_value);
    a.mov_i(R, Term::NON_VALUE.raw());
    a.bind(found);
    a.unspare();
    a.stub_ret();
}

/// Jumps unless `A` is an immediate.
fn if_no_immediate(a: &mut impl Machine, to: Label) {
    a.if_masked(Cond::Ne, A, TAG_MASK as u32, TAG_MASK as u32, R, to);
}

/// `A` is the key, `B` eight times the position, `K` the list. `R` becomes the first tuple in it
/// that has the key at that position, or `false`. It becomes no value if the key is a number or no
/// immediate, or if the list is improper or longer than [`MOST_SEARCHED`]. Uses `A` to `K`.
pub(crate) fn find_key(a: &mut impl Machine) -> Label {
    a.align(16);
    let start = a.here_label();
    let (out, found, no_value) = (a.label(), a.label(), a.label());
    if_no_immediate(a, out);
    // A small integer may be equal to a float.
    const { assert!(TAG_SMALL == 15) }
    a.if_masked(Cond::E, A, TAG_SMALL as u32, TAG_SMALL as u32, R, out);
    search(a, found, no_value, |a, next| {
        a.if_not_boxed(R, T, next);
        a.load(T, boxed(R, 0));
        const { assert!(header(Subtag::Tuple, 0) == 0) }
        a.if_bits(Cond::Ne, T, KIND_MASK as u8, next);
        a.shift_i(Q, Shr, T, ARITY_SHIFT as u8);
        a.shift_i(Q, Shl, T, 3);
        a.if_r(Cond::B, Q, T, B, next);
        a.if_m(Cond::E, A, indexed(R, B, 1, -BOXED), found);
    });
    a.bind(out);
    a.mov_i(R, Term::NON_VALUE.raw());
    a.stub_ret();
    start
}

/// `A` is the term to search for, `K` the list. `R` becomes `true`, `false`, or no value, as for
/// [`find_key`]; integers count as immediates here.
pub(crate) fn member(a: &mut impl Machine) -> Label {
    a.align(16);
    let start = a.here_label();
    let (out, found, no_value, is) = (a.label(), a.label(), a.label(), a.label());
    if_no_immediate(a, out);
    search(a, found, no_value, |a, _| {
        a.if_r(Cond::E, Q, A, R, is);
    });
    a.bind(is);
    a.mov_i(R, am::TRUE.raw());
    a.unspare();
    a.stub_ret();
    a.bind(out);
    a.mov_i(R, Term::NON_VALUE.raw());
    a.stub_ret();
    start
}
