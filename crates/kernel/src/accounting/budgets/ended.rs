//! Whether a budget has ended: then it takes nothing more in, and its processes are killed.
//!
//! # Orderings
//! The end of a budget sets the flag and then looks for processes. A spawn opens the queue of the
//! new process, by which others find it, and then loads the flag. The fence on each side lies
//! between its store and its load, so at least one of the two sees the other's store: the end finds
//! the process, or the spawner finds the end (`crates/models/tests/budget_end.rs`).

use crate::sync::{AtomicBool, Ordering, fence};

/// See the module documentation.
pub struct Ended(pub AtomicBool);

impl Ended {
    /// Sets the flag. Returns whether it was not set before. [`before_search`] follows.
    pub fn set(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }
    /// Whether the budget has ended. A spawner calls [`after_opening`] before.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Comes after [`Ended::set`], and before processes are looked for.
pub fn before_search() {
    fence(Ordering::SeqCst);
}

/// Comes after the queue of a new process was opened, and before [`Ended::is_set`].
pub fn after_opening() {
    fence(Ordering::SeqCst);
}
