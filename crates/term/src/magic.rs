//! Magic references: reference terms that own a native value (an ETS table's identity, an atomics
//! array, the state of a native that yielded). The value is dropped with the last reference to it.
//!
//! A value may hold terms with magic references of their own (a match specification has another's
//! reference as a constant), nested to any depth. So dropping does not nest: while a thread drops a
//! value, other values whose last reference goes with it wait in a list of that thread, linked
//! through their counts, and are dropped by the release that began. A count that is such a link
//! counts nobody ([`MagicRef::try_retain`]).
//!
//! # Orderings
//! `release` decrements with `Release` and fences with `Acquire` after the last decrement, so the
//! thread that drops the value sees everything that earlier holders did with it. `retain` is
//! relaxed: its caller already has a count. `try_retain` has none; its compare-exchange is
//! `AcqRel`, so that it sees what earlier holders released, and later holders see what its caller
//! did before.

use crate::fence::{self, Kind};
use std::alloc::Layout;
use std::any::Any;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{self, AtomicU64, Ordering};

/// The counted value behind a magic reference. Made by [`MagicRef::new`], which gives it a
/// reference number of its own; read by downcasting `value`.
pub struct MagicRef {
    pub refc: AtomicU64,
    pub num: [u32; 3],
    /// Whether the end of the value is visible outside the runtime: the destructor of a library's
    /// resource runs. Code that keeps such a reference for good delays that end.
    pub ends_outside: bool,
    pub value: Box<dyn Any + Send + Sync>,
}

impl MagicRef {
    /// A new value with count 0: the first term made from it counts it to 1.
    pub fn new(num: [u32; 3], value: Box<dyn Any + Send + Sync>) -> *const MagicRef {
        Self::make(num, value, false)
    }
    /// As [`MagicRef::new`], for a value whose end is visible outside the runtime.
    pub fn with_end(num: [u32; 3], value: Box<dyn Any + Send + Sync>) -> *const MagicRef {
        Self::make(num, value, true)
    }
    fn make(
        num: [u32; 3],
        value: Box<dyn Any + Send + Sync>,
        ends_outside: bool,
    ) -> *const MagicRef {
        let l = Layout::new::<MagicRef>();
        // SAFETY: the layout has a size; the memory is fresh and written whole.
        unsafe {
            let p = fence::allocate(Kind::Magic, l) as *mut MagicRef;
            if p.is_null() {
                crate::sys::out_of_memory("sys_alloc", l.size(), "magic_ref");
            }
            p.write(MagicRef {
                refc: AtomicU64::new(0),
                num,
                ends_outside,
                value,
            });
            p
        }
    }
    /// Counts one more holder.
    pub fn retain(&self) {
        self.refc.fetch_add(1, Ordering::Relaxed);
    }
    /// Counts one more holder, if there still is one. For code that finds a value other than
    /// through a reference.
    ///
    /// # Safety
    /// The memory is there: the value's drop waits for the caller.
    pub unsafe fn try_retain(p: *const MagicRef) -> bool {
        // SAFETY: by the contract, the memory is there.
        let refc = unsafe { &(*p).refc };
        let mut n = refc.load(Ordering::Relaxed);
        while n != 0 && n & WAITS == 0 {
            match refc.compare_exchange_weak(n, n + 1, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => n = now,
            }
        }
        false
    }
    /// Counts one holder less; drops the value with the last.
    ///
    /// # Safety
    /// The caller held a count, and does not touch `p` afterwards.
    pub unsafe fn release(p: *const MagicRef) {
        // SAFETY: by the contract. After the last count nobody else has the value.
        unsafe {
            if (*p).refc.fetch_sub(1, Ordering::Release) == 1 {
                atomic::fence(Ordering::Acquire);
                Self::end(p as *mut MagicRef);
            }
        }
    }
    /// Drops a value that has no reference left, or leaves that to the release under way on this
    /// thread.
    ///
    /// # Safety
    /// The count is 0, and nobody else knows `p`.
    unsafe fn end(p: *mut MagicRef) {
        let waiting = ENDING.get();
        // SAFETY: by the contract, nobody else knows the value; its memory is there until it is
        // dropped below.
        unsafe {
            if waiting != 0 {
                // Others may be about to call `try_retain`.
                (*p).refc.store(waiting | WAITS, Ordering::Relaxed);
                ENDING.set(p as u64);
                return;
            }
        }
        ENDING.set(LAST);
        let mut p = p;
        // SAFETY: each value in the list has no reference left, and is dropped and freed once.
        unsafe {
            loop {
                std::ptr::drop_in_place(p);
                fence::deallocate(p as *mut u8, Layout::new::<MagicRef>());
                let next = ENDING.get();
                if next == LAST {
                    break;
                }
                p = next as *mut MagicRef;
                ENDING.set((*p).refc.load(Ordering::Relaxed) & !WAITS);
            }
        }
        ENDING.set(0);
    }
}

static TOLD: OnceLock<fn(&MagicRef)> = OnceLock::new();

/// Sets a function that is called with each magic reference encoded as an external term: decoding
/// gives a plain reference with the same numbers. Only the first call counts.
pub fn on_encode(f: fn(&MagicRef)) {
    let _ = TOLD.set(f);
}

/// Notes that a reference to the value is encoded.
pub(crate) fn encoded(m: &MagicRef) {
    if let Some(f) = TOLD.get() {
        f(m);
    }
}

/// Ends the list of values to be dropped: no address.
const LAST: u64 = 1;

/// Marks a count that is a link of that list. No address of a program has this bit, and no count
/// reaches it.
const WAITS: u64 = 1 << 63;

thread_local! {
    /// 0, or the first of the values that wait to be dropped by the release under way. It needs no
    /// destructor, so it exists as long as the thread.
    static ENDING: Cell<u64> = const { Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Alloc;
    use crate::frag::{Fragment, OwnedTerm};
    use std::sync::Arc;

    /// A value that holds the reference of the one before it.
    #[expect(dead_code, reason = "kept to be dropped")]
    struct Link(OwnedTerm, Arc<()>);
    // SAFETY: only this thread has any.
    unsafe impl Send for Link {}
    // SAFETY: only this thread has any.
    unsafe impl Sync for Link {}

    /// A value that releases another reference, and then looks it up as code that knows its number
    /// would.
    struct Asks(*const MagicRef, Arc<AtomicU64>);
    // SAFETY: only this thread has any.
    unsafe impl Send for Asks {}
    // SAFETY: only this thread has any.
    unsafe impl Sync for Asks {}

    impl Drop for Asks {
        fn drop(&mut self) {
            // SAFETY: the count is this value's; what waits to be dropped exists until this has
            // returned.
            unsafe {
                MagicRef::release(self.0);
                let held = MagicRef::try_retain(self.0);
                self.1.fetch_add(1 + u64::from(held), Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn nobody_holds_what_waits_to_be_dropped() {
        let told = Arc::new(AtomicU64::new(0));
        let dropped = Arc::new(());
        let inner = MagicRef::new([1, 0, 0], Box::new(dropped.clone()));
        let other = MagicRef::new([2, 0, 0], Box::new(dropped.clone()));
        let first = MagicRef::new([3, 0, 0], Box::new(Asks(inner, told.clone())));
        let second = MagicRef::new([4, 0, 0], Box::new(Asks(other, told.clone())));
        // SAFETY: each is held once, by the one that releases it; the first by this function.
        unsafe {
            for m in [inner, other, first, second] {
                (*m).retain();
            }
            assert!(MagicRef::try_retain(first));
            MagicRef::release(first);
            MagicRef::release(first);
            MagicRef::release(second);
        }
        assert_eq!(told.load(Ordering::Relaxed), 2);
        assert_eq!(Arc::strong_count(&dropped), 1);
        assert_eq!(ENDING.get(), 0);
    }

    #[test]
    fn values_within_values_need_no_stack() {
        const DEEP: u32 = 1_000_000;
        let counted = Arc::new(());
        let mut term = OwnedTerm::copy_of(crate::word::NIL);
        for i in 0..DEEP {
            let m = MagicRef::new([i, 0, 0], Box::new(Link(term, counted.clone())));
            let mut f = Fragment::new();
            // SAFETY: just made.
            let t = unsafe { f.magic_ref(m) };
            term = OwnedTerm::from_parts(t, f);
        }
        assert_eq!(Arc::strong_count(&counted), DEEP as usize + 1);
        drop(term);
        assert_eq!(Arc::strong_count(&counted), 1);
        assert_eq!(ENDING.get(), 0);
    }
}
