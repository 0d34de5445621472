//! Summaries: what happened in a second, and which processes hold the most at its end.
//!
//! Processes are known from the collections of their heaps and from their mailboxes. Nothing looks
//! at each process.

use super::{known, who};
use crate::json::Json;
use purlin_io::port;
use purlin_kernel::recorder::{LARGE_WORDS, Who};
use purlin_kernel::system::memory;
use purlin_kernel::{options, process, sched};
use purlin_runtime::natives::system::memory::usage;
use purlin_term::{Term, gc};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Number of processes that a summary names, and of those that are remembered.
const SHOWN: usize = 5;
const REMEMBERED: usize = 512;
/// Number of running processes that a summary names.
const RUNNING: usize = 8;
/// A summary of memory that takes longer is made the less often: it may cost this share of time.
const COST: u32 = 500;

/// A process with a large heap or a long mailbox.
struct Holder {
    who: Who,
    heap: usize,
    binaries: usize,
    messages: usize,
    message_bytes: usize,
    /// Messages when its mailbox was last recorded.
    recorded: usize,
    /// Bytes by which its heap has grown since the last summary, by line.
    growth: HashMap<String, (usize, Json)>,
}

impl Holder {
    fn bytes(&self) -> usize {
        self.heap + self.binaries + self.message_bytes
    }
}

/// Totals at the last summary.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Totals {
    switches: u64,
    reductions: u64,
    spawned: u64,
    live: u64,
    collections: u64,
    read: u64,
    written: u64,
}

impl Totals {
    fn now() -> Totals {
        let (read, written) = port::total_bytes();
        Totals {
            switches: sched::context_switches(),
            reductions: sched::reductions(),
            spawned: sched::spawned(),
            live: process::table().live() as u64,
            collections: gc::totals().0 as u64,
            read: read as u64,
            written: written as u64,
        }
    }
}

/// See the module head.
pub struct Second {
    holders: HashMap<u64, Holder>,
    last: Totals,
    /// Memory by kind, and the time of the next look at it.
    memory: Vec<(String, Json)>,
    memory_due: Instant,
}

impl Second {
    pub fn new() -> Second {
        Second {
            holders: HashMap::new(),
            last: Totals::default(),
            memory: Vec::new(),
            memory_due: Instant::now(),
        }
    }

    /// The time since the last summary was idle, and has none.
    pub fn skip(&mut self) {
        self.memory_due = Instant::now();
    }

    /// A process has ended.
    pub fn ended(&mut self, pid: Term) {
        self.holders.remove(&pid.raw());
    }

    fn holder(&mut self, w: &Who) -> &mut Holder {
        if self.holders.len() >= REMEMBERED && !self.holders.contains_key(&w.pid.raw()) {
            let least = self.holders.iter().min_by_key(|h| h.1.bytes());
            if let Some(pid) = least.map(|h| *h.0) {
                self.holders.remove(&pid);
            }
        }
        let h = self.holders.entry(w.pid.raw()).or_insert_with(|| Holder {
            who: *w,
            heap: 0,
            binaries: 0,
            messages: 0,
            message_bytes: 0,
            recorded: 0,
            growth: HashMap::new(),
        });
        h.who = *w;
        h
    }

    /// A process was collected, for the line `at`. Returns the bytes by which it has grown.
    pub fn collected(&mut self, w: &Who, heap: usize, binaries: usize, at: Option<Json>) -> usize {
        if heap + binaries < 8 * LARGE_WORDS {
            if let Some(h) = self.holders.get_mut(&w.pid.raw()) {
                (h.heap, h.binaries) = (heap, binaries);
            }
            return 0;
        }
        let h = self.holder(w);
        let grown = (heap + binaries).saturating_sub(h.heap + h.binaries);
        (h.heap, h.binaries) = (heap, binaries);
        if let Some(at) = at
            && grown > 0
        {
            let key = at.to_string();
            h.growth.entry(key).or_insert((0, at)).0 += grown;
        }
        grown
    }

    /// A process has a long mailbox. Returns true if that is to be recorded: it has grown much
    /// since the last time.
    pub fn mailbox(&mut self, w: &Who, messages: usize, bytes: usize) -> bool {
        let h = self.holder(w);
        (h.messages, h.message_bytes) = (messages, bytes);
        let much = messages >= 2 * h.recorded;
        if much {
            h.recorded = messages;
        }
        much
    }

    /// Returns the summary of the time since the last one; `None` if nothing ran.
    pub fn summary(&mut self, left_out: u64) -> Option<Vec<(String, Json)>> {
        let (last, now) = (self.last, Totals::now());
        self.last = now;
        if last.switches == now.switches {
            return None;
        }
        let ended = (last.live + now.spawned - last.spawned).saturating_sub(now.live);
        if Instant::now() >= self.memory_due {
            let begun = Instant::now();
            self.memory = memory_now();
            self.memory_due = begun + (begun.elapsed() * COST).max(Duration::from_millis(500));
        }
        let ready: usize = sched::queue_lengths().into_iter().sum();
        let mut pairs: Vec<(String, Json)> = [
            ("processes", now.live),
            ("started", now.spawned - last.spawned),
            ("ended", ended),
            ("ready", ready as u64),
            ("switches", now.switches - last.switches),
            ("reductions", now.reductions - last.reductions),
            (
                "collections",
                now.collections.saturating_sub(last.collections),
            ),
            ("read", now.read.saturating_sub(last.read)),
            ("written", now.written.saturating_sub(last.written)),
            ("left_out", left_out),
        ]
        .map(|(k, v)| (k.to_string(), v.into()))
        .into();
        pairs.extend(self.memory.iter().cloned());
        let running = sched::running().into_iter().flatten().take(RUNNING);
        pairs.push(("running".into(), Json::List(running.map(known).collect())));
        pairs.push(("top".into(), Json::List(self.top())));
        Some(pairs)
    }

    /// The processes that hold the most.
    fn top(&mut self) -> Vec<Json> {
        let table = process::table();
        self.holders.retain(|_, h| table.is_alive(h.who.pid));
        let mut all: Vec<&mut Holder> = self.holders.values_mut().collect();
        all.sort_unstable_by_key(|h| std::cmp::Reverse(h.bytes()));
        let named = |h: &mut Holder| {
            let growth = std::mem::take(&mut h.growth);
            let grew: usize = growth.values().map(|g| g.0).sum();
            let at = growth.into_values().max_by_key(|g| g.0).map(|g| g.1);
            Json::object([
                ("p", who(&h.who)),
                ("does", table.activity(h.who.pid).into()),
                ("heap", h.heap.into()),
                ("binaries", h.binaries.into()),
                ("messages", h.messages.into()),
                ("message_bytes", h.message_bytes.into()),
                ("grew", grew.into()),
                ("at", at.unwrap_or(Json::Null)),
            ])
        };
        let list = all.iter_mut().take(SHOWN).map(|h| named(h)).collect();
        for h in all.into_iter().skip(SHOWN) {
            h.growth.clear();
        }
        list
    }
}

/// Memory by kind, and the largest table.
fn memory_now() -> Vec<(String, Json)> {
    let m = usage();
    let mut pairs: Vec<(String, Json)> = vec![
        ("resident".into(), options::memory::resident().into()),
        ("total".into(), m.total.into()),
        ("heaps".into(), m.processes.into()),
        ("binary".into(), m.binary.into()),
        ("ets".into(), m.ets.into()),
        ("code".into(), m.code.into()),
        ("limit".into(), memory::limit().map(|l| l.0).into()),
    ];
    let tables = purlin_ets::all();
    let sizes = tables.iter().map(|t| (t.size_and_words(), t));
    if let Some(((objects, words), t)) = sizes.max_by_key(|t| t.0.1)
        && words >= LARGE_WORDS
    {
        let owner = known(t.owner());
        let table = Json::object([
            ("name", purlin_term::atom::name(t.name()).into()),
            ("owner", owner),
            ("objects", objects.into()),
            ("bytes", (8 * words).into()),
        ]);
        pairs.push(("table".into(), table));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(n: u32) -> Who {
        Who {
            pid: Term::pid(n),
            name: None,
            initial: None,
        }
    }

    #[test]
    fn the_holders_with_the_most_are_remembered() {
        let mut s = Second::new();
        for n in 0..2 * REMEMBERED {
            let bytes = 8 * LARGE_WORDS + n;
            s.collected(&process(n as u32), bytes, 0, None);
        }
        assert_eq!(s.holders.len(), REMEMBERED);
        assert!(
            s.holders
                .contains_key(&Term::pid(2 * REMEMBERED as u32 - 1).raw())
        );
        // A small heap does not displace any.
        s.collected(&process(1), 8, 0, None);
        assert!(!s.holders.contains_key(&Term::pid(1).raw()));
    }

    #[test]
    fn mailboxes_are_recorded_when_they_have_doubled() {
        let mut s = Second::new();
        let w = process(1);
        let recorded = [10_000, 15_000, 20_000, 39_999, 40_000];
        let recorded = recorded.map(|n| s.mailbox(&w, n, 8 * n));
        assert_eq!(recorded, [true, false, true, false, true]);
    }

    #[test]
    fn growth_is_charged_to_lines() {
        let mut s = Second::new();
        let w = process(1);
        let line = |n: u64| Some(Json::object([("line", n.into())]));
        let mib = |n: usize| n << 20;
        s.collected(&w, mib(10), 0, line(1));
        s.collected(&w, mib(5), 0, line(2));
        s.collected(&w, mib(25), mib(1), line(3));
        let h = &s.holders[&w.pid.raw()];
        let mut grown: Vec<usize> = h.growth.values().map(|g| g.0).collect();
        grown.sort_unstable();
        assert_eq!(grown, [mib(10), mib(21)]);
    }
}
