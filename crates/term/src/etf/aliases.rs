//! Aliases that have left this runtime in external terms, with their processes, since the external
//! reference does not name them. A reference that comes back is that alias again, as long as it is
//! active.
//!
//! An alias that is no longer active may leave, too: only its process knows that, and it may have
//! ended. When there are many entries, the useless ones are looked for.
//!
//! # Orderings
//! `COUNT` is stored with release under the lock, and loaded with acquire. It only saves taking the
//! lock. A reference that has come back was encoded before, and what brought it here orders that
//! before the load.

use crate::sync::Mutex;
use crate::word::Term;
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of entries above which useless ones are looked for.
const FIRST_LOOK: usize = 4096;

/// Aliases that have left and are active.
#[derive(Default)]
struct Exported {
    /// The process of each, by its numbers.
    processes: HashMap<[u32; 3], Term>,
    /// The same by process, so that the end of a process does not look at the entries of others.
    by_process: BTreeSet<(u32, [u32; 3])>,
    /// Number of entries at which useless ones are looked for next.
    look_at: usize,
}

impl Exported {
    /// The processes, with the number of their entries.
    fn counts(&self) -> Vec<(Term, usize)> {
        let mut all: Vec<(Term, usize)> = Vec::new();
        for &(data, _) in &self.by_process {
            let pid = Term::pid(data);
            match all.last_mut() {
                Some(last) if last.0 == pid => last.1 += 1,
                _ => all.push((pid, 1)),
            }
        }
        all
    }
    fn remove(&mut self, numbers: [u32; 3]) {
        if let Some(pid) = self.processes.remove(&numbers) {
            self.by_process.remove(&(pid.pid_data(), numbers));
        }
    }
}

/// Function that gets the processes with entries, and their numbers of entries.
type Look = fn(&[(Term, usize)]);
static LOOK: OnceLock<Look> = OnceLock::new();

/// Sets the function that looks for useless entries when there are many: see [`keep`].
pub fn on_many(look: Look) {
    let _ = LOOK.set(look);
}

static EXPORTED: Mutex<Option<Exported>> = Mutex::new(None);
/// Number of entries, so that nobody takes the lock as long as no alias has left.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn with<R>(f: impl FnOnce(&mut Exported) -> R) -> R {
    let mut e = EXPORTED.lock();
    let all = e.get_or_insert_default();
    let r = f(all);
    // If many have gone, the next look comes sooner.
    let soon = FIRST_LOOK.max(2 * all.processes.len());
    all.look_at = all.look_at.clamp(FIRST_LOOK, soon);
    COUNT.store(all.processes.len(), Ordering::Release);
    r
}

/// Notes that the reference with these numbers, an alias of the local process `pid`, is encoded.
pub fn leaves(numbers: [u32; 3], pid: Term) {
    debug_assert!(pid.is_local_pid());
    let many = with(|e| {
        e.processes.insert(numbers, pid);
        e.by_process.insert((pid.pid_data(), numbers));
        let n = e.processes.len();
        (n > FIRST_LOOK && n >= e.look_at).then(|| {
            e.look_at = 2 * n;
            e.counts()
        })
    });
    if let (Some(many), Some(look)) = (many, LOOK.get()) {
        look(&many);
    }
}

/// The process of the alias with these numbers, if it has left and is active.
pub fn process_of(numbers: [u32; 3]) -> Option<Term> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    with(|e| e.processes.get(&numbers).copied())
}

/// Notes that the reference with these numbers is no alias any more.
#[inline]
pub fn ended(numbers: impl FnOnce() -> [u32; 3]) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        let numbers = numbers();
        with(|e| e.remove(numbers));
    }
}

/// Keeps only those aliases of a process that are `active`. Called by the process itself, since
/// nobody else changes that.
pub fn keep(pid: Term, mut active: impl FnMut([u32; 3]) -> bool) {
    let of_it = (pid.pid_data(), [0; 3])..=(pid.pid_data(), [u32::MAX; 3]);
    let mut gone: Vec<[u32; 3]> =
        with(|e| e.by_process.range(of_it).map(|entry| entry.1).collect());
    gone.retain(|&n| !active(n));
    with(|e| gone.into_iter().for_each(|n| e.remove(n)));
}

/// Notes that the process has ended, and its aliases with it.
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
    fn what_is_no_alias_any_more_does_not_pile_up() {
        // Processes of this test only: those with odd numbers have ended, and the others have one
        // active alias each.
        const FIRST: u32 = 1 << 20;
        on_many(|all| {
            for &(pid, n) in all.iter().filter(|a| a.0.pid_data() >= FIRST) {
                assert!(n > 0);
                match pid.pid_data() % 2 {
                    1 => process_ended(pid),
                    _ => keep(pid, |numbers| numbers[0] == 0),
                }
            }
        });
        let of = |n: u32| Term::pid(FIRST + n % 100);
        for n in 0..100_000 {
            leaves([n / 100, FIRST + n % 100, 7], of(n));
        }
        assert!(COUNT.load(Ordering::Relaxed) <= 3 * FIRST_LOOK);
        assert_eq!(process_of([0, FIRST + 2, 7]), Some(of(2)));
        (0..100).for_each(|n| process_ended(of(n)));
        assert_eq!(process_of([0, FIRST + 2, 7]), None);
    }

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
