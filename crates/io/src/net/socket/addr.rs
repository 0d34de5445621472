//! Socket addresses as maps (`#{family := inet, port := …, addr := …}` and so on).
//!
//! An address of a family without a form of its own is `#{family := Family, addr := Binary}`.

use super::base::protocol;
use super::base::{domain_code, domain_term, family, inet, inet6, int, path_atom, uint, unspec};
use crate::lazy_atoms;
use crate::os::kernel_numbers as numbers;
pub(crate) use crate::os::sockaddr::SockAddr;
use crate::os::sockaddr::{LINK_BYTES, LINK_FAMILY, PATH_ROOM, split_family};
use purlin_term::{Alloc, Term, am, atom, map};
use std::mem::size_of;

lazy_atoms! {
    pub(crate) addr = "addr";
    any = "any";
    broadcast = "broadcast";
    flowinfo = "flowinfo";
    hatype = "hatype";
    ifindex = "ifindex";
    loopback = "loopback";
    packet = "packet";
    pkttype = "pkttype";
    scope_id = "scope_id";
}

impl SockAddr {
    /// Makes the address that a map describes. None if a key is missing or a value is invalid.
    pub fn from_map(t: Term) -> Option<SockAddr> {
        if !t.is_map() {
            return None;
        }
        let get = |k: Term| map::get(t, k);
        let port = || {
            get(am::PORT)
                .and_then(int)
                .map(|p| (p as u16).to_be_bytes())
        };
        let number = |k: Term| get(k).and_then(uint).map(u32::to_ne_bytes);
        let f = get(family())?;
        if f == inet() {
            let ip = in_addr(get(addr())?)?;
            let rest = [&port()?[..], &ip, &[0; 8]].concat();
            return SockAddr::new(libc::AF_INET, &rest);
        }
        if f == inet6() {
            let ip = in6_addr(get(addr())?)?;
            let rest = [
                &port()?[..],
                &number(flowinfo())?,
                &ip,
                &number(scope_id())?,
            ]
            .concat();
            return SockAddr::new(libc::AF_INET6, &rest);
        }
        if f == am::LOCAL {
            let path = get(path_atom())?.as_binary()?;
            // In the abstract namespace a name starts with a zero byte, and no zero ends it.
            let end = usize::from(path.first() != Some(&0));
            if path.len() + end > PATH_ROOM {
                return None;
            }
            return SockAddr::new(libc::AF_UNIX, &path);
        }
        SockAddr::new(domain_code(f)?, &get(addr())?.as_binary()?)
    }

    /// The address as a map.
    pub fn to_map<A: Alloc + ?Sized>(self, a: &mut A) -> Term {
        encode(a, self.as_bytes())
    }
}

/// The address in `b` as a map. Without a family it stays a binary.
pub fn encode<A: Alloc + ?Sized>(a: &mut A, b: &[u8]) -> Term {
    let u16_at = |at: usize| u16::from_be_bytes([b[at], b[at + 1]]);
    let u32_at = |at: usize| u32::from_ne_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
    if b.is_empty() {
        return native(a, unspec(), b"");
    }
    let Some((f, rest)) = split_family(b) else {
        return a.binary(b);
    };
    match f {
        libc::AF_INET if b.len() >= size_of::<libc::sockaddr_in>() => {
            let ip = in_addr_term(a, &b[4..8]);
            let port = Term::small(u16_at(2).into());
            map::from_pairs(a, &[(family(), inet()), (am::PORT, port), (addr(), ip)])
        }
        libc::AF_INET6 if b.len() >= size_of::<libc::sockaddr_in6>() => {
            let ip = in6_addr_term(a, &b[8..24]);
            let pairs = [
                (family(), inet6()),
                (am::PORT, Term::small(u16_at(2).into())),
                (addr(), ip),
                (flowinfo(), Term::small((u32_at(4) as i32).into())),
                (scope_id(), Term::small((u32_at(24) as i32).into())),
            ];
            map::from_pairs(a, &pairs)
        }
        libc::AF_UNIX => {
            let name = match rest.iter().position(|&c| c == 0) {
                None | Some(0) => rest,
                Some(end) => &rest[..end],
            };
            let path = a.binary(name);
            map::from_pairs(a, &[(family(), am::LOCAL), (path_atom(), path)])
        }
        LINK_FAMILY if b.len() >= LINK_BYTES => match cfg!(target_os = "linux") {
            true => packet_address(a, b),
            false => link_address(a, b),
        },
        LINK_FAMILY if cfg!(target_os = "linux") => native(a, packet(), rest),
        LINK_FAMILY => native(a, am::LINK, rest),
        _ => native(a, domain_term(f), rest),
    }
}

/// An address of Linux's kind that names an interface.
fn packet_address<A: Alloc + ?Sized>(a: &mut A, b: &[u8]) -> Term {
    let hardware = u16::from_ne_bytes([b[8], b[9]]);
    let n = (b[11] as usize).min(b.len() - 12);
    let hw = a.binary(&b[12..12 + n]);
    let index = i32::from_ne_bytes([b[4], b[5], b[6], b[7]]);
    let pairs = [
        (family(), packet()),
        (
            protocol(),
            Term::small(u16::from_be_bytes([b[2], b[3]]).into()),
        ),
        (ifindex(), Term::small(index.into())),
        (hatype(), hardware_type(hardware)),
        (pkttype(), packet_type(b[10])),
        (addr(), hw),
    ];
    map::from_pairs(a, &pairs)
}

/// An address of macOS's kind that names an interface.
fn link_address<A: Alloc + ?Sized>(a: &mut A, b: &[u8]) -> Term {
    let byte = |at: usize| Term::small(b[at].into());
    let index = Term::small(u16::from_ne_bytes([b[2], b[3]]).into());
    let data = a.binary(&b[8..]);
    let pairs = [
        (family(), am::LINK),
        (atom::intern("index"), index),
        (am::TYPE, byte(4)),
        (atom::intern("nlen"), byte(5)),
        (atom::intern("alen"), byte(6)),
        (atom::intern("slen"), byte(7)),
        (am::DATA, data),
    ];
    map::from_pairs(a, &pairs)
}

/// `#{family := Family, addr := Binary}`
pub fn native<A: Alloc + ?Sized>(a: &mut A, f: Term, rest: &[u8]) -> Term {
    let rest = a.binary(rest);
    map::from_pairs(a, &[(family(), f), (addr(), rest)])
}

/// An IPv4 address: a tuple of four bytes, `any`, `loopback` or `broadcast`.
pub(crate) fn in_addr(t: Term) -> Option<[u8; 4]> {
    match t {
        _ if t == any() => return Some([0; 4]),
        _ if t == loopback() => return Some([127, 0, 0, 1]),
        _ if t == broadcast() => return Some([255; 4]),
        _ => {}
    }
    let parts: &[Term; 4] = t.as_tuple()?.try_into().ok()?;
    let mut ip = [0; 4];
    for (to, p) in ip.iter_mut().zip(parts) {
        *to = p.as_small().and_then(|n| u8::try_from(n).ok())?;
    }
    Some(ip)
}
/// An IPv6 address: a tuple of eight parts, `any` or `loopback`.
pub(crate) fn in6_addr(t: Term) -> Option<[u8; 16]> {
    let mut ip = [0; 16];
    if t == any() {
        return Some(ip);
    }
    if t == loopback() {
        ip[15] = 1;
        return Some(ip);
    }
    let parts: &[Term; 8] = t.as_tuple()?.try_into().ok()?;
    for (to, p) in ip.chunks_exact_mut(2).zip(parts) {
        let n = p.as_small().and_then(|n| u16::try_from(n).ok())?;
        to.copy_from_slice(&n.to_be_bytes());
    }
    Some(ip)
}
/// Four bytes as a tuple.
pub(crate) fn in_addr_term<A: Alloc + ?Sized>(a: &mut A, ip: &[u8]) -> Term {
    let parts: Vec<Term> = ip.iter().map(|&b| Term::small(b.into())).collect();
    a.tuple(&parts)
}
/// Sixteen bytes as a tuple of eight.
pub(crate) fn in6_addr_term<A: Alloc + ?Sized>(a: &mut A, ip: &[u8]) -> Term {
    let parts: Vec<Term> = ip
        .chunks_exact(2)
        .map(|b| Term::small(u16::from_be_bytes([b[0], b[1]]).into()))
        .collect();
    a.tuple(&parts)
}

/// Names of hardware types, by the kernel's numbers.
const HARDWARE: &[(Option<u16>, &str)] = &[
    (numbers::ARPHRD_NETROM, "netrom"),
    (numbers::ARPHRD_ETHER, "ether"),
    (numbers::ARPHRD_EETHER, "eether"),
    (numbers::ARPHRD_AX25, "ax25"),
    (numbers::ARPHRD_PRONET, "pronet"),
    (numbers::ARPHRD_CHAOS, "chaos"),
    (numbers::ARPHRD_IEEE802, "ieee802"),
    (numbers::ARPHRD_ARCNET, "arcnet"),
    (numbers::ARPHRD_APPLETLK, "appletlk"),
    (numbers::ARPHRD_DLCI, "dlci"),
    (numbers::ARPHRD_ATM, "atm"),
    (numbers::ARPHRD_METRICOM, "metricom"),
    (numbers::ARPHRD_IEEE1394, "ieee1394"),
    (numbers::ARPHRD_EUI64, "eui64"),
    (numbers::ARPHRD_INFINIBAND, "infiniband"),
    (numbers::ARPHRD_TUNNEL, "tunnel"),
    (numbers::ARPHRD_TUNNEL6, "tunnel6"),
    (numbers::ARPHRD_LOOPBACK, "loopback"),
    (numbers::ARPHRD_LOCALTLK, "localtlk"),
    (numbers::ARPHRD_NONE, "none"),
    (numbers::ARPHRD_VOID, "void"),
];
fn hardware_type(n: u16) -> Term {
    match HARDWARE.iter().find(|h| h.0 == Some(n)) {
        Some(h) => atom::intern(h.1),
        None => Term::small(n.into()),
    }
}
/// Hardware types whose name is used as the family of a hardware address.
const HARDWARE_FAMILIES: &[&str] = &[
    "netrom", "ether", "ieee802", "dlci", "ieee1394", "loopback", "none",
];
/// A hardware address of an interface.
pub(crate) fn hardware<A: Alloc + ?Sized>(a: &mut A, family: u16, rest: &[u8]) -> Term {
    let f = match HARDWARE.iter().find(|h| h.0 == Some(family)) {
        Some(h) if HARDWARE_FAMILIES.contains(&h.1) => atom::intern(h.1),
        _ => Term::small(family.into()),
    };
    native(a, f, rest)
}

/// Names of packet types; the index is the kernel's number.
const PACKETS: &[&str] = &[
    "host",
    "broadcast",
    "multicast",
    "otherhost",
    "outgoing",
    "loopback",
    "user",
    "kernel",
];
fn packet_type(n: u8) -> Term {
    match PACKETS.get(n as usize) {
        Some(name) => atom::intern(name),
        None => Term::small(n.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cx::Cx;

    #[test]
    fn addresses_go_there_and_back() {
        let cx = &mut *Cx::boxed(0);
        let ip = in_addr_term(cx, &[10, 1, 2, 3]);
        let pairs = [
            (family(), inet()),
            (am::PORT, Term::small(8080)),
            (addr(), ip),
        ];
        let m = map::from_pairs(cx, &pairs);
        let a = SockAddr::from_map(m).expect("an address");
        assert_eq!(&a.as_bytes()[..8], &[2, 0, 0x1F, 0x90, 10, 1, 2, 3]);
        let back = a.to_map(cx);
        assert!(purlin_term::compare::eq_exact(back, m));

        let path = cx.binary(b"/tmp/x");
        let m = map::from_pairs(cx, &[(family(), am::LOCAL), (path_atom(), path)]);
        let back = SockAddr::from_map(m).expect("an address").to_map(cx);
        assert!(purlin_term::compare::eq_exact(back, m));
        let long = cx.binary(&[b'x'; 108]);
        let m = map::from_pairs(cx, &[(family(), am::LOCAL), (path_atom(), long)]);
        assert!(SockAddr::from_map(m).is_none());
        let m = map::from_pairs(cx, &[(family(), inet())]);
        assert!(SockAddr::from_map(m).is_none());
    }
}
