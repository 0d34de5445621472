//! Detects whether a command started by `purlin exec` runs an emulator that is not Purlin.
//!
//! Scripts may name an emulator by its path (`ERL=/usr/bin/erl`), set their own `PATH`, or change
//! to a user who cannot read Purlin's links. Everything then works as usual, on stock. So a process
//! beside the command examines the processes of the machine and reports the first such emulator.
//! With `PURLIN_EXEC=strict` Purlin stays the parent of the command, and ends with an error if it
//! has seen one; with `quiet` nothing is examined.
//!
//! An emulator is recognised by the name of its file, or of a file passed to a loader (`ld.so
//! .../beam.smp`), or by the names of its threads, whatever its file is called and whether or not
//! it has one. `crate::descendants` says which processes count.
//!
//! The system reports the number of the newest thread. It is read every few milliseconds, and
//! threads with numbers in between are examined. So an emulator that ends soon is seen if it starts
//! threads and lives for that long. One that does not is seen only if it is the installation's,
//! whose opening is reported. All processes are examined from time to time, and at the end.
//! Background processes that outlive the command are waited for only for a moment, since they may
//! be about to execute an emulator.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use crate::bundled_emulators;
use crate::descendants::{Descendants, Marks, age};
use crate::failure::{
    Failure, NOT_EXECUTABLE, NOT_FOUND, REFUSED, cannot_run, lost_command, say, warn,
};
use purlin_messages as messages;

/// The variable for the mode. `strict`: another emulator is an error. `quiet`: the command is meant
/// to start one, and nothing is reported.
const MODE: &str = "PURLIN_EXEC";
/// Prefix of the names of stock's emulators (`beam.smp`). Purlin's name never has it.
const STOCK: &[u8] = b"beam";
/// Shortest and longest pause between two looks at new threads; it grows while there are none.
const OFTEN: Duration = Duration::from_millis(15);
const LESS_OFTEN: Duration = Duration::from_millis(60);
/// Interval at which all processes are examined.
const SELDOM: Duration = Duration::from_secs(2);
/// Time after the opening of the emulator's file for the process to execute it.
const SETTLE: Duration = Duration::from_millis(3);
/// Age up to which processes are waited for at the end.
const AT_LAST: Duration = Duration::from_secs(1);
const YOUNG: Duration = Duration::from_secs(5);
/// Number of new threads above which all processes are examined instead.
const MANY: u32 = 2000;

/// Whether other emulators are accepted.
pub fn is_quiet() -> bool {
    std::env::var_os(MODE).is_some_and(|mode| mode == "quiet")
}
/// Whether other emulators are an error.
pub fn is_strict() -> bool {
    std::env::var_os(MODE).is_some_and(|mode| mode == "strict")
}

/// The search for emulators.
pub struct Watch {
    descendants: Descendants,
    opened: Option<OwnedFd>,
    seen: Option<PathBuf>,
    /// Whether a finding is reported at once.
    at_once: bool,
    /// The newest thread at the last look, and at the one before: a name may be set some time after
    /// a thread begins.
    newest: [Option<u32>; 2],
}

impl Watch {
    /// A search for what the process `command` starts, with those marks. The opening of the files
    /// `emulators` is noticed at once.
    fn new(marks: &Marks, command: u32, emulators: &[PathBuf]) -> Watch {
        Watch {
            descendants: Descendants::new(marks, command),
            opened: notice(emulators),
            seen: None,
            at_once: false,
            newest: [newest(); 2],
        }
    }

    /// Records what was seen, if anything.
    fn note(&mut self, seen: Option<PathBuf>) {
        self.seen = seen;
        if let Some(found) = self.failure().filter(|_| self.at_once) {
            say(found);
        }
    }

    /// Searches until the command has ended. `ended` waits for that, for at most the given time.
    fn until_end(&mut self, mut ended: impl FnMut(Duration, Option<&OwnedFd>) -> Waited) {
        let mut pause = OFTEN;
        let mut all_at = Instant::now();
        loop {
            let waited = match self.seen {
                Some(_) => ended(SELDOM, None),
                None => ended(pause, self.opened.as_ref()),
            };
            if matches!(waited, Waited::Ended) {
                break;
            }
            if self.seen.is_some() {
                continue;
            }
            if matches!(waited, Waited::Opened) {
                if let Some(fd) = &self.opened {
                    drain(fd);
                }
                std::thread::sleep(SETTLE);
                self.note(look(&self.descendants));
            } else if all_at.elapsed() >= SELDOM {
                self.note(look(&self.descendants));
                all_at = Instant::now();
            }
            pause = match self.look_at_new() {
                true => OFTEN,
                false => (pause + pause / 8).min(LESS_OFTEN),
            };
        }
        let until = Instant::now() + AT_LAST;
        while self.seen.is_none() {
            self.note(look(&self.descendants));
            if Instant::now() >= until || !is_one_young(&self.descendants) {
                return;
            }
            std::thread::sleep(OFTEN);
        }
    }

    /// Examines threads that began since the last look but one. Returns whether there were any.
    fn look_at_new(&mut self) -> bool {
        let now = newest();
        let [last, before] = self.newest;
        self.newest = [now, last];
        let (Some(now), Some(before)) = (now, before) else {
            return false;
        };
        if self.seen.is_none() {
            // Numbers restart from the beginning after the largest.
            self.note(match now.checked_sub(before) {
                Some(count) if count < MANY => {
                    (before + 1..=now).find_map(|id| emulator(&self.descendants, id))
                }
                _ => look(&self.descendants),
            });
        }
        last != Some(now)
    }

    fn failure(&self) -> Option<Failure> {
        let seen = self.seen.as_ref()?;
        let text = format!(
            "the command started {}, which is not Purlin: it names that emulator, or can't read Purlin's",
            seen.display()
        );
        Some(Failure::new(messages::OTHER_EMULATOR, REFUSED, text))
    }
}

/// The reason why a wait is over.
enum Waited {
    Ended,
    /// An emulator's file was opened.
    Opened,
    Long,
}

/// Starts a process that searches, while this one continues to become the command. Without such a
/// process, nothing is searched.
pub fn beside(marks: &Marks, emulators: &[PathBuf]) {
    if !Path::new("/proc/self/stat").exists() {
        marks.set();
        return;
    }
    let command = std::process::id();
    // SAFETY: there is one thread: the child continues as this program would.
    match unsafe { libc::fork() } {
        -1 => {}
        0 => {
            // The command must not have a child that it did not make, so the child exits at once
            // and its own child searches.
            // SAFETY: there is one thread; the rest are calls without memory.
            unsafe {
                if libc::fork() != 0 {
                    libc::_exit(0);
                }
                for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
                    libc::signal(signal, libc::SIG_IGN);
                }
            }
            look_on(marks, command, emulators);
            // SAFETY: nothing has to be done at the exit of this process.
            unsafe { libc::_exit(0) };
        }
        child => {
            // SAFETY: a child of this process, whose status is not needed.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        }
    }
    marks.set();
}

fn look_on(marks: &Marks, command: u32, emulators: &[PathBuf]) {
    // Readers of the command's output must not have to wait for this process.
    if let Ok(null) = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
    {
        for fd in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
            // SAFETY: an open descriptor.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
    let Some(process) = handle_of(command) else {
        return;
    };
    let since = SystemTime::now();
    let mut watch = Watch::new(marks, command, emulators);
    // Reporting at the end may be too late: with the first process of a container all others end.
    watch.at_once = true;
    watch.until_end(|pause, opened| wait_for(&process, opened, pause));
    report_releases(since);
}

/// Reports releases made by the command that will not run on Purlin.
fn report_releases(since: SystemTime) {
    let made = std::env::current_dir().map(|dir| bundled_emulators::releases_since(&dir, since));
    for release in made.unwrap_or_default() {
        warn(
            messages::ASSEMBLED_EMULATOR,
            bundled_emulators::note(&release),
        );
    }
}

/// A descriptor that becomes readable when the process has ended.
#[cfg(not(target_os = "linux"))]
fn handle_of(_: u32) -> Option<OwnedFd> {
    None
}
/// A descriptor that becomes readable when the process has ended.
#[cfg(target_os = "linux")]
fn handle_of(process: u32) -> Option<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
    // SAFETY: a descriptor that nothing else owns.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Waits for the end of a process, or until an emulator is opened.
fn wait_for(process: &OwnedFd, opened: Option<&OwnedFd>, pause: Duration) -> Waited {
    let poll = |fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // A negative descriptor is ignored.
    let mut all = [
        poll(process.as_raw_fd()),
        poll(opened.map_or(-1, |fd| fd.as_raw_fd())),
    ];
    // SAFETY: that many entries.
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
pub fn run_strict(
    program: &Path,
    name: &OsStr,
    args: &[OsString],
    environment: &[(OsString, OsString)],
    marks: &Marks,
    emulators: &[PathBuf],
) -> Result<u8, Failure> {
    let mut command = Command::new(program);
    command.arg0(name).args(args).env_clear();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::inherit());
    marks.set();
    let mut child = command.spawn().map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_EXECUTABLE,
        };
        cannot_run(code, program.display(), &error)
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
        // SAFETY: the handler makes only calls that handlers may make.
        unsafe { libc::signal(signal, pass_on as *const () as libc::sighandler_t) };
    }
    let since = SystemTime::now();
    let process = handle_of(child.id());
    let mut watch = Watch::new(marks, child.id(), emulators);
    let mut status = None;
    watch.until_end(|pause, opened| {
        let waited = match &process {
            Some(process) => wait_for(process, opened, pause),
            None => {
                std::thread::sleep(pause.min(OFTEN));
                Waited::Long
            }
        };
        match child.try_wait() {
            Ok(None) => waited,
            Ok(Some(s)) => {
                status = Some(s);
                Waited::Ended
            }
            Err(_) => Waited::Ended,
        }
    });
    report_releases(since);
    if let Some(found) = watch.failure() {
        return Err(found);
    }
    let status = status.ok_or_else(|| lost_command("lost track of the command"))?;
    let code = status.code().unwrap_or(0);
    Ok(status.signal().map_or(code as u8, |n| 128 + n as u8))
}

/// A descriptor that becomes readable when one of these files is opened.
#[cfg(not(target_os = "linux"))]
fn notice(_: &[PathBuf]) -> Option<OwnedFd> {
    None
}
/// A descriptor that becomes readable when one of these files is opened.
#[cfg(target_os = "linux")]
fn notice(files: &[PathBuf]) -> Option<OwnedFd> {
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: a descriptor that nothing else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    for file in files {
        if let Ok(path) = std::ffi::CString::new(file.as_os_str().as_bytes()) {
            // SAFETY: an open descriptor and a terminated string.
            unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), libc::IN_OPEN) };
        }
    }
    Some(fd)
}

/// Discards pending notifications.
fn drain(fd: &OwnedFd) {
    let mut events = [0u8; 4096];
    // SAFETY: the buffer has that much room.
    while unsafe { libc::read(fd.as_raw_fd(), events.as_mut_ptr().cast(), events.len()) } > 0 {}
}

/// The number of the newest thread.
fn newest() -> Option<u32> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_whitespace().nth(4)?.parse().ok()
}

/// A stock emulator that was started by the command.
fn look(descendants: &Descendants) -> Option<PathBuf> {
    numbers("/proc".as_ref()).find_map(|process| {
        let dir = PathBuf::from(format!("/proc/{process}"));
        let its_threads = || numbers(&dir.join("task")).find_map(|id| emulator(descendants, id));
        match descendants.is_marked(&dir) {
            true => its_threads(),
            false => emulator(descendants, process),
        }
    })
}

/// Whether the command has started a process, other than Purlin, a moment ago.
fn is_one_young(descendants: &Descendants) -> bool {
    let own = std::process::id();
    numbers("/proc".as_ref()).any(|process| {
        let dir = PathBuf::from(format!("/proc/{process}"));
        process != own
            && age(process).is_some_and(|age| age < YOUNG)
            && descendants.is_marked(&dir)
            && fs::read(dir.join("comm")).is_ok_and(|name| !name.starts_with(b"purlin"))
            && fs::read_link(dir.join("exe")).is_ok()
    })
}

/// The numbers that entries of a folder have as names.
fn numbers(dir: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The emulator that this process or thread belongs to, if the command started it.
fn emulator(descendants: &Descendants, id: u32) -> Option<PathBuf> {
    let dir = PathBuf::from(format!("/proc/{id}"));
    let name = fs::read(dir.join("comm")).ok()?;
    let loaded = || named_for_loader(&name, &dir);
    if !(name.starts_with(STOCK) || is_scheduler(&name) || loaded().is_some()) {
        return None;
    }
    if !descendants.has(id, &dir) {
        return None;
    }
    // If the file cannot be read, the name still can.
    let shown = || {
        String::from_utf8_lossy(name.trim_ascii_end())
            .into_owned()
            .into()
    };
    let file = || fs::read_link(dir.join("exe")).ok();
    Some(argument(&dir).or_else(file).unwrap_or_else(shown))
}

/// Whether a thread is named like a scheduler of stock's emulator, in OTP 24 and before, or since.
fn is_scheduler(name: &[u8]) -> bool {
    let digits = name.iter().take_while(|c| c.is_ascii_digit()).count();
    name.starts_with(b"erts_sched_") || digits > 0 && name[digits..].starts_with(b"_scheduler")
}

/// The emulator that was passed to the system's loader.
fn named_for_loader(name: &[u8], dir: &Path) -> Option<PathBuf> {
    let is_loader = name.starts_with(b"ld-") || name.starts_with(b"ld.so");
    is_loader.then(|| argument(dir)).flatten()
}

/// The emulator that an argument names, before the arguments for the emulator.
fn argument(dir: &Path) -> Option<PathBuf> {
    let line = fs::read(dir.join("cmdline")).ok()?;
    let own = line.split(|byte| *byte == 0).take_while(|one| one != b"--");
    let paths = own.map(|one| Path::new(OsStr::from_bytes(one)));
    let is_stock = |name: &OsStr| name.as_bytes().starts_with(STOCK);
    let found = paths.filter(|path| path.file_name().is_some_and(is_stock));
    // The loader's arguments may contain the name that the program is to see, before the file.
    found.last().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_threads() {
        for name in ["1_scheduler\n", "12_scheduler\n", "erts_sched_1\n"] {
            assert!(is_scheduler(name.as_bytes()), "{name}");
        }
        for name in ["sched1\n", "_scheduler\n", "1_dirty_cpu_sch\n", "erts\n"] {
            assert!(!is_scheduler(name.as_bytes()), "{name}");
        }
        assert!(newest().is_none_or(|id| id > 0));
    }
}
