//! Work on a copy of the emulator in which nothing runs: a look at everything at one moment.
//!
//! No thread begins to run a process for a short time ([`multi_scheduling::pause`]), and those that
//! run one come to the end of its time slice. Then the emulator is copied (`fork(2)`, copy on
//! write), and continues. The copy has one thread, which looks at heaps, tables and messages as
//! they were at that moment, writes what it has found into a pipe, and ends.
//!
//! # Invariants
//! - The copy keeps no descriptor but the pipe, so a socket or file that the emulator closes is
//!   closed. It gets no signal but `SIGKILL`, and ends with the thread that asked for it.
//! - In the copy a process whose state is not `RUNNING` belongs to the thread of the copy. Those
//!   that are running were in a native on a dirty thread, since these are not waited for.
//! - If processes do not come to the end of their time slices within [`STOP_TIME_LIMIT`], they
//!   continue, and another try is made later.
//! - A lock that another thread held at the moment of the copy stays locked in it. So the copy may
//!   wait for ever; it is then ended, and the work fails.
//! - An end of the copy that is not a success (a panic, a fault) makes the work fail.
//!
//! # Orderings
//! [`COPY`] is `Relaxed`: who reads it has heard from the kernel that the child has ended, and so
//! after it was made. If that comes before the store, which takes a child that fails at once, the
//! end of a child is reported that the program does not know.

use super::epochs;
use crate::clock;
use crate::sched::{self, multi_scheduling};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

/// Maximum time to wait for running processes.
const STOP_TIME_LIMIT: Duration = Duration::from_millis(6);
/// Time between two looks at them.
const REST: Duration = Duration::from_micros(50);
/// Maximum number of tries, and the time between two of them.
const TRIES: usize = 50;
const BETWEEN: Duration = Duration::from_millis(20);
/// Last byte of a complete answer.
const END: u8 = 0xA5;

/// The result of [`ask`].
pub struct Answer {
    pub bytes: Vec<u8>,
    /// Longest time for which no process could begin to run.
    pub stopped: Duration,
}

/// Number of the process that is the latest copy.
static COPY: AtomicI32 = AtomicI32::new(0);

/// Whether that child process is, or was, a copy of this kind. No process has the number 0, which
/// stands for none.
pub fn is_copy(child: libc::pid_t) -> bool {
    child != 0 && COPY.load(Ordering::Relaxed) == child
}

/// Makes a copy of the emulator do `work`, which adds its results to a vector. The calling thread
/// runs no processes, and only one thread calls this at a time. The work may read everything. What
/// it writes changes nothing but the copy. `meanwhile` is called when the copy was made, before
/// processes continue.
///
/// Fails if that takes longer than `limit`, or gives more than `most` bytes.
pub fn ask(
    limit: Duration,
    most: usize,
    meanwhile: impl FnOnce(),
    work: impl FnOnce(&mut Vec<u8>),
) -> Result<Answer, String> {
    let until = clock::after(limit);
    let failed = |e: Error| format!("the emulator cannot be copied: {e}");
    let mut longest = Duration::ZERO;
    for _ in 0..TRIES {
        let begun = clock::elapsed();
        let pause = paused();
        let stopped = || Duration::from_nanos((clock::elapsed() - begun).max(0) as u64);
        let Some(pause) = pause else {
            longest = longest.max(stopped());
            clock::pause(BETWEEN);
            continue;
        };
        let (from, to) = std::io::pipe().map_err(failed)?;
        let (from, to) = (OwnedFd::from(from), OwnedFd::from(to));
        let before = sched::turns();
        let child = match fork() {
            Ok(0) => run_copy(to, work),
            Ok(child) => Copy(child),
            Err(e) => return Err(failed(e)),
        };
        COPY.store(child.0, Ordering::Relaxed);
        // A thread may have been about to run a process when the pause began, and noticed it late.
        let same = none_runs() && sched::turns() == before;
        if !same {
            drop(pause);
            longest = longest.max(stopped());
            drop(child);
            clock::pause(BETWEEN);
            continue;
        }
        meanwhile();
        drop(pause);
        let stopped = longest.max(stopped());
        drop(to);
        let bytes = read(from, until, most);
        drop(child);
        return bytes.map(|bytes| Answer { bytes, stopped });
    }
    Err("processes do not come to the end of their time slices; ask again later".into())
}

/// Copies the emulator, with all signals blocked in the copy. Returns 0 in the copy.
fn fork() -> Result<libc::pid_t, Error> {
    // SAFETY: valid sets of signals of this frame; the mask is restored in the emulator. The C
    // library holds the locks of its allocator for the copy, which may use it.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let child = libc::fork();
        let error = Error::last_os_error();
        if child != 0 {
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        }
        match child {
            -1 => Err(error),
            child => Ok(child),
        }
    }
}

/// Whether no scheduler runs a process.
fn none_runs() -> bool {
    sched::running().iter().all(Option::is_none)
}

/// Pauses all processes; `None` if one does not come to the end of its time slice soon.
fn paused() -> Option<multi_scheduling::Pause> {
    let pause = multi_scheduling::pause()?;
    let until = clock::after(STOP_TIME_LIMIT);
    let mut since = epochs().since();
    loop {
        let passed = since.passed();
        if passed && none_runs() {
            return Some(pause);
        }
        if clock::elapsed() > until {
            return None;
        }
        clock::pause(REST);
    }
}

/// A copy, which is ended when this is dropped.
struct Copy(libc::pid_t);

impl Drop for Copy {
    fn drop(&mut self) {
        let mut status = 0;
        // SAFETY: a child of this process, which is not reaped before the first call that says so.
        // If another thread has reaped it, that call fails, and nothing is done.
        unsafe {
            if libc::waitpid(self.0, &mut status, libc::WNOHANG) != 0 {
                return;
            }
            libc::kill(self.0, libc::SIGKILL);
            while libc::waitpid(self.0, &mut status, 0) < 0
                && Error::last_os_error().kind() == ErrorKind::Interrupted
            {}
        }
    }
}

/// Reads the answer, which ends with [`END`].
fn read(from: OwnedFd, until: i64, most: usize) -> Result<Vec<u8>, String> {
    let mut from = std::fs::File::from(from);
    let mut bytes: Vec<u8> = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let left = clock::left_until(until);
        if left.is_zero() {
            return Err("looking at everything takes too long".into());
        }
        let mut wish = libc::pollfd {
            fd: from.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let ms = left.as_millis().clamp(1, 1000) as libc::c_int;
        // SAFETY: one structure of this frame.
        if unsafe { libc::poll(&mut wish, 1, ms) } <= 0 {
            continue;
        }
        match from.read(&mut part) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(format!("the copy of the emulator: {e}")),
        }
        if bytes.len() > most {
            return Err("there is too much to report".into());
        }
    }
    match bytes.pop() {
        Some(END) => Ok(bytes),
        _ => Err("the copy of the emulator has failed".into()),
    }
}

/// Does the work in the copy, and ends it.
fn run_copy(to: OwnedFd, work: impl FnOnce(&mut Vec<u8>)) -> ! {
    close_others(to.as_raw_fd());
    // SAFETY: plain calls with valid arguments, in a process that nothing else uses.
    unsafe {
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
    // If memory is used up, the copy goes first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // A panic says nothing: standard error is closed.
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut bytes = Vec::new();
        work(&mut bytes);
        bytes.push(END);
        std::fs::File::from(to).write_all(&bytes).is_ok()
    }));
    // SAFETY: ends the copy without running anything of the emulator.
    unsafe { libc::_exit(i32::from(done.ok() != Some(true))) }
}

/// Closes all descriptors but one.
fn close_others(kept: i32) {
    #[cfg(target_os = "linux")]
    // SAFETY: the descriptors are this process's alone, and nothing in it uses them.
    unsafe {
        let close = |from: i32, to: u32| {
            from as i64 > i64::from(to)
                || libc::syscall(libc::SYS_close_range, from as u32, to, 0) == 0
        };
        if (kept == 0 || close(0, kept as u32 - 1)) && close(kept + 1, u32::MAX) {
            return;
        }
    }
    // SAFETY: the descriptors are this process's alone, and nothing in it uses them.
    unsafe {
        let most = libc::sysconf(libc::_SC_OPEN_MAX).clamp(256, 1 << 20) as i32;
        for fd in (0..most).filter(|fd| *fd != kept) {
            libc::close(fd);
        }
    }
}
