//! Minor collections and full sweeps: the choice between them, and the size of the heap afterwards.
//! The copy itself is in [`super::copy`], the collection of a large old generation in
//! [`super::compact`], the numbers in [`super::sizes`].
//!
//! # The choice
//! * **A full sweep** if it is asked for, if the heap is small, after many minor collections, if
//!   the old block has no room for what would be promoted, or if its binaries have outgrown their
//!   virtual heap. Everything goes to one young block ([`full_sweep`]). A large old generation is
//!   collected in place ([`sweep_in_place`]); a young block that turns out to be large becomes the
//!   old one as it is ([`settle_old`]).
//! * **A minor collection** otherwise: mature objects are promoted, the rest is copied ([`minor`]).
//!   A step of a sweep may follow it.
//!
//! # The size
//! The target of a copy has room for the case that everything lives. What lives is known after the
//! copy, so a second copy follows if the first size was wrong. Two flags keep that rare: a block
//! that was left nearly full is larger the next time (`grow_next`), and one that was left nearly
//! empty shrinks only if that happens twice in a row (`shrink_next`).

use super::compact::{self, Room};
use super::copy::{Kind, move_stack, pass};
use super::dedup;
use super::invariants::{check_collected, check_heap, words_between};
use super::regions::{SeenRegion, worth_leaving};
use super::sizes::*;
use super::steps;
use crate::blocks::may_cut_block;
use crate::blocks::{MAP_ABOVE_WORDS, alloc_block, cut_block, decommit_between, free_block};
use crate::counts;
use crate::fence;
use crate::heap::Heap;
use crate::off_heap::release_off_heap;
use crate::pressure::{at_most_copied, at_most_slack, is_crowded, is_short};
use crate::sent_terms;
use crate::stress::{self, poison, stress};
use crate::verify::look;
use crate::word::Term;
use std::sync::atomic::Ordering;

/// Makes one collection, minor or full.
///
/// # Safety
/// As for [`collect`].
pub(crate) unsafe fn collect_once(
    heap: &mut Heap,
    need_words: usize,
    roots: &mut [&mut [Term]],
    fullsweep: bool,
) -> usize {
    check_heap(heap);
    // A process that has waited since its last collection answers others: its collections are to be
    // short.
    heap.serves = std::mem::take(&mut heap.waited) || stress::roll(2);
    if heap.serves {
        heap.shrunk = 0;
    }
    // Words that natives may not use count as used in all that follows.
    let need = need_words + heap.stack_reserve;
    let before = heap.all_words();
    // From here on, objects of fragments are on the heap's list, so that one sweep of the lists
    // finds all of them.
    // SAFETY: the heap owns its fragments.
    unsafe { absorb_fragment_lists(heap) };
    let mature = words_between(heap.heap, heap.high_water);
    let mut old_free = words_between(heap.old_htop, heap.old_hend);
    // Growing the old block in place may save the full sweep.
    // See [`promote_much`].
    let promoted = match heap.frag_words > at_most_slack(usize::MAX) {
        true => heap.used_words() + heap.frag_words,
        false => mature,
    };
    let short = old_free < promoted && !fullsweep && !heap.need_fullsweep;
    // SAFETY: by the contract of [`collect`].
    unsafe {
        if short && steps::make_room(heap, promoted, heap.serves, 0) {
            old_free = words_between(heap.old_htop, heap.old_hend);
        }
    }
    // Sweeping a small heap as a whole costs less than a second block for a generation.
    let small = heap.old_heap.is_null()
        && heap.block_words() <= SMALL_WORDS
        && heap.small_sweeps < SMALL_SWEEPS;
    if small && heap.block_words() >= BUSY_WORDS {
        heap.small_sweeps = heap.small_sweeps.saturating_add(1);
    }
    let full = fullsweep
        || small
        || heap.need_fullsweep
        || heap.minor_gcs >= heap.fullsweep_after
        || (!heap.old_heap.is_null()
            && (old_free < promoted || heap.old_off_heap.bytes > old_vheap(heap)));
    // A caller that asks for a full sweep expects memory to be given back.
    heap.shrink_next |= fullsweep;
    let fresh = words_between(heap.high_water, heap.htop);
    // See `Heap::all_survives`. Objects in fragments stay young, and nothing old may refer to them.
    let promote = !full
        && heap.all_survives
        && !heap.window
        && heap.frags.is_empty()
        && !heap.old_heap.is_null()
        && old_free >= mature + fresh;
    let mature = if promote {
        // The mark moves to the top: fresh objects count as mature, and are promoted in the same
        // copy.
        heap.high_water = heap.htop;
        mature + fresh
    } else {
        mature
    };
    // SAFETY: by the contract. `is_large` says that there is an old generation; a minor collection
    // has room for what is mature.
    let moved = unsafe {
        if full && is_large(heap) {
            sweep_in_place(heap, need, roots)
        } else if full {
            full_sweep(heap, need, roots)
        } else {
            let moved = minor(heap, need, roots, mature);
            moved + steps::after_minor(heap, roots, heap.promoted)
        }
    };
    // SAFETY: by the contract; nothing ran since.
    let moved = moved + unsafe { promote_much(heap, need, roots) };
    counts::add(|c| &c.collections, 1);
    // Terms copied out of regions may have enlarged it.
    let reclaimed = before.saturating_sub(heap.all_words());
    counts::add(|c| &c.reclaimed_words, reclaimed);
    check_collected(heap, need);
    moved
}

/// Promotes all of a young generation that is large for what is left up to a limit of memory. Terms
/// that a native has made were in fragments before. Otherwise the next collection would copy it
/// beside what was made until then.
///
/// # Safety
/// As for [`collect`]; a collection has just been made.
unsafe fn promote_much(heap: &mut Heap, need: usize, roots: &mut [&mut [Term]]) -> usize {
    let young = heap.used_words();
    let room = words_between(heap.old_htop, heap.old_hend);
    let fits = heap.old_heap.is_null() || room >= young;
    if young <= at_most_slack(usize::MAX) || heap.window || !fits {
        return 0;
    }
    debug_assert!(heap.high_water == heap.htop && heap.frags.is_empty());
    // SAFETY: by the contract; everything young has survived, and the old generation has room.
    unsafe { minor(heap, need, roots, young) }
}

/// Bytes of binaries in the old generation above which it is swept at once. During a sweep in steps
/// the limit is higher.
fn old_vheap(heap: &Heap) -> usize {
    heap.old_vheap_bytes << u32::from(heap.is_swept_in_steps())
}

/// The size that `rest` remembered, or one on the way there; 0 if there is none, or if memory is
/// short.
fn take_room(heap: &mut Heap) -> usize {
    if heap.room == 0 {
        return 0;
    }
    let size = heap_sizes()[heap.room as usize];
    // One step first: the room is kept for the collection after this one.
    if size > STEP_ABOVE && heap.block_words() < STEP && !is_crowded() {
        return heap_size_for(STEP);
    }
    heap.room = 0;
    if is_crowded() { 0 } else { size }
}

/// Words of the largest generation that is copied to be collected.
#[inline]
fn in_place_words() -> usize {
    at_most_copied(IN_PLACE_WORDS.load(Ordering::Relaxed))
}

/// Whether to collect the old generation in place.
fn is_large(heap: &Heap) -> bool {
    let words = words_between(heap.old_heap, heap.old_htop);
    let large = words > in_place_words() && words <= compact::MOST_WORDS;
    large || (words > 0 && stress::roll(2))
}

/// A full sweep that copies the young generation and collects the old one in place.
///
/// # Safety
/// As for [`collect`]; there is an old generation, and no message is looked at before it is
/// received.
unsafe fn sweep_in_place(heap: &mut Heap, need: usize, roots: &mut [&mut [Term]]) -> usize {
    let mut seen = Vec::new();
    // SAFETY: by the contract. Each step relies on the one before, and nothing runs in between.
    unsafe {
        let mut moved = copy_young(heap, need, roots, Kind::Young, &mut seen);
        // The young block was just copied, as `compact` relies on.
        moved += compact::collect(heap, roots, &mut seen, Room::Grow);
        moved += leave_regions(heap, need, roots, &seen);
        after_full(heap);
        finish(heap);
        moved
    }
}

/// After a full sweep whose result is large: makes the block the old generation, with a new young
/// block in front. The next collection would copy it there anyway.
///
/// # Safety
/// As for [`collect`]; a full sweep has just been made: everything live is in the young block, and
/// there is no old one.
unsafe fn settle_old(heap: &mut Heap, young_words: usize) {
    debug_assert!(heap.old_heap.is_null() && heap.high_water == heap.htop && !heap.window);
    heap.collections = heap.collections.wrapping_add(1);
    let (stack, used) = (heap.stack_words(), heap.used_words());
    let block = alloc_block(young_words);
    // SAFETY: the new block has room for the stack. Everything live lies below `htop`, so the rest
    // of the old block is free.
    unsafe {
        let hend = block.add(young_words);
        let stop = hend.sub(stack);
        move_stack(heap, stop);
        // Terms stay where they are, so no pointer changes. The stack moves: it lay at the end of
        // this block, which is now room.
        (heap.old_heap, heap.old_htop, heap.old_hend) = (heap.heap, heap.htop, heap.hend);
        (heap.heap, heap.htop, heap.high_water) = (block, block, block);
        (heap.stop, heap.hend) = (stop, hend);
        let mut young = std::mem::take(&mut heap.off_heap);
        // Everything that owns something lies in the old generation now.
        heap.old_off_heap.append(&mut young);
        let (words, keep) = (
            heap.old_block_words(),
            old_size_for(used + spare_words(used, is_crowded()), is_crowded()),
        );
        if may_cut_block(words, keep) {
            cut_block(heap.old_heap, words, keep);
            heap.old_hend = heap.old_heap.add(keep);
        }
        if !stress() {
            decommit_between(heap.old_htop, heap.old_hend);
        }
    }
}

/// Words of the young block in front of an old generation, given a stack and a need.
fn young_words_for(heap: &Heap, old_words: usize, need: usize) -> usize {
    let least = heap.stack_words() + need;
    let want = least + at_most_slack(2 * least);
    let part = at_most_copied(young_part(old_words, heap.serves, is_crowded()));
    let size = heap_size_for(want.max(part).max(heap.min_heap_words));
    at_most_with_room(heap, size, least)
}

/// The smaller of `size` and the size of a block with `used` words in use and as much room as a
/// limit of memory lets the process fill before it is weighed again.
#[inline]
fn at_most_with_room(heap: &Heap, size: usize, used: usize) -> usize {
    let most = at_most_slack(usize::MAX).saturating_add(used);
    size.min(most.max(heap.min_heap_words))
}

/// Makes a full sweep into a block of exactly the words in use, plus the stack reserve.
///
/// # Safety
/// As for [`collect`].
pub unsafe fn shrink_to_fit(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    // SAFETY: by the contract. Each step relies on the one before, and nothing runs in between.
    unsafe {
        if stress() {
            look(heap, roots, "before it is compacted", true);
        }
        absorb_fragment_lists(heap);
        let mut seen = Vec::new();
        let mut moved;
        if is_large(heap) {
            let bound =
                heap.used_words() + heap.frag_words + heap.stack_words() + heap.stack_reserve;
            moved = pass(heap, bound, roots, Kind::Young, &[], &mut seen);
            moved += compact::collect(heap, roots, &mut seen, Room::Exact);
        } else {
            let bound = heap.all_words() + heap.stack_words() + heap.stack_reserve;
            moved = pass(heap, bound, roots, Kind::Full, &[], &mut seen);
        }
        moved += leave_regions(heap, heap.stack_reserve, roots, &seen);
        after_full(heap);
        let mut exact = heap.used_words() + heap.stack_words() + heap.stack_reserve;
        // A process that waits for long forgets what it sent: everything must fit in its cell.
        if let Some(s) = &mut heap.sent
            && !s.keep(|_| false)
        {
            heap.sent = None;
        }
        // Joined duplicates are dead words until the copy below leaves them behind.
        exact -= dedup::dedup(heap, roots);
        if exact < heap.block_words() {
            moved += pass(heap, exact, roots, Kind::Resize, &[], &mut Vec::new());
        }
        heap.grow_next = false;
        heap.shrink_next = false;
        heap.small_sweeps = 0;
        finish(heap);
        check_collected(heap, heap.stack_reserve);
        if stress() {
            look(heap, roots, "compacted", false);
        }
        moved
    }
}

/// Leaves the young block, which was just copied, `free` free words. In stress mode it may move
/// even if it has them.
///
/// # Safety
/// As for [`collect`].
pub(crate) unsafe fn trim(heap: &mut Heap, free: usize, roots: &mut [&mut [Term]]) -> usize {
    let size = heap.used_words() + heap.stack_words() + free;
    if size == heap.block_words() && (!stress() || stress::below(4) != 0) {
        return 0;
    }
    // SAFETY: by the contract; the new size has room for everything in use.
    unsafe { pass(heap, size, roots, Kind::Resize, &[], &mut Vec::new()) }
}

/// Frees the heap and everything that its objects own, at the end of a process. An inline block
/// stays with its cell.
///
/// # Safety
/// No term of the heap is used afterwards.
pub unsafe fn destroy(heap: &mut Heap) {
    let _doing = fence::doing(&"as the process ended");
    // The lists now include what fragments own.
    // SAFETY: by the contract, nobody uses the heap any more; its blocks came from `alloc_block`.
    unsafe {
        absorb_fragment_lists(heap);
        if let Some(s) = heap.sent.take() {
            sent_terms::give_up(s);
        }
        release_off_heap(&mut heap.off_heap);
        release_off_heap(&mut heap.old_off_heap);
        // Fragments free their blocks as they are dropped.
        heap.frags = Vec::new();
        heap.frag_words = 0;
        if !heap.inline_block {
            if stress() {
                poison(heap.heap, heap.block_words());
            }
            free_block(heap.heap, heap.block_words());
        }
        // Releases the holds of a sweep that was under way.
        steps::forget(heap);
        free_block(heap.old_heap, heap.old_block_words());
        let n = std::ptr::null_mut();
        (heap.heap, heap.htop, heap.stop, heap.hend) = (n, n, n, n);
        (heap.high_water, heap.old_heap, heap.old_htop, heap.old_hend) = (n, n, n, n);
        heap.inline_block = false;
    }
}

/// A minor collection.
///
/// # Safety
/// As for [`collect`]; `mature` words at the start of the young block are below the high-water
/// mark.
unsafe fn minor(heap: &mut Heap, need: usize, roots: &mut [&mut [Term]], mature: usize) -> usize {
    // SAFETY: by the contract; `mature` counts the words below the mark.
    unsafe {
        let moved = minor_copy(heap, need, roots, mature);
        finish(heap);
        moved
    }
}

/// The copy of a minor collection.
///
/// # Safety
/// As for [`minor`].
unsafe fn minor_copy(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    mature: usize,
) -> usize {
    // The first promotion: the old block gets room for everything that is young now.
    // SAFETY: by the contract: the old block is new, or has room for what is mature.
    unsafe {
        if mature > 0 && heap.old_heap.is_null() {
            let n = match stress::roll(2) {
                true => mature + stress::below(64),
                false if mature > in_place_words() => {
                    old_size_for(mature + spare_words(mature, is_crowded()), is_crowded())
                }
                false if is_growing(heap.block_words(), heap.serves, is_crowded()) => {
                    heap_size_for(heap.used_words() * 2)
                }
                false => heap_size_for(heap.used_words()),
            };
            heap.old_heap = alloc_block(n);
            heap.old_htop = heap.old_heap;
            heap.old_hend = heap.old_heap.add(n);
        }
        copy_young(heap, need, roots, Kind::Minor, &mut Vec::new())
    }
}

/// Words of the block that a copy of `young` words goes to, before it is known what lives: at least
/// enough for everything. `room` is what [`take_room`] has returned, `wide` a size that the old
/// generation asks for.
#[inline]
fn size_to_copy(
    heap: &Heap,
    minor: bool,
    need: usize,
    young: usize,
    room: usize,
    wide: usize,
) -> usize {
    let mut size = heap.block_words().max(heap_size_for(heap.min_heap_words));
    if minor && is_growing(size, heap.serves, is_crowded()) {
        size = grown(size);
    } else if minor && is_busy(size, heap.minor_gcs, heap.serves) {
        size = heap_size_for(BUSY_WORDS);
    } else if heap.grow_next {
        size = heap_size_for(size + 1);
    }
    size = size.max(room);
    if wide > size {
        size = heap_size_for(wide);
    }
    if stress::roll(2) {
        size = 0;
    }
    let mut bound = young + heap.stack_words();
    // What a limit of memory lets a process make at once is room enough, for what it makes lives.
    size = at_most_with_room(heap, size, heap.stack_words() + need);
    // Copying a large block is expensive and its untouched pages are free: it has room for the need
    // from the start.
    if bound > MAP_ABOVE_WORDS {
        bound += need;
    }
    if size < bound {
        size = match stress::roll(2) {
            true => bound,
            false => at_most_with_room(heap, heap_size_for(bound), bound),
        };
    }
    size
}

/// Copies the young generation. A minor collection promotes its mature part and copies the rest.
///
/// # Safety
/// As for [`collect`]; where it promotes, the old generation has room for everything mature.
unsafe fn copy_young(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    kind: Kind,
    seen: &mut Vec<SeenRegion>,
) -> usize {
    let from = match kind {
        Kind::Minor => heap.high_water,
        _ => heap.heap,
    };
    let young = words_between(from, heap.htop) + heap.frag_words;
    // `young` bounds what the new young block may get; `all` includes what will be promoted.
    let all = heap.used_words() + heap.frag_words;
    let room = take_room(heap);
    let wide = match heap.dies_old {
        true => at_most_copied(young_part_before_death(
            heap.old_words(),
            heap.serves,
            is_crowded(),
        )),
        false => 0,
    };
    let minor = matches!(kind, Kind::Minor);
    let size = size_to_copy(heap, minor, need, young, room, wide);
    // This ends the plan for the worst case. From here on it is known what lives.
    // SAFETY: by the contract; `size` words suffice if everything lives.
    let mut moved = unsafe { pass(heap, size, roots, kind, &[], seen) };
    let large = all > PROMOTED_AT_ONCE_WORDS;
    // Seven eighths survived: the next collection promotes fresh objects as well.
    heap.all_survives = large && !heap.window && moved >= all / 8 * 7;
    heap.minor_gcs = heap.minor_gcs.saturating_add(1);
    // The old block of a small heap, or of a process that computes, is needed again soon.
    let empty = heap.old_htop == heap.old_heap && !heap.old_heap.is_null();
    if empty && heap.old_block_words() > kept_empty_words(heap.serves, is_crowded()) {
        // SAFETY: nothing lies in the old block, which came from `alloc_block`.
        unsafe {
            free_block(heap.old_heap, heap.old_block_words());
            let n = std::ptr::null_mut();
            (heap.old_heap, heap.old_htop, heap.old_hend) = (n, n, n);
            steps::forget(heap);
        }
    }
    let want = heap.used_words() + heap.stack_words() + need;
    let size = heap.block_words();
    let part = at_most_copied(young_part(heap.old_words(), heap.serves, is_crowded()));
    let crowded = is_crowded();
    let stays = size > STAY_ABOVE
        && (may_stay_large(size, crowded) || is_regrown(size, heap.shrunk, heap.serves, crowded));
    let kept = kept_words(heap.serves, is_crowded());
    heap.grow_next = false;
    heap.shrink_next &= want < size / 4;
    if want > size {
        // SAFETY: by the contract; the target is larger than everything in use.
        unsafe {
            moved += pass(
                heap,
                at_most_with_room(heap, heap_size_for(want), want),
                roots,
                Kind::Resize,
                &[],
                &mut Vec::new(),
            );
        }
    } else if heap.serves && part >= MOST_YOUNG_WORDS / 2 && size / 2 > want + part {
        // Copying survivors takes time: no more may gather in front of a large old generation.
        let target = heap_size_for((want + part).max(heap.min_heap_words));
        // SAFETY: by the contract; the target has room for everything in use and the need.
        unsafe {
            if target < size {
                moved += pass(heap, target, roots, Kind::Resize, &[], &mut Vec::new());
            }
        }
    } else if size > LARGE_WORDS && want < size / 4 && room == 0 && !stays {
        // A small young generation in front of a large old one would be collected too often.
        let least = part.max(wide).max(kept).max(heap.min_heap_words);
        let target = heap_size_for((want + at_most_slack(2 * want)).max(least));
        let target = at_most_with_room(heap, target, want);
        // SAFETY: by the contract; the target has room for everything in use and the need.
        unsafe {
            if target < size {
                heap.shrunk = place_of(size);
                moved += pass(heap, target, roots, Kind::Resize, &[], &mut Vec::new());
            }
        }
    } else {
        let too_soon = minor && kept > 0;
        heap.grow_next =
            want > size / 4 * 3 || too_soon && is_filled_too_soon(size, young, heap.used_words());
    }
    moved
}

/// A full sweep by copying.
///
/// # Safety
/// As for [`collect`].
unsafe fn full_sweep(heap: &mut Heap, need: usize, roots: &mut [&mut [Term]]) -> usize {
    // Everything may live, and the need comes on top: one copy is enough.
    let bound = heap.all_words() + heap.stack_words() + need;
    let mut min = heap_size_for(heap.min_heap_words);
    // A heap that is swept this often belongs to a process that works: it gets stock's first size.
    if bound < BUSY_WORDS {
        heap.small_sweeps = heap.small_sweeps.saturating_add(1);
        if heap.small_sweeps > SWEEPS_UNTIL_BUSY {
            min = min.max(heap_size_for(BUSY_WORDS));
        }
    }
    let room = match heap.shrink_next {
        true => 0,
        false => take_room(heap),
    };
    let mut size = heap_size_for(bound).max(min).max(room);
    let block = heap.block_words();
    if !heap.shrink_next && is_growing(block, heap.serves, is_crowded()) {
        size = size.max(grown(block));
    }
    // A heap that was left nearly full is not left so again.
    if heap.grow_next && size == heap.block_words() {
        size = heap_size_for(size + 1);
    }
    // It will become the old generation as it is, with room for what is promoted.
    if bound > in_place_words() {
        size = size.max(bound + spare_words(bound, is_crowded()));
    }
    if stress::roll(2) {
        size = bound;
    }
    let mut seen = Vec::new();
    // SAFETY: by the contract; `bound` counts everything.
    let mut moved = unsafe { pass(heap, size, roots, Kind::Full, &[], &mut seen) };
    // SAFETY: by the contract; `seen` has what the pass has just met.
    unsafe {
        moved += leave_regions(heap, need, roots, &seen);
        after_full(heap);
    }
    let used = heap.used_words();
    // This much is not copied again: the block becomes the old generation in place. In the window
    // nothing may become old.
    let settles = used > in_place_words() || (used > 0 && stress::roll(3));
    if settles && !heap.window {
        let young = young_words_for(heap, used, need);
        // SAFETY: by the contract; the pass has left everything live in the young block.
        unsafe { settle_old(heap, young) };
        heap.grow_next = false;
        finish(heap);
        return moved;
    }
    let want = heap.used_words() + heap.stack_words() + need;
    let size = heap.block_words();
    heap.grow_next = false;
    let shrink = want < size / 4 && size > min && room == 0;
    // A process that makes terms only now and then would find a small heap each time, and grow it
    // step by step, with a collection for each step. A large heap costs too much memory to keep.
    let asked = heap.shrink_next;
    let later = !asked && may_stay_large(size, is_crowded());
    heap.shrink_next = shrink && later && size <= LARGE_WORDS;
    if shrink && !later {
        // Judged by the block before this one: this one has room for everything that might have
        // lived.
        let kept = match !asked && is_regrown(block, heap.shrunk, heap.serves, is_crowded()) {
            true => block,
            false => kept_words(heap.serves, is_crowded()),
        };
        let target = heap_size_for((2 * want).max(kept).max(heap.min_heap_words));
        if target < block {
            heap.shrunk = place_of(block);
        }
        // SAFETY: by the contract; the target has room for everything in use and the need.
        unsafe {
            if target < size {
                moved += pass(heap, target, roots, Kind::Resize, &[], &mut Vec::new());
            }
        }
    } else {
        heap.grow_next = want > size / 4 * 3;
    }
    finish(heap);
    moved
}

/// Leaves the regions of which the heap uses little, by copying that little out. `seen` has what
/// the full sweep that was just made has met. Returns the number of words moved.
///
/// The cost is bounded: if the regions left are smaller than the heap, which is copied once more
/// for it, at most every second full sweep does so; and only a small part of each region is copied
/// out (`leave_limit`), and no more than `LEAVE_AT_MOST_WORDS`.
///
/// # Safety
/// As for [`collect`]; `seen` has what the full sweep that was just made has met, and nothing ran
/// since.
unsafe fn leave_regions(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    seen: &[SeenRegion],
) -> usize {
    let before = std::mem::take(&mut heap.leaves);
    if seen.is_empty() {
        return 0;
    }
    // SAFETY: the heap holds the regions in `seen`, whose terms it refers to.
    let (areas, kept, left) = unsafe { worth_leaving(seen) };
    if areas.is_empty() {
        return 0;
    }
    // Copying the heap once more is only worth it for regions larger than the heap. Others are not
    // held for long either, unless the heap is very large.
    let words = heap.all_words();
    let now =
        left >= words || words <= LEAVE_AT_ONCE_WORDS || (before && words <= in_place_words());
    if !now && !stress::roll(2) {
        heap.leaves = true;
        return 0;
    }
    // `kept` counts what comes out of the regions; what is reached twice counts twice, so it is
    // enough.
    let bound = heap.all_words() + kept + heap.stack_words() + need;
    let size = heap_size_for(bound).max(heap_size_for(heap.min_heap_words));
    // SAFETY: by the contract; `bound` counts everything, and `areas` are of live regions.
    unsafe { pass(heap, size, roots, Kind::Full, &areas, &mut Vec::new()) }
}

/// Records what a full sweep has left, in both generations: after a collection in place, most is in
/// the old one.
///
/// # Safety
/// A full sweep of the heap has just been made.
unsafe fn after_full(heap: &mut Heap) {
    let (young, old) = (&heap.off_heap, &heap.old_off_heap);
    heap.region_bytes_kept = young.regions.bytes() + old.regions.bytes();
    heap.old_vheap_bytes = vheap_size_for(
        young.bytes + old.bytes,
        heap.old_vheap_bytes,
        heap.min_vheap_words,
    );
    heap.minor_gcs = 0;
    heap.need_fullsweep = false;
    heap.gc_wanted = false;
}

fn finish(heap: &mut Heap) {
    heap.gc_wanted = false;
    heap.region_bytes = 0;
    // A full sweep frees regions that only dead terms of the old generation refer to.
    let old = heap.old_off_heap.regions.bytes();
    if old > REGION_SLACK_BYTES + 2 * heap.region_bytes_kept + heap.all_words() * 4 {
        heap.need_fullsweep = true;
    }
    heap.vheap_bytes = vheap_size_for(heap.off_heap.bytes, heap.vheap_bytes, heap.min_vheap_words);
    // Each collection walks the whole stack, which is worth as many bytes of binaries.
    heap.vheap_bytes = heap.vheap_bytes.max(heap.stack_words() * 8);
    if is_short() {
        let most = heap.off_heap.bytes + BINARIES_IN_SHORT;
        heap.vheap_bytes = heap.vheap_bytes.min(most);
        let old = heap.old_off_heap.bytes + BINARIES_IN_SHORT;
        heap.old_vheap_bytes = heap.old_vheap_bytes.min(old);
    }
}

/// Moves what the fragments own to the heap's off-heap list.
///
/// # Safety
/// The heap owns its fragments, whose lists are in order.
unsafe fn absorb_fragment_lists(heap: &mut Heap) {
    // SAFETY: by the contract, objects of fragments now live as long as those of the heap.
    unsafe {
        for f in &mut heap.frags {
            heap.off_heap.append(&mut f.off_heap);
        }
        heap.frag_words = heap.frags.iter().map(|f| f.used_words()).sum();
    }
}
