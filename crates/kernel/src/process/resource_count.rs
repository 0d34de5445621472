//! The number of resources that a group of processes has. Zero means that none of them has any. See
//! [`super::resource_counts`], whose model checks the orderings.
//!
//! # Orderings
//! A resource is counted before it is entered (`SeqCst`, as it takes part in the fences that
//! [`super::resource_counts`] describes). It is subtracted with release after it was removed, and
//! the load acquires: a process that reads zero sees the table without it. The model is
//! `models/tests/resource_counts.rs`.

use crate::sync::{AtomicU32, Ordering};

/// See the module head.
pub struct Count(pub AtomicU32);

impl Count {
    /// Adds a resource, before it is entered in its table.
    #[inline]
    pub fn enter(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    /// Subtracts `n` resources, after they were removed from their table.
    #[inline]
    pub fn leave(&self, n: u32) {
        let before = self.0.fetch_sub(n, Ordering::Release);
        debug_assert!(before >= n, "more resources were removed than added");
    }
    /// Whether a process may have a resource.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
