//! The allocator of the program. Blocks of up to [`LARGEST`] bytes come from here, larger ones from
//! the C library.
//!
//! A program with many processes allocates and frees millions of small blocks per second (objects
//! of tables, messages, fragments, heaps), often on different threads. The C library takes a lock
//! for most of these, joins and splits neighbours, and leaves blocks that are used together far
//! apart. Here a block belongs to a size class. It lies in a *span*, 64 KiB of blocks of one class,
//! whose beginning has the [`Span`].
//!
//! * Threads with a share ([`counts::take_share`]) keep free blocks of each class in lists of their
//!   own. They take and give back blocks of a class in batches, under the class's lock. Other
//!   threads take and give them one by one.
//! * A span without used blocks goes to the [`Pool`], from which any class may take it. Its memory
//!   goes back to the system if the pool holds more than [`KEPT_BYTES`], or if it was not needed
//!   for a round of upkeep ([`release_unused`]).
//! * Spans lie in one area of reserved addresses. So the address of a block tells where it came
//!   from. If the area is used up, or cannot be reserved, small blocks come from the C library too.
//! * Pages that were never used take no memory: a span is divided from its beginning as blocks are
//!   asked for.
//!
//! Nothing in this file may allocate, not even through a lock: the locks are those of `std`, since
//! [`crate::sync::Mutex`] may read the environment.
//!
//! Blocks of C code, and those that C code frees, are the C library's (`libc::malloc`).

use crate::counts::{self, SHARES, add};
use crate::pressure::{gives_back, is_crowded};
use crate::refusal::refused;
use crate::sys;
use purlin_isa::cache_lines::{OneLine, TwoLines};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Size in bytes of the largest blocks that come from spans.
pub const LARGEST: usize = 4096;
/// The alignment of each such block. Blocks whose size is a multiple of [`WIDE`], or of a smaller
/// power of two, are aligned to that.
const ALIGN: usize = 16;
const WIDE: usize = 64;
const SPAN_BYTES: usize = 1 << 16;
/// Bytes of the area of all spans. Systems with a limit of addresses get a part of that limit.
const AREA_BYTES: usize = 256 << 30;
const AREA_PART: usize = 8;
/// Bytes by which the usable part of the area grows.
const GROWS_BY: usize = 1 << 20;
/// Maximum number of bytes of spans in the pool that have memory, normally and in a crowd.
const KEPT_BYTES: usize = 16 << 20;
const KEPT_IN_CROWD: usize = 2 << 20;
/// Bytes that a batch of blocks has, and bounds of their number.
const BATCH_BYTES: usize = 8 << 10;
const BATCH: [usize; 2] = [4, 64];

/// Bytes of the classes up to the first bound are multiples of the first step, and so on: no block
/// above 512 bytes is more than an eighth too large.
const STEPS: [(usize, usize); 4] = [(512, 16), (1024, 64), (2048, 128), (LARGEST, 256)];
const CLASSES: usize = 32 + 8 + 8 + 8;

/// Bytes of the blocks of each class.
const SIZES: [u16; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let (mut class, mut step, mut size) = (0, 0, 0);
    while class < CLASSES {
        if size == STEPS[step].0 {
            step += 1;
        }
        size += STEPS[step].1;
        sizes[class] = size as u16;
        class += 1;
    }
    assert!(size == LARGEST);
    sizes
};

/// The class for a size, by the number of units of 16 bytes.
const CLASS_OF: [u8; LARGEST / ALIGN + 1] = {
    let mut of = [0; LARGEST / ALIGN + 1];
    let (mut units, mut class) = (0, 0);
    while units < of.len() {
        if units * ALIGN > SIZES[class] as usize {
            class += 1;
        }
        of[units] = class as u8;
        units += 1;
    }
    of
};

#[inline(always)]
fn class_of(bytes: usize) -> usize {
    CLASS_OF[bytes.div_ceil(ALIGN)] as usize
}

/// Returns the size in bytes of the block that is allocated for `bytes` bytes, including what the C
/// library adds to its own.
pub fn block_bytes(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=LARGEST => SIZES[class_of(bytes)] as usize,
        _ => (bytes + 8).next_multiple_of(16),
    }
}

/// Number of blocks of a class that change hands at a time.
const fn batch(class: usize) -> usize {
    let n = BATCH_BYTES / SIZES[class] as usize;
    if n < BATCH[0] {
        BATCH[0]
    } else if n > BATCH[1] {
        BATCH[1]
    } else {
        n
    }
}

/// A free block.
struct Free {
    next: *mut Free,
}

/// The beginning of a span.
#[repr(C)]
struct Span {
    _line: OneLine,
    /// Neighbours in the list of spans of its class with free blocks, if it is in there.
    next: *mut Span,
    previous: *mut Span,
    listed: bool,
    /// Blocks that were given back.
    free: *mut Free,
    /// Number of blocks in use or in lists of threads.
    used: u32,
    /// Number of blocks that were divided off so far, and that fit.
    divided: u32,
    room: u32,
}

const HEAD: usize = size_of::<Span>();
const _: () = assert!(HEAD.is_multiple_of(WIDE));

/// Returns the span of a block.
fn span_of(p: *mut u8) -> *mut Span {
    p.wrapping_sub(p as usize % SPAN_BYTES).cast()
}

/// The spans of a class.
struct Class(Mutex<Spans>, TwoLines);

struct Spans {
    /// Those with free blocks, the last one that got a free block first.
    listed: *mut Span,
    spans: usize,
    /// Number of blocks in use or in lists of threads.
    out: usize,
}

// SAFETY: the lists own their spans.
unsafe impl Send for Spans {}

static ALL: [Class; CLASSES] = [const {
    Class(
        Mutex::new(Spans {
            listed: null_mut(),
            spans: 0,
            out: 0,
        }),
        TwoLines,
    )
}; CLASSES];

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

impl Spans {
    /// Takes a block, from `fresh` if no listed span has any and it can be had.
    ///
    /// # Safety
    /// The lists are those of `class`, whose lock is held.
    unsafe fn take(&mut self, class: usize) -> Option<NonNull<Free>> {
        // SAFETY: by the contract no other thread uses the spans of the class. A listed span has a
        // block that was given back, or room for one that was not divided off.
        unsafe {
            if self.listed.is_null() {
                let s = lock(&POOL).take()?;
                let room = (SPAN_BYTES - HEAD) / SIZES[class] as usize;
                s.write(Span {
                    _line: OneLine,
                    next: null_mut(),
                    previous: null_mut(),
                    listed: false,
                    free: null_mut(),
                    used: 0,
                    divided: 0,
                    room: room as u32,
                });
                self.spans += 1;
                self.link(s);
            }
            let s = self.listed;
            let p = match NonNull::new((*s).free) {
                Some(p) => {
                    (*s).free = p.as_ref().next;
                    p
                }
                None => {
                    let at = HEAD + (*s).divided as usize * SIZES[class] as usize;
                    (*s).divided += 1;
                    NonNull::new_unchecked(s.cast::<u8>().add(at).cast())
                }
            };
            (*s).used += 1;
            self.out += 1;
            if (*s).free.is_null() && (*s).divided == (*s).room {
                self.unlink(s);
            }
            Some(p)
        }
    }

    /// Gives a block back. Returns its span if it goes to the pool.
    ///
    /// # Safety
    /// As for [`Spans::take`]; the block was taken from there, and is unused.
    unsafe fn give(&mut self, p: *mut Free) -> Option<*mut Span> {
        let s = span_of(p.cast());
        // SAFETY: by the contract, it is a span of this class, and the block is free.
        unsafe {
            (*p).next = (*s).free;
            (*s).free = p;
            (*s).used -= 1;
            self.out -= 1;
            if !(*s).listed {
                self.link(s);
            }
            // A class keeps its last span: the next block would take another.
            let only = (*s).next.is_null() && (*s).previous.is_null();
            ((*s).used == 0 && !only).then(|| {
                self.unlink(s);
                self.spans -= 1;
                s
            })
        }
    }

    /// # Safety
    /// The span is of this class, whose lock is held, and in no list.
    unsafe fn link(&mut self, s: *mut Span) {
        // SAFETY: by the contract.
        unsafe {
            (*s).next = self.listed;
            (*s).previous = null_mut();
            (*s).listed = true;
            if !self.listed.is_null() {
                (*self.listed).previous = s;
            }
            self.listed = s;
        }
    }

    /// # Safety
    /// The span is of this class, whose lock is held, and listed.
    unsafe fn unlink(&mut self, s: *mut Span) {
        // SAFETY: by the contract.
        unsafe {
            match (*s).previous.is_null() {
                true => self.listed = (*s).next,
                false => (*(*s).previous).next = (*s).next,
            }
            if !(*s).next.is_null() {
                (*(*s).next).previous = (*s).previous;
            }
            (*s).next = null_mut();
            (*s).previous = null_mut();
            (*s).listed = false;
        }
    }
}

/// Start of the first span, and bytes of all that the area may have. Set once, before the first
/// block is handed out.
///
/// # Orderings
/// `BYTES` is stored with `Release` after `BASE`, and loaded with `Acquire` before it: a thread
/// that sees a size sees where the area begins. A thread that has a block of a span sees both,
/// since the block reached it from a thread that had.
static BASE: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Whether a block lies in a span.
#[inline(always)]
fn is_ours(p: *mut u8) -> bool {
    let bytes = BYTES.load(Ordering::Acquire);
    (p as usize).wrapping_sub(BASE.load(Ordering::Relaxed)) < bytes
}

/// No span.
const NONE: u32 = u32::MAX;

/// Spans that no class uses.
struct Pool {
    reserved: bool,
    /// Before the first span is a table with a number for each: the next one in its list.
    table: usize,
    /// Bytes of the table and of the spans that can be used.
    usable: [usize; 2],
    /// Number of spans that have been used so far.
    begun: u32,
    /// Spans with memory: the first one in the list, their number, and the least number since
    /// [`release_unused`] was last called.
    warm: u32,
    warm_count: u32,
    warm_least: u32,
    /// The first of those whose memory has gone back.
    cold: u32,
}

static POOL: Mutex<Pool> = Mutex::new(Pool {
    reserved: false,
    table: 0,
    usable: [0; 2],
    begun: 0,
    warm: NONE,
    warm_count: 0,
    warm_least: 0,
    cold: NONE,
});

impl Pool {
    fn reserve(&mut self) {
        self.reserved = true;
        let found = sys::try_reserve(AREA_BYTES).map(|at| (at, AREA_BYTES));
        let found = found.or_else(|| {
            let part = sys::address_limit()? / AREA_PART / GROWS_BY * GROWS_BY;
            sys::try_reserve(part).map(|at| (at, part))
        });
        let Some((at, bytes)) = found else { return };
        let page = sys::page_bytes();
        let table = (bytes / SPAN_BYTES * size_of::<u32>()).next_multiple_of(page);
        let base = (at + table).next_multiple_of(SPAN_BYTES);
        let Some(spans) = (at + bytes).checked_sub(base).map(|n| n / SPAN_BYTES) else {
            return;
        };
        self.table = at;
        BASE.store(base, Ordering::Relaxed);
        BYTES.store(spans * SPAN_BYTES, Ordering::Release);
    }

    fn at(&self, n: u32) -> *mut Span {
        (BASE.load(Ordering::Relaxed) + n as usize * SPAN_BYTES) as *mut Span
    }

    /// The link of a span in its list.
    fn next(&mut self, n: u32) -> &mut u32 {
        // SAFETY: the table is usable up to the last span that has begun; it is accessed under the
        // lock only.
        unsafe { &mut *(self.table as *mut u32).add(n as usize) }
    }

    /// Takes a span, whose contents are undefined. None if the system refuses.
    fn take(&mut self) -> Option<*mut Span> {
        if self.warm != NONE {
            let n = self.warm;
            self.warm = *self.next(n);
            self.warm_count -= 1;
            self.warm_least = self.warm_least.min(self.warm_count);
            return Some(self.at(n));
        }
        if self.cold != NONE {
            let n = self.cold;
            self.cold = *self.next(n);
            return Some(self.at(n));
        }
        if !self.reserved {
            self.reserve();
        }
        let n = self.begun as usize;
        let page = sys::page_bytes();
        let wanted = [(n + 1) * size_of::<u32>(), (n + 1) * SPAN_BYTES];
        if wanted[1] > BYTES.load(Ordering::Relaxed) {
            return None;
        }
        let from = [self.table, BASE.load(Ordering::Relaxed)];
        for i in [0, 1] {
            if wanted[i] > self.usable[i] {
                let step = [page, GROWS_BY][i];
                let most = [usize::MAX, BYTES.load(Ordering::Relaxed)][i];
                let to = wanted[i].next_multiple_of(step).min(most);
                // SAFETY: the next part of the reserved range, under the pool's lock.
                if !unsafe { sys::try_commit(from[i] + self.usable[i], to - self.usable[i]) } {
                    return None;
                }
                self.usable[i] = to;
            }
        }
        self.begun += 1;
        Some(self.at(n as u32))
    }

    /// Takes a span with memory, to give that back.
    fn take_warm(&mut self) -> Option<u32> {
        (self.warm != NONE).then(|| {
            let n = self.warm;
            self.warm = *self.next(n);
            self.warm_count -= 1;
            self.warm_least = self.warm_least.min(self.warm_count);
            n
        })
    }

    fn put_warm(&mut self, n: u32) {
        *self.next(n) = self.warm;
        self.warm = n;
        self.warm_count += 1;
    }

    fn put_cold(&mut self, n: u32) {
        *self.next(n) = self.cold;
        self.cold = n;
    }
}

/// Takes the memory of up to `count` spans of the pool.
fn cool(count: u32) {
    for _ in 0..count {
        let Some(n) = lock(&POOL).take_warm() else {
            return;
        };
        let at = BASE.load(Ordering::Relaxed) + n as usize * SPAN_BYTES;
        // SAFETY: no block is in the span. It was taken from the pool, so no other thread gets it.
        unsafe { sys::decommit(at, SPAN_BYTES) };
        lock(&POOL).put_cold(n);
    }
}

/// Puts a span into the pool.
fn put(s: *mut Span) {
    let most = match is_crowded() {
        _ if gives_back() => 0,
        true => KEPT_IN_CROWD,
        false => KEPT_BYTES,
    };
    let n = (s as usize - BASE.load(Ordering::Relaxed)) / SPAN_BYTES;
    let above = {
        let mut pool = lock(&POOL);
        pool.put_warm(n as u32);
        pool.warm_count as usize * SPAN_BYTES > most
    };
    if above {
        cool(1);
    }
}

/// The free blocks of a class that a thread keeps.
struct List {
    first: UnsafeCell<*mut Free>,
    /// Number of blocks: written by the thread only.
    len: AtomicU32,
    /// Number of blocks that it takes the next time.
    wanted: AtomicU32,
}

struct Cache([List; CLASSES], TwoLines);

// SAFETY: a list is used by the thread that has the share of its number; others read only the
// length.
unsafe impl Sync for Cache {}

static CACHES: [Cache; SHARES + 1] = [const {
    Cache(
        [const {
            List {
                first: UnsafeCell::new(null_mut()),
                len: AtomicU32::new(0),
                wanted: AtomicU32::new(1),
            }
        }; CLASSES],
        TwoLines,
    )
}; SHARES + 1];

/// Allocates a block of a class. Null if there is no memory for another span.
#[inline(always)]
fn take(class: usize) -> *mut u8 {
    let share = counts::share();
    if share == 0 {
        return take_one(class);
    }
    let list = &CACHES[share].0[class];
    // SAFETY: the list is this thread's, and what is in it is free.
    unsafe {
        let first = *list.first.get();
        if first.is_null() {
            return fill(list, class);
        }
        *list.first.get() = (*first).next;
        let len = list.len.load(Ordering::Relaxed);
        list.len.store(len - 1, Ordering::Relaxed);
        first.cast()
    }
}

#[cold]
#[inline(never)]
fn take_one(class: usize) -> *mut u8 {
    // SAFETY: the lock is held.
    let p = unsafe { lock(&ALL[class].0).take(class) };
    p.map_or(null_mut(), |p| p.as_ptr().cast())
}

/// Takes a batch for this thread's empty list, and allocates a block.
///
/// # Safety
/// The list is this thread's, and empty.
#[cold]
#[inline(never)]
unsafe fn fill(list: &List, class: usize) -> *mut u8 {
    let wanted = list.wanted.load(Ordering::Relaxed);
    // SAFETY: by the contract; the lock is held.
    unsafe {
        let mut spans = lock(&ALL[class].0);
        let Some(result) = spans.take(class) else {
            return null_mut();
        };
        // Those at the lowest addresses are used first.
        let (mut last, mut len) = (list.first.get(), 0);
        while len + 1 < wanted
            && let Some(p) = spans.take(class)
        {
            *last = p.as_ptr();
            last = &raw mut (*p.as_ptr()).next;
            len += 1;
        }
        *last = null_mut();
        list.len.store(len, Ordering::Relaxed);
        let more = (2 * wanted).min(batch(class) as u32);
        list.wanted.store(more, Ordering::Relaxed);
        result.as_ptr().cast()
    }
}

/// Frees a block of a class.
///
/// # Safety
/// It came from [`take`] for that class, and is not used afterwards.
#[inline(always)]
unsafe fn give(p: *mut u8, class: usize) {
    let share = counts::share();
    let p: *mut Free = p.cast();
    // SAFETY: by the contract; the list is this thread's.
    unsafe {
        if share == 0 {
            return give_one(p, class);
        }
        let list = &CACHES[share].0[class];
        (*p).next = *list.first.get();
        *list.first.get() = p;
        let len = list.len.load(Ordering::Relaxed) + 1;
        list.len.store(len, Ordering::Relaxed);
        if len as usize >= 2 * batch(class) {
            empty(list, class, batch(class));
        }
    }
}

/// # Safety
/// As for [`give`].
#[cold]
#[inline(never)]
unsafe fn give_one(p: *mut Free, class: usize) {
    // SAFETY: by the contract; the lock is held.
    let gone = unsafe { lock(&ALL[class].0).give(p) };
    gone.into_iter().for_each(put);
}

/// Gives back `count` blocks of this thread's list.
///
/// # Safety
/// The list is this thread's, and has as many.
#[cold]
#[inline(never)]
unsafe fn empty(list: &List, class: usize, count: usize) {
    let mut gone: *mut Span = null_mut();
    // SAFETY: by the contract; the lock is held. A span that leaves the class is this thread's.
    unsafe {
        let mut spans = lock(&ALL[class].0);
        for _ in 0..count {
            let p = *list.first.get();
            *list.first.get() = (*p).next;
            if let Some(s) = spans.give(p) {
                (*s).next = gone;
                gone = s;
            }
        }
        drop(spans);
        let len = list.len.load(Ordering::Relaxed);
        list.len.store(len - count as u32, Ordering::Relaxed);
        while !gone.is_null() {
            let next = (*gone).next;
            put(gone);
            gone = next;
        }
    }
}

/// Gives back the memory of spans that were not needed since the last call. Returns whether some
/// still have memory.
pub fn release_unused() -> bool {
    let (least, some) = {
        let mut pool = lock(&POOL);
        let least = pool.warm_least;
        pool.warm_least = pool.warm_count;
        (least, pool.warm_count > least)
    };
    cool(least);
    some
}

/// Returns free pages to the system: those of spans, and those of the C library's allocator.
pub fn return_free_memory() {
    trim();
    crate::sys::trim_allocator();
}

/// Gives back the memory of all spans without blocks in use.
pub fn trim() {
    for class in &ALL {
        let mut spans = lock(&class.0);
        let s = spans.listed;
        // SAFETY: the lock is held, and the span is listed.
        unsafe {
            if s.is_null() || (*s).used > 0 {
                continue;
            }
            spans.unlink(s);
            spans.spans -= 1;
        }
        drop(spans);
        put(s);
    }
    cool(u32::MAX);
}

/// Memory of spans, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// Blocks in use.
    pub used: usize,
    /// Spans that classes use, whether their pages were touched or not.
    pub spans: usize,
    /// Spans in the pool that have memory.
    pub kept: usize,
}

/// Returns the memory of spans. Other threads may allocate meanwhile.
pub fn usage() -> Usage {
    let mut u = Usage::default();
    for (class, size) in SIZES.iter().enumerate() {
        let (out, spans) = {
            let s = lock(&ALL[class].0);
            (s.out, s.spans)
        };
        let of = |c: &Cache| c.0[class].len.load(Ordering::Relaxed) as usize;
        let listed: usize = CACHES.iter().map(of).sum();
        u.used += out.saturating_sub(listed) * *size as usize;
        u.spans += spans * SPAN_BYTES;
    }
    u.kept = lock(&POOL).warm_count as usize * SPAN_BYTES;
    u
}

/// The area of all spans, if there is one.
pub fn area() -> Option<sys::Area> {
    let at = lock(&POOL).table;
    let end = BASE.load(Ordering::Relaxed) + BYTES.load(Ordering::Relaxed);
    (at != 0).then_some(sys::Area {
        name: "small_blocks",
        at,
        bytes: end - at,
    })
}

/// The allocator, which also counts the blocks that it has handed out. Where no memory is left, it
/// ends the emulator, except in [`crate::refusal::may_fail`].
pub struct Counted;

#[inline(always)]
fn is_small(l: Layout) -> bool {
    let aligned = l.align() <= ALIGN || l.align() <= WIDE && l.size().is_multiple_of(l.align());
    // Elsewhere a lock of `std` may allocate when it is first used.
    cfg!(target_os = "linux") && l.size() <= LARGEST && aligned
}

/// Allocates a small block.
#[inline(always)]
fn small(l: Layout) -> *mut u8 {
    let p = take(class_of(l.size()));
    match p.is_null() {
        true => of_library(l),
        false => p,
    }
}

#[cold]
#[inline(never)]
fn of_library(l: Layout) -> *mut u8 {
    // SAFETY: the size of a layout given to an allocator is not 0.
    unsafe { System.alloc(l) }
}

#[inline]
fn counted(p: *mut u8, bytes: usize) -> *mut u8 {
    match p.is_null() {
        true => refused(bytes),
        false => add(|c| &c.blocks, 1),
    }
    p
}

// SAFETY: a block goes back to where it came from, which its address tells. Blocks of a class have
// at least the bytes of each layout of the class, and its alignment: the head of a span has a
// multiple of 64 bytes, the sizes of classes are multiples of 16, and the size of the class is a
// multiple of 32 or 64 if that of the layout is. Large blocks are those of the system allocator,
// which keeps the contract. Nothing here unwinds.
unsafe impl GlobalAlloc for Counted {
    // Never inlined: from another crate, thread-local data is reached by a call.
    #[inline(never)]
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        match is_small(l) {
            true => counted(small(l), l.size()),
            // SAFETY: by the contract of `GlobalAlloc`.
            false => counted(unsafe { System.alloc(l) }, l.size()),
        }
    }
    #[inline(never)]
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        if !is_small(l) {
            // SAFETY: by the contract of `GlobalAlloc`.
            return counted(unsafe { System.alloc_zeroed(l) }, l.size());
        }
        let p = counted(small(l), l.size());
        if !p.is_null() {
            // SAFETY: the block has this many bytes.
            unsafe { p.write_bytes(0, l.size()) };
        }
        p
    }
    #[inline(never)]
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        add(|c| &c.blocks, usize::MAX);
        // SAFETY: by the contract of `GlobalAlloc`.
        unsafe {
            match is_ours(p) {
                true => give(p, class_of(l.size())),
                false => System.dealloc(p, l),
            }
        }
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the contract of `GlobalAlloc`, the new layout is valid, and the block has the
        // bytes of the old one.
        unsafe {
            let new = Layout::from_size_align_unchecked(size, l.align());
            let ours = is_ours(p);
            if !ours && !is_small(new) {
                let q = System.realloc(p, l, size);
                if q.is_null() {
                    refused(size);
                }
                return q;
            }
            if ours && is_small(new) && class_of(l.size()) == class_of(size) {
                return p;
            }
            let q = self.alloc(new);
            if !q.is_null() {
                q.copy_from_nonoverlapping(p, l.size().min(size));
                self.dealloc(p, l);
            }
            q
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 8).expect("a size")
    }

    #[test]
    fn classes_fit_their_sizes() {
        for bytes in 1..=LARGEST {
            let size = SIZES[class_of(bytes)] as usize;
            assert!(size >= bytes && size.is_multiple_of(ALIGN));
            assert!(size < bytes + ALIGN || size - bytes < bytes / 8 + 1);
            let wide = [32, 64].iter().filter(|n| bytes.is_multiple_of(**n));
            assert!(wide.into_iter().all(|n| size.is_multiple_of(*n)));
            assert!(class_of(bytes) == 0 || (SIZES[class_of(bytes) - 1] as usize) < bytes);
        }
    }

    /// Allocates blocks of many sizes, fills them, frees some on another thread, and looks whether
    /// any has changed.
    fn exercise(seed: usize) {
        let all: Vec<(usize, Layout, u8)> = (0..20_000_usize)
            .map(|i| {
                let n = 1 + (i * 7919 + seed * 104_729) % (LARGEST + 300);
                let l = layout(n);
                // SAFETY: written within its bytes.
                unsafe {
                    let p = Counted.alloc(l);
                    assert!(!p.is_null() && (p as usize).is_multiple_of(8));
                    p.write_bytes(i as u8, n);
                    (p as usize, l, i as u8)
                }
            })
            .collect();
        let free = |these: &[(usize, Layout, u8)]| {
            for &(p, l, byte) in these {
                // SAFETY: allocated above with that layout, and freed once.
                unsafe {
                    let p = p as *mut u8;
                    assert!((0..l.size()).all(|i| p.add(i).read() == byte));
                    Counted.dealloc(p, l);
                }
            }
        };
        let (here, there) = all.split_at(all.len() / 3);
        std::thread::scope(|s| {
            s.spawn(|| free(there));
            free(here);
        });
    }

    #[test]
    fn blocks_of_threads_with_and_without_shares_stay_apart() {
        std::thread::scope(|s| {
            for i in 0..4 {
                s.spawn(move || {
                    if i % 2 == 0 {
                        counts::take_share();
                    }
                    (0..4).for_each(|round| exercise(i * 10 + round));
                });
            }
        });
        let before = usage();
        trim();
        release_unused();
        let after = usage();
        assert_eq!(after.kept, 0);
        assert!(after.used <= before.used && after.spans <= before.spans);
        // What is left is in the lists of the two threads.
        let most: usize = (0..CLASSES)
            .map(|c| 2 * 2 * batch(c) * SPAN_BYTES.min(SIZES[c] as usize * 64))
            .sum();
        assert!(after.spans <= most, "{after:?}");
    }

    #[test]
    fn resizing_keeps_the_contents_on_both_sides_of_the_bound() {
        let sizes = [1, 16, 17, 500, 513, 4096, 4097, 100_000, 4000, 20, 4097, 1];
        // SAFETY: each block is used within its bytes, with its layout.
        unsafe {
            let mut size = 1;
            let mut p = Counted.alloc_zeroed(layout(1));
            assert_eq!(p.read(), 0);
            for new in sizes {
                p.write_bytes(new as u8, size);
                p = Counted.realloc(p, layout(size), new);
                let kept = size.min(new);
                assert!((0..kept).all(|i| p.add(i).read() == new as u8));
                size = new;
            }
            Counted.dealloc(p, layout(size));
            for (size, align) in [(64, 256), (192, 64), (96, 32), (100, 32)] {
                let l = Layout::from_size_align(size, align).expect("a layout");
                let p = Counted.alloc_zeroed(l);
                assert!((p as usize).is_multiple_of(align));
                assert!((0..size).all(|i| p.add(i).read() == 0));
                Counted.dealloc(p, l);
            }
        }
    }
}
