//! Natives of module `persistent_term`: a table that is read without locks and without copies.
//!
//! Keys and values lie in regions, which processes point into. [`slots`] holds the table itself.
//!
//! A large value is a counted region. The entry holds it, and so does each process that has read
//! it, until a collection finds that the process no longer refers to it. Replacing and erasing
//! therefore look at no process, and the memory is freed with the last holder. A process that holds
//! the region reads without a lock. One that does not takes the lock of the entry's shard, since
//! the value may be released at that moment.
//!
//! The first value of a key, if it is small and has no binaries, is packed with others and not
//! counted. When it is replaced or erased it is retired: its memory stays for the life of the
//! runtime, since any process may still point into it. It stops being a literal once the process
//! that retired it has ended its time slice; from then on its size is reported to its holders.
//! Later values of a key are counted even if small (up to [`MANY_REGIONS`]), so that a key costs at
//! most one retired value.
//!
//! # Orderings
//! The word of an entry's value is exchanged with `AcqRel` and loaded with `Acquire`: a reader that
//! sees a value sees the contents of its region, and the writer that releases the old value sees
//! those of its region. The count of a region is raised from the word only under the lock of the
//! shard, and the exchange is under that lock too, so no reader raises a count that was released.
//! Sizes and addresses of an entry belong to writers and are `Relaxed`.

mod slots;

use crate::cx::{BifResult, Cx, Fail};
use purlin_kernel::later;
use purlin_term::graph::Graph;
use purlin_term::heap::Heap;
use purlin_term::off_heap::OffHeap;
use purlin_term::payer;
use purlin_term::region::{self, Builder, is_counted_ptr, region_of};
use purlin_term::sync::{Mutex, MutexGuard};
use purlin_term::{Alloc, Term, am, compare, etf, hash, map};
use slots::{Hashed, SlotTable, Slots};
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

struct Entry {
    key: Term,
    hash: u32,
    /// The word of the value; that of `NON_VALUE` while it is erased.
    value: AtomicU64,
    /// Bytes of key and value.
    bytes: AtomicUsize,
    /// Address range of the value: first address, and the one behind it. Only writers change it.
    from: AtomicUsize,
    to: AtomicUsize,
}

struct Table {
    entries: SlotTable<Entry>,
    /// The lock of writers.
    writer: Mutex<Writer>,
}

struct Writer {
    /// Slots that are not empty, and those whose entry has a value.
    filled: usize,
    live: usize,
    /// Arrays that were the table before.
    spare: Vec<&'static Slots<Entry>>,
    arena: Arena,
}

/// Regions that stay, in which small terms are packed.
struct Arena {
    at: *mut Term,
    left_words: usize,
    off_heap: OffHeap,
}

// SAFETY: what it points to belongs to the holder of the arena.
unsafe impl Send for Arena {}

/// Words of a region of small terms.
const ARENA_WORDS: usize = purlin_term::region::CHUNK_BYTES / 8;

impl Arena {
    /// Makes room for `words` words.
    fn reserve(&mut self, words: usize) {
        if self.left_words < words {
            self.at = Builder::new(ARENA_WORDS).finish().base;
            self.left_words = ARENA_WORDS;
        }
    }
}

impl Alloc for Arena {
    fn alloc(&mut self, words: usize) -> *mut Term {
        assert!(words <= self.left_words, "room is reserved before");
        let p = self.at;
        self.at = p.wrapping_add(words);
        self.left_words -= words;
        p
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

/// Number of slots of an empty table.
const FIRST_SIZE: usize = 256;

fn table() -> &'static Table {
    static T: OnceLock<Table> = OnceLock::new();
    T.get_or_init(|| Table {
        entries: SlotTable::new(FIRST_SIZE),
        writer: Mutex::new(Writer {
            filled: 0,
            live: 0,
            spare: Vec::new(),
            arena: Arena {
                at: std::ptr::null_mut(),
                left_words: 0,
                off_heap: OffHeap::default(),
            },
        }),
    })
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock()
    }
    /// The entry of a key, and its value.
    fn find(&self, key: Term) -> Option<(&'static Entry, Term)> {
        let hash = hash::internal(key);
        self.entries.find(hash, |e| {
            let same = e.hash == hash && compare::eq_exact(e.key, key);
            // The value is read once: it may be erased by a second read, and another entry have the
            // value.
            same.then(|| e.get()).flatten().map(|v| (e, v))
        })
    }
    /// The entry of a key, even if it was erased.
    ///
    /// Keys that are equal but look different (`0.0` and `-0.0`) have entries of their own, at most
    /// one of which has a value. The caller holds the lock.
    fn entry(&self, _: &Writer, key: Term) -> Option<&'static Entry> {
        let hash = hash::internal(key);
        let bytes = std::cell::OnceCell::new();
        self.entries.find(hash, |e| {
            let same = e.hash == hash
                && compare::eq_exact(e.key, key)
                && (e.key.raw() == key.raw()
                    || *bytes.get_or_init(|| external(key)) == external(e.key));
            same.then_some(e)
        })
    }
    /// All entries that have a value, with the value. The caller holds the lock.
    fn live(&self, _: &Writer) -> impl Iterator<Item = (&'static Entry, Term)> {
        self.entries
            .entries()
            .filter_map(|e| e.get().map(|v| (e, v)))
    }
    /// Moves the entries that have a value to an array of `size` slots, which becomes the table.
    fn resize(&self, w: &mut Writer, size: usize) {
        w.filled = self
            .entries
            .resize(&mut w.spare, size, |e| e.get().is_some());
    }
}

impl Hashed for Entry {
    fn hash(&self) -> u32 {
        self.hash
    }
}

impl Entry {
    fn get(&self) -> Option<Term> {
        // SAFETY: only words of terms in regions, or immediates, are stored.
        let t = unsafe { Term::from_raw(self.value.load(Ordering::Acquire)) };
        (t != Term::NON_VALUE).then_some(t)
    }
    /// Reductions for a copy of key and value, or a comparison.
    fn reductions(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) / 128
    }
    fn shard(&self) -> MutexGuard<'static, ()> {
        static SHARDS: [Mutex<()>; 16] = [const { Mutex::new(()) }; 16];
        SHARDS[self.hash as usize % 16].lock()
    }
    /// Makes the process a holder of the value that it reads; `None` if the value was erased
    /// meanwhile.
    fn hold(&self, cx: &mut Cx, v: Term) -> Option<Term> {
        if v.is_immed() || !is_counted_ptr(v.ptr()) {
            return Some(v);
        }
        let h = &mut cx.heap;
        // A region that covers the address is the value's: no other can lie there while this one is
        // held.
        if h.off_heap.regions.covers(v.ptr()) || h.old_off_heap.regions.covers(v.ptr()) {
            return Some(v);
        }
        let _lock = self.shard();
        let v = self.get()?;
        if !v.is_immed() && is_counted_ptr(v.ptr()) {
            h.off_heap.regions.hold_pointer(v.ptr());
        }
        Some(v)
    }
    /// Stores another value, or none, and releases the old one.
    fn set(&self, value: Term) {
        let lock = self.shard();
        let old = self.value.swap(value.raw(), Ordering::AcqRel);
        drop(lock);
        // SAFETY: what was stored is a term.
        let old = unsafe { Term::from_raw(old) };
        if !old.is_immed()
            && is_counted_ptr(old.ptr())
            && let Some(r) = region_of(old.ptr())
        {
            r.set_literal(false);
            // SAFETY: the count was the entry's, and the entry no longer refers to the region.
            unsafe { r.release() };
        }
    }
}

/// Number of slots of the table.
pub fn slots() -> usize {
    table().entries.slots().len()
}

/// Calls `f` with all keys and values, unless another thread changes the table at this moment.
/// Nothing is erased before `f` returns.
pub fn try_all(f: &mut dyn FnMut(&[(Term, Term)])) {
    let t = table();
    if let Some(w) = t.writer.try_lock() {
        let all: Vec<(Term, Term)> = t.live(&w).map(|(e, v)| (e.key, v)).collect();
        f(&all);
    }
}

/// Address ranges of values that were replaced or erased: first address, and the one behind it.
static RETIRED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// The first few address ranges of values replaced or erased in this time slice. They count as
/// literals until it ends.
static LEAVING: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
const MOST_LEAVING: usize = 64;

impl Entry {
    /// Called before the value is replaced or erased.
    fn retire(&self) {
        let (from, to) = (
            self.from.load(Ordering::Relaxed),
            self.to.load(Ordering::Relaxed),
        );
        if from == to {
            return;
        }
        // Counted regions have a mark of their own, and their addresses are reused.
        if !is_counted_ptr(from as *const Term) {
            let mut r = RETIRED.lock();
            r.insert(from, to);
        }
        let mut l = LEAVING.lock();
        if l.is_empty() {
            later::add(Box::new(|| LEAVING.lock().clear()));
        }
        if l.len() < MOST_LEAVING {
            l.push((from, to));
        }
    }
}

/// Whether `p`, which points into a region, points into a literal: of a module, or a value of the
/// table.
pub(crate) fn is_literal(p: *const Term) -> bool {
    let at = p as usize;
    if LEAVING
        .lock()
        .iter()
        .any(|&(from, to)| (from..to).contains(&at))
    {
        return true;
    }
    if is_counted_ptr(p) {
        return region_of(p).is_some_and(|r| r.is_literal());
    }
    !is_retired(p)
}

/// Whether `p` points into a value that was replaced or erased.
fn is_retired(p: *const Term) -> bool {
    let r = RETIRED.lock();
    let at = p as usize;
    r.range(..=at).next_back().is_some_and(|(_, &to)| at < to)
}

/// A term copied to where all processes may point into it.
struct Published {
    term: Term,
    from: usize,
    bytes: usize,
}

/// Number of counted regions alive above which small values get none: each takes at least a page.
const MANY_REGIONS: usize = 1 << 14;

/// Lifetime of a published term.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// For ever.
    Always,
    /// For ever if it is small; otherwise the caller gets a count of its region.
    IfSmall,
    /// The caller gets a count of its region.
    Counted,
}

/// Copies a term to where all processes may point into it, keeping its sharing. Literals are copied
/// too, since their module may be purged.
fn publish(w: &mut Writer, heap: &Heap, t: Term, keep: Keep) -> Published {
    let g = Graph::<false>::whole(t, Some(heap));
    let words = g.words();
    // A value that stays when it is retired must keep neither counted binaries nor resources, whose
    // destructors would never run.
    let counted = match keep {
        Keep::Always => false,
        Keep::IfSmall => g.any_outside() && region::counted_totals().1 < MANY_REGIONS,
        Keep::Counted => true,
    };
    let (term, from) = if words == 0 {
        (t, 0)
    } else if words < ARENA_WORDS / 4 && !counted {
        w.arena.reserve(words);
        payer::bill_for_good(words * 8);
        let from = w.arena.at as usize;
        (g.copy(t, &mut w.arena), from)
    } else {
        let mut b = match keep {
            Keep::Always => {
                payer::bill_for_good(words * 8);
                Builder::new(words)
            }
            _ => Builder::counted(words),
        };
        let t = g.copy(t, &mut b);
        let r = b.finish();
        r.set_literal(true);
        (t, r.base as usize)
    };
    Published {
        term,
        from,
        bytes: words * 8,
    }
}

fn put_2(cx: &mut Cx, [key, value]: [Term; 2]) -> BifResult {
    let t = table();
    let mut w = t.lock();
    let other = t.find(key);
    if let Some((e, old)) = other
        && compare::eq_exact(old, value)
    {
        cx.bump(e.reductions());
        return Ok(am::OK);
    }
    put(cx, &mut w, key, value);
    // Readers find one or the other.
    if let Some((e, _)) = other
        && !t.entry(&w, key).is_some_and(|now| std::ptr::eq(now, e))
    {
        e.retire();
        e.set(Term::NON_VALUE);
        w.live -= 1;
    }
    Ok(am::OK)
}

/// As [`put_2`], but fails if the key has another value.
fn put_new_2(cx: &mut Cx, [key, value]: [Term; 2]) -> BifResult {
    let t = table();
    let mut w = t.lock();
    match t.find(key) {
        Some((e, old)) => {
            cx.bump(e.reductions());
            match compare::eq_exact(old, value) {
                true => Ok(am::OK),
                false => Err(Fail::Badarg),
            }
        }
        None => {
            put(cx, &mut w, key, value);
            Ok(am::OK)
        }
    }
}

/// The external format of a term.
fn external(t: Term) -> Vec<u8> {
    etf::encode(t, etf::encode::Options::default())
}

/// Gives the entry of exactly that key a value that differs from the current one. Creates an entry
/// if there is none.
fn put(cx: &mut Cx, w: &mut Writer, key: Term, value: Term) {
    let t = table();
    if let Some(e) = t.entry(w, key) {
        let (_, regions) = region::counted_totals();
        let keep = match regions < MANY_REGIONS {
            true => Keep::Counted,
            false => Keep::IfSmall,
        };
        let v = publish(w, &cx.heap, value, keep);
        let value_bytes = e.to.load(Ordering::Relaxed) - e.from.load(Ordering::Relaxed);
        let key_bytes = e.bytes.load(Ordering::Relaxed) - value_bytes;
        if e.get().is_some() {
            e.retire();
        } else {
            w.live += 1;
        }
        e.bytes.store(key_bytes + v.bytes, Ordering::Relaxed);
        e.from.store(v.from, Ordering::Relaxed);
        e.to.store(v.from + v.bytes, Ordering::Relaxed);
        e.set(v.term);
        cx.bump(e.reductions());
        return;
    }
    let size = t.entries.slots().len();
    if (w.filled + 1) * 2 > size {
        // Keeps the size if it is erased entries that fill the table.
        let size = if w.live * 4 >= size { size * 2 } else { size };
        t.resize(w, size);
    }
    let k = publish(w, &cx.heap, key, Keep::Always);
    let v = publish(w, &cx.heap, value, Keep::IfSmall);
    payer::bill_for_good(size_of::<Entry>());
    let e: &'static Entry = Box::leak(Box::new(Entry {
        key: k.term,
        hash: hash::internal(k.term),
        value: AtomicU64::new(v.term.raw()),
        bytes: AtomicUsize::new(k.bytes + v.bytes),
        from: AtomicUsize::new(v.from),
        to: AtomicUsize::new(v.from + v.bytes),
    }));
    t.entries.insert(e);
    cx.bump(e.reductions());
    w.filled += 1;
    w.live += 1;
}

pub fn get(cx: &mut Cx, key: Term) -> Option<Term> {
    let (e, v) = table().find(key)?;
    // Erased meanwhile: by now the key may have another value, or another entry.
    e.hold(cx, v).or_else(|| get(cx, key))
}
/// Calls `f` with keys and values until it returns false. The table does not change meanwhile.
pub fn each(mut f: impl FnMut(Term, Term) -> bool) {
    let t = table();
    let w = t.lock();
    let _ = t.live(&w).all(|(e, v)| f(e.key, v));
}
fn get_1(cx: &mut Cx, [key]: [Term; 1]) -> BifResult {
    get(cx, key).ok_or(Fail::Badarg)
}
fn get_2(cx: &mut Cx, [key, default]: [Term; 2]) -> BifResult {
    Ok(get(cx, key).unwrap_or(default))
}
fn get_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let t = table();
    let w = t.lock();
    let mut l = purlin_term::NIL;
    for (e, v) in t.live(&w) {
        let Some(v) = e.hold(cx, v) else { continue };
        let pair = cx.tuple(&[e.key, v]);
        l = cx.cons(pair, l);
    }
    cx.bump(w.live / 16);
    Ok(l)
}
fn info_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let t = table();
    let w = t.lock();
    cx.bump(w.filled / 16);
    let mut bytes = t.entries.slots().len() * size_of::<*const Entry>();
    for (e, _) in t.live(&w) {
        bytes += size_of::<Entry>() + e.bytes.load(Ordering::Relaxed);
    }
    let pairs = [
        (am::COUNT, Term::small(w.live as i64)),
        (am::MEMORY, Term::small(bytes as i64)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

fn erase_1(cx: &mut Cx, [key]: [Term; 1]) -> BifResult {
    let t = table();
    let mut w = t.lock();
    let Some((e, _)) = t.find(key) else {
        return Ok(am::FALSE);
    };
    // The last holder frees the memory.
    cx.bump(e.reductions());
    e.retire();
    e.set(Term::NON_VALUE);
    w.live -= 1;
    let mut size = t.entries.slots().len();
    while size > FIRST_SIZE && w.live * 4 < size {
        size /= 2;
    }
    if size < t.entries.slots().len() {
        t.resize(&mut w, size);
    }
    Ok(am::TRUE)
}
fn erase_persistent_terms_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let t = table();
    let mut w = t.lock();
    cx.bump(w.live);
    for (e, _) in t.live(&w) {
        e.retire();
        e.set(Term::NON_VALUE);
    }
    w.live = 0;
    t.resize(&mut w, FIRST_SIZE);
    Ok(am::TRUE)
}

crate::bifs! {
    Plain "persistent_term":"put"/2 = put_2 [writes(Cell)];
    Plain "persistent_term":"put_new"/2 = put_new_2 [writes(Cell) since(28) may_do_nothing];
    Plain "persistent_term":"get"/0 = get_0 [reads(All)];
    Plain "persistent_term":"get"/1 = get_1 [reads(Cell)];
    Plain "persistent_term":"get"/2 = get_2 [reads(Cell)];
    Plain "persistent_term":"erase"/1 = erase_1 [writes(Cell)];
    Plain "persistent_term":"info"/0 = info_0 [reads(All)];
    Plain "erts_internal":"erase_persistent_terms"/0 = erase_persistent_terms_0;
}
