//! Links and monitors of a process, a port or the connection to a node, as
//! `erts_debug:get_internal_state` returns them for `{link_list, _}` and `{monitor_list, _}`:
//!
//! ```text
//! {erl_link, Type, Who, State, Number}
//! {erl_monitor, Type, Direction, Reference, Who, Name}
//! ```
//!
//! Each process lists its own, in a task among its signals. The list of a connection has those of
//! all processes that go over it, as seen from the other end.
//!
//! # Orderings
//! `left` counts the processes that have not answered. Each adds its rows under the lock and then
//! decrements with `AcqRel`, so the last decrement follows all rows. The native loads with
//! `Acquire` and takes the rows once it sees 0. The last one wakes it, and a wake-up that comes
//! before it waits is kept in its state word.

use crate::cx::{BifResult, Cx, Fail};
use crate::process::ext::Target;
use crate::process::{self, EXIT_PENDING};
use crate::{lazy_atoms, port, signal};
use purlin_kernel::remote::{Remote, RemotePid};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, copy, hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

lazy_atoms! {
    erl_link = "erl_link";
    erl_monitor = "erl_monitor";
    dist_process = "dist_process";
    linked = "linked";
    unlinking = "unlinking";
    origin = "origin";
    target = "target";
    clock_service = "clock_service";
}

/// The requested item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Links,
    Monitors,
}

/// The rows known so far, and the processes that have not answered yet.
#[derive(Default)]
struct Told {
    rows: Mutex<Vec<OwnedTerm>>,
    left: AtomicUsize,
}

/// The list of a local process or port, or of the connection to the node of that name.
pub(super) fn list(cx: &mut Cx, what: What, whose: Term) -> BifResult {
    let me = cx.self_pid();
    if whose.is_local_port() {
        return of_port(cx, what, whose);
    }
    if !whose.is_local_pid() && !whose.is_atom() {
        return Err(Fail::Badarg);
    }
    let asked = cx.process().ext().and_then(|e| e.bif_state.as_ref());
    let asked = asked.and_then(|s| s.downcast_ref::<Arc<Told>>()).cloned();
    let told = match asked {
        Some(t) => t,
        None => ask(cx, what, whose),
    };
    if told.left.load(Ordering::Acquire) != 0 {
        return Err(Fail::Wait);
    }
    signal::handle::fetch(cx);
    if cx.process().has(EXIT_PENDING) {
        return Err(Fail::Exited);
    }
    if let Some(e) = cx.process().ext() {
        e.bif_state = None;
    }
    if whose.is_local_pid() && whose != me && process::table().find(whose).is_none() {
        return Ok(am::UNDEFINED);
    }
    let rows = std::mem::take(&mut *told.rows.lock());
    let rows: Vec<Term> = rows.iter().map(|r| copy::copy(r.term(), cx)).collect();
    Ok(cx.list(&rows))
}

/// Asks every process whose links or monitors may belong to the list.
fn ask(cx: &mut Cx, what: What, whose: Term) -> Arc<Told> {
    let me = cx.self_pid();
    let node = whose.is_atom().then_some(whose);
    let whom = match node {
        Some(_) => process::table().pids(),
        None => vec![whose],
    };
    let told = Arc::new(Told::default());
    if whom.contains(&me) {
        *told.rows.lock() = rows(cx, what, node);
    }
    let others: Vec<Term> = whom.into_iter().filter(|&p| p != me).collect();
    told.left.store(others.len(), Ordering::Release);
    cx.process().ext_mut().bif_state = Some(Box::new(told.clone()));
    for p in others {
        let told = told.clone();
        let task: signal::Task = Box::new(move |cx| {
            if let Some(cx) = cx {
                let mut rows = rows(cx, what, node);
                told.rows.lock().append(&mut rows);
            }
            if told.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                signal::send::wake(me);
            }
        });
        signal::send::run_in(p, task);
    }
    told
}

fn of_port(cx: &mut Cx, what: What, whose: Term) -> BifResult {
    let Some(info) = port::find(whose).and_then(|p| port::info(&p)) else {
        return Ok(am::UNDEFINED);
    };
    if what == What::Monitors {
        return Ok(NIL);
    }
    let mut all = NIL;
    for l in info.links {
        let row = cx.tuple(&[erl_link(), am::PORT, l, linked(), number_of(whose, l)]);
        all = cx.cons(row, all);
    }
    Ok(all)
}

/// A row that `f` builds.
fn row(f: impl FnOnce(&mut Fragment) -> Term) -> OwnedTerm {
    let mut place = Fragment::new();
    let t = f(&mut place);
    OwnedTerm::from_parts(t, place)
}

/// The number of a link, equal at both of its ends.
fn number_of(mine: Term, other: Term) -> Term {
    const BITS: u64 = (1 << 58) - 1;
    Term::small((hash::salted(other, mine.raw()) & BITS) as i64)
}

/// The rows of the process in the context. With `node`, only links and monitors to that node, seen
/// from the other end.
fn rows(cx: &mut Cx, what: What, node: Option<Term>) -> Vec<OwnedTerm> {
    let me = cx.self_pid();
    let mut out = Vec::new();
    let Some(e) = cx.process().ext() else {
        return out;
    };
    match what {
        What::Links => {
            if node.is_none() {
                for (who, l) in e.links.iter() {
                    let who = who.term();
                    let kind = if who.is_local_port() {
                        am::PORT
                    } else {
                        am::PROCESS
                    };
                    let state = if l.unlinking == 0 {
                        linked()
                    } else {
                        unlinking()
                    };
                    out.push(row(|f| {
                        f.tuple(&[erl_link(), kind, who, state, number_of(me, who)])
                    }));
                }
            }
            if let Some(r) = e.rare().and_then(|r| r.remote.as_deref()) {
                remote_links(me, r, node, &mut out);
            }
        }
        What::Monitors => {
            for (k, m) in e.monitors.iter() {
                let (kind, who, name) = match m.target() {
                    Target::Gone => continue,
                    Target::Remote => {
                        if let Some(w) = m.watched() {
                            let object = w.object.term();
                            let (who, name, at) = match object.as_tuple() {
                                Some(&[name, at]) => (at, name, at),
                                _ => match object.as_external() {
                                    Some((n, _)) => (object, NIL, n.name),
                                    None => continue,
                                },
                            };
                            if node.is_some_and(|n| n != at) {
                                continue;
                            }
                            let (direction, who) = match node {
                                Some(_) => (target(), me),
                                None => (origin(), who),
                            };
                            out.push(row(|f| {
                                let r = f.local_ref(k.numbers());
                                let who = copy::copy(who, f);
                                f.tuple(&[erl_monitor(), dist_process(), direction, r, who, name])
                            }));
                        }
                        continue;
                    }
                    _ if node.is_some() => continue,
                    Target::Clock => (am::TIME_OFFSET, clock_service(), NIL),
                    Target::Local(t) | Target::Named(t, _) if t.is_local_port() => {
                        (am::PORT, t, NIL)
                    }
                    Target::Local(t) => (am::PROCESS, t, NIL),
                    Target::Named(t, name) => (am::PROCESS, t, name),
                };
                out.push(row(|f| {
                    let r = f.local_ref(k.numbers());
                    f.tuple(&[erl_monitor(), kind, origin(), r, who, name])
                }));
            }
            if node.is_none() {
                for (k, w) in e.watchers.iter().filter(|(_, w)| !w.by().is_nil()) {
                    let items = (w.by(), w.name());
                    out.push(row(|f| {
                        let r = f.local_ref(k.numbers());
                        let of = [erl_monitor(), am::PROCESS, target(), r, items.0, items.1];
                        f.tuple(&of)
                    }));
                }
            }
            if let Some(r) = e.rare().and_then(|r| r.remote.as_deref()) {
                remote_monitors(me, r, node, &mut out);
            }
        }
    }
    out
}

fn remote_links(me: Term, r: &Remote, node: Option<Term>, out: &mut Vec<OwnedTerm>) {
    let leads = |k: &RemotePid| node.is_none_or(|n| n == k.node.name);
    for (k, l) in r.links.iter().filter(|(k, _)| leads(k)) {
        let state = if l.unlinking == 0 {
            linked()
        } else {
            unlinking()
        };
        out.push(row(|f| {
            let other = k.term(f);
            let number = number_of(me, other);
            let who = if node.is_some() { me } else { other };
            f.tuple(&[erl_link(), dist_process(), who, state, number])
        }));
    }
}

fn remote_monitors(me: Term, r: &Remote, node: Option<Term>, out: &mut Vec<OwnedTerm>) {
    for (k, w) in r.watchers.iter() {
        if node.is_some_and(|n| n != w.by.node.name) {
            continue;
        }
        out.push(row(|f| {
            let reference = k.owned();
            let reference = copy::copy(reference.term(), f);
            let (direction, who) = match node {
                Some(_) => (origin(), me),
                None => (target(), w.by.term(f)),
            };
            let of = [
                erl_monitor(),
                dist_process(),
                direction,
                reference,
                who,
                w.name,
            ];
            f.tuple(&of)
        }));
    }
    for n in r.nodes.iter().filter(|n| node.is_none_or(|x| x == n.name)) {
        let (direction, who, more) = match node {
            Some(_) => (target(), me, NIL),
            None => (origin(), n.name, Term::small(n.count as i64)),
        };
        out.push(row(|f| {
            f.tuple(&[erl_monitor(), am::NODE, direction, NIL, who, more])
        }));
    }
}
