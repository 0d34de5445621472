//! Names that the system finds in memory, so that a scheduler may ask for them.
//!
//! `openat2` with `RESOLVE_CACHED` walks a path without waiting, and fails with `EAGAIN` where it
//! would have to wait. Some file systems cannot follow a symbolic link without waiting, even if all
//! of it is in memory; overlayfs, on which containers run, is one. For those there is a table of
//! links. A dirty thread that has followed a path which the system cannot walk enters the links on
//! that path, each with the identity of its inode. A scheduler that meets one of these links asks
//! for its inode, which the system knows from memory, and continues with the target in its place.
//!
//! * The content of a link never changes while its inode lives, and a reused inode has another
//!   change time.
//! * Only links that the system itself has followed for this process are entered, so no link is
//!   followed that the system forbids (`protected_symlinks`, `nosymfollow`).
//! * Only links of local file systems are entered: links in `/proc` lead elsewhere than their texts
//!   say.

#![cfg(target_os = "linux")]

use crate::posix::last_errno;
use purlin_term::sync::RwLock;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of entries. The table is cleared when it is full.
const MOST_ENTRIES: usize = 1024;
/// Maximum number of links followed on one path.
const MOST_LINKS: usize = 16;

/// An entry for a path that the system cannot walk in memory.
#[derive(Clone, PartialEq)]
enum Entry {
    /// The path is a link.
    Link(Identity, Box<[u8]>),
    /// The path leads over a link that may not be entered. It is not looked for again.
    Hopeless,
}

/// The identity of a link's inode.
#[derive(Clone, Copy, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, u32),
}

/// The entries by path, as the paths were requested.
static TABLE: RwLock<Option<HashMap<Box<[u8]>, Entry>>> = RwLock::new(None);
static ANY: AtomicBool = AtomicBool::new(false);

/// Opens a path, with any flags that create nothing, if the system finds it in memory; else returns
/// the system's error. None if the system lacks the call or does not permit it.
pub(super) fn open(path: &CStr, flags: i32) -> Option<Result<OwnedFd, i32>> {
    let r = walk(path, flags)?;
    if !matches!(r, Err(libc::EAGAIN)) || !ANY.load(Ordering::Relaxed) {
        return Some(r);
    }
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(next) = over_known_link(&path, flags & libc::O_NOFOLLOW != 0) else {
            break;
        };
        path = next;
        match walk(&path, flags)? {
            Err(libc::EAGAIN) => {}
            r => return Some(r),
        }
    }
    Some(r)
}

/// As [`open`], but follows no links that the system cannot follow in memory.
fn walk(path: &CStr, flags: i32) -> Option<Result<OwnedFd, i32>> {
    static UNKNOWN: AtomicBool = AtomicBool::new(false);
    if UNKNOWN.load(Ordering::Relaxed) || purlin_kernel::os::exploring::on() {
        return None;
    }
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: all zeros are a valid value of it.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = flags as u64;
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the path is terminated, and `how` has the size given.
    let fd = unsafe {
        let size = size_of::<libc::open_how>();
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &how, size)
    };
    if let Ok(fd) = i32::try_from(fd)
        && fd >= 0
    {
        // SAFETY: nobody else knows it.
        return Some(Ok(unsafe { OwnedFd::from_raw_fd(fd) }));
    }
    let e = last_errno();
    if [libc::ENOSYS, libc::EPERM, libc::EINVAL, libc::E2BIG].contains(&e) {
        UNKNOWN.store(true, Ordering::Relaxed);
        return None;
    }
    Some(Err(e))
}

/// The status of an open file that the system has in memory.
pub(super) fn status(fd: &OwnedFd) -> Option<libc::statx> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let (fd, wanted) = (fd.as_raw_fd(), libc::STATX_BASIC_STATS);
    let mut sx = std::mem::MaybeUninit::<libc::statx>::uninit();
    // SAFETY: the path is terminated; `sx` has room for the result, which the call fills completely
    // if it succeeds.
    unsafe {
        let r = libc::statx(fd, c"".as_ptr(), flags, wanted, sx.as_mut_ptr());
        (r >= 0).then(|| sx.assume_init())
    }
}

pub(super) fn device_of(sx: &libc::statx) -> u64 {
    libc::makedev(sx.stx_dev_major, sx.stx_dev_minor)
}

/// The identity of an open file that is a link.
fn link(fd: &OwnedFd) -> Option<Identity> {
    let sx = status(fd)?;
    let is_link = u32::from(sx.stx_mode) & libc::S_IFMT == libc::S_IFLNK;
    is_link.then(|| Identity {
        device: device_of(&sx),
        inode: sx.stx_ino,
        size: sx.stx_size,
        changed: (sx.stx_ctime.tv_sec, sx.stx_ctime.tv_nsec),
    })
}

/// The ends of the components of a path that the system would follow if they are links. `whole`
/// includes the last name.
fn component_ends(path: &[u8], whole: bool) -> impl Iterator<Item = usize> {
    (1..=path.len()).filter(move |&i| {
        let ends = match path.get(i) {
            Some(&c) => c == b'/',
            None => whole,
        };
        ends && path[i - 1] != b'/'
    })
}

/// The path with the link that ends at `end` replaced by its target.
fn over(path: &[u8], end: usize, target: &[u8]) -> Option<CString> {
    let name = path[..end].iter().rposition(|&c| c == b'/');
    let before = match target.first() {
        Some(b'/') => &[],
        _ => &path[..name.map_or(0, |at| at + 1)],
    };
    CString::new([before, target, &path[end..]].concat()).ok()
}

/// The path with the first of its links that is in the table replaced by its target.
fn over_known_link(path: &CStr, nofollow: bool) -> Option<CString> {
    let bytes = path.to_bytes();
    for end in component_ends(bytes, !nofollow) {
        let known = TABLE.read().as_ref()?.get(&bytes[..end]).cloned();
        let Some(Entry::Link(identity, target)) = known else {
            continue;
        };
        let name = CString::new(&bytes[..end]).ok()?;
        let fd = walk(&name, libc::O_PATH | libc::O_NOFOLLOW)?.ok()?;
        if link(&fd) == Some(identity) {
            return over(bytes, end, &target);
        }
    }
    None
}

/// Enters the links on a path, if the system cannot walk it in memory. A dirty thread has found
/// that the path leads to a local file system. `is_local` tests the file systems of links.
pub(super) fn learn(path: &CStr, follow: bool, is_local: impl Fn(i32) -> bool) {
    let flags = libc::O_PATH | if follow { 0 } else { libc::O_NOFOLLOW };
    if !matches!(open(path, flags), Some(Err(libc::EAGAIN))) {
        return;
    }
    let known = |p: &[u8]| TABLE.read().as_ref().and_then(|t| t.get(p).cloned());
    if known(path.to_bytes()) == Some(Entry::Hopeless) {
        return;
    }
    let mut now = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Some(found) = first_link(now.to_bytes(), follow, &is_local) else {
            break;
        };
        let (end, identity, target) = found;
        let next = over(now.to_bytes(), end, &target);
        enter(&now.to_bytes()[..end], Entry::Link(identity, target));
        match next {
            Some(next) => now = next,
            None => break,
        }
    }
    if matches!(open(path, flags), Some(Err(libc::EAGAIN))) {
        enter(path.to_bytes(), Entry::Hopeless);
    }
}

/// The first link on a path: the end of its name, its identity, and its target. None if there is
/// none or it is not local.
fn first_link(
    path: &[u8],
    follow: bool,
    is_local: impl Fn(i32) -> bool,
) -> Option<(usize, Identity, Box<[u8]>)> {
    for end in component_ends(path, follow) {
        let name = CString::new(&path[..end]).ok()?;
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: the path is terminated.
        let fd = unsafe { libc::open(name.as_ptr(), flags) };
        if fd < 0 {
            return None;
        }
        // SAFETY: nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let Some(identity) = link(&fd) else {
            continue;
        };
        if !is_local(fd.as_raw_fd()) {
            return None;
        }
        let mut target = vec![0; libc::PATH_MAX as usize];
        // SAFETY: the path is terminated, and the buffer has the length given.
        let n = unsafe {
            let to = target.as_mut_ptr().cast();
            libc::readlinkat(fd.as_raw_fd(), c"".as_ptr(), to, target.len())
        };
        target.truncate(usize::try_from(n).ok().filter(|&n| n > 0)?);
        return Some((end, identity, target.into()));
    }
    None
}

fn enter(path: &[u8], e: Entry) {
    let mut table = TABLE.write();
    let table = table.get_or_insert_default();
    if table.len() >= MOST_ENTRIES {
        table.clear();
    }
    table.insert(path.into(), e);
    ANY.store(true, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn the_target_stands_in_the_place_of_the_link() {
        let over = |path: &str, end, target: &str| {
            let p = over(path.as_bytes(), end, target.as_bytes());
            p.and_then(|p| p.into_string().ok()).unwrap_or_default()
        };
        assert_eq!(over("/a/b/c", 4, "x/y"), "/a/x/y/c");
        assert_eq!(over("/a/b/c", 4, "/x"), "/x/c");
        assert_eq!(over("/a/b", 4, "../x"), "/a/../x");
        assert_eq!(over("b/c", 1, "x"), "x/c");
        assert_eq!(over("b", 1, "x"), "x");
        let ends = |path: &str, whole| component_ends(path.as_bytes(), whole).collect::<Vec<_>>();
        assert_eq!(ends("/a/bc//d", true), [2, 5, 8]);
        assert_eq!(ends("/a/bc//d", false), [2, 5]);
        assert_eq!(ends("a/", false), [1]);
        assert_eq!(ends("/", true), [] as [usize; 0]);
    }

    /// Links that change lead to their present targets, whatever was entered before.
    #[test]
    fn a_link_is_known_by_its_inode() {
        let dir = std::env::temp_dir().join(format!("purlin_cached_{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(dir.join("one")).expect("a directory");
        std::fs::create_dir_all(dir.join("two")).expect("a directory");
        let to = |target: &str, name: &str| {
            let name = dir.join(name);
            let _ = std::fs::remove_file(&name);
            std::os::unix::fs::symlink(target, name).expect("a link");
        };
        let name = |p: &Path| CString::new(p.as_os_str().as_bytes()).expect("a name");
        to("one", "first");
        to("first", "second");
        let path = name(&dir.join("second/f"));
        let note = || {
            let mut now = path.clone();
            while let Some((end, identity, target)) = first_link(now.to_bytes(), true, |_| true) {
                let next = over(now.to_bytes(), end, &target).expect("a path");
                enter(&now.to_bytes()[..end], Entry::Link(identity, target));
                now = next;
            }
            now
        };
        let resolved = |p: &CStr| {
            let mut now = p.to_owned();
            while let Some(next) = over_known_link(&now, false) {
                now = next;
            }
            now
        };
        if over_known_link(&path, false).is_some() || walk(c"/", libc::O_PATH).is_none() {
            return;
        }
        let end = |p: &CStr, with: &str| p.to_bytes().ends_with(with.as_bytes());
        let followed = note();
        assert_eq!(resolved(&path), followed);
        assert!(end(&followed, "/one/f"), "{followed:?}");
        // A new link of the same name is another inode, or has another change time.
        to("two", "first");
        assert!(!end(&resolved(&path), "/one/f"));
        note();
        assert!(end(&resolved(&path), "/two/f"));
        // As the last name, it is followed only on request.
        let last = name(&dir.join("first"));
        assert!(over_known_link(&last, false).is_some() && over_known_link(&last, true).is_none());
        // No longer a link.
        std::fs::remove_file(dir.join("first")).expect("there was one");
        std::fs::create_dir(dir.join("first")).expect("a directory");
        assert_eq!(resolved(&path), name(&dir.join("first/f")));
        let _ = std::fs::remove_dir_all(&dir);
        // The table is bounded.
        for n in 0..3 * MOST_ENTRIES {
            enter(format!("/no/{n}").as_bytes(), Entry::Hopeless);
            let len = TABLE.read().as_ref().map_or(0, HashMap::len);
            assert!(len <= MOST_ENTRIES);
        }
    }
}
