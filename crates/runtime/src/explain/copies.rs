//! Which lines copy, share and allocate.

use super::names;
use crate::accounts::{self, Captured, Entry, Kind, Sums};
use crate::json::Json;
use crate::message::sharing::{COPIED, MOVED, SHARED};
use purlin_term::atom;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// Frames of a stack that are told.
const STACK: usize = 8;
/// A message or argument of so many bytes, on the average, is worth a change.
const LARGE_BYTES: u64 = 4096;

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Message => "message",
        Kind::Spawn => "spawn",
        Kind::Exit => "exit",
        Kind::Timer => "timer",
        Kind::TableIn => "table_in",
        Kind::TableOut => "table_out",
        Kind::Asked => "process_info",
        Kind::Allocation => "allocation",
    }
}

/// The places of one line, put together. The stack is that of the one with the most words.
struct Cause {
    kind: Kind,
    most: u64,
    stack: Vec<accounts::Frame>,
    sums: Sums,
    captured: Option<Captured>,
}

fn causes(entries: Vec<Entry>) -> Vec<Cause> {
    let mut all: HashMap<(Kind, Option<accounts::Frame>), Cause> = HashMap::new();
    for e in entries {
        let site = names::site(&e.frames).cloned();
        let words = e.sums.copied + e.sums.moved;
        let c = all.entry((e.kind, site)).or_insert_with(|| Cause {
            kind: e.kind,
            most: 0,
            stack: Vec::new(),
            sums: Sums::default(),
            captured: None,
        });
        if words >= c.most {
            c.most = words;
            c.stack = e.frames;
        }
        c.sums.times += e.sums.times;
        c.sums.copied += e.sums.copied;
        c.sums.moved += e.sums.moved;
        c.sums.shared += e.sums.shared;
        c.sums.largest = c.sums.largest.max(e.sums.largest);
        c.sums.samples += e.sums.samples;
        let size = |c: &Option<Captured>| c.map_or(0, |c| c.words);
        if size(&e.captured) > size(&c.captured) {
            c.captured = e.captured;
        }
    }
    let mut all: Vec<Cause> = all.into_values().collect();
    // What was copied comes first; what was only shared costs little.
    all.sort_by_key(|c| std::cmp::Reverse((c.sums.copied + c.sums.moved, c.sums.shared)));
    all
}

fn bytes(words: u64) -> u64 {
    words.saturating_mul(8)
}

impl Cause {
    /// One of several that come to `total` words.
    fn json(&self, total: u64) -> Json {
        let s = &self.sums;
        let captured = self.captured.map(|c| {
            Json::object([
                (
                    "function",
                    names::function(c.module, c.function, c.arity).into(),
                ),
                ("module", atom::name(c.module).into()),
                ("name", atom::name(c.function).into()),
                ("arity", u64::from(c.arity).into()),
                ("index", c.index.into()),
                ("count", c.count.into()),
                ("bytes", bytes(c.words as u64).into()),
                ("beam", names::file(c.module).into()),
                ("variable", Json::Null),
                ("variables", Json::List(Vec::new())),
            ])
        });
        let stack: Vec<Json> = self.stack.iter().take(STACK).map(names::frame).collect();
        Json::object([
            ("kind", word(self.kind).into()),
            ("site", names::site(&self.stack).map(names::frame).into()),
            ("times", s.times.into()),
            ("bytes", bytes(s.copied).into()),
            ("moved_bytes", bytes(s.moved).into()),
            ("shared_bytes", bytes(s.shared).into()),
            ("largest_bytes", bytes(s.largest).into()),
            ("estimated", (s.samples > 0).into()),
            ("captured", captured.into()),
            ("advice", self.advice(total).into()),
            ("stack", Json::List(stack)),
        ])
    }

    /// What would make it cost less. None: nothing that is known here.
    fn advice(&self, total: u64) -> Option<&'static str> {
        let s = &self.sums;
        // What is hardly anything of the whole, or the system's own, is not worth a change.
        if s.copied.saturating_mul(100) < total
            || !names::site(&self.stack).is_some_and(names::is_own)
        {
            return None;
        }
        let large = bytes(s.copied) / s.times.max(1) >= LARGE_BYTES;
        if s.copied == 0 && self.kind != Kind::Allocation {
            return None;
        }
        match self.kind {
            Kind::Spawn if self.captured.is_some() => {
                Some("take the parts that are used out of the captured variable before the fun")
            }
            Kind::Spawn if large => {
                Some("give the process only what it uses, or let it fetch that itself")
            }
            Kind::Message if self.captured.is_some() => Some(
                "take the parts that are used out of the captured variable before the fun that is sent",
            ),
            Kind::Message if large => Some(
                "send only the part that the receiver uses, or a key under which it finds the rest",
            ),
            Kind::TableOut if large => Some(
                "read the element that is used (ets:lookup_element/3, a match with a smaller result)",
            ),
            Kind::TableIn if large => {
                Some("store parts that change seldom as objects of their own")
            }
            Kind::Timer if large => {
                Some("keep the data in the process, and send a reference to it")
            }
            Kind::Asked if large => {
                Some("ask for single items, not for the dictionary or the messages")
            }
            _ => None,
        }
    }
}

fn listed(name: &str, all: &[Cause], top: usize) -> Vec<(String, Json)> {
    let total: u64 = all.iter().map(|c| c.sums.copied).sum();
    let list: Vec<Json> = all.iter().take(top).map(|c| c.json(total)).collect();
    let left_out = all.len() - list.len();
    vec![
        ("bytes".into(), bytes(total).into()),
        (name.into(), Json::List(list)),
        ("left_out".into(), left_out.into()),
    ]
}

fn split() -> (Vec<Cause>, Vec<Cause>) {
    let (allocation, copies): (Vec<Entry>, Vec<Entry>) = accounts::snapshot()
        .into_iter()
        .partition(|e| e.kind == Kind::Allocation);
    (causes(copies), causes(allocation))
}

pub fn copies(top: usize) -> Vec<(String, Json)> {
    let all = split().0;
    let mut pairs = listed("causes", &all, top);
    let total = |n: &std::sync::atomic::AtomicU64| Json::from(bytes(n.load(Ordering::Relaxed)));
    let totals = Json::object([
        ("messages_copied_bytes", total(&COPIED)),
        ("moved_bytes", total(&MOVED)),
        ("shared_bytes", total(&SHARED)),
    ]);
    pairs.push(("totals".into(), totals));
    pairs
}

pub fn allocation(top: usize) -> Vec<(String, Json)> {
    listed("causes", &split().1, top)
}

pub fn run(top: usize) -> Vec<(String, Json)> {
    let part = |name: &str, pairs: Vec<(String, Json)>| (name.to_string(), Json::Object(pairs));
    vec![
        part("copies", copies(top)),
        part("allocation", allocation(top)),
        part("memory", super::memory::kinds()),
    ]
}
