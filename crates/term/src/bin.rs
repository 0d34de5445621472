//! Reference-counted binaries: bytes outside every heap.

use crate::fence::{self, Kind};
use std::alloc::{Layout, handle_alloc_error, realloc};
use std::sync::atomic::{self, AtomicU64, AtomicUsize, Ordering};

/// Head of a counted block of bytes; the bytes follow it. Immutable once shared, except that the single writer of a
/// writable binary appends behind the bytes that others may see.
#[repr(C)]
pub struct RcBin {
    pub refc: AtomicU64,
    /// Bytes there is room for.
    pub capacity: usize,
    /// Bytes in use, for writable binaries.
    pub used: AtomicUsize,
}

static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// Bytes in all counted binaries of the runtime (`memory(binary)`).
pub fn total_bytes() -> usize {
    TOTAL.load(Ordering::Relaxed)
}

impl RcBin {
    fn layout(capacity: usize) -> Layout {
        // Capacities come from lengths of real data, far below isize::MAX.
        Layout::from_size_align(size_of::<RcBin>() + capacity, 8)
            .unwrap_or_else(|_| handle_alloc_error(Layout::new::<RcBin>()))
    }
    /// A block with room for `capacity` uninitialised bytes and a count of 1, which the caller owns.
    pub fn alloc(capacity: usize) -> *mut RcBin {
        Self::try_alloc(capacity)
            .unwrap_or_else(|| crate::sys::out_of_memory("binary_alloc", capacity, "binary"))
    }
    /// The same for a size that a program asks for: None if there is no memory for it.
    pub fn try_alloc(capacity: usize) -> Option<*mut RcBin> {
        let l = Layout::from_size_align(size_of::<RcBin>().checked_add(capacity)?, 8).ok()?;
        // SAFETY: the layout has a non-zero size; fields are written before the block is used.
        unsafe {
            let p = fence::allocate(Kind::Binary, l) as *mut RcBin;
            if p.is_null() {
                return None;
            }
            p.write(RcBin {
                refc: AtomicU64::new(1),
                capacity,
                used: AtomicUsize::new(capacity),
            });
            TOTAL.fetch_add(capacity, Ordering::Relaxed);
            Some(p)
        }
    }
    /// A block that holds a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> *mut RcBin {
        let p = Self::alloc(bytes.len());
        // SAFETY: the new block has room for them.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), Self::bytes(p), bytes.len()) };
        p
    }
    /// Where the bytes start.
    ///
    /// # Safety
    /// `p` is alive.
    #[inline]
    pub unsafe fn bytes(p: *const RcBin) -> *mut u8 {
        p.add(1) as *mut u8
    }
    /// Makes a block larger (or smaller), moving it.
    ///
    /// # Safety
    /// The caller holds the only count and forgets `p`.
    pub unsafe fn grow(p: *mut RcBin, capacity: usize) -> *mut RcBin {
        Self::try_grow(p, capacity)
            .unwrap_or_else(|| crate::sys::out_of_memory("binary_realloc", capacity, "binary"))
    }
    /// The same for a size that a program asks for: None, and `p` as it was, if there is no memory for it.
    ///
    /// # Safety
    /// As for [`RcBin::grow`].
    pub unsafe fn try_grow(p: *mut RcBin, capacity: usize) -> Option<*mut RcBin> {
        let old = (*p).capacity;
        if fence::on() {
            return Self::try_move(p, capacity);
        }
        let size = Layout::from_size_align(size_of::<RcBin>().checked_add(capacity)?, 8)
            .ok()?
            .size();
        let q = realloc(p as *mut u8, Self::layout(old), size) as *mut RcBin;
        if q.is_null() {
            return None;
        }
        (*q).capacity = capacity;
        TOTAL.fetch_add(capacity, Ordering::Relaxed);
        TOTAL.fetch_sub(old, Ordering::Relaxed);
        Some(q)
    }
    /// The same, where it must not lie where it was.
    #[cold]
    unsafe fn try_move(p: *mut RcBin, capacity: usize) -> Option<*mut RcBin> {
        let old = (*p).capacity;
        let q = Self::try_alloc(capacity)?;
        std::ptr::copy_nonoverlapping(Self::bytes(p), Self::bytes(q), old.min(capacity));
        *(*q).used.get_mut() = *(*p).used.get_mut();
        TOTAL.fetch_sub(old, Ordering::Relaxed);
        fence::deallocate(p as *mut u8, Self::layout(old));
        Some(q)
    }
    /// Counts one more holder.
    ///
    /// # Safety
    /// `p` is alive.
    #[inline]
    pub unsafe fn retain(p: *const RcBin) {
        (*p).refc.fetch_add(1, Ordering::Relaxed);
    }
    /// One holder less; frees with the last.
    ///
    /// # Safety
    /// The caller held a count, and does not touch `p` afterwards.
    #[inline]
    pub unsafe fn release(p: *const RcBin) {
        if (*p).refc.fetch_sub(1, Ordering::Release) == 1 {
            atomic::fence(Ordering::Acquire);
            TOTAL.fetch_sub((*p).capacity, Ordering::Relaxed);
            fence::deallocate(p as *mut u8, Self::layout((*p).capacity));
        }
    }
}
