//! The stubs for aarch64. Registers are those of [`machine`](crate::machine)'s implementation.
//!
//! A stub that returns is called with the return address in x30 and may not call anything else
//! before it has kept it. The machine's stack has 16 bytes for each return address.

use super::{Exits, Labels, NOTHING, Shared};
use crate::asm::Label;
use crate::asm::a64::Width::{W, X};
use crate::asm::a64::{Asm, Cond, Index, LR, Logic, Reg, SP, Shift, Size, Sum, Vec64, ZR};
use crate::machine::processors::A64;
use crate::machine::{A, B, CX, E, HP, K, Machine, R, REDS, X_REGS, a64_register as r};
use crate::{BIF_STUBS, FUN_STUBS, Fields, Helpers, Stubs};
use purlin_term::fun::LEAD_ARITY;
use purlin_term::layout::{FUN_BITS, FUN_FREE_MASK, FUN_FREE_SHIFT, FUN_WORDS};
use purlin_term::word::TAG_BOXED;

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
    a.shift_i(X, Shift::Lsr, n, r(A), 3);
    a.mov_i(V, i64::from(0x9E37_79B1_u32 as i32) as u64);
    a.mul(X, n, n, V);
    a.shift_i(X, Shift::Lsr, n, n, 12);
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

    // leave: all registers are stored, and X0's is the next instruction, or null. Drops the
    // machine's stack down to the entry.
    a.align(16);
    let leave_by_x0 = a.here_label();
    a.mov(arg(0), x(0));
    // The same with the next instruction in x0.
    let leave = a.here_label();
    load(a, V, f.machine_base);
    a.mov_sp(SP, V);
    // out: back to C. The stack is that of the entry.
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

    // exit: A is the bytecode instruction to run, and nothing is stored. Bit 0 marks it.
    a.align(16);
    let exit = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.sum_i(X, Sum::Add, arg(0), r(A), 1);
    a.b(leave);

    // function: to the function whose code is at A. The same without the mark, since it may have
    // machine code by now.
    a.align(16);
    let function = a.here_label();
    save_x(a);
    save_tops(a, f);
    a.mov(arg(0), r(A));
    a.b(leave);

    // yields: A is where to resume, R the number of live X registers there.
    a.align(16);
    let yields = a.here_label();
    save_x(a);
    save_tops(a, f);
    store(a, f.interp_pc, r(A));
    store(a, f.interp_live, r(R));
    store8_i(a, f.interp_exit, exits.yields);
    a.mov_i(arg(0), 0);
    a.b(leave);

    // waits: the same of a process that waits for a message, where no X register is live.
    a.align(16);
    let waits = a.here_label();
    save_tops(a, f);
    store(a, f.interp_pc, r(A));
    store(a, f.interp_live, ZR);
    store8_i(a, f.interp_exit, exits.waits);
    a.mov_i(arg(0), 0);
    a.b(leave);

    // enter(cx, code): a C function. Gives the next instruction of bytecode, or null.
    a.align(16);
    let enter = a.here_label();
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
    a.mov(r(B), arg(1));
    a.mov_sp(V, SP);
    store(a, f.machine_base, V);
    load_tops(a, f);
    load_x(a);
    let go = a.label();
    a.bl(go);
    // base: the outermost compiled function has returned, to the bytecode address in its caller's
    // frame. The table of return points may have machine code for it.
    let base_at = a.here_label();
    a.load(Size::X, r(A), r(E), 0);
    a.store(Size::X, ZR, r(E), 0);
    let none = a.label();
    look_up(a, f, none);
    go_on(a, base_at);
    a.bind(go);
    a.store_indexed(LR, SP, -16, Index::Pre);
    a.br(r(B));
    a.bind(none);
    a.store(Size::X, x(0), r(CX), 0);
    save_tops(a, f);
    a.mov(arg(0), r(A));
    a.b(out);

    // resume: R is the next instruction, or null, and all registers are stored, as after a helper.
    // If there is machine code for it (at an exception handler) it goes on there, and drops the
    // calls that machine code has made.
    a.align(16);
    let resume = a.here_label();
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
    go_on(a, base_at);
    a.bind(stop);
    a.mov(arg(0), r(R));
    a.b(leave);

    // helper: B is a C function of the context, A, R and K. R becomes its result; all else stays,
    // or is loaded from the context.
    let call = |a: &mut Asm| {
        a.mov(arg(0), r(CX));
        a.mov(arg(1), r(A));
        a.mov(arg(2), r(R));
        a.mov(arg(3), r(K));
        // C keeps it.
        a.mov(r(K), LR);
        a.blr(r(B));
        a.mov(r(R), arg(0));
        a.mov(LR, r(K));
    };
    a.align(16);
    let helper = a.here_label();
    save_x(a);
    save_tops(a, f);
    call(a);
    load_tops(a, f);
    load_x(a);
    a.ret();

    // leaf helper: the same for a function that takes no words of the heap and never collects.
    a.align(16);
    let leaf = a.here_label();
    save_x(a);
    call(a);
    load_x(a);
    a.ret();

    // local: the code of a function without machine code. It counts the call and exits to the
    // bytecode at R. Its first bytes are as long as those of a compiled function, since some
    // callers enter after them.
    let out_local = m.label();
    m.align(16);
    let local = m.here_label();
    m.enter_function(out_local);
    let a = m.assembler();
    a.mov(r(A), r(R));
    a.b(function);
    a.bind(out_local);
    a.mov(r(A), r(R));
    a.load(Size::H, r(R), r(A), LEAD_ARITY.into());
    a.b(yields);

    // Calls of funs, by number of arguments: A is the term of the fun, which is a local one with
    // that arity, B its code. Puts its environment after the arguments.
    const { assert!(FUN_FREE_SHIFT == 8 && FUN_FREE_MASK == 0xFF) };
    let word = |n: usize| n as i64 * 8 - TAG_BOXED as i64;
    let mut funs = Vec::new();
    for n in 0..FUN_STUBS {
        a.align(16);
        funs.push(a.here_label());
        let done = a.label();
        // Words of the environment. R is the entry of the code, which the stub `local` needs.
        let free = r(K);
        a.load(
            Size::B,
            free,
            r(A),
            word(FUN_BITS) + i64::from(FUN_FREE_SHIFT) / 8,
        );
        for k in n..X_REGS.len() {
            a.cmp_i(W, free, (k - n) as u64);
            a.b_cond(Cond::Eq, done);
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
    }

    // chance ([`chaos`](crate::chaos)): sets the flags to `Eq` if code is to exit.
    a.align(16);
    let chance = a.here_label();
    a.mov_i(V, NOTHING as u64);
    for n in [0, 2, 4] {
        a.store_pair(V, V, r(CX), n * 8, Index::Offset);
    }
    load(a, V, f.chaos);
    a.sum_i(X, Sum::Subs, V, V, 1);
    store(a, f.chaos, V);
    a.ret();

    // Natives, by number of arguments: as helper, but only the arguments are stored, and only X0 is
    // live afterwards.
    let mut natives = Vec::new();
    for n in 0..BIF_STUBS {
        a.align(16);
        natives.push(a.here_label());
        for k in 0..n {
            a.store(Size::X, x(k), r(CX), k as i64 * 8);
        }
        save_tops(a, f);
        a.mov(arg(0), r(CX));
        a.mov(arg(1), r(A));
        a.mov(r(K), LR);
        a.blr(r(B));
        a.mov(r(R), arg(0));
        a.mov(LR, r(K));
        load_tops(a, f);
        a.load(Size::X, x(0), r(CX), 0);
        a.ret();
    }

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
        shared,
    };
    let s = labels.addresses(base, |l| m.offset(l))?;
    let bytes = m.finish()?.place(base)?;
    Some((bytes, s))
}
