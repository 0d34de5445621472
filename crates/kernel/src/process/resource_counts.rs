//! Whether anything may belong to a process: tables and fixations of them, open files. What most processes never have is
//! kept in tables of its own kind, under locks; so that their ends need not go there, things are counted here too, by a few
//! bits of the owner's pid.
//!
//! # Invariant
//! A thing is counted before it is entered where it belongs, and until after it has gone from there. With the fences of
//! [`super::table::Table::is_alive`] and of the end of a process, whoever gives something to another process finds that
//! it has ended, or that process finds the thing.

use super::resource_count::Count;
use crate::sync::AtomicU32;
use purlin_term::Term;

const SLOTS: usize = 1024;

static COUNTS: [Count; SLOTS] = [const { Count(AtomicU32::new(0)) }; SLOTS];

#[inline]
fn slot(pid: Term) -> &'static Count {
    &COUNTS[pid.pid_data() as usize % SLOTS]
}

/// A thing is about to become a local process's.
#[inline]
pub fn enter(pid: Term) {
    slot(pid).enter();
}

/// `n` things have gone.
#[inline]
pub fn leave(pid: Term, n: usize) {
    if n != 0 {
        slot(pid).leave(n as u32);
    }
}

/// Whether a local process may have something. False: it has nothing.
#[inline]
pub fn any(pid: Term) -> bool {
    slot(pid).any()
}
