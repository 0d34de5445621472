//! Tracing of messages: which of those that traced processes send and receive are told.
//!
//! One pattern for what is sent and one for what is received hold for all processes that a session traces, or that are traced
//! without one. A specification sees
//! `[Receiver, Message]` of what is sent, and `[Node, Sender, Message]` of what is received: the sender is `undefined`
//! where it is no process, and the node then says where the message comes from.
//!
//! Messages carry their sender only while a specification is set for what is received. A message that was under way
//! before counts as one of unknown origin.

use super::calls::{Effects, Spec, matches};
use super::{Which, flag, number_of, send_to_non_existing_process, state, who};
use crate::cx::Cx;
use crate::process::{self, session::Session};
use purlin_term::sync::RwLock;
use purlin_term::unassigned_ids::is_unassigned_id;
use purlin_term::{NIL, Term, am, copy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The events of messages that tracers are told of.
#[derive(Clone)]
pub(crate) enum Pattern {
    All,
    Nothing,
    Matching(Arc<Spec>),
}

/// The patterns that aren't [`Pattern::All`], by the number of the session (-1: without one) and whether they are of what is
/// received.
static PATTERNS: RwLock<BTreeMap<(i64, bool), Pattern>> = RwLock::new(BTreeMap::new());

/// The pattern for what is sent or received.
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

/// A session is over.
pub(crate) fn end(session: &Arc<Session>) {
    set(Some(session), false, Pattern::All);
    set(Some(session), true, Pattern::All);
}

/// Sets it from what `trace_pattern/3` takes: `true`, `false` or a specification. None for anything else.
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

/// Whether an event with these arguments is told: what the specification adds to it, `true` for nothing.
fn wanted(cx: &mut Cx, which: Which, receive: bool, args: &[Term]) -> Option<Term> {
    let spec = match pattern(which, receive) {
        Pattern::All => return Some(am::TRUE),
        Pattern::Nothing => return None,
        Pattern::Matching(spec) => spec,
    };
    // The message lies in a block that is freed without regard to what the heap holds; so the program gets a copy.
    let args: Vec<Term> = args.iter().map(|&t| copy::copy(t, cx)).collect();
    let m = matches(cx, &spec, &args, &mut Effects::of_no_call(which))?;
    (m != am::FALSE && state(cx.process(), which).0 & flag::SILENT == 0).then_some(m)
}

fn tell(cx: &mut Cx, which: Which, wanted: u32, items: &[Term], more: Term) {
    let (flags, tracer) = state(cx.process(), which);
    let me = cx.self_pid();
    if flags != 0 && !tracer.is(me) && !super::emit(&tracer, flags, me, wanted, items, more) {
        super::drop_tracer(cx.process(), which);
    }
}

/// The running process sends.
#[cold]
pub fn sending(cx: &mut Cx, to: Term, msg: Term) {
    for (which, ..) in who(cx.process(), flag::SEND) {
        let which = which.as_ref();
        let Some(more) = wanted(cx, which, false, &[to, msg]) else {
            continue;
        };
        // A name that nobody has, and what can't be sent to, are errors of the sender's.
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

/// A message has come to the running process. `from`: the process, or the part of the runtime, that it is from, if the
/// message carries it.
#[cold]
pub fn received(cx: &mut Cx, from: Option<Term>, msg: Term) {
    let (node, from) = match from {
        Some(part) if part.is_atom() => (part, am::UNDEFINED),
        Some(pid) => (purlin_term::node::this_name(), pid),
        None => (super::system(), am::UNDEFINED),
    };
    for (which, ..) in who(cx.process(), flag::RECEIVE) {
        let which = which.as_ref();
        if let Some(more) = wanted(cx, which, true, &[node, from, msg]) {
            tell(cx, which, flag::RECEIVE, &[super::receive(), msg], more);
        }
    }
}
