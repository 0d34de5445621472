//! The processors that the threads of the runtime may run on. Each scheduler may be bound to one
//! ([`crate::sched::binding`]). Threads and system processes that a bound scheduler starts would
//! inherit the binding; they are unbound here.
//!
//! # Orderings
//! `EVER_BOUND` is stored before the plan is numbered. A scheduler binds itself after it has read
//! the plan under the lock that its writer held. So a bound thread finds `EVER_BOUND` set, and so
//! do the threads that it starts, and may load it relaxed.

use crate::sync::{AtomicBool, Ordering};
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
mod here {
    use std::mem::{size_of, zeroed};

    /// Returns the processors that this thread may run on.
    pub(crate) fn now() -> Vec<usize> {
        // SAFETY: cpu_set_t is plain bits, for which zero is a valid value; the call writes at most
        // the given size, and the bits read lie within the set.
        unsafe {
            let mut may: libc::cpu_set_t = zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut may) != 0 {
                return Vec::new();
            }
            let bits = 8 * size_of::<libc::cpu_set_t>();
            (0..bits).filter(|&p| libc::CPU_ISSET(p, &may)).collect()
        }
    }

    /// Binds this thread to those processors. If the system refuses, nothing changes.
    pub(crate) fn bind(to: &[usize]) {
        let bits = 8 * size_of::<libc::cpu_set_t>();
        // SAFETY: zero is a valid value of cpu_set_t. The bits set lie within the set, which the
        // call reads; 0 is this thread.
        unsafe {
            let mut mask: libc::cpu_set_t = zeroed();
            to.iter()
                .filter(|&&p| p < bits)
                .for_each(|&p| libc::CPU_SET(p, &mut mask));
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &mask);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    pub(crate) fn now() -> Vec<usize> {
        Vec::new()
    }
    pub(crate) fn bind(_: &[usize]) {}
}

pub(crate) use here::bind;
use here::now;

/// Whether a thread has ever been bound.
static EVER_BOUND: AtomicBool = AtomicBool::new(false);

/// Announces that threads will be bound. The first call precedes the first binding.
pub(crate) fn begin_binding() {
    allowed();
    purlin_term::background_free::begin_with(begin_unbound);
    EVER_BOUND.store(true, Ordering::Release);
}

/// The processors that threads might use before any was bound.
pub(crate) fn allowed() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(now)
}

/// Unbinds the calling thread, which a bound scheduler may have started.
pub fn begin_unbound() {
    if EVER_BOUND.load(Ordering::Relaxed) {
        bind(allowed());
    }
}

/// Runs `make`, which starts a system process, with the calling thread unbound, since the new
/// process inherits its processors.
pub fn unbound<R>(make: impl FnOnce() -> R) -> R {
    if !EVER_BOUND.load(Ordering::Relaxed) {
        return make();
    }
    let own = now();
    bind(allowed());
    let made = make();
    bind(&own);
    made
}
