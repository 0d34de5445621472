//! The processor that the thread of a scheduler runs on, and who gives way to it there.
//!
//! Linux puts a thread that is woken onto the processor of the one that wakes it unless it takes another for idle, and in a
//! virtual machine it may not: a processor that the host has taken away for a moment, as it does with one that sleeps, is
//! none to it. Two schedulers then share a processor beside one that does nothing, until the system looks for such
//! imbalances some milliseconds later; whatever the one has taken from the other's queue waits for so long. A scheduler that
//! finds itself where the one that has woken it runs therefore goes elsewhere at once.
//!
//! A thread that does something for the runtime and has time ([`give_way`]) is not waited for by a scheduler that is woken on
//! its processor: since Linux 6.12 a thread goes before one that has asked for longer turns. Where that isn't known, nothing
//! changes.

#[cfg(target_os = "linux")]
mod here {
    use std::mem::{size_of, zeroed};

    /// The processor that this thread runs on, from 0.
    #[inline]
    pub(in crate::sched) fn processor() -> Option<usize> {
        // SAFETY: the call takes nothing and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }

    /// Nanoseconds of the turns that a thread asks for which gives way: the longest there are.
    const LONG_TURN_NS: u64 = 100_000_000;

    /// Asks for long turns for this thread, before which others go. All else that the user has chosen for it stays.
    pub(crate) fn give_way() {
        let size = size_of::<libc::sched_attr>() as u32;
        // SAFETY: the structure is plain bits, for which zero is a value; the first call writes at most the size that it is told,
        // the second reads it; 0 is this thread.
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
        // SAFETY: the mask is read only, in the size that is told; 0 is this thread.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), mask) == 0 }
    }

    /// Moves this thread to a processor that is none of those `taken`, if there is one that it may run on; where it may run later
    /// is as before. The processor that it has come to.
    #[cold]
    pub(in crate::sched) fn leave(taken: impl Iterator<Item = usize>) -> Option<usize> {
        let bits = 8 * size_of::<libc::cpu_set_t>();
        // SAFETY: cpu_set_t is plain bits, for which zero is a value; the call writes at most the size that it is told, and
        // processors beyond the set are left out before they are cleared.
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
            let at = processor();
            // A process of the system that may run on all processors may run on those too that are added later.
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
    pub(in crate::sched) fn processor() -> Option<usize> {
        None
    }
    pub(in crate::sched) fn leave(_: impl Iterator<Item = usize>) -> Option<usize> {
        None
    }
    pub(crate) fn give_way() {}
}

pub(crate) use here::give_way;
pub(super) use here::{leave, processor};

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Nothing but the length of its turns changes, and that only where the system knows of it.
    #[test]
    fn who_gives_way_keeps_its_priority() {
        fn asked() -> libc::sched_attr {
            let size = size_of::<libc::sched_attr>() as u32;
            // SAFETY: as above.
            unsafe {
                let mut how: libc::sched_attr = std::mem::zeroed();
                let r = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut how, size, 0);
                assert_eq!(r, 0);
                how
            }
        }
        std::thread::spawn(|| {
            let before = asked();
            give_way();
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
        // SAFETY: as above.
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
