//! Copying terms from one place to another. Terms in a region (literals too) are shared, not
//! copied.
//!
//! * `object.rs` copies one object, and counts what it owns.
//! * `measure.rs` counts the words of a copy beforehand.
//! * `levels.rs` walks the parts of a term that are worth a look-up.
//! * `flat.rs` holds small copies that can be moved from block to block.
//! * `replace.rs` rebuilds a term with other parts.

mod flat;
mod levels;
mod measure;
mod object;
mod replace;

pub use flat::{FLAT_WORDS, Flat, move_flat};
pub use levels::Levels;
pub(crate) use measure::bits_words;
pub use measure::{Measure, size_of, size_whole, size_whole_within, size_within};
pub(crate) use object::{copy_object, hold, retain_object, stays};
pub use replace::replace_parts;

use crate::alloc::Alloc;
use crate::layout;
use crate::word::{Subtag, Term, header_subtag};
use object::{bits_base, sub_parts};
use smallvec::SmallVec;

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

/// Copies `t` as [`copy`] does, except that `stand_in` may give a substitute for a term, which is
/// neither copied nor held.
pub fn copy_around<A: Alloc + ?Sized>(
    t: Term,
    to: &mut A,
    stand_in: impl Fn(Term) -> Option<Term>,
) -> Term {
    copy_in::<true, A>(t, to, stand_in)
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
        // The term at the slot is kept beside it: reading it back right after it was written takes
        // longer than everything else that is done for a cell.
        //
        // SAFETY: slots are words of objects made below, or `root`; sources are terms in hand.
        let mut t = unsafe { *slot };
        loop {
            // SAFETY: slots are words of objects made below, or `root`; sources are terms in hand.
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
