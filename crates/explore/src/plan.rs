//! The plan of a search: which schedules it tries, in which order.
//!
//! # Invariants
//! * No schedule is tried twice.
//! * Schedules that deviate before processes of the program can meet come last, and one in
//!   [`EARLY`] of those that are drawn: each of them compiles and loads the program again.

use crate::base::Base;
use crate::deviation::{Deviation, Kind, Schedule};
use crate::numbers::Numbers;
use crate::operation::Point;
use crate::strategy::{Mix, Name, Strategy};
use std::collections::HashSet;

/// Number of schedules that begin in one run of the base.
const BATCH: usize = 128;
/// The same of the first batch: enough for most races, few enough to be quick.
const FIRST_BATCH: usize = 24;

/// One in that many schedules deviates before processes of the program can meet.
const EARLY: usize = 40;

/// Number of draws in a row that may repeat known schedules before a batch is given up.
const VAIN: usize = 1000;

/// The schedules that a search tries, in order.
pub struct Plan {
    base: Base,
    strategy: Box<dyn Strategy>,
    listed: Vec<Schedule>,
    next: usize,
    /// Listed schedules that deviate early, or after an operation whose effect lasts.
    early: std::vec::IntoIter<Schedule>,
    numbers: Numbers,
    seen: HashSet<Schedule>,
    /// Number of schedules handed out so far.
    given: usize,
}

impl Plan {
    /// Plans a search over the base.
    pub fn new(base: Base, strategy: Name, seed: u64) -> Plan {
        let strategy = strategy.strategy();
        let index = |s: &Schedule| s.first().and_then(|d| base.index(d.point()));
        let listed = strategy.list(&base);
        let (listed, mut early): (Vec<Schedule>, Vec<Schedule>) = listed
            .into_iter()
            .partition(|s| index(s).is_none_or(|i| i >= base.meets()));
        // A schedule that deviates after an operation whose effect lasts runs from the start. Where
        // these are few, such as those at the end of a suite that notes its failures in a file,
        // they come last.
        let lasting = base.first_lasting().unwrap_or(usize::MAX);
        let costs = |s: &Schedule| index(s).is_some_and(|i| i > lasting);
        let listed = match listed.iter().filter(|s| costs(s)).count() < listed.len() / 2 {
            true => {
                let (costly, cheap): (Vec<_>, Vec<_>) = listed.into_iter().partition(costs);
                early.extend(costly);
                cheap
            }
            false => listed,
        };
        Plan {
            base,
            strategy,
            listed,
            next: 0,
            early: early.into_iter(),
            numbers: Numbers(seed),
            seen: HashSet::new(),
            given: 0,
        }
    }

    /// Returns the profile of the base.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Tries this schedule first.
    pub fn begin_with(&mut self, mut first: Schedule) {
        self.sort(&mut first);
        self.listed.insert(0, first);
    }

    /// Returns the first point at which schedules deviate, apart from the early ones.
    pub fn begins(&self) -> Option<Point> {
        let first = self.listed.iter().filter_map(|s| s.first());
        let all = first
            .map(Deviation::point)
            .chain(self.base.places.iter().copied())
            .chain(self.base.late_places.iter().copied());
        all.min_by_key(|p| self.base.index(*p).unwrap_or(usize::MAX))
    }

    /// Returns the number of racing points of the base, and of all points at which schedules
    /// deviate.
    pub fn places(&self) -> (usize, usize) {
        (self.base.racing_places, self.base.places.len())
    }

    /// Returns the next schedules, at most that many. Empty: there are no more.
    pub fn batch(&mut self, most: usize) -> Vec<Schedule> {
        let size = match self.given {
            0 => FIRST_BATCH,
            _ => BATCH,
        };
        let size = size.min(most);
        let mut v = Vec::new();
        let mut vain = 0;
        while v.len() < size && vain < VAIN {
            self.given += 1;
            let Some(one) = self.schedule() else { break };
            match self.seen.insert(one.clone()) {
                true => v.push(one),
                false => vain += 1,
            }
        }
        v
    }

    /// Returns the next schedule, which may be a known one.
    fn schedule(&mut self) -> Option<Schedule> {
        let mix = self.strategy.mix();
        let third = self.given > FIRST_BATCH && self.given.is_multiple_of(3);
        if mix == Mix::Both && third {
            return self.draw();
        }
        if let Some(s) = self.listed.get(self.next) {
            self.next += 1;
            return Some(s.clone());
        }
        match mix {
            Mix::Listed => self.early.next(),
            Mix::Both if self.given.is_multiple_of(EARLY) => {
                self.early.next().or_else(|| self.draw())
            }
            Mix::Both | Mix::Drawn => self.draw(),
        }
    }

    fn draw(&mut self) -> Option<Schedule> {
        self.strategy.draw(&self.base, &mut self.numbers)
    }

    /// Returns the listed schedules that were not handed out yet, if the strategy also draws some.
    pub fn rest(&self) -> &[Schedule] {
        match self.strategy.mix() {
            Mix::Both => &self.listed[self.next..],
            Mix::Listed | Mix::Drawn => &[],
        }
    }

    /// Returns the schedule with each stall a quarter longer, but no longer than a stall may be.
    pub fn with_margin(&self, schedule: &Schedule) -> Schedule {
        let longer = |d: &Deviation| match d.kind {
            Kind::Stall(ns) => {
                let ns = (ns + ns / 4).min(self.base.stall).max(ns);
                Deviation::at(d.point(), Kind::Stall(ns))
            }
            _ => *d,
        };
        schedule.iter().map(longer).collect()
    }

    /// Sorts deviations into the order in which the base reaches them.
    pub fn sort(&self, s: &mut Schedule) {
        self.base.sort(s);
    }

    /// Returns the schedule that repeats a sampled order of operations: each operation that follows
    /// one of another process waits for it.
    pub fn repeating(&self, order: &[Point]) -> Schedule {
        let mut s: Schedule = order
            .windows(2)
            .filter(|w| w[0].0 != w[1].0)
            .map(|w| Deviation::at(w[1], Kind::After(w[0].0, w[0].1)))
            .collect();
        self.sort(&mut s);
        s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deviation::Sampling;
    use crate::operation::{Effects, Op, Operation, Touch};

    fn op(path: u64, op: u32, object: u64, changes: bool) -> Op {
        let touch = Touch {
            operation: Operation::native("m:f/0"),
            object,
            key: 0,
            changes,
            effects: Effects::default(),
        };
        Op {
            path,
            op,
            touch,
            own: true,
            code: true,
            begun: true,
            others: 1,
            at: 0,
            due: i64::MAX,
            lasts: false,
            served: false,
            tests: false,
        }
    }

    fn plan(ops: &[Op], strategy: Name, stall: i64) -> Plan {
        Plan::new(Base::new(ops.to_vec(), stall, false), strategy, 1)
    }

    fn points(p: &mut Plan) -> Vec<Point> {
        p.batch(100).iter().map(|s| s[0].point()).collect()
    }

    #[test]
    fn racing_operations_come_first() {
        let ops = [
            op(1, 1, 10, true),
            op(1, 2, 11, true),
            op(2, 1, 11, false),
            op(2, 2, 12, false),
            op(1, 3, 12, false),
        ];
        let mut p = plan(&ops, Name::Flips, 0);
        assert_eq!(p.places(), (2, 5));
        assert_eq!(
            points(&mut p),
            [(1, 2), (2, 1), (1, 1), (2, 2), (1, 3), (1, 2)]
        );
        assert!(p.batch(100).is_empty());
    }

    #[test]
    fn points_before_a_meeting_come_last() {
        let ops = [
            op(2, 1, 5, false),
            op(1, 1, 10, true),
            op(1, 2, 11, true),
            op(2, 2, 11, false),
        ];
        let mut p = plan(&ops, Name::Flips, 0);
        assert_eq!((p.places(), p.begins()), ((2, 2), Some((1, 2))));
        assert_eq!(points(&mut p), [(1, 2), (2, 2), (1, 2), (2, 1), (1, 1)]);
        // A process that does not exist yet does not race.
        let p = plan(&ops[1..], Name::Flips, 0);
        assert_eq!(p.begins(), Some((1, 1)));
    }

    #[test]
    fn samplers_begin_with_the_program() {
        let mut ops = [op(1, 1, 11, true), op(2, 1, 11, false), op(1, 2, 11, true)];
        ops[0].code = false;
        let mut p = plan(&ops, Name::Sampled(Sampling::Walk), 0);
        let all = p.batch(3);
        assert!(all.iter().all(|s| s[0].point() == (2, 1)));
    }

    #[test]
    fn library_code_comes_later() {
        let mut ops = [
            op(1, 1, 11, true),
            op(2, 1, 11, false),
            op(1, 2, 10, true),
            op(1, 3, 12, true),
        ];
        (ops[0].code, ops[2].code) = (false, false);
        let mut p = plan(&ops, Name::Flips, 0);
        assert_eq!(points(&mut p), [(2, 1), (1, 1), (1, 3), (1, 2), (1, 1)]);
    }

    #[test]
    fn messages_arrive_late_only_if_allowed() {
        let mut ops = [op(1, 1, 9, true), op(1, 2, 8, true), op(2, 1, 9, true)];
        for o in &mut ops {
            o.touch.operation = Operation::Send;
            o.touch.effects.sends = true;
        }
        let late = |any| {
            let base = Base::new(ops.to_vec(), 0, any);
            let all = Plan::new(base, Name::Flips, 1).batch(100).into_iter();
            all.filter(|s| s[0].kind == Kind::Back)
                .map(|s| s[0].point())
                .collect::<Vec<_>>()
        };
        assert_eq!(late(true), [(1, 1)]);
        assert_eq!(late(false), []);
    }

    #[test]
    fn nothing_is_tried_before_the_beginning() {
        let mut ops = [op(1, 1, 9, true), op(2, 1, 9, true)];
        ops[0].begun = false;
        assert_eq!(plan(&ops, Name::Flips, 0).places().1, 1);
    }

    #[test]
    fn stalls_are_no_longer_than_allowed() {
        let p = plan(&[op(1, 1, 9, true)], Name::Stalls, 100);
        let kept = |ns| p.with_margin(&vec![Deviation::at((1, 1), Kind::Stall(ns))])[0].kind;
        assert_eq!(kept(40), Kind::Stall(50));
        assert_eq!(kept(90), Kind::Stall(100));
        assert_eq!(kept(100), Kind::Stall(100));
        // A stall of a replay file, whose search allowed longer ones.
        assert_eq!(kept(120), Kind::Stall(120));
    }

    #[test]
    fn the_same_seed_gives_the_same_schedules() {
        let ops: Vec<Op> = (1..30).map(|i| op(u64::from(i % 3), i, 5, true)).collect();
        for strategy in [Name::Delays(3), Name::Portfolio] {
            let all = |seed| {
                let base = Base::new(ops.clone(), 100_000_000, false);
                let mut p = Plan::new(base, strategy, seed);
                [p.batch(50), p.batch(200)].concat()
            };
            assert_eq!(all(7), all(7));
            assert_ne!(all(7), all(8));
        }
    }
}
