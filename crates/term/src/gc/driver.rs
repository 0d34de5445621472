//! The collector's interface: a collection in any mode, and the collections of a process that
//! begins to wait.

use super::generational::{collect_once, trim};
use super::sizes::{MOST_YOUNG_WORDS, REST_WORDS, heap_size_for, heap_sizes, room_for, young_part};
use super::{steps, stressed};
use crate::blocks::MAP_ABOVE_WORDS;
use crate::counts;
use crate::heap::Heap;
use crate::pressure::is_crowded;
use crate::stress::{once_in, stress};
use crate::word::Term;

/// Number of collections so far in the whole runtime, and of words that they reclaimed.
pub fn totals() -> (usize, usize) {
    (
        counts::sum(|c| &c.collections),
        counts::sum(|c| &c.reclaimed_words),
    )
}

/// Collects. Afterwards at least `need_words` words are free, in addition to the heap's stack
/// reserve. Updates `roots` and the stack, on which words with a header's tag are return addresses.
/// Returns the number of words moved, as a measure of the time it took.
///
/// # Safety
/// No term of this heap outside `roots` and the stack is used afterwards; every word of the heap is
/// initialised.
pub unsafe fn collect(
    heap: &mut Heap,
    need_words: usize,
    roots: &mut [&mut [Term]],
    fullsweep: bool,
) -> usize {
    // SAFETY: by the contract: nothing outside the roots and the stack is used afterwards.
    unsafe {
        if stress() {
            return stressed::collect(heap, need_words, roots, fullsweep);
        }
        collect_once(heap, need_words, roots, fullsweep)
    }
}

/// Whether [`rest`] may pay for a process that begins to wait: the heap has come to hold several
/// times what it was left with, or it has far more room than it used.
#[inline]
pub fn rest_pays(heap: &Heap) -> bool {
    let block = heap.block_words();
    (block > REST_WORDS || stress()) && rest_pays_large(heap, block)
}

#[inline(never)]
fn rest_pays_large(heap: &Heap, block: usize) -> bool {
    let (all, stack) = (heap.all_words(), heap.stack_words());
    if stress() {
        return once_in(4, all + stack);
    }
    // A deep stack is walked too, and fills its part of the block.
    (all > REST_WORDS + 2 * (heap.rested + stack) || all + stack < block / 8)
        && !is_crowded()
        && block > heap_size_for(heap.min_heap_words)
        && all <= MAP_ABOVE_WORDS
}

/// Shrinks the heap of a process that begins to wait. Most of what it made for a request is garbage
/// when it waits for the next one: little is copied, and its block, still in the processor's
/// caches, serves the next process that runs here, instead of one block for each waiting process.
/// The next collection gives it at once as much room as it has used.
///
/// # Safety
/// As for [`collect`].
pub unsafe fn rest(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    let used = heap.all_words();
    // SAFETY: by the contract: nothing outside the roots and the stack is used afterwards.
    let moved = unsafe { collect(heap, 0, roots, true) };
    heap.rested = heap.all_words();
    let i = room_for(used);
    heap.room = if heap_sizes()[i] > heap.block_words() {
        i as u8
    } else {
        0
    };
    moved
}

/// Whether [`settle`] may pay for a process that begins to wait: the next collection would copy
/// much, and somebody would wait for it.
#[inline]
pub fn settle_pays(heap: &Heap) -> bool {
    let words = heap.used_words();
    (words > MOST_YOUNG_WORDS || stress()) && settle_pays_large(heap, words)
}

#[inline(never)]
fn settle_pays_large(heap: &Heap, words: usize) -> bool {
    match stress() {
        true => once_in(8, words),
        false => !heap.window,
    }
}

/// Promotes what a process has built as it begins to wait, so that no request has to wait for that.
/// Little is young afterwards.
///
/// # Safety
/// As for [`collect`].
pub unsafe fn settle(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    let mut moved = 0;
    heap.waited = true;
    // SAFETY: by the contract: nothing outside the roots and the stack is used afterwards.
    unsafe {
        if !heap.frags.is_empty() {
            moved += collect(heap, 0, roots, false);
        }
        // A heap without room collects its old generation in the first round, which makes some.
        for _ in 0..2 {
            let words = heap.used_words();
            let promotes = !heap.window && heap.frags.is_empty() && steps::has_room(heap, words);
            // With the mark at the top everything is mature, so the collection promotes all of it.
            if promotes {
                heap.high_water = heap.htop;
            }
            heap.waited = true;
            moved += collect(heap, 0, roots, false);
            if promotes || heap.used_words() <= MOST_YOUNG_WORDS {
                break;
            }
        }
    }
    heap.waited = true;
    moved
}

/// Begins a sweep of the old generation of a process that has waited for long, and leaves it a
/// young block of no more than it uses; the next collection gives it one in proportion to the old
/// generation. The sweep continues with [`super::step`].
///
/// # Safety
/// As for [`collect`].
pub unsafe fn sweep_idle(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    // The next minor collection, which `settle` makes, begins the sweep.
    steps::sweep_soon(heap);
    // SAFETY: by the contract: nothing outside the roots and the stack is used afterwards.
    let moved = unsafe { settle(heap, roots) + trim(heap, heap.stack_reserve, roots) };
    heap.room = room_for(young_part(heap.old_words(), true, false)) as u8;
    moved
}
