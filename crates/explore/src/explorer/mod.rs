//! The explorer: picks the process that runs, and stops processes where the schedule deviates from
//! the base.
//!
//! Before each visible operation the kernel asks [`Explorer::before`] whether the process
//! continues. In the base it always does, and processes run in the order of becoming ready. At a
//! deviation it stops until no other process can run, for some virtual time, or until another
//! process did some operation; or a sampler takes over.
//!
//! # Invariants
//! * Everything here is called by one thread.
//! * What a run does follows from its schedule, its premises and the kernel's answers alone: no
//!   addresses, no hash keys, no real time.

mod notes;
mod process_record;
mod run_hash;
#[cfg(test)]
mod tests;

use crate::account;
use crate::branch::{Branches, Reached, Role};
use crate::deviation::{Deviation, Kind, Sampling};
use crate::failing::{Call, Failing, Reason};
use crate::hang::Progress;
use crate::kernel::{Function, Kernel, Operation, System};
use crate::numbers::Numbers;
use crate::operation::{Op, Point, Touch};
use crate::premises::{Premises, Shown};
use crate::run::{Outcome, Run, Runs, Stuck};
use crate::sampling::ActiveSampler;
use crate::steps::{self, Step, Steps};
use crate::story::{self, Line};
use crate::sweep;
use notes::Notes;
use process_record::{Counts, Hold, OWN, Owner, Process, Resumes, Stop, WAKE};
use run_hash::{Hashes, mix};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// Upper bound on how long a process stops until no other can run, in nanoseconds of virtual time.
const LAST_AT_MOST: i64 = 50_000_000;

/// Number of operations in a row that change nothing, after which stopped processes continue:
/// another process polls for what they are to do.
const IN_VAIN: u32 = 500;

/// Virtual time after which a run is stuck in which only OTP's own servers do something at times.
const STUCK_AFTER: i64 = 6 * 3600 * 1_000_000_000;

/// The index of no cell.
const NO_CELL: u32 = u32::MAX;

/// A process that is ready, by its cell, and whether it is for a native that may block.
pub type Ready = (u32, bool);

/// The processes, and who runs.
struct Turns {
    /// By cell. Those that are walked over draw in this order.
    known: BTreeMap<u32, Process>,
    ready: VecDeque<Ready>,
    running: u32,
    /// Has the next turn, and the others wait for it.
    handed: Option<u32>,
    /// Paths of the processes that belong to the program in the base.
    programs: BTreeSet<u64>,
}

/// The schedule of this run.
#[derive(Default)]
struct Course {
    deviations: HashMap<Point, Kind>,
    /// The deviations that were taken, in order.
    taken: Vec<Deviation>,
    /// Number of stops so far.
    stops: u64,
    /// Whether system calls may fail, so that it matters whose they are.
    sweeps: bool,
    /// System calls so far by kind, and why all further ones of a kind fail.
    calls: BTreeMap<Call, (u32, Option<Reason>)>,
    /// Upper bound on the number of processes that wait for an operation of another one.
    awaits: usize,
    sampling: Option<ActiveSampler>,
    /// Whether this run looks at whose operations are, as a sampled one does that it repeats.
    looks: bool,
    /// The switch that was taken last, until it is reported: see [`Switched`].
    switched: Option<Switched>,
    /// The base, as samplers know it.
    shown: Shown,
}

/// A process waits for another one as the schedule has it, or has done that for which one waited.
pub enum Switched {
    /// Before its operation at that point it waits for the process with that pid, if that lives.
    Waits(Point, Option<String>),
    /// The process with that pid has waited for it.
    Came(String),
}

/// Operations that change nothing.
#[derive(Default)]
struct Vain {
    in_a_row: u32,
    /// Those that may have done nothing, by process: only the first counts as a change.
    seen: HashSet<(u64, Touch)>,
}

/// State of the root of a search.
#[derive(Default)]
pub(crate) struct Root {
    /// The file in which the next narrated run records what comes from outside.
    pub recording: Option<File>,
    /// Whether something was given on standard input, or could have been.
    pub had_input: bool,
    /// Whether the result could not be written.
    pub lost: bool,
}

/// See the module's head.
pub struct Explorer {
    pub(crate) kernel: &'static dyn Kernel,
    pub(crate) branches: Branches,
    turns: Turns,
    course: Course,
    hashes: Hashes,
    vain: Vain,
    notes: Notes,
    progress: Progress,
    /// Random bytes for the program.
    random: Option<Numbers>,
    /// The wall clock at the start, in nanoseconds since 1970.
    pub(crate) started: i64,
    pub(crate) root: Root,
}

impl Turns {
    fn process(&mut self, cell: u32) -> &mut Process {
        self.known.get_mut(&cell).expect("it was added")
    }

    /// Counts the program's processes that could run instead of that one.
    fn others(&self, cell: u32) -> u32 {
        let free = |c: &u32| *c != cell && self.known.get(c).is_some_and(Process::is_free_program);
        self.ready.iter().filter(|(c, _)| free(c)).count() as u32
    }

    /// Whether another process than that one is ready and works for the program.
    fn serving(&self, cell: u32) -> bool {
        let serves = |c: &u32| {
            let k = self.known.get(c);
            *c != cell && k.is_some_and(|k| k.owner.serves && k.stop.hold == Hold::No)
        };
        self.ready.iter().any(|(c, _)| serves(c))
    }

    fn next_release(&self) -> Option<i64> {
        let until = |c: &u32| match self.known.get(c)?.stop.hold {
            Hold::Until(t) => Some(t),
            _ => None,
        };
        self.ready.iter().filter_map(|(c, _)| until(c)).min()
    }

    fn release_last(&mut self) -> bool {
        let stop = |c: &u32| match self.known.get(c)?.stop.hold {
            Hold::Last(n, _) | Hold::After(n, ..) => Some((n, *c)),
            _ => None,
        };
        let first = self.ready.iter().filter_map(|(c, _)| stop(c)).min();
        let Some((_, cell)) = first else { return false };
        self.process(cell).stop.hold = Hold::No;
        true
    }
}

impl Explorer {
    /// Makes the explorer of this emulator. `started`: the wall clock at the start, in nanoseconds
    /// since 1970.
    pub fn new(kernel: &'static dyn Kernel, system: &'static dyn System, started: i64) -> Explorer {
        Explorer {
            kernel,
            branches: Branches::new(Runs {
                system,
                deadline: None,
            }),
            turns: Turns {
                known: BTreeMap::new(),
                ready: VecDeque::new(),
                running: NO_CELL,
                handed: None,
                programs: BTreeSet::new(),
            },
            course: Course::default(),
            hashes: Hashes::default(),
            vain: Vain::default(),
            notes: Notes::default(),
            progress: Progress::default(),
            random: None,
            started,
            root: Root::default(),
        }
    }

    /// Returns the process in a cell, which gets its path when it is seen first.
    fn process(&mut self, cell: u32) -> &mut Process {
        let (id, parent) = self.kernel.process(cell);
        if self.turns.known.get(&cell).is_none_or(|k| k.id != id) {
            self.add(cell, id, parent);
        }
        self.turns.process(cell)
    }

    fn add(&mut self, cell: u32, id: u32, parent: u32) {
        let mut known = self.turns.known.values_mut();
        let (path, owner) = match known.find(|k| k.id == parent && parent != id) {
            Some(k) => {
                k.counts.children += 1;
                let made = std::mem::take(&mut k.owner.makes_program);
                let owner = Owner {
                    program: k.owner.program || made,
                    shown: k.owner.shown || made,
                    serves: k.owner.serves,
                    ..Owner::default()
                };
                (mix(k.path, k.counts.children), owner)
            }
            None => (mix(1, u64::from(id)), Owner::default()),
        };
        let owner = Owner {
            program: owner.program || self.turns.programs.contains(&path),
            ..owner
        };
        if self.notes.narrates() {
            let by = (parent != id).then(|| (parent, self.kernel.pid(parent)));
            self.notes.processes.add(id, self.kernel.pid(id), by);
        }
        let sampling = self.course.sampling.as_mut();
        let priority = sampling.map_or(u64::MAX, |s| s.begin(path));
        let process = Process {
            id,
            path,
            counts: Counts::default(),
            owner,
            stop: Stop {
                hold: Hold::No,
                resumes: Resumes::No,
                pending: None,
                priority,
            },
            last: self.kernel.now(),
        };
        self.turns.known.insert(cell, process);
    }

    /// A process has become ready.
    pub fn ready(&mut self, cell: u32, may_block: bool) {
        let running = self.turns.running;
        let k = self.process(cell);
        let waited = cell != running && k.stop.pending.is_none() && !may_block;
        // Wakes are counted in all processes, so that the count is the same in all runs.
        k.counts.wakes += u32::from(waited);
        let program = k.owner.program;
        self.turns.ready.push_back((cell, may_block));
        if waited && program {
            self.wake(cell);
        }
    }

    /// A process of the program that waited, or is new, has become ready.
    fn wake(&mut self, cell: u32) {
        let k = self.process(cell);
        let (id, path) = (k.id, k.path);
        let point = (path, WAKE | k.counts.wakes);
        let touch = Touch::wake(self.kernel.object(id));
        if self.notes.profile.is_some() {
            // The process that has woken it may continue first.
            let by = self.turns.known.get(&self.turns.running);
            let others = self.turns.others(cell) + u32::from(by.is_some_and(|k| k.owner.program));
            let op = self.profiled(point, touch, (true, false), others);
            self.note(Op {
                served: others > 0,
                ..op
            });
        }
        let Some(kind) = self.kind_at(point) else {
            return;
        };
        if let Some(hold) = self.deviate(point, kind) {
            if self.notes.narrates() {
                self.tell(Line {
                    path,
                    op: point.1,
                    touch,
                    pid: self.kernel.pid(id),
                    call: "it continues with the messages that have arrived".into(),
                    place: None,
                    stopped: Some(kind),
                    at: self.kernel.now() / 1000,
                    happens: false,
                    name: None,
                });
            }
            self.process(cell).stop.hold = hold;
        }
    }

    /// Returns the deviation at that point, if there is one. A trunk forks the schedules that begin
    /// there.
    fn kind_at(&mut self, point: Point) -> Option<Kind> {
        match self.branches.reach(point) {
            Reached::Nothing => self.course.deviations.get(&point).copied(),
            Reached::End => {
                self.ended(0, Stuck::No);
                self.branches.runs.system.exit(0)
            }
            Reached::Branch(kind, rest) => {
                self.set_schedule(&rest);
                Some(kind)
            }
            Reached::Later(all) => {
                self.set_schedule(&all);
                None
            }
        }
    }

    /// This run ends with that status: it writes its report.
    pub fn ended(&mut self, status: i32, stuck: Stuck) {
        let role = std::mem::take(&mut self.branches.role);
        let mut text = Outcome::Ended(self.run(status, stuck)).text();
        text.push('\n');
        let mut report = match role {
            // The point of a waiting run did not come.
            Role::Root | Role::Waiting(_) => return,
            Role::Base(report) => {
                for o in self.take_profile() {
                    text.push_str(&o.text());
                    text.push('\n');
                }
                text.push_str(&sweep::calls_text(
                    &self.notes.calls.take().unwrap_or_default(),
                ));
                report
            }
            Role::Trunk(t) => t.finish(&self.branches.runs, &mut text),
            Role::Branch(report) => {
                text.push_str(&self.notes_text());
                report
            }
        };
        let _ = report.write_all(text.as_bytes());
    }

    /// Returns an operation for the profile.
    fn profiled(&self, (path, op): Point, touch: Touch, owner: (bool, bool), others: u32) -> Op {
        Op {
            path,
            op,
            touch,
            own: owner.0,
            code: owner.1,
            begun: self.notes.from.is_none(),
            others,
            served: false,
            at: self.kernel.now(),
            due: self.kernel.next_timer(),
            tests: self.notes.tests,
            lasts: false,
        }
    }

    fn note(&mut self, op: Op) {
        if let Some(profile) = &mut self.notes.profile {
            profile.push(op);
        }
    }

    /// Adds a line to the story, unless the run has made no progress for long.
    fn tell(&mut self, line: Line) {
        if !self.progress.is_stale(self.kernel.now()) {
            self.notes.tell(line);
        }
    }

    /// Takes a step of the program. `got` describes it where it differs from the expected one.
    fn step(&mut self, path: u64, name: &Arc<str>, got: impl FnOnce() -> String) {
        let Err(differs) = self.notes.steps.next(path, name) else {
            return;
        };
        let expected = match differs.expected {
            None => "the end of the program".into(),
            Some(Step { path, name }) => {
                let mut known = self.turns.known.values();
                let by = known
                    .find(|k| k.path == path)
                    .map_or("a process that is not there".into(), |k| {
                        self.kernel.pid(k.id)
                    });
                format!("{} from {by}", steps::described(&name))
            }
        };
        let at = differs.at;
        let how = format!("at operation {at}: expected {expected}, got {}", got());
        self.differ(how);
    }

    /// Notes where the run differs from the one that it is compared with.
    pub fn differ(&mut self, how: String) {
        self.notes.differs.get_or_insert(how);
    }

    /// A process is about to do an operation. True: it stops here, and does it when it runs again.
    pub fn before(&mut self, cell: u32, o: &mut dyn Operation) -> bool {
        if self.resumes(cell, o) {
            return false;
        }
        let k = self.process(cell);
        let (path, owner) = (k.path, k.owner);
        let replays = self.branches.runs.system.is_logging();
        // A process in which the program's code has not run yet is no program's in the account,
        // whatever becomes of it later.
        let account = self.notes.counts() || replays || self.course.sweeps;
        // The run that this one is compared with was narrated, so it looked at operations too.
        let samples = self.course.sampling.is_some() || self.course.looks;
        let looks = samples || account || self.notes.steps.are_expected();
        let (mut own, mut code) = (false, false);
        if looks || self.turns.programs.contains(&path) {
            (own, code) = o.owner(owner.program);
        }
        if code {
            self.reach_own_code(cell);
        }
        let now = self.kernel.now();
        let begins = !owner.program && o.begins_program();
        let k = self.process(cell);
        k.counts.operations += 1;
        k.last = now;
        k.owner.counted = false;
        k.owner.makes_program = begins;
        let point = k.point();
        let touch = o.touch();
        self.progress.operation(o.place(), now);
        self.hashes.operation(point, touch.operation);
        if own && self.hashes.at_work {
            self.hashes.own_operation(path, touch.operation);
        }
        if own && self.hashes.at_work && !self.notes.steps.are_off() {
            self.step(path, &o.name(), || {
                let l = o.line(point, touch);
                let place = l.place.map_or(String::new(), |p| format!(" at {p}"));
                format!("{} from {}{place}", l.call, l.pid)
            });
        }
        let mut lasts = false;
        if looks {
            let k = self.process(cell);
            k.owner.program |= code;
            k.owner.shown |= code;
            k.owner.operation = own;
            if account {
                let theirs = code || (own && owner.shown);
                let kind = self.count(o, theirs, owner.serves, &touch);
                self.process(cell).owner.counted = kind.is_some();
                lasts = kind.is_some_and(account::Kind::lasts);
            }
        }
        self.profile(cell, o, point, touch, (own, code), lasts);
        if code && self.notes.wants_places() {
            let place = o.line(point, touch).place;
            self.notes.own_place = place.or(self.notes.own_place.take());
        }
        let added = self.tell_operation(cell, o, point, touch);
        let kind = self.kind_at(point);
        let mut stops = None;
        if let Some(kind) = kind {
            let line = self.notes.story.as_mut().and_then(|v| v.last_mut());
            if let Some(l) = line.filter(|_| added) {
                l.stopped = Some(kind);
            }
            if kind == Kind::Back {
                self.kernel.hold_back(self.process(cell).id);
            }
            stops = self.deviate(point, kind);
        }
        own &= !matches!(kind, Some(Kind::Sample(..)));
        // Another process waited for what this one did last, and has the next turn.
        if stops.is_none() && self.turns.handed.is_some_and(|c| c != cell) {
            stops = Some(Hold::No);
        }
        if stops.is_none() && own && self.sample(cell, &touch) {
            stops = Some(Hold::No);
        }
        let Some(hold) = stops else {
            self.done(cell, point, touch);
            return false;
        };
        let stop = &mut self.process(cell).stop;
        stop.resumes = match o.is_receive() {
            true => Resumes::Anew,
            false => Resumes::With,
        };
        stop.pending = Some(touch);
        stop.hold = hold;
        true
    }

    /// Whether the process has stopped before this operation, and does it now.
    fn resumes(&mut self, cell: u32, o: &mut dyn Operation) -> bool {
        let k = self.process(cell);
        let resumes = std::mem::take(&mut k.stop.resumes);
        k.stop.pending = None;
        let point = k.point();
        match resumes {
            Resumes::With => {
                let touch = o.touch();
                if self.notes.narrates() {
                    let line = o.line(point, touch);
                    self.tell(line);
                }
                self.done(cell, point, touch);
                true
            }
            Resumes::Anew if o.is_receive() => {
                let touch = o.touch();
                self.done(cell, point, touch);
                true
            }
            Resumes::Anew | Resumes::No => false,
        }
    }

    /// The program's code comes to an operation in a process, whose operations are counted anew
    /// from here on.
    fn reach_own_code(&mut self, cell: u32) {
        let counts = &mut self.process(cell).counts;
        if std::mem::replace(&mut counts.own_code, true) {
            return;
        }
        counts.operations = OWN;
        counts.wakes = OWN;
        counts.children = u64::from(OWN);
        self.hashes.at_work = true;
    }

    fn profile(
        &mut self,
        cell: u32,
        o: &mut dyn Operation,
        point: Point,
        touch: Touch,
        owner: (bool, bool),
        lasts: bool,
    ) {
        if self.notes.profile.is_none() {
            return;
        }
        if self.notes.from.as_ref().is_some_and(|f| o.is_within(f)) {
            self.notes.from = None;
        }
        self.notes.tests |= !self.notes.tests && o.runs_tests();
        let others = self.turns.others(cell);
        let op = self.profiled(point, touch, owner, others);
        let served = others > 0 || self.turns.serving(cell);
        self.note(Op {
            served,
            lasts,
            ..op
        });
    }

    /// Adds an operation to the story. Whether it was added.
    fn tell_operation(
        &mut self,
        cell: u32,
        o: &mut dyn Operation,
        point: Point,
        touch: Touch,
    ) -> bool {
        if !self.notes.narrates() {
            return false;
        }
        let line = o.line(point, touch);
        if touch.effects.makes {
            let role = o.role();
            let id = self.process(cell).id;
            self.notes.processes.makes(id, role, &line);
        }
        let added = !self.progress.is_stale(self.kernel.now());
        self.tell(line);
        added
    }

    /// Counts an operation in the account, if it is done by the program or for it; a process to
    /// which it sends serves the program then. Some: its kind, if it is counted.
    fn count(
        &mut self,
        o: &mut dyn Operation,
        own: bool,
        serves: bool,
        touch: &Touch,
    ) -> Option<account::Kind> {
        let kind = o.outside();
        if o.sets_variable() {
            self.notes.set_variables.insert(touch.key);
        }
        // The seed decides what the run itself has set.
        if kind == Some(account::Kind::Variable) && self.notes.set_variables.contains(&touch.key) {
            return None;
        }
        let sends = touch.effects.sends;
        if kind.is_none() && !sends {
            return None;
        }
        let theirs = own || (serves && !o.compiles());
        if let Some(kind) = kind.filter(|k| theirs || *k == account::Kind::Node) {
            self.notes.account.count(kind, "");
            return Some(kind);
        }
        if sends && theirs {
            let kernel = self.kernel;
            let mut known = self.turns.known.values_mut();
            if let Some(k) = known.find(|k| kernel.object(k.id) == touch.object) {
                k.owner.serves = true;
            }
        }
        None
    }

    /// The program makes a system call of that kind. Some: it fails, for that reason.
    pub fn call(&mut self, call: Call) -> Option<Reason> {
        if !self.hashes.at_work {
            return None;
        }
        let (n, ever) = self.course.calls.entry(call).or_default();
        *n += 1;
        let (n, ever) = (*n, *ever);
        self.notes.call(call);
        let point = call.point(n);
        let Some(Kind::Fail(f)) = self.kind_at(point) else {
            return ever;
        };
        self.course.taken.push(Deviation::at(point, Kind::Fail(f)));
        if f.lasts {
            self.course.calls.insert(call, (n, Some(f.reason)));
        }
        self.tell_failing(f, n);
        Some(f.reason)
    }

    /// Adds a system call that fails to the story.
    fn tell_failing(&mut self, f: Failing, n: u32) {
        let Some(k) = self.turns.known.get(&self.turns.running) else {
            return;
        };
        if !self.notes.narrates() {
            return;
        }
        let (id, path) = (k.id, k.path);
        let point = f.call.point(n);
        self.tell(Line {
            path,
            op: point.1,
            // What it touches is known by the operation before it.
            touch: Touch {
                object: 0,
                ..Touch::end(0)
            },
            pid: self.kernel.pid(id),
            call: f.describe(n),
            place: self.notes.own_place.clone(),
            stopped: Some(Kind::Fail(f)),
            at: self.kernel.now() / 1000,
            happens: false,
            name: None,
        });
    }

    /// Takes a deviation: how the process is held, if it is.
    fn deviate(&mut self, point: Point, kind: Kind) -> Option<Hold> {
        self.course.stops += 1;
        self.course.taken.push(Deviation::at(point, kind));
        self.hashes.deviation();
        let now = self.kernel.now();
        let (stop, until) = (self.course.stops, now + LAST_AT_MOST);
        match kind {
            Kind::Last => Some(Hold::Last(stop, until)),
            Kind::Back | Kind::Fail(_) => None,
            Kind::Stall(ns) => Some(Hold::Until(now + ns)),
            Kind::After(path, op) if self.has_done((path, op)) => None,
            Kind::After(path, op) => {
                self.course.awaits += 1;
                let mut known = self.turns.known.values();
                let of = known.find(|k| k.path == path).map(|k| k.id);
                let pid = of.map(|id| self.kernel.pid(id));
                self.course.switched = Some(Switched::Waits(point, pid));
                Some(Hold::After(stop, until, (path, op)))
            }
            Kind::Sample(name, seed) => {
                self.begin_order(name, seed);
                None
            }
        }
    }

    /// From here on a sampler picks the processes to run, with random numbers from that seed.
    pub fn begin_order(&mut self, name: Sampling, seed: u64) {
        let mut sampling = ActiveSampler::new(name, seed, &self.course.shown);
        for k in self.turns.known.values_mut() {
            k.stop.priority = sampling.begin(k.path);
            // A narrated run knows it already, one of a search does not.
            k.owner.operation = false;
        }
        self.course.sampling = Some(sampling);
    }

    /// From here on processes wait before operations until others have done theirs: each pair is
    /// the point before which one waits, and the one for which it does.
    pub fn begin_switches(&mut self, all: impl Iterator<Item = (Point, Point)>) {
        self.course.looks = true;
        let after = |(at, (path, op))| (at, Kind::After(path, op));
        self.course.deviations.extend(all.map(after));
    }

    /// Whether a process belongs to the program, as far as it is known.
    pub fn is_program(&mut self, cell: u32) -> bool {
        self.process(cell).owner.program
    }

    /// Returns what a sampler has had processes do since the last call.
    pub fn take_order(&mut self) -> Vec<Point> {
        let sampling = self.course.sampling.as_mut();
        sampling.map_or(Vec::new(), |s| std::mem::take(&mut s.order))
    }

    /// Returns the switch that was taken last, once.
    pub fn take_switch(&mut self) -> Option<Switched> {
        self.course.switched.take()
    }

    /// Whether a process that lives has done an operation.
    fn has_done(&self, (path, op): Point) -> bool {
        let mut known = self.turns.known.values();
        known.any(|k| {
            let current = k.counts.operations;
            k.path == path && (current > op || current == op && k.stop.pending.is_none())
        })
    }

    /// Whether a process stops before an operation, since a sampler puts another one first.
    fn sample(&mut self, cell: u32, touch: &Touch) -> bool {
        let path = self.process(cell).path;
        let Some(sampling) = &mut self.course.sampling else {
            return false;
        };
        let Some(mine) = sampling.priority(path, touch) else {
            return false;
        };
        let Turns { known, ready, .. } = &mut self.turns;
        let mut best = 0;
        for (c, may_block) in ready.iter() {
            let Some(k) = known.get_mut(c).filter(|k| k.is_free_program()) else {
                continue;
            };
            if *may_block {
                continue;
            }
            match k.stop.pending {
                Some(_) => {
                    if sampling.redraws_all() {
                        k.stop.priority = sampling.draw();
                    }
                    best = best.max(k.stop.priority);
                }
                None => best = u64::MAX,
            }
        }
        self.process(cell).stop.priority = mine;
        best > mine
    }

    /// A process does an operation now.
    fn done(&mut self, cell: u32, point: Point, touch: Touch) {
        let k = self.process(cell);
        let (id, owner) = (k.id, k.owner);
        if let Some(s) = &mut self.course.sampling {
            if owner.operation {
                s.done(point, &touch);
                for k in self.turns.known.values_mut() {
                    let pending = k.stop.pending.as_ref();
                    if pending.is_some_and(|p| s.redraws_after(p, &touch)) {
                        k.stop.priority = s.draw();
                    }
                }
            } else if owner.serves {
                // Nothing is drawn: only narrated runs know who serves.
                s.order.push(point);
            }
        }
        self.count_vain(point.0, touch);
        self.kernel.done(id, &touch);
        let waits = |k: &Process| matches!(k.stop.hold, Hold::After(_, _, p) if p == point);
        if self.course.awaits > 0
            && let Some((c, k)) = self.turns.known.iter_mut().find(|(_, k)| waits(k))
        {
            k.stop.hold = Hold::No;
            self.turns.handed = Some(*c);
            self.course.awaits -= 1;
            self.course.switched = Some(Switched::Came(self.kernel.pid(k.id)));
        }
    }

    /// Counts operations in a row that change nothing, and lets a stopped process continue after
    /// too many.
    fn count_vain(&mut self, path: u64, touch: Touch) {
        let mut first = || self.vain.seen.insert((path, touch));
        let changes = touch.changes && (!touch.effects.may_do_nothing || first());
        self.vain.in_a_row = if changes { 0 } else { self.vain.in_a_row + 1 };
        if self.vain.in_a_row < IN_VAIN {
            return;
        }
        self.vain = Vain::default();
        // Or the time passes for which one stalls, or until the next timer.
        if !self.turns.release_last()
            && let Some(t) = self.turns.next_release()
        {
            self.kernel.jump(t.min(self.kernel.next_timer()));
        }
    }

    /// Picks the process that runs next: the first that may run, or the one that a sampler puts
    /// first. None: all that are ready have stopped, or none is ready.
    pub fn next_process(&mut self) -> Option<Ready> {
        let now = self.kernel.now();
        let sampled = self.course.sampling.is_some();
        let handed = self.turns.handed.take();
        let Turns { known, ready, .. } = &mut self.turns;
        let may_run = |c: &u32| known.get(c).is_none_or(|k| k.stop.hold.is_over(now));
        let at = match handed.and_then(|h| ready.iter().position(|(c, _)| *c == h)) {
            Some(at) => at,
            None if sampled => {
                // Among equals the first. A process that is at no operation continues to one.
                let priority = |c: &u32| match known.get(c) {
                    Some(k) if k.stop.pending.is_some() => k.stop.priority,
                    _ => u64::MAX,
                };
                let all = ready.iter().enumerate().filter(|(_, (c, _))| may_run(c));
                all.max_by_key(|(i, (c, _))| (priority(c), usize::MAX - i))?
                    .0
            }
            None => ready.iter().position(|(c, _)| may_run(c))?,
        };
        let r = ready.remove(at)?;
        if let Some(k) = known.get_mut(&r.0) {
            k.stop.hold = Hold::No;
        }
        self.turns.running = r.0;
        Some(r)
    }

    /// A process has run, and may have ended. `waits`: whether it waits. `in_one_go`: whether it is
    /// to continue at once.
    pub fn ran(&mut self, cell: u32, waits: bool, in_one_go: bool) {
        self.turns.running = NO_CELL;
        let (id, is_free) = (self.kernel.process(cell).0, self.kernel.is_free(cell));
        let Some(k) = self.turns.known.get_mut(&cell) else {
            return;
        };
        k.owner.serves &= !waits;
        if in_one_go && !waits && k.id == id && k.stop.hold == Hold::No {
            self.turns.handed.get_or_insert(cell);
        }
        if k.id == id {
            return;
        }
        let (path, op, was) = (k.path, k.counts.operations + 1, k.id);
        if is_free {
            self.turns.known.remove(&cell);
        }
        self.ended_process((path, op), was);
    }

    fn ended_process(&mut self, point: Point, was: u32) {
        let path = point.0;
        self.hashes.end(path);
        if self.hashes.at_work && self.turns.programs.contains(&path) {
            self.hashes.own_end(path);
            let kernel = self.kernel;
            self.step(path, &steps::END.into(), || {
                format!("the end of {}", kernel.pid(was))
            });
        }
        if self.notes.profile.is_some() {
            let touch = Touch::end(self.kernel.object(was));
            let op = self.profiled(point, touch, (false, false), 0);
            self.note(Op {
                begun: false,
                tests: false,
                due: i64::MAX,
                ..op
            });
        }
    }

    /// Adds an event of a process of the program to the story. `line` makes its line from the path
    /// of the process.
    pub fn event(&mut self, process: u32, line: impl FnOnce(u64) -> Line) {
        if !self.notes.narrates() {
            return;
        }
        let mut known = self.turns.known.values();
        let found = known.find(|k| k.id == process && k.owner.program);
        if let Some(path) = found.map(|k| k.path) {
            self.tell(line(path));
        }
    }

    /// Lets the process continue that stopped first until no other could run. False: there is none.
    pub fn release_last(&mut self) -> bool {
        self.turns.release_last()
    }

    /// Returns the time at which the first stalled process continues.
    pub fn next_release(&self) -> Option<i64> {
        self.turns.next_release()
    }

    /// The process stops before the operation that it was allowed to do, until that time.
    pub fn pause(&mut self, cell: u32, until: i64, o: &mut dyn Operation) {
        let touch = o.touch();
        let stop = &mut self.process(cell).stop;
        stop.resumes = match o.is_receive() {
            true => Resumes::Anew,
            false => Resumes::With,
        };
        stop.pending = Some(touch);
        stop.hold = Hold::Until(until);
    }

    /// A process that does not run stops where it is, until that time.
    pub fn pause_waiting(&mut self, cell: u32, until: i64) {
        self.process(cell).stop.hold = Hold::Until(until);
    }

    /// Whether any process is ready that has not stopped.
    pub fn is_runnable(&self) -> bool {
        let now = self.kernel.now();
        let Turns { known, ready, .. } = &self.turns;
        let may_run = |c: &u32| known.get(c).is_none_or(|k| k.stop.hold.is_over(now));
        ready.iter().any(|(c, _)| may_run(c))
    }

    /// Whether any process is ready, stopped or not.
    pub fn is_ready(&self) -> bool {
        !self.turns.ready.is_empty()
    }

    /// Whether no process has done anything for long before that time. Processes for which
    /// `is_server` is true do not count.
    pub fn is_stuck(&self, at: i64, is_server: impl Fn(u32) -> bool) -> bool {
        if at < STUCK_AFTER {
            return false;
        }
        let others = self.turns.known.values().filter(|k| !is_server(k.id));
        let last = others.map(|k| k.last).max();
        last.is_none_or(|last| at - last > STUCK_AFTER)
    }

    /// The clock is about to jump. True: the run hangs.
    pub fn hangs(&mut self) -> bool {
        self.progress.jump(self.kernel.now())
    }

    /// Returns the time without progress after which the run hangs.
    pub fn hang_bound(&self) -> i64 {
        self.progress.bound()
    }

    /// Returns random bytes for a program that asks a library for them.
    pub fn random_bytes(&mut self, n: usize) -> Vec<u8> {
        let started = self.started as u64;
        let numbers = self.random.get_or_insert(Numbers(started));
        let mut v = Vec::with_capacity(n + 8);
        while v.len() < n {
            v.extend(numbers.draw().to_le_bytes());
        }
        v.truncate(n);
        v
    }

    /// Seeds the random bytes that the program gets.
    pub fn set_random(&mut self, seed: u64) {
        self.random = Some(Numbers(seed));
    }

    /// Returns the hash of all operations so far.
    pub fn hash(&self) -> u64 {
        self.hashes.all
    }

    /// Whether calls of libraries in C are counted.
    pub fn counts_libraries(&self) -> bool {
        self.notes.counts()
    }

    /// A process calls a function of a library in C. `is_own` finds out whether the program does
    /// it, or another process for it.
    pub fn library_call(
        &mut self,
        cell: u32,
        kind: account::Kind,
        module: &str,
        is_own: impl FnOnce(bool) -> bool,
    ) {
        let owner = self.process(cell).owner;
        if is_own(owner.shown || owner.serves) {
            self.notes.account.count(kind, module);
        }
    }

    /// Whether the operation that a process is about to do is counted in the account.
    pub fn is_counted(&mut self, cell: u32) -> bool {
        self.process(cell).owner.counted
    }

    /// Sets the deviations of this run.
    pub(crate) fn set_schedule(&mut self, all: &[Deviation]) {
        self.course.deviations = all.iter().map(|d| (d.point(), d.kind)).collect();
    }

    /// Sets what this run, and all that are forked from it, know of the base.
    pub(crate) fn set_premises(&mut self, p: &Premises) {
        self.turns.programs = p.programs.clone();
        self.progress.set_bound(p.quiet);
        self.course.shown = p.shown.clone();
    }

    /// Makes all further runs count the system calls of the program.
    pub(crate) fn set_sweeps(&mut self) {
        self.course.sweeps = true;
        self.branches.runs.system.count_calls();
        self.notes.calls = Some(Vec::new());
    }

    /// Profiles this run. `from`: nothing is tried before the first operation of that function.
    pub(crate) fn set_profile(&mut self, from: Option<Function>) {
        self.notes.profile = Some(Vec::new());
        self.notes.from = from;
    }

    /// Writes the story of this run.
    pub(crate) fn set_story(&mut self) {
        self.notes.story = Some(Vec::new());
    }

    /// Notes the steps of this run, or holds them against those expected.
    pub(crate) fn set_steps(&mut self, expected: Option<Vec<Step>>) {
        self.notes.steps = match expected {
            None => Steps::Noted(Vec::new()),
            Some(all) => Steps::Expected { all, next: 0 },
        };
    }

    /// Returns this run, which ends with that status.
    pub(crate) fn run(&self, status: i32, stuck: Stuck) -> Run {
        let now = self.kernel.now();
        Run {
            // The system passes no more than these bits on.
            status: status & 0xFF,
            stuck,
            hash: self.hashes.all,
            own_hash: self.hashes.own,
            ops: self.hashes.operations,
            took: now,
            taken: self.course.taken.len() as u32,
            outside: self.notes.account.clone(),
            quiet: self.progress.longest(now),
            failures: BTreeSet::new(),
        }
    }

    /// Returns the profile of this run.
    pub(crate) fn take_profile(&mut self) -> Vec<Op> {
        self.notes.profile.take().unwrap_or_default()
    }

    /// Returns the notes of this run as lines.
    pub(crate) fn notes_text(&mut self) -> String {
        let mut text = String::new();
        if let Some(s) = self.course.sampling.take() {
            for (path, op) in s.order {
                text.push_str(&format!("order {path} {op}\n"));
            }
        }
        text.push_str(&self.steps_text());
        for v in self.branches.runs.system.variables_read() {
            text.push_str(&format!("variable {}\n", v.text()));
        }
        text.push_str(&self.notes.processes.text());
        text.push_str(&story::text(&self.notes.story.take().unwrap_or_default()));
        text
    }

    fn steps_text(&mut self) -> String {
        if let Some(how) = self.notes.differs.take() {
            return format!("another {}\n", how.replace('\n', " "));
        }
        match std::mem::take(&mut self.notes.steps) {
            Steps::Off => String::new(),
            Steps::Noted(v) => steps::text(&v),
            Steps::Expected { all, next } => match all.get(next) {
                None => String::new(),
                Some(e) => format!(
                    "another at operation {}: expected {}, got the end of the program\n",
                    next + 1,
                    steps::described(&e.name)
                ),
            },
        }
    }
}
