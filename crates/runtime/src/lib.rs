//! The whole runtime: start, tracing, natives about the system, and the list of all natives.

pub mod backtrace;
pub mod compiled;
pub mod diagnostics;
pub mod natives;
mod outside;
pub mod schedules;
pub mod start;
pub mod trace;

pub use purlin_ets as ets;
pub use purlin_interp as interp;
pub use purlin_io as io;
pub use purlin_io::{os_signals, port};
use purlin_kernel::sync;
pub use purlin_kernel::{
    accounts, clock, code, collect, cx, events, filename, halt, lifecycle, message, msacc, options,
    osenv, poll, posix, process, report, sched, signal, threads, timer, tracer, waits,
};
pub use purlin_native::{bifs, errors, exports, ids, lazy_atoms};
pub use purlin_term::small_blocks::Counted;
pub use purlin_term::sys::stack_limit;

pub use start::start;
