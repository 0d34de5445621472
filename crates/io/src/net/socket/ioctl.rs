//! Reads and changes properties of interfaces.

use super::addr::addr;
use super::addr::{SockAddr, hardware};
use super::base::*;
use super::message;
use super::state::sock;
use crate::cx::{BifResult, Cx, Fail};
use crate::lazy_atoms;
use crate::os::interfaces::{self, question};
use crate::os::kernel_numbers::{self as numbers, or_zero};
use crate::os::unit;
use purlin_term::release::{self, MORE_OF_SOCKETS};
use purlin_term::{Alloc, NIL, Term, am, arith, atom, map};
use std::mem::size_of;

lazy_atoms! {
    name_atom = "name";
}

/// Requests, by the kernel's numbers, if the system has them.
const REQUESTS: &[(&str, Option<u64>)] = &[
    ("gifname", numbers::SIOCGIFNAME),
    ("gifindex", numbers::SIOCGIFINDEX),
    ("gifflags", Some(libc::SIOCGIFFLAGS as u64)),
    ("gifaddr", Some(libc::SIOCGIFADDR as u64)),
    ("gifdstaddr", Some(libc::SIOCGIFDSTADDR as u64)),
    ("gifbrdaddr", Some(libc::SIOCGIFBRDADDR as u64)),
    ("gifnetmask", Some(libc::SIOCGIFNETMASK as u64)),
    ("gifmtu", Some(libc::SIOCGIFMTU as u64)),
    ("gifhwaddr", numbers::SIOCGIFHWADDR),
    ("gifmap", numbers::SIOCGIFMAP),
    ("giftxqlen", numbers::SIOCGIFTXQLEN),
    ("gifconf", Some(libc::SIOCGIFCONF as u64)),
    ("sifflags", Some(libc::SIOCSIFFLAGS as u64)),
    ("sifaddr", Some(libc::SIOCSIFADDR as u64)),
    ("sifdstaddr", Some(libc::SIOCSIFDSTADDR as u64)),
    ("sifbrdaddr", Some(libc::SIOCSIFBRDADDR as u64)),
    ("sifmtu", Some(libc::SIOCSIFMTU as u64)),
    ("siftxqlen", numbers::SIOCSIFTXQLEN),
];

/// The requests that the system has.
pub(crate) fn requests() -> impl Iterator<Item = (&'static str, i64)> {
    REQUESTS.iter().filter_map(|r| Some((r.0, r.1? as i64)))
}

/// Requests about received data: whether the next byte is urgent, and the number of bytes.
pub(crate) const COUNTS: &[(&str, i64)] = &[
    ("atmark", numbers::SIOCATMARK as i64),
    ("nread", libc::FIONREAD as i64),
];

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
    ("master", or_zero(numbers::IFF_MASTER)),
    ("oactive", or_zero(numbers::IFF_OACTIVE)),
    ("slave", or_zero(numbers::IFF_SLAVE)),
    ("simplex", or_zero(numbers::IFF_SIMPLEX)),
    ("multicast", libc::IFF_MULTICAST),
    ("link0", or_zero(numbers::IFF_LINK0)),
    ("link1", or_zero(numbers::IFF_LINK1)),
    ("link2", or_zero(numbers::IFF_LINK2)),
    ("portsel", or_zero(numbers::IFF_PORTSEL)),
    ("automedia", or_zero(numbers::IFF_AUTOMEDIA)),
    ("dynamic", or_zero(numbers::IFF_DYNAMIC)),
    ("cantconfig", 0),
    ("lower_up", or_zero(numbers::IFF_LOWER_UP)),
    ("ppromisc", 0),
    ("dormant", or_zero(numbers::IFF_DORMANT)),
    ("monitor", 0),
    ("echo", or_zero(numbers::IFF_ECHO)),
    ("staticarp", 0),
    ("dying", 0),
    ("renaming", 0),
    ("nogroup", 0),
];

/// Further names in later releases.
pub(crate) const LATER_FLAGS: &[(&str, i32)] = &[("dhcprunning", 0), ("private", 0)];

fn ask(fd: i32, request: u64, q: &mut libc::ifreq) -> Result<(), i32> {
    // SAFETY: the structure that these requests take.
    unit(unsafe { libc::ioctl(fd, request as _, q as *mut libc::ifreq) })
}

fn supported(request: u64, name: &str) -> bool {
    REQUESTS
        .iter()
        .any(|r| r.1 == Some(request) && r.0.starts_with(name))
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
    let all = match interfaces::configured(s.fd) {
        Ok(all) => all,
        Err(e) => return Ok(errno(cx, e)),
    };
    let mut l = Vec::new();
    for (name, a) in all {
        let pairs = [
            (name_atom(), cx.byte_list(&name, NIL)),
            (addr(), a.to_map(cx)),
        ];
        l.push(map::from_pairs(cx, &pairs));
    }
    let l = cx.list(&l);
    Ok(cx.ok(l))
}

/// `nif_ioctl(Socket, Request, Argument)`: reads a property of an interface.
pub(crate) fn ioctl_3(cx: &mut Cx, [me, request, arg]: [Term; 3]) -> BifResult {
    let s = sock(me)?.lock();
    let request = request_number(request)?;
    if !s.is_open() {
        return Ok(error_closed(cx));
    }
    if numbers::SIOCGIFNAME == Some(request) {
        let mut q = question(b"");
        if !interfaces::set_index(&mut q, int(arg).ok_or(Fail::Badarg)?) {
            return not_supported(cx);
        }
        return Ok(match ask(s.fd, request, &mut q) {
            Ok(()) => {
                let n = cx.byte_list(&interfaces::name(&q), NIL);
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
    let name = REQUESTS.iter().find(|r| r.1 == Some(request));
    let v = match name.map_or("", |r| r.0) {
        // The queue length is in the field of other numbers.
        "gifindex" | "giftxqlen" => interfaces::index(&q).map(number),
        // SAFETY: the part of the reply that the request is about.
        "gifmtu" => Some(number(unsafe { q.ifr_ifru.ifru_mtu })),
        "gifflags" => {
            // SAFETY: the part of the reply that the request is about.
            let flags = unsafe { q.ifr_ifru.ifru_flags };
            Some(message::flags_term(cx, FLAGS, flags.into()))
        }
        "gifhwaddr" => interfaces::hardware(&q).map(|(family, rest)| hardware(cx, family, &rest)),
        "gifmap" => interfaces::resources(&q).map(|r| {
            let pairs = [
                (atom::intern("mem_start"), cx.uint(r[0])),
                (atom::intern("mem_end"), cx.uint(r[1])),
                (atom::intern("base_addr"), cx.uint(r[2])),
                (atom::intern("irq"), cx.uint(r[3])),
                (atom::intern("dma"), cx.uint(r[4])),
                (am::PORT, cx.uint(r[5])),
            ];
            map::from_pairs(cx, &pairs)
        }),
        _ => Some(interfaces::address(&q).to_map(cx)),
    };
    let Some(v) = v else {
        return not_supported(cx);
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
    } else if request == libc::SIOCSIFMTU || numbers::SIOCSIFTXQLEN == Some(request) {
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
