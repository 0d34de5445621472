//! The sweep of system calls: for each N, the Nth call of a kind fails, once or from there on,
//! until a run has no Nth call. SQLite is tested in this way (sqlite.org/testing.html, section 3).
//!
//! # Invariants
//! * Each run makes the base's calls up to the one that fails.
//! * A failure with a story has failed in two runs, of which one was by itself. The others that are
//!   listed have failed in one.

use crate::Explorer;
use crate::deviation::{Deviation, Kind, Schedule};
use crate::failing::{Call, Failing};
use crate::json;
use crate::report::{Failed, Failure, Tried};
use crate::request::Search;
use crate::run::{Outcome, Run, Stuck};
use crate::search::{Context, MOST_FAILURES};
use crate::sweep::{self, Made, Sweep};
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Number of runs that are tried at a time.
const BATCH: usize = 32;

/// A run that failed.
struct Found {
    failing: Failing,
    n: u32,
    place: String,
    ended: String,
}

impl Found {
    /// Whether both failed in the same way, at the same place.
    fn is_like(&self, other: &Found) -> bool {
        let way = |f: &Found| (f.failing.call, f.place.clone(), f.ended.clone());
        way(self) == way(other)
    }
}

/// The sweep of one kind of calls.
struct OfKind {
    call: Call,
    /// Number of calls that failed, and of those that the base makes.
    failed: u32,
    made: u32,
    /// Whether all of them failed, and one more never comes.
    whole: bool,
}

/// The search that a sweep belongs to, the sweep, and the base that its runs differ from.
#[derive(Clone, Copy)]
struct Task<'a> {
    search: &'a Search,
    sweep: &'a Sweep,
    context: &'a Context,
}

/// The results of a sweep.
#[derive(Default)]
struct Swept {
    kinds: Vec<OfKind>,
    found: Vec<Found>,
    failures: Vec<Failure>,
    runs: usize,
    unrepeated: usize,
}

fn ended(o: &Outcome) -> String {
    match o {
        Outcome::Died(s) if *s < 0 => format!("is ended by signal {}", -s),
        Outcome::Died(s) => format!("ends without a report, with status {s}"),
        Outcome::Ended(r) => match r.stuck {
            Stuck::Deadlock => "deadlocks".into(),
            Stuck::Hang => "hangs".into(),
            Stuck::No => format!("exits with {}", r.status),
        },
    }
}

impl Explorer {
    /// Sweeps system calls. None: this process is one of the runs.
    pub(crate) fn sweep(
        &mut self,
        s: &Search,
        w: &Sweep,
        made: &[Made],
        c: &Context,
        began: Instant,
        tried: &mut Tried,
    ) -> Option<u8> {
        let task = Task {
            search: s,
            sweep: w,
            context: c,
        };
        let mut swept = Swept::default();
        let mut kinds: Vec<_> = w
            .calls
            .iter()
            .map(|(call, reasons)| {
                let places = made.iter().filter(|m| m.0 == *call).map(|m| &*m.1);
                (*call, places.collect::<Vec<&str>>(), w.ways(*call, reasons))
            })
            .filter(|(_, _, ways)| !ways.is_empty())
            .collect();
        // Each kind has the same share of the runs. Those with few calls leave some to the others.
        kinds.sort_by_key(|(_, places, ways)| places.len() * ways.len());
        let count = kinds.len();
        for (i, (call, places, ways)) in kinds.into_iter().enumerate() {
            let most = s.schedules.saturating_sub(swept.runs) / (count - i);
            let of = self.sweep_kind(task, (call, &ways), &places, most, &mut swept)?;
            swept.kinds.push(of);
        }
        swept.kinds.sort_by_key(|k| k.call);
        tried.schedules += swept.runs;
        tried.unrepeated += swept.unrepeated;
        Some(self.report_sweep(s, &swept, began))
    }

    /// Sweeps calls of one kind, with about `most` runs. None: this process is one of the runs.
    fn sweep_kind(
        &mut self,
        task: Task,
        (call, ways): (Call, &[Failing]),
        places: &[&str],
        most: usize,
        swept: &mut Swept,
    ) -> Option<OfKind> {
        let mut next = sweep::ordinals(places, (most / ways.len()).max(1));
        let mut of = OfKind {
            call,
            failed: 0,
            made: places.len() as u32,
            whole: false,
        };
        let mut last = 0;
        while !next.is_empty() {
            let count = (BATCH / ways.len()).clamp(1, next.len());
            let batch: Vec<(u32, Failing)> = next
                .drain(..count)
                .flat_map(|n| ways.iter().map(move |f| (n, *f)))
                .collect();
            let schedules: Vec<Schedule> = batch
                .iter()
                .map(|(n, f)| vec![Deviation::at(call.point(*n), Kind::Fail(*f))])
                .collect();
            let outcomes = self.try_all(&schedules, &task.context.ground)?;
            for (((n, f), schedule), o) in batch.into_iter().zip(schedules).zip(outcomes) {
                let Some(o) = o else {
                    return Some(of);
                };
                let comes = !matches!(&o, Outcome::Ended(r) if r.taken == 0);
                swept.runs += 1;
                self.branches
                    .runs
                    .system
                    .progress(swept.runs, !swept.failures.is_empty());
                if !matches!(&o, Outcome::Ended(r) if task.sweep.passes(r)) {
                    let place = places.get(n as usize - 1).copied().unwrap_or_default();
                    let found = Found {
                        failing: f,
                        n,
                        place: place.to_owned(),
                        ended: ended(&o),
                    };
                    self.confirm_failing(task, found, schedule, o, swept)?;
                }
                if comes && last != n {
                    of.failed += 1;
                    last = n;
                }
                of.whole |= !comes && n > of.made;
                if swept.runs >= task.search.schedules || self.branches.runs.is_over() {
                    return Some(of);
                }
            }
            // A run may make more calls than the base.
            if next.is_empty() && last > of.made && !of.whole {
                next.push(last + 1);
            }
        }
        Some(of)
    }

    /// Runs a schedule that failed again by itself, if it failed in a new way. None: this process
    /// is that run.
    fn confirm_failing(
        &mut self,
        task: Task,
        found: Found,
        schedule: Schedule,
        o: Outcome,
        swept: &mut Swept,
    ) -> Option<()> {
        let c = task.context;
        let most = if task.search.keep_going {
            MOST_FAILURES
        } else {
            1
        };
        if swept.found.iter().any(|f| f.is_like(&found)) || swept.failures.len() >= most {
            swept.found.push(found);
            return Some(());
        }
        let run = match o {
            Outcome::Ended(r) => r,
            Outcome::Died(status) => Run {
                status,
                ..Run::default()
            },
        };
        let failed = Failed {
            before: 1,
            margin: schedule.clone(),
            schedule,
            run,
            premises: c.premises.clone(),
            seconds: c.ground.seconds,
        };
        let f = self.run_narrated(failed, c.base_takes)?;
        match task.sweep.passes(&f.run) {
            true => swept.unrepeated += 1,
            false => {
                swept.failures.push(f);
                swept.found.push(found);
            }
        }
        Some(())
    }

    /// Writes the replay files, and prints the result. Returns the exit status.
    fn report_sweep(&mut self, s: &Search, swept: &Swept, began: Instant) -> u8 {
        let files = self.write_files(s, &swept.failures);
        let text = match s.json {
            true => swept.json(&files),
            false => swept.text(s, began, &files, self.root.had_input),
        };
        self.print(&text);
        match files.iter().all(|(_, written)| *written) {
            true => u8::from(!swept.found.is_empty()),
            false => 71,
        }
    }

    /// Makes runs count system calls if one of them fails in that schedule.
    pub(crate) fn set_sweeps_of(&mut self, s: &Schedule) {
        let fails = |d: &Deviation| matches!(d.kind, Kind::Fail(_));
        if s.iter().any(fails) {
            self.set_sweeps();
        }
    }
}

impl Swept {
    /// Describes the calls: how many there were, and how many of them failed.
    fn counts(&self) -> String {
        let (made, never): (Vec<_>, Vec<_>) =
            self.kinds.iter().partition(|k| k.made > 0 || k.failed > 0);
        let count = |k: &&OfKind| match k.whole {
            true => format!("{} {}", k.call.name(), k.failed),
            false => format!("{} {} of {}", k.call.name(), k.failed, k.made),
        };
        let mut text = match made.is_empty() {
            true => "No call failed".to_owned(),
            false => {
                let all: Vec<String> = made.iter().map(count).collect();
                format!("Calls that failed: {}", all.join(", "))
            }
        };
        if !never.is_empty() {
            let names: Vec<&str> = never.iter().map(|k| k.call.name()).collect();
            let _ = write!(text, "; not called: {}", names.join(", "));
        }
        text
    }

    fn text(
        &self,
        s: &Search,
        began: Instant,
        files: &[(PathBuf, bool)],
        had_input: bool,
    ) -> String {
        let seconds = began.elapsed().as_secs_f64();
        let mut text = String::new();
        for (f, (path, written)) in self.failures.iter().zip(files) {
            text.push_str(&f.text(s, written.then_some(path), had_input));
            text.push('\n');
        }
        let _ = writeln!(text, "{}.", self.counts());
        let ending = match self.found.len() {
            0 => "none failed".to_owned(),
            1 => "1 failed:".to_owned(),
            n => format!("{n} failed:"),
        };
        let _ = writeln!(text, "{} runs, {seconds:.1} s; {ending}", self.runs);
        let mut listed: Vec<&Found> = Vec::new();
        for f in &self.found {
            if listed.iter().any(|t| t.is_like(f)) {
                continue;
            }
            listed.push(f);
            let place = match f.place.as_str() {
                "" => "",
                p => &format!(" ({p})"),
            };
            let alike = self.found.iter().filter(|o| o.is_like(f)).count() - 1;
            let alike = match alike {
                0 => "",
                n => &format!(", and {n} more like it"),
            };
            let what = f.failing.describe(f.n);
            let _ = writeln!(text, "  {what}{place}: {}{alike}", f.ended);
        }
        if self.unrepeated > 0 {
            let _ = writeln!(
                text,
                "{} failed, but not again by themselves: not reported.",
                self.unrepeated
            );
        }
        text
    }

    /// The same as JSON, without real time.
    fn json(&self, files: &[(PathBuf, bool)]) -> String {
        let calls = |k: &OfKind| {
            let (name, n) = (k.call.name(), k.failed);
            format!("\"{name}\":{{\"calls\":{n},\"all\":{}}}", k.whole)
        };
        let calls: Vec<String> = self.kinds.iter().map(calls).collect();
        let found = |f: &Found| {
            format!(
                "{{\"call\":\"{}\",\"n\":{},\"reason\":\"{}\",\"ever\":{},\"place\":{},\"ended\":{}}}",
                f.failing.call.name(),
                f.n,
                f.failing.reason.name(),
                f.failing.lasts,
                json::string(&f.place),
                json::string(&f.ended)
            )
        };
        let found: Vec<String> = self.found.iter().map(found).collect();
        let files: Vec<String> = files
            .iter()
            .map(|(p, _)| json::string(&p.display().to_string()))
            .collect();
        format!(
            "{{\"schema\":\"purlin-schedules/1\",\"failed\":{},\"runs\":{},\"calls\":{{{}}},\"unrepeated\":{},\"failures\":[{}],\"files\":[{}]}}\n",
            !self.found.is_empty(),
            self.runs,
            calls.join(","),
            self.unrepeated,
            found.join(","),
            files.join(",")
        )
    }
}
