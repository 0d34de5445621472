//! The table of return points: where the machine code is that goes on at an address of bytecode.
//!
//! ```text
//! word 0           slots minus one, a power of two less one
//! words 1, 2 …     address of bytecode (0: free), address of machine code (0: none any more), for each slot
//! ```
//! Code that returns to a frame which no machine call has made looks here, without a lock. One thread at a time writes. A table
//! that is too small is replaced by one of twice the slots; the former stays, since others may read it: together they are
//! smaller than the last.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Slots of the first table.
const FIRST: usize = 1 << 10;

/// The table that is looked into.
static NOW: AtomicPtr<AtomicU64> = AtomicPtr::new(std::ptr::null_mut());

pub(super) struct Returns {
    words: &'static [AtomicU64],
    /// Slots that are not free.
    used: usize,
}

/// The address of the table.
pub(super) fn now() -> *const u64 {
    NOW.load(Ordering::Acquire) as *const u64
}

fn words(slots: usize) -> &'static [AtomicU64] {
    let mut v: Vec<AtomicU64> = Vec::with_capacity(1 + 2 * slots);
    v.push(AtomicU64::new(slots as u64 - 1));
    v.resize_with(1 + 2 * slots, AtomicU64::default);
    v.leak()
}

/// As the stub in machine code reckons it.
fn place(pc: u64) -> usize {
    ((pc >> 3).wrapping_mul(0x9E37_79B1_u32 as i32 as i64 as u64) >> 12) as usize
}

impl Returns {
    pub fn new() -> Returns {
        let words = words(FIRST);
        let r = Returns { words, used: 0 };
        r.publish();
        r
    }
    fn publish(&self) {
        NOW.store(self.words.as_ptr() as *mut AtomicU64, Ordering::Release);
    }
    fn slots(&self) -> usize {
        self.words.len() / 2
    }
    /// The first word of the slot of `pc`, or of a free one.
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
    /// Machine code for an address of bytecode.
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
    /// No machine code for that address any more.
    pub fn remove(&mut self, pc: u64) {
        let at = self.find(pc);
        if self.words[at].load(Ordering::Relaxed) == pc {
            self.words[at + 1].store(0, Ordering::Release);
        }
    }
    fn grow(&mut self) {
        let old = self.words;
        let live = old[1..]
            .chunks(2)
            .filter(|s| s[1].load(Ordering::Relaxed) != 0)
            .count();
        let mut slots = FIRST;
        while slots < 4 * (live + 1) {
            slots *= 2;
        }
        self.words = words(slots.max(self.slots()));
        self.used = 0;
        for s in old[1..].chunks(2) {
            let code = s[1].load(Ordering::Relaxed);
            if code != 0 {
                self.set(s[0].load(Ordering::Relaxed), code);
            }
        }
        self.publish();
    }
}
