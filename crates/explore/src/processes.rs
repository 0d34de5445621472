//! The processes of a story: the registered name of each, its role, its maker, and the place where
//! it was made.
//!
//! # Invariant
//! Processes are introduced in the order of their first line, so a story reads the same each time.

use crate::story::Line;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

#[derive(Default)]
struct Process {
    /// The pid, as it is printed.
    pid: String,
    name: Option<String>,
    role: Option<String>,
    /// The pid of its maker, and the place where it was made.
    by: Option<String>,
    place: Option<String>,
    /// The first function of the program in it.
    runs: Option<String>,
    /// Whether the story has a line of it.
    appears: bool,
}

/// The processes of a run, by number.
#[derive(Default)]
pub struct Processes {
    all: BTreeMap<u32, Process>,
    pids: HashMap<String, u32>,
    /// The role of the process that a process makes next, and the place where it is made.
    next: HashMap<u32, (Option<String>, Option<String>)>,
}

impl Processes {
    /// Notes that a process is about to make another, of that role, by the operation of that line.
    pub fn makes(&mut self, by: u32, role: Option<String>, line: &Line) {
        self.next.insert(by, (role, line.place.clone()));
    }

    /// Adds a process: its number, its printed pid, and those of its maker, if it has one.
    pub fn add(&mut self, id: u32, pid: String, by: Option<(u32, String)>) {
        let next = by.as_ref().and_then(|(by, _)| self.next.remove(by));
        let (role, place) = next.unwrap_or_default();
        self.pids.insert(pid.clone(), id);
        let process = Process {
            pid,
            role,
            place,
            by: by.map(|(_, pid)| pid),
            ..Process::default()
        };
        self.all.insert(id, process);
    }

    fn process(&mut self, pid: &str) -> Option<&mut Process> {
        self.all.get_mut(self.pids.get(pid)?)
    }

    /// Whether code of the program made the process, or ran in it.
    pub fn is_own(&mut self, pid: &str) -> bool {
        self.process(pid)
            .is_some_and(|p| p.place.is_some() || p.runs.is_some())
    }

    /// Notes a line of the story.
    pub fn line(&mut self, line: &Line) {
        let Some(p) = self.process(&line.pid) else {
            return;
        };
        p.appears = true;
        if line.name.is_some() && p.name != line.name {
            p.name.clone_from(&line.name);
        }
        if p.runs.is_none() {
            let function = |p: &str| p.rsplit("  ").next().unwrap_or(p).to_owned();
            p.runs = line.place.as_deref().map(function);
        }
    }

    /// Writes a line for each process that appears.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for p in self.all.values().filter(|p| p.appears) {
            let mut parts: Vec<String> = Vec::new();
            parts.extend(p.name.clone());
            match (&p.role, &p.runs) {
                (Some(role), Some(runs)) if role.starts_with("a fun of") => {
                    parts.push(format!("runs {runs}"));
                }
                (Some(role), _) => parts.push(role.clone()),
                (None, Some(runs)) => parts.push(format!("runs {runs}")),
                _ => {}
            }
            if let Some(by) = &p.by {
                let line = |p: &str| format!(" at {}", p.split("  ").next().unwrap_or(p));
                let place = p.place.as_deref().map_or(String::new(), line);
                parts.push(format!("made by {by}{place}"));
            }
            let known = parts.join(", ").replace(['\t', '\n'], " ");
            let _ = writeln!(text, "who {}\t{known}", p.pid);
        }
        text
    }
}

/// Introduces the processes of a story, in the order in which they appear, as text.
pub fn introduced<S: AsRef<str>>(story: &[Vec<S>], who: &HashMap<String, String>) -> String {
    let mut text = String::new();
    let mut done: Vec<&str> = Vec::new();
    for f in story {
        let pid = f.get(3).map_or("", AsRef::as_ref);
        if done.contains(&pid) {
            continue;
        }
        done.push(pid);
        if let Some(w) = who.get(pid).filter(|w| !w.is_empty()) {
            let _ = writeln!(text, "  {pid:<12} {w}");
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Reads the lines written by [`Processes::text`] among others: a description for each pid.
pub fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> HashMap<String, String> {
    let one = |l: &str| {
        let (pid, text) = l.strip_prefix("who ")?.split_once('\t')?;
        Some((pid.to_owned(), text.to_owned()))
    };
    lines.filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Touch;

    #[test]
    fn processes_are_introduced_once() {
        let line = |pid: &str| Line {
            path: 1,
            op: 1,
            touch: Touch::end(1),
            pid: pid.into(),
            call: "a call".into(),
            place: Some("a.erl:3  m:f/0".into()),
            stopped: None,
            at: 0,
            happens: false,
            name: None,
        };
        let mut p = Processes::default();
        p.add(1, "<0.1.0>".into(), None);
        p.makes(1, Some("m:g".into()), &line("<0.1.0>"));
        p.add(2, "<0.2.0>".into(), Some((1, "<0.1.0>".into())));
        assert!(p.is_own("<0.2.0>") && !p.is_own("<0.1.0>"));
        p.line(&line("<0.2.0>"));
        let who = parse(p.text().lines());
        assert_eq!(who.len(), 1);
        assert_eq!(who["<0.2.0>"], "m:g, made by <0.1.0> at a.erl:3");
        let fields: Vec<&str> = "1\t1\t\t<0.2.0>".split('\t').collect();
        let text = introduced(&[fields.clone(), fields], &who);
        assert_eq!(text.matches("<0.2.0>").count(), 1);
    }
}
