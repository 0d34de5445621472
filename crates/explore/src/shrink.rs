//! Shrinking: a failing schedule is reduced until no single deviation can go and no stall can be
//! half as long.
//!
//! Zeller, Hildebrandt: Simplifying and isolating failure-inducing input, TSE 2002 (ddmin). Halves
//! are removed first, then single deviations; then stalls become stops, or shorter.
//!
//! # Invariants
//! * The best schedule is always one that was seen to fail.
//! * Each round either replaces the best schedule by a smaller one or removes fewer deviations at a
//!   time, so shrinking ends.

use crate::deviation::{Kind, Schedule};

/// A schedule that is being shrunk.
pub struct Shrink {
    best: Schedule,
    /// Number of deviations that are removed at a time.
    chunk: usize,
    /// Whether each deviation was tried by itself.
    single: bool,
    over: bool,
}

impl Shrink {
    /// Begins with a schedule that fails.
    pub fn new(best: Schedule) -> Shrink {
        let chunk = (best.len() / 2).max(1);
        Shrink {
            best,
            chunk,
            single: false,
            over: false,
        }
    }

    /// Returns the smallest schedule that is known to fail.
    pub fn best(&self) -> &Schedule {
        &self.best
    }

    /// Returns smaller schedules that may fail too, the smallest first. Empty: it is done.
    pub fn candidates(&self) -> Vec<Schedule> {
        if self.over {
            return Vec::new();
        }
        let mut v = Vec::new();
        if !self.single && self.best.len() > 2 {
            return self.best.iter().map(|d| vec![*d]).collect();
        }
        if self.best.len() > 1 {
            for at in (0..self.best.len()).step_by(self.chunk) {
                let mut s = self.best.clone();
                s.drain(at..(at + self.chunk).min(s.len()));
                if !s.is_empty() {
                    v.push(s);
                }
            }
        }
        if self.chunk == 1 {
            for i in 0..self.best.len() {
                if let Kind::Stall(ns) = self.best[i].kind {
                    for (part, of) in [(1, 8), (1, 4), (1, 2), (3, 4), (15, 16)] {
                        if ns / of * part >= 1_000_000 {
                            let mut s = self.best.clone();
                            s[i].kind = Kind::Stall(ns / of * part);
                            v.push(s);
                        }
                    }
                    let mut s = self.best.clone();
                    s[i].kind = Kind::Last;
                    v.insert(0, s);
                }
            }
        }
        v
    }

    /// Takes the results of the candidates: whether each one failed.
    pub fn results(&mut self, candidates: Vec<Schedule>, fails: &[bool]) {
        let found = candidates
            .into_iter()
            .zip(fails)
            .find(|(_, f)| **f)
            .map(|(s, _)| s);
        let single = std::mem::replace(&mut self.single, true);
        match found {
            Some(s) => {
                self.best = s;
                self.chunk = self.chunk.min((self.best.len() / 2).max(1));
            }
            None if !single && self.best.len() > 2 => {}
            None if self.chunk > 1 => self.chunk /= 2,
            None => self.over = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deviation::Deviation;

    #[test]
    fn irrelevant_deviations_are_removed() {
        let d = |op, kind| Deviation::at((1, op), kind);
        let all: Schedule = (1..20).map(|i| d(i, Kind::Stall(100_000_000))).collect();
        // Fails if operation 7 stalls for 30 ms at least.
        let fails = |s: &Schedule| {
            s.iter()
                .any(|x| x.op == 7 && matches!(x.kind, Kind::Stall(ns) if ns >= 30_000_000))
        };
        let mut s = Shrink::new(all);
        let mut tries = 0;
        loop {
            let c = s.candidates();
            if c.is_empty() {
                break;
            }
            tries += c.len();
            let f: Vec<bool> = c.iter().map(fails).collect();
            s.results(c, &f);
        }
        assert_eq!(s.best().len(), 1);
        assert!(
            matches!(s.best()[0].kind, Kind::Stall(ns) if (30_000_000..32_000_000).contains(&ns)),
            "{:?}",
            s.best()
        );
        assert!(tries < 400, "{tries}");
    }
}
