//! Work that a scheduler does between two processes: what must not be done where it turned out to be due, since a process was
//! being collected there, or a lock held.
//!
//! Work that is due on a scheduler is done there, as soon as the process that it runs has had its time slice. Work that is due on
//! any other thread is done by a thread that does nothing else, and counts as a scheduler.

use crate::sync::{Condvar, Mutex, MutexGuard};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The work that is due and not done yet.
static DUE: AtomicUsize = AtomicUsize::new(0);

/// Whether nothing is due on any thread.
pub fn all_done() -> bool {
    DUE.load(Ordering::Acquire) == 0
}

/// The stack of the thread that works for others: destructors of libraries are called there.
const STACK_BYTES: usize = 1 << 20;

/// Something to be done.
pub type Work = Box<dyn FnOnce() + Send>;

thread_local! {
    static HERE: RefCell<VecDeque<Work>> = const { RefCell::new(VecDeque::new()) };
    /// Whether `HERE` has any.
    static ANY: Cell<bool> = const { Cell::new(false) };
    /// This thread is a scheduler: what is due here is done here.
    static SCHEDULER: Cell<bool> = const { Cell::new(false) };
    /// How many of `EACH` this thread has done.
    static SEEN: Cell<usize> = const { Cell::new(0) };
    /// This is the thread that works for others.
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

/// This thread is a scheduler, which calls [`work`] between two processes.
pub fn begin_scheduler() {
    SCHEDULER.set(true);
    begin_thread();
}

/// This thread runs processes, and calls [`work`] between two of them.
pub fn begin_thread() {
    let all = each();
    THREADS.fetch_add(1, Ordering::Relaxed);
    SEEN.set(all.len());
}

/// The work that each thread that runs processes is to do once, and how many have not done it.
struct Each {
    work: Option<Arc<dyn Fn() + Send + Sync>>,
    left: usize,
}

static EACH: Mutex<Vec<Each>> = Mutex::new(Vec::new());
/// How many there are of [`EACH`].
static ROUNDS: AtomicUsize = AtomicUsize::new(0);
/// Threads that run processes.
static THREADS: AtomicUsize = AtomicUsize::new(0);

fn each() -> MutexGuard<'static, Vec<Each>> {
    EACH.lock()
}

/// Has each thread that runs processes do `work` once, when it next has run one.
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

/// Whether this thread does such work: schedulers do.
pub fn is_worker() -> bool {
    SCHEDULER.get() || SERVES.get()
}

/// Has `work` done soon, not by the caller.
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

/// Starts the thread that works for others. The first who has work for it does so otherwise.
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

/// Does what is due on this scheduler.
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
