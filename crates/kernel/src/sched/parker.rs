//! A thread that sleeps while nobody works, and is woken by whoever begins to.
//!
//! A thread that begins to work says so where the sleeper's `busy` looks, then calls [`Parker::unpark`]; the sleeper says that it
//! sleeps, then looks. Two fences see to it that one of them sees the other.

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, fence};

/// See the module head.
pub(crate) struct Parker {
    asleep: AtomicBool,
    awake: Mutex<bool>,
    bell: Condvar,
}

impl Parker {
    /// Nobody sleeps.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Parker {
        Parker {
            asleep: AtomicBool::new(false),
            awake: Mutex::new(true),
            bell: Condvar::new(),
        }
    }
    /// Somebody works again.
    #[inline]
    pub(crate) fn unpark(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) {
            *self.awake.lock() = true;
            self.bell.notify_one();
        }
    }
    /// Sleeps until somebody works, unless `busy` says that somebody does.
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
