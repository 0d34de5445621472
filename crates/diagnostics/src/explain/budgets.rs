//! The tree of budgets: limits, use, and the largest processes of each.

use super::names;
use crate::json::Json;
use purlin_kernel::budgets::{self, Budget, Counted, NO_LIMIT, Over, ROOT};
use purlin_term::print::{Style, format_term};
use std::sync::atomic::Ordering;

/// Maximum number of characters of a budget's name.
const MOST_OF_NAME: usize = 200;

pub fn budgets(top: usize) -> Vec<(String, Json)> {
    let all = budgets::all();
    let rows = all.iter().take(top);
    let rows = rows.filter_map(|&i| Some(one(i, budgets::get(i)?, top)));
    vec![
        ("budgets".into(), Json::List(rows.collect())),
        ("count".into(), all.len().into()),
    ]
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
    let mut sizes = budgets::sizes(index);
    sizes.sort_unstable_by_key(|s| std::cmp::Reverse(s.1));
    let largest = sizes.into_iter().take(top).map(|(pid, bytes)| {
        Json::object([
            ("pid", names::pid(pid).into()),
            ("memory_bytes", Json::Int(bytes)),
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
        ("messages_limit", limit(messages)),
        ("over_messages", over.into()),
        ("senders_waited", n(&e.waited)),
        ("messages_dropped", n(&e.dropped)),
        ("receivers_ended", n(&e.exited)),
        ("circles_broken", n(&e.circles)),
        ("largest", Json::List(largest.collect())),
    ])
}
