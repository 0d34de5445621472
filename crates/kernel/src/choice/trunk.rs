//! Many schedules in one run of the base: a *trunk* forks each where it leaves the base. So that not each trunk runs the program from its
//! start, a run of the base *waits* at the first operation at which schedules leave it, and forks a trunk there whenever it is asked
//! for one.
//!
//! # Invariants
//! * What waits has done nothing that lasts: schedules that leave the base after that run from the start, and it waits no later.
//! * It ends with the process that asks: that one's end of the pipe closes.

use super::deviation::Op;
use super::fork::{
    Child, Outcome, become_trunk, become_waiting, begin, cannot, exit, fork, is_over,
};
use super::plan::Schedule;
use super::told::{deviation, deviation_text};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard};

/// How runs are forked.
pub(super) struct Ground {
    jobs: usize,
    pub seconds: u32,
    /// The base does things that last beyond a run, or that runs share which are forked later.
    lasting: bool,
    /// Operations of the base after the first of these: whoever deviates there first runs from the start.
    late: HashSet<(u64, u32)>,
    /// Where a run of the base waits; operations before that.
    at: Option<(u64, u32)>,
    before: HashSet<(u64, u32)>,
    began: Cell<bool>,
}

/// The run of the base that waits, as the root has it.
static WAITING: Mutex<Option<Waiting>> = Mutex::new(None);

fn waiting() -> MutexGuard<'static, Option<Waiting>> {
    WAITING.lock().unwrap_or_else(|e| e.into_inner())
}

/// Ends what waits, if anything does. Called by the root.
pub(super) fn end() {
    if let Some(w) = waiting().take() {
        drop((w.orders, w.answers));
        w.child.wait();
    }
}

impl Ground {
    /// `begins`: the first operation at which many schedules deviate.
    pub fn new(jobs: usize, ops: &[Op], seconds: u32, begins: Option<(u64, u32)>) -> Ground {
        let name = |o: &Op| (o.path, o.op);
        let first = ops.iter().position(|o| o.lasts);
        let late = first.map_or(&[][..], |i| &ops[i + 1..]);
        let late: HashSet<_> = late.iter().map(name).collect();
        let at = begins.filter(|b| !late.contains(b));
        let before = ops.iter().map(name);
        let before = before.take_while(|o| at.is_some_and(|at| at != *o));
        Ground {
            jobs: if first.is_some() { 1 } else { jobs },
            seconds,
            lasting: first.is_some(),
            late,
            at,
            before: before.collect(),
            began: Cell::new(false),
        }
    }
    /// Whether a schedule runs from the start.
    fn apart(&self, s: &Schedule) -> bool {
        super::folder::any()
            || s.first()
                .is_some_and(|d| self.late.contains(&(d.path, d.op)))
    }
    /// Whether a schedule may begin where a run of the base waits.
    fn may_wait(&self, s: &Schedule) -> bool {
        self.at.is_some()
            && s.first()
                .is_some_and(|d| !self.before.contains(&(d.path, d.op)))
    }
}

/// What happens in a trunk at an operation.
pub(super) enum Comes {
    Nothing,
    /// It has forked all schedules.
    Over,
    /// This process is the run of a schedule.
    Branch(OwnedFd, Schedule),
}

/// A run of the base that forks schedules.
pub(super) struct Trunk {
    to: OwnedFd,
    /// By operation: the schedules that begin to deviate there, with their numbers.
    begin: HashMap<(u64, u32), Vec<(usize, Schedule)>>,
    running: Vec<(usize, Child)>,
    done: Vec<(usize, Outcome)>,
    jobs: usize,
    seconds: u32,
    /// It waits for each branch before it goes on.
    waits: bool,
}

impl Trunk {
    /// For what [`order`] has written. None: it is damaged.
    fn new(to: OwnedFd, order: &str) -> Option<Trunk> {
        let mut lines = order.lines();
        let mut head = lines.next()?.split(' ');
        let mut t = Trunk {
            to,
            begin: HashMap::new(),
            running: Vec::new(),
            done: Vec::new(),
            jobs: head.next()?.parse().ok()?,
            seconds: head.next()?.parse().ok()?,
            waits: head.next()? == "1",
        };
        for l in lines {
            let mut w = l.split('\t');
            let number = w.next()?.parse().ok()?;
            let schedule: Schedule = w.map(deviation).collect::<Option<_>>()?;
            if let Some(d) = schedule.first() {
                let all = t.begin.entry((d.path, d.op)).or_default();
                all.push((number, schedule));
            }
        }
        Some(t)
    }
    /// The run is about to do that operation.
    pub fn comes(&mut self, path: u64, op: u32) -> Comes {
        let Some(begin) = self.begin.remove(&(path, op)) else {
            return Comes::Nothing;
        };
        for (number, schedule) in begin {
            if is_over() {
                return Comes::Over;
            }
            while self.running.len() >= self.jobs.max(1) {
                let (n, c) = self.running.remove(0);
                self.done.extend(c.outcome().map(|o| (n, o)));
            }
            match fork(self.seconds) {
                Ok(c) if self.waits => self.done.extend(c.outcome().map(|o| (number, o))),
                Ok(c) => self.running.push((number, c)),
                Err(to) => return Comes::Branch(to, schedule),
            }
        }
        match self.begin.is_empty() {
            true => Comes::Over,
            false => Comes::Nothing,
        }
    }
    /// It has ended: what came of its schedules is added to `text`. Where that is to be written.
    pub fn ends(self, text: &mut String) -> OwnedFd {
        let mut done = self.done;
        for (n, c) in self.running {
            done.extend(c.outcome().map(|o| (n, o)));
        }
        for (n, o) in done {
            let _ = writeln!(text, "{n} {}", o.text());
        }
        self.to
    }
}

/// Which schedules a trunk forks, as text.
fn order(g: &Ground, all: &[(usize, &Schedule)]) -> String {
    let mut text = format!("{} {} {}\n", g.jobs, g.seconds, u8::from(g.lasting));
    for (n, s) in all {
        let _ = write!(text, "{n}");
        for d in *s {
            let _ = write!(text, "\t{}", deviation_text(d));
        }
        text.push('\n');
    }
    text
}

/// Writes a text so that the other side knows where it ends.
fn write_text(f: &mut File, text: &str) -> std::io::Result<()> {
    f.write_all(&(text.len() as u64).to_le_bytes())?;
    f.write_all(text.as_bytes())
}

/// What [`write_text`] has written. None: the other side has ended.
fn read_text(f: &mut File) -> Option<String> {
    let mut n = [0; 8];
    f.read_exact(&mut n).ok()?;
    let mut text = vec![0; usize::try_from(u64::from_le_bytes(n)).ok()?];
    f.read_exact(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// A run of the base that waits at an operation, as it sees itself.
pub(super) struct Waits {
    at: (u64, u32),
    orders: File,
    answers: File,
}

impl Waits {
    /// The run is about to do that operation. If it is the one to wait at, it goes on in trunks alone: there, what one is to do.
    pub fn comes(&mut self, path: u64, op: u32) -> Option<Trunk> {
        if (path, op) != self.at {
            return None;
        }
        while let Some(order) = read_text(&mut self.orders) {
            match fork(0) {
                Err(to) => match Trunk::new(to, &order) {
                    Some(t) => return Some(t),
                    None => leave(71),
                },
                Ok(c) => {
                    let (_, report, _) = c.wait();
                    if write_text(&mut self.answers, &report).is_err() {
                        break;
                    }
                }
            }
        }
        leave(0)
    }
}

/// Ends this process, whose role is held.
fn leave(status: i32) -> ! {
    // SAFETY: no return; this is the only thread.
    unsafe { libc::_exit(status) }
}

/// A run of the base that waits, as the root sees it.
struct Waiting {
    child: Child,
    orders: File,
    answers: File,
}

/// Two ends of a pipe: where it is read, where it is written.
fn pipe() -> (File, File) {
    match std::io::pipe() {
        Ok((reader, writer)) => (OwnedFd::from(reader).into(), OwnedFd::from(writer).into()),
        Err(_) => cannot("make a pipe"),
    }
}

impl Waiting {
    /// Has a run of the base go on to that operation. None: this process is that run.
    fn new(at: (u64, u32)) -> Option<Waiting> {
        let (orders, to) = pipe();
        let (from, answers) = pipe();
        match fork(0) {
            Err(_) => {
                become_waiting(Waits {
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
    /// The report of a trunk that forks these. None: the run has ended before it came there.
    fn trunk(&mut self, order: &str) -> Option<String> {
        write_text(&mut self.orders, order).ok()?;
        read_text(&mut self.answers)
    }
}

/// Runs these schedules, which begin in one run of the base, but for those that run from the start. None: this process is one of the runs.
pub(super) fn trunk(all: &[Schedule], g: &Ground) -> Option<Vec<Option<Outcome>>> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; all.len()];
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for (i, s) in all.iter().enumerate() {
        if is_over() {
            return Some(outcomes);
        }
        if g.apart(s) {
            outcomes[i] = begin(s, g.seconds, None, false)?.outcome();
        } else if g.may_wait(s) {
            there.push((i, s));
        } else {
            here.push((i, s));
        }
    }
    if let Some(at) = g.at
        && !there.is_empty()
    {
        if !g.began.replace(true) {
            let w = Waiting::new(at)?;
            *waiting() = Some(w);
        }
        let order = order(g, &there);
        let report = waiting().as_mut().and_then(|w| w.trunk(&order));
        match report {
            Some(report) => take(&mut outcomes, &report),
            None => {
                // It went another way than the base: its schedules begin in a trunk from the start.
                end();
                here.append(&mut there);
            }
        }
    }
    if here.is_empty() || is_over() {
        return Some(outcomes);
    }
    match fork(0) {
        Err(to) => {
            match Trunk::new(to, &order(g, &here)) {
                Some(t) => become_trunk(t),
                None => exit(71),
            }
            None
        }
        Ok(c) => {
            take(&mut outcomes, &c.wait().1);
            Some(outcomes)
        }
    }
}

/// Enters what a trunk has reported.
fn take(outcomes: &mut [Option<Outcome>], report: &str) {
    for line in report.lines().skip(1) {
        if let Some((n, o)) = line.split_once(' ')
            && let (Ok(n), Some(o)) = (n.parse::<usize>(), Outcome::of(o))
            && n < outcomes.len()
        {
            outcomes[n] = Some(o);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Deviation, Kind};
    use super::*;

    #[test]
    fn an_order_goes_there_and_back() {
        let g = Ground::new(3, &[], 7, None);
        let d = |op, kind| Deviation { path: 1, op, kind };
        let one: Schedule = vec![d(1, Kind::After(2, 5)), d(9, Kind::Stall(1000))];
        let two: Schedule = vec![d(1, Kind::Last)];
        let (_, to) = pipe();
        let text = order(&g, &[(4, &one), (6, &two)]);
        let t = Trunk::new(to.into(), &text).expect("an order");
        assert_eq!((t.jobs, t.seconds, t.waits), (3, 7, false));
        assert_eq!(t.begin.len(), 1);
        assert_eq!(t.begin[&(1, 1)], [(4, one), (6, two)]);
    }
}
