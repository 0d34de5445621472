//! The tree of budgets: limits, use, and the largest processes of each.

use super::{memory, names, resident};
use crate::json::Json;
use purlin_kernel::budgets::{self, Budget, Counted, NO_LIMIT, Over, ROOT};
use purlin_term::print::{Style, format_term};
use std::sync::atomic::Ordering;

/// Maximum number of characters of a budget's name.
pub(super) const MOST_OF_NAME: usize = 200;

pub fn budgets(top: usize) -> Vec<(String, Json)> {
    let all = budgets::all();
    let rows = all.iter().take(top);
    let rows = rows.filter_map(|&i| Some(one(i, budgets::get(i)?, top)));
    // What a budget uses counts for those above it, so the highest ones have all.
    let highest = all.iter().filter_map(|&i| budgets::get(i));
    let highest: Vec<_> = highest.filter(|b| b.parent() == ROOT).collect();
    let billed = highest.iter().map(|b| b.account(Counted::Memory)[1]).sum();
    let twice = all.iter().filter_map(|&i| budgets::get(i));
    let twice: i64 = twice.map(Budget::shared).sum();
    vec![
        ("budgets".into(), Json::List(rows.collect())),
        ("count".into(), all.len().into()),
        ("billed_bytes".into(), Json::Int(billed)),
        ("billed_twice_bytes".into(), Json::Int(twice)),
        ("rest".into(), rest(billed - twice)),
        ("resident_bytes".into(), memory::resident().0.into()),
    ]
}

/// Memory that the runtime knows of and that is on no bill, by use. The budgets use `billed` bytes.
/// Null if the system does not report what is resident.
fn rest(billed: i64) -> Json {
    let Some(rows) = resident::rows() else {
        return Json::Null;
    };
    let of = |what: &str| -> i64 {
        let these = rows.iter().filter(|r| r.what == what);
        these.map(|r| r.known as i64).sum()
    };
    let known: i64 = rows.iter().map(|r| r.known as i64).sum();
    let named = ["program_and_libraries", "stacks", "unused_in_allocator"].map(of);
    let other = known - billed - named.iter().sum::<i64>();
    Json::object([
        ("program_and_libraries", Json::Int(named[0])),
        ("stacks", Json::Int(named[1])),
        ("unused_in_allocator", Json::Int(named[2])),
        ("other", Json::Int(other)),
    ])
}

/// A limit, or null for none.
fn limit(n: i64) -> Json {
    match n {
        NO_LIMIT => Json::Null,
        n => Json::Int(n),
    }
}

fn one(index: u32, b: &Budget, top: usize) -> Json {
    let name = b.with_name(|t| format_term(t, Style::Display, MOST_OF_NAME).to_string());
    let parent = match b.parent() {
        ROOT => Json::Null,
        p => Json::from(u64::from(p)),
    };
    let counts = Counted::ALL.map(|(what, text)| {
        let [most, used, peak, reached] = b.account(what);
        Json::object([
            ("what", text.into()),
            ("limit", limit(most)),
            ("used", Json::Int(used)),
            ("peak", Json::Int(peak)),
            ("reached", Json::Int(reached)),
        ])
    });
    let (percent, nanoseconds, waited) = b.cpu();
    let (messages, over) = b.messages();
    let over = match over {
        Over::Wait => "wait",
        Over::Drop => "drop",
        Over::Exit => "exit",
    };
    let n = |n: &std::sync::atomic::AtomicU64| Json::from(n.load(Ordering::Relaxed));
    let e = &b.events;
    let largest = budgets::largest(index, top).into_iter().map(|h| {
        Json::object([
            ("pid", names::pid(h.pid).into()),
            ("memory_bytes", Json::Int(h.bytes)),
            (
                "at",
                names::site(&h.frames).map_or(Json::Null, names::frame),
            ),
        ])
    });
    Json::object([
        ("number", u64::from(index).into()),
        ("name", name.into()),
        ("parent", parent),
        ("ended", b.has_ended().into()),
        ("counts", Json::List(counts.into())),
        ("cpu_percent_limit", limit(percent)),
        ("cpu_s", (nanoseconds as f64 / 1e9).into()),
        ("cpu_waits", waited.into()),
        ("cpu_weight", Json::Int(b.weight())),
        ("messages_limit", limit(messages)),
        ("over_messages", over.into()),
        ("senders_waited", n(&e.waited)),
        ("messages_dropped", n(&e.dropped)),
        ("receivers_ended", n(&e.exited)),
        ("circles_broken", n(&e.circles)),
        ("largest", Json::List(largest.collect())),
    ])
}
