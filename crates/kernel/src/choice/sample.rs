//! Samplers: whose turn it is is drawn before each operation of the program, from one seed.
//!
//! * A *random walk* takes any process that can run, before each operation.
//! * *PCT* (Burckhardt, Kothari, Musuvathi, Nagarakatte: A randomized scheduler with probabilistic guarantees of finding bugs, ASPLOS
//!   2010) gives each process a priority, and lowers that of the running one at `d - 1` operations.
//! * *POS* (Yuan, Yang, Gu: Partial order aware concurrency sampling, CAV 2018) gives each operation a priority, and those that race
//!   with the one that was done a new one.
//! * *SURW* (Zhao and others: Selectively uniform concurrency testing, ASPLOS 2025) takes the operations on one thing, and draws whose
//!   comes next by how many of these each process has left.
//!
//! The order that was drawn is noted, so that it can be repeated by deviations and cut down.

use super::deviation::{Numbers, Sampling};
use super::given::Shown;
use super::ops::Touch;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

static SHOWN: Mutex<Option<Shown>> = Mutex::new(None);

/// Says what the base has shown: samplers that begin from now on know it.
pub fn set_shown(s: Shown) {
    *SHOWN.lock().unwrap_or_else(|e| e.into_inner()) = Some(s);
}

/// Operations in a row of one process, at most: others would wait for ever for one that asks again and again for what they are to do.
const IN_A_ROW: u32 = 100;

/// Below all that are drawn.
const LOW: u64 = 1 << 20;

/// A sampler of this run.
pub struct Sampler {
    kind: Sampling,
    numbers: Numbers,
    shown: Shown,
    /// Operations so far.
    count: u32,
    /// PCT: the operations at which priorities change; priorities by path.
    changes: Vec<u32>,
    by_path: HashMap<u64, u64>,
    lowest: u64,
    /// PCT: who has come to an operation last, and how often in a row.
    row: (u64, u32),
    /// SURW: the thing, what each process has left, whose turn is next.
    object: u64,
    left: BTreeMap<u64, u32>,
    intended: u64,
    /// Operations in the order in which they were done.
    pub order: Vec<(u64, u32)>,
}

impl Sampler {
    /// A sampler that begins.
    pub fn new(kind: Sampling, seed: u64) -> Sampler {
        let shown = SHOWN.lock().unwrap_or_else(|e| e.into_inner());
        let shown = shown.clone().unwrap_or_default();
        let mut numbers = Numbers(seed);
        let changes = match kind {
            Sampling::Pct(d) => (1..d)
                .map(|_| 1 + numbers.below(shown.count.max(4) as usize) as u32)
                .collect(),
            _ => Vec::new(),
        };
        let (mut object, mut left) = (0, BTreeMap::new());
        if kind == Sampling::Surw && !shown.racing.is_empty() {
            let i = numbers.below(shown.racing.len());
            object = shown.racing[i].0;
            left = shown.racing[i].1.clone();
        }
        let mut s = Sampler {
            kind,
            numbers,
            shown,
            count: 0,
            changes,
            by_path: HashMap::new(),
            lowest: LOW,
            row: (0, 0),
            object,
            left,
            intended: 0,
            order: Vec::new(),
        };
        s.intend();
        s
    }
    /// A priority, above [`LOW`].
    pub fn draw(&mut self) -> u64 {
        (self.numbers.draw() >> 1) + LOW
    }
    /// The priority of a process that comes into being.
    pub fn begins(&mut self, path: u64) -> u64 {
        match self.kind {
            Sampling::Pct(_) => {
                let p = self.draw();
                *self.by_path.entry(path).or_insert(p)
            }
            _ => u64::MAX,
        }
    }
    /// Whose operation on the thing comes next, drawn by what is left to each.
    fn intend(&mut self) {
        let sum: u64 = self.left.values().map(|n| u64::from(*n)).sum();
        if sum == 0 {
            self.intended = 0;
            return;
        }
        let mut at = self.numbers.draw() % sum;
        for (p, n) in &self.left {
            if at < u64::from(*n) {
                self.intended = *p;
                return;
            }
            at -= u64::from(*n);
        }
    }
    /// A process comes to an operation: its priority there. None: it goes on in any case.
    pub fn comes(&mut self, path: u64, touch: Touch) -> Option<u64> {
        if touch.object == 0 || self.shown.private.contains(&touch.object) {
            return None;
        }
        self.count += 1;
        match self.kind {
            Sampling::Walk | Sampling::Pos => Some(self.draw()),
            Sampling::Pct(_) => {
                let drawn = self.draw();
                let p = self.by_path.entry(path).or_insert(drawn);
                self.row = match self.row {
                    (last, n) if last == path => (path, n + 1),
                    _ => (path, 1),
                };
                if self.changes.contains(&self.count) || self.row.1.is_multiple_of(IN_A_ROW) {
                    self.lowest -= 1;
                    *p = self.lowest;
                }
                Some(*p)
            }
            Sampling::Surw => {
                if touch.object != self.object {
                    return None;
                }
                match path == self.intended {
                    true => Some(u64::MAX - 1),
                    false => Some(self.draw() >> 1),
                }
            }
        }
    }
    /// Whether all draw again before each operation.
    pub fn redraws(&self) -> bool {
        self.kind == Sampling::Walk
    }
    /// Whether a process that is about to do `pending` draws again, since `done` was done.
    pub fn draws_after(&self, pending: &Touch, done: &Touch) -> bool {
        self.kind == Sampling::Pos && pending.races(done)
    }
    /// A process of the program does an operation.
    pub fn done(&mut self, path: u64, op: u32, touch: Touch) {
        self.order.push((path, op));
        if self.kind == Sampling::Surw && touch.object == self.object {
            if let Some(n) = self.left.get_mut(&path) {
                *n = n.saturating_sub(1);
            }
            if path == self.intended || self.left.get(&self.intended).is_none_or(|n| *n == 0) {
                self.intend();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn touch(object: u64) -> Touch {
        Touch {
            native: 1,
            object,
            key: 0,
            changes: true,
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        for kind in [
            Sampling::Walk,
            Sampling::Pos,
            Sampling::Pct(3),
            Sampling::Surw,
        ] {
            let all = |seed| {
                let mut s = Sampler::new(kind, seed);
                (0..20)
                    .map(|i| s.comes(i % 3, touch(7)))
                    .collect::<Vec<_>>()
            };
            assert_eq!(all(5), all(5), "{kind:?}");
        }
    }

    #[test]
    fn a_process_keeps_its_priority_but_at_changes() {
        let mut s = Sampler::new(Sampling::Pct(2), 3);
        let all: BTreeSet<u64> = (0..50).filter_map(|_| s.comes(1, touch(7))).collect();
        assert_eq!(all.len(), 2);
        assert!(all.iter().any(|p| *p < LOW));
    }

    #[test]
    fn nobody_goes_on_for_ever() {
        let mut s = Sampler::new(Sampling::Pct(1), 3);
        let before = s.begins(1);
        let last = (0..IN_A_ROW).filter_map(|_| s.comes(1, touch(7))).last();
        assert!(before >= LOW && last.is_some_and(|p| p < LOW), "{last:?}");
    }

    #[test]
    fn those_that_race_draw_again() {
        let s = Sampler::new(Sampling::Pos, 1);
        assert!(s.draws_after(&touch(3), &touch(3)));
        assert!(!s.draws_after(&touch(3), &touch(4)));
    }
}
