//! Premises: what a run knows of the base before it begins. They are the same for each run of a
//! search and for the replay of one of them, so replay files have them.
//!
//! # Invariant
//! Whatever the runs of a search know beside their schedule is part of [`Premises`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The base, as samplers know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Things that one process alone touched.
    pub private: BTreeSet<u64>,
    /// Things that operations race for, each with the number of operations on it by path.
    pub racing: Vec<(u64, BTreeMap<u64, u32>)>,
    /// Number of the program's operations on shared things.
    pub count: u32,
}

/// See the module's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Premises {
    /// Paths of the processes that belong to the program.
    pub programs: BTreeSet<u64>,
    pub shown: Shown,
    /// Nanoseconds without progress after which a run hangs; 0 for the bound of the base.
    pub quiet: i64,
}

impl Premises {
    /// Writes lines for a replay file.
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

    /// Reads a line written by [`Premises::text`]. None: it is damaged.
    pub fn read(&mut self, key: &str, rest: &str) -> Option<()> {
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

/// Writes numbers, each after a blank.
pub(crate) fn numbers(all: impl Iterator<Item = u64>) -> String {
    let mut t = String::new();
    for n in all {
        let _ = write!(t, " {n}");
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn premises_survive_a_round_trip() {
        let mut p = Premises::default();
        p.programs.extend([3, 1, u64::MAX]);
        p.shown.private.extend([8, 9]);
        p.shown.count = 12;
        p.shown
            .racing
            .push((5, [(1, 2), (3, 4)].into_iter().collect()));
        let mut back = Premises::default();
        for l in p.text().lines() {
            let (key, rest) = l.split_once(' ').unwrap_or((l, ""));
            assert_eq!(back.read(key, rest), Some(()), "{l}");
        }
        assert_eq!(back, p);
        assert_eq!(Premises::default().read("races", "1 2"), None);
        assert_eq!(Premises::default().read("programs", "x"), None);
    }
}
