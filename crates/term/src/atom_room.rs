//! The state of the collection of atoms that their table uses: whether it is on, the number of the
//! cycle, when another is wanted, and the memory of pages that can be returned. The collection
//! itself is [`crate::atom_collection`].
//!
//! # Orderings
//! The number of the cycle is increased with `SeqCst`, before the threads are stopped. They see it
//! when they go on, since the stop is a pair of `SeqCst` accesses of each thread
//! (`crates/term/src/snapshot.rs`). All other accesses are relaxed: they publish nothing.

use crate::sync::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

static ON: AtomicBool = AtomicBool::new(false);
static CYCLE: AtomicU32 = AtomicU32::new(1);
/// Number of atoms made since the beginning of the last cycle, and the number that begins another.
static FRESH: AtomicU32 = AtomicU32::new(0);
static THRESHOLD: AtomicU32 = AtomicU32::new(LEAST);

/// Minimum number of new atoms between two cycles.
const LEAST: u32 = 1 << 16;
/// The same, if there is hardly any room left.
const LEAST_IF_FULL: u32 = 1 << 10;
/// Time between two cycles for a table that is full of atoms that are alive.
pub(crate) const REST: Duration = Duration::from_secs(1);
/// Maximum time that a thread waits for room.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether atoms are collected.
#[inline]
pub(crate) fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The number of the current cycle. The collector increases it before it stops the threads, which
/// see it when they go on.
#[inline]
pub(crate) fn now() -> u32 {
    CYCLE.load(Ordering::Relaxed)
}

/// Figures about cycles.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    /// Number of completed cycles.
    pub cycles: u64,
    /// Number of cycles that were given up.
    pub failures: u64,
    /// Number of removed atoms.
    pub removed: u64,
    /// Number of pages of atoms that were returned.
    pub pages: u64,
    /// Bytes looked through in the last cycle.
    pub bytes: u64,
    /// Longest time that the threads were stopped, and that a cycle took.
    pub longest_stop: Duration,
    pub longest_cycle: Duration,
}

struct State {
    wanted: bool,
    /// Cycles that have ended, in whatever way.
    ended: u64,
    last: Option<Instant>,
    figures: Figures,
}

static STATE: Mutex<State> = Mutex::new(State {
    wanted: false,
    ended: 0,
    last: None,
    figures: Figures {
        cycles: 0,
        failures: 0,
        removed: 0,
        pages: 0,
        bytes: 0,
        longest_stop: Duration::ZERO,
        longest_cycle: Duration::ZERO,
    },
});
static WANTED: Condvar = Condvar::new();
static ENDED: Condvar = Condvar::new();

/// Returns the figures of all cycles so far.
pub fn figures() -> Figures {
    STATE.lock().figures
}

/// Called after an atom was made.
#[inline]
pub(crate) fn made_one() {
    let fresh = FRESH.fetch_add(1, Ordering::Relaxed) + 1;
    if fresh == THRESHOLD.load(Ordering::Relaxed) {
        ask();
    }
}

fn ask() {
    STATE.lock().wanted = true;
    WANTED.notify_one();
}

/// Waits for a cycle, and returns whether there is room now: whether fewer than `limit` atoms are
/// alive, as `alive` counts them. If hardly any atoms were made since the
/// last one, another would find nothing: it begins at most once in a while, and no thread waits for
/// it.
pub(crate) fn make_room(alive: impl Fn() -> u32, limit: u32) -> bool {
    let few = LEAST_IF_FULL.min(limit / 64);
    let mut state = STATE.lock();
    if FRESH.load(Ordering::Relaxed) < few {
        if state.last.is_none_or(|t| t.elapsed() > REST) {
            state.wanted = true;
            WANTED.notify_one();
        }
        return false;
    }
    let until = Instant::now() + PATIENCE;
    // The cycle under way may have begun before the atoms died.
    let enough = state.ended + 2;
    while alive() >= limit && state.ended < enough {
        state.wanted = true;
        WANTED.notify_one();
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        state = ENDED.wait_timeout(state, left);
    }
    alive() < limit
}

/// Runs a cycle and waits for its end. For tests.
pub fn collect_now() {
    let mut state = STATE.lock();
    let enough = state.ended + 2;
    while on() && state.ended < enough {
        state.wanted = true;
        WANTED.notify_one();
        state = ENDED.wait_timeout(state, Duration::from_millis(100));
    }
}

/// Turns the collection on.
pub(crate) fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Waits until another cycle is wanted.
pub(crate) fn wait() {
    let mut state = STATE.lock();
    while !state.wanted {
        state = WANTED.wait(state);
    }
    state.wanted = false;
}

/// Begins a cycle, and returns its number.
pub(crate) fn begin_cycle() -> u32 {
    FRESH.store(0, Ordering::Relaxed);
    CYCLE.fetch_add(1, Ordering::SeqCst) + 1
}

/// Ends a cycle, in whatever way, and changes the figures.
pub(crate) fn end_cycle(change: impl FnOnce(&mut Figures)) {
    let mut state = STATE.lock();
    state.ended += 1;
    state.last = Some(Instant::now());
    change(&mut state.figures);
    drop(state);
    ENDED.notify_all();
}

/// Sets the number of new atoms after which a cycle begins: `every`, or one that suits a table with
/// so many atoms `alive`, of at most `limit`.
pub(crate) fn set_threshold(every: Option<u32>, alive: u32, limit: u32) {
    let room = limit.saturating_sub(alive);
    let usual = LEAST.max(alive / 2).min((room / 2).max(LEAST_IF_FULL));
    let threshold = every.unwrap_or(usual);
    THRESHOLD.store(threshold, Ordering::Relaxed);
    // More may have been made since.
    if FRESH.load(Ordering::Relaxed) >= threshold {
        ask();
    }
}

/// Memory for pages and the names of their atoms, in pieces of equal size from one range of
/// addresses.
pub(crate) struct Chunks {
    /// The address of the first.
    pub(crate) region: usize,
    /// Number of chunks that have been used, and that can be used.
    used: usize,
    usable: usize,
    /// Numbers, since addresses would look like pointers to the chunks.
    free: Vec<u32>,
}

impl Chunks {
    /// Number of bytes of a chunk: a page, and 100 bytes for each name of average.
    pub(crate) const BYTES: usize = 1 << 16;
    /// Maximum number of chunks.
    pub(crate) const MOST: usize = 1 << 18;
    /// Number of chunks that become usable at a time.
    const STEP: usize = 16;

    #[cfg(target_os = "linux")]
    pub(crate) fn reserve() -> Option<Chunks> {
        let region = crate::sys::try_reserve((Chunks::MOST + 1) * Chunks::BYTES)?;
        Some(Chunks {
            region: region.next_multiple_of(Chunks::BYTES),
            used: 0,
            usable: 0,
            free: Vec::new(),
        })
    }
    /// Returns the address of an unused chunk, which is zeroed.
    pub(crate) fn take(&mut self) -> Option<usize> {
        if let Some(n) = self.free.pop() {
            return Some(self.region + n as usize * Chunks::BYTES);
        }
        if self.used == self.usable {
            let at = self.region + self.usable * Chunks::BYTES;
            if self.usable >= Chunks::MOST
                || !crate::sys::try_commit(at, Chunks::STEP * Chunks::BYTES)
            {
                return None;
            }
            self.usable += Chunks::STEP;
        }
        self.used += 1;
        Some(self.region + (self.used - 1) * Chunks::BYTES)
    }
    /// Takes chunks back, by their numbers.
    pub(crate) fn give(&mut self, free: &[u32]) {
        self.free.extend_from_slice(free);
    }
}
