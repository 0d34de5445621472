//! A sampling profiler of schedulers: stack samples, taken while turned on.
//!
//! A thread adds up the time for which processes run. Each [`TICK_NANOSECONDS`] make a sample due,
//! which is taken of whatever runs a random number of reductions later. So a process that runs
//! briefly and then waits is sampled in the middle of its work like any other, not where it waits.
//! Code that has run for a tick without a break (a native that takes long) is sampled itself.
//!
//! # Invariants
//! * While off, this costs two looks at a flag in a time slice.
//! * The table is bounded ([`STACKS`]): samples of other stacks are counted as `lost`.
//! * Addresses are keys only until a module is freed, as in [`crate::accounts`].

use crate::accounts::{self, FRAMES, Frame};
use crate::clock;
use crate::process::Cx;
use crate::sync::{Mutex, MutexGuard};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Running time between two samples of a thread.
pub const TICK_NANOSECONDS: u64 = 2_000_000;
/// Maximum number of different stacks.
pub const STACKS: usize = 4096;

static ON: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
struct Table {
    by_address: HashMap<[usize; FRAMES], usize>,
    by_frames: HashMap<Vec<Frame>, usize>,
    stacks: Vec<(Vec<Frame>, u64)>,
    lost: u64,
    /// Number of freed modules when the keys were made.
    freed: usize,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock()
}

/// The record of a thread's own time.
#[derive(Clone, Copy)]
struct Mine {
    /// Time of the last look.
    since: i64,
    /// Reductions left at that time.
    reductions: i64,
    /// Nanoseconds that do not make a full sample yet.
    nanoseconds: u64,
    /// Number of samples due after `countdown` reductions; 0 if none are.
    due: u64,
    /// 0 if the number of reductions is not chosen yet.
    countdown: i64,
    random: u64,
    /// The call of [`start`] that this belongs to.
    started: u32,
}

const RANDOM: u64 = 0x9E37_79B9_7F4A_7C15;

thread_local! {
    static MINE: Cell<Mine> = const {
        Cell::new(Mine {
            since: 0,
            reductions: 0,
            nanoseconds: 0,
            due: 0,
            countdown: 0,
            random: RANDOM,
            started: 0,
        })
    };
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Mine {
    /// Returns the record of this thread. Samples of an earlier profile are dropped.
    fn get() -> Mine {
        let m = MINE.get();
        let started = STARTED.load(Ordering::Relaxed);
        if m.started == started {
            return m;
        }
        Mine {
            since: 0,
            reductions: 0,
            nanoseconds: 0,
            due: 0,
            countdown: 0,
            random: m.random,
            started,
        }
    }
    /// Returns the nanoseconds since the last look; None if there was none.
    fn took(&mut self) -> Option<u64> {
        let now = clock::elapsed();
        let since = std::mem::replace(&mut self.since, now);
        (since != 0).then(|| now.saturating_sub(since).max(0) as u64)
    }
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// Starts sampling. If it was on, earlier samples are kept.
pub fn start() {
    let mut t = table();
    if !ON.load(Ordering::Relaxed) {
        *t = Some(Table::default());
        STARTED.fetch_add(1, Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
    }
}

/// Stops sampling and drops the samples.
pub fn stop() {
    let mut t = table();
    ON.store(false, Ordering::Relaxed);
    *t = None;
}

/// The samples since [`start`].
pub struct Samples {
    /// Stacks, innermost frame first, and their number of samples.
    pub stacks: Vec<(Vec<Frame>, u64)>,
    /// Number of samples of stacks beyond the limit.
    pub lost: u64,
}

/// Returns the samples so far; None if sampling is off.
pub fn samples() -> Option<Samples> {
    table().as_ref().map(|t| Samples {
        stacks: t.stacks.clone(),
        lost: t.lost,
    })
}

/// Whether samples are taken.
#[inline(always)]
pub(crate) fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Starts a time slice of at most `most` reductions, and returns how many it gets.
#[cold]
pub(crate) fn begins(most: i64) -> i64 {
    let mut m = Mine::get();
    m.since = clock::elapsed();
    if m.due > 0 && m.countdown == 0 {
        m.countdown = 1 + (m.random() % most.max(1) as u64) as i64;
    }
    m.reductions = match m.due {
        0 => most,
        _ => m.countdown.clamp(1, most),
    };
    MINE.set(m);
    m.reductions
}

/// Called when the process in the context has stopped at `cx.interp.pc` with its stack intact, or
/// with its stack gone (`ended`).
#[cold]
pub(crate) fn ran(cx: &mut Cx, ended: bool) {
    let mut m = Mine::get();
    let used = (m.reductions - cx.reds).max(0);
    m.reductions = cx.reds;
    let Some(took) = m.took() else {
        MINE.set(m);
        return;
    };
    let mut samples = took / TICK_NANOSECONDS;
    m.nanoseconds += took % TICK_NANOSECONDS;
    if m.due > 0 {
        // At least 1 as long as a sample is due.
        m.countdown = (m.countdown - used).max(i64::from(ended));
        if m.countdown <= 0 {
            samples += m.due;
            (m.due, m.countdown) = (0, 0);
        }
    } else if m.nanoseconds >= TICK_NANOSECONDS {
        m.due = m.nanoseconds / TICK_NANOSECONDS;
        m.nanoseconds %= TICK_NANOSECONDS;
    }
    MINE.set(m);
    if samples > 0 {
        record(cx, samples, ended);
    }
}

/// Called before a dirty thread runs a process.
#[cold]
pub(crate) fn begins_dirty() {
    let mut m = Mine::get();
    m.since = clock::elapsed();
    MINE.set(m);
}

/// Called after it has run it. Natives of these pools take long, so the one that completes a sample
/// is the sample.
#[cold]
pub(crate) fn ran_dirty(cx: &mut Cx, ended: bool) {
    let mut m = Mine::get();
    m.nanoseconds += m.took().unwrap_or(0);
    let samples = m.nanoseconds / TICK_NANOSECONDS;
    m.nanoseconds %= TICK_NANOSECONDS;
    MINE.set(m);
    if samples > 0 {
        record(cx, samples, ended);
    }
}

fn record(cx: &mut Cx, samples: u64, ended: bool) {
    let addresses = match ended {
        true => [0; FRAMES],
        false => accounts::addresses_at(cx, cx.interp.pc),
    };
    let mut t = table();
    let Some(t) = t.as_mut() else { return };
    let freed = accounts::freed();
    if t.freed != freed {
        t.freed = freed;
        t.by_address.clear();
    }
    if !ended && let Some(&i) = t.by_address.get(&addresses) {
        t.stacks[i].1 += samples;
        return;
    }
    let frames = match ended {
        true => accounts::initial(cx),
        false => accounts::frames(&addresses),
    };
    let known = t.by_frames.get(&frames).copied();
    let index = match known {
        Some(i) => i,
        None if t.stacks.len() < STACKS => {
            t.stacks.push((frames.clone(), 0));
            t.by_frames.insert(frames, t.stacks.len() - 1);
            t.stacks.len() - 1
        }
        None => {
            t.lost += samples;
            return;
        }
    };
    t.stacks[index].1 += samples;
    if !ended && t.by_address.len() < 4 * STACKS {
        t.by_address.insert(addresses, index);
    }
}
