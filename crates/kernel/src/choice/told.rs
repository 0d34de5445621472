//! What people read of a search: its result, the story of a schedule, and the file that it is written to.

use super::fork::{Replay, Search, Tried, exit, is_endless, print, say, strictly, was_given_input};
use super::given::{Given, steps_of};
use super::outside::Account;
use super::plan::Schedule;
use super::record::{self, Recording};
use super::who::{self, introduced};
use super::{Deviation, Kind, Run, Stuck, folder, report, wrote};
use crate::os::tape;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Operations as text, each a line.
pub(super) fn lines(all: &[report::Line]) -> String {
    let mut text = String::new();
    for l in all {
        let stopped = match l.stopped {
            None => String::new(),
            Some(k) => format!(" {}", k.text()),
        };
        let _ = writeln!(
            text,
            "{}\t{}\t{} {} {}\t{}\t{}\t{}\t{stopped}\t{}\t{}",
            l.path,
            l.op,
            l.touch.object,
            l.touch.key,
            u8::from(l.touch.changes),
            l.pid,
            l.call.replace(['\t', '\n'], " "),
            l.place.as_deref().unwrap_or("").replace(['\t', '\n'], " "),
            l.at,
            if l.happens { "happens" } else { "" },
        );
    }
    text
}

/// What the seed decides, and what not.
pub(super) fn account(s: &Search, outside: &Account) -> String {
    let (seed, all) = (s.seed, outside.told());
    let mut text = match all.is_empty() {
        true => format!("Seed {seed} decides all of it.\n"),
        false => format!("Seed {seed} decides all of it but {}.\n", all.join(", ")),
    };
    if was_given_input() {
        text.push_str("Standard input is empty for the program, whatever the command is given.\n");
    }
    if outside.writes_files() && !folder::any() {
        text.push_str("Schedules may meet files that others have left: --fresh-dir gives each a folder as new.\n");
    }
    text
}

/// Schedules that failed, and did not when each was run by itself: they are no failures of the program.
pub(super) fn alone(tried: &Tried) -> String {
    match tried.alone {
        0 => String::new(),
        1 => "1 schedule failed, and did not when it was run again by itself: not told.\n".into(),
        n => format!(
            "{n} schedules failed, and did not when each was run again by itself: not told.\n"
        ),
    }
}

/// A schedule that fails.
pub(super) struct Failed {
    pub schedule: Schedule,
    /// The same, with stalls no longer than they must be.
    pub margin: Schedule,
    /// Deviations before it was cut down.
    pub before: usize,
    pub run: Run,
    /// What its run was given, and after how many seconds it is ended.
    pub given: Given,
    pub seconds: u32,
}

/// The operations that a failure depends on: those of processes on what they share, from a little before the first deviation.
fn relevant(story: &str) -> Vec<Vec<&str>> {
    let all: Vec<Vec<&str>> = story
        .lines()
        .map(|l| l.split('\t').collect::<Vec<_>>())
        .filter(|f| f.len() >= 7)
        .collect();
    // What happens to a process of the program is told as what it does itself.
    let is_own = |f: &[&str]| !f[5].is_empty() || f.get(8).is_some_and(|h| !h.is_empty());
    let object = |f: &[&str]| f[2].split(' ').next().unwrap_or("0").to_owned();
    let stopped: Vec<usize> = (0..all.len()).filter(|&i| !all[i][6].is_empty()).collect();
    let Some(&first) = stopped.first() else {
        // The base has failed: what the program did last tells more than what its runner did behind it.
        // Of what it did again and again only the last time.
        let mut seen = HashSet::new();
        let own = all.iter().rev().filter(|f| is_own(f));
        let told = own.filter(|f| seen.insert((f[3], f[4], f[5])));
        let mut last: Vec<Vec<&str>> = told.take(30).cloned().collect();
        last.reverse();
        return last;
    };
    let wanted: HashSet<String> = stopped
        .iter()
        .map(|&i| object(&all[i]))
        .filter(|o| o != "0")
        .collect();
    let paths: HashSet<&str> = stopped.iter().map(|&i| all[i][0]).collect();
    let from = first.saturating_sub(12);
    let mut v: Vec<Vec<&str>> = Vec::new();
    for f in all.iter().skip(from) {
        let shared = wanted.contains(&object(f));
        let own = is_own(f);
        if !f[6].is_empty() || shared || (own && (paths.contains(f[0]) || v.len() < 40)) {
            v.push(f.clone());
        }
        if v.len() > 60 {
            break;
        }
    }
    v
}

pub(super) fn json_text(s: &str) -> String {
    let mut t = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => t.push_str("\\\""),
            '\\' => t.push_str("\\\\"),
            c if (c as u32) < 0x20 => {
                let _ = write!(t, "\\u{:04x}", c as u32);
            }
            c => t.push(c),
        }
    }
    t.push('"');
    t
}

pub(super) fn json_list(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|t| json_text(t)).collect();
    format!("[{}]", all.join(","))
}

/// A schedule that fails, as it is told: its run, the operations of that, its output.
pub(super) struct Failure {
    pub failed: Failed,
    /// The operations whose order a sampler has chosen.
    pub order: Vec<(u64, u32)>,
    pub run: Run,
    pub story: String,
    pub output: String,
    /// What came from outside, as lines.
    pub events: String,
}

/// `file` with `-N` behind its name, for all but the first.
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

/// Writes the schedules to files and tells of them; ends with status 1, or 71 where one could not be written.
pub(super) fn tell(s: &Search, tried: &Tried, began: Instant, all: Vec<Failure>, decided: bool) {
    let path =
        s.to.clone()
            .unwrap_or_else(|| PathBuf::from(format!("purlin-schedule-{}.psch", s.seed)));
    let paths: Vec<PathBuf> = (1..=all.len()).map(|n| numbered(&path, n)).collect();
    let mut written = Vec::new();
    for (f, path) in all.iter().zip(&paths) {
        let done = write_private(path, f.file(s).as_bytes());
        written.push(done.is_ok());
        if let Err(e) = done {
            say(&format!("purlin: cannot write {}: {e}\n", path.display()));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let virtual_seconds = tried.took as f64 / 1e9;
    let (schedules, distinct) = (tried.schedules, tried.hashes.len());
    let mut text = String::new();
    if s.json {
        let _ = write!(
            text,
            "{{\"failed\":true,\"schedules\":{schedules},\"distinct\":{distinct},\"virtual_seconds\":{virtual_seconds:.3},\"unrepeated\":{},",
            tried.alone
        );
        let each: Vec<String> = all.iter().zip(&paths).map(|(f, p)| f.json(p)).collect();
        match s.keep_going {
            true => {
                let _ = writeln!(text, "\"failures\":[{{{}}}]}}", each.join("},{"));
            }
            false => {
                let _ = writeln!(text, "{}}}", each.concat());
            }
        }
    } else {
        let _ = write!(
            text,
            "{schedules} schedules ({distinct} distinct), {seconds:.1} s, {virtual_seconds:.1} s of virtual time; ",
        );
        if s.keep_going {
            let ways = if all.len() == 1 { "way" } else { "ways" };
            let _ = writeln!(text, "failed in {} {ways}", all.len());
        }
        for (n, (f, path)) in all.iter().zip(&paths).enumerate() {
            if s.keep_going {
                let _ = write!(text, "\n{}. ", n + 1);
            }
            text.push_str(&f.text(s, written[n].then_some(path)));
        }
    }
    if !s.json {
        text.push_str(&alone(tried));
    }
    print(&text);
    let open = !decided || tried.alone > 0 || all.iter().any(Failure::is_open);
    let status = if written.contains(&false) { 71 } else { 1 };
    exit(strictly(s, status, open))
}

/// Writes a file that is for its owner alone: it may have secrets that the program has read. It is there as a whole, or as it was.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return write_at(path, bytes, false);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = path.with_file_name(name);
    let done = write_at(&part, bytes, true).and_then(|()| std::fs::rename(&part, path));
    // What is left of it is no file of a schedule; what was there before is not ours.
    if let Err(e) = &done
        && e.kind() != std::io::ErrorKind::AlreadyExists
    {
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// Writes to a file, which is made. `own`: nothing may be there yet, not even a link that another has laid.
fn write_at(path: &Path, bytes: &[u8], own: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).mode(0o600);
    let mut f = match own {
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
    /// Whether there is anything that is neither decided by the seed nor recorded.
    fn is_open(&self) -> bool {
        self.run.outside.is_open() || record::told(&self.events).1.is_some()
    }
    /// The events that the file has: where the seed decides all there is nothing but what OTP itself asks for when it starts.
    fn kept(&self) -> Option<&str> {
        let all = self.run.outside.needs_events() || super::fork::is_endless(self.run.status);
        (all && !self.events.is_empty()).then_some(&self.events)
    }
    /// What was recorded, and what not, as lines.
    fn recorded(&self) -> String {
        let (mut all, cut) = record::told(self.kept().unwrap_or_default());
        if self.run.outside.looks_at_variables() {
            all.push("the variables of the environment that were asked for".into());
        }
        let mut text = String::new();
        if !all.is_empty() {
            let _ = writeln!(text, "Recorded, and given to a replay: {}.", all.join(", "));
        }
        let open = self.run.outside.told_open();
        if !open.is_empty() {
            let _ = writeln!(text, "Not recorded: {}.", open.join(", "));
        }
        if let Some(why) = cut {
            let _ = writeln!(text, "From some place on nothing is recorded: {why}.");
        }
        text
    }
    /// The file of the schedule.
    fn file(&self, s: &Search) -> String {
        let (run, failed) = (&self.run, &self.failed);
        let head = if self.kept().is_some() {
            HEAD
        } else {
            OLD_HEAD
        };
        let mut file = format!("{head}\n");
        let _ = writeln!(file, "release {}", s.release);
        let _ = writeln!(file, "started {}", super::started());
        let _ = writeln!(file, "status {}", run.status);
        let _ = writeln!(file, "hash {}", run.own_hash);
        file.push_str(&failed.given.text());
        if let Some(name) = folder::name() {
            let _ = writeln!(file, "folder {}", json_text(&name.to_string_lossy()));
        }
        for a in &s.command {
            let _ = writeln!(file, "argument {}", json_text(a));
        }
        for d in &failed.schedule {
            let _ = writeln!(file, "deviation {}", deviation_text(d));
        }
        let story = relevant(&self.story);
        let pids: HashSet<&str> = story.iter().map(|l| l[3]).collect();
        let of_story = |l: &&str| {
            l.split_once('\t')
                .is_some_and(|(k, _)| pids.contains(&k[4..]))
        };
        for l in self
            .story
            .lines()
            .filter(|l| l.starts_with("who "))
            .filter(of_story)
        {
            let _ = writeln!(file, "{l}");
        }
        for l in &story {
            let _ = writeln!(file, "line {}", l.join("\t"));
        }
        if let Some(wrote) = wrote::text(&self.output) {
            let _ = writeln!(file, "wrote{wrote}");
        }
        let kept = ["paths", "steps", "variable"];
        let did = |l: &&str| kept.iter().any(|k| l.starts_with(k));
        for l in self.story.lines().filter(did) {
            let _ = writeln!(file, "{l}");
        }
        if let Some(events) = self.kept() {
            file.push_str(&record::lines(events));
        }
        let _ = writeln!(file, "sum {}", sum(&file));
        file
    }
    /// The members of an object of JSON.
    fn json(&self, path: &Path) -> String {
        format!(
            "\"status\":{},\"deadlock\":{},\"hang\":{},\"deviations\":{},\"before\":{},\"outside\":{},\"recorded\":{},\"file\":{},\"output\":{}",
            self.run.status,
            self.run.stuck == Stuck::Deadlock,
            self.run.stuck == Stuck::Hang,
            self.failed.schedule.len(),
            self.failed.before,
            json_list(&self.run.outside.told()),
            json_list(&record::told(self.kept().unwrap_or_default()).0),
            json_text(&path.display().to_string()),
            json_text(&self.output)
        )
    }
    /// As text. `path`: its file, if that could be written.
    fn text(&self, s: &Search, path: Option<&PathBuf>) -> String {
        let (run, failed) = (&self.run, &self.failed);
        let mut text = String::new();
        let ended = match run.status {
            n if is_endless(n) => {
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
                let _ = writeln!(
                    text,
                    "Shrunk from {} deviation{} to {}.{}",
                    failed.before,
                    if failed.before == 1 { "" } else { "s" },
                    failed.schedule.len(),
                    path.map_or(String::new(), |p| format!(
                        " Again: purlin replay {}",
                        p.display()
                    ))
                );
            }
        }
        text.push_str(&account(s, &run.outside));
        text.push_str(&self.recorded());
        if run.status != failed.run.status && failed.run.status >= 0 {
            text.push_str(
                "The schedule that was cut down ends otherwise than the one that was found.\n",
            );
        }
        text.push('\n');
        let story = relevant(&self.story);
        text.push_str(&introduced(&story, &who::of(self.story.lines())));
        text.push_str(&told(&story));
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
            for l in self.output.lines().take(40) {
                let _ = writeln!(text, "  {l}");
            }
        }
        text
    }
}

/// Microseconds of virtual time that are told between two operations.
const PASSES: i64 = 900;

/// The story of a schedule as text: lines of fields that are separated by tabs, as [`lines`] gives them.
pub fn told<S: AsRef<str>>(all: &[Vec<S>]) -> String {
    let mut text = String::new();
    let mut last = String::new();
    let mut before: Option<i64> = None;
    for f in all {
        let get = |i: usize| f.get(i).map_or("", |s| s.as_ref());
        let (pid, call, place, stop) = (get(3), get(4), get(5), get(6).trim());
        let stopped = match Kind::of(stop) {
            None => None,
            Some(Kind::Last) => Some(format!("stops before {call}, until nobody else can run")),
            Some(Kind::Back) => Some(format!(
                "does {call}, which is held back until another has sent there"
            )),
            Some(Kind::Stall(ns)) => Some(format!(
                "is late by {:.1} ms, before {call}",
                ns as f64 / 1e6
            )),
            Some(Kind::After(path, op)) => {
                let (path, op) = (path.to_string(), op.to_string());
                let does = |g: &&Vec<S>| {
                    let g = |i: usize| g.get(i).map_or("", |s| s.as_ref());
                    g(0) == path && g(1) == op && g(6).trim().is_empty()
                };
                let until = all.iter().find(does).map_or_else(
                    || "another has gone on".to_owned(),
                    |g| format!("{} has done {}", g[3].as_ref(), g[4].as_ref()),
                );
                Some(format!("stops before {call}, until {until}"))
            }
            Some(Kind::Sample(s, _)) => Some(format!(
                "comes to {call}; from here on turns are drawn ({})",
                s.name()
            )),
        };
        if let Some(stopped) = stopped {
            let _ = writeln!(text, "  {:-<12} {pid} {stopped}", "");
            last.clear();
            continue;
        }
        // Virtual time that passes by itself is not told.
        let at = get(7).parse::<i64>().ok();
        if let (Some(at), Some(before)) = (at, before)
            && at - before >= PASSES
        {
            let ms = (at - before) as f64 / 1000.0;
            let _ = writeln!(text, "  {:.<12} {ms:.1} ms later", "");
        }
        before = at.or(before);
        let shown = if pid == last { "" } else { pid };
        let line = format!("  {shown:<12} {call:<60}  {place}");
        let _ = writeln!(text, "{}", line.trim_end());
        last = pid.to_owned();
    }
    text
}

/// A file that was written by [`search`]: the replay, the moment of its start, the release, the command, and its story.
pub struct Recorded {
    pub replay: Replay,
    pub started: i64,
    pub release: u32,
    pub command: Vec<String>,
    /// Its run began in that folder as new.
    pub folder: Option<PathBuf>,
    pub story: Vec<Vec<String>>,
    /// What is known of its processes.
    pub who: HashMap<String, String>,
}

/// The first line of a file of a schedule.
const HEAD: &str = "purlin schedule 3";
/// The same, of files that have nothing of what came from outside.
const OLD_HEAD: &str = "purlin schedule 2";

/// A sum of a text: a file that was cut off or changed is told from one that is whole.
fn sum(text: &str) -> u64 {
    tape::sum(text.as_bytes())
}

/// A deviation as a file has it.
pub fn deviation_text(d: &Deviation) -> String {
    format!("{} {} {}", d.path, d.op, d.kind.text())
}

/// The deviation of such a text.
pub fn deviation(text: &str) -> Option<Deviation> {
    let mut w = text.splitn(3, ' ');
    let (path, op) = (w.next()?.parse().ok()?, w.next()?.parse().ok()?);
    let kind = Kind::of(w.next()?)?;
    Some(Deviation { path, op, kind })
}

/// Reads a file of a schedule; None: it is none.
pub fn read(text: &str) -> Option<Recorded> {
    let (text, last) = text.trim_end_matches('\n').rsplit_once('\n')?;
    if last.strip_prefix("sum ")?.parse() != Ok(sum(&format!("{text}\n"))) {
        return None;
    }
    let mut lines = text.lines();
    let outside = match lines.next()? {
        HEAD => Some(Recording::default()),
        OLD_HEAD => None,
        _ => return None,
    };
    let mut paths = "";
    let mut r = Recorded {
        replay: Replay {
            schedule: Vec::new(),
            status: 0,
            hash: 0,
            given: Given::default(),
            did: Vec::new(),
            steps: false,
            outside,
            variables: Vec::new(),
            wrote: Vec::new(),
        },
        started: 0,
        release: 0,
        command: Vec::new(),
        folder: None,
        story: Vec::new(),
        who: HashMap::new(),
    };
    for l in lines {
        let (key, rest) = l.split_once(' ').unwrap_or((l, ""));
        match key {
            // Files of before.
            "seconds" => {}
            "release" => r.release = rest.parse().ok()?,
            "started" => r.started = rest.parse().ok()?,
            "status" => r.replay.status = rest.parse().ok()?,
            "hash" => r.replay.hash = rest.parse().ok()?,
            "folder" => r.folder = Some(PathBuf::from(from_json(rest)?)),
            "argument" => r.command.push(from_json(rest)?),
            "deviation" => r.replay.schedule.push(deviation(rest)?),
            "line" => r.story.push(rest.split('\t').map(str::to_owned).collect()),
            "who" => {
                let (pid, text) = rest.split_once('\t')?;
                r.who.insert(pid.to_owned(), text.to_owned());
            }
            "variable" => r.replay.variables.push(record::variable(rest)?),
            "wrote" => r.replay.wrote = wrote::of(rest)?,
            "paths" => paths = rest,
            "steps" => r.replay.did = steps_of(paths, rest)?,
            "atoms" | "path" | "outside" => r.replay.outside.as_mut()?.takes(key, rest)?,
            _ => r.replay.given.takes(key, rest)?,
        }
    }
    Some(r)
}

fn from_json(s: &str) -> Option<String> {
    let s = s.strip_prefix('"')?.strip_suffix('"')?;
    let mut t = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            t.push(c);
            continue;
        }
        match chars.next()? {
            'u' => {
                let hex: String = chars.by_ref().take(4).collect();
                t.push(char::from_u32(u32::from_str_radix(&hex, 16).ok()?)?);
            }
            c => t.push(c),
        }
    }
    Some(t)
}

#[cfg(test)]
mod tests {
    use super::super::Sampling;
    use super::*;

    #[test]
    fn texts_go_there_and_back() {
        for s in ["", "a b", "\"\\\n\t", "ä\u{1}"] {
            assert_eq!(from_json(&json_text(s)).as_deref(), Some(s));
        }
        for k in [
            Kind::Last,
            Kind::Back,
            Kind::Stall(5),
            Kind::After(7, 8),
            Kind::Sample(Sampling::Pct(4), 9),
            Kind::Sample(Sampling::Walk, 1),
        ] {
            assert_eq!(Kind::of(&k.text()), Some(k));
        }
    }
}
