//! Magic references: reference terms that own a native value (an ETS table's identity, an atomics array, the state of
//! a BIF that yielded). The value is dropped with the last reference to it.
//!
//! A value may hold terms with magic references of their own (a match specification has another's reference as a constant),
//! as deep as programs like. So dropping does not nest: while a thread drops a value, those whose last reference goes with it
//! wait in a list of that thread, which is linked through their counts, and are dropped by the release that began.

use crate::fence::{self, Kind};
use std::alloc::Layout;
use std::any::Any;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{self, AtomicU64, Ordering};

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
        let l = Layout::new::<MagicRef>();
        // SAFETY: the layout has a size; the memory is fresh and written whole.
        unsafe {
            let p = fence::allocate(Kind::Magic, l) as *mut MagicRef;
            if p.is_null() {
                std::alloc::handle_alloc_error(l);
            }
            p.write(MagicRef {
                refc: AtomicU64::new(0),
                num,
                value,
            });
            p
        }
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
            atomic::fence(Ordering::Acquire);
            Self::end(p as *mut MagicRef);
        }
    }
    /// Drops a value that has no reference left, or has the release under way on this thread do so.
    ///
    /// # Safety
    /// The count is 0, and nobody else knows `p`.
    unsafe fn end(p: *mut MagicRef) {
        let waiting = ENDING.get();
        if waiting != 0 {
            *(*p).refc.get_mut() = waiting;
            ENDING.set(p as u64);
            return;
        }
        ENDING.set(LAST);
        let mut p = p;
        loop {
            std::ptr::drop_in_place(p);
            fence::deallocate(p as *mut u8, Layout::new::<MagicRef>());
            let next = ENDING.get();
            if next == LAST {
                break;
            }
            p = next as *mut MagicRef;
            ENDING.set(*(*p).refc.get_mut());
        }
        ENDING.set(0);
    }
}

static TOLD: OnceLock<fn(&MagicRef)> = OnceLock::new();

/// Has `f` called with each magic reference that is encoded as an external term: what is decoded is a plain reference of the
/// same numbers. Only the first call counts.
pub fn on_encode(f: fn(&MagicRef)) {
    let _ = TOLD.set(f);
}

/// The term is encoded; nothing happens where it is no magic reference.
pub fn encoded(t: crate::Term) {
    if let Some(f) = TOLD.get()
        && let Some(crate::layout::RefView::Magic(m)) = t.as_ref_view()
    {
        f(m);
    }
}

/// Ends the list of values to be dropped: no address.
const LAST: u64 = 1;

thread_local! {
    /// 0, or the first of the values that wait to be dropped by the release under way. It needs no destructor, so it is
    /// there as long as the thread is.
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
    // SAFETY: this thread is the only one that has any.
    unsafe impl Send for Link {}
    // SAFETY: as above.
    unsafe impl Sync for Link {}

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
