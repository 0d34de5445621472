//! Looks whether what `purlin exec` has started starts an emulator that is not Purlin.
//!
//! Scripts may name an emulator by its path (`ERL=/usr/bin/erl`), set a `PATH` of their own, or change to a user who can't read
//! where Purlin's links are. Then all goes as usual, on stock. So a process beside the command looks at the processes of the
//! machine, often at first and whenever somebody opens the installation's emulator, and says at the end what it has seen.
//! With `PURLIN_EXEC=strict` Purlin stays the parent of the command, and ends with an error if it has seen one; with `quiet` it
//! doesn't look.
//!
//! A process is below the command if its environment has the mark that the command was given, or if the command is among its
//! ancestors; the former is lost where the environment is emptied, the latter where a parent has ended.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::assembled;
use crate::failure::{Failure, NOT_EXECUTABLE, NOT_FOUND, REFUSED, SYSTEM, reason, say};

/// The mark in the environment.
const MARK: &str = "PURLIN_EXEC_ID";
/// `strict`: another emulator is an error. `quiet`: it is what the command is meant to start, and nothing is said.
const MODE: &str = "PURLIN_EXEC";
/// The beginning of the names of stock's emulators (`beam.smp`), as the system tells them. Purlin's never has it.
const STOCK: &[u8] = b"beam";
/// How long is slept between two looks, at first and at last.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(2);
/// How long after the emulator's file was opened the process is another one.
const SETTLE: Duration = Duration::from_millis(3);

/// Whether nobody wants to know of another emulator.
pub fn is_quiet() -> bool {
    std::env::var_os(MODE).is_some_and(|mode| mode == "quiet")
}
/// Whether other emulators are an error.
pub fn is_strict() -> bool {
    std::env::var_os(MODE).is_some_and(|mode| mode == "strict")
}

/// The mark for this command, to be put in its environment.
pub fn mark() -> (&'static str, OsString) {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let id = now.map_or(0, |t| t.as_nanos());
    (MARK, format!("{}-{id:x}", std::process::id()).into())
}

/// The search for emulators.
pub struct Watch {
    mark: Vec<u8>,
    command: u32,
    opened: Option<OwnedFd>,
    seen: Option<PathBuf>,
}

impl Watch {
    /// Looks for what the process `command` starts, with that mark; `emulators` are files whose opening is noticed at once.
    fn new(mark: &OsStr, command: u32, emulators: &[PathBuf]) -> Watch {
        let mut text = MARK.as_bytes().to_vec();
        text.push(b'=');
        text.extend_from_slice(mark.as_bytes());
        Watch {
            mark: text,
            command,
            opened: notice(emulators),
            seen: None,
        }
    }

    /// Waits until the command has ended, which `ended` waits for, as long as it is told.
    fn until_end(&mut self, mut ended: impl FnMut(Duration, Option<&OwnedFd>) -> Waited) {
        let mut pause = OFTEN;
        loop {
            let waited = match self.seen {
                Some(_) => ended(SELDOM, None),
                None => ended(pause, self.opened.as_ref()),
            };
            if matches!(waited, Waited::Opened) {
                if let Some(fd) = &self.opened {
                    drain(fd);
                }
                std::thread::sleep(SETTLE);
            }
            if self.seen.is_none() {
                self.seen = look(&self.mark, self.command);
            }
            if matches!(waited, Waited::Ended) {
                return;
            }
            pause = (pause + pause / 4).min(SELDOM);
        }
    }

    fn said(&self) -> Option<String> {
        let seen = self.seen.as_ref()?;
        Some(format!(
            "purlin: the command started {}, which is not Purlin: it names that emulator, or can't read Purlin's",
            seen.display()
        ))
    }
}

/// Why a wait is over.
enum Waited {
    Ended,
    /// An emulator's file was opened.
    Opened,
    Long,
}

/// Looks on from a process of its own, while this one goes on to become the command. Where that can't be, nobody looks.
pub fn beside(mark: &OsStr, emulators: &[PathBuf]) {
    if !Path::new("/proc/self/stat").exists() {
        return;
    }
    let command = std::process::id();
    // SAFETY: there is one thread: the child goes on as this program would.
    match unsafe { libc::fork() } {
        -1 => {}
        0 => {
            // The command knows of no child that it hasn't made: its child ends at once, and its child's child looks.
            // SAFETY: as above; the rest are calls without memory.
            unsafe {
                if libc::fork() != 0 {
                    libc::_exit(0);
                }
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
                    libc::signal(signal, libc::SIG_IGN);
                }
            }
            look_on(mark, command, emulators);
            // SAFETY: nothing of this process is to be done at its end.
            unsafe { libc::_exit(0) };
        }
        child => {
            // SAFETY: a child of this process, whose status isn't wanted.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    }
}

fn look_on(mark: &OsStr, command: u32, emulators: &[PathBuf]) {
    // Whoever waits for the end of what the command writes to its output is not to wait for this.
    if let Ok(null) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for fd in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
            // SAFETY: a descriptor in hand.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
    // SAFETY: no memory is handed over.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, command, 0) };
    if fd < 0 {
        return;
    }
    // SAFETY: a descriptor that nobody else has.
    let process = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    let since = SystemTime::now();
    let mut watch = Watch::new(mark, command, emulators);
    watch.until_end(|pause, opened| wait_for(&process, opened, pause));
    if let Some(said) = watch.said() {
        say(said);
    }
    say_of_releases(since);
}

/// Says which releases the command has made that won't run on Purlin.
fn say_of_releases(since: SystemTime) {
    let made = std::env::current_dir().map(|dir| assembled::with_an_emulator(&dir, since));
    for release in made.unwrap_or_default() {
        say(assembled::said(&release));
    }
}

/// Waits for the end of a process, or until an emulator is opened.
fn wait_for(process: &OwnedFd, opened: Option<&OwnedFd>, pause: Duration) -> Waited {
    let poll = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // A negative descriptor is none.
    let mut all = [
        poll(process.as_raw_fd()),
        poll(opened.map_or(-1, |fd| fd.as_raw_fd())),
    ];
    // SAFETY: that many of them.
    unsafe { libc::poll(all.as_mut_ptr(), 2, pause.as_millis() as i32) };
    match (all[0].revents, all[1].revents) {
        (0, 0) => Waited::Long,
        (0, _) => Waited::Opened,
        _ => Waited::Ended,
    }
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn pass_on(signal: libc::c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: a call that a handler may make.
        unsafe { libc::kill(child, signal) };
    }
}

/// Runs the command as a child, and fails if it started another emulator.
pub fn strictly(
    program: &Path,
    name: &OsStr,
    args: &[OsString],
    environment: &[(OsString, OsString)],
    mark: &OsStr,
    emulators: &[PathBuf],
) -> Result<u8, Failure> {
    let mut command = Command::new(program);
    command.arg0(name).args(args).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::inherit());
    let mut child = command.spawn().map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        let program = program.display();
        Failure::new(
            code,
            format!("purlin: cannot run {program}: {}", reason(&error)),
        )
    })?;
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    for signal in [
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGHUP,
        libc::SIGTERM,
        libc::SIGUSR1,
        libc::SIGUSR2,
    ] {
        // SAFETY: the handler does what handlers may.
        unsafe { libc::signal(signal, pass_on as *const () as libc::sighandler_t) };
    }
    let since = SystemTime::now();
    let mut watch = Watch::new(mark, child.id(), emulators);
    let mut status = None;
    watch.until_end(|pause, _| {
        let end = Instant::now() + pause.min(OFTEN);
        loop {
            match child.try_wait() {
                Ok(None) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(None) => return Waited::Long,
                Ok(Some(s)) => {
                    status = Some(s);
                    return Waited::Ended;
                }
                Err(_) => return Waited::Ended,
            }
        }
    });
    say_of_releases(since);
    if let Some(said) = watch.said() {
        return Err(Failure::new(REFUSED, said));
    }
    let status = status.ok_or_else(|| Failure::new(SYSTEM, "purlin: the command is lost"))?;
    let code = status.code().unwrap_or(0);
    Ok(status.signal().map_or(code as u8, |n| 128 + n as u8))
}

/// A descriptor that can be read when one of these files is opened.
fn notice(files: &[PathBuf]) -> Option<OwnedFd> {
    // SAFETY: no memory is handed over.
    let fd = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: a descriptor that nobody else has.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    for file in files {
        if let Ok(path) = std::ffi::CString::new(file.as_os_str().as_bytes()) {
            // SAFETY: a descriptor in hand, and a text that ends.
            unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) };
        }
    }
    Some(fd)
}

/// Takes what has been noticed.
fn drain(fd: &OwnedFd) {
    let mut events = [0u8; 4096];
    // SAFETY: that much room.
    while unsafe { libc::read(fd.as_raw_fd(), events.as_mut_ptr().cast(), events.len()) } > 0 {}
}

/// A stock emulator that runs below the command.
fn look(mark: &[u8], command: u32) -> Option<PathBuf> {
    let entries = fs::read_dir("/proc").ok()?;
    entries.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let dir = entry.path();
        let name = fs::read(dir.join("comm")).ok()?;
        if !name.starts_with(STOCK) {
            return None;
        }
        let marked = fs::read(dir.join("environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == mark));
        if !marked && !is_below(pid, command) {
            return None;
        }
        // Who may not know the file at least knows the name.
        let shown = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
        Some(fs::read_link(dir.join("exe")).unwrap_or_else(|_| shown.into()))
    })
}

fn is_below(pid: u32, command: u32) -> bool {
    let mut at = pid;
    // The table may change meanwhile: what looks like a circle isn't followed for ever.
    for _ in 0..1000 {
        if at == command {
            return true;
        }
        let Some(parent) = parent(at).filter(|p| *p > 1) else {
            return false;
        };
        at = parent;
    }
    false
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses, and may have any characters.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors() {
        let own = std::process::id();
        // SAFETY: no arguments.
        let above = unsafe { libc::getppid() } as u32;
        assert_eq!(parent(own), Some(above));
        assert!(is_below(own, own) && (above <= 1 || is_below(own, above)));
        assert!(!is_below(above, own) && !is_below(u32::MAX, own));
    }
}
