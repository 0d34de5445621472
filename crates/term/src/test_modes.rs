//! Modes for tests, each turned on by an environment variable that has a seed, and the random
//! numbers that each thread draws from that seed.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The switch of a mode.
pub(crate) struct Switch {
    /// Whether the mode is on, once that is known.
    state: AtomicU8,
    variable: &'static str,
    /// Returns the seed for the number that the variable has. It is 0 for 0 only.
    seed_for: fn(u64) -> u64,
    seed: OnceLock<u64>,
    /// Number of threads that have drawn numbers.
    threads: AtomicU64,
}

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

impl Switch {
    pub const fn new(variable: &'static str, seed_for: fn(u64) -> u64) -> Switch {
        Switch {
            state: AtomicU8::new(UNKNOWN),
            variable,
            seed_for,
            seed: OnceLock::new(),
            threads: AtomicU64::new(0),
        }
    }

    /// The seed of this run; 0: the mode is off.
    pub fn seed(&self) -> u64 {
        *self.seed.get_or_init(|| {
            let set = std::env::var(self.variable).ok();
            match set.and_then(|v| v.parse().ok()) {
                None | Some(0) => 0,
                Some(n) => (self.seed_for)(n),
            }
        })
    }

    /// Whether the variable is set to a number other than 0. Off, this costs a load of a byte that
    /// is never written.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        match self.state.load(Ordering::Relaxed) {
            OFF => false,
            state => state == ON || self.look(),
        }
    }

    /// Looks at the environment for the first time.
    #[cold]
    #[inline(never)]
    fn look(&self) -> bool {
        let on = self.seed() != 0;
        self.state
            .store(if on { ON } else { OFF }, Ordering::Relaxed);
        on
    }

    /// Returns the next random number of this thread, below 2^32. `numbers` is the thread's state
    /// for this mode, which begins with 0.
    pub fn next(&self, numbers: &Cell<u64>) -> u64 {
        let mut x = numbers.get();
        if x == 0 {
            let n = self.threads.fetch_add(1, Ordering::Relaxed) + 1;
            let n = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            x = mixed(self.seed().wrapping_add(n)) | 1;
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        numbers.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    }
}

/// A hash of `x`: the output function of SplitMix64.
pub fn mixed(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_draw_other_numbers_from_the_same_seed() {
        let drawn = || {
            let switch = Switch::new("PURLIN_NO_SUCH_MODE", |n| n);
            let threads = [Cell::new(0), Cell::new(0)];
            threads.map(|t| [switch.next(&t), switch.next(&t)])
        };
        let [first, second] = drawn();
        assert_ne!(first, second);
        assert_eq!(drawn(), [first, second]);
    }

    #[test]
    fn a_variable_that_is_not_set_is_off() {
        let switch = Switch::new("PURLIN_NO_SUCH_MODE", |n| n + 1);
        assert!(!switch.is_on() && !switch.is_on());
        assert_eq!(switch.seed(), 0);
    }
}
