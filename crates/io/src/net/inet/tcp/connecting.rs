//! Connections of a TCP socket: those that it makes, and those that it accepts.

use super::closing::reason;
use super::{NAME, Tcp, timers};
use crate::net::inet::addr::Addr;
use crate::net::inet::opts::StreamOpts;
use crate::net::inet::sock::{self, active, state};
use crate::net::inet::{Answer, Args, BAD_PORT, EINVAL, Error, NO_TIMEOUT};
use crate::os::sock as sys;
use crate::port::Base;
use crate::posix::errno_atom;
use purlin_term::{Term, am};
use std::os::fd::OwnedFd;

impl Tcp {
    pub(super) fn connect(&mut self, base: &mut Base, mut args: Args) -> Answer {
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
    pub(super) fn connected(&mut self, base: &Base) {
        if let Some(op) = self.take_op(base) {
            sock::async_result(base, op.caller, op.number, |_| am::OK);
        }
    }
    /// Finishes an attempt to connect.
    pub(super) fn connect_done(&mut self, base: &mut Base) {
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

    pub(super) fn accept(&mut self, base: &mut Base, mut args: Args) -> Answer {
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
    pub(super) fn accept_ready(&mut self, base: &mut Base) {
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
    pub(super) fn stop_accepting(&mut self, base: &Base) {
        self.s.select(base, Some(false), None);
        self.s.state = state::OPEN | state::LISTEN;
    }
}
