//! The stub that makes a bitstring of a part of a matched one: a copy of a few whole bytes,
//! otherwise a reference.

use crate::asm::Label;
use crate::machine::Alu::*;
use crate::machine::Shift::*;
use crate::machine::Width::*;
use crate::machine::*;
use purlin_term::layout::{
    BIN_SIZE, HEAP_BIN_HEAD_WORDS, MATCH_BYTES, MATCH_ORIGINAL, SUB_BIN_BITS, SUB_BIN_OFFSET,
    SUB_BIN_ORIGINAL, SUB_BIN_START_SHIFT, SUB_BIN_WORDS, heap_bin_limit,
};
use purlin_term::word::{ARITY_SHIFT, Subtag, TAG_BOXED, header};

/// `A` is a match context, `B` the start of the part, and `R` its length, both in bits and within
/// the original. `R` becomes the term, or 0 if there is no room, or if the part is to be copied and
/// begins within a byte. Uses `B`.
pub(crate) fn part(a: &mut impl Machine) -> Label {
    const { assert!(HEAP_BIN_HEAD_WORDS == 2) }
    let limit = heap_bin_limit();
    let (reference, short, tiny) = (a.label(), a.label(), a.label());
    let (made, fail, out) = (a.label(), a.label(), a.label());
    let data = HEAP_BIN_HEAD_WORDS as i32 * 8;
    a.align(16);
    let start = a.here_label();
    a.spare();
    let most = SUB_BIN_WORDS.max(HEAP_BIN_HEAD_WORDS + limit.div_ceil(8));
    a.lea(T, new(most));
    a.if_r(Cond::A, Q, T, E, fail);
    a.if_bits(Cond::Ne, R, 7, reference);
    a.if_i(Cond::A, Q, R, limit as i32 * 8, reference);
    a.if_bits(Cond::Ne, B, 7, fail);
    // `R`: bytes. `U`: words after the header. `B`: where they are.
    a.shift_i(Q, Shr, R, 3);
    a.shift_i(Q, Shr, B, 3);
    a.alu_m(Add, B, boxed(A, MATCH_BYTES));
    a.lea(U, at(R, 15));
    a.shift_i(Q, Shr, U, 3);
    a.mov(T, U);
    a.shift_i(Q, Shl, T, ARITY_SHIFT as u8);
    a.alu_i(Q, Or, T, header(Subtag::HeapBin, 0) as i32);
    a.store(new(0), T);
    // The rest of the last word is 0.
    a.store_i(indexed(HP, U, 8, 0), 0);
    a.store(new(BIN_SIZE), R);
    a.if_i(Cond::B, Q, R, 8, short);
    // Eight bytes at a time from the last one on; the first eight may be written twice. Nothing
    // outside the part is read.
    let more = a.here_label();
    a.load(T, indexed(B, R, 1, -8));
    a.store(indexed(HP, R, 1, data - 8), T);
    a.alu_i(Q, Sub, R, 8);
    a.if_i(Cond::Ae, Q, R, 8, more);
    a.load(T, at(B, 0));
    a.store(at(HP, data), T);
    a.bind(made);
    a.lea(R, at(HP, TAG_BOXED as i32));
    a.lea(HP, indexed(HP, U, 8, 8));
    a.bind(out);
    a.unspare();
    a.stub_ret();
    // Up to seven bytes: one word.
    a.bind(short);
    a.if_zero(Cond::E, D, R, made);
    a.if_i(Cond::B, D, R, 4, tiny);
    a.load32(T, indexed(B, R, 1, -4));
    a.load32(B, at(B, 0));
    a.alu_i(D, Sub, R, 4);
    a.shift_i(D, Shl, R, 3);
    a.shift_by_r(Q, Shl, T);
    a.alu(Q, Or, T, B);
    a.store(at(HP, data), T);
    a.jmp(made);
    a.bind(tiny);
    a.zero(T);
    let more = a.here_label();
    a.shift_i(D, Shl, T, 8);
    a.load8(U, indexed(B, R, 1, -1));
    a.alu(D, Or, T, U);
    a.dec_if(Cond::Ne, R, more);
    a.store(at(HP, data), T);
    a.mov_i(U, 2);
    a.jmp(made);
    a.bind(reference);
    a.store_i(new(0), header(Subtag::SubBin, SUB_BIN_WORDS - 1) as i32);
    a.mov(T, R);
    a.shift_i(Q, Shr, T, 3);
    a.store(new(BIN_SIZE), T);
    a.mov(T, B);
    a.shift_i(Q, Shr, T, 3);
    a.store(new(SUB_BIN_OFFSET), T);
    // Bits after the last whole byte and before the first.
    a.alu_i(D, And, R, 7);
    a.alu_i(D, And, B, 7);
    a.shift_i(D, Shl, B, SUB_BIN_START_SHIFT as u8);
    a.alu(D, Or, R, B);
    a.store(new(SUB_BIN_BITS), R);
    a.load(T, boxed(A, MATCH_ORIGINAL));
    a.store(new(SUB_BIN_ORIGINAL), T);
    a.lea(R, at(HP, TAG_BOXED as i32));
    a.alu_i(Q, Add, HP, SUB_BIN_WORDS as i32 * 8);
    a.jmp(out);
    a.bind(fail);
    a.zero(R);
    a.jmp(out);
    start
}
