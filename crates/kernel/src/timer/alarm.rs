//! The protocol between the thread that sleeps until the next deadline and the threads that start
//! timers.
//!
//! # Orderings
//! A shard says in its [`Due`] when its next timer is due. A thread that starts a timer lowers
//! that, then looks at the alarm and wakes the sleeper if it would sleep too long. The sleeper
//! stores that it is awake, then looks at the shards. The `SeqCst` fences between store and load on
//! both sides ensure that at least one sees the other.

use crate::sync::{AtomicU64, Ordering, constant, fence};

/// No deadline.
pub(crate) const NEVER: u64 = u64::MAX;

/// The tick until which the thread sleeps, or the earliest deadline added while it is awake.
/// Initially [`Alarm::UNSET`].
pub(crate) struct Alarm(pub AtomicU64);

impl Alarm {
    /// The value before the thread has started: everybody wakes it.
    pub(crate) const UNSET: u64 = 0;
    /// Notes that the thread is about to look at all shards.
    pub(crate) fn looking(&self) {
        self.0.store(NEVER, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
    /// Whether the thread, which has found nothing to do before `next`, may sleep until then.
    /// Otherwise it must look again.
    pub(crate) fn may_sleep(&self, next: u64) -> bool {
        self.0.fetch_min(next, Ordering::SeqCst) >= next
    }
    /// Whether the thread must be woken for `deadline`, which a shard's [`Due`] covers already.
    pub(crate) fn must_ring(&self, deadline: u64) -> bool {
        fence(Ordering::SeqCst);
        let at = self.0.load(Ordering::SeqCst);
        at == Self::UNSET
            || deadline < at && deadline < self.0.fetch_min(deadline, Ordering::SeqCst)
    }
    /// Whether the thread should have woken by `now`.
    pub(crate) fn is_late(&self, now: u64) -> bool {
        self.0.load(Ordering::Relaxed) <= now
    }
}

/// The tick before which a shard has nothing to do. Written under the shard's lock.
pub(crate) struct Due(AtomicU64);

impl Due {
    constant! {
        /// Returns the value of an empty shard.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Due {
            Due(AtomicU64::new(NEVER))
        }
    }
    /// Lowers it for an added timer.
    pub fn add(&self, deadline: u64) {
        if deadline < self.0.load(Ordering::Relaxed) {
            self.0.store(deadline, Ordering::SeqCst);
        }
    }
    /// Sets it after the due timers were fired. `next` is the next deadline.
    pub fn set(&self, next: Option<u64>) {
        self.0.store(next.unwrap_or(NEVER), Ordering::SeqCst);
    }
    pub(crate) fn tick(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
