//! Steps: the program's operations of a run, in order. A narrated run notes them, and a replay
//! is compared with them.
//!
//! # Invariant
//! An operation is named, `ets:insert/2` for example, and never numbered by a table of the build.
//! So a replay file survives a build that has other natives.

use crate::premises::numbers;
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::Hash;
use std::sync::Arc;

/// The names of the operations that are no natives.
pub const SEND: &str = "send";
pub const RECEIVE: &str = "receive";
pub const END: &str = "end";

/// An operation of a run: the path of its process, and its name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub path: u64,
    pub name: Arc<str>,
}

/// Describes an operation of that name.
pub fn described(name: &str) -> &str {
    match name {
        SEND => "a send",
        END => "its end",
        RECEIVE => "a receive with a time",
        native => native,
    }
}

/// Values in the order of their first appearance, each once.
struct Numbered<T> {
    all: Vec<T>,
    number: HashMap<T, usize>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered {
            all: Vec::new(),
            number: HashMap::new(),
        }
    }
    fn number(&mut self, value: &T) -> usize {
        if let Some(n) = self.number.get(value) {
            return *n;
        }
        let n = self.all.len();
        self.all.push(value.clone());
        self.number.insert(value.clone(), n);
        n
    }
}

/// Writes steps as lines. Processes and names have numbers within the file, so that it stays small.
pub fn text(all: &[Step]) -> String {
    let (mut paths, mut names) = (Numbered::new(), Numbered::new());
    let mut list = String::from("steps");
    for s in all {
        let (path, name) = (paths.number(&s.path), names.number(&s.name));
        let _ = write!(list, " {path}.{name}");
    }
    let names: String = names.all.iter().map(|n| format!(" {n}")).collect();
    format!(
        "paths{}\nnames{names}\n{list}\n",
        numbers(paths.all.into_iter())
    )
}

/// Reads the lines written by [`text`], without their keys.
pub fn parse(paths: &str, names: &str, list: &str) -> Option<Vec<Step>> {
    let paths: Vec<u64> = paths
        .split_ascii_whitespace()
        .map(|w| w.parse().ok())
        .collect::<Option<_>>()?;
    let names: Vec<Arc<str>> = names.split_ascii_whitespace().map(Arc::from).collect();
    let step = |w: &str| {
        let (path, name) = w.split_once('.')?;
        Some(Step {
            path: *paths.get(path.parse::<usize>().ok()?)?,
            name: names.get(name.parse::<usize>().ok()?)?.clone(),
        })
    };
    list.split_ascii_whitespace().map(step).collect()
}

/// The steps that a run notes, or those that it is compared with.
#[derive(Default)]
pub enum Steps {
    #[default]
    Off,
    Noted(Vec<Step>),
    Expected {
        all: Vec<Step>,
        next: usize,
    },
}

/// A run has done something other than expected.
#[derive(PartialEq, Eq, Debug)]
pub struct Differs {
    /// The ordinal of the step.
    pub at: usize,
    /// The step that was expected. None: the run was expected to have ended.
    pub expected: Option<Step>,
}

impl Steps {
    /// Whether the run neither notes its steps nor is compared with others.
    pub fn are_off(&self) -> bool {
        matches!(self, Steps::Off)
    }

    /// Whether the run is compared with another one.
    pub fn are_expected(&self) -> bool {
        matches!(self, Steps::Expected { .. })
    }

    /// Takes the next step of the run. Only the first difference is reported.
    pub fn next(&mut self, path: u64, name: &Arc<str>) -> Result<(), Differs> {
        match self {
            Steps::Off => Ok(()),
            Steps::Noted(v) => {
                let name = name.clone();
                v.push(Step { path, name });
                Ok(())
            }
            Steps::Expected { all, next } => {
                let expected = all.get(*next).cloned();
                *next += 1;
                if expected
                    .as_ref()
                    .is_some_and(|e| (e.path, &e.name) == (path, name))
                {
                    return Ok(());
                }
                let at = *next;
                *self = Steps::Off;
                Err(Differs { at, expected })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(path: u64, name: &str) -> Step {
        let name = name.into();
        Step { path, name }
    }

    #[test]
    fn steps_survive_a_round_trip() {
        let all = [step(7, SEND), step(9, END), step(7, "ets:insert/2")];
        let text = text(&all);
        let lines: Vec<&str> = text
            .lines()
            .map(|l| l.split_once(' ').map_or("", |(_, r)| r))
            .collect();
        let back = parse(lines[0], lines[1], lines[2]);
        assert_eq!(back.as_deref(), Some(&all[..]));
        assert_eq!(parse("1", SEND, "1.0"), None);
        assert_eq!(parse("1", SEND, "0.1"), None);
    }

    #[test]
    fn the_first_difference_is_reported_once() {
        let mut s = Steps::Expected {
            all: vec![step(1, SEND), step(1, END)],
            next: 0,
        };
        assert_eq!(s.next(1, &SEND.into()), Ok(()));
        let differs = Differs {
            at: 2,
            expected: Some(step(1, END)),
        };
        assert_eq!(s.next(2, &END.into()), Err(differs));
        assert_eq!(s.next(1, &END.into()), Ok(()));
    }
}
