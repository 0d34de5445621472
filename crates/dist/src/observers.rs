//! The observers of node changes: `process_flag(monitor_nodes, _)`, beneath
//! `net_kernel:monitor_nodes/1,2`.
//!
//! # Orderings
//! The marks are stored with release under the lock of the table, after the table has changed, and
//! loaded with acquire. A thread that finds a mark takes the lock and so sees the entry. A thread
//! that misses the mark of a subscription made at the same time acts as if it had come first.

use super::cx::{BifResult, Cx, Fail};
use super::{lazy_atoms, signal};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom, copy, map};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

lazy_atoms! {
    pub(crate) visible = "visible";
    pub(crate) hidden = "hidden";
    nodeup = "nodeup";
    pub(crate) nodedown = "nodedown";
    pub(crate) connection_id = "connection_id";
    pub(crate) node_type = "node_type";
    nodedown_reason = "nodedown_reason";
}

// Options, as bits.
const MAP: u32 = 1;
const VISIBLE: u32 = 2;
const HIDDEN: u32 = 4;
const REASON: u32 = 8;
const CONNECTION: u32 = 16;
const LIST: u32 = 32;

/// The observers, by pid's word and options.
static OBSERVERS: Mutex<BTreeMap<(u64, u32), Observer>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy)]
struct Observer {
    pid: Term,
    options: u32,
    /// How many times it has subscribed.
    times: i64,
    /// Subscription number; later ones are greater.
    number: u64,
}

/// A bit for each observer, by its pid ([`mark`]); several pids have the same bit. Written under
/// the lock of [`OBSERVERS`]. A process sets its own bit, so its end finds it set.
static MARKS: AtomicU64 = AtomicU64::new(0);

fn mark(pid: u64) -> u64 {
    1 << (pid.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58)
}

/// Sets the bits of those who observe, and no others.
fn set_marks(all: &BTreeMap<(u64, u32), Observer>) {
    let marks = all.keys().fold(0, |m, &(pid, _)| m | mark(pid));
    MARKS.store(marks, Ordering::Release);
}

/// A node has come up or gone down.
pub struct Event {
    pub up: bool,
    pub name: Term,
    /// None for this node's own name.
    pub connection: Option<u32>,
    pub visible: bool,
    /// Why it went down.
    pub reason: Term,
}

/// `process_flag(monitor_nodes | {monitor_nodes, Options}, Bool)`. Returns how many times it was on
/// before.
pub fn observe(cx: &mut Cx, flag: Term, value: Term) -> BifResult {
    let on = value.as_bool().ok_or(Fail::Badarg)?;
    let mut bits = 0;
    if let Some(&[_, options]) = flag.as_tuple() {
        if options.is_map() {
            bits = MAP;
            for (key, value) in map::iter(options) {
                bits |= option(key, value).ok_or(Fail::Badarg)?;
            }
        } else if options != NIL {
            return Err(Fail::Badarg);
        }
    }
    let me = cx.self_pid();
    let mut all = OBSERVERS.lock();
    let key = (me.raw(), bits);
    let before = all.get(&key).map_or(0, |o| o.times);
    if on {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let new = || Observer {
            pid: me,
            options: bits,
            times: 0,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        };
        all.entry(key).or_insert_with(new).times += 1;
    } else {
        all.remove(&key);
    }
    set_marks(&all);
    Ok(Term::small(before))
}

/// The bits of an option.
fn option(key: Term, value: Term) -> Option<u32> {
    let word = |t: Term| t.is_atom().then(|| atom::name(t));
    match (word(key)?, word(value)?) {
        ("node_type", "visible") => Some(VISIBLE),
        ("node_type", "hidden") => Some(HIDDEN),
        ("node_type", "all") => Some(VISIBLE | HIDDEN),
        ("nodedown_reason", "true") => Some(REASON),
        ("connection_id", "true") => Some(CONNECTION),
        ("list", "true") => Some(LIST),
        ("nodedown_reason" | "connection_id" | "list", "false") => Some(0),
        _ => None,
    }
}

/// The observers: `{Pid, Options}` once per subscription, the latest first.
pub fn list(cx: &mut Cx) -> Term {
    let mut all: Vec<Observer> = OBSERVERS.lock().values().copied().collect();
    all.sort_unstable_by_key(|o| o.number);
    let mut l = NIL;
    for o in all {
        let (pid, bits) = (o.pid, o.options);
        let mut options = Vec::new();
        if bits & REASON != 0 {
            options.push(nodedown_reason());
        }
        let kind = match (bits & VISIBLE != 0, bits & HIDDEN != 0) {
            (true, true) => Some("all"),
            (true, false) => Some("visible"),
            (false, true) => Some("hidden"),
            (false, false) => None,
        };
        options.extend(kind.map(|k| cx.tuple(&[node_type(), atom::intern(k)])));
        let options = cx.list(&options);
        for _ in 0..o.times {
            let item = cx.tuple(&[pid, options]);
            l = cx.cons(item, l);
        }
    }
    l
}

/// The processes that observe.
pub fn pids() -> Vec<Term> {
    OBSERVERS.lock().values().map(|o| o.pid).collect()
}

/// Removes the subscriptions of a process that has ended.
pub fn owner_exit(pid: Term) {
    if MARKS.load(Ordering::Acquire) & mark(pid.raw()) != 0 {
        let mut all = OBSERVERS.lock();
        let of_it = (pid.raw(), 0)..=(pid.raw(), u32::MAX);
        let gone: Vec<_> = all.range(of_it).map(|o| *o.0).collect();
        for key in gone {
            all.remove(&key);
        }
        set_marks(&all);
    }
}

/// Sends an event to its observers.
pub fn tell(e: Event) {
    if MARKS.load(Ordering::Acquire) == 0 {
        return;
    }
    let all: Vec<Observer> = OBSERVERS.lock().values().copied().collect();
    for o in all {
        let (pid, bits) = (o.pid, o.options);
        let types = bits & (VISIBLE | HIDDEN);
        let wanted = match e.visible {
            true => types == 0 || types & VISIBLE != 0,
            false => types & HIDDEN != 0,
        };
        if wanted {
            for _ in 0..o.times {
                signal::send_with(pid, |a| message(&e, bits, a));
            }
        }
    }
}

/// Makes `{nodeup | nodedown, Node}`, with the requested information behind it as a map or a list.
fn message(e: &Event, bits: u32, a: &mut dyn Alloc) -> Term {
    let what = if e.up { nodeup() } else { nodedown() };
    if bits == 0 {
        return a.tuple(&[what, e.name]);
    }
    let mut info = Vec::new();
    if bits & CONNECTION != 0 {
        let id = e
            .connection
            .map_or(am::UNDEFINED, |id| Term::small(id.into()));
        info.push((connection_id(), id));
    }
    if !e.up && bits & REASON != 0 {
        info.push((nodedown_reason(), copy::copy(e.reason, a)));
    }
    if bits & (VISIBLE | HIDDEN) != 0 {
        info.push((node_type(), if e.visible { visible() } else { hidden() }));
    }
    let info = if bits & LIST != 0 {
        let items: Vec<Term> = info.iter().map(|&(k, v)| a.tuple(&[k, v])).collect();
        a.list(&items)
    } else {
        map::from_pairs_unique(a, &info).unwrap_or(NIL)
    };
    a.tuple(&[what, e.name, info])
}
