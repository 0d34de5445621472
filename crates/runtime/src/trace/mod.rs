//! Tracing: sends events of traced processes to their tracers.
//!
//! # Invariants
//! * A process's tracing is recorded with the process (`process::Ext`). Only its owner
//!   changes it; others ask by a task. `TRACED` in its flags says that there is anything to look
//!   at, which is all that an untraced process pays.
//! * The thread that runs the traced process sends the trace messages, in the order of the events.
//!   So a tracer sees the events of one process in order.
//! * A tracer is a local process, which gets messages; or a port, which gets the same terms in the
//!   external format; or a module whose functions, in a native library, are called ([`module`]).
//!   When a tracer has ended, those it traced stop being traced at their next event.

pub mod calls;
pub(crate) mod emit;
pub(crate) mod frames;
pub mod messages;
pub(crate) mod module;
pub mod monitor;
pub(crate) mod processes;
pub mod profile;
pub mod sequential;
pub(crate) mod sessions;
pub(crate) mod state;
pub(crate) mod tracers;
pub mod watch;

pub use crate::events::{Defaults, GC_SLEEP_MS, NEW_PORTS, NEW_PROCESSES, Tie, flag, lives, tie};
pub use emit::{tell, timestamp};
pub(crate) use frames::Which;
pub(crate) use processes::links;
pub(crate) use state::{change, drop_over, live_state};
pub(crate) use tracers::Tracers;
