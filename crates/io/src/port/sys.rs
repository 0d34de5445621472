//! The system calls of ports that are no sockets: pipes, gathering writes, terminals, child processes.

use crate::gather::max_parts;
use crate::os::retry;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Instant;

fn check(r: libc::c_int) -> io::Result<libc::c_int> {
    if r < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(r)
    }
}

/// Descriptors below this number have a meaning in child processes: no pipe of ours may sit there.
const FIRST_FREE: RawFd = 5;

/// A pipe, (read end, write end), both closed on exec and numbered outside the range that children use.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (r, w) = io::pipe()?;
    Ok((lift(r.into())?, lift(w.into())?))
}
fn lift(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() >= FIRST_FREE {
        return Ok(fd);
    }
    // SAFETY: duplicates an open descriptor; the new one is ours.
    unsafe {
        let d = check(libc::fcntl(
            fd.as_raw_fd(),
            libc::F_DUPFD_CLOEXEC,
            FIRST_FREE,
        ))?;
        Ok(OwnedFd::from_raw_fd(d))
    }
}

/// Makes reads and writes on the open file behind `fd` return where they would block.
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

/// Greatest number of descriptors there may be, which no valid descriptor reaches.
pub(crate) fn max_files() -> i64 {
    // SAFETY: plain system call.
    match unsafe { libc::sysconf(libc::_SC_OPEN_MAX) } {
        n if n > 0 => n,
        _ => 1024,
    }
}

/// As [`retry`], with the error as the standard library has it.
fn repeated(call: impl FnMut() -> isize) -> io::Result<usize> {
    retry(call).map_err(io::Error::from_raw_os_error)
}

/// Reads what is there.
pub fn read(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for its length.
    repeated(|| unsafe { libc::read(fd, buf.as_mut_ptr().cast(), buf.len()) })
}

/// Writes parts in one system call, at most `limit` bytes.
pub fn write<'a>(
    fd: RawFd,
    parts: impl Iterator<Item = &'a [u8]>,
    limit: usize,
) -> io::Result<usize> {
    let mut iov = smallvec::SmallVec::<[libc::iovec; 8]>::new();
    let mut left = limit;
    for p in parts.take(max_parts()) {
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
    // SAFETY: each entry is a live slice.
    repeated(|| unsafe { libc::writev(fd, iov.as_ptr(), iov.len() as libc::c_int) })
}

/// Whether `fd` can be read (or written) without blocking, waiting at most `timeout_ms` (-1: for ever). Errors and
/// hang-ups count as ready.
pub fn poll_one(fd: RawFd, write: bool, timeout_ms: i32) -> bool {
    let mut p = libc::pollfd {
        fd,
        events: if write { libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    };
    // SAFETY: one valid entry.
    let n = retry(|| unsafe { libc::poll(&mut p, 1, timeout_ms) } as isize).ok();
    n.is_none_or(|n| n > 0)
}

/// The milliseconds until then, as [`poll_one`] takes them.
pub fn ms_until(until: Option<Instant>) -> i32 {
    until.map_or(-1, |u| {
        let left = u.saturating_duration_since(Instant::now()).as_micros();
        i32::try_from(left.div_ceil(1000)).unwrap_or(i32::MAX)
    })
}

/// Whether the other side of `fd` has gone; None if the descriptor can't be asked.
pub fn hung_up(fd: RawFd) -> io::Result<Option<bool>> {
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

/// The kind of file that a descriptor leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FileKind {
    /// Never blocks.
    Regular,
    Pipe,
    Terminal,
    Other,
}

/// The kind of file that `fd` leads to; None if it isn't open.
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

pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: plain system call.
    unsafe { libc::isatty(fd) == 1 }
}

/// Opens what `fd` leads to once more for writing, non-blocking, so that the mode of a file that is shared with other
/// programs stays as it is. None where that can't be done.
pub(crate) fn open_again_for_writing(fd: RawFd, kind: FileKind) -> Option<OwnedFd> {
    let path = match kind {
        FileKind::Terminal => terminal_name(fd)?,
        #[cfg(target_os = "linux")]
        FileKind::Pipe => CString::new(format!("/proc/self/fd/{fd}")).ok()?,
        _ => return None,
    };
    let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
    // SAFETY: a valid path; the new descriptor is ours.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags)).ok()?;
        lift(OwnedFd::from_raw_fd(fd)).ok()
    }
}

fn terminal_name(fd: RawFd) -> Option<CString> {
    let mut buf = [0 as libc::c_char; 256];
    // SAFETY: the buffer is that long; what is written ends with a zero byte.
    unsafe {
        (libc::ttyname_r(fd, buf.as_mut_ptr(), buf.len()) == 0)
            .then(|| CStr::from_ptr(buf.as_ptr()).to_owned())
    }
}

/// Opens a terminal, or what else a driver is told to use as one.
pub(crate) fn open_terminal(path: &[u8]) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: a valid path; the new descriptor is ours.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags))?;
        lift(OwnedFd::from_raw_fd(fd))
    }
}

/// The modes of a terminal.
#[derive(Clone, Copy)]
pub struct Modes(libc::termios);

/// Which modes a driver sets (true) or clears (false); None: as they are.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ModeChanges {
    /// Input by lines that the kernel edits.
    pub canonical: Option<bool>,
    pub echo: Option<bool>,
    /// Keys that make signals, and flow control.
    pub signals: Option<bool>,
}

impl Modes {
    /// Those that the terminal has.
    pub fn of(fd: RawFd) -> io::Result<Modes> {
        // SAFETY: an out parameter of the right type.
        unsafe {
            let mut t: libc::termios = std::mem::zeroed();
            check(libc::tcgetattr(fd, &mut t))?;
            Ok(Modes(t))
        }
    }
    /// Gives them to the terminal. May be called in a signal handler.
    pub fn set(&self, fd: RawFd) -> io::Result<()> {
        // SAFETY: modes that came from a terminal.
        check(unsafe { libc::tcsetattr(fd, libc::TCSANOW, &self.0) }).map(drop)
    }
    /// Makes the key that interrupts an ordinary one.
    pub(crate) fn pass_interrupt_key(&mut self) {
        self.0.c_cc[libc::VINTR] = 0;
    }
    /// These, changed.
    pub fn changed(&self, c: ModeChanges) -> Modes {
        fn bits(flags: &mut libc::tcflag_t, mask: libc::tcflag_t, on: bool) {
            if on {
                *flags |= mask;
            } else {
                *flags &= !mask;
            }
        }
        let mut t = self.0;
        t.c_iflag &= !libc::ISTRIP;
        if let Some(on) = c.canonical {
            bits(&mut t.c_iflag, libc::ICRNL, on);
            bits(&mut t.c_lflag, libc::ICANON, on);
            bits(&mut t.c_oflag, libc::OPOST, on);
            if !on {
                t.c_cc[libc::VMIN] = 1;
                t.c_cc[libc::VTIME] = 0;
            }
        }
        if let Some(on) = c.echo {
            bits(&mut t.c_lflag, libc::ECHO, on);
        }
        if let Some(on) = c.signals {
            let keys = libc::BRKINT | libc::IGNPAR | libc::ICRNL | libc::IXON | libc::IXANY;
            bits(&mut t.c_iflag, keys, on);
            bits(&mut t.c_lflag, libc::ISIG | libc::IEXTEN, on);
        }
        Modes(t)
    }
}

/// The knowledge of the environment's locale about characters.
pub struct SystemLocale(());

impl SystemLocale {
    /// Makes the locale of the environment the process's, for characters only.
    pub fn of_environment() -> SystemLocale {
        // SAFETY: a valid string; nothing else here depends on the locale's characters.
        unsafe { libc::setlocale(libc::LC_CTYPE, c"".as_ptr()) };
        SystemLocale(())
    }
}

unsafe extern "C" {
    fn wcwidth(c: libc::wchar_t) -> libc::c_int;
}

/// Columns that a character takes; -1 if it can't be printed.
pub fn char_width(c: u32) -> i32 {
    // SAFETY: any number will do.
    unsafe { wcwidth(c as libc::wchar_t) }
}
/// Whether the locale has a character of one byte for it that can be printed.
pub fn is_printable(c: u8) -> bool {
    // SAFETY: in the range of an unsigned char.
    unsafe { libc::isprint(i32::from(c)) != 0 }
}

impl super::line::Locale for SystemLocale {
    fn width(&self, c: u32) -> i32 {
        char_width(c)
    }
    fn printable(&self, c: u8) -> bool {
        is_printable(c)
    }
}

/// Opens a file for a port that is named after it.
pub fn open_file(path: &[u8], read: bool, write: bool) -> io::Result<OwnedFd> {
    let path = CString::new(path)?;
    let flags = match (read, write) {
        (true, false) => libc::O_RDONLY,
        (false, true) => libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC,
        _ => libc::O_RDWR | libc::O_CREAT,
    };
    // SAFETY: a valid path; the new descriptor is ours.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), flags | libc::O_CLOEXEC, 0o666))?;
        lift(OwnedFd::from_raw_fd(fd))
    }
}

/// Columns and rows of the terminal behind `fd`; None if it is none.
pub fn window_size(fd: RawFd) -> Option<(u32, u32)> {
    // SAFETY: an out parameter of the right type.
    unsafe {
        let mut w: libc::winsize = std::mem::zeroed();
        check(libc::ioctl(fd, libc::TIOCGWINSZ, &mut w)).ok()?;
        Some((u32::from(w.ws_col), u32::from(w.ws_row)))
    }
}

/// Whether a file can be executed.
pub(crate) fn check_executable(path: &CStr) -> io::Result<()> {
    // SAFETY: a valid path.
    check(unsafe { libc::access(path.as_ptr(), libc::X_OK) }).map(drop)
}

/// Marks every descriptor beyond the standard ones that this process was started with as closed on exec: children get
/// what their port gives them, and nothing else.
pub(crate) fn close_inherited_on_exec() {
    let Ok(dir) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    for e in dir.flatten() {
        let Some(fd) = e.file_name().to_str().and_then(|s| s.parse::<RawFd>().ok()) else {
            continue;
        };
        if fd > 2 {
            // SAFETY: plain system calls; a descriptor closed meanwhile gives an error.
            unsafe {
                let f = libc::fcntl(fd, libc::F_GETFD);
                if f >= 0 && f & libc::FD_CLOEXEC == 0 {
                    libc::fcntl(fd, libc::F_SETFD, f | libc::FD_CLOEXEC);
                }
            }
        }
    }
}

/// A program to start.
pub struct Command {
    pub program: CString,
    pub args: Vec<CString>,
    /// `NAME=VALUE`
    pub env: Vec<CString>,
    pub dir: Option<CString>,
}

/// The child's descriptors: (descriptor here, number there).
pub(crate) type Wiring = smallvec::SmallVec<[(RawFd, RawFd); 3]>;

struct Actions(libc::posix_spawn_file_actions_t);
impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `spawn`.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}
struct Attributes(libc::posix_spawnattr_t);
impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `spawn`.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

fn ok(r: libc::c_int) -> io::Result<()> {
    if r == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(r))
    }
}

/// Starts a program in a session of its own, with an empty signal mask and default actions for the signals that the
/// runtime handles. Gives its process number. Fails where the kernel or the program's file refuses.
pub fn spawn(c: &Command, wiring: &Wiring) -> io::Result<libc::pid_t> {
    let pointers = |v: &[CString]| -> Vec<*mut libc::c_char> {
        v.iter()
            .map(|s| s.as_ptr() as *mut libc::c_char)
            .chain([std::ptr::null_mut()])
            .collect()
    };
    let (argv, envp) = (pointers(&c.args), pointers(&c.env));
    // SAFETY: both objects are initialised before use and destroyed after; all strings end with a zero byte and all
    // arrays with a null pointer, and they outlive the call.
    unsafe {
        let mut actions = std::mem::zeroed();
        ok(libc::posix_spawn_file_actions_init(&mut actions))?;
        let mut actions = Actions(actions);
        let mut attr = std::mem::zeroed();
        ok(libc::posix_spawnattr_init(&mut attr))?;
        let mut attr = Attributes(attr);
        for &(from, to) in wiring {
            ok(libc::posix_spawn_file_actions_adddup2(
                &mut actions.0,
                from,
                to,
            ))?;
        }
        if let Some(d) = &c.dir {
            ok(libc::posix_spawn_file_actions_addchdir_np(
                &mut actions.0,
                d.as_ptr(),
            ))?;
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        ok(libc::posix_spawnattr_setsigmask(&mut attr.0, &none))?;
        let mut defaults = none;
        for s in [
            libc::SIGTERM,
            libc::SIGINT,
            libc::SIGQUIT,
            libc::SIGHUP,
            libc::SIGCHLD,
        ] {
            libc::sigaddset(&mut defaults, s);
        }
        ok(libc::posix_spawnattr_setsigdefault(&mut attr.0, &defaults))?;
        let flags = libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF | SPAWN_SETSID;
        ok(libc::posix_spawnattr_setflags(&mut attr.0, flags as _))?;
        let mut pid = 0;
        // A program has nothing of the processor that the scheduler which starts it is bound to.
        ok(purlin_kernel::affinity::unbound(|| {
            libc::posix_spawn(
                &mut pid,
                c.program.as_ptr(),
                &actions.0,
                &attr.0,
                argv.as_ptr(),
                envp.as_ptr(),
            )
        }))?;
        Ok(pid)
    }
}

/// `POSIX_SPAWN_SETSID` of the system's headers.
#[cfg(target_os = "linux")]
const SPAWN_SETSID: libc::c_int = 0x80;
#[cfg(target_os = "macos")]
const SPAWN_SETSID: libc::c_int = 0x0400;

/// A descriptor that can be read as soon as that child has ended. None: the system gives none.
pub(crate) fn end_of_child(pid: libc::pid_t) -> Option<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: plain system call; the descriptor is nobody else's, and closed in children.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: as above.
        (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// The status, as by wait(2), of a child if it has ended, which is forgotten then.
pub(crate) fn wait_for(pid: libc::pid_t) -> io::Result<Option<i32>> {
    let mut status = 0;
    // SAFETY: an out parameter.
    let of = check(unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) })?;
    Ok((of == pid).then_some(status))
}

/// Whether processes whose parents have ended become children of this one.
pub(crate) fn inherits_orphans() -> bool {
    #[cfg(target_os = "linux")]
    {
        let mut asked: libc::c_int = 0;
        // SAFETY: an out parameter.
        let r = unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut asked) };
        std::process::id() == 1 || (r == 0 && asked != 0)
    }
    #[cfg(not(target_os = "linux"))]
    {
        std::process::id() == 1
    }
}

/// Sleeps until a child has ended; its number. It is not waited for. None: there are no children.
pub(crate) fn ended_child() -> Option<libc::pid_t> {
    // SAFETY: numbers and null pointers.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: an out parameter.
    let r = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT) };
    // SAFETY: filled for a child.
    (r == 0).then(|| unsafe { info.si_pid() })
}

/// Children that have ended and nobody has waited for, as far as the system tells.
pub(crate) fn ended_children() -> Vec<libc::pid_t> {
    let me = std::process::id().to_string();
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |e: std::fs::DirEntry| {
        let pid = e.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(e.path().join("stat")).ok()?;
        // Behind the name, which may hold anything: state, parent.
        let end = stat.iter().rposition(|&b| b == b')')?;
        let rest = String::from_utf8_lossy(&stat[end + 1..]).into_owned();
        let mut fields = rest.split_ascii_whitespace();
        (fields.next() == Some("Z") && fields.next() == Some(&me)).then_some(pid)
    };
    all.flatten().filter_map(pid).collect()
}

/// The number that a shell would show for a status of wait(2).
pub(crate) fn exit_code(status: i32) -> i32 {
    if libc::WIFSIGNALED(status) {
        128 + libc::WTERMSIG(status)
    } else {
        libc::WEXITSTATUS(status)
    }
}

/// Whether a directory can be entered.
pub(crate) fn check_dir(dir: &CStr) -> io::Result<()> {
    let m = std::fs::metadata(OsStr::from_bytes(dir.to_bytes()))?;
    if !m.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    check_executable(dir)
}
