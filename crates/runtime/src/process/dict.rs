//! The process dictionary: key, value pairs whose terms live on the process's heap.
//!
//! The pairs are one slice of terms, so that the collector takes them as roots. Up to [`FEW`] pairs lie there without
//! gaps and are searched in order: a process made by `proc_lib` has three, and a million of those must stay small. More
//! are an open-addressing table of a power of two of pairs, in which a pair whose key is [`Term::NON_VALUE`] is empty.
//! Keys are hashed by `phash2`, which does not depend on addresses.

use purlin_term::compare::eq_exact;
use purlin_term::{Alloc, NIL, Term, am, hash};

/// Most pairs that are searched in order.
const FEW: usize = 8;

/// See the module head.
#[derive(Default)]
pub struct Dict {
    /// Key, value, key, value …
    slots: Box<[Term]>,
    /// Pairs in use.
    len: u32,
}

const EMPTY: Term = Term::NON_VALUE;

impl Dict {
    /// What the collector updates.
    pub fn slots_mut(&mut self) -> &mut [Term] {
        &mut self.slots
    }
    /// Entries.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Words that the table itself takes.
    pub fn words(&self) -> usize {
        self.slots.len()
    }
    fn pairs(&self) -> usize {
        self.slots.len() / 2
    }
    fn few(&self) -> bool {
        self.pairs() <= FEW
    }
    fn home(&self, k: Term) -> usize {
        let h = if k.is_immed() {
            (k.raw() >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
        } else {
            u64::from(hash::phash2(k))
        };
        h as usize & (self.pairs() - 1)
    }
    fn is_key(&self, i: usize, k: Term) -> bool {
        let s = self.slots[2 * i];
        s == k || (!k.is_immed() && !s.is_immed() && eq_exact(s, k))
    }
    /// Of a table: the pair that holds `k`, or the empty one where it would go.
    fn probe(&self, k: Term) -> usize {
        let n = self.pairs();
        let mut i = self.home(k);
        while self.slots[2 * i] != EMPTY && !self.is_key(i, k) {
            i = (i + 1) & (n - 1);
        }
        i
    }
    /// The pair that holds `k`.
    fn find(&self, k: Term) -> Option<usize> {
        if self.few() {
            return (0..self.pairs()).find(|&i| self.is_key(i, k));
        }
        Some(self.probe(k)).filter(|&i| self.slots[2 * i] != EMPTY)
    }
    /// The value of `k`.
    pub fn get(&self, k: Term) -> Option<Term> {
        self.find(k).map(|i| self.slots[2 * i + 1])
    }
    /// Sets the value of `k`; the one before is returned.
    pub fn put(&mut self, k: Term, v: Term) -> Option<Term> {
        if let Some(i) = self.find(k) {
            return Some(std::mem::replace(&mut self.slots[2 * i + 1], v));
        }
        if self.pairs() < FEW {
            let mut s = std::mem::take(&mut self.slots).into_vec();
            s.reserve_exact(2);
            s.extend([k, v]);
            self.slots = s.into_boxed_slice();
        } else {
            if self.few() || (self.len() + 1) * 4 > self.pairs() * 3 {
                let old = std::mem::take(&mut self.slots);
                self.slots = vec![EMPTY; old.len() * 2].into_boxed_slice();
                for p in old.chunks(2).filter(|p| p[0] != EMPTY) {
                    let i = self.probe(p[0]);
                    self.slots[2 * i] = p[0];
                    self.slots[2 * i + 1] = p[1];
                }
            }
            let i = self.probe(k);
            self.slots[2 * i] = k;
            self.slots[2 * i + 1] = v;
        }
        self.len += 1;
        None
    }
    /// Removes `k`; its value is returned.
    pub fn erase(&mut self, k: Term) -> Option<Term> {
        let i = self.find(k)?;
        let v = self.slots[2 * i + 1];
        self.len -= 1;
        if self.len == 0 {
            self.slots = Box::default();
        } else if self.few() {
            let mut s = std::mem::take(&mut self.slots).into_vec();
            s.drain(2 * i..2 * i + 2);
            self.slots = s.into_boxed_slice();
        } else {
            self.close_gap(i);
        }
        Some(v)
    }
    /// Empties a pair of a table so that no search ends too early.
    fn close_gap(&mut self, i: usize) {
        let n = self.pairs();
        let (mut hole, mut j) = (i, i);
        loop {
            j = (j + 1) & (n - 1);
            let k = self.slots[2 * j];
            if k == EMPTY {
                break;
            }
            let home = self.home(k);
            if (j.wrapping_sub(home) & (n - 1)) >= (j.wrapping_sub(hole) & (n - 1)) {
                self.slots[2 * hole] = k;
                self.slots[2 * hole + 1] = self.slots[2 * j + 1];
                hole = j;
            }
        }
        self.slots[2 * hole] = EMPTY;
        self.slots[2 * hole + 1] = EMPTY;
    }
    /// All entries.
    pub fn iter(&self) -> impl Iterator<Item = (Term, Term)> + '_ {
        self.slots
            .chunks(2)
            .filter(|p| p[0] != EMPTY)
            .map(|p| (p[0], p[1]))
    }
    /// The list of `{Key, Value}`.
    pub fn to_list<A: Alloc + ?Sized>(&self, to: &mut A) -> Term {
        let mut l = NIL;
        for (k, v) in self.iter() {
            let t = to.tuple(&[k, v]);
            l = to.cons(t, l);
        }
        l
    }
}

/// What `get/1` gives for a key that isn't there.
pub const ABSENT: Term = am::UNDEFINED;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn behaves_as_a_map() {
        let mut d = Dict::default();
        let mut m: HashMap<i64, i64> = HashMap::new();
        let mut r = 12345u64;
        for i in 0..40_000 {
            r = r
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let k = (r >> 33) as i64 % if (i / 2000) % 2 == 0 { 7 } else { 97 };
            let v = (r >> 20) as i64 & 0xFFFF;
            let (kt, vt) = (Term::small(k), Term::small(v));
            if r & 3 == 0 {
                assert_eq!(d.erase(kt), m.remove(&k).map(Term::small));
            } else {
                assert_eq!(d.put(kt, vt), m.insert(k, v).map(Term::small));
            }
            assert_eq!(d.len(), m.len());
            assert_eq!(d.get(kt), m.get(&k).copied().map(Term::small));
        }
    }
}
