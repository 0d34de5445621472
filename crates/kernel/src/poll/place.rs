//! The place of the scheduler that polls itself: one at a time, beside the poll thread, in the same
//! set.
//!
//! # Protocol
//! A scheduler with nothing to run takes the place, publishes that it waits there
//! ([`crate::sched::queues`]), and waits. A thread that has work for it rings, which ends its wait,
//! or its next one if it has not begun. A scheduler that has left by then looks for work anyway. A
//! ring that meets the next scheduler in the place ends its wait unnecessarily.
//!
//! # Orderings
//! Leaving stores with release, and taking exchanges with acquire: the next scheduler in the place
//! sees what the one before it did there. The model is `models/tests/run_queues.rs`.

use crate::sync::{AtomicUsize, Ordering};

/// See the module docs. Holds the number of the waiter, if one waits or is about to; otherwise 0.
pub struct Place(AtomicUsize);

impl Place {
    /// Returns a free place.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Place {
        Place(AtomicUsize::new(0))
    }
    /// Takes the place for `waiter`, a number other than 0, until it [leaves](Place::leave).
    /// Returns false if the place is not free.
    pub fn take(&self, waiter: usize) -> bool {
        self.0.load(Ordering::Relaxed) == 0
            && self
                .0
                .compare_exchange(0, waiter, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }
    /// Frees the place. Called by the waiter in it.
    pub fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }
    /// Returns the number of the waiter to ring, if one is there.
    pub fn waiter(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Acquire)).filter(|&n| n != 0)
    }
}
