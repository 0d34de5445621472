//! Events for tracer modules: functions of a native library (see `erl_tracer` in OTP's
//! documentation).
//!
//! Before most events the module is asked, by the event's tag, whether it wants it. Whether it
//! wants any event of the traced process is asked by `trace_status`. A module that is missing, or
//! whose library is missing, answers no to both.

use crate::events::flag;
use crate::lazy_atoms;
use crate::tracer::{OfModule, Tracer};
use purlin_nif::{Kind, tracer_module};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Term, am, map};

lazy_atoms! {
    discard = "discard";
    remove = "remove";
    trace_status = "trace_status";
    erl_tracer = "erl_tracer";
    extra_ = "extra";
    match_spec_result = "match_spec_result";
    scheduler_id = "scheduler_id";
    timestamp = "timestamp";
    monotonic = "monotonic";
    strict_monotonic = "strict_monotonic";
}

/// The answer of a tracer module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Trace,
    Discard,
    Remove,
}

/// The tracer that `module` and `state` name; `None` if the module is missing or no tracer module.
pub(crate) fn named(module: Term, state: Term) -> Option<Tracer> {
    if module == erl_tracer() {
        // The tracer module that needs no library. As in stock its process or port may have ended,
        // or never have existed; then nothing is reported.
        let whom = state.is_local_pid() || state.is_local_port();
        return Some(Tracer::Local(if whom { state } else { am::UNDEFINED }));
    }
    tracer_module(module)?;
    Some(Tracer::Module(OfModule::new(module, state)))
}

/// The kind of the events that a flag requests.
fn kind(wanted: u32) -> Kind {
    const PROCS: u32 = flag::RUNNING | flag::RUNNING_PROCS | flag::EXITING;
    match wanted {
        flag::SEND => Kind::Send,
        flag::RECEIVE => Kind::Receive,
        flag::CALL => Kind::Call,
        flag::GC => Kind::GarbageCollection,
        flag::PROCS => Kind::Procs,
        flag::PORTS => Kind::Ports,
        flag::RUNNING_PORTS => Kind::RunningPorts,
        w if w & PROCS != 0 => Kind::RunningProcs,
        _ => Kind::Other,
    }
}

/// Whether the tracer exists and does not want to be removed from that process.
pub(crate) fn lives(module: Term, state: Term, tracee: Term) -> bool {
    let found = tracer_module(module);
    found.is_some_and(|m| m.enabled(Kind::Other, trace_status(), state, tracee) != remove())
}

/// Whether it wants a call by that process, after asking whether it wants the process at all. With
/// `meta` it is the tracer of all calls of the function, which only its answer about the process
/// removes.
pub(crate) fn wants_call(m: &OfModule, tag: Term, tracee: Term, meta: bool) -> Answer {
    let Some(found) = tracer_module(m.module) else {
        return Answer::Remove;
    };
    let status = found.enabled(Kind::Other, trace_status(), m.state(), tracee);
    if status == remove() {
        return Answer::Remove;
    }
    match answer(found.enabled(Kind::Call, tag, m.state(), tracee)) {
        Answer::Remove if meta => Answer::Discard,
        a => a,
    }
}

/// Whether it wants an event of the flag `wanted`.
pub(crate) fn wants(m: &OfModule, wanted: u32, tag: Term, tracee: Term) -> Answer {
    let Some(found) = tracer_module(m.module) else {
        return Answer::Discard;
    };
    answer(found.enabled(kind(wanted), tag, m.state(), tracee))
}

fn answer(said: Term) -> Answer {
    match said {
        am::TRACE => Answer::Trace,
        a if a == discard() => Answer::Discard,
        // Stock takes any other answer for `remove`.
        _ => Answer::Remove,
    }
}

/// An event as a tracer module receives it.
pub(crate) struct Event {
    /// The flag that requests it; 0 for none.
    pub wanted: u32,
    pub tag: Term,
    /// The process or port; for sequential tracing the label.
    pub of: Term,
    pub message: Term,
    pub extra: Option<Term>,
    /// The term that a match specification adds; `true` for none.
    pub result: Term,
    /// The process that is reported as running, or [`Term::NON_VALUE`].
    pub who: Term,
}

/// Sends it to the module. `flags` are those of the traced process.
pub(crate) fn tell(module: Term, state: Term, flags: u32, e: &Event) {
    let Some(found) = tracer_module(module) else {
        return;
    };
    let mut frag = Fragment::new();
    let mut pairs: Vec<(Term, Term)> = Vec::new();
    pairs.extend(e.extra.map(|t| (extra_(), t)));
    if e.result != am::TRUE {
        pairs.push((match_spec_result(), e.result));
    }
    if flags & flag::SCHEDULER_ID != 0 {
        let id = Term::small(crate::sched::current() as i64);
        pairs.push((scheduler_id(), id));
    }
    let time = [
        (flag::TIMESTAMP, timestamp as fn() -> Term),
        (flag::STRICT_MONOTONIC, strict_monotonic),
        (flag::MONOTONIC, monotonic),
    ];
    // The first of these wins if several are requested.
    if let Some((_, name)) = time.iter().find(|t| flags & t.0 != 0) {
        pairs.push((timestamp(), name()));
    }
    let options = map::from_pairs(&mut frag, &pairs);
    let args = [e.tag, state, e.of, e.message, options];
    found.trace(kind(e.wanted), args, e.who);
    // The options lie elsewhere, not in the fragment.
    drop(OwnedTerm::from_parts(options, frag));
}
