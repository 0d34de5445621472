//! Sweeping a large old generation in steps, so that nobody waits for all of it: live objects are
//! marked, dead ones become free runs in place, and promoted objects take the place of dead ones.
//! Nothing moves.
//!
//! A sweep begins after a minor collection of a process that waits now and then, when half of the
//! generation's room is used up. (A process that only computes is done sooner if its old generation
//! is collected at once when its room is gone.) It continues, a bounded number of words at a time,
//! after each further minor collection and whenever the process begins to wait ([`step`]). A full
//! collection that finds that little has died ends as a sweep does, all at once ([`leave`]).
//!
//! # Why no barrier is needed
//! * Terms do not change, and nothing old refers to anything younger. So what is reachable in the
//!   old generation is what was reachable as the marking began, and what was promoted since. The
//!   former is found from the roots of that moment, each slot of which was looked at before the
//!   process ran on; the latter counts as live until the next sweep.
//! * Regions that marked objects refer to are held, and so are those that promoted objects refer
//!   to. The others are handed to the young generation, whose next collection lets them go: young
//!   objects may point there, if they found them while the old generation held them.
//!
//! # Invariants
//! * The generation can be walked at any time: a free run has a bignum header, or
//!   [`Term::NON_VALUE`] if it has one word.
//! * Objects that own something leave the off-heap list, and give up what they own, before their
//!   words become a run.
//! * The words of a run are marked when something is promoted there during a sweep.
//! * Earlier runs are no longer used once new ones are looked for: the same words must not be in
//!   two runs.
//! * The end of the block is kept free for a collection that promotes everything, for which runs
//!   give no guarantee.
//!
//! # The phases
//! ```text
//! Mark ── nothing left to look at ──> Owners ── end of the list ──> Runs ── end of bitmap ──> over
//!
//! old block:  what was old as the sweep began | promoted since | room
//!             ^base                           ^base + len      ^old_htop  ^old_hend
//!             (has a bit for each word)         (counts as live)
//! ```
//! * **Mark** follows pointers from the slots of the beginning, and sets the bits of what it meets
//!   ([`Marker`]).
//! * **Owners** walks the off-heap list and removes what has no bit. Only then may the words of
//!   dead objects be overwritten.
//! * **Runs** walks the bitmap and writes a free run over each stretch without a bit.
//!
//! The process runs between any two steps. So each step leaves a generation that can be walked,
//! collected and verified.

use super::compact::{Map, Marker};
use super::regions::Notes;
use super::sizes::*;
use crate::background_free;
use crate::blocks::{decommit_between, extend_block};
use crate::heap::Heap;
use crate::layout::{self, NEXT};
use crate::off_heap::release_object;
use crate::pressure::is_crowded;
use crate::region::Region;
use crate::region_set::RegionSet;
use crate::stress::{self, poison, stress};
use crate::word::{Subtag, Term, header, header_subtag};
use std::sync::atomic::Ordering;

/// The state of an old generation that was, or is being, swept in steps.
#[derive(Default)]
pub struct Runs {
    /// Free runs in the order of their addresses: start and number of words. Those before `next`
    /// were taken.
    free: Vec<(*mut Term, usize)>,
    next: usize,
    /// Words in the free runs.
    free_words: usize,
    /// Words promoted since the last sweep ended.
    promoted: usize,
    /// Words that lived when the last sweep ended.
    lived: usize,
    /// Bytes of the generation's binaries when the last sweep ended.
    lived_bytes: usize,
    sweep: Option<Box<Sweep>>,
}

/// A sweep that is under way.
struct Sweep {
    marker: Marker<'static>,
    phase: Phase,
    /// The regions of objects promoted since it began, and of terms written to old objects.
    promoted_regions: RegionSet,
    found: Found,
}

/// The results of the search for runs.
#[derive(Default)]
struct Found {
    live_words: usize,
    /// A long run, whose pages are given back before it is used.
    giving: Option<Giving>,
}

/// A run of `words` words, of which `given` were given back.
struct Giving {
    start: *mut Term,
    words: usize,
    given: usize,
}

enum Phase {
    Mark,
    /// Looks at the objects that own something. The last one looked at that stays; null if there is
    /// none.
    Owners(*mut Term),
    /// Looks for runs, from this word of the bitmap on. The second field is the first of the dead
    /// words of the generation right before it, if there are any.
    Runs(usize, Option<usize>),
}

/// Writes a free run.
///
/// A bignum header has the length, and nothing looks into a bignum. One word has no room for a
/// header with digits.
///
/// # Safety
/// The words are of the old generation, and nothing live is there.
unsafe fn write_run(p: *mut Term, words: usize) {
    // SAFETY: by the contract, nobody uses the words.
    unsafe {
        if words == 1 {
            p.write(Term::NON_VALUE);
        } else if words > 1 {
            if stress() {
                poison(p.add(1), words - 1);
            }
            (p as *mut u64).write(header(Subtag::PosBig, words - 1));
        }
    }
}

impl Runs {
    /// Words in free runs.
    pub(crate) fn free_words(&self) -> usize {
        self.free_words
    }
    /// Whether a sweep is under way.
    pub(crate) fn sweeps(&self) -> bool {
        self.sweep.is_some()
    }
    /// The free runs that may be used: start and number of words.
    pub(crate) fn free_runs(&self) -> &[(*mut Term, usize)] {
        &self.free[self.next..]
    }
    /// Whether the word at address `a` of the old generation is known to be dead and is not yet
    /// part of a run. Its pointers may lead nowhere.
    pub(crate) fn is_dead(&self, a: usize) -> bool {
        let Some(s) = &self.sweep else { return false };
        let m = &s.marker.map;
        let at = a.wrapping_sub(m.base);
        !matches!(s.phase, Phase::Mark) && at < m.len && !m.is_live(at >> 3)
    }
    /// Takes a free run of at least `words` words. Shorter ones before it are left to the next
    /// sweep.
    pub(super) fn take(&mut self, words: usize) -> Option<(*mut Term, usize)> {
        while let Some(&(p, n)) = self.free.get(self.next) {
            self.next += 1;
            self.free_words -= n;
            if n >= words {
                return Some((p, n));
            }
        }
        None
    }
    /// Closes a run taken with [`Runs::take`]: of the words from `start` to `end`, those from `top`
    /// on stay free.
    ///
    /// # Safety
    /// The words belong to that run, and there are only whole objects below `top`.
    pub(super) unsafe fn close(
        &mut self,
        start: *mut Term,
        top: *mut Term,
        end: *mut Term,
        again: bool,
    ) {
        let (used, left) = (
            (top as usize - start as usize) >> 3,
            (end as usize - top as usize) >> 3,
        );
        if let Some(s) = &mut self.sweep {
            let m = &mut s.marker.map;
            let at = (start as usize).wrapping_sub(m.base);
            if at < m.len && used > 0 {
                // Promoted objects live, whatever the marking found about the dead words before.
                m.set_live(at >> 3, used);
            }
        }
        // SAFETY: by the contract, nothing lies between `top` and the end of the run.
        unsafe { write_run(top, left) };
        // The next collection continues to fill this run. `next` stands behind it, so its entry is
        // free.
        if again && left >= LEAST_RUN_WORDS && self.next > 0 {
            self.next -= 1;
            self.free[self.next] = (top, left);
            self.free_words += left;
        }
    }
    fn add(&mut self, start: *mut Term, words: usize) {
        self.free.push((start, words));
        self.free_words += words;
    }
    fn use_no_more(&mut self) {
        self.free.clear();
        (self.next, self.free_words) = (0, 0);
    }
}

/// Forgets what is known of the old generation: it was collected, moved or freed. Releases the
/// regions that a sweep held: the heap holds all that its objects refer to.
///
/// # Safety
/// The heap holds the regions that its terms point to.
pub(super) unsafe fn forget(heap: &mut Heap) {
    // SAFETY: by the contract, the heap holds these regions as well.
    unsafe {
        if let Some(mut r) = heap.runs.take()
            && let Some(s) = &mut r.sweep
        {
            // These holds were the sweep's own, in addition to those of the heap.
            s.marker.notes.seen.release_all();
            s.promoted_regions.release_all();
        }
    }
}

/// Extends the old generation, which is swept in steps, in place by room for `need` words, so that
/// it need not be collected at once for them. Returns false if it has grown enough for what lives
/// there, if the addresses behind it are in use, or if it has never been swept in steps and nobody
/// waits for the process (`serves`). If no sweep is under way, it may have `least_most` words in
/// any case.
///
/// # Safety
/// As for [`super::collect`].
pub(super) unsafe fn make_room(
    heap: &mut Heap,
    need: usize,
    serves: bool,
    least_most: usize,
) -> bool {
    let (old, block) = (heap.old_words(), heap.old_block_words());
    if heap.runs.is_none() && (!serves || old < STEPS_ABOVE_WORDS.load(Ordering::Relaxed)) {
        return false;
    }
    let r = runs_of(heap, 0);
    // During a sweep nobody knows what lives: it gets as much as it takes to finish the sweep.
    let most = match &r.sweep {
        Some(s) => (s.marker.map.len >> 3) / 4 * 5 + 2 * MOST_YOUNG_WORDS,
        None => (r.lived + spare_words(r.lived, is_crowded())).max(least_most),
    };
    let want = old + need + need / 2;
    // SAFETY: by the contract; a heap with runs, or of enough old words, has an old generation.
    unsafe { want <= most && want > block && grow(heap, want, most) }
}

/// Whether `words` words can be promoted; extends the end of the block for them if it may.
///
/// A thread may wait for what comes next. Unless memory is short or a sweep is under way, room is
/// made whatever lives: the sweep in steps that follows finds out.
///
/// # Safety
/// As for [`super::collect`].
pub(super) unsafe fn has_room(heap: &mut Heap, words: usize) -> bool {
    let room = (heap.old_hend as usize - heap.old_htop as usize) >> 3;
    let least_most = match is_crowded() {
        true => 0,
        false => heap.old_words() + 2 * words,
    };
    // SAFETY: by the contract.
    unsafe { heap.old_heap.is_null() || room >= words || make_room(heap, words, true, least_most) }
}

/// Extends the block of the old generation to `to` words in place, or to fewer if there are not
/// enough addresses behind it, but at least to `least` words.
///
/// # Safety
/// The caller owns the heap, which has an old generation.
unsafe fn grow(heap: &mut Heap, least: usize, to: usize) -> bool {
    let block = heap.old_block_words();
    let mut more = to - block;
    // Another user may have the addresses behind the block: half as many are tried, down to a
    // thirty-second of the block.
    // SAFETY: by the contract: the block came from `alloc_block` with its present number of words.
    unsafe {
        while more > 0 && block + more >= least {
            if extend_block(heap.old_heap, block, block + more) {
                heap.old_hend = heap.old_heap.add(block + more);
                return true;
            }
            more /= 2;
            if more < block / 32 {
                break;
            }
        }
    }
    false
}

/// The work after a minor collection that promoted `promoted` words: begins a sweep, or makes a
/// step of the one that is under way. Returns the number of words looked at.
///
/// # Safety
/// As for [`super::collect`]; the young block was just copied, and there are no fragments.
pub(super) unsafe fn after_minor(
    heap: &mut Heap,
    roots: &mut [&mut [Term]],
    promoted: usize,
) -> usize {
    let old = heap.old_words();
    if heap.runs.is_none() && (old < STEPS_ABOVE_WORDS.load(Ordering::Relaxed) || old == 0) {
        // In stress mode small generations are swept so, too.
        if !stress::roll(2) || old == 0 {
            return 0;
        }
    }
    let tail = heap.old_block_words() - old;
    let (bytes, vheap) = (heap.old_off_heap.bytes, heap.old_vheap_bytes);
    let r = runs_of(heap, promoted);
    r.promoted += promoted;
    // SAFETY: by the contract.
    unsafe {
        if r.sweeps() {
            // A sweep that looks at less than is promoted meanwhile would not end before the room
            // is gone. With room enough it goes at the pace of those who wait.
            let least = match tail + r.free_words > old / SPARE_PART {
                true => 0,
                false => (promoted * SLOTS_PER_PROMOTED).min(MOST_STEP_SLOTS),
            };
            return step_by(heap, least);
        }
    }
    // As much was promoted as there is room left: half of it is used up. A sweep for next to
    // nothing is not worth it.
    let used_up = r.promoted >= tail + r.free_words && r.promoted >= r.lived / 16;
    // The binaries fill three quarters of their virtual heap, and have grown by a quarter since the
    // last sweep.
    let pressed = bytes > vheap / 4 * 3 && bytes > r.lived_bytes / 4 * 5;
    // No sweep begins while a message is looked at, nor for a process that only computes.
    if heap.window || !heap.serves || !(used_up || pressed || stress::roll(3)) {
        return 0;
    }
    // SAFETY: by the contract; no sweep is under way, as `sweeps` has just said.
    unsafe { begin(heap, roots) }
}

/// Makes a sweep that is under way keep the regions of promoted objects: it looks only at what was
/// old before.
pub(super) fn hold_promoted(heap: &mut Heap, regions: &RegionSet) {
    if let Some(s) = heap.runs.as_mut().and_then(|r| r.sweep.as_mut()) {
        for region in regions.iter() {
            s.promoted_regions.hold(region);
        }
    }
}

/// As [`hold_promoted`], for the region of a term written to an old object that the sweep may have
/// visited before.
pub(crate) fn hold_written(heap: &mut Heap, region: &'static Region) {
    if let Some(s) = heap.runs.as_mut().and_then(|r| r.sweep.as_mut()) {
        s.promoted_regions.hold(region);
    }
}

/// Asks for a sweep to begin after the next minor collection of a process that waited, however many
/// free runs are left.
pub fn sweep_soon(heap: &mut Heap) {
    if heap.old_words() > 0 {
        runs_of(heap, 0).promoted = usize::MAX / 2;
    }
}

/// The state of the old generation, to which `promoted` words were just promoted.
fn runs_of(heap: &mut Heap, promoted: usize) -> &mut Runs {
    let lived = heap.old_words() - promoted;
    heap.runs.get_or_insert_with(|| {
        Box::new(Runs {
            lived,
            ..Runs::default()
        })
    })
}

/// Begins a sweep: looks at every slot that leads into the old generation.
///
/// # Safety
/// As for [`super::collect`]; the young block was just copied, there are no fragments, and no sweep
/// is under way.
unsafe fn begin(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    let words = heap.old_words();
    // All of these slots are looked at now and not kept: they may move, or be written to, before
    // the next step.
    let mut m = Marker::new(heap.old_heap, words, Notes::new(true, None));
    // SAFETY: roots and stack hold terms of the heap.
    unsafe {
        for r in roots.iter_mut() {
            for t in r.iter_mut() {
                m.mark_root(t);
            }
        }
        for i in 0..heap.stack_words() {
            m.mark_root(heap.stop.add(i));
        }
    }
    let (mut p, end) = (heap.heap, heap.htop);
    while p < end {
        // SAFETY: `p` is below `htop`: the start of a whole object, or a slot of a cell.
        unsafe {
            if *p == Term::NON_VALUE || !(*p).is_header() {
                m.mark_root(p);
                p = p.add(1);
                continue;
            }
            let (a, b) = layout::term_range(p);
            for k in a..b {
                m.mark_root(p.add(k));
            }
            p = p.add(layout::object_words(p));
        }
    }
    let r = heap.runs.get_or_insert_default();
    r.sweep = Some(Box::new(Sweep {
        marker: m,
        phase: Phase::Mark,
        promoted_regions: RegionSet::default(),
        found: Found::default(),
    }));
    // SAFETY: by the contract.
    unsafe { step_by(heap, 0) }
}

fn step_slots() -> usize {
    STEP_SLOTS.load(Ordering::Relaxed)
}

/// Continues a sweep, if one is under way, for as long as a process may reasonably be held up.
/// Returns the number of words looked at.
///
/// # Safety
/// The caller owns the heap, and nobody looks at it meanwhile.
pub unsafe fn step(heap: &mut Heap) -> usize {
    // SAFETY: by the contract.
    unsafe {
        match &heap.runs {
            Some(r) if r.sweeps() => step_by(heap, 0),
            _ => 0,
        }
    }
}

/// Makes a step, which looks at `least` slots, or at more, up to [`STEP_SLOTS`], as long as marking
/// them has not taken [`STEP_TIME`].
///
/// # Safety
/// As for [`step`].
unsafe fn step_by(heap: &mut Heap, least: usize) -> usize {
    let slots = match stress() {
        true => 1 + stress::below([16, 64, 512][stress::below(3)]),
        false => least.max(step_slots()),
    };
    let _doing = crate::fence::doing(&"in a step of a sweep");
    // Runs and sweep are taken out of the heap for the step, and put back after it.
    let Some(mut runs) = heap.runs.take() else {
        return 0;
    };
    let Some(mut s) = runs.sweep.take() else {
        heap.runs = Some(runs);
        return 0;
    };
    // SAFETY: the caller owns the heap, and between two steps of a sweep nothing breaks the
    // invariants in the module head.
    unsafe {
        match s.phase {
            Phase::Mark => {
                if mark_on(&mut s.marker, least, slots) {
                    // By now everything live has its bits; from here on a word without one is dead.
                    forget_dead_sent(heap, &s.marker);
                    s.phase = Phase::Owners(std::ptr::null_mut());
                }
            }
            Phase::Owners(after) => {
                s.phase =
                    match look_at_owners(heap, &s.marker.map, after, slots / SLOTS_PER_OWNER + 1) {
                        Some(p) => Phase::Owners(p),
                        None => {
                            // Runs of the last sweep are dead words for this one, too, and will be
                            // found again, perhaps longer.
                            runs.use_no_more();
                            Phase::Runs(0, None)
                        }
                    };
            }
            Phase::Runs(..) if s.found.giving.is_some() => give_on(&mut s.found, &mut runs),
            Phase::Runs(at, dead) => {
                let (m, found) = (&s.marker.map, &mut s.found);
                if let Some((at, dead)) = find_runs(m, found, &mut runs, at, dead, slots) {
                    s.phase = Phase::Runs(at, dead);
                } else {
                    end(heap, &mut runs, *s);
                    heap.runs = Some(runs);
                    return slots;
                }
            }
        }
    }
    runs.sweep = Some(s);
    heap.runs = Some(runs);
    slots
}

/// Marks from `least` to `slots` slots. Returns true if nothing is left to look at. What a large
/// heap refers to has mostly left the processor's caches, where a slot takes many times as long as
/// otherwise.
///
/// # Safety
/// As for [`Marker::advance`].
unsafe fn mark_on(marker: &mut Marker<'static>, least: usize, slots: usize) -> bool {
    let start = std::time::Instant::now();
    let mut seen = 0;
    // SAFETY: by the contract.
    unsafe {
        while seen < slots {
            let n = SLOTS_BETWEEN_LOOKS.min(slots - seen);
            if marker.advance(n) {
                return true;
            }
            seen += n;
            if seen >= least && start.elapsed() > STEP_TIME {
                break;
            }
        }
    }
    false
}

/// Forgets sent terms that have died: another term may come to lie in their place.
fn forget_dead_sent(heap: &mut Heap, m: &Marker) {
    let Some(sent) = &mut heap.sent else { return };
    let any = sent.keep(|t| {
        let at = (t.ptr() as usize).wrapping_sub(m.map.base);
        at >= m.map.len || m.map.is_live(at >> 3)
    });
    if !any {
        heap.sent = None;
    }
}

/// Removes dead objects from the list of those that own something: looks at `most` objects behind
/// `after`. Returns the last live one of them, or None at the end of the list.
///
/// # Safety
/// `after` is null or an object of the old generation's list, and everything live in the generation
/// is marked in `m`.
unsafe fn look_at_owners(
    heap: &mut Heap,
    m: &Map,
    after: *mut Term,
    most: usize,
) -> Option<*mut Term> {
    let list = &mut heap.old_off_heap;
    let mut last = after;
    for _ in 0..most {
        // SAFETY: objects on the list are whole, and a dead one is unreachable: its words may be
        // overwritten once it is off the list.
        unsafe {
            let p = match last.is_null() {
                true => list.first,
                false => (*last.add(NEXT)).raw() as *mut Term,
            };
            if p.is_null() {
                return None;
            }
            let at = (p as usize).wrapping_sub(m.base);
            // Objects promoted since lie behind the bitmap, and live.
            if at >= m.len || m.is_live(at >> 3) {
                last = p;
                continue;
            }
            let next = (*p.add(NEXT)).raw();
            match last.is_null() {
                true => list.first = next as *mut Term,
                false => (last.add(NEXT) as *mut u64).write(next),
            }
            if header_subtag((*p).raw()) as u8 == Subtag::RefcBin as u8 {
                list.bytes = list.bytes.saturating_sub((*p.add(1)).raw() as usize);
            }
            let words = layout::object_words(p);
            // Off the list first, then its belongings, then its words: a walk of the generation
            // finds a run in its place.
            release_object(p);
            write_run(p, words);
        }
    }
    Some(last)
}

/// Makes runs of dead words, from word `at` of the bitmap on, for about `slots` slots. Returns
/// where to continue, or None at the end.
///
/// # Safety
/// Everything live is marked in `m`; what lies behind word `at` was written to since only by
/// promotions, which are marked.
unsafe fn find_runs(
    m: &Map,
    found: &mut Found,
    runs: &mut Runs,
    mut at: usize,
    mut dead: Option<usize>,
    slots: usize,
) -> Option<(usize, Option<usize>)> {
    let (words, base) = (m.len >> 3, m.base as *mut Term);
    let mut budget = slots;
    let mut giving = None;
    let mut close = |from: usize, to: usize, budget: &mut usize| {
        // SAFETY: the words between are dead by the map, and belong to the generation.
        unsafe {
            let (start, n) = (base.add(from), to - from);
            write_run(start, n);
            *budget = budget.saturating_sub(SLOTS_PER_RUN);
            // Too short to be used, but written all the same, so that the generation can be walked.
            if n < LEAST_RUN_WORDS {
                return;
            }
            // Giving back this many pages would be a long step: `give_on` does it in several, and
            // this step ends.
            if n > GIVEN_AT_ONCE_WORDS || stress::roll(8) {
                giving = Some(Giving {
                    start,
                    words: n,
                    given: 0,
                });
                *budget = 0;
                return;
            }
            runs.add(start, n);
            // The first word is the run's header, and stays.
            if !stress() && decommit_between(start.add(1), start.add(n)) {
                *budget = budget.saturating_sub(n / GIVEN_WORDS_PER_SLOT);
            }
        }
    };
    while at * 64 < words && budget > 0 {
        budget -= 1;
        let bits = m.live[at];
        found.live_words += bits.count_ones() as usize;
        let first = at * 64;
        let end = words.min(first + 64);
        let mut i = first;
        while i < end {
            let rest = bits >> (i - first);
            match dead {
                // Counts the dead ones that follow, or the live ones.
                Some(from) => {
                    let n = (rest.trailing_zeros() as usize).min(end - i);
                    i += n;
                    if i < end {
                        close(from, i, &mut budget);
                        dead = None;
                    }
                }
                None => {
                    let n = (rest.trailing_ones() as usize).min(end - i);
                    i += n;
                    if i < end {
                        dead = Some(i);
                    }
                }
            }
        }
        at += 1;
    }
    let more = at * 64 < words;
    if let (false, Some(from)) = (more, dead) {
        close(from, words, &mut budget);
        dead = None;
    }
    found.giving = giving;
    (more || found.giving.is_some()).then_some((at, dead))
}

/// Gives back another part of a long run to the system. The run may be used when all of it is done.
///
/// # Safety
/// Nobody uses the run that is given back: the heap gives out no words of it.
unsafe fn give_on(found: &mut Found, runs: &mut Runs) {
    let Some(g) = &mut found.giving else { return };
    let n = (g.words - g.given).min(GIVEN_AT_ONCE_WORDS);
    if !stress() {
        // SAFETY: by the contract; the first word, the run's header, stays.
        unsafe {
            let from = g.start.add(g.given.max(1));
            decommit_between(from, g.start.add(g.given + n));
        }
    }
    g.given += n;
    if g.given == g.words {
        runs.add(g.start, g.words);
        found.giving = None;
    }
}

/// Ends a full collection of a generation of which little has died: dead words become free runs, as
/// in a sweep in steps, and nothing moves.
///
/// # Safety
/// Everything live is marked in `map`, and amounts to `live_words`; all that the heap knew of runs
/// and steps is forgotten.
pub(super) unsafe fn leave(heap: &mut Heap, map: &mut Map, live_words: usize) {
    let _doing = crate::fence::doing(&"in a full collection, of what is old");
    // SAFETY: by the contract: unmarked words are dead, and those behind the last marked one are
    // cut off.
    unsafe {
        look_at_owners(heap, map, std::ptr::null_mut(), usize::MAX);
        // Dead words at the end need no run.
        let last = map.live.iter().rposition(|&w| w != 0);
        let words = last.map_or(0, |i| i * 64 + 64 - map.live[i].leading_zeros() as usize);
        let end = heap.old_htop;
        heap.old_htop = heap.old_heap.add(words);
        if stress() {
            poison(heap.old_htop, (end as usize - heap.old_htop as usize) >> 3);
        }
        decommit_between(heap.old_htop, end);
        map.len = words * 8;
        let mut runs = Runs {
            lived: live_words,
            lived_bytes: heap.old_off_heap.bytes,
            ..Runs::default()
        };
        let (mut at, mut dead, mut found) = (0, None, Found::default());
        while let Some(next) = find_runs(map, &mut found, &mut runs, at, dead, usize::MAX) {
            (at, dead) = next;
            while found.giving.is_some() {
                give_on(&mut found, &mut runs);
            }
        }
        heap.runs = Some(Box::new(runs));
    }
}

/// Ends a sweep.
///
/// # Safety
/// The sweep has looked at all words of the old generation of this heap, and at all owners.
unsafe fn end(heap: &mut Heap, runs: &mut Runs, s: Sweep) {
    let Sweep {
        mut marker,
        mut promoted_regions,
        found,
        ..
    } = s;
    let live_words = found.live_words;
    let bits = std::mem::take(&mut marker.map.live);
    if bits.len() * 8 > background_free::ABOVE_BYTES {
        background_free::run(move || drop(bits));
    }
    // Regions of marked and of promoted objects: the old generation holds exactly these from now
    // on.
    let mut regions = marker.notes.seen;
    regions.append(&mut promoted_regions);
    // Code that ran since the marking may have found one of the others held, and point into it:
    // only a young collection can tell. It lets them go if nothing young refers to them.
    let mut before = std::mem::replace(&mut heap.old_off_heap.regions, regions);
    heap.off_heap.regions.append(&mut before);
    heap.region_bytes_kept = heap.off_heap.regions.bytes() + heap.old_off_heap.regions.bytes();
    heap.old_vheap_bytes = vheap_size_for(
        heap.off_heap.bytes + heap.old_off_heap.bytes,
        heap.old_vheap_bytes,
        heap.min_vheap_words,
    );
    // A sweep counts as a full one: the count to `fullsweep_after` starts again.
    heap.minor_gcs = 0;
    runs.promoted = 0;
    runs.lived = live_words;
    runs.lived_bytes = heap.old_off_heap.bytes;
    // Room in proportion to what lives, if the sweep has left much less.
    let (block, room) = (
        heap.old_block_words(),
        spare_words(live_words, is_crowded()),
    );
    let tail = block - heap.old_words();
    if tail + runs.free_words < room / 2 {
        // SAFETY: the caller owns the heap, which has an old generation.
        unsafe { grow(heap, block, block + room - tail - runs.free_words) };
    }
    // If next to nothing lives, it is cheap to gather it.
    if live_words < heap.old_words() / 16 && is_little(heap, live_words) {
        heap.need_fullsweep = true;
    }
}

/// Whether so few words live in the old generation that gathering them takes no longer than others
/// may wait.
fn is_little(heap: &Heap, live_words: usize) -> bool {
    live_words + heap.old_words() / 64 <= MOVED_AT_ONCE_WORDS
}

/// Whether to sweep the old generation of a process that has waited for long in steps, which
/// anybody may interrupt, rather than to move it: it is large, and memory is not short.
pub fn is_swept_idle(heap: &Heap) -> bool {
    let old = heap.old_words();
    let large = old > STEPS_ABOVE_WORDS.load(Ordering::Relaxed) || stress::roll(2);
    large && old > 0 && !heap.window && !is_crowded()
}

/// Whether little lives in an old generation that was just swept, so that it may be moved.
pub fn is_sparse(heap: &Heap) -> bool {
    let swept = heap.runs.as_ref().filter(|r| !r.sweeps());
    swept.is_some_and(|r| r.promoted == 0 && is_little(heap, r.lived))
}
