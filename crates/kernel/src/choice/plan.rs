//! Which schedules are tried, and how one that fails is cut down. Pure: knows operations and deviations only.

use super::deviation::{Deviation, Kind, Numbers, Op, Sampling};
use super::given::{Given, Shown};
use super::ops::{END, RECEIVES, WAKES, makes, sends};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A schedule: its deviations, in the order of the base's operations.
pub type Schedule = Vec<Deviation>;

/// Schedules that begin in one run of the base.
const BATCH: usize = 128;
/// Of the first batch: enough for most races, few enough to be quick.
const FIRST_BATCH: usize = 24;

/// One of so many schedules deviates before the program's processes can meet, when all others that are no chance's were tried: each such
/// compiles and loads the program again.
const EARLY: usize = 40;

/// What is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strategy {
    /// All that follow, in turn.
    Portfolio,
    /// Each race of the base turned round: one stop at each operation that races with another, then at all others.
    Flips,
    /// One stall at each operation.
    Stalls,
    /// So many deviations at random, the most of them stops.
    Delays(usize),
    /// A sampler throughout.
    Sample(Sampling),
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
    /// Sends that may be held back.
    backs: Vec<(u64, u32)>,
    order: HashMap<(u64, u32), usize>,
    /// Schedules that deviate before the program's processes can meet: tried last, and now and then.
    early: std::vec::IntoIter<Schedule>,
    /// The operation of the base from which on they can.
    meets: usize,
    strategy: Strategy,
    numbers: Numbers,
    stall: i64,
    seen: HashSet<Schedule>,
    /// Schedules that were given so far.
    given: usize,
}

/// Puts the elements of lists one after the other, in turn.
fn in_turn(lists: Vec<Vec<Schedule>>) -> Vec<Schedule> {
    let mut all: Vec<_> = lists.into_iter().map(Vec::into_iter).collect();
    let mut v = Vec::new();
    loop {
        let before = v.len();
        v.extend(all.iter_mut().filter_map(Iterator::next));
        if v.len() == before {
            return v;
        }
    }
}

/// The base, as a plan sees it.
struct Seen<'a> {
    ops: &'a [Op],
    by_object: HashMap<u64, Vec<usize>>,
    /// Moments to which the clock has jumped.
    jumps: Vec<i64>,
}

impl<'a> Seen<'a> {
    fn new(ops: &'a [Op]) -> Seen<'a> {
        let mut by_object: HashMap<u64, Vec<usize>> = HashMap::new();
        for (i, o) in ops.iter().enumerate() {
            if o.touch.object != 0 && o.touch.native != WAKES {
                by_object.entry(o.touch.object).or_default().push(i);
            }
        }
        // Time that passes by itself is far below a millisecond between two operations.
        let jumps = ops
            .windows(2)
            .filter(|w| w[1].at - w[0].at > 900_000)
            .map(|w| w[1].at)
            .collect();
        Seen {
            ops,
            by_object,
            jumps,
        }
    }
    fn races(&self, i: usize) -> bool {
        let o = &self.ops[i];
        let with = |j: &usize| {
            let p = &self.ops[*j];
            p.path != o.path && p.touch.races(&o.touch)
        };
        self.by_object
            .get(&o.touch.object)
            .is_some_and(|v| v.iter().any(with))
    }
    /// Whether a process that is late there may meet a timer: one that is due then, or one that is set later and was met by the base.
    fn timed(&self, o: &Op, stall: i64) -> bool {
        let until = o.at.saturating_add(stall);
        let jumped = self.jumps.iter().any(|j| *j > o.at && *j <= until);
        jumped || (o.due > o.at - 1_000_000 && o.due <= until)
    }
    /// The first operation from which on the order of what the program does may matter: its code makes a process or sets a timer, or
    /// does what races with another process of its own that is there. Before that it is prepared: compiled,
    /// loaded, started. 0 if there is none.
    fn meets(&self) -> usize {
        let mut born: HashMap<u64, usize> = HashMap::new();
        for (i, o) in self.ops.iter().enumerate() {
            born.entry(o.path).or_insert(i);
        }
        let first = |i: &usize| {
            let o = &self.ops[*i];
            // Who is not there yet cannot come first.
            let theirs = |j: &usize| {
                let p = &self.ops[*j];
                let later = if j < i { o.path } else { p.path };
                p.own && p.path != o.path && born[&later] <= *i.min(j) && p.touch.races(&o.touch)
            };
            let races = || {
                let all = self.by_object.get(&o.touch.object);
                all.is_some_and(|v| v.iter().any(theirs))
            };
            o.begun && o.code && (makes(o.touch.native) || races())
        };
        // A suite begins with its first test: before that the application is started.
        let tests = self.ops.iter().position(|o| o.tests).unwrap_or(0);
        (tests..self.ops.len()).find(first).unwrap_or(tests)
    }
    /// Whether it sends to somebody whom another process sends something later.
    fn may_be_late(&self, i: usize) -> bool {
        let o = &self.ops[i];
        let later = |j: &&usize| {
            let p = &self.ops[**j];
            **j > i && p.path != o.path && sends(p.touch.native)
        };
        sends(o.touch.native)
            && self
                .by_object
                .get(&o.touch.object)
                .is_some_and(|v| v.iter().any(|j| later(&j)))
    }
    /// The next operation of each other process that races with that one, after it in the base.
    fn after(&self, i: usize) -> Vec<(u64, u32)> {
        let o = &self.ops[i];
        let mut paths = HashSet::new();
        let all = self.by_object.get(&o.touch.object);
        all.into_iter()
            .flatten()
            .filter(|j| **j > i)
            .map(|j| &self.ops[*j])
            .filter(|p| p.path != o.path && p.touch.native != END && p.touch.races(&o.touch))
            .filter(|p| paths.insert(p.path))
            .map(|p| (p.path, p.op))
            .collect()
    }
}

impl Plan {
    /// For the operations of the base. `stall`: nanoseconds of the longest stall; 0: none. `any`: messages may be held back.
    pub fn new(ops: &[Op], strategy: Strategy, stall: i64, any: bool, seed: u64) -> Plan {
        let seen = Seen::new(ops);
        let (mut racing, mut calm, mut wakes, mut alone) = (vec![], vec![], vec![], vec![]);
        for (i, o) in ops.iter().enumerate().filter(|(_, o)| o.own && o.begun) {
            match o {
                o if o.touch.native == WAKES && o.others > 0 => {
                    // What it does first is an operation, unless it ends at once.
                    let next = ops[i + 1..].iter().find(|p| p.path == o.path);
                    if next.is_some_and(|p| matches!(p.touch.native, END | RECEIVES)) {
                        racing.push(i);
                    } else {
                        wakes.push(i);
                    }
                }
                // Where nobody else can run it makes no difference, but for time.
                o if o.others == 0 && !(o.served && seen.races(i)) => {
                    if o.touch.native != WAKES {
                        alone.push(i);
                    }
                }
                o if seen.races(i) || o.touch.native == RECEIVES => racing.push(i),
                _ => calm.push(i),
            }
        }
        // What the program's own code does comes before what libraries do for it: a runner of tests does much beside a short test.
        let meets = seen.meets();
        for v in [&mut racing, &mut calm, &mut wakes, &mut alone] {
            v.sort_by_key(|&i| (i < meets, !ops[i].code));
        }
        let place = |v: &[usize]| -> Vec<(u64, u32)> {
            v.iter().map(|&i| (ops[i].path, ops[i].op)).collect()
        };
        let at = |v: &[usize], kind: Kind| -> Vec<Schedule> {
            let d = |(path, op)| vec![Deviation { path, op, kind }];
            place(v).into_iter().map(d).collect()
        };
        // Where nobody else can run it makes a difference only if a timer is met.
        let timed = |v: &[usize]| -> Vec<usize> {
            let v = v.iter().copied();
            v.filter(|&i| seen.timed(&ops[i], stall)).collect()
        };
        let flips = matches!(strategy, Strategy::Portfolio | Strategy::Flips);
        let stalls = matches!(strategy, Strategy::Portfolio | Strategy::Stalls) && stall > 0;
        let mut lists = Vec::new();
        if flips {
            let exact = |keyed: bool| {
                let some = racing.iter().filter(move |&&i| {
                    let t = &ops[i].touch;
                    t.native != WAKES && keyed == (t.key != 0)
                });
                some.flat_map(|&i| {
                    let (path, op) = (ops[i].path, ops[i].op);
                    seen.after(i).into_iter().map(move |(p, o)| {
                        vec![Deviation {
                            path,
                            op,
                            kind: Kind::After(p, o),
                        }]
                    })
                })
                .collect::<Vec<Schedule>>()
            };
            let mut one = at(&racing, Kind::Last);
            // Two that touch one key of a table: few, and each may matter.
            one.extend(exact(true));
            one.extend(at(&calm, Kind::Last));
            one.extend(exact(false));
            one.extend(at(&wakes, Kind::Last));
            lists.push(one);
        }
        if stalls {
            let near = [timed(&alone), timed(&racing), timed(&calm), timed(&wakes)].concat();
            let mut near: Vec<usize> = near;
            // A timer that is set already is met more surely than one that is to come.
            let later = |o: &Op| o.due > o.at.saturating_add(stall);
            near.sort_unstable_by_key(|&i| (later(&ops[i]), !ops[i].code, i));
            let mut one = at(&near, Kind::Stall(stall));
            for s in [30_000_000, 10_000_000, 3_000_000] {
                if s < stall {
                    one.extend(at(&near, Kind::Stall(s)));
                }
            }
            lists.push(one);
        }
        let mut late: Vec<usize> = (0..ops.len())
            .filter(|&i| any && ops[i].own && ops[i].begun && seen.may_be_late(i))
            .collect();
        late.sort_by_key(|&i| !ops[i].code);
        if flips {
            lists.push(at(&late, Kind::Back));
        }
        let mut queue = in_turn(lists);
        if stalls {
            let known: HashSet<Schedule> = queue.iter().cloned().collect();
            let all = [racing.clone(), alone.clone(), calm.clone()].concat();
            let far = at(&all, Kind::Stall(stall));
            queue.extend(far.into_iter().filter(|s| !known.contains(s)));
        }
        // Where the program has not yet come to anything that may meet, nothing is drawn, unless it never does.
        let timed_alone = timed(&alone);
        let all: Vec<usize> = [&racing, &calm, &timed_alone, &wakes]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let drawn: Vec<usize> = all.iter().copied().filter(|i| *i >= meets).collect();
        let (drawn, count) = match drawn.is_empty() {
            true => (all, racing.len()),
            false => (drawn, racing.iter().filter(|i| **i >= meets).count()),
        };
        let places = place(&drawn);
        late.retain(|i| *i >= meets);
        let backs = place(&late);
        let order: HashMap<(u64, u32), usize> = ops
            .iter()
            .enumerate()
            .map(|(i, o)| ((o.path, o.op), i))
            .collect();
        let (queue, mut early): (Vec<Schedule>, Vec<Schedule>) = queue
            .into_iter()
            .partition(|s| order.get(&(s[0].path, s[0].op)).is_none_or(|i| *i >= meets));
        // What follows something that lasts runs from the start, too. Where that is little, such as the end of a suite which notes what
        // has failed, it comes last.
        let lasts = ops.iter().position(|o| o.lasts).unwrap_or(usize::MAX);
        let costs = |s: &Schedule| order.get(&(s[0].path, s[0].op)).is_some_and(|i| *i > lasts);
        let queue = match queue.iter().filter(|s| costs(s)).count() < queue.len() / 2 {
            true => {
                let (costly, cheap) = queue.into_iter().partition(costs);
                early.extend::<Vec<Schedule>>(costly);
                cheap
            }
            false => queue,
        };
        Plan {
            queue,
            next: 0,
            first: true,
            places,
            racing: count,
            backs,
            order,
            early: early.into_iter(),
            meets,
            strategy,
            numbers: Numbers(seed),
            stall,
            seen: HashSet::new(),
            given: 0,
        }
    }

    /// Tries this one first.
    pub fn begin_with(&mut self, first: Schedule) {
        self.queue.insert(0, first);
    }

    /// The first operation of the base at which schedules deviate, but for those that come before its processes can meet.
    pub fn begins(&self) -> Option<(u64, u32)> {
        let first = self.queue.iter().map(|s| (s[0].path, s[0].op));
        let all = first.chain(self.places.iter().chain(&self.backs).copied());
        all.min_by_key(|p| self.order.get(p).copied().unwrap_or(usize::MAX))
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
        let mut vain = 0;
        while v.len() < size && vain < 1000 {
            self.given += 1;
            // Samplers have each third turn, until the others are done.
            let one = match self.strategy {
                Strategy::Portfolio if self.given > FIRST_BATCH && self.given.is_multiple_of(3) => {
                    self.portfolio()
                }
                _ if self.next < self.queue.len() => {
                    self.next += 1;
                    Some(self.queue[self.next - 1].clone())
                }
                Strategy::Portfolio if self.given.is_multiple_of(EARLY) => {
                    self.early.next().or_else(|| self.portfolio())
                }
                Strategy::Portfolio => self.portfolio(),
                Strategy::Sample(kind) => self.sample(kind),
                Strategy::Delays(n) => self.drawn(n),
                Strategy::Flips | Strategy::Stalls | Strategy::Base => self.early.next(),
            };
            let Some(one) = one else { break };
            match self.seen.insert(one.clone()) {
                true => v.push(one),
                false => vain += 1,
            }
        }
        v
    }

    /// Those that were not given yet, and that nothing was drawn for.
    pub fn rest(&self) -> &[Schedule] {
        match self.strategy {
            Strategy::Portfolio => &self.queue[self.next..],
            _ => &[],
        }
    }

    /// Each process is late by a quarter more, but no longer than one may be.
    pub fn with_more(&self, schedule: &Schedule) -> Schedule {
        let more = |d: &Deviation| match d.kind {
            Kind::Stall(ns) => Deviation {
                kind: Kind::Stall((ns + ns / 4).min(self.stall).max(ns)),
                ..*d
            },
            _ => *d,
        };
        schedule.iter().map(more).collect()
    }

    /// One of the strategies that draw, in turn.
    fn portfolio(&mut self) -> Option<Schedule> {
        match self.numbers.below(6) {
            0 => self.sample(Sampling::Pos),
            1 => self.sample(Sampling::Pct(3)),
            2 => self.sample(Sampling::Surw),
            3 => self.sample(Sampling::Walk),
            n => self.drawn(n - 2),
        }
    }

    /// A sampler from the first operation at which schedules deviate and the program's processes can meet.
    fn sample(&mut self, kind: Sampling) -> Option<Schedule> {
        let order = &self.order;
        let at = |p: &&(u64, u32)| {
            let at = order.get(*p).copied().unwrap_or(usize::MAX);
            (at < self.meets, at)
        };
        let &(path, op) = self.places.iter().min_by_key(at)?;
        let kind = Kind::Sample(kind, self.numbers.draw());
        Some(vec![Deviation { path, op, kind }])
    }

    /// A schedule at random, of `n` deviations.
    fn drawn(&mut self, n: usize) -> Option<Schedule> {
        if self.places.is_empty() {
            return None;
        }
        let mut s: Schedule = Vec::new();
        // All stalls of a schedule together are no longer than one may be.
        let mut stall = self.stall;
        for _ in 0..n {
            if !self.backs.is_empty() && self.numbers.below(4) == 0 {
                let (path, op) = self.backs[self.numbers.below(self.backs.len())];
                if !s.iter().any(|x| (x.path, x.op) == (path, op)) {
                    let kind = Kind::Back;
                    s.push(Deviation { path, op, kind });
                }
                continue;
            }
            // Half of them among those that race, if there are any.
            let among = match self.racing > 0 && self.numbers.below(2) == 0 {
                true => self.racing,
                false => self.places.len(),
            };
            let (path, op) = self.places[self.numbers.below(among)];
            // Stalls in octaves from a millisecond, short ones as often as long ones.
            let kind = match stall > 0 && self.numbers.below(4) == 0 {
                true => {
                    let ns = (1_000_000i64 << self.numbers.below(7)).min(stall);
                    stall -= ns;
                    Kind::Stall(ns)
                }
                false => Kind::Last,
            };
            if !s.iter().any(|x| (x.path, x.op) == (path, op)) {
                s.push(Deviation { path, op, kind });
            }
        }
        self.sort(&mut s);
        Some(s)
    }

    /// Puts deviations into the order in which the base comes by.
    pub fn sort(&self, s: &mut Schedule) {
        let order = &self.order;
        s.sort_by_key(|x| order.get(&(x.path, x.op)).copied().unwrap_or(usize::MAX));
    }

    /// The schedule that repeats the order of operations which a sampler has chosen: each that follows another process's waits for it.
    pub fn repeats(&self, order: &[(u64, u32)]) -> Schedule {
        let mut s: Schedule = order
            .windows(2)
            .filter(|w| w[0].0 != w[1].0)
            .map(|w| Deviation {
                path: w[1].0,
                op: w[1].1,
                kind: Kind::After(w[0].0, w[0].1),
            })
            .collect();
        self.sort(&mut s);
        s
    }
}

/// What the base tells all runs. `quiet`: see [`Given::quiet`].
pub fn given(ops: &[Op], quiet: i64) -> Given {
    Given {
        programs: programs(ops),
        // Samplers begin where the program's processes can meet: what was done before that is nothing to them.
        shown: shown(&ops[Seen::new(ops).meets()..]),
        quiet,
    }
}

/// What samplers are told of the base.
fn shown(ops: &[Op]) -> Shown {
    let mut touched: HashMap<u64, HashMap<u64, u32>> = HashMap::new();
    for o in ops.iter().filter(|o| o.touch.object != 0) {
        let by = touched.entry(o.touch.object).or_default();
        *by.entry(o.path).or_default() += 1;
    }
    let private = touched.iter().filter(|(_, by)| by.len() == 1);
    let private: BTreeSet<u64> = private.map(|(o, _)| *o).collect();
    let own = ops.iter().filter(|o| o.own && o.touch.object != 0);
    let mut by: BTreeMap<u64, BTreeMap<u64, u32>> = BTreeMap::new();
    let mut count = 0;
    for o in own.filter(|o| o.touch.native != WAKES && !private.contains(&o.touch.object)) {
        count += 1;
        *by.entry(o.touch.object)
            .or_default()
            .entry(o.path)
            .or_default() += 1;
    }
    let racing = by.into_iter().filter(|(_, by)| by.len() > 1).collect();
    Shown {
        private,
        racing,
        count,
    }
}

/// The paths of processes that are the program's own.
fn programs(ops: &[Op]) -> BTreeSet<u64> {
    ops.iter().filter(|o| o.own).map(|o| o.path).collect()
}

/// Cuts a failing schedule down: no single deviation can go, and no stall can be half as long.
pub struct Shrink {
    best: Schedule,
    chunk: usize,
    /// Single deviations were tried.
    single: bool,
    over: bool,
}

impl Shrink {
    /// For a schedule that fails.
    pub fn new(best: Schedule) -> Shrink {
        let chunk = (best.len() / 2).max(1);
        Shrink {
            best,
            chunk,
            single: false,
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
        if !self.single && self.best.len() > 2 {
            return self.best.iter().map(|d| vec![*d]).collect();
        }
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
                    for (part, of) in [(1, 8), (1, 4), (1, 2), (3, 4), (15, 16)] {
                        if ns / of * part >= 1_000_000 {
                            let mut s = self.best.clone();
                            s[i].kind = Kind::Stall(ns / of * part);
                            v.push(s);
                        }
                    }
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
        let single = std::mem::replace(&mut self.single, true);
        match found {
            Some(s) => {
                self.best = s;
                self.chunk = self.chunk.min((self.best.len() / 2).max(1));
            }
            None if !single && self.best.len() > 2 => {}
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

    #[test]
    fn operations_that_race_come_first() {
        let ops = [
            op(1, 1, 10, true),
            op(1, 2, 11, true),
            op(2, 1, 11, false),
            op(2, 2, 12, false),
            op(1, 3, 12, false),
        ];
        let mut p = Plan::new(&ops, Strategy::Flips, 0, false, 1);
        assert_eq!(p.places(), (2, 5));
        let all: Vec<(u64, u32)> = p.batch(100).iter().map(|s| (s[0].path, s[0].op)).collect();
        assert_eq!(all, [(1, 2), (2, 1), (1, 1), (2, 2), (1, 3), (1, 2)]);
        assert!(p.batch(100).is_empty());
    }

    #[test]
    fn what_comes_before_they_meet_is_last() {
        let ops = [
            op(2, 1, 5, false),
            op(1, 1, 10, true),
            op(1, 2, 11, true),
            op(2, 2, 11, false),
        ];
        let mut p = Plan::new(&ops, Strategy::Flips, 0, false, 1);
        assert_eq!((p.places(), p.begins()), ((2, 2), Some((1, 2))));
        let all: Vec<(u64, u32)> = p.batch(100).iter().map(|s| (s[0].path, s[0].op)).collect();
        assert_eq!(all, [(1, 2), (2, 2), (1, 2), (2, 1), (1, 1)]);
        // Whoever is not there yet does not race.
        let p = Plan::new(&ops[1..], Strategy::Flips, 0, false, 1);
        assert_eq!(p.begins(), Some((1, 1)));
    }

    #[test]
    fn samplers_begin_with_the_program() {
        let mut ops = [op(1, 1, 11, true), op(2, 1, 11, false), op(1, 2, 11, true)];
        ops[0].code = false;
        let mut p = Plan::new(&ops, Strategy::Sample(Sampling::Walk), 0, false, 1);
        let all = p.batch(3);
        assert!(all.iter().all(|s| (s[0].path, s[0].op) == (2, 1)));
    }

    #[test]
    fn what_libraries_do_comes_later() {
        let mut ops = [
            op(1, 1, 11, true),
            op(2, 1, 11, false),
            op(1, 2, 10, true),
            op(1, 3, 12, true),
        ];
        (ops[0].code, ops[2].code) = (false, false);
        let mut p = Plan::new(&ops, Strategy::Flips, 0, false, 1);
        let all: Vec<(u64, u32)> = p.batch(100).iter().map(|s| (s[0].path, s[0].op)).collect();
        assert_eq!(all, [(2, 1), (1, 1), (1, 3), (1, 2), (1, 1)]);
    }

    #[test]
    fn what_may_arrive_late() {
        let mut ops = [op(1, 1, 9, true), op(1, 2, 8, true), op(2, 1, 9, true)];
        for o in &mut ops {
            o.touch.native = 0;
        }
        let back = |any| {
            let mut p = Plan::new(&ops, Strategy::Flips, 0, any, 1);
            let all = p.batch(100).into_iter();
            all.filter(|s| s[0].kind == Kind::Back)
                .map(|s| (s[0].path, s[0].op))
                .collect::<Vec<_>>()
        };
        assert_eq!(back(true), [(1, 1)]);
        assert_eq!(back(false), []);
    }

    #[test]
    fn nothing_before_the_beginning() {
        let mut ops = [op(1, 1, 9, true), op(2, 1, 9, true)];
        ops[0].begun = false;
        let p = Plan::new(&ops, Strategy::Flips, 0, false, 1);
        assert_eq!(p.places().1, 1);
    }

    #[test]
    fn nobody_is_late_by_more_than_is_allowed() {
        let p = Plan::new(&[op(1, 1, 9, true)], Strategy::Stalls, 100, false, 1);
        let kept = |ns| {
            let (path, op, kind) = (1, 1, Kind::Stall(ns));
            p.with_more(&vec![Deviation { path, op, kind }])[0].kind
        };
        assert_eq!(kept(40), Kind::Stall(50));
        assert_eq!(kept(90), Kind::Stall(100));
        assert_eq!(kept(100), Kind::Stall(100));
        // That of a file, which was searched with more.
        assert_eq!(kept(120), Kind::Stall(120));
    }

    #[test]
    fn the_same_seed_gives_the_same_schedules() {
        let ops: Vec<Op> = (1..30).map(|i| op(u64::from(i % 3), i, 5, true)).collect();
        let all = |seed| {
            let mut p = Plan::new(&ops, Strategy::Delays(3), 100_000_000, false, seed);
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
