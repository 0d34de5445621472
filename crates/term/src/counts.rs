//! Counts of frequent events in the whole runtime: each of the threads that cause most of them
//! counts for itself, on cache lines of its own, and a reader adds up.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One thread's share. Sums wrap: a thread that frees what another has allocated counts below zero.
#[repr(align(128))]
pub struct Counts {
    /// Collections, and words that they reclaimed.
    pub collections: AtomicUsize,
    pub reclaimed_words: AtomicUsize,
    /// Heap blocks in use, without those in cells of processes, and their bytes.
    pub heap_blocks: AtomicUsize,
    pub heap_bytes: AtomicUsize,
    /// Counted binaries, and their capacity in bytes.
    pub binaries: AtomicUsize,
    pub binary_bytes: AtomicUsize,
    /// Blocks that Rust code has from the C library.
    pub blocks: AtomicUsize,
}

/// Maximum number of threads with a share of their own.
pub(crate) const SHARES: usize = 64;

/// The first is that of all other threads, which add to it atomically.
static ALL: [Counts; SHARES + 1] = [const {
    Counts {
        collections: AtomicUsize::new(0),
        reclaimed_words: AtomicUsize::new(0),
        heap_blocks: AtomicUsize::new(0),
        heap_bytes: AtomicUsize::new(0),
        binaries: AtomicUsize::new(0),
        binary_bytes: AtomicUsize::new(0),
        blocks: AtomicUsize::new(0),
    }
}; SHARES + 1];

static TAKEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(0) };
}

/// Gives this thread a share of its own, if one is left. For threads that live as long as the
/// runtime.
pub fn take_share() {
    let n = TAKEN.fetch_add(1, Ordering::Relaxed) + 1;
    if n <= SHARES {
        MINE.with(|m| m.set(n));
    }
}

/// This thread's number if it has a share; 0 if not.
#[inline]
pub(crate) fn share() -> usize {
    MINE.with(|m| m.get())
}

/// Adds to a count; sums wrap.
#[inline]
pub fn add(of: impl Fn(&Counts) -> &AtomicUsize, n: usize) {
    match share() {
        0 => {
            of(&ALL[0]).fetch_add(n, Ordering::Relaxed);
        }
        i => {
            // Nobody else writes to it.
            let c = of(&ALL[i]);
            c.store(c.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }
}

/// The sum of a count. While others count, a release may be seen before the matching allocation: a
/// negative sum counts as 0.
pub fn sum(of: impl Fn(&Counts) -> &AtomicUsize) -> usize {
    let all = ALL.iter().map(|c| of(c).load(Ordering::Relaxed));
    let n = all.fold(0, usize::wrapping_add);
    if n > isize::MAX as usize { 0 } else { n }
}

thread_local! {
    /// Whether this thread takes a refusal of memory for an answer.
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f`, whose allocations return null if there is no memory for them. Elsewhere that ends the
/// emulator.
pub fn may_fail<R>(f: impl FnOnce() -> R) -> R {
    let before = MAY_FAIL.replace(true);
    let r = f();
    MAY_FAIL.set(before);
    r
}

/// Allocates a block, or returns null if there is no memory for it.
///
/// # Safety
/// The layout has a size.
#[inline(never)]
pub unsafe fn alloc_or_null(l: Layout) -> *mut u8 {
    // SAFETY: by the contract.
    may_fail(|| unsafe { std::alloc::alloc(l) })
}

/// Ends the emulator because a block of `bytes` bytes was refused, with one line on standard error.
/// Nothing here allocates, or waits for a lock.
#[cold]
fn refused(bytes: usize) {
    if MAY_FAIL.get() {
        return;
    }
    let mut line = [0u8; 80];
    let mut rest = &mut line[..];
    let _ = writeln!(rest, "purlin: cannot allocate {bytes} bytes of memory");
    let n = 80 - rest.len();
    // SAFETY: the buffer has `n` bytes, and nobody sees this process's memory afterwards.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), n);
        libc::_exit(1)
    }
}

/// The C library's allocator, which also counts the blocks that it has handed out. Where no memory
/// is left, it ends the emulator, except in [`may_fail`].
pub struct Counted;

// Never inlined: from another crate, thread-local data is reached by a call.
//
// SAFETY: all calls go to the system allocator, which keeps the contract; counting allocates
// nothing.
unsafe impl GlobalAlloc for Counted {
    #[inline(never)]
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        // SAFETY: by the contract of `GlobalAlloc`.
        unsafe { counted(System.alloc(l), l.size()) }
    }
    #[inline(never)]
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        // SAFETY: by the contract of `GlobalAlloc`.
        unsafe { counted(System.alloc_zeroed(l), l.size()) }
    }
    #[inline(never)]
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        add(|c| &c.blocks, usize::MAX);
        // SAFETY: by the contract of `GlobalAlloc`.
        unsafe {
            System.dealloc(p, l);
        }
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the contract of `GlobalAlloc`.
        let p = unsafe { System.realloc(p, l, size) };
        if p.is_null() {
            refused(size);
        }
        p
    }
}

#[inline]
fn counted(p: *mut u8, bytes: usize) -> *mut u8 {
    match p.is_null() {
        true => refused(bytes),
        false => add(|c| &c.blocks, 1),
    }
    p
}
