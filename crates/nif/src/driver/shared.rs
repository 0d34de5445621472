//! A counted lock that a port shares with threads.
//!
//! # Orderings
//! Each decrement releases its holder's use of the lock; the one that reaches 0 acquires all of
//! them before it destroys the mutex and frees the memory. Increments come from holders and need no
//! ordering. The count that C code reads is only information.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// `ErlDrvPDL`. Freed with its last count. The port holds one, and so does each job for other
/// threads that was requested since the lock was made.
pub struct PortLock {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    count: AtomicIsize,
}

impl PortLock {
    pub fn mutex(&self) -> *mut libc::pthread_mutex_t {
        self.mutex.get()
    }
    pub fn count(&self) -> isize {
        self.count.load(Ordering::Acquire)
    }
    /// Adds a count; returns the new number.
    pub fn hold(&self) -> isize {
        self.count.fetch_add(1, Ordering::AcqRel) + 1
    }
    /// Releases a count; returns how many are left.
    ///
    /// # Safety
    /// The caller held a count, and does not touch the lock afterwards.
    pub unsafe fn let_go(l: *mut PortLock) -> isize {
        // SAFETY: the caller's count keeps the lock alive. With the last count nobody else uses it.
        unsafe {
            let n = (*l).count.fetch_sub(1, Ordering::AcqRel) - 1;
            if n == 0 {
                libc::pthread_mutex_destroy((*l).mutex.get());
                drop(Box::from_raw(l));
            }
            n
        }
    }
}

/// A count of such a lock.
pub struct Shared(*mut PortLock);

// SAFETY: a lock is usable by all threads, and its count is atomic.
unsafe impl Send for Shared {}

impl Shared {
    pub fn new() -> Shared {
        Shared(Box::into_raw(Box::new(PortLock {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            count: AtomicIsize::new(1),
        })))
    }
    pub fn address(&self) -> *mut PortLock {
        self.0
    }
    /// Returns another count.
    pub fn again(&self) -> Shared {
        // SAFETY: this one is alive.
        unsafe { (*self.0).hold() };
        Shared(self.0)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: releases its own count.
        unsafe { PortLock::let_go(self.0) };
    }
}
