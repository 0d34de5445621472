//! The first call of a new process.
//!
//! The bottom of every stack is one word: the address of the code that ends the process normally.
//! It stays there as long as the process lives.

use super::stubs;
use crate::cx::Cx;
use purlin_term::Term;
use purlin_term::heap::Heap;

/// Words of the bottom of a stack. The first block of a new process has room for them at its end.
pub(crate) const BOTTOM_WORDS: usize = 1;

/// Puts the bottom of the stack at the end of the block and drops everything else on the stack.
///
/// # Safety
/// The block of the heap has [`BOTTOM_WORDS`] words behind `htop`.
#[inline]
pub unsafe fn push_bottom(heap: &mut Heap) {
    // SAFETY: the block has that many words at its end, which nothing else uses.
    unsafe {
        heap.stop = heap.hend.sub(BOTTOM_WORDS);
        (heap.stop as *mut u64).write(stubs().exit.as_ptr() as u64);
    }
}

/// Sets up the process in the context to start with `apply(m, f, args)`: bottom of the stack,
/// registers, `interp.pc` and `interp.live`. Bad arguments (not atoms, an improper list, no such
/// function) raise an exception in the process, as in stock.
///
/// # Safety
/// The contract of [`push_bottom`] holds; the terms belong to the process.
#[inline]
pub unsafe fn enter_apply(cx: &mut Cx, m: Term, f: Term, args: Term) {
    // SAFETY: by the contract of this function.
    unsafe { push_bottom(&mut cx.heap) };
    cx.x[0] = m;
    cx.x[1] = f;
    cx.x[2] = args;
    cx.interp.pc = apply_start();
    cx.interp.live = APPLY_LIVE;
}

/// Start address of a process whose registers 0 to 2 hold module, function and argument list, for
/// code that writes the saved registers of a process that is not running. Its stack must have a
/// bottom, see [`push_bottom`].
#[inline]
pub(crate) fn apply_start() -> *const u64 {
    stubs().apply.as_ptr()
}
/// Number of live registers at [`apply_start`].
pub const APPLY_LIVE: usize = 3;
