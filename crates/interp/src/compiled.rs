//! Entry to and exit from machine code, and the helpers that it calls.
//!
//! A function that has machine code has `enter_compiled` at its entry. When the interpreter gets
//! there it continues in machine code, until that exits with the next instruction, or with the
//! reason why the process stops.
//!
//! The helpers that machine code calls, and the fields of a context that it touches, are rows
//! (`purlin_isa::helpers`, `purlin_isa::context`). This file has a function for each helper and the
//! offset of each field.
//!
//! # Orderings
//! `ENTER` is stored before the first function gets machine code, and does not change. Threads get
//! to `enter_compiled` only by a word that `entries.rs` stores with release after that, so the load
//! may be relaxed.

use super::arith::{EFFORTS, operation};
use super::handler::{Flavour, again, go, op};
use super::{Exit, STEP};
use crate::code::entries::leads_to;
use crate::code::sampling::count_exit;
use crate::code::{self, returns};
use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;
use purlin_isa::helpers::{Arith, ResultRegister, Room};
use purlin_isa::ops::Op;
use purlin_jit::stubs::{Exits, INNER, Targets};
use purlin_jit::{Fields, Helpers, Mail};
use purlin_kernel::message::mailbox::places;
use purlin_kernel::process::Process;
use purlin_term::{Term, am, compare, fun, map, pressure};
use std::cmp::Ordering as Order;
use std::mem::offset_of;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of the stub that enters machine code.
static ENTER: AtomicUsize = AtomicUsize::new(0);

/// Sets the address of the stub that enters machine code.
pub fn set_enter(address: u64) {
    ENTER.store(address as usize, Ordering::Release);
}

macro_rules! offsets {
    ($( $name:ident = $($path:ident).+ $doc:literal; )*) => {
        /// Offsets of the fields that machine code reads and writes.
        pub const FIELDS: Fields = Fields { $($name: offset_of!(Cx, $($path).+) as i32),* };
    };
}
purlin_isa::for_each_field!(offsets);
// Operands of instructions name X registers by their distance from the context itself.
const _: () = assert!(offset_of!(Cx, x) == 0);

/// Where messages are.
pub const MAIL: Mail = places(offset_of!(Process, mailbox), offset_of!(Process, id));

/// The bytes that stand for why code stops to run.
pub const EXITS: Exits = Exits {
    yields: Exit::Yield as u8,
    waits: Exit::Wait as u8,
};

/// Offsets in exports and fun entries.
pub const TARGETS: Targets = Targets {
    export_address: fun::Export::ADDRESS as i32,
    fun_address: fun::FunEntry::ADDRESS as i32,
};

/// Returns the step of each variant: it runs the instruction, and returns the next one.
pub fn steps() -> Vec<u64> {
    STEP.iter().map(|&s| s as *const () as u64).collect()
}

/// The Rust types of the kinds in the rows of helpers.
mod kind {
    pub type Pc = *const u64;
    pub type Term = purlin_term::Term;
    pub type Number = u64;
    pub type Truth = bool;
    pub type Nothing = ();
}

macro_rules! addresses {
    ($( $name:ident($($p:ident: $k:ident),*) -> $r:ident [$($fx:ident)*] $doc:literal; )*) => {
        /// Returns the helpers with their names, for printing machine code.
        pub fn named_helpers(h: &Helpers) -> Vec<(u64, &'static str)> {
            vec![$((h.$name.0, stringify!($name))),*]
        }
        /// Returns the addresses of the helpers.
        pub fn helpers() -> Helpers {
            Helpers { $($name: {
                let f: unsafe extern "C" fn(*mut Cx $(, kind::$k)*) -> kind::$r = helper::$name;
                (f as *const () as u64).into()
            }),* }
        }
    };
}
purlin_isa::for_each_helper!(addresses);

op!(
/// Runs the machine code of the function that starts here.
fn op_enter_compiled(cx, pc, e, hp, reds) {
    let code = leads_to(pc);
    // The machine code was just taken back, or is not for this process, or a collection is due, for
    // which machine code doesn't check.
    if !(*cx).compiled || code == fun::uncompiled() || (*cx).heap.gc_wanted {
        return again::<F>(cx, pc, e, hp, reds);
    }
    enter::<F>(cx, u64::from(code + INNER), e, hp, reds)
});

/// Runs the machine code at `at`, and continues where that leaves.
///
/// # Safety
/// It continues with the instruction that the process is about to run. `cx`, `e`, `hp` and `reds`
/// are as before that instruction; no collection is due.
#[inline(always)]
unsafe fn enter<F: Flavour>(
    cx: *mut Cx,
    at: u64,
    e: *mut Term,
    hp: *mut Term,
    reds: i64,
) -> F::Out {
    (*cx).heap.htop = hp;
    (*cx).heap.stop = e;
    (*cx).reds = reds;
    let enter: extern "C" fn(*mut Cx, u64) -> u64 =
        std::mem::transmute(ENTER.load(Ordering::Relaxed));
    let next = enter(cx, at);
    if next == 0 {
        return F::leave(cx, (*cx).interp.exit);
    }
    let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    let to = (next & !1) as *const u64;
    // The instruction itself, even if it is at an entry.
    if next & 1 != 0 {
        return again::<F>(cx, to, e, hp, reds);
    }
    count_exit(cx, to);
    go!(cx, to, e, hp, reds)
}

/// Goes on at `pc`, where the time slice of a process begins: within a receive in machine code, if
/// there is some.
///
/// # Safety
/// As for the handler of the instruction at `pc`.
#[inline(always)]
pub(crate) unsafe fn begin<F: Flavour>(cx: *mut Cx, pc: *const u64) -> F::Out {
    let (e, hp, reds) = ((*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    // All other instructions that a slice begins with have an entry, or are met seldom.
    if code::fetch(pc) == LOOP_REC
        && (*cx).compiled
        && !(*cx).heap.gc_wanted
        && let Some(at) = returns::find((*cx).returns, pc as u64)
    {
        return enter::<F>(cx, at, e, hp, reds);
    }
    go!(cx, pc, e, hp, reds)
}
const LOOP_REC: u16 = Op::LoopRec.only_variant();

/// The helpers, in the order of their rows (`purlin_isa::helpers`).
///
/// # Safety
/// `cx` must be the context of this thread, valid for the instruction that calls the helper: see
/// the contract of handlers in the head of this crate and the contract of a call in the head of the
/// rows. The arguments must be those that the row names.
mod helper {
    use super::*;
    use crate::messages::SEND_REDUCTIONS;
    use crate::room::collect;
    use crate::signal::receive;
    use crate::signal::send::deliver_small;
    use purlin_term::layout::{FUN_BITS, FunWords, Target};

    pub(super) unsafe extern "C" fn room(cx: *mut Cx, pc: *const u64, what: u64) {
        (*cx).bif_pc = pc;
        let Room { words, live } = Room::unpack(what);
        collect(cx, words as usize, live as usize);
    }
    /// # Safety
    /// As for the module; `what` must be a packed [`Arith`] of an operation on integers, with the
    /// number of X registers that hold terms.
    pub(super) unsafe extern "C" fn arith(cx: *mut Cx, a: Term, b: Term, what: u64) -> Term {
        let what = Arith::unpack(what);
        let (n, live) = (what.number as usize, what.live as usize);
        // The interpreter does these.
        let refused = || pressure::is_limited() && pressure::refuses(EFFORTS[n].bytes(a, b));
        if what.in_body && (EFFORTS[n].is_long(a, b) || refused()) {
            return Term::NON_VALUE;
        }
        let h = &mut (*cx).heap;
        let Ok(t) = operation(n, h, a, b) else {
            return Term::NON_VALUE;
        };
        (*cx).reds -= EFFORTS[n].reductions(a, b, t) as i64;
        if !(*cx).heap.gc_wanted || live == purlin_isa::ops::NO_LIVE {
            return t;
        }
        // The destination register is written first, as in the interpreter. It may be one of the
        // roots, and its old value no longer is. If the result goes elsewhere it is kept in a
        // register after the live ones.
        let at = match what.result {
            ResultRegister::Y(y) => {
                // Slot 0 of a frame is the return address.
                let slot = y as usize + 1;
                (*cx).heap.stop.add(slot).write(t);
                (*cx).collect(0, live, Also::NONE, Sweep::Due);
                return (*cx).heap.stop.add(slot).read();
            }
            ResultRegister::X(x) if (x as usize) < live => x as usize,
            ResultRegister::X(_) => live,
        };
        (*cx).x[at] = t;
        (*cx).collect(0, live, Also::dst(at as u16 * 8), Sweep::Due);
        (*cx).x[at]
    }

    /// # Safety
    /// `a` and `b` must be terms of the process.
    pub(super) unsafe extern "C" fn less(_: *mut Cx, a: Term, b: Term) -> bool {
        compare::cmp(a, b) == Order::Less
    }
    /// # Safety
    /// `a` and `b` must be terms of the process.
    pub(super) unsafe extern "C" fn equal(_: *mut Cx, a: Term, b: Term) -> bool {
        compare::eq(a, b)
    }
    /// # Safety
    /// `a` and `b` must be terms of the process.
    pub(super) unsafe extern "C" fn same(_: *mut Cx, a: Term, b: Term) -> bool {
        compare::eq_exact(a, b)
    }
    /// # Safety
    /// `m` and `key` must be terms of the process.
    pub(super) unsafe extern "C" fn map_get(_: *mut Cx, m: Term, key: Term) -> Term {
        match m.is_map() {
            true => map::get(m, key).unwrap_or(Term::NON_VALUE),
            false => Term::NON_VALUE,
        }
    }
    /// As the native does it.
    ///
    /// # Safety
    /// As for the module; `key` must be a term of the process.
    pub(super) unsafe extern "C" fn dictionary_value(cx: *mut Cx, key: Term) -> Term {
        (*cx).process().dictionary_value(key)
    }
    /// Returns where `apply` leads to.
    ///
    /// # Safety
    /// As for the module; the two X registers after `arity` arguments must hold terms.
    pub(super) unsafe extern "C" fn callee(cx: *mut Cx, arity: u64) -> *const u64 {
        let n = arity as usize;
        let (m, f) = ((&(*cx).x)[n], (&(*cx).x)[n + 1]);
        match m.is_atom() && f.is_atom() && m != am::ERLANG {
            // `erlang:apply/3` is unfolded, and natives that always raise do so where they are
            // called.
            true => crate::code::export(m, f, n as u32).address(),
            false => std::ptr::null(),
        }
    }
    /// Makes a fun, as the instruction does.
    ///
    /// # Safety
    /// `place` must have room for the words of a fun, with the free variables after its head;
    /// `entry` must be a fun entry.
    pub(super) unsafe extern "C" fn make_fun(cx: *mut Cx, place: u64, entry: u64) {
        let (p, entry) = (place as *mut Term, entry as *const fun::FunEntry);
        let free = (*p.add(FUN_BITS)).raw() as u8;
        let pid = (*cx).self_pid();
        FunWords::write(p, Target::Entry(entry), (*entry).arity, free, pid);
        (*entry).retain();
        (*cx).heap.off_heap.link(p);
    }
    /// Returns the next UTF-8 character; no value if there is none.
    ///
    /// # Safety
    /// As for all helpers: called by machine code of the process in the context, with its terms.
    pub(super) unsafe extern "C" fn utf8(_: *mut Cx, context: Term) -> Term {
        crate::bits::next_utf8(context).unwrap_or(Term::NON_VALUE)
    }
    /// See `bits_build::put_character`.
    ///
    /// # Safety
    /// There must be room for four bytes at `to`.
    pub(super) unsafe extern "C" fn put_utf8(_: *mut Cx, to: u64, c: Term) -> u64 {
        crate::bits_build::put_character(to as *mut u8, c) as u64
    }
    /// As the instruction does it.
    ///
    /// # Safety
    /// As the module says; x0 and x1 hold terms.
    pub(super) unsafe extern "C" fn send(cx: *mut Cx, pc: *const u64) -> bool {
        let cx = &mut *cx;
        // What the instruction does afterwards is left to it.
        if cx.heap.gc_wanted {
            return false;
        }
        cx.bif_pc = pc;
        let (to, msg) = (cx.x[0], cx.x[1]);
        // As the instruction counts them.
        cx.reds -= SEND_REDUCTIONS;
        if !deliver_small(cx, to, msg) {
            cx.reds += SEND_REDUCTIONS;
            return false;
        }
        cx.x[0] = msg;
        true
    }
    /// As the instruction does it.
    ///
    /// # Safety
    /// As the module says.
    pub(super) unsafe extern "C" fn remove_message(cx: *mut Cx) -> bool {
        receive::remove_copied(&mut *cx)
    }
    /// See `bits_build::put_bytes`.
    ///
    /// # Safety
    /// There must be room from `to` to `limit`.
    pub(super) unsafe extern "C" fn put_bytes(_: *mut Cx, to: u64, t: Term, limit: u64) -> u64 {
        crate::bits_build::put_bytes(to as *mut u8, t, limit as *mut u8) as u64
    }
}
