//! Charges to a budget and to those above it.
//!
//! A charge that one of them refuses is taken back from those below. What exists already is counted
//! whatever the limits, as memory is: its excess is found when something is weighed.
//!
//! # Races
//! A charge is added first and then compared. So a charge that is refused may have another one
//! refused that is made at the same time and would have fitted, and the peaks of those below the
//! budget that refuses may stay too high. No sum of charges that were let through exceeds a limit.

use super::row::{Counted, NO_LIMIT, ROOT};
use super::tree::{get, hold, let_go, upwards};
use crate::clock;
use purlin_term::pressure;
use std::sync::atomic::Ordering;

/// Charges `n` to `index` and the budgets above it, up to and without `to`. Returns false if one of
/// them has not that much left, or takes nothing more in; the charge is taken back then.
pub(super) fn charge(index: u32, to: u32, what: Counted, n: i64) -> bool {
    for (done, b) in upwards(index, to).enumerate() {
        if b.has_ended() || !b.add(what, n, false) {
            for b in upwards(index, to).take(done) {
                b.add(what, -n, true);
            }
            return false;
        }
    }
    true
}

/// Adds `n`, which may be negative, to the counts of `index` and the budgets above it, whatever
/// their limits.
pub(super) fn count(index: u32, to: u32, what: Counted, n: i64) {
    for b in upwards(index, to) {
        b.add(what, n, true);
    }
}

/// Charges a resource that is made, and has it hold the budget. Returns false if there is not so
/// much left.
pub(super) fn enter(index: u32, what: Counted) -> bool {
    if index == ROOT {
        return true;
    }
    if !hold(index) {
        return false;
    }
    let ok = memory_left(index).0 >= 0 && charge(index, ROOT, what, 1);
    if !ok {
        let_go(index);
    }
    ok
}

/// Takes a resource back that [`enter`] has charged.
pub(super) fn leave(index: u32, what: Counted) {
    if index != ROOT {
        count(index, ROOT, what, -1);
        let_go(index);
    }
}

/// A memory limit that is exceeded.
#[derive(Clone, Copy, Debug)]
pub struct Excess {
    pub budget: u32,
    pub limit: i64,
    pub used: i64,
}

/// The lowest budget, from `index` on, whose memory limit is exceeded.
pub(super) fn excess(index: u32) -> Option<Excess> {
    excess_with(index, 0, |limit| limit)
}

/// The lowest budget, from `index` on, that would exceed its memory limit by more than a sixteenth
/// if `bytes` bytes were copied.
pub fn excess_of_copy(index: u32, bytes: i64) -> Option<Excess> {
    excess_with(index, bytes, |limit| {
        limit.saturating_add(limit / COPIED_PART)
    })
}

/// The part of a limit by which a copy may exceed it for a moment.
const COPIED_PART: i64 = 16;

/// The lowest budget, from `index` on, that has more than `most` of its memory limit in use with
/// `more` bytes.
fn excess_with(index: u32, more: i64, most: impl Fn(i64) -> i64) -> Option<Excess> {
    let mut at = index;
    while let Some(b) = get(at) {
        let [limit, used, ..] = b.account(Counted::Memory);
        let used = used.saturating_add(more);
        if used > most(limit) {
            return Some(Excess {
                budget: at,
                limit,
                used,
            });
        }
        at = b.parent();
    }
    None
}

/// Bytes left up to the nearest memory limit of a budget and those above it, and that limit.
pub fn memory_left(index: u32) -> (isize, isize) {
    upwards(index, ROOT)
        .map(|b| b.account(Counted::Memory))
        .filter(|a| a[0] != NO_LIMIT)
        .map(|[limit, used, ..]| ((limit - used) as isize, limit as isize))
        .min()
        .unwrap_or((pressure::NO_LIMIT, pressure::NO_LIMIT))
}

/// Whether budget `index`, or one above it, has come a further step towards its memory limit.
pub fn fills_up(index: u32) -> bool {
    upwards(index, ROOT).fold(false, |any, b| {
        let [limit, used, ..] = b.account(Counted::Memory);
        let eighths = used / (limit / 8).max(1);
        limit != NO_LIMIT && b.fullness.advances(eighths, clock::elapsed) || any
    })
}

/// Adds bytes for which another budget is billed, too.
pub(super) fn share(index: u32, bytes: i64) {
    if let Some(b) = get(index) {
        b.shared.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Counts that a process was ended for a memory limit.
pub fn note_reached(index: u32) {
    if let Some(b) = get(index) {
        b.reached[Counted::Memory as usize].fetch_add(1, Ordering::Relaxed);
    }
}
