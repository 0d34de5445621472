//! Queues of bytes to be written, and vectors of the bytes of I/O lists.
//!
//! A vector refers to bytes of blocks that it counts; bytes on a heap are copied to a block. So a
//! queue may keep the contents of a vector independently of the terms.

use crate::abi::{Binary, IOVEC_SIZE, IoVec};
use crate::env::{ErlNifEnv, Temporary};
use purlin_term::bin::RcBin;
use purlin_term::{Alloc, NIL, Term};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};

/// Bits of `IoVec::flags`: the parts are in a block of their own; the vector itself was allocated
/// here.
const PARTS_OUTSIDE: c_int = 1;
const ALLOCATED: c_int = 2;

/// Bytes of a counted block.
struct Part {
    bin: *mut RcBin,
    at: *mut u8,
    n: usize,
}

impl Drop for Part {
    fn drop(&mut self) {
        // SAFETY: it owns the count.
        unsafe { RcBin::release(self.bin) };
    }
}

/// `ErlNifIOQueue`
pub struct IoQueue {
    parts: VecDeque<Part>,
    size: usize,
    /// The vectors whose address `enif_ioq_peek` returned.
    vector: Vec<libc::iovec>,
    /// Whether `vector` matches the queue. Two calls in a row return the same, and both may be
    /// used.
    shown: bool,
}

impl IoQueue {
    fn push(&mut self, p: Part) {
        if p.n > 0 {
            self.size += p.n;
            self.parts.push_back(p);
            self.shown = false;
        }
    }
}

/// Returns a part with the bytes of `t`, a binary.
///
/// # Safety
/// `t` is a term.
unsafe fn part_of(t: Term) -> Option<Part> {
    let bits = t.as_bits()?;
    let bytes = bits.to_bytes()?;
    if let Some(bin) = t.whole().block()
        && let Some(b) = bits.as_bytes()
    {
        // SAFETY: the term keeps the block.
        unsafe { RcBin::retain(bin) };
        return Some(Part {
            bin,
            at: b.as_ptr() as *mut u8,
            n: b.len(),
        });
    }
    let bin = RcBin::from_bytes(&bytes);
    Some(Part {
        bin,
        // SAFETY: the block was just made.
        at: unsafe { RcBin::bytes(bin) },
        n: bytes.len(),
    })
}

/// Returns the parts of the first `most` elements of a list of binaries, and the rest of the list.
/// None if an element is not a binary.
///
/// # Safety
/// `list` is a term.
unsafe fn parts(list: Term, most: usize) -> Option<(Vec<Part>, Term)> {
    let mut out = Vec::new();
    let mut rest = list;
    while let Some((h, t)) = rest.as_cons() {
        if out.len() >= most {
            break;
        }
        // SAFETY: an element of a term is a term.
        unsafe { out.push(part_of(h)?) };
        rest = t;
    }
    (rest.is_list()).then_some((out, rest))
}

/// Frees a vector with its counts.
///
/// # Safety
/// It was made here and is not used afterwards.
pub unsafe fn free_iovec(v: *mut IoVec) {
    // SAFETY: the vector was filled by `fill`: its arrays have `iovcnt` elements, and it owns the
    // counts.
    unsafe {
        let n = (*v).iovcnt.max(0) as usize;
        for i in 0..n {
            let b = *(*v).ref_bins.add(i);
            if !b.is_null() {
                RcBin::release(b);
            }
        }
        if (*v).flags & PARTS_OUTSIDE != 0 {
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                (*v).iov,
                n,
            )));
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                (*v).ref_bins,
                n,
            )));
        }
        (*v).iovcnt = 0;
        if (*v).flags & ALLOCATED != 0 {
            drop(Box::from_raw(v));
        }
    }
}

/// Fills a vector, in its own arrays if the parts fit.
///
/// # Safety
/// `v` may be written to, and owns nothing yet.
unsafe fn fill(v: *mut IoVec, parts: Vec<Part>, flags: c_int) {
    let n = parts.len();
    let mut iov: Vec<libc::iovec> = Vec::with_capacity(n);
    let mut bins = Vec::with_capacity(n);
    let mut size = 0;
    for p in parts {
        size += p.n;
        iov.push(libc::iovec {
            iov_base: p.at as *mut c_void,
            iov_len: p.n,
        });
        bins.push(p.bin);
        // The vector owns the count from now on.
        std::mem::forget(p);
    }
    // SAFETY: `v` may be written to; what is copied to its own arrays fits.
    unsafe {
        (*v).iovcnt = n as c_int;
        (*v).size = size;
        (*v).flags = flags;
        if n <= IOVEC_SIZE {
            (*v).iov = &raw mut (*v).small_iov as *mut libc::iovec;
            (*v).ref_bins = &raw mut (*v).small_ref_bin as *mut *mut RcBin;
            std::ptr::copy_nonoverlapping(iov.as_ptr(), (*v).iov, n);
            std::ptr::copy_nonoverlapping(bins.as_ptr(), (*v).ref_bins, n);
        } else {
            (*v).iov = Box::into_raw(iov.into_boxed_slice()) as *mut libc::iovec;
            (*v).ref_bins = Box::into_raw(bins.into_boxed_slice()) as *mut *mut RcBin;
            (*v).flags |= PARTS_OUTSIDE;
        }
    }
}

/// Makes the environment free the memory of a vector. The vector itself may be a local variable of
/// C code.
///
/// # Safety
/// `v` was filled by [`fill`], and nothing else frees its blocks.
unsafe fn keep_with(env: &mut ErlNifEnv, v: *mut IoVec) {
    // SAFETY: the vector was filled by `fill`, and what it owns passes to the environment.
    unsafe {
        let n = (*v).iovcnt.max(0) as usize;
        for i in 0..n {
            env.keep(Temporary::Block(*(*v).ref_bins.add(i)));
        }
        if (*v).flags & PARTS_OUTSIDE != 0 {
            let iov = Box::from_raw(std::ptr::slice_from_raw_parts_mut((*v).iov, n));
            let bins = Box::from_raw(std::ptr::slice_from_raw_parts_mut((*v).ref_bins, n));
            env.keep(Temporary::Parts(iov, bins));
        }
        if (*v).flags & ALLOCATED != 0 {
            env.keep(Temporary::IoVec(Box::from_raw(v)));
        }
    }
}

exported! {
    fn enif_ioq_create(options: c_int) -> *mut IoQueue {
        if options != 1 {
            return std::ptr::null_mut();
        }
        Box::into_raw(Box::new(IoQueue {
            parts: VecDeque::new(),
            size: 0,
            vector: Vec::new(),
            shown: false,
        }))
    }
    fn enif_ioq_destroy(q: *mut IoQueue) {
        if !q.is_null() {
            drop(Box::from_raw(q));
        }
    }
    /// The queue takes the binary over.
    fn enif_ioq_enq_binary(q: *mut IoQueue, bin: *mut Binary, skip: usize) -> c_int {
        let b = &mut *bin;
        if skip > b.size {
            return 0;
        }
        let block = match b.ref_bin.is_null() {
            true => RcBin::from_bytes(b.bytes()),
            false => b.ref_bin,
        };
        b.ref_bin = std::ptr::null_mut();
        (*q).push(Part {
            bin: block,
            at: RcBin::bytes(block).add(skip),
            n: b.size - skip,
        });
        1
    }
    fn enif_ioq_enqv(q: *mut IoQueue, v: *mut IoVec, skip: usize) -> c_int {
        if skip > (*v).size {
            return 0;
        }
        let mut skip = skip;
        for i in 0..(*v).iovcnt.max(0) as usize {
            let part = &*(*v).iov.add(i);
            let leave = skip.min(part.iov_len);
            skip -= leave;
            if leave == part.iov_len {
                continue;
            }
            let at = (part.iov_base as *mut u8).add(leave);
            let n = part.iov_len - leave;
            let bin = *(*v).ref_bins.add(i);
            let p = match bin.is_null() {
                true => {
                    let bin = RcBin::from_bytes(std::slice::from_raw_parts(at, n));
                    Part { bin, at: RcBin::bytes(bin), n }
                }
                false => {
                    RcBin::retain(bin);
                    Part { bin, at, n }
                }
            };
            (*q).push(p);
        }
        1
    }
    fn enif_ioq_size(q: *mut IoQueue) -> usize {
        (*q).size
    }
    fn enif_ioq_deq(q: *mut IoQueue, count: usize, left: *mut usize) -> c_int {
        let q = &mut *q;
        if count > q.size {
            return 0;
        }
        let mut count = count;
        q.size -= count;
        q.shown = false;
        while count > 0 {
            let Some(p) = q.parts.front_mut() else { break };
            let n = count.min(p.n);
            p.at = p.at.add(n);
            p.n -= n;
            count -= n;
            if p.n == 0 {
                q.parts.pop_front();
            }
        }
        if !left.is_null() {
            left.write(q.size);
        }
        1
    }
    /// Valid until the queue is changed.
    fn enif_ioq_peek(q: *mut IoQueue, n: *mut c_int) -> *mut libc::iovec {
        let q = &mut *q;
        if !q.shown {
            q.vector = q
                .parts
                .iter()
                .map(|p| libc::iovec { iov_base: p.at as *mut c_void, iov_len: p.n })
                .collect();
            q.shown = true;
        }
        n.write(q.vector.len() as c_int);
        match q.vector.is_empty() {
            true => std::ptr::null_mut(),
            false => q.vector.as_mut_ptr(),
        }
    }
    fn enif_ioq_peek_head(
        env: *mut ErlNifEnv, q: *mut IoQueue, size: *mut usize, to: *mut Term,
    ) -> c_int {
        let Some(p) = (*q).parts.front() else {
            return 0;
        };
        RcBin::retain(p.bin);
        to.write((*env).refc_bin_at(p.bin, p.at, p.n));
        if !size.is_null() {
            size.write(p.n);
        }
        1
    }
    /// Without an environment the caller must free the vector.
    fn enif_inspect_iovec(
        env: *mut ErlNifEnv, most: usize, list: Term, tail: *mut Term, to: *mut *mut IoVec,
    ) -> c_int {
        if !list.is_list() {
            return 0;
        }
        let Some((parts, rest)) = parts(list, most) else {
            return 0;
        };
        if !tail.is_null() {
            tail.write(if rest.is_nil() { NIL } else { rest });
        }
        // The caller may have provided the memory.
        let given = *to;
        let (v, flags) = match given.is_null() {
            true => (Box::into_raw(Box::<IoVec>::new_zeroed().assume_init()), ALLOCATED),
            false => (given, 0),
        };
        fill(v, parts, flags);
        to.write(v);
        if !env.is_null() {
            keep_with(&mut *env, v);
        }
        1
    }
    fn enif_free_iovec(v: *mut IoVec) {
        if !v.is_null() {
            free_iovec(v);
        }
    }
}
