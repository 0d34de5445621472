//! Events that tracers and monitors may ask for, and the flags that say whether anyone does.
//!
//! # Invariants
//! * The trace settings of a process are stored with the process ([`crate::process::Ext`]), and
//!   only its owner changes them; others ask it to by a task. [`TRACED`] in its flags says whether
//!   there is anything to look at. An untraced process pays for nothing else.
//! * An event that nobody asks for costs a look at a flag here. Only behind the flag is the
//!   [`Sink`] called, which knows the receivers and the form of the event.

use crate::cx::Cx;
use crate::message::token::Token;
use crate::outside::outside;
use crate::process::heap_info::gc_info;
use crate::process::session::{Made, Session, any_new};
use crate::process::{self, INACTIVE, Process, SAVES, TRACED, WAITING, saved};
use crate::sync::Mutex;
use crate::tracer::{OfModule, Tracer};
use crate::{clock, msacc};
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::{Term, am};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

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
    /// Events contain the number of the scheduler.
    pub const SCHEDULER_ID: u32 = 1 << 20;
    /// Flags that control the form of events, or that apply to both processes and ports.
    pub const BOTH: u32 =
        SILENT | TIMESTAMP | MONOTONIC | STRICT_MONOTONIC | SCHEDULER_ID | RECEIVE | SEND;
    /// Flags of ports.
    pub const OF_PORTS: u32 = BOTH | PORTS | RUNNING_PORTS;
    /// Flags of processes.
    pub const OF_PROCESSES: u32 = (ALL & !OF_PORTS) | BOTH;
    /// The flags that `all` stands for.
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
        | RUNNING_PORTS
        | SCHEDULER_ID;
    /// The names, from the last to the first in the order of stock's lists.
    pub const NAMES: &[(&str, u32)] = &[
        ("timestamp", TIMESTAMP),
        ("strict_monotonic_timestamp", STRICT_MONOTONIC),
        ("monotonic_timestamp", MONOTONIC),
        ("send", SEND),
        ("receive", RECEIVE),
        ("set_on_spawn", SET_ON_SPAWN),
        ("call", CALL),
        ("procs", PROCS),
        ("set_on_first_spawn", SET_ON_FIRST_SPAWN),
        ("set_on_link", SET_ON_LINK),
        ("set_on_first_link", SET_ON_FIRST_LINK),
        ("running", RUNNING),
        ("exiting", EXITING),
        ("garbage_collection", GC),
        ("arity", ARITY),
        ("return_to", RETURN_TO),
        ("silent", SILENT),
        ("scheduler_id", SCHEDULER_ID),
        ("ports", PORTS),
        ("running_ports", RUNNING_PORTS),
        ("running_procs", RUNNING_PROCS),
    ];
}

/// Events about the states of processes and schedulers.
pub mod profile {
    pub(crate) const RUNNABLE_PORTS: u32 = 1;
    pub const RUNNABLE_PROCS: u32 = 1 << 1;
    pub(crate) const EXCLUSIVE: u32 = 1 << 2;
    pub const SCHEDULER: u32 = 1 << 3;
    /// The names, in the order in which stock lists them.
    pub const NAMES: &[(&str, u32)] = &[
        ("exclusive", EXCLUSIVE),
        ("scheduler", SCHEDULER),
        ("runnable_procs", RUNNABLE_PROCS),
        ("runnable_ports", RUNNABLE_PORTS),
    ];
}

/// The receiver of events. The default methods do nothing.
pub trait Sink: Sync {
    /// The links or names of a traced process, which the caller owns, change.
    #[inline]
    fn tied(&self, _p: &mut Process, _what: Tie, _other: Term) {}
    /// The receive of a traced process has timed out.
    #[inline]
    fn timed_out(&self, _p: &mut Process) {}
    /// A traced process ends.
    #[inline]
    fn exited(&self, _p: &mut Process, _reason: Term) {}
    /// A process is spawned: handles inheritance and the events of both processes.
    ///
    /// # Safety
    /// `parent` is null or owned by the caller, and so is `child`.
    #[inline]
    unsafe fn spawned(
        &self,
        _parent: *mut Process,
        _child: &mut Process,
        _linked: bool,
        _mfa: [Term; 3],
    ) {
    }
    /// A process that the caller owns starts to run (`true`) or stops, at `pc`.
    #[inline]
    fn scheduled(&self, _p: &mut Process, _starts: bool, _pc: *const u64) {}
    /// The process in the context was collected. `info` is the result of [`gc_info`] before and
    /// afterwards. `shown` says whether tracers and monitors are notified.
    #[inline]
    fn collected(&self, _cx: &mut Cx, _info: (Term, Term), _nanoseconds: i64, _shown: bool) {}
    /// The running process, which is traced, sends a message.
    #[inline]
    fn sending(&self, _cx: &mut Cx, _to: Term, _msg: Term) {}
    /// A message has reached the running process, which is traced. `from` is the sending process or
    /// part of the runtime, if the message carries it.
    #[inline]
    fn received(&self, _cx: &mut Cx, _from: Option<Term>, _msg: Term) {}
    /// Something with a token of sequential tracing passes from one process to another, or is
    /// printed.
    #[inline]
    fn sequential(&self, _token: &Token, _what: Term, _to: Term, _msg: Term) {}
    /// A process has run for this many nanoseconds without a break.
    #[inline]
    fn ran(&self, _pid: Term, _nanoseconds: i64) {}
    /// A port's driver has run for this many nanoseconds. `op` names the operation (`timeout`,
    /// `input`, `output`).
    #[inline]
    fn port_ran(&self, _port: Term, _op: &'static str, _nanoseconds: i64) {}
    /// The message queue of a process that the caller owns may have become long, or may no longer
    /// be long.
    #[inline]
    fn queue_changed(&self, _p: &mut Process) {}
    /// A process waits because a port accepts no more.
    #[inline]
    fn waits_for_port(&self, _pid: Term, _port: Term) {}
    /// A process waits because the connection to another node, over that port or process, accepts
    /// no more.
    #[inline]
    fn waits_for_connection(&self, _pid: Term, _controller: Term) {}
    /// A process that the caller owns becomes ready, or is no longer ready. `pc` is its address,
    /// unless it has ended.
    #[inline]
    fn process_is(&self, _p: &Process, _active: bool, _pc: Option<*const u64>) {}
    /// A scheduler (numbered from 1) becomes idle or busy; `count` schedulers are busy.
    #[inline]
    fn scheduler_is(&self, _number: usize, _busy: bool, _count: usize) {}
    /// An event of a port, one of those in `wanted`. `flags` are the trace flags of the port.
    /// Returns false if the tracer no longer exists.
    #[inline]
    fn port_event(
        &self,
        _tracer: &Tracer,
        _flags: u32,
        _port: Term,
        _wanted: u32,
        _items: &[Term],
    ) -> bool {
        false
    }
    /// Returns such an event in the external format, for a tracer that is a port.
    #[inline]
    fn event_of_port(&self, _flags: u32, _port: Term, _items: &[Term]) -> Vec<u8> {
        Vec::new()
    }
    /// Whether the tracer of a port, in a session or without, receives what the port sends.
    #[inline]
    fn tells_of_sent(&self, _session: Option<&Arc<Session>>) -> bool {
        true
    }
    /// Whether a tracer module exists and wants events of that process or port (`undefined`: of
    /// any).
    #[inline]
    fn tracer_lives(&self, _tracer: &OfModule, _tracee: Term) -> bool {
        false
    }
    /// Whether messages of a process with a token of sequential tracing have serial numbers of
    /// their own.
    #[inline]
    fn counts_sequence(&self, _pid: Term) -> bool {
        true
    }
    /// A call returns `value`, or ends by an exception of class `class`. `frame` is the trace frame
    /// without its address.
    #[inline]
    fn returned(&self, _cx: &mut Cx, _frame: [Term; 5], _class: Option<Term>, _value: Term) {}
    /// A measured call has ended. `frame` is the trace frame without its address.
    #[inline]
    fn measured(&self, _cx: &mut Cx, _frame: [Term; 2]) {}
    /// The process continues at `pc` after a call whose end is reported. `whom` is the last word of
    /// the frame.
    #[inline]
    fn returned_to(&self, _cx: &mut Cx, _whom: Term, _pc: *const u64) {}
}

struct Nobody;
impl Sink for Nobody {}

static SINK: OnceLock<&'static dyn Sink> = OnceLock::new();

/// Installs the receiver of events. Only the first call has an effect.
#[inline]
pub fn set_sink(who: &'static dyn Sink) {
    let _ = SINK.set(who);
}

/// The installed receiver of events. Called only behind a flag.
#[cold]
pub fn sink() -> &'static dyn Sink {
    SINK.get().copied().unwrap_or(&Nobody)
}

/// Whether `t` is a local process or port that exists.
#[inline]
pub fn lives(t: Term) -> bool {
    if t.is_local_pid() {
        process::table().find(t).is_some()
    } else {
        outside().port_is_open(t)
    }
}

impl Tracer {
    /// Whether the tracer exists and wants any events of that process or port.
    pub fn lives(&self, tracee: Term) -> bool {
        match self {
            Tracer::Nobody => false,
            Tracer::Local(t) => lives(*t),
            Tracer::Module(m) => sink().tracer_lives(m, tracee),
        }
    }
}

/// Default flags and tracer of new processes or ports; no flags if 0. The tracer changes only under
/// the lock.
pub struct Defaults {
    flags: AtomicU32,
    tracer: Mutex<Tracer>,
}

/// The defaults of new processes.
pub static NEW_PROCESSES: Defaults = Defaults::new();
/// The defaults of new ports.
pub static NEW_PORTS: Defaults = Defaults::new();

impl Defaults {
    const fn new() -> Defaults {
        Defaults {
            flags: AtomicU32::new(0),
            tracer: Mutex::new(Tracer::Nobody),
        }
    }
    /// Whether there are any flags.
    #[inline]
    pub fn any(&self) -> bool {
        self.flags.load(Ordering::Relaxed) != 0
    }
    /// Returns flags and tracer.
    pub fn get(&self) -> (u32, Tracer) {
        if !self.any() {
            return (0, Tracer::Nobody);
        }
        let (flags, tracer) = {
            let t = self.tracer.lock();
            (self.flags.load(Ordering::Relaxed), t.clone())
        };
        // This calls a tracer module, which may take its time; so the lock is not held.
        if tracer.is_nobody() || tracer.lives(am::UNDEFINED) {
            return (flags, tracer);
        }
        let mut t = self.tracer.lock();
        if *t == tracer {
            *t = Tracer::Nobody;
            self.flags.store(0, Ordering::Relaxed);
        }
        (0, Tracer::Nobody)
    }
    /// Sets or clears flags.
    pub fn change(&self, on: bool, flags: u32, tracer: Tracer) {
        let mut t = self.tracer.lock();
        let before = self.flags.load(Ordering::Relaxed);
        let now = if on { before | flags } else { before & !flags };
        if now == 0 {
            *t = Tracer::Nobody;
        } else if on {
            *t = tracer;
        }
        self.flags.store(now, Ordering::Relaxed);
    }
}

/// Called when the receive of a process that the caller owns has timed out.
#[inline]
pub(crate) fn timed_out(p: &mut Process) {
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
        sink().timed_out(p);
    }
}

/// Whether [`Sink::spawned`] has anything to do.
#[inline]
pub(crate) fn watches_spawn(parent: Option<&Process>) -> bool {
    NEW_PROCESSES.any() || any_new(Made::Process) || parent.is_some_and(|p| p.has(TRACED))
}

/// Changes to links and names of a process that the caller owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tie {
    Link,
    Unlink,
    GettingLinked,
    GettingUnlinked,
    Register,
    Unregister,
}

/// Reports a [`Tie`]. `other` is the pid, port or name.
#[inline]
pub fn tie(p: &mut Process, what: Tie, other: Term) {
    if p.has(TRACED) {
        sink().tied(p, what, other);
    }
}

/// Not 0 if anyone wants to know of collections.
pub static WATCHES_GC: AtomicU32 = AtomicU32::new(0);
/// Time limit of a time slice in milliseconds; 0 if nobody wants to know.
pub static LONG_SCHEDULE: AtomicU64 = AtomicU64::new(0);

/// Runs a driver's function for a port, and reports its time if anyone wants to know. `op` names
/// the operation.
#[inline]
pub fn port_runs<R>(port: Term, op: &'static str, f: impl FnOnce() -> R) -> R {
    if LONG_SCHEDULE.load(Ordering::Relaxed) == 0 {
        return f();
    }
    let began = crate::clock::elapsed();
    let r = f();
    sink().port_ran(port, op, crate::clock::elapsed() - began);
    r
}

/// Queue length from which on it is reported; the largest number if nobody wants to know.
pub static LONG_QUEUE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Called when messages have reached a process that the caller owns; its queue length is now
/// `queued`.
#[inline(always)]
pub(crate) fn came(p: &mut Process, queued: usize) {
    if queued >= LONG_QUEUE.load(Ordering::Relaxed) {
        queue_changed(p);
    }
}

/// Called when the queue of a process that the caller owns has changed its length and someone may
/// want to know.
#[cold]
pub(crate) fn queue_changed(p: &mut Process) {
    sink().queue_changed(p);
    let watched = p.ext().is_some_and(|e| !e.long_queue_notified.is_empty());
    // SAFETY: null or the mailbox of this process, which `p` borrows alone.
    if let Some(m) = unsafe { p.mailbox.as_mut() } {
        m.watched = watched;
    }
}

/// The figures before a collection of the process in the context.
pub(crate) struct Collecting {
    info: Term,
    frag: Fragment,
    /// Words of everything that was there.
    words: usize,
    began: i64,
    /// Whether tracers and monitors are notified. They are not if the heap grows although all live
    /// data, and what is needed, would fit into the smallest heap that is reported: no process of
    /// stock does that.
    shown: bool,
    _state: msacc::Within,
}

/// Delay in milliseconds that is added to watched collections, to test reports of long ones.
pub static GC_SLEEP_MS: AtomicU32 = AtomicU32::new(0);

/// Called before a collection that makes room for `need` words; 0 for another reason.
#[inline]
pub(crate) fn gc_begin(cx: &mut Cx, need: usize) -> Option<Collecting> {
    if WATCHES_GC.load(Ordering::Relaxed) == 0
        && !msacc::on()
        && (cx.proc.is_null() || !cx.process().has(TRACED))
    {
        return None;
    }
    gc_note(cx, need)
}

#[cold]
fn gc_note(cx: &mut Cx, need: usize) -> Option<Collecting> {
    if cx.proc.is_null() {
        return None;
    }
    let mut frag = Fragment::new();
    let info = gc_info(&mut frag, &cx.heap, Some(need));
    let began = clock::elapsed();
    let ms = GC_SLEEP_MS.load(Ordering::Relaxed);
    if ms != 0 {
        std::thread::sleep(std::time::Duration::from_millis(ms.into()));
    }
    let words = cx.heap.all_words();
    let room = words + cx.heap.stack_words() + need;
    let shown = need == 0 || room > process::reported_min_heap(cx.process());
    Some(Collecting {
        info,
        words,
        frag,
        began,
        shown,
        _state: msacc::within(msacc::State::Gc),
    })
}

/// Called after the collection.
#[cold]
pub(crate) fn gc_end(cx: &mut Cx, c: Collecting) {
    let took = clock::elapsed() - c.began;
    let mut frag = Fragment::new();
    let freed = c.words.saturating_sub(cx.heap.all_words());
    let info = gc_info(&mut frag, &cx.heap, Some(freed));
    sink().collected(cx, (c.info, info), took, c.shown);
    drop(OwnedTerm::from_parts(c.info, c.frag));
    drop(OwnedTerm::from_parts(info, frag));
}

static BY_SENDER: AtomicBool = AtomicBool::new(false);

/// Sets whether messages carry their sender.
#[inline]
pub fn set_by_sender(on: bool) {
    BY_SENDER.store(on, Ordering::Relaxed);
}

/// Whether messages are to carry their sender.
#[inline]
pub fn by_sender() -> bool {
    BY_SENDER.load(Ordering::Relaxed)
}

/// The flags of [`profile`] that someone asks for.
pub static PROFILED: AtomicU32 = AtomicU32::new(0);

/// Whether any of these events of [`profile`] is asked for.
#[inline(always)]
pub fn wants(flags: u32) -> bool {
    PROFILED.load(Ordering::Relaxed) & flags != 0
}

/// Called when a time slice begins. A process that waited before, or is new, becomes active.
#[inline(always)]
pub fn begins(p: &mut Process) {
    if p.has(INACTIVE) || wants(profile::RUNNABLE_PROCS) {
        begins_slow(p);
    }
}

#[cold]
fn begins_slow(p: &mut Process) {
    let waited = p.has(INACTIVE | WAITING) || p.reductions == 0;
    p.flags &= !INACTIVE;
    if waited && wants(profile::RUNNABLE_PROCS) {
        sink().process_is(p, true, Some(p.pc));
    }
}

/// Called before a process waits.
#[inline(always)]
pub fn waits(p: &mut Process) {
    if wants(profile::RUNNABLE_PROCS) {
        p.flags |= INACTIVE;
        sink().process_is(p, false, Some(p.pc));
    }
}

/// Called when a process ends.
#[inline(always)]
pub fn ends(p: &mut Process) {
    if wants(profile::RUNNABLE_PROCS) {
        sink().process_is(p, false, None);
    }
}

/// Called when a scheduler (numbered from 1) becomes idle or busy; `count` schedulers are busy.
#[inline(always)]
pub(crate) fn scheduler_is(number: usize, busy: bool, count: usize) {
    if wants(profile::SCHEDULER) {
        sink().scheduler_is(number, busy, count);
    }
}
