//! Whether what is sent is copied or shared, and how much of it was: see [`crate::signal::share`].

use purlin_term::gc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words from which on a part of a term is shared. `usize::MAX`: never. [`VARIES`]: another number each time.
static THRESHOLD: AtomicUsize = AtomicUsize::new(DEFAULT_THRESHOLD);
/// In the stress mode whatever is sent or stored may be copied or shared, however large it is.
const VARIES: usize = 0;
/// The setting of [`THRESHOLD`].
static ASKED: AtomicUsize = AtomicUsize::new(DEFAULT_THRESHOLD);

/// Words from which on a part of a term is shared, as was asked for. `usize::MAX`: never.
pub fn asked_threshold() -> usize {
    ASKED.load(Ordering::Relaxed)
}

/// Sets [`asked_threshold`]: words; 0 and `usize::MAX` are for never. Gives what it was.
pub fn set_threshold(words: usize) -> usize {
    let n = if words == 0 { usize::MAX } else { words };
    let varies = gc::stress() && n != usize::MAX;
    THRESHOLD.store(if varies { VARIES } else { n }, Ordering::Relaxed);
    ASKED.swap(n, Ordering::Relaxed)
}

/// Words from which on a part of the term in hand is shared.
#[inline]
pub(crate) fn threshold() -> usize {
    match THRESHOLD.load(Ordering::Relaxed) {
        VARIES => varied(),
        n => n,
    }
}

#[cold]
fn varied() -> usize {
    match gc::stress_below(4) {
        0 => asked_threshold(),
        // Not never: what is reached again and again takes no end of room as a tree.
        1 => asked_threshold().max(DEFAULT_THRESHOLD),
        2 => 1,
        _ => 1 + gc::stress_below(64),
    }
}

/// Whether a message of so many words at most is copied, without a look at what was sent before.
#[inline]
pub fn copies(words: usize) -> bool {
    let n = THRESHOLD.load(Ordering::Relaxed);
    n > words || (n == VARIES && asked_threshold() > words && gc::stress_roll(2))
}

/// Whether a signal that could be a [`purlin_term::copy::Flat`] is to be as large ones are.
#[inline]
pub(crate) fn as_if_large() -> bool {
    THRESHOLD.load(Ordering::Relaxed) == VARIES && gc::stress_roll(2)
}

/// 256 KiB. To find out what is reached twice, and to make a region, takes ten microseconds more than a copy, which shows
/// beside the copying of less: a tenth at 80 kilobytes, for terms that are sent once.
pub const DEFAULT_THRESHOLD: usize = 32_768;

/// Words that were copied from process to process, and words that were shared instead.
pub static COPIED: AtomicU64 = AtomicU64::new(0);
/// See [`COPIED`].
pub static SHARED: AtomicU64 = AtomicU64::new(0);
/// Words that were copied to regions, which is done once.
pub static MOVED: AtomicU64 = AtomicU64::new(0);

/// Words that one process had copied from it, copied to regions, and shared without a copy. Copied words are counted from
/// its first message of [`COUNTED_WORDS`] on: what sends but little takes no memory for it.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub copied: u64,
    pub moved: u64,
    pub shared: u64,
}

impl Tally {
    /// Nothing.
    pub const NONE: Tally = Tally {
        copied: 0,
        moved: 0,
        shared: 0,
    };
    /// Counts words copied to a region.
    #[inline]
    pub(crate) fn count_moved(&mut self, words: usize) {
        self.moved += words as u64;
        MOVED.fetch_add(words as u64, Ordering::Relaxed);
    }
    /// Counts words that were not copied, being there.
    #[inline]
    pub(crate) fn count_shared(&mut self, words: usize) {
        self.shared += words as u64;
        SHARED.fetch_add(words as u64, Ordering::Relaxed);
    }
}
