//! Whether a process may own tables, fixations or open files. Few processes own any, and each kind
//! is kept in its own table under a lock. So that the other exits need not take those locks,
//! resources are also counted here, by a few bits of the owner's pid.
//!
//! # Invariant
//! A resource is counted before it is entered in its table, and until after it is removed from
//! there. Together with the fences of [`super::table::Table::is_alive`] and of the exit of a
//! process: a thread that gives a resource to another process finds that it has ended, or that
//! process finds the resource.

use super::resource_count::Count;
use crate::sync::AtomicU32;
use purlin_term::Term;

const SLOTS: usize = 1024;

static COUNTS: [Count; SLOTS] = [const { Count(AtomicU32::new(0)) }; SLOTS];

#[inline]
fn slot(pid: Term) -> &'static Count {
    &COUNTS[pid.pid_data() as usize % SLOTS]
}

/// Counts a resource of a local process, before it is entered in its table.
#[inline]
pub fn enter(pid: Term) {
    slot(pid).enter();
}

/// Counts `n` removed resources.
#[inline]
pub fn leave(pid: Term, n: usize) {
    if n != 0 {
        slot(pid).leave(n as u32);
    }
}

/// Whether a local process may own a resource. False is certain.
#[inline]
pub fn any(pid: Term) -> bool {
    slot(pid).any()
}
