//! The collection of atoms.
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
//!    process is made that never runs, and the threads continue (`crates/term/src/snapshot.rs`).
//! 3. Each aligned word of the copy that is the term of an atom marks the atom. Words that lead
//!    into the memory of names and entries mark the chunk that they lead to.
//! 4. Atoms without a mark that have not been found by their names since 1. are removed: first from
//!    the sets of names, each set under its lock, then from the pages. They have no name from then
//!    on.
//! 5. A page whose atoms are all dead leaves the table. Its chunk is returned in a later cycle, if
//!    that finds no word that leads there.
//!
//! # Roots
//! Any aligned word of private memory and any register. So for each holder of atoms the only
//! question is whether it has whole words. The programs are in `tests/programs` and run with a
//! cycle after every 1,000 atoms; single words are the kinds of holders in `collected_atoms`.
//!
//! | holder | form | program |
//! | --- | --- | --- |
//! | heaps, fragments, stacks, registers of processes | terms | `list`, `map`, `closure` |
//! | dictionaries; hibernated processes | terms | `dictionary`; `hibernated` |
//! | messages in mailboxes and in transit, regions | terms | `message` (also `+Fregion 1`) |
//! | tables, their keys and names | terms | `table`, `key`, `table_name` |
//! | continuations of `ets:select` | terms | `continuation` |
//! | persistent terms and their keys | terms | `persistent` |
//! | timers | the message | `timer` |
//! | registered names, data of ports | words | `name`, `port_name`, `port_data` |
//! | monitors by name | a word at each end (`Rare::watched_by`) | `monitor`, `alone` |
//! | tags of monitors | terms | `tag` |
//! | pids, ports, references of other nodes | the node's entry | `far` |
//! | tables of nodes, caches of atoms of connections | words | programs of `nodes` |
//! | patterns of traces and their match specifications | terms | `trace` |
//! | exports and funs that name functions | words | `export`, `closure` |
//! | code: operands, literals, names of functions | kept for ever | all programs |
//! | libraries in C: atoms that they make or find | kept for ever | programs with `@nif` |
//! | libraries in C: atoms that they are passed | aligned words | programs with `@nif` |
//! | threads of the runtime: Rust values on stacks, in registers | words | all programs |
//! | replay files, images, crash dumps, binaries | names | `collected_atoms`, its last line |
//!
//! # Invariants
//! - An atom that was dead in a snapshot is dead for ever, unless it is found by its name: a word
//!   can only be copied from where it is. Finding it notes the cycle under the lock that the
//!   removal takes.
//! - A thread that is finding or making an atom holds its term as a whole word before it reads the
//!   number of the cycle. So the snapshot has the word, or the thread notes the new cycle.
//! - What holds an atom in another form than its term keeps it for ever ([`crate::atom::keep`]):
//!   code, and literals that are atoms. What holds a number beside the term needs not: tables,
//!   exports, monitors and breakpoints have both.
//! - Libraries in C get atoms that stay from the functions that make and find them. Terms that they
//!   were passed are found wherever they are aligned.
//! - Numbers are never used again. An atom that was removed by mistake has no name
//!   ([`crate::atom::is_known`]), and is never another one; [`crate::verify`] looks for such atoms.
//! - Memory is found if it is private and was not excluded from copies (`MADV_DONTFORK`).
//!
//! # When a cycle runs
//! After 131,072 new atoms that may die, or half as many as are alive if that is more; earlier if
//! the table is nearly full. A program that makes few atoms while it runs has no cycle. The longer
//! a cycle runs or stops the threads, the longer it is until the next one: cycles that run for long
//! get at most a tenth of a processor's time, and threads are stopped for at most a fiftieth. There
//! is no such rest once half as many atoms more have been made, if those take more than an eighth
//! of the node's memory or half of the table's room. After a cycle that failed, it is a second
//! until the next one, then two, and up to a minute. All atoms stay meanwhile.
//!
//! # Costs
//! Atoms that are made and dropped, on two processors at a load of 8; the resident set is that of
//! the last four fifths of the time, and a bystander asked a server each millisecond:
//!
//! | atoms | processor time | resident set | the bystander's 99th percentile |
//! | --- | --- | --- | --- |
//! | 100 million by `list_to_atom` | 153 s | 49 to 68 MiB | 109 us |
//! | 10 million by `binary_to_term` | 15.6 s | 45 to 56 MiB | 102 us |
//! | 10 million, ten keys an object | 26.9 s | 44 to 57 MiB | 125 us |
//! | a million names of nodes, in pids | 3.7 s | 36 to 53 MiB | 90 us |
//!
//! The program stops for as long as it takes to copy the tables of pages. A word that only looks
//! like an atom keeps it for a cycle. Stale words in free memory do the same until they are
//! overwritten. While more than half of the table is in use, heaps are overwritten when they are
//! freed, and a cycle first returns the C library's free pages to the system. So the atoms of
//! processes that have ended, and of heaps that were copied, never fill it. What natives have
//! gathered may stay at the end of an arena of the C library, which does not return it, until it is
//! overwritten. (In stress mode the lists of [`crate::verify`] lie there.)

pub use crate::atom_room::{Figures, collect_now, figures};

#[cfg(target_os = "linux")]
use {
    crate::atom,
    crate::atom_room::{self as room, Chunks},
    std::sync::atomic::Ordering,
    std::time::{Duration, Instant},
};

/// Starts the collection of atoms that are made from now on, by a thread of its own. With `every`,
/// a cycle begins after that number of new atoms. Returns the reason if that is impossible here. If
/// cycles fail again and again, that is printed if `report` says so. Only the first call counts.
#[cfg(target_os = "linux")]
pub fn start(every: Option<u32>, report: bool) -> Result<(), String> {
    let pages = (atom::limit() as usize).div_ceil(atom::PAGE);
    let chunks = Chunks::reserve(pages).ok_or("there are not enough addresses")?;
    let mut collector = Collector {
        region: chunks.region,
        most: chunks.most,
        every,
        left: Vec::new(),
        snapshots: crate::snapshot::Snapshots::prepare()?,
    };
    let thread = std::thread::Builder::new().name("atoms".into());
    let serve = move || collector.serve(report);
    thread.spawn(serve).map_err(|e| e.to_string())?;
    atom::use_chunks(chunks);
    room::turn_on();
    Ok(())
}

/// The same for a system without the files of `proc(5)`.
#[cfg(not(target_os = "linux"))]
pub fn start(_: Option<u32>, _: bool) -> Result<(), String> {
    Err("only on Linux".into())
}

#[cfg(target_os = "linux")]
struct Collector {
    /// The address of the first chunk, and their number.
    region: usize,
    most: usize,
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

/// Cycles that use more processor time rest for nine times as long.
#[cfg(target_os = "linux")]
const LONG: Duration = Duration::from_millis(100);
/// Longest rest.
#[cfg(target_os = "linux")]
const LONGEST_REST: Duration = Duration::from_secs(60);

/// Failures in a row after which they are reported, and after which the rest is no longer doubled.
#[cfg(target_os = "linux")]
const REPORTED: u32 = 3;
#[cfg(target_os = "linux")]
const MOST_DOUBLINGS: u32 = 6;

/// Returns the rest after a cycle that `used` so much processor time and stopped the threads for
/// `stop`: they are stopped for at most a 50th of the time.
#[cfg(target_os = "linux")]
fn rest_after(stop: Duration, used: Duration) -> Duration {
    let rest = match used > LONG {
        true => used * 9,
        false => Duration::ZERO,
    };
    rest.max(stop * 50).min(LONGEST_REST)
}

/// Returns the processor time of this thread.
#[cfg(target_os = "linux")]
fn processor_time() -> Duration {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is this frame's; it stays zero if the clock cannot be read.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
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
        // One without a slot is beyond the marks.
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
    /// Runs cycles for ever.
    fn serve(&mut self, mut report: bool) {
        let mut rest = Duration::ZERO;
        let mut failures = 0;
        let mut bytes = 0;
        loop {
            let (usual, late) = room::thresholds(atom::count(), atom::limit(), bytes);
            match self.every {
                Some(every) => room::wait(Duration::ZERO, every, every),
                None => room::wait(rest, usual, late),
            }
            let (begun, used_before) = (Instant::now(), processor_time());
            let result = self.cycle();
            let took = begun.elapsed();
            let used = processor_time().saturating_sub(used_before);
            room::note_room(atom::count(), atom::limit());
            room::end_cycle(result.is_err(), |f| match &result {
                Ok(c) => {
                    f.cycles += 1;
                    f.removed += u64::from(c.removed);
                    f.pages += u64::from(c.pages);
                    f.bytes = c.bytes;
                    f.longest_stop = f.longest_stop.max(c.stop);
                    f.longest_cycle = f.longest_cycle.max(took);
                }
                Err(_) => f.failures += 1,
            });
            match result {
                Ok(c) => {
                    failures = 0;
                    bytes = c.bytes;
                    rest = rest_after(c.stop, used);
                }
                Err(why) => {
                    let rest = room::REST * (1 << failures);
                    failures = (failures + 1).min(MOST_DOUBLINGS);
                    // A busy machine may delay a thread.
                    if failures >= REPORTED && std::mem::take(&mut report) {
                        crate::say!("purlin: atoms cannot be collected: {why}");
                    }
                    // What is asked for in the meantime waits.
                    std::thread::sleep(rest);
                }
            }
        }
    }
    fn cycle(&mut self) -> Result<Cycle, String> {
        if room::is_half_full() {
            crate::sys::trim_allocator();
        }
        let cycle = room::begin_cycle();
        let (pages, top) = atom::mortal_pages();
        for (slot, &p) in (0..).zip(&pages) {
            set_slot(p, slot);
        }
        let mut marks = Marks {
            atoms: vec![0; pages.len() * WORDS],
            chunks: vec![false; self.most],
            region: self.region,
            top: u64::from(top),
        };
        let skip = self.region..self.region + self.most * Chunks::BYTES;
        let looked = self.snapshots.look(skip, &mut |words| marks.look(words));
        let result = looked.map(|(bytes, stop)| (bytes, stop, sweep(&pages, cycle, &marks)));
        for &p in &pages {
            set_slot(p, atom::NO_SLOT);
        }
        let (bytes, stop, removed) = result?;
        // Those that left in an earlier cycle: threads that had looked a page up before are gone.
        let led_to = |n: &u32| marks.chunks[*n as usize];
        let (stay, free): (Vec<u32>, Vec<u32>) = self.left.drain(..).partition(led_to);
        self.left = stay;
        for n in &free {
            // SAFETY: no name is in the chunk, and no thread reads one there any more.
            unsafe {
                crate::sys::decommit(self.region + *n as usize * Chunks::BYTES, Chunks::BYTES);
            }
        }
        atom::give_chunks(&free);
        let region = self.region;
        let chunk_of = |at: usize| ((at - region) / Chunks::BYTES) as u32;
        self.left.extend(atom::take_pages(chunk_of));
        Ok(Cycle {
            removed,
            pages: free.len() as u32,
            bytes,
            stop,
        })
    }
}

/// Removes the atoms of these pages, which have the slots from 0 on, that have no mark and have not
/// been found since the beginning of the cycle. Returns their number.
#[cfg(target_os = "linux")]
fn sweep(pages: &[u32], cycle: u32, marks: &Marks) -> u32 {
    let mut dead = vec![0u64; pages.len() * WORDS];
    atom::sweep_names(
        cycle,
        |slot, place| marks.has(slot, place),
        |slot, place| dead[slot * WORDS + place / 64] |= 1 << (place % 64),
    );
    let pages = pages.iter().zip(dead.chunks_exact(WORDS));
    pages.map(|(&p, of)| atom::clear_entries(p, of)).sum()
}

#[cfg(target_os = "linux")]
fn set_slot(page: u32, slot: u32) {
    if let Some(p) = atom::page_of(page) {
        p.slot.store(slot, Ordering::Relaxed);
    }
}
