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
//!
//! # Safety
//! This is the contract of every handler, of every function that a handler runs on the context (`fn(cx, pc) -> next pc`), and of every
//! [`Step`]. None of them repeats it. Whoever calls one promises:
//! * `cx` is the context of this thread and nobody else uses it. Its heap is that of a process which this thread has taken to run.
//! * At `pc` stands an instruction of the variant that the handler is for, as the loader made it, in code that stays until this
//!   thread's time slice has ended.
//! * `e` points at slot 0 of the topmost frame, or at the bottom of the stack. Where the instruction reads Y registers the frame has
//!   them. `hp` is the first free word; the words between `hp` and `e` are free. A handler that takes neither finds both in the context.
//! * Every register that the instruction reads, and every X register below its `live`, holds a term of this process; every Y register
//!   of every frame holds a term or a catch mark where the instruction may collect.
//! * An instruction without room of its own that makes a term has been promised the words by one before it.
//!
//! The loader keeps the last three of them: it has checked the flow of each function (`purlin_loader::lower::flow`). What a handler
//! gives back, or goes on at, keeps them again for the next instruction. Where it gives null, or leaves, the stack's top, the heap's
//! top and the reductions stand in the context, with `interp.pc` and `interp.live` as the exit asks.

mod apply;
mod arith;
pub mod bits;
mod bits_build;
mod call;
mod catch;
mod chosen;
pub mod compiled;
#[cfg(debug_assertions)]
mod contract;
mod dispatch;
pub mod exc;
mod fast;
mod floats;
mod funs;
mod handler;
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
mod start;
mod traced;

pub use crate::chosen::Chosen;
pub use crate::cx::{Exit, State};
pub use crate::dispatch::{Interpreter, STEP, run};
pub use crate::handler::Step;
pub use crate::natives::called_native;
use purlin_kernel::{code, collect, cx, events, process, signal, threads};
use purlin_native::bif;
