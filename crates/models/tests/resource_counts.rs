//! Models a process that ends while another gives it a resource (such as a table): one of them
//! finds it.

#[path = "../../kernel/src/process/resource_count.rs"]
mod resource_count;
use purlin_models::{explore, sync};

use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;
use resource_count::Count;

struct World {
    count: Count,
    /// `EXITING` in the state word of the process.
    ends: AtomicBool,
    /// Number of resources that belong to it, as known to their owner.
    things: Mutex<usize>,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            count: Count(AtomicU32::new(0)),
            ends: AtomicBool::new(false),
            things: Mutex::new(0),
        })
    }
    /// Gives the process a resource, and takes it back if the process has ended; returns whether
    /// the process keeps it.
    fn give(&self) -> bool {
        self.count.enter();
        *self.things.lock().expect("is not poisoned") += 1;
        // As in `Table::is_alive`.
        fence(Ordering::SeqCst);
        if !self.ends.load(Ordering::Acquire) {
            return true;
        }
        let mut t = self.things.lock().expect("is not poisoned");
        if *t > 0 {
            *t -= 1;
            self.count.leave(1);
        }
        false
    }
    /// Ends the process, and frees its resources.
    fn end(&self) {
        self.ends.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        if !self.count.any() {
            return;
        }
        let n = std::mem::take(&mut *self.things.lock().expect("is not poisoned"));
        self.count.leave(n as u32);
    }
}

#[test]
fn a_resource_of_an_ending_process_is_found() {
    explore("a resource of an ending process is found", None, || {
        let w = World::new();
        let givers: Vec<_> = (0..2)
            .map(|_| {
                let w = w.clone();
                thread::spawn(move || w.give())
            })
            .collect();
        w.end();
        for g in givers {
            let _ = g.join().expect("runs");
        }
        assert_eq!(*w.things.lock().expect("is not poisoned"), 0);
        assert!(!w.count.any());
    });
}
