//! Addresses and associations of SCTP (OTP 29), by options of the kernel.

use super::addr::{self, SockAddr};
use super::base::*;
use super::state::{self, BOUND, CONNECTED, Sock, sock};
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::os::sock as sys;
use crate::os::sockaddr::split_family;
use purlin_term::{Alloc, Term, am};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

lazy_atoms! {
    action_atom = "action";
    add = "add";
    remove = "remove";
}

/// Numbers of the kernel's options behind `sctp_bindx`, `sctp_peeloff`, `sctp_getpaddrs` and
/// `sctp_getladdrs`.
const ADD_ADDRESS: i32 = 100;
const REMOVE_ADDRESS: i32 = 101;
const PEEL_OFF: i32 = 102;
const PEER_ADDRESSES: i32 = 108;
const LOCAL_ADDRESSES: i32 = 109;

/// Bytes of room for the addresses of an association.
const ADDRESSES_ROOM: usize = 64 << 10;

pub(crate) fn bind_3(cx: &mut Cx, [me, list, action]: [Term; 3]) -> BifResult {
    let sock = sock(me)?;
    if !list.is_list() {
        return Err(Fail::Badarg);
    }
    let mut s = sock.lock();
    let address = |t: Term| {
        let a = SockAddr::from_map(t)?;
        let fits = match a.domain() {
            libc::AF_INET => s.domain == libc::AF_INET || s.domain == libc::AF_INET6,
            libc::AF_INET6 => s.domain == libc::AF_INET6,
            _ => false,
        };
        fits.then_some(a)
    };
    let addresses: Option<Vec<SockAddr>> = list
        .list_to_vec()
        .and_then(|list| list.into_iter().map(address).collect());
    let Some(addresses) = addresses.filter(|list| !list.is_empty()) else {
        return Ok(invalid(cx, sockaddr()));
    };
    let option = match action {
        _ if action == add() => ADD_ADDRESS,
        _ if action == remove() => REMOVE_ADDRESS,
        _ => return Ok(invalid(cx, action_atom())),
    };
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    for a in &addresses {
        if let Err(e) = sys::set_option(s.fd, libc::IPPROTO_SCTP, option, a.as_bytes()) {
            return Ok(errno(cx, e));
        }
    }
    s.read_state |= BOUND;
    Ok(am::OK)
}

/// The number of an association. An error holds the result for the caller.
fn association(cx: &mut Cx, t: Term) -> Result<i32, BifResult> {
    match in_range(t, int(t)) {
        Err(fail) => Err(Err(fail)),
        Ok(None) => Err(Ok(out_of_range(cx, t))),
        Ok(Some(id)) => Ok(id),
    }
}

pub(crate) fn peeloff_2(cx: &mut Cx, [me, id]: [Term; 2]) -> BifResult {
    let sock = sock(me)?;
    let s = sock.lock();
    if s.protocol != libc::IPPROTO_SCTP {
        return Err(Fail::Badarg);
    }
    let id = match association(cx, id) {
        Ok(id) => id,
        Err(answer) => return answer,
    };
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    // The association, and a descriptor that the call fills in.
    let mut asked = [id.to_ne_bytes(), 0i32.to_ne_bytes()].concat();
    if let Err(e) = sys::get_option(s.fd, libc::IPPROTO_SCTP, PEEL_OFF, &mut asked) {
        return Ok(errno(cx, e));
    }
    let fd = i32::from_ne_bytes([asked[4], asked[5], asked[6], asked[7]]);
    // SAFETY: the kernel has made it for this call.
    let peeled = unsafe { OwnedFd::from_raw_fd(fd) };
    // The duplicate is closed in programs that are started.
    let fd = match sys::dup(peeled.as_raw_fd()) {
        Ok(fd) => fd.into_raw_fd(),
        Err(e) => return Ok(errno(cx, e)),
    };
    let _ = sys::set_blocking(fd, false);
    let new = Sock::new(fd, s.domain, libc::SOCK_STREAM, s.protocol);
    new.inherit(&s);
    drop(s);
    {
        let mut s = new.lock();
        s.read_state |= CONNECTED;
        s.write_state |= CONNECTED;
    }
    let r = state::publish(cx, new);
    Ok(cx.ok(r))
}

/// The addresses of an association that an option returns.
fn names(cx: &mut Cx, me: Term, id: Term, option: i32) -> BifResult {
    let sock = sock(me)?;
    let id = match association(cx, id) {
        Ok(id) => id,
        Err(answer) => return answer,
    };
    // The association, the number of addresses, and the addresses.
    let mut answer = vec![0u8; 2 * size_of::<i32>() + ADDRESSES_ROOM];
    answer[..size_of::<i32>()].copy_from_slice(&id.to_ne_bytes());
    let got = sys::get_option(sock.lock().fd, libc::IPPROTO_SCTP, option, &mut answer);
    let len = match got {
        Ok(len) => len,
        Err(e) => return Ok(errno(cx, e)),
    };
    let count = u32::from_ne_bytes([answer[4], answer[5], answer[6], answer[7]]);
    let mut rest = answer.get(2 * size_of::<i32>()..len).unwrap_or_default();
    let mut list = Vec::new();
    for _ in 0..count {
        let size = match split_family(rest).map(|s| s.0) {
            Some(libc::AF_INET) => size_of::<libc::sockaddr_in>(),
            Some(libc::AF_INET6) => size_of::<libc::sockaddr_in6>(),
            _ => break,
        };
        let Some((one, more)) = rest.split_at_checked(size) else {
            break;
        };
        list.push(addr::encode(cx, one));
        rest = more;
    }
    let list = cx.list(&list);
    Ok(cx.ok(list))
}

pub(crate) fn socknames_2(cx: &mut Cx, [me, id]: [Term; 2]) -> BifResult {
    names(cx, me, id, LOCAL_ADDRESSES)
}
pub(crate) fn peernames_2(cx: &mut Cx, [me, id]: [Term; 2]) -> BifResult {
    names(cx, me, id, PEER_ADDRESSES)
}
