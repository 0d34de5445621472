//! The result of a search for people and for programs, and the replay files that it leaves.
//!
//! # Invariant
//! The result as JSON is the same for the same seed: it has no real time in it.

use crate::account::Account;
use crate::deviation::{Kind, Schedule};
use crate::operation::Point;
use crate::premises::Premises;
use crate::request::Search;
use crate::run::{Run, Stuck};
use crate::{fresh_dir, json, processes, recording, story};
use std::collections::HashSet;
use std::fmt::Write;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Number of lines of output that are shown.
const MOST_OUTPUT: usize = 40;

/// Totals of the runs so far.
#[derive(Default)]
pub(crate) struct Tried {
    pub schedules: usize,
    /// Hashes of the runs, to count distinct ones.
    pub hashes: HashSet<u64>,
    /// Nanoseconds of virtual time.
    pub took: i64,
    /// Number of schedules that failed beside others, and not by themselves.
    pub unrepeated: usize,
}

/// Says what the seed decides, and what not.
pub(crate) fn account(s: &Search, outside: &Account, had_input: bool) -> String {
    let (seed, all) = (s.seed, outside.describe());
    let mut text = match all.is_empty() {
        true => format!("Seed {seed} decides all of it.\n"),
        false => format!("Seed {seed} decides all of it but {}.\n", all.join(", ")),
    };
    if had_input {
        text.push_str("The program's standard input is empty.\n");
    }
    if outside.writes_files() && !fresh_dir::any() {
        text.push_str("A schedule may find files that another has left: --fresh-dir gives each its own folder.\n");
    }
    text
}

/// Counts the schedules that failed beside others and not by themselves.
fn unrepeated(tried: &Tried) -> String {
    match tried.unrepeated {
        0 => String::new(),
        1 => {
            "1 schedule failed, but passed when it was run again by itself: not reported.\n".into()
        }
        n => format!(
            "{n} schedules failed, but each passed when it was run again by itself: not reported.\n"
        ),
    }
}

/// Returns virtual seconds.
fn virtual_seconds(tried: &Tried) -> f64 {
    tried.took as f64 / 1e9
}

/// Describes a search in which nothing failed. `places`: the number of racing points and of all
/// points.
pub(crate) fn none_as_text(
    tried: &Tried,
    began: Instant,
    base: &Run,
    places: (usize, usize),
    account: &str,
) -> String {
    format!(
        "{} schedules ({} distinct), {:.1} s, {:.1} s of virtual time: none failed\n{} operations of the base, {} at which schedules deviate, {} of them race\n{account}{}",
        tried.schedules,
        tried.hashes.len(),
        began.elapsed().as_secs_f64(),
        virtual_seconds(tried),
        base.ops,
        places.1,
        places.0,
        unrepeated(tried)
    )
}

/// The same as JSON.
pub(crate) fn none_as_json(tried: &Tried, base: &Run, places: (usize, usize)) -> String {
    format!(
        "{{\"schema\":\"purlin-schedules/1\",\"failed\":false,\"schedules\":{},\"distinct\":{},\"virtual_seconds\":{:.3},\"operations\":{},\"racing\":{},\"unrepeated\":{},\"outside\":{}}}\n",
        tried.schedules,
        tried.hashes.len(),
        virtual_seconds(tried),
        base.ops,
        places.0,
        tried.unrepeated,
        json::list(&base.outside.describe())
    )
}

/// A schedule that fails.
pub(crate) struct Failed {
    pub schedule: Schedule,
    /// The same, with stalls no longer than they must be.
    pub margin: Schedule,
    /// Number of deviations before it was shrunk.
    pub before: usize,
    pub run: Run,
    pub premises: Premises,
    /// Seconds of processor time that its run may take.
    pub seconds: u32,
}

/// A schedule that fails, with its narrated run.
pub(crate) struct Failure {
    pub failed: Failed,
    /// The order that a sampler has chosen.
    pub order: Vec<Point>,
    pub run: Run,
    /// Whether the run exceeded its limits.
    pub endless: bool,
    /// The report of the run, without its first line.
    pub story: String,
    pub output: String,
    /// The events of its log, each a line.
    pub events: String,
}

/// Returns the path of the replay file of the failure with that ordinal.
pub(crate) fn path(s: &Search, n: usize) -> PathBuf {
    let path = s.to.clone();
    let path = path.unwrap_or_else(|| format!("purlin-schedule-{}.psch", s.seed).into());
    numbered(&path, n)
}

/// Returns the name of file with `-N` in it, for all but the first.
fn numbered(file: &Path, n: usize) -> PathBuf {
    if n == 1 {
        return file.to_path_buf();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let end = file
        .extension()
        .map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
    file.with_file_name(format!("{stem}-{n}{end}"))
}

/// Describes a search that found failures. `files`: their replay files, and whether each was
/// written.
pub(crate) fn failed_as_text(
    s: &Search,
    tried: &Tried,
    began: Instant,
    all: &[Failure],
    files: &[(PathBuf, bool)],
    had_input: bool,
) -> String {
    let seconds = began.elapsed().as_secs_f64();
    let mut text = format!(
        "{} schedules ({} distinct), {seconds:.1} s, {:.1} s of virtual time; ",
        tried.schedules,
        tried.hashes.len(),
        virtual_seconds(tried)
    );
    if s.keep_going {
        let ways = if all.len() == 1 { "way" } else { "ways" };
        let _ = writeln!(text, "failed in {} {ways}", all.len());
    }
    for (n, (f, (path, written))) in all.iter().zip(files).enumerate() {
        if s.keep_going {
            let _ = write!(text, "\n{}. ", n + 1);
        }
        text.push_str(&f.text(s, written.then_some(path), had_input));
    }
    text.push_str(&unrepeated(tried));
    text
}

/// The same as JSON.
pub(crate) fn failed_as_json(
    s: &Search,
    tried: &Tried,
    all: &[Failure],
    files: &[(PathBuf, bool)],
) -> String {
    let each: Vec<String> = all.iter().zip(files).map(|(f, p)| f.json(&p.0)).collect();
    let failures = match s.keep_going {
        true => format!("\"failures\":[{{{}}}]", each.join("},{")),
        false => each.concat(),
    };
    format!(
        "{{\"schema\":\"purlin-schedules/1\",\"failed\":true,\"schedules\":{},\"distinct\":{},\"virtual_seconds\":{:.3},\"unrepeated\":{},{failures}}}\n",
        tried.schedules,
        tried.hashes.len(),
        virtual_seconds(tried),
        tried.unrepeated
    )
}

/// Writes a file for its owner alone, since the program may have read secrets. The file is replaced
/// as a whole, or stays as it was.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return write_at(path, bytes, false);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = path.with_file_name(name);
    let done = write_at(&part, bytes, true).and_then(|()| std::fs::rename(&part, path));
    // A partial file is removed. One that was there before is not ours.
    if let Err(e) = &done
        && e.kind() != std::io::ErrorKind::AlreadyExists
    {
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// Creates a file and writes it. `new`: nothing may be there yet, not even a link.
fn write_at(path: &Path, bytes: &[u8], new: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).mode(0o600);
    let mut f = match new {
        true => options.create_new(true),
        false => options.create(true).truncate(true),
    }
    .open(path)?;
    if f.metadata()?.is_file() {
        f.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    f.write_all(bytes)
}

impl Failure {
    /// Whether something is neither decided by the seed nor recorded.
    pub fn is_open(&self) -> bool {
        self.run.outside.is_open() || recording::describe(&self.events).1.is_some()
    }

    /// Returns the events for the replay file. If the seed decides everything there are only those
    /// of OTP's own start, and none are kept.
    pub fn kept(&self) -> Option<&str> {
        let all = self.run.outside.needs_events() || self.endless;
        (all && !self.events.is_empty()).then_some(&self.events)
    }

    /// Says what was recorded, and what not.
    fn recorded(&self) -> String {
        let (mut all, cut) = recording::describe(self.kept().unwrap_or_default());
        if self.run.outside.looks_at_variables() {
            all.push("the variables of the environment that were asked for".into());
        }
        let mut text = String::new();
        if !all.is_empty() {
            let _ = writeln!(text, "Recorded, and given to a replay: {}.", all.join(", "));
        }
        let open = self.run.outside.describe_open();
        if !open.is_empty() {
            let _ = writeln!(text, "Not recorded: {}.", open.join(", "));
        }
        if let Some(why) = cut {
            let _ = writeln!(text, "The recording ends early: {why}.");
        }
        text
    }

    /// Writes the members of a JSON object.
    fn json(&self, path: &Path) -> String {
        format!(
            "\"status\":{},\"deadlock\":{},\"hang\":{},\"deviations\":{},\"before\":{},\"outside\":{},\"recorded\":{},\"file\":{},\"output\":{}",
            self.run.status,
            self.run.stuck == Stuck::Deadlock,
            self.run.stuck == Stuck::Hang,
            self.failed.schedule.len(),
            self.failed.before,
            json::list(&self.run.outside.describe()),
            json::list(&recording::describe(self.kept().unwrap_or_default()).0),
            json::string(&path.display().to_string()),
            json::string(&self.output)
        )
    }

    /// Describes the failure. `path`: its replay file, if that could be written.
    pub fn text(&self, s: &Search, path: Option<&PathBuf>, had_input: bool) -> String {
        let (run, failed) = (&self.run, &self.failed);
        let mut text = String::new();
        let ended = match run.status {
            _ if self.endless => {
                format!("did not end within {} s of processor time", failed.seconds)
            }
            n if n < 0 => format!("was ended by signal {}", -n),
            _ if run.stuck == Stuck::Deadlock => "ended in a deadlock".into(),
            _ if run.stuck == Stuck::Hang => "hangs".into(),
            n => format!("failed with status {n}"),
        };
        match failed.schedule.is_empty() {
            true => {
                let _ = writeln!(text, "the base itself {ended}");
                if let Some(path) = path {
                    let _ = writeln!(text, "Again: purlin replay {}", path.display());
                }
            }
            false => {
                let _ = writeln!(text, "{ended}");
                let again = path.map(|p| format!("Again: purlin replay {}", p.display()));
                let shrunk = match (failed.before, failed.schedule.len()) {
                    // There was nothing to shrink.
                    _ if s.sweep.is_some() => None,
                    (1, n) => Some(format!("Shrunk from 1 deviation to {n}.")),
                    (b, n) => Some(format!("Shrunk from {b} deviations to {n}.")),
                };
                let both: Vec<String> = shrunk.into_iter().chain(again).collect();
                let _ = writeln!(text, "{}", both.join(" "));
            }
        }
        text.push_str(&account(s, &run.outside, had_input));
        text.push_str(&self.recorded());
        if run.status != failed.run.status && failed.run.status >= 0 {
            text.push_str("The shrunk schedule ends differently from the one that was found.\n");
        }
        text.push('\n');
        let story = story::relevant(&self.story);
        text.push_str(&processes::introduced(
            &story,
            &processes::parse(self.story.lines()),
        ));
        text.push_str(&story::rendered(&story));
        let late = failed.margin.iter().find_map(|d| match d.kind {
            Kind::Stall(ns) => Some(ns),
            _ => None,
        });
        if let Some(ns) = late {
            let _ = writeln!(
                text,
                "\nIt fails if that process is late by {} ms.",
                (ns + 999_999) / 1_000_000
            );
        }
        if !self.output.is_empty() {
            let _ = writeln!(text, "\nIts output:");
            for l in self.output.lines().take(MOST_OUTPUT) {
                let _ = writeln!(text, "  {l}");
            }
        }
        text
    }
}
