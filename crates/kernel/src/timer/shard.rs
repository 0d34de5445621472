//! Timers that are found by a key, and the race between firing and stopping.
//!
//! A timer is in one of two states. It *runs*: it is in the wheel, and its payload is here. Or it
//! is *due*: the firing thread has taken the payload, and prepares the effect. In both states the
//! timer is found and can be stopped. [`Shard::arrive`] performs its effect, and removes the timer
//! in the same critical section. So a timer that is not found was stopped, or its effect has
//! happened.
//!
//! # Orderings
//! The timers have a lock. `count` only saves taking it. The thread that starts a timer increases
//! it, relaxed, before any other can know the key. It is subtracted with release after the timer
//! was removed, and loaded with acquire: a thread that reads zero sees the effects of timers that
//! have fired. The numbers of [`Owners`] are written and read in the same way. The model is
//! `models/tests/timers.rs`.

use super::alarm::Due;
use super::wheel::{NONE, Node, Nodes, Wheel};
use crate::sync::{AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

/// The numbers of a timer's reference, which identify it.
pub type RefNumbers = [u32; 3];

/// How many timers the processes have that share a number here. Most processes end without timers:
/// a load tells so, while a look into the shards would take the locks that those who start timers
/// take.
pub(super) struct Owners(Box<[AtomicU32]>);

impl Owners {
    /// Returns two to the power of `bits` numbers. `bits` is 1 at least.
    pub fn new(bits: u32) -> Owners {
        Owners((0..1 << bits).map(|_| AtomicU32::new(0)).collect())
    }
    /// Pids that follow each other have numbers far apart.
    fn of(&self, owner: u64) -> &AtomicU32 {
        let hash = owner.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.0[(hash >> (64 - self.0.len().trailing_zeros())) as usize]
    }
    /// Whether a process may have timers. If not, the effects of those that it had are visible.
    pub fn may_own(&self, owner: u64) -> bool {
        self.of(owner).load(Ordering::Acquire) != 0
    }
    fn add(&self, owner: u64) {
        if owner != 0 {
            self.of(owner).fetch_add(1, Ordering::Relaxed);
        }
    }
    fn subtract(&self, owner: u64) {
        if owner != 0 {
            self.of(owner).fetch_sub(1, Ordering::Release);
        }
    }
}

enum State<P> {
    Free,
    Runs(P),
    Due,
}

struct Entry<P> {
    node: Node,
    key: RefNumbers,
    /// The process that the timer ends with, or 0.
    owner: u64,
    /// Neighbours among the timers of the owner, in this shard.
    next: u32,
    prev: u32,
    state: State<P>,
}

/// The timers of a shard.
pub(super) struct Entries<P> {
    entries: Vec<Entry<P>>,
    free: Vec<u32>,
    by_key: HashMap<RefNumbers, u32>,
    /// First timer of each owner.
    by_owner: HashMap<u64, u32>,
}

impl<P> Nodes for Entries<P> {
    fn node(&mut self, id: u32) -> &mut Node {
        &mut self.entries[id as usize].node
    }
}

impl<P> Entries<P> {
    fn new() -> Entries<P> {
        Entries {
            entries: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            by_owner: HashMap::new(),
        }
    }
    fn insert(&mut self, key: RefNumbers, owner: u64, state: State<P>) -> u32 {
        let mut e = Entry {
            node: Node::default(),
            key,
            owner,
            next: NONE,
            prev: NONE,
            state,
        };
        let index = self.free.pop().unwrap_or(self.entries.len() as u32);
        self.by_key.insert(key, index);
        if owner != 0
            && let Some(head) = self.by_owner.insert(owner, index)
        {
            self.entries[head as usize].prev = index;
            e.next = head;
        }
        match self.entries.get_mut(index as usize) {
            Some(place) => *place = e,
            None => self.entries.push(e),
        }
        index
    }
    /// Returns the state of a timer that it removes, and the timer's owner.
    fn remove(&mut self, index: u32) -> (State<P>, u64) {
        let e = &mut self.entries[index as usize];
        let state = std::mem::replace(&mut e.state, State::Free);
        let (key, owner, next, prev) = (e.key, e.owner, e.next, e.prev);
        self.free.push(index);
        self.by_key.remove(&key);
        if owner != 0 {
            if next != NONE {
                self.entries[next as usize].prev = prev;
            }
            if prev != NONE {
                self.entries[prev as usize].next = next;
            } else if next != NONE {
                self.by_owner.insert(owner, next);
            } else {
                self.by_owner.remove(&owner);
            }
        }
        (state, owner)
    }
    /// Iterates over the running timers' deadlines and payloads.
    pub fn running(&self) -> impl Iterator<Item = (u64, &P)> {
        self.entries.iter().filter_map(|e| match &e.state {
            State::Runs(p) => Some((e.node.deadline(), p)),
            _ => None,
        })
    }
}

/// Identifies a due timer for the firing thread.
#[derive(Clone, Copy)]
pub(super) struct Ticket {
    index: u32,
    key: RefNumbers,
}

type Inner<P> = (Wheel, Entries<P>);

/// See the module docs.
pub(super) struct Shard<P> {
    due: Due,
    /// Number of timers that can be found. A thread that reads zero sees the effects of those that
    /// were here.
    count: AtomicUsize,
    owners: Arc<Owners>,
    inner: Mutex<Inner<P>>,
}

impl<P> Shard<P> {
    /// Returns a shard without timers, at tick `now`. Its timers are counted in `owners`.
    pub fn new(now: u64, owners: Arc<Owners>) -> Shard<P> {
        Shard {
            due: Due::new(),
            count: AtomicUsize::new(0),
            owners,
            inner: Mutex::new((Wheel::new(now), Entries::new())),
        }
    }
    /// Returns the tick before which nothing is due here.
    pub fn next(&self) -> u64 {
        self.due.tick()
    }
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
    pub fn lock(&self) -> MutexGuard<'_, Inner<P>> {
        self.inner.lock()
    }
    /// Counts a timer that no other thread knows yet. Called under the lock.
    fn counted(&self, owner: u64) {
        self.owners.add(owner);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
    /// Counts a timer that was removed. Called under the lock.
    fn gone(&self, owner: u64) {
        self.count.fetch_sub(1, Ordering::Release);
        self.owners.subtract(owner);
    }
    /// Starts a timer. `owner` is the process that it ends with, or 0.
    pub fn start(&self, key: RefNumbers, owner: u64, deadline: u64, payload: P) {
        let mut g = self.inner.lock();
        let (wheel, entries) = &mut *g;
        let index = entries.insert(key, owner, State::Runs(payload));
        wheel.start(entries, index, deadline);
        self.counted(owner);
        self.due.add(deadline);
    }
    /// Starts a timer that is due at once, and that the caller fires.
    pub fn start_due(&self, key: RefNumbers, owner: u64) -> Ticket {
        let mut g = self.inner.lock();
        let index = g.1.insert(key, owner, State::Due);
        self.counted(owner);
        Ticket { index, key }
    }
    /// Takes the timers due at tick `now`, for the caller to fire. Those that `holds` selects stay
    /// until tick `again`.
    pub fn take_due(
        &self,
        now: u64,
        again: u64,
        mut holds: impl FnMut(&P) -> bool,
        mut take: impl FnMut(Ticket, P),
    ) {
        let mut g = self.inner.lock();
        let (wheel, entries) = &mut *g;
        let mut held = Vec::new();
        wheel.advance(entries, now, |entries, index| {
            let e = &mut entries.entries[index as usize];
            let key = e.key;
            match std::mem::replace(&mut e.state, State::Due) {
                State::Runs(p) if holds(&p) => {
                    e.state = State::Runs(p);
                    held.push(index);
                }
                State::Runs(p) => take(Ticket { index, key }, p),
                other => e.state = other,
            }
        });
        for index in held {
            wheel.start(entries, index, again);
        }
        self.due.set(wheel.next_event());
    }
    /// Performs the effect of a timer that the caller fires, and removes the timer; `None` if it
    /// was stopped. `effect` is called under the lock: it must not take a lock that is held when
    /// timers are started or stopped.
    pub fn arrive<R>(&self, t: Ticket, effect: impl FnOnce() -> R) -> Option<R> {
        let mut g = self.inner.lock();
        let e = &g.1.entries[t.index as usize];
        if !matches!(e.state, State::Due) || e.key != t.key {
            return None;
        }
        let r = effect();
        let (_, owner) = g.1.remove(t.index);
        self.gone(owner);
        Some(r)
    }
    /// Stops a timer. Returns its deadline and payload; both are `None` if it is being fired.
    /// Returns `None` altogether if there is no such timer, or its effect has happened.
    pub fn stop(&self, key: &RefNumbers) -> Option<(Option<u64>, Option<P>)> {
        if self.count() == 0 {
            return None;
        }
        let mut g = self.inner.lock();
        let (wheel, entries) = &mut *g;
        let index = *entries.by_key.get(key)?;
        let deadline = entries.node(index).deadline();
        wheel.cancel(entries, index);
        let (state, owner) = entries.remove(index);
        self.gone(owner);
        Some(match state {
            State::Runs(p) => (Some(deadline), Some(p)),
            _ => (None, None),
        })
    }
    /// Returns the deadline of a timer, `Some(None)` if it is due; `None` if there is no such
    /// timer, or its effect has happened.
    pub fn deadline(&self, key: &RefNumbers) -> Option<Option<u64>> {
        if self.count() == 0 {
            return None;
        }
        let g = self.inner.lock();
        let e = &g.1.entries[*g.1.by_key.get(key)? as usize];
        Some(matches!(e.state, State::Runs(_)).then(|| e.node.deadline()))
    }
    /// Removes the timers of an owner that has ended. Returns their payloads.
    pub fn owner_ends(&self, owner: u64) -> Vec<P> {
        let mut gone = Vec::new();
        let mut g = self.inner.lock();
        let (wheel, entries) = &mut *g;
        while let Some(&index) = entries.by_owner.get(&owner) {
            wheel.cancel(entries, index);
            if let (State::Runs(p), _) = entries.remove(index) {
                gone.push(p);
            }
            self.gone(owner);
        }
        gone
    }
}

/// Bytes of a timer without its payload's own.
pub(super) const fn timer_bytes<P>() -> usize {
    size_of::<Entry<P>>() + size_of::<(RefNumbers, u32)>() + 1
}
