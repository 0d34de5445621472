//! System calls on sockets.

use super::addr::Addr;
use crate::posix::last_errno;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The result of a call that gives 0 or fails.
pub fn unit(r: i32) -> Result<(), i32> {
    if r < 0 { Err(last_errno()) } else { Ok(()) }
}

/// The result of a call that gives a number of bytes or fails.
pub fn bytes(r: isize) -> Result<usize, i32> {
    usize::try_from(r).map_err(|_| last_errno())
}

/// A new socket that does not block.
pub fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, i32> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain call; what it gives is ours.
    unsafe {
        let fd = libc::socket(domain, kind | flags, protocol);
        unit(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Makes a descriptor that was handed in not block.
pub fn set_nonblocking(fd: RawFd) -> Result<(), i32> {
    // SAFETY: plain calls.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        unit(flags)?;
        unit(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK))
    }
}

pub fn bind(fd: RawFd, a: &Addr) -> Result<(), i32> {
    // SAFETY: the address is good for the call, as long as it says.
    unit(unsafe { libc::bind(fd, a.ptr(), a.len()) })
}

pub fn connect(fd: RawFd, a: &Addr) -> Result<(), i32> {
    // SAFETY: as above.
    unit(unsafe { libc::connect(fd, a.ptr(), a.len()) })
}

pub fn listen(fd: RawFd, backlog: i32) -> Result<(), i32> {
    // SAFETY: a plain call.
    unit(unsafe { libc::listen(fd, backlog) })
}

/// The next connection of a listening socket, which does not block.
pub fn accept(fd: RawFd) -> Result<(OwnedFd, Addr), i32> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: room and its length, both good for the call; what it gives is ours.
    unsafe {
        let (s, from) = Addr::filled(|p, len| libc::accept4(fd, p, len, flags));
        unit(s)?;
        Ok((OwnedFd::from_raw_fd(s), from))
    }
}

pub fn shutdown(fd: RawFd, how: i32) -> Result<(), i32> {
    // SAFETY: a plain call.
    unit(unsafe { libc::shutdown(fd, how) })
}

/// Receives into `to`, without waiting: how many bytes of it have been filled.
pub fn recv(fd: RawFd, to: &mut [MaybeUninit<u8>]) -> Result<usize, i32> {
    // SAFETY: as many bytes as the slice has.
    bytes(unsafe { libc::recv(fd, to.as_mut_ptr().cast(), to.len(), libc::MSG_DONTWAIT) })
}

/// Receives a datagram, where it came from, and its control messages.
pub fn recv_msg(fd: RawFd, to: &mut [u8], control: &mut [u8]) -> Result<(usize, Addr, usize), i32> {
    let mut iov = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let mut control_len = 0;
    // SAFETY: all pointers in the header are good for the call, as long as it says.
    let (n, from) = Addr::filled(|p, len| unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        m.msg_name = p.cast();
        m.msg_namelen = *len;
        m.msg_iov = &mut iov;
        m.msg_iovlen = 1;
        if !control.is_empty() {
            m.msg_control = control.as_mut_ptr().cast();
            m.msg_controllen = control.len() as _;
        }
        let n = libc::recvmsg(fd, &mut m, libc::MSG_DONTWAIT);
        *len = m.msg_namelen;
        control_len = m.msg_controllen as usize;
        n
    });
    Ok((bytes(n)?, from, control_len.min(control.len())))
}

/// Bytes as a part of a vector that is written.
pub fn iovec(bytes: &[u8]) -> libc::iovec {
    libc::iovec {
        iov_base: bytes.as_ptr() as *mut libc::c_void,
        iov_len: bytes.len(),
    }
}

/// Sends parts, at most `IOV_MAX`, without waiting: to `to` if given, with the control messages in `control`.
pub fn send_msg(
    fd: RawFd,
    iov: &[libc::iovec],
    to: Option<&Addr>,
    control: &[u8],
) -> Result<usize, i32> {
    // SAFETY: all pointers in the header are good for the call, as long as it says; nothing is written through them.
    unsafe {
        let mut m: libc::msghdr = std::mem::zeroed();
        if let Some(a) = to {
            m.msg_name = a.ptr() as *mut libc::c_void;
            m.msg_namelen = a.len();
        }
        m.msg_iov = iov.as_ptr() as *mut libc::iovec;
        m.msg_iovlen = iov.len() as _;
        if !control.is_empty() {
            m.msg_control = control.as_ptr() as *mut libc::c_void;
            m.msg_controllen = control.len() as _;
        }
        bytes(libc::sendmsg(
            fd,
            &m,
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
        ))
    }
}

/// Sends at most `n` bytes of the file `from`, from `*at` on, which is moved on.
pub fn send_file(fd: RawFd, from: RawFd, at: &mut i64, n: usize) -> Result<usize, i32> {
    // SAFETY: a plain call; the offset is good for it.
    bytes(unsafe { libc::sendfile(fd, from, at, n) })
}

/// Sets an option of the kernel.
pub fn set_option(fd: RawFd, level: i32, name: i32, value: &[u8]) -> Result<(), i32> {
    // SAFETY: as many bytes as the slice has.
    unit(unsafe {
        libc::setsockopt(
            fd,
            level,
            name,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    })
}

/// Reads an option of the kernel into `to`; how many bytes it has.
pub fn get_option(fd: RawFd, level: i32, name: i32, to: &mut [u8]) -> Result<usize, i32> {
    let mut len = to.len() as libc::socklen_t;
    // SAFETY: as many bytes as the slice has.
    unit(unsafe { libc::getsockopt(fd, level, name, to.as_mut_ptr().cast(), &mut len) })?;
    Ok((len as usize).min(to.len()))
}

/// Reads an option that is an `int`; one of fewer bytes is one the rest of which is zero.
pub fn get_int(fd: RawFd, level: i32, name: i32) -> Result<i32, i32> {
    let mut b = [0u8; size_of::<i32>()];
    get_option(fd, level, name, &mut b)?;
    Ok(i32::from_ne_bytes(b))
}

/// The control messages in a buffer that the kernel filled: level, type, data.
pub fn control_messages(buf: &[u8]) -> impl Iterator<Item = (i32, i32, &[u8])> {
    let head = size_of::<libc::cmsghdr>();
    // Data follow the head, aligned as the head is.
    let align = |n: usize| n.next_multiple_of(size_of::<usize>());
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = buf.get(at..)?;
        if rest.len() < head {
            return None;
        }
        // SAFETY: as many bytes as a head has; read unaligned.
        let h: libc::cmsghdr = unsafe { rest.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        let len = h.cmsg_len as usize;
        let data = rest.get(align(head)..len)?;
        at += align(len);
        Some((h.cmsg_level, h.cmsg_type, data))
    })
}

/// Adds a control message that holds an `int`.
pub fn push_control(buf: &mut Vec<u8>, level: i32, kind: i32, value: i32) {
    let head = size_of::<libc::cmsghdr>();
    // SAFETY: plain integers, of which zeros are good.
    let mut h: libc::cmsghdr = unsafe { std::mem::zeroed() };
    h.cmsg_level = level;
    h.cmsg_type = kind;
    h.cmsg_len = (head.next_multiple_of(size_of::<usize>()) + size_of::<i32>()) as _;
    // SAFETY: all bytes of the head, which has no padding here, are initialised.
    buf.extend_from_slice(unsafe { std::slice::from_raw_parts((&raw const h).cast::<u8>(), head) });
    buf.resize(buf.len().next_multiple_of(size_of::<usize>()), 0);
    buf.extend_from_slice(&value.to_ne_bytes());
    buf.resize(buf.len().next_multiple_of(size_of::<usize>()), 0);
}
