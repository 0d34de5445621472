//! The answers to `purlin observe`: the running system, view by view, as JSON.
//!
//! A request is a line on the socket of [`crate::explain`]: `observe`, the name of a view
//! ([`VIEWS`]), and words `key=value`, with percent-encoded values. The answer is an object.
//!
//! # Invariants
//! * Lists are sorted, filtered and cut here: an answer and the effort for it are bounded, whatever
//!   runs.
//! * Nothing stays on when nobody asks: what a view turns on (samples, the trace of a function)
//!   ends by itself soon after the last request for it. See [`lease`].
//! * The program is not changed. Work in its processes is done between two of their time slices,
//!   and is bounded.

mod calls;
mod flame;
mod lease;
mod otlp;
mod overview;
mod process;
mod process_list;
mod query;
mod regions;
mod resources;

use crate::json::Json;
use purlin_kernel::clock;
use query::Query;
use std::time::Instant;

/// The format of answers. It may gain fields; the meaning of a field does not change.
pub const SCHEMA: &str = "purlin-observe/1";

/// A view of one part of the system.
struct View {
    name: &'static str,
    keys: &'static [&'static str],
    answer: fn(&Query) -> Result<Vec<(String, Json)>, String>,
}

static VIEWS: &[View] = &[
    View {
        name: "overview",
        keys: &[],
        answer: overview::overview,
    },
    View {
        name: "processes",
        keys: &[
            "sort", "order", "filter", "offset", "limit", "phase", "also",
        ],
        answer: process_list::processes,
    },
    View {
        name: "process",
        keys: &["pid"],
        answer: process::process,
    },
    View {
        name: "regions",
        keys: &["phase"],
        answer: regions::regions,
    },
    View {
        name: "tables",
        keys: &["sort", "order", "filter", "offset", "limit"],
        answer: resources::tables,
    },
    View {
        name: "ports",
        keys: &["sort", "order", "filter", "offset", "limit"],
        answer: resources::ports,
    },
    View {
        name: "flame",
        keys: &["kind"],
        answer: flame::flame,
    },
    View {
        name: "otlp",
        keys: &["to"],
        answer: otlp::otlp,
    },
    View {
        name: "trace",
        keys: &[],
        answer: calls::trace,
    },
    View {
        name: "trace-begin",
        keys: &["function", "calls", "seconds"],
        answer: calls::begin,
    },
    View {
        name: "trace-end",
        keys: &[],
        answer: calls::end,
    },
];

/// The answer to the words after `observe` in a request, or the reason why there is none.
pub fn answer(words: &str) -> Result<Json, String> {
    let (began, computed) = (Instant::now(), clock::thread_time());
    let mut words = words.split_whitespace();
    let name = words.next().unwrap_or_default();
    let view = VIEWS.iter().find(|v| v.name == name);
    let view = view.ok_or_else(|| format!("there is no view '{name}'"))?;
    let query = Query::of(words, view.keys)?;
    let answer = (view.answer)(&query)?;
    let mut pairs: Vec<(String, Json)> = vec![
        ("schema".into(), SCHEMA.into()),
        ("view".into(), view.name.into()),
    ];
    pairs.extend(answer);
    let took = began.elapsed().as_secs_f64() * 1000.0;
    pairs.push(("took_ms".into(), took.into()));
    let computed = (clock::thread_time() - computed) as f64 / 1e6;
    pairs.push(("cpu_ms".into(), computed.into()));
    Ok(Json::Object(pairs))
}

/// Starts to answer requests.
pub(crate) fn start() {
    crate::explain::set_observer(answer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_told() {
        for text in ["", "none", "overview x=1", "process", "flame kind=water"] {
            assert!(answer(text).is_err(), "{text}");
        }
    }
}
