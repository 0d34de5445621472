//! The permission to change code, which a process may keep to itself: for trying what becomes of those who want to meanwhile. They
//! begin anew until they may. What changes code has locks of its own, and needs this for nothing else.

use crate::cx::{Cx, Fail};
use crate::process;
use purlin_term::Term;
use std::sync::atomic::{AtomicU64, Ordering};

/// The word of the pid that has it; 0: nobody in particular.
static HOLDER: AtomicU64 = AtomicU64::new(0);

/// Whether the process in the context may change code now; else it is to begin anew.
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
    // It has ended and taken it along.
    let _ = HOLDER.compare_exchange(holder, 0, Ordering::AcqRel, Ordering::Acquire);
    Ok(())
}

/// The process in the context keeps it to itself from now on.
pub fn keep(cx: &mut Cx) -> Result<(), Fail> {
    wanted(cx)?;
    let me = cx.self_pid().raw();
    match HOLDER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Err(other) if other != me => Err(Fail::Again),
        _ => Ok(()),
    }
}

/// Nobody in particular has it any more.
pub fn give_back() {
    HOLDER.store(0, Ordering::Release);
}
