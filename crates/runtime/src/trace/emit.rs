//! Events as terms, and their way to tracers.

use crate::cx::Cx;
use crate::events::flag;
use crate::process::Process;
use crate::trace::module;
use crate::trace::state::{drop_tracer, who};
use crate::tracer::Tracer;
use crate::{clock, lazy_atoms, port, signal};
use purlin_term::etf::encode::{Options, encode};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Alloc, Term, am, copy};

lazy_atoms! {
    trace_ts = "trace_ts";
}

/// Sends the term that `f` builds to a tracer that is a process or port. Returns false if the
/// tracer no longer exists.
pub fn tell(tracer: Term, f: impl FnOnce(&mut dyn Alloc) -> Term) -> bool {
    if !tracer.is_local_port() {
        return tracer.is_local_pid() && signal::send_with(tracer, f);
    }
    port::traced::event(tracer, encoded(f))
}

/// The term that `f` builds, in the external format.
pub(crate) fn encoded(f: impl FnOnce(&mut dyn Alloc) -> Term) -> Vec<u8> {
    let mut frag = Fragment::new();
    let t = f(&mut frag);
    let event = OwnedTerm::from_parts(t, frag);
    encode(event.term(), Options::default())
}

/// A timestamp as requested by the flags; `None` if they request none.
pub fn timestamp(a: &mut dyn Alloc, flags: u32) -> Option<Term> {
    // The first of these wins if several are requested.
    if flags & flag::TIMESTAMP != 0 {
        // As `erlang:now/0`, which never returns the same time twice.
        let us = clock::now_micros();
        let v = [
            Term::small(us / 1_000_000_000_000),
            Term::small(us / 1_000_000 % 1_000_000),
            Term::small(us % 1_000_000),
        ];
        Some(a.tuple(&v))
    } else if flags & flag::STRICT_MONOTONIC != 0 {
        let t = a.int(clock::monotonic());
        let n = crate::ids::unique_integer(a, crate::ids::unique_monotonic(), false);
        Some(a.tuple(&[t, n]))
    } else if flags & flag::MONOTONIC != 0 {
        Some(a.int(clock::monotonic()))
    } else {
        None
    }
}

/// Reports an event to a tracer. Returns false if the tracer has ended, or no longer wants this.
///
/// `items` are the tag, the subject, and further terms of some events. `wanted` is the flag of the
/// event, `flags` are those of `pid`, and `result` is the term that a match specification adds,
/// `true` for none. A process or port gets `{trace, Pid, Items…}`, with a timestamp if `flags`
/// request one.
pub(crate) fn emit(
    tracer: &Tracer,
    flags: u32,
    pid: Term,
    wanted: u32,
    items: &[Term],
    result: Term,
) -> bool {
    if let Tracer::Module(m) = tracer {
        match module::wants(m, wanted, items[0], pid) {
            module::Answer::Trace => {}
            module::Answer::Discard => return true,
            // As in stock, these events of a process do not end its tracing.
            module::Answer::Remove => {
                return pid.is_local_pid() && wanted & (flag::PROCS | flag::RECEIVE) != 0;
            }
        }
    }
    emit_unasked(tracer, flags, pid, wanted, items, result)
}

/// The term that describes an event.
pub(crate) fn event_of(
    a: &mut dyn Alloc,
    flags: u32,
    pid: Term,
    items: &[Term],
    result: Term,
) -> Term {
    let mut v = vec![am::TRACE, pid];
    v.extend(items.iter().map(|&t| copy::copy(t, a)));
    if result != am::TRUE {
        v.push(copy::copy(result, a));
    }
    stamp(a, flags, &mut v);
    a.tuple(&v)
}

/// As [`emit`], for events that a tracer module is not asked about.
pub(crate) fn emit_unasked(
    tracer: &Tracer,
    flags: u32,
    pid: Term,
    wanted: u32,
    items: &[Term],
    result: Term,
) -> bool {
    match tracer {
        Tracer::Nobody => false,
        // Nothing is reported to a process about itself.
        Tracer::Local(to) if *to == pid => true,
        Tracer::Local(to) => tell(*to, |a| event_of(a, flags, pid, items, result)),
        Tracer::Module(m) => {
            emit_to_module((m.module, m.state()), flags, pid, wanted, items, result);
            true
        }
    }
}

/// The same for a tracer module and its state.
pub(crate) fn emit_to_module(
    (name, state): (Term, Term),
    flags: u32,
    pid: Term,
    wanted: u32,
    items: &[Term],
    result: Term,
) {
    let within = pid.is_local_pid() && wanted & (flag::PROCS | flag::RECEIVE) == 0;
    let event = module::Event {
        wanted,
        tag: items[0],
        of: pid,
        message: items[1],
        extra: items.get(2).copied(),
        result,
        who: if within { pid } else { Term::NON_VALUE },
    };
    module::tell(name, state, flags, &event);
}

/// Appends to an event what the flags request: the number of the scheduler, the time.
pub(crate) fn stamp(a: &mut dyn Alloc, flags: u32, v: &mut Vec<Term>) {
    if flags & flag::SCHEDULER_ID != 0 {
        v.push(Term::small(crate::sched::current() as i64));
    }
    if let Some(t) = timestamp(a, flags) {
        v[0] = trace_ts();
        v.push(t);
    }
}

/// An argument as tracers see it: a match context appears as the rest of its binary.
pub(crate) fn argument(cx: &mut Cx, t: Term) -> Term {
    if t.is_match_context() {
        crate::interp::bits::rest_of_context(cx, t)
    } else {
        t
    }
}

/// Reports an event of a process that the caller owns, if it is traced for it.
pub(crate) fn event(p: &mut Process, wanted: u32, items: &[Term]) {
    let pid = p.pid();
    for (which, flags, tracer) in who(p, wanted) {
        if !tracer.is(pid) && !emit(&tracer, flags, pid, wanted, items, am::TRUE) {
            drop_tracer(p, which.as_ref());
        }
    }
}
