//! System calls on files, by descriptor and by name. Each returns the system's result or the number
//! of an error, and is repeated while signals interrupt it.
//!
//! # Invariant
//! Module `prim_file` reaches files by these calls alone, except where a scheduler reads what the
//! system has in memory (`file/at_once.rs`, `file/cached.rs`), which the race finder turns off. So
//! each call can be [made to fail](purlin_kernel::os::failing).

use super::{retry, unit, world_files};
use crate::posix::{errno_of, last_errno};
use purlin_kernel::os::failing::{self, Call};
use purlin_kernel::os::world::{self, messages::FileStep};
use purlin_term::plants::{self, Plant};
use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

fn as_path(c: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(c.to_bytes()))
}

/// Makes a call of the standard library, unless it is to fail.
fn std_call<T>(call: Call, real: impl FnOnce() -> io::Result<T>) -> Result<T, i32> {
    failing::file(call, || real().map_err(|e| errno_of(&e)))
}

/// Opens a file, with a descriptor that started programs do not inherit.
pub(crate) fn open(path: &CStr, flags: i32, mode: u32) -> Result<OwnedFd, i32> {
    if world::is_on() && flags & (libc::O_WRONLY | libc::O_RDWR) != 0 {
        world::note_written(path.to_bytes());
        world_files::begins_at(path, || peek_at(path, true).is_err())?;
    }
    let file = failing::file(Call::Open, || {
        // SAFETY: the path is terminated and lives for the call.
        let open = || unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, mode) as isize };
        let fd = retry(open)?;
        // SAFETY: opened here and known to nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    })?;
    world_files::opened(path, file.as_raw_fd(), flags, mode);
    Ok(file)
}

/// Duplicates a descriptor.
pub(crate) fn duplicate(fd: RawFd) -> Result<RawFd, i32> {
    // SAFETY: a plain call.
    retry(|| unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) as isize }).map(|fd| fd as RawFd)
}

/// Whether a descriptor is open.
pub(crate) fn is_open(fd: RawFd) -> bool {
    // SAFETY: a plain call.
    unsafe { libc::fcntl(fd, libc::F_GETFL) != -1 || last_errno() != libc::EBADF }
}

/// Closes a descriptor. It is gone even if that fails, so an interrupted call is not repeated.
///
/// # Safety
/// Nobody else uses or closes the descriptor.
pub(crate) unsafe fn close(fd: RawFd) -> Result<(), i32> {
    world_files::closes(fd);
    // SAFETY: by the contract of this function.
    let closed = unit(unsafe { libc::close(fd) });
    failing::file(Call::Close, || closed)
}

/// Reads at most `room` bytes to `to`, from the position of the descriptor or from `at`.
///
/// # Safety
/// `to` is valid for writes of `room` bytes.
pub(crate) unsafe fn read(
    fd: RawFd,
    to: *mut u8,
    room: usize,
    at: Option<i64>,
) -> Result<usize, i32> {
    let room = failing::file_bytes(Call::Read, room)?;
    // SAFETY: by the contract of this function.
    retry(|| unsafe {
        match at {
            None => libc::read(fd, to.cast(), room),
            Some(at) => libc::pread(fd, to.cast(), room, at),
        }
    })
}

/// Writes parts in one system call, at the position of the descriptor or at `at`. There is at least
/// one part. Returns the number of bytes written.
///
/// # Safety
/// The parts are bytes that may be read.
pub(crate) unsafe fn write(
    fd: RawFd,
    parts: &[libc::iovec],
    at: Option<i64>,
) -> Result<usize, i32> {
    let all = parts.iter().map(|p| p.iov_len).sum();
    world_files::begins(true)?;
    let some = failing::file_bytes(Call::Write, all)?;
    // SAFETY: by the contract of this function; no more bytes were written than there are.
    unsafe {
        let n = match some < all {
            false => retry(|| write_parts(fd, parts, at)),
            true => retry(|| write_parts(fd, &first_bytes(parts, some), at)),
        }?;
        world_files::written(fd, parts, n, at);
        Ok(n)
    }
}

fn first_bytes(parts: &[libc::iovec], n: usize) -> Vec<libc::iovec> {
    let mut left = n;
    let mut some = parts.to_vec();
    for p in &mut some {
        p.iov_len = p.iov_len.min(left);
        left -= p.iov_len;
    }
    some
}

/// The system call behind [`write`].
///
/// # Safety
/// As for [`write`].
unsafe fn write_parts(fd: RawFd, parts: &[libc::iovec], at: Option<i64>) -> isize {
    let count = parts.len() as i32;
    // SAFETY: by the contract of this function.
    unsafe {
        let n = match at {
            None => libc::writev(fd, parts.as_ptr(), count),
            Some(at) => libc::pwritev(fd, parts.as_ptr(), count, at),
        };
        if n < 0 && count > 1 && last_errno() == libc::EINVAL {
            // More bytes than a byte count can express: writes the first part alone.
            let (p, len) = (parts[0].iov_base, parts[0].iov_len.min(i32::MAX as usize));
            return match at {
                None => libc::write(fd, p, len),
                Some(at) => libc::pwrite(fd, p, len, at),
            };
        }
        if let Some(at) = at
            && n > 0
            && plants::due(Plant::WriteSpoils, 300)
        {
            libc::pwrite(fd, [0u8].as_ptr().cast(), 1, at + n as i64 - 1);
        }
        n
    }
}

/// Moves the position of a descriptor, and returns it.
pub(crate) fn seek(fd: RawFd, offset: i64, whence: i32) -> Result<i64, i32> {
    // SAFETY: a plain call.
    match unsafe { libc::lseek(fd, offset, whence) } {
        at if at < 0 => Err(last_errno()),
        at => Ok(at),
    }
}

/// Writes what was written through to the disk, or the data alone.
pub(crate) fn sync(fd: RawFd, data_only: bool) -> Result<(), i32> {
    world_files::begins(false)?;
    failing::file(Call::Sync, || system::sync(fd, data_only))?;
    world_files::synced(fd);
    Ok(())
}

/// Cuts a file off at the position of its descriptor.
pub(crate) fn truncate(fd: RawFd) -> Result<(), i32> {
    world_files::begins(false)?;
    failing::file(Call::Write, || {
        let at = seek(fd, 0, libc::SEEK_CUR)?;
        // SAFETY: a plain call.
        unit(unsafe { libc::ftruncate(fd, at) })
    })?;
    world_files::resized(fd);
    Ok(())
}

/// Makes room for a part of a file.
pub(crate) fn allocate(fd: RawFd, at: i64, len: i64) -> Result<(), i32> {
    world_files::begins(true)?;
    failing::file(Call::Write, || system::allocate(fd, at, len))?;
    world_files::resized(fd);
    Ok(())
}

/// How a part of a file will be used.
#[derive(Clone, Copy)]
pub(crate) enum Advice {
    Normal,
    Random,
    Sequential,
    WillNeed,
    DontNeed,
    NoReuse,
}

/// Says how a part of a file will be used. That it cannot be taken is no error.
pub(crate) fn advise(fd: RawFd, at: i64, len: i64, how: Advice) {
    system::advise(fd, at, len, how);
}

/// Calls of Linux.
#[cfg(target_os = "linux")]
mod system {
    use super::{Advice, RawFd, unit};

    pub(super) fn sync(fd: RawFd, data_only: bool) -> Result<(), i32> {
        // SAFETY: plain calls.
        unit(unsafe {
            match data_only {
                true => libc::fdatasync(fd),
                false => libc::fsync(fd),
            }
        })
    }

    pub(super) fn allocate(fd: RawFd, at: i64, len: i64) -> Result<(), i32> {
        loop {
            // SAFETY: a plain call, which returns the error itself.
            match unsafe { libc::posix_fallocate(fd, at, len) } {
                0 => return Ok(()),
                libc::EINTR => {}
                e => return Err(e),
            }
        }
    }

    pub(super) fn advise(fd: RawFd, at: i64, len: i64, how: Advice) {
        let how = match how {
            Advice::Normal => libc::POSIX_FADV_NORMAL,
            Advice::Random => libc::POSIX_FADV_RANDOM,
            Advice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
            Advice::WillNeed => libc::POSIX_FADV_WILLNEED,
            Advice::DontNeed => libc::POSIX_FADV_DONTNEED,
            Advice::NoReuse => libc::POSIX_FADV_NOREUSE,
        };
        // SAFETY: a plain call.
        unsafe { libc::posix_fadvise(fd, at, len, how) };
    }
}

/// Calls of macOS, which have been compiled and have never run.
#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Advice, RawFd, seek, unit};

    /// Reaches the disk rather than its cache, as stock does here, for the data alone too.
    pub(super) fn sync(fd: RawFd, _: bool) -> Result<(), i32> {
        // SAFETY: a plain call.
        unit(unsafe { libc::fcntl(fd, libc::F_FULLFSYNC) })
    }

    /// Room can be made at the end of a file only. The file then ends behind the part.
    pub(super) fn allocate(fd: RawFd, at: i64, len: i64) -> Result<(), i32> {
        let end = at.checked_add(len).ok_or(libc::EINVAL)?;
        if at < 0 || len < 0 {
            return Err(libc::EINVAL);
        }
        let here = seek(fd, 0, libc::SEEK_CUR)?;
        let old = seek(fd, 0, libc::SEEK_END)?;
        seek(fd, here, libc::SEEK_SET)?;
        if end <= old {
            return Ok(());
        }
        let ask = |flags| {
            let mut room = libc::fstore_t {
                fst_flags: flags,
                fst_posmode: libc::F_PEOFPOSMODE,
                fst_offset: 0,
                fst_length: end - old,
                fst_bytesalloc: 0,
            };
            // SAFETY: the structure that the call takes.
            unit(unsafe { libc::fcntl(fd, libc::F_PREALLOCATE, &mut room) })
        };
        ask(libc::F_ALLOCATECONTIG).or_else(|_| ask(libc::F_ALLOCATEALL))?;
        // SAFETY: a plain call.
        unit(unsafe { libc::ftruncate(fd, end) })
    }

    /// There is no such call. Advice need not be taken.
    pub(super) fn advise(_: RawFd, _: i64, _: i64, _: Advice) {}
}

/// Returns the properties of the file behind a descriptor, for the runtime's own use.
pub(crate) fn peek(fd: RawFd) -> Result<libc::stat, i32> {
    let mut st = MaybeUninit::uninit();
    // SAFETY: `st` has room for the result, which the call fills completely if it succeeds.
    unsafe {
        unit(libc::fstat(fd, st.as_mut_ptr()))?;
        Ok(st.assume_init())
    }
}

/// Does what [`peek`] does, for a program that asks.
pub(crate) fn status_of(fd: RawFd) -> Result<libc::stat, i32> {
    failing::file(Call::Stat, || peek(fd))
}

/// Returns the properties of a file by its name, for the runtime's own use.
pub(crate) fn peek_at(path: &CStr, follow: bool) -> Result<libc::stat, i32> {
    let mut st = MaybeUninit::uninit();
    // SAFETY: the path is terminated; `st` has room for the result, which the call fills completely
    // if it succeeds.
    unsafe {
        unit(match follow {
            true => libc::stat(path.as_ptr(), st.as_mut_ptr()),
            false => libc::lstat(path.as_ptr(), st.as_mut_ptr()),
        })?;
        Ok(st.assume_init())
    }
}

/// Returns the properties of a file, and how it may be accessed: bit 0 reading, bit 1 writing.
pub(crate) fn status(path: &CStr, follow: bool) -> Result<(libc::stat, u8), i32> {
    failing::file(Call::Stat, || {
        let st = peek_at(path, follow)?;
        // SAFETY: the path is terminated.
        let can = |how, bit| unsafe { libc::access(path.as_ptr(), how) == 0 } as u8 * bit;
        Ok((st, can(libc::R_OK, 1) | can(libc::W_OK, 2)))
    })
}

/// Returns the name that a symbolic link has.
pub(crate) fn read_link(path: &CStr) -> Result<PathBuf, i32> {
    std_call(Call::Stat, || std::fs::read_link(as_path(path)))
}

/// Sets the mode of a file. If its set-id bits are refused, the others are still set.
pub(crate) fn set_mode(path: &CStr, mode: u32) -> Result<(), i32> {
    failing::file(Call::Chmod, || {
        // SAFETY: the path is terminated.
        let chmod = |mode| unit(unsafe { libc::chmod(path.as_ptr(), mode as libc::mode_t) });
        chmod(mode & 0o6777).or_else(|_| chmod(mode & 0o777))
    })
}

/// Sets the owner and the group of a file. -1 leaves one unchanged.
pub(crate) fn set_owner(path: &CStr, uid: u32, gid: u32) -> Result<(), i32> {
    std_call(Call::Chmod, || {
        std::os::unix::fs::chown(as_path(path), Some(uid), Some(gid))
    })
}

/// Sets the times of the last access and the last change, in seconds.
pub(crate) fn set_times(path: &CStr, accessed: i64, modified: i64) -> Result<(), i32> {
    let times = [accessed, modified].map(|s| libc::timespec {
        tv_sec: s,
        tv_nsec: 0,
    });
    failing::file(Call::Chmod, || {
        // SAFETY: the path is terminated, and there are two times.
        unit(unsafe { libc::utimensat(libc::AT_FDCWD, path.as_ptr(), times.as_ptr(), 0) })
    })
}

/// Lists a folder.
pub(crate) fn list(path: &CStr) -> Result<std::fs::ReadDir, i32> {
    std_call(Call::List, || std::fs::read_dir(as_path(path)))
}

/// Gives a file another name.
pub(crate) fn rename(from: &CStr, to: &CStr) -> Result<(), i32> {
    world_files::begins_at(from, || false)?;
    world_files::also_at(to);
    std_call(Call::Rename, || std::fs::rename(as_path(from), as_path(to)))?;
    world_files::named(FileStep::Renamed, from, Some(to));
    Ok(())
}

/// Gives a file a further name.
pub(crate) fn link(old: &CStr, new: &CStr) -> Result<(), i32> {
    world_files::begins_at(old, || true)?;
    std_call(Call::Rename, || {
        std::fs::hard_link(as_path(old), as_path(new))
    })?;
    world_files::named(FileStep::Linked, old, Some(new));
    Ok(())
}

/// Makes a symbolic link.
pub(crate) fn link_softly(old: &CStr, new: &CStr) -> Result<(), i32> {
    world_files::begins(true)?;
    std_call(Call::Rename, || {
        std::os::unix::fs::symlink(as_path(old), as_path(new))
    })?;
    world_files::named(FileStep::LinkedSoftly, new, Some(old));
    Ok(())
}

/// Makes a folder.
pub(crate) fn make_dir(path: &CStr) -> Result<(), i32> {
    world_files::begins(true)?;
    std_call(Call::Mkdir, || std::fs::create_dir(as_path(path)))?;
    world_files::named(FileStep::MadeFolder, path, None);
    Ok(())
}

/// Removes the name of a file.
pub(crate) fn unlink(path: &CStr) -> Result<(), i32> {
    world_files::begins_at(path, || false)?;
    std_call(Call::Unlink, || std::fs::remove_file(as_path(path)))?;
    world_files::named(FileStep::Removed, path, None);
    Ok(())
}

/// Removes an empty folder.
pub(crate) fn remove_dir(path: &CStr) -> Result<(), i32> {
    world_files::begins(false)?;
    std_call(Call::Unlink, || std::fs::remove_dir(as_path(path)))?;
    world_files::named(FileStep::Removed, path, None);
    Ok(())
}

/// Returns the current folder.
pub(crate) fn current_dir() -> Result<PathBuf, i32> {
    std::env::current_dir().map_err(|e| errno_of(&e))
}

/// Sets the current folder.
pub(crate) fn set_current_dir(path: &CStr) -> Result<(), i32> {
    std::env::set_current_dir(as_path(path)).map_err(|e| errno_of(&e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::sock::iovec;

    #[test]
    fn the_first_bytes_of_parts_are_kept() {
        let parts = [iovec(b"abc"), iovec(b"de"), iovec(b"f")];
        let lengths = |n| -> Vec<usize> {
            let some = first_bytes(&parts, n);
            some.iter().map(|p| p.iov_len).collect()
        };
        assert_eq!(lengths(4), [3, 1, 0]);
        assert_eq!(lengths(2), [2, 0, 0]);
        assert_eq!(lengths(6), [3, 2, 1]);
    }

    #[test]
    fn files_are_written_read_and_removed() {
        let path = std::env::temp_dir().join(format!("purlin-doors-{}", std::process::id()));
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).expect("a name");
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        let f = open(&name, flags, 0o600).expect("it opens");
        let fd = f.as_raw_fd();
        let parts = [iovec(b"ab"), iovec(b"cd")];
        let mut to = [0; 8];
        // SAFETY: the parts may be read, and the array has that many bytes.
        unsafe {
            assert_eq!(write(fd, &parts, None), Ok(4));
            assert_eq!(read(fd, to.as_mut_ptr(), to.len(), Some(1)), Ok(3));
        }
        assert_eq!(&to[..3], b"bcd");
        assert_eq!(
            (sync(fd, true), seek(fd, 2, libc::SEEK_SET)),
            (Ok(()), Ok(2))
        );
        assert_eq!(truncate(fd), Ok(()));
        assert_eq!(
            status(&name, true).map(|(st, access)| (st.st_size, access)),
            Ok((2, 3))
        );
        assert_eq!(unlink(&name), Ok(()));
        assert_eq!(peek_at(&name, true).err(), Some(libc::ENOENT));
    }
}
