//! Looking an address of bytecode up in the table of return points.
//! `runtime/src/compiled/returns.rs` has the table's layout, and writes it meanwhile. The stub in
//! machine code does the same (`look_up` in `crates/jit/src/stubs/x64.rs` and `a64.rs`).
//!
//! # Orderings
//! * Both words of a slot are read with acquire, the address first. Who finds the address has what
//!   was written before the slot was filled: the machine code and its address. Who finds 0 for the
//!   machine code, of a slot that is filled, finds code that was taken back.
//! * The mask never changes. The pointer to the table is read with acquire, which orders the mask
//!   before.

use crate::sync::{AtomicU64, Ordering};
use purlin_isa::context::return_hash;

/// The slot where an address is looked for first, but for the mask.
pub fn place(pc: u64) -> usize {
    let product = (pc >> return_hash::ALIGNED_BITS).wrapping_mul(return_hash::FACTOR as i64 as u64);
    (product >> return_hash::DROPPED_BITS) as usize
}

/// The machine code that continues at `pc`.
///
/// # Safety
/// `table` is null, or was the published table when the time slice of this thread began, or has
/// been since.
pub unsafe fn find(table: *const u64, pc: u64) -> Option<u64> {
    let words = table as *const AtomicU64;
    // SAFETY: by the contract; a table lasts until the slice ends. It has a slot that is free,
    // which ends the search.
    unsafe {
        let mask = words.as_ref()?.load(Ordering::Relaxed) as usize;
        let mut i = place(pc);
        loop {
            let at = words.add(1 + 2 * (i & mask));
            match (*at).load(Ordering::Acquire) {
                0 => return None,
                n if n == pc => {
                    let code = (*at.add(1)).load(Ordering::Acquire);
                    return (code != 0).then_some(code);
                }
                _ => i += 1,
            }
        }
    }
}
