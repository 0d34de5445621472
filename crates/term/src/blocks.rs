//! The blocks of process heaps.
//!
//! Small ones come from the allocator. Large ones are mapped: only touched pages take memory.
//! Touching a page for the first time costs more than a collection spends on what it copies there,
//! and a large heap gets another block with each collection. So freed large blocks are kept for the
//! next ones, pages and all: at most [`SPARE_BYTES`], or a part of what such blocks take in all,
//! and no longer than a second without use ([`release_unused`]). If a block larger than any kept
//! one is wanted, it is made out of one of those, so that kept memory comes on top of used memory
//! only where it is used again.
//!
//! With a fence ([`crate::fence`]) none of this applies: blocks come from there, and nothing is
//! kept.

use crate::atom_room;
use crate::background_free;
use crate::counts;
use crate::fence::{self, Kind};
use crate::pressure::{
    at_most_slack, gives_back, is_coarse, is_crowded, is_limited, note_allocation,
};
use crate::sync::{Mutex, MutexGuard};
use crate::sys;
use crate::word::Term;
use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks of more words than this are mapped.
pub(crate) const MAP_ABOVE_WORDS: usize = 1 << 17;
/// Bytes of freed blocks that are kept, unless a fourth of all mapped blocks is more.
const SPARE_BYTES: usize = 64 << 20;
const SPARE_PART: usize = 4;
/// Words from which a block that is not mapped loses its pages when it is freed, while memory
/// matters more than time.
const EMPTIED_WORDS: usize = 1 << 12;
/// Maximum of [`SPARE_BYTES`] in a crowd of processes: see [`crate::pressure`].
const SPARE_IN_CROWD: usize = 16 << 20;

static MAPPED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Addresses and bytes of the mapped blocks in use. Only needed to report how much of them takes
/// memory.
static MAPPED: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Records a mapped block of `words` words at `p`.
fn note(p: *mut Term, words: usize) {
    MAPPED.lock().insert(p as usize, words * 8);
}

/// Bytes of all heap blocks of processes, without those in their cells.
pub fn heap_bytes() -> usize {
    counts::sum(|c| &c.heap_bytes)
}
/// Bytes of the mapped heap blocks.
pub fn mapped_bytes() -> usize {
    MAPPED_BYTES.load(Ordering::Relaxed)
}
/// Bytes of touched pages in mapped blocks, including kept ones, as far as the system reports them.
pub fn resident_bytes() -> usize {
    let mut all: Vec<(usize, usize)> = MAPPED.lock().iter().map(|(&at, &n)| (at, n)).collect();
    all.extend(spare().blocks.iter().map(|b| (b.0, b.1)));
    // The system reports nothing for a block that was unmapped meanwhile.
    all.into_iter()
        .filter_map(|(at, n)| sys::resident(at, n))
        .sum()
}

/// Counts of the calls for mapped heap blocks since the start, from which the number in use
/// follows.
#[derive(Default)]
pub struct Segments {
    /// Asked for, and given back.
    pub taken: AtomicUsize,
    pub freed: AtomicUsize,
    /// Blocks asked for that were kept from an earlier use.
    pub hits: AtomicUsize,
    /// Newly mapped, given back to the system, and resized by it.
    pub created: AtomicUsize,
    pub destroyed: AtomicUsize,
    pub resized: AtomicUsize,
    /// Largest number in use at a time, and their bytes.
    pub most: AtomicUsize,
    pub most_bytes: AtomicUsize,
}

/// See [`Segments`].
pub static SEGMENTS: Segments = Segments {
    taken: AtomicUsize::new(0),
    freed: AtomicUsize::new(0),
    hits: AtomicUsize::new(0),
    created: AtomicUsize::new(0),
    destroyed: AtomicUsize::new(0),
    resized: AtomicUsize::new(0),
    most: AtomicUsize::new(0),
    most_bytes: AtomicUsize::new(0),
};

impl Segments {
    fn note(count: &AtomicUsize) {
        count.fetch_add(1, Ordering::Relaxed);
    }
    /// Blocks in use.
    pub fn in_use(&self) -> usize {
        let freed = self.freed.load(Ordering::Relaxed);
        self.taken.load(Ordering::Relaxed).saturating_sub(freed)
    }
    fn note_taken(&self, bytes: usize) {
        Segments::note(&self.taken);
        self.most.fetch_max(self.in_use(), Ordering::Relaxed);
        let bytes = mapped_bytes() + bytes;
        self.most_bytes.fetch_max(bytes, Ordering::Relaxed);
    }
}

/// Bytes of the freed blocks that are kept.
pub fn kept_bytes() -> usize {
    spare().bytes
}

/// Number of freed blocks that are kept.
pub fn kept_blocks() -> usize {
    spare().blocks.len()
}

/// Freed blocks that are kept.
struct Spare {
    /// Address, bytes, and the round in which each was freed; the last one freed is the last.
    blocks: Vec<(usize, usize, u32)>,
    bytes: usize,
    round: u32,
}

static SPARE: Mutex<Spare> = Mutex::new(Spare {
    blocks: Vec::new(),
    bytes: 0,
    round: 0,
});

fn spare() -> MutexGuard<'static, Spare> {
    SPARE.lock()
}

/// Blocks to be given back once the lock is free: that takes long.
type Gone = smallvec::SmallVec<[(usize, usize); 4]>;

fn give_back(gone: Gone) {
    for (at, bytes) in gone {
        Segments::note(&SEGMENTS.destroyed);
        // SAFETY: the block was freed, and left the list of those kept.
        let release = move || unsafe { sys::release(at, bytes) };
        // A process whose memory is limited may get as much again before another thread is done.
        match bytes > background_free::ABOVE_BYTES && !is_limited() {
            true => background_free::run(release),
            false => release(),
        }
    }
}

impl Spare {
    fn remove(&mut self, i: usize) -> (usize, usize) {
        let (at, bytes, _) = self.blocks.remove(i);
        self.bytes -= bytes;
        (at, bytes)
    }
    /// Takes the smallest block of at least `bytes` bytes; if there is none, the largest one, and
    /// moves all others to `gone`: they come from heaps that have outgrown them.
    fn take(&mut self, bytes: usize, gone: &mut Gone) -> Option<(usize, usize)> {
        let all = self.blocks.iter().enumerate();
        let fits = all
            .clone()
            .filter(|(_, b)| b.1 >= bytes)
            .min_by_key(|(_, b)| b.1)
            .map(|(i, _)| i);
        if let Some(i) = fits {
            return Some(self.remove(i));
        }
        let largest = all.max_by_key(|(_, b)| b.1).map(|(i, _)| i)?;
        let taken = self.remove(largest);
        gone.extend(self.blocks.drain(..).map(|b| (b.0, b.1)));
        self.bytes = 0;
        Some(taken)
    }
}

/// The rest of a kept block is kept if it is not smaller than this.
const WORTH_BYTES: usize = MAP_ABOVE_WORDS * 8;

fn map(bytes: usize) -> usize {
    let bytes = bytes.next_multiple_of(sys::page_bytes());
    SEGMENTS.note_taken(bytes);
    let mut gone = Gone::new();
    let (at, there) = {
        let mut s = spare();
        let Some((at, there)) = s.take(bytes, &mut gone) else {
            drop(s);
            Segments::note(&SEGMENTS.created);
            return fresh(bytes);
        };
        if there >= bytes + WORTH_BYTES {
            let round = s.round;
            s.blocks.push((at + bytes, there - bytes, round));
            s.bytes += there - bytes;
            Segments::note(&SEGMENTS.hits);
            return at;
        }
        (at, there)
    };
    give_back(gone);
    if there == bytes {
        Segments::note(&SEGMENTS.hits);
        return at;
    }
    Segments::note(&SEGMENTS.resized);
    // SAFETY: the block was freed, and left the list of those kept. It is a whole mapping or a part
    // of one, which the system resizes alike.
    match unsafe { sys::resize(at, there, bytes) } {
        Some(at) => {
            // SAFETY: the mapping was made so large above.
            unsafe { prepare(at, bytes) };
            at
        }
        None => {
            // SAFETY: as it could not be resized, it is as it was, and nothing uses it.
            unsafe { sys::release(at, there) };
            fresh(bytes)
        }
    }
}

fn fresh(bytes: usize) -> usize {
    let at = sys::heap_rw(bytes);
    // SAFETY: the mapping was made above.
    unsafe { prepare(at, bytes) };
    at
}

/// Advises the system to back a mapping with large pages, if it has room for any. Touching a part
/// of one takes all of it, so not in a crowd, and not for a process with a small limit.
///
/// # Safety
/// The range belongs to the caller.
unsafe fn prepare(at: usize, bytes: usize) {
    if bytes >= sys::LARGE_PAGE && !is_crowded() && !is_coarse(sys::LARGE_PAGE) {
        // SAFETY: by the contract, the range is the caller's.
        unsafe { sys::in_large_pages(at, bytes) };
    }
}

fn unmap(at: usize, bytes: usize) {
    let bytes = bytes.next_multiple_of(sys::page_bytes());
    Segments::note(&SEGMENTS.freed);
    let most = match is_crowded() {
        _ if fence::on() => 0,
        true => at_most_slack(SPARE_IN_CROWD / 8) * 8,
        false => at_most_slack(SPARE_BYTES.max(mapped_bytes() / SPARE_PART) / 8) * 8,
    };
    let mut gone = Gone::new();
    {
        let mut s = spare();
        if bytes > most || gives_back() {
            gone.push((at, bytes));
        } else {
            while s.bytes + bytes > most {
                gone.push(s.remove(0));
            }
            let round = s.round;
            s.blocks.push((at, bytes, round));
            s.bytes += bytes;
        }
    }
    give_back(gone);
}

/// Gives back what has been kept since the last round; each call begins a round. Returns whether
/// something is still kept.
pub fn release_unused() -> bool {
    let mut gone = Vec::new();
    let kept = {
        let mut s = spare();
        s.round = s.round.wrapping_add(1);
        let now = s.round;
        while s.blocks.first().is_some_and(|b| now.wrapping_sub(b.2) > 1) {
            gone.push(s.remove(0));
        }
        !s.blocks.is_empty()
    };
    for (at, bytes) in gone {
        Segments::note(&SEGMENTS.destroyed);
        // SAFETY: the block was freed, and left the list of those kept.
        unsafe { sys::release(at, bytes) };
    }
    kept
}

/// Blocks that a scheduler has freed and will soon want again: a collection takes a block and frees
/// one of the same size, and above a kilobyte the C library searches each time.
struct Stash {
    words: usize,
    len: usize,
    blocks: [*mut Term; STASHED],
}

/// Kept blocks of one size, number of sizes, and the largest size in words.
const STASHED: usize = 4;
const STASHES: usize = 16;
const STASH_WORDS: usize = 2600;

thread_local! {
    static STASH: UnsafeCell<[Stash; STASHES]> = const {
        UnsafeCell::new([const { Stash { words: 0, len: 0, blocks: [std::ptr::null_mut(); STASHED] } }; STASHES])
    };
}

/// Calls `f` with the stash for blocks of `words` words, if this thread has one.
#[inline]
fn with_stash<R>(words: usize, f: impl FnOnce(&mut Stash) -> Option<R>) -> Option<R> {
    if words > STASH_WORDS || counts::share() == 0 || fence::on() {
        return None;
    }
    // SAFETY: it belongs to this thread; `f` does not come back here.
    STASH.with(|s| f(unsafe { &mut (&mut (*s.get()))[(words ^ words >> 3) % STASHES] }))
}

fn stashed(words: usize) -> Option<*mut Term> {
    with_stash(words, |s| {
        if s.words != words || s.len == 0 {
            return None;
        }
        s.len -= 1;
        Some(s.blocks[s.len])
    })
}

/// Keeps a block; None if it is not kept.
fn stash(p: *mut Term, words: usize) -> Option<()> {
    with_stash(words, |s| {
        if s.words != words {
            // The size that was wanted before gives way.
            for &b in &s.blocks[..s.len] {
                // SAFETY: a free block of this many words.
                unsafe { std::alloc::dealloc(b as *mut u8, layout(s.words)) };
            }
            (s.words, s.len) = (words, 0);
        }
        if s.len == STASHED {
            return None;
        }
        s.blocks[s.len] = p;
        s.len += 1;
        Some(())
    })
}

/// Blocks above [`STASH_WORDS`] that are not mapped, of any size: those that this scheduler freed
/// last, so that the work of a process on a request, and the copies of a collection, go to memory
/// that is still in the processor's caches.
struct Warm {
    len: usize,
    blocks: [(*mut Term, usize); WARM],
}

/// Number of blocks that each scheduler keeps, and their words in all.
const WARM: usize = 4;
const WARM_WORDS: usize = 1 << 18;

thread_local! {
    static WARM_BLOCKS: UnsafeCell<Warm> = const {
        UnsafeCell::new(Warm { len: 0, blocks: [(std::ptr::null_mut(), 0); WARM] })
    };
}

impl Warm {
    fn remove(&mut self, i: usize) -> (*mut Term, usize) {
        let b = self.blocks[i];
        self.blocks.copy_within(i + 1..self.len, i);
        self.len -= 1;
        b
    }
}

fn take_warm(words: usize) -> Option<*mut Term> {
    if words <= STASH_WORDS {
        return None;
    }
    WARM_BLOCKS.with(|w| {
        // SAFETY: it belongs to this thread; nothing called here comes back.
        let w = unsafe { &mut *w.get() };
        let i = (0..w.len).rev().find(|&i| w.blocks[i].1 == words)?;
        Some(w.remove(i).0)
    })
}

/// Keeps a block, in place of those freed longest ago; None if it is not kept.
fn keep_warm(p: *mut Term, words: usize) -> Option<()> {
    if words <= STASH_WORDS || is_crowded() || gives_back() || counts::share() == 0 || fence::on() {
        return None;
    }
    WARM_BLOCKS.with(|w| {
        // SAFETY: it belongs to this thread; nothing called here comes back.
        let w = unsafe { &mut *w.get() };
        let kept = |w: &Warm| w.blocks[..w.len].iter().map(|b| b.1).sum::<usize>();
        let most = at_most_slack(WARM_WORDS);
        while w.len == WARM || (w.len > 0 && kept(w) + words > most) {
            let (q, n) = w.remove(0);
            // SAFETY: a free block of this many words.
            unsafe { std::alloc::dealloc(q as *mut u8, layout(n)) };
        }
        w.blocks[w.len] = (p, words);
        w.len += 1;
        Some(())
    })
}

/// Frees the blocks that this thread keeps as the ones that it freed last.
pub fn release_warm() {
    WARM_BLOCKS.with(|w| {
        // SAFETY: it belongs to this thread; nothing called here comes back.
        let w = unsafe { &mut *w.get() };
        while w.len > 0 {
            let (p, n) = w.remove(0);
            // SAFETY: a free block of this many words.
            unsafe { std::alloc::dealloc(p as *mut u8, layout(n)) };
        }
    });
}

fn layout(words: usize) -> std::alloc::Layout {
    // A request beyond the address space is treated like any other that cannot be met.
    std::alloc::Layout::array::<u64>(words.max(1))
        .unwrap_or_else(|_| std::alloc::handle_alloc_error(std::alloc::Layout::new::<u64>()))
}

/// Allocates a block of `words` uninitialised words.
pub fn alloc_block(words: usize) -> *mut Term {
    counts::add(|c| &c.heap_blocks, 1);
    counts::add(|c| &c.heap_bytes, words * 8);
    if fence::on()
        && let Some(p) = fence::alloc(Kind::Heap, words * 8)
    {
        return p as *mut Term;
    }
    if words > MAP_ABOVE_WORDS {
        note_allocation(words * 8);
        MAPPED_BYTES.fetch_add(words * 8, Ordering::Relaxed);
        let p = map(words * 8) as *mut Term;
        note(p, words);
        p
    } else if let Some(p) = stashed(words).or_else(|| take_warm(words)) {
        p
    } else {
        if words > STASH_WORDS {
            note_allocation(words * 8);
        }
        let l = layout(words);
        // SAFETY: the layout has a size.
        let p = unsafe { crate::refusal::alloc_or_null(l) };
        if p.is_null() {
            sys::out_of_memory("eheap_alloc", words * 8, "heap");
        }
        p as *mut Term
    }
}

/// Frees a block.
///
/// # Safety
/// `p` came from [`alloc_block`] with the same number of words (or is null) and is not used
/// afterwards.
#[track_caller]
pub unsafe fn free_block(p: *mut Term, words: usize) {
    if p.is_null() {
        return;
    }
    counts::add(|c| &c.heap_blocks, usize::MAX);
    counts::subtract(|c| &c.heap_bytes, words * 8);
    // SAFETY: by the contract: it goes back to where it came from, with its number of words.
    unsafe {
        if fence::owns(p) {
            return fence::free(p);
        }
        if words > MAP_ABOVE_WORDS {
            MAPPED_BYTES.fetch_sub(words * 8, Ordering::Relaxed);
            MAPPED.lock().remove(&(p as usize));
            unmap(p as usize, words * 8);
        } else {
            if atom_room::is_half_full() {
                std::ptr::write_bytes(p, 0, words);
                // The compiler must not leave out what is freed next.
                std::hint::black_box(p);
            }
            if stash(p, words).is_none() && keep_warm(p, words).is_none() {
                if words >= EMPTIED_WORDS && gives_back() {
                    empty(p, words);
                }
                std::alloc::dealloc(p as *mut u8, layout(words));
            }
        }
    }
}

/// Gives back the whole pages of a block that is about to be freed. The C library would keep them
/// for the next block of that size.
///
/// # Safety
/// `p` came from the allocator, with `words` words, and nothing reads it any more.
unsafe fn empty(p: *mut Term, words: usize) {
    let page = sys::page_bytes();
    let from = (p as usize).next_multiple_of(page);
    let end = (p as usize + words * 8) / page * page;
    if from < end {
        // SAFETY: whole pages within the block, which nothing reads.
        unsafe { sys::decommit(from, end - from) };
    }
}

/// Whether a block of `words` words is mapped from the system.
pub fn is_mapped(words: usize) -> bool {
    words > MAP_ABOVE_WORDS
}

/// Enlarges a mapped block; returns its new address, with all its words. None if that takes a new
/// block, or with a fence.
///
/// # Safety
/// `p` came from [`alloc_block`] with `words`; if there is a result, only that is used afterwards.
pub(crate) unsafe fn grow_block(p: *mut Term, words: usize, to: usize) -> Option<*mut Term> {
    if words <= MAP_ABOVE_WORDS || fence::on() {
        return None;
    }
    let page = sys::page_bytes();
    let (from, bytes) = (
        (words * 8).next_multiple_of(page),
        (to * 8).next_multiple_of(page),
    );
    note_allocation(bytes.saturating_sub(from));
    // It may move, and its addresses may be reused at once.
    MAPPED.lock().remove(&(p as usize));
    // SAFETY: by the contract, the block is a mapping of this many pages. Only the result is used.
    let Some(q) = (unsafe { sys::resize(p as usize, from, bytes) }) else {
        note(p, words);
        return None;
    };
    // SAFETY: the mapping has this size now, and belongs to the caller.
    unsafe { prepare(q, bytes) };
    counts::add(|c| &c.heap_bytes, (to - words) * 8);
    MAPPED_BYTES.fetch_add((to - words) * 8, Ordering::Relaxed);
    note(q as *mut Term, to);
    Some(q as *mut Term)
}

/// Enlarges a mapped block in place. False if the addresses behind it are not free, or with a
/// fence.
///
/// # Safety
/// `p` came from [`alloc_block`] with `words`; it has `to` words from now on if the result is true.
pub(crate) unsafe fn extend_block(p: *mut Term, words: usize, to: usize) -> bool {
    if words <= MAP_ABOVE_WORDS || to <= words || fence::on() {
        return false;
    }
    let page = sys::page_bytes();
    let (from, bytes) = (
        (words * 8).next_multiple_of(page),
        (to * 8).next_multiple_of(page),
    );
    // SAFETY: by the contract, the block is a mapping of this many pages. It only grows.
    if from != bytes && !unsafe { sys::extend(p as usize, from, bytes) } {
        return false;
    }
    // SAFETY: the mapping has this size now, and belongs to the caller.
    unsafe { prepare(p as usize, bytes) };
    counts::add(|c| &c.heap_bytes, (to - words) * 8);
    MAPPED_BYTES.fetch_add((to - words) * 8, Ordering::Relaxed);
    note(p, to);
    true
}

/// Whether [`cut_block`] may be called. With a fence the rest of a block would not end at its end.
pub(crate) fn may_cut_block(words: usize, to: usize) -> bool {
    to < words && to > MAP_ABOVE_WORDS && !fence::on()
}

/// Gives back the end of a block.
///
/// # Safety
/// `p` came from [`alloc_block`] with `words`, of which those from `to` on are not used afterwards;
/// [`may_cut_block`] holds.
pub(crate) unsafe fn cut_block(p: *mut Term, words: usize, to: usize) {
    debug_assert!(may_cut_block(words, to));
    counts::subtract(|c| &c.heap_bytes, (words - to) * 8);
    MAPPED_BYTES.fetch_sub((words - to) * 8, Ordering::Relaxed);
    note(p, to);
    // The system keeps the page that the cut goes through, and frees it with the rest.
    let page = sys::page_bytes();
    // SAFETY: by the contract, the block has `words` words, and its end is not used any more.
    unsafe {
        let from = (p.add(to) as usize).next_multiple_of(page);
        let end = (p.add(words) as usize).next_multiple_of(page);
        if from < end {
            sys::release(from, end - from);
        }
    }
}

/// Gives back the whole pages between two addresses of a mapped block. Returns false, and does
/// nothing, if it is small.
///
/// # Safety
/// Both are in one block, in which nothing between them is in use.
pub(crate) unsafe fn decommit_between(a: *mut Term, b: *mut Term) -> bool {
    let page = sys::page_bytes();
    let (a, b) = (
        (a as usize).next_multiple_of(page),
        b as usize / page * page,
    );
    let worth = a + (MAP_ABOVE_WORDS * 8) / 8 < b;
    if worth {
        // SAFETY: by the contract, nothing between them is in use.
        unsafe { sys::decommit(a, b - a) };
    }
    worth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_block_grows_where_it_lies() {
        if fence::on() {
            return;
        }
        // SAFETY: the block is freed with its final number of words, and written within.
        unsafe {
            let mut n = 9 * MAP_ABOVE_WORDS;
            let p = alloc_block(n);
            for more in [1, 600, MAP_ABOVE_WORDS] {
                (p as *mut u64).add(n - 1).write(n as u64);
                if extend_block(p, n, n + more) {
                    assert_eq!((p as *mut u64).add(n - 1).read(), n as u64);
                    n += more;
                    (p as *mut u64).add(n - 1).write(7);
                }
            }
            free_block(p, n);
        }
    }

    #[test]
    fn freed_blocks_are_used_again_whatever_their_size() {
        // SAFETY: blocks are freed with the number of words they were made with, and written
        // within.
        unsafe {
            let n = 2 * MAP_ABOVE_WORDS;
            for words in [n, n + 700, n, n * 3, n + 5000] {
                let p = alloc_block(words) as *mut u64;
                p.write(1);
                p.add(words - 1).write(2);
                assert_eq!((p.read(), p.add(words - 1).read()), (1, 2));
                free_block(p as *mut Term, words);
            }
        }
        for _ in 0..3 {
            release_unused();
        }
        assert!(!release_unused());
    }
}
