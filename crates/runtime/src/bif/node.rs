//! Natives of nodes: this one, and those of others that it knows.
//!
//! This runtime has no channels to other nodes yet. It can be given a name (`erlang:setnode/2`), knows the nodes that
//! it was asked to connect to, and every attempt to connect ends as one to a node that isn't there.

use crate::cx::{BifResult, Cx, Fail};
use crate::{bifs, code, lazy_atoms};
use purlin_term::compare::{pid_parts, port_parts, ref_parts};
use purlin_term::frag::OwnedTerm;
use purlin_term::layout::RefView;
use purlin_term::{Alloc, NIL, Term, am, arith, atom, map, node};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

lazy_atoms! {
    visible = "visible";
    hidden = "hidden";
    known = "known";
    this = "this";
    connection_id = "connection_id";
    node_type = "node_type";
    notalive = "notalive";
    allow_passive_connect = "allow_passive_connect";
    dmonitor_node = "dmonitor_node";
    net_kernel = "net_kernel";
    spawn_opt = "spawn_opt";
    spawn_request = "spawn_request";
}

/// Whether this node has a name.
pub fn is_alive() -> bool {
    node::this_name() != am::NONODE_AT_NOHOST
}

/// Whether an atom has the form of a node's name: something on both sides of one `@`.
fn is_node_name(t: Term) -> bool {
    t.is_atom()
        && atom::name(t)
            .split_once('@')
            .is_some_and(|(a, b)| !a.is_empty() && !b.is_empty() && !b.contains('@'))
}

/// A node to which a connection is being set up.
struct Pending {
    name: Term,
    id: u64,
    /// The reference in the handle.
    handle: OwnedTerm,
}

/// Nodes that were asked for: the name, and the connection under way.
static PENDING: Mutex<(Vec<Pending>, u64)> = Mutex::new((Vec::new(), 1));

fn node_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(node::this_name())
}

fn node_1(_: &mut Cx, [t]: [Term; 1]) -> BifResult {
    if t.is_pid() {
        pid_parts(t).map(|p| p.2)
    } else if t.is_port() {
        port_parts(t).map(|p| p.1)
    } else {
        match t.as_ref_view() {
            Some(RefView::External { node, .. }) => Some(node.name),
            _ => ref_parts(t).map(|p| p.1),
        }
    }
    .ok_or(Fail::Badarg)
}

/// Which nodes `nodes/1,2` ask for: whether this one is among them, and those that are not connected.
fn wanted(which: Term) -> Result<(bool, bool), Fail> {
    let (mut me, mut idle) = (false, false);
    let mut one = |t: Term| {
        if t == known() {
            (me, idle) = (true, true);
        } else if t == this() {
            me = true;
        } else if t != visible() && t != hidden() && t != am::CONNECTED {
            return Err(Fail::Badarg);
        }
        Ok(())
    };
    if which.is_atom() {
        one(which)?;
    } else {
        let mut it = which.list_iter();
        for t in it.by_ref() {
            one(t)?;
        }
        if !it.tail().is_nil() {
            return Err(Fail::Badarg);
        }
    }
    Ok((me, idle))
}

fn found((me, idle): (bool, bool)) -> Vec<(Term, Term)> {
    let mut v = Vec::new();
    if idle {
        let p = PENDING.lock().unwrap_or_else(|e| e.into_inner());
        v.extend(p.0.iter().map(|p| (p.name, known())));
    }
    if me {
        v.push((node::this_name(), this()));
    }
    v
}

fn nodes_0(_: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(NIL)
}
fn nodes_1(cx: &mut Cx, [which]: [Term; 1]) -> BifResult {
    let names: Vec<Term> = found(wanted(which)?).into_iter().map(|n| n.0).collect();
    Ok(cx.list(&names))
}
fn nodes_2(cx: &mut Cx, [which, options]: [Term; 2]) -> BifResult {
    let which = wanted(which)?;
    let size = options.map_size().ok_or(Fail::Badarg)?;
    let mut given = 0;
    let mut option = |key: Term| match map::get(options, key) {
        None => Ok(false),
        Some(v) => {
            given += 1;
            v.as_bool().ok_or(Fail::Badarg)
        }
    };
    let (id, kind) = (option(connection_id())?, option(node_type())?);
    if given != size {
        return Err(Fail::Badarg);
    }
    let mut items = Vec::new();
    for (name, type_) in found(which) {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        if id {
            keys.push(connection_id());
            values.push(am::UNDEFINED);
        }
        if kind {
            keys.push(node_type());
            values.push(type_);
        }
        let info = cx.flatmap(&keys, &values);
        items.push(cx.tuple(&[name, info]));
    }
    Ok(cx.list(&items))
}

fn monitor(cx: &mut Cx, name: Term, flag: Term, options: Term) -> BifResult {
    let mut it = options.list_iter();
    let known_options = it.by_ref().all(|o| o == allow_passive_connect());
    if !known_options || !it.tail().is_nil() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    if name != am::NONODE_AT_NOHOST && !is_alive() {
        let f = cx.error(notalive());
        cx.exc.error_info = true;
        return Err(f);
    }
    let on = flag.as_bool().ok_or(Fail::Badarg)?;
    if !on || name == node::this_name() {
        return Ok(am::TRUE);
    }
    // The node isn't connected: what follows is in Erlang.
    let e = code::export(am::ERLANG, dmonitor_node(), 3);
    Err(cx.trap(e, &[name, flag, options]))
}
fn monitor_node_2(cx: &mut Cx, [name, flag]: [Term; 2]) -> BifResult {
    monitor(cx, name, flag, NIL)
}
fn monitor_node_3(cx: &mut Cx, [name, flag, options]: [Term; 3]) -> BifResult {
    monitor(cx, name, flag, options)
}

fn setnode_2(_: &mut Cx, [name, creation]: [Term; 2]) -> BifResult {
    let creation = arith::to_u64(creation)
        .and_then(|c| u32::try_from(c).ok())
        .ok_or(Fail::Badarg)?;
    if !is_node_name(name) || name == am::NONODE_AT_NOHOST || is_alive() {
        return Err(Fail::Badarg);
    }
    if crate::process::registry::whereis(net_kernel()).is_none() {
        return Err(Fail::Badarg);
    }
    node::set_this(name, creation);
    Ok(am::TRUE)
}

fn get_creation_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(if is_alive() {
        cx.uint(node::this_creation().into())
    } else {
        am::UNDEFINED
    })
}

fn new_connection_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !is_node_name(name) || name == node::this_name() {
        return Err(Fail::Badarg);
    }
    let mut guard = PENDING.lock().unwrap_or_else(|e| e.into_inner());
    let (pending, next) = &mut *guard;
    let i = pending
        .iter()
        .position(|p| p.name == name)
        .unwrap_or_else(|| {
            let mut f = purlin_term::frag::Fragment::new();
            let r = crate::ids::make_ref(&mut f);
            pending.push(Pending {
                name,
                id: 0,
                handle: OwnedTerm::from_parts(r, f),
            });
            pending.len() - 1
        });
    let p = &mut pending[i];
    if p.id == 0 {
        p.id = *next;
        *next += 1;
    }
    let id = cx.uint(p.id);
    let r = purlin_term::copy::copy(p.handle.term(), cx);
    Ok(cx.tuple(&[id, r]))
}

fn abort_pending_connection_2(_: &mut Cx, [name, handle]: [Term; 2]) -> BifResult {
    let Some(&[id, r]) = handle.as_tuple() else {
        return Err(Fail::Badarg);
    };
    let mut guard = PENDING.lock().unwrap_or_else(|e| e.into_inner());
    let p = guard
        .0
        .iter_mut()
        .find(|p| p.name == name && purlin_term::compare::eq_exact(p.handle.term(), r))
        .ok_or(Fail::Badarg)?;
    if p.id != 0 && arith::to_u64(id) == Some(p.id) {
        p.id = 0;
        return Ok(am::TRUE);
    }
    Ok(am::FALSE)
}

fn dflag_unicode_io_1(_: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_pid() {
        return Err(Fail::Badarg);
    }
    Ok(if pid.is_local_pid() {
        am::TRUE
    } else {
        am::FALSE
    })
}

/// Who wants to know of nodes that come and go: pid, the options as bits, and how many times it was asked for.
static OBSERVERS: Mutex<Vec<(Term, u32, i64)>> = Mutex::new(Vec::new());

static ANY_OBSERVER: AtomicBool = AtomicBool::new(false);

/// `process_flag(monitor_nodes | {monitor_nodes, Options}, Bool)`: how many times it was on before.
pub fn monitor_nodes(cx: &mut Cx, flag: Term, value: Term) -> BifResult {
    let on = value.as_bool().ok_or(Fail::Badarg)?;
    let mut bits = 0;
    if let Some(&[_, options]) = flag.as_tuple() {
        if options.is_map() {
            bits = 1;
            for (key, value) in map::iter(options) {
                bits |= observer_option(key, value).ok_or(Fail::Badarg)?;
            }
        } else if options != NIL {
            return Err(Fail::Badarg);
        }
    }
    let me = cx.self_pid();
    let mut all = OBSERVERS.lock().unwrap_or_else(|e| e.into_inner());
    let at = all.iter().position(|o| o.0 == me && o.1 == bits);
    let before = at.map_or(0, |i| all[i].2);
    match (on, at) {
        (true, Some(i)) => all[i].2 += 1,
        (true, None) => all.push((me, bits, 1)),
        (false, Some(i)) => {
            all.swap_remove(i);
        }
        (false, None) => {}
    }
    ANY_OBSERVER.store(!all.is_empty(), Ordering::Release);
    Ok(Term::small(before))
}

/// The bits of an option of `monitor_nodes`.
fn observer_option(key: Term, value: Term) -> Option<u32> {
    let word = |t: Term| t.is_atom().then(|| atom::name(t));
    match (word(key)?, word(value)?) {
        ("node_type", "visible") => Some(2),
        ("node_type", "hidden") => Some(4),
        ("node_type", "all") => Some(6),
        ("nodedown_reason", "true") => Some(8),
        ("connection_id", "true") => Some(16),
        ("list", "true") => Some(32),
        ("nodedown_reason" | "connection_id" | "list", "false") => Some(0),
        _ => None,
    }
}

/// A process has ended.
pub fn owner_exit(pid: Term) {
    if ANY_OBSERVER.load(Ordering::Acquire) {
        let mut all = OBSERVERS.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|o| o.0 != pid);
        ANY_OBSERVER.store(!all.is_empty(), Ordering::Release);
    }
}

/// `erts_internal:dist_spawn_request/4`: no node is connected, which the reply says.
fn dist_spawn_request_4(cx: &mut Cx, [node, mfa, options, how]: [Term; 4]) -> BifResult {
    let valid = match mfa.as_tuple() {
        Some(&[m, f, args]) => {
            let mut it = args.list_iter();
            it.by_ref().for_each(drop);
            m.is_atom() && f.is_atom() && it.tail().is_nil()
        }
        _ => false,
    };
    let wants_pair = how == spawn_opt();
    if !valid || !node.is_atom() || !(wants_pair || how == spawn_request()) {
        return Ok(am::BADARG);
    }
    let (mut tag, mut reply, mut watch, mut bad) = (am::SPAWN_REPLY, true, false, false);
    let mut it = options.list_iter();
    for o in it.by_ref() {
        if let Some(&[key, value]) = o.as_tuple() {
            match (key.is_atom().then(|| atom::name(key)), value) {
                (Some("reply_tag"), t) if !wants_pair => tag = t,
                (Some("reply"), v) if v.is_atom() && !wants_pair => match atom::name(v) {
                    "yes" | "error_only" => reply = true,
                    "no" | "success_only" => reply = false,
                    _ => bad = true,
                },
                (Some("monitor"), _) => watch = true,
                // What else there is only the other node can judge.
                (Some(_), _) => {}
                (None, _) => bad = true,
            }
        } else if o == am::MONITOR {
            watch = true;
        } else {
            bad |= !o.is_atom();
        }
    }
    if !it.tail().is_nil() {
        return Ok(am::BADARG);
    }
    let r = crate::ids::make_ref(cx);
    if reply {
        let why = if bad { am::BADOPT } else { am::NOCONNECTION };
        let message = cx.tuple(&[tag, r, am::ERROR, why]);
        let me = cx.self_pid();
        crate::signal::send(me, message);
    }
    if wants_pair {
        let watch = if watch { am::TRUE } else { am::FALSE };
        return Ok(cx.tuple(&[r, watch]));
    }
    Ok(r)
}

/// What natives of a distribution controller give a process that is none, as all are.
fn no_controller<const N: usize>(_: &mut Cx, _: [Term; N]) -> BifResult {
    Err(Fail::Notsup)
}
/// The same for natives that take a connection's handle, which no term is.
fn no_connection<const N: usize>(_: &mut Cx, _: [Term; N]) -> BifResult {
    Err(Fail::Badarg)
}

bifs! {
    Guard "erlang":"node"/0 = node_0;
    Guard "erlang":"node"/1 = node_1;
    Plain "erlang":"nodes"/0 = nodes_0;
    Plain "erlang":"nodes"/1 = nodes_1;
    Plain "erlang":"nodes"/2 = nodes_2;
    Plain "erlang":"monitor_node"/2 = monitor_node_2;
    Plain "erlang":"monitor_node"/3 = monitor_node_3;
    Plain "erlang":"setnode"/2 = setnode_2;
    Plain "erlang":"dist_get_stat"/1 = no_connection::<1>;
    Plain "erlang":"dist_ctrl_get_data"/1 = no_controller::<1>;
    Plain "erlang":"dist_ctrl_input_handler"/2 = no_controller::<2>;
    Plain "erlang":"dist_ctrl_put_data"/2 = no_connection::<2>;
    Plain "erlang":"dist_ctrl_get_data_notification"/1 = no_controller::<1>;
    Plain "erlang":"dist_ctrl_get_opt"/2 = no_controller::<2>;
    Plain "erlang":"dist_ctrl_set_opt"/3 = no_controller::<3>;
    Plain "erts_internal":"dist_spawn_request"/4 = dist_spawn_request_4;
    Plain "erts_internal":"get_creation"/0 = get_creation_0;
    Plain "erts_internal":"new_connection"/1 = new_connection_1;
    Plain "erts_internal":"abort_pending_connection"/2 = abort_pending_connection_2;
    Plain "net_kernel":"dflag_unicode_io"/1 = dflag_unicode_io_1;
}
