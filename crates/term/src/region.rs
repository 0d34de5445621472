//! Shared regions: immutable blocks of terms that any number of processes point into without
//! copying.
//!
//! All regions lie in one reserved range of addresses, cut into chunks of [`CHUNK_BYTES`]. So "is
//! this a region?" is one comparison, and a side table with one slot a chunk leads from any pointer
//! to its region. A region is one run of chunks, of whole pages where those are larger: a shared
//! term takes a fair part of a page, or is rare.
//!
//! The first half of the range is for regions that stay (literals, persistent terms), the second
//! for those that are counted by their holders and freed by the last: one comparison tells whether
//! a pointer needs a holder.
//!
//! A region may refer to other regions, never to a private heap.
//!
//! With a fence ([`crate::fence`]) three quarters of each half are behind it. There, chunks are
//! handed out in ascending order, with one left out behind each region; they are accessible while
//! they belong to a region, and read-only once it is finished. Freed chunks are reused when all
//! have been handed out, and not before. A region starts with a chunk (the table has one slot for
//! each), so memory behind its end is accessible up to the end of the page while it is filled.
//!
//! # Orderings
//! * A slot is stored with release once the region is complete, and loaded with acquire: a reader
//!   sees the head of the region. Slots are cleared with release before the head is freed, when
//!   nothing points into it.
//! * `BASE` is stored with release before the space is handed out; readers that have a pointer into
//!   it got that from someone who had synchronised with the store.

use crate::alloc::Alloc;
use crate::background_free;
use crate::counts;
use crate::fence;
use crate::off_heap::OffHeap;
use crate::payer::Payer;
use crate::refcount::RefCount;
use crate::sync::Mutex;
use crate::sys::Growing;
use crate::word::Term;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// Bytes in a chunk.
pub const CHUNK_BYTES: usize = 1 << CHUNK_SHIFT;
const CHUNK_SHIFT: u32 = 12;
/// Bytes of addresses reserved for regions. On processors other than x86-64 some kernels give a
/// program 39 bits of addresses.
#[cfg(target_arch = "x86_64")]
const SPACE_BYTES: usize = 1 << 40;
#[cfg(not(target_arch = "x86_64"))]
const SPACE_BYTES: usize = 1 << 38;
/// Offset of the counted regions.
const COUNTED: usize = SPACE_BYTES / 2;
/// Bytes of each half that are behind the fence, if there is one.
const FENCED: usize = COUNTED / 4 * 3;

/// Head of a region, outside the chunks it describes.
pub struct Region {
    /// Count of its holders.
    pub holders: RefCount,
    /// First word.
    pub base: *mut Term,
    /// Words in use.
    pub words: usize,
    chunks: u32,
    first_chunk: u32,
    /// Whether it counts as a literal at present.
    literal: AtomicBool,
    /// It is held for all processes, which get pointers into it from code.
    code: AtomicBool,
    lengths: Lengths,
    /// Start of a term in it that refers to too much of it for a heap to leave it; 0 if none is
    /// known. The contents of a region do not change, so no collection needs to find that out
    /// again.
    large: AtomicUsize,
    /// The budget that pays for it, if it is counted.
    payer: Payer,
    /// Objects in it that own something outside.
    off_heap: OffHeap,
}

// SAFETY: immutable once published, counted by an atomic.
unsafe impl Send for Region {}
unsafe impl Sync for Region {}

/// Lengths of lists in a region, as far as they were counted: the contents of a region do not
/// change, so later callers need not walk. Each word holds the start of a list, in words from the
/// region's first (upper half), and its length; 0: nothing. The start decides which word a list
/// uses; the last one stored stays.
#[derive(Default)]
struct Lengths([AtomicU64; LENGTHS]);

/// Number of lists of a region whose lengths are remembered.
const LENGTHS: usize = 4;
/// A list of fewer cells is counted each time.
const LENGTH_WORTH: usize = 1000;
/// Number of cells outside regions behind which to look for a list in a region.
const IN_FRONT: usize = 256;

impl Lengths {
    /// The word for a list that starts at `p`, and the contents of its upper half.
    fn place(&self, base: *const Term, p: *const Term) -> Option<(&AtomicU64, u64)> {
        let at = u32::try_from((p as usize - base as usize) / 8).ok()?;
        let i = (at.wrapping_mul(0x9E37_79B1) >> 30) as usize;
        Some((&self.0[i % LENGTHS], u64::from(at) << 32))
    }
    fn get(&self, base: *const Term, p: *const Term) -> Option<usize> {
        let (word, at) = self.place(base, p)?;
        let w = word.load(Ordering::Relaxed);
        // No stored list has length 0: an empty word does not match a list that starts with the
        // region.
        (w & !u64::from(u32::MAX) == at && w as u32 != 0).then_some(w as u32 as usize)
    }
    fn put(&self, base: *const Term, p: *const Term, length: usize) {
        if let (Some((word, at)), Ok(n)) = (self.place(base, p), u32::try_from(length)) {
            word.store(at | u64::from(n), Ordering::Relaxed);
        }
    }
}

/// Number of elements of a proper list, and of the cells walked to find out: few if it lies in a
/// region and was counted before.
pub fn list_length(l: Term) -> Option<(usize, usize)> {
    let mut c = Count::of(l);
    if let Some(n) = c.known() {
        return Some((n, c.front));
    }
    let n = c.go_on(usize::MAX)??;
    Some((n, n))
}

/// A list that is being counted, possibly in parts. Its terms are terms of the process meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// The list behind the elements in front of a region. Regions remember its length.
    pub start: Term,
    /// Number of elements in front.
    pub front: usize,
    /// The part that is not counted yet.
    pub rest: Term,
    /// Number of cells from `start` to `rest`.
    pub cells: usize,
}

impl Count {
    /// Begins to count `l`: counts the elements that lie in front of a region.
    pub fn of(l: Term) -> Count {
        let (mut front, mut t) = (0, l);
        // Few programs prepend many elements to a list that they were given.
        while front < IN_FRONT && t.is_list_ptr() && !is_region_ptr(t.ptr()) {
            // SAFETY: a list-tagged term in hand points at two words.
            t = unsafe { *t.ptr().add(1) };
            front += 1;
        }
        Count {
            start: t,
            front,
            rest: t,
            cells: 0,
        }
    }
    fn region(&self) -> Option<&'static Region> {
        match self.start.is_list_ptr() {
            true => region_of(self.start.ptr()),
            false => None,
        }
    }
    /// The number of elements, if a region remembers it.
    pub fn known(&self) -> Option<usize> {
        let r = self.region()?;
        Some(self.front + r.lengths.get(r.base, self.start.ptr())?)
    }
    /// Counts `most` cells more, or a few more than that. Returns the number of elements if that
    /// was all; the inner `None` means that it is no proper list.
    pub fn go_on(&mut self, most: usize) -> Option<Option<usize>> {
        let (more, rest) = self.rest.cells_within(most);
        self.cells += more;
        self.rest = rest;
        if rest.is_list_ptr() {
            return None;
        }
        if !rest.is_nil() {
            return Some(None);
        }
        if self.cells >= LENGTH_WORTH
            && let Some(r) = self.region()
        {
            r.lengths.put(r.base, self.start.ptr(), self.cells);
        }
        Some(Some(self.front + self.cells))
    }
}

impl Region {
    /// Whether the term at `p`, in this region, is known to refer to too much of it for a heap to
    /// leave it.
    pub(crate) fn is_large(&self, p: *const Term) -> bool {
        self.large.load(Ordering::Relaxed) == p as usize
    }

    /// Makes [`Self::is_large`] return true for the term from now on. One term is remembered: the
    /// last.
    pub(crate) fn set_large(&self, p: *const Term) {
        self.large.store(p as usize, Ordering::Relaxed);
    }
}

struct Space {
    base: usize,
    /// A slot for each chunk that was ever handed out, and for some others.
    table: Slots,
    /// The end of the chunks of the range, or of the part of it that was reserved.
    end: u32,
    /// Free chunks of the first half and of the second; then those of each behind the fence.
    free: [Mutex<FreeList>; 4],
}
/// The side table: a slot for each chunk of either half, in memory that grows with the chunks in
/// use.
struct Slots {
    /// The address that the slot of chunk 0 would have, for each half.
    at: [usize; 2],
    halves: [Growing; 2],
    /// First chunk of each half.
    first: [u32; 2],
}

impl Slots {
    /// The slot of a chunk that was handed out.
    #[inline(always)]
    fn of(&self, chunk: usize) -> &AtomicPtr<Region> {
        let half = usize::from(chunk >= COUNTED >> CHUNK_SHIFT);
        let at = self.at[half].wrapping_add(chunk * 8);
        // SAFETY: the slots of all chunks that were handed out are mapped for good, and start as
        // null.
        unsafe { &*(at as *const AtomicPtr<Region>) }
    }
    /// Ensures slots for the chunks of a half below `end`. Returns false if the system has no
    /// memory for them.
    fn try_ensure(&self, half: usize, end: u32) -> bool {
        self.halves[half].try_ensure((end - self.first[half]) as usize * 8)
    }
}

struct FreeList {
    /// The first chunk that was never used.
    next: u32,
    /// Chunks below this one have slots and, in the second half, usable memory.
    usable: u32,
    /// Free runs without memory behind them: first chunk → number of chunks.
    cold: Runs,
    /// Free runs with their pages: freed chunks are reused soon, and asking the system for pages
    /// costs more than filling them.
    warm: Runs,
    warm_chunks: u32,
}

#[derive(Default)]
struct Runs(std::collections::BTreeMap<u32, u32>);

/// Chunks of freed regions that are kept with their memory.
const WARM_CHUNKS: u32 = (32 << 20 >> CHUNK_SHIFT) as u32;

/// Number of chunks for `words` words: whole pages, if the system's are larger than a chunk.
fn chunks_of(words: usize) -> u32 {
    let unit = crate::sys::page_bytes().max(CHUNK_BYTES);
    ((words.max(1) * 8).next_multiple_of(unit) >> CHUNK_SHIFT) as u32
}

/// Number of free runs to search for one that is large enough, before taking fresh addresses.
const RUNS_TRIED: usize = 128;

impl Runs {
    /// Takes the first run of at least `chunks` chunks; returns its start.
    fn take(&mut self, chunks: u32) -> Option<u32> {
        let mut some = self.0.iter().take(RUNS_TRIED);
        let (&a, &n) = some.find(|(_, n)| **n >= chunks)?;
        self.0.remove(&a);
        if n > chunks {
            self.0.insert(a + chunks, n - chunks);
        }
        Some(a)
    }
    /// Adds a run, joined with its neighbours; returns the joined run.
    fn add(&mut self, mut a: u32, mut n: u32) -> (u32, u32) {
        if let Some((&pa, &pn)) = self.0.range(..a).next_back()
            && pa + pn == a
        {
            (a, n) = (pa, pn + n);
        }
        if let Some(nn) = self.0.remove(&(a + n)) {
            n += nn;
        }
        self.0.insert(a, n);
        (a, n)
    }
}

static BASE: AtomicUsize = AtomicUsize::new(0);

/// The address of the range if only a part of it was reserved because addresses are limited.
/// Nothing else comes to lie there: systems give addresses from the top of 128 TiB or more
/// downwards, or upwards from a third of them, and programs start below a TiB or far above.
const APART: usize = 1 << 40;
/// Each half then gets one part in `SHARE` of the available addresses.
const SHARE: usize = 8;
/// Least number of bytes of each half.
const MIN_HALF_BYTES: usize = 16 << 20;

/// Reserves the range. If addresses are limited only a part of it is reserved: the end of the first
/// half, and the beginning of the second. Returns the start of the range, and the bytes of each
/// half.
fn reserve() -> (usize, [usize; 2]) {
    if let Some(base) = crate::sys::try_reserve(SPACE_BYTES) {
        return (base, [COUNTED, SPACE_BYTES - COUNTED]);
    }
    let e = std::io::Error::last_os_error();
    let part = crate::sys::address_limit().map_or(0, |all| all / SHARE);
    let part = part
        .clamp(MIN_HALF_BYTES, COUNTED / 2)
        .next_multiple_of(MIN_HALF_BYTES);
    if e.raw_os_error() == Some(libc::ENOMEM)
        && crate::sys::reserve_at(APART + COUNTED - part, 2 * part).is_some()
    {
        return (APART, [part; 2]);
    }
    crate::sys::refused(SPACE_BYTES)
}

/// Number of chunks by which the usable part grows.
const GROWS_BY: u32 = (4 << 20 >> CHUNK_SHIFT) as u32;

fn space() -> &'static Space {
    static S: std::sync::OnceLock<Space> = std::sync::OnceLock::new();
    S.get_or_init(|| {
        let (base, bytes) = reserve();
        let low = COUNTED - bytes[0];
        let reserved = bytes[0] + bytes[1];
        crate::sys::note_area("regions", base + low, reserved);
        fence::init();
        if fence::on() && reserved < SPACE_BYTES {
            crate::sys::refused(SPACE_BYTES);
        }
        fence::watch_regions(base, SPACE_BYTES, CHUNK_SHIFT, COUNTED, FENCED);
        let plain = if fence::on() { FENCED } else { 0 };
        let first = [low, COUNTED].map(|at| (at >> CHUNK_SHIFT) as u32);
        let halves = ["region_table", "counted_region_table"];
        let halves: [Growing; 2] = std::array::from_fn(|half| {
            Growing::new(halves[half], (bytes[half] >> CHUNK_SHIFT) * 8)
        });
        let at = std::array::from_fn(|half: usize| {
            halves[half].at().wrapping_sub(first[half] as usize * 8)
        });
        let table = Slots { at, halves, first };
        BASE.store(base, Ordering::Release);
        Space {
            base,
            table,
            end: ((COUNTED + bytes[1]) >> CHUNK_SHIFT) as u32,
            free: [low + plain, COUNTED + plain, low, COUNTED].map(|start| {
                let next = (start >> CHUNK_SHIFT) as u32;
                Mutex::new(FreeList {
                    next,
                    usable: next,
                    cold: Runs::default(),
                    warm: Runs::default(),
                    warm_chunks: 0,
                })
            }),
        }
    })
}

impl Space {
    /// Takes `chunks` chunks of a half that were never used. None if addresses or memory have run
    /// out.
    fn fresh(&self, f: &mut FreeList, half: usize, chunks: u32) -> Option<u32> {
        let end = [(COUNTED >> CHUNK_SHIFT) as u32, self.end][half];
        let first = f.next;
        if end - first < chunks {
            return None;
        }
        let next = first + chunks;
        if next > f.usable {
            let to = next.max(f.usable.saturating_add(GROWS_BY)).min(end);
            let at = |chunk: u32| self.base + ((chunk as usize) << CHUNK_SHIFT);
            // Memory of the first half is made usable region by region.
            let can = |to: u32| {
                self.table.try_ensure(half, to)
                    && (half == 0
                        // SAFETY: chunks of the range that no region has had.
                        || unsafe { crate::sys::try_commit(at(f.usable), at(to) - at(f.usable)) })
            };
            f.usable = [to, next].into_iter().find(|to| can(*to))?;
        }
        f.next = next;
        Some(first)
    }
}

/// Whether `p` points into a region (or its reserved addresses).
#[inline(always)]
pub fn is_region_ptr(p: *const Term) -> bool {
    // BASE is 0 until `init` has reserved the space, which happens before there is any heap.
    (p as usize).wrapping_sub(BASE.load(Ordering::Relaxed)) < SPACE_BYTES
}

/// Whether `p` points into a counted region.
#[inline(always)]
pub fn is_counted_ptr(p: *const Term) -> bool {
    (p as usize).wrapping_sub(BASE.load(Ordering::Relaxed).wrapping_add(COUNTED))
        < SPACE_BYTES - COUNTED
}

/// Returns address and length of the memory of counted regions, for machine code that asks what
/// [`needs_holder`] does. They never change after [`init`].
pub fn counted_memory() -> (u64, u64) {
    let start = BASE.load(Ordering::Relaxed).wrapping_add(COUNTED);
    (start as u64, (SPACE_BYTES - COUNTED) as u64)
}

/// Whether `t` points into a counted region, so that a keeper of it has to hold the region.
#[inline(always)]
pub fn needs_holder(t: Term) -> bool {
    !t.is_immed() && is_counted_ptr(t.ptr())
}

/// Reserves the space of regions. Called once before any heap is made.
pub fn init() {
    space();
}

/// The region that `p` points into, if any.
#[inline]
pub fn region_of(p: *const Term) -> Option<&'static Region> {
    if !is_region_ptr(p) {
        return None;
    }
    let s = space();
    let i = (p as usize - s.base) >> CHUNK_SHIFT;
    // SAFETY: terms point into chunks that were handed out, whose slots hold live regions or null.
    // Its count keeps a region alive longer than the terms that point into it.
    unsafe { s.table.of(i).load(Ordering::Acquire).as_ref() }
}

/// Bytes in all live regions, and their number.
pub fn totals() -> (usize, usize) {
    (
        counts::sum(|c| &c.region_bytes),
        counts::sum(|c| &c.regions),
    )
}

/// Bytes of the pages that `words` words take.
fn touched(words: usize) -> usize {
    (words * 8).next_multiple_of(crate::sys::page_bytes())
}

/// Bytes of memory behind all live regions: the last chunk of each is only partly filled.
pub fn touched_bytes() -> usize {
    counts::sum(|c| &c.region_touched)
}

/// Bytes of freed regions that are kept for others.
pub fn kept_bytes() -> usize {
    let kept = space().free.iter().map(|f| {
        let f = f.lock();
        (f.warm_chunks as usize) << CHUNK_SHIFT
    });
    kept.sum()
}

/// Bytes in the live counted regions, and their number.
pub fn counted_totals() -> (usize, usize) {
    (
        counts::sum(|c| &c.counted_bytes),
        counts::sum(|c| &c.counted_regions),
    )
}

/// A region being filled: room for a number of words known beforehand.
pub struct Builder {
    region: Box<Region>,
    used: usize,
    capacity: usize,
    /// Number of words that have memory behind them.
    there: usize,
}

impl Builder {
    /// Room for `words` words that stay.
    pub fn new(words: usize) -> Builder {
        Self::in_half(words, 0)
    }
    /// Room for `words` words in a region that is freed with its last holder. The unused part is
    /// given back.
    pub fn counted(words: usize) -> Builder {
        Self::in_half(words, 1)
    }
    /// Room for twice `words` words in such a region, and memory behind half of it.
    pub(crate) fn guessed(words: usize) -> Builder {
        Self::with_room(2 * words, words, 1)
    }
    fn in_half(words: usize, half: usize) -> Builder {
        Self::with_room(words, words, half)
    }
    fn with_room(words: usize, filled: usize, half: usize) -> Builder {
        let chunks = chunks_of(words);
        let s = space();
        if fence::on()
            && let Some(region) = fenced(chunks, half, words * 8)
        {
            return Builder {
                region,
                used: 0,
                capacity: words,
                there: words,
            };
        }
        let taken = {
            let mut f = s.free[half].lock();
            match f.warm.take(chunks) {
                Some(a) => {
                    f.warm_chunks -= chunks;
                    Some((a, true))
                }
                None => {
                    let a = match f.cold.take(chunks) {
                        Some(a) => Some(a),
                        None => s.fresh(&mut f, half, chunks),
                    };
                    a.map(|a| (a, false))
                }
            }
        };
        // A dump of the runtime reads what is free, so the lock is released first.
        let (first, warm) = taken.unwrap_or_else(|| {
            crate::sys::out_of_memory("eheap_alloc", words * 8, "shared_region")
        });
        let base = s.base + ((first as usize) << CHUNK_SHIFT);
        if half == 0 {
            // SAFETY: the chunks were taken from the free list for this region.
            unsafe { crate::sys::commit(base, (chunks as usize) << CHUNK_SHIFT) };
        } else if !warm {
            // SAFETY: the chunks were taken from the free list for this region.
            unsafe { crate::sys::populate(base, filled * 8) };
        }
        Builder {
            region: Region::head(base, first, chunks),
            used: 0,
            capacity: words,
            there: if warm { words } else { filled },
        }
    }
    /// Number of words for which there is still room.
    #[inline]
    pub fn left(&self) -> usize {
        self.capacity - self.used
    }
    /// The address of the next word.
    #[inline]
    pub(crate) fn room(&self) -> *mut Term {
        // SAFETY: within the chunks, or behind the last.
        unsafe { self.region.base.add(self.used) }
    }
    /// Abandons the region with everything that was put in it, whole or not.
    pub fn abandon(mut self) {
        // SAFETY: each linked object is whole; nobody uses them.
        unsafe { crate::off_heap::release_off_heap(&mut self.region.off_heap) };
        if fence::is_region_fenced(self.region.first_chunk as usize) {
            fence::region_freed(self.region.first_chunk as usize);
        }
        self.shrink(0);
    }
    /// Gives back all but the first `chunks` chunks: those with memory behind them are warm.
    fn shrink(&mut self, chunks: u32) {
        let (first, all) = (self.region.first_chunk, self.region.chunks);
        let there = self.there.max(self.used);
        let there = chunks_of(there).clamp(chunks, all);
        for (from, to, warm) in [(chunks, there, true), (there, all, false)] {
            if from < to {
                give_back(first + from, to - from, warm);
            }
        }
        self.region.chunks = chunks;
    }
    /// Publishes the region, with a count of 1 for the caller.
    pub fn finish(mut self) -> &'static Region {
        self.region.words = self.used;
        let used = chunks_of(self.used);
        if used < self.region.chunks {
            self.shrink(used);
        }
        // One that is finished empty is filled later, by its maker.
        if fence::is_region_fenced(self.region.first_chunk as usize) && self.used > 0 {
            self.seal();
        }
        let n = (self.region.chunks as usize) << CHUNK_SHIFT;
        counts::add(|c| &c.region_bytes, n);
        counts::add(|c| &c.region_touched, touched(self.used));
        counts::add(|c| &c.regions, 1);
        if is_counted_ptr(self.region.base) {
            counts::add(|c| &c.counted_bytes, n);
            counts::add(|c| &c.counted_regions, 1);
            self.region.payer = Payer::of_new(touched(self.used));
        }
        let r: &'static Region = Box::leak(self.region);
        if crate::stress::stress() {
            // SAFETY: filled with whole objects.
            unsafe { crate::verify::check_region(r) };
        }
        let s = space();
        for i in 0..r.chunks {
            let slot = s.table.of((r.first_chunk + i) as usize);
            slot.store(r as *const Region as *mut Region, Ordering::Release);
        }
        r
    }
    /// Gives up the unused part of the last chunk, and makes the rest read-only.
    #[cold]
    fn seal(&self) {
        let r = &self.region;
        let page = crate::sys::page_bytes();
        let (base, end) = (r.base as usize, (r.chunks as usize) << CHUNK_SHIFT);
        let used = (self.used.max(1) * 8).next_multiple_of(page).min(end);
        // SAFETY: the region is this builder's. Its unused end has no contents; the rest is whole.
        unsafe {
            if used < end {
                crate::sys::protect(base + used, end - used);
            }
            crate::sys::seal(base, used);
        }
        fence::region_cut(r.first_chunk as usize, self.used * 8);
    }
}

impl Alloc for Builder {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        assert!(
            self.used + words <= self.capacity,
            "a region is sized before it is filled"
        );
        // SAFETY: within the committed chunks.
        let p = unsafe { self.region.base.add(self.used) };
        self.used += words;
        p
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.region.off_heap
    }
}

/// A region of `chunks` chunks behind the fence, of which `bytes` bytes are wanted, if it can be
/// had.
#[cold]
fn fenced(chunks: u32, half: usize, bytes: usize) -> Option<Box<Region>> {
    if !fence::region_place() {
        return None;
    }
    let s = space();
    let end = ((half * COUNTED + FENCED) >> CHUNK_SHIFT) as u32;
    let first = {
        let mut f = s.free[half + 2].lock();
        // One page more, which nobody gets.
        let all = chunks + chunks_of(1);
        match end - f.next >= all {
            true => {
                let a = f.next;
                s.table.try_ensure(half, a + all).then(|| {
                    f.next += all;
                    a
                })
            }
            false => f.cold.take(all),
        }
    };
    let base = first.map(|a| s.base + ((a as usize) << CHUNK_SHIFT));
    let Some((first, base)) = first
        .zip(base)
        // SAFETY: the chunks were taken from the free list for this region.
        .filter(|&(_, b)| unsafe { crate::sys::try_commit(b, (chunks as usize) << CHUNK_SHIFT) })
    else {
        fence::no_region();
        return None;
    };
    fence::region_made(first as usize, bytes);
    Some(Region::head(base, first, chunks))
}

impl Region {
    fn head(base: usize, first_chunk: u32, chunks: u32) -> Box<Region> {
        Box::new(Region {
            holders: RefCount::one(),
            base: base as *mut Term,
            words: 0,
            chunks,
            first_chunk,
            literal: AtomicBool::new(false),
            code: AtomicBool::new(false),
            lengths: Lengths::default(),
            large: AtomicUsize::new(0),
            payer: Payer::nobody(),
            off_heap: OffHeap::default(),
        })
    }
    /// Counts one more holder.
    pub fn retain(&self) {
        self.holders.retain();
    }
    /// Counts one holder less; frees the region with the last.
    ///
    /// # Safety
    /// The caller held a count; none of its terms points into the region afterwards.
    pub unsafe fn release(&'static self) {
        if !self.holders.release() {
            return;
        }
        if (self.chunks as usize) << CHUNK_SHIFT > background_free::ABOVE_BYTES && !fence::on() {
            // SAFETY: this was the last count.
            return background_free::run(move || unsafe { self.free() });
        }
        // SAFETY: this was the last count.
        unsafe { self.free() };
    }
    /// Frees it, and those regions that only it held.
    ///
    /// # Safety
    /// Nobody holds it.
    unsafe fn free(&'static self) {
        let mut todo = vec![self];
        while let Some(r) = todo.pop() {
            let s = space();
            for i in 0..r.chunks {
                let slot = s.table.of((r.first_chunk + i) as usize);
                slot.store(std::ptr::null_mut(), Ordering::Release);
            }
            // SAFETY: by the contract, nobody holds it; its head came from `Box::leak`.
            let mut b = unsafe { Box::from_raw(r as *const Region as *mut Region) };
            let held = std::mem::take(&mut b.off_heap.regions);
            for h in held.into_iter() {
                if h.holders.release() {
                    todo.push(h);
                }
            }
            // SAFETY: nobody uses the objects of the region any more.
            unsafe { crate::off_heap::release_off_heap(&mut b.off_heap) };
            let n = (b.chunks as usize) << CHUNK_SHIFT;
            counts::subtract(|c| &c.region_bytes, n);
            counts::subtract(|c| &c.region_touched, touched(b.words));
            counts::subtract(|c| &c.regions, 1);
            if is_counted_ptr(b.base) {
                counts::subtract(|c| &c.counted_bytes, n);
                counts::subtract(|c| &c.counted_regions, 1);
                b.payer.refund(touched(b.words));
            }
            if fence::is_region_fenced(b.first_chunk as usize) {
                fence::region_freed(b.first_chunk as usize);
            }
            give_back(b.first_chunk, b.chunks, true);
        }
    }
    /// The budget that pays for it, and the bytes that it pays for.
    pub fn bill(&self) -> (&Payer, usize) {
        (&self.payer, touched(self.words))
    }
    /// Whether its terms count as literals in the sizes of terms. Not called for uncounted regions.
    pub fn is_literal(&self) -> bool {
        self.literal.load(Ordering::Relaxed)
    }
    /// Sets [`Region::is_literal`].
    pub fn set_literal(&self, on: bool) {
        self.literal.store(on, Ordering::Relaxed);
    }
    /// Whether processes that do not hold it yet may point into it: it has a holder for them,
    /// until all of them have collected.
    pub(crate) fn is_code(&self) -> bool {
        self.code.load(Ordering::Relaxed)
    }
    /// Sets [`Region::is_code`].
    pub fn set_code(&self, on: bool) {
        self.code.store(on, Ordering::Relaxed);
    }
    /// Whether it holds the counted region that `p` points into.
    pub fn holds(&self, p: *const Term) -> bool {
        region_of(p).is_some_and(|r| self.off_heap.regions.has(r))
    }
    /// Whether it refers to no other counted region.
    pub fn is_leaf(&self) -> bool {
        self.off_heap.regions.is_empty()
    }
    /// A number that distinguishes it from the other live regions.
    pub fn number(&self) -> u64 {
        self.first_chunk.into()
    }
    /// The counted regions that it refers to.
    pub(crate) fn held(&self) -> impl Iterator<Item = *const Region> + '_ {
        self.off_heap.regions.iter().map(|r| r as *const Region)
    }
    /// Words of its chunks.
    pub(crate) fn room(&self) -> usize {
        (self.chunks as usize) << (CHUNK_SHIFT - 3)
    }
    /// The first of its objects that own something.
    pub(crate) fn owners(&self) -> *mut Term {
        self.off_heap.first
    }
    /// Its first word and its number of words.
    pub fn area(&self) -> (*mut Term, usize) {
        (self.base, self.words)
    }
}

/// Puts a run of chunks on a free list. `warm`: its pages are there.
fn give_back(first: u32, chunks: u32, warm: bool) {
    let s = space();
    let half = usize::from((first as usize) << CHUNK_SHIFT >= COUNTED);
    if fence::is_region_fenced(first as usize) {
        // SAFETY: the region that had these chunks was freed.
        unsafe {
            crate::sys::protect(
                s.base + ((first as usize) << CHUNK_SHIFT),
                (chunks as usize) << CHUNK_SHIFT,
            );
        }
        let mut f = s.free[half + 2].lock();
        f.cold.add(first, chunks);
        return;
    }
    let lock = || s.free[half].lock();
    if warm {
        let mut f = lock();
        if f.warm_chunks + chunks <= WARM_CHUNKS {
            f.warm_chunks += chunks;
            f.warm.add(first, chunks);
            return;
        }
        drop(f);
        // SAFETY: the region that had these chunks was freed.
        unsafe {
            crate::sys::decommit(
                s.base + ((first as usize) << CHUNK_SHIFT),
                (chunks as usize) << CHUNK_SHIFT,
            );
        }
    }
    let mut f = lock();
    let (a, n) = f.cold.add(first, chunks);
    if a + n == f.next {
        f.cold.0.remove(&a);
        f.next = a;
    }
}

/// Whether `t` needs no copy because it is an immediate or lies in a region.
#[inline(always)]
pub fn is_shared(t: Term) -> bool {
    t.is_immed() || is_region_ptr(t.ptr())
}
