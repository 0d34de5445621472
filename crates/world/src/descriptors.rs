//! Numbers of descriptors, counted for each process: always the lowest that is free.

use crate::errno::{Answer, Errno, fail};
use std::collections::{BTreeMap, BTreeSet};

/// The descriptors of a process.
#[derive(Clone, Debug)]
pub struct Descriptors<T> {
    open: BTreeMap<u32, T>,
    /// Free numbers below the highest that was ever used.
    free: BTreeSet<u32>,
    limit: u32,
}

impl<T> Descriptors<T> {
    /// Returns a table for numbers below `limit`.
    pub fn new(limit: u32) -> Self {
        Descriptors {
            open: BTreeMap::new(),
            free: BTreeSet::new(),
            limit,
        }
    }

    /// Returns the number that `insert` would give. A call that opens asks before it does anything.
    pub fn vacant(&self) -> Answer<u32> {
        let next = self.free.first().copied();
        let next = next.unwrap_or(self.open.len() as u32);
        if next < self.limit {
            Ok(next)
        } else {
            fail(Errno::EMFILE)
        }
    }

    /// Opens a descriptor.
    pub fn insert(&mut self, what: T) -> Answer<u32> {
        let number = self.vacant()?;
        self.free.remove(&number);
        self.open.insert(number, what);
        Ok(number)
    }

    /// Closes a descriptor, and returns what it was.
    pub fn remove(&mut self, number: u32) -> Answer<T> {
        let what = self.open.remove(&number);
        self.free.extend(what.iter().map(|_| number));
        what.ok_or(Errno::EBADF.into())
    }

    pub fn get(&self, number: u32) -> Answer<&T> {
        self.open.get(&number).ok_or(Errno::EBADF.into())
    }

    pub fn get_mut(&mut self, number: u32) -> Answer<&mut T> {
        self.open.get_mut(&number).ok_or(Errno::EBADF.into())
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.open.iter().map(|(number, what)| (*number, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::Stream;

    /// Against a second table that searches.
    #[test]
    fn the_lowest_free_number_is_given() {
        let mut numbers = Stream::from_state(3);
        let mut table = Descriptors::new(16);
        let mut naive = [None; 16];
        for n in 0..10_000 {
            if numbers.below(16) < 9 {
                let expected = naive.iter().position(Option::is_none);
                match table.insert(n) {
                    Ok(number) => {
                        assert_eq!(Some(number as usize), expected);
                        naive[number as usize] = Some(n);
                    }
                    Err(e) => {
                        assert_eq!((e, expected), (Errno::EMFILE.into(), None));
                    }
                }
            } else {
                let number = numbers.below(20) as u32;
                let expected = naive.get_mut(number as usize).and_then(Option::take);
                assert_eq!(table.remove(number).ok(), expected);
            }
        }
        assert_eq!(table.remove(99), Err(Errno::EBADF.into()));
    }
}
