//! Walks of ordered tables by `ets:next/2` and `ets:prev/2`: each call names the key that the one
//! before it has returned. A thread remembers the keys that come next, so that most calls search
//! nothing.

use purlin_term::prefetch::prefetch;
use purlin_term::{Term, compare};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Identifies the contents of a table: no two have the same, in all time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct State {
    /// A number of the table.
    table: u64,
    /// Number of times that a thread could have changed it.
    version: u64,
}

impl Default for State {
    fn default() -> State {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        State {
            table: NEXT.fetch_add(1, Ordering::Relaxed),
            version: 0,
        }
    }
}

impl State {
    /// Called before each change.
    pub(crate) fn changes(&mut self) {
        self.version += 1;
    }
}

/// Number of keys that are remembered at first; each time that all of them were used, twice as
/// many are, up to [`MOST_KEYS`].
const FIRST: usize = 2;
const MOST_KEYS: usize = 16;

/// Keys in the order of a walk. Its terms lie in the table, and are looked at only while that is in
/// `state`.
struct Ahead {
    state: Option<State>,
    downwards: bool,
    keys: [Term; MOST_KEYS],
    n: usize,
    /// The key that was returned last.
    at: usize,
}

thread_local! {
    static AHEAD: RefCell<Ahead> = const {
        RefCell::new(Ahead {
            state: None,
            downwards: false,
            keys: [Term::NON_VALUE; MOST_KEYS],
            n: 0,
            at: 0,
        })
    };
}

/// Returns the key that follows `key` in a table; None if it is the last. `from` returns the keys
/// behind `key` in the direction of the walk.
///
/// # Safety
/// `state` is that of a table that cannot change during the call, and `from` returns keys in it.
pub(crate) unsafe fn next<I: Iterator<Item = Term>>(
    state: State,
    key: Term,
    downwards: bool,
    from: impl FnOnce() -> I,
) -> Option<Term> {
    AHEAD.with_borrow_mut(|a| {
        let mut most = FIRST;
        // The table has not changed since these keys were taken, so they are still in it.
        if a.state == Some(state) && a.downwards == downwards && compare::eq(a.keys[a.at], key) {
            a.at += 1;
            if a.at < a.n {
                if let Some(later) = a.keys[a.at..a.n].get(1) {
                    prefetch(later.ptr());
                }
                return Some(a.keys[a.at]);
            }
            most = MOST_KEYS.min(2 * a.n);
        }
        a.n = 0;
        for (place, key) in a.keys.iter_mut().zip(from().take(most)) {
            *place = key;
            a.n += 1;
        }
        a.state = (a.n > 0).then_some(state);
        (a.downwards, a.at) = (downwards, 0);
        a.state.map(|_| a.keys[0])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks over numbers, with searches counted: each takes twice as many keys as the one before
    /// it, and a changed table is searched again.
    #[test]
    fn walks_search_seldom_and_never_use_keys_of_another_state() {
        let (mut state, other) = (State::default(), State::default());
        assert_ne!(state, other);
        let searches = std::cell::Cell::new(0);
        let step = |state: State, at: i64, downwards: bool, end: i64| {
            let from = || {
                searches.set(searches.get() + 1);
                let keys: Vec<i64> = match downwards {
                    false => (at + 1..end).collect(),
                    true => (end + 1..at).rev().collect(),
                };
                keys.into_iter().map(Term::small)
            };
            // SAFETY: the keys are no pointers.
            unsafe { next(state, Term::small(at), downwards, from) }.map(|t| t.small_value())
        };
        for at in -1..100 {
            assert_eq!(step(state, at, false, 100), (at < 99).then_some(at + 1));
        }
        // 2, 4, 8, then 16 at a time, and the search behind the last key.
        assert_eq!(searches.replace(0), 3 + 6 + 1);
        for at in (0..=100).rev() {
            assert_eq!(step(state, at, true, -1), (at > 0).then_some(at - 1));
        }
        assert_eq!(searches.replace(0), 3 + 6 + 1);
        // Another table, and a changed one.
        assert_eq!(step(state, 0, false, 100), Some(1));
        assert_eq!(step(other, 1, false, 2), None);
        assert_eq!(step(state, 1, false, 100), Some(2));
        state.changes();
        assert_eq!(step(state, 2, false, 3), None);
        assert_eq!(searches.get(), 4);
    }
}
