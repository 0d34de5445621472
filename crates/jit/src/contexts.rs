//! The stub that makes a match context.

use crate::asm::Label;
use crate::machine::Alu::*;
use crate::machine::Shift::*;
use crate::machine::Width::*;
use crate::machine::*;
use purlin_term::layout::{
    BIN_SIZE, HEAP_BIN_HEAD_WORDS, MATCH_BYTES, MATCH_CONTEXT_WORDS, MATCH_END, MATCH_ORIGINAL,
    MATCH_POSITION, REFC_BIN_BYTES, SUB_BIN_BITS, SUB_BIN_OFFSET, SUB_BIN_ORIGINAL,
    SUB_BIN_START_SHIFT,
};
use purlin_term::word::{KIND_MASK, SUBTAG_SHIFT, Subtag, TAG_BOXED, header};

/// `A` is a term. It becomes a match context for it, or 0 if it is no bitstring or there is no
/// room. Uses `R`, `B` and `K`.
pub(crate) fn make<M: Machine>(a: &mut M) -> Label {
    const BOXED: i32 = TAG_BOXED as i32;
    let subtag = |a: &mut M, r: Reg, by: Reg| {
        a.load32(by, boxed(r, 0));
        a.alu_i(D, And, by, KIND_MASK as i32);
    };
    let kind = |s: Subtag| (s as i32) << SUBTAG_SHIFT;
    a.align(16);
    let start = a.here_label();
    let (fail, heap, counted, write) = (a.label(), a.label(), a.label(), a.label());
    a.if_not_boxed(A, R, fail);
    a.lea(R, new(MATCH_CONTEXT_WORDS));
    a.if_r(Cond::A, Q, R, E, fail);
    subtag(a, A, R);
    a.if_i(Cond::E, D, R, kind(Subtag::HeapBin), heap);
    a.if_i(Cond::E, D, R, kind(Subtag::RefcBin), counted);
    a.if_i(Cond::Ne, D, R, kind(Subtag::SubBin), fail);
    // A sub-binary: where its bits start, and how many there are.
    a.load8(
        B,
        boxed(A, SUB_BIN_BITS).plus(SUB_BIN_START_SHIFT as i32 / 8),
    );
    a.load(K, boxed(A, SUB_BIN_OFFSET));
    a.lea(B, indexed(B, K, 8, 0));
    a.load(K, boxed(A, BIN_SIZE));
    a.shift_i(Q, Shl, K, 3);
    a.load8(R, boxed(A, SUB_BIN_BITS));
    a.alu(Q, Add, K, R);
    a.alu(Q, Add, K, B);
    a.load(A, boxed(A, SUB_BIN_ORIGINAL));
    a.store(new(MATCH_POSITION), B);
    a.store(new(MATCH_END), K);
    subtag(a, A, R);
    a.lea(B, boxed(A, HEAP_BIN_HEAD_WORDS));
    a.if_i(Cond::E, D, R, kind(Subtag::HeapBin), write);
    a.load(B, boxed(A, REFC_BIN_BYTES));
    a.jmp(write);
    a.bind(heap);
    a.lea(B, boxed(A, HEAP_BIN_HEAD_WORDS));
    let whole = a.label();
    a.jmp(whole);
    a.bind(counted);
    a.load(B, boxed(A, REFC_BIN_BYTES));
    a.bind(whole);
    a.load(R, boxed(A, BIN_SIZE));
    a.shift_i(Q, Shl, R, 3);
    a.store_i(new(MATCH_POSITION), 0);
    a.store(new(MATCH_END), R);
    a.bind(write);
    a.store_i(
        new(0),
        header(Subtag::MatchContext, MATCH_CONTEXT_WORDS - 1) as i32,
    );
    a.store(new(MATCH_ORIGINAL), A);
    a.store(new(MATCH_BYTES), B);
    a.lea(A, at(HP, BOXED));
    a.alu_i(Q, Add, HP, MATCH_CONTEXT_WORDS as i32 * 8);
    a.stub_ret();
    a.bind(fail);
    a.zero(A);
    a.stub_ret();
    start
}
