//! Profiles as messages: what the accounts have counted since the last message was taken, with a
//! profile for each measure.
//!
//! # Invariant
//! A message has at most [`STACKS`] stacks for each measure. All others are one sample without a
//! stack, so the sums are right.

use crate::explain::{names, value, word};
use crate::protobuf::Message;
use purlin_kernel::accounts::{self, Entry, Frame, Kind};
use purlin_kernel::profile;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of the next profile, where there are no random numbers.
static NUMBER: AtomicU32 = AtomicU32::new(1);

/// Maximum number of stacks of a measure in a message.
const STACKS: usize = 2000;

/// A measure: its name, its unit, and whether a kind belongs to it.
type Measure = (&'static str, &'static str, fn(Kind) -> bool);

/// The names are those of files for `pprof`.
const MEASURES: &[Measure] = &[
    ("time", "nanoseconds", |k| k == Kind::Time),
    ("copied", "bytes", Kind::is_copy),
    ("allocated", "bytes", |k| k == Kind::Allocation),
    ("kept_by_collections", "bytes", |k| k == Kind::Collection),
    ("written", "bytes", |k| k == Kind::Write),
    ("work", "reductions", |k| k == Kind::Work),
    ("waited", "nanoseconds", Kind::is_wait),
];

type Values = HashMap<(Kind, Vec<Frame>), u64>;

/// State of the accounts before the time of the next message.
pub struct Source {
    before: Values,
    /// Nanoseconds since 1970.
    since: u64,
}

/// A message, and the source for the one after it. If it is not taken, the earlier source is kept,
/// and the next message has the longer time.
pub struct Taken {
    pub request: Vec<u8>,
    pub next: Source,
}

fn values(all: &[Entry]) -> Values {
    let mut sums = Values::new();
    for e in all {
        *sums.entry((e.kind, e.frames.clone())).or_default() += value(e);
    }
    sums
}

impl Source {
    pub fn new(now: u64) -> Source {
        Source {
            before: values(&accounts::snapshot()),
            since: now,
        }
    }

    /// The request for the time up to now. `None` if nothing was counted.
    pub fn take(&self, resource: Message, now: u64) -> Option<Taken> {
        let all = values(&accounts::snapshot());
        let mut added: Vec<(&(Kind, Vec<Frame>), u64)> = all
            .iter()
            .filter_map(|(key, n)| {
                let before = self.before.get(key).copied().unwrap_or(0);
                Some((key, n.saturating_sub(before))).filter(|a| a.1 > 0)
            })
            .collect();
        if added.is_empty() {
            return None;
        }
        added.sort_unstable_by_key(|a| std::cmp::Reverse(a.1));
        let mut to = Dictionary::new();
        let mut scoped = Message::default();
        scoped.message(1, super::scope());
        for measure in MEASURES {
            if let Some(p) = one(&mut to, measure, &added, self.since, now) {
                scoped.message(2, p);
            }
        }
        let mut resources = Message::default();
        resources.message(1, resource).message(2, scoped);
        let mut request = Message::default();
        request.message(1, resources).message(2, to.finish());
        // The keys of `all` are borrowed up to here.
        let request = request.finish();
        Some(Taken {
            request,
            next: Source {
                before: all,
                since: now,
            },
        })
    }
}

/// The profile of a measure. `None` if nothing was counted.
fn one(
    to: &mut Dictionary,
    (name, unit, belongs): &Measure,
    added: &[(&(Kind, Vec<Frame>), u64)],
    since: u64,
    now: u64,
) -> Option<Message> {
    let of_it: Vec<_> = added.iter().filter(|a| belongs(a.0.0)).collect();
    if of_it.is_empty() {
        return None;
    }
    let kind = to.value_type(name, unit);
    let mut p = Message::default();
    p.message(1, kind);
    for ((kind, frames), n) in of_it.iter().take(STACKS) {
        let mut s = Message::default();
        s.number(1, to.stack(frames))
            .packed(2, std::iter::once(to.attribute(word(*kind))))
            .packed(4, std::iter::once(*n));
        p.message(2, s);
    }
    let rest: u64 = of_it.iter().skip(STACKS).map(|a| a.1).sum();
    if rest > 0 {
        let mut s = Message::default();
        s.number(1, 0).packed(4, std::iter::once(rest));
        p.message(2, s);
    }
    p.fixed(3, since).number(4, now.saturating_sub(since));
    if *name == "time" {
        let period = to.value_type(name, unit);
        p.message(5, period).number(6, profile::TICK);
    }
    p.bytes(7, &identity(now));
    Some(p)
}

/// An identifier of a profile that no other has.
fn identity(now: u64) -> [u8; 16] {
    let mut bytes = [0u8; 16];
    let random = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut bytes));
    if random.is_err() || bytes == [0; 16] {
        bytes[..8].copy_from_slice(&now.to_le_bytes());
        bytes[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        bytes[12..].copy_from_slice(&NUMBER.fetch_add(1, Ordering::Relaxed).to_le_bytes());
    }
    bytes
}

/// Indexes of what was already written to a table, by their content.
#[derive(Default)]
struct Known<K>(HashMap<K, u64>);

impl<K: std::hash::Hash + Eq> Known<K> {
    /// The index of `key`. `new` says that it has to be written now. Index 0 stands for nothing.
    fn index(&mut self, key: K) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let index = *self.0.entry(key).or_insert(next);
        (index, index == next)
    }
}

/// The tables that samples refer to. The first row of each is empty and stands for nothing.
struct Dictionary {
    strings: Known<String>,
    functions: Known<(u64, u64)>,
    locations: Known<(u64, u64)>,
    stacks: Known<Vec<u64>>,
    attributes: Known<String>,
    /// Rows of all tables, in the order of each.
    rows: Message,
}

const MAPPINGS: u64 = 1;
const LOCATIONS: u64 = 2;
const FUNCTIONS: u64 = 3;
const LINKS: u64 = 4;
const STRINGS: u64 = 5;
const ATTRIBUTES: u64 = 6;
const STACK_TABLE: u64 = 7;

impl Dictionary {
    fn new() -> Dictionary {
        let mut rows = Message::default();
        for table in [
            MAPPINGS,
            LOCATIONS,
            FUNCTIONS,
            LINKS,
            STRINGS,
            ATTRIBUTES,
            STACK_TABLE,
        ] {
            rows.message(table, Message::default());
        }
        Dictionary {
            strings: Known::default(),
            functions: Known::default(),
            locations: Known::default(),
            stacks: Known::default(),
            attributes: Known::default(),
            rows,
        }
    }
    fn string(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let (index, new) = self.strings.index(text.to_string());
        if new {
            self.rows.text(STRINGS, text);
        }
        index
    }
    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let mut m = Message::default();
        m.number(1, self.string(name)).number(2, self.string(unit));
        m
    }
    /// The attribute that names the kind of a cause.
    fn attribute(&mut self, kind: &str) -> u64 {
        let key = self.string("purlin.kind");
        let (index, new) = self.attributes.index(kind.to_string());
        if new {
            let mut value = Message::default();
            value.text(1, kind);
            let mut m = Message::default();
            m.number(1, key).message(2, value);
            self.rows.message(ATTRIBUTES, m);
        }
        index
    }
    fn stack(&mut self, frames: &[Frame]) -> u64 {
        if frames.is_empty() {
            return 0;
        }
        let locations: Vec<u64> = frames.iter().map(|f| self.location(f)).collect();
        let (index, new) = self.stacks.index(locations.clone());
        if new {
            let mut m = Message::default();
            m.packed(1, locations.into_iter());
            self.rows.message(STACK_TABLE, m);
        }
        index
    }
    fn location(&mut self, f: &Frame) -> u64 {
        let name = self.string(&names::function(f.module, f.function, f.arity));
        let (file, line) = f.line.as_ref().map_or(("", 0), |l| (l.0.as_str(), l.1));
        let file = self.string(file);
        let (function, new) = self.functions.index((name, file));
        if new {
            let mut m = Message::default();
            m.number(1, name).number(2, name).number(3, file);
            self.rows.message(FUNCTIONS, m);
        }
        let (index, new) = self.locations.index((function, line.into()));
        if new {
            let mut l = Message::default();
            l.number(1, function).number(2, line.into());
            let mut m = Message::default();
            m.message(3, l);
            self.rows.message(LOCATIONS, m);
        }
        index
    }
    fn finish(self) -> Message {
        self.rows
    }
}
