//! The invariants of a heap before and after a collection, and the end of the runtime if one is
//! broken.

use crate::heap::Heap;
use crate::stress;
use crate::word::Term;

/// Ends the runtime: the heap is damaged, and any further use would do more damage.
#[cold]
#[inline(never)]
pub(crate) fn fatal(what: &str) -> ! {
    crate::say!("purlin: damaged heap: {what}{}", stress::seed_note());
    std::process::abort();
}

/// Words from `a` to `b`, which lies behind it in the same block.
#[inline]
pub(super) fn words_between(a: *mut Term, b: *mut Term) -> usize {
    (b as usize - a as usize) >> 3
}

/// In builds with debug assertions: checks that the pointers of a heap are in order, and that old
/// pointers have a block.
#[inline]
pub(super) fn check_heap(heap: &Heap) {
    debug_assert!(
        heap.heap <= heap.high_water && heap.high_water <= heap.htop,
        "the high-water mark is in use"
    );
    debug_assert!(
        heap.htop <= heap.stop && heap.stop <= heap.hend,
        "terms end where the stack begins"
    );
    debug_assert!(
        heap.old_heap <= heap.old_htop && heap.old_htop <= heap.old_hend,
        "the old block has room for what is old"
    );
    debug_assert!(
        heap.old_heap.is_null() == heap.old_hend.is_null(),
        "an old block has a start and an end"
    );
}

/// In builds with debug assertions: [`check_heap`] after a collection that had to leave `need` free
/// words.
#[inline]
pub(super) fn check_collected(heap: &Heap, need: usize) {
    check_heap(heap);
    debug_assert!(
        heap.frags.is_empty() && heap.frag_words == 0,
        "what was in fragments was moved"
    );
    debug_assert!(
        heap.high_water == if heap.window { heap.heap } else { heap.htop },
        "all that is left survived"
    );
    debug_assert!(
        words_between(heap.htop, heap.stop) >= need,
        "a collection leaves what was asked for"
    );
}
