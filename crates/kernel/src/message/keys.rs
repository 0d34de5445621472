//! References of this runtime as keys, and their alias modes.

use crate::ids;
use purlin_term::Term;

/// A reference of this runtime, as a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefKey {
    // Two halves, so that an entry of a set is aligned to four bytes.
    low: u32,
    high: u32,
}

impl RefKey {
    /// Returns the key with these bits, as [`ids::ref_bits`] gives them.
    #[inline]
    pub fn new(bits: u64) -> RefKey {
        RefKey {
            low: bits as u32,
            high: (bits >> 32) as u32,
        }
    }
    /// Returns the key of a reference; `None` if this runtime has not made it.
    #[inline]
    pub fn of(t: Term) -> Option<RefKey> {
        let n = t.as_ref_view()?.local_nums()?;
        ids::bits_of(n).map(RefKey::new)
    }
    /// Returns the numbers of the reference.
    #[inline]
    pub fn numbers(self) -> [u32; 3] {
        ids::numbers_of(self.bits())
    }
    #[inline]
    fn bits(self) -> u64 {
        u64::from(self.low) | u64::from(self.high) << 32
    }
}

impl std::hash::Hash for RefKey {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, h: &mut H) {
        h.write_u64(self.bits());
    }
}

/// How a monitor's reference serves as an alias.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AliasMode {
    None,
    Explicit,
    /// Ends with the monitor.
    Demonitor,
    /// As `Demonitor`, and with the first message through it.
    ReplyDemonitor,
}
