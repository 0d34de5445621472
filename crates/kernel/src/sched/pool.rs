//! The queue of a pool of threads that take processes one by one. Some of the threads may be told
//! to take none. Processes of higher priority go first, as in run queues. Unlike schedulers, the
//! threads wait at a condition variable.
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

use super::order::{Cause, Queues};
use crate::process::state::Priority;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use std::collections::BTreeMap;

/// The waiting processes.
#[derive(Default)]
struct Waiting {
    queue: Queues,
    /// Processes that have left for a while; true if a thread has come to their place.
    out: BTreeMap<u32, bool>,
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

/// See the module docs. Threads have numbers from 0.
pub struct Pool {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    threads: AtomicUsize,
    /// Index limit of the threads that take processes. Changed under the lock of the queue.
    online: AtomicUsize,
}

impl Pool {
    /// Returns a pool without threads.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Pool {
        Pool {
            waiting: Mutex::new(Waiting::default()),
            ready: Condvar::new(),
            threads: AtomicUsize::new(0),
            online: AtomicUsize::new(usize::MAX),
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
    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }
    /// Number of threads that take processes.
    pub(crate) fn online(&self) -> usize {
        self.online.load(Ordering::Relaxed).min(self.threads())
    }
    /// Sets how many threads take processes, at least one.
    pub(crate) fn set_online(&self, n: usize) {
        // Under the lock: a thread that has just seen that it may not take any must be notified.
        let q = self.lock();
        self.online.store(n.max(1), Ordering::Relaxed);
        self.ready.notify_all();
        drop(q);
    }
    /// Returns the number of a new thread.
    pub fn join(&self) -> usize {
        self.threads.fetch_add(1, Ordering::Relaxed)
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
        if self.online.load(Ordering::Relaxed) >= self.threads() {
            self.ready.notify_one();
        } else {
            // A woken thread might be one that takes nothing.
            self.ready.notify_all();
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
    /// Returns the next process for thread `index`, and waits for it. `sleeps` is called before and
    /// after a wait.
    pub fn take(&self, index: usize, sleeps: impl Fn(bool)) -> u32 {
        let mut q = self.lock();
        loop {
            if index < self.online.load(Ordering::Relaxed)
                && let Some(c) = q.pop()
            {
                sleeps(false);
                return c;
            }
            sleeps(true);
            q = self.ready.wait(q);
        }
    }
}
