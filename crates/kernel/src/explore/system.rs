//! Processes of the operating system as runs of a search: forks, their limits and their ends, and
//! what a run needs of the emulator beside its schedule.
//!
//! # Invariants
//! * Only a process of one thread is forked: memory is its own afterwards, descriptors are shared,
//!   and open files are opened anew (`os/reopen.rs`).
//! * A child is ended when it exceeds its limits, or when its parent ends.
//! * The handler for stops calls nothing that a handler may not.

use super::{differs, modules, recorded};
use crate::os::{failing, osenv, reopen, replay_log};
use purlin_explore::kernel::{Forked, Limits, System};
use purlin_explore::log::Playback;
use purlin_explore::recording::Variable;
use purlin_term::atom;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The variable with the folders in which programs are looked for.
const PATH: &[u8] = b"PATH";

/// The number of schedules that were tried so far, and whether one failed that was not reported
/// yet.
static TRIED: AtomicUsize = AtomicUsize::new(0);
static FOUND: AtomicBool = AtomicBool::new(false);

/// The user stops the search: says how far it came, and ends. Calls nothing that a handler may not.
extern "C" fn stopped(signal: i32) {
    let mut digits = [0; 20];
    let (mut n, mut at) = (TRIED.load(Ordering::Relaxed), digits.len());
    while at > 0 && (n > 0 || at == digits.len()) {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    let parts: [&[u8]; 3] = [
        b"purlin: schedules: stopped after ",
        &digits[at..],
        match FOUND.load(Ordering::Relaxed) {
            true => b" schedules; one had failed, and was not yet reported\n",
            false => b" schedules; none had failed\n",
        },
    ];
    for p in parts {
        // SAFETY: the bytes are there.
        unsafe { libc::write(2, p.as_ptr().cast(), p.len()) };
    }
    // SAFETY: no return.
    unsafe { libc::_exit(128 + signal) }
}

/// Returns the exit status of a process, or minus the signal that ended it.
fn code_of(status: i32) -> i32 {
    match libc::WIFEXITED(status) {
        true => libc::WEXITSTATUS(status),
        false => -libc::WTERMSIG(status),
    }
}

/// Makes this process, a child that was just forked, a run.
///
/// # Safety
/// `output` is open, and this is the only thread.
unsafe fn become_run(limits: Limits, output: &File) {
    // SAFETY: plain calls on open descriptors.
    unsafe {
        libc::dup2(output.as_raw_fd(), 1);
        libc::dup2(output.as_raw_fd(), 2);
        for signal in [libc::SIGALRM, libc::SIGPROF, libc::SIGINT, libc::SIGTERM] {
            libc::signal(signal, libc::SIG_DFL);
        }
        #[cfg(target_os = "linux")]
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let mut most: libc::itimerval = std::mem::zeroed();
        most.it_value.tv_sec = limits.processor.into();
        libc::setitimer(libc::ITIMER_PROF, &most, std::ptr::null_mut());
        if let Some(t) = limits.real {
            most.it_value.tv_sec = t.as_secs() as libc::time_t;
            // A time of nothing at all would be no limit.
            most.it_value.tv_usec = t.subsec_micros().max(1) as libc::suseconds_t;
            libc::setitimer(libc::ITIMER_REAL, &most, std::ptr::null_mut());
        }
    }
}

/// The operating system.
pub(super) struct Unix;

impl System for Unix {
    #[cfg(target_os = "linux")]
    fn memory_file(&self) -> Result<File> {
        // SAFETY: a name, and a descriptor that is ours.
        unsafe {
            match libc::memfd_create(c"schedule".as_ptr(), libc::MFD_CLOEXEC) {
                fd if fd >= 0 => Ok(File::from(OwnedFd::from_raw_fd(fd))),
                _ => Err(Error::last_os_error()),
            }
        }
    }

    /// A file without a name, which the system need not write to a disk.
    #[cfg(not(target_os = "linux"))]
    fn memory_file(&self) -> Result<File> {
        let mut name = std::env::temp_dir().into_os_string();
        name.push("/purlin-schedule-XXXXXX\0");
        let mut name = std::os::unix::ffi::OsStringExt::into_vec(name);
        // SAFETY: a name that ends, of which the call replaces the last letters; the descriptor is
        // ours.
        unsafe {
            let fd = libc::mkstemp(name.as_mut_ptr().cast());
            if fd < 0 {
                return Err(Error::last_os_error());
            }
            libc::unlink(name.as_ptr().cast());
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            Ok(File::from(OwnedFd::from_raw_fd(fd)))
        }
    }

    fn fork(&self, limits: Limits, output: &File) -> Result<Forked> {
        let files = reopen::open_files();
        // SAFETY: this is the only thread.
        match unsafe { libc::fork() } {
            -1 => Err(Error::last_os_error()),
            0 => {
                // SAFETY: the file is open, and the child of one thread has one thread.
                unsafe { become_run(limits, output) };
                crate::poll::after_fork();
                reopen::reopen(&files);
                Ok(Forked::Child)
            }
            pid => Ok(Forked::Parent(pid)),
        }
    }

    fn wait(&self, child: i32) -> i32 {
        let mut status = 0;
        // SAFETY: a child of this process.
        while unsafe { libc::waitpid(child, &mut status, 0) } < 0
            && Error::last_os_error().kind() == ErrorKind::Interrupted
        {}
        code_of(status)
    }

    fn try_wait(&self, child: i32) -> Option<i32> {
        let mut status = 0;
        // SAFETY: a child of this process.
        let n = unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) };
        let gone = n < 0 && Error::last_os_error().kind() != ErrorKind::Interrupted;
        (n == child || gone).then(|| code_of(status))
    }

    fn is_endless(&self, status: i32) -> bool {
        [libc::SIGALRM, libc::SIGPROF].contains(&-status)
    }

    fn is_timeout(&self, status: i32) -> bool {
        status == -libc::SIGALRM
    }

    fn empty_input(&self) -> bool {
        // SAFETY: plain calls.
        unsafe {
            let mut s: libc::stat = std::mem::zeroed();
            let mut given = false;
            if libc::fstat(0, &raw mut s) == 0 {
                let kind = s.st_mode & libc::S_IFMT;
                given = kind == libc::S_IFIFO || (kind == libc::S_IFREG && s.st_size > 0);
            }
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
            if null >= 0 {
                libc::dup2(null, 0);
                libc::close(null);
            }
            given
        }
    }

    fn handle_stops(&self) {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: a handler that keeps to what handlers may do.
            unsafe { libc::signal(signal, stopped as extern "C" fn(i32) as libc::sighandler_t) };
        }
    }

    fn progress(&self, schedules: usize, found: bool) {
        TRIED.store(schedules, Ordering::Relaxed);
        FOUND.store(found, Ordering::Relaxed);
    }

    fn say(&self, text: &str) {
        crate::report::to_stderr(text);
    }

    fn exit(&self, status: i32) -> ! {
        // SAFETY: no return; this is the only thread.
        unsafe { libc::_exit(status) }
    }

    fn note_modules(&self, to: File) {
        modules::note_in(to);
    }

    fn prepare_modules(&self, noted: File) {
        recorded::keep_atoms(|| modules::make(noted));
    }

    fn prepared_atoms(&self) -> Vec<String> {
        recorded::prepared_atoms()
    }

    fn make_atoms(&self, atoms: &[String]) {
        for a in atoms {
            atom::intern(a);
        }
    }

    fn program_path(&self) -> Option<String> {
        let path = osenv::get(PATH)?;
        Some(String::from_utf8_lossy(&path).into_owned())
    }

    fn begin_recording(&self, to: Option<File>) {
        recorded::note_variables();
        if let Some(to) = to {
            replay_log::begin_recording(to);
        }
    }

    fn variables_read(&self) -> Vec<Variable> {
        recorded::variables_read()
    }

    fn set_variables(&self, all: &[Variable]) {
        recorded::set_variables(all);
    }

    fn count_calls(&self) {
        failing::begin(super::fails);
    }

    fn is_logging(&self) -> bool {
        replay_log::is_on()
    }

    fn begin_replay(&self, log: Playback, path: Option<String>) {
        if let Some(path) = path {
            osenv::set(PATH.to_vec(), Some(path.into_bytes()));
        }
        replay_log::begin_replay(log, differs);
    }
}
