//! A generator of pseudo-random numbers. The same seed gives the same numbers on every machine.

use purlin_world::streams::split_mix;

/// A generator with its state.
pub struct Numbers(pub u64);

impl Numbers {
    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        split_mix(&mut self.0)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n.max(1) as u64) as usize
    }
}
