//! Memory of code: all modules lie in one range of addresses.
//!
//! So whether an address is code of a module is one comparison ([`holds`]): stubs and the words of exports are none. The range is
//! reserved once, low if the addresses are free there, so that an address of code fits a signed operand of 32 bits. Memory comes
//! behind it as it is needed, in steps; a version that goes leaves a gap, which is joined with its neighbours, given back as far as
//! it has whole pages, and filled again, the lowest first. What finds no room in the range has memory of its own: everything works,
//! and whoever wants code in the range asks [`holds`].
//!
//! # Invariants
//! * Gaps are neither empty nor adjacent, and end below `end`; what is below `end` and in no gap belongs to a [`Code`].
//! * The words of code are written before anybody runs them. Later only `entries.rs` writes into them.

use crate::sync::Mutex;
use purlin_term::sys;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Addresses that are reserved, and where: from there to where signed operands of 32 bits end.
const RANGE_BYTES: usize = 1 << 30;
const LOW: usize = 1 << 30;
/// Memory is made usable in steps of so many bytes.
const STEP_BYTES: usize = 256 << 10;
/// Code begins at multiples of so many bytes.
const ALIGN_BYTES: usize = 16;

/// The part of the range that is in use or was.
#[derive(Default)]
struct Room {
    /// Behind the last code, and behind what is usable: offsets in the range.
    end: usize,
    usable: usize,
    /// Bytes of each gap, by its offset.
    gaps: BTreeMap<usize, usize>,
}

impl Room {
    /// An offset with so many bytes; `None` where the range has no more.
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
    /// Gives bytes back; the gap that they are part of now, or the end that was behind them.
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
/// Where the range begins; 0: nowhere, yet or at all.
static BASE: AtomicUsize = AtomicUsize::new(0);

/// Some code has ever had memory of its own.
static APART: AtomicBool = AtomicBool::new(false);

/// Whether any code may lie outside of the range.
#[inline]
pub fn any_apart() -> bool {
    APART.load(Ordering::Acquire)
}

/// Whether that is an address in the range of code.
#[inline]
pub fn holds(pc: *const u64) -> bool {
    let base = BASE.load(Ordering::Relaxed);
    base != 0 && (pc as usize).wrapping_sub(base) < RANGE_BYTES
}

/// Bytes of the range that code takes.
pub fn bytes() -> usize {
    let room = ROOM.lock();
    room.as_ref()
        .map_or(0, |r| r.end - r.gaps.values().sum::<usize>())
}

/// The code of one version of a module.
pub struct Code {
    at: *const u64,
    words: usize,
    /// It has memory of its own.
    apart: bool,
}

// SAFETY: it owns its words, which nobody writes but by atomic stores (`entries.rs`).
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Puts code where it will run.
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
            // SAFETY: so many usable words, which nobody else has.
            unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), at, words.len()) };
        }
        Code {
            at,
            words: words.len(),
            apart: taken.is_none(),
        }
    }
    /// Where it begins.
    #[inline]
    pub fn as_ptr(&self) -> *const u64 {
        self.at
    }
    /// Its addresses.
    pub fn addresses(&self) -> Range<usize> {
        self.at as usize..self.at as usize + self.words * 8
    }
    /// Its words, for who reads it. Numbers of instructions may be patched: see `entries.rs`.
    pub fn words(&self) -> &[u64] {
        // SAFETY: the words are ours; those who patch write a number that is read as one or the other.
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
            // Pages that nothing else lies in. Those of the gap that were free before have been given back.
            let from = gap.start.next_multiple_of(page).max(old / page * page);
            let to = match room.end == gap.start {
                true => gap.end.next_multiple_of(page),
                false => gap.end / page * page,
            };
            let to = to.min((old + bytes).next_multiple_of(page));
            if from < to {
                sys::decommit(base + from, to - from);
            }
        }
    }
}

/// Bytes that so many take in the range.
fn taken_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN_BYTES).max(ALIGN_BYTES)
}

/// An address in the range with so many usable bytes; `None`: there is none.
fn place(bytes: usize) -> Option<usize> {
    let mut room = ROOM.lock();
    let room = room.get_or_insert_with(|| {
        // Where addresses are limited there are others who need some.
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
        sys::commit(base + room.usable, to - room.usable);
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
        // The last one goes: what is free before it is the end.
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
