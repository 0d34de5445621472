//! Measuring and copying terms as graphs: what is reached twice is counted once, and copied once.
//!
//! The walk that measures a term sets a bit for each word where an object starts, and another one
//! when it meets the object again. For the process's heap and for regions these bits lie in maps of
//! a sixty-fourth of their size, of which only those pages are touched where the term lies; objects
//! elsewhere (in a message, say) go into a set. If nothing was met twice, the plain copy is used.
//! Otherwise the copy looks up in the second map whether an object is one of those, and only these
//! go through a table.
//!
//! If the terms that this thread copied before had nothing twice, the next term is copied while the
//! bits are set, without being measured first, to a region of twice the words of the last one:
//! reading a large term takes most of the time. If it turns out not to be of that kind, the copy is
//! thrown away.

use crate::alloc::Alloc;
use crate::copy::{self, bits_words, copy_object, hold, stays};
use crate::gc::stress_roll;
use crate::heap::Heap;
use crate::layout;
use crate::region::{Builder, Region, region_of};
use crate::stress::below;
use crate::word::{Subtag, Term, header_subtag};
use std::cell::Cell;
use std::collections::HashMap;

/// A range of addresses, with a bit for each word.
struct Area {
    start: usize,
    end: usize,
    seen: Vec<u64>,
    /// Empty until something is met twice.
    twice: Vec<u64>,
}

/// The measures of a term: see the module head. `SHARE`: terms in regions are referred to, and not
/// looked into.
pub struct Graph<'a, const SHARE: bool> {
    heap: Option<&'a Heap>,
    /// Sorted.
    areas: Vec<Area>,
    last: usize,
    /// Objects in no area, and whether each was met twice.
    others: HashMap<usize, bool>,
    /// Terms of the heap that also lie in regions.
    known: HashMap<u64, Term>,
    words: usize,
    any_twice: bool,
    any_outside: bool,
}

/// The objects that a walk has met, for walks outside this file.
pub struct Met<'a>(Graph<'a, false>);

impl<'a> Met<'a> {
    /// An empty set. Most objects are expected in `heap`.
    pub fn none(heap: &'a Heap) -> Met<'a> {
        Met(Graph::start(Some(heap)))
    }
    /// Whether the object that `t` points at is met for the first time.
    #[inline]
    pub fn first(&mut self, t: Term) -> bool {
        !self.0.met(t.ptr())
    }
}

impl<'a, const SHARE: bool> Graph<'a, SHARE> {
    /// Measures `t`, most of which may lie in `heap`; None if it has more than `limit` words. What
    /// the heap has sent recently lies in a region, and is referred to there.
    pub fn of(t: Term, heap: Option<&'a Heap>, limit: usize) -> Option<Graph<'a, SHARE>> {
        let mut g = Self::start(heap);
        g.measure(t, limit).then_some(g)
    }
    fn start(heap: Option<&'a Heap>) -> Graph<'a, SHARE> {
        let mut g = Graph {
            heap,
            areas: Vec::new(),
            last: 0,
            others: HashMap::new(),
            known: HashMap::new(),
            words: 0,
            any_twice: false,
            any_outside: false,
        };
        if SHARE && let Some(sent) = heap.and_then(|h| h.sent.as_ref()) {
            for (t, shared) in sent.terms() {
                g.met(t.ptr());
                g.known.insert(t.raw(), shared);
            }
            g.any_twice = false;
        }
        g
    }
    /// Measures all of `t`, as [`Graph::of`] does.
    pub fn whole(t: Term, heap: Option<&'a Heap>) -> Graph<'a, SHARE> {
        let mut g = Self::start(heap);
        g.measure(t, usize::MAX);
        g
    }
    /// Words that [`Graph::copy`] needs.
    pub fn words(&self) -> usize {
        self.words
    }
    /// Whether something is reached more than once.
    pub fn any_twice(&self) -> bool {
        self.any_twice
    }

    /// Whether it refers to something outside the heap whose release may be waited for:
    /// binaries or parts of them, and resources of libraries, which have destructors.
    pub fn any_outside(&self) -> bool {
        self.any_outside
    }

    fn measure(&mut self, t: Term, limit: usize) -> bool {
        let mut todo = vec![t];
        while let Some(mut t) = todo.pop() {
            loop {
                if t.is_list_ptr() {
                    t = self.cells(t, limit, &mut todo);
                }
                if stays::<SHARE>(t) || self.met(t.ptr()) {
                    break;
                }
                if self.words > limit {
                    return false;
                }
                if let Some((h, tl)) = t.as_cons() {
                    self.words += 2;
                    if !h.is_immed() {
                        todo.push(h);
                    }
                    t = tl;
                    continue;
                }
                let p = t.ptr();
                // SAFETY: a boxed term in hand is well formed.
                unsafe {
                    match header_subtag((*p).raw()) {
                        Subtag::SubBin | Subtag::MatchContext => {
                            self.any_outside = true;
                            self.words += bits_words::<SHARE>(t)
                        }
                        sub => {
                            self.any_outside |= sub == Subtag::RefcBin || layout::ends_outside(p);
                            self.words += layout::object_words(p);
                            let (a, b) = layout::term_range(p);
                            for i in a..b {
                                let e = *p.add(i);
                                if !e.is_immed() {
                                    todo.push(e);
                                }
                            }
                        }
                    }
                }
                break;
            }
        }
        self.words <= limit
    }

    /// Counts the cells of a list that are new and lie in the last area; returns what follows
    /// those.
    #[inline(always)]
    fn cells(&mut self, t: Term, limit: usize, todo: &mut Vec<Term>) -> Term {
        let room = limit.saturating_sub(self.words) / 2 + 1;
        let (t, n) = self.walk(t, room, |h| {
            if !h.is_immed() {
                todo.push(h);
            }
        });
        self.words += 2 * n;
        t
    }
    /// Walks the cells of a list that are new and lie in the last area, at most `room` of them, and
    /// passes the head of each to `show`. Returns what follows those, and their number.
    #[inline(always)]
    fn walk(&mut self, mut t: Term, room: usize, mut show: impl FnMut(Term)) -> (Term, usize) {
        let Some(a) = self.areas.get_mut(self.last) else {
            return (t, 0);
        };
        let (start, len) = (a.start, a.end - a.start);
        let seen = &mut a.seen[..];
        let mut n = 0;
        // Neighbours share a word of the map, which is written back after the last of them: reading
        // what was just written takes longer than everything else that is done for a cell.
        let (mut at_word, mut bits) = (0, seen.first().copied().unwrap_or(0));
        while let Some((h, tl)) = t.as_cons() {
            let at = (t.ptr() as usize).wrapping_sub(start);
            if at >= len || n == room {
                break;
            }
            if at >> 9 != at_word {
                seen[at_word] = bits;
                at_word = at >> 9;
                bits = seen[at_word];
            }
            let bit = 1 << (at >> 3 & 63);
            if bits & bit != 0 {
                break;
            }
            bits |= bit;
            n += 1;
            show(h);
            t = tl;
        }
        if let Some(w) = seen.get_mut(at_word) {
            *w = bits;
        }
        (t, n)
    }

    /// Marks an object. Returns whether it was met before.
    #[inline(always)]
    fn met(&mut self, p: *const Term) -> bool {
        let at = p as usize;
        if let Some(a) = self.areas.get_mut(self.last)
            && at >= a.start
            && at < a.end
        {
            let i = (at - a.start) >> 3;
            let w = &mut a.seen[i >> 6];
            let bit = 1 << (i & 63);
            if *w & bit == 0 {
                *w |= bit;
                return false;
            }
            self.met_again(i);
            return true;
        }
        self.met_elsewhere(at)
    }
    /// Notes that word `i` of the last area is met again.
    #[cold]
    fn met_again(&mut self, i: usize) {
        self.any_twice = true;
        let a = &mut self.areas[self.last];
        if a.twice.is_empty() {
            a.twice = vec![0; a.seen.len()];
        }
        a.twice[i >> 6] |= 1 << (i & 63);
    }
    #[inline(never)]
    fn met_elsewhere(&mut self, at: usize) -> bool {
        if self.find(at, true) {
            return self.met(at as *const Term);
        }
        let before = self.others.get_mut(&at);
        let Some(twice) = before else {
            self.others.insert(at, false);
            return false;
        };
        *twice = true;
        self.any_twice = true;
        true
    }
    /// Makes the area of an address the last one. Returns false if there is none.
    fn find(&mut self, at: usize, make: bool) -> bool {
        let i = self.areas.partition_point(|a| a.start <= at);
        if i > 0 && at < self.areas[i - 1].end {
            self.last = i - 1;
            return true;
        }
        if !make {
            return false;
        }
        let Some((start, end)) = self.around(at) else {
            return false;
        };
        let n = (end - start).div_ceil(512);
        self.areas.insert(
            i,
            Area {
                start,
                end,
                seen: vec![0; n],
                twice: Vec::new(),
            },
        );
        self.last = i;
        true
    }
    /// The block of the heap, or the region, that an address lies in.
    fn around(&self, at: usize) -> Option<(usize, usize)> {
        if let Some(h) = self.heap {
            for (a, b) in [(h.heap, h.hend), (h.old_heap, h.old_hend)] {
                if at >= a as usize && at < b as usize {
                    return Some((a as usize, b as usize));
                }
            }
            for (p, n) in h.frags.iter().flat_map(|f| f.areas()) {
                if at.wrapping_sub(p as usize) < n * 8 {
                    return Some((p as usize, p as usize + n * 8));
                }
            }
        }
        let (p, n) = region_of(at as *const Term)?.area();
        (at.wrapping_sub(p as usize) < n * 8).then_some((p as usize, p as usize + n * 8))
    }
    fn is_twice(&mut self, p: *const Term) -> bool {
        let at = p as usize;
        let here = |a: &Area| at >= a.start && at < a.end;
        if !self.areas.get(self.last).is_some_and(here) && !self.find(at, false) {
            return self.others.get(&at).copied().unwrap_or(false);
        }
        let a = &self.areas[self.last];
        let i = (at - a.start) >> 3;
        a.twice.get(i >> 6).is_some_and(|w| w & 1 << (i & 63) != 0)
    }

    /// Copies `t` to a region of its own in one pass. `Err` if something in it is reached more than
    /// once, or if there is not enough room; the marks are of no use then.
    fn copy_once(&mut self, t: Term, to: &mut Builder) -> Result<Term, ()> {
        let mut root = t;
        let mut todo: Vec<*mut Term> = vec![&mut root];
        while let Some(mut slot) = todo.pop() {
            // SAFETY: slots are words of objects made below, or `root`; sources are terms in hand.
            let mut t = unsafe { *slot };
            loop {
                if t.is_list_ptr() {
                    (slot, t) = self.copy_cells(slot, t, to, &mut todo);
                }
                // SAFETY: slots are words of objects made below, or `root`; sources are terms in
                // hand.
                unsafe {
                    if stays::<SHARE>(t) {
                        if SHARE {
                            hold(t, to);
                        }
                        *slot = t;
                        break;
                    }
                    if self.met(t.ptr()) {
                        return Err(());
                    }
                    if let Some((h, tl)) = t.as_cons() {
                        if to.left() < 2 {
                            return Err(());
                        }
                        let q = to.alloc(2);
                        q.write(h);
                        *slot = Term::cons_at(q);
                        if !h.is_immed() {
                            todo.push(q);
                        }
                        (slot, t) = (q.add(1), tl);
                        continue;
                    }
                    let p = t.ptr();
                    if matches!(
                        header_subtag((*p).raw()),
                        Subtag::SubBin | Subtag::MatchContext
                    ) {
                        if to.left() < bits_words::<SHARE>(t) {
                            return Err(());
                        }
                        *slot = match SHARE {
                            true => copy::copy(t, to),
                            false => copy::copy_whole(t, to),
                        };
                        break;
                    }
                    if to.left() < layout::object_words(p) {
                        return Err(());
                    }
                    let c = copy_object(p, to);
                    *slot = c;
                    let (a, b) = layout::term_range(p);
                    for i in a..b {
                        if !(*p.add(i)).is_immed() {
                            todo.push(c.ptr().add(i));
                        }
                    }
                }
                break;
            }
        }
        Ok(root)
    }

    /// Copies the cells of a list that are new and lie in the last area, as far as there is room.
    /// Returns the next slot, and the term that belongs there.
    #[inline(always)]
    fn copy_cells(
        &mut self,
        mut slot: *mut Term,
        t: Term,
        to: &mut Builder,
        todo: &mut Vec<*mut Term>,
    ) -> (*mut Term, Term) {
        let mut q = to.room();
        let (t, n) = self.walk(t, to.left() / 2, |h| {
            // SAFETY: there is room for this cell; the slot is a word of the one before, or as in
            // `copy_once`.
            unsafe {
                q.write(h);
                *slot = Term::cons_at(q);
                if !h.is_immed() {
                    todo.push(q);
                }
                slot = q.add(1);
                q = q.add(2);
            }
        });
        to.alloc(2 * n);
        (slot, t)
    }

    /// Copies `t`, the term that was measured, into `to`.
    pub fn copy<A: Alloc + ?Sized>(mut self, t: Term, to: &mut A) -> Term {
        if !self.any_twice {
            return match SHARE {
                true => copy::copy(t, to),
                false => copy::copy_whole(t, to),
            };
        }
        let mut made: HashMap<u64, Term> = HashMap::new();
        let mut root = t;
        let mut todo: Vec<*mut Term> = vec![&mut root];
        while let Some(mut slot) = todo.pop() {
            // SAFETY: slots are words of objects made below, or `root`; sources are terms in hand.
            let mut t = unsafe { *slot };
            loop {
                // SAFETY: slots are words of objects made below, or `root`; sources are terms in
                // hand.
                unsafe {
                    if stays::<SHARE>(t) {
                        if SHARE {
                            hold(t, to);
                        }
                        *slot = t;
                        break;
                    }
                    let twice = self.is_twice(t.ptr());
                    if twice && let Some(&c) = self.known.get(&t.raw()) {
                        hold(c, to);
                        *slot = c;
                        break;
                    }
                    if twice && let Some(&c) = made.get(&t.raw()) {
                        *slot = c;
                        break;
                    }
                    if let Some((h, tl)) = t.as_cons() {
                        let q = to.alloc(2);
                        q.write(h);
                        let c = Term::cons_at(q);
                        *slot = c;
                        if twice {
                            made.insert(t.raw(), c);
                        }
                        if !h.is_immed() {
                            todo.push(q);
                        }
                        (slot, t) = (q.add(1), tl);
                        continue;
                    }
                    let p = t.ptr();
                    let c = if matches!(
                        header_subtag((*p).raw()),
                        Subtag::SubBin | Subtag::MatchContext
                    ) {
                        match SHARE {
                            true => copy::copy(t, to),
                            false => copy::copy_whole(t, to),
                        }
                    } else {
                        let c = copy_object(p, to);
                        let (a, b) = layout::term_range(p);
                        for i in a..b {
                            if !(*p.add(i)).is_immed() {
                                todo.push(c.ptr().add(i));
                            }
                        }
                        c
                    };
                    *slot = c;
                    if twice {
                        made.insert(t.raw(), c);
                    }
                }
                break;
            }
        }
        root
    }
}

thread_local! {
    /// Words of the last term put in a region, if it had nothing twice and was not too large.
    static LAST: Cell<usize> = const { Cell::new(0) };
}

/// Terms of more words are measured before they are copied.
const AT_ONCE_WORDS: usize = 1 << 22;

/// Copies `t`, most of which lies in `heap`, to a region of which the caller gets a count, and
/// keeps sharing within it. Returns the copy and the region.
pub fn to_region(t: Term, heap: &Heap) -> (Term, &'static Region) {
    let mut last = LAST.replace(0);
    if stress_roll(3) {
        last = 1 + below(200);
    }
    if last > 0 {
        let mut b = Builder::guessed(last);
        match Graph::<true>::start(Some(heap)).copy_once(t, &mut b) {
            Ok(s) => {
                let r = b.finish();
                keep(r.words);
                return (s, r);
            }
            Err(()) => b.abandon(),
        }
    }
    let g = Graph::<true>::whole(t, Some(heap));
    if !g.any_twice {
        keep(g.words);
    }
    let mut b = Builder::counted(g.words);
    let s = g.copy(t, &mut b);
    (s, b.finish())
}

/// As [`to_region`], for a term that takes `words` words as a tree.
pub fn to_region_of(t: Term, heap: &Heap, words: usize) -> (Term, &'static Region) {
    let mut b = Builder::counted(words);
    match Graph::<true>::start(Some(heap)).copy_once(t, &mut b) {
        Ok(s) => (s, b.finish()),
        Err(()) => {
            b.abandon();
            let g = Graph::<true>::whole(t, Some(heap));
            let mut b = Builder::counted(g.words);
            let s = g.copy(t, &mut b);
            (s, b.finish())
        }
    }
}

/// Remembers the size for the next term.
fn keep(words: usize) {
    if words <= AT_ONCE_WORDS {
        LAST.set(words);
    }
}
