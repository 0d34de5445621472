//! Copying terms from one place to another. Terms in a region (literals too) are shared, not
//! copied.

use crate::alloc::Alloc;
use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::layout::{self, is_magic};
use crate::magic::MagicRef;
use crate::node::Node;
use crate::region::{is_counted_ptr, is_shared};
use crate::word::{Subtag, TAG_BOXED, TAG_LIST, Term, header, header_arity, header_subtag};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

/// Number of words that [`copy`] needs for `t`. Terms reached twice count twice; regions count
/// nothing.
pub fn size_of(t: Term) -> usize {
    size::<true>(t)
}

/// Number of words that [`copy_whole`] needs for `t`.
pub fn size_whole(t: Term) -> usize {
    size::<false>(t)
}

/// Whether a copy refers to `t` instead of copying it.
#[inline(always)]
pub(crate) fn stays<const SHARE: bool>(t: Term) -> bool {
    if SHARE { is_shared(t) } else { t.is_immed() }
}

fn size<const SHARE: bool>(t: Term) -> usize {
    if stays::<SHARE>(t) {
        return 0;
    }
    let mut words = 0;
    // On the native stack while it is small, as it is for most terms.
    let mut todo: SmallVec<[Term; 32]> = SmallVec::new();
    todo.push(t);
    while let Some(mut t) = todo.pop() {
        loop {
            if stays::<SHARE>(t) {
                break;
            }
            if let Some((h, tl)) = t.as_cons() {
                words += 2;
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
                    Subtag::SubBin | Subtag::MatchContext => words += bits_words::<SHARE>(t),
                    _ => {
                        words += layout::object_words(p);
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
    words
}

/// The original behind a sub-binary or match context, its bit offset and its bit length.
///
/// # Safety
/// `p` is the header of a sub-binary or of a match context.
unsafe fn sub_parts(p: *const Term) -> (Term, usize, usize) {
    // SAFETY: by the contract; words as drawn in `layout`.
    unsafe {
        if header_subtag((*p).raw()) as u8 == Subtag::SubBin as u8 {
            let m = (*p.add(3)).raw();
            (
                *p.add(4),
                (*p.add(2)).raw() as usize * 8 + (m >> 8 & 0xFF) as usize,
                (*p.add(1)).raw() as usize * 8 + (m & 0xFF) as usize,
            )
        } else {
            let (off, end) = ((*p.add(3)).raw() as usize, (*p.add(4)).raw() as usize);
            (*p.add(1), off, end - off)
        }
    }
}

/// Number of words for a copy of a sub-binary or match context: as a heap binary if small and
/// plain, otherwise the sub-binary and its original.
pub(crate) fn bits_words<const SHARE: bool>(t: Term) -> usize {
    // SAFETY: as in size_of.
    unsafe {
        let (orig, _, len) = sub_parts(t.ptr());
        if len & 7 == 0 && len / 8 <= layout::HEAP_BIN_LIMIT {
            layout::HEAP_BIN_HEAD_WORDS + (len / 8).div_ceil(8)
        } else {
            layout::SUB_BIN_WORDS
                + if stays::<SHARE>(orig) {
                    0
                } else {
                    layout::object_words(orig.ptr())
                }
        }
    }
}

/// Has `to` hold the region of `t`, which is not copied.
#[inline(always)]
pub(crate) fn hold<A: Alloc + ?Sized>(t: Term, to: &mut A) {
    if !t.is_immed() && is_counted_ptr(t.ptr()) {
        to.off_heap().regions.hold_pointer(t.ptr());
    }
}

/// Number of words that [`copy`] needs for `t`, if at most `limit`. Looks at little more than that
/// many.
pub fn size_within(t: Term, limit: usize) -> Option<usize> {
    bounded::<true>(t, limit)
}

/// Number of words that [`copy_whole`] needs for `t`, if at most `limit`.
pub fn size_whole_within(t: Term, limit: usize) -> Option<usize> {
    bounded::<false>(t, limit)
}

fn bounded<const SHARE: bool>(t: Term, limit: usize) -> Option<usize> {
    if stays::<SHARE>(t) {
        return Some(0);
    }
    let mut words = 0;
    let mut todo: SmallVec<[Term; 32]> = SmallVec::new();
    todo.push(t);
    while let Some(mut t) = todo.pop() {
        loop {
            if words > limit {
                return None;
            }
            if stays::<SHARE>(t) {
                break;
            }
            if let Some((h, tl)) = t.as_cons() {
                words += 2;
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
                    Subtag::SubBin | Subtag::MatchContext => words += bits_words::<SHARE>(t),
                    _ => {
                        words += layout::object_words(p);
                        let (a, b) = layout::term_range(p);
                        todo.extend((a..b).map(|i| *p.add(i)).filter(|e| !e.is_immed()));
                    }
                }
            }
            break;
        }
    }
    (words <= limit).then_some(words)
}

/// The number of words that [`copy`] needs, counted in stages. Terms for which `apart` returns true
/// count nothing.
pub struct Measure<F: Fn(Term) -> bool> {
    words: usize,
    todo: SmallVec<[Term; 32]>,
    apart: F,
}

impl Measure<fn(Term) -> bool> {
    /// Measures all of `t`.
    #[inline(always)]
    pub fn of(t: Term) -> Measure<impl Fn(Term) -> bool> {
        Measure::around(t, |_| false)
    }
}

impl<F: Fn(Term) -> bool> Measure<F> {
    /// Measures `t` without the terms that are apart.
    #[inline(always)]
    pub fn around(t: Term, apart: F) -> Measure<F> {
        let mut todo = SmallVec::new();
        todo.push(t);
        Measure {
            words: 0,
            todo,
            apart,
        }
    }
    /// The number of all words, if at most `limit`. Looks at little more than that many.
    #[inline(always)]
    pub fn within(&mut self, limit: usize) -> Option<usize> {
        let mut words = self.words;
        while let Some(mut t) = self.todo.pop() {
            loop {
                if stays::<true>(t) || (self.apart)(t) {
                    break;
                }
                if words > limit {
                    self.todo.push(t);
                    self.words = words;
                    return None;
                }
                if let Some((h, tl)) = t.as_cons() {
                    words += 2;
                    if !h.is_immed() {
                        self.todo.push(h);
                    }
                    t = tl;
                    continue;
                }
                let p = t.ptr();
                // SAFETY: a boxed term in hand is well formed.
                unsafe {
                    match header_subtag((*p).raw()) {
                        Subtag::SubBin | Subtag::MatchContext => words += bits_words::<true>(t),
                        _ => {
                            words += layout::object_words(p);
                            let (a, b) = layout::term_range(p);
                            for i in a..b {
                                let e = *p.add(i);
                                if !e.is_immed() {
                                    self.todo.push(e);
                                }
                            }
                        }
                    }
                }
                break;
            }
        }
        self.words = words;
        (words <= limit).then_some(words)
    }
}

/// Copies `t` as [`copy`] does, except that `stand_in` may give a substitute for a term, which is
/// neither copied nor held.
pub fn copy_around<A: Alloc + ?Sized>(
    t: Term,
    to: &mut A,
    stand_in: impl Fn(Term) -> Option<Term>,
) -> Term {
    copy_in::<true, A>(t, to, stand_in)
}

/// Walks the parts of a term that are worth a look-up, level by level: those inside tuples,
/// closures, maps and lists of few elements.
pub struct Levels {
    found: SmallVec<[Term; 32]>,
    next: usize,
}

/// Maximum number of elements looked into: of a list, and of a tuple, map or closure.
const FEW_CELLS: usize = 8;
const FEW_ELEMENTS: usize = 33;

impl Levels {
    /// Begins with `t` itself.
    #[inline]
    pub fn of(t: Term) -> Levels {
        let mut found = SmallVec::new();
        found.push(t);
        Levels { found, next: 0 }
    }
    /// The next part, as long as fewer than `most` were returned.
    #[inline]
    pub fn next(&mut self, most: usize) -> Option<Term> {
        if self.next >= most {
            return None;
        }
        let t = *self.found.get(self.next)?;
        self.next += 1;
        Some(t)
    }
    /// Appends the parts of `t`, the part returned last, to the walk.
    #[inline]
    pub fn look_into(&mut self, t: Term) {
        if t.is_list_ptr() {
            let before = self.found.len();
            let mut l = t;
            for _ in 0..FEW_CELLS {
                let Some((h, tl)) = l.as_cons() else { return };
                if !is_shared(h) {
                    self.found.push(h);
                }
                l = tl;
                if is_shared(l) {
                    return;
                }
            }
            self.found.truncate(before);
            return;
        }
        let p = t.ptr();
        // SAFETY: a boxed term in hand is well formed.
        unsafe {
            match header_subtag((*p).raw()) {
                Subtag::Tuple | Subtag::Fun | Subtag::Record => {}
                Subtag::Map if layout::map_kind((*p).raw()) == layout::MAP_FLAT => {}
                _ => return,
            }
            let (a, b) = layout::term_range(p);
            if b.saturating_sub(a) <= FEW_ELEMENTS {
                let elements = (a..b).map(|i| *p.add(i));
                self.found.extend(elements.filter(|&e| !is_shared(e)));
            }
        }
    }
}

/// Copies `t` into `to`. Refers to regions instead of copying them; `to` holds the counted ones.
pub fn copy<A: Alloc + ?Sized>(t: Term, to: &mut A) -> Term {
    copy_in::<true, A>(t, to, |_| None)
}

/// Copies `t` into `to` without references to regions: terms in regions are copied too. For terms
/// kept where nobody holds regions, or longer than literals may live. The first object made is the
/// root's.
pub fn copy_whole<A: Alloc + ?Sized>(t: Term, to: &mut A) -> Term {
    copy_in::<false, A>(t, to, |_| None)
}

#[inline(always)]
fn copy_in<const SHARE: bool, A: Alloc + ?Sized>(
    t: Term,
    to: &mut A,
    stand_in: impl Fn(Term) -> Option<Term>,
) -> Term {
    let mut root = t;
    if stays::<SHARE>(t) {
        hold(t, to);
        return t;
    }
    // Slots that hold a source term whose copy must be put there.
    let mut todo: SmallVec<[*mut Term; 32]> = SmallVec::new();
    todo.push(&mut root);
    while let Some(mut slot) = todo.pop() {
        // SAFETY: slots are words of objects made below, or `root`; sources are terms in hand. The
        // term at the slot is kept beside it: reading it back right after it was written takes
        // longer than everything else that is done for a cell.
        let mut t = unsafe { *slot };
        loop {
            // SAFETY: as above.
            unsafe {
                if stays::<SHARE>(t) {
                    hold(t, to);
                    *slot = t;
                    break;
                }
                if let Some(s) = stand_in(t) {
                    *slot = s;
                    break;
                }
                if let Some((h, tl)) = t.as_cons() {
                    let q = to.alloc(2);
                    q.write(h);
                    *slot = Term::cons_at(q);
                    if !h.is_immed() {
                        todo.push(q);
                    }
                    slot = q.add(1);
                    t = tl;
                    continue;
                }
                let p = t.ptr();
                let sub = header_subtag((*p).raw());
                if matches!(sub, Subtag::SubBin | Subtag::MatchContext) {
                    let (orig, off, len) = sub_parts(p);
                    if len & 7 == 0 && len / 8 <= layout::HEAP_BIN_LIMIT {
                        let bits = layout::Bits {
                            base: bits_base(orig).add(off >> 3),
                            bit_offset: (off & 7) as u32,
                            bit_len: len,
                        };
                        let (b, dst) = to.heap_bin(len / 8);
                        match bits.as_bytes() {
                            Some(s) => std::ptr::copy_nonoverlapping(s.as_ptr(), dst, s.len()),
                            None => {
                                let v = bits.shifted();
                                std::ptr::copy_nonoverlapping(v.as_ptr(), dst, v.len());
                            }
                        }
                        *slot = b;
                    } else {
                        let orig = if stays::<SHARE>(orig) {
                            hold(orig, to);
                            orig
                        } else {
                            copy_object(orig.ptr(), to)
                        };
                        *slot = to.sub_binary(orig, off, len);
                    }
                    break;
                }
                let c = copy_object(p, to);
                *slot = c;
                let q = c.ptr();
                let (a, b) = layout::term_range(q);
                for i in a..b {
                    if !(*q.add(i)).is_immed() {
                        todo.push(q.add(i));
                    }
                }
            }
            break;
        }
    }
    root
}

/// Maximum number of words of a [`Flat`].
pub const FLAT_WORDS: usize = 32;

/// A copy of a small term that owns nothing outside itself, without a fixed address: it is measured
/// and copied in one pass, and moved from block to block by adding to those of its words that point
/// into it.
pub struct Flat {
    words: [MaybeUninit<u64>; FLAT_WORDS],
    len: usize,
    /// A bit for each word: whether it points to another of them.
    inside: u32,
    root: u64,
}

impl Flat {
    /// Makes an empty one.
    #[inline(always)]
    pub fn new() -> Flat {
        Flat {
            words: [const { MaybeUninit::uninit() }; FLAT_WORDS],
            len: 0,
            inside: 0,
            root: 0,
        }
    }
    /// Makes it a copy of `t`, which is no immediate. Returns false if `t` is larger, owns
    /// something, or refers to a region.
    #[inline]
    pub fn set(&mut self, t: Term) -> bool {
        let mut todo = Todo::new();
        self.len = 0;
        self.inside = 0;
        match self.object(t, &mut todo) {
            Some(root) => self.root = root,
            None => return false,
        }
        self.rest(&mut todo)
    }
    /// Makes it a tuple of copies of `items`. Returns false as [`Flat::set`] does.
    #[inline]
    pub fn set_tuple(&mut self, items: &[Term]) -> bool {
        if items.len() >= FLAT_WORDS {
            return false;
        }
        let mut todo = Todo::new();
        (self.len, self.inside, self.root) = (1 + items.len(), 0, TAG_BOXED);
        self.words[0].write(header(Subtag::Tuple, items.len()));
        for (i, &t) in items.iter().enumerate() {
            self.words[1 + i].write(t.raw());
            if !self.slot(1 + i, t, &mut todo) {
                return false;
            }
        }
        self.rest(&mut todo)
    }
    /// Makes it a cons cell of copies of `a` and `d`. Returns the words that the copy of `d` takes,
    /// as (first, end).
    #[inline]
    pub fn set_pair(&mut self, a: Term, d: Term) -> Option<(usize, usize)> {
        let mut todo = Todo::new();
        (self.len, self.inside, self.root) = (2, 0, TAG_LIST);
        self.words[0].write(a.raw());
        self.words[1].write(d.raw());
        if !(self.slot(1, d, &mut todo) && self.rest(&mut todo)) {
            return None;
        }
        let end = self.len;
        (self.slot(0, a, &mut todo) && self.rest(&mut todo)).then_some((2, end))
    }
    /// Number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The bits that [`move_flat`] needs.
    #[inline]
    pub fn inside(&self) -> u32 {
        self.inside
    }
    /// Writes it at `to`; returns the term there.
    ///
    /// # Safety
    /// There is room for its words, 8-aligned.
    #[inline]
    pub unsafe fn put(&self, to: *mut Term) -> Term {
        let from = self.words.as_ptr() as *const u64;
        // SAFETY: by the contract; the words of a `Flat` below `len` are written.
        unsafe {
            relocate(from, to as *mut u64, self.len, self.inside, to as u64);
            Term::from_raw(self.root.wrapping_add(to as u64))
        }
    }
    #[inline]
    fn rest(&mut self, todo: &mut Todo) -> bool {
        while todo.len > 0 {
            todo.len -= 1;
            let i = todo.slots[todo.len] as usize;
            // SAFETY: a slot is a word that was written, with a term in hand.
            let t = unsafe { Term::from_raw(self.words[i].assume_init()) };
            match self.object(t, todo) {
                Some(w) => self.words[i].write(w),
                None => return false,
            };
            self.inside |= 1 << i;
        }
        true
    }
    /// Handles word `i`, which is `t`: its target may have to be copied.
    #[inline(always)]
    fn slot(&mut self, i: usize, t: Term, todo: &mut Todo) -> bool {
        if is_shared(t) {
            return t.is_immed() || !is_counted_ptr(t.ptr());
        }
        todo.slots[todo.len] = i as u8;
        todo.len += 1;
        true
    }
    /// Copies one object; returns a pointer to it relative to the first word.
    #[inline(always)]
    fn object(&mut self, t: Term, todo: &mut Todo) -> Option<u64> {
        let at = self.len;
        let p = t.ptr();
        // SAFETY: a cons or boxed term in hand is well formed.
        unsafe {
            let (n, (a, b), tag) = if t.is_list_ptr() {
                (2, (0, 2), TAG_LIST)
            } else {
                let range = match header_subtag((*p).raw()) {
                    Subtag::Tuple | Subtag::Record => (1, 1 + header_arity((*p).raw())),
                    Subtag::Map => layout::term_range(p),
                    Subtag::Ref if !is_magic(p) => (0, 0),
                    Subtag::Float | Subtag::PosBig | Subtag::NegBig | Subtag::HeapBin => (0, 0),
                    _ => return None,
                };
                (layout::object_words(p), range, TAG_BOXED)
            };
            if n > FLAT_WORDS - at {
                return None;
            }
            for i in 0..n {
                self.words[at + i].write((*p.add(i)).raw());
            }
            self.len = at + n;
            for i in a..b {
                if !self.slot(at + i, *p.add(i), todo) {
                    return None;
                }
            }
            Some((at as u64 * 8) | tag)
        }
    }
}

impl Default for Flat {
    fn default() -> Self {
        Self::new()
    }
}

/// Words of a [`Flat`] that hold terms yet to be copied. Each of its words is here at most once.
struct Todo {
    slots: [u8; FLAT_WORDS],
    len: usize,
}

impl Todo {
    #[inline(always)]
    fn new() -> Todo {
        Todo {
            slots: [0; FLAT_WORDS],
            len: 0,
        }
    }
}

/// Copies `n` words, adding `delta` to those that `inside` marks.
///
/// # Safety
/// There are `n` words at `from`, and room for as many at `to`, which is elsewhere.
#[inline(always)]
unsafe fn relocate(from: *const u64, to: *mut u64, n: usize, mut inside: u32, delta: u64) {
    // SAFETY: by the contract.
    unsafe {
        for i in 0..n {
            let d = delta & 0u64.wrapping_sub(u64::from(inside & 1));
            to.add(i).write((*from.add(i)).wrapping_add(d));
            inside >>= 1;
        }
    }
}

/// Copies words `first..end` of the block at `from`, where a [`Flat`] was put, to `to`: all words
/// of `t`, a term in that block. Returns the copy of `t`.
///
/// # Safety
/// `inside` is that of the `Flat`; there is room at `to`.
#[inline]
pub unsafe fn move_flat(
    t: Term,
    from: *const Term,
    (first, end): (usize, usize),
    inside: u32,
    to: *mut Term,
) -> Term {
    // SAFETY: by the contract; the words lie in the block at `from`.
    unsafe {
        let from = from.add(first);
        let delta = (to as u64).wrapping_sub(from as u64);
        let inside = inside.checked_shr(first as u32).unwrap_or(0);
        relocate(
            from as *const u64,
            to as *mut u64,
            end - first,
            inside,
            delta,
        );
        Term::from_raw(t.raw().wrapping_add(delta))
    }
}

/// Maximum nesting of the parts that [`parts`] visits, and number of terms that it looks at. A
/// closure among the arguments of a task is five levels deep, and the bindings of an evaluated one
/// are three more.
const PART_LEVELS: usize = 10;
const PARTS: usize = 96;
/// Maximum number of elements of a tuple, values of a closure or map, or cells of a list that is
/// looked into.
const PART_WIDTH: usize = 8;

/// Returns `t` with its parts replaced: small structures around large terms (tuples, closures, maps
/// and lists of few elements, some levels of them) are rebuilt in `to`, and `f` gives the
/// substitute of each part. It is called once for each, in an order that depends on `t` only. The
/// results of `f` are stored as they are: nothing is copied or held.
pub fn parts<A: Alloc>(t: Term, to: &mut A, f: &mut dyn FnMut(Term) -> Term) -> Term {
    let mut p = Rebuilt {
        to,
        f,
        left: PARTS,
        done: SmallVec::new(),
    };
    p.at(t, PART_LEVELS)
}

struct Rebuilt<'a, A> {
    to: &'a mut A,
    f: &'a mut dyn FnMut(Term) -> Term,
    left: usize,
    /// Terms met, and their substitutes, so that sharing is kept.
    done: SmallVec<[(Term, Term); 16]>,
}

impl<A: Alloc> Rebuilt<'_, A> {
    fn at(&mut self, t: Term, levels: usize) -> Term {
        if t.is_immed() {
            return t;
        }
        if let Some(&(_, s)) = self.done.iter().find(|(d, _)| *d == t) {
            return s;
        }
        let enough = levels == 0 || self.left < PART_WIDTH;
        self.left = self.left.saturating_sub(1);
        let s = if enough || is_shared(t) {
            None
        } else if t.is_list_ptr() {
            self.list(t, levels)
        } else {
            self.object(t, levels)
        };
        let s = s.unwrap_or_else(|| (self.f)(t));
        self.done.push((t, s));
        s
    }
    /// Rebuilds a short list.
    fn list(&mut self, t: Term, levels: usize) -> Option<Term> {
        let mut v: SmallVec<[Term; PART_WIDTH]> = SmallVec::new();
        let mut l = t;
        while let Some((h, tl)) = l.as_cons() {
            if is_shared(l) {
                break;
            }
            if v.len() == PART_WIDTH {
                return None;
            }
            v.push(h);
            l = tl;
        }
        // A tail in a region stays, such as that of `[Fun | [[]]]` in `spawn/1`.
        if !is_shared(l) {
            return None;
        }
        for e in &mut v {
            *e = self.at(*e, levels - 1);
        }
        Some(self.to.list_tail(&v, l))
    }
    /// Rebuilds a small tuple, closure or map.
    fn object(&mut self, t: Term, levels: usize) -> Option<Term> {
        let p = t.ptr();
        // SAFETY: a boxed term in hand is well formed; the object made is of its kind and size.
        unsafe {
            let wide = layout::object_words(p) > layout::FUN_WORDS + PART_WIDTH;
            match header_subtag((*p).raw()) {
                Subtag::Tuple | Subtag::Fun | Subtag::Record if !wide => {}
                Subtag::Map if !wide && layout::map_kind((*p).raw()) == layout::MAP_FLAT => {}
                _ => return None,
            }
            let c = copy_object(p, self.to);
            let (a, b) = layout::term_range(p);
            for i in a..b {
                c.ptr().add(i).write(self.at(*p.add(i), levels - 1));
            }
            Some(c)
        }
    }
}

/// The bytes of a binary.
///
/// # Safety
/// `orig` is a heap binary or a counted one.
unsafe fn bits_base(orig: Term) -> *const u8 {
    let p = orig.ptr();
    // SAFETY: by the contract; words as drawn in `layout`.
    unsafe {
        match header_subtag((*p).raw()) {
            Subtag::HeapBin => p.add(2) as *const u8,
            _ => (*p.add(4)).raw() as *const u8,
        }
    }
}

/// Copies the one object at `p`, whose terms stay the old ones; counts what it owns.
///
/// # Safety
/// `p` points at a well-formed boxed object.
pub(crate) unsafe fn copy_object<A: Alloc + ?Sized>(p: *const Term, to: &mut A) -> Term {
    // SAFETY: by the contract; `alloc` returned as many words.
    unsafe {
        let n = layout::object_words(p);
        let q = to.alloc(n);
        std::ptr::copy_nonoverlapping(p, q, n);
        if retain_object(q, to.off_heap()) {
            to.off_heap_grew();
        }
        Term::boxed_at(q)
    }
}

/// Counts what the fresh copy of an object at `q` owns, and links it. Returns whether that is a
/// binary's bytes.
///
/// # Safety
/// `q` points at a bitwise copy, in a heap of `off_heap`, of a live object.
pub(crate) unsafe fn retain_object(q: *mut Term, off_heap: &mut crate::off_heap::OffHeap) -> bool {
    // SAFETY: by the contract: what the original owns is alive, and word 2 of the copy is free for
    // the link.
    unsafe {
        match header_subtag((*q).raw()) {
            Subtag::RefcBin => {
                RcBin::retain((*q.add(3)).raw() as *const RcBin);
                // A copy is a reader: only the original may append.
                (q.add(5) as *mut u64).write(0);
                off_heap.link(q);
                off_heap.bytes += (*q.add(1)).raw() as usize;
                return true;
            }
            Subtag::Fun if (*q.add(3)).raw() >> 16 & 1 == 0 => {
                (*((*q.add(1)).raw() as *const FunEntry)).retain();
                off_heap.link(q);
            }
            Subtag::Ref if is_magic(q) => {
                (*((*q.add(1)).raw() as *const MagicRef)).retain();
                off_heap.link(q);
            }
            Subtag::ExtPid | Subtag::ExtPort | Subtag::ExtRef => {
                (*((*q.add(1)).raw() as *const Node))
                    .refc
                    .fetch_add(1, Ordering::Relaxed);
                off_heap.link(q);
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::eq_exact;
    use crate::frag::Fragment;
    use crate::word::NIL;

    fn room() -> Vec<Term> {
        vec![NIL; FLAT_WORDS]
    }

    #[test]
    fn flat_terms_are_moved_from_block_to_block() {
        crate::region::init();
        let mut f = Fragment::new();
        let r = f.local_ref([1, 2, 3]);
        let tag = f.cons(Term::small(5), r);
        let from = f.tuple(&[Term::pid(77), tag]);
        let big = f.float(2.5);
        let map = crate::map::from_pairs(&mut f, &[(Term::small(1), big)]);
        let empty = f.tuple(&[]);
        let t = f.tuple(&[Term::small(9), from, map, empty]);
        let mut flat = Flat::new();
        assert!(flat.set(t));
        assert_eq!(flat.len(), size_of(t));
        let (mut one, mut two) = (room(), room());
        // SAFETY: there is room; what was written at `one` stays.
        unsafe {
            let a = flat.put(one.as_mut_ptr());
            assert!(eq_exact(a, t));
            let all = (0, flat.len());
            let b = move_flat(a, one.as_ptr(), all, flat.inside(), two.as_mut_ptr());
            one.fill(NIL);
            assert!(eq_exact(b, t));
        }
        assert!(flat.set_tuple(&[t, r, NIL]));
        let all = f.tuple(&[t, r, NIL]);
        // SAFETY: as above.
        assert!(eq_exact(unsafe { flat.put(one.as_mut_ptr()) }, all));
        let part = flat.set_pair(r, t);
        let Some((first, end)) = part else {
            panic!("a small pair")
        };
        assert_eq!((first, end - first), (2, size_of(t)));
        // SAFETY: as above.
        unsafe {
            let a = flat.put(one.as_mut_ptr());
            let Some((h, d)) = a.as_cons() else {
                panic!("a pair")
            };
            assert!(eq_exact(h, r) && eq_exact(d, t));
            let b = move_flat(
                d,
                one.as_ptr(),
                (first, end),
                flat.inside(),
                two.as_mut_ptr(),
            );
            one.fill(NIL);
            assert!(eq_exact(b, t));
            f.destroy();
        }
    }

    #[test]
    fn what_is_large_or_owns_something_is_not_flat() {
        crate::region::init();
        let mut f = Fragment::new();
        let mut flat = Flat::new();
        let many: Vec<Term> = (0..FLAT_WORDS as i64).map(Term::small).collect();
        let t = f.tuple(&many);
        assert!(!flat.set(t));
        let t = f.tuple(&many[1..]);
        assert!(flat.set(t) && flat.len() == FLAT_WORDS);
        let long = f.list(&many);
        assert!(!flat.set(long));
        assert!(flat.set_pair(NIL, t).is_none());
        // SAFETY: its terms are not used any more.
        unsafe { f.destroy() };
    }
}
