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

mod closing;
mod connecting;
mod input;
mod output;
mod send_file;

use crate::gather::Gather;
use crate::net::inet::addr;
use crate::net::inet::opts::{self, After, StreamOpts};
use crate::net::inet::sock::{self, Sock, active, protocol, state};
use crate::net::inet::udp::closed;
use crate::net::inet::{
    Answer, Args, BAD_PORT, CONTROL_BASE, EINVAL, Error, NO_TIMEOUT, ctl, reply, req,
};
use crate::net::packet::Kind;
use crate::os::descriptor::ready_by;
use crate::os::sock as sys;
use crate::port::channel::Channel;
use crate::port::settings::{self, Options};
use crate::port::{Base, Driver, Reply};
use crate::posix::errno_atom;
use crate::timer::TimerId;
use crate::{lazy_atoms, poll};
use input::Input;
use purlin_term::iolist::{IoSlice, IoVec};
use purlin_term::{Term, am};
use send_file::SendFile;
use smallvec::SmallVec;
use std::os::fd::RawFd;

lazy_atoms! {
    http = "http";
    sendfile = "sendfile";
    ssl_tls = "ssl_tls";
    tcp = "tcp";
}

/// The name by which the driver is opened.
pub(crate) const NAME: &str = super::TCP;

/// Number of bytes sent, and of reads, before other work gets a turn.
const TURN_BYTES: usize = 1 << 20;

const TURN_READS: usize = 16;

/// Queue size up to which packets of a connection to another node are pulled. Pulled packets can no
/// longer be overtaken.
const CHANNEL_BYTES: usize = 128 * 1024;

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
