//! A fast hash for keys that the runtime itself has assigned.

/// A hasher for maps whose keys are numbers that the runtime itself has assigned, so nobody can
/// choose them.
pub type Hashing = std::hash::BuildHasherDefault<Mix>;

/// The hash of [`Hashing`].
#[derive(Default)]
pub struct Mix(u64);

impl std::hash::Hasher for Mix {
    #[inline]
    fn finish(&self) -> u64 {
        // The map takes its control bits from the top and its bucket from the bottom.
        self.0 ^ (self.0 >> 32)
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for c in bytes.chunks(8) {
            let mut w = [0; 8];
            w[..c.len()].copy_from_slice(c);
            self.write_u64(u64::from_le_bytes(w));
        }
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(29) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}
