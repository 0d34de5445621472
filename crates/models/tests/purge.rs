//! Models a process that is made at a function whose old code is purged meanwhile: the purge checks
//! the process, or the process checks itself.

#[path = "../../kernel/src/code/purge_count.rs"]
mod purge_count;
use purlin_models::{explore, sync};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use purge_count::PurgeCount;

const OLD: usize = 1;
const NEW: usize = 2;

struct World {
    purges: PurgeCount,
    /// The target of the export.
    export: AtomicUsize,
    /// Whether the queue of the new process is open: then a purge that looks for processes finds
    /// it.
    open: AtomicBool,
}

/// A scheduler makes a process while the module's code becomes old and is purged. Either the
/// process starts in the new code, or the purge has found it.
#[test]
fn a_new_process_in_old_code_is_found() {
    explore("a new process in old code is found", None, || {
        let w = Arc::new(World {
            purges: PurgeCount(AtomicUsize::new(0)),
            export: AtomicUsize::new(OLD),
            open: AtomicBool::new(false),
        });
        let purger = {
            let w = w.clone();
            thread::spawn(move || {
                // The new code is loaded before the old one is purged.
                w.export.store(NEW, Ordering::Release);
                w.purges.begin();
                w.open.load(Ordering::Acquire)
            })
        };
        let before = w.purges.begun();
        let mut starts = w.export.load(Ordering::Acquire);
        w.open.store(true, Ordering::Release);
        if !w.purges.unchanged(before) {
            starts = w.export.load(Ordering::Acquire);
        }
        let asked = purger.join().expect("runs");
        assert!(starts == NEW || asked, "old code went that is run");
    });
}
