//! The state word of a process: one of its owners at a time, in one run queue at a time, and no wake-up is lost.

#[path = "../../runtime/src/process/state.rs"]
#[allow(dead_code)]
mod state;
use purlin_models::{explore, sync};

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use state::{Age, Priority, SIGNALS, State, TIMEOUT, Wait, Wake};
use sync::{AtomicUsize, Ordering};

/// A process, a run queue of one place, and what was sent to it.
struct Cell {
    state: State,
    /// What belongs to the owner: how much it has received, and how many timeouts.
    owned: UnsafeCell<[usize; 2]>,
    /// What was sent so far. The word says when to look: the look itself may be one at an old value.
    sent: AtomicUsize,
    timeouts: AtomicUsize,
    /// Times that it waits to be run.
    queued: Mutex<usize>,
    ready: Condvar,
}

impl Cell {
    fn new() -> Arc<Cell> {
        let c = Arc::new(Cell {
            state: State::free(),
            owned: UnsafeCell::new([0; 2]),
            sent: AtomicUsize::new(0),
            timeouts: AtomicUsize::new(0),
            queued: Mutex::new(0),
            ready: Condvar::new(),
        });
        c.state.publish_queued(Priority::Normal, 0);
        c.enqueue();
        c
    }
    fn enqueue(&self) {
        let mut q = self.queued.lock().expect("is not poisoned");
        *q += 1;
        assert_eq!(*q, 1, "it is in one queue at most");
        self.ready.notify_all();
    }
    fn dequeue(&self) {
        let mut q = self.queued.lock().expect("is not poisoned");
        while *q == 0 {
            q = self.ready.wait(q).expect("is not poisoned");
        }
        *q -= 1;
        drop(q);
        self.state.start_running();
    }
    fn wake(&self, bit: u32) {
        if let Wake::Enqueue(_) = self.state.wake(bit) {
            self.enqueue();
        }
    }
    fn send(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.wake(SIGNALS);
    }
    fn fire(&self) {
        self.timeouts.fetch_add(1, Ordering::Relaxed);
        self.wake(TIMEOUT);
    }
    /// What the owner does: takes what has come. Loom reports a second owner.
    fn work(&self) -> usize {
        self.owned.with_mut(|p| {
            if self.state.take(SIGNALS) {
                // SAFETY: loom checks that nobody else has it.
                unsafe { (*p)[0] = self.sent.load(Ordering::Relaxed) };
            }
            if self.state.take(TIMEOUT) {
                // SAFETY: as above.
                unsafe { (*p)[1] = self.timeouts.load(Ordering::Relaxed) };
            }
            // SAFETY: as above.
            unsafe { (*p).iter().sum() }
        })
    }
    /// A scheduler that runs it until it has got so much.
    fn run_until(&self, all: usize, grew: bool) {
        loop {
            self.dequeue();
            loop {
                if self.work() == all {
                    // Still its owner.
                    return;
                }
                if self.state.try_wait(grew) == Wait::Waiting {
                    break;
                }
            }
        }
    }
}

/// Two senders, the timer service, and one scheduler: what was sent is received, or the model would wait for ever.
#[test]
fn no_wake_up_is_lost() {
    explore("no wake-up is lost", Some(3), || {
        let c = Cell::new();
        let (a, b) = (c.clone(), c.clone());
        let a = thread::spawn(move || a.send());
        let b = thread::spawn(move || b.fire());
        c.send();
        c.run_until(3, false);
        a.join().expect("runs");
        b.join().expect("runs");
        assert_eq!(*c.queued.lock().expect("is not poisoned"), 0);
    });
}

/// Two schedulers pass it to and fro through the queue while it is sent to.
#[test]
fn it_has_one_owner_at_a_time() {
    explore("it has one owner at a time", Some(3), || {
        let c = Cell::new();
        let (a, b) = (c.clone(), c.clone());
        let sender = thread::spawn(move || a.send());
        let slice = thread::spawn(move || {
            b.dequeue();
            let got = b.work();
            // Its time is up, or it has nothing to do.
            if b.state.try_wait(false) == Wait::Awake {
                let _ = b.state.requeue();
                b.enqueue();
            }
            got
        });
        sender.join().expect("runs");
        if slice.join().expect("runs") == 0 {
            c.run_until(1, false);
        }
    });
}

/// Upkeep takes a process that waits, and gives it back, while it is sent to.
#[test]
fn upkeep_gives_it_back() {
    explore("upkeep gives it back", Some(3), || {
        let c = Cell::new();
        let (a, b) = (c.clone(), c.clone());
        let sender = thread::spawn(move || a.send());
        let upkeep = thread::spawn(move || {
            for _ in 0..2 {
                if b.state.age() == Age::Owned {
                    b.owned.with_mut(|_| ());
                    if b.state.try_wait(false) == Wait::Awake {
                        let _ = b.state.requeue();
                        b.enqueue();
                    }
                }
            }
        });
        c.run_until(1, true);
        sender.join().expect("runs");
        upkeep.join().expect("runs");
    });
}

/// Somebody who has its pid sends to it while it is being made.
#[test]
fn what_comes_before_it_is_published_counts() {
    explore("what comes before it is published counts", None, || {
        let c = Arc::new(Cell {
            state: State::free(),
            owned: UnsafeCell::new([0; 2]),
            sent: AtomicUsize::new(0),
            timeouts: AtomicUsize::new(0),
            queued: Mutex::new(0),
            ready: Condvar::new(),
        });
        let a = c.clone();
        let sender = thread::spawn(move || a.send());
        c.state.publish_queued(Priority::Low, 0);
        c.enqueue();
        c.run_until(1, false);
        sender.join().expect("runs");
    });
}
