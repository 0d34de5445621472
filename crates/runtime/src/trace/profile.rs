//! `erlang:system_profile/2`: processes that become active or inactive.
//!
//! The thread that owns a process reports `active` when its first time slice after a wait begins,
//! and `inactive` before it waits, is suspended or exits. So the events of a process come in order.
//! Ports work on the threads that use them and are never queued, so they have no events.

use crate::events::PROFILED;
pub use crate::events::profile as flag;
use crate::lazy_atoms;
use crate::process::{self, Process};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, am};
use std::sync::atomic::Ordering;

lazy_atoms! {
    profile = "profile";
    inactive = "inactive";
    scheduler = "scheduler";
}

/// A requested profile.
#[derive(Clone, Copy, Default)]
pub struct Profile {
    /// Word of the pid or port that gets the events; 0 for nobody.
    pub to: u64,
    pub flags: u32,
    /// One of the flags for timestamps in [`crate::events::flag`].
    pub time: u32,
}

static PROFILE: Mutex<Profile> = Mutex::new(Profile {
    to: 0,
    flags: 0,
    time: 0,
});
/// Replaces the requested profile and returns the old one.
pub fn set(p: Profile) -> Profile {
    let mut now = PROFILE.lock();
    PROFILED.store(p.flags, Ordering::Relaxed);
    std::mem::replace(&mut *now, p)
}

/// The requested profile; none if its receiver has ended.
pub fn get() -> Profile {
    let p = *PROFILE.lock();
    // SAFETY: the word of a local pid or port.
    let gone = p.to != 0 && {
        let to = unsafe { Term::from_raw(p.to) };
        !crate::events::lives(to)
    };
    if gone {
        set(Profile::default());
        return Profile::default();
    }
    p
}

/// Sends `{profile, Items…, Time}`.
fn tell(p: Profile, items: impl FnOnce(&mut dyn Alloc) -> Vec<Term>) {
    // SAFETY: the word of a local pid or port.
    let to = unsafe { Term::from_raw(p.to) };
    let sent = super::emit::tell(to, |a| {
        let mut v = vec![profile()];
        v.extend(items(a));
        v.extend(super::emit::timestamp(a, p.time));
        a.tuple(&v)
    });
    if !sent {
        set(Profile::default());
    }
}

/// Reports the state of a process that the caller owns. `pc` says where it is, unless it has
/// exited.
pub(crate) fn process_event(p: &Process, is_active: bool, pc: Option<*const u64>) {
    let now = get();
    let pid = p.pid();
    if now.flags & flag::RUNNABLE_PROCS == 0 || now.to == pid.raw() || p.has(process::SYSTEM) {
        return;
    }
    // A new process has yet to call its function. SAFETY: exports are never freed.
    let first = unsafe { p.initial_call.as_ref() }.filter(|_| p.reductions == 0 && pc.is_some());
    tell(now, |a| {
        let arity = |n: u32| Term::small(i64::from(n));
        let place = match (first, pc.and_then(crate::code::find)) {
            (Some(x), _) => a.tuple(&[x.module, x.function, arity(x.arity)]),
            (None, Some(at)) => a.tuple(&[at.module, at.function, arity(at.arity)]),
            (None, None) => Term::small(0),
        };
        let state = if is_active { am::ACTIVE } else { inactive() };
        vec![pid, state, place]
    });
}

#[cold]
pub(crate) fn scheduler_event(number: usize, busy: bool, count: usize) {
    let now = get();
    if now.flags & flag::SCHEDULER != 0 {
        tell(now, |_| {
            vec![
                scheduler(),
                Term::small(number as i64),
                if busy { am::ACTIVE } else { inactive() },
                Term::small(count as i64),
            ]
        });
    }
}
