//! Terms laid out without gaps in one block of memory, as native tables keep them.
//!
//! A block is filled through [`Filler`] by [`crate::copy::copy_whole`], so every pointer in it points into it, and it
//! refers to no region. It can then be copied anywhere by moving words and shifting pointers ([`copy_out`]), without
//! following the term. What its objects own outside is on the off-heap list that the filler gave.

use crate::alloc::Alloc;
use crate::copy::retain_object;
use crate::heap::OffHeap;
use crate::layout;
use crate::word::Term;

/// An [`Alloc`] over memory that is just large enough.
pub struct Filler {
    at: *mut Term,
    end: *mut Term,
    off_heap: OffHeap,
}

impl Filler {
    /// Fills `words` words at `p`.
    ///
    /// # Safety
    /// They are the caller's to write, and stay while what was made in them is used.
    pub unsafe fn new(p: *mut Term, words: usize) -> Filler {
        Filler {
            at: p,
            end: p.add(words),
            off_heap: OffHeap::default(),
        }
    }
    /// The list of objects made that own something outside. The caller keeps it with the block, and releases it.
    pub fn finish(self) -> OffHeap {
        self.off_heap
    }
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

/// Copies the block of `words` words at `from` to `to`; the result is where it lies now. A term of the old block
/// becomes one of the new by the same shift.
///
/// # Safety
/// `from` is a block made as the module head says, and alive.
pub unsafe fn copy_out<A: Alloc + ?Sized>(
    from: *const Term,
    words: usize,
    to: &mut A,
) -> *mut Term {
    let q = to.alloc(words);
    std::ptr::copy_nonoverlapping(from, q, words);
    let shift = (q as u64).wrapping_sub(from as u64);
    let mut i = 0;
    while i < words {
        let t = *q.add(i);
        if t.is_header() {
            let p = q.add(i);
            // A flat map's object is sized by a word that is no pointer, so the shift may come after.
            let n = layout::object_words(p);
            let (a, b) = layout::term_range(p);
            retain_object(p, to.off_heap());
            for k in a..b {
                shift_word(p.add(k), shift);
            }
            i += n;
        } else {
            shift_word(q.add(i), shift);
            i += 1;
        }
    }
    q
}

#[inline(always)]
unsafe fn shift_word(p: *mut Term, shift: u64) {
    let t = *p;
    if !t.is_immed() {
        (p as *mut u64).write(t.raw().wrapping_add(shift));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::{copy_whole, size_whole};
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
            let mut b = Filler::new(p, words);
            let kept = copy_whole(t, &mut b);
            assert_eq!((kept.ptr(), b.at), (p, b.end));
            let mut off_heap = b.finish();
            let mut out = Fragment::new();
            let copy = Term::boxed_at(copy_out(p, words, &mut out));
            crate::gc::release_off_heap(&mut off_heap);
            mem.fill(0);
            assert!(compare::eq_exact(copy, t));
            out.destroy();
            f.destroy();
        }
    }
}
