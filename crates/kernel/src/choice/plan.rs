//! Which schedules are tried, and how one that fails is cut down. Pure: knows operations and deviations only.

use super::{Deviation, Kind, Op};
use std::collections::{HashMap, HashSet};

/// A schedule: its deviations, in the order of the base's operations.
pub type Schedule = Vec<Deviation>;

/// Schedules that begin in one run of the base.
const BATCH: usize = 128;
/// Schedules of the first batch: enough for most races, few enough to be quick.
const FIRST_BATCH: usize = 24;
/// A shorter stall, in nanoseconds, beside the longest.
const SHORT_STALL: i64 = 10_000_000;

/// A generator of numbers (SplitMix64; Steele, Lea, Flood 2014): the same seed gives the same numbers everywhere.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n.max(1) as u64) as usize
    }
}

/// The schedules to try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// Flips, stalls, then pairs and triples at random.
    Portfolio,
    /// One stop at each operation of the base that races with another, then at all others.
    Flips,
    /// One stall at each operation.
    Stalls,
    /// So many deviations at random.
    Random(usize),
    /// The base alone.
    Base,
}

/// The schedules that a search tries, in order.
pub struct Plan {
    queue: Vec<Schedule>,
    next: usize,
    first: bool,
    /// Operations to deviate at, for schedules at random, racing ones first.
    places: Vec<(u64, u32)>,
    racing: usize,
    order: HashMap<(u64, u32), usize>,
    random: Option<usize>,
    numbers: Numbers,
    stall: i64,
    seen: HashSet<Schedule>,
}

impl Plan {
    /// For the operations of the base. `stall`: nanoseconds of the longest stall; 0: none.
    pub fn new(ops: &[Op], strategy: Strategy, stall: i64, seed: u64) -> Plan {
        let own: Vec<(usize, &Op)> = ops.iter().enumerate().filter(|o| o.1.own).collect();
        let mut by_object: HashMap<u64, Vec<&Op>> = HashMap::new();
        for o in ops.iter().filter(|o| o.touch.object != 0) {
            by_object.entry(o.touch.object).or_default().push(o);
        }
        let races = |o: &Op| {
            by_object.get(&o.touch.object).is_some_and(|v| {
                v.iter()
                    .any(|p| p.path != o.path && p.touch.races(&o.touch))
            })
        };
        let (racing, calm): (Vec<_>, Vec<_>) = own.into_iter().partition(|(_, o)| races(o));
        let place = |v: &[(usize, &Op)]| -> Vec<(u64, u32)> {
            v.iter().map(|(_, o)| (o.path, o.op)).collect()
        };
        let (a, b) = (place(&racing), place(&calm));
        let at = |v: &[(u64, u32)], kind: Kind| -> Vec<Schedule> {
            let d = |&(path, op): &(u64, u32)| vec![Deviation { path, op, kind }];
            v.iter().map(d).collect()
        };
        let mut queue = Vec::new();
        let flips = matches!(strategy, Strategy::Portfolio | Strategy::Flips);
        let stalls = matches!(strategy, Strategy::Portfolio | Strategy::Stalls) && stall > 0;
        let lists: [(&[(u64, u32)], bool); 2] = [(&a, true), (&b, false)];
        for (v, _) in lists {
            if flips {
                queue.extend(at(v, Kind::Last));
            }
            if stalls {
                queue.extend(at(v, Kind::Stall(stall)));
            }
        }
        if stalls && stall > SHORT_STALL {
            queue.extend(at(&a, Kind::Stall(SHORT_STALL)));
            queue.extend(at(&b, Kind::Stall(SHORT_STALL)));
        }
        let random = match strategy {
            Strategy::Portfolio => Some(0),
            Strategy::Random(d) => Some(d.max(1)),
            _ => None,
        };
        let racing = a.len();
        let places: Vec<_> = a.into_iter().chain(b).collect();
        let order = ops
            .iter()
            .enumerate()
            .map(|(i, o)| ((o.path, o.op), i))
            .collect();
        Plan {
            queue,
            next: 0,
            first: true,
            places,
            racing,
            order,
            random,
            numbers: Numbers(seed),
            stall,
            seen: HashSet::new(),
        }
    }

    /// Operations of the base that race with another process's, and all at which schedules deviate.
    pub fn places(&self) -> (usize, usize) {
        (self.racing, self.places.len())
    }

    /// The next schedules, `most` at most. Empty: there are no more.
    pub fn batch(&mut self, most: usize) -> Vec<Schedule> {
        let size = match std::mem::take(&mut self.first) {
            true => FIRST_BATCH,
            false => BATCH,
        };
        let size = size.min(most);
        let mut v = Vec::new();
        while v.len() < size && self.next < self.queue.len() {
            v.push(self.queue[self.next].clone());
            self.next += 1;
        }
        if let Some(d) = self.random
            && self.next == self.queue.len()
            && !self.places.is_empty()
        {
            let mut vain = 0;
            while v.len() < size && vain < 1000 {
                let s = self.drawn(d);
                match self.seen.insert(s.clone()) {
                    true => v.push(s),
                    false => vain += 1,
                }
            }
        }
        v
    }

    /// A schedule at random. `d`: deviations; 0: two or three.
    fn drawn(&mut self, d: usize) -> Schedule {
        let n = match d {
            0 => 2 + self.numbers.below(2),
            d => d,
        };
        let mut s: Schedule = Vec::new();
        for _ in 0..n {
            // Half of them among those that race, if there are any.
            let among = match self.racing > 0 && self.numbers.below(2) == 0 {
                true => self.racing,
                false => self.places.len(),
            };
            let (path, op) = self.places[self.numbers.below(among)];
            // Stalls in octaves from a millisecond, short ones as often as long ones.
            let kind = match self.stall > 0 && self.numbers.below(4) == 0 {
                true => Kind::Stall((1_000_000i64 << self.numbers.below(7)).min(self.stall)),
                false => Kind::Last,
            };
            if !s.iter().any(|x| (x.path, x.op) == (path, op)) {
                s.push(Deviation { path, op, kind });
            }
        }
        let order = &self.order;
        s.sort_by_key(|x| order.get(&(x.path, x.op)).copied().unwrap_or(usize::MAX));
        s
    }
}

/// Cuts a failing schedule down: no single deviation can go, and no stall can be half as long.
pub struct Shrink {
    best: Schedule,
    chunk: usize,
    over: bool,
}

impl Shrink {
    /// For a schedule that fails.
    pub fn new(best: Schedule) -> Shrink {
        let chunk = (best.len() / 2).max(1);
        Shrink {
            best,
            chunk,
            over: false,
        }
    }
    /// The smallest that is known to fail.
    pub fn best(&self) -> &Schedule {
        &self.best
    }
    /// Smaller ones, any of which may fail too; the smallest first. Empty: it is done.
    pub fn candidates(&self) -> Vec<Schedule> {
        if self.over {
            return Vec::new();
        }
        let mut v = Vec::new();
        if self.best.len() > 1 {
            for at in (0..self.best.len()).step_by(self.chunk) {
                let mut s = self.best.clone();
                s.drain(at..(at + self.chunk).min(s.len()));
                if !s.is_empty() {
                    v.push(s);
                }
            }
        }
        if self.chunk == 1 {
            for i in 0..self.best.len() {
                if let Kind::Stall(ns) = self.best[i].kind {
                    let mut shorter = ns / 16 * 15;
                    let mut all = Vec::new();
                    while shorter >= 1_000_000 {
                        let mut s = self.best.clone();
                        s[i].kind = Kind::Stall(shorter);
                        all.push(s);
                        shorter = shorter / 4 * 3;
                    }
                    v.extend(all.into_iter().rev());
                    let mut s = self.best.clone();
                    s[i].kind = Kind::Last;
                    v.insert(0, s);
                }
            }
        }
        v
    }
    /// Tells which of the candidates fail.
    pub fn tell(&mut self, candidates: Vec<Schedule>, fails: &[bool]) {
        let found = candidates
            .into_iter()
            .zip(fails)
            .find(|(_, f)| **f)
            .map(|(s, _)| s);
        match found {
            Some(s) => {
                self.best = s;
                self.chunk = self.chunk.min((self.best.len() / 2).max(1));
            }
            None if self.chunk > 1 => self.chunk /= 2,
            None => self.over = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ops::Touch;
    use super::*;

    fn op(path: u64, op: u32, object: u64, changes: bool) -> Op {
        let touch = Touch {
            native: 1,
            object,
            key: 0,
            changes,
        };
        Op {
            path,
            op,
            touch,
            own: true,
        }
    }

    #[test]
    fn operations_that_race_come_first() {
        let ops = [
            op(1, 1, 10, true),
            op(1, 2, 11, true),
            op(2, 1, 11, false),
            op(2, 2, 12, false),
            op(1, 3, 12, false),
        ];
        let mut p = Plan::new(&ops, Strategy::Flips, 0, 1);
        assert_eq!(p.places(), (2, 5));
        let all: Vec<(u64, u32)> = p.batch(100).iter().map(|s| (s[0].path, s[0].op)).collect();
        assert_eq!(all, [(1, 2), (2, 1), (1, 1), (2, 2), (1, 3)]);
        assert!(p.batch(100).is_empty());
    }

    #[test]
    fn the_same_seed_gives_the_same_schedules() {
        let ops: Vec<Op> = (1..30).map(|i| op(u64::from(i % 3), i, 5, true)).collect();
        let all = |seed| {
            let mut p = Plan::new(&ops, Strategy::Random(3), 100_000_000, seed);
            p.batch(50)
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
    }

    #[test]
    fn what_does_not_matter_is_cut() {
        let d = |op, kind| Deviation { path: 1, op, kind };
        let all: Schedule = (1..20).map(|i| d(i, Kind::Stall(100_000_000))).collect();
        // Fails where operation 7 is stopped for 30 ms at least.
        let fails = |s: &Schedule| {
            s.iter()
                .any(|x| x.op == 7 && matches!(x.kind, Kind::Stall(ns) if ns >= 30_000_000))
        };
        let mut s = Shrink::new(all);
        let mut tries = 0;
        loop {
            let c = s.candidates();
            if c.is_empty() {
                break;
            }
            tries += c.len();
            let f: Vec<bool> = c.iter().map(fails).collect();
            s.tell(c, &f);
        }
        assert_eq!(s.best().len(), 1);
        assert!(
            matches!(s.best()[0].kind, Kind::Stall(ns) if (30_000_000..32_000_000).contains(&ns)),
            "{:?}",
            s.best()
        );
        assert!(tries < 400, "{tries}");
    }
}
