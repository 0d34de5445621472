//! Models work that is left to the holder of a lock.

#[path = "../../io/src/port/handoff.rs"]
mod handoff;
use purlin_models::{explore, sync};

use handoff::Handoff;
use loom::sync::Arc;
use loom::thread;
use sync::{AtomicUsize, Mutex, Ordering};

struct Port {
    handoff: Handoff,
    /// Frames that wait, and those that the lock's holder has sent.
    waiting: AtomicUsize,
    gone: Mutex<usize>,
}

impl Port {
    fn pull(&self) {
        while let Some(mut gone) = self.gone.try_lock() {
            if self.handoff.take() {
                *gone += self.waiting.swap(0, Ordering::Relaxed);
            }
            drop(gone);
            if !self.handoff.is_requested() {
                return;
            }
        }
    }
    fn send(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.handoff.request();
        self.pull();
    }
    /// Takes the lock for something else.
    fn hold(&self) {
        drop(self.gone.lock());
        if self.handoff.is_requested() {
            self.pull();
        }
    }
}

#[test]
fn what_is_left_to_the_holder_is_done() {
    explore("work left to a lock's holder", Some(3), || {
        let p = Arc::new(Port {
            handoff: Handoff::new(),
            waiting: AtomicUsize::new(0),
            gone: Mutex::new(0),
        });
        let (a, b) = (p.clone(), p.clone());
        let others = [
            thread::spawn(move || a.send()),
            thread::spawn(move || b.hold()),
        ];
        p.send();
        for o in others {
            o.join().expect("runs");
        }
        assert_eq!(p.waiting.load(Ordering::Relaxed), 0, "nothing stays");
        assert_eq!(*p.gone.lock(), 2);
    });
}
