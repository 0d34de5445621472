//! `ErlDrvBinary`: a counted block like that of all binaries. The last word before the bytes is its
//! size for C code.
//!
//! # Orderings
//! The counts are those of [`RcBin`]. `driver_binary_dec_refc` releases what the caller did with
//! the bytes, and acquires what others released: at 0 the caller may free or reuse the block. A
//! count that is read as 1 with acquire belongs to the caller alone, so `driver_realloc_binary` may
//! grow the block in place. An increment needs no ordering: its caller already holds a count.

use super::abi::Block;
use purlin_term::bin::RcBin;
use std::ffi::{c_char, c_void};
use std::mem::offset_of;
use std::sync::atomic::Ordering;

/// Offset of C code's part of the head: the word before the bytes.
const AT: usize = offset_of!(RcBin, used);
const _: () = assert!(AT + size_of::<Block>() == size_of::<RcBin>());

/// Returns the address by which C code knows a block.
///
/// # Safety
/// `bin` is alive, and its bytes are its own.
pub unsafe fn known(bin: *mut RcBin) -> *mut Block {
    // SAFETY: `bin` points to a block, whose head contains the word at that offset.
    unsafe {
        debug_assert!(!RcBin::is_foreign(bin));
        (bin as *mut u8).add(AT) as *mut Block
    }
}

/// Returns the block that C code knows by that address.
///
/// # Safety
/// The address came from [`known`].
pub unsafe fn counted(block: *mut Block) -> *mut RcBin {
    // SAFETY: the address came from `known`, so the head of the block begins before it.
    unsafe { (block as *mut u8).sub(AT) as *mut RcBin }
}

/// Bytes of a counted block.
pub struct Part {
    bin: *mut RcBin,
    at: *mut u8,
    n: usize,
}

// SAFETY: the count is atomic, and only the holder of the only count writes the bytes.
unsafe impl Send for Part {}

impl Part {
    pub fn copy_of(bytes: &[u8]) -> Part {
        let bin = RcBin::from_bytes(bytes);
        // SAFETY: just made.
        let at = unsafe { RcBin::bytes(bin) };
        let n = bytes.len();
        Part { bin, at, n }
    }
    /// Makes a part of `n` bytes of a block from `at` on, with a new count. None if the block has
    /// fewer bytes.
    ///
    /// # Safety
    /// The block is alive.
    pub unsafe fn of(block: *mut Block, at: usize, n: usize) -> Option<Part> {
        // SAFETY: the block is alive, and the bytes lie within its capacity.
        unsafe {
            let bin = counted(block);
            if at.checked_add(n)? > (*bin).capacity {
                return None;
            }
            RcBin::retain(bin);
            let at = RcBin::bytes(bin).add(at);
            Some(Part { bin, at, n })
        }
    }
    /// Takes over a count. Bytes outside of a block are copied: C code only gets bytes of blocks.
    ///
    /// # Safety
    /// The caller held a count of the block, which keeps the bytes.
    pub unsafe fn taken(bin: *mut RcBin, at: *const u8, n: usize) -> Part {
        // SAFETY: the caller's count keeps the block and the bytes until it is released here.
        unsafe {
            if RcBin::is_foreign(bin) {
                let p = Part::copy_of(std::slice::from_raw_parts(at, n));
                RcBin::release(bin);
                return p;
            }
        }
        let at = at as *mut u8;
        Part { bin, at, n }
    }
    pub fn len(&self) -> usize {
        self.n
    }
    /// Drops `n` bytes at the front.
    pub fn skip(&mut self, n: usize) {
        debug_assert!(n <= self.n);
        // SAFETY: within the bytes.
        self.at = unsafe { self.at.add(n) };
        self.n -= n;
    }
    pub fn vector(&self) -> libc::iovec {
        libc::iovec {
            iov_base: self.at as *mut c_void,
            iov_len: self.n,
        }
    }
    pub fn block(&self) -> *mut Block {
        // SAFETY: it is alive; foreign ones were copied.
        unsafe { known(self.bin) }
    }
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the count keeps them.
        unsafe { std::slice::from_raw_parts(self.at, self.n) }
    }
    /// Returns the parts, with the count.
    pub fn into_parts(self) -> (*mut RcBin, *const u8, usize) {
        let p = std::mem::ManuallyDrop::new(self);
        (p.bin, p.at, p.n)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: it owns a count.
        unsafe { RcBin::release(self.bin) };
    }
}

exported! {
    fn driver_alloc_binary(size: usize) -> *mut Block {
        match RcBin::try_alloc(size) {
            Some(b) => known(b),
            None => std::ptr::null_mut(),
        }
    }
    fn driver_realloc_binary(block: *mut Block, size: usize) -> *mut Block {
        if block.is_null() {
            return driver_alloc_binary(size);
        }
        let old = counted(block);
        if (*old).refc.load(Ordering::Acquire) != 1 {
            // Others see it: they keep their bytes.
            let Some(new) = RcBin::try_alloc(size) else {
                return std::ptr::null_mut();
            };
            let n = size.min((*old).capacity);
            std::ptr::copy_nonoverlapping(RcBin::bytes(old), RcBin::bytes(new), n);
            RcBin::release(old);
            return known(new);
        }
        let Some(new) = RcBin::try_grow(old, size) else {
            return std::ptr::null_mut();
        };
        *(*new).used.get_mut() = size;
        known(new)
    }
    fn driver_free_binary(block: *mut Block) {
        if !block.is_null() {
            RcBin::release(counted(block));
        }
    }
    fn driver_binary_get_refc(block: *mut Block) -> isize {
        (*counted(block)).refc.load(Ordering::Acquire) as isize
    }
    fn driver_binary_inc_refc(block: *mut Block) -> isize {
        (*counted(block)).refc.fetch_add(1, Ordering::Relaxed) as isize + 1
    }
    fn driver_binary_dec_refc(block: *mut Block) -> isize {
        // A block without counts stays; C code frees it by `driver_free_binary`.
        (*counted(block)).refc.fetch_sub(1, Ordering::AcqRel) as isize - 1
    }
    fn driver_alloc(size: usize) -> *mut c_void {
        libc::malloc(size.max(1))
    }
    fn driver_realloc(p: *mut c_void, size: usize) -> *mut c_void {
        libc::realloc(p, size.max(1))
    }
    fn driver_free(p: *mut c_void) {
        libc::free(p);
    }
    /// Copies the bytes of a vector as far as they fit, and returns how many did not. See
    /// `ErlIOVec`.
    fn driver_vec_to_buf(v: *mut super::abi::IoVec, to: *mut c_char, room: usize) -> usize {
        let mut done = 0;
        for i in 0..(*v).vsize.max(0) as usize {
            let p = &*(*v).iov.add(i);
            let n = p.iov_len.min(room - done);
            std::ptr::copy_nonoverlapping(p.iov_base as *const u8, (to as *mut u8).add(done), n);
            done += n;
        }
        (*v).size - done
    }
}
