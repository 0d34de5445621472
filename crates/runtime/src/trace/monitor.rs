//! `erlang:system_monitor/2`: what a process wants to be told of as soon as it happens anywhere.

use crate::cx::Cx;
pub use crate::events::{LONG_SCHEDULE, WATCHES_GC};
use crate::process;
use crate::{lazy_atoms, signal};
use purlin_term::heap::Heap;
use purlin_term::sync::Mutex;
use purlin_term::{Term, am, atom};
use std::sync::atomic::Ordering;

lazy_atoms! {
    long_gc = "long_gc";
    large_heap = "large_heap";
    long_schedule = "long_schedule";
    busy_port = "busy_port";
    busy_dist_port = "busy_dist_port";
}

/// What is asked for. Limits: milliseconds, milliseconds, words; 0 is not asked for.
#[derive(Clone, Copy, Default)]
pub struct Wanted {
    /// Word of the pid; 0 for nobody.
    pub to: u64,
    pub long_gc: u64,
    pub long_schedule: u64,
    pub large_heap: u64,
    pub busy_port: bool,
    pub busy_dist_port: bool,
}

static WANTED: Mutex<Wanted> = Mutex::new(Wanted {
    to: 0,
    long_gc: 0,
    long_schedule: 0,
    large_heap: 0,
    busy_port: false,
    busy_dist_port: false,
});

/// What is asked for now.
pub fn wanted() -> Wanted {
    let w = *WANTED.lock();
    // SAFETY: the word of a local pid.
    let gone = w.to != 0
        && process::table()
            .find(unsafe { Term::from_raw(w.to) })
            .is_none();
    if gone {
        set(Wanted::default());
        return Wanted::default();
    }
    w
}

/// Asks for something else; what it was before.
pub fn set(w: Wanted) -> Wanted {
    let mut now = WANTED.lock();
    WATCHES_GC.store(
        u32::from(w.long_gc != 0 || w.large_heap != 0),
        Ordering::Relaxed,
    );
    LONG_SCHEDULE.store(w.long_schedule, Ordering::Relaxed);
    std::mem::replace(&mut *now, w)
}

/// Tells whoever asked; nobody asks any more if the process is gone. A process isn't told of itself.
fn tell(about: Term, what: Term, info: &[(&str, Term)]) {
    let w = wanted();
    if w.to == 0 {
        return;
    }
    // SAFETY: the word of a local pid.
    let to = unsafe { Term::from_raw(w.to) };
    if to == about {
        return;
    }
    let sent = signal::send_with(to, |a| {
        let items: Vec<Term> = info
            .iter()
            .map(|&(k, v)| {
                let v = purlin_term::copy::copy(v, a);
                a.tuple(&[atom::intern(k), v])
            })
            .collect();
        let list = a.list(&items);
        a.tuple(&[am::MONITOR, about, what, list])
    });
    if !sent {
        set(Wanted::default());
    }
}

fn sizes(h: &Heap) -> [(&'static str, Term); 6] {
    let n = |v: usize| Term::small(v as i64);
    let used = |a: *mut Term, b: *mut Term| (b as usize - a as usize) / 8;
    [
        ("old_heap_block_size", n(h.old_block_words())),
        ("heap_block_size", n(h.block_words())),
        ("mbuf_size", n(h.frag_words)),
        ("stack_size", n(h.stack_words())),
        ("old_heap_size", n(used(h.old_heap, h.old_htop))),
        ("heap_size", n(h.used_words())),
    ]
}

/// A collection of the process in the context took so many nanoseconds.
pub fn collected(cx: &mut Cx, took: i64) {
    if WATCHES_GC.load(Ordering::Relaxed) == 0 {
        return;
    }
    let w = wanted();
    let me = cx.self_pid();
    let ms = (took / 1_000_000).max(0) as u64;
    if w.long_gc != 0 && ms >= w.long_gc {
        let mut info = vec![(timeout_name(), Term::small(ms as i64))];
        info.extend(sizes(&cx.heap));
        tell(me, long_gc(), &info);
    }
    let words = cx.heap.block_words() + cx.heap.old_block_words() + cx.heap.frag_words;
    if w.large_heap != 0 && words as u64 >= w.large_heap {
        tell(me, large_heap(), &sizes(&cx.heap));
    }
}

fn timeout_name() -> &'static str {
    atom::name(am::TIMEOUT)
}

/// A process has run for so many nanoseconds without a break.
pub(crate) fn ran(pid: Term, took: i64) {
    let limit = LONG_SCHEDULE.load(Ordering::Relaxed);
    let ms = (took / 1_000_000).max(0) as u64;
    if limit != 0 && ms >= limit {
        tell(
            pid,
            long_schedule(),
            &[(timeout_name(), Term::small(ms as i64))],
        );
    }
}

/// A process waits because a port takes no more.
pub(crate) fn waits_for_port(pid: Term, port: Term) {
    let w = wanted();
    if w.busy_port && w.to != 0 {
        // SAFETY: the word of a local pid.
        let to = unsafe { Term::from_raw(w.to) };
        if to != pid && process::table().find(to).is_some() {
            signal::send_with(to, |a| a.tuple(&[am::MONITOR, pid, busy_port(), port]));
        }
    }
}

/// A process waits because the connection to another node takes no more.
pub fn waits_for_connection(pid: Term, port: Term) {
    let w = wanted();
    if w.busy_dist_port && w.to != 0 {
        // SAFETY: the word of a local pid.
        let to = unsafe { Term::from_raw(w.to) };
        if to != pid && process::table().find(to).is_some() {
            signal::send_with(to, |a| a.tuple(&[am::MONITOR, pid, busy_dist_port(), port]));
        }
    }
}
