//! Messages that are held back, where any order of delivery is tried that Erlang allows: a message
//! may arrive after one that another process has sent later, but before all that its own sender
//! sends to the same receiver afterwards.
//!
//! # Invariant
//! A message is held back until another process has sent something to its receiver, or no process
//! can run; at most until its sender sends the receiver anything else, or ends, if the receiver
//! hears of that.

use super::operations::What;
use crate::cx::Cx;
use crate::message::{Kind, Signal};
use crate::process::ext::Peer;
use crate::process::table;
use crate::signal::send::{Destination, destination, push_or_free, send};
use purlin_explore::operation::Touch;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

struct Held {
    /// The number of the sender's pid.
    from: u32,
    to: Term,
    /// The alias to which it was sent.
    alias: Option<OwnedTerm>,
    message: OwnedTerm,
    /// Whether another process has sent something to the receiver.
    due: bool,
}

/// Whether messages are held back, or the next one of a process is.
static ANY: AtomicBool = AtomicBool::new(false);
/// The process whose next message is held back, and the messages.
static HELD: Mutex<(Option<u32>, Vec<Held>)> = Mutex::new((None, Vec::new()));

/// A pid that no process has.
const NO_PROCESS: Term = Term::pid((1 << 28) - 1);

fn held() -> MutexGuard<'static, (Option<u32>, Vec<Held>)> {
    HELD.lock().unwrap_or_else(|e| e.into_inner())
}

/// Whether messages are held back, or the next one of a process is.
#[inline]
pub(super) fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// Holds back the message that this process is about to send.
pub(super) fn next_of(pid_data: u32) {
    held().0 = Some(pid_data);
    ANY.store(true, Ordering::Relaxed);
}

/// Called before an instruction that sends x1 to x0. If the message is to be held back it is kept
/// here, and the instruction sends to no process.
pub fn take(cx: &mut Cx) {
    if !any() {
        return;
    }
    let me = cx.process().pid().pid_data();
    let mut h = held();
    if h.0 != Some(me) {
        return;
    }
    h.0 = None;
    let (to, alias) = match destination(cx.x[0]) {
        Destination::Process(p) => (p, None),
        Destination::Alias(p) => (p, Some(OwnedTerm::copy_of(cx.x[0]))),
        _ => return,
    };
    h.1.push(Held {
        from: me,
        to,
        alias,
        message: OwnedTerm::copy_of(cx.x[1]),
        due: false,
    });
    cx.x[0] = NO_PROCESS;
}

fn deliver(b: Held) {
    match b.alias {
        None => {
            send(b.to, b.message.term());
        }
        Some(a) => {
            let s = Signal::pair_of(Kind::AliasMessage, a.term(), b.message.term());
            // SAFETY: a fresh signal.
            unsafe { push_or_free(b.to, s) };
        }
    }
}

/// Delivers the messages for which `which` is true, in order. Whether there were any.
fn deliver_those(which: impl Fn(&Held) -> bool) -> bool {
    if !any() {
        return false;
    }
    let mut h = held();
    let (out, kept) = std::mem::take(&mut h.1).into_iter().partition(which);
    h.1 = kept;
    ANY.store(h.0.is_some() || !h.1.is_empty(), Ordering::Relaxed);
    drop(h);
    let out: Vec<Held> = out;
    let some = !out.is_empty();
    out.into_iter().for_each(deliver);
    some
}

/// Delivers the messages that are due.
pub(super) fn deliver_due() {
    deliver_those(|b| b.due);
}

/// Delivers all messages, since no process can run. False: there are none.
pub fn deliver_all() -> bool {
    deliver_those(|_| true)
}

/// Delivers what the process in `cx` has sent before to the process that its next operation
/// touches.
pub(super) fn before(cx: &mut Cx, what: What) {
    let from = cx.process().pid().pid_data();
    let object = what.touch(cx).object;
    deliver_those(|b| b.from == from && (object == b.to.raw() || what.signals_unnamed()));
}

/// A process does an operation: if it sends, messages of others to the same receiver become due.
pub(super) fn done(pid_data: u32, touch: &Touch) {
    if any() && touch.effects.sends {
        let mut h = held();
        let all = h.1.iter_mut();
        for b in all.filter(|b| b.from != pid_data && b.to.raw() == touch.object) {
            b.due = true;
        }
    }
}

/// A process ends: the processes that hear of it get what it has sent before.
pub(super) fn end(pid_data: u32) {
    if !any() {
        return;
    }
    let Some(p) = table().find(Term::pid(pid_data)) else {
        return;
    };
    deliver_those(|b| {
        // SAFETY: the only thread; the process is whole until all others know.
        let ext = unsafe { (*p).ext() };
        b.from == pid_data
            && ext.is_some_and(|e| {
                e.links.contains(&Peer::of(b.to)) || e.watchers.iter().any(|(_, w)| w.by() == b.to)
            })
    });
}
