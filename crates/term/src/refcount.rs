//! The count of the holders of something shared, which is freed with the last of them.
//!
//! A thread that releases a hold has read the shared value before; the one that releases the last
//! frees it afterwards. So the decrement releases, and the last one acquires. A thread that adds a
//! hold already has one (or the lock of a place that has one), so adding orders nothing.
//! `crates/models/tests/refcount.rs` checks all interleavings.

use crate::sync::{AtomicU64, Ordering, fence};

/// See the module head.
pub struct RefCount(AtomicU64);

impl RefCount {
    /// One holder.
    pub fn one() -> RefCount {
        RefCount(AtomicU64::new(1))
    }
    /// Counts one more; the caller ensures that there is one at this moment.
    #[inline]
    pub fn retain(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    /// Counts one less. Returns true for the last one, after everything that the others did.
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
