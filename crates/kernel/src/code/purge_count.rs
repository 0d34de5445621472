//! How many purges have begun. A process that is being made looks up where it starts before others find it, so that a purge which
//! begins meanwhile doesn't ask it whether it runs old code. It asks itself, then: see [`PurgeCount::unchanged`].
//!
//! A thread that begins a purge counts it, and then looks for processes. A thread that makes a process has others find it, and
//! then looks at the count. Two fences see to it that one of them sees the other.

use crate::sync::{AtomicUsize, Ordering, fence};

/// See the module head.
pub struct PurgeCount(pub AtomicUsize);

impl PurgeCount {
    /// How many have begun: to be asked before an address of code is looked up.
    #[inline]
    pub fn begun(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
    /// One begins: before it looks for processes.
    pub fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
    /// The process can be found now. Whether an address that was looked up after [`PurgeCount::begun`] gave `before` is as good as one
    /// looked up now: a purge that begins later finds the process.
    #[inline]
    #[must_use]
    pub fn unchanged(&self, before: usize) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::SeqCst) == before
    }
}
