//! How long processes wait: ready for their turn, in a receive, for a port, for a dirty thread, for a lock.
//!
//! One of [`EVERY`] that are queued, and one of as many that begin to wait, is timed for all since the last one on that thread; of
//! a thread that had rested sooner, so that nearly all are timed where there is little to do. Sums are estimates, and what is
//! rare and long may be missed.
//!
//! # Invariants
//! * What is not timed costs a subtraction and a comparison where a process is queued or begins to wait, and a load and a
//!   comparison where it begins to run.
//! * Who queues a process writes nothing to its cell: another thread may have it by then. A wait in a run queue is noted in one of
//!   [`SLOTS`] slots, by the cell's number. Where two meet, one of them is not timed.
//! * Locks of tables and ports are first tried: only who finds one held looks at the clock, and all of these are timed. What a thread
//!   has waited is noted on the thread, and counts for the process that has it run what takes the lock: [`locked`].

use crate::accounts::{self, Kind};
use crate::clock;
use crate::cx::Cx;
use crate::process::{self, Process};
use crate::sync::{Mutex, MutexGuard};
use purlin_term::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module head.
const EVERY: u32 = 64;
const AFTER_REST: u32 = 4;
const SLOTS: usize = 64;
/// Processes that are timed in a receive, at most: one more takes the place of any other.
const RECEIVES: usize = 4096;

/// A slot: the cell's number plus one in 28 bits, for how many it stands in 8, and when it was queued in 28, in units of
/// [`TICK`]. 0: it is free.
static QUEUED: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
const CELL_SHIFT: u32 = 36;
const WEIGHT_SHIFT: u32 = 28;
const TIME_MASK: u64 = (1 << WEIGHT_SHIFT) - 1;
/// Nanoseconds; the time goes round in 17 minutes.
const TICK: u64 = 4096;
/// Ticks after which a slot that nobody has come for is given to another: ten seconds.
const STALE: u64 = 10_000_000_000 / TICK;

/// How many are left until the next that is timed, and how many that one stands for.
#[derive(Clone, Copy)]
struct Left {
    left: u32,
    span: u32,
}

impl Left {
    const NEW: Left = Left {
        left: EVERY,
        span: EVERY,
    };
    /// This thread had nothing to do: the next is timed soon.
    fn sooner(self) -> Left {
        match self.left.checked_sub(AFTER_REST) {
            Some(more) => Left {
                left: AFTER_REST,
                span: self.span - more,
            },
            None => self,
        }
    }
}

thread_local! {
    static TO_QUEUE: Cell<Left> = const { Cell::new(Left::NEW) };
    static TO_WAIT: Cell<Left> = const { Cell::new(Left::NEW) };
}

/// When a process began to wait, for how many that stands, and what for.
struct Began {
    at: i64,
    weight: u32,
    kind: Kind,
}

static BEGAN: LazyLock<Mutex<HashMap<u32, Began>>> = LazyLock::new(Mutex::default);

fn now() -> u64 {
    clock::elapsed().max(0) as u64
}

/// Counts down; the weight of the one that is timed.
#[inline]
fn due(counter: &'static std::thread::LocalKey<Cell<Left>>) -> Option<u32> {
    counter.with(|c| {
        let l = c.get();
        if l.left > 1 {
            c.set(Left {
                left: l.left - 1,
                ..l
            });
            return None;
        }
        c.set(Left::NEW);
        Some(l.span)
    })
}

/// This thread has had nothing to do.
pub(crate) fn rested() {
    for c in [&TO_QUEUE, &TO_WAIT] {
        c.with(|c| c.set(c.get().sooner()));
    }
}

/// The process of that cell was put into a run queue.
#[inline]
pub(crate) fn queued(cell: u32) {
    if let Some(weight) = due(&TO_QUEUE) {
        note(cell, weight);
    }
}

/// The process of that cell is put into the queue of a dirty pool, which takes longer than to note it.
pub(crate) fn queued_dirty(cell: u32) {
    note(cell, 1);
}

#[cold]
#[inline(never)]
fn note(cell: u32, weight: u32) {
    if !accounts::on() {
        return;
    }
    let slot = &QUEUED[cell as usize % SLOTS];
    let ticks = (now() / TICK) & TIME_MASK;
    let old = slot.load(Ordering::Relaxed);
    let age = ticks.wrapping_sub(old & TIME_MASK) & TIME_MASK;
    if old != 0 && age < STALE {
        return;
    }
    let word = (u64::from(cell) + 1) << CELL_SHIFT | u64::from(weight) << WEIGHT_SHIFT | ticks;
    // Of two who meet here one is lost.
    slot.store(word, Ordering::Relaxed);
}

/// The process in the context, of that cell, runs. Its stack is in order.
#[inline]
pub(crate) fn runs(cx: &mut Cx, cell: u32, dirty: bool) {
    let slot = &QUEUED[cell as usize % SLOTS];
    let word = slot.load(Ordering::Relaxed);
    if word >> CELL_SHIFT == u64::from(cell) + 1 {
        ran(cx, slot, word, dirty);
    }
    if cx.process().has(process::TIMED) {
        goes_on(cx, true);
    }
}

#[cold]
#[inline(never)]
fn ran(cx: &mut Cx, slot: &AtomicU64, word: u64, dirty: bool) {
    let mine = slot.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed);
    if mine.is_err() {
        return;
    }
    let ticks = (now() / TICK).wrapping_sub(word) & TIME_MASK;
    let weight = word >> WEIGHT_SHIFT & 0xFF;
    let kind = match dirty {
        true => Kind::DirtyQueue,
        false => Kind::Ready,
    };
    let pc = cx.process().pc;
    accounts::waited(cx, kind, ticks * TICK, weight, pc);
}

/// The process, which the caller owns, begins to wait for a signal.
#[inline]
pub(crate) fn waits(p: &mut Process) {
    if let Some(weight) = due(&TO_WAIT) {
        begins(p, weight);
    }
}

#[cold]
#[inline(never)]
fn begins(p: &mut Process, weight: u32) {
    if !accounts::on() {
        return;
    }
    let cell = process::table().index(p);
    let mut all = BEGAN.lock();
    if all.len() >= RECEIVES
        && !all.contains_key(&cell)
        && let Some(&any) = all.keys().next()
    {
        all.remove(&any);
    }
    let kind = match p.has(process::BUSY) {
        true => Kind::Busy,
        false => Kind::Receive,
    };
    let at = clock::elapsed();
    all.insert(cell, Began { at, weight, kind });
    drop(all);
    p.flags |= process::TIMED;
}

/// The process in the context goes on, or ends. `waited`: it has been without a thread.
#[cold]
#[inline(never)]
pub(crate) fn goes_on(cx: &mut Cx, waited: bool) {
    let p = cx.process();
    p.flags &= !process::TIMED;
    let pc = p.pc;
    let cell = process::table().index(p);
    let began = {
        let mut all = BEGAN.lock();
        all.remove(&cell)
    };
    if let Some(b) = began.filter(|_| waited) {
        let took = clock::elapsed().saturating_sub(b.at).max(0) as u64;
        accounts::waited(cx, b.kind, took, u64::from(b.weight), pc);
    }
}

thread_local! {
    /// Nanoseconds that this thread has waited for locks, for the operation that is under way.
    static LOCKED: Cell<u64> = const { Cell::new(0) };
}

/// Waits for a lock that is held, and notes how long.
#[cold]
#[inline(never)]
fn held<G>(wait: impl FnOnce() -> G) -> G {
    if !accounts::on() {
        return wait();
    }
    let began = clock::elapsed();
    let guard = wait();
    let took = clock::elapsed().saturating_sub(began).max(1) as u64;
    LOCKED.set(LOCKED.get().saturating_add(took));
    guard
}

/// Locks; [`locked`] says for whom.
#[inline]
pub fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    match m.try_lock() {
        Some(g) => g,
        None => held(|| m.lock()),
    }
}

/// As [`lock`], for reading.
#[inline]
pub fn read<T: ?Sized>(l: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    match l.try_read() {
        Some(g) => g,
        None => held(|| l.read()),
    }
}

/// As [`lock`], for writing.
#[inline]
pub fn write<T: ?Sized>(l: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    match l.try_write() {
        Some(g) => g,
        None => held(|| l.write()),
    }
}

/// Something that takes locks begins: what was waited on this thread before was not for a process.
#[inline]
pub fn locks_begin() {
    if LOCKED.get() != 0 {
        LOCKED.set(0);
    }
}

/// The process in the context runs a native that has taken locks: what was waited for them counts for it.
#[inline]
pub fn locked(cx: &mut Cx) {
    if LOCKED.get() != 0 {
        locked_for(cx);
    }
}

#[cold]
#[inline(never)]
fn locked_for(cx: &mut Cx) {
    let took = LOCKED.take();
    let pc = cx.bif_pc;
    accounts::waited(cx, Kind::Lock, took, 1, pc);
}

/// A process that was timed is still waiting: for how many it stands, what for, and for how long.
pub fn under_way() -> Vec<(Kind, u64, u64)> {
    let now = clock::elapsed();
    let all = BEGAN.lock();
    all.values()
        .map(|b| {
            let took = now.saturating_sub(b.at).max(0) as u64;
            (b.kind, took, u64::from(b.weight))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_one_is_counted_once() {
        let mut left = Left::NEW;
        let mut weights = 0;
        let mut since = 0;
        for i in 0..1000u32 {
            if i % 7 == 0 {
                left = left.sooner();
            }
            since += 1;
            if left.left > 1 {
                left.left -= 1;
            } else {
                assert_eq!(left.span, since, "at {i}");
                weights += left.span;
                since = 0;
                left = Left::NEW;
            }
        }
        assert_eq!(weights + since, 1000);
    }

    #[test]
    fn who_finds_a_lock_held_is_timed() {
        let l = RwLock::new(0);
        *write(&l) += 1;
        assert_eq!((*read(&l), LOCKED.get()), (1, 0));
        let m = Mutex::new(());
        // Longer than it takes the other to come to the lock, even where there is much else to run.
        let wait = std::time::Duration::from_millis(100);
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::scope(|s| {
            let (l, m) = (&l, &m);
            s.spawn(move || {
                let both = (l.write(), m.lock());
                ready.send(()).expect("is waited for");
                std::thread::sleep(wait);
                drop(both);
            });
            is_ready.recv().expect("is sent");
            drop(read(l));
            let waited = LOCKED.get();
            assert!((1..10_000_000_000).contains(&waited), "{waited}");
            drop((write(l), lock(m)));
            locks_begin();
            assert_eq!(LOCKED.get(), 0);
        });
    }

    #[test]
    fn a_slot_tells_cell_weight_and_time() {
        let cell = (1 << 27) - 1;
        let slot = &QUEUED[cell as usize % SLOTS];
        note(cell, 64);
        let word = slot.load(Ordering::Relaxed);
        assert_eq!(word >> CELL_SHIFT, u64::from(cell) + 1);
        assert_eq!(word >> WEIGHT_SHIFT & 0xFF, 64);
        // Another doesn't take its place.
        note(cell - SLOTS as u32, 1);
        assert_eq!(slot.load(Ordering::Relaxed), word);
        slot.store(0, Ordering::Relaxed);
    }
}
