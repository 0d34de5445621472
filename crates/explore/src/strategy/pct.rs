//! PCT: probabilistic concurrency testing.
//!
//! Burckhardt, Kothari, Musuvathi, Nagarakatte: A randomized scheduler with probabilistic
//! guarantees of finding bugs, ASPLOS 2010. Each process has a priority, and that of the running
//! process drops below all others at `d - 1` random operations. With *n* processes and *k*
//! operations it finds a bug of depth *d* with probability of at least 1/(n k^(d-1)). Only
//! operations on shared things count, so *k* is small.
//!
//! # Invariants
//! * A process keeps its priority, but at the `d - 1` changes and at the bound that follows.
//! * After [`IN_A_ROW`] operations in a row a process drops, so one that polls for what others are
//!   to do does not starve them. This bound is not in the paper.

use super::interface::{LOW, Sampler, draw_priority};
use crate::numbers::Numbers;
use crate::operation::Touch;
use crate::premises::Shown;
use std::collections::HashMap;

/// Maximum number of operations in a row of one process.
const IN_A_ROW: u32 = 100;

pub(super) struct Pct {
    /// Ordinals of the operations at which priorities change.
    changes: Vec<u32>,
    /// Priorities by path.
    priorities: HashMap<u64, u64>,
    /// The lowest priority so far.
    lowest: u64,
    /// The process that reached an operation last, and how often in a row.
    row: (u64, u32),
}

impl Pct {
    pub fn new(depth: u32, shown: &Shown, numbers: &mut Numbers) -> Pct {
        let operations = shown.count.max(4) as usize;
        let changes = (1..depth).map(|_| 1 + numbers.below(operations) as u32);
        Pct {
            changes: changes.collect(),
            priorities: HashMap::new(),
            lowest: LOW,
            row: (0, 0),
        }
    }
}

impl Sampler for Pct {
    fn begin(&mut self, path: u64, numbers: &mut Numbers) -> u64 {
        let drawn = draw_priority(numbers);
        *self.priorities.entry(path).or_insert(drawn)
    }

    fn priority(&mut self, path: u64, _: &Touch, count: u32, numbers: &mut Numbers) -> Option<u64> {
        let drawn = draw_priority(numbers);
        let p = self.priorities.entry(path).or_insert(drawn);
        self.row = match self.row {
            (last, n) if last == path => (path, n + 1),
            _ => (path, 1),
        };
        if self.changes.contains(&count) || self.row.1.is_multiple_of(IN_A_ROW) {
            self.lowest -= 1;
            *p = self.lowest;
        }
        Some(*p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all(depth: u32, n: u32) -> Vec<u64> {
        let mut numbers = Numbers(3);
        let mut s = Pct::new(depth, &Shown::default(), &mut numbers);
        s.begin(1, &mut numbers);
        let touch = Touch::end(7);
        let one = |count| s.priority(1, &touch, count, &mut numbers);
        (1..=n).filter_map(one).collect()
    }

    #[test]
    fn a_process_keeps_its_priority_but_at_changes() {
        let distinct: BTreeSet<u64> = all(2, 50).into_iter().collect();
        assert_eq!(distinct.len(), 2);
        assert!(distinct.iter().any(|p| *p < LOW));
    }

    #[test]
    fn no_process_goes_on_for_ever() {
        let all = all(1, IN_A_ROW);
        assert!(all[0] >= LOW);
        assert!(all.last().is_some_and(|p| *p < LOW), "{all:?}");
    }
}
