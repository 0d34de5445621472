//! The operating system as programs see it: time, names of files and errors, the environment,
//! processors.
//!
//! # Invariant
//! Nothing here knows of processes.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod affinity;
pub mod clock;
pub mod filename;
pub mod osenv;
pub(crate) mod parted;
pub mod posix;
pub mod single;
pub mod tape;
pub mod thread;
