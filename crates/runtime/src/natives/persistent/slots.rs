//! A hash table with open addressing, which is read without locks.
//!
//! Readers may look at any time; writers exclude each other with a lock of their own. When the
//! array is too full or too empty, the entries move to another array, which becomes the table.
//! Arrays that are no longer the table are reused, so a reader may look at one that is being
//! filled. What it finds there is an entry; what it misses it looks for again, unless nothing has
//! moved meanwhile ([`SlotTable::find`]). Entries and arrays are never freed.
//!
//! # Orderings
//! * Entries are stored with release after they are filled, and loaded with acquire.
//! * An array is stored with release after its slots, and loaded with acquire.
//! * `moves` is increased with release before an array is cleared. A reader loads it with acquire
//!   before it looks, and once more after it has missed. That load may be relaxed, as it comes
//!   after acquiring loads of slots. The same number says that nothing was moved.
//!
//! The model is `models/tests/persistent.rs`.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// An entry: anything that has a place in a table.
pub(crate) trait Hashed {
    /// Hash of its key: where its probe sequence begins.
    fn hash(&self) -> u32;
}

/// An array; its length is a power of two.
pub(crate) type Slots<E> = Box<[AtomicPtr<E>]>;

/// See the head of this module.
pub(crate) struct SlotTable<E: 'static> {
    slots: AtomicPtr<Slots<E>>,
    /// Number of moves to another array that have begun.
    ///
    /// Entries leave an array only in a move, and not while it is the table. So a reader that finds
    /// the same number before it takes the array and after its search has looked at the whole
    /// table.
    moves: AtomicUsize,
}

fn new_slots<E: 'static>(n: usize) -> &'static Slots<E> {
    let slots: Slots<E> = (0..n)
        .map(|_| AtomicPtr::new(std::ptr::null_mut()))
        .collect();
    Box::leak(Box::new(slots))
}

impl<E: Hashed + 'static> SlotTable<E> {
    /// An empty table of `size` slots, a power of two.
    pub(crate) fn new(size: usize) -> SlotTable<E> {
        SlotTable {
            slots: AtomicPtr::new(new_slots::<E>(size) as *const Slots<E> as *mut Slots<E>),
            moves: AtomicUsize::new(0),
        }
    }
    /// The array that is the table now.
    pub(crate) fn slots(&self) -> &'static Slots<E> {
        // SAFETY: arrays of slots are never freed.
        unsafe { &*self.slots.load(Ordering::Acquire) }
    }
    /// The result of `look` on the first entry with `hash` for which it is `Some`.
    ///
    /// `look` may be called on entries that have left the table, and on some more than once. An
    /// entry that is in the table all the time is found.
    pub(crate) fn find<R>(
        &self,
        hash: u32,
        mut look: impl FnMut(&'static E) -> Option<R>,
    ) -> Option<R> {
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let found = probe(self.slots(), hash, &mut look);
            if found.is_some() {
                return found;
            }
            // The slots were loaded with `Acquire`: a reader that saw one emptied by a move also
            // sees that the move has begun.
            if self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            crate::sync::spin_loop();
        }
    }
    /// All entries in the order of the slots. For the writer that holds the lock.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static E> {
        self.slots()
            .iter()
            // SAFETY: entries are never freed.
            .filter_map(|s| unsafe { s.load(Ordering::Acquire).as_ref() })
    }
    /// Puts an entry into the first free slot of its probe sequence; there must be one. For the
    /// writer that holds the lock.
    pub(crate) fn insert(&self, e: &'static E) {
        insert(self.slots(), e);
    }
    /// Makes an array of `size` slots, a power of two, the table, with the entries that `stays`
    /// accepts, of which there are fewer. Returns their number. Takes the array from `spare`, and
    /// puts the former table there. For the writer that holds the lock.
    pub(crate) fn resize(
        &self,
        spare: &mut Vec<&'static Slots<E>>,
        size: usize,
        stays: impl Fn(&E) -> bool,
    ) -> usize {
        let old = self.slots();
        let new = match spare.iter().position(|s| s.len() == size) {
            Some(i) => spare.swap_remove(i),
            None => new_slots(size),
        };
        // A reader that sees this move begin also sees the array that the previous move made the
        // table.
        self.moves.fetch_add(1, Ordering::Release);
        for s in new.iter() {
            s.store(std::ptr::null_mut(), Ordering::Release);
        }
        let mut filled = 0;
        for e in self.entries().filter(|e| stays(e)) {
            insert(new, e);
            filled += 1;
        }
        self.slots
            .store(new as *const Slots<E> as *mut Slots<E>, Ordering::Release);
        spare.push(old);
        filled
    }
}

fn insert<E: Hashed>(slots: &Slots<E>, e: &'static E) {
    let mut i = e.hash() as usize;
    loop {
        let slot = &slots[i & (slots.len() - 1)];
        if slot.load(Ordering::Relaxed).is_null() {
            slot.store(e as *const E as *mut E, Ordering::Release);
            return;
        }
        i += 1;
    }
}

/// The result of `look` on the entries in the probe sequence of `hash`.
fn probe<E: 'static, R>(
    slots: &Slots<E>,
    hash: u32,
    look: &mut impl FnMut(&'static E) -> Option<R>,
) -> Option<R> {
    // At least half of the slots are free. In an array that is being filled again this may not hold
    // for a moment, hence the bound.
    for i in hash as usize..hash as usize + slots.len() {
        // SAFETY: entries are never freed.
        let e = unsafe {
            slots[i & (slots.len() - 1)]
                .load(Ordering::Acquire)
                .as_ref()
        }?;
        if let Some(found) = look(e) {
            return Some(found);
        }
    }
    None
}
