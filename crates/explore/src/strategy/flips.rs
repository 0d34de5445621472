//! Flips: each race of the base is turned round, one at a time.
//!
//! A process stops once before an operation, so that the others overtake it. One preemption is
//! enough for most concurrency bugs (Musuvathi, Qadeer: Iterative context bounding for systematic
//! testing of multithreaded programs, PLDI 2007; Thomson, Donaldson, Betts: Concurrency testing
//! using controlled schedulers, TOPC 2016).
//!
//! # Invariants
//! * Each listed schedule has one deviation.
//! * The list ends, and its length is bounded by the points of the base and their rivals.

use super::interface::{Mix, Strategy, interleave};
use super::late;
use crate::base::Base;
use crate::deviation::{Deviation, Kind, Schedule};
use crate::operation::Operation;

pub(super) struct Flips;

/// Lists stops, in this order: at racing points; exact reversals of two operations on one key of a
/// table, which are few and of which each may matter; at calm points; other exact reversals; at
/// wakes.
pub(super) fn list(base: &Base) -> Vec<Schedule> {
    let mut all = base.singles(&base.racing, Kind::Last);
    all.extend(reversals(base, true));
    all.extend(base.singles(&base.calm, Kind::Last));
    all.extend(reversals(base, false));
    all.extend(base.singles(&base.wakes, Kind::Last));
    all
}

/// Lists schedules in which a process waits for one rival operation. `keyed`: those on a key.
fn reversals(base: &Base, keyed: bool) -> impl Iterator<Item = Schedule> + '_ {
    let of_key = move |i: &&usize| {
        let t = &base.op(**i).touch;
        t.operation != Operation::Wake && keyed == (t.key != 0)
    };
    base.racing.iter().filter(of_key).flat_map(move |&i| {
        let point = base.op(i).point();
        let rivals = base.rivals(i).into_iter();
        rivals.map(move |(p, o)| vec![Deviation::at(point, Kind::After(p, o))])
    })
}

impl Strategy for Flips {
    fn mix(&self) -> Mix {
        Mix::Listed
    }

    fn list(&self, base: &Base) -> Vec<Schedule> {
        interleave(vec![list(base), late::list(base)])
    }
}
