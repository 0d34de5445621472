//! Clusters under one seed: several emulators, each a process, whose network and clock a
//! coordinator owns.
//!
//! [`run`] runs a cluster once: [`coordinator`] gives turns, `calls` answers what nodes ask, and
//! `members` starts and ends them. [`search`] runs it again and again with [`fault`]s, and `file`
//! is what is left for a replay.
//!
//! # Invariants
//! * One node runs at a time, and only while it has the turn.
//! * What a run does follows from its command, its seed and its faults. What leaves the model is
//!   told.
//! * All processes of a run have ended when it has.

mod calls;
mod coordinator;
pub mod fault;
mod file;
mod members;
mod search;

pub use coordinator::{Plan, Run, Spec, Verdict, run};
pub use file::{Recorded, is_one, read};
pub use search::{Request, replay, search};
