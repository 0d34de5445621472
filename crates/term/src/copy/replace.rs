//! Rebuilding a term with other parts.

use super::object::copy_object;
use crate::alloc::Alloc;
use crate::layout;
use crate::region::is_shared;
use crate::word::{Subtag, Term, header_subtag};
use smallvec::SmallVec;

/// Maximum nesting of the parts that [`replace_parts`] visits. A closure among the arguments of a
/// task is five levels deep, and the bindings of an evaluated one are three more.
const PART_LEVELS: usize = 10;
/// Maximum number of terms that it looks at.
const PARTS: usize = 96;
/// Maximum number of elements of a tuple, values of a closure or map, or cells of a list that is
/// looked into.
const PART_WIDTH: usize = 8;

/// Returns `t` with its parts replaced: small structures around large terms (tuples, closures, maps
/// and lists of few elements, some levels of them) are rebuilt in `to`, and `f` gives the
/// substitute of each part. It is called once for each, in an order that depends on `t` only. The
/// results of `f` are stored as they are: nothing is copied or held.
pub fn replace_parts<A: Alloc>(t: Term, to: &mut A, f: &mut dyn FnMut(Term) -> Term) -> Term {
    let mut p = Rebuild {
        to,
        f,
        left: PARTS,
        done: SmallVec::new(),
    };
    p.at(t, PART_LEVELS)
}

struct Rebuild<'a, A> {
    to: &'a mut A,
    f: &'a mut dyn FnMut(Term) -> Term,
    left: usize,
    /// Terms met, and their substitutes, so that sharing is kept.
    done: SmallVec<[(Term, Term); 16]>,
}

impl<A: Alloc> Rebuild<'_, A> {
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
