//! Work that is left to whoever holds a lock: who has some notes that, and only tries the lock. A holder looks for notes once it has
//! unlocked, and tries the lock again if there are any. So nobody waits, and nothing stays undone: either the one that tries gets the
//! lock, or the holder, which has it still, sees the note after that.
//!
//! Both fences order the note and the lock: who notes does so before it tries, who holds looks after it has unlocked.

use crate::sync::{AtomicBool, Ordering, fence};

/// Whether something is left to the holder.
pub(crate) struct Asked(AtomicBool);

impl Asked {
    pub(crate) fn new() -> Asked {
        Asked(AtomicBool::new(false))
    }
    /// Notes that there is something; the caller then tries the lock.
    pub(crate) fn ask(&self) {
        // No store: who takes the note of several must see what each of them has left.
        self.0.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }
    /// Whether something is left; the caller has just unlocked.
    pub(crate) fn is_asked(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }
    /// Takes the note, with the lock held, before what is asked is done. What was there when it was made is seen.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }
}
