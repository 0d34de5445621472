//! The state of the collection of atoms that their table uses: whether it is on, the number of the
//! cycle, when another is wanted, and the memory of pages that can be returned. The collection
//! itself is [`crate::atom_collection`].
//!
//! # Orderings
//! The number of the cycle is increased with `SeqCst`, before the threads are stopped. They see it
//! when they continue, since the stop is a pair of `SeqCst` accesses of each thread
//! (`crates/term/src/snapshot.rs`). All other accesses are relaxed: they publish nothing.

use crate::sync::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

static ON: AtomicBool = AtomicBool::new(false);
static CYCLE: AtomicU32 = AtomicU32::new(1);
/// Number of atoms made since the beginning of the last cycle, and the number that begins another.
static FRESH: AtomicU32 = AtomicU32::new(0);
static THRESHOLD: AtomicU32 = AtomicU32::new(MIN_NEW_ATOMS);

/// Whether more than half of the table is in use.
static HALF_FULL: AtomicBool = AtomicBool::new(false);

/// Minimum number of new atoms between two cycles.
const MIN_NEW_ATOMS: u32 = 1 << 17;
/// The same, if there is hardly any room left.
const LEAST_IF_FULL: u32 = 1 << 10;
/// Number of bytes of other memory for each new atom, from which on atoms count as little: eight
/// times what an atom takes.
const BYTES_FOR_ATOM: u64 = 8 * 64;
/// Number of new atoms beyond the threshold between two calls of [`ask`]: one may come while the
/// threshold changes.
const ASKING: u32 = 256;
/// Time between two cycles for a table that is full of atoms that are alive.
pub(crate) const REST: Duration = Duration::from_secs(1);
/// Maximum time that a thread waits for room.
const ROOM_TIME_LIMIT: Duration = Duration::from_secs(5);

/// Whether atoms are collected.
#[inline]
pub(crate) fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// The number of the current cycle. The collector increases it before it stops the threads, which
/// see it when they continue.
#[inline]
pub(crate) fn now() -> u32 {
    CYCLE.load(Ordering::Relaxed)
}

/// Whether more than half of the table is in use, so that no freed memory should keep an atom by a
/// stale word.
#[inline]
pub(crate) fn is_half_full() -> bool {
    HALF_FULL.load(Ordering::Relaxed)
}

/// Notes how full the table is after a cycle: `alive` of at most `limit` atoms are alive.
pub(crate) fn note_room(alive: u32, limit: u32) {
    HALF_FULL.store(on() && alive > limit / 2, Ordering::Relaxed);
}

/// The same when an atom is made.
#[inline]
pub(crate) fn note_use(alive: u32, limit: u32) {
    if alive > limit / 2 && !is_half_full() {
        note_room(alive, limit);
    }
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
    /// Whether a thread needs the cycle, or would.
    pressed: bool,
    /// Whether a cycle is under way.
    running: bool,
    /// Whether the last cycle was given up.
    failing: bool,
    /// Cycles that have ended, in whatever way.
    ended: u64,
    last: Option<Instant>,
    figures: Figures,
}

static STATE: Mutex<State> = Mutex::new(State {
    pressed: false,
    running: false,
    failing: false,
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

impl State {
    /// Begins a cycle as soon as possible.
    fn press(&mut self) {
        self.pressed = true;
        WANTED.notify_one();
    }
}

/// Called after an atom was made that may be collected.
#[inline]
pub(crate) fn made_one() {
    let fresh = FRESH.fetch_add(1, Ordering::Relaxed) + 1;
    let beyond = fresh.checked_sub(THRESHOLD.load(Ordering::Relaxed));
    if beyond.is_some_and(|n| n % ASKING == 0) {
        ask();
    }
}

/// Asks the collector to look at the number of new atoms.
fn ask() {
    let state = STATE.lock();
    WANTED.notify_one();
    drop(state);
}

/// Waits for a cycle, and returns whether there is room now: whether fewer than `limit` atoms are
/// alive, as `alive` counts them. If hardly any atoms were made since the last one, another would
/// find nothing, so it begins at most once in a while; but one that is under way may find that they
/// have died. No thread waits if the last cycle failed.
pub(crate) fn make_room(alive: impl Fn() -> u32, limit: u32) -> bool {
    note_room(alive(), limit);
    let few = LEAST_IF_FULL.min(limit / 64);
    let until = Instant::now() + ROOM_TIME_LIMIT;
    let mut state = STATE.lock();
    // The cycle under way may have begun before the atoms died.
    let enough = state.ended + 2;
    while alive() >= limit && state.ended < enough {
        let rested = state.last.is_none_or(|t| t.elapsed() > REST);
        if rested || FRESH.load(Ordering::Relaxed) >= few && !state.failing {
            state.press();
        }
        let left = until.saturating_duration_since(Instant::now());
        let expected = state.pressed || state.running;
        if state.failing || !expected || left.is_zero() {
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
        state.press();
        state = ENDED.wait_timeout(state, Duration::from_millis(100));
    }
}

/// Turns the collection on.
pub(crate) fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Waits until another cycle is wanted, which is under way from then on. In the first `rest` of
/// that time, only the need for room and `late` new atoms begin one; after that, `usual` new atoms
/// do.
pub(crate) fn wait(rest: Duration, usual: u32, late: u32) {
    let fresh = || FRESH.load(Ordering::Relaxed);
    let until = Instant::now() + rest;
    let mut state = STATE.lock();
    THRESHOLD.store(late.max(usual), Ordering::Relaxed);
    while !state.pressed && fresh() < late.max(usual) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        state = WANTED.wait_timeout(state, left);
    }
    // More may have been made since.
    THRESHOLD.store(usual, Ordering::Relaxed);
    while !state.pressed && fresh() < usual {
        state = WANTED.wait(state);
    }
    state.pressed = false;
    state.running = true;
}

/// Begins a cycle, and returns its number.
pub(crate) fn begin_cycle() -> u32 {
    FRESH.store(0, Ordering::Relaxed);
    CYCLE.fetch_add(1, Ordering::SeqCst) + 1
}

/// Ends a cycle, in whatever way, and changes the figures.
pub(crate) fn end_cycle(failed: bool, change: impl FnOnce(&mut Figures)) {
    let mut state = STATE.lock();
    state.ended += 1;
    state.running = false;
    state.failing = failed;
    state.last = Some(Instant::now());
    change(&mut state.figures);
    drop(state);
    ENDED.notify_all();
}

/// Returns the number of new atoms after which a cycle begins, and that after which it does not
/// rest before, in a table in which `alive` of at most `limit` atoms are alive. The last cycle has
/// looked through `bytes` bytes.
pub(crate) fn thresholds(alive: u32, limit: u32, bytes: u64) -> (u32, u32) {
    let half = (limit.saturating_sub(alive) / 2).max(LEAST_IF_FULL);
    let usual = MIN_NEW_ATOMS.max(alive / 2);
    let little = u32::try_from(bytes / BYTES_FOR_ATOM).unwrap_or(u32::MAX);
    let late = (usual + usual / 2).max(little);
    (usual.min(half), late.min(half))
}

/// Memory for pages and the names of their atoms, in pieces of equal size from one range of
/// addresses.
pub(crate) struct Chunks {
    /// The address of the first, and their number.
    pub(crate) region: usize,
    pub(crate) most: usize,
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
    const MOST: usize = 1 << 18;
    /// Number of chunks that are reserved for each full page: a chunk may keep few atoms for long.
    const SPARE: usize = 16;
    /// Divisor of a limited address space: chunks take at most this part of it.
    const PART: usize = 16;
    /// Number of chunks that become usable at a time.
    const STEP: usize = 16;

    /// Reserves addresses for at most this many full pages. None if there are too few.
    #[cfg(target_os = "linux")]
    pub(crate) fn reserve(pages: usize) -> Option<Chunks> {
        let full = pages + Chunks::STEP;
        let wanted = (full * Chunks::SPARE).min(Chunks::MOST);
        let most = match crate::sys::address_limit() {
            Some(all) => wanted.min(all / Chunks::PART / Chunks::BYTES),
            None => wanted,
        };
        let most = most / Chunks::STEP * Chunks::STEP;
        if most < full.min(Chunks::MOST) {
            return None;
        }
        let region = crate::sys::try_reserve((most + 1) * Chunks::BYTES)?;
        Some(Chunks {
            region: region.next_multiple_of(Chunks::BYTES),
            most,
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
            if self.usable >= self.most {
                return None;
            }
            // SAFETY: chunks of the reserved region that were never used.
            if !unsafe { crate::sys::try_commit(at, Chunks::STEP * Chunks::BYTES) } {
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
