//! The driver of ports on descriptors: pipes to a child process, inherited descriptors, files.
//!
//! # Modes of shared descriptors
//! The standard descriptors are shared with other programs, which a non-blocking mode would
//! confuse. So the mode of an inherited descriptor never changes. It is read only when the kernel
//! reports input. Terminals and pipes are opened again for writing, in non-blocking mode. A
//! descriptor that cannot be opened again is written in pieces small enough that a ready descriptor
//! takes them without blocking.

use super::settings::Options;
use super::{Base, Driver, End, Reply, spawn, watch};
use crate::gather::{Gather, Parts, max_parts};
use crate::os::descriptor::{self, FileKind};
use crate::os::{child, terminal};
use crate::{accounts, poll, report};
use purlin_term::NIL;
use purlin_term::iolist::IoVec;
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Maximum number of bytes read at once.
const READ_BYTES: usize = 64 * 1024;
/// Number of bytes that a ready pipe takes without blocking, by POSIX.
const PIPE_BYTES: usize = 4096;
/// Number of bytes written before other work gets a turn.
const TURN_BYTES: usize = 1 << 20;
/// Minimum room made for a packet whose header announces more.
const FIRST_PACKET_ROOM: usize = 1 << 16;

thread_local! {
    static READ_BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Reads what is available, at most [`READ_BYTES`], and passes it to `f`.
pub(crate) fn with_read<R>(fd: RawFd, f: impl FnOnce(io::Result<&[u8]>) -> R) -> R {
    READ_BUFFER.with_borrow_mut(|b| {
        b.resize(READ_BYTES, 0);
        match descriptor::read(fd, b) {
            Ok(n) => f(Ok(&b[..n])),
            Err(e) => f(Err(e)),
        }
    })
}

/// Splits a byte stream into packets: a length in 1, 2 or 4 bytes, most significant first, then
/// that many bytes.
pub struct Packets {
    header_bytes: usize,
    /// The bytes of the current packet read so far, header included.
    held: Vec<u8>,
}

impl Packets {
    fn new(header_bytes: usize) -> Packets {
        Packets {
            header_bytes,
            held: Vec::new(),
        }
    }
    fn length(&self) -> Option<usize> {
        let h = self.held.get(..self.header_bytes)?;
        Some(h.iter().fold(0, |n, &b| n << 8 | usize::from(b)))
    }
    /// Takes bytes and passes each packet that they complete to `packet`.
    pub(crate) fn feed(&mut self, mut data: &[u8], mut packet: impl FnMut(&[u8])) {
        loop {
            if self.held.len() < self.header_bytes {
                let n = (self.header_bytes - self.held.len()).min(data.len());
                self.held.extend_from_slice(&data[..n]);
                data = &data[n..];
            }
            let Some(len) = self.length() else { return };
            let have = self.held.len() - self.header_bytes;
            let n = (len - have).min(data.len());
            let (now, rest) = data.split_at(n);
            data = rest;
            if have == 0 && n == len {
                packet(now);
            } else {
                // The header is only a claim: room grows with the bytes that arrive.
                if self.held.capacity() == self.held.len() {
                    let room = (len - have).min(FIRST_PACKET_ROOM.max(self.held.len()));
                    self.held.reserve(room);
                }
                self.held.extend_from_slice(now);
                if have + n < len {
                    return;
                }
                packet(&self.held[self.header_bytes..]);
            }
            self.held.clear();
            if self.held.capacity() > READ_BYTES {
                self.held = Vec::new();
            }
        }
    }
}

struct Input {
    fd: RawFd,
    own: Option<OwnedFd>,
    id: poll::Id,
    packets: Option<Packets>,
}

/// A descriptor to write to.
pub struct Output {
    pub fd: RawFd,
    own: Option<OwnedFd>,
    /// None until something cannot be written at once.
    id: Option<poll::Id>,
    /// Maximum number of bytes of one write, if a larger write could block.
    piece: Option<usize>,
}

impl Output {
    /// Makes an output on a descriptor that others share.
    pub fn shared(fd: RawFd) -> Output {
        let (own, piece) = match descriptor::file_kind(fd) {
            Some(FileKind::Regular) | None => (None, None),
            Some(kind) => match descriptor::open_again_for_writing(fd, kind) {
                Some(own) => (Some(own), None),
                None => (None, Some(PIPE_BYTES)),
            },
        };
        Output {
            fd: own.as_ref().map_or(fd, |o| o.as_raw_fd()),
            own,
            id: None,
            piece,
        }
    }
    /// Makes an output on a non-blocking descriptor of ours. If `own` is None, something else
    /// closes it.
    fn ours(fd: RawFd, own: Option<OwnedFd>) -> Output {
        Output {
            fd,
            own,
            id: None,
            piece: None,
        }
    }
    /// Whether a report is about this descriptor.
    pub fn is(&self, id: poll::Id) -> bool {
        self.id == Some(id)
    }
    /// Asks the poll thread to report when more can be written.
    pub(crate) fn await_room(&mut self, b: &Base) -> io::Result<()> {
        let id = match self.id {
            Some(id) => id,
            None => *self.id.insert(b.register(self.fd)?),
        };
        poll::want(id, false, true);
        Ok(())
    }
    /// Writes everything, blocking, until `until` at the latest.
    pub(crate) fn write_all(&self, base: &Base, queue: &mut IoVec, until: Option<i64>) {
        while queue.bytes > 0 {
            match self.write(base, queue) {
                Ok(()) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if !descriptor::ready_by(self.fd, true, until) {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
    }
    /// Unregisters the descriptor, and closes it if it is ours.
    pub(crate) fn close(self) {
        if let Some(id) = self.id {
            poll::forget(id);
        }
        drop(self.own);
    }
    /// Writes as much as the descriptor takes.
    pub fn write(&self, base: &Base, queue: &mut impl Parts) -> io::Result<()> {
        let mut turn = TURN_BYTES;
        while queue.bytes() > 0 && turn > 0 {
            if self.piece.is_some() && !descriptor::poll_one(self.fd, true, 0) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let r = descriptor::write(
                self.fd,
                queue.parts().take(max_parts()),
                self.piece.unwrap_or(TURN_BYTES),
            );
            accounts::writes(|w| w.calls += 1);
            if watch::is_on() {
                let who = [base.id, base.connected, base.caller];
                watch::report(&who, queue, r.as_ref().ok().copied());
            }
            let n = r?;
            queue.advance(n);
            turn = turn.saturating_sub(n.max(1));
        }
        Ok(())
    }
}

/// The exit status of the child, for a port that reports it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    NotWanted,
    /// The child is running.
    Awaited,
    /// The input has ended and the child is running.
    InputEnded,
    Exited(i32),
}

/// See the module head.
pub struct Fd {
    input: Option<Input>,
    output: Option<Output>,
    queue: IoVec,
    packet: usize,
    high: usize,
    low: usize,
    status: Status,
    child: Option<i32>,
    kind: Kind,
    /// The end of the input, reported once the queue is written.
    pending: Option<End>,
}

/// Logs that a port was opened on a descriptor that is not open.
fn bad_input(b: &Base, input: RawFd, output: RawFd) {
    let number = b.id.pid_data();
    let name = format!("{input}/{output}");
    let text = format!(
        "Bad input fd in erts_poll()! fd={input}, port=#Port<0.{number}>, driver=fd, name={name}\n"
    );
    report::send(report::Level::Error, NIL, NIL, report::Text::Plain(&text));
}

/// The driver of stock that this port corresponds to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Spawn,
    Fd,
    Vanilla,
}

/// Base number of the `port_control` operations of the terminal and descriptor drivers.
pub(crate) const CONTROL_BASE: u32 = 0x018b_0900;
/// `port_control` of a port on a terminal: columns and rows, as two native 32-bit integers.
pub(crate) const GET_WINDOW_SIZE: u32 = 100;

impl Fd {
    fn new(o: &Options, kind: Kind) -> Fd {
        Fd {
            input: None,
            output: None,
            queue: IoVec::default(),
            packet: o.packet_bytes,
            high: o.high_mark,
            low: o.low_mark,
            status: Status::NotWanted,
            child: None,
            kind,
            pending: None,
        }
    }
    fn read_from(&mut self, b: &Base, fd: RawFd, own: Option<OwnedFd>) -> io::Result<()> {
        let id = b.register(fd)?;
        poll::want(id, true, false);
        self.input = Some(Input {
            fd,
            own,
            id,
            packets: (self.packet > 0).then(|| Packets::new(self.packet)),
        });
        Ok(())
    }

    /// Makes a port with a program behind it.
    pub fn spawned(b: &mut Base, o: &Options, command: &[u8]) -> io::Result<Fd> {
        let mut d = Fd::new(o, Kind::Spawn);
        let child = spawn::start(o, command, b.me())?;
        d.child = child.pid;
        if o.exit_status {
            d.status = child.failed.map_or(Status::Awaited, Status::Exited);
        }
        if let Some(fd) = child.output {
            descriptor::set_nonblocking(fd.as_raw_fd(), true)?;
            d.read_from(b, fd.as_raw_fd(), Some(fd))?;
        }
        if let Some(fd) = child.input {
            descriptor::set_nonblocking(fd.as_raw_fd(), true)?;
            d.output = Some(Output::ours(fd.as_raw_fd(), Some(fd)));
        }
        Ok(d)
    }

    /// Makes a port on open descriptors, which stay open.
    pub fn on(b: &mut Base, o: &Options, input: RawFd, output: RawFd) -> io::Result<Fd> {
        let mut d = Fd::new(o, Kind::Fd);
        if o.write {
            d.output = Some(Output::shared(output));
        }
        if o.read {
            // A descriptor that is not open yields no input, as in stock.
            match d.read_from(b, input, None) {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::EBADF) => bad_input(b, input, output),
                Err(e) => return Err(e),
            }
        }
        Ok(d)
    }

    /// Makes a port on a file.
    pub fn file(b: &mut Base, o: &Options, path: &[u8]) -> io::Result<Fd> {
        let mut d = Fd::new(o, Kind::Vanilla);
        let fd = descriptor::open_file(path, o.read, o.write)?;
        descriptor::set_nonblocking(fd.as_raw_fd(), true)?;
        let raw = fd.as_raw_fd();
        let mut own = Some(fd);
        if o.read {
            d.read_from(b, raw, own.take())?;
        }
        if o.write {
            d.output = Some(Output::ours(raw, own));
        }
        Ok(d)
    }

    fn read(&mut self, b: &mut Base) {
        let Some(i) = &mut self.input else { return };
        // Another program may have read the reported input.
        if i.own.is_none() && !descriptor::poll_one(i.fd, false, 0) {
            poll::want(i.id, true, false);
            return;
        }
        let (id, packets) = (i.id, &mut i.packets);
        let end = with_read(i.fd, |r| match r {
            Ok([]) => Some(End::Eof),
            Ok(data) => {
                match packets {
                    Some(p) => p.feed(data, |s| b.input(s)),
                    None => b.input(data),
                }
                None
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => None,
            Err(e) => Some(End::Reason(crate::posix::errno_atom(
                crate::posix::errno_of(&e),
            ))),
        });
        match end {
            None => poll::want(id, true, false),
            // A descriptor that cannot be read is treated as silent: the port still serves output,
            // as in stock.
            Some(End::Reason(_)) if self.kind != Kind::Spawn => {}
            Some(End::Eof) if self.status == Status::Awaited => {
                self.status = Status::InputEnded;
            }
            Some(e) => self.finish(b, e),
        }
    }
    /// Handles the end of the input.
    fn finish(&mut self, b: &mut Base, end: End) {
        if self.kind == Kind::Spawn && self.queue.bytes > 0 {
            // A failing write of the queue comes before the end of the input, whichever is noticed
            // first.
            self.write(b);
            if b.is_ending() {
                return;
            }
        }
        if let (Status::Exited(s), End::Eof) = (self.status, end) {
            if !b.is_flushing() {
                b.tell_number("exit_status", i64::from(child::exit_code(s)));
            }
            self.status = Status::NotWanted;
        }
        if self.kind == Kind::Fd && (self.queue.bytes > 0 || b.has_more()) {
            self.pending = Some(end);
        } else {
            b.end(end);
        }
    }

    fn write(&mut self, b: &mut Base) {
        let Some(o) = &mut self.output else {
            // Opened for input only: there is no descriptor to write to.
            self.queue = IoVec::default();
            b.fail(libc::EBADF);
            return;
        };
        match o.write(b, &mut self.queue) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => {
                self.queue = IoVec::default();
                b.fail(crate::posix::errno_of(&e));
                return;
            }
        }
        let left = self.queue.bytes;
        if left > 0
            && let Err(e) = o.await_room(b)
        {
            self.queue = IoVec::default();
            b.fail(crate::posix::errno_of(&e));
            return;
        }
        if b.busy() {
            if left < self.low.max(1) {
                b.set_busy(false);
            }
        } else if left >= self.high {
            b.set_busy(true);
        }
        if left == 0 && !b.has_more() {
            self.input_ended_before(b);
        }
    }
    /// Ends the port after the last write, if the input has ended before.
    fn input_ended_before(&mut self, b: &mut Base) {
        if let Some(end) = self.pending.take() {
            b.end(end);
        }
    }
}

impl Driver for Fd {
    fn output(&mut self, b: &mut Base, data: &mut Gather) {
        if self.packet > 0 {
            let n = data.bytes();
            if n >> (8 * self.packet) != 0 {
                b.fail(libc::EINVAL);
                return;
            }
            let head = (n as u32).to_be_bytes();
            data.prefix(&head[4 - self.packet..]);
        }
        self.output_part(b, data, true);
    }
    fn streams(&self) -> bool {
        self.packet == 0
    }
    fn output_part(&mut self, b: &mut Base, data: &mut Gather, last: bool) {
        if purlin_kernel::os::exploring::on() && self.input.is_some() {
            purlin_kernel::os::exploring::ASKED.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let idle = self.queue.bytes == 0;
        if idle && let Some(o) = &self.output {
            // Bytes taken at once need no place in the queue. An error shows again when the rest is
            // written.
            let _ = o.write(b, data);
        }
        data.keep(&mut self.queue);
        if idle && self.queue.bytes > 0 || b.busy() {
            self.write(b);
        } else if self.queue.bytes >= self.high && !b.busy() {
            b.set_busy(true);
        }
        if last && self.queue.bytes == 0 {
            self.input_ended_before(b);
        }
    }
    fn later(&mut self, b: &mut Base) {
        if let Some(o) = &mut self.output
            && let Err(e) = o.await_room(b)
        {
            b.fail(crate::posix::errno_of(&e));
        }
    }

    fn ready(&mut self, b: &mut Base, id: poll::Id, readable: bool, writable: bool) {
        if writable && self.output.as_ref().is_some_and(|o| o.is(id)) {
            self.write(b);
        }
        if readable && self.input.as_ref().is_some_and(|i| i.id == id) {
            self.read(b);
        }
    }

    fn control(&mut self, _: &mut Base, op: u32, _: &[u8]) -> Option<Reply> {
        if self.kind != Kind::Fd || op.wrapping_sub(CONTROL_BASE) != GET_WINDOW_SIZE {
            return None;
        }
        let fds = [
            self.output.as_ref().map(|o| o.fd),
            self.input.as_ref().map(|i| i.fd),
        ];
        let (w, h) = fds.into_iter().flatten().find_map(terminal::window_size)?;
        Some(Reply {
            bytes: [w.to_ne_bytes(), h.to_ne_bytes()].concat(),
            binary: false,
        })
    }

    fn queued(&self) -> usize {
        self.queue.bytes
    }

    fn write_out(&mut self, b: &mut Base, until: Option<i64>) {
        if let Some(o) = &self.output {
            o.write_all(b, &mut self.queue, until);
        }
    }
    fn on_terminal(&self) -> bool {
        self.kind == Kind::Fd
    }

    fn child_exited(&mut self, b: &mut Base, status: i32) {
        match self.status {
            Status::Awaited => self.status = Status::Exited(status),
            Status::InputEnded => {
                self.status = Status::Exited(status);
                self.finish(b, End::Eof);
            }
            _ => {}
        }
    }

    fn stop(&mut self, _: &mut Base) {
        if let Some(i) = self.input.take() {
            poll::forget(i.id);
            drop(i.own);
        }
        if let Some(o) = self.output.take() {
            o.close();
        }
        self.queue = IoVec::default();
    }

    fn os_pid(&self) -> Option<i32> {
        self.child
    }
    fn own_lock(&self) -> bool {
        self.kind == Kind::Spawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: usize, chunks: &[&[u8]], want: &[&[u8]]) {
        let mut p = Packets::new(header);
        let mut got: Vec<Vec<u8>> = Vec::new();
        for c in chunks {
            p.feed(c, |s| got.push(s.to_vec()));
        }
        assert_eq!(got, want, "{header} {chunks:?}");
    }

    #[test]
    fn packets_however_they_are_cut() {
        check(1, &[b"\x03abc\x00\x01x"], &[b"abc", b"", b"x"]);
        check(
            2,
            &[b"\x00", b"\x03a", b"b", b"c\x00\x01z"],
            &[b"abc", b"z"],
        );
        check(4, &[b"\x00\x00\x00\x02", b"ab", b"\x00\x00"], &[b"ab"]);
        check(4, &[b"\xff\xff\xff\xff", b"ab"], &[]);
        let mut stream = Vec::new();
        let mut want: Vec<Vec<u8>> = Vec::new();
        for n in [0usize, 1, 255, 256, 65535, 65536, 200_000] {
            let body: Vec<u8> = (0..n).map(|i| i as u8).collect();
            stream.extend_from_slice(&(n as u32).to_be_bytes());
            stream.extend_from_slice(&body);
            want.push(body);
        }
        for step in [1, 7, 4096, 1 << 20] {
            let chunks: Vec<&[u8]> = stream.chunks(step).collect();
            let want: Vec<&[u8]> = want.iter().map(|w| &w[..]).collect();
            check(4, &chunks, &want);
        }
    }
}
