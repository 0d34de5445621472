//! Aliases that have left this runtime in external terms: which process each is an alias of, since the external reference doesn't
//! say. A reference that comes back is that alias again, as long as it is active.

use crate::sync::Mutex;
use crate::word::Term;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Those that have left and are active.
#[derive(Default)]
struct Exported {
    /// The process of each, by its numbers.
    processes: HashMap<[u32; 3], Term>,
    /// The same by process, so that one that ends doesn't look at those of others.
    by_process: BTreeSet<(u32, [u32; 3])>,
}

static EXPORTED: Mutex<Option<Exported>> = Mutex::new(None);
/// Entries of it, so that where no alias leaves nobody takes the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn with<R>(f: impl FnOnce(&mut Exported) -> R) -> R {
    let mut e = EXPORTED.lock();
    let all = e.get_or_insert_default();
    let r = f(all);
    COUNT.store(all.processes.len(), Ordering::Release);
    r
}

/// The reference of these numbers, an alias of the local process `pid`, is encoded.
pub fn leaves(numbers: [u32; 3], pid: Term) {
    debug_assert!(pid.is_local_pid());
    with(|e| {
        e.processes.insert(numbers, pid);
        e.by_process.insert((pid.pid_data(), numbers));
    });
}

/// The process that a reference with these numbers is an alias of, if it has left and is active.
pub fn process_of(numbers: [u32; 3]) -> Option<Term> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    with(|e| e.processes.get(&numbers).copied())
}

/// The reference of these numbers is no alias any more.
#[inline]
pub fn ended(numbers: impl FnOnce() -> [u32; 3]) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        let numbers = numbers();
        with(|e| {
            if let Some(pid) = e.processes.remove(&numbers) {
                e.by_process.remove(&(pid.pid_data(), numbers));
            }
        });
    }
}

/// The process has ended, and its aliases with it.
#[inline]
pub fn process_ended(pid: Term) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        with(|e| {
            let of_it = (pid.pid_data(), [0; 3])..=(pid.pid_data(), [u32::MAX; 3]);
            let gone: Vec<_> = e.by_process.range(of_it).copied().collect();
            for entry in gone {
                e.by_process.remove(&entry);
                e.processes.remove(&entry.1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_end_with_their_process() {
        let (one, two) = (Term::pid(71), Term::pid(72));
        for n in 0..10 {
            leaves([n, 71, 0], one);
            leaves([n, 72, u32::MAX], two);
        }
        ended(|| [3, 71, 0]);
        assert_eq!(process_of([3, 71, 0]), None);
        assert_eq!(process_of([4, 71, 0]), Some(one));
        process_ended(one);
        assert_eq!(process_of([4, 71, 0]), None);
        assert!((0..10).all(|n| process_of([n, 72, u32::MAX]) == Some(two)));
        process_ended(two);
        assert!((0..10).all(|n| process_of([n, 72, u32::MAX]).is_none()));
    }
}
