//! Delays: some random deviations, most of them stops.
//!
//! Emmi, Qadeer, Rakamarić: Delay-bounded scheduling, POPL 2011. Half of the stops are at racing
//! points. A quarter of the deviations are stalls, in octaves from a millisecond, so that short
//! ones are as frequent as long ones; where messages may be held back, a quarter of all deviations
//! does that.
//!
//! # Invariants
//! * No two deviations of a schedule have the same point.
//! * All stalls of a schedule together are no longer than one may be.

use super::interface::{Mix, Strategy};
use crate::base::Base;
use crate::deviation::{Deviation, Kind, Schedule};
use crate::numbers::Numbers;

/// The shortest stall, in nanoseconds, and the number of octaves above it.
const SHORTEST: i64 = 1_000_000;
const OCTAVES: usize = 7;

/// The strategy, with the number of deviations of a schedule.
pub(super) struct Delays(pub usize);

impl Strategy for Delays {
    fn mix(&self) -> Mix {
        Mix::Drawn
    }

    fn draw(&self, base: &Base, numbers: &mut Numbers) -> Option<Schedule> {
        if base.places.is_empty() {
            return None;
        }
        let mut s: Schedule = Vec::new();
        let mut stall = base.stall;
        for _ in 0..self.0 {
            let late = &base.late_places;
            let d = if !late.is_empty() && numbers.below(4) == 0 {
                Deviation::at(late[numbers.below(late.len())], Kind::Back)
            } else {
                let racing = base.racing_places;
                let among = match racing > 0 && numbers.below(2) == 0 {
                    true => racing,
                    false => base.places.len(),
                };
                let point = base.places[numbers.below(among)];
                let kind = match stall > 0 && numbers.below(4) == 0 {
                    true => {
                        let ns = (SHORTEST << numbers.below(OCTAVES)).min(stall);
                        stall -= ns;
                        Kind::Stall(ns)
                    }
                    false => Kind::Last,
                };
                Deviation::at(point, kind)
            };
            if !s.iter().any(|other| other.point() == d.point()) {
                s.push(d);
            }
        }
        base.sort(&mut s);
        Some(s)
    }
}
