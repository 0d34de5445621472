//! Socket addresses in the encoding of module `prim_inet`, and as terms.
//!
//! The encoding is a family byte ([`family`]), then for IPv4 and IPv6 the port in two bytes, most
//! significant first, and the address; for local sockets one byte of length, and the name.

use crate::lazy_atoms;
use crate::os::sockaddr::PATH_ROOM;
pub(crate) use crate::os::sockaddr::SockAddr as Addr;
use purlin_term::{Alloc, Term, am};

lazy_atoms! {
    unspec = "unspec";
}

/// Family codes.
pub mod family {
    pub(crate) const UNSPEC: u8 = 0;
    pub(crate) const INET: u8 = 1;
    pub(crate) const INET6: u8 = 2;
    /// Any address of the socket's own family.
    pub const ANY: u8 = 3;
    /// The loopback address of the socket's own family.
    pub(crate) const LOOPBACK: u8 = 4;
    pub const LOCAL: u8 = 5;
    pub const UNDEFINED: u8 = 6;
}

/// The kernel's number of a family that can be opened.
pub(crate) fn domain(code: u8) -> Option<i32> {
    match code {
        family::INET => Some(libc::AF_INET),
        family::INET6 => Some(libc::AF_INET6),
        family::LOCAL => Some(libc::AF_UNIX),
        _ => None,
    }
}

/// The error name for an address that does not parse.
pub(crate) type BadAddr = &'static str;
const EINVAL: BadAddr = "einval";
const EAFNOSUPPORT: BadAddr = "eafnosupport";

/// Makes an address of a family from its parts.
fn of(domain: i32, parts: &[&[u8]]) -> Result<Addr, BadAddr> {
    Addr::new(domain, &parts.concat()).ok_or(EINVAL)
}

impl Addr {
    /// Takes an encoded address off the front of `b`; `domain` is the socket's.
    pub fn parse(domain: i32, b: &mut &[u8]) -> Result<Addr, BadAddr> {
        let mut take = |n: usize| -> Result<&[u8], BadAddr> {
            let (head, rest) = b.split_at_checked(n).ok_or(EINVAL)?;
            *b = rest;
            Ok(head)
        };
        let v4 = |port: u16, ip: [u8; 4]| of(libc::AF_INET, &[&port.to_be_bytes(), &ip, &[0; 8]]);
        let v6 = |port: u16, ip: [u8; 16], flow: u32, scope: u32| {
            let parts: [&[u8]; 4] = [
                &port.to_be_bytes(),
                &flow.to_ne_bytes(),
                &ip,
                &scope.to_ne_bytes(),
            ];
            of(libc::AF_INET6, &parts)
        };
        let be16 = |b: &[u8]| u16::from_be_bytes([b[0], b[1]]);
        let be32 = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
        let code = take(1)?[0];
        match code {
            family::ANY | family::LOOPBACK => {
                let port = be16(take(2)?);
                let local = code == family::LOOPBACK;
                match domain {
                    libc::AF_INET if local => v4(port, [127, 0, 0, 1]),
                    libc::AF_INET => v4(port, [0; 4]),
                    libc::AF_INET6 => {
                        let mut ip = [0; 16];
                        ip[15] = local as u8;
                        v6(port, ip, 0, 0)
                    }
                    _ => Err(EINVAL),
                }
            }
            family::INET => {
                let port = be16(take(2)?);
                let mut ip = [0; 4];
                ip.copy_from_slice(take(4)?);
                v4(port, ip)
            }
            family::INET6 => {
                let port = be16(take(2)?);
                let mut ip = [0; 16];
                ip.copy_from_slice(take(16)?);
                let flow = be32(take(4)?);
                let scope = be32(take(4)?);
                v6(port, ip, flow, scope)
            }
            family::LOCAL => {
                let n = take(1)?[0] as usize;
                let name = take(n)?;
                // A final zero is needed, except in the abstract namespace.
                let end = usize::from(name.first() != Some(&0));
                if n + end > PATH_ROOM {
                    return Err(EINVAL);
                }
                of(libc::AF_UNIX, &[name])
            }
            _ => Err(EAFNOSUPPORT),
        }
    }

    /// The encoded address. None for a family that has no code.
    pub(crate) fn inet_code(&self) -> Option<Vec<u8>> {
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
    /// As [`Addr::inet_code`], but encodes a missing address as one of an unknown family.
    pub(crate) fn inet_code_any(&self) -> Vec<u8> {
        self.inet_code().unwrap_or_else(|| {
            vec![if self.domain() == libc::AF_UNSPEC {
                family::UNSPEC
            } else {
                family::UNDEFINED
            }]
        })
    }

    /// Address and port, as in the messages of datagram sockets.
    pub(crate) fn to_terms(self, a: &mut dyn Alloc) -> (Term, Term) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn round(domain: i32, code: &[u8]) -> Option<Vec<u8>> {
        let mut b = code;
        let a = Addr::parse(domain, &mut b).ok()?;
        assert!(b.is_empty());
        a.inet_code()
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
