//! The processors that the threads of the runtime may run on. Schedulers may be bound to one each ([`crate::sched::binding`]); a thread
//! or a process of the system that a bound one starts would be bound as well, and is freed here.

use crate::sync::{AtomicBool, Ordering};
use std::sync::OnceLock;

#[cfg(target_os = "linux")]
mod here {
    use std::mem::{size_of, zeroed};

    /// Processors that this thread may run on.
    pub(crate) fn now() -> Vec<usize> {
        // SAFETY: cpu_set_t is plain bits, for which zero is a value; the call writes at most the size that it is told, and the bits
        // asked for are those of the set.
        unsafe {
            let mut may: libc::cpu_set_t = zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut may) != 0 {
                return Vec::new();
            }
            let bits = 8 * size_of::<libc::cpu_set_t>();
            (0..bits).filter(|&p| libc::CPU_ISSET(p, &may)).collect()
        }
    }

    /// Has this thread run on those processors only. Where the system refuses, it runs where it might.
    pub(crate) fn bind(to: &[usize]) {
        let bits = 8 * size_of::<libc::cpu_set_t>();
        // SAFETY: as above; the bits set are within the set, which the call reads; 0 is this thread.
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

/// Threads will be bound from now on. The first call comes before the first is.
pub(crate) fn begin_binding() {
    allowed();
    purlin_term::background_free::begin_with(begin_unbound);
    EVER_BOUND.store(true, Ordering::Release);
}

/// Where threads might run before any was bound.
pub(crate) fn allowed() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(now)
}

/// The thread that calls may run where a thread might that no scheduler has started.
pub fn begin_unbound() {
    if EVER_BOUND.load(Ordering::Relaxed) {
        bind(allowed());
    }
}

/// Does what makes a process of the system, which runs where its maker may: where threads might before any was bound.
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
