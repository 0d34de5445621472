//! Processes with a thread of their own: `spawn_opt(Fun, [{thread, own}])`, for work that maps one
//! to one to threads by nature. Such a process never enters a run queue: a wake-up goes to its
//! thread. Dirty natives are called on that thread too. Exits, links, messages and the rest work as
//! for any process.
//!
//! # Orderings
//! `over` is stored with release before the bell rings under the lock `ready`. The thread loads it
//! with acquire after it has held that lock, so a thread that was rung for the end finds it set.

use crate::sync::{Condvar, Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The thread of a process, as others see it.
#[derive(Default)]
pub(crate) struct Thread {
    ready: Mutex<bool>,
    bell: Condvar,
    /// The process has ended.
    over: AtomicBool,
}

impl Thread {
    /// Waits until the process is to run. Returns false if it has ended.
    pub(crate) fn wait(&self) -> bool {
        if self.over.load(Ordering::Acquire) {
            return false;
        }
        let mut ready = self.ready.lock();
        while !*ready {
            ready = self.bell.wait(ready);
        }
        *ready = false;
        drop(ready);
        super::rest_if_stopped();
        !self.over.load(Ordering::Acquire)
    }
    fn ring(&self) {
        *self.ready.lock() = true;
        self.bell.notify_one();
    }
}

/// Threads by the index of the process's cell.
static THREADS: RwLock<Option<HashMap<u32, Arc<Thread>>>> = RwLock::new(None);

fn thread(cell: u32) -> Option<Arc<Thread>> {
    let all = THREADS.read();
    all.as_ref()?.get(&cell).cloned()
}

/// Number of threads that belong to a process.
pub fn count() -> usize {
    let all = THREADS.read();
    all.as_ref().map_or(0, |m| m.len())
}

/// Starts the thread of a process that is not published yet. Returns false if the system has none
/// left.
pub fn start(cell: u32) -> bool {
    let Some(threads) = super::THREADS.get() else {
        return false;
    };
    let t = Arc::new(Thread::default());
    let mine = t.clone();
    let made = std::thread::Builder::new()
        .name(format!("own{cell}"))
        .stack_size(super::stack_size())
        .spawn(move || (threads.own)(cell, &mine));
    if made.is_err() {
        return false;
    }
    let mut all = THREADS.write();
    all.get_or_insert_default().insert(cell, t);
    true
}

/// Wakes the thread of the process in that cell, whose `QUEUED` bit the caller has set.
pub(crate) fn ring(cell: u32) {
    if let Some(t) = thread(cell) {
        t.ring();
    }
}

/// Ends the thread of the process in that cell, which has ended. Must be called before the cell is
/// freed.
pub fn ended(cell: u32) {
    let mut all = THREADS.write();
    if let Some(t) = all.as_mut().and_then(|m| m.remove(&cell)) {
        t.over.store(true, Ordering::Release);
        t.ring();
    }
}
