//! The collector: releasing what objects own. (Minor and major collections live beside this.)

use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::heap::OffHeap;
use crate::layout::NEXT;
use crate::magic::MagicRef;
use crate::node::Node;
use crate::word::{Subtag, Term, header_subtag};
use std::sync::atomic::Ordering;

/// Gives up what the off-heap object at `p` owns.
///
/// # Safety
/// `p` is on an off-heap list and is not used afterwards.
pub unsafe fn release_object(p: *mut Term) {
    let w = (*p.add(1)).raw();
    match header_subtag((*p).raw()) {
        Subtag::RefcBin => RcBin::release((*p.add(3)).raw() as *const RcBin),
        Subtag::Fun => {
            (*(w as *const FunEntry))
                .refc
                .fetch_sub(1, Ordering::Release);
        }
        Subtag::Ref => MagicRef::release(w as *const MagicRef),
        Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef => {
            (*(w as *const Node)).refc.fetch_sub(1, Ordering::Release);
        }
        s => unreachable!("{s:?} on an off-heap list"),
    }
}

/// Gives up what all objects of a list own, and empties it.
///
/// # Safety
/// The objects are intact and not used afterwards.
pub unsafe fn release_off_heap(list: &mut OffHeap) {
    let mut p = list.first;
    while !p.is_null() {
        let next = (*p.add(NEXT)).raw() as *mut Term;
        release_object(p);
        p = next;
    }
    *list = OffHeap::default();
}
