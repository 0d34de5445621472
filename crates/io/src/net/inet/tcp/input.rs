//! The input of a TCP socket: bytes are read into its buffer, and packets are delivered from there.

use super::{Flow, Over, Tcp, http, ssl_tls, tcp, timers, token};
use crate::net::inet::sock::{self, active};
use crate::net::inet::{Answer, Args, EINVAL, Error, NO_TIMEOUT};
use crate::net::packet::{self, Kind, Length, Parsed};
use crate::os::sock as sys;
use crate::port::channel::More;
use crate::port::{Base, End};
use purlin_term::{Alloc, NIL, Term, am};
use std::cell::Cell;
use std::mem::MaybeUninit;

/// Maximum room made at once for input; a packet's length is only a claim.
const READ_STEP: usize = 256 * 1024;

/// Largest buffer that is kept for the next socket that this thread reads from.
const SPARE_BYTES: usize = 2 * READ_STEP;

/// The connection to another node is notified of an unfinished packet each time this many bytes of
/// it have arrived.
const TOLD_STEP: usize = 1 << 20;

/// Maximum number of bytes of one receive request.
const MAX_RECV_BYTES: u32 = 0x400_0000;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The bytes that were read and not delivered.
#[derive(Default)]
pub(super) struct Input {
    pub(super) buf: Vec<u8>,
    /// Number of bytes at the front that are delivered.
    start: usize,
    /// Size limit of the buffer: the longest line, and what is read at once. 0 if there is no
    /// buffer.
    pub(super) size: usize,
    /// Number of missing bytes, if known.
    pub(super) missing: usize,
    /// For a packet that is read straight into the buffer of the connection to another node:
    /// missing bytes, and all.
    straight: usize,
    packet: usize,
    /// Bytes of an unfinished packet that were last reported to the connection to another node.
    told: usize,
    /// Whether the last read got all that it asked for, so that there may be more.
    pub(super) full: bool,
}

impl Input {
    fn data(&self) -> &[u8] {
        &self.buf[self.start..]
    }
    /// Gives up the buffer.
    pub(super) fn clear(&mut self) {
        let full = self.full;
        let old = std::mem::take(self);
        self.full = full;
        if (1..=SPARE_BYTES).contains(&old.buf.capacity()) {
            SPARE.set(old.buf);
        }
    }
    /// Reads at most `n` bytes behind the present ones, with `recv`.
    fn read(
        &mut self,
        n: usize,
        recv: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<usize, i32>,
    ) -> Result<usize, i32> {
        if self.buf.capacity() == 0 {
            self.buf = SPARE.take();
            self.buf.clear();
        }
        self.compact();
        let n = n.min(READ_STEP.max(self.buf.len()));
        self.buf.reserve(n);
        let r = recv(&mut self.buf.spare_capacity_mut()[..n]);
        let got = *r.as_ref().unwrap_or(&0);
        self.full = got == n;
        // SAFETY: that many bytes of the room have been filled.
        unsafe { self.buf.set_len(self.buf.len() + got.min(n)) };
        r
    }
    /// Moves the undelivered bytes to the front.
    pub(super) fn compact(&mut self) {
        if self.start > 0 {
            self.buf.drain(..self.start);
            self.start = 0;
        }
    }
}

/// The state of the bytes at the front of the buffer.
pub(super) enum Front {
    Packet(usize),
    /// Number of missing bytes.
    Missing(usize),
    /// Maximum number of further bytes to read to find out.
    More(usize),
}

impl Tcp {
    pub(super) fn recv_request(&mut self, base: &mut Base, mut args: Args) -> Answer {
        if !self.s.is_connected() {
            if std::mem::take(&mut self.closed_recv) {
                self.closed_send = false;
                return Err(Error::Name(if std::mem::take(&mut self.was_reset) {
                    "econnreset"
                } else {
                    "closed"
                }));
            }
            return Err(libc::ENOTCONN.into());
        }
        if self.s.active != active::PASSIVE || args.len() != 8 {
            return Err(EINVAL);
        }
        let (timeout, n) = (args.u32()?, args.u32()?);
        if self.s.packet != 0 && n != 0 {
            return Err(EINVAL);
        }
        if n > MAX_RECV_BYTES {
            return Err(libc::ENOMEM.into());
        }
        if !self.ops.is_empty() {
            return Err(libc::EALREADY.into());
        }
        let answer = self.enqueue(base, NO_TIMEOUT, timers::RECV);
        let delivered = !self.s.is_suspended() && !matches!(self.recv(base, n as usize), Ok(0));
        if !delivered {
            if timeout == 0 {
                self.op_error(base, am::TIMEOUT);
            } else {
                if let Some(op) = self.ops.first_mut().filter(|_| timeout != NO_TIMEOUT) {
                    op.timer = Some(base.after(timeout as u64, token(timers::RECV, op.number)));
                }
                self.s.select(base, Some(true), None);
            }
        }
        answer
    }

    // Input.

    /// Reads once and delivers complete packets; returns their number. With `wanted`, exactly that
    /// many bytes form a packet.
    pub(super) fn recv(&mut self, base: &mut Base, wanted: usize) -> Flow<usize> {
        if self.reads_straight(base) {
            return self.recv_straight(base);
        }
        let have = self.input.data().len();
        let read;
        if self.input.size == 0 {
            self.input.size = if wanted > 0 {
                wanted
            } else {
                self.s.buffer.max(1) as usize
            };
            self.input.missing = wanted;
            read = match wanted {
                0 => self.bytes_to_measure(self.input.size),
                n => n,
            };
        } else if wanted > 0 {
            if have >= wanted {
                return self.deliver(base, Some(wanted));
            }
            self.grow(wanted);
            self.input.missing = wanted - have;
            read = self.input.missing;
        } else if self.input.missing == 0 {
            match self.front() {
                Ok(Front::Packet(n)) => return self.deliver(base, Some(n)),
                Ok(Front::Missing(n)) => {
                    self.input.missing = n;
                    read = n;
                }
                Ok(Front::More(n)) => read = n,
                Err(()) => return self.recv_failed(base, libc::EMSGSIZE),
            }
        } else {
            read = self.input.missing;
        }
        let n = match self.read(read) {
            Ok(0) => return self.recv_closed(base),
            Ok(n) => n,
            Err(Error::Errno(libc::EAGAIN | libc::EINTR)) => return Ok(0),
            Err(Error::Errno(libc::ECONNRESET)) if !self.o.show_econnreset => {
                return self.recv_closed(base);
            }
            Err(Error::Errno(e)) => return self.recv_failed(base, e),
            Err(Error::Name(_)) => return self.recv_failed(base, libc::EINVAL),
        };
        if self.input.missing > 0 {
            self.input.missing -= n.min(self.input.missing);
            if self.input.missing == 0 {
                self.report_held(base, 0)?;
                let all = self.input.data().len();
                return self.deliver(base, Some(all));
            }
            let held = self.input.data().len();
            if held >= self.input.told + TOLD_STEP {
                self.report_held(base, held)?;
            }
            return Ok(0);
        }
        match self.front() {
            Ok(Front::Packet(n)) => self.deliver(base, Some(n)),
            Ok(Front::Missing(n)) => {
                self.input.missing = n;
                Ok(0)
            }
            Ok(Front::More(_)) => Ok(0),
            Err(()) => self.recv_failed(base, libc::EMSGSIZE),
        }
    }
    /// Tells the connection to another node how much of an unfinished packet has arrived. A packet
    /// that is too long ends the port.
    fn report_held(&mut self, base: &mut Base, held: usize) -> Flow<()> {
        let Some(channel) = &base.channel else {
            return Ok(());
        };
        if std::mem::replace(&mut self.input.told, held) == held || channel.report_held(held) {
            return Ok(());
        }
        self.input.clear();
        base.end(End::Reason(am::KILLED));
        Err(Over)
    }
    /// Whether the next bytes belong to a packet that is read straight into the buffer of the
    /// connection to another node.
    fn reads_straight(&mut self, base: &Base) -> bool {
        if self.input.straight > 0 {
            return true;
        }
        let (0, Some(channel), Kind::Length(l), 1..) = (
            self.s.deliver,
            &base.channel,
            self.s.packet_kind(),
            self.input.missing,
        ) else {
            return false;
        };
        let (data, left) = (self.input.data(), self.input.missing);
        let all = data.len() + left;
        let known = packet::length(
            self.s.packet_kind(),
            data,
            self.s.limits(self.input.size),
            self.in_headers,
        );
        let begun = matches!(known, Length::Known(n) if n == all)
            && data
                .get(l as usize..)
                .is_some_and(|b| channel.begin_packet(b, left));
        if begun {
            if self.input.told > 0 {
                channel.report_held(0);
            }
            self.input.clear();
            (self.input.straight, self.input.packet) = (left, all);
        }
        begun
    }
    /// Reads more of such a packet, once. No such packet is reported here.
    fn recv_straight(&mut self, base: &mut Base) -> Flow<usize> {
        let left = self.input.straight;
        let mut r = Err(libc::EBADF);
        let mut bad = base.channel.is_none();
        if let (Some(channel), Ok(fd)) = (base.channel.clone(), self.s.fd()) {
            match channel.read_more(left, &mut |to| sys::recv_front_now(fd, to)) {
                More::Read(got) => r = got,
                More::Bad => bad = true,
            }
        }
        if bad {
            self.input.clear();
            base.end(End::Reason(am::KILLED));
            return Err(Over);
        }
        let n = match r {
            Ok(0) => return self.recv_closed(base),
            Ok(n) => n,
            Err(libc::EAGAIN | libc::EINTR) => return Ok(0),
            Err(libc::ECONNRESET) if !self.o.show_econnreset => return self.recv_closed(base),
            Err(e) => return self.recv_failed(base, e),
        };
        self.input.full = n == left;
        self.input.straight = left - n.min(left);
        if self.input.straight == 0 {
            let all = std::mem::take(&mut self.input.packet);
            self.s.received.add(all);
            base.bytes_in += all as u64;
            if self.s.active != active::PASSIVE {
                self.s.count_active(base);
            } else if self.ops.is_empty() {
                self.s.select(base, Some(false), None);
            }
            self.pauses(base);
        }
        Ok(0)
    }
    /// Reads at most `n` bytes behind the present ones.
    fn read(&mut self, n: usize) -> Result<usize, Error> {
        let fd = self.s.fd()?;
        Ok(self.input.read(n, |to| sys::recv_now(fd, to))?)
    }
    /// Raises the size limit of the buffer to at least `n` bytes.
    fn grow(&mut self, n: usize) {
        self.input.size = self.input.size.max(n);
    }
    /// Number of bytes, at most `room`, to read to find out a packet's length: all, or, without
    /// read-ahead, the missing part of the shortest header and then single bytes.
    fn bytes_to_measure(&self, room: usize) -> usize {
        let kind = self.s.packet_kind();
        if self.o.read_ahead || kind == Kind::Raw {
            return room;
        }
        let head = match kind {
            Kind::Length(n) => n.into(),
            Kind::Asn1 => 2,
            Kind::SunRm | Kind::Tpkt => 4,
            Kind::SslTls => 5,
            Kind::FastCgi => 8,
            Kind::Cdr => 12,
            _ => 1,
        };
        let have = self.input.data().len();
        room.min(head.max(have + 1) - have)
    }
    /// The state of the front of the buffer, or an error if it is no packet.
    pub(super) fn front(&mut self) -> Result<Front, ()> {
        let have = self.input.data().len();
        let kind = self.s.packet_kind();
        let limits = self.s.limits(self.input.size);
        match packet::length(kind, self.input.data(), limits, self.in_headers) {
            Length::Invalid => Err(()),
            Length::Known(n) if n <= have => Ok(Front::Packet(n)),
            Length::Known(n) => {
                self.grow(n);
                Ok(Front::Missing(n - have))
            }
            Length::Unknown if have < self.input.size => {
                Ok(Front::More(self.bytes_to_measure(self.input.size - have)))
            }
            Length::Unknown => {
                let most = self.s.packet_size as usize;
                if most <= have {
                    return Err(());
                }
                self.grow(most);
                Ok(Front::More(self.bytes_to_measure(most - have)))
            }
        }
    }
    /// Delivers packets and returns their number. The first is `first` bytes long, if that is
    /// known.
    pub(super) fn deliver(&mut self, base: &mut Base, first: Option<usize>) -> Flow<usize> {
        let mut next = match first {
            Some(n) => Some(n),
            None if self.input.size == 0 || self.input.missing > 0 => return Ok(0),
            None => self.next_packet(base)?,
        };
        let mut count = 0;
        while let Some(n) = next {
            if !self.is_awaited(base) {
                // It stays here until a process asks for it.
                self.input.missing = 0;
                self.s.select(base, Some(false), None);
                break;
            }
            self.s.received.add(n);
            self.deliver_packet(base, n);
            count += 1;
            self.input.start += n;
            self.input.missing = 0;
            if self.input.data().is_empty() {
                self.input.clear();
            }
            if self.s.active == active::PASSIVE {
                self.s.select(base, Some(false), None);
                break;
            }
            if self.pauses(base) {
                break;
            }
            next = if self.input.size == 0 || base.is_ending() {
                None
            } else {
                self.next_packet(base)?
            };
        }
        self.input.compact();
        Ok(count)
    }
    /// Reads no more for a while, if the connection to another node says so.
    fn pauses(&mut self, base: &mut Base) -> bool {
        let channel = base.channel.as_ref().filter(|_| !base.is_ending());
        let Some(milliseconds) = channel.and_then(|c| c.pause()) else {
            return false;
        };
        base.after(milliseconds, token(timers::PAUSE, 0));
        self.s.select(base, Some(false), None);
        true
    }
    /// Goes on after a pause: with what was read before, then with the rest.
    pub(super) fn resume(&mut self, base: &mut Base) {
        if base.is_ending() || self.pauses(base) {
            return;
        }
        self.s.select(base, Some(true), None);
        // An error has ended the port.
        let _ = self.deliver(base, None);
        if !base.is_ending() {
            self.s.arm(base);
        }
    }
    /// Whether there is a receiver for the next packet: the owner of an active socket, a process
    /// that receives, or a connection to another node.
    fn is_awaited(&self, base: &Base) -> bool {
        self.s.active != active::PASSIVE
            || !self.ops.is_empty()
            || self.s.deliver == 0
            || base.is_flushing()
    }
    /// The length of the packet at the front, if it is complete.
    fn next_packet(&mut self, base: &mut Base) -> Flow<Option<usize>> {
        match self.front() {
            Ok(Front::Packet(n)) => Ok(Some(n)),
            Ok(Front::Missing(n)) => {
                self.input.missing = n;
                Ok(None)
            }
            Ok(Front::More(_)) => Ok(None),
            Err(()) => self.recv_failed(base, libc::EMSGSIZE),
        }
    }
    /// Sends the packet of `n` bytes at the front to its recipient.
    fn deliver_packet(&mut self, base: &mut Base, n: usize) {
        // A closed socket that still writes sends no messages.
        if base.is_flushing() {
            return;
        }
        let kind = self.s.packet_kind();
        let passive = self.s.active == active::PASSIVE;
        let start = self.input.start;
        let op = if passive { self.take_op(base) } else { None };
        let bytes = &self.input.buf[start..start + n];
        let parsed = packet::parse(kind, bytes, &mut self.in_headers);
        if let (0, Some(channel)) = (self.s.deliver, &base.channel) {
            base.bytes_in += n as u64;
            let good = match &parsed {
                Parsed::Plain(b) => channel.input(b),
                _ => false,
            };
            if !good {
                base.end(End::Reason(am::KILLED));
            }
            if !passive {
                self.s.count_active(base);
            }
            return;
        }
        let (s, id) = (&self.s, base.id);
        let strings = move |a: &mut dyn Alloc, b: &[u8]| match kind {
            Kind::Http { bin: true } | Kind::HttpHeader { bin: true } => a.binary(b),
            _ => a.byte_list(b, NIL),
        };
        // The term, and the tag of the message in which an active socket sends it.
        let build = move |a: &mut dyn Alloc| -> (Term, Option<Term>) {
            match &parsed {
                Parsed::Plain(b) => (s.data(a, b), Some(tcp())),
                Parsed::SslTls {
                    content,
                    version,
                    prefix,
                    data,
                } => {
                    let version = [version.0, version.1].map(|v| Term::small(v as i64));
                    let version = a.tuple(&version);
                    let data = match prefix {
                        Some(p) => a.binary(&[&p[..], data].concat()),
                        None => a.binary(data),
                    };
                    let content = Term::small(*content as i64);
                    (a.tuple(&[ssl_tls(), id, content, version, data]), None)
                }
                other => {
                    let t = other.to_term(a, &strings, &|a, b| s.data(a, b));
                    (t, Some(http()))
                }
            }
        };
        if self.s.deliver == 0 {
            base.bytes_in += n as u64;
            base.message(base.connected, |a| {
                let (t, _) = build(a);
                let t = a.tuple(&[am::DATA, t]);
                a.tuple(&[id, t])
            });
        } else if let Some(op) = op {
            sock::async_result(base, op.caller, op.number, |a| {
                let (t, _) = build(a);
                a.tuple(&[am::OK, t])
            });
        } else if !passive {
            base.message(base.connected, |a| {
                let (t, tag) = build(a);
                match tag {
                    Some(tag) => a.tuple(&[tag, id, t]),
                    None => t,
                }
            });
        }
        if !passive {
            self.s.count_active(base);
        }
    }
}
