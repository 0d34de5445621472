//! The protocol between the thread that sleeps until the next deadline and those who start timers.
//!
//! A place that holds timers says by a [`Due`] when there is something to do there next. A thread that starts a timer lowers that,
//! then looks at the alarm and rings if the thread would sleep too long; the thread says that it is awake, then looks at
//! the places. Two fences see to it that one of them sees the other.

use crate::sync::{AtomicU64, Ordering, fence};

/// "No deadline".
pub(crate) const NEVER: u64 = u64::MAX;

/// The tick that the thread sleeps until, or the earliest that was added while it is awake. Begins as [`Alarm::UNSET`].
pub(crate) struct Alarm(pub AtomicU64);

impl Alarm {
    /// The time of a thread that has not begun to look: all ring.
    pub(crate) const UNSET: u64 = 0;
    /// The thread is about to look at all places.
    pub(crate) fn looking(&self) {
        self.0.store(NEVER, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }
    /// The thread has looked, and there is nothing to do before `next`: whether it may sleep until then. Else it is to
    /// look again.
    pub(crate) fn may_sleep(&self, next: u64) -> bool {
        self.0.fetch_min(next, Ordering::SeqCst) >= next
    }
    /// There is something to do at `deadline`, as a place says by now: whether the thread has to be woken.
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

/// The tick before which there is nothing to do in a place. Written under the lock of the place.
pub(crate) struct Due(AtomicU64);

impl Due {
    /// The alarm of an empty place.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Due {
        Due(AtomicU64::new(NEVER))
    }
    /// Something was added.
    pub fn add(&self, deadline: u64) {
        if deadline < self.0.load(Ordering::Relaxed) {
            self.0.store(deadline, Ordering::SeqCst);
        }
    }
    /// The due work is done; `next` is when there is more.
    pub fn set(&self, next: Option<u64>) {
        self.0.store(next.unwrap_or(NEVER), Ordering::SeqCst);
    }
    /// When there is something to do.
    pub(crate) fn tick(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}
