//! The interpreter.
//!
//! A handler runs one instruction and goes on with the next. It is written once and compiled in two flavours (`handler`): one ends
//! by calling the next instruction's handler in tail position, which an optimised build compiles to a jump, with program counter,
//! stack top, heap top and reductions as arguments, so that they stay in machine registers. The other is a step: it takes them
//! from the context, stores them there, and gives the address of the next instruction. `dispatch` has the table of each.
//!
//! # Invariants
//! * No handler lets the address of a local escape: anything that would is in a function of its own that is not
//!   inlined. Otherwise the tail call is no jump, and the native stack grows.
//! * `heap.htop`, `heap.stop` and `reds` in [`Cx`](crate::cx::Cx) are stale while handlers run. A slow op stores them, runs on the
//!   context, and loads them again.
//! * A frame starts with the slot that holds where calls made from it return to: an address while such a call is
//!   under way, else 0. Returning clears the slot, so every address on the stack is one that will be returned to.
//! * What an op may collect is stated by its `live`; natives only make fragments, see `purlin_term::heap`.
#![allow(clippy::missing_safety_doc)]

pub mod bits;
mod bits_build;
mod call;
pub mod compiled;
mod dispatch;
pub mod exc;
mod fast;
mod handler;
mod instr;
mod lines;
mod maps;
mod misc;
pub mod operands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod perf;
mod records;
mod room;
mod shortcuts;
pub mod start;
mod traced;

pub use crate::cx::{Exit, State};
pub use crate::dispatch::{Interpreter, STEP, run};
pub use crate::handler::Step;
use purlin_kernel::{code, collect, cx, events, process, signal, threads};
use purlin_native::{bif, lazy_atoms};

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
