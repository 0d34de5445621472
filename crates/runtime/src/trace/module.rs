//! Events told to tracer modules: functions of a native library (see `erl_tracer` in OTP's documentation).
//!
//! Before most events the module is asked whether it wants to be told, by the event's tag; whether it wants to be told of the tracee
//! at all it is asked by `trace_status`. A module that is not there, or whose library isn't, answers no to both.

use super::flag;
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

/// The tracer that `module` and `state` name; None: the module isn't there, or is no tracer module.
pub(crate) fn named(module: Term, state: Term) -> Option<Tracer> {
    if module == erl_tracer() {
        // The tracer module that needs no library. As in stock it may have gone, or never have been there: then nothing is told.
        let whom = state.is_local_pid() || state.is_local_port();
        return Some(Tracer::Local(if whom { state } else { am::UNDEFINED }));
    }
    tracer_module(module)?;
    Some(Tracer::Module(OfModule::new(module, state)))
}

/// The kind of the events that a flag of a tracee asks for.
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

/// Whether it is there, and doesn't want to be taken away from that tracee.
pub(crate) fn lives(module: Term, state: Term, tracee: Term) -> bool {
    let found = tracer_module(module);
    found.is_some_and(|m| m.enabled(Kind::Other, trace_status(), state, tracee) != remove())
}

/// Whether it wants to be told of a call by that process: first whether of the process at all. `meta`: it is the tracer that the
/// function has for all its calls, which only what it says of the process takes away.
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

/// Whether it wants an event, of those that the flag `wanted` stands for.
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
        // Whatever it is: stock takes it for `remove`.
        _ => Answer::Remove,
    }
}

/// An event, as a tracer module is told of it.
pub(crate) struct Event {
    /// Flag that asks for it, 0: none does.
    pub wanted: u32,
    pub tag: Term,
    /// The process or port; of sequential tracing the label.
    pub of: Term,
    pub message: Term,
    pub extra: Option<Term>,
    /// The term that a match specification adds; `true`: nothing.
    pub result: Term,
    /// The process that is said to be running, or [`Term::NON_VALUE`].
    pub who: Term,
}

/// Tells it. `flags`: those that the tracee has.
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
    // Where several are asked for, the first of these.
    if let Some((_, name)) = time.iter().find(|t| flags & t.0 != 0) {
        pairs.push((timestamp(), name()));
    }
    let options = map::from_pairs(&mut frag, &pairs);
    let args = [e.tag, state, e.of, e.message, options];
    found.trace(kind(e.wanted), args, e.who);
    // What it was given lies elsewhere, and is no part of the fragment.
    drop(OwnedTerm::from_parts(options, frag));
}
