//! Hash tables: `set`, `bag`, `duplicate_bag`.
//!
//! Linear hashing: a table of `active` buckets grows and shrinks by one bucket at a time, so no
//! operation ever waits for a table to be rehashed. The low bits of a bucket's index select its
//! *stripe*; each stripe has a lock of its own. There are never fewer buckets than stripes, so the
//! two buckets of a split or join have the same lock, and an object's stripe follows from its hash
//! alone. The hash, the order within buckets, the sizes at which buckets are split or joined, and
//! the order in which tables are walked are stock's.
//!
//! # Locking
//! An operation on a key holds the lock of its stripe. An operation that holds several locks takes
//! them in ascending order. A walk over a table of few stripes holds them all for one batch; over a
//! table of many stripes, one at a time. A deleted table is closed: later operations find that it
//! is gone ([`Gone`]).
//!
//! # Empty tables
//! Many programs make many tables that stay empty. The stripes of a table are made by the first
//! operation that may insert an object, and the buckets of a stripe by the first operation that
//! needs a bucket of that stripe. All other operations find a table without stripes, or a stripe
//! without buckets, empty.
//!
//! # Fixation
//! While `fixed` is above 0, buckets are neither split nor joined, and of the deleted objects with
//! one key the first stays, marked. So a walk that stopped at a bucket or key finds its place
//! again. The last unfix removes the marked objects.
//!
//! # Orderings
//! The counter `fixed` is sequentially consistent; the stripe locks give what correctness needs. A
//! walker increments it before it locks the stripe of its place. A thread that deletes from a
//! stripe, or splits or joins its buckets, loads the counter with that stripe locked for writing.
//! If it locks the stripe after the walker, it sees the increment; if before, its change is
//! complete before the walker looks. A join in another stripe can remove only buckets behind the
//! walker's place.
//! The last unfix takes the list `marked` under its mutex after it has decremented the counter. A
//! thread that marks an object adds to the list first and then loads the counter again. If it adds
//! too late for the unfix, the mutex makes it see the decrement, and it purges the chain itself
//! ([`HashTable::purge_if_unfixed`]). The same holds for an unfix that puts its list back.
//! The other counters are relaxed: `active` changes only under the lock of the stripe that it
//! concerns, and the rest are statistics or bounds.

use super::object::{HEAD_WORDS, Link, Object, Owned, Weight};
use super::try_lock::{TryLock, TryLockGuard};
use super::{Gone, Kind};
use purlin_kernel::waits;
use purlin_term::cache_lines::OneLine;
use purlin_term::readers::readers;
use purlin_term::release::{self, ETS_HASHES_HALVED};
use purlin_term::sync::{BiasedLock, Mutex, ReadGuard, WriteGuard};
use purlin_term::{Term, atom, compare, hash};
use smallvec::SmallVec;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of inserted objects between two checks whether the table still exists.
pub(crate) const LOOK_EVERY: usize = 4096;

/// Number of reads between writes after which the readers of a table with `read_concurrency` no
/// longer share a lock: so many reads pay for a write that has to find them.
pub(crate) const READS: u32 = 32;

/// Number of buckets of a new table, and the minimum.
const FIRST_SLOTS: usize = 256;
/// Buckets beyond the first are accounted for in steps of this many.
const STEP_SLOTS: usize = 2048;
/// Words of the directory of steps.
const DIRECTORY_WORDS: usize = 262;
/// Maximum number of buckets that one operation splits or joins.
const RESIZES: usize = 5;
/// Number of stripes of a table with `write_concurrency`, which are walked one by one.
pub(crate) const FINE_STRIPES: usize = 64;

/// The buckets of a stripe: none until the first is needed.
#[derive(Default)]
struct Buckets {
    chains: Vec<Link>,
    /// Whether the table was deleted.
    closed: bool,
}

impl Buckets {
    const fn new(closed: bool) -> Buckets {
        Buckets {
            chains: Vec::new(),
            closed,
        }
    }
    fn check(&self) -> Result<(), Gone> {
        if self.closed { Err(Gone) } else { Ok(()) }
    }
    /// The first object of a chain.
    #[inline]
    fn first(&self, at: usize) -> Result<Option<&Owned>, Gone> {
        match self.chains.get(at) {
            Some(chain) => Ok(chain.as_ref()),
            None => self.check().map(|()| None),
        }
    }
    /// A chain into which an object may be inserted. `least`: the initial number of chains of a
    /// stripe.
    #[inline]
    fn chain(&mut self, at: usize, least: usize) -> Result<&mut Link, Gone> {
        if self.chains.is_empty() {
            self.check()?;
            self.make(least);
        }
        self.chains.get_mut(at).ok_or(Gone)
    }
    #[cold]
    fn make(&mut self, least: usize) {
        self.chains = (0..least).map(|_| None).collect();
    }
    /// A chain, if it has ever been needed.
    #[inline]
    fn existing(&mut self, at: usize) -> Result<Option<&mut Link>, Gone> {
        self.check()?;
        Ok(self.chains.get_mut(at))
    }
}

/// A lock and its buckets. Padded, because other threads use the neighbours.
struct Stripe {
    _line: OneLine,
    buckets: BiasedLock<Buckets, READS>,
    /// Number of live objects, and of their words; written under the lock.
    items: AtomicUsize,
    words: AtomicUsize,
}

impl Stripe {
    const fn new(closed: bool, for_many_readers: bool) -> Stripe {
        Stripe {
            _line: OneLine,
            buckets: BiasedLock::new(Buckets::new(closed), for_many_readers),
            items: AtomicUsize::new(0),
            words: AtomicUsize::new(0),
        }
    }
}

/// The stripes of a table that has been used or deleted.
enum Stripes {
    Own(Box<[Stripe]>),
    /// The table was deleted before it was used.
    Closed,
}

/// The shared, immutable stripes of all tables that were deleted before they were used.
static CLOSED: [Stripe; FINE_STRIPES] = [const { Stripe::new(true, false) }; FINE_STRIPES];

/// See the module head.
pub struct HashTable {
    kind: Kind,
    keypos: usize,
    /// Unset until the table is used.
    stripes: OnceLock<Stripes>,
    /// Binary logarithm of the number of stripes.
    shift: u32,
    active: AtomicUsize,
    /// Number of buckets accounted for.
    slots: AtomicUsize,
    /// Number of live objects; not maintained if stripes are walked one by one.
    items: AtomicUsize,
    /// Words of all objects that lie in shared regions.
    shared: AtomicUsize,
    fixed: AtomicUsize,
    /// Buckets with marked objects.
    marked: Mutex<Vec<usize>>,
    resizing: TryLock,
    /// `read_concurrency`.
    for_many_readers: bool,
}

/// The hash of a key. It equals stock's for keys whose hash does not depend on the run.
#[inline]
pub(crate) fn key_hash(key: Term) -> u32 {
    let h = if key.is_atom() {
        u64::from(atom::name_hash(key))
    } else {
        hash::salted(key, 0)
    };
    let h = if release::has(ETS_HASHES_HALVED) {
        h >> 1
    } else {
        h
    };
    h as u32 & 0x7FFF_FFFF
}

/// The decision on an object that was shown to a writing walk.
pub(crate) enum Verdict {
    Keep,
    Delete,
    Replace(Owned),
}

/// The outcome of changing an object.
pub enum Change {
    /// It was changed in place, or stays as it is.
    None,
    Replace(Owned),
    /// Nothing is done; a default that was about to be inserted is dropped.
    Abort,
}

/// Receives the objects of a walk.
pub(crate) trait Visitor {
    /// Receives one live object, under its lock.
    fn object(&mut self, o: &Object) -> Verdict;
    /// Whether to continue; asked between buckets.
    fn go_on(&mut self) -> bool;
    /// The kind of objects that [`HashTable::scan`] shows it.
    fn which(&self) -> Which {
        Which::Live
    }
}

/// The kind of objects of a table to look at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Live,
    /// Also objects that were deleted while the table is fixed and are still there.
    Kept,
}

impl Which {
    fn has(self, o: &Object) -> bool {
        !o.deleted || self == Which::Kept
    }
}

/// The live objects with one key.
pub(crate) struct Matches<'a> {
    at: Option<&'a Owned>,
    table: &'a HashTable,
    key: Term,
    hash: u32,
}

impl<'a> Iterator for Matches<'a> {
    type Item = &'a Object;
    #[inline]
    fn next(&mut self) -> Option<&'a Object> {
        while let Some(o) = self.at {
            self.at = o.next.as_ref();
            if !o.deleted && self.table.has_key(o, self.key, self.hash) {
                if self.table.kind == Kind::Set {
                    self.at = None;
                }
                return Some(o);
            }
        }
        None
    }
}

/// Number of buckets that are searched for an object one at a time.
const LOOKED_AT_ALONE: usize = 16;

/// Read locks of a walk.
#[expect(clippy::large_enum_variant, reason = "lives on the stack, for a walk")]
enum ReadLocks<'a> {
    All(SmallVec<[ReadGuard<'a, Buckets>; 16]>),
    One(ReadGuard<'a, Buckets>),
}

/// Write locks of a walk.
#[expect(clippy::large_enum_variant, reason = "as above")]
enum WriteLocks<'a> {
    All(SmallVec<[WriteGuard<'a, Buckets>; 16]>),
    One(WriteGuard<'a, Buckets>),
}

impl HashTable {
    /// Makes an empty table. `stripes` is a power of two, at most the minimum number of buckets.
    /// `for_many_readers`: see [`BiasedLock::new`].
    pub fn new(kind: Kind, keypos: usize, stripes: usize, for_many_readers: bool) -> HashTable {
        debug_assert!(stripes.is_power_of_two() && stripes <= FINE_STRIPES);
        HashTable {
            kind,
            keypos,
            stripes: OnceLock::new(),
            shift: stripes.trailing_zeros(),
            active: AtomicUsize::new(FIRST_SLOTS),
            slots: AtomicUsize::new(FIRST_SLOTS),
            items: AtomicUsize::new(0),
            shared: AtomicUsize::new(0),
            fixed: AtomicUsize::new(0),
            marked: Mutex::new(Vec::new()),
            resizing: TryLock::new(),
            for_many_readers,
        }
    }

    /// The number of stripes that the table has or will have.
    #[inline]
    fn width(&self) -> usize {
        1 << self.shift
    }
    fn fine(&self) -> bool {
        self.width() >= FINE_STRIPES
    }
    /// Whether nothing was ever inserted.
    #[inline]
    fn is_unused(&self) -> bool {
        self.stripes.get().is_none()
    }
    #[inline]
    fn stripes(&self) -> &[Stripe] {
        match self.stripes.get() {
            Some(Stripes::Own(s)) => s,
            _ => self.make_stripes(),
        }
    }
    #[cold]
    fn make_stripes(&self) -> &[Stripe] {
        let n = self.width();
        let make = || {
            Stripes::Own(
                (0..n)
                    .map(|_| Stripe::new(false, self.for_many_readers))
                    .collect(),
            )
        };
        match self.stripes.get_or_init(make) {
            Stripes::Own(s) => s,
            Stripes::Closed => &CLOSED[..n],
        }
    }
    #[inline]
    fn stripe(&self, ix: usize) -> &Stripe {
        &self.stripes()[ix & (self.width() - 1)]
    }
    /// The initial number of chains of a stripe.
    #[inline]
    fn first_chains(&self) -> usize {
        FIRST_SLOTS >> self.shift
    }
    /// Locks a stripe to look a key up.
    #[inline]
    fn read(&self, ix: usize) -> ReadGuard<'_, Buckets> {
        let (lock, readers) = (&self.stripe(ix).buckets, readers());
        match lock.try_read(readers) {
            Some(g) => g,
            None => waits::held(|| lock.read(readers)),
        }
    }
    /// Locks a stripe for a walk.
    fn read_long(&self, ix: usize) -> ReadGuard<'_, Buckets> {
        let lock = &self.stripe(ix).buckets;
        match lock.try_read_long() {
            Some(g) => g,
            None => waits::held(|| lock.read_long()),
        }
    }
    #[inline]
    fn write(&self, ix: usize) -> WriteGuard<'_, Buckets> {
        let (lock, readers) = (&self.stripe(ix).buckets, readers());
        match lock.try_write(readers) {
            Some(g) => g,
            None => waits::held(|| lock.write(readers)),
        }
    }
    /// The bucket of a hash. Valid for as long as the lock of its stripe is held.
    #[inline]
    fn bucket(&self, hash: u32) -> usize {
        let active = self.active.load(Ordering::Relaxed);
        let mask = mask(active);
        let ix = hash as usize & mask;
        if ix >= active { ix & (mask >> 1) } else { ix }
    }
    #[inline]
    fn has_key(&self, o: &Object, key: Term, hash: u32) -> bool {
        o.hash == hash && compare::eq_exact(key, o.element(self.keypos))
    }
    fn is_fixed(&self) -> bool {
        self.fixed.load(Ordering::SeqCst) > 0
    }

    /// Number of live objects, and of their words, headers included.
    pub fn size(&self) -> (usize, usize) {
        if self.is_unused() {
            return (0, 0);
        }
        self.stripes().iter().fold((0, 0), |(n, w), s| {
            (
                n + s.items.load(Ordering::Relaxed),
                w + s.words.load(Ordering::Relaxed),
            )
        })
    }
    /// Words of the buckets beyond those of a new table.
    pub(crate) fn bucket_words(&self) -> usize {
        match self.slots.load(Ordering::Relaxed) - FIRST_SLOTS {
            0 => 0,
            n => n + DIRECTORY_WORDS,
        }
    }
    /// Number of buckets.
    pub fn active(&self) -> usize {
        self.active.load(Ordering::Relaxed)
    }
    /// Counts a change in stripe `s`, whose lock is held for writing.
    #[inline]
    fn count(&self, s: &Stripe, items: isize, weight: Weight) {
        let add = |a: &AtomicUsize, n: isize| {
            a.store(
                a.load(Ordering::Relaxed).wrapping_add_signed(n),
                Ordering::Relaxed,
            )
        };
        if items != 0 {
            add(&s.items, items);
            if self.width() == 1 {
                add(&self.items, items);
            } else if !self.fine() {
                self.items.fetch_add(items as usize, Ordering::Relaxed);
            }
        }
        if weight.words != 0 {
            add(&s.words, weight.words);
        }
        if weight.shared != 0 {
            self.shared
                .fetch_add(weight.shared as usize, Ordering::Relaxed);
        }
    }
    /// Words of [`size`](Self::size) that lie in shared regions.
    pub(crate) fn shared_words(&self) -> isize {
        self.shared.load(Ordering::Relaxed) as isize
    }
    /// Number of live objects: exact, or estimated from one stripe.
    fn items(&self, s: &Stripe) -> usize {
        if self.fine() {
            s.items.load(Ordering::Relaxed) * self.width()
        } else {
            self.items.load(Ordering::Relaxed)
        }
    }

    /// Calls `f` with the live objects that have `key`.
    #[inline]
    pub(crate) fn with_key<R>(&self, key: Term, f: impl FnOnce(Matches) -> R) -> Result<R, Gone> {
        if self.is_unused() {
            return Ok(f(Matches {
                at: None,
                table: self,
                key,
                hash: 0,
            }));
        }
        let hash = key_hash(key);
        let b = self.read(hash as usize);
        let at = b.first(self.bucket(hash) >> self.shift)?;
        Ok(f(Matches {
            at,
            table: self,
            key,
            hash,
        }))
    }

    /// Calls `f` with each object that has `key`, including deleted ones that are kept.
    pub(crate) fn each_kept(&self, key: Term, mut f: impl FnMut(&Object)) -> Result<(), Gone> {
        if self.is_unused() {
            return Ok(());
        }
        let hash = key_hash(key);
        let b = self.read(hash as usize);
        let mut at = b.first(self.bucket(hash) >> self.shift)?;
        while let Some(o) = at {
            if self.has_key(o, key, hash) {
                f(o);
            }
            at = o.next.as_ref();
        }
        Ok(())
    }

    /// Inserts `o`. With `new_only`, only if no object has its key. Returns whether it was
    /// inserted.
    pub fn put(&self, o: Owned, new_only: bool) -> Result<bool, Gone> {
        let mut o = o;
        o.hash = key_hash(o.element(self.keypos));
        let hash = o.hash as usize;
        let done = self.put_in(&mut self.write(hash), o, new_only)?;
        self.grow_if_full(hash);
        Ok(done)
    }

    fn grow_if_full(&self, ix: usize) {
        let items = self.items(self.stripe(ix));
        if items > self.active.load(Ordering::Relaxed) && !self.is_fixed() {
            self.grow(items);
        }
    }

    /// Inserts all `objects` atomically. With `new_only`, inserts nothing if one of the keys
    /// exists. `goes_on` is asked now and then, so that the deletion of the table need not wait
    /// until all are inserted.
    pub(crate) fn put_all(
        &self,
        mut objects: Vec<Owned>,
        new_only: bool,
        goes_on: impl Fn() -> bool,
    ) -> Result<bool, Gone> {
        let n = self.width();
        let mut wanted = [false; FIRST_SLOTS];
        for o in &mut objects {
            o.hash = key_hash(o.element(self.keypos));
            wanted[o.hash as usize & (n - 1)] = true;
        }
        // Many objects need new buckets during the insertion, or chains would get long. So this
        // takes all stripes, and the right to resize before them, since a resizing thread waits for
        // a stripe.
        let many = objects.len() > FIRST_SLOTS / 4;
        let mut resizing: Option<TryLockGuard> = None;
        if many {
            while resizing.is_none() {
                resizing = self.resizing.try_lock();
                if resizing.is_none() {
                    std::thread::yield_now();
                }
            }
            wanted = [true; FIRST_SLOTS];
        }
        let mut locks: Vec<Option<WriteGuard<Buckets>>> =
            (0..n).map(|i| wanted[i].then(|| self.write(i))).collect();
        if locks.iter().flatten().any(|b| b.closed) {
            return Err(Gone);
        }
        if new_only {
            for o in &objects {
                let Some(b) = &locks[o.hash as usize & (n - 1)] else {
                    continue;
                };
                let at = b.first(self.bucket(o.hash) >> self.shift)?;
                let mut found = Matches {
                    at,
                    table: self,
                    key: o.element(self.keypos),
                    hash: o.hash,
                };
                if found.next().is_some() {
                    return Ok(false);
                }
            }
        }
        let mut last = 0;
        for (i, o) in objects.into_iter().enumerate() {
            if i % LOOK_EVERY == LOOK_EVERY - 1 && !goes_on() {
                return Err(Gone);
            }
            last = o.hash as usize;
            if let Some(b) = &mut locks[last & (n - 1)] {
                self.put_in(b, o, false)?;
            }
            let active = self.active();
            if many && self.items(self.stripe(last)) > active && !self.is_fixed() {
                let from = self.split_from(active);
                if let Some(b) = &mut locks[from & (n - 1)] {
                    self.split(b, active);
                }
            }
        }
        drop(locks);
        drop(resizing);
        while {
            let before = self.active();
            self.grow_if_full(last);
            self.active() > before
        } {}
        Ok(true)
    }

    /// Inserts `o`, whose hash is set, into its bucket.
    fn put_in(&self, buckets: &mut Buckets, mut o: Owned, new_only: bool) -> Result<bool, Gone> {
        let (hash, s) = (o.hash, self.stripe(o.hash as usize));
        let key = o.element(self.keypos);
        let weight = o.weight(HEAD_WORDS);
        let mut at: *mut Link =
            buckets.chain(self.bucket(hash) >> self.shift, self.first_chains())?;
        // SAFETY: `at` always is a link of this bucket's chain, which the write lock makes ours
        // alone; links are taken out and put back one at a time.
        unsafe {
            while let Some(b) = &mut *at {
                if self.has_key(b, key, hash) {
                    break;
                }
                at = &mut b.next;
            }
            if let Some(found) = &mut *at {
                match self.kind {
                    Kind::Set => {
                        if found.deleted {
                            self.count(s, 1, Weight::default());
                        } else if new_only {
                            return Ok(false);
                        }
                        self.count(s, 0, weight - found.weight(HEAD_WORDS));
                        o.next = found.next.take();
                        *at = Some(o);
                        return Ok(true);
                    }
                    _ if new_only => {
                        let mut q: &Link = &*at;
                        while let Some(b) = q {
                            if !self.has_key(b, key, hash) {
                                break;
                            }
                            if !b.deleted {
                                return Ok(false);
                            }
                            q = &b.next;
                        }
                    }
                    Kind::Bag => {
                        let mut q = at;
                        while let Some(b) = &mut *q {
                            if !self.has_key(b, key, hash) {
                                break;
                            }
                            if b.is(o.tuple()) {
                                if b.deleted {
                                    b.deleted = false;
                                    self.count(s, 1, Weight::default());
                                    if q != at {
                                        // The object of a key that was inserted last comes first.
                                        if let Some(mut b) = (*q).take() {
                                            *q = b.next.take();
                                            b.next = (*at).take();
                                            *at = Some(b);
                                        }
                                    }
                                }
                                return Ok(true);
                            }
                            q = &mut b.next;
                        }
                    }
                    _ => {}
                }
            }
            o.next = (*at).take();
            *at = Some(o);
        }
        self.count(s, 1, weight);
        Ok(true)
    }

    /// Calls `f` with the object that has `key` (tables of kind `set`); `f` may change or replace
    /// it. If there is none, inserts `default` first. `None` if there is none and no default.
    pub fn modify<R>(
        &self,
        key: Term,
        default: Option<&mut dyn FnMut() -> Owned>,
        f: impl FnOnce(&mut Owned) -> (Change, R),
    ) -> Result<Option<R>, Gone> {
        if default.is_none() && self.is_unused() {
            return Ok(None);
        }
        let hash = key_hash(key);
        let mut buckets = self.write(hash as usize);
        let s = self.stripe(hash as usize);
        let mut at: *mut Link =
            buckets.chain(self.bucket(hash) >> self.shift, self.first_chains())?;
        // SAFETY: `at` always is a link of this bucket's chain, which the write lock makes ours
        // alone.
        let r = unsafe {
            while let Some(b) = &mut *at {
                if self.has_key(b, key, hash) {
                    break;
                }
                at = &mut b.next;
            }
            let live = (*at).as_ref().is_some_and(|b| !b.deleted);
            if live {
                let Some(b) = &mut *at else { return Ok(None) };
                let (change, r) = f(b);
                if let Change::Replace(mut new) = change {
                    new.hash = hash;
                    self.count(s, 0, new.weight(0) - b.weight(0));
                    new.next = b.next.take();
                    *b = new;
                }
                return Ok(Some(r));
            }
            let Some(default) = default else {
                return Ok(None);
            };
            let mut o = default();
            o.hash = hash;
            let (change, r) = f(&mut o);
            match change {
                Change::Replace(mut new) => {
                    new.hash = hash;
                    self.put_in(&mut buckets, new, false)?;
                }
                Change::None => {
                    self.put_in(&mut buckets, o, false)?;
                }
                Change::Abort => return Ok(Some(r)),
            }
            r
        };
        drop(buckets);
        self.grow_if_full(hash as usize);
        Ok(Some(r))
    }

    /// Removes, in order, the live objects with `key` for which `which` holds, at most one if
    /// `once`. Shows them to `see` first.
    pub(crate) fn erase(
        &self,
        key: Term,
        once: bool,
        which: impl Fn(&Object) -> bool,
        mut see: impl FnMut(&Object),
    ) -> Result<(), Gone> {
        if self.is_unused() {
            return Ok(());
        }
        let hash = key_hash(key);
        let ix;
        let mut out: Vec<Owned> = Vec::new();
        {
            let mut buckets = self.write(hash as usize);
            let s = self.stripe(hash as usize);
            ix = self.bucket(hash);
            let Some(chain) = buckets.existing(ix >> self.shift)? else {
                return Ok(());
            };
            let mut at: *mut Link = chain;
            let (mut seen, mut taken, mut marked) = (0, 0, false);
            // SAFETY: `at` always is a link of this bucket's chain, which the write lock makes ours
            // alone. No reference to an object is used after it is unlinked.
            unsafe {
                while let Some(b) = &mut *at {
                    if !b.deleted && self.has_key(b, key, hash) {
                        seen += 1;
                        if which(b) {
                            taken += 1;
                            see(b);
                            if seen == 1 && self.is_fixed() {
                                self.mark(b, s, ix);
                                marked = true;
                            } else if let Some(o) = self.unlink(at, s) {
                                out.push(o);
                                if once {
                                    break;
                                }
                                continue;
                            }
                            if once {
                                break;
                            }
                        }
                    } else if taken > 0 && !b.deleted {
                        break;
                    }
                    at = &mut b.next;
                }
            }
            if marked {
                self.purge_if_unfixed(chain, s);
            }
            if taken == 0 {
                return Ok(());
            }
        }
        self.shrink_if_empty(ix);
        Ok(())
    }

    /// Marks an object as deleted while the table is fixed.
    fn mark(&self, o: &mut Owned, s: &Stripe, ix: usize) {
        o.deleted = true;
        self.count(s, -1, Weight::default());
        self.marked.lock().push(ix);
    }

    /// Removes the object of a link from its chain.
    ///
    /// # Safety
    /// `at` is a link of a chain that the caller has locked for writing. There are no references to
    /// the link or its object.
    unsafe fn unlink(&self, at: *mut Link, s: &Stripe) -> Option<Owned> {
        // SAFETY: by the contract, the link is the caller's alone.
        unsafe {
            let mut o = (*at).take()?;
            *at = o.next.take();
            let gone = Weight::default() - o.weight(HEAD_WORDS);
            self.count(s, -((!o.deleted) as isize), gone);
            Some(o)
        }
    }

    /// Calls `f` with the live objects of a bucket. `None` beyond the end, `Some(None)` just behind
    /// the last bucket.
    pub fn slot<R>(
        &self,
        ix: usize,
        f: impl FnOnce(&mut dyn Iterator<Item = &Object>) -> R,
    ) -> Result<Option<Option<R>>, Gone> {
        let b = match self.is_unused() {
            true => None,
            false => Some(self.read(ix)),
        };
        b.as_ref().map_or(Ok(()), |b| b.check())?;
        let active = self.active();
        if ix >= active {
            return Ok((ix == active).then_some(None));
        }
        let mut at = match &b {
            Some(b) => b.first(ix >> self.shift)?,
            None => None,
        };
        let mut it = std::iter::from_fn(|| {
            while let Some(o) = at {
                at = o.next.as_ref();
                if !o.deleted {
                    return Some(&**o);
                }
            }
            None
        });
        Ok(Some(Some(f(&mut it))))
    }

    /// Calls `f` with the first object; `None` if there is none.
    pub fn first<R>(&self, which: Which, f: impl FnOnce(&Object) -> R) -> Result<Option<R>, Gone> {
        self.first_from(0, which, f)
    }

    fn first_from<R>(
        &self,
        from: usize,
        which: Which,
        f: impl FnOnce(&Object) -> R,
    ) -> Result<Option<R>, Gone> {
        struct First<R, F>(Option<F>, Option<R>, Which);
        impl<R, F: FnOnce(&Object) -> R> Visitor for First<R, F> {
            fn object(&mut self, o: &Object) -> Verdict {
                if let Some(f) = self.0.take() {
                    self.1 = Some(f(o));
                }
                Verdict::Keep
            }
            fn go_on(&mut self) -> bool {
                self.0.is_some()
            }
            fn which(&self) -> Which {
                self.2
            }
        }
        if self.is_unused() {
            return Ok(None);
        }
        // Usually one of the next buckets has an object: one lock at a time suffices to find it.
        let mut ix = from;
        for _ in 0..LOOKED_AT_ALONE {
            let b = self.read(ix);
            let mut at = b.first(ix >> self.shift)?;
            while let Some(o) = at {
                if which.has(o) {
                    return Ok(Some(f(o)));
                }
                at = o.next.as_ref();
            }
            drop(b);
            match self.following(ix) {
                Some(next) => ix = next,
                None => break,
            }
        }
        // Other threads may have moved objects meanwhile. That there are none can only be said with
        // everything locked.
        let mut v = First(Some(f), None, which);
        if self.scan(ix, &mut v)?.is_some() {
            self.unfix(1);
        }
        Ok(v.1)
    }

    /// Calls `f` with the first object of the key behind `key` in walking order. `None` if `key`
    /// does not exist, `Some(None)` if it is the last.
    pub fn next<R>(
        &self,
        key: Term,
        which: Which,
        f: impl FnOnce(&Object) -> R,
    ) -> Result<Option<Option<R>>, Gone> {
        if self.is_unused() {
            return Ok(None);
        }
        let hash = key_hash(key);
        let b = self.read(hash as usize);
        let ix = self.bucket(hash);
        let mut at = b.first(ix >> self.shift)?;
        let mut seen = false;
        while let Some(o) = at {
            let this = self.has_key(o, key, hash);
            if seen && which.has(o) && (!this || self.kind == Kind::Set) {
                return Ok(Some(Some(f(o))));
            }
            seen |= this;
            at = o.next.as_ref();
        }
        drop(b);
        if !seen {
            return Ok(None);
        }
        match self.following(ix) {
            Some(next) => Ok(Some(self.first_from(next, which, f)?)),
            None => Ok(Some(None)),
        }
    }

    /// The bucket that walks visit after `ix`.
    #[inline]
    fn following(&self, ix: usize) -> Option<usize> {
        let active = self.active();
        if !self.fine() {
            return (ix + 1 < active).then_some(ix + 1);
        }
        let n = self.width();
        if ix + n < active {
            return Some(ix + n);
        }
        match (ix + n + 1) & (n - 1) {
            0 => None,
            i => Some(i),
        }
    }

    fn read_locks(&self, ix: usize) -> ReadLocks<'_> {
        if self.fine() {
            ReadLocks::One(self.read_long(ix))
        } else {
            ReadLocks::All((0..self.width()).map(|i| self.read_long(i)).collect())
        }
    }
    fn write_locks(&self, ix: usize) -> WriteLocks<'_> {
        if self.fine() {
            WriteLocks::One(self.write(ix))
        } else {
            WriteLocks::All((0..self.width()).map(|i| self.write(i)).collect())
        }
    }

    /// Shows the objects from bucket `from` on until the visitor has enough. Returns the bucket at
    /// which to continue, `None` at the end. If there is such a bucket, the table has been fixed
    /// once to keep it in place; the caller ends that.
    pub(crate) fn scan(&self, from: usize, v: &mut dyn Visitor) -> Result<Option<usize>, Gone> {
        if self.is_unused() {
            return Ok(None);
        }
        let (n, which) = (self.width(), v.which());
        let mut locks = self.read_locks(from);
        let mut ix = from;
        loop {
            let buckets = match &locks {
                ReadLocks::All(l) => &l[ix & (n - 1)],
                ReadLocks::One(l) => l,
            };
            let mut at = buckets.first(ix >> self.shift)?;
            while let Some(o) = at {
                if which.has(o) {
                    v.object(o);
                }
                at = o.next.as_ref();
            }
            let Some(next) = self.following(ix) else {
                return Ok(None);
            };
            if !v.go_on() {
                self.fix();
                return Ok(Some(next));
            }
            if self.fine() && next & (n - 1) != ix & (n - 1) {
                drop(locks);
                locks = self.read_locks(next);
            }
            ix = next;
        }
    }

    /// As [`HashTable::scan`], and applies the visitor's verdict to each object. `fixed_by_walk`:
    /// how many of the table's fixations belong to the walk.
    pub(crate) fn scan_mut(
        &self,
        from: usize,
        v: &mut dyn Visitor,
        fixed_by_walk: usize,
    ) -> Result<Option<usize>, Gone> {
        if self.is_unused() {
            return Ok(None);
        }
        let n = self.width();
        let mut locks = self.write_locks(from);
        let mut ix = from;
        let end = loop {
            let buckets = match &mut locks {
                WriteLocks::All(l) => &mut l[ix & (n - 1)],
                WriteLocks::One(l) => l,
            };
            if let Some(b) = buckets.existing(ix >> self.shift)? {
                self.apply_verdicts(b, ix, v, fixed_by_walk, |_| true);
            }
            let Some(next) = self.following(ix) else {
                break None;
            };
            if !v.go_on() {
                self.fix();
                break Some(next);
            }
            if self.fine() && next & (n - 1) != ix & (n - 1) {
                drop(locks);
                locks = self.write_locks(next);
            }
            ix = next;
        };
        drop(locks);
        self.shrink_if_empty(ix);
        Ok(end)
    }

    /// Shows the objects with `key` as [`HashTable::scan_mut`] does.
    pub(crate) fn scan_key_mut(
        &self,
        key: Term,
        v: &mut dyn Visitor,
        fixed_by_walk: usize,
    ) -> Result<(), Gone> {
        if self.is_unused() {
            return Ok(());
        }
        let hash = key_hash(key);
        let ix;
        {
            let mut b = self.write(hash as usize);
            ix = self.bucket(hash);
            if let Some(b) = b.existing(ix >> self.shift)? {
                self.apply_verdicts(b, ix, v, fixed_by_walk, |o| self.has_key(o, key, hash));
            }
        }
        self.shrink_if_empty(ix);
        Ok(())
    }

    /// Applies the visitor's verdicts to the live objects of a chain for which `which` holds.
    fn apply_verdicts(
        &self,
        chain: &mut Link,
        ix: usize,
        v: &mut dyn Visitor,
        fixed_by_walk: usize,
        which: impl Fn(&Object) -> bool,
    ) {
        let s = self.stripe(ix);
        let mut marked = false;
        let mut at: *mut Link = chain;
        // SAFETY: `at` always is a link of this chain, which the caller borrows mutably. No
        // reference to an object is used after it is unlinked.
        unsafe {
            while let Some(o) = &mut *at {
                if !o.deleted && which(o) {
                    match v.object(o) {
                        Verdict::Keep => {}
                        Verdict::Delete => {
                            if self.fixed.load(Ordering::SeqCst) > fixed_by_walk {
                                self.mark(o, s, ix);
                                marked = true;
                            } else {
                                self.unlink(at, s);
                                continue;
                            }
                        }
                        Verdict::Replace(mut new) => {
                            new.hash = o.hash;
                            self.count(s, 0, new.weight(0) - o.weight(0));
                            new.next = o.next.take();
                            *o = new;
                        }
                    }
                }
                at = &mut o.next;
            }
        }
        if marked {
            self.purge_if_unfixed(chain, s);
        }
    }

    /// Deletes all objects. Returns their number, and the chains to be freed later.
    pub fn clear(&self) -> Result<(usize, Vec<Vec<Link>>), Gone> {
        if self.is_unused() {
            return Ok((0, Vec::new()));
        }
        let mut locks: Vec<_> = (0..self.width()).map(|i| self.write(i)).collect();
        locks.iter().try_for_each(|b| b.check())?;
        let n = self.size().0;
        if self.is_fixed() {
            for (i, b) in locks.iter_mut().enumerate() {
                let s = self.stripe(i);
                for (k, chain) in b.chains.iter_mut().enumerate() {
                    let mut at = chain.as_mut();
                    while let Some(o) = at {
                        if !o.deleted {
                            self.mark(o, s, (k << self.shift) | i);
                        }
                        at = o.next.as_mut();
                    }
                    self.purge_if_unfixed(chain, s);
                }
            }
            return Ok((n, Vec::new()));
        }
        let out = (locks.iter_mut())
            .map(|b| std::mem::take(&mut b.chains))
            .collect();
        self.forget_counts();
        Ok((n, out))
    }

    fn forget_counts(&self) {
        self.active.store(FIRST_SLOTS, Ordering::Relaxed);
        self.slots.store(FIRST_SLOTS, Ordering::Relaxed);
        self.items.store(0, Ordering::Relaxed);
        for s in self.stripes() {
            s.items.store(0, Ordering::Relaxed);
            s.words.store(0, Ordering::Relaxed);
        }
    }

    /// Closes the table: later operations find it gone. Returns what must be freed.
    pub(crate) fn close(&self) -> Vec<Vec<Link>> {
        if let Stripes::Closed = self.stripes.get_or_init(|| Stripes::Closed) {
            return Vec::new();
        }
        let mut locks: Vec<_> = (0..self.width()).map(|i| self.write(i)).collect();
        let close = |b: &mut Buckets| std::mem::replace(b, Buckets::new(true)).chains;
        let out = locks.iter_mut().map(|b| close(b)).collect();
        self.forget_counts();
        out
    }

    /// Keeps buckets and deleted keys in place until [`HashTable::unfix`].
    pub(crate) fn fix(&self) {
        self.fixed.fetch_add(1, Ordering::SeqCst);
    }
    pub(crate) fn fixations(&self) -> usize {
        self.fixed.load(Ordering::SeqCst)
    }
    /// Undoes `n` calls of [`HashTable::fix`].
    pub(crate) fn unfix(&self, n: usize) {
        if self.fixed.fetch_sub(n, Ordering::SeqCst) == n {
            self.purge_marked();
        }
    }

    /// Frees all marked objects, unless the table is fixed.
    fn purge_marked(&self) {
        let mut marked = std::mem::take(&mut *self.marked.lock());
        while let Some(&ix) = marked.last() {
            let mut b = self.write(ix);
            if !self.is_fixed() {
                if let Some(chain) = b.chains.get_mut(ix >> self.shift) {
                    self.purge(chain, self.stripe(ix));
                }
                marked.pop();
                continue;
            }
            drop(b);
            // Fixed again by another process: the rest is left to its unfix.
            self.marked.lock().append(&mut marked);
            if !self.is_fixed() {
                // Its unfix may have looked at the list before.
                marked = std::mem::take(&mut *self.marked.lock());
            }
        }
    }

    /// Frees the marked objects of a chain, whose stripe is locked for writing, if the table is no
    /// longer fixed. Called after objects were marked: the last unfix may have looked at the list
    /// of marked objects before they were entered.
    fn purge_if_unfixed(&self, chain: &mut Link, s: &Stripe) {
        if !self.is_fixed() {
            self.purge(chain, s);
        }
    }

    /// Frees the marked objects of a chain.
    fn purge(&self, chain: &mut Link, s: &Stripe) {
        let mut at: *mut Link = chain;
        // SAFETY: `at` always is a link of this chain, which the caller borrows mutably. No
        // reference to an object is used after it is unlinked.
        unsafe {
            while let Some(o) = &mut *at {
                if o.deleted {
                    self.unlink(at, s);
                } else {
                    at = &mut o.next;
                }
            }
        }
    }

    /// Splits buckets until there are as many as objects, but only a few at a time.
    fn grow(&self, items: usize) {
        for _ in 0..RESIZES {
            let Some(_resizing) = self.resizing.try_lock() else {
                return;
            };
            let active = self.active();
            let from = self.split_from(active);
            if items <= active {
                return;
            }
            let mut b = self.write(from);
            // The table may have been emptied while this waited for the lock.
            if b.closed || self.is_fixed() || self.active() != active {
                return;
            }
            self.split(&mut b, active);
        }
    }

    /// Adds a bucket to a table of `active`, made from one in `b`, the stripe of both.
    fn split(&self, b: &mut Buckets, active: usize) {
        let to = active;
        let from = self.split_from(active);
        if active == self.slots.load(Ordering::Relaxed) {
            self.slots.fetch_add(STEP_SLOTS, Ordering::Relaxed);
        }
        let b = &mut b.chains;
        if b.is_empty() {
            b.extend((0..self.first_chains()).map(|_| None));
        }
        if b.len() <= to >> self.shift {
            b.push(None);
        }
        self.active.store(active + 1, Ordering::Relaxed);
        // Marked objects go now: the end of the fixation looks for them only here.
        let s = self.stripe(from);
        self.purge(&mut b[from >> self.shift], s);
        let m = mask(active + 1);
        let (mut keep, mut give): (Link, Link) = (None, None);
        let mut chain = b[from >> self.shift].take();
        {
            let (mut keep, mut give) = (&mut keep, &mut give);
            while let Some(mut o) = chain {
                chain = o.next.take();
                if o.hash as usize & m == to {
                    give = &mut give.insert(o).next;
                } else {
                    keep = &mut keep.insert(o).next;
                }
            }
        }
        b[from >> self.shift] = keep;
        b[to >> self.shift] = give;
    }
    /// The bucket that is split when there are `active`.
    fn split_from(&self, active: usize) -> usize {
        active & (mask(active) >> usize::from(!active.is_power_of_two()))
    }

    fn shrink_limit(&self) -> usize {
        let slots = self.slots.load(Ordering::Relaxed);
        if slots >= FIRST_SLOTS + 2 * STEP_SLOTS {
            (slots - STEP_SLOTS) / 2
        } else {
            0
        }
    }

    fn shrink_if_empty(&self, ix: usize) {
        let items = self.items(self.stripe(ix));
        for _ in 0..RESIZES {
            if items >= self.shrink_limit() || self.is_fixed() {
                return;
            }
            let Some(_resizing) = self.resizing.try_lock() else {
                return;
            };
            let active = self.active();
            let from = active - 1;
            let to = from & (mask(active) >> 1);
            if active <= FIRST_SLOTS {
                return;
            }
            let mut b = self.write(to);
            // As in `grow`.
            if b.closed || self.is_fixed() || self.active() != active {
                return;
            }
            let b = &mut b.chains;
            self.active.store(from, Ordering::Relaxed);
            if self.slots.load(Ordering::Relaxed) - from >= STEP_SLOTS {
                self.slots.fetch_sub(STEP_SLOTS, Ordering::Relaxed);
            }
            debug_assert_eq!(b.len() - 1, from >> self.shift);
            let mut chain = b.pop().flatten();
            // As in a split.
            self.purge(&mut chain, self.stripe(from));
            let tail = b[to >> self.shift].take();
            let mut at = &mut chain;
            while let Some(o) = at {
                at = &mut o.next;
            }
            *at = tail;
            b[to >> self.shift] = chain;
            if b.capacity() > 4 * b.len() && b.capacity() > 64 {
                let half = b.capacity() / 2;
                b.shrink_to(half);
            }
        }
    }

    /// Statistics of chain lengths: mean, standard deviation, expected deviation, minimum, maximum;
    /// and the number of marked objects.
    pub(crate) fn chain_stats(&self) -> (f64, f64, f64, usize, usize, usize) {
        let (mut n, mut sum, mut sq, mut min, mut max, mut kept) =
            (0usize, 0usize, 0usize, usize::MAX, 0, 0);
        if self.is_unused() {
            return (0.0, 0.0, 0.0, 0, 0, 0);
        }
        for i in 0..self.width() {
            let b = self.read(i);
            // Chains that were never needed are empty.
            let unmade = self.first_chains() * usize::from(b.chains.is_empty() && !b.closed);
            n += unmade;
            min = if unmade > 0 { 0 } else { min };
            for chain in &b.chains {
                let mut len = 0;
                let mut at = chain.as_ref();
                while let Some(o) = at {
                    len += 1;
                    kept += o.deleted as usize;
                    at = o.next.as_ref();
                }
                n += 1;
                sum += len;
                sq += len * len;
                min = min.min(len);
                max = max.max(len);
            }
        }
        let n = n.max(1) as f64;
        let mean = sum as f64 / n;
        let dev = ((sq as f64 - mean * sum as f64) / n).sqrt();
        let expected = (mean * (1.0 - 1.0 / n)).sqrt();
        (mean, dev, expected, min, max, kept)
    }
}

/// The smallest mask of ones that covers indices below `active`.
#[inline(always)]
fn mask(active: usize) -> usize {
    usize::MAX >> (active - 1).leading_zeros()
}
