//! Natives that read clocks, convert dates, and return unique integers. The clocks are those of
//! [`crate::clock`].

use crate::clock::{self, DateTime};
use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, ids, lazy_atoms};
use purlin_term::{Alloc, Term, am, arith};

lazy_atoms! {
    second = "second";
    seconds = "seconds";
    millisecond = "millisecond";
    milli_seconds = "milli_seconds";
    microsecond = "microsecond";
    micro_seconds = "micro_seconds";
    nanosecond = "nanosecond";
    nano_seconds = "nano_seconds";
    perf_counter = "perf_counter";
    positive = "positive";
    monotonic = "monotonic";
}

/// Converts from `native` time units to `unit`, rounding down.
fn convert(cx: &mut Cx, native: i64, unit: Term) -> BifResult {
    let per_second = match unit {
        u if u == am::NATIVE || u == perf_counter() || u == nanosecond() || u == nano_seconds() => {
            clock::UNIT
        }
        u if u == second() || u == seconds() => 1,
        u if u == millisecond() || u == milli_seconds() => 1000,
        u if u == microsecond() || u == micro_seconds() => 1_000_000,
        u => match u.as_small() {
            Some(n) if n > 0 => n,
            Some(_) => return Err(Fail::Badarg),
            None => return convert_big(cx, native, u),
        },
    };
    let v = (native as i128 * per_second as i128).div_euclid(clock::UNIT as i128);
    match i64::try_from(v) {
        Ok(v) => Ok(cx.int(v)),
        Err(_) => {
            let m = v.unsigned_abs();
            Ok(cx.big(v < 0, &[m as u64, (m >> 64) as u64]))
        }
    }
}

/// The same for a unit of which a second has more than a small integer can count.
fn convert_big(cx: &mut Cx, native: i64, unit: Term) -> BifResult {
    if !matches!(unit.as_big(), Some((false, _))) {
        return Err(Fail::Badarg);
    }
    let by = Term::small(clock::UNIT);
    let native = cx.int(native);
    let product = arith::mul(cx, native, unit).map_err(|_| Fail::SystemLimit)?;
    let rest = arith::int_rem(cx, product, by).map_err(|_| Fail::SystemLimit)?;
    let quotient = arith::int_div(cx, product, by).map_err(|_| Fail::SystemLimit)?;
    if rest.as_small().is_some_and(|r| r < 0) {
        return arith::sub(cx, quotient, Term::small(1)).map_err(|_| Fail::SystemLimit);
    }
    Ok(quotient)
}

fn monotonic_time_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(cx.int(clock::monotonic()))
}
fn monotonic_time_1(cx: &mut Cx, [unit]: [Term; 1]) -> BifResult {
    convert(cx, clock::monotonic(), unit)
}
fn system_time_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(cx.int(clock::system()))
}
fn system_time_1(cx: &mut Cx, [unit]: [Term; 1]) -> BifResult {
    convert(cx, clock::system(), unit)
}
fn time_offset_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(cx.int(clock::offset()))
}
fn time_offset_1(cx: &mut Cx, [unit]: [Term; 1]) -> BifResult {
    convert(cx, clock::offset(), unit)
}
fn os_system_time_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(cx.int(clock::os_system()))
}
fn os_system_time_1(cx: &mut Cx, [unit]: [Term; 1]) -> BifResult {
    convert(cx, clock::os_system(), unit)
}
fn perf_counter_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(cx.int(clock::perf_counter()))
}
fn unit_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(Term::small(clock::UNIT))
}

/// `{MegaSeconds, Seconds, MicroSeconds}`
fn timestamp(cx: &mut Cx, micros: i64) -> BifResult {
    let seconds = micros.div_euclid(1_000_000);
    Ok(cx.tuple(&[
        Term::small(seconds.div_euclid(1_000_000)),
        Term::small(seconds.rem_euclid(1_000_000)),
        Term::small(micros.rem_euclid(1_000_000)),
    ]))
}
fn timestamp_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    timestamp(cx, clock::system().div_euclid(1000))
}
fn now_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    timestamp(cx, clock::now_micros())
}
fn os_timestamp_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    timestamp(cx, clock::os_system().div_euclid(1000))
}

fn date_tuple(cx: &mut Cx, d: &DateTime) -> Term {
    cx.tuple(&[d.year, d.month, d.day].map(Term::small))
}
fn time_tuple(cx: &mut Cx, d: &DateTime) -> Term {
    cx.tuple(&[d.hour, d.minute, d.second].map(Term::small))
}
fn datetime(cx: &mut Cx, d: DateTime) -> BifResult {
    let (date, time) = (date_tuple(cx, &d), time_tuple(cx, &d));
    Ok(cx.tuple(&[date, time]))
}
/// `{{Year, Month, Day}, {Hour, Minute, Second}}`, of small integers.
fn parts(t: Term) -> Result<DateTime, Fail> {
    let three = |t: Term| match t.as_tuple() {
        Some(&[a, b, c]) => Some((a.as_small()?, b.as_small()?, c.as_small()?)),
        _ => None,
    };
    let find = || match t.as_tuple() {
        Some(&[date, time]) => {
            let (year, month, day) = three(date)?;
            let (hour, minute, second) = three(time)?;
            Some(DateTime {
                year,
                month,
                day,
                hour,
                minute,
                second,
            })
        }
        _ => None,
    };
    find().ok_or(Fail::Badarg)
}

/// First year for which local time is converted.
const FIRST_LOCAL_YEAR: i64 = 1902;
/// First year of universal time.
const FIRST_YEAR: i64 = 1600;

fn date_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(date_tuple(cx, &DateTime::local_now()))
}
fn time_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(time_tuple(cx, &DateTime::local_now()))
}
fn localtime_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    datetime(cx, DateTime::local_now())
}
fn universaltime_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    datetime(cx, DateTime::universal_now())
}
fn localtime_to_universaltime_2(cx: &mut Cx, [t, dst]: [Term; 2]) -> BifResult {
    let dst = match dst {
        d if d == am::TRUE => 1,
        d if d == am::FALSE => 0,
        d if d == am::UNDEFINED => -1,
        _ => return Err(Fail::Badarg),
    };
    let d = parts(t)?;
    if !d.is_valid(FIRST_LOCAL_YEAR) {
        return Err(Fail::Badarg);
    }
    let u = d.local_to_universal(dst).ok_or(Fail::Badarg)?;
    datetime(cx, u)
}
fn universaltime_to_localtime_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = parts(t)?;
    if !d.is_valid(FIRST_LOCAL_YEAR) {
        return Err(Fail::Badarg);
    }
    let l = DateTime::local(d.to_posix()).ok_or(Fail::Badarg)?;
    datetime(cx, l)
}
fn universaltime_to_posixtime_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let d = parts(t)?;
    if !d.is_valid(FIRST_YEAR) {
        return Err(Fail::Badarg);
    }
    Ok(cx.int(d.to_posix()))
}
fn posixtime_to_universaltime_1(cx: &mut Cx, [t]: [Term; 1]) -> BifResult {
    let seconds = arith::to_i64(t).ok_or(Fail::Badarg)?;
    datetime(cx, DateTime::from_posix(seconds))
}

fn unique_integer_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(ids::unique_integer(cx, ids::unique(), false))
}
fn unique_integer_1(cx: &mut Cx, [options]: [Term; 1]) -> BifResult {
    let (mut is_positive, mut is_monotonic) = (false, false);
    let mut rest = options;
    while let Some((o, t)) = rest.as_cons() {
        if o == positive() {
            is_positive = true;
        } else if o == monotonic() {
            is_monotonic = true;
        } else {
            return Err(Fail::Badarg);
        }
        cx.bump(1);
        rest = t;
    }
    if !rest.is_nil() {
        return Err(Fail::Badarg);
    }
    let n = match is_monotonic {
        true => ids::unique_monotonic(),
        false => ids::unique(),
    };
    Ok(ids::unique_integer(cx, n, is_positive))
}

bifs! {
    Plain "erlang":"monotonic_time"/0 = monotonic_time_0;
    Plain "erlang":"monotonic_time"/1 = monotonic_time_1;
    Plain "erlang":"system_time"/0 = system_time_0;
    Plain "erlang":"system_time"/1 = system_time_1;
    Plain "erlang":"time_offset"/0 = time_offset_0;
    Plain "erlang":"time_offset"/1 = time_offset_1;
    Plain "erlang":"timestamp"/0 = timestamp_0;
    Plain "erlang":"now"/0 = now_0;
    Plain "erlang":"date"/0 = date_0;
    Plain "erlang":"time"/0 = time_0;
    Plain "erlang":"localtime"/0 = localtime_0;
    Plain "erlang":"universaltime"/0 = universaltime_0;
    Plain "erlang":"localtime_to_universaltime"/2 = localtime_to_universaltime_2;
    Plain "erlang":"universaltime_to_localtime"/1 = universaltime_to_localtime_1;
    Plain "erlang":"universaltime_to_posixtime"/1 = universaltime_to_posixtime_1;
    Plain "erlang":"posixtime_to_universaltime"/1 = posixtime_to_universaltime_1;
    Plain "erlang":"unique_integer"/0 = unique_integer_0;
    Plain "erlang":"unique_integer"/1 = unique_integer_1;
    Plain "os":"system_time"/0 = os_system_time_0;
    Plain "os":"system_time"/1 = os_system_time_1;
    Plain "os":"timestamp"/0 = os_timestamp_0;
    Plain "os":"perf_counter"/0 = perf_counter_0;
    Plain "erts_internal":"time_unit"/0 = unit_0;
    Plain "erts_internal":"perf_counter_unit"/0 = unit_0;
}
