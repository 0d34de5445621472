//! Models the timer service. When a timer has been started, the thread will look at it in time.
//! When a timer is not found any more, its effect is visible.

#[path = "../../kernel/src/timer/alarm.rs"]
#[allow(dead_code)]
mod alarm;
#[path = "../../kernel/src/timer/shard.rs"]
#[allow(dead_code)]
mod shard;
#[path = "../../kernel/src/timer/wheel.rs"]
#[allow(dead_code)]
mod wheel;
use purlin_models::{explore, sync};

use alarm::{Alarm, Due, NEVER};
use loom::sync::{Arc, Mutex};
use loom::thread;
use shard::RefNumbers;
use sync::{AtomicU64, AtomicUsize, Ordering};

/// A shard of timers: deadlines instead of a wheel.
struct Shard {
    due: Due,
    deadlines: Mutex<Vec<u64>>,
}

struct Service {
    /// Held by the thread that fires.
    firing: Mutex<()>,
    alarm: Alarm,
    shards: [Shard; 2],
    sleep: Mutex<Sleep>,
}

/// The thread's sleep: how long, and whether it was woken.
#[derive(Default)]
struct Sleep {
    token: bool,
    until: Option<u64>,
}

impl Service {
    fn new() -> Arc<Service> {
        Arc::new(Service {
            firing: Mutex::new(()),
            // It has slept until a time that is over by now.
            alarm: Alarm(AtomicU64::new(5)),
            shards: std::array::from_fn(|_| Shard {
                due: Due::new(),
                deadlines: Mutex::new(Vec::new()),
            }),
            sleep: Mutex::new(Sleep::default()),
        })
    }
    fn start(&self, shard: usize, deadline: u64) {
        {
            let s = &self.shards[shard];
            let mut d = s.deadlines.lock().expect("is not poisoned");
            d.push(deadline);
            s.due.add(deadline);
        }
        if self.alarm.must_ring(deadline) {
            self.sleep.lock().expect("is not poisoned").token = true;
        }
    }
    /// Fires the due timers of a shard, on any thread.
    fn fire(&self, shard: usize, now: u64) {
        let s = &self.shards[shard];
        if s.due.tick() <= now {
            let mut d = s.deadlines.lock().expect("is not poisoned");
            d.retain(|&t| t > now);
            s.due.set(d.iter().min().copied());
        }
    }
    /// Runs the thread until it sleeps and has not been woken.
    fn serve(&self, now: u64) {
        loop {
            self.alarm.looking();
            let mut next = NEVER;
            let firing = self.firing.lock().expect("is not poisoned");
            for i in 0..2 {
                self.fire(i, now);
                next = next.min(self.shards[i].due.tick());
            }
            drop(firing);
            if !self.alarm.may_sleep(next) {
                continue;
            }
            let mut s = self.sleep.lock().expect("is not poisoned");
            if !std::mem::take(&mut s.token) {
                s.until = Some(next);
                return;
            }
        }
    }
    /// Checks, when all timers have been started, that the thread is awake, or will be when the
    /// first is due.
    fn check(&self) {
        let s = self.sleep.lock().expect("is not poisoned");
        let all = self.shards.iter().flat_map(|s| {
            let d = s.deadlines.lock().expect("is not poisoned");
            d.clone()
        });
        let (first, until) = (all.min().unwrap_or(NEVER), s.until.unwrap_or(0));
        assert!(
            s.token || until <= first,
            "sleeps until {until}, not {first}"
        );
    }
}

/// Two threads start timers in both shards while the service goes to sleep.
#[test]
fn the_thread_is_awake_when_the_first_is_due() {
    explore("the thread is awake when the first is due", Some(3), || {
        let s = Service::new();
        let (a, b) = (s.clone(), s.clone());
        let a = thread::spawn(move || {
            a.start(0, 50);
            a.start(1, 20);
        });
        let b = thread::spawn(move || b.serve(10));
        s.start(1, 30);
        a.join().expect("runs");
        b.join().expect("runs");
        s.check();
    });
}

/// A scheduler fires due timers because the thread is late, and starts another timer.
#[test]
fn schedulers_may_fire_late_timers() {
    explore("schedulers may fire late timers", Some(3), || {
        let s = Service::new();
        s.start(0, 5);
        s.start(0, 40);
        let (a, b) = (s.clone(), s.clone());
        let a = thread::spawn(move || {
            if a.alarm.is_late(10)
                && let Ok(_firing) = a.firing.try_lock()
            {
                a.fire(0, 10);
            }
            a.start(0, 20);
        });
        let b = thread::spawn(move || b.serve(10));
        a.join().expect("runs");
        b.join().expect("runs");
        s.check();
    });
}

/// A shard of timers that send messages, and the number of messages in each of two mailboxes. The
/// counts are accessed without an order of their own: the timers provide it.
struct World {
    owners: std::sync::Arc<shard::Owners>,
    shard: shard::Shard<usize>,
    mailboxes: [AtomicUsize; 2],
}

const KEY: RefNumbers = [1, 2, 3];
const OTHER: RefNumbers = [4, 5, 6];
const OWNER: u64 = 7;

impl World {
    fn new() -> Arc<World> {
        let owners = std::sync::Arc::new(shard::Owners::new(1));
        Arc::new(World {
            shard: shard::Shard::new(0, owners.clone()),
            owners,
            mailboxes: std::array::from_fn(|_| AtomicUsize::new(0)),
        })
    }
    /// Fires the due timers.
    fn fire(&self) {
        let mut due = Vec::new();
        self.shard
            .take_due(1, 2, |_| false, |ticket, to| due.push((ticket, to)));
        for (ticket, to) in due {
            self.shard.arrive(ticket, || self.deliver(to));
        }
    }
    fn deliver(&self, to: usize) {
        let n = self.mailboxes[to].load(Ordering::Relaxed);
        self.mailboxes[to].store(n + 1, Ordering::Relaxed);
    }
    fn got(&self, to: usize) -> usize {
        self.mailboxes[to].load(Ordering::Relaxed)
    }
}

/// A process cancels a timer that is being fired. It finds the timer, and then no message arrives,
/// or it finds its message.
#[test]
fn a_timer_that_is_not_found_has_sent_its_message() {
    explore(
        "a timer that is not found has sent its message",
        Some(3),
        || {
            let w = World::new();
            w.shard.start(KEY, 0, 1, 0);
            let a = w.clone();
            let a = thread::spawn(move || a.fire());
            let stopped = w.shard.stop(&KEY).is_some();
            if !stopped {
                assert_eq!(w.got(0), 1, "neither found nor there");
            }
            a.join().expect("runs");
            assert_eq!(w.got(0), usize::from(!stopped));
            assert_eq!(w.shard.count(), 0);
        },
    );
}

/// The same for a process that reads a timer, and then cancels it.
#[test]
fn a_timer_that_is_not_read_has_sent_its_message() {
    explore(
        "a timer that is not read has sent its message",
        Some(3),
        || {
            let w = World::new();
            w.shard.start(KEY, OWNER, 1, 0);
            let a = w.clone();
            let a = thread::spawn(move || a.fire());
            match w.shard.deadline(&KEY) {
                None => {
                    assert_eq!(w.got(0), 1, "neither found nor there");
                    assert!(w.shard.stop(&KEY).is_none());
                }
                Some(_) if w.shard.stop(&KEY).is_some() => assert_eq!(w.got(0), 0),
                Some(_) => assert_eq!(w.got(0), 1),
            }
            a.join().expect("runs");
        },
    );
}

/// The slot of a timer of a process that has ended is reused by another timer, while the former is
/// being fired.
#[test]
fn a_reused_slot_is_distinguished() {
    explore("a reused slot is distinguished", Some(3), || {
        let w = World::new();
        w.shard.start(KEY, OWNER, 1, 0);
        let a = w.clone();
        let a = thread::spawn(move || a.fire());
        w.shard.owner_ends(OWNER);
        let before = w.got(0);
        let ticket = w.shard.start_due(OTHER, OWNER);
        a.join().expect("runs");
        assert_eq!(w.got(0), before, "it comes after its process has ended");
        assert_eq!(w.shard.deadline(&OTHER), Some(None));
        assert!(w.shard.arrive(ticket, || w.deliver(1)).is_some());
        assert_eq!((w.got(1), w.shard.count()), (1, 0));
    });
}

/// A process ends while its timer is being fired. Either it may own timers, and then none fires
/// after it has ended them, or it finds the timer's message.
#[test]
fn an_owner_without_timers_has_their_messages() {
    explore(
        "an owner without timers has their messages",
        Some(3),
        || {
            let w = World::new();
            w.shard.start(KEY, OWNER, 1, 0);
            let a = w.clone();
            let a = thread::spawn(move || a.fire());
            let before = match w.owners.may_own(OWNER) {
                true => {
                    w.shard.owner_ends(OWNER);
                    w.got(0)
                }
                false => 1,
            };
            assert_eq!(w.got(0), before);
            a.join().expect("runs");
            assert_eq!(w.got(0), before, "it comes after its process has ended");
            assert!(!w.owners.may_own(OWNER));
        },
    );
}

/// A timer that is held stays, and fires the next time.
#[test]
fn a_held_timer_fires_later() {
    explore("a held timer fires later", None, || {
        let w = World::new();
        w.shard.start(KEY, 0, 1, 0);
        let a = w.clone();
        let a = thread::spawn(move || {
            a.shard.take_due(1, 2, |_| true, |_, _| unreachable!());
            assert_eq!(a.got(0), 0);
        });
        let stopped = w.shard.stop(&KEY).is_some();
        assert!(stopped, "it has not fired");
        w.shard.start(OTHER, 0, 1, 1);
        a.join().expect("runs");
        let mut due = Vec::new();
        w.shard
            .take_due(2, 3, |_| false, |ticket, to| due.push((ticket, to)));
        for (ticket, to) in due {
            w.shard.arrive(ticket, || w.deliver(to));
        }
        assert_eq!((w.got(0), w.got(1), w.shard.count()), (0, 1, 0));
    });
}
