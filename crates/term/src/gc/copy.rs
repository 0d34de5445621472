//! One copy of what is live: Cheney's scan. The objects that were copied and not yet scanned are
//! the work queue.
//!
//! # The algorithm
//! 1. Allocates a new young block, and copies the stack to its end.
//! 2. Forwards roots and stack slots ([`Mover::forward`]): copies the object that a slot points at,
//!    redirects the slot to the copy, and leaves a forwarding mark behind, so that the next slot
//!    that points there finds the copy.
//! 3. Scans the copies from first to last, and forwards each slot in them. When both scans have
//!    caught up with the copies, everything reachable has been copied.
//! 4. Objects on the off-heap lists without a forwarding mark have died: releases what they own.
//!    Also releases regions that nothing referred to.
//! 5. Frees the old young block and the fragments; in a full sweep the old block, too.
//!
//! ```text
//! new young block:  scanned | copied, to be scanned | free | the stack
//!                   ^block  ^y                      ^top   ^stop      ^hend
//!
//! old block:  as it was | promoted, scanned | promoted, to be scanned | free, or free runs
//!             ^old_heap ^old_start          ^o                        ^old_top
//! ```
//! Free runs: see `steps`.
//!
//! # Invariants
//! * Until the object was copied, only its mark is written over it: word 0 of a boxed object, both
//!   words of a cell. Word 2, the link of the off-heap list, stays readable until the lists were
//!   swept.
//! * `old_top` and `top` only grow, and below them there are only whole objects.

use super::invariants::{fatal, words_between};
use super::regions::{Notes, SeenRegion, mark_sent, moved_to};
use super::sizes::{FETCHED_BYTES, MOST_IN_RUN_WORDS};
use super::steps::{self, Runs};
use crate::blocks::{MAP_ABOVE_WORDS, alloc_block, decommit_between, free_block};
use crate::copy::retain_object;
use crate::fence;
use crate::heap::Heap;
use crate::layout;
use crate::off_heap::{OffHeap, sweep};
use crate::prefetch::prefetch;
use crate::pressure::is_coarse;
use crate::region_set::RegionSet;
use crate::sent_terms::SentTerm;
use crate::stress::{poison, stress};
use crate::word::{Subtag, TAG_BOXED, TAG_HEADER, TAG_IMMED, TAG_LIST, Term};
use crate::word::{header, header_arity, header_subtag};
use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Young block and fragments; promotes what is below the high-water mark.
    Minor,
    /// Both generations and fragments.
    Full,
    /// Young block and fragments, without promotion: the old generation is collected in place
    /// afterwards.
    Young,
    /// The young block only, without promotion: to change its size.
    Resize,
}

impl Kind {
    /// The phase that a report of the fence names.
    fn phase(self) -> &'static &'static str {
        match self {
            Kind::Minor => &"in a minor collection",
            Kind::Full => &"in a full collection",
            Kind::Young => &"in a full collection, of what is young",
            Kind::Resize => &"as a heap was resized",
        }
    }
}

/// Copies what is live into a new young block of `size` words, which must suffice if everything
/// lives.
///
/// # Safety
/// As for [`super::collect`]; `seen` is filled for this pass alone, and `leaving` are areas of
/// regions that are alive.
pub(super) unsafe fn pass(
    heap: &mut Heap,
    size: usize,
    roots: &mut [&mut [Term]],
    kind: Kind,
    leaving: &[(usize, usize)],
    seen: &mut Vec<SeenRegion>,
) -> usize {
    heap.collections = heap.collections.wrapping_add(1);
    let _doing = fence::doing(kind.phase());
    let block = alloc_block(size);
    let stack = heap.stack_words();
    // SAFETY: the new block has `size` words, enough for everything, the stack included.
    let (stop, hend) = unsafe { copy_stack(heap, block, size) };
    let frags = match kind {
        Kind::Resize => Vec::new(),
        _ => fragment_areas(heap),
    };
    // Objects from here on were promoted by this copy, and need a scan.
    let old_start = heap.old_htop;
    // Taken out of the heap, so that the mover may write to them.
    let mut runs = heap.runs.take();
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
        leaving,
        copied: HashMap::new(),
        copied_off_heap: OffHeap::default(),
        notes: Notes::new(
            kind != Kind::Resize,
            matches!(kind, Kind::Full | Kind::Young).then_some(seen),
        ),
        top: block,
        limit: stop,
        old_top: heap.old_htop,
        old_end: heap.old_hend,
        runs: None,
        passed: Vec::new(),
    };
    if kind == Kind::Minor
        && let Some(r) = runs.as_mut().filter(|r| r.free_words() > 0)
    {
        m.use_runs(r);
    }
    // Kept until the copy is done: it may be the only thing that keeps the regions alive.
    let marked = if kind == Kind::Resize {
        Vec::new()
    } else {
        // SAFETY: the sent terms are live, and the whole heap is copied right after this.
        unsafe { mark_sent(|a| m.mine(a), &mut heap.sent) }
    };
    // SAFETY: by the contract; the copied stack has as many slots.
    let into_runs = unsafe { m.copy_live(roots, stop, stack, block, old_start) };
    // SAFETY: the terms have moved, and their old places still have the forwarding marks.
    unsafe { m.follow_hints(heap, old_start) };
    // The block was sized for the case that everything lives. If it was too small, the heap is
    // damaged, and so is the memory behind it.
    if m.top > stop || m.old_top > heap.old_hend {
        fatal("a collection ran out of room");
    }
    let promoted = words_between(old_start, m.old_top) + into_runs;
    let moved = words_between(block, m.top) + promoted;
    let met = Met {
        off_heap: std::mem::take(&mut m.copied_off_heap),
        regions: std::mem::take(&mut m.notes.seen),
        regions_of_old: std::mem::take(m.notes.seen_old()),
    };
    let (top, old_top) = (m.top, m.old_top);
    heap.runs = runs;
    // SAFETY: everything live was moved, and `met` has what the mover has met.
    unsafe {
        sweep_lists(heap, kind, met, marked, old_top);
        free_left(heap, kind, stack);
    }
    if kind != Kind::Full {
        heap.old_htop = old_top;
    }
    if kind == Kind::Minor {
        heap.promoted = promoted;
    }
    (heap.heap, heap.htop) = (block, top);
    // Everything that is left has survived once. In the window nothing counts as such: see the
    // invariants in the module head of `gc`.
    heap.high_water = if heap.window { block } else { top };
    (heap.stop, heap.hend) = (stop, hend);
    moved
}

/// Copies the stack to the end of a block of `size` words: it moves as it is, and its slots are
/// forwarded in their new place. Returns its start and end.
///
/// # Safety
/// The block has `size` words, enough for the stack, and is not part of the heap yet.
#[inline]
unsafe fn copy_stack(heap: &Heap, block: *mut Term, size: usize) -> (*mut Term, *mut Term) {
    let stack = heap.stack_words();
    // SAFETY: by the contract.
    unsafe {
        let hend = block.add(size);
        let stop = hend.sub(stack);
        if stack > 0 {
            move_stack(heap, stop);
        }
        (stop, hend)
    }
}

/// Words of a large stack that are moved at a time where memory is limited.
const STACK_PIECE_WORDS: usize = 1 << 15;

/// Copies the stack to `to`. Its old place has undefined contents from then on: where memory is
/// limited, a large stack is never there twice.
///
/// # Safety
/// `to` has room for the stack, and is not part of the heap.
#[inline]
pub(super) unsafe fn move_stack(heap: &Heap, to: *mut Term) {
    let stack = heap.stack_words();
    // SAFETY: by the contract.
    unsafe {
        match is_coarse(stack * 8) && heap.block_words() > MAP_ABOVE_WORDS && !stress() {
            true => move_in_pieces(heap, to, stack),
            false => std::ptr::copy_nonoverlapping(heap.stop, to, stack),
        }
    }
}

/// The same, piece by piece. Each is given back to the system as soon as it was copied.
///
/// # Safety
/// As for [`move_stack`]; the block of the heap is mapped.
#[cold]
unsafe fn move_in_pieces(heap: &Heap, to: *mut Term, stack: usize) {
    let mut left = stack;
    while left > 0 {
        let n = left.min(STACK_PIECE_WORDS);
        left -= n;
        // SAFETY: by the contract. What lies behind has been copied.
        unsafe {
            let from = heap.stop.add(left);
            std::ptr::copy_nonoverlapping(from, to.add(left), n);
            if !fence::on() {
                decommit_between(from, from.add(n));
            }
        }
    }
}

/// The areas of the fragments as (start, end), sorted for the binary search of [`within`].
fn fragment_areas(heap: &Heap) -> Vec<(usize, usize)> {
    let areas = heap.frags.iter().flat_map(|f| f.areas());
    let mut all: Vec<(usize, usize)> = areas
        .filter(|a| a.1 > 0)
        .map(|(p, n)| (p as usize, p as usize + n * 8))
        .collect();
    all.sort_unstable();
    all
}

/// Belongings of the copied objects: objects copied out of regions, and the regions that young and
/// promoted objects refer to.
struct Met {
    off_heap: OffHeap,
    regions: RegionSet,
    regions_of_old: RegionSet,
}

/// Releases the regions and off-heap objects that the copy has not met. `marked` are the sent terms
/// that were left to their regions; it holds these until the heap does.
///
/// # Safety
/// Everything live was moved, and left its forwarding mark. `met` has what the copy has met, and
/// `old_top` is the end of promoted objects.
unsafe fn sweep_lists(
    heap: &mut Heap,
    kind: Kind,
    mut met: Met,
    marked: Vec<SentTerm>,
    old_top: *mut Term,
) {
    let mut regions = std::mem::take(&mut heap.off_heap.regions);
    let mut old_regions = std::mem::take(&mut heap.old_off_heap.regions);
    // SAFETY: the scan has noted every region that live terms point into, so none points into the
    // others.
    unsafe {
        match kind {
            // Only the size changes and nothing dies: regions are held as before.
            Kind::Resize => {}
            Kind::Young => regions.keep_only(met.regions),
            // Everything young and live was scanned. What old objects refer to is older than they
            // are.
            Kind::Minor => {
                regions.keep_only(met.regions);
                steps::hold_promoted(heap, &met.regions_of_old);
                old_regions.append(&mut met.regions_of_old);
            }
            Kind::Full => {
                // The old generation was copied with the young one, so there is one list for all.
                regions.keep_only(met.regions);
                old_regions.release_all();
            }
        }
    }
    drop(marked);
    // The area of promoted objects only, not of those that were just copied.
    let (old_lo, old_hi) = match kind {
        Kind::Minor => (heap.old_heap as usize, old_top as usize),
        _ => (0, 0),
    };
    let mut young = met.off_heap;
    // Forwarding marks show which objects live, and their targets which list they belong to. So
    // this comes before the blocks are freed.
    //
    // SAFETY: by the contract, the lists' objects are marked or dead; no word but the first was
    // overwritten.
    unsafe {
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
    }
    heap.off_heap = young;
    heap.off_heap.regions.append(&mut regions);
    heap.old_off_heap.regions.append(&mut old_regions);
}

/// Frees the memory that the copy has left: the young block and the fragments, and after a full
/// sweep the old block.
///
/// # Safety
/// Everything live was moved and the lists were swept, so nothing uses that memory. The heap holds
/// the regions that it points into.
unsafe fn free_left(heap: &mut Heap, kind: Kind, stack: usize) {
    // SAFETY: by the contract; the blocks came from `alloc_block`.
    unsafe {
        if stress() {
            poison(heap.heap, heap.used_words());
            poison(heap.stop, stack);
            for f in &heap.frags {
                for (p, n) in f.areas() {
                    poison(p, n);
                }
            }
        }
        // An inline block belongs to the process's cell: the heap leaves it for good.
        if !heap.inline_block {
            free_block(heap.heap, heap.block_words());
        }
    }
    heap.inline_block = false;
    heap.frags = Vec::new();
    heap.frag_words = 0;
    if kind == Kind::Full {
        // SAFETY: by the contract.
        unsafe {
            if stress() {
                poison(heap.old_heap, words_between(heap.old_heap, heap.old_htop));
            }
            free_block(heap.old_heap, heap.old_block_words());
            let n = std::ptr::null_mut();
            (heap.old_heap, heap.old_htop, heap.old_hend) = (n, n, n);
            steps::forget(heap);
        }
    }
}

/// Tuples of at least `LONG_TUPLE` elements are scanned separately, `IN_A_ROW` elements at a time.
const LONG_TUPLE: usize = 32;
const IN_A_ROW: usize = 8;

/// Runs of cells of fewer words are scanned like any others.
const LEAST_PASSED_WORDS: usize = 8;

/// The state of one copy. Areas are (start, length) or (start, end) in bytes.
struct Mover<'a> {
    young: usize,
    young_len: usize,
    /// Number of bytes at the start of the young block that go to the old one.
    promote_len: usize,
    old: usize,
    old_len: usize,
    /// Sorted.
    frags: &'a [(usize, usize)],
    /// Sorted. Shared with other processes, hence without forwarding marks: `copied` takes their
    /// place.
    leaving: &'a [(usize, usize)],
    copied: HashMap<u64, Term>,
    copied_off_heap: OffHeap,
    notes: Notes<'a>,
    top: *mut Term,
    /// The start of the stack in the new block.
    limit: *mut Term,
    /// The place of the next promoted object, and the end of the words available there: those of
    /// the old block, or of a free run in it.
    old_top: *mut Term,
    old_end: *mut Term,
    runs: Option<Filling<'a>>,
    passed: Vec<Passed>,
}

/// Cells among the copies that the scan skips: see [`Mover::copy_run`].
struct Passed {
    /// The head of the first of them, which a mark replaces.
    head: Term,
    /// The next word to scan.
    to: *mut Term,
}

/// Free runs of the old generation that a collection fills: see [`super::steps`].
struct Filling<'a> {
    from: &'a mut Runs,
    /// The runs taken: how far each was scanned, where its objects start and end, and where the run
    /// ends. For the last one, which is being filled, its objects end at [`Mover::old_top`].
    taken: Vec<Taken>,
    /// The first of them that may not be scanned to its end.
    scanned: usize,
    /// The end of the block, behind everything promoted before: for objects that fit no run.
    tail: *mut Term,
    tail_end: *mut Term,
}

struct Taken {
    scan: *mut Term,
    start: *mut Term,
    top: *mut Term,
    end: *mut Term,
}

/// Whether address `a` lies in one of the areas, which are sorted and do not overlap.
fn within(areas: &[(usize, usize)], a: usize) -> bool {
    let i = areas.partition_point(|&(lo, _)| lo <= a);
    i > 0 && a < areas[i - 1].1
}

impl<'a> Mover<'a> {
    /// Copies everything that is reachable from the roots and the `stack` slots at `stop`. Scans
    /// the young block from `block` on, and the old one from `old_start` on. Returns the number of
    /// words that went into runs.
    ///
    /// # Safety
    /// Roots and slots hold terms of the heap, whose objects are whole, and nothing was copied yet.
    unsafe fn copy_live(
        &mut self,
        roots: &mut [&mut [Term]],
        stop: *mut Term,
        stack: usize,
        block: *mut Term,
        old_start: *mut Term,
    ) -> usize {
        // SAFETY: by the contract.
        unsafe {
            for r in roots.iter_mut() {
                for t in r.iter_mut() {
                    self.forward(t);
                }
            }
            // Return addresses have a header's tag, and catch marks are immediates: both stay as
            // they are.
            for i in 0..stack {
                self.forward(stop.add(i));
            }
        }
        // Scanning young objects may promote. Scanning promoted objects only promotes more, since
        // they refer to older objects only. So the loop ends when the young scan has caught up and
        // the old one has followed.
        let (mut y, mut o) = (block, old_start);
        // SAFETY: both scans begin at the first object of this copy, and continue where they ended.
        // After the loop everything promoted is scanned.
        unsafe {
            loop {
                y = self.scan_young(y);
                o = match self.runs.is_some() {
                    true => self.scan_runs(o),
                    false => self.scan_old(o),
                };
                if y == self.top {
                    break;
                }
            }
            self.leave_runs()
        }
    }
    /// Updates the hints of sent terms, or removes those of dead ones. The old generation ended at
    /// `old_start`.
    ///
    /// # Safety
    /// The copy is over, and old places still have their forwarding marks.
    unsafe fn follow_hints(&self, heap: &mut Heap, old_start: *mut Term) {
        let old = heap.old_heap as usize..old_start as usize;
        let Some(s) = &mut heap.sent else { return };
        s.follow(|t| match self.mine(t.ptr() as usize) {
            // SAFETY: by the contract.
            true => unsafe { moved_to(t, |_| true) },
            // Memory in neither generation was that of a message, and another term may come to lie
            // there.
            false => old.contains(&(t.ptr() as usize)).then_some(t),
        });
    }
    /// Redirects the term in `*slot` to the new place of its object, which it moves if that has not
    /// happened yet.
    ///
    /// # Safety
    /// `slot` may be written to, and holds a term of the heap, whose objects are whole or have
    /// forwarding marks.
    #[inline(always)]
    unsafe fn forward(&mut self, slot: *mut Term) {
        // SAFETY: by the contract, the slot holds a term.
        let t = unsafe { *slot };
        match t.raw() & 3 {
            TAG_LIST => {
                let p = t.ptr();
                // SAFETY: by the contract. A cell that moves is whole, or has the mark of a cell.
                unsafe {
                    if !self.mine(p as usize) {
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
                    self.move_cell(slot, p, h, tl);
                }
            }
            TAG_BOXED => {
                let p = t.ptr();
                let a = p as usize;
                // SAFETY: by the contract. An object that moves is whole, or has a forwarding mark;
                // `take` returns as many words as it has.
                unsafe {
                    if !self.mine(a) {
                        self.outside(slot);
                        return;
                    }
                    let h = *p;
                    // A header never has this tag: it is a forwarding mark.
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
            }
            _ => {}
        }
    }

    /// Copies the cell at `p`, which `*slot` points at and whose words are `head` and `tail`,
    /// redirects the slot to the copy, and leaves the mark of a cell behind. Returns the copy's
    /// place.
    ///
    /// # Safety
    /// As for [`Mover::forward`]; the cell is to be moved, and has not been.
    #[inline(always)]
    unsafe fn move_cell(
        &mut self,
        slot: *mut Term,
        p: *mut Term,
        head: Term,
        tail: Term,
    ) -> *mut Term {
        // SAFETY: by the contract: `slot` and the cell may be written, and `take` returns two
        // words.
        unsafe {
            let q = self.take(p as usize, 2);
            q.write(head);
            q.add(1).write(tail);
            let c = Term::cons_at(q);
            p.write(Term::NON_VALUE);
            p.add(1).write(c);
            *slot = c;
            q
        }
    }

    /// Whether this copy moves what lies at `a`. An address below an area wraps round to a large
    /// number, so that one comparison tests both ends.
    #[inline(always)]
    fn mine(&self, a: usize) -> bool {
        a.wrapping_sub(self.young) < self.young_len
            || a.wrapping_sub(self.old) < self.old_len
            || (!self.frags.is_empty() && within(self.frags, a))
    }

    /// Returns room of `n` words for the copy of what lies at `a`.
    ///
    /// # Safety
    /// There are `n` words for each object that moves: the new block is as large as everything that
    /// may live, and so is the room for promoted objects.
    #[inline(always)]
    unsafe fn take(&mut self, a: usize, n: usize) -> *mut Term {
        // Objects below the high-water mark have survived a collection already.
        if a.wrapping_sub(self.young) < self.promote_len {
            let q = self.old_top;
            // SAFETY: by the contract: the words are inside the old block or the run, as checked.
            unsafe {
                if (self.old_end as usize) - (q as usize) < n * 8 {
                    return self.promote_elsewhere(n);
                }
                self.old_top = q.add(n);
                q
            }
        } else {
            let q = self.top;
            // SAFETY: by the contract, the new block has room for them.
            self.top = unsafe { q.add(n) };
            q
        }
    }

    /// Puts promoted objects into free runs first.
    fn use_runs(&mut self, from: &'a mut Runs) {
        let end = self.old_end;
        self.runs = Some(Filling {
            from,
            taken: Vec::new(),
            scanned: 0,
            tail: self.old_top,
            tail_end: end,
        });
        // No run is being filled yet. No room: the first promoted object goes to
        // `promote_elsewhere`, which takes a run.
        self.old_end = self.old_top;
    }

    /// Returns room for an object of `n` words that does not fit behind the one promoted last.
    ///
    /// # Safety
    /// As for [`Mover::take`]; the tail has room for everything that finds no run.
    #[cold]
    #[inline(never)]
    unsafe fn promote_elsewhere(&mut self, n: usize) -> *mut Term {
        let Some(f) = &mut self.runs else {
            fatal("an old generation ran out of room");
        };
        if n <= MOST_IN_RUN_WORDS
            && let Some((p, words)) = f.from.take(n)
        {
            // The previous run is closed: `leave_runs` gives back the rest of it.
            if let Some(last) = f.taken.last_mut() {
                last.top = self.old_top;
            }
            // SAFETY: the run has `words` words, at least `n`.
            unsafe {
                f.taken.push(Taken {
                    scan: p,
                    start: p,
                    top: p,
                    end: p.add(words),
                });
                self.old_top = p.add(n);
                self.old_end = p.add(words);
                return p;
            }
        }
        // Too long for any run, or there is none: it goes to the end of the block, which has room
        // for everything that may be promoted.
        let q = f.tail;
        if (f.tail_end as usize) - (q as usize) < n * 8 {
            fatal("an old generation ran out of room");
        }
        // SAFETY: the tail has room for `n` words, as checked.
        f.tail = unsafe { q.add(n) };
        q
    }

    /// As [`Mover::scan_old`], for the tail from `tail` on, and for the runs.
    ///
    /// # Safety
    /// As for [`Mover::scan_young`].
    unsafe fn scan_runs(&mut self, mut tail: *mut Term) -> *mut Term {
        self.notes.look_through(true);
        loop {
            let begun = tail;
            // SAFETY: `tail` is the end of scanned objects, and below the end of the tail all
            // objects are whole.
            unsafe {
                while let Some(end) = self.runs.as_ref().map(|f| f.tail).filter(|&end| tail < end) {
                    fetch_ahead(tail, end);
                    tail = self.scan_at(tail);
                }
            }
            // Each of the two scans may promote to the other's area: both continue until neither
            // finds anything.
            let mut any = tail != begun;
            // SAFETY: `p` is the end of scanned objects in run `i`, below the end of those promoted
            // there.
            unsafe {
                while let Some((i, mut p)) = self.next_in_runs() {
                    any = true;
                    // The scan may end this run and take the next.
                    while p < self.end_in_run(i) {
                        p = self.scan_at(p);
                    }
                    if let Some(f) = &mut self.runs {
                        f.taken[i].scan = p;
                    }
                }
            }
            if !any {
                break;
            }
        }
        self.notes.look_through(false);
        tail
    }

    /// The first run with objects that were not scanned yet, and the first of those.
    fn next_in_runs(&mut self) -> Option<(usize, *mut Term)> {
        loop {
            let i = self.runs.as_ref()?.scanned;
            let p = self.runs.as_ref()?.taken.get(i)?.scan;
            if p < self.end_in_run(i) {
                return Some((i, p));
            }
            let f = self.runs.as_mut()?;
            // The last one is still being filled, so it stays the one to look at.
            if i + 1 == f.taken.len() {
                return None;
            }
            f.scanned += 1;
        }
    }

    /// The end of the objects promoted to run `i`.
    fn end_in_run(&self, i: usize) -> *mut Term {
        match &self.runs {
            Some(f) if i + 1 < f.taken.len() => f.taken[i].top,
            _ => self.old_top,
        }
    }

    /// Gives back what was not filled, and returns the number of words that were. From now on,
    /// [`Mover::old_top`] is the end of the tail.
    ///
    /// # Safety
    /// Everything promoted is scanned.
    unsafe fn leave_runs(&mut self) -> usize {
        let Some(mut f) = self.runs.take() else {
            return 0;
        };
        if let Some(last) = f.taken.last_mut() {
            last.top = self.old_top;
        }
        // `old_top` was that of the run being filled; the heap needs the end of the tail.
        (self.old_top, self.old_end) = (f.tail, f.tail_end);
        let mut words = 0;
        let n = f.taken.len();
        // SAFETY: the words of a run taken belong to it, and everything below its `top` was
        // promoted.
        unsafe {
            for (i, t) in f.taken.iter().enumerate() {
                // Only the last run is used again, if it has room: the others were too short for an
                // object.
                f.from.close(t.start, t.top, t.end, i + 1 == n);
                words += words_between(t.start, t.top);
            }
        }
        words
    }

    /// Handles a pointer that leads out of the heap.
    ///
    /// # Safety
    /// `*slot` is a pointer to no word of this heap that moves; otherwise as for
    /// [`Mover::forward`].
    #[inline(always)]
    unsafe fn outside(&mut self, slot: *mut Term) {
        // SAFETY: by the contract.
        unsafe {
            if !self.leaving.is_empty() && self.forward_leaving(slot) {
                return;
            }
            self.notes.note(*slot);
        }
    }

    /// Copies out an object in a region that is to be left. Returns whether `slot` pointed to one.
    ///
    /// # Safety
    /// As for [`Mover::outside`].
    #[cold]
    unsafe fn forward_leaving(&mut self, slot: *mut Term) -> bool {
        // SAFETY: by the contract; the regions are live, so their objects are whole, and room was
        // checked.
        unsafe {
            let t = *slot;
            let p = t.ptr();
            if !within(self.leaving, p as usize) {
                return false;
            }
            // A region is shared with other processes and never written to, so a table takes the
            // place of forwarding marks.
            if let Some(&c) = self.copied.get(&t.raw()) {
                *slot = c;
                return true;
            }
            let q = self.top;
            let n = match t.is_list_ptr() {
                true => 2,
                false => layout::object_words(p),
            };
            // The heap's own words were counted exactly; those from outside, by a walk.
            if (self.limit as usize).saturating_sub(q as usize) < n * 8 {
                fatal("more is copied out of regions than was counted");
            }
            std::ptr::copy_nonoverlapping(p, q, n);
            self.top = q.add(n);
            let c = if t.is_list_ptr() {
                Term::cons_at(q)
            } else {
                // The original stays where it is, so the copy owns a hold of its own.
                retain_object(q, &mut self.copied_off_heap);
                Term::boxed_at(q)
            };
            self.copied.insert(t.raw(), c);
            *slot = c;
            true
        }
    }

    /// Forwards what the copies refer to, from `p` to the last one that exists by then. Returns the
    /// place to continue.
    ///
    /// # Safety
    /// `p` is in the block that is filled, at the start of a whole object or at its end: what lies
    /// between `p` and the top was copied by this mover.
    unsafe fn scan_young(&mut self, mut p: *mut Term) -> *mut Term {
        // A small heap lies in the caches: fetching ahead would only cost.
        // SAFETY: by the contract: everything from `p` to the top is whole objects of this copy.
        unsafe {
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
    }
    /// As [`Mover::scan_young`], for objects promoted behind the old generation. Meanwhile, regions
    /// are noted for the old one.
    ///
    /// # Safety
    /// As for [`Mover::scan_young`], for the old generation.
    unsafe fn scan_old(&mut self, mut p: *mut Term) -> *mut Term {
        if p == self.old_top {
            return p;
        }
        self.notes.look_through(true);
        // SAFETY: by the contract: everything from `p` to `old_top` is whole objects of this copy.
        unsafe {
            while p < self.old_top {
                fetch_ahead(p, self.old_top);
                p = self.scan_at(p);
            }
        }
        self.notes.look_through(false);
        p
    }

    /// Forwards the term at `p`, or steps over the raw words of the object that starts there.
    /// Returns the next word to look at.
    ///
    /// # Safety
    /// `p` is a word that was copied: a cell's slot, a term of an object or the header of a whole
    /// one.
    #[inline(always)]
    unsafe fn scan_at(&mut self, p: *mut Term) -> *mut Term {
        // SAFETY: by the contract: `p` is a copied word, and whole objects follow their header.
        unsafe {
            let w = (*p).raw();
            match w & 3 {
                TAG_IMMED => p.add(1),
                // The most frequent by far.
                TAG_HEADER if header_subtag(w) == Subtag::Tuple => match header_arity(w) {
                    n @ LONG_TUPLE.. => self.scan_tuple(p.add(1), n),
                    _ => p.add(1),
                },
                TAG_HEADER => self.scan_header(p, w),
                TAG_LIST => self.scan_list(p),
                _ => {
                    self.forward(p);
                    p.add(1)
                }
            }
        }
    }

    /// As [`Mover::scan_at`], for the `n` elements of a long tuple from `p` on: consecutive
    /// immediates are stepped over together.
    ///
    /// # Safety
    /// As for [`Mover::scan_at`]; there are `n` elements.
    #[inline(never)]
    unsafe fn scan_tuple(&mut self, mut p: *mut Term, n: usize) -> *mut Term {
        // SAFETY: by the contract: `n` elements of a copied tuple.
        unsafe {
            let end = p.add(n);
            while p < end {
                while words_between(p, end) >= IN_A_ROW
                    && (0..IN_A_ROW).fold(TAG_IMMED, |all, i| all & (*p.add(i)).raw()) & 3
                        == TAG_IMMED
                {
                    p = p.add(IN_A_ROW);
                }
                // The last one may be a list whose cells lie right behind it.
                let next = end.min(p.add(IN_A_ROW));
                while p < next {
                    fetch_ahead(p, end);
                    p = match (*p).raw() & 3 {
                        TAG_LIST => self.scan_list(p),
                        _ => {
                            self.forward(p);
                            p.add(1)
                        }
                    };
                }
            }
            p
        }
    }

    /// As [`Mover::scan_at`], for a list. As long as cells go right behind the word that is looked
    /// at and hold only immediates, the next cell is known without reading back what was just
    /// written.
    ///
    /// # Safety
    /// `*slot` is a pointer to a cell; otherwise as for [`Mover::scan_at`].
    #[inline(always)]
    unsafe fn scan_list(&mut self, mut slot: *mut Term) -> *mut Term {
        // SAFETY: by the contract. A cell in the old space is whole, or holds a forwarding mark.
        // Its copy has two words, at the end of the new space.
        unsafe {
            let mut t = *slot;
            loop {
                let p = t.ptr();
                if !self.mine(p as usize) {
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
                let q = self.move_cell(slot, p, h, tl);
                // The next cell goes right behind this one, and its head needs no look: continue
                // with its tail at once.
                if !h.is_immed() || !tl.is_list_ptr() {
                    return slot.add(1);
                }
                if q != slot.add(1) {
                    self.copy_run(q, tl);
                    return slot.add(1);
                }
                slot = q.add(1);
                t = tl;
            }
        }
    }

    /// Copies what follows the cell at `first`, which has the tail `t`, as long as the cells go
    /// right behind it and hold only immediates: a string, or a list of numbers or of atoms. Such a
    /// list then lies in one piece and is not looked at twice: a mark in place of its first head
    /// leads the scan past it.
    ///
    /// # Safety
    /// As for [`Mover::scan_list`]; the cell was just copied, its head is an immediate, and `t`
    /// points to a cell.
    #[inline(never)]
    unsafe fn copy_run(&mut self, first: *mut Term, mut t: Term) {
        // SAFETY: by the contract. Cells that move are whole or have marks; `first` and `slot` are
        // words of the copies.
        unsafe {
            let mut slot = first.add(1);
            loop {
                let p = t.ptr();
                if !self.mine(p as usize) {
                    break;
                }
                let (h, tl) = (*p, *p.add(1));
                // Already moved: a header is the mark of a cell.
                if h == Term::NON_VALUE {
                    break;
                }
                let q = self.move_cell(slot, p, h, tl);
                // In the other generation, or in another run of it.
                if q != slot.add(1) {
                    slot = slot.add(1);
                    break;
                }
                if !h.is_immed() {
                    slot = q;
                    break;
                }
                slot = q.add(1);
                if !tl.is_list_ptr() {
                    break;
                }
                t = tl;
            }
            if words_between(first, slot) >= LEAST_PASSED_WORDS {
                let mark = header(Subtag::UnusedB, self.passed.len());
                let head = *first;
                self.passed.push(Passed { head, to: slot });
                first.write(Term::from_raw(mark));
            }
        }
    }

    /// Restores the head that mark `i` at `p` replaces. Returns the next word to look at.
    ///
    /// # Safety
    /// As for [`Mover::scan_header`].
    #[inline(never)]
    unsafe fn pass_by(&mut self, p: *mut Term, i: usize) -> *mut Term {
        let passed = &self.passed[i];
        // SAFETY: `p` is the word where `copy_run` has put the mark.
        unsafe {
            p.write(passed.head);
            passed.to
        }
    }

    /// Steps over the words of an object that are no terms, as drawn in `layout`. The terms behind
    /// them are scanned like any words.
    ///
    /// # Safety
    /// `w` is the header at `p`, of a whole object.
    #[inline(always)]
    unsafe fn scan_header(&mut self, p: *mut Term, w: u64) -> *mut Term {
        // SAFETY: by the contract: a whole object, whose words are as drawn in `layout`.
        unsafe {
            match header_subtag(w) {
                Subtag::Tuple | Subtag::Record => p.add(1),
                // Words 1 to 3 are raw; the creator and the environment, or the original, follow.
                Subtag::Fun | Subtag::SubBin => p.add(4),
                Subtag::Map => match layout::map_kind(w) {
                    // An inner node has children only; the others have their size in word 1.
                    layout::MAP_NODE => p.add(1),
                    _ => p.add(2),
                },
                Subtag::MatchContext => {
                    // The context has the address of the original's bytes. They have moved if the
                    // original is a heap binary, so the address is computed anew; the words behind
                    // it are numbers.
                    self.forward(p.add(1));
                    let orig = (*p.add(1)).ptr();
                    let base = match header_subtag((*orig).raw()) {
                        Subtag::HeapBin => orig.add(2) as u64,
                        _ => (*orig.add(4)).raw(),
                    };
                    (p.add(2) as *mut u64).write(base);
                    p.add(1 + header_arity(w))
                }
                Subtag::UnusedB => self.pass_by(p, header_arity(w)),
                // Numbers, floats, bytes, references, external terms: none of their words is a term
                // of this heap.
                _ => p.add(1 + header_arity(w)),
            }
        }
    }
}

/// Prefetches the target of a word some way behind `p`, if that word is below `top`; the scan will
/// copy it.
///
/// # Safety
/// The words from `p` to `top` are initialised.
#[inline(always)]
unsafe fn fetch_ahead(p: *mut Term, top: *mut Term) {
    // Distance ahead of the scan, in words.
    const WORDS: usize = 12;
    let q = p.wrapping_add(WORDS);
    // SAFETY: `q` is below `top`, so it is initialised by the contract.
    unsafe {
        if q < top {
            let t = *q;
            if t.raw() & 3 == TAG_LIST || t.raw() & 3 == TAG_BOXED {
                prefetch(t.ptr());
            }
        }
    }
}
