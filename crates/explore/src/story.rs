//! Stories: the printed operations of a schedule.
//!
//! A line has these fields, separated by tabs: path, ordinal, what is touched (object, key, whether
//! it changes), pid, call, place in the program, deviation, microseconds of virtual time, and
//! `happens` for an event that the process does not cause itself.
//!
//! # Invariant
//! No field has a tab or a line end in it.

use crate::deviation::Kind;
use crate::operation::Touch;
use std::collections::HashSet;
use std::fmt::Write;

/// A line of a story.
#[derive(Clone, Debug)]
pub struct Line {
    pub path: u64,
    pub op: u32,
    pub touch: Touch,
    /// The pid, as it is printed.
    pub pid: String,
    pub call: String,
    /// `file:line`, and the function, of the program's code that does it, if there is any.
    pub place: Option<String>,
    /// The deviation before it.
    pub stopped: Option<Kind>,
    /// Microseconds of virtual time.
    pub at: i64,
    /// Whether it happens to the process, which does nothing itself.
    pub happens: bool,
    /// The registered name of the process.
    pub name: Option<String>,
}

/// Number of operations shown before the first deviation, of the program's operations after it, and
/// of all operations.
const BEFORE: usize = 12;
const ENOUGH: usize = 40;
const MOST_LINES: usize = 60;

/// Number of operations shown of a base that fails.
const MOST_OF_BASE: usize = 30;

/// Writes the lines of a story: fields separated by tabs.
pub fn text(all: &[Line]) -> String {
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

/// Returns the operations on which a failure depends: those on the things that the deviations
/// touch, and those of the program around them, from a little before the first deviation. Each has
/// its fields.
pub fn relevant(story: &str) -> Vec<Vec<&str>> {
    let all: Vec<Vec<&str>> = story
        .lines()
        .map(|l| l.split('\t').collect::<Vec<_>>())
        .filter(|f| f.len() >= 7)
        .collect();
    // Events of a process of the program count as its own operations.
    let is_own = |f: &[&str]| !f[5].is_empty() || f.get(8).is_some_and(|h| !h.is_empty());
    let object = |f: &[&str]| f[2].split(' ').next().unwrap_or("0").to_owned();
    let stopped: Vec<usize> = (0..all.len()).filter(|&i| !all[i][6].is_empty()).collect();
    let Some(&first) = stopped.first() else {
        // The base failed: the last operations of the program matter more than those of its test
        // runner. Repeated operations are shown once, the last time.
        let mut seen = HashSet::new();
        let own = all.iter().rev().filter(|f| is_own(f));
        let distinct = own.filter(|f| seen.insert((f[3], f[4], f[5])));
        let mut last: Vec<Vec<&str>> = distinct.take(MOST_OF_BASE).cloned().collect();
        last.reverse();
        return last;
    };
    let wanted: HashSet<String> = stopped
        .iter()
        .map(|&i| object(&all[i]))
        .filter(|o| o != "0")
        .collect();
    let paths: HashSet<&str> = stopped.iter().map(|&i| all[i][0]).collect();
    let from = first.saturating_sub(BEFORE);
    let mut v: Vec<Vec<&str>> = Vec::new();
    for f in all.iter().skip(from) {
        let shared = wanted.contains(&object(f));
        let own = is_own(f);
        if !f[6].is_empty() || shared || (own && (paths.contains(f[0]) || v.len() < ENOUGH)) {
            v.push(f.clone());
        }
        if v.len() > MOST_LINES {
            break;
        }
    }
    v
}

/// Microseconds between two operations from which on the passage of time is shown.
const PASSES: i64 = 900;

/// Renders a story for people. Each line has the fields that [`text`] writes.
pub fn rendered<S: AsRef<str>>(all: &[Vec<S>]) -> String {
    let mut text = String::new();
    let mut last = String::new();
    let mut before: Option<i64> = None;
    for (n, f) in all.iter().enumerate() {
        let get = |i: usize| f.get(i).map_or("", |s| s.as_ref());
        let (pid, call, place, stop) = (get(3), get(4), get(5), get(6).trim());
        let stopped = match Kind::parse(stop) {
            None => None,
            Some(Kind::Last) => Some(format!(
                "stops before {call}, until no other process can run"
            )),
            Some(Kind::Back) => Some(format!(
                "does {call}, whose message waits until another process has sent to the receiver"
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
                let done = all.iter().position(|g| does(&g));
                let until = done.map_or_else(
                    || "another process has run".to_owned(),
                    |at| format!("{} has done {}", all[at][3].as_ref(), all[at][4].as_ref()),
                );
                // It does not wait for what was done before.
                let waits = done.is_none_or(|at| at > n);
                waits.then(|| format!("stops before {call}, until {until}"))
            }
            Some(Kind::Fail(_)) => Some(format!("here {call}")),
            Some(Kind::Sample(s, _)) => Some(format!(
                "reaches {call}; from here on turns are random ({})",
                s.name()
            )),
        };
        if let Some(stopped) = stopped {
            let _ = writeln!(text, "  {:-<12} {pid} {stopped}", "");
            last.clear();
            continue;
        }
        // Time that passes with reductions is not shown.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(op: u32, stopped: Option<Kind>) -> Line {
        Line {
            path: 1,
            op,
            touch: Touch::end(5),
            pid: "<0.1.0>".into(),
            call: format!("call\t{op}"),
            place: None,
            stopped,
            at: i64::from(op) * 2000,
            happens: false,
            name: None,
        }
    }

    #[test]
    fn deviations_and_time_are_rendered() {
        let all = text(&[line(1, None), line(2, Some(Kind::Last)), line(3, None)]);
        let story = relevant(&all);
        assert_eq!(story.len(), 3);
        let text = rendered(&story);
        assert!(
            text.contains("stops before call 2, until no other process can run"),
            "{text}"
        );
        assert!(text.contains("4.0 ms later"), "{text}");
    }
}
