//! Natives of module `erl_tracer`, the tracer module of tracers that are processes or ports.
//!
//! The runtime sends trace messages to such tracers itself; these natives serve direct callers.

use crate::cx::{BifResult, Cx};
use crate::trace::{self, flag, timestamp};
use crate::{bifs, lazy_atoms};
use purlin_term::{Term, am, atom, copy, map};

lazy_atoms! {
    discard = "discard";
    remove = "remove";
    trace_status = "trace_status";
    trace_ts = "trace_ts";
    seq_trace = "seq_trace";
}

/// Whether a tracer wants an event. Nothing is traced to the traced process itself.
fn enabled_3(_: &mut Cx, [tag, tracer, tracee]: [Term; 3]) -> BifResult {
    Ok(if tracer == tracee {
        discard()
    } else if trace::lives(tracer) {
        am::TRACE
    } else if tag == trace_status() {
        remove()
    } else {
        discard()
    })
}

/// Sends the tracer `{trace, Tracee, Tag, Message, Options…}`, or for sequential tracing
/// `{seq_trace, Tracee, Message}`.
fn trace_5(cx: &mut Cx, [tag, tracer, tracee, message, options]: [Term; 5]) -> BifResult {
    if !trace::lives(tracer) {
        return Ok(am::OK);
    }
    let option = |name: &str| match options.is_map() {
        true => map::get(options, atom::intern(name)),
        false => None,
    };
    let time = option("timestamp").map(|t| match t.is_atom().then(|| atom::name(t)) {
        Some("timestamp") => Some(flag::TIMESTAMP),
        Some("monotonic") => Some(flag::MONOTONIC),
        Some("strict_monotonic") => Some(flag::STRICT_MONOTONIC),
        _ => None,
    });
    let time = match time {
        None => 0,
        Some(Some(flags)) => flags,
        Some(None) => return Ok(am::OK),
    };
    let sequential = tag == seq_trace() && option("extra").is_none();
    let mut items = match sequential {
        true => vec![seq_trace(), tracee, message],
        false => vec![am::TRACE, tracee, tag, message],
    };
    let more = ["extra", "match_spec_result", "scheduler_id"];
    items.extend(more.iter().filter_map(|k| option(k)));
    cx.bump(items.len());
    trace::tell(tracer, |a| {
        let mut v: Vec<Term> = items.iter().map(|&t| copy::copy(t, a)).collect();
        if let Some(t) = timestamp(a, time) {
            if !sequential {
                v[0] = trace_ts();
            }
            v.push(t);
        }
        a.tuple(&v)
    });
    Ok(am::OK)
}

bifs! {
    Plain "erl_tracer":"enabled"/3 = enabled_3;
    Plain "erl_tracer":"trace"/5 = trace_5;
}
