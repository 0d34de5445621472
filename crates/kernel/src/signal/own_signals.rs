//! Signals in transit to a process that asks about itself.
//!
//! On stock, `process_info(self(), …)` handles arrived signals only if the process has sent one of
//! them itself. What stays in transit until the next receive, time slice or call that waits:
//! - the monitors by which sockets and resources of libraries watch their owner;
//! - the `DOWN` message of a monitor of a name or a port that does not exist;
//! - the process's newest monitor of a process that has ended.

use super::handle;
use crate::cx::Cx;
use crate::message::keys::RefKey;
use crate::message::queue::Link;
use crate::message::{Kind, Signal};
use crate::post::push_or_free;
use crate::process::Process;
use purlin_term::{NIL, Term, am};

/// Number of signals that are looked at. Where more have arrived, all are handled.
const LOOKED_AT: usize = 4096;

/// Calls `f` for each signal in transit, the newest first, until it returns false.
fn each(p: &Process, mut f: impl FnMut(&Signal) -> bool) {
    let mut at = p.in_transit.newest();
    // SAFETY: only this thread, which owns the process, takes signals away. The push of each has
    // made its words visible. A link is the first word of its signal.
    while let Some(s) = unsafe { (at as *const Signal).as_ref() } {
        if !f(s) {
            return;
        }
        at = s.link.next;
    }
}

/// The elements of a signal of this kind. Signals of other kinds may have no term.
fn elements(s: &Signal, kind: Kind) -> Option<&[Term]> {
    if s.kind == kind {
        s.term.as_tuple()
    } else {
        None
    }
}

/// The reference, the type and the object in a `DOWN` signal of a monitor that found nothing.
fn found_nothing(s: &Signal) -> Option<[Term; 3]> {
    match *elements(s, Kind::Down)? {
        [_, r, kind, object, am::NOPROC] => Some([r, kind, object]),
        _ => None,
    }
}

/// Whether the signal is that of a monitor of a local process that has ended.
fn of_ended(s: &Signal) -> bool {
    found_nothing(s).is_some_and(|[_, _, object]| object.is_local_pid())
}

/// Whether process_info on the process itself leaves the signal in transit.
fn stays(s: &Signal) -> bool {
    let by = match s.kind {
        Kind::Monitor | Kind::Demonitor => elements(s, s.kind).and_then(|e| e.get(1)),
        _ => return found_nothing(s).is_some(),
    };
    by == Some(&NIL)
}

/// Handles arrived signals before the process looks at itself.
pub fn fetch(cx: &mut Cx) {
    let p = cx.process();
    let (mut n, mut ended, mut all) = (0, 0, true);
    let mut kept: *const Link = std::ptr::null();
    each(p, |s| {
        all &= stays(s);
        if of_ended(s) {
            ended += 1;
            if kept.is_null() {
                kept = &s.link;
            }
        }
        n += 1;
        n < LOOKED_AT && (all || kept.is_null())
    });
    if all && ended <= 1 && n < LOOKED_AT {
        return;
    }
    if kept.is_null() {
        handle::fetch(cx);
        return;
    }
    if !p.state.take_signals() {
        return;
    }
    let mut chain = p.in_transit.take();
    // SAFETY: the chain was taken, and all of it is this thread's.
    let kept = unsafe { remove(&mut chain, kept) };
    let live = std::mem::take(&mut cx.interp.live);
    if !chain.is_null() {
        // SAFETY: the rest of a chain that was taken.
        unsafe { handle::handle_chain(cx, chain) };
    }
    cx.interp.live = live;
    if let Some(s) = kept {
        // SAFETY: it is this thread's, and in no chain.
        unsafe { push_or_free(cx.self_pid(), s as *mut Signal) };
    }
}

/// Removes the link `which` from a chain, and returns it.
///
/// # Safety
/// The chain belongs to the caller.
unsafe fn remove(mut chain: &mut *mut Link, which: *const Link) -> Option<*mut Link> {
    // SAFETY: by the contract, each link leads to the next, and the last to null.
    unsafe {
        while !chain.is_null() && !std::ptr::eq(*chain, which) {
            chain = &mut (**chain).next;
        }
        let found = *chain;
        *chain = found.as_ref()?.next;
        Some(found)
    }
}

/// Notes that a socket has begun to watch the running process, which learns of it with its next
/// signals. `socket` is the socket's reference, which is no monitor of any process.
pub fn note_socket(cx: &mut Cx, socket: Term) {
    let s = Signal::tuple_of(Kind::Demonitor, &[socket, NIL]);
    // SAFETY: a fresh signal.
    unsafe { push_or_free(cx.self_pid(), s) };
}

/// Removes from `watching` the references of sockets whose notes are in transit.
pub fn without_noted(p: &Process, watching: &mut Vec<Term>) {
    if watching.is_empty() {
        return;
    }
    each(p, |s| {
        if let Some(&[r, NIL]) = elements(s, Kind::Demonitor)
            && let Some(k) = RefKey::of(r)
            && let Some(i) = watching.iter().rposition(|&t| RefKey::of(t) == Some(k))
        {
            watching.remove(i);
        }
        true
    });
}

/// Calls `f` with the reference, the type and the object of each monitor that found nothing, and
/// whose `DOWN` message is in transit.
pub fn each_of_nothing(p: &Process, mut f: impl FnMut(RefKey, Term, Term)) {
    each(p, |s| {
        if let Some([r, kind, object]) = found_nothing(s)
            && let Some(k) = RefKey::of(r)
        {
            f(k, kind, object);
        }
        true
    });
}
