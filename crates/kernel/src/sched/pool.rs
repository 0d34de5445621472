//! The queue of a pool of threads that take processes one by one, some of which may be told to take none. Those of higher
//! priority go first, as they do in run queues; nobody is woken here.
//!
//! A process that waits here may leave for a while, to do elsewhere what signals ask of it. It
//! keeps its place: the queue goes on naming it, and `out` says that it isn't here. A thread that
//! comes to its place skips it, and it goes first when it is back.
//!
//! # Invariants
//! * What was put here is taken once by a thread, or is in `out` and in the hands of whoever made
//!   it leave.
//! * Whoever has made it leave brings it back by [`Pool::put`], or gives its place up by
//!   [`Pool::forget`] before its number may name another process.
//! * A process with reason to leave does: it is put under the lock, where `leaves` is asked, and
//!   whoever gives it a reason calls [`Pool::take_out`] after that. So either the one sees the
//!   reason or the other finds the process.

use super::order::{Comes, Queues};
use crate::process::state::Priority;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};
use std::collections::BTreeMap;

/// The processes that wait.
#[derive(Default)]
struct Waiting {
    queue: Queues,
    /// Those that have left for a while; true: a thread has come to their place.
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

/// See the module head. Threads have numbers from 0.
pub struct Pool {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    threads: AtomicUsize,
    /// Threads that take processes: those with lower numbers than this. Changed under the lock of the queue.
    online: AtomicUsize,
}

impl Pool {
    /// A pool without threads.
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
    /// Processes that wait for a thread.
    pub fn len(&self) -> usize {
        self.lock().queue.len
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Threads there are.
    pub fn threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed)
    }
    /// Threads that take processes.
    pub(crate) fn online(&self) -> usize {
        self.online.load(Ordering::Relaxed).min(self.threads())
    }
    /// Has so many threads take processes, one at least.
    pub(crate) fn set_online(&self, n: usize) {
        // Under the lock: a thread that has just seen that it is to take none must hear of it.
        let q = self.lock();
        self.online.store(n.max(1), Ordering::Relaxed);
        self.ready.notify_all();
        drop(q);
    }
    /// Number of a new thread.
    pub fn join(&self) -> usize {
        self.threads.fetch_add(1, Ordering::Relaxed)
    }
    /// Queues a process, at its place if it has left. False: it `leaves` at once, and is the
    /// caller's to queue elsewhere.
    #[must_use]
    pub fn put(&self, cell: u32, prio: Priority, leaves: impl FnOnce() -> bool) -> bool {
        let mut w = self.lock();
        match w.out.remove(&cell) {
            None => w.queue.push(cell, prio, Comes::Spent),
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
            // The one that is woken might be one that takes nothing.
            self.ready.notify_all();
        }
        true
    }
    /// Has a process that waits here leave for a while. False: it doesn't wait here.
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
    /// The next process, if there is one.
    pub(crate) fn try_take(&self) -> Option<u32> {
        self.lock().pop()
    }
    /// The next process for thread `index`, which waits for it. `sleeps` is told whether it does.
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
