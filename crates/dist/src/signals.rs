//! Signals across nodes: the sender's side, and the ties of a process to other nodes.
//!
//! Everything here runs in the process whose ties it is about. A request of another node to a
//! process reaches it as a task.

use super::control::{Arg, Payload, altact, frame, frame_before, op};
use super::cx::{BifResult, Cx, Fail};
use super::frame::Frame;
use super::observers::nodedown;
use super::process::Process;
use super::process::ext::{AliasMode, Monitor, RefKey};
use super::process::remote::{Link, NodeWatch, Remote, RemotePid, Spawn, Watched};
use super::signal::send::{self, How, Sent};
use super::signal::token::{self, Token};
use super::signal::{Kind, Signal, handle};
use super::table::{self, Node, Ready};
use super::{events, flags, ids, lazy_atoms, process};
use purlin_native::reschedule::{Long, dirty_if_many};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::layout::RefView;
use purlin_term::{Alloc, NIL, Term, am, copy, node};
use std::sync::Arc;

lazy_atoms! {
    abandoned = "abandoned";
    pub(crate) spawn_request = "spawn_request";
}

/// The name of the node of a pid, a reference or `{Name, Node}`.
pub fn node_of(t: Term) -> Option<Term> {
    if let Some((n, _)) = t.as_external() {
        return Some(n.name);
    }
    match (t.as_ref_view(), t.as_tuple()) {
        (Some(RefView::External { node, .. }), _) => Some(node.name),
        (_, Some(&[_, n])) => Some(n),
        _ => None,
    }
}

/// A connection to that node, begun if there is none. Waits (`Fail::Wait`) if it is busy, unless
/// the process is asynchronous. None if there cannot be a connection.
fn to_node(cx: &mut Cx, name: Term) -> Result<Option<(Arc<Node>, Ready)>, Fail> {
    if name == node::this_name() {
        // An earlier incarnation of this node.
        return Ok(None);
    }
    let n = table::get(name);
    has_room(cx, &n)?;
    Ok(n.ready(true).map(|r| (n, r)))
}

/// Waits (`Fail::Wait`) if the connection to that node is busy, unless the process is asynchronous.
fn has_room(cx: &mut Cx, n: &Node) -> Result<(), Fail> {
    let waits = !cx.process().is_async_dist();
    let me = cx.self_pid();
    let busy = waits && n.is_busy(Some(me));
    if busy {
        events::sink().waits_for_connection(me, controller(n));
    }
    cx.process().set_flag(process::BUSY, busy);
    match busy {
        true => Err(Fail::Wait),
        false => Ok(()),
    }
}

/// As [`has_room`], for a connection with a tie to be removed. If the connection has ended, there
/// is nothing to wait for.
fn has_room_on(cx: &mut Cx, name: Term, connection: u32) -> Result<(), Fail> {
    let n = table::get(name);
    match n.ready(false).filter(|r| r.id == connection) {
        Some(_) => has_room(cx, &n),
        None => {
            cx.process().set_flag(process::BUSY, false);
            Ok(())
        }
    }
}

fn controller(n: &Node) -> Term {
    n.inner().controller.term().unwrap_or(am::UNDEFINED)
}

fn remote(cx: &mut Cx) -> &mut Remote {
    cx.process().ext_mut().remote.get_or_insert_default()
}

/// The ties of the process to other nodes, if it has any.
fn known_ties(cx: &mut Cx) -> Option<&mut Remote> {
    cx.process().ext()?.rare()?.remote.as_deref_mut()
}

/// Enters the running process into the set of ties of a connection. Returns false if the connection
/// is gone.
fn tie(cx: &mut Cx, n: &Node, id: u32) -> bool {
    let there = n.tie(id, cx.self_pid());
    if there {
        remote(cx).set_tied(n.name, id);
    }
    there
}

/// Records that another node has entered the running process into the set of ties of that
/// connection.
pub fn was_tied(cx: &mut Cx, n: &Node, id: u32) {
    remote(cx).set_tied(n.name, id);
}

/// Number of encoded bytes per reduction.
const REDUCTION_BYTES: usize = 64;

/// The natives that send a message on a dirty thread if it is large.
pub struct SendNatives {
    pub send: Long<2>,
    pub send_with_options: Long<3>,
}

/// Sends a message to a process or alias of another node. Waits (`Fail::Wait`) while the connection
/// is busy.
pub fn message(
    cx: &mut Cx,
    to: Term,
    msg: Term,
    how: How,
    send: &SendNatives,
) -> Result<Sent, Fail> {
    let Some(name) = node_of(to) else {
        return Ok(Sent::Nowhere);
    };
    let n = table::get(name);
    let me = cx.self_pid();
    if !cx.process().is_async_dist() && n.is_busy((!how.no_suspend).then_some(me)) {
        if how.no_suspend {
            return Ok(Sent::Busy);
        }
        events::sink().waits_for_connection(me, controller(&n));
        cx.process().set_flag(process::BUSY, true);
        return Err(Fail::Wait);
    }
    cx.process().set_flag(process::BUSY, false);
    let Some(r) = n.ready(!how.no_connect) else {
        return Ok(if how.no_connect {
            Sent::NotConnected
        } else {
            Sent::Nowhere
        });
    };
    match how.options {
        None => dirty_if_many(cx, send.send.call(&[to, msg]), msg)?,
        Some(o) => dirty_if_many(cx, send.send_with_options.call(&[to, msg, o]), msg)?,
    }
    let mut place = Fragment::new();
    let mut told = None;
    if cx.process().has(process::SEQUENTIAL) {
        let t = token::sending(cx.process(), to, msg);
        told = t.filter(|t| r.can_take(t)).map(|t| t.term(&mut place));
    }
    let (code, mut args): (u8, Vec<Arg>) = if to.is_pid() {
        match (r.can(flags::SEND_SENDER), told) {
            (true, None) => (op::SEND_SENDER, vec![me.into(), to.into()]),
            (true, Some(_)) => (op::SEND_SENDER_TT, vec![me.into(), to.into()]),
            (false, None) => (op::SEND, vec![Arg::Unused, to.into()]),
            (false, Some(_)) => (op::SEND_TT, vec![Arg::Unused, to.into()]),
        }
    } else if let Some(&[to, _]) = to.as_tuple() {
        let code = told.map_or(op::REG_SEND, |_| op::REG_SEND_TT);
        (code, vec![me.into(), Arg::Unused, to.into()])
    } else if r.can(flags::ALTACT_SIG) {
        let mut how_to = altact::ALIAS;
        for (bit, wanted) in [
            (altact::PRIORITY, how.urgent),
            (altact::TOKEN, told.is_some()),
        ] {
            how_to |= if wanted { bit } else { 0 };
        }
        let args = vec![Arg::Number(how_to), me.into(), to.into()];
        (op::ALTACT_SIG_SEND, args)
    } else if r.can(flags::ALIAS) {
        let code = told.map_or(op::ALIAS_SEND, |_| op::ALIAS_SEND_TT);
        (code, vec![me.into(), to.into()])
    } else {
        return Ok(Sent::Nowhere);
    };
    args.extend(told.map(Arg::from));
    let f = frame(code, &args, Some(msg), r.cached(), me.raw());
    drop(OwnedTerm::from_parts(told.unwrap_or(NIL), place));
    if f.is_too_large() {
        return Err(Fail::SystemLimit);
    }
    cx.bump(f.len() / REDUCTION_BYTES);
    n.send(r.id, f);
    Ok(Sent::Done)
}

/// The signal of a message, by an alias if given, with its token. `from` is the sending node, for
/// those who trace messages by sender.
pub fn signal_of(
    from: Option<Term>,
    alias: Option<&OwnedTerm>,
    token: Option<&Token>,
    msg: Term,
) -> *mut Signal {
    let from = from.filter(|_| events::by_sender());
    let s = match (alias, token, from) {
        (a, Some(t), from) => return Signal::with_token(a.map(OwnedTerm::term), t, from, msg),
        (a, None, Some(from)) => Signal::sent(a.map(OwnedTerm::term), from, msg),
        (None, None, None) => Signal::copy_of(Kind::Message, msg),
        (Some(a), None, None) => Signal::pair_of(Kind::AliasMessage, a.term(), msg),
    };
    // SAFETY: a fresh signal.
    unsafe { (*s).end_sequel() };
    s
}

/// `link/1,2` to a process of another node. An existing link gets or loses its priority (`urgent`).
pub fn link(cx: &mut Cx, to: Term, urgent: bool) -> BifResult {
    let me = cx.self_pid();
    let Some(key) = RemotePid::of(to) else {
        return Err(Fail::Badarg);
    };
    let there = known_ties(cx).and_then(|r| r.links.get_mut(&key));
    if let Some(l) = there.filter(|l| l.unlinking == 0) {
        l.urgent = urgent;
        return Ok(am::TRUE);
    }
    let over = to_node(cx, key.node.name)?;
    let Some((n, r)) = over.filter(|(n, r)| tie(cx, n, r.id)) else {
        return no_connection(cx, to);
    };
    let connection = r.id;
    let l = Link {
        unlinking: 0,
        connection,
        urgent,
    };
    remote(cx).links.insert(key, l);
    let f = frame(
        op::LINK,
        &[me.into(), to.into()],
        None,
        r.cached(),
        me.raw(),
    );
    // If the connection has ended meanwhile, the process learns of it by its tie.
    n.send(r.id, f);
    events::tie(cx.process(), events::Tie::Link, to);
    Ok(am::TRUE)
}

/// Sends the exit signal of a link that cannot be made.
fn no_connection(cx: &mut Cx, to: Term) -> BifResult {
    let me = cx.self_pid();
    let own = OwnedTerm::copy_of(to);
    send::exit_signal(own.term(), me, am::NOCONNECTION);
    Ok(am::TRUE)
}

/// `unlink/1` of a process of another node.
pub fn unlink(cx: &mut Cx, to: Term) -> BifResult {
    let me = cx.self_pid();
    let Some(key) = RemotePid::of(to) else {
        return Err(Fail::Badarg);
    };
    let id = ids::unique() + 1;
    cx.process().set_flag(process::BUSY, false);
    let link = known_ties(cx).and_then(|r| r.links.get(&key));
    let active = link.filter(|l| l.unlinking == 0);
    let Some(connection) = active.map(|l| l.connection) else {
        return Ok(am::TRUE);
    };
    has_room_on(cx, key.node.name, connection)?;
    if let Some(l) = known_ties(cx).and_then(|r| r.links.get_mut(&key)) {
        l.unlinking = id;
    }
    events::tie(cx.process(), events::Tie::Unlink, to);
    let n = table::get(key.node.name);
    if let Some(r) = n.ready(false).filter(|r| r.id == connection) {
        if r.can(flags::UNLINK_ID) {
            let args = [Arg::Number(id), me.into(), to.into()];
            n.send(
                r.id,
                frame(op::UNLINK_ID, &args, None, r.cached(), me.raw()),
            );
            return Ok(am::TRUE);
        }
        let args = [me.into(), to.into()];
        n.send(r.id, frame(op::UNLINK, &args, None, r.cached(), me.raw()));
    }
    // No acknowledgement will come.
    if let Some(r) = known_ties(cx) {
        r.links.remove(&key);
    }
    Ok(am::TRUE)
}

/// `exit/2`, which is the native, to a process of another node.
pub fn exit(cx: &mut Cx, to: Term, reason: Term, native: Long<2>) -> BifResult {
    let me = cx.self_pid();
    let Some(name) = node_of(to) else {
        return Err(Fail::Badarg);
    };
    if let Some((n, r)) = to_node(cx, name)? {
        dirty_if_many(cx, native.call(&[to, reason]), reason)?;
        let args = [me.into(), to.into()];
        let f = Why::once(reason).frame(&r, [op::EXIT2, op::PAYLOAD_EXIT2], &args, me);
        if f.is_too_large() {
            return Err(Fail::SystemLimit);
        }
        cx.bump(f.len() / REDUCTION_BYTES);
        n.send(r.id, f);
    }
    Ok(am::TRUE)
}

/// `exit/2,3` by an alias of another node; `native` is `exit/3`. A node that does not support that
/// is sent nothing.
pub fn exit_by_alias(
    cx: &mut Cx,
    alias: Term,
    reason: Term,
    urgent: bool,
    native: Long<3>,
) -> BifResult {
    let me = cx.self_pid();
    let Some(name) = node_of(alias) else {
        return Err(Fail::Badarg);
    };
    let over = to_node(cx, name)?.filter(|(_, r)| r.can(flags::ALTACT_SIG));
    if let Some((n, r)) = over {
        let priority = match urgent {
            true => cx.list(&[am::PRIORITY]),
            false => NIL,
        };
        dirty_if_many(cx, native.call(&[alias, reason, priority]), reason)?;
        let how = altact::ALIAS | altact::EXIT | if urgent { altact::PRIORITY } else { 0 };
        let args = [Arg::Number(how), me.into(), alias.into()];
        let f = frame(
            op::ALTACT_SIG_SEND,
            &args,
            Some(reason),
            r.cached(),
            me.raw(),
        );
        if f.is_too_large() {
            return Err(Fail::SystemLimit);
        }
        cx.bump(f.len() / REDUCTION_BYTES);
        n.send(r.id, f);
    }
    Ok(am::TRUE)
}

/// An exit reason to send.
struct Why {
    term: Term,
    /// The reason in encoded form, without the atom cache and with it, if it is sent several times.
    encoded: Option<[Option<Payload>; 2]>,
}

impl Why {
    /// For a single recipient.
    fn once(term: Term) -> Why {
        Why {
            term,
            encoded: None,
        }
    }
    fn often(term: Term) -> Why {
        Why {
            term,
            encoded: (!term.is_immed()).then_some([None, None]),
        }
    }
    /// A control message with the reason as its last element or as its payload.
    fn frame(&mut self, r: &Ready, code: [u8; 2], args: &[Arg], sender: Term) -> Frame {
        let cached = r.cached();
        if !r.can(flags::EXIT_PAYLOAD) {
            let mut args = args.to_vec();
            args.push(self.term.into());
            return frame(code[0], &args, None, cached, sender.raw());
        }
        match &mut self.encoded {
            None => frame(code[1], args, Some(self.term), cached, sender.raw()),
            Some(e) => {
                let p =
                    &*e[usize::from(cached)].get_or_insert_with(|| Payload::new(self.term, cached));
                frame_before(code[1], args, p, cached, sender.raw())
            }
        }
    }
}

/// Tells a process of another node that its link with `from` broke.
pub fn send_link_exit(connection: u32, from: Term, to: &RemotePid, reason: Term) {
    link_exit(connection, from, to, &mut Why::once(reason), None);
}

/// As [`send_link_exit`], with a token.
fn link_exit(connection: u32, from: Term, to: &RemotePid, why: &mut Why, token: Option<OwnedTerm>) {
    let n = table::get(to.node.name);
    if let Some(r) = n.ready(false).filter(|r| r.id == connection) {
        let to = to.owned();
        let mut args: Vec<Arg> = vec![from.into(), to.term().into()];
        let mut code = [op::EXIT, op::PAYLOAD_EXIT];
        let fits = |t: &&OwnedTerm| Token::of_term(t.term()).is_some_and(|t| r.can_take(&t));
        if let Some(t) = token.as_ref().filter(fits) {
            args.push(t.term().into());
            code = [op::EXIT_TT, op::PAYLOAD_EXIT_TT];
        }
        let f = why.frame(&r, code, &args, from);
        n.send(r.id, f);
    }
}

/// The token of the exit signal of an ending process that has one of sequential tracing.
fn ending(p: &mut Process, me: Term, to: &RemotePid, reason: Term) -> Option<OwnedTerm> {
    if !p.has(process::SEQUENTIAL) {
        return None;
    }
    let mut f = Fragment::new();
    let copied = copy::copy(reason, &mut f);
    let msg = f.tuple(&[am::EXIT_UC, me, copied]);
    let msg = OwnedTerm::from_parts(msg, f);
    let t = token::ending_far(p, me, to.owned().term(), msg.term())?;
    let mut f = Fragment::new();
    let term = t.term(&mut f);
    Some(OwnedTerm::from_parts(term, f))
}

/// Tells a process of another node that its monitor's target has ended. `sender`: the process whose
/// messages it follows.
pub fn send_down(
    connection: u32,
    watched: Term,
    by: Term,
    reference: Term,
    reason: Term,
    sender: Term,
) {
    let why = &mut Why::once(reason);
    down(connection, watched, by, reference, why, sender);
}

fn down(connection: u32, watched: Term, by: Term, reference: Term, why: &mut Why, sender: Term) {
    let Some(name) = node_of(by) else { return };
    let n = table::get(name);
    let told = |r: &Ready| r.id == connection && r.can_all(flags::MONITORS);
    if let Some(r) = n.ready(false).filter(told) {
        let args = [watched.into(), by.into(), reference.into()];
        let code = [op::MONITOR_P_EXIT, op::PAYLOAD_MONITOR_P_EXIT];
        let f = why.frame(&r, code, &args, sender);
        n.send(r.id, f);
    }
}

/// Waits (`Fail::Wait`) before a demonitor if the target's connection is busy.
pub fn before_demonitor(cx: &mut Cx, w: &Watched) -> Result<(), Fail> {
    match node_of(w.object.term()) {
        Some(name) => has_room_on(cx, name, w.connection),
        None => Ok(()),
    }
}

/// Tells another node that the process `me` no longer monitors something there.
pub fn demonitor(me: Term, w: &Watched) {
    let object = w.object.term();
    let Some(name) = node_of(object) else { return };
    let n = table::get(name);
    let told = |r: &Ready| r.id == w.connection && r.can_all(flags::MONITORS);
    if let Some(r) = n.ready(false).filter(told) {
        let object = match object.as_tuple() {
            Some(&[registered, _]) => registered,
            _ => object,
        };
        let args = [me.into(), object.into(), w.reference.term().into()];
        let f = frame(op::DEMONITOR_P, &args, None, r.cached(), me.raw());
        n.send(r.id, f);
    }
}

/// `monitor/2,3` of a process of another node, a pid or `{Name, Node}`. `r` is the reference, and
/// `k` its key.
pub fn monitor(
    cx: &mut Cx,
    what: Term,
    (k, r): (RefKey, Term),
    alias: AliasMode,
    tag: Option<Box<OwnedTerm>>,
) -> BifResult {
    let me = cx.self_pid();
    let Some(name) = node_of(what) else {
        return Err(Fail::Badarg);
    };
    let over = to_node(cx, name)?.filter(|(n, ready)| tie(cx, n, ready.id));
    let connection = over.as_ref().map_or(0, |o| o.1.id);
    let watched = Watched {
        object: OwnedTerm::copy_of(what),
        reference: OwnedTerm::copy_of(r),
        connection,
    };
    let m = Monitor::remote(watched, alias, tag);
    cx.process().ext_mut().monitors.insert(k, m);
    let registered = what.as_tuple().map(|t| t[0]);
    match over {
        None => send::monitor_down(me, r, am::PROCESS, what, am::NOCONNECTION),
        Some((n, ready)) if ready.can_all(flags::MONITORS) => {
            let args = [me.into(), registered.unwrap_or(what).into(), r.into()];
            let f = frame(op::MONITOR_P, &args, None, ready.cached(), me.raw());
            n.send(ready.id, f);
        }
        // A node without monitors: the end of the connection is reported.
        Some(_) => {}
    }
    Ok(r)
}

/// `group_leader/2` for a process of another node.
pub fn group_leader(cx: &mut Cx, leader: Term, of: Term) -> BifResult {
    let me = cx.self_pid();
    let Some(name) = node_of(of) else {
        return Ok(am::BADARG);
    };
    if let Some((n, r)) = to_node(cx, name)? {
        let args = [leader.into(), of.into()];
        let f = frame(op::GROUP_LEADER, &args, None, r.cached(), me.raw());
        n.send(r.id, f);
    }
    Ok(am::TRUE)
}

/// `monitor_node/2,3`. None if there is no connection, and `connect` is false or none can be made.
pub fn watch_node(cx: &mut Cx, name: Term, on: bool, connect: bool) -> Option<()> {
    if !on {
        if let Some(r) = known_ties(cx)
            && let Some(i) = r.nodes.iter().rposition(|w| w.name == name)
        {
            r.nodes[i].count -= 1;
            if r.nodes[i].count == 0 {
                r.nodes.remove(i);
            }
        }
        return Some(());
    }
    let n = table::get(name);
    let r = n.ready(connect).filter(|r| tie(cx, &n, r.id))?;
    let nodes = &mut remote(cx).nodes;
    let same = |w: &&mut NodeWatch| w.name == name && w.connection == r.id;
    match nodes.iter_mut().find(same) {
        Some(w) => w.count += 1,
        None => nodes.push(NodeWatch {
            name,
            connection: r.id,
            count: 1,
        }),
    }
    Some(())
}

/// The request of `spawn_request` and `spawn_opt` to another node.
pub struct Request {
    pub key: RefKey,
    pub reference: Term,
    /// Module, function and arguments.
    pub mfa: [Term; 3],
    pub options: Term,
    pub tag: Term,
    pub on_success: bool,
    pub on_error: bool,
    pub link: bool,
    pub monitor: Option<(AliasMode, Option<Box<OwnedTerm>>)>,
    /// Whether signals of the link and of the monitor have priority.
    pub urgent: (bool, bool),
}

/// Requests a process from another node. If there is no connection, or the node lacks the
/// capability, the reply says so.
pub fn spawn(cx: &mut Cx, name: Term, q: Request) -> Result<(), Fail> {
    let me = cx.self_pid();
    let over = to_node(cx, name)?.filter(|(n, r)| tie(cx, n, r.id));
    let why = match &over {
        None => am::NOCONNECTION,
        Some((_, r)) if !r.can(flags::SPAWN) => am::NOTSUP,
        Some((n, r)) => {
            let leader = process::group_leader_of(cx);
            let arity = Term::small(q.mfa[2].list_iter().count() as i64);
            let mut place = Fragment::new();
            let mfa = place.tuple(&[q.mfa[0], q.mfa[1], arity]);
            let mut args: Vec<Arg> = vec![
                q.reference.into(),
                me.into(),
                leader.into(),
                mfa.into(),
                q.options.into(),
            ];
            let mut code = op::SPAWN_REQUEST;
            if cx.process().has(process::SEQUENTIAL) {
                // Traced as two messages: the request, and the arguments, which become the first
                // message.
                let parts = [spawn_request(), q.reference, me, leader, mfa, q.options];
                let msg = place.tuple(&parts);
                token::sending(cx.process(), name, msg);
                let t = token::sending(cx.process(), name, q.mfa[2]);
                if let Some(t) = t.filter(|t| r.can_take(t)) {
                    code = op::SPAWN_REQUEST_TT;
                    args.push(t.term(&mut place).into());
                }
            }
            let f = frame(code, &args, Some(q.mfa[2]), r.cached(), me.raw());
            drop(OwnedTerm::from_parts(mfa, place));
            if f.is_too_large() {
                return Err(Fail::SystemLimit);
            }
            cx.bump(f.len() / REDUCTION_BYTES);
            let s = Spawn {
                node: name,
                connection: r.id,
                tag: OwnedTerm::copy_of(q.tag),
                on_success: q.on_success,
                on_error: q.on_error,
                link: q.link,
                monitor: q.monitor,
                urgent: q.urgent,
                reference: OwnedTerm::copy_of(q.reference),
                abandoned: false,
            };
            remote(cx).spawns.insert(q.key, s);
            n.send(r.id, f);
            return Ok(());
        }
    };
    if q.on_error {
        let (tag, r) = (OwnedTerm::copy_of(q.tag), OwnedTerm::copy_of(q.reference));
        reply(me, &tag, &r, am::ERROR, why);
    }
    Ok(())
}

/// The signal `{Tag, Reference, Result, Value}` for a process that requested another.
fn reply_of(
    tag: &OwnedTerm,
    r: &OwnedTerm,
    result: Term,
    value: Term,
    token: Option<&Token>,
) -> *mut Signal {
    let mut f = Fragment::new();
    let parts = [tag.term(), r.term(), result, value].map(|t| copy::copy(t, &mut f));
    let t = f.tuple(&parts);
    let t = OwnedTerm::from_parts(t, f);
    signal_of(None, None, token, t.term())
}

/// Sends `{Tag, Reference, Result, Value}`.
fn reply(to: Term, tag: &OwnedTerm, r: &OwnedTerm, result: Term, value: Term) {
    // SAFETY: a fresh signal.
    unsafe { send::push_or_free(to, reply_of(tag, r, result, value, None)) };
}

/// Abandons a spawn request. Returns false if there is none to abandon.
pub fn abandon(cx: &mut Cx, k: RefKey) -> bool {
    match known_ties(cx).and_then(|r| r.spawns.get_mut(&k)) {
        Some(s) if !s.abandoned => {
            s.abandoned = true;
            true
        }
        _ => false,
    }
}

/// Handles another node's reply to a spawn request: the pid, or why there is none. `token` came
/// with the reply.
pub fn spawned(
    cx: &mut Cx,
    k: RefKey,
    (node, connection): (Term, u32),
    (result, linked): (Term, bool),
    token: Option<&Token>,
) {
    let me = cx.self_pid();
    let answered = known_ties(cx).and_then(|r| {
        // Only a reply from the node that was asked counts.
        (r.spawns.get(&k)).filter(|s| s.connection == connection && s.node == node)?;
        r.spawns.remove(&k)
    });
    let Some(s) = answered else { return };
    let Some(key) = RemotePid::of(result) else {
        if s.on_error && !s.abandoned {
            let told = reply_of(&s.tag, &s.reference, am::ERROR, result, token);
            // SAFETY: a fresh signal.
            unsafe { send::push_or_free(me, told) };
        }
        return;
    };
    let watched = Watched {
        object: OwnedTerm::copy_of(result),
        reference: s.reference,
        connection,
    };
    if s.abandoned {
        if s.monitor.is_some() {
            demonitor(me, &watched);
        }
        if s.link {
            send_link_exit(connection, me, &key, abandoned());
        }
        return;
    }
    let reference = OwnedTerm::copy_of(watched.reference.term());
    // The reply decides: the other node links before it answers, or does not.
    if linked {
        let l = Link {
            unlinking: 0,
            connection,
            urgent: s.urgent.0,
        };
        remote(cx).links.insert(key, l);
        events::tie(cx.process(), events::Tie::Link, result);
    }
    if let Some((alias, tag)) = s.monitor {
        let m = Monitor::remote(watched, alias, tag);
        let e = cx.process().ext_mut();
        e.monitors.insert(k, m);
        if s.urgent.1 {
            e.prioritize(k);
        }
    }
    if s.on_success {
        let told = reply_of(&s.tag, &reference, am::OK, result, token);
        // Handled at once, so that messages of the new process come behind it.
        // SAFETY: a fresh signal.
        unsafe { handle::handle_here(cx, told) };
    }
}

/// Handles a connection that is up with a node that lacks an assumed capability. Signals that
/// depended on it were dropped.
pub fn lacks(cx: &mut Cx, n: &Node, id: u32, with: u64) {
    let me = cx.self_pid();
    let lacks = |flag| with & flag == 0;
    let copy = |t: &OwnedTerm| OwnedTerm::copy_of(t.term());
    let mut spawns = Vec::new();
    let mut links = Vec::new();
    if let Some(r) = known_ties(cx) {
        r.spawns.retain(|_, s| {
            let stays = s.connection != id || s.node != n.name || !lacks(flags::SPAWN);
            if !stays && s.on_error && !s.abandoned {
                spawns.push((copy(&s.tag), copy(&s.reference)));
            }
            stays
        });
        r.links.retain(|k, l| {
            let of_it = l.connection == id && k.node.name == n.name;
            let stays = !of_it || l.unlinking == 0 || !lacks(flags::UNLINK_ID);
            if !stays {
                links.push(k.owned());
            }
            stays
        });
    }
    for (tag, r) in spawns {
        reply(me, &tag, &r, am::ERROR, am::NOTSUP);
    }
    for to in links {
        let args = [me.into(), to.term().into()];
        n.send(id, frame(op::UNLINK, &args, None, false, me.raw()));
    }
}

/// Handles the loss of a connection to a node.
pub fn lost(cx: &mut Cx, name: Term, id: u32) {
    let me = cx.self_pid();
    let Some(r) = known_ties(cx) else {
        return lost_monitors(cx, name, id);
    };
    r.watchers
        .retain(|w| w.connection != id || w.by.node.name != name);
    let mut links = Vec::new();
    r.links.retain(|k, l| {
        let stays = l.connection != id || k.node.name != name;
        if !stays && l.unlinking == 0 {
            links.push((k.owned(), l.urgent));
        }
        stays
    });
    let mut spawns = Vec::new();
    r.spawns.retain(|_, s| {
        let stays = s.connection != id || s.node != name;
        if !stays && s.on_error && !s.abandoned {
            let copy = |t: &OwnedTerm| OwnedTerm::copy_of(t.term());
            spawns.push((copy(&s.tag), copy(&s.reference)));
        }
        stays
    });
    let mut times = 0;
    r.nodes.retain(|w| {
        let stays = w.connection != id || w.name != name;
        if !stays {
            times += w.count;
        }
        stays
    });
    lost_monitors(cx, name, id);
    for (from, urgent) in links {
        handle::remote_link_broke(cx, from.term(), am::NOCONNECTION, None, urgent);
    }
    for (tag, r) in spawns {
        reply(me, &tag, &r, am::ERROR, am::NOCONNECTION);
    }
    for _ in 0..times {
        send::send_with(me, |a| a.tuple(&[nodedown(), name]));
    }
}

/// Ends the monitors over a lost connection, whose targets count as ended.
fn lost_monitors(cx: &mut Cx, name: Term, id: u32) {
    let Some(e) = cx.process().ext() else { return };
    let copy = |t: &OwnedTerm| OwnedTerm::copy_of(t.term());
    let ended: Vec<(OwnedTerm, OwnedTerm)> = e
        .monitors
        .iter()
        .filter_map(|(_, m)| {
            let w = m.watched()?;
            let lost = w.connection == id && node_of(w.object.term()) == Some(name);
            lost.then(|| (copy(&w.reference), copy(&w.object)))
        })
        .collect();
    for (r, object) in ended {
        // Handled at once: a later signal may report that the node is down, upon which the monitor
        // may be removed.
        handle::monitor_down_here(cx, r.term(), object.term(), am::NOCONNECTION);
    }
}

/// Handles the end of a process that had ties to other nodes.
pub fn ended(p: &mut Process, me: Term, mut ties: Remote, reason: Term) {
    let why = &mut match ties.links.len() + ties.watchers.len() {
        0 | 1 => Why::once(reason),
        _ => Why::often(reason),
    };
    table::together(|| {
        for (to, l) in ties.links.drain() {
            // A process that has unlinked sends nothing more; its request may still be in transit.
            if l.unlinking == 0 {
                let token = ending(p, me, &to, reason);
                link_exit(l.connection, me, &to, why, token);
            }
        }
        for (reference, w) in ties.watchers.drain() {
            let watched = if w.name == NIL { me } else { w.name };
            let (by, r) = (w.by.owned(), reference.owned());
            down(w.connection, watched, by.term(), r.term(), why, me);
        }
    });
    for (name, id) in ties.tied {
        if let Some(n) = table::find(name) {
            n.untie(id, me);
        }
    }
    if ties.controls {
        super::distribution_natives::controller_ended(me, reason);
    }
}
