//! Events of processes: creation, links, scheduling; and tracing that new and linked processes
//! inherit.

use super::calls::effects::retrace;
use super::calls::measures;
use crate::cx::Cx;
use crate::events::flag;
use crate::events::{NEW_PROCESSES, Tie};
use crate::process::session::{self, Made, Session};
use crate::process::{self, Process, TRACED};
use crate::trace::emit::event;
use crate::trace::frames::Which;
use crate::trace::state::{change, drop_tracer, live_state, who};
use crate::tracer::Tracer;
use crate::{lazy_atoms, signal};
use purlin_term::frag::Fragment;
use purlin_term::release::{self, INHERITS_TRACE_ALONE};
use purlin_term::{Alloc, Term, am};
use smallvec::SmallVec;
use std::sync::Arc;

lazy_atoms! {
    spawned = "spawned";
    in_ = "in";
    out = "out";
    getting_linked = "getting_linked";
    getting_unlinked = "getting_unlinked";
    unlink = "unlink";
    register = "register";
    unregister = "unregister";
}

/// Flags that a process traced with these loses when it is linked, and that the linked process does
/// not inherit.
fn once_linked(flags: u32) -> u32 {
    match flags & flag::SET_ON_FIRST_LINK {
        0 => 0,
        _ => flag::SET_ON_FIRST_LINK | flag::SET_ON_LINK,
    }
}

/// Inherits tracing to the process that a traced process, which the caller owns, is about to be
/// linked to. Its tracing begins before the link does, if the flags say so.
#[cold]
pub(crate) fn links(p: &mut Process, with: Term) {
    for (which, flags, tracer) in who(p, flag::SET_ON_LINK | flag::SET_ON_FIRST_LINK) {
        let off = once_linked(flags);
        if off != 0 {
            change(p, which.as_ref(), false, off, Tracer::Nobody);
        }
        let task = Box::new(move |cx: Option<&mut Cx>| {
            if let Some(cx) = cx {
                retrace(cx.process(), which.as_ref(), tracer, off, flags & !off);
            }
        });
        signal::send::run_in(with, task);
    }
}

/// The tracing of a new process: `flags` and `tracer` for all new processes, and those of the
/// parent if it is traced and its flags say so.
fn inherit(
    which: Which,
    (mut flags, mut tracer): (u32, Tracer),
    parent: Option<&mut Process>,
    child: &mut Process,
    linked: bool,
) {
    if let Some(p) = parent {
        let (f, t) = live_state(p, which);
        let mut off = 0;
        if f & flag::SET_ON_FIRST_SPAWN != 0 {
            off |= flag::SET_ON_FIRST_SPAWN | flag::SET_ON_SPAWN;
        }
        if linked {
            off |= once_linked(f);
        }
        if f & (flag::SET_ON_SPAWN | flag::SET_ON_FIRST_SPAWN) != 0
            || linked && f & (flag::SET_ON_LINK | flag::SET_ON_FIRST_LINK) != 0
        {
            if release::has(INHERITS_TRACE_ALONE) {
                flags = 0;
            }
            flags = (flags | f) & !off;
            tracer = t;
            if off != 0 {
                change(p, which, false, off, Tracer::Nobody);
            }
        }
    }
    if flags != 0 {
        change(child, which, true, flags, tracer);
    }
}

/// Handles the creation of a process: what it inherits, and the events of both.
///
/// # Safety
/// `parent` is null or owned by the caller, and so is `child`.
pub unsafe fn spawn(parent: *mut Process, child: &mut Process, linked: bool, mfa: [Term; 3]) {
    let mut new = (0, Tracer::Nobody);
    let system = child.has(process::SYSTEM);
    if NEW_PROCESSES.any() && !system {
        new = NEW_PROCESSES.get();
    }
    // SAFETY: by the contract of this function.
    let mut both = unsafe { parent.as_mut() }.filter(|p| p.has(TRACED));
    let mut sessions: SmallVec<[Arc<Session>; 2]> = SmallVec::new();
    if let Some(e) = both.as_mut().and_then(|p| p.ext()) {
        let traced = e.sessions.iter().filter(|t| !t.session.is_over());
        sessions.extend(traced.map(|t| t.session.clone()));
    }
    if session::any_new(Made::Process) && !system {
        for s in session::all() {
            let wants = s.new_tracing(Made::Process).0 != 0;
            if wants && !sessions.iter().any(|t| Arc::ptr_eq(t, &s)) {
                sessions.push(s);
            }
        }
    }
    for s in &sessions {
        let new = match system {
            true => (0, Tracer::Nobody),
            false => s.new_tracing(Made::Process),
        };
        inherit(Some(s), new, both.as_deref_mut(), child, linked);
    }
    inherit(None, new, both.as_deref_mut(), child, linked);
    let mut f = Fragment::new();
    let call = f.tuple(&mfa);
    let pid = child.pid();
    if let Some(p) = both {
        event(p, flag::PROCS, &[am::SPAWN, pid, call]);
        if linked {
            event(p, flag::PROCS, &[am::LINK, pid]);
        }
        event(child, flag::PROCS, &[spawned(), p.pid(), call]);
        if linked {
            event(child, flag::PROCS, &[getting_linked(), p.pid()]);
        }
    } else if child.has(TRACED) {
        let by = Term::pid(child.parent);
        event(child, flag::PROCS, &[spawned(), by, call]);
    }
}

#[cold]
pub(crate) fn tied(p: &mut Process, what: Tie, other: Term) {
    let tag = match what {
        Tie::Link => am::LINK,
        Tie::Unlink => unlink(),
        Tie::GettingLinked => getting_linked(),
        Tie::GettingUnlinked => getting_unlinked(),
        Tie::Register => register(),
        Tie::Unregister => unregister(),
    };
    event(p, flag::PROCS, &[tag, other]);
}

/// A process that the caller owns starts (`true`) or stops running, at `pc`.
#[cold]
pub fn scheduled(p: &mut Process, starts: bool, pc: *const u64) {
    measures::pause(p, !starts);
    if starts {
        // Tracer modules are asked whether they still want its events.
        for (which, _, tracer) in who(p, u32::MAX) {
            if matches!(tracer, Tracer::Module(_)) && !tracer.lives(p.pid()) {
                drop_tracer(p, which.as_ref());
            }
        }
    }
    if who(p, flag::RUNNING | flag::RUNNING_PROCS).is_empty() {
        return;
    }
    let tag = if starts { in_() } else { out() };
    let mut f = Fragment::new();
    let place = match crate::code::find(pc) {
        Some(at) => f.tuple(&[at.module, at.function, Term::small(at.arity.into())]),
        None => Term::small(0),
    };
    event(p, flag::RUNNING | flag::RUNNING_PROCS, &[tag, place]);
}
