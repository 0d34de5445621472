//! Whether anybody still waits for what a native of this thread makes.
//!
//! A native that takes long runs on a dirty thread, and its process may be ended meanwhile. The
//! thread has a flag for as long as that may be so ([`set`]); whoever ends the process sets it.
//! Whatever goes through much data asks [`is_over`] every [`STEPS`] steps or so, some hundred
//! microseconds, and breaks off then.
//!
//! # Invariants
//! * Who breaks off leaves memory in order: what it returns is a term like any other, owned objects
//!   are on their lists, locks are free.
//! * Nobody sees what it returns. The caller of the native drops it, as it knows that the process
//!   has ended (`purlin_native::reschedule::open`). So a part of the result, or any error, will do.
//! * What others may see is whole: whoever writes to a table, or sends, doesn't ask from there on.
//! * The flag never goes back while the native runs. Whoever has seen it may go by it.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static OVER: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

/// Steps between two looks: elements of a list, terms, words of memory.
pub const STEPS: usize = 1 << 14;

/// Bytes between two looks, where many are copied or compared at once.
pub const BYTES: usize = 1 << 20;

/// Names the flag that tells from now on whether the process of the native on this thread has
/// ended; None: there is none.
pub fn set(flag: Option<&'static AtomicBool>) {
    OVER.set(flag);
}

/// Whether there is a flag: what this thread does may turn out to be for nobody.
#[inline]
pub fn may_come() -> bool {
    OVER.get().is_some()
}

/// Whether the process has ended for which this thread is at work.
#[inline]
pub fn is_over() -> bool {
    OVER.get().is_some_and(|f| f.load(Ordering::Relaxed))
}

/// As [`is_over`], asked at every step: it looks once in [`STEPS`] of them.
#[inline]
pub fn is_over_at(step: usize) -> bool {
    step % STEPS == STEPS - 1 && is_over()
}
