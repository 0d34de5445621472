//! The stub that looks up an immediate key in a tree map: `purlin_term::map::get`, with no stores
//! on its way, so that the processor soon reaches the next load that has to wait for memory.

use crate::asm::Label;
use crate::machine::Alu::*;
use crate::machine::Shift::*;
use crate::machine::Width::*;
use crate::machine::*;
use purlin_isa::release::WIDE_HASHES;
use purlin_term::Term;
use purlin_term::hash::{FINAL_FACTORS, FINAL_SHIFT};
use purlin_term::layout::{CONS_HEAD, CONS_TAIL, MAP_BITMAP_SHIFT, MAP_LEVELS};
use purlin_term::release;
use purlin_term::word::{ARITY_SHIFT, SUBTAG_SHIFT, Subtag, TAG_BOXED, TAG_LIST};

/// `K` is a term that is no flat map, `A` an immediate; `leaf` is the stub that calls a helper,
/// `helper` the one with the general case. `R` becomes the value, or no value; uses `B`.
pub(crate) fn look_up<M: Machine>(a: &mut M, leaf: Label, helper: u64) -> Label {
    a.align(16);
    let start = a.here_label();
    let general = a.label();
    if release::has(WIDE_HASHES) && M::counts_bits() {
        walk(a, general);
    }
    a.bind(general);
    a.save(K);
    a.mov(R, A);
    a.mov(A, K);
    a.mov_i(B, helper);
    a.call_from_stub(leaf);
    a.restore(K);
    a.stub_ret();
    start
}

fn walk(a: &mut impl Machine, general: Label) {
    let (none, out, leaf) = (a.label(), a.label(), a.label());
    let hash = U;
    a.spare();
    a.if_not_boxed(K, R, none);
    a.load(B, boxed(K, 0));
    a.mov32(R, B);
    a.alu_i(D, And, R, (1 << ARITY_SHIFT) - 1);
    a.if_i(Cond::Ne, D, R, (Subtag::Map as i32) << SUBTAG_SHIFT, none);
    // The hash: 32 bits, of which each level takes four. A bit above them marks when all are used
    // up.
    a.mov(hash, A);
    for n in 0..3 {
        a.mov(T, hash);
        a.shift_i(Q, Shr, T, FINAL_SHIFT as u8);
        a.alu(Q, Xor, hash, T);
        if let Some(&f) = FINAL_FACTORS.get(n) {
            a.mov_i(T, f);
            a.mul(hash, T);
        }
    }
    a.mov32(hash, hash);
    a.mov_i(T, 1 << (4 * MAP_LEVELS));
    a.alu(Q, Or, hash, T);
    // `T`: the bitmap. `B`: eight bytes less than the distance of the children from the address in
    // a boxed term. From the header of a node to that of its child there are at most four dependent
    // steps: the bitmap, the bits below the child's, their number, the child.
    a.mov(T, B);
    a.shift_i(D, Shr, T, MAP_BITMAP_SHIFT as u8);
    a.lea(B, at(K, 8));
    let more = a.here_label();
    a.mov32(R, hash);
    a.alu_i(D, And, R, 15);
    a.if_no_bit(T, R, none);
    a.bits_below(T, R);
    a.popcount(T);
    a.load(B, indexed(B, T, 8, 8 - TAG_BOXED as i32));
    const { assert!(TAG_LIST == 1) }
    a.if_bits(Cond::Ne, B, TAG_LIST as u8, leaf);
    const { assert!(MAP_BITMAP_SHIFT.is_multiple_of(8)) }
    a.load16(T, at(B, MAP_BITMAP_SHIFT as i32 / 8 - TAG_BOXED as i32));
    a.shift_i(Q, Shr, hash, 4);
    a.if_i(Cond::Ne, Q, hash, 1, more);
    // Keys with equal hashes at this level.
    a.unspare();
    a.jmp(general);
    a.bind(leaf);
    a.if_m(Cond::Ne, A, cons(B, CONS_HEAD), none);
    a.load(R, cons(B, CONS_TAIL));
    a.jmp(out);
    a.bind(none);
    a.mov_i(R, Term::NON_VALUE.raw());
    a.bind(out);
    a.unspare();
    a.stub_ret();
}
