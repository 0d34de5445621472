//! How many things belong to some processes: zero says that nothing belongs to any of them. See [`super::resource_counts`].

use crate::sync::{AtomicU32, Ordering};

/// See the module head.
pub struct Count(pub AtomicU32);

impl Count {
    /// A thing is about to become a process's: before it is entered where it belongs.
    #[inline]
    pub fn enter(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    /// `n` things have gone from where they belonged.
    #[inline]
    pub fn leave(&self, n: u32) {
        let before = self.0.fetch_sub(n, Ordering::Release);
        debug_assert!(before >= n, "what has gone was there");
    }
    /// Whether a process may have something.
    #[inline]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Acquire) != 0
    }
}
