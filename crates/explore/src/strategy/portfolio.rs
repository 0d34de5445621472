//! The portfolio: all strategies in turn.
//!
//! No strategy finds most bugs of all kinds first (Thomson, Donaldson, Betts, TOPC 2016; Coyote
//! runs a portfolio for that reason). Flips, stalls and late messages are listed one after the
//! other in turn. Two thirds of the random schedules use a sampler; the others are delays of two or
//! three deviations.
//!
//! # Invariant
//! Stalls that can meet no timer of the base come after everything else that is listed.

use super::delays::Delays;
use super::flips;
use super::interface::{Mix, Strategy, interleave};
use super::late;
use super::sampled::Sampled;
use super::stalls;
use crate::base::Base;
use crate::deviation::{Sampling, Schedule};
use crate::numbers::Numbers;

pub(super) struct Portfolio;

impl Strategy for Portfolio {
    fn mix(&self) -> Mix {
        Mix::Both
    }

    fn list(&self, base: &Base) -> Vec<Schedule> {
        let near = stalls::near(base);
        let far = stalls::far(base, &near);
        let mut all = interleave(vec![flips::list(base), near, late::list(base)]);
        all.extend(far);
        all
    }

    fn draw(&self, base: &Base, numbers: &mut Numbers) -> Option<Schedule> {
        match numbers.below(6) {
            0 => Sampled(Sampling::Pos).draw(base, numbers),
            1 => Sampled(Sampling::Pct(3)).draw(base, numbers),
            2 => Sampled(Sampling::Surw).draw(base, numbers),
            3 => Sampled(Sampling::Walk).draw(base, numbers),
            n => Delays(n - 2).draw(base, numbers),
        }
    }
}
