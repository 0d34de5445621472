//! Sends files: the kernel copies from an open file of module `prim_file`, whose descriptor is
//! duplicated for that.

use super::base::*;
use super::io::{await_room, become_writer, check_writer, writable};
use super::state::{Sock, State, sock};
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::os::sock as sys;
use crate::posix::errno_atom;
use crate::prim_file;
use purlin_term::{Alloc, Term, am, arith};
use std::sync::Arc;

lazy_atoms! {
    efile = "efile";
}

/// Maximum number of bytes of one system call.
const CHUNK_BYTES: usize = 0x2000_0000;

/// How a round of sending ended, and how many bytes it sent.
enum Round {
    Done(u64),
    Full(u64),
    Failed(i32),
}

/// Sends at most `count` bytes (0: to the end of the file) from `offset` on, as many as the socket
/// takes.
fn round(s: &mut State, file: i32, mut offset: i64, count: u64) -> Round {
    let c = s.file_counters.get_or_insert_default();
    let (mut left, mut total) = (count, 0u64);
    loop {
        let chunk = match left {
            0 => CHUNK_BYTES,
            n => (n as usize).min(CHUNK_BYTES),
        };
        let sent = sys::send_file(s.fd, file, &mut offset, chunk);
        let errno = sent.err().unwrap_or(0);
        let r = sent.map_or(-1, |n| n as isize);
        c.calls += 1;
        if r > 0 {
            let n = r as u64;
            total += n;
            c.pkg += 1;
            c.byte += n;
            c.pkg_max = c.pkg_max.max(total);
            c.now += n;
            c.max = c.max.max(c.now);
            if left > 0 {
                left -= n;
                if left == 0 {
                    return Round::Done(total);
                }
            }
        }
        match r {
            0 => return Round::Done(total),
            n if n > 0 => {}
            _ => match errno {
                libc::EAGAIN => return Round::Full(total),
                libc::EINTR => {}
                e => return Round::Failed(e),
            },
        }
    }
}

fn fail(cx: &mut Cx, s: &mut State, reason: Term) -> BifResult {
    s.file_counters.get_or_insert_default().fails += 1;
    s.fail_writers(reason);
    Ok(cx.err(reason))
}

fn close_file(s: &mut State) {
    if let Some(f) = s.file.take() {
        // SAFETY: the file was taken from the socket, which owned it.
        let _ = unsafe { sys::close(f) };
    }
}

/// Sends from the socket's current file, and makes the result.
fn go_on(
    cx: &mut Cx,
    s: &mut State,
    sock: &Arc<Sock>,
    [me, r]: [Term; 2],
    offset: i64,
    count: u64,
) -> BifResult {
    let Some(file) = s.file else {
        return Ok(error_invalid(cx, state_atom()));
    };
    match round(s, file, offset, count) {
        Round::Failed(e) => {
            close_file(s);
            fail(cx, s, errno_atom(e))
        }
        Round::Full(n) => {
            become_writer(cx, s, sock, me, r);
            if let Err(answer) = await_room(cx, s, sock) {
                close_file(s);
                return answer;
            }
            s.file_counters.get_or_insert_default().waits += 1;
            let n = cx.uint(n);
            Ok(cx.tuple(&[select(), n]))
        }
        Round::Done(n) => {
            s.next_writer(sock);
            s.counters.write_now = 0;
            close_file(s);
            let n = cx.uint(n);
            Ok(cx.ok(n))
        }
    }
}

/// Offset and count. An error holds the result for the caller.
fn range(cx: &mut Cx, offset: Term, count: Term) -> Result<(i64, u64), BifResult> {
    if !offset.is_integer() || !count.is_integer() {
        return Err(Err(Fail::Badarg));
    }
    let Some(at) = arith::to_i64(offset) else {
        return Err(Ok(out_of_range(cx, offset)));
    };
    match arith::to_u64(count) {
        Some(n) => Ok((at, n)),
        None => Err(Ok(out_of_range(cx, count))),
    }
}

/// `nif_sendfile(Socket, Ref, Offset, Count, File)`: starts.
pub(crate) fn sendfile_5(cx: &mut Cx, [me, r, offset, count, file]: [Term; 5]) -> BifResult {
    let sock = sock(me)?;
    if !r.is_ref() || !file.is_ref() {
        return Err(Fail::Badarg);
    }
    let (offset, count) = match range(cx, offset, count) {
        Ok(r) => r,
        Err(answer) => return answer,
    };
    let mut s = sock.lock();
    if let Err(answer) = writable(cx, &s).and_then(|()| check_writer(cx, &mut s, sock, me, r)) {
        return answer;
    }
    if s.file.is_some() {
        return Ok(error_invalid(cx, state_atom()));
    }
    match prim_file::dup(file) {
        None => {
            let reason = invalid(cx, efile());
            return fail(cx, &mut s, reason);
        }
        Some(Err(e)) => return fail(cx, &mut s, errno_atom(e)),
        Some(Ok(f)) => s.file = Some(f),
    }
    let c = s.file_counters.get_or_insert_default();
    c.tries += 1;
    c.now = 0;
    go_on(cx, &mut s, sock, [me, r], offset, count)
}

/// `nif_sendfile(Socket, Ref, Offset, Count)`: continues after `select`.
pub(crate) fn sendfile_4(cx: &mut Cx, [me, r, offset, count]: [Term; 4]) -> BifResult {
    let sock = sock(me)?;
    if !r.is_ref() {
        return Err(Fail::Badarg);
    }
    let (offset, count) = match range(cx, offset, count) {
        Ok(r) => r,
        Err(answer) => return answer,
    };
    let mut s = sock.lock();
    if let Err(answer) = writable(cx, &s) {
        return answer;
    }
    let mine = match &s.writers.current {
        Some(q) => q.pid == cx.self_pid(),
        None => false,
    };
    if !mine || s.file.is_none() {
        return Err(raise_invalid(cx, state_atom()));
    }
    go_on(cx, &mut s, sock, [me, r], offset, count)
}

/// `nif_sendfile(Socket)`: closes the file that was being sent.
pub(crate) fn sendfile_1(cx: &mut Cx, [me]: [Term; 1]) -> BifResult {
    let mut s = sock(me)?.lock();
    if s.file.is_none() {
        return Ok(error_invalid(cx, state_atom()));
    }
    close_file(&mut s);
    Ok(am::OK)
}
