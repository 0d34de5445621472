//! The sweep of system calls: for each N, the Nth call of a kind fails, once or from there on,
//! until a run has no Nth call. SQLite is tested in this way (sqlite.org/testing.html, section 3).
//!
//! # Invariants
//! * Each run makes the base's calls up to the one that fails.
//! * A reported failure has failed in two runs, of which one was by itself.

use crate::Explorer;
use crate::deviation::{Deviation, Kind, Schedule};
use crate::failing::{Call, Failing, Reason};
use crate::report::{self, Failed, Failure, Tried};
use crate::request::Search;
use crate::run::{Outcome, Run, Stuck};
use crate::search::{Context, MOST_FAILURES};
use crate::{json, recording};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Number of runs that are tried at a time.
const BATCH: usize = 32;

/// How long calls fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    Once,
    /// From the Nth on.
    Ever,
    Both,
}

impl Span {
    /// Returns the span of that name on the command line.
    pub fn named(name: &str) -> Option<Span> {
        Some(match name {
            "once" => Span::Once,
            "ever" => Span::Ever,
            "both" => Span::Both,
            _ => return None,
        })
    }

    fn lasts(self) -> &'static [bool] {
        match self {
            Span::Once => &[false],
            Span::Ever => &[true],
            Span::Both => &[false, true],
        }
    }
}

/// The system calls that a sweep lets fail.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub calls: Vec<Call>,
    pub span: Span,
    /// Exit statuses other than 0 with which a run may end.
    pub expected: Vec<i32>,
}

impl Sweep {
    fn passes(&self, r: &Run) -> bool {
        r.stuck == Stuck::No && (r.status == 0 || self.expected.contains(&r.status))
    }

    /// Returns the ways in which the Nth call of a kind may fail.
    fn ways(&self, call: Call) -> Vec<Failing> {
        let mut all = Vec::new();
        for &lasts in self.span.lasts() {
            for &reason in call.reasons() {
                // A file of which half is read at a time is read in the end.
                if !(lasts && reason == Reason::Short) {
                    all.push(Failing {
                        call,
                        reason,
                        lasts,
                    });
                }
            }
        }
        all
    }
}

/// A system call of the base, by its kind, with the place of the program's code.
type Made = (Call, String);

/// Returns the system calls in the report of a run of the base.
pub(crate) fn calls(report: &str) -> Vec<Made> {
    let call = |l: &str| {
        let (name, place) = l.strip_prefix("call ")?.split_once('\t')?;
        Some((Call::named(name)?, place.to_owned()))
    };
    report.lines().filter_map(call).collect()
}

/// Writes the system calls of the base for its report.
pub(crate) fn calls_text(all: &[Made]) -> String {
    let line = |(call, place): &Made| format!("call {}\t{place}\n", call.name());
    all.iter().map(line).collect()
}

/// A run that failed.
struct Found {
    failing: Failing,
    n: u32,
    place: String,
    ended: String,
}

/// The results of a sweep.
#[derive(Default)]
struct Swept {
    /// Each kind with the number of its calls, and whether one more never comes.
    calls: Vec<(Call, u32, bool)>,
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
        let mut swept = Swept::default();
        for &call in &w.calls {
            let places: Vec<&str> = made.iter().filter(|m| m.0 == call).map(|m| &*m.1).collect();
            let (n, over) = self.sweep_kind(s, w, call, &places, c, &mut swept)?;
            swept.calls.push((call, n, over));
            if !swept.failures.is_empty() && !s.keep_going {
                break;
            }
        }
        tried.schedules += swept.runs;
        tried.unrepeated += swept.unrepeated;
        Some(self.report_sweep(s, &swept, began))
    }

    /// Sweeps calls of one kind. Returns the number of calls that failed, and whether one more
    /// never came.
    fn sweep_kind(
        &mut self,
        s: &Search,
        w: &Sweep,
        call: Call,
        places: &[&str],
        c: &Context,
        swept: &mut Swept,
    ) -> Option<(u32, bool)> {
        let ways = w.ways(call);
        let mut n = 1;
        loop {
            // The ordinals of a batch: the base has most of them.
            let left = (places.len() as u32 + 2).saturating_sub(n).max(1);
            let count = left.min((BATCH / ways.len()).max(1) as u32);
            let batch: Vec<(u32, Failing)> = (n..n + count)
                .flat_map(|n| ways.iter().map(move |f| (n, *f)))
                .collect();
            let schedules: Vec<Schedule> = batch
                .iter()
                .map(|(n, f)| vec![Deviation::at(call.point(*n), Kind::Fail(*f))])
                .collect();
            let outcomes = self.try_all(&schedules, &c.ground)?;
            for (((n, f), schedule), o) in batch.into_iter().zip(schedules).zip(outcomes) {
                let Some(o) = o else {
                    return Some((n - 1, false));
                };
                let came = !matches!(&o, Outcome::Ended(r) if r.taken == 0);
                swept.runs += 1;
                self.branches
                    .runs
                    .system
                    .progress(swept.runs, !swept.failures.is_empty());
                if !matches!(&o, Outcome::Ended(r) if w.passes(r)) {
                    let place = places.get(n as usize - 1).copied().unwrap_or_default();
                    let found = Found {
                        failing: f,
                        n,
                        place: place.to_owned(),
                        ended: ended(&o),
                    };
                    self.confirm_failing(found, schedule, o, w, c, swept)?;
                }
                if !came {
                    return Some((n - 1, true));
                }
                let enough = !swept.failures.is_empty() && !s.keep_going;
                if enough || swept.runs >= s.schedules || self.branches.runs.is_over() {
                    return Some((n, false));
                }
            }
            n += count;
        }
    }

    /// Runs a schedule that failed again by itself. None: this process is that run.
    fn confirm_failing(
        &mut self,
        found: Found,
        schedule: Schedule,
        o: Outcome,
        w: &Sweep,
        c: &Context,
        swept: &mut Swept,
    ) -> Option<()> {
        let same = |f: &Found| {
            (f.failing.call, &f.place, &f.ended) == (found.failing.call, &found.place, &found.ended)
        };
        if swept.found.iter().any(same) || swept.failures.len() >= MOST_FAILURES {
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
        match w.passes(&f.run) {
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
        let mut files: Vec<(PathBuf, bool)> = Vec::new();
        for (i, f) in swept.failures.iter().enumerate() {
            let path = report::path(s, i + 1);
            let recorded = f.kept().map(|events| {
                let runs = &self.branches.runs;
                let path = runs.system.program_path();
                recording::text(&runs.system.prepared_atoms(), path.as_deref(), events)
            });
            let text = f.file(s, self.started, recorded.as_deref());
            let done = report::write_private(&path, text.as_bytes());
            if let Err(e) = &done {
                self.say(&format!("purlin: cannot write {}: {e}\n", path.display()));
            }
            files.push((path, done.is_ok()));
        }
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

    /// Has runs count system calls if one of them fails in that schedule.
    pub(crate) fn set_sweeps_of(&mut self, s: &Schedule) {
        let fails = |d: &Deviation| matches!(d.kind, Kind::Fail(_));
        if s.iter().any(fails) {
            self.set_sweeps();
        }
    }
}

impl Swept {
    /// Describes the calls: how many there were, and whether all of them were tried.
    fn counts(&self) -> String {
        let count = |(call, n, over): &(Call, u32, bool)| match (*n, *over) {
            (0, true) => format!("{}: never called", call.name()),
            (n, true) => format!("{}: {n}, and one more never comes", call.name()),
            (n, false) => format!("{}: {n} so far", call.name()),
        };
        let all: Vec<String> = self.calls.iter().map(count).collect();
        all.join("; ")
    }

    fn text(
        &self,
        s: &Search,
        began: Instant,
        files: &[(PathBuf, bool)],
        had_input: bool,
    ) -> String {
        let seconds = began.elapsed().as_secs_f64();
        let mut text = format!(
            "Calls that failed: {}.\n{} runs, {seconds:.1} s; {}\n",
            self.counts(),
            self.runs,
            match self.found.len() {
                0 => "none failed".to_owned(),
                1 => "1 failed:".to_owned(),
                n => format!("{n} failed:"),
            }
        );
        for f in &self.found {
            let place = match f.place.as_str() {
                "" => "",
                p => &format!(" ({p})"),
            };
            let what = f.failing.describe(f.n);
            let _ = writeln!(text, "  {what}{place}: {}", f.ended);
        }
        if self.unrepeated > 0 {
            let _ = writeln!(
                text,
                "{} failed, but not again by themselves: not reported.",
                self.unrepeated
            );
        }
        for (f, (path, written)) in self.failures.iter().zip(files) {
            text.push('\n');
            text.push_str(&f.text(s, written.then_some(path), had_input));
        }
        text
    }

    /// The same as JSON, without real time.
    fn json(&self, files: &[(PathBuf, bool)]) -> String {
        let calls: Vec<String> = self
            .calls
            .iter()
            .map(|(call, n, over)| format!("\"{}\":{{\"calls\":{n},\"all\":{over}}}", call.name()))
            .collect();
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
        let files: BTreeSet<String> = files
            .iter()
            .map(|(p, _)| json::string(&p.display().to_string()))
            .collect();
        let files: Vec<String> = files.into_iter().collect();
        format!(
            "{{\"failed\":{},\"runs\":{},\"calls\":{{{}}},\"unrepeated\":{},\"failures\":[{}],\"files\":[{}]}}\n",
            !self.found.is_empty(),
            self.runs,
            calls.join(","),
            self.unrepeated,
            found.join(","),
            files.join(",")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_a_round_trip() {
        let all = vec![
            (Call::Write, "a.erl:3  a:b/0".to_owned()),
            (Call::Sync, String::new()),
        ];
        assert_eq!(calls(&format!("ended 0\n{}", calls_text(&all))), all);
    }

    #[test]
    fn half_of_the_bytes_is_no_lasting_failure() {
        let sweep = |span| Sweep {
            calls: vec![Call::Write],
            span,
            expected: vec![7],
        };
        assert_eq!(sweep(Span::Both).ways(Call::Write).len(), 5);
        let ever = sweep(Span::Ever).ways(Call::Write);
        assert!(ever.iter().all(|f| f.lasts && f.reason != Reason::Short));
        let run = |status, stuck| Run {
            status,
            stuck,
            ..Run::default()
        };
        let w = sweep(Span::Once);
        assert!(w.passes(&run(0, Stuck::No)) && w.passes(&run(7, Stuck::No)));
        assert!(!w.passes(&run(1, Stuck::No)) && !w.passes(&run(0, Stuck::Hang)));
    }
}
