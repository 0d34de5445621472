//! Work that is left to whoever holds a lock.

#[path = "../../io/src/port/asked.rs"]
mod asked;
use purlin_models::{explore, sync};

use asked::Asked;
use loom::sync::Arc;
use loom::thread;
use sync::{AtomicUsize, Mutex, Ordering};

struct Port {
    asked: Asked,
    /// Frames that wait, and, by the lock's holder, those that have gone.
    waiting: AtomicUsize,
    gone: Mutex<usize>,
}

impl Port {
    fn pull(&self) {
        while let Some(mut gone) = self.gone.try_lock() {
            if self.asked.take() {
                *gone += self.waiting.swap(0, Ordering::Relaxed);
            }
            drop(gone);
            if !self.asked.is_asked() {
                return;
            }
        }
    }
    fn send(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.asked.ask();
        self.pull();
    }
    /// Has the lock for something else.
    fn hold(&self) {
        drop(self.gone.lock());
        if self.asked.is_asked() {
            self.pull();
        }
    }
}

#[test]
fn what_is_left_to_the_holder_is_done() {
    explore("work left to a lock's holder", Some(3), || {
        let p = Arc::new(Port {
            asked: Asked::new(),
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
