//! A lock that no thread waits for: the right to resize a table.
//!
//! Only [`TryLock::try_lock`] makes a [`TryLockGuard`], and dropping that unlocks. So no thread
//! unlocks what another holds.
//!
//! # Orderings
//! Unlocking stores with release, and locking exchanges with acquire: a holder sees what all
//! earlier holders have written. The model is `models/tests/try_lock.rs`.

use crate::sync::{AtomicBool, Ordering};

/// See the module head.
pub(crate) struct TryLock(AtomicBool);

/// Holds the lock until it is dropped.
#[must_use]
pub(crate) struct TryLockGuard<'a>(&'a TryLock);

impl TryLock {
    /// Makes an unlocked lock.
    pub fn new() -> TryLock {
        TryLock(AtomicBool::new(false))
    }
    /// Takes the lock, unless another thread holds it.
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
