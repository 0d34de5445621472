//! Runs of the program as forks of one emulator, and what comes of them.
//!
//! A run writes its result to a file in memory that its parent has made, and its output to another.
//!
//! # Invariants
//! * A run that is to end always ends: by itself, by its limits, or with its parent.
//! * A run that the end of the search's time has cut off has come to nothing: it neither passes nor
//!   fails.

use crate::account::Account;
use crate::fingerprint::failures;
use crate::kernel::{Forked, Limits, System};
use purlin_messages as messages;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The exit status.
    pub status: i32,
    pub stuck: Stuck,
    /// A hash of all operations in order. Two runs are the same if these are.
    pub hash: u64,
    /// The same, of the program's own operations.
    pub own_hash: u64,
    /// Number of operations.
    pub ops: u64,
    /// Nanoseconds of virtual time.
    pub took: i64,
    /// Number of deviations that were taken.
    pub taken: u32,
    /// Operations of the program that no seed decides, if the run counted them.
    pub outside: Account,
    /// The longest virtual time without progress.
    pub quiet: i64,
    /// Fingerprints of its failures.
    pub failures: BTreeSet<u64>,
}

/// Whether a run ended by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stuck {
    /// It did.
    #[default]
    No,
    /// No process could run, and nothing was awaited.
    Deadlock,
    /// It made no progress.
    Hang,
}

impl Stuck {
    fn parse(text: &str) -> Option<Stuck> {
        Some(match text {
            "0" => Stuck::No,
            "1" => Stuck::Deadlock,
            "2" => Stuck::Hang,
            _ => return None,
        })
    }
}

impl Run {
    /// Whether nothing failed.
    pub fn passes(&self) -> bool {
        self.status == 0 && self.stuck == Stuck::No
    }
}

/// Result of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ended(Run),
    /// It ended by a signal, or without a report: the status.
    Died(i32),
}

impl Outcome {
    pub fn fails(&self) -> bool {
        !matches!(self, Outcome::Ended(r) if r.passes())
    }

    /// Writes it as a line.
    pub fn text(&self) -> String {
        match self {
            Outcome::Ended(r) => {
                let failures: Vec<String> = r.failures.iter().map(u64::to_string).collect();
                format!(
                    "ended {} {} {} {} {} {} {} {} {} {}",
                    r.status,
                    r.stuck as u8,
                    r.hash,
                    r.own_hash,
                    r.ops,
                    r.took,
                    r.taken,
                    r.quiet,
                    r.outside.text(),
                    failures.join(",")
                )
            }
            Outcome::Died(s) => format!("died {s}"),
        }
    }

    /// Reads a line written by [`Outcome::text`].
    pub fn parse(text: &str) -> Option<Outcome> {
        let mut w = text.split(' ');
        match w.next()? {
            "ended" => Some(Outcome::Ended(Run {
                status: w.next()?.parse().ok()?,
                stuck: Stuck::parse(w.next()?)?,
                hash: w.next()?.parse().ok()?,
                own_hash: w.next()?.parse().ok()?,
                ops: w.next()?.parse().ok()?,
                took: w.next()?.parse().ok()?,
                taken: w.next()?.parse().ok()?,
                quiet: w.next()?.parse().ok()?,
                outside: Account::parse(w.next()?)?,
                failures: w
                    .next()?
                    .split(',')
                    .filter(|w| !w.is_empty())
                    .map(|w| w.parse().ok())
                    .collect::<Option<_>>()?,
            })),
            "died" => Some(Outcome::Died(w.next()?.parse().ok()?)),
            _ => None,
        }
    }

    /// Returns the outcome in the first line of a report.
    pub fn of_report(report: &str) -> Option<Outcome> {
        report.lines().next().and_then(Outcome::parse)
    }
}

/// A run under way.
pub(crate) struct Child {
    pid: i32,
    report: File,
    output: File,
}

/// A run that has ended.
pub(crate) struct Ended {
    /// The exit status, or minus the signal that ended it.
    pub status: i32,
    pub report: String,
    pub output: String,
}

/// Seconds of real time for each second of processor time that a run may have, so that other work
/// of the machine ends no run.
const LOADED: u32 = 10;

/// Returns the limits of a run with that many seconds of processor time, or without any if that is
/// 0.
pub(crate) fn seconds(processor: u32) -> Limits {
    let real = processor.saturating_mul(LOADED);
    Limits {
        processor,
        real: (real > 0).then(|| Duration::from_secs(real.into())),
    }
}

fn text_of(mut f: &File) -> String {
    let mut v = Vec::new();
    let _ = f.seek(SeekFrom::Start(0));
    let _ = f.read_to_end(&mut v);
    String::from_utf8_lossy(&v).into_owned()
}

/// Forks runs.
pub(crate) struct Runs {
    pub system: &'static dyn System,
    /// The end of the search's time, which holds for its runs, too.
    pub deadline: Option<Instant>,
}

impl Runs {
    /// Forks a run. In the child: the file for its report.
    pub fn fork(&self, limits: Limits) -> Result<Child, File> {
        let system = self.system;
        let file = || {
            let f = system.memory_file();
            f.unwrap_or_else(|e| self.cannot("make a file in memory", &e))
        };
        let (report, output) = (file(), file());
        let real = [limits.real, self.time_left()];
        let limits = Limits {
            real: real.into_iter().flatten().min(),
            ..limits
        };
        match system.fork(limits, &output) {
            Err(e) => self.cannot("fork", &e),
            Ok(Forked::Child) => Err(report),
            Ok(Forked::Parent(pid)) => Ok(Child {
                pid,
                report,
                output,
            }),
        }
    }

    /// Ends this process, since the system refuses something.
    pub fn cannot(&self, what: &str, e: &std::io::Error) -> ! {
        self.report_refusal(what, e);
        self.system.exit(71)
    }

    /// Reports that the system refuses something.
    pub fn report_refusal(&self, what: &str, e: &std::io::Error) {
        let text = format!("schedules: cannot {what}: {e}");
        self.system
            .say(&(messages::SEARCH_REFUSED.line(text) + "\n"));
    }

    /// Returns the time that is left to the search, if it has an end.
    fn time_left(&self) -> Option<Duration> {
        let ends = self.deadline;
        ends.map(|e| e.saturating_duration_since(Instant::now()))
    }

    /// Whether the time of the search is over: nothing more is begun.
    pub fn is_over(&self) -> bool {
        self.time_left().is_some_and(|l| l.is_zero())
    }

    /// Waits for the end of a run: what has come of it. None: the time of the search was over
    /// before.
    pub fn outcome(&self, c: Child) -> Option<Outcome> {
        let ended = c.wait(self.system);
        let mut o = match Outcome::of_report(&ended.report) {
            Some(o) => o,
            None if self.is_over() && self.system.is_timeout(ended.status) => return None,
            None => Outcome::Died(ended.status),
        };
        if o.fails()
            && let Outcome::Ended(r) = &mut o
        {
            r.failures = failures(r.status, r.stuck != Stuck::No, &ended.output);
        }
        Some(o)
    }
}

impl Child {
    /// Waits for its end.
    pub fn wait(self, system: &dyn System) -> Ended {
        let status = system.wait(self.pid);
        Ended {
            status,
            report: text_of(&self.report),
            output: text_of(&self.output),
        }
    }

    /// Waits for its end, and shows its output as it comes.
    pub fn wait_showing(self, system: &dyn System) -> Ended {
        let mut at = 0;
        let mut all = Vec::new();
        loop {
            let status = system.try_wait(self.pid);
            let mut some = [0; 1 << 16];
            // The position in the file is the run's.
            while let Ok(n @ 1..) = self.output.read_at(&mut some, at) {
                at += n as u64;
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(&some[..n]).and_then(|()| out.flush());
                all.extend_from_slice(&some[..n]);
            }
            if let Some(status) = status {
                return Ended {
                    status,
                    report: text_of(&self.report),
                    output: String::from_utf8_lossy(&all).into_owned(),
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_survive_a_round_trip() {
        let o = Outcome::Ended(Run {
            status: 2,
            stuck: Stuck::Hang,
            hash: 77,
            own_hash: 78,
            ops: 5,
            took: -1,
            taken: 3,
            outside: Account::parse("2:5:").expect("an account"),
            quiet: 9,
            failures: BTreeSet::from([8, 7]),
        });
        assert_eq!(Outcome::parse(&o.text()).as_ref(), Some(&o));
        let died = Outcome::Died(-9);
        assert_eq!(Outcome::parse(&died.text()), Some(died));
        assert_eq!(Outcome::parse("ended 1"), None);
    }
}
