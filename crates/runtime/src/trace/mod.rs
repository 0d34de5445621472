//! Tracing: events of traced processes as messages to their tracers.
//!
//! # Invariants
//! * Whether and how a process is traced stands with the process ([`crate::process::Ext`]) and is changed by its owner
//!   only: others ask it to by a task. [`TRACED`] in its flags says that there is anything to look at, which is all
//!   that an untraced process pays.
//! * Trace messages are sent by the thread that runs the traced process, in the order of the events; so one tracer
//!   sees the events of one process in order.
//! * A tracer is a local process, which gets messages, or a port, which gets the same terms in the external format. When it
//!   is gone, those it traced stop being traced at their next event.

pub mod calls;
pub mod messages;
pub mod monitor;
pub mod profile;
pub mod saved;
pub mod sequential;

use crate::cx::Cx;
use crate::process::{self, Process, SAVES, TRACED};
use crate::{clock, lazy_atoms, msacc, port, signal};
use purlin_term::etf::encode::{Options, encode};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Alloc, NIL, Term, am, copy};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

lazy_atoms! {
    trace_ts = "trace_ts";
    receive = "receive";
    system = "system";
    send_to_non_existing_process = "send_to_non_existing_process";
    spawned = "spawned";
    in_ = "in";
    out = "out";
    getting_linked = "getting_linked";
    getting_unlinked = "getting_unlinked";
    unlink = "unlink";
    register = "register";
    unregister = "unregister";
    gc_minor_start = "gc_minor_start";
    gc_minor_end = "gc_minor_end";
    gc_major_start = "gc_major_start";
    gc_major_end = "gc_major_end";
}

/// Flags of a traced process.
pub mod flag {
    pub const SEND: u32 = 1;
    pub const RECEIVE: u32 = 1 << 1;
    pub const PROCS: u32 = 1 << 2;
    pub const RUNNING: u32 = 1 << 3;
    pub const GC: u32 = 1 << 4;
    pub const CALL: u32 = 1 << 5;
    pub const ARITY: u32 = 1 << 6;
    pub const RETURN_TO: u32 = 1 << 7;
    pub const SILENT: u32 = 1 << 8;
    pub const SET_ON_SPAWN: u32 = 1 << 9;
    pub const SET_ON_FIRST_SPAWN: u32 = 1 << 10;
    pub const SET_ON_LINK: u32 = 1 << 11;
    pub const SET_ON_FIRST_LINK: u32 = 1 << 12;
    pub const TIMESTAMP: u32 = 1 << 13;
    pub const MONOTONIC: u32 = 1 << 14;
    pub const STRICT_MONOTONIC: u32 = 1 << 15;
    pub const EXITING: u32 = 1 << 16;
    pub const RUNNING_PROCS: u32 = 1 << 17;
    pub const PORTS: u32 = 1 << 18;
    pub const RUNNING_PORTS: u32 = 1 << 19;
    /// Events tell the number of the scheduler; not part of `all`.
    pub const SCHEDULER_ID: u32 = 1 << 20;
    /// Flags that say how, or that processes and ports have both.
    pub const BOTH: u32 =
        SILENT | TIMESTAMP | MONOTONIC | STRICT_MONOTONIC | SCHEDULER_ID | RECEIVE | SEND;
    /// Flags of ports.
    pub const OF_PORTS: u32 = BOTH | PORTS | RUNNING_PORTS;
    /// Flags of processes.
    pub const OF_PROCESSES: u32 = ((ALL | SCHEDULER_ID) & !OF_PORTS) | BOTH;
    /// What `all` stands for.
    pub const ALL: u32 = SEND
        | RECEIVE
        | PROCS
        | RUNNING
        | GC
        | CALL
        | ARITY
        | RETURN_TO
        | SILENT
        | SET_ON_SPAWN
        | SET_ON_FIRST_SPAWN
        | SET_ON_LINK
        | SET_ON_FIRST_LINK
        | TIMESTAMP
        | MONOTONIC
        | STRICT_MONOTONIC
        | EXITING
        | RUNNING_PROCS
        | PORTS
        | RUNNING_PORTS;
    /// The names, in the order in which stock lists them.
    pub const NAMES: &[(&str, u32)] = &[
        ("send", SEND),
        ("receive", RECEIVE),
        ("set_on_spawn", SET_ON_SPAWN),
        ("call", CALL),
        ("procs", PROCS),
        ("ports", PORTS),
        ("set_on_first_spawn", SET_ON_FIRST_SPAWN),
        ("set_on_link", SET_ON_LINK),
        ("set_on_first_link", SET_ON_FIRST_LINK),
        ("running", RUNNING),
        ("running_procs", RUNNING_PROCS),
        ("running_ports", RUNNING_PORTS),
        ("garbage_collection", GC),
        ("timestamp", TIMESTAMP),
        ("monotonic_timestamp", MONOTONIC),
        ("strict_monotonic_timestamp", STRICT_MONOTONIC),
        ("arity", ARITY),
        ("return_to", RETURN_TO),
        ("silent", SILENT),
        ("exiting", EXITING),
        ("scheduler_id", SCHEDULER_ID),
    ];
}

/// Whether `t` is a local process or port that is there.
pub fn lives(t: Term) -> bool {
    if t.is_local_pid() {
        process::table().find(t).is_some()
    } else {
        port::find(t).is_some_and(|p| port::is_open(&p))
    }
}

/// Gives a tracer what `f` builds. False: there is no such tracer any more.
pub fn tell(tracer: Term, f: impl FnOnce(&mut dyn Alloc) -> Term) -> bool {
    if !tracer.is_local_port() {
        return signal::send_with(tracer, f);
    }
    let mut frag = Fragment::new();
    let t = f(&mut frag);
    let event = OwnedTerm::from_parts(t, frag);
    port::trace_event(tracer, &encode(event.term(), Options::default()))
}

/// Flags and tracer that what is made from now on gets; 0 flags if none. The tracer is changed under the lock only.
pub struct Defaults {
    flags: AtomicU32,
    tracer: Mutex<Term>,
}

/// Of processes.
pub static NEW_PROCESSES: Defaults = Defaults::new();
/// Of ports.
pub static NEW_PORTS: Defaults = Defaults::new();

impl Defaults {
    const fn new() -> Defaults {
        Defaults {
            flags: AtomicU32::new(0),
            tracer: Mutex::new(NIL),
        }
    }
    fn any(&self) -> bool {
        self.flags.load(Ordering::Relaxed) != 0
    }
    /// Flags and tracer.
    pub fn get(&self) -> (u32, Term) {
        if !self.any() {
            return (0, NIL);
        }
        let mut t = self.tracer.lock().unwrap_or_else(|e| e.into_inner());
        if *t != NIL && !lives(*t) {
            *t = NIL;
            self.flags.store(0, Ordering::Relaxed);
        }
        (self.flags.load(Ordering::Relaxed), *t)
    }
    /// Sets flags, or takes them away.
    pub fn change(&self, on: bool, flags: u32, tracer: Term) {
        let mut t = self.tracer.lock().unwrap_or_else(|e| e.into_inner());
        let before = self.flags.load(Ordering::Relaxed);
        let now = if on { before | flags } else { before & !flags };
        if now == 0 {
            *t = NIL;
        } else if on {
            *t = tracer;
        }
        self.flags.store(now, Ordering::Relaxed);
    }
}

/// Changes what a process is traced for; the owner calls this. False if another tracer has it.
pub fn change(p: &mut Process, on: bool, flags: u32, tracer: Term) -> bool {
    let e = p.ext_mut();
    if on {
        if e.trace_flags != 0 && e.tracer != tracer && lives(e.tracer) {
            return false;
        }
        e.tracer = tracer;
        e.trace_flags |= flags;
    } else {
        e.trace_flags &= !flags;
        if e.trace_flags & flag::CALL == 0 {
            e.call_time = None;
        }
        if e.trace_flags == 0 {
            e.tracer = NIL;
        }
    }
    let any = e.trace_flags != 0;
    p.set_flag(TRACED, any);
    true
}

/// Flags and tracer of a process that the caller owns.
pub fn state(p: &mut Process) -> (u32, Term) {
    p.ext().map_or((0, NIL), |e| (e.trace_flags, e.tracer))
}

/// As [`state`]; where the tracer has gone the process is not traced any more.
pub fn live_state(p: &mut Process) -> (u32, Term) {
    let (_, tracer) = state(p);
    if tracer != NIL && !lives(tracer) {
        change(p, false, u32::MAX, NIL);
    }
    state(p)
}

/// A time as the flags want it; None if they want none.
pub fn timestamp(a: &mut dyn Alloc, flags: u32) -> Option<Term> {
    // Where several are asked for, the first of these.
    if flags & flag::TIMESTAMP != 0 {
        // As `erlang:now/0`: no two are the same.
        let us = clock::now_micros();
        let v = [
            Term::small(us / 1_000_000_000_000),
            Term::small(us / 1_000_000 % 1_000_000),
            Term::small(us % 1_000_000),
        ];
        Some(a.tuple(&v))
    } else if flags & flag::STRICT_MONOTONIC != 0 {
        let t = a.int(clock::monotonic());
        let n = a.int(crate::ids::unique_monotonic());
        Some(a.tuple(&[t, n]))
    } else if flags & flag::MONOTONIC != 0 {
        Some(a.int(clock::monotonic()))
    } else {
        None
    }
}

/// Sends `{trace, Pid, Items…}`, with a timestamp if `flags` ask for one. False: there is no tracer any more.
pub(crate) fn emit(tracer: Term, flags: u32, pid: Term, items: &[Term]) -> bool {
    tell(tracer, |a| {
        let mut v = vec![am::TRACE, pid];
        v.extend(items.iter().map(|&t| copy::copy(t, a)));
        stamp(a, flags, &mut v);
        a.tuple(&v)
    })
}

/// Puts behind an event what the flags want: the number of the scheduler, the time.
fn stamp(a: &mut dyn Alloc, flags: u32, v: &mut Vec<Term>) {
    if flags & flag::SCHEDULER_ID != 0 {
        v.push(Term::small(crate::sched::current() as i64));
    }
    if let Some(t) = timestamp(a, flags) {
        v[0] = trace_ts();
        v.push(t);
    }
}

/// An argument as it is shown: a match context as the rest of the binary that it stands for.
fn argument(cx: &mut Cx, t: Term) -> Term {
    if t.is_match_context() {
        crate::interp::bits::rest_of_context(cx, t)
    } else {
        t
    }
}

/// An event of a process that the caller owns, if it is traced for it.
fn event(p: &mut Process, wanted: u32, items: &[Term]) {
    let (flags, tracer) = state(p);
    if flags & wanted == 0 || p.has(process::SENSITIVE) {
        return;
    }
    let pid = p.pid();
    if tracer != pid && !emit(tracer, flags, pid, items) {
        change(p, false, u32::MAX, NIL);
    }
}

/// The receive of a process that the caller owns has ended by its timeout.
#[inline]
pub fn timed_out(p: &mut Process) {
    if p.has(TRACED | SAVES) {
        timeout(p);
    }
}

#[cold]
fn timeout(p: &mut Process) {
    if p.has(SAVES) {
        saved::note(p, saved::Call::Timeout);
    }
    if p.has(TRACED) {
        event(p, flag::RECEIVE, &[receive(), am::TIMEOUT]);
    }
}

/// A process is made: what it inherits, and the events of both. The caller owns both; `parent` may be null.
///
/// # Safety
/// `parent` is null or owned by the caller, and so is `child`.
pub unsafe fn spawn(parent: *mut Process, child: &mut Process, linked: bool, mfa: [Term; 3]) {
    let (mut flags, mut tracer) = (0, NIL);
    if NEW_PROCESSES.any() && !child.has(process::SYSTEM) {
        (flags, tracer) = NEW_PROCESSES.get();
    }
    let parent = parent.as_mut().filter(|p| p.has(TRACED));
    let mut both = None;
    if let Some(p) = parent {
        let (f, t) = live_state(p);
        let first = flag::SET_ON_FIRST_SPAWN | flag::SET_ON_FIRST_LINK;
        if f & (flag::SET_ON_SPAWN | flag::SET_ON_FIRST_SPAWN) != 0
            || linked && f & (flag::SET_ON_LINK | flag::SET_ON_FIRST_LINK) != 0
        {
            flags |= f;
            tracer = t;
            if f & first != 0 {
                let gone = first | flag::SET_ON_SPAWN | flag::SET_ON_LINK;
                flags &= !(gone & !(f & !first));
                change(p, false, first, NIL);
            }
        }
        both = Some(p);
    }
    if flags != 0 {
        change(child, true, flags, tracer);
    }
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

/// Whether [`spawn`] has anything to do.
#[inline]
pub fn watches_spawn(parent: Option<&Process>) -> bool {
    NEW_PROCESSES.any() || parent.is_some_and(|p| p.has(TRACED))
}

/// A process that the caller owns ends.
#[cold]
pub fn exited(p: &mut Process, reason: Term) {
    event(p, flag::PROCS, &[am::EXIT, reason]);
}

/// What happens to links and names of a process that the caller owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tie {
    Link,
    Unlink,
    GettingLinked,
    GettingUnlinked,
    Register,
    Unregister,
}

/// See [`Tie`]. `other` is the pid, port or name.
#[inline]
pub fn tie(p: &mut Process, what: Tie, other: Term) {
    if p.has(TRACED) {
        tied(p, what, other);
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

/// A process that the caller owns starts to run (`true`) or stops. `pc`: where.
#[cold]
pub fn scheduled(p: &mut Process, starts: bool, pc: *const u64) {
    calls::pause(p, !starts);
    if state(p).0 & (flag::RUNNING | flag::RUNNING_PROCS) == 0 {
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

/// What is known before a collection of the process in the context, if anybody wants to know.
pub struct Collecting {
    info: Term,
    frag: Fragment,
    began: i64,
    _state: msacc::Within,
}

/// Milliseconds that collections which somebody watches take longer than they need, for trying what is told of them.
pub static GC_SLEEP_MS: AtomicU32 = AtomicU32::new(0);

/// A collection begins.
#[inline]
pub fn gc_begin(cx: &mut Cx) -> Option<Collecting> {
    if monitor::WATCHES_GC.load(Ordering::Relaxed) == 0
        && !msacc::on()
        && (cx.proc.is_null() || !cx.process().has(TRACED))
    {
        return None;
    }
    gc_note(cx)
}

#[cold]
fn gc_note(cx: &mut Cx) -> Option<Collecting> {
    if cx.proc.is_null() {
        return None;
    }
    let mut frag = Fragment::new();
    let info = crate::bif::process_info::gc_info(&mut frag, &cx.heap);
    let began = clock::elapsed();
    let ms = GC_SLEEP_MS.load(Ordering::Relaxed);
    if ms != 0 {
        std::thread::sleep(std::time::Duration::from_millis(ms.into()));
    }
    Some(Collecting {
        info,
        frag,
        began,
        _state: msacc::within(msacc::State::Gc),
    })
}

/// The collection is over. Whether it was a full sweep is known only now, so both events are told now.
#[cold]
pub fn gc_end(cx: &mut Cx, c: Collecting) {
    let took = clock::elapsed() - c.began;
    let full = cx.heap.minor_gcs == 0;
    let mut frag = Fragment::new();
    let info = crate::bif::process_info::gc_info(&mut frag, &cx.heap);
    let (start, end) = if full {
        (gc_major_start(), gc_major_end())
    } else {
        (gc_minor_start(), gc_minor_end())
    };
    event(cx.process(), flag::GC, &[start, c.info]);
    event(cx.process(), flag::GC, &[end, info]);
    monitor::collected(cx, took);
    drop(OwnedTerm::from_parts(c.info, c.frag));
    drop(OwnedTerm::from_parts(info, frag));
}
