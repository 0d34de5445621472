//! The collection of atoms (`+Fatoms collect`).
//!
//! An atom is dead when nothing in the runtime refers to it. Atoms are leaves, so no graph has to
//! be traversed: it suffices to look at all memory once. A cycle takes a snapshot of the memory of
//! the whole process, looks through it beside the program, and removes the atoms that it does not
//! have. Nothing else in the runtime takes part. There is no list of roots that could be
//! incomplete, and no barrier.
//!
//! # A cycle
//! 1. The number of the cycle is increased. An atom that is made, or found by its name, notes the
//!    current cycle from then on ([`crate::atom`]).
//! 2. All threads are stopped by a signal, which saves their registers in memory. A copy of the
//!    process is made that never runs, and the threads go on ([`crate::snapshot`]).
//! 3. Each aligned word of the copy that is the term of an atom marks the atom. Words that lead into
//!    the memory of names and entries mark the chunk that they lead to.
//! 4. Atoms without a mark that have not been found by their names since 1. are removed, each under
//!    the lock of its name. They have no name from then on.
//! 5. A page whose atoms are all dead leaves the table. Its chunk is returned in a later cycle, if
//!    that finds no word that leads there.
//!
//! # Invariants
//! - An atom that was dead in a snapshot is dead for ever, unless it is found by its name: a word
//!    can only be copied from where it is. Finding it notes the cycle under the lock that the removal
//!    takes.
//! - A thread that is finding or making an atom holds its term as a whole word before it reads the
//!    number of the cycle. So the snapshot has the word, or the thread notes the new cycle.
//! - Whoever holds an atom in another form than its term keeps it for ever ([`crate::atom::keep`]):
//!    monitors by name, code, and literals that are atoms. What holds a number beside the term needs
//!    not: tables, exports and breakpoints have both.
//! - Libraries in C get atoms that stay from the functions that make and find them. Terms that they
//!    were passed are found wherever they are aligned.
//! - Numbers are never used again. An atom that was removed by mistake has no name
//!    ([`crate::atom::is_known`]), and is never another one; [`crate::verify`] looks for such atoms.
//! - Memory is found if it is private and was not excluded from copies (`MADV_DONTFORK`).
//!
//! # Costs
//! The program stops for as long as it takes to copy the tables of pages. A word that only looks
//! like an atom keeps it for a cycle. Stale words in free memory do the same until they are
//! overwritten.

use crate::atom;
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
const REST: Duration = Duration::from_secs(1);
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

/// Waits for a cycle, and returns whether there is room now. If hardly any atoms were made since the
/// last one, another would find nothing: it begins at most once in a while, and nobody waits for it.
pub(crate) fn make_room() -> bool {
    let few = LEAST_IF_FULL.min(atom::limit() / 64);
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
    while atom::count() >= atom::limit() && state.ended < enough {
        state.wanted = true;
        WANTED.notify_one();
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        state = ENDED.wait_timeout(state, left);
    }
    atom::count() < atom::limit()
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

/// Has the atoms that are made from now on collected, by a thread of its own. With `every`, a cycle
/// begins after that number of new atoms. Returns the reason if that is impossible here. Only the
/// first call counts.
#[cfg(target_os = "linux")]
pub fn start(every: Option<u32>) -> Result<(), String> {
    use crate::snapshot;
    let chunks = Chunks::reserve().ok_or("there are not enough addresses")?;
    let mut collector = Collector {
        region: chunks.region,
        every,
        left: Vec::new(),
        snapshots: snapshot::Snapshots::prepare()?,
    };
    collector.set_threshold();
    let serve = move || {
        let mut told = false;
        loop {
            let mut state = STATE.lock();
            while !state.wanted {
                state = WANTED.wait(state);
            }
            state.wanted = false;
            drop(state);
            let begun = Instant::now();
            let result = collector.cycle();
            let mut state = STATE.lock();
            state.ended += 1;
            state.last = Some(Instant::now());
            let f = &mut state.figures;
            match &result {
                Ok(c) => {
                    f.cycles += 1;
                    f.removed += u64::from(c.removed);
                    f.pages += u64::from(c.pages);
                    f.bytes = c.bytes;
                    f.longest_stop = f.longest_stop.max(c.stop);
                    f.longest_cycle = f.longest_cycle.max(begun.elapsed());
                }
                Err(_) => f.failures += 1,
            }
            drop(state);
            ENDED.notify_all();
            if let Err(why) = result {
                if !told {
                    crate::say!("purlin: atoms cannot be collected: {why}");
                    told = true;
                }
                // What was asked for in the meantime waits.
                std::thread::sleep(REST);
            }
        }
    };
    let thread = std::thread::Builder::new().name("atoms".into());
    atom::use_chunks(chunks);
    ON.store(true, Ordering::Relaxed);
    thread.spawn(serve).map_err(|e| e.to_string())?;
    Ok(())
}

/// The same for a system without the files of `proc(5)`.
#[cfg(not(target_os = "linux"))]
pub fn start(_: Option<u32>) -> Result<(), String> {
    Err("only on Linux".into())
}

/// Memory for pages and the names of their atoms, in pieces of equal size from one range of
/// addresses.
pub(crate) struct Chunks {
    region: usize,
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
    /// Number of chunks that become usable at a time.
    const STEP: usize = 16;

    #[cfg(target_os = "linux")]
    fn reserve() -> Option<Chunks> {
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

#[cfg(target_os = "linux")]
struct Collector {
    region: usize,
    every: Option<u32>,
    /// Chunks, by their numbers, whose pages have left the table.
    left: Vec<u32>,
    snapshots: crate::snapshot::Snapshots,
}

/// Result of a cycle.
#[cfg(target_os = "linux")]
struct Cycle {
    removed: u32,
    pages: u32,
    bytes: u64,
    stop: Duration,
}

/// What a snapshot refers to.
#[cfg(target_os = "linux")]
struct Marks {
    /// A bit for each atom of the pages that had a slot.
    atoms: Vec<u64>,
    /// Whether a word leads into a chunk.
    chunks: Vec<bool>,
    region: usize,
    /// Numbers of atoms are below.
    top: u64,
}

/// Words of marks for a page.
#[cfg(target_os = "linux")]
const WORDS: usize = atom::PAGE / 64;

#[cfg(target_os = "linux")]
impl Marks {
    fn look(&mut self, words: &[u64]) {
        let tag = crate::word::TAG_ATOM;
        for &w in words {
            if w & 0x3F == tag && w >> 6 < self.top {
                self.mark((w >> 6) as u32);
            }
            let chunk = (w as usize).wrapping_sub(self.region) / Chunks::BYTES;
            if let Some(led_to) = self.chunks.get_mut(chunk) {
                *led_to = true;
            }
        }
    }
    fn mark(&mut self, i: u32) {
        let (Some(page), place) = atom::place_of(i) else {
            return;
        };
        let slot = page.slot.load(Ordering::Relaxed) as usize;
        if let Some(bits) = self.atoms.get_mut(slot.saturating_mul(WORDS) + place / 64) {
            *bits |= 1 << (place % 64);
        }
    }
    fn has(&self, slot: usize, place: usize) -> bool {
        self.atoms[slot * WORDS + place / 64] >> (place % 64) & 1 != 0
    }
}

#[cfg(target_os = "linux")]
impl Collector {
    fn cycle(&mut self) -> Result<Cycle, String> {
        let cycle = CYCLE.fetch_add(1, Ordering::SeqCst) + 1;
        FRESH.store(0, Ordering::Relaxed);
        let (pages, top) = atom::mortal_pages();
        for (slot, &p) in (0..).zip(&pages) {
            set_slot(p, slot);
        }
        let mut marks = Marks {
            atoms: vec![0; pages.len() * WORDS],
            chunks: vec![false; Chunks::MOST],
            region: self.region,
            top: u64::from(top),
        };
        let skip = self.region..self.region + Chunks::MOST * Chunks::BYTES;
        let looked = self.snapshots.look(skip, &mut |words| marks.look(words));
        for &p in &pages {
            set_slot(p, u32::MAX);
        }
        let (bytes, stop) = looked?;
        let mut removed = 0;
        for (slot, &p) in pages.iter().enumerate() {
            removed += atom::sweep_page(p, cycle, |place| marks.has(slot, place));
        }
        // Those that left in an earlier cycle: nobody who looked a page up before is still there.
        let led_to = |n: &u32| marks.chunks[*n as usize];
        let (stay, free): (Vec<u32>, Vec<u32>) = self.left.drain(..).partition(led_to);
        self.left = stay;
        for n in &free {
            crate::sys::decommit(self.region + *n as usize * Chunks::BYTES, Chunks::BYTES);
        }
        atom::give_chunks(&free);
        for &p in &pages {
            if let Some(at) = atom::take_page(p) {
                self.left.push(((at - self.region) / Chunks::BYTES) as u32);
            }
        }
        self.set_threshold();
        Ok(Cycle {
            removed,
            pages: free.len() as u32,
            bytes,
            stop,
        })
    }
    fn set_threshold(&self) {
        let alive = atom::count();
        let room = atom::limit().saturating_sub(alive);
        let usual = LEAST.max(alive / 2).min((room / 2).max(LEAST_IF_FULL));
        THRESHOLD.store(self.every.unwrap_or(usual), Ordering::Relaxed);
        // More may have been made since than the new threshold.
        if FRESH.load(Ordering::Relaxed) >= self.every.unwrap_or(usual) {
            ask();
        }
    }
}

#[cfg(target_os = "linux")]
fn set_slot(page: u32, slot: u32) {
    if let Some(p) = atom::page_of(page) {
        p.slot.store(slot, Ordering::Relaxed);
    }
}
