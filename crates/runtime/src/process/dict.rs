//! The process dictionary: an open-addressing table of key, value pairs whose terms live on the process's heap.
//!
//! The slots are one slice of terms, so that the collector takes them as roots. Keys are hashed by `phash2`, which does
//! not depend on addresses. A slot pair whose key is [`Term::NON_VALUE`] is empty.

use purlin_term::compare::eq_exact;
use purlin_term::{Alloc, NIL, Term, am, hash};

/// See the module head.
#[derive(Default)]
pub struct Dict {
    /// Key, value, key, value …: twice a power of two, or empty.
    slots: Vec<Term>,
    len: usize,
}

const EMPTY: Term = Term::NON_VALUE;

impl Dict {
    /// What the collector updates.
    pub fn slots_mut(&mut self) -> &mut [Term] {
        &mut self.slots
    }
    /// Entries.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Words that the table itself takes.
    pub fn words(&self) -> usize {
        self.slots.capacity()
    }
    fn home(&self, k: Term) -> usize {
        let h = if k.is_immed() {
            (k.raw() >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
        } else {
            u64::from(hash::phash2(k))
        };
        h as usize & (self.slots.len() / 2 - 1)
    }
    /// The slot pair that holds `k`, or the empty one where it would go.
    fn find(&self, k: Term) -> usize {
        let n = self.slots.len() / 2;
        let mut i = self.home(k);
        loop {
            let s = self.slots[2 * i];
            if s == EMPTY || s == k || (!k.is_immed() && !s.is_immed() && eq_exact(s, k)) {
                return i;
            }
            i = (i + 1) & (n - 1);
        }
    }
    /// The value of `k`.
    pub fn get(&self, k: Term) -> Option<Term> {
        if self.len == 0 {
            return None;
        }
        let i = self.find(k);
        (self.slots[2 * i] != EMPTY).then(|| self.slots[2 * i + 1])
    }
    /// Sets the value of `k`; the one before is returned.
    pub fn put(&mut self, k: Term, v: Term) -> Option<Term> {
        if (self.len + 1) * 8 > self.slots.len() * 3 {
            let old = std::mem::take(&mut self.slots);
            self.slots = vec![EMPTY; (old.len() * 2).max(8)];
            for p in old.chunks(2).filter(|p| p[0] != EMPTY) {
                let i = self.find(p[0]);
                self.slots[2 * i] = p[0];
                self.slots[2 * i + 1] = p[1];
            }
        }
        let i = self.find(k);
        if self.slots[2 * i] == EMPTY {
            self.slots[2 * i] = k;
            self.slots[2 * i + 1] = v;
            self.len += 1;
            return None;
        }
        Some(std::mem::replace(&mut self.slots[2 * i + 1], v))
    }
    /// Removes `k`; its value is returned.
    pub fn erase(&mut self, k: Term) -> Option<Term> {
        if self.len == 0 {
            return None;
        }
        let i = self.find(k);
        if self.slots[2 * i] == EMPTY {
            return None;
        }
        let v = self.slots[2 * i + 1];
        let n = self.slots.len() / 2;
        // Close the gap, so that no search ends too early.
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
        self.len -= 1;
        if self.len == 0 {
            self.slots = Vec::new();
        }
        Some(v)
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
        for _ in 0..20_000 {
            r = r
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let k = (r >> 33) as i64 % 97;
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
