//! Which calls make new atoms from text, and how many.
//!
//! Only a call that makes an atom comes here, so a program that makes none pays nothing.

use purlin_term::sync::Mutex;
use std::collections::HashMap;

/// Maximum number of calls that are distinguished.
const MOST_CALLS: usize = 4096;

/// The atoms that each call has made, by the address of its instruction.
static MADE: Mutex<Option<HashMap<usize, u64>>> = Mutex::new(None);

/// Notes that the call at `pc` makes an atom.
pub(crate) fn note(pc: *const u64) {
    let mut made = MADE.lock();
    let all = made.get_or_insert_default();
    let more = all.len() < MOST_CALLS;
    match all.get_mut(&(pc as usize)) {
        Some(n) => *n += 1,
        None if more => drop(all.insert(pc as usize, 1)),
        None => {}
    }
}

/// The calls that have made atoms, each with their number. The code of a call may be gone.
pub fn all() -> Vec<(usize, u64)> {
    let made = MADE.lock();
    let all = made.iter().flatten();
    all.map(|(pc, n)| (*pc, *n)).collect()
}
