//! Sharing: large terms go from process to process, and to tables, without being copied again and
//! again.
//!
//! A message consists of small terms around large ones: `{Reference, {ok, Map}}`, a closure with a
//! list in it. Each part above the threshold is copied once to a region of its own, which the
//! message refers to; the small terms are copied with the message. The sender remembers the region
//! of the part (`Heap::sent`): sending it again costs nothing, and the sender's next collection,
//! instead of copying the part, redirects the sender's references to the region. So the total cost
//! is that of a plain copy, and there is one copy in memory however many processes hold it. Smaller
//! parts are shared when they are sent a second time; see [`super::repeated`].

use super::repeated::{self, Search};
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

/// Maximum number of words of a part of a region that is copied to be kept by itself.
const PART_AT_MOST_WORDS: usize = 16 << 20;

/// Words that a copy may take beyond those of its source. It duplicates what is reached twice.
const LOST_WORDS: usize = 1024;

/// Minimum number of words of a part that is worth a collection at once, if it is most of the
/// sender's heap.
const FORGET_ABOVE_WORDS: usize = 1 << 18;

/// See [`Tally`].
const COUNTED_WORDS: usize = 512;

/// Adds the words copied on this thread since the last call to [`COPIED`].
#[inline]
pub(crate) fn count_words(cx: &mut Cx) {
    if cx.words_copied != 0 {
        COPIED.add(std::mem::take(&mut cx.words_copied) as usize);
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

/// Adds to the tally of the running process.
#[inline]
pub(super) fn give(tally: Tally, cx: &mut Cx, kind: Kind, what: Term) {
    if tally.moved + tally.shared > 0 {
        accounts::shared(cx, kind, tally.moved, tally.shared, what);
        let t = &mut cx.process().ext_mut().tally;
        t.moved += tally.moved;
        t.shared += tally.shared;
    }
}

/// Owns what a shared term refers to, until the term has been copied.
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
    /// Takes the regions that the term refers to, with their counts, for the term's only
    /// destination.
    #[inline]
    pub(super) fn take_regions(&mut self) -> RegionSet {
        std::mem::take(&mut self.regions)
    }
    /// Returns the words of a copy of the term, if they are known.
    #[inline]
    pub fn words(&self) -> Option<usize> {
        self.words
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: any user of the term has a copy, which holds the regions.
        unsafe { self.regions.release_all() };
        if let Some(f) = self.frag.take() {
            destroy(f);
        }
    }
}

/// Returns `t`, or a substitute with its large parts in regions. The caller copies it to its
/// destination, which then holds the regions, and drops the second part. `kind` is the purpose, for
/// the accounts.
pub fn share(cx: &mut Cx, kind: Kind, t: Term) -> (Term, Held) {
    let threshold = threshold();
    if t.is_immed() || threshold == usize::MAX || is_region_ptr(t.ptr()) {
        return (t, Held::default());
    }
    let copied = |n| (t, Held::new(None, RegionSet::default(), Some(n)));
    let least = repeated::least_words(threshold);
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
        // The words around the large parts go to a region too, if a copy would lose the sharing
        // among them.
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
        // Many parts, none of them large.
        region_for(h, &mut held, &mut tally, t, None)
    };
    give(tally, cx, kind, term);
    (term, Held::new(Some(frag), held, None))
}

/// Returns a value of [`asked_threshold`] as programs see it: words, or `infinity`.
pub fn threshold_term(words: usize) -> Term {
    if words == usize::MAX {
        return am::INFINITY;
    }
    Term::small(words.min(i64::MAX as usize >> 5) as i64)
}

/// Returns the value of `system_info(sharing)`: a map of counters. They are words copied with
/// messages; words copied to regions; words that were sent or stored again without a copy; live
/// regions, and their bytes.
pub fn info(cx: &mut Cx) -> Term {
    count_words(cx);
    let (bytes, regions) = region::counted_totals();
    let pairs = [
        ("words_copied", COPIED.sum()),
        ("words_moved", MOVED.sum()),
        ("words_shared", SHARED.sum()),
        ("regions", regions as u64),
        ("region_bytes", bytes as u64),
    ]
    .map(|(k, n)| (atom::intern(k), small(n)));
    map::from_pairs(cx, &pairs)
}

/// Returns the same for one process, which runs in `cx`, with the regions that its heap refers to
/// and their bytes.
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

/// Returns the regions that the heap of the process in `cx` refers to: `{Number, Bytes, Holders}`
/// each. The number is unique among live regions. Holders are heaps (by generation), messages,
/// objects of tables and other regions.
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

/// Returns the term in a region for a part of an object that goes to a table, and its words; `held`
/// gets a count of the region. The error is for a part that is not large: the words of a copy.
pub fn large_part(cx: &mut Cx, held: &mut RegionSet, t: Term) -> Result<(Term, usize), usize> {
    let threshold = threshold();
    if threshold == usize::MAX {
        return Err(copy::size_whole(t));
    }
    if let Some(n) = copy::size_whole_within(t, threshold.saturating_sub(1)) {
        if n < repeated::AGAIN_WORDS || is_region_ptr(t.ptr()) {
            return Err(n);
        }
        let s = repeated::element(cx, held, t, n, threshold).ok_or(n)?;
        return Ok((s, n));
    }
    let h = &mut cx.heap;
    let mut tally = Tally::default();
    let s = if is_region_ptr(t.ptr()) {
        // A small part of a large region, or a literal. A part that is too large to be copied again
        // is referred to.
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
        // Most of it may lie in regions already.
        part(h, held, &mut tally, t, threshold, false)
            .unwrap_or_else(|| region_for(h, held, &mut tally, t, None))
    };
    give(tally, cx, Kind::TableIn, s);
    Ok((s, whole_words(s)))
}

/// Returns the words of a copy of `t`, a term in a region: as a tree, the measure of object sizes.
/// If that exceeds the region and any memory, the size of its region counts.
#[inline]
pub fn whole_words(t: Term) -> usize {
    let region = words_of(t);
    copy::size_whole_within(t, 16 * region + (1 << 16)).unwrap_or(region)
}

/// Whether a term of that many words is shared.
#[inline]
pub fn is_large(words: usize) -> bool {
    words >= threshold()
}

/// Whether sharing is enabled.
pub fn is_on() -> bool {
    threshold() != usize::MAX
}

/// Copies `terms`, of `words` words together ([`copy::size_whole`]), to a region of their own.
/// `held` gets a count of it.
pub fn group(cx: &mut Cx, held: &mut RegionSet, terms: &[Term], words: usize) -> Vec<Term> {
    let mut b = Builder::counted(words);
    // The whole object: a part of it may lie in a region without a count, and readers assume that
    // all regions of an object are counted.
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

/// Returns the term in a region for a part, if it is large. `known`: it is.
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

/// Words of the region that begins with a term: the measure of what was not copied.
#[inline]
pub(super) fn words_of(t: Term) -> usize {
    region_of(t.ptr()).map_or(0, |r| r.words)
}

/// Copies `t` to a region, of which `held` gets a count. A part that is reached more than once
/// stays one part. `words` are those of a copy as a tree, if they are known.
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
