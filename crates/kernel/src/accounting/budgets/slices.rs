//! The begin and the end of a time slice, for the budget of the process that runs.

use super::paying::set_payer;
use super::row::{NO_LIMIT, ROOT};
use super::seats::{Seat, seat};
use super::tree::{get, on, upwards};
use crate::clock;
use crate::process::{Process, table};
use purlin_term::{payer, pressure};
use std::cell::Cell;
use std::sync::atomic::Ordering;

thread_local! {
    /// Whether the process that this thread runs had collected all of its garbage for a block.
    static WAS_CLEAN: Cell<bool> = const { Cell::new(false) };
    /// Processor time of this thread when it began to run a process with a budget; 0 for none.
    static BEGUN: Cell<i64> = const { Cell::new(0) };
}

/// A time slice of a process begins on this thread. Returns whether it should be short, since the
/// processor time of its budget is limited.
#[inline(always)]
pub fn begins(p: *const Process) -> bool {
    on() && begins_in_budget(p)
}

#[inline(never)]
fn begins_in_budget(p: *const Process) -> bool {
    {
        let seat = seat(table().index(p));
        let budget = seat.map_or(ROOT, Seat::budget);
        set_payer(budget);
        let clean = seat.is_none_or(|s| s.clean.swap(false, Ordering::Relaxed));
        WAS_CLEAN.set(clean);
        pressure::begin_slice(clean);
        BEGUN.set(match budget {
            ROOT => 0,
            _ => clock::thread_time(),
        });
        budget != ROOT && upwards(budget, ROOT).any(|b| b.cpu().0 != NO_LIMIT)
    }
}

/// Notes that the process that this thread runs has collected all of its garbage: it continues with
/// the same native in another time slice, and does not collect again there.
pub fn keeps_clean(p: *const Process) {
    if WAS_CLEAN.get()
        && let Some(s) = seat(table().index(p))
    {
        s.clean.store(true, Ordering::Relaxed);
    }
}

/// Whether the process that this thread runs has to collect all of its garbage now, for a block
/// that its budget refuses otherwise.
pub fn takes_collection(p: *const Process) -> bool {
    let wanted = pressure::takes_collection();
    if wanted && let Some(s) = seat(table().index(p)) {
        s.clean.store(true, Ordering::Relaxed);
    }
    wanted
}

/// A time slice ends on this thread.
#[inline(always)]
pub fn ends() {
    if on() {
        let begun = BEGUN.replace(0);
        if begun != 0 {
            let used = clock::thread_time() - begun;
            let mut at = payer::current();
            while let Some(b) = get(at) {
                b.cpu.charge(used);
                let capped = b.cpu.waits.load(Ordering::Relaxed);
                b.weighted.charge(b.siblings(), used, capped);
                at = b.parent();
            }
        }
        set_payer(ROOT);
    }
}
