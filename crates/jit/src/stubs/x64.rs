//! The stubs for x86-64. Registers are those of [`machine`](crate::machine)'s implementation.
//!
//! R10 is an address of bytecode, R12 one of machine code. RAX is what `enter` returns to C: the
//! next instruction of bytecode, or null.

use super::{Exits, Labels, NOTHING, Shared};
use crate::asm::Label;
use crate::asm::x64::*;
use crate::machine::processors::X64;
use crate::machine::{self, Machine, x64_register as register};
use crate::{BIF_STUBS, DEPTHS, FUN_STUBS, Fields, Helpers, Stubs};
use purlin_isa::context::return_hash;
use purlin_term::fun::LEAD_ARITY;
use purlin_term::layout::{FUN_BITS, FUN_FREE_MASK, FUN_FREE_SHIFT, FUN_WORDS};
use purlin_term::word::TAG_BOXED;

/// X0 to X5.
const X_REGS: [Reg; 6] = {
    let mut all = [RAX; 6];
    let mut n = 0;
    while n < all.len() {
        all[n] = register(machine::X_REGS[n]);
        n += 1;
    }
    all
};
const CX: Reg = register(machine::CX);
const E: Reg = register(machine::E);
const HP: Reg = register(machine::HP);
const REDS: Reg = register(machine::REDS);

/// As [`machine::boxed`], for a register of the processor.
fn boxed(r: Reg, n: usize) -> Mem {
    at(r, n as i32 * 8 - TAG_BOXED as i32)
}

fn save_x(a: &mut Asm) {
    for (n, r) in X_REGS.into_iter().enumerate() {
        a.store(at(CX, n as i32 * 8), r);
    }
}
fn load_x(a: &mut Asm) {
    for (n, r) in X_REGS.into_iter().enumerate() {
        a.load(r, at(CX, n as i32 * 8));
    }
}
fn save_tops(a: &mut Asm, f: &Fields) {
    a.store(at(CX, f.stop), E);
    a.store(at(CX, f.htop), HP);
    a.store(at(CX, f.reds), REDS);
}
fn load_tops(a: &mut Asm, f: &Fields) {
    a.load(E, at(CX, f.stop));
    a.load(HP, at(CX, f.htop));
    a.load(REDS, at(CX, f.reds));
}

/// R12 becomes the machine code for the instruction R10, by the table of return points. Word 0 of
/// the table is the mask. Entries of two words follow, and one without an address ends the search.
/// Uses RCX, RDX and R11.
fn look_up(a: &mut Asm, f: &Fields, none: Label) {
    a.load(R11, at(CX, f.returns));
    a.mov(RCX, R10);
    a.shift_i(Width::Q, Shift::Shr, RCX, return_hash::ALIGNED_BITS);
    a.imul_i(RCX, RCX, return_hash::FACTOR);
    a.shift_i(Width::Q, Shift::Shr, RCX, return_hash::DROPPED_BITS);
    let probe = a.here_label();
    a.alu_m(Width::Q, Alu::And, RCX, at(R11, 0));
    a.mov(R12, RCX);
    a.shift_i(Width::Q, Shift::Shl, R12, 4);
    a.load(RDX, indexed(R11, R12, 1, 8));
    a.alu(Width::Q, Alu::Cmp, RDX, R10);
    let found = a.label();
    a.jcc(Cond::E, found);
    a.inc(RCX);
    a.test(Width::Q, RDX, RDX);
    a.jcc(Cond::Ne, probe);
    a.jmp(none);
    a.bind(found);
    a.load(R12, indexed(R11, R12, 1, 16));
    a.test(Width::Q, R12, R12);
    a.jcc(Cond::E, none);
}

const SAVED: [Reg; 6] = [RBP, RBX, R12, R13, R14, R15];
/// Maximum number of machine frames that are left by returns. Dropping them costs about as many
/// mispredictions.
const MOST_RETURNED: i32 = 4;

/// Makes all stubs for address `base`, and returns their bytes and addresses.
pub fn make(base: u64, f: &Fields, helpers: &Helpers, exits: Exits) -> Option<(Vec<u8>, Stubs)> {
    let mut m = X64::begin(4096, true);
    let a = m.assembler();
    let out = out(a);
    let leave = leave(a, f, out);
    let exit = exit(a, f, leave);
    let function = function(a, f, leave);
    let yields = yields(a, f, exits.yields, leave);
    let waits = waits(a, f, exits.waits, leave);
    let (enter, base_at, behind) = enter(a, f, out);
    let (resume, again) = resume(a, f, base_at, leave);
    let mut aligned = Vec::new();
    let helper = helper(a, f, &mut aligned);
    let leaf = leaf_helper(a, &mut aligned);
    let local = local(a, function, yields);
    let funs: Vec<Label> = (0..FUN_STUBS).map(|n| fun(a, n)).collect();
    let chance = count_chance(a, f);
    let natives: Vec<Label> = (0..BIF_STUBS)
        .map(|n| native(a, f, n, &mut aligned))
        .collect();
    let labels = Labels {
        enter,
        exit,
        leave,
        yields,
        waits,
        helper,
        leaf,
        local,
        resume,
        base: base_at,
        chance,
        funs,
        natives,
        entered: vec![behind, again],
        aligned,
        shared: Shared::make(&mut m, leaf, helpers),
    };
    let mut s = labels.addresses(base, |l| m.offset(l))?;
    let code = m.finish()?;
    debug_assert!(code.depths.len() <= DEPTHS);
    for (to, &(offset, words)) in s.frames.depths.iter_mut().zip(&code.depths) {
        *to = (base + u64::from(offset), words);
    }
    let bytes = code.place(base)?;
    Some((bytes, s))
}

/// The stub `out`: back to C. RSP is its value at entry, RAX the next instruction, or null.
fn out(a: &mut Asm) -> Label {
    a.align(16);
    let l = a.here_label();
    a.pop(RCX);
    for r in SAVED.into_iter().rev() {
        a.pop(r);
    }
    a.ret();
    l
}

/// The stub `leave`: all registers are stored, and RAX is the next instruction, or null. It drops
/// the machine's stack down to the entry.
///
/// The processor predicts the target of a `ret` from the calls that it has seen. If a frame were
/// dropped without a `ret`, it would mispredict all later returns of C functions. So each frame is
/// left by a return: the outermost one to `base`, which sees the mark and goes out, the others to
/// `rets`. Each of those is one misprediction, so if there are many frames they are dropped after
/// all.
fn leave(a: &mut Asm, f: &Fields, out: Label) -> Label {
    a.align(16);
    let rets = a.here_label();
    a.ret();
    a.align(16);
    let l = a.here_label();
    let (drop, go) = (a.label(), a.label());
    a.load(RCX, at(CX, f.machine_base));
    a.mov(RDX, RCX);
    a.alu(Width::Q, Alu::Sub, RDX, RSP);
    a.alu_i(Width::Q, Alu::Cmp, RDX, 8 * MOST_RETURNED);
    a.jcc(Cond::A, drop);
    a.test(Width::Q, RDX, RDX);
    a.jcc(Cond::E, out);
    a.store_i(at(RCX, 0), 1);
    a.lea_label(R11, rets);
    let more = a.here_label();
    a.alu_i(Width::Q, Alu::Sub, RDX, 8);
    a.jcc(Cond::E, go);
    // The frame that is left first is the lowest.
    a.store(indexed(RSP, RDX, 1, -8), R11);
    a.jmp(more);
    a.bind(go);
    a.ret();
    a.bind(drop);
    a.mov(RSP, RCX);
    a.jmp(out);
    l
}

/// The stub `exit`: R10 is the bytecode instruction to run, and nothing is stored. Bit 0 marks it.
fn exit(a: &mut Asm, f: &Fields, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.lea(RAX, at(R10, 1));
    a.jmp(leave);
    l
}

/// The stub `function`: to the function whose code is at R10. It sets no mark, since the function
/// may have machine code by now.
fn function(a: &mut Asm, f: &Fields, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.mov(RAX, R10);
    a.jmp(leave);
    l
}

/// The stub `yields`: R10 is where to resume, ECX the number of live X registers there.
fn yields(a: &mut Asm, f: &Fields, why: u8, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.store(at(CX, f.interp_pc), R10);
    a.store(at(CX, f.interp_live), RCX);
    a.store8_i(at(CX, f.interp_exit), why);
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    a.jmp(leave);
    l
}

/// The stub `waits`: as `yields`, of a process that waits for a message, where no X register is
/// live.
fn waits(a: &mut Asm, f: &Fields, why: u8, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_tops(a, f);
    a.store(at(CX, f.interp_pc), R10);
    a.store_i(at(CX, f.interp_live), 0);
    a.store8_i(at(CX, f.interp_exit), why);
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    a.jmp(leave);
    l
}

/// The stub `enter(cx, code)`: a C function that returns the next instruction of bytecode, or null.
///
/// Also returns the label `base`, to which the outermost compiled function returns. The bytecode
/// address in its caller's frame may have machine code by the table of return points. The range is
/// one of [`Frames::entered`](crate::Frames::entered).
fn enter(a: &mut Asm, f: &Fields, out: Label) -> (Label, Label, (Label, Label)) {
    a.align(16);
    let l = a.here_label();
    for r in SAVED {
        a.push(r);
    }
    a.mov(CX, RDI);
    a.mov(R11, RSI);
    // The mark that `leave` sets.
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    a.push(RAX);
    let begin = a.here_label();
    a.store(at(CX, f.machine_base), RSP);
    load_tops(a, f);
    load_x(a);
    a.call_r(R11);
    let base = a.here_label();
    a.alu_mi(Width::Q, Alu::Cmp, at(RSP, 0), 0);
    a.jcc(Cond::Ne, out);
    a.load(R10, at(E, 0));
    a.store_i(at(E, 0), 0);
    let none = a.label();
    look_up(a, f, none);
    a.call_r(R12);
    a.jmp(base);
    a.bind(none);
    a.store(at(CX, 0), RAX);
    save_tops(a, f);
    a.mov(RAX, R10);
    a.jmp(out);
    let end = a.here_label();
    (l, base, (begin, end))
}

/// The stub `resume`: RCX is the next instruction, or null, and all registers are stored, as after
/// a helper. If there is machine code for the instruction (at an exception handler), it continues
/// there, and drops the calls that machine code has made. The range is one of
/// [`Frames::entered`](crate::Frames::entered).
fn resume(a: &mut Asm, f: &Fields, base: Label, leave: Label) -> (Label, (Label, Label)) {
    a.align(16);
    let l = a.here_label();
    let stop = a.label();
    a.test(Width::Q, RCX, RCX);
    a.jcc(Cond::E, stop);
    a.cmp8_mi(at(CX, f.gc_wanted), 0);
    a.jcc(Cond::Ne, stop);
    a.mov(R10, RCX);
    let none = a.label();
    look_up(a, f, none);
    a.load(RSP, at(CX, f.machine_base));
    let begin = a.here_label();
    load_x(a);
    a.call_r(R12);
    a.jmp(base);
    let end = a.here_label();
    a.bind(none);
    a.mov(RCX, R10);
    a.bind(stop);
    a.mov(RAX, RCX);
    a.jmp(leave);
    (l, (begin, end))
}

/// Calls the C function R11 on an aligned stack. RCX becomes its result; R12 changes. Adds the
/// range in which R12 has the stack pointer.
fn call_aligned(a: &mut Asm, aligned: &mut Vec<(Label, Label)>) {
    a.mov(R12, RSP);
    let begin = a.here_label();
    a.alu_i(Width::Q, Alu::And, RSP, -16);
    a.call_r(R11);
    a.mov(RSP, R12);
    aligned.push((begin, a.here_label()));
    a.mov(RCX, RAX);
}

/// Sets the arguments of a helper: the context, R10, RCX and R12.
fn set_arguments(a: &mut Asm) {
    a.mov(RDI, CX);
    a.mov(RSI, R10);
    a.mov(RDX, RCX);
    a.mov(RCX, R12);
}

/// The stub `helper`: R11 is a C function of the context, R10, RCX and R12. RCX becomes its result;
/// all else stays, or is loaded from the context.
fn helper(a: &mut Asm, f: &Fields, aligned: &mut Vec<(Label, Label)>) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    set_arguments(a);
    call_aligned(a, aligned);
    load_tops(a, f);
    load_x(a);
    a.ret();
    l
}

/// The stub of leaf helpers: as `helper`, for a function that takes no words of the heap and never
/// collects.
fn leaf_helper(a: &mut Asm, aligned: &mut Vec<(Label, Label)>) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    set_arguments(a);
    call_aligned(a, aligned);
    load_x(a);
    a.ret();
    l
}

/// The stub `local`: the code of a function without machine code. It counts the call and exits to
/// the bytecode at RCX. Its first bytes are as long as those of a compiled function, since some
/// callers enter after them.
fn local(a: &mut Asm, function: Label, yields: Label) -> Label {
    a.align(16);
    let out = a.label();
    let l = a.here_label();
    a.dec(REDS);
    a.jcc_near(Cond::Le, out);
    a.mov(R10, RCX);
    a.jmp(function);
    a.bind(out);
    a.mov(R10, RCX);
    a.load16(RCX, at(R10, LEAD_ARITY));
    a.jmp(yields);
    l
}

/// The stub of calls of funs with `n` arguments: R10 is the term of the fun, which is a local one
/// with that arity, R11 its code. Puts its environment after the arguments.
fn fun(a: &mut Asm, n: usize) -> Label {
    const { assert!(FUN_FREE_SHIFT == 8 && FUN_FREE_MASK == 0xFF) };
    let free = boxed(R10, FUN_BITS);
    let environment = boxed(R10, FUN_WORDS);
    a.align(16);
    let l = a.here_label();
    let done = a.label();
    // Words of the environment. RCX is the entry of the code, which the stub `local` needs.
    a.load8(R12, free.plus(FUN_FREE_SHIFT as i32 / 8));
    for (k, r) in X_REGS.into_iter().enumerate().skip(n) {
        let i = (k - n) as i32;
        a.alu_i(Width::D, Alu::Cmp, R12, i);
        a.jcc(Cond::E, done);
        a.load(r, environment.plus(i * 8));
    }
    // Copies the rest from the last word to the first.
    let first = X_REGS.len().saturating_sub(n) as i32;
    let more = a.here_label();
    a.alu_i(Width::D, Alu::Cmp, R12, first);
    a.jcc(Cond::E, done);
    a.push_m(indexed(R10, R12, 8, environment.disp - 8));
    a.pop_m(indexed(CX, R12, 8, (n as i32 - 1) * 8));
    a.dec(R12);
    a.jmp(more);
    a.bind(done);
    a.jmp_r(R11);
    l
}

/// The stub of natives with `n` arguments: as `helper`, but only the arguments are stored, and only
/// X0 is live afterwards.
fn native(a: &mut Asm, f: &Fields, n: usize, aligned: &mut Vec<(Label, Label)>) -> Label {
    a.align(16);
    let l = a.here_label();
    for (k, r) in X_REGS.into_iter().enumerate().take(n) {
        a.store(at(CX, k as i32 * 8), r);
    }
    save_tops(a, f);
    a.mov(RDI, CX);
    a.mov(RSI, R10);
    call_aligned(a, aligned);
    load_tops(a, f);
    a.load(RAX, at(CX, 0));
    a.ret();
    l
}

/// The stub `chance` ([`chaos`](crate::chaos)): sets the flags to `E` if code is to exit.
fn count_chance(a: &mut Asm, f: &Fields) -> Label {
    a.align(16);
    let l = a.here_label();
    for n in 0..X_REGS.len() as i32 {
        a.store_i(at(CX, n * 8), NOTHING);
    }
    a.alu_mi(Width::Q, Alu::Sub, at(CX, f.chaos), 1);
    a.ret();
    l
}
