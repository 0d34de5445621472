//! How much memory may be kept for later, and whether more may be asked for: what the files that hand out blocks have in common.
//! Knows none of them.
//!
//! While something limits the memory of the runtime, [`LEFT`] says how much of it was left when that was last measured, less what has
//! been asked for in blocks of more than 20 KiB since. Who asks for more than that has it measured at once. Nobody is refused here: a process
//! that has grown beyond the limit ends where it collects (`crates/kernel/src/system/memory.rs`).

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, AtomicU8, Ordering};

/// The bits that are set of those below.
static STATE: AtomicU8 = AtomicU8::new(0);
/// There are many processes.
const CROWDED: u8 = 1;
/// The limit of memory is near.
const SHORT: u8 = 1 << 1;
/// What may be used up to the limit is used up.
const OVER: u8 = 1 << 2;

fn set(bit: u8, on: bool) {
    match on {
        true => STATE.fetch_or(bit, Ordering::Relaxed),
        false => STATE.fetch_and(!bit, Ordering::Relaxed),
    };
}
#[inline]
fn any(bits: u8) -> bool {
    STATE.load(Ordering::Relaxed) & bits != 0
}

/// Says whether there are so many processes that what each takes matters more than the time it saves: then less is kept.
pub fn set_crowded(crowded: bool) {
    set(CROWDED, crowded);
}
/// Whether memory matters more than time: among many processes, and where the limit is near.
#[inline]
pub(crate) fn is_crowded() -> bool {
    any(CROWDED | SHORT)
}

/// Says whether the limit of memory is near, and whether it is reached.
pub fn set_short(short: bool, over: bool) {
    set(SHORT, short);
    set(OVER, over);
}
/// Whether the limit of memory is near: nothing is kept, and heaps grow by less.
#[inline]
pub fn is_short() -> bool {
    any(SHORT)
}
/// Whether the limit of memory is reached: who grows is to end.
#[inline]
pub fn is_over() -> bool {
    any(OVER)
}

/// Bytes that are left up to the limit; [`NO_LIMIT`] where there is none.
static LEFT: AtomicIsize = AtomicIsize::new(NO_LIMIT);
pub const NO_LIMIT: isize = isize::MAX;
/// Measures, and says what is left.
static MEASURE: OnceLock<fn()> = OnceLock::new();

/// Says who measures. Only the first call does.
pub fn measured_by(f: fn()) {
    let _ = MEASURE.set(f);
}
/// Says what is left.
pub fn set_left(bytes: isize) {
    LEFT.store(bytes, Ordering::Relaxed);
}

/// So many bytes are about to be allocated, in one block that isn't small.
#[inline]
pub(crate) fn asked(bytes: usize) {
    if LEFT.load(Ordering::Relaxed) != NO_LIMIT {
        asked_below_limit(bytes);
    }
}

#[cold]
#[inline(never)]
fn asked_below_limit(bytes: usize) {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX / 2);
    let left = LEFT
        .fetch_sub(bytes, Ordering::Relaxed)
        .saturating_sub(bytes);
    if left < 0
        && let Some(measure) = MEASURE.get()
    {
        measure();
    }
}

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread gives back what it frees: see [`give_back_in`].
pub(crate) fn gives_back() -> bool {
    AT_ONCE.get() || is_short()
}

/// Runs `f`. Blocks that it frees on this thread are given back and not kept: for heaps of processes that don't run.
pub fn give_back_in<T>(f: impl FnOnce() -> T) -> T {
    let before = AT_ONCE.replace(true);
    let result = f();
    AT_ONCE.set(before);
    result
}
