//! `erlang:system_monitor/2` and `trace:system/3`: events anywhere in the system, sent at once to a
//! process or to the tracer of a session.

use crate::cx::Cx;
use crate::events::{LONG_QUEUE, LONG_SCHEDULE, WATCHES_GC};
use crate::process::{self, Process};
use crate::{lazy_atoms, signal};
use purlin_term::heap::Heap;
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, am, atom};
use std::sync::atomic::Ordering;

lazy_atoms! {
    long_gc = "long_gc";
    large_heap = "large_heap";
    long_schedule = "long_schedule";
    long_message_queue = "long_message_queue";
    busy_port = "busy_port";
    busy_dist_port = "busy_dist_port";
}

/// The requested events. The limits are in milliseconds, milliseconds and words; 0 is not
/// requested.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    /// Word of the pid; 0 for nobody.
    pub to: u64,
    pub long_gc: u64,
    pub long_schedule: u64,
    pub large_heap: u64,
    /// A message queue is long from the second number of messages on, until it falls to the first.
    pub long_queue: Option<(usize, usize)>,
    pub busy_port: bool,
    pub busy_dist_port: bool,
}

/// The one that monitors: the number of a session, or -1 for `erlang:system_monitor/2`.
pub type Watcher = i64;
/// See [`Watcher`].
pub const LEGACY: Watcher = -1;

static ALL: Mutex<Vec<(Watcher, Wanted)>> = Mutex::new(Vec::new());

/// The requests of all monitors, as they are now.
fn all() -> Vec<(Watcher, Wanted)> {
    ALL.lock().clone()
}

/// The events requested now.
pub fn wanted(by: Watcher) -> Wanted {
    let found = all().into_iter().find(|w| w.0 == by);
    let w = found.map(|w| w.1).unwrap_or_default();
    // SAFETY: the word of a local pid.
    let gone = w.to != 0 && !is_there(unsafe { Term::from_raw(w.to) });
    if gone {
        set(by, Wanted::default());
        return Wanted::default();
    }
    w
}

/// The processes that get events of the system, profiles included.
pub fn receivers() -> Vec<Term> {
    let all = all().into_iter().map(|w| w.1.to);
    all.chain([super::profile::get().to])
        .filter(|to| *to != 0)
        // SAFETY: the word of a local pid or port.
        .map(|to| unsafe { Term::from_raw(to) })
        .collect()
}

fn is_there(pid: Term) -> bool {
    process::table().find(pid).is_some()
}

/// Replaces the requested events and returns the old ones.
pub fn set(by: Watcher, w: Wanted) -> Wanted {
    let mut all = ALL.lock();
    let before = all.iter().position(|x| x.0 == by).map(|i| all.remove(i).1);
    if w.to != 0 {
        all.push((by, w));
    }
    let watches = |w: &Wanted| w.long_gc != 0 || w.large_heap != 0;
    let gc = all.iter().any(|x| watches(&x.1));
    WATCHES_GC.store(gc.into(), Ordering::Relaxed);
    let limits = all.iter().map(|x| x.1.long_schedule).filter(|&n| n != 0);
    LONG_SCHEDULE.store(limits.min().unwrap_or(0), Ordering::Relaxed);
    let limits = all.iter().filter_map(|x| x.1.long_queue).map(|q| q.0);
    LONG_QUEUE.store(limits.min().unwrap_or(usize::MAX), Ordering::Relaxed);
    before.unwrap_or_default()
}

/// Ends the monitor of a session that is over.
pub(crate) fn end(session: u32) {
    set(session.into(), Wanted::default());
}

/// Sends an event to the process that requested it; removes the request if that has ended. A
/// process gets no events about itself. `value` makes the last element of the message.
fn tell(
    (by, w): &(Watcher, Wanted),
    about: Term,
    what: Term,
    value: impl FnOnce(&mut dyn Alloc) -> Term,
) {
    // SAFETY: the word of a local pid.
    let to = unsafe { Term::from_raw(w.to) };
    if to == about {
        return;
    }
    let sent = signal::send_with(to, |a| {
        let value = value(a);
        a.tuple(&[am::MONITOR, about, what, value])
    });
    if !sent {
        set(*by, Wanted::default());
    }
}

/// As [`tell`], with a list of pairs of names and numbers.
fn tell_numbers(to: &(Watcher, Wanted), about: Term, what: Term, info: &[(&str, Term)]) {
    tell(to, about, what, |a| {
        let pairs: Vec<Term> = info
            .iter()
            .map(|&(k, v)| a.tuple(&[atom::intern(k), v]))
            .collect();
        a.list(&pairs)
    });
}

fn sizes(h: &Heap) -> [(&'static str, Term); 6] {
    let n = |v: usize| Term::small(v as i64);
    [
        ("old_heap_block_size", n(h.old_block_words())),
        ("heap_block_size", n(h.block_words())),
        ("mbuf_size", n(h.frag_words)),
        ("stack_size", n(h.stack_words())),
        ("old_heap_size", n(h.old_words() - h.old_free_words())),
        ("heap_size", n(h.used_words())),
    ]
}

/// A collection of the process in the context took that many nanoseconds.
pub fn collected(cx: &mut Cx, took: i64) {
    if WATCHES_GC.load(Ordering::Relaxed) == 0 {
        return;
    }
    let me = cx.self_pid();
    let ms = (took / 1_000_000).max(0) as u64;
    let words = cx.heap.block_words() + cx.heap.old_block_words() + cx.heap.frag_words;
    for to in &all() {
        let w = &to.1;
        if w.long_gc != 0 && ms >= w.long_gc {
            let mut info = vec![(timeout_name(), Term::small(ms as i64))];
            info.extend(sizes(&cx.heap));
            tell_numbers(to, me, long_gc(), &info);
        }
        if w.large_heap != 0 && words as u64 >= w.large_heap {
            tell_numbers(to, me, large_heap(), &sizes(&cx.heap));
        }
    }
}

fn timeout_name() -> &'static str {
    atom::name(am::TIMEOUT)
}

/// A process, or a port in the operation `op`, has run for that many nanoseconds without a break.
pub(crate) fn ran(who: Term, op: Option<&'static str>, took: i64) {
    let limit = LONG_SCHEDULE.load(Ordering::Relaxed);
    let ms = (took / 1_000_000).max(0) as u64;
    if limit == 0 || ms < limit {
        return;
    }
    for to in &all() {
        if to.1.long_schedule != 0 && ms >= to.1.long_schedule {
            let mut info = vec![(timeout_name(), Term::small(ms as i64))];
            info.extend(op.map(|op| ("port_op", atom::intern(op))));
            tell_numbers(to, who, long_schedule(), &info);
        }
    }
}

/// The message queue of a process that the caller owns has become longer or shorter.
pub(crate) fn queue_changed(p: &mut Process) {
    let (pid, queued) = (p.pid(), p.queued_messages());
    let mut told = match p.ext() {
        Some(e) => std::mem::take(&mut e.long_queue_notified),
        None => Vec::new(),
    };
    let all = all();
    // A monitor that no longer watches queues gets no event for the end of a long one.
    told.retain(|by| all.iter().any(|w| w.0 == *by && w.1.long_queue.is_some()));
    for to in &all {
        let Some((long, short)) = to.1.long_queue else {
            continue;
        };
        match told.iter().position(|by| *by == to.0) {
            None if queued >= long => {
                told.push(to.0);
                tell(to, pid, long_message_queue(), |_| am::TRUE);
            }
            Some(i) if queued <= short => {
                told.remove(i);
                tell(to, pid, long_message_queue(), |_| am::FALSE);
            }
            _ => {}
        }
    }
    if !told.is_empty() {
        p.ext_mut().long_queue_notified = told;
    }
}

/// A process waits because a port accepts no more output.
pub(crate) fn waits_for_port(pid: Term, port: Term) {
    for to in all().iter().filter(|w| w.1.busy_port) {
        tell(to, pid, busy_port(), |_| port);
    }
}

/// A process waits because the connection to another node accepts no more output.
pub fn waits_for_connection(pid: Term, port: Term) {
    for to in all().iter().filter(|w| w.1.busy_dist_port) {
        tell(to, pid, busy_dist_port(), |_| port);
    }
}
