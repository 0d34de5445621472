//! Tracing: sends events of traced processes to their tracers.
//!
//! # Invariants
//! * A process's tracing is recorded with the process ([`crate::process::Ext`]). Only its owner
//!   changes it; others ask by a task. [`TRACED`] in its flags says that there is anything to look
//!   at, which is all that an untraced process pays.
//! * The thread that runs the traced process sends the trace messages, in the order of the events.
//!   So a tracer sees the events of one process in order.
//! * A tracer is a local process, which gets messages; or a port, which gets the same terms in the
//!   external format; or a module whose functions, in a native library, are called ([`module`]).
//!   When a tracer has ended, those it traced stop being traced at their next event.

pub mod calls;
pub mod messages;
pub(crate) mod module;
pub mod monitor;
pub mod profile;
pub mod sequential;
pub(crate) mod sessions;
pub mod watch;

use crate::code::Module;
use crate::code::breakpoint::Breakpoints;
use crate::cx::Cx;
use crate::events::Sink;
pub use crate::events::{Defaults, GC_SLEEP_MS, NEW_PORTS, NEW_PROCESSES, Tie, flag, lives, tie};
use crate::process::session::{self, Made, Session};
use crate::process::{self, Process, TRACED};
use crate::tracer::{OfModule, Tracer};
use crate::{clock, lazy_atoms, port, signal};
use purlin_term::etf::encode::{Options, encode};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::release::{self, INHERITS_TRACE_ALONE, PATTERNS_STOP_PORTS};
use purlin_term::{Alloc, Term, am, copy};
use smallvec::SmallVec;
use std::sync::Arc;

lazy_atoms! {
    trace_ts = "trace_ts";
    receive = "receive";
    system = "system";
    send_to_non_existing_process = "send_to_non_existing_process";
    spawned = "spawned";
    in_ = "in";
    out = "out";
    out_exited = "out_exited";
    getting_linked = "getting_linked";
    getting_unlinked = "getting_unlinked";
    unlink = "unlink";
    register = "register";
    unregister = "unregister";
    gc_minor_start = "gc_minor_start";
    gc_minor_end = "gc_minor_end";
    gc_major_start = "gc_major_start";
    gc_major_end = "gc_major_end";
    old_heap_size = "old_heap_size";
    mbuf_size = "mbuf_size";
    heap_size = "heap_size";
}

/// Sends the term that `f` builds to a tracer that is a process or port. Returns false if the
/// tracer no longer exists.
pub fn tell(tracer: Term, f: impl FnOnce(&mut dyn Alloc) -> Term) -> bool {
    if !tracer.is_local_port() {
        return tracer.is_local_pid() && signal::send_with(tracer, f);
    }
    port::traced::event(tracer, encoded(f))
}

/// The term that `f` builds, in the external format.
fn encoded(f: impl FnOnce(&mut dyn Alloc) -> Term) -> Vec<u8> {
    let mut frag = Fragment::new();
    let t = f(&mut frag);
    let event = OwnedTerm::from_parts(t, frag);
    encode(event.term(), Options::default())
}

/// The side that traces: a session, or `None` for tracing without one.
pub(crate) type Which<'a> = Option<&'a Arc<Session>>;

/// The number that stands for a side in frames and measures.
pub(crate) fn number_of(which: Which) -> i64 {
    which.map_or(-1, |s| s.number.into())
}

/// Changes the tracing of a process, on behalf of its owner. Returns false if it has another
/// tracer.
pub(crate) fn change(p: &mut Process, which: Which, on: bool, flags: u32, tracer: Tracer) -> bool {
    let me = p.pid();
    let e = p.ext_mut();
    if let Some(s) = which {
        if !session::change(&mut e.sessions, s, (on, flags, tracer), |t| t.lives(me)) {
            return false;
        }
    } else if on {
        if e.trace_flags != 0 && e.tracer != tracer && e.tracer.lives(me) {
            return false;
        }
        e.tracer = tracer;
        e.trace_flags |= flags;
    } else {
        e.trace_flags &= !flags;
        if e.trace_flags == 0 {
            e.tracer = Tracer::Nobody;
        }
    }
    if !on && flags & flag::CALL != 0 && !e.call_time.is_empty() {
        calls::stop_measuring(&mut e.call_time, which);
    }
    let any = e.trace_flags != 0 || !e.sessions.is_empty();
    p.set_flag(TRACED, any);
    true
}

/// Removes what sessions that are over have left with a process that the caller owns.
pub(crate) fn drop_over(p: &mut Process) {
    let Some(e) = p.ext().filter(|e| !e.sessions.is_empty()) else {
        return;
    };
    e.sessions.retain(|t| !t.session.is_over());
    let any = e.trace_flags != 0 || !e.sessions.is_empty();
    p.set_flag(TRACED, any);
}

/// Flags and tracer of a process that the caller owns.
pub(crate) fn state(p: &mut Process, which: Which) -> (u32, Tracer) {
    let Some(e) = p.ext() else {
        return (0, Tracer::Nobody);
    };
    match which {
        None => (e.trace_flags, e.tracer.clone()),
        Some(s) if s.is_over() => (0, Tracer::Nobody),
        Some(s) => {
            let mut all = e.sessions.iter();
            let found = all.find(|t| Arc::ptr_eq(&t.session, s));
            found.map_or((0, Tracer::Nobody), |t| (t.flags, t.tracer.clone()))
        }
    }
}

/// Stops tracing a process that the caller owns.
pub(crate) fn drop_tracer(p: &mut Process, which: Which) {
    change(p, which, false, u32::MAX, Tracer::Nobody);
}

/// As [`state`], but stops the tracing if the tracer has ended.
pub(crate) fn live_state(p: &mut Process, which: Which) -> (u32, Tracer) {
    let (_, tracer) = state(p, which);
    if !tracer.is_nobody() && !tracer.lives(p.pid()) {
        drop_tracer(p, which);
    }
    state(p, which)
}

/// Tracers of a process that the caller owns: session, flags, tracer.
type Many = SmallVec<[(Option<Arc<Session>>, u32, Tracer); 2]>;

/// The tracers of a process that the caller owns, for any of the flags `wanted`; sessions first.
pub(crate) fn who(p: &mut Process, wanted: u32) -> Many {
    let mut all = Many::new();
    if p.has(process::SENSITIVE) {
        return all;
    }
    let Some(e) = p.ext() else { return all };
    for t in e.sessions.iter().filter(|t| t.flags & wanted != 0) {
        if !t.session.is_over() {
            all.push((Some(t.session.clone()), t.flags, t.tracer.clone()));
        }
    }
    if e.trace_flags & wanted != 0 {
        all.push((None, e.trace_flags, e.tracer.clone()));
    }
    all
}

/// A timestamp as requested by the flags; `None` if they request none.
pub fn timestamp(a: &mut dyn Alloc, flags: u32) -> Option<Term> {
    // The first of these wins if several are requested.
    if flags & flag::TIMESTAMP != 0 {
        // As `erlang:now/0`, which never returns the same time twice.
        let us = clock::now_micros();
        let v = [
            Term::small(us / 1_000_000_000_000),
            Term::small(us / 1_000_000 % 1_000_000),
            Term::small(us % 1_000_000),
        ];
        Some(a.tuple(&v))
    } else if flags & flag::STRICT_MONOTONIC != 0 {
        let t = a.int(clock::monotonic());
        let n = crate::ids::unique_integer(a, crate::ids::unique_monotonic(), false);
        Some(a.tuple(&[t, n]))
    } else if flags & flag::MONOTONIC != 0 {
        Some(a.int(clock::monotonic()))
    } else {
        None
    }
}

/// Reports an event to a tracer. Returns false if the tracer has ended, or no longer wants this.
///
/// `items` are the tag, the subject, and further terms of some events. `wanted` is the flag of the
/// event, `flags` are those of `pid`, and `result` is the term that a match specification adds,
/// `true` for none. A process or port gets `{trace, Pid, Items…}`, with a timestamp if `flags`
/// request one.
pub(crate) fn emit(
    tracer: &Tracer,
    flags: u32,
    pid: Term,
    wanted: u32,
    items: &[Term],
    result: Term,
) -> bool {
    if let Tracer::Module(m) = tracer {
        match module::wants(m, wanted, items[0], pid) {
            module::Answer::Trace => {}
            module::Answer::Discard => return true,
            // As in stock, these events of a process do not end its tracing.
            module::Answer::Remove => {
                return pid.is_local_pid() && wanted & (flag::PROCS | flag::RECEIVE) != 0;
            }
        }
    }
    emit_unasked(tracer, flags, pid, wanted, items, result)
}

/// The term that describes an event.
fn event_of(a: &mut dyn Alloc, flags: u32, pid: Term, items: &[Term], result: Term) -> Term {
    let mut v = vec![am::TRACE, pid];
    v.extend(items.iter().map(|&t| copy::copy(t, a)));
    if result != am::TRUE {
        v.push(copy::copy(result, a));
    }
    stamp(a, flags, &mut v);
    a.tuple(&v)
}

/// As [`emit`], for events that a tracer module is not asked about.
pub(crate) fn emit_unasked(
    tracer: &Tracer,
    flags: u32,
    pid: Term,
    wanted: u32,
    items: &[Term],
    result: Term,
) -> bool {
    match tracer {
        Tracer::Nobody => false,
        // Nothing is reported to a process about itself.
        Tracer::Local(to) if *to == pid => true,
        Tracer::Local(to) => tell(*to, |a| event_of(a, flags, pid, items, result)),
        Tracer::Module(m) => {
            emit_to_module((m.module, m.state()), flags, pid, wanted, items, result);
            true
        }
    }
}

/// The same for a tracer module and its state.
fn emit_to_module(
    (name, state): (Term, Term),
    flags: u32,
    pid: Term,
    wanted: u32,
    items: &[Term],
    result: Term,
) {
    let within = pid.is_local_pid() && wanted & (flag::PROCS | flag::RECEIVE) == 0;
    let event = module::Event {
        wanted,
        tag: items[0],
        of: pid,
        message: items[1],
        extra: items.get(2).copied(),
        result,
        who: if within { pid } else { Term::NON_VALUE },
    };
    module::tell(name, state, flags, &event);
}

/// Appends to an event what the flags request: the number of the scheduler, the time.
fn stamp(a: &mut dyn Alloc, flags: u32, v: &mut Vec<Term>) {
    if flags & flag::SCHEDULER_ID != 0 {
        v.push(Term::small(crate::sched::current() as i64));
    }
    if let Some(t) = timestamp(a, flags) {
        v[0] = trace_ts();
        v.push(t);
    }
}

/// An argument as tracers see it: a match context appears as the rest of its binary.
fn argument(cx: &mut Cx, t: Term) -> Term {
    if t.is_match_context() {
        crate::interp::bits::rest_of_context(cx, t)
    } else {
        t
    }
}

/// Reports an event of a process that the caller owns, if it is traced for it.
fn event(p: &mut Process, wanted: u32, items: &[Term]) {
    let pid = p.pid();
    for (which, flags, tracer) in who(p, wanted) {
        if !tracer.is(pid) && !emit(&tracer, flags, pid, wanted, items, am::TRUE) {
            drop_tracer(p, which.as_ref());
        }
    }
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
                calls::retrace(cx.process(), which.as_ref(), tracer, off, flags & !off);
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
fn tied(p: &mut Process, what: Tie, other: Term) {
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
    calls::pause(p, !starts);
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

/// Words in use of a heap, from the information before or after a collection.
fn used_of(info: Term) -> i64 {
    let rows = info.list_iter().filter_map(|t| t.as_tuple());
    let used = rows.filter_map(|t| match *t {
        [k, v] if [old_heap_size(), mbuf_size(), heap_size()].contains(&k) => v.as_small(),
        _ => None,
    });
    used.sum()
}

/// Notifies tracers, the system monitor, the profiler and the sequential tracer.
pub(crate) struct Tracers;

impl Sink for Tracers {
    fn tied(&self, p: &mut Process, what: Tie, other: Term) {
        tied(p, what, other);
    }
    fn timed_out(&self, p: &mut Process) {
        event(p, flag::RECEIVE, &[receive(), am::TIMEOUT]);
    }
    fn exited(&self, p: &mut Process, reason: Term) {
        event(p, flag::PROCS, &[am::EXIT, reason]);
        // A process exits in one go, so it has no other scheduling events meanwhile.
        event(p, flag::EXITING, &[out_exited(), Term::small(0)]);
    }
    unsafe fn spawned(
        &self,
        parent: *mut Process,
        child: &mut Process,
        linked: bool,
        mfa: [Term; 3],
    ) {
        // SAFETY: by the contract of this function.
        unsafe { spawn(parent, child, linked, mfa) }
    }
    fn scheduled(&self, p: &mut Process, starts: bool, pc: *const u64) {
        scheduled(p, starts, pc);
    }
    fn collected(&self, cx: &mut Cx, (before, after): (Term, Term), nanoseconds: i64, shown: bool) {
        calls::collected(cx.process(), used_of(before), used_of(after));
        if !shown {
            return;
        }
        // Whether it was a full sweep is known only now, so both events are reported now.
        let (start, end) = if cx.heap.minor_gcs == 0 {
            (gc_major_start(), gc_major_end())
        } else {
            (gc_minor_start(), gc_minor_end())
        };
        event(cx.process(), flag::GC, &[start, before]);
        event(cx.process(), flag::GC, &[end, after]);
        monitor::collected(cx, nanoseconds);
    }
    fn sending(&self, cx: &mut Cx, to: Term, msg: Term) {
        messages::sending(cx, to, msg);
    }
    fn received(&self, cx: &mut Cx, from: Option<Term>, msg: Term) {
        messages::received(cx, from, msg);
    }
    fn sequential(&self, token: &sequential::Token, what: Term, to: Term, msg: Term) {
        sequential::tell(token, what, to, msg);
    }
    fn ran(&self, pid: Term, nanoseconds: i64) {
        monitor::ran(pid, None, nanoseconds);
    }
    fn port_ran(&self, port: Term, op: &'static str, nanoseconds: i64) {
        monitor::ran(port, Some(op), nanoseconds);
    }
    fn queue_changed(&self, p: &mut Process) {
        monitor::queue_changed(p);
    }
    fn waits_for_port(&self, pid: Term, port: Term) {
        monitor::waits_for_port(pid, port);
    }
    fn waits_for_connection(&self, pid: Term, controller: Term) {
        monitor::waits_for_connection(pid, controller);
    }
    fn process_is(&self, p: &Process, active: bool, pc: Option<*const u64>) {
        profile::process_event(p, active, pc);
    }
    fn scheduler_is(&self, number: usize, busy: bool, count: usize) {
        profile::scheduler_event(number, busy, count);
    }
    fn port_event(
        &self,
        tracer: &Tracer,
        flags: u32,
        port: Term,
        wanted: u32,
        items: &[Term],
    ) -> bool {
        emit(tracer, flags, port, wanted, items, am::TRUE)
    }
    fn event_of_port(&self, flags: u32, port: Term, items: &[Term]) -> Vec<u8> {
        encoded(|a| event_of(a, flags, port, items, am::TRUE))
    }
    fn tells_of_sent(&self, session: Option<&Arc<Session>>) -> bool {
        !release::has(PATTERNS_STOP_PORTS)
            || !matches!(
                messages::pattern(session, false),
                messages::Pattern::Nothing
            )
    }
    fn tracer_lives(&self, tracer: &OfModule, tracee: Term) -> bool {
        module::lives(tracer.module, tracer.state(), tracee)
    }
    fn counts_sequence(&self, pid: Term) -> bool {
        sequential::counts(pid)
    }
    fn returned(&self, cx: &mut Cx, frame: [Term; 5], class: Option<Term>, value: Term) {
        calls::returned(cx, frame, class, value);
    }
    fn measured(&self, cx: &mut Cx, frame: [Term; 2]) {
        calls::measured(cx, frame);
    }
    fn returned_to(&self, cx: &mut Cx, whom: Term, pc: *const u64) {
        calls::returned_to(cx, whom, pc);
    }
}

impl Breakpoints for Tracers {
    fn forget(&self, code: std::ops::Range<usize>) {
        calls::forget(code);
    }
    fn outdated(&self, code: std::ops::Range<usize>) {
        calls::outdated(code);
    }
    fn loaded(&self, module: &Module) {
        calls::loaded(module);
    }
    fn traced_apply(&self) -> Option<*const u64> {
        calls::find_traced_apply()
    }
    fn passes(&self, cx: &mut Cx, pc: *const u64, caller: *const u64) -> Option<calls::Passed> {
        calls::pass(cx, pc, caller)
    }
}
