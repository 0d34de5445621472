//! Socket addresses: as the kernel has them, as module `prim_inet` encodes them, and as terms.
//!
//! Encoded: a family byte ([`family`]), then for IPv4 and IPv6 the port in two bytes, most significant first, and the
//! address; for local sockets one byte of length, and the name.

use crate::lazy_atoms;
use purlin_term::{Alloc, Term, am};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::RawFd;

lazy_atoms! {
    unspec = "unspec";
}

/// Family codes.
pub mod family {
    pub const UNSPEC: u8 = 0;
    pub const INET: u8 = 1;
    pub const INET6: u8 = 2;
    /// Any address of the socket's own family.
    pub const ANY: u8 = 3;
    /// The loopback address of the socket's own family.
    pub const LOOPBACK: u8 = 4;
    pub const LOCAL: u8 = 5;
    pub const UNDEFINED: u8 = 6;
}

/// The kernel's code for a family that can be opened.
pub fn domain(code: u8) -> Option<i32> {
    match code {
        family::INET => Some(libc::AF_INET),
        family::INET6 => Some(libc::AF_INET6),
        family::LOCAL => Some(libc::AF_UNIX),
        _ => None,
    }
}

/// An address that does not parse, by the name of the error.
pub type BadAddr = &'static str;
const EINVAL: BadAddr = "einval";
const EAFNOSUPPORT: BadAddr = "eafnosupport";

/// A socket address.
#[derive(Clone, Copy)]
pub struct Addr {
    storage: libc::sockaddr_storage,
    len: libc::socklen_t,
}

/// Where the name starts in a local address.
const PATH_AT: usize = std::mem::offset_of!(libc::sockaddr_un, sun_path);
const PATH_ROOM: usize = size_of::<libc::sockaddr_un>() - PATH_AT;

impl Addr {
    fn empty() -> Addr {
        Addr {
            // SAFETY: plain bytes, of which zeros are good.
            storage: unsafe { MaybeUninit::zeroed().assume_init() },
            len: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }
    fn of<T>(raw: T) -> Addr {
        let mut a = Addr::empty();
        assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>());
        // SAFETY: checked to fit; the storage is aligned for every kind of address.
        unsafe { (&raw mut a.storage).cast::<T>().write(raw) };
        a.len = size_of::<T>() as libc::socklen_t;
        a
    }
    /// An address that a system call fills in.
    pub fn filled<R>(
        call: impl FnOnce(*mut libc::sockaddr, *mut libc::socklen_t) -> R,
    ) -> (R, Addr) {
        let mut a = Addr::empty();
        let r = call((&raw mut a.storage).cast(), &raw mut a.len);
        a.len = a
            .len
            .min(size_of::<libc::sockaddr_storage>() as libc::socklen_t);
        (r, a)
    }
    /// What ends the association of a datagram socket.
    pub fn none() -> Addr {
        let mut a = Addr::empty();
        a.len = size_of::<libc::sockaddr>() as libc::socklen_t;
        a
    }
    pub fn ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }
    #[expect(clippy::len_without_is_empty, reason = "an address is never empty")]
    pub fn len(&self) -> libc::socklen_t {
        self.len
    }
    /// The kernel's code of its family.
    pub fn domain(&self) -> i32 {
        self.storage.ss_family as i32
    }
    fn inet(&self) -> &libc::sockaddr_in {
        // SAFETY: the storage is large and aligned enough for it, and all its bytes are initialised.
        unsafe { &*(&raw const self.storage).cast() }
    }
    fn inet6(&self) -> &libc::sockaddr_in6 {
        // SAFETY: as above.
        unsafe { &*(&raw const self.storage).cast() }
    }
    /// The name of a local address.
    fn path(&self) -> &[u8] {
        let n = (self.len as usize).saturating_sub(PATH_AT).min(PATH_ROOM);
        // SAFETY: within the storage, all of which is initialised.
        let name = unsafe {
            std::slice::from_raw_parts((&raw const self.storage).cast::<u8>().add(PATH_AT), n)
        };
        // One that starts with a null is in a name space of its own, where nulls mean nothing.
        match name.iter().position(|&c| c == 0) {
            Some(0) | None => name,
            Some(end) => &name[..end],
        }
    }
    /// The port of an IP address.
    pub fn port(&self) -> Option<u16> {
        match self.domain() {
            libc::AF_INET => Some(u16::from_be(self.inet().sin_port)),
            libc::AF_INET6 => Some(u16::from_be(self.inet6().sin6_port)),
            _ => None,
        }
    }

    /// Takes an encoded address off the front of `b`; `domain` is the socket's.
    pub fn parse(domain: i32, b: &mut &[u8]) -> Result<Addr, BadAddr> {
        let mut take = |n: usize| -> Result<&[u8], BadAddr> {
            let (head, rest) = b.split_at_checked(n).ok_or(EINVAL)?;
            *b = rest;
            Ok(head)
        };
        let v4 = |port: u16, ip: [u8; 4]| {
            // SAFETY: plain integers, of which zeros are good.
            let mut a: libc::sockaddr_in = unsafe { MaybeUninit::zeroed().assume_init() };
            a.sin_family = libc::AF_INET as libc::sa_family_t;
            a.sin_port = port.to_be();
            a.sin_addr.s_addr = u32::from_ne_bytes(ip);
            Addr::of(a)
        };
        let v6 = |port: u16, ip: [u8; 16], flow: u32, scope: u32| {
            // SAFETY: as above.
            let mut a: libc::sockaddr_in6 = unsafe { MaybeUninit::zeroed().assume_init() };
            a.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            a.sin6_port = port.to_be();
            a.sin6_addr.s6_addr = ip;
            a.sin6_flowinfo = flow;
            a.sin6_scope_id = scope;
            Addr::of(a)
        };
        let be16 = |b: &[u8]| u16::from_be_bytes([b[0], b[1]]);
        let be32 = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        let code = take(1)?[0];
        match code {
            family::ANY | family::LOOPBACK => {
                let port = be16(take(2)?);
                let local = code == family::LOOPBACK;
                match domain {
                    libc::AF_INET if local => Ok(v4(port, [127, 0, 0, 1])),
                    libc::AF_INET => Ok(v4(port, [0; 4])),
                    libc::AF_INET6 => {
                        let mut ip = [0; 16];
                        ip[15] = local as u8;
                        Ok(v6(port, ip, 0, 0))
                    }
                    _ => Err(EINVAL),
                }
            }
            family::INET => {
                let port = be16(take(2)?);
                let mut ip = [0; 4];
                ip.copy_from_slice(take(4)?);
                Ok(v4(port, ip))
            }
            family::INET6 => {
                let port = be16(take(2)?);
                let mut ip = [0; 16];
                ip.copy_from_slice(take(16)?);
                let flow = be32(take(4)?);
                let scope = be32(take(4)?);
                Ok(v6(port, ip, flow, scope))
            }
            family::LOCAL => {
                let n = take(1)?[0] as usize;
                let name = take(n)?;
                // With a null at its end, unless it is in a name space of its own.
                let end = usize::from(name.first() != Some(&0));
                if n + end > PATH_ROOM {
                    return Err(EINVAL);
                }
                // SAFETY: plain integers, of which zeros are good.
                let mut a: libc::sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
                a.sun_family = libc::AF_UNIX as libc::sa_family_t;
                for (to, &c) in a.sun_path.iter_mut().zip(name) {
                    *to = c as libc::c_char;
                }
                let mut a = Addr::of(a);
                a.len = (PATH_AT + n) as libc::socklen_t;
                Ok(a)
            }
            _ => Err(EAFNOSUPPORT),
        }
    }

    /// The encoded address; None for a family that has no code.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let ip = |code: u8, port: u16, ip: &[u8]| {
            let mut v = vec![code];
            v.extend_from_slice(&port.to_be_bytes());
            v.extend_from_slice(ip);
            v
        };
        match self.domain() {
            libc::AF_INET => Some(ip(
                family::INET,
                u16::from_be(self.inet().sin_port),
                &self.inet().sin_addr.s_addr.to_ne_bytes(),
            )),
            libc::AF_INET6 => Some(ip(
                family::INET6,
                u16::from_be(self.inet6().sin6_port),
                &self.inet6().sin6_addr.s6_addr,
            )),
            libc::AF_UNIX => {
                let mut v = vec![family::LOCAL, self.path().len() as u8];
                v.extend_from_slice(self.path());
                Some(v)
            }
            _ => None,
        }
    }
    /// As [`Addr::encode`]; what has no address is one of an unknown family.
    pub fn encode_any(&self) -> Vec<u8> {
        self.encode().unwrap_or_else(|| {
            vec![if self.domain() == libc::AF_UNSPEC {
                family::UNSPEC
            } else {
                family::UNDEFINED
            }]
        })
    }

    /// Address and port, as messages of datagram sockets have them.
    pub fn to_terms(&self, a: &mut dyn Alloc) -> (Term, Term) {
        let named = |a: &mut dyn Alloc, tag: Term, name: &[u8]| {
            let name = a.binary(name);
            (a.tuple(&[tag, name]), Term::small(0))
        };
        match self.domain() {
            libc::AF_INET => {
                let ip = self.inet().sin_addr.s_addr.to_ne_bytes();
                let ip = ip.map(|b| Term::small(b as i64));
                let port = u16::from_be(self.inet().sin_port);
                (a.tuple(&ip), Term::small(port as i64))
            }
            libc::AF_INET6 => {
                let b = &self.inet6().sin6_addr.s6_addr;
                let ip: [Term; 8] = std::array::from_fn(|i| {
                    Term::small((b[2 * i] as i64) << 8 | b[2 * i + 1] as i64)
                });
                let port = u16::from_be(self.inet6().sin6_port);
                (a.tuple(&ip), Term::small(port as i64))
            }
            libc::AF_UNIX => named(a, am::LOCAL, self.path()),
            libc::AF_UNSPEC => named(a, unspec(), b""),
            _ => named(a, am::UNDEFINED, b""),
        }
    }
}

/// The address that a socket is bound to.
pub fn sock_name(fd: RawFd) -> Result<Addr, i32> {
    // SAFETY: room and its length, both good for the call.
    let (r, a) = Addr::filled(|p, len| unsafe { libc::getsockname(fd, p, len) });
    super::sys::unit(r).map(|()| a)
}

/// The address that a socket is connected to.
pub fn peer_name(fd: RawFd) -> Result<Addr, i32> {
    // SAFETY: as above.
    let (r, a) = Addr::filled(|p, len| unsafe { libc::getpeername(fd, p, len) });
    super::sys::unit(r).map(|()| a)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(domain: i32, code: &[u8]) -> Option<Vec<u8>> {
        let mut b = code;
        let a = Addr::parse(domain, &mut b).ok()?;
        assert!(b.is_empty());
        a.encode()
    }

    #[test]
    fn addresses_go_there_and_back() {
        let v4 = [family::INET, 0x1F, 0x90, 10, 1, 2, 3];
        assert_eq!(round(libc::AF_INET, &v4).as_deref(), Some(&v4[..]));
        let mut v6 = vec![family::INET6, 0, 80];
        v6.extend(0..16);
        let coded = [&v6[..], &[0; 8]].concat();
        assert_eq!(round(libc::AF_INET6, &coded), Some(v6));
        let local = [family::LOCAL, 4, b'/', b'a', b'/', b'b'];
        assert_eq!(round(libc::AF_UNIX, &local).as_deref(), Some(&local[..]));
        let abstract_name = [family::LOCAL, 3, 0, b'x', 0];
        assert_eq!(
            round(libc::AF_UNIX, &abstract_name).as_deref(),
            Some(&abstract_name[..])
        );
        assert_eq!(
            round(libc::AF_INET, &[family::LOOPBACK, 0, 7]),
            Some(vec![family::INET, 0, 7, 127, 0, 0, 1])
        );
        assert!(Addr::parse(libc::AF_INET, &mut &[family::INET, 0][..]).is_err());
        assert!(Addr::parse(libc::AF_INET, &mut &[9u8][..]).is_err());
        assert!(Addr::parse(libc::AF_UNIX, &mut &[family::LOCAL, 200][..]).is_err());
    }
}
