//! The shortest paths from some terms to counted binaries and regions.
//!
//! A search visits terms level by level, each once, so the first path that it finds to a block is a
//! shortest one. A list counts as one level, and so does a map. It looks at no more terms than the
//! given limit.
//!
//! # Invariants
//! * Nothing is changed, and nothing is made on any heap: terms must stay as they are meanwhile.
//! * Literals and everything else in uncounted regions are left out: they belong to code.

use crate::bin::RcBin;
use crate::region::{is_counted_ptr, is_region_ptr, region_of};
use crate::word::{Subtag, Term, header_subtag};
use crate::{map, region};
use std::collections::{HashMap, HashSet, VecDeque};

/// A step from a term to one that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// An element of a tuple, from 1; and the first one, if that is an atom.
    Element(usize, Option<Term>),
    /// An element of a list, from 1.
    Item(usize),
    /// The improper tail of a list.
    Tail,
    /// The value of this key of a map.
    Value(Term),
    /// A key of a map.
    Key,
    /// A variable that a fun of a function has captured, from 1.
    Captured(usize, Term, Term),
}

/// A block outside of heaps that is held.
#[derive(Clone, Debug)]
pub struct Held {
    /// Whether it is a region; otherwise it is the block of a binary.
    pub region: bool,
    /// A number that distinguishes it from others that are alive.
    pub id: usize,
    pub bytes: usize,
    /// Number of bytes of a binary's block that the visited terms refer to.
    pub used: usize,
    /// Number of terms that refer to it.
    pub times: usize,
    /// Index of the root that leads to it, and the path.
    pub root: usize,
    pub path: Vec<Step>,
}

/// The results of a search.
#[derive(Default)]
pub struct Found {
    pub held: Vec<Held>,
    /// Number of terms looked at.
    pub looked: usize,
    /// There were more.
    pub stopped: bool,
}

/// Maximum number of ranges of a binary's bytes that are recorded; with more, the sum of their
/// lengths counts.
const RANGES: usize = 4096;

struct Node {
    term: Term,
    parent: usize,
    step: Step,
    root: usize,
}

const NOBODY: usize = usize::MAX;

struct Search {
    nodes: Vec<Node>,
    todo: VecDeque<usize>,
    seen: HashSet<usize>,
    places: HashMap<(bool, usize), usize>,
    ranges: HashMap<usize, Vec<(usize, usize)>>,
    found: Found,
    limit: usize,
}

/// Searches for what `roots` hold, through at most `limit` terms.
pub fn search(roots: &[Term], limit: usize) -> Found {
    let mut s = Search {
        nodes: Vec::new(),
        todo: VecDeque::new(),
        seen: HashSet::new(),
        places: HashMap::new(),
        ranges: HashMap::new(),
        found: Found::default(),
        limit,
    };
    for (root, &t) in roots.iter().enumerate() {
        s.add(t, NOBODY, Step::Item(root), root);
    }
    while let Some(i) = s.todo.pop_front() {
        s.look(i);
    }
    let Search {
        ranges, mut found, ..
    } = s;
    for h in found.held.iter_mut().filter(|h| !h.region) {
        if let Some(r) = ranges.get(&h.id) {
            h.used = covered(r.clone()).min(h.bytes);
        }
    }
    found
}

/// Number of bytes that some ranges cover.
fn covered(mut ranges: Vec<(usize, usize)>) -> usize {
    ranges.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for (from, to) in ranges {
        sum += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    sum
}

impl Search {
    /// Adds a term that a node holds.
    fn add(&mut self, t: Term, parent: usize, step: Step, root: usize) {
        if t.is_immed() {
            return;
        }
        let p = t.ptr();
        if is_region_ptr(p) && !is_counted_ptr(p) {
            return;
        }
        if self.found.looked >= self.limit {
            self.found.stopped = true;
            return;
        }
        self.found.looked += 1;
        if is_counted_ptr(p) {
            self.region(t, parent, step, root);
        }
        if let Some((block, from, bytes)) = block(t) {
            self.binary(block, from, bytes, (parent, step, root));
            return;
        }
        if self.seen.insert(t.raw() as usize) {
            self.nodes.push(Node {
                term: t,
                parent,
                step,
                root,
            });
            self.todo.push_back(self.nodes.len() - 1);
        }
    }

    /// Looks into the term of a node.
    fn look(&mut self, i: usize) {
        let (t, root) = (self.nodes[i].term, self.nodes[i].root);
        if let Some(elements) = t.as_tuple() {
            let tag = elements.first().copied().filter(|e| e.is_atom());
            for (n, &e) in elements.iter().enumerate() {
                self.add(e, i, Step::Element(n + 1, tag), root);
            }
        } else if t.is_list_ptr() {
            self.list(t, i, root);
        } else if t.is_map() {
            for (k, v) in map::iter(t) {
                self.add(k, i, Step::Key, root);
                self.add(v, i, Step::Value(k), root);
                if self.found.stopped {
                    return;
                }
            }
        } else if let Some(f) = t.as_fun() {
            let (module, function) = match f.local() {
                Some(entry) => (entry.module, entry.function()),
                None => return,
            };
            for (n, &e) in f.env.iter().enumerate() {
                self.add(e, i, Step::Captured(n + 1, module, function), root);
            }
        }
    }

    fn list(&mut self, t: Term, i: usize, root: usize) {
        let mut rest = t;
        let mut n = 0;
        while let Some((head, tail)) = rest.as_cons() {
            n += 1;
            self.add(head, i, Step::Item(n), root);
            if n > 1 {
                // Another list may lead here; this one came first.
                self.found.looked += 1;
                if self.found.looked >= self.limit {
                    self.found.stopped = true;
                    return;
                }
                if !self.seen.insert(rest.raw() as usize) {
                    return;
                }
            }
            rest = tail;
        }
        self.add(rest, i, Step::Tail, root);
    }

    fn path(&self, mut parent: usize, step: Step) -> Vec<Step> {
        let mut path = Vec::new();
        let mut step = step;
        while parent != NOBODY {
            path.push(step);
            (step, parent) = (self.nodes[parent].step, self.nodes[parent].parent);
        }
        path.reverse();
        path
    }

    fn held(&mut self, h: Held, parent: usize, step: Step) {
        match self.places.get(&(h.region, h.id)) {
            Some(&i) => self.found.held[i].times += 1,
            None => {
                self.places.insert((h.region, h.id), self.found.held.len());
                let path = self.path(parent, step);
                self.found.held.push(Held { path, ..h });
            }
        }
    }

    fn binary(
        &mut self,
        block: *const RcBin,
        from: usize,
        bytes: usize,
        (parent, step, root): (usize, Step, usize),
    ) {
        let id = block as usize;
        // SAFETY: a term in hand refers to it.
        let kept = unsafe { RcBin::kept_bytes(block) };
        let h = Held {
            region: false,
            id,
            bytes: kept,
            used: 0,
            times: 1,
            root,
            path: Vec::new(),
        };
        self.held(h, parent, step);
        let ranges = self.ranges.entry(id).or_default();
        if ranges.len() < RANGES {
            ranges.push((from, from + bytes));
        }
    }

    fn region(&mut self, t: Term, parent: usize, step: Step, root: usize) {
        let Some(r) = region_of(t.ptr()) else { return };
        let inside = parent != NOBODY && region_number(self.nodes[parent].term) == Some(r.number());
        if inside {
            return;
        }
        let h = Held {
            region: true,
            id: r.number() as usize,
            bytes: r.area().1 * 8,
            used: 0,
            times: 1,
            root,
            path: Vec::new(),
        };
        self.held(h, parent, step);
    }
}

fn region_number(t: Term) -> Option<u64> {
    let p = t.ptr();
    is_counted_ptr(p).then(|| region_of(p).map(region::Region::number))?
}

/// The counted block that a binary refers to, the address in it, and the number of bytes; None if
/// it has none.
pub fn block(t: Term) -> Option<(*const RcBin, usize, usize)> {
    let subtag = t.subtag()?;
    let p = t.ptr();
    // SAFETY: layouts of bitstrings and match contexts; a term in hand is well formed.
    unsafe {
        let (whole, from, bytes) = match subtag {
            Subtag::RefcBin => (p, (*p.add(4)).raw() as usize, (*p.add(1)).raw() as usize),
            Subtag::SubBin => {
                let b = t.as_bits()?;
                let n = (b.bit_offset as usize + b.bit_len).div_ceil(8);
                ((*p.add(4)).ptr(), b.base as usize, n)
            }
            Subtag::MatchContext => {
                let base = (*p.add(2)).raw() as usize;
                let (at, end) = ((*p.add(3)).raw() as usize, (*p.add(4)).raw() as usize);
                let from = at / 8;
                (
                    (*p.add(1)).ptr(),
                    base + from,
                    end.div_ceil(8).saturating_sub(from),
                )
            }
            _ => return None,
        };
        if header_subtag((*whole).raw()) as u8 != Subtag::RefcBin as u8 {
            return None;
        }
        Some(((*whole.add(3)).raw() as *const RcBin, from, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frag::Fragment;
    use crate::{Alloc, NIL, am};

    #[test]
    fn the_shortest_way_is_told_and_what_is_used() {
        let mut f = Fragment::new();
        let large = f.binary(&[7; 5000]);
        let part = f.sub_binary(large, 8 * 100, 8 * 60);
        let other = f.sub_binary(large, 8 * 130, 8 * 60);
        let list = f.list(&[Term::small(1), part, other]);
        let deep = f.tuple(&[am::OK, list]);
        let key = Term::small(9);
        let map = crate::map::from_pairs(&mut f, &[(key, deep)]);
        let near = f.tuple(&[am::ERROR, NIL, part]);
        let found = search(&[map, near], 1000);
        assert!(!found.stopped);
        let [h] = &found.held[..] else {
            panic!("one is held, not {:?}", found.held);
        };
        assert_eq!((h.bytes, h.used, h.root), (5000, 90, 1));
        assert_eq!(h.path, [Step::Element(3, Some(am::ERROR))]);
        let found = search(&[map], 1000);
        let path = [
            Step::Value(key),
            Step::Element(2, Some(am::OK)),
            Step::Item(2),
        ];
        assert_eq!(found.held[0].path, path);
        // It looks at no more terms than the limit.
        let found = search(&[map], 2);
        assert!(found.stopped && found.looked <= 2 && found.held.is_empty());
        // SAFETY: nothing of it is used any more.
        unsafe { f.destroy() };
    }

    #[test]
    fn overlaps_count_once() {
        assert_eq!(covered(vec![(0, 10), (5, 7), (8, 12), (20, 21)]), 13);
        assert_eq!(covered(Vec::new()), 0);
    }
}
