//! Counts of frequent events in the whole runtime: each of the threads that cause most of them
//! counts for itself, on cache lines of its own, and a reader adds up.

use purlin_isa::cache_lines::TwoLines;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One thread's share. Sums wrap: a thread that frees what another has allocated counts below zero.
pub struct Counts {
    _lines: TwoLines,
    /// Collections, and words that they reclaimed.
    pub collections: AtomicUsize,
    pub reclaimed_words: AtomicUsize,
    /// Heap blocks in use, without those in cells of processes, and their bytes.
    pub heap_blocks: AtomicUsize,
    pub heap_bytes: AtomicUsize,
    /// Counted binaries, and their capacity in bytes.
    pub binaries: AtomicUsize,
    pub binary_bytes: AtomicUsize,
    /// Live regions, their bytes, and the bytes of the pages that they use.
    pub regions: AtomicUsize,
    pub region_bytes: AtomicUsize,
    pub region_touched: AtomicUsize,
    /// Those of them that are counted, and their bytes.
    pub counted_regions: AtomicUsize,
    pub counted_bytes: AtomicUsize,
    /// Words that were copied from process to process, that were shared instead, and that were
    /// copied to regions.
    pub words_copied: AtomicUsize,
    pub words_shared: AtomicUsize,
    pub words_moved: AtomicUsize,
    /// Blocks that Rust code has from the allocator ([`crate::small_blocks`]).
    pub blocks: AtomicUsize,
}

/// Maximum number of threads with a share of their own.
pub(crate) const SHARES: usize = 64;

/// The first is that of all other threads, which add to it atomically.
static ALL: [Counts; SHARES + 1] = [const {
    Counts {
        _lines: TwoLines,
        collections: AtomicUsize::new(0),
        reclaimed_words: AtomicUsize::new(0),
        heap_blocks: AtomicUsize::new(0),
        heap_bytes: AtomicUsize::new(0),
        binaries: AtomicUsize::new(0),
        binary_bytes: AtomicUsize::new(0),
        regions: AtomicUsize::new(0),
        region_bytes: AtomicUsize::new(0),
        region_touched: AtomicUsize::new(0),
        counted_regions: AtomicUsize::new(0),
        counted_bytes: AtomicUsize::new(0),
        words_copied: AtomicUsize::new(0),
        words_shared: AtomicUsize::new(0),
        words_moved: AtomicUsize::new(0),
        blocks: AtomicUsize::new(0),
    }
}; SHARES + 1];

static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(0) };
}

/// Gives this thread a share of its own, if one is left. For threads that live as long as the
/// runtime.
pub fn take_share() {
    let n = TAKEN.fetch_add(1, Ordering::Relaxed) + 1;
    if n <= SHARES {
        MINE.with(|m| m.set(n));
    }
}

/// Number of threads that have asked for a share.
pub(crate) fn shares_taken() -> &'static AtomicUsize {
    &TAKEN
}

/// This thread's number if it has a share; 0 if not.
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

/// Subtracts from a count.
#[inline]
pub fn subtract(of: impl Fn(&Counts) -> &AtomicUsize, n: usize) {
    add(of, n.wrapping_neg());
}

/// The sum of a count. While others count, a release may be seen before the matching allocation: a
/// negative sum counts as 0.
pub fn sum(of: impl Fn(&Counts) -> &AtomicUsize) -> usize {
    let all = ALL.iter().map(|c| of(c).load(Ordering::Relaxed));
    let n = all.fold(0, usize::wrapping_add);
    if n > isize::MAX as usize { 0 } else { n }
}
