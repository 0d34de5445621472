//! A lock that a port shares with threads, counted.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicIsize, Ordering};

/// `ErlDrvPDL`. Freed with its last count, of which the port has one, and each job for other threads that was asked for since it
/// was made.
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
    /// Counts one more holder; how many there are.
    pub fn hold(&self) -> isize {
        self.count.fetch_add(1, Ordering::AcqRel) + 1
    }
    /// One holder less; how many are left.
    ///
    /// # Safety
    /// The caller held a count, and does not touch it afterwards.
    pub unsafe fn let_go(l: *mut PortLock) -> isize {
        let n = (*l).count.fetch_sub(1, Ordering::AcqRel) - 1;
        if n == 0 {
            libc::pthread_mutex_destroy((*l).mutex.get());
            drop(Box::from_raw(l));
        }
        n
    }
}

/// A count of such a lock.
pub struct Shared(*mut PortLock);

// SAFETY: a lock is for all threads, and its count atomic.
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
    /// One more count.
    pub fn again(&self) -> Shared {
        // SAFETY: this one is alive.
        unsafe { (*self.0).hold() };
        Shared(self.0)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: its count.
        unsafe { PortLock::let_go(self.0) };
    }
}
