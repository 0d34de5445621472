//! Profiles of a window of time, and differences between two profiles in pprof's format.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Read;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use purlin_diagnostics::json::Json;
use purlin_diagnostics::protobuf::{Field, Fields, field, numbers};

use super::text::{count, line};
use super::{number, word};

/// Maximum size of an unpacked profile, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Parses a duration: `10s`, `500ms`, `2m`; seconds without a unit.
pub fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = text.split_at(unit.unwrap_or(text.len()));
    let n: u64 = digits.parse().ok()?;
    let ms = match unit {
        "" | "s" => n.checked_mul(1000)?,
        "ms" => n,
        "m" | "min" => n.checked_mul(60_000)?,
        _ => return None,
    };
    // A day.
    (1..=86_400_000)
        .contains(&ms)
        .then(|| Duration::from_millis(ms))
}

/// Returns the profile of the time between two answers to `profile`.
pub fn between(before: &Json, after: &Json) -> Json {
    let key = |s: &Json| {
        let stack = s.get("stack").map(Json::to_string).unwrap_or_default();
        format!("{} {stack}", word(s, &["kind"]))
    };
    let samples = |answer: &Json| {
        answer
            .get("samples")
            .map_or(Vec::new(), |s| s.list().to_vec())
    };
    let then: HashMap<String, (f64, f64)> = samples(before)
        .iter()
        .map(|s| (key(s), (number(s, &["value"]), number(s, &["times"]))))
        .collect();
    let since = samples(after).into_iter().filter_map(|s| {
        let (value, times) = then.get(&key(&s)).copied().unwrap_or_default();
        let value = number(&s, &["value"]) - value;
        let times = number(&s, &["times"]) - times;
        (value > 0.0).then(|| {
            Json::object([
                ("kind", word(&s, &["kind"]).into()),
                ("value", value.into()),
                ("times", times.max(0.0).into()),
                ("stack", s.get("stack").cloned().unwrap_or(Json::Null)),
            ])
        })
    });
    let list: Vec<Json> = since.collect();
    let mut window = after.clone();
    if let Json::Object(pairs) = &mut window
        && let Some((_, samples)) = pairs.iter_mut().find(|(name, _)| name == "samples")
    {
        *samples = Json::List(list);
    }
    let seconds = number(after, &["uptime_s"]) - number(before, &["uptime_s"]);
    timed(window, seconds)
}

/// The profile as one of that many seconds.
pub fn timed(mut profile: Json, seconds: f64) -> Json {
    if let Json::Object(pairs) = &mut profile {
        for (_, value) in pairs.iter_mut().filter(|(name, _)| name == "uptime_s") {
            *value = seconds.into();
        }
    }
    profile
}

/// A profile in pprof's format, as far as differences need it.
pub struct Profile {
    /// Names and units of the measures.
    measures: Vec<(String, String)>,
    /// Sums by the innermost function and line, one for each measure.
    places: HashMap<String, Vec<f64>>,
}

/// Whether these bytes begin a compressed file.
pub fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

impl Profile {
    /// Reads a compressed profile. The error is the rest of a sentence about the file.
    pub fn read(file: impl Read) -> Result<Profile, String> {
        let mut bytes = Vec::new();
        let unpacked = MultiGzDecoder::new(file);
        unpacked
            .take(MOST_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| format!("damaged: {e}"))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err("too large for a profile".into());
        }
        Profile::decode(&bytes).ok_or_else(|| "no profile of pprof, or damaged".into())
    }

    fn decode(bytes: &[u8]) -> Option<Profile> {
        let all = Fields::of(bytes).all()?;
        let messages = |number: u64| {
            all.iter().filter_map(move |f| match f {
                (n, Field::Bytes(b)) if *n == number => Some(*b),
                _ => None,
            })
        };
        let strings: Vec<String> = messages(6)
            .map(|b| String::from_utf8_lossy(b).into_owned())
            .collect();
        let text = |n: u64| strings.get(usize::try_from(n).ok()?).cloned();
        let mut measures = Vec::new();
        for b in messages(1) {
            let m = Fields::of(b).all()?;
            measures.push((text(field(&m, 1))?, text(field(&m, 2))?));
        }
        let mut functions = HashMap::new();
        for b in messages(5) {
            let m = Fields::of(b).all()?;
            functions.insert(field(&m, 1), (text(field(&m, 2))?, text(field(&m, 4))?));
        }
        let mut locations = HashMap::new();
        for b in messages(4) {
            let m = Fields::of(b).all()?;
            // The first line is that of the innermost inlined function.
            let line = m.iter().find_map(|f| match f {
                (4, Field::Bytes(b)) => Some(*b),
                _ => None,
            });
            let name = match line {
                None => format!("{:#x}", field(&m, 3)),
                Some(b) => {
                    let l = Fields::of(b).all()?;
                    let (name, file) = functions.get(&field(&l, 1))?;
                    match (file.as_str(), field(&l, 2)) {
                        ("", 0) => name.clone(),
                        (file, n) => format!("{name} line {n} ({file})"),
                    }
                }
            };
            locations.insert(field(&m, 1), name);
        }
        let mut places: HashMap<String, Vec<f64>> = HashMap::new();
        for b in messages(2) {
            let m = Fields::of(b).all()?;
            let values = numbers(&m, 2)?;
            if values.len() != measures.len() {
                return None;
            }
            let stack = numbers(&m, 1)?;
            let place = match stack.first() {
                Some(l) => locations.get(l)?,
                None => "an unknown place",
            };
            let sums = places
                .entry(place.to_string())
                .or_insert_with(|| vec![0.0; values.len()]);
            for (sum, v) in sums.iter_mut().zip(values) {
                *sum += v as i64 as f64;
            }
        }
        Some(Profile { measures, places })
    }

    /// The sums of a measure by place.
    fn of(&self, name: &str) -> HashMap<&str, f64> {
        let Some(i) = self.measures.iter().position(|m| m.0 == name) else {
            return HashMap::new();
        };
        let sums = self.places.iter();
        sums.map(|(place, v)| (place.as_str(), v[i])).collect()
    }
}

/// A measure's difference: its name and unit, both sums, and the places that changed most.
pub struct Difference {
    name: String,
    unit: String,
    before: f64,
    after: f64,
    places: Vec<(String, f64, f64)>,
}

/// Returns the differences of all measures that either profile has.
pub fn differences(before: &Profile, after: &Profile, top: usize) -> Vec<Difference> {
    let mut measures = after.measures.clone();
    let gone = before.measures.iter();
    measures.extend(
        gone.filter(|m| after.measures.iter().all(|n| n.0 != m.0))
            .cloned(),
    );
    let one = |(name, unit): (String, String)| {
        let (then, now) = (before.of(&name), after.of(&name));
        let mut places: Vec<(String, f64, f64)> = now
            .keys()
            .chain(then.keys().filter(|k| !now.contains_key(*k)))
            .map(|&k| {
                let value = |m: &HashMap<&str, f64>| m.get(k).copied().unwrap_or(0.0);
                (k.to_string(), value(&then), value(&now))
            })
            .filter(|p| p.1 != p.2)
            .collect();
        places.sort_by(|a, b| {
            let change = |p: &(String, f64, f64)| (p.2 - p.1).abs();
            change(b).total_cmp(&change(a)).then(a.0.cmp(&b.0))
        });
        places.truncate(top);
        Difference {
            before: then.values().sum(),
            after: now.values().sum(),
            name,
            unit,
            places,
        }
    };
    let all = measures.into_iter().map(one);
    all.filter(|d| d.before != 0.0 || d.after != 0.0).collect()
}

fn value(n: f64, unit: &str) -> String {
    match unit {
        "bytes" => super::text::bytes(n),
        "nanoseconds" => format!("{:.3} s", n / 1e9),
        "count" => count(n),
        unit => format!("{} {unit}", count(n)),
    }
}

pub fn text(all: &[Difference]) -> String {
    let mut text = String::new();
    for d in all {
        let change = match d.before {
            0.0 => "new".into(),
            before => format!("{:+.1} %", 100.0 * (d.after - before) / before),
        };
        line(
            &mut text,
            format_args!(
                "{}: {} before, {} after ({change})",
                d.name,
                value(d.before, &d.unit),
                value(d.after, &d.unit)
            ),
        );
        for (place, then, now) in &d.places {
            let sign = if now > then { '+' } else { '-' };
            let mut l = String::new();
            let _ = write!(
                l,
                "    {sign}{}  {place}",
                value((now - then).abs(), &d.unit)
            );
            line(&mut text, l);
        }
    }
    text
}

pub fn json(all: &[Difference]) -> Json {
    let place = |(place, then, now): &(String, f64, f64)| {
        Json::object([
            ("place", place.as_str().into()),
            ("before", (*then).into()),
            ("after", (*now).into()),
        ])
    };
    let measure = |d: &Difference| {
        Json::object([
            ("name", d.name.as_str().into()),
            ("unit", d.unit.as_str().into()),
            ("before", d.before.into()),
            ("after", d.after.into()),
            ("places", Json::List(d.places.iter().map(place).collect())),
        ])
    };
    Json::object([
        ("schema", "purlin-profile-diff/1".into()),
        ("measures", Json::List(all.iter().map(measure).collect())),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::profile_report::pprof;
    use super::*;

    fn answer(uptime: f64, values: &[(&str, &str, u64)]) -> Json {
        let sample = |(kind, function, value): &(&str, &str, u64)| {
            let frame = Json::object([
                ("function", (*function).into()),
                ("file", "a.erl".into()),
                ("line", 7u64.into()),
            ]);
            Json::object([
                ("kind", (*kind).into()),
                ("value", (*value).into()),
                ("times", 2u64.into()),
                ("stack", Json::List(vec![frame])),
            ])
        };
        Json::object([
            ("topic", "profile".into()),
            ("uptime_s", uptime.into()),
            ("samples", Json::List(values.iter().map(sample).collect())),
        ])
    }

    fn profile(values: &[(&str, &str, u64)]) -> Profile {
        let packed = pprof(&answer(1.0, values));
        Profile::read(&packed[..]).expect("is a profile")
    }

    #[test]
    fn durations_have_units() {
        for (text, ms) in [
            ("10s", Some(10_000)),
            ("7", Some(7000)),
            ("250ms", Some(250)),
            ("2m", Some(120_000)),
            ("0", None),
            ("s", None),
            ("-1s", None),
            ("1.5s", None),
            ("99999999999999999999s", None),
            ("2d", None),
        ] {
            assert_eq!(duration(text), ms.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn a_window_has_what_was_added() {
        let before = answer(10.0, &[("work", "m:f/1", 100), ("spawn", "m:f/1", 64)]);
        let after = answer(
            12.5,
            &[
                ("work", "m:f/1", 140),
                ("spawn", "m:f/1", 64),
                ("work", "m:g/0", 5),
            ],
        );
        let w = between(&before, &after);
        let list = w.get("samples").expect("has them").list();
        let values: Vec<f64> = list.iter().map(|s| number(s, &["value"])).collect();
        assert_eq!((values, number(&w, &["uptime_s"])), (vec![40.0, 5.0], 2.5));
    }

    #[test]
    fn differences_name_measures_and_places() {
        let a = profile(&[("allocation", "m:f/1", 1000), ("work", "m:g/0", 50)]);
        let b = profile(&[("allocation", "m:f/1", 5096), ("allocation", "m:h/2", 10)]);
        let text = text(&differences(&a, &b, 10));
        for part in [
            "allocated: 1000 bytes before, 4.99 KiB after (+410.6 %)",
            "+4.00 KiB  m:f/1 line 7 (a.erl)",
            "+10 bytes  m:h/2 line 7 (a.erl)",
            "work: 50 reductions before, 0 reductions after (-100.0 %)",
            "-50 reductions  m:g/0 line 7 (a.erl)",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let same = differences(&a, &a, 10);
        assert!(
            same.iter()
                .all(|d| d.places.is_empty() && d.before == d.after)
        );
    }

    #[test]
    fn damaged_profiles_are_refused() {
        let packed = pprof(&answer(
            1.0,
            &[("work", "m:f/1", 100), ("spawn", "m:g/0", 9)],
        ));
        for n in 0..packed.len() {
            assert!(Profile::read(&packed[..n]).is_err(), "{n}");
        }
        let mut body = Vec::new();
        MultiGzDecoder::new(&packed[..])
            .read_to_end(&mut body)
            .expect("is whole");
        for n in 0..body.len() {
            for bit in 0..8 {
                let mut bad = body.to_vec();
                bad[n] ^= 1 << bit;
                // No answer is wrong; that there is one is enough.
                let _ = Profile::decode(&bad);
            }
        }
        assert!(Profile::decode(&[0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]).is_none());
    }
}
