//! FNV-1a, 64 bits: hashes that are the same in each run and each build, for names of files and
//! numbers of nodes.

/// The hash of nothing.
pub const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// Adds some bytes to a hash.
pub fn add(hash: u64, bytes: &[u8]) -> u64 {
    let byte = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01B3);
    bytes.iter().fold(hash, byte)
}
