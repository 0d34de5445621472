//! The output of a TCP socket: its queue, and the senders that wait for room in it.

use super::send_file::SendFile;
use super::{TURN_BYTES, Tcp, timers, token};
use crate::accounts;
use crate::gather::{Gather, MAX_PARTS, Parts, batch_bytes, max_parts};
use crate::net::inet::sock::{self, state};
use crate::net::packet::Kind;
use crate::os::sock as sys;
use crate::port::{Base, watch};
use purlin_term::iolist::IoVec;
use purlin_term::{Term, am};
use smallvec::SmallVec;
use std::mem::MaybeUninit;

impl Tcp {
    /// Drops the queue. A process in the middle of a list learns of it when it sends the next part.
    pub(super) fn clear_output(&mut self, base: &mut Base) {
        self.queue = IoVec::default();
        base.drop_backlog();
        self.s.tell_empty_queue(base);
    }

    // Output.

    /// Answers the sending process, if there is one.
    pub(super) fn answer(&mut self, base: &Base, r: Result<(), Term>) {
        if let Some(to) = self.sender.take() {
            sock::send_result(base, to, r);
        }
    }
    /// Clears the busy state because the socket has failed. Returns the sending process, if one
    /// waits for a reply.
    pub(super) fn clear_busy_after_failure(&mut self, base: &mut Base) -> Option<Term> {
        let transit = base.cut_short();
        let waiting = match self.s.state & state::BUSY {
            0 => self.waiting_sender.take(),
            _ => self.not_busy(base),
        };
        waiting.or(transit)
    }
    /// Clears the port's busy flag and returns the process that waited for that.
    pub(super) fn not_busy(&mut self, base: &mut Base) -> Option<Term> {
        if let Some((_, t)) = self.send_timer.take() {
            base.cancel(t);
        }
        self.s.state &= !state::BUSY;
        base.set_busy(false);
        self.waiting_sender.take()
    }

    /// The length header of `n` bytes.
    pub(super) fn head(&self, n: usize) -> SmallVec<[u8; 4]> {
        match self.s.packet_kind() {
            Kind::Length(l) => (n as u32).to_be_bytes()[4 - l as usize..].into(),
            _ => SmallVec::new(),
        }
    }
    /// Sends a list, or answers why not.
    pub(super) fn output_now(&mut self, base: &mut Base, data: &mut Gather) {
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
    pub(super) fn has_output_before(&self) -> bool {
        self.sending_file.is_some() || self.queue.bytes > 0
    }
    pub(super) fn is_full(&self) -> bool {
        self.queue.bytes >= self.o.high.max(0) as usize
    }
    /// Sends as much of a batch as the kernel takes, if no other output goes before it, and queues
    /// the rest.
    pub(super) fn push_or_keep(&mut self, base: &Base, data: &mut Gather) -> Result<(), i32> {
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
    pub(super) fn parts_end(&mut self, base: &mut Base, sender: Option<Term>) {
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
    pub(super) fn push(&self, base: &Base, data: &mut impl Parts) -> Result<(), i32> {
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
    pub(super) fn send_failed(&mut self, base: &mut Base, errno: i32) {
        // A pipe that broke without our shutdown was reset by the other side.
        let errno = if errno == libc::EPIPE && !self.write_shut {
            libc::ECONNRESET
        } else {
            errno
        };
        self.connection_lost(base, errno);
    }
    /// Continues output when the socket can be written.
    pub(super) fn write_ready(&mut self, base: &mut Base) {
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
    pub(super) fn queue_shortened(&mut self, base: &mut Base) {
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
}
