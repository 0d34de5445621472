//! The table of return points: the machine code that continues at a bytecode address.
//!
//! ```text
//! word 0           number of slots minus one, a power of two less one
//! words 1, 2 …     bytecode address (0: free) and machine code address (0: removed) of each slot
//! ```
//! Code that returns to a frame which no machine call has made looks here, without a lock, and so
//! does a process that continues in a receive. One thread at a time writes. A table half of whose
//! slots are not free is replaced by one with room for twice the addresses that have machine code.
//! The former is freed when all who may read it have left their time slices.
//!
//! # Orderings
//! * The writer alone stores into the words, and reads what it has stored itself, relaxed.
//! * A slot is filled from its end: machine code, which is written already, with release, then the
//!   address with release. A reader ([`crate::code::returns`]) finds neither without what was
//!   written before.
//! * A slot's address never changes, and its machine code may become 0 and something else again.
//!   Who has found it before may run it until the epoch has passed:
//!   [`Epochs::since`](crate::code::epochs::Epochs::since) has the barrier between this store and
//!   the look at who is within code.
//! * A table is published with release when it is filled. A reader takes it once a time slice,
//!   behind the barrier of [`enter`](crate::code::epochs::enter): it has the new one, or is waited
//!   for.
//!
//! The model is `crates/models/tests/return_points.rs`.

use crate::code::compiled::set_returns;
use crate::code::epochs::{Since, epochs};
use crate::code::returns::place;
use crate::sync::{AtomicU64, Ordering};

/// Slots of the first table.
pub(super) const FIRST: usize = 1 << 10;

type Words = Box<[AtomicU64]>;

pub(super) struct Returns {
    pub(super) words: Words,
    /// Slots of the smallest table.
    least: usize,
    /// Slots that are not free.
    used: usize,
    /// Former tables, which others may read until then.
    pub(super) former: Vec<(Since, Words)>,
}

fn words(slots: usize) -> Words {
    let mut v: Vec<AtomicU64> = Vec::with_capacity(1 + 2 * slots);
    v.push(AtomicU64::new(slots as u64 - 1));
    v.resize_with(1 + 2 * slots, AtomicU64::default);
    v.into_boxed_slice()
}

impl Returns {
    /// An empty table, which is published; it and those that replace it have `least` slots, a power
    /// of two, or more.
    pub fn new(least: usize) -> Returns {
        let r = Returns {
            words: words(least),
            least,
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
    pub(super) fn slots(&self) -> usize {
        self.words.len() / 2
    }
    /// The first word of the slot of `pc`, or of a free one.
    pub(super) fn find(&self, pc: u64) -> usize {
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
        let mut slots = self.least;
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
