//! Ordered tables: `ordered_set`.
//!
//! A B-tree under one lock, ordered by `==`: 1 and 1.0 are one key. A walk stops at a key, not at a
//! place, so it needs no fixation. As with hash tables, a deleted table has no tree.

#![expect(
    clippy::mutable_key_type,
    reason = "a key is exchanged for an equal one only"
)]

use super::ahead::{self, State};
use super::hash::{Change, LOOK_EVERY, READS, Verdict, Visitor};
use super::object::{HEAD_WORDS, Object, Owned, Weight};
use super::{Gone, matchspec};
use purlin_kernel::waits;
use purlin_term::readers::readers;
use purlin_term::sync::{BiasedLock, ReadGuard, WriteGuard};
use purlin_term::word::header_arity;
use purlin_term::{Term, compare, prefix};
use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, OccupiedEntry};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};

/// Words of an object's header in stock.
pub(crate) const TREE_HEAD_WORDS: usize = HEAD_WORDS + 1;

/// A place in the order of keys: a term, before or after the keys that begin like a pattern.
#[derive(Clone, Copy)]
pub struct Key {
    term: Term,
    /// The prefix of an exact key ([`Tree::key`]), and in its free bits the kind of place.
    prefix: u64,
}

/// The kinds of places.
const EXACT: u64 = 0;
const BEFORE: u64 = 1;
const AFTER: u64 = 2;
const KINDS: u64 = (1 << prefix::FREE_BITS) - 1;

impl Key {
    /// An exact key, without a prefix: keys of a tree have one.
    pub fn exact(term: Term) -> Key {
        Key {
            term,
            prefix: EXACT,
        }
    }
    /// Before all keys that begin like this pattern, up to its first variable.
    pub fn before(pattern: Term) -> Key {
        Key {
            term: pattern,
            prefix: BEFORE,
        }
    }
    /// After all of them.
    pub fn after(pattern: Term) -> Key {
        Key {
            term: pattern,
            prefix: AFTER,
        }
    }
    #[inline(always)]
    fn kind(self) -> u64 {
        self.prefix & KINDS
    }
    /// Compares `self`, the place of a pattern, with an exact key.
    fn against(self, k: Term) -> Ordering {
        let side = match self.kind() {
            BEFORE => Ordering::Less,
            _ => Ordering::Greater,
        };
        matchspec::cmp_prefix(self.term, k).then(side)
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, o: &Key) -> Ordering {
        match (self.kind(), o.kind()) {
            (EXACT, EXACT) if self.prefix != o.prefix => self.prefix.cmp(&o.prefix),
            (EXACT, EXACT) => compare::cmp(self.term, o.term),
            (_, EXACT) => self.against(o.term),
            (EXACT, _) => o.against(self.term).reverse(),
            // Two patterns meet only where a range's ends are checked.
            (BEFORE, AFTER) => Ordering::Less,
            (AFTER, BEFORE) => Ordering::Greater,
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

/// A key of the tree, which is a part of its object. If an object is replaced by one with an equal
/// key (`1` and `1.0`), this becomes the key of the new object.
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
// SAFETY: a key is only read, under the table's lock.
unsafe impl Sync for Key {}
// SAFETY: it is only set under the write lock.
unsafe impl Sync for Held {}

/// The objects by their keys.
#[derive(Default)]
struct Tree {
    map: Map,
    /// How most keys begin, if that is known. Their prefixes are those of what follows.
    head: Option<Head>,
    state: State,
}

/// Number of keys up to which [`Tree::head`] may be given up.
const FIRST_KEYS: usize = 64;

/// The beginning of tuples: their header, and an atom.
#[derive(Clone, Copy, PartialEq)]
struct Head {
    header: u64,
    first: Term,
}

impl Head {
    /// Returns the head of a tuple that begins with an atom, and the elements that follow.
    fn of<'a>(key: Term) -> Option<(Head, &'a [Term])> {
        let (&first, rest) = key.as_tuple()?.split_first()?;
        let header = key.boxed_header()?;
        (first.is_atom() && !rest.is_empty()).then_some((Head { header, first }, rest))
    }
}

impl Tree {
    /// Returns the key of this tree, or of one to look for in it.
    fn key(&self, term: Term) -> Key {
        let prefix = match self.head {
            Some(head) => match Head::of(term) {
                Some((h, rest)) if h == head => prefix::of_elements(rest),
                // All keys that begin so are above it, or all are below it.
                _ => match compare::cmp_with_tuples(term, header_arity(head.header), head.first) {
                    Ordering::Less => 0,
                    _ => !KINDS,
                },
            },
            None => prefix::of(term),
        };
        Key {
            term,
            prefix: prefix | EXACT,
        }
    }
    /// Prepares for a key that is about to be put in. The first one decides how keys begin; one
    /// that begins in another way soon after it decides that nothing is known.
    fn admit(&mut self, term: Term) {
        if self.map.is_empty() {
            self.head = Head::of(term).map(|(h, _)| h);
        } else if self.map.len() < FIRST_KEYS
            && let Some(head) = self.head
            && Head::of(term).is_none_or(|(h, _)| h != head)
        {
            self.head = None;
            for held in self.map.keys() {
                held.0.set(self.key(held.0.get().term));
            }
        }
    }
    #[inline]
    fn get(&self, key: Term) -> Option<&Owned> {
        self.map.get(&self.key(key))
    }
}

/// The nodes of an emptied table, to be dropped later.
pub struct Remains(#[expect(dead_code, reason = "kept to be dropped")] Map);

/// See the module head.
pub struct TreeTable {
    keypos: usize,
    tree: BiasedLock<Option<Tree>, READS>,
    items: AtomicUsize,
    words: AtomicUsize,
    /// Words of all objects that lie in shared regions.
    shared: AtomicUsize,
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
    pub fn new(keypos: usize, for_many_readers: bool) -> TreeTable {
        TreeTable {
            keypos,
            tree: BiasedLock::new(Some(Tree::default()), for_many_readers),
            items: AtomicUsize::new(0),
            words: AtomicUsize::new(0),
            shared: AtomicUsize::new(0),
            fixed: AtomicUsize::new(0),
        }
    }
    /// Locks the tree to look a key up.
    fn read(&self) -> ReadGuard<'_, Option<Tree>> {
        let (lock, readers) = (&self.tree, readers());
        match lock.try_read(readers) {
            Some(g) => g,
            None => waits::held(|| lock.read(readers)),
        }
    }
    /// Locks the tree for a walk.
    fn read_long(&self) -> ReadGuard<'_, Option<Tree>> {
        match self.tree.try_read_long() {
            Some(g) => g,
            None => waits::held(|| self.tree.read_long()),
        }
    }
    fn write(&self) -> WriteGuard<'_, Option<Tree>> {
        let readers = readers();
        let mut t = match self.tree.try_write(readers) {
            Some(g) => g,
            None => waits::held(|| self.tree.write(readers)),
        };
        if let Some(tree) = &mut *t {
            tree.state.changes();
        }
        t
    }
    /// Number of objects, and of their words, headers included.
    pub fn size(&self) -> (usize, usize) {
        (
            self.items.load(Memory::Relaxed),
            self.words.load(Memory::Relaxed),
        )
    }
    fn count(&self, items: isize, weight: Weight) {
        let add = |a: &AtomicUsize, n: isize| {
            a.store(
                a.load(Memory::Relaxed).wrapping_add_signed(n),
                Memory::Relaxed,
            )
        };
        add(&self.items, items);
        add(&self.words, weight.words);
        add(&self.shared, weight.shared);
    }
    /// Words of [`size`](Self::size) that lie in shared regions.
    pub(crate) fn shared_words(&self) -> isize {
        self.shared.load(Memory::Relaxed) as isize
    }
    fn put_in(&self, set: &mut Tree, o: Owned) {
        let key = o.element(self.keypos);
        set.admit(key);
        match set.map.entry(Held(Cell::new(set.key(key)))) {
            Entry::Occupied(e) => {
                self.count(0, o.weight(0) - e.get().weight(0));
                self.replace(e, o);
            }
            Entry::Vacant(e) => {
                self.count(1, o.weight(TREE_HEAD_WORDS));
                e.insert(o);
            }
        }
    }
    /// Replaces an object with an equal key by `o`.
    fn replace(&self, mut e: OccupiedEntry<'_, Held, Owned>, o: Owned) {
        // The map's key lies in the old object. Equal keys have equal prefixes.
        let old = e.key().0.get();
        e.key().0.set(Key {
            term: o.element(self.keypos),
            ..old
        });
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
        Ok(f(set.get(key).map(|o| &**o)))
    }

    /// As [`super::hash::HashTable::put`].
    pub fn put(&self, o: Owned, new_only: bool) -> Result<bool, Gone> {
        let mut t = self.write();
        let set = t.as_mut().ok_or(Gone)?;
        if new_only && set.get(o.element(self.keypos)).is_some() {
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
                .any(|o| set.get(o.element(self.keypos)).is_some())
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
        if let Entry::Occupied(mut e) = set.map.entry(Held(Cell::new(set.key(key)))) {
            let (change, r) = f(e.get_mut());
            if let Change::Replace(new) = change {
                self.count(0, new.weight(0) - e.get().weight(0));
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
        match set.map.entry(Held(Cell::new(set.key(key)))) {
            Entry::Occupied(e) if which(e.get()) => {
                let o = e.remove();
                self.count(-1, Weight::default() - o.weight(TREE_HEAD_WORDS));
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
        let t = self.read_long();
        let set = t.as_ref().ok_or(Gone)?;
        if ix > set.map.len() {
            return Ok(None);
        }
        Ok(Some(f(set.map.values().nth(ix).map(|o| &**o))))
    }

    /// Calls `f` with the first object of a span.
    pub fn first<R>(&self, span: Span, f: impl FnOnce(Option<&Object>) -> R) -> Result<R, Gone> {
        let t = self.read();
        let e = walk(t.as_ref().ok_or(Gone)?, span).next();
        Ok(f(e.map(|o| &**o)))
    }

    /// Calls `f` with the key behind `key`, or before it.
    pub(crate) fn step<R>(
        &self,
        key: Term,
        downwards: bool,
        f: impl FnOnce(Option<Term>) -> R,
    ) -> Result<R, Gone> {
        let t = self.read();
        let set = t.as_ref().ok_or(Gone)?;
        let from = || {
            let here = Some(Key::exact(key));
            let span = Span {
                low: here.filter(|_| !downwards),
                high: here.filter(|_| downwards),
                downwards,
            };
            entries(set, span).map(|(held, _)| held.0.get().term)
        };
        // SAFETY: the thread that changes the table holds its lock, and has published its state.
        Ok(f(unsafe { ahead::next(set.state, key, downwards, from) }))
    }

    /// Shows the objects of a span in its direction until the visitor has enough. Returns whether
    /// it had; `stopped` then gets the last object shown.
    pub(crate) fn scan(
        &self,
        span: Span,
        v: &mut dyn Visitor,
        stopped: &mut dyn FnMut(&Object),
    ) -> Result<bool, Gone> {
        let t = self.read_long();
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
            if let Some(o) = set.map.remove(&set.key(k)) {
                self.count(-1, Weight::default() - o.weight(TREE_HEAD_WORDS));
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
        let old = std::mem::take(&mut set.map);
        self.items.store(0, Memory::Relaxed);
        self.words.store(0, Memory::Relaxed);
        Ok((old.len(), Remains(old)))
    }
    /// Closes the table.
    pub(crate) fn close(&self) -> Option<Remains> {
        self.write().take().map(|tree| Remains(tree.map))
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

/// The objects of a span, in its direction.
fn walk(set: &Tree, span: Span) -> impl Iterator<Item = &Owned> {
    entries(set, span).map(|(_, o)| o)
}

/// The entries of a span, in its direction. Programs may pass anything in continuations: a span
/// with its ends the wrong way round is empty, because the map would panic on it.
fn entries(set: &Tree, span: Span) -> impl Iterator<Item = (&Held, &Owned)> {
    let bound = |k: Option<Key>| match k {
        Some(k) if k.kind() == EXACT => Bound::Excluded(set.key(k.term)),
        Some(k) => Bound::Excluded(k),
        None => Bound::Unbounded,
    };
    let sound = match (span.low, span.high) {
        (Some(low), Some(high)) => low < high,
        _ => true,
    };
    let mut r = sound.then(|| set.map.range::<Key, _>((bound(span.low), bound(span.high))));
    std::iter::from_fn(move || {
        let r = r.as_mut()?;
        match span.downwards {
            true => r.next_back(),
            false => r.next(),
        }
    })
}
