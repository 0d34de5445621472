//! SURW: selectively uniform random walk.
//!
//! Zhao and others: Selectively uniform concurrency testing, ASPLOS 2025. One shared thing is
//! picked, and the order of the operations on it is drawn uniformly: the process whose operation
//! comes next is weighed by the number of such operations that it has left, as the base has counted
//! them.
//!
//! # Invariants
//! * Operations on other things never stop a process.
//! * The intended process has the highest priority among those at an operation on the thing.

use super::interface::{Sampler, draw_priority};
use crate::numbers::Numbers;
use crate::operation::Touch;
use crate::premises::Shown;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Surw {
    object: u64,
    /// Operations on it that each process has left, by path.
    left: BTreeMap<u64, u32>,
    /// The process whose operation comes next; 0 if none has any left.
    intended: u64,
}

impl Surw {
    pub fn new(shown: &Shown, numbers: &mut Numbers) -> Surw {
        let mut s = Surw::default();
        if !shown.racing.is_empty() {
            let (object, left) = &shown.racing[numbers.below(shown.racing.len())];
            (s.object, s.left) = (*object, left.clone());
        }
        s.intend(numbers);
        s
    }

    /// Draws the process whose operation comes next.
    fn intend(&mut self, numbers: &mut Numbers) {
        self.intended = 0;
        let sum: u64 = self.left.values().map(|n| u64::from(*n)).sum();
        if sum == 0 {
            return;
        }
        let mut at = numbers.draw() % sum;
        for (p, n) in &self.left {
            if at < u64::from(*n) {
                self.intended = *p;
                return;
            }
            at -= u64::from(*n);
        }
    }
}

impl Sampler for Surw {
    fn priority(&mut self, path: u64, touch: &Touch, _: u32, numbers: &mut Numbers) -> Option<u64> {
        if touch.object != self.object {
            return None;
        }
        match path == self.intended {
            true => Some(u64::MAX - 1),
            // Below all others.
            false => Some(draw_priority(numbers) >> 1),
        }
    }

    fn done(&mut self, path: u64, touch: &Touch, numbers: &mut Numbers) {
        if touch.object != self.object {
            return;
        }
        if let Some(n) = self.left.get_mut(&path) {
            *n = n.saturating_sub(1);
        }
        if path == self.intended || self.left.get(&self.intended).is_none_or(|n| *n == 0) {
            self.intend(numbers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_chosen_thing_counts() {
        let left = BTreeMap::from([(1, 2), (2, 3)]);
        let shown = Shown {
            racing: vec![(7, left)],
            ..Shown::default()
        };
        let mut numbers = Numbers(1);
        let mut s = Surw::new(&shown, &mut numbers);
        assert_eq!(s.priority(1, &Touch::end(8), 1, &mut numbers), None);
        let intended = s.intended;
        let first = s.priority(intended, &Touch::end(7), 2, &mut numbers);
        let other = s.priority(3 - intended, &Touch::end(7), 3, &mut numbers);
        assert!(first > other && other.is_some());
        s.done(intended, &Touch::end(7), &mut numbers);
        assert_eq!(s.left.values().sum::<u32>(), 4);
    }
}
