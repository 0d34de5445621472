//! The process dictionary: pairs of key and value whose terms live on the process's heap.
//!
//! The pairs form one slice of terms, which the collector takes as roots. Up to [`FEW`] pairs lie
//! without gaps and are searched in order: a process made by `proc_lib` has three, and a million of
//! those must stay small. More form an open-addressing table of a power of two of pairs, in which a
//! pair with the key [`Term::NON_VALUE`] is empty. Keys are hashed by `phash2`, which does not
//! depend on addresses.
//!
//! The slice is a block of its own, or lies in lent words ([`Dict::settle`]): the cell of a process
//! whose heap has left it has room for a few pairs.

use purlin_term::compare::eq_exact;
use purlin_term::{Term, hash};

/// Maximum number of pairs that are searched in order.
const FEW: usize = 8;

/// See the module docs.
pub struct Dict {
    /// Key, value, key, value … behind a [`Head`], in a block of its own or lent; null if empty.
    at: *mut Term,
}

/// The word before the pairs: the number of pairs in use, above it the number of places, and
/// [`LENT`] in the highest bit.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Head(u64);

const HEAD_WORDS: usize = size_of::<Head>() / size_of::<Term>();
const _: () = assert!(HEAD_WORDS == 1);

/// Set if the dictionary does not own the words.
const LENT: u64 = 1 << 63;
/// Position of the number of places in a [`Head`]. Up to [`FEW`] are stored as they are; a table is
/// stored as the number of times that [`FEW`] is doubled.
const SIZE_SHIFT: u32 = 56;
const SIZE: u64 = 0x7F << SIZE_SHIFT;
const LEN: u64 = (1 << SIZE_SHIFT) - 1;

impl Head {
    /// Returns the head of a slice with `pairs` places, which are at most [`FEW`] or a table.
    fn new(pairs: usize, len: usize) -> Head {
        let size = match pairs {
            0..=FEW => pairs,
            _ => FEW + (pairs / FEW).ilog2() as usize,
        };
        let h = Head((size as u64) << SIZE_SHIFT | len as u64);
        debug_assert!(h.pairs() == pairs && h.len() == len);
        h
    }
    #[inline]
    fn pairs(self) -> usize {
        match ((self.0 & SIZE) >> SIZE_SHIFT) as usize {
            n @ 0..=FEW => n,
            n => FEW << (n - FEW),
        }
    }
    fn words(self) -> usize {
        2 * self.pairs()
    }
    fn len(self) -> usize {
        (self.0 & LEN) as usize
    }
    fn is_lent(self) -> bool {
        self.0 & LENT != 0
    }
    fn lent(self) -> Head {
        Head(self.0 | LENT)
    }
    fn with_len(self, len: usize) -> Head {
        Head(self.0 & !LEN | len as u64)
    }
}

impl Default for Dict {
    fn default() -> Dict {
        Dict {
            at: std::ptr::null_mut(),
        }
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        let head = self.head();
        if !self.at.is_null() && !head.is_lent() {
            let words = HEAD_WORDS + head.words();
            // SAFETY: `with_slots` has made a box of that many words.
            unsafe {
                let p = self.at.sub(HEAD_WORDS) as *mut std::mem::MaybeUninit<Term>;
                drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(p, words)));
            }
        }
    }
}

const EMPTY: Term = Term::NON_VALUE;

impl Dict {
    fn slots(&self) -> &[Term] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: that many initialised words lie there until `set_slots` or `settle` replaces
        // them.
        unsafe { std::slice::from_raw_parts(self.at, self.words()) }
    }
    /// Returns the terms that the collector updates.
    pub(crate) fn slots_mut(&mut self) -> &mut [Term] {
        if self.at.is_null() {
            return &mut [];
        }
        // SAFETY: that many initialised words lie there, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.words()) }
    }
    fn head(&self) -> Head {
        if self.at.is_null() {
            return Head(0);
        }
        // SAFETY: the head lies before the pairs, in the same block.
        unsafe { *(self.at as *const Head).sub(1) }
    }
    fn set_len(&mut self, len: usize) {
        debug_assert!(!self.at.is_null());
        // SAFETY: the head lies before the pairs, in the same block.
        unsafe {
            (self.at as *mut Head)
                .sub(1)
                .write(self.head().with_len(len))
        };
    }
    /// Makes a block of as many places as `pairs` says, with the slots that `fill` writes.
    ///
    /// # Safety
    /// `fill` initialises all words from its argument on: two for each place.
    unsafe fn with_slots(pairs: usize, len: usize, fill: impl FnOnce(*mut Term)) -> Dict {
        if pairs == 0 {
            return Dict::default();
        }
        let words = HEAD_WORDS + 2 * pairs;
        let b: Box<[std::mem::MaybeUninit<Term>]> = Box::new_uninit_slice(words);
        let p = Box::into_raw(b) as *mut Term;
        // SAFETY: a fresh block with room for the head and the slots.
        let at = unsafe {
            (p as *mut Head).write(Head::new(pairs, len));
            p.add(HEAD_WORDS)
        };
        fill(at);
        Dict { at }
    }
    /// Replaces the slots.
    fn set_slots(&mut self, v: &[Term]) {
        // SAFETY: as many words as there are slots.
        *self = unsafe {
            Self::with_slots(v.len() / 2, self.len(), |at| {
                std::ptr::copy_nonoverlapping(v.as_ptr(), at, v.len());
            })
        };
    }
    /// Doubles the number of places and makes a table of them. The old and the new block are in
    /// memory together.
    fn grow(&mut self) {
        let old = std::mem::take(self);
        let pairs = 2 * old.pairs();
        // SAFETY: all words are written.
        *self = unsafe {
            Self::with_slots(pairs, old.len(), |at| {
                for i in 0..2 * pairs {
                    at.add(i).write(EMPTY);
                }
            })
        };
        for p in old.slots().chunks(2).filter(|p| p[0] != EMPTY) {
            let i = self.probe(p[0]);
            self.slots_mut()[2 * i] = p[0];
            self.slots_mut()[2 * i + 1] = p[1];
        }
    }
    /// Whether one more key takes a larger table.
    fn is_full(&self) -> bool {
        self.few() || (self.len() + 1) * 4 > self.pairs() * 3
    }
    /// Bytes of the block that one more entry would take; 0 if there is room.
    pub fn next_bytes(&self) -> usize {
        match self.pairs() >= FEW && self.is_full() {
            true => (HEAD_WORDS + 4 * self.pairs()) * 8,
            false => 0,
        }
    }
    /// Moves into the `room` words at `to`, if it has a block of its own and fits.
    ///
    /// # Safety
    /// The dictionary may use the words for as long as it lives.
    pub unsafe fn settle(&mut self, to: *mut Term, room: usize) {
        let head = self.head();
        let words = head.words();
        if words == 0 || head.is_lent() || HEAD_WORDS + words > room || !self.few() {
            return;
        }
        // SAFETY: by the contract, there is room for the head and as many words, which are not
        // those of the block.
        let to = unsafe {
            (to as *mut Head).write(head.lent());
            let to = to.add(HEAD_WORDS);
            std::ptr::copy_nonoverlapping(self.at, to, words);
            to
        };
        self.set_slots(&[]);
        self.at = to;
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.head().len()
    }
    /// Whether the dictionary is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Words of all places.
    pub fn words(&self) -> usize {
        self.head().words()
    }
    /// Bytes of its own block, if it has one.
    pub fn bytes(&self) -> usize {
        match self.head() {
            h if h.pairs() == 0 || h.is_lent() => 0,
            h => (HEAD_WORDS + h.words()) * 8,
        }
    }
    fn pairs(&self) -> usize {
        self.head().pairs()
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
        let s = self.slots()[2 * i];
        s == k || (!k.is_immed() && !s.is_immed() && eq_exact(s, k))
    }
    /// Returns the pair of a table that holds `k`, or the empty one where it would go.
    fn probe(&self, k: Term) -> usize {
        let n = self.pairs();
        let mut i = self.home(k);
        while self.slots()[2 * i] != EMPTY && !self.is_key(i, k) {
            i = (i + 1) & (n - 1);
        }
        i
    }
    /// Returns the pair that holds `k`.
    fn find(&self, k: Term) -> Option<usize> {
        if self.few() {
            if k.is_immed() {
                return self.slots().chunks_exact(2).position(|pair| pair[0] == k);
            }
            return (0..self.pairs()).find(|&i| self.is_key(i, k));
        }
        Some(self.probe(k)).filter(|&i| self.slots()[2 * i] != EMPTY)
    }
    /// Returns the value of `k`.
    #[inline]
    pub fn get(&self, k: Term) -> Option<Term> {
        if self.at.is_null() {
            return None;
        }
        if k.is_immed() && self.few() {
            let (pairs, _) = self.slots().as_chunks();
            let found = pairs.iter().find(|[key, _]| *key == k);
            return found.map(|[_, value]| *value);
        }
        self.find(k).map(|i| self.slots()[2 * i + 1])
    }
    /// Sets the value of `k`. Returns the previous value.
    pub fn put(&mut self, k: Term, v: Term) -> Option<Term> {
        if let Some(i) = self.find(k) {
            return Some(std::mem::replace(&mut self.slots_mut()[2 * i + 1], v));
        }
        if self.pairs() < FEW {
            let mut s = Vec::with_capacity(self.words() + 2);
            s.extend_from_slice(self.slots());
            s.extend([k, v]);
            self.set_slots(&s);
        } else {
            if self.is_full() {
                self.grow();
            }
            let i = self.probe(k);
            self.slots_mut()[2 * i] = k;
            self.slots_mut()[2 * i + 1] = v;
        }
        self.set_len(self.len() + 1);
        None
    }
    /// Removes `k` and returns its value.
    pub fn erase(&mut self, k: Term) -> Option<Term> {
        let i = self.find(k)?;
        let v = self.slots()[2 * i + 1];
        self.set_len(self.len() - 1);
        if self.is_empty() {
            self.set_slots(&[]);
        } else if self.few() {
            let mut s = self.slots().to_vec();
            s.drain(2 * i..2 * i + 2);
            self.set_slots(&s);
        } else {
            self.close_gap(i);
        }
        Some(v)
    }
    /// Empties a pair of a table, moving later ones so that no search ends too early.
    fn close_gap(&mut self, i: usize) {
        let n = self.pairs();
        let (mut hole, mut j) = (i, i);
        loop {
            j = (j + 1) & (n - 1);
            let k = self.slots()[2 * j];
            if k == EMPTY {
                break;
            }
            let home = self.home(k);
            if (j.wrapping_sub(home) & (n - 1)) >= (j.wrapping_sub(hole) & (n - 1)) {
                self.slots_mut()[2 * hole] = k;
                let v = self.slots()[2 * j + 1];
                self.slots_mut()[2 * hole + 1] = v;
                hole = j;
            }
        }
        self.slots_mut()[2 * hole] = EMPTY;
        self.slots_mut()[2 * hole + 1] = EMPTY;
    }
    /// Iterates over all entries.
    pub fn iter(&self) -> impl Iterator<Item = (Term, Term)> + '_ {
        self.slots()
            .chunks(2)
            .filter(|p| p[0] != EMPTY)
            .map(|p| (p[0], p[1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use purlin_term::NIL;
    use std::collections::HashMap;

    #[test]
    fn a_head_tells_of_as_many_pairs_as_memory_holds() {
        for pairs in (0..=FEW).chain((1..44).map(|i| FEW << i)) {
            let h = Head::new(pairs, pairs);
            assert!(h.pairs() == pairs && h.len() == pairs && !h.is_lent());
            let h = h.lent().with_len(pairs / 2);
            assert!(h.words() == 2 * pairs && h.len() == pairs / 2 && h.is_lent());
        }
    }

    #[test]
    fn lent_words_are_left_when_they_no_longer_do() {
        let mut room = [NIL; 7];
        let t = Term::small;
        let mut d = Dict::default();
        for i in 0..3 {
            d.put(t(i), t(10 * i));
        }
        // SAFETY: `room` outlives the dictionary.
        unsafe { d.settle(room.as_mut_ptr(), 7) };
        assert!(d.bytes() == 0 && d.get(t(2)) == Some(t(20)));
        assert_eq!(d.put(t(1), t(11)), Some(t(10)));
        for i in 3..40 {
            d.put(t(i), t(10 * i));
        }
        assert!(d.bytes() > 0 && d.get(t(1)) == Some(t(11)) && d.len() == 40);
        // SAFETY: `room` outlives the dictionary.
        unsafe { d.settle(room.as_mut_ptr(), 7) };
        assert!(d.bytes() > 0);
        for i in 0..40 {
            d.erase(t(i));
        }
        assert!(d.is_empty() && d.bytes() == 0);
    }

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
