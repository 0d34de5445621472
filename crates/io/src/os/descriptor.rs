//! System calls on descriptors other than sockets: pipes, files, gathering writes, and whether a
//! descriptor is ready.

use crate::os::{door, retry, world_sock};
use purlin_kernel::os::replay_log::{self, Asked, Verb};
use purlin_kernel::os::{clock, exploring, world};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub(super) fn check(r: libc::c_int) -> io::Result<libc::c_int> {
    if r < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(r)
    }
}

/// Descriptors below this number have a meaning in child processes, so no pipe of ours may have
/// such a number.
const FIRST_FREE: RawFd = 5;

/// Makes a pipe, (read end, write end), both closed on exec and numbered outside the range that
/// children use.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (r, w) = io::pipe()?;
    Ok((lift(r.into())?, lift(w.into())?))
}
pub(super) fn lift(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_FREE {
        return Ok(fd);
    }
    // SAFETY: duplicates an open descriptor; the new one belongs to nobody else.
    unsafe {
        let d = check(libc::fcntl(
            fd.as_raw_fd(),
            libc::F_DUPFD_CLOEXEC,
            FIRST_FREE,
        ))?;
        Ok(OwnedFd::from_raw_fd(d))
    }
}

/// Sets whether reads and writes on the open file behind `fd` return instead of blocking.
pub(crate) fn set_nonblocking(fd: RawFd, on: bool) -> io::Result<()> {
    // SAFETY: plain system calls.
    unsafe {
        let f = check(libc::fcntl(fd, libc::F_GETFL))?;
        let g = if on {
            f | libc::O_NONBLOCK
        } else {
            f & !libc::O_NONBLOCK
        };
        if f != g {
            check(libc::fcntl(fd, libc::F_SETFL, g))?;
        }
    }
    Ok(())
}

/// Maximum number of descriptors. Every valid descriptor is below it.
pub(crate) fn max_files() -> i64 {
    // SAFETY: plain system call.
    match unsafe { libc::sysconf(libc::_SC_OPEN_MAX) } {
        n if n > 0 => n,
        _ => 1024,
    }
}

/// As [`retry`], with an error of the standard library.
fn repeated(call: impl FnMut() -> isize) -> io::Result<usize> {
    retry(call).map_err(io::Error::from_raw_os_error)
}

/// Reads the bytes that are available.
pub fn read(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    if let Some(of) = world::thing(fd) {
        let data = world_sock::recv(of, buf.len(), 0).map_err(io::Error::from_raw_os_error)?;
        buf[..data.len()].copy_from_slice(&data);
        return Ok(data.len());
    }
    let (to, room) = (buf.as_mut_ptr(), buf.len());
    // SAFETY: the buffer is valid for its length.
    let real = || retry(|| unsafe { libc::read(fd, to.cast(), room) });
    let r = match replay_log::knows(fd) {
        false => real(),
        // SAFETY: the buffer is valid for its length, and `real` fills it.
        true => unsafe { replay_log::fills(Verb::Read, fd, Asked::default, to, room, real) },
    };
    r.map_err(io::Error::from_raw_os_error)
}

/// Writes parts in one system call, at most `limit` bytes. There may be at most
/// [`IOV_MAX`](libc::UIO_MAXIOV) parts.
pub fn write<'a>(
    fd: RawFd,
    parts: impl Iterator<Item = &'a [u8]>,
    limit: usize,
) -> io::Result<usize> {
    let mut iov = smallvec::SmallVec::<[libc::iovec; 8]>::new();
    let mut left = limit;
    for p in parts {
        let n = p.len().min(left);
        if n == 0 {
            break;
        }
        iov.push(libc::iovec {
            iov_base: p.as_ptr() as *mut _,
            iov_len: n,
        });
        left -= n;
    }
    if let Some(of) = world::thing(fd) {
        return world_sock::send(of, slices(&iov), None).map_err(io::Error::from_raw_os_error);
    }
    // SAFETY: each entry is a live slice.
    let real = || repeated(|| unsafe { libc::writev(fd, iov.as_ptr(), iov.len() as libc::c_int) });
    match replay_log::knows(fd) {
        false => real(),
        true => door(Verb::Write, Some(fd), || Asked::data(slices(&iov)), real),
    }
}

/// The bytes of parts that are written.
pub(super) fn slices(parts: &[libc::iovec]) -> impl Iterator<Item = &[u8]> {
    let all = parts.iter().filter(|p| p.iov_len > 0);
    // SAFETY: the parts are bytes that may be read for as long as they are borrowed.
    all.map(|p| unsafe { std::slice::from_raw_parts(p.iov_base.cast(), p.iov_len) })
}

/// Whether `fd` can be read (or written) without blocking, after waiting at most `timeout_ms` (-1:
/// for ever). Errors and hang-ups count as ready.
pub fn poll_one(fd: RawFd, write: bool, timeout_ms: i32) -> bool {
    if let Some(of) = world::thing(fd) {
        return world_sock::is_ready(of, write);
    }
    let mut p = libc::pollfd {
        fd,
        events: if write { libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    };
    let mut real = || {
        // SAFETY: one valid entry.
        let n = retry(|| unsafe { libc::poll(&mut p, 1, timeout_ms) } as isize).ok();
        n.is_none_or(|n| n > 0)
    };
    match replay_log::knows(fd) {
        false => real(),
        true => {
            replay_log::call(Verb::Room, Some(fd), Asked::default, || Ok(real())).unwrap_or(true)
        }
    }
}

/// Milliseconds of real time for which a descriptor is waited for before virtual time passes.
const REAL_MS: i32 = 2;

/// Whether `fd` can be read (or written) before the node's clock comes to `until` (None: for ever).
pub fn ready_by(fd: RawFd, write: bool, until: Option<i64>) -> bool {
    let Some(until) = until else {
        return poll_one(fd, write, -1);
    };
    let left = clock::left_until(until).as_micros().div_ceil(1000);
    let ms = i32::try_from(left).unwrap_or(i32::MAX);
    if !exploring::on() {
        return poll_one(fd, write, ms);
    }
    let ready = poll_one(fd, write, ms.min(REAL_MS));
    if !ready {
        clock::skip_to(until);
    }
    ready
}

/// Whether the other side of `fd` has hung up. None if the descriptor cannot tell.
pub fn hung_up(fd: RawFd) -> io::Result<Option<bool>> {
    if let Some(of) = world::thing(fd) {
        return Ok(Some(world_sock::hung_up(of)));
    }
    let mut p = libc::pollfd {
        fd,
        events: libc::POLLHUP,
        revents: 0,
    };
    // SAFETY: one valid entry.
    Ok(match check(unsafe { libc::poll(&mut p, 1, 0) })? {
        0 => Some(false),
        _ if p.revents & libc::POLLHUP != 0 => Some(true),
        _ => None,
    })
}

/// The kind of file behind a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    /// Never blocks.
    Regular,
    Pipe,
    Terminal,
    Other,
}

/// The kind of file behind `fd`. None if it is not open.
pub(crate) fn file_kind(fd: RawFd) -> Option<FileKind> {
    // SAFETY: an out parameter of the right type.
    let st = unsafe {
        let mut st: libc::stat = std::mem::zeroed();
        check(libc::fstat(fd, &mut st)).ok()?;
        st
    };
    Some(match st.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR | libc::S_IFBLK => FileKind::Regular,
        libc::S_IFIFO => FileKind::Pipe,
        libc::S_IFCHR if is_terminal(fd) => FileKind::Terminal,
        _ => FileKind::Other,
    })
}

/// Opens the file behind `fd` again for writing, non-blocking, so that the mode of a file shared
/// with other programs does not change. None if that cannot be done.
pub(crate) fn open_again_for_writing(fd: RawFd, kind: FileKind) -> Option<OwnedFd> {
    if world::knows(fd) {
        return None;
    }
    let path = match kind {
        FileKind::Terminal => terminal_name(fd)?,
        #[cfg(target_os = "linux")]
        FileKind::Pipe => CString::new(format!("/proc/self/fd/{fd}")).ok()?,
        _ => return None,
    };
    let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: a valid path; the new descriptor belongs to nobody else.
    let fd = unsafe {
        let fd = check(libc::open(path.as_ptr(), flags)).ok()?;
        lift(OwnedFd::from_raw_fd(fd)).ok()?
    };
    replay_log::unname(fd.as_raw_fd());
    Some(fd)
}

/// Opens a file for a port that is named after it.
pub fn open_file(path: &[u8], read: bool, write: bool) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let flags = match (read, write) {
        (true, false) => libc::O_RDONLY,
        (false, true) => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
        _ => libc::O_RDWR | libc::O_CREAT,
    };
    let asked = || Asked::text(format!("{} {flags:x}", path.to_string_lossy()));
    let fd = door(Verb::Open, None, asked, || {
        // SAFETY: a valid path; the new descriptor belongs to nobody else.
        unsafe {
            let fd = check(libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o666))?;
            lift(OwnedFd::from_raw_fd(fd))
        }
    })?;
    replay_log::name('f', &[fd.as_raw_fd()]);
    Ok(fd)
}

pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: plain system call.
    unsafe { libc::isatty(fd) == 1 }
}

fn terminal_name(fd: RawFd) -> Option<CString> {
    let mut buf = [0 as libc::c_char; 256];
    // SAFETY: the buffer has that length, and the result ends with a zero byte.
    unsafe {
        (libc::ttyname_r(fd, buf.as_mut_ptr(), buf.len()) == 0)
            .then(|| CStr::from_ptr(buf.as_ptr()).to_owned())
    }
}
