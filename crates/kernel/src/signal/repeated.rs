//! Repeated terms: parts that are sent a second time from the same address are shared from then on,
//! down to a kibibyte.
//!
//! A term below the threshold of [`super::share`] is copied. If it has at least a kibibyte, its
//! parts are recorded ([`purlin_term::sent_terms`]): the term, and the terms that it contains
//! behind small ones. When a part is found recorded, it is put into a region, which the sender
//! remembers, and the message refers to that; the small terms are copied with the message. The
//! third time, only these are measured and copied.
//!
//! Recording must not cost noticeably more than the copy: a few parts are examined before the term
//! is measured, and more afterwards, in proportion to its size.

use super::share::{Held, give, region_for, words_of};
use crate::accounts::Kind;
use crate::cx::Cx;
use crate::message::sharing::Tally;
use purlin_term::copy::{self, Levels, Measure};
use purlin_term::frag::Fragment;
use purlin_term::heap::Heap;
use purlin_term::region_set::RegionSet;
use purlin_term::sent_terms::Look;
use purlin_term::{Term, gc};
use smallvec::SmallVec;

/// Minimum number of words of a part that is shared when it is sent a second time. A region takes a
/// page of memory. Making one takes as long as two copies of this many words.
pub(crate) const AGAIN_WORDS: usize = 128;

/// Number of parts of a term that are examined before it is measured.
const FIRST_PARTS: usize = 5;
/// The same for the arguments of a new process: to spawn it takes longer, and a captured term lies
/// deeper.
const FIRST_PARTS_OF_SPAWN: usize = 24;
/// Words of a term per further part, and the maximum number of parts.
const WORDS_PER_PART: usize = 64;
const MOST_PARTS: usize = 48;

/// Maximum number of parts of one message that are shared in this way.
const MOST_SHARED: usize = 8;

/// A search for repeated parts in one term.
pub(super) struct Search {
    levels: Levels,
    least: usize,
    threshold: usize,
}

/// Parts that were found, and their words or those of their regions.
type Found = SmallVec<[(Term, usize); 4]>;

/// Minimum number of words of a shared part, where `threshold` is that of parts that are sent for
/// the first time.
#[inline]
pub(super) fn least_words(threshold: usize) -> usize {
    if gc::stress() {
        return 1 + gc::stress_below(AGAIN_WORDS);
    }
    threshold.min(AGAIN_WORDS)
}

impl Search {
    #[inline]
    pub(super) fn of(t: Term, least: usize, threshold: usize) -> Search {
        Search {
            levels: Levels::of(t),
            least,
            threshold,
        }
    }
    /// Number of parts to examine before the term is measured.
    #[inline]
    pub(super) fn first(kind: Kind) -> usize {
        match kind {
            Kind::Spawn => FIRST_PARTS_OF_SPAWN,
            _ => FIRST_PARTS,
        }
    }
    /// Number of parts to examine afterwards, for a term of this many words.
    #[inline]
    pub(super) fn more(kind: Kind, words: usize) -> usize {
        (Self::first(kind) + words / WORDS_PER_PART).min(MOST_PARTS)
    }
    /// Examines the first `most` parts of `t`. Returns a substitute for the term if some of them
    /// are shared and make up most of it.
    #[inline]
    pub(super) fn look(
        &mut self,
        cx: &mut Cx,
        kind: Kind,
        t: Term,
        most: usize,
    ) -> Option<(Term, Held)> {
        let found = self.search(&mut cx.heap, most);
        if found.is_empty() {
            return None;
        }
        stand_in(cx, kind, t, &found)
    }
    fn search(&mut self, h: &mut Heap, most: usize) -> Found {
        let mut found = Found::new();
        while let Some(p) = self.levels.next(most) {
            if p.is_list_ptr() || p.is_tuple() || p.is_map() {
                let sent = h.sent_mut();
                match sent.look(p) {
                    Look::Nothing => {}
                    Look::Known => {
                        found.push((p, sent.words_of(p)));
                        continue;
                    }
                    Look::Again => match self.words_of(h, p) {
                        Some(0) => h.sent_mut().is_small(p),
                        Some(n) => {
                            found.push((p, n));
                            continue;
                        }
                        None => return Found::new(),
                    },
                }
                if found.len() == MOST_SHARED {
                    break;
                }
            }
            self.levels.look_into(p);
        }
        found
    }
    /// Returns the words of a part; 0 if it has too few for a region, not counting what lies in
    /// regions; `None` if it is above the threshold.
    fn words_of(&self, h: &Heap, p: Term) -> Option<usize> {
        if h.knows_any_sent() {
            let known = |t| h.knows_sent(t);
            if Measure::around(p, known).within(self.least - 1).is_some() {
                return Some(0);
            }
        }
        let words = copy::size_within(p, self.threshold - 1)?;
        Some(if words < self.least { 0 } else { words })
    }
}

/// Returns a substitute for `t`, given the parts that were found; `None` if there is more around
/// them.
#[inline(never)]
fn stand_in(cx: &mut Cx, kind: Kind, t: Term, found: &Found) -> Option<(Term, Held)> {
    let h = &mut cx.heap;
    let words = found.iter().map(|f| f.1).sum();
    let is_part = |t: Term| found.iter().any(|(p, _)| *p == t);
    let around = Measure::around(t, is_part).within(words)?;
    h.next_message();
    let mut tally = Tally::default();
    let mut held = RegionSet::default();
    let mut shared: SmallVec<[(Term, Term); 4]> = SmallVec::new();
    // A part that lies within another one has fewer words. It comes first, so that the other one's
    // region refers to its region.
    let mut found = found.clone();
    found.sort_unstable_by_key(|f| f.1);
    for &(p, n) in &found {
        let s = match h.sent_as(p) {
            Some(s) => {
                held.hold_pointer(s.ptr());
                tally.count_shared(words_of(s));
                s
            }
            None => region_for(h, &mut held, &mut tally, p, Some(n)),
        };
        shared.push((p, s));
    }
    if let [(p, s)] = shared[..]
        && p == t
    {
        give(tally, cx, kind, s);
        return Some((s, Held::new(None, held, Some(0))));
    }
    let mut frag = Fragment::with_capacity(around);
    let s = copy::copy_around(t, &mut frag, |t| {
        shared.iter().find(|(p, _)| *p == t).map(|(_, s)| *s)
    });
    give(tally, cx, kind, s);
    Some((s, Held::new(Some(frag), held, Some(around))))
}

/// Returns a substitute for an element of an object that goes to a table, if the element has been
/// copied before; `held` gets a count of its region. The element has `words` words.
pub(super) fn element(
    cx: &mut Cx,
    held: &mut RegionSet,
    t: Term,
    words: usize,
    threshold: usize,
) -> Option<Term> {
    let h = &mut cx.heap;
    let fits = t.is_list_ptr() || t.is_tuple() || t.is_map();
    if words < least_words(threshold) || !fits {
        return None;
    }
    let look = h.sent_mut().look(t);
    if look == Look::Nothing {
        return None;
    }
    h.next_message();
    let mut tally = Tally::default();
    let s = match h.sent_as(t) {
        Some(s) => {
            held.hold_pointer(s.ptr());
            tally.count_shared(words_of(s));
            s
        }
        None => region_for(h, held, &mut tally, t, Some(words)),
    };
    give(tally, cx, Kind::TableIn, s);
    Some(s)
}
