//! Detection of hangs: some processes continue by their timers for ever while all others wait. Such
//! a run is no deadlock, and it has no end.
//!
//! A run makes *progress* when an operation stands at a place in the code where no process has done
//! one before. It hangs if it has made none for an hour of virtual time, and for four times as long
//! as the base made none.
//!
//! # Invariant
//! Places are only compared, so the result does not depend on addresses.

use std::collections::HashSet;

const SECOND: i64 = 1_000_000_000;
/// Maximum time without progress in the base.
const MOST_BASE: i64 = 6 * 3600 * SECOND;
/// Minimum bound of other schedules.
const MIN_BOUND: i64 = 3600 * SECOND;
/// Factor by which a schedule may take longer than the base.
const LONGER: i64 = 4;
/// Minimum number of clock jumps meanwhile: a process that waits for one distant timer does not
/// hang.
const JUMPS: u32 = 100;
/// Time without progress after which the story leaves operations out.
const LONG: i64 = SECOND;

/// The progress of a run.
#[derive(Default)]
pub struct Progress {
    places: HashSet<usize>,
    /// The time of the last progress, and the number of clock jumps since.
    last: i64,
    jumps: u32,
    longest: i64,
    /// The bound of the run; 0 for that of the base.
    bound: i64,
}

/// Returns the bound of a schedule, given the longest time without progress in the base.
pub fn bound(base: i64) -> i64 {
    MIN_BOUND.max(base.saturating_mul(LONGER))
}

impl Progress {
    /// Sets the bound of the run; 0 for that of the base.
    pub fn set_bound(&mut self, ns: i64) {
        self.bound = ns;
    }

    /// Returns the bound of the run, in nanoseconds.
    pub fn bound(&self) -> i64 {
        match self.bound {
            0 => MOST_BASE,
            n => n,
        }
    }

    /// Notes that a process does an operation at that place in the code.
    #[inline]
    pub fn operation(&mut self, place: usize, now: i64) {
        if self.places.insert(place) {
            self.longest = self.longest(now);
            (self.last, self.jumps) = (now, 0);
        }
    }

    /// Returns the longest time without progress so far.
    pub fn longest(&self, now: i64) -> i64 {
        self.longest.max(now - self.last)
    }

    /// Whether there has been no progress for some time.
    pub fn is_stale(&self, now: i64) -> bool {
        now - self.last > LONG
    }

    /// Notes that the clock is about to jump. True: the run hangs.
    pub fn jump(&mut self, now: i64) -> bool {
        self.jumps = self.jumps.saturating_add(1);
        self.jumps > JUMPS && now - self.last > self.bound()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_for_long_is_a_hang() {
        let mut q = Progress::default();
        q.set_bound(bound(0));
        let mut now = 0;
        let hangs = |q: &mut Progress, now: &mut i64, step: i64, n: u32| {
            (0..n).any(|_| {
                *now += step;
                q.operation(1, *now);
                q.jump(*now)
            })
        };
        assert!(!hangs(&mut q, &mut now, SECOND, 3600));
        q.operation(2, now);
        // Half an hour each: too few to say that it repeats.
        assert!(!hangs(&mut q, &mut now, 1800 * SECOND, 100));
        assert!(hangs(&mut q, &mut now, SECOND, 1));
        assert_eq!(q.longest(now), 100 * 1800 * SECOND + SECOND);
        assert_eq!(bound(2 * MIN_BOUND), 8 * MIN_BOUND);
    }
}
