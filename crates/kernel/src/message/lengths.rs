//! How many processes have how many unread messages, as a histogram.
//!
//! Each mailbox remembers the class of lengths in which it is counted. A process is counted again
//! when it waits and when its time slice ends, and no longer when its mailbox is freed. So nothing
//! has to look at all processes. Off until [`turn_on`]: then it costs one look at a flag each time.
//!
//! # Orderings
//! The counts are independent of each other and publish nothing, so everything is relaxed.

use crate::message::mailbox::Mailbox;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of classes. Class `n` has the lengths from 2^n to 2^(n+1) - 1; the last has no bound.
pub const CLASSES: usize = 24;

/// The class of a mailbox that is not counted, since it is empty or was never looked at.
pub(crate) const UNCOUNTED: u8 = u8::MAX;

static ON: AtomicBool = AtomicBool::new(false);

static COUNTS: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];

/// Starts to count. Never stops: a mailbox that is counted must be counted off.
pub fn turn_on() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether mailboxes are counted.
#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Returns the number of processes in each class. Other threads count meanwhile, so the sum may
/// differ a little from the number at any one time.
pub fn counts() -> [usize; CLASSES] {
    // A mailbox may be counted off by a thread before another's addition is seen.
    std::array::from_fn(|i| (COUNTS[i].load(Ordering::Relaxed) as isize).max(0) as usize)
}

/// The class of a number of unread messages.
fn class(len: usize) -> u8 {
    match len.checked_ilog2() {
        None => UNCOUNTED,
        Some(n) => n.min(CLASSES as u32 - 1) as u8,
    }
}

/// Counts a mailbox in the class of its length.
///
/// # Safety
/// `m` is null, or a mailbox of a process that is this thread's.
#[inline]
pub(crate) unsafe fn count(m: *mut Mailbox) {
    if !m.is_null() {
        // SAFETY: by the contract.
        let m = unsafe { &mut *m };
        let class = class(m.len());
        put(&mut m.class, class);
    }
}

/// Counts a mailbox no longer.
#[inline]
pub(crate) fn forget(place: &mut u8) {
    put(place, UNCOUNTED);
}

#[inline]
fn put(place: &mut u8, class: u8) {
    if *place == class {
        return;
    }
    if *place != UNCOUNTED {
        COUNTS[usize::from(*place)].fetch_sub(1, Ordering::Relaxed);
    }
    if class != UNCOUNTED {
        COUNTS[usize::from(class)].fetch_add(1, Ordering::Relaxed);
    }
    *place = class;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        assert_eq!(class(0), UNCOUNTED);
        for (len, expected) in [
            (1, 0),
            (2, 1),
            (3, 1),
            (4, 2),
            (1 << 23, 23),
            (usize::MAX, 23),
        ] {
            assert_eq!(class(len), expected);
        }
    }

    #[test]
    fn a_mailbox_is_counted_once() {
        let before = counts()[3];
        let mut place = UNCOUNTED;
        put(&mut place, class(9));
        put(&mut place, class(15));
        assert_eq!(counts()[3], before + 1);
        forget(&mut place);
        assert_eq!((place, counts()[3]), (UNCOUNTED, before));
    }
}
