//! References of this runtime as keys, and how they serve as aliases.

use crate::ids;
use purlin_term::Term;

/// A reference of this runtime, as a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefKey {
    // Two halves: an entry of a set is aligned to four bytes.
    low: u32,
    high: u32,
}

impl RefKey {
    /// Out of [`ids::ref_bits`].
    #[inline]
    pub fn new(bits: u64) -> RefKey {
        RefKey {
            low: bits as u32,
            high: (bits >> 32) as u32,
        }
    }
    /// The key of a reference; None if it is none that this runtime has made.
    #[inline]
    pub fn of(t: Term) -> Option<RefKey> {
        let n = t.as_ref_view()?.local_nums()?;
        ids::bits_of(n).map(RefKey::new)
    }
    /// The numbers of the reference.
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
