//! Watching writes: reports, for each system call that writes, the vector that the kernel was
//! given.
//!
//! `purlin:watch_writes(Who, Tracer)` starts it, with a process as `Tracer`; `false` stops it.
//! `Who` is a port, for its writes; a process, for its writes to files and the writes of ports that
//! it owns or has sent to; or `all`. The message is `{write, Who, Written, [{Address, Bytes,
//! Origin}]}`. `Who` is the port, or the process that writes to a file. `Written` is how many bytes
//! the kernel took, or `error`. `Origin` is `merged` (copied together from small pieces),
//! `reference` (a part of a counted block, including a literal's), `heap` (a small binary in
//! place), or `queued` (left over from an earlier call). Addresses are numbers that only serve to
//! be compared.
//!
//! A tracer that watches `all` and prints the reports causes writes, which are reported too.
//!
//! A tracer that has ended is removed at the next write. While nobody watches, a system call costs
//! one more load of a flag.

use super::outbox;
use crate::gather::{Parts, max_parts};
use purlin_term::sync::Mutex;
use purlin_term::{Term, am, atom};
use std::sync::atomic::{AtomicBool, Ordering};

/// Pairs of subject (nil: all) and tracer.
static WATCHED: Mutex<Vec<(Term, Term)>> = Mutex::new(Vec::new());
static ON: AtomicBool = AtomicBool::new(false);

/// Whether anybody watches.
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Sets the tracer of the writes of `who` (nil: all); None stops it.
pub fn set(who: Term, tracer: Option<Term>) {
    let mut w = WATCHED.lock();
    w.retain(|e| e.0 != who);
    w.extend(tracer.map(|t| (who, t)));
    ON.store(!w.is_empty(), Ordering::Relaxed);
}

/// Reports a call that wrote the front of `parts`; None means that it failed. `who` is the writer
/// and all on whose behalf it writes.
#[cold]
pub(crate) fn report(who: &[Term], parts: &impl Parts, written: Option<usize>) {
    let mut to: Vec<Term> = {
        let mut w = WATCHED.lock();
        w.retain(|e| outbox::is_alive(e.1));
        ON.store(!w.is_empty(), Ordering::Relaxed);
        let mine = w.iter().filter(|e| e.0.is_nil() || who.contains(&e.0));
        mine.map(|e| e.1).collect()
    };
    to.sort_by_key(|t| t.raw());
    to.dedup();
    for tracer in to {
        outbox::message(tracer, |a| {
            let all = parts.parts().zip(parts.origins()).take(max_parts());
            let mut vector = Vec::new();
            for (bytes, origin) in all {
                let address = a.uint(bytes.as_ptr() as u64);
                let n = a.uint(bytes.len() as u64);
                vector.push(a.tuple(&[address, n, atom::intern(origin.name())]));
            }
            let vector = a.list(&vector);
            let n = match written {
                Some(n) => a.uint(n as u64),
                None => am::ERROR,
            };
            a.tuple(&[atom::intern("write"), who[0], n, vector])
        });
    }
}
