//! Waiting times of processes: in a run queue, in a receive, for a port, for a dirty thread, for a
//! lock.
//!
//! One of [`EVERY`] processes that are queued is timed, and one of as many that begin to wait. It
//! stands for all since the last one on that thread. After a thread was idle it times the next one
//! sooner, so that nearly all are timed where there is little to do. Sums are estimates; long waits
//! that are rare may be missed.
//!
//! # Invariants
//! * An event that is not timed costs a subtraction and a comparison where a process is queued or
//!   begins to wait, and a load and a comparison where it begins to run.
//! * A thread that queues a process writes nothing to its cell, since another thread may own it by
//!   then. A wait in a run queue is recorded in one of [`SLOTS`] slots, chosen by the cell's
//!   number. If two collide, one of them is not timed.
//! * Locks of tables and ports are tried first. Only a thread that finds one held looks at the
//!   clock, and each such wait is timed. The time is kept by the thread, and charged to the process
//!   for which it runs the code that takes the lock: [`locked`].

use crate::accounts::{self, Kind};
use crate::clock;
use crate::cx::Cx;
use crate::process::{self, Process};
use crate::sync::{Mutex, MutexGuard};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module documentation.
const EVERY: u32 = 64;
const AFTER_REST: u32 = 4;
const SLOTS: usize = 64;
/// Maximum number of processes timed in a receive; one more replaces an arbitrary one.
const RECEIVES: usize = 4096;

/// A slot: the cell's number plus one in 28 bits, the weight in 8, and the time of queueing in 28,
/// in units of [`TICK`]. 0 if free.
static QUEUED: [AtomicU64; SLOTS] = [const { AtomicU64::new(0) }; SLOTS];
const CELL_SHIFT: u32 = 36;
const WEIGHT_SHIFT: u32 = 28;
const TIME_MASK: u64 = (1 << WEIGHT_SHIFT) - 1;
/// Nanoseconds; the time wraps around after 17 minutes.
const TICK: u64 = 4096;
/// Ticks after which a slot that was never read is reused: ten seconds.
const STALE: u64 = 10_000_000_000 / TICK;

/// Number of events until the next timed one, and the number of events that one stands for.
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
    /// Shortens the countdown, because this thread had nothing to do.
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

/// The start, weight and kind of a wait.
struct Began {
    at: i64,
    weight: u32,
    kind: Kind,
}

static BEGAN: LazyLock<Mutex<HashMap<u32, Began>>> = LazyLock::new(Mutex::default);

fn now() -> u64 {
    clock::elapsed().max(0) as u64
}

/// Counts down; returns the weight if this event is timed.
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

/// Notes that this thread has had nothing to do.
pub(crate) fn rested() {
    for c in [&TO_QUEUE, &TO_WAIT] {
        c.with(|c| c.set(c.get().sooner()));
    }
}

/// Called when the process of that cell was put into a run queue.
#[inline]
pub(crate) fn queued(cell: u32) {
    if let Some(weight) = due(&TO_QUEUE) {
        note(cell, weight);
    }
}

/// Called when the process of that cell is put into the queue of a dirty pool. Queueing there costs
/// more than recording it.
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
    // If two collide here, one is lost.
    slot.store(word, Ordering::Relaxed);
}

/// Called when the process in the context, of that cell, begins to run. Its stack is valid.
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

/// Called when the process, which the caller owns, begins to wait for a signal.
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

/// Called when the process in the context continues, or ends. `waited` says that it was off its
/// thread.
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
    /// Nanoseconds that this thread has waited for locks in the current operation.
    static LOCKED: Cell<u64> = const { Cell::new(0) };
}

/// Waits for a lock that is held, and records how long. [`locked`] charges the wait to a process.
#[cold]
#[inline(never)]
pub fn held<G>(wait: impl FnOnce() -> G) -> G {
    if !accounts::on() {
        return wait();
    }
    let began = clock::elapsed();
    let guard = wait();
    let took = clock::elapsed().saturating_sub(began).max(1) as u64;
    LOCKED.set(LOCKED.get().saturating_add(took));
    guard
}

/// Locks a mutex. [`locked`] charges the wait to a process.
#[inline]
pub fn lock<T: ?Sized>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    match m.try_lock() {
        Some(g) => g,
        None => held(|| m.lock()),
    }
}

/// Called before an operation that takes locks: earlier waits of this thread were not for a
/// process.
#[inline]
pub fn locks_begin() {
    if LOCKED.get() != 0 {
        LOCKED.set(0);
    }
}

/// Called when the process in the context has run a native that took locks. Charges the waits to
/// it.
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

/// Returns the nanoseconds for which a process has waited, if it waits and is timed.
pub fn waiting_for(p: &Process) -> Option<u64> {
    if !p.has(process::TIMED) {
        return None;
    }
    let all = BEGAN.lock();
    let began = all.get(&process::table().index(p))?.at;
    Some(clock::elapsed().saturating_sub(began).max(0) as u64)
}

/// Returns the timed processes that still wait: kind, duration so far and weight.
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
        let m = Mutex::new(0);
        *lock(&m) += 1;
        assert_eq!((*lock(&m), LOCKED.get()), (1, 0));
        // Longer than the other thread needs to reach the lock, even on a busy machine.
        let wait = std::time::Duration::from_millis(100);
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::scope(|s| {
            let m = &m;
            s.spawn(move || {
                let held = m.lock();
                ready.send(()).expect("is waited for");
                std::thread::sleep(wait);
                drop(held);
            });
            is_ready.recv().expect("is sent");
            drop(lock(m));
            let waited = LOCKED.get();
            assert!((1..10_000_000_000).contains(&waited), "{waited}");
            drop(lock(m));
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
        // A colliding cell does not take its place.
        note(cell - SLOTS as u32, 1);
        assert_eq!(slot.load(Ordering::Relaxed), word);
        slot.store(0, Ordering::Relaxed);
    }
}
