//! Models memory that code uses, and that is unlinked and freed while threads run code.

#[path = "../../kernel/src/code/epochs.rs"]
#[allow(dead_code)]
mod epochs;
use purlin_models::{explore, sync};

use epochs::{Epochs, enter, leave};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

struct World {
    epochs: Epochs,
    /// Whether the code can be found.
    leads: AtomicBool,
    /// The code; loom reports a write that is not ordered after a read.
    code: UnsafeCell<u32>,
}

fn world() -> loom::sync::Arc<World> {
    loom::sync::Arc::new(World {
        epochs: Epochs::default(),
        leads: AtomicBool::new(true),
        code: UnsafeCell::new(1),
    })
}

/// Time slices of a thread that registers.
fn slices(w: &World, word: &Arc<AtomicUsize>, n: usize) {
    for _ in 0..n {
        enter(word);
        if w.leads.load(Ordering::Relaxed) {
            // SAFETY: the property under test: nobody writes meanwhile.
            w.code
                .with(|p| assert_eq!(unsafe { *p }, 1, "runs what was freed"));
        }
        leave(word);
    }
}

fn free(w: &World) {
    w.leads.store(false, Ordering::Relaxed);
    let mut since = w.epochs.since();
    while !since.passed() {
        thread::yield_now();
    }
    // SAFETY: nobody reads any more.
    w.code.with_mut(|p| unsafe { *p = 0 });
}

/// A thread runs one or two slices while the code is freed.
#[test]
fn running_code_is_not_freed() {
    explore("running code is not freed", None, || {
        let w = world();
        let word = Arc::new(AtomicUsize::new(0));
        let _member = w.epochs.join(&word);
        let other = w.clone();
        let t = thread::spawn(move || slices(&other, &word, 2));
        free(&w);
        t.join().expect("runs");
    });
}

/// A thread registers meanwhile, and leaves.
#[test]
fn a_thread_may_register_and_leave() {
    explore("a thread may register and leave", None, || {
        let w = world();
        let other = w.clone();
        let t = thread::spawn(move || {
            let word = Arc::new(AtomicUsize::new(0));
            let _member = other.epochs.join(&word);
            slices(&other, &word, 1);
        });
        free(&w);
        t.join().expect("runs");
    });
}

/// The writer waits for two threads.
#[test]
fn all_threads_are_waited_for() {
    explore("all threads are waited for", Some(3), || {
        let w = world();
        let words = [0, 1].map(|_| Arc::new(AtomicUsize::new(0)));
        let _members = [0, 1].map(|i| w.epochs.join(&words[i]));
        let ts = words.clone().map(|word| {
            let w = w.clone();
            thread::spawn(move || slices(&w, &word, 1))
        });
        free(&w);
        for t in ts {
            t.join().expect("runs");
        }
    });
}

/// A piece of memory has the machine code of one function, then of another. A caller finds the
/// whole code that the word before the entry leads to, or nothing.
#[test]
fn called_code_is_whole() {
    explore("called code is whole", None, || {
        let w = world();
        // The word before the entry: the number of the code, 0 for none.
        let lead = loom::sync::Arc::new(AtomicUsize::new(1));
        let word = Arc::new(AtomicUsize::new(0));
        let _member = w.epochs.join(&word);
        let (other, entry) = (w.clone(), lead.clone());
        let t = thread::spawn(move || {
            for _ in 0..2 {
                enter(&word);
                let n = entry.load(Ordering::Acquire);
                if n != 0 {
                    // SAFETY: the property under test.
                    other
                        .code
                        .with(|p| assert_eq!(unsafe { *p } as usize, n, "runs other code"));
                }
                leave(&word);
            }
        });
        // Unlinked, freed when all threads have passed, and used again.
        lead.store(0, Ordering::Release);
        let mut since = w.epochs.since();
        while !since.passed() {
            thread::yield_now();
        }
        // SAFETY: nobody reads any more.
        w.code.with_mut(|p| unsafe { *p = 2 });
        lead.store(2, Ordering::Release);
        t.join().expect("runs");
    });
}
