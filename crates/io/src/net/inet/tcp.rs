//! The driver `tcp_inet`: streams, over IP and local.
//!
//! # Input
//! Bytes are read into a buffer whose size is option `buffer`; it grows for a packet that is known
//! to be longer. Packets are delivered when they are complete: all of them on an active socket, as
//! many as requested on a passive one. Nothing is read that nobody waits for, whenever a report of
//! input arrives.
//!
//! # Output
//! Bytes that cannot be sent at once are queued. A process that sends while the queue is above its
//! high mark gets the reply when the queue has fallen to the low mark. Other senders wait before
//! they send, because the port is busy.
//!
//! # Closing
//! When the other side closes a connection, the waiting process gets an error, or else the next one
//! that asks. The descriptor of a passive socket is then closed already, unless option
//! `exit_on_close` says otherwise, but the port stays.

use super::addr::{self, Addr};
use super::opts::{self, After, StreamOpts};
use super::sock::{self, Sock, active, protocol, state};
use super::udp::closed;
use super::{Answer, Args, BAD_PORT, CONTROL_BASE, EINVAL, Error, NO_TIMEOUT, ctl, reply, req};
use crate::gather::{Gather, MAX_PARTS, Parts, batch_bytes, max_parts};
use crate::net::packet::{self, Kind, Length, Parsed};
use crate::os::descriptor::ready_by;
use crate::os::sock as sys;
use crate::poll;
use crate::port::channel::{Channel, More};
use crate::port::settings::{self, Options};
use crate::port::{Base, Driver, End, Reply, watch};
use crate::posix::errno_atom;
use crate::timer::TimerId;
use crate::{accounts, lazy_atoms};
use purlin_term::iolist::{IoSlice, IoVec};
use purlin_term::{Alloc, NIL, Term, am, atom};
use smallvec::SmallVec;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

lazy_atoms! {
    http = "http";
    sendfile = "sendfile";
    ssl_tls = "ssl_tls";
    tcp = "tcp";
}

/// The name by which the driver is opened.
pub(crate) const NAME: &str = super::TCP;
/// Maximum number of bytes of one receive request.
const MAX_RECV_BYTES: u32 = 0x400_0000;
/// Number of bytes sent, and of reads, before other work gets a turn.
const TURN_BYTES: usize = 1 << 20;
const TURN_READS: usize = 16;
/// Maximum room made at once for input; a packet's length is only a claim.
const READ_STEP: usize = 256 * 1024;
/// Queue size up to which packets of a connection to another node are pulled. Pulled packets can no
/// longer be overtaken.
const CHANNEL_BYTES: usize = 128 * 1024;
/// The connection to another node is notified of an unfinished packet each time this many bytes of
/// it have arrived.
const TOLD_STEP: usize = 1 << 20;
/// Largest buffer that is kept for the next socket that this thread reads from.
const SPARE_BYTES: usize = 2 * READ_STEP;

thread_local! {
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The purpose of a timer. The number in its token is that of the request.
mod timers {
    pub(crate) const CONNECT: u32 = 0;
    pub(crate) const ACCEPT: u32 = 1;
    pub(crate) const RECV: u32 = 2;
    pub const SEND: u32 = 3;
    pub(crate) const PAUSE: u32 = 4;
}
fn token(what: u32, number: u16) -> u32 {
    what << 16 | number as u32
}

/// A request that is answered later.
struct Op {
    number: u16,
    caller: Term,
    timer: Option<TimerId>,
}

/// The bytes that were read and not delivered.
#[derive(Default)]
struct Input {
    buf: Vec<u8>,
    /// Number of bytes at the front that are delivered.
    start: usize,
    /// Size limit of the buffer: the longest line, and what is read at once. 0 if there is no
    /// buffer.
    size: usize,
    /// Number of missing bytes, if known.
    missing: usize,
    /// For a packet that is read straight into the buffer of the connection to another node:
    /// missing bytes, and all.
    straight: usize,
    packet: usize,
    /// Bytes of an unfinished packet that were last reported to the connection to another node.
    told: usize,
    /// Whether the last read got all that it asked for, so that there may be more.
    full: bool,
}

impl Input {
    fn data(&self) -> &[u8] {
        &self.buf[self.start..]
    }
    /// Gives up the buffer.
    fn clear(&mut self) {
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
    fn compact(&mut self) {
        if self.start > 0 {
            self.buf.drain(..self.start);
            self.start = 0;
        }
    }
}

/// The state of the bytes at the front of the buffer.
enum Front {
    Packet(usize),
    /// Number of missing bytes.
    Missing(usize),
    /// Maximum number of further bytes to read to find out.
    More(usize),
}

struct SendFile {
    file: OwnedFd,
    at: i64,
    left: i64,
    sent: u64,
    /// Bytes of the queue that go before the file.
    before: usize,
}

/// The connection is over, and everybody has been notified.
struct Over;
type Flow<T> = Result<T, Over>;

/// See the module head.
pub(crate) struct Tcp {
    s: Sock,
    o: StreamOpts,
    /// Oldest first. There is seldom more than one.
    ops: SmallVec<[Op; 1]>,
    input: Input,
    /// Whether the headers of an HTTP message are being read.
    in_headers: bool,
    queue: IoVec,
    /// The process that gets the reply to the current send request.
    sender: Option<Term>,
    /// The process that waits for the queue to shrink.
    waiting_sender: Option<Term>,
    /// Whether the last list in parts began with an empty queue. Its sender then gets the reply
    /// when all is taken.
    parts_first: bool,
    /// A file to be sent behind the current list.
    file_later: Option<SendFile>,
    send_timer: Option<(u16, TimerId)>,
    send_timers: u16,
    sending_file: Option<SendFile>,
    /// Whether the next request to send, or to receive, learns that the connection has been closed.
    closed_send: bool,
    closed_recv: bool,
    /// Whether it was closed by a reset.
    was_reset: bool,
    closed_told: bool,
    /// The argument of a `shutdown(2)` to make when the queue is empty.
    shutdown_later: Option<i32>,
    write_shut: bool,
}

/// Starts the driver for a port that is opened.
pub fn start(_: &mut Base, _: &Options, _: &[u8]) -> Result<Box<dyn Driver>, settings::Error> {
    Ok(Box::new(Tcp::new(
        Sock::new(libc::IPPROTO_TCP),
        StreamOpts::default(),
    )))
}

impl Tcp {
    fn new(s: Sock, o: StreamOpts) -> Tcp {
        Tcp {
            s,
            o,
            ops: SmallVec::new(),
            input: Input::default(),
            in_headers: false,
            queue: IoVec::default(),
            sender: None,
            waiting_sender: None,
            parts_first: false,
            file_later: None,
            send_timer: None,
            send_timers: 0,
            sending_file: None,
            closed_send: false,
            closed_recv: false,
            was_reset: false,
            closed_told: false,
            shutdown_later: None,
            write_shut: false,
        }
    }

    // Requests.

    fn request(&mut self, base: &mut Base, op: u32, data: &[u8]) -> Answer {
        let mut args = Args(data);
        match op {
            req::OPEN if data.len() != sock::open_bytes() => Err(EINVAL),
            req::OPEN => {
                let domain = addr::domain(args.u8()?).ok_or(Error::Name("eafnosupport"))?;
                if args.u8()? != 1 {
                    return Err(EINVAL);
                }
                let protocol = match args.is_empty() {
                    true => protocol::DEFAULT,
                    false => args.u8()?,
                };
                if !matches!(
                    protocol,
                    protocol::DEFAULT | protocol::TCP | protocol::MPTCP
                ) {
                    return Err(Error::Name("eprotonosupport"));
                }
                self.s.open(domain, libc::SOCK_STREAM, protocol)?;
                Ok(Vec::new())
            }
            req::FDOPEN if data.len() != 6 && data.len() != 10 => Err(EINVAL),
            req::FDOPEN => {
                let domain = addr::domain(args.u8()?).ok_or(Error::Name("eafnosupport"))?;
                if args.u8()? != 1 {
                    return Err(EINVAL);
                }
                let fd = args.i32()?;
                let bound = args.is_empty() || args.u32()? != 0;
                self.s.open_fd(domain, libc::SOCK_STREAM, fd, bound)?;
                Ok(Vec::new())
            }
            req::LISTEN => {
                if !self.s.is_open() {
                    return Err(BAD_PORT);
                }
                if data.len() != 2 {
                    return Err(EINVAL);
                }
                sys::listen(self.s.fd()?, args.u16()? as i16 as i32)?;
                self.s.state = state::OPEN | state::LISTEN;
                Ok(Vec::new())
            }
            req::CONNECT => self.connect(base, args),
            req::ACCEPT => self.accept(base, args),
            req::CLOSE => {
                self.tell_waiting_closed(base);
                self.close(base);
                Ok(Vec::new())
            }
            req::RECV => self.recv_request(base, args),
            req::UNRECV => {
                if !self.s.is_connected() {
                    return Err(libc::ENOTCONN.into());
                }
                self.input.compact();
                self.input.buf.splice(..0, data.iter().copied());
                self.input.size = self.input.size.max(self.input.buf.len());
                self.input.missing = 0;
                if self.s.active != active::PASSIVE {
                    let _ = self.deliver(base, None);
                }
                Ok(Vec::new())
            }
            req::SHUTDOWN => self.shutdown(base, args),
            req::SENDFILE => self.send_file_request(base, args),
            req::SETOPTS => {
                let after = opts::set(&mut self.s, Some(&mut self.o), base, data)?;
                match after {
                    After::Nothing => {}
                    After::Deliver => {
                        let _ = self.deliver(base, None);
                    }
                    After::BeginAgain => {
                        self.input.missing = 0;
                        let _ = self.deliver(base, None);
                    }
                    After::Read => {
                        if self.recv(base, 0).is_ok() && self.s.active != active::PASSIVE {
                            self.s.select(base, Some(true), None);
                        }
                    }
                    After::Closed => {
                        if std::mem::take(&mut self.was_reset) {
                            sock::tell(base, "tcp_error", Some(errno_atom(libc::ECONNRESET)));
                        }
                        self.tell_closed(base);
                        self.end_or_stop_reading(base);
                    }
                }
                Ok(Vec::new())
            }
            req::GETOPTS => opts::get(&self.s, Some(&self.o), data).map_err(|_| EINVAL),
            _ => {
                let queued = self.queue.bytes + base.coming();
                ctl::control(&mut self.s, base, op, data, queued)
            }
        }
    }

    /// Records a request of the caller, and returns its reply.
    fn enqueue(&mut self, base: &mut Base, timeout: u32, what: u32) -> Answer {
        let number = self.s.new_async();
        let timer =
            (timeout != NO_TIMEOUT).then(|| base.after(timeout as u64, token(what, number)));
        self.ops.push(Op {
            number,
            caller: base.caller,
            timer,
        });
        Ok(number.to_be_bytes().to_vec())
    }
    /// Removes the oldest request, which is over.
    fn take_op(&mut self, base: &Base) -> Option<Op> {
        if self.ops.is_empty() {
            return None;
        }
        let mut op = self.ops.remove(0);
        if let Some(t) = op.timer.take() {
            base.cancel(t);
        }
        Some(op)
    }
    fn op_error(&mut self, base: &Base, reason: Term) {
        if let Some(op) = self.take_op(base) {
            sock::async_error(base, op.caller, op.number, reason);
        }
    }

    fn connect(&mut self, base: &mut Base, mut args: Args) -> Answer {
        if !self.s.is_open() {
            return Err(BAD_PORT);
        }
        if self.s.is_connected() {
            return Err(libc::EISCONN.into());
        }
        if self.s.state & state::CONNECTING != 0 || args.len() < 6 {
            return Err(EINVAL);
        }
        let timeout = args.u32()?;
        let to = Addr::parse(self.s.domain, &mut args.0)?;
        match sys::connect(self.s.fd()?, &to) {
            Ok(()) => {
                self.s.state = state::OPEN | state::ACTIVE;
                if self.s.active != active::PASSIVE {
                    self.s.select(base, Some(true), None);
                }
                let answer = self.enqueue(base, NO_TIMEOUT, timers::CONNECT);
                self.connected(base);
                answer
            }
            Err(libc::EINPROGRESS | libc::EAGAIN) => {
                self.s.state = state::OPEN | state::CONNECTING;
                self.s.select(base, None, Some(true));
                self.enqueue(base, timeout, timers::CONNECT)
            }
            Err(e) => Err(e.into()),
        }
    }
    fn connected(&mut self, base: &Base) {
        if let Some(op) = self.take_op(base) {
            sock::async_result(base, op.caller, op.number, |_| am::OK);
        }
    }
    /// Finishes an attempt to connect.
    fn connect_done(&mut self, base: &mut Base) {
        self.s.select(base, None, Some(false));
        let failed = match self.s.fd() {
            Ok(fd) => match sys::get_int(fd, libc::SOL_SOCKET, libc::SO_ERROR) {
                Ok(0) => None,
                Ok(e) | Err(e) => Some(e),
            },
            Err(_) => Some(libc::EINVAL),
        };
        if let Some(e) = failed {
            self.s.state = state::OPEN;
            self.op_error(base, errno_atom(e));
            return;
        }
        self.s.state = state::OPEN | state::ACTIVE;
        if self.s.active != active::PASSIVE {
            self.s.select(base, Some(true), None);
        }
        self.connected(base);
    }

    fn accept(&mut self, base: &mut Base, mut args: Args) -> Answer {
        if self.s.state & state::LISTEN == 0 || args.len() != 4 {
            return Err(EINVAL);
        }
        let timeout = args.u32()?;
        if self.s.state & state::ACCEPTING != 0 {
            self.s.state |= state::MULTI;
            return self.enqueue(base, timeout, timers::ACCEPT);
        }
        match sys::accept(self.s.fd()?) {
            Ok((fd, _)) => {
                let port = self.adopt(base, fd, base.caller)?;
                let answer = self.enqueue(base, NO_TIMEOUT, timers::ACCEPT);
                self.accepted(base, port);
                answer
            }
            Err(libc::EAGAIN) => {
                self.s.state |= state::ACCEPTING;
                self.s.select(base, Some(true), None);
                self.enqueue(base, timeout, timers::ACCEPT)
            }
            Err(e) => Err(e.into()),
        }
    }
    /// Makes a port of an accepted connection, owned by `owner`.
    fn adopt(&self, base: &Base, fd: OwnedFd, owner: Term) -> Result<Term, Error> {
        let s = self.s.inherited(fd);
        let o = StreamOpts {
            delay_send: false,
            ..self.o.clone()
        };
        base.sibling(NAME, owner, Box::new(Tcp::new(s, o)))
            .ok_or(Error::Name("system_limit"))
    }
    fn accepted(&mut self, base: &Base, port: Term) {
        if let Some(op) = self.take_op(base) {
            sock::async_result(base, op.caller, op.number, |a| a.tuple(&[am::OK, port]));
        }
    }
    /// Accepts pending connections.
    fn accept_ready(&mut self, base: &mut Base) {
        loop {
            // A caller that has ended accepts nothing.
            while self.ops.first().is_some_and(|op| !base.is_alive(op.caller)) {
                self.take_op(base);
            }
            let Some(owner) = self.ops.first().map(|op| op.caller) else {
                break;
            };
            let r = match self.s.fd() {
                Ok(fd) => sys::accept(fd).map_err(Error::from),
                Err(e) => Err(e),
            };
            match r {
                Err(Error::Errno(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED)) => return,
                Err(e) => self.op_error(base, reason(e)),
                Ok((fd, _)) => match self.adopt(base, fd, owner) {
                    Ok(port) => self.accepted(base, port),
                    Err(e) => self.op_error(base, reason(e)),
                },
            }
        }
        self.stop_accepting(base);
    }
    fn stop_accepting(&mut self, base: &Base) {
        self.s.select(base, Some(false), None);
        self.s.state = state::OPEN | state::LISTEN;
    }

    fn recv_request(&mut self, base: &mut Base, mut args: Args) -> Answer {
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

    fn shutdown(&mut self, base: &Base, mut args: Args) -> Answer {
        if !self.s.is_connected() {
            return Err(libc::ENOTCONN.into());
        }
        if args.len() != 1 {
            return Err(EINVAL);
        }
        // The codes of the request are those of the system call.
        let how = args.u8()? as i32;
        if how != libc::SHUT_RD && (self.queue.bytes > 0 || base.has_more()) {
            self.shutdown_later = Some(how);
            return Ok(Vec::new());
        }
        sys::shutdown(self.s.fd()?, how)?;
        self.write_shut |= how != libc::SHUT_RD;
        Ok(Vec::new())
    }

    // Input.

    /// Reads once and delivers complete packets; returns their number. With `wanted`, exactly that
    /// many bytes form a packet.
    fn recv(&mut self, base: &mut Base, wanted: usize) -> Flow<usize> {
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
    /// Reads more of such a packet, once. Such a packet is reported to nobody here.
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
    fn front(&mut self) -> Result<Front, ()> {
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
    fn deliver(&mut self, base: &mut Base, first: Option<usize>) -> Flow<usize> {
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
    fn resume(&mut self, base: &mut Base) {
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

    /// Handles that the other side has closed the connection.
    fn recv_closed<T>(&mut self, base: &mut Base) -> Flow<T> {
        // The queue may still be written.
        if base.is_flushing() {
            self.s.select(base, Some(false), None);
            return Err(Over);
        }
        if !self.fail_senders(base, closed(), libc::ENOTCONN) {
            self.closed_send = true;
        }
        self.input.clear();
        if self.s.active == active::PASSIVE {
            self.leave(base);
            while !self.ops.is_empty() {
                self.op_error(base, closed());
            }
        } else {
            self.tell_closed(base);
            self.end_or_stop_reading(base);
        }
        Err(Over)
    }
    /// Handles an error of receiving.
    fn recv_failed<T>(&mut self, base: &mut Base, errno: i32) -> Flow<T> {
        self.fail_senders(base, closed(), errno);
        self.input.clear();
        if self.s.active == active::PASSIVE {
            self.leave(base);
            while !self.ops.is_empty() {
                self.op_error(base, errno_atom(errno));
            }
        } else {
            sock::tell(base, "tcp_error", Some(errno_atom(errno)));
            self.tell_closed(base);
            if self.s.exit_on_close != 0 {
                base.end_unlinked(errno_atom(errno));
            }
            self.s.select(base, Some(false), None);
        }
        Err(Over)
    }
    /// Closes a passive socket whose connection is over, or only stops reading.
    fn leave(&mut self, base: &mut Base) {
        if self.s.exit_on_close != 0 {
            self.close(base);
        } else {
            self.s.select(base, Some(false), None);
        }
    }
    /// Ends the port of an active socket whose connection is over, or only stops reading.
    fn end_or_stop_reading(&mut self, base: &mut Base) {
        if self.s.exit_on_close != 0 {
            base.end_unlinked(am::NORMAL);
        }
        self.s.select(base, Some(false), None);
    }
    /// Answers a process that waits to send, because the connection is over. Returns false if none
    /// waits.
    fn fail_senders(&mut self, base: &mut Base, reason: Term, errno: i32) -> bool {
        let mut any = false;
        if self.s.state & state::BUSY != 0 {
            self.clear_output(base);
            self.sender = self.clear_busy_after_failure(base);
            any = self.sender.is_some();
            self.answer(base, Err(reason));
        }
        if self.sending_file.is_some() {
            self.tell_file_failed(base, errno);
            any = true;
        }
        any
    }
    fn tell_closed(&mut self, base: &Base) {
        if !std::mem::replace(&mut self.closed_told, true) {
            sock::tell(base, "tcp_closed", None);
        }
    }
    /// Tells the callers of pending requests that the socket is closed.
    fn tell_waiting_closed(&mut self, base: &Base) {
        while !self.ops.is_empty() {
            self.op_error(base, closed());
        }
        if self.s.state & state::ACCEPTING != 0 {
            self.stop_accepting(base);
        }
        if let Some((_, t)) = self.send_timer.take() {
            base.cancel(t);
        }
    }
    /// Closes the socket; the port stays.
    fn close(&mut self, base: &mut Base) {
        self.input.clear();
        self.clear_output(base);
        self.sending_file = None;
        self.file_later = None;
        self.s.close();
    }
    /// Drops the queue. A process in the middle of a list learns of it when it sends the next part.
    fn clear_output(&mut self, base: &mut Base) {
        self.queue = IoVec::default();
        base.drop_backlog();
        self.s.tell_empty_queue(base);
    }

    // Output.

    /// Answers the sending process, if there is one.
    fn answer(&mut self, base: &Base, r: Result<(), Term>) {
        if let Some(to) = self.sender.take() {
            sock::send_result(base, to, r);
        }
    }
    /// Clears the busy state because the socket has failed. Returns the sending process, if one
    /// waits for a reply.
    fn clear_busy_after_failure(&mut self, base: &mut Base) -> Option<Term> {
        let transit = base.cut_short();
        let waiting = match self.s.state & state::BUSY {
            0 => self.waiting_sender.take(),
            _ => self.not_busy(base),
        };
        waiting.or(transit)
    }
    /// Clears the port's busy flag and returns the process that waited for that.
    fn not_busy(&mut self, base: &mut Base) -> Option<Term> {
        if let Some((_, t)) = self.send_timer.take() {
            base.cancel(t);
        }
        self.s.state &= !state::BUSY;
        base.set_busy(false);
        self.waiting_sender.take()
    }

    /// The length header of `n` bytes.
    fn head(&self, n: usize) -> SmallVec<[u8; 4]> {
        match self.s.packet_kind() {
            Kind::Length(l) => (n as u32).to_be_bytes()[4 - l as usize..].into(),
            _ => SmallVec::new(),
        }
    }
    /// Why nothing can be sent on a socket that is not connected.
    fn why_unconnected(&mut self) -> Term {
        if !std::mem::take(&mut self.closed_send) {
            errno_atom(libc::ENOTCONN)
        } else if self.was_reset {
            // The next request to receive learns of it too.
            errno_atom(libc::ECONNRESET)
        } else {
            closed()
        }
    }
    /// Sends a list, or answers why not.
    fn output_now(&mut self, base: &mut Base, data: &mut Gather) {
        self.sender = Some(base.caller).filter(|c| c.is_local_pid());
        if !self.s.is_connected() {
            let reason = self.why_unconnected();
            self.answer(base, Err(reason));
        } else if self.shutdown_later.is_some() {
            self.connection_lost(base, libc::EPIPE);
        } else if !self.send(base, data) {
            self.answer(base, Ok(()));
        }
    }
    /// Sends or queues the batch and the batches that are not gathered yet. Returns true if the
    /// reply comes later or was already sent.
    fn send(&mut self, base: &mut Base, data: &mut Gather) -> bool {
        let behind = self.has_output_before();
        if data.bytes() == 0 && !behind {
            return false;
        }
        loop {
            if let Err(e) = self.push_or_keep(base, data) {
                self.send_failed(base, e);
                return true;
            }
            // The list has been walked before, so it is an I/O list.
            if !matches!(data.next_batch(max_parts(), batch_bytes()), Ok(true)) {
                break;
            }
        }
        if self.queue.bytes > 0 && !behind {
            self.s.select(base, None, Some(true));
        }
        // The first packet is answered at once, however long it is.
        if !self.is_full() || !behind {
            return false;
        }
        if self.o.send_timeout == 0 {
            self.answer(base, Err(am::TIMEOUT));
            return true;
        }
        let sender = self.sender.take();
        self.wait_for_room(base, sender);
        true
    }
    /// Whether other output goes before what is sent now.
    fn has_output_before(&self) -> bool {
        self.sending_file.is_some() || self.queue.bytes > 0
    }
    fn is_full(&self) -> bool {
        self.queue.bytes >= self.o.high.max(0) as usize
    }
    /// Sends as much of a batch as the kernel takes, if no other output goes before it, and queues
    /// the rest.
    fn push_or_keep(&mut self, base: &Base, data: &mut Gather) -> Result<(), i32> {
        let later = self.o.delay_send || self.s.is_suspended();
        if !later && !self.has_output_before() {
            self.push(base, data)?;
        }
        data.keep(&mut self.queue);
        Ok(())
    }
    /// Makes the port busy, and `sender` wait for the reply within its timeout.
    fn wait_for_room(&mut self, base: &mut Base, sender: Option<Term>) {
        self.s.state |= state::BUSY;
        self.waiting_sender = sender;
        base.set_busy(true);
        if self.o.send_timeout > 0 && sender.is_some() {
            self.send_timers = self.send_timers.wrapping_add(1);
            let n = self.send_timers;
            let t = base.after(self.o.send_timeout as u64, token(timers::SEND, n));
            self.send_timer = Some((n, t));
        }
    }
    /// Ends a list that came in parts: everything is sent or queued. `sender` waits for the reply.
    fn parts_end(&mut self, base: &mut Base, sender: Option<Term>) {
        if let Some(f) = self.file_later.take() {
            let before = self.queue.bytes;
            self.sending_file = Some(SendFile { before, ..f });
            self.send_file(base);
        }
        if self.is_full() && !self.parts_first {
            return self.wait_for_room(base, sender);
        }
        if self.s.state & state::BUSY != 0 {
            let _ = self.not_busy(base);
        }
        self.sender = sender;
        self.answer(base, Ok(()));
        if self.queue.bytes == 0 {
            // A subscriber of the empty queue waited for the end of the list, too.
            self.queue_emptied(base, true);
        }
    }
    /// Sends as much of `data` as the kernel takes within a turn.
    fn push(&self, base: &Base, data: &mut impl Parts) -> Result<(), i32> {
        let fd = self.s.fd().map_err(|_| libc::EBADF)?;
        let mut turn = TURN_BYTES;
        let mut room = [const { MaybeUninit::uninit() }; MAX_PARTS];
        while data.bytes() > 0 && turn > 0 {
            let r = sys::send_msg_now(fd, data.vector(&mut room), None, &[]);
            accounts::writes(|w| w.calls += 1);
            if watch::is_on() {
                watch::report(&[base.id, base.connected, base.caller], data, r.ok());
            }
            match r {
                Ok(n) => {
                    data.advance(n);
                    turn = turn.saturating_sub(n.max(1));
                }
                Err(libc::EAGAIN) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
    /// Handles an error of sending: everybody learns that the connection is over.
    fn send_failed(&mut self, base: &mut Base, errno: i32) {
        // A pipe that broke without our shutdown was reset by the other side.
        let errno = if errno == libc::EPIPE && !self.write_shut {
            libc::ECONNRESET
        } else {
            errno
        };
        self.connection_lost(base, errno);
    }
    fn connection_lost(&mut self, base: &mut Base, errno: i32) {
        let show = errno == libc::ECONNRESET && self.o.show_econnreset;
        let reason = if show { errno_atom(errno) } else { closed() };
        let waiting = self.clear_busy_after_failure(base);
        match (self.sender, waiting) {
            // One process has forced a list in while another waits.
            (Some(_), Some(other)) => sock::send_result(base, other, Err(reason)),
            (sender, _) => self.sender = sender.or(waiting),
        }
        if self.s.active != active::PASSIVE {
            if show {
                sock::tell(base, "tcp_error", Some(reason));
            }
            self.tell_closed(base);
            self.answer(base, Err(reason));
            if self.s.exit_on_close != 0 {
                base.end_unlinked(am::NORMAL);
            }
            self.close(base);
            return;
        }
        self.tell_waiting_closed(base);
        if self.sender.is_some() {
            self.answer(base, Err(reason));
        } else {
            self.closed_send = true;
        }
        self.close(base);
        self.closed_recv = true;
        self.was_reset = show;
    }
    /// Continues output when the socket can be written.
    fn write_ready(&mut self, base: &mut Base) {
        if self.sending_file.is_some() {
            self.send_file(base);
            return;
        }
        let mut queue = std::mem::take(&mut self.queue);
        let r = self.push(base, &mut queue);
        self.queue = queue;
        if let Err(e) = r {
            self.send_failed(base, e);
            return;
        }
        self.queue_shortened(base);
    }
    /// Continues after the queue may have become shorter.
    fn queue_shortened(&mut self, base: &mut Base) {
        let low = self.o.low.max(0) as usize;
        if self.s.state & state::BUSY != 0 && self.queue.bytes <= low {
            let waiting = self.not_busy(base);
            match base.has_more() {
                true => self.waiting_sender = waiting,
                false => {
                    self.sender = waiting;
                    self.answer(base, Ok(()));
                }
            }
        }
        if self.queue.bytes == 0 {
            self.queue_emptied(base, !base.has_more());
        }
    }
    /// Handles an empty queue. `all`: no part of a list is missing.
    fn queue_emptied(&mut self, base: &mut Base, all: bool) {
        self.queue = IoVec::default();
        self.s.select(base, None, Some(false));
        if !all {
            return;
        }
        self.s.tell_empty_queue(base);
        if let Some(how) = self.shutdown_later.take() {
            let r = match self.s.fd() {
                Ok(fd) => sys::shutdown(fd, how),
                Err(_) => Err(libc::ENOTCONN),
            };
            match r {
                Ok(()) => self.write_shut = true,
                Err(e) => self.connection_lost(base, e),
            }
        }
    }

    fn send_file_request(&mut self, base: &mut Base, mut args: Args) -> Answer {
        if args.len() != 20 {
            return Err(EINVAL);
        }
        if !self.s.is_connected() {
            return Err(libc::ENOTCONN.into());
        }
        if self.sending_file.is_some() || self.file_later.is_some() {
            return Err(EINVAL);
        }
        let b = args.take(4)?;
        let fd = i32::from_ne_bytes([b[0], b[1], b[2], b[3]]);
        let (at, left) = (args.u64()? as i64, args.u64()? as i64);
        let file = sys::dup(fd)?;
        let file = SendFile {
            file,
            at,
            left,
            sent: 0,
            before: self.queue.bytes,
        };
        if base.has_more() {
            self.file_later = Some(file);
        } else {
            self.sending_file = Some(file);
            self.send_file(base);
        }
        Ok(Vec::new())
    }
    /// Sends the output that goes before the file, then as much of the file as the kernel takes.
    fn send_file(&mut self, base: &mut Base) {
        let r = self.send_file_part();
        match r {
            Ok(true) => self.send_file_done(base),
            Ok(false) => self.s.select(base, None, Some(true)),
            Err(e) => {
                self.tell_file_failed(base, e);
                self.send_failed(base, e);
                self.sending_file = None;
            }
        }
    }
    fn send_file_part(&mut self) -> Result<bool, i32> {
        let fd = self.s.fd().map_err(|_| libc::ENOTCONN)?;
        let Some(f) = &mut self.sending_file else {
            return Ok(true);
        };
        while f.before > 0 {
            let Some(p) = self.queue.parts.front() else {
                break;
            };
            let p = &p.as_bytes()[..p.len().min(f.before)];
            match sys::send_msg_now(fd, &[sys::iovec(p)], None, &[]) {
                Ok(n) => {
                    f.before -= n;
                    self.queue.advance(n);
                }
                Err(libc::EAGAIN) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        let mut turn = TURN_BYTES;
        while f.left > 0 {
            if turn == 0 {
                return Ok(false);
            }
            let n = turn.min(usize::try_from(f.left).unwrap_or(turn));
            match sys::send_file(fd, f.file.as_raw_fd(), &mut f.at, n) {
                Ok(0) => break,
                Ok(n) => {
                    f.left -= n as i64;
                    f.sent += n as u64;
                    turn = turn.saturating_sub(n);
                }
                Err(libc::EAGAIN) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }
    fn send_file_done(&mut self, base: &mut Base) {
        let Some(f) = self.sending_file.take() else {
            return;
        };
        self.queue_shortened(base);
        if self.queue.bytes > 0 {
            self.s.select(base, None, Some(true));
        }
        let id = base.id;
        base.message(base.connected, |a| {
            let low = Term::small((f.sent & 0xFFFF_FFFF) as i64);
            let high = Term::small((f.sent >> 32) as i64);
            let r = a.tuple(&[am::OK, low, high]);
            a.tuple(&[sendfile(), id, r])
        });
    }
    fn tell_file_failed(&self, base: &Base, errno: i32) {
        let reason = match errno {
            libc::ECONNRESET | libc::ENOTCONN | libc::EPIPE => closed(),
            e => errno_atom(e),
        };
        let id = base.id;
        base.message(base.connected, |a| {
            let r = a.tuple(&[am::ERROR, reason]);
            a.tuple(&[sendfile(), id, r])
        });
    }
}

/// The atom for why a request failed.
fn reason(e: Error) -> Term {
    match e {
        Error::Errno(e) => errno_atom(e),
        Error::Name(n) => atom::intern(n),
    }
}

impl Driver for Tcp {
    fn awaited_by(&self) -> Vec<Term> {
        let callers = self.ops.iter().map(|op| op.caller);
        let senders = self.sender.into_iter().chain(self.waiting_sender);
        let subscribers = self.s.subscribers.iter().copied();
        callers.chain(senders).chain(subscribers).collect()
    }
    fn output(&mut self, base: &mut Base, data: &mut Gather) {
        let head = self.head(data.total());
        if self.s.is_connected() {
            self.s.sent.add(head.len() + data.total());
        }
        data.prefix(&head);
        self.output_now(base, data);
    }
    fn in_batches(&self) -> bool {
        true
    }
    fn streams(&self) -> bool {
        !matches!(self.s.packet_kind(), Kind::Length(_))
    }
    fn begin(&mut self, base: &mut Base, n: usize) {
        if !self.s.is_connected() {
            return;
        }
        self.s.sent.add(n);
        self.parts_first = !self.has_output_before();
        if self.shutdown_later.is_some() {
            self.connection_lost(base, libc::EPIPE);
        }
    }
    fn output_part(&mut self, base: &mut Base, data: &mut Gather, last: bool) {
        if !self.s.is_connected() {
            let reason = self.why_unconnected();
            self.sender = self.clear_busy_after_failure(base);
            self.answer(base, Err(reason));
            return;
        }
        let behind = self.has_output_before();
        if let Err(e) = self.push_or_keep(base, data) {
            self.send_failed(base, e);
            return;
        }
        if self.queue.bytes > 0 && !behind {
            self.s.select(base, None, Some(true));
        }
        if last {
            let waiting = self.waiting_sender.take();
            let sender = base.sender_of_list().or(waiting);
            self.parts_end(base, sender);
        } else if self.is_full() && !base.busy() {
            self.s.state |= state::BUSY;
            base.set_busy(true);
        }
    }
    fn taken(&mut self, base: &mut Base, sender: Term) {
        if self.parts_first {
            self.sender = Some(sender);
            self.answer(base, Ok(()));
        } else {
            self.waiting_sender = Some(sender);
        }
    }
    fn has_deadline(&self) -> bool {
        self.o.send_timeout >= 0
    }

    fn socket(&self) -> Option<RawFd> {
        self.s.fd().ok()
    }
    fn ready(&mut self, base: &mut Base, id: poll::Id, readable: bool, writable: bool) {
        let Some((_, write)) = self.s.still_wanted(id, readable, writable) else {
            return;
        };
        if write {
            if self.s.state & state::CONNECTING != 0 {
                self.connect_done(base);
            } else if self.s.is_connected() {
                self.write_ready(base);
            } else {
                self.s.select(base, None, Some(false));
            }
        }
        // Writing may have closed the socket or stopped its reading.
        let still = self.s.still_wanted(id, readable, false);
        if still.is_some_and(|(read, _)| read) && !base.is_ending() {
            if self.s.state & state::LISTEN != 0 {
                self.accept_ready(base);
            } else if self.s.is_connected() {
                for _ in 0..TURN_READS {
                    self.input.full = false;
                    let r = self.recv(base, 0);
                    if r.is_err() || !self.s.reads() || !self.input.full {
                        break;
                    }
                }
            } else if self.s.state & state::CONNECTING == 0 {
                self.s.select(base, Some(false), None);
            }
        }
        if !base.is_ending() {
            self.s.arm(base);
        }
    }

    fn timeout(&mut self, base: &mut Base, token: u32) {
        let (what, number) = (token >> 16, token as u16);
        if what == timers::PAUSE {
            return self.resume(base);
        }
        if what == timers::SEND {
            if self.send_timer.as_ref().is_some_and(|t| t.0 == number) {
                self.sender = self.not_busy(base);
                self.answer(base, Err(am::TIMEOUT));
                if self.o.send_timeout_close != 0 {
                    self.close(base);
                }
            }
            return;
        }
        let Some(i) = self.ops.iter().position(|op| op.number == number) else {
            return;
        };
        let op = self.ops.remove(i);
        match what {
            timers::CONNECT => self.close(base),
            timers::ACCEPT if self.ops.is_empty() => self.stop_accepting(base),
            timers::RECV => {
                self.input.missing = 0;
                self.s.select(base, Some(false), None);
            }
            _ => {}
        }
        sock::async_error(base, op.caller, op.number, am::TIMEOUT);
    }

    fn answers_closing(&self, op: u32) -> bool {
        let what = op.wrapping_sub(CONTROL_BASE);
        matches!(
            what,
            req::PEER | req::NAME | req::GETOPTS | req::SETOPTS | req::GETSTAT | req::GETSTATUS
        )
    }

    fn control(&mut self, base: &mut Base, op: u32, data: &[u8]) -> Option<Reply> {
        let op = op.checked_sub(CONTROL_BASE)?;
        let bytes = reply(self.request(base, op, data));
        Some(Reply {
            bytes,
            binary: false,
        })
    }

    fn queued(&self) -> usize {
        self.queue.bytes
    }
    fn flush(&mut self, base: &mut Base) {
        // Bytes that are never going to be sent would keep the port forever.
        let stuck = !self.s.is_connected() || !self.s.writes() && !base.has_more();
        if stuck || self.o.linger_zero || self.sending_file.is_some() {
            self.sender = self.clear_busy_after_failure(base);
            self.answer(base, Err(closed()));
            self.clear_output(base);
        }
        self.s.select(base, Some(false), None);
    }
    fn write_out(&mut self, base: &mut Base, until: Option<i64>) {
        let mut queue = std::mem::take(&mut self.queue);
        let lost = self.o.linger_zero || self.sending_file.is_some();
        while queue.bytes > 0 && self.push(base, &mut queue).is_ok() && !lost {
            let Ok(fd) = self.s.fd() else { break };
            if queue.bytes > 0 && !ready_by(fd, true, until) {
                break;
            }
        }
        self.queue = queue;
    }
    fn stop(&mut self, base: &mut Base) {
        if let Some(sender) = base.cut_short() {
            self.sender = Some(sender);
            self.answer(base, Err(closed()));
        }
        self.tell_waiting_closed(base);
        self.close(base);
    }
    fn may_be_channel(&self) -> bool {
        true
    }
    fn pull(&mut self, base: &mut Base, channel: &dyn Channel) {
        for _ in 0..TURN_READS {
            if !self.s.is_connected() || base.is_ending() || self.sending_file.is_some() {
                return;
            }
            let behind = self.queue.bytes > 0;
            while self.queue.bytes < CHANNEL_BYTES
                && let Some(packet) = channel.next()
            {
                let n = packet.iter().map(IoSlice::len).sum();
                let head = self.head(n);
                self.s.sent.add(head.len() + n);
                base.bytes_out += n as u64;
                self.queue.push(IoSlice::copy_of(&head));
                packet.into_iter().for_each(|p| self.queue.push(p));
            }
            if behind || self.queue.bytes == 0 {
                return;
            }
            let mut queue = std::mem::take(&mut self.queue);
            let r = self.push(base, &mut queue);
            self.queue = queue;
            if let Err(e) = r {
                self.send_failed(base, e);
                return;
            }
            if self.queue.bytes > 0 {
                break;
            }
        }
        // The poll thread continues it.
        self.s.select(base, None, Some(true));
    }
    fn later(&mut self, base: &mut Base) {
        if self.s.is_connected() && !base.is_ending() {
            self.s.select(base, None, Some(true));
        }
    }
    fn vectored(&self) -> bool {
        true
    }
    fn may_force(&self) -> bool {
        true
    }
    fn own_lock(&self) -> bool {
        true
    }
}
