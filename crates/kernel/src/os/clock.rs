//! The clocks of Erlang programs, and the rules of local time. All times that Erlang code sees come
//! from here, and so do the deadlines of timers. Whatever decides what a program sees is measured
//! with these clocks, so virtual time decides it for the race finder. (The standard library's
//! `Instant` is for durations that only threads of the runtime itself see: the tidy test has the
//! list.)
//!
//! There are three clocks, all in nanoseconds (the runtime's native time unit):
//! * OS system time: the wall clock as it is, which may leap.
//! * Erlang monotonic time: counts from [`START`] when the runtime starts, and never goes back.
//! * Erlang system time: Erlang monotonic time plus [`offset`].
//!
//! The offset is fixed when the runtime starts, as in time warp mode `no_time_warp`. In mode
//! `single_time_warp` a program may set it once more ([`settle`]). The monotonic clock is the
//! operating system's, which disciplines it; its frequency is not corrected here.
//!
//! # Orderings
//! `SETTLED` is stored with release after `SHIFT`, and read with acquire by [`is_settled`]. So a
//! program that has seen the offset as final reads the final offset. The last value of `now_micros`
//! is one word, which each call replaces by a greater one. Its results therefore differ and grow in
//! the order of the replacements; no other memory depends on it, and the stronger ordering is not
//! needed.

use crate::sync::Mutex;
use purlin_term::release::{self, SUMMER_IF_THERE_IS};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// Native time units in a second.
pub const UNIT: i64 = 1_000_000_000;
/// Erlang monotonic time at the start of the runtime: whole seconds, near the smallest small
/// integer.
pub const START: i64 = -576_460_752 * UNIT;

struct Base {
    /// The OS monotonic clock when the runtime started.
    monotonic: i64,
    /// Erlang system time minus Erlang monotonic time.
    offset: i64,
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `t` is valid for the result; both clocks exist on all supported systems.
    unsafe { libc::clock_gettime(clock, &mut t) };
    (t.tv_sec as i64)
        .saturating_mul(UNIT)
        .saturating_add(t.tv_nsec as i64)
}

#[inline]
fn base() -> &'static Base {
    static BASE: OnceLock<Base> = OnceLock::new();
    BASE.get_or_init(|| Base {
        monotonic: read(libc::CLOCK_MONOTONIC),
        offset: match crate::os::exploring::on() {
            true => crate::os::exploring::started(),
            false => read(libc::CLOCK_REALTIME),
        } - START,
    })
}

/// Starts Erlang monotonic time. Called when the runtime starts; otherwise the first reading does
/// it.
#[inline]
pub fn init() {
    base();
}

/// Nanoseconds since the runtime started: the time of timers.
#[inline]
pub fn elapsed() -> i64 {
    if crate::os::exploring::on() {
        return crate::os::exploring::now();
    }
    let b = base();
    read(libc::CLOCK_MONOTONIC) - b.monotonic
}

/// Returns the time of timers that lies that long ahead.
pub fn after(time: Duration) -> i64 {
    let ns = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    elapsed().saturating_add(ns)
}

/// Returns the time that is left until a time of timers.
pub fn left_until(at: i64) -> Duration {
    let ns = u64::try_from(at.saturating_sub(elapsed())).unwrap_or(0);
    Duration::from_nanos(ns)
}

/// Waits that long, on the thread that calls it. Virtual time passes meanwhile, too.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
    if crate::os::exploring::on() {
        crate::os::exploring::jump(after(time));
    }
}

/// Moves virtual time to a time of timers, since nothing else can happen before. Real time passes
/// by itself.
pub fn skip_to(at: i64) {
    if crate::os::exploring::on() {
        crate::os::exploring::jump(at);
    }
}

/// Erlang monotonic time.
#[inline]
pub fn monotonic() -> i64 {
    START + elapsed()
}

/// Nanoseconds added to the initial offset.
static SHIFT: AtomicI64 = AtomicI64::new(0);
static SETTLED: AtomicBool = AtomicBool::new(false);
/// Lets one thread settle the offset at a time.
static SETTLING: Mutex<()> = Mutex::new(());

/// Erlang system time minus Erlang monotonic time.
#[inline]
pub fn offset() -> i64 {
    base().offset + SHIFT.load(Ordering::Relaxed)
}

/// Sets Erlang system time to the wall clock, to the microsecond, and returns the new offset. Only
/// the first call has an effect; later ones return None.
pub fn settle() -> Option<i64> {
    let _one = SETTLING.lock();
    if SETTLED.load(Ordering::Relaxed) {
        return None;
    }
    let offset = (os_system() - monotonic()).div_euclid(1000) * 1000;
    SHIFT.store(offset - base().offset, Ordering::Relaxed);
    SETTLED.store(true, Ordering::Release);
    Some(offset)
}

/// Whether [`settle`] was called.
pub fn is_settled() -> bool {
    SETTLED.load(Ordering::Acquire)
}

/// Erlang system time.
#[inline]
pub fn system() -> i64 {
    monotonic() + offset()
}

/// OS system time: nanoseconds since 1970.
#[inline]
pub fn os_system() -> i64 {
    if crate::os::exploring::on() {
        return crate::os::exploring::started() + crate::os::exploring::now();
    }
    read(libc::CLOCK_REALTIME)
}

/// A high-resolution counter, in [`UNIT`]s a second, unrelated to the other clocks.
#[inline]
pub fn perf_counter() -> i64 {
    if crate::os::exploring::on() {
        return crate::os::exploring::now();
    }
    read(libc::CLOCK_MONOTONIC)
}

/// Processor time of all threads of this operating-system process, in nanoseconds.
#[inline]
pub fn cpu_time() -> i64 {
    if crate::os::exploring::on() {
        return crate::os::exploring::now();
    }
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of this thread, in nanoseconds.
pub fn thread_time() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Erlang system time in microseconds, greater than at any call before (`erlang:now/0`).
pub fn now_micros() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let now = system().div_euclid(1000);
    let last = LAST
        .try_update(Ordering::SeqCst, Ordering::SeqCst, |last| {
            Some(now.max(last + 1))
        })
        .unwrap_or_else(|last| last);
    now.max(last + 1)
}

/// A date and a time of day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DateTime {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

const DAY_SECONDS: i64 = 86_400;
/// Days from the first of March of the year 0 to the first of January 1970.
const EPOCH_DAYS: i64 = 719_468;

#[inline]
fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl DateTime {
    /// Whether it is a date of the calendar, from `first_year` on.
    #[inline]
    pub fn is_valid(&self, first_year: i64) -> bool {
        (first_year..i32::MAX as i64).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..60).contains(&self.second)
    }

    /// Returns the universal time at `seconds` since 1970. Internally years start in March, so that
    /// the leap day comes last.
    pub fn from_posix(seconds: i64) -> DateTime {
        let of_day = seconds.rem_euclid(DAY_SECONDS);
        let days = seconds.div_euclid(DAY_SECONDS) + EPOCH_DAYS;
        let before = |y: i64| 365 * y + y / 4 - y / 100 + y / 400;
        // The divisions truncate on purpose: so do stock's for dates before the year 0.
        let mut year = (10_000 * days + 14_780) / 3_652_425;
        if days - before(year) < 0 {
            year -= 1;
        }
        let day = days - before(year);
        let month = (100 * day + 52) / 3060;
        DateTime {
            year: year + (month + 2) / 12,
            month: (month + 2) % 12 + 1,
            day: day - (306 * month + 5) / 10 + 1,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    /// Returns the seconds since 1970 of this universal time. The date must be valid and not before
    /// 1600.
    pub fn to_posix(&self) -> i64 {
        // Years start in March here too.
        let (y, m) = if self.month > 2 {
            (self.year, self.month - 3)
        } else {
            (self.year - 1, self.month + 9)
        };
        let days =
            365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + self.day - 1 - EPOCH_DAYS;
        days * DAY_SECONDS + self.hour * 3600 + self.minute * 60 + self.second
    }

    fn from_tm(t: &libc::tm) -> DateTime {
        DateTime {
            year: t.tm_year as i64 + 1900,
            month: t.tm_mon as i64 + 1,
            day: t.tm_mday as i64,
            hour: t.tm_hour as i64,
            minute: t.tm_min as i64,
            second: t.tm_sec as i64,
        }
    }

    /// The universal time now.
    #[inline]
    pub fn universal_now() -> DateTime {
        DateTime::from_posix(os_system().div_euclid(UNIT))
    }

    /// The local time now; universal time if there is no data on the zone.
    #[inline]
    pub fn local_now() -> DateTime {
        let seconds = os_system().div_euclid(UNIT);
        DateTime::local(seconds).unwrap_or_else(|| DateTime::from_posix(seconds))
    }

    /// Returns the local time at `seconds` since 1970; None if it cannot be represented.
    #[inline]
    pub fn local(seconds: i64) -> Option<DateTime> {
        read_zone();
        let mut tm = empty_tm();
        // SAFETY: both pointers are valid for the call; the result is `tm` or null.
        let ok = unsafe { !libc::localtime_r(&(seconds as libc::time_t), &mut tm).is_null() };
        ok.then(|| DateTime::from_tm(&tm))
    }

    /// Returns the universal time of this local time. `dst`: 1 for daylight saving time, 0 for
    /// standard time, -1 for whichever applies. None if there is no such time.
    pub fn local_to_universal(&self, dst: i32) -> Option<DateTime> {
        let dst = match release::has(SUMMER_IF_THERE_IS) && !has_summer_time() {
            true => 0,
            false => dst,
        };
        let seconds = self.mktime(dst).or_else(|| {
            // A zone without daylight saving time may refuse the flag; then try without it.
            if dst != 0 { self.mktime(0) } else { None }
        })?;
        let mut tm = empty_tm();
        // SAFETY: both pointers are valid for the call; the result is `tm` or null.
        let ok = unsafe { !libc::gmtime_r(&seconds, &mut tm).is_null() };
        ok.then(|| DateTime::from_tm(&tm))
    }

    fn mktime(&self, dst: i32) -> Option<libc::time_t> {
        let try_at = |second: i64| {
            let mut tm = empty_tm();
            tm.tm_year = i32::try_from(self.year - 1900).ok()?;
            tm.tm_mon = self.month as i32 - 1;
            tm.tm_mday = self.day as i32;
            tm.tm_hour = self.hour as i32;
            tm.tm_min = self.minute as i32;
            tm.tm_sec = second as i32;
            tm.tm_isdst = dst;
            // SAFETY: `tm` is valid and initialised.
            Some(unsafe { libc::mktime(&mut tm) })
        };
        match try_at(self.second)? {
            // -1 means failure, or the last second of 1969; the second before tells which.
            -1 if try_at(self.second - 1)? != -2 => None,
            t => Some(t),
        }
    }
}

#[inline]
fn empty_tm() -> libc::tm {
    // SAFETY: integers and a pointer that may be null.
    unsafe { std::mem::zeroed() }
}

/// Whether the zone has, or ever had, summer time.
fn has_summer_time() -> bool {
    unsafe extern "C" {
        static daylight: libc::c_int;
    }
    read_zone();
    // SAFETY: an integer of the C library that is written once, when the zone is read, which is
    // done above.
    unsafe { daylight != 0 }
}

/// Reads the zone once: `localtime_r` need not do it itself.
#[inline]
fn read_zone() {
    unsafe extern "C" {
        fn tzset();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: reads the environment, which the runtime never changes (it keeps its variables
    // elsewhere).
    ONCE.call_once(|| unsafe { tzset() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_advance_and_agree() {
        let a = monotonic();
        let b = monotonic();
        assert!(START <= a && a <= b);
        assert!((system() - os_system()).abs() < UNIT);
        let (p, q) = (now_micros(), now_micros());
        assert!(p < q);
    }

    #[test]
    fn dates_go_there_and_back() {
        for seconds in (-11_000_000_000..60_000_000_000i64).step_by(86_399 * 7) {
            let d = DateTime::from_posix(seconds);
            assert!(d.is_valid(1600), "{seconds}: {d:?}");
            assert_eq!(d.to_posix(), seconds, "{d:?}");
        }
    }
}
