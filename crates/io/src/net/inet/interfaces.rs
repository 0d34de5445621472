//! Network interfaces: their names, addresses and flags.

use super::addr::Addr;
use super::{Answer, Args, EINVAL, Error, addr};
use crate::os::interfaces::{self, Interfaces};
use crate::os::kernel_numbers as numbers;
use crate::os::sockaddr::{self, LINK_FAMILY};
use purlin_kernel::os::replay_log::{self, Asked, Verb};
use purlin_kernel::os::world;
use std::ffi::CStr;
use std::mem::{offset_of, size_of};
use std::os::fd::RawFd;

/// Numbers of interface options.
mod ifopt {
    pub(crate) const ADDR: u8 = 1;
    pub(crate) const BROADADDR: u8 = 2;
    pub(crate) const DSTADDR: u8 = 3;
    pub(crate) const MTU: u8 = 4;
    pub(crate) const NETMASK: u8 = 5;
    pub const FLAGS: u8 = 6;
    pub(crate) const HWADDR: u8 = 7;
}

/// Number of bytes of a hardware address that are returned.
const HWADDR_BYTES: usize = 6;

/// The names of interfaces that have an IPv4 address, once per address.
pub fn names() -> Answer {
    if world::is_on() {
        world::left("the interfaces of the real machine were listed");
    }
    let asked = || Asked::text("interfaces");
    let names = replay_log::call(Verb::Host, None, asked, || {
        let all = Interfaces::list()?;
        let mut out = Vec::new();
        // SAFETY: entries of the list, and strings and addresses in it.
        unsafe {
            for i in all.iter() {
                if i.ifa_addr
                    .as_ref()
                    .is_some_and(|a| a.sa_family as i32 == libc::AF_INET)
                {
                    out.extend_from_slice(CStr::from_ptr(i.ifa_name).to_bytes_with_nul());
                }
            }
        }
        Ok(out)
    })?;
    Ok(names)
}

/// Takes an interface name off the front of a request and makes a kernel request for it.
fn question(args: &mut Args) -> Result<libc::ifreq, Error> {
    let n = args.u8()? as usize;
    Ok(interfaces::question(args.take(n)?))
}

/// Reads or sets something of an interface. Returns false if the kernel does not know it or
/// refuses.
fn ioctl(fd: RawFd, op: u64, q: &mut libc::ifreq) -> bool {
    let q: *mut libc::ifreq = q;
    let room = size_of::<libc::ifreq>();
    // SAFETY: the structure is borrowed and has that many bytes.
    let bytes = || unsafe { std::slice::from_raw_parts(q.cast::<u8>(), room) };
    let asked = || Asked {
        text: format!("interface, {op:x}"),
        ..Asked::data(std::iter::once(bytes()))
    };
    // SAFETY: the structure that these operations take.
    let real = || match unsafe { libc::ioctl(fd, op as _, q) } {
        n if n < 0 => Err(libc::EINVAL),
        _ => Ok(room),
    };
    // SAFETY: the structure has `room` bytes, and any bytes are a valid result.
    unsafe { replay_log::fills(Verb::Host, fd, asked, q.cast(), room, real) }.is_ok()
}

/// The values of the requested options. Options that the interface does not have are omitted.
pub fn get(fd: RawFd, mut args: Args) -> Answer {
    let mut q = question(&mut args)?;
    let mut out = Vec::new();
    while !args.is_empty() {
        let o = args.u8()?;
        let address = match o {
            ifopt::ADDR => Some(libc::SIOCGIFADDR),
            ifopt::BROADADDR => Some(libc::SIOCGIFBRDADDR),
            ifopt::DSTADDR => Some(libc::SIOCGIFDSTADDR),
            ifopt::NETMASK => Some(libc::SIOCGIFNETMASK),
            _ => None,
        };
        if let Some(op) = address {
            if ioctl(fd, op as u64, &mut q) {
                // SAFETY: an address that the kernel has written.
                unsafe { put_address(&mut out, o, &raw const q.ifr_ifru.ifru_addr) };
            }
            continue;
        }
        match o {
            ifopt::HWADDR => {
                if let Some(bytes) = hardware(fd, &mut q) {
                    out.push(o);
                    out.extend_from_slice(&(HWADDR_BYTES as u16).to_be_bytes());
                    out.extend(bytes);
                }
            }
            ifopt::MTU => {
                if ioctl(fd, libc::SIOCGIFMTU as u64, &mut q) {
                    out.push(o);
                    // SAFETY: a number that the kernel has written.
                    out.extend_from_slice(&unsafe { q.ifr_ifru.ifru_mtu }.to_be_bytes());
                }
            }
            ifopt::FLAGS => {
                out.push(o);
                out.extend_from_slice(&flags(kernel_flags(fd, &mut q)).to_be_bytes());
            }
            _ => return Err(EINVAL),
        }
    }
    Ok(out)
}

/// The hardware address of an interface.
fn hardware(fd: RawFd, q: &mut libc::ifreq) -> Option<[u8; HWADDR_BYTES]> {
    if let Some(op) = numbers::SIOCGIFHWADDR {
        let known = ioctl(fd, op, q).then(|| interfaces::hardware(q))?;
        return known?.1.first_chunk().copied();
    }
    let name = interfaces::name(q);
    let asked = || Asked::text("a hardware address");
    let bytes = replay_log::call(Verb::Host, Some(fd), asked, || {
        interfaces::hardware_in_list(&name).ok_or(libc::EINVAL)
    });
    bytes.ok()?.first_chunk().copied()
}

/// The flags of an interface; 0 if there is none.
fn kernel_flags(fd: RawFd, q: &mut libc::ifreq) -> i32 {
    if ioctl(fd, libc::SIOCGIFFLAGS as u64, q) {
        // SAFETY: a number that the kernel has written.
        unsafe { q.ifr_ifru.ifru_flags as i32 }
    } else {
        0
    }
}

/// Sets options of an interface. Refusals of the kernel are not reported, as in stock.
pub fn set(fd: RawFd, mut args: Args) -> Answer {
    let mut q = question(&mut args)?;
    while !args.is_empty() {
        let o = args.u8()?;
        let address = match o {
            ifopt::ADDR => Some(libc::SIOCSIFADDR),
            ifopt::BROADADDR => Some(libc::SIOCSIFBRDADDR),
            ifopt::DSTADDR => Some(libc::SIOCSIFDSTADDR),
            ifopt::NETMASK => Some(libc::SIOCSIFNETMASK),
            _ => None,
        };
        if let Some(op) = address {
            if args.u8()? != addr::family::INET {
                return Err(EINVAL);
            }
            let ip = args.take(4)?;
            let rest = [&[0; 2], ip, &[0; 8]].concat();
            let a = Addr::new(libc::AF_INET, &rest).ok_or(EINVAL)?;
            // SAFETY: the union has room for an IPv4 address, which is as large as any address
            // there.
            unsafe {
                (&raw mut q.ifr_ifru)
                    .cast::<libc::sockaddr_in>()
                    .write(*a.inet())
            };
            ioctl(fd, op as u64, &mut q);
            continue;
        }
        match o {
            ifopt::HWADDR => {
                let n = args.u16()? as usize;
                let bytes = args.take(n)?;
                // The address of the interface's own kind, whose bytes are replaced.
                if let Some(op) = numbers::SIOCSIFHWADDR
                    && interfaces::set_hardware(&mut q, bytes)
                {
                    ioctl(fd, op, &mut q);
                }
            }
            ifopt::MTU => {
                q.ifr_ifru.ifru_mtu = args.i32()?;
                ioctl(fd, libc::SIOCSIFMTU as u64, &mut q);
            }
            ifopt::FLAGS => {
                let wanted = args.u32()?;
                let old = kernel_flags(fd, &mut q);
                let mut new = old;
                for (on, off, flag) in [
                    (0x01, 0x100, libc::IFF_UP),
                    (0x02, 0x200, libc::IFF_BROADCAST),
                    (0x08, 0x800, libc::IFF_POINTOPOINT),
                ] {
                    if wanted & on != 0 {
                        new |= flag;
                    }
                    if wanted & off != 0 {
                        new &= !flag;
                    }
                }
                if new != old {
                    q.ifr_ifru.ifru_flags = new as libc::c_short;
                    ioctl(fd, libc::SIOCSIFFLAGS as u64, &mut q);
                }
            }
            _ => return Err(EINVAL),
        }
    }
    Ok(Vec::new())
}

/// Names, flags and addresses of all interfaces.
pub fn all() -> Answer {
    let all = Interfaces::list()?;
    let mut out = Vec::new();
    // SAFETY: entries of the list, each with the addresses that its flags announce.
    unsafe {
        for i in all.iter() {
            let name = CStr::from_ptr(i.ifa_name).to_bytes();
            // Bytes above 127 are encoded as characters.
            out.extend(String::from_iter(name.iter().map(|&b| b as char)).into_bytes());
            out.push(0);
            out.push(ifopt::FLAGS);
            out.extend_from_slice(&flags(i.ifa_flags as i32).to_be_bytes());
            if let Some(a) = i.ifa_addr.as_ref() {
                match a.sa_family as i32 {
                    libc::AF_INET | libc::AF_INET6 => {
                        put_address(&mut out, ifopt::ADDR, i.ifa_addr);
                        put_address(&mut out, ifopt::NETMASK, i.ifa_netmask);
                        let other = interfaces::other_end(i);
                        if !other.is_null() && i.ifa_flags as i32 & libc::IFF_POINTOPOINT != 0 {
                            put_address(&mut out, ifopt::DSTADDR, other);
                        } else if i.ifa_flags as i32 & libc::IFF_BROADCAST != 0 {
                            put_address(&mut out, ifopt::BROADADDR, other);
                        }
                    }
                    LINK_FAMILY => {
                        let a = sockaddr::read(i.ifa_addr, sockaddr::ROOM);
                        let bytes = sockaddr::hardware(a.as_bytes());
                        if bytes.len() > 1 {
                            out.push(ifopt::HWADDR);
                            out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
                            out.extend_from_slice(bytes);
                        }
                    }
                    _ => {}
                }
            }
            out.push(0);
        }
    }
    Ok(out)
}

/// Offsets of the IP in an address.
const IP_AT: usize = offset_of!(libc::sockaddr_in, sin_addr);
const IP6_AT: usize = offset_of!(libc::sockaddr_in6, sin6_addr);

/// # Safety
/// The address is null, or valid and as long as its family requires.
unsafe fn put_address(out: &mut Vec<u8>, option: u8, a: *const libc::sockaddr) {
    // SAFETY: by the contract of this function.
    unsafe {
        if a.is_null() {
            return;
        }
        match (*a).sa_family as i32 {
            libc::AF_INET | libc::AF_UNSPEC => {
                out.extend_from_slice(&[option, addr::family::INET]);
                out.extend(sockaddr::part::<4>(a, IP_AT));
            }
            libc::AF_INET6 => {
                out.extend_from_slice(&[option, addr::family::INET6]);
                out.extend(sockaddr::part::<16>(a, IP6_AT));
            }
            _ => {}
        }
    }
}

fn flags(of: i32) -> u32 {
    let bits = [
        (libc::IFF_UP, 0x01),
        (libc::IFF_BROADCAST, 0x02),
        (libc::IFF_LOOPBACK, 0x04),
        (libc::IFF_POINTOPOINT, 0x08),
        // Up counts as running, as in stock.
        (libc::IFF_UP, 0x10),
        (libc::IFF_MULTICAST, 0x20),
    ];
    bits.iter()
        .filter(|b| of & b.0 != 0)
        .fold(0, |n, b| n | b.1)
}
