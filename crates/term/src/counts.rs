//! Counts of what happens all the time, in the whole runtime: the threads that do most of it count each for itself, on cache
//! lines of their own, and who asks adds up.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One thread's share. Sums wrap: a thread that frees what another has allocated counts below zero.
#[repr(align(128))]
pub struct Counts {
    /// Collections, and words that they reclaimed.
    pub collections: AtomicUsize,
    pub reclaimed_words: AtomicUsize,
    /// Bytes of the blocks of heaps.
    pub heap_bytes: AtomicUsize,
}

/// Threads that can have a share of their own.
pub(crate) const SHARES: usize = 64;

/// The first is that of all other threads, which add to it atomically.
static ALL: [Counts; SHARES + 1] = [const {
    Counts {
        collections: AtomicUsize::new(0),
        reclaimed_words: AtomicUsize::new(0),
        heap_bytes: AtomicUsize::new(0),
    }
}; SHARES + 1];

static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(0) };
}

/// This thread counts for itself from now on, if there is a share left. For threads that live as long as the runtime.
pub fn take_share() {
    let n = TAKEN.fetch_add(1, Ordering::Relaxed) + 1;
    if n <= SHARES {
        MINE.with(|m| m.set(n));
    }
}

/// This thread's number if it counts for itself; 0 if not.
#[inline]
pub(crate) fn share() -> usize {
    MINE.with(|m| m.get())
}

/// Adds to a count; sums wrap.
#[inline]
pub fn add(of: impl Fn(&Counts) -> &AtomicUsize, n: usize) {
    match share() {
        0 => {
            of(&ALL[0]).fetch_add(n, Ordering::Relaxed);
        }
        i => {
            // Nobody else writes to it.
            let c = of(&ALL[i]);
            c.store(c.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }
}

/// What has been counted so far.
pub fn sum(of: impl Fn(&Counts) -> &AtomicUsize) -> usize {
    let all = ALL.iter().map(|c| of(c).load(Ordering::Relaxed));
    all.fold(0, usize::wrapping_add)
}
