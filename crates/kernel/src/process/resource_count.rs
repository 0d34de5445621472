//! A counter of the resources of some processes; zero says that none of them has any. See
//! [`super::resource_counts`], whose model checks the orderings.

use crate::sync::{AtomicU32, Ordering};

/// See the module docs.
pub struct Count(pub AtomicU32);

impl Count {
    /// Counts a resource. Must be called before the resource is entered in its table.
    #[inline]
    pub fn enter(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    /// Counts `n` resources that have been removed from their table.
    #[inline]
    pub fn leave(&self, n: u32) {
        let before = self.0.fetch_sub(n, Ordering::Release);
        debug_assert!(before >= n, "what has gone was there");
    }
    /// Whether a process may have a resource.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
