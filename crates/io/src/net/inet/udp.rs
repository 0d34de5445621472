//! The driver `udp_inet`: datagrams, over IP and local.
//!
//! A datagram is sent at once or fails: nothing is queued. A passive socket reads one when a
//! process asks; an active one delivers as many as fit in a turn.

use super::addr::{self, Addr};
use super::opts::{self, After, opt};
use super::sock::{self, Sock, active, protocol, state};
use super::{Answer, Args, BAD_PORT, CONTROL_BASE, EINVAL, Error, NO_TIMEOUT, ctl, reply, req};
use crate::gather::Gather;
use crate::os::sock as sys;
use crate::poll;
use crate::port::settings::{self, Options};
use crate::port::{Base, Driver, Reply};
use crate::posix::errno_atom;
use crate::timer::TimerId;
use crate::{accounts, lazy_atoms};
use purlin_term::{Alloc, NIL, Term, am, atom};
use std::os::fd::RawFd;

lazy_atoms! {
    pub(crate) closed = "closed";
    tclass = "tclass";
    tos = "tos";
    ttl = "ttl";
    udp = "udp";
}

/// The name by which the driver is opened.
pub(crate) const NAME: &str = super::UDP;
/// Room for control messages.
const CONTROL_BYTES: usize = 512;

/// A request to receive.
struct Op {
    number: u16,
    caller: Term,
    timer: Option<TimerId>,
}

/// See the module head.
pub(crate) struct Udp {
    s: Sock,
    op: Option<Op>,
    buf: Vec<u8>,
}

/// Starts the driver for a port that is opened.
pub fn start(_: &mut Base, _: &Options, _: &[u8]) -> Result<Box<dyn Driver>, settings::Error> {
    Ok(Box::new(Udp {
        s: Sock::new(libc::IPPROTO_UDP),
        op: None,
        buf: Vec::new(),
    }))
}

impl Udp {
    fn request(&mut self, base: &mut Base, op: u32, data: &[u8]) -> Answer {
        let mut args = Args(data);
        match op {
            req::OPEN | req::FDOPEN => {
                let fits = match op {
                    req::OPEN => data.len() == sock::open_bytes(),
                    _ => matches!(data.len(), 6 | 10),
                };
                if !fits {
                    return Err(EINVAL);
                }
                let domain = addr::domain(args.u8()?).ok_or(Error::Name("eafnosupport"))?;
                let kind = match args.u8()? {
                    1 => libc::SOCK_STREAM,
                    2 => libc::SOCK_DGRAM,
                    _ => return Err(EINVAL),
                };
                if op == req::OPEN {
                    let protocol = match args.is_empty() {
                        true => protocol::DEFAULT,
                        false => args.u8()?,
                    };
                    if !matches!(protocol, protocol::DEFAULT | protocol::UDP) {
                        return Err(Error::Name("eprotonosupport"));
                    }
                    self.s.open(domain, kind, protocol)?;
                } else {
                    let fd = args.i32()?;
                    let bound = args.is_empty() || args.u32()? != 0;
                    self.s.open_fd(domain, kind, fd, bound)?;
                }
                if self.s.active != active::PASSIVE {
                    self.s.select(base, Some(true), None);
                }
                Ok(Vec::new())
            }
            req::CLOSE => {
                self.s.close();
                Ok(Vec::new())
            }
            req::CONNECT => self.connect(base, args),
            req::LISTEN => Err(BAD_PORT),
            req::PACKET_RECV => self.recv_request(base, args),
            req::SETOPTS => match opts::set(&mut self.s, None, base, data)? {
                After::Nothing
                | After::Deliver
                | After::BeginAgain
                | After::Read
                | After::Closed => Ok(Vec::new()),
            },
            req::GETOPTS => opts::get(&self.s, None, data).map_err(|_| EINVAL),
            _ => ctl::control(&mut self.s, base, op, data, 0),
        }
    }

    /// Sets or removes the peer of the socket. Done at once, though answered like an asynchronous
    /// request.
    fn connect(&mut self, base: &mut Base, mut args: Args) -> Answer {
        if !self.s.is_open() {
            return Err(BAD_PORT);
        }
        let fd = self.s.fd()?;
        if args.is_empty() {
            let _ = sys::connect(fd, &Addr::none());
            self.s.state &= !state::ACTIVE;
        } else if args.len() < 6 {
            return Err(EINVAL);
        } else {
            args.u32()?;
            let to = Addr::parse(self.s.domain, &mut args.0)?;
            if self.s.is_connected() {
                // The kernel would keep the source address.
                let _ = sys::connect(fd, &Addr::none());
            }
            if let Err(e) = sys::connect(fd, &to) {
                let _ = sys::connect(fd, &Addr::none());
                self.s.state &= !state::ACTIVE;
                return Err(e.into());
            }
            self.s.remote = Some(Box::new(to));
            self.s.state |= state::ACTIVE;
        }
        let number = self.s.new_async();
        sock::async_result(base, base.caller, number, |_| am::OK);
        Ok(number.to_be_bytes().to_vec())
    }

    fn recv_request(&mut self, base: &mut Base, mut args: Args) -> Answer {
        if !self.s.is_open() {
            return Err(BAD_PORT);
        }
        if self.s.active != active::PASSIVE || args.len() != 8 {
            return Err(EINVAL);
        }
        let timeout = args.u32()?;
        if self.op.is_some() {
            return Err(libc::EALREADY.into());
        }
        let number = self.s.new_async();
        self.op = Some(Op {
            number,
            caller: base.caller,
            timer: None,
        });
        self.recv(base);
        if let Some(op) = self.op.as_mut().filter(|_| timeout != NO_TIMEOUT) {
            op.timer = Some(base.after(timeout as u64, number as u32));
        }
        Ok(number.to_be_bytes().to_vec())
    }
    fn take_op(&mut self, base: &Base) -> Option<Op> {
        let mut op = self.op.take()?;
        if let Some(t) = op.timer.take() {
            base.cancel(t);
        }
        Some(op)
    }

    /// Receives datagrams: one on a passive socket, otherwise as many as fit in a turn.
    fn recv(&mut self, base: &mut Base) {
        for _ in 0..self.s.read_packets.max(1) {
            // A datagram taken from the kernel cannot be kept for the next request.
            if self.s.active == active::PASSIVE && self.op.is_none() {
                self.s.select(base, Some(false), None);
                return;
            }
            let Ok(fd) = self.s.fd() else { return };
            self.buf.resize(self.s.buffer.max(1) as usize, 0);
            let mut control = [0u8; CONTROL_BYTES];
            let connected = self.s.state & state::ACTIVE != 0;
            let wanted = self.s.control_wanted != 0 && !connected;
            let room: &mut [u8] = if wanted { &mut control } else { &mut [] };
            match sys::recv_msg_now(fd, &mut self.buf, room) {
                Ok((n, came)) => {
                    let (from, control_len) = (came.from, came.control);
                    let from = self
                        .s
                        .remote
                        .as_deref()
                        .filter(|_| connected)
                        .copied()
                        .unwrap_or(from);
                    self.s.received.add(n);
                    let ancillary = wanted.then_some(&control[..control_len]);
                    self.deliver_datagram(base, n, &from, ancillary);
                    if self.s.active == active::PASSIVE {
                        self.s.select(base, Some(false), None);
                        return;
                    }
                }
                Err(libc::EAGAIN) => {
                    if self.s.active == active::PASSIVE {
                        self.s.select(base, Some(true), None);
                    }
                    return;
                }
                Err(e) if self.s.active == active::PASSIVE => {
                    if let Some(op) = self.take_op(base) {
                        sock::async_error(base, op.caller, op.number, errno_atom(e));
                    }
                    self.s.select(base, Some(false), None);
                    return;
                }
                Err(e) => {
                    sock::tell(base, "udp_error", Some(errno_atom(e)));
                    return;
                }
            }
        }
    }
    /// Sends the datagram of `n` bytes to its recipient.
    fn deliver_datagram(&mut self, base: &mut Base, n: usize, from: &Addr, control: Option<&[u8]>) {
        let id = base.id;
        if self.s.active == active::PASSIVE {
            let Some(op) = self.take_op(base) else { return };
            let (s, data) = (&self.s, &self.buf[..n]);
            sock::async_result(base, op.caller, op.number, |a| {
                // The encoded address in front of the data.
                let data = if s.binary == 0 || s.header as usize > n {
                    a.byte_list(data, NIL)
                } else {
                    s.data(a, data)
                };
                let mut t = a.byte_list(&from.inet_code_any(), data);
                if let Some(c) = control {
                    let c = control_list(a, c);
                    t = a.tuple(&[t, c]);
                }
                a.tuple(&[am::OK, t])
            });
            return;
        }
        let (s, data) = (&self.s, &self.buf[..n]);
        if s.deliver == 0 {
            base.bytes_in += n as u64;
            base.message(base.connected, |a| {
                let data = s.data(a, data);
                let t = a.byte_list(&from.inet_code_any(), data);
                let t = a.tuple(&[am::DATA, t]);
                a.tuple(&[id, t])
            });
        } else {
            base.message(base.connected, |a| {
                let (ip, port) = from.to_terms(a);
                let control = control.map(|c| control_list(a, c));
                let data = s.data(a, data);
                match control {
                    Some(c) => a.tuple(&[udp(), id, ip, port, c, data]),
                    None => a.tuple(&[udp(), id, ip, port, data]),
                }
            });
        }
        self.s.count_active(base);
    }

    /// Sends a datagram: encoded address, length and list of its options, data.
    fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        if !self.s.is_open() {
            return Err(EINVAL);
        }
        let mut args = Args(datagram);
        let to = Addr::parse(self.s.domain, &mut args.0)?;
        let n = args.u32()? as usize;
        let control = encode_control(args.take(n)?)?;
        self.s.sent.add(args.len());
        let connected = self.s.state & state::ACTIVE != 0;
        let to = (!connected).then_some(&to);
        let part = sys::iovec(args.0);
        sys::send_msg_now(self.s.fd()?, &[part], to, &control)?;
        // The address was written before the data, and all of it in one piece.
        accounts::writes(|w| {
            w.bytes = args.len() as u64;
            w.merged = w.bytes;
            w.calls += 1;
        });
        Ok(())
    }
}

/// The values of control messages as a list.
fn control_list(a: &mut dyn Alloc, control: &[u8]) -> Term {
    let mut items = Vec::new();
    for (level, kind, data) in sys::control_messages(control) {
        let name = match opts::control_option(level, kind) {
            Some(opt::TOS) => tos(),
            Some(opt::TTL) => ttl(),
            Some(opt::TCLASS) => tclass(),
            _ => continue,
        };
        let value = Term::small(opts::control_value(data) as i64);
        items.push(a.tuple(&[name, value]));
    }
    a.list_tail(&items, NIL)
}

/// Control messages for options that are set for one datagram.
fn encode_control(options: &[u8]) -> Result<Vec<u8>, Error> {
    let mut args = Args(options);
    let mut out = Vec::new();
    while !args.is_empty() {
        let (level, kind) = match args.u8()? {
            opt::TOS => (libc::IPPROTO_IP, libc::IP_TOS),
            opt::TTL => (libc::IPPROTO_IP, libc::IP_TTL),
            opt::TCLASS => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            _ => return Err(EINVAL),
        };
        sys::push_control(&mut out, level, kind, args.i32()?);
    }
    Ok(out)
}

impl Driver for Udp {
    fn awaited_by(&self) -> Vec<Term> {
        let callers = self.op.iter().map(|op| op.caller);
        callers.chain(self.s.subscribers.iter().copied()).collect()
    }
    fn output(&mut self, base: &mut Base, data: &mut Gather) {
        let r = self.send(&data.to_vec()).map_err(|e| match e {
            Error::Errno(e) => errno_atom(e),
            Error::Name(n) => atom::intern(n),
        });
        if base.caller.is_local_pid() {
            sock::send_result(base, base.caller, r);
        }
    }
    fn socket(&self) -> Option<RawFd> {
        self.s.fd().ok()
    }
    fn ready(&mut self, base: &mut Base, id: poll::Id, readable: bool, _: bool) {
        let Some((read, _)) = self.s.still_wanted(id, readable, false) else {
            return;
        };
        if read {
            self.recv(base);
        }
        self.s.arm(base);
    }
    fn timeout(&mut self, base: &mut Base, token: u32) {
        if let Some(op) = self.op.take_if(|op| op.number as u32 == token) {
            self.s.select(base, Some(false), None);
            sock::async_error(base, op.caller, op.number, am::TIMEOUT);
        }
    }
    fn control(&mut self, base: &mut Base, op: u32, data: &[u8]) -> Option<Reply> {
        let op = op.checked_sub(CONTROL_BASE)?;
        let bytes = reply(self.request(base, op, data));
        Some(Reply {
            bytes,
            binary: false,
        })
    }
    fn stop(&mut self, base: &mut Base) {
        if let Some(op) = self.take_op(base) {
            sock::async_error(base, op.caller, op.number, closed());
        }
        self.s.close();
    }
    fn may_force(&self) -> bool {
        true
    }
    fn own_lock(&self) -> bool {
        true
    }
}
