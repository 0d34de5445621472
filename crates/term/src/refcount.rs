//! The count of those who hold something shared, which is freed with the last of them.
//!
//! A thread that gives up a hold has read the shared value before; the one that gives up the last frees it after. So the
//! decrement releases, and the last one acquires. A thread that adds a hold has one already (or the lock of a place that has
//! one), so adding orders nothing. `crates/models/tests/refcount.rs` goes through all interleavings.

use crate::sync::{AtomicU64, Ordering, fence};

/// See the module head.
pub struct RefCount(AtomicU64);

impl RefCount {
    /// One holder.
    pub fn one() -> RefCount {
        RefCount(AtomicU64::new(1))
    }
    /// One more; the caller makes sure that there is one at this moment.
    #[inline]
    pub fn retain(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    /// One less. True: it was the last, and what the others did happened before.
    #[inline]
    pub fn release(&self) -> bool {
        if self.0.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        fence(Ordering::Acquire);
        true
    }
    /// How many there are at this moment.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
