//! Sequential tracing: events of the tokens that go with messages. The tokens are in
//! `signal/token.rs`.

use super::emit::{tell as send_event, timestamp};
use super::messages::receive;
use super::module;
use crate::cx::Cx;
use crate::events::flag;
use crate::lazy_atoms;
pub use crate::signal::token::*;
use crate::tracer::Tracer;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::sync::RwLock;
use purlin_term::{Alloc, NIL, Term, am, copy};
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    seq_trace = "seq_trace";
    sequential_trace_token = "sequential_trace_token";
    label = "label";
    serial = "serial";
}

static SEQUENTIAL_TRACER: RwLock<Tracer> = RwLock::new(Tracer::Nobody);
/// Whether there is a sequential tracer.
static SEQUENTIAL: AtomicBool = AtomicBool::new(false);

/// The sequential tracer. A module that no longer wants to be the tracer is removed.
pub(crate) fn sequential_tracer() -> Tracer {
    if !SEQUENTIAL.load(Ordering::Relaxed) {
        return Tracer::Nobody;
    }
    let t = SEQUENTIAL_TRACER.read().clone();
    if matches!(t, Tracer::Module(_)) && !t.lives(am::UNDEFINED) {
        let mut now = SEQUENTIAL_TRACER.write();
        if *now == t {
            *now = Tracer::Nobody;
            SEQUENTIAL.store(false, Ordering::Relaxed);
        }
        return Tracer::Nobody;
    }
    t
}

/// The sequential tracer as programs see it; `false` for none.
pub(crate) fn sequential_tracer_term(cx: &mut Cx, t: &Tracer) -> Term {
    match t.is_nobody() {
        true => am::FALSE,
        false => t.term(cx),
    }
}

/// Sets the sequential tracer to a local pid or port, to `{Module, State}`, or to none (`false`),
/// and returns the old one. `None` for any other term.
pub(crate) fn set_sequential_tracer(t: Term) -> Option<Tracer> {
    let new = match t.as_tuple() {
        _ if t == am::FALSE => Tracer::Nobody,
        Some(&[m, state]) if m.is_atom() => module::named(m, state)?,
        _ => Tracer::Local(t),
    };
    if !new.is_nobody() && !new.lives(am::UNDEFINED) {
        return None;
    }
    let before = sequential_tracer();
    SEQUENTIAL.store(!new.is_nobody(), Ordering::Relaxed);
    *SEQUENTIAL_TRACER.write() = new;
    Some(before)
}

/// Changes a component of the process's token and returns its old value. Creates a token if there
/// is none, with or without a tracer. `None` if there is no such component or the value is invalid.
pub fn change(cx: &mut Cx, what: Term, value: Term) -> Option<Term> {
    if what == sequential_trace_token() {
        if value != NIL {
            return None;
        }
        let old = sequence(cx.process()).token.take();
        set_token(cx.process(), None);
        return Some(old.map_or(NIL, |t| t.term(cx)));
    }
    let flag = named(what);
    let (is_label, is_serial) = (what == label(), what == serial());
    let on = value.as_bool();
    let counts = match value.as_tuple() {
        Some(&[a, b]) => a.as_small().zip(b.as_small()),
        _ => None,
    };
    let good = is_label || (is_serial && counts.is_some()) || (flag.is_some() && on.is_some());
    if !good {
        return None;
    }
    let p = cx.process();
    let mut t = match sequence(p).token.take() {
        Some(t) => t,
        None => fresh(p),
    };
    let old = if is_label {
        let new = OwnedTerm::copy_of(value);
        let old = std::mem::replace(&mut t.label, new);
        copy::copy(old.term(), cx)
    } else if let (Some(bit), Some(on)) = (flag, on) {
        let was = t.flags & bit != 0;
        t.flags = if on { t.flags | bit } else { t.flags & !bit };
        Term::bool(was)
    } else {
        let before = [Term::small(t.previous), Term::small(t.serial)];
        if let Some((previous, serial)) = counts {
            (t.previous, t.serial) = (previous, serial);
            let s = sequence(cx.process());
            (s.last, s.clock) = (previous, serial);
        }
        cx.tuple(&before)
    };
    let me = cx.self_pid();
    t.from = OwnedTerm::copy_of(me);
    set_token(cx.process(), Some(t));
    Some(old)
}

/// Sends the sequential tracer `{seq_trace, Label, {What, {Previous, Serial}, From, To, Message}}`,
/// with a timestamp if the token requests one.
pub fn tell(t: &Token, what: Term, to: Term, msg: Term) {
    let tracer = sequential_tracer();
    let wanted = |f: u32, time: u32| if t.flags & f != 0 { time } else { 0 };
    let time = wanted(token_flag::TIMESTAMP, flag::TIMESTAMP)
        | wanted(token_flag::STRICT_MONOTONIC, flag::STRICT_MONOTONIC)
        | wanted(token_flag::MONOTONIC, flag::MONOTONIC);
    let who = if what == receive() { to } else { t.from.term() };
    let tracer = match tracer {
        Tracer::Nobody => return,
        // It is not sent what it does itself.
        Tracer::Local(t) if t == who => return,
        Tracer::Local(t) => t,
        Tracer::Module(m) => {
            if asked(&m, who) != module::Answer::Trace {
                return;
            }
            let mut frag = Fragment::new();
            let serial = frag.tuple(&[Term::small(t.previous), Term::small(t.serial)]);
            let message = frag.tuple(&[what, serial, t.from.term(), to, msg]);
            let event = module::Event {
                wanted: 0,
                tag: seq_trace(),
                of: t.label.term(),
                message,
                extra: None,
                result: am::TRUE,
                who: Term::NON_VALUE,
            };
            module::tell(m.module, m.state(), time, &event);
            drop(OwnedTerm::from_parts(message, frag));
            return;
        }
    };
    send_event(tracer, |a| {
        let serial = a.tuple(&[Term::small(t.previous), Term::small(t.serial)]);
        let (to, msg) = (copy::copy(to, a), copy::copy(msg, a));
        let from = copy::copy(t.from.term(), a);
        let info = a.tuple(&[what, serial, from, to, msg]);
        let mut v = vec![seq_trace(), copy::copy(t.label.term(), a), info];
        v.extend(timestamp(a, time));
        a.tuple(&v)
    });
}

/// Asks a tracer module whether it wants what a process does with its token.
fn asked(m: &crate::tracer::OfModule, who: Term) -> module::Answer {
    let who = if who.is_local_pid() {
        who
    } else {
        am::UNDEFINED
    };
    module::wants(m, 0, seq_trace(), who)
}

/// Whether a message of a process with a token gets a serial number of its own: not if the process
/// is the tracer, or a tracer module does not want it.
pub(super) fn counts(pid: Term) -> bool {
    match sequential_tracer() {
        Tracer::Module(m) => asked(&m, pid) == module::Answer::Trace,
        Tracer::Local(t) => t != pid,
        Tracer::Nobody => true,
    }
}
