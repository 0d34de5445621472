//! The system's list of interface addresses, and requests about one interface.

use super::sockaddr::{self, SockAddr};
use super::unit;
use std::ffi::CStr;
use std::mem::size_of;
use std::os::fd::RawFd;

/// The list, freed when dropped.
pub(crate) struct Interfaces(*mut libc::ifaddrs);

impl Interfaces {
    /// Fetches the list of the network namespace that this thread is in.
    pub(crate) fn list() -> Result<Interfaces, i32> {
        let mut first = std::ptr::null_mut();
        // SAFETY: room for the pointer; the list behind it is freed when the result is dropped.
        unit(unsafe { libc::getifaddrs(&mut first) })?;
        Ok(Interfaces(first))
    }
    /// The entries, one for each address, with the interface's flags. Names and addresses lie in
    /// the list's memory.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        let mut next = self.0.cast_const();
        std::iter::from_fn(move || {
            // SAFETY: null, or an entry of the list, which lives as long as this borrow.
            let i = unsafe { next.as_ref() }?;
            next = i.ifa_next;
            Some(i)
        })
    }
}

impl Drop for Interfaces {
    fn drop(&mut self) {
        // SAFETY: made by `getifaddrs`, and freed once.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// The address of the other end or for everyone, depending on the interface's flags. Null if there
/// is none.
pub(crate) fn other_end(i: &libc::ifaddrs) -> *const libc::sockaddr {
    #[cfg(target_os = "linux")]
    let other = i.ifa_ifu;
    #[cfg(not(target_os = "linux"))]
    let other = i.ifa_dstaddr;
    other
}

/// Maximum bytes of an address in a request.
pub(crate) const ADDRESS_ROOM: usize = size_of::<libc::ifreq>() - libc::IFNAMSIZ;

/// A request about the interface of that name, which is cut to the available room.
pub(crate) fn question(name: &[u8]) -> libc::ifreq {
    // SAFETY: plain bytes, for which zeros are valid.
    let mut q: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, &c) in q.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name) {
        *to = c as libc::c_char;
    }
    q
}

/// The interface's name in a request.
pub(crate) fn name(q: &libc::ifreq) -> Vec<u8> {
    let bytes = q.ifr_name.iter().map(|&c| c as u8);
    bytes.take_while(|&c| c != 0).collect()
}

/// The address in a reply.
pub(crate) fn address(q: &libc::ifreq) -> SockAddr {
    // SAFETY: the kernel has written an address there, of which the request's room is read.
    unsafe { sockaddr::read(&raw const q.ifr_ifru.ifru_addr, ADDRESS_ROOM) }
}

/// Names and addresses of all interfaces that have an address of the socket's family.
pub(crate) fn configured(fd: RawFd) -> Result<Vec<(Vec<u8>, SockAddr)>, i32> {
    // Repeats the request with more room until some room is left.
    let mut room = 64;
    loop {
        let mut all: Vec<libc::ifreq> = (0..room).map(|_| question(b"")).collect();
        let capacity = size_of_val(&all[..]);
        // SAFETY: the structure that the request takes, with room for the stated number of bytes.
        let used = unsafe {
            let mut c: libc::ifconf = std::mem::zeroed();
            c.ifc_len = capacity as i32;
            c.ifc_ifcu.ifcu_req = all.as_mut_ptr();
            unit(libc::ioctl(fd, libc::SIOCGIFCONF as _, &mut c))?;
            c.ifc_len as usize
        };
        if used + MOST_ENTRY <= capacity {
            return Ok(entries(&all, used));
        }
        room *= 2;
    }
}

/// Maximum bytes of an entry of [`configured`].
#[cfg(target_os = "linux")]
const MOST_ENTRY: usize = size_of::<libc::ifreq>();
#[cfg(not(target_os = "linux"))]
const MOST_ENTRY: usize = libc::IFNAMSIZ + u8::MAX as usize;

/// Names and addresses in the first `used` bytes of an answer.
#[cfg(target_os = "linux")]
fn entries(all: &[libc::ifreq], used: usize) -> Vec<(Vec<u8>, SockAddr)> {
    let count = used / size_of::<libc::ifreq>();
    all[..count].iter().map(|q| (name(q), address(q))).collect()
}
/// As on Linux, but an entry is as long as its address requires.
#[cfg(not(target_os = "linux"))]
fn entries(all: &[libc::ifreq], used: usize) -> Vec<(Vec<u8>, SockAddr)> {
    let used = used.min(size_of_val(all));
    let (mut found, mut at) = (Vec::new(), 0);
    while at + size_of::<libc::ifreq>() <= used {
        // SAFETY: a whole request lies at `at`, and addresses need no alignment. No more is read of
        // the address than lies before the end.
        unsafe {
            let entry = all.as_ptr().cast::<u8>().add(at);
            let name = std::slice::from_raw_parts(entry, libc::IFNAMSIZ);
            let name = name.iter().copied().take_while(|&c| c != 0).collect();
            let a = entry.add(libc::IFNAMSIZ).cast::<libc::sockaddr>();
            found.push((name, sockaddr::read(a, used - at - libc::IFNAMSIZ)));
            at += libc::IFNAMSIZ + usize::from((*a).sa_len).max(size_of::<libc::sockaddr>());
        }
    }
    found
}

/// Fields of requests that Linux alone has. Elsewhere there is `None`, or false for a change.
#[cfg(target_os = "linux")]
mod fields {
    /// Puts the index of an interface into a request.
    pub(crate) fn set_index(q: &mut libc::ifreq, n: i32) -> bool {
        q.ifr_ifru.ifru_ifindex = n;
        true
    }
    /// The index of an interface, or the length of its queue.
    pub(crate) fn index(q: &libc::ifreq) -> Option<i32> {
        // SAFETY: a number, for which any bytes are valid.
        Some(unsafe { q.ifr_ifru.ifru_ifindex })
    }
    /// The family and the bytes of a hardware address.
    pub(crate) fn hardware(q: &libc::ifreq) -> Option<(u16, [u8; 14])> {
        // SAFETY: numbers, for which any bytes are valid.
        let a = unsafe { q.ifr_ifru.ifru_hwaddr };
        Some((a.sa_family, a.sa_data.map(|c| c as u8)))
    }
    /// Replaces the bytes of a hardware address.
    pub(crate) fn set_hardware(q: &mut libc::ifreq, bytes: &[u8]) -> bool {
        // SAFETY: numbers, for which any bytes are valid.
        let to = unsafe { &mut q.ifr_ifru.ifru_hwaddr.sa_data };
        *to = [0; 14];
        for (to, &c) in to.iter_mut().zip(bytes) {
            *to = c as libc::c_char;
        }
        true
    }
    /// Memory and other resources of an interface: first and last address, base address,
    /// interrupt, channel, port.
    pub(crate) fn resources(q: &libc::ifreq) -> Option<[u64; 6]> {
        // SAFETY: numbers, for which any bytes are valid.
        let m = unsafe { q.ifr_ifru.ifru_map };
        Some([
            m.mem_start,
            m.mem_end,
            m.base_addr.into(),
            m.irq.into(),
            m.dma.into(),
            m.port.into(),
        ])
    }
}
#[cfg(not(target_os = "linux"))]
mod fields {
    pub(crate) fn set_index(_: &mut libc::ifreq, _: i32) -> bool {
        false
    }
    pub(crate) fn index(_: &libc::ifreq) -> Option<i32> {
        None
    }
    pub(crate) fn hardware(_: &libc::ifreq) -> Option<(u16, [u8; 14])> {
        None
    }
    pub(crate) fn set_hardware(_: &mut libc::ifreq, _: &[u8]) -> bool {
        false
    }
    pub(crate) fn resources(_: &libc::ifreq) -> Option<[u64; 6]> {
        None
    }
}
pub(crate) use fields::{hardware, index, resources, set_hardware, set_index};

/// The hardware address of an interface, where a request about it does not exist: it is among the
/// interface's addresses.
pub(crate) fn hardware_in_list(name: &[u8]) -> Option<Vec<u8>> {
    let all = Interfaces::list().ok()?;
    all.iter().find_map(|i| {
        // SAFETY: a string of the list, and an address of it.
        unsafe {
            if i.ifa_addr.is_null() || CStr::from_ptr(i.ifa_name).to_bytes() != name {
                return None;
            }
            let a = sockaddr::read(i.ifa_addr, sockaddr::ROOM);
            let found = sockaddr::hardware(a.as_bytes()).to_vec();
            (a.domain() == sockaddr::LINK_FAMILY && !found.is_empty()).then_some(found)
        }
    })
}
