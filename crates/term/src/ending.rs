//! Whether anybody still waits for the result of a native on this thread, and whether the process
//! has something to do meanwhile.
//!
//! A native that takes long runs on a dirty thread, and its process may be ended meanwhile. During
//! that time the thread has [`Wishes`] ([`set`]), in which others note that the process has ended.
//! Code that goes through much data calls [`is_over`] about every [`STEPS`] steps, some hundred
//! microseconds, and then stops early.
//!
//! Others may also note that the process is to be collected, which is impossible while the native
//! reads its heap. A native that can continue later (`purlin_native::reschedule::pause`) looks for
//! that as well ([`is_asked`]).
//!
//! # Invariants
//! * Code that stops early leaves memory in order: its result is a term like any other, objects
//!   that own something are on their lists, locks are free.
//! * Nobody sees its result. The caller of the native drops it, because it knows that the process
//!   has ended (`purlin_native::reschedule::open`). So a part of the result, or any error, will do.
//! * What others may see is whole: code that writes to a table, or sends, does not check from there
//!   on.
//! * No wish is withdrawn while the native runs, so code may rely on what it has seen.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// Wishes of others for a native on a dirty thread. Both are hints, and ordered with nothing.
pub struct Wishes {
    /// The process has ended.
    over: AtomicBool,
    /// The process is to come back to a scheduler as soon as it can.
    pause: AtomicBool,
}

impl Default for Wishes {
    fn default() -> Wishes {
        Wishes::new()
    }
}

impl Wishes {
    /// None so far.
    pub const fn new() -> Wishes {
        Wishes {
            over: AtomicBool::new(false),
            pause: AtomicBool::new(false),
        }
    }
    /// Forgets the wishes of earlier calls.
    pub fn clear(&self) {
        self.over.store(false, Ordering::Relaxed);
        self.pause.store(false, Ordering::Relaxed);
    }
    /// Makes the native stop: its process has ended.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
    /// Asks the native to continue later.
    pub fn ask(&self) {
        self.pause.store(true, Ordering::Relaxed);
    }
}

thread_local! {
    static WISHES: Cell<Option<&'static Wishes>> = const { Cell::new(None) };
}

/// Number of steps between two checks: elements of a list, terms, words of memory.
pub const STEPS: usize = 1 << 14;

/// Number of bytes between two checks, where many are copied or compared at once.
pub const BYTES: usize = 1 << 20;

/// Sets where others note their wishes of the native on this thread; None if there is none.
pub fn set(wishes: Option<&'static Wishes>) {
    WISHES.set(wishes);
}

/// Whether others may have wishes: nobody may come to wait for what this thread does.
#[inline]
pub fn may_come() -> bool {
    WISHES.get().is_some()
}

/// Whether the process for which this thread works has ended.
#[inline]
pub fn is_over() -> bool {
    WISHES.get().is_some_and(|w| w.over.load(Ordering::Relaxed))
}

/// Whether the native on this thread should continue later.
#[inline]
pub fn is_asked() -> bool {
    WISHES
        .get()
        .is_some_and(|w| w.pause.load(Ordering::Relaxed))
}

/// As [`is_over`], for calls at every step: it checks once in [`STEPS`] of them.
#[inline]
pub fn is_over_at(step: usize) -> bool {
    step % STEPS == STEPS - 1 && is_over()
}
