//! Deferred work: work that a scheduler does between two processes because it could not be done
//! where it became due, under a lock or in a collection.
//!
//! Work that becomes due on a scheduler is done there, after the time slice of the running process.
//! Work that becomes due on any other thread is done by a separate thread, which counts as a
//! scheduler.
//!
//! # Orderings
//! - [`DUE`] is incremented before the work is queued and decremented after it is done, both with
//!   `AcqRel`. [`all_done`] loads it with `Acquire`: a thread that reads 0 sees all effects of the
//!   work that was done before.
//! - [`on_each`] pushes under the lock of [`EACH`], then stores [`ROUNDS`] with `Release`. [`work`]
//!   loads it with `Acquire` and takes the lock before it reads the list, so a thread that sees the
//!   number finds the entry. A thread that misses the store finds it after its next process. No
//!   thread waits for that to happen at a particular time.
//! - [`THREADS`] is `Relaxed`, but only accessed under the lock of `EACH`.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Number of pieces of work that are due and not done yet.
static DUE: AtomicUsize = AtomicUsize::new(0);

/// Whether nothing is due on any thread.
pub fn all_done() -> bool {
    DUE.load(Ordering::Acquire) == 0
}

/// Stack of the thread that works for others: it calls destructors of libraries.
const STACK_BYTES: usize = 1 << 20;

/// A piece of work.
pub type Work = Box<dyn FnOnce() + Send>;

thread_local! {
    static HERE: RefCell<VecDeque<Work>> = const { RefCell::new(VecDeque::new()) };
    /// Whether `HERE` has any work.
    static ANY: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is a scheduler, which does its own work.
    static SCHEDULER: Cell<bool> = const { Cell::new(false) };
    /// Number of entries of `EACH` that this thread has done.
    static SEEN: Cell<usize> = const { Cell::new(0) };
    /// Whether this is the thread that works for others.
    static SERVES: Cell<bool> = const { Cell::new(false) };
}

struct Service {
    due: Mutex<VecDeque<Work>>,
    some: Condvar,
}

static SERVICE: OnceLock<Service> = OnceLock::new();

fn service() -> &'static Service {
    SERVICE.get_or_init(|| Service {
        due: Mutex::default(),
        some: Condvar::new(),
    })
}

/// Marks this thread as a scheduler, which calls [`work`] between two processes.
pub fn begin_scheduler() {
    SCHEDULER.set(true);
    begin_thread();
}

/// Marks this thread as one that runs processes and calls [`work`] between two of them.
pub fn begin_thread() {
    let all = each();
    THREADS.fetch_add(1, Ordering::Relaxed);
    SEEN.set(all.len());
}

/// Work that each thread that runs processes does once, and how many have yet to do it.
struct Each {
    work: Option<Arc<dyn Fn() + Send + Sync>>,
    left: usize,
}

static EACH: Mutex<Vec<Each>> = Mutex::new(Vec::new());
/// Length of [`EACH`].
static ROUNDS: AtomicUsize = AtomicUsize::new(0);
/// Number of threads that run processes.
static THREADS: AtomicUsize = AtomicUsize::new(0);

fn each() -> MutexGuard<'static, Vec<Each>> {
    EACH.lock()
}

/// Makes each thread that runs processes do `work` once, after its current process.
pub fn on_each(work: Arc<dyn Fn() + Send + Sync>) {
    let mut all = each();
    let left = THREADS.load(Ordering::Relaxed);
    all.push(Each {
        work: Some(work).filter(|_| left > 0),
        left,
    });
    ROUNDS.store(all.len(), Ordering::Release);
}

#[cold]
#[inline(never)]
fn rounds() {
    loop {
        let i = SEEN.get();
        let mut all = each();
        let Some(e) = all.get_mut(i) else { return };
        SEEN.set(i + 1);
        let work = e.work.clone();
        e.left = e.left.saturating_sub(1);
        let last = match e.left {
            0 => e.work.take(),
            _ => None,
        };
        drop(all);
        if let Some(w) = work {
            w();
        }
        drop(last);
    }
}

/// Whether this thread does deferred work. Schedulers do.
pub fn is_worker() -> bool {
    SCHEDULER.get() || SERVES.get()
}

/// Defers `work`. It is done soon, but not within this call.
pub fn add(work: Work) {
    DUE.fetch_add(1, Ordering::AcqRel);
    if SCHEDULER.get() || crate::os::single::on() {
        HERE.with_borrow_mut(|h| h.push_back(work));
        ANY.set(true);
        return;
    }
    let s = service();
    s.due.lock().push_back(work);
    s.some.notify_one();
    start();
}

/// Starts the thread that works for others. Otherwise the first work for it does so.
pub fn start() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        crate::os::thread::start("later", STACK_BYTES, serve);
    });
}

fn serve() {
    crate::affinity::begin_unbound();
    SERVES.set(true);
    let s = service();
    loop {
        let mut due = s.due.lock();
        let work = loop {
            match due.pop_front() {
                Some(w) => break w,
                None => due = s.some.wait(due),
            }
        };
        drop(due);
        work();
        DUE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Does the work that is due on this scheduler.
#[inline]
pub fn work() {
    if ANY.get() {
        work_through();
    }
    if ROUNDS.load(Ordering::Acquire) != SEEN.get() {
        rounds();
    }
}

#[cold]
#[inline(never)]
fn work_through() {
    ANY.set(false);
    while let Some(w) = HERE.with_borrow_mut(|h| h.pop_front()) {
        w();
        DUE.fetch_sub(1, Ordering::AcqRel);
    }
}
