//! Several messages in one system call (OTP 29).

use super::addr::SockAddr;
use super::addr::addr;
use super::base::*;
use super::io::{self, check_reader, check_writer, need_receive_ref, writable};
use super::message::{MOST_CONTROL_BYTES, control_bytes, message_term, parts};
use super::state::sock;
use crate::cx::{BifResult, Cx, Fail};
use crate::os::kernel_numbers as numbers;
use crate::os::sock as sys;
use purlin_term::{Alloc, Term, am, arith, map};

/// Maximum number of messages of one call: the system's limit.
const MOST_MESSAGES: usize = 1024;

/// Maximum number of bytes that one call may receive. A program that asks for more room per message
/// gets fewer messages at once.
const MOST_ROOM: usize = 128 << 20;

pub(crate) fn sendmmsg_4(cx: &mut Cx, [me, list, flags, r]: [Term; 4]) -> BifResult {
    if !numbers::HAS_BATCHES {
        return Ok(cx.err(am::NOTSUP));
    }
    let sock = sock(me)?;
    let list = list
        .list_to_vec()
        .filter(|list| r.is_ref() && list.iter().all(|message| message.is_map()))
        .ok_or(Fail::Badarg)?;
    let Some(fl) = in_range(flags, int(flags))? else {
        return Ok(out_of_range(cx, flags));
    };
    let mut s = sock.lock();
    if let Err(answer) = writable(cx, &s).and_then(|()| check_writer(cx, &mut s, sock, me, r)) {
        return answer;
    }
    if list.is_empty() {
        return Ok(am::OK);
    }
    let list = &list[..list.len().min(MOST_MESSAGES)];
    let (mut bytes, mut messages) = (Vec::new(), Vec::new());
    for &message in list {
        let to = match map::get(message, addr()) {
            None => None,
            Some(address) => match SockAddr::from_map(address) {
                None => return Ok(invalid(cx, addr())),
                to => to,
            },
        };
        let data = map::get(message, iov()).ok_or(Fail::Badarg)?;
        let (data, rest) = parts(data).ok_or(Fail::Badarg)?;
        if rest {
            return Ok(invalid(cx, iov()));
        }
        let control = match map::get(message, ctrl()) {
            None => Vec::new(),
            Some(control) => match control_bytes(control, s.send_control_bytes) {
                None => return Ok(invalid(cx, ctrl())),
                Some(control) => control,
            },
        };
        let parts = data.iter().map(|part| sys::iovec(part)).collect();
        messages.push(sys::Message { parts, to, control });
        bytes.push(data);
    }
    cx.bump(bytes.iter().map(|data| data.len() / 16 + 1).sum());
    s.counters.write_tries += 1;
    // SAFETY: the parts point into `bytes`, which lives until the end.
    let sent = match unsafe { sys::send_msgs(s.fd, &mut messages, fl) } {
        Ok(sent) => sent,
        Err(e) => return io::sent(cx, &mut s, sock, [me, r], (0, 0), false, Err(e)),
    };
    let mut cut = Vec::new();
    for (i, (&n, data)) in sent.iter().zip(&bytes).enumerate() {
        let c = &mut s.counters;
        c.write_pkg += 1;
        c.write_byte += n as u64;
        c.write_pkg_max = c.write_pkg_max.max(n as u64);
        cx.bump(n / 1024);
        if n != data.iter().map(|part| part.len()).sum::<usize>() {
            let n = cx.uint(n as u64);
            cut.push(cx.tuple(&[Term::small(i as i64), n]));
        }
    }
    s.next_writer(sock);
    if cut.is_empty() {
        return Ok(am::OK);
    }
    let cut = cx.list(&cut);
    Ok(cx.ok(cut))
}

pub(crate) fn recvmmsg_6(cx: &mut Cx, [me, count, len, control, flags, r]: [Term; 6]) -> BifResult {
    if !numbers::HAS_BATCHES {
        return Ok(cx.err(am::NOTSUP));
    }
    let sock = sock(me)?;
    need_receive_ref(r)?;
    let numbers = [count, len, control, flags];
    if !numbers.iter().all(|n| n.is_integer()) {
        return Err(Fail::Badarg);
    }
    let Some(wanted) = arith::to_u64(count)
        .and_then(|n| u32::try_from(n).ok())
        .filter(|&n| n != 0)
    else {
        return Ok(out_of_range(cx, count));
    };
    let Some(len) = size_of_term(len) else {
        return Ok(out_of_range(cx, len));
    };
    let Some(control) = size_of_term(control) else {
        return Ok(out_of_range(cx, control));
    };
    let Some(flags) = int(flags) else {
        return Ok(out_of_range(cx, flags));
    };
    let mut s = sock.lock();
    if let Err(answer) = check_reader(cx, &mut s, sock, me, r) {
        return answer;
    }
    let or = |n: usize, default: usize| if n != 0 { n } else { default };
    let control_room = or(control, s.receive_control_bytes).min(MOST_CONTROL_BYTES);
    let room = or(len, s.receive_bytes).min(MOST_ROOM);
    let at_once = (MOST_ROOM / (room + control_room).max(1)).max(1);
    let count = (wanted as usize).min(MOST_MESSAGES).min(at_once);
    s.counters.read_tries += 1;
    let batch = match sys::recv_msgs(s.fd, count, room, control_room, flags) {
        Err(e) => return io::receive_failed(cx, &mut s, sock, [me, r], e),
        Ok(batch) => batch,
    };
    let mut messages = Vec::new();
    for (n, data, came, control) in batch.iter() {
        let c = &mut s.counters;
        c.read_pkg += 1;
        c.read_byte += n as u64;
        c.read_pkg_max = c.read_pkg_max.max(n as u64);
        cx.bump(data.len() / 1024 + 1);
        let data = cx.binary(data);
        messages.push(message_term(cx, data, came.from, control, came.flags));
    }
    s.next_reader(sock);
    let messages = cx.list(&messages);
    Ok(cx.ok(messages))
}
