//! The collector of process heaps: generational copying after Cheney, without recursion.
//!
//! A minor collection copies what is reachable of the young block and the attached fragments: what lies below the
//! high-water mark (it survived once already) goes to the old block, the rest to a new young block. A full sweep
//! copies everything to one new young block. What is moved leaves a forwarding mark behind: a boxed pointer where
//! the header was, or [`Term::NON_VALUE`] in the head and the new cell in the tail. An old generation of more than a
//! few megabytes is not copied: see [`crate::mark_compact`].
//!
//! # Memory that terms lie in
//! Who may point to it, when it moves, when it goes, and what the verifier says that looks after it.
//!
//! | memory | pointed to by | moves | goes | verifier |
//! | --- | --- | --- | --- | --- |
//! | young block: what is fresh, above the high-water mark | roots, stack, young block, fragments | with each collection | when it was copied | "old word points to young", "mature word points to younger", "points into an object", "points to no cell" |
//! | young block: what is mature, below the mark | the same, and what is mature | with each collection, to the old block if it is a minor one | when it was copied | "mature word points to younger" |
//! | words in the process's cell that are its young block | as the young block | with the first collection | stay with the cell | as the young block |
//! | old block | all of the heap | in a full sweep: copied, or slid where it lies | when it was copied; a block of no words at once | "old word points to young", "old word points out of the heap" |
//! | fragments: what natives made when the block was full, and messages that were received | as what is fresh | with the next collection, to the young block | with that | as the young block: nothing old or mature points there |
//! | the message that is looked at ([`Heap::window`]) | registers, what was made in the window | never | it becomes a fragment, or stays in the queue | "points nowhere known" outside the window, "old word points out of the heap" in it |
//! | messages in the queue, and signals | nobody | never | when received or flushed | "points nowhere known" |
//! | counted regions | who holds a count: a heap by generation, a message, a stored object, a region, an entry of `persistent_term` | never; what is little of them is copied out | with the last count | "a region that isn't held", "a freed region", "behind a region", "into an object of a region"; "region word points out" |
//! | uncounted regions: literals, persistent terms | everybody | never | stay | "a freed region", "behind a region" |
//! | stored objects (tables, owned terms) | nobody outside them: what is read is copied | never | with their owner | "points nowhere known" |
//! | bytes of binaries | refc binaries, by count; the base of match contexts, by way of their original | when their only writer lets them grow | with the last count | "goes beyond its bytes", "has a count of", "stale base", "goes beyond its original" |
//! | values of magic references, nodes | references and external terms, by count | never | with the last count; nodes stay | "has a count of" |
//! | entries of funs, exports | funs; entries are counted for their module's sake | never | stay | "leads to no entry" |
//! | off-heap lists | the heap, by generation; a fragment; a region | are made anew with each copy | with what is on them | "the off-heap list holds … objects, the heap …" |
//! | the stack | nobody | with the young block | with it | "stack slot": what is no return address or catch mark is checked as the young block's words are |
//! | registers, dictionary: the roots | nobody | never | — | "root": as the stack |
//! | [`Heap::sent`] | nobody: addresses of terms that lie in regions, too | the entry goes when its term is moved | with the entry | "what was sent"; the entry holds its region |
//!
//! Invariants:
//! * Only what is known by address to belong to this heap is moved. Regions and queued messages stay and are never
//!   written to.
//! * Nothing in the old block points to the young block or a fragment: terms are immutable, so an object only points
//!   to older ones, and everything below the high-water mark is promoted together.
//! * After every collection the young block holds survivors only (`high_water == htop`) and there are no fragments. In
//!   the window ([`Heap::window`]) they don't count as survivors (`high_water == heap`): any of them may point to a message
//!   that will be a fragment, so nothing of them is promoted, whether one by one, at once, or by settling the block.
//! * The target of a copy is sized beforehand for the case that everything survives, so copying never runs out.
//!
//! `PURLIN_GC_STRESS=1` has each collection take one of the ways that there are at random, and leave no room; poisons what is
//! left behind, and verifies the heap before and after: see [`crate::stress`].

use crate::bin::RcBin;
use crate::blocks::MAP_ABOVE_WORDS;
pub use crate::blocks::{alloc_block, free_block, heap_bytes, is_mapped, mapped_bytes};
pub(crate) use crate::blocks::{
    cut_block, decommit_between, grow_block, is_crowded, may_cut_block,
};
use crate::copy::retain_object;
use crate::counts;
use crate::fence;
use crate::fun::FunEntry;
use crate::heap::{Heap, OffHeap, Sent};
use crate::layout::{self, NEXT};
use crate::magic::MagicRef;
use crate::mark_compact::{self, Room};
use crate::merge;
use crate::node::Node;
use crate::prefetch::prefetch;
use crate::region::{Region, RegionSet, is_counted_ptr, region_of};
use crate::stress::{self, below};
pub use crate::stress::{roll as stress_roll, seed as stress_seed, stress, told as stress_told};
use crate::word::{Subtag, TAG_BOXED, TAG_HEADER, TAG_IMMED, TAG_LIST, Term};
use crate::word::{header_arity, header_subtag};
use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Heaps of at most this many words have no old generation, as long as they have not been swept often.
const SMALL_WORDS: usize = 400;
/// Heaps of more words than this are made smaller as soon as they are largely empty.
const LARGE_WORDS: usize = 8000;
/// As many sweeps of a small heap tell that its process lives for long: what stays in it is copied no more.
pub(crate) const SMALL_SWEEPS: u16 = 16;

/// What is left in a block that was moved away, in stress mode: a boxed pointer to an address that cannot be.
pub const POISON: u64 = 0xDEAD_BEEF_DEAD_BEEA;

const HEAP_SIZES: usize = 137;

/// The sizes in words that heaps have, smallest first (`system_info(heap_sizes)`): 12, 38, then each the sum of its
/// two predecessors plus one, up to 833026; beyond that each a fifth larger than the one before. As many as stock has.
pub fn heap_sizes() -> &'static [usize] {
    static S: OnceLock<Vec<usize>> = OnceLock::new();
    S.get_or_init(|| {
        let mut v = vec![12usize, 38];
        loop {
            let (a, b) = (v[v.len() - 2], v[v.len() - 1]);
            let next = if b < 833_026 { a + b + 1 } else { b + b / 5 };
            if v.len() == HEAP_SIZES {
                return v;
            }
            v.push(next);
        }
    })
}

/// The least size of the series that is at least `words`.
pub fn heap_size_for(words: usize) -> usize {
    let s = heap_sizes();
    s.get(s.partition_point(|&n| n < words))
        .copied()
        .unwrap_or(words)
}

/// A new virtual heap size, in bytes, given what it holds: keeps it between a quarter and three quarters full, in
/// the steps of the heap sizes, and not below `min_words`.
fn vheap_size_for(bytes: usize, size: usize, min_words: usize) -> usize {
    if bytes == 0 && size == min_words * 8 {
        return size;
    }
    let min = heap_size_for(min_words);
    let used = bytes / 8;
    let mut words = (size / 8).max(min);
    if used / 3 > words / 4 {
        while used / 3 > words / 4 {
            words = heap_size_for(words + 1);
        }
    } else if used < words / 4 {
        let s = heap_sizes();
        let i = s.partition_point(|&n| n < words);
        words = s[i.saturating_sub(1)].max(min);
    }
    words * 8
}

/// Collections so far in the whole runtime, and words that they reclaimed.
pub fn totals() -> (usize, usize) {
    (
        counts::sum(|c| &c.collections),
        counts::sum(|c| &c.reclaimed_words),
    )
}

fn words_between(a: *mut Term, b: *mut Term) -> usize {
    (b as usize - a as usize) >> 3
}

pub(crate) unsafe fn poison(p: *mut Term, words: usize) {
    for i in 0..words {
        (p.add(i) as *mut u64).write(POISON);
    }
}

/// A heap starts with no more than it needs, and one that is swept often gets so many words, which is what stock starts
/// with: as many processes that only wait are small as may be, and those that work don't collect all the time.
const BUSY_WORDS: usize = 233;
const SWEEPS_UNTIL_BUSY: u16 = 6;

/// Young generations of more words than this are promoted at once where nearly all of them live.
const PROMOTED_AT_ONCE_WORDS: usize = 1 << 15;

/// Collects. Afterwards at least `need_words` words are free (and the heap's stack reserve besides). `roots` are
/// updated, and so is the stack, on which words with a header's tag are return addresses. The result is the number
/// of words moved, as a measure of the time it took.
///
/// # Safety
/// No term of this heap outside `roots` and the stack is used afterwards; every word of the heap is initialised.
pub unsafe fn collect(
    heap: &mut Heap,
    need_words: usize,
    roots: &mut [&mut [Term]],
    fullsweep: bool,
) -> usize {
    if stress() {
        return stress::collect(heap, need_words, roots, fullsweep);
    }
    collect_once(heap, need_words, roots, fullsweep)
}

pub(crate) unsafe fn collect_once(
    heap: &mut Heap,
    need_words: usize,
    roots: &mut [&mut [Term]],
    fullsweep: bool,
) -> usize {
    let need = need_words + heap.stack_reserve;
    let before = all_words(heap);
    absorb_fragment_lists(heap);
    let mature = words_between(heap.heap, heap.high_water);
    let old_free = words_between(heap.old_htop, heap.old_hend);
    // Sweeping a small heap whole costs less than the second block of a generation.
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
            && (old_free < mature || heap.old_off_heap.bytes > heap.old_vheap_bytes));
    // Who asks for it is to see that memory was given back.
    heap.shrink_next |= fullsweep;
    let fresh = words_between(heap.high_water, heap.htop);
    // See `Heap::all_survives`. What lies in fragments stays young, and nothing old may refer to that.
    let promote = !full
        && heap.all_survives
        && !heap.window
        && heap.frags.is_empty()
        && !heap.old_heap.is_null()
        && old_free >= mature + fresh;
    let mature = if promote {
        heap.high_water = heap.htop;
        mature + fresh
    } else {
        mature
    };
    let moved = if full && is_large(heap) {
        sweep_in_place(heap, need, roots)
    } else if full {
        full_sweep(heap, need, roots, &[])
    } else {
        minor(heap, need, roots, mature)
    };
    counts::add(|c| &c.collections, 1);
    let reclaimed = before.saturating_sub(all_words(heap));
    counts::add(|c| &c.reclaimed_words, reclaimed);
    moved
}

/// Ends the runtime: the heap is damaged, and whatever is done with it would do more damage.
#[cold]
#[inline(never)]
pub(crate) fn fatal(what: &str) -> ! {
    eprintln!("purlin: damaged heap: {what}{}", stress::told());
    std::process::abort();
}

/// A heap of fewer words than this is left alone when its process begins to wait, and so is one that may hold so much garbage.
const REST_WORDS: usize = 4096;
/// Words of the largest block that a heap gets at once because it has used as many before.
const MOST_ROOM: usize = 1 << 17;

/// Whether [`rest`] may pay for a process that begins to wait: the heap has come to hold several times what it was left with,
/// or it got far more room than it made use of.
#[inline]
pub fn rest_pays(heap: &Heap) -> bool {
    let block = heap.block_words();
    block > REST_WORDS && rest_pays_large(heap, block)
}

#[inline(never)]
fn rest_pays_large(heap: &Heap, block: usize) -> bool {
    let (all, stack) = (heap.all_words(), heap.stack_words());
    // A deep stack is walked too, and fills its part of the block.
    (all > REST_WORDS + 2 * (heap.rested + stack) || all + stack < block / 8)
        && !is_crowded()
        && block > heap_size_for(heap.min_heap_words)
        && all <= MAP_ABOVE_WORDS
}

/// Makes the heap of a process small that begins to wait. What it did for a request is mostly garbage when the next one is
/// waited for: little is copied, and its block serves the next process that runs here, still in the processor's caches,
/// instead of one for each process that waits. The next collection gives it as much room at once as it has used.
///
/// # Safety
/// As for [`collect`].
pub unsafe fn rest(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    let used = heap.all_words();
    let moved = collect(heap, 0, roots, true);
    heap.rested = heap.all_words();
    let room = (used + used / 4).min(MOST_ROOM);
    let sizes = heap_sizes();
    let i = sizes.partition_point(|&n| n < room);
    let i = if sizes[i] > MOST_ROOM { i - 1 } else { i };
    debug_assert!(i < 32);
    heap.room = if sizes[i] > heap.block_words() {
        i as u8
    } else {
        0
    };
    moved
}

/// Whether a heap of so many words is not made smaller for being largely empty: it will be as its process begins to wait.
fn may_stay_large(size: usize) -> bool {
    size <= LARGE_WORDS || (size <= STAY_WORDS && !is_crowded())
}

/// Words of the largest heap that stays as large as it is while its process runs; and of the smallest, where a minor
/// collection has promoted most of it: smaller ones are refilled with little loss.
const STAY_WORDS: usize = 1 << 16;
const STAY_ABOVE: usize = 20_000;

/// The size that was remembered by [`rest`], or one on the way there; 0 if there is none, or if memory is short.
fn take_room(heap: &mut Heap) -> usize {
    if heap.room == 0 {
        return 0;
    }
    let size = heap_sizes()[heap.room as usize];
    if size > STEP_ABOVE && heap.block_words() < STEP && !is_crowded() {
        return heap_size_for(STEP);
    }
    heap.room = 0;
    if is_crowded() { 0 } else { size }
}

/// Before a heap gets more room than this at once it gets the step: it may have to wait for its turn soon, with all others
/// that have just been woken.
const STEP_ABOVE: usize = 1 << 14;
const STEP: usize = 6000;

/// Heaps of fewer bytes than this lie in the processor's caches: what a scan comes to isn't fetched ahead.
const FETCHED_BYTES: usize = 1 << 20;

/// Fetches what a word some way behind `p` points at, if there is one below `top`; it is copied when the scan gets there.
#[inline(always)]
unsafe fn fetch_ahead(p: *mut Term, top: *mut Term) {
    const WORDS: usize = 12;
    let q = p.wrapping_add(WORDS);
    if q < top {
        let t = *q;
        if t.raw() & 3 == TAG_LIST || t.raw() & 3 == TAG_BOXED {
            prefetch(t.ptr());
        }
    }
}

/// Generations of more words than this are not copied to be collected, so that they don't take their room twice.
pub static IN_PLACE_WORDS: AtomicUsize = AtomicUsize::new(1 << 20);

/// Room in an old generation for what is promoted, given what lives: as much garbage may gather there until it is
/// collected. As much as lives, half of it where that is more than 128 MiB. Pages that nothing was promoted to take no
/// memory. Where memory is short it is the twelfth part of more than 64 MiB.
pub(crate) fn spare_words(live: usize) -> usize {
    match live {
        0x80_0001.. if is_crowded() => live / 12,
        0..=0x100_0000 => live,
        _ => live / 2,
    }
}

/// Words of the block of an old generation that is to have room for so many.
pub(crate) fn old_size_for(words: usize) -> usize {
    match is_crowded() && words > MAP_ABOVE_WORDS {
        true => words,
        false => heap_size_for(words),
    }
}

/// Whether the old generation is to be collected where it lies.
fn is_large(heap: &Heap) -> bool {
    let words = words_between(heap.old_heap, heap.old_htop);
    let large = words > IN_PLACE_WORDS.load(Ordering::Relaxed) && words <= mark_compact::MOST_WORDS;
    large || (words > 0 && stress_roll(2))
}

/// A full sweep that copies the young generation, and collects the old one where it lies.
unsafe fn sweep_in_place(heap: &mut Heap, need: usize, roots: &mut [&mut [Term]]) -> usize {
    let mut seen = Vec::new();
    let mut moved = copy_young(heap, need, roots, Kind::Young, &mut seen);
    moved += mark_compact::collect(heap, roots, &mut seen, Room::Grow);
    moved += leave_regions(heap, need, roots, &seen);
    after_full(heap);
    finish(heap);
    moved
}

/// After a full sweep of what turned out to be large: has the block be the old generation, in front of which there is a new
/// young block. The next collection would copy it there.
unsafe fn settle_old(heap: &mut Heap, young_words: usize) {
    debug_assert!(heap.old_heap.is_null() && heap.high_water == heap.htop && !heap.window);
    heap.collections = heap.collections.wrapping_add(1);
    let (stack, used) = (heap.stack_words(), heap.used_words());
    let block = alloc_block(young_words);
    let hend = block.add(young_words);
    let stop = hend.sub(stack);
    std::ptr::copy_nonoverlapping(heap.stop, stop, stack);
    (heap.old_heap, heap.old_htop, heap.old_hend) = (heap.heap, heap.htop, heap.hend);
    (heap.heap, heap.htop, heap.high_water) = (block, block, block);
    (heap.stop, heap.hend) = (stop, hend);
    let mut young = std::mem::take(&mut heap.off_heap);
    heap.old_off_heap.append(&mut young);
    let (words, keep) = (
        heap.old_block_words(),
        old_size_for(used + spare_words(used)),
    );
    if may_cut_block(words, keep) {
        cut_block(heap.old_heap, words, keep);
        heap.old_hend = heap.old_heap.add(keep);
    }
    if !stress() {
        decommit_between(heap.old_htop, heap.old_hend);
    }
}

/// Words of the young block in front of so many old words: an eighth, and of a large generation a sixteenth, or half as
/// much where memory is short.
fn young_part(old_words: usize) -> usize {
    if old_words > 8 << 20 {
        old_words / if is_crowded() { 32 } else { 16 }
    } else {
        old_words / 8
    }
}

/// Words of the young block in front of an old generation, for a stack and a need.
fn young_words_for(heap: &Heap, old_words: usize, need: usize) -> usize {
    let want = 3 * (heap.stack_words() + need);
    heap_size_for(want.max(young_part(old_words)).max(heap.min_heap_words))
}

/// A full sweep that also copies out what lies in the given areas (start and end addresses), such as the literals of
/// a module that is purged. The areas are only read.
///
/// # Safety
/// As for [`collect`]; the areas hold well-formed objects.
pub unsafe fn collect_literals_out(
    heap: &mut Heap,
    roots: &mut [&mut [Term]],
    areas: &[(usize, usize)],
) -> usize {
    absorb_fragment_lists(heap);
    let mut areas = areas.to_vec();
    areas.sort_unstable();
    let need = heap.stack_reserve;
    full_sweep(heap, need, roots, &areas)
}

/// A full sweep into a block of exactly the words that are in use (and the stack reserve).
///
/// # Safety
/// As for [`collect`].
pub unsafe fn shrink_to_fit(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    if stress() {
        stress::look(heap, roots, "before it is compacted", true);
    }
    absorb_fragment_lists(heap);
    let mut seen = Vec::new();
    let mut moved;
    if is_large(heap) {
        let bound = heap.used_words() + heap.frag_words + heap.stack_words() + heap.stack_reserve;
        moved = pass(heap, bound, roots, Kind::Young, &[], &mut seen);
        moved += mark_compact::collect(heap, roots, &mut seen, Room::Exact);
    } else {
        let bound = all_words(heap) + heap.stack_words() + heap.stack_reserve;
        moved = pass(heap, bound, roots, Kind::Full, &[], &mut seen);
    }
    moved += leave_regions(heap, heap.stack_reserve, roots, &seen);
    after_full(heap);
    let mut exact = heap.used_words() + heap.stack_words() + heap.stack_reserve;
    exact -= merge::merge(heap, roots);
    if exact < heap.block_words() {
        moved += pass(heap, exact, roots, Kind::Resize, &[], &mut Vec::new());
    }
    heap.grow_next = false;
    heap.shrink_next = false;
    heap.small_sweeps = 0;
    finish(heap);
    if stress() {
        stress::look(heap, roots, "compacted", false);
    }
    moved
}

/// Stress mode: gives the young block, which was just copied, so many free words; it moves for it, even if it has them, or not.
///
/// # Safety
/// As for [`collect`].
pub(crate) unsafe fn trim(heap: &mut Heap, free: usize, roots: &mut [&mut [Term]]) -> usize {
    let size = heap.used_words() + heap.stack_words() + free;
    if size == heap.block_words() && below(4) != 0 {
        return 0;
    }
    pass(heap, size, roots, Kind::Resize, &[], &mut Vec::new())
}

/// Frees the heap with all that its objects own, at the end of a process. An inline block stays with its cell.
///
/// # Safety
/// No term of the heap is used afterwards.
pub unsafe fn destroy(heap: &mut Heap) {
    let _doing = fence::doing(&"as the process ended");
    absorb_fragment_lists(heap);
    heap.sent = None;
    release_off_heap(&mut heap.off_heap);
    release_off_heap(&mut heap.old_off_heap);
    heap.frags = Vec::new();
    heap.frag_words = 0;
    if !heap.inline_block {
        if stress() {
            poison(heap.heap, heap.block_words());
        }
        free_block(heap.heap, heap.block_words());
    }
    free_block(heap.old_heap, heap.old_block_words());
    let n = std::ptr::null_mut();
    (heap.heap, heap.htop, heap.stop, heap.hend) = (n, n, n, n);
    (heap.high_water, heap.old_heap, heap.old_htop, heap.old_hend) = (n, n, n, n);
    heap.inline_block = false;
}

/// Puts what the fragments own on the heap's list.
unsafe fn absorb_fragment_lists(heap: &mut Heap) {
    for f in &mut heap.frags {
        heap.off_heap.append(&mut f.off_heap);
    }
    heap.frag_words = heap.frags.iter().map(|f| f.used_words()).sum();
}

/// Words in use in both generations and the fragments.
fn all_words(heap: &Heap) -> usize {
    heap.used_words() + words_between(heap.old_heap, heap.old_htop) + heap.frag_words
}

unsafe fn minor(heap: &mut Heap, need: usize, roots: &mut [&mut [Term]], mature: usize) -> usize {
    let moved = minor_copy(heap, need, roots, mature);
    finish(heap);
    moved
}

unsafe fn minor_copy(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    mature: usize,
) -> usize {
    if mature > 0 && heap.old_heap.is_null() {
        let n = match stress_roll(2) {
            true => mature + below(64),
            false => heap_size_for(heap.used_words()),
        };
        heap.old_heap = alloc_block(n);
        heap.old_htop = heap.old_heap;
        heap.old_hend = heap.old_heap.add(n);
    }
    copy_young(heap, need, roots, Kind::Minor, &mut Vec::new())
}

/// Copies the young generation, or (minor collection) promotes what of it is mature and copies the rest.
unsafe fn copy_young(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    kind: Kind,
    seen: &mut Vec<SeenRegion>,
) -> usize {
    let stack = heap.stack_words();
    let from = match kind {
        Kind::Minor => heap.high_water,
        _ => heap.heap,
    };
    let young = words_between(from, heap.htop) + heap.frag_words;
    let all = heap.used_words() + heap.frag_words;
    let room = take_room(heap);
    let mut size = heap.block_words().max(heap_size_for(heap.min_heap_words));
    if heap.grow_next {
        size = heap_size_for(size + 1);
    }
    size = size.max(room);
    if stress_roll(2) {
        size = 0;
    }
    let mut bound = young + stack;
    // A copy of a large block is dear and its untouched pages are free: room for the need from the start.
    if bound > MAP_ABOVE_WORDS {
        bound += need;
    }
    if size < bound {
        size = match stress_roll(2) {
            true => bound,
            false => heap_size_for(bound),
        };
    }
    let mut moved = pass(heap, size, roots, kind, &[], seen);
    let large = all > PROMOTED_AT_ONCE_WORDS;
    heap.all_survives = large && !heap.window && moved >= all / 8 * 7;
    heap.minor_gcs = heap.minor_gcs.saturating_add(1);
    // That of a small heap is wanted again soon.
    let empty = heap.old_htop == heap.old_heap && !heap.old_heap.is_null();
    if empty && heap.old_block_words() > SMALL_WORDS {
        free_block(heap.old_heap, heap.old_block_words());
        let n = std::ptr::null_mut();
        (heap.old_heap, heap.old_htop, heap.old_hend) = (n, n, n);
    }
    let want = heap.used_words() + heap.stack_words() + need;
    let size = heap.block_words();
    let stays = size > STAY_ABOVE && may_stay_large(size);
    heap.grow_next = false;
    heap.shrink_next &= want < size / 4;
    if want > size {
        moved += pass(
            heap,
            heap_size_for(want),
            roots,
            Kind::Resize,
            &[],
            &mut Vec::new(),
        );
    } else if size > LARGE_WORDS && want < size / 4 && room == 0 && !stays {
        // A small new generation in front of a large old one would be collected too often.
        let target = (3 * want).max(young_part(heap.old_words()));
        let target = heap_size_for(target.max(heap.min_heap_words));
        if target < size {
            moved += pass(heap, target, roots, Kind::Resize, &[], &mut Vec::new());
        }
    } else {
        heap.grow_next = want > size / 4 * 3;
    }
    moved
}

unsafe fn full_sweep(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    literals: &[(usize, usize)],
) -> usize {
    let lit_words: usize = literals.iter().map(|(a, b)| (b - a) >> 3).sum();
    let bound = all_words(heap) + lit_words + heap.stack_words() + need;
    let mut min = heap_size_for(heap.min_heap_words);
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
    // One that was left nearly full is not left so again.
    if heap.grow_next && size == heap.block_words() {
        size = heap_size_for(size + 1);
    }
    if stress_roll(2) {
        size = bound;
    }
    let mut seen = Vec::new();
    let mut moved = pass(heap, size, roots, Kind::Full, literals, &mut seen);
    moved += leave_regions(heap, need, roots, &seen);
    after_full(heap);
    let used = heap.used_words();
    let settles = used > IN_PLACE_WORDS.load(Ordering::Relaxed) || (used > 0 && stress_roll(3));
    if settles && !heap.window {
        let young = young_words_for(heap, used, need);
        settle_old(heap, young);
        heap.grow_next = false;
        finish(heap);
        return moved;
    }
    let want = heap.used_words() + heap.stack_words() + need;
    let size = heap.block_words();
    heap.grow_next = false;
    let shrink = want < size / 4 && size > min && room == 0;
    // What a process makes now and then would find a small heap each time, and have it grow step by step, with a
    // collection for each. A large one costs too much memory to wait.
    let later = !heap.shrink_next && may_stay_large(size);
    heap.shrink_next = shrink && later && size <= LARGE_WORDS;
    if shrink && !later {
        let target = heap_size_for((2 * want).max(heap.min_heap_words));
        if target < size {
            moved += pass(heap, target, roots, Kind::Resize, &[], &mut Vec::new());
        }
    } else {
        heap.grow_next = want > size / 4 * 3;
    }
    finish(heap);
    moved
}

/// What a full sweep has left is counted, in both generations: where it was collected in place, most is in the old one.
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
    // Regions that only dead terms of the old generation refer to go with a full sweep.
    let old = heap.old_off_heap.regions.bytes();
    if old > REGION_SLACK_BYTES + 2 * heap.region_bytes_kept + all_words(heap) * 4 {
        heap.need_fullsweep = true;
    }
    heap.vheap_bytes = vheap_size_for(heap.off_heap.bytes, heap.vheap_bytes, heap.min_vheap_words);
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Young block and fragments; what is below the high-water mark is promoted.
    Minor,
    /// Both generations and fragments.
    Full,
    /// Young block and fragments, without promotion: the old generation is collected afterwards, where it lies.
    Young,
    /// The young block only, without promotion: to give it another size.
    Resize,
}

/// Leaves the regions of which the heap uses little: copies that little out. `seen` is what the full sweep that was just
/// made has met. Gives the words moved.
///
/// Bounded: nothing is done unless the regions left are larger than the heap, which is copied once more for it, and at
/// most a sixteenth of each region is copied out, and no more than [`LEAVE_AT_MOST_WORDS`].
unsafe fn leave_regions(
    heap: &mut Heap,
    need: usize,
    roots: &mut [&mut [Term]],
    seen: &[SeenRegion],
) -> usize {
    if seen.is_empty() {
        return 0;
    }
    let (areas, kept, left) = worth_leaving(seen);
    if areas.is_empty() || (left < all_words(heap) && !stress_roll(2)) {
        return 0;
    }
    let bound = all_words(heap) + kept + heap.stack_words() + need;
    let size = heap_size_for(bound).max(heap_size_for(heap.min_heap_words));
    pass(heap, size, roots, Kind::Full, &areas, &mut Vec::new())
}

/// One of the regions that may be left.
struct Leaving<'a> {
    seen: &'a SeenRegion,
    /// Addresses (start, end).
    area: (usize, usize),
    /// Words that may yet be copied out of it.
    left: usize,
}

/// Which regions are worth leaving: their areas in order, the words that a pass copies out of them all at most, and the words
/// that they have. What is copied is followed from region to region as that pass does, so what a term in one refers to in
/// another counts there.
unsafe fn worth_leaving(seen: &[SeenRegion]) -> (Vec<(usize, usize)>, usize, usize) {
    let most = LEAVE_AT_MOST_WORDS.load(Ordering::Relaxed);
    let limit = |s: &SeenRegion| match stress_roll(2) {
        true => below(s.region.words + 1).min(most),
        false => (s.region.words / 16).min(most),
    };
    let above = if stress_roll(2) { 0 } else { LEAVE_ABOVE_WORDS };
    let mut some: Vec<Leaving> = seen
        .iter()
        .filter(|s| !s.many && s.region.words >= above && most > 0)
        .map(|seen| {
            let (p, words) = seen.region.area();
            Leaving {
                seen,
                area: (p as usize, p as usize + words * 8),
                left: 0,
            }
        })
        .collect();
    some.sort_unstable_by_key(|l| l.area);
    // One that takes too much is not left, and then nothing is copied on its behalf: counted anew without it. Each round
    // takes as many steps as may be copied.
    for _ in 0..LEAVE_ROUNDS {
        some.iter_mut().for_each(|l| l.left = limit(l.seen));
        match count_out(&mut some) {
            Ok(kept) => {
                let words = some.iter().map(|l| l.seen.region.words).sum();
                return (some.iter().map(|l| l.area).collect(), kept, words);
            }
            Err(i) => {
                some.remove(i);
            }
        }
    }
    (Vec::new(), 0, 0)
}

/// Words that are copied out of the regions, what is reached twice counted twice; Err: which of them takes more than it may.
unsafe fn count_out(some: &mut [Leaving]) -> Result<usize, usize> {
    let mut n = 0;
    let mut todo: Vec<Term> = Vec::new();
    for k in 0..some.len() {
        todo.extend_from_slice(&some[k].seen.terms);
        let mut at = k;
        while let Some(t) = todo.pop() {
            if t.is_immed() {
                continue;
            }
            let p = t.ptr();
            let inside = |l: &Leaving| p as usize >= l.area.0 && (p as usize) < l.area.1;
            if !inside(&some[at]) {
                let i = some.partition_point(|l| l.area.0 <= p as usize);
                if i == 0 || !inside(&some[i - 1]) {
                    continue;
                }
                at = i - 1;
            }
            let (words, (a, b)) = match t.is_list_ptr() {
                true => (2, (0, 2)),
                false => (layout::object_words(p), layout::term_range(p)),
            };
            let l = &mut some[at];
            l.left = l.left.checked_sub(words).ok_or(at)?;
            n += words;
            todo.extend((a..b).map(|i| *p.add(i)));
        }
    }
    Ok(n)
}

/// Puts forwarding marks to their regions on those terms that were sent and lie where this copy moves things, so that
/// the heap's own references lead to the region from now on. The result is what still has its own memory.
pub(crate) unsafe fn mark_sent(
    moves: impl Fn(usize) -> bool,
    sent: &mut Option<Box<Sent>>,
) -> Option<Box<Sent>> {
    let mut s = sent.take()?;
    let mut marked = Sent::default();
    for i in (0..s.entries.len()).rev() {
        let e = &s.entries[i];
        let p = e.term.ptr();
        if !moves(p as usize) {
            // The old generation stays where it is: its references will follow with the next full sweep.
            continue;
        }
        if e.term.is_list_ptr() {
            p.write(Term::NON_VALUE);
            p.add(1).write(e.shared);
        } else {
            p.write(e.shared);
        }
        marked.entries.push(s.entries.remove(i));
    }
    if !s.entries.is_empty() {
        *sent = Some(s);
    }
    (!marked.entries.is_empty()).then(|| Box::new(marked))
}

/// A counted region that a full sweep met, and the terms in it that the heap refers to.
pub(crate) struct SeenRegion {
    region: &'static Region,
    terms: Vec<Term>,
    /// More than are worth keeping.
    many: bool,
}

/// Terms noted for each region.
const SEEN_TERMS: usize = 64;

/// So often it is tried to find regions that are worth leaving together.
const LEAVE_ROUNDS: usize = 8;

/// Regions of fewer words than this are not worth leaving.
const LEAVE_ABOVE_WORDS: usize = 4096;

/// Words copied out of a region to leave it. 0: regions are never left.
pub static LEAVE_AT_MOST_WORDS: AtomicUsize = AtomicUsize::new(1 << 18);

/// Bytes of regions that a heap may hold on to before it is pressed to look for dead ones.
pub(crate) const REGION_SLACK_BYTES: usize = 4 << 20;

/// One copy of what is live into a new young block of `size` words, which must be enough if everything lives.
unsafe fn pass(
    heap: &mut Heap,
    size: usize,
    roots: &mut [&mut [Term]],
    kind: Kind,
    literals: &[(usize, usize)],
    seen: &mut Vec<SeenRegion>,
) -> usize {
    heap.collections = heap.collections.wrapping_add(1);
    let _doing = fence::doing(match kind {
        Kind::Minor => &"in a minor collection",
        Kind::Full => &"in a full collection",
        Kind::Young => &"in a full collection, of what is young",
        Kind::Resize => &"as a heap was resized",
    });
    let block = alloc_block(size);
    let hend = block.add(size);
    let stack = heap.stack_words();
    let stop = hend.sub(stack);
    if stack > 0 {
        std::ptr::copy_nonoverlapping(heap.stop, stop, stack);
    }
    let mut frags: Vec<(usize, usize)> = Vec::new();
    if kind != Kind::Resize {
        for f in &heap.frags {
            frags.extend(
                f.areas()
                    .filter(|a| a.1 > 0)
                    .map(|(p, n)| (p as usize, p as usize + n * 8)),
            );
        }
        frags.sort_unstable();
    }
    let old_start = heap.old_htop;
    let mut m = Mover {
        young: heap.heap as usize,
        young_len: heap.htop as usize - heap.heap as usize,
        promote_len: match kind {
            Kind::Minor => heap.high_water as usize - heap.heap as usize,
            _ => 0,
        },
        old: heap.old_heap as usize,
        old_len: match kind {
            Kind::Full => heap.old_htop as usize - heap.old_heap as usize,
            _ => 0,
        },
        frags: &frags,
        literals,
        copied: HashMap::new(),
        copied_off_heap: OffHeap::default(),
        notes: Notes::new(
            kind != Kind::Resize,
            matches!(kind, Kind::Full | Kind::Young).then_some(seen),
        ),
        top: block,
        limit: stop,
        old_top: heap.old_htop,
    };
    // Kept until the copy is done: only it may be what keeps the regions alive.
    let marked = if kind == Kind::Resize {
        None
    } else {
        mark_sent(|a| m.mine(a), &mut heap.sent)
    };
    for r in roots.iter_mut() {
        for t in r.iter_mut() {
            m.forward(t);
        }
    }
    for i in 0..stack {
        m.forward(stop.add(i));
    }
    let (mut y, mut o) = (block, old_start);
    loop {
        y = m.scan_young(y);
        o = m.scan_old(o);
        if y == m.top {
            break;
        }
    }
    if m.top > stop || m.old_top > heap.old_hend {
        fatal("a collection ran out of room");
    }
    let moved = words_between(block, m.top) + words_between(old_start, m.old_top);
    let mut young = std::mem::take(&mut m.copied_off_heap);
    let mut regions = std::mem::take(&mut heap.off_heap.regions);
    let mut old_regions = std::mem::take(&mut heap.old_off_heap.regions);
    match kind {
        Kind::Resize => {}
        Kind::Young => regions.keep_only(std::mem::take(&mut m.notes.seen)),
        // All that is young and live was looked at. What old objects refer to came before them.
        Kind::Minor => {
            regions.keep_only(std::mem::take(&mut m.notes.seen));
            old_regions.append(&mut m.notes.seen_old);
        }
        Kind::Full => {
            regions.keep_only(std::mem::take(&mut m.notes.seen));
            old_regions.release_all();
        }
    }
    drop(marked);
    let (old_lo, old_hi) = (old_start as usize, m.old_top as usize);
    let (top, old_top) = (m.top, m.old_top);
    sweep(
        &mut heap.off_heap,
        &mut young,
        &mut heap.old_off_heap,
        old_lo..old_hi,
    );
    if kind == Kind::Full {
        let mut none = OffHeap::default();
        sweep(&mut heap.old_off_heap, &mut young, &mut none, 0..0);
    }
    heap.off_heap = young;
    heap.off_heap.regions.append(&mut regions);
    heap.old_off_heap.regions.append(&mut old_regions);

    if stress() {
        poison(heap.heap, heap.used_words());
        poison(heap.stop, stack);
        for f in &heap.frags {
            for (p, n) in f.areas() {
                poison(p, n);
            }
        }
    }
    if !heap.inline_block {
        free_block(heap.heap, heap.block_words());
    }
    heap.inline_block = false;
    heap.frags = Vec::new();
    heap.frag_words = 0;
    if kind == Kind::Full {
        if stress() {
            poison(heap.old_heap, words_between(heap.old_heap, heap.old_htop));
        }
        free_block(heap.old_heap, heap.old_block_words());
        let n = std::ptr::null_mut();
        (heap.old_heap, heap.old_htop, heap.old_hend) = (n, n, n);
    } else {
        heap.old_htop = old_top;
    }
    (heap.heap, heap.htop) = (block, top);
    heap.high_water = if heap.window { block } else { top };
    (heap.stop, heap.hend) = (stop, hend);
    moved
}

/// Empties `list`: what was moved goes on the list of the generation it is in now, the rest is released.
unsafe fn sweep(
    list: &mut OffHeap,
    young: &mut OffHeap,
    old: &mut OffHeap,
    promoted: std::ops::Range<usize>,
) {
    let mut p = std::mem::take(list).first;
    while !p.is_null() {
        // The link is intact: a forwarding mark takes the header's place only.
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

/// The state of one copy. Areas are (start, length) or (start, end) in bytes.
struct Mover<'a> {
    young: usize,
    young_len: usize,
    /// The first so many bytes of the young block go to the old one.
    promote_len: usize,
    old: usize,
    old_len: usize,
    /// Sorted.
    frags: &'a [(usize, usize)],
    /// Sorted. Shared with other processes, hence without forwarding marks: `copied` stands for them.
    literals: &'a [(usize, usize)],
    copied: HashMap<u64, Term>,
    copied_off_heap: OffHeap,
    notes: Notes<'a>,
    top: *mut Term,
    /// Where the stack begins in the new block.
    limit: *mut Term,
    old_top: *mut Term,
}

/// The counted regions that terms were found to point into.
pub(crate) struct Notes<'a> {
    /// Whether to note them: from what will be young, and from what is old.
    see: bool,
    pub(crate) seen: RegionSet,
    seen_old: RegionSet,
    /// Whether it is the old block that is being looked through.
    in_old: bool,
    /// Where to note the terms that are referred to, too.
    list: Option<&'a mut Vec<SeenRegion>>,
    /// Addresses (start, length) of the region met last, which is noted; and its place in `list` if more of it is
    /// wanted.
    last: (usize, usize),
    last_index: usize,
}

impl<'a> Notes<'a> {
    pub(crate) fn new(see: bool, list: Option<&'a mut Vec<SeenRegion>>) -> Notes<'a> {
        Notes {
            see,
            seen: RegionSet::default(),
            seen_old: RegionSet::default(),
            in_old: false,
            list,
            last: (0, 0),
            last_index: usize::MAX,
        }
    }

    /// Notes the counted region that `t` lies in, if it does.
    #[inline(always)]
    pub(crate) fn note(&mut self, t: Term) {
        if self.see && is_counted_ptr(t.ptr()) {
            self.note_region(t);
        }
    }

    #[inline(never)]
    fn note_region(&mut self, t: Term) {
        if (t.ptr() as usize).wrapping_sub(self.last.0) >= self.last.1 {
            let Some(r) = region_of(t.ptr()) else { return };
            match self.in_old {
                true => self.seen_old.hold(r),
                false => self.seen.hold(r),
            }
            self.last = (r.base as usize, r.words * 8);
            self.last_index = usize::MAX;
            if let Some(l) = self.list.as_mut() {
                self.last_index = match l.iter().rposition(|s| std::ptr::eq(s.region, r)) {
                    Some(i) => i,
                    None if l.len() < SEEN_TERMS => {
                        l.push(SeenRegion {
                            region: r,
                            terms: Vec::new(),
                            many: false,
                        });
                        l.len() - 1
                    }
                    None => usize::MAX,
                };
            }
        }
        if self.last_index == usize::MAX {
            return;
        }
        if let Some(s) = self.list.as_mut().and_then(|l| l.get_mut(self.last_index)) {
            if s.terms.last() == Some(&t) {
                return;
            }
            s.terms.push(t);
            if s.terms.len() > SEEN_TERMS {
                s.many = true;
                self.last_index = usize::MAX;
            }
        }
    }
}

fn within(areas: &[(usize, usize)], a: usize) -> bool {
    let i = areas.partition_point(|&(lo, _)| lo <= a);
    i > 0 && a < areas[i - 1].1
}

impl Mover<'_> {
    /// Makes the term in `*slot` point at the new place of what it points at, moving that if it is the first time.
    #[inline(always)]
    unsafe fn forward(&mut self, slot: *mut Term) {
        let t = *slot;
        match t.raw() & 3 {
            TAG_LIST => {
                let p = t.ptr();
                let a = p as usize;
                if !self.mine(a) {
                    self.outside(slot);
                    return;
                }
                let h = *p;
                let tl = *p.add(1);
                if h == Term::NON_VALUE {
                    *slot = tl;
                    // Marked by `mark_sent`.
                    self.notes.note(tl);
                    return;
                }
                let q = self.take(a, 2);
                q.write(h);
                q.add(1).write(tl);
                let c = Term::cons_at(q);
                p.write(Term::NON_VALUE);
                p.add(1).write(c);
                *slot = c;
            }
            TAG_BOXED => {
                let p = t.ptr();
                let a = p as usize;
                if !self.mine(a) {
                    self.outside(slot);
                    return;
                }
                let h = *p;
                if h.is_boxed() {
                    *slot = h;
                    self.notes.note(h);
                    return;
                }
                let n = layout::object_words(p);
                let q = self.take(a, n);
                q.write(h);
                for i in 1..n {
                    q.add(i).write(*p.add(i));
                }
                let c = Term::boxed_at(q);
                p.write(c);
                *slot = c;
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn mine(&self, a: usize) -> bool {
        a.wrapping_sub(self.young) < self.young_len
            || a.wrapping_sub(self.old) < self.old_len
            || (!self.frags.is_empty() && within(self.frags, a))
    }

    /// Room for the copy of what lies at `a`.
    #[inline(always)]
    unsafe fn take(&mut self, a: usize, n: usize) -> *mut Term {
        if a.wrapping_sub(self.young) < self.promote_len {
            let q = self.old_top;
            self.old_top = q.add(n);
            q
        } else {
            let q = self.top;
            self.top = q.add(n);
            q
        }
    }

    /// A pointer that leads out of the heap.
    #[inline(always)]
    unsafe fn outside(&mut self, slot: *mut Term) {
        if !self.literals.is_empty() && self.forward_literal(slot) {
            return;
        }
        self.notes.note(*slot);
    }

    /// Copies out what lies among the literals that are to be left. True if `slot` did.
    #[cold]
    unsafe fn forward_literal(&mut self, slot: *mut Term) -> bool {
        let t = *slot;
        let p = t.ptr();
        if !within(self.literals, p as usize) {
            return false;
        }
        if let Some(&c) = self.copied.get(&t.raw()) {
            *slot = c;
            return true;
        }
        let q = self.top;
        let n = match t.is_list_ptr() {
            true => 2,
            false => layout::object_words(p),
        };
        // What is the heap's own was counted by the word; what comes from outside, by a walk.
        if (self.limit as usize).saturating_sub(q as usize) < n * 8 {
            fatal("more is copied out of regions than was counted");
        }
        std::ptr::copy_nonoverlapping(p, q, n);
        self.top = q.add(n);
        let c = if t.is_list_ptr() {
            Term::cons_at(q)
        } else {
            retain_object(q, &mut self.copied_off_heap);
            Term::boxed_at(q)
        };
        self.copied.insert(t.raw(), c);
        *slot = c;
        true
    }

    unsafe fn scan_young(&mut self, mut p: *mut Term) -> *mut Term {
        if self.young_len + self.old_len < FETCHED_BYTES {
            while p < self.top {
                p = self.scan_at(p);
            }
            return p;
        }
        while p < self.top {
            fetch_ahead(p, self.top);
            p = self.scan_at(p);
        }
        p
    }
    unsafe fn scan_old(&mut self, mut p: *mut Term) -> *mut Term {
        if p == self.old_top {
            return p;
        }
        // A region is noted anew for each generation.
        (self.notes.in_old, self.notes.last) = (true, (0, 0));
        while p < self.old_top {
            fetch_ahead(p, self.old_top);
            p = self.scan_at(p);
        }
        (self.notes.in_old, self.notes.last) = (false, (0, 0));
        p
    }

    /// Forwards the term at `p`, or steps over the raw words of the object that starts there. Gives the next word to
    /// look at.
    #[inline(always)]
    unsafe fn scan_at(&mut self, p: *mut Term) -> *mut Term {
        let w = (*p).raw();
        match w & 3 {
            TAG_IMMED => p.add(1),
            TAG_HEADER => self.scan_header(p, w),
            TAG_LIST => self.scan_list(p),
            _ => {
                self.forward(p);
                p.add(1)
            }
        }
    }

    /// As [`Mover::scan_at`], where a list is. As long as cells are put right behind the word that is looked at, and have
    /// nothing but immediates in them, the next cell is known without reading back what was just written.
    #[inline(always)]
    unsafe fn scan_list(&mut self, mut slot: *mut Term) -> *mut Term {
        let mut t = *slot;
        loop {
            let p = t.ptr();
            let a = p as usize;
            if !self.mine(a) {
                self.outside(slot);
                return slot.add(1);
            }
            let h = *p;
            let tl = *p.add(1);
            if h == Term::NON_VALUE {
                *slot = tl;
                // Marked by `mark_sent`.
                self.notes.note(tl);
                return slot.add(1);
            }
            let q = self.take(a, 2);
            q.write(h);
            q.add(1).write(tl);
            let c = Term::cons_at(q);
            p.write(Term::NON_VALUE);
            p.add(1).write(c);
            *slot = c;
            if q != slot.add(1) || !h.is_immed() || !tl.is_list_ptr() {
                return slot.add(1);
            }
            slot = q.add(1);
            t = tl;
        }
    }

    #[inline(always)]
    unsafe fn scan_header(&mut self, p: *mut Term, w: u64) -> *mut Term {
        match header_subtag(w) {
            Subtag::Tuple => p.add(1),
            Subtag::Fun | Subtag::SubBin => p.add(4),
            Subtag::Map => match layout::map_kind(w) {
                layout::MAP_NODE => p.add(1),
                _ => p.add(2),
            },
            Subtag::MatchContext => {
                self.forward(p.add(1));
                let orig = (*p.add(1)).ptr();
                let base = match header_subtag((*orig).raw()) {
                    Subtag::HeapBin => orig.add(2) as u64,
                    _ => (*orig.add(4)).raw(),
                };
                (p.add(2) as *mut u64).write(base);
                p.add(1 + header_arity(w))
            }
            _ => p.add(1 + header_arity(w)),
        }
    }
}

/// Gives up what the off-heap object at `p` owns.
///
/// # Safety
/// `p` is on an off-heap list and is not used afterwards.
pub unsafe fn release_object(p: *mut Term) {
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

/// Gives up what all objects of a list own, and empties it.
///
/// # Safety
/// The objects are intact and not used afterwards.
pub unsafe fn release_off_heap(list: &mut OffHeap) {
    list.regions.release_all();
    let mut p = list.first;
    while !p.is_null() {
        let next = (*p.add(NEXT)).raw() as *mut Term;
        release_object(p);
        p = next;
    }
    *list = OffHeap::default();
}
