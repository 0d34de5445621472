//! A table of entries with open addressing, whose readers take no lock.
//!
//! Readers may look at any time; writers take a lock of their own among themselves. When the array is too full or too empty,
//! the entries go to another one, which then is the table. Arrays that are no longer the table are used again, so a reader may
//! be looking at one that is being filled: what it finds there is an entry, but what it misses it looks for again unless nothing
//! was moved meanwhile ([`SlotTable::find`]). Entries and arrays are never freed.

use crate::sync::{AtomicPtr, AtomicUsize, Ordering};

/// An entry: anything that has a place in a table.
pub(crate) trait Hashed {
    /// Hash of its key: where its places begin.
    fn hash(&self) -> u32;
}

/// An array; its length is a power of two.
pub(crate) type Slots<E> = Box<[AtomicPtr<E>]>;

/// See the module head.
pub(crate) struct SlotTable<E: 'static> {
    slots: AtomicPtr<Slots<E>>,
    /// Moves to another array that have begun. Entries leave an array in a move only, and not while it is the table: so who read
    /// this before it took the array, and reads the same afterwards, has looked at the whole table.
    moves: AtomicUsize,
}

fn new_slots<E: 'static>(n: usize) -> &'static Slots<E> {
    let slots: Slots<E> = (0..n)
        .map(|_| AtomicPtr::new(std::ptr::null_mut()))
        .collect();
    Box::leak(Box::new(slots))
}

impl<E: Hashed + 'static> SlotTable<E> {
    /// A table of `size` slots, a power of two.
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
    /// The result of `look` on the first entry of `hash` for which it has one. `look` may be asked of entries that have
    /// left the table, and of some more than once. An entry that is in the table all the time is found.
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
            // The slots were loaded with `Acquire`: who saw one emptied by a move sees that it has begun.
            if self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            crate::sync::spin_loop();
        }
    }
    /// All entries in order of the slots. For writers, one at a time.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &'static E> {
        self.slots()
            .iter()
            // SAFETY: entries are never freed.
            .filter_map(|s| unsafe { s.load(Ordering::Acquire).as_ref() })
    }
    /// Puts an entry into the first free slot of its places. There is one. For writers, one at a time.
    pub(crate) fn insert(&self, e: &'static E) {
        insert(self.slots(), e);
    }
    /// Makes the table an array of `size` slots, a power of two, with the entries that `stays` accepts, which are fewer: tells
    /// how many. The array is one of `spare`, where the one that was the table goes. For writers, one at a time.
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
        // A reader that sees that this move has begun sees the array that the last one made the table.
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

/// The result of `look` on an entry among those at the places of `hash`.
fn probe<E: 'static, R>(
    slots: &Slots<E>,
    hash: u32,
    look: &mut impl FnMut(&'static E) -> Option<R>,
) -> Option<R> {
    // At least half of the slots are free; in an array that is being filled again that may not be so for a moment, hence
    // the end.
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
