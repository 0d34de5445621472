//! Sending of signals, from natives and from threads that run no process.
//!
//! [`deliver_as`] sends a message from a process: it finds the [`Destination`], asks the bounds of
//! the receiver's mailbox, reports to tracers, and makes the signal. A small message is copied into
//! one block with its signal ([`small`]); of a larger one the parts that are worth it are shared.
//! [`deliver_small`] is the short way of machine code, which does nothing in all other cases.
//!
//! # Invariants
//! - A signal belongs to its sender until it is pushed, and to the receiver afterwards. If there is
//!   no receiver, it is freed.
//! - Signals from one sender to one receiver arrive in the order in which they were sent.

use super::{bounds, token};
use crate::accounts::{self, Kind as Account};
use crate::budgets;
use crate::cx::{BifResult, Cx, Fail};
use crate::events;
use crate::message::{Kind, Sequel, Signal};
use crate::outside::outside;
pub use crate::outside::{How, Sent};
use crate::post::{Pushed, push_at};
pub use crate::post::{push, push_or_free, send, send_from, send_with, wake};
use crate::process::state::Priority;
use crate::process::task::Task;
use crate::process::{self, registry};
use crate::report::{self, Level, Text};
use purlin_term::Alloc;
use purlin_term::copy::{self, FLAT_WORDS, Flat};
use purlin_term::frag::Fragment;
use purlin_term::layout::RefView;
use purlin_term::print::{Style, format_term};
use purlin_term::region::is_shared;
use purlin_term::unassigned_ids::is_unassigned_id;
use purlin_term::{Term, am};

/// Additional reductions that a message costs its sender if the receiver has fallen behind. The
/// receiver then runs before much more is sent, while what waits still lies in the processor's
/// caches. The sender loses nothing by it if no other process is ready.
const GIVE_WAY: usize = 100;
/// Number of signals fetched at once from which on a process counts as having fallen behind.
pub(crate) const MANY_AT_ONCE: usize = 500;

/// Makes a local process run `task` as soon as it handles signals. If there is no such process, the
/// task runs here, with `None`.
#[inline]
pub fn run_in(to: Term, task: Task) {
    run_in_at(to, crate::sched::running_priority(), task);
}

/// As [`run_in`], at `prio` if that is higher than the process's own: the requester may wait for
/// the answer, and then should not wait for processes of a priority in between.
pub fn run_in_at(to: Term, prio: Priority, task: Task) {
    let s = Signal::task(task);
    // SAFETY: a fresh signal, which stays ours if it isn't delivered. Cells are never unmapped; the
    // state word is an atomic.
    unsafe {
        if !push(to, s) {
            Signal::into_task(s)(None);
            return;
        }
        if let Some(p) = process::table().find(to)
            && prio > (*p).state.priority()
        {
            crate::sched::raise(p, prio);
        }
    }
}

/// Sends the exit signal of a broken link, from `from` to the local process `to`.
#[inline]
pub fn link_exit(from: Term, to: Term, reason: Term) {
    exit_of(Kind::LinkExit, from, to, reason);
}

/// The signal has no token: a process that traps it loses the sequential trace token that it may
/// have.
#[inline]
fn exit_of(kind: Kind, from: Term, to: Term, reason: Term) {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, exit_signal_of(kind, from, reason)) };
}

#[inline]
fn exit_signal_of(kind: Kind, from: Term, reason: Term) -> *mut Signal {
    let s = Signal::tuple_of(kind, &[am::EXIT_UC, from, reason]);
    // SAFETY: a fresh signal.
    unsafe { (*s).end_sequel() };
    s
}

/// Returns an exit signal that a process has sent, with the token that came with it. The caller
/// owns it.
pub fn exit_as_signal(t: Option<&token::Token>, from: Term, reason: Term) -> *mut Signal {
    let Some(t) = t else {
        return exit_signal_of(Kind::Exit, from, reason);
    };
    let mut f = Fragment::new();
    let exit = f.tuple(&[am::EXIT_UC, from, reason]);
    let s = Signal::with_token(None, t, None, exit);
    // SAFETY: a fresh signal.
    unsafe { (*s).kind = Kind::Exit };
    s
}

/// As [`link_exit`], from an ending process with a sequential trace token, which was `me`.
#[cold]
pub(crate) fn link_exit_with_token(p: &mut process::Process, me: Term, to: Term, reason: Term) {
    let mut f = Fragment::new();
    let msg = f.tuple(&[am::EXIT_UC, me, reason]);
    if let Some(t) = token::ending(p, me, to, msg) {
        let s = Signal::with_token(None, &t, None, msg);
        // SAFETY: a fresh signal.
        unsafe {
            (*s).kind = Kind::LinkExit;
            push_or_free(to, s);
        }
    }
}

/// Sends an exit signal as `exit(To, Reason)` does.
#[inline]
pub fn exit_signal(from: Term, to: Term, reason: Term) {
    exit_of(Kind::Exit, from, to, reason);
}

/// As [`exit_signal`], with a sequential trace token.
#[cold]
pub fn exit_signal_with_token(t: &token::Token, from: Term, to: Term, reason: Term) {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, exit_as_signal(Some(t), from, reason)) };
}

/// Tells the local process `to`, which monitors `object` by `reference`, that it has ended. `kind`
/// is `process`, `port` or another type of monitor.
pub fn monitor_down(to: Term, reference: Term, kind: Term, object: Term, reason: Term) {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, down_signal(reference, kind, object, reason)) };
}

/// Returns the signal of [`monitor_down`]. The caller owns it.
pub fn down_signal(reference: Term, kind: Term, object: Term, reason: Term) -> *mut Signal {
    let s = Signal::tuple_of(Kind::Down, &[am::DOWN, reference, kind, object, reason]);
    if !reason.is_immed() {
        // SAFETY: a fresh signal.
        unsafe { (*s).end_sequel() };
    }
    s
}

/// The destination of a message.
pub enum Destination {
    /// A process of this node.
    Process(Term),
    /// The process that made this alias.
    Alias(Term),
    /// A port of this node.
    Port(Term),
    /// None. The sender gets no error.
    Nobody,
    /// None: a port that never exists on this node.
    NoPort,
    /// None: something that this node had before it got its present creation.
    Past,
    /// `badarg`: no such name, or not a destination.
    BadArg,
    /// `badarg`: a tuple other than `{Name, Node}`.
    BadTuple,
    /// On another node, whose name this is.
    Remote(Term),
}

/// Returns the destination of a message to a pid, port, name, `{Name, Node}` or alias.
pub fn destination(to: Term) -> Destination {
    if to.is_local_pid() {
        return Destination::Process(to);
    }
    let named = |t: Term| {
        if t.is_local_pid() {
            Destination::Process(t)
        } else {
            Destination::Port(t)
        }
    };
    if to.is_atom() {
        return registry::whereis(to).map_or(Destination::BadArg, named);
    }
    if to.is_local_port() {
        return Destination::Port(to);
    }
    let is_here = |name: Term| name == purlin_term::node::this_name();
    if let Some(r) = to.as_ref_view() {
        return match r {
            RefView::Local { pid: Some(pid), .. } => Destination::Alias(pid),
            RefView::External { node, .. } if is_here(node.name) => Destination::Past,
            RefView::External { node, .. } => Destination::Remote(node.name),
            _ => Destination::Nobody,
        };
    }
    if let Some(parts) = to.as_tuple() {
        let &[name, node] = parts else {
            return Destination::BadTuple;
        };
        if !name.is_atom() || !node.is_atom() {
            return Destination::BadTuple;
        }
        if !is_here(node) {
            return Destination::Remote(node);
        }
        // Unlike with a plain name, the sender gets no error if the name is not registered.
        return registry::whereis(name).map_or(Destination::Nobody, named);
    }
    match to.as_external() {
        Some(_) if is_unassigned_id(to) && to.is_pid() => Destination::Nobody,
        Some(_) if is_unassigned_id(to) => Destination::NoPort,
        Some((node, _)) if is_here(node.name) => Destination::Past,
        Some((node, _)) if to.is_pid() => Destination::Remote(node.name),
        // Ports of other nodes are no destinations.
        _ => Destination::BadArg,
    }
}

/// Sends `msg` to a process, directly or by an alias. A large message is shared.
pub fn to_process(cx: &mut Cx, to: Term, alias: Option<Term>, msg: Term) {
    if cx.process().has(process::SEQUENTIAL) {
        return with_token(cx, to, alias, msg);
    }
    if let Some(signal) = small(alias, msg) {
        return hand_over(cx, to, signal, msg);
    }
    if process::table().find(to).is_none() {
        return;
    }
    let (msg, mut held) = super::share::share(cx, Account::Message, msg);
    let signal = if events::by_sender() {
        Signal::sent(alias, cx.self_pid(), msg)
    } else {
        let n = held.words().unwrap_or_else(|| copy::size_of(msg));
        let regions = held.take_regions();
        match alias {
            None => Signal::copy_sized(Kind::Message, msg, n, regions),
            Some(a) => Signal::pair_sized(Kind::AliasMessage, a, msg, n, regions),
        }
    };
    // SAFETY: a fresh signal, still ours.
    count(cx, unsafe { (*signal).words() }, msg);
    // SAFETY: a fresh signal.
    unsafe {
        (*signal).end_sequel();
        push_or_free(to, signal);
    }
    drop(held);
}

/// Sends `msg` where that is no more than a copy of a small message for a process of this node.
/// False: nothing has happened, and [`deliver`] does it.
pub fn deliver_small(cx: &mut Cx, to: Term, msg: Term) -> bool {
    let watched = process::TRACED | process::SAVES | process::SEQUENTIAL;
    if !to.is_local_pid() || cx.process().has(watched) {
        return false;
    }
    if budgets::on() && bounds::concerns(to) {
        return false;
    }
    let Some(signal) = small(None, msg) else {
        return false;
    };
    hand_over(cx, to, signal, msg);
    true
}

/// Gives a process a small message. The signal was made before the receiver is looked up: its cell,
/// which all that send to it write to, is wanted for the few instructions between finding it and
/// waking it.
#[inline(always)]
fn hand_over(cx: &mut Cx, to: Term, signal: *mut Signal, msg: Term) {
    // SAFETY: a fresh signal; cells are never unmapped.
    unsafe {
        count(cx, (*signal).words(), msg);
        let pushed = match process::table().find(to) {
            Some(p) => push_at(p, to, signal),
            None => Pushed::Refused,
        };
        match pushed {
            Pushed::Done => {}
            Pushed::Behind => cx.bump(GIVE_WAY),
            Pushed::Refused => Signal::free(signal),
        }
    }
}

/// Sends `msg` to a process by an alias; if the alias has priority, so has the message.
pub fn to_process_urgently(cx: &mut Cx, to: Term, alias: Term, msg: Term) {
    if process::table().find(to).is_none() {
        return;
    }
    let (msg, held) = super::share::share(cx, Account::Message, msg);
    let from = events::by_sender().then(|| cx.self_pid());
    let token = match cx.process().has(process::SEQUENTIAL) {
        true => token::sending(cx.process(), alias, msg),
        false => None,
    };
    let signal = match (token, from) {
        (Some(t), from) => Signal::with_token(Some(alias), &t, from, msg),
        (None, Some(from)) => Signal::sent(Some(alias), from, msg),
        (None, None) => Signal::pair_of(Kind::AliasMessage, alias, msg),
    };
    // SAFETY: a fresh signal, still ours.
    count(cx, unsafe { (*signal).words() }, msg);
    // SAFETY: a fresh signal, still ours.
    unsafe {
        if (*signal).sequel() == Sequel::None {
            (*signal).end_sequel();
        }
        (*signal).kind = Kind::UrgentMessage;
        push_or_free(to, signal);
    }
    drop(held);
}

/// Returns the signal of a message that is small and needs nothing special, as most are.
#[inline]
fn small(alias: Option<Term>, msg: Term) -> Option<*mut Signal> {
    // Messages that are shared from a few words on, or whose sender is traced, take the slow path.
    if !super::share::copies(FLAT_WORDS) || events::by_sender() {
        return None;
    }
    if alias.is_none() && msg.is_immed() {
        return Some(Signal::of_immed(Sequel::Ends, msg));
    }
    let mut f = Flat::new();
    if let Some(a) = alias {
        let part = f.set_pair(a, msg)?;
        return Some(Signal::of_flat(Kind::AliasMessage, Sequel::Ends, &f, part));
    }
    if is_shared(msg) || !f.set(msg) {
        return None;
    }
    let all = (0, f.len());
    Some(Signal::of_flat(Kind::Message, Sequel::Ends, &f, all))
}

/// Counts words that are copied from the running process to another, in `msg`.
#[inline(always)]
fn count(cx: &mut Cx, words: usize, msg: Term) {
    cx.words_copied += words as u64;
    accounts::copied(cx, Account::Message, words, msg);
    super::share::count_copied(cx, words);
}

/// As [`to_process`], for a process with a sequential trace token. It only goes to processes that
/// exist.
#[cold]
fn with_token(cx: &mut Cx, to: Term, alias: Option<Term>, msg: Term) {
    if process::table().find(to).is_none() {
        return;
    }
    let me = cx.process();
    let from = events::by_sender().then(|| me.pid());
    if let Some(t) = token::sending(me, alias.unwrap_or(to), msg) {
        // SAFETY: a fresh signal.
        unsafe { push_or_free(to, Signal::with_token(alias, &t, from, msg)) };
    }
}

/// Traces a send, or saves it as a call.
#[cold]
fn watched(cx: &mut Cx, to: Term, msg: Term) {
    saves(cx);
    if cx.process().has(process::TRACED) {
        events::sink().sending(cx, to, msg);
    }
}

/// Saves a send, if the process saves its calls.
#[inline]
fn saves(cx: &mut Cx) {
    if cx.process().has(process::SAVES) {
        crate::process::saved::note(cx.process(), crate::process::saved::Call::Send);
    }
}

/// Does the work of `To ! Message`.
pub fn deliver(cx: &mut Cx, to: Term, msg: Term) -> BifResult {
    deliver_as(cx, to, msg, How::default()).map(|_| msg)
}

/// Does the work of `erlang:send(To, Message, Options)`, and of all other ways in which a process
/// sends.
#[inline]
pub fn deliver_as(cx: &mut Cx, to: Term, msg: Term, how: How) -> Result<Sent, Fail> {
    let destination = destination(to);
    if let Destination::Process(p) = destination
        && budgets::on()
        && bounds::concerns(p)
        && let Some(sent) = bounds::before(cx, p, msg, how)?
    {
        return Ok(sent);
    }
    let is_watched = cx.process().has(process::TRACED | process::SAVES);
    match destination {
        // These two trace for themselves.
        Destination::Remote(_) => return to_node(cx, to, msg, how),
        Destination::Port(port) => return to_port(cx, to, port, msg, how),
        Destination::NoPort => saves(cx),
        Destination::Past => past(cx, to, msg),
        Destination::BadTuple => return Err(Fail::Badarg),
        Destination::Process(_)
        | Destination::Alias(_)
        | Destination::Nobody
        | Destination::BadArg
            if is_watched =>
        {
            watched(cx, to, msg);
        }
        _ => {}
    }
    match destination {
        Destination::Process(p) => to_process(cx, p, None, msg),
        Destination::Alias(p) if how.urgent => to_process_urgently(cx, p, to, msg),
        Destination::Alias(p) => to_process(cx, p, Some(to), msg),
        Destination::BadArg => return Err(Fail::Badarg),
        _ => {}
    }
    Ok(Sent::Done)
}

/// Sends to another node. Only messages that go out are traced.
fn to_node(cx: &mut Cx, to: Term, msg: Term, how: How) -> Result<Sent, Fail> {
    // A sender that has to wait calls again.
    let sent = outside().remote_send(cx, to, msg, how)?;
    if sent == Sent::Done && cx.process().has(process::TRACED | process::SAVES) {
        watched(cx, to, msg);
    }
    Ok(sent)
}

/// Sends to the port that `to` names. As in stock, a tracer sees the port, after the tuple if that
/// names it, and before the port takes anything; the call is saved once the port has taken it.
fn to_port(cx: &mut Cx, to: Term, port: Term, msg: Term, how: How) -> Result<Sent, Fail> {
    let p = cx.process();
    // A sender that had to wait calls again.
    let again = p.has(process::BUSY);
    if p.has(process::TRACED | process::SAVES | process::SEQUENTIAL)
        && !again
        && outside().port_is_open(port)
    {
        port_watched(cx, to, port, msg);
    }
    let sent = outside().port_send(cx, port, msg, how)?;
    if sent == Sent::Done {
        saves(cx);
    }
    Ok(sent)
}

/// Traces a send to an open port by a process that is traced, saves its calls or has a token.
#[cold]
fn port_watched(cx: &mut Cx, to: Term, port: Term, msg: Term) {
    if to.as_tuple().is_some() {
        watched(cx, to, msg);
    }
    if cx.process().has(process::TRACED) {
        events::sink().sending(cx, port, msg);
    }
    if cx.process().has(process::SEQUENTIAL) {
        // No reply of a port carries a token, so the send is only traced.
        let _ = token::sending(cx.process(), port, msg);
    }
}

/// Maximum number of characters of a message in a report.
const MOST_SHOWN: usize = 100_000;

/// Reports a message to something that this node had before it got its present creation.
#[cold]
fn past(cx: &mut Cx, to: Term, msg: Term) {
    let old = match (to.as_external(), to.as_ref_view()) {
        (Some((n, _)), _) | (_, Some(RefView::External { node: n, .. })) => n.creation,
        _ => return,
    };
    let (me, now) = (cx.self_pid(), purlin_term::node::this_creation());
    let show = |t: Term| format_term(t, Style::Display, MOST_SHOWN);
    let text = format!(
        "Discarding message {} from {} to {} in an old incarnation ({old}) of this node ({now})\n",
        show(msg),
        show(me),
        show(to),
    );
    let leader = process::group_leader_of(cx);
    report::send(Level::Error, leader, me, Text::Plain(&text));
}
