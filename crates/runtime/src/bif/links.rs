//! Natives of links, monitors, aliases and exit signals.

use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::{AliasMode, Link, Monitor, Peer, RefKey, Target};
use crate::process::registry;
use crate::signal::handle::{ref_key, send_demonitor};
use crate::signal::send::{self, push, push_or_free};
use crate::signal::{Kind, Signal, handle};
use crate::{bifs, ids, lazy_atoms};
use purlin_term::frag::OwnedTerm;
use purlin_term::{Alloc, NIL, Term, am, node};

lazy_atoms! {
    a_process = "process"; a_port = "port"; a_time_offset = "time_offset"; a_noproc = "noproc";
    a_noconnection = "noconnection"; a_flush = "flush"; a_info = "info"; a_alias = "alias"; a_tag = "tag";
    a_explicit_unalias = "explicit_unalias"; a_demonitor = "demonitor"; a_reply_demonitor = "reply_demonitor";
    a_reply = "reply"; a_clock_service = "clock_service"; a_badtype = "badtype";
}

fn link_1(cx: &mut Cx, [to]: [Term; 1]) -> BifResult {
    let me = cx.self_pid();
    if to.is_local_port() {
        return crate::port_link(cx, to);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    if !to.is_local_pid() {
        // No node is connected.
        let own = OwnedTerm::copy_of(to);
        return exit_or_message(cx, own, a_noconnection());
    }
    if to == me {
        return Ok(am::TRUE);
    }
    let e = cx.process().ext_mut();
    match e.links.get_mut(&Peer::of(to)) {
        Some(l) if l.unlinking == 0 => return Ok(am::TRUE),
        Some(l) => l.unlinking = 0,
        None => e.links.insert(Peer::of(to), Link { unlinking: 0 }),
    }
    // SAFETY: a fresh signal.
    let sent = unsafe { push_or_free(to, Signal::copy_of(Kind::Link, me)) };
    if !sent {
        if let Some(e) = cx.process().ext() {
            e.links.remove(&Peer::of(to));
        }
        if cx.process().has(crate::process::TRAP_EXIT) {
            let msg = cx.tuple(&[am::EXIT_UC, to, a_noproc()]);
            send::send(me, msg);
            return Ok(am::TRUE);
        }
        return Err(cx.error(a_noproc()));
    }
    crate::trace::tie(cx.process(), crate::trace::Tie::Link, to);
    Ok(am::TRUE)
}

/// The exit signal of a link that can't be made.
fn exit_or_message(cx: &mut Cx, from: OwnedTerm, reason: Term) -> BifResult {
    let me = cx.self_pid();
    send::exit_signal(from.term(), me, reason);
    Ok(am::TRUE)
}

fn unlink_1(cx: &mut Cx, [to]: [Term; 1]) -> BifResult {
    if to.is_local_port() {
        return crate::port_unlink(cx, to);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    let me = cx.self_pid();
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
        crate::trace::tie(cx.process(), crate::trace::Tie::Unlink, to);
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

fn exit_2(cx: &mut Cx, [to, reason]: [Term; 2]) -> BifResult {
    let me = cx.self_pid();
    if to.is_local_port() {
        return crate::port_exit_2(cx, to, reason);
    }
    if !to.is_pid() {
        return Err(Fail::Badarg);
    }
    if !to.is_local_pid() {
        return Ok(am::TRUE);
    }
    let (reason, _held) = crate::signal::share::share(cx, reason);
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

struct MonitorOptions {
    alias: AliasMode,
    tag: Option<Box<OwnedTerm>>,
}

fn options(l: Term) -> Option<MonitorOptions> {
    let mut o = MonitorOptions {
        alias: AliasMode::None,
        tag: None,
    };
    let mut it = l.list_iter();
    for t in it.by_ref() {
        let &[k, v] = t.as_tuple()? else { return None };
        if k == a_alias() {
            o.alias = if v == a_explicit_unalias() {
                AliasMode::Explicit
            } else if v == a_demonitor() {
                AliasMode::Demonitor
            } else if v == a_reply_demonitor() {
                AliasMode::ReplyDemonitor
            } else {
                return None;
            };
        } else if k == a_tag() {
            o.tag = Some(Box::new(OwnedTerm::copy_of(v)));
        } else {
            return None;
        }
    }
    it.tail().is_nil().then_some(o)
}

fn monitor(cx: &mut Cx, kind: Term, what: Term, o: MonitorOptions) -> BifResult {
    let me = cx.self_pid();
    if kind == a_time_offset() {
        if what != a_clock_service() {
            return Err(Fail::Badarg);
        }
        let (k, t) = new_ref(cx, o.alias);
        add(cx, k, Target::Clock, o);
        return Ok(t);
    }
    let port = kind == a_port();
    if !port && kind != a_process() {
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
                return remote(cx, what, o);
            }
            return Err(Fail::Badarg);
        }
        (registry::whereis(n), Some((n, nd)))
    } else if !port && what.is_pid() {
        return remote(cx, what, o);
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
    let (k, r) = new_ref(cx, o.alias);
    let object = match name {
        Some((n, nd)) => cx.tuple(&[n, nd]),
        None => what,
    };
    let Some(to) = target else {
        add(cx, k, Target::Clock, o);
        send::monitor_down(me, r, kind, object, a_noproc());
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
        if !crate::port_monitor(to, r, me, name.map_or(NIL, |n| n.0)) {
            send::monitor_down(me, r, kind, object, a_noproc());
        }
        return Ok(r);
    }
    let s = Signal::tuple_of(Kind::Monitor, &[r, me, name.map_or(NIL, |n| n.0)]);
    // SAFETY: a fresh signal.
    unsafe {
        if !push(to, s) {
            Signal::free(s);
            send::monitor_down(me, r, kind, object, a_noproc());
        }
    }
    Ok(r)
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
    cx.process()
        .ext_mut()
        .monitors
        .insert(k, Monitor::new(target, o.alias, o.tag));
}

/// What is on a node that isn't connected is down at once.
fn remote(cx: &mut Cx, what: Term, o: MonitorOptions) -> BifResult {
    let me = cx.self_pid();
    let (k, r) = new_ref(cx, o.alias);
    add(cx, k, Target::Clock, o);
    send::monitor_down(me, r, a_process(), what, a_noconnection());
    Ok(r)
}

fn monitor_2(cx: &mut Cx, [kind, what]: [Term; 2]) -> BifResult {
    let o = MonitorOptions {
        alias: AliasMode::None,
        tag: None,
    };
    monitor(cx, kind, what, o)
}
fn monitor_3(cx: &mut Cx, [kind, what, opts]: [Term; 3]) -> BifResult {
    let Some(o) = options(opts) else {
        return Err(cx.badarg_cause(am::BADOPT));
    };
    monitor(cx, kind, what, o)
}

/// True if there was such a monitor.
fn end_monitor(cx: &mut Cx, r: Term) -> Result<bool, Fail> {
    if r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let Some(k) = ref_key(r) else {
        return Ok(false);
    };
    let me = cx.self_pid();
    let Some(e) = cx.process().ext() else {
        return Ok(false);
    };
    let Some(m) = e.monitors.remove(&k) else {
        return Ok(false);
    };
    if m.alias() == AliasMode::Explicit {
        e.aliases.insert(k, false);
    }
    if let Target::Local(to) | Target::Named(to, _) = m.target() {
        send_demonitor(me, to, r);
    }
    Ok(true)
}

fn demonitor_1(cx: &mut Cx, [r]: [Term; 1]) -> BifResult {
    end_monitor(cx, r)?;
    Ok(am::TRUE)
}
fn demonitor_2(cx: &mut Cx, [r, opts]: [Term; 2]) -> BifResult {
    let (mut do_flush, mut info) = (false, false);
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_flush() {
            do_flush = true;
        } else if o == a_info() {
            info = true;
        } else {
            return Err(Fail::Badarg);
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    let was = end_monitor(cx, r)?;
    let value = if info && !was { am::FALSE } else { am::TRUE };
    if !do_flush || was {
        return Ok(value);
    }
    // The message, if there is one, is taken by a receive of stock's own, which knows markers and tags.
    let x = crate::code::export(
        purlin_term::atom::intern("erts_internal"),
        purlin_term::atom::intern("flush_monitor_messages"),
        3,
    );
    let multi = am::FALSE;
    let value = if info { am::FALSE } else { am::TRUE };
    Err(cx.trap(x, &[r, multi, value]))
}

fn alias_with(cx: &mut Cx, once: bool) -> BifResult {
    let k = RefKey::new(ids::ref_bits());
    let me = cx.self_pid();
    cx.process().ext_mut().aliases.insert(k, once);
    Ok(cx.pid_ref(k.numbers(), me))
}
fn alias_0(cx: &mut Cx, _: [Term; 0]) -> BifResult {
    alias_with(cx, false)
}
fn alias_1(cx: &mut Cx, [opts]: [Term; 1]) -> BifResult {
    let mut once = false;
    let mut it = opts.list_iter();
    for o in it.by_ref() {
        if o == a_reply() {
            once = true;
        } else if o == a_explicit_unalias() {
            once = false;
        } else {
            return Err(Fail::Badarg);
        }
    }
    if !it.tail().is_nil() {
        return Err(Fail::Badarg);
    }
    alias_with(cx, once)
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
        return Ok(am::TRUE);
    }
    Ok(match e.monitors.get_mut(&k) {
        Some(m) if m.alias() != AliasMode::None => {
            m.set_alias(AliasMode::None);
            am::TRUE
        }
        _ => am::FALSE,
    })
}

bifs! {
    Plain "erlang":"link"/1 = link_1;
    Plain "erlang":"unlink"/1 = unlink_1;
    Plain "erlang":"exit"/2 = exit_2;
    Plain "erlang":"exit_signal"/2 = exit_2;
    Plain "erlang":"monitor"/2 = monitor_2;
    Plain "erlang":"monitor"/3 = monitor_3;
    Plain "erlang":"demonitor"/1 = demonitor_1;
    Plain "erlang":"demonitor"/2 = demonitor_2;
    Plain "erlang":"alias"/0 = alias_0;
    Plain "erlang":"alias"/1 = alias_1;
    Plain "erlang":"unalias"/1 = unalias_1;
}
