//! A generator of pseudo-random numbers: SplitMix64 (Steele, Lea, Flood: Fast splittable
//! pseudorandom number generators, OOPSLA 2014). The same seed gives the same numbers on every
//! machine.

/// The generator, with its state.
pub struct Numbers(pub u64);

impl Numbers {
    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.draw() % n.max(1) as u64) as usize
    }
}
