//! Who the processes of a run are that is told: what each is registered as, what it was made to run, by whom and where. Pure: knows
//! numbers and text only.

use super::report::Line;
use std::collections::HashMap;
use std::fmt::Write;

#[derive(Default)]
struct One {
    name: Option<String>,
    role: Option<String>,
    by: Option<u32>,
    place: Option<String>,
    /// The first function of the program in it.
    runs: Option<String>,
}

/// See the module head.
#[derive(Default)]
pub(super) struct Who {
    all: HashMap<u32, One>,
    pids: HashMap<String, u32>,
    /// What the process that a process makes next is, and where that is done.
    next: HashMap<u32, (Option<String>, Option<String>)>,
}

impl Who {
    /// A process is about to make another, of that role, by that operation.
    pub fn makes(&mut self, by: u32, role: Option<String>, line: &Line) {
        self.next.insert(by, (role, line.place.clone()));
    }
    /// A process is seen for the first time.
    pub fn comes(&mut self, id: u32, by: u32) {
        let (role, place) = self.next.remove(&by).unwrap_or_default();
        let by = (by != id).then_some(by);
        let one = One {
            role,
            place,
            by,
            ..One::default()
        };
        self.all.insert(id, one);
    }
    /// The process of that pid.
    fn id(&mut self, pid: &str) -> Option<u32> {
        if let Some(id) = self.pids.get(pid) {
            return Some(*id);
        }
        let mut all = self.all.keys();
        let id = *all.find(|id| super::report::pid(**id) == pid)?;
        self.pids.insert(pid.to_owned(), id);
        Some(id)
    }
    /// Whether the program's own code has made that process, or has run in it.
    pub fn is_own(&mut self, pid: &str) -> bool {
        let one = self.id(pid).and_then(|id| self.all.get(&id));
        one.is_some_and(|o| o.place.is_some() || o.runs.is_some())
    }
    /// That is told.
    pub fn tells(&mut self, line: &Line) {
        let Some(id) = self.id(&line.pid) else { return };
        let Some(one) = self.all.get_mut(&id) else {
            return;
        };
        if line.name.is_some() && one.name != line.name {
            one.name.clone_from(&line.name);
        }
        if one.runs.is_none() {
            one.runs = line
                .place
                .as_deref()
                .map(|p| p.rsplit("  ").next().unwrap_or(p).to_owned());
        }
    }
    /// Each as a line.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for (pid, id) in &self.pids {
            let Some(one) = self.all.get(id) else {
                continue;
            };
            let mut parts: Vec<String> = Vec::new();
            parts.extend(one.name.clone());
            match (&one.role, &one.runs) {
                (Some(role), Some(runs)) if role.starts_with("a fun of") => {
                    parts.push(format!("runs {runs}"));
                }
                (Some(role), _) => parts.push(role.clone()),
                (None, Some(runs)) => parts.push(format!("runs {runs}")),
                _ => {}
            }
            if let Some(by) = one.by {
                let place = one
                    .place
                    .as_deref()
                    .map(|p| p.split("  ").next().unwrap_or(p));
                let place = place.map_or(String::new(), |p| format!(" at {p}"));
                parts.push(format!("made by {}{place}", super::report::pid(by)));
            }
            let _ = writeln!(
                text,
                "who {pid}\t{}",
                parts.join(", ").replace(['\t', '\n'], " ")
            );
        }
        text
    }
}

/// The processes of these lines of a story, in the order in which they come, with what is known of each: as text.
pub fn introduced<S: AsRef<str>>(story: &[Vec<S>], who: &HashMap<String, String>) -> String {
    let mut text = String::new();
    let mut told: Vec<&str> = Vec::new();
    for f in story {
        let pid = f.get(3).map_or("", AsRef::as_ref);
        if told.contains(&pid) {
            continue;
        }
        told.push(pid);
        if let Some(w) = who.get(pid).filter(|w| !w.is_empty()) {
            let _ = writeln!(text, "  {pid:<12} {w}");
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Those of lines that [`Who::lines`] has made.
pub(super) fn of<'a>(lines: impl Iterator<Item = &'a str>) -> HashMap<String, String> {
    let one = |l: &str| {
        let (pid, text) = l.strip_prefix("who ")?.split_once('\t')?;
        Some((pid.to_owned(), text.to_owned()))
    };
    lines.filter_map(one).collect()
}
