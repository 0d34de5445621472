//! Child processes: starts programs and learns of their end.
//!
//! A call asks the replay log first ([`door`]): a replayed run starts no program.
//!
//! # Invariant
//! A child inherits the descriptors that its port gives it, and no others.

use super::descriptor::{check, lift};
use super::door;
use purlin_kernel::os::failing::{self, Call};
use purlin_kernel::os::replay_log::{self, Asked, Verb};
use purlin_kernel::os::world;
use purlin_kernel::os::world::messages::{Call::EndOf, Thing, number};
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::AsRawFd;
#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

/// Succeeds if a file can be executed.
pub(crate) fn check_executable(path: &CStr) -> io::Result<()> {
    let asked = || Asked::text(path.to_string_lossy());
    door(Verb::Executable, None, asked, || is_executable(path))
}

fn is_executable(path: &CStr) -> io::Result<()> {
    if let Some(found) = crate::embedded::find(path.to_bytes()) {
        let errno = match found {
            Ok(crate::embedded::Found::File(f)) if f.is_program => return Ok(()),
            Ok(_) => libc::EACCES,
            Err(e) => e,
        };
        return Err(io::Error::from_raw_os_error(errno));
    }
    // SAFETY: a valid path.
    check(unsafe { libc::access(path.as_ptr(), libc::X_OK) }).map(drop)
}

/// Sets close-on-exec for every inherited descriptor above the standard ones. So children get what
/// their port gives them and nothing else.
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

/// The child's descriptors: (descriptor here, number in the child).
pub(crate) type Wiring = smallvec::SmallVec<[(RawFd, RawFd); 3]>;

fn ok(r: libc::c_int) -> io::Result<()> {
    if r == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(r))
    }
}

/// Starts a program in a session of its own, with an empty signal mask and default actions for the
/// signals that the runtime handles. Returns its process number. Fails if the kernel refuses or the
/// file cannot be executed.
pub fn spawn(c: &Command, wiring: &Wiring) -> io::Result<libc::pid_t> {
    let asked = || {
        let mut words = vec![c.program.to_string_lossy()];
        words.extend(c.args.iter().skip(1).map(|a| a.to_string_lossy()));
        if let Some(dir) = &c.dir {
            words.extend(["in".into(), dir.to_string_lossy()]);
        }
        Asked::text(words.join(" "))
    };
    door(Verb::Spawn, None, asked, || {
        failing::call(Call::Spawn, || Ok(())).map_err(io::Error::from_raw_os_error)?;
        spawn_it(c, wiring)
    })
}

fn spawn_it(c: &Command, wiring: &Wiring) -> io::Result<libc::pid_t> {
    let pointers = |v: &[CString]| -> Vec<*mut libc::c_char> {
        v.iter()
            .map(|s| s.as_ptr() as *mut libc::c_char)
            .chain([std::ptr::null_mut()])
            .collect()
    };
    let (argv, envp) = (pointers(&c.args), pointers(&c.env));
    // A program that is embedded in this executable starts from memory.
    let memory = match crate::embedded::find(c.program.to_bytes()) {
        Some(Ok(crate::embedded::Found::File(f))) => {
            let fd = crate::embedded::descriptor(f).map_err(io::Error::from_raw_os_error)?;
            Some((lift(fd)?, f.bytes.starts_with(b"#!")))
        }
        Some(Ok(crate::embedded::Found::Folder)) => {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        Some(Err(e)) => return Err(io::Error::from_raw_os_error(e)),
        None => None,
    };
    let program = match &memory {
        Some((fd, _)) => {
            CString::new(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default()
        }
        None => c.program.clone(),
    };
    // SAFETY: both objects are initialised before use and destroyed after. All strings end with a
    // zero byte and all arrays with a null pointer, and they outlive the call.
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
        // The interpreter of a script opens the script by that path. Duplicating a descriptor to
        // itself keeps it open in the child.
        if let Some((fd, true)) = &memory {
            ok(libc::posix_spawn_file_actions_adddup2(
                &mut actions.0,
                fd.as_raw_fd(),
                fd.as_raw_fd(),
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
        // A program does not inherit the processor that its scheduler is bound to.
        ok(purlin_kernel::affinity::unbound(|| {
            libc::posix_spawn(
                &mut pid,
                program.as_ptr(),
                &actions.0,
                &attr.0,
                argv.as_ptr(),
                envp.as_ptr(),
            )
        }))?;
        Ok(pid)
    }
}

/// Returns a descriptor that becomes readable when the child ends. None if the system has none.
pub(crate) fn end_of_child(pid: libc::pid_t) -> Option<OwnedFd> {
    if replay_log::replays() {
        return replay_log::placeholder().ok();
    }
    #[cfg(target_os = "linux")]
    {
        // SAFETY: plain system call; the descriptor belongs to nobody else and is closed in
        // children.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: a fresh descriptor, which has no other owner.
        (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        None
    }
}

/// Returns the status of a child, as by wait(2), if it has ended. The system then forgets the
/// child.
pub(crate) fn wait_for(pid: libc::pid_t) -> io::Result<Option<i32>> {
    if world::is_on() {
        // The world says when a program has ended. The real one does so at about that time.
        let mut status = 0;
        // SAFETY: an out parameter.
        check(unsafe { libc::waitpid(pid, &mut status, 0) })?;
        return Ok(Some(status));
    }
    let asked = || Asked::text(format!("program of number {pid}"));
    door(Verb::Ended, None, asked, || {
        let mut status = 0;
        // SAFETY: an out parameter.
        let of = check(unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) })?;
        Ok((of == pid).then_some(status))
    })
}

/// Returns the status, as by wait(2), of a node that this node has started, and that has ended. The
/// world knows it: this may be a copy of the node, and the other one is a copy, too, and none of
/// its children. `None`: the world does not know.
pub(crate) fn end_in_world(end: Thing) -> Option<i32> {
    let answer = world::ask(EndOf { of: end }).ok()?;
    Some(number(&answer, 0)? as i32)
}

/// Whether orphaned processes become children of this process.
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

/// Sleeps until a child has ended, and returns its number without reaping it. None if there are no
/// children.
pub(crate) fn ended_child() -> Option<libc::pid_t> {
    // SAFETY: numbers and null pointers.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: an out parameter.
    let r = unsafe { libc::waitid(libc::P_ALL, 0, &mut info, libc::WEXITED | libc::WNOWAIT) };
    // SAFETY: the system has filled it in for a child.
    (r == 0).then(|| unsafe { info.si_pid() })
}

/// Children that have ended and are not reaped yet, as far as the system shows them.
pub(crate) fn ended_children() -> Vec<libc::pid_t> {
    let me = std::process::id().to_string();
    let Ok(all) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pid = |e: std::fs::DirEntry| {
        let pid = e.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(e.path().join("stat")).ok()?;
        // Behind the name, which may contain anything: state, parent.
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

/// Succeeds if a directory can be entered.
pub(crate) fn check_dir(dir: &CStr) -> io::Result<()> {
    let asked = || Asked::text(dir.to_string_lossy());
    door(Verb::Folder, None, asked, || {
        let m = std::fs::metadata(OsStr::from_bytes(dir.to_bytes()))?;
        if !m.is_dir() {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        }
        is_executable(dir)
    })
}

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

/// `POSIX_SPAWN_SETSID` of the system's headers.
#[cfg(target_os = "linux")]
const SPAWN_SETSID: libc::c_int = 0x80;
#[cfg(target_os = "macos")]
const SPAWN_SETSID: libc::c_int = 0x0400;
