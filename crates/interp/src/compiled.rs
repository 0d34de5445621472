//! Where machine code is entered and left, and the functions that it calls.
//!
//! A function that has machine code has `enter_compiled` at its entry. Code of the interpreter that comes there goes on in
//! machine code, until that leaves: with the next instruction, or with why the process leaves.
//!
//! # The contract of helpers
//! * They follow the C calling convention of the system, which is System V's wherever there is machine code.
//! * They are called with all registers stored in the context, and may change them. They don't unwind: a panic ends the
//!   program.
//! * A pure helper is told no registers but X0 to X5, makes nothing and collects nothing.

use super::handler::{again, go, op};
use super::room::collect;
use super::{Exit, STEP};
use crate::call::EFFORTS;
use crate::code::compiled::lead;
use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;
use purlin_jit::stubs::{Exits, INNER, Targets};
use purlin_jit::{Fields, Helpers};
use purlin_term::heap::Heap;
use purlin_term::{Term, arith, compare, fun, map};
use std::cmp::Ordering as Order;
use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of the stub that enters machine code.
static ENTER: AtomicUsize = AtomicUsize::new(0);

/// Says where the stub is that enters machine code.
pub fn set_enter(address: u64) {
    ENTER.store(address as usize, Ordering::Release);
}

/// Places of what machine code reads and writes in the context.
pub const FIELDS: Fields = Fields {
    fr: offset_of!(Cx, fr) as i32,
    htop: (offset_of!(Cx, heap) + offset_of!(Heap, htop)) as i32,
    stop: (offset_of!(Cx, heap) + offset_of!(Heap, stop)) as i32,
    gc_wanted: (offset_of!(Cx, heap) + offset_of!(Heap, gc_wanted)) as i32,
    reds: offset_of!(Cx, reds) as i32,
    bif_pc: offset_of!(Cx, bif_pc) as i32,
    interp_pc: (offset_of!(Cx, interp) + offset_of!(crate::cx::State, pc)) as i32,
    interp_live: (offset_of!(Cx, interp) + offset_of!(crate::cx::State, live)) as i32,
    interp_exit: (offset_of!(Cx, interp) + offset_of!(crate::cx::State, exit)) as i32,
    machine_base: offset_of!(Cx, machine_base) as i32,
    returns: offset_of!(Cx, returns) as i32,
};

/// The bytes that stand for why code stops to run.
pub const EXITS: Exits = Exits {
    yields: Exit::Yield as u8,
};

/// Places in exports and fun entries.
pub const TARGETS: Targets = Targets {
    export_address: fun::Export::ADDRESS as i32,
    fun_address: fun::FunEntry::ADDRESS as i32,
};

/// A step of each variant: runs the instruction, and gives the next one.
pub fn steps() -> Vec<u64> {
    STEP.iter().map(|&s| s as *const () as u64).collect()
}

/// Addresses of the helpers.
pub fn helpers() -> Helpers {
    Helpers {
        room: room as *const () as u64,
        arith: arithmetic as *const () as u64,
        less: less as *const () as u64,
        equal: equal as *const () as u64,
        same: same as *const () as u64,
        map_get: map_get as *const () as u64,
        call_bif: 0,
    }
}

op!(
/// The machine code of the function that starts here runs.
fn op_enter_compiled(cx, pc, e, hp, reds) {
    let code = lead(pc).load(Ordering::Acquire);
    // Taken back just now, or not for this process; or a collection is wanted, which machine code doesn't look for.
    if !(*cx).compiled || code == fun::uncompiled() || (*cx).heap.gc_wanted {
        return again::<F>(cx, pc, e, hp, reds);
    }
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    let enter: extern "C" fn(*mut Cx, u64) -> u64 =
        std::mem::transmute(ENTER.load(Ordering::Relaxed));
    let next = enter(cx, u64::from(code + INNER));
    if next == 0 {
        return F::leave(cx, (*cx).interp.exit);
    }
    let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    let to = (next & !1) as *const u64;
    // The instruction itself, even where it stands at an entry.
    if next & 1 != 0 {
        return again::<F>(cx, to, e, hp, reds);
    }
    go!(cx, to, e, hp, reds)
});

unsafe extern "C" fn room(cx: *mut Cx, pc: *const u64, what: u64) -> u64 {
    (*cx).bif_pc = pc;
    collect(cx, what as u32 as usize, (what >> 32) as usize);
    0
}

unsafe extern "C" fn arithmetic(cx: *mut Cx, a: Term, b: Term, what: u64) -> Term {
    let (n, live) = ((what & 0xFF) as usize, (what >> 8) as usize);
    let h = &mut (*cx).heap;
    let r = match n {
        0 => arith::add(h, a, b),
        1 => arith::sub(h, a, b),
        2 => arith::mul(h, a, b),
        3 => arith::int_div(h, a, b),
        4 => arith::int_rem(h, a, b),
        5 => arith::band(h, a, b),
        6 => arith::bor(h, a, b),
        7 => arith::bxor(h, a, b),
        8 => arith::bsl(h, a, b),
        _ => arith::bsr(h, a, b),
    };
    let Ok(t) = r else { return Term::NON_VALUE };
    (*cx).reds -= EFFORTS[n].reductions(a, b, t) as i64;
    if !(*cx).heap.gc_wanted || live == purlin_isa::ops::NO_LIVE {
        return t;
    }
    // Kept as a register behind those that are live.
    (*cx).x[live] = t;
    (*cx).collect(0, live, Also::dst(live as u16 * 8), Sweep::Due);
    (*cx).x[live]
}

unsafe extern "C" fn less(_: *mut Cx, a: Term, b: Term) -> bool {
    compare::cmp(a, b) == Order::Less
}
unsafe extern "C" fn equal(_: *mut Cx, a: Term, b: Term) -> bool {
    compare::eq(a, b)
}
unsafe extern "C" fn same(_: *mut Cx, a: Term, b: Term) -> bool {
    compare::eq_exact(a, b)
}
unsafe extern "C" fn map_get(_: *mut Cx, m: Term, key: Term) -> Term {
    match m.is_map() {
        true => map::get(m, key).unwrap_or(Term::NON_VALUE),
        false => Term::NON_VALUE,
    }
}
