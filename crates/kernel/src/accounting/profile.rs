//! Where schedulers spend their time: samples of stacks, while somebody wants to know.
//!
//! A thread adds up the time for which processes run. Each [`TICK_NANOSECONDS`] of it are a sample, which is taken of whatever
//! runs a random number of reductions later: a process that only runs shortly, and then waits, is met in what it does as any
//! other is, and not where it waits. Code that has run for a tick without a break (a native that takes long) is the sample itself.
//!
//! # Invariants
//! * While nobody wants to know, this costs two looks at a flag in a time slice.
//! * The table is bounded ([`STACKS`]): samples of other stacks are counted as `lost`.
//! * Addresses are keys only as long as no module was freed since, as in [`crate::accounts`].

use crate::accounts::{self, FRAMES, Frame};
use crate::clock;
use crate::process::Cx;
use crate::sync::{Mutex, MutexGuard};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Time of running between two samples of a thread.
pub const TICK_NANOSECONDS: u64 = 2_000_000;
/// Stacks that are told apart.
pub const STACKS: usize = 4096;

static ON: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
struct Table {
    by_address: HashMap<[usize; FRAMES], usize>,
    by_frames: HashMap<Vec<Frame>, usize>,
    stacks: Vec<(Vec<Frame>, u64)>,
    lost: u64,
    /// Modules that had been freed when the keys were made.
    freed: usize,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn table() -> MutexGuard<'static, Option<Table>> {
    TABLE.lock()
}

/// The record of a thread's own time.
#[derive(Clone, Copy)]
struct Mine {
    /// When it was looked at last.
    since: i64,
    /// Reductions that were left then.
    reductions: i64,
    /// Nanoseconds that are no sample yet.
    nanoseconds: u64,
    /// Samples that are due after `countdown` reductions; 0: none.
    due: u64,
    /// 0: it is not settled yet after how many.
    countdown: i64,
    random: u64,
    /// Which [`start`] this belongs to.
    started: u32,
}

const RANDOM: u64 = 0x9E37_79B9_7F4A_7C15;

thread_local! {
    static MINE: Cell<Mine> = const {
        Cell::new(Mine { since: 0, reductions: 0, nanoseconds: 0, due: 0, countdown: 0, random: RANDOM, started: 0 })
    };
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Mine {
    /// The record of this thread; samples of an earlier profile are forgotten.
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
    /// Nanoseconds since it was looked at last; None: it was not.
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

/// Takes samples from now on. Those that were taken before are kept, if it was on.
pub fn start() {
    let mut t = table();
    if !ON.load(Ordering::Relaxed) {
        *t = Some(Table::default());
        STARTED.fetch_add(1, Ordering::Relaxed);
        ON.store(true, Ordering::Relaxed);
    }
}

/// Takes no more samples, and forgets them.
pub fn stop() {
    let mut t = table();
    ON.store(false, Ordering::Relaxed);
    *t = None;
}

/// The samples since [`start`].
pub struct Samples {
    /// Stacks, the innermost frame first, and samples.
    pub stacks: Vec<(Vec<Frame>, u64)>,
    /// Samples of stacks that were too many.
    pub lost: u64,
}

/// The samples so far; None: none are taken.
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

/// A time slice of at most so many reductions begins; how many it is to have.
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

/// The process in the context has stopped at `cx.interp.pc`: its stack is as it was. `ended`: its stack is gone.
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
        // No less than 1 as long as a sample is due.
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

/// A thread of a dirty pool begins to run a process.
#[cold]
pub(crate) fn begins_dirty() {
    let mut m = Mine::get();
    m.since = clock::elapsed();
    MINE.set(m);
}

/// It has run it: natives of these pools take long, so the one that makes a sample full is the sample.
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
