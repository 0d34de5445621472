//! The living system without what it runs: processes, signals, schedulers, timers, loaded code.
//!
//! Knows not how code runs ([`threads::Engine`]), and of ports, tables and other nodes only what [`outside::Outside`] says; who
//! traces is behind [`events::Sink`].

pub mod accounts;
pub mod affinity;
pub mod clock;
pub mod code;
pub mod collect;
pub mod cx;
pub mod events;
pub mod filename;
pub mod halt;
pub mod keys;
pub mod later;
pub mod lifecycle;
pub mod message;
pub mod msacc;
pub mod osenv;
pub mod outside;
pub mod poll;
pub mod posix;
pub mod post;
pub mod process;
pub mod profile;
pub mod remote;
pub mod report;
pub mod sched;
pub mod signal;
pub mod sync;
pub mod threads;
pub mod timer;
pub mod tracer;
pub mod waits;

use purlin_native::{bif, hashing, ids, lazy_atoms};
pub use purlin_options as options;
