//! System calls on sockets that Linux has in its own way. `sock_macos.rs` has the same functions.

use super::super::sockaddr::SockAddr;
use super::{Batch, Came, Message, retry, unit};
use purlin_kernel::os::failing::{self, Call};
use std::ffi::CStr;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Alignment of control messages in bytes.
pub(super) const CONTROL_ALIGNMENT: usize = size_of::<usize>();

const FLAGS: i32 = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;

/// Makes a non-blocking socket.
pub(super) fn socket(domain: i32, kind: i32, protocol: i32) -> Result<OwnedFd, i32> {
    // SAFETY: a plain call; the new descriptor belongs to nobody else.
    unsafe {
        let fd = libc::socket(domain, kind | FLAGS, protocol);
        unit(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Accepts a connection as a non-blocking socket.
pub(super) fn accept(fd: RawFd) -> Result<(OwnedFd, SockAddr), i32> {
    // SAFETY: the room and its length are valid for the call; the new descriptor belongs to nobody
    // else.
    unsafe {
        let (s, a) = SockAddr::filled(|p, len| libc::accept4(fd, p, len, FLAGS));
        unit(s)?;
        Ok((OwnedFd::from_raw_fd(s), a))
    }
}

/// Runs `f` while this thread is in the network namespace that `file` names.
pub(super) fn in_namespace<T>(file: &CStr, f: impl FnOnce() -> Result<T, i32>) -> Result<T, i32> {
    let open = |p: &CStr| {
        // SAFETY: the path is terminated; the new descriptor belongs to nobody else.
        unsafe {
            let fd = libc::open(p.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            unit(fd).map(|()| OwnedFd::from_raw_fd(fd))
        }
    };
    // SAFETY: a plain call on an open descriptor; namespaces belong to the calling thread.
    let enter = |ns: &OwnedFd| unsafe { unit(libc::setns(ns.as_raw_fd(), libc::CLONE_NEWNET)) };
    let here = open(c"/proc/thread-self/ns/net")?;
    let there = open(file)?;
    enter(&there)?;
    let r = f();
    if let Err(e) = enter(&here) {
        // All that the thread opens from now on would be in the wrong namespace.
        let e = std::io::Error::from_raw_os_error(e);
        purlin_term::say::refused(format_args!("cannot return to the network namespace: {e}"));
    }
    r
}

/// The system call behind [`recv_msgs`](super::recv_msgs).
pub(super) fn recv_msgs(
    fd: RawFd,
    count: usize,
    room: usize,
    control_room: usize,
    flags: i32,
) -> Result<Batch, i32> {
    // Untouched zero pages take no memory yet.
    let mut data = vec![0; count * room];
    let mut control = vec![0; count * control_room];
    // One pointer for all parts: to borrow the vector again would end an earlier one.
    let (data_at, control_at) = (data.as_mut_ptr(), control.as_mut_ptr());
    let mut parts: Vec<libc::iovec> = (0..count)
        .map(|i| libc::iovec {
            iov_base: data_at.wrapping_add(i * room).cast(),
            iov_len: room,
        })
        .collect();
    // SAFETY: plain bytes, for which zeros are valid.
    let mut names: Vec<libc::sockaddr_storage> = vec![unsafe { std::mem::zeroed() }; count];
    let mut heads: Vec<libc::mmsghdr> = (0..count)
        .map(|i| {
            // SAFETY: integers and null pointers, for which zeros are valid.
            let mut head: libc::mmsghdr = unsafe { std::mem::zeroed() };
            head.msg_hdr.msg_name = (&raw mut names[i]).cast();
            head.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as _;
            head.msg_hdr.msg_iov = &raw mut parts[i];
            head.msg_hdr.msg_iovlen = 1;
            if control_room != 0 {
                head.msg_hdr.msg_control = control_at.wrapping_add(i * control_room).cast();
                head.msg_hdr.msg_controllen = control_room as _;
            }
            head
        })
        .collect();
    // SAFETY: the number of heads is right. Each names room of its own, of the size given, in
    // vectors that do not move.
    let got = retry(|| unsafe {
        let no_limit = std::ptr::null_mut();
        libc::recvmmsg(fd, heads.as_mut_ptr(), count as _, flags as _, no_limit) as isize
    })?;
    let came = heads[..got.min(count)]
        .iter()
        .zip(&names)
        .map(|(head, name)| {
            let m = &head.msg_hdr;
            let (_, from) = SockAddr::filled(|to, len| {
                // SAFETY: `to` has room for the largest address, and `name` is no larger.
                unsafe {
                    to.cast::<libc::sockaddr_storage>().write(*name);
                    *len = m.msg_namelen;
                }
            });
            let came = Came {
                from,
                control: (m.msg_controllen as usize).min(control_room),
                flags: m.msg_flags,
            };
            (head.msg_len as usize, came)
        })
        .collect();
    Ok(Batch {
        data,
        control,
        room,
        control_room,
        came,
    })
}

/// The system call behind [`send_msgs`](super::send_msgs).
///
/// # Safety
/// As for [`send_msgs`](super::send_msgs).
pub(super) unsafe fn send_msgs(
    fd: RawFd,
    messages: &mut [Message],
    flags: i32,
) -> Result<Vec<usize>, i32> {
    let mut heads: Vec<libc::mmsghdr> = messages
        .iter_mut()
        .map(|message| {
            // SAFETY: integers and null pointers, for which zeros are valid.
            let mut head: libc::mmsghdr = unsafe { std::mem::zeroed() };
            let m = &mut head.msg_hdr;
            if let Some(to) = &message.to {
                m.msg_name = to.ptr() as *mut libc::c_void;
                m.msg_namelen = to.size();
            }
            m.msg_iov = message.parts.as_mut_ptr();
            m.msg_iovlen = message.parts.len() as _;
            if !message.control.is_empty() {
                m.msg_control = message.control.as_mut_ptr().cast();
                m.msg_controllen = message.control.len() as _;
            }
            head
        })
        .collect();
    let flags = flags | libc::MSG_NOSIGNAL;
    failing::call(Call::Send, || Ok(()))?;
    // SAFETY: the number of heads is right, and their pointers are valid for the call; the caller
    // vouches for the bytes.
    let sent = retry(|| unsafe {
        libc::sendmmsg(fd, heads.as_mut_ptr(), heads.len() as _, flags as _) as isize
    })?;
    let sent = &heads[..sent.min(heads.len())];
    Ok(sent.iter().map(|head| head.msg_len as usize).collect())
}

/// Sends at most `n` bytes of the file `from` from offset `at`.
pub(super) fn send_file(fd: RawFd, from: RawFd, mut at: i64, n: usize) -> Result<usize, i32> {
    // SAFETY: a plain call; the offset is valid for it.
    retry(|| unsafe { libc::sendfile(fd, from, &mut at, n) })
}
