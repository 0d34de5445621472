//! Processes, signals, schedulers, timers and loaded code: the runtime without the engines that run
//! code.
//!
//! The kernel does not know how code runs; it calls [`threads::Engine`]. It sees ports, tables and
//! other nodes only through [`outside::Outside`], and tracers only through [`events::Sink`].

pub mod accounting;
pub mod code;
pub mod collect;
pub mod events;
pub mod explore;
pub mod lifecycle;
pub mod message;
pub mod os;
pub mod outside;
pub mod poll;
pub mod post;
pub mod process;
pub mod sched;
pub mod signal;
pub mod sync;
pub mod system;
pub mod threads;
pub mod timer;

pub use accounting::{
    accounts, budget_weights, budgets, msacc, profile, recorder, selection, waits,
};
pub use message::keys;
pub use os::{affinity, clock, filename, osenv, posix};
pub use process::{remote, tracer};
use purlin_native::{bif, hashing, ids, lazy_atoms};
pub use purlin_options as options;
pub use sched::later;
pub use system::{halt, report};

/// The context in which code and natives run, together with the running process.
pub mod cx {
    pub use crate::process::Cx;
    pub use purlin_native::cx::*;
}
