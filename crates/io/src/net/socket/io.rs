//! Sends and receives bytes.
//!
//! One process at a time writes to a socket, and one reads; others wait in its queues. A call that
//! would block selects the descriptor and returns, and the process calls again when it gets its
//! `select` message.

use super::addr::SockAddr;
use super::base::*;
use super::state::{Locked, Request, Sock, State, sock};
use crate::accounts;
use crate::cx::{BifResult, Cx, Fail};
use crate::os::sock as sys;
use crate::posix::errno_atom;
use purlin_term::bin::RcBin;
use purlin_term::release::{self, SOCKET_SAYS_TIMEOUT};
use purlin_term::{Alloc, Term, am};
use std::cell::RefCell;
use std::sync::Arc;

/// Size of the buffer in which a thread receives bytes before it copies them to a binary of their
/// size.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Makes a binary of the bytes that `call` receives into `room` bytes. Returns their number, the
/// binary, and the other result of the call, or an errno.
pub(crate) fn receive<T>(
    cx: &mut Cx,
    room: usize,
    call: impl FnOnce(*mut u8, usize) -> Result<(usize, T), i32>,
) -> Result<(usize, Term, T), i32> {
    if room <= SCRATCH_BYTES {
        return SCRATCH.with_borrow_mut(|b| {
            let (n, more) = call(b.as_mut_ptr(), room)?;
            cx.bump(n / 1024 + 1);
            // A truncated datagram may be reported with its full length.
            Ok((n, cx.binary(&b[..n.min(room)]), more))
        });
    }
    let bin = RcBin::try_alloc(room).ok_or(libc::ENOMEM)?;
    // SAFETY: a fresh block of that many bytes. Its count is given to the term or released. The
    // system has written the bytes that the term shows.
    unsafe {
        let (n, more) = match call(RcBin::bytes(bin), room) {
            Ok(r) => r,
            Err(e) => {
                RcBin::release(bin);
                return Err(e);
            }
        };
        cx.bump(n / 1024 + 1);
        let got = n.min(room);
        if got >= room / 2 {
            return Ok((n, cx.refc_bin(bin, got), more));
        }
        let t = cx.binary(std::slice::from_raw_parts(RcBin::bytes(bin), got));
        RcBin::release(bin);
        Ok((n, t, more))
    }
}

/// Whether the caller may write now. An error holds the result for the caller.
pub(crate) fn check_writer(
    cx: &mut Cx,
    s: &mut State,
    sock: &Arc<Sock>,
    me: Term,
    r: Term,
) -> Result<(), BifResult> {
    let caller = cx.self_pid();
    match &s.writers.current {
        Some(q) if q.pid != caller => {
            if s.writers.is_waiting(caller) {
                return Err(Err(raise_invalid(cx, state_atom())));
            }
            s.involve(sock, caller);
            s.writers.enqueue(Request::new(caller, me, r));
            Err(Ok(select()))
        }
        _ => Ok(()),
    }
}

/// Makes the caller the process that writes, under a new reference.
pub(crate) fn become_writer(cx: &mut Cx, s: &mut State, sock: &Arc<Sock>, me: Term, r: Term) {
    let caller = cx.self_pid();
    s.involve(sock, caller);
    let old = s.writers.current.replace(Request::new(caller, me, r));
    s.discard(old);
}

/// Checks before writing that a socket is open and not connecting. An error holds the result for
/// the caller.
pub fn writable(cx: &mut Cx, s: &State) -> Result<(), BifResult> {
    if !s.is_open() {
        return Err(Ok(error_closed(cx)));
    }
    if s.connector.is_some() {
        return Err(Ok(error_invalid(cx, state_atom())));
    }
    Ok(())
}

/// Selects for writing on behalf of the current writer. An error holds the result for the caller.
pub(crate) fn await_room(cx: &mut Cx, s: &mut State, sock: &Arc<Sock>) -> Result<(), BifResult> {
    let Some(q) = s.writers.current.take() else {
        return Ok(());
    };
    let r = s.select_write(sock, &q);
    s.writers.current = Some(q);
    r.map_err(|e| {
        let reason = errno_atom(e);
        s.fail_writers(reason);
        Ok(cx.err(reason))
    })
}

/// The result of sending `size` bytes in that many parts, when the system call returned `sent`.
/// `rest`: there are more parts than one call takes.
pub fn sent(
    cx: &mut Cx,
    s: &mut State,
    sock: &Arc<Sock>,
    [me, r]: [Term; 2],
    (size, parts): (usize, u64),
    rest: bool,
    sent: Result<usize, i32>,
) -> BifResult {
    if let Ok(n) = sent {
        accounts::writes_begin();
        accounts::writes(|w| {
            w.bytes = n as u64;
            w.parts = parts;
            w.calls = 1;
        });
        accounts::wrote(cx);
    }
    let written = match sent {
        Ok(n) if n >= size && !rest => {
            let c = &mut s.counters;
            c.write_pkg += 1;
            c.write_byte += n as u64;
            c.write_now += n as u64;
            c.write_pkg_max = c.write_pkg_max.max(c.write_now);
            c.write_now = 0;
            cx.bump(n / 1024 + 1);
            s.next_writer(sock);
            return Ok(am::OK);
        }
        Ok(n) => Some(n),
        Err(libc::EAGAIN | libc::EINTR) => None,
        Err(e) => {
            s.counters.write_fails += 1;
            if e != libc::EINVAL {
                s.fail_writers(errno_atom(e));
            }
            return Ok(errno(cx, e));
        }
    };
    if let Some(n) = written {
        cx.bump(n / 1024 + 1);
        s.counters.write_now += n as u64;
        if !s.is_stream() {
            let c = &mut s.counters;
            c.write_pkg_max = c.write_pkg_max.max(c.write_now);
            c.write_now = 0;
            c.write_pkg += 1;
            c.write_byte += n as u64;
            s.next_writer(sock);
            let n = cx.uint(n as u64);
            return Ok(cx.ok(n));
        }
    }
    become_writer(cx, s, sock, me, r);
    if let Some(n) = written.filter(|&n| n >= size && rest) {
        let n = cx.uint(n as u64);
        return Ok(cx.tuple(&[iov(), n]));
    }
    if let Err(answer) = await_room(cx, s, sock) {
        return answer;
    }
    s.counters.write_waits += 1;
    Ok(match written {
        Some(n) => {
            let n = cx.uint(n as u64);
            cx.tuple(&[select(), n])
        }
        None => select(),
    })
}

fn send(
    cx: &mut Cx,
    [me, data, flags, r]: [Term; 4],
    to: Option<&dyn Fn() -> Option<SockAddr>>,
) -> BifResult {
    let sock = sock(me)?;
    let data = data
        .as_binary()
        .filter(|_| r.is_ref())
        .ok_or(Fail::Badarg)?;
    let Some(fl) = in_range(flags, int(flags))? else {
        return Ok(out_of_range(cx, flags));
    };
    let to = match to {
        None => None,
        Some(decode) => match decode() {
            None => return Ok(invalid(cx, sockaddr())),
            a => a,
        },
    };
    let mut s = sock.lock();
    if let Err(answer) = writable(cx, &s).and_then(|()| check_writer(cx, &mut s, sock, me, r)) {
        return answer;
    }
    s.counters.write_tries += 1;
    let n = sys::send(s.fd, &data, fl, to.as_ref());
    sent(cx, &mut s, sock, [me, r], (data.len(), 1), false, n)
}

pub(crate) fn send_4(cx: &mut Cx, args: [Term; 4]) -> BifResult {
    send(cx, args, None)
}
pub(crate) fn sendto_5(cx: &mut Cx, [me, data, to, flags, r]: [Term; 5]) -> BifResult {
    send(cx, [me, data, flags, r], Some(&|| SockAddr::from_map(to)))
}

/// Checks the reference of a receiving call; `zero` means that the call never waits.
pub(crate) fn need_receive_ref(r: Term) -> Result<(), Fail> {
    if r.is_ref() || r == zero() {
        Ok(())
    } else {
        Err(Fail::Badarg)
    }
}

/// Whether the caller may read now. An error holds the result for the caller.
pub(crate) fn check_reader(
    cx: &mut Cx,
    s: &mut State,
    sock: &Arc<Sock>,
    me: Term,
    r: Term,
) -> Result<(), BifResult> {
    if !s.is_open() {
        return Err(Ok(error_closed(cx)));
    }
    if s.acceptors.current.is_some() {
        return Err(Ok(error_invalid(cx, state_atom())));
    }
    let caller = cx.self_pid();
    match &s.readers.current {
        Some(q) if q.pid != caller => {
            if s.readers.is_waiting(caller) {
                return Err(Err(raise_invalid(cx, state_atom())));
            }
            if r == zero() {
                return Ok(());
            }
            s.involve(sock, caller);
            s.readers.enqueue(Request::new(caller, me, r));
            Err(Ok(select()))
        }
        _ => Ok(()),
    }
}

fn become_reader(cx: &mut Cx, s: &mut State, sock: &Arc<Sock>, me: Term, r: Term) {
    let caller = cx.self_pid();
    s.involve(sock, caller);
    let old = s.readers.current.replace(Request::new(caller, me, r));
    s.discard(old);
}

/// Selects for reading on behalf of the current reader. An error holds the result for the caller.
fn await_data(cx: &mut Cx, s: &mut State, sock: &Arc<Sock>) -> Result<(), BifResult> {
    let Some(q) = s.readers.current.take() else {
        return Ok(());
    };
    let r = s.select_read(sock, &q);
    s.readers.current = Some(q);
    r.map_err(|e| {
        s.next_reader(sock);
        Ok(errno(cx, e))
    })
}

/// The result of a receive that failed with `e`.
pub(crate) fn receive_failed(
    cx: &mut Cx,
    s: &mut State,
    sock: &Arc<Sock>,
    [me, r]: [Term; 2],
    e: i32,
) -> BifResult {
    if e == libc::EAGAIN {
        if r == zero() {
            return Ok(match release::has(SOCKET_SAYS_TIMEOUT) {
                true => am::TIMEOUT,
                false => am::OK,
            });
        }
        s.buffers_filled = 0;
        become_reader(cx, s, sock, me, r);
        return match await_data(cx, s, sock) {
            Ok(()) => Ok(select()),
            Err(answer) => answer,
        };
    }
    s.counters.read_fails += 1;
    s.fail_readers(errno_atom(e));
    Ok(errno(cx, e))
}

/// The result at the end of a stream.
fn receive_closed(cx: &mut Cx, s: &mut State, tell: bool) -> BifResult {
    s.counters.read_fails += 1;
    if tell {
        s.fail_readers(closed());
    }
    Ok(error_closed(cx))
}

/// Counts a package that ends with `n` bytes.
fn count_package(s: &mut State, n: usize) {
    let c = &mut s.counters;
    c.read_pkg += 1;
    c.read_now += n as u64;
    c.read_pkg_max = c.read_pkg_max.max(c.read_now);
    c.read_now = 0;
}

/// A receiving call that may read now.
struct Receive<'a> {
    sock: &'a Arc<Sock>,
    s: Locked<'a>,
    /// Number of bytes that the caller wants; 0 means any number.
    wanted: usize,
    /// Number of bytes to make room for.
    room: usize,
    flags: i32,
}

/// Checks the arguments of a receiving call and whether the caller may read now. An error holds the
/// result for the caller.
fn begin_receive<'a>(
    cx: &mut Cx,
    [me, len, flags, r]: [Term; 4],
) -> Result<Receive<'a>, BifResult> {
    let sock = sock(me).map_err(Err)?;
    need_receive_ref(r).map_err(Err)?;
    if !len.is_integer() || !flags.is_integer() {
        return Err(Err(Fail::Badarg));
    }
    let wanted = size_of_term(len).ok_or_else(|| Ok(out_of_range(cx, len)))?;
    let flags = int(flags).ok_or_else(|| Ok(out_of_range(cx, flags)))?;
    let mut s = sock.lock();
    check_reader(cx, &mut s, sock, me, r)?;
    let room = if wanted != 0 { wanted } else { s.receive_bytes };
    s.counters.read_tries += 1;
    Ok(Receive {
        sock,
        s,
        wanted,
        room,
        flags,
    })
}

pub(crate) fn recv_4(cx: &mut Cx, [me, len, flags, r]: [Term; 4]) -> BifResult {
    let begun = begin_receive(cx, [me, len, flags, r]);
    let Receive {
        sock,
        mut s,
        wanted,
        room,
        flags,
    } = match begun {
        Ok(v) => v,
        Err(answer) => return answer,
    };
    let fd = s.fd;
    let got = receive(cx, room, |p, room| {
        // SAFETY: room for that many bytes.
        unsafe { sys::recv(fd, p, room, flags) }.map(|n| (n, ()))
    });
    let (n, data, ()) = match got {
        Err(e) => return receive_failed(cx, &mut s, sock, [me, r], e),
        Ok((0, ..)) if s.is_stream() => return receive_closed(cx, &mut s, true),
        Ok(g) => g,
    };
    s.counters.read_byte += n as u64;
    if n >= room && wanted == 0 && s.is_stream() {
        // The buffer is full: there may be more.
        s.buffers_filled += 1;
        if s.buffers_filled >= s.buffers {
            s.buffers_filled = 0;
            count_package(&mut s, n);
            s.next_reader(sock);
            return Ok(cx.ok(data));
        }
        s.counters.read_now += n as u64;
        become_reader(cx, &mut s, sock, me, r);
        return Ok(cx.tuple(&[more(), data]));
    }
    if n < room && wanted != 0 && s.is_stream() && r != zero() {
        become_reader(cx, &mut s, sock, me, r);
        return match await_data(cx, &mut s, sock) {
            Ok(()) => Ok(cx.tuple(&[select(), data])),
            Err(answer) => answer,
        };
    }
    if n < room {
        s.buffers_filled = 0;
    }
    count_package(&mut s, n);
    s.next_reader(sock);
    if n < room && wanted != 0 && s.is_stream() && release::has(SOCKET_SAYS_TIMEOUT) {
        return Ok(cx.tuple(&[am::TIMEOUT, data]));
    }
    Ok(cx.ok(data))
}

pub(crate) fn recvfrom_4(cx: &mut Cx, [me, len, flags, r]: [Term; 4]) -> BifResult {
    let begun = begin_receive(cx, [me, len, flags, r]);
    let Receive {
        sock,
        mut s,
        room,
        flags,
        ..
    } = match begun {
        Ok(v) => v,
        Err(answer) => return answer,
    };
    let fd = s.fd;
    let got = receive(cx, room, |p, room| {
        // SAFETY: room for that many bytes.
        unsafe { sys::recv_from(fd, p, room, flags) }
    });
    match got {
        Err(e) => receive_failed(cx, &mut s, sock, [me, r], e),
        Ok((0, ..)) if s.is_stream() => receive_closed(cx, &mut s, false),
        Ok((n, data, from)) => {
            s.counters.read_pkg += 1;
            s.counters.read_byte += n as u64;
            s.next_reader(sock);
            let from = from.to_map(cx);
            let t = cx.tuple(&[from, data]);
            Ok(cx.ok(t))
        }
    }
}

/// The result for a received message.
pub(crate) fn received_message(
    cx: &mut Cx,
    s: &mut State,
    sock: &Arc<Sock>,
    n: usize,
    message: impl FnOnce(&mut Cx) -> Term,
) -> BifResult {
    if n == 0 && s.is_stream() {
        return receive_closed(cx, s, false);
    }
    s.counters.read_pkg += 1;
    s.counters.read_byte += n as u64;
    s.next_reader(sock);
    let m = message(cx);
    Ok(cx.ok(m))
}
