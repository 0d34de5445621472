//! Sequential tracing: a token that travels with messages from process to process and emits trace
//! events on the way.
//!
//! A process with a token ([`SEQUENTIAL`] in its flags) sends it with each message. The receiver of
//! such a message gets the token; the receiver of a message that was sent without a token loses its
//! own. Messages that no process sent (of timers and ports) change nothing.
//!
//! An ending process passes its token to linked processes, with its exit signal. `exit/2` passes
//! none, and so takes the token of a process that traps the signal. The message of a monitor
//! changes nothing if the reason is an immediate, and takes the token otherwise, as in stock.
//!
//! A new process has the token of its parent. That is traced as two messages, `spawn_request` and
//! `spawn_reply`, each sent and received.
//!
//! Each process counts what it sends. A token has the count of its message, and the count that was
//! received before it: its serial numbers, by which the events of one sequence are put in order.

use crate::cx::Cx;
use crate::events::sink;
use crate::lazy_atoms;
use crate::message::Signal;
pub use crate::message::token::{Sequence, Token, token_flag};
use crate::process::request::{Reply, Request};
use crate::process::{self, Process, SEQUENTIAL};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Alloc, NIL, Term, am, atom, node};

lazy_atoms! {
    receive = "receive";
    print_ = "print";
    spawn_request = "spawn_request";
}

/// Returns the sequential tracing state of the process, to be changed.
pub fn sequence(p: &mut Process) -> &mut Sequence {
    p.ext_mut().sequence.get_or_insert_default()
}

pub fn token(p: &mut Process) -> Option<&mut Token> {
    if !p.has(SEQUENTIAL) {
        return None;
    }
    p.ext()?.sequence.as_mut()?.token.as_mut()
}

/// Returns the token of the running process as a term; nil if it has none.
pub fn token_term(cx: &mut Cx) -> Term {
    match token(cx.process()).map(|t| t.duplicate()) {
        Some(t) => t.term(cx),
        None => NIL,
    }
}

/// Gives a process a token, or takes it away.
pub fn set_token(p: &mut Process, t: Option<Token>) {
    p.set_flag(SEQUENTIAL, t.is_some());
    if t.is_some() || p.ext().is_some_and(|e| e.sequence.is_some()) {
        sequence(p).token = t;
    }
}

/// Removes the token and the counts of the process.
pub fn reset(p: &mut Process) {
    p.set_flag(SEQUENTIAL, false);
    if let Some(e) = p.ext() {
        e.sequence = None;
    }
}

/// Returns a new token for a process that has none.
pub fn fresh(p: &mut Process) -> Token {
    let from = p.pid();
    Token {
        label: OwnedTerm::copy_of(Term::small(0)),
        flags: 0,
        serial: 0,
        from: OwnedTerm::copy_of(from),
        previous: sequence(p).last,
    }
}

/// Gives the token the next serial numbers. It is about to travel. Returns false if the process is
/// not traced: it is the tracer, or a tracer module does not want it.
fn step(p: &mut Process) -> bool {
    let me = p.pid();
    step_as(p, me)
}

/// As [`step`], for a process with that identifier.
fn step_as(p: &mut Process, me: Term) -> bool {
    if !sink().counts_sequence(me) {
        return false;
    }
    let s = sequence(p);
    s.clock = s.clock.wrapping_add(1);
    let (clock, last) = (s.clock, s.last);
    if let Some(t) = &mut s.token {
        t.serial = clock;
        t.previous = last;
        t.from = OwnedTerm::copy_of(me);
    }
    true
}

/// Returns the token that goes with an exit signal, from an ending process to a linked one. `msg`
/// is what a process that traps the signal receives, and `me` the pid that the ending process had,
/// which its control block no longer has.
pub fn ending(p: &mut Process, me: Term, to: Term, msg: Term) -> Option<Token> {
    let counted = step_as(p, me);
    let t = token(p)?;
    // As in stock, the receiver's sensitivity decides whether the event is traced.
    let traced = process::table().find(to).is_some_and(|p| {
        // SAFETY: cells are never unmapped; the state word is an atomic.
        unsafe { !(*p).state.load().is_sensitive() }
    });
    if t.flags & token_flag::SEND != 0 && traced && counted {
        sink().sequential(t, am::SEND, to, msg);
    }
    Some(t.duplicate())
}

/// As [`ending`], to a process of another node.
pub fn ending_far(p: &mut Process, me: Term, to: Term, msg: Term) -> Option<Token> {
    if !p.has(SEQUENTIAL) {
        return None;
    }
    let counted = step_as(p, me);
    let t = token(p)?;
    if t.flags & token_flag::SEND != 0 && counted {
        sink().sequential(t, am::SEND, to, msg);
    }
    Some(t.duplicate())
}

/// Returns the token that goes with a message of a process that has one. `to` is as the sender
/// named it.
#[cold]
pub fn sending(p: &mut Process, to: Term, msg: Term) -> Option<Token> {
    let counted = step(p);
    let quiet = p.has(process::SENSITIVE);
    let t = token(p)?;
    if t.flags & token_flag::SEND != 0 && counted && !quiet {
        sink().sequential(t, am::SEND, to, msg);
    }
    Some(t.duplicate())
}

/// Updates the token when the process receives a message that a process sent, with or without a
/// token.
///
/// # Safety
/// `s` is a message in the mailbox of `p`.
#[cold]
pub(crate) unsafe fn receiving(p: &mut Process, s: *const Signal) {
    // SAFETY: by the contract, a message in the mailbox.
    let s = unsafe { &*s };
    let Some(t) = s.token().and_then(Token::of_term) else {
        return set_token(p, None);
    };
    if t.flags & token_flag::RECEIVE != 0 && !p.has(process::SENSITIVE) {
        sink().sequential(&t, receive(), p.pid(), s.term);
    }
    let q = sequence(p);
    q.last = t.serial;
    q.clock = q.clock.max(t.serial);
    set_token(p, Some(t));
}

/// Traces `{print, …, Pid, [], Info}` for a process whose token requests that. Returns false if it
/// doesn't.
pub fn print(p: &mut Process, label: Option<Term>, info: Term) -> bool {
    let wanted = token(p).is_some_and(|t| {
        t.flags & token_flag::PRINT != 0
            && label.is_none_or(|l| purlin_term::compare::eq_exact(l, t.label.term()))
    });
    if wanted {
        let quiet = !step(p) || p.has(process::SENSITIVE);
        if let Some(t) = token(p).filter(|_| !quiet) {
            sink().sequential(t, print_(), NIL, info);
        }
    }
    wanted
}

/// Gives a new process the token of its parent.
pub(crate) fn inherit(parent: &mut Process, child: &mut Process) {
    step(parent);
    if let Some(t) = token(parent).map(|t| t.duplicate()) {
        let s = sequence(child);
        (s.clock, s.last) = (t.serial, t.serial);
        set_token(child, Some(t));
    }
}

/// Traces that a token was sent from one process to another and received there. `subject` is the
/// process concerned, which may be sensitive.
fn trace_both(t: &Token, subject: &Process, to: Term, msg: Term) {
    if subject.has(process::SENSITIVE) {
        return;
    }
    if t.flags & token_flag::SEND != 0 {
        sink().sequential(t, am::SEND, to, msg);
    }
    if t.flags & token_flag::RECEIVE != 0 {
        sink().sequential(t, receive(), to, msg);
    }
}

/// Traces the spawn of a process by one with a token, after [`inherit`]. Returns the token that
/// goes with the reply, if that is a message.
pub fn spawned(
    parent: &mut Process,
    child: &mut Process,
    [m, f, args]: [Term; 3],
    r: &Request,
) -> Option<Token> {
    let (me, pid) = (parent.pid(), child.pid());
    let mut place = Fragment::new();
    let arity = Term::small(args.list_iter().count() as i64);
    let leader = parent.ext().and_then(|e| e.group_leader.as_ref());
    let leader = leader.map_or(NIL, |t| t.term());
    let leader = match parent.group_leader {
        purlin_term::am::UNDEFINED => leader,
        pid => pid,
    };
    let mfa = place.tuple(&[m, f, arity]);
    let (tag, options) = (r.tag.term(), r.options.as_ref().map_or(NIL, |o| o.term()));
    let request = [
        spawn_request(),
        r.reference,
        me,
        leader,
        mfa,
        options,
        tag,
        args,
    ];
    let request = place.tuple(&request);
    if let Some(t) = token(parent).map(|t| t.duplicate()) {
        trace_both(&t, parent, pid, request);
    }
    if r.reply == Reply::Nothing {
        return None;
    }
    step(child);
    let t = token(child)?.duplicate();
    let reply = place.tuple(&[tag, r.reference, purlin_term::am::OK, pid]);
    if r.reply == Reply::Call {
        trace_both(&t, parent, me, reply);
        let q = sequence(parent);
        (q.last, q.clock) = (t.serial, t.serial);
    } else if t.flags & token_flag::SEND != 0 && !parent.has(process::SENSITIVE) {
        sink().sequential(&t, am::SEND, me, reply);
    }
    Some(t)
}

/// Traces that a process was spawned at the request of another node, which came with `t`. The
/// process takes the token and has received the request. Returns the token that goes with the reply
/// to `parent`. The request counts as one message and the arguments as the next, whose serial
/// number the token has.
pub fn spawned_far(
    p: &mut Process,
    t: Token,
    request: Term,
    reference: Term,
    parent: Term,
) -> Token {
    let (me, quiet) = (p.pid(), p.has(process::SENSITIVE));
    let serial = t.serial.wrapping_sub(1);
    let first = Token {
        serial,
        ..t.duplicate()
    };
    if t.flags & token_flag::RECEIVE != 0 && !quiet {
        sink().sequential(&first, receive(), me, request);
    }
    let s = sequence(p);
    (s.clock, s.last) = (serial, serial);
    set_token(p, Some(t));
    step(p);
    let reply = token(p).map_or(first, |t| t.duplicate());
    if reply.flags & token_flag::SEND != 0 && !quiet {
        let mut place = Fragment::new();
        let msg = place.tuple(&[am::SPAWN_REPLY, reference, am::OK, me]);
        sink().sequential(&reply, am::SEND, parent, msg);
    }
    reply
}

/// Traces that a spawn request of another node was refused, as [`spawned_far`] does, in this node's
/// name.
pub fn refused(t: &Token, request: Term, reference: Term, parent: Term, why: Term) -> Token {
    let here = node::this_name();
    let serial = t.serial.wrapping_sub(1);
    let first = Token {
        serial,
        ..t.duplicate()
    };
    if t.flags & token_flag::RECEIVE != 0 {
        sink().sequential(&first, receive(), here, request);
    }
    let reply = Token {
        from: OwnedTerm::copy_of(here),
        previous: serial,
        ..t.duplicate()
    };
    if t.flags & token_flag::SEND != 0 {
        let mut place = Fragment::new();
        let msg = place.tuple(&[am::SPAWN_REPLY, reference, am::ERROR, why]);
        sink().sequential(&reply, am::SEND, parent, msg);
    }
    reply
}

/// Returns the flag with that name.
pub fn named(what: Term) -> Option<u32> {
    let name = what.is_atom().then(|| atom::name(what))?;
    Some(token_flag::NAMES.iter().find(|n| n.0 == name)?.1)
}
