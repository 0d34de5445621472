//! The stress mode of the collector: each collection takes a random one of the possible ways, so
//! that small programs reach, in seconds, branches which need large heaps, full old generations or
//! bad luck.
//!
//! `PURLIN_GC_STRESS=1` turns it on, with a seed from the clock; any other number except 0 is the
//! seed. Each thread draws its own numbers from it, so a thread does the same with the same seed,
//! as far as its processes do. Reports of faults have the seed ([`seed_note`]).
//!
//! In this mode
//! * a collection mostly leaves no more room than was asked for, and in large heaps a sixteenth: so
//!   the next instruction that allocates collects again, and natives find the block full and build
//!   in fragments. No code outside the collector has to ask for the mode;
//! * each collection is minor or full, copies the old generation or collects it in place, promotes
//!   young objects at once, settles the block as the old generation, gives the old generation no
//!   room, leaves regions of any size, finds too little and grows, moves the heap once more, or
//!   follows another one or a compaction;
//! * a message is sent as a plain copy, in the way of small ones or of large ones, or through
//!   regions from any number of words on; and so are the arguments of a new process, terms stored
//!   in tables, and exit reasons (`signal::share::THRESHOLD` of the runtime);
//! * a message is read in place, however small it is, and so becomes a fragment when it is
//!   received;
//! * a process that begins to wait sweeps its heap as if it had got much ([`crate::gc::rest`]), is
//!   compacted at once, or is left to the upkeep thread, which hardly sleeps and compacts it while
//!   others send to it; the larger it is, the more seldom;
//! * a time slice is mostly a few reductions, so that natives yield and are called again, or trap;
//! * no register that a receive finds dead holds anything;
//! * memory left behind is poisoned, and heaps are verified before and after each collection, and
//!   after each receive ([`crate::verify`]): small ones always, large ones by samples, so that a
//!   collection costs in proportion to what it copies, and a receive as much as [`VERIFIED_WORDS`]
//!   in the long run.

use crate::test_modes::{Switch, mixed};
use std::cell::Cell;

static SWITCH: Switch = Switch::new("PURLIN_GC_STRESS", |n| match n {
    1 => {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |d| d.as_nanos() as u64);
        // Short enough to type; never 0 or 1.
        mixed(now ^ u64::from(std::process::id()) << 32) % 1_000_000_000 + 2
    }
    seed => seed,
});

/// The seed of this run; 0: the mode is off.
pub fn seed() -> u64 {
    SWITCH.seed()
}

/// Whether `PURLIN_GC_STRESS` is set to a number other than 0 in the environment.
#[inline(always)]
pub fn stress() -> bool {
    SWITCH.is_on()
}

/// The setting that repeats this run, for reports of faults; empty without the mode.
pub fn seed_note() -> String {
    match seed() {
        0 => String::new(),
        n => format!(" (PURLIN_GC_STRESS={n})"),
    }
}

thread_local! {
    static NUMBERS: Cell<u64> = const { Cell::new(0) };
}

fn next() -> u64 {
    NUMBERS.with(|numbers| SWITCH.next(numbers))
}

/// A random number below `n`, which is not 0.
pub fn below(n: usize) -> usize {
    next() as usize % n
}

/// True once in `n` calls, and never without the mode: for events that may happen at any time but
/// seldom do.
#[inline]
pub fn roll(n: u32) -> bool {
    stress() && below(n as usize) == 0
}

/// Heaps of at most this many words are verified at each collection; of larger ones, as many words
/// in the long run.
const VERIFIED_WORDS: usize = 2048;

/// True once in `n` calls, and for a large heap so much more seldom that an action on all of it
/// costs the same in the long run.
pub fn once_in(n: usize, words: usize) -> bool {
    below(n * (words / VERIFIED_WORDS + 1)) == 0
}

/// The word that fills a block whose terms were moved away, in stress mode: a boxed pointer to an
/// impossible address.
pub const POISON: u64 = 0xDEAD_BEEF_DEAD_BEEA;

/// Fills `words` words at `p`, of any type of that size, with [`POISON`].
///
/// # Safety
/// They are not in use any more.
pub(crate) unsafe fn poison<T>(p: *mut T, words: usize) {
    let p = p.cast::<u64>();
    // SAFETY: by the contract, the words are not in use.
    unsafe {
        for i in 0..words {
            p.add(i).write(POISON);
        }
    }
}
