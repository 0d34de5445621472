//! A map for very many small entries: a vector of entries without gaps, and a table of their
//! indices.
//!
//! A table that held the entries themselves would have a gap for each entry right after growing,
//! and would exist twice while it grows. Here a gap costs four bytes, and a vector of megabytes
//! grows without being copied.
//!
//! Invariant: every entry has exactly one slot, and no empty slot lies between the home slot of its
//! key and that slot.

use std::hash::{Hash, Hasher};

/// See the module docs. `H` may be unkeyed: nobody outside chooses the keys.
pub(crate) struct Dense<K, V, H> {
    entries: Vec<(K, V)>,
    /// Power of two, at most three quarters full. Each slot is the index of an entry, or [`EMPTY`].
    slots: Vec<u32>,
    hasher: std::marker::PhantomData<H>,
}

const EMPTY: u32 = u32::MAX;
const LEAST_SLOTS: usize = 32;

impl<K: Eq + Hash + Copy, V, H: Hasher + Default> Dense<K, V, H> {
    /// Returns a map of these entries, whose keys must differ.
    #[inline]
    pub(crate) fn from_entries(entries: Vec<(K, V)>) -> Self {
        let mut d = Dense {
            entries,
            slots: Vec::new(),
            hasher: std::marker::PhantomData,
        };
        d.enter_all();
        d
    }
    /// Rebuilds the table, at most half full.
    fn enter_all(&mut self) {
        let n = (self.entries.len() * 2)
            .next_power_of_two()
            .max(LEAST_SLOTS);
        self.slots = vec![EMPTY; n];
        for i in 0..self.entries.len() {
            let mut at = self.home(&self.entries[i].0);
            while self.slots[at] != EMPTY {
                at = (at + 1) & (n - 1);
            }
            self.slots[at] = i as u32;
        }
    }
    #[inline]
    fn home(&self, k: &K) -> usize {
        let mut h = H::default();
        k.hash(&mut h);
        let bits = self.slots.len().trailing_zeros();
        // The upper bits are mixed best.
        ((h.finish() as u32) >> (32 - bits)) as usize
    }
    /// Returns the slot of `k`, or the empty slot where it would go.
    #[inline]
    fn probe(&self, k: &K) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(k);
        while self.slots[at] != EMPTY && self.entries[self.slots[at] as usize].0 != *k {
            at = (at + 1) & mask;
        }
        at
    }
    /// Returns the value of `k`.
    #[inline]
    pub fn get_mut(&mut self, k: &K) -> Option<&mut V> {
        let at = self.slots[self.probe(k)];
        (at != EMPTY).then(|| &mut self.entries[at as usize].1)
    }
    /// Adds an entry whose key is not in the map.
    pub(crate) fn insert_new(&mut self, k: K, v: V) {
        debug_assert!(self.get_mut(&k).is_none());
        self.entries.push((k, v));
        if self.entries.len() * 4 > self.slots.len() * 3 {
            self.enter_all();
            return;
        }
        let at = self.probe_end(&k);
        self.slots[at] = self.entries.len() as u32 - 1;
    }
    /// Returns the first empty slot for `k`, which has none yet.
    #[inline]
    fn probe_end(&self, k: &K) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(k);
        while self.slots[at] != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }
    /// Removes `k` and returns its value. The last entry takes its place.
    pub fn remove(&mut self, k: &K) -> Option<V> {
        let at = self.probe(k);
        let i = self.slots[at];
        if i == EMPTY {
            return None;
        }
        self.close_gap(at);
        let last = self.entries.len() - 1;
        if i as usize != last {
            let moved = self.probe(&self.entries[last].0);
            self.slots[moved] = i;
        }
        let (_, v) = self.entries.swap_remove(i as usize);
        if self.entries.len() * 8 < self.slots.len() && self.slots.len() > LEAST_SLOTS {
            self.entries.shrink_to(self.entries.len() * 2);
            self.enter_all();
        }
        Some(v)
    }
    /// Empties a slot, moving later ones so that no search ends too early.
    fn close_gap(&mut self, mut hole: usize) {
        let mask = self.slots.len() - 1;
        let mut j = hole;
        loop {
            j = (j + 1) & mask;
            let i = self.slots[j];
            if i == EMPTY {
                break;
            }
            let home = self.home(&self.entries[i as usize].0);
            if (j.wrapping_sub(home) & mask) >= (j.wrapping_sub(hole) & mask) {
                self.slots[hole] = i;
                hole = j;
            }
        }
        self.slots[hole] = EMPTY;
    }
    /// Number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether the map is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Iterates over the entries, oldest first as long as none was removed.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> + '_ {
        self.entries.iter().map(|e| (&e.0, &e.1))
    }
    /// Returns all entries.
    #[inline]
    pub(crate) fn into_entries(self) -> Vec<(K, V)> {
        self.entries
    }
    /// Bytes allocated outside of the value. The unused end of the vector is untouched memory and
    /// doesn't count.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<(K, V)>() + self.slots.len() * 4
    }
}
