//! A collection in stress mode ([`crate::stress`]): with others around it, from a made-up past,
//! leaving no room.

use super::generational::{collect_once, shrink_to_fit, trim};
use super::sizes::SMALL_SWEEPS;
use crate::heap::Heap;
use crate::stress::below;
use crate::verify::look;
use crate::word::Term;

/// As [`super::collect`].
///
/// # Safety
/// As for [`super::collect`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn collect(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    fullsweep: bool,
) -> usize {
    // SAFETY: by the contract, which holds again after each collection, since the roots are
    // updated.
    unsafe {
        look(heap, roots, "before a collection", true);
        // A requested full sweep stays one if others come before it.
        let fullsweep = fullsweep || heap.need_fullsweep;
        let mut moved = 0;
        // Unrequested collections come before the requested one: compactions, full sweeps, minor
        // ones.
        while below(6) == 0 {
            disturb(heap);
            moved += match below(often(heap, 4)) {
                0 => shrink_to_fit(heap, roots),
                n => collect_once(heap, 0, roots, n == 1),
            };
            if below(2) == 0 {
                moved += trim(heap, heap.stack_reserve, roots);
            }
            look(heap, roots, "between two collections", false);
        }
        disturb(heap);
        // A requested minor collection may be a full one: callers rely on neither.
        let full = fullsweep || below(often(heap, 4)) == 0;
        moved += collect_once(heap, need, roots, full);
        if let Some(spare) = spare(heap) {
            moved += trim(heap, need + heap.stack_reserve + spare, roots);
        }
        look(heap, roots, "after a collection", false);
        // As if allocations since then asked for another one.
        heap.gc_wanted = below(8) == 0;
        moved
    }
}

/// A full sweep, otherwise one of `n` collections, ends a sweep in steps: a generation that is
/// swept in steps has fewer of them.
fn often(heap: &Heap, n: usize) -> usize {
    match &heap.runs {
        Some(r) if r.sweeps() || r.free_words() > 0 => n * 16,
        _ => n,
    }
}

/// Words to spare after a collection; None: as it comes. The next one may look at all of the heap,
/// not only the young part.
fn spare(heap: &Heap) -> Option<usize> {
    let words = heap.all_words() + heap.stack_words();
    match below(8) {
        0 => None,
        1 => Some(words / 16 + below(256)),
        2 | 3 => Some(words / 16 + below(16)),
        _ if words > LARGE_WORDS => Some(words / 16),
        _ => Some(0),
    }
}

/// Heaps of more words are left some room, in proportion to the cost of a collection.
const LARGE_WORDS: usize = 1024;

/// Makes up a past for the heap: one in which it grew, shrank, was swept often, or all of it lived.
fn disturb(heap: &mut Heap) {
    heap.all_survives |= below(3) == 0;
    heap.small_sweeps = [0, SMALL_SWEEPS][below(2)];
    heap.grow_next = below(8) == 0;
    heap.shrink_next = below(2) == 0;
    heap.room = [0, below(12) as u8][usize::from(below(8) == 0)];
}
