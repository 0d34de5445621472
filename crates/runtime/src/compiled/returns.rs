//! The table of return points: the machine code that continues at a bytecode address.
//!
//! ```text
//! word 0           number of slots minus one, a power of two less one
//! words 1, 2 …     bytecode address (0: free) and machine code address (0: removed) of each slot
//! ```
//! Code that returns to a frame without a machine call looks here, without a lock. One thread at a
//! time writes. When half of its slots are in use, a table is replaced by one with room for twice
//! the addresses that have machine code. The old one is freed when all threads that may read it
//! have left their time slices.

use crate::code::compiled::set_returns;
use crate::code::epochs::{Since, epochs};
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of slots of the first table.
const FIRST: usize = 1 << 10;

type Words = Box<[AtomicU64]>;

pub(super) struct Returns {
    words: Words,
    /// Number of slots that are not free.
    used: usize,
    /// Old tables, which others may read until then.
    former: Vec<(Since, Words)>,
}

fn words(slots: usize) -> Words {
    let mut v: Vec<AtomicU64> = Vec::with_capacity(1 + 2 * slots);
    v.push(AtomicU64::new(slots as u64 - 1));
    v.resize_with(1 + 2 * slots, AtomicU64::default);
    v.into_boxed_slice()
}

/// The hash of the stub in machine code.
fn place(pc: u64) -> usize {
    ((pc >> 3).wrapping_mul(0x9E37_79B1_u32 as i32 as i64 as u64) >> 12) as usize
}

impl Returns {
    pub fn new() -> Returns {
        let words = words(FIRST);
        let r = Returns {
            words,
            used: 0,
            former: Vec::new(),
        };
        r.publish();
        r
    }
    fn publish(&self) {
        // Readers use atomic loads: the words are written meanwhile.
        set_returns(self.words.as_ptr() as *const u64);
    }
    /// Frees old tables that no thread reads any more.
    pub fn tidy(&mut self) {
        self.former.retain_mut(|(since, _)| !since.passed());
    }
    fn slots(&self) -> usize {
        self.words.len() / 2
    }
    /// Returns the first word of the slot of `pc`, or of a free one.
    fn find(&self, pc: u64) -> usize {
        let mask = self.slots() - 1;
        let mut i = place(pc) & mask;
        loop {
            let at = 1 + 2 * i;
            let there = self.words[at].load(Ordering::Relaxed);
            if there == pc || there == 0 {
                return at;
            }
            i = (i + 1) & mask;
        }
    }
    /// Sets the machine code for a bytecode address.
    pub fn set(&mut self, pc: u64, code: u64) {
        let at = self.find(pc);
        let new = self.words[at].load(Ordering::Relaxed) == 0;
        if new && (self.used + 1) * 2 > self.slots() {
            self.grow();
            return self.set(pc, code);
        }
        self.words[at + 1].store(code, Ordering::Release);
        if new {
            self.used += 1;
            self.words[at].store(pc, Ordering::Release);
        }
    }
    /// Removes the machine code for that address.
    pub fn remove(&mut self, pc: u64) {
        let at = self.find(pc);
        if self.words[at].load(Ordering::Relaxed) == pc {
            self.words[at + 1].store(0, Ordering::Release);
        }
    }
    fn grow(&mut self) {
        let live = self.words[1..]
            .chunks(2)
            .filter(|s| s[1].load(Ordering::Relaxed) != 0)
            .count();
        let mut slots = FIRST;
        while slots < 4 * (live + 1) {
            slots *= 2;
        }
        let old = std::mem::replace(&mut self.words, words(slots));
        self.used = 0;
        for s in old[1..].chunks(2) {
            let code = s[1].load(Ordering::Relaxed);
            if code != 0 {
                self.set(s[0].load(Ordering::Relaxed), code);
            }
        }
        self.publish();
        self.former.push((epochs().since(), old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules get addresses that no code had before, and go: the table only grows with the present
    /// ones.
    #[test]
    fn the_table_does_not_grow_with_what_has_gone() {
        let mut r = Returns::new();
        let address = |round: u64, i: u64| 0x1000_0000 + 8 * (round * 100 + i);
        for round in 0..2000 {
            for i in 0..100 {
                r.set(address(round, i), 1 + i);
            }
            if round > 0 {
                for i in 0..100 {
                    r.remove(address(round - 1, i));
                }
            }
            r.tidy();
            assert!(r.slots() <= 2 * FIRST, "{} slots", r.slots());
            // No thread runs code here.
            assert!(r.former.is_empty());
        }
        for i in 0..100 {
            let at = r.find(address(1999, i));
            assert_eq!(r.words[at + 1].load(Ordering::Relaxed), 1 + i);
            let gone = r.find(address(1998, i));
            assert_eq!(r.words[gone + 1].load(Ordering::Relaxed), 0);
        }
    }
}
