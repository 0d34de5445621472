//! Models a context that a dirty thread lends while a function of a library runs: the thread or the
//! watcher has it, never both.

#[path = "../../kernel/src/sync/lend.rs"]
mod lend;
use purlin_models::{explore, sync};

use lend::Lend;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Lent {
    lend: Lend,
    /// The context, which only its holder touches: loom reports a second one.
    context: UnsafeCell<usize>,
}

impl Lent {
    fn touch(&self) {
        // SAFETY: loom checks that nobody else has it.
        self.context.with_mut(|p| unsafe { *p += 1 });
    }
    fn watch(&self) -> usize {
        if !self.lend.try_take() {
            return 0;
        }
        self.touch();
        self.lend.give_back();
        1
    }
}

#[test]
fn one_holder_has_the_context() {
    explore("one holder has the context", Some(3), || {
        let l = Arc::new(Lent {
            lend: Lend::new(),
            context: UnsafeCell::new(0),
        });
        let other = {
            let l = l.clone();
            thread::spawn(move || l.watch() + l.watch())
        };
        // A call in which the function needs the context once.
        l.touch();
        l.lend.lend();
        assert!(!l.lend.is_held());
        l.lend.take_back();
        assert!(l.lend.is_held());
        l.touch();
        l.lend.lend();
        l.lend.take_back();
        l.touch();
        let n = other.join().expect("runs");
        // SAFETY: as above.
        assert_eq!(l.context.with(|p| unsafe { *p }), 3 + n);
    });
}
