//! Models how regions are counted and released: loom runs every interleaving of the threads, and
//! every value that the memory model allows a load to see.

#[path = "../../term/src/refcount.rs"]
mod refcount;
use purlin_models::{explore, sync};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use refcount::RefCount;

/// A region: loom reports a read that is not ordered before the write which stands for freeing it.
struct Region {
    holders: RefCount,
    words: UnsafeCell<u64>,
    freed: AtomicUsize,
}

const ALIVE: u64 = 7;

impl Region {
    fn new() -> Arc<Region> {
        Arc::new(Region {
            holders: RefCount::one(),
            words: UnsafeCell::new(ALIVE),
            freed: AtomicUsize::new(0),
        })
    }
    fn read(&self) {
        // SAFETY: loom checks that nobody writes meanwhile.
        assert_eq!(self.words.with(|p| unsafe { *p }), ALIVE);
    }
    fn release(&self) {
        if self.holders.release() {
            // SAFETY: as above.
            self.words.with_mut(|p| unsafe { *p = 0 });
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn freed(&self) -> usize {
        self.freed.load(Ordering::Relaxed)
    }
}

/// A sender hands a region to two receivers, reads on, and releases it: the last holder frees it,
/// once.
#[test]
fn the_last_holder_frees_it_after_all_reads() {
    explore("the last holder frees it after all reads", None, || {
        let r = Region::new();
        let receivers: Vec<_> = (0..2)
            .map(|_| {
                r.holders.retain();
                let r = r.clone();
                thread::spawn(move || {
                    r.read();
                    r.release();
                })
            })
            .collect();
        r.read();
        r.release();
        for t in receivers {
            t.join().expect("runs");
        }
        assert_eq!((r.freed(), r.holders.count()), (1, 0));
    });
}

/// A receiver hands it on to a third process while the sender releases it.
#[test]
fn a_holder_may_pass_it_on() {
    explore("a holder may pass it on", None, || {
        let r = Region::new();
        r.holders.retain();
        let first = {
            let r = r.clone();
            thread::spawn(move || {
                r.holders.retain();
                let second = {
                    let r = r.clone();
                    thread::spawn(move || {
                        r.read();
                        r.release();
                    })
                };
                r.release();
                second.join().expect("runs");
            })
        };
        r.release();
        first.join().expect("runs");
        assert_eq!(r.freed(), 1);
    });
}

/// A place whose region is replaced, such as an entry of `persistent_term` or a stored object: it
/// is read and changed under a lock, and the old region is released after that.
#[test]
fn a_place_may_be_replaced_while_it_is_read() {
    explore("a place may be replaced while it is read", None, || {
        let (a, b) = (Region::new(), Region::new());
        let place = Arc::new(Mutex::new(a.clone()));
        let reader = {
            let place = place.clone();
            thread::spawn(move || {
                let r = {
                    let at = place.lock().expect("is not poisoned");
                    at.holders.retain();
                    at.clone()
                };
                r.read();
                r.release();
            })
        };
        let old = std::mem::replace(&mut *place.lock().expect("is not poisoned"), b.clone());
        old.release();
        reader.join().expect("runs");
        assert_eq!((a.freed(), b.freed()), (1, 0));
    });
}
