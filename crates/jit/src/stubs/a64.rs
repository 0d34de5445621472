//! The stubs for aarch64. Registers are those of [`machine`](crate::machine)'s implementation.
//!
//! A stub that returns is called with the return address in x30 and may not call anything else
//! before it has kept it. The machine's stack has 16 bytes for each return address.

use super::{Exits, Labels, NOTHING, Shared};
use crate::asm::Label;
use crate::asm::a64::Width::{W, X};
use crate::asm::a64::{Asm, Cond, Index, LR, Logic, Reg, SP, Shift, Size, Sum, Vec64, ZR};
use crate::machine::processors::A64;
use crate::machine::{
    A, A64_SMALL_TAG as SMALL_TAG, B, CX, E, HP, K, Machine, R, REDS, X_REGS, a64_register as r,
};
use crate::{BIF_STUBS, FUN_STUBS, Fields, Helpers, Stubs};
use purlin_isa::context::return_hash;
use purlin_term::fun::LEAD_ARITY;
use purlin_term::layout::{FUN_BITS, FUN_FREE_MASK, FUN_FREE_SHIFT, FUN_WORDS};
use purlin_term::word::{TAG_BOXED, TAG4_MASK};

/// Temporaries.
const V: Reg = Reg(16);
const P: Reg = Reg(17);
/// Registers that a C function keeps, in pairs from the end of the frame that `enter` makes.
const SAVED: [(u8, u8); 6] = [(29, 30), (19, 20), (21, 22), (23, 24), (25, 26), (27, 28)];
const SAVED_FLOATS: [(u8, u8); 4] = [(8, 9), (10, 11), (12, 13), (14, 15)];
const FRAME: i64 = 16 * (SAVED.len() + SAVED_FLOATS.len()) as i64;

fn x(n: usize) -> Reg {
    r(X_REGS[n])
}
/// The first argument, and the result, of a C function, and the others.
const fn arg(n: u8) -> Reg {
    Reg(n)
}
/// X0 and X1, X2 and X3, X4 and X5 are next to each other in the context.
fn save_x(a: &mut Asm) {
    for n in [0, 2, 4] {
        a.store_pair(x(n), x(n + 1), r(CX), n as i64 * 8, Index::Offset);
    }
}
fn load_x(a: &mut Asm) {
    for n in [0, 2, 4] {
        a.load_pair(x(n), x(n + 1), r(CX), n as i64 * 8, Index::Offset);
    }
}
/// An access to a field of the context, whose offsets have more bits than those of an instruction.
fn field(a: &mut Asm, offset: i32) -> (Reg, i64) {
    let offset = i64::from(offset);
    if Asm::displacement_fits(Size::X, offset) {
        return (r(CX), offset);
    }
    a.mov_i(P, offset as u64);
    a.sum(X, Sum::Add, P, P, r(CX));
    (P, 0)
}
fn load(a: &mut Asm, t: Reg, offset: i32) {
    let (base, disp) = field(a, offset);
    a.load(Size::X, t, base, disp);
}
fn store(a: &mut Asm, offset: i32, t: Reg) {
    let (base, disp) = field(a, offset);
    a.store(Size::X, t, base, disp);
}
fn store8_i(a: &mut Asm, offset: i32, value: u8) {
    a.mov_i(P, offset as u64);
    a.mov_i(V, value.into());
    a.store_r(Size::B, V, r(CX), P, false);
}
fn save_tops(a: &mut Asm, f: &Fields) {
    store(a, f.stop, r(E));
    store(a, f.htop, r(HP));
    store(a, f.reds, r(REDS));
}
fn load_tops(a: &mut Asm, f: &Fields) {
    load(a, r(E), f.stop);
    load(a, r(HP), f.htop);
    load(a, r(REDS), f.reds);
}

/// K becomes the machine code for the instruction A, by the table of return points
/// (`runtime::compiled::returns`). Uses x0 to x3, V and P.
fn look_up(a: &mut Asm, f: &Fields, none: Label) {
    let (table, n, mask, found_at) = (arg(0), arg(1), arg(2), arg(3));
    load(a, table, f.returns);
    a.load(Size::X, mask, table, 0);
    a.shift_i(X, Shift::Lsr, n, r(A), return_hash::ALIGNED_BITS.into());
    a.mov_i(V, i64::from(return_hash::FACTOR) as u64);
    a.mul(X, n, n, V);
    a.shift_i(X, Shift::Lsr, n, n, return_hash::DROPPED_BITS.into());
    let probe = a.here_label();
    a.logic(X, Logic::And, n, n, mask);
    a.sum_shifted(X, Sum::Add, P, table, n, (Shift::Lsl, 4));
    a.sum_i(X, Sum::Add, P, P, 8);
    // The machine code was written before the address.
    a.load_acquire(found_at, P);
    a.cmp(X, found_at, r(A));
    let found = a.label();
    a.b_cond(Cond::Eq, found);
    a.sum_i(X, Sum::Add, n, n, 1);
    a.cbnz(X, found_at, probe);
    a.b(none);
    a.bind(found);
    a.load(Size::X, r(K), P, 8);
    a.cbz(X, r(K), none);
}

/// Goes to a return point or an exception handler, with the address of `base` pushed.
fn go_on(a: &mut Asm, base: Label) {
    a.adr(LR, base);
    a.store_indexed(LR, SP, -16, Index::Pre);
    a.br(r(K));
}

/// Makes all stubs for address `base`, and returns their bytes and addresses.
pub fn make(base: u64, f: &Fields, helpers: &Helpers, exits: Exits) -> Option<(Vec<u8>, Stubs)> {
    let mut m = A64::begin(4096, true);
    let a = m.assembler();
    let (leave_by_x0, leave, out) = leave(a, f);
    let exit = exit(a, f, leave);
    let function = function(a, f, leave);
    let yields = yields(a, f, exits.yields, leave);
    let waits = waits(a, f, exits.waits, leave);
    let (enter, base_at) = enter(a, f, out);
    let resume = resume(a, f, base_at, leave);
    let helper = helper(a, f);
    let leaf = leaf_helper(a);
    let local = local(&mut m, function, yields);
    let a = m.assembler();
    let funs: Vec<Label> = (0..FUN_STUBS).map(|n| fun(a, n)).collect();
    let chance = count_chance(a, f);
    let natives: Vec<Label> = (0..BIF_STUBS).map(|n| native(a, f, n)).collect();
    let shared = Shared::make(&mut m, leaf, helpers);
    let labels = Labels {
        enter,
        exit,
        leave: leave_by_x0,
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
        entered: Vec::new(),
        aligned: Vec::new(),
        shared,
    };
    let s = labels.addresses(base, |l| m.offset(l))?;
    let bytes = m.finish()?.place(base)?;
    Some((bytes, s))
}

/// The stub `leave`: all registers are stored, and X0's is the next instruction, or null. It drops
/// the machine's stack down to the entry.
///
/// Also returns the labels where the next instruction is in x0 instead, and where the stack has
/// been dropped and the result is in place.
fn leave(a: &mut Asm, f: &Fields) -> (Label, Label, Label) {
    a.align(16);
    let by_x0 = a.here_label();
    a.mov(arg(0), x(0));
    let leave = a.here_label();
    load(a, V, f.machine_base);
    a.mov_sp(SP, V);
    let out = a.here_label();
    for (k, (t, u)) in SAVED.into_iter().enumerate() {
        a.load_pair(Reg(t), Reg(u), SP, 16 * k as i64, Index::Offset);
    }
    for (k, (t, u)) in SAVED_FLOATS.into_iter().enumerate() {
        let at = 16 * (SAVED.len() + k) as i64;
        a.load_pair_d(Vec64(t), Vec64(u), SP, at, Index::Offset);
    }
    a.sum_i(X, Sum::Add, SP, SP, FRAME as u64);
    a.ret();
    (by_x0, leave, out)
}

/// The stub `exit`: A is the bytecode instruction to run, and nothing is stored. Bit 0 marks it.
fn exit(a: &mut Asm, f: &Fields, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.sum_i(X, Sum::Add, arg(0), r(A), 1);
    a.b(leave);
    l
}

/// The stub `function`: to the function whose code is at A. It sets no mark, since the function may
/// have machine code by now.
fn function(a: &mut Asm, f: &Fields, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.mov(arg(0), r(A));
    a.b(leave);
    l
}

/// The stub `yields`: A is where to resume, R the number of live X registers there.
fn yields(a: &mut Asm, f: &Fields, why: u8, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    store(a, f.interp_pc, r(A));
    store(a, f.interp_live, r(R));
    store8_i(a, f.interp_exit, why);
    a.mov_i(arg(0), 0);
    a.b(leave);
    l
}

/// The stub `waits`: as `yields`, of a process that waits for a message, where no X register is
/// live.
fn waits(a: &mut Asm, f: &Fields, why: u8, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    save_tops(a, f);
    store(a, f.interp_pc, r(A));
    store(a, f.interp_live, ZR);
    store8_i(a, f.interp_exit, why);
    a.mov_i(arg(0), 0);
    a.b(leave);
    l
}

/// The stub `enter(cx, code)`: a C function that returns the next instruction of bytecode, or null.
///
/// Also returns the label `base`, to which the outermost compiled function returns. The bytecode
/// address in its caller's frame may have machine code by the table of return points.
fn enter(a: &mut Asm, f: &Fields, out: Label) -> (Label, Label) {
    a.align(16);
    let l = a.here_label();
    a.sum_i(X, Sum::Sub, SP, SP, FRAME as u64);
    for (k, (t, u)) in SAVED.into_iter().enumerate() {
        a.store_pair(Reg(t), Reg(u), SP, 16 * k as i64, Index::Offset);
    }
    for (k, (t, u)) in SAVED_FLOATS.into_iter().enumerate() {
        let at = 16 * (SAVED.len() + k) as i64;
        a.store_pair_d(Vec64(t), Vec64(u), SP, at, Index::Offset);
    }
    // A frame for those who walk them.
    a.mov_sp(Reg(29), SP);
    a.mov(r(CX), arg(0));
    a.mov_i(SMALL_TAG, TAG4_MASK);
    a.mov(r(B), arg(1));
    a.mov_sp(V, SP);
    store(a, f.machine_base, V);
    load_tops(a, f);
    load_x(a);
    let go = a.label();
    a.bl(go);
    let base = a.here_label();
    a.load(Size::X, r(A), r(E), 0);
    a.store(Size::X, ZR, r(E), 0);
    let none = a.label();
    look_up(a, f, none);
    go_on(a, base);
    a.bind(go);
    a.store_indexed(LR, SP, -16, Index::Pre);
    a.br(r(B));
    a.bind(none);
    a.store(Size::X, x(0), r(CX), 0);
    save_tops(a, f);
    a.mov(arg(0), r(A));
    a.b(out);
    (l, base)
}

/// The stub `resume`: R is the next instruction, or null, and all registers are stored, as after a
/// helper. If there is machine code for it (at an exception handler) it continues there, and drops
/// the calls that machine code has made.
fn resume(a: &mut Asm, f: &Fields, base: Label, leave: Label) -> Label {
    a.align(16);
    let l = a.here_label();
    let stop = a.label();
    a.cbz(X, r(R), stop);
    a.mov_i(P, f.gc_wanted as u64);
    a.load_r(Size::B, V, r(CX), P, false);
    a.cbnz(W, V, stop);
    a.mov(r(A), r(R));
    look_up(a, f, stop);
    load(a, V, f.machine_base);
    a.mov_sp(SP, V);
    load_x(a);
    go_on(a, base);
    a.bind(stop);
    a.mov(arg(0), r(R));
    a.b(leave);
    l
}

/// Calls the C function at B with the context and the given further arguments. R becomes its
/// result. K keeps the return address.
fn call_c(a: &mut Asm, further: &[Reg]) {
    a.mov(arg(0), r(CX));
    for (k, &argument) in (1..).zip(further) {
        a.mov(arg(k), argument);
    }
    // C keeps it.
    a.mov(r(K), LR);
    a.blr(r(B));
    a.mov(r(R), arg(0));
    a.mov(LR, r(K));
}

/// The stub `helper`: B is a C function of the context, A, R and K. R becomes its result; all else
/// stays, or is loaded from the context.
fn helper(a: &mut Asm, f: &Fields) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    save_tops(a, f);
    call_c(a, &[r(A), r(R), r(K)]);
    load_tops(a, f);
    load_x(a);
    a.ret();
    l
}

/// The stub `leaf helper`: the same for a function that takes no words of the heap and never
/// collects.
fn leaf_helper(a: &mut Asm) -> Label {
    a.align(16);
    let l = a.here_label();
    save_x(a);
    call_c(a, &[r(A), r(R), r(K)]);
    load_x(a);
    a.ret();
    l
}

/// The stub `local`: the code of a function without machine code. It counts the call and exits to
/// the bytecode at R. Its first bytes are as long as those of a compiled function, since some
/// callers enter after them.
fn local(m: &mut A64, function: Label, yields: Label) -> Label {
    let out = m.label();
    m.align(16);
    let l = m.here_label();
    m.enter_function(out);
    let a = m.assembler();
    a.mov(r(A), r(R));
    a.b(function);
    a.bind(out);
    a.mov(r(A), r(R));
    a.load(Size::H, r(R), r(A), LEAD_ARITY.into());
    a.b(yields);
    l
}

/// The stub that calls funs with `n` arguments: A is the term of the fun, which is a local one with
/// that arity, B its code. It puts the environment after the arguments.
fn fun(a: &mut Asm, n: usize) -> Label {
    const { assert!(FUN_FREE_SHIFT == 8 && FUN_FREE_MASK == 0xFF) };
    let word = |n: usize| n as i64 * 8 - TAG_BOXED as i64;
    a.align(16);
    let l = a.here_label();
    let done = a.label();
    // Words of the environment. R is the entry of the code, which the stub `local` needs.
    let free = r(K);
    let count_at = word(FUN_BITS) + i64::from(FUN_FREE_SHIFT) / 8;
    a.load(Size::B, free, r(A), count_at);
    for k in n..X_REGS.len() {
        if k == n {
            a.cbz(W, free, done);
        } else {
            a.cmp_i(W, free, (k - n) as u64);
            a.b_cond(Cond::Eq, done);
        }
        a.load(Size::X, x(k), r(A), word(FUN_WORDS + k - n));
    }
    // Copies the rest from the last word to the first.
    let first = X_REGS.len().saturating_sub(n) as u64;
    let (from, to) = (arg(0), arg(1));
    a.sum_i(X, Sum::Add, from, r(A), (word(FUN_WORDS) - 8) as u64);
    match n {
        0 => a.sum_i(X, Sum::Sub, to, r(CX), 8),
        n => a.sum_i(X, Sum::Add, to, r(CX), (n as u64 - 1) * 8),
    }
    let more = a.here_label();
    a.cmp_i(W, free, first);
    a.b_cond(Cond::Eq, done);
    a.load_r(Size::X, V, from, free, true);
    a.store_r(Size::X, V, to, free, true);
    a.sum_i(X, Sum::Sub, free, free, 1);
    a.b(more);
    a.bind(done);
    a.br(r(B));
    l
}

/// The stub `chance` ([`chaos`](crate::chaos)): sets the flags to `Eq` if code is to exit.
fn count_chance(a: &mut Asm, f: &Fields) -> Label {
    a.align(16);
    let l = a.here_label();
    a.mov_i(V, NOTHING as u64);
    for n in [0, 2, 4] {
        a.store_pair(V, V, r(CX), n * 8, Index::Offset);
    }
    load(a, V, f.chaos);
    a.sum_i(X, Sum::Subs, V, V, 1);
    store(a, f.chaos, V);
    a.ret();
    l
}

/// The stub that calls natives with `n` arguments: as `helper`, but only the arguments are stored,
/// and only X0 is live afterwards.
fn native(a: &mut Asm, f: &Fields, n: usize) -> Label {
    a.align(16);
    let l = a.here_label();
    for k in 0..n {
        a.store(Size::X, x(k), r(CX), k as i64 * 8);
    }
    save_tops(a, f);
    call_c(a, &[r(A)]);
    load_tops(a, f);
    a.load(Size::X, x(0), r(CX), 0);
    a.ret();
    l
}
