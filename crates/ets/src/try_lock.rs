//! A lock that nobody waits for: the right to resize a table, which one thread has at a time.
//!
//! Only [`TryLock::try_lock`] makes a [`TryLockGuard`], whose end unlocks: so none unlocks what another holds.

use crate::sync::{AtomicBool, Ordering};

/// See the module head.
pub(crate) struct TryLock(AtomicBool);

/// The lock is held until this is dropped.
#[must_use]
pub(crate) struct TryLockGuard<'a>(&'a TryLock);

impl TryLock {
    /// Nobody holds it.
    pub fn new() -> TryLock {
        TryLock(AtomicBool::new(false))
    }
    /// Locks it, unless somebody holds it.
    pub fn try_lock(&self) -> Option<TryLockGuard<'_>> {
        match self
            .0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Some(TryLockGuard(self)),
            Err(_) => None,
        }
    }
}

impl Drop for TryLockGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
