//! How much memory may be kept for later: what the files that keep freed blocks have in common. Knows none of them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

static CROWDED: AtomicBool = AtomicBool::new(false);

/// Says whether there are so many processes that what each takes matters more than the time it saves: then less is kept.
pub fn set_crowded(crowded: bool) {
    CROWDED.store(crowded, Ordering::Relaxed);
}
pub(crate) fn is_crowded() -> bool {
    CROWDED.load(Ordering::Relaxed)
}

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread gives back what it frees: see [`give_back_in`].
pub(crate) fn gives_back() -> bool {
    AT_ONCE.get()
}

/// Runs `f`. Blocks that it frees on this thread are given back and not kept: for heaps of processes that don't run.
pub fn give_back_in<T>(f: impl FnOnce() -> T) -> T {
    let before = AT_ONCE.replace(true);
    let result = f();
    AT_ONCE.set(before);
    result
}
