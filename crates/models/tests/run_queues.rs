//! Models run queues, sleeping schedulers, the pools of dirty threads, and the thread that parks:
//! every queued process runs, once. A lost wake-up leaves the model waiting for ever, which loom
//! reports.

#[path = "../../kernel/src/poll/duty.rs"]
#[allow(dead_code)]
mod duty;
#[path = "../../kernel/src/sched/order.rs"]
#[allow(dead_code)]
mod order;
#[path = "../../kernel/src/sched/parker.rs"]
#[allow(dead_code)]
mod parker;
#[path = "../../kernel/src/poll/place.rs"]
mod place;
#[path = "../../kernel/src/sched/pool.rs"]
#[allow(dead_code)]
mod pool;
#[path = "../../kernel/src/sched/queues.rs"]
#[allow(dead_code)]
mod queues;
#[path = "../../kernel/src/process/state.rs"]
#[allow(dead_code)]
pub mod state;
/// The module where the files under test look for it.
mod process {
    pub use crate::state;
}
use purlin_models::{explore, sync};

use duty::Duty;
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use parker::Parker;
use place::Place;
use pool::Pool;
use queues::{Cause, Hooks, Rest, RunQueues, Seen};
use state::{Priority, State, Wake};
use sync::{AtomicUsize, Ordering};

/// Processes from this number on, plus the index of a scheduler, end the scheduler to which they
/// are bound.
const LAST: u32 = 100;

/// The system's set of polled descriptors: it reports a ready one to any one waiter.
#[derive(Default)]
struct Set {
    /// The scheduler that polls beside the poll thread must end its wait, or its next.
    rung: bool,
    /// A descriptor is ready, which wakes process 0.
    ready: bool,
    /// The poll thread must end.
    over: bool,
}

/// The place where schedulers may poll, if they may at all.
struct Here {
    outside: bool,
    place: Place,
    duty: Duty,
    set: Mutex<Set>,
    bell: Condvar,
}

impl Here {
    fn new(outside: bool) -> Here {
        Here {
            outside,
            place: Place::new(),
            duty: Duty::new(),
            set: Mutex::default(),
            bell: Condvar::new(),
        }
    }
    /// Events are frequent: schedulers poll between processes, and the poll thread naps.
    fn frequent() -> Here {
        let here = Here::new(true);
        here.duty.set_frequent(true);
        here
    }
    /// Polls without waiting. Returns whether the descriptor is ready.
    fn glance(&self) -> bool {
        std::mem::take(&mut self.set.lock().expect("is not poisoned").ready)
    }
    fn take_place(&self, me: usize) -> bool {
        let took = self.place.take(me);
        if took {
            self.duty.took(me);
        }
        took
    }
    fn tell(&self, what: impl Fn(&mut Set)) {
        what(&mut self.set.lock().expect("is not poisoned"));
        self.bell.notify_all();
    }
    /// Waits for one event, as the poll thread or `beside` it.
    fn wait(&self, beside: bool) -> Set {
        let mut s = self.set.lock().expect("is not poisoned");
        loop {
            let mut got = Set::default();
            // One at a time: the other waiter gets what is left, or a later call does.
            if std::mem::take(&mut s.ready) {
                got.ready = true;
                return got;
            }
            if beside && std::mem::take(&mut s.rung) {
                got.rung = true;
                return got;
            }
            if s.over && !beside {
                got.over = true;
                return got;
            }
            s = self.bell.wait(s).expect("is not poisoned");
        }
    }
}

impl Hooks for Here {
    fn bound(&self, cell: u32) -> usize {
        match cell.checked_sub(LAST) {
            Some(i) => i as usize + 1,
            None => 0,
        }
    }
    fn rests(&self, _: usize, _: usize) {}
    fn sleeps(&self, _: bool) {}
    fn works(&self, _: usize, _: usize) {}
    type Found = bool;
    fn may_wait_outside(&self, i: usize, awake: impl Fn(usize) -> bool) -> bool {
        let leaves = |k: usize| awake(k - 1);
        self.outside && !self.duty.leaves_to(i + 1).is_some_and(leaves) && self.take_place(i + 1)
    }
    fn wait_outside(&self) -> bool {
        let got = self.wait(true);
        self.place.leave();
        got.ready
    }
    fn ring(&self) {
        if self.place.waiter().is_some() {
            self.tell(|s| s.rung = true);
        }
    }
}

/// Number of unsuccessful looks at the only process of another scheduler before it is left there.
const ROUNDS: u32 = 1;

struct World {
    q: RunQueues<Here>,
    /// How often each process has run.
    ran: Mutex<Vec<usize>>,
    changed: Condvar,
}

impl World {
    /// Makes a world of `schedulers` schedulers, for `all` processes.
    fn new(schedulers: usize, all: usize) -> Arc<World> {
        World::with(schedulers, all, Here::new(false))
    }
    fn with(schedulers: usize, all: usize, here: Here) -> Arc<World> {
        let w = World {
            q: RunQueues::new(schedulers, here),
            ran: Mutex::new(vec![0; all]),
            changed: Condvar::new(),
        };
        w.q.set_online(schedulers, |_| true);
        Arc::new(w)
    }
    fn run(&self, cell: u32) {
        let mut ran = self.ran.lock().expect("is not poisoned");
        ran[cell as usize] += 1;
        assert_eq!(ran[cell as usize], 1, "it runs once");
        self.changed.notify_all();
    }
    /// As in `sched::next_or_park`.
    fn next(&self, i: usize) -> u32 {
        let mut rounds = ROUNDS;
        let mut rested = false;
        let c = loop {
            if let Some(c) = self.q.next(i, None) {
                break c;
            }
            let here = &self.q.hooks;
            if here.duty.is_frequent() && i < self.q.online() && here.take_place(i + 1) {
                let ready = here.glance();
                here.place.leave();
                if ready {
                    self.q.put(0, Priority::Normal, Cause::Woken, i + 1);
                    continue;
                }
            }
            let glanced = self.q.glance(i, None).map(Seen::for_long);
            rested = true;
            match self.q.rest(i, glanced, rounds > 0) {
                Rest::Found(c) => break c,
                Rest::Again => rounds -= 1,
                Rest::Outside(ready) => {
                    if ready {
                        self.q.put(0, Priority::Normal, Cause::Woken, i + 1);
                    }
                    rounds = ROUNDS;
                }
                Rest::Woken => rounds = ROUNDS,
            }
        };
        if rested {
            self.q.wake_another(i);
        }
        c
    }
    /// Runs processes until it is ended.
    fn work(&self, i: usize) {
        loop {
            match self.next(i) {
                LAST.. => return,
                c => self.run(c),
            }
        }
    }
    /// Waits until those processes have run, like a process that computes for long.
    fn busy_until(&self, cells: &[u32]) {
        let mut ran = self.ran.lock().expect("is not poisoned");
        while cells.iter().any(|&c| ran[c as usize] == 0) {
            ran = self.changed.wait(ran).expect("is not poisoned");
        }
    }
    fn busy_until_two(&self) {
        let mut ran = self.ran.lock().expect("is not poisoned");
        while ran.iter().sum::<usize>() < 2 {
            ran = self.changed.wait(ran).expect("is not poisoned");
        }
    }
    /// Ends schedulers when everything has run.
    fn end(&self, schedulers: Vec<(usize, thread::JoinHandle<()>)>) {
        for (i, t) in schedulers {
            self.q
                .put(LAST + i as u32, Priority::Normal, Cause::Woken, 0);
            t.join().expect("runs");
        }
    }
}

/// Starts a scheduler that runs processes until it is ended.
fn scheduler(w: &Arc<World>, i: usize) -> thread::JoinHandle<()> {
    let w = w.clone();
    thread::spawn(move || w.work(i))
}

/// Starts the poll thread, which runs until it is made to end.
fn poll(w: &Arc<World>) -> thread::JoinHandle<()> {
    let w = w.clone();
    thread::spawn(move || {
        let here = &w.q.hooks;
        loop {
            let got = here.wait(false);
            if got.over {
                return;
            }
            if got.ready {
                w.q.put(0, Priority::Normal, Cause::Woken, 0);
            }
        }
    })
}

/// A descriptor becomes ready and a process is woken, while schedulers are about to wait for
/// either, one of them beside the poll thread. Both wake-ups take effect, whichever waiter the
/// system notifies.
#[test]
fn a_polling_scheduler_is_woken() {
    for schedulers in 1..3 {
        explore("a polling scheduler is woken", Some(2), move || {
            let w = World::with(schedulers, 2, Here::new(true));
            let poll = poll(&w);
            let all = (0..schedulers).map(|i| (i, scheduler(&w, i))).collect();
            w.q.hooks.tell(|s| s.ready = true);
            w.q.put(1, Priority::Normal, Cause::Woken, 0);
            w.busy_until(&[0, 1]);
            w.end(all);
            w.q.hooks.tell(|s| s.over = true);
            poll.join().expect("runs");
        });
    }
}

/// A descriptor becomes ready and a process is woken while the poll thread naps. Each of two
/// schedulers may leave the waiting to the other.
#[test]
fn schedulers_leave_the_waiting_to_one_that_polls() {
    for schedulers in 1..3 {
        explore("schedulers leave the waiting", Some(2), move || {
            let w = World::with(schedulers, 2, Here::frequent());
            let all = (0..schedulers).map(|i| (i, scheduler(&w, i))).collect();
            w.q.hooks.tell(|s| s.ready = true);
            w.q.put(1, Priority::Normal, Cause::Woken, 0);
            w.busy_until(&[0, 1]);
            w.end(all);
        });
    }
}

/// The same while one of the two goes offline, and comes back.
#[test]
fn an_offline_scheduler_leaves_the_waiting() {
    explore("an offline scheduler leaves the waiting", Some(2), || {
        let w = World::with(2, 2, Here::frequent());
        let all = (0..2).map(|i| (i, scheduler(&w, i))).collect();
        w.q.set_online(1, |_| true);
        w.q.hooks.tell(|s| s.ready = true);
        w.q.put(1, Priority::Normal, Cause::Woken, 0);
        w.busy_until(&[0, 1]);
        w.q.set_online(2, |_| true);
        w.end(all);
    });
}

/// A scheduler to which the other may have left the waiting runs a process that computes until the
/// descriptor has been reported. The poll thread polls after its nap.
#[test]
fn the_poll_thread_stands_in_for_a_busy_scheduler() {
    explore("the poll thread stands in", Some(2), || {
        let w = World::with(2, 2, Here::frequent());
        let other = scheduler(&w, 1);
        let here = &w.q.hooks;
        if here.take_place(1) {
            here.place.leave();
        }
        w.q.put(1, Priority::Normal, Cause::Woken, 1);
        if let Some(c) = w.q.next(0, None) {
            w.run(c);
        }
        let v = w.clone();
        let poll = thread::spawn(move || {
            v.q.hooks.tell(|s| s.ready = true);
            if v.q.hooks.glance() {
                v.q.put(0, Priority::Normal, Cause::Woken, 0);
            }
        });
        poll.join().expect("runs");
        // Its time slice ends. What was queued behind it may have been left to this scheduler.
        while let Some(c) = w.q.next(0, None) {
            w.run(c);
        }
        w.busy_until(&[0, 1]);
        w.end(vec![(1, other)]);
    });
}

/// A scheduler that may poll is taken offline.
#[test]
fn an_offline_scheduler_stops_polling() {
    explore("an offline scheduler stops polling", Some(2), || {
        let w = World::with(2, 2, Here::new(true));
        let poll = poll(&w);
        let all = (0..2).map(|i| (i, scheduler(&w, i))).collect();
        w.q.set_online(1, |_| true);
        w.q.hooks.tell(|s| s.ready = true);
        w.q.put(1, Priority::Normal, Cause::Woken, 0);
        w.busy_until(&[0, 1]);
        w.q.set_online(2, |_| true);
        w.end(all);
        w.q.hooks.tell(|s| s.over = true);
        poll.join().expect("runs");
    });
}

/// A thread that runs no processes, such as that of the timers, wakes two while both schedulers may
/// be about to sleep.
#[test]
fn processes_queued_from_outside_run() {
    explore("processes queued from outside run", Some(3), || {
        let w = World::new(2, 2);
        let schedulers = (0..2).map(|i| (i, scheduler(&w, i))).collect();
        w.q.put(0, Priority::Normal, Cause::Woken, 0);
        w.q.put(1, Priority::High, Cause::Woken, 0);
        w.busy_until(&[0, 1]);
        w.end(schedulers);
    });
}

/// Processes are queued in order from outside, while the schedulers may be about to sleep. The
/// first of them runs for long, and others are stolen meanwhile.
#[test]
fn processes_queued_in_order_run() {
    explore("processes queued in order run", Some(2), || {
        let w = World::new(2, 3);
        let other = scheduler(&w, 1);
        let first = {
            let w = w.clone();
            thread::spawn(move || {
                let c = w.next(0);
                w.q.let_others_steal(1);
                if c < LAST {
                    w.run(c);
                    w.work(0);
                }
            })
        };
        let put = |cell, home| {
            w.q.put_in_order(cell, Priority::Normal, Cause::Woken, home, 0)
        };
        let home = put(0, 0);
        let home = put(1, home);
        put(2, home);
        w.busy_until(&[0, 1, 2]);
        w.end(vec![(0, first), (1, other)]);
    });
}

/// A scheduler's process wakes two others, then computes until one of them has run, on the other
/// scheduler.
#[test]
fn a_process_behind_a_long_one_is_stolen() {
    explore("a process behind a long one is stolen", Some(3), || {
        let w = World::new(2, 2);
        let other = scheduler(&w, 1);
        w.q.put(0, Priority::Normal, Cause::Woken, 1);
        w.q.put(1, Priority::Low, Cause::Spent, 1);
        w.busy_until(&[0]);
        while let Some(c) = w.q.next(0, None) {
            w.run(c);
        }
        w.busy_until(&[1]);
        w.end(vec![(1, other)]);
    });
}

/// A scheduler's process wakes one without waking a scheduler for it, and takes the next process
/// while another scheduler tries to steal.
#[test]
fn the_next_process_runs_once() {
    explore("the next process runs once", Some(3), || {
        let w = World::new(2, 2);
        let other = scheduler(&w, 1);
        w.q.put(0, Priority::Normal, Cause::Woken, 1);
        if let Some(c) = w.q.next(0, None) {
            w.run(c);
            w.q.put(1, Priority::Normal, Cause::Woken, 1);
            w.q.raise(1, Priority::High, || ());
        } else {
            w.q.put(1, Priority::Normal, Cause::Woken, 0);
        }
        while let Some(c) = w.q.next(0, None) {
            w.run(c);
        }
        w.busy_until(&[0, 1]);
        w.end(vec![(1, other)]);
    });
}

/// Two schedulers sleep, or are about to, while a third one's process makes work for both and
/// computes until that is done. The first of them computes until the other runs, too: both wake-ups
/// may go to one of them.
#[test]
fn wake_ups_are_passed_on() {
    explore("wake-ups are passed on", Some(2), || {
        let w = World::new(3, 3);
        let schedulers: Vec<_> = (1..3)
            .map(|i| {
                let v = w.clone();
                thread::spawn(move || {
                    v.run(v.next(i));
                    v.busy_until_two();
                })
            })
            .collect();
        for c in 0..3 {
            w.q.put(c, Priority::Normal, Cause::Woken, 1);
        }
        w.busy_until_two();
        for t in schedulers {
            t.join().expect("runs");
        }
    });
}

/// The process of the only scheduler online has made work for two, and computes until that is done;
/// another scheduler comes online.
#[test]
fn a_scheduler_that_comes_online_finds_work() {
    explore("a scheduler that comes online finds work", Some(3), || {
        let w = World::new(2, 2);
        w.q.set_online(1, |_| true);
        let other = scheduler(&w, 1);
        w.q.put(0, Priority::Normal, Cause::Woken, 1);
        w.q.put(1, Priority::Normal, Cause::Woken, 1);
        w.q.set_online(2, |_| true);
        w.busy_until(&[0]);
        while let Some(c) = w.q.next(0, None) {
            w.run(c);
        }
        w.busy_until(&[1]);
        w.end(vec![(1, other)]);
    });
}

/// A scheduler goes offline while something is put into its queue.
#[test]
fn a_scheduler_that_goes_offline_hands_over() {
    explore("a scheduler that goes offline hands over", Some(3), || {
        let w = World::new(2, 2);
        let schedulers = (0..2).map(|i| (i, scheduler(&w, i))).collect();
        let v = w.clone();
        let telling = thread::spawn(move || v.q.set_online(1, |_| true));
        // They are dealt to both schedulers in turn.
        w.q.put(0, Priority::Normal, Cause::Woken, 0);
        w.q.put(1, Priority::Normal, Cause::Woken, 0);
        telling.join().expect("runs");
        w.busy_until(&[0, 1]);
        w.q.set_online(2, |_| true);
        w.end(schedulers);
    });
}

/// A scheduler that is taken offline queues a process for itself at that moment, while the other
/// one sleeps.
#[test]
fn an_offline_scheduler_keeps_nothing() {
    explore("an offline scheduler keeps nothing", Some(3), || {
        let w = World::new(2, 1);
        let other = scheduler(&w, 0);
        let v = w.clone();
        let telling = thread::spawn(move || v.q.set_online(1, |_| true));
        w.q.put(0, Priority::Normal, Cause::Woken, 2);
        telling.join().expect("runs");
        if let Some(c) = w.q.next(1, None) {
            w.run(c);
        }
        w.busy_until(&[0]);
        w.end(vec![(0, other)]);
    });
}

/// The threads of a pool take processes while one of them is taken offline or online again.
#[test]
fn a_pool_takes_all() {
    for (before, after) in [(1, 2), (2, 1)] {
        explore("a pool takes all", None, move || {
            let p = Arc::new(Pool::new());
            let ran = Arc::new(AtomicUsize::new(0));
            let seats = [p.join(), p.join()];
            p.set_online(before);
            let (q, n) = (p.clone(), ran.clone());
            let thread = thread::spawn(move || {
                q.take(
                    &seats[after - 1],
                    |any| {
                        any();
                    },
                    |_| (),
                );
                n.fetch_add(1, Ordering::Relaxed);
            });
            let q = p.clone();
            let putter = thread::spawn(move || assert!(q.put(7, Priority::Normal, || false)));
            p.set_online(after);
            thread.join().expect("runs");
            putter.join().expect("runs");
            assert_eq!(ran.load(Ordering::Relaxed), 1);
        });
    }
}

/// One of two threads of a pool was woken, and is taken offline.
#[test]
fn a_pool_wakes_an_online_thread() {
    explore("a pool wakes an online thread", Some(3), || {
        let p = Arc::new(Pool::new());
        let (first, second) = (p.join(), p.join());
        p.set_online(2);
        let q = p.clone();
        let stays = thread::spawn(move || q.take(&first, |_| (), |_| ()));
        let q = p.clone();
        // Ends when it is online again.
        let leaves = thread::spawn(move || q.take(&second, |_| (), |_| ()));
        let q = p.clone();
        let telling = thread::spawn(move || q.set_online(1));
        assert!(p.put(7, Priority::Normal, || false));
        telling.join().expect("runs");
        assert!(p.put(8, Priority::Normal, || false));
        // The thread that stays takes at least one of them; otherwise different threads take them.
        p.set_online(2);
        let mut got = [stays.join().expect("runs"), leaves.join().expect("runs")];
        got.sort_unstable();
        assert_eq!(got, [7, 8]);
    });
}

/// A process is queued in a pool, a control signal arrives, and a thread of the pool takes the
/// process, or none does. The signal is handled before anything else, once, and the process is
/// taken once.
#[test]
fn a_signal_takes_a_process_out_of_a_pool() {
    for threads in [0, 1] {
        explore("a signal takes a process out of a pool", None, move || {
            let p = Arc::new(Pool::new());
            let seat = p.join();
            let state = Arc::new(State::free());
            state.publish_queued(Priority::Normal, false);
            let _ = state.start_running();
            let handled = Arc::new(AtomicUsize::new(0));
            // On a scheduler: the process has left its place in the pool, and returns to it.
            let (s, q, n) = (state.clone(), p.clone(), handled.clone());
            let leaves = move || {
                s.raise();
                let taken = s.start_fetching();
                assert!(taken.raised && taken.dirty == Some(false));
                // The sender may be late: the owner has left the pool and has handled the signal
                // already.
                if taken.signals {
                    n.fetch_add(1, Ordering::Relaxed);
                }
                s.settle_control();
                let prio = s.requeue_dirty(false);
                assert!(q.put(7, prio, || s.must_leave_pool()));
            };
            let (s, q, leaves_too) = (state.clone(), p.clone(), leaves.clone());
            let sender = thread::spawn(move || match s.wake_for(true) {
                Wake::Dirty(false) if q.take_out(7) => leaves_too(),
                Wake::Dirty(false) | Wake::Seen => {}
                w => panic!("{w:?}"),
            });
            let (s, q, n) = (state.clone(), p.clone(), handled.clone());
            let takes = move || {
                assert_eq!(q.take(&seat, |_| (), |_| ()), 7);
                let taken = s.start_running();
                assert!(!taken.raised && taken.dirty == Some(false));
                if s.take_signals() {
                    n.fetch_add(1, Ordering::Relaxed);
                }
            };
            let taker = (threads == 1).then(|| thread::spawn(takes.clone()));
            let prio = state.requeue_dirty(false);
            if !p.put(7, prio, || state.must_leave_pool()) {
                leaves();
            }
            sender.join().expect("runs");
            if let Some(t) = taker {
                t.join().expect("runs");
            } else {
                assert_eq!(
                    handled.load(Ordering::Relaxed),
                    1,
                    "though no thread is free"
                );
                takes();
            }
            // Or it has reached a running process.
            let late = state.take_signals();
            assert_eq!(handled.load(Ordering::Relaxed) + usize::from(late), 1);
            assert!(p.is_empty());
        });
    }
}

/// A caller adds work while the parking thread is about to park.
#[test]
fn a_parked_thread_is_woken() {
    explore("a parked thread is woken", None, || {
        let parker = Arc::new(Parker::new());
        let works = Arc::new(AtomicUsize::new(0));
        let (n, w) = (parker.clone(), works.clone());
        let scheduler = thread::spawn(move || {
            w.store(1, Ordering::Relaxed);
            n.unpark();
        });
        parker.park(|| works.load(Ordering::Relaxed) == 1);
        scheduler.join().expect("runs");
    });
}
