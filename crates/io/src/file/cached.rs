//! Names that the system finds in memory, so that a scheduler may ask for them.
//!
//! `openat2` with `RESOLVE_CACHED` walks a path without waiting, and answers `EAGAIN` where it
//! would have to. Some file systems can't say without waiting where a symbolic link leads, even if
//! all of it is in memory: overlayfs, on which containers run, is one. For those there is a table
//! of links. A dirty thread that has followed a path which the system can't walk enters the links
//! on that path, each with what identifies its inode. A scheduler that meets one of these links
//! asks which inode it is, which the system answers from memory, and goes on with the target in its
//! place.
//!
//! * The content of a link never changes while its inode lives, and an inode that is used again has
//!   another time of change.
//! * Only links that the system itself has followed for this process are entered, so none is
//!   followed that it forbids (`protected_symlinks`, `nosymfollow`).
//! * Only links of local file systems are entered: those of `/proc` lead elsewhere than their texts
//!   say.

#![cfg(target_os = "linux")]

use crate::posix::last_errno;
use purlin_term::sync::RwLock;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The entries of the table at most: all are dropped when there are more.
const MOST_ENTRIES: usize = 1024;
/// Links that are followed on one path.
const MOST_LINKS: usize = 16;

/// What is known of a path that the system can't walk in memory.
#[derive(Clone, PartialEq)]
enum Entry {
    /// It is a link.
    Link(Identity, Box<[u8]>),
    /// It leads over a link that may not be entered: nobody looks for it again.
    Hopeless,
}

/// The inode of a link.
#[derive(Clone, Copy, PartialEq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, u32),
}

/// By the paths that the entries are about, as they were asked for.
static TABLE: RwLock<Option<HashMap<Box<[u8]>, Entry>>> = RwLock::new(None);
static ANY: AtomicBool = AtomicBool::new(false);

/// Opens what a path leads to, with any flags that make nothing, if the system finds that in
/// memory; else its error. None: it doesn't have the call, or doesn't let it be made.
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

/// As [`open`], and follows no links that the system can't follow in memory.
fn walk(path: &CStr, flags: i32) -> Option<Result<OwnedFd, i32>> {
    static UNKNOWN: AtomicBool = AtomicBool::new(false);
    if UNKNOWN.load(Ordering::Relaxed) || purlin_kernel::os::single::on() {
        return None;
    }
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: all zeros are a value of it.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = flags as u64;
    how.resolve = libc::RESOLVE_CACHED;
    // SAFETY: the path is terminated, and `how` is as long as it is said to be.
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

/// What the system has in memory about an open file.
pub(super) fn status(fd: &OwnedFd) -> Option<libc::statx> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let (fd, wanted) = (fd.as_raw_fd(), libc::STATX_BASIC_STATS);
    let mut sx = std::mem::MaybeUninit::<libc::statx>::uninit();
    // SAFETY: the path is terminated; `sx` has room for the result, which is all written where the
    // call succeeds.
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

/// The ends of the parts of a path that the system would follow if they are links. `whole`: the
/// last name is among them.
fn ends(path: &[u8], whole: bool) -> impl Iterator<Item = usize> {
    (1..=path.len()).filter(move |&i| {
        let ends = match path.get(i) {
            Some(&c) => c == b'/',
            None => whole,
        };
        ends && path[i - 1] != b'/'
    })
}

/// The path with the target of a link in the place of the link's own, which ends at `end`.
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
    for end in ends(bytes, !nofollow) {
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

/// A dirty thread has found what that path leads to, which lies on a local file system: it enters
/// the links on the path, if the system can't walk it in memory. `is_local` is asked of the file
/// systems of links.
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

/// The first link on a path: where its name ends, what it is, and its target. None: there is none,
/// or it isn't local.
fn first_link(
    path: &[u8],
    follow: bool,
    is_local: impl Fn(i32) -> bool,
) -> Option<(usize, Identity, Box<[u8]>)> {
    for end in ends(path, follow) {
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
        // SAFETY: the path is terminated, and the buffer as long as it is said to be.
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
        let ends = |path: &str, whole| ends(path.as_bytes(), whole).collect::<Vec<_>>();
        assert_eq!(ends("/a/bc//d", true), [2, 5, 8]);
        assert_eq!(ends("/a/bc//d", false), [2, 5]);
        assert_eq!(ends("a/", false), [1]);
        assert_eq!(ends("/", true), [] as [usize; 0]);
    }

    /// Links that change lead where they lead now, whatever was entered before.
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
        // A new link of the same name is another inode, or has changed since.
        to("two", "first");
        assert!(!end(&resolved(&path), "/one/f"));
        note();
        assert!(end(&resolved(&path), "/two/f"));
        // It isn't followed as the last name where that isn't asked for.
        let last = name(&dir.join("first"));
        assert!(over_known_link(&last, false).is_some() && over_known_link(&last, true).is_none());
        // No link any more.
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
