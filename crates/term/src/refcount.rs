//! The count of the holders of something shared, which is freed with the last of them.
//!
//! # Orderings
//! All reads of the shared value must come before it is freed. So each decrement has `Release`, and
//! the last one is followed by an `Acquire` fence. A thread that adds a holder is one already, or
//! has the lock of a place that is one, so the increment needs no ordering.
//! `crates/models/tests/refcount.rs` checks all interleavings.

use crate::sync::{AtomicU64, Ordering, fence};

/// See the module head.
pub struct RefCount(AtomicU64);

impl RefCount {
    /// One holder.
    pub fn one() -> RefCount {
        RefCount(AtomicU64::new(1))
    }
    /// Adds a holder. There must be one already while this runs.
    #[inline]
    pub fn retain(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    /// Removes a holder. Returns true for the last one, which then sees all that the others did.
    #[inline]
    pub fn release(&self) -> bool {
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        fence(Ordering::Acquire);
        true
    }
    /// The number of holders at this moment.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
