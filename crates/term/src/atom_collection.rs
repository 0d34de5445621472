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
//!    process is made that never runs, and the threads go on (`crates/term/src/snapshot.rs`).
//! 3. Each aligned word of the copy that is the term of an atom marks the atom. Words that lead
//!    into the memory of names and entries mark the chunk that they lead to.
//! 4. Atoms without a mark that have not been found by their names since 1. are removed, each under
//!    the lock of its name. They have no name from then on.
//! 5. A page whose atoms are all dead leaves the table. Its chunk is returned in a later cycle, if
//!    that finds no word that leads there.
//!
//! # Invariants
//! - An atom that was dead in a snapshot is dead for ever, unless it is found by its name: a word
//!   can only be copied from where it is. Finding it notes the cycle under the lock that the
//!   removal takes.
//! - A thread that is finding or making an atom holds its term as a whole word before it reads the
//!   number of the cycle. So the snapshot has the word, or the thread notes the new cycle.
//! - What holds an atom in another form than its term keeps it for ever ([`crate::atom::keep`]):
//!   monitors by name, code, and literals that are atoms. What holds a number beside the term needs
//!   not: tables, exports and breakpoints have both.
//! - Libraries in C get atoms that stay from the functions that make and find them. Terms that they
//!   were passed are found wherever they are aligned.
//! - Numbers are never used again. An atom that was removed by mistake has no name
//!   ([`crate::atom::is_known`]), and is never another one; [`crate::verify`] looks for such atoms.
//! - Memory is found if it is private and was not excluded from copies (`MADV_DONTFORK`).
//!
//! # Costs
//! The program stops for as long as it takes to copy the tables of pages. A word that only looks
//! like an atom keeps it for a cycle. Stale words in free memory do the same until they are
//! overwritten.

pub use crate::atom_room::{Figures, collect_now, figures};

#[cfg(target_os = "linux")]
use {
    crate::atom,
    crate::atom_room::{self as room, Chunks},
    std::sync::atomic::Ordering,
    std::time::{Duration, Instant},
};

/// Has the atoms that are made from now on collected, by a thread of its own. With `every`, a cycle
/// begins after that number of new atoms. Returns the reason if that is impossible here. Only the
/// first call counts.
#[cfg(target_os = "linux")]
pub fn start(every: Option<u32>) -> Result<(), String> {
    let chunks = Chunks::reserve().ok_or("there are not enough addresses")?;
    let mut collector = Collector {
        region: chunks.region,
        every,
        left: Vec::new(),
        snapshots: crate::snapshot::Snapshots::prepare()?,
    };
    collector.set_threshold();
    let serve = move || {
        let mut reported = false;
        loop {
            room::wait();
            let begun = Instant::now();
            let result = collector.cycle();
            room::end_cycle(|f| match &result {
                Ok(c) => {
                    f.cycles += 1;
                    f.removed += u64::from(c.removed);
                    f.pages += u64::from(c.pages);
                    f.bytes = c.bytes;
                    f.longest_stop = f.longest_stop.max(c.stop);
                    f.longest_cycle = f.longest_cycle.max(begun.elapsed());
                }
                Err(_) => f.failures += 1,
            });
            if let Err(why) = result {
                if !reported {
                    crate::say!("purlin: atoms cannot be collected: {why}");
                    reported = true;
                }
                // What was asked for in the meantime waits.
                std::thread::sleep(room::REST);
            }
        }
    };
    let thread = std::thread::Builder::new().name("atoms".into());
    atom::use_chunks(chunks);
    room::turn_on();
    thread.spawn(serve).map_err(|e| e.to_string())?;
    Ok(())
}

/// The same for a system without the files of `proc(5)`.
#[cfg(not(target_os = "linux"))]
pub fn start(_: Option<u32>) -> Result<(), String> {
    Err("only on Linux".into())
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

/// Atoms and chunks that a snapshot refers to.
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
        let cycle = room::begin_cycle();
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
        // Those that left in an earlier cycle: threads that had looked a page up before are gone.
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
        room::set_threshold(self.every, atom::count(), atom::limit());
    }
}

#[cfg(target_os = "linux")]
fn set_slot(page: u32, slot: u32) {
    if let Some(p) = atom::page_of(page) {
        p.slot.store(slot, Ordering::Relaxed);
    }
}
