//! Answers as profiles for other tools: `pprof` (gzip-compressed protocol buffers), Speedscope, and
//! lines for flame graphs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use purlin_diagnostics::json::Json;
use purlin_diagnostics::protobuf::Message;

use super::{at, causes, number, word};

/// The measured quantity, and its unit.
const MEASURES: &[(&str, &str)] = &[
    ("copied", "bytes"),
    ("allocated", "bytes"),
    ("kept_by_collections", "bytes"),
    ("written", "bytes"),
    ("work", "reductions"),
    ("waited", "nanoseconds"),
    // pprof shows the last one by default.
    ("time", "nanoseconds"),
];

/// Index in [`MEASURES`] of a kind of cause.
fn measure(kind: &str) -> usize {
    match kind {
        "allocation" => 1,
        "collection" => 2,
        "write" => 3,
        "work" => 4,
        "ready" | "receive" | "connection" | "idle" | "busy" | "dirty_queue" | "lock" => 5,
        "time" => 6,
        _ => 0,
    }
}

struct Sample<'a> {
    measure: usize,
    kind: &'a str,
    times: f64,
    value: f64,
    /// Frames, innermost first.
    stack: &'a [Json],
}

fn samples(answer: &Json) -> Vec<Sample<'_>> {
    let whole = match word(answer, &["topic"]) {
        "profile" => answer.get("samples"),
        _ => at(answer, &["profile", "samples"]),
    };
    let listed: Vec<&Json> = match whole {
        Some(list) => list.list().iter().collect(),
        None => [
            "copies",
            "allocation",
            "collections",
            "work",
            "latency",
            "writes",
        ]
        .iter()
        .flat_map(|topic| causes(answer, topic))
        .collect(),
    };
    let sample = |c| {
        let value = match c {
            c if at(c, &["value"]).is_some() => number(c, &["value"]),
            c if at(c, &["seconds"]).is_some() => 1e9 * number(c, &["seconds"]),
            c if at(c, &["reductions"]).is_some() => number(c, &["reductions"]),
            c => number(c, &["bytes"]) + number(c, &["moved_bytes"]),
        };
        let kind = word(c, &["kind"]);
        Sample {
            measure: measure(kind),
            kind,
            times: number(c, &["times"]),
            value,
            stack: c.get("stack").map_or(&[][..], Json::list),
        }
    };
    let all = listed.into_iter().map(sample);
    all.filter(|s| s.value >= 1.0).collect()
}

fn frame(f: &Json) -> String {
    match number(f, &["line"]) {
        0.0 => word(f, &["function"]).to_string(),
        n => format!("{}:{n}", word(f, &["function"])),
    }
}

/// A line for each stack, outermost frame first, with its kind and value.
pub fn collapsed(answer: &Json) -> String {
    let mut text = String::new();
    for s in samples(answer) {
        let mut frames: Vec<String> = s.stack.iter().rev().map(frame).collect();
        frames.push(s.kind.to_string());
        let frames: Vec<String> = frames
            .iter()
            .map(|f| f.replace([';', ' ', '\n'], "_"))
            .collect();
        let _ = writeln!(text, "{} {:.0}", frames.join(";"), s.value);
    }
    text
}

/// A profile for each measure, in Speedscope's file format.
pub fn speedscope(answer: &Json) -> Json {
    let mut frames: Vec<Json> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut profiles = Vec::new();
    let all = samples(answer);
    for (m, (name, unit)) in MEASURES.iter().enumerate() {
        let (mut stacks, mut weights, mut sum) = (Vec::new(), Vec::new(), 0.0);
        for s in all.iter().filter(|s| s.measure == m) {
            let mut stack: Vec<Json> = Vec::new();
            let named = s.stack.iter().rev().map(|f| (frame(f), Some(f)));
            for (name, of) in named.chain([(s.kind.to_string(), None)]) {
                let place = *places.entry(name.clone()).or_insert_with(|| {
                    let file = of.and_then(|f| at(f, &["file"])).cloned();
                    let line = of.and_then(|f| at(f, &["line"])).cloned();
                    let mut pairs = vec![("name".to_string(), Json::from(name))];
                    pairs.extend([("file", file), ("line", line)].into_iter().filter_map(
                        |(k, v)| Some((k.to_string(), v.filter(|v| *v != Json::Null)?)),
                    ));
                    frames.push(Json::Object(pairs));
                    frames.len() - 1
                });
                stack.push(place.into());
            }
            stacks.push(Json::List(stack));
            weights.push(Json::from(s.value));
            sum += s.value;
        }
        if stacks.is_empty() {
            continue;
        }
        let unit = match *unit {
            "reductions" => "none",
            unit => unit,
        };
        profiles.push(Json::object([
            ("type", "sampled".into()),
            ("name", (*name).into()),
            ("unit", unit.into()),
            ("startValue", 0u64.into()),
            ("endValue", sum.into()),
            ("samples", Json::List(stacks)),
            ("weights", Json::List(weights)),
        ]));
    }
    Json::object([
        (
            "$schema",
            "https://www.speedscope.app/file-format-schema.json".into(),
        ),
        ("exporter", "purlin".into()),
        ("name", "purlin explain".into()),
        ("activeProfileIndex", 0u64.into()),
        ("shared", Json::object([("frames", Json::List(frames))])),
        ("profiles", Json::List(profiles)),
    ])
}

#[derive(Default)]
struct Strings {
    list: Vec<String>,
    places: HashMap<String, u64>,
}

impl Strings {
    fn place(&mut self, text: &str) -> u64 {
        if let Some(&n) = self.places.get(text) {
            return n;
        }
        let n = self.list.len() as u64;
        self.list.push(text.to_string());
        self.places.insert(text.to_string(), n);
        n
    }
}

/// A profile for `pprof`, compressed as it expects.
pub fn pprof(answer: &Json) -> Vec<u8> {
    let mut strings = Strings::default();
    strings.place("");
    let mut profile = Message::default();
    let types = MEASURES.iter().copied();
    for (name, unit) in std::iter::once(("events", "count")).chain(types) {
        let mut m = Message::default();
        m.number(1, strings.place(name));
        m.number(2, strings.place(unit));
        profile.message(1, m);
    }
    let mut functions: HashMap<(String, String), u64> = HashMap::new();
    let mut locations: HashMap<(u64, u64), u64> = HashMap::new();
    let mut tables = Message::default();
    for s in samples(answer) {
        let mut stack = Vec::new();
        for f in s.stack {
            let name = word(f, &["function"]).to_string();
            let file = word(f, &["file"]).to_string();
            let line = number(f, &["line"]) as u64;
            let next = functions.len() as u64 + 1;
            let function = *functions
                .entry((name.clone(), file.clone()))
                .or_insert_with(|| {
                    let mut m = Message::default();
                    m.number(1, next);
                    m.number(2, strings.place(&name));
                    m.number(3, strings.place(&name));
                    m.number(4, strings.place(&file));
                    tables.message(5, m);
                    next
                });
            let next = locations.len() as u64 + 1;
            let location = *locations.entry((function, line)).or_insert_with(|| {
                let mut l = Message::default();
                l.number(1, function);
                l.number(2, line);
                let mut m = Message::default();
                m.number(1, next);
                m.message(4, l);
                tables.message(4, m);
                next
            });
            stack.push(location);
        }
        let mut m = Message::default();
        m.packed(1, stack.into_iter());
        let values = (0..MEASURES.len()).map(|i| match i == s.measure {
            true => s.value as u64,
            false => 0,
        });
        m.packed(2, std::iter::once(s.times as u64).chain(values));
        // The kind is no frame, so that functions have their own costs.
        let mut label = Message::default();
        label.number(1, strings.place("kind"));
        label.number(2, strings.place(s.kind));
        m.message(3, label);
        profile.message(2, m);
    }
    profile.append(tables);
    let uptime = (1e9 * number(answer, &["uptime_s"])) as u64;
    profile.number(10, uptime);
    for text in &strings.list {
        profile.bytes(6, text.as_bytes());
    }
    gzip(&profile.finish())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = to.write_all(bytes);
    to.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn answer() -> Json {
        let frame = |name: &str, line: u64| {
            Json::object([
                ("function", name.into()),
                ("file", "a.erl".into()),
                ("line", line.into()),
            ])
        };
        let sample = |kind: &str, value: u64| {
            Json::object([
                ("kind", kind.into()),
                ("value", value.into()),
                ("times", 2u64.into()),
                (
                    "stack",
                    Json::List(vec![frame("a:inner/1", 7), frame("a:outer/0", 3)]),
                ),
            ])
        };
        let list = vec![sample("spawn", 300), sample("work", 5), sample("ready", 0)];
        Json::object([("topic", "profile".into()), ("samples", Json::List(list))])
    }

    #[test]
    fn stacks_are_lines_outermost_first() {
        assert_eq!(
            collapsed(&answer()),
            "a:outer/0:3;a:inner/1:7;spawn 300\na:outer/0:3;a:inner/1:7;work 5\n"
        );
    }

    #[test]
    fn speedscope_has_a_profile_for_each_measure() {
        let all = speedscope(&answer());
        let profiles = all.get("profiles").expect("has them").list();
        assert_eq!(profiles.len(), 2);
        assert_eq!(number(&profiles[0], &["endValue"]), 300.0);
        let frames = at(&all, &["shared", "frames"]).expect("has them").list();
        // Both functions, and both kinds.
        assert_eq!(frames.len(), 4);
        let stack = profiles[1].get("samples").expect("has them").list()[0].list();
        assert_eq!(stack.len(), 3);
    }

    /// Fields of a message: number and content.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut n = 0;
            for shift in (0..).step_by(7) {
                let b = bytes[0];
                *bytes = &bytes[1..];
                n |= u64::from(b & 0x7f) << shift;
                if b < 0x80 {
                    break;
                }
            }
            n
        }
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => varint(&mut bytes).to_le_bytes().to_vec(),
                2 => {
                    let n = varint(&mut bytes) as usize;
                    let (value, rest) = bytes.split_at(n);
                    bytes = rest;
                    value.to_vec()
                }
                other => panic!("no wire type {other}"),
            };
            all.push((tag >> 3, value));
        }
        all
    }

    #[test]
    fn pprof_is_a_profile() {
        let mut profile = Vec::new();
        flate2::read::GzDecoder::new(&pprof(&answer())[..])
            .read_to_end(&mut profile)
            .expect("is compressed");
        let all = fields(&profile);
        let of = |n: u64| all.iter().filter(|f| f.0 == n).count();
        assert_eq!((of(1), of(2)), (MEASURES.len() + 1, 2));
        assert_eq!((of(4), of(5)), (2, 2));
        let strings: Vec<&[u8]> = all.iter().filter(|f| f.0 == 6).map(|f| &f.1[..]).collect();
        assert_eq!(strings[0], b"");
        for text in ["a:inner/1", "kind", "spawn"] {
            assert!(strings.contains(&text.as_bytes()));
        }
    }
}
