//! The interpreter.
//!
//! A handler runs one instruction and ends by calling the next instruction's handler in tail position, which an
//! optimised build compiles to a jump. Program counter, stack top, heap top and reductions are arguments, so they stay
//! in machine registers. Builds with debug assertions return to a loop after every instruction instead.
//!
//! # Invariants
//! * No handler lets the address of a local escape: anything that would is in a function of its own that is not
//!   inlined. Otherwise the tail call is no jump, and the native stack grows.
//! * `heap.htop`, `heap.stop` and `reds` in [`Cx`] are stale while handlers run. A slow op stores them, runs on the
//!   context, and loads them again.
//! * A frame starts with the slot that holds where calls made from it return to: an address while such a call is
//!   under way, else 0. Returning clears the slot, so every address on the stack is one that will be returned to.
//! * What an op may collect is stated by its `live`; natives only make fragments, see `purlin_term::heap`.
#![allow(clippy::missing_safety_doc)]

pub mod bits;
mod bits_build;
mod call;
pub mod exc;
mod fast;
mod instr;
mod lines;
mod maps;
mod misc;
pub mod operands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod perf;
mod records;
mod shortcuts;
pub mod start;
mod traced;

use crate::collect::{Also, Collect, Sweep};
pub use crate::cx::{Exit, State};
use cx::Cx;
use purlin_kernel::{code, collect, cx, events, process, signal, threads};
use purlin_native::{bif, lazy_atoms};
use purlin_term::Term;

/// Runs an instruction and those that follow.
pub(crate) type Handler =
    unsafe fn(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit;

/// Goes on with the instruction at `$pc`: the last thing a handler does.
macro_rules! go {
    ($cx:expr, $pc:expr, $e:expr, $hp:expr, $reds:expr) => {{
        #[cfg(not(debug_assertions))]
        {
            let pc: *const u64 = $pc;
            let h = *$crate::HANDLERS.get_unchecked($crate::code::fetch(pc) as usize);
            return h($cx, pc, $e, $hp, $reds);
        }
        #[cfg(debug_assertions)]
        {
            (*$cx).interp.next = ($pc, $e, $hp, $reds);
            return $crate::Exit::Next;
        }
    }};
}
pub(crate) use go;

/// A handler that stores the registers, runs `$f(&mut Cx, pc) -> next pc` (null: leave with `interp.exit`), and goes on.
macro_rules! slow_op {
    ($($name:ident => $f:path;)*) => {$(
        // Not within a quick op that leaves the general case to it: see `fast`.
        #[inline(never)]
        pub unsafe fn $name(cx: *mut $crate::cx::Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> $crate::Exit {
            (*cx).heap.htop = hp;
            (*cx).heap.stop = e;
            (*cx).reds = reds;
            // For the accounts, if it collects.
            (*cx).bif_pc = pc;
            let pc = $crate::outlined(&mut *cx, pc, |cx, pc| $f(cx, pc));
            if pc.is_null() {
                return (*cx).interp.exit;
            }
            $crate::go!(cx, pc, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
        }
    )*};
}
pub(crate) use slow_op;

/// Calls `f`, never within the frame of the caller: a handler whose frame holds locals that somebody has the address of
/// could not end in a jump to the next handler, and each instruction would take native stack.
#[inline(never)]
pub(crate) fn outlined(
    cx: &mut Cx,
    pc: *const u64,
    f: impl FnOnce(&mut Cx, *const u64) -> *const u64,
) -> *const u64 {
    f(cx, pc)
}

mod table {
    #[allow(unused_imports)]
    use super::operands::{C, X, Y};
    use super::{
        bits::*, bits_build::*, call::*, fast::*, lines::*, maps::*, misc::*, records::*,
        shortcuts::*, start::*, traced::*,
    };
    pub(crate) static HANDLERS: &[super::Handler] =
        include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
}
pub(crate) use table::HANDLERS;

/// Runs the process in the context from `entry` on, until it yields, waits or ends.
///
/// # Safety
/// `cx.heap` is the heap of a process whose stack is in order for the code at `entry`, and the registers which that
/// code reads hold terms of this process.
pub unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
    let cx: *mut Cx = cx;
    #[cfg(not(debug_assertions))]
    {
        let h = HANDLERS[code::fetch(entry) as usize];
        h(cx, entry, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
    }
    #[cfg(debug_assertions)]
    {
        let mut exit = Exit::Next;
        (*cx).interp.next = (entry, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
        while exit == Exit::Next {
            let (pc, e, hp, reds) = (*cx).interp.next;
            let number = code::fetch(pc);
            let collections = (*cx).heap.collections;
            purlin_native::coverage::op(number);
            (*cx).interp.raised = false;
            exit = HANDLERS[number as usize](cx, pc, e, hp, reds);
            check_effects(&*cx, number, collections, exit);
        }
        exit
    }
}

/// Whether an instruction has done what its row says it may do, and nothing else.
#[cfg(debug_assertions)]
fn check_effects(cx: &Cx, number: u16, collections: u32, exit: Exit) {
    let Some((row, _)) = purlin_isa::ops::lookup(number) else {
        return;
    };
    let may = row.effects;
    let collected = cx.heap.collections != collections;
    let raised = cx.interp.raised;
    assert!(may.collects || !collected, "{} collected", row.name);
    assert!(may.fails || !raised, "{} raised", row.name);
    assert!(
        may.yields || raised || exit == Exit::Next,
        "{} left with {exit:?}",
        row.name
    );
}

/// The export of the native that the instruction at `pc` calls, if it calls one.
///
/// # Safety
/// There is an instruction.
pub unsafe fn called_native(pc: *const u64) -> Option<&'static purlin_term::fun::Export> {
    let (row, _) = purlin_isa::ops::lookup(code::opcode_at(pc))?;
    let calls = matches!(
        row.name,
        "call_bif" | "call_bif_last" | "call_bif_only" | "call_dirty"
    );
    calls.then(|| instr::CallBif::at(pc).export())
}

/// Collects with the first `live` X registers as roots.
///
/// # Safety
/// As for [`Cx::collect`].
pub(crate) unsafe fn collect(cx: *mut Cx, need: usize, live: usize) {
    (*cx).collect(need, live, Also::NONE, Sweep::Due);
}

/// Collects if what natives or an op made asks for it, with `also` as one root more.
///
/// # Safety
/// As for [`Cx::collect`], unless `live` is [`NO_LIVE`]: then nothing is collected here.
///
/// [`NO_LIVE`]: purlin_loader::lower::NO_LIVE
#[inline(always)]
pub(crate) unsafe fn collect_after(cx: *mut Cx, live: usize, also: Also) {
    if (*cx).heap.gc_wanted {
        collect_with(cx, 0, live, also);
    }
}

/// As [`collect_after`], and also if fewer than `need` words are free, as the op promises them to those that follow.
#[inline(always)]
pub(crate) unsafe fn collect_for(cx: *mut Cx, need: usize, live: usize, also: Also) {
    if (*cx).heap.gc_wanted || (*cx).heap.free_words() < need {
        collect_with(cx, need, live, also);
    }
}

#[cold]
#[inline(never)]
unsafe fn collect_with(cx: *mut Cx, need: usize, live: usize, also: Also) {
    if live != purlin_loader::lower::NO_LIVE as usize {
        (*cx).collect(need, live, also, Sweep::Due);
    }
}

/// The interpreter, as schedulers know it.
pub struct Interpreter;

impl crate::threads::Engine for Interpreter {
    #[inline(always)]
    unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if code::perf::on() {
            return perf::run_marked(cx, entry);
        }
        run(cx, entry)
    }
}
