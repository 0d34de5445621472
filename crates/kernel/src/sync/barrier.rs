//! An asymmetric barrier: nearly all the cost is on one side, and the frequent side hardly pays.
//!
//! # Orderings
//! If one thread stores, passes the [`light`] barrier and loads, and another stores, passes the
//! [`heavy`] one and loads, at least one of the loads finds the other thread's store. For the heavy
//! barrier the system makes all running threads pass a full barrier (`membarrier`), so the light
//! one need only stop the compiler. Where the system can't, both are `SeqCst` fences, and the pair
//! is the usual one of store buffering.

use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

/// The light barrier costs nothing.
const FREE: u8 = 1;
/// Both barriers are fences.
const FENCES: u8 = 2;
static KIND: AtomicU8 = AtomicU8::new(0);

/// Settles the kind, the same for all threads. Must be called by a thread before its first light
/// barrier.
pub(crate) fn prepare() {
    if KIND.load(Ordering::Relaxed) == 0 {
        KIND.store(
            if sys::offered() { FREE } else { FENCES },
            Ordering::Relaxed,
        );
    }
}

/// Passes the barrier of the frequent side.
#[inline(always)]
pub(crate) fn light() {
    match KIND.load(Ordering::Relaxed) {
        FREE => compiler_fence(Ordering::SeqCst),
        _ => fence(Ordering::SeqCst),
    }
}

/// Passes the barrier of the rare side.
pub(crate) fn heavy() {
    // The kind may be unsettled to this thread though a light barrier of another relies on it.
    prepare();
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
    /// Whether both commands exist. The slow one serves if the quick one is refused later.
    pub(super) fn offered() -> bool {
        let known = ask(MEMBARRIER_CMD_QUERY);
        let all = MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_PRIVATE_EXPEDITED;
        known > 0 && known & libc::c_long::from(all) == libc::c_long::from(all)
    }
    pub(super) fn all_threads() {
        // Registers late: that takes the system some time if there are many threads, and most
        // programs never need it.
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
