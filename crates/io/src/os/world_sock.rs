//! The calls of `sock.rs` and `descriptor.rs` on sockets and pipes of a simulated world
//! ([`purlin_kernel::os::world`]).
//!
//! # Invariant
//! No call reaches the system. One that the world does not model fails with `EOPNOTSUPP`, and the
//! coordinator learns its name.

use super::sockaddr::SockAddr;
use purlin_kernel::os::world::messages::{Call, Thing, number, read_address};
use purlin_kernel::os::world::{FAILED, HUP, IN, OUT};
use purlin_kernel::os::world::{ask, keep_option, kept_option, left, placeholder, refused};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// The first thing that an answer names.
fn first(answer: &[u8]) -> Result<Thing, i32> {
    number(answer, 0).ok_or(libc::EPROTO)
}

/// Returns the address that the world knows.
fn to_world(a: &SockAddr) -> Result<SocketAddr, i32> {
    Ok(match a.domain() {
        libc::AF_INET => {
            let a = a.inet();
            let ip = std::net::Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr));
            SocketAddr::new(ip.into(), u16::from_be(a.sin_port))
        }
        libc::AF_INET6 => {
            let a = a.inet6();
            let ip = std::net::Ipv6Addr::from(a.sin6_addr.s6_addr);
            SocketAddr::new(ip.into(), u16::from_be(a.sin6_port))
        }
        family => return refused(format!("an address of family {family}")),
    })
}

/// Returns an address of the world as the system has it.
fn of_world(a: SocketAddr) -> Result<SockAddr, i32> {
    let mut rest = a.port().to_be_bytes().to_vec();
    let family = match a.ip() {
        IpAddr::V4(ip) => {
            rest.extend(ip.octets());
            rest.extend([0; 8]);
            libc::AF_INET
        }
        IpAddr::V6(ip) => {
            rest.extend([0; 4]);
            rest.extend(ip.octets());
            rest.extend([0; 4]);
            libc::AF_INET6
        }
    };
    SockAddr::new(family, &rest).ok_or(libc::EPROTO)
}

/// Numbers of Linux, which the world models.
mod linux {
    pub const SOCK_FLAGS: i32 = 0o4000 | 0o2000000;
    pub const SO_PROTOCOL: i32 = 38;
    pub const SO_DOMAIN: i32 = 39;
    pub const MSG_CMSG_CLOEXEC: i32 = 0x4000_0000;
}

pub(super) fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, i32> {
    let kind = kind & !linux::SOCK_FLAGS;
    let is_ip = domain == libc::AF_INET || domain == libc::AF_INET6;
    let datagrams = kind == libc::SOCK_DGRAM;
    let known = match kind {
        libc::SOCK_STREAM => [0, libc::IPPROTO_TCP].contains(&protocol),
        libc::SOCK_DGRAM => [0, libc::IPPROTO_UDP].contains(&protocol),
        _ => false,
    };
    if !is_ip || !known {
        left(format!(
            "a socket that is none of TCP or UDP (family {domain}, type {kind}, protocol {protocol})"
        ));
        return Err(libc::EAFNOSUPPORT);
    }
    let v6 = domain == libc::AF_INET6;
    let of = first(&ask(Call::Socket { v6, datagrams })?)?;
    let protocol = match datagrams {
        true => libc::IPPROTO_UDP,
        false => libc::IPPROTO_TCP,
    };
    for (name, value) in [
        (linux::SO_DOMAIN, domain),
        (libc::SO_TYPE, kind),
        (linux::SO_PROTOCOL, protocol),
    ] {
        keep_option(of, libc::SOL_SOCKET, name, &value.to_ne_bytes());
    }
    placeholder(of)
}

pub(super) fn bind(of: Thing, a: &SockAddr) -> Result<(), i32> {
    let to = to_world(a)?;
    ask(Call::Bind { of, to }).map(drop)
}

pub(super) fn connect(of: Thing, a: &SockAddr) -> Result<(), i32> {
    let to = to_world(a)?;
    ask(Call::Connect { of, to }).map(drop)
}

pub(super) fn listen(of: Thing, backlog: i32) -> Result<(), i32> {
    let backlog = u64::try_from(backlog).unwrap_or(0);
    ask(Call::Listen { of, backlog }).map(drop)
}

pub(super) fn accept(of: Thing) -> Result<(OwnedFd, SockAddr), i32> {
    let answer = ask(Call::Accept { of })?;
    let new = first(&answer)?;
    let from = read_address(&answer[8..]).ok_or(libc::EPROTO)?;
    let domain = if from.is_ipv4() {
        libc::AF_INET
    } else {
        libc::AF_INET6
    };
    for (name, value) in [
        (linux::SO_DOMAIN, domain),
        (libc::SO_TYPE, libc::SOCK_STREAM),
        (linux::SO_PROTOCOL, libc::IPPROTO_TCP),
    ] {
        keep_option(new, libc::SOL_SOCKET, name, &value.to_ne_bytes());
    }
    Ok((placeholder(new)?, of_world(from)?))
}

pub(super) fn shutdown(of: Thing, how: i32) -> Result<(), i32> {
    let how = match how {
        libc::SHUT_RD => 0,
        libc::SHUT_WR => 1,
        _ => 2,
    };
    ask(Call::Shutdown { of, how }).map(drop)
}

pub(super) fn sock_name(of: Thing) -> Result<SockAddr, i32> {
    let answer = ask(Call::Name { of })?;
    of_world(read_address(&answer).ok_or(libc::EPROTO)?)
}

pub(super) fn peer_name(of: Thing) -> Result<SockAddr, i32> {
    let answer = ask(Call::PeerName { of })?;
    of_world(read_address(&answer).ok_or(libc::EPROTO)?)
}

/// Receives at most `room` bytes.
pub(super) fn recv(of: Thing, room: usize, flags: i32) -> Result<Vec<u8>, i32> {
    if flags & !(libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | linux::MSG_CMSG_CLOEXEC) != 0 {
        return refused(format!("receiving with the flags {flags:#x}"));
    }
    let room = room as u64;
    ask(Call::Recv { of, room })
}

/// Whether a socket is one of datagrams.
fn is_of_datagrams(of: Thing) -> bool {
    let kind = kept_option(of, libc::SOL_SOCKET, libc::SO_TYPE);
    kind.is_some_and(|k| k == libc::SOCK_DGRAM.to_ne_bytes())
}

/// Receives at most `room` bytes, with the sender of a datagram.
pub(super) fn recv_from(
    of: Thing,
    room: usize,
    flags: i32,
) -> Result<(Vec<u8>, Option<SockAddr>), i32> {
    if !is_of_datagrams(of) {
        return Ok((recv(of, room, flags)?, None));
    }
    if flags & libc::MSG_PEEK != 0 {
        return refused("looking at a datagram that stays");
    }
    let room = room as u64;
    let answer = ask(Call::RecvFrom { of, room })?;
    let n = first(&answer)? as usize;
    let (from, data) = answer[8..].split_at_checked(n).ok_or(libc::EPROTO)?;
    let from = read_address(from).ok_or(libc::EPROTO)?;
    Ok((data.to_vec(), Some(of_world(from)?)))
}

/// Receives at most `room` bytes to `to`, with the sender of a datagram.
///
/// # Safety
/// `to` is valid for writes of `room` bytes.
pub(super) unsafe fn recv_to(
    of: Thing,
    to: *mut u8,
    room: usize,
    flags: i32,
) -> Result<(usize, Option<SockAddr>), i32> {
    let (data, from) = recv_from(of, room, flags)?;
    let n = data.len().min(room);
    // SAFETY: by the contract of this function.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, n) };
    Ok((n, from))
}

/// Sends what of the parts there is room for.
pub(super) fn send<'a>(
    of: Thing,
    parts: impl Iterator<Item = &'a [u8]>,
    to: Option<&SockAddr>,
) -> Result<usize, i32> {
    /// More than the world's buffers take.
    const MOST_BYTES: usize = 1 << 20;
    let mut data = Vec::new();
    for part in parts {
        data.extend_from_slice(&part[..part.len().min(MOST_BYTES - data.len())]);
    }
    let to = to.filter(|_| is_of_datagrams(of));
    let sent = match to.map(to_world).transpose()? {
        Some(to) => ask(Call::SendTo { of, to, data })?,
        None => ask(Call::Send { of, data })?,
    };
    Ok(first(&sent)? as usize)
}

/// Sets an option. The world knows two; others are kept, and change nothing.
pub(super) fn set_option(of: Thing, level: i32, name: i32, value: &[u8]) -> Result<(), i32> {
    let is_on = value.iter().take(4).any(|b| *b != 0);
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_REUSEADDR) => ask(Call::Reuse { of, on: is_on })?,
        // It is switched on, and its time is 0.
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let at_once = value.iter().skip(4).all(|b| *b == 0);
            let on = is_on && at_once;
            ask(Call::Aborts { of, on })?
        }
        _ => Vec::new(),
    };
    keep_option(of, level, name, value);
    Ok(())
}

/// Bytes of the buffers that the world's sockets have.
const BUFFER: i32 = 256 << 10;

/// Reads an option.
pub(super) fn get_option(of: Thing, level: i32, name: i32, to: &mut [u8]) -> Result<usize, i32> {
    let value = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let error = first(&ask(Call::TakeError { of })?)?;
            (error as i32).to_ne_bytes().to_vec()
        }
        (libc::SOL_SOCKET, libc::SO_SNDBUF | libc::SO_RCVBUF) => BUFFER.to_ne_bytes().to_vec(),
        _ => match kept_option(of, level, name) {
            Some(kept) => kept,
            None => vec![0; to.len().min(if name == libc::SO_LINGER { 8 } else { 4 })],
        },
    };
    let n = value.len().min(to.len());
    to[..n].copy_from_slice(&value[..n]);
    Ok(n)
}

/// Whether a thing can be read (or written) without waiting.
pub(super) fn is_ready(of: Thing, write: bool) -> bool {
    let wanted = if write { OUT } else { IN } | FAILED;
    let ready = ask(Call::Ready { of }).and_then(|a| first(&a));
    ready.map_or(true, |r| r & u64::from(wanted) != 0)
}

/// Whether the other end of a pipe is closed.
pub(super) fn hung_up(of: Thing) -> bool {
    let ready = ask(Call::Ready { of }).and_then(|a| first(&a));
    ready.is_ok_and(|r| r & u64::from(HUP) != 0)
}
