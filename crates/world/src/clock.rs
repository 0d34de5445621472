//! Clocks of machines, derived from the virtual time of the world.
//!
//! All times are nanoseconds. The monotonic clock of a machine runs at the machine's rate and never
//! steps. The wall clock runs at the same rate and may step either way. Machines differ in both.
//! Arithmetic is in integers, so that the same world time gives the same reading on every machine.

/// Parts of a rate: a million is exact.
const MILLION: i128 = 1_000_000;

/// Highest deviation of a clock's rate, in parts per million: that of a bad quartz.
pub const RATES: i32 = 500;

/// A machine's clocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// World time since which the rate holds.
    since: u64,
    /// Monotonic time at `since`.
    monotonic: u64,
    /// Wall time at `since`, since 1970.
    wall: i64,
    /// Parts per million by which the clock is fast.
    rate: i32,
}

impl Clock {
    /// Returns a clock that shows `monotonic` and `wall` at the world's time `now`.
    pub fn new(now: u64, monotonic: u64, wall: i64) -> Self {
        Clock {
            since: now,
            monotonic,
            wall,
            rate: 0,
        }
    }

    /// Returns the time that has passed on the machine since the rate changed.
    fn elapsed(&self, now: u64) -> u64 {
        let passed = i128::from(now.saturating_sub(self.since));
        let passed = passed * (MILLION + i128::from(self.rate)) / MILLION;
        u64::try_from(passed).unwrap_or(u64::MAX)
    }

    /// Returns the reading of the monotonic clock.
    pub fn monotonic(&self, now: u64) -> u64 {
        self.monotonic.saturating_add(self.elapsed(now))
    }

    /// Returns the reading of the wall clock.
    pub fn wall(&self, now: u64) -> i64 {
        self.wall.saturating_add_unsigned(self.elapsed(now))
    }

    /// Returns the first world time at which the monotonic clock shows `reading` or more.
    pub fn when(&self, reading: u64) -> u64 {
        let wait = i128::from(reading.saturating_sub(self.monotonic));
        let parts = MILLION + i128::from(self.rate);
        // The least time whose elapsed time, rounded down, is `wait`.
        let passed = (wait * MILLION + parts - 1) / parts;
        self.since
            .saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// Steps the wall clock.
    pub fn step(&mut self, by: i64) {
        self.wall = self.wall.saturating_add(by);
    }

    /// Changes the rate to `rate` parts per million too fast, at most [`RATES`] either way.
    pub fn set_rate(&mut self, now: u64, rate: i32) {
        let (monotonic, wall) = (self.monotonic(now), self.wall(now));
        *self = Clock {
            since: now.max(self.since),
            monotonic,
            wall,
            rate: rate.clamp(-RATES, RATES),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::Stream;

    #[test]
    fn a_clock_keeps_its_rate() {
        let mut clock = Clock::new(1000, 7, -5);
        assert_eq!((clock.monotonic(1000), clock.wall(1000)), (7, -5));
        clock.set_rate(1000, 500);
        let hour = 3_600_000_000_000;
        assert_eq!(clock.monotonic(1000 + hour), 7 + hour + 1_800_000_000);
        clock.set_rate(1000 + hour, -9999);
        assert_eq!(clock.monotonic(1000 + 2 * hour), 7 + 2 * hour);
        clock.step(-10);
        assert_eq!(clock.wall(1000 + 2 * hour), -15 + 2 * hour as i64);
        assert_eq!(clock.monotonic(1000 + 2 * hour), 7 + 2 * hour);
    }

    #[test]
    fn monotonic_time_never_goes_back_and_timers_are_due_once() {
        let mut numbers = Stream::from_state(9);
        for _ in 0..200 {
            let mut clock = Clock::new(0, numbers.below(1 << 40), 0);
            let (mut now, mut before) = (0, 0);
            for _ in 0..50 {
                now += numbers.below(1 << 35);
                if numbers.below(3) == 0 {
                    clock.set_rate(now, numbers.below(1201) as i32 - 600);
                }
                clock.step(numbers.below(100) as i64 - 50);
                let reading = clock.monotonic(now);
                assert!(reading >= before);
                before = reading;
                let timer = reading + numbers.below(1 << 33);
                let due = clock.when(timer);
                assert!(due >= now && clock.monotonic(due) >= timer);
                assert!(due == now || clock.monotonic(due - 1) < timer);
            }
        }
    }

    #[test]
    fn far_times_do_not_overflow() {
        let mut clock = Clock::new(0, u64::MAX - 5, i64::MAX - 5);
        clock.set_rate(10, RATES);
        assert_eq!(clock.monotonic(u64::MAX), u64::MAX);
        assert_eq!(clock.wall(u64::MAX), i64::MAX);
        assert_eq!(Clock::new(u64::MAX, 0, 0).when(u64::MAX), u64::MAX);
    }
}
