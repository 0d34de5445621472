//! The number of purges that have begun.
//!
//! A new process looks up its start address before others can find it. A purge that begins
//! meanwhile does not ask that process whether it runs old code, so the spawner checks for itself:
//! see [`PurgeCount::unchanged`].
//!
//! # Orderings
//! A thread that begins a purge increments the count and then looks for processes. A thread that
//! spawns a process publishes it and then reads the count. The fence on each side lies between its
//! store and its load, so at least one of the two sees the other's store
//! (`crates/models/tests/purge.rs`).

use crate::sync::{AtomicUsize, Ordering, fence};

/// See the module documentation.
pub struct PurgeCount(pub AtomicUsize);

impl PurgeCount {
    /// Returns the count. Must be called before a code address is looked up.
    #[inline]
    pub fn begun(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    /// Counts a purge. Must be called before it looks for processes.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
    /// Whether an address that was looked up after [`PurgeCount::begun`] returned `before` is still
    /// as good as one looked up now. The caller has published the process, so a purge that begins
    /// later finds it.
    #[inline]
    #[must_use]
    pub fn unchanged(&self, before: usize) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst) == before
    }
}
