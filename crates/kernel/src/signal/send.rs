//! Sending: from natives, and from threads that run no process.

use super::token;
use crate::accounts::{self, Kind as Account};
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
use purlin_term::unused::is_unused_here;
use purlin_term::{Term, am};

/// Reductions that a message costs its sender beyond what it costs anyway where the receiver has got behind: it then has its
/// turn before much more is sent, while what waits still lies in the processor's caches. The sender loses nothing by it where
/// nobody else has anything to do.
const GIVE_WAY: usize = 100;
/// Signals taken at once from which on a process counts as one that has got behind.
pub(crate) const MANY_AT_ONCE: usize = 500;

/// Makes a local process run `task` as soon as it handles signals. Where there is no such process, the task is run
/// here, with `None`.
#[inline]
pub fn run_in(to: Term, task: Task) {
    run_in_at(to, crate::sched::running_priority(), task);
}

/// As [`run_in`], at that priority if it is higher than the process's own: whoever asked may wait for the answer, and
/// then not for those that are between the two.
pub fn run_in_at(to: Term, prio: Priority, task: Task) {
    let s = Signal::task(task);
    // SAFETY: a fresh signal, which stays ours where it isn't delivered. Cells are never unmapped; the state word is an
    // atomic.
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

/// The exit signal of a broken link, from `from` to the local process `to`.
#[inline]
pub fn link_exit(from: Term, to: Term, reason: Term) {
    exit_of(Kind::LinkExit, from, to, reason);
}

/// A process that traps an exit signal loses the token of sequential tracing that it may have: the signal comes without one.
#[inline]
fn exit_of(kind: Kind, from: Term, to: Term, reason: Term) {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, exit_signal_of(kind, from, reason)) };
}

#[inline]
fn exit_signal_of(kind: Kind, from: Term, reason: Term) -> *mut Signal {
    let s = Signal::tuple_of(kind, &[am::EXIT_UC, from, reason]);
    // SAFETY: a fresh signal.
    unsafe { (*s).sequel = Sequel::Ends };
    s
}

/// An exit signal that a process has sent, with the token that came with it. It belongs to the caller.
pub fn exit_as_signal(t: Option<&token::Token>, from: Term, reason: Term) -> *mut Signal {
    let Some(t) = t else {
        return exit_signal_of(Kind::Exit, from, reason);
    };
    let mut f = Fragment::new();
    let told = f.tuple(&[am::EXIT_UC, from, reason]);
    let s = Signal::with_token(None, t, None, told);
    // SAFETY: a fresh signal.
    unsafe { (*s).kind = Kind::Exit };
    s
}

/// As [`link_exit`], from a process that ends, was `me`, and has a token of sequential tracing.
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

/// An exit signal as by `exit(To, Reason)`.
#[inline]
pub fn exit_signal(from: Term, to: Term, reason: Term) {
    exit_of(Kind::Exit, from, to, reason);
}

/// As [`exit_signal`], with a token of sequential tracing.
#[cold]
pub fn exit_signal_with_token(t: &token::Token, from: Term, to: Term, reason: Term) {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, exit_as_signal(Some(t), from, reason)) };
}

/// Tells the local process `to`, which monitors `object` by `reference`, that it has ended. `kind` is `process`, `port`
/// or another type of monitor.
pub fn monitor_down(to: Term, reference: Term, kind: Term, object: Term, reason: Term) {
    // SAFETY: a fresh signal.
    unsafe { push_or_free(to, down_signal(reference, kind, object, reason)) };
}

/// The signal of [`monitor_down`]. It belongs to the caller.
pub fn down_signal(reference: Term, kind: Term, object: Term, reason: Term) -> *mut Signal {
    let s = Signal::tuple_of(Kind::Down, &[am::DOWN, reference, kind, object, reason]);
    if !reason.is_immed() {
        // SAFETY: a fresh signal.
        unsafe { (*s).sequel = Sequel::Ends };
    }
    s
}

/// Where a message goes.
pub enum Destination {
    /// A process of this node.
    Process(Term),
    /// The process that made this alias.
    Alias(Term),
    /// A port of this node.
    Port(Term),
    /// Nowhere. The sender gets no error.
    Nobody,
    /// To a port that never exists on this node: nowhere.
    NoPort,
    /// To something that this node had before it got its present creation: nowhere.
    Past,
    /// `badarg`: no such name, or nothing that can be sent to.
    BadArg,
    /// `badarg`: a tuple that is no `{Name, Node}`.
    BadTuple,
    /// On another node: its name.
    Remote(Term),
}

/// Where a message to `to` goes: pid, port, name, `{Name, Node}`, alias.
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
        // Unlike with a plain name, the sender gets no error where there is no such name.
        return registry::whereis(name).map_or(Destination::Nobody, named);
    }
    match to.as_external() {
        Some(_) if is_unused_here(to) && to.is_pid() => Destination::Nobody,
        Some(_) if is_unused_here(to) => Destination::NoPort,
        Some((node, _)) if is_here(node.name) => Destination::Past,
        Some((node, _)) if to.is_pid() => Destination::Remote(node.name),
        // A port of another node is none that can be sent to.
        _ => Destination::BadArg,
    }
}

/// Sends `msg` to a process, or by an alias to one; the message is shared if it is large.
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
        (*signal).sequel = Sequel::Ends;
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
pub fn urgently(cx: &mut Cx, to: Term, alias: Term, msg: Term) {
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
        if (*signal).sequel == Sequel::None {
            (*signal).sequel = Sequel::Ends;
        }
        (*signal).kind = Kind::UrgentMessage;
        push_or_free(to, signal);
    }
    drop(held);
}

/// The signal of a message that is small and needs nothing special, as most are.
#[inline]
fn small(alias: Option<Term>, msg: Term) -> Option<*mut Signal> {
    // A message that is shared from a few words on, or whose sender is traced, takes the long way.
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

/// Counts words that are copied from the process that runs to another, in `msg`.
#[inline(always)]
fn count(cx: &mut Cx, words: usize, msg: Term) {
    cx.words_copied += words as u64;
    accounts::copied(cx, Account::Message, words, msg);
    super::share::count_copied(cx, words);
}

/// As [`to_process`], of a process that has a token of sequential tracing. It goes to processes that are there only.
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

/// A process that is traced, or saves its calls, sends.
#[cold]
fn watched(cx: &mut Cx, to: Term, msg: Term) {
    saves(cx);
    if cx.process().has(process::TRACED) {
        events::sink().sending(cx, to, msg);
    }
}

/// A process that may save its calls has sent.
#[inline]
fn saves(cx: &mut Cx) {
    if cx.process().has(process::SAVES) {
        crate::process::saved::note(cx.process(), crate::process::saved::Call::Send);
    }
}

/// The work of `To ! Message`.
pub fn deliver(cx: &mut Cx, to: Term, msg: Term) -> BifResult {
    deliver_as(cx, to, msg, How::default()).map(|_| msg)
}

/// The work of `erlang:send(To, Message, Options)`, and of all other ways by which a process sends.
#[inline]
pub fn deliver_as(cx: &mut Cx, to: Term, msg: Term, how: How) -> Result<Sent, Fail> {
    let destination = destination(to);
    let is_watched = cx.process().has(process::TRACED | process::SAVES);
    match destination {
        // These two tell what they do.
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
        Destination::Alias(p) if how.urgent => urgently(cx, p, to, msg),
        Destination::Alias(p) => to_process(cx, p, Some(to), msg),
        Destination::BadArg => return Err(Fail::Badarg),
        _ => {}
    }
    Ok(Sent::Done)
}

/// Sends to another node. Only what goes out is told.
fn to_node(cx: &mut Cx, to: Term, msg: Term, how: How) -> Result<Sent, Fail> {
    // Where it has to wait the sender calls again.
    let sent = outside().remote_send(cx, to, msg, how)?;
    if sent == Sent::Done && cx.process().has(process::TRACED | process::SAVES) {
        watched(cx, to, msg);
    }
    Ok(sent)
}

/// Sends to the port that `to` names. As in stock, a tracer is told of the port, after the tuple if that is how it is named, and
/// before the port takes anything; the call is saved once the port has taken it.
fn to_port(cx: &mut Cx, to: Term, port: Term, msg: Term, how: How) -> Result<Sent, Fail> {
    let p = cx.process();
    // A sender that had to wait comes here again.
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

/// A process that is traced, saves its calls or has a token sends to a port that is open.
#[cold]
fn port_watched(cx: &mut Cx, to: Term, port: Term, msg: Term) {
    if to.as_tuple().is_some() {
        watched(cx, to, msg);
    }
    if cx.process().has(process::TRACED) {
        events::sink().sending(cx, port, msg);
    }
    if cx.process().has(process::SEQUENTIAL) {
        // Nothing comes back from a port with a token, so it only is told.
        let _ = token::sending(cx.process(), port, msg);
    }
}

/// Characters of a message that a report shows.
const MOST_SHOWN: usize = 100_000;

/// A process has sent to what this node had before it got its present creation, which is reported.
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
