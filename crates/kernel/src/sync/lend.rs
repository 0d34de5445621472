//! A resource that its owner lends while it does not need it. Another thread may take it meanwhile,
//! and the owner waits until it is returned.
//!
//! # Orderings
//! Lending and returning store with release, and taking exchanges with acquire: who has the
//! resource sees what the one before it did with it. The model is `models/tests/lend.rs`.

use crate::sync::{AtomicU32, Ordering, spin_loop};

/// The owner has it.
const HELD: u32 = 0;
/// The first thread that tries may have it.
const LENT: u32 = 1;
/// Another thread has it.
const TAKEN: u32 = 2;

/// See the module docs. The owner has it at first.
pub(crate) struct Lend(AtomicU32);

/// Number of attempts before the owner yields to other threads.
const LOOKS: u32 = 100;

impl Lend {
    #[allow(clippy::new_without_default)]
    pub(crate) fn new() -> Lend {
        Lend(AtomicU32::new(HELD))
    }
    /// Whether the owner has it. Called by the owner, which alone changes that.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HELD
    }
    /// Lends it. Called by the owner, which has it.
    #[inline]
    pub(crate) fn lend(&self) {
        debug_assert!(self.is_held());
        self.0.store(LENT, Ordering::Release);
    }
    /// Takes it back. Called by the owner, which has lent it.
    #[inline]
    pub(crate) fn take_back(&self) {
        if !self.change(LENT, HELD) {
            self.wait();
        }
    }
    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        while !self.change(LENT, HELD) {
            looks += 1;
            match looks < LOOKS {
                true => spin_loop(),
                false => std::thread::yield_now(),
            }
        }
    }
    /// Tries to take it. Called by other threads.
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        self.change(LENT, TAKEN)
    }
    /// Returns it. Called by the other thread that has it.
    #[inline]
    pub(crate) fn give_back(&self) {
        debug_assert_eq!(self.0.load(Ordering::Relaxed), TAKEN);
        self.0.store(LENT, Ordering::Release);
    }
    #[inline]
    fn change(&self, from: u32, to: u32) -> bool {
        let changed = self
            .0
            .compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed);
        changed.is_ok()
    }
}
