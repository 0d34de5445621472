//! The common part of all ports, which drivers use: owner, links, monitors, delivery of input, the
//! busy flag.

use super::linebuf::LineBuf;
use super::long_lists::{Backlog, Transit};
use super::traced::Traced;
use super::{Driver, Port, outbox};
use crate::events::flag;
use crate::poll;
use crate::process::ext::{Hashing, Peer, RefKey, Set};
use crate::timer::{self, TimerId};
use purlin_term::bin::RcBin;
use purlin_term::frag::OwnedTerm;
use purlin_term::layout::{HEAP_BIN_HEAD_WORDS, REFC_BIN_WORDS, heap_bin_limit};
use purlin_term::plants::{self, Plant};
use purlin_term::{Alloc, NIL, Term, am, atom};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::Weak;
use std::sync::atomic::Ordering;

/// Why a driver ends its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Its input has ended.
    Eof,
    /// An atom: `normal`, or the name of an error.
    Reason(Term),
}

struct Watcher {
    by: Term,
    reference: OwnedTerm,
    /// The name by which the process monitored the port, or nil.
    name: Term,
}

/// See the module head. Guarded by the port's lock.
pub struct Base {
    pub id: Term,
    /// The owner, which receives the input.
    pub connected: Term,
    /// Whether input is delivered as binaries.
    pub binary: bool,
    /// Whether the end of input is a message and does not end the port.
    pub soft_eof: bool,
    /// Whether input is delivered line by line.
    pub lines: Option<LineBuf>,
    pub parallelism: bool,
    pub bytes_in: u64,
    pub bytes_out: u64,
    /// The process that the driver is working for now: the sender of output, the caller of
    /// `port_control`.
    pub caller: Term,
    pub(super) registered: Option<Term>,
    /// Whether the port looks closed to everybody.
    pub(super) closing: bool,
    /// Whether the port was closed and only writes its queue. The owner gets no more messages.
    pub(super) flushing: bool,
    /// Whether the owner is notified when the port has closed.
    pub(super) send_closed: bool,
    /// The driver's decision to end the port, carried out after the driver has returned.
    pub(super) ended: Option<End>,
    busy: bool,
    /// The list that a process is sending in parts.
    pub(super) transit: Option<Transit>,
    /// The rest of a list whose sender does not wait. It goes before everything else that is sent.
    pub(super) backlog: Option<Backlog>,
    /// Number of lists sent in parts so far.
    pub(super) transits: u32,
    /// The connection to another node that uses this port.
    pub channel: Option<std::sync::Arc<dyn super::channel::Channel>>,
    references: RefCell<References>,
    /// The processes that wait until the port is no longer busy.
    waiting: Set<Peer, ()>,
    links: Set<Peer, ()>,
    watchers: Set<RefKey, Watcher>,
    me: Weak<Port>,
    pub(super) traced: Traced,
}

/// The references that replies to senders carry, as external terms, by sender. The last reference
/// that a sender gave belongs to its last command.
#[derive(Default)]
struct References {
    by_sender: HashMap<u64, SmallVec<[Box<[u8]>; 1]>, Hashing>,
    /// Number of senders at which ended ones are removed.
    limit: usize,
}

/// Minimum of [`References::limit`].
const MANY_REFERENCES: usize = 16;

/// Words of a two-tuple.
const PAIR_WORDS: usize = 3;

/// Bytes that stock counts for a link and a monitor in `port_info(Port, memory)`.
const LINK_BYTES: usize = 40;
const MONITOR_BYTES: usize = 24;

impl Base {
    pub(super) fn new(id: Term, owner: Term, me: Weak<Port>) -> Base {
        Base {
            id,
            connected: owner,
            binary: false,
            soft_eof: false,
            lines: None,
            parallelism: false,
            bytes_in: 0,
            bytes_out: 0,
            caller: NIL,
            registered: None,
            closing: false,
            flushing: false,
            send_closed: false,
            ended: None,
            busy: false,
            transit: None,
            backlog: None,
            transits: 0,
            channel: None,
            references: RefCell::default(),
            waiting: Set::default(),
            links: Set::default(),
            watchers: Set::default(),
            me,
            traced: Traced::as_new(),
        }
    }
    /// Records the reference that the reply to a command of `from` carries.
    pub(super) fn refer(&self, from: Term, reference: Box<[u8]>) {
        let all = &mut *self.references.borrow_mut();
        if all.by_sender.len() >= all.limit.max(MANY_REFERENCES) {
            // SAFETY: a key is the word of a local pid.
            (all.by_sender).retain(|&raw, _| self.is_alive(unsafe { Term::from_raw(raw) }));
            all.limit = 2 * all.by_sender.len();
        }
        all.by_sender.entry(from.raw()).or_default().push(reference);
    }
    /// Takes the reference that the reply to `to` carries, if one was recorded.
    pub fn reference_for(&self, to: Term) -> Option<Box<[u8]>> {
        let mut all = self.references.borrow_mut();
        let of_sender = all.by_sender.get_mut(&to.raw())?;
        let reference = of_sender.pop();
        if of_sender.is_empty() {
            all.by_sender.remove(&to.raw());
        }
        reference
    }
    /// Registers a descriptor with the poll thread, which then calls the driver's `ready`.
    pub fn register(&self, fd: RawFd) -> std::io::Result<poll::Id> {
        let me = self
            .me
            .upgrade()
            .ok_or_else(|| std::io::Error::from_raw_os_error(libc::EBADF))?;
        poll::register(fd, me)
    }
    /// The port itself.
    pub(super) fn me(&self) -> Weak<Port> {
        self.me.clone()
    }
    /// The port itself, for a driver that other threads call too.
    pub fn port(&self) -> Weak<Port> {
        self.me()
    }
    /// Counts bytes that a driver delivers in messages of its own.
    pub fn count_in(&mut self, n: usize) {
        self.bytes_in += n as u64;
        super::TOTAL_IN.fetch_add(n as u64, Ordering::Relaxed);
    }
    /// Traces the firing of a timer that the driver set by itself.
    pub fn trace_own_timeout(&self) {
        self.trace_timeout();
    }
    /// Whether the port has been closed and only writes its queue.
    pub fn is_flushing(&self) -> bool {
        self.flushing
    }

    /// Whether the port ends when the driver returns.
    pub fn is_ending(&self) -> bool {
        self.ended.is_some()
    }
    /// Calls the driver's `timeout` with `token` in `ms` milliseconds.
    pub fn after(&self, ms: u64, token: u32) -> TimerId {
        let me = self.me.clone();
        timer::after(ms, move || {
            if let Some(p) = me.upgrade() {
                p.timeout(token);
            }
        })
    }
    /// Stops a timer. It may have fired already and be waiting for the port's lock.
    pub fn cancel(&self, timer: TimerId) {
        timer::cancel(timer);
    }
    /// Whether a local process is alive.
    pub fn is_alive(&self, pid: Term) -> bool {
        outbox::is_alive(pid)
    }
    /// Opens another port of the same kind, owned by and linked to `owner`. None if there are too
    /// many ports.
    pub(crate) fn sibling(&self, name: &str, owner: Term, driver: Box<dyn Driver>) -> Option<Term> {
        self.sibling_with(name, owner, driver, |_| ())
    }
    /// As [`Base::sibling`], but calls `prepare` before anybody else knows the port.
    pub fn sibling_with(
        &self,
        name: &str,
        owner: Term,
        driver: Box<dyn Driver>,
        prepare: impl FnOnce(&mut Base),
    ) -> Option<Term> {
        let p = super::enter(name.as_bytes(), owner).ok()?;
        let mut core = p.lock();
        prepare(&mut core.base);
        core.base.add_link(owner);
        core.driver = Some(driver);
        drop(core);
        outbox::enter_link(owner, p.id, super::link_broken);
        Some(p.id)
    }

    /// Ends the port when the driver returns.
    pub fn end(&mut self, end: End) {
        self.ended.get_or_insert(end);
    }
    /// Ends the port for a reason that the owner has learned by other means: removes its link
    /// first.
    pub fn end_unlinked(&mut self, reason: Term) {
        if self.remove_link(self.connected) {
            outbox::leave_link(self.connected, self.id);
        }
        self.end(End::Reason(reason));
    }
    /// Ends the port because of a system error.
    pub fn fail(&mut self, errno: i32) {
        self.end(End::Reason(crate::posix::errno_atom(errno)));
    }

    /// Delivers input to the owner.
    pub fn input(&mut self, data: &[u8]) {
        if self.flushing || plants::due(Plant::PortDrops, 300) {
            return;
        }
        self.count_in(data.len());
        match self.lines.take() {
            None => self.deliver(None, data),
            Some(mut l) => {
                l.feed(data, |eol, s| self.deliver(Some(eol), s));
                self.lines = Some(l);
            }
        }
    }
    /// Delivers the rest of the last line.
    pub(super) fn flush_lines(&mut self) {
        if let (Some(mut l), false) = (self.lines.take(), self.flushing) {
            l.flush(|eol, s| self.deliver(Some(eol), s));
            self.lines = Some(l);
        }
    }
    fn deliver(&self, eol: Option<bool>, data: &[u8]) {
        let (id, binary) = (self.id, self.binary);
        let n = data.len();
        let on_heap = n <= heap_bin_limit();
        let words = match (binary, on_heap) {
            (false, _) => 2 * n,
            (true, true) => HEAP_BIN_HEAD_WORDS + n.div_ceil(8),
            (true, false) => REFC_BIN_WORDS,
        };
        let pairs = 2 + usize::from(eol.is_some());
        let build = |a: &mut dyn Alloc| {
            let bytes = match (binary, on_heap) {
                (false, _) => a.byte_list(data, NIL),
                (true, true) => {
                    let (t, at) = a.heap_bin(n);
                    // SAFETY: `heap_bin` made room for n bytes.
                    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at, n) };
                    t
                }
                // SAFETY: the count of the new block is handed over.
                (true, false) => unsafe { a.refc_bin(RcBin::from_bytes(data), n) },
            };
            let bytes = match eol {
                Some(true) => a.tuple(&[atom::intern("eol"), bytes]),
                Some(false) => a.tuple(&[atom::intern("noeol"), bytes]),
                None => bytes,
            };
            let data = a.tuple(&[am::DATA, bytes]);
            a.tuple(&[id, data])
        };
        if self.traced_for(flag::SEND) {
            return self.send_traced(self.connected, build);
        }
        outbox::message_of(self.connected, words + pairs * PAIR_WORDS, build);
    }
    /// Sends `{Port, What}` to the owner.
    pub fn tell(&self, what: Term) {
        if self.flushing {
            return;
        }
        let id = self.id;
        self.message(self.connected, |a| a.tuple(&[id, what]));
    }
    /// Sends `{Port, {Tag, Number}}` to the owner.
    pub(crate) fn tell_number(&self, tag: &str, n: i64) {
        if self.flushing {
            return;
        }
        let id = self.id;
        self.message(self.connected, |a| {
            let t = a.tuple(&[atom::intern(tag), Term::small(n)]);
            a.tuple(&[id, t])
        });
    }
    /// Sends a process the message that `build` makes.
    pub fn message(&self, to: Term, build: impl FnOnce(&mut dyn Alloc) -> Term) {
        if self.traced_for(flag::SEND) {
            return self.send_traced(to, build);
        }
        outbox::message(to, build);
    }
    /// Sends the owner the exit signal for a malformed message to the port.
    pub(super) fn bad_signal(&self) {
        outbox::exit_signal(self.id, self.connected, atom::intern("badsig"));
    }

    /// Counts bytes that a process has sent.
    pub(super) fn count_out(&mut self, n: usize) {
        self.bytes_out += n as u64;
        super::TOTAL_OUT.fetch_add(n as u64, Ordering::Relaxed);
    }
    /// Whether senders have to wait.
    pub fn busy(&self) -> bool {
        self.busy
    }
    /// Sets whether senders have to wait.
    pub fn set_busy(&mut self, on: bool) {
        self.busy = on;
        if !on {
            self.wake_waiting();
        }
    }
    /// Wakes the senders whose turn it is: while a list is sent in parts, only its sender.
    pub(super) fn wake_waiting(&mut self) {
        match (&self.transit, &self.backlog) {
            (Some(t), _) => {
                let sender = t.sender;
                if self.waiting.remove(&Peer::of(sender)).is_some() {
                    outbox::wake(sender);
                }
            }
            (None, Some(_)) => {}
            (None, None) => self.wake_all(),
        }
    }
    /// Wakes all waiting senders.
    pub(super) fn wake_all(&mut self) {
        for (pid, ()) in self.waiting.drain() {
            outbox::wake(pid.term());
        }
    }
    /// Adds `pid` to the senders that are woken when the port is no longer busy.
    pub(super) fn wait(&mut self, pid: Term) {
        self.waiting.insert(Peer::of(pid), ());
    }

    /// Adds a link. Returns false if there was one already.
    pub(super) fn add_link(&mut self, pid: Term) -> bool {
        let new = !self.links.contains(&Peer::of(pid));
        if new {
            self.links.insert(Peer::of(pid), ());
        }
        new
    }
    /// Removes a link. Returns false if there was none.
    pub(super) fn remove_link(&mut self, pid: Term) -> bool {
        self.links.remove(&Peer::of(pid)).is_some()
    }
    /// The processes that wait until the port is no longer busy.
    pub(super) fn suspended(&self) -> impl Iterator<Item = Term> {
        self.waiting.iter().map(|w| w.0.term())
    }
    pub(super) fn links(&self) -> impl Iterator<Item = Term> {
        self.links.iter().map(|l| l.0.term())
    }
    pub(super) fn add_watcher(&mut self, by: Term, reference: Term, name: Term) {
        let Some(key) = RefKey::of(reference) else {
            debug_assert!(false, "a monitor has a reference of this runtime");
            return;
        };
        let watcher = Watcher {
            by,
            reference: OwnedTerm::copy_of(reference),
            name,
        };
        self.watchers.insert(key, watcher);
    }
    pub(super) fn remove_watcher(&mut self, reference: Term) {
        if let Some(key) = RefKey::of(reference) {
            self.watchers.remove(&key);
        }
    }
    /// The processes that monitor the port, with their references.
    pub(super) fn watchers(&self) -> impl Iterator<Item = (Term, Term)> {
        self.watchers.iter().map(|w| (w.1.by, w.1.reference.term()))
    }
    /// Tells all linked and monitoring processes that the port has ended.
    pub(super) fn break_links(&mut self, reason: Term) {
        for (pid, ()) in self.links.drain() {
            outbox::link_exit(self.id, pid.term(), reason);
        }
        for (_, w) in self.watchers.drain() {
            let mut place = purlin_term::frag::Fragment::new();
            let object = if w.name.is_nil() {
                self.id
            } else {
                place.tuple(&[w.name, purlin_term::node::this_name()])
            };
            outbox::down(w.by, w.reference.term(), object, reason);
        }
    }
    /// Bytes that belong to the port, as stock counts them.
    pub(super) fn memory(&self) -> usize {
        self.links.len() * LINK_BYTES
            + self.watchers.len() * MONITOR_BYTES
            + self.lines.as_ref().map_or(0, |l| l.capacity())
    }
}
