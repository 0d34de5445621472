//! Natives of nodes: this one, the connected ones, and the control of connections.
//!
//! # Orderings
//! `KEEPER` is only compared with pids, and nothing is read through it. Its accesses would need no
//! ordering; they release and acquire so that a reader of the pid also sees what its writer did
//! before.

use super::cx::{BifResult, Cx, Fail};
use super::input::erts_internal;
use super::observers::connection_id;
use super::observers::hidden;
use super::observers::node_type;
use super::observers::visible;
use super::process::ext::{AliasMode, Hashing, RefKey};
use super::process::registry;
use super::report::{self, Level, Text};
use super::signals::spawn_request;
use super::signals::{self, Request};
use super::table::dist_data;
use super::table::net_kernel;
use super::table::{self, Controller, Node, State};
use super::{bifs, exports, flags, ids, input, lazy_atoms, observers, options, signal};
use purlin_io::port::channel::{self, Packet};
use purlin_native::long;
use purlin_native::reschedule::dirty_if_many;
use purlin_term::etf::decode;
use purlin_term::frag::OwnedTerm;
use purlin_term::layout::RefView;
use purlin_term::parts::{pid_parts, port_parts, ref_parts};
use purlin_term::print::{Style, format_atom, format_term};
use purlin_term::release::{self, PRIORITY_MESSAGES};
use purlin_term::{Alloc, NIL, Term, am, arith, atom, copy, map, node};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

lazy_atoms! {
    known = "known";
    this = "this";
    notalive = "notalive";
    allow_passive_connect = "allow_passive_connect";
    dmonitor_node = "dmonitor_node";
    spawn_opt = "spawn_opt";
    erts_dflags = "erts_dflags";
    dist_ctrlr = "dist_ctrlr";
    get_size = "get_size";
    no_network = "no_network";
    shutdown = "shutdown";
    net_kernel_terminated = "net_kernel_terminated";
    message = "message";
    reply_demonitor = "reply_demonitor";
    dist_ctrl_put_data = "dist_ctrl_put_data";
}

/// Whether an atom has the form of a node name: ASCII letters and digits, `-` and `_` before one
/// `@`, and anything behind it.
fn is_node_name(t: Term) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    t.is_atom()
        && atom::name(t).split_once('@').is_some_and(|(a, b)| {
            !a.is_empty() && a.bytes().all(fits) && !b.is_empty() && !b.contains('@')
        })
}

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

// Kinds of nodes that `nodes/1,2` can ask for, as bits.
const VISIBLE: u32 = 1;
const HIDDEN: u32 = 2;
const THIS: u32 = 4;
const IDLE: u32 = 8;

fn wanted(which: Term) -> Result<u32, Fail> {
    let one = |t: Term| {
        Ok(if t == known() {
            VISIBLE | HIDDEN | THIS | IDLE
        } else if t == this() {
            THIS
        } else if t == visible() {
            VISIBLE
        } else if t == hidden() {
            HIDDEN
        } else if t == am::CONNECTED {
            VISIBLE | HIDDEN
        } else {
            return Err(Fail::Badarg);
        })
    };
    if which.is_atom() {
        return one(which);
    }
    let mut bits = 0;
    let mut it = which.list_iter();
    for t in it.by_ref() {
        bits |= one(t)?;
    }
    match it.tail().is_nil() {
        true => Ok(bits),
        false => Err(Fail::Badarg),
    }
}

/// A node in the result.
struct Found {
    name: Term,
    kind: Term,
    connection: Option<u32>,
}

fn found(which: u32) -> Vec<Found> {
    let mut v: Vec<Found> = Vec::new();
    for n in table::all() {
        let i = n.inner();
        let (bit, kind) = match (i.state, i.flags & flags::PUBLISHED != 0) {
            (State::Connected, true) => (VISIBLE, visible()),
            (State::Connected, false) => (HIDDEN, hidden()),
            _ => (IDLE, known()),
        };
        if which & bit != 0 && i.is_known() {
            v.push(Found {
                name: n.name,
                kind,
                connection: (i.state == State::Connected).then_some(i.id),
            });
        }
    }
    if which & IDLE != 0 {
        // Nodes that only terms name. There may be any number of them.
        let mut names: HashSet<u64, Hashing> = v.iter().map(|f| f.name.raw()).collect();
        names.insert(node::this_name().raw());
        for (name, _, count) in node::all() {
            if count > 0 && names.insert(name.raw()) {
                v.push(Found {
                    name,
                    kind: known(),
                    connection: None,
                });
            }
        }
    }
    if which & THIS != 0 {
        v.push(Found {
            name: node::this_name(),
            kind: this(),
            connection: None,
        });
    }
    v
}

fn nodes_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let names: Vec<Term> = found(VISIBLE).into_iter().map(|n| n.name).collect();
    Ok(cx.list(&names))
}
fn nodes_1(cx: &mut Cx, [which]: [Term; 1]) -> BifResult {
    let names: Vec<Term> = found(wanted(which)?).into_iter().map(|n| n.name).collect();
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
    for n in found(which) {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        if id {
            keys.push(connection_id());
            let id = n.connection;
            values.push(id.map_or(am::UNDEFINED, |i| Term::small(i.into())));
        }
        if kind {
            keys.push(node_type());
            values.push(n.kind);
        }
        let info = cx.flatmap(&keys, &values);
        items.push(cx.tuple(&[n.name, info]));
    }
    Ok(cx.list(&items))
}

fn monitor(cx: &mut Cx, name: Term, flag: Term, options: Term) -> BifResult {
    let mut it = options.list_iter();
    let mut passive = false;
    let known_options = it.by_ref().all(|o| {
        passive = true;
        o == allow_passive_connect()
    });
    if !known_options || !it.tail().is_nil() {
        return Err(cx.badarg_cause(am::BADOPT));
    }
    if !name.is_atom() {
        return Err(Fail::Badarg);
    }
    if name != am::NONODE_AT_NOHOST && !ALIVE.get().map_or_else(node::is_alive, |f| f(cx)) {
        let f = cx.error(notalive());
        cx.exc.error_info = true;
        return Err(f);
    }
    let on = flag.as_bool().ok_or(Fail::Badarg)?;
    if name == node::this_name() {
        return Ok(am::TRUE);
    }
    if signals::watch_node(cx, name, on, !passive).is_some() {
        return Ok(am::TRUE);
    }
    // There is no connection; the rest is done in Erlang.
    let e = exports::export(am::ERLANG, dmonitor_node(), 3);
    Err(cx.trap(e, &[name, flag, options]))
}
/// Whether this node has a name, or is going to have one.
static ALIVE: OnceLock<fn(&mut Cx) -> bool> = OnceLock::new();

/// Sets the function that says whether this node has a name, or is going to have one.
pub fn set_alive(f: fn(&mut Cx) -> bool) {
    let _ = ALIVE.set(f);
}

fn monitor_node_2(cx: &mut Cx, [name, flag]: [Term; 2]) -> BifResult {
    monitor(cx, name, flag, NIL)
}
fn monitor_node_3(cx: &mut Cx, [name, flag, options]: [Term; 3]) -> BifResult {
    monitor(cx, name, flag, options)
}

/// The word of the process that the distribution lives and ends with, or 0.
static KEEPER: AtomicU64 = AtomicU64::new(0);

/// Marks a process whose end ends connections.
fn mark(cx: &mut Cx) {
    cx.process()
        .ext_mut()
        .remote
        .get_or_insert_default()
        .controls = true;
}

fn setnode_2(cx: &mut Cx, [name, creation]: [Term; 2]) -> BifResult {
    let creation = arith::to_u64(creation)
        .and_then(|c| u32::try_from(c).ok())
        .ok_or(Fail::Badarg)?;
    if !is_node_name(name) || name == am::NONODE_AT_NOHOST || node::is_alive() {
        return Err(Fail::Badarg);
    }
    let keeper = registry::whereis(net_kernel()).filter(|k| k.is_local_pid());
    let keeper = keeper.ok_or(Fail::Badarg)?;
    KEEPER.store(keeper.raw(), Ordering::Release);
    node::set_this(name, creation);
    observers::tell(observers::Event {
        up: true,
        name,
        connection: None,
        visible: true,
        reason: am::UNDEFINED,
    });
    if keeper == cx.self_pid() {
        mark(cx);
    } else {
        let task = |cx: Option<&mut Cx>| match cx {
            Some(cx) => mark(cx),
            None => all_down(am::NOPROC),
        };
        signal::send::run_in(keeper, Box::new(task));
    }
    Ok(am::TRUE)
}

/// Handles the end of a process that controls connections.
pub fn controller_ended(me: Term, reason: Term) {
    if KEEPER.load(Ordering::Acquire) == me.raw() {
        all_down(reason);
    }
    // A process under a supervisor ends "normally" with `{shutdown, Reason}`.
    let reason = match reason.as_tuple() {
        Some(&[tag, why]) if tag == shutdown() => why,
        _ => reason,
    };
    for n in table::all() {
        let id = {
            let i = n.inner();
            (i.controller == Controller::Process(me)).then_some(i.id)
        };
        if let Some(id) = id {
            n.down(id, reason);
        }
    }
}

/// Ends all connections: this node is no longer one.
fn all_down(reason: Term) {
    KEEPER.store(0, Ordering::Release);
    let reason = match reason {
        r if r == no_network() => r,
        _ => net_kernel_terminated(),
    };
    for n in table::all() {
        let (id, controller) = {
            let i = n.inner();
            (i.id, i.controller)
        };
        match controller {
            Controller::Nobody => n.down(id, am::NOCONNECTION),
            Controller::Port(p) => {
                if let Some(p) = super::port::find(p) {
                    let _ = super::port::exit(&p, p.id, reason);
                }
            }
            Controller::Process(p) => signal::send::exit_signal(p, p, reason),
        }
    }
    let name = node::this_name();
    node::set_this(am::NONODE_AT_NOHOST, 0);
    observers::tell(observers::Event {
        up: false,
        name,
        connection: None,
        visible: true,
        reason,
    });
}

fn get_creation_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    Ok(if node::is_alive() {
        cx.uint(node::this_creation().into())
    } else {
        am::UNDEFINED
    })
}

fn get_dflags_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let f = flags::of_release(options::current().otp.release);
    let numbers = [
        f.default,
        f.mandatory,
        f.addable,
        f.rejectable,
        f.strict_order,
    ];
    let n = numbers.map(|n| cx.uint(n));
    Ok(cx.tuple(&[erts_dflags(), n[0], n[1], n[2], n[3], n[4]]))
}

fn new_connection_1(cx: &mut Cx, [name]: [Term; 1]) -> BifResult {
    if !is_node_name(name) || name == node::this_name() {
        return Err(Fail::Badarg);
    }
    let n = table::get(name);
    let id = n.connection();
    Ok(n.handle(id, cx))
}

fn abort_pending_connection_2(_: &mut Cx, [name, handle]: [Term; 2]) -> BifResult {
    let (n, id) = table::of_handle(handle)
        .filter(|(n, _)| n.name == name)
        .ok_or(Fail::Badarg)?;
    Ok(Term::bool(n.abort(id)))
}

/// `erts_internal:create_dist_channel/3`, beneath `erlang:setnode/3`.
fn create_dist_channel_3(cx: &mut Cx, [name, controller, options]: [Term; 3]) -> BifResult {
    let keeper = KEEPER.load(Ordering::Acquire);
    let is_keeper = |k: Term| k.raw() == keeper;
    let Some(keeper) = registry::whereis(net_kernel()).filter(|&k| is_keeper(k)) else {
        return Ok(am::BADARG);
    };
    let Some(&[flags, creation]) = options.as_tuple() else {
        return Ok(am::BADARG);
    };
    let flags = arith::to_u64(flags);
    let creation = arith::to_u64(creation).and_then(|c| u32::try_from(c).ok());
    let fits = is_node_name(name) && name != node::this_name();
    let (true, Some(flags), Some(creation)) = (fits, flags, creation) else {
        return Ok(am::BADARG);
    };
    let me = cx.self_pid();
    let mandatory = flags::of_release(super::options::current().otp.release).mandatory;
    if !flags & mandatory != 0 {
        let text = format!(
            "{} attempted to enable connection to node {} which does not support all mandatory capabilities.\n",
            format_term(me, Style::Display, 100),
            format_atom(name, Style::Display)
        );
        let leader = super::process::group_leader_of(cx);
        report::send(Level::Error, leader, NIL, Text::Plain(&text));
        return Ok(am::BADARG);
    }
    let n = table::get(name);
    let tell = move |controller: Term| {
        signal::send_with(keeper, |a| a.tuple(&[dist_ctrlr(), controller, name, me]));
    };
    if controller.is_local_port() {
        return Ok(
            match n.connected(Controller::Port(controller), flags, creation, || {
                tell(controller)
            }) {
                Some(id) => {
                    let handle = n.handle(id, cx);
                    cx.tuple(&[am::OK, handle])
                }
                None => am::BADARG,
            },
        );
    }
    if !controller.is_local_pid() {
        return Ok(am::BADARG);
    }
    let enter = move |cx: &mut Cx, n: &Arc<Node>| {
        let is_one =
            (cx.process().ext()).is_some_and(|e| e.remote.as_ref().is_some_and(|r| r.controls));
        if is_one {
            return None;
        }
        mark(cx);
        let id = n.connected(Controller::Process(controller), flags, creation, || {
            tell(controller)
        });
        if id.is_none()
            && let Some(r) = cx.process().ext_mut().remote.as_mut()
        {
            r.controls = false;
        }
        id
    };
    if controller == me {
        return Ok(match enter(cx, &n) {
            Some(id) => {
                let handle = n.handle(id, cx);
                cx.tuple(&[am::OK, handle])
            }
            None => am::BADARG,
        });
    }
    let r = ids::make_ref(cx);
    let told = OwnedTerm::copy_of(r);
    let task = move |cx: Option<&mut Cx>| {
        let id = cx.and_then(|cx| enter(cx, &n));
        signal::send_with(me, |a| {
            let r = copy::copy(told.term(), a);
            let answer = id.map_or(am::BADARG, |id| n.handle(id, a));
            a.tuple(&[r, answer])
        });
    };
    signal::send::run_in(controller, Box::new(task));
    Ok(cx.tuple(&[message(), r]))
}

/// The connection of a handle, if the running process controls it.
fn controlled(cx: &mut Cx, handle: Term) -> Result<(Arc<Node>, u32), Fail> {
    let me = cx.self_pid();
    let controls =
        (cx.process().ext()).is_some_and(|e| e.remote.as_ref().is_some_and(|r| r.controls));
    if !controls {
        return Err(Fail::Notsup);
    }
    let (n, id) = table::of_handle(handle).ok_or(Fail::Badarg)?;
    let own = {
        let i = n.inner();
        i.controller == Controller::Process(me) && i.id == id
    };
    match own {
        true => Ok((n, id)),
        false => Err(Fail::Badarg),
    }
}

fn dist_ctrl_input_handler_2(cx: &mut Cx, [handle, pid]: [Term; 2]) -> BifResult {
    let (n, _) = controlled(cx, handle)?;
    if !pid.is_local_pid() {
        return Err(Fail::Badarg);
    }
    n.inner().input_handler = pid;
    Ok(am::OK)
}

fn dist_ctrl_put_data_2(cx: &mut Cx, [handle, data]: [Term; 2]) -> BifResult {
    let bytes = match data.as_bits() {
        Some(_) => data.as_binary().ok_or(Fail::Badarg)?,
        None if data.is_nil() => Default::default(),
        None if data.is_list_ptr() => {
            // Converted to a binary in Erlang, which may take long.
            let e = exports::export(erts_internal(), dist_ctrl_put_data(), 2);
            return Err(cx.trap(e, &[handle, data]));
        }
        None => return Err(Fail::Badarg),
    };
    let (n, id) = table::of_handle(handle).ok_or(Fail::Badarg)?;
    {
        let mut i = n.inner();
        if i.input_handler != cx.self_pid() {
            return Err(Fail::Notsup);
        }
        i.received += 1;
    }
    if !input::packet(&n, id, &bytes) {
        n.kill(id);
    }
    cx.bump(5 + bytes.len() / 64);
    Ok(am::OK)
}

/// The parts of a packet as a list of binaries.
fn parts(cx: &mut Cx, p: &Packet) -> Term {
    let v: Vec<Term> = p.iter().map(|p| p.to_term(cx)).collect();
    cx.list(&v)
}

fn dist_ctrl_get_data_1(cx: &mut Cx, [handle]: [Term; 1]) -> BifResult {
    let (n, id) = controlled(cx, handle)?;
    let Some(p) = n.next(id) else {
        return Ok(am::NONE);
    };
    let sized = n.inner().get_size;
    let list = parts(cx, &p);
    if !sized {
        return Ok(list);
    }
    let size: usize = p.iter().map(|p| p.len()).sum();
    Ok(cx.tuple(&[Term::small(size as i64), list]))
}

fn dist_ctrl_get_data_notification_1(cx: &mut Cx, [handle]: [Term; 1]) -> BifResult {
    let (n, _) = controlled(cx, handle)?;
    let now = {
        let mut i = n.inner();
        let now = !i.out.notify && !i.out.is_empty();
        i.out.notify = !now;
        now
    };
    if now {
        let me = cx.self_pid();
        signal::send(me, dist_data());
    }
    Ok(am::OK)
}

fn dist_ctrl_set_opt_3(cx: &mut Cx, [handle, option, value]: [Term; 3]) -> BifResult {
    let (n, _) = controlled(cx, handle)?;
    if option != get_size() {
        return Err(Fail::Badarg);
    }
    let on = value.as_bool().ok_or(Fail::Badarg)?;
    let before = std::mem::replace(&mut n.inner().get_size, on);
    Ok(Term::bool(before))
}
fn dist_ctrl_get_opt_2(cx: &mut Cx, [handle, option]: [Term; 2]) -> BifResult {
    let (n, _) = controlled(cx, handle)?;
    if option != get_size() {
        return Err(Fail::Badarg);
    }
    let on = n.inner().get_size;
    Ok(Term::bool(on))
}

fn dist_get_stat_1(cx: &mut Cx, [handle]: [Term; 1]) -> BifResult {
    let (n, id) = table::of_handle(handle).ok_or(Fail::Badarg)?;
    let numbers = {
        let i = n.inner();
        if i.id != id {
            return Err(Fail::Badarg);
        }
        [i.received, i.out.packets, i.out.bytes() as u64]
    };
    let t = numbers.map(|n| cx.uint(n));
    Ok(cx.tuple(&[am::OK, t[0], t[1], t[2]]))
}

/// `system_info(dist_ctrl)`: node and controller of each connection.
pub fn controllers(cx: &mut Cx) -> Term {
    let mut v = Vec::new();
    for n in table::all() {
        let controller = n.inner().controller.term();
        if let Some(c) = controller {
            v.push(cx.tuple(&[n.name, c]));
        }
    }
    cx.list(&v)
}

fn dflag_unicode_io_1(_: &mut Cx, [pid]: [Term; 1]) -> BifResult {
    if !pid.is_pid() {
        return Err(Fail::Badarg);
    }
    let Some(name) = signals::node_of(pid) else {
        return Ok(am::TRUE);
    };
    let can = table::find(name).is_some_and(|n| n.inner().flags & flags::UNICODE_IO != 0);
    Ok(Term::bool(can))
}

/// The options of `spawn_request` and `spawn_opt` that concern this node.
struct Asked {
    tag: Term,
    on_success: bool,
    on_error: bool,
    link: bool,
    monitor: Option<(AliasMode, Option<Box<OwnedTerm>>)>,
    /// Whether signals of the link and of the monitor have priority.
    urgent: (bool, bool),
    bad: bool,
    /// The options for the other node.
    sent: Vec<Term>,
}

/// Whether the signals of a link have priority.
fn link_options(l: Term) -> Option<bool> {
    let mut it = l.list_iter();
    let known = it.by_ref().all(|o| o == am::PRIORITY);
    (known && it.tail().is_nil()).then_some(l.is_list_ptr())
}

/// Alias mode and tag of a monitor.
fn monitor_options(l: Term, urgent: &mut bool) -> Option<(AliasMode, Option<Box<OwnedTerm>>)> {
    let (mut alias, mut tag) = (AliasMode::None, None);
    let mut it = l.list_iter();
    for o in it.by_ref() {
        if o == am::PRIORITY && release::has(PRIORITY_MESSAGES) {
            *urgent = true;
            continue;
        }
        let &[k, v] = o.as_tuple()? else { return None };
        if k == am::TAG {
            tag = Some(Box::new(OwnedTerm::copy_of(v)));
            continue;
        }
        alias = match v {
            _ if k != am::ALIAS => return None,
            v if v == am::EXPLICIT_UNALIAS => AliasMode::Explicit,
            v if v == am::DEMONITOR => AliasMode::Demonitor,
            v if v == reply_demonitor() => AliasMode::ReplyDemonitor,
            _ => return None,
        };
    }
    it.tail().is_nil().then_some((alias, tag))
}

/// Parses the options. None if the term is no proper list.
fn asked(list: Term, call: bool) -> Option<Asked> {
    let mut a = Asked {
        tag: am::SPAWN_REPLY,
        on_success: true,
        on_error: true,
        link: false,
        monitor: None,
        urgent: (false, false),
        bad: false,
        sent: Vec::new(),
    };
    let mut it = list.list_iter();
    for o in it.by_ref() {
        if o == am::MONITOR {
            a.monitor = Some((AliasMode::None, None));
            a.sent.push(am::MONITOR);
            continue;
        }
        if o == am::LINK {
            a.link = true;
            a.sent.push(am::LINK);
            continue;
        }
        let Some(&[key, value]) = o.as_tuple() else {
            a.bad |= !o.is_atom();
            a.sent.push(o);
            continue;
        };
        let word = |t: Term| if t.is_atom() { atom::name(t) } else { "" };
        match (word(key), word(value)) {
            ("reply_tag", _) if !call => a.tag = value,
            ("reply", "yes") if !call => (a.on_success, a.on_error) = (true, true),
            ("reply", "no") if !call => (a.on_success, a.on_error) = (false, false),
            ("reply", "error_only") if !call => (a.on_success, a.on_error) = (false, true),
            ("reply", "success_only") if !call => (a.on_success, a.on_error) = (true, false),
            ("reply" | "reply_tag" | "", _) => a.bad = true,
            ("monitor", _) => match monitor_options(value, &mut a.urgent.1) {
                Some(m) => {
                    a.monitor = Some(m);
                    a.sent.push(am::MONITOR);
                }
                None => a.bad = true,
            },
            ("link", _) if release::has(PRIORITY_MESSAGES) => match link_options(value) {
                Some(urgent) => {
                    (a.link, a.urgent.0) = (true, urgent);
                    a.sent.push(am::LINK);
                }
                None => a.bad = true,
            },
            // Only the other node can judge the rest.
            _ => a.sent.push(o),
        }
    }
    it.tail().is_nil().then_some(a)
}

/// `erts_internal:dist_spawn_request/4`
fn dist_spawn_request_4(cx: &mut Cx, [name, asked_for, options, how]: [Term; 4]) -> BifResult {
    let mfa = match asked_for.as_tuple() {
        Some(&[m, f, args]) => {
            let mut it = args.list_iter();
            it.by_ref().for_each(drop);
            (m.is_atom() && f.is_atom() && it.tail().is_nil()).then_some([m, f, args])
        }
        _ => None,
    };
    let call = how == spawn_opt();
    let (Some(mfa), true, true) = (mfa, name.is_atom(), call || how == spawn_request()) else {
        return Ok(am::BADARG);
    };
    dirty_if_many(
        cx,
        long!("erts_internal":"dist_spawn_request"/4).call(&[name, asked_for, options, how]),
        mfa[2],
    )?;
    let Some(a) = asked(options, call) else {
        return Ok(am::BADARG);
    };
    let monitored = a.monitor.is_some();
    let key = RefKey::new(ids::ref_bits());
    let plain = a.monitor.as_ref().is_none_or(|m| m.0 == AliasMode::None);
    let r = if plain {
        cx.local_ref(key.numbers())
    } else {
        let me = cx.self_pid();
        cx.pid_ref(key.numbers(), me)
    };
    if a.bad {
        if a.on_error {
            let message = cx.tuple(&[a.tag, r, am::ERROR, am::BADOPT]);
            let me = cx.self_pid();
            signal::send(me, message);
        }
    } else {
        let options = cx.list(&a.sent);
        let q = Request {
            key,
            reference: r,
            mfa,
            options,
            tag: a.tag,
            on_success: a.on_success,
            on_error: a.on_error,
            link: a.link,
            monitor: a.monitor,
            urgent: a.urgent,
        };
        signals::spawn(cx, name, q)?;
    }
    if call {
        return Ok(cx.tuple(&[r, Term::bool(monitored)]));
    }
    Ok(r)
}

fn spawn_request_abandon_1(cx: &mut Cx, [r]: [Term; 1]) -> BifResult {
    if r.as_ref_view().is_none() {
        return Err(Fail::Badarg);
    }
    // Requests to this node are answered at once, so there is never one to abandon.
    let waits = RefKey::of(r).is_some_and(|k| signals::abandon(cx, k));
    Ok(Term::bool(waits))
}

/// `process_flag(monitor_nodes | {monitor_nodes, Options}, Bool)`
pub fn monitor_nodes(cx: &mut Cx, flag: Term, value: Term) -> BifResult {
    observers::observe(cx, flag, value)
}

/// `erts_debug:dist_ext_to_term/2`: decodes a term that refers to atoms of a tuple, as to those of
/// a header.
fn dist_ext_to_term_2(cx: &mut Cx, [atoms, bytes]: [Term; 2]) -> BifResult {
    let atoms = atoms.as_tuple().filter(|t| t.iter().all(|a| a.is_atom()));
    let (Some(atoms), Some(bytes)) = (atoms, bytes.as_binary()) else {
        return Err(Fail::Badarg);
    };
    let options = decode::Options {
        atom_cache: atoms,
        ..Default::default()
    };
    decode::decode(&bytes, cx, &exports::CodeHooks, options)
        .map(|(t, _)| t)
        .map_err(|_| Fail::Badarg)
}

/// The port or process that carries the connection to a node.
pub fn controller_of(name: Term) -> Option<Term> {
    table::find(name)?.inner().controller.term()
}

/// The number of the present or last connection to a node. None if the node is unknown.
pub fn connection_of(name: Term) -> Option<u32> {
    Some(table::find(name)?.inner().id)
}

/// Name and creation of the connected node with this number, as it stands in texts of pids.
pub fn connected_by_number(number: u64) -> Option<(Term, u32)> {
    let index = u32::try_from(number).ok().filter(|n| *n < atom::made())?;
    let n = table::find(Term::atom(index))?;
    let i = n.inner();
    (i.state == table::State::Connected).then_some((n.name, i.creation))
}

/// Kills the connection to a node, for tests. Returns false if there is none.
pub fn kill_connection(name: Term) -> bool {
    let Some(n) = table::find(name) else {
        return false;
    };
    let (id, controller) = {
        let i = n.inner();
        (i.id, i.controller)
    };
    match controller {
        Controller::Nobody => return false,
        Controller::Port(p) => channel::kill(p),
        Controller::Process(_) => n.kill(id),
    }
    true
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
    Plain "erlang":"dist_get_stat"/1 = dist_get_stat_1;
    Plain "erlang":"dist_ctrl_get_data"/1 = dist_ctrl_get_data_1;
    Plain "erlang":"dist_ctrl_input_handler"/2 = dist_ctrl_input_handler_2;
    Plain "erlang":"dist_ctrl_put_data"/2 = dist_ctrl_put_data_2;
    Plain "erlang":"dist_ctrl_get_data_notification"/1 = dist_ctrl_get_data_notification_1;
    Plain "erlang":"dist_ctrl_get_opt"/2 = dist_ctrl_get_opt_2;
    Plain "erlang":"dist_ctrl_set_opt"/3 = dist_ctrl_set_opt_3;
    Plain "erlang":"spawn_request_abandon"/1 = spawn_request_abandon_1 [writes(Cell)];
    Plain "erts_debug":"dist_ext_to_term"/2 = dist_ext_to_term_2;
    Plain "erts_internal":"create_dist_channel"/3 = create_dist_channel_3 [writes(All) outside(Node)];
    Plain "erts_internal":"dist_spawn_request"/4 = dist_spawn_request_4 [long];
    Plain "erts_internal":"get_creation"/0 = get_creation_0;
    Plain "erts_internal":"get_dflags"/0 = get_dflags_0;
    Plain "erts_internal":"new_connection"/1 = new_connection_1;
    Plain "erts_internal":"abort_pending_connection"/2 = abort_pending_connection_2;
    Plain "net_kernel":"dflag_unicode_io"/1 = dflag_unicode_io_1;
}
