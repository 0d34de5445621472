//! Tracing of ports: the requests of processes, the messages they send, their names and links, and
//! when they run.
//!
//! # Invariants
//! * The trace settings of a port lie in the port, under its lock. Events are sent with the lock
//!   held, so that a tracer sees those of one port in order. A tracer that is a port gets them when
//!   that lock is released, because no thread holds the locks of two ports.
//! * A port that is not traced pays for two comparisons.

use super::{Base, Core, Driver, Held, Port, outbox};
use crate::events::{self, flag, sink};
use crate::gather::{Gather, Parts};
use crate::lazy_atoms;
use crate::msacc::{self, State};
use crate::process::session::{self, Made, Session, Tracing};
use purlin_kernel::tracer::Tracer;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, NIL, Term, am, atom};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

lazy_atoms! {
    receive = "receive";
    open = "open";
    closed = "closed";
    close = "close";
    connect = "connect";
    command = "command";
    control = "control";
    call = "call";
    unlink = "unlink";
    getting_linked = "getting_linked";
    getting_unlinked = "getting_unlinked";
    register = "register";
    unregister = "unregister";
    send_to_non_existing_process = "send_to_non_existing_process";
    in_ = "in";
    out = "out";
}

/// The operation that a port performs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    Open,
    Command,
    Control,
    Call,
    Close,
    Connect,
    Link,
    Unlink,
    Info,
    Flush,
    /// An operation that no process asked for.
    Event,
}

impl Work {
    fn term(self) -> Term {
        match self {
            Work::Open => open(),
            Work::Command => command(),
            Work::Control => control(),
            Work::Call => call(),
            Work::Close => close(),
            Work::Connect => connect(),
            Work::Link => am::LINK,
            Work::Unlink => unlink(),
            Work::Info => am::INFO,
            Work::Flush => am::FLUSH,
            Work::Event => Term::small(0),
        }
    }
}

/// How a port is traced. Without flags it is not traced.
pub(crate) struct Traced {
    /// A cell, because sending an event may clear it if the tracer says so.
    flags: Cell<u32>,
    tracer: Tracer,
    sessions: RefCell<Vec<Tracing>>,
    /// The ports for which events were left. They get them when this port's lock is released.
    told: RefCell<Vec<Term>>,
    /// Whether the port is being given events of others.
    takes: bool,
}

impl Traced {
    /// The trace settings of a new port.
    pub(super) fn as_new() -> Traced {
        let (flags, tracer) = events::NEW_PORTS.get();
        let mut sessions = Vec::new();
        if session::any_new(Made::Port) {
            for s in session::all() {
                let (flags, tracer) = s.new_tracing(Made::Port);
                let new = (true, flags, tracer);
                session::change(&mut sessions, &s, new, |_| false);
            }
        }
        Traced {
            flags: Cell::new(flags),
            tracer,
            sessions: RefCell::new(sessions),
            told: RefCell::new(Vec::new()),
            takes: false,
        }
    }
    /// Takes the ports that get events once the lock is released.
    #[inline]
    pub(super) fn take_pending_tracers(&mut self) -> Vec<Term> {
        std::mem::take(self.told.get_mut())
    }
}

/// Whether a tracer exists and wants the events of `port`. That port may be locked, so no other is
/// locked here.
fn is_there(tracer: &Tracer, port: Term) -> bool {
    match tracer {
        Tracer::Local(t) if t.is_local_port() => super::find(*t).is_some(),
        other => other.lives(port),
    }
}

/// The events that tracing ports have yet to get, in the external format.
static EVENTS: Mutex<BTreeMap<u64, VecDeque<Vec<u8>>>> = Mutex::new(BTreeMap::new());

/// Leaves a port a trace event in the external format, which [`deliver`] gives it. Returns false if
/// there is no such port.
fn leave_event(port: Term, event: Vec<u8>) -> bool {
    if super::find(port).is_none() {
        return false;
    }
    EVENTS
        .lock()
        .entry(port.raw())
        .or_default()
        .push_back(event);
    true
}

/// Gives a port the trace events that were left for it, whether it is busy or not, because tracing
/// must make nobody wait. The caller holds no port's lock. The first thread takes all events under
/// the port's lock, so they come in order.
pub(super) fn deliver(port: Term) {
    let next = || {
        let mut all = EVENTS.lock();
        let left = all.get_mut(&port.raw())?;
        let event = left.pop_front();
        if left.is_empty() {
            all.remove(&port.raw());
        }
        event
    };
    let Some(p) = super::find(port) else {
        EVENTS.lock().remove(&port.raw());
        return;
    };
    let _state = msacc::within(State::Port);
    while EVENTS.lock().contains_key(&port.raw()) {
        let mut core = p.lock();
        let c = &mut *core;
        let Some(driver) = c.driver.as_deref_mut().filter(|_| !c.base.closing) else {
            EVENTS.lock().remove(&port.raw());
            return;
        };
        c.base.traced.takes = true;
        while let Some(event) = next() {
            give(driver, &mut c.base, &event);
        }
        p.settle(&mut core);
        core.base.traced.takes = false;
    }
}

/// Passes an event to the driver, which writes it.
fn give(d: &mut dyn Driver, b: &mut Base, event: &[u8]) {
    let mut frag = Fragment::new();
    let t = frag.binary(event);
    let mut data = Gather::new(t);
    // A binary is an I/O list.
    if data.next_batch(usize::MAX, usize::MAX).is_ok() {
        b.count_out(event.len());
        b.caller = NIL;
        d.output(b, &mut data);
    }
    drop(OwnedTerm::from_parts(t, frag));
}

/// Gives a port a trace event in the external format. The caller holds no port's lock. Returns
/// false if there is no such port.
pub fn event(port: Term, event: Vec<u8>) -> bool {
    let there = leave_event(port, event);
    if there {
        deliver(port);
    }
    there
}

/// Changes the trace settings of a port, in a session or without. None if the port is gone; false
/// if another tracer has it.
pub fn change(
    port: Term,
    session: Option<&Arc<Session>>,
    on: bool,
    flags: u32,
    tracer: Tracer,
) -> Option<bool> {
    let p = super::find(port)?;
    let mut core = p.lock();
    if core.base.closing {
        return None;
    }
    let t = &mut core.base.traced;
    if let Some(s) = session {
        let how = (on, flags, tracer);
        return Some(session::change(t.sessions.get_mut(), s, how, |t| {
            is_there(t, port)
        }));
    }
    if on {
        if t.flags.get() != 0 && t.tracer != tracer && is_there(&t.tracer, port) {
            return Some(false);
        }
        t.tracer = tracer;
        t.flags.set(t.flags.get() | flags);
    } else {
        t.flags.set(t.flags.get() & !flags);
        if t.flags.get() == 0 {
            t.tracer = Tracer::Nobody;
        }
    }
    Some(true)
}

/// Trace flags and tracer of a port, in a session or without. None if the port is gone.
pub fn state(port: Term, session: Option<&Arc<Session>>) -> Option<(u32, Tracer)> {
    let p = super::find(port)?;
    let mut core = p.lock();
    if core.base.closing {
        return None;
    }
    let t = &mut core.base.traced;
    if let Some(s) = session {
        let all = t.sessions.get_mut().iter();
        let mut found = all.filter(|t| Arc::ptr_eq(&t.session, s));
        let alive = found.find(|t| !s.is_over() && is_there(&t.tracer, port));
        return Some(alive.map_or((0, Tracer::Nobody), |t| (t.flags, t.tracer.clone())));
    }
    if t.flags.get() == 0 || !is_there(&t.tracer, port) {
        t.flags.set(0);
        t.tracer = Tracer::Nobody;
    }
    Some((t.flags.get(), t.tracer.clone()))
}

impl Base {
    /// Whether the port is traced for any of these flags.
    #[inline]
    pub(super) fn traced_for(&self, flags: u32) -> bool {
        let t = &self.traced;
        t.flags.get() & flags != 0 || t.sessions.borrow().iter().any(|t| t.flags & flags != 0)
    }
    #[cold]
    fn tell_tracer(&self, wanted: u32, items: &[Term]) {
        let t = &self.traced;
        // Whether a tracer module wants no more events. A process tracer that has ended is noticed
        // when the settings are read.
        let over = |tracer: &Tracer, flags: u32| {
            if let Tracer::Local(to) = *tracer
                && to.is_local_port()
            {
                // The actions of a port that takes events are not traced to another port, which
                // might trace them back.
                let tells = to != self.id && !t.takes;
                let event = || sink().event_of_port(flags, self.id, items);
                if tells && leave_event(to, event()) && !t.told.borrow().contains(&to) {
                    t.told.borrow_mut().push(to);
                }
                return false;
            }
            let told = sink().port_event(tracer, flags, self.id, wanted, items);
            !told && matches!(tracer, Tracer::Module(_))
        };
        let tells =
            |session: Option<&Arc<Session>>| wanted != flag::SEND || sink().tells_of_sent(session);
        let flags = t.flags.get();
        if flags & wanted != 0 && tells(None) && over(&t.tracer, flags) {
            t.flags.set(0);
        }
        t.sessions.borrow_mut().retain(|t| {
            t.flags & wanted == 0
                || t.session.is_over()
                || !tells(Some(&t.session))
                || !over(&t.tracer, t.flags)
        });
    }
    /// Traces that a process opens the port under a name. The name is the program's, so the message
    /// is left out if there is no room for its atom.
    pub(super) fn trace_open(&self, by: Term, name: &[u8]) {
        if self.traced_for(flag::PORTS) {
            // At most the length of an atom.
            let bytes = name.iter().take(atom::MAX_CHARS);
            let name: String = bytes.map(|&b| char::from(b)).collect();
            if let Ok(name) = atom::try_intern(&name) {
                self.tell_tracer(flag::PORTS, &[open(), by, name]);
            }
        }
    }
    pub(super) fn trace_closed(&self, reason: Term) {
        if self.traced_for(flag::PORTS) {
            self.tell_tracer(flag::PORTS, &[closed(), reason]);
        }
    }
    pub(super) fn trace_link(&self, with: Term, linked: bool) {
        if self.traced_for(flag::PORTS) {
            let what = if linked {
                getting_linked()
            } else {
                getting_unlinked()
            };
            self.tell_tracer(flag::PORTS, &[what, with]);
        }
    }
    pub(super) fn trace_name(&self, name: Term, registered: bool) {
        if self.traced_for(flag::PORTS) {
            let what = if registered { register() } else { unregister() };
            self.tell_tracer(flag::PORTS, &[what, name]);
        }
    }
    pub(super) fn trace_timeout(&self) {
        if self.traced_for(flag::RECEIVE) {
            self.tell_tracer(flag::RECEIVE, &[receive(), am::TIMEOUT]);
        }
    }
    /// Traces the receipt of `{From, What}`.
    #[cold]
    fn trace_got(&self, from: Term, what: impl FnOnce(&mut Fragment) -> Term) {
        let mut f = Fragment::new();
        let what = what(&mut f);
        let got = f.tuple(&[from, what]);
        let got = OwnedTerm::from_parts(got, f);
        self.tell_tracer(flag::RECEIVE, &[receive(), got.term()]);
    }
    /// Traces a command to write what was gathered.
    pub(super) fn trace_command(&self, from: Term, data: &Gather, vectored: bool) {
        if self.traced_for(flag::RECEIVE) {
            self.trace_got(from, |f| {
                let data = if vectored {
                    let parts: Vec<Term> = data.parts().map(|p| f.binary(p)).collect();
                    f.list(&parts)
                } else {
                    f.binary(&data.to_vec())
                };
                f.tuple(&[command(), data])
            });
        }
    }
    pub(super) fn trace_close(&self, from: Term) {
        if self.traced_for(flag::RECEIVE) {
            self.trace_got(from, |_| close());
        }
    }
    pub(super) fn trace_connect(&self, from: Term, to: Term) {
        if self.traced_for(flag::RECEIVE) {
            self.trace_got(from, |f| f.tuple(&[connect(), to]));
        }
    }
    /// Traces an operation of `port_control` or `port_call` (`what`), with its data.
    pub(super) fn trace_operation(&self, from: Term, what: Work, op: u32, data: &[u8]) {
        if self.traced_for(flag::RECEIVE) {
            self.trace_got(from, |f| {
                let data = f.binary(data);
                let data = f.tuple(&[Term::small(op.into()), data]);
                f.tuple(&[what.term(), data])
            });
        }
    }
    /// Traces the reply of such an operation.
    pub(super) fn trace_answer(&self, to: Term, what: Work, data: &[u8]) {
        if self.traced_for(flag::SEND) {
            let mut f = Fragment::new();
            let data = f.binary(data);
            let answer = f.tuple(&[what.term(), data]);
            let answer = f.tuple(&[self.id, answer]);
            let answer = OwnedTerm::from_parts(answer, f);
            self.tell_tracer(flag::SEND, &[am::SEND, answer.term(), to]);
        }
    }
    /// Traces that the port sends a message.
    pub(super) fn trace_sending(&self, to: Term, msg: Term) {
        if self.traced_for(flag::SEND) {
            let what = if outbox::is_alive(to) {
                am::SEND
            } else {
                send_to_non_existing_process()
            };
            self.tell_tracer(flag::SEND, &[what, msg, to]);
        }
    }
    /// Sends what `build` makes, and traces it.
    #[cold]
    pub(super) fn send_traced(&self, to: Term, build: impl FnOnce(&mut dyn Alloc) -> Term) {
        let mut f = Fragment::new();
        let msg = build(&mut f);
        let msg = OwnedTerm::from_parts(msg, f);
        self.trace_sending(to, msg.term());
        outbox::message(to, |a| purlin_term::copy::copy(msg.term(), a));
    }
    /// Traces that the port has a new owner, which `from` learns by the result of a call.
    pub(super) fn trace_connected(&self, from: Term) {
        if self.traced_for(flag::SEND) {
            let mut f = Fragment::new();
            let msg = f.tuple(&[self.id, am::CONNECTED]);
            let msg = OwnedTerm::from_parts(msg, f);
            self.trace_sending(from, msg.term());
        }
    }
    /// Tells the owner that the port is closed. Tracers see only the atom.
    pub(super) fn tell_closed(&self) {
        let (id, to) = (self.id, self.connected);
        self.trace_sending(to, closed());
        outbox::message(to, |a| a.tuple(&[id, closed()]));
    }
    pub(super) fn trace_work(&self, begins: bool, work: Work) {
        if self.traced_for(flag::RUNNING_PORTS) {
            self.tell_tracer(
                flag::RUNNING_PORTS,
                &[if begins { in_() } else { out() }, work.term()],
            );
        }
    }
}

/// A port at work, with its lock held.
pub(super) struct Turn<'a> {
    core: Held<'a>,
    work: Work,
}

impl Port {
    /// Takes the lock for work of that kind.
    pub(super) fn turn(&self, work: Work) -> Turn<'_> {
        let core = self.lock();
        core.base.trace_work(true, work);
        Turn { core, work }
    }
}

impl Deref for Turn<'_> {
    type Target = Core;
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.core.base.trace_work(false, self.work);
    }
}
