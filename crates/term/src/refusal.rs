//! Refused memory: it ends the emulator, except where the code says that it takes the refusal for
//! an answer.

use std::alloc::Layout;
use std::cell::Cell;
use std::io::Write;

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

/// Ends the emulator because a block of `bytes` bytes was refused, with one line on standard error,
/// except in [`may_fail`]. Nothing here allocates, or waits for a lock.
#[cold]
pub(crate) fn refused(bytes: usize) {
    if MAY_FAIL.get() {
        return;
    }
    let mut line = [0u8; 80];
    let mut rest = &mut line[..];
    let _ = writeln!(rest, "purlin: cannot allocate {bytes} bytes of memory");
    let n = 80 - rest.len();
    // SAFETY: the buffer has `n` bytes, and no code runs afterwards.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), n);
        libc::_exit(1)
    }
}
