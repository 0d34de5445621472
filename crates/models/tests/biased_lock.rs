//! Models the lock of tables with `read_concurrency`. Readers and a writer exclude each other, and
//! a reader sees what the last writer wrote, whether the lock is biased or not.

#[path = "../../term/src/sync/biased.rs"]
#[allow(dead_code)]
mod biased;
use purlin_models::{explore, sync};

use biased::{BiasedLock, Places, Readers};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sync::{AtomicUsize, Ordering};

/// A lock that becomes biased with the second read, and the places of two threads. Loom watches the
/// data: it reports a read and a write that are not ordered.
struct World {
    lock: BiasedLock<UnsafeCell<usize>, 2>,
    places: [Places; 2],
    taken: AtomicUsize,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            lock: BiasedLock::new(UnsafeCell::new(0), true),
            places: [Places::new(), Places::new()],
            taken: AtomicUsize::new(0),
        })
    }
    /// A world whose lock is biased.
    fn biased() -> Arc<World> {
        let w = World::new();
        assert_eq!((w.read(None), w.read(None)), (0, 0));
        w
    }
    fn readers(&self, mine: Option<usize>) -> Readers<'_> {
        Readers {
            all: &self.places,
            taken: &self.taken,
            mine: mine.map(|i| &self.places[i]),
        }
    }
    /// Gives the calling thread places.
    fn take(&self) -> Option<usize> {
        Some(self.taken.fetch_add(1, Ordering::Relaxed))
    }
    fn read(&self, mine: Option<usize>) -> usize {
        let g = self.lock.read(self.readers(mine));
        // SAFETY: the lock is held for reading.
        g.with(|n| unsafe { *n })
    }
    fn write(&self) {
        let g = self.lock.write(self.readers(None));
        // SAFETY: the lock is held for writing.
        g.with_mut(|n| unsafe { *n += 1 });
    }
}

/// A reader without places makes the lock biased while others read and write.
#[test]
fn a_lock_becomes_biased_beside_a_writer() {
    explore("a lock becomes biased beside a writer", Some(3), || {
        let w = World::new();
        let a = w.clone();
        let a = thread::spawn(move || {
            let mine = a.take();
            let first = a.read(mine);
            let second = a.read(mine);
            let third = a.read(mine);
            assert!(first <= second && second <= third);
        });
        w.write();
        let before = w.read(None);
        w.write();
        assert_eq!((before, w.read(None)), (1, 2));
        a.join().expect("runs");
    });
}

/// A thread that has just got its places announces a biased lock, while a writer ends the bias.
#[test]
fn a_writer_waits_for_those_who_announce_the_lock() {
    explore(
        "a writer waits for those who announce the lock",
        Some(3),
        || {
            let w = World::biased();
            let a = w.clone();
            let a = thread::spawn(move || {
                let mine = a.take();
                let first = a.read(mine);
                assert!(first <= a.read(mine));
            });
            w.write();
            assert_eq!(w.read(None), 1);
            a.join().expect("runs");
        },
    );
}

/// A writer that may not wait gives up. The next writer still finds the reader.
#[test]
fn a_writer_that_gives_up_leaves_the_lock_biased() {
    explore(
        "a writer that gives up leaves the lock biased",
        Some(3),
        || {
            let w = World::biased();
            let a = w.clone();
            let a = thread::spawn(move || {
                let mine = a.take();
                a.read(mine);
            });
            let written = match w.lock.try_write(w.readers(None)) {
                Some(g) => {
                    // SAFETY: the lock is held for writing.
                    g.with_mut(|n| unsafe { *n += 1 });
                    1
                }
                None => 0,
            };
            w.write();
            assert_eq!(w.read(None), written + 1);
            a.join().expect("runs");
        },
    );
}
