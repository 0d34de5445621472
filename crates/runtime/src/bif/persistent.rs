//! Natives of module `persistent_term`: a table whose reads take no lock and copy nothing.
//!
//! Keys and values lie in regions; processes point into them. The table is an array of slots with open addressing,
//! and a slot once filled keeps its key for good: erasing a key empties its value. Readers may look at any time;
//! writers take a lock among themselves. A table that gets full is followed by one of twice the size, to which the
//! same entries belong.
//!
//! What was replaced or erased is retired: its memory is kept for the life of the runtime, since any process may
//! still point into it. So are old arrays of slots, which together are no larger than the current one.

use crate::cx::{BifResult, Cx, Fail};
use purlin_term::region::Builder;
use purlin_term::{Alloc, Term, am, compare, copy, hash, map};
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

struct Entry {
    key: Term,
    hash: u32,
    /// The word of the value; that of `NON_VALUE` while erased.
    value: AtomicU64,
    /// Bytes that the value takes.
    bytes: AtomicUsize,
}

type Slots = Box<[AtomicPtr<Entry>]>;

struct Table {
    slots: AtomicPtr<Slots>,
    /// Held by who changes the table: how many slots are filled.
    writer: Mutex<usize>,
}

const FIRST_SIZE: usize = 256;

fn new_slots(n: usize) -> *mut Slots {
    let slots: Slots = (0..n).map(|_| AtomicPtr::default()).collect();
    Box::into_raw(Box::new(slots))
}
fn table() -> &'static Table {
    static T: OnceLock<Table> = OnceLock::new();
    T.get_or_init(|| Table {
        slots: AtomicPtr::new(new_slots(FIRST_SIZE)),
        writer: Mutex::new(0),
    })
}

impl Table {
    fn slots(&self) -> &'static [AtomicPtr<Entry>] {
        // SAFETY: arrays of slots are never freed.
        unsafe { &*self.slots.load(Ordering::Acquire) }
    }
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.writer.lock().unwrap_or_else(|e| e.into_inner())
    }
    /// The entry of a key.
    fn find(&self, key: Term) -> Option<&'static Entry> {
        let hash = hash::internal(key);
        probe(self.slots(), hash, |e| {
            e.hash == hash && compare::eq_exact(e.key, key)
        })
        .ok()
    }
    /// All entries that have a value, with it.
    fn live(&self) -> impl Iterator<Item = (&'static Entry, Term)> {
        self.slots()
            .iter()
            // SAFETY: entries are never freed.
            .filter_map(|s| unsafe { s.load(Ordering::Acquire).as_ref() })
            .filter_map(|e| e.get().map(|v| (e, v)))
    }
}

impl Entry {
    fn get(&self) -> Option<Term> {
        // SAFETY: only words of terms in regions that stay are stored.
        let t = unsafe { Term::from_raw(self.value.load(Ordering::Acquire)) };
        (t != Term::NON_VALUE).then_some(t)
    }
}

/// The entry that `is_it` accepts among those at the places of `hash`, else the free slot where it would be.
fn probe(
    slots: &'static [AtomicPtr<Entry>],
    hash: u32,
    is_it: impl Fn(&Entry) -> bool,
) -> Result<&'static Entry, &'static AtomicPtr<Entry>> {
    // Sizes are powers of two, and at least half of the slots are free.
    let mut i = hash as usize;
    loop {
        let slot = &slots[i & (slots.len() - 1)];
        // SAFETY: entries are never freed.
        match unsafe { slot.load(Ordering::Acquire).as_ref() } {
            Some(e) if is_it(e) => return Ok(e),
            Some(_) => i += 1,
            None => return Err(slot),
        }
    }
}

/// Slots of the table.
pub fn slots() -> usize {
    table().slots().len()
}

/// Puts a term where all processes may point into, for good: the copy, and the bytes that it takes.
fn publish(t: Term) -> (Term, usize) {
    if t.is_immed() {
        return (t, 0);
    }
    // Literals are copied too: their module may be purged.
    let words = copy::size_whole(t);
    let mut b = Builder::new(words);
    let t = copy::copy_whole(t, &mut b);
    b.finish();
    (t, words * 8)
}

fn put_2(_cx: &mut Cx, [key, value]: [Term; 2]) -> BifResult {
    let t = table();
    let mut filled = t.lock();
    if let Some(e) = t.find(key) {
        if !e.get().is_some_and(|v| compare::eq_exact(v, value)) {
            let (v, bytes) = publish(value);
            e.bytes.store(bytes, Ordering::Relaxed);
            e.value.store(v.raw(), Ordering::Release);
        }
        return Ok(am::OK);
    }
    if (*filled + 1) * 2 > t.slots().len() {
        let old = t.slots();
        let new = new_slots(old.len() * 2);
        for s in old {
            let p = s.load(Ordering::Acquire);
            // SAFETY: entries and slots are never freed.
            unsafe {
                if let Some(e) = p.as_ref() {
                    if let Err(free) = probe(&*new, e.hash, |_| false) {
                        free.store(p, Ordering::Release);
                    }
                }
            }
        }
        t.slots.store(new, Ordering::Release);
    }
    let (k, key_bytes) = publish(key);
    let (v, value_bytes) = publish(value);
    let hash = hash::internal(k);
    let e = Box::into_raw(Box::new(Entry {
        key: k,
        hash,
        value: AtomicU64::new(v.raw()),
        bytes: AtomicUsize::new(key_bytes + value_bytes),
    }));
    if let Err(free) = probe(t.slots(), hash, |_| false) {
        free.store(e, Ordering::Release);
        *filled += 1;
    }
    Ok(am::OK)
}

fn get_1(_cx: &mut Cx, [key]: [Term; 1]) -> BifResult {
    table().find(key).and_then(Entry::get).ok_or(Fail::Badarg)
}
fn get_2(_cx: &mut Cx, [key, default]: [Term; 2]) -> BifResult {
    Ok(table().find(key).and_then(Entry::get).unwrap_or(default))
}
fn get_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let mut l = purlin_term::NIL;
    let mut n = 0;
    for (e, v) in table().live() {
        let pair = cx.tuple(&[e.key, v]);
        l = cx.cons(pair, l);
        n += 1;
    }
    cx.bump(n / 16);
    Ok(l)
}
fn info_0(cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let t = table();
    let (mut count, mut bytes) = (0, t.slots().len() * size_of::<AtomicPtr<Entry>>());
    for (e, _) in t.live() {
        count += 1;
        bytes += size_of::<Entry>() + e.bytes.load(Ordering::Relaxed);
    }
    let pairs = [
        (am::COUNT, Term::small(count)),
        (am::MEMORY, Term::small(bytes as i64)),
    ];
    Ok(map::from_pairs(cx, &pairs))
}

fn erase_1(_cx: &mut Cx, [key]: [Term; 1]) -> BifResult {
    let t = table();
    let _writer = t.lock();
    let Some(e) = t.find(key) else {
        return Ok(am::FALSE);
    };
    let was = e.value.swap(Term::NON_VALUE.raw(), Ordering::AcqRel);
    Ok(Term::bool(was != Term::NON_VALUE.raw()))
}
fn erase_persistent_terms_0(_cx: &mut Cx, []: [Term; 0]) -> BifResult {
    let t = table();
    let _writer = t.lock();
    for (e, _) in t.live() {
        e.value.store(Term::NON_VALUE.raw(), Ordering::Release);
    }
    Ok(am::TRUE)
}

crate::bifs! {
    Plain "persistent_term":"put"/2 = put_2;
    Plain "persistent_term":"get"/0 = get_0;
    Plain "persistent_term":"get"/1 = get_1;
    Plain "persistent_term":"get"/2 = get_2;
    Plain "persistent_term":"erase"/1 = erase_1;
    Plain "persistent_term":"info"/0 = info_0;
    Plain "erts_internal":"erase_persistent_terms"/0 = erase_persistent_terms_0;
}
