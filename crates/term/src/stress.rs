//! The stress mode of the collector: at each collection it takes at random what may happen there, so that branches which
//! need large heaps, full old generations or bad luck are reached by small programs in seconds.
//!
//! `PURLIN_GC_STRESS=1` turns it on, with a seed from the clock; any other number but 0 is the seed. Each thread draws its own
//! numbers from it, so what one thread does is the same with the same seed, as far as its processes are. Reports of faults
//! name the seed ([`told`]).
//!
//! In this mode
//! * a collection leaves no more room than was asked for, as a rule, and in large heaps a sixteenth: so the next instruction
//!   that allocates collects again, and natives find the block full and build in fragments. No code outside the collector
//!   has to ask for the mode;
//! * each is minor or full, copies the old generation or collects it where it lies, promotes at once what is young, settles
//!   the block as the old generation, gives the old generation no room, leaves regions of any size, finds too little and
//!   grows, moves the heap another time, or comes after another one or a compaction;
//! * what is left behind is poisoned, and heaps are verified before and after ([`crate::verify`]): small ones always, of
//!   large ones a sample, so that a collection costs in proportion to what it copies.

use crate::gc::{self, shrink_to_fit};
use crate::heap::Heap;
use crate::verify;
use crate::word::Term;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The seed of this run; 0: the mode is off.
pub fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let set = std::env::var("PURLIN_GC_STRESS").ok();
        match set.and_then(|v| v.parse::<u64>().ok()) {
            None | Some(0) => 0,
            Some(1) => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let now = now.map_or(0, |d| d.as_nanos() as u64);
                // Short, to be typed; never 0 nor 1.
                mixed(now ^ u64::from(std::process::id()) << 32) % 1_000_000_000 + 2
            }
            Some(n) => n,
        }
    })
}

/// Whether `PURLIN_GC_STRESS` is set to a number but 0 in the environment.
#[inline]
pub fn stress() -> bool {
    seed() != 0
}

/// How to have it again, for reports of faults; empty without the mode.
pub fn told() -> String {
    match seed() {
        0 => String::new(),
        n => format!(" (PURLIN_GC_STRESS={n})"),
    }
}

fn mixed(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

fn next() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    let mut x = STATE.get();
    if x == 0 {
        let n = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
        x = mixed(seed().wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15))) | 1;
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    STATE.set(x);
    x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
}

/// A number below `n`, which is not 0.
pub(crate) fn below(n: usize) -> usize {
    next() as usize % n
}

/// True once in `n`, and never without the mode: for what may happen at any time and seldom does.
#[inline]
pub fn roll(n: u32) -> bool {
    stress() && below(n as usize) == 0
}

/// Heaps of at most so many words are verified at each collection, of larger ones as many words in the long run.
const VERIFIED_WORDS: usize = 2048;

/// Verifies a heap, or not: see [`VERIFIED_WORDS`]. `ran`: code ran since the last collection.
pub(crate) unsafe fn look(heap: &Heap, roots: &[&mut [Term]], when: &str, ran: bool) {
    let words = heap.all_words() + heap.stack_words();
    if below(words / VERIFIED_WORDS + 1) == 0 {
        verify::check(heap, roots, when, ran);
    }
}

/// As [`gc::collect`].
///
/// # Safety
/// As there.
#[cold]
#[inline(never)]
pub(crate) unsafe fn collect(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    fullsweep: bool,
) -> usize {
    look(heap, roots, "before a collection", true);
    let mut moved = 0;
    while below(6) == 0 {
        disturb(heap);
        moved += match below(4) {
            0 => shrink_to_fit(heap, roots),
            n => gc::collect_once(heap, 0, roots, n == 1),
        };
        if below(2) == 0 {
            moved += gc::trim(heap, heap.stack_reserve, roots);
        }
        look(heap, roots, "between two collections", false);
    }
    disturb(heap);
    let full = fullsweep || below(4) == 0;
    moved += gc::collect_once(heap, need, roots, full);
    if let Some(spare) = spare(heap) {
        moved += gc::trim(heap, need + heap.stack_reserve + spare, roots);
    }
    look(heap, roots, "after a collection", false);
    heap.gc_wanted = below(8) == 0;
    moved
}

/// Words to spare after a collection; None: as it comes. The next may look at all of the heap, not only at what is young.
fn spare(heap: &Heap) -> Option<usize> {
    let words = heap.all_words() + heap.stack_words();
    match below(8) {
        0 => None,
        1 => Some(words / 16 + below(256)),
        2 | 3 => Some(words / 16 + below(16)),
        _ if words > LARGE_WORDS => Some(words / 16),
        _ => Some(0),
    }
}

/// Heaps of more words are left some room, in proportion to what a collection of them costs.
const LARGE_WORDS: usize = 1024;

/// Has the heap come from another past: one in which it grew, shrank, was swept often, or all of it lived.
fn disturb(heap: &mut Heap) {
    heap.all_survives |= below(3) == 0;
    heap.small_sweeps = [0, gc::SMALL_SWEEPS][below(2)];
    heap.grow_next = below(8) == 0;
    heap.shrink_next = below(2) == 0;
    heap.room = [0, below(12) as u8][usize::from(below(8) == 0)];
}
