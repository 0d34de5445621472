//! The timer service: whoever starts a timer may rely on the thread to look by then.

#[path = "../../kernel/src/timer/alarm.rs"]
#[allow(dead_code)]
mod alarm;
use purlin_models::{explore, sync};

use alarm::{Alarm, Due, NEVER};
use loom::sync::{Arc, Mutex};
use loom::thread;
use sync::AtomicU64;

/// A shard of timers: deadlines in the place of a wheel.
struct Shard {
    due: Due,
    deadlines: Mutex<Vec<u64>>,
}

struct Service {
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
            // It has slept until something that is over by now.
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
    /// Fires what is due in a shard, whoever calls.
    fn fire(&self, shard: usize, now: u64) {
        let s = &self.shards[shard];
        if s.due.tick() <= now {
            let mut d = s.deadlines.lock().expect("is not poisoned");
            d.retain(|&t| t > now);
            s.due.set(d.iter().min().copied());
        }
    }
    /// The thread, until it sleeps and nobody has woken it so far.
    fn serve(&self, now: u64) {
        loop {
            self.alarm.looking();
            let mut next = NEVER;
            for i in 0..2 {
                self.fire(i, now);
                next = next.min(self.shards[i].due.tick());
            }
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
    /// All timers are started: the thread is awake, or will be when the first is due.
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

/// A scheduler fires what is due where the thread is late, and starts another timer.
#[test]
fn schedulers_may_fire_what_is_late() {
    explore("schedulers may fire what is late", Some(3), || {
        let s = Service::new();
        s.start(0, 5);
        s.start(0, 40);
        let (a, b) = (s.clone(), s.clone());
        let a = thread::spawn(move || {
            if a.alarm.is_late(10) {
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
