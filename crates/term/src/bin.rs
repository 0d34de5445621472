//! Reference-counted binaries: bytes outside every heap.
//!
//! # Orderings
//! [`RcBin::release`] decrements with `Release` and fences with `Acquire` after the last decrement:
//! the thread that frees the block has all reads and appends of earlier holders before it. The
//! append in place (`bits.rs`) loads a count of 1 with `Acquire` for the same reason.
//! [`RcBin::retain`] is relaxed, because its caller already has a count, and a term reaches another
//! thread only through a queue or lock that orders the block's bytes before it. `used` is relaxed:
//! only the holder of the only count writes it, and that holder changes in the same way.

use crate::binary_blocks;
use crate::counts;
use crate::fence;
use crate::payer::Payer;
use std::alloc::{Layout, handle_alloc_error};
use std::sync::atomic::{self, AtomicU64, AtomicUsize, Ordering};

/// Head of a counted block of bytes; the bytes follow it. Immutable once shared, except that the
/// only writer of a writable binary appends behind the bytes that others may see.
#[repr(C)]
pub struct RcBin {
    pub refc: AtomicU64,
    /// The budget that pays for the block.
    pub payer: Payer,
    /// Number of bytes that fit.
    pub capacity: usize,
    /// Number of bytes in use, for writable binaries.
    pub used: AtomicUsize,
}

/// [`RcBin::used`] of a block that stands for bytes elsewhere.
const FOREIGN: usize = usize::MAX;

/// The contents of such a block.
struct Foreign {
    end: unsafe fn(*mut u8),
    arg: *mut u8,
    /// Number of bytes that it keeps alive.
    keeps: usize,
}

/// Number of bytes in all counted binaries of the runtime (`memory(binary)`).
pub fn total_bytes() -> usize {
    counts::sum(|c| &c.binary_bytes)
}

/// Counts a new binary of `bytes` bytes.
fn count_made(bytes: usize) {
    counts::add(|c| &c.binaries, 1);
    counts::add(|c| &c.binary_bytes, bytes);
}

/// Counts a freed binary of `bytes` bytes.
fn count_freed(bytes: usize) {
    counts::add(|c| &c.binaries, usize::MAX);
    counts::subtract(|c| &c.binary_bytes, bytes);
}

impl RcBin {
    /// Layout of a block for `capacity` bytes; None if there can be none.
    fn try_layout(capacity: usize) -> Option<Layout> {
        let bytes = size_of::<RcBin>().checked_add(capacity)?;
        Layout::from_size_align(bytes, 8).ok()
    }
    fn layout(capacity: usize) -> Layout {
        // Capacities come from lengths of real data, far below isize::MAX.
        Self::try_layout(capacity).unwrap_or_else(|| handle_alloc_error(Layout::new::<RcBin>()))
    }
    /// Frees the block.
    ///
    /// # Safety
    /// `p` has no holder any more.
    unsafe fn free(p: *mut RcBin) {
        // SAFETY: by the contract; the block was allocated with this layout.
        unsafe {
            let l = Self::layout((*p).capacity);
            count_freed((*p).capacity);
            (*p).payer.refund((*p).billed_bytes());
            binary_blocks::deallocate(p as *mut u8, l);
        }
    }
    /// A block with room for `capacity` uninitialised bytes and a count of 1, which the caller
    /// owns.
    pub fn alloc(capacity: usize) -> *mut RcBin {
        Self::try_alloc(capacity)
            .unwrap_or_else(|| crate::sys::out_of_memory("binary_alloc", capacity, "binary"))
    }
    /// The same for a size that a program asks for: None if there is no memory for it.
    pub fn try_alloc(capacity: usize) -> Option<*mut RcBin> {
        let l = Self::try_layout(capacity)?;
        // SAFETY: the layout has a non-zero size; fields are written before the block is used.
        unsafe {
            let p = binary_blocks::allocate(l) as *mut RcBin;
            if p.is_null() {
                return None;
            }
            p.write(RcBin {
                refc: AtomicU64::new(1),
                payer: Payer::of_new(l.size()),
                capacity,
                used: AtomicUsize::new(capacity),
            });
            count_made(capacity);
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
    /// Makes a block without bytes of its own that stands for others: when the last holder releases
    /// it, it calls `end` with `arg`. `keeps` is the number of bytes that it reports to keep. It
    /// has a count of 1, which the caller owns.
    pub fn foreign(end: unsafe fn(*mut u8), arg: *mut u8, keeps: usize) -> *mut RcBin {
        let p = Self::alloc(size_of::<Foreign>());
        // SAFETY: the block has room for it, 8-aligned.
        unsafe {
            (Self::bytes(p) as *mut Foreign).write(Foreign { end, arg, keeps });
            *(*p).used.get_mut() = FOREIGN;
            (*p).payer.resize(0, keeps);
        }
        p
    }
    /// Whether it stands for bytes that lie elsewhere.
    ///
    /// # Safety
    /// `p` is alive.
    #[inline]
    pub unsafe fn is_foreign(p: *const RcBin) -> bool {
        // SAFETY: by the contract, the block is alive.
        unsafe { (*p).used.load(Ordering::Relaxed) == FOREIGN }
    }
    /// The function that ends a block for bytes elsewhere, and its argument; None for any other
    /// block.
    ///
    /// # Safety
    /// `p` is alive.
    pub unsafe fn foreign_parts(p: *const RcBin) -> Option<(unsafe fn(*mut u8), *mut u8)> {
        // SAFETY: by the contract. A foreign block holds a `Foreign`.
        unsafe {
            if !Self::is_foreign(p) {
                return None;
            }
            let f = &*(Self::bytes(p) as *const Foreign);
            Some((f.end, f.arg))
        }
    }
    /// Number of bytes that it keeps alive: its own, or those that it stands for.
    ///
    /// # Safety
    /// `p` is alive.
    pub unsafe fn kept_bytes(p: *const RcBin) -> usize {
        // SAFETY: by the contract. A foreign block holds a `Foreign`.
        unsafe {
            match Self::is_foreign(p) {
                true => (*(Self::bytes(p) as *const Foreign)).keeps,
                false => (*p).capacity,
            }
        }
    }
    /// Address of the bytes.
    ///
    /// # Safety
    /// `p` is alive.
    #[inline]
    pub unsafe fn bytes(p: *const RcBin) -> *mut u8 {
        // SAFETY: the bytes follow the head in the same block.
        unsafe { p.add(1) as *mut u8 }
    }
    /// Grows (or shrinks) a block, moving it. If there is no memory for it, returns None and leaves
    /// `p` as it was.
    ///
    /// # Safety
    /// The caller holds the only count and forgets `p`, if there is a result.
    pub unsafe fn try_grow(p: *mut RcBin, capacity: usize) -> Option<*mut RcBin> {
        // SAFETY: by the contract, nobody else uses the block, which was allocated with that
        // layout.
        unsafe {
            let old = (*p).capacity;
            if fence::on() {
                return Self::try_move(p, capacity);
            }
            let (there, size) = (Self::layout(old).size(), Self::try_layout(capacity)?.size());
            let q = binary_blocks::reallocate(p as *mut u8, there, size) as *mut RcBin;
            if q.is_null() {
                return None;
            }
            (*q).capacity = capacity;
            (*q).payer.resize(there, size);
            counts::add(|c| &c.binary_bytes, capacity.wrapping_sub(old));
            Some(q)
        }
    }
    /// As [`RcBin::try_grow`], but always to another address.
    ///
    /// # Safety
    /// As for [`RcBin::try_grow`].
    #[cold]
    unsafe fn try_move(p: *mut RcBin, capacity: usize) -> Option<*mut RcBin> {
        // SAFETY: by the contract, nobody else uses either block, and both have room for that many
        // bytes.
        unsafe {
            let old = (*p).capacity;
            let q = Self::try_alloc(capacity)?;
            std::ptr::copy_nonoverlapping(Self::bytes(p), Self::bytes(q), old.min(capacity));
            *(*q).used.get_mut() = *(*p).used.get_mut();
            Self::free(p);
            Some(q)
        }
    }
    /// Number of bytes that its payer is billed for: its own, and those that it stands for.
    pub fn billed_bytes(&self) -> usize {
        // SAFETY: it is alive.
        let elsewhere = unsafe {
            match Self::is_foreign(self) {
                true => Self::kept_bytes(self),
                false => 0,
            }
        };
        Self::layout(self.capacity).size() + elsewhere
    }
    /// Counts one more holder.
    ///
    /// # Safety
    /// `p` is alive.
    #[inline]
    pub unsafe fn retain(p: *const RcBin) {
        // SAFETY: by the contract, the block is alive.
        unsafe {
            (*p).refc.fetch_add(1, Ordering::Relaxed);
        }
    }
    /// Counts one holder less; frees the block with the last.
    ///
    /// # Safety
    /// The caller held a count, and does not touch `p` afterwards.
    #[inline]
    pub unsafe fn release(p: *const RcBin) {
        // SAFETY: by the contract. After the last count nobody else has the block.
        unsafe {
            if (*p).refc.fetch_sub(1, Ordering::Release) == 1 {
                atomic::fence(Ordering::Acquire);
                if Self::is_foreign(p) {
                    return Self::end_foreign(p);
                }
                Self::free(p as *mut RcBin);
            }
        }
    }
    /// Frees a block for bytes elsewhere, and calls its function.
    ///
    /// # Safety
    /// The last count of the block has just been released: nobody else has its address.
    #[cold]
    unsafe fn end_foreign(p: *const RcBin) {
        // SAFETY: by the contract. The block holds a `Foreign`, whose function is called once.
        unsafe {
            let f = (Self::bytes(p) as *const Foreign).read();
            Self::free(p as *mut RcBin);
            (f.end)(f.arg);
        }
    }
}
