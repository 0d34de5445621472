//! The stub that makes a bitstring of a part of a matched one: a copy of a few whole bytes,
//! otherwise a reference.

use crate::asm::Label;
use crate::asm::x64::*;
use crate::registers::{E, HP, boxed, new};
use purlin_term::layout::{
    BIN_SIZE, HEAP_BIN_HEAD_WORDS, MATCH_BYTES, MATCH_ORIGINAL, SUB_BIN_BITS, SUB_BIN_OFFSET,
    SUB_BIN_ORIGINAL, SUB_BIN_WORDS, heap_bin_limit,
};
use purlin_term::word::{ARITY_SHIFT, Subtag, TAG_BOXED, header};

/// R10 is a match context, R11 the start of the part, and RCX its length, both in bits and within
/// the original. RCX becomes the term, or 0 if there is no room, or if the part is to be copied and
/// begins within a byte. Uses R11.
pub(crate) fn part(a: &mut Asm) -> Label {
    const { assert!(HEAP_BIN_HEAD_WORDS == 2) }
    let limit = heap_bin_limit();
    let (reference, short, tiny) = (a.label(), a.label(), a.label());
    let (made, fail, out) = (a.label(), a.label(), a.label());
    let data = HEAP_BIN_HEAD_WORDS as i32 * 8;
    a.align(16);
    let start = a.here_label();
    a.push(RAX);
    a.push(RDX);
    let most = SUB_BIN_WORDS.max(HEAP_BIN_HEAD_WORDS + limit.div_ceil(8));
    a.lea(RAX, new(most));
    a.alu(Width::Q, Alu::Cmp, RAX, E);
    a.jcc(Cond::A, fail);
    a.test8_i(RCX, 7);
    a.jcc(Cond::Ne, reference);
    a.alu_i(Width::Q, Alu::Cmp, RCX, limit as i32 * 8);
    a.jcc(Cond::A, reference);
    a.test8_i(R11, 7);
    a.jcc(Cond::Ne, fail);
    // RCX: bytes. RDX: words after the header. R11: where they are.
    a.shift_i(Width::Q, Shift::Shr, RCX, 3);
    a.shift_i(Width::Q, Shift::Shr, R11, 3);
    a.alu_m(Width::Q, Alu::Add, R11, boxed(R10, MATCH_BYTES));
    a.lea(RDX, at(RCX, 15));
    a.shift_i(Width::Q, Shift::Shr, RDX, 3);
    a.mov(RAX, RDX);
    a.shift_i(Width::Q, Shift::Shl, RAX, ARITY_SHIFT as u8);
    a.alu_i(Width::Q, Alu::Or, RAX, header(Subtag::HeapBin, 0) as i32);
    a.store(new(0), RAX);
    // The rest of the last word is 0.
    a.store_i(indexed(HP, RDX, 8, 0), 0);
    a.store(new(BIN_SIZE), RCX);
    a.alu_i(Width::Q, Alu::Cmp, RCX, 8);
    a.jcc(Cond::B, short);
    // Eight bytes at a time from the last one on; the first eight may be written twice. Nothing
    // outside the part is read.
    let more = a.here_label();
    a.load(RAX, indexed(R11, RCX, 1, -8));
    a.store(indexed(HP, RCX, 1, data - 8), RAX);
    a.alu_i(Width::Q, Alu::Sub, RCX, 8);
    a.alu_i(Width::Q, Alu::Cmp, RCX, 8);
    a.jcc(Cond::Ae, more);
    a.load(RAX, at(R11, 0));
    a.store(at(HP, data), RAX);
    a.bind(made);
    a.lea(RCX, at(HP, TAG_BOXED as i32));
    a.lea(HP, indexed(HP, RDX, 8, 8));
    a.bind(out);
    a.pop(RDX);
    a.pop(RAX);
    a.ret();
    // Up to seven bytes: one word.
    a.bind(short);
    a.test(Width::D, RCX, RCX);
    a.jcc(Cond::E, made);
    a.alu_i(Width::D, Alu::Cmp, RCX, 4);
    a.jcc(Cond::B, tiny);
    a.load32(RAX, indexed(R11, RCX, 1, -4));
    a.load32(R11, at(R11, 0));
    a.alu_i(Width::D, Alu::Sub, RCX, 4);
    a.shift_i(Width::D, Shift::Shl, RCX, 3);
    a.shift_cl(Width::Q, Shift::Shl, RAX);
    a.alu(Width::Q, Alu::Or, RAX, R11);
    a.store(at(HP, data), RAX);
    a.jmp(made);
    a.bind(tiny);
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    let more = a.here_label();
    a.shift_i(Width::D, Shift::Shl, RAX, 8);
    a.load8(RDX, indexed(R11, RCX, 1, -1));
    a.alu(Width::D, Alu::Or, RAX, RDX);
    a.dec(RCX);
    a.jcc(Cond::Ne, more);
    a.store(at(HP, data), RAX);
    a.mov_i(RDX, 2);
    a.jmp(made);
    a.bind(reference);
    a.store_i(new(0), header(Subtag::SubBin, SUB_BIN_WORDS - 1) as i32);
    a.mov(RAX, RCX);
    a.shift_i(Width::Q, Shift::Shr, RAX, 3);
    a.store(new(BIN_SIZE), RAX);
    a.mov(RAX, R11);
    a.shift_i(Width::Q, Shift::Shr, RAX, 3);
    a.store(new(SUB_BIN_OFFSET), RAX);
    // Bits after the last whole byte and before the first.
    a.alu_i(Width::D, Alu::And, RCX, 7);
    a.alu_i(Width::D, Alu::And, R11, 7);
    a.shift_i(Width::D, Shift::Shl, R11, 8);
    a.alu(Width::D, Alu::Or, RCX, R11);
    a.store(new(SUB_BIN_BITS), RCX);
    a.load(RAX, boxed(R10, MATCH_ORIGINAL));
    a.store(new(SUB_BIN_ORIGINAL), RAX);
    a.lea(RCX, at(HP, TAG_BOXED as i32));
    a.alu_i(Width::Q, Alu::Add, HP, SUB_BIN_WORDS as i32 * 8);
    a.jmp(out);
    a.bind(fail);
    a.alu(Width::D, Alu::Xor, RCX, RCX);
    a.jmp(out);
    start
}
