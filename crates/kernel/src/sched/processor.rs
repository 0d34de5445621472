//! The processor that a scheduler's thread runs on, and which thread yields there.
//!
//! Linux puts a woken thread onto the processor of its waker unless it considers another one idle.
//! In a virtual machine it may not: a processor that the host has descheduled for a moment, as it
//! does with sleeping ones, doesn't count as idle. Two schedulers then share a processor beside an
//! idle one, until the system balances load some milliseconds later. Whatever one of them has
//! stolen from the other's queue waits for so long. A scheduler that finds itself on the processor
//! of its waker therefore moves at once.
//!
//! A thread of the runtime that is not urgent ([`request_long_slices`]) does not delay a scheduler
//! that is woken on its processor: since Linux 6.12, a thread with a short time slice preempts one
//! that has requested a longer slice. Older systems ignore the request.

#[cfg(target_os = "linux")]
mod here {
    use std::mem::{size_of, zeroed};

    /// Returns the processor that this thread runs on, from 0.
    #[inline]
    pub(in crate::sched) fn current() -> Option<usize> {
        // SAFETY: the call takes nothing and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Length of the slice that an unhurried thread requests, in nanoseconds: the longest possible.
    const LONG_TURN_NS: u64 = 100_000_000;

    /// Requests long slices for this thread, so that others preempt it. Its other attributes, as
    /// set by the user, stay.
    pub(crate) fn request_long_slices() {
        let size = size_of::<libc::sched_attr>() as u32;
        // SAFETY: the structure is plain bits, for which zero is a value. The first call writes at
        // most the given size, and the second reads it. 0 is this thread.
        unsafe {
            let mut how: libc::sched_attr = zeroed();
            if libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, size, 0) == 0
                && how.sched_policy == libc::SCHED_OTHER as u32
            {
                how.sched_runtime = LONG_TURN_NS;
                libc::syscall(libc::SYS_sched_setattr, 0, &raw const how, 0);
            }
        }
    }

    fn set(mask: &libc::cpu_set_t) -> bool {
        // SAFETY: the call only reads the mask, in the given size. 0 is this thread.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), mask) == 0 }
    }

    /// Moves this thread to an allowed processor that is not in `taken`, if there is one, and
    /// restores its mask. Returns the processor that it has moved to.
    #[cold]
    pub(in crate::sched) fn leave(taken: impl Iterator<Item = usize>) -> Option<usize> {
        let bits = 8 * size_of::<libc::cpu_set_t>();
        // SAFETY: cpu_set_t is plain bits, for which zero is a value. The call writes at most the
        // given size, and processors beyond the set are filtered out before they are cleared.
        unsafe {
            let mut may: libc::cpu_set_t = zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut may) != 0 {
                return None;
            }
            let mut free = may;
            taken
                .filter(|&p| p < bits)
                .for_each(|p| libc::CPU_CLR(p, &mut free));
            if libc::CPU_COUNT(&free) == 0 || !set(&free) {
                return None;
            }
            let at = current();
            // A thread that may run on all processors may also run on those that are added later.
            let online = libc::sysconf(libc::_SC_NPROCESSORS_ONLN);
            if i64::from(libc::CPU_COUNT(&may)) == online {
                (0..bits).for_each(|p| libc::CPU_SET(p, &mut may));
            }
            set(&may);
            at
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    #[inline]
    pub(in crate::sched) fn current() -> Option<usize> {
        None
    }
    pub(in crate::sched) fn leave(_: impl Iterator<Item = usize>) -> Option<usize> {
        None
    }
    pub(crate) fn request_long_slices() {}
}

pub(crate) use here::request_long_slices;
pub(super) use here::{current, leave};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Only the length of its slices changes, and only if the system supports that.
    #[test]
    fn long_slices_keep_the_priority() {
        fn asked() -> libc::sched_attr {
            let size = size_of::<libc::sched_attr>() as u32;
            // SAFETY: zero is a value of the structure, and the call writes at most the given size.
            unsafe {
                let mut how: libc::sched_attr = std::mem::zeroed();
                let r = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, size, 0);
                assert_eq!(r, 0);
                how
            }
        }
        std::thread::spawn(|| {
            let before = asked();
            request_long_slices();
            let after = asked();
            assert_eq!(
                (before.sched_policy, before.sched_nice),
                (after.sched_policy, after.sched_nice)
            );
            assert!(after.sched_runtime >= before.sched_runtime);
        })
        .join()
        .expect("runs");
    }

    fn allowed() -> Vec<bool> {
        // SAFETY: cpu_set_t is plain bits, for which zero is a value; the call writes at most the
        // given size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(
                libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set),
                0
            );
            let bits = 8 * size_of::<libc::cpu_set_t>();
            (0..bits).map(|p| libc::CPU_ISSET(p, &set)).collect()
        }
    }

    #[test]
    fn a_thread_that_leaves_is_elsewhere_and_may_run_where_it_might() {
        let before = allowed();
        let free = |p: usize| before.iter().filter(|&&b| b).count() > usize::from(before[p]);
        for p in 0..4 {
            let at = leave(std::iter::once(p));
            assert_eq!(at.is_some(), free(p), "{p}");
            assert_ne!(at, Some(p));
            assert_eq!(allowed(), before);
        }
        assert_eq!(leave(0..before.len() + 7), None);
        assert_eq!(allowed(), before);
        assert!(leave(std::iter::empty()).is_some());
    }
}
