//! Heap snapshots: the file for Chrome's DevTools, and the differences of two.

use std::collections::HashMap;

use purlin_diagnostics::json::Json;

use super::text::{bytes, count, line, rest};
use super::{at, number, place, word};

/// How a file of this kind begins.
const BEGINS: &[u8] = b"{\"snapshot\":";
/// The form of the differences.
const SCHEMA: &str = "purlin-heap-diff/1";

/// Whether a file with this beginning is a heap snapshot.
pub fn is_snapshot(first: &[u8]) -> bool {
    first.starts_with(BEGINS)
}

/// Number of bytes that [`is_snapshot`] needs.
pub const BEGINNING: usize = BEGINS.len();

/// The answer as text: who holds most.
pub fn holders(text: &mut String, answer: &Json, top: usize) {
    let why = word(answer, &["not_taken"]);
    if !why.is_empty() {
        return line(text, format_args!("There is no snapshot: {why}"));
    }
    let n = |name: &str| number(answer, &[name]);
    line(
        text,
        format_args!(
            "{} in {} terms; processes were stopped for {:.1} ms, the snapshot took {:.2} s",
            bytes(n("bytes")),
            count(n("objects")),
            1000.0 * n("stopped_s"),
            n("took_s"),
        ),
    );
    if n("running") > 0.0 {
        line(
            text,
            format_args!(
                "{} processes were running, and were not looked into",
                count(n("running"))
            ),
        );
    }
    let list = answer.get("holders").map_or(&[][..], Json::list);
    for (i, h) in list.iter().take(top).enumerate() {
        line(
            text,
            format_args!(
                "{:>2}. {} in {} terms: {}",
                i + 1,
                bytes(number(h, &["bytes"])),
                count(number(h, &["terms"])),
                word(h, &["holder"])
            ),
        );
    }
    rest(text, 0.0, "holders");
    line(
        text,
        "--to FILE.heapsnapshot writes the snapshot for Chrome's DevTools (Memory, Load)",
    );
}

/// The parts by which a snapshot's nodes are summed up: the holder, what leads from it to them, and
/// their shape.
type Key = (String, String, String);

#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    terms: u64,
}

pub struct Snapshot {
    sums: HashMap<Key, Sum>,
    /// Bytes kept by the lines that made them.
    kept: HashMap<String, f64>,
    bytes: u64,
}

/// The name of a node, and the number of its terms.
fn name_and_count(name: &str) -> (&str, u64) {
    match name.rsplit_once(" \u{d7} ") {
        Some((name, n)) => n.parse().map_or((name, 1), |n| (name, n)),
        None => (name, 1),
    }
}

impl Snapshot {
    /// Reads a snapshot that Purlin has written; or says what is wrong with it.
    pub fn of(file: &Json) -> Result<Snapshot, String> {
        let numbers = |name: &str| -> Result<Vec<usize>, String> {
            let list = file.get(name).map_or(&[][..], Json::list).iter();
            list.map(|n| match n {
                Json::Int(n) => usize::try_from(*n).map_err(|_| "a negative number".to_string()),
                _ => Err(format!("{name} has more than numbers")),
            })
            .collect()
        };
        let fields = at(file, &["snapshot", "meta", "node_fields"]);
        if word(file, &["snapshot", "purlin", "schema"]) != "purlin-heap/1" {
            return Err("a heap snapshot, but not of Purlin".into());
        }
        let fields = fields.map_or(0, |f| f.list().len());
        let (nodes, edges) = (numbers("nodes")?, numbers("edges")?);
        let texts: Vec<&str> = file
            .get("strings")
            .map_or(&[][..], Json::list)
            .iter()
            .map(|t| t.text().unwrap_or_default())
            .collect();
        if fields < 5 || nodes.len() % fields != 0 || edges.len() % 3 != 0 {
            return Err("a damaged heap snapshot".into());
        }
        let damaged = || "a damaged heap snapshot".to_string();
        let text = |n: usize| texts.get(n).copied().ok_or_else(damaged);
        // The edges of each node begin where those of the one before end.
        let mut begins = Vec::with_capacity(nodes.len() / fields + 1);
        let mut sum = 0usize;
        for n in nodes.chunks(fields) {
            begins.push(sum);
            sum = sum.checked_add(n[4]).ok_or_else(damaged)?;
        }
        begins.push(sum);
        if sum != edges.len() / 3 {
            return Err(damaged());
        }
        let mut snapshot = Snapshot {
            sums: HashMap::new(),
            kept: HashMap::new(),
            bytes: 0,
        };
        let many = nodes.len() / fields;
        // Level by level: a node belongs to the holder that is nearest.
        let mut seen = vec![false; many];
        let mut level: Vec<(usize, usize, usize, usize)> = vec![(0, 0, 0, 0)];
        let mut depth = 0;
        if let Some(first) = seen.first_mut() {
            *first = true;
        }
        while !level.is_empty() {
            let mut next = Vec::new();
            for &(node, holder, by, by_kind) in &level {
                let n = &nodes[node * fields..][..fields];
                let (shape, terms) = name_and_count(text(n[1])?);
                let (holder_name, _) = name_and_count(text(nodes[holder * fields + 1])?);
                let leads = match (depth, by_kind) {
                    (0..=2, _) => String::new(),
                    (_, 1) => format!("element {by}"),
                    _ => text(by)?.to_string(),
                };
                let shape = match depth {
                    0..=2 => "itself",
                    _ => shape,
                };
                let key = (holder_name.to_string(), leads, shape.to_string());
                let sum = snapshot.sums.entry(key).or_default();
                sum.bytes += n[3] as u64;
                sum.terms += terms;
                snapshot.bytes += n[3] as u64;
                for e in edges[3 * begins[node]..3 * begins[node + 1]].chunks(3) {
                    if e[2] % fields != 0 || e[2] / fields >= many {
                        return Err(damaged());
                    }
                    let to = e[2] / fields;
                    if std::mem::replace(&mut seen[to], true) {
                        continue;
                    }
                    next.push(match depth {
                        0 | 1 => (to, to, 0, 0),
                        2 => (to, holder, e[1], e[0]),
                        _ => (to, holder, by, by_kind),
                    });
                }
            }
            level = next;
            depth += 1;
        }
        let kept = at(file, &["snapshot", "purlin", "kept"]);
        for k in kept.map_or(&[][..], Json::list) {
            let site = place(k.get("site").unwrap_or(&Json::Null));
            *snapshot.kept.entry(site).or_default() += number(k, &["bytes"]);
        }
        Ok(snapshot)
    }
}

/// A difference of two snapshots.
pub struct Differences {
    before: u64,
    after: u64,
    grown: Vec<(Key, Sum, Sum)>,
    kept: Vec<(String, f64, f64)>,
}

/// Returns what grew from one snapshot to another, most first.
pub fn differences(before: &Snapshot, after: &Snapshot) -> Differences {
    let mut grown: Vec<(Key, Sum, Sum)> = after
        .sums
        .iter()
        .map(|(k, now)| {
            let was = before.sums.get(k).copied().unwrap_or_default();
            (k.clone(), was, *now)
        })
        .filter(|(_, was, now)| now.bytes > was.bytes)
        .collect();
    grown.sort_by(|a, b| {
        let by = |d: &(Key, Sum, Sum)| d.2.bytes - d.1.bytes;
        (by(b), &a.0).cmp(&(by(a), &b.0))
    });
    let mut kept: Vec<(String, f64, f64)> = after
        .kept
        .iter()
        .map(|(k, now)| (k.clone(), before.kept.get(k).copied().unwrap_or(0.0), *now))
        .filter(|(_, was, now)| now > was)
        .collect();
    kept.sort_by(|a, b| {
        let by = |d: &(String, f64, f64)| d.2 - d.1;
        by(b).total_cmp(&by(a)).then_with(|| a.0.cmp(&b.0))
    });
    Differences {
        before: before.bytes,
        after: after.bytes,
        grown,
        kept,
    }
}

impl Differences {
    pub fn text(&self, top: usize) -> String {
        let mut text = String::new();
        line(
            &mut text,
            format_args!(
                "{} before, {} after. What grew:",
                bytes(self.before as f64),
                bytes(self.after as f64)
            ),
        );
        for (i, ((holder, by, what), was, now)) in self.grown.iter().take(top).enumerate() {
            let terms = now.terms.saturating_sub(was.terms);
            let terms = match terms {
                0 => String::new(),
                n => format!(" in {} more terms", count(n as f64)),
            };
            line(
                &mut text,
                format_args!(
                    "{:>2}. {}{terms}: {holder}",
                    i + 1,
                    bytes((now.bytes - was.bytes) as f64)
                ),
            );
            let by = match by.is_empty() {
                true => String::new(),
                false => format!("{by}: "),
            };
            line(&mut text, format_args!("    {by}{what}"));
        }
        rest(
            &mut text,
            self.grown.len() as f64 - self.grown.len().min(top) as f64,
            "groups",
        );
        if !self.kept.is_empty() {
            line(
                &mut text,
                "Lines whose terms collections have kept more of:",
            );
        }
        for (site, was, now) in self.kept.iter().take(top) {
            line(
                &mut text,
                format_args!("    {} at {site}", bytes(now - was)),
            );
        }
        text
    }
    pub fn json(&self, top: usize) -> Json {
        let grown = self
            .grown
            .iter()
            .take(top)
            .map(|((holder, by, what), was, now)| {
                Json::object([
                    ("holder", holder.as_str().into()),
                    ("by", by.as_str().into()),
                    ("what", what.as_str().into()),
                    ("before_bytes", was.bytes.into()),
                    ("after_bytes", now.bytes.into()),
                    ("before_terms", was.terms.into()),
                    ("after_terms", now.terms.into()),
                ])
            });
        let kept = self.kept.iter().take(top).map(|(site, was, now)| {
            Json::object([
                ("site", site.as_str().into()),
                ("before_bytes", (*was).into()),
                ("after_bytes", (*now).into()),
            ])
        });
        Json::object([
            ("schema", SCHEMA.into()),
            ("before_bytes", self.before.into()),
            ("after_bytes", self.after.into()),
            ("grown", Json::List(grown.collect())),
            ("kept", Json::List(kept.collect())),
        ])
    }
}
