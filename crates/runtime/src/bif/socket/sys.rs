//! System calls on sockets: each gives what the kernel gave, or the number of an error.

use super::addr::SockAddr;
pub use crate::port::inet::sys::{bytes, get_int, get_option, listen, set_option, shutdown, unit};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A new socket that does not block. The caller closes it.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> Result<RawFd, i32> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain call.
    let fd = unsafe { libc::socket(domain, kind | flags, protocol) };
    unit(fd).map(|()| fd)
}

/// What `f` gives while this thread is in the network namespace that `file` names.
pub fn in_namespace<T>(file: &CStr, f: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    let open = |p: &CStr| {
        // SAFETY: the path is terminated; what the call gives is ours.
        unsafe {
            let fd = libc::open(p.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            unit(fd).map(|()| OwnedFd::from_raw_fd(fd))
        }
    };
    // SAFETY: a plain call on an open descriptor; namespaces belong to the calling thread.
    let enter = |ns: &OwnedFd| unsafe { unit(libc::setns(ns.as_raw_fd(), libc::CLONE_NEWNET)) };
    let here = open(c"/proc/self/ns/net")?;
    let there = open(file)?;
    enter(&there)?;
    let r = f();
    enter(&here)?;
    r
}

pub fn dup(fd: RawFd) -> Result<RawFd, i32> {
    // SAFETY: a plain call.
    let new = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    unit(new).map(|()| new)
}

pub fn set_blocking(fd: RawFd, on: bool) {
    // SAFETY: plain calls.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        let new = if on {
            flags & !libc::O_NONBLOCK
        } else {
            flags | libc::O_NONBLOCK
        };
        if flags >= 0 && new != flags {
            libc::fcntl(fd, libc::F_SETFL, new);
        }
    }
}

/// Closes a descriptor that nobody else uses any more.
pub fn close(fd: RawFd) -> Result<(), i32> {
    // SAFETY: by the caller's word; not repeated when interrupted, since the descriptor is gone then too.
    unit(unsafe { libc::close(fd) })
}

pub fn bind(fd: RawFd, a: &SockAddr) -> Result<(), i32> {
    // SAFETY: the address is good for the call, as long as it says.
    unit(unsafe { libc::bind(fd, a.ptr(), a.size()) })
}
pub fn connect(fd: RawFd, a: &SockAddr) -> Result<(), i32> {
    // SAFETY: as above.
    unit(unsafe { libc::connect(fd, a.ptr(), a.size()) })
}
/// The next connection of a listening socket, which does not block.
pub fn accept(fd: RawFd) -> Result<RawFd, i32> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: nothing is asked about the address.
    let s = unsafe { libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    unit(s).map(|()| s)
}
pub fn sock_name(fd: RawFd) -> Result<SockAddr, i32> {
    // SAFETY: room and its length, both good for the call.
    let (r, a) = SockAddr::filled(|p, len| unsafe { libc::getsockname(fd, p, len) });
    unit(r).map(|()| a)
}
pub fn peer_name(fd: RawFd) -> Result<SockAddr, i32> {
    // SAFETY: as above.
    let (r, a) = SockAddr::filled(|p, len| unsafe { libc::getpeername(fd, p, len) });
    unit(r).map(|()| a)
}

/// Receives at most `room` bytes to `to`.
///
/// # Safety
/// As many bytes may be written there.
pub unsafe fn recv(fd: RawFd, to: *mut u8, room: usize, flags: i32) -> Result<usize, i32> {
    bytes(libc::recv(fd, to.cast(), room, flags))
}
/// As [`recv`], and where it came from.
///
/// # Safety
/// As for [`recv`].
pub unsafe fn recv_from(
    fd: RawFd,
    to: *mut u8,
    room: usize,
    flags: i32,
) -> Result<(usize, SockAddr), i32> {
    // SAFETY: the address and its length are lent for the call; the caller answers for the bytes.
    let (r, a) =
        SockAddr::filled(|p, len| unsafe { libc::recvfrom(fd, to.cast(), room, flags, p, len) });
    bytes(r).map(|n| (n, a))
}
/// Sends bytes, to `to` if given.
pub fn send(fd: RawFd, data: &[u8], flags: i32, to: Option<&SockAddr>) -> Result<usize, i32> {
    let flags = flags | libc::MSG_NOSIGNAL;
    // SAFETY: bytes and address are good for the call.
    bytes(unsafe {
        match to {
            Some(a) => libc::sendto(
                fd,
                data.as_ptr().cast(),
                data.len(),
                flags,
                a.ptr(),
                a.size(),
            ),
            None => libc::send(fd, data.as_ptr().cast(), data.len(), flags),
        }
    })
}

/// Asks for an option without room for its value.
pub fn touch_option(fd: RawFd, level: i32, name: i32) -> Result<(), i32> {
    // SAFETY: the kernel refuses null pointers that it would write through.
    unit(unsafe { libc::getsockopt(fd, level, name, std::ptr::null_mut(), std::ptr::null_mut()) })
}
