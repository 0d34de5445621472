//! Epochs: when nobody can be in code any more that was taken away.
//!
//! Before code is taken away (compiled code, a table that code reads without a lock), its owner sees to it that nobody finds it any more. Those
//! who have found it before are threads that run code, in the middle of a time slice; between two slices a thread has left all code,
//! but for what a process keeps on its stack, which others look after. So each thread that runs code has a word, which it counts up
//! before and after: it is odd within. [`Epochs::since`] notes the words that are odd, and once each of them has changed the memory
//! may go.
//!
//! Schedulers and threads that a process has to itself take part. Dirty threads do not: they run single natives, and would be waited
//! for as long as those take.
//!
//! # Invariants
//! * A word is written by its thread alone.
//! * A thread joins before it runs any code, and takes part until it runs none any more.
//! * Entering is ordered by a barrier ([`barrier`]): a thread whose word was found even has not looked for code before, and finds
//!   none when it looks.

use crate::sync::{AtomicUsize, Mutex, Ordering, barrier};
use std::sync::Arc;

/// The threads that run code.
#[derive(Default)]
pub struct Epochs {
    words: Mutex<Vec<Arc<AtomicUsize>>>,
}

impl Epochs {
    /// A thread takes part with this word, which is even, until the value is dropped.
    #[must_use]
    pub fn join(&self, word: &Arc<AtomicUsize>) -> Member<'_> {
        barrier::prepare();
        self.words.lock().push(word.clone());
        Member {
            epochs: self,
            word: word.clone(),
        }
    }
    /// A moment: those who are within code may still be where they were before it, until they have passed.
    pub fn since(&self) -> Since {
        barrier::heavy();
        let all = self.words.lock();
        let within = all
            .iter()
            .map(|w| (w.clone(), w.load(Ordering::Acquire)))
            .filter(|(_, n)| n & 1 != 0)
            .collect();
        Since(within)
    }
}

/// The part that a thread takes.
pub struct Member<'a> {
    epochs: &'a Epochs,
    word: Arc<AtomicUsize>,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        // Under the lock: who doesn't find the word any more comes after all that the thread has done.
        let mut all = self.epochs.words.lock();
        all.retain(|w| !Arc::ptr_eq(w, &self.word));
    }
}

/// The thread of that word is about to run code.
#[inline(always)]
pub fn enter(word: &AtomicUsize) {
    let n = word.load(Ordering::Relaxed);
    debug_assert!(n & 1 == 0);
    // Release: who finds this value has passed by those before.
    word.store(n.wrapping_add(1), Ordering::Release);
    barrier::light();
}

/// It has left code.
#[inline(always)]
pub fn leave(word: &AtomicUsize) {
    let n = word.load(Ordering::Relaxed);
    word.store(n.wrapping_add(1), Ordering::Release);
}

/// The threads that have not passed since a moment.
#[must_use]
pub struct Since(Vec<(Arc<AtomicUsize>, usize)>);

impl Since {
    /// Whether all have passed. A thread that is within code itself never sees that: natives trap to a continuation that asks.
    pub fn passed(&mut self) -> bool {
        self.0.retain(|(w, n)| w.load(Ordering::Acquire) == *n);
        self.0.is_empty()
    }
}

/// The threads of this system that run code.
pub fn epochs() -> &'static Epochs {
    static EPOCHS: std::sync::OnceLock<Epochs> = std::sync::OnceLock::new();
    EPOCHS.get_or_init(Epochs::default)
}

/// Waits until all that run code now have passed: for threads that run none.
pub fn wait() {
    let mut since = epochs().since();
    let mut rest = std::time::Duration::from_micros(20);
    while !since.passed() {
        std::thread::sleep(rest);
        rest = (rest * 2).min(std::time::Duration::from_millis(2));
    }
}
