//! Sampling: what a run keeps while a [`Sampler`] picks the processes to run.
//!
//! The sampled order is noted, so that it can be repeated by deviations and shrunk.
//!
//! # Invariant
//! Operations on things that one process alone touched in the base stop nobody and are not counted.

use crate::deviation::Sampling;
use crate::numbers::Numbers;
use crate::operation::{Point, Touch};
use crate::premises::Shown;
use crate::strategy::{Sampler, draw_priority, sampler};
use std::collections::BTreeSet;

/// A sampler at work: see the module's head.
pub struct ActiveSampler {
    sampler: Box<dyn Sampler>,
    numbers: Numbers,
    private: BTreeSet<u64>,
    /// Operations so far.
    count: u32,
    /// The operations, in the order in which they were done.
    pub order: Vec<Point>,
}

impl ActiveSampler {
    /// Begins to sample with that seed.
    pub fn new(name: Sampling, seed: u64, shown: &Shown) -> ActiveSampler {
        let mut numbers = Numbers(seed);
        ActiveSampler {
            sampler: sampler(name, shown, &mut numbers),
            numbers,
            private: shown.private.clone(),
            count: 0,
            order: Vec::new(),
        }
    }

    /// Draws a priority.
    pub fn draw(&mut self) -> u64 {
        draw_priority(&mut self.numbers)
    }

    /// Returns the priority of a process that begins.
    pub fn begin(&mut self, path: u64) -> u64 {
        self.sampler.begin(path, &mut self.numbers)
    }

    /// Returns the priority of a process at an operation. None: it continues in any case.
    pub fn priority(&mut self, path: u64, touch: &Touch) -> Option<u64> {
        if touch.object == 0 || self.private.contains(&touch.object) {
            return None;
        }
        self.count += 1;
        self.sampler
            .priority(path, touch, self.count, &mut self.numbers)
    }

    /// See [`Sampler::redraws_all`].
    pub fn redraws_all(&self) -> bool {
        self.sampler.redraws_all()
    }

    /// See [`Sampler::redraws_after`].
    pub fn redraws_after(&self, pending: &Touch, done: &Touch) -> bool {
        self.sampler.redraws_after(pending, done)
    }

    /// Notes that a process of the program did an operation.
    pub fn done(&mut self, point: Point, touch: &Touch) {
        self.order.push(point);
        self.sampler.done(point.0, touch, &mut self.numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same() {
        for name in [
            Sampling::Walk,
            Sampling::Pos,
            Sampling::Pct(3),
            Sampling::Surw,
        ] {
            let all = |seed| {
                let mut s = ActiveSampler::new(name, seed, &Shown::default());
                (0..20)
                    .map(|i| s.priority(i % 3, &Touch::end(7)))
                    .collect::<Vec<_>>()
            };
            assert_eq!(all(5), all(5), "{name:?}");
        }
    }

    #[test]
    fn private_things_stop_nobody() {
        let shown = Shown {
            private: BTreeSet::from([7]),
            ..Shown::default()
        };
        let mut s = ActiveSampler::new(Sampling::Walk, 1, &shown);
        assert_eq!(s.priority(1, &Touch::end(7)), None);
        assert!(s.priority(1, &Touch::end(8)).is_some());
    }
}
