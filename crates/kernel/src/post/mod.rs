//! Delivery: puts a signal into the queue of a process and wakes the process. [`crate::signal`]
//! decides what is sent, and to which process.
//!
//! # Orderings
//! The id of a cell is loaded with acquire after the word of its queue. `message/queue.rs` says why
//! the two belong together.

use crate::budgets;
use crate::events;
use crate::message::{Kind, Signal};
use crate::process::state::Wake;
use crate::process::{Process, table};
use crate::sched;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Alloc, Term, delays};
use std::sync::atomic::Ordering;

/// Pushes a signal on the queue of a local process and wakes it. Returns false if there is no such
/// process; the signal is still the caller's then.
///
/// # Safety
/// `sig` is a signal owned by the caller.
#[inline]
pub unsafe fn push(to: Term, sig: *mut Signal) -> bool {
    match table().find(to) {
        // SAFETY: by the contract; `p` is a cell.
        Some(p) => unsafe { push_at(p, to, sig) != Pushed::Refused },
        None => false,
    }
}

/// The outcome of sending a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// There is no such process. The signal is still the caller's.
    Refused,
    Done,
    /// The receiver has fallen behind with its signals.
    Behind,
}

/// As [`push`], to the cell that was found for `to`.
///
/// # Safety
/// As for [`push`]; `p` is a cell.
#[inline]
pub(crate) unsafe fn push_at(p: *mut Process, to: Term, sig: *mut Signal) -> Pushed {
    // SAFETY: the contract is the same.
    match unsafe { put(p, to, sig) } {
        None => Pushed::Refused,
        Some(Wake::Enqueue(prio)) => {
            sched::enqueue(p, prio);
            Pushed::Done
        }
        Some(Wake::Dirty(io)) => {
            sched::take_from_pool(p, io);
            Pushed::Done
        }
        Some(Wake::Seen) => Pushed::Done,
        Some(Wake::Behind) => Pushed::Behind,
    }
}

/// Puts a signal into the queue in transit. Returns `None` if there is no such process; the signal
/// is still the caller's then.
///
/// # Safety
/// As for [`push_at`].
#[inline(always)]
unsafe fn put(p: *mut Process, to: Term, sig: *mut Signal) -> Option<Wake> {
    let data = to.pid_data();
    // SAFETY: cells are never unmapped. Only the atomics of this one are read, which needs no
    // ownership.
    let (id, in_transit, state) = unsafe { (&(*p).id, &(*p).in_transit, &(*p).state) };
    // SAFETY: the signal is the caller's.
    let (control, link) = unsafe { (!(*sig).kind.is_message(), &raw mut (*sig).link) };
    // SAFETY: the signal is the caller's.
    let counted = budgets::on() && unsafe { counts(p, sig) };
    // SAFETY: the signal is the caller's. Blocks of signals are aligned to words, below 2^48.
    let pushed = unsafe { in_transit.push(link, || id.load(Ordering::Acquire) == data) };
    if counted && pushed.is_err() {
        count(p, -1);
    }
    pushed.ok()?;
    delays::where_hot();
    Some(state.wake_for(control))
}

/// Counts a message for the budget of its receiver, if that has one. Returns whether it does.
///
/// # Safety
/// `sig` is a signal owned by the caller.
#[cold]
unsafe fn counts(p: *mut Process, sig: *mut Signal) -> bool {
    // SAFETY: by the contract.
    let kind = unsafe { (*sig).kind };
    let counted = (kind.is_message() || kind == Kind::External) && budgets::of(p) != budgets::ROOT;
    if counted {
        count(p, 1);
    }
    counted
}

#[cold]
fn count(p: *mut Process, n: i32) {
    if let Some(s) = budgets::seat(table().index(p)) {
        s.transit.fetch_add(n, Ordering::Relaxed);
    }
}

/// As [`push`], but leaves the wake-up to the caller. Returns the cell of the process and what the
/// wake-up requires; `None` if there is no such process. The signal is still the caller's then.
///
/// # Safety
/// As for [`push`].
#[cfg_attr(test, allow(dead_code))] // Tests of timers record what fires instead.
pub(crate) unsafe fn push_only(to: Term, sig: *mut Signal) -> Option<(u32, Wake)> {
    let p = table().find(to)?;
    // SAFETY: by the contract; `p` is a cell.
    let wake = unsafe { put(p, to, sig)? };
    Some((table().index(p), wake))
}

/// As [`push`]. Frees a signal that can't be delivered.
///
/// # Safety
/// As for [`push`]; `sig` is no [`Kind::Run`].
#[inline]
pub unsafe fn push_or_free(to: Term, sig: *mut Signal) -> bool {
    // SAFETY: by the contract. A signal that was not delivered is still the caller's.
    unsafe {
        let ok = push(to, sig);
        if !ok {
            Signal::free(sig);
        }
        ok
    }
}

/// Sends a copy of `msg` to a local process, from any thread. Returns false if there is no such
/// process.
#[inline]
pub fn send(to: Term, msg: Term) -> bool {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, Signal::copy_of(Kind::Message, msg)) }
}

/// As [`send`]. Tracers of messages may learn the sender: a pid, or an atom for a part of the
/// runtime.
#[inline]
pub fn send_from(from: Term, to: Term, msg: Term) -> bool {
    if !events::by_sender() {
        return send(to, msg);
    }
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, Signal::sent(None, from, msg)) }
}

/// Sends what `f` builds to a local process, from any thread. Returns false if there is no such
/// process.
#[inline]
pub fn send_with(to: Term, f: impl FnOnce(&mut dyn Alloc) -> Term) -> bool {
    let mut frag = Fragment::new();
    let t = f(&mut frag);
    let owned = OwnedTerm::from_parts(t, frag);
    send(to, owned.term())
}

/// Wakes a process for no visible reason: a native that waits is called again.
#[inline]
pub fn wake(pid: Term) {
    if let Some(p) = table().find(pid) {
        // SAFETY: cells are never unmapped; the state word is an atomic.
        match unsafe { (*p).state.wake() } {
            Wake::Enqueue(prio) => sched::enqueue(p, prio),
            Wake::Dirty(io) => sched::take_from_pool(p, io),
            Wake::Seen | Wake::Behind => {}
        }
    }
}
