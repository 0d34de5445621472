//! Natives of module `prim_file` that work on open files. Those that work on names are in
//! [`super::prim_file_names`].
//!
//! # Closing
//! A file is a magic reference to a descriptor with a state. Operations change the state from idle
//! to busy and back, so that a descriptor is never closed under a system call. If the owner ends
//! during an operation, the operation closes the file. The owner's other files are closed by
//! [`owner_exit`], on a thread of its own, because closing may block. The table of owners keeps an
//! open file alive, not its references: dropping the last reference closes nothing, as in stock.
//!
//! # Calls that may never return
//! Opening a pipe waits for the other end to be opened, and reading or writing anything but a
//! regular file may wait for the other side. Threads of their own make these calls
//! ([`on_own_thread`]).
//!
//! # Orderings
//! All transitions of `state` are compare-exchanges with acquire and release. The release in
//! [`File::end`] pairs with the acquire of the next [`File::begin`] and of the transition to
//! `CLOSED`, so an operation's use of the descriptor happens before the next operation and before
//! the close. No two threads hold the file at the same time, because only one can take it from
//! `IDLE`. Once it is `CLOSED` nothing leaves that state; then the swap of `fd` elects the one
//! thread that closes the descriptor.

use super::at_once::{self, AtOnce};
use super::prim_file_names::directory;
use crate::cx::{BifResult, Cx, Fail};
use crate::gather::{Gather, MAX_PARTS, Parts, max_parts, scratch_bytes};
use crate::os::{file_calls as door, retry};
use crate::port::watch;
use crate::posix::errno_atom;
use crate::process::resource_counts;
use crate::{accounts, bifs, embedded, lazy_atoms};
use crate::{blocking, iolist, native_state};
use purlin_kernel::os::replay_log;
use purlin_term::bin::RcBin;
use purlin_term::frag::OwnedTerm;
use purlin_term::layout::heap_bin_limit;
use purlin_term::pressure::{self, Judged};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am, arith, copy, gc};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, mpsc};

lazy_atoms! {
    append = "append";
    bof = "bof";
    cur = "cur";
    dont_need = "dont_need";
    exclusive = "exclusive";
    no_reuse = "no_reuse";
    random = "random";
    sequential = "sequential";
    skip_type_check = "skip_type_check";
    sync = "sync";
    will_need = "will_need";
}

const IDLE: u8 = 0;
const BUSY: u8 = 1;
/// Busy, to be closed when the operation ends.
const CLOSE_PENDING: u8 = 2;
const CLOSED: u8 = 3;

/// Initial size of a read of unknown length, in bytes.
const FIRST_READ_BYTES: usize = 16 * 1024;

/// Maximum number of bytes that a scheduler reads at once.
const MOST_HERE: usize = 256 * 1024;

/// Number of bytes that a scheduler reads or writes per reduction.
const BYTES_PER_REDUCTION: usize = 512;

/// An open file.
struct File {
    state: AtomicU8,
    /// -1 when closed.
    fd: AtomicI32,
    owner: Term,
    /// Whether reading and writing may wait for another process.
    waits: bool,
    /// Whether a scheduler writes itself.
    at_once: AtOnce,
}

impl File {
    /// Closes the descriptor, once. The state is closed already.
    fn close(&self) -> Result<(), i32> {
        let fd = self.fd.swap(-1, Ordering::AcqRel);
        if fd < 0 {
            return Ok(());
        }
        // SAFETY: this thread took the descriptor, so no other uses or closes it.
        unsafe { door::close(fd) }
    }
    /// Begins an operation. None if another is in progress or the file is closed.
    fn begin(&self) -> Option<i32> {
        self.state
            .compare_exchange(IDLE, BUSY, Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        Some(self.fd.load(Ordering::Acquire))
    }
    /// Ends an operation, and closes the file if its owner has ended meanwhile.
    fn end(&self) {
        let swapped = self
            .state
            .compare_exchange(BUSY, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if swapped.is_err() {
            // The owner has ended; its files have been removed from the table.
            self.state.store(CLOSED, Ordering::Release);
            let _ = self.close();
        }
    }
    fn id(self: &Arc<File>) -> usize {
        Arc::as_ptr(self) as usize
    }
}

/// A file, and the reference by which its owner knows it.
type Owned = (Arc<File>, OwnedTerm);
type Owners = HashMap<u64, HashMap<usize, Owned>>;

/// The files of each owner, by the owner's word.
fn owners() -> MutexGuard<'static, Owners> {
    static OWNERS: OnceLock<Mutex<Owners>> = OnceLock::new();
    let m = OWNERS.get_or_init(|| Mutex::new(HashMap::new()));
    m.lock()
}

fn disown(f: &Arc<File>) {
    let mut o = owners();
    let mut gone = None;
    if let Some(files) = o.get_mut(&f.owner.raw()) {
        gone = files.remove(&f.id());
        if gone.is_some() {
            resource_counts::leave(f.owner, 1);
        }
        if files.is_empty() {
            o.remove(&f.owner.raw());
        }
    }
    drop(o);
    drop(gone);
}

/// Adds the references of the files owned by `pid`; they monitor it.
pub fn watching(pid: Term, to: &mut dyn Alloc, out: &mut Vec<Term>) {
    if resource_counts::any(pid)
        && let Some(files) = owners().get(&pid.raw())
    {
        out.extend(files.values().map(|f| copy::copy(f.1.term(), to)));
    }
}

/// Closes the files of a process that has ended. May run on any thread; does not block.
pub fn owner_exit(pid: Term) {
    if !resource_counts::any(pid) {
        return;
    }
    let Some(files) = owners().remove(&pid.raw()) else {
        return;
    };
    resource_counts::leave(pid, files.len());
    for (f, _) in files.into_values() {
        loop {
            let swap = |from, to| {
                f.state
                    .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            };
            match swap(IDLE, CLOSED) {
                Ok(_) => {
                    close_later(f);
                    break;
                }
                // Retried in case the operation has just ended.
                Err(BUSY) => {
                    if swap(BUSY, CLOSE_PENDING).is_ok() {
                        break;
                    }
                }
                Err(_) => break,
            }
        }
    }
}

/// Leaves the closing of a file to the thread that does nothing else.
fn close_later(f: Arc<File>) {
    if purlin_kernel::os::exploring::on() {
        let _ = f.close();
        return;
    }
    static CLOSER: OnceLock<Option<mpsc::Sender<Arc<File>>>> = OnceLock::new();
    let closer = CLOSER.get_or_init(|| {
        let (tx, rx) = mpsc::channel::<Arc<File>>();
        std::thread::Builder::new()
            .name("closer".into())
            .spawn(move || {
                purlin_kernel::affinity::begin_unbound();
                for f in rx {
                    // Nobody is left to hear of an error.
                    let _ = f.close();
                }
            })
            .ok()
            .map(|_| tx)
    });
    let left = match closer {
        Some(tx) => tx.send(f).err().map(|e| e.0),
        None => Some(f),
    };
    if let Some(f) = left {
        let _ = f.close();
    }
}

/// `{error, Name}`
pub(super) fn posix_error(cx: &mut Cx, errno: i32) -> Term {
    let e = errno_atom(errno);
    cx.err(e)
}

/// `ok`, or `{error, Name}`.
pub(super) fn done(cx: &mut Cx, r: Result<(), i32>) -> BifResult {
    Ok(match r {
        Ok(()) => am::OK,
        Err(e) => posix_error(cx, e),
    })
}

/// A path argument: a binary with a final zero, behind which only further zeros may follow.
pub(super) fn path_arg<'a>(t: Term) -> Result<Cow<'a, CStr>, i32> {
    let b = t.as_binary().ok_or(libc::EINVAL)?;
    let end = memchr::memchr(0, &b).ok_or(libc::EINVAL)?;
    if b[end..].iter().any(|&c| c != 0) {
        return Err(libc::EINVAL);
    }
    let c = match b {
        Cow::Borrowed(b) => CStr::from_bytes_until_nul(b).map(Cow::Borrowed),
        Cow::Owned(b) => CStr::from_bytes_until_nul(&b).map(|c| Cow::Owned(c.to_owned())),
    };
    c.map_err(|_| libc::EINVAL)
}

fn file<'a>(t: Term) -> Result<&'a Arc<File>, Fail> {
    native_state::get::<Arc<File>>(t).ok_or(Fail::Badarg)
}

/// Runs an operation on the descriptor of `t`.
fn with_fd(cx: &mut Cx, t: Term, op: impl FnOnce(&mut Cx, i32) -> BifResult) -> BifResult {
    let f = file(t)?;
    let Some(fd) = f.begin() else {
        return Ok(posix_error(cx, libc::EINVAL));
    };
    let r = op(cx, fd);
    f.end();
    r
}

/// Runs an operation on the descriptor of a file that `waits`, on a thread of its own.
fn on_own_thread<T: Send + 'static>(
    cx: &mut Cx,
    f: &Arc<File>,
    op: impl FnOnce(i32) -> T + Send + 'static,
    result: impl FnOnce(&mut Cx, T) -> BifResult + Send + 'static,
) -> BifResult {
    let f = f.clone();
    let Some(fd) = f.begin() else {
        return Ok(posix_error(cx, libc::EINVAL));
    };
    blocking::call(cx, move || {
        let r = op(fd);
        f.end();
        Box::new(move |cx| result(cx, r))
    })
}

/// Major number of the memory devices (`/dev/null`, `/dev/zero` …).
const MEMORY_DEVICES: u32 = if cfg!(target_os = "macos") { 3 } else { 1 };

/// Whether reading or writing such a file may wait for another process.
fn may_wait(st: &libc::stat) -> bool {
    match st.st_mode & libc::S_IFMT {
        libc::S_IFIFO | libc::S_IFSOCK => true,
        libc::S_IFCHR => libc::major(st.st_rdev) as u32 != MEMORY_DEVICES,
        _ => false,
    }
}

/// Whether opening the file may wait: it is a named pipe.
fn open_waits(path: &CStr) -> bool {
    door::peek_at(path, true).is_ok_and(|st| st.st_mode & libc::S_IFMT == libc::S_IFIFO)
}

/// Duplicates the descriptor behind a file reference, for natives that keep it (`sendfile`). An
/// errno if that fails.
pub(crate) fn dup(t: Term) -> Option<Result<i32, i32>> {
    let Some(f) = native_state::get::<Arc<File>>(t) else {
        // In a replay, files are plain references.
        let plays = t.as_ref_view().is_some() && replay_log::replays();
        let fd = plays.then(|| replay_log::placeholder().ok())??;
        return Some(Ok(fd.into_raw_fd()));
    };
    let Some(fd) = f.begin() else {
        return Some(Err(libc::EINVAL));
    };
    // The descriptor is open while the state is busy.
    let r = door::duplicate(fd);
    f.end();
    Some(r)
}

/// Makes `{ok, Ref}` for an open descriptor.
fn make_file(cx: &mut Cx, fd: i32) -> Term {
    let st = door::peek(fd).ok();
    let f = Arc::new(File {
        state: AtomicU8::new(IDLE),
        fd: AtomicI32::new(fd),
        owner: cx.self_pid(),
        waits: st.as_ref().is_some_and(may_wait),
        at_once: AtOnce::of(fd, st.as_ref()),
    });
    resource_counts::enter(f.owner);
    let r = native_state::make(cx, f.clone());
    let owned = (f.clone(), OwnedTerm::copy_of(r));
    owners()
        .entry(f.owner.raw())
        .or_default()
        .insert(f.id(), owned);
    cx.ok(r)
}

/// Flags of `open(2)` for a list of modes. Modes that other layers handle are skipped.
fn open_flags(modes: Term) -> (i32, bool, bool) {
    let (mut r, mut w, mut excl, mut app, mut syn, mut any, mut dir) =
        (false, false, false, false, false, false, false);
    for m in modes.list_iter() {
        r |= m == am::READ;
        w |= m == am::WRITE;
        excl |= m == exclusive();
        app |= m == append();
        syn |= m == sync();
        any |= m == skip_type_check();
        dir |= m == directory();
    }
    w |= app || excl;
    let mut flags = match (r, w) {
        (_, false) => libc::O_RDONLY,
        (false, true) => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
        (true, true) => libc::O_RDWR | libc::O_CREAT,
    };
    if app {
        flags = flags & !libc::O_TRUNC | libc::O_APPEND;
    }
    for (on, flag) in [
        (excl, libc::O_EXCL),
        (syn, libc::O_SYNC),
        (dir, libc::O_DIRECTORY),
    ] {
        if on {
            flags |= flag;
        }
    }
    (flags, any, dir)
}

/// Opens `path` with flags from [`open_flags`].
fn open_checked(path: &CStr, (flags, any_type, dir): (i32, bool, bool)) -> Result<OwnedFd, i32> {
    if let Some(found) = embedded::find(path.to_bytes()) {
        return match found? {
            embedded::Found::Folder => Err(libc::EISDIR),
            embedded::Found::File(_) if flags & libc::O_ACCMODE != libc::O_RDONLY => {
                Err(libc::EROFS)
            }
            embedded::Found::File(_) if dir => Err(libc::ENOTDIR),
            embedded::Found::File(file) => embedded::descriptor(file),
        };
    }
    let fd = door::open(path, flags, if dir { 0o777 } else { 0o666 })?;
    if let Ok(st) = door::peek(fd.as_raw_fd()) {
        if !any_type && !dir && st.st_mode & libc::S_IFMT == libc::S_IFDIR {
            return Err(libc::EISDIR);
        }
        at_once::learn_device(path, st.st_dev, true);
    }
    Ok(fd)
}

fn opened(cx: &mut Cx, r: Result<OwnedFd, i32>) -> BifResult {
    Ok(match r {
        Ok(fd) => make_file(cx, fd.into_raw_fd()),
        Err(e) => posix_error(cx, e),
    })
}

fn open_2(cx: &mut Cx, [path, modes]: [Term; 2]) -> BifResult {
    if let Some(r) = blocking::resumed(cx) {
        return r;
    }
    if !modes.is_list() {
        return Err(Fail::Badarg);
    }
    let modes = open_flags(modes);
    if !cx.dirty {
        let within = |p: &[u8]| embedded::find(p).map(|_| Ok(None));
        let plain = modes.0 == libc::O_RDONLY && !modes.2;
        let known = |p: &CStr| match plain {
            true => Some(at_once::open_to_read(p)?.map(Some)),
            false => None,
        };
        return match name_here(path, within, known)? {
            Ok(None) => Err(Fail::Dirty),
            Ok(Some(fd)) => opened(cx, Ok(fd)),
            Err(e) => opened(cx, Err(e)),
        };
    }
    let path = match path_arg(path) {
        Ok(p) => p,
        Err(e) => return Ok(posix_error(cx, e)),
    };
    if open_waits(&path) {
        let path = path.into_owned();
        return blocking::call(cx, move || {
            let r = open_checked(&path, modes);
            Box::new(move |cx| opened(cx, r))
        });
    }
    opened(cx, open_checked(&path, modes))
}

fn file_desc_to_ref_1(cx: &mut Cx, [fd]: [Term; 1]) -> BifResult {
    let fd = int_arg(fd)?;
    if !door::is_open(fd) {
        return Ok(posix_error(cx, libc::EBADF));
    }
    Ok(make_file(cx, fd))
}

fn close_1(cx: &mut Cx, [f]: [Term; 1]) -> BifResult {
    let f = file(f)?;
    if !cx.dirty {
        let here = f.at_once.seeks() && at_once::closes(f.fd.load(Ordering::Acquire));
        if !here || gc::stress_roll(3) {
            return Err(Fail::Dirty);
        }
    }
    let took = f
        .state
        .compare_exchange(IDLE, CLOSED, Ordering::AcqRel, Ordering::Acquire);
    if took.is_err() {
        return Ok(posix_error(cx, libc::EINVAL));
    }
    disown(f);
    let r = f.close();
    done(cx, r)
}

/// The native that stock's janitor process calls for a file whose owner has ended.
fn delayed_close_1(_: &mut Cx, [f]: [Term; 1]) -> BifResult {
    let f = file(f)?;
    if f.state.load(Ordering::Acquire) == CLOSED {
        let _ = f.close();
    }
    Ok(am::OK)
}

/// An integer in the range of C's `int`.
pub(super) fn int_arg(t: Term) -> Result<i32, Fail> {
    arith::to_i64(t)
        .and_then(|n| i32::try_from(n).ok())
        .ok_or(Fail::Badarg)
}

/// A number from 0 on. Another number is a system error; anything else is `badarg`.
fn offset_arg(t: Term) -> Result<Result<i64, i32>, Fail> {
    if !t.is_number() {
        return Err(Fail::Badarg);
    }
    Ok(arith::to_i64(t).filter(|&n| n >= 0).ok_or(libc::EINVAL))
}

fn offset_args(a: Term, b: Term) -> Result<Result<(i64, i64), i32>, Fail> {
    let (a, b) = (offset_arg(a)?, offset_arg(b)?);
    Ok(a.and_then(|a| b.map(|b| (a, b))))
}

/// Bytes being read: a counted block, filled from the front.
struct Filling {
    bin: *mut RcBin,
    room: usize,
    len: usize,
}

// SAFETY: the holder has the only reference to the block.
unsafe impl Send for Filling {}

impl Filling {
    /// Fails with `ENOMEM` if the budget of the process has no such room; see [`or_error`].
    fn new(room: usize) -> Result<Filling, i32> {
        if pressure::refuses(room) {
            return Err(libc::ENOMEM);
        }
        let bin = RcBin::try_alloc(room).ok_or(libc::ENOMEM)?;
        Ok(Filling { bin, room, len: 0 })
    }
    /// Makes a copy of bytes.
    fn of(bytes: &[u8]) -> Result<Filling, i32> {
        let mut b = Filling::new(bytes.len().max(1))?;
        // SAFETY: a fresh block with that much room.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), RcBin::bytes(b.bin), bytes.len()) };
        b.len = bytes.len();
        Ok(b)
    }
    fn resize(&mut self, room: usize) -> Result<(), i32> {
        if pressure::refuses(room.saturating_sub(self.room)) {
            return Err(libc::ENOMEM);
        }
        // SAFETY: nobody else knows the block yet.
        self.bin = unsafe { RcBin::try_grow(self.bin, room) }.ok_or(libc::ENOMEM)?;
        self.room = room;
        Ok(())
    }
    /// Reads until `wanted` bytes are there or the file ends. `read` gets the destination, the
    /// number of bytes, and how many were read before. The block grows with the bytes that arrive,
    /// so that a huge `wanted` costs nothing.
    fn fill(
        &mut self,
        wanted: usize,
        mut read: impl FnMut(*mut u8, usize, usize) -> Result<usize, i32>,
    ) -> Result<(), i32> {
        while self.len < wanted {
            if self.len == self.room {
                self.resize(
                    self.room
                        .saturating_mul(2)
                        .max(FIRST_READ_BYTES)
                        .min(wanted),
                )?;
            }
            let left = self.room.min(wanted) - self.len;
            // SAFETY: `left` bytes of the block lie behind the filled ones.
            let to = unsafe { RcBin::bytes(self.bin).add(self.len) };
            let n = read(to, left, self.len)?;
            if n == 0 {
                break;
            }
            self.len += n;
        }
        Ok(())
    }
    fn into_term(mut self, cx: &mut Cx) -> Term {
        cx.bump(self.len / 4096);
        if self.len <= heap_bin_limit() {
            // SAFETY: the bytes are initialised up to `len`.
            return cx
                .binary(unsafe { std::slice::from_raw_parts(RcBin::bytes(self.bin), self.len) });
        }
        if self.len < self.room {
            // Without memory for a smaller block it stays large.
            let _ = self.resize(self.len);
        }
        let (bin, len) = (self.bin, self.len);
        std::mem::forget(self);
        // SAFETY: the reference goes to the term; the bytes are initialised up to `len`.
        unsafe {
            (*bin).used.store(len, Ordering::Relaxed);
            cx.refc_bin(bin, len)
        }
    }
}

impl Drop for Filling {
    fn drop(&mut self) {
        // SAFETY: this owns the only reference.
        unsafe { RcBin::release(self.bin) }
    }
}

/// Number of bytes from `at`, or from the current position, to the end of a regular file.
fn bytes_left(fd: i32, at: Option<i64>) -> Option<usize> {
    let st = door::peek(fd).ok()?;
    if st.st_mode & libc::S_IFMT != libc::S_IFREG {
        return None;
    }
    let at = match at {
        Some(at) => at,
        None => door::seek(fd, 0, libc::SEEK_CUR).unwrap_or(-1),
    };
    Some(usize::try_from(st.st_size.saturating_sub(at)).unwrap_or(0))
}

/// Number of bytes to make room for at once when `wanted` are to be read from `at`: what the file
/// has according to its size, or a small room.
fn first_room(fd: i32, wanted: usize, at: Option<i64>) -> usize {
    if wanted <= 256 * 1024 {
        return wanted;
    }
    bytes_left(fd, at)
        .unwrap_or(0)
        .clamp(FIRST_READ_BYTES, wanted)
}

/// Reads that many bytes, or as many as there are. None at the end of the file.
fn read_bytes(fd: i32, size: i64, at: Option<i64>) -> Result<Option<Filling>, i32> {
    let size = usize::try_from(size).map_err(|_| libc::EINVAL)?;
    if size == 0 {
        // Nothing is read, but an unreadable file is reported.
        // SAFETY: no byte is written.
        return unsafe { door::read(fd, std::ptr::null_mut(), 0, at) }.map(|_| None);
    }
    let mut b = Filling::new(first_room(fd, size, at))?;
    let filled = b.fill(size, |p, n, before| {
        // SAFETY: `fill` passes room for n bytes.
        unsafe { door::read(fd, p, n, at.map(|at| at.saturating_add(before as i64))) }
    });
    if filled == Err(libc::ENOMEM) && at.is_none() {
        // Read once more after a collection. A device without positions has lost the bytes.
        let _ = door::seek(fd, -(b.len as i64), libc::SEEK_CUR);
    }
    filled?;
    Ok((b.len != 0).then_some(b))
}

/// Makes `{ok, Bytes}` or `eof`.
fn bytes_term(cx: &mut Cx, b: Option<Filling>) -> Term {
    match b {
        Some(b) => {
            let t = b.into_term(cx);
            cx.ok(t)
        }
        None => am::EOF,
    }
}

fn read(cx: &mut Cx, fd: i32, size: i64, at: Option<i64>) -> Result<Term, i32> {
    let b = read_bytes(fd, size, at)?;
    Ok(bytes_term(cx, b))
}

/// The result, or the error `{error, Posix}`. Where the budget of the process has no room for what
/// is read, it collects its garbage, and gets `system_limit` if that does not help.
fn or_error(cx: &mut Cx, r: Result<Term, i32>) -> BifResult {
    if r == Err(libc::ENOMEM) && pressure::is_limited() {
        return Err(match pressure::refused() {
            Judged::AfterCollection => Fail::Again,
            _ => Fail::SystemLimit,
        });
    }
    Ok(r.unwrap_or_else(|e| posix_error(cx, e)))
}

/// Reads on a scheduler what is in memory. A dirty thread does everything else, including errors of
/// arguments.
fn read_here(cx: &mut Cx, f: Term, size: Term, at: Option<i64>) -> BifResult {
    let size = arith::to_i64(size).and_then(|n| usize::try_from(n).ok());
    let size = size.filter(|n| (1..=MOST_HERE).contains(n));
    with_fd(cx, f, |cx, fd| {
        let direct = &file(f)?.at_once;
        let size = size.filter(|_| !gc::stress_roll(3));
        let size = size.ok_or(Fail::Dirty)?;
        let mut call = direct.begin_read().ok_or(Fail::Dirty)?;
        let mut b = Filling::new(size).map_err(|_| Fail::Dirty)?;
        let r = b.fill(size, |p, n, before| {
            // SAFETY: `fill` passes room for n bytes.
            let at = at.map(|at| at.saturating_add(before as i64));
            retry(|| unsafe { at_once::read_now(fd, p, n, at, &mut call) })
        });
        drop(call);
        match r {
            Ok(()) => {}
            Err(e) if direct.read_failed(e) => {
                // Bytes read so far are read again.
                let back = -(b.len as i64);
                if at.is_none()
                    && back != 0
                    && let Err(e) = door::seek(fd, back, libc::SEEK_CUR)
                {
                    return Ok(posix_error(cx, e));
                }
                return Err(Fail::Dirty);
            }
            Err(e) => return Ok(posix_error(cx, e)),
        }
        cx.bump(b.len / BYTES_PER_REDUCTION);
        Ok(bytes_term(cx, (b.len != 0).then_some(b)))
    })
}

/// Size above which a read takes so long that others may need the process meanwhile.
const LONG_READ: usize = 8 << 20;

/// Whether reading `size` bytes from `at` takes long: the file has that many, or its size is
/// unknown.
fn is_long_read(f: &File, size: i64, at: Option<i64>) -> bool {
    let Some(size) = usize::try_from(size).ok().filter(|&n| n > LONG_READ) else {
        return false;
    };
    if purlin_kernel::os::exploring::on() {
        return false;
    }
    let Some(fd) = f.begin() else {
        return false;
    };
    let left = bytes_left(fd, at);
    f.end();
    left.unwrap_or(size).min(size) > LONG_READ
}

/// Reads on another thread, so that others can work with the process meanwhile.
fn read_on_own_thread(
    cx: &mut Cx,
    f: Term,
    read: impl FnOnce(i32) -> Result<Option<Filling>, i32> + Send + 'static,
) -> BifResult {
    on_own_thread(cx, file(f)?, read, |cx, r| {
        let r = r.map(|b| bytes_term(cx, b));
        or_error(cx, r)
    })
}

fn read_2(cx: &mut Cx, [f, size]: [Term; 2]) -> BifResult {
    if let Some(r) = blocking::resumed(cx) {
        return r;
    }
    if !cx.dirty {
        return read_here(cx, f, size, None);
    }
    let handle = file(f)?;
    let n = offset_arg(size);
    if handle.waits || matches!(n, Ok(Ok(n)) if is_long_read(handle, n, None)) {
        let n = n?;
        return read_on_own_thread(cx, f, move |fd| read_bytes(fd, n?, None));
    }
    with_fd(cx, f, |cx, fd| {
        let r = match offset_arg(size)? {
            Ok(size) => read(cx, fd, size, None),
            Err(e) => Err(e),
        };
        or_error(cx, r)
    })
}

fn pread_3(cx: &mut Cx, [f, at, size]: [Term; 3]) -> BifResult {
    if let Some(r) = blocking::resumed(cx) {
        return r;
    }
    if !cx.dirty {
        let at = offset_arg(at).ok().and_then(Result::ok);
        return read_here(cx, f, size, Some(at.ok_or(Fail::Dirty)?));
    }
    if let Ok(Ok((at, size))) = offset_args(at, size)
        && is_long_read(file(f)?, size, Some(at))
    {
        return read_on_own_thread(cx, f, move |fd| read_bytes(fd, size, Some(at)));
    }
    with_fd(cx, f, |cx, fd| {
        let r = match offset_args(at, size)? {
            Ok((at, size)) => read(cx, fd, size, Some(at)),
            Err(e) => Err(e),
        };
        or_error(cx, r)
    })
}

/// Whether all of a list can be written. `iolist_to_iovec/1` leaves this check to this module.
fn is_iovec(t: Term) -> bool {
    (t.is_nil() || t.is_list_ptr()) && iolist::size(t).is_ok()
}

/// A gatherer of a list that can be written completely, with its first batch. None for anything
/// else.
fn gathered(iovec: Term) -> Option<Gather> {
    if !iovec.is_nil() && !iovec.is_list_ptr() {
        return None;
    }
    let mut gather = Gather::new(iovec);
    gather.next_batch(max_parts(), scratch_bytes()).ok()?;
    // A list that fits in one batch has been checked by gathering it.
    (gather.is_last() || iolist::size(iovec).is_ok()).then_some(gather)
}

/// Writes everything gathered, batch by batch, starting with the present one; at offset `at`, if
/// given.
fn write_all(me: Term, fd: i32, mut gather: Gather, at: Option<i64>) -> Result<(), i32> {
    let mut pos = at.unwrap_or(0);
    let mut room = [const { MaybeUninit::uninit() }; MAX_PARTS];
    loop {
        while gather.bytes() > 0 {
            let parts = gather.vector(&mut room);
            // SAFETY: the parts are bytes of terms in hand or of the gatherer's scratch block, both
            // kept for the call.
            let r = unsafe { door::write(fd, parts, at.map(|_| pos)) };
            accounts::writes(|w| w.calls += 1);
            if watch::is_on() {
                watch::report(&[me], &gather, r.as_ref().ok().copied());
            }
            let n = r?;
            if n == 0 {
                return Err(libc::EIO);
            }
            gather.advance(n);
            pos = pos.saturating_add(n as i64);
        }
        if gather.is_last()
            || !(gather.next_batch(max_parts(), scratch_bytes())).map_err(|_| libc::EINVAL)?
        {
            return Ok(());
        }
    }
}

/// Writes on a scheduler what is written quickly. A dirty thread does everything else, including
/// errors of arguments.
fn write_here(cx: &mut Cx, f: Term, iovec: Term, at: Option<i64>) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        let mut call = file(f)?.at_once.begin().ok_or(Fail::Dirty)?;
        if gc::stress_roll(3) || !iovec.is_list() {
            return Err(Fail::Dirty);
        }
        accounts::writes_begin();
        let mut gather = Gather::new(iovec);
        let first = gather.next_batch(max_parts(), at_once::MOST_BYTES);
        if first.is_err() || !gather.is_last() || gather.bytes() > at_once::MOST_BYTES {
            call.too_much();
            return Err(Fail::Dirty);
        }
        cx.bump(gather.bytes() / BYTES_PER_REDUCTION);
        let me = cx.self_pid();
        call.ask();
        let r = write_all(me, fd, gather, at);
        accounts::wrote(cx);
        done(cx, r)
    })
}

fn write_2(cx: &mut Cx, [f, iovec]: [Term; 2]) -> BifResult {
    if let Some(r) = blocking::resumed(cx) {
        return r;
    }
    if !cx.dirty {
        return write_here(cx, f, iovec, None);
    }
    if file(f)?.waits {
        if !is_iovec(iovec) {
            return Err(Fail::Badarg);
        }
        let (me, iovec) = (cx.self_pid(), OwnedTerm::copy_of(iovec));
        let write = move |fd| match gathered(iovec.term()) {
            Some(g) => write_all(me, fd, g, None),
            None => Err(libc::EINVAL),
        };
        return on_own_thread(cx, file(f)?, write, done);
    }
    with_fd(cx, f, |cx, fd| {
        accounts::writes_begin();
        let gather = gathered(iovec).ok_or(Fail::Badarg)?;
        let me = cx.self_pid();
        let r = write_all(me, fd, gather, None);
        accounts::wrote(cx);
        done(cx, r)
    })
}

fn pwrite_3(cx: &mut Cx, [f, at, iovec]: [Term; 3]) -> BifResult {
    if !cx.dirty {
        let at = offset_arg(at).ok().and_then(Result::ok);
        return write_here(cx, f, iovec, Some(at.ok_or(Fail::Dirty)?));
    }
    with_fd(cx, f, |cx, fd| {
        let at = offset_arg(at)?;
        accounts::writes_begin();
        let gather = gathered(iovec).ok_or(Fail::Badarg)?;
        let me = cx.self_pid();
        let r = at.and_then(|at| write_all(me, fd, gather, Some(at)));
        accounts::wrote(cx);
        done(cx, r)
    })
}

fn seek_3(cx: &mut Cx, [f, from, offset]: [Term; 3]) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        if !cx.dirty && !file(f)?.at_once.seeks() {
            return Err(Fail::Dirty);
        }
        let offset = arith::to_i64(offset).ok_or(Fail::Badarg)?;
        let whence = match from {
            m if m == bof() => libc::SEEK_SET,
            m if m == cur() => libc::SEEK_CUR,
            am::EOF => libc::SEEK_END,
            _ => return Err(Fail::Badarg),
        };
        Ok(match door::seek(fd, offset, whence) {
            Ok(at) => {
                let at = cx.int(at);
                cx.ok(at)
            }
            Err(e) => posix_error(cx, e),
        })
    })
}

fn sync_2(cx: &mut Cx, [f, data_only]: [Term; 2]) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        let data_only = int_arg(data_only)? != 0;
        done(cx, door::sync(fd, data_only))
    })
}

fn truncate_1(cx: &mut Cx, [f]: [Term; 1]) -> BifResult {
    with_fd(cx, f, |cx, fd| done(cx, door::truncate(fd)))
}

fn allocate_3(cx: &mut Cx, [f, at, len]: [Term; 3]) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        let r = offset_args(at, len)?.and_then(|(at, len)| door::allocate(fd, at, len));
        done(cx, r)
    })
}

fn advise_4(cx: &mut Cx, [f, at, len, how]: [Term; 4]) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        let r = offset_args(at, len)?.and_then(|(at, len)| {
            let how = match how {
                am::NORMAL => door::Advice::Normal,
                m if m == random() => door::Advice::Random,
                m if m == sequential() => door::Advice::Sequential,
                m if m == will_need() => door::Advice::WillNeed,
                m if m == dont_need() => door::Advice::DontNeed,
                m if m == no_reuse() => door::Advice::NoReuse,
                _ => return Err(libc::EINVAL),
            };
            // This is advice only: that it cannot be taken is no error, as in stock.
            door::advise(fd, at, len, how);
            Ok(())
        });
        done(cx, r)
    })
}

fn read_handle_info_1(cx: &mut Cx, [f]: [Term; 1]) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        Ok(match door::status_of(fd) {
            Ok(st) => super::prim_file_names::file_info(cx, &st, mode_access(&st)),
            Err(e) => posix_error(cx, e),
        })
    })
}

/// Access according to the permission bits alone: bit 0 reading, bit 1 writing.
fn mode_access(st: &libc::stat) -> u8 {
    // SAFETY: plain calls.
    let shift = unsafe {
        if st.st_uid == libc::geteuid() {
            6
        } else if st.st_gid == libc::getegid() {
            3
        } else {
            0
        }
    };
    let bits = st.st_mode >> shift;
    (bits >> 2 & 1 | (bits >> 1 & 1) << 1) as u8
}

/// Reads the size and the position of a block from `pointer_at`, each of 32 bits, then the block.
fn ipread(cx: &mut Cx, fd: i32, pointer_at: i64, max_size: i64) -> Result<Term, i32> {
    let mut head = [0u8; 8];
    let mut len = 0;
    while len < head.len() {
        let rest = &mut head[len..];
        let at = pointer_at.saturating_add(len as i64);
        // SAFETY: the rest of the array may be written.
        let n = unsafe { door::read(fd, rest.as_mut_ptr(), rest.len(), Some(at)) }?;
        if n == 0 {
            return Ok(am::EOF);
        }
        len += n;
    }
    let word = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let (size, at) = (word(0) as i64, word(4) as i64);
    if size > max_size {
        return Ok(am::EOF);
    }
    let data = match read(cx, fd, size, Some(at))?.as_tuple() {
        Some(&[_, data]) => data,
        _ => am::EOF,
    };
    let t = cx.tuple(&[Term::small(size), Term::small(at), data]);
    Ok(cx.ok(t))
}

fn ipread_s32bu_p32bu_3(cx: &mut Cx, [f, at, max]: [Term; 3]) -> BifResult {
    with_fd(cx, f, |cx, fd| {
        if !at.is_number() || !max.is_number() {
            return Err(Fail::Badarg);
        }
        let r = match (arith::to_i64(at), arith::to_i64(max)) {
            (Some(at), Some(max)) if at >= 0 && max < 1 << 31 => ipread(cx, fd, at, max),
            _ => Err(libc::EINVAL),
        };
        or_error(cx, r)
    })
}

fn get_handle_1(cx: &mut Cx, [f]: [Term; 1]) -> BifResult {
    with_fd(cx, f, |cx, fd| Ok(cx.binary(&fd.to_ne_bytes())))
}

/// Reads a whole file, into a block of the file's stated size.
fn read_file(path: &CStr) -> Result<Filling, i32> {
    if let Some(r) = embedded::read(path.to_bytes()) {
        return Filling::of(r?);
    }
    let owned = door::open(path, libc::O_RDONLY, 0)?;
    let fd = owned.as_raw_fd();
    let st = door::peek(fd)?;
    if st.st_mode & libc::S_IFMT == libc::S_IFDIR {
        return Err(libc::EISDIR);
    }
    at_once::learn_device(path, st.st_dev, true);
    // Files that the kernel generates when they are read have size 0.
    let size = usize::try_from(st.st_size).unwrap_or(0);
    let wanted = if size == 0 { usize::MAX } else { size };
    let room = if size == 0 { FIRST_READ_BYTES } else { size };
    let mut b = Filling::new(room)?;
    // SAFETY: `fill` passes room for n bytes.
    b.fill(wanted, |p, n, _| unsafe { door::read(fd, p, n, None) })?;
    Ok(b)
}

/// Reads a whole file if the system has it in memory.
fn file_here(path: &CStr) -> Option<Result<Filling, i32>> {
    let (fd, size, device) = match at_once::open_file(path, MOST_HERE)? {
        Ok(found) => found,
        Err(e) => return Some(Err(e)),
    };
    let mut b = Filling::new(size).ok()?;
    let mut call = at_once::begin_read(at_once::may_wait(device))?;
    // SAFETY: `fill` passes room for n bytes.
    let read =
        |p, n, _| retry(|| unsafe { at_once::read_now(fd.as_raw_fd(), p, n, None, &mut call) });
    let read = b.fill(size, read);
    read.map_err(|e| at_once::read_refused(device, e)).ok()?;
    Some(Ok(b))
}

fn whole(cx: &mut Cx, r: Result<Filling, i32>) -> BifResult {
    let r = r.map(|b| {
        let t = b.into_term(cx);
        cx.ok(t)
    });
    or_error(cx, r)
}

/// The result for a path that a scheduler can give itself: for embedded files by `embedded`, else
/// by `known`. A dirty thread does everything else.
pub(super) fn name_here<T>(
    path: Term,
    embedded: impl FnOnce(&[u8]) -> Option<Result<T, i32>>,
    known: impl FnOnce(&CStr) -> Option<Result<T, i32>>,
) -> Result<Result<T, i32>, Fail> {
    if purlin_kernel::os::exploring::on() || gc::stress_roll(3) {
        return Err(Fail::Dirty);
    }
    let path = path_arg(path).map_err(|_| Fail::Dirty)?;
    if let Some(r) = embedded(path.to_bytes()) {
        return Ok(r);
    }
    known(&path).ok_or(Fail::Dirty)
}

fn read_file_1(cx: &mut Cx, [path]: [Term; 1]) -> BifResult {
    if let Some(r) = blocking::resumed(cx) {
        return r;
    }
    if !cx.dirty {
        let within = |p: &[u8]| {
            Some(embedded::read(p)?.and_then(|b| match b.len() > MOST_HERE {
                true => Ok(None),
                false => Filling::of(b).map(Some),
            }))
        };
        let r = match name_here(path, within, |p| Some(file_here(p)?.map(Some)))? {
            Ok(None) => return Err(Fail::Dirty),
            Ok(Some(b)) => Ok(b),
            Err(e) => Err(e),
        };
        cx.bump(r.as_ref().map_or(0, |b| b.len / BYTES_PER_REDUCTION));
        return whole(cx, r);
    }
    let path = match path_arg(path) {
        Ok(p) => p,
        Err(e) => return Ok(posix_error(cx, e)),
    };
    if open_waits(&path) {
        let path = path.into_owned();
        return blocking::call(cx, move || {
            let r = read_file(&path);
            Box::new(move |cx| whole(cx, r))
        });
    }
    whole(cx, read_file(&path))
}

bifs! {
    DirtyIo "prim_file":"open_nif"/2 = open_2 [here writes(File) recorded outside(Opened)];
    DirtyIo "prim_file":"close_nif"/1 = close_1 [here reads(File) recorded];
    DirtyIo "prim_file":"read_nif"/2 = read_2 [here reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"write_nif"/2 = write_2 [here writes(File) recorded outside(Written)];
    DirtyIo "prim_file":"pread_nif"/3 = pread_3 [here reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"pwrite_nif"/3 = pwrite_3 [here writes(File) recorded outside(Written)];
    DirtyIo "prim_file":"seek_nif"/3 = seek_3 [here recorded];
    DirtyIo "prim_file":"sync_nif"/2 = sync_2 [writes(File) recorded outside(Written)];
    DirtyIo "prim_file":"truncate_nif"/1 = truncate_1 [writes(File) recorded outside(Written)];
    DirtyIo "prim_file":"allocate_nif"/3 = allocate_3 [writes(File) recorded outside(Written)];
    DirtyIo "prim_file":"advise_nif"/4 = advise_4 [recorded];
    DirtyIo "prim_file":"read_handle_info_nif"/1 = read_handle_info_1 [reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"ipread_s32bu_p32bu_nif"/3 = ipread_s32bu_p32bu_3 [reads(File) recorded outside(Read)];
    DirtyIo "prim_file":"read_file_nif"/1 = read_file_1 [here reads(File) recorded outside(Read)];
    Plain "prim_file":"get_handle_nif"/1 = get_handle_1 [recorded];
    DirtyIo "prim_file":"delayed_close_nif"/1 = delayed_close_1 [recorded];
    DirtyIo "prim_file":"file_desc_to_ref_nif"/1 = file_desc_to_ref_1 [recorded];
}
