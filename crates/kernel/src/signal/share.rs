//! Large terms go from process to process, and to tables, without being copied again and again.
//!
//! A message is small things around large ones: `{Reference, {ok, Map}}`, a closure with a list in it. Each part above the
//! threshold is copied once to a region of its own, which the message refers to; the small things are copied with the
//! message. The sender remembers where the part lies (`Heap::sent`): sending it again costs nothing, and the sender's next
//! collection, in place of copying the part, has the sender's references lead to the region. So nothing is paid beyond
//! what a plain copy costs, and there is one copy in memory however many processes hold it. Smaller parts are shared when they
//! are sent a second time: see [`super::again`].

use super::again::{self, Search};
use crate::accounts::{self, Kind};
use crate::cx::Cx;
use crate::message::sharing::threshold;
pub use crate::message::sharing::{
    COPIED, DEFAULT_THRESHOLD, MOVED, SHARED, Tally, asked_threshold, copies, set_threshold,
};
use purlin_term::copy::{self, Measure};
use purlin_term::frag::Fragment;
use purlin_term::graph::{self, Graph};
use purlin_term::heap::Heap;
use purlin_term::region::{self, Builder, Region, is_counted_ptr, is_region_ptr, region_of};
use purlin_term::region_set::RegionSet;
use purlin_term::{Alloc, Term, am, atom, map};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// A part of a region is copied to be kept by itself if it has no more words than this.
const PART_AT_MOST_WORDS: usize = 16 << 20;

/// Words that a copy may take beyond those of what it copies, since it copies twice what is reached twice.
const LOST_WORDS: usize = 1024;

/// A part of at least so many words, if it is most of the sender's heap, is worth a collection at once.
const FORGET_ABOVE_WORDS: usize = 1 << 18;

/// See [`Tally`].
const COUNTED_WORDS: usize = 512;

/// Adds what was copied on this thread since the last time to [`COPIED`].
#[inline]
pub(crate) fn count_words(cx: &mut Cx) {
    if cx.words_copied != 0 {
        COPIED.fetch_add(std::mem::take(&mut cx.words_copied), Ordering::Relaxed);
    }
}

/// Counts a message of `words` words that the process sends.
#[inline]
pub(crate) fn count_copied(cx: &mut Cx, words: usize) {
    let p = cx.process();
    match p.ext().and_then(|e| e.rare()) {
        Some(e) => e.tally.copied += words as u64,
        None if words >= COUNTED_WORDS => p.ext_mut().tally.copied += words as u64,
        None => {}
    }
}

/// Adds to the tally of the process that runs.
#[inline]
pub(super) fn give(tally: Tally, cx: &mut Cx, kind: Kind, what: Term) {
    if tally.moved + tally.shared > 0 {
        accounts::shared(cx, kind, tally.moved, tally.shared, what);
        let t = &mut cx.process().ext_mut().tally;
        t.moved += tally.moved;
        t.shared += tally.shared;
    }
}

/// The holds that a shared term needs until it has been handed on.
#[derive(Default)]
pub struct Held {
    frag: Option<Fragment>,
    regions: RegionSet,
    words: Option<usize>,
}

impl Held {
    #[inline]
    pub(super) fn new(frag: Option<Fragment>, regions: RegionSet, words: Option<usize>) -> Held {
        Held {
            frag,
            regions,
            words,
        }
    }
    /// The regions that the term refers to, with the counts of them: for the one place that it goes to.
    #[inline]
    pub(super) fn take_regions(&mut self) -> RegionSet {
        std::mem::take(&mut self.regions)
    }
    /// Words that a copy of the term takes, where they are known.
    #[inline]
    pub fn words(&self) -> Option<usize> {
        self.words
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: whoever uses the term has a copy, which holds the regions.
        unsafe { self.regions.release_all() };
        if let Some(f) = self.frag.take() {
            destroy(f);
        }
    }
}

/// `t`, or what stands for it with its large parts in regions. The caller copies it to where it goes (which holds the
/// regions) and then drops the second part. `kind` is what it is for, for the accounts.
pub fn share(cx: &mut Cx, kind: Kind, t: Term) -> (Term, Held) {
    let threshold = threshold();
    if t.is_immed() || threshold == usize::MAX || is_region_ptr(t.ptr()) {
        return (t, Held::default());
    }
    let copied = |n| (t, Held::new(None, RegionSet::default(), Some(n)));
    let least = again::least_words(threshold);
    let mut measure = Measure::of(t);
    if least < threshold {
        if let Some(n) = measure.within(least - 1) {
            return copied(n);
        }
        let mut search = Search::of(t, least, threshold);
        if let Some(shared) = search.look(cx, kind, t, Search::first(kind)) {
            return shared;
        }
        if let Some(n) = measure.within(threshold - 1) {
            return match search.look(cx, kind, t, Search::more(kind, n)) {
                Some(shared) => shared,
                None => copied(n),
            };
        }
    }
    let h = &mut cx.heap;
    let mut frag = Fragment::new();
    let mut hit = false;
    if h.knows_any_sent() {
        copy::replace_parts(t, &mut frag, &mut |p| {
            hit |= h.knows_sent(p);
            p
        });
    }
    if !hit && let Some(n) = measure.within(threshold.saturating_sub(1)) {
        destroy(frag);
        return copied(n);
    }
    h.next_message();
    let mut tally = Tally::default();
    let mut stand_ins: SmallVec<[Term; 8]> = SmallVec::new();
    let mut any = false;
    let mut held = RegionSet::default();
    copy::replace_parts(t, &mut frag, &mut |p| {
        let known = !hit && p == t;
        let s = part(h, &mut held, &mut tally, p, threshold, known);
        any |= s.is_some();
        stand_ins.push(s.unwrap_or(p));
        p
    });
    destroy(frag);
    let mut frag = Fragment::new();
    let term = if any {
        let mut next = stand_ins.into_iter();
        let around = copy::replace_parts(t, &mut frag, &mut |p| next.next().unwrap_or(p));
        // The words around the large parts go to a region too, where a copy would lose what they share.
        let tree = copy::size_of(around);
        match Graph::<true>::of(around, Some(h), usize::MAX) {
            Some(g) if tree > g.words() + LOST_WORDS => {
                let n = g.words();
                let mut b = Builder::counted(n);
                let s = g.copy(around, &mut b);
                held.adopt(b.finish());
                tally.count_moved(n);
                s
            }
            _ => around,
        }
    } else {
        // Many things, none of them large.
        region_for(h, &mut held, &mut tally, t, None)
    };
    give(tally, cx, kind, term);
    (term, Held::new(Some(frag), held, None))
}

/// A value of [`asked_threshold`] as programs see it: words, or `infinity`.
pub fn threshold_term(words: usize) -> Term {
    if words == usize::MAX {
        return am::INFINITY;
    }
    Term::small(words.min(i64::MAX as usize >> 5) as i64)
}

/// The value of `system_info(sharing)`: a map of counts. Words copied from process to process with their messages; words
/// copied to regions; words that were sent or stored again without being copied; regions alive and bytes in them.
pub fn info(cx: &mut Cx) -> Term {
    count_words(cx);
    let (bytes, regions) = region::counted_totals();
    let pairs = [
        ("words_copied", COPIED.load(Ordering::Relaxed)),
        ("words_moved", MOVED.load(Ordering::Relaxed)),
        ("words_shared", SHARED.load(Ordering::Relaxed)),
        ("regions", regions as u64),
        ("region_bytes", bytes as u64),
    ]
    .map(|(k, n)| (atom::intern(k), small(n)));
    map::from_pairs(cx, &pairs)
}

/// The same for one process, which runs in `cx`, with the regions that its heap refers to and bytes in them.
pub fn process_info(cx: &mut Cx, to: &mut impl Alloc) -> Term {
    let t = cx.process().ext().map(|e| e.tally).unwrap_or_default();
    let h = &cx.heap;
    let of = |s: &RegionSet| (s.iter().count(), s.bytes());
    let (young, old) = (of(&h.off_heap.regions), of(&h.old_off_heap.regions));
    let pairs = [
        ("words_copied", t.copied),
        ("words_moved", t.moved),
        ("words_shared", t.shared),
        ("regions", (young.0 + old.0) as u64),
        ("region_bytes", (young.1 + old.1) as u64),
    ]
    .map(|(k, n)| (atom::intern(k), small(n)));
    map::from_pairs(to, &pairs)
}

/// The regions that the heap of the process in `cx` refers to: `{Number, Bytes, Holders}` each. The number tells a region
/// from all others that are alive; holders are heaps (by generation), messages, objects of tables and other regions.
pub fn process_regions(cx: &mut Cx, to: &mut impl Alloc) -> Term {
    let h = &cx.heap;
    let mut all: Vec<&Region> = h.off_heap.regions.iter().collect();
    all.extend(h.old_off_heap.regions.iter());
    all.sort_by_key(|r| r.base as usize);
    all.dedup_by_key(|r| r.base as usize);
    let v: Vec<Term> = all
        .iter()
        .map(|r| {
            let bytes = small(r.area().1 as u64 * 8);
            let holders = small(r.holders.count());
            to.tuple(&[small(r.number()), bytes, holders])
        })
        .collect();
    to.list(&v)
}

#[inline]
fn small(n: u64) -> Term {
    Term::small(n.min(i64::MAX as u64 >> 5) as i64)
}

/// The term in a region for a part of an object that goes to a table, and its words; `held` gets a count of the region.
/// If it is not large: the words that a copy of it takes.
pub fn large_part(cx: &mut Cx, held: &mut RegionSet, t: Term) -> Result<(Term, usize), usize> {
    let threshold = threshold();
    if threshold == usize::MAX {
        return Err(copy::size_whole(t));
    }
    if let Some(n) = copy::size_whole_within(t, threshold.saturating_sub(1)) {
        if n < again::AGAIN_WORDS || is_region_ptr(t.ptr()) {
            return Err(n);
        }
        let s = again::element(cx, held, t, n, threshold).ok_or(n)?;
        return Ok((s, n));
    }
    let h = &mut cx.heap;
    let mut tally = Tally::default();
    let s = if is_region_ptr(t.ptr()) {
        // A small part of a large region, or a literal. A part that is too large to be copied again is referred to.
        match Graph::<false>::of(t, None, PART_AT_MOST_WORDS) {
            Some(g) => {
                let n = g.words();
                let mut b = Builder::counted(n);
                let s = g.copy(t, &mut b);
                held.adopt(b.finish());
                tally.count_moved(n);
                s
            }
            None if is_counted_ptr(t.ptr()) => {
                held.hold_pointer(t.ptr());
                t
            }
            None => return Err(copy::size_whole(t)),
        }
    } else {
        h.next_message();
        // There may be little around what lies in regions already.
        part(h, held, &mut tally, t, threshold, false)
            .unwrap_or_else(|| region_for(h, held, &mut tally, t, None))
    };
    give(tally, cx, Kind::TableIn, s);
    Ok((s, whole_words(s)))
}

/// Words of a copy of `t`, a term in a region: as a tree, which is how the sizes of objects are told. One that is larger than
/// its region and any memory counts by its region.
#[inline]
pub fn whole_words(t: Term) -> usize {
    let region = words_of(t);
    copy::size_whole_within(t, 16 * region + (1 << 16)).unwrap_or(region)
}

/// Whether so many words are shared.
#[inline]
pub fn is_large(words: usize) -> bool {
    words >= threshold()
}

/// Whether anything is shared at all.
pub fn is_on() -> bool {
    threshold() != usize::MAX
}

/// Copies of `terms`, of `words` words together ([`copy::size_whole`]), in a region of theirs. `held` gets a count of it.
pub fn group(cx: &mut Cx, held: &mut RegionSet, terms: &[Term], words: usize) -> Vec<Term> {
    let mut b = Builder::counted(words);
    // Whole: what lies in a region already may lie in one that nobody counts, and readers take what the object was given in
    // regions for counted.
    let v = terms.iter().map(|&t| copy::copy_whole(t, &mut b)).collect();
    held.adopt(b.finish());
    let mut tally = Tally::default();
    tally.count_moved(words);
    give(tally, cx, Kind::TableIn, Term::small(0));
    v
}

#[inline]
fn destroy(f: Fragment) {
    // SAFETY: its terms are not used.
    unsafe { f.destroy() };
}

/// The term in a region for a part, if it is large. `known`: it is.
fn part(
    h: &mut Heap,
    held: &mut RegionSet,
    tally: &mut Tally,
    t: Term,
    threshold: usize,
    known: bool,
) -> Option<Term> {
    if is_region_ptr(t.ptr()) {
        return None;
    }
    if let Some(s) = h.sent_as(t) {
        held.hold_pointer(s.ptr());
        tally.count_shared(words_of(s));
        return Some(s);
    }
    let small = !known && copy::size_within(t, threshold.saturating_sub(1)).is_some();
    (!small).then(|| region_for(h, held, tally, t, None))
}

/// Words of the region that a term starts, which is the measure of what was not copied.
#[inline]
pub(super) fn words_of(t: Term) -> usize {
    region_of(t.ptr()).map_or(0, |r| r.words)
}

/// Copies `t` to a region, of which `held` gets a count. A part that is reached more than once stays one part. `words`: those of a
/// copy of it as a tree, where they are known.
pub(super) fn region_for(
    h: &mut Heap,
    held: &mut RegionSet,
    tally: &mut Tally,
    t: Term,
    words: Option<usize>,
) -> Term {
    let (s, r) = match words {
        Some(n) => graph::to_region_of(t, h, n),
        None => graph::to_region(t, h),
    };
    let n = r.words;
    tally.count_moved(n);
    if (t.is_list_ptr() || t.is_tuple() || t.is_map()) && h.owns(t.ptr()) {
        // SAFETY: terms do not change, and `s` is a copy of `t`.
        unsafe { h.remember_sent(t, s, r) };
        if n >= FORGET_ABOVE_WORDS && n >= h.all_words() / 2 {
            h.forget_copy(t);
        }
    }
    held.adopt(r);
    s
}
