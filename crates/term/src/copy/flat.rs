//! Copies of small terms that can be moved from block to block.
//!
//! A [`Flat`] is used where the place of a copy is not known when the term is read: the term is
//! copied once, and the copy is moved by adding a difference to its pointers.

use crate::layout::{self, is_magic};
use crate::region::{is_counted_ptr, is_shared};
use crate::word::{Subtag, TAG_BOXED, TAG_LIST, Term, header, header_arity, header_subtag};
use std::mem::MaybeUninit;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Alloc;
    use crate::compare::eq_exact;
    use crate::copy::size_of;
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
        // SAFETY: there is room; what was written at `one` stays.
        assert!(eq_exact(unsafe { flat.put(one.as_mut_ptr()) }, all));
        let part = flat.set_pair(r, t);
        let Some((first, end)) = part else {
            panic!("a small pair")
        };
        assert_eq!((first, end - first), (2, size_of(t)));
        // SAFETY: there is room; what was written at `one` stays.
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
