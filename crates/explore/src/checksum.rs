//! The checksum of texts and bytes (FNV-1a, 64 bits). It detects accidental changes; it does not
//! protect against deliberate ones.

/// The checksum of nothing.
const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// A checksum to which bytes are added, piece by piece.
#[derive(Clone, Copy)]
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum(EMPTY)
    }
}

impl Checksum {
    /// Adds some bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let byte = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3);
        self.0 = bytes.iter().fold(self.0, byte);
    }

    /// Returns the checksum of the bytes added so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// Returns the checksum of some bytes.
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut c = Checksum::default();
    c.add(bytes);
    c.value()
}
