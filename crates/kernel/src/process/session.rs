//! Sessions of tracing: what one traces is nobody else's business. Most have a tracer for all that they trace; in one that has
//! none, each process and port has the tracer that was asked for it.
//!
//! Tracing without a session (`erlang:trace/3`) stands apart: with a process, a port or a function there is that, and a
//! list of what sessions want. A session is over when it is destroyed, or when the last reference that owns it is gone; what is
//! left of it in a process or a port is taken away when that is looked at next.

use crate::sync::{Mutex, RwLock};
use crate::tracer::Tracer;
use purlin_term::Term;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A session of tracing.
pub struct Session {
    /// No two have the same.
    pub number: u32,
    /// An atom.
    pub name: Term,
    /// Nobody: each tracee has its own.
    tracer: Tracer,
    over: AtomicBool,
    /// Flags and tracer that new processes and new ports get. No flags: no tracer.
    new: [Mutex<(u32, Tracer)>; 2],
}

/// The tracing of a process or a port in a session.
#[derive(Clone)]
pub struct Tracing {
    pub session: Arc<Session>,
    pub flags: u32,
    /// That of the session, if it has one.
    pub tracer: Tracer,
}

/// The kind of thing that is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Made {
    Process,
    Port,
}

/// Sessions that are not over, by their numbers, which are in the order in which they began.
static ALL: RwLock<BTreeMap<u32, Arc<Session>>> = RwLock::new(BTreeMap::new());
static NEXT: AtomicU32 = AtomicU32::new(0);
/// How many sessions want new processes, and new ports, traced. Written under the lock of `ALL`.
static NEW: [AtomicU32; 2] = [AtomicU32::new(0), AtomicU32::new(0)];

/// The sessions that there are, in the order in which they began.
pub fn all() -> Vec<Arc<Session>> {
    ALL.read().values().cloned().collect()
}

/// The session of that name and number.
pub fn find(name: Term, number: u32) -> Option<Arc<Session>> {
    let all = ALL.read();
    let found = all.get(&number).filter(|s| s.name == name);
    found.cloned()
}

/// Whether any session wants what is made of that kind traced.
#[inline]
pub fn any_new(kind: Made) -> bool {
    NEW[kind as usize].load(Ordering::Relaxed) != 0
}

impl Session {
    /// A session begins. `tracer`: nobody, if each tracee has its own.
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
    /// The session is over. False: it was before.
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
    /// The tracer of all that it traces, if it has one.
    pub fn tracer(&self) -> Option<Tracer> {
        (!self.tracer.is_nobody()).then(|| self.tracer.clone())
    }
    /// Flags and tracer that what is made of that kind gets.
    pub fn new_tracing(&self, kind: Made) -> (u32, Tracer) {
        self.new[kind as usize].lock().clone()
    }
    /// Sets flags for what is made of that kind, or takes them away.
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

/// Sets flags in a list of what sessions trace, or takes them away; what is over goes. False if another tracer has it, which
/// `lives` says is there.
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
        // One that has gone doesn't mind.
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
