//! Natives of tracing: sequential tracing, and who is traced.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, ids, lazy_atoms, process, signal};
use purlin_term::{Alloc, NIL, Term, am, atom};
use std::sync::atomic::{AtomicU64, Ordering};

lazy_atoms! {
    trace_delivered = "trace_delivered";
    sequential_trace_token = "sequential_trace_token";
}

/// The word of the sequential tracer; 0 if there is none.
static SEQUENTIAL_TRACER: AtomicU64 = AtomicU64::new(0);

/// Pid or port of the sequential tracer, or `false`.
pub fn sequential_tracer() -> Term {
    match SEQUENTIAL_TRACER.load(Ordering::Relaxed) {
        0 => am::FALSE,
        // SAFETY: only immediates are stored.
        w => unsafe { Term::from_raw(w) },
    }
}

/// Makes a local pid or port the sequential tracer, or nobody (`false`); who it was before. None for anything else.
pub fn set_sequential_tracer(t: Term) -> Option<Term> {
    let before = sequential_tracer();
    let word = if t == am::FALSE {
        0
    } else if (t.is_local_pid() && process::table().find(t).is_some()) || t.is_local_port() {
        t.raw()
    } else {
        return None;
    };
    SEQUENTIAL_TRACER.store(word, Ordering::Relaxed);
    Some(before)
}

/// Clears the trace tokens of all processes: there are none.
pub fn reset_tokens() {}

const COMPONENTS: &[&str] = &[
    "label",
    "serial",
    "send",
    "receive",
    "print",
    "timestamp",
    "strict_monotonic_timestamp",
    "monotonic_timestamp",
];

fn seq_trace_2(_: &mut Cx, [what, value]: [Term; 2]) -> BifResult {
    if what == sequential_trace_token() && value == NIL {
        return Ok(NIL);
    }
    if what == sequential_trace_token()
        || (what.is_atom() && COMPONENTS.contains(&atom::name(what)))
    {
        return Err(Fail::Notsup);
    }
    Err(Fail::Badarg)
}

fn seq_trace_info_1(_: &mut Cx, [what]: [Term; 1]) -> BifResult {
    if what == sequential_trace_token()
        || (what.is_atom() && COMPONENTS.contains(&atom::name(what)))
    {
        return Ok(NIL);
    }
    Err(Fail::Badarg)
}

/// Without a token nothing is printed.
fn seq_trace_print_1(_: &mut Cx, [_]: [Term; 1]) -> BifResult {
    Ok(am::FALSE)
}
fn seq_trace_print_2(_: &mut Cx, [_, _]: [Term; 2]) -> BifResult {
    Ok(am::FALSE)
}

fn trace_delivered_1(cx: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_local_pid() && pid != am::ALL {
        return Err(Fail::Badarg);
    }
    // Trace messages take the same way as this one, and were sent before.
    let r = ids::make_ref(cx);
    let me = cx.self_pid();
    let msg = cx.tuple(&[trace_delivered(), pid, r]);
    signal::send(me, msg);
    Ok(r)
}

bifs! {
    Plain "erlang":"seq_trace"/2 = seq_trace_2;
    Plain "erlang":"seq_trace_info"/1 = seq_trace_info_1;
    Plain "erlang":"seq_trace_print"/1 = seq_trace_print_1;
    Plain "erlang":"seq_trace_print"/2 = seq_trace_print_2;
    Plain "erlang":"trace_delivered"/1 = trace_delivered_1;
}
