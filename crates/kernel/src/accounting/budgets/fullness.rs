//! How full a budget is: memory that its processes have freed, and that the allocators still keep,
//! is given back at each of a few steps towards the limit.
//!
//! # Races
//! Two threads that see the same step at once may both give back, or one may leave it to the other:
//! a step is a hint.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

/// Eighths of the limit at which memory is given back.
const STEPS: [i64; 3] = [4, 6, 7];
/// A budget that uses fewer eighths begins with the first step again.
const BEGINS_AGAIN: i64 = 2;
/// Nanoseconds between two of its steps, at least.
const BETWEEN: i64 = 50_000_000;

/// The step that a budget has reached, and the time before which it reaches no further one.
#[derive(Default)]
pub(super) struct Fullness {
    step: AtomicU8,
    next: AtomicI64,
}

impl Fullness {
    pub(super) fn reset(&self) {
        self.step.store(0, Ordering::Relaxed);
        self.next.store(0, Ordering::Relaxed);
    }
    /// Whether use of `eighths` eighths is a further step.
    pub(super) fn advances(&self, eighths: i64, now: impl FnOnce() -> i64) -> bool {
        if eighths < BEGINS_AGAIN {
            self.step.store(0, Ordering::Relaxed);
            return false;
        }
        let reached = STEPS.iter().filter(|&&s| eighths >= s).count() as u8;
        if reached <= self.step.load(Ordering::Relaxed) {
            return false;
        }
        let now = now();
        if now < self.next.load(Ordering::Relaxed) {
            return false;
        }
        self.step.store(reached, Ordering::Relaxed);
        self.next.store(now + BETWEEN, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_taken_once_and_not_too_soon() {
        let f = Fullness::default();
        let later = BETWEEN;
        for (eighths, now, advances) in [
            (1, 0, false),
            (4, 1, true),
            (5, 2, false),
            (6, 3, false),
            (6, 1 + later, true),
            (4, 9 * later, false),
            (9, 9 * later, true),
            (9, 20 * later, false),
            (1, 20 * later, false),
            (5, 20 * later, true),
        ] {
            assert_eq!(f.advances(eighths, || now), advances, "{eighths} at {now}");
        }
    }
}
