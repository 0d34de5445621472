//! Lines that copy, share and allocate.

use super::names;
use crate::json::Json;
use purlin_kernel::accounts::{self, Captured, Entry, Kind, Sums};
use purlin_kernel::message::sharing::{COPIED, MOVED, SHARED, Words};
use purlin_term::atom;
use std::collections::HashMap;

/// Maximum number of stack frames in an answer.
const MOST_FRAMES: usize = 8;
/// Average size in bytes above which a message or an argument is worth a change.
const LARGE_BYTES: u64 = 4096;

pub(crate) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Message => "message",
        Kind::Spawn => "spawn",
        Kind::Exit => "exit",
        Kind::Timer => "timer",
        Kind::TableIn => "table_in",
        Kind::TableOut => "table_out",
        Kind::Asked => "process_info",
        Kind::Allocation => "allocation",
        Kind::Collection => "collection",
        Kind::Work => "work",
        Kind::Write => "write",
        Kind::Time => "time",
        Kind::Ready => "ready",
        Kind::Receive => "receive",
        Kind::Busy => "busy",
        Kind::DirtyQueue => "dirty_queue",
        Kind::Lock => "lock",
    }
}

/// All places of one line, combined. The stack is that of the place with the most words.
pub(super) struct Cause {
    pub kind: Kind,
    most: u64,
    pub stack: Vec<accounts::Frame>,
    pub sums: Sums,
    captured: Option<Captured>,
}

/// Causes of the selected kinds. Copies come first, as sharing alone costs little.
pub(super) fn causes_of(is_it: fn(Kind) -> bool) -> Vec<Cause> {
    let entries = accounts::snapshot().into_iter();
    causes(entries.filter(|e| is_it(e.kind)).collect())
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
        c.sums.add(&e.sums);
        let size = |c: &Option<Captured>| c.map_or(0, |c| c.words);
        if size(&e.captured) > size(&c.captured) {
            c.captured = e.captured;
        }
    }
    let mut all: Vec<Cause> = all.into_values().collect();
    all.sort_by_key(|c| std::cmp::Reverse((c.sums.copied + c.sums.moved, c.sums.shared)));
    all
}

fn bytes(words: u64) -> u64 {
    words.saturating_mul(8)
}

impl Cause {
    /// One cause, where the total of all is `total` words.
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
        Json::object([
            ("kind", word(self.kind).into()),
            ("site", self.site()),
            ("own", self.is_own().into()),
            ("times", s.times.into()),
            ("bytes", bytes(s.copied).into()),
            ("moved_bytes", bytes(s.moved).into()),
            ("shared_bytes", bytes(s.shared).into()),
            ("largest_bytes", bytes(s.largest).into()),
            ("estimated", (s.samples > 0).into()),
            ("captured", captured.into()),
            ("advice", self.advice(total).into()),
            ("stack", self.stack()),
        ])
    }

    /// The line that a developer looks for.
    pub fn site(&self) -> Json {
        names::site(&self.stack).map(names::frame).into()
    }

    /// Whether that line belongs to the program, or to a library that is not OTP's or Elixir's.
    pub fn is_own(&self) -> bool {
        names::site(&self.stack).is_some_and(names::is_own)
    }

    /// Frames, innermost first.
    pub fn stack(&self) -> Json {
        Json::List(
            self.stack
                .iter()
                .take(MOST_FRAMES)
                .map(names::frame)
                .collect(),
        )
    }

    /// Advice on how to make it cheaper; `None` if there is none.
    fn advice(&self, total: u64) -> Option<&'static str> {
        let s = &self.sums;
        // Not worth a change: a small part of the total, or code of the system itself.
        if s.copied.saturating_mul(100) < total || !self.is_own() {
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

pub fn copies(top: usize) -> Vec<(String, Json)> {
    let all = causes_of(Kind::is_copy);
    let mut pairs = listed("causes", &all, top);
    let total = |words: Words| Json::from(bytes(words.sum()));
    let totals = Json::object([
        ("messages_copied_bytes", total(COPIED)),
        ("moved_bytes", total(MOVED)),
        ("shared_bytes", total(SHARED)),
    ]);
    pairs.push(("totals".into(), totals));
    pairs
}

pub fn allocation(top: usize) -> Vec<(String, Json)> {
    listed("causes", &causes_of(|k| k == Kind::Allocation), top)
}

pub fn collections(top: usize) -> Vec<(String, Json)> {
    listed("causes", &causes_of(|k| k == Kind::Collection), top)
}

pub fn run(top: usize) -> Vec<(String, Json)> {
    let part = |name: &str, pairs: Vec<(String, Json)>| (name.to_string(), Json::Object(pairs));
    vec![
        part("copies", copies(top)),
        part("allocation", allocation(top)),
        part("collections", collections(top)),
        part("work", super::time::work(top)),
        part("latency", super::time::latency(top)),
        part("writes", super::writes::writes(top)),
        part("memory", super::memory::kinds()),
        part("processes", processes()),
        part("profile", profile(super::MOST_ENTRIES)),
    ]
}

/// Number of processes so far.
fn processes() -> Vec<(String, Json)> {
    let table = purlin_kernel::process::table();
    vec![
        ("started".into(), purlin_kernel::sched::spawned().into()),
        ("alive".into(), table.live().into()),
        // Cells are reused, so their number is the maximum of processes at a time.
        ("most".into(), u64::from(table.used_cells()).into()),
    ]
}

/// Each stack with its value, across all lines.
pub fn profile(top: usize) -> Vec<(String, Json)> {
    stacks(accounts::snapshot(), top)
}

/// The value of an entry in the unit of its kind: bytes, reductions or nanoseconds.
pub(crate) fn value(e: &Entry) -> u64 {
    let s = &e.sums;
    match e.kind {
        Kind::Write => s.copied + s.shared,
        Kind::Work | Kind::Time => s.copied,
        k if k.is_wait() => s.copied,
        _ => bytes(s.copied + s.moved),
    }
}

/// Each of these stacks with its value.
pub(super) fn stacks(mut all: Vec<Entry>, top: usize) -> Vec<(String, Json)> {
    // The largest of each kind, since their units differ.
    all.sort_by_cached_key(|e| std::cmp::Reverse(value(e)));
    let mut kinds: HashMap<Kind, usize> = HashMap::new();
    let mut left_out = 0u64;
    let mut list = Vec::new();
    for e in &all {
        let n = kinds.entry(e.kind).or_default();
        *n += 1;
        if *n > top {
            left_out += 1;
            continue;
        }
        list.push(Json::object([
            ("kind", word(e.kind).into()),
            ("value", value(e).into()),
            ("times", e.sums.times.into()),
            (
                "stack",
                Json::List(e.frames.iter().map(names::frame).collect()),
            ),
        ]));
    }
    vec![
        ("samples".into(), Json::List(list)),
        ("samples_left_out".into(), left_out.into()),
    ]
}
