//! A visit of what some terms reach: pids, ports and references in them, and objects by the way.
//!
//! Each object is visited once, whichever root leads to it, so a visit of everything that a system
//! holds takes time and memory in proportion to it: a bit for each word near an object.
//!
//! # Invariants
//! * Nothing is changed, and nothing is made on any heap: terms must stay as they are meanwhile.
//! * Literals and everything else in uncounted regions are left out, as they belong to code, unless
//!   [`Reach::visit_literal`] begins there.
//! * A fun's maker is not reached through the fun: no program can send to it that way alone.

use crate::layout::{self, RefView};
use crate::magic::MagicRef;
use crate::map;
use crate::region::{is_counted_ptr, is_region_ptr};
use crate::word::Term;
use std::collections::HashMap;

/// Words that have their bits in one block.
const WORDS: usize = 8192;

/// A set of addresses of words.
pub struct Marks {
    places: HashMap<usize, usize>,
    /// The blocks, one behind the other.
    bits: Vec<u64>,
    /// The block used last, by the number of its first word and its beginning in `bits`.
    last: (usize, usize),
}

impl Default for Marks {
    fn default() -> Marks {
        Marks {
            places: HashMap::new(),
            bits: Vec::new(),
            last: (usize::MAX, 0),
        }
    }
}

impl Marks {
    /// Adds an address; returns whether it was missing.
    #[inline]
    pub fn add(&mut self, p: *const Term) -> bool {
        let word = p as usize / 8;
        let key = word / WORDS;
        if self.last.0 != key {
            let at = *self.places.entry(key).or_insert_with(|| {
                let at = self.bits.len();
                self.bits.resize(at + WORDS / 64, 0);
                at
            });
            self.last = (key, at);
        }
        let (at, bit) = (word % WORDS / 64, 1 << (word % 64));
        let bits = &mut self.bits[self.last.1 + at];
        let missing = *bits & bit == 0;
        *bits |= bit;
        missing
    }
}

/// The number of words of the object that a term refers to, and those of them that are terms. A
/// cons cell is an object; an immediate is none.
pub fn object<'a>(t: Term) -> (usize, &'a [Term]) {
    if t.is_immed() {
        return (0, &[]);
    }
    let p = t.ptr().cast_const();
    // SAFETY: a term in hand is well formed, so the words of its object are there.
    unsafe {
        if t.is_list_ptr() {
            return (2, std::slice::from_raw_parts(p, 2));
        }
        let (from, to) = layout::term_range(p);
        let parts = std::slice::from_raw_parts(p.add(from), to - from);
        (layout::object_words(p), parts)
    }
}

/// A term that names something outside of the objects that are visited.
#[derive(Clone, Copy)]
pub enum Name<'a> {
    Pid(Term),
    Port(Term),
    /// A reference of this runtime by its numbers, and the process whose alias it may be.
    Ref([u32; 3], Option<Term>),
    Magic(&'a MagicRef),
}

/// A visit of terms.
#[derive(Default)]
pub struct Reach {
    marks: Marks,
    todo: Vec<Term>,
    /// Whether uncounted regions are visited too.
    literals: bool,
    /// Number of objects visited.
    pub visited: u64,
}

impl Reach {
    /// Visits what `root` reaches and was not visited before. Calls `f` with each name in it.
    pub fn visit(&mut self, root: Term, f: &mut dyn FnMut(Name)) {
        self.look(root, f);
        while let Some(t) = self.todo.pop() {
            self.enter(t, f);
        }
    }
    /// As [`Reach::visit`], for a term that may lie in an uncounted region.
    pub fn visit_literal(&mut self, root: Term, f: &mut dyn FnMut(Name)) {
        self.literals = true;
        self.visit(root, f);
        self.literals = false;
    }
    /// Looks at a word, and notes the object that it refers to.
    #[inline]
    fn look(&mut self, t: Term, f: &mut dyn FnMut(Name)) {
        if t.is_immed() {
            if t.is_local_pid() {
                f(Name::Pid(t));
            } else if t.is_local_port() {
                f(Name::Port(t));
            }
            return;
        }
        let p = t.ptr().cast_const();
        if !self.literals && is_region_ptr(p) && !is_counted_ptr(p) {
            return;
        }
        if self.marks.add(p) {
            self.visited += 1;
            self.todo.push(t);
        }
    }
    /// Looks at the words of an object.
    fn enter(&mut self, t: Term, f: &mut dyn FnMut(Name)) {
        if let Some((head, tail)) = t.as_cons() {
            self.look(head, f);
            self.look(tail, f);
        } else if let Some(elements) = t.as_tuple() {
            elements.iter().for_each(|e| self.look(*e, f));
        } else if t.is_map() {
            for (k, v) in map::iter(t) {
                self.look(k, f);
                self.look(v, f);
            }
        } else if let Some(fun) = t.as_fun() {
            fun.env.iter().for_each(|e| self.look(*e, f));
        } else if let Some(r) = t.as_ref_view() {
            match r {
                RefView::Local { num, pid } => f(Name::Ref(num, pid)),
                RefView::Magic(m) => f(Name::Magic(m)),
                RefView::External { .. } => {}
            }
        } else if let Some(r) = t.as_record() {
            r.values.iter().for_each(|e| self.look(*e, f));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frag::Fragment;
    use crate::{Alloc, am};

    #[test]
    fn what_is_reached_is_named_once() {
        let mut f = Fragment::new();
        let (a, b) = (Term::pid(7), Term::pid(8));
        let inner = f.tuple(&[am::OK, a]);
        let list = f.list(&[inner, inner, Term::small(3)]);
        let alias = f.pid_ref([1, 2, 3], b);
        let map = crate::map::from_pairs(&mut f, &[(list, alias), (am::OK, Term::port(4))]);
        let mut reach = Reach::default();
        let (mut pids, mut refs, mut ports) = (Vec::new(), Vec::new(), Vec::new());
        for root in [map, list] {
            reach.visit(root, &mut |n| match n {
                Name::Pid(p) => pids.push(p),
                Name::Port(p) => ports.push(p),
                Name::Ref(n, p) => refs.push((n, p)),
                Name::Magic(_) => {}
            });
        }
        assert_eq!(pids, [a]);
        assert_eq!(ports, [Term::port(4)]);
        assert_eq!(refs, [([1, 2, 3], Some(b))]);
        // SAFETY: nothing of it is used any more.
        unsafe { f.destroy() };
    }

    #[test]
    fn marks_are_kept_across_blocks() {
        let mut m = Marks::default();
        let at = |n: usize| (n * 8) as *const Term;
        for n in [0, 1, 63, 64, WORDS - 1, WORDS, 7 * WORDS + 5] {
            assert!(m.add(at(n)) && !m.add(at(n)));
        }
        assert!(!m.add(at(0)) && m.add(at(2)));
    }
}
