//! The interpreter.
//!
//! A handler runs one instruction and continues with the next. It is written once and compiled in
//! two flavours (`handler`). One ends by calling the next instruction's handler in tail position,
//! which an optimised build compiles to a jump. Program counter, stack top, heap top and reductions
//! are arguments, so they stay in machine registers. The other flavour is a step: it takes them
//! from the context, stores them there, and returns the address of the next instruction. `dispatch`
//! has a table for each.
//!
//! # Invariants
//! - No handler lets the address of a local escape: code that does is in a function of its own that
//!   is not inlined. Otherwise the tail call would be no jump, and the native stack would grow.
//! - `heap.htop`, `heap.stop` and `reds` in [`Cx`](crate::cx::Cx) are stale while handlers run. A
//!   slow op stores them, runs on the context, and loads them again.
//! - A frame starts with the slot for the return address of calls made from it: an address while
//!   such a call is active, otherwise 0. Returning clears the slot, so every address on the stack
//!   is one to which control will return.
//! - The `live` of an op states what it may collect; natives only make fragments, see
//!   `purlin_term::heap`.
//!
//! # Safety
//! This is the contract of every handler, of every function that a handler runs on the context
//! (`fn(cx, pc) -> next pc`), and of every [`Step`]. None of them repeats it. The caller promises:
//! - `cx` is the context of this thread and nothing else uses it. Its heap is that of a process
//!   which this thread has taken to run.
//! - At `pc` is an instruction of the variant that the handler is for, as the loader made it, in
//!   code that stays until this thread's time slice has ended.
//! - `e` points at slot 0 of the topmost frame, or at the bottom of the stack. If the instruction
//!   reads Y registers the frame has them. `hp` is the first free word; the words between `hp` and
//!   `e` are free. A handler that takes neither finds both in the context.
//! - Every register that the instruction reads, and every X register below its `live`, holds a term
//!   of this process. Every Y register of every frame holds a term or a catch mark if the
//!   instruction may collect.
//! - An instruction without room of its own that makes a term uses words reserved by one before it.
//!
//! The loader ensures the last three: it has checked the flow of each function
//! (`purlin_loader::lower::flow`). The instruction that a handler returns, or continues with, finds
//! them ensured again. If it returns null, or stops, the stack's top, the heap's top and the
//! reductions are in the context, with `interp.pc` and `interp.live` as the exit requires.

// The bodies of handlers rely on the contract above as a whole.
#![allow(unsafe_op_in_unsafe_fn)]

mod apply;
mod arith;
pub mod bits;
mod bits_build;
mod call;
mod catch;
pub mod compiled;
#[cfg(debug_assertions)]
mod contract;
mod dispatch;
pub mod exc;
mod exploring;
mod fast;
mod floats;
mod funs;
mod handler;
mod hibernation;
mod instr;
mod libraries;
mod lines;
mod maps;
mod marks;
mod messages;
mod natives;
mod operands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod perf;
mod records;
mod room;
mod shortcuts;
mod skip;
mod traced;

pub use crate::cx::{Exit, State};
pub use crate::dispatch::{Interpreter, STEP, run};
pub use crate::exploring::Exploring;
pub use crate::handler::Step;
pub use crate::natives::called_native;
use purlin_kernel::{code, collect, cx, events, process, signal, threads};
use purlin_native::bif;
