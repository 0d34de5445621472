//! Trace sessions, which are independent of each other. Most have one tracer for all that they
//! trace; in one without, each process and port has the tracer that was given for it.
//!
//! Tracing without a session (`erlang:trace/3`) is kept apart: a process, port or function has its
//! state for that, and a list with the state of each session. A session is over when it is
//! destroyed, or when the last reference that owns it is gone. Its leftovers in a process or a port
//! are removed when they are next looked at.
//!
//! # Orderings
//! [`Session::end`] takes the write lock of [`ALL`] and sets `over` by a swap with `AcqRel`, which
//! pairs with the `Acquire` load of [`Session::is_over`]: a thread that finds the session over also
//! sees all that happened before its end. A thread that still finds it active acts as if it had
//! come before the end; its leftovers are removed later. [`Session::change_new`] looks under the
//! same lock, so the counters [`NEW`] stay exact. These are hints to spawning threads and are
//! `Relaxed`: a process that is made at the same time as the setting changes may be traced or not.

use crate::sync::{Mutex, RwLock};
use crate::tracer::Tracer;
use purlin_term::Term;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A session of tracing.
pub struct Session {
    /// Unique number.
    pub number: u32,
    /// An atom.
    pub name: Term,
    /// Nobody, if each tracee has its own tracer.
    tracer: Tracer,
    over: AtomicBool,
    /// Flags and tracer of new processes and new ports. Without flags there is no tracer.
    new: [Mutex<(u32, Tracer)>; 2],
}

/// State of a process or port that a session traces.
#[derive(Clone)]
pub struct Tracing {
    pub session: Arc<Session>,
    pub flags: u32,
    /// The session's tracer, if it has one.
    pub tracer: Tracer,
}

/// Kind of a new tracee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    Process,
    Port,
}

/// Active sessions by number, and so in the order in which they began.
static ALL: RwLock<BTreeMap<u32, Arc<Session>>> = RwLock::new(BTreeMap::new());
static NEXT: AtomicU32 = AtomicU32::new(0);
/// Number of sessions that trace new processes, and new ports. Written under the lock of `ALL`.
static NEW: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

/// Returns the active sessions, in the order in which they began.
pub fn all() -> Vec<Arc<Session>> {
    ALL.read().values().cloned().collect()
}

pub fn find(name: Term, number: u32) -> Option<Arc<Session>> {
    let all = ALL.read();
    let found = all.get(&number).filter(|s| s.name == name);
    found.cloned()
}

/// Whether any session traces new tracees of that kind.
#[inline]
pub fn any_new(kind: Made) -> bool {
    NEW[kind as usize].load(Ordering::Relaxed) != 0
}

impl Session {
    /// Begins a session. `tracer` is nobody if each tracee has its own.
    pub fn begin(name: Term, tracer: Tracer) -> Arc<Session> {
        let mut all = ALL.write();
        let session = Arc::new(Session {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name,
            tracer,
            over: AtomicBool::new(false),
            new: Default::default(),
        });
        all.insert(session.number, session.clone());
        session
    }
    /// Ends the session. Returns false if it had ended before.
    pub fn end(&self) -> bool {
        let mut all = ALL.write();
        all.remove(&self.number);
        for (kind, n) in NEW.iter().enumerate() {
            if std::mem::take(&mut *self.new[kind].lock()).0 != 0 {
                n.fetch_sub(1, Ordering::Relaxed);
            }
        }
        !self.over.swap(true, Ordering::AcqRel)
    }
    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
    /// Returns the tracer of the whole session, if it has one.
    pub fn tracer(&self) -> Option<Tracer> {
        (!self.tracer.is_nobody()).then(|| self.tracer.clone())
    }
    /// Returns the flags and tracer of new tracees of that kind.
    pub fn new_tracing(&self, kind: Made) -> (u32, Tracer) {
        self.new[kind as usize].lock().clone()
    }
    /// Sets or clears flags of new tracees of that kind.
    pub fn change_new(&self, kind: Made, on: bool, flags: u32, tracer: Tracer) {
        let _all = ALL.write();
        if self.is_over() {
            return;
        }
        let mut new = self.new[kind as usize].lock();
        let before = new.0;
        let now = if on { before | flags } else { before & !flags };
        let tracer = if on { tracer } else { new.1.clone() };
        *new = match now {
            0 => (0, Tracer::Nobody),
            _ => (now, tracer),
        };
        match (before, now) {
            (0, n) if n != 0 => NEW[kind as usize].fetch_add(1, Ordering::Relaxed),
            (b, 0) if b != 0 => NEW[kind as usize].fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}

/// Sets or clears flags in a tracee's list of sessions, and removes sessions that are over. Returns
/// false if another tracer has it, and `lives` says that this tracer still exists.
pub fn change(
    list: &mut Vec<Tracing>,
    session: &Arc<Session>,
    (on, flags, tracer): (bool, u32, Tracer),
    lives: impl Fn(&Tracer) -> bool,
) -> bool {
    list.retain(|t| !t.session.is_over());
    match list.iter().position(|t| Arc::ptr_eq(&t.session, session)) {
        Some(i) if on => {
            let t = &mut list[i];
            if t.tracer != tracer && lives(&t.tracer) {
                return false;
            }
            t.flags |= flags;
            t.tracer = tracer;
        }
        Some(i) => {
            list[i].flags &= !flags;
            if list[i].flags == 0 {
                list.remove(i);
            }
        }
        None if on && flags != 0 && !session.is_over() => list.push(Tracing {
            session: session.clone(),
            flags,
            tracer,
        }),
        None => {}
    }
    if list.is_empty() {
        *list = Vec::new();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::am;

    /// Stands for a process.
    const ONE: Tracer = Tracer::Local(am::NORMAL);
    const OTHER: Tracer = Tracer::Local(am::TRUE);

    #[test]
    fn what_is_over_goes() {
        let (a, b) = (Session::begin(am::TRUE, ONE), Session::begin(am::TRUE, ONE));
        assert!(a.number < b.number && find(am::TRUE, b.number).is_some());
        assert!(find(am::FALSE, b.number).is_none());
        let mut list = Vec::new();
        let change = |list: &mut _, s: &_, on, flags| {
            assert!(super::change(list, s, (on, flags, ONE), |_| true));
        };
        change(&mut list, &a, true, 3);
        change(&mut list, &b, true, 4);
        change(&mut list, &a, false, 1);
        assert_eq!(list.iter().map(|t| t.flags).collect::<Vec<_>>(), [2, 4]);
        change(&mut list, &b, false, u32::MAX);
        assert_eq!(list.len(), 1);
        a.change_new(Made::Port, true, 5, ONE);
        assert!(any_new(Made::Port) && a.new_tracing(Made::Port) == (5, ONE));
        assert!(a.end() && !a.end() && !any_new(Made::Port));
        a.change_new(Made::Port, true, 5, ONE);
        assert!(!any_new(Made::Port));
        change(&mut list, &b, true, 1);
        assert!(list.len() == 1 && Arc::ptr_eq(&list[0].session, &b));
        b.end();
        change(&mut list, &b, true, 1);
        assert!(list.is_empty());
    }

    #[test]
    fn one_tracer_each() {
        let s = Session::begin(am::TRUE, Tracer::Nobody);
        assert!(s.tracer().is_none());
        let mut list = Vec::new();
        assert!(change(&mut list, &s, (true, 1, ONE), |_| true));
        assert!(!change(&mut list, &s, (true, 2, OTHER), |_| true));
        assert!(list[0].tracer == ONE && list[0].flags == 1);
        // A tracer that has ended doesn't object.
        assert!(change(&mut list, &s, (true, 2, OTHER), |_| false));
        assert!(list[0].tracer == OTHER && list[0].flags == 3);
        s.change_new(Made::Process, true, 3, ONE);
        s.change_new(Made::Process, false, 1, Tracer::Nobody);
        assert!(s.new_tracing(Made::Process) == (2, ONE));
        s.change_new(Made::Process, false, 2, Tracer::Nobody);
        assert!(s.new_tracing(Made::Process) == (0, Tracer::Nobody));
        s.end();
    }
}
