//! Natives of trace sessions.

use crate::cx::{BifResult, Cx, Fail};
use crate::trace::sessions::Session;
use crate::trace::{self, Which, module, sessions};
use crate::tracer::Tracer;
use crate::{bifs, lazy_atoms, process, signal};
use purlin_term::{Alloc, NIL, Term, am};
use std::sync::Arc;

lazy_atoms! {
    pub(crate) session = "session";
}

/// The session that a term names: the pair whose first element owns it, or the second element
/// alone.
pub(super) fn session_of(cx: &mut Cx, t: Term) -> Result<Arc<Session>, Fail> {
    match sessions::named(t) {
        Some(s) if !s.is_over() => Ok(s),
        _ => Err(cx.badarg_cause(session())),
    }
}

/// The tracer of everything that a session traces, if it has one.
pub(super) fn own_tracer(which: Which) -> Option<Tracer> {
    which.and_then(|s| s.tracer())
}

/// A session's name and number, which name the session without owning it.
pub(super) fn weak(cx: &mut Cx, s: &Session) -> Term {
    cx.tuple(&[s.name, Term::small(s.number.into())])
}

/// `erts_internal:trace_session_create(Name, Tracer, Options)`: a pair of the reference that owns
/// the session, and of its name and number.
fn session_create_3(cx: &mut Cx, [name, tracer, options]: [Term; 3]) -> BifResult {
    let each_its_own = tracer == am::UNDEFINED;
    let tracer = match tracer.as_tuple() {
        _ if each_its_own => Some(Tracer::Nobody),
        Some(&[m, state]) if m.is_atom() => module::named(m, state),
        _ => (tracer.is_local_pid() || tracer.is_local_port()).then_some(Tracer::Local(tracer)),
    };
    let (true, Some(tracer), true) = (name.is_atom(), tracer, options == NIL) else {
        return Err(Fail::Badarg);
    };
    let s = Session::begin(name, tracer);
    let weak = weak(cx, &s);
    let strong = sessions::reference(cx, s);
    Ok(cx.tuple(&[strong, weak]))
}

/// `erts_internal:trace_session_destroy(Session)`: false if it is over already.
fn session_destroy_1(cx: &mut Cx, [s]: [Term; 1]) -> BifResult {
    match sessions::named(s) {
        Some(s) => Ok(Term::bool(sessions::end(&s))),
        None => Err(cx.badarg_cause(am::BADOPT)),
    }
}

/// `erts_trace_cleaner:check()`: whether to look for remains of sessions that are over. Always
/// false: each remainder is removed by the next code that finds it.
fn cleaner_check_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(am::FALSE)
}

/// `erts_trace_cleaner:send_trace_clean_signal(Process)`: makes a process remove the remains of
/// sessions that are over, and answer with its pid. Returns false if there is no such process.
fn cleaner_signal_1(cx: &mut Cx, [whom]: [Term; 1]) -> BifResult {
    let me = cx.self_pid();
    if whom.is_local_port() {
        // Ports check what there is each time.
        return Ok(am::FALSE);
    }
    if !whom.is_local_pid() {
        return Err(Fail::Badarg);
    }
    if process::table().find(whom).is_none() {
        return Ok(am::FALSE);
    }
    signal::send::run_in(
        whom,
        Box::new(move |cx| {
            if let Some(cx) = cx {
                trace::drop_over(cx.process());
            }
            signal::send(me, whom);
        }),
    );
    Ok(am::TRUE)
}

bifs! {
    Plain "erts_internal":"trace_session_create"/3 = session_create_3 [since(27)];
    Plain "erts_internal":"trace_session_destroy"/1 = session_destroy_1 [changes_code since(27)];
    Plain "erts_trace_cleaner":"check"/0 = cleaner_check_0 [since(27)];
    Plain "erts_trace_cleaner":"send_trace_clean_signal"/1 = cleaner_signal_1 [since(27)];
}
