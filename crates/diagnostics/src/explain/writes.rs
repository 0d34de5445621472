//! Writes to files, sockets and external programs, and how they are batched.

use super::copies::{Cause, causes_of, word};
use super::names;
use crate::json::Json;
use purlin_kernel::accounts::Kind;

/// Size in bytes below which the system call costs more than the data.
const SMALL_CALL: u64 = 1024;
/// Number of writes by a line from which a change pays.
const MANY: u64 = 100;

pub fn writes(top: usize) -> Vec<(String, Json)> {
    let mut all = causes_of(|k| k == Kind::Write);
    all.sort_by_key(|c| std::cmp::Reverse(bytes(c)));
    let list: Vec<Json> = all.iter().take(top).map(json).collect();
    let left_out = all.len() - list.len();
    let sum = |f: fn(&Cause) -> u64| Json::from(all.iter().map(f).sum::<u64>());
    vec![
        ("bytes".into(), sum(bytes)),
        ("merged_bytes".into(), sum(|c| c.sums.copied)),
        ("in_place_bytes".into(), sum(|c| c.sums.shared)),
        ("queued_bytes".into(), sum(|c| c.sums.moved)),
        ("calls".into(), sum(|c| c.sums.calls)),
        ("parts".into(), sum(|c| c.sums.parts)),
        ("causes".into(), Json::List(list)),
        ("left_out".into(), left_out.into()),
    ]
}

fn bytes(c: &Cause) -> u64 {
    c.sums.copied + c.sums.shared
}

fn json(c: &Cause) -> Json {
    let s = &c.sums;
    Json::object([
        ("kind", word(c.kind).into()),
        ("site", c.site()),
        ("own", c.is_own().into()),
        ("times", s.times.into()),
        ("bytes", bytes(c).into()),
        ("merged_bytes", s.copied.into()),
        ("in_place_bytes", s.shared.into()),
        ("queued_bytes", s.moved.into()),
        ("calls", s.calls.into()),
        ("parts", s.parts.into()),
        ("largest_bytes", s.largest.into()),
        ("estimated", (s.samples > 0).into()),
        ("advice", advice(c).into()),
        ("stack", c.stack()),
    ])
}

fn advice(c: &Cause) -> Option<&'static str> {
    let s = &c.sums;
    if !names::site(&c.stack).is_some_and(names::is_own) {
        return None;
    }
    let each = bytes(c) / s.times.max(1);
    if s.times >= MANY && each < SMALL_CALL && s.calls >= s.times / 2 {
        return Some(
            "each write is a system call of its own: gather what belongs together in one list, and write that once",
        );
    }
    if s.moved > bytes(c) / 2 {
        return Some(
            "the other side takes it more slowly than it is sent: what waits takes memory until then",
        );
    }
    if s.copied > bytes(c) / 2 && each >= 16 * SMALL_CALL {
        return Some(
            "small pieces are copied together (purlin:limit(merge) says below which size); larger literals and binaries go out from where they lie",
        );
    }
    None
}
