//! Clusters under one seed: several emulators, each a process, whose network and clock a
//! coordinator owns.
//!
//! [`run`] runs a cluster once: [`coordinator`] gives turns, `wires` answers what nodes ask,
//! `disks` knows what they have synced, and `members` starts and ends them. [`search`] runs it
//! again and again with [`fault`]s in the order of `guide`, from clusters that `lab` has saved; the
//! [`story`] and `run_file` are what is left for people and for a replay.
//!
//! # Invariants
//! * One node runs at a time, and only while it has the turn.
//! * What a run does follows from its command, its seed and its faults. What leaves the model is
//!   reported.
//! * All processes of a run have ended when it has, but for the copies of saved nodes.

mod coordinator;
mod disks;
pub mod fault;
mod guide;
mod lab;
mod members;
mod run_file;
mod search;
pub mod story;
mod wires;

pub use coordinator::{Plan, Run, Verdict};
pub use lab::run;
pub use members::Spec;
pub use run_file::{Recorded, is_one, read};
pub use search::{Request, listed, replay, search};
