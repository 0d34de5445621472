//! A request that one thread leaves to the holder of a lock. The requester sets the request and
//! then only tries the lock. The holder checks for a request after it has unlocked, and tries the
//! lock again if there is one. So no thread waits and no request is lost: either the requester gets
//! the lock, or the holder still has it and sees the request afterwards.
//!
//! # Orderings
//! Both fences order the request against the lock: the requester sets it before it tries the lock,
//! and the holder checks after it has unlocked.

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether something is left to the holder of the lock.
pub(crate) struct Handoff(AtomicBool);

impl Handoff {
    pub(crate) fn new() -> Handoff {
        Handoff(AtomicBool::new(false))
    }
    /// Sets the request. The caller then tries the lock.
    pub(crate) fn request(&self) {
        // A swap and no store: a thread that takes the request of several must see what each of
        // them has left.
        self.0.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }
    /// Whether a request is set. The caller has just unlocked.
    pub(crate) fn is_requested(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }
    /// Takes the request, with the lock held and before doing the work. Everything that requesters
    /// left before they set it is visible.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}
