//! Aliases that have left this runtime in external terms: which process each is an alias of, since the external reference doesn't
//! say. A reference that comes back is that alias again, as long as it is active.

use crate::sync::Mutex;
use crate::word::Term;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

static EXPORTED: Mutex<Option<HashMap<[u32; 3], Term>>> = Mutex::new(None);
/// Entries of it, so that where no alias leaves nobody takes the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn with<R>(f: impl FnOnce(&mut HashMap<[u32; 3], Term>) -> R) -> R {
    let mut e = EXPORTED.lock();
    let map = e.get_or_insert_with(HashMap::new);
    let r = f(map);
    COUNT.store(map.len(), Ordering::Release);
    r
}

/// The reference of these numbers, an alias of the local process `pid`, is encoded.
pub fn leaves(numbers: [u32; 3], pid: Term) {
    debug_assert!(pid.is_local_pid());
    with(|m| m.insert(numbers, pid));
}

/// The process that a reference with these numbers is an alias of, if it has left and is active.
pub fn process_of(numbers: [u32; 3]) -> Option<Term> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    with(|m| m.get(&numbers).copied())
}

/// The reference of these numbers is no alias any more.
#[inline]
pub fn ended(numbers: impl FnOnce() -> [u32; 3]) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        with(|m| m.remove(&numbers()));
    }
}

/// The process has ended, and its aliases with it.
#[inline]
pub fn process_ended(pid: Term) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        with(|m| m.retain(|_, p| *p != pid));
    }
}
