//! Messages: data with an address, flags and control messages.
//!
//! [`KINDS`] has a row for each kind of control message: level, type, name, the form of its data.
//! Numbers that no row has stay numbers.

use super::addr::addr as addr_atom;
use super::addr::{self, SockAddr, in_addr_term, in6_addr_term};
use super::base::*;
use super::io::{
    self, check_reader, check_writer, need_receive_ref, receive, received_message, writable,
};
use super::state::sock;
use super::values::{tos_code, tos_term};
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::os::kernel_numbers::{self as numbers, or_zero};
use crate::os::sock::{self as sys, aligned};
use crate::posix::errno_atom;
use purlin_term::release::{self, SERVICES_AS_MAPS};
use purlin_term::{Alloc, Term, am, arith, atom, map};
use std::mem::size_of;

lazy_atoms! {
    bad_data = "bad_data";
}

/// Maximum number of parts of one message: the system's limit.
pub(crate) const MAX_PARTS: usize = 1024;

/// Upper bound on the bytes of a message's control messages and of an option's value, whatever room
/// a program asks for.
pub(crate) const MOST_CONTROL_BYTES: usize = 1 << 20;

/// A flag of SCTP: the message is a notification.
pub const NOTIFICATION: (&str, i32) = ("notification", 0x8000);

/// Names of message flags, in the order in which they are listed.
pub const FLAGS: &[(&str, i32)] = &[
    ("cmsg_cloexec", or_zero(numbers::MSG_CMSG_CLOEXEC)),
    ("confirm", or_zero(numbers::MSG_CONFIRM)),
    ("ctrunc", libc::MSG_CTRUNC),
    ("dontroute", libc::MSG_DONTROUTE),
    ("eor", libc::MSG_EOR),
    ("errqueue", or_zero(numbers::MSG_ERRQUEUE)),
    ("more", or_zero(numbers::MSG_MORE)),
    ("nosignal", libc::MSG_NOSIGNAL),
    ("oob", libc::MSG_OOB),
    ("peek", libc::MSG_PEEK),
    ("trunc", libc::MSG_TRUNC),
];

/// Flags as a list of names. Bits without a name come last, as a number.
pub(crate) fn flags_term<A: Alloc + ?Sized>(
    a: &mut A,
    table: &[(&str, i32)],
    mut flags: i32,
) -> Term {
    let mut l = Vec::new();
    for &(name, f) in table {
        if f != 0 && flags & f == f {
            flags &= !f;
            l.push(atom::intern(name));
        }
    }
    if flags != 0 {
        l.push(Term::small(flags.into()));
    }
    a.list(&l)
}

/// The kind of data in a control message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    /// Uninterpreted data.
    Raw,
    /// Seconds and microseconds.
    Time,
    /// Seconds and nanoseconds.
    FineTime,
    Tos,
    Int,
    Byte,
    Packet4,
    Packet6,
    Address,
    Failure,
}

/// A kind of control message: level, type if the system has one, name, data, and whether programs
/// may give it as a value.
struct Kind(i32, Option<i32>, &'static str, Data, bool);

const KINDS: &[Kind] = &[
    Kind(
        libc::SOL_SOCKET,
        Some(numbers::SCM_CREDENTIALS),
        "credentials",
        Data::Raw,
        false,
    ),
    Kind(
        libc::SOL_SOCKET,
        Some(libc::SCM_RIGHTS),
        "rights",
        Data::Raw,
        false,
    ),
    Kind(
        libc::SOL_SOCKET,
        Some(libc::SCM_TIMESTAMP),
        "timestamp",
        Data::Time,
        true,
    ),
    Kind(libc::IPPROTO_IP, Some(libc::IP_TOS), "tos", Data::Tos, true),
    Kind(libc::IPPROTO_IP, Some(libc::IP_TTL), "ttl", Data::Int, true),
    Kind(
        libc::IPPROTO_IP,
        Some(libc::IP_RECVTTL),
        "recvttl",
        Data::Byte,
        false,
    ),
    Kind(
        libc::IPPROTO_IP,
        Some(libc::IP_PKTINFO),
        "pktinfo",
        Data::Packet4,
        false,
    ),
    Kind(
        libc::IPPROTO_IP,
        numbers::IP_ORIGDSTADDR,
        "origdstaddr",
        Data::Address,
        false,
    ),
    Kind(
        libc::IPPROTO_IP,
        Some(libc::IP_RECVTOS),
        "recvtos",
        Data::Tos,
        false,
    ),
    Kind(
        libc::IPPROTO_IP,
        numbers::IP_RECVERR,
        "recverr",
        Data::Failure,
        false,
    ),
    Kind(
        libc::IPPROTO_IPV6,
        Some(libc::IPV6_PKTINFO),
        "pktinfo",
        Data::Packet6,
        false,
    ),
    Kind(
        libc::IPPROTO_IPV6,
        Some(libc::IPV6_HOPLIMIT),
        "hoplimit",
        Data::Int,
        true,
    ),
    Kind(
        libc::IPPROTO_IPV6,
        Some(libc::IPV6_TCLASS),
        "tclass",
        Data::Int,
        true,
    ),
    Kind(
        libc::IPPROTO_IPV6,
        Some(libc::IPV6_RECVTCLASS),
        "recvtclass",
        Data::Int,
        false,
    ),
    Kind(
        libc::IPPROTO_IPV6,
        numbers::IPV6_RECVERR,
        "recverr",
        Data::Failure,
        false,
    ),
];

/// Further kinds that OTP 29 knows.
const LATER_KINDS: &[Kind] = &[
    Kind(
        libc::SOL_SOCKET,
        numbers::SCM_TIMESTAMPNS,
        "timestampns",
        Data::FineTime,
        true,
    ),
    Kind(
        libc::IPPROTO_IPV6,
        numbers::IPV6_FLOWINFO,
        "flowinfo",
        Data::Int,
        false,
    ),
];

/// The kinds that the release knows.
fn kinds() -> impl Iterator<Item = &'static Kind> {
    let later: &[Kind] = match release::has(SERVICES_AS_MAPS) {
        true => LATER_KINDS,
        false => &[],
    };
    KINDS.iter().chain(later)
}

fn kind_named(level: i32, name: Term) -> Option<&'static Kind> {
    let name = name.is_atom().then(|| atom::name(name))?;
    kinds().find(|k| k.0 == level && k.1.is_some() && k.2 == name)
}

const HEAD: usize = size_of::<libc::cmsghdr>();

/// Appends a control message to `buf`. None if the result would exceed `limit` bytes.
fn push(buf: &mut Vec<u8>, limit: usize, level: i32, kind: i32, data: &[u8]) -> Option<()> {
    let start = buf.len();
    let space = aligned(HEAD) + aligned(data.len());
    if start + space > limit {
        return None;
    }
    // SAFETY: plain integers, for which zeros are valid.
    let mut h: libc::cmsghdr = unsafe { std::mem::zeroed() };
    h.cmsg_level = level;
    h.cmsg_type = kind;
    h.cmsg_len = (aligned(HEAD) + data.len()) as _;
    buf.resize(start + space, 0);
    // SAFETY: room for a header, which is written unaligned.
    unsafe {
        buf[start..]
            .as_mut_ptr()
            .cast::<libc::cmsghdr>()
            .write_unaligned(h)
    };
    let at = start + aligned(HEAD);
    buf[at..at + data.len()].copy_from_slice(data);
    Some(())
}

/// The bytes of control messages given by a program: maps with a level, a type, and either data or
/// a value.
pub(crate) fn control_bytes(list: Term, limit: usize) -> Option<Vec<u8>> {
    let mut buf = Vec::new();
    for m in list.list_to_vec()? {
        if !m.is_map() {
            return None;
        }
        let level = level_code(map::get(m, level_atom())?)?;
        let kind = map::get(m, am::TYPE)?;
        let value = map::get(m, am::VALUE);
        match map::get(m, am::DATA) {
            None => {
                let k = kind_named(level, kind).filter(|k| k.4)?;
                let v = value?;
                let data = match k.3 {
                    Data::Time => {
                        if !v.is_map() {
                            return None;
                        }
                        // As in stock, the fraction is a copy of the seconds.
                        let s = arith::to_i64(map::get(v, sec())?)?;
                        map::get(v, usec())?;
                        [s.to_ne_bytes(), s.to_ne_bytes()].concat()
                    }
                    Data::FineTime => {
                        let part = |key| arith::to_i64(map::get(v, key)?);
                        let (s, n) = (part(sec())?, part(atom::intern("nsec"))?);
                        [s.to_ne_bytes(), n.to_ne_bytes()].concat()
                    }
                    Data::Tos => tos_code(v)?.to_ne_bytes().to_vec(),
                    _ => int(v)?.to_ne_bytes().to_vec(),
                };
                push(&mut buf, limit, level, k.1?, &data)?;
            }
            Some(_) if value.is_some() => return None,
            Some(d) => {
                let kind = match int(kind) {
                    Some(n) => n,
                    None => kind_named(level, kind)?.1?,
                };
                match (d.as_binary(), int(d), d.as_bool()) {
                    (Some(b), ..) => push(&mut buf, limit, level, kind, &b)?,
                    (_, Some(n), _) => push(&mut buf, limit, level, kind, &n.to_ne_bytes())?,
                    (.., Some(b)) => {
                        push(&mut buf, limit, level, kind, &i32::from(b).to_ne_bytes())?
                    }
                    _ => return None,
                }
            }
        }
    }
    Some(buf)
}

/// The control messages in bytes that the kernel filled, as maps.
pub(crate) fn control_term(cx: &mut Cx, buf: &[u8]) -> Term {
    let mut l = Vec::new();
    let mut at = 0;
    while buf.len().saturating_sub(at) >= HEAD {
        // SAFETY: the bytes are as many as a header has; they are read unaligned.
        let h = unsafe { buf[at..].as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        let len = h.cmsg_len as usize;
        if len < HEAD {
            break;
        }
        let Some(data) = buf.get(at + aligned(HEAD)..at + len) else {
            l.push(bad_data());
            break;
        };
        l.push(control_message(cx, h.cmsg_level, h.cmsg_type, data));
        at += aligned(len);
    }
    cx.list(&l)
}

fn control_message(cx: &mut Cx, level: i32, kind: i32, data: &[u8]) -> Term {
    let row = kinds().find(|k| k.0 == level && k.1 == Some(kind));
    let name = match row {
        Some(k) => atom::intern(k.2),
        None => Term::small(kind.into()),
    };
    let bytes = cx.binary(data);
    let mut pairs = vec![
        (level_atom(), level_term(level)),
        (am::TYPE, name),
        (am::DATA, bytes),
    ];
    if let Some(v) = row.and_then(|k| value(cx, k.3, data)) {
        pairs.push((am::VALUE, v));
    }
    map::from_pairs(cx, &pairs)
}

fn i32_at(b: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

/// The value that data stand for, if they have the right length.
fn value(cx: &mut Cx, what: Data, b: &[u8]) -> Option<Term> {
    match what {
        Data::Raw => None,
        Data::Time | Data::FineTime => {
            let part = |at: usize| Some(i64::from_ne_bytes(b.get(at..at + 8)?.try_into().ok()?));
            let fraction = match what {
                // Microseconds are an `int` on some systems.
                Data::Time if size_of::<libc::suseconds_t>() == 4 => i32_at(b, 8)?.into(),
                _ => part(8)?,
            };
            let (s, fraction) = (cx.int(part(0)?), cx.int(fraction));
            let name = match what {
                Data::Time => usec(),
                _ => atom::intern("nsec"),
            };
            Some(map::from_pairs(cx, &[(sec(), s), (name, fraction)]))
        }
        Data::Tos => b.first().map(|&n| tos_term(cx, n.into())),
        Data::Int => i32_at(b, 0).map(|n| Term::small(n.into())),
        Data::Byte => b.first().map(|&n| Term::small(n.into())),
        Data::Packet4 => {
            let index = i32_at(b, 0)? as u32;
            let (dst, addr) = (b.get(4..8)?, b.get(8..12)?);
            let pairs = [
                (atom::intern("ifindex"), Term::small(index.into())),
                (atom::intern("spec_dst"), in_addr_term(cx, dst)),
                (addr_atom(), in_addr_term(cx, addr)),
            ];
            Some(map::from_pairs(cx, &pairs))
        }
        Data::Packet6 => {
            let addr = b.get(0..16)?;
            let index = i32_at(b, 16)?;
            let pairs = [
                (atom::intern("ifindex"), Term::small(index.into())),
                (addr_atom(), in6_addr_term(cx, addr)),
            ];
            Some(map::from_pairs(cx, &pairs))
        }
        Data::Address => Some(addr::encode(cx, b)),
        Data::Failure => failure(cx, b),
    }
}

/// Names of ICMP's reasons for an unreachable destination; the index is the number.
const UNREACHABLE: &[&str] = &[
    "net_unreach",
    "host_unreach",
    "",
    "port_unreach",
    "frag_needed",
    "",
    "net_unknown",
    "host_unknown",
];
const UNREACHABLE6: &[&str] = &[
    "noroute",
    "adm_prohibited",
    "not_neighbour",
    "addr_unreach",
    "port_unreach",
    "policy_fail",
    "reject_route",
];

/// A report of the error queue: the kernel's `sock_extended_err`, followed by the address of the
/// reporting node.
fn failure(cx: &mut Cx, b: &[u8]) -> Option<Term> {
    let error = errno_atom(i32_at(b, 0)?);
    let (origin, kind, code) = (*b.get(4)?, *b.get(5)?, *b.get(6)?);
    let (info, data) = (i32_at(b, 8)?, i32_at(b, 12)?);
    let number = |n: u8| Term::small(n.into());
    let named = |names: &[&str], n: u8| match names.get(n as usize) {
        Some(s) if !s.is_empty() => atom::intern(s),
        _ => number(n),
    };
    let (kind, code) = match (origin, kind) {
        // Destination unreachable, time exceeded, packet too big: the numbers of the protocols.
        (2, 3) => (atom::intern("dest_unreach"), named(UNREACHABLE, code)),
        (2, 11) => (atom::intern("time_exceeded"), number(code)),
        (3, 1) => (atom::intern("dest_unreach"), named(UNREACHABLE6, code)),
        (3, 2) => (atom::intern("pkt_toobig"), number(code)),
        (3, 3) => (atom::intern("time_exceeded"), number(code)),
        _ => (number(kind), number(code)),
    };
    let origins = [
        "none", "local", "icmp", "icmp6", "txstatus", "zerocopy", "txtime",
    ];
    let mut pairs = vec![
        (am::ERROR, error),
        (atom::intern("origin"), named(&origins, origin)),
        (am::TYPE, kind),
        (am::CODE, code),
        (am::INFO, Term::small(info.into())),
        (am::DATA, Term::small(data.into())),
    ];
    if let Some(a) = b.get(16..).filter(|a| !a.is_empty()) {
        pairs.push((atom::intern("offender"), addr::encode(cx, a)));
    }
    Some(map::from_pairs(cx, &pairs))
}

/// The parts of a message, at most [`MAX_PARTS`], and whether there are more. None if `list` is no
/// list of binaries.
pub(crate) fn parts(list: Term) -> Option<(Vec<std::borrow::Cow<'static, [u8]>>, bool)> {
    let mut it = list.list_iter();
    let mut parts = Vec::new();
    while parts.len() < MAX_PARTS {
        match it.next() {
            Some(b) => parts.push(b.as_binary()?),
            None => return it.tail().is_nil().then_some((parts, false)),
        }
    }
    // Empty binaries at the end do not count.
    for b in it.by_ref() {
        match b.as_binary() {
            Some(b) if b.is_empty() => {}
            _ => return Some((parts, true)),
        }
    }
    let more = !it.tail().is_nil();
    Some((parts, more))
}

/// Sends a vector without an address or control messages (OTP 27).
pub(crate) fn sendv_3(cx: &mut Cx, [me, iov, r]: [Term; 3]) -> BifResult {
    let msg = cx.flatmap(&[], &[]);
    sendmsg_5(cx, [me, msg, Term::small(0), r, iov])
}
pub(crate) fn sendmsg_5(cx: &mut Cx, [me, msg, flags, r, data]: [Term; 5]) -> BifResult {
    let sock = sock(me)?;
    if !r.is_ref() || !msg.is_map() {
        return Err(Fail::Badarg);
    }
    let Some(fl) = in_range(flags, int(flags))? else {
        return Ok(out_of_range(cx, flags));
    };
    let mut s = sock.lock();
    if let Err(answer) = writable(cx, &s).and_then(|()| check_writer(cx, &mut s, sock, me, r)) {
        return answer;
    }
    let to = match map::get(msg, addr_atom()) {
        None => None,
        Some(a) => match SockAddr::from_map(a) {
            None => return Ok(invalid(cx, addr_atom())),
            a => a,
        },
    };
    let Some((parts, rest)) = parts(data).filter(|(_, rest)| !rest || s.is_stream()) else {
        return Ok(invalid(cx, iov()));
    };
    let control = match map::get(msg, ctrl()) {
        None => Vec::new(),
        Some(c) => match control_bytes(c, s.send_control_bytes) {
            None => return Ok(invalid(cx, ctrl())),
            Some(b) => b,
        },
    };
    let size = parts.iter().map(|p| p.len()).sum();
    cx.bump(parts.len() / 16 + 1);
    s.counters.write_tries += 1;
    let vec: Vec<libc::iovec> = parts.iter().map(|p| sys::iovec(p)).collect();
    let n = sys::send_msg(s.fd, &vec, to.as_ref(), &control, fl);
    let count = vec.len() as u64;
    io::sent(cx, &mut s, sock, [me, r], (size, count), rest, n)
}

/// The sender, control messages and flags that come with the data of a message.
struct Came {
    from: SockAddr,
    control: Vec<u8>,
    flags: i32,
}

/// Receives a message.
///
/// # Safety
/// `to` is valid for writes of `room` bytes.
unsafe fn recv_msg(
    fd: i32,
    to: *mut u8,
    room: usize,
    control_room: usize,
    flags: i32,
) -> Result<(usize, Came), i32> {
    let control_room = control_room.min(MOST_CONTROL_BYTES);
    let mut control = vec![0u64; control_room.div_ceil(8)];
    // SAFETY: the words as bytes, as many as requested.
    let room_for =
        unsafe { std::slice::from_raw_parts_mut(control.as_mut_ptr().cast(), control_room) };
    // SAFETY: the caller vouches for the bytes.
    let (n, came) = unsafe { sys::recv_msg(fd, to, room, room_for, flags) }?;
    let control: Vec<u8> = control
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .take(came.control)
        .collect();
    let came = Came {
        from: came.from,
        control,
        flags: came.flags,
    };
    Ok((n, came))
}

pub(crate) fn recvmsg_5(cx: &mut Cx, [me, len, control, flags, r]: [Term; 5]) -> BifResult {
    let sock = sock(me)?;
    need_receive_ref(r)?;
    if !(len.is_integer() && control.is_integer() && flags.is_integer()) {
        return Err(Fail::Badarg);
    }
    let Some(wanted) = size_of_term(len) else {
        return Ok(out_of_range(cx, len));
    };
    let Some(control_wanted) = size_of_term(control) else {
        return Ok(out_of_range(cx, control));
    };
    let Some(flags) = in_range(flags, int(flags))? else {
        return Ok(out_of_range(cx, flags));
    };
    let mut s = sock.lock();
    if let Err(answer) = check_reader(cx, &mut s, sock, me, r) {
        return answer;
    }
    let or = |n: usize, default: usize| if n != 0 { n } else { default };
    let room = or(wanted, s.receive_bytes);
    let control_room = or(control_wanted, s.receive_control_bytes);
    s.counters.read_tries += 1;
    let fd = s.fd;
    let got = receive(cx, room, |p, room| {
        // SAFETY: room for that many bytes.
        unsafe { recv_msg(fd, p, room, control_room, flags) }
    });
    match got {
        Err(e) => io::receive_failed(cx, &mut s, sock, [me, r], e),
        Ok((n, data, came)) => received_message(cx, &mut s, sock, n, |cx| {
            message_term(cx, data, came.from, &came.control, came.flags)
        }),
    }
}

/// A received message as a map.
pub(crate) fn message_term(
    cx: &mut Cx,
    data: Term,
    from: SockAddr,
    control: &[u8],
    flags: i32,
) -> Term {
    let data = cx.list(&[data]);
    let control = control_term(cx, control);
    let flags = flags_term(cx, FLAGS, flags);
    let mut pairs = vec![(iov(), data), (ctrl(), control), (flags_atom(), flags)];
    if from.size() != 0 {
        pairs.push((addr_atom(), from.to_map(cx)));
    }
    map::from_pairs(cx, &pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_go_there_and_back() {
        let cx = &mut *Cx::boxed(0);
        let message = |cx: &mut Cx, name: &str, value: Term| {
            let pairs = [
                (level_atom(), Term::small(libc::IPPROTO_IP.into())),
                (am::TYPE, atom::intern(name)),
                (am::VALUE, value),
            ];
            map::from_pairs(cx, &pairs)
        };
        let lowdelay = tos_term(cx, libc::IPTOS_LOWDELAY.into());
        let tos = message(cx, "tos", lowdelay);
        let ttl = message(cx, "ttl", Term::small(9));
        let list = cx.list(&[tos, ttl]);
        let bytes = control_bytes(list, 1024).expect("control messages");
        let back = control_term(cx, &bytes).list_to_vec().expect("a list");
        for (given, told) in [tos, ttl].into_iter().zip(back) {
            for key in [level_atom(), am::TYPE, am::VALUE] {
                assert_eq!(map::get(given, key), map::get(told, key));
            }
        }
        assert!(control_bytes(list, bytes.len() - 1).is_none());
        // A length beyond the end of the buffer.
        let cut = control_term(cx, &bytes[..bytes.len() - 8]);
        assert_eq!(cut.list_to_vec().expect("a list")[1], bad_data());
        let foreign = message(cx, "none", Term::small(1));
        let list = cx.list(&[foreign]);
        assert!(control_bytes(list, 1024).is_none());
    }
}
