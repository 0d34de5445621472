//! Natives of links with processes and ports.
//!
//! # Invariants
//! * Each end records the link for itself. A process that unlinks keeps the record until the other
//!   end has confirmed, and ignores exit signals through it meanwhile.
//! * Links with ports have no priority.

use super::exit_signals::signal_options;
use crate::cx::{BifResult, Cx, Fail};
use crate::process;
use crate::process::ext::{Link, Peer};
use crate::signal::send::{self, push_or_free};
use crate::signal::{Kind, Signal, handle};
use crate::{bifs, ids};
use purlin_dist::signals as remote;
use purlin_term::release::{self, LINKS_PASS_TRACE_ON, REFUSED_LINKS_TOLD};
use purlin_term::{Alloc, Term, am, node};

/// `link(Port)`
fn port_link(cx: &mut Cx, port: Term) -> BifResult {
    let me = cx.self_pid();
    if crate::port::link(port, me) {
        let link = Link { unlinking: 0 };
        cx.process().ext_mut().links.insert(Peer::of(port), link);
        crate::trace::tie(cx.process(), crate::trace::Tie::Link, port);
        return Ok(am::TRUE);
    }
    if cx.process().has(process::TRAP_EXIT) {
        crate::signal::send_with(me, |b| b.tuple(&[am::EXIT_UC, port, am::NOPROC]));
        return Ok(am::TRUE);
    }
    Err(cx.error(am::NOPROC))
}

/// `unlink(Port)`
fn port_unlink(cx: &mut Cx, port: Term) -> BifResult {
    let me = cx.self_pid();
    crate::port::unlink(port, me);
    if let Some(e) = cx.process().ext() {
        e.links.remove(&Peer::of(port));
    }
    crate::trace::tie(cx.process(), crate::trace::Tie::Unlink, port);
    Ok(am::TRUE)
}

fn link_1(cx: &mut Cx, [to]: [Term; 1]) -> BifResult {
    link_with(cx, to, false)
}

/// Sets a link to a process. A link that exists already gains or loses its priority. Links with
/// ports have none.
fn link_with(cx: &mut Cx, to: Term, urgent: bool) -> BifResult {
    let me = cx.self_pid();
    if to.is_local_port() {
        return port_link(cx, to);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    if !to.is_local_pid() && remote::node_of(to) != Some(node::this_name()) {
        return remote::link(cx, to, urgent);
    }
    // Traced whether or not the link is made.
    crate::trace::tie(cx.process(), crate::trace::Tie::Link, to);
    if to == me {
        return Ok(am::TRUE);
    }
    if !to.is_local_pid() {
        return no_process(cx, to, urgent);
    }
    let traced = cx.process().has(process::TRACED);
    let e = cx.process().ext_mut();
    e.prioritize_link(Peer::of(to), urgent);
    match e.links.get_mut(&Peer::of(to)) {
        Some(l) if l.unlinking == 0 => return Ok(am::TRUE),
        Some(l) => l.unlinking = 0,
        None => e.links.insert(Peer::of(to), Link { unlinking: 0 }),
    }
    if traced && release::has(LINKS_PASS_TRACE_ON) && process::table().find(to).is_some() {
        crate::trace::links(cx.process(), to);
    }
    // SAFETY: a fresh signal.
    let sent = unsafe { push_or_free(to, Signal::copy_of(Kind::Link, me)) };
    if !sent {
        if let Some(e) = cx.process().ext() {
            e.links.remove(&Peer::of(to));
            e.take_urgent_link(Peer::of(to));
        }
        return no_process(cx, to, urgent);
    }
    Ok(am::TRUE)
}

/// Handles a link to a process that does not exist.
fn no_process(cx: &mut Cx, to: Term, urgent: bool) -> BifResult {
    if !cx.process().has(process::TRAP_EXIT) {
        return Err(cx.error(am::NOPROC));
    }
    if release::has(REFUSED_LINKS_TOLD) {
        crate::trace::tie(cx.process(), crate::trace::Tie::GettingUnlinked, to);
    }
    if urgent {
        // Signals that have arrived are handled first.
        handle::fetch(cx);
        handle::link_refused(cx, to, am::NOPROC, true);
        return Ok(am::TRUE);
    }
    let msg = cx.tuple(&[am::EXIT_UC, to, am::NOPROC]);
    send::send(cx.self_pid(), msg);
    Ok(am::TRUE)
}

fn unlink_1(cx: &mut Cx, [to]: [Term; 1]) -> BifResult {
    if to.is_local_port() {
        return port_unlink(cx, to);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    if !to.is_local_pid() {
        return remote::unlink(cx, to);
    }
    let me = cx.self_pid();
    crate::trace::tie(cx.process(), crate::trace::Tie::Unlink, to);
    // The number only tells requests for the same link apart, so not all bits are needed. 0 is
    // none.
    let id = (ids::unique() as u32).max(1);
    let linked = match cx
        .process()
        .ext()
        .and_then(|e| e.links.get_mut(&Peer::of(to)))
    {
        Some(l) if l.unlinking == 0 => {
            l.unlinking = id;
            true
        }
        _ => false,
    };
    if linked {
        // SAFETY: a fresh signal.
        let sent = unsafe {
            push_or_free(
                to,
                Signal::tuple_of(Kind::Unlink, &[me, Term::small(i64::from(id))]),
            )
        };
        if !sent && let Some(e) = cx.process().ext() {
            e.links.remove(&Peer::of(to));
        }
    }
    Ok(am::TRUE)
}

fn link_2(cx: &mut Cx, [to, options]: [Term; 2]) -> BifResult {
    if !to.is_pid() && !to.is_port() {
        return Err(Fail::Badarg);
    }
    let urgent = signal_options(cx, &[to, options])?;
    link_with(cx, to, urgent)
}

bifs! {
    Plain "erlang":"link"/1 = link_1 [writes(Process)];
    Plain "erlang":"unlink"/1 = unlink_1 [writes(Process)];
    Plain "erlang":"link"/2 = link_2 [writes(Process) since(28)];
}
