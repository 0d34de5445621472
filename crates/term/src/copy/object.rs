//! Copying single objects: their words, the counts of what they own, and the regions that they
//! refer to.

use crate::alloc::Alloc;
use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::layout::{self, is_magic};
use crate::magic::MagicRef;
use crate::node::Node;
use crate::region::{is_counted_ptr, is_shared};
use crate::word::{Subtag, Term, header_subtag};
use std::sync::atomic::Ordering;

/// Whether a copy refers to `t` instead of copying it.
#[inline(always)]
pub(crate) fn stays<const SHARE: bool>(t: Term) -> bool {
    if SHARE { is_shared(t) } else { t.is_immed() }
}

/// Makes `to` hold the region of `t`, which is not copied.
#[inline(always)]
pub(crate) fn hold<A: Alloc + ?Sized>(t: Term, to: &mut A) {
    if !t.is_immed() && is_counted_ptr(t.ptr()) {
        to.off_heap().regions.hold_pointer(t.ptr());
    }
}

/// The original behind a sub-binary or match context, its bit offset and its bit length.
///
/// # Safety
/// `p` is the header of a sub-binary or of a match context.
#[inline]
pub(super) unsafe fn sub_parts(p: *const Term) -> (Term, usize, usize) {
    // SAFETY: by the contract; words as drawn in `layout`.
    unsafe {
        if header_subtag((*p).raw()) as u8 == Subtag::SubBin as u8 {
            let m = (*p.add(3)).raw();
            (
                *p.add(4),
                (*p.add(2)).raw() as usize * 8 + (m >> layout::SUB_BIN_START_SHIFT & 0xFF) as usize,
                (*p.add(1)).raw() as usize * 8 + (m & 0xFF) as usize,
            )
        } else {
            let (off, end) = ((*p.add(3)).raw() as usize, (*p.add(4)).raw() as usize);
            (*p.add(1), off, end - off)
        }
    }
}

/// The bytes of a binary.
///
/// # Safety
/// `orig` is a heap binary or a counted one.
#[inline]
pub(super) unsafe fn bits_base(orig: Term) -> *const u8 {
    let p = orig.ptr();
    // SAFETY: by the contract; words as drawn in `layout`.
    unsafe {
        match header_subtag((*p).raw()) {
            Subtag::HeapBin => p.add(2) as *const u8,
            _ => (*p.add(4)).raw() as *const u8,
        }
    }
}

/// Copies the one object at `p`, whose terms stay the old ones; counts what it owns.
///
/// # Safety
/// `p` points at a well-formed boxed object.
pub(crate) unsafe fn copy_object<A: Alloc + ?Sized>(p: *const Term, to: &mut A) -> Term {
    // SAFETY: by the contract; `alloc` returned as many words.
    unsafe {
        let n = layout::object_words(p);
        let q = to.alloc(n);
        std::ptr::copy_nonoverlapping(p, q, n);
        if retain_object(q, to.off_heap()) {
            to.off_heap_grew();
        }
        Term::boxed_at(q)
    }
}

/// Counts what the fresh copy of an object at `q` owns, and links it. Returns whether that is a
/// binary's bytes.
///
/// # Safety
/// `q` points at a bitwise copy, in a heap of `off_heap`, of a live object.
pub(crate) unsafe fn retain_object(q: *mut Term, off_heap: &mut crate::off_heap::OffHeap) -> bool {
    // SAFETY: by the contract: what the original owns is alive, and word 2 of the copy is free for
    // the link.
    unsafe {
        match header_subtag((*q).raw()) {
            Subtag::RefcBin => {
                RcBin::retain((*q.add(3)).raw() as *const RcBin);
                // A copy is a reader: only the original may append.
                (q.add(5) as *mut u64).write(0);
                off_heap.link(q);
                off_heap.bytes += (*q.add(1)).raw() as usize;
                return true;
            }
            Subtag::Fun if (*q.add(3)).raw() >> 16 & 1 == 0 => {
                (*((*q.add(1)).raw() as *const FunEntry)).retain();
                off_heap.link(q);
            }
            Subtag::Ref if is_magic(q) => {
                (*((*q.add(1)).raw() as *const MagicRef)).retain();
                off_heap.link(q);
            }
            Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef => {
                (*((*q.add(1)).raw() as *const Node))
                    .refc
                    .fetch_add(1, Ordering::Relaxed);
                off_heap.link(q);
            }
            _ => {}
        }
    }
    false
}
