//! Whether anybody still waits for the result of a native on this thread.
//!
//! A native that takes long runs on a dirty thread, and its process may be ended meanwhile. During
//! that time the thread has a flag ([`set`]), which is set when the process is ended. Code that
//! goes through much data calls [`is_over`] about every [`STEPS`] steps, some hundred microseconds,
//! and then stops early.
//!
//! # Invariants
//! * Code that stops early leaves memory in order: its result is a term like any other, objects
//!   that own something are on their lists, locks are free.
//! * Nobody sees its result. The caller of the native drops it, because it knows that the process
//!   has ended (`purlin_native::reschedule::open`). So a part of the result, or any error, will do.
//! * What others may see is whole: code that writes to a table, or sends, does not check from there
//!   on.
//! * The flag is never reset while the native runs, so code may rely on it once it has seen it set.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static OVER: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

/// Number of steps between two checks: elements of a list, terms, words of memory.
pub const STEPS: usize = 1 << 14;

/// Number of bytes between two checks, where many are copied or compared at once.
pub const BYTES: usize = 1 << 20;

/// Sets the flag that says whether the process of the native on this thread has ended; None if
/// there is none.
pub fn set(flag: Option<&'static AtomicBool>) {
    OVER.set(flag);
}

/// Whether there is a flag: nobody may come to wait for what this thread does.
#[inline]
pub fn may_come() -> bool {
    OVER.get().is_some()
}

/// Whether the process for which this thread works has ended.
#[inline]
pub fn is_over() -> bool {
    OVER.get().is_some_and(|f| f.load(Ordering::Relaxed))
}

/// As [`is_over`], for calls at every step: it checks once in [`STEPS`] of them.
#[inline]
pub fn is_over_at(step: usize) -> bool {
    step % STEPS == STEPS - 1 && is_over()
}
