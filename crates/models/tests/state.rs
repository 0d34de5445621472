//! Models the state word of a process: it has one owner at a time, is in one run queue at a time,
//! and no wake-up is lost.

#[path = "../../kernel/src/message/queue.rs"]
#[allow(dead_code)]
mod queue;
#[path = "../../kernel/src/process/state.rs"]
#[allow(dead_code)]
mod state;
use purlin_models::{explore, sync};

use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use queue::{InTransit, Link};
use state::{Age, Priority, State, Timeout, Wait, Wake};

/// A process, its queue of signals, its timers, and a run queue of one place.
struct Cell {
    state: State,
    /// The owner's part: number of received signals, and of timeouts.
    owned: UnsafeCell<[usize; 2]>,
    in_transit: InTransit,
    /// Timers fire under the lock of their shard.
    timeouts: Mutex<usize>,
    /// How often it is queued.
    queued: Mutex<usize>,
    ready: Condvar,
}

impl Cell {
    /// Makes the cell of a process that is not published yet.
    fn reserved() -> Arc<Cell> {
        let c = Cell {
            state: State::free(),
            owned: UnsafeCell::new([0; 2]),
            in_transit: InTransit::closed(),
            timeouts: Mutex::new(0),
            queued: Mutex::new(0),
            ready: Condvar::new(),
        };
        c.in_transit.open();
        Arc::new(c)
    }
    fn new() -> Arc<Cell> {
        let c = Cell::reserved();
        c.state.publish_queued(Priority::Normal, false);
        c.enqueue();
        c
    }
    fn enqueue(&self) {
        let mut q = self.queued.lock().expect("is not poisoned");
        *q += 1;
        assert_eq!(*q, 1, "it is in one queue at most");
        self.ready.notify_all();
    }
    /// Becomes the owner; returns whether signals have arrived.
    fn dequeue(&self) -> bool {
        let mut q = self.queued.lock().expect("is not poisoned");
        while *q == 0 {
            q = self.ready.wait(q).expect("is not poisoned");
        }
        *q -= 1;
        drop(q);
        self.state.start_fetching().signals
    }
    fn wake(&self, w: Wake) {
        if let Wake::Enqueue(_) = w {
            self.enqueue();
        }
    }
    fn send(&self) {
        let s = Box::into_raw(Box::new(Link {
            next: std::ptr::null_mut(),
        }));
        // SAFETY: a fresh signal, which the queue owns from now on.
        assert!(unsafe { self.in_transit.push(s, || true) }.is_ok());
        self.wake(self.state.wake());
    }
    /// Empties the queue and returns the number of signals.
    fn take(&self) -> usize {
        let mut n = 0;
        let mut s = self.in_transit.take();
        while !s.is_null() {
            // SAFETY: made by `send`, and taken once.
            s = unsafe { Box::from_raw(s).next };
            n += 1;
        }
        n
    }
    fn fire(&self) {
        let mut t = self.timeouts.lock().expect("is not poisoned");
        *t += 1;
        self.wake(self.state.wake_by_timeout());
    }
    /// The owner's time slice: takes the signals that have arrived. Loom reports a second owner.
    fn work(&self, signals: bool) -> usize {
        self.owned.with_mut(|p| {
            if signals || self.state.take_signals() {
                let mut s = self.in_transit.take();
                while !s.is_null() {
                    // SAFETY: made by `send`, and taken once. Loom checks that nobody else has the
                    // count.
                    unsafe {
                        s = Box::from_raw(s).next;
                        (*p)[0] += 1;
                    }
                }
            }
            if self.state.take_timeout() != Timeout::None {
                // SAFETY: as above.
                unsafe { (*p)[1] = *self.timeouts.lock().expect("is not poisoned") };
            }
            // SAFETY: as above.
            unsafe { (*p).iter().sum() }
        })
    }
    /// A scheduler that runs the process until it has received `all`.
    fn run_until(&self, all: usize, grew: bool) {
        loop {
            let mut signals = self.dequeue();
            loop {
                if self.work(std::mem::take(&mut signals)) == all {
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

/// Two senders, the timer service, and one scheduler: everything that was sent is received, or the
/// model would wait for ever.
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

/// A timeout is only reported when all messages that were sent before it have been looked at.
#[test]
fn a_message_before_a_timeout_is_looked_at() {
    explore("a message before a timeout is looked at", Some(3), || {
        let c = Cell::new();
        let (sent, before) = (Arc::new(Mutex::new(false)), Arc::new(Mutex::new(false)));
        let (a, s) = (c.clone(), sent.clone());
        let a = thread::spawn(move || {
            a.send();
            *s.lock().expect("is not poisoned") = true;
        });
        let (b, f) = (c.clone(), before.clone());
        let b = thread::spawn(move || {
            *f.lock().expect("is not poisoned") = *sent.lock().expect("is not poisoned");
            b.fire();
        });
        'all: loop {
            let mut signals = c.dequeue();
            loop {
                let came = match std::mem::take(&mut signals) || c.state.take_signals() {
                    true => c.take(),
                    false => 0,
                };
                match c.state.take_timeout() {
                    Timeout::None => {}
                    Timeout::Fired => break 'all,
                    Timeout::Over => {
                        let before = *before.lock().expect("is not poisoned");
                        assert!(came == 0 || !before, "it has not been looked at");
                        break 'all;
                    }
                }
                if c.state.try_wait(false) == Wait::Waiting {
                    break;
                }
            }
        }
        a.join().expect("runs");
        b.join().expect("runs");
        c.take();
    });
}

/// A sender that finds the bit set writes nothing. Its signal is taken nevertheless, even if the
/// receiver has just emptied the queue without seeing it when it clears the bit.
#[test]
fn a_push_while_the_bit_is_set_is_taken() {
    explore("a push while the bit is set is taken", Some(3), || {
        let c = Cell::new();
        let (a, b) = (c.clone(), c.clone());
        let a = thread::spawn(move || a.send());
        let b = thread::spawn(move || b.send());
        c.send();
        c.run_until(3, false);
        a.join().expect("runs");
        b.join().expect("runs");
    });
}

/// Two schedulers pass the process to and fro through the queue while others send to it.
#[test]
fn it_has_one_owner_at_a_time() {
    explore("it has one owner at a time", Some(3), || {
        let c = Cell::new();
        let (a, b) = (c.clone(), c.clone());
        let sender = thread::spawn(move || a.send());
        let slice = thread::spawn(move || {
            let signals = b.dequeue();
            let got = b.work(signals);
            // Its time slice is over, or it waits for a message.
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

/// Upkeep takes a waiting process, and gives it back, while others send to it.
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

/// Another process sends to it while it is being made.
#[test]
fn a_signal_before_publication_counts() {
    explore("a signal before publication counts", None, || {
        let c = Cell::reserved();
        let a = c.clone();
        let sender = thread::spawn(move || a.send());
        c.state.publish_queued(Priority::Low, false);
        c.enqueue();
        c.run_until(1, false);
        sender.join().expect("runs");
    });
}
