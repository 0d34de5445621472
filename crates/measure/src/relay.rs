//! Signals that are meant for a program, and reach who has started it: `timeout` and service managers know no other. They are handed
//! on, and this process goes on, so that it can tell what it has seen.

use std::sync::atomic::{AtomicI32, Ordering};

/// The signals that are handed on.
const SIGNALS: [i32; 6] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// Those of them by which somebody wants the program to end.
const ENDS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];

/// The program; 0: there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The first signal by which somebody wanted it to end; 0: none.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);
/// A signal that came while there was no program, and is for the one that is being started; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if ENDS.contains(&signal) {
        let _ = ENDED_BY.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    }
    // What comes from the terminal has gone to the program too.
    // SAFETY: the system's own description of the signal.
    if unsafe { (*info).si_code } > 0 {
        return;
    }
    match CHILD.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        // SAFETY: a call that a handler may make. The program has not been waited for, so that the number is its own.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}

/// As long as it lives signals are handed on.
pub struct Relay {
    before: [libc::sigaction; SIGNALS.len()],
}

impl Relay {
    /// Called before the program is started. There is one at a time.
    pub fn begin() -> Relay {
        ENDED_BY.store(0, Ordering::SeqCst);
        EARLY.store(0, Ordering::SeqCst);
        // SAFETY: all zeros are the default action; the handler is of the form that the flags say, and makes calls that handlers may.
        unsafe {
            let mut before: [libc::sigaction; SIGNALS.len()] = std::mem::zeroed();
            let mut a: libc::sigaction = std::mem::zeroed();
            a.sa_sigaction = on_signal as *const () as usize;
            a.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            for (s, b) in SIGNALS.into_iter().zip(&mut before) {
                libc::sigaction(s, std::ptr::null(), b);
                // Whoever ignores it wants the program to do so (`nohup`).
                if b.sa_sigaction != libc::SIG_IGN {
                    libc::sigaction(s, &a, std::ptr::null_mut());
                }
            }
            Relay { before }
        }
    }
    /// Waits until the program has ended, without taking its status: that is still to be waited for.
    pub fn wait(&self, child: u32) {
        let child = child as i32;
        CHILD.store(child, Ordering::SeqCst);
        let early = EARLY.swap(0, Ordering::SeqCst);
        if early != 0 {
            // SAFETY: a child of this process, which has not been waited for.
            unsafe { libc::kill(child, early) };
        }
        loop {
            let how = libc::WEXITED | libc::WNOWAIT;
            // SAFETY: zero is a value of these plain bits, which the call writes.
            let r = unsafe {
                let mut info: libc::siginfo_t = std::mem::zeroed();
                libc::waitid(libc::P_PID, child as libc::id_t, &mut info, how)
            };
            let e = std::io::Error::last_os_error();
            if r == 0 || e.kind() != std::io::ErrorKind::Interrupted {
                break;
            }
        }
        CHILD.store(0, Ordering::SeqCst);
    }
    /// The signal by which somebody wanted the program to end.
    pub fn ended_by(&self) -> Option<i32> {
        Some(ENDED_BY.load(Ordering::SeqCst)).filter(|s| *s != 0)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for (s, b) in SIGNALS.into_iter().zip(&self.before) {
            // SAFETY: the action that was there before.
            unsafe { libc::sigaction(s, b, std::ptr::null_mut()) };
        }
    }
}
