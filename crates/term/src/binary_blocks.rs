//! The memory of counted binaries: large blocks freed last are kept for the next ones.
//!
//! Files, sockets and other nodes often deliver one long binary after the other, made by one
//! thread and freed by another. The C library gives such a block back to the system, or cuts it up;
//! and touching a page of a fresh block costs as much as filling it. So blocks are kept, pages and
//! all: at most [`KEPT_BYTES`], and for at most two rounds of upkeep ([`release_unused`]). A
//! request takes a kept block that is up to an eighth larger, and a block that shrinks by less than
//! that stays as it is: the C library knows its size.
//!
//! Small blocks come from the allocator of the program ([`crate::small_blocks`]).
//!
//! With a fence ([`crate::fence`]) all blocks come from there, and in stress mode nothing is kept.

use crate::counts;
use crate::fence::{self, Kind};
use crate::pressure::{at_most_slack, gives_back, is_coarse, is_crowded, note_allocation};
use crate::small_blocks::LARGEST as SMALL;
use crate::stress::stress;
use crate::sync::Mutex;
use smallvec::SmallVec;
use std::alloc::Layout;
use std::ops::RangeInclusive;

/// Sizes of blocks that are kept. The C library keeps smaller ones itself; larger ones are rare,
/// and much to keep.
const SIZES: RangeInclusive<usize> = 1 << 17..=1 << 23;
/// Maximum number of bytes kept, normally and in a crowd of processes.
const KEPT_BYTES: usize = 16 << 20;
const KEPT_IN_CROWD: usize = 4 << 20;

/// Blocks of at least this many bytes use large pages, if the system has any: one fault brings as
/// much as 512 otherwise.
const LARGE_PAGES: usize = 4 << 20;

/// Number of bytes by which a block for `bytes` bytes may be too large.
fn slack(bytes: usize) -> usize {
    bytes / 8
}

/// Freed blocks that are kept.
struct Kept {
    /// Address, bytes, and the round in which each was freed; the last one freed is the last.
    blocks: Vec<(usize, usize, u32)>,
    bytes: usize,
    round: u32,
}

static KEPT: Mutex<Kept> = Mutex::new(Kept {
    blocks: Vec::new(),
    bytes: 0,
    round: 0,
});

impl Kept {
    fn remove(&mut self, i: usize) -> usize {
        let (at, bytes, _) = self.blocks.remove(i);
        self.bytes -= bytes;
        at
    }
}

/// Blocks to be given back once the lock is free.
type Gone = SmallVec<[usize; 8]>;

fn give_back(gone: Gone) {
    for at in gone {
        // SAFETY: `keep` was given the block by its last holder, and nobody else knows it.
        unsafe { libc::free(at as *mut _) };
    }
}

/// Number of bytes of a block of the C library, all of which may be written. None if it does not
/// report that.
///
/// # Safety
/// `p` was allocated by the C library, and is not freed yet.
unsafe fn size_of_block(p: *mut u8) -> Option<usize> {
    #[cfg(target_os = "linux")]
    // SAFETY: by the contract, it is a live block of the C library.
    return Some(unsafe { libc::malloc_usable_size(p.cast()) });
    #[cfg(not(target_os = "linux"))]
    {
        let _ = p;
        None
    }
}

/// Allocates a block with that layout for a counted binary; null if there is no memory.
pub(crate) fn allocate(l: Layout) -> *mut u8 {
    if fence::on() {
        // SAFETY: the layout of a counted binary has a size.
        return unsafe { fence::allocate(Kind::Binary, l) };
    }
    if l.size() <= SMALL {
        // SAFETY: the layout of a counted binary has a size.
        return unsafe { std::alloc::alloc(l) };
    }
    // Its head needs no more alignment than the C library gives to any block.
    debug_assert!(l.align() <= 8);
    if l.size() >= *SIZES.start() {
        note_allocation(l.size());
    }
    let kept = match SIZES.contains(&l.size()) {
        true => take(l.size()),
        false => None,
    };
    kept.unwrap_or_else(|| {
        // SAFETY: may be called with any size.
        let p = unsafe { libc::malloc(l.size()) };
        if !p.is_null() {
            counts::add(|c| &c.blocks, 1);
        }
        // SAFETY: the block was just allocated with that size, if it is not null.
        unsafe { in_large_pages(p.cast(), l.size()) };
        p.cast()
    })
}

/// Asks for large pages for a large block before anything is in it. (Moving existing large pages is
/// slow, as happens when a block grows.)
///
/// # Safety
/// `p` is null, or the address of a block of `bytes` bytes that belongs to the caller.
#[inline]
pub(crate) unsafe fn in_large_pages(p: *mut u8, bytes: usize) {
    if bytes >= LARGE_PAGES && !p.is_null() && !is_crowded() && !is_coarse(crate::sys::LARGE_PAGE) {
        // SAFETY: by the contract, the block is the caller's.
        unsafe { crate::sys::in_large_pages(p as usize, bytes) };
    }
}

/// Frees a block.
///
/// # Safety
/// It came from [`allocate`] or [`reallocate`] for that layout, and is not used afterwards.
pub(crate) unsafe fn deallocate(p: *mut u8, l: Layout) {
    // SAFETY: by the contract: it goes back to where it came from.
    unsafe {
        if fence::on() {
            return fence::deallocate(p, l);
        }
        if l.size() <= SMALL {
            return std::alloc::dealloc(p, l);
        }
        if SIZES.contains(&l.size()) && keep(p) {
            return;
        }
        counts::add(|c| &c.blocks, usize::MAX);
        libc::free(p.cast());
    }
}

/// Resizes a block, moving it. Null if there is no memory: the block is as it was. Not for use with
/// a fence.
///
/// # Safety
/// `p` came from [`allocate`] or this, for `bytes` bytes, and is not used afterwards, if there is a
/// result.
pub(crate) unsafe fn reallocate(p: *mut u8, bytes: usize, new: usize) -> *mut u8 {
    let large = SIZES.contains(&bytes);
    // SAFETY: by the contract; without a fence a block that is not small is the C library's.
    unsafe {
        if bytes <= SMALL && new <= SMALL {
            return std::alloc::realloc(p, Layout::from_size_align_unchecked(bytes, 8), new);
        }
        if bytes <= SMALL || new <= SMALL {
            return move_to(p, bytes, new);
        }
        if large
            && let Some(there) = size_of_block(p)
            && (new..=new + slack(new)).contains(&there)
        {
            return p;
        }
        if new >= *SIZES.start() {
            note_allocation(new.saturating_sub(bytes));
        }
        libc::realloc(p.cast(), new).cast()
    }
}

/// As [`reallocate`], between different kinds of blocks.
///
/// # Safety
/// As for [`reallocate`].
unsafe fn move_to(p: *mut u8, bytes: usize, new: usize) -> *mut u8 {
    let layouts = [bytes, new].map(|n| Layout::from_size_align(n, 8));
    let [Ok(old), Ok(new)] = layouts else {
        return std::ptr::null_mut();
    };
    let q = allocate(new);
    if !q.is_null() {
        // SAFETY: both blocks have as many bytes, and the first is given up.
        unsafe {
            q.copy_from_nonoverlapping(p, old.size().min(new.size()));
            deallocate(p, old);
        }
    }
    q
}

/// Takes a kept block of `bytes` bytes or a little more; its contents count as uninitialised.
#[cold]
#[inline(never)]
fn take(bytes: usize) -> Option<*mut u8> {
    let mut k = KEPT.lock();
    let fits = |b: &(usize, usize, u32)| (bytes..=bytes + slack(bytes)).contains(&b.1);
    // The one freed last is the most likely to be in the processor's caches.
    let i = k.blocks.iter().rposition(fits)?;
    let at = k.remove(i);
    drop(k);
    counts::add(|c| &c.blocks, 1);
    Some(at as *mut u8)
}

/// Keeps a block. Returns false if it has to be freed.
///
/// # Safety
/// As for [`deallocate`]: if it is kept the caller forgets it.
#[cold]
#[inline(never)]
unsafe fn keep(p: *mut u8) -> bool {
    let most = match is_crowded() {
        true => at_most_slack(KEPT_IN_CROWD / 8) * 8,
        false => at_most_slack(KEPT_BYTES / 8) * 8,
    };
    // SAFETY: by the contract, it is a block of the C library.
    let bytes = unsafe { size_of_block(p) };
    let Some(bytes) = bytes else {
        return false;
    };
    if bytes > most || stress() || gives_back() {
        return false;
    }
    let mut gone = Gone::new();
    {
        let mut k = KEPT.lock();
        while k.bytes + bytes > most {
            gone.push(k.remove(0));
        }
        let round = k.round;
        k.blocks.push((p as usize, bytes, round));
        k.bytes += bytes;
    }
    counts::add(|c| &c.blocks, usize::MAX);
    give_back(gone);
    true
}

/// Gives back what has been kept since the last round; each call begins a round. Returns whether
/// something is still kept.
pub fn release_unused() -> bool {
    let mut gone = Gone::new();
    let kept = {
        let mut k = KEPT.lock();
        k.round = k.round.wrapping_add(1);
        let now = k.round;
        while k.blocks.first().is_some_and(|b| now.wrapping_sub(b.2) > 1) {
            gone.push(k.remove(0));
        }
        !k.blocks.is_empty()
    };
    give_back(gone);
    kept
}

/// Number of bytes of the freed blocks that are kept.
pub fn kept_bytes() -> usize {
    KEPT.lock().bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 8).expect("a size")
    }

    // One after the other: all threads share the kept blocks.
    #[test]
    fn large_blocks_are_kept_for_the_next_and_not_for_long() {
        const N: usize = 1_000_000;
        // SAFETY: each block is freed once, with its layout, and written within it.
        unsafe {
            let p = allocate(layout(N));
            p.add(N - 1).write(7);
            deallocate(p, layout(N));
            assert!(kept_bytes() >= N);
            // Too small for this one, and much too large for that one.
            let (a, b) = (allocate(layout(N + N / 2)), allocate(layout(N / 2)));
            assert!(a != p && b != p);
            let q = allocate(layout(N - N / 20));
            assert_eq!(p, q);
            // A little larger again, and a little smaller.
            let q = reallocate(q, N - N / 20, N);
            assert_eq!(p, q);
            let q = reallocate(q, N, N - N / 30);
            assert_eq!(p, q);
            q.add(N - N / 30 - 1).write(8);
            let q = reallocate(q, N - N / 30, 100);
            assert!(!q.is_null());
            deallocate(q, layout(100));
            // As much as fits: the blocks freed first are gone.
            let all: Vec<_> = (0..40).map(|_| allocate(layout(N))).collect();
            all.iter().for_each(|p| deallocate(*p, layout(N)));
            assert!((KEPT_BYTES - 2 * N..=KEPT_BYTES).contains(&kept_bytes()));
            assert_eq!(allocate(layout(N)), all[39]);
            deallocate(all[39], layout(N));
            deallocate(a, layout(N + N / 2));
            deallocate(b, layout(N / 2));
            let round = KEPT.lock().round;
            while KEPT.lock().round.wrapping_sub(round) < 2 {
                release_unused();
            }
            assert_eq!(kept_bytes(), 0);
        }
    }
}
