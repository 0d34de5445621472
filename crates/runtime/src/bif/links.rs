//! Natives of links, monitors, aliases and exit signals.

use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::{AliasMode, Link, Monitor, Peer, RefKey, Target};
use crate::process::{self, registry};
use crate::signal::handle::ref_key;
use crate::signal::send::{self, Destination, push, push_or_free};
use crate::signal::{Kind, Signal, handle};
use crate::{bifs, ids, lazy_atoms};
use purlin_dist::signals as remote;
use purlin_native::errors::with_args;
use purlin_term::etf::aliases;
use purlin_term::frag::OwnedTerm;
use purlin_term::parts::ref_parts;
use purlin_term::release::{
    self, EXIT_BY_ALIAS, LINKS_PASS_TRACE_ON, PRIORITY_MESSAGES, REFUSED_LINKS_TOLD,
};
use purlin_term::{Alloc, NIL, Term, am, node};

lazy_atoms! {
    a_reply_demonitor = "reply_demonitor";
    a_erts_internal = "erts_internal"; a_dynamic_node_name = "dynamic_node_name";
    a_priority = "priority"; a_reply = "reply"; a_clock_service = "clock_service"; a_badtype = "badtype";
}

/// `exit(Port, Reason)`
fn port_exit_2(cx: &mut Cx, port: Term, reason: Term) -> BifResult {
    if let Some(p) = crate::port::find(port) {
        let _ = crate::port::exit(&p, cx.self_pid(), reason);
    }
    Ok(am::TRUE)
}
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
/// Links; if the link is there, it gets or loses its priority. Links with ports have none.
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
    // Told whether anything comes of it or not.
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
/// A link with a process that there is not.
fn no_process(cx: &mut Cx, to: Term, urgent: bool) -> BifResult {
    if !cx.process().has(process::TRAP_EXIT) {
        return Err(cx.error(am::NOPROC));
    }
    if release::has(REFUSED_LINKS_TOLD) {
        crate::trace::tie(cx.process(), crate::trace::Tie::GettingUnlinked, to);
    }
    if urgent {
        // Signals that have arrived come first.
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
    // Told apart are the requests for one link: not all bits are needed. 0 is none.
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

fn exit_process(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    let me = cx.self_pid();
    if to.is_local_port() {
        return port_exit_2(cx, to, reason);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    if !to.is_local_pid() {
        return remote::exit(cx, to, reason);
    }
    let (reason, _held) = crate::signal::share::share(cx, crate::accounts::Kind::Exit, reason);
    send::exit_signal(me, to, reason);
    if to == me {
        // The own signal takes effect before anything else is done.
        handle::fetch(cx);
        if cx.process().has(crate::process::EXIT_PENDING) {
            return Err(Fail::Exited);
        }
    }
    Ok(am::TRUE)
}

/// Options of signals: whether it has priority.
fn signal_options(cx: &mut Cx, args: &[Term]) -> Result<bool, Fail> {
    let mut it = args[args.len() - 1].list_iter();
    let sound = it.by_ref().all(|o| o == a_priority());
    if sound && it.tail().is_nil() {
        return Ok(args[args.len() - 1] != NIL);
    }
    let f = cx.badarg_cause(am::BADOPT);
    Err(with_args(cx, f, args))
}
/// Sends an exit signal to the process that made an alias, if the alias is active when the signal arrives.
fn exit_by_alias(cx: &mut Cx, pid: Term, alias: Term, reason: Term, urgent: bool) {
    let me = cx.self_pid();
    let Some(k) = ref_key(alias) else { return };
    let reason = OwnedTerm::copy_of(reason);
    send::run_in(
        pid,
        Box::new(move |cx| {
            if let Some(cx) = cx {
                handle::exit_by_alias(cx, k, me, reason.term(), urgent);
            }
        }),
    );
}
/// Since OTP 28 an alias may be named too: the signal affects the process as long as it is active.
fn exit_2(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    exit_with(cx, [to, reason], false)
}
fn exit_with(cx: &mut Cx, [to, reason]: [Term; 2], urgent: bool) -> BifResult {
    if to.is_ref() && release::has(EXIT_BY_ALIAS) {
        return match send::destination(to) {
            Destination::Alias(pid) => {
                exit_by_alias(cx, pid, to, reason, urgent);
                Ok(am::TRUE)
            }
            Destination::Remote(_) => remote::exit_by_alias(cx, to, reason, urgent),
            _ => Ok(am::TRUE),
        };
    }
    exit_process(cx, [to, reason])
}
fn exit_3(cx: &mut Cx, [to, reason, options]: [Term; 3]) -> BifResult {
    if !to.is_pid() && !to.is_port() && !to.is_ref() {
        return Err(Fail::Badarg);
    }
    let urgent = signal_options(cx, &[to, reason, options])?;
    exit_with(cx, [to, reason], urgent)
}
/// Whether a process sends itself what by way of `exit/2` alone would end it.
fn is_nothing(cx: &mut Cx, to: Term, reason: Term) -> bool {
    to == cx.self_pid() && reason == am::NORMAL && !cx.process().has(process::TRAP_EXIT)
}
fn exit_signal_2(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    match is_nothing(cx, to, reason) {
        true => Ok(am::TRUE),
        false => exit_2(cx, [to, reason]),
    }
}
fn exit_signal_3(cx: &mut Cx, [to, reason, options]: [Term; 3]) -> BifResult {
    if is_nothing(cx, to, reason) {
        signal_options(cx, &[to, reason, options])?;
        return Ok(am::TRUE);
    }
    exit_3(cx, [to, reason, options])
}
fn link_2(cx: &mut Cx, [to, options]: [Term; 2]) -> BifResult {
    if !to.is_pid() && !to.is_port() {
        return Err(Fail::Badarg);
    }
    let urgent = signal_options(cx, &[to, options])?;
    link_with(cx, to, urgent)
}

/// The options of a monitor.
pub(super) struct MonitorOptions {
    /// The message at the end has priority.
    pub urgent: bool,
    pub alias: AliasMode,
    pub tag: Option<Box<OwnedTerm>>,
}

/// Reads such options. None: they are wrong.
pub(super) fn monitor_options(l: Term) -> Option<MonitorOptions> {
    let mut o = MonitorOptions {
        urgent: false,
        alias: AliasMode::None,
        tag: None,
    };
    let mut it = l.list_iter();
    for t in it.by_ref() {
        if t == a_priority() && release::has(PRIORITY_MESSAGES) {
            o.urgent = true;
            continue;
        }
        let &[k, v] = t.as_tuple()? else { return None };
        if k == am::ALIAS {
            o.alias = if v == am::EXPLICIT_UNALIAS {
                AliasMode::Explicit
            } else if v == am::DEMONITOR {
                AliasMode::Demonitor
            } else if v == a_reply_demonitor() {
                AliasMode::ReplyDemonitor
            } else {
                return None;
            };
        } else if k == am::TAG {
            o.tag = Some(Box::new(OwnedTerm::copy_of(v)));
        } else {
            return None;
        }
    }
    it.tail().is_nil().then_some(o)
}

fn monitor(cx: &mut Cx, kind: Term, what: Term, o: MonitorOptions) -> BifResult {
    let me = cx.self_pid();
    if kind == am::TIME_OFFSET {
        if what != a_clock_service() {
            return Err(Fail::Badarg);
        }
        let (k, t) = new_ref(cx, o.alias);
        add(cx, k, Target::Clock, o);
        return Ok(t);
    }
    let port = kind == am::PORT;
    if !port && kind != am::PROCESS {
        return Err(cx.badarg_cause(a_badtype()));
    }
    // Name and local identifier.
    let (target, name) = if what.is_local_pid() && !port || what.is_local_port() && port {
        (Some(what), None)
    } else if what.is_atom() {
        (registry::whereis(what), Some((what, node::this_name())))
    } else if let Some(&[n, nd]) = what.as_tuple() {
        if !n.is_atom() || !nd.is_atom() {
            return Err(Fail::Badarg);
        }
        if nd != node::this_name() {
            if !port {
                return monitor_remote(cx, what, o);
            }
            return Err(Fail::Badarg);
        }
        (registry::whereis(n), Some((n, nd)))
    } else if port && what.is_port() && remote::node_of(what) == Some(node::this_name()) {
        (None, None)
    } else if !port && what.is_pid() {
        if remote::node_of(what) != Some(node::this_name()) {
            return monitor_remote(cx, what, o);
        }
        // Of a node of this one's name that was there before: it has ended.
        (None, None)
    } else {
        return Err(Fail::Badarg);
    };
    let target = target.filter(|t| {
        if port {
            t.is_local_port()
        } else {
            t.is_local_pid()
        }
    });
    if let Some(to) = target.filter(|_| !port) {
        let_end_arrive(cx, to)?;
    }
    let (k, r) = new_ref(cx, o.alias);
    let object = match name {
        Some((n, nd)) => cx.tuple(&[n, nd]),
        None => what,
    };
    let Some(to) = target else {
        add(cx, k, Target::Gone, o);
        send::monitor_down(me, r, kind, object, am::NOPROC);
        return Ok(r);
    };
    // Nobody watches itself, and such a reference is no alias either.
    if to == me {
        return Ok(r);
    }
    let stored = match name {
        Some((n, _)) => Target::Named(to, n),
        None => Target::Local(to),
    };
    add(cx, k, stored, o);
    if port {
        if !crate::port::monitor(to, me, r, name.map_or(NIL, |n| n.0)) {
            send::monitor_down(me, r, kind, object, am::NOPROC);
        }
        return Ok(r);
    }
    let s = Signal::tuple_of(Kind::Monitor, &[r, me, name.map_or(NIL, |n| n.0)]);
    // SAFETY: a fresh signal.
    unsafe {
        if !push(to, s) {
            Signal::free(s);
            send::monitor_down(me, r, kind, object, am::NOPROC);
        }
    }
    Ok(r)
}

/// A process that traps exits and is about to monitor one that it is linked with, which is ending, hears of the link's end first. That
/// is on its way. Else it would be told that there is no process, and if it gives up the link now, as supervisors do, never of what
/// the reason was.
fn let_end_arrive(cx: &mut Cx, to: Term) -> Result<(), Fail> {
    let ends = |to| match process::table().find(to) {
        // SAFETY: cells are never unmapped; the state word is an atomic.
        Some(p) => unsafe { (*p).state.load() }.is_exiting(),
        None => true,
    };
    if !cx.process().has(process::TRAP_EXIT) || !ends(to) {
        return Ok(());
    }
    handle::fetch(cx);
    if cx.process().has(process::EXIT_PENDING) {
        return Err(Fail::Exited);
    }
    let link = cx
        .process()
        .ext()
        .and_then(|e| e.links.get_mut(&Peer::of(to)));
    match link {
        Some(l) if l.unlinking == 0 => Err(Fail::Wait),
        _ => Ok(()),
    }
}

fn new_ref(cx: &mut Cx, alias: AliasMode) -> (RefKey, Term) {
    let k = RefKey::new(ids::ref_bits());
    let t = if alias == AliasMode::None {
        cx.local_ref(k.numbers())
    } else {
        let me = cx.self_pid();
        cx.pid_ref(k.numbers(), me)
    };
    (k, t)
}

fn add(cx: &mut Cx, k: RefKey, target: Target, o: MonitorOptions) {
    let e = cx.process().ext_mut();
    if o.urgent {
        e.prioritize(k);
    }
    e.monitors.insert(k, Monitor::new(target, o.alias, o.tag));
}

fn monitor_remote(cx: &mut Cx, what: Term, o: MonitorOptions) -> BifResult {
    let of_none = remote::node_of(what) == Some(am::NONODE_AT_NOHOST);
    if what.is_tuple() && !of_none && !is_alive(cx) {
        return Err(Fail::Badarg);
    }
    let r = new_ref(cx, o.alias);
    if o.urgent {
        cx.process().ext_mut().prioritize(r.0);
    }
    remote::monitor(cx, what, r, o.alias, o.tag)
}

/// Whether this node has a name, or waits for another node to give it one.
pub fn is_alive(cx: &mut Cx) -> bool {
    if node::is_alive() {
        return true;
    }
    let key = cx.tuple(&[a_erts_internal(), a_dynamic_node_name()]);
    super::persistent::get(cx, key).is_some()
}

fn monitor_2(cx: &mut Cx, [kind, what]: [Term; 2]) -> BifResult {
    let o = MonitorOptions {
        urgent: false,
        alias: AliasMode::None,
        tag: None,
    };
    monitor(cx, kind, what, o)
}
fn monitor_3(cx: &mut Cx, [kind, what, opts]: [Term; 3]) -> BifResult {
    let Some(o) = monitor_options(opts) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    monitor(cx, kind, what, o)
}

/// The target of the monitor, if there was such a one.
fn end_monitor(cx: &mut Cx, r: Term) -> Result<Option<Target>, Fail> {
    if r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let Some(k) = ref_key(r) else {
        // Another node's can't be of a monitor; one of a node of this one's name that was there before is of none any more.
        let own = ref_parts(r).is_some_and(|p| p.1 == node::this_name());
        return if own { Ok(None) } else { Err(Fail::Badarg) };
    };
    let me = cx.self_pid();
    let Some(e) = cx.process().ext() else {
        return Ok(None);
    };
    let Some(m) = e.monitors.remove(&k) else {
        // It may have waited until there was nothing left to end.
        cx.process().set_flag(process::BUSY, false);
        return Ok(None);
    };
    if m.target() == Target::Remote
        && let Some(w) = m.watched()
        && let Err(waits) = remote::before_demonitor(cx, w)
    {
        cx.process().ext_mut().monitors.insert(k, m);
        return Err(waits);
    }
    let e = cx.process().ext_mut();
    e.take_urgent(&k);
    if m.alias() == AliasMode::Explicit {
        e.aliases.insert(k, false);
    } else {
        aliases::ended(|| k.numbers());
    }
    handle::end_monitor(me, &m, r);
    Ok(Some(m.target()))
}

fn demonitor_1(cx: &mut Cx, [r]: [Term; 1]) -> BifResult {
    end_monitor(cx, r)?;
    Ok(am::TRUE)
}
fn demonitor_2(cx: &mut Cx, [r, opts]: [Term; 2]) -> BifResult {
    let (mut do_flush, mut info) = (false, false);
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == am::FLUSH {
            do_flush = true;
        } else if o == am::INFO {
            info = true;
        } else {
            return Err(Fail::Badarg);
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    let was = end_monitor(cx, r)?;
    let value = Term::bool(!info || was.is_some());
    // One of the clock stays when there is a message, and there may be several.
    let clock = was == Some(Target::Clock);
    if !do_flush || (was.is_some() && !clock) {
        return Ok(value);
    }
    // The message, if there is one, is taken by a receive of stock's own, which knows markers and tags. Those who were told of the same
    // end have their turn first, as on stock: programs rely on it that what they do about it is done when this has returned.
    crate::sched::mark_early_yield();
    cx.end_slice();
    let x = crate::code::export(
        purlin_term::atom::intern("erts_internal"),
        purlin_term::atom::intern("flush_monitor_messages"),
        3,
    );
    Err(cx.trap(x, &[r, Term::bool(clock), value]))
}

fn alias_with(cx: &mut Cx, once: bool, urgent: bool) -> BifResult {
    let k = RefKey::new(ids::ref_bits());
    let me = cx.self_pid();
    let e = cx.process().ext_mut();
    e.aliases.insert(k, once);
    if urgent {
        e.prioritize(k);
    }
    Ok(cx.pid_ref(k.numbers(), me))
}
fn alias_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    alias_with(cx, false, false)
}
fn alias_1(cx: &mut Cx, [opts]: [Term; 1]) -> BifResult {
    let (mut once, mut urgent) = (false, false);
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_reply() {
            once = true;
        } else if o == am::EXPLICIT_UNALIAS {
            once = false;
        } else if o == a_priority() && release::has(PRIORITY_MESSAGES) {
            urgent = true;
        } else {
            return Err(Fail::Badarg);
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    alias_with(cx, once, urgent)
}
fn unalias_1(cx: &mut Cx, [r]: [Term; 1]) -> BifResult {
    if r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    // Messages through it that have arrived are messages.
    handle::fetch(cx);
    let Some(k) = ref_key(r) else {
        return Ok(am::FALSE);
    };
    let Some(e) = cx.process().ext() else {
        return Ok(am::FALSE);
    };
    if e.rare().is_some_and(|r| r.aliases.remove(&k).is_some()) {
        e.take_urgent(&k);
        aliases::ended(|| k.numbers());
        return Ok(am::TRUE);
    }
    Ok(match e.monitors.get_mut(&k) {
        Some(m) if m.alias() != AliasMode::None => {
            m.set_alias(AliasMode::None);
            aliases::ended(|| k.numbers());
            am::TRUE
        }
        _ => am::FALSE,
    })
}

bifs! {
    Plain "erlang":"link"/1 = link_1 [writes(Process)];
    Plain "erlang":"unlink"/1 = unlink_1 [writes(Process)];
    Plain "erlang":"exit"/2 = exit_2 [long writes(Process)];
    Plain "erlang":"exit_signal"/2 = exit_signal_2 [writes(Process)];
    Plain "erlang":"exit_signal"/3 = exit_signal_3 [since(29) writes(Process)];
    Plain "erlang":"exit"/3 = exit_3 [writes(Process) since(28)];
    Plain "erlang":"link"/2 = link_2 [writes(Process) since(28)];
    Plain "erlang":"monitor"/2 = monitor_2 [reads(SecondProcess)];
    Plain "erlang":"monitor"/3 = monitor_3 [reads(SecondProcess)];
    Plain "erlang":"demonitor"/1 = demonitor_1 [reads(Cell) signals_unnamed];
    Plain "erlang":"demonitor"/2 = demonitor_2 [reads(Cell) signals_unnamed];
    Plain "erlang":"alias"/0 = alias_0 [in_place reads(All)];
    Plain "erlang":"alias"/1 = alias_1 [reads(All)];
    Plain "erlang":"unalias"/1 = unalias_1 [writes(Cell) signals_unnamed];
}
