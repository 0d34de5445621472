//! Models a process that is spawned in a budget that ends meanwhile: the end finds the process, or
//! the spawner finds the end. Either kills it.

#[path = "../../kernel/src/accounting/budgets/ended.rs"]
mod ended;
use purlin_models::{explore, sync};

use ended::{Ended, after_opening, before_search};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

struct World {
    ended: Ended,
    /// Whether the queue of the new process is open: then who looks for processes finds it.
    open: AtomicBool,
}

#[test]
fn a_process_that_is_spawned_while_its_budget_ends_is_found() {
    explore("a process spawned while its budget ends", None, || {
        let w = Arc::new(World {
            ended: Ended(AtomicBool::new(false)),
            open: AtomicBool::new(false),
        });
        let ending = {
            let w = w.clone();
            thread::spawn(move || {
                assert!(w.ended.set(), "it ends once");
                before_search();
                w.open.load(Ordering::Relaxed)
            })
        };
        w.open.store(true, Ordering::Relaxed);
        after_opening();
        let late = w.ended.is_set();
        let found = ending.join().expect("runs");
        assert!(found || late, "a process outlives its budget");
    });
}
