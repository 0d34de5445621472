//! A sampler for the whole run: what `random`, `pos`, `pct:D` and `surw` have in common.
//!
//! The run notes the order that was sampled, so that it can be repeated by deviations and shrunk.
//!
//! # Invariant
//! The schedule has one deviation, at which the sampler takes over: the first point at which
//! processes of the program can meet.

use super::interface::{Mix, Strategy};
use crate::base::Base;
use crate::deviation::{Deviation, Kind, Sampling, Schedule};
use crate::numbers::Numbers;
use crate::operation::Point;

/// The strategy of that sampler.
pub struct Sampled(pub Sampling);

impl Strategy for Sampled {
    fn mix(&self) -> Mix {
        Mix::Drawn
    }

    fn draw(&self, base: &Base, numbers: &mut Numbers) -> Option<Schedule> {
        let at = |p: &&Point| {
            let at = base.index(**p).unwrap_or(usize::MAX);
            (at < base.meets(), at)
        };
        let &point = base.places.iter().min_by_key(at)?;
        let kind = Kind::Sample(self.0, numbers.draw());
        Some(vec![Deviation::at(point, kind)])
    }
}
