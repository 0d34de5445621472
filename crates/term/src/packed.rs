//! Terms laid out without gaps in one block of memory, as native tables keep them.
//!
//! [`fill`] fills a block, so every pointer in it points into it, except for the elements of its
//! first object that were to be kept: those point into counted regions. The block can then be
//! copied anywhere by moving words and shifting pointers ([`copy_out`]), without following the
//! term. Objects that own something outside are on the off-heap list that [`fill`] returned.

use crate::alloc::Alloc;
use crate::copy::{copy_whole, retain_object};
use crate::layout;
use crate::off_heap::OffHeap;
use crate::region::is_counted_ptr;
use crate::word::{Subtag, Term, header_subtag};

/// An [`Alloc`] over memory that is just large enough.
struct Filler {
    at: *mut Term,
    end: *mut Term,
    off_heap: OffHeap,
}

impl Alloc for Filler {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        let p = self.at;
        assert!(
            words <= (self.end as usize - p as usize) / 8,
            "a block is sized before it is filled"
        );
        // SAFETY: within the block, as just checked.
        self.at = unsafe { p.add(words) };
        p
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

/// Copies `t`, which is no immediate, to the `words` words at `p`, as many as
/// [`crate::copy::size_whole`] says: the object of `t` comes first. Returns the list of objects
/// made that own something outside, and the regions referred to: terms of the first object that are
/// among `keep`, and lie in counted regions, are not copied (nor counted in `words`).
///
/// Scans the copied objects in the order of their addresses, so that no stack is needed. A list is
/// copied cell after cell.
///
/// # Safety
/// The words are the caller's to write, and stay while what is made in them is used.
pub unsafe fn fill(t: Term, p: *mut Term, words: usize, keep: &[Term]) -> OffHeap {
    // SAFETY: by the contract there are `words` words, which `Filler` hands out; below `f.at` all
    // objects are whole.
    unsafe {
        let mut f = Filler {
            at: p,
            end: p.add(words),
            off_heap: OffHeap::default(),
        };
        copy_object(t, &mut f);
        let mut scan = p;
        if !keep.is_empty() && t.is_boxed() {
            let (a, b) = layout::term_range(p);
            for i in a..b {
                let e = *p.add(i);
                if keep.contains(&e) {
                    // A reader of the object tells kept parts from the object's own words by this.
                    if !is_counted_ptr(e.ptr()) {
                        crate::gc::fatal("an object refers to a region that nobody counts");
                    }
                    f.off_heap.regions.hold_pointer(e.ptr());
                } else {
                    copy_slot(p.add(i), p, &mut f);
                }
            }
            scan = p.add(layout::object_words(p));
        }
        while scan < f.at {
            let t = *scan;
            if t.is_header() {
                let n = layout::object_words(scan);
                let (a, b) = layout::term_range(scan);
                for i in a..b {
                    copy_slot(scan.add(i), p, &mut f);
                }
                scan = scan.add(n);
            } else {
                copy_slot(scan, p, &mut f);
                scan = scan.add(1);
            }
        }
        f.off_heap
    }
}

/// Redirects a word that still holds a term from outside the block to a copy in it.
///
/// # Safety
/// `slot` is one of the block's, whose filled words go from `start` on, and holds a whole term. The
/// block has room for what that refers to, all of which is alive.
#[inline(always)]
unsafe fn copy_slot(slot: *mut Term, start: *mut Term, f: &mut Filler) {
    // SAFETY: by the contract, the slot is a filled word of the block, and its target is alive.
    unsafe {
        let t = *slot;
        // Tails of copied lists lead to the next copied cell already.
        if !t.is_immed() && (t.ptr() < start || t.ptr() >= f.at) {
            *slot = copy_object(t, f);
        }
    }
}

/// Copies one object, or all cells of a list; the terms in the copy are the old ones.
///
/// # Safety
/// `t` is a pointer to a whole object outside the block, and everything it refers to is whole. The
/// block has room for it.
unsafe fn copy_object(t: Term, f: &mut Filler) -> Term {
    // SAFETY: by the contract: whole objects are read, and `Filler` returns as many words as are
    // written.
    unsafe {
        if t.is_list_ptr() {
            let q = f.alloc(2);
            let first = Term::cons_at(q);
            let mut from = t.ptr();
            let mut to = q;
            loop {
                to.write(*from);
                let tail = *from.add(1);
                if !tail.is_list_ptr() {
                    to.add(1).write(tail);
                    return first;
                }
                let next = f.alloc(2);
                to.add(1).write(Term::cons_at(next));
                (from, to) = (tail.ptr(), next);
            }
        }
        let p = t.ptr();
        match header_subtag((*p).raw()) {
            // The way they are copied depends on what they refer to.
            Subtag::SubBin | Subtag::MatchContext => copy_whole(t, f),
            s => {
                let n = layout::object_words(p);
                let q = f.alloc(n);
                if n <= 8 {
                    for i in 0..n {
                        q.add(i).write(*p.add(i));
                    }
                } else {
                    std::ptr::copy_nonoverlapping(p, q, n);
                }
                if layout::may_be_off_heap(s) || s as u8 == Subtag::Ref as u8 {
                    retain_object(q, f.off_heap());
                }
                Term::boxed_at(q)
            }
        }
    }
}

/// Copies the block of `words` words at `from` to `to`; returns its new place. The same shift turns
/// a term of the old block into one of the new. `KEPT`: it may refer to counted regions, which `to`
/// then holds.
///
/// # Safety
/// `from` is a block made as the module head says, and alive.
pub unsafe fn copy_out<const KEPT: bool, A: Alloc + ?Sized>(
    from: *const Term,
    words: usize,
    to: &mut A,
) -> *mut Term {
    let q = to.alloc(words);
    // SAFETY: by the contract; `alloc` returned as many words.
    unsafe {
        std::ptr::copy_nonoverlapping(from, q, words);
    }
    let shift = (q as u64).wrapping_sub(from as u64);
    let mut i = 0;
    while i < words {
        // SAFETY: `i` is less than `words`: the start of a whole object, or a slot of a cell, in a
        // copy of the block.
        unsafe {
            let t = *q.add(i);
            if t.is_header() {
                let p = q.add(i);
                // A flat map's size is in a word that is no pointer, so the shift may come after.
                let n = layout::object_words(p);
                let (a, b) = layout::term_range(p);
                let s = header_subtag(t.raw());
                if (layout::may_be_off_heap(s) || s as u8 == Subtag::Ref as u8)
                    && retain_object(p, to.off_heap())
                {
                    to.off_heap_grew();
                }
                for k in a..b {
                    if KEPT && !(*p.add(k)).is_immed() && is_counted_ptr((*p.add(k)).ptr()) {
                        to.off_heap().regions.hold_pointer((*p.add(k)).ptr());
                        continue;
                    }
                    shift_word(p.add(k), shift);
                }
                i += n;
            } else {
                shift_word(q.add(i), shift);
                i += 1;
            }
        }
    }
    q
}

/// Shifts a pointer to a moved block.
///
/// # Safety
/// `p` is a word of a block that is moved by `shift` bytes, and holds an immediate or a pointer
/// into that block.
#[inline(always)]
unsafe fn shift_word(p: *mut Term, shift: u64) {
    // SAFETY: by the contract, the word may be read and written.
    unsafe {
        let t = *p;
        if !t.is_immed() {
            (p as *mut u64).write(t.raw().wrapping_add(shift));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::size_whole;
    use crate::frag::Fragment;
    use crate::{NIL, compare, map};

    #[test]
    fn blocks_copied_out_equal_what_was_put_in() {
        let mut f = Fragment::new();
        let big = f.binary(&[7; 200]);
        let part = f.sub_binary(big, 11, 900);
        let small = f.sub_binary(big, 3, 80);
        let float = f.float(1.5);
        let n = f.big(true, &[1, 2, 3]);
        let pairs: Vec<_> = (0..50)
            .map(|i| {
                let v = f.list(&[Term::small(i), float]);
                (Term::small(i), v)
            })
            .collect();
        let m = map::from_pairs(&mut f, &pairs);
        let fm = map::from_pairs(&mut f, &pairs[..3]);
        let l = f.list_tail(&[big, part, n, m, fm], small);
        let t = f.tuple(&[l, NIL, l, Term::small(3)]);
        let words = size_whole(t);
        let mut mem = vec![0u64; words];
        // SAFETY: the memory is large enough and outlives what is made in it.
        unsafe {
            let p = mem.as_mut_ptr() as *mut Term;
            let mut off_heap = fill(t, p, words, &[]);
            let mut out = Fragment::new();
            let copy = Term::boxed_at(copy_out::<false, _>(p, words, &mut out));
            crate::off_heap::release_off_heap(&mut off_heap);
            mem.fill(0);
            assert!(compare::eq_exact(copy, t));
            out.destroy();
            f.destroy();
        }
    }
}
