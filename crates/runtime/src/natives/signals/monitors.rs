//! Natives of monitors.
//!
//! # Invariants
//! * The monitoring process records the monitor before the other end learns of it, so a `DOWN`
//!   message always finds it.
//! * A monitor is removed by its message, except one of the clock, which sends several.

use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::{AliasMode, Monitor, Peer, RefKey, Target};
use crate::process::{self, registry};
use crate::signal::handle::ref_key;
use crate::signal::send::{self, push};
use crate::signal::{Kind, Signal, handle};
use crate::{bifs, ids, lazy_atoms};
use purlin_dist::signals as remote;
use purlin_kernel::budgets;
use purlin_kernel::signal::bounds;
use purlin_term::etf::aliases;
use purlin_term::frag::OwnedTerm;
use purlin_term::parts::ref_parts;
use purlin_term::release::{self, PRIORITY_MESSAGES};
use purlin_term::{Alloc, NIL, Term, am, node};

lazy_atoms! {
    a_reply_demonitor = "reply_demonitor";
    a_erts_internal = "erts_internal";
    a_dynamic_node_name = "dynamic_node_name";
    a_clock_service = "clock_service";
    a_badtype = "badtype";
}

pub(crate) struct MonitorOptions {
    /// The message that the monitor sends has priority.
    pub urgent: bool,
    pub alias: AliasMode,
    pub tag: Option<Box<OwnedTerm>>,
}

/// Reads the options of a monitor; `None` if they are invalid.
pub(crate) fn monitor_options(l: Term) -> Option<MonitorOptions> {
    let mut o = MonitorOptions {
        urgent: false,
        alias: AliasMode::None,
        tag: None,
    };
    let mut it = l.list_iter();
    for t in it.by_ref() {
        if t == am::PRIORITY && release::has(PRIORITY_MESSAGES) {
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
    // A name and a local identifier.
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
        // It belongs to an earlier instance of this node, so its process has ended.
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
    // A process cannot monitor itself, and the reference is no alias either.
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

/// Lets the exit signal of a link arrive before a monitor on the same, ending process is created.
///
/// Applies to a process that traps exits. Without this the monitor would report `noproc`, and a
/// process that then unlinks, as supervisors do, would never learn the exit reason.
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
    if budgets::on() {
        bounds::awaits(cx, k);
    }
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
    crate::natives::persistent::get(cx, key).is_some()
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

/// Removes a monitor and returns its target, if there was one.
fn end_monitor(cx: &mut Cx, r: Term) -> Result<Option<Target>, Fail> {
    if r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    let Some(k) = ref_key(r) else {
        // A reference of another node cannot be a monitor's. One of an earlier instance of this
        // node no longer is one.
        let own = ref_parts(r).is_some_and(|p| p.1 == node::this_name());
        return if own { Ok(None) } else { Err(Fail::Badarg) };
    };
    let me = cx.self_pid();
    let Some(e) = cx.process().ext() else {
        return Ok(None);
    };
    let Some(m) = e.monitors.remove(&k) else {
        // It may have waited until nothing was left to end.
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
    // A monitor of the clock outlives its messages, and there may be several of them.
    let clock = was == Some(Target::Clock);
    if !do_flush || (was.is_some() && !clock) {
        return Ok(value);
    }
    // Stock's own receive takes the message, if there is one, since it knows markers and tags.
    // Other processes that were notified of the same end run first, as on stock: programs rely on
    // their reaction being done when this returns.
    crate::sched::mark_early_yield();
    cx.end_slice();
    let x = crate::code::export(
        purlin_term::atom::intern("erts_internal"),
        purlin_term::atom::intern("flush_monitor_messages"),
        3,
    );
    if cx.process().has(process::SAVES) {
        let call = process::saved::Call::Function(x.module, x.function, 3);
        process::saved::note(cx.process(), call);
    }
    Err(cx.trap(x, &[r, Term::bool(clock), value]))
}

bifs! {
    Plain "erlang":"monitor"/2 = monitor_2 [reads(SecondProcess)];
    Plain "erlang":"monitor"/3 = monitor_3 [reads(SecondProcess)];
    Plain "erlang":"demonitor"/1 = demonitor_1 [reads(Cell) signals_unnamed];
    Plain "erlang":"demonitor"/2 = demonitor_2 [reads(Cell) signals_unnamed];
}
