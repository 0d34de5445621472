//! Something that its owner lends while it does not need it. Another may take it meanwhile, and the owner waits until that has given it
//! back.

use crate::sync::{AtomicU32, Ordering, spin_loop};

/// The owner has it.
const HELD: u32 = 0;
/// Whoever comes first may have it.
const LENT: u32 = 1;
/// Another has it.
const TAKEN: u32 = 2;

/// See the module head. The owner has it at first.
pub(crate) struct Lend(AtomicU32);

/// Looks at it before the owner lets other threads run.
const LOOKS: u32 = 100;

impl Lend {
    #[allow(clippy::new_without_default)]
    pub(crate) fn new() -> Lend {
        Lend(AtomicU32::new(HELD))
    }
    /// Owner: whether it has it. Nobody else gives it that.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) == HELD
    }
    /// Owner, who has it: others may have it.
    #[inline]
    pub(crate) fn lend(&self) {
        debug_assert!(self.is_held());
        self.0.store(LENT, Ordering::Release);
    }
    /// Owner, who has lent it: has it again.
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
    /// Another: whether it has it now.
    #[inline]
    pub(crate) fn try_take(&self) -> bool {
        self.change(LENT, TAKEN)
    }
    /// The other who has it: gives it back.
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
