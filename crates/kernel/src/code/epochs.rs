//! Epochs: a grace period after which no thread can still be inside code that was taken away.
//!
//! Before memory is freed that threads read without a lock (compiled code, a table that code
//! reads), its owner makes it unreachable. Only threads that had found it before can still use it,
//! and only until the end of their time slice: between two slices a thread has left all code,
//! except for return addresses on the stacks of processes, which are handled elsewhere. So each
//! thread that runs code has a word that it increments before and after: the word is odd while the
//! thread is inside. [`Epochs::since`] notes the words that are odd. Once each of them has changed,
//! the memory may be freed.
//!
//! Schedulers and the threads of processes with a thread of their own take part. Dirty threads do
//! not: they run single natives, and waiting for them could take as long as those.
//!
//! # Invariants
//! * Only its own thread writes a word.
//! * A thread joins before it runs any code, and takes part until it runs no more.
//! * A barrier ([`barrier`]) orders entering: a thread whose word was seen even had not looked for
//!   code before, and no longer finds the old code when it looks.
//!
//! # Orderings
//! Entering and leaving store the thread's word with release. [`Epochs::since`] and the check load
//! it with acquire: once a word has changed, all that its thread read before is over, and the
//! memory may be freed. The barrier orders entering with the look at the words. The model is
//! `models/tests/epochs.rs`.

use crate::sync::{AtomicUsize, Mutex, Ordering, barrier};
use std::sync::Arc;

/// The threads that run code.
#[derive(Default)]
pub struct Epochs {
    words: Mutex<Vec<Arc<AtomicUsize>>>,
}

impl Epochs {
    /// Registers a thread with its word, which is even, until the returned value is dropped.
    #[must_use]
    pub fn join(&self, word: &Arc<AtomicUsize>) -> Member<'_> {
        barrier::prepare();
        self.words.lock().push(word.clone());
        Member {
            epochs: self,
            word: word.clone(),
        }
    }
    /// Starts a grace period: threads that are inside code now may still use what was made
    /// unreachable.
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

/// The registration of a thread.
pub struct Member<'a> {
    epochs: &'a Epochs,
    word: Arc<AtomicUsize>,
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        // Under the lock: a caller that no longer finds the word synchronizes with all that the
        // thread did.
        let mut all = self.epochs.words.lock();
        all.retain(|w| !Arc::ptr_eq(w, &self.word));
    }
}

/// Called before the thread of that word runs code.
#[inline(always)]
pub fn enter(word: &AtomicUsize) {
    let n = word.load(Ordering::Relaxed);
    debug_assert!(n & 1 == 0);
    // Release: a reader of this value knows that the thread has passed its earlier code.
    word.store(n.wrapping_add(1), Ordering::Release);
    barrier::light();
}

/// Called after the thread has left code.
#[inline(always)]
pub fn leave(word: &AtomicUsize) {
    let n = word.load(Ordering::Relaxed);
    word.store(n.wrapping_add(1), Ordering::Release);
}

/// A grace period: the threads that have not passed yet.
#[must_use]
pub struct Since(Vec<(Arc<AtomicUsize>, usize)>);

impl Since {
    /// Whether all threads have passed. A thread that is inside code itself never sees this become
    /// true; natives trap to a continuation that asks.
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

/// Waits for a grace period. For threads that run no code.
pub fn wait() {
    let mut since = epochs().since();
    let mut rest = std::time::Duration::from_micros(20);
    while !since.passed() {
        std::thread::sleep(rest);
        rest = (rest * 2).min(std::time::Duration::from_millis(2));
    }
}
