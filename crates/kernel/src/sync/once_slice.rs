//! A slice that is empty until it is filled, once. It can be part of a constant static, and reading
//! it costs what reading a vector costs.
//!
//! # Orderings
//! [`OnceSlice::fill`] stores the address and then the length with `Release`. A reader loads the
//! length with `Acquire`: if it is not 0, the address and the elements are visible.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering};
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Once;

/// See the module docs.
pub(crate) struct OnceSlice<T> {
    at: AtomicPtr<T>,
    len: AtomicUsize,
    filled: Once,
    owns: PhantomData<Box<[T]>>,
}

impl<T> OnceSlice<T> {
    /// Returns an empty slice.
    pub(crate) const fn new() -> OnceSlice<T> {
        OnceSlice {
            at: AtomicPtr::new(NonNull::dangling().as_ptr()),
            len: AtomicUsize::new(0),
            filled: Once::new(),
            owns: PhantomData,
        }
    }
    /// Fills the slice, unless a thread has done so. It is full when this returns.
    pub(crate) fn fill(&self, make: impl FnOnce() -> Box<[T]>) {
        self.filled.call_once(|| {
            let all = Box::into_raw(make());
            self.at.store(all.cast(), Ordering::Relaxed);
            self.len.store(all.len(), Ordering::Release);
        });
    }
}

impl<T> Deref for OnceSlice<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        let len = self.len.load(Ordering::Acquire);
        let at = self.at.load(Ordering::Relaxed);
        // SAFETY: with length 0 the address is that of no element, dangling or of the box. Another
        // length comes from `fill`, whose address and elements are visible by the `Acquire`. They
        // live as long as this, and only shared references are given out.
        unsafe { std::slice::from_raw_parts(at, len) }
    }
}

impl<T> Drop for OnceSlice<T> {
    fn drop(&mut self) {
        let all = std::ptr::slice_from_raw_parts_mut(*self.at.get_mut(), *self.len.get_mut());
        // SAFETY: the box of `fill`, or an empty slice, which is a box without memory. No reference
        // to it is left.
        drop(unsafe { Box::from_raw(all) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn a_slice_is_filled_once_by_many_threads() {
        let s = OnceSlice::<AtomicUsize>::new();
        let made = AtomicUsize::new(0);
        assert!(s.is_empty());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    s.fill(|| {
                        made.fetch_add(1, Ordering::Relaxed);
                        (0..100).map(AtomicUsize::new).collect()
                    });
                    assert_eq!(s.len(), 100);
                    s[7].fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert_eq!(s[7].load(Ordering::Relaxed), 11);
    }

    #[test]
    fn a_dropped_slice_drops_its_elements() {
        let element = std::sync::Arc::new(());
        let s = OnceSlice::new();
        s.fill(|| vec![element.clone(); 3].into());
        assert_eq!(std::sync::Arc::strong_count(&element), 4);
        drop(s);
        assert_eq!(std::sync::Arc::strong_count(&element), 1);
        drop(OnceSlice::<String>::new());
    }
}
