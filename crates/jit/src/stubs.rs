//! Stubs: the pieces of machine code that all compiled functions share, by which machine code is
//! entered and left. Registers are those of `registers.rs`.

use crate::asm::*;
use crate::registers::{CX, E, HP, REDS, X_REGS, boxed, new};
use crate::{BIF_STUBS, FUN_STUBS, Fields, Helpers, Stubs, numbers, parts, searches, trees};
use purlin_term::fun::LEAD_ARITY;
use purlin_term::layout::{
    FUN_BITS, FUN_FREE_MASK, FUN_FREE_SHIFT, FUN_WORDS, MATCH_CONTEXT_WORDS,
};
use purlin_term::word::{Subtag, header};

/// The bytes that encode why code stopped running.
#[derive(Clone, Copy, Debug)]
pub struct Exits {
    pub yields: u8,
    pub waits: u8,
}

/// Length of the code between the entry for compiled callers, which counts the call, and the one
/// after that, in bytes.
pub const INNER: u32 = 9;

/// Offsets in exports and fun entries, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    pub export_address: i32,
    pub fun_address: i32,
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
    a.shift_i(Width::Q, Shift::Shr, RCX, 3);
    a.imul_i(RCX, RCX, 0x9E37_79B1_u32 as i32);
    a.shift_i(Width::Q, Shift::Shr, RCX, 12);
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
/// Written by `chance` to the words in the context of registers whose values are in machine
/// registers: it has the tag of a header.
const NOTHING: i32 = 0x0DEA_D000;

/// Makes all stubs for address `base`, and returns their bytes and addresses.
pub fn make(
    base: u64,
    f: &Fields,
    helpers: &Helpers,
    exits: Exits,
    t: Targets,
) -> Option<(Vec<u8>, Stubs)> {
    let mut a = Asm::new();
    let mut s = Stubs::default();

    // out: back to C. RSP is its value at entry, RAX the next instruction, or null.
    a.align(16);
    let out = a.here_label();
    a.pop(RCX);
    for r in SAVED.into_iter().rev() {
        a.pop(r);
    }
    a.ret();

    // leave: all registers are stored, and RAX is the next instruction, or null. Drops the
    // machine's stack down to the entry. The processor predicts the target of a `ret` from the
    // calls that it has seen. If a frame were dropped without a `ret`, it would mispredict all
    // later returns of C functions. So each frame is left by a return: the outermost one to `base`,
    // which sees the mark and goes out, the others to `rets`. Each of those is one misprediction,
    // so if there are many frames they are dropped after all.
    a.align(16);
    let rets = a.here_label();
    a.ret();
    a.align(16);
    let leave = a.here_label();
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

    // exit: R10 is the bytecode instruction to run, and nothing is stored. Bit 0 marks it.
    a.align(16);
    let exit = a.here_label();
    save_x(&mut a);
    save_tops(&mut a, f);
    a.lea(RAX, at(R10, 1));
    a.jmp(leave);

    // function: to the function whose code is at R10. The same without the mark, since it may have
    // machine code by now.
    a.align(16);
    let function = a.here_label();
    save_x(&mut a);
    save_tops(&mut a, f);
    a.mov(RAX, R10);
    a.jmp(leave);

    // yields: R10 is where to resume, ECX the number of live X registers there.
    a.align(16);
    let yields = a.here_label();
    save_x(&mut a);
    save_tops(&mut a, f);
    a.store(at(CX, f.interp_pc), R10);
    a.store(at(CX, f.interp_live), RCX);
    a.store8_i(at(CX, f.interp_exit), exits.yields);
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    a.jmp(leave);

    // waits: the same of a process that waits for a message, where no X register is live.
    a.align(16);
    let waits = a.here_label();
    save_tops(&mut a, f);
    a.store(at(CX, f.interp_pc), R10);
    a.store_i(at(CX, f.interp_live), 0);
    a.store8_i(at(CX, f.interp_exit), exits.waits);
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    a.jmp(leave);

    // enter(cx, code, table): a C function. Gives the next instruction of bytecode, or null.
    a.align(16);
    let enter = a.here_label();
    for r in SAVED {
        a.push(r);
    }
    a.mov(CX, RDI);
    a.mov(R11, RSI);
    // The mark that `leave` sets.
    a.alu(Width::D, Alu::Xor, RAX, RAX);
    a.push(RAX);
    a.store(at(CX, f.machine_base), RSP);
    load_tops(&mut a, f);
    load_x(&mut a);
    a.call_r(R11);
    // base: the outermost compiled function has returned, to the bytecode address in its caller's
    // frame. The table of return points may have machine code for it.
    let base_at = a.here_label();
    a.alu_mi(Width::Q, Alu::Cmp, at(RSP, 0), 0);
    a.jcc(Cond::Ne, out);
    a.load(R10, at(E, 0));
    a.store_i(at(E, 0), 0);
    let none = a.label();
    look_up(&mut a, f, none);
    a.call_r(R12);
    a.jmp(base_at);
    a.bind(none);
    a.store(at(CX, 0), RAX);
    save_tops(&mut a, f);
    a.mov(RAX, R10);
    a.jmp(out);

    // resume: RCX is the next instruction, or null, and all registers are stored, as after a
    // helper. If there is machine code for it (at an exception handler) it goes on there, and drops
    // the calls that machine code has made.
    a.align(16);
    let resume = a.here_label();
    let stop = a.label();
    a.test(Width::Q, RCX, RCX);
    a.jcc(Cond::E, stop);
    a.cmp8_mi(at(CX, f.gc_wanted), 0);
    a.jcc(Cond::Ne, stop);
    a.mov(R10, RCX);
    let none = a.label();
    look_up(&mut a, f, none);
    a.load(RSP, at(CX, f.machine_base));
    load_x(&mut a);
    a.call_r(R12);
    a.jmp(base_at);
    a.bind(none);
    a.mov(RCX, R10);
    a.bind(stop);
    a.mov(RAX, RCX);
    a.jmp(leave);

    // helper: R11 is a C function of the context, R10, RCX and R12. RCX becomes its result; all
    // else stays, or is loaded from the context.
    a.align(16);
    let helper = a.here_label();
    save_x(&mut a);
    save_tops(&mut a, f);
    a.mov(RDI, CX);
    a.mov(RSI, R10);
    a.mov(RDX, RCX);
    a.mov(RCX, R12);
    a.mov(R12, RSP);
    a.alu_i(Width::Q, Alu::And, RSP, -16);
    a.call_r(R11);
    a.mov(RSP, R12);
    a.mov(RCX, RAX);
    load_tops(&mut a, f);
    load_x(&mut a);
    a.ret();

    // leaf helper: the same for a function that takes no words of the heap and never collects.
    a.align(16);
    let leaf = a.here_label();
    save_x(&mut a);
    a.mov(RDI, CX);
    a.mov(RSI, R10);
    a.mov(RDX, RCX);
    a.mov(RCX, R12);
    a.mov(R12, RSP);
    a.alu_i(Width::Q, Alu::And, RSP, -16);
    a.call_r(R11);
    a.mov(RSP, R12);
    a.mov(RCX, RAX);
    load_x(&mut a);
    a.ret();

    // local: the code of a function without machine code. It counts the call and exits to the
    // bytecode at RCX. Its first bytes are as long as those of a compiled function, since some
    // callers enter after them.
    let counted = |a: &mut Asm, out: Label| {
        a.dec(REDS);
        a.jcc_near(Cond::Le, out);
    };
    a.align(16);
    let out_local = a.label();
    let local = a.here_label();
    counted(&mut a, out_local);
    a.mov(R10, RCX);
    a.jmp(function);
    a.bind(out_local);
    a.mov(R10, RCX);
    a.load16(RCX, at(R10, LEAD_ARITY));
    a.jmp(yields);

    // Calls of funs, by number of arguments: R10 is the term of the fun, which is a local one with
    // that arity, R11 its code. Puts its environment after the arguments.
    const { assert!(FUN_FREE_SHIFT == 8 && FUN_FREE_MASK == 0xFF) };
    let free = boxed(R10, FUN_BITS);
    let environment = boxed(R10, FUN_WORDS);
    let mut fun_labels = Vec::new();
    for n in 0..FUN_STUBS {
        a.align(16);
        let l = a.here_label();
        fun_labels.push(l);
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
    }
    let _ = t;
    let chance = count_chance(&mut a, f);

    // Natives, by number of arguments: as helper, but only the arguments are stored, and only X0 is
    // live afterwards.
    let mut bif_labels = Vec::new();
    for n in 0..BIF_STUBS {
        a.align(16);
        bif_labels.push(a.here_label());
        for (k, r) in X_REGS.into_iter().enumerate().take(n) {
            a.store(at(CX, k as i32 * 8), r);
        }
        save_tops(&mut a, f);
        a.mov(RDI, CX);
        a.mov(RSI, R10);
        a.mov(R12, RSP);
        a.alu_i(Width::Q, Alu::And, RSP, -16);
        a.call_r(R11);
        a.mov(RSP, R12);
        a.mov(RCX, RAX);
        load_tops(&mut a, f);
        a.load(RAX, at(CX, 0));
        a.ret();
    }

    // context: R10 is a term. It becomes a match context for it, or 0 if it is no bitstring or
    // there is no room. Uses RCX, R11 and R12.
    a.align(16);
    let context = a.here_label();
    make_context(&mut a);

    let floats = [Sse::Add, Sse::Sub, Sse::Mul, Sse::Div].map(|op| numbers::operation(&mut a, op));
    let less = numbers::less(&mut a, leaf);
    let part = parts::part(&mut a);
    let tree = trees::look_up(&mut a, leaf, helpers.map_get);
    let (find_key, member) = (searches::find_key(&mut a), searches::member(&mut a));

    let of = |a: &Asm, l| a.offset(l).map(|o| base + u64::from(o));
    s.enter = of(&a, enter)?;
    s.exit = of(&a, exit)?;
    s.leave = of(&a, leave)?;
    s.yields = of(&a, yields)?;
    s.waits = of(&a, waits)?;
    s.helper = of(&a, helper)?;
    s.leaf_helper = of(&a, leaf)?;
    s.local = of(&a, local)?;
    s.resume = of(&a, resume)?;
    s.context = of(&a, context)?;
    for (to, l) in s.floats.iter_mut().zip(floats) {
        *to = of(&a, l)?;
    }
    s.less = of(&a, less)?;
    s.tree = of(&a, tree)?;
    s.find_key = of(&a, find_key)?;
    s.member = of(&a, member)?;
    s.part = of(&a, part)?;
    for (n, l) in bif_labels.into_iter().enumerate() {
        s.bif[n] = of(&a, l)?;
    }
    s.base = of(&a, base_at)?;
    s.chance = of(&a, chance)?;
    for (n, l) in fun_labels.into_iter().enumerate() {
        s.fun[n] = of(&a, l)?;
    }
    let bytes = a.finish()?.place(base)?;
    Some((bytes, s))
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
/// The stub `context`.
fn make_context(a: &mut Asm) {
    use purlin_term::layout::{
        BIN_SIZE, HEAP_BIN_HEAD_WORDS, MATCH_BYTES, MATCH_END, MATCH_ORIGINAL, MATCH_POSITION,
        REFC_BIN_BYTES, SUB_BIN_BITS, SUB_BIN_OFFSET, SUB_BIN_ORIGINAL,
    };
    use purlin_term::word::{KIND_MASK, SUBTAG_SHIFT, TAG_BOXED, TAG_MASK};
    const BOXED: i32 = TAG_BOXED as i32;
    let subtag = |a: &mut Asm, r: Reg, by: Reg| {
        a.load32(by, boxed(r, 0));
        a.alu_i(Width::D, Alu::And, by, KIND_MASK as i32);
    };
    let kind = |s: Subtag| (s as i32) << SUBTAG_SHIFT;
    let (fail, heap, counted, write) = (a.label(), a.label(), a.label(), a.label());
    a.lea(RCX, at(R10, -BOXED));
    a.test8_i(RCX, TAG_MASK as u8);
    a.jcc(Cond::Ne, fail);
    a.lea(RCX, new(MATCH_CONTEXT_WORDS));
    a.alu(Width::Q, Alu::Cmp, RCX, E);
    a.jcc(Cond::A, fail);
    subtag(a, R10, RCX);
    a.alu_i(Width::D, Alu::Cmp, RCX, kind(Subtag::HeapBin));
    a.jcc(Cond::E, heap);
    a.alu_i(Width::D, Alu::Cmp, RCX, kind(Subtag::RefcBin));
    a.jcc(Cond::E, counted);
    a.alu_i(Width::D, Alu::Cmp, RCX, kind(Subtag::SubBin));
    a.jcc(Cond::Ne, fail);
    // A sub-binary: where its bits start, and how many there are.
    a.load8(R11, boxed(R10, SUB_BIN_BITS).plus(1));
    a.load(R12, boxed(R10, SUB_BIN_OFFSET));
    a.lea(R11, indexed(R11, R12, 8, 0));
    a.load(R12, boxed(R10, BIN_SIZE));
    a.shift_i(Width::Q, Shift::Shl, R12, 3);
    a.load8(RCX, boxed(R10, SUB_BIN_BITS));
    a.alu(Width::Q, Alu::Add, R12, RCX);
    a.alu(Width::Q, Alu::Add, R12, R11);
    a.load(R10, boxed(R10, SUB_BIN_ORIGINAL));
    a.store(new(MATCH_POSITION), R11);
    a.store(new(MATCH_END), R12);
    subtag(a, R10, RCX);
    a.lea(R11, boxed(R10, HEAP_BIN_HEAD_WORDS));
    a.alu_i(Width::D, Alu::Cmp, RCX, kind(Subtag::HeapBin));
    a.jcc(Cond::E, write);
    a.load(R11, boxed(R10, REFC_BIN_BYTES));
    a.jmp(write);
    a.bind(heap);
    a.lea(R11, boxed(R10, HEAP_BIN_HEAD_WORDS));
    let whole = a.label();
    a.jmp(whole);
    a.bind(counted);
    a.load(R11, boxed(R10, REFC_BIN_BYTES));
    a.bind(whole);
    a.load(RCX, boxed(R10, BIN_SIZE));
    a.shift_i(Width::Q, Shift::Shl, RCX, 3);
    a.store_i(new(MATCH_POSITION), 0);
    a.store(new(MATCH_END), RCX);
    a.bind(write);
    a.store_i(
        new(0),
        header(Subtag::MatchContext, MATCH_CONTEXT_WORDS - 1) as i32,
    );
    a.store(new(MATCH_ORIGINAL), R10);
    a.store(new(MATCH_BYTES), R11);
    a.lea(R10, at(HP, BOXED));
    a.alu_i(Width::Q, Alu::Add, HP, MATCH_CONTEXT_WORDS as i32 * 8);
    a.ret();
    a.bind(fail);
    a.alu(Width::D, Alu::Xor, R10, R10);
    a.ret();
}
