//! Messages that are held back, where any order of delivery is tried that Erlang allows: a message may arrive after one that another
//! process has sent later, but before all that its own sender sends to the same receiver afterwards.
//!
//! A message is held back until another process has sent something to its receiver, or nobody can run; until its sender sends the
//! receiver anything else; and until its sender ends, if the receiver is told of that.

use super::ops::{self, Touch};
use crate::cx::Cx;
use crate::message::{Kind, Signal};
use crate::process::ext::Peer;
use crate::process::table;
use crate::signal::send::{Destination, destination, push_or_free, send};
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

struct Back {
    /// The sender's pid.
    from: u32,
    to: Term,
    /// The alias that it was sent by.
    alias: Option<OwnedTerm>,
    message: OwnedTerm,
    /// What it was held back for has been sent.
    due: bool,
}

/// Some are held back, or the next send of a process is.
static ANY: AtomicBool = AtomicBool::new(false);
static HELD: Mutex<(Option<u32>, Vec<Back>)> = Mutex::new((None, Vec::new()));

/// A pid that nobody has: what is sent there is sent to nobody.
const NOBODY: Term = Term::pid((1 << 28) - 1);

fn held() -> MutexGuard<'static, (Option<u32>, Vec<Back>)> {
    HELD.lock().unwrap_or_else(|e| e.into_inner())
}

#[inline]
pub(super) fn any() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// The send that this process is about to do is held back.
pub(super) fn next_of(pid_data: u32) {
    held().0 = Some(pid_data);
    ANY.store(true, Ordering::Relaxed);
}

/// The process in `cx` sends x1 to x0 by the next instruction. If that is to be held back it is kept here, and the instruction sends to
/// nobody.
pub fn takes(cx: &mut Cx) {
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
    h.1.push(Back {
        from: me,
        to,
        alias,
        message: OwnedTerm::copy_of(cx.x[1]),
        due: false,
    });
    cx.x[0] = NOBODY;
}

fn deliver(b: Back) {
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

/// Delivers those that `which` takes, in order. Whether there were any.
fn deliver_those(which: impl Fn(&Back) -> bool) -> bool {
    if !any() {
        return false;
    }
    let mut h = held();
    let (out, kept) = std::mem::take(&mut h.1).into_iter().partition(which);
    h.1 = kept;
    ANY.store(h.0.is_some() || !h.1.is_empty(), Ordering::Relaxed);
    drop(h);
    let out: Vec<Back> = out;
    let some = !out.is_empty();
    out.into_iter().for_each(deliver);
    some
}

/// Delivers those that are due.
pub(super) fn deliver_due() {
    deliver_those(|b| b.due);
}

/// Nobody can run: all that are held back are delivered. False: there are none.
pub fn deliver_all() -> bool {
    deliver_those(|_| true)
}

/// A process is about to do that: what it has sent before to the same process comes first.
pub(super) fn before(pid_data: u32, touch: &Touch) {
    deliver_those(|b| {
        b.from == pid_data && (touch.object == b.to.raw() || ops::signals_unnamed(touch.native))
    });
}

/// A process does that: messages to the same receiver that were held back are due.
pub(super) fn done(pid_data: u32, touch: &Touch) {
    if any() && ops::sends(touch.native) {
        let mut h = held();
        let all = h.1.iter_mut();
        for b in all.filter(|b| b.from != pid_data && b.to.raw() == touch.object) {
            b.due = true;
        }
    }
}

/// A process ends: those who are told of it get what it has sent before.
pub(super) fn ends(pid_data: u32) {
    if !any() {
        return;
    }
    let Some(p) = table().find(Term::pid(pid_data)) else {
        return;
    };
    deliver_those(|b| {
        // SAFETY: the only thread; the process is whole until all were told.
        let ext = unsafe { (*p).ext() };
        b.from == pid_data
            && ext.is_some_and(|e| {
                e.links.contains(&Peer::of(b.to)) || e.watchers.iter().any(|(_, w)| w.by() == b.to)
            })
    });
}
