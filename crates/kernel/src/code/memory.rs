//! Memory of code: all modules lie in one range of addresses.
//!
//! So one comparison tells whether an address is code of a module ([`holds`]); stubs and the words
//! of exports are not. The range is reserved once, at low addresses if those are free, so that a
//! code address fits a signed 32-bit operand. Memory is committed in steps as it is needed. A
//! version that is freed leaves a gap. Gaps are joined with their neighbours, their whole pages are
//! returned to the system, and they are filled again, the lowest first. Code that finds no room in
//! the range gets memory of its own. That always works; code that must lie in the range asks
//! [`holds`].
//!
//! # Invariants
//! * Gaps are neither empty nor adjacent, and end below `end`. Everything below `end` that is in no
//!   gap belongs to a [`Code`].
//! * The words of code are written before anybody runs them. Later only `entries.rs` writes to
//!   them.
//!
//! # Orderings
//! `APART` is stored with release before the address of the code is known to anybody else. A thread
//! that has such an address got it from an export, a fun or the table of modules, which are read
//! with acquire or under a lock; so it finds `APART` set.

use crate::sync::Mutex;
use purlin_term::sys;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Size of the reserved range, and its preferred start: it ends where signed 32-bit operands end.
const RANGE_BYTES: usize = 1 << 30;
const LOW: usize = 1 << 30;
/// Memory is committed in steps of this many bytes.
const STEP_BYTES: usize = 256 << 10;
/// Code begins at multiples of this many bytes.
const ALIGN_BYTES: usize = 16;

/// The part of the range that is or was in use.
#[derive(Default)]
struct Room {
    /// End of the last code, and end of the committed part, as offsets in the range.
    end: usize,
    usable: usize,
    /// Size of each gap in bytes, by its offset.
    gaps: BTreeMap<usize, usize>,
}

impl Room {
    /// Takes this many bytes and returns their offset; `None` if the range is full.
    fn take(&mut self, bytes: usize, range: usize) -> Option<usize> {
        let gap = self.gaps.iter().find(|(_, n)| **n >= bytes);
        if let Some((&at, &n)) = gap {
            self.gaps.remove(&at);
            if n > bytes {
                self.gaps.insert(at + bytes, n - bytes);
            }
            return Some(at);
        }
        let at = self.end;
        if bytes > range - at {
            return None;
        }
        self.end += bytes;
        Some(at)
    }
    /// Gives bytes back. Returns the gap that they are part of now, or the free end that they
    /// joined.
    fn give(&mut self, at: usize, bytes: usize) -> Range<usize> {
        let (mut from, mut to) = (at, at + bytes);
        if let Some((&before, &n)) = self.gaps.range(..at).next_back()
            && before + n == at
        {
            self.gaps.remove(&before);
            from = before;
        }
        if let Some(n) = self.gaps.remove(&to) {
            to += n;
        }
        if to == self.end {
            self.end = from;
        } else {
            self.gaps.insert(from, to - from);
        }
        from..to
    }
}

static ROOM: Mutex<Option<Room>> = Mutex::new(None);
/// Start of the range; 0 if it is not reserved, yet or at all.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// Whether any code has ever had memory of its own.
static APART: AtomicBool = AtomicBool::new(false);

/// Whether any code may lie outside the range.
#[inline]
pub fn any_apart() -> bool {
    APART.load(Ordering::Acquire)
}

/// Whether an address lies in the range of code.
#[inline]
pub fn holds(pc: *const u64) -> bool {
    let base = BASE.load(Ordering::Relaxed);
    base != 0 && (pc as usize).wrapping_sub(base) < RANGE_BYTES
}

/// Bytes of the range that code occupies.
pub fn bytes() -> usize {
    let room = ROOM.lock();
    room.as_ref()
        .map_or(0, |r| r.end - r.gaps.values().sum::<usize>())
}

/// The code of one version of a module.
pub struct Code {
    at: *const u64,
    words: usize,
    /// Whether it has memory of its own.
    apart: bool,
}

// SAFETY: it owns its words, and others write to them only by atomic stores (`entries.rs`).
unsafe impl Send for Code {}
// SAFETY: others write to its words only by atomic stores (`entries.rs`).
unsafe impl Sync for Code {}

impl Code {
    /// Copies code to the place where it will run.
    pub(super) fn new(words: &[u64]) -> Code {
        let taken = place(size_of_val(words));
        let at = match taken {
            Some(at) => at as *mut u64,
            None => {
                APART.store(true, Ordering::Release);
                Box::into_raw(Box::<[u64]>::from(words)) as *mut u64
            }
        };
        if taken.is_some() {
            // SAFETY: that many usable words, which nobody else has.
            unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), at, words.len()) };
        }
        Code {
            at,
            words: words.len(),
            apart: taken.is_none(),
        }
    }
    /// Address of the first word.
    #[inline]
    pub fn as_ptr(&self) -> *const u64 {
        self.at
    }
    pub fn addresses(&self) -> Range<usize> {
        self.at as usize..self.at as usize + self.words * 8
    }
    /// Its words, for reading. Instruction numbers may be patched: see `entries.rs`.
    pub fn words(&self) -> &[u64] {
        // SAFETY: the words are ours; a patch stores a number that is read as either the old or the
        // new one.
        unsafe { std::slice::from_raw_parts(self.at, self.words) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let at = self.at as *mut u64;
        if self.apart {
            // SAFETY: made by `new` from a box of that length.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, self.words)) });
            return;
        }
        let mut room = ROOM.lock();
        let (base, bytes) = (BASE.load(Ordering::Relaxed), taken_bytes(self.words * 8));
        if let Some(room) = room.as_mut() {
            let old = at as usize - base;
            let gap = room.give(old, bytes);
            let page = sys::page_bytes();
            // Only pages that nothing else lies in. The parts of the gap that were free before are
            // decommitted.
            let from = gap.start.next_multiple_of(page).max(old / page * page);
            let to = match room.end == gap.start {
                true => gap.end.next_multiple_of(page),
                false => gap.end / page * page,
            };
            let to = to.min((old + bytes).next_multiple_of(page));
            if from < to {
                // SAFETY: whole pages of the gap, which holds no code.
                unsafe { sys::decommit(base + from, to - from) };
            }
        }
    }
}

/// Bytes of the range that code of this size takes.
fn taken_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN_BYTES).max(ALIGN_BYTES)
}

/// Returns an address in the range with this many usable bytes; `None` if there is none.
fn place(bytes: usize) -> Option<usize> {
    let mut room = ROOM.lock();
    let room = room.get_or_insert_with(|| {
        // Where addresses are limited, others need them.
        let spared = sys::address_limit().is_some_and(|all| all / 8 < RANGE_BYTES);
        let base = match spared {
            true => 0,
            false => sys::reserve_near(LOW, RANGE_BYTES, "code").unwrap_or(0),
        };
        BASE.store(base, Ordering::Relaxed);
        Room::default()
    });
    let base = BASE.load(Ordering::Relaxed);
    if base == 0 {
        return None;
    }
    let bytes = taken_bytes(bytes);
    let at = room.take(bytes, RANGE_BYTES)?;
    if at + bytes > room.usable {
        let to = (at + bytes).next_multiple_of(STEP_BYTES);
        // SAFETY: the next part of the range that was reserved for code.
        unsafe { sys::commit(base + room.usable, to - room.usable) };
        room.usable = to;
    }
    Some(base + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(r: &Room) -> Vec<(usize, usize)> {
        r.gaps.iter().map(|(a, n)| (*a, *n)).collect()
    }

    #[test]
    fn gaps_are_joined_and_filled() {
        let mut r = Room::default();
        let all: Vec<usize> = [32, 16, 64, 16]
            .map(|n| r.take(n, 128).expect("room"))
            .to_vec();
        assert_eq!((all, r.end), (vec![0, 32, 48, 112], 128));
        assert_eq!(r.take(16, 128), None);
        assert_eq!(r.give(0, 32), 0..32);
        assert_eq!(r.give(48, 64), 48..112);
        assert_eq!(gaps(&r), [(0, 32), (48, 64)]);
        assert_eq!(r.give(32, 16), 0..112);
        assert_eq!(gaps(&r), [(0, 112)]);
        assert_eq!(r.take(48, 128), Some(0));
        assert_eq!(r.take(80, 128), None);
        assert_eq!(gaps(&r), [(48, 64)]);
        // The last one is freed: the gap before it becomes the free end.
        assert_eq!(r.give(112, 16), 48..128);
        assert_eq!((gaps(&r), r.end), (vec![], 48));
        assert_eq!(r.give(0, 48), 0..48);
        assert_eq!((gaps(&r), r.end), (vec![], 0));
    }

    #[test]
    fn code_goes_and_others_get_its_place() {
        let words: Vec<u64> = (0..3000).collect();
        let one = Code::new(&words);
        let two = Code::new(&words[..5]);
        assert!(holds(one.as_ptr()) && holds(two.as_ptr()));
        assert_eq!(one.words(), words);
        let at = one.as_ptr();
        drop(one);
        let three = Code::new(&words[1..2001]);
        assert_eq!((three.as_ptr(), three.words()), (at, &words[1..2001]));
        assert_eq!(two.words(), [0, 1, 2, 3, 4]);
        drop(two);
        assert_eq!(three.words(), &words[1..2001]);
        assert!(!holds(words.as_ptr()));
    }
}
