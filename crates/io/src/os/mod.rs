//! System calls that several places need: files, sockets and their addresses, network interfaces,
//! other descriptors, terminals, child processes, signals. Errors are the system's numbers, or
//! [`std::io::Error`] where no socket is involved.
//!
//! The calls go to libc rather than to a safe wrapper. Programs choose levels, options and control
//! messages by number, and the kernel's reply to an unknown one is the answer.

pub(crate) mod child;
pub mod descriptor;
pub(crate) mod file_calls;
pub(crate) mod interfaces;
pub(crate) mod kernel_numbers;
pub mod signals;
pub(crate) mod sock;
pub(crate) mod sockaddr;
pub mod terminal;
mod world_files;
mod world_sock;

use crate::posix::{errno_of, last_errno};
use purlin_kernel::os::replay_log::{self, Answer, Asked, Verb};
use std::io;
use std::os::fd::RawFd;

/// The result of a call that returns a number or fails.
#[inline]
pub(crate) fn unit(r: i32) -> Result<(), i32> {
    if r < 0 { Err(last_errno()) } else { Ok(()) }
}

/// The result of a call that returns a number of bytes or fails.
#[inline]
pub(crate) fn bytes(r: isize) -> Result<usize, i32> {
    usize::try_from(r).map_err(|_| last_errno())
}

/// As [`bytes`], for a call that is repeated while signals interrupt it.
#[inline]
pub(crate) fn retry(mut call: impl FnMut() -> isize) -> Result<usize, i32> {
    loop {
        match bytes(call()) {
            Err(libc::EINTR) => {}
            r => return r,
        }
    }
}

/// A recorded or replayed call ([`replay_log`]) whose errors are those of the standard library.
#[inline]
pub(crate) fn door<T: Answer>(
    verb: Verb,
    fd: Option<RawFd>,
    asked: impl FnOnce() -> Asked,
    real: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    match replay_log::is_on() {
        false => real(),
        true => replay_log::call(verb, fd, asked, || real().map_err(|e| errno_of(&e)))
            .map_err(io::Error::from_raw_os_error),
    }
}
