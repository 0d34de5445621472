//! The queue of a pool of threads that take processes one by one, some of which may be told to take none. Those of higher
//! priority go first, as they do in run queues; nobody is woken here.

use super::order::{Comes, Queues};
use crate::process::state::Priority;
use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering};

/// See the module head. Threads have numbers from 0.
pub struct Pool {
    queue: Mutex<Queues>,
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
            queue: Mutex::new(Queues::default()),
            ready: Condvar::new(),
            threads: AtomicUsize::new(0),
            online: AtomicUsize::new(usize::MAX),
        }
    }
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queue.lock()
    }
    /// Processes that wait for a thread.
    pub fn len(&self) -> usize {
        self.lock().len
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
    /// Queues a process.
    pub fn put(&self, cell: u32, prio: Priority) {
        let mut q = self.lock();
        q.push(cell, prio, Comes::Spent);
        if self.online.load(Ordering::Relaxed) >= self.threads() {
            self.ready.notify_one();
        } else {
            // The one that is woken might be one that takes nothing.
            self.ready.notify_all();
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
