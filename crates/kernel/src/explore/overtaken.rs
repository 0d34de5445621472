//! Messages from other nodes that are late, while those that other processes have sent pass by:
//! Erlang orders only what one process sends to another one.
//!
//! # Invariants
//! * What a process has sent stays in order: behind a late message waits all that its sender sends
//!   to the same receiver, and a signal of the sender that the receiver can tell from it by their
//!   order comes after it.
//! * When a connection ends, all that has come by it is there.

use crate::message::{Kind, Signal};
use crate::os::exploring;
use crate::signal::send::{push_or_free, send};
use purlin_term::Term;
use purlin_term::compare::eq_exact;
use purlin_term::frag::OwnedTerm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

struct Late {
    from: OwnedTerm,
    to: Term,
    /// The alias to which it was sent.
    alias: Option<OwnedTerm>,
    message: OwnedTerm,
    until: i64,
}

/// Whether any message is late.
static ANY: AtomicBool = AtomicBool::new(false);
/// In the order in which they have come.
static LATE: Mutex<Vec<Late>> = Mutex::new(Vec::new());

fn late() -> MutexGuard<'static, Vec<Late>> {
    LATE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Keeps a message for a process of this node if it is late by `ns`, or behind one that is. Whether
/// it is kept.
pub fn keeps(
    from: Term,
    to: Term,
    alias: Option<Term>,
    message: &OwnedTerm,
    ns: Option<i64>,
) -> bool {
    if ns.is_none() && !ANY.load(Ordering::Relaxed) || from.as_external().is_none() {
        return false;
    }
    let mut all = late();
    let behind = all
        .iter()
        .rev()
        .find(|l| l.to == to && eq_exact(l.from.term(), from));
    let behind = behind.map(|l| l.until);
    let Some(until) = ns.map(|ns| exploring::now() + ns).max(behind) else {
        return false;
    };
    all.push(Late {
        from: OwnedTerm::copy_of(from),
        to,
        alias: alias.map(OwnedTerm::copy_of),
        message: OwnedTerm::copy_of(message.term()),
        until,
    });
    ANY.store(true, Ordering::Relaxed);
    true
}

/// Delivers those for which `which` is true, in order.
fn deliver(which: impl Fn(&Late) -> bool) {
    if !ANY.load(Ordering::Relaxed) {
        return;
    }
    let mut all = late();
    let (out, kept) = std::mem::take(&mut *all).into_iter().partition(which);
    *all = kept;
    ANY.store(!all.is_empty(), Ordering::Relaxed);
    drop(all);
    let out: Vec<Late> = out;
    for l in out {
        match l.alias {
            None => {
                send(l.to, l.message.term());
            }
            Some(a) => {
                let s = Signal::pair_of(Kind::AliasMessage, a.term(), l.message.term());
                // SAFETY: a fresh signal.
                unsafe { push_or_free(l.to, s) };
            }
        }
    }
}

/// Delivers those whose time has come.
pub(super) fn deliver_due() {
    let now = exploring::now();
    deliver(|l| l.until <= now);
}

/// A signal that must not overtake messages comes, of a process that is one of these terms.
pub fn before(named: &[Term]) {
    deliver(|l| named.iter().any(|t| eq_exact(*t, l.from.term())));
}

/// A connection ends.
pub fn deliver_all() {
    deliver(|_| true);
}

/// Returns the time at which the next one is delivered.
pub fn next() -> Option<i64> {
    match ANY.load(Ordering::Relaxed) {
        true => late().iter().map(|l| l.until).min(),
        false => None,
    }
}
