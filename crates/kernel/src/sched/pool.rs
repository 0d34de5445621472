//! The queue of a pool of dirty threads, which take processes one by one. Processes of higher
//! priority go first, as they do in run queues. Threads above a number may be made to take none.
//!
//! A thread that finds the queue empty looks at it for a moment before it sleeps, since the process
//! that it has just served often comes back at once. The thread that went to sleep last is woken
//! first: its stack and its context are still in the processor's caches.
//!
//! A waiting process may leave for a while, to handle signals elsewhere. It keeps its place: the
//! queue still names it, and `out` says that it isn't here. A thread that comes to its place skips
//! it, and the process goes first when it is back.
//!
//! # Invariants
//! - A process that was put is taken once by a thread, or is in `out` and in the hands of the
//!   thread that made it leave.
//! - That thread brings it back by [`Pool::put`], or gives its place up by [`Pool::forget`] before
//!   its number may name another process.
//! - A process with a reason to leave does. It is put under the lock, where `leaves` is asked, and
//!   a thread that gives it a reason calls [`Pool::take_out`] after that. So either the one sees
//!   the reason or the other finds the process.
//! - A process waits while a thread sleeps only if another thread is awake that will look at the
//!   queue under the lock: it was woken for it, looks, or serves a process.

use super::order::{Cause, Queues};
use crate::process::state::Priority;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, constant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The waiting processes.
struct Waiting {
    queue: Queues,
    /// Processes that have left for a while; true if a thread has come to their place.
    out: BTreeMap<u32, bool>,
    /// Threads that sleep, in the order in which they went to sleep.
    asleep: Vec<Arc<Seat>>,
    /// Threads that look at the queue before they sleep: at most one.
    looking: usize,
}

/// The place of a thread in a pool.
pub struct Seat {
    /// Threads are numbered from 0.
    pub index: usize,
    ready: Condvar,
}

impl Waiting {
    fn pop(&mut self) -> Option<u32> {
        loop {
            let c = self.queue.pop()?;
            match self.out.get_mut(&c) {
                None => return Some(c),
                Some(reached) => *reached = true,
            }
        }
    }
}

/// See the module docs.
pub struct Pool {
    waiting: Mutex<Waiting>,
    /// The length of the queue, for threads that look without the lock.
    length: AtomicUsize,
    threads: AtomicUsize,
    /// Index limit of the threads that take processes. Changed under the lock of the queue.
    online: AtomicUsize,
}

impl Pool {
    constant! {
        /// Returns a pool without threads.
        #[allow(clippy::new_without_default)]
        pub fn new() -> Pool {
            let waiting = Waiting {
                queue: Queues::new(),
                out: BTreeMap::new(),
                asleep: Vec::new(),
                looking: 0,
            };
            Pool {
                waiting: Mutex::new(waiting),
                length: AtomicUsize::new(0),
                threads: AtomicUsize::new(0),
                online: AtomicUsize::new(usize::MAX),
            }
        }
    }
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock()
    }
    /// Number of processes that wait for a thread.
    pub fn len(&self) -> usize {
        self.lock().queue.len
    }
    /// Whether no process waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }
    /// Number of threads that take processes.
    pub(crate) fn online(&self) -> usize {
        self.online.load(Ordering::Relaxed).min(self.threads())
    }
    /// Sets how many threads take processes; at least one does.
    pub(crate) fn set_online(&self, n: usize) {
        // Under the lock: a thread that has just seen that it may not take any must hear of it.
        let q = self.lock();
        self.online.store(n.max(1), Ordering::Relaxed);
        for seat in &q.asleep {
            seat.ready.notify_one();
        }
    }
    /// The seat of a new thread.
    pub fn join(&self) -> Arc<Seat> {
        Arc::new(Seat {
            index: self.threads.fetch_add(1, Ordering::Relaxed),
            ready: Condvar::new(),
        })
    }
    /// Wakes the thread that went to sleep last, of those that take processes.
    fn wake(&self, w: &mut Waiting) {
        let online = self.online.load(Ordering::Relaxed);
        if let Some(i) = w.asleep.iter().rposition(|s| s.index < online) {
            w.asleep.remove(i).ready.notify_one();
        }
    }
    /// Queues a process, at its place if it has left. Returns false if it `leaves` at once; the
    /// caller must queue it elsewhere.
    #[must_use]
    pub fn put(&self, cell: u32, prio: Priority, leaves: impl FnOnce() -> bool) -> bool {
        let mut w = self.lock();
        match w.out.remove(&cell) {
            None => w.queue.push(cell, prio, Cause::Spent),
            Some(true) => w.queue.push_first(cell, prio as usize),
            Some(false) => {}
        }
        if leaves() {
            w.out.insert(cell, false);
            return false;
        }
        self.length.store(w.queue.len, Ordering::Relaxed);
        // A thread that looks finds one process by itself.
        if w.queue.len > w.looking {
            self.wake(&mut w);
        }
        true
    }
    /// Makes a waiting process leave for a while. Returns false if it doesn't wait here.
    #[must_use]
    pub fn take_out(&self, cell: u32) -> bool {
        let mut w = self.lock();
        let waits = w.queue.holds(cell) && !w.out.contains_key(&cell);
        if waits {
            w.out.insert(cell, false);
        }
        waits
    }
    /// Gives up the place of a process that has left.
    pub fn forget(&self, cell: u32) {
        let mut w = self.lock();
        if w.out.remove(&cell) == Some(false) {
            w.queue.remove(cell);
        }
    }
    /// Returns the next process, if there is one.
    pub(crate) fn try_take(&self) -> Option<u32> {
        self.lock().pop()
    }
    /// Waits for the next process. `look` is called without the lock before the thread sleeps; it
    /// may ask its argument for a while whether a process has come. `sleeps` gets whether the
    /// thread sleeps.
    pub fn take(
        &self,
        seat: &Arc<Seat>,
        mut look: impl FnMut(&dyn Fn() -> bool),
        sleeps: impl Fn(bool),
    ) -> u32 {
        let mut w = self.lock();
        let mut looked = false;
        loop {
            let online = seat.index < self.online.load(Ordering::Relaxed);
            if online && let Some(c) = w.pop() {
                self.length.store(w.queue.len, Ordering::Relaxed);
                sleeps(false);
                return c;
            }
            if online && !looked && w.looking == 0 {
                looked = true;
                w.looking += 1;
                drop(w);
                look(&|| self.length.load(Ordering::Relaxed) != 0);
                w = self.lock();
                w.looking -= 1;
                // Nobody was woken for what has come meanwhile.
                if seat.index >= self.online.load(Ordering::Relaxed) && w.queue.len != 0 {
                    self.wake(&mut w);
                }
                continue;
            }
            sleeps(true);
            w.asleep.push(seat.clone());
            w = seat.ready.wait(w);
            w.asleep.retain(|s| s.index != seat.index);
        }
    }
}
