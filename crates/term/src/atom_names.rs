//! Sets of names of atoms: from the hash of a name to the number of its atom. The names themselves
//! are in the entries of the table ([`crate::atom`]).
//!
//! A set is an array of slots with linear probing. Names are removed many at a time, in one pass
//! over the array that moves what stays to where it would be without the others. So no slot is ever
//! marked as deleted.

/// Names whose hashes begin with the same bits.
pub(crate) struct Names {
    /// The hash and, in the lower half, the number plus one; 0 if the slot is empty. No such word
    /// looks like the term of an atom, or like a pointer, unless its hash is below a few thousand.
    slots: Box<[u64]>,
    used: usize,
}

/// Minimum number of slots.
const MIN_SLOTS: usize = 64;

fn slot_of(raw: u32, index: u32) -> u64 {
    (u64::from(raw) << 32) | (u64::from(index) + 1)
}
fn index_of(slot: u64) -> u32 {
    (slot as u32).wrapping_sub(1)
}

impl Names {
    pub(crate) fn new() -> Names {
        Names {
            slots: vec![0; MIN_SLOTS].into_boxed_slice(),
            used: 0,
        }
    }
    /// The first slot for a hash. Its highest bits are the same in the whole set.
    fn home(&self, raw: u32) -> usize {
        raw as usize & (self.slots.len() - 1)
    }
    /// Returns the number of the atom with this hash whose name is the one sought, as `is` says.
    #[inline]
    pub(crate) fn get(&self, raw: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(raw);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot >> 32) as u32 == raw && is(index_of(slot)) {
                return Some(index_of(slot));
            }
            at = (at + 1) & mask;
        }
    }
    /// Adds a name that the set does not have.
    pub(crate) fn insert(&mut self, raw: u32, index: u32) {
        // At most five eighths are used.
        if (self.used + 1) * 8 > self.slots.len() * 5 {
            self.resize(self.slots.len() * 2);
        }
        self.put(slot_of(raw, index));
        self.used += 1;
    }
    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = self.home((slot >> 32) as u32);
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![0; slots].into_boxed_slice());
        for &slot in old.iter().filter(|s| **s != 0) {
            self.put(slot);
        }
    }
    /// Removes all names but those of atoms for which `stays`. A set that had few names for its
    /// slots before gets half as many.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) {
        let few = self.used * 8 < self.slots.len();
        let mask = self.slots.len() - 1;
        // Behind an empty slot, what has been put back lies before what has not been looked at.
        let Some(empty) = self.slots.iter().position(|s| *s == 0) else {
            return;
        };
        for n in 1..=mask {
            let at = (empty + n) & mask;
            let slot = std::mem::take(&mut self.slots[at]);
            if slot == 0 {
                continue;
            }
            match stays(index_of(slot)) {
                true => self.put(slot),
                false => self.used -= 1,
            }
        }
        if few && self.slots.len() > MIN_SLOTS {
            self.resize(self.slots.len() / 2);
        }
    }
    /// Number of bytes of the slots.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes that meet at the end of the array and continue at its beginning, and others.
    fn hashes() -> impl Iterator<Item = u32> {
        let meeting = (0..30).map(|n| u32::MAX - (n % 3));
        meeting.chain((0..1000u32).map(|n| n.wrapping_mul(0x9e37_79b9)))
    }

    #[test]
    fn what_stays_is_found_and_the_rest_is_not() {
        for part in [1, 2, 3, 7, 1000] {
            let mut names = Names::new();
            let all: Vec<(u32, u32)> = hashes().zip(0..).collect();
            for &(raw, index) in &all {
                assert_eq!(names.get(raw, |i| i == index), None);
                names.insert(raw, index);
            }
            let dead = |index: u32| index.is_multiple_of(part);
            let mut asked = 0;
            names.retain(|index| {
                asked += 1;
                !dead(index)
            });
            assert_eq!(asked, all.len());
            for &(raw, index) in &all {
                let expected = (!dead(index)).then_some(index);
                assert_eq!(
                    names.get(raw, |i| i == index),
                    expected,
                    "{index} of {part}"
                );
            }
            assert_eq!(names.used, all.iter().filter(|(_, i)| !dead(*i)).count());
            for &(raw, index) in all.iter().filter(|(_, i)| dead(*i)) {
                names.insert(raw, index);
            }
            assert!(
                all.iter()
                    .all(|&(raw, i)| names.get(raw, |n| n == i).is_some())
            );
        }
    }

    #[test]
    fn a_set_that_stays_small_gives_its_slots_back() {
        let mut names = Names::new();
        for (raw, index) in hashes().zip(0..) {
            names.insert(raw, index);
        }
        let most = names.bytes();
        names.retain(|_| false);
        assert_eq!(names.bytes(), most);
        for _ in 0..20 {
            names.retain(|_| false);
        }
        assert_eq!(names.bytes(), MIN_SLOTS * 8);
    }
}
