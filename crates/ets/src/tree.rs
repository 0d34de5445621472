//! Ordered tables: `ordered_set`.
//!
//! A B-tree under one lock, ordered by `==`: 1 and 1.0 are one key. A walk stops at a key, not at a
//! place, so it needs no fixation. As with hash tables, a deleted table has no tree.

#![expect(
    clippy::mutable_key_type,
    reason = "a key is exchanged for an equal one only"
)]

use super::hash::{Change, LOOK_EVERY, Verdict, Visitor};
use super::object::{HEAD_WORDS, Object, Owned};
use super::{Gone, matchspec};
use purlin_kernel::waits;
use purlin_term::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use purlin_term::{Term, compare};
use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, OccupiedEntry};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};

/// Words of an object's header in stock.
pub(crate) const TREE_HEAD_WORDS: usize = HEAD_WORDS + 1;

/// A place in the order of keys.
#[derive(Clone, Copy)]
pub enum Key {
    Exact(Term),
    /// Before all keys that begin like this pattern, up to its first variable.
    Before(Term),
    /// After all of them.
    After(Term),
}

impl Key {
    /// Compares `self`, a place, with an exact key.
    fn against(self, k: Term) -> Ordering {
        match self {
            Key::Exact(t) => compare::cmp(t, k),
            Key::Before(p) => matchspec::cmp_prefix(p, k).then(Ordering::Less),
            Key::After(p) => matchspec::cmp_prefix(p, k).then(Ordering::Greater),
        }
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, o: &Key) -> Ordering {
        match (*self, *o) {
            (Key::Exact(a), Key::Exact(b)) => compare::cmp(a, b),
            (a, Key::Exact(k)) => a.against(k),
            (Key::Exact(k), b) => b.against(k).reverse(),
            // Two patterns meet only where a range's ends are checked.
            (Key::Before(_), Key::After(_)) => Ordering::Less,
            (Key::After(_), Key::Before(_)) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }
}
impl PartialOrd for Key {
    fn partial_cmp(&self, o: &Key) -> Option<Ordering> {
        Some(self.cmp(o))
    }
}
impl PartialEq for Key {
    fn eq(&self, o: &Key) -> bool {
        self.cmp(o).is_eq()
    }
}
impl Eq for Key {}

/// A key of the map: exact, and inside its object. An object that replaces one with an equal key
/// brings its own.
struct Held(Cell<Key>);

impl Borrow<Key> for Held {
    #[inline]
    fn borrow(&self) -> &Key {
        // SAFETY: it is only set with exclusive access to the map, when no search is in progress.
        unsafe { &*self.0.as_ptr() }
    }
}
impl Ord for Held {
    #[inline]
    fn cmp(&self, o: &Held) -> Ordering {
        self.0.get().cmp(&o.0.get())
    }
}
impl PartialOrd for Held {
    fn partial_cmp(&self, o: &Held) -> Option<Ordering> {
        Some(self.cmp(o))
    }
}
impl PartialEq for Held {
    fn eq(&self, o: &Held) -> bool {
        self.cmp(o).is_eq()
    }
}
impl Eq for Held {}

type Map = BTreeMap<Held, Owned>;

// SAFETY: keys are terms in objects that the map owns, and are only read under the lock.
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}
// SAFETY: as above; it is set under the write lock.
unsafe impl Sync for Held {}

/// The nodes of an emptied table, to be dropped later.
pub struct Remains(#[expect(dead_code, reason = "kept to be dropped")] Map);

/// See the module head.
pub struct TreeTable {
    keypos: usize,
    tree: RwLock<Option<Map>>,
    items: AtomicUsize,
    words: AtomicUsize,
    fixed: AtomicUsize,
}

/// The part of the order that a walk covers, and its direction.
#[derive(Clone, Copy)]
pub struct Span {
    pub low: Option<Key>,
    pub high: Option<Key>,
    pub downwards: bool,
}

impl TreeTable {
    pub fn new(keypos: usize) -> TreeTable {
        TreeTable {
            keypos,
            tree: RwLock::new(Some(BTreeMap::new())),
            items: AtomicUsize::new(0),
            words: AtomicUsize::new(0),
            fixed: AtomicUsize::new(0),
        }
    }
    fn read(&self) -> RwLockReadGuard<'_, Option<Map>> {
        waits::read(&self.tree)
    }
    fn write(&self) -> RwLockWriteGuard<'_, Option<Map>> {
        waits::write(&self.tree)
    }
    #[inline]
    fn key(&self, o: &Object) -> Key {
        Key::Exact(o.element(self.keypos))
    }
    #[inline]
    fn held(&self, o: &Object) -> Held {
        Held(Cell::new(self.key(o)))
    }
    /// Number of objects, and of their words, headers included.
    pub fn size(&self) -> (usize, usize) {
        (
            self.items.load(Memory::Relaxed),
            self.words.load(Memory::Relaxed),
        )
    }
    fn count(&self, items: isize, words: isize) {
        let add = |a: &AtomicUsize, n: isize| {
            a.store(
                a.load(Memory::Relaxed).wrapping_add_signed(n),
                Memory::Relaxed,
            )
        };
        add(&self.items, items);
        add(&self.words, words);
    }
    fn put_in(&self, set: &mut Map, o: Owned) {
        let words = o.words() as isize;
        match set.entry(self.held(&o)) {
            Entry::Occupied(e) => {
                self.count(0, words - e.get().words() as isize);
                self.replace(e, o);
            }
            Entry::Vacant(e) => {
                self.count(1, TREE_HEAD_WORDS as isize + words);
                e.insert(o);
            }
        }
    }
    /// Replaces an object with an equal key by `o`.
    fn replace(&self, mut e: OccupiedEntry<'_, Held, Owned>, o: Owned) {
        // The map's key lies in the old object.
        e.key().0.set(self.key(&o));
        e.insert(o);
    }

    /// Calls `f` with the object that has `key`.
    #[inline]
    pub(crate) fn with_key<R>(
        &self,
        key: Term,
        f: impl FnOnce(Option<&Object>) -> R,
    ) -> Result<R, Gone> {
        let t = self.read();
        let set = t.as_ref().ok_or(Gone)?;
        Ok(f(set.get(&Key::Exact(key)).map(|o| &**o)))
    }

    /// As [`super::hash::HashTable::put`].
    pub fn put(&self, o: Owned, new_only: bool) -> Result<bool, Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        if new_only && set.contains_key(&Key::Exact(o.element(self.keypos))) {
            return Ok(false);
        }
        self.put_in(set, o);
        Ok(true)
    }

    /// As [`super::hash::HashTable::put_all`].
    pub(crate) fn put_all(
        &self,
        objects: Vec<Owned>,
        new_only: bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        if new_only
            && objects
                .iter()
                .any(|o| set.contains_key(&Key::Exact(o.element(self.keypos))))
        {
            return Ok(false);
        }
        for (i, o) in objects.into_iter().enumerate() {
            if i % LOOK_EVERY == LOOK_EVERY - 1 && !goes_on() {
                return Err(Gone);
            }
            self.put_in(set, o);
        }
        Ok(true)
    }

    /// As [`super::hash::HashTable::modify`].
    pub fn modify<R>(
        &self,
        key: Term,
        default: Option<&mut dyn FnMut() -> Owned>,
        f: impl FnOnce(&mut Owned) -> (Change, R),
    ) -> Result<Option<R>, Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        if let Entry::Occupied(mut e) = set.entry(Held(Cell::new(Key::Exact(key)))) {
            let (change, r) = f(e.get_mut());
            if let Change::Replace(new) = change {
                self.count(0, new.words() as isize - e.get().words() as isize);
                self.replace(e, new);
            }
            return Ok(Some(r));
        }
        let Some(default) = default else {
            return Ok(None);
        };
        let mut o = default();
        let (change, r) = f(&mut o);
        match change {
            Change::None => self.put_in(set, o),
            Change::Replace(new) => self.put_in(set, new),
            Change::Abort => {}
        }
        Ok(Some(r))
    }

    /// Removes the object with `key` if `which` holds.
    pub(crate) fn erase(
        &self,
        key: Term,
        which: impl Fn(&Object) -> bool,
    ) -> Result<Option<Owned>, Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        match set.entry(Held(Cell::new(Key::Exact(key)))) {
            Entry::Occupied(e) if which(e.get()) => {
                let o = e.remove();
                self.count(-1, -((TREE_HEAD_WORDS + o.words()) as isize));
                Ok(Some(o))
            }
            _ => Ok(None),
        }
    }

    /// Calls `f` with object number `ix` in order, or with `None` just behind the end. `Ok(None)`
    /// beyond that.
    pub fn slot<R>(
        &self,
        ix: usize,
        f: impl FnOnce(Option<&Object>) -> R,
    ) -> Result<Option<R>, Gone> {
        let t = self.read();
        let set = t.as_ref().ok_or(Gone)?;
        if ix > set.len() {
            return Ok(None);
        }
        Ok(Some(f(set.values().nth(ix).map(|o| &**o))))
    }

    /// Calls `f` with the first object of a span.
    pub fn first<R>(&self, span: Span, f: impl FnOnce(Option<&Object>) -> R) -> Result<R, Gone> {
        let t = self.read();
        let e = walk(t.as_ref().ok_or(Gone)?, span).next();
        Ok(f(e.map(|o| &**o)))
    }

    /// Shows the objects of a span in its direction until the visitor has enough. Returns whether
    /// it had; `stopped` then gets the last object shown.
    pub(crate) fn scan(
        &self,
        span: Span,
        v: &mut dyn Visitor,
        stopped: &mut dyn FnMut(&Object),
    ) -> Result<bool, Gone> {
        let t = self.read();
        for e in walk(t.as_ref().ok_or(Gone)?, span) {
            v.object(e);
            if !v.go_on() {
                stopped(e);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// As [`TreeTable::scan`], and applies the visitor's verdict to each object.
    pub(crate) fn scan_mut(
        &self,
        span: Span,
        v: &mut dyn Visitor,
        stopped: &mut dyn FnMut(&Object),
    ) -> Result<bool, Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        let mut out: Vec<Term> = Vec::new();
        let mut new: Vec<Owned> = Vec::new();
        let mut more = false;
        for e in walk(set, span) {
            match v.object(e) {
                Verdict::Keep => {}
                Verdict::Delete => out.push(e.element(self.keypos)),
                Verdict::Replace(o) => new.push(o),
            }
            if !v.go_on() {
                stopped(e);
                more = true;
                break;
            }
        }
        for k in out {
            // The key lies in the object, which lives to the end of this iteration.
            if let Some(o) = set.remove(&Key::Exact(k)) {
                self.count(-1, -((TREE_HEAD_WORDS + o.words()) as isize));
            }
        }
        for o in new {
            self.put_in(set, o);
        }
        Ok(more)
    }

    /// Deletes all objects. Returns their number, and what must be freed.
    pub fn clear(&self) -> Result<(usize, Remains), Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        let old = std::mem::take(set);
        self.items.store(0, Memory::Relaxed);
        self.words.store(0, Memory::Relaxed);
        Ok((old.len(), Remains(old)))
    }
    /// Closes the table.
    pub(crate) fn close(&self) -> Option<Remains> {
        self.write().take().map(Remains)
    }
    pub(crate) fn fix(&self) {
        self.fixed.fetch_add(1, Memory::Relaxed);
    }
    pub(crate) fn fixations(&self) -> usize {
        self.fixed.load(Memory::Relaxed)
    }
    pub(crate) fn unfix(&self, n: usize) {
        self.fixed.fetch_sub(n, Memory::Relaxed);
    }
}

/// The entries of a span, in its direction. Programs may pass anything in continuations: a span
/// with its ends the wrong way round is empty, because the map would panic on it.
fn walk(set: &Map, span: Span) -> impl Iterator<Item = &Owned> {
    let bound = |k: Option<Key>| k.map_or(Bound::Unbounded, Bound::Excluded);
    let sound = match (span.low, span.high) {
        (Some(low), Some(high)) => low < high,
        _ => true,
    };
    let mut r = sound.then(|| set.range::<Key, _>((bound(span.low), bound(span.high))));
    std::iter::from_fn(move || {
        let r = r.as_mut()?;
        let next = if span.downwards {
            r.next_back()
        } else {
            r.next()
        };
        next.map(|(_, o)| o)
    })
}
