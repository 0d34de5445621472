//! The permission to change code, which a process may keep to itself, to test what happens to
//! others that want it meanwhile. They retry until they get it. Whatever changes code has locks of
//! its own and does not depend on this.
//!
//! # Orderings
//! `HOLDER` is one word that publishes nothing else: what changes code is ordered by its own locks.
//! The compare-and-swap elects one holder; no pairing is needed beyond the word itself.

use crate::cx::{Cx, Fail};
use crate::process;
use purlin_term::Term;
use std::sync::atomic::{AtomicU64, Ordering};

/// The word of the pid that holds it; 0 if nobody does.
static HOLDER: AtomicU64 = AtomicU64::new(0);

/// Whether the process in the context may change code now; otherwise it must retry.
#[inline]
pub fn wanted(cx: &mut Cx) -> Result<(), Fail> {
    match HOLDER.load(Ordering::Acquire) {
        0 => Ok(()),
        holder => wanted_of(cx, holder),
    }
}

#[cold]
fn wanted_of(cx: &mut Cx, holder: u64) -> Result<(), Fail> {
    let me = cx.self_pid();
    // SAFETY: the word of a local pid.
    let by = unsafe { Term::from_raw(holder) };
    if by == me {
        return Ok(());
    }
    if process::table().find(by).is_some() {
        return Err(Fail::Again);
    }
    // The holder has ended and did not give it back.
    let _ = HOLDER.compare_exchange(holder, 0, Ordering::AcqRel, Ordering::Acquire);
    Ok(())
}

/// Reserves the permission for the process in the context.
pub fn keep(cx: &mut Cx) -> Result<(), Fail> {
    wanted(cx)?;
    let me = cx.self_pid().raw();
    match HOLDER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Err(other) if other != me => Err(Fail::Again),
        _ => Ok(()),
    }
}

/// Whether a process has reserved the permission.
pub(crate) fn is_holder(pid: Term) -> bool {
    HOLDER.load(Ordering::Relaxed) == pid.raw()
}

/// Gives the permission back.
pub fn give_back() {
    HOLDER.store(0, Ordering::Release);
}
