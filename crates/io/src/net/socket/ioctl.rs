//! Reads and changes properties of interfaces.

use super::addr::{self, SockAddr, hardware};
use super::base::*;
use super::message;
use super::state::sock;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::os::sockaddr::bytes_of;
use crate::os::unit;
use crate::posix::last_errno;
use purlin_term::release::{self, MORE_OF_SOCKETS};
use purlin_term::{Alloc, NIL, Term, am, arith, atom, map};
use std::mem::size_of;

lazy_atoms! {
    addr_atom = "addr";
    name_atom = "name";
}

/// Requests, by the kernel's numbers.
pub(crate) const REQUESTS: &[(&str, i64)] = &[
    ("gifname", libc::SIOCGIFNAME as i64),
    ("gifindex", libc::SIOCGIFINDEX as i64),
    ("gifflags", libc::SIOCGIFFLAGS as i64),
    ("gifaddr", libc::SIOCGIFADDR as i64),
    ("gifdstaddr", libc::SIOCGIFDSTADDR as i64),
    ("gifbrdaddr", libc::SIOCGIFBRDADDR as i64),
    ("gifnetmask", libc::SIOCGIFNETMASK as i64),
    ("gifmtu", libc::SIOCGIFMTU as i64),
    ("gifhwaddr", libc::SIOCGIFHWADDR as i64),
    ("gifmap", libc::SIOCGIFMAP as i64),
    ("giftxqlen", libc::SIOCGIFTXQLEN as i64),
    ("gifconf", libc::SIOCGIFCONF as i64),
    ("sifflags", libc::SIOCSIFFLAGS as i64),
    ("sifaddr", libc::SIOCSIFADDR as i64),
    ("sifdstaddr", libc::SIOCSIFDSTADDR as i64),
    ("sifbrdaddr", libc::SIOCSIFBRDADDR as i64),
    ("sifmtu", libc::SIOCSIFMTU as i64),
    ("siftxqlen", libc::SIOCSIFTXQLEN as i64),
];

/// `SIOCATMARK` of Linux.
const AT_MARK: i64 = 0x8905;

/// Requests about received data: whether the next byte is urgent, and the number of bytes.
pub(crate) const COUNTS: &[(&str, i64)] = &[("atmark", AT_MARK), ("nread", libc::FIONREAD as i64)];

/// Flags of interfaces, in the order in which they are listed; 0 means not on this system.
pub const FLAGS: &[(&str, i32)] = &[
    ("up", libc::IFF_UP),
    ("broadcast", libc::IFF_BROADCAST),
    ("debug", libc::IFF_DEBUG),
    ("loopback", libc::IFF_LOOPBACK),
    ("pointopoint", libc::IFF_POINTOPOINT),
    ("notrailers", libc::IFF_NOTRAILERS),
    ("knowsepoch", 0),
    ("running", libc::IFF_RUNNING),
    ("noarp", libc::IFF_NOARP),
    ("promisc", libc::IFF_PROMISC),
    ("allmulti", libc::IFF_ALLMULTI),
    ("master", libc::IFF_MASTER),
    ("oactive", 0),
    ("slave", libc::IFF_SLAVE),
    ("simplex", 0),
    ("multicast", libc::IFF_MULTICAST),
    ("link0", 0),
    ("link1", 0),
    ("link2", 0),
    ("portsel", libc::IFF_PORTSEL),
    ("automedia", libc::IFF_AUTOMEDIA),
    ("dynamic", libc::IFF_DYNAMIC),
    ("cantconfig", 0),
    ("lower_up", 0x1_0000),
    ("ppromisc", 0),
    ("dormant", 0x2_0000),
    ("monitor", 0),
    ("echo", 0x4_0000),
    ("staticarp", 0),
    ("dying", 0),
    ("renaming", 0),
    ("nogroup", 0),
];

/// Further names in later releases.
pub(crate) const LATER_FLAGS: &[(&str, i32)] = &[("dhcprunning", 0), ("private", 0)];

/// A request about the interface of that name, which is cut to the available room.
fn question(name: &[u8]) -> libc::ifreq {
    // SAFETY: plain bytes, for which zeros are valid.
    let mut q: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, &c) in q.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name) {
        *to = c as libc::c_char;
    }
    q
}

fn ask(fd: i32, request: u64, q: &mut libc::ifreq) -> Result<(), i32> {
    // SAFETY: the structure that these requests take.
    unit(unsafe { libc::ioctl(fd, request as _, q as *mut libc::ifreq) })
}

fn name_term(cx: &mut Cx, q: &libc::ifreq) -> Term {
    let name: Vec<u8> = q
        .ifr_name
        .iter()
        .map(|&c| c as u8)
        .take_while(|&c| c != 0)
        .collect();
    cx.byte_list(&name, NIL)
}

/// The address in a reply.
fn address(cx: &mut Cx, q: &libc::ifreq) -> Term {
    // SAFETY: the kernel has written an address there, of a family whose addresses fit.
    let b = unsafe { bytes_of(&raw const q.ifr_ifru.ifru_addr) };
    let room = size_of::<libc::ifreq>() - libc::IFNAMSIZ;
    addr::encode(cx, &b[..b.len().min(room)])
}

fn supported(request: u64, name: &str) -> bool {
    REQUESTS
        .iter()
        .any(|r| r.1 as u64 == request && r.0.starts_with(name))
}

fn request_number(t: Term) -> Result<u64, Fail> {
    arith::to_u64(t).ok_or(Fail::Badarg)
}
fn not_supported(cx: &mut Cx) -> BifResult {
    Ok(cx.err(am::ENOTSUP))
}

/// `nif_ioctl(Socket, gifconf)`: interfaces and their addresses.
pub(crate) fn ioctl_2(cx: &mut Cx, [me, request]: [Term; 2]) -> BifResult {
    let s = sock(me)?.lock();
    let request = request_number(request)?;
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    let count = COUNTS.iter().find(|c| c.1 as u64 == request);
    if let Some(&(name, _)) = count.filter(|_| release::has(MORE_OF_SOCKETS)) {
        let mut n: libc::c_int = 0;
        // SAFETY: both requests write an integer.
        return Ok(
            match unit(unsafe { libc::ioctl(s.fd, request as _, &mut n) }) {
                Ok(()) if name == "atmark" => cx.ok(Term::bool(n != 0)),
                Ok(()) => cx.ok(Term::small(n.into())),
                Err(e) => errno(cx, e),
            },
        );
    }
    if request != libc::SIOCGIFCONF {
        return not_supported(cx);
    }
    // Repeats the request with more room until some room is left.
    let mut room = 64;
    loop {
        let mut all: Vec<libc::ifreq> = (0..room).map(|_| question(b"")).collect();
        // SAFETY: the structure that the request takes, with room for the stated number of entries.
        let got = unsafe {
            let mut c: libc::ifconf = std::mem::zeroed();
            c.ifc_len = (room * size_of::<libc::ifreq>()) as i32;
            c.ifc_ifcu.ifcu_req = all.as_mut_ptr();
            if libc::ioctl(s.fd, libc::SIOCGIFCONF as _, &mut c) < 0 {
                return Ok(errno(cx, last_errno()));
            }
            c.ifc_len as usize / size_of::<libc::ifreq>()
        };
        if got >= room {
            room *= 2;
            continue;
        }
        let mut l = Vec::new();
        for q in &all[..got] {
            let pairs = [
                (name_atom(), name_term(cx, q)),
                (addr_atom(), address(cx, q)),
            ];
            l.push(map::from_pairs(cx, &pairs));
        }
        let l = cx.list(&l);
        return Ok(cx.ok(l));
    }
}

/// `nif_ioctl(Socket, Request, Argument)`: reads a property of an interface.
pub(crate) fn ioctl_3(cx: &mut Cx, [me, request, arg]: [Term; 3]) -> BifResult {
    let s = sock(me)?.lock();
    let request = request_number(request)?;
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if request == libc::SIOCGIFNAME {
        let mut q = question(b"");
        q.ifr_ifru.ifru_ifindex = int(arg).ok_or(Fail::Badarg)?;
        return Ok(match ask(s.fd, request, &mut q) {
            Ok(()) => {
                let n = name_term(cx, &q);
                cx.ok(n)
            }
            Err(e) => errno(cx, e),
        });
    }
    if !supported(request, "gif") || request == libc::SIOCGIFCONF {
        return not_supported(cx);
    }
    let mut q = question(&latin1(arg).ok_or(Fail::Badarg)?);
    if let Err(e) = ask(s.fd, request, &mut q) {
        return Ok(errno(cx, e));
    }
    let number = |n: i32| Term::small(n.into());
    // SAFETY: the part of the reply that the request is about.
    let v = unsafe {
        match REQUESTS
            .iter()
            .find(|r| r.1 as u64 == request)
            .map_or("", |r| r.0)
        {
            "gifindex" => number(q.ifr_ifru.ifru_ifindex),
            "gifmtu" => number(q.ifr_ifru.ifru_mtu),
            // The queue length is in the field of other numbers.
            "giftxqlen" => number(q.ifr_ifru.ifru_ifindex),
            "gifflags" => message::flags_term(cx, FLAGS, q.ifr_ifru.ifru_flags.into()),
            "gifhwaddr" => {
                let a = q.ifr_ifru.ifru_hwaddr;
                let rest: Vec<u8> = a.sa_data.iter().map(|&c| c as u8).collect();
                hardware(cx, a.sa_family, &rest)
            }
            "gifmap" => {
                let m = q.ifr_ifru.ifru_map;
                let pairs = [
                    (atom::intern("mem_start"), cx.uint(m.mem_start)),
                    (atom::intern("mem_end"), cx.uint(m.mem_end)),
                    (atom::intern("base_addr"), Term::small(m.base_addr.into())),
                    (atom::intern("irq"), Term::small(m.irq.into())),
                    (atom::intern("dma"), Term::small(m.dma.into())),
                    (am::PORT, Term::small(m.port.into())),
                ];
                map::from_pairs(cx, &pairs)
            }
            _ => address(cx, &q),
        }
    };
    Ok(cx.ok(v))
}

/// `nif_ioctl(Socket, Request, Name, Value)`: changes an interface.
pub(crate) fn ioctl_4(cx: &mut Cx, [me, request, name, value]: [Term; 4]) -> BifResult {
    let s = sock(me)?.lock();
    let request = request_number(request)?;
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if !supported(request, "sif") && request != libc::SIOCSIFNETMASK {
        return not_supported(cx);
    }
    let mut q = question(&latin1(name).ok_or(Fail::Badarg)?);
    if request == libc::SIOCSIFFLAGS {
        if let Err(e) = ask(s.fd, libc::SIOCGIFFLAGS, &mut q) {
            return Ok(errno(cx, e));
        }
        if !value.is_map() {
            return Err(Fail::Badarg);
        }
        // SAFETY: the field that the request has filled.
        let mut flags = i32::from(unsafe { q.ifr_ifru.ifru_flags });
        for (flag, on) in map::iter(value) {
            let flag = int(flag).ok_or(Fail::Badarg)?;
            if on == am::TRUE {
                flags |= flag;
            } else {
                flags &= !flag;
            }
        }
        q.ifr_ifru.ifru_flags = flags as libc::c_short;
    } else if request == libc::SIOCSIFMTU || request == libc::SIOCSIFTXQLEN {
        match int(value) {
            Some(n) => q.ifr_ifru.ifru_mtu = n,
            None => {
                let what = match request == libc::SIOCSIFMTU {
                    true => "mtu",
                    false => "txqlen",
                };
                return Ok(invalid(cx, atom::intern(what)));
            }
        }
    } else {
        match SockAddr::from_map(value) {
            Some(a) if a.as_bytes().len() <= size_of::<libc::sockaddr>() => {
                // SAFETY: the union has room for an address of the ordinary size, which this one
                // does not exceed.
                unsafe {
                    let to = (&raw mut q.ifr_ifru).cast::<u8>();
                    std::ptr::copy_nonoverlapping(a.as_bytes().as_ptr(), to, a.as_bytes().len());
                }
            }
            _ => return Ok(invalid(cx, sockaddr())),
        }
    }
    let r = ask(s.fd, request, &mut q);
    done(cx, r)
}
