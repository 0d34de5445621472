//! What a run is given before it begins, and what it then does step by step: the same for each run of a search and for the replay of
//! one of them, so both stand in the file of a schedule.
//!
//! # Invariant
//! Whatever a search lays down before its runs is a part of [`Given`], and is laid down by `choice::lay_down` alone.

use super::ops;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

/// What the base has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Things that one process alone touched.
    pub private: BTreeSet<u64>,
    /// Things that operations race for, and how many of these each process does.
    pub racing: Vec<(u64, BTreeMap<u64, u32>)>,
    /// Operations of the program on what is shared.
    pub count: u32,
}

/// See the module head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Paths of processes that are the program's own in the base.
    pub programs: BTreeSet<u64>,
    pub shown: Shown,
    /// Nanoseconds after which a run in which nothing moves but timers hangs; 0: that of the base.
    pub quiet: i64,
}

impl Given {
    /// Lines for a file.
    pub fn text(&self) -> String {
        let mut t = format!(
            "programs{}\nprivate{}\nshared {}\nquiet {}\n",
            numbers(self.programs.iter().copied()),
            numbers(self.shown.private.iter().copied()),
            self.shown.count,
            self.quiet
        );
        for (object, by) in &self.shown.racing {
            let by = by.iter().flat_map(|(path, n)| [*path, u64::from(*n)]);
            let _ = writeln!(t, "races {object}{}", numbers(by));
        }
        t
    }
    /// Takes a line that [`Given::text`] has written. None: it is damaged.
    pub fn takes(&mut self, key: &str, rest: &str) -> Option<()> {
        let all: Vec<u64> = rest
            .split_ascii_whitespace()
            .map(|w| w.parse().ok())
            .collect::<Option<_>>()?;
        match key {
            "programs" => self.programs = all.into_iter().collect(),
            "private" => self.shown.private = all.into_iter().collect(),
            "quiet" => self.quiet = i64::try_from(*all.first()?).ok()?,
            "shared" => self.shown.count = u32::try_from(*all.first()?).ok()?,
            "races" => {
                let (object, by) = all.split_first()?;
                let mut of = BTreeMap::new();
                for pair in by.chunks(2) {
                    let [path, n] = pair else { return None };
                    of.insert(*path, u32::try_from(*n).ok()?);
                }
                self.shown.racing.push((*object, of));
            }
            _ => return None,
        }
        Some(())
    }
}

fn numbers(all: impl Iterator<Item = u64>) -> String {
    let mut t = String::new();
    for n in all {
        let _ = write!(t, " {n}");
    }
    t
}

/// An operation that a run has done: of which process, and which row of [`ops`] it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    pub path: u64,
    pub native: u16,
}

/// All operations of a run, in order: processes by number, so that a file of many stays small.
pub fn steps_text(all: &[Step]) -> String {
    let mut paths: Vec<u64> = Vec::new();
    let mut number: HashMap<u64, usize> = HashMap::new();
    let mut list = String::from("steps");
    for s in all {
        let i = *number.entry(s.path).or_insert_with(|| {
            paths.push(s.path);
            paths.len() - 1
        });
        let _ = write!(list, " {i}.{}", s.native);
    }
    format!("paths{}\n{list}\n", numbers(paths.into_iter()))
}

/// The operations of the lines that [`steps_text`] has written, without their keys.
pub fn steps_of(paths: &str, list: &str) -> Option<Vec<Step>> {
    let paths: Vec<u64> = paths
        .split_ascii_whitespace()
        .map(|w| w.parse().ok())
        .collect::<Option<_>>()?;
    let step = |w: &str| {
        let (i, native) = w.split_once('.')?;
        Some(Step {
            path: *paths.get(i.parse::<usize>().ok()?)?,
            native: native.parse().ok()?,
        })
    };
    list.split_ascii_whitespace().map(step).collect()
}

/// The operations that a run notes, or those that it is held against.
#[derive(Default)]
pub(super) enum Steps {
    #[default]
    Off,
    Noted(Vec<Step>),
    Held {
        expected: Vec<Step>,
        next: usize,
    },
}

impl Steps {
    /// Whether the run is held against another.
    pub(super) fn are_held(&self) -> bool {
        matches!(self, Steps::Held { .. })
    }
    /// The run does that. Some: it was to do something else here, or to have ended.
    pub(super) fn does(&mut self, step: Step) -> Option<(usize, Option<Step>)> {
        match self {
            Steps::Off => None,
            Steps::Noted(v) => {
                v.push(step);
                None
            }
            Steps::Held { expected, next } => {
                let was = expected.get(*next).copied();
                *next += 1;
                if was == Some(step) {
                    return None;
                }
                let at = *next;
                *self = Steps::Off;
                Some((at, was))
            }
        }
    }
}

/// What an operation is called, by its row.
pub(super) fn name(native: u16) -> String {
    match native {
        0 => "a send".into(),
        ops::END => "its end".into(),
        ops::RECEIVES => "a receive with a time".into(),
        n => ops::row(n).map_or_else(
            || format!("operation {n}"),
            |(m, f, a)| format!("{m}:{f}/{a}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_goes_there_and_back() {
        let mut g = Given::default();
        g.programs.extend([3, 1, u64::MAX]);
        g.shown.private.extend([8, 9]);
        g.shown.count = 12;
        g.shown
            .racing
            .push((5, [(1, 2), (3, 4)].into_iter().collect()));
        let mut back = Given::default();
        for l in g.text().lines() {
            let (key, rest) = l.split_once(' ').unwrap_or((l, ""));
            assert_eq!(back.takes(key, rest), Some(()), "{l}");
        }
        assert_eq!(back, g);
        assert_eq!(Given::default().takes("races", "1 2"), None);
        assert_eq!(Given::default().takes("programs", "x"), None);
    }

    #[test]
    fn steps_go_there_and_back() {
        let step = |path, native| Step { path, native };
        let all = [step(7, 0), step(9, ops::END), step(7, 3)];
        let text = steps_text(&all);
        let mut l = text
            .lines()
            .map(|l| l.split_once(' ').map_or("", |(_, r)| r));
        let back = steps_of(l.next().unwrap_or(""), l.next().unwrap_or(""));
        assert_eq!(back.as_deref(), Some(&all[..]));
        assert_eq!(steps_of("1", "1.5"), None);
    }

    #[test]
    fn the_first_step_that_differs_is_told_once() {
        let step = |path, native| Step { path, native };
        let mut s = Steps::Held {
            expected: vec![step(1, 1), step(1, 2)],
            next: 0,
        };
        assert_eq!(s.does(step(1, 1)), None);
        assert_eq!(s.does(step(2, 2)), Some((2, Some(step(1, 2)))));
        assert_eq!(s.does(step(1, 2)), None);
    }
}
