//! References to nodes, as `erts_debug:get_internal_state(node_and_dist_references)` returns them:
//!
//! ```text
//! {{node_references, [{{Node, Creation}, Count, [{Who, [{What, Count}]}]}]},
//!  {dist_references, [{Node, Count, [{Who, [{What, Count}]}]}]}}
//! ```
//!
//! Each process counts its own references, in a task among its signals, while the others run.
//! Tables and timers are counted afterwards. References that this does not find are in messages,
//! regions and the like, or were in transit; they are reported as `{system, elsewhere}`.
//!
//! # Orderings
//! Each task subtracts itself from `left` with release after it has added what it found. The asking
//! process loads `left` with acquire: at zero all results are there.

use crate::cx::{BifResult, Cx, Fail};
use crate::{ets, lazy_atoms, process, signal, timer};
use purlin_dist::table::{self, State};
use purlin_ets::natives::select::specification;
use purlin_term::layout::{self, RefView};
use purlin_term::node::{self, Node};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, am, off_heap, region};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

lazy_atoms! {
    node_references = "node_references";
    dist_references = "dist_references";
    control = "control";
    pending = "pending";
    system = "system";
    elsewhere = "elsewhere";
    connection = "connection";
    heap = "heap";
    a_ets = "ets";
    a_timer = "timer";
}

/// A node by the word of its name and its creation.
type Entry = (u64, u32);
/// References from a process to a node, by kind: terms on its heap, links, monitors, compiled match
/// specifications.
type Counts = [u64; 4];

/// References to nodes from a table, or from the timers of a receiver.
struct Kept {
    /// The kind of `who`.
    kind: Term,
    who: Term,
    what: Term,
    found: HashMap<Entry, u64>,
}

/// Counts the nodes that a term refers to, except from within regions, which have counts of their
/// own.
fn count_in(t: Term, found: &mut HashMap<Entry, u64>) {
    let mut todo = vec![t];
    while let Some(mut t) = todo.pop() {
        while let Some((head, tail)) = t.as_cons().filter(|_| !region::is_region_ptr(t.ptr())) {
            if !head.is_immed() {
                todo.push(head);
            }
            t = tail;
        }
        if !t.is_boxed() || region::is_region_ptr(t.ptr()) {
            continue;
        }
        let node = match t.as_ref_view() {
            Some(RefView::External { node, .. }) => Some(node),
            _ => t.as_external().map(|(n, _)| n),
        };
        if let Some(n) = node {
            *found.entry((n.name.raw(), n.creation)).or_default() += 1;
            continue;
        }
        // SAFETY: a live boxed term, whose words in that range are terms.
        unsafe {
            let p = t.ptr();
            let (from, to) = layout::term_range(p);
            todo.extend((from..to).map(|i| *p.add(i)));
        }
    }
}

/// The nodes that tables and timers refer to.
fn kept(cx: &mut Cx) -> Vec<Kept> {
    let mut of_timers: HashMap<u64, HashMap<Entry, u64>> = HashMap::new();
    timer::message::each(&mut |to, t| {
        if !t.is_immed() {
            count_in(t, of_timers.entry(to.raw()).or_default());
        }
    });
    let mut all = Vec::new();
    for (to, found) in of_timers.into_iter().filter(|t| !t.1.is_empty()) {
        // SAFETY: the word of a local pid, or of an atom.
        let who = unsafe { Term::from_raw(to) };
        all.push(Kept {
            kind: if who.is_atom() { system() } else { am::PROCESS },
            who,
            what: a_timer(),
            found,
        });
    }
    for t in ets::all() {
        let mut found = HashMap::new();
        ets::each(&t, usize::MAX, &mut |o| count_in(o, &mut found));
        if !found.is_empty()
            && let Some(who) = ets::id(&t, cx)
        {
            all.push(Kept {
                kind: a_ets(),
                who,
                what: a_ets(),
                found,
            });
        }
    }
    all
}

/// A count in progress.
struct Job {
    /// The asking process, as a word.
    by: u64,
    /// Number of processes that have not counted yet.
    left: AtomicUsize,
    /// Results by process, as a word.
    found: Mutex<Vec<(u64, HashMap<Entry, Counts>)>>,
}

static JOB: Mutex<Option<Arc<Job>>> = Mutex::new(None);

/// Counts the references of the process to nodes.
fn count(cx: &mut Cx) -> HashMap<Entry, Counts> {
    let mut found: HashMap<Entry, Counts> = HashMap::new();
    let mut add = |n: &Node, what: usize| {
        found.entry((n.name.raw(), n.creation)).or_default()[what] += 1;
    };
    let mut seen = HashSet::new();
    for list in [&cx.heap.off_heap, &cx.heap.old_off_heap] {
        // SAFETY: the heap of the running process, which does not move meanwhile.
        unsafe {
            off_heap::each_node(list, |n| add(n, 0));
            off_heap::each_magic(list, |m| {
                if let Some(p) = specification(m).filter(|_| seen.insert(m.num)) {
                    p.each_node(|n| add(n, 3));
                }
            });
        }
    }
    if let Some(e) = cx.process().ext() {
        for w in e.monitors.iter().filter_map(|(_, m)| m.watched()) {
            if let Some((n, _)) = w.object.term().as_external() {
                add(n, 2);
            }
        }
        if let Some(r) = e.rare().and_then(|r| r.remote.as_deref()) {
            r.links.keys().for_each(|k| add(&k.node, 1));
            for (k, w) in r.watchers.iter() {
                k.node().into_iter().for_each(|n| add(n, 2));
                add(&w.by.node, 2);
            }
        }
    }
    found
}

/// Answers `get_internal_state(node_and_dist_references)`.
pub(super) fn references(cx: &mut Cx) -> BifResult {
    let me = cx.self_pid();
    let job = {
        let mut job = JOB.lock();
        match &*job {
            Some(j) if j.by == me.raw() && j.left.load(Ordering::Acquire) == 0 => job.take(),
            Some(j) if j.by == me.raw() => return Err(Fail::Again),
            // SAFETY: the word of a pid.
            Some(j)
                if process::table()
                    .find(unsafe { Term::from_raw(j.by) })
                    .is_some() =>
            {
                return Err(Fail::Again);
            }
            _ => {
                let j = begin(cx);
                *job = Some(j.clone());
                drop(job);
                return Err(Fail::Again);
            }
        }
    };
    let Some(job) = job else {
        return Err(Fail::Again);
    };
    let found = std::mem::take(&mut *job.found.lock());
    let kept = kept(cx);
    let nodes = of_nodes(cx, &found, &kept);
    let connections = of_connections(cx);
    let nodes = cx.tuple(&[node_references(), nodes]);
    let connections = cx.tuple(&[dist_references(), connections]);
    Ok(cx.tuple(&[nodes, connections]))
}

/// Asks all processes to count.
fn begin(cx: &mut Cx) -> Arc<Job> {
    let me = cx.self_pid();
    let others: Vec<Term> = process::table()
        .pids()
        .into_iter()
        .filter(|&p| p != me)
        .collect();
    let job = Arc::new(Job {
        by: me.raw(),
        left: AtomicUsize::new(others.len()),
        found: Mutex::new(vec![(me.raw(), count(cx))]),
    });
    for p in others {
        let job = job.clone();
        let task: signal::Task = Box::new(move |cx| {
            if let Some(cx) = cx {
                let found = count(cx);
                let mut all = job.found.lock();
                all.push((p.raw(), found));
            }
            job.left.fetch_sub(1, Ordering::Release);
        });
        signal::send::run_in(p, task);
    }
    job
}

/// `[{What, Count}]` of the counts that are not 0.
fn counts(cx: &mut Cx, of: &[(Term, u64)]) -> Term {
    let mut items = Vec::new();
    for &(what, n) in of.iter().filter(|c| c.1 != 0) {
        let n = cx.uint(n);
        items.push(cx.tuple(&[what, n]));
    }
    cx.list(&items)
}

/// An item of a list of referrers: `{{Kind, Who}, [{What, Count}]}`.
fn referrer(cx: &mut Cx, kind: Term, who: Term, of: &[(Term, u64)]) -> Term {
    let who = cx.tuple(&[kind, who]);
    let of = counts(cx, of);
    cx.tuple(&[who, of])
}

fn of_nodes(cx: &mut Cx, found: &[(u64, HashMap<Entry, Counts>)], kept: &[Kept]) -> Term {
    let mut items = Vec::new();
    for (name, creation, count) in node::all() {
        if count == 0 {
            continue;
        }
        let entry = (name.raw(), creation);
        let of_it = || {
            let of = |(p, f): &(u64, HashMap<Entry, Counts>)| Some((*p, *f.get(&entry)?));
            found.iter().filter_map(of)
        };
        let in_kept = || {
            let of = |k: &Kept| Some((k.kind, k.who, k.what, *k.found.get(&entry)?));
            kept.iter().filter_map(of)
        };
        let kept: u64 = in_kept().map(|k| k.3).sum();
        let known: u64 = of_it().flat_map(|(_, c)| c).sum::<u64>() + kept;
        let tied: u64 = of_it().map(|(_, [_, l, m, s])| l + m + s).sum::<u64>() + kept;
        let mut who = Vec::new();
        // If fewer exist now than were counted, their owners are unknown. Terms are the first to be
        // dropped.
        let (known, terms_known) = match count {
            n if known <= n => (known, true),
            n if tied <= n => (tied, false),
            _ => (0, false),
        };
        // Processes whose timers are listed with their other references already.
        let mut told = Vec::new();
        for (p, [terms, links, monitors, of_specs]) in of_it().filter(|_| known != 0) {
            let terms = if terms_known { terms } else { 0 };
            if terms + links + monitors + of_specs == 0 {
                continue;
            }
            // SAFETY: the word of a pid.
            let p = unsafe { Term::from_raw(p) };
            let timers = in_kept().find(|k| k.1 == p).map_or(0, |k| k.3);
            told.push(p);
            let of = [
                (heap(), terms),
                (am::LINK, links),
                (am::MONITOR, monitors),
                (am::BINARY, of_specs),
                (a_timer(), timers),
            ];
            who.push(referrer(cx, am::PROCESS, p, &of));
        }
        for (kind, id, what, n) in in_kept().filter(|_| known != 0) {
            if !told.contains(&id) {
                who.push(referrer(cx, kind, id, &[(what, n)]));
            }
        }
        if known < count {
            let of = [(system(), count - known)];
            who.push(referrer(cx, system(), elsewhere(), &of));
        }
        let who = cx.list(&who);
        let (creation, count) = (cx.uint(creation.into()), cx.uint(count));
        let name = cx.tuple(&[name, creation]);
        items.push(cx.tuple(&[name, count, who]));
    }
    cx.list(&items)
}

fn of_connections(cx: &mut Cx) -> Term {
    let mut lives: HashMap<u64, Vec<u32>> = HashMap::new();
    for (name, creation, count) in node::all() {
        if count != 0 && name != node::this_name() {
            lives.entry(name.raw()).or_default().push(creation);
        }
    }
    let states: Vec<(Term, State, Option<Term>)> = table::all()
        .iter()
        .map(|n| {
            let i = n.inner();
            (n.name, i.state, i.controller.term())
        })
        .collect();
    for (name, state, _) in &states {
        if *state != State::Idle {
            lives.entry(name.raw()).or_default();
        }
    }
    let mut items = Vec::new();
    for (name, creations) in lives {
        // SAFETY: the word of an atom.
        let name = unsafe { Term::from_raw(name) };
        let mut who = Vec::new();
        for creation in creations {
            let creation = cx.uint(creation.into());
            let of = cx.tuple(&[name, creation]);
            who.push(referrer(cx, am::NODE, of, &[(am::NODE, 1)]));
        }
        for (_, state, controller) in states.iter().filter(|s| s.0 == name) {
            match controller {
                Some(c) if c.is_local_port() => {
                    who.push(referrer(cx, am::PORT, *c, &[(control(), 1)]));
                }
                Some(c) => who.push(referrer(cx, am::PROCESS, *c, &[(control(), 1)])),
                None if *state == State::Pending => {
                    who.push(referrer(cx, system(), connection(), &[(pending(), 1)]));
                }
                None => {}
            }
        }
        let count = cx.uint(who.len() as u64);
        let who = cx.list(&who);
        items.push(cx.tuple(&[name, count, who]));
    }
    cx.list(&items)
}
