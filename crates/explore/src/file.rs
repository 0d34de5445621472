//! Replay files: a failing schedule with everything that a replay needs, as lines of text.
//!
//! The first line has the version of the format, the second the build of Purlin that wrote the
//! file, the last a checksum of the others. The others have a key and a value each.
//!
//! # Invariants
//! * A file of another format is refused: nothing in it is guessed at.
//! * Nothing in a file depends on tables of the build: natives are written by name.
//! * A damaged file, or one of somebody else, makes nothing panic.

use crate::deviation::{Deviation, Schedule};
use crate::premises::Premises;
use crate::recording::{Recording, Variable};
use crate::report::Failure;
use crate::request::Search;
use crate::steps::{self, Step};
use crate::{checksum, fresh_dir, json, output, story};
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};
use std::path::PathBuf;

/// The version of the format. It changes whenever an older Purlin could misread a file, or a newer
/// one an older file.
pub const FORMAT: u32 = 6;

/// The first line, before the version.
const HEAD: &str = "purlin schedule ";

/// A schedule from a file, which is repeated.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    pub schedule: Schedule,
    pub status: i32,
    pub hash: u64,
    pub premises: Premises,
    /// The program's operations.
    pub steps: Vec<Step>,
    /// Whether the replay writes its operations at the end.
    pub narrates: bool,
    /// The recorded input from outside, which the replay is given again.
    pub outside: Option<Recording>,
    /// The environment variables that were read, as they were when the run began.
    pub variables: Vec<Variable>,
    /// The output: see [`output`].
    pub output: Vec<u32>,
}

/// The contents of a replay file.
#[derive(Default)]
pub struct Recorded {
    pub replay: Replay,
    /// The build of Purlin that wrote the file.
    pub made_by: String,
    /// The wall clock at the start, in nanoseconds since 1970.
    pub started: i64,
    /// The release of OTP.
    pub release: u32,
    pub command: Vec<String>,
    /// The fresh folder in which the run began.
    pub folder: Option<PathBuf>,
    /// The lines of the story: see [`story`].
    pub story: Vec<Vec<String>>,
    /// The descriptions of processes, by pid.
    pub processes: HashMap<String, String>,
}

/// Why a file cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is damaged, or something else.
    NoReplayFile,
    /// It has that other format, and was made by that build, if it says so.
    OtherFormat(u32, Option<String>),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Unreadable::NoReplayFile => write!(f, "not a file of a schedule"),
            Unreadable::OtherFormat(format, by) => {
                write!(
                    f,
                    "a file of a schedule in format {format}, and this Purlin reads format {FORMAT}: "
                )?;
                match by {
                    Some(by) => write!(f, "replay it with {by}, or search again"),
                    None => write!(f, "replay it with the Purlin that made it, or search again"),
                }
            }
        }
    }
}

/// The keys of lines that a run reports as a file has them.
const REPORTED: [&str; 4] = ["paths", "names", "steps", "variable"];

impl Failure {
    /// Writes the replay file. `started`: the wall clock at the start. `recording`: its lines, if
    /// what came from outside is kept.
    pub(crate) fn file(&self, s: &Search, started: i64, recording: Option<&str>) -> String {
        let (run, failed) = (&self.run, &self.failed);
        let mut file = format!("{HEAD}{FORMAT}\n");
        let _ = writeln!(file, "made-by {}", json::string(&s.made_by));
        let _ = writeln!(file, "release {}", s.release);
        let _ = writeln!(file, "started {started}");
        let _ = writeln!(file, "status {}", run.status);
        let _ = writeln!(file, "hash {}", run.own_hash);
        file.push_str(&failed.premises.text());
        if let Some(name) = fresh_dir::name() {
            let _ = writeln!(file, "folder {}", json::string(&name.to_string_lossy()));
        }
        for a in &s.command {
            let _ = writeln!(file, "argument {}", json::string(a));
        }
        for d in &failed.schedule {
            let _ = writeln!(file, "deviation {}", d.text());
        }
        let story = story::relevant(&self.story);
        let pids: HashSet<&str> = story.iter().map(|l| l[3]).collect();
        for l in self.story.lines() {
            let pid = l.strip_prefix("who ").and_then(|l| l.split_once('\t'));
            if pid.is_some_and(|(pid, _)| pids.contains(pid)) {
                let _ = writeln!(file, "{l}");
            }
        }
        for l in &story {
            let _ = writeln!(file, "line {}", l.join("\t"));
        }
        if let Some(output) = output::text(&self.output) {
            let _ = writeln!(file, "wrote{output}");
        }
        let reported = |l: &&str| REPORTED.iter().any(|k| l.starts_with(k));
        for l in self.story.lines().filter(reported) {
            let _ = writeln!(file, "{l}");
        }
        file.push_str(recording.unwrap_or_default());
        let _ = writeln!(file, "sum {}", checksum(file.as_bytes()));
        file
    }
}

/// Reads a replay file.
pub fn read(text: &str) -> Result<Recorded, Unreadable> {
    let mut lines = text.lines();
    let head = lines.next().and_then(|l| l.strip_prefix(HEAD));
    let Some(Ok(format)) = head.map(str::parse::<u32>) else {
        return Err(Unreadable::NoReplayFile);
    };
    if format != FORMAT {
        let by = lines.next().and_then(|l| l.strip_prefix("made-by "));
        return Err(Unreadable::OtherFormat(format, by.and_then(build)));
    }
    read_lines(text).ok_or(Unreadable::NoReplayFile)
}

/// Reads the name of a build, without control characters: the name is printed, and the file may
/// come from another user.
fn build(text: &str) -> Option<String> {
    let name = json::parse(text)?;
    Some(name.chars().filter(|c| !c.is_control()).collect())
}

fn read_lines(text: &str) -> Option<Recorded> {
    let (text, last) = text.trim_end_matches('\n').rsplit_once('\n')?;
    let sum = checksum(format!("{text}\n").as_bytes());
    if last.strip_prefix("sum ")?.parse() != Ok(sum) {
        return None;
    }
    let mut r = Recorded::default();
    let (mut paths, mut names) = ("", "");
    for l in text.lines().skip(1) {
        let (key, rest) = l.split_once(' ').unwrap_or((l, ""));
        match key {
            "made-by" => r.made_by = build(rest)?,
            "release" => r.release = rest.parse().ok()?,
            "started" => r.started = rest.parse().ok()?,
            "status" => r.replay.status = rest.parse().ok()?,
            "hash" => r.replay.hash = rest.parse().ok()?,
            "folder" => r.folder = Some(PathBuf::from(json::parse(rest)?)),
            "argument" => r.command.push(json::parse(rest)?),
            "deviation" => r.replay.schedule.push(Deviation::parse(rest)?),
            "line" => r.story.push(rest.split('\t').map(str::to_owned).collect()),
            "who" => {
                let (pid, text) = rest.split_once('\t')?;
                r.processes.insert(pid.to_owned(), text.to_owned());
            }
            "variable" => r.replay.variables.push(Variable::parse(rest)?),
            "wrote" => r.replay.output = output::parse(rest)?,
            "paths" => paths = rest,
            "names" => names = rest,
            "steps" => r.replay.steps = steps::parse(paths, names, rest)?,
            "atoms" | "path" | "outside" => {
                let outside = r.replay.outside.get_or_insert_default();
                outside.read(key, rest)?;
            }
            _ => r.replay.premises.read(key, rest)?,
        }
    }
    Some(r)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deviation::Kind;
    use crate::report::Failed;
    use crate::run::Run;
    use crate::strategy::Name;

    fn search() -> Search {
        Search {
            schedules: 1,
            time: None,
            seed: 1,
            strategy: Name::Base,
            stall: 0,
            jobs: 1,
            to: None,
            json: false,
            strict: false,
            keep_going: false,
            any_delivery: false,
            first: Vec::new(),
            sweep: None,
            from: None,
            command: vec!["run".into(), "a \"b\".erl".into()],
            release: 27,
            made_by: "Purlin 1.2.3 (abc)".into(),
        }
    }

    fn file() -> String {
        let steps = [Step {
            path: 5,
            name: "ets:insert/2".into(),
        }];
        let failure = Failure {
            failed: Failed {
                schedule: vec![Deviation::at((5, 7), Kind::Last)],
                margin: Vec::new(),
                before: 2,
                run: Run::default(),
                premises: Premises::default(),
                seconds: 10,
            },
            order: Vec::new(),
            run: Run {
                status: 3,
                own_hash: 99,
                ..Run::default()
            },
            endless: false,
            story: steps::text(&steps),
            output: "a\n".into(),
            events: String::new(),
        };
        failure.file(&search(), 12, None)
    }

    #[test]
    fn files_survive_a_round_trip() {
        let r = read(&file()).expect("a replay file");
        assert_eq!(r.made_by, "Purlin 1.2.3 (abc)");
        assert_eq!((r.release, r.started), (27, 12));
        assert_eq!(r.command, ["run", "a \"b\".erl"]);
        assert_eq!((r.replay.status, r.replay.hash), (3, 99));
        assert_eq!(&*r.replay.steps[0].name, "ets:insert/2");
        assert_eq!(r.replay.output.len(), 1);
        assert!(r.replay.outside.is_none());
    }

    #[test]
    fn damaged_files_and_other_formats_are_refused() {
        let whole = file();
        for bad in [
            &whole[..whole.len() / 2],
            &whole.replacen("status 3", "status 4", 1),
            "",
            "purlin schedule x\n",
            "purlin schedule 6\n",
        ] {
            assert_eq!(read(bad).err(), Some(Unreadable::NoReplayFile), "{bad}");
        }
        let other = whole.replacen("schedule 6", "schedule 7", 1);
        let by = Some("Purlin 1.2.3 (abc)".to_owned());
        assert_eq!(read(&other).err(), Some(Unreadable::OtherFormat(7, by)));
        assert_eq!(build("\"a\\u001bb\"").as_deref(), Some("ab"));
        let old = Some(Unreadable::OtherFormat(3, None));
        assert_eq!(read("purlin schedule 3\nrelease 25\n").err(), old);
    }
}
