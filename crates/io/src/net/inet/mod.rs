//! The drivers `tcp_inet` and `udp_inet`, which the library's module `prim_inet` talks to.
//!
//! # Protocol
//! A socket is a port. Requests come by `port_control` and are answered at once by a byte that says
//! whether the request succeeded, followed by its result. A request that takes time ends with a
//! message `{inet_async, Port, Number, Result}` to the caller; the reply to the request holds the
//! number. Sending ends with `{inet_reply, Port, Result}`. Data that arrive on an active socket are
//! sent to the port's owner.
//!
//! # Parts
//! `sock` is what all sockets have, `opts` their options, `ctl` the requests that all
//! understand, `interfaces` the requests about network interfaces; [`tcp`] and [`udp`] are the
//! drivers; [`interest`] is what a socket waits for; `addr` and `sys` stand between them and
//! the kernel.
//!
//! # State
//! The port's lock guards everything. Nothing blocks: sockets are in non-blocking mode, and the
//! poll thread calls when a socket is, or was a moment ago, ready for what it was
//! [selected](sock::Sock::select) for. Cancelled timers may still fire: code that sets a timer
//! records its token, and a token that is no longer recorded is ignored.

pub mod addr;
pub mod ctl;
pub mod interest;
mod interfaces;
pub mod opts;
pub mod sock;
pub mod tcp;
pub mod udp;

pub(crate) use crate::port::settings::{TCP, UDP};

/// Added to each request number of `port_control`.
pub(crate) const CONTROL_BASE: u32 = 0x03f1_a300;

/// Numbers of requests.
pub mod req {
    pub(crate) const OPEN: u32 = 1;
    pub(crate) const CLOSE: u32 = 2;
    pub(crate) const CONNECT: u32 = 3;
    pub(crate) const PEER: u32 = 4;
    pub(crate) const NAME: u32 = 5;
    pub(crate) const BIND: u32 = 6;
    pub(crate) const SETOPTS: u32 = 7;
    pub(crate) const GETOPTS: u32 = 8;
    pub(crate) const GETSTAT: u32 = 11;
    pub(crate) const GETHOSTNAME: u32 = 12;
    pub(crate) const FDOPEN: u32 = 13;
    pub(crate) const GETFD: u32 = 14;
    pub(crate) const GETTYPE: u32 = 15;
    pub(crate) const GETSTATUS: u32 = 16;
    pub(crate) const GETSERVBYNAME: u32 = 17;
    pub(crate) const GETSERVBYPORT: u32 = 18;
    pub(crate) const SETNAME: u32 = 19;
    pub(crate) const SETPEER: u32 = 20;
    pub(crate) const GETIFLIST: u32 = 21;
    pub(crate) const IFGET: u32 = 22;
    pub(crate) const IFSET: u32 = 23;
    pub(crate) const SUBSCRIBE: u32 = 24;
    pub(crate) const GETIFADDRS: u32 = 25;
    pub(crate) const ACCEPT: u32 = 26;
    pub(crate) const LISTEN: u32 = 27;
    pub(crate) const IGNOREFD: u32 = 28;
    pub(crate) const GETLADDRS: u32 = 29;
    pub(crate) const GETPADDRS: u32 = 30;
    pub(crate) const RECV: u32 = 42;
    pub(crate) const UNRECV: u32 = 43;
    pub(crate) const SHUTDOWN: u32 = 44;
    pub(crate) const SENDFILE: u32 = 45;
    pub(crate) const PACKET_RECV: u32 = 60;
}

/// The timeout that means "no timeout".
pub(crate) const NO_TIMEOUT: u32 = u32::MAX;

/// Why a request fails: an error number or an error name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    Errno(i32),
    Name(&'static str),
}

impl From<i32> for Error {
    fn from(errno: i32) -> Error {
        Error::Errno(errno)
    }
}
impl From<&'static str> for Error {
    fn from(name: &'static str) -> Error {
        Error::Name(name)
    }
}

/// The request does not fit the state of the socket.
pub(crate) const BAD_PORT: Error = Error::Name("exbadport");
pub(crate) const BAD_SEQUENCE: Error = Error::Name("exbadseq");
pub const EINVAL: Error = Error::Errno(libc::EINVAL);

/// The result of a request: the bytes behind the first byte of the reply.
pub(crate) type Answer = Result<Vec<u8>, Error>;

/// The bytes that `port_control` returns.
pub fn reply(a: Answer) -> Vec<u8> {
    let (code, tail) = match a {
        Ok(b) => (1, b),
        Err(Error::Name(n)) => (0, n.as_bytes().to_vec()),
        Err(Error::Errno(e)) => (
            0,
            purlin_term::atom::name(crate::posix::errno_atom(e))
                .as_bytes()
                .to_vec(),
        ),
    };
    [&[code], &tail[..]].concat()
}

/// Reads numbers off the front of a request.
pub(crate) struct Args<'a>(pub &'a [u8]);

impl<'a> Args<'a> {
    pub fn len(&self) -> usize {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Error> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(EINVAL)?;
        self.0 = rest;
        Ok(head)
    }
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }
    pub fn u16(&mut self) -> Result<u16, Error> {
        let b = self.take(2)?;
        Ok(u16::from_be_bytes([b[0], b[1]]))
    }
    pub fn u32(&mut self) -> Result<u32, Error> {
        let b = self.take(4)?;
        Ok(u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
    }
    pub fn i32(&mut self) -> Result<i32, Error> {
        self.u32().map(|n| n as i32)
    }
    pub fn u64(&mut self) -> Result<u64, Error> {
        Ok((self.u32()? as u64) << 32 | self.u32()? as u64)
    }
}
