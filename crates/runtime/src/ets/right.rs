//! A right that one thread has at a time and nobody waits for: to resize a table.
//!
//! Only [`Right::take`] makes a [`Taken`], whose end gives the right back: so none gives back what another holds.

use crate::sync::{AtomicBool, Ordering};

/// See the module head.
pub struct Right(AtomicBool);

/// The right, until it is dropped.
#[must_use]
pub struct Taken<'a>(&'a Right);

impl Right {
    /// Nobody has it.
    pub fn new() -> Right {
        Right(AtomicBool::new(false))
    }
    /// The right, unless somebody has it.
    pub fn take(&self) -> Option<Taken<'_>> {
        match self
            .0
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => Some(Taken(self)),
            Err(_) => None,
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
