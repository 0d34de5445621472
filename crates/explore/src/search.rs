//! The search for a schedule that fails, and the replay of one that has failed.
//!
//! The process that is started is the root: it runs nothing itself. It forks a run of the base,
//! which profiles its operations. The [plan](crate::plan) makes schedules from the profile, and
//! trunks run them (`branch`). A schedule that fails is run again by itself, shrunk, and narrated:
//! its story is written.
//!
//! # Invariants
//! * A reported schedule has failed in a run by itself: a failure that depends on runs beside it is
//!   only counted.
//! * A function that returns None does so in a forked run, which then continues to run the program.

use crate::base::Base;
use crate::branch::{Ground, Role};
use crate::deviation::{Deviation, Kind, Schedule};
use crate::file::Replay;
use crate::fingerprint::failures;
use crate::hang;
use crate::kernel::Limits;
use crate::log::Playback;
use crate::operation::{Op, Point};
use crate::output;
use crate::plan::Plan;
use crate::premises::Premises;
use crate::report::{self, Failed, Failure, Tried};
use crate::request::Search;
use crate::run::{Child, Ended, Outcome, Run, Stuck, seconds};
use crate::shrink::Shrink;
use crate::steps::Step;
use crate::{Explorer, fresh_dir, recording, sweep};
use purlin_messages::{self as messages, Code};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Bounds of shrinking: runs, time, and rounds.
const MOST_FORKS: usize = 400;
const MOST_SHRINKING: Duration = Duration::from_secs(20);
const MOST_ROUNDS: usize = 60;
/// Number of listed schedules that are tried at a time in place of a sampled one.
const SIMPLE: usize = 32;
/// Maximum number of failures that a search reports.
pub(crate) const MOST_FAILURES: usize = 20;

/// Seconds that a run of the base may take.
const MOST_BASE: u32 = 600;

/// Time that a narrated run has at least, beside twice the time of the base.
const LEAST_TOLD: Duration = Duration::from_secs(1);

/// Returns the seconds after which a run is ended, given the time that the base takes.
fn most_seconds(base: Duration) -> u32 {
    (base.as_secs_f64() * 20.0) as u32 + 10
}

/// Reads the profile in the report of a run of the base.
fn profile(report: &str) -> Vec<Op> {
    report.lines().skip(1).filter_map(Op::parse).collect()
}

/// Reads the sampled order in the report of a run.
fn sampled_order(report: &str) -> Vec<Point> {
    let point = |l: &str| {
        let (path, op) = l.strip_prefix("order ")?.split_once(' ')?;
        Some((path.parse().ok()?, op.parse().ok()?))
    };
    report.lines().filter_map(point).collect()
}

/// Whether the schedule is one deviation at which a sampler takes over.
fn is_sampled(s: &[Deviation]) -> bool {
    matches!(s, [d] if matches!(d.kind, Kind::Sample(..)))
}

/// A schedule that was shrunk.
struct Shrunk {
    schedule: Schedule,
    /// With stalls no longer than they must be.
    margin: Schedule,
    /// Number of deviations before.
    before: usize,
}

impl Explorer {
    pub(crate) fn say(&self, text: &str) {
        self.branches.runs.system.say(text);
    }

    /// Prints a message of that code.
    fn warn(&self, code: Code, text: impl std::fmt::Display) {
        self.say(&(code.line(text) + "\n"));
    }

    /// Reports a result that cannot be written.
    fn result_lost(&self, text: impl std::fmt::Display) {
        self.warn(messages::RESULT_LOST, text);
    }

    /// Prints the result. A reader that has gone does not want it.
    pub(crate) fn print(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if let Err(e) = done
            && e.kind() != std::io::ErrorKind::BrokenPipe
        {
            self.root.lost = true;
            self.result_lost(format_args!("schedules: cannot write: {e}"));
        }
    }

    /// Ends the root.
    fn exit(&mut self, status: i32) -> ! {
        self.branches.end_waiting();
        fresh_dir::remove();
        let status = match status {
            0 if self.root.lost => 71,
            s => s,
        };
        self.branches.runs.system.exit(status)
    }

    /// Returns the status of a search with that result. `open`: whether something is decided by no
    /// seed.
    fn strict_status(&self, s: &Search, status: i32, open: bool) -> i32 {
        if s.strict && open {
            self.warn(
                messages::NOT_DECIDED,
                "schedules: --strict: the seed does not decide all that the program does",
            );
            return 5;
        }
        status
    }

    /// Forks a run of the program from its start. In the child: the file for its report.
    fn fork_run(&mut self, limits: Limits) -> Result<Child, File> {
        if let Err(e) = fresh_dir::renew() {
            self.branches
                .runs
                .report_refusal("make the folder of a run", &e);
            self.exit(71)
        }
        self.branches.runs.fork(limits)
    }

    /// Runs the base once, within that many seconds, and prepares the modules that it loads for all
    /// runs to come. False: this process is that run.
    fn discover(&mut self, seconds: u32) -> bool {
        let notes = match self.branches.runs.system.memory_file() {
            Ok(f) => f,
            Err(e) => self.branches.runs.cannot("make a file in memory", &e),
        };
        match self.fork_run(Limits {
            processor: 0,
            real: Some(Duration::from_secs(seconds.into())),
        }) {
            Ok(c) => {
                let ended = c.wait(self.branches.runs.system);
                if self.branches.runs.system.is_endless(ended.status) {
                    self.too_long(seconds);
                }
                self.branches.runs.system.prepare_modules(notes);
                true
            }
            Err(report) => {
                self.branches.runs.system.note_modules(notes);
                self.branches.role = Role::Branch(report);
                false
            }
        }
    }

    /// The base does not end in its time: within that many seconds, or in what is left to the
    /// search.
    fn too_long(&mut self, seconds: u32) -> ! {
        if self.branches.runs.is_over() {
            self.warn(
                messages::TOO_LITTLE_TIME,
                "schedules: --for: the program as it is takes longer than that",
            );
            self.exit(2)
        }
        let text = format!("schedules: the program as it is does not end within {seconds} s");
        self.warn(messages::DOES_NOT_END, text);
        self.exit(1)
    }

    /// Begins a run of a schedule from the start. `expected`: the steps that it is compared with.
    /// `narrated`: whether it writes its story. None: this process is the run.
    pub(crate) fn begin_run(
        &mut self,
        schedule: &Schedule,
        processor: u32,
        expected: Option<Vec<Step>>,
        narrated: bool,
    ) -> Option<Child> {
        match self.fork_run(seconds(processor)) {
            Err(report) => {
                self.branches.role = Role::Branch(report);
                self.set_schedule(schedule);
                if narrated || expected.is_some() {
                    self.set_steps(expected);
                }
                if narrated {
                    self.set_story();
                    self.branches
                        .runs
                        .system
                        .begin_recording(self.root.recording.take());
                }
                None
            }
            Ok(c) => Some(c),
        }
    }

    /// Repeats a schedule. Returns in the run; the root exits with 1 if it failed as recorded, with
    /// 4 if it went another way.
    pub fn replay(&mut self, r: Replay) {
        self.root.had_input = self.branches.runs.system.empty_input();
        let began = Instant::now();
        // A replay with a log needs no run that would ask the system.
        match &r.outside {
            Some(recording) => self.branches.runs.system.make_atoms(&recording.atoms),
            None if !self.discover(MOST_BASE) => return,
            None => {}
        }
        self.set_sweeps_of(&r.schedule);
        self.set_premises(&r.premises);
        self.branches.runs.system.set_variables(&r.variables);
        let seconds = match &r.outside {
            // The time of the base is not known.
            Some(_) if !self.branches.runs.system.is_endless(r.status) => MOST_BASE,
            _ => most_seconds(began.elapsed()),
        };
        let child = self.begin_run(&r.schedule, seconds, Some(r.steps.clone()), r.narrates);
        let Some(child) = child else {
            if let Some(recording) = r.outside {
                let ended_by = self
                    .branches
                    .runs
                    .system
                    .is_endless(r.status)
                    .then_some(-r.status);
                let log = Playback::new(recording.events, ended_by);
                self.branches.runs.system.begin_replay(log, recording.path);
            }
            return;
        };
        let ended = child.wait_showing(self.branches.runs.system);
        self.report_replay(&r, &ended)
    }

    fn report_replay(&mut self, r: &Replay, ended: &Ended) -> ! {
        let report = &ended.report;
        let another = report.lines().find_map(|l| l.strip_prefix("another "));
        let missing = output::missing(&r.output, &ended.output);
        if r.narrates {
            let is_line = |l: &&str| l.contains('\t') && !l.starts_with("who ");
            let story: Vec<&str> = report.lines().filter(is_line).collect();
            self.say(&(story.join("\n") + "\n"));
        }
        let (status, hash, ops, taken) = match Outcome::of_report(report) {
            Some(Outcome::Ended(r)) => (r.status, r.own_hash, r.ops, r.taken),
            _ => (ended.status, 0, 0, 0),
        };
        if another.is_none() && status == r.status && hash == r.hash && missing.is_none() {
            let how = match status {
                s if s < 0 => format!("ended by signal {}", -s),
                s => format!("status {s}"),
            };
            self.say(&format!(
                "purlin: replayed: {ops} operations, {how}, as recorded\n"
            ));
            self.exit(1)
        }
        let why = match another {
            Some(a) => a.to_owned(),
            None if status != r.status => "at its end".to_owned(),
            None if let Some(n) = missing => {
                format!("line {n} of its output was not written again")
            }
            None => match r.schedule.len() {
                n if taken as usize >= n => "in what its operations touch".to_owned(),
                1 => "its deviation was not met".to_owned(),
                n => format!("{taken} of {n} deviations were met"),
            },
        };
        let text = format!(
            "the replay went another way: {why}; status {status}, recorded {}",
            r.status
        );
        self.warn(messages::REPLAY_DIFFERS, text);
        self.exit(4)
    }

    /// Searches for a schedule that fails. Returns in a run of the program; the root exits with 0
    /// if none failed, with 1 if one did, with 5 if the seed does not decide everything and the
    /// search is strict.
    pub fn search(&mut self, s: &Search) {
        self.root.had_input = self.branches.runs.system.empty_input();
        self.branches.runs.system.handle_stops();
        match s.sweep {
            Some(_) => self.set_sweeps(),
            None => self.set_sweeps_of(&s.first),
        }
        self.branches.runs.deadline = s.time.and_then(|t| Instant::now().checked_add(t));
        if !self.discover(MOST_BASE) {
            return;
        }
        let began = Instant::now();
        let Some(bases) = self.run_bases(s) else {
            return;
        };
        let Some(Outcome::Ended(base_run)) = Outcome::of_report(&bases[0].report) else {
            self.base_died(&bases[0])
        };
        let seconds = most_seconds(began.elapsed() / 2);
        let base_takes = began.elapsed() / 2;
        let decided = bases.get(1).is_some_and(|b| {
            matches!(Outcome::of_report(&b.report), Some(Outcome::Ended(r)) if r.hash == base_run.hash)
        });
        if !decided && !self.branches.runs.is_over() {
            self.warn(
                messages::RUNS_DIFFER,
                "schedules: two runs of the base differ: not all that the program depends on is decided by the seed",
            );
            if s.strict {
                self.exit(5)
            }
        }
        let ops = profile(&bases[if decided { 1 } else { 0 }].report);
        let base = Base::new(ops, s.stall, s.any_delivery);
        let mut tried = Tried {
            schedules: 1,
            took: base_run.took,
            ..Tried::default()
        };
        tried.hashes.insert(base_run.hash);
        if !base_run.passes() {
            let failed = Failed {
                schedule: Vec::new(),
                margin: Vec::new(),
                before: 0,
                run: base_run,
                // It is reported as it was run.
                premises: base.premises(0),
                seconds,
            };
            self.set_premises(&failed.premises);
            let Some(failure) = self.run_narrated(failed, base_takes) else {
                return;
            };
            self.finish(s, &tried, began, vec![failure], decided)
        }
        let premises = base.premises(hang::bound(base_run.quiet));
        self.set_premises(&premises);
        if let Some((m, f, a)) = &s.from
            && !base.has_begun()
        {
            let text = format!(
                "schedules: the program does not call {m}:{f}/{a} before a visible operation"
            );
            self.warn(messages::FROM_NOT_CALLED, text);
            self.exit(2)
        }
        let mut plan = Plan::new(base, s.strategy, s.seed);
        let begins = match s.sweep {
            // Before the first system call that can fail.
            Some(_) => plan.base().first_of_code(),
            None => plan.begins(),
        };
        let ground = Ground::new(s.jobs, plan.base(), seconds, begins);
        if !s.first.is_empty() {
            plan.begin_with(s.first.clone());
        }
        let context = Context {
            ground,
            premises,
            base_takes,
        };
        if let Some(w) = &s.sweep {
            let made = sweep::calls(&bases[if decided { 1 } else { 0 }].report);
            let Some(status) = self.sweep(s, w, &made, &context, began, &mut tried) else {
                return;
            };
            let open = !decided || tried.unrepeated > 0;
            let status = self.strict_status(s, status.into(), open);
            self.exit(status)
        }
        let Some(failures) = self.try_plan(s, &mut plan, &context, &mut tried) else {
            return;
        };
        if failures.is_empty() {
            self.none_failed(s, &tried, began, &base_run, plan.places())
        }
        self.finish(s, &tried, began, failures, decided)
    }

    /// Runs the base twice. None: this process is one of the runs.
    fn run_bases(&mut self, s: &Search) -> Option<Vec<Ended>> {
        let mut bases: Vec<Ended> = Vec::new();
        for first in [true, false] {
            match self.fork_run(Limits {
                processor: 0,
                real: Some(Duration::from_secs(MOST_BASE.into())),
            }) {
                Ok(c) => bases.push(c.wait(self.branches.runs.system)),
                Err(report) => {
                    self.branches.role = Role::Base(report);
                    self.set_profile(s.from.clone());
                    return None;
                }
            }
            let report = &bases[0].report;
            if first && !matches!(Outcome::of_report(report), Some(Outcome::Ended(_))) {
                break;
            }
            if first {
                // Whose code runs in a process shows late. The second run knows it from the start.
                let premises = Base::new(profile(report), 0, false).premises(0);
                self.set_premises(&premises);
            }
        }
        Some(bases)
    }

    fn base_died(&mut self, base: &Ended) -> ! {
        if self.branches.runs.system.is_endless(base.status) {
            self.too_long(MOST_BASE);
        }
        self.say(&base.output);
        let text = format!(
            "schedules: the program ended by itself in no time that could be waited for ({})",
            base.status
        );
        self.warn(messages::NO_BASE, text);
        self.exit(71)
    }

    /// Runs these schedules, as far as possible in one run of the base. An outcome is None if the
    /// time of the search was over. None: this process is one of the runs.
    pub(crate) fn try_all(&mut self, all: &[Schedule], g: &Ground) -> Option<Vec<Option<Outcome>>> {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; all.len()];
        let mut together = Vec::new();
        for (i, s) in all.iter().enumerate() {
            if self.branches.runs.is_over() {
                return Some(outcomes);
            }
            if g.runs_apart(s) {
                let child = self.begin_run(s, g.seconds, None, false)?;
                outcomes[i] = self.branches.runs.outcome(child);
            } else {
                together.push((i, s));
            }
        }
        self.branches.try_together(together, g, &mut outcomes)?;
        Some(outcomes)
    }

    /// Tries the schedules of a plan: the failures. None: this process is one of the runs.
    fn try_plan(
        &mut self,
        s: &Search,
        plan: &mut Plan,
        c: &Context,
        tried: &mut Tried,
    ) -> Option<Vec<Failure>> {
        let mut found: Vec<Failure> = Vec::new();
        // Fingerprints of those.
        let mut known: BTreeSet<u64> = BTreeSet::new();
        while tried.schedules < s.schedules && !self.branches.runs.is_over() {
            let batch = plan.batch(s.schedules - tried.schedules);
            if batch.is_empty() {
                break;
            }
            let outcomes = self.try_all(&batch, &c.ground)?;
            for (schedule, o) in batch.into_iter().zip(outcomes) {
                let Some(o) = o else { continue };
                tried.schedules += 1;
                self.branches
                    .runs
                    .system
                    .progress(tried.schedules, !found.is_empty());
                let fails = o.fails();
                let run = match o {
                    Outcome::Ended(r) => {
                        tried.hashes.insert(r.hash);
                        tried.took += r.took;
                        r
                    }
                    Outcome::Died(status) => Run {
                        status,
                        failures: failures(status, false, ""),
                        ..Run::default()
                    },
                };
                if !fails || run.failures.is_subset(&known) {
                    continue;
                }
                let wanted: BTreeSet<u64> = run.failures.difference(&known).copied().collect();
                let failed = Failed {
                    before: schedule.len(),
                    margin: schedule.clone(),
                    schedule,
                    run,
                    premises: c.premises.clone(),
                    seconds: c.ground.seconds,
                };
                let wanted = s.keep_going.then_some(wanted);
                self.branches.runs.system.progress(tried.schedules, true);
                match self.confirm(plan, failed, wanted, c)? {
                    None => {
                        self.branches
                            .runs
                            .system
                            .progress(tried.schedules, !found.is_empty());
                        tried.unrepeated += 1;
                    }
                    Some(f) => {
                        known.extend(&f.run.failures);
                        known.extend(&f.failed.run.failures);
                        found.push(f);
                    }
                }
                if !found.is_empty() && (!s.keep_going || found.len() >= MOST_FAILURES) {
                    return Some(found);
                }
            }
        }
        Some(found)
    }

    /// Runs a schedule alone that failed while others ran in parallel. If it fails again, it is
    /// shrunk and reported. The report must have one of the fingerprints `wanted`. None: this
    /// process is one of the runs.
    fn confirm(
        &mut self,
        plan: &Plan,
        failed: Failed,
        wanted: Option<BTreeSet<u64>>,
        c: &Context,
    ) -> Option<Option<Failure>> {
        let as_found = self.run_narrated(failed, c.base_takes)?;
        if as_found.run.passes() {
            return Some(None);
        }
        let again = |r: &Run| {
            let wanted = wanted.as_ref();
            !r.passes() && wanted.is_none_or(|w| r.failures.iter().any(|f| w.contains(f)))
        };
        // A narrated run may write something else than one beside others. Then only its status
        // counts.
        let same = again(&as_found.run);
        let same = |o: &Option<Outcome>| match o {
            Some(Outcome::Ended(r)) if same => again(r),
            Some(o) => o.fails(),
            None => false,
        };
        let schedule = as_found.failed.schedule.clone();
        let shrunk = self.shrink(plan, schedule, &c.ground, &same, &as_found.order)?;
        if shrunk.schedule == as_found.failed.schedule {
            let mut failure = as_found;
            failure.failed.margin = shrunk.margin;
            return Some(Some(failure));
        }
        let failed = Failed {
            schedule: shrunk.schedule,
            margin: shrunk.margin,
            before: shrunk.before,
            run: as_found.failed.run.clone(),
            premises: as_found.failed.premises.clone(),
            ..as_found.failed
        };
        let short = self.run_narrated(failed, c.base_takes)?;
        let fails = same(&Some(Outcome::Ended(short.run.clone())));
        Some(Some(if fails { short } else { as_found }))
    }

    /// Shrinks a schedule that fails. `same`: whether a run has failed in the same way. `order`:
    /// its sampled order. None: this process is one of the runs.
    fn shrink(
        &mut self,
        plan: &Plan,
        mut schedule: Schedule,
        g: &Ground,
        same: &dyn Fn(&Option<Outcome>) -> bool,
        order: &[Point],
    ) -> Option<Shrunk> {
        if is_sampled(&schedule) {
            schedule = self.without_sampler(plan, schedule, g, same, order)?;
        }
        let before = schedule.len();
        let mut shrink = Shrink::new(schedule);
        let mut forks = 0;
        let began = Instant::now();
        for _ in 0..MOST_ROUNDS {
            let candidates = shrink.candidates();
            let enough = forks > MOST_FORKS || began.elapsed() > MOST_SHRINKING;
            if candidates.is_empty() || enough || self.branches.runs.is_over() {
                break;
            }
            forks += candidates.len();
            let outcomes = self.try_all(&candidates, g)?;
            let fails: Vec<bool> = outcomes.iter().map(same).collect();
            shrink.results(candidates, &fails);
        }
        let best = shrink.best().clone();
        // A stall at its margin depends on each nanosecond. It is kept a quarter longer, if that is
        // allowed and fails, too.
        let longer = plan.with_margin(&best);
        let fails = longer != best
            && self
                .try_all(std::slice::from_ref(&longer), g)?
                .iter()
                .any(same);
        Some(Shrunk {
            schedule: if fails { longer } else { best.clone() },
            margin: best,
            before,
        })
    }

    /// Replaces a sampler by deviations that repeat its order, or else by a listed schedule that
    /// fails.
    fn without_sampler(
        &mut self,
        plan: &Plan,
        mut schedule: Schedule,
        g: &Ground,
        same: &dyn Fn(&Option<Outcome>) -> bool,
        order: &[Point],
    ) -> Option<Schedule> {
        let began = Instant::now();
        let repeated = plan.repeating(order);
        if !repeated.is_empty() {
            let all = [repeated];
            let outcomes = self.try_all(&all, g)?;
            if outcomes.iter().all(same) {
                [schedule] = all;
            }
        }
        for some in plan.rest().chunks(SIMPLE) {
            if !is_sampled(&schedule)
                || began.elapsed() > MOST_SHRINKING
                || self.branches.runs.is_over()
            {
                break;
            }
            let outcomes = self.try_all(some, g)?;
            if let Some(i) = outcomes.iter().position(same) {
                schedule = some[i].clone();
            }
        }
        Some(schedule)
    }

    /// Runs a schedule from the start and writes its story. `takes`: the time of the base. If the
    /// time of the search is over, the run has twice that, and no longer. None: this process is the
    /// run.
    pub(crate) fn run_narrated(&mut self, failed: Failed, takes: Duration) -> Option<Failure> {
        let ends = self.branches.runs.deadline.take();
        let allowed = Instant::now() + takes * 2 + LEAST_TOLD;
        self.branches.runs.deadline = ends.map(|e| e.max(allowed));
        self.root.recording = self.branches.runs.system.memory_file().ok();
        let child = self.begin_run(&failed.schedule, failed.seconds, None, true)?;
        let ended = child.wait(self.branches.runs.system);
        self.branches.runs.deadline = ends;
        let mut run = match Outcome::of_report(&ended.report) {
            Some(Outcome::Ended(r)) => r,
            _ => Run {
                status: ended.status,
                ..Run::default()
            },
        };
        if !run.passes() {
            run.failures = failures(run.status, run.stuck != Stuck::No, &ended.output);
        }
        let story = ended.report.split_once('\n');
        let story = story.map_or(String::new(), |(_, s)| s.to_owned());
        let endless = self.branches.runs.system.is_endless(run.status);
        Some(Failure {
            failed,
            order: sampled_order(&story),
            run,
            endless,
            story,
            output: ended.output,
            events: self.recorded_events(),
        })
    }

    /// Returns the events that the last narrated run recorded, each a line.
    fn recorded_events(&mut self) -> String {
        let Some(mut f) = self.root.recording.take() else {
            return String::new();
        };
        let mut bytes = Vec::new();
        if f.seek(SeekFrom::Start(0)).is_ok() {
            let _ = f.read_to_end(&mut bytes);
        }
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        // A run that was ended may have left half a line.
        text.truncate(text.rfind('\n').map_or(0, |i| i + 1));
        text
    }

    fn none_failed(
        &mut self,
        s: &Search,
        tried: &Tried,
        began: Instant,
        base: &Run,
        places: (usize, usize),
    ) -> ! {
        let outside = &base.outside;
        let text = match s.json {
            true => report::none_as_json(tried, base, places),
            false => {
                let account = report::account(s, outside, self.root.had_input);
                report::none_as_text(tried, began, base, places, &account)
            }
        };
        self.print(&text);
        let open = outside.is_open() || tried.unrepeated > 0;
        let status = self.strict_status(s, 0, open);
        self.exit(status)
    }

    /// Writes a replay file for each failure. Returns their paths, and whether each was written.
    pub(crate) fn write_files(&mut self, s: &Search, all: &[Failure]) -> Vec<(PathBuf, bool)> {
        let mut files = Vec::new();
        for (n, f) in all.iter().enumerate() {
            let path = report::path(s, n + 1);
            let system = &self.branches.runs.system;
            let recorded = f.kept().map(|events| {
                let program = system.program_path();
                recording::text(&system.prepared_atoms(), program.as_deref(), events)
            });
            let text = f.file(s, self.started, recorded.as_deref());
            let done = report::write_private(&path, text.as_bytes());
            if let Err(e) = &done {
                self.result_lost(format_args!("cannot write {}: {e}", path.display()));
            }
            files.push((path, done.is_ok()));
        }
        files
    }

    /// Writes the replay files, prints the result, and exits.
    fn finish(
        &mut self,
        s: &Search,
        tried: &Tried,
        began: Instant,
        all: Vec<Failure>,
        decided: bool,
    ) -> ! {
        let files = self.write_files(s, &all);
        let text = match s.json {
            true => report::failed_as_json(s, tried, &all, &files),
            false => report::failed_as_text(s, tried, began, &all, &files, self.root.had_input),
        };
        self.print(&text);
        let open = !decided || tried.unrepeated > 0 || all.iter().any(Failure::is_open);
        let status = match files.iter().all(|(_, written)| *written) {
            true => 1,
            false => 71,
        };
        let status = self.strict_status(s, status, open);
        self.exit(status)
    }
}

/// Data that all schedules of a search share.
pub(crate) struct Context {
    pub ground: Ground,
    pub premises: Premises,
    pub base_takes: Duration,
}
