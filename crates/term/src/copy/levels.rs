//! A walk of the parts of a term, level by level.

use crate::layout;
use crate::region::is_shared;
use crate::word::{Subtag, Term, header_subtag};
use smallvec::SmallVec;

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
