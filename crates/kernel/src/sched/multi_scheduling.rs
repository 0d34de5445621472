//! Multi-scheduling that is blocked: threads run processes one at a time, whichever kind they are of.
//!
//! # Invariants
//! * A thread that began to run a process while nobody blocked goes on until it is done with that. Whoever blocks waits for these:
//!   for threads that run code by epochs ([`gives_way`]), for dirty ones by their number ([`others_stopped`]).
//! * Turns go round: a thread that wants one waits for those that wanted theirs before. No thread waits for anything else
//!   with a turn of its own.

use crate::sync::{Condvar, Mutex, MutexGuard};
use purlin_term::Term;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tickets: the next to be given, and the one whose turn it is.
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

/// Has threads take turns from now on, or not any more.
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

/// Whether this thread, which has entered its epoch and is about to run code, has to let others go first: it has begun without a turn,
/// or on a scheduler that is to stop, before somebody blocked. After whoever blocks has taken a moment of the epochs, all
/// threads see it here.
#[inline]
pub(crate) fn gives_way() -> bool {
    HELD.load(Ordering::Relaxed) && must_give_way()
}

#[cold]
fn must_give_way() -> bool {
    blocked() && !HAS_TURN.get() || super::current() > super::online()
}

/// Dirty threads that run something without a turn.
static DIRTY: AtomicUsize = AtomicUsize::new(0);

/// The right of a dirty thread to run something, until this is dropped.
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
    // Who blocks stores first and then looks; so one of the two sees the other.
    DIRTY.fetch_add(1, Ordering::SeqCst);
    if !BLOCKED.load(Ordering::SeqCst) {
        return DirtyTurn(None);
    }
    DIRTY.fetch_sub(1, Ordering::SeqCst);
    DirtyTurn(Some(wait(waits)))
}

/// Whether no dirty thread runs anything that it began before somebody blocked.
pub fn others_stopped() -> bool {
    DIRTY.load(Ordering::SeqCst) == 0
}

/// Whether threads take turns.
#[inline]
pub fn blocked() -> bool {
    BLOCKED.load(Ordering::Relaxed)
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

/// Waits for this thread's turn; None where threads need none. `waits` is told before and after, if it has to.
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

/// The processes that block multi-scheduling, in order, once for each time; and how many schedulers run when nobody does.
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

/// Those who block all schedulers but one, and those who block normal schedulers: pids.
#[inline]
pub fn blockers() -> (Vec<Term>, Vec<Term>) {
    let b = lock_blockers();
    (b.all.clone(), b.normal.clone())
}

/// Whether anybody blocks all schedulers but one, and whether anybody blocks normal schedulers.
#[inline]
pub fn blocked_by() -> (bool, bool) {
    let b = lock_blockers();
    (!b.all.is_empty(), !b.normal.is_empty())
}

/// Schedulers that run processes when nobody blocks multi-scheduling.
#[inline]
pub fn schedulers_online() -> usize {
    let b = lock_blockers();
    if b.all.is_empty() && b.normal.is_empty() {
        super::online()
    } else {
        b.online
    }
}

/// Has so many schedulers run, as soon as nobody blocks multi-scheduling; how many did before.
#[inline]
pub fn set_online(n: usize) -> usize {
    let mut b = lock_blockers();
    if b.online != 0 {
        std::mem::replace(&mut b.online, n)
    } else {
        super::set_online(n)
    }
}

/// A process that has ended blocks nothing any more.
#[inline]
pub fn owner_exit(pid: Term) {
    // Reading one word is all that nearly every process costs here.
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

/// The process `me` blocks or unblocks. Other schedulers finish the time slice that they are in, and threads of the dirty
/// pools the native: the caller waits for that.
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
