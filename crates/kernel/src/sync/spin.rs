//! A lock for what takes some ten instructions, mostly by one and the same thread: to give it back is a plain store, where
//! a `Mutex` has to look for those who sleep. Its interface is that of a `Mutex` (which takes its place in models).
//!
//! It has no model of its own: who spins relies on it that a store is seen in time, which the memory model doesn't promise.

use crate::sync::{AtomicBool, Ordering};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// See the module head.
pub(crate) struct Spin<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by whoever holds the lock, one thread at a time.
unsafe impl<T: Send> Sync for Spin<T> {}

/// Holds a [`Spin`].
pub(crate) struct SpinGuard<'a, T>(&'a Spin<T>);

/// Looks at a lock that is taken before the processor is left to others: its holder may wait for one.
const SPINS: u32 = 100;

impl<T> Spin<T> {
    /// Nobody holds it.
    pub fn new(value: T) -> Spin<T> {
        Spin {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }
    /// Waits until nobody else holds it.
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
        // SAFETY: the guard holds the lock, and is borrowed by one.
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
