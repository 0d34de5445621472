//! Calls that reach a breakpoint, and returns from traced calls.
//!
//! A call is counted and reported by what is wanted of its function ([`super::wanted`]), for each
//! session by itself. What is wanted at the return is put below the call as trace frames.
//!
//! # Invariant
//! A tracer module is asked with no lock held: what it calls may be traced itself.

use super::effects::{Effects, matches};
use super::measures::switch;
use super::spec::Spec;
use super::table::{Breakpoint, breakpoint_at};
use crate::code;
use crate::code::breakpoint::*;
use crate::cx::Cx;
use crate::events::flag;
use crate::lazy_atoms;
use crate::process::session::Session;
use crate::process::{self, TRACED};
use crate::trace::emit::emit_unasked;
use crate::trace::frames::{Measure, Which, measure_number, number_of, word_of};
use crate::trace::module;
use crate::trace::state::state;
use crate::tracer::Tracer;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Alloc, NIL, Term, am, copy};
use smallvec::SmallVec;
use std::sync::Arc;

lazy_atoms! {
    call_tag = "call";
    return_from = "return_from";
    return_to = "return_to";
    exception_from = "exception_from";
}

/// See [`Passed`]. The arguments of the call are in the X registers. `caller` is its return
/// address, trace frames aside.
#[cold]
pub(crate) fn pass(cx: &mut Cx, pc: *const u64, caller: *const u64) -> Option<Passed> {
    let b = breakpoint_at(pc as usize)?;
    let mut passed = Passed {
        entry: b.entry as *const u64,
        mfa: b.mfa,
        return_to: SmallVec::new(),
        returns: SmallVec::new(),
        debug: false,
        time: SmallVec::new(),
    };
    let me = cx.self_pid();
    let sensitive = cx.process().has(process::SENSITIVE);
    let candidate = !sensitive && cx.process().has(TRACED);
    // The call came through the export, so what is wanted of all calls is reported here, too.
    let outside = pc as usize != b.entry;
    let only_local = !outside && !b.native;
    let mut receivers: SmallVec<[Receivers; 2]> = SmallVec::new();
    let watched;
    {
        let mut w = b.wanted.lock();
        passed.debug = w.plain.debug;
        watched = w.plain.watched && !sensitive;
        for (which, w) in w.each_mut() {
            let traced = candidate && state_of_local(cx.process(), which) & flag::CALL != 0;
            if let Some((n, true)) = &mut w.count {
                *n += 1;
            }
            if let (true, Some((all, true))) = (traced, &mut w.time) {
                all.entry(me.raw()).or_default().0 += 1;
                let number = measure_number(Measure::Time, number_of(which));
                passed.time.push((0, number));
            }
            if let (true, Some((all, true))) = (traced, &mut w.memory) {
                all.entry(me.raw()).or_default().0 += 1;
                let number = measure_number(Measure::Memory, number_of(which));
                passed.time.push((0, number));
            }
            if let Some((tracer, _)) = &mut w.meta
                && !sensitive
                && let Tracer::Local(to) = *tracer
                && !crate::events::lives(to)
            {
                *tracer = Tracer::Nobody;
            }
            let call = w.call.clone().filter(|c| traced && (c.1 || !only_local));
            let meta = w
                .meta
                .clone()
                .filter(|m| !sensitive && !m.0.is_nobody() && !m.0.is(me));
            if call.is_some() || meta.is_some() {
                receivers.push((which.cloned(), call, meta));
            }
        }
    }
    if watched {
        crate::trace::watch::seen(cx, b.mfa, caller);
    }
    for (before, number) in &mut passed.time {
        *before = switch(cx, *number, b.entry);
    }
    if receivers.is_empty() {
        return Some(passed);
    }
    let n = b.mfa.2 as usize;
    let args: SmallVec<[Term; 8]> = (0..n)
        .map(|i| crate::trace::emit::argument(cx, cx.x[i]))
        .collect();
    for (which, call, meta) in receivers {
        if let Some((spec, local)) = call {
            pass_traced(cx, which.as_ref(), &mut passed, &spec, local, &args, caller);
        }
        if let Some((tracer, spec)) = meta {
            if let Tracer::Module(m) = &tracer {
                match module::wants_call(m, call_tag(), me, true) {
                    module::Answer::Trace => {}
                    module::Answer::Discard => continue,
                    module::Answer::Remove => {
                        forget_meta(&b, which.as_ref(), &tracer);
                        continue;
                    }
                }
            }
            let mut fx = Effects::of_call(which.as_ref(), caller);
            if let Some(m) = matches(cx, &spec, &args, &mut fx) {
                if m != am::FALSE {
                    report_call(cx, &tracer, flag::TIMESTAMP, b.mfa, &args, m);
                }
                if fx.returns != 0 {
                    passed.returns.push((fx.returns, Whom::Tracer(tracer)));
                }
            }
        }
    }
    Some(passed)
}

/// The receivers of a call: the session, the wish for calls of traced processes, and the tracer of
/// the calls of all processes.
type Receivers = (
    Option<Arc<Session>>,
    Option<(Arc<Spec>, bool)>,
    Option<(Tracer, Arc<Spec>)>,
);

/// Handles the call of a traced function by a traced process.
fn pass_traced(
    cx: &mut Cx,
    which: Which,
    passed: &mut Passed,
    spec: &Spec,
    local: bool,
    args: &[Term],
    caller: *const u64,
) {
    let mut fx = Effects::of_call(which, caller);
    // The body may have changed both.
    let (_, tracer) = state(cx.process(), which);
    if let Tracer::Module(m) = &tracer {
        let me = cx.self_pid();
        match module::wants_call(m, call_tag(), me, false) {
            module::Answer::Trace => {}
            module::Answer::Discard => return,
            module::Answer::Remove => return crate::trace::state::drop_tracer(cx.process(), which),
        }
    }
    let Some(m) = matches(cx, spec, args, &mut fx) else {
        return;
    };
    let (flags, _) = state(cx.process(), which);
    if flags & flag::SILENT != 0 {
        return;
    }
    if fx.returns != 0 {
        passed.returns.push((fx.returns, Whom::Own(word_of(which))));
    }
    if m != am::FALSE {
        if local && flags & flag::RETURN_TO != 0 {
            passed.return_to.push(word_of(which));
        }
        report_call(cx, &tracer, flags, passed.mfa, args, m);
    }
}

/// Reports a call, after the tracer module has been asked.
fn report_call(
    cx: &mut Cx,
    tracer: &Tracer,
    flags: u32,
    (m, f, n): (Term, Term, u32),
    args: &[Term],
    message: Term,
) {
    let me = cx.self_pid();
    if tracer.is(me) {
        return;
    }
    let make = |a: &mut dyn Alloc, args: &[Term]| {
        let last = match flags & flag::ARITY != 0 {
            true => Term::small(n.into()),
            false => a.list(args),
        };
        a.tuple(&[m, f, last])
    };
    if let Tracer::Local(to) = tracer {
        crate::trace::emit::tell(*to, |a| {
            let args: SmallVec<[Term; 8]> = match flags & flag::ARITY != 0 {
                true => SmallVec::new(),
                false => args.iter().map(|&t| copy::copy(t, a)).collect(),
            };
            let mfa = make(a, &args);
            let mut v = vec![am::TRACE, me, call_tag(), mfa];
            if message != am::TRUE {
                v.push(copy::copy(message, a));
            }
            crate::trace::emit::stamp(a, flags, &mut v);
            a.tuple(&v)
        });
        return;
    }
    // It refers to what the registers hold: nothing may move until the tracer has it.
    let mut frag = Fragment::new();
    let mfa = make(&mut frag, args);
    emit_unasked(tracer, flags, me, flag::CALL, &[call_tag(), mfa], message);
    drop(OwnedTerm::from_parts(mfa, frag));
}

/// Flags of a process that the caller owns. If its tracer is a process or port that has ended, the
/// process is no longer traced. A module is asked later, when no lock is held.
fn state_of_local(p: &mut process::Process, which: Which) -> u32 {
    match state(p, which) {
        (flags, Tracer::Module(_)) => flags,
        _ => crate::trace::state::live_state(p, which).0,
    }
}

/// Removes a tracer of all calls that no longer wants them.
fn forget_meta(b: &Breakpoint, which: Which, tracer: &Tracer) {
    let mut w = b.wanted.lock();
    let number = number_of(which);
    let mut all = w.each_mut();
    let found = all.find(|(s, _)| number_of(*s) == number);
    if let Some((_, w)) = found
        && let Some((t, _)) = &mut w.meta
        && t == tracer
    {
        *t = Tracer::Nobody;
    }
}

/// Flags and tracer from the word of a frame; `None` if the word is a tracer itself.
fn traced_by(cx: &mut Cx, word: Term) -> Option<(u32, Tracer)> {
    if word == NIL {
        return Some(state(cx.process(), None));
    }
    let number = word.as_small()?;
    let all = cx.process().ext().map(|e| e.sessions.clone());
    let mut all = all.unwrap_or_default().into_iter();
    let found = all.find(|t| i64::from(t.session.number) == number && !t.session.is_over());
    Some(found.map_or((0, Tracer::Nobody), |t| (t.flags, t.tracer)))
}

/// Reports that the call with trace frame `frame` (its words behind the address) returns `value`,
/// or ends with an exception of `class`.
#[cold]
pub(crate) fn returned(cx: &mut Cx, frame: [Term; 5], class: Option<Term>, value: Term) {
    let [m, f, arity, kind, tracer] = frame;
    let kind = kind.as_small().unwrap_or(0);
    if class.is_some() && kind != kind::EXCEPTION || cx.process().has(process::SENSITIVE) {
        return;
    }
    let mut frag = Fragment::new();
    let mfa = frag.tuple(&[m, f, arity]);
    let items = match class {
        None => [return_from(), mfa, value],
        Some(c) => {
            let v = copy::copy(value, &mut frag);
            [exception_from(), mfa, frag.tuple(&[c, v])]
        }
    };
    let me = cx.self_pid();
    const META: u32 = flag::CALL | flag::TIMESTAMP;
    match traced_by(cx, tracer) {
        Some((flags, tracer)) if flags & flag::CALL != 0 => {
            emit_unasked(&tracer, flags, me, flag::CALL, &items, am::TRUE);
        }
        Some(_) => {}
        None => match tracer.as_tuple() {
            Some(&[name, state]) => {
                crate::trace::emit::emit_to_module(
                    (name, state),
                    META,
                    me,
                    flag::CALL,
                    &items,
                    am::TRUE,
                );
            }
            _ => {
                emit_unasked(
                    &Tracer::Local(tracer),
                    META,
                    me,
                    flag::CALL,
                    &items,
                    am::TRUE,
                );
            }
        },
    }
    drop(OwnedTerm::from_parts(mfa, frag));
}

/// Reports that the process continues at `pc` after a traced call; `whom` is the last word of the
/// frame.
#[cold]
pub(crate) fn returned_to(cx: &mut Cx, whom: Term, pc: *const u64) {
    let Some((flags, tracer)) = traced_by(cx, whom) else {
        return;
    };
    if flags & flag::RETURN_TO == 0 || cx.process().has(process::SENSITIVE) {
        return;
    }
    let mut frag = Fragment::new();
    let place = match code::find(pc.wrapping_sub(1)) {
        Some(p) => frag.tuple(&[p.module, p.function, Term::small(p.arity.into())]),
        None => am::UNDEFINED,
    };
    let me = cx.self_pid();
    emit_unasked(
        &tracer,
        flags,
        me,
        flag::CALL,
        &[return_to(), place],
        am::TRUE,
    );
    drop(OwnedTerm::from_parts(place, frag));
}
