//! Stacks with their costs, for flame graphs: memory allocated and copied since the start, and
//! where time goes now.

use super::query::Query;
use crate::explain::names;
use crate::json::Json;
use purlin_kernel::accounts::{self, Frame, Kind};
use purlin_kernel::clock;
use purlin_kernel::profile::{self, Use};
use std::collections::HashMap;

/// Number of the largest stacks in an answer. The others are summed.
const STACKS: usize = 1000;
/// The kinds of causes that copy.
const COPIES: [Kind; 7] = [
    Kind::Message,
    Kind::Spawn,
    Kind::Exit,
    Kind::Timer,
    Kind::TableIn,
    Kind::TableOut,
    Kind::Asked,
];
/// Duration of time sampling after the last request, in nanoseconds.
const UNREAD_NANOSECONDS: i64 = 30_000_000_000;

pub(super) fn flame(q: &Query) -> Result<Vec<(String, Json)>, String> {
    let kind = q.text("kind");
    let (unit, stacks, lost) = match kind {
        "allocation" => ("bytes", costs(|k| k == Kind::Allocation), 0),
        "copies" => ("bytes", costs(|k| COPIES.contains(&k)), 0),
        "time" => {
            if !profile::keep(Use::Flame, clock::elapsed() + UNREAD_NANOSECONDS) {
                return Err("no thread can be started that samples time".into());
            }
            let s = profile::samples();
            let (stacks, lost) = s.map_or((Vec::new(), 0), |s| (s.stacks, s.lost));
            let stacks = stacks.into_iter().map(|(f, n)| (f, n / 1000)).collect();
            ("microseconds", stacks, lost / 1000)
        }
        _ => return Err("flame needs a kind: allocation, copies or time".into()),
    };
    Ok(told(kind, unit, stacks, lost))
}

type Stacks = Vec<(Vec<Frame>, u64)>;

/// Stacks of the accounts, with bytes.
fn costs(wanted: impl Fn(Kind) -> bool) -> Stacks {
    let mut all: HashMap<Vec<Frame>, u64> = HashMap::new();
    for e in accounts::snapshot() {
        let words = e.sums.copied + e.sums.moved;
        if words > 0 && wanted(e.kind) {
            *all.entry(e.frames).or_default() += words.saturating_mul(8);
        }
    }
    all.into_iter().collect()
}

fn told(kind: &str, unit: &str, mut stacks: Stacks, lost: u64) -> Vec<(String, Json)> {
    stacks.sort_by_key(|s| std::cmp::Reverse(s.1));
    let total: u64 = stacks.iter().map(|s| s.1).sum::<u64>() + lost;
    let shown: u64 = stacks.iter().take(STACKS).map(|s| s.1).sum();
    let mut places: HashMap<&Frame, usize> = HashMap::new();
    let mut functions: Vec<Json> = Vec::new();
    let mut rows: Vec<Json> = Vec::new();
    for (frames, weight) in stacks.iter().take(STACKS) {
        let mut row: Vec<Json> = vec![(*weight).into()];
        // Outermost frame first, as flame graphs are drawn.
        for f in frames.iter().rev() {
            let index = *places.entry(f).or_insert_with(|| {
                functions.push(names::frame(f));
                functions.len() - 1
            });
            row.push(index.into());
        }
        rows.push(Json::List(row));
    }
    let pairs: [(&str, Json); 6] = [
        ("kind", kind.into()),
        ("unit", unit.into()),
        ("total", total.into()),
        ("left_out", (total - shown).into()),
        ("functions", Json::List(functions)),
        ("stacks", Json::List(rows)),
    ];
    pairs.map(|(k, v)| (k.to_string(), v)).into()
}
