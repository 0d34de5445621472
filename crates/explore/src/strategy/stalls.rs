//! Stalls: one process is late by some milliseconds of virtual time.
//!
//! A loaded machine delays processes in this way, and timeouts then fail. A process stalls as long
//! as allowed first, then for 30, 10 and 3 ms: long starvation and short delays find different bugs
//! (O'Callahan: rr chaos mode, 2016 and 2018).
//!
//! # Invariants
//! * Each listed schedule has one deviation, and no stall is longer than allowed.
//! * Nothing is listed if no stall is allowed.

use super::interface::{Mix, Strategy};
use crate::base::Base;
use crate::deviation::{Kind, Schedule};
use crate::operation::Op;
use std::collections::HashSet;

/// Lengths of stalls after the longest, in nanoseconds.
const SHORTER: [i64; 3] = [30_000_000, 10_000_000, 3_000_000];

pub(super) struct Stalls;

/// Lists stalls that may meet a timer. A timer that is set already is met more surely than one that
/// is yet to come.
pub(super) fn near(base: &Base) -> Vec<Schedule> {
    let stall = base.stall;
    if stall <= 0 {
        return Vec::new();
    }
    let classes = [&base.alone, &base.racing, &base.calm, &base.wakes];
    let mut near: Vec<usize> = classes.into_iter().flat_map(|v| base.timed(v)).collect();
    let later = |o: &Op| o.due > o.at.saturating_add(stall);
    near.sort_unstable_by_key(|&i| (later(base.op(i)), !base.op(i).code, i));
    let mut all = base.singles(&near, Kind::Stall(stall));
    for s in SHORTER.into_iter().filter(|s| *s < stall) {
        all.extend(base.singles(&near, Kind::Stall(s)));
    }
    all
}

/// Lists the longest stall at the other points.
pub(super) fn far(base: &Base, near: &[Schedule]) -> Vec<Schedule> {
    if base.stall <= 0 {
        return Vec::new();
    }
    let near: HashSet<&Schedule> = near.iter().collect();
    let all = [&base.racing[..], &base.alone, &base.calm].concat();
    let mut far = base.singles(&all, Kind::Stall(base.stall));
    far.retain(|s| !near.contains(s));
    far
}

impl Strategy for Stalls {
    fn mix(&self) -> Mix {
        Mix::Listed
    }

    fn list(&self, base: &Base) -> Vec<Schedule> {
        let mut all = near(base);
        let far = far(base, &all);
        all.extend(far);
        all
    }
}
