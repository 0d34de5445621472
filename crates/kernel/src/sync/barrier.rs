//! A barrier between threads of which nearly all the cost is with one of them: the other has it often, and hardly pays.
//!
//! Where one thread stores, has the [`light`] barrier and loads, and another stores, has the [`heavy`] one and loads, at least one of
//! the loads finds what the other thread has stored. The system makes all threads that run pass a barrier for the heavy one; where it
//! can't, both are plain fences.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

/// The light one need be none.
const FREE: u8 = 1;
/// Both are fences.
const FENCES: u8 = 2;
static KIND: AtomicU8 = AtomicU8::new(0);

/// To be called by a thread before it has the first light barrier.
pub(crate) fn prepare() {
    if KIND.load(Ordering::Relaxed) == 0 {
        KIND.store(
            if sys::offered() { FREE } else { FENCES },
            Ordering::Relaxed,
        );
    }
}

/// The barrier of the side that often comes by.
#[inline(always)]
pub(crate) fn light() {
    match KIND.load(Ordering::Relaxed) {
        FREE => compiler_fence(Ordering::SeqCst),
        _ => fence(Ordering::SeqCst),
    }
}

/// The barrier of the side that seldom comes by.
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
    if KIND.load(Ordering::Relaxed) == FREE {
        sys::all_threads();
    }
}

#[cfg(target_os = "linux")]
mod sys {
    use libc::{
        MEMBARRIER_CMD_GLOBAL, MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_QUERY,
        MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, SYS_membarrier, syscall,
    };
    use std::sync::OnceLock;

    fn ask(cmd: libc::c_int) -> libc::c_long {
        // SAFETY: it takes numbers only.
        unsafe { syscall(SYS_membarrier, cmd, 0, 0) }
    }
    /// The slow form does where the quick one is refused later.
    pub(super) fn offered() -> bool {
        let known = ask(MEMBARRIER_CMD_QUERY);
        let all = MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_PRIVATE_EXPEDITED;
        known > 0 && known & libc::c_long::from(all) == libc::c_long::from(all)
    }
    pub(super) fn all_threads() {
        // Only now: it takes the system some time where there are many threads, and most programs never need it.
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        let quick = *REGISTERED.get_or_init(|| ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0);
        if quick && ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0 {
            return;
        }
        assert!(
            ask(MEMBARRIER_CMD_GLOBAL) == 0,
            "the system refuses a barrier that it offers"
        );
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    pub(super) fn offered() -> bool {
        false
    }
    pub(super) fn all_threads() {}
}
