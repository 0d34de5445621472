//! File operations that a scheduler performs itself. Handing a process to a dirty thread and back
//! takes longer than writing a page of some hundred kilobytes to a file, which is mostly a copy to
//! memory.
//!
//! Reads use only pages that the system has in memory: the system refuses the others instead of
//! waiting. Some file systems cannot do that: tmpfs, and overlayfs, on which containers run. A read
//! of their files may wait. So may a write, and for both:
//! * Only files whose bytes go to memory qualify: `/dev/null` and its like, and regular files of
//!   local file systems that are not opened to be written through.
//! * At any time at least one scheduler makes no such call, so whatever becomes ready meanwhile
//!   runs there. With a single scheduler there are no such calls.
//! * Such a write has at most [`MOST_BYTES`]. After a write that took longer than [`LONG_NS`],
//!   dirty threads make the next writes of that file: [`FIRST_AWAY`] of them, and more after
//!   another long one. After such a read, they make the next reads of all such files.
//!
//! For names, a scheduler asks what is there ([`look`], [`open_file`], [`open_to_read`]), and only
//! if the system needs no disk and no other program for the answer. Code is mostly looked for in
//! folders that do not have it, and a file server looks at each file again for each request.
//! Reading a directory ([`list`]) may wait for the disk, so the rules of writes hold.

#[cfg(target_os = "linux")]
use super::cached::{self, device_of};
#[cfg(target_os = "linux")]
use crate::posix::last_errno;
use purlin_kernel::{clock, sched};
use std::ffi::CStr;
#[cfg(target_os = "linux")]
use std::hash::{Hash, Hasher};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Maximum number of bytes of one write by a scheduler.
pub(crate) const MOST_BYTES: usize = 512 * 1024;
/// Nanoseconds after which a write must have waited for something other than memory, or for the
/// processor.
const LONG_NS: i64 = 1_000_000;
/// Number of writes that dirty threads make after a long one: initial value and maximum.
const FIRST_AWAY: u32 = 32;
const MOST_AWAY: u32 = 4096;

/// Number of schedulers in such a call.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// Whether a scheduler reads and writes a file itself.
pub(crate) struct AtOnce {
    /// Whether it does neither.
    never: bool,
    /// Whether the system cannot tell what it has in memory.
    reads_unknown: AtomicBool,
    /// Number of writes that dirty threads make before a scheduler does again.
    away: AtomicU32,
    /// The number of those writes after the next long one.
    next_away: AtomicU32,
}

impl AtOnce {
    /// The state for an open descriptor.
    pub(crate) fn of(fd: i32, st: Option<&libc::stat>) -> AtOnce {
        AtOnce {
            // Reproducible runs must not depend on what the system happens to have in memory or on
            // how long it takes.
            never: purlin_kernel::os::exploring::on() || !st.is_some_and(|st| is_buffered(fd, st)),
            reads_unknown: AtomicBool::new(st.is_some_and(|st| may_wait(st.st_dev))),
            away: AtomicU32::new(0),
            next_away: AtomicU32::new(FIRST_AWAY),
        }
    }
    /// Whether the position in the file is only a number.
    pub(crate) fn seeks(&self) -> bool {
        !self.never
    }
    /// Begins a read on a scheduler. None if a dirty thread must make it; a call if it may wait.
    pub(crate) fn begin_read(&self) -> Option<Option<Call<'static>>> {
        match self.never {
            true => None,
            false => begin_read(self.reads_unknown.load(Ordering::Relaxed)),
        }
    }
    /// Records the error of a scheduler's read. Returns whether a dirty thread must read instead.
    pub(crate) fn read_failed(&self, errno: i32) -> bool {
        let unknown = [libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL].contains(&errno);
        if unknown {
            self.reads_unknown.store(true, Ordering::Relaxed);
        }
        unknown || errno == libc::EAGAIN
    }
    /// Begins a write on a scheduler. None if a dirty thread must make it. The caller holds the
    /// file.
    pub(crate) fn begin(&self) -> Option<Call<'_>> {
        if self.never {
            return None;
        }
        let away = self.away.load(Ordering::Relaxed);
        if away > 0 {
            self.away.store(away - 1, Ordering::Relaxed);
            return None;
        }
        let calls = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
        // Dropping it undoes the increment.
        let call = Call {
            of: self,
            since: clock::elapsed(),
            asked: false,
        };
        (calls < sched::online()).then_some(call)
    }
}

/// Whether a scheduler reads files of file systems that cannot tell what they have in memory.
static READS: AtOnce = AtOnce {
    never: false,
    reads_unknown: AtomicBool::new(true),
    away: AtomicU32::new(0),
    next_away: AtomicU32::new(FIRST_AWAY),
};

/// Begins a read on a scheduler, as [`AtOnce::begin_read`]; it may wait if that is unknown.
pub(crate) fn begin_read(unknown: bool) -> Option<Option<Call<'static>>> {
    match unknown {
        true => READS.begin().map(Some),
        false => Some(None),
    }
}

/// A read or write in progress on a scheduler that may wait.
pub(crate) struct Call<'a> {
    of: &'a AtOnce,
    since: i64,
    /// Whether the system has been called.
    asked: bool,
}

impl Call<'_> {
    /// Marks that the system is called now.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }
    /// Records that the write is too large for a scheduler, as the next ones may be.
    pub(crate) fn too_much(self) {
        self.of.away.store(FIRST_AWAY, Ordering::Relaxed);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::Relaxed);
        if !self.asked {
            return;
        }
        let next = self.of.next_away.load(Ordering::Relaxed);
        let next = if clock::elapsed() - self.since > LONG_NS {
            self.of.away.store(next, Ordering::Relaxed);
            (next * 4).min(MOST_AWAY)
        } else {
            (next / 2).max(FIRST_AWAY)
        };
        self.of.next_away.store(next, Ordering::Relaxed);
    }
}

/// Opens a path as a name only. `follow` says whether a final link is followed. See
/// [`cached::open`].
#[cfg(target_os = "linux")]
fn open_name(path: &CStr, follow: bool) -> Option<Result<OwnedFd, i32>> {
    let link = if follow { 0 } else { libc::O_NOFOLLOW };
    cached::open(path, libc::O_PATH | link)
}

/// Whether an error means that there is nothing.
#[cfg(target_os = "linux")]
fn says_absent(e: &i32) -> bool {
    [libc::ENOENT, libc::ENOTDIR].contains(e)
}

/// Devices of local file systems that dirty threads have met, plus one; 0 marks a free slot.
static LOCAL: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Devices, plus one, of file systems that cannot tell which pages of a file are in memory.
static UNREADABLE: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

/// Whether a read of a file on that device may wait, since its file system cannot tell what it has
/// in memory.
pub(crate) fn may_wait(device: libc::dev_t) -> bool {
    let entry = device as u64 + 1;
    UNREADABLE
        .iter()
        .any(|d| d.load(Ordering::Relaxed) == entry)
}

/// Records the error of a read on that device. If it means that the file system does not support
/// such reads, they [may wait](may_wait).
pub(crate) fn read_refused(device: libc::dev_t, errno: i32) {
    if errno == libc::EOPNOTSUPP {
        let entry = device as u64 + 1;
        let set =
            |d: &AtomicU64| d.compare_exchange(0, entry, Ordering::Relaxed, Ordering::Relaxed);
        let known = |d: &AtomicU64| set(d).map_or_else(|is| is == entry, |_| true);
        let _ = UNREADABLE.iter().any(known);
    }
}

/// Records that a dirty thread has met that device by this path. `follow` says whether a final link
/// is followed.
#[cfg(target_os = "linux")]
pub(crate) fn learn_device(path: &CStr, device: libc::dev_t, follow: bool) {
    if SETTLED.has(path) {
        return;
    }
    if is_known(device) || enter_if_local(path, device) {
        cached::learn(path, follow, is_local);
    }
    SETTLED.set(path, true);
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn learn_device(_: &CStr, _: libc::dev_t, _: bool) {}

/// Records that a dirty thread has met what is at that path.
pub(crate) fn learn_path(path: &CStr) {
    #[cfg(target_os = "linux")]
    if SETTLED.has(path) {
        return;
    }
    let mut st = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is terminated; `st` has room for the result, which the call fills completely
    // if it succeeds.
    unsafe {
        if libc::stat(path.as_ptr(), st.as_mut_ptr()) == 0 {
            learn_device(path, st.assume_init().st_dev, true);
        }
    }
}

#[cfg(target_os = "linux")]
fn is_known(device: libc::dev_t) -> bool {
    (LOCAL.iter()).any(|d| d.load(Ordering::Relaxed) == device + 1)
}
/// Enters the device if it is local. Returns whether it was entered.
#[cfg(target_os = "linux")]
fn enter_if_local(path: &CStr, device: libc::dev_t) -> bool {
    let mut st = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path is terminated; `st` has room for the result, which the call fills completely
    // if it succeeds.
    let kind = unsafe {
        if libc::statfs(path.as_ptr(), st.as_mut_ptr()) < 0 {
            return false;
        }
        st.assume_init().f_type
    };
    let set =
        |d: &AtomicU64| d.compare_exchange(0, device + 1, Ordering::Relaxed, Ordering::Relaxed);
    is_local_kind(kind as u64) && LOCAL.iter().any(|d| set(d).is_ok())
}

/// Hashes of paths for which dirty threads skip [`learn_device`]: one has learned all it can, or a
/// scheduler has found the path itself, and no scheduler has missed it since.
#[cfg(target_os = "linux")]
struct Settled([AtomicU64; 64]);

#[cfg(target_os = "linux")]
static SETTLED: Settled = Settled([const { AtomicU64::new(0) }; 64]);

#[cfg(target_os = "linux")]
impl Settled {
    /// The slot of a path, and its hash, which is not 0.
    fn slot(&self, path: &CStr) -> (&AtomicU64, u64) {
        let mut h = std::hash::DefaultHasher::new();
        path.hash(&mut h);
        let hash = h.finish() | 1;
        (&self.0[(hash >> 32) as usize % self.0.len()], hash)
    }
    fn has(&self, path: &CStr) -> bool {
        let (slot, hash) = self.slot(path);
        slot.load(Ordering::Relaxed) == hash
    }
    fn set(&self, path: &CStr, is: bool) {
        let (slot, hash) = self.slot(path);
        let was = slot.load(Ordering::Relaxed);
        if is && was != hash {
            slot.store(hash, Ordering::Relaxed);
        } else if !is && was == hash {
            slot.store(0, Ordering::Relaxed);
        }
    }
}

/// As [`walk`], and records whether there is something to learn about the path.
#[cfg(target_os = "linux")]
fn find(path: &CStr, follow: bool) -> Option<Result<(OwnedFd, libc::statx), i32>> {
    let found = walk(path, follow);
    SETTLED.set(path, found.is_some());
    found
}

/// Finds what a path leads to: a descriptor of the name, and the status that the system has in
/// memory, or the error for nothing. None if finding out may take time.
///
/// Asking another machine, or a program that serves files, may take any time. So the device is
/// requested first, which the system has in memory ([`libc::AT_STATX_DONT_SYNC`]). A dirty thread
/// must have found it to be local. Device numbers are reused, so the kind of the file system is
/// checked too.
#[cfg(target_os = "linux")]
fn walk(path: &CStr, follow: bool) -> Option<Result<(OwnedFd, libc::statx), i32>> {
    let fd = match open_name(path, follow)? {
        Ok(fd) => fd,
        Err(e) => return says_absent(&e).then_some(Err(e)),
    };
    let sx = cached::status(&fd)?;
    let device = device_of(&sx) + 1;
    let known = LOCAL.iter().find(|d| d.load(Ordering::Relaxed) == device)?;
    if !is_local(fd.as_raw_fd()) {
        known.store(0, Ordering::Relaxed);
        return None;
    }
    Some(Ok((fd, sx)))
}

/// Opens a regular file for reading, and returns its descriptor, which does not block, and its
/// status, or the error for nothing. None if that may take time, or if it does not fit, by its
/// device and its size.
#[cfg(target_os = "linux")]
fn open_regular(
    path: &CStr,
    fits: impl Fn(u64, usize) -> bool,
) -> Option<Result<(OwnedFd, libc::stat), i32>> {
    let sx = match find(path, true)? {
        Ok((_, sx)) => sx,
        Err(e) => return Some(Err(e)),
    };
    let device = device_of(&sx);
    let fits = |kind: u32, size: i64| {
        kind & libc::S_IFMT == libc::S_IFREG && fits(device, usize::try_from(size).unwrap_or(0))
    };
    if !fits(sx.stx_mode.into(), sx.stx_size as i64) {
        return None;
    }
    // By now the path may lead to something else. Opening does not wait for a pipe.
    let fd = cached::open(path, libc::O_RDONLY | libc::O_NONBLOCK)?.ok()?;
    let st = status_of(&fd)?;
    (st.st_dev == device && fits(st.st_mode, st.st_size)).then_some(Ok((fd, st)))
}

/// Opens a regular file of 1 to `most` bytes for reading, and returns its descriptor, size and
/// device, or the error for nothing. None if that may take time or the file cannot be read this
/// way.
#[cfg(target_os = "linux")]
pub(crate) fn open_file(
    path: &CStr,
    most: usize,
) -> Option<Result<(OwnedFd, usize, libc::dev_t), i32>> {
    let found = open_regular(path, |_, size| (1..=most).contains(&size))?;
    Some(found.map(|(fd, st)| (fd, st.st_size as usize, st.st_dev)))
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_file(_: &CStr, _: usize) -> Option<Result<(OwnedFd, usize, libc::dev_t), i32>> {
    None
}

/// Opens a regular file for reading, or returns the error for nothing. None if that may take time.
#[cfg(target_os = "linux")]
pub(crate) fn open_to_read(path: &CStr) -> Option<Result<OwnedFd, i32>> {
    let fd = match open_regular(path, |_, _| true)? {
        Ok((fd, _)) => fd,
        Err(e) => return Some(Err(e)),
    };
    // SAFETY: a plain call. All flags that can be set are off, as after opening it the usual way.
    let blocks = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, 0) } == 0;
    blocks.then_some(Ok(fd))
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn open_to_read(_: &CStr) -> Option<Result<OwnedFd, i32>> {
    None
}

/// Whether closing a local file takes no time: nothing was written by this descriptor, and the file
/// stays, so no blocks of it are freed.
pub(crate) fn closes(fd: i32) -> bool {
    let mut st = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: plain calls; `st` has room for the result, which the call fills completely if it
    // succeeds. If the descriptor is another's by now, the answer is only a hint.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        flags >= 0
            && flags & libc::O_ACCMODE == libc::O_RDONLY
            && libc::fstat(fd, st.as_mut_ptr()) == 0
            && st.assume_init().st_nlink > 0
    }
}

#[cfg(target_os = "linux")]
fn status_of(fd: &OwnedFd) -> Option<libc::stat> {
    let mut st = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `st` has room for the result, which the call fills completely if it succeeds.
    unsafe { (libc::fstat(fd.as_raw_fd(), st.as_mut_ptr()) == 0).then(|| st.assume_init()) }
}

/// Names in a directory, as the system returns them.
pub(crate) struct Names(Vec<u8>);

impl Names {
    /// The names in the order of reading, except those of the directory itself and its parent.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        // Each entry has two numbers of eight bytes, its length, a byte for its kind, and the name,
        // which ends with a zero.
        const LENGTH_AT: usize = 16;
        const NAME_AT: usize = 19;
        let mut left = &self.0[..];
        std::iter::from_fn(move || {
            let length = left.get(LENGTH_AT..LENGTH_AT + 2)?;
            let length = u16::from_ne_bytes(length.try_into().ok()?) as usize;
            let entry = left.get(..length.max(NAME_AT))?;
            left = &left[entry.len()..];
            entry[NAME_AT..].split(|&c| c == 0).next()
        })
        .filter(|&name| name != b"." && name != b"..")
    }
}

/// Bytes of a directory that a scheduler reads at most, and room that a further read needs.
#[cfg(target_os = "linux")]
const MOST_LISTED: usize = 32 * 1024;
#[cfg(target_os = "linux")]
const ROOM_TO_LIST: usize = 1024;

/// Whether a scheduler reads directories. The system cannot tell which of them it has in memory, so
/// reading one is like a write.
#[cfg(target_os = "linux")]
static LISTS: AtOnce = AtOnce {
    never: false,
    reads_unknown: AtomicBool::new(false),
    away: AtomicU32::new(0),
    next_away: AtomicU32::new(FIRST_AWAY),
};

/// Reads a directory that is not large, or returns the error for nothing. None if that may take
/// time.
#[cfg(target_os = "linux")]
pub(crate) fn list(path: &CStr) -> Option<Result<Names, i32>> {
    let mut call = LISTS.begin()?;
    let sx = match find(path, true)? {
        Ok((_, sx)) => sx,
        Err(e) => return Some(Err(e)),
    };
    if u32::from(sx.stx_mode) & libc::S_IFMT != libc::S_IFDIR {
        return None;
    }
    let fd = cached::open(path, libc::O_RDONLY | libc::O_DIRECTORY)?.ok()?;
    if status_of(&fd)?.st_dev != device_of(&sx) {
        return None;
    }
    call.ask();
    let mut names: Vec<u8> = Vec::with_capacity(MOST_LISTED);
    loop {
        let room = names.spare_capacity_mut();
        if room.len() < ROOM_TO_LIST {
            call.too_much();
            return None;
        }
        let (fd, to, n) = (fd.as_raw_fd(), room.as_mut_ptr(), room.len());
        // SAFETY: the buffer has room for that many bytes.
        let n = unsafe { libc::syscall(libc::SYS_getdents64, fd, to, n) };
        let n = usize::try_from(n).ok()?;
        // SAFETY: the call has filled that many bytes.
        unsafe { names.set_len(names.len() + n) };
        if n == 0 {
            return Some(Ok(Names(names)));
        }
    }
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn list(_: &CStr) -> Option<Result<Names, i32>> {
    None
}

/// The status of a path and the permitted access (1: read, 2: write), or the error for nothing, if
/// the system knows that without waiting. Dirty threads look at links themselves.
#[cfg(target_os = "linux")]
pub(crate) fn look(path: &CStr, follow: bool) -> Option<Result<(libc::stat, u8), i32>> {
    let (fd, sx) = match find(path, follow)? {
        Ok(found) => found,
        Err(e) => return Some(Err(e)),
    };
    if u32::from(sx.stx_mode) & libc::S_IFMT == libc::S_IFLNK {
        return None;
    }
    let fd = fd.as_raw_fd();
    let may = |how: i32, bit: u8| {
        // SAFETY: the path is terminated.
        match unsafe {
            libc::syscall(
                libc::SYS_faccessat2,
                fd,
                c"".as_ptr(),
                how,
                libc::AT_EMPTY_PATH,
            )
        } {
            0 => Some(bit),
            // Any other error may be about the call.
            _ => [libc::EACCES, libc::EROFS]
                .contains(&last_errno())
                .then_some(0),
        }
    };
    let access = may(libc::R_OK, 1)? | may(libc::W_OK, 2)?;
    // SAFETY: all zeros are a valid value of it.
    let mut st: libc::stat = unsafe { std::mem::zeroed() };
    st.st_dev = device_of(&sx);
    st.st_rdev = libc::makedev(sx.stx_rdev_major, sx.stx_rdev_minor);
    st.st_ino = sx.stx_ino;
    st.st_mode = sx.stx_mode.into();
    st.st_nlink = sx.stx_nlink.into();
    st.st_uid = sx.stx_uid;
    st.st_gid = sx.stx_gid;
    st.st_size = sx.stx_size as i64;
    st.st_atime = sx.stx_atime.tv_sec;
    st.st_mtime = sx.stx_mtime.tv_sec;
    st.st_ctime = sx.stx_ctime.tv_sec;
    Some(Ok((st, access)))
}
#[cfg(not(target_os = "linux"))]
pub(crate) fn look(_: &CStr, _: bool) -> Option<Result<(libc::stat, u8), i32>> {
    None
}

/// Major number of the memory devices, and minor numbers of those that accept all output:
/// `/dev/null`, `/dev/zero`, `/dev/full`.
const MEMORY_DEVICES: u32 = 1;
const SINKS: [u32; 3] = [3, 5, 7];

/// Whether bytes written to the file go to memory first.
#[cfg(target_os = "linux")]
fn is_buffered(fd: i32, st: &libc::stat) -> bool {
    match st.st_mode & libc::S_IFMT {
        libc::S_IFCHR => {
            let (major, minor) = (libc::major(st.st_rdev), libc::minor(st.st_rdev));
            major == MEMORY_DEVICES && SINKS.contains(&minor)
        }
        libc::S_IFREG => !writes_through(fd) && is_local(fd),
        _ => false,
    }
}
#[cfg(not(target_os = "linux"))]
fn is_buffered(_: i32, _: &libc::stat) -> bool {
    false
}

/// Whether a write waits for the disk.
#[cfg(target_os = "linux")]
fn writes_through(fd: i32) -> bool {
    // SAFETY: a plain call.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    flags < 0 || flags & (libc::O_SYNC | libc::O_DSYNC | libc::O_DIRECT) != 0
}

/// Whether the file lies on a local file system. One that a program serves may wait for this very
/// runtime.
#[cfg(target_os = "linux")]
fn is_local(fd: i32) -> bool {
    let mut st = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `st` has room for the result, which the call fills completely if it succeeds.
    let kind = unsafe {
        if libc::fstatfs(fd, st.as_mut_ptr()) < 0 {
            return false;
        }
        st.assume_init().f_type
    };
    is_local_kind(kind as u64)
}

/// Whether file systems of this kind are local.
#[cfg(target_os = "linux")]
fn is_local_kind(kind: u64) -> bool {
    let local = [
        libc::EXT4_SUPER_MAGIC,
        libc::XFS_SUPER_MAGIC,
        libc::BTRFS_SUPER_MAGIC,
        libc::F2FS_SUPER_MAGIC,
        libc::TMPFS_MAGIC,
        libc::OVERLAYFS_SUPER_MAGIC,
    ];
    // The types of the constants differ between systems.
    local.iter().any(|&k| k as u64 == kind)
}

/// Reads from `at` or from the current position: the part of the file that is in memory, without
/// waiting, unless `call` says that it may wait. Returns the number of bytes, or -1 with an error
/// number.
///
/// # Safety
/// `to` is valid for writes of `n` bytes.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn read_now(
    fd: i32,
    to: *mut u8,
    n: usize,
    at: Option<i64>,
    call: &mut Option<Call>,
) -> isize {
    if let Some(call) = call {
        call.ask();
        // SAFETY: by the contract.
        return unsafe {
            match at {
                None => libc::read(fd, to.cast(), n),
                Some(at) => libc::pread(fd, to.cast(), n, at),
            }
        };
    }
    let room = libc::iovec {
        iov_base: to.cast(),
        iov_len: n,
    };
    // SAFETY: by the contract. -1 means the file's current position.
    unsafe { libc::preadv2(fd, &room, 1, at.unwrap_or(-1), libc::RWF_NOWAIT) }
}
/// As on Linux, but never called, because no file is read this way.
///
/// # Safety
/// None is needed.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn read_now(
    _: i32,
    _: *mut u8,
    _: usize,
    _: Option<i64>,
    _: &mut Option<Call>,
) -> isize {
    -1
}
