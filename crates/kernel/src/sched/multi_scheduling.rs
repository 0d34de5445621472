//! Blocked multi-scheduling: threads of every kind run processes one at a time.
//!
//! # Invariants
//! - A thread that began to run a process before the block continues until it is done with that.
//!   The blocking process waits for these threads: for those that run code by epochs
//!   ([`must_yield`]), for dirty ones by their number ([`others_stopped`]).
//! - Turns go round: a thread that wants one waits for those that asked earlier. No thread waits
//!   for anything else while it has a turn.
//!
//! # Orderings
//! - [`BLOCKED`] and [`DIRTY`] form a store-buffering pair. [`dirty_turn`] increments `DIRTY`, then
//!   loads `BLOCKED`; the blocking process stores `BLOCKED`, then loads `DIRTY` in
//!   [`others_stopped`]. All four are `SeqCst`, so at least one sees the other's store: the dirty
//!   thread waits for a turn, or the blocking process waits for it.
//! - [`HELD`] is stored with `SeqCst` and loaded `Relaxed` in [`must_yield`], after the thread has
//!   entered its epoch. The blocking process waits for a barrier of epochs after the store, and its
//!   fences order the two: a thread that entered its epoch later sees the flag, and an earlier one
//!   is waited for.
//! - [`ANY_BLOCKER`] is stored under the lock of the blockers. The exit of a process loads it with
//!   `Acquire`. It is the process's own store that matters there, and the process has run since on
//!   threads that took it over through a run queue.
//! - The `Relaxed` load in [`blocked`] is a hint: a thread that misses the store takes no turn, and
//!   one of the two rules above catches it.

use crate::sync::{Condvar, Mutex, MutexGuard};
use purlin_term::Term;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tickets: the next one to give out, and the one whose turn it is.
struct Tickets {
    next: u64,
    serving: u64,
}

static BLOCKED: AtomicBool = AtomicBool::new(false);
static TICKETS: Mutex<Tickets> = Mutex::new(Tickets {
    next: 0,
    serving: 0,
});
static CALLED: Condvar = Condvar::new();

#[inline]
fn tickets() -> MutexGuard<'static, Tickets> {
    TICKETS.lock()
}

/// Makes threads take turns, or lets them run freely again.
#[inline]
pub fn block(on: bool) {
    BLOCKED.store(on, Ordering::SeqCst);
    HELD.store(on || ANY_BLOCKER.load(Ordering::SeqCst), Ordering::SeqCst);
}

/// Whether threads take turns, or only one normal scheduler is to run.
static HELD: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread has a turn.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread, which has entered its epoch and is about to run code, must let others go
/// first: it began without a turn, or on a scheduler that is to stop, before the block. Once the
/// blocking process has passed a barrier of the epochs, all threads see the block here.
#[inline]
pub(crate) fn must_yield() -> bool {
    HELD.load(Ordering::Relaxed) && must_yield_now()
}

#[cold]
fn must_yield_now() -> bool {
    blocked() && !HAS_TURN.get() || super::current() > super::online()
}

/// Number of dirty threads that run something without a turn.
static DIRTY: AtomicUsize = AtomicUsize::new(0);

/// The right of a dirty thread to run something, until it is dropped.
#[must_use]
pub(crate) struct DirtyTurn(Option<Turn>);

impl Drop for DirtyTurn {
    fn drop(&mut self) {
        if self.0.is_none() {
            DIRTY.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// As [`turn`], for a dirty thread.
pub(crate) fn dirty_turn(waits: impl Fn(bool)) -> DirtyTurn {
    // The blocking process stores `BLOCKED` first and then loads `DIRTY`, so one of the two sees
    // the other.
    DIRTY.fetch_add(1, Ordering::SeqCst);
    if !BLOCKED.load(Ordering::SeqCst) {
        return DirtyTurn(None);
    }
    DIRTY.fetch_sub(1, Ordering::SeqCst);
    DirtyTurn(Some(wait(waits)))
}

/// Whether no dirty thread runs anything that it began before the block.
pub fn others_stopped() -> bool {
    DIRTY.load(Ordering::SeqCst) == 0
}

/// Whether threads take turns.
#[inline]
pub fn blocked() -> bool {
    BLOCKED.load(Ordering::Relaxed)
}

/// Ends what [`block`] has begun, unless processes block multi-scheduling.
pub fn unblock() {
    let b = lock_blockers();
    block(!b.all.is_empty());
}

/// A time in which no thread begins to run a process, which ends when this is dropped.
#[must_use]
pub(crate) struct Pause(Option<Turn>);

impl Drop for Pause {
    fn drop(&mut self) {
        // Before the turn ends, so that threads that wait for theirs find no block.
        unblock();
        drop(self.0.take());
    }
}

/// Lets no thread begin to run a process; `None` if processes run one at a time already. For
/// threads that run no processes. Threads that run one continue until its time slice ends.
pub(crate) fn pause() -> Option<Pause> {
    let _blockers = lock_blockers();
    let mut t = tickets();
    if BLOCKED.load(Ordering::SeqCst) || t.next != t.serving {
        return None;
    }
    // The ticket is taken before any thread can ask for one.
    t.next += 1;
    block(true);
    HAS_TURN.set(true);
    Some(Pause(Some(Turn(()))))
}

/// A thread's turn, which ends when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Turn(());

impl Drop for Turn {
    #[inline]
    fn drop(&mut self) {
        HAS_TURN.set(false);
        tickets().serving += 1;
        CALLED.notify_all();
    }
}

/// Waits for this thread's turn; `None` if threads need none. `waits` is called before and after a
/// wait.
#[inline]
pub fn turn(waits: impl Fn(bool)) -> Option<Turn> {
    blocked().then(|| wait(waits))
}

#[cold]
fn wait(waits: impl Fn(bool)) -> Turn {
    let mut t = tickets();
    let mine = t.next;
    t.next += 1;
    if t.serving != mine {
        waits(true);
        while t.serving != mine {
            t = CALLED.wait(t);
        }
        waits(false);
    }
    HAS_TURN.set(true);
    Turn(())
}

/// The processes that block multi-scheduling, in order, once for each block, and the number of
/// schedulers to run without a block.
#[derive(Default)]
struct Blockers {
    all: Vec<Term>,
    normal: Vec<Term>,
    online: usize,
}

static BLOCKERS: Mutex<Blockers> = Mutex::new(Blockers {
    all: Vec::new(),
    normal: Vec::new(),
    online: 0,
});

#[inline]
fn lock_blockers() -> MutexGuard<'static, Blockers> {
    BLOCKERS.lock()
}

/// Returns the pids that block all schedulers but one, and those that block normal schedulers.
#[inline]
pub fn blockers() -> (Vec<Term>, Vec<Term>) {
    let b = lock_blockers();
    (b.all.clone(), b.normal.clone())
}

/// Whether any process blocks all schedulers but one, and whether any blocks normal schedulers.
#[inline]
pub fn blocked_by() -> (bool, bool) {
    let b = lock_blockers();
    (!b.all.is_empty(), !b.normal.is_empty())
}

/// Returns the number of schedulers that run processes without a block.
#[inline]
pub fn schedulers_online() -> usize {
    let b = lock_blockers();
    if b.all.is_empty() && b.normal.is_empty() {
        super::online()
    } else {
        b.online
    }
}

/// Sets the number of schedulers that run as soon as there is no block. Returns the previous
/// number.
#[inline]
pub fn set_online(n: usize) -> usize {
    let mut b = lock_blockers();
    if b.online != 0 {
        std::mem::replace(&mut b.online, n)
    } else {
        super::set_online(n)
    }
}

/// Whether a process blocks others.
#[inline]
pub(crate) fn is_blocker(pid: Term) -> bool {
    ANY_BLOCKER.load(Ordering::Acquire) && {
        let b = lock_blockers();
        b.all.contains(&pid) || b.normal.contains(&pid)
    }
}

/// Removes the blocks of a process that has ended.
#[inline]
pub fn owner_exit(pid: Term) {
    // Nearly every exit only reads this one word.
    if ANY_BLOCKER.load(Ordering::Acquire) {
        unblock_where(|p| p == pid);
    }
}

static ANY_BLOCKER: AtomicBool = AtomicBool::new(false);

#[inline]
fn unblock_where(gone: impl Fn(Term) -> bool) {
    let mut b = lock_blockers();
    if b.all.is_empty() && b.normal.is_empty() {
        return;
    }
    b.all.retain(|&p| !gone(p));
    b.normal.retain(|&p| !gone(p));
    settle(&mut b);
}

#[inline]
fn settle(b: &mut Blockers) {
    let any = !b.all.is_empty() || !b.normal.is_empty();
    ANY_BLOCKER.store(any, Ordering::SeqCst);
    block(!b.all.is_empty());
    if !any && b.online != 0 {
        super::set_online(b.online);
        b.online = 0;
    }
}

/// Blocks or unblocks on behalf of the process `me`. The caller waits until other schedulers have
/// finished their time slices, and dirty threads their natives.
pub fn set_blocker(me: Term, on: bool, normal: bool) {
    let mut b = lock_blockers();
    let list = if normal { &mut b.normal } else { &mut b.all };
    if on {
        list.push(me);
        if b.online == 0 {
            b.online = super::set_online(1);
        }
        ANY_BLOCKER.store(true, Ordering::SeqCst);
        block(!b.all.is_empty());
    } else {
        if let Some(i) = list.iter().rposition(|&p| p == me) {
            list.remove(i);
        }
        settle(&mut b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn one_at_a_time() {
        static INSIDE: AtomicUsize = AtomicUsize::new(0);
        assert!(turn(|_| ()).is_none());
        block(true);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..1000 {
                        let t = turn(|_| ());
                        assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0);
                        INSIDE.fetch_sub(1, Ordering::SeqCst);
                        drop(t);
                    }
                });
            }
        });
        block(false);
    }
}
