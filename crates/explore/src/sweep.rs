//! The data of a sweep of system calls: which of them fail, why, and for how long.

use crate::failing::{Call, Failing, Reason};
use crate::run::{Run, Stuck};
use std::collections::HashSet;

/// The time for which calls fail.
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

/// The extent of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Kinds of calls, and why they fail.
    pub calls: Vec<(Call, Vec<Reason>)>,
    pub span: Span,
    /// Exit statuses other than 0 with which a run may end.
    pub expected: Vec<i32>,
}

impl Sweep {
    pub(crate) fn passes(&self, r: &Run) -> bool {
        r.stuck == Stuck::No && (r.status == 0 || self.expected.contains(&r.status))
    }

    /// Returns the ways in which the Nth call of a kind may fail for these reasons.
    pub(crate) fn ways(&self, call: Call, reasons: &[Reason]) -> Vec<Failing> {
        let mut all = Vec::new();
        for &lasts in self.span.lasts() {
            for &reason in reasons {
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
pub(crate) type Made = (Call, String);

/// Returns the system calls in the report of a run of the base.
pub(crate) fn calls(report: &str) -> Vec<Made> {
    let call = |l: &str| {
        let (name, place) = l.strip_prefix("call ")?.split_once('\t')?;
        Some((Call::named(name)?, place.to_owned()))
    };
    report.lines().filter_map(call).collect()
}

/// Returns the ordinals of the calls of a kind that are made to fail, `most` at most: the first one
/// at each place, then the others, and the one after the last of the base if there is room for it.
pub(crate) fn ordinals(places: &[&str], most: usize) -> Vec<u32> {
    let mut seen = HashSet::new();
    let all = 0..=places.len();
    let is_first = |i: &usize| places.get(*i).is_some_and(|p| seen.insert(*p));
    let (first, others): (Vec<_>, Vec<_>) = all.partition(is_first);
    let mut some: Vec<usize> = first.into_iter().chain(others).take(most).collect();
    if some.len() > places.len() {
        some.sort_unstable();
    }
    some.into_iter().map(|i| i as u32 + 1).collect()
}

/// Writes the system calls of the base for its report.
pub(crate) fn calls_text(all: &[Made]) -> String {
    let line = |(call, place): &Made| format!("call {}\t{place}\n", call.name());
    all.iter().map(line).collect()
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
            calls: Vec::new(),
            span,
            expected: vec![7],
        };
        let reasons = [Reason::Enospc, Reason::Eio, Reason::Short];
        assert_eq!(sweep(Span::Both).ways(Call::Write, &reasons).len(), 5);
        let ever = sweep(Span::Ever).ways(Call::Write, &reasons);
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

    #[test]
    fn each_place_comes_first() {
        let places = ["a", "a", "b", "a"];
        assert_eq!(ordinals(&places, 9), [1, 2, 3, 4, 5]);
        assert_eq!(ordinals(&places, 5), [1, 2, 3, 4, 5]);
        assert_eq!(ordinals(&places, 4), [1, 3, 2, 4]);
        assert_eq!(ordinals(&places, 2), [1, 3]);
        assert_eq!(ordinals(&[], 2), [1]);
        assert_eq!(ordinals(&[], 0), Vec::<u32>::new());
    }
}
