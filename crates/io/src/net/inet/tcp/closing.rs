//! How a TCP connection ends: by either side, or by an error.

use super::{Flow, Over, Tcp};
use crate::net::inet::sock::{self, active, state};
use crate::net::inet::udp::closed;
use crate::net::inet::{Answer, Args, EINVAL, Error};
use crate::os::sock as sys;
use crate::port::Base;
use crate::posix::errno_atom;
use purlin_term::{Term, am, atom};

/// The atom for why a request failed.
pub(super) fn reason(e: Error) -> Term {
    match e {
        Error::Errno(e) => errno_atom(e),
        Error::Name(n) => atom::intern(n),
    }
}

impl Tcp {
    pub(super) fn shutdown(&mut self, base: &Base, mut args: Args) -> Answer {
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

    /// Handles that the other side has closed the connection.
    pub(super) fn recv_closed<T>(&mut self, base: &mut Base) -> Flow<T> {
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
    pub(super) fn recv_failed<T>(&mut self, base: &mut Base, errno: i32) -> Flow<T> {
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
    pub(super) fn end_or_stop_reading(&mut self, base: &mut Base) {
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
    pub(super) fn tell_closed(&mut self, base: &Base) {
        if !std::mem::replace(&mut self.closed_told, true) {
            sock::tell(base, "tcp_closed", None);
        }
    }
    /// Tells the callers of pending requests that the socket is closed.
    pub(super) fn tell_waiting_closed(&mut self, base: &Base) {
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
    pub(super) fn close(&mut self, base: &mut Base) {
        self.input.clear();
        self.clear_output(base);
        self.sending_file = None;
        self.file_later = None;
        self.s.close();
    }
    /// Why nothing can be sent on a socket that is not connected.
    pub(super) fn why_unconnected(&mut self) -> Term {
        if !std::mem::take(&mut self.closed_send) {
            errno_atom(libc::ENOTCONN)
        } else if self.was_reset {
            // The next request to receive learns of it too.
            errno_atom(libc::ECONNRESET)
        } else {
            closed()
        }
    }
    pub(super) fn connection_lost(&mut self, base: &mut Base, errno: i32) {
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
}
