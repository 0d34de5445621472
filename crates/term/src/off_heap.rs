//! The lists of objects that own something outside the heap: binaries, funs, references, external
//! terms.
//!
//! # Orderings
//! The count of a node is subtracted with release: see `node.rs`. The count of a block is only read
//! for figures here; it is loaded with acquire, as everywhere.

use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::layout::NEXT;
use crate::magic::MagicRef;
use crate::node::Node;
use crate::region_set::RegionSet;
use crate::word::{Subtag, Term, header_subtag};
use std::sync::atomic::Ordering;

/// A list, linked through word [`NEXT`] of each object, of the objects on one heap (or fragment, or
/// region) that own a count of something outside it.
pub struct OffHeap {
    /// The first object, or null.
    pub first: *mut Term,
    /// Bytes of the refc binaries referred to, to compare with the virtual binary heap.
    pub bytes: usize,
    /// Counted regions that terms of this heap point into.
    pub regions: RegionSet,
}

impl Default for OffHeap {
    #[inline]
    fn default() -> Self {
        OffHeap {
            first: std::ptr::null_mut(),
            bytes: 0,
            regions: RegionSet::default(),
        }
    }
}

impl OffHeap {
    /// Links the object at `p` in front.
    ///
    /// # Safety
    /// `p` has room for the link in word [`NEXT`] and stays until the list is swept or moved.
    #[inline]
    pub unsafe fn link(&mut self, p: *mut Term) {
        // SAFETY: by the contract, `p` has room for the link.
        unsafe {
            (p.add(NEXT) as *mut u64).write(self.first as u64);
            self.first = p;
        }
    }
    /// Moves all objects of `other` to this list.
    ///
    /// # Safety
    /// The objects of `other` now live as long as this list's.
    pub unsafe fn append(&mut self, other: &mut OffHeap) {
        self.regions.append(&mut other.regions);
        if other.first.is_null() {
            self.bytes += std::mem::take(&mut other.bytes);
            return;
        }
        let mut last = other.first;
        // SAFETY: objects on a list are whole, and their links lead to the next one or are null.
        unsafe {
            loop {
                let next = (*last.add(NEXT)).raw() as *mut Term;
                if next.is_null() {
                    break;
                }
                last = next;
            }
            (last.add(NEXT) as *mut u64).write(self.first as u64);
        }
        self.first = other.first;
        self.bytes += other.bytes;
        *other = OffHeap::default();
    }
}

/// Empties `list`: moved objects go on the list of the generation that they are in now, the others
/// are released.
///
/// # Safety
/// The list is that of a heap from which everything live was just moved: its objects have a
/// forwarding mark or are dead, and their other words are still there. `promoted` is the range of
/// addresses promoted to.
pub(crate) unsafe fn sweep(
    list: &mut OffHeap,
    young: &mut OffHeap,
    old: &mut OffHeap,
    promoted: std::ops::Range<usize>,
) {
    let mut p = std::mem::take(list).first;
    while !p.is_null() {
        // The link is intact: a forwarding mark replaces only the header.
        // SAFETY: by the contract: links are intact, and the targets of forwarding marks are whole.
        unsafe {
            let next = (*p.add(NEXT)).raw() as *mut Term;
            let fwd = *p;
            if fwd.is_boxed() {
                let q = fwd.ptr();
                let to = if promoted.contains(&(q as usize)) {
                    &mut *old
                } else {
                    &mut *young
                };
                to.link(q);
                if header_subtag((*q).raw()) as u8 == Subtag::RefcBin as u8 {
                    to.bytes += (*q.add(1)).raw() as usize;
                }
            } else {
                release_object(p);
            }
            p = next;
        }
    }
}

/// Releases what the off-heap object at `p` owns.
///
/// # Safety
/// `p` is on an off-heap list and is not used afterwards.
pub unsafe fn release_object(p: *mut Term) {
    // SAFETY: by the contract: objects on a list own one count of what they refer to.
    unsafe {
        let w = (*p.add(1)).raw();
        match header_subtag((*p).raw()) {
            Subtag::RefcBin => RcBin::release((*p.add(3)).raw() as *const RcBin),
            Subtag::Fun => {
                (*(w as *const FunEntry)).release();
            }
            Subtag::Ref => MagicRef::release(w as *const MagicRef),
            Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef => {
                (*(w as *const Node)).refc.fetch_sub(1, Ordering::Release);
            }
            s => unreachable!("{s:?} on an off-heap list"),
        }
    }
}

/// Calls `f` with the node of each external term on a list.
///
/// # Safety
/// The list is that of a heap which nobody changes meanwhile.
pub unsafe fn each_node(list: &OffHeap, mut f: impl FnMut(&Node)) {
    let mut p = list.first;
    // SAFETY: by the contract; word 1 of an external term is its node, which it counts.
    unsafe {
        while !p.is_null() {
            if let Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef = header_subtag((*p).raw()) {
                f(&*((*p.add(1)).raw() as *const Node));
            }
            p = (*p.add(NEXT)).raw() as *mut Term;
        }
    }
}

/// Calls `f` with the value of each magic reference on a list.
///
/// # Safety
/// As for [`each_node`].
pub unsafe fn each_magic(list: &OffHeap, mut f: impl FnMut(&MagicRef)) {
    let mut p = list.first;
    // SAFETY: by the contract; word 1 of a magic reference is its value, which it counts.
    unsafe {
        while !p.is_null() {
            if header_subtag((*p).raw()) == Subtag::Ref {
                f(&*((*p.add(1)).raw() as *const MagicRef));
            }
            p = (*p.add(NEXT)).raw() as *mut Term;
        }
    }
}

/// Bytes of refc binaries on a list.
pub fn off_heap_bytes(list: &OffHeap) -> usize {
    let mut n = 0;
    let mut p = list.first;
    while !p.is_null() {
        // SAFETY: objects on the list are well formed; a refc binary's word 1 is its size.
        unsafe {
            if matches!(header_subtag((*p).raw()), Subtag::RefcBin) {
                n += (*p.add(1)).raw() as usize;
            }
            p = (*p.add(NEXT)).raw() as *mut Term;
        }
    }
    n
}

/// Calls `f` with the block of each of the first `most` refc binaries on a list and the number of
/// its holders. Returns the bytes of the others, which [`OffHeap::bytes`] has.
pub fn each_binary(list: &OffHeap, most: usize, mut f: impl FnMut(&RcBin, usize)) -> usize {
    let mut seen = 0;
    let mut p = list.first;
    for _ in 0..most {
        if p.is_null() {
            return 0;
        }
        // SAFETY: objects on the list are well formed; word 1 of a refc binary is its size, word 3
        // the block, of which the list owns a count.
        unsafe {
            if matches!(header_subtag((*p).raw()), Subtag::RefcBin) {
                seen += (*p.add(1)).raw() as usize;
                let block = &*((*p.add(3)).raw() as *const RcBin);
                f(block, block.refc.load(Ordering::Acquire) as usize);
            }
            p = (*p.add(NEXT)).raw() as *mut Term;
        }
    }
    list.bytes.saturating_sub(seen)
}

/// Releases what all objects of a list own, and empties it.
///
/// # Safety
/// The objects are intact and not used afterwards.
pub unsafe fn release_off_heap(list: &mut OffHeap) {
    // SAFETY: by the contract; the link is read before the object is released.
    unsafe {
        list.regions.release_all();
        let mut p = list.first;
        while !p.is_null() {
            let next = (*p.add(NEXT)).raw() as *mut Term;
            release_object(p);
            p = next;
        }
        *list = OffHeap::default();
    }
}
