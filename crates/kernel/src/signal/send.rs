//! Sending: from natives, and from threads that run no process.

use super::token;
use crate::accounts::{self, Kind as Account};
use crate::cx::{BifResult, Cx, Fail};
use crate::events;
use crate::message::{Kind, Sequel, Signal};
use crate::outside::outside;
use crate::post::{Pushed, push_at};
pub use crate::post::{push, push_or_free, send, send_from, send_with, wake};
use crate::process::state::Priority;
use crate::process::task::Task;
use crate::process::{self, registry};
use purlin_term::Alloc;
use purlin_term::copy::{self, FLAT_WORDS, Flat};
use purlin_term::frag::Fragment;
use purlin_term::layout::RefView;
use purlin_term::region::is_shared;
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
    /// Nowhere, which nobody is told.
    Nobody,
    /// `badarg`: no such name, or nothing that can be sent to.
    BadArg,
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
    if let Some(r) = to.as_ref_view() {
        return match r {
            RefView::Local { pid: Some(pid), .. } => Destination::Alias(pid),
            RefView::External { node, .. } => Destination::Remote(node.name),
            _ => Destination::Nobody,
        };
    }
    if let Some(&[name, node]) = to.as_tuple() {
        if !name.is_atom() || !node.is_atom() {
            return Destination::BadArg;
        }
        if node != purlin_term::node::this_name() {
            return Destination::Remote(node);
        }
        // Unlike with a plain name, nobody is told where there is no such name.
        return registry::whereis(name).map_or(Destination::Nobody, named);
    }
    match to.as_external() {
        Some((node, _)) if node.name == purlin_term::node::this_name() => Destination::Nobody,
        Some((node, _)) => Destination::Remote(node.name),
        None => Destination::BadArg,
    }
}

/// Sends `msg` to a process, or by an alias to one; the message is shared if it is large.
pub fn to_process(cx: &mut Cx, to: Term, alias: Option<Term>, msg: Term) {
    if cx.process().has(process::SEQUENTIAL) {
        return with_token(cx, to, alias, msg);
    }
    // Made before the receiver is looked up: its cell, which all that send to it write to, is wanted for the few instructions
    // between finding it and waking it.
    if let Some(signal) = small(alias, msg) {
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
        return;
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

/// As [`to_process`], of a process that has a token of sequential tracing.
#[cold]
fn with_token(cx: &mut Cx, to: Term, alias: Option<Term>, msg: Term) {
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
    if cx.process().has(process::SAVES) {
        crate::process::saved::note(cx.process(), crate::process::saved::Call::Send);
    }
    if cx.process().has(process::TRACED) {
        events::sink().sending(cx, to, msg);
    }
}

/// The work of `To ! Message`.
pub fn deliver(cx: &mut Cx, to: Term, msg: Term) -> BifResult {
    let destination = destination(to);
    if let Destination::Remote(_) = destination {
        // Where it has to wait it is called again: only what has been sent is told.
        outside().remote_send(cx, to, msg)?;
    }
    if cx.process().has(process::TRACED | process::SAVES) {
        watched(cx, to, msg);
    }
    match destination {
        Destination::Process(p) => to_process(cx, p, None, msg),
        Destination::Alias(p) => to_process(cx, p, Some(to), msg),
        Destination::Port(port) => {
            if cx.process().has(process::SEQUENTIAL) {
                // Nothing comes back from a port with a token, so it only is told.
                let _ = token::sending(cx.process(), port, msg);
            }
            outside().port_send(cx, port, msg)?
        }
        Destination::Remote(_) | Destination::Nobody => {}
        Destination::BadArg => return Err(Fail::Badarg),
    }
    Ok(msg)
}
