//! Settings and counters of copying and sharing; see [`crate::signal::share`].

use purlin_term::counts::{self, Counts};
use purlin_term::gc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Minimum number of words of a shared part. `usize::MAX`: nothing is shared. [`VARIES`]: a
/// different number each time.
static THRESHOLD: AtomicUsize = AtomicUsize::new(DEFAULT_THRESHOLD);
/// Used in stress mode: whatever is sent or stored may be copied or shared, whatever its size.
const VARIES: usize = 0;
/// The setting of [`THRESHOLD`] that was requested.
static ASKED: AtomicUsize = AtomicUsize::new(DEFAULT_THRESHOLD);

/// Minimum number of words of a shared part, as requested. `usize::MAX`: nothing is shared.
pub fn asked_threshold() -> usize {
    ASKED.load(Ordering::Relaxed)
}

/// Sets [`asked_threshold`] in words; 0 and `usize::MAX` disable sharing. Returns the previous
/// value.
pub fn set_threshold(words: usize) -> usize {
    let n = if words == 0 { usize::MAX } else { words };
    let varies = gc::stress() && n != usize::MAX;
    THRESHOLD.store(if varies { VARIES } else { n }, Ordering::Relaxed);
    ASKED.swap(n, Ordering::Relaxed)
}

/// Minimum number of words of a shared part, for the term at hand.
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
        // Not disabled: a term with much internal sharing has no bounded size as a tree.
        1 => asked_threshold().max(DEFAULT_THRESHOLD),
        2 => 1,
        _ => 1 + gc::stress_below(64),
    }
}

/// Whether a message of at most this many words is copied, without a look at what was sent before.
#[inline]
pub fn copies(words: usize) -> bool {
    let n = THRESHOLD.load(Ordering::Relaxed);
    n > words || (n == VARIES && asked_threshold() > words && gc::stress_roll(2))
}

/// Whether a signal that could be a [`purlin_term::copy::Flat`] is to be built like large ones.
#[inline]
pub(crate) fn as_if_large() -> bool {
    THRESHOLD.load(Ordering::Relaxed) == VARIES && gc::stress_roll(2)
}

/// 256 KiB. To find what is reached twice, and to make a region, takes ten microseconds more than a
/// copy. For smaller terms that is noticeable: a tenth at 80 kilobytes, for terms that are sent
/// once.
pub const DEFAULT_THRESHOLD: usize = 32_768;

/// A count of words. Each scheduler counts for itself.
pub struct Words(fn(&Counts) -> &AtomicUsize);

impl Words {
    #[inline]
    pub(crate) fn add(&self, words: usize) {
        counts::add(self.0, words);
    }
    /// All words so far.
    pub fn sum(&self) -> u64 {
        counts::sum(self.0) as u64
    }
}

/// Words that were copied from process to process, and words that were shared instead.
pub const COPIED: Words = Words(|c| &c.words_copied);
/// See [`COPIED`].
pub const SHARED: Words = Words(|c| &c.words_shared);
/// Words that were copied to regions, which is done once.
pub const MOVED: Words = Words(|c| &c.words_moved);

/// Words of one process that were copied to others, copied to regions, and shared without a copy.
/// Copied words count from its first message of at least `COUNTED_WORDS` on: a process that sends
/// little needs no memory for this.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    pub copied: u64,
    pub moved: u64,
    pub shared: u64,
}

impl Tally {
    /// All counters at zero.
    pub const NONE: Tally = Tally {
        copied: 0,
        moved: 0,
        shared: 0,
    };
    /// Counts words copied to a region.
    #[inline]
    pub(crate) fn count_moved(&mut self, words: usize) {
        self.moved += words as u64;
        MOVED.add(words);
    }
    /// Counts words that were shared without a copy.
    #[inline]
    pub(crate) fn count_shared(&mut self, words: usize) {
        self.shared += words as u64;
        SHARED.add(words);
    }
}
