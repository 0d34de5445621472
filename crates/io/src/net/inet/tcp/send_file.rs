//! `file:sendfile/5`: the system sends a file without copying its bytes to this process.

use super::{TURN_BYTES, Tcp, sendfile};
use crate::net::inet::udp::closed;
use crate::net::inet::{Answer, Args, EINVAL};
use crate::os::sock as sys;
use crate::port::Base;
use crate::posix::errno_atom;
use purlin_term::{Term, am};
use std::os::fd::{AsRawFd, OwnedFd};

pub(super) struct SendFile {
    pub(super) file: OwnedFd,
    pub(super) at: i64,
    pub(super) left: i64,
    pub(super) sent: u64,
    /// Bytes of the queue that go before the file.
    pub(super) before: usize,
}

impl Tcp {
    pub(super) fn send_file_request(&mut self, base: &mut Base, mut args: Args) -> Answer {
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
    pub(super) fn send_file(&mut self, base: &mut Base) {
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
    pub(super) fn tell_file_failed(&self, base: &Base, errno: i32) {
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
