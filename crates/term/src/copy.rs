//! Copying terms from one place to another. What lies in a region (literals too) is shared, not copied.

use crate::alloc::Alloc;
use crate::bin::RcBin;
use crate::fun::FunEntry;
use crate::layout::{self, is_magic};
use crate::magic::MagicRef;
use crate::node::Node;
use crate::region::{is_counted_ptr, is_shared};
use crate::word::{Subtag, Term, header_subtag};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// Words that [`copy`] needs for `t`. Terms reached twice count twice; regions count nothing.
pub fn size_of(t: Term) -> usize {
    size::<true>(t)
}

/// Words that [`copy_whole`] needs for `t`.
pub fn size_whole(t: Term) -> usize {
    size::<false>(t)
}

/// Whether a copy refers to `t` in place of copying it.
#[inline(always)]
pub(crate) fn stays<const SHARE: bool>(t: Term) -> bool {
    if SHARE { is_shared(t) } else { t.is_immed() }
}

fn size<const SHARE: bool>(t: Term) -> usize {
    if stays::<SHARE>(t) {
        return 0;
    }
    let mut words = 0;
    // On the native stack while it is small: most terms are.
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
unsafe fn sub_parts(p: *const Term) -> (Term, usize, usize) {
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

/// Words for a copy of a sub-binary or match context: as a heap binary if small and plain, else the sub-binary and
/// its original.
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

/// Sees to it that `to` holds the region that `t`, which is not copied, lies in.
#[inline(always)]
pub(crate) fn hold<A: Alloc + ?Sized>(t: Term, to: &mut A) {
    if !t.is_immed() && is_counted_ptr(t.ptr()) {
        to.off_heap().regions.hold_pointer(t.ptr());
    }
}

/// Words that [`copy`] needs for `t`, if they are at most `limit`: looks at little more than that many.
pub fn size_within(t: Term, limit: usize) -> Option<usize> {
    bounded::<true>(t, limit)
}

/// Words that [`copy_whole`] needs for `t`, if they are at most `limit`.
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

/// A copy of `t` made in `to`. Regions are referred to, not copied; `to` holds those that are counted.
pub fn copy<A: Alloc + ?Sized>(t: Term, to: &mut A) -> Term {
    copy_in::<true, A>(t, to)
}

/// A copy of `t` made in `to` that refers to no region: what lies in one is copied too. For terms kept where nobody
/// holds regions, or longer than literals may live. The first object made is the root's.
pub fn copy_whole<A: Alloc + ?Sized>(t: Term, to: &mut A) -> Term {
    copy_in::<false, A>(t, to)
}

fn copy_in<const SHARE: bool, A: Alloc + ?Sized>(t: Term, to: &mut A) -> Term {
    let mut root = t;
    if stays::<SHARE>(t) {
        hold(t, to);
        return t;
    }
    // Slots that hold a source term whose copy must be put there.
    let mut todo: SmallVec<[*mut Term; 32]> = SmallVec::new();
    todo.push(&mut root);
    while let Some(mut slot) = todo.pop() {
        // SAFETY: slots are words of objects made below, or `root`; sources are terms in hand.
        // What is at the slot is kept beside it: reading it back from where it was just written takes longer than all else
        // that is done for a cell.
        let mut t = unsafe { *slot };
        loop {
            // SAFETY: as above.
            unsafe {
                if stays::<SHARE>(t) {
                    hold(t, to);
                    *slot = t;
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

/// Nesting and number of the parts that [`parts`] tells apart.
const PART_LEVELS: usize = 4;
const PARTS: usize = 64;
/// Elements of a tuple, values of a closure or cells of a list that is looked into.
const PART_WIDTH: usize = 8;

/// `t` with its parts replaced: what is small around large things (tuples, closures and lists of few elements, some levels
/// of them) is made anew in `to`, and `f` says what stands for each of the parts, once, in an order that depends on `t` only.
/// What `f` gives is put there as it is: nothing is copied or held.
pub fn parts<A: Alloc>(t: Term, to: &mut A, f: &mut dyn FnMut(Term) -> Term) -> Term {
    let mut p = Parts {
        to,
        f,
        left: PARTS,
        done: SmallVec::new(),
    };
    p.at(t, PART_LEVELS)
}

struct Parts<'a, A> {
    to: &'a mut A,
    f: &'a mut dyn FnMut(Term) -> Term,
    left: usize,
    /// Terms met, and what stands for them: what is reached twice still is.
    done: SmallVec<[(Term, Term); 16]>,
}

impl<A: Alloc> Parts<'_, A> {
    fn at(&mut self, t: Term, levels: usize) -> Term {
        if t.is_immed() {
            return t;
        }
        if let Some(&(_, s)) = self.done.iter().find(|(d, _)| *d == t) {
            return s;
        }
        let s = if levels == 0 || self.left < PART_WIDTH || is_shared(t) {
            None
        } else if t.is_list_ptr() {
            self.list(t, levels)
        } else {
            self.object(t, levels)
        };
        let s = s.unwrap_or_else(|| {
            self.left = self.left.saturating_sub(1);
            (self.f)(t)
        });
        self.done.push((t, s));
        s
    }
    /// A short list, made anew.
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
    /// A small tuple or closure, made anew.
    fn object(&mut self, t: Term, levels: usize) -> Option<Term> {
        let p = t.ptr();
        // SAFETY: a boxed term in hand is well formed; the object made is of its kind and size.
        unsafe {
            let wide = layout::object_words(p) > layout::FUN_WORDS + PART_WIDTH;
            match header_subtag((*p).raw()) {
                Subtag::Tuple | Subtag::Fun if !wide => {}
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

unsafe fn bits_base(orig: Term) -> *const u8 {
    let p = orig.ptr();
    match header_subtag((*p).raw()) {
        Subtag::HeapBin => p.add(2) as *const u8,
        _ => (*p.add(4)).raw() as *const u8,
    }
}

/// A copy of the one object at `p`, its terms still the old ones; counts what it owns.
///
/// # Safety
/// `p` points at a well-formed boxed object.
pub(crate) unsafe fn copy_object<A: Alloc + ?Sized>(p: *const Term, to: &mut A) -> Term {
    let n = layout::object_words(p);
    let q = to.alloc(n);
    std::ptr::copy_nonoverlapping(p, q, n);
    retain_object(q, to.off_heap());
    Term::boxed_at(q)
}

/// Counts what the fresh copy of an object at `q` owns, and links it.
///
/// # Safety
/// `q` points at a bitwise copy, in a heap of `off_heap`, of a live object.
pub(crate) unsafe fn retain_object(q: *mut Term, off_heap: &mut crate::heap::OffHeap) {
    match header_subtag((*q).raw()) {
        Subtag::RefcBin => {
            RcBin::retain((*q.add(3)).raw() as *const RcBin);
            // A copy is a reader: only the original may append.
            (q.add(5) as *mut u64).write(0);
            off_heap.link(q);
            off_heap.bytes += (*q.add(1)).raw() as usize;
        }
        Subtag::Fun if (*q.add(3)).raw() >> 16 & 1 == 0 => {
            (*((*q.add(1)).raw() as *const FunEntry))
                .refc
                .fetch_add(1, Ordering::Relaxed);
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
