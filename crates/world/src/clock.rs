//! Clocks of machines, derived from the virtual time of the world.
//!
//! All times are nanoseconds. The monotonic clock of a machine runs at the machine's rate and never
//! steps. The wall clock runs at the same rate and may step either way. Machines differ in both.
//! Arithmetic is in integers, so that the same world time gives the same reading on every machine.
//!
//! An emulator has a monotonic clock of its own ([`NodeClock`]). Where the wall clock has stepped,
//! it runs faster or slower than the machine's until it has caught up, as OTP corrects its time in
//! the mode `no_time_warp`.

/// Parts of a rate: a million is exact.
const MILLION: i128 = 1_000_000;

/// Highest deviation of a clock's rate, in parts per million: that of a bad quartz.
pub const RATES: i32 = 500;

/// Parts per million by which an emulator's clock is faster or slower than its machine's while it
/// follows a wall clock that has stepped.
pub const CORRECTION: i32 = 10_000;

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

    /// Changes the rate to `rate` parts per million too fast, at most [`RATES`] and [`CORRECTION`]
    /// either way.
    pub fn set_rate(&mut self, now: u64, rate: i32) {
        let (monotonic, wall) = (self.monotonic(now), self.wall(now));
        *self = Clock {
            since: now.max(self.since),
            monotonic,
            wall,
            rate: rate.clamp(-RATES - CORRECTION, RATES + CORRECTION),
        };
    }
}

/// The clocks of a machine, and of the emulator on it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeClock {
    machine: Clock,
    emulator: Clock,
    /// Wall time minus the emulator's monotonic time when it began: its time offset.
    offset: i64,
}

impl NodeClock {
    /// Returns exact clocks of an emulator that begins at the world's time `now`. The wall clock
    /// shows `wall` then.
    pub fn new(now: u64, wall: i64) -> Self {
        NodeClock {
            machine: Clock::new(now, now, wall),
            emulator: Clock::new(now, now, wall),
            offset: wall.saturating_sub_unsigned(now),
        }
    }

    /// An emulator begins: its time is that of the machine.
    pub fn begin(&mut self, now: u64) {
        self.emulator = self.machine.clone();
        let since = self.machine.monotonic(now);
        self.offset = self.machine.wall(now).saturating_sub_unsigned(since);
    }

    /// Returns the reading of the emulator's monotonic clock.
    pub fn monotonic(&self, now: u64) -> u64 {
        self.emulator.monotonic(now)
    }

    /// Returns the first world time at which the emulator's clock shows `reading` or more.
    pub fn when(&self, reading: u64) -> u64 {
        self.emulator.when(reading)
    }

    /// Returns what the wall clock would have shown at the emulator's time 0, as it goes now.
    pub fn zero(&self, now: u64) -> i64 {
        let since = self.emulator.monotonic(now);
        self.machine.wall(now).saturating_sub_unsigned(since)
    }

    /// Steps the wall clock.
    pub fn step(&mut self, by: i64) {
        self.machine.step(by);
    }

    /// Changes the rate of the machine's clocks. The emulator's has the same, as long as it is not
    /// corrected.
    pub fn set_rate(&mut self, now: u64, rate: i32) {
        self.machine.set_rate(now, rate.clamp(-RATES, RATES));
        self.emulator.set_rate(now, rate.clamp(-RATES, RATES));
    }

    /// Has the emulator's clock follow the wall clock. Returns the time at which this is to be
    /// called again, since they agree then. `None`: they do.
    pub fn correct(&mut self, now: u64) -> Option<u64> {
        let behind = self.zero(now).saturating_sub(self.offset);
        let rate = match behind / SEEN {
            0 => 0,
            1.. => CORRECTION,
            _ => -CORRECTION,
        };
        self.emulator.set_rate(now, self.machine.rate + rate);
        let takes = behind.unsigned_abs().saturating_mul(100);
        (rate != 0).then(|| now.saturating_add(takes))
    }
}

/// A difference of the emulator's clock from the wall clock that is corrected.
const SEEN: i64 = 1_000_000;

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
        clock.set_rate(1000 + hour, -500);
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

    #[test]
    fn an_emulator_follows_its_wall_clock() {
        let second = 1_000_000_000;
        let mut clock = NodeClock::new(second, 77);
        let zero = 77 - second as i64;
        assert_eq!((clock.zero(second), clock.correct(second)), (zero, None));
        clock.set_rate(second, 500);
        clock.step(-(second as i64));
        assert_eq!(clock.zero(2 * second), zero - second as i64);
        let until = clock.correct(2 * second).expect("they differ");
        assert_eq!(until, 102 * second);
        // 1 % slower than the machine, which is 500 ppm too fast.
        let passed = clock.monotonic(12 * second) - clock.monotonic(2 * second);
        assert_eq!(passed, 10 * second - second / 10 + 5_000_000);
        assert!((clock.zero(until) - zero).abs() < SEEN);
        assert_eq!(clock.correct(until), None);
        let passed = clock.monotonic(until + second) - clock.monotonic(until);
        assert_eq!(passed, second + 500_000);
        // The offset of an emulator that begins is that of its wall clock.
        clock.step(5 * second as i64);
        clock.begin(until);
        assert_eq!(clock.correct(until), None);
        assert_eq!(clock.zero(until), zero + 4 * second as i64);
    }
}
