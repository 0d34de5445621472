//! The profile of the base: its operations, and the points at which a schedule may differ from it.
//!
//! A point is *racing* if its operation races with one of another process, *calm* if it does not,
//! *alone* if no other process could run there, so that only time makes a difference, and a *wake*
//! if a process becomes ready there. Program code comes before library code within each class,
//! since a test runner does much beside a short test.
//!
//! # Invariants
//! * A profile is never changed: all schedules of a search refer to the same one.
//! * The order of points follows from the operations alone, never from addresses or hash keys.

use crate::deviation::{Deviation, Kind, Schedule};
use crate::operation::{Op, Operation, Point};
use crate::premises::{Premises, Shown};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Nanoseconds between two operations from which on the clock must have jumped: time that passes
/// with reductions is far below.
const JUMP: i64 = 900_000;

/// See the module's head.
pub struct Base {
    ops: Vec<Op>,
    by_object: HashMap<u64, Vec<usize>>,
    /// Times to which the clock jumped.
    jumps: Vec<i64>,
    order: HashMap<Point, usize>,
    /// The first operation from which on processes of the program can meet: see
    /// [`meets`](Base::meets).
    meets: usize,
    /// Nanoseconds of the longest stall; 0 if none are allowed.
    pub stall: i64,
    /// The classes of points: see the module's head.
    pub racing: Vec<usize>,
    pub calm: Vec<usize>,
    pub alone: Vec<usize>,
    pub wakes: Vec<usize>,
    /// Sends whose message may be held back.
    pub late: Vec<usize>,
    /// Points for random schedules, racing ones first, and the number of those.
    pub places: Vec<Point>,
    pub racing_places: usize,
    /// Sends for random schedules.
    pub late_places: Vec<Point>,
}

impl Base {
    /// Returns the profile of these operations. `stall`: nanoseconds of the longest stall, or 0.
    /// `any_delivery`: whether messages may be held back.
    pub fn new(ops: Vec<Op>, stall: i64, any_delivery: bool) -> Base {
        let mut by_object: HashMap<u64, Vec<usize>> = HashMap::new();
        for (i, o) in ops.iter().enumerate() {
            if o.touch.object != 0 && o.touch.operation != Operation::Wake {
                by_object.entry(o.touch.object).or_default().push(i);
            }
        }
        let jumps = ops
            .windows(2)
            .filter(|w| w[1].at - w[0].at > JUMP)
            .map(|w| w[1].at)
            .collect();
        let order = ops.iter().enumerate().map(|(i, o)| (o.point(), i));
        let mut base = Base {
            order: order.collect(),
            ops,
            by_object,
            jumps,
            meets: 0,
            stall,
            racing: Vec::new(),
            calm: Vec::new(),
            alone: Vec::new(),
            wakes: Vec::new(),
            late: Vec::new(),
            places: Vec::new(),
            racing_places: 0,
            late_places: Vec::new(),
        };
        base.meets = base.first_meeting();
        base.classify();
        if any_delivery {
            let all = 0..base.ops.len();
            let late = |i: &usize| {
                let o = base.op(*i);
                o.own && o.begun && base.may_be_late(*i)
            };
            let mut late: Vec<usize> = all.filter(late).collect();
            late.sort_by_key(|&i| !base.ops[i].code);
            base.late = late;
        }
        base.choose_places();
        base
    }

    fn classify(&mut self) {
        let (mut racing, mut calm, mut wakes, mut alone) = (vec![], vec![], vec![], vec![]);
        let ops = &self.ops;
        for (i, o) in ops.iter().enumerate().filter(|(_, o)| o.own && o.begun) {
            match o {
                o if o.touch.operation == Operation::Wake && o.others > 0 => {
                    // The process does an operation next, unless it ends or waits again at once.
                    let next = ops[i + 1..].iter().find(|p| p.path == o.path);
                    let quiet =
                        |p: &Op| matches!(p.touch.operation, Operation::End | Operation::Receive);
                    match next.is_some_and(quiet) {
                        true => racing.push(i),
                        false => wakes.push(i),
                    }
                }
                o if o.others == 0 && !(o.served && self.races(i)) => {
                    if o.touch.operation != Operation::Wake {
                        alone.push(i);
                    }
                }
                o if self.races(i) || o.touch.operation == Operation::Receive => racing.push(i),
                _ => calm.push(i),
            }
        }
        for v in [&mut racing, &mut calm, &mut wakes, &mut alone] {
            v.sort_by_key(|&i| (i < self.meets, !ops[i].code));
        }
        (self.racing, self.calm, self.wakes, self.alone) = (racing, calm, wakes, alone);
    }

    /// Chooses the points for random schedules: those at which processes of the program can meet,
    /// or all if they never do.
    fn choose_places(&mut self) {
        let timed_alone = self.timed(&self.alone);
        let all: Vec<usize> = [&self.racing, &self.calm, &timed_alone, &self.wakes]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let drawn: Vec<usize> = all.iter().copied().filter(|i| *i >= self.meets).collect();
        let (drawn, racing) = match drawn.is_empty() {
            true => (all, self.racing.len()),
            false => {
                let racing = self.racing.iter().filter(|i| **i >= self.meets).count();
                (drawn, racing)
            }
        };
        self.places = self.points(&drawn);
        self.racing_places = racing;
        let late: Vec<usize> = self
            .late
            .iter()
            .copied()
            .filter(|i| *i >= self.meets)
            .collect();
        self.late_places = self.points(&late);
    }

    /// Returns the operation with that index.
    pub fn op(&self, i: usize) -> &Op {
        &self.ops[i]
    }

    /// Returns the index of the operation at a point, if the base reaches it.
    pub fn index(&self, point: Point) -> Option<usize> {
        self.order.get(&point).copied()
    }

    /// Returns the index of the first operation from which on processes of the program can meet.
    pub fn meets(&self) -> usize {
        self.meets
    }

    /// Returns the point of the first operation that the program's own code does.
    pub fn first_of_code(&self) -> Option<Point> {
        self.ops.iter().find(|o| o.code).map(Op::point)
    }

    /// Returns the index of the first operation whose effect outlasts the run.
    pub fn first_lasting(&self) -> Option<usize> {
        self.ops.iter().position(|o| o.lasts)
    }

    /// Returns the points of all operations, in order.
    pub fn all_points(&self) -> Vec<Point> {
        self.ops.iter().map(Op::point).collect()
    }

    /// Whether the function from which on schedules are tried was called.
    pub fn has_begun(&self) -> bool {
        self.ops.iter().any(|o| o.begun)
    }

    /// Returns the points of some operations.
    pub fn points(&self, indices: &[usize]) -> Vec<Point> {
        indices.iter().map(|&i| self.ops[i].point()).collect()
    }

    /// Returns schedules with one deviation of that kind, one for each of these operations.
    pub fn singles(&self, indices: &[usize], kind: Kind) -> Vec<Schedule> {
        let one = |&i: &usize| vec![Deviation::at(self.ops[i].point(), kind)];
        indices.iter().map(one).collect()
    }

    /// Returns those operations at which a stalled process may meet a timer.
    pub fn timed(&self, indices: &[usize]) -> Vec<usize> {
        let v = indices.iter().copied();
        v.filter(|&i| self.meets_timer(&self.ops[i])).collect()
    }

    /// Sorts deviations into the order in which the base reaches them.
    pub fn sort(&self, s: &mut Schedule) {
        s.sort_by_key(|d| self.index(d.point()).unwrap_or(usize::MAX));
    }

    /// Whether the operation races with one of another process.
    pub fn races(&self, i: usize) -> bool {
        let o = &self.ops[i];
        let with = |j: &usize| {
            let p = &self.ops[*j];
            p.path != o.path && p.touch.races(&o.touch)
        };
        self.by_object
            .get(&o.touch.object)
            .is_some_and(|v| v.iter().any(with))
    }

    /// Whether a process that stalls there may meet a timer: one that is due meanwhile, or one that
    /// is set later and that the base met.
    fn meets_timer(&self, o: &Op) -> bool {
        let until = o.at.saturating_add(self.stall);
        let jumped = self.jumps.iter().any(|j| *j > o.at && *j <= until);
        jumped || (o.due > o.at - 1_000_000 && o.due <= until)
    }

    /// Returns the first operation from which on the order of what the program does may matter: its
    /// code makes a process or sets a timer, or races with another process of its own that exists
    /// already. Before that the program is prepared: compiled, loaded, started. A suite begins with
    /// its first test.
    fn first_meeting(&self) -> usize {
        let mut born: HashMap<u64, usize> = HashMap::new();
        for (i, o) in self.ops.iter().enumerate() {
            born.entry(o.path).or_insert(i);
        }
        let first = |i: &usize| {
            let o = &self.ops[*i];
            // A process that does not exist yet cannot come first.
            let theirs = |j: &usize| {
                let p = &self.ops[*j];
                let later = if j < i { o.path } else { p.path };
                p.own && p.path != o.path && born[&later] <= *i.min(j) && p.touch.races(&o.touch)
            };
            let races = || {
                let all = self.by_object.get(&o.touch.object);
                all.is_some_and(|v| v.iter().any(theirs))
            };
            o.begun && o.code && (o.touch.effects.makes || races())
        };
        let tests = self.ops.iter().position(|o| o.tests).unwrap_or(0);
        (tests..self.ops.len()).find(first).unwrap_or(tests)
    }

    /// Whether it sends to a process to which another process sends something later.
    fn may_be_late(&self, i: usize) -> bool {
        let o = &self.ops[i];
        let later = |j: &usize| {
            let p = &self.ops[*j];
            *j > i && p.path != o.path && p.touch.effects.sends
        };
        o.touch.effects.sends
            && self
                .by_object
                .get(&o.touch.object)
                .is_some_and(|v| v.iter().any(later))
    }

    /// Returns, for each other process, its first later operation that races with that one.
    pub fn rivals(&self, i: usize) -> Vec<Point> {
        let o = &self.ops[i];
        let mut paths = HashSet::new();
        let all = self.by_object.get(&o.touch.object);
        all.into_iter()
            .flatten()
            .filter(|j| **j > i)
            .map(|j| &self.ops[*j])
            .filter(|p| {
                p.path != o.path && p.touch.operation != Operation::End && p.touch.races(&o.touch)
            })
            .filter(|p| paths.insert(p.path))
            .map(Op::point)
            .collect()
    }

    /// Returns what all runs of a search know of the base. `quiet`: see [`Premises::quiet`].
    pub fn premises(&self, quiet: i64) -> Premises {
        Premises {
            programs: self.ops.iter().filter(|o| o.own).map(|o| o.path).collect(),
            // Samplers begin where processes of the program can meet; what came before does not
            // matter.
            shown: shown(&self.ops[self.meets..]),
            quiet,
        }
    }
}

/// Returns what samplers know of these operations.
fn shown(ops: &[Op]) -> Shown {
    let mut touched: HashMap<u64, HashMap<u64, u32>> = HashMap::new();
    for o in ops.iter().filter(|o| o.touch.object != 0) {
        let by = touched.entry(o.touch.object).or_default();
        *by.entry(o.path).or_default() += 1;
    }
    let private = touched.iter().filter(|(_, by)| by.len() == 1);
    let private: BTreeSet<u64> = private.map(|(o, _)| *o).collect();
    let shared = |o: &&Op| {
        o.own
            && o.touch.object != 0
            && o.touch.operation != Operation::Wake
            && !private.contains(&o.touch.object)
    };
    let mut by: BTreeMap<u64, BTreeMap<u64, u32>> = BTreeMap::new();
    let mut count = 0;
    for o in ops.iter().filter(shared) {
        count += 1;
        let paths = by.entry(o.touch.object).or_default();
        *paths.entry(o.path).or_default() += 1;
    }
    let racing = by.into_iter().filter(|(_, by)| by.len() > 1).collect();
    Shown {
        private,
        racing,
        count,
    }
}
