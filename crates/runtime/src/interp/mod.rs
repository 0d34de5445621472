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
//!
//! # What the receive ops call in `crate::signal`
//! ```text
//! has_current(cx: &mut Cx) -> bool             whether there is a message, fetching from outside if need be
//! loop_rec(cx: &mut Cx) -> Option<Term>        the current message, likewise; it may collect, with no register live
//! loop_rec_end(cx)  remove_message(cx)  timeout(cx)
//! send(cx, to: Term, msg: Term) -> BifResult
//! recv_marker_reserve(cx) -> Term   recv_marker_bind(cx, marker, reference)
//! recv_marker_clear(cx, reference)  recv_marker_use(cx, reference)
//! ```
//! They are reached through [`Receive`], which whoever runs processes sets once.
#![allow(clippy::missing_safety_doc)]

pub(crate) mod bits;
mod bits_build;
mod call;
pub mod exc;
mod fast;
mod misc;
pub mod operands;
mod shortcuts;
pub mod start;
mod traced;

use crate::cx::{BifResult, Cx};
use crate::process::collect::{Also, Sweep};
use purlin_term::Term;
use std::sync::OnceLock;

/// Why [`run`] came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    /// Go on with the next instruction (only between handlers and the loop of debug builds).
    Next,
    /// The time slice is over. Resume at `interp.pc` with `interp.live` registers.
    Yield,
    /// Wait for a signal, then resume at `interp.pc`.
    Wait,
    /// As `Wait`, but for at most `interp.timeout` milliseconds; then resume at `interp.timeout_pc`.
    WaitTimeout,
    /// The process has ended; the reason is `interp.reason`.
    Exited,
    /// Go on at `interp.pc` with `interp.live` registers, on a thread of the dirty I/O pool, where `cx.dirty` is set:
    /// a native is called there. Then comes [`Exit::Yield`], and the process is a normal scheduler's again.
    DirtyIo,
    /// As `DirtyIo`, for the dirty CPU pool.
    DirtyCpu,
}

/// The interpreter's part of a context.
pub struct State {
    /// Where to resume.
    pub pc: *const u64,
    /// X registers that hold terms there.
    pub live: usize,
    /// Milliseconds to wait, where [`Exit::WaitTimeout`] says so.
    pub timeout: u64,
    /// Where to go on when the time has passed.
    pub timeout_pc: *const u64,
    /// Exit reason of a process that ended by an exception or normally.
    pub reason: Term,
    /// The process ended by an error or throw that nobody caught, which is to be reported.
    pub crashed: bool,
    /// What a slow op that gives no next instruction returns.
    exit: Exit,
    /// A bit string under construction by ops of OTP 24 and before: address, next bit, end.
    build: (*mut u8, usize, usize),
    #[cfg(debug_assertions)]
    next: (*const u64, *mut Term, *mut Term, i64),
}

impl State {
    pub fn new() -> State {
        State {
            pc: std::ptr::null(),
            live: 0,
            timeout: 0,
            timeout_pc: std::ptr::null(),
            reason: purlin_term::am::NORMAL,
            crashed: false,
            exit: Exit::Exited,
            build: (std::ptr::null_mut(), 0, 0),
            #[cfg(debug_assertions)]
            next: (
                std::ptr::null(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                0,
            ),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// What the receive ops need of whoever runs processes.
pub struct Receive {
    pub has_current: fn(&mut Cx) -> bool,
    pub loop_rec: fn(&mut Cx) -> Option<Term>,
    pub loop_rec_end: fn(&mut Cx),
    pub remove_message: fn(&mut Cx),
    pub timeout: fn(&mut Cx),
    pub restart: fn(&mut Cx),
    pub send: fn(&mut Cx, Term, Term) -> BifResult,
    pub marker_reserve: fn(&mut Cx) -> Term,
    pub marker_bind: fn(&mut Cx, Term, Term),
    pub marker_clear: fn(&mut Cx, Term),
    pub marker_use: fn(&mut Cx, Term),
}

/// Set once before processes run.
pub static RECEIVE: OnceLock<Receive> = OnceLock::new();

/// Runs an instruction and those that follow.
pub type Handler =
    unsafe fn(cx: *mut Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> Exit;

/// Goes on with the instruction at `$pc`: the last thing a handler does.
macro_rules! go {
    ($cx:expr, $pc:expr, $e:expr, $hp:expr, $reds:expr) => {{
        #[cfg(not(debug_assertions))]
        {
            let pc: *const u64 = $pc;
            let h = *$crate::interp::HANDLERS.get_unchecked(*(pc as *const u16) as usize);
            return h($cx, pc, $e, $hp, $reds);
        }
        #[cfg(debug_assertions)]
        {
            (*$cx).interp.next = ($pc, $e, $hp, $reds);
            return $crate::interp::Exit::Next;
        }
    }};
}
pub(crate) use go;

/// A handler that stores the registers, runs `$f(&mut Cx, pc) -> next pc` (null: leave with `interp.exit`), and goes on.
macro_rules! slow_op {
    ($($name:ident => $f:path;)*) => {$(
        pub unsafe fn $name(cx: *mut $crate::cx::Cx, pc: *const u64, e: *mut Term, hp: *mut Term, reds: i64) -> $crate::interp::Exit {
            (*cx).heap.htop = hp;
            (*cx).heap.stop = e;
            (*cx).reds = reds;
            let pc = $crate::interp::outlined(&mut *cx, pc, |cx, pc| $f(cx, pc));
            if pc.is_null() {
                return (*cx).interp.exit;
            }
            $crate::interp::go!(cx, pc, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds)
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
        bits::*, bits_build::*, call::*, fast::*, misc::*, shortcuts::*, start::*, traced::*,
    };
    pub static HANDLERS: &[super::Handler] = include!(concat!(env!("OUT_DIR"), "/handlers.rs"));
}
pub(crate) use table::HANDLERS;

/// Runs the process in the context from `entry` on, until it yields, waits or ends.
///
/// # Safety
/// `cx.heap` is the heap of a process whose stack is in order for the code at `entry`, and the registers which that
/// code reads hold terms of this process.
pub unsafe fn run(cx: &mut Cx, entry: *const u64) -> Exit {
    let cx: *mut Cx = cx;
    let h = HANDLERS[*(entry as *const u16) as usize];
    #[allow(unused_mut)]
    let mut exit = h(cx, entry, (*cx).heap.stop, (*cx).heap.htop, (*cx).reds);
    #[cfg(debug_assertions)]
    while exit == Exit::Next {
        let (pc, e, hp, reds) = (*cx).interp.next;
        exit = HANDLERS[*(pc as *const u16) as usize](cx, pc, e, hp, reds);
    }
    exit
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
