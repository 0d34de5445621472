//! Collecting a large old generation in place: live words are marked in a bitmap, one bit a word,
//! and then slid together in their order. A copying sweep would hold the generation twice while it
//! runs; this takes a fortieth of it in addition, and saves the copy to the old block that the next
//! minor collection would make.
//!
//! # Invariants
//! * The young block was just copied, so that only live young objects are scanned for what they
//!   refer to, and nothing old refers to them. Nor does anything old refer to a message that is
//!   looked at ([`Heap::window`]), or to a fragment: what points there is young.
//! * A marked object has all its words marked. New places are counted from the bitmap, so none is
//!   written before every pointer is known, and within a block a word never moves to a higher place
//!   than its own.
//! * A sent term that also lies in a region is not marked: references to it are redirected to the
//!   region ([`mark_sent`]).
//!
//! # The algorithm
//! 1. Mark. Follows each slot outside the generation that leads into it ([`Marker`]), and sets all
//!    bits of each object met.
//! 2. Count. `before[k]` is the number of live words in front of word `k` of the bitmap. It gives
//!    the new place of a word without any mark in the object: `to`, and 8 bytes for each live word
//!    below it ([`Map::place`]). If little has died, that is all: dead words become free runs
//!    ([`steps::leave`]), and nothing moves.
//! 3. Choose the block: it stays, grows or shrinks in place, or is exchanged for another.
//! 4. Take dead objects off the off-heap list, and link the others by their new places.
//! 5. Redirect roots, stack and young block to the new places.
//! 6. Slide, in the order of addresses: redirect the terms of an object, then move it down.
//!
//! ```text
//! the old block    A A A . . B B . C . . .      A, B, C: live objects; dots: dead words
//! the bitmap       1 1 1 0 0 1 1 0 1 0 0 0
//! afterwards       A A A B B C                  the rest is room, or is cut off
//! ```
//!
//! The bitmap takes a sixty-fourth of the generation, the counts half as much again.

use super::invariants::{fatal, words_between};
use super::regions::{Notes, SeenRegion, mark_sent};
use super::sizes::{STEPS_ABOVE_WORDS, comes_back, died_mostly, old_size_for, spare_words_after};
use super::steps;
use crate::blocks::may_cut_block;
use crate::blocks::{alloc_block, cut_block, decommit_between, free_block, grow_block};
use crate::fence;
use crate::heap::Heap;
use crate::layout::{self, NEXT};
use crate::off_heap::{OffHeap, release_object};
use crate::prefetch::prefetch;
use crate::pressure::is_crowded;
use crate::stress::{self, poison, stress};
use crate::word::{Subtag, TAG_BOXED, TAG_HEADER, TAG_LIST, Term, header_subtag};
use std::sync::atomic::Ordering;

/// Maximum number of words in the generation: places are 32 bits wide.
pub(crate) const MOST_WORDS: usize = u32::MAX as usize;

/// Which words live, and where they go.
pub(super) struct Map {
    /// The address of the generation when the pointers to it were written, and its length in bytes.
    pub(super) base: usize,
    pub(super) len: usize,
    /// One bit for each word.
    pub(super) live: Vec<u64>,
    /// Number of live words before each of the bitmap's words.
    before: Vec<u32>,
    /// The place of the first live word.
    to: usize,
    /// Addresses (start, length) that move: without the part below the first dead word, if the
    /// block stays in place. A pointer there needs no look at the maps.
    moves: (usize, usize),
}

impl Map {
    #[inline(always)]
    pub(super) fn is_live(&self, i: usize) -> bool {
        self.live[i >> 6] >> (i & 63) & 1 != 0
    }
    #[inline(always)]
    pub(super) fn set_live(&mut self, mut i: usize, n: usize) {
        // Most objects lie within one word of the bitmap.
        if n != 0 && (i & 63) + n <= 64 {
            self.live[i >> 6] |= (u64::MAX >> (64 - n)) << (i & 63);
            return;
        }
        let end = i + n;
        while i < end {
            // The part of the object that shares one word of the bitmap.
            let k = (64 - (i & 63)).min(end - i);
            self.live[i >> 6] |= (u64::MAX >> (64 - k)) << (i & 63);
            i += k;
        }
    }
    /// Number of live words below the first dead one.
    fn dense_words(&self) -> usize {
        let full = self.live.iter().position(|&w| w != u64::MAX);
        let i = full.unwrap_or(self.live.len());
        let rest = self.live.get(i).map_or(0, |w| w.trailing_ones() as usize);
        (i * 64 + rest).min(self.len >> 3)
    }
    /// Fills `before`, once everything is marked, and returns the number of live words.
    fn count(&mut self) -> usize {
        let mut n = 0;
        for (b, w) in self.before.iter_mut().zip(&self.live) {
            *b = n as u32;
            n += w.count_ones() as usize;
        }
        n
    }
    /// The new address of the live word that was at `base + 8 * i`.
    #[inline(always)]
    fn place(&self, i: usize) -> usize {
        // Live words below `i`: those of earlier bitmap words, and those of lower bits in its own.
        let below = self.live[i >> 6] & ((1 << (i & 63)) - 1);
        self.to + (self.before[i >> 6] as usize + below.count_ones() as usize) * 8
    }
    /// Redirects the term in `slot` to its new place, if it points into the generation.
    ///
    /// # Safety
    /// `slot` may be read and written, and holds a term; every live object that it may point to is
    /// marked in the map.
    #[inline(always)]
    unsafe fn redirect(&self, slot: *mut Term) {
        // SAFETY: by the contract. `place` returns the new address of a live object of the same
        // kind.
        unsafe {
            let t = *slot;
            let tag = t.raw() & 3;
            if tag != TAG_LIST && tag != TAG_BOXED {
                return;
            }
            let a = t.ptr() as usize;
            // An address below the start wraps round to a large number: one comparison tests both
            // ends.
            if a.wrapping_sub(self.moves.0) < self.moves.1 {
                *slot = Term::from_raw(self.place((a - self.base) >> 3) as u64 | tag);
            }
        }
    }
    /// As [`Map::redirect`], for all terms of the object at `p`.
    ///
    /// # Safety
    /// `p` is the start of a whole object; otherwise as for [`Map::redirect`].
    #[inline(always)]
    unsafe fn redirect_object(&self, p: *mut Term) {
        // A match context also has the address of its bytes. If the binary is a heap binary, these
        // bytes move with it.
        // SAFETY: by the contract: a whole object, so all words that its header implies may be read
        // and written.
        unsafe {
            let context = header_subtag((*p).raw()) as u8 == Subtag::MatchContext as u8;
            // If the binary is on the heap, the address of the bytes follows it.
            let inside = context && (*p.add(2)).raw() == (*p.add(1)).ptr() as u64 + 16;
            let (a, b) = layout::term_range(p);
            for k in a..b {
                self.redirect(p.add(k));
            }
            if inside {
                (p.add(2) as *mut u64).write((*p.add(1)).ptr() as u64 + 16);
            }
        }
    }
    /// As [`Map::redirect`], for all terms in the words at `p`, which are whole objects.
    ///
    /// # Safety
    /// The words are initialised, and may be written to; otherwise as for [`Map::redirect`].
    unsafe fn redirect_area(&self, p: *mut Term, words: usize) {
        let mut i = 0;
        // SAFETY: by the contract: `q` is the start of a whole object, or a slot of a cell.
        unsafe {
            while i < words {
                let q = p.add(i);
                // A word without a header's tag is a slot of a cell. `NON_VALUE` has that tag, and
                // is a single word.
                if *q == Term::NON_VALUE || !(*q).is_header() {
                    self.redirect(q);
                    i += 1;
                } else {
                    self.redirect_object(q);
                    i += layout::object_words(q);
                }
            }
        }
    }
    /// As [`Map::redirect`], for all slots outside the generation: roots, the stack, and the young
    /// block.
    ///
    /// # Safety
    /// These slots hold terms of the heap; otherwise as for [`Map::redirect`].
    unsafe fn redirect_all(&self, heap: &Heap, roots: &mut [&mut [Term]]) {
        // SAFETY: by the contract, all slots hold terms of the heap.
        unsafe {
            for r in roots.iter_mut() {
                for t in r.iter_mut() {
                    self.redirect(t);
                }
            }
            for i in 0..heap.stack_words() {
                self.redirect(heap.stop.add(i));
            }
            self.redirect_area(heap.heap, heap.used_words());
        }
    }
    /// Moves the live words, which now lie at `from`: that is `to`, or a block apart from it.
    /// Returns the end of what was moved.
    ///
    /// # Safety
    /// The words of the generation are at `from`, and may be written to there and where the map
    /// says that they go. Nobody reads them meanwhile.
    unsafe fn slide(&self, from: *mut Term) -> *mut Term {
        let mut to = self.to as *mut Term;
        let words = self.len >> 3;
        let mut i = 0;
        while i < words {
            let rest = self.live[i >> 6] >> (i & 63);
            // Nothing lives up to the end of this word of the bitmap.
            if rest == 0 {
                i = (i | 63) + 1;
                continue;
            }
            i += rest.trailing_zeros() as usize;
            // SAFETY: `i` is less than the number of words.
            let p = unsafe { from.add(i) };
            // An object starts here, or this is a slot of a cell: objects are stepped over as a
            // whole.
            // SAFETY: by the contract. A header is the start of a whole live object; what lies at
            // `to` was moved already, or is dead.
            unsafe {
                if (*p).raw() & 3 == TAG_HEADER {
                    let n = layout::object_words(p);
                    self.redirect_object(p);
                    if to != p {
                        // `copy`, not `copy_nonoverlapping`: the object may move by less than its
                        // own length.
                        std::ptr::copy(p, to, n);
                    }
                    to = to.add(n);
                    i += n;
                } else {
                    self.redirect(p);
                    if to != p {
                        to.write(*p);
                    }
                    to = to.add(1);
                    i += 1;
                }
            }
        }
        to
    }
}

/// Number of pending slots whose targets are being prefetched. A power of two; more than memory
/// fetches at once is no use.
const AHEAD: usize = 16;

/// Marks roughly in the order of a depth-first walk. A slot's target is not looked at with the
/// slot, which would wait for memory each time, but [`AHEAD`] slots later.
pub(super) struct Marker<'a> {
    pub(super) map: Map,
    pub(super) notes: Notes<'a>,
    /// Areas of slots (start, end) that are still to be looked at.
    todo: Vec<(*mut Term, *mut Term)>,
    /// Pending slots that point into the generation, in a ring: those from `taken` to `put`.
    ahead: [*mut Term; AHEAD],
    put: usize,
    taken: usize,
}

impl<'a> Marker<'a> {
    /// A marker of `words` words at `base`, none of which is marked.
    pub(super) fn new(base: *mut Term, words: usize, notes: Notes<'a>) -> Marker<'a> {
        Marker {
            map: Map {
                base: base as usize,
                len: words * 8,
                live: vec![0; (words >> 6) + 1],
                before: Vec::new(),
                to: base as usize,
                moves: (base as usize, words * 8),
            },
            notes,
            todo: Vec::new(),
            ahead: [std::ptr::null_mut(); AHEAD],
            put: 0,
            taken: 0,
        }
    }
    /// Marks everything that the pending slots lead to.
    ///
    /// # Safety
    /// As for [`Marker::advance`].
    unsafe fn finish(&mut self) {
        // SAFETY: by the contract of [`Marker::advance`].
        unsafe { while !self.advance(usize::MAX) {} }
    }
    /// Marks what the pending slots lead to, and looks at no more than about `slots` slots. Returns
    /// whether nothing is left to look at.
    ///
    /// # Safety
    /// The pending slots are initialised and have not moved; the objects of the generation are
    /// whole, and those whose bit is set were marked by this marker.
    pub(super) unsafe fn advance(&mut self, slots: usize) -> bool {
        // SAFETY: by the contract.
        unsafe { self.meet_pending_again() };
        let mut seen = 0;
        loop {
            // SAFETY: by the contract. Areas to do are slots of marked objects, and a slot is
            // pending when the ring is visited.
            unsafe {
                while let Some((mut at, end)) = self.todo.pop() {
                    let from = at;
                    // Slots are added until the ring is full; then one of them is visited, which
                    // makes room for one.
                    while at < end && self.put - self.taken < AHEAD {
                        self.meet(at);
                        at = at.add(1);
                    }
                    seen += (at as usize - from as usize) >> 3;
                    // The rest of the area goes back first, so that the object visited now is
                    // looked at before it: depth first.
                    if at < end {
                        self.todo.push((at, end));
                        self.visit_next();
                    }
                    // The pending slots stay for the next step: they lie in the old generation,
                    // which does not move.
                    if seen >= slots {
                        return false;
                    }
                }
                if self.taken == self.put {
                    return true;
                }
                self.visit_next();
            }
        }
    }
    /// Marks the target of a slot outside the generation, if it points there. The slot is not kept:
    /// it may move before the next step.
    ///
    /// # Safety
    /// `slot` may be read and written, and holds a term of the heap.
    pub(super) unsafe fn mark_root(&mut self, slot: *mut Term) {
        // SAFETY: by the contract; a pointer inside leads to a whole object of the generation.
        unsafe {
            let t = *slot;
            let inside = (t.ptr() as usize).wrapping_sub(self.map.base) < self.map.len;
            if inside
                && (t.is_list_ptr() || t.is_boxed())
                && let Some(range) = self.visit(slot)
            {
                self.todo.push(range);
            }
        }
    }
    /// Adds `slot` to the pending slots if it points into the generation. The ring has room for it.
    ///
    /// # Safety
    /// `slot` may be read and written until it is visited, and holds a term of the heap.
    #[inline(always)]
    unsafe fn meet(&mut self, slot: *mut Term) {
        // SAFETY: by the contract, the slot holds a term.
        let t = unsafe { *slot };
        let tag = t.raw() & 3;
        if tag != TAG_LIST && tag != TAG_BOXED {
            return;
        }
        let p = t.ptr();
        let at = (p as usize).wrapping_sub(self.map.base);
        // It points elsewhere, perhaps to a region. Everything else outside needs no mark.
        if at >= self.map.len {
            self.notes.note(t);
        } else {
            // Its bit is needed then, too: to know whether it was marked.
            prefetch(p);
            prefetch(self.map.live.as_ptr().wrapping_add(at >> 9) as *const Term);
            self.ahead[self.put % AHEAD] = slot;
            self.put += 1;
        }
    }
    /// Meets the pending slots once more. Between two steps the process runs, and may have written
    /// to one of them ([`Heap::write_to`]): it need not lead into the generation any more.
    ///
    /// # Safety
    /// As for [`Marker::advance`].
    #[inline]
    unsafe fn meet_pending_again(&mut self) {
        let before = self.ahead;
        let pending = std::mem::take(&mut self.taken)..std::mem::take(&mut self.put);
        for k in pending {
            // SAFETY: by the contract; the ring had room for all of them.
            unsafe { self.meet(before[k % AHEAD]) };
        }
    }
    /// Visits the oldest pending slot.
    ///
    /// # Safety
    /// A slot is pending, and was not written to since this step began; otherwise as for
    /// [`Marker::advance`].
    #[inline(always)]
    unsafe fn visit_next(&mut self) {
        let slot = self.ahead[self.taken % AHEAD];
        self.taken += 1;
        // SAFETY: by the contract: a pending slot is a pointer into the generation.
        unsafe {
            if let Some(range) = self.visit(slot) {
                self.todo.push(range);
            }
        }
    }
    /// Marks the target of `*slot`. Returns its slots that may hold terms, if it was not marked
    /// before.
    ///
    /// # Safety
    /// `*slot` is a pointer into the generation, to a whole object.
    #[inline(always)]
    unsafe fn visit(&mut self, slot: *mut Term) -> Option<(*mut Term, *mut Term)> {
        // SAFETY: by the contract. The object is whole, or has a forwarding mark.
        unsafe {
            let t = *slot;
            let p = t.ptr();
            let i = (p as usize).wrapping_sub(self.map.base) >> 3;
            if self.map.is_live(i) {
                return None;
            }
            let h = *p;
            if t.is_list_ptr() {
                // A forwarding mark of `mark_sent`: the cell also lies in a region.
                if h == Term::NON_VALUE {
                    return self.sent(slot, *p.add(1));
                }
                self.map.set_live(i, 2);
                return slots(p, 0, 2);
            }
            // No header has this tag: it is a forwarding mark of `mark_sent`.
            if h.is_boxed() {
                return self.sent(slot, h);
            }
            self.map.set_live(i, layout::object_words(p));
            let (a, b) = layout::term_range(p);
            slots(p, a, b)
        }
    }
    /// Redirects `*slot` to `to`, the copy of a sent term.
    ///
    /// # Safety
    /// `*slot` leads to an object with a forwarding mark to `to`, which is in a region that the
    /// heap holds.
    #[cold]
    unsafe fn sent(&mut self, slot: *mut Term, to: Term) -> Option<(*mut Term, *mut Term)> {
        // SAFETY: by the contract, the slot may be written.
        unsafe {
            *slot = to;
            self.notes.note(to);
            None
        }
    }
    /// Adds a slot outside the generation to the pending ones. Regions that it points into were
    /// noted when it was copied.
    ///
    /// # Safety
    /// As for [`Marker::meet`].
    #[inline(always)]
    unsafe fn mark_from(&mut self, slot: *mut Term) {
        // SAFETY: by the contract; the ring has room for the slot.
        unsafe {
            let t = *slot;
            let inside = (t.ptr() as usize).wrapping_sub(self.map.base) < self.map.len;
            if inside && (t.is_list_ptr() || t.is_boxed()) {
                // `meet` needs room in the ring.
                if self.put - self.taken == AHEAD {
                    self.finish();
                }
                self.meet(slot);
            }
        }
    }
    /// Marks everything that the three kinds of slots outside the generation lead to: roots, the
    /// stack, and the young block.
    ///
    /// # Safety
    /// These slots hold terms of the heap; the young block was just copied.
    unsafe fn mark_all(&mut self, heap: &Heap, roots: &mut [&mut [Term]]) {
        // SAFETY: by the contract; the slots stay in place until the marker has finished.
        unsafe {
            for r in roots.iter_mut() {
                for t in r.iter_mut() {
                    self.mark_from(t);
                }
            }
            for i in 0..heap.stack_words() {
                self.mark_from(heap.stop.add(i));
            }
            self.mark_area(heap.heap, heap.used_words());
            self.finish();
        }
    }
    /// As [`Marker::mark_from`], for the words at `p`, which are whole objects.
    ///
    /// # Safety
    /// The words are initialised, and stay in place until the marker has finished.
    unsafe fn mark_area(&mut self, p: *mut Term, words: usize) {
        let mut i = 0;
        // SAFETY: by the contract: `q` is the start of a whole object, or a slot of a cell.
        unsafe {
            while i < words {
                let q = p.add(i);
                if *q == Term::NON_VALUE || !(*q).is_header() {
                    self.mark_from(q);
                    i += 1;
                    continue;
                }
                let (a, b) = layout::term_range(q);
                for k in a..b {
                    self.mark_from(q.add(k));
                }
                i += layout::object_words(q);
            }
        }
    }
}

/// Those slots of `p` from `a` to `b` that are to be looked at: a few in front that point nowhere
/// are left out, which is all of many an object.
///
/// # Safety
/// The slots may be read, and hold terms.
#[inline(always)]
unsafe fn slots(p: *mut Term, mut a: usize, b: usize) -> Option<(*mut Term, *mut Term)> {
    let few = b.min(a + FEW_SLOTS);
    // SAFETY: by the contract, the slots may be read.
    unsafe {
        while a < few && !((*p.add(a)).is_list_ptr() || (*p.add(a)).is_boxed()) {
            a += 1;
        }
        (a < b).then(|| (p.add(a), p.add(b)))
    }
}

/// Number of slots in front that [`slots`] checks.
const FEW_SLOTS: usize = 4;

/// Size of the block afterwards.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Room {
    /// With room for what will be promoted.
    Grow,
    /// Only what is used, and a little more if the generation is large.
    Exact,
}

/// Marks what lives in the old generation, and releases the regions that nothing alive refers to.
/// Adds the others, and the terms in them, to `seen`.
///
/// # Safety
/// As for [`collect`].
unsafe fn mark(heap: &mut Heap, roots: &mut [&mut [Term]], seen: &mut Vec<SeenRegion>) -> Map {
    let base = heap.old_heap as usize;
    let len = heap.old_htop as usize - base;
    let mut m = Marker::new(heap.old_heap, len >> 3, Notes::new(true, Some(seen)));
    m.map.before = vec![0; m.map.live.len()];
    // Kept until everything is marked: it may be the only thing that keeps the regions alive.
    // SAFETY: the sent terms are live, and everything that refers to them is marked or copied right
    // after this.
    let sent = unsafe { mark_sent(|a| a.wrapping_sub(base) < len, &mut heap.sent) };
    // Hints to what is about to move are dropped: a heap this large is seldom collected in place.
    if let Some(s) = &mut heap.sent
        && !s.keep(|t| (t.ptr() as usize).wrapping_sub(base) >= len)
    {
        heap.sent = None;
    }
    // SAFETY: the slots hold terms of the heap, and the young block was just copied.
    unsafe { m.mark_all(heap, roots) };
    // Free runs and a sweep in steps know places that are about to change. By now, `seen` holds the
    // regions that the sweep held and that anything alive refers to.
    //
    // SAFETY: the heap still holds all regions that it held.
    unsafe { steps::forget(heap) };
    let (map, regions) = (m.map, m.notes.seen);
    // SAFETY: everything live was marked or copied before, and its regions are in `regions`.
    unsafe { heap.old_off_heap.regions.keep_only(regions) };
    drop(sent);
    map
}

/// Collects the old generation; returns the number of live words. Adds the regions that are
/// referred to, and the terms in them, to `seen`.
///
/// # Safety
/// As for [`super::collect`]; the young block was just copied, and there are no fragments. The old
/// generation has at most [`MOST_WORDS`] words.
pub(crate) unsafe fn collect(
    heap: &mut Heap,
    roots: &mut [&mut [Term]],
    seen: &mut Vec<SeenRegion>,
    room: Room,
) -> usize {
    heap.collections = heap.collections.wrapping_add(1);
    let base = heap.old_heap as usize;
    let len = heap.old_htop as usize - base;
    // `before` counts in 32 bits.
    if len >> 3 > MOST_WORDS {
        fatal("an old generation of more words than there are places for");
    }
    // SAFETY: by the contract, which is the same.
    let mut map = unsafe { mark(heap, roots, seen) };
    let words = map.count();
    heap.dies_old = died_mostly(len >> 3, words);
    let block = heap.old_block_words();
    // SAFETY: the map has everything live, and nothing is known of runs and steps any more.
    unsafe {
        if room == Room::Grow && stays(heap, len >> 3, words) {
            steps::leave(heap, &mut map, words);
            return words;
        }
    }
    let want = wanted_words(heap, room, len >> 3, words);
    // Mapped blocks grow and shrink in place; others are exchanged.
    // SAFETY: the old block came from `alloc_block`, and only its new address is used.
    let grown = unsafe {
        want > block
            && grow_block(heap.old_heap, block, want).is_some_and(|p| {
                heap.old_heap = p;
                true
            })
    };
    // With a fence nothing slides: memory to which there may be pointers is protected as a
    // whole.
    let apart = (want != block || fence::on()) && !grown && !may_cut_block(block, want);
    let from = heap.old_heap;
    let to = match apart {
        true if want == 0 => std::ptr::null_mut(),
        true => alloc_block(want),
        false => from,
    };
    // From here on `place` returns addresses of the new block.
    map.to = to as usize;
    if map.to == base {
        let dense = map.dense_words() * 8;
        map.moves = (base + dense, len - dense);
    }

    // `grow_block` may have moved the block as a whole; pointers still have the old addresses,
    // which the map knows.
    let delta = (from as usize).wrapping_sub(base);
    // SAFETY: the map has everything live; the words of the generation are at `from`, and those at
    // `to` are this heap's.
    unsafe {
        move_list(&mut heap.old_off_heap, &map, delta);
        map.redirect_all(heap, roots);
        // Every slot outside was redirected above. The slide redirects the slots inside, each
        // before its object moves.
        if map.slide(from) != to.add(words) {
            fatal("a compaction moved other words than it had counted");
        }
    }

    heap.old_heap = to;
    // SAFETY: `to` has `want` words, and the live ones fit; `from` still has those of the old
    // block.
    let end = unsafe {
        heap.old_htop = to.add(words);
        heap.old_hend = to.add(want);
        from.add(len >> 3)
    };
    // SAFETY: everything live lies at `to`, and the rest is not used any more.
    unsafe {
        match apart {
            true => {
                if stress() {
                    poison(from, len >> 3);
                }
                let _doing = fence::doing(&"in a full collection, of what is old");
                free_block(from, block);
            }
            false => give_back_rest(heap, end, block, want, room),
        }
    }
    words
}

/// Number of words that the block of a generation of `used` words, `live` of them live, is to have.
fn wanted_words(heap: &Heap, room: Room, used: usize, live: usize) -> usize {
    match room {
        // The next promoted terms have room at once, and the generation need not be swept for them.
        Room::Exact if live > STEPS_ABOVE_WORDS.load(Ordering::Relaxed) && !is_crowded() => {
            live + live / 8
        }
        Room::Exact => live,
        Room::Grow => {
            let block = heap.old_block_words();
            let young = heap.used_words();
            let spare = spare_words_after(used, live, is_crowded());
            let want = old_size_for(live + spare.max(young), is_crowded());
            let want = match stress::roll(2) {
                true => live + stress::below(2 * young + 64),
                false => want,
            };
            // A block that has the room and is not twice as large as wanted stays.
            let fits = !is_crowded() && block >= live + young + spare / 2 && block / 2 <= want;
            if fits && !stress::roll(2) {
                block
            } else {
                want
            }
        }
    }
}

/// Gives back what a collection has left of the block of the old generation, in which objects lay
/// up to `end`: cuts it from `block` words to `want`, and gives back pages.
///
/// # Safety
/// Nothing live lies behind `old_htop`; the block came from `alloc_block` and has at least `want`
/// words.
unsafe fn give_back_rest(heap: &mut Heap, end: *mut Term, block: usize, want: usize, room: Room) {
    // SAFETY: by the contract, the words behind `old_htop` are not in use.
    unsafe {
        if stress() {
            poison(heap.old_htop, (end as usize - heap.old_htop as usize) >> 3);
        }
        if want < block {
            cut_block(heap.old_heap, block, want);
        }
        // Pages behind the live words that were in use go back to the system; those behind `end`
        // were not in use. A process that computes comes back to them soon, and getting them again
        // costs more than the promotions there.
        let end = end.min(heap.old_hend);
        if room == Room::Exact
            || !comes_back(words_between(heap.old_htop, end), heap.serves, is_crowded())
        {
            decommit_between(heap.old_htop, end);
        }
    }
}

/// Whether a generation of `used` words, `live` of them live, is left in place: little has died,
/// and there is room. Otherwise the next full collection would find the same again, as happens to a
/// process that hibernates with a large state, or asks for a collection, each time that it has
/// changed a little.
fn stays(heap: &Heap, used: usize, live: usize) -> bool {
    let room = heap.old_block_words() - used;
    let few = used - live <= live / DEAD_PART || stress::roll(2);
    let fits = room >= heap.used_words() + spare_words_after(used, live, false) / 2;
    few && fits && live > 0 && !is_crowded() && !fence::on()
}

/// Largest number of dead words left in place, as a part of the live ones.
const DEAD_PART: usize = 16;

/// Releases what the dying objects of the list own, and links the others by their future places.
/// They now lie `delta` bytes from where the map knows them.
///
/// # Safety
/// The list is that of the generation, which the map has marked; its objects have not moved, except
/// by the `delta` bytes.
unsafe fn move_list(list: &mut OffHeap, map: &Map, delta: usize) {
    let mut p = std::mem::replace(&mut list.first, std::ptr::null_mut());
    list.bytes = 0;
    while !p.is_null() {
        let i = (p as usize).wrapping_sub(map.base) >> 3;
        let here = p.wrapping_byte_add(delta);
        // SAFETY: `here` is an object of the list in its present place, whole by the contract.
        unsafe {
            let next = (*here.add(NEXT)).raw() as *mut Term;
            if map.is_live(i) {
                if header_subtag((*here).raw()) as u8 == Subtag::RefcBin as u8 {
                    list.bytes += (*here.add(1)).raw() as usize;
                }
                (here.add(NEXT) as *mut u64).write(list.first as u64);
                list.first = map.place(i) as *mut Term;
            } else {
                release_object(here);
            }
            p = next;
        }
    }
}
