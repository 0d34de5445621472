//! A lock for data that many threads read at once. Its readers write no cache line that others
//! write.
//!
//! The algorithm is BRAVO (Dice and Kogan, "BRAVO: Biased Locking for Reader-Writer Locks", USENIX
//! ATC 2019). While the lock is *biased*, a reader does not touch it: it *announces* the lock's
//! address in a place of its own thread. A writer takes the lock, ends the bias, and waits until no
//! thread announces the lock. Readers then use the lock itself, until some of them have done so
//! without a writer in between; the last one makes it biased again. So writers search the places
//! only once in so many reads.
//!
//! # Orderings
//! * A reader stores its place, then loads `biased`; a writer stores `biased`, then loads the
//!   places. With the `SeqCst` fences between, at least one of the two sees the other: the reader
//!   finds that the bias has ended, or the writer finds the place. The same holds for the number of
//!   threads with places, which the writer loads behind its fence.
//! * `biased` becomes true only while the lock is held for reading, or for writing by a writer that
//!   gives up. So a later writer, which gets the lock after that, sees it.
//! * The store that makes the lock biased releases, and a reader's load acquires: it sees what the
//!   last writer wrote. A reader clears its place with `Release`, and the writer loads it with
//!   `Acquire`: the reader is done.
//!
//! The model is `models/tests/biased_lock.rs`.

use crate::sync::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard,
    constant, fence, spin_loop,
};
use purlin_isa::cache_lines::OneLine;
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

/// Number of locks that a thread announces at once. For further ones it takes the lock itself.
const PLACES: usize = 2;
/// Number of looks at a place between two yields to the system.
const SPINS: u32 = 100;

/// The addresses of the locks that one thread reads; 0 in free places. Only this thread writes to
/// it.
pub struct Places {
    _line: OneLine,
    places: [AtomicUsize; PLACES],
}

impl Places {
    constant! {
        #[allow(clippy::new_without_default)]
        pub fn new() -> Places {
            Places {
                _line: OneLine,
                places: [AtomicUsize::new(0), AtomicUsize::new(0)],
            }
        }
    }
}

/// The places of all threads, and which of them are the calling thread's.
#[derive(Clone, Copy)]
pub struct Readers<'a> {
    pub all: &'a [Places],
    /// Number of threads that have places: the first ones of `all`.
    pub taken: &'a AtomicUsize,
    pub mine: Option<&'a Places>,
}

/// See the module docs. `READS` is the number of reads after which it becomes biased.
pub struct BiasedLock<T, const READS: u32> {
    lock: RwLock<()>,
    biased: AtomicBool,
    /// Whether it may become biased.
    for_many_readers: bool,
    /// Number of reads through the lock since the last writer.
    reads: AtomicU32,
    data: UnsafeCell<T>,
}

// SAFETY: threads that hold it for reading get shared references, one that writes the only one.
unsafe impl<T: Send + Sync, const READS: u32> Sync for BiasedLock<T, READS> {}

/// Proof that a [`BiasedLock`] is held for reading.
pub struct ReadGuard<'a, T> {
    data: &'a T,
    #[expect(dead_code, reason = "its drop ends the read")]
    held: Held<'a>,
}

#[expect(dead_code, reason = "its drop ends the read")]
enum Held<'a> {
    Lock(RwLockReadGuard<'a, ()>),
    Announced(Announced<'a>),
}

struct Announced<'a>(&'a AtomicUsize);

impl Drop for Announced<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.data
    }
}

/// Proof that a [`BiasedLock`] is held for writing.
pub struct WriteGuard<'a, T> {
    data: &'a mut T,
    #[expect(dead_code, reason = "its drop ends the write")]
    held: RwLockWriteGuard<'a, ()>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.data
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.data
    }
}

impl<T, const READS: u32> BiasedLock<T, READS> {
    constant! {
        /// Returns a free lock. Without `for_many_readers` it is a plain one.
        pub fn new(data: T, for_many_readers: bool) -> BiasedLock<T, READS> {
            BiasedLock {
                lock: RwLock::new(()),
                biased: AtomicBool::new(false),
                for_many_readers,
                reads: AtomicU32::new(0),
                data: UnsafeCell::new(data),
            }
        }
    }
    fn address(&self) -> usize {
        std::ptr::from_ref(&self.biased) as usize
    }
    /// Reads for a moment. Returns `None` if a thread writes, or waits to write.
    #[inline]
    pub fn try_read<'a>(&'a self, r: Readers<'a>) -> Option<ReadGuard<'a, T>> {
        match self.announce(r) {
            None => self.try_read_long(),
            announced => announced,
        }
    }
    /// Reads for a moment. Waits while a thread writes.
    pub fn read<'a>(&'a self, r: Readers<'a>) -> ReadGuard<'a, T> {
        match self.announce(r) {
            None => self.read_long(),
            Some(announced) => announced,
        }
    }
    /// Reads for as long as it takes: a writer sleeps meanwhile. Returns `None` if a thread writes,
    /// or waits to write.
    #[inline]
    pub fn try_read_long(&self) -> Option<ReadGuard<'_, T>> {
        self.lock.try_read().map(|g| self.has_read(g))
    }
    /// Reads for as long as it takes. Waits while a thread writes.
    pub fn read_long(&self) -> ReadGuard<'_, T> {
        self.has_read(self.lock.read())
    }
    #[inline]
    fn announce<'a>(&'a self, r: Readers<'a>) -> Option<ReadGuard<'a, T>> {
        if !self.biased.load(Ordering::Relaxed) {
            return None;
        }
        let is_free = |p: &&AtomicUsize| p.load(Ordering::Relaxed) == 0;
        let place = r.mine?.places.iter().find(is_free)?;
        place.store(self.address(), Ordering::Relaxed);
        let announced = Announced(place);
        fence(Ordering::SeqCst);
        if !self.biased.load(Ordering::Acquire) {
            return None;
        }
        Some(ReadGuard {
            // SAFETY: no writer is in, and a later one waits until the place is cleared.
            data: unsafe { &*self.data.get() },
            held: Held::Announced(announced),
        })
    }
    #[inline]
    fn has_read<'a>(&'a self, g: RwLockReadGuard<'a, ()>) -> ReadGuard<'a, T> {
        if self.for_many_readers && self.reads.fetch_add(1, Ordering::Relaxed) + 1 == READS {
            self.biased.store(true, Ordering::Release);
        }
        ReadGuard {
            // SAFETY: the lock is held for reading, so no writer is in.
            data: unsafe { &*self.data.get() },
            held: Held::Lock(g),
        }
    }
    /// Returns `None` if a thread reads or writes.
    #[inline]
    pub fn try_write<'a>(&'a self, r: Readers<'a>) -> Option<WriteGuard<'a, T>> {
        let g = self.lock.try_write()?;
        if self.biased.load(Ordering::Relaxed) && !self.end_bias(r, false) {
            return None;
        }
        Some(self.writes(g))
    }
    /// Waits until no thread reads or writes.
    pub fn write<'a>(&'a self, r: Readers<'a>) -> WriteGuard<'a, T> {
        let g = self.lock.write();
        if self.biased.load(Ordering::Relaxed) {
            self.end_bias(r, true);
        }
        self.writes(g)
    }
    #[inline]
    fn writes<'a>(&'a self, held: RwLockWriteGuard<'a, ()>) -> WriteGuard<'a, T> {
        if self.for_many_readers {
            self.reads.store(0, Ordering::Relaxed);
        }
        WriteGuard {
            // SAFETY: the lock is held for writing, and no thread announces it.
            data: unsafe { &mut *self.data.get() },
            held,
        }
    }
    /// Ends the bias, for a thread that holds the lock for writing. Returns whether no thread
    /// announces the lock; if it may wait, none does. Otherwise the lock stays biased.
    #[cold]
    fn end_bias(&self, r: Readers<'_>, wait: bool) -> bool {
        self.biased.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let taken = r.taken.load(Ordering::Relaxed).min(r.all.len());
        let mut looks = 0;
        for place in r.all[..taken].iter().flat_map(|p| &p.places) {
            while place.load(Ordering::Acquire) == self.address() {
                if !wait {
                    self.biased.store(true, Ordering::Release);
                    return false;
                }
                looks += 1;
                if looks % SPINS == 0 {
                    std::thread::yield_now();
                }
                spin_loop();
            }
        }
        true
    }
}
