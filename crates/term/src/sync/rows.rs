//! A table whose rows are made when they are first needed, and live as long as the program.
//!
//! Its empty rows are zeros, so that a table with many of them takes no room in the executable. An
//! array of `OnceLock` does: its initial state is not zero.
//!
//! # Orderings
//! A row is published by a compare-and-exchange with `AcqRel` and read with `Acquire`, so a thread
//! that sees its address sees its contents.

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Up to `N` values of type `T`.
pub struct Rows<T: 'static, const N: usize>([AtomicPtr<T>; N]);

impl<T: Sync, const N: usize> Rows<T, N> {
    /// A table without rows.
    pub const fn new() -> Rows<T, N> {
        Rows([const { AtomicPtr::new(ptr::null_mut()) }; N])
    }

    /// Returns the row, if it was made.
    #[inline]
    pub fn get(&'static self, index: usize) -> Option<&'static T> {
        let row = self.0.get(index)?.load(Ordering::Acquire);
        // SAFETY: null, or from `Box::into_raw` in `get_or_make`; no row is ever freed.
        unsafe { row.as_ref() }
    }

    /// Returns the row, and makes it if necessary. If several threads make it at once, all get the
    /// same one and the other values are dropped.
    ///
    /// # Panics
    /// If `index` is not below `N`.
    pub fn get_or_make(&'static self, index: usize, make: impl FnOnce() -> Box<T>) -> &'static T {
        if let Some(row) = self.get(index) {
            return row;
        }
        let new = Box::into_raw(make());
        let place = &self.0[index];
        let made =
            place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
        match made {
            // SAFETY: from `Box::into_raw` above; no row is ever freed.
            Ok(_) => unsafe { &*new },
            Err(row) => {
                // SAFETY: `new` was not published, so this is its only owner; `row` is as in `get`.
                unsafe {
                    drop(Box::from_raw(new));
                    &*row
                }
            }
        }
    }

    /// The rows from `from` up to the first one that was not made.
    pub fn made(&'static self, from: usize) -> impl Iterator<Item = &'static T> {
        (from..N).map_while(|index| self.get(index))
    }
}

impl<T: Sync, const N: usize> Default for Rows<T, N> {
    fn default() -> Rows<T, N> {
        Rows::new()
    }
}

impl<T, const N: usize> fmt::Debug for Rows<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rows of {N}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn one_of_many_makers_wins() {
        static ROWS: Rows<usize, 3> = Rows::new();
        let together = Barrier::new(4);
        let seen: Vec<&usize> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..4)
                .map(|n| {
                    let together = &together;
                    s.spawn(move || {
                        together.wait();
                        ROWS.get_or_make(1, || Box::new(n))
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|t| t.join().expect("ends"))
                .collect()
        });
        assert!(seen.iter().all(|row| ptr::eq(*row, seen[0])));
        assert_eq!(ROWS.get(0), None);
        assert_eq!(ROWS.get(3), None);
        assert_eq!(ROWS.made(0).count(), 0);
        assert_eq!(ROWS.made(1).collect::<Vec<_>>(), [seen[0]]);
    }
}
