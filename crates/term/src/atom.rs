//! The atom table: names to indices and back, global to the runtime, never shrinking.
//!
//! The preset atoms of `purlin_isa::atoms` have the first indices, so `am::OK` and friends are constants.
//! Look-up by index is lock-free (segments that never move); look-up by name takes a sharded lock.

use crate::sync::RwLock;
use crate::word::Term;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The longest atom, in characters (not bytes).
pub const MAX_CHARS: usize = 255;
/// The most atoms there can be unless `+t` says otherwise.
pub(crate) const DEFAULT_LIMIT: u32 = 1_048_576;

const SEG_BITS: u32 = 12;
const SEG: usize = 1 << SEG_BITS;
const SEGS: usize = 1 << 15;
const SHARDS: usize = 16;

/// Why an atom could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomError {
    /// More than [`MAX_CHARS`] characters.
    TooLong,
    /// The table is full: the runtime ends in this case.
    TableFull,
}

struct Entry {
    name: Box<str>,
    /// First four bytes, big-endian, for a quick ordering; see [`cmp`].
    ord: u32,
    /// See [`name_hash`].
    hash: u32,
}

struct Table {
    segs: Box<[AtomPtrSeg]>,
    shards: [RwLock<HashMap<&'static str, u32, FxBuild>>; SHARDS],
    count: AtomicU32,
    limit: AtomicU32,
}

type AtomPtrSeg = AtomicPtr<[AtomicPtr<Entry>; SEG]>;

#[derive(Default, Clone, Copy)]
struct FxBuild;
struct Fx(u64);
impl BuildHasher for FxBuild {
    type Hasher = Fx;
    fn build_hasher(&self) -> Fx {
        Fx(0)
    }
}
impl Hasher for Fx {
    // The map goes by the lowest bits, and the lowest of a product say little of what was hashed.
    fn finish(&self) -> u64 {
        (self.0 ^ self.0 >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
    fn write(&mut self, bytes: &[u8]) {
        for c in bytes.chunks(8) {
            let mut w = [0u8; 8];
            w[..c.len()].copy_from_slice(c);
            self.0 =
                (self.0.rotate_left(5) ^ u64::from_le_bytes(w)).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }
}

fn table() -> &'static Table {
    static T: OnceLock<Table> = OnceLock::new();
    T.get_or_init(|| {
        let t = Table {
            segs: (0..SEGS)
                .map(|_| AtomicPtr::new(std::ptr::null_mut()))
                .collect(),
            shards: std::array::from_fn(|_| RwLock::new(HashMap::with_hasher(FxBuild))),
            count: AtomicU32::new(0),
            limit: AtomicU32::new(DEFAULT_LIMIT),
        };
        for (i, name) in purlin_isa::atoms::PRESET.iter().enumerate() {
            let got = t.intern(name);
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
    fn shard(&self, s: &str) -> &RwLock<HashMap<&'static str, u32, FxBuild>> {
        let mut h = Fx(0);
        h.write(s.as_bytes());
        &self.shards[(h.0 >> 57) as usize % SHARDS]
    }
    fn find(&self, s: &str) -> Option<u32> {
        self.shard(s).read().get(s).copied()
    }
    fn intern(&self, s: &str) -> Result<u32, AtomError> {
        if let Some(i) = self.find(s) {
            return Ok(i);
        }
        if s.len() > MAX_CHARS && s.chars().count() > MAX_CHARS {
            return Err(AtomError::TooLong);
        }
        let mut m = self.shard(s).write();
        if let Some(&i) = m.get(s) {
            return Ok(i);
        }
        let i = self.count.fetch_add(1, Ordering::Relaxed);
        if i >= self.limit.load(Ordering::Relaxed) || (i >> SEG_BITS) as usize >= SEGS {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(AtomError::TableFull);
        }
        let e: &'static Entry = Box::leak(Box::new(Entry {
            name: s.into(),
            ord: ord0(s.as_bytes()),
            hash: hash_of_name(s),
        }));
        let slot = &self.segs[(i >> SEG_BITS) as usize];
        let mut seg = slot.load(Ordering::Acquire);
        if seg.is_null() {
            let new = Box::into_raw(Box::new(std::array::from_fn(|_| {
                AtomicPtr::new(std::ptr::null_mut())
            })));
            match slot.compare_exchange(
                std::ptr::null_mut(),
                new,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => seg = new,
                Err(other) => {
                    // SAFETY: `new` was made above and lost the race; nobody else saw it.
                    drop(unsafe { Box::from_raw(new) });
                    seg = other;
                }
            }
        }
        // SAFETY: segments are never freed; the slot is this atom's alone until its index is published below.
        unsafe {
            (&(*seg))[i as usize & (SEG - 1)]
                .store(e as *const Entry as *mut Entry, Ordering::Release)
        };
        m.insert(&e.name, i);
        NAME_BYTES.fetch_add(s.len(), Ordering::Relaxed);
        Ok(i)
    }
    fn entry(&self, i: u32) -> Option<&'static Entry> {
        let seg = self
            .segs
            .get((i >> SEG_BITS) as usize)?
            .load(Ordering::Acquire);
        if seg.is_null() {
            return None;
        }
        // SAFETY: segments and entries are never freed.
        unsafe {
            (&(*seg))[i as usize & (SEG - 1)]
                .load(Ordering::Acquire)
                .as_ref()
        }
    }
}

/// The atom of that name, made if it is new.
pub fn try_intern(s: &str) -> Result<Term, AtomError> {
    table().intern(s).map(Term::atom)
}

/// The atom of that name, made if it is new.
///
/// For names that the runtime itself brings: ends the runtime where the table is full.
pub fn intern(s: &str) -> Term {
    match try_intern(s) {
        Ok(t) => t,
        Err(AtomError::TableFull) => full(),
        Err(AtomError::TooLong) => {
            eprintln!("an atom of the runtime is too long");
            std::process::exit(1)
        }
    }
}

static FULL: std::sync::OnceLock<fn(String) -> !> = std::sync::OnceLock::new();

/// Says how the runtime ends when the table is full; the function gets a line that says so.
pub fn on_full(end: fn(String) -> !) {
    let _ = FULL.set(end);
}

/// Ends the runtime because the table is full.
pub fn full() -> ! {
    let line = format!("no more index entries in atom_tab (max={})", limit());
    if let Some(end) = FULL.get() {
        end(line)
    }
    eprintln!("{line}");
    std::process::exit(1)
}

/// The atom of that name if it exists.
pub fn existing(s: &str) -> Option<Term> {
    table().find(s).map(Term::atom)
}

/// The name of an atom; empty for what is no atom.
pub fn name(t: Term) -> &'static str {
    debug_assert!(t.is_atom());
    table().entry(t.atom_index()).map_or("", |e| &e.name)
}

/// The hash of an atom's name: hashpjw over its characters (those beyond Latin-1 as their UTF-8 bytes).
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

/// The hash of an atom's name: the same in every runtime, and at hand without reading the name.
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

/// How many atoms stand before all others because Rust code names them, whenever the release's emulator makes them.
const PRESET: u32 = purlin_isa::atoms::PRESET.len() as u32;

/// Where the preset atoms stand among the others, see [`place`].
static PLACES: OnceLock<Box<[u64]>> = OnceLock::new();

/// Makes atoms in that order. As far as they are preset, they count as made in their turn from then on; other preset ones behind
/// all of them. Only the first call counts. To be called before there are any terms.
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

/// The place of a preset atom before the one with that index, and behind those of lower turns.
fn place_before(index: u32, turn: u32) -> u64 {
    u64::from(index) << 32 | u64::from(turn)
}

/// Where an atom stands in the order in which they came to be.
fn place(index: u32) -> u64 {
    let preset = PLACES.get().and_then(|p| p.get(index as usize));
    let own = u64::from(index) << 32 | u64::from(u32::MAX);
    preset.copied().unwrap_or(own)
}

/// The order in which two atoms came to be, as the emulator of the release would have made them.
#[inline]
pub fn cmp_made(a: Term, b: Term) -> std::cmp::Ordering {
    let (x, y) = (a.atom_index(), b.atom_index());
    if x >= PRESET && y >= PRESET {
        return x.cmp(&y);
    }
    place(x).cmp(&place(y))
}

static NAME_BYTES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// Bytes of all names of atoms, and of the table that leads to them.
pub fn bytes() -> (usize, usize) {
    let n = count() as usize;
    let entry = size_of::<Entry>() + size_of::<AtomicPtr<Entry>>() + size_of::<(&str, u32)>() + 1;
    (NAME_BYTES.load(Ordering::Relaxed), n * entry)
}

/// How many atoms there are.
pub fn count() -> u32 {
    table().count.load(Ordering::Relaxed)
}
/// The most atoms there may be.
pub fn limit() -> u32 {
    table().limit.load(Ordering::Relaxed)
}
/// Sets the most atoms there may be (`+t`); call before programs run.
pub fn set_limit(n: u32) {
    table()
        .limit
        .store(n.min((SEGS * SEG) as u32), Ordering::Relaxed)
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
            let mut raw = Fx(0);
            raw.write(name.as_bytes());
            if ((raw.0 >> 57) as usize).is_multiple_of(SHARDS) {
                let hash = FxBuild.hash_one(name.as_str());
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
