//! The atom table: names to indices and back, global to the runtime, never shrinking.
//!
//! The preset atoms of `purlin_isa::atoms` have the first indices, so `am::OK` and the like are
//! constants. Look-up by index is lock-free (segments never move); look-up by name takes a sharded
//! lock.
//!
//! # Orderings
//! A segment is published by a compare-exchange with `AcqRel`, which pairs with the `Acquire` loads
//! of its pointer: a thread that sees it, the loser of the race included, sees the zeroed
//! memory. An entry is written before the `Release` store of its pointer, which pairs with the
//! `Acquire` load in `entry`: a thread that sees it sees the whole entry. An index only becomes
//! known after that store. Counts and the limit are relaxed: they publish nothing.

use crate::sync::RwLock;
use crate::word::Term;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Maximum length of an atom, in characters (not bytes).
pub const MAX_CHARS: usize = 255;
/// Maximum number of atoms unless `+t` says otherwise.
pub(crate) const DEFAULT_LIMIT: u32 = 1_048_576;

const SEG_BITS: u32 = 12;
const SEG: usize = 1 << SEG_BITS;
const SEGS: usize = 1 << 20;
/// Number of atoms that there is room for, whatever the limit: more than `+t` can ask for.
const CAPACITY: u32 = u32::MAX;
const _: () = assert!(CAPACITY as usize <= SEGS * SEG);
const SHARDS: usize = 16;

/// Reason why an atom could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomError {
    /// More than [`MAX_CHARS`] characters.
    TooLong,
    /// There are as many atoms as there may be (`+t`): `system_limit`.
    TableFull,
}

/// Number of names for which each shard has room from the beginning: enough for those of OTP's own
/// modules.
const ROOM: usize = 500;

struct Entry {
    name: &'static str,
    /// First four bytes, big-endian, for a quick ordering; see [`cmp`].
    ord: u32,
    /// See [`name_hash`].
    hash: u32,
}

/// A part of the atoms. Zeroed memory is a segment without atoms.
struct Segment {
    known: [AtomicPtr<Entry>; SEG],
    entries: [UnsafeCell<MaybeUninit<Entry>>; SEG],
}

struct Table {
    segs: Box<[AtomicPtr<Segment>]>,
    shards: [RwLock<Names>; SHARDS],
    count: AtomicU32,
    limit: AtomicU32,
}

type Names = HashSet<Name<'static>, Spread>;

/// A name, the hash of its bytes, and the index of its atom, which does not count for equality.
#[derive(Clone, Copy)]
struct Name<'a> {
    name: &'a str,
    raw: u32,
    index: u32,
}
impl<'a> Name<'a> {
    fn new(name: &'a str) -> Name<'a> {
        Name {
            name,
            raw: raw(name.as_bytes()),
            index: 0,
        }
    }
    /// The highest bits, since slots use the lowest.
    fn shard(&self) -> usize {
        (self.raw >> 28) as usize % SHARDS
    }
}
impl PartialEq for Name<'_> {
    fn eq(&self, other: &Name) -> bool {
        self.raw == other.raw && self.name == other.name
    }
}
impl Eq for Name<'_> {}
impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, to: &mut H) {
        to.write_u32(self.raw);
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of bytes, each bit of which depends on all of them.
fn raw(bytes: &[u8]) -> u32 {
    let add = |h: u64, w: u64| (h.rotate_left(5) ^ w).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut words = bytes.chunks_exact(8);
    let mut h = bytes.len() as u64;
    for w in &mut words {
        h = add(h, w.try_into().map_or(0, u64::from_le_bytes));
    }
    let rest = words.remainder().iter();
    h = add(h, rest.fold(0, |w, &b| w << 8 | u64::from(b)));
    ((h ^ h >> 32).wrapping_mul(GOLDEN) >> 32) as u32
}

/// Tags of a set are the highest bits of its hashes, and slots use the lowest.
#[derive(Default, Clone, Copy)]
struct Spread;
struct Spreading(u64);
impl BuildHasher for Spread {
    type Hasher = Spreading;
    fn build_hasher(&self) -> Spreading {
        Spreading(0)
    }
}
impl Hasher for Spreading {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u32(&mut self, raw: u32) {
        self.0 = u64::from(raw).wrapping_mul(GOLDEN);
    }
}

/// Pointers to segments, none of which exists: memory that nobody has touched yet.
fn no_segments() -> Box<[AtomicPtr<Segment>]> {
    let none = Box::into_raw(vec![0usize; SEGS].into_boxed_slice());
    // SAFETY: an atomic pointer has the size and alignment of a number; zero is the null pointer.
    unsafe { Box::from_raw(none as *mut [AtomicPtr<Segment>]) }
}

fn table() -> &'static Table {
    static T: OnceLock<Table> = OnceLock::new();
    T.get_or_init(|| {
        let t = Table {
            segs: no_segments(),
            shards: std::array::from_fn(|_| {
                RwLock::new(HashSet::with_capacity_and_hasher(ROOM, Spread))
            }),
            count: AtomicU32::new(0),
            limit: AtomicU32::new(DEFAULT_LIMIT),
        };
        for (i, name) in purlin_isa::atoms::PRESET.iter().enumerate() {
            let got = t.intern(name, Some(name), CAPACITY);
            debug_assert_eq!(got, Ok(i as u32), "preset atom {name} listed twice");
        }
        t
    })
}

fn ord0(s: &[u8]) -> u32 {
    let mut w = [0u8; 4];
    let n = s.len().min(4);
    w[..n].copy_from_slice(&s[..n]);
    u32::from_be_bytes(w)
}

impl Table {
    fn find(&self, s: &str) -> Option<u32> {
        let name = Name::new(s);
        self.find_name(&name)
    }
    fn find_name(&self, name: &Name) -> Option<u32> {
        let names = self.shards[name.shard()].read();
        let names: &HashSet<Name, Spread> = &names;
        names.get(name).map(|n| n.index)
    }
    /// `kept`: the same name, if it is static. `most`: the number of atoms that there may be
    /// before.
    fn intern(&self, s: &str, kept: Option<&'static str>, most: u32) -> Result<u32, AtomError> {
        let name = Name::new(s);
        if let Some(i) = self.find_name(&name) {
            return Ok(i);
        }
        if s.len() > MAX_CHARS && s.chars().count() > MAX_CHARS {
            return Err(AtomError::TooLong);
        }
        let mut names = self.shards[name.shard()].write();
        let known: &HashSet<Name, Spread> = &names;
        if let Some(n) = known.get(&name) {
            return Ok(n.index);
        }
        let i = self.count.fetch_add(1, Ordering::Relaxed);
        if i >= most.min(CAPACITY) {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(AtomError::TableFull);
        }
        // The runtime's own names, for which there is room in any case, are nobody's.
        if most != CAPACITY && CHARGE.get().is_some_and(|charge| !charge()) {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(AtomError::TableFull);
        }
        let kept = kept.unwrap_or_else(|| Box::leak(s.into()));
        let seg = self.segment(i);
        let at = i as usize & (SEG - 1);
        // SAFETY: segments are never freed; the slot of an entry belongs to this atom alone until
        // its index is published below, and nobody writes there again.
        let entry = unsafe {
            (*seg.entries[at].get()).write(Entry {
                name: kept,
                ord: ord0(s.as_bytes()),
                hash: hash_of_name(s),
            })
        };
        seg.known[at].store(entry, Ordering::Release);
        names.insert(Name {
            name: kept,
            index: i,
            ..name
        });
        NAME_BYTES.fetch_add(s.len(), Ordering::Relaxed);
        Ok(i)
    }
    /// The segment of an atom, made if it does not exist yet.
    fn segment(&self, i: u32) -> &'static Segment {
        let slot = &self.segs[(i >> SEG_BITS) as usize];
        let mut seg = slot.load(Ordering::Acquire);
        if seg.is_null() {
            let layout = Layout::new::<Segment>();
            // SAFETY: it has a size. Zeroed memory is a valid segment: null pointers, and room for
            // entries.
            let new = unsafe { alloc_zeroed(layout) }.cast::<Segment>();
            if new.is_null() {
                handle_alloc_error(layout)
            }
            let none = std::ptr::null_mut();
            match slot.compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => seg = new,
                Err(other) => {
                    // SAFETY: it was made above and lost the race; nobody else saw it.
                    unsafe { dealloc(new.cast(), layout) };
                    seg = other;
                }
            }
        }
        // SAFETY: segments are never freed.
        unsafe { &*seg }
    }
    fn entry(&self, i: u32) -> Option<&'static Entry> {
        let seg = self
            .segs
            .get((i >> SEG_BITS) as usize)?
            .load(Ordering::Acquire);
        if seg.is_null() {
            return None;
        }
        // SAFETY: segments, and the entries in them, are never freed.
        unsafe {
            (&(*seg).known)[i as usize & (SEG - 1)]
                .load(Ordering::Acquire)
                .as_ref()
        }
    }
}

/// The atom with this name, made if it is new.
pub fn try_intern(s: &str) -> Result<Term, AtomError> {
    let t = table();
    let most = t.limit.load(Ordering::Relaxed);
    t.intern(s, None, most).map(Term::atom)
}

/// The same for a static name, which is not copied.
pub fn try_intern_static(s: &'static str) -> Result<Term, AtomError> {
    let t = table();
    let most = t.limit.load(Ordering::Relaxed);
    t.intern(s, Some(s), most).map(Term::atom)
}

/// The atom with this name, made if it is new.
///
/// For the runtime's own names, of which there are only so many. The limit does not hold for them:
/// code of the runtime that first runs when the table is full gets its atoms nevertheless. Names
/// that come from a program go to [`try_intern`].
pub fn intern(s: &str) -> Term {
    match table().intern(s, None, CAPACITY) {
        Ok(i) => Term::atom(i),
        Err(AtomError::TableFull) => full(),
        Err(AtomError::TooLong) => {
            crate::say!("an atom of the runtime is too long");
            std::process::exit(1)
        }
    }
}

/// The function that says whether a program may make another atom.
static CHARGE: OnceLock<fn() -> bool> = OnceLock::new();

/// Has `charge` called before a program makes an atom; where it returns false, there is no room for
/// it. Only the first call counts.
pub fn charged_by(charge: fn() -> bool) {
    let _ = CHARGE.set(charge);
}

static FULL: std::sync::OnceLock<fn(String) -> !> = std::sync::OnceLock::new();

/// Sets how the runtime ends when there is no room for an atom of its own; the function gets a line
/// that says so.
pub fn on_full(end: fn(String) -> !) {
    let _ = FULL.set(end);
}

/// Ends the runtime because there is no room for an atom of its own.
fn full() -> ! {
    let line = format!("no more index entries in atom_tab (max={})", limit());
    if let Some(end) = FULL.get() {
        end(line)
    }
    crate::say!("{line}");
    std::process::exit(1)
}

/// The atom with this name, if it exists.
pub fn existing(s: &str) -> Option<Term> {
    table().find(s).map(Term::atom)
}

/// The name of an atom; empty if `t` is no atom.
pub fn name(t: Term) -> &'static str {
    debug_assert!(t.is_atom());
    table().entry(t.atom_index()).map_or("", |e| e.name)
}

/// The hash of an atom's name: hashpjw over its characters (those beyond Latin-1 as their UTF-8
/// bytes).
fn hash_of_name(name: &str) -> u32 {
    let name = name.as_bytes();
    let mut h: u64 = 0;
    let mut i = 0;
    while i < name.len() {
        let mut v = name[i];
        i += 1;
        if i < name.len() && v & 0xFE == 0xC2 && name[i] & 0xC0 == 0x80 {
            v = (v << 6) | (name[i] & 0x3F);
            i += 1;
        }
        h = (h << 4) + v as u64;
        let g = h & 0xF000_0000;
        if g != 0 {
            h ^= g >> 24;
            h ^= g;
        }
    }
    h as u32
}

/// The hash of an atom's name: the same in every runtime, and available without reading the name.
#[inline]
pub fn name_hash(t: Term) -> u32 {
    debug_assert!(t.is_atom());
    table().entry(t.atom_index()).map_or(0, |e| e.hash)
}

/// The order of two atoms as terms: by their names' characters.
pub fn cmp(a: Term, b: Term) -> std::cmp::Ordering {
    if a == b {
        return std::cmp::Ordering::Equal;
    }
    match (table().entry(a.atom_index()), table().entry(b.atom_index())) {
        // Bytes of UTF-8 compare as the characters do.
        (Some(x), Some(y)) => x
            .ord
            .cmp(&y.ord)
            .then_with(|| x.name.as_bytes().cmp(y.name.as_bytes())),
        _ => a.raw().cmp(&b.raw()),
    }
}

/// The first four bytes of an atom's name, and zeros behind a shorter one. The order of two atoms
/// is that of these numbers if they differ.
pub(crate) fn first_bytes(a: Term) -> u32 {
    table().entry(a.atom_index()).map_or(0, |e| e.ord)
}

/// Number of atoms that come before all others because Rust code names them, regardless of when the
/// release's emulator makes them.
const PRESET: u32 = purlin_isa::atoms::PRESET.len() as u32;

/// Places of the preset atoms among the others, see [`place`].
static PLACES: OnceLock<Box<[u64]>> = OnceLock::new();

/// Makes atoms in this order. From then on, the preset ones among them count as made in their turn,
/// and the other preset ones as made after all of them. Only the first call counts. Called before
/// there are any terms.
pub fn make_first<'a>(names: impl Iterator<Item = &'a str>) {
    let mut places = vec![None; PRESET as usize];
    let mut turn = 0;
    for name in names {
        let made = intern(name).atom_index();
        if let Some(p) = places.get_mut(made as usize) {
            *p = Some(place_before(count(), turn));
        }
        turn += 1;
    }
    let rest = (turn..).map(|turn| place_before(count(), turn));
    let all = places.into_iter().zip(rest);
    let _ = PLACES.set(all.map(|(p, last)| p.unwrap_or(last)).collect());
}

/// The place of a preset atom before the atom with `index`, and behind those of lower turns.
fn place_before(index: u32, turn: u32) -> u64 {
    u64::from(index) << 32 | u64::from(turn)
}

/// The place of an atom in the order in which atoms were made.
fn place(index: u32) -> u64 {
    let preset = PLACES.get().and_then(|p| p.get(index as usize));
    let own = u64::from(index) << 32 | u64::from(u32::MAX);
    preset.copied().unwrap_or(own)
}

/// The order in which the emulator of the release would have made two atoms.
#[inline]
pub fn cmp_made(a: Term, b: Term) -> std::cmp::Ordering {
    let (x, y) = (a.atom_index(), b.atom_index());
    if x >= PRESET && y >= PRESET {
        return x.cmp(&y);
    }
    place(x).cmp(&place(y))
}

static NAME_BYTES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Number of bytes of all names of atoms, and of the table that leads to them.
pub fn bytes() -> (usize, usize) {
    let n = count() as usize;
    let entry = size_of::<Entry>() + size_of::<AtomicPtr<Entry>>() + size_of::<Name>() + 1;
    (NAME_BYTES.load(Ordering::Relaxed), n * entry)
}

/// Number of atoms.
pub fn count() -> u32 {
    table().count.load(Ordering::Relaxed)
}
/// Maximum number of atoms.
pub fn limit() -> u32 {
    table().limit.load(Ordering::Relaxed)
}
/// Sets the maximum number of atoms (`+t`); called before programs run.
pub fn set_limit(n: u32) {
    table().limit.store(n.min(CAPACITY), Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn interning_gives_one_index_per_name() {
        assert_eq!(intern("ok"), crate::am::OK);
        let a = intern("some_new_atom");
        assert_eq!(intern("some_new_atom"), a);
        assert_eq!(name(a), "some_new_atom");
        assert_eq!(try_intern(&"x".repeat(256)), Err(AtomError::TooLong));
        assert!(try_intern(&"å".repeat(255)).is_ok());
    }
    #[test]
    fn names_of_one_shard_are_spread_over_its_map() {
        let mut seen = std::collections::HashSet::new();
        let (mut slots, mut names) = (std::collections::HashSet::new(), 0);
        for i in 0..60_000 {
            let name = format!("a_name_{i}");
            let name = Name::new(&name);
            if name.shard() == 0 {
                let hash = Spread.hash_one(name);
                // The map's tags are the highest bits, its slots the lowest.
                seen.insert(hash >> 57);
                slots.insert(hash & 0xFFFF);
                names += 1;
            }
        }
        assert!(seen.len() > 100, "{} tags of 128", seen.len());
        assert!(slots.len() > names * 9 / 10, "{} slots", slots.len());
    }
    #[test]
    fn preset_atoms_count_as_made_in_their_turn() {
        let names = ["made_1", "ok", "error", "made_2", "false"];
        make_first(names.into_iter());
        let later = intern("made_3");
        let order = ["made_1", "ok", "error", "made_2", "false", "true", "undef"];
        let mut all: Vec<Term> = order.into_iter().map(intern).collect();
        all.push(later);
        assert!(all.windows(2).all(|w| cmp_made(w[0], w[1]).is_lt()));
        assert!(all.windows(2).all(|w| cmp_made(w[1], w[0]).is_gt()));
        assert!(cmp_made(later, later).is_eq());
    }
    #[test]
    fn atoms_order_by_name() {
        let (a, b) = (intern("abcde"), intern("abcdf"));
        assert!(cmp(a, b).is_lt() && cmp(b, a).is_gt() && cmp(intern("abc"), a).is_lt());
    }
}
