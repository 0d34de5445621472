//! A run in which some processes go on by their timers, again and again, while all others wait for ever: no deadlock, and no end.
//!
//! Nothing *moves* while each operation stands at a place in the code where some process has done one before. A run in which nothing has moved
//! for an hour of virtual time, and for four times as long as nothing moved in the base, hangs. Pure: knows places and times only.

use purlin_native::hashing::Hashing;
use std::collections::HashSet;

const SECOND: i64 = 1_000_000_000;
/// For how long nothing moves at most in the base.
const MOST_BASE: i64 = 6 * 3600 * SECOND;
/// The same in schedules, and by how much longer than in the base.
const MOST: i64 = 3600 * SECOND;
const LONGER: i64 = 4;
/// How often the clock has jumped at least meanwhile: who waits for one moment far ahead waits for something.
const JUMPS: u32 = 100;
/// After so long nobody needs to be told each operation.
const LONG: i64 = SECOND;

/// See the module head.
#[derive(Default)]
pub(super) struct Quiet {
    places: HashSet<usize, Hashing>,
    /// When something has moved last; how often the clock has jumped since.
    moved: i64,
    jumps: u32,
    longest: i64,
    most: i64,
}

/// For how long nothing moves at most in a schedule, if `base` was the longest in the base.
pub(super) fn most(base: i64) -> i64 {
    MOST.max(base.saturating_mul(LONGER))
}

impl Quiet {
    /// The bound of the run that begins; 0: that of the base.
    pub fn set_most(&mut self, ns: i64) {
        self.most = ns;
    }
    pub fn most(&self) -> i64 {
        match self.most {
            0 => MOST_BASE,
            n => n,
        }
    }
    /// A process does an operation at that place of the code.
    #[inline]
    pub fn does(&mut self, place: usize, now: i64) {
        if self.places.insert(place) {
            self.longest = self.longest(now);
            (self.moved, self.jumps) = (now, 0);
        }
    }
    /// The longest time so far in which nothing has moved.
    pub fn longest(&self, now: i64) -> i64 {
        self.longest.max(now - self.moved)
    }
    /// Whether nothing has moved for some time.
    pub fn is_long(&self, now: i64) -> bool {
        now - self.moved > LONG
    }
    /// The clock is about to jump. True: nothing will move any more.
    pub fn jumps(&mut self, now: i64) -> bool {
        self.jumps = self.jumps.saturating_add(1);
        self.jumps > JUMPS && now - self.moved > self.most()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_for_long_hangs() {
        let mut q = Quiet::default();
        q.set_most(most(0));
        let mut now = 0;
        let hangs = |q: &mut Quiet, now: &mut i64, step: i64, n: u32| {
            (0..n).any(|_| {
                *now += step;
                q.does(1, *now);
                q.jumps(*now)
            })
        };
        assert!(!hangs(&mut q, &mut now, SECOND, 3600));
        q.does(2, now);
        // Half an hour each: too few to say that it repeats.
        assert!(!hangs(&mut q, &mut now, 1800 * SECOND, 100));
        assert!(hangs(&mut q, &mut now, SECOND, 1));
        assert_eq!(q.longest(now), 100 * 1800 * SECOND + SECOND);
        assert_eq!(most(2 * MOST), 8 * MOST);
    }
}
