//! Allocation of the blocks of signals.
//!
//! One thread allocates a message and another frees it, which is slow with the C library's
//! allocator. So schedulers keep the small blocks that they free, by size. A scheduler with more
//! than it needs puts a [`batch`] of them on a shelf, where others find it. Each block is a plain
//! allocation of exactly its size, so that it may become a fragment of a heap; blocks beyond
//! [`SHELF_BYTES`] are deallocated.
//!
//! With a fence (`purlin_term::fence`) no thread keeps blocks: each is allocated and freed there.

use super::queue::prefetch;
use super::{HEAD_WORDS, Signal};
use crate::sync::Mutex;
use purlin_term::fence::{self, Kind};
use purlin_term::pressure;
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of words of a signal whose block is kept. Larger ones are left to the C library.
const LARGEST: usize = 128;
/// Number of blocks of a size that change hands at a time. A scheduler keeps less than twice as
/// many.
const fn batch(words: usize) -> u32 {
    if words <= 32 { 64 } else { 16 }
}
/// Maximum number of bytes of blocks on all shelves.
const SHELF_BYTES: usize = 16 << 20;
/// The same while memory matters more than time.
const SHELF_BYTES_IN_CROWD: usize = 1 << 20;

/// A free block. Its first word points to the next, except in the last of a list; the list's length
/// tells which is the last.
struct Free {
    next: *mut Free,
}

/// The free blocks of one size that a scheduler keeps.
#[derive(Clone, Copy)]
struct List {
    first: *mut Free,
    /// Start of the last [`batch`] of a list that is longer than one.
    second_batch: *mut Free,
    len: u32,
}

struct Cache {
    active: bool,
    lists: [List; LARGEST + 1],
}

thread_local! {
    static CACHE: UnsafeCell<Cache> = const {
        UnsafeCell::new(Cache {
            active: false,
            lists: [List {
                first: std::ptr::null_mut(),
                second_batch: std::ptr::null_mut(),
                len: 0,
            }; LARGEST + 1],
        })
    };
}

/// Batches of free blocks of one size.
struct Shelf {
    batches: Vec<*mut Free>,
}

// SAFETY: the shelf owns its blocks.
unsafe impl Send for Shelf {}

static SHELVES: [Mutex<Shelf>; LARGEST + 1] = [const {
    Mutex::new(Shelf {
        batches: Vec::new(),
    })
}; LARGEST + 1];
/// Number of batches on each shelf, readable without its lock.
static FILLED: [AtomicUsize; LARGEST + 1] = [const { AtomicUsize::new(0) }; LARGEST + 1];
/// Bytes on all shelves.
static SHELVED_BYTES: AtomicUsize = AtomicUsize::new(0);

#[inline]
fn layout(words: usize) -> Layout {
    Layout::array::<u64>(HEAD_WORDS + words)
        .unwrap_or_else(|_| std::alloc::handle_alloc_error(Layout::new::<u64>()))
}

#[inline]
fn batch_bytes(words: usize) -> usize {
    (HEAD_WORDS + words) * 8 * batch(words) as usize
}

/// Makes this thread keep blocks. Only for threads that live as long as the runtime: nobody empties
/// their lists.
#[inline]
pub fn keep() {
    // SAFETY: it belongs to this thread, and is not in use otherwise.
    CACHE.with(|c| unsafe { (*c.get()).active = !fence::on() });
}

/// Allocates an uninitialised block for a signal of `words` words.
#[inline]
pub fn alloc(words: usize) -> *mut Signal {
    if words <= LARGEST {
        let kept = CACHE.with(|c| {
            // SAFETY: it belongs to this thread, and nothing called here comes back. Blocks in a
            // list are free and point to the next.
            unsafe {
                let l = &mut (&mut (*c.get()).lists)[words];
                if l.len == 0 {
                    return std::ptr::null_mut();
                }
                let b = l.first;
                l.first = (*b).next;
                l.len -= 1;
                // Another processor may have used it last.
                prefetch(l.first as *const u8);
                b
            }
        });
        if !kept.is_null() {
            return kept as *mut Signal;
        }
    }
    fresh(words)
}

#[cold]
#[inline(never)]
fn fresh(words: usize) -> *mut Signal {
    if words <= LARGEST && FILLED[words].load(Ordering::Relaxed) != 0 {
        let got = CACHE.with(|c| {
            // SAFETY: the cache belongs to this thread, and nothing called here comes back. A batch
            // is a chain of `batch(words)` free blocks.
            unsafe {
                if !(*c.get()).active {
                    return None;
                }
                let mut s = SHELVES[words].lock();
                let b = s.batches.pop()?;
                FILLED[words].store(s.batches.len(), Ordering::Relaxed);
                drop(s);
                SHELVED_BYTES.fetch_sub(batch_bytes(words), Ordering::Relaxed);
                let l = &mut (&mut (*c.get()).lists)[words];
                (l.first, l.len) = ((*b).next, batch(words) - 1);
                Some(b)
            }
        });
        if let Some(b) = got {
            return b as *mut Signal;
        }
    }
    let l = layout(words);
    // SAFETY: the layout has a size.
    let p = unsafe { fence::allocate(Kind::Signal, l) };
    if p.is_null() {
        purlin_term::sys::out_of_memory("eheap_alloc", l.size(), "msg");
    }
    p as *mut Signal
}

/// Moves a value into a block, to be freed by [`unbox`]. For types of which about every second
/// process has one.
#[inline]
pub(crate) fn boxed<T>(t: T) -> *mut T {
    let words = const { words_for::<T>() };
    let p = alloc(words) as *mut T;
    // SAFETY: the block is as large and as aligned as the value.
    unsafe { p.write(t) };
    p
}

/// Words beyond the head of a signal whose block fits a value.
const fn words_for<T>() -> usize {
    assert!(size_of::<T>().is_multiple_of(8) && align_of::<T>() == 8);
    assert!(size_of::<T>() >= HEAD_WORDS * 8);
    size_of::<T>() / 8 - HEAD_WORDS
}

/// Drops and frees what [`boxed`] made.
///
/// # Safety
/// `p` is not used afterwards.
#[inline]
pub(crate) unsafe fn unbox<T>(p: *mut T) {
    // SAFETY: by the contract, `p` is from `boxed`, which took a block of this many words.
    unsafe {
        std::ptr::drop_in_place(p);
        free(p as *mut Signal, const { words_for::<T>() });
    }
}

/// Frees the block of a signal of `words` words.
///
/// # Safety
/// It came from [`alloc`] for `words` words, and is not used afterwards.
#[inline]
#[track_caller]
pub unsafe fn free(s: *mut Signal, words: usize) {
    if words <= LARGEST {
        // With a fence no list is active, so only the last line runs.
        let done = CACHE.with(|c| {
            // SAFETY: it belongs to this thread, and nothing called here comes back.
            let c = unsafe { &mut *c.get() };
            if !c.active {
                return false;
            }
            let l = &mut c.lists[words];
            let b = s as *mut Free;
            let next = l.first;
            // SAFETY: the block is the caller's to free, and no smaller than a head.
            unsafe { (*b).next = next };
            l.first = b;
            l.len += 1;
            if l.len == batch(words) + 1 {
                l.second_batch = next;
            } else if l.len == 2 * batch(words) {
                // SAFETY: it has just got its second batch.
                unsafe { leave(l, words) };
            }
            true
        });
        if done {
            return;
        }
    }
    // SAFETY: by the contract, from `alloc` with this layout.
    unsafe { fence::deallocate(s as *mut u8, layout(words)) };
}

/// Puts all but the last batch of a list on the shelf, or deallocates them.
///
/// # Safety
/// `l` is this thread's list of free blocks of this many words, and has two batches, chained one
/// behind the other.
#[cold]
#[inline(never)]
unsafe fn leave(l: &mut List, words: usize) {
    let (mut b, rest) = (l.first, l.second_batch);
    (l.first, l.len) = (rest, batch(words));
    let most = match pressure::is_crowded() {
        true => SHELF_BYTES_IN_CROWD,
        false => SHELF_BYTES,
    };
    if SHELVED_BYTES.load(Ordering::Relaxed) < most {
        SHELVED_BYTES.fetch_add(batch_bytes(words), Ordering::Relaxed);
        let mut s = SHELVES[words].lock();
        s.batches.push(b);
        FILLED[words].store(s.batches.len(), Ordering::Relaxed);
        return;
    }
    for _ in 0..batch(words) {
        // SAFETY: by the contract, a chain of this many free blocks of this size.
        unsafe {
            let next = (*b).next;
            std::alloc::dealloc(b as *mut u8, layout(words));
            b = next;
        }
    }
}

/// Bytes of the free blocks on all shelves.
pub fn shelved_bytes() -> usize {
    SHELVED_BYTES.load(Ordering::Relaxed)
}

/// Deallocates the blocks on all shelves.
pub fn clear() {
    for (words, shelf) in SHELVES.iter().enumerate() {
        let all = {
            let mut s = shelf.lock();
            FILLED[words].store(0, Ordering::Relaxed);
            std::mem::take(&mut s.batches)
        };
        SHELVED_BYTES.fetch_sub(all.len() * batch_bytes(words), Ordering::Relaxed);
        for mut b in all {
            // SAFETY: a batch is a chain of `batch(words)` free blocks of this size, which nobody
            // else knows.
            unsafe {
                for _ in 0..batch(words) {
                    let next = (*b).next;
                    std::alloc::dealloc(b as *mut u8, layout(words));
                    b = next;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_back_and_are_passed_on() {
        let words = 7;
        std::thread::spawn(move || {
            keep();
            let all: Vec<*mut Signal> = (0..1000).map(|_| alloc(words)).collect();
            for &b in &all {
                // SAFETY: each came from `alloc`, and is freed once.
                unsafe { free(b, words) };
            }
            // SAFETY: the cache of this thread, which nothing else uses now.
            let kept = CACHE.with(|c| unsafe { (&(*c.get()).lists)[words].len });
            assert!(kept < 2 * batch(words));
            assert!(
                FILLED[words].load(Ordering::Relaxed)
                    >= (1000 - 2 * batch(words) as usize) / batch(words) as usize
            );
            let mut again: Vec<*mut Signal> = (0..1000).map(|_| alloc(words)).collect();
            again.sort();
            again.dedup();
            assert_eq!(again.len(), 1000);
            for b in again {
                // SAFETY: each came from `alloc`, and is freed once.
                unsafe { free(b, words) };
            }
            clear();
            assert_eq!(FILLED[words].load(Ordering::Relaxed), 0);
        })
        .join()
        .unwrap_or_else(|_| panic!("the thread failed"));
    }
}
