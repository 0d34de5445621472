//! The tracing of a process, as recorded with it. Only its owner calls these functions.

use crate::events::flag;
use crate::process::ext::Timed;
use crate::process::session::{self, Session};
use crate::process::{self, Process, TRACED};
use crate::trace::frames::{Which, measure_of, number_of};
use crate::tracer::Tracer;
use smallvec::SmallVec;
use std::sync::Arc;

/// Changes the tracing of a process, on behalf of its owner. Returns false if it has another
/// tracer.
pub(crate) fn change(p: &mut Process, which: Which, on: bool, flags: u32, tracer: Tracer) -> bool {
    let me = p.pid();
    let e = p.ext_mut();
    if let Some(s) = which {
        if !session::change(&mut e.sessions, s, (on, flags, tracer), |t| t.lives(me)) {
            return false;
        }
    } else if on {
        if e.trace_flags != 0 && e.tracer != tracer && e.tracer.lives(me) {
            return false;
        }
        e.tracer = tracer;
        e.trace_flags |= flags;
    } else {
        e.trace_flags &= !flags;
        if e.trace_flags == 0 {
            e.tracer = Tracer::Nobody;
        }
    }
    if !on && flags & flag::CALL != 0 && !e.call_time.is_empty() {
        stop_measuring(&mut e.call_time, which);
    }
    let any = e.trace_flags != 0 || !e.sessions.is_empty();
    p.set_flag(TRACED, any);
    true
}

/// Removes what sessions that are over have left with a process that the caller owns.
pub(crate) fn drop_over(p: &mut Process) {
    let Some(e) = p.ext().filter(|e| !e.sessions.is_empty()) else {
        return;
    };
    e.sessions.retain(|t| !t.session.is_over());
    let any = e.trace_flags != 0 || !e.sessions.is_empty();
    p.set_flag(TRACED, any);
}

/// Flags and tracer of a process that the caller owns.
pub(crate) fn state(p: &mut Process, which: Which) -> (u32, Tracer) {
    let Some(e) = p.ext() else {
        return (0, Tracer::Nobody);
    };
    match which {
        None => (e.trace_flags, e.tracer.clone()),
        Some(s) if s.is_over() => (0, Tracer::Nobody),
        Some(s) => {
            let mut all = e.sessions.iter();
            let found = all.find(|t| Arc::ptr_eq(&t.session, s));
            found.map_or((0, Tracer::Nobody), |t| (t.flags, t.tracer.clone()))
        }
    }
}

/// Stops tracing a process that the caller owns.
pub(crate) fn drop_tracer(p: &mut Process, which: Which) {
    change(p, which, false, u32::MAX, Tracer::Nobody);
}

/// As [`state`], but stops the tracing if the tracer has ended.
pub(crate) fn live_state(p: &mut Process, which: Which) -> (u32, Tracer) {
    let (_, tracer) = state(p, which);
    if !tracer.is_nobody() && !tracer.lives(p.pid()) {
        drop_tracer(p, which);
    }
    state(p, which)
}

/// Tracers of a process that the caller owns: session, flags, tracer.
type Many = SmallVec<[(Option<Arc<Session>>, u32, Tracer); 2]>;

/// The tracers of a process that the caller owns, for any of the flags `wanted`; sessions first.
pub(crate) fn who(p: &mut Process, wanted: u32) -> Many {
    let mut all = Many::new();
    if p.has(process::SENSITIVE) {
        return all;
    }
    let Some(e) = p.ext() else { return all };
    for t in e.sessions.iter().filter(|t| t.flags & wanted != 0) {
        if !t.session.is_over() {
            all.push((Some(t.session.clone()), t.flags, t.tracer.clone()));
        }
    }
    if e.trace_flags & wanted != 0 {
        all.push((None, e.trace_flags, e.tracer.clone()));
    }
    all
}

/// Ends all measurements of one side.
fn stop_measuring(all: &mut Vec<Timed>, which: Which) {
    let whom = number_of(which);
    all.retain(|t| measure_of(t.number).1 != whom);
}
