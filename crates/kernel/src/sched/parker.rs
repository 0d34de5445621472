//! A thread that sleeps while nothing happens, and is woken when another thread begins to work.
//!
//! # Orderings
//! The two threads form a store-buffering pair. The working thread stores that it works, where the
//! sleeper's `busy` looks, then calls [`Parker::unpark`], which loads `asleep`. The sleeper stores
//! `asleep`, then calls `busy`. The `SeqCst` fence between store and load on either side ensures
//! that at least one sees the other; all other accesses can therefore be `Relaxed`. If the working
//! thread sees `asleep`, it sets `awake` under the lock that the sleeper holds from its look until
//! it waits, so the notification is not lost.

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, constant, fence};

/// See the module docs.
pub(crate) struct Parker {
    asleep: AtomicBool,
    awake: Mutex<bool>,
    bell: Condvar,
}

impl Parker {
    constant! {
        /// Returns a parker on which no thread sleeps.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Parker {
            Parker {
                asleep: AtomicBool::new(false),
                awake: Mutex::new(true),
                bell: Condvar::new(),
            }
        }
    }
    /// Wakes the sleeper. Must be called after the thread has stored that it works.
    #[inline]
    pub(crate) fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            *self.awake.lock() = true;
            self.bell.notify_one();
        }
    }
    /// Sleeps until a thread works, unless `busy` says that one does.
    pub(crate) fn park(&self, busy: impl Fn() -> bool) {
        let mut awake = self.awake.lock();
        *awake = false;
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        while !*awake && !busy() {
            awake = self.bell.wait(awake);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }
}
