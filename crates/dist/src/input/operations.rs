//! The operations of control messages: messages, links, monitors and exit signals between nodes.

use super::spawning::{spawn_reply, spawn_request};
use super::{
    Bad, Payload, Reason, is_far, is_far_ref, is_of, is_old, is_ref, reason_of, signal_with,
};
use crate::control::{altact, frame, op, to_number};
use crate::cx::Cx;
use crate::process::ext::RefKey;
use crate::process::registry;
use crate::process::remote::{Link, RemotePid, RemoteRef, Watcher};
use crate::signal::bounds::{self, FromFar};
use crate::signal::token::Token;
use crate::signal::{handle, send};
use crate::signals;
use crate::table::Node;
use crate::{events, process};
use purlin_kernel::budgets;
use purlin_kernel::explore::{far, overtaken};
use purlin_kernel::os::world;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::RefView;
use purlin_term::release::{self, NODES_OF_25_LEAST};
use purlin_term::{Alloc, NIL, Term, am, copy};
use std::sync::Arc;

/// Dispatches a control message by its number and the shape of its other elements.
pub(super) fn act(n: &Arc<Node>, id: u32, control: Term, payload: Payload<'_>) -> Result<(), Bad> {
    let Some((&code, args)) = control.as_tuple().and_then(|t| t.split_first()) else {
        return Err(Bad::Message);
    };
    let code = code
        .as_small()
        .and_then(|c| u8::try_from(c).ok())
        .ok_or(Bad::Message)?;
    if world::is_on() && is_ordered(code) {
        overtaken::before(args);
    }
    match (code, args) {
        (op::LINK, &[from, to]) if is_of(from, n) => link(n, id, from, to),
        (op::UNLINK_ID, &[number, from, to]) if is_of(from, n) => {
            let number = to_number(number).filter(|&i| i != 0).ok_or(Bad::Message)?;
            unlink(n, id, from, to, Some(number))
        }
        // Releases that connect to nodes of 25 at least do not know the old one.
        (op::UNLINK, &[from, to]) if is_of(from, n) && !release::has(NODES_OF_25_LEAST) => {
            unlink(n, id, from, to, None)
        }
        (op::UNLINK_ID_ACK, &[number, from, to]) if is_of(from, n) => {
            let number = to_number(number).ok_or(Bad::Message)?;
            unlink_ack(id, from, to, number)
        }
        (op::MONITOR_P, &[by, watched, r]) if is_of(by, n) && is_ref(r) => {
            monitor(n, id, by, watched, r)
        }
        (op::DEMONITOR_P, &[by, watched, r]) if is_of(by, n) && is_ref(r) => {
            demonitor(by, watched, r)
        }
        (op::MONITOR_P_EXIT, &[watched, by, r, reason]) if is_ref(r) => {
            let reason = reason_of(n, id, Some(reason), payload)?;
            down(n, watched, by, r, reason)
        }
        (op::PAYLOAD_MONITOR_P_EXIT, &[watched, by, r]) if is_ref(r) => {
            let reason = reason_of(n, id, None, payload)?;
            down(n, watched, by, r, reason)
        }
        (code, _) if is_message(code) => message(n, id, (code, args), payload),
        (op::EXIT, &[from, to, reason]) if is_of(from, n) && to.is_local_pid() => {
            link_exit(from, to, None, reason_of(n, id, Some(reason), payload)?)
        }
        (op::EXIT_TT, &[from, to, token, reason]) if is_of(from, n) && to.is_local_pid() => {
            let reason = reason_of(n, id, Some(reason), payload)?;
            link_exit(from, to, Some(token), reason)
        }
        (op::PAYLOAD_EXIT, &[from, to]) if is_of(from, n) && to.is_local_pid() => {
            link_exit(from, to, None, reason_of(n, id, None, payload)?)
        }
        (op::PAYLOAD_EXIT_TT, &[from, to, token]) if is_of(from, n) && to.is_local_pid() => {
            link_exit(from, to, Some(token), reason_of(n, id, None, payload)?)
        }
        (op::EXIT2, &[from, to, reason]) if is_of(from, n) => {
            exit(from, to, None, reason_of(n, id, Some(reason), payload)?)
        }
        (op::EXIT2_TT, &[from, to, token, reason]) if is_of(from, n) => {
            let reason = reason_of(n, id, Some(reason), payload)?;
            exit(from, to, Some(token), reason)
        }
        (op::PAYLOAD_EXIT2, &[from, to]) if is_of(from, n) => {
            exit(from, to, None, reason_of(n, id, None, payload)?)
        }
        (op::PAYLOAD_EXIT2_TT, &[from, to, token]) if is_of(from, n) => {
            exit(from, to, Some(token), reason_of(n, id, None, payload)?)
        }
        (op::GROUP_LEADER, &[leader, of]) if leader.is_pid() && of.is_pid() => {
            if of.is_local_pid() {
                group_leader(leader, of);
            }
            Ok(())
        }
        (op::SPAWN_REQUEST, &[r, from, leader, mfa, options])
            if leader.is_pid() && is_far(from) && is_far_ref(r) =>
        {
            spawn_request(n, id, [r, from, leader, mfa, options], None, payload)
        }
        (op::SPAWN_REQUEST_TT, &[r, from, leader, mfa, options, token])
            if leader.is_pid() && is_far(from) && is_far_ref(r) =>
        {
            spawn_request(n, id, [r, from, leader, mfa, options], Some(token), payload)
        }
        (op::SPAWN_REPLY, &[r, to, told, result]) if result.is_atom() || is_far(result) => {
            spawn_reply(n, id, [r, to, told, result], None)
        }
        (op::SPAWN_REPLY_TT, &[r, to, told, result, token])
            if result.is_atom() || is_far(result) =>
        {
            spawn_reply(n, id, [r, to, told, result], Some(token))
        }
        (op::ALTACT_SIG_SEND, &[how, from, to, ref token @ ..]) if from.is_pid() => {
            altact_signal(n, id, [how, from, to], token, payload)
        }
        _ => Err(Bad::Message),
    }
}

/// Handles a control message that brings a message, by its number and its other elements.
fn message(
    n: &Arc<Node>,
    id: u32,
    control: (u8, &[Term]),
    payload: Payload<'_>,
) -> Result<(), Bad> {
    match control {
        (op::SEND | op::SEND_SENDER, &[from, to]) => message_to(n, id, [from, to], None, payload),
        (op::SEND_TT | op::SEND_SENDER_TT, &[from, to, token]) => {
            message_to(n, id, [from, to], Some(token), payload)
        }
        (op::REG_SEND, &[from, _, to]) if from.is_pid() && to.is_atom() => {
            message_to_name(n, id, [from, to], None, payload)
        }
        (op::REG_SEND_TT, &[from, _, to, token]) if from.is_pid() && to.is_atom() => {
            message_to_name(n, id, [from, to], Some(token), payload)
        }
        (op::ALIAS_SEND, &[from, alias]) if is_ref(alias) => {
            message_to_alias(n, id, [from, alias], None, payload, false)
        }
        (op::ALIAS_SEND_TT, &[from, alias, token]) if is_ref(alias) => {
            message_to_alias(n, id, [from, alias], Some(token), payload, false)
        }
        _ => Err(Bad::Message),
    }
}

/// Whether control messages of that number bring messages, and nothing else.
fn is_message(code: u8) -> bool {
    matches!(
        code,
        op::SEND
            | op::SEND_TT
            | op::SEND_SENDER
            | op::SEND_SENDER_TT
            | op::REG_SEND
            | op::REG_SEND_TT
            | op::ALIAS_SEND
            | op::ALIAS_SEND_TT
    )
}

/// Whether a process may tell a control message of that number from a message of its sender, by the
/// order of both. It cannot where the control message only links or monitors it, since it may not
/// have taken the message out of its mailbox.
fn is_ordered(code: u8) -> bool {
    !is_message(code)
        && !matches!(
            code,
            op::ALTACT_SIG_SEND
                | op::LINK
                | op::UNLINK
                | op::UNLINK_ID
                | op::UNLINK_ID_ACK
                | op::MONITOR_P
                | op::DEMONITOR_P
        )
}

/// Handles an [`op::ALTACT_SIG_SEND`], with `token` holding what follows the receiver.
fn altact_signal(
    n: &Arc<Node>,
    id: u32,
    [how, from, to]: [Term; 3],
    token: &[Term],
    payload: Payload<'_>,
) -> Result<(), Bad> {
    let how = to_number(how).filter(|h| h & !altact::ALL == 0);
    let how = how.ok_or(Bad::Message)?;
    let token = match (how & altact::TOKEN != 0, token) {
        (true, &[token]) => Some(token),
        (false, &[]) => None,
        _ => return Err(Bad::Message),
    };
    let urgent = how & altact::PRIORITY != 0;
    if how & altact::EXIT != 0 && world::is_on() {
        overtaken::before(&[from]);
    }
    match how & (altact::ALIAS | altact::NAME | altact::EXIT) {
        0 => message_to(n, id, [from, to], token, payload),
        altact::NAME if to.is_atom() => message_to_name(n, id, [from, to], token, payload),
        altact::ALIAS if is_ref(to) => message_to_alias(n, id, [from, to], token, payload, urgent),
        altact::EXIT if is_of(from, n) => exit(from, to, token, reason_of(n, id, None, payload)?),
        EXIT_BY_ALIAS if is_of(from, n) && is_ref(to) => {
            let reason = reason_of(n, id, None, payload)?;
            exit_by_alias(from, to, reason, urgent);
            Ok(())
        }
        _ => Err(Bad::Message),
    }
}

const EXIT_BY_ALIAS: u64 = altact::EXIT | altact::ALIAS;

/// Sets the group leader of a process of this node.
fn group_leader(leader: Term, of: Term) {
    let leader = OwnedTerm::copy_of(leader);
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx {
            process::set_group_leader(cx.process(), leader.term());
        }
    };
    send::run_in(of, Box::new(task));
}

/// Sends an exit signal to the process that made an alias.
fn exit_by_alias(from: Term, alias: Term, reason: Reason, urgent: bool) {
    let (Some(RefView::Local { pid: Some(pid), .. }), Some(key)) =
        (alias.as_ref_view(), RefKey::of(alias))
    else {
        return;
    };
    let from = OwnedTerm::copy_of(from);
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx
            && let Some(reason) = reason.get()
        {
            handle::exit_by_alias(cx, key, from.term(), reason.term(), urgent);
        }
    };
    send::run_in(pid, Box::new(task));
}

/// Sends a message to a process of this node.
fn message_to(
    n: &Arc<Node>,
    id: u32,
    [from, to]: [Term; 2],
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    if to.is_local_pid() {
        return deliver(n, id, [from, to], None, token, payload);
    }
    // A process of an earlier incarnation of this node, or of another node: the message is dropped.
    match to.is_pid() {
        true => Ok(()),
        false => Err(Bad::Message),
    }
}

/// Sends a message to a registered process.
fn message_to_name(
    n: &Arc<Node>,
    id: u32,
    [from, name]: [Term; 2],
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    match registry::whereis(name).filter(|t| t.is_local_pid()) {
        Some(pid) => deliver(n, id, [from, pid], None, token, payload),
        None => Ok(()),
    }
}

/// Sends a message to a process by an alias.
fn message_to_alias(
    n: &Arc<Node>,
    id: u32,
    [from, alias]: [Term; 2],
    token: Option<Term>,
    payload: Payload<'_>,
    urgent: bool,
) -> Result<(), Bad> {
    match alias.as_ref_view() {
        Some(RefView::Local { pid: Some(pid), .. }) => {
            let alias = OwnedTerm::copy_of(alias);
            deliver(n, id, [from, pid], Some((alias, urgent)), token, payload)
        }
        _ => Ok(()),
    }
}

/// Delivers a message to a process of this node. `from` is no pid if the other node does not tell
/// it.
fn deliver(
    n: &Arc<Node>,
    id: u32,
    [from, to]: [Term; 2],
    alias: Option<(OwnedTerm, bool)>,
    token: Option<Term>,
    payload: Payload<'_>,
) -> Result<(), Bad> {
    // A term that is no token counts as none.
    let token = token.and_then(Token::of_term);
    if world::is_on()
        && let Ok(message) = payload.owned()
    {
        let late = far::gets(n.name, to, message.term());
        let by_alias = alias.as_ref().map(|a| a.0.term());
        if token.is_none() && overtaken::keeps(from, to, by_alias, &message, late) {
            return Ok(());
        }
    }
    let urgent = alias.as_ref().is_some_and(|a| a.1);
    if alias.is_none() && budgets::on() {
        match bounds::from_far(to) {
            FromFar::Arrives => {}
            FromFar::Waits => n.full.note(to),
            FromFar::Dropped => return Ok(()),
        }
    }
    // The receiver's budget pays for what waits in its mailbox.
    let _paying = budgets::on().then(|| budgets::pays(budgets::of_pid(to)));
    let s = signal_with(n, id, alias.map(|a| a.0), token, payload)?;
    // SAFETY: a fresh signal.
    unsafe {
        if urgent {
            (*s).set_urgent();
        }
        send::push_or_free(to, s);
    }
    Ok(())
}

pub(super) fn link(n: &Arc<Node>, id: u32, from: Term, to: Term) -> Result<(), Bad> {
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    if !to.is_local_pid() {
        if to.is_pid() && !is_old(to) {
            return Err(Bad::Message);
        }
        // A process of an earlier incarnation of this node, or a term that is no process, is
        // reported as gone.
        signals::send_link_exit(id, to, &key, am::NOPROC);
        return Ok(());
    }
    let tied = n.tie(id, to);
    let n = n.clone();
    let task = move |cx: Option<&mut Cx>| match cx {
        None => {
            n.untie(id, to);
            signals::send_link_exit(id, to, &key, am::NOPROC);
        }
        Some(cx) => {
            if tied {
                signals::was_tied(cx, &n, id);
            }
            let from = key.owned();
            events::tie(cx.process(), events::Tie::GettingLinked, from.term());
            let ties = cx.process().ext_mut().remote.get_or_insert_default();
            // A request that crosses one of our own makes a single link.
            let is_there = ties.links.get(&key).is_some_and(|l| l.connection == id);
            if !tied {
                handle::remote_link_broke(cx, from.term(), am::NOCONNECTION, None, false);
            } else if !is_there {
                let l = Link {
                    unlinking: 0,
                    connection: id,
                    urgent: false,
                };
                ties.links.insert(key, l);
            }
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

fn unlink(n: &Arc<Node>, id: u32, from: Term, to: Term, number: Option<u64>) -> Result<(), Bad> {
    // As in stock, which also refuses a process of an earlier incarnation of this node.
    if !to.is_local_pid() {
        return Err(Bad::Message);
    }
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    let n = n.clone();
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx
            && let Some(ties) = ties(cx)
            && ties.links.get(&key).is_some_and(|l| l.unlinking == 0)
        {
            ties.links.remove(&key);
            let from = key.owned();
            events::tie(cx.process(), events::Tie::GettingUnlinked, from.term());
        }
        if let (Some(number), Some(r)) = (number, n.ready(false).filter(|r| r.id == id)) {
            let from = key.owned();
            let args = [
                crate::control::Arg::Number(number),
                to.into(),
                from.term().into(),
            ];
            n.send(
                id,
                frame(op::UNLINK_ID_ACK, &args, None, r.cached(), to.raw()),
            );
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

/// The ties of the process to other nodes, if it has any.
pub(super) fn ties(cx: &mut Cx) -> Option<&mut process::remote::Remote> {
    cx.process().ext()?.rare()?.remote.as_deref_mut()
}

fn unlink_ack(id: u32, from: Term, to: Term, number: u64) -> Result<(), Bad> {
    // As in stock, which also refuses a process of an earlier incarnation of this node.
    if !to.is_local_pid() {
        return Err(Bad::Message);
    }
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    let task = move |cx: Option<&mut Cx>| {
        if let Some(ties) = cx.and_then(ties)
            && (ties.links.get(&key)).is_some_and(|l| l.unlinking == number && l.connection == id)
        {
            ties.links.remove(&key);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

pub(super) fn monitor(n: &Arc<Node>, id: u32, by: Term, watched: Term, r: Term) -> Result<(), Bad> {
    let (Some(key), Some(by)) = (RemoteRef::of(r), RemotePid::of(by)) else {
        return Err(Bad::Message);
    };
    let (to, name) = if watched.is_local_pid() {
        (Some(watched), NIL)
    } else if watched.is_atom() {
        let to = registry::whereis(watched).filter(|t| t.is_local_pid());
        (to, watched)
    } else if watched.is_pid() && is_old(watched) {
        (None, NIL)
    } else {
        return Err(Bad::Message);
    };
    let Some(to) = to else {
        let (by, r) = (by.owned(), key.owned());
        signals::send_down(id, watched, by.term(), r.term(), am::NOPROC, NIL);
        return Ok(());
    };
    if !n.tie(id, to) {
        return Ok(());
    }
    let n = n.clone();
    let task = move |cx: Option<&mut Cx>| match cx {
        None => {
            n.untie(id, to);
            let (by, r) = (by.owned(), key.owned());
            let watched = if name == NIL { to } else { name };
            signals::send_down(id, watched, by.term(), r.term(), am::NOPROC, to);
        }
        Some(cx) => {
            signals::was_tied(cx, &n, id);
            let ties = cx.process().ext_mut().remote.get_or_insert_default();
            let w = Watcher {
                by,
                name,
                connection: id,
            };
            ties.watchers.insert(key, w);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

pub(super) fn demonitor(by: Term, watched: Term, r: Term) -> Result<(), Bad> {
    let key = RemoteRef::of(r).filter(|_| by.is_pid());
    let key = key.ok_or(Bad::Message)?;
    // A monitor by pid cannot be removed by a name.
    let remove = move |ties: &mut process::remote::Remote| {
        let by_name = watched.is_atom();
        ties.watchers
            .remove(&key, |w| !by_name || w.name == watched);
    };
    let to = match watched {
        t if t.is_local_pid() => t,
        t if t.is_atom() => {
            // The process that had the name when it was monitored, if it still has it. Otherwise
            // the end of the connection or of the process removes the monitor.
            match registry::whereis(t).filter(|t| t.is_local_pid()) {
                Some(pid) => pid,
                None => return Ok(()),
            }
        }
        t if t.is_pid() && is_old(t) => return Ok(()),
        _ => return Err(Bad::Message),
    };
    let task = move |cx: Option<&mut Cx>| {
        cx.and_then(ties).map(remove);
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

/// Handles the end of a process that this node monitors.
fn down(n: &Node, watched: Term, by: Term, r: Term, reason: Reason) -> Result<(), Bad> {
    if !watched.is_atom() && !is_far(watched) || !by.is_pid() {
        return Err(Bad::Message);
    }
    if !by.is_local_pid() {
        return match is_old(by) {
            true => Ok(()),
            false => Err(Bad::Message),
        };
    }
    let mut place = Fragment::new();
    let object = match watched.is_atom() {
        true => place.tuple(&[watched, n.name]),
        false => copy::copy(watched, &mut place),
    };
    let object = OwnedTerm::from_parts(object, place);
    if let Reason::Here(reason) = reason {
        send::monitor_down(by, r, am::PROCESS, object.term(), reason.term());
        return Ok(());
    }
    let r = OwnedTerm::copy_of(r);
    let task = move |cx: Option<&mut Cx>| {
        if let Some(cx) = cx
            && let Some(reason) = reason.get()
        {
            let s = send::down_signal(r.term(), am::PROCESS, object.term(), reason.term());
            // SAFETY: a fresh signal of the end of what is watched.
            unsafe { handle::handle_here(cx, s) };
        }
    };
    send::run_in(by, Box::new(task));
    Ok(())
}

fn link_exit(from: Term, to: Term, token: Option<Term>, reason: Reason) -> Result<(), Bad> {
    let token = token.and_then(Token::of_term);
    let key = RemotePid::of(from).ok_or(Bad::Message)?;
    let task = move |cx: Option<&mut Cx>| {
        let Some(cx) = cx else { return };
        let Some(reason) = reason.get() else { return };
        // Only a link that exists and is not being removed breaks.
        let broken = ties(cx).and_then(|t| {
            t.links.get(&key).filter(|l| l.unlinking == 0)?;
            t.links.remove(&key)
        });
        if let Some(l) = broken {
            let from = key.owned();
            handle::remote_link_broke(cx, from.term(), reason.term(), token.as_ref(), l.urgent);
        }
    };
    send::run_in(to, Box::new(task));
    Ok(())
}

fn exit(from: Term, to: Term, token: Option<Term>, reason: Reason) -> Result<(), Bad> {
    if to.is_local_pid() {
        let token = token.and_then(Token::of_term);
        if let Reason::Here(reason) = reason {
            let s = send::exit_as_signal(token.as_ref(), from, reason.term());
            // SAFETY: a fresh signal.
            unsafe { send::push_or_free(to, s) };
            return Ok(());
        }
        let from = OwnedTerm::copy_of(from);
        let task = move |cx: Option<&mut Cx>| {
            if let Some(cx) = cx
                && let Some(reason) = reason.get()
            {
                let s = send::exit_as_signal(token.as_ref(), from.term(), reason.term());
                // SAFETY: a fresh exit signal.
                unsafe { handle::handle_here(cx, s) };
            }
        };
        send::run_in(to, Box::new(task));
        return Ok(());
    }
    match to.is_pid() && is_old(to) {
        true => Ok(()),
        false => Err(Bad::Message),
    }
}
