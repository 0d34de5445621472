//! The fence: a mode in which memory that was freed or moved from is never used again, and any
//! access to it is reported.
//!
//! `PURLIN_FENCE=1` in the environment turns it on, in any build. Without it all of this is a
//! branch on [`on`] where a block is allocated or freed. With it:
//! * Each block gets pages of its own in a range of addresses that is handed out once, from start
//!   to end. It ENDS where its last page ends, and the page behind that is never accessible: access
//!   beyond the end faults. A block of bytes may leave up to seven bytes over; they are filled, and
//!   checked when the block is freed.
//! * A freed block loses its pages at once and is not accessible any more. Its addresses are not
//!   used again. Free neighbours are one mapping for the system, so that only blocks in use count
//!   against its limit.
//! * An access to inaccessible memory is reported on standard error (below), and the process ends
//!   by the signal.
//!
//! # Memory behind the fence
//! * Young and old blocks of heaps, with the stacks in them: [`Kind::Heap`]. A heap never starts in
//!   its process's cell.
//! * Heap fragments, owned terms: [`Kind::Fragment`].
//! * Messages and other signals: [`Kind::Signal`], also when one becomes a fragment.
//! * Counted binaries: [`Kind::Binary`]. One that grows always moves.
//! * Objects of tables: [`Kind::Object`].
//! * Magic references: [`Kind::Magic`]; the value is an ordinary box.
//! * Regions: in their own range ([`crate::region`]), whole chunks, with a chunk between any two.
//!   They start with a chunk, so the end is checked to the page; but their builder checks each
//!   word, and a finished region cannot be written.
//!
//! Not behind it: the cells of processes and what belongs to them (`Ext`, mailboxes), heads of
//! regions, tables of code. No cache of freed blocks is used: neither for blocks of heaps nor for
//! memory of signals or regions. Blocks of heaps are neither grown nor cut in place, and a
//! collection in place copies: so no stale words stay accessible in a block that somebody may have
//! pointers into.
//! The end of an old block that is given back without being cut (`decommit_between`) stays
//! accessible: the next collection promotes to it.
//!
//! # Limits
//! A block in use takes two of the mappings that the system allows (`vm.max_map_count`). Beyond
//! that blocks are ordinary ones; tables and binaries reach their share earlier, so that heaps do
//! not. The report has their number, and with `PURLIN_FENCE=verbose` so has the end of the program.
//! Each page handed out costs 32 bytes for its record, and an entry of the system's tables: both go
//! when 2 MiB of addresses are free, except for the last 32 GiB of them.
//!
//! # The report
//! First line `purlin: fence: …`; the address and its block; who freed it: the process that ran on
//! that thread, its work, and the place in the code; who accesses it: process, thread, words in
//! registers and on the native stack that lead to code, and the native stack. `PURLIN_FENCE=trace`
//! adds the native stack at the time of freeing, as addresses for `addr2line`. All but the last
//! parts are made without allocating. If they get stuck, a timer ends the process.
//!
//! # Orderings
//! The count of a slab's retired pages (`SLABS`) is the only strong one: `retire` adds with
//! `AcqRel`, so the thread that adds the last part acquires what every earlier adder released. It
//! sees their pages as done with before `forget` maps the slab anew. Records of blocks are relaxed:
//! a report runs after the fault, on a best-effort basis, and each record is written only by the
//! thread that owns the block at that time.

use crate::sync::Mutex;
use crate::sys;
use crate::word::{PID_NUM_BITS, Term};
use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Write};
use std::panic::Location;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// The kind of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Heap = 1,
    Fragment,
    Signal,
    Binary,
    Object,
    Magic,
    Region,
}

/// Names of the kinds, and the share (of 16) of all blocks in use at which such a block is no
/// longer fenced.
const KINDS: [(&str, usize); 8] = [
    ("", 0),
    ("block of a heap", 16),
    ("heap fragment", 15),
    ("message or other signal", 15),
    ("binary", 11),
    ("object of a table", 8),
    ("magic reference", 8),
    ("region", 13),
];

/// The record of a block, in the entry of its first page. Entries of other pages are 0, as nothing
/// is used twice.
#[repr(C)]
struct Run {
    /// Bytes, [`Kind`] (from bit 48), and state (from bit 56).
    what: AtomicU64,
    /// The processes that made it (low half) and freed it, as terms; 0: none.
    by: AtomicU64,
    /// The place in the code that freed it: a `&Location`.
    site: AtomicUsize,
    /// The work under way at that time: a `&&str`.
    doing: AtomicUsize,
}

const IN_USE: u64 = 1;
const FREED: u64 = 2;

/// Number of native return addresses that are kept from the time of freeing.
const TRACED: usize = 12;

/// A range of addresses for which the fence keeps a table.
struct Range {
    base: AtomicUsize,
    bytes: AtomicUsize,
    table: AtomicUsize,
    /// Bytes for each entry, as a power of two.
    shift: AtomicUsize,
}

impl Range {
    const fn new() -> Range {
        Range {
            base: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            table: AtomicUsize::new(0),
            shift: AtomicUsize::new(0),
        }
    }
    #[inline(always)]
    fn offset(&self, p: usize) -> Option<usize> {
        let o = p.wrapping_sub(self.base.load(Ordering::Relaxed));
        (o < self.bytes.load(Ordering::Relaxed)).then_some(o)
    }
    fn run(&self, i: usize) -> &'static Run {
        let entries = self.bytes.load(Ordering::Relaxed) >> self.shift();
        assert!(i < entries, "a part of another range");
        // SAFETY: the table has an entry for each part of the range, zero at first, and stays.
        unsafe { &*(self.table.load(Ordering::Relaxed) as *const Run).add(i) }
    }
    fn shift(&self) -> usize {
        self.shift.load(Ordering::Relaxed)
    }
}

static ON: AtomicBool = AtomicBool::new(false);
static VERBOSE: AtomicBool = AtomicBool::new(false);
/// Return addresses, [`TRACED`] for each page; 0: not wanted.
static TRACES: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: Range = Range::new();
static REGIONS: Range = Range::new();
/// Number of pages handed out.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Number of freed pages of each slab: 16 bits each.
static SLABS: AtomicUsize = AtomicUsize::new(0);
const SLAB_PAGES: usize = 512;
/// Bytes of addresses behind the fence, as powers of two.
const LEAST_BITS: u32 = 38;
const MOST_BITS: u32 = 46;
/// Number of free slabs whose records are kept.
const REMEMBERED_SLABS: usize = 1 << 14;
/// Blocks in use, their peak, and their maximum.
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static MOST_LIVE: AtomicUsize = AtomicUsize::new(0);
/// Blocks made of each kind: behind the fence, and outside.
static MADE: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
static MISSED: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
/// The byte that fills the rest behind a block.
const FILLED: u8 = 0xFE;

/// Whether there is a fence.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether a block is behind the fence.
#[inline(always)]
pub fn owns<T>(p: *const T) -> bool {
    on() && BLOCKS.offset(p as usize).is_some()
}

/// Sets up the fence, if the environment asks for one. Called before there is a heap; later calls
/// do nothing.
pub fn init() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        let Some(wanted) = std::env::var_os("PURLIN_FENCE") else {
            return;
        };
        let wanted = wanted.to_string_lossy();
        let mut words = wanted.split(',').map(str::trim);
        if words.clone().all(|w| w.is_empty() || w == "0") {
            return;
        }
        let page = sys::page_bytes();
        // As much as the system gives, or as is allowed: an emulator of processors may keep an
        // account of all addresses.
        let most = std::env::var("PURLIN_FENCE_BITS").ok();
        let most = most.and_then(|bits| bits.parse().ok()).unwrap_or(MOST_BITS);
        let some = (LEAST_BITS..=most.clamp(LEAST_BITS, MOST_BITS))
            .rev()
            .map(|bits| 1usize << bits)
            .find_map(|bytes| {
                let base = sys::try_reserve(bytes)?;
                let pages = bytes / page;
                let table = sys::try_reserve_rw(pages * size_of::<Run>());
                let slabs = sys::try_reserve_rw(pages / SLAB_PAGES * 2);
                match (table, slabs) {
                    (Some(table), Some(slabs)) => Some((base, bytes, table, slabs)),
                    _ => {
                        // SAFETY: it was reserved above, and no other code knows it.
                        unsafe { sys::release(base, bytes) };
                        None
                    }
                }
            });
        let Some((base, bytes, table, slabs)) = some else {
            crate::say!("purlin: fence: there are no addresses for it");
            return;
        };
        if words.clone().any(|w| w == "trace") {
            let t = sys::try_reserve_rw(bytes / page * TRACED * 8);
            TRACES.store(t.unwrap_or(0), Ordering::Relaxed);
        }
        BLOCKS.base.store(base, Ordering::Relaxed);
        BLOCKS.bytes.store(bytes, Ordering::Relaxed);
        BLOCKS.table.store(table, Ordering::Relaxed);
        let shift = page.trailing_zeros() as usize;
        BLOCKS.shift.store(shift, Ordering::Relaxed);
        SLABS.store(slabs, Ordering::Relaxed);
        MOST_LIVE.store(mappings().saturating_sub(6000) / 2, Ordering::Relaxed);
        if words.any(|w| w == "verbose") {
            VERBOSE.store(true, Ordering::Relaxed);
        }
        watch();
        ON.store(true, Ordering::Release);
    });
}

/// Number of mappings that the system allows a process.
fn mappings() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|n| n.trim().parse().ok())
        .unwrap_or(65530)
}

/// Counts one more block in use; returns false if there are too many for one of this kind.
fn take_place(kind: Kind) -> bool {
    let live = LIVE.fetch_add(1, Ordering::Relaxed) + 1;
    let fits = live <= MOST_LIVE.load(Ordering::Relaxed) / 16 * KINDS[kind as usize].1;
    if fits {
        PEAK.fetch_max(live, Ordering::Relaxed);
        MADE[kind as usize].fetch_add(1, Ordering::Relaxed);
    } else {
        give_up_place(kind);
    }
    fits
}

fn give_up_place(kind: Kind) {
    LIVE.fetch_sub(1, Ordering::Relaxed);
    MISSED[kind as usize].fetch_add(1, Ordering::Relaxed);
}

thread_local! {
    /// The process that runs on this thread, or ran last.
    static PROCESS: Cell<u32> = const { Cell::new(0) };
    static DOING: Cell<Option<&'static &'static str>> = const { Cell::new(None) };
    /// Stack for reports: larger than threads have for signals.
    static REPORT_STACK: RefCell<Option<ReportStack>> = const { RefCell::new(None) };
}

/// Notes the process that runs on this thread, as a term. Called only if [`on`].
#[cold]
pub fn runs(pid: u64) {
    PROCESS.set(pid as u32);
}

/// Names the work under way for reports, until it is dropped.
#[must_use]
pub(crate) struct Doing(Option<&'static &'static str>);

/// Names the work that begins.
#[inline]
pub(crate) fn doing(what: &'static &'static str) -> Option<Doing> {
    on().then(|| Doing(DOING.replace(Some(what))))
}

impl Drop for Doing {
    fn drop(&mut self) {
        DOING.set(self.0);
    }
}

/// Allocates memory with that layout, behind the fence if there is one; null if there is no memory.
/// Its alignment is that of a word.
///
/// # Safety
/// The layout has a size.
#[inline]
pub unsafe fn allocate(kind: Kind, l: Layout) -> *mut u8 {
    if on()
        && let Some(p) = alloc(kind, l.size())
    {
        return p;
    }
    // SAFETY: by the contract, the layout has a size.
    unsafe { crate::refusal::alloc_or_null(l) }
}

/// Frees memory that [`allocate`] returned.
///
/// # Safety
/// It was allocated with that layout, and is not used afterwards.
#[inline]
#[track_caller]
pub unsafe fn deallocate(p: *mut u8, l: Layout) {
    // SAFETY: by the contract; a block that the fence does not own came from the allocator.
    unsafe {
        if owns(p) {
            return free(p);
        }
        std::alloc::dealloc(p, l);
    }
}

/// Allocates a block behind the fence, if possible.
#[cold]
pub fn alloc(kind: Kind, bytes: usize) -> Option<*mut u8> {
    report_here();
    if !take_place(kind) {
        return None;
    }
    let page = sys::page_bytes();
    let data = bytes.max(8).next_multiple_of(8);
    let pages = data.div_ceil(page);
    let (base, all) = (
        BLOCKS.base.load(Ordering::Relaxed),
        BLOCKS.bytes.load(Ordering::Relaxed) / page,
    );
    let first = match pages < all && NEXT.load(Ordering::Relaxed) < all {
        true => NEXT.fetch_add(pages + 1, Ordering::Relaxed),
        false => all,
    };
    if first + pages + 1 > all {
        give_up_place(kind);
        return None;
    }
    let at = base + first * page;
    // SAFETY: the counter has given these pages of the range to this block alone.
    if !unsafe { sys::try_commit(at, pages * page) } {
        give_up_place(kind);
        retire(first, pages + 1);
        return None;
    }
    let r = BLOCKS.run(first);
    let what = bytes as u64 | (kind as u64) << 48 | IN_USE << 56;
    r.by.store(PROCESS.get().into(), Ordering::Relaxed);
    r.what.store(what, Ordering::Relaxed);
    let start = at + pages * page - data;
    // SAFETY: fresh memory of `data` bytes.
    unsafe { ((start + bytes) as *mut u8).write_bytes(FILLED, data - bytes) };
    Some(start as *mut u8)
}

/// Frees a block that the fence owns.
///
/// # Safety
/// It is not used afterwards.
#[cold]
#[track_caller]
pub unsafe fn free<T>(p: *mut T) {
    report_here();
    let page = sys::page_bytes();
    let o = p as usize - BLOCKS.base.load(Ordering::Relaxed);
    let first = o / page;
    let r = BLOCKS.run(first);
    let what = r.what.load(Ordering::Relaxed);
    let bytes = (what & 0xFFFF_FFFF_FFFF) as usize;
    let data = bytes.max(8).next_multiple_of(8);
    let pages = data.div_ceil(page);
    if what >> 56 != IN_USE || o != (first + pages) * page - data {
        damaged("something is freed that is no block in use", p as usize);
    }
    // SAFETY: the block ends with the `data` bytes of its last page.
    let rest = unsafe { std::slice::from_raw_parts((p as *const u8).add(bytes), data - bytes) };
    if rest.iter().any(|&b| b != FILLED) {
        damaged("a block was written beyond its end", p as usize);
    }
    r.site
        .store(Location::caller() as *const _ as usize, Ordering::Relaxed);
    freed(r, what);
    let traces = TRACES.load(Ordering::Relaxed);
    if traces != 0 {
        // SAFETY: the table has `TRACED` addresses for each page, which only the thread that frees
        // the block writes.
        let of_page = unsafe {
            let of_page = (traces as *mut usize).add(first * TRACED);
            std::slice::from_raw_parts_mut(of_page, TRACED)
        };
        native_trace(of_page);
    }
    // SAFETY: the pages belong to the block, which its owner frees.
    unsafe {
        sys::protect(
            BLOCKS.base.load(Ordering::Relaxed) + first * page,
            pages * page,
        );
    }
    LIVE.fetch_sub(1, Ordering::Relaxed);
    retire(first, pages + 1);
}

/// Records who frees a block.
fn freed(r: &Run, what: u64) {
    let by = r.by.load(Ordering::Relaxed) & 0xFFFF_FFFF | u64::from(PROCESS.get()) << 32;
    r.by.store(by, Ordering::Relaxed);
    let doing = DOING.get().map_or(0, |d| d as *const &str as usize);
    r.doing.store(doing, Ordering::Relaxed);
    r.what
        .store(what & !(0xFF << 56) | FREED << 56, Ordering::Relaxed);
}

/// Counts pages that will not be used again. A slab all of whose pages are counted takes no memory
/// any more, except for its records, and those not for ever.
fn retire(first: usize, pages: usize) {
    let (mut at, end) = (first, first + pages);
    while at < end {
        let slab = at / SLAB_PAGES;
        let n = end.min((slab + 1) * SLAB_PAGES) - at;
        at += n;
        // SAFETY: the table has a count for each slab.
        let count = unsafe { &*(SLABS.load(Ordering::Relaxed) as *const AtomicU16).add(slab) };
        if count.fetch_add(n as u16, Ordering::AcqRel) as usize + n == SLAB_PAGES {
            forget(slab);
        }
    }
}

fn forget(slab: usize) {
    static FREE: Mutex<std::collections::VecDeque<usize>> =
        Mutex::new(std::collections::VecDeque::new());
    let page = sys::page_bytes();
    // Mapped anew as a whole, so that the system's tables for it go too.
    // SAFETY: all blocks of the slab were freed.
    unsafe {
        sys::protect(
            BLOCKS.base.load(Ordering::Relaxed) + slab * SLAB_PAGES * page,
            SLAB_PAGES * page,
        );
    }
    let oldest = {
        let mut f = FREE.lock();
        f.push_back(slab);
        match f.len() > REMEMBERED_SLABS {
            true => f.pop_front(),
            false => None,
        }
    };
    let Some(old) = oldest else { return };
    let mut tables = vec![(BLOCKS.table.load(Ordering::Relaxed), size_of::<Run>())];
    let traces = TRACES.load(Ordering::Relaxed);
    if traces != 0 {
        tables.push((traces, TRACED * 8));
    }
    for (table, each) in tables {
        let bytes = SLAB_PAGES * each;
        // SAFETY: the part of the table that describes a forgotten slab; nothing looks at it.
        unsafe { sys::decommit(table + old * bytes, bytes) };
    }
}

/// Bytes of each half of the range of regions, and those at its start that are behind the fence.
static REGION_HALF: AtomicUsize = AtomicUsize::new(1);
static REGION_FENCED: AtomicUsize = AtomicUsize::new(0);

/// Watches the range of regions, with one entry for each chunk. The first `fenced` of each `half`
/// bytes of it are behind the fence. Called once, before there is a region.
pub(crate) fn watch_regions(base: usize, bytes: usize, shift: u32, half: usize, fenced: usize) {
    if !on() {
        return;
    }
    REGION_HALF.store(half, Ordering::Relaxed);
    REGION_FENCED.store(fenced, Ordering::Relaxed);
    let table = sys::reserve_rw((bytes >> shift) * size_of::<Run>());
    REGIONS.table.store(table, Ordering::Relaxed);
    REGIONS.shift.store(shift as usize, Ordering::Relaxed);
    REGIONS.base.store(base, Ordering::Relaxed);
    REGIONS.bytes.store(bytes, Ordering::Release);
}

/// Whether a chunk of the range of regions is behind the fence.
pub(crate) fn is_region_fenced(chunk: usize) -> bool {
    on() && (chunk << REGIONS.shift()) % REGION_HALF.load(Ordering::Relaxed)
        < REGION_FENCED.load(Ordering::Relaxed)
}

/// Whether one more region may be behind the fence.
pub(crate) fn region_place() -> bool {
    take_place(Kind::Region)
}
/// Undoes [`region_place`].
pub(crate) fn no_region() {
    give_up_place(Kind::Region);
}
/// Records a region from that chunk on.
pub(crate) fn region_made(chunk: usize, bytes: usize) {
    let r = REGIONS.run(chunk);
    r.by.store(PROCESS.get().into(), Ordering::Relaxed);
    let what = bytes as u64 | (Kind::Region as u64) << 48 | IN_USE << 56;
    r.what.store(what, Ordering::Relaxed);
}
/// Records the final size of a region.
pub(crate) fn region_cut(chunk: usize, bytes: usize) {
    let r = REGIONS.run(chunk);
    let what = r.what.load(Ordering::Relaxed);
    r.what
        .store(what & !0xFFFF_FFFF_FFFF | bytes as u64, Ordering::Relaxed);
}
/// Records that a region was freed.
pub(crate) fn region_freed(chunk: usize) {
    let r = REGIONS.run(chunk);
    r.site.store(0, Ordering::Relaxed);
    freed(r, r.what.load(Ordering::Relaxed));
    LIVE.fetch_sub(1, Ordering::Relaxed);
}

/// The block that an address is in or behind.
struct Found {
    run: &'static Run,
    start: usize,
    /// The end of its memory.
    end: usize,
}

impl Found {
    fn at(addr: usize) -> Option<Found> {
        let (range, o) = [&BLOCKS, &REGIONS]
            .into_iter()
            .find_map(|r| r.offset(addr).map(|o| (r, o)))?;
        let shift = range.shift();
        let mut i = o >> shift;
        if std::ptr::eq(range, &REGIONS) && !is_region_fenced(i) {
            return None;
        }
        // No block has this many pages.
        let least = i.saturating_sub(1 << 24);
        while range.run(i).what.load(Ordering::Relaxed) == 0 {
            if i == least {
                return None;
            }
            i -= 1;
        }
        let run = range.run(i);
        let base = range.base.load(Ordering::Relaxed);
        let data = run.bytes().max(8).next_multiple_of(8);
        let from = base + (i << shift);
        let end = from + data.next_multiple_of(sys::page_bytes());
        let start = match run.kind() == Kind::Region as usize {
            true => from,
            false => end - data,
        };
        // One page behind it (for a region: a chunk) belongs to it.
        let limit = from + data.next_multiple_of(1 << shift) + (1 << shift);
        (addr < limit).then_some(Found { run, start, end })
    }
}

impl Run {
    fn bytes(&self) -> usize {
        (self.what.load(Ordering::Relaxed) & 0xFFFF_FFFF_FFFF) as usize
    }
    fn kind(&self) -> usize {
        (self.what.load(Ordering::Relaxed) >> 48 & 7) as usize
    }
    fn state(&self) -> u64 {
        self.what.load(Ordering::Relaxed) >> 56
    }
}

/// Whether an address may be used: false if the fence knows that it was freed, or that nothing was
/// ever there.
pub fn live<T>(p: *const T) -> bool {
    let a = p as usize;
    if !on() || (BLOCKS.offset(a).is_none() && REGIONS.offset(a).is_none()) {
        return true;
    }
    match Found::at(a) {
        Some(f) => f.run.state() == IN_USE && a >= f.start && a < f.start + f.run.bytes(),
        // Regions outside the fence are in the range too.
        None => REGIONS.offset(a).is_some(),
    }
}

/// Text for standard error that needs no allocation.
struct Out {
    text: [u8; 512],
    len: usize,
}

impl Out {
    fn new() -> Out {
        Out {
            text: [0; 512],
            len: 0,
        }
    }
    fn flush(&mut self) {
        // SAFETY: bytes of the buffer.
        unsafe { libc::write(2, self.text.as_ptr().cast(), self.len) };
        self.len = 0;
    }
}

impl Write for Out {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for &b in s.as_bytes() {
            if self.len == self.text.len() {
                self.flush();
            }
            self.text[self.len] = b;
            self.len += 1;
        }
        Ok(())
    }
}

/// A process in a report.
struct Who(u32);

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // SAFETY: the word of a pid, which is no pointer.
        let t = unsafe { Term::from_raw(self.0.into()) };
        if !t.is_local_pid() {
            return f.write_str("no process");
        }
        let d = t.pid_data();
        let number = d & ((1 << PID_NUM_BITS) - 1);
        write!(f, "<0.{number}.{}>", d >> PID_NUM_BITS)
    }
}

fn counts(out: &mut Out) {
    let n = |c: &[AtomicUsize; 8], i: usize| c[i].load(Ordering::Relaxed);
    let all = |c| (1..KINDS.len()).map(|i| n(c, i)).sum::<usize>();
    let _ = write!(
        out,
        "{} blocks made behind it (at most {} at a time, {} MiB of addresses), {} not",
        all(&MADE),
        PEAK.load(Ordering::Relaxed),
        (NEXT.load(Ordering::Relaxed) * sys::page_bytes()) >> 20,
        all(&MISSED)
    );
    let mut sign = ':';
    for (i, k) in KINDS.iter().enumerate().skip(1) {
        if n(&MADE, i) + n(&MISSED, i) > 0 {
            let _ = write!(out, "{sign} {} {}/{}", k.0, n(&MADE, i), n(&MISSED, i));
            sign = ',';
        }
    }
    let _ = out.write_str("\n");
}

/// Reports the numbers of blocks as the program ends, if wanted.
pub fn at_end() {
    if VERBOSE.load(Ordering::Relaxed) {
        let mut out = Out::new();
        let _ = out.write_str("purlin: fence: ");
        counts(&mut out);
        out.flush();
    }
}

/// Names the code at an address, for the report.
pub(crate) type NameCode = fn(*const u64) -> Option<String>;
static NAME_CODE: OnceLock<NameCode> = OnceLock::new();

/// Sets the function that names code in reports.
pub fn name_code(f: NameCode) {
    let _ = NAME_CODE.set(f);
}

/// Reports damage that was found without a fault, and ends the process.
#[cold]
fn damaged(what: &str, addr: usize) -> ! {
    let mut out = Out::new();
    let _ = writeln!(out, "purlin: fence: {what}: {addr:#x}");
    describe(&mut out, addr);
    user(&mut out, &[], 0);
    std::process::abort()
}

fn describe(out: &mut Out, addr: usize) {
    if [&BLOCKS, &REGIONS].iter().all(|r| r.offset(addr).is_none()) {
        let _ = writeln!(out, "  the address is in no block that the fence knows");
        return;
    }
    let Some(f) = Found::at(addr) else {
        let _ = writeln!(
            out,
            "  what was there is not known: never used, or freed long ago"
        );
        return;
    };
    let (run, bytes) = (f.run, f.run.bytes());
    let _ = write!(
        out,
        "  {} of {bytes} bytes ({} words) at {:#x}, ",
        KINDS[run.kind()].0,
        bytes / 8,
        f.start
    );
    let _ = match addr {
        a if a < f.start => writeln!(out, "{} bytes before it", f.start - a),
        a if a < f.start + bytes => {
            let o = a - f.start;
            writeln!(out, "byte {o} of it (word {})", o / 8)
        }
        a => writeln!(out, "{} bytes beyond its end", a - f.start - bytes),
    };
    let by = run.by.load(Ordering::Relaxed);
    let _ = writeln!(out, "  made by {}", Who(by as u32));
    if run.state() != FREED {
        let _ = match addr >= f.end {
            true => writeln!(out, "  it is in use"),
            false => writeln!(out, "  it is in use, and may not be written"),
        };
        return;
    }
    let _ = write!(out, "  freed by {}", Who((by >> 32) as u32));
    // SAFETY: both were stored from references that stay.
    unsafe {
        let doing = run.doing.load(Ordering::Relaxed) as *const &'static str;
        if let Some(d) = doing.as_ref() {
            let _ = write!(out, ", {d}");
        }
        let site = run.site.load(Ordering::Relaxed) as *const Location<'static>;
        if let Some(s) = site.as_ref() {
            let _ = write!(out, ", at {}:{}", s.file(), s.line());
        }
    }
    let _ = out.write_str("\n");
    let traces = TRACES.load(Ordering::Relaxed);
    if let Some(o) = BLOCKS.offset(f.end - 1).filter(|_| traces != 0) {
        let first = (o + 1 - bytes.max(8).next_multiple_of(8)) >> BLOCKS.shift();
        let _ = writeln!(out, "  freed from (addr2line -Cife PROGRAM ADDRESS …):");
        for i in 0..TRACED {
            // SAFETY: the table has `TRACED` addresses for each page.
            let pc = unsafe { *(traces as *const usize).add(first * TRACED + i) };
            if pc != 0 {
                let _ = writeln!(out, "    {}", NativePc(pc));
            }
        }
    }
}

/// A native address, shown as its file and the offset there.
struct NativePc(usize);

impl fmt::Display for NativePc {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        // SAFETY: all zeros is a value; the call fills it.
        unsafe {
            let mut i: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(self.0 as *const _, &mut i) != 0 && !i.dli_fname.is_null() {
                let name = std::ffi::CStr::from_ptr(i.dli_fname)
                    .to_str()
                    .unwrap_or("?");
                return write!(f, "{name} {:#x}", self.0 - i.dli_fbase as usize);
            }
        }
        write!(f, "{:#x}", self.0)
    }
}

unsafe extern "C" {
    fn _Unwind_Backtrace(
        f: extern "C" fn(*mut libc::c_void, *mut Frames) -> i32,
        frames: *mut Frames,
    ) -> i32;
    fn _Unwind_GetIP(context: *mut libc::c_void) -> usize;
}

#[repr(C)]
struct Frames {
    at: *mut usize,
    left: usize,
    skip: usize,
}

/// The return addresses of the callers, without the first few.
fn native_trace(to: &mut [usize]) {
    extern "C" fn frame(context: *mut libc::c_void, f: *mut Frames) -> i32 {
        // SAFETY: called with the arguments given below.
        unsafe {
            let f = &mut *f;
            if f.skip > 0 {
                f.skip -= 1;
                return 0;
            }
            if f.left == 0 {
                return 5;
            }
            // The address before the return address is inside the call.
            f.at.write(_Unwind_GetIP(context).wrapping_sub(1));
            f.at = f.at.add(1);
            f.left -= 1;
            0
        }
    }
    let mut f = Frames {
        at: to.as_mut_ptr(),
        left: to.len(),
        skip: 2,
    };
    // SAFETY: the walk fills no more than there is room for.
    unsafe { _Unwind_Backtrace(frame, &mut f) };
}

/// Reports the code that accesses the address, as far as possible. `registers` and the stack at
/// `sp` may lead to it.
fn user(out: &mut Out, registers: &[usize], sp: usize) {
    let mut name = [0u8; 64];
    // SAFETY: the buffer has the size given.
    unsafe { libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr().cast(), 64) };
    let end = name.iter().position(|&b| b == 0).unwrap_or(0);
    let _ = write!(
        out,
        "  now: {} on thread \"{}\"",
        Who(PROCESS.get()),
        std::str::from_utf8(&name[..end]).unwrap_or("?")
    );
    if let Some(d) = DOING.get() {
        let _ = write!(out, ", {d}");
    }
    let _ = out.write_str("\n  ");
    counts(out);
    out.flush();
    // From here on this thread may hold locks, or memory of the C library may be damaged.
    //
    // SAFETY: ends the process after that many seconds.
    unsafe { libc::alarm(30) };
    if let Some(name) = NAME_CODE.get() {
        let mut named: Vec<String> = Vec::new();
        let words = stack_words(sp);
        for &w in registers.iter().chain(&words) {
            if named.len() < 6
                && w % 8 == 0
                && let Some(n) = name(w as *const u64)
                && !named.contains(&n)
            {
                named.push(n);
            }
        }
        let _ = writeln!(out, "  code that registers and native stack lead to:");
        for n in &named {
            let _ = writeln!(out, "    {n}");
        }
    }
    out.flush();
    let frames = std::backtrace::Backtrace::force_capture().to_string();
    // The frames that start a thread are the same for all.
    for line in frames.lines() {
        if line.contains("__rust_begin_short_backtrace") {
            break;
        }
        let _ = writeln!(out, "{line}");
    }
    out.flush();
}

/// Words on the native stack, from `sp` on.
#[cfg(target_os = "linux")]
fn stack_words(sp: usize) -> Vec<usize> {
    let mut words = vec![0usize; if sp == 0 { 0 } else { 512 }];
    // SAFETY: the system copies what can be read.
    unsafe {
        let to = libc::iovec {
            iov_base: words.as_mut_ptr().cast(),
            iov_len: words.len() * 8,
        };
        let from = libc::iovec {
            iov_base: sp as *mut _,
            iov_len: words.len() * 8,
        };
        let n = libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0);
        words.truncate(n.max(0) as usize / 8);
    }
    words
}
/// None: no call of the system copies what can be read.
#[cfg(not(target_os = "linux"))]
fn stack_words(_: usize) -> Vec<usize> {
    Vec::new()
}

/// Registers of an interrupted thread, its stack pointer, and whether it wrote, as far as the
/// machine reports that.
fn registers(context: *mut libc::c_void) -> (Vec<usize>, usize, Option<bool>) {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    // SAFETY: the context that the system gives a handler.
    unsafe {
        let c = &*(context as *const libc::ucontext_t);
        let g = &c.uc_mcontext.gregs;
        let all = g[..=libc::REG_RIP as usize].iter().map(|&r| r as usize);
        let write = g[libc::REG_ERR as usize] & 2 != 0;
        (
            all.collect(),
            g[libc::REG_RSP as usize] as usize,
            Some(write),
        )
    }
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    // SAFETY: the context that the system gives a handler.
    unsafe {
        let c = &*(context as *const libc::ucontext_t);
        let m = &c.uc_mcontext;
        let all = m.regs.iter().map(|&r| r as usize);
        (all.collect(), m.sp as usize, None)
    }
    #[cfg(not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )))]
    {
        let _ = context;
        (Vec::new(), 0, None)
    }
}

const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];
/// The previous handlers, which find overflows of native stacks.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

fn watch() {
    // SAFETY: a handler of the right kind; all zeros is a value.
    unsafe {
        let mut before: [libc::sigaction; 2] = std::mem::zeroed();
        for (b, s) in before.iter_mut().zip(SIGNALS) {
            libc::sigaction(s, std::ptr::null(), b);
        }
        let _ = BEFORE.set(before);
        let mut a: libc::sigaction = std::mem::zeroed();
        a.sa_sigaction = on_fault as *const () as usize;
        a.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        for s in SIGNALS {
            libc::sigaction(s, &a, std::ptr::null_mut());
        }
    }
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    // SAFETY: the information that the system gives a handler.
    let addr = unsafe { (*info).si_addr() as usize };
    let known = [&BLOCKS, &REGIONS].iter().any(|r| r.offset(addr).is_some());
    if !known && !TOLD.load(Ordering::Relaxed) {
        // Perhaps the stack of this thread has overflowed: the previous handler knows, and
        // otherwise lets the fault come back.
        if let Some(before) = BEFORE.get() {
            let b = &before[usize::from(signal != libc::SIGSEGV)];
            if b.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: a handler that the system would have called.
                unsafe {
                    let f: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                        std::mem::transmute(b.sa_sigaction);
                    f(signal, info, context);
                }
            }
        }
    }
    if TOLD.swap(true, Ordering::Relaxed) {
        // Another thread reports, and then ends all of them.
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }
    let (registers, sp, write) = registers(context);
    let verb = match write {
        Some(true) => "write to",
        Some(false) => "read of",
        None => "use of",
    };
    let what = match Found::at(addr) {
        Some(f) if f.run.state() == FREED => "memory that was freed",
        Some(f) if addr >= f.end => "memory beyond the end of a block",
        Some(_) => "memory that may not be written",
        None if known => "memory that nobody has",
        None => "an address that cannot be",
    };
    let mut out = Out::new();
    let _ = writeln!(out, "purlin: fence: {verb} {what}: {addr:#x}");
    describe(&mut out, addr);
    out.flush();
    user(&mut out, &registers, sp);
    // SAFETY: restores the default action of the signal; the fault comes again after this.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// A stack for handlers of signals.
struct ReportStack {
    at: usize,
}

const REPORT_STACK_BYTES: usize = 1 << 20;

impl Drop for ReportStack {
    fn drop(&mut self) {
        // SAFETY: the stack belongs to the thread, which ends. The system no longer uses it when it
        // is released.
        unsafe {
            let mut off: libc::stack_t = std::mem::zeroed();
            off.ss_flags = libc::SS_DISABLE;
            libc::sigaltstack(&off, std::ptr::null_mut());
            sys::release(self.at, REPORT_STACK_BYTES);
        }
    }
}

/// Gives this thread a signal stack that is large enough for reports.
#[inline]
fn report_here() {
    let _ = REPORT_STACK.try_with(|s| {
        let Ok(mut s) = s.try_borrow_mut() else {
            return;
        };
        if s.is_none()
            && let Some(at) = sys::try_reserve_rw(REPORT_STACK_BYTES)
        {
            // SAFETY: memory that stays as long as the thread.
            unsafe {
                let mut new: libc::stack_t = std::mem::zeroed();
                new.ss_sp = at as *mut _;
                new.ss_size = REPORT_STACK_BYTES;
                libc::sigaltstack(&new, std::ptr::null_mut());
            }
            *s = Some(ReportStack { at });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Alloc;
    use crate::bin::RcBin;
    use crate::frag::Fragment;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    /// Runs `faults` in a process of its own with a fence that has to end it; returns its output.
    /// `name`: the test that calls this.
    fn report_of(name: &str, signal: i32, faults: impl FnOnce()) -> String {
        if std::env::var_os("FENCE_CHILD").is_some() {
            init();
            assert!(on());
            runs(crate::word::Term::pid(77).raw());
            let _d = doing(&"being tested");
            faults();
            std::process::exit(0);
        }
        let out = Command::new(std::env::current_exe().expect("has a path"))
            .args(["--exact", &format!("fence::tests::{name}"), "--nocapture"])
            .env("FENCE_CHILD", "1")
            .env("PURLIN_FENCE", "1")
            .output()
            .expect("starts");
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.signal(), Some(signal), "{text}");
        text
    }

    fn has(text: &str, parts: &[&str]) {
        for p in parts {
            assert!(text.contains(p), "no {p:?} in: {text}");
        }
    }

    #[test]
    fn a_freed_block_faults() {
        // SAFETY: none: a process of its own does what must fault, and ends there.
        let text = report_of("a_freed_block_faults", libc::SIGSEGV, || unsafe {
            let p = crate::blocks::alloc_block(233) as *mut u64;
            p.add(5).write(1);
            crate::blocks::free_block(p as *mut _, 233);
            std::hint::black_box(p.add(5).read_volatile());
        });
        has(
            &text,
            &[
                "purlin: fence: read of memory that was freed",
                "block of a heap of 1864 bytes (233 words)",
                "byte 40 of it (word 5)",
                "freed by <0.77.0>, being tested, at crates/term/src/fence.rs",
                "now: <0.77.0> on thread",
                "a_freed_block_faults",
            ],
        );
    }

    #[test]
    fn writing_beyond_the_end_faults() {
        // SAFETY: none: a process of its own does what must fault, and ends there.
        let text = report_of("writing_beyond_the_end_faults", libc::SIGSEGV, || unsafe {
            let mut f = Fragment::with_capacity(700);
            let p = f.alloc(700) as *mut u64;
            p.add(699).write_volatile(1);
            p.add(700).write_volatile(1);
        });
        has(
            &text,
            &[
                "purlin: fence: write to memory beyond the end of a block",
                "heap fragment of 5600 bytes (700 words)",
                "0 bytes beyond its end",
            ],
        );
    }

    #[test]
    fn bytes_behind_a_binary_are_looked_at() {
        let text = report_of(
            "bytes_behind_a_binary_are_looked_at",
            libc::SIGABRT,
            // SAFETY: none: a process of its own does what must fault, and ends there.
            || unsafe {
                let b = RcBin::from_bytes(&[7; 101]);
                RcBin::bytes(b).add(101).write(7);
                RcBin::release(b);
            },
        );
        has(
            &text,
            &["a block was written beyond its end", "binary of 133 bytes"],
        );
    }

    #[test]
    fn a_binary_that_grew_has_moved() {
        // SAFETY: none: a process of its own does what must fault, and ends there.
        let text = report_of("a_binary_that_grew_has_moved", libc::SIGSEGV, || unsafe {
            let b = RcBin::from_bytes(&[7; 100]);
            let p = RcBin::bytes(b);
            let b = RcBin::try_grow(b, 200).expect("there is memory");
            assert_eq!(RcBin::bytes(b).add(99).read(), 7);
            std::hint::black_box(p.read_volatile());
        });
        has(
            &text,
            &["read of memory that was freed", "binary of 132 bytes"],
        );
    }

    #[test]
    fn a_block_is_freed_once() {
        // SAFETY: none: a process of its own does what must fault, and ends there.
        let text = report_of("a_block_is_freed_once", libc::SIGABRT, || unsafe {
            let p = crate::blocks::alloc_block(20);
            crate::blocks::free_block(p, 20);
            crate::blocks::free_block(p, 20);
        });
        has(
            &text,
            &[
                "something is freed that is no block in use",
                "freed by <0.77.0>",
            ],
        );
    }

    #[test]
    fn freed_regions_fault_and_others_cannot_be_written() {
        let name = "freed_regions_fault_and_others_cannot_be_written";
        // SAFETY: none: a process of its own does what must fault, and ends there.
        let text = report_of(name, libc::SIGSEGV, || unsafe {
            let mut b = crate::region::Builder::counted(3000);
            let t = b.list(&[crate::NIL; 1000]);
            let r = b.finish();
            assert!(live(t.ptr()) && !live(r.area().0.add(r.words)));
            r.release();
            assert!(!live(t.ptr()));
            std::hint::black_box((t.ptr() as *const u64).read_volatile());
        });
        has(
            &text,
            &["read of memory that was freed", "region of 16000 bytes"],
        );
    }

    #[test]
    fn a_region_cannot_be_written() {
        // SAFETY: none: a process of its own does what must fault, and ends there.
        let text = report_of("a_region_cannot_be_written", libc::SIGSEGV, || unsafe {
            let mut b = crate::region::Builder::counted(3000);
            let t = b.list(&[crate::NIL; 1000]);
            b.finish();
            (t.ptr() as *mut u64).write_volatile(3);
        });
        has(
            &text,
            &[
                "write to memory that may not be written",
                "in use, and may not be",
            ],
        );
    }

    #[test]
    fn addresses_are_not_used_again_and_blocks_that_are_too_many_are_plain() {
        let name = "addresses_are_not_used_again_and_blocks_that_are_too_many_are_plain";
        // SAFETY: none: a process of its own does what must fault, and ends there.
        report_of(name, libc::SIGSEGV, || unsafe {
            let l = Layout::array::<u64>(30).expect("small");
            let mut last = 0;
            for i in 0..20_000 {
                let p = allocate(Kind::Signal, l);
                assert!(owns(p) && live(p) && p as usize > last);
                assert_eq!(*p, 0);
                *p = 1;
                last = p as usize;
                if i % 100 != 0 {
                    deallocate(p, l);
                    assert!(!live(p));
                }
            }
            let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            assert!(
                mappings.lines().count() < 1000,
                "free neighbours are one mapping"
            );
            let all: Vec<_> = (0..70_000).map(|_| allocate(Kind::Object, l)).collect();
            assert!(all.iter().any(|&p| owns(p)) && !owns(all[69_999]));
            let p = crate::blocks::alloc_block(20);
            assert!(owns(p), "there is still room for heaps");
            for p in all {
                deallocate(p, l);
            }
            (last as *mut u8).read_volatile();
        });
    }
}
