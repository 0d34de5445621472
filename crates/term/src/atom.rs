//! The atom table: names to numbers and back, global to the runtime.
//!
//! The preset atoms of `purlin_isa::atoms` have the first numbers, so `am::OK` and the like are
//! constants. Look-up by number is lock-free; look-up by name takes a sharded lock. A number is
//! never used again, so an atom that was collected by mistake has no name, and is never another
//! atom. Pages of numbers whose atoms are all dead are returned; see [`crate::atom_collection`].
//!
//! # Orderings
//! A page is published by a `Release` store of its pointer under the lock of the newest page, which
//! pairs with the `Acquire` loads of that pointer: a thread that sees it sees its memory, zeroed or
//! filled. The fields of an entry are stored before the `Release` store of its name, which pairs
//! with the `Acquire` load in `entry`: a thread that sees the name sees the whole entry. A number
//! only becomes known after that store. Counts and the limit are relaxed: they publish nothing.

use crate::atom_names::Names;
use crate::atom_room::{self as collection, Chunks};
use crate::sync::{Mutex, RwLock};
use crate::word::Term;
use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Maximum length of an atom, in characters (not bytes).
pub const MAX_CHARS: usize = 255;
/// Maximum number of atoms unless `+t` says otherwise.
pub(crate) const DEFAULT_LIMIT: u32 = 1_048_576;

const PAGE_BITS: u32 = 9;
/// Number of atoms of a page.
pub(crate) const PAGE: usize = 1 << PAGE_BITS;
const PAGES: usize = 1 << (32 - PAGE_BITS);
/// Number of atoms that there are numbers for, whatever the limit: more than `+t` can ask for.
const CAPACITY: u32 = u32::MAX;
/// Number of sets of names, each with a lock: so many that a sweep holds none for long.
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = 8;

/// Reason why an atom could not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomError {
    /// More than [`MAX_CHARS`] characters.
    TooLong,
    /// There are as many atoms as there may be (`+t`): `system_limit`.
    TableFull,
}

/// An atom; zeroed memory is none.
pub(crate) struct Entry {
    /// The first byte of its name; null if there is no such atom.
    name: AtomicPtr<u8>,
    /// Number of bytes of its name.
    len: AtomicU32,
    /// First four bytes, big-endian, for a quick ordering; see [`cmp`].
    ord: AtomicU32,
    /// See [`name_hash`].
    hash: AtomicU32,
}

/// An atom that is never collected, in [`Page::touched`].
pub(crate) const STAYS: u32 = u32::MAX;

impl Entry {
    fn name(&self) -> Option<&'static str> {
        let at = self.name.load(Ordering::Acquire);
        if at.is_null() {
            return None;
        }
        let len = self.len.load(Ordering::Relaxed) as usize;
        // SAFETY: the name was stored together with its length, as the bytes of a string. It is
        // leaked, or lies in a chunk, which is returned only after a snapshot in which no word of
        // any thread leads into it.
        Some(unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(at, len)) })
    }
}

/// A page that takes no part in the cycle, as [`Page::slot`].
pub(crate) const NO_SLOT: u32 = u32::MAX;

/// The atoms with consecutive numbers.
pub(crate) struct Page {
    entries: [Entry; PAGE],
    /// The cycle in which each atom was last found by its name, or [`STAYS`].
    touched: [AtomicU32; PAGE],
    /// Number of atoms that have not been collected.
    alive: AtomicU32,
    /// Its place among the marks of a cycle, or [`NO_SLOT`]. The collector's own.
    pub(crate) slot: AtomicU32,
}

impl Page {
    fn entry(&self, i: u32) -> &Entry {
        &self.entries[i as usize & (PAGE - 1)]
    }
    /// Notes that an atom was found in this cycle, or that it stays.
    fn touch(&self, i: u32, stays: bool) {
        let touched = &self.touched[i as usize & (PAGE - 1)];
        let now = match stays {
            true => STAYS,
            false => collection::now(),
        };
        if touched.load(Ordering::Relaxed) < now {
            touched.fetch_max(now, Ordering::Relaxed);
        }
    }
    /// Whether an atom has been found by its name in `cycle` or later, or stays.
    fn is_touched(&self, i: u32, cycle: u32) -> bool {
        self.touched[i as usize & (PAGE - 1)].load(Ordering::Relaxed) >= cycle
    }
}

struct Table {
    /// Null for pages that do not exist yet, and for those that have been returned.
    pages: Box<[AtomicPtr<Page>]>,
    shards: [RwLock<Names>; SHARDS],
    /// Number of atoms that are alive.
    count: AtomicU32,
    /// Number of the next atom.
    next: AtomicU32,
    limit: AtomicU32,
    newest: Mutex<Newest>,
}

/// Where the next atom goes.
struct Newest {
    /// Null at first, and when the next atom begins a page.
    page: *mut Page,
    /// The chunk that the page lies in, and the place of the next name in it. None if the page is
    /// never returned; names are leaked then.
    chunk: Option<(usize, usize)>,
    /// Chunks for pages; none unless atoms are collected.
    chunks: Option<Chunks>,
    /// Pages that may be returned one day.
    mortal: Vec<u32>,
}
// SAFETY: the page belongs to the table, and pages may be used by any thread.
unsafe impl Send for Newest {}

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

/// The set that a name with this hash belongs to. Slots use the other bits.
fn shard_of(raw: u32) -> usize {
    (raw >> (32 - SHARD_BITS)) as usize
}

/// Pointers to pages, none of which exists: memory that is untouched.
fn no_pages() -> Box<[AtomicPtr<Page>]> {
    let none = Box::into_raw(vec![0usize; PAGES].into_boxed_slice());
    // SAFETY: an atomic pointer has the size and alignment of a number; zero is the null pointer.
    unsafe { Box::from_raw(none as *mut [AtomicPtr<Page>]) }
}

fn table() -> &'static Table {
    static T: OnceLock<Table> = OnceLock::new();
    T.get_or_init(|| {
        let t = Table {
            pages: no_pages(),
            shards: std::array::from_fn(|_| RwLock::new(Names::new())),
            count: AtomicU32::new(0),
            next: AtomicU32::new(0),
            limit: AtomicU32::new(DEFAULT_LIMIT),
            newest: Mutex::new(Newest {
                page: std::ptr::null_mut(),
                chunk: None,
                chunks: None,
                mortal: Vec::new(),
            }),
        };
        for (i, name) in purlin_isa::atoms::PRESET.iter().enumerate() {
            let got = t.intern(name, Some(name), CAPACITY, true);
            debug_assert_eq!(
                got,
                Ok(Term::atom(i as u32)),
                "preset atom {name} listed twice"
            );
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

impl Newest {
    /// Gives an atom its number, and writes its entry. None if there is no room.
    fn add(&mut self, t: &Table, s: &str, kept: Option<&'static str>, stays: bool) -> Option<Term> {
        let mut i = t.next.load(Ordering::Relaxed);
        let fits = |&(_, at): &(usize, usize)| kept.is_some() || at + s.len() <= Chunks::BYTES;
        if i as usize & (PAGE - 1) == 0 || self.chunk.as_ref().is_some_and(|c| !fits(c)) {
            i = i.checked_next_multiple_of(PAGE as u32)?;
            self.begin_page(t, i)?;
        }
        if i == CAPACITY {
            return None;
        }
        // Opaque, so the word itself is kept until it is returned. From here on a snapshot finds
        // it, so the cycle that is noted below may be over already.
        let term = black_box(Term::atom(i));
        // SAFETY: the newest page is never returned.
        let page = unsafe { &*self.page };
        let e = page.entry(i);
        let name = match (kept, &mut self.chunk) {
            (Some(name), _) => name.as_ptr(),
            (None, None) => Box::leak::<'static>(Box::<str>::from(s)).as_ptr(),
            (None, Some((chunk, at))) => {
                let to = (*chunk + *at) as *mut u8;
                // SAFETY: the name fits into the chunk, of which no other atom has this part.
                unsafe { std::ptr::copy_nonoverlapping(s.as_ptr(), to, s.len()) };
                *at += s.len();
                to as *const u8
            }
        };
        e.len.store(s.len() as u32, Ordering::Relaxed);
        e.ord.store(ord0(s.as_bytes()), Ordering::Relaxed);
        e.hash.store(hash_of_name(s), Ordering::Relaxed);
        page.touch(i, stays || self.chunk.is_none());
        e.name.store(name as *mut u8, Ordering::Release);
        page.alive.fetch_add(1, Ordering::Relaxed);
        t.next.store(i + 1, Ordering::Relaxed);
        Some(term)
    }
    /// Makes the page whose first atom has number `first`.
    fn begin_page(&mut self, t: &Table, first: u32) -> Option<()> {
        let number = first >> PAGE_BITS;
        let page = match &mut self.chunks {
            Some(chunks) => {
                let at = chunks.take()?;
                self.chunk = Some((at, size_of::<Page>()));
                self.mortal.push(number);
                at as *mut Page
            }
            None => {
                let layout = Layout::new::<Page>();
                // SAFETY: it has a size. Zeroed memory is a page without atoms.
                let new = unsafe { alloc_zeroed(layout) }.cast::<Page>();
                if new.is_null() {
                    handle_alloc_error(layout)
                }
                new
            }
        };
        // SAFETY: just made, and zeroed.
        unsafe { &*page }.slot.store(NO_SLOT, Ordering::Relaxed);
        self.page = page;
        t.next.store(first, Ordering::Relaxed);
        t.pages[number as usize].store(page, Ordering::Release);
        Some(())
    }
}

impl Table {
    fn find(&self, s: &str, stays: bool) -> Option<Term> {
        self.find_hashed(raw(s.as_bytes()), s, stays)
    }
    fn find_hashed(&self, raw: u32, s: &str, stays: bool) -> Option<Term> {
        let names = self.shards[shard_of(raw)].read();
        self.found(&names, raw, s, stays)
    }
    /// Finds a name in its shard, whose lock the caller holds.
    fn found(&self, names: &Names, raw: u32, s: &str, stays: bool) -> Option<Term> {
        let is = |i| self.entry(i).and_then(Entry::name) == Some(s);
        // Opaque, as in `add`: a snapshot finds the word, or a later cycle is noted.
        let term = black_box(Term::atom(names.get(raw, is)?));
        if collection::on()
            && let Some(page) = self.page(term.atom_index() >> PAGE_BITS)
        {
            page.touch(term.atom_index(), stays);
        }
        Some(term)
    }
    /// `kept`: the same name, if it is static. `most`: the number of atoms that there may be
    /// before.
    fn intern(
        &self,
        s: &str,
        kept: Option<&'static str>,
        most: u32,
        stays: bool,
    ) -> Result<Term, AtomError> {
        let raw = raw(s.as_bytes());
        if let Some(t) = self.find_hashed(raw, s, stays) {
            return Ok(t);
        }
        if s.len() > MAX_CHARS && s.chars().count() > MAX_CHARS {
            return Err(AtomError::TooLong);
        }
        if let Some(made) = self.make(raw, s, kept, most, stays) {
            return made;
        }
        // Some atoms may be dead.
        let room = collection::on() && most != CAPACITY && collection::make_room(count, limit());
        match room.then(|| self.make(raw, s, kept, most, stays)) {
            Some(Some(made)) => made,
            _ => Err(AtomError::TableFull),
        }
    }
    /// Makes an atom, unless another thread has made it meanwhile. None if there are too many.
    fn make(
        &self,
        raw: u32,
        s: &str,
        kept: Option<&'static str>,
        most: u32,
        stays: bool,
    ) -> Option<Result<Term, AtomError>> {
        let mut names = self.shards[shard_of(raw)].write();
        if let Some(t) = self.found(&names, raw, s, stays) {
            return Some(Ok(t));
        }
        let before = self.count.fetch_add(1, Ordering::Relaxed);
        if before >= most {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        collection::note_use(before, self.limit.load(Ordering::Relaxed));
        // The runtime's own names, for which there is room in any case, are not charged.
        if most != CAPACITY && CHARGE.get().is_some_and(|charge| !charge()) {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Some(Err(AtomError::TableFull));
        }
        let Some(t) = self.newest.lock().add(self, s, kept, stays) else {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Some(Err(AtomError::TableFull));
        };
        names.insert(raw, t.atom_index());
        NAME_BYTES.fetch_add(s.len(), Ordering::Relaxed);
        drop(names);
        if collection::on() && !stays {
            collection::made_one();
        }
        Some(Ok(t))
    }
    fn page(&self, number: u32) -> Option<&'static Page> {
        let page = self.pages.get(number as usize)?.load(Ordering::Acquire);
        // SAFETY: null, or a page. It is returned only after a snapshot in which no word of any
        // thread leads into it.
        unsafe { page.as_ref() }
    }
    /// Returns the entry of an atom, unless there is no such atom.
    #[inline]
    fn entry(&self, i: u32) -> Option<&'static Entry> {
        let e = self.page(i >> PAGE_BITS)?.entry(i);
        (!e.name.load(Ordering::Acquire).is_null()).then_some(e)
    }
}

/// Takes pages of atoms from `chunks` from now on, so that they can be returned. The atoms that
/// exist stay.
pub(crate) fn use_chunks(chunks: Chunks) {
    let t = table();
    let mut newest = t.newest.lock();
    let next = t.next.load(Ordering::Relaxed);
    t.next
        .store(next.next_multiple_of(PAGE as u32), Ordering::Relaxed);
    newest.chunks = Some(chunks);
}

/// Returns the numbers of the pages that may be returned one day, without the newest; and the
/// number of the next atom.
pub(crate) fn mortal_pages() -> (Vec<u32>, u32) {
    let t = table();
    let newest = t.newest.lock();
    let next = t.next.load(Ordering::Relaxed);
    (newest.mortal.clone(), next)
}

/// Returns a page that exists.
pub(crate) fn page_of(number: u32) -> Option<&'static Page> {
    table().page(number)
}

/// Returns the page of an atom, and its place there.
#[inline]
pub(crate) fn place_of(i: u32) -> (Option<&'static Page>, usize) {
    (table().page(i >> PAGE_BITS), i as usize & (PAGE - 1))
}

/// Removes the names of the atoms in the table's mortal pages that a snapshot at the beginning of
/// `cycle` did not have, unless they were found since. `marked` says which it had, by the slot of
/// the page and the place there; `removed` is called for each other one in the same way.
pub(crate) fn sweep_names(
    cycle: u32,
    marked: impl Fn(usize, usize) -> bool,
    mut removed: impl FnMut(usize, usize),
) {
    let t = table();
    for shard in &t.shards {
        // A thread that has found an atom in the meantime held the lock.
        shard.write().retain(|i| {
            let (Some(page), place) = place_of(i) else {
                return true;
            };
            let slot = page.slot.load(Ordering::Relaxed);
            if slot == NO_SLOT || marked(slot as usize, place) || page.is_touched(i, cycle) {
                return true;
            }
            removed(slot as usize, place);
            false
        });
    }
}

/// Removes the atoms of a page whose names have been removed: those with a bit in `dead`. Returns
/// their number.
pub(crate) fn clear_entries(number: u32, dead: &[u64]) -> u32 {
    let t = table();
    let Some(page) = t.page(number) else { return 0 };
    let (mut atoms, mut bytes) = (0, 0);
    for (place, e) in page.entries.iter().enumerate() {
        if dead[place / 64] >> (place % 64) & 1 != 0 {
            bytes += e.len.load(Ordering::Relaxed) as usize;
            e.name.store(std::ptr::null_mut(), Ordering::Release);
            atoms += 1;
        }
    }
    NAME_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    t.count.fetch_sub(atoms, Ordering::Relaxed);
    page.alive.fetch_sub(atoms, Ordering::Relaxed);
    atoms
}

/// Takes pages out of the table all of whose atoms are dead, and that get no others. Returns what
/// `chunk_of` says of the addresses of their chunks. Threads that have looked them up may still
/// read there.
///
/// No address is written to memory: where it was would look like a reference to the chunk.
pub(crate) fn take_pages(chunk_of: impl Fn(usize) -> u32) -> Vec<u32> {
    let t = table();
    let mut newest = t.newest.lock();
    let newest_page = newest.page.cast_const();
    let mut taken = Vec::new();
    newest.mortal.retain(|&number| {
        let Some(page) = t.page(number) else {
            return false;
        };
        let stays = page.alive.load(Ordering::Relaxed) != 0 || std::ptr::eq(page, newest_page);
        if !stays {
            t.pages[number as usize].store(std::ptr::null_mut(), Ordering::Release);
            taken.push(chunk_of(std::ptr::from_ref(page) as usize));
        }
        stays
    });
    taken
}

/// Gives chunks back for new pages. Nothing refers to them.
pub(crate) fn give_chunks(free: &[u32]) {
    if let Some(chunks) = &mut table().newest.lock().chunks {
        chunks.give(free);
    }
}

/// Keeps an atom for ever: for those who hold its number, but no term.
pub fn keep(t: Term) {
    if collection::on()
        && t.is_atom()
        && let Some(page) = table().page(t.atom_index() >> PAGE_BITS)
    {
        page.touch(t.atom_index(), true);
    }
}

/// Whether an atom has a name. Each atom of a live term has one.
pub fn is_known(t: Term) -> bool {
    table().entry(t.atom_index()).is_some()
}

/// The atom with this name, made if it is new. It may be collected when nothing refers to it.
pub fn try_intern(s: &str) -> Result<Term, AtomError> {
    let t = table();
    let most = t.limit.load(Ordering::Relaxed);
    t.intern(s, None, most, false)
}

/// The same for an atom that stays: of code, or given to a library in C.
pub fn try_intern_to_stay(s: &str) -> Result<Term, AtomError> {
    let t = table();
    let most = t.limit.load(Ordering::Relaxed);
    t.intern(s, None, most, true)
}

/// The same for a static name, which is not copied.
pub fn try_intern_static(s: &'static str) -> Result<Term, AtomError> {
    let t = table();
    let most = t.limit.load(Ordering::Relaxed);
    t.intern(s, Some(s), most, true)
}

/// The atom with this name, made if it is new. It stays.
///
/// For the runtime's own names, of which there is a bounded number. The limit does not hold for
/// them: code of the runtime that first runs when the table is full gets its atoms nevertheless.
/// Names that come from a program go to [`try_intern`].
pub fn intern(s: &str) -> Term {
    match table().intern(s, None, CAPACITY, true) {
        Ok(t) => t,
        Err(AtomError::TableFull) => full(),
        Err(AtomError::TooLong) => {
            crate::say!("an atom of the runtime is too long");
            std::process::exit(1)
        }
    }
}

/// The function that says whether a program may make another atom.
static CHARGE: OnceLock<fn() -> bool> = OnceLock::new();

/// Registers `charge`, which is called before a program makes an atom; where it returns false,
/// there is no room for it. Only the first call counts.
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
    table().find(s, false)
}

/// The same for an atom that stays from then on.
pub fn existing_to_stay(s: &str) -> Option<Term> {
    table().find(s, true)
}

/// The name of an atom; empty if `t` is no atom.
pub fn name(t: Term) -> &'static str {
    debug_assert!(t.is_atom());
    table()
        .entry(t.atom_index())
        .and_then(Entry::name)
        .unwrap_or("")
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
    table()
        .entry(t.atom_index())
        .map_or(0, |e| e.hash.load(Ordering::Relaxed))
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
            .load(Ordering::Relaxed)
            .cmp(&y.ord.load(Ordering::Relaxed))
            .then_with(|| x.name().cmp(&y.name())),
        _ => a.raw().cmp(&b.raw()),
    }
}

/// The first four bytes of an atom's name, and zeros behind a shorter one. The order of two atoms
/// is that of these numbers if they differ.
pub(crate) fn first_bytes(a: Term) -> u32 {
    table()
        .entry(a.atom_index())
        .map_or(0, |e| e.ord.load(Ordering::Relaxed))
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
        let index = intern(name).atom_index();
        if let Some(p) = places.get_mut(index as usize) {
            *p = Some(place_before(made(), turn));
        }
        turn += 1;
    }
    let rest = (turn..).map(|turn| place_before(made(), turn));
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
    let entries = count() as usize * size_of::<Entry>();
    let names: usize = table().shards.iter().map(|s| s.read().bytes()).sum();
    (NAME_BYTES.load(Ordering::Relaxed), entries + names)
}

/// Number that the next atom gets, or a lower one if it begins a page: that of all atoms ever made,
/// and of numbers that were left out. Atoms with lower numbers may be dead, see [`is_known`].
pub fn made() -> u32 {
    table().next.load(Ordering::Relaxed)
}
/// Number of atoms that are alive.
pub fn count() -> u32 {
    table().count.load(Ordering::Relaxed)
}
/// Maximum number of atoms.
pub fn limit() -> u32 {
    table().limit.load(Ordering::Relaxed)
}
/// Sets the maximum number of atoms (`+t`); called before programs run.
pub fn set_limit(n: u32) {
    table().limit.store(n, Ordering::Relaxed)
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
    fn names_of_one_shard_are_spread_over_its_slots() {
        let mut slots = std::collections::HashSet::new();
        let mut names = 0;
        for i in 0..60_000 * SHARDS / 16 {
            let raw = raw(format!("a_name_{i}").as_bytes());
            if shard_of(raw) == 0 {
                slots.insert(raw & 0xFFFF);
                names += 1;
            }
        }
        assert!(names > 3000, "{names} names");
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
