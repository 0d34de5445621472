//! The living system.

pub mod bif;
pub mod break_handler;
pub mod clock;
pub mod code;
pub mod crash_dump;
pub mod cx;
pub mod ets;
pub mod filename;
pub mod halt;
pub mod hooks;
pub mod ids;
pub mod interp;
pub mod msacc;
pub mod options;
pub mod os_signals;
pub mod osenv;
pub mod packet;
pub mod poll;
pub mod port;
pub mod posix;
pub mod process;
pub mod report;
pub mod sched;
pub mod signal;
pub mod start;
pub mod sync;
pub mod timer;
pub mod trace;

pub use hooks::*;
pub use start::{options, start, system_processes};
