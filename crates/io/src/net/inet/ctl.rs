//! Requests that all sockets understand.

use super::addr::{self, Addr};
use super::sock::{Sock, state};
use super::{Answer, Args, BAD_PORT, EINVAL, interfaces, req};
use crate::os::{sock as sys, unit};
use crate::port::Base;
use purlin_kernel::os::replay_log::{self, Asked, Verb};
use purlin_kernel::os::world;
use std::ffi::{CStr, CString};
use std::ptr;

/// Numbers of statistics.
mod stat {
    pub(crate) const RECV_CNT: u8 = 1;
    pub(crate) const RECV_MAX: u8 = 2;
    pub(crate) const RECV_AVG: u8 = 3;
    pub(crate) const RECV_DVI: u8 = 4;
    pub(crate) const SEND_CNT: u8 = 5;
    pub(crate) const SEND_MAX: u8 = 6;
    pub(crate) const SEND_AVG: u8 = 7;
    pub(crate) const SEND_PEND: u8 = 8;
    pub(crate) const RECV_OCT: u8 = 9;
    pub(crate) const SEND_OCT: u8 = 10;
}

/// The only event to subscribe to.
const SUBS_EMPTY_OUT_Q: u8 = 1;

/// Executes a request; `queued` bytes wait to be sent.
pub fn control(s: &mut Sock, base: &Base, op: u32, data: &[u8], queued: usize) -> Answer {
    let mut args = Args(data);
    match op {
        req::GETSTAT => statistics(s, data, queued),
        req::SUBSCRIBE => subscribe(s, base, data, queued),
        req::GETSTATUS => Ok(s.state.to_be_bytes().to_vec()),
        req::GETTYPE => socket_type(s),
        req::GETFD if !s.is_open() => Err(EINVAL),
        req::GETFD => Ok(s.fd()?.to_be_bytes().to_vec()),
        req::GETHOSTNAME if !data.is_empty() => Err(EINVAL),
        req::GETHOSTNAME => host_name(),
        req::PEER => {
            if s.state & state::ACTIVE == 0 {
                return Err(libc::ENOTCONN.into());
            }
            let a = match s.fake_peer.as_deref() {
                Some(a) => *a,
                None => sys::peer_name(s.fd()?)?,
            };
            a.inet_code().ok_or(EINVAL)
        }
        req::NAME => {
            let a = match s.fake_name.as_deref() {
                Some(a) => *a,
                None => sys::sock_name(s.fd().map_err(|_| libc::EBADF)?)?,
            };
            a.inet_code().ok_or(EINVAL)
        }
        req::SETPEER => set_fake(s.domain, data).map(|a| {
            s.fake_peer = a.map(Box::new);
            Vec::new()
        }),
        req::SETNAME => set_fake(s.domain, data).map(|a| {
            s.fake_name = a.map(Box::new);
            Vec::new()
        }),
        req::GETPADDRS | req::GETLADDRS => {
            if data.len() != 4 {
                return Err(EINVAL);
            }
            if !s.is_open() {
                return Err(BAD_PORT);
            }
            let fd = s.fd()?;
            let a = if op == req::GETPADDRS {
                sys::peer_name(fd)
            } else {
                sys::sock_name(fd)
            };
            Ok(a?.inet_code().unwrap_or_default())
        }
        req::BIND => bind(s, data),
        req::IGNOREFD => {
            if !s.is_connected() {
                return Err(libc::ENOTCONN.into());
            }
            let on = match args.u8()? {
                0 => false,
                1 => true,
                _ => return Err(EINVAL),
            };
            if !s.is_stream() || on == s.is_suspended() {
                return Err(EINVAL);
            }
            s.suspend(base, on);
            Ok(Vec::new())
        }
        req::GETSERVBYNAME => {
            let n = args.u8()? as usize;
            let name = args.take(n)?;
            let n = args.u8()? as usize;
            let protocol = args.take(n)?;
            service_by_name(name, Some(protocol))
        }
        req::GETSERVBYPORT => {
            let port = args.u16()?;
            let n = args.u8()? as usize;
            service_by_port(port, Some(args.take(n)?))
        }
        req::GETIFADDRS | req::GETIFLIST | req::IFGET | req::IFSET if !s.is_open() => Err(BAD_PORT),
        req::GETIFADDRS => interfaces::all(),
        req::GETIFLIST => interfaces::names(),
        req::IFGET => interfaces::get(s.fd()?, args),
        req::IFSET => interfaces::set(s.fd()?, args),
        _ => Err(BAD_PORT),
    }
}

/// The codes of the socket's domain and type.
fn socket_type(s: &Sock) -> Answer {
    let domain = match s.domain {
        libc::AF_INET => addr::family::INET,
        libc::AF_INET6 => addr::family::INET6,
        libc::AF_UNIX => addr::family::LOCAL,
        _ => return Err(EINVAL),
    };
    let kind = match s.kind {
        libc::SOCK_STREAM => 1u32,
        libc::SOCK_DGRAM => 2,
        _ => return Err(EINVAL),
    };
    Ok([(domain as u32).to_be_bytes(), kind.to_be_bytes()].concat())
}

/// Binds the socket, and returns its port.
fn bind(s: &Sock, data: &[u8]) -> Answer {
    if data.len() < 2 {
        return Err(EINVAL);
    }
    if s.state != state::OPEN {
        return Err(BAD_PORT);
    }
    let a = Addr::parse(s.domain, &mut &data[..])?;
    let fd = s.fd()?;
    sys::bind(fd, &a)?;
    let port = match a.port() {
        Some(0) => sys::sock_name(fd).ok().and_then(|a| a.port()).unwrap_or(0),
        Some(p) => p,
        None => 0,
    };
    Ok(port.to_be_bytes().to_vec())
}

fn set_fake(domain: i32, data: &[u8]) -> Result<Option<Addr>, super::Error> {
    match data.len() {
        0 => Ok(None),
        1 => Err(EINVAL),
        _ => Ok(Some(Addr::parse(domain, &mut &data[..])?)),
    }
}

fn statistics(s: &Sock, wanted: &[u8], queued: usize) -> Answer {
    let mut out = Vec::new();
    for &w in wanted {
        out.push(w);
        let v = match w {
            stat::RECV_CNT => s.received.count,
            stat::RECV_MAX => s.received.max,
            stat::RECV_AVG => s.received.average as u32,
            stat::RECV_DVI => s.received.deviation.abs() as u32,
            stat::SEND_CNT => s.sent.count,
            stat::SEND_MAX => s.sent.max,
            stat::SEND_AVG => s.sent.average as u32,
            stat::SEND_PEND => queued as u32,
            stat::RECV_OCT => {
                out.extend_from_slice(&s.received.bytes.to_be_bytes());
                continue;
            }
            stat::SEND_OCT => {
                out.extend_from_slice(&s.sent.bytes.to_be_bytes());
                continue;
            }
            _ => return Err(EINVAL),
        };
        out.extend_from_slice(&v.to_be_bytes());
    }
    Ok(out)
}

fn subscribe(s: &mut Sock, base: &Base, wanted: &[u8], queued: usize) -> Answer {
    let mut out = Vec::new();
    for &w in wanted {
        if w != SUBS_EMPTY_OUT_Q {
            return Err(EINVAL);
        }
        if queued > 0 {
            s.subscribers.add(base);
        }
        out.push(w);
        out.extend_from_slice(&(queued as u32).to_be_bytes());
    }
    Ok(out)
}

fn host_name() -> Answer {
    if world::is_on() {
        return Ok(world::HOST.as_bytes().to_vec());
    }
    let name = replay_log::call(
        Verb::Host,
        None,
        || Asked::text("name"),
        || {
            let mut b = [0u8; 256];
            // SAFETY: the array has that many bytes.
            unit(unsafe { libc::gethostname(b.as_mut_ptr().cast(), b.len()) })?;
            let n = b.iter().position(|&c| c == 0).unwrap_or(b.len());
            Ok(b[..n].to_vec())
        },
    )?;
    Ok(name)
}

/// Calls one of the reentrant look-ups of services with enough room.
fn service<R>(
    look: impl Fn(*mut libc::servent, &mut [libc::c_char], *mut *mut libc::servent) -> i32,
    of: impl FnOnce(&libc::servent) -> R,
) -> Result<R, super::Error> {
    let mut room = vec![0; 1024];
    loop {
        let mut entry = std::mem::MaybeUninit::<libc::servent>::uninit();
        let mut found = std::ptr::null_mut();
        match look(entry.as_mut_ptr(), &mut room, &mut found) {
            libc::ERANGE if room.len() < 1 << 20 => room.resize(room.len() * 2, 0),
            0 if !found.is_null() => {
                // SAFETY: it points at the entry, which the call has filled; its strings lie in the
                // room.
                return Ok(of(unsafe { &*found }));
            }
            _ => return Err(EINVAL),
        }
    }
}

unsafe extern "C" {
    fn getservbyname_r(
        name: *const libc::c_char,
        protocol: *const libc::c_char,
        entry: *mut libc::servent,
        room: *mut libc::c_char,
        room_len: usize,
        found: *mut *mut libc::servent,
    ) -> i32;
    fn getservbyport_r(
        port: i32,
        protocol: *const libc::c_char,
        entry: *mut libc::servent,
        room: *mut libc::c_char,
        room_len: usize,
        found: *mut *mut libc::servent,
    ) -> i32;
}

/// The port number of a service as two bytes, by its name and protocol (None: any).
pub(crate) fn service_by_name(name: &[u8], protocol: Option<&[u8]>) -> Answer {
    let c = |b: &[u8]| CString::new(b).map_err(|_| EINVAL);
    let (name, protocol) = (c(name)?, protocol.map(c).transpose()?);
    let protocol = protocol.as_ref().map_or(ptr::null(), |p| p.as_ptr());
    service(
        // SAFETY: terminated strings, and room of the length given.
        |e, room, found| unsafe {
            getservbyname_r(
                name.as_ptr(),
                protocol,
                e,
                room.as_mut_ptr(),
                room.len(),
                found,
            )
        },
        |e| u16::from_be(e.s_port as u16).to_be_bytes().to_vec(),
    )
}

/// The name of a service by its port number and protocol (None: any).
pub(crate) fn service_by_port(port: u16, protocol: Option<&[u8]>) -> Answer {
    let protocol = protocol.map(CString::new).transpose().map_err(|_| EINVAL)?;
    let protocol = protocol.as_ref().map_or(ptr::null(), |p| p.as_ptr());
    service(
        // SAFETY: terminated strings, and room of the length given.
        |e, room, found| unsafe {
            getservbyport_r(
                port.to_be() as i32,
                protocol,
                e,
                room.as_mut_ptr(),
                room.len(),
                found,
            )
        },
        // SAFETY: a terminated string in the room.
        |e| unsafe { CStr::from_ptr(e.s_name) }.to_bytes().to_vec(),
    )
}
