//! Differences between two answers, and checks for automation: `--fail-if 'copied > 10%'`.

use std::fmt::Write as _;

use purlin_diagnostics::json::Json;

use super::text::bytes;
use super::{at, causes, number, site, word};

/// A measure for comparison, and its place in an answer: in that of `run`, and in that of the
/// topic.
const MEASURES: &[(&str, &[&str], &str)] = &[
    ("copied", &["copies", "bytes"], "copies"),
    ("moved", &["copies", "totals", "moved_bytes"], "copies"),
    ("shared", &["copies", "totals", "shared_bytes"], "copies"),
    ("allocated", &["allocation", "bytes"], "allocation"),
    ("resident", &["memory", "resident_bytes"], "memory"),
    ("peak", &["memory", "peak_bytes"], "memory"),
];

fn measured(answer: &Json, measure: &(&str, &[&str], &str)) -> Option<f64> {
    let (_, path, topic) = measure;
    let path = match word(answer, &["topic"]) {
        "run" => path,
        own if own == *topic => &path[1..],
        _ => return None,
    };
    at(answer, path).and_then(Json::number)
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Limit {
    Bytes(f64),
    /// A limit of growth.
    Percent(f64),
}

/// A condition that is reported if it holds.
#[derive(PartialEq, Debug)]
pub struct Check {
    measure: usize,
    above: bool,
    limit: Limit,
}

impl Check {
    /// Parses `copied > 10%`, `peak < 100MB`.
    pub fn of(text: &str) -> Result<Check, String> {
        let unclear = || format!("--fail-if takes 'MEASURE > NUMBER[%|kB|MB|GB]', not '{text}'");
        let place = text.find(['<', '>']).ok_or_else(unclear)?;
        let (name, limit) = (text[..place].trim(), text[place + 1..].trim());
        let measure = MEASURES.iter().position(|m| m.0 == name).ok_or_else(|| {
            let names: Vec<&str> = MEASURES.iter().map(|m| m.0).collect();
            format!("--fail-if knows no '{name}', but {}", names.join(", "))
        })?;
        let digits = limit.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-'));
        let (digits, unit) = limit.split_at(digits.unwrap_or(limit.len()));
        let n: f64 = digits.parse().map_err(|_| unclear())?;
        let limit = match unit.trim() {
            "%" => Limit::Percent(n),
            "" => Limit::Bytes(n),
            "kB" => Limit::Bytes(n * 1e3),
            "MB" => Limit::Bytes(n * 1e6),
            "GB" => Limit::Bytes(n * 1e9),
            "KiB" => Limit::Bytes(n * 1024.0),
            "MiB" => Limit::Bytes(n * 1048576.0),
            "GiB" => Limit::Bytes(n * 1073741824.0),
            _ => return Err(unclear()),
        };
        let above = text.as_bytes()[place] == b'>';
        Ok(Check {
            measure,
            above,
            limit,
        })
    }

    /// Describes the condition if it holds. An error: the answers do not contain the measure.
    pub fn failed(&self, answer: &Json, before: Option<&Json>) -> Result<Option<String>, String> {
        let row = &MEASURES[self.measure];
        let name = row.0;
        let missing = || format!("--fail-if {name}: the answer does not tell that");
        let now = measured(answer, row).ok_or_else(missing)?;
        let (value, limit, words) = match self.limit {
            Limit::Bytes(limit) => (now, limit, bytes(now)),
            Limit::Percent(limit) => {
                let before = before.ok_or_else(|| {
                    format!("--fail-if {name}: per cent of what? purlin explain diff BEFORE AFTER")
                })?;
                let then = measured(before, row).ok_or_else(missing)?;
                let grown = growth(then, now);
                (
                    grown,
                    limit,
                    format!("{grown:+.1}%, from {} to {}", bytes(then), bytes(now)),
                )
            }
        };
        let fails = if self.above {
            value > limit
        } else {
            value < limit
        };
        Ok(fails.then(|| format!("{name}: {words}")))
    }
}

/// Growth in per cent. From zero to anything else it is infinite.
fn growth(then: f64, now: f64) -> f64 {
    match (then, now) {
        (0.0, 0.0) => 0.0,
        (0.0, _) => f64::INFINITY,
        _ => 100.0 * (now - then) / then,
    }
}

/// A measure, with its old and new value.
pub type Difference = (&'static str, f64, f64);

pub fn differences(before: &Json, after: &Json) -> Vec<Difference> {
    let both =
        |m: &(&'static str, &[&str], &str)| Some((m.0, measured(before, m)?, measured(after, m)?));
    MEASURES.iter().filter_map(both).collect()
}

/// The lines whose copies have changed most.
fn lines(before: &Json, after: &Json, top: usize) -> Vec<(String, f64, f64)> {
    let mut all: Vec<(String, f64, f64)> = Vec::new();
    for topic in ["copies", "allocation"] {
        for (answer, is_after) in [(before, false), (after, true)] {
            for cause in causes(answer, topic) {
                let name = format!("{} at {}", word(cause, &["kind"]), site(cause));
                let n = number(cause, &["bytes"]) + number(cause, &["moved_bytes"]);
                let at = all.iter().position(|l| l.0 == name).unwrap_or_else(|| {
                    all.push((name, 0.0, 0.0));
                    all.len() - 1
                });
                if is_after {
                    all[at].2 += n;
                } else {
                    all[at].1 += n;
                }
            }
        }
    }
    all.retain(|l| l.1 != l.2);
    all.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
    all.truncate(top);
    all
}

pub fn text(found: &[Difference], before: &Json, after: &Json, top: usize) -> String {
    let mut text = format!(
        "{:<12}{:>14}{:>14}{:>12}\n",
        "", "before", "after", "change"
    );
    for (name, then, now) in found {
        let change = format!("{:+.1}%", growth(*then, *now));
        let _ = writeln!(
            text,
            "{name:<12}{:>14}{:>14}{change:>12}",
            bytes(*then),
            bytes(*now)
        );
    }
    for (name, then, now) in lines(before, after, top) {
        let sign = if now > then { '+' } else { '-' };
        let name = name.replace(|c: char| c.is_control(), "?");
        let _ = writeln!(text, "{sign}{} {name}", bytes((now - then).abs()));
    }
    text
}

pub fn json(found: &[Difference], before: &Json, after: &Json, top: usize) -> Json {
    let pair = |(name, then, now): (String, f64, f64)| {
        Json::object([
            ("what", name.into()),
            ("before", then.into()),
            ("after", now.into()),
        ])
    };
    let measures = found
        .iter()
        .map(|(name, then, now)| pair((name.to_string(), *then, *now)));
    let lines = lines(before, after, top).into_iter().map(pair);
    Json::object([
        ("schema", "purlin-explain-diff/1".into()),
        ("measures", Json::List(measures.collect())),
        ("lines", Json::List(lines.collect())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(copied: i64, peak: i64) -> Json {
        let copies = Json::object([("bytes", Json::Int(copied))]);
        let memory = Json::object([("peak_bytes", Json::Int(peak))]);
        Json::object([
            ("topic", "run".into()),
            ("copies", copies),
            ("memory", memory),
        ])
    }

    #[test]
    fn checks_are_read_and_made() {
        let fails = |check: &str, before: Option<&Json>| {
            Check::of(check)
                .expect("is one")
                .failed(&answer(1100, 5_000_000), before)
        };
        let before = answer(1000, 0);
        assert_eq!(fails("copied > 10%", Some(&before)), Ok(None));
        let told = fails("copied>9.5 %", Some(&before)).expect("is told");
        assert_eq!(
            told.as_deref(),
            Some("copied: +10.0%, from 1000 bytes to 1.07 KiB")
        );
        assert!(matches!(fails("copied < 20%", Some(&before)), Ok(Some(_))));
        assert!(matches!(fails("peak > 1000%", Some(&before)), Ok(Some(_))));
        assert!(matches!(fails("peak > 4MB", None), Ok(Some(_))));
        assert_eq!(fails("peak > 5 MiB", None), Ok(None));
        assert!(fails("copied > 10%", None).is_err());
        assert!(fails("allocated > 1", None).is_err());
        for wrong in [
            "",
            "copied",
            "copied > ",
            "copied > x",
            "speed > 1",
            "copied > 1 parsec",
            "> 3",
        ] {
            assert!(Check::of(wrong).is_err(), "{wrong}");
        }
    }
}
