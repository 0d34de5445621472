//! Tracing of messages: which of those that traced processes send and receive are told.
//!
//! One pattern for what is sent and one for what is received hold for all traced processes. A specification sees
//! `[Receiver, Message]` of what is sent, and `[Node, Sender, Message]` of what is received: the sender is `undefined`
//! where it is no process, and the node then says where the message comes from.
//!
//! Messages carry their sender only while a specification is set for what is received. A message that was under way
//! before counts as one of unknown origin.

use super::calls::{Effects, Spec, matches};
use super::{event, flag, send_to_non_existing_process, state};
use crate::cx::Cx;
use crate::process;
use purlin_term::{NIL, Term, am, copy};
use std::sync::{Arc, RwLock};

/// What is told of messages.
#[derive(Clone)]
pub(crate) enum Pattern {
    All,
    Nothing,
    Matching(Arc<Spec>),
}

static SENT: RwLock<Pattern> = RwLock::new(Pattern::All);
static RECEIVED: RwLock<Pattern> = RwLock::new(Pattern::All);

fn of(receive: bool) -> &'static RwLock<Pattern> {
    if receive { &RECEIVED } else { &SENT }
}

/// The pattern for what is sent or received.
pub(crate) fn pattern(receive: bool) -> Pattern {
    of(receive)
        .read()
        .unwrap_or_else(|e| e.into_inner())
        .clone()
}

/// Sets it from what `trace_pattern/3` takes: `true`, `false` or a specification. None for anything else.
pub(crate) fn set_pattern(receive: bool, t: Term) -> Option<()> {
    let new = if t == am::TRUE || t == NIL {
        Pattern::All
    } else if t == am::FALSE {
        Pattern::Nothing
    } else if t.is_list() {
        Pattern::Matching(Spec::of_messages(t, receive)?)
    } else {
        return None;
    };
    let mut place = of(receive).write().unwrap_or_else(|e| e.into_inner());
    if receive {
        crate::events::set_by_sender(matches!(new, Pattern::Matching(_)));
    }
    *place = new;
    Some(())
}

/// Whether an event with these arguments is told: what the specification adds to it, `true` for nothing.
fn wanted(cx: &mut Cx, receive: bool, args: &[Term]) -> Option<Term> {
    let spec = match pattern(receive) {
        Pattern::All => return Some(am::TRUE),
        Pattern::Nothing => return None,
        Pattern::Matching(spec) => spec,
    };
    // The message lies in a block that is freed without regard to what the heap holds; so the program gets a copy.
    let args: Vec<Term> = args.iter().map(|&t| copy::copy(t, cx)).collect();
    let m = matches(cx, &spec, &args, &mut Effects::of_no_call())?;
    (m != am::FALSE && state(cx.process()).0 & flag::SILENT == 0).then_some(m)
}

fn tell(cx: &mut Cx, which: u32, items: &[Term], more: Term) {
    let mut items = items.to_vec();
    if more != am::TRUE {
        items.push(more);
    }
    event(cx.process(), which, &items);
}

/// Whether events of this kind are told of the running process at all.
fn told(cx: &mut Cx, which: u32) -> bool {
    state(cx.process()).0 & which != 0 && !cx.process().has(process::SENSITIVE)
}

/// The running process sends.
#[cold]
pub fn sending(cx: &mut Cx, to: Term, msg: Term) {
    if !told(cx, flag::SEND) {
        return;
    }
    let Some(more) = wanted(cx, false, &[to, msg]) else {
        return;
    };
    let there = if to.is_local_pid() {
        process::table().find(to).is_some()
    } else {
        // A name that nobody has is an error of the sender's.
        true
    };
    let tag = if there {
        am::SEND
    } else {
        send_to_non_existing_process()
    };
    tell(cx, flag::SEND, &[tag, msg, to], more);
}

/// A message has come to the running process. `from`: the process, or the part of the runtime, that it is from, if the
/// message carries it.
#[cold]
pub fn received(cx: &mut Cx, from: Option<Term>, msg: Term) {
    if !told(cx, flag::RECEIVE) {
        return;
    }
    let (node, from) = match from {
        Some(part) if part.is_atom() => (part, am::UNDEFINED),
        Some(pid) => (purlin_term::node::this_name(), pid),
        None => (super::system(), am::UNDEFINED),
    };
    if let Some(more) = wanted(cx, true, &[node, from, msg]) {
        tell(cx, flag::RECEIVE, &[super::receive(), msg], more);
    }
}
