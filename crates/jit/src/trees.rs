//! The stub that looks up an immediate key in a tree map: `purlin_term::map::get`, with no stores
//! on its way, so that the processor soon reaches the next load that has to wait for memory.

use crate::asm::Label;
use crate::asm::x64::*;
use crate::registers::boxed;
use purlin_isa::release::WIDE_HASHES;
use purlin_term::Term;
use purlin_term::hash::{FINAL_FACTORS, FINAL_SHIFT};
use purlin_term::layout::{MAP_BITMAP_SHIFT, MAP_LEVELS};
use purlin_term::release;
use purlin_term::word::{ARITY_SHIFT, SUBTAG_SHIFT, Subtag, TAG_BOXED, TAG_LIST, TAG_MASK};

/// R12 is a term that is no flat map, R10 an immediate; `leaf` is the stub that calls a helper,
/// `helper` the one with the general case. RCX becomes the value, or no value; uses R11.
pub(crate) fn look_up(a: &mut Asm, leaf: Label, helper: u64) -> Label {
    a.align(16);
    let start = a.here_label();
    let general = a.label();
    if release::has(WIDE_HASHES) && counts_bits() {
        walk(a, general);
    }
    a.bind(general);
    a.push(R12);
    a.mov(RCX, R10);
    a.mov(R10, R12);
    a.mov_i(R11, helper);
    a.call(leaf);
    a.pop(R12);
    a.ret();
    start
}

#[cfg(target_arch = "x86_64")]
fn counts_bits() -> bool {
    std::is_x86_feature_detected!("popcnt") && std::is_x86_feature_detected!("bmi2")
}
#[cfg(not(target_arch = "x86_64"))]
fn counts_bits() -> bool {
    false
}

fn walk(a: &mut Asm, general: Label) {
    let (none, out, leaf) = (a.label(), a.label(), a.label());
    let hash = RDX;
    a.push(RAX);
    a.push(RDX);
    a.lea(RCX, boxed(R12, 0));
    a.test8_i(RCX, TAG_MASK as u8);
    a.jcc(Cond::Ne, none);
    a.load(R11, boxed(R12, 0));
    a.mov32(RCX, R11);
    a.alu_i(Width::D, Alu::And, RCX, (1 << ARITY_SHIFT) - 1);
    a.alu_i(
        Width::D,
        Alu::Cmp,
        RCX,
        (Subtag::Map as i32) << SUBTAG_SHIFT,
    );
    a.jcc(Cond::Ne, none);
    // The hash: 32 bits, of which each level takes four. A bit above them marks when all are used
    // up.
    a.mov(hash, R10);
    for n in 0..3 {
        a.mov(RAX, hash);
        a.shift_i(Width::Q, Shift::Shr, RAX, FINAL_SHIFT as u8);
        a.alu(Width::Q, Alu::Xor, hash, RAX);
        if let Some(&f) = FINAL_FACTORS.get(n) {
            a.mov_i(RAX, f);
            a.imul(hash, RAX);
        }
    }
    a.mov32(hash, hash);
    a.mov_i(RAX, 1 << (4 * MAP_LEVELS));
    a.alu(Width::Q, Alu::Or, hash, RAX);
    // RAX: the bitmap. R11: eight bytes less than the distance of the children from the address in
    // a boxed term. From the header of a node to that of its child there are at most four dependent
    // steps: the bitmap, the bits below the child's, their number, the child.
    a.mov(RAX, R11);
    a.shift_i(Width::D, Shift::Shr, RAX, MAP_BITMAP_SHIFT as u8);
    a.lea(R11, at(R12, 8));
    let more = a.here_label();
    a.mov32(RCX, hash);
    a.alu_i(Width::D, Alu::And, RCX, 15);
    a.bt(Width::D, RAX, RCX);
    a.jcc(Cond::Ae, none);
    a.bzhi(RAX, RAX, RCX);
    a.popcnt(RAX, RAX);
    a.load(R11, indexed(R11, RAX, 8, 8 - TAG_BOXED as i32));
    const { assert!(TAG_LIST == 1) }
    a.test8_i(R11, TAG_LIST as u8);
    a.jcc(Cond::Ne, leaf);
    const { assert!(MAP_BITMAP_SHIFT.is_multiple_of(8)) }
    a.load16(RAX, at(R11, MAP_BITMAP_SHIFT as i32 / 8 - TAG_BOXED as i32));
    a.shift_i(Width::Q, Shift::Shr, hash, 4);
    a.alu_i(Width::Q, Alu::Cmp, hash, 1);
    a.jcc(Cond::Ne, more);
    // Keys with equal hashes at this level.
    a.pop(RDX);
    a.pop(RAX);
    a.jmp(general);
    a.bind(leaf);
    a.alu_m(Width::Q, Alu::Cmp, R10, at(R11, -(TAG_LIST as i32)));
    a.jcc(Cond::Ne, none);
    a.load(RCX, at(R11, 8 - TAG_LIST as i32));
    a.jmp(out);
    a.bind(none);
    a.mov_i(RCX, Term::NON_VALUE.raw());
    a.bind(out);
    a.pop(RDX);
    a.pop(RAX);
    a.ret();
}
