//! A spin lock for critical sections of some ten instructions, mostly by the same thread: its
//! release is a plain store, while a `Mutex` must look for sleepers. It has the interface of a
//! `Mutex` (which replaces it in models).
//!
//! It has no model of its own: spinning relies on stores becoming visible in finite time, which the
//! memory model doesn't promise.
//!
//! # Orderings
//! Unlocking stores with release, and locking swaps with acquire: a holder sees what all earlier
//! holders have written.

use crate::sync::{AtomicBool, Ordering};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// See the module docs.
pub(crate) struct Spin<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: only the holder of the lock reaches the value, one thread at a time.
unsafe impl<T: Send> Sync for Spin<T> {}

/// Proof that a [`Spin`] is held. Releases it when dropped.
pub(crate) struct SpinGuard<'a, T>(&'a Spin<T>);

/// Number of looks at a held lock between two yields to the system: its holder may wait for the
/// processor.
const SPINS: u32 = 100;

impl<T> Spin<T> {
    /// Returns a free lock.
    pub const fn new(value: T) -> Spin<T> {
        Spin {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }
    /// Waits until no other thread holds the lock, and takes it.
    #[inline]
    pub fn lock(&self) -> SpinGuard<'_, T> {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        SpinGuard(self)
    }
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            while self.taken.load(Ordering::Relaxed) {
                looks += 1;
                if looks % SPINS == 0 {
                    std::thread::yield_now();
                } else {
                    std::hint::spin_loop();
                }
            }
            if !self.taken.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is mutably borrowed.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
        purlin_term::delays::where_hot();
    }
}
