//! The living system without what it runs: processes, signals, schedulers, timers, loaded code.
//!
//! Knows not how code runs ([`threads::Engine`]), and of ports, tables and other nodes only what [`outside::Outside`] says; who
//! traces is behind [`events::Sink`].

pub mod accounting;
pub mod choice;
pub mod code;
pub mod collect;
pub mod events;
pub mod lifecycle;
pub mod message;
pub mod os;
pub mod poll;
pub mod process;
pub mod sched;
pub mod signal;
pub mod sync;
pub mod system;
pub mod threads;
pub mod timer;

pub use accounting::{accounts, msacc, profile, waits};
pub use message::keys;
pub use os::{affinity, clock, filename, osenv, posix};
pub use process::{remote, tracer};
use purlin_native::{bif, hashing, ids, lazy_atoms};
pub use purlin_options as options;
pub use sched::later;
pub use signal::post;
pub use system::{halt, outside, report};

/// The context that code and natives run in, with the process that runs.
pub mod cx {
    pub use crate::process::Cx;
    pub use purlin_native::cx::*;
}
