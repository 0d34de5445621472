//! Many schedules in one run of the base.
//!
//! A *trunk* is a run of the base that forks each schedule where it leaves the base: a *branch*,
//! which continues to the end by itself. So what a schedule has in common with the base runs once
//! for many. A *waiting* run of the base stands at the first point at which schedules leave it, and
//! forks a trunk there whenever it is asked for one, so that not each trunk runs the program from
//! its start.
//!
//! # Invariants
//! * A waiting run has done nothing that lasts: schedules that leave the base after that run from
//!   the start, and it waits no later.
//! * It ends with the process that asks: that one's end of the pipe closes.

use crate::base::Base;
use crate::deviation::{Deviation, Kind, Schedule};
use crate::fresh_dir;
use crate::kernel::Limits;
use crate::operation::Point;
use crate::run::{Child, Outcome, Runs, seconds};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

/// The role of this process in a search. The file is the one for its report.
#[derive(Default)]
pub(crate) enum Role {
    /// It forks runs, and runs nothing itself.
    #[default]
    Root,
    /// It runs the base, and profiles it.
    Base(File),
    /// It runs the base up to a point, and forks trunks there.
    Waiting(Orders),
    Trunk(Trunk),
    /// It runs a schedule.
    Branch(File),
}

/// How the runs of a search are forked.
pub(crate) struct Ground {
    jobs: usize,
    /// Seconds of processor time of a run.
    pub seconds: u32,
    /// Whether the base does things that outlast a run, or are shared with runs that are forked
    /// later.
    lasting: bool,
    /// The points of the base after the first of these: schedules that begin there run from the
    /// start.
    late: HashSet<Point>,
    /// The point at which a run of the base waits, and the points before it.
    at: Option<Point>,
    before: HashSet<Point>,
    began: Cell<bool>,
}

impl Ground {
    /// `begins`: the first point at which many schedules deviate.
    pub fn new(jobs: usize, base: &Base, seconds: u32, begins: Option<Point>) -> Ground {
        let first = base.first_lasting();
        let points = base.all_points();
        let late = first.map_or(&[][..], |i| &points[i + 1..]);
        let late: HashSet<Point> = late.iter().copied().collect();
        let at = begins.filter(|b| !late.contains(b));
        let before = points.iter().copied();
        let before = before.take_while(|p| at.is_some_and(|at| at != *p));
        let lasting = first.is_some() || fresh_dir::any();
        Ground {
            jobs: if lasting { 1 } else { jobs },
            seconds,
            lasting,
            at,
            before: before.collect(),
            late,
            began: Cell::new(false),
        }
    }

    /// Whether a schedule runs from the start.
    pub fn runs_apart(&self, s: &Schedule) -> bool {
        let late = || s.first().is_some_and(|d| self.late.contains(&d.point()));
        (fresh_dir::any() && !begins_anywhere(s)) || late()
    }

    /// Whether a schedule may begin where a run of the base waits.
    fn may_wait(&self, s: &Schedule) -> bool {
        let first = s.first().map(Deviation::point);
        self.at.is_some() && first.is_some_and(|p| !self.before.contains(&p))
    }
}

/// Result of reaching a point.
pub(crate) enum Reached {
    Nothing,
    /// All schedules have left the trunk.
    End,
    /// This process is the run of a schedule, with that deviation here and these later.
    Branch(Kind, Vec<Deviation>),
    /// This process is the run of a schedule that begins later.
    Later(Schedule),
}

/// Whether a schedule begins with a system call that fails.
fn begins_anywhere(s: &Schedule) -> bool {
    matches!(s.first(), Some(d) if matches!(d.kind, Kind::Fail(_)))
}

/// A run of the base that forks schedules.
pub(crate) struct Trunk {
    report: File,
    /// The schedules that begin at each point, with their numbers.
    begin: HashMap<Point, Vec<(usize, Schedule)>>,
    /// The schedules in which a system call fails, with their numbers. The profile does not know
    /// where, so they are forked at the first point.
    at_once: Vec<(usize, Schedule)>,
    running: Vec<(usize, Child)>,
    done: Vec<(usize, Outcome)>,
    jobs: usize,
    seconds: u32,
    /// Whether it waits for each branch before it continues.
    waits: bool,
}

impl Trunk {
    /// Makes a trunk for an order. None: the order is damaged.
    fn new(report: File, order: &str) -> Option<Trunk> {
        let mut lines = order.lines();
        let mut head = lines.next()?.split(' ');
        let mut t = Trunk {
            report,
            begin: HashMap::new(),
            at_once: Vec::new(),
            running: Vec::new(),
            done: Vec::new(),
            jobs: head.next()?.parse().ok()?,
            seconds: head.next()?.parse().ok()?,
            waits: head.next()? == "1",
        };
        for l in lines {
            let mut w = l.split('\t');
            let number = w.next()?.parse().ok()?;
            let schedule: Schedule = w.map(Deviation::parse).collect::<Option<_>>()?;
            if begins_anywhere(&schedule) {
                t.at_once.push((number, schedule));
            } else if let Some(d) = schedule.first() {
                let all = t.begin.entry(d.point()).or_default();
                all.push((number, schedule));
            }
        }
        Some(t)
    }

    /// The run is about to do the operation at that point. In a branch: the file for its report,
    /// and its schedule.
    fn reach(&mut self, runs: &Runs, point: Point) -> Option<(File, Schedule)> {
        let mut all = std::mem::take(&mut self.at_once);
        if !all.is_empty()
            && let Err(e) = fresh_dir::keep()
        {
            runs.cannot("keep the folder of the runs", &e);
        }
        all.extend(self.begin.remove(&point).unwrap_or_default());
        for (number, schedule) in all {
            if begins_anywhere(&schedule)
                && let Err(e) = fresh_dir::restore()
            {
                runs.cannot("restore the folder of the runs", &e);
            }
            if runs.is_over() {
                self.begin.clear();
                return None;
            }
            while self.running.len() >= self.jobs.max(1) {
                let (n, c) = self.running.remove(0);
                self.done.extend(runs.outcome(c).map(|o| (n, o)));
            }
            match runs.fork(seconds(self.seconds)) {
                Ok(c) if self.waits => self.done.extend(runs.outcome(c).map(|o| (number, o))),
                Ok(c) => self.running.push((number, c)),
                Err(report) => return Some((report, schedule)),
            }
        }
        None
    }

    /// Adds the outcomes of its schedules to a report, and returns the file for it.
    pub fn finish(self, runs: &Runs, text: &mut String) -> File {
        let mut done = self.done;
        for (n, c) in self.running {
            done.extend(runs.outcome(c).map(|o| (n, o)));
        }
        for (n, o) in done {
            let _ = writeln!(text, "{n} {}", o.text());
        }
        self.report
    }
}

/// Writes an order: which schedules a trunk forks.
fn order(g: &Ground, all: &[(usize, &Schedule)]) -> String {
    let mut text = format!("{} {} {}\n", g.jobs, g.seconds, u8::from(g.lasting));
    for (n, s) in all {
        let _ = write!(text, "{n}");
        for d in *s {
            let _ = write!(text, "\t{}", d.text());
        }
        text.push('\n');
    }
    text
}

/// Writes a text, with its length before it.
fn write_text(f: &mut File, text: &str) -> std::io::Result<()> {
    f.write_all(&(text.len() as u64).to_le_bytes())?;
    f.write_all(text.as_bytes())
}

/// Reads a text written by [`write_text`]. None: the other side has ended.
fn read_text(f: &mut File) -> Option<String> {
    let mut n = [0; 8];
    f.read_exact(&mut n).ok()?;
    let mut text = vec![0; usize::try_from(u64::from_le_bytes(n)).ok()?];
    f.read_exact(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// A waiting run of the base, as it sees itself.
pub(crate) struct Orders {
    at: Point,
    orders: File,
    answers: File,
}

/// A waiting run of the base, as the root sees it.
pub(crate) struct Waiting {
    child: Child,
    orders: File,
    answers: File,
}

impl Waiting {
    /// Returns the report of a trunk for that order. None: the run ended before it came to its
    /// point.
    fn trunk(&mut self, order: &str) -> Option<String> {
        write_text(&mut self.orders, order).ok()?;
        read_text(&mut self.answers)
    }
}

/// This process as one of a search.
pub(crate) struct Branches {
    pub runs: Runs,
    pub role: Role,
    /// The waiting run of the base, if this is the root.
    waiting: Option<Waiting>,
}

impl Branches {
    pub fn new(runs: Runs) -> Branches {
        Branches {
            runs,
            role: Role::default(),
            waiting: None,
        }
    }

    /// A process is about to do the operation at a point: a trunk forks the schedules that begin
    /// there.
    pub fn reach(&mut self, point: Point) -> Reached {
        if let Role::Waiting(w) = &mut self.role
            && w.at == point
        {
            self.role = Role::Trunk(w.wait(&self.runs));
        }
        let Role::Trunk(t) = &mut self.role else {
            return Reached::Nothing;
        };
        if let Some((report, schedule)) = t.reach(&self.runs, point) {
            self.role = Role::Branch(report);
            return match schedule.split_first() {
                Some((first, rest)) if !begins_anywhere(&schedule) => {
                    Reached::Branch(first.kind, rest.to_vec())
                }
                _ => Reached::Later(schedule),
            };
        }
        match t.begin.is_empty() {
            true => Reached::End,
            false => Reached::Nothing,
        }
    }

    fn pipe(&self) -> (File, File) {
        match std::io::pipe() {
            Ok((reader, writer)) => (OwnedFd::from(reader).into(), OwnedFd::from(writer).into()),
            Err(e) => self.runs.cannot("make a pipe", &e),
        }
    }

    /// Lets a run of the base continue to that point and wait. None: this process is that run.
    fn begin_waiting(&mut self, at: Point) -> Option<Waiting> {
        let (orders, to) = self.pipe();
        let (from, answers) = self.pipe();
        match self.runs.fork(Limits::default()) {
            Err(_) => {
                self.role = Role::Waiting(Orders {
                    at,
                    orders,
                    answers,
                });
                None
            }
            Ok(child) => Some(Waiting {
                child,
                orders: to,
                answers: from,
            }),
        }
    }

    /// Ends the waiting run, if there is one. Called by the root.
    pub fn end_waiting(&mut self) {
        if let Some(w) = self.waiting.take() {
            drop((w.orders, w.answers));
            w.child.wait(self.runs.system);
        }
    }

    /// Runs schedules, each with its number, in one run of the base if possible. None: this process
    /// is one of the runs.
    pub fn try_together(
        &mut self,
        all: Vec<(usize, &Schedule)>,
        g: &Ground,
        outcomes: &mut [Option<Outcome>],
    ) -> Option<()> {
        let (from_waiting, mut from_start): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(_, s)| g.may_wait(s));
        if let Some(at) = g.at
            && !from_waiting.is_empty()
        {
            if !g.began.replace(true) {
                let w = self.begin_waiting(at)?;
                self.waiting = Some(w);
            }
            let order = order(g, &from_waiting);
            match self.waiting.as_mut().and_then(|w| w.trunk(&order)) {
                Some(report) => take(outcomes, &report),
                None => {
                    // The run differed from the base. The schedules begin in a trunk from the
                    // start.
                    self.end_waiting();
                    from_start.extend(from_waiting);
                }
            }
        }
        if from_start.is_empty() || self.runs.is_over() {
            return Some(());
        }
        match self.runs.fork(Limits::default()) {
            Err(report) => {
                match Trunk::new(report, &order(g, &from_start)) {
                    Some(t) => self.role = Role::Trunk(t),
                    None => self.runs.system.exit(71),
                }
                None
            }
            Ok(c) => {
                take(outcomes, &c.wait(self.runs.system).report);
                Some(())
            }
        }
    }
}

impl Orders {
    /// Forks a trunk for each order. Returns in a trunk only.
    fn wait(&mut self, runs: &Runs) -> Trunk {
        while let Some(order) = read_text(&mut self.orders) {
            match runs.fork(Limits::default()) {
                Err(report) => match Trunk::new(report, &order) {
                    Some(t) => return t,
                    None => runs.system.exit(71),
                },
                Ok(c) => {
                    let ended = c.wait(runs.system);
                    if write_text(&mut self.answers, &ended.report).is_err() {
                        break;
                    }
                }
            }
        }
        runs.system.exit(0)
    }
}

/// Takes the outcomes from the report of a trunk.
fn take(outcomes: &mut [Option<Outcome>], report: &str) {
    for line in report.lines().skip(1) {
        if let Some((n, o)) = line.split_once(' ')
            && let (Ok(n), Some(o)) = (n.parse::<usize>(), Outcome::parse(o))
            && n < outcomes.len()
        {
            outcomes[n] = Some(o);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_survive_a_round_trip() {
        let base = Base::new(Vec::new(), 0, false);
        let g = Ground::new(3, &base, 7, None);
        let d = |op, kind| Deviation::at((1, op), kind);
        let one: Schedule = vec![d(1, Kind::After(2, 5)), d(9, Kind::Stall(1000))];
        let two: Schedule = vec![d(1, Kind::Last)];
        let (_, to) = std::io::pipe().expect("a pipe");
        let text = order(&g, &[(4, &one), (6, &two)]);
        let t = Trunk::new(OwnedFd::from(to).into(), &text).expect("an order");
        assert_eq!((t.jobs, t.seconds, t.waits), (3, 7, false));
        assert_eq!(t.begin.len(), 1);
        assert_eq!(t.begin[&(1, 1)], [(4, one), (6, two)]);
    }
}
