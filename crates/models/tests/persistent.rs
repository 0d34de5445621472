//! Models the table of persistent terms: readers look up a key while a writer moves the entries to
//! another array, and back to one that a reader may still be looking at.

#[path = "../../runtime/src/bif/persistent/slots.rs"]
mod slots;
use purlin_models::{explore, sync};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use slots::{Hashed, SlotTable};

struct Entry {
    hash: u32,
    key: u32,
    /// 0: erased.
    value: AtomicUsize,
}

impl Hashed for Entry {
    fn hash(&self) -> u32 {
        self.hash
    }
}

impl Entry {
    fn new(hash: u32, key: u32, value: usize) -> &'static Entry {
        Box::leak(Box::new(Entry {
            hash,
            key,
            value: AtomicUsize::new(value),
        }))
    }
    fn get(&self) -> Option<usize> {
        let v = self.value.load(Ordering::Acquire);
        (v != 0).then_some(v)
    }
}

fn find(t: &SlotTable<Entry>, hash: u32, key: u32) -> Option<usize> {
    t.find(hash, |e| (e.key == key).then(|| e.get()).flatten())
}

/// Readers find an entry that is in the table all the time, and nothing else, however the entries
/// move.
#[test]
fn a_key_is_found_while_entries_move() {
    explore("a key is found while entries move", Some(3), || {
        let t = Arc::new(SlotTable::new(2));
        let mut spare = Vec::new();
        // Both begin at the same slot.
        let (erased, stays) = (Entry::new(1, 7, 70), Entry::new(1, 8, 80));
        t.insert(erased);
        t.resize(&mut spare, 4, |_| true);
        t.insert(stays);
        let writer = {
            let t = t.clone();
            thread::spawn(move || {
                erased.value.store(0, Ordering::Release);
                assert_eq!(t.resize(&mut spare, 2, |e| e.get().is_some()), 1);
                assert_eq!(t.resize(&mut spare, 4, |e| e.get().is_some()), 1);
            })
        };
        assert_eq!(find(&t, 1, 8), Some(80));
        assert_eq!(find(&t, 1, 9), None);
        writer.join().expect("runs");
        assert_eq!(find(&t, 1, 7), None);
    });
}

/// A key whose entry is replaced (by an equal key with another representation) has the old value or
/// the new one.
#[test]
fn a_key_that_gets_another_entry_is_found() {
    explore("a key that gets another entry is found", None, || {
        let t = Arc::new(SlotTable::new(4));
        let first = Entry::new(2, 7, 70);
        t.insert(first);
        let writer = {
            let t = t.clone();
            thread::spawn(move || {
                t.insert(Entry::new(2, 7, 71));
                first.value.store(0, Ordering::Release);
            })
        };
        assert!(matches!(find(&t, 2, 7), Some(70 | 71)));
        writer.join().expect("runs");
        assert_eq!(find(&t, 2, 7), Some(71));
    });
}
