//! Magic references: reference terms that own a native value (an ETS table's identity, an atomics array, the state of
//! a BIF that yielded). The value is dropped with the last reference to it.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The counted thing behind a magic reference. Made by [`MagicRef::new`], which gives it a reference number of its
/// own; look up by downcasting `value`.
pub struct MagicRef {
    pub refc: AtomicU64,
    pub num: [u32; 3],
    pub value: Box<dyn Any + Send + Sync>,
}

impl MagicRef {
    /// A new value with count 0: the first term made from it counts it to 1.
    pub fn new(num: [u32; 3], value: Box<dyn Any + Send + Sync>) -> *const MagicRef {
        Box::into_raw(Box::new(MagicRef {
            refc: AtomicU64::new(0),
            num,
            value,
        }))
    }
    /// Counts one more holder.
    pub fn retain(&self) {
        self.refc.fetch_add(1, Ordering::Relaxed);
    }
    /// One holder less; drops the value with the last.
    ///
    /// # Safety
    /// The caller held a count, and does not touch `p` afterwards.
    pub unsafe fn release(p: *const MagicRef) {
        if (*p).refc.fetch_sub(1, Ordering::Release) == 1 {
            fence(Ordering::Acquire);
            drop(Box::from_raw(p as *mut MagicRef));
        }
    }
}
