//! The state of a socket: its descriptor, its owner, the processes that wait for it, its counters.
//!
//! # Waiting processes
//! One process of each kind (readers, acceptors, writers) is current: its call returned `select`,
//! and it calls again when notified. Others queue behind it. A connecting process has no queue.
//!
//! # Lifetime
//! The registry of sockets holds a reference to each socket that it is asked to track. Such a
//! socket lives until it is closed, by a program or because its owner ended; `own` keeps the
//! reference for the message that says so. Any other socket is also closed with its last reference.
//!
//! # Locks
//! The socket's own lock guards everything. Messages are sent under it, so that a cancelling
//! process knows whether its message has been sent. Terms that own references are dropped after the
//! lock is released ([`Locked`]), since the last reference to the socket may be among them. The
//! lock of [`involved`] is taken under it, never the other way round.
//!
//! # Orderings
//! A socket can be given to a process that is exiting. The giver increments `INVOLVEMENTS`, enters
//! the pair in [`involved`], and then asks `is_alive`, which has a sequentially consistent fence
//! before it loads the state word. The exiting process sets its flag, has such a fence in
//! `lifecycle::exit`, and then loads `INVOLVEMENTS` in [`owner_exit`]. One fence comes first. If it
//! is the giver's, the exiting process sees the increment and takes the lock; if the pair is not
//! there yet, the lock makes the giver see the flag. If it is the exiting process's, the giver sees
//! the flag. So at least one of them handles the socket. The counter falls only after its pair is
//! removed, so it is never zero while a pair exists.
//! The registry's pid is an immediate; its release and acquire pair only so that the registry is
//! seen as it was when set.

use super::base::*;
use super::turns::Turns;
use crate::cx::{Cx, Fail};
use crate::native_state;
use crate::os::sock as sys;
use crate::poll::{self, Ready};
use crate::posix::errno_atom;
use crate::process;
use crate::process::ext::Hashing;
use crate::signal;
use purlin_term::compare::eq_exact;
use purlin_term::frag::{Fragment, OwnedTerm};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am, atom, copy, map};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

// States of reading and of writing, as `nif_info` shows them.
pub(crate) const BOUND: u32 = 0x1;
pub(crate) const LISTENING: u32 = 0x2;
pub(crate) const ACCEPTING: u32 = 0x4;
pub(crate) const CONNECTING: u32 = 0x10;
pub const CONNECTED: u32 = 0x20;
pub const SELECTED: u32 = 0x100;
pub(crate) const CLOSING: u32 = 0x200;
pub(crate) const CLOSED: u32 = 0x400;

/// Default number of bytes of one receive.
pub(crate) const RECEIVE_BYTES: usize = 8192;
/// Default number of bytes for control messages.
pub(crate) const CONTROL_BYTES: usize = 1024;

/// The state shared by all sockets.
pub(crate) struct Global {
    /// Pid of the registry, or 0.
    registry: AtomicU64,
    pub use_registry: AtomicBool,
    pub debug: AtomicBool,
    pub socket_debug: AtomicBool,
    pub open: Mutex<Census>,
}
pub(crate) static GLOBAL: Global = Global {
    registry: AtomicU64::new(0),
    use_registry: AtomicBool::new(true),
    debug: AtomicBool::new(false),
    socket_debug: AtomicBool::new(false),
    open: Mutex::new(Census {
        all: 0,
        kinds: [0; 3],
        domains: [0; 3],
        protocols: [0; 4],
    }),
};

/// Numbers of open sockets: all, by type (datagram, stream, sequenced packets), by domain (local,
/// IPv4, IPv6), by protocol (IP, TCP, UDP, SCTP).
#[derive(Clone, Copy)]
pub(crate) struct Census {
    pub all: u64,
    pub kinds: [u64; 3],
    pub domains: [u64; 3],
    pub protocols: [u64; 4],
}

/// Number of open sockets.
pub fn open_count() -> u64 {
    GLOBAL.open.lock().all
}

impl Census {
    const KINDS: [i32; 3] = [libc::SOCK_DGRAM, libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
    const DOMAINS: [i32; 3] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    const PROTOCOLS: [i32; 4] = [
        libc::IPPROTO_IP,
        libc::IPPROTO_TCP,
        libc::IPPROTO_UDP,
        libc::IPPROTO_SCTP,
    ];
    fn count(s: &State, by: i64) {
        let mut c = GLOBAL.open.lock();
        let add = |n: &mut u64| *n = n.saturating_add_signed(by);
        add(&mut c.all);
        let row = |counts: &mut [u64], codes: &[i32], code: i32| {
            if let Some(i) = codes.iter().position(|&c| c == code) {
                add(&mut counts[i]);
            }
        };
        row(&mut c.kinds, &Census::KINDS, s.kind);
        row(&mut c.domains, &Census::DOMAINS, s.domain);
        row(&mut c.protocols, &Census::PROTOCOLS, s.protocol);
    }
}

/// Takes the load data of module `prim_socket`: the registry, whether sockets are registered there,
/// whether debugging is on.
pub fn on_load(extra: Term) {
    if !extra.is_map() {
        return;
    }
    if let Some(p) = map::get(extra, atom::intern("registry")).filter(|p| p.is_local_pid()) {
        GLOBAL.registry.store(p.raw(), Ordering::Release);
    }
    let flag = |to: &AtomicBool, key: Term| {
        to.store(
            bool_of(extra, key, to.load(Ordering::Relaxed)),
            Ordering::Relaxed,
        );
    };
    flag(&GLOBAL.use_registry, use_registry());
    flag(&GLOBAL.debug, atom::intern("debug"));
    flag(&GLOBAL.socket_debug, atom::intern("socket_debug"));
}

/// Sends the registry `{'$socket', What, Socket}`.
pub(crate) fn tell_registry(what: &str, reference: Term) {
    let raw = GLOBAL.registry.load(Ordering::Acquire);
    if raw == 0 {
        return;
    }
    // SAFETY: the word of a local pid, which is an immediate.
    let to = unsafe { Term::from_raw(raw) };
    let what = atom::intern(what);
    signal::send_with(to, |b| {
        let s = b.tuple(&[tag(), reference]);
        b.tuple(&[tag(), what, s])
    });
}

/// The value that a magic reference to a socket owns.
pub struct Handle(pub Arc<Sock>);

impl Drop for Handle {
    fn drop(&mut self) {
        let fd = self.0.lock().take_fd();
        if let Some(fd) = fd {
            // SAFETY: the descriptor was taken from the socket, which owned it.
            let _ = unsafe { sys::close(fd) };
        }
    }
}

/// The socket behind a reference.
pub(crate) fn sock<'a>(t: Term) -> Result<&'a Arc<Sock>, Fail> {
    native_state::get::<Handle>(t)
        .map(|h| &h.0)
        .ok_or(Fail::Badarg)
}

/// A waiting process, with its message `{'$socket', {'$socket', Socket}, select, Ref}`.
pub struct Request {
    pub pid: Term,
    message: OwnedTerm,
}

impl Request {
    pub fn new(pid: Term, me: Term, r: Term) -> Request {
        let mut f = Fragment::new();
        let s = f.tuple(&[tag(), me]);
        let m = f.tuple(&[tag(), s, select(), r]);
        let outer = OwnedTerm::from_parts(m, f);
        Request {
            pid,
            message: OwnedTerm::copy_of(outer.term()),
        }
    }
    fn part(&self, i: usize) -> Term {
        self.message
            .term()
            .as_tuple()
            .map_or(am::UNDEFINED, |t| t[i])
    }
    /// Whether the request has this reference.
    pub(crate) fn is_for(&self, r: Term) -> bool {
        eq_exact(self.part(3), r)
    }
    /// Tells the process that its `select` message will not come.
    pub(crate) fn abort(&self, reason: Term) {
        signal::send_with(self.pid, |b| {
            let why = b.tuple(&[self.part(3), reason]);
            b.tuple(&[tag(), self.part(1), abort(), why])
        });
    }
    fn select(&self) -> Select {
        Select {
            to: self.pid,
            message: OwnedTerm::copy_of(self.message.term()),
        }
    }
}

/// A message to send when the descriptor is ready.
pub(crate) struct Select {
    to: Term,
    message: OwnedTerm,
}

/// The process that is served, and those behind it.
#[derive(Default)]
pub(crate) struct Queue {
    pub current: Option<Request>,
    pub waiting: Turns<Request>,
}

impl Queue {
    pub(crate) fn is_waiting(&self, pid: Term) -> bool {
        self.waiting.get(pid).is_some()
    }
    /// Adds a request at the end.
    pub(crate) fn enqueue(&mut self, q: Request) {
        self.waiting.push_back(q.pid, q);
    }
    /// Removes a process's request from the waiting ones, if it has the reference `r`.
    fn unqueue(&mut self, pid: Term, r: Option<Term>) -> Option<Request> {
        let q = self.waiting.get(pid)?;
        if r.is_some_and(|r| !q.is_for(r)) {
            return None;
        }
        self.waiting.remove(pid)
    }
    pub fn len(&self) -> usize {
        match self.current {
            Some(_) => 1 + self.waiting.len(),
            None => 0,
        }
    }
}

/// The traffic counters of `nif_info`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counters {
    pub read_byte: u64,
    pub read_fails: u64,
    pub read_pkg: u64,
    pub read_pkg_max: u64,
    pub read_tries: u64,
    pub read_waits: u64,
    pub write_byte: u64,
    pub write_fails: u64,
    pub write_pkg: u64,
    pub write_pkg_max: u64,
    pub write_tries: u64,
    pub write_waits: u64,
    pub acc_success: u64,
    pub acc_fails: u64,
    pub acc_tries: u64,
    pub acc_waits: u64,
    /// Bytes of the current package.
    pub read_now: u64,
    pub write_now: u64,
}

/// The counters of sent files in `nif_info`.
#[derive(Clone, Copy, Default)]
pub(crate) struct FileCounters {
    pub calls: u64,
    pub byte: u64,
    pub fails: u64,
    pub max: u64,
    pub pkg: u64,
    pub pkg_max: u64,
    pub tries: u64,
    pub waits: u64,
    /// Bytes of the current file.
    pub now: u64,
}

/// See the module head.
pub struct State {
    /// -1 when closed.
    pub fd: RawFd,
    pub domain: i32,
    pub kind: i32,
    pub protocol: i32,
    /// The descriptor that the socket was made from.
    pub given: Option<RawFd>,
    pub close_on_close: bool,
    pub owner: Option<Term>,
    /// The process between `nif_close` and `nif_finalize_close`.
    pub closer: Option<Term>,
    pub read_state: u32,
    pub write_state: u32,
    pub readers: Queue,
    pub acceptors: Queue,
    pub writers: Queue,
    pub connector: Option<Request>,
    select_read: Option<Select>,
    select_write: Option<Select>,
    poll: Option<poll::Id>,
    pub counters: Counters,
    pub file_counters: Option<FileCounters>,
    /// The file being sent.
    pub file: Option<RawFd>,
    /// Number of buffers that one receive may fill (0: no limit), and how many it has filled.
    pub buffers: u32,
    pub buffers_filled: u32,
    pub receive_bytes: usize,
    pub receive_control_bytes: usize,
    pub send_control_bytes: usize,
    pub wrap_messages: bool,
    pub debug: bool,
    pub use_registry: bool,
    /// An option that is kept to be read back. It does not change what is selected.
    pub keeps_selected: bool,
    pub meta: OwnedTerm,
    /// The socket's own reference, while the registry knows the socket.
    pub own: Option<OwnedTerm>,
    /// Processes whose end affects this socket.
    involved: HashSet<u64, Hashing>,
    discarded: Vec<OwnedTerm>,
}

/// A socket.
pub(crate) struct Sock {
    state: Mutex<State>,
}

/// The state, locked.
pub(crate) struct Locked<'a>(Option<MutexGuard<'a, State>>);

impl Deref for Locked<'_> {
    type Target = State;
    fn deref(&self) -> &State {
        match &self.0 {
            Some(g) => g,
            None => unreachable!("unlocked by its drop only"),
        }
    }
}
impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        match &mut self.0 {
            Some(g) => g,
            None => unreachable!("unlocked by its drop only"),
        }
    }
}
impl Drop for Locked<'_> {
    fn drop(&mut self) {
        if let Some(mut g) = self.0.take() {
            let left = std::mem::take(&mut g.discarded);
            drop(g);
            drop(left);
        }
    }
}

impl Sock {
    /// Makes a socket that nobody knows yet.
    pub fn new(fd: RawFd, domain: i32, kind: i32, protocol: i32) -> Arc<Sock> {
        Arc::new(Sock {
            state: Mutex::new(State {
                fd,
                domain,
                kind,
                protocol,
                given: None,
                close_on_close: true,
                owner: None,
                closer: None,
                read_state: 0,
                write_state: 0,
                readers: Queue::default(),
                acceptors: Queue::default(),
                writers: Queue::default(),
                connector: None,
                select_read: None,
                select_write: None,
                poll: None,
                counters: Counters::default(),
                file_counters: None,
                file: None,
                buffers: 0,
                buffers_filled: 0,
                receive_bytes: RECEIVE_BYTES,
                receive_control_bytes: CONTROL_BYTES,
                send_control_bytes: CONTROL_BYTES,
                wrap_messages: false,
                debug: GLOBAL.socket_debug.load(Ordering::Relaxed),
                use_registry: GLOBAL.use_registry.load(Ordering::Relaxed),
                keeps_selected: false,
                meta: OwnedTerm::copy_of(am::UNDEFINED),
                own: None,
                involved: HashSet::default(),
                discarded: Vec::new(),
            }),
        })
    }
    pub fn lock(&self) -> Locked<'_> {
        Locked(Some(self.state.lock()))
    }
    /// Applies the options of `nif_open`.
    pub(crate) fn settings(&self, opts: Term) {
        let mut s = self.lock();
        s.debug = bool_of(opts, atom::intern("debug"), s.debug);
        s.use_registry = bool_of(opts, use_registry(), s.use_registry);
    }
    /// Copies the settings that an accepted socket inherits from its listening socket.
    pub(crate) fn inherit(&self, from: &State) {
        let mut s = self.lock();
        s.receive_bytes = from.receive_bytes;
        s.buffers = from.buffers;
        s.receive_control_bytes = from.receive_control_bytes;
        s.send_control_bytes = from.send_control_bytes;
        s.wrap_messages = from.wrap_messages;
        s.debug = from.debug;
        s.use_registry = from.use_registry;
    }
}

/// Gives a new socket to the running process. Returns a reference to the socket.
pub fn publish(cx: &mut Cx, sock: Arc<Sock>) -> Term {
    let r = native_state::make(cx, Handle(sock.clone()));
    let me = cx.self_pid();
    let mut s = sock.lock();
    s.owner = Some(me);
    s.involve(&sock, me);
    Census::count(&s, 1);
    if s.use_registry {
        s.register(r);
    }
    drop(s);
    signal::own_signals::note_socket(cx, r);
    r
}

impl State {
    pub(crate) fn is_open(&self) -> bool {
        self.read_state & (CLOSING | CLOSED) == 0
    }
    pub(crate) fn is_closing(&self) -> bool {
        self.read_state & CLOSING != 0
    }
    pub(crate) fn is_closed(&self) -> bool {
        self.read_state & CLOSED != 0
    }
    pub(crate) fn is_stream(&self) -> bool {
        self.kind == libc::SOCK_STREAM
    }
    /// Drops a request when the lock is released.
    pub(crate) fn discard(&mut self, q: Option<Request>) {
        self.discarded.extend(q.map(|q| q.message));
    }
    /// Drops a term when the lock is released.
    pub(crate) fn discard_term(&mut self, t: OwnedTerm) {
        self.discarded.push(t);
    }

    /// Registers the socket, whose reference is `r`.
    pub fn register(&mut self, r: Term) {
        self.use_registry = true;
        self.own = Some(OwnedTerm::copy_of(r));
        tell_registry("add", r);
    }
    /// Tells the registry that the socket is gone.
    pub(crate) fn unregister(&mut self) {
        if let Some(own) = self.own.take() {
            tell_registry("del", own.term());
            self.discarded.push(own);
        }
    }

    fn arm(&mut self, sock: &Arc<Sock>) -> Result<(), i32> {
        let id = match self.poll {
            Some(id) => id,
            None => {
                let id = poll::register(self.fd, sock.clone())
                    .map_err(|e| crate::posix::errno_of(&e))?;
                self.poll = Some(id);
                id
            }
        };
        poll::want(id, self.select_read.is_some(), self.select_write.is_some());
        Ok(())
    }
    /// Whether a process waits for a message that it can read or accept.
    pub(crate) fn selects_read(&self) -> bool {
        self.select_read.is_some()
    }
    /// Notifies the process when it can read or accept. Replaces the selection before.
    pub(crate) fn select_read(&mut self, sock: &Arc<Sock>, q: &Request) -> Result<(), i32> {
        let old = self.select_read.replace(q.select());
        self.discarded.extend(old.map(|o| o.message));
        self.read_state |= SELECTED;
        self.arm(sock)
    }
    /// Notifies the process when it can write. Replaces the selection before.
    pub(crate) fn select_write(&mut self, sock: &Arc<Sock>, q: &Request) -> Result<(), i32> {
        let old = self.select_write.replace(q.select());
        self.discarded.extend(old.map(|o| o.message));
        self.write_state |= SELECTED;
        self.arm(sock)
    }
    /// Cancels a selection. Returns `ok`, or `select_sent` if it is too late.
    fn deselect(&mut self, write: bool) -> Term {
        let s = if write {
            self.select_write.take()
        } else {
            self.select_read.take()
        };
        let Some(s) = s else { return select_sent() };
        self.discarded.push(s.message);
        if let Some(id) = self.poll {
            poll::want(id, self.select_read.is_some(), self.select_write.is_some());
        }
        am::OK
    }

    /// Makes the next waiting process the current one.
    fn next(
        &mut self,
        sock: &Arc<Sock>,
        queue: fn(&mut State) -> &mut Queue,
        sel: fn(&mut State, &Arc<Sock>, &Request) -> Result<(), i32>,
    ) {
        let old = queue(self).current.take();
        self.discard(old);
        while let Some(q) = queue(self).waiting.pop_front() {
            match sel(self, sock, &q) {
                Ok(()) => {
                    queue(self).current = Some(q);
                    return;
                }
                Err(e) => {
                    q.abort(errno_atom(e));
                    self.discard(Some(q));
                }
            }
        }
    }
    pub(crate) fn next_reader(&mut self, sock: &Arc<Sock>) {
        if self.readers.current.is_some() {
            self.next(sock, |s| &mut s.readers, State::select_read);
        }
    }
    pub(crate) fn next_writer(&mut self, sock: &Arc<Sock>) {
        if self.writers.current.is_some() {
            self.next(sock, |s| &mut s.writers, State::select_write);
        }
    }
    pub(crate) fn next_acceptor(&mut self, sock: &Arc<Sock>) {
        if self.acceptors.current.is_some() {
            self.next(sock, |s| &mut s.acceptors, State::select_read);
        }
        if self.acceptors.current.is_none() {
            self.read_state &= !ACCEPTING;
        }
    }

    /// Fails the current process and those behind it.
    fn fail(&mut self, queue: fn(&mut State) -> &mut Queue, reason: Term) {
        let Some(q) = queue(self).current.take() else {
            return;
        };
        self.discard(Some(q));
        while let Some(q) = queue(self).waiting.pop_front() {
            q.abort(reason);
            self.discard(Some(q));
        }
    }
    pub(crate) fn fail_readers(&mut self, reason: Term) {
        self.fail(|s| &mut s.readers, reason);
    }
    pub(crate) fn fail_writers(&mut self, reason: Term) {
        self.fail(|s| &mut s.writers, reason);
    }
    pub(crate) fn fail_acceptors(&mut self, reason: Term) {
        self.fail(|s| &mut s.acceptors, reason);
    }

    pub(crate) fn cancel_connect(&mut self, by: Term, r: Term) -> Term {
        match &self.connector {
            Some(c) if c.pid == by && c.is_for(r) => {}
            _ => return not_found(),
        }
        let c = self.connector.take();
        self.discard(c);
        self.write_state &= !CONNECTING;
        self.deselect(true)
    }
    fn cancel(
        &mut self,
        by: Term,
        r: Term,
        queue: fn(&mut State) -> &mut Queue,
        write: bool,
        next: impl FnOnce(&mut State),
    ) -> Term {
        match &queue(self).current {
            None => not_found(),
            Some(q) if q.pid == by => {
                if !q.is_for(r) {
                    return not_found();
                }
                let answer = self.deselect(write);
                next(self);
                answer
            }
            Some(_) => match queue(self).unqueue(by, Some(r)) {
                Some(q) => {
                    self.discard(Some(q));
                    am::OK
                }
                None => not_found(),
            },
        }
    }
    pub(crate) fn cancel_accept(&mut self, sock: &Arc<Sock>, by: Term, r: Term) -> Term {
        self.cancel(
            by,
            r,
            |s| &mut s.acceptors,
            false,
            |s| s.next_acceptor(sock),
        )
    }
    pub(crate) fn cancel_read(&mut self, sock: &Arc<Sock>, by: Term, r: Term) -> Term {
        self.cancel(by, r, |s| &mut s.readers, false, |s| s.next_reader(sock))
    }
    pub(crate) fn cancel_write(&mut self, sock: &Arc<Sock>, by: Term, r: Term) -> Term {
        self.cancel(by, r, |s| &mut s.writers, true, |s| s.next_writer(sock))
    }

    /// Stops all use of the socket and tells everybody who waits. A process whose `select` message
    /// has been sent finds out when it calls.
    pub fn stop(&mut self) {
        self.read_state |= CLOSING;
        self.write_state |= CLOSING;
        if let Some(id) = self.poll.take() {
            poll::forget(id);
        }
        let reading = self.select_read.take();
        let writing = self.select_write.take();
        let (r, w) = (reading.is_some(), writing.is_some());
        self.discarded
            .extend(reading.into_iter().chain(writing).map(|s| s.message));
        self.end(|s| &mut s.writers, w);
        if let Some(c) = self.connector.take() {
            if w {
                c.abort(closed());
            }
            self.discard(Some(c));
        }
        self.end(|s| &mut s.readers, r);
        self.end(|s| &mut s.acceptors, r);
    }
    fn end(&mut self, queue: fn(&mut State) -> &mut Queue, selected: bool) {
        if let Some(q) = queue(self).current.take() {
            if selected {
                q.abort(closed());
            }
            self.discard(Some(q));
        }
        while let Some(q) = queue(self).waiting.pop_front() {
            q.abort(closed());
            self.discard(Some(q));
        }
    }

    /// Closes the socket. Returns the descriptor if it must be closed.
    pub(crate) fn take_fd(&mut self) -> Option<RawFd> {
        if self.is_closed() {
            return None;
        }
        if !self.is_closing() {
            self.stop();
        }
        let fd = std::mem::replace(&mut self.fd, -1);
        self.read_state |= CLOSED;
        self.write_state |= CLOSED;
        Census::count(self, -1);
        let meta = std::mem::replace(&mut self.meta, OwnedTerm::copy_of(am::UNDEFINED));
        self.discarded.push(meta);
        if let Some(file) = self.file.take() {
            // SAFETY: the file was taken from the socket, which owned it.
            let _ = unsafe { sys::close(file) };
        }
        forget(
            std::mem::take(&mut self.involved),
            self as *const State as usize,
        );
        self.close_on_close.then_some(fd)
    }

    /// Records that the end of a process affects this socket. Returns false if the process has
    /// ended or is exiting.
    pub(crate) fn involve(&mut self, sock: &Arc<Sock>, pid: Term) -> bool {
        if self.involved.insert(pid.raw()) {
            INVOLVEMENTS.fetch_add(1, Ordering::SeqCst);
            involved()
                .entry(pid.raw())
                .or_default()
                .insert(self as *const State as usize, Arc::downgrade(sock));
        }
        // An exiting process sets its flag before it looks up the sockets that its end affects.
        process::table().is_alive(pid)
    }

    /// Adds the socket's reference once for each reason why the end of `pid` matters: ownership,
    /// and each waiting request.
    fn watching(&self, pid: Term, to: &mut dyn Alloc, out: &mut Vec<Term>) {
        let queues = [&self.readers, &self.acceptors, &self.writers];
        let requests = queues
            .into_iter()
            .flat_map(|q| q.current.iter().chain(q.waiting.iter()))
            .chain(&self.connector);
        let mine: SmallVec<[&Request; 2]> = requests.filter(|q| q.pid == pid).collect();
        let holds = [self.owner, self.closer].contains(&Some(pid));
        // If the registry does not know the socket, only a request holds its reference.
        let own = self.own.as_ref().map(|o| o.term());
        let of_request = || Some(mine.first()?.part(1).as_tuple()?[1]);
        if let Some(r) = own.or_else(of_request) {
            let n = mine.len() + usize::from(holds);
            out.extend((0..n).map(|_| copy::copy(r, to)));
        }
    }

    /// Handles the end of a process. Returns the descriptor to be closed for it.
    pub fn down(&mut self, sock: &Arc<Sock>, pid: Term) -> Option<RawFd> {
        if self.closer == Some(pid) || self.owner == Some(pid) {
            let closes = self.closer == Some(pid) || self.is_open();
            if self.closer == Some(pid) {
                self.closer = None;
            }
            if self.owner == Some(pid) {
                self.owner = None;
            }
            return closes.then(|| self.take_fd()).flatten();
        }
        if self.is_closed() {
            return None;
        }
        if self.connector.as_ref().is_some_and(|c| c.pid == pid) {
            let c = self.connector.take();
            self.discard(c);
            self.write_state &= !CONNECTING;
            return None;
        }
        let is_current = |q: &Queue| q.current.as_ref().is_some_and(|q| q.pid == pid);
        if is_current(&self.readers) {
            self.next_reader(sock);
        }
        if is_current(&self.acceptors) {
            self.next_acceptor(sock);
        }
        if is_current(&self.writers) {
            self.next_writer(sock);
        }
        let left = [
            self.readers.unqueue(pid, None),
            self.acceptors.unqueue(pid, None),
            self.writers.unqueue(pid, None),
        ];
        for q in left {
            self.discard(q);
        }
        None
    }
}

type Involved = HashMap<u64, HashMap<usize, Weak<Sock>>>;

/// Number of pairs in [`involved`], so that processes that never used a socket end without taking
/// the lock.
static INVOLVEMENTS: AtomicUsize = AtomicUsize::new(0);

/// The sockets that the end of a process affects, by the process's word and the socket's address.
fn involved() -> MutexGuard<'static, Involved> {
    static INVOLVED: OnceLock<Mutex<Involved>> = OnceLock::new();
    let m = INVOLVED.get_or_init(|| Mutex::new(HashMap::new()));
    m.lock()
}

/// Removes all entries of a closed socket.
fn forget(pids: HashSet<u64, Hashing>, sock: usize) {
    let mut all = involved();
    for p in pids {
        let Some(socks) = all.get_mut(&p) else {
            continue;
        };
        if socks.remove(&sock).is_some() {
            INVOLVEMENTS.fetch_sub(1, Ordering::SeqCst);
        }
        if socks.is_empty() {
            all.remove(&p);
        }
    }
}

/// Adds the references of the sockets that watch `pid`.
pub fn watching(pid: Term, to: &mut dyn Alloc, out: &mut Vec<Term>) {
    if INVOLVEMENTS.load(Ordering::SeqCst) == 0 {
        return;
    }
    let socks: Vec<Arc<Sock>> = match involved().get(&pid.raw()) {
        Some(all) => all.values().filter_map(|s| s.upgrade()).collect(),
        None => return,
    };
    for sock in socks {
        sock.lock().watching(pid, to, out);
    }
}

/// Closes the sockets of a process that has ended, and passes its places in queues to others.
pub fn owner_exit(pid: Term) {
    if INVOLVEMENTS.load(Ordering::SeqCst) == 0 {
        return;
    }
    let Some(socks) = involved().remove(&pid.raw()) else {
        return;
    };
    INVOLVEMENTS.fetch_sub(socks.len(), Ordering::SeqCst);
    for sock in socks.into_values().filter_map(|s| s.upgrade()) {
        sock.lock().involved.remove(&pid.raw());
        close_for(&sock, pid);
    }
}

/// Does for a socket what the end of a process requires.
pub(crate) fn close_for(sock: &Arc<Sock>, pid: Term) {
    let fd = sock.lock().down(sock, pid);
    if let Some(fd) = fd {
        // SAFETY: the descriptor was taken from the socket, which owned it.
        let _ = unsafe { sys::close(fd) };
    }
    let mut s = sock.lock();
    if s.is_closed() {
        s.unregister();
    }
}

impl Ready for Sock {
    fn ready(&self, id: poll::Id, readable: bool, writable: bool) {
        let mut s = self.lock();
        if s.poll != Some(id) {
            return;
        }
        let r = if readable { s.select_read.take() } else { None };
        let w = if writable {
            s.select_write.take()
        } else {
            None
        };
        for m in r.into_iter().chain(w) {
            signal::send(m.to, m.message.term());
            s.discarded.push(m.message);
        }
    }
}
