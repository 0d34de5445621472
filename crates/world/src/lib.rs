//! Models of what a node meets outside itself: clocks, random numbers, disks, the
//! network and its name server.
//!
//! A model has no state of the real machine: the same calls with the same seed give the same
//! results. It knows no terms and no processes of Erlang, and has no unsafe code.
//!
//! # Invariants
//! * A call succeeds, fails with the number that Linux gives, or is refused as
//!   [`Refusal::NotModelled`]. A model never guesses: the tests run random programs of calls on it
//!   and on the kernel, and compare all results.
//! * No clock, address, hash key or number of a descriptor of the real machine has an influence.
//!
//! The heads of [`disk`] and its siblings list what is not modelled.

#![forbid(unsafe_code)]

pub mod clock;
pub mod descriptors;
pub mod disk;
pub mod errno;
pub mod event_queue;
pub mod name_server;
pub mod net;
pub mod protocol;
pub mod streams;

pub use errno::{Answer, Errno, Refusal};
