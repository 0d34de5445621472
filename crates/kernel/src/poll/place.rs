//! The place of the scheduler that waits for descriptors itself: one at a time, beside the poll thread, in the same set.
//!
//! # Protocol
//! A scheduler with nothing to run takes the place, says where others look that it waits there ([`crate::sched::queues`]), and
//! waits. A thread that has work for it rings, which ends its wait, or its next if it has not begun. Whoever has left by then
//! looks for work anyway, and a ring that meets the next one in the place ends that one's wait without need.

use crate::sync::{AtomicUsize, Ordering};

/// See the module head. Holds the number of the one who waits, or is about to; 0: nobody does.
pub struct Place(AtomicUsize);

impl Place {
    /// Nobody's.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Place {
        Place(AtomicUsize::new(0))
    }
    /// Whether it was free; then it is that of `waiter`, a number other than 0, until it [leaves](Place::leave).
    pub fn take(&self, waiter: usize) -> bool {
        self.0.load(Ordering::Relaxed) == 0
            && self
                .0
                .compare_exchange(0, waiter, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }
    /// The one in it waits no longer.
    pub fn leave(&self) {
        self.0.store(0, Ordering::Release);
    }
    /// The number of the waiter that is to be rung, if one is there.
    pub fn waiter(&self) -> Option<usize> {
        Some(self.0.load(Ordering::Acquire)).filter(|&n| n != 0)
    }
}
