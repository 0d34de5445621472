//! A queue of processes, each of which is in it at most once and may leave it from any place.
//!
//! A program can make any number of processes wait for one socket. So entering and leaving the
//! queue take less than linear time.

use crate::process::ext::{Hashing, Peer};
use purlin_term::Term;
use std::collections::{BTreeMap, HashMap};

/// See the module head. An empty queue is one word.
pub(crate) struct Turns<T>(Option<Box<Entries<T>>>);

struct Entries<T> {
    /// By the number of the turn.
    in_order: BTreeMap<u64, (Peer, T)>,
    turn_of: HashMap<Peer, u64, Hashing>,
    next: u64,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Turns(None)
    }
}

impl<T> Turns<T> {
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |e| e.in_order.len())
    }
    /// The entry of a process.
    pub(crate) fn get(&self, pid: Term) -> Option<&T> {
        let e = self.0.as_ref()?;
        let turn = e.turn_of.get(&Peer::of(pid))?;
        e.in_order.get(turn).map(|entry| &entry.1)
    }
    /// All entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let all = self.0.iter().flat_map(|e| e.in_order.values());
        all.map(|(_, what)| what)
    }
    /// Adds a process that is not in the queue.
    pub(crate) fn push_back(&mut self, pid: Term, what: T) {
        debug_assert!(self.get(pid).is_none());
        let e = self.0.get_or_insert_with(|| {
            Box::new(Entries {
                in_order: BTreeMap::new(),
                turn_of: HashMap::default(),
                next: 0,
            })
        });
        e.turn_of.insert(Peer::of(pid), e.next);
        e.in_order.insert(e.next, (Peer::of(pid), what));
        e.next += 1;
    }
    /// Removes the first process.
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let e = self.0.as_mut()?;
        let (_, (pid, what)) = e.in_order.pop_first()?;
        e.turn_of.remove(&pid);
        self.free_if_empty();
        Some(what)
    }
    /// Removes a process.
    pub(crate) fn remove(&mut self, pid: Term) -> Option<T> {
        let e = self.0.as_mut()?;
        let turn = e.turn_of.remove(&Peer::of(pid))?;
        let (_, what) = e.in_order.remove(&turn)?;
        self.free_if_empty();
        Some(what)
    }
    fn free_if_empty(&mut self) {
        if self.len() == 0 {
            self.0 = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_come_first_served() {
        let mut q = Turns::default();
        let pid = |n: u32| Term::pid(n);
        assert!(q.pop_front().is_none() && q.remove(pid(1)).is_none());
        (0..100).for_each(|n| q.push_back(pid(n), n));
        assert_eq!(
            (q.len(), q.get(pid(7)), q.get(pid(100))),
            (100, Some(&7), None)
        );
        assert!((0..100).step_by(2).all(|n| q.remove(pid(n)) == Some(n)));
        assert!(q.remove(pid(0)).is_none() && q.get(pid(0)).is_none());
        q.push_back(pid(0), 1000);
        let rest: Vec<u32> = std::iter::from_fn(|| q.pop_front()).collect();
        assert_eq!(rest, (1..100).step_by(2).chain([1000]).collect::<Vec<_>>());
        assert_eq!(q.len(), 0);
    }
}
