//! Models the lock for resizing a table of ETS: one thread holds it, and the others continue
//! without.

#[path = "../../ets/src/try_lock.rs"]
mod try_lock;
use purlin_models::{explore, sync};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use try_lock::TryLock;

struct Table {
    resizing: TryLock,
    /// The value that only the holder touches: loom reports a second one.
    size: UnsafeCell<usize>,
}

impl Table {
    fn resize(&self) -> usize {
        let Some(_taken) = self.resizing.try_lock() else {
            return 0;
        };
        // SAFETY: loom checks that nobody else has it.
        self.size.with_mut(|p| unsafe { *p += 1 });
        1
    }
}

#[test]
fn one_thread_resizes() {
    explore("one thread resizes", None, || {
        let t = Arc::new(Table {
            resizing: TryLock::new(),
            size: UnsafeCell::new(0),
        });
        let others: Vec<_> = (0..2)
            .map(|_| {
                let t = t.clone();
                thread::spawn(move || t.resize() + t.resize())
            })
            .collect();
        let mut n = t.resize();
        for o in others {
            n += o.join().expect("runs");
        }
        assert!(n >= 1);
        // SAFETY: as above.
        assert_eq!(t.size.with(|p| unsafe { *p }), n);
        assert_eq!(t.resize(), 1, "it was given back");
    });
}
