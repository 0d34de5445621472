//! Regions as a collection sees them: which of them the heap refers to, and which are worth leaving
//! by copying out the little of them that is used.
//!
//! A heap holds the regions that it points into, by generation. A copy meets every pointer of what
//! it moves, so afterwards it knows which regions are still referred to, and releases the others
//! ([`Notes`]). A large region of which the heap uses little is *left*: a second copy moves these
//! few terms as if they were the heap's own ([`worth_leaving`]), and the heap no longer holds the
//! region.

use super::sizes::{LEAVE_ABOVE_WORDS, LEAVE_AT_MOST_WORDS, LEAVE_ROUNDS};
use super::sizes::{SEEN_REGIONS, SEEN_TERMS, leave_limit};
use crate::layout;
use crate::region::{Region, is_counted_ptr, region_of};
use crate::region_set::RegionSet;
use crate::sent_terms::{Sent, SentTerm};
use crate::stress;
use crate::word::Term;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

/// A counted region that a full sweep met, and the terms in it that the heap refers to.
pub(crate) struct SeenRegion {
    region: &'static Region,
    terms: Vec<Term>,
    /// There are more terms than are worth keeping.
    many: bool,
}

/// The counted regions that terms were found to point into.
pub(crate) struct Notes<'a> {
    /// Whether to note regions at all. They are noted apart for what will be young and for what is
    /// old.
    see: bool,
    pub(crate) seen: RegionSet,
    seen_old: RegionSet,
    /// Whether the old block is being scanned.
    in_old: bool,
    /// Where to note the terms that are referred to as well.
    list: Option<&'a mut Vec<SeenRegion>>,
    /// The place in `list` of each region, by the address of its head; and the number that were
    /// there before.
    places: HashMap<usize, usize>,
    before: usize,
    /// Addresses (start, length) of the region met last, which is noted; and its place in `list` if
    /// more of it is wanted.
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
            places: HashMap::new(),
            before: list.as_ref().map_or(0, |l| l.len()),
            list,
            last: (0, 0),
            last_index: usize::MAX,
        }
    }

    /// Regions that old objects refer to.
    pub(super) fn seen_old(&mut self) -> &mut RegionSet {
        &mut self.seen_old
    }

    /// Says whether regions are noted for the old block from now on, or for the young one. Each
    /// notes a region anew.
    #[inline(always)]
    pub(super) fn look_through(&mut self, old: bool) {
        (self.in_old, self.last) = (old, (0, 0));
    }

    /// Notes the counted region that `t` lies in, if any.
    #[inline(always)]
    pub(crate) fn note(&mut self, t: Term) {
        if self.see && is_counted_ptr(t.ptr()) {
            self.note_region(t);
        }
    }

    #[inline(never)]
    fn note_region(&mut self, t: Term) {
        // Neighbours mostly refer to the same region: only another region costs a look-up.
        if (t.ptr() as usize).wrapping_sub(self.last.0) >= self.last.1 {
            let Some(r) = region_of(t.ptr()) else { return };
            match self.in_old {
                true => self.seen_old.hold(r),
                false => self.seen.hold(r),
            }
            self.last = (r.base as usize, r.words * 8);
            self.last_index = usize::MAX;
            // Beyond the bound a region is noted, but none of its terms: it cannot be left then.
            if let Some(l) = self.list.as_mut() {
                let key = r as *const Region as usize;
                self.last_index = match self.places.get(&key) {
                    Some(&i) => i,
                    None if l.len() < SEEN_REGIONS => {
                        // Young and old objects are scanned separately, with one list.
                        let known = l.iter().take(self.before);
                        let known = known.enumerate().find(|(_, s)| std::ptr::eq(s.region, r));
                        let i = known.map(|(i, _)| i).unwrap_or_else(|| {
                            l.push(SeenRegion {
                                region: r,
                                terms: Vec::new(),
                                many: false,
                            });
                            l.len() - 1
                        });
                        self.places.insert(key, i);
                        i
                    }
                    None => usize::MAX,
                };
            }
        }
        if self.last_index == usize::MAX {
            return;
        }
        if let Some(s) = self.list.as_mut().and_then(|l| l.get_mut(self.last_index)) {
            // The same term several times in a row, as where many objects refer to one.
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

/// Writes forwarding marks to the region over those sent terms that lie where this copy moves
/// things, so that the heap's own references lead to the region from now on. A minor collection
/// does not move the old generation: its references follow with the next full sweep. Returns the
/// terms whose own memory is now unneeded.
///
/// # Safety
/// The sent terms are alive where `moves` says that they move, and their whole heap is copied right
/// after this: nobody else sees the marks.
pub(crate) unsafe fn mark_sent(
    moves: impl Fn(usize) -> bool,
    sent: &mut Option<Box<Sent>>,
) -> Vec<SentTerm> {
    let Some(s) = sent else { return Vec::new() };
    let marked = s.take(moves);
    for e in &marked {
        let p = e.term.ptr();
        // The marks are those of a moved object: `forward` and `visit` follow them without knowing
        // of regions.
        // SAFETY: by the contract: the object's first words may be overwritten by a mark.
        unsafe {
            if e.term.is_list_ptr() {
                p.write(Term::NON_VALUE);
                p.add(1).write(e.shared);
            } else {
                p.write(e.shared);
            }
        }
    }
    if s.is_empty() {
        *sent = None;
    }
    marked
}

/// The place of a term that a collection may have moved, which `mine` says of its address; None if
/// it has died.
///
/// # Safety
/// The collection is over, and what it has moved still has its forwarding mark.
pub(super) unsafe fn moved_to(t: Term, mine: impl Fn(usize) -> bool) -> Option<Term> {
    let p = t.ptr();
    if !mine(p as usize) {
        return Some(t);
    }
    // SAFETY: by the contract: a moved object has its mark, and a dead one is still whole.
    unsafe {
        let h = *p;
        match t.is_list_ptr() {
            true => (h == Term::NON_VALUE).then(|| *p.add(1)),
            false => h.is_boxed().then_some(h),
        }
    }
}

/// A region that may be left.
struct Leaving<'a> {
    seen: &'a SeenRegion,
    /// Addresses (start, end).
    area: (usize, usize),
    /// Number of words that may be copied out of it in all, and number that are left of these.
    limit: usize,
    left: usize,
}

/// Chooses the regions that are worth leaving. Returns their areas in order, the words that a pass
/// copies out of all of them at most, and the words that they have. The count follows terms from
/// region to region as that pass does, so a term in one region counts what it refers to in another.
///
/// # Safety
/// The regions are alive, and the terms with them lead into them.
pub(super) unsafe fn worth_leaving(seen: &[SeenRegion]) -> (Vec<(usize, usize)>, usize, usize) {
    let most = LEAVE_AT_MOST_WORDS.load(Ordering::Relaxed);
    let limit = |s: &SeenRegion| match stress::roll(2) {
        true => stress::below(s.region.words + 1).min(most),
        false => leave_limit(s.region.words).min(most),
    };
    let above = if stress::roll(2) {
        0
    } else {
        LEAVE_ABOVE_WORDS
    };
    let mut some: Vec<Leaving> = seen
        .iter()
        .filter(|s| !s.many && s.region.words >= above && most > 0)
        .filter(|s| stress::roll(2) || !s.terms.iter().any(|t| s.region.is_large(t.ptr())))
        .map(|seen| {
            let (p, words) = seen.region.area();
            Leaving {
                seen,
                area: (p as usize, p as usize + words * 8),
                limit: limit(seen),
                left: 0,
            }
        })
        .collect();
    // Each by itself first: most regions that take too much do so without the others.
    // SAFETY: by the contract, the regions are alive and the terms lead into them.
    unsafe {
        some.retain_mut(|l| {
            l.left = l.limit;
            count_out(std::slice::from_mut(l)).is_ok()
        });
    }
    some.sort_unstable_by_key(|l| l.area);
    // A region from which too much would be copied is kept. The others are counted again without
    // it. Each round takes as many steps as words may be copied.
    for _ in 0..LEAVE_ROUNDS {
        some.iter_mut().for_each(|l| l.left = l.limit);
        // SAFETY: by the contract, the regions are alive and the terms lead into them.
        unsafe {
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
    }
    // Too many depend on each other. Those that refer to no others can be judged alone.
    some.retain(|l| l.seen.region.is_leaf());
    some.iter_mut().for_each(|l| l.left = l.limit);
    // SAFETY: by the contract, the regions are alive and the terms lead into them.
    unsafe {
        match count_out(&mut some) {
            Ok(kept) => {
                let words = some.iter().map(|l| l.seen.region.words).sum();
                (some.iter().map(|l| l.area).collect(), kept, words)
            }
            Err(_) => (Vec::new(), 0, 0),
        }
    }
}

/// Counts the words that are copied out of the regions; what is reached twice counts twice. Err:
/// the region that takes more than it may. If one term alone takes most of that, its region
/// remembers it.
///
/// # Safety
/// The regions are alive, and the terms with them lead into them.
unsafe fn count_out(some: &mut [Leaving]) -> Result<usize, usize> {
    let mut n = 0;
    let mut todo: Vec<Term> = Vec::new();
    for k in 0..some.len() {
        for first in 0..some[k].seen.terms.len() {
            let (from, before) = (some[k].seen.terms[first], some[k].left);
            todo.push(from);
            let mut at = k;
            while let Some(t) = todo.pop() {
                if t.is_immed() {
                    continue;
                }
                let p = t.ptr();
                let inside = |l: &Leaving| p as usize >= l.area.0 && (p as usize) < l.area.1;
                // A pointer into a region that stays is not followed: the copy refers to that
                // region.
                if !inside(&some[at]) {
                    let i = some.partition_point(|l| l.area.0 <= p as usize);
                    if i == 0 || !inside(&some[i - 1]) {
                        continue;
                    }
                    at = i - 1;
                }
                // SAFETY: the term lies in one of the live regions, where objects are whole.
                let (words, (a, b)) = unsafe {
                    match t.is_list_ptr() {
                        true => (2, (0, 2)),
                        false => (layout::object_words(p), layout::term_range(p)),
                    }
                };
                let l = &mut some[at];
                // Each region has its own bound, so that the walk ends after as many steps as words
                // may be copied.
                let Some(left) = l.left.checked_sub(words) else {
                    // This term alone has taken half of the bound: the region remembers it, so that
                    // the next sweep does not count again.
                    if at == k && before >= l.limit / 2 {
                        l.seen.region.set_large(from.ptr());
                    }
                    return Err(at);
                };
                l.left = left;
                n += words;
                // SAFETY: the words `a..b` are terms of that object.
                unsafe {
                    todo.extend((a..b).map(|i| *p.add(i)));
                }
            }
        }
    }
    Ok(n)
}
