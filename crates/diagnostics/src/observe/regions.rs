//! Shared regions, and the processes that hold them.
//!
//! There is no list of regions: processes are asked which ones they refer to. A region that no
//! asked process refers to is held by a table, a message, a persistent term, another region, or a
//! process that was not asked.

use super::process_list::chosen;
use super::query::Query;
use crate::explain::{names, survey};
use crate::json::Json;
use purlin_term::{Term, region};
use std::collections::HashMap;

/// Number of the largest regions that each process reports.
const EACH: usize = 64;
/// Number of regions in an answer.
const REGIONS: usize = 200;
/// Number of holders reported for a region.
const HOLDERS: usize = 5;

/// Number, bytes, and count of holders.
type Held = (u64, usize, u64);

fn held(cx: &mut purlin_kernel::cx::Cx) -> (Term, Vec<Held>) {
    let h = &cx.heap;
    let both = h
        .off_heap
        .regions
        .iter()
        .chain(h.old_off_heap.regions.iter());
    let mut all: Vec<Held> = both
        .map(|r| (r.number(), r.area().1 * 8, r.holders.count()))
        .collect();
    all.sort_by_key(|r| (std::cmp::Reverse(r.1), r.0));
    all.dedup_by_key(|r| r.0);
    all.truncate(EACH);
    (cx.self_pid(), all)
}

pub(super) fn regions(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let (pids, count, step) = chosen(q.number("phase", 0)?, &[]);
    let told = survey::ask(&pids, held);
    let mut all: HashMap<u64, (Held, Vec<Term>, usize)> = HashMap::new();
    for (pid, held) in told {
        for h in held {
            let r = all.entry(h.0).or_insert((h, Vec::new(), 0));
            r.2 += 1;
            if r.1.len() < HOLDERS {
                r.1.push(pid);
            }
        }
    }
    let found = all.len();
    let known: usize = all.values().map(|r| r.0.1).sum();
    let mut rows: Vec<_> = all.into_values().collect();
    rows.sort_by_key(|r| (std::cmp::Reverse(r.0.1), r.0.0));
    let rows = rows
        .iter()
        .take(REGIONS)
        .map(|((number, bytes, holders), some, seen)| {
            let some = some.iter().map(|p| names::pid(*p).into());
            Json::object([
                ("number", (*number).into()),
                ("bytes", (*bytes).into()),
                ("holders", (*holders).into()),
                ("processes", (*seen).into()),
                ("some", Json::List(some.collect())),
            ])
        });
    let (bytes, regions) = region::counted_totals();
    let pairs: [(&str, Json); 7] = [
        ("count", regions.into()),
        ("bytes", bytes.into()),
        ("found", found.into()),
        ("found_bytes", known.into()),
        ("process_count", count.into()),
        ("each", step.into()),
        ("rows", Json::List(rows.collect())),
    ];
    Ok(pairs.map(|(k, v)| (k.to_string(), v)).into())
}
