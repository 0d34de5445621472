//! The explorer's record of a process.
//!
//! # Invariant
//! The path of a process and the ordinals of its operations depend on the process and its ancestors
//! only, so a point names the same operation in all schedules that come to it.

use crate::operation::{Point, Touch};

/// The number of the first operation of the program's code in a process. Those before have lower
/// ones: how long the program is, and what was done to compile it, makes no difference.
pub const OWN: u32 = 1 << 20;

/// Ordinals with this bit are wakes: the process has become ready. The bits below count them.
pub const WAKE: u32 = 1 << 31;

/// See the module's head.
pub struct Process {
    /// The number in its pid.
    pub id: u32,
    pub path: u64,
    pub counts: Counts,
    pub owner: Owner,
    pub stop: Stop,
    /// The time of its last operation.
    pub last: i64,
}

/// Counts by which its operations and its children are named.
#[derive(Default)]
pub struct Counts {
    pub operations: u32,
    pub children: u64,
    pub wakes: u32,
    /// Whether the program's code has come to an operation in it.
    pub own_code: bool,
}

/// Whether a process belongs to the program.
#[derive(Clone, Copy, Default)]
pub struct Owner {
    /// Whether the program's code runs in it, or made it.
    pub program: bool,
    /// The same, as far as this run has shown it.
    pub shown: bool,
    /// Whether its operation is the program's own. Known only if the run
    /// distinguishes these.
    pub operation: bool,
    /// Whether it works for the program: see [`crate::account`].
    pub serves: bool,
    /// Whether the process that it is about to make is the program's.
    pub makes_program: bool,
    /// Whether the operation that it is about to do is counted in the account.
    pub counted: bool,
}

/// Whether and where it has stopped.
pub struct Stop {
    pub hold: Hold,
    pub resumes: Resumes,
    /// The operation before which it has stopped.
    pub pending: Option<Touch>,
    /// Its priority for a sampler.
    pub priority: u64,
}

/// How a process continues that has stopped before an operation.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub enum Resumes {
    /// It has not stopped.
    #[default]
    No,
    /// It does the operation.
    With,
    /// It has stopped at a receive, which it begins anew. If it comes there again it waits.
    Anew,
}

/// How long a process stops.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It may run.
    No,
    /// Until no other process can run, or until that time, since others may poll for what it is to
    /// do. The ordinal of the stop: earlier ones continue first.
    Last(u64, i64),
    /// Until that time.
    Until(i64),
    /// Like `Last`, or until that operation was done.
    After(u64, i64, Point),
}

impl Hold {
    /// Whether a process may run at that time.
    pub fn is_over(self, now: i64) -> bool {
        match self {
            Hold::No => true,
            Hold::Until(t) | Hold::Last(_, t) | Hold::After(_, t, _) => t <= now,
        }
    }
}

impl Process {
    /// Returns the point of its current operation.
    pub fn point(&self) -> Point {
        (self.path, self.counts.operations)
    }

    /// Whether it belongs to the program, and may run.
    pub fn is_free_program(&self) -> bool {
        self.owner.program && self.stop.hold == Hold::No
    }
}
