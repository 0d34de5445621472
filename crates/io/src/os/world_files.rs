//! Tells the coordinator of a world what this node does with files, so that a loss of power can
//! take back what was not synced, and a disk can fail. See [`FileStep`].
//!
//! Only files that are opened for writing are followed, and changes of names.

use crate::os::file_calls;
use purlin_kernel::os::world::{
    self,
    messages::{FileCall, FileStep, open_bits},
};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// The largest file that was there before and can be followed, and the most bytes in a step.
const MOST_BYTES: usize = 16 << 20;

/// Files that the coordinator knows already.
struct Known {
    /// Paths whose contents were sent, or that were made here.
    paths: BTreeSet<Vec<u8>>,
    /// Descriptors that are followed.
    fds: BTreeSet<RawFd>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    paths: BTreeSet::new(),
    fds: BTreeSet::new(),
});

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Whether files are followed.
#[inline(always)]
pub(super) fn on() -> bool {
    world::is_on() && world::reports_files()
}

fn step(step: FileStep, fd: RawFd, n: u64, path: Vec<u8>, data: Vec<u8>) -> Result<(), i32> {
    world::file(FileCall {
        step,
        fd: fd as u64,
        n,
        path,
        data,
    })
}

/// Returns the whole path, without symbolic links in the names of folders.
fn whole(path: &CStr) -> Option<Vec<u8>> {
    let path = std::path::absolute(OsStr::from_bytes(path.to_bytes())).ok()?;
    let whole = match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => folder.canonicalize().ok()?.join(name),
        _ => PathBuf::from("/"),
    };
    Some(whole.into_os_string().into_encoded_bytes())
}

/// A call is about to change a file or a name. `grows`: it takes room on the disk. An error is the
/// result of the call.
pub(super) fn begins(grows: bool) -> Result<(), i32> {
    match on() {
        true => step(FileStep::Begins, -1, grows.into(), Vec::new(), Vec::new()),
        false => Ok(()),
    }
}

/// As [`begins`], for a call that changes the file or the name at `path`.
pub(super) fn begins_at(path: &CStr, grows: impl FnOnce() -> bool) -> Result<(), i32> {
    if !on() {
        return Ok(());
    }
    begins(grows())?;
    if let Some(path) = whole(path) {
        tell_contents(path);
    }
    Ok(())
}

/// The call that begins replaces the file at `path`, too, if there is one.
pub(super) fn also_at(path: &CStr) {
    if on()
        && let Some(path) = whole(path)
    {
        tell_contents(path);
    }
}

/// Sends the contents of a file that the coordinator does not know.
fn tell_contents(path: Vec<u8>) {
    let name = Path::new(OsStr::from_bytes(&path));
    let is_file = std::fs::symlink_metadata(name).is_ok_and(|m| m.is_file());
    if !known().paths.insert(path.clone()) || !is_file {
        return;
    }
    let mut data = Vec::new();
    let file = std::fs::File::open(name);
    let read = file.and_then(|f| f.take(MOST_BYTES as u64 + 1).read_to_end(&mut data));
    match read {
        Ok(n) if n <= MOST_BYTES => {
            let _ = step(FileStep::Known, -1, 0, path, data);
        }
        _ => world::left(format!("{} is too large to lose a part", name.display())),
    }
}

/// A file was opened.
pub(super) fn opened(path: &CStr, fd: RawFd, flags: i32, mode: u32) {
    if !on() {
        return;
    }
    known().fds.remove(&fd);
    let is_file = |st: libc::stat| st.st_mode & libc::S_IFMT == libc::S_IFREG;
    if flags & (libc::O_WRONLY | libc::O_RDWR) == 0 || !file_calls::peek(fd).is_ok_and(is_file) {
        return;
    }
    if let Some(path) = whole(path) {
        let mut n = u64::from(mode & 0o777) << open_bits::MODE;
        n |= match flags & libc::O_TRUNC {
            0 => 0,
            _ => open_bits::TRUNCATED,
        };
        n |= match flags & (libc::O_SYNC | libc::O_DSYNC) {
            0 => 0,
            _ => open_bits::SYNC,
        };
        let _ = step(FileStep::Opened, fd, n, path, Vec::new());
        known().fds.insert(fd);
    }
}

fn follows(fd: RawFd) -> bool {
    on() && known().fds.contains(&fd)
}

/// The first `n` bytes of the parts were written at `at`, or before the position.
///
/// # Safety
/// The parts are bytes that may be read, at least `n`.
pub(super) unsafe fn written(fd: RawFd, parts: &[libc::iovec], n: usize, at: Option<i64>) {
    if !follows(fd) {
        return;
    }
    let mut data = Vec::with_capacity(n);
    for p in parts {
        let some = p.iov_len.min(n - data.len());
        // SAFETY: by the contract.
        data.extend(unsafe { std::slice::from_raw_parts(p.iov_base.cast::<u8>(), some) });
    }
    let position = || Some(file_calls::seek(fd, 0, libc::SEEK_CUR).ok()? - n as i64);
    let Some(at) = at.or_else(position).and_then(|at| u64::try_from(at).ok()) else {
        return;
    };
    for (i, some) in data.chunks(MOST_BYTES).enumerate() {
        let at = at + (i * MOST_BYTES) as u64;
        let _ = step(FileStep::Written, fd, at, Vec::new(), some.to_vec());
    }
}

/// The length of a file may have changed.
pub(super) fn resized(fd: RawFd) {
    if follows(fd)
        && let Ok(st) = file_calls::peek(fd)
    {
        let _ = step(
            FileStep::Length,
            fd,
            st.st_size as u64,
            Vec::new(),
            Vec::new(),
        );
    }
}

/// A file was synced.
pub(super) fn synced(fd: RawFd) {
    if follows(fd) {
        let _ = step(FileStep::Synced, fd, 0, Vec::new(), Vec::new());
    }
}

/// A descriptor is about to be closed.
pub(super) fn closes(fd: RawFd) {
    if on() && known().fds.remove(&fd) {
        let _ = step(FileStep::Closed, fd, 0, Vec::new(), Vec::new());
    }
}

/// A change of names is done: `path` and, if there are two, the other one.
pub(super) fn named(what: FileStep, path: &CStr, other: Option<&CStr>) {
    if !on() {
        return;
    }
    let other = match (what, other) {
        (FileStep::LinkedSoftly, Some(text)) => Some(text.to_bytes().to_vec()),
        (_, Some(other)) => whole(other),
        (_, None) => Some(Vec::new()),
    };
    if let (Some(path), Some(other)) = (whole(path), other) {
        let mut t = known();
        t.paths.insert(path.clone());
        if what != FileStep::LinkedSoftly && !other.is_empty() {
            t.paths.insert(other.clone());
        }
        drop(t);
        let _ = step(what, -1, 0, path, other);
    }
}
