//! Signals of the operating system.
//!
//! A handler only writes the signal's number to a pipe. A thread reads it there and acts: Ctrl-C
//! calls the break handler, changes of the terminal go to its driver, and the signals that programs
//! may ask for (`os:set_signal/2`) are sent to the process registered as `erl_signal_server`.

use crate::options::BreakMode;
use crate::process::registry;
use crate::signal;
use purlin_term::release::{self, ALWAYS, Feature, TERMINAL_SIGNALS};
use purlin_term::sync::Mutex;
use purlin_term::{Alloc, Term, atom};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The action of a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The default action of the system.
    Default,
    Ignore,
    /// The runtime passes it to its handler.
    Handle,
}

/// Signals that programs may ask for, by name, with the release that introduced each.
const NAMED: &[(Feature, &str, i32)] = &[
    (ALWAYS, "sighup", libc::SIGHUP),
    (ALWAYS, "sigquit", libc::SIGQUIT),
    (ALWAYS, "sigabrt", libc::SIGABRT),
    (ALWAYS, "sigalrm", libc::SIGALRM),
    (ALWAYS, "sigterm", libc::SIGTERM),
    (ALWAYS, "sigusr1", libc::SIGUSR1),
    (ALWAYS, "sigusr2", libc::SIGUSR2),
    (ALWAYS, "sigchld", libc::SIGCHLD),
    (ALWAYS, "sigstop", libc::SIGSTOP),
    (ALWAYS, "sigtstp", libc::SIGTSTP),
    (TERMINAL_SIGNALS, "sigcont", libc::SIGCONT),
    (TERMINAL_SIGNALS, "sigwinch", libc::SIGWINCH),
];

/// Returns the signal with that name (`sighup` …) if programs may ask for it.
pub fn named(name: &str) -> Option<i32> {
    let known = |n: &&(Feature, &str, i32)| n.1 == name && release::has(n.0);
    NAMED.iter().find(known).map(|n| n.2)
}

/// The function that Ctrl-C calls.
static BREAK: OnceLock<fn()> = OnceLock::new();

/// The functions that are called when a terminal's size changes or the process continues, in the
/// order in which they were added.
static TERMINALS: Mutex<Vec<fn(i32)>> = Mutex::new(Vec::new());

/// Registers `f` to be called with the number of each handled `SIGWINCH` and `SIGCONT`. A function
/// is registered once.
pub fn add_terminal_handler(f: fn(i32)) {
    let mut all = TERMINALS.lock();
    if !all.iter().any(|&known| std::ptr::fn_addr_eq(known, f)) {
        all.push(f);
    }
}

/// Whether a child process is the program of a port.
static PROGRAMS: OnceLock<fn(libc::pid_t) -> bool> = OnceLock::new();

/// Suppresses `SIGCHLD` notifications for the children for which `are` returns true.
pub(crate) fn suppress_child_signals(are: fn(libc::pid_t) -> bool) {
    let _ = PROGRAMS.set(are);
}

/// The write end of the pipe.
static PIPE: AtomicI32 = AtomicI32::new(-1);

extern "C" fn on_signal(sig: libc::c_int) {
    to_pipe(&[sig as u8]);
}

/// Handles the end of a child; writes the child's number too, or 0 if a process sent the signal.
extern "C" fn on_child(sig: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system's own description of the signal.
    let child = unsafe {
        match (*info).si_code > 0 {
            true => (*info).si_pid(),
            false => 0,
        }
    };
    let mut all = [sig as u8; 1 + size_of::<libc::pid_t>()];
    all[1..].copy_from_slice(&child.to_ne_bytes());
    to_pipe(&all);
}

/// Writes to the pipe from within a handler. So few bytes are written atomically.
fn to_pipe(bytes: &[u8]) {
    // SAFETY: write(2) is allowed in signal handlers; errno is restored for the code that was
    // interrupted.
    unsafe {
        let errno = purlin_term::errno::place();
        let before = *errno;
        libc::write(
            PIPE.load(Ordering::Relaxed),
            bytes.as_ptr().cast(),
            bytes.len(),
        );
        *errno = before;
    }
}

fn start() -> io::Result<()> {
    // No other thread may exist.
    if purlin_kernel::os::exploring::on() {
        return Ok(());
    }
    static STARTED: OnceLock<Option<i32>> = OnceLock::new();
    let failed = STARTED.get_or_init(|| {
        let make = || -> io::Result<()> {
            let (r, w) = io::pipe()?;
            PIPE.store(OwnedFd::from(w).into_raw(), Ordering::Relaxed);
            purlin_kernel::os::thread::start("signals", 256 * 1024, move || run(r));
            Ok(())
        };
        make().err().map(|e| crate::posix::errno_of(&e))
    });
    match failed {
        None => Ok(()),
        Some(e) => Err(io::Error::from_raw_os_error(*e)),
    }
}

/// A descriptor that stays open for the life of the process.
trait Forever {
    fn into_raw(self) -> i32;
}
impl Forever for OwnedFd {
    fn into_raw(self) -> i32 {
        let fd = self.as_raw_fd();
        std::mem::forget(self);
        fd
    }
}

fn run(mut pipe: io::PipeReader) {
    let mut sig = [0];
    while pipe.read_exact(&mut sig).is_ok() {
        match i32::from(sig[0]) {
            libc::SIGINT => BREAK.get().into_iter().for_each(|f| f()),
            s @ (libc::SIGWINCH | libc::SIGCONT) => {
                let terminals = TERMINALS.lock().clone();
                terminals.iter().for_each(|f| f(s));
                notify(s);
            }
            libc::SIGCHLD => {
                let mut child = [0; size_of::<libc::pid_t>()];
                if pipe.read_exact(&mut child).is_err() {
                    return;
                }
                let child = libc::pid_t::from_ne_bytes(child);
                let own = purlin_kernel::threads::fork::is_copy(child);
                if !own && !PROGRAMS.get().is_some_and(|is| is(child)) {
                    notify(libc::SIGCHLD);
                }
            }
            s => notify(s),
        }
    }
}

/// Whether a signal has ever reached a process.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Sends a signal's name to the process that handles signals.
fn notify(sig: i32) {
    let known = |n: &&(Feature, &str, i32)| n.2 == sig && release::has(n.0);
    let Some(&(_, name, _)) = NAMED.iter().find(known) else {
        return;
    };
    let told = registry::whereis(atom::intern("erl_signal_server")).is_some_and(|to| {
        signal::send_with(to, |a: &mut dyn Alloc| -> Term {
            a.tuple(&[atom::intern("notify"), atom::intern(name)])
        })
    });
    let before = match told {
        true => TOLD.swap(true, Ordering::Relaxed),
        false => TOLD.load(Ordering::Relaxed),
    };
    // Unlike stock, which loses the signal: an emulator that has not come up yet can be ended.
    if !told && !before && sig == libc::SIGTERM && set(sig, Action::Default).is_ok() {
        // SAFETY: plain system call.
        unsafe { libc::raise(sig) };
    }
}

/// Sets the action of a signal. The end of a port's program is neither reported nor ignored,
/// because ports wait for it. In stock such programs are children of another process.
pub fn set(sig: i32, action: Action) -> io::Result<()> {
    let of_child = sig == libc::SIGCHLD;
    let action = match action {
        Action::Ignore if of_child => Action::Default,
        other => other,
    };
    if action == Action::Handle {
        start()?;
    }
    // SAFETY: a valid action; the handler only does what handlers may.
    unsafe {
        let mut a: libc::sigaction = std::mem::zeroed();
        a.sa_sigaction = match action {
            Action::Default => libc::SIG_DFL,
            Action::Ignore => libc::SIG_IGN,
            Action::Handle if of_child => {
                a.sa_flags = libc::SA_SIGINFO | libc::SA_NOCLDSTOP;
                on_child as extern "C" fn(_, _, _) as usize
            }
            Action::Handle => on_signal as extern "C" fn(libc::c_int) as usize,
        };
        a.sa_flags |= libc::SA_RESTART;
        libc::sigemptyset(&mut a.sa_mask);
        if libc::sigaction(sig, &a, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Sets the actions that an emulator starts with. Ctrl-C calls `on_break`, on the thread that acts
/// on signals.
pub fn init(mode: BreakMode, on_break: fn()) {
    let _ = BREAK.set(on_break);
    let mut all = vec![
        (libc::SIGPIPE, Action::Ignore),
        // Ignores a sent one, which would end the process; a faulty division still ends it.
        (libc::SIGFPE, Action::Ignore),
        // The parent of this process may have ignored it. That is inherited, and then children
        // leave no status to wait for.
        (libc::SIGCHLD, Action::Default),
        (libc::SIGTERM, Action::Handle),
        (libc::SIGUSR1, Action::Handle),
    ];
    if purlin_kernel::os::exploring::on() {
        all.truncate(3);
    }
    match mode {
        _ if purlin_kernel::os::exploring::on() => {}
        BreakMode::Handler | BreakMode::Interrupt => {
            all.push((libc::SIGINT, Action::Handle));
            all.push((libc::SIGQUIT, Action::Handle));
        }
        BreakMode::Ignore => {
            for s in [libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                all.push((s, Action::Ignore));
            }
        }
        BreakMode::Disabled => {}
    }
    for (s, a) in all {
        if let Err(e) = set(s, a) {
            purlin_term::say::refused(format_args!("cannot handle signal {s}: {e}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_signals() {
        assert_eq!(named("sighup"), Some(libc::SIGHUP));
        assert_eq!(named("sigint"), None);
    }
}
