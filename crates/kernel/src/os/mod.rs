//! The operating system as programs see it: time, names of files and errors, the environment,
//! processors.
//!
//! # Invariant
//! Nothing here knows of processes.

pub mod affinity;
pub mod clock;
pub mod exploring;
pub mod failing;
pub mod filename;
pub mod osenv;
pub mod posix;
pub(crate) mod reopen;
pub mod replay_log;
pub mod thread;
pub mod world;
