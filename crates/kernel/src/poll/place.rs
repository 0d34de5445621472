//! The place of the scheduler that waits for descriptors itself: one at a time, beside the poll thread, in the same set.
//!
//! # Protocol
//! A scheduler with nothing to run takes the place, says where others look that it waits there ([`crate::sched::queues`]), and
//! waits. Who has work for it rings: once for each wait, by an event in the set. The set gives an event to any one of those
//! who wait, or who come next. So a ring may come to the poll thread, which hands it on until the scheduler has left: while
//! it rings nobody else may wait but that scheduler, or it has yet to come.
//!
//! A ring that comes late, when the scheduler has been given a descriptor meanwhile, ends the next wait without need, or is dropped
//! by the poll thread.

use crate::sync::{AtomicU32, Ordering};

/// Nobody waits.
const FREE: u32 = 0;
/// A scheduler waits, or is about to.
const TAKEN: u32 = 1;
/// It is to end its wait.
const RUNG: u32 = 2;

/// See the module head.
pub struct Place(AtomicU32);

impl Place {
    /// Nobody's.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Place {
        Place(AtomicU32::new(FREE))
    }
    /// Whether it was free; then it is the caller's, until it [leaves](Place::leave).
    pub fn take(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FREE
            && self
                .0
                .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }
    /// The scheduler in it waits no longer.
    pub fn leave(&self) {
        self.0.store(FREE, Ordering::Release);
    }
    /// Whoever waits there is to end its wait: whether the caller has to send the event. Somebody who was to be woken and has left
    /// by now looks for work anyway.
    pub fn ring(&self) -> bool {
        self.0
            .compare_exchange(TAKEN, RUNG, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
    /// Another has been given the event: whether it has to be sent again.
    pub fn is_rung(&self) -> bool {
        self.0.load(Ordering::Acquire) == RUNG
    }
}
