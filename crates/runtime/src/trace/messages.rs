//! Tracing of messages: which of those that traced processes send and receive are reported.
//!
//! One pattern for sent messages and one for received messages hold for all processes that a
//! session traces, or that are traced without one. A specification for sent messages sees
//! `[Receiver, Message]`, one for received messages `[Node, Sender, Message]`. The sender is
//! `undefined` if it is no process; `Node` then says where the message comes from.
//!
//! Messages carry their sender only while a specification for received messages is set. A message
//! that was in transit before counts as one of unknown origin.

use super::calls::effects::{Effects, matches};
use super::calls::spec::Spec;
use super::emit::emit;
use super::frames::{Which, number_of};
use super::state::{drop_tracer, state, who};
use crate::cx::Cx;
use crate::events::flag;
use crate::lazy_atoms;
use crate::process::{self, session::Session};
use purlin_term::sync::RwLock;
use purlin_term::unassigned_ids::is_unassigned_id;
use purlin_term::{NIL, Term, am, copy};
use std::collections::BTreeMap;
use std::sync::Arc;

lazy_atoms! {
    pub(crate) receive = "receive";
    system = "system";
    send_to_non_existing_process = "send_to_non_existing_process";
}

/// The events of messages that tracers receive.
#[derive(Clone)]
pub(crate) enum Pattern {
    All,
    Nothing,
    Matching(Arc<Spec>),
}

/// The patterns that are not [`Pattern::All`], by the number of the session (-1: without one) and
/// by whether they are for received messages.
static PATTERNS: RwLock<BTreeMap<(i64, bool), Pattern>> = RwLock::new(BTreeMap::new());

/// The pattern for sent or received messages.
pub(crate) fn pattern(which: Which, receive: bool) -> Pattern {
    let all = PATTERNS.read();
    let found = all.get(&(number_of(which), receive));
    found.cloned().unwrap_or(Pattern::All)
}

fn set(which: Which, receive: bool, new: Pattern) {
    let mut all = PATTERNS.write();
    let key = (number_of(which), receive);
    match new {
        Pattern::All => all.remove(&key),
        _ if which.is_some_and(|s| s.is_over()) => all.remove(&key),
        new => all.insert(key, new),
    };
    let by_sender = |(k, p): (&(i64, bool), &Pattern)| k.1 && matches!(p, Pattern::Matching(_));
    crate::events::set_by_sender(all.iter().any(by_sender));
}

/// Removes the patterns of a session that is over.
pub(crate) fn end(session: &Arc<Session>) {
    set(Some(session), false, Pattern::All);
    set(Some(session), true, Pattern::All);
}

/// Sets a pattern from the argument of `trace_pattern/3`: `true`, `false` or a specification.
/// `None` for anything else.
pub(crate) fn set_pattern(which: Which, receive: bool, t: Term) -> Option<()> {
    let new = if t == am::TRUE || t == NIL {
        Pattern::All
    } else if t == am::FALSE {
        Pattern::Nothing
    } else if t.is_list() {
        Pattern::Matching(Spec::of_messages(t, receive)?)
    } else {
        return None;
    };
    set(which, receive, new);
    Some(())
}

/// Whether an event with these arguments is reported, and the term that the specification adds;
/// `true` adds nothing.
fn wanted(cx: &mut Cx, which: Which, receive: bool, args: &[Term]) -> Option<Term> {
    let spec = match pattern(which, receive) {
        Pattern::All => return Some(am::TRUE),
        Pattern::Nothing => return None,
        Pattern::Matching(spec) => spec,
    };
    // The message lies in a block that is freed whatever the heap refers to, so the program gets a
    // copy.
    let args: Vec<Term> = args.iter().map(|&t| copy::copy(t, cx)).collect();
    let m = matches(cx, &spec, &args, &mut Effects::of_no_call(which))?;
    (m != am::FALSE && state(cx.process(), which).0 & flag::SILENT == 0).then_some(m)
}

fn tell(cx: &mut Cx, which: Which, wanted: u32, items: &[Term], more: Term) {
    let (flags, tracer) = state(cx.process(), which);
    let me = cx.self_pid();
    if flags != 0 && !tracer.is(me) && !emit(&tracer, flags, me, wanted, items, more) {
        drop_tracer(cx.process(), which);
    }
}

/// Reports that the running process sends a message.
#[cold]
pub fn sending(cx: &mut Cx, to: Term, msg: Term) {
    for (which, ..) in who(cx.process(), flag::SEND) {
        let which = which.as_ref();
        let Some(more) = wanted(cx, which, false, &[to, msg]) else {
            continue;
        };
        // Unregistered names and invalid destinations are errors of the sender.
        let there = match to.is_local_pid() {
            true => process::table().find(to).is_some(),
            false => !(to.is_pid() && is_unassigned_id(to)),
        };
        let tag = if there {
            am::SEND
        } else {
            send_to_non_existing_process()
        };
        tell(cx, which, flag::SEND, &[tag, msg, to], more);
    }
}

/// Reports that a message has arrived at the running process. `from` is the process or part of the
/// runtime that sent it, if the message carries it.
#[cold]
pub fn received(cx: &mut Cx, from: Option<Term>, msg: Term) {
    let (node, from) = match from {
        Some(part) if part.is_atom() => (part, am::UNDEFINED),
        Some(pid) => (purlin_term::node::this_name(), pid),
        None => (system(), am::UNDEFINED),
    };
    for (which, ..) in who(cx.process(), flag::RECEIVE) {
        let which = which.as_ref();
        if let Some(more) = wanted(cx, which, true, &[node, from, msg]) {
            tell(cx, which, flag::RECEIVE, &[receive(), msg], more);
        }
    }
}
