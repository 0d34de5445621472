//! The common part of all sockets: descriptor, state, settings, statistics, and the messages about
//! them.

use super::addr::Addr;
use super::interest::Interest;
use super::{BAD_SEQUENCE, EINVAL, Error};
use crate::lazy_atoms;
use crate::net::packet::{Kind, Limits};
use crate::os::kernel_numbers as numbers;
use crate::os::sock as sys;
use crate::poll;
use crate::port::Base;
use crate::process::ext::Hashing;
use purlin_native::exports::CodeHooks;
use purlin_term::release::{self, LARGER_SOCKET_BUFFERS, PROTOCOL_OF_SOCKETS};
use purlin_term::{Alloc, NIL, Term, am, etf};
use std::collections::HashMap;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

lazy_atoms! {
    inet_async = "inet_async";
    inet_reply = "inet_reply";
    empty_out_q = "empty_out_q";
}

/// Protocols, as a request to open a socket names them since OTP 29.
pub mod protocol {
    pub const DEFAULT: u8 = 0;
    pub const TCP: u8 = 1;
    pub const UDP: u8 = 2;
    pub const MPTCP: u8 = 4;
}

/// Bytes of a request to open a socket: domain, type, and the protocol in releases that name it.
pub fn open_bytes() -> usize {
    match release::has(PROTOCOL_OF_SOCKETS) {
        true => 3,
        false => 2,
    }
}

/// Bits of the state, as `getstatus` returns them.
pub mod state {
    pub(crate) const OPEN: u32 = 0x0001;
    /// Connected.
    pub(crate) const ACTIVE: u32 = 0x0004;
    pub(crate) const LISTEN: u32 = 0x0008;
    pub(crate) const CONNECTING: u32 = 0x0010;
    pub(crate) const ACCEPTING: u32 = 0x0020;
    pub(crate) const BUSY: u32 = 0x0080;
    /// Several processes accept.
    pub(crate) const MULTI: u32 = 0x0100;
}

/// Values of option `active`.
pub mod active {
    pub(crate) const PASSIVE: i32 = 0;
    pub(crate) const ONCE: i32 = 2;
    /// As many times as a counter says.
    pub(crate) const MULTI: i32 = 3;
}

/// Kinds of requested control messages, in [`Sock::control_wanted`].
pub mod control {
    pub(crate) const TOS: u8 = 1;
    pub(crate) const TCLASS: u8 = 2;
    pub(crate) const TTL: u8 = 4;
}

/// Buffer size of a new socket in bytes.
fn default_buffer() -> i32 {
    match release::has(LARGER_SOCKET_BUFFERS) {
        true => 9216,
        false => 1460,
    }
}

/// Traffic statistics, as `getstat` returns them.
#[derive(Default, Clone)]
pub struct Stats {
    pub count: u32,
    pub max: u32,
    pub average: f64,
    pub deviation: f64,
    pub bytes: u64,
}

impl Stats {
    /// Counts a packet of `n` bytes.
    pub fn add(&mut self, n: usize) {
        self.bytes += n as u64;
        self.count = self.count.wrapping_add(1).max(1);
        self.max = self.max.max(u32::try_from(n).unwrap_or(u32::MAX));
        self.average += (n as f64 - self.average) / self.count as f64;
        self.deviation += (n as f64 - self.average - self.deviation) / self.count as f64;
    }
}

/// The processes that get a message when everything is sent.
#[derive(Default)]
pub struct Subscribers {
    /// Number of requests of each.
    requests: HashMap<Term, u32, Hashing>,
    /// Number of processes above which those that have ended are dropped.
    most: usize,
}

impl Subscribers {
    /// Enters the process that `base` works for.
    pub fn add(&mut self, base: &Base) {
        if self.requests.len() > self.most.max(LEAST_SUBSCRIBERS) {
            self.requests.retain(|&pid, _| base.is_alive(pid));
            self.most = self.requests.len() * 2;
        }
        let times = self.requests.entry(base.caller).or_default();
        *times = times.saturating_add(1);
    }
    /// The processes.
    pub fn iter(&self) -> impl Iterator<Item = &Term> {
        self.requests.keys()
    }
    fn clear(&mut self) {
        *self = Subscribers::default();
    }
}

/// See [`Subscribers::most`].
const LEAST_SUBSCRIBERS: usize = 64;

/// See the module head. Options are kept as the numbers in which they are set and read.
pub struct Sock {
    fd: Option<OwnedFd>,
    /// Whether the descriptor was handed in and must not be closed.
    prebound: bool,
    poll: Option<poll::Id>,
    interest: Interest,
    pub state: u32,
    pub domain: i32,
    pub kind: i32,
    pub protocol: i32,

    pub buffer: i32,
    /// Whether the buffer size was set and so does not follow the kernel's.
    pub buffer_set: bool,
    pub header: u32,
    pub binary: i32,
    pub deliver: i32,
    pub active: i32,
    pub active_count: i32,
    pub packet: i32,
    pub packet_size: u32,
    pub exit_on_close: i32,
    pub delimiter: u8,
    pub read_packets: i32,
    pub netns: Option<Vec<u8>>,
    pub debug: i32,
    /// Limits of a message queue, which does not exist here. They are kept to be read back.
    pub msgq_high: i32,
    pub msgq_low: i32,
    /// Bits of [`control`].
    pub control_wanted: u8,

    /// The peer of a connected datagram socket. Boxed like those below, because few sockets have
    /// any.
    pub remote: Option<Box<Addr>>,
    /// The addresses that are reported in place of the real ones.
    pub fake_name: Option<Box<Addr>>,
    pub fake_peer: Option<Box<Addr>>,
    pub received: Stats,
    pub sent: Stats,
    next_async: u16,
    /// The processes to tell when everything is sent, each with the number of its requests.
    pub subscribers: Subscribers,
}

impl Sock {
    pub fn new(protocol: i32) -> Sock {
        Sock {
            fd: None,
            prebound: false,
            poll: None,
            interest: Interest::default(),
            state: 0,
            domain: -1,
            kind: -1,
            protocol,
            buffer: default_buffer(),
            buffer_set: false,
            header: 0,
            binary: 0,
            deliver: 1,
            active: active::PASSIVE,
            active_count: 0,
            packet: 0,
            packet_size: 0,
            exit_on_close: 1,
            delimiter: b'\n',
            read_packets: 5,
            netns: None,
            debug: 0,
            msgq_high: 8 * 1024,
            msgq_low: 4 * 1024,
            control_wanted: 0,
            remote: None,
            fake_name: None,
            fake_peer: None,
            received: Stats::default(),
            sent: Stats::default(),
            next_async: 0,
            subscribers: Subscribers::default(),
        }
    }
    /// Makes a connected socket with the settings that it inherits from its listening socket.
    pub(crate) fn inherited(&self, fd: OwnedFd) -> Sock {
        let mut s = Sock::new(self.protocol);
        s.fd = Some(fd);
        s.state = state::OPEN | state::ACTIVE;
        (s.domain, s.kind) = (self.domain, self.kind);
        s.buffer = self.buffer;
        s.header = self.header;
        s.binary = self.binary;
        s.deliver = self.deliver;
        s.packet = self.packet;
        s.packet_size = self.packet_size;
        s.exit_on_close = self.exit_on_close;
        (s.msgq_high, s.msgq_low) = (self.msgq_high, self.msgq_low);
        s
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state & state::OPEN != 0
    }
    pub fn is_connected(&self) -> bool {
        let both = state::OPEN | state::ACTIVE;
        self.state & both == both
    }
    pub(crate) fn is_stream(&self) -> bool {
        self.kind == libc::SOCK_STREAM
    }
    /// The descriptor, or EINVAL without one.
    pub fn fd(&self) -> Result<RawFd, Error> {
        self.fd.as_ref().map(|f| f.as_raw_fd()).ok_or(EINVAL)
    }

    /// Opens the socket.
    pub fn open(&mut self, domain: i32, kind: i32, protocol: u8) -> Result<(), Error> {
        if self.state != 0 || self.fd.is_some() {
            return Err(BAD_SEQUENCE);
        }
        let protocol = match protocol {
            protocol::MPTCP => numbers::IPPROTO_MPTCP.ok_or(libc::EPROTONOSUPPORT)?,
            _ if domain == libc::AF_UNIX => 0,
            _ => self.protocol,
        };
        let fd = match &self.netns {
            Some(ns) => {
                let ns = std::ffi::CString::new(&ns[..]).map_err(|_| EINVAL)?;
                sys::in_namespace(&ns, || sys::socket(domain, kind, protocol))?
            }
            None => sys::socket(domain, kind, protocol)?,
        };
        self.fd = Some(fd);
        self.state = state::OPEN;
        (self.domain, self.kind) = (domain, kind);
        Ok(())
    }
    /// Takes over an open descriptor.
    pub(crate) fn open_fd(
        &mut self,
        domain: i32,
        kind: i32,
        fd: RawFd,
        bound: bool,
    ) -> Result<(), Error> {
        if self.state != 0 || self.fd.is_some() {
            return Err(BAD_SEQUENCE);
        }
        if bound {
            let name = sys::sock_name(fd)?;
            if name.domain() != domain {
                return Err(EINVAL);
            }
        }
        sys::set_blocking(fd, false)?;
        self.state = state::OPEN;
        if kind == libc::SOCK_STREAM && sys::peer_name(fd).is_ok() {
            self.state |= state::ACTIVE;
        }
        // SAFETY: the descriptor is open and stays the giver's: it is given back, not closed.
        self.fd = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        self.prebound = true;
        (self.domain, self.kind) = (domain, kind);
        Ok(())
    }
    /// Closes the socket. A handed-in descriptor stays open.
    pub(crate) fn close(&mut self) {
        self.subscribers.clear();
        self.forget();
        if self.prebound {
            return;
        }
        if self.state & state::OPEN != 0 {
            self.fd = None;
            self.state = 0;
        }
    }
    /// Stops the reports of the poll thread.
    fn forget(&mut self) {
        self.interest.select(Some(false), Some(false));
        if let Some(id) = self.poll.take() {
            poll::forget(id);
        }
    }

    /// Selects whether the poll thread reports that the socket can be read or written; None leaves
    /// a selection unchanged.
    pub fn select(&mut self, base: &Base, reads: Option<bool>, writes: Option<bool>) {
        self.interest.select(reads, writes);
        self.arm(base);
    }
    /// Whether the socket is selected for reading.
    pub(crate) fn reads(&self) -> bool {
        self.interest.reads()
    }
    /// Whether the socket is selected for writing.
    pub fn writes(&self) -> bool {
        self.interest.writes()
    }
    /// Whether others use the descriptor for now. The poll thread then leaves it alone, and the
    /// selection is kept.
    pub(crate) fn is_suspended(&self) -> bool {
        self.interest.is_suspended()
    }
    /// Leaves the descriptor to others, or takes it back.
    pub(crate) fn suspend(&mut self, base: &Base, on: bool) {
        self.interest.suspend(on);
        self.arm(base);
    }
    /// Passes the selection to the poll thread. A report there has cleared what it reported.
    pub(crate) fn arm(&mut self, base: &Base) {
        let Some(fd) = &self.fd else { return };
        let (r, w) = self.interest.wanted();
        if self.poll.is_none() {
            if !r && !w {
                return;
            }
            match base.register(fd.as_raw_fd()) {
                Ok(id) => self.poll = Some(id),
                // Cannot be polled: nothing will come of it.
                Err(_) => return,
            }
        }
        if let Some(id) = self.poll {
            poll::want(id, r, w);
        }
    }
    /// The part of a report that the socket still waits for: readable, writable. None if the report
    /// is about another descriptor.
    pub(crate) fn still_wanted(
        &self,
        id: poll::Id,
        readable: bool,
        writable: bool,
    ) -> Option<(bool, bool)> {
        (self.poll == Some(id)).then(|| self.interest.still(readable, writable))
    }

    /// The number of the next asynchronous request.
    pub(crate) fn new_async(&mut self) -> u16 {
        let n = self.next_async;
        self.next_async = n.wrapping_add(1);
        n
    }

    /// How packets are delimited on a stream.
    pub(crate) fn packet_kind(&self) -> Kind {
        match self.packet {
            1 => Kind::Length(1),
            2 => Kind::Length(2),
            3 => Kind::Length(4),
            4 => Kind::Asn1,
            5 => Kind::SunRm,
            6 => Kind::Cdr,
            7 => Kind::FastCgi,
            8 => Kind::Line,
            9 => Kind::Tpkt,
            10 => Kind::Http { bin: false },
            11 => Kind::HttpHeader { bin: false },
            12 => Kind::SslTls,
            13 => Kind::Http { bin: true },
            14 => Kind::HttpHeader { bin: true },
            _ => Kind::Raw,
        }
    }
    /// Limits of packets, with a buffer of that size.
    pub(crate) fn limits(&self, buffer: usize) -> Limits {
        Limits {
            packet_bytes: self.packet_size,
            line_bytes: u32::try_from(buffer).unwrap_or(u32::MAX),
            delimiter: self.delimiter,
        }
    }

    /// Received data as the program gets them: a list, or a binary behind a list of the first
    /// bytes.
    pub fn data(&self, a: &mut dyn Alloc, data: &[u8]) -> Term {
        let h = self.header as usize;
        if self.binary == 0 || h > data.len() {
            return a.byte_list(data, NIL);
        }
        let tail = a.binary(&data[h..]);
        a.byte_list(&data[..h], tail)
    }
    /// Counts a message of an active socket. If the socket becomes passive by a counter, the owner
    /// is told.
    pub fn count_active(&mut self, base: &Base) {
        match self.active {
            active::ONCE => self.active = active::PASSIVE,
            active::MULTI => {
                self.active_count -= 1;
                if self.active_count == 0 {
                    self.active = active::PASSIVE;
                    self.tell_passive(base);
                }
            }
            _ => {}
        }
    }
    /// Tells the owner that the socket is passive now.
    pub(crate) fn tell_passive(&self, base: &Base) {
        let tag = if self.protocol == libc::IPPROTO_TCP {
            "tcp_passive"
        } else {
            "udp_passive"
        };
        tell(base, tag, None);
    }
    /// Tells the subscribers that everything is sent.
    pub(crate) fn tell_empty_queue(&mut self, base: &Base) {
        let id = base.id;
        let all = std::mem::take(&mut self.subscribers);
        // A closed port sends no more messages.
        if base.is_flushing() {
            return;
        }
        for (to, times) in all.requests {
            for _ in 0..times {
                base.message(to, |a| a.tuple(&[empty_out_q(), id]));
            }
        }
    }
}

impl Drop for Sock {
    fn drop(&mut self) {
        self.forget();
        if let (true, Some(fd)) = (self.prebound, self.fd.take()) {
            // Not ours to close.
            let _ = fd.into_raw_fd();
        }
    }
}

/// Sends `{Tag, Port}` or `{Tag, Port, What}` to the owner.
pub fn tell(base: &Base, tag: &str, what: Option<Term>) {
    if base.is_flushing() {
        return;
    }
    let (id, tag) = (base.id, purlin_term::atom::intern(tag));
    base.message(base.connected, |a| match what {
        Some(w) => a.tuple(&[tag, id, w]),
        None => a.tuple(&[tag, id]),
    });
}

/// Sends `{inet_async, Port, Number, Result}`.
pub(crate) fn async_result(
    base: &Base,
    to: Term,
    number: u16,
    build: impl FnOnce(&mut dyn Alloc) -> Term,
) {
    let id = base.id;
    base.message(to, |a| {
        let r = build(a);
        a.tuple(&[inet_async(), id, Term::small(number as i64), r])
    });
}

/// Sends `{inet_async, Port, Number, {error, Reason}}`.
pub(crate) fn async_error(base: &Base, to: Term, number: u16, reason: Term) {
    async_result(base, to, number, |a| a.tuple(&[am::ERROR, reason]));
}

/// Sends `{inet_reply, Port, ok}` or `{inet_reply, Port, {error, Reason}}`, followed by the
/// sender's reference if it gave one.
pub(crate) fn send_result(base: &Base, to: Term, r: Result<(), Term>) {
    let id = base.id;
    base.message(to, |a| {
        let r = match r {
            Ok(()) => am::OK,
            Err(reason) => a.tuple(&[am::ERROR, reason]),
        };
        let reference = base.reference_for(to);
        let reference =
            reference.and_then(|b| etf::decode(&b, a, &CodeHooks, etf::Options::default()).ok());
        match reference {
            Some((reference, _)) => a.tuple(&[inet_reply(), id, r, reference]),
            None => a.tuple(&[inet_reply(), id, r]),
        }
    });
}
