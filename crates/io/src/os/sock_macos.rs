//! System calls on sockets as macOS has them. `sock_linux.rs` has the same functions. This file has
//! been compiled and has never run.

use super::super::last_errno;
use super::super::sockaddr::SockAddr;
use super::{Batch, Message, set_blocking, unit};
use std::ffi::CStr;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Alignment of control messages in bytes.
pub(super) const CONTROL_ALIGNMENT: usize = size_of::<u32>();

/// Makes a new socket one that does not block and that started programs do not inherit. A program
/// that starts in between may inherit it: no call makes such a socket at once.
///
/// # Safety
/// The descriptor is open, and nothing else owns it.
unsafe fn own(fd: RawFd) -> Result<OwnedFd, i32> {
    // SAFETY: by the contract of this function.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: a plain call.
    unit(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    set_blocking(owned.as_raw_fd(), false)?;
    Ok(owned)
}

/// Makes a non-blocking socket.
pub(super) fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, i32> {
    // SAFETY: a plain call; nothing else owns the new descriptor.
    unsafe {
        let fd = libc::socket(domain, kind, protocol);
        unit(fd)?;
        own(fd)
    }
}

/// Accepts a connection as a non-blocking socket.
pub(super) fn accept(fd: RawFd) -> Result<(OwnedFd, SockAddr), i32> {
    // SAFETY: the room and its length are valid for the call; nothing else owns the new descriptor.
    unsafe {
        let (s, a) = SockAddr::filled(|p, len| libc::accept(fd, p, len));
        unit(s)?;
        Ok((own(s)?, a))
    }
}

/// There are no network namespaces.
pub(super) fn in_namespace<T>(_: &CStr, _: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    Err(libc::ENOTSUP)
}

/// No call receives several messages.
pub(super) fn recv_msgs(_: RawFd, _: usize, _: usize, _: usize, _: i32) -> Result<Batch, i32> {
    Err(libc::ENOTSUP)
}

/// No call sends several messages.
///
/// # Safety
/// Nothing is read.
pub(super) unsafe fn send_msgs(_: RawFd, _: &mut [Message], _: i32) -> Result<Vec<usize>, i32> {
    Err(libc::ENOTSUP)
}

/// Sends at most `n` bytes of the file `from` from offset `at`. A call that was interrupted or that
/// filled the socket says how much it has sent.
pub(super) fn send_file(fd: RawFd, from: RawFd, at: i64, n: usize) -> Result<usize, i32> {
    loop {
        let mut len = n as libc::off_t;
        // SAFETY: a plain call; the length is valid for it.
        let r = unsafe { libc::sendfile(from, fd, at, &mut len, std::ptr::null_mut(), 0) };
        match if r < 0 { last_errno() } else { 0 } {
            0 => return Ok(len as usize),
            libc::EAGAIN | libc::EINTR if len > 0 => return Ok(len as usize),
            libc::EINTR => {}
            e => return Err(e),
        }
    }
}
