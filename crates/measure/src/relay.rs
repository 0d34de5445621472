//! Relays signals to a program that were sent to the process that started it.
//!
//! `timeout` and service managers know only that process. It passes signals on and keeps running,
//! so that it can report its measurements.
//!
//! # Orderings
//! The process has one thread, which the handler interrupts: it runs as a whole between two
//! operations of that thread. So it either sees the program in `CHILD`, or [`Relay::wait`], which
//! stores `CHILD` first, sees its store to `EARLY`. `SeqCst` keeps these operations in order.

use std::sync::atomic::{AtomicI32, Ordering};

/// The signals that are passed on.
const SIGNALS: [i32; 6] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGHUP,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];
/// Those of them that ask the program to end.
const ENDS: [i32; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];

/// Process number of the program; 0 if there is none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// The first signal that asked it to end; 0 if there was none.
static ENDED_BY: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived while there was no program, and is for the one being started; 0 if none.
static EARLY: AtomicI32 = AtomicI32::new(0);

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    if ENDS.contains(&signal) {
        let _ = ENDED_BY.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    }
    // The terminal sends its signals to the program, too. SAFETY: the system's description of the
    // signal.
    if unsafe { (*info).si_code } > 0 {
        return;
    }
    match CHILD.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        // SAFETY: a call that a handler may make. The program has not been waited for, so the
        // number is still its own.
        child => unsafe {
            libc::kill(child, signal);
        },
    }
}

/// Passes signals on while it lives.
pub struct Relay {
    before: [libc::sigaction; SIGNALS.len()],
}

impl Relay {
    /// Starts to pass signals on. Called before the program is started. There is one relay at a
    /// time.
    pub fn begin() -> Relay {
        ENDED_BY.store(0, Ordering::SeqCst);
        EARLY.store(0, Ordering::SeqCst);
        // SAFETY: all zeros are the default action. The handler has the signature that the flags
        // demand, and makes only calls that handlers may make.
        unsafe {
            let mut before: [libc::sigaction; SIGNALS.len()] = std::mem::zeroed();
            let mut a: libc::sigaction = std::mem::zeroed();
            a.sa_sigaction = on_signal as *const () as usize;
            a.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            for (s, b) in SIGNALS.into_iter().zip(&mut before) {
                libc::sigaction(s, std::ptr::null(), b);
                // An ignored signal stays ignored, as `nohup` intends.
                if b.sa_sigaction != libc::SIG_IGN {
                    libc::sigaction(s, &a, std::ptr::null_mut());
                }
            }
            Relay { before }
        }
    }
    /// Waits until the program has ended, without collecting its status.
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
            // SAFETY: all zeros are valid for this plain structure, which the call fills in.
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
    /// The signal that asked the program to end.
    pub fn ended_by(&self) -> Option<i32> {
        Some(ENDED_BY.load(Ordering::SeqCst)).filter(|s| *s != 0)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for (s, b) in SIGNALS.into_iter().zip(&self.before) {
            // SAFETY: restores the previous action.
            unsafe { libc::sigaction(s, b, std::ptr::null_mut()) };
        }
    }
}
