//! The memory that may be kept for later, and whether more may be asked for: shared by the files
//! that hand out blocks, none of which it knows.
//!
//! While something limits the memory of the runtime, [`LEFT`] is the amount that was left when it
//! was last measured, minus the blocks of more than 20 KiB allocated since. An allocation that
//! exceeds it triggers a measurement at once. Nothing is refused here: a process that has grown
//! beyond the limit ends where it collects (`crates/kernel/src/system/memory.rs`).

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, AtomicU8, Ordering};

/// A set of the bits below.
static STATE: AtomicU8 = AtomicU8::new(0);
/// There are many processes.
const CROWDED: u8 = 1;
/// The limit of memory is near.
const SHORT: u8 = 1 << 1;
/// The limit of memory is reached.
const OVER: u8 = 1 << 2;
/// Some processes have an allowance.
const ALLOWED: u8 = 1 << 3;

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

/// Says whether there are so many processes that the memory of each matters more than the time that
/// it saves: then less is kept.
pub fn set_crowded(crowded: bool) {
    set(CROWDED, crowded);
}
/// Whether memory matters more than time: with many processes, near the limit, and for a process
/// whose own limit is near.
#[inline]
pub fn is_crowded() -> bool {
    any(CROWDED | SHORT | ALLOWED) && (any(CROWDED | SHORT) || TIGHT.get())
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
/// Whether the limit of memory is reached: a process that grows has to end.
#[inline]
pub fn is_over() -> bool {
    any(OVER)
}

thread_local! {
    /// Bytes of large blocks that the process which this thread runs may make before it is weighed;
    /// [`NO_LIMIT`] if it has no limit of its own.
    static ALLOWANCE: Cell<isize> = const { Cell::new(NO_LIMIT) };
    /// Whether less than half of its limit is left.
    static TIGHT: Cell<bool> = const { Cell::new(false) };
    /// Words of its heap that may be in memory twice, while they are copied.
    static COPIED_WORDS: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Words that it may make between two collections, or have freed and kept.
    static SLACK_WORDS: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Whether that process has collected all of its garbage for [`judge`].
    static CLEAN: Cell<bool> = const { Cell::new(true) };
    /// Whether it is to collect all of its garbage when its time slice ends.
    static WANTS_COLLECTION: Cell<bool> = const { Cell::new(false) };
}
/// Whether the memory of the process that this thread runs has a limit of its own.
#[inline]
pub fn is_limited() -> bool {
    any(ALLOWED) && ALLOWANCE.get() != NO_LIMIT
}
/// Whether `bytes` bytes are too much to be taken at once by a process whose memory is limited.
#[inline]
pub(crate) fn is_coarse(bytes: usize) -> bool {
    at_most_copied(usize::MAX) < bytes / 8
}
/// Size in bytes up to which no block is refused: the process that makes it soon collects instead.
pub const ALWAYS_ALLOWED: usize = 256 << 10;

/// Says that processes may have allowances from now on.
pub fn begin_allowances() {
    set(ALLOWED, true);
}
/// The part of a limit that a collection may take on top of it: a 32nd.
const COPIED_PART: isize = 32;
/// The part of what is left that may be used before it is noticed.
const SLACK_PART: isize = 8;
/// Words that a collection may always copy.
const LEAST_COPIED_WORDS: isize = 1 << 15;

/// Sets the allowance of the process that this thread runs, whose memory is limited to `limit`
/// bytes; [`NO_LIMIT`] for both without a limit.
pub fn set_allowance(bytes: isize, limit: isize) {
    ALLOWANCE.set(bytes);
    TIGHT.set(limit != NO_LIMIT && bytes < limit / 2);
    let (slack, copied) = match limit {
        NO_LIMIT => (usize::MAX, usize::MAX),
        n => {
            let slack = (bytes / SLACK_PART / 8).max(LEAST_COPIED_WORDS) as usize;
            let part = (n / COPIED_PART / 8).max(LEAST_COPIED_WORDS) as usize;
            (slack, part.min(slack))
        }
    };
    SLACK_WORDS.set(slack);
    COPIED_WORDS.set(copied);
}
/// The smaller of `words` and the words that the process which this thread runs may make between
/// two collections, or may have freed without giving them back.
#[inline]
pub(crate) fn at_most_slack(words: usize) -> usize {
    match any(ALLOWED) {
        true => words.min(SLACK_WORDS.get()),
        false => words,
    }
}
/// The smaller of `words` and the words of the heap of the process that this thread runs which may
/// be copied at once, so that they are in memory twice.
#[inline]
pub(crate) fn at_most_copied(words: usize) -> usize {
    match any(ALLOWED) {
        true => words.min(COPIED_WORDS.get()),
        false => words,
    }
}
/// Lowers the allowance of the process that this thread runs to `bytes`, if it is higher.
pub fn lower_allowance(bytes: isize) {
    ALLOWANCE.set(ALLOWANCE.get().min(bytes));
}
/// Whether a block of `bytes` is more than the process that this thread runs may make, unless it
/// has garbage.
#[inline]
pub fn refuses(bytes: usize) -> bool {
    bytes > ALWAYS_ALLOWED && any(ALLOWED) && {
        let left = ALLOWANCE.get();
        left != NO_LIMIT && isize::try_from(bytes).is_ok_and(|b| b > left.max(0))
    }
}

/// Bytes that the process which this thread runs may still make; [`NO_LIMIT`] without a limit.
#[inline]
pub fn allowance() -> isize {
    match any(ALLOWED) {
        true => ALLOWANCE.get(),
        false => NO_LIMIT,
    }
}
/// Bytes that a native may make on the heap of a process which has `left` bytes left: half of them,
/// since the next collection copies what it has made.
pub fn part_to_make(left: isize) -> isize {
    match left {
        NO_LIMIT => NO_LIMIT,
        n => n / 2,
    }
}

/// How a block may be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judged {
    Fits,
    /// Perhaps, once the process has collected its garbage. It does when its time slice ends.
    AfterCollection,
    Refused,
}

/// Decides whether the process that this thread runs may make a block of `bytes`. After a refusal,
/// the next one is preceded by a collection again.
#[inline]
pub fn judge(bytes: usize) -> Judged {
    match refuses(bytes) {
        false => Judged::Fits,
        true => refused(),
    }
}
/// The decision about a block that does not fit.
pub fn refused() -> Judged {
    match CLEAN.take() {
        true => Judged::Refused,
        false => {
            WANTS_COLLECTION.set(true);
            Judged::AfterCollection
        }
    }
}
/// Begins a time slice. `clean` says whether the process has collected all of its garbage.
pub fn begin_slice(clean: bool) {
    CLEAN.set(clean);
    WANTS_COLLECTION.set(false);
}
/// Returns whether [`judge`] has asked for a collection since the last call.
pub fn takes_collection() -> bool {
    WANTS_COLLECTION.take()
}
/// Whether a process that makes something must collect soon: the limit of memory is reached, or its
/// allowance is used up.
#[inline]
pub(crate) fn is_pressing() -> bool {
    any(OVER | ALLOWED) && (is_over() || ALLOWANCE.get() < 0)
}

/// Bytes left up to the limit; [`NO_LIMIT`] if there is none.
static LEFT: AtomicIsize = AtomicIsize::new(NO_LIMIT);
pub const NO_LIMIT: isize = isize::MAX;
/// The function that measures and calls [`set_left`].
static MEASURE: OnceLock<fn()> = OnceLock::new();

/// Sets the function that measures. Only the first call counts.
pub fn measured_by(f: fn()) {
    let _ = MEASURE.set(f);
}
pub fn set_left(bytes: isize) {
    LEFT.store(bytes, Ordering::Relaxed);
}

/// Notes that `bytes` bytes are about to be allocated, in one block that is not small.
#[inline]
pub(crate) fn note_allocation(bytes: usize) {
    if LEFT.load(Ordering::Relaxed) != NO_LIMIT {
        note_below_limit(bytes);
    }
    if any(ALLOWED) {
        use_allowance(bytes);
    }
}

#[cold]
#[inline(never)]
fn note_below_limit(bytes: usize) {
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

/// Lowers the allowance of this thread by `bytes`.
#[cold]
#[inline(never)]
pub(crate) fn use_allowance(bytes: usize) {
    let left = ALLOWANCE.get();
    if left != NO_LIMIT {
        let bytes = isize::try_from(bytes).unwrap_or(isize::MAX / 2);
        ALLOWANCE.set(left.saturating_sub(bytes));
    }
}

thread_local! {
    static AT_ONCE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread gives back what it frees: see [`give_back_in`]. It does, too, for a process
/// whose limit is near.
pub(crate) fn gives_back() -> bool {
    AT_ONCE.get() || is_short() || any(ALLOWED) && TIGHT.get()
}

/// Runs `f`. Blocks that it frees on this thread are given back, not kept: for heaps of processes
/// that do not run.
pub fn give_back_in<T>(f: impl FnOnce() -> T) -> T {
    let before = AT_ONCE.replace(true);
    let result = f();
    AT_ONCE.set(before);
    result
}
