//! A sampling profiler of schedulers: stack samples, taken while they are wanted.
//!
//! A thread of its own ticks every [`TICK`] nanoseconds, more often for a flame graph and less
//! often for what is sent all the time. A thread that runs processes looks at the last tick when
//! one of them stops. A new tick makes a sample due, which is taken of whatever runs a random
//! number of reductions later, and counts for the time between two ticks. So a process that runs
//! briefly and then waits is sampled in the middle of its work like any other, not where it waits.
//! Code that has run for longer than between two ticks (a native that takes long) is sampled
//! itself. A tick while a thread is idle is no sample. For [`Use::Export`], ticks get rarer while
//! nothing runs, up to [`LONGEST`] apart. The first one after that counts for as much more, so that
//! sums are right on average.
//!
//! # Invariants
//! * While off, this costs two looks at a flag in a time slice. While on, a time slice without a
//!   tick costs a few loads in addition: no clock is read, and nothing is stored.
//! * Each [`Use`] ends by itself, unless it is for good. No thread ticks if there is none.
//! * The table is bounded ([`STACKS`]): samples of other stacks are counted as `lost`.
//! * Addresses are keys only until a module is freed, as in [`crate::accounts`].

use crate::accounts::{self, FRAMES, Frame};
use crate::clock;
use crate::process::Cx;
use crate::sync::{Mutex, MutexGuard};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Nanoseconds between two ticks: for profiles of a time, and for a flame graph that someone looks
/// at.
pub const TICK: u64 = 10_000_000;
const FLAME_TICK: u64 = 2_000_000;
/// The same for profiles that are always on, which should cost less than a hundredth.
const EXPORT_TICK: u64 = 4 * TICK;
/// The same while nothing runs.
const LONGEST: u64 = 100_000_000;
/// Maximum number of different stacks.
pub const STACKS: usize = 4096;

/// A use of samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// A table of its own: [`samples`].
    Flame,
    /// The accounts ([`accounts::Kind::Time`]), for a profile of some time.
    Window,
    /// The accounts, for profiles that are sent to a collector.
    Export,
}

const USES: usize = 3;

/// The bits of the uses that are on.
static WANTED: AtomicU32 = AtomicU32::new(0);

/// The time of the last tick, and the nanoseconds from the one before.
static LAST: AtomicU64 = AtomicU64::new(0);
static BETWEEN: AtomicU64 = AtomicU64::new(EXPORT_TICK);
/// Whether a thread has seen the last tick.
static NOTICED: AtomicBool = AtomicBool::new(true);

/// When uses end, as [`clock::elapsed`] has it, and whether the thread exists.
struct Ticker {
    until: [Option<i64>; USES],
    runs: bool,
}

static TICKER: Mutex<Ticker> = Mutex::new(Ticker {
    until: [None; USES],
    runs: false,
});

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
    /// Reductions left at the last look, if a sample is due.
    reductions: i64,
    /// Reductions until that sample; 0 if their number is not chosen yet.
    countdown: i64,
    random: u64,
    /// The start of the ticks that this belongs to.
    started: u32,
}

thread_local! {
    /// The last tick that this thread has seen.
    static SEEN: Cell<u64> = const { Cell::new(0) };
    /// Nanoseconds that the next sample counts for; 0 if none is due.
    static DUE: Cell<u64> = const { Cell::new(0) };
    static MINE: Cell<Mine> = const {
        Cell::new(Mine {
            reductions: 0,
            countdown: 0,
            random: 0x9E37_79B9_7F4A_7C15,
            started: 0,
        })
    };
}

static STARTED: AtomicU32 = AtomicU32::new(0);

impl Mine {
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

/// Keeps sampling for `what` until `until`; `i64::MAX` is without end. Returns false if there can
/// be no thread that ticks.
#[must_use]
pub fn keep(what: Use, until: i64) -> bool {
    let mut t = TICKER.lock();
    if !t.runs {
        STARTED.fetch_add(1, Ordering::Relaxed);
        let made = std::thread::Builder::new()
            .name("ticks".into())
            .stack_size(128 << 10)
            .spawn(ticks);
        if made.is_err() {
            return false;
        }
        t.runs = true;
    }
    if what == Use::Flame {
        table().get_or_insert_default();
    }
    t.until[what as usize] = Some(until.max(t.until[what as usize].unwrap_or(until)));
    WANTED.fetch_or(1 << what as u32, Ordering::Relaxed);
    true
}

pub fn end(what: Use) {
    over(&mut TICKER.lock(), what as usize);
}

fn over(t: &mut Ticker, what: usize) {
    t.until[what] = None;
    WANTED.fetch_and(!(1 << what), Ordering::Relaxed);
    if what == Use::Flame as usize {
        *table() = None;
    }
}

/// The body of the thread that ticks, which ends with the last use.
fn ticks() {
    let mut last = clock::elapsed().max(0) as u64;
    let mut pause = 0;
    loop {
        let wanted = WANTED.load(Ordering::Relaxed);
        let is_on = |what: Use| wanted & 1 << what as u32 != 0;
        pause = match NOTICED.swap(false, Ordering::Relaxed) {
            _ if is_on(Use::Flame) => FLAME_TICK,
            _ if is_on(Use::Window) => TICK,
            true => EXPORT_TICK,
            false => (pause + pause / 4).clamp(EXPORT_TICK, LONGEST),
        };
        std::thread::sleep(Duration::from_nanos(pause));
        let now = clock::elapsed();
        let mut t = TICKER.lock();
        for what in 0..USES {
            if t.until[what].is_some_and(|u| u <= now) {
                over(&mut t, what);
            }
        }
        if t.until.iter().all(Option::is_none) {
            t.runs = false;
            return;
        }
        drop(t);
        let now = now.max(0) as u64;
        // A machine that was suspended ran nothing.
        let between = now.saturating_sub(last).min(2 * LONGEST);
        BETWEEN.store(between, Ordering::Relaxed);
        LAST.store(now, Ordering::Relaxed);
        last = now;
    }
}

/// The samples since the use began.
pub struct Samples {
    /// Stacks, innermost frame first, and their time in nanoseconds.
    pub stacks: Vec<(Vec<Frame>, u64)>,
    /// Nanoseconds of stacks beyond the limit.
    pub lost: u64,
}

/// Returns the samples for a flame graph so far; None if that use is off.
pub fn samples() -> Option<Samples> {
    table().as_ref().map(|t| Samples {
        stacks: t.stacks.clone(),
        lost: t.lost,
    })
}

/// Whether samples are taken.
#[inline(always)]
pub(crate) fn on() -> bool {
    WANTED.load(Ordering::Relaxed) != 0
}

/// Called when this thread was idle: ticks of that time are no samples.
#[inline]
pub(crate) fn rested() {
    if on() {
        SEEN.set(LAST.load(Ordering::Relaxed));
    }
}

/// Starts a time slice of at most `most` reductions, and returns how many it gets.
#[inline]
pub(crate) fn begins(most: i64) -> i64 {
    match DUE.get() {
        0 => most,
        _ => begins_sampled(most),
    }
}

#[cold]
#[inline(never)]
fn begins_sampled(most: i64) -> i64 {
    let mut m = MINE.get();
    if m.countdown == 0 {
        m.countdown = 1 + (m.random() % most.max(1) as u64) as i64;
    }
    m.reductions = m.countdown.clamp(1, most.max(1));
    MINE.set(m);
    m.reductions
}

/// Called when the process in the context has stopped at `cx.interp.pc` with its stack intact, or
/// with its stack gone (`ended`).
#[inline]
pub(crate) fn ran(cx: &mut Cx, ended: bool) {
    let tick = LAST.load(Ordering::Relaxed);
    if tick != SEEN.get() || DUE.get() != 0 {
        ran_sampled(cx, ended, tick);
    }
}

/// Returns the nanoseconds from the tick that this thread has seen last to `tick`. Samples that
/// were due in an earlier use are dropped.
fn passed(m: &mut Mine, tick: u64) -> u64 {
    let started = STARTED.load(Ordering::Relaxed);
    let seen = SEEN.replace(tick);
    if seen != tick {
        NOTICED.store(true, Ordering::Relaxed);
    }
    if m.started != started {
        m.started = started;
        m.countdown = 0;
        DUE.set(0);
        return 0;
    }
    tick.saturating_sub(seen)
}

#[cold]
#[inline(never)]
fn ran_sampled(cx: &mut Cx, ended: bool, tick: u64) {
    let mut m = MINE.get();
    let passed = passed(&mut m, tick);
    // What ran here has run for all of the time between two ticks, if it has seen two.
    let between = BETWEEN.load(Ordering::Relaxed);
    let mut whole = passed.saturating_sub(between);
    let due = DUE.get();
    if due > 0 && m.countdown > 0 {
        // At least 1 as long as a sample is due: a process that has ended has no stack.
        let used = (m.reductions - cx.reds).max(0);
        m.reductions = cx.reds;
        m.countdown = (m.countdown - used).max(i64::from(ended));
        if m.countdown <= 0 {
            m.countdown = 0;
            whole += due;
            DUE.set(0);
        }
    }
    DUE.set(DUE.get() + (passed - passed.saturating_sub(between)));
    MINE.set(m);
    if whole > 0 {
        record(cx, whole, ended);
    }
}

/// Called before a dirty thread runs a process.
#[cold]
pub(crate) fn begins_dirty() {
    let mut m = MINE.get();
    passed(&mut m, LAST.load(Ordering::Relaxed));
    MINE.set(m);
}

/// Called after it has run it. Natives of these pools take long, so the one that runs at a tick is
/// the sample.
#[cold]
pub(crate) fn ran_dirty(cx: &mut Cx, ended: bool) {
    let mut m = MINE.get();
    let passed = passed(&mut m, LAST.load(Ordering::Relaxed));
    MINE.set(m);
    if passed > 0 {
        record(cx, passed, ended);
    }
}

/// Counts `nanoseconds` for the process in the context.
fn record(cx: &mut Cx, nanoseconds: u64, ended: bool) {
    let wanted = WANTED.load(Ordering::Relaxed);
    if wanted & 1 << Use::Flame as u32 != 0 {
        draw(cx, nanoseconds, ended);
    }
    if wanted & !(1 << Use::Flame as u32) != 0 {
        accounts::ran(cx, nanoseconds, ended);
    }
}

/// Adds to the table for flame graphs.
fn draw(cx: &mut Cx, nanoseconds: u64, ended: bool) {
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
        t.stacks[i].1 += nanoseconds;
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
            t.lost += nanoseconds;
            return;
        }
    };
    t.stacks[index].1 += nanoseconds;
    if !ended && t.by_address.len() < 4 * STACKS {
        t.by_address.insert(addresses, index);
    }
}
