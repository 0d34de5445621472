//! Processes: control blocks, the process table, the state word.
//!
//! # The cell
//! A process is one cell of [`table::CELL_BYTES`] bytes: this control block, then the first words of its heap and
//! stack. The parts that most processes never have hang off it by pointers that start as null ([`Mailbox`], [`Ext`]). The heap
//! pointers are packed (a base and 32-bit offsets in words) while the process waits, and expanded into `Cx::heap`
//! while it runs.
//!
//! # Who touches what
//! `id`, `state` and `in_transit` are read and written by anybody, as their modules say. All else belongs to the owner:
//! the thread that set `RUNNING` in the state word, or holds the cell before it was published.

mod dense;
pub mod dict;
pub mod ext;
pub mod heap_info;
pub mod keys;
mod named;
pub mod registry;
pub mod remote;
pub mod request;
mod resource_count;
pub mod resource_counts;
pub mod saved;
pub mod session;
pub mod slots;
pub mod state;
#[cfg(test)]
mod state_tests;
pub mod table;
pub mod task;
pub mod urgent;

pub use ext::Ext;

use crate::message::blocks;
use crate::message::mailbox::Mailbox;
use crate::message::queue::InTransit;
use crate::options;
use crate::sync::{AtomicU32, Ordering};
use purlin_native::cx::Context;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use purlin_term::fun::Export;
use purlin_term::heap::Heap;
use purlin_term::off_heap::OffHeap;
use purlin_term::region::Region;
use std::sync::OnceLock;

/// [`Process::id`] of a cell that holds no process: no pid has this data.
pub(crate) const NO_ID: u32 = u32::MAX;

/// Traps exits.
pub const TRAP_EXIT: u16 = 1 << 0;
/// Waits in a native because a port, or the connection to another node, takes no more (for those who ask).
pub const BUSY: u16 = 1 << 1;
/// The receive timer is running.
pub const TIMER: u16 = 1 << 2;
/// The registers saved at the last yield are in `Ext::regs`.
const REGS_IN_EXT: u16 = 1 << 3;
/// A signal has ended the process: `Ext::exit_reason` says why.
pub const EXIT_PENDING: u16 = 1 << 4;
/// `process_flag(sensitive, true)`
pub const SENSITIVE: u16 = 1 << 5;
/// Started by the runtime; not to be asked about itself.
pub const SYSTEM: u16 = 1 << 6;
/// `message_queue_data` is `off_heap`.
pub const OFF_HEAP_QUEUE: u16 = 1 << 7;
/// It began to wait, or its wait was over, while it is timed: see [`crate::waits`].
pub(crate) const TIMED: u16 = 1 << 8;
/// Waits at the `wait_timeout` instruction whose `timeout_pc` is saved.
pub(crate) const IN_RECEIVE: u16 = 1 << 9;

/// Waits for a signal (for those who ask: the state word decides).
pub const WAITING: u16 = 1 << 10;
/// Somebody traces it: `Ext::trace_flags` says for what.
pub const TRACED: u16 = 1 << 11;
/// Whoever profiles the system was told that it does not run.
pub(crate) const INACTIVE: u16 = 1 << 12;
/// It has a token of sequential tracing.
pub const SEQUENTIAL: u16 = 1 << 13;
/// It was compacted as it began to wait: see [`crate::collect::compact::settle`].
pub(crate) const SETTLED: u16 = 1 << 14;
/// It saves its calls: see [`saved`].
pub const SAVES: u16 = 1 << 15;

/// See `Process::small_sweeps`.
const SHRINK_NEXT: u16 = 1 << 15;
/// The bits below are `Heap::room` (all blocks that are given at once have a place below 32 in the series of sizes), then
/// the time slices that the process has had of a long turn.
const ROOM_SHIFT: u32 = 10;
const TURN_SHIFT: u32 = 5;
const ROOM: u16 = 0x1F << ROOM_SHIFT;
const TURN: u16 = 0x1F << TURN_SHIFT;
const SWEEPS: u16 = (1 << TURN_SHIFT) - 1;

/// The context that code and natives run in, with the process that runs.
pub type Cx = Context<Process>;

/// The control block of a process. See the module head for who may touch what.
#[repr(C)]
pub struct Process {
    /// The 28 data bits of its pid, or [`NO_ID`]. Read by senders, written by the spawner and at exit.
    pub id: AtomicU32,
    pub state: state::State,
    /// Signals in transit to it.
    pub in_transit: InTransit,
    /// Where it resumes.
    pub pc: *const u64,
    /// Where it goes on when its receive timer fires; see [`Process::set_resumes`], too.
    pub timeout_pc: *const u64,
    // The packed heap: the block, its words, and the offsets of top, stack and high water. Where the words are 0 it is a
    // box with a whole `Heap`, since the packed form couldn't express it when it was packed last; while the process runs,
    // what is in the box means nothing.
    heap: *mut Term,
    block_words: u32,
    htop: u32,
    stop: u32,
    high_water: u32,
    /// The first object that owns something; or, with [`IN_REGION`] added, the region that terms of the heap refer to.
    off_heap: *mut Term,
    off_heap_bytes: u32,
    /// Registers saved above the heap's top.
    pub live: u16,
    minor_gcs: u16,
    pub flags: u16,
    /// See `Heap::small_sweeps`; [`SHRINK_NEXT`] stands for `Heap::shrink_next`, and [`ROOM`] and [`TURN`] are beside it.
    small_sweeps: u16,
    /// Data of the parent's pid.
    pub parent: u32,
    pub reductions: u64,
    /// An immediate: the pid of a local process, or `undefined` where `Ext::group_leader` holds it.
    pub group_leader: Term,
    pub initial_call: *const Export,
    pub mailbox: *mut Mailbox,
    ext: *mut Ext,
}

/// Words of heap and stack in the cell.
pub(crate) const INLINE_WORDS: usize = (table::CELL_BYTES - size_of::<Process>()) / 8;

const _: () = assert!(size_of::<Process>() + 8 * 8 <= table::CELL_BYTES);

static TABLE: OnceLock<table::Table> = OnceLock::new();

/// The process table.
#[inline]
pub fn table() -> &'static table::Table {
    TABLE.get_or_init(|| table::Table::new(table::MAX_PROCESSES, table::MAX_PROCESSES))
}

/// Makes the process table, for at most `limit` processes, or `scarce` where addresses are. To be called before [`table`] is.
pub fn init_table(limit: usize, scarce: usize) {
    let _ = TABLE.set(table::Table::new(limit, scarce));
}

/// Least words of a heap: what `+hms` or the spawn option says, else what suffices.
#[inline]
pub(crate) fn settings(heap: &mut Heap) {
    let d = &DEFAULTS;
    heap.min_heap_words = default_min_heap();
    heap.min_vheap_words = d.min_vheap_words.load(Ordering::Relaxed) as usize;
    heap.vheap_bytes = heap.min_vheap_words * 8;
    heap.old_vheap_bytes = heap.vheap_bytes;
    heap.fullsweep_after = d.fullsweep_after.load(Ordering::Relaxed);
}

/// Pids below this one belong to `init` and the runtime's own processes: the first ones, which live as long as it does.
pub static SYSTEM_PROCESSES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

/// Whether a local pid is that of `init` or of one of the runtime's own processes.
#[inline]
pub fn is_system(pid: Term) -> bool {
    pid.pid_data() < SYSTEM_PROCESSES.load(std::sync::atomic::Ordering::Relaxed)
}

/// Settings that new processes get. `0` least heap words: no minimum was asked for.
pub struct Defaults {
    pub min_heap_words: AtomicU32,
    pub min_vheap_words: AtomicU32,
    pub fullsweep_after: AtomicU32,
}

/// See [`Defaults`].
pub static DEFAULTS: Defaults = Defaults {
    min_heap_words: AtomicU32::new(0),
    min_vheap_words: AtomicU32::new(46422),
    fullsweep_after: AtomicU32::new(65535),
};

/// `message_queue_data` of new processes: whether it is `off_heap` (`+hmqd`).
#[inline]
pub fn default_off_heap_queue() -> bool {
    OFF_HEAP_DEFAULT.load(std::sync::atomic::Ordering::Relaxed)
}
/// See [`default_off_heap_queue`].
pub static OFF_HEAP_DEFAULT: std::sync::atomic::AtomicBool =
    std::sync::atomic::AtomicBool::new(false);

static MAX_HEAP_DEFAULT: crate::sync::RwLock<Option<ext::MaxHeap>> = crate::sync::RwLock::new(None);
/// It has been set once.
static MAX_HEAP_SET: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// `max_heap_size` of new processes; `None`: no limit.
#[inline]
pub fn default_max_heap() -> Option<ext::MaxHeap> {
    // Every process that is made asks, and hardly any runtime has such a limit.
    if !MAX_HEAP_SET.load(Ordering::Relaxed) {
        return None;
    }
    Some(max_heap_flags()).filter(|m| m.words > 0)
}
/// The effect of a limit on a process that exceeds it, unless the process says otherwise.
#[inline]
pub fn max_heap_flags() -> ext::MaxHeap {
    let d = MAX_HEAP_DEFAULT.read();
    d.unwrap_or(ext::MaxHeap {
        words: 0,
        kill: true,
        error_logger: true,
        include_shared_binaries: false,
    })
}
/// Sets `max_heap_size` of new processes; the one before is returned.
#[inline]
pub fn set_default_max_heap(m: Option<ext::MaxHeap>) -> Option<ext::MaxHeap> {
    let mut d = MAX_HEAP_DEFAULT.write();
    MAX_HEAP_SET.store(true, Ordering::Relaxed);
    std::mem::replace(&mut d, m)
}

/// The least heap size in words that a process reports: what was asked for, or what stock documents as the default.
#[inline]
pub fn reported_min_heap(p: &mut Process) -> usize {
    least_heap(p.ext().and_then(|e| e.settings.min_heap_words))
}

/// Words that the heap of a process has at least if nothing was asked for; 0 for what it needs.
#[inline]
pub fn default_min_heap() -> usize {
    DEFAULTS.min_heap_words.load(Ordering::Relaxed) as usize
}

/// Words that the heap of a process has at least, by what was asked for, as it is reported.
#[inline]
pub fn least_heap(asked: Option<u32>) -> usize {
    match asked.unwrap_or_else(|| DEFAULTS.min_heap_words.load(Ordering::Relaxed)) {
        0 => 233,
        n => n as usize,
    }
}

impl Process {
    /// Its own pid.
    #[inline]
    pub fn pid(&self) -> Term {
        Term::pid(self.id.load(Ordering::Relaxed))
    }
    /// The words of heap and stack in the cell.
    #[inline]
    pub(crate) fn inline_words(&mut self) -> *mut Term {
        // SAFETY: the cell is larger than the control block by INLINE_WORDS words.
        unsafe { (self as *mut Process).add(1) as *mut Term }
    }
    /// The seldom parts, if it has them.
    #[inline]
    pub fn ext(&mut self) -> Option<&mut Ext> {
        // SAFETY: owned by this process; null or from `Box::into_raw`.
        unsafe { self.ext.as_mut() }
    }
    /// Whether it goes on at once when it has sent to a busy connection.
    pub fn is_async_dist(&mut self) -> bool {
        let own = self.ext().and_then(|e| e.async_dist);
        own.unwrap_or_else(|| options::try_current().is_some_and(|o| o.flags.dist.async_dist))
    }
    /// The seldom parts, made if need be.
    #[inline]
    pub fn ext_mut(&mut self) -> &mut Ext {
        if self.ext.is_null() {
            self.ext = blocks::boxed(Ext::default());
        }
        // SAFETY: as in `ext`.
        unsafe { &mut *self.ext }
    }
    /// Frees what it seldom has.
    ///
    /// # Safety
    /// The caller owns the process, and nothing in it is used afterwards.
    #[inline]
    pub(crate) unsafe fn drop_ext(&mut self) {
        if !self.ext.is_null() {
            blocks::unbox(self.ext);
            self.ext = std::ptr::null_mut();
        }
    }
    /// It is to end for `reason`, which is copied; unless it is about to already.
    #[inline]
    pub(crate) fn end_for(&mut self, reason: Term) {
        if self.has(EXIT_PENDING) {
            return;
        }
        self.flags |= EXIT_PENDING;
        self.ext_mut().exit_reason = Some(Box::new(OwnedTerm::copy_of(reason)));
    }
    /// Why a signal has ended it, taken from it.
    pub(crate) fn take_exit_reason(&mut self) -> Option<OwnedTerm> {
        let r = self.ext()?.rare()?;
        r.exit_reason.take().map(|b| *b)
    }
    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
    /// Sets or clears a flag.
    #[inline]
    pub fn set_flag(&mut self, flag: u16, on: bool) {
        if on {
            self.flags |= flag;
        } else {
            self.flags &= !flag;
        }
    }
    /// The mailbox, made if need be.
    #[inline]
    pub(crate) fn mailbox_mut(&mut self) -> &mut Mailbox {
        if self.mailbox.is_null() {
            self.mailbox = Mailbox::boxed();
        }
        // SAFETY: owned by this process.
        unsafe { &mut *self.mailbox }
    }
    /// The time slice ends within the instruction at `pc`, which keeps how far it is in registers and is told so when it runs
    /// next ([`Process::take_resumes`]). The process is in no receive, so `timeout_pc` means nothing meanwhile: an address that is
    /// no instruction's says it.
    pub fn set_resumes(&mut self, pc: *const u64) {
        debug_assert!(!self.has(TIMER));
        self.timeout_pc = pc.wrapping_byte_add(1);
    }
    /// Whether the instruction at `pc` is one that goes on.
    pub fn take_resumes(&mut self, pc: *const u64) -> bool {
        let resumes = std::ptr::eq(self.timeout_pc, pc.wrapping_byte_add(1));
        if resumes {
            self.timeout_pc = std::ptr::null();
        }
        resumes
    }
    /// Whether a guard that runs can be no receive's that looks at a message.
    pub fn looks_at_no_message(&self) -> bool {
        // SAFETY: owned by this process; null or a mailbox.
        !self.has(TIMER) && unsafe { self.mailbox.as_ref() }.is_none_or(|m| !m.has_current())
    }
    /// Messages that were fetched and not received yet.
    #[inline]
    pub fn queued_messages(&self) -> usize {
        // SAFETY: owned by this process; null or a mailbox.
        unsafe { self.mailbox.as_ref().map_or(0, |m| m.len()) }
    }

    /// Words of the messages in its queue.
    #[inline]
    pub fn queued_words(&self) -> usize {
        // SAFETY: as above.
        unsafe { self.mailbox.as_ref().map_or(0, |m| m.bytes() / 8) }
    }

    /// Makes the fields of a cell that the spawner owns.
    ///
    /// # Safety
    /// `p` was reserved by the caller and not published.
    pub unsafe fn init(p: *mut Process, group_leader: Term, parent: u32) {
        let me = &mut *p;
        me.pc = std::ptr::null();
        me.timeout_pc = std::ptr::null();
        me.heap = me.inline_words();
        me.block_words = INLINE_WORDS as u32;
        me.htop = 0;
        me.stop = INLINE_WORDS as u32;
        me.high_water = 0;
        me.off_heap = std::ptr::null_mut();
        me.off_heap_bytes = 0;
        me.live = 0;
        me.minor_gcs = 0;
        me.flags = 0;
        me.small_sweeps = 0;
        me.parent = parent;
        me.reductions = 0;
        me.group_leader = group_leader;
        me.initial_call = std::ptr::null();
        me.mailbox = std::ptr::null_mut();
        me.ext = std::ptr::null_mut();
    }

    /// Gives a process that was just made its heap: terms up to `top`, the stack from `stop` on, all else free.
    ///
    /// # Safety
    /// The caller owns the process, which has had no heap yet. The block is that in the cell, or from [`purlin_term::gc`], and
    /// what it holds is whole.
    pub(crate) unsafe fn set_first_block(
        &mut self,
        block: std::ops::Range<*mut Term>,
        top: *mut Term,
        stop: *mut Term,
        off_heap: OffHeap,
    ) {
        let words = |from: *mut Term, to: *mut Term| (to as usize - from as usize) >> 3;
        let size = words(block.start, block.end);
        let most = u32::MAX as usize;
        if size > most || off_heap.bytes > most || !packs_regions(&off_heap) {
            let mut h = Heap::empty();
            self.unpack(&mut h);
            (h.heap, h.high_water, h.htop) = (block.start, block.start, top);
            (h.stop, h.hend) = (stop, block.end);
            h.inline_block = std::ptr::eq(block.start, self.inline_words());
            h.off_heap = off_heap;
            self.pack(&mut h);
            return;
        }
        self.heap = block.start;
        self.block_words = size as u32;
        self.htop = words(block.start, top) as u32;
        self.stop = words(block.start, stop) as u32;
        self.off_heap_bytes = off_heap.bytes as u32;
        self.off_heap = pack_off_heap(off_heap);
    }

    /// Whether there is a box for its heap, which is a block of its own.
    #[inline]
    pub fn has_boxed_heap(&self) -> bool {
        self.block_words == 0
    }

    /// Its heap, where that is in a box.
    ///
    /// # Safety
    /// The caller owns the process, which is packed.
    #[inline]
    pub(crate) unsafe fn boxed_heap(&self) -> Option<&Heap> {
        (self.block_words == 0).then(|| &*(self.heap as *const Heap))
    }

    /// Counts a time slice of a long turn, which has so many of them (a power of two, 16 at most): whether the turn goes on, and
    /// whether the process has had a whole one since it waited.
    #[inline]
    pub(crate) fn count_turn(&mut self, slices: u16) -> (bool, bool) {
        let n = (self.small_sweeps & TURN) >> TURN_SHIFT;
        let more = !(n + 1).is_multiple_of(slices);
        // The bit above those that count stays.
        let n = if more { n + 1 } else { slices };
        self.small_sweeps = self.small_sweeps & !TURN | n << TURN_SHIFT;
        (more, n >= slices)
    }

    /// It has had a whole long turn of so many slices.
    #[inline]
    pub(crate) fn had_turn(&mut self, slices: u16) {
        self.small_sweeps = self.small_sweeps & !TURN | slices << TURN_SHIFT;
    }

    /// It begins to wait: its next long turn is a whole one.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.small_sweeps &= !TURN;
    }

    /// Words of its young block.
    ///
    /// # Safety
    /// The caller owns the process, which is packed.
    #[inline]
    pub(crate) unsafe fn heap_block_words(&self) -> usize {
        match self.boxed_heap() {
            Some(h) => h.block_words(),
            None => self.block_words as usize,
        }
    }

    /// Words of its block, and those of them that are free, where it is packed in the cell.
    #[inline]
    pub(crate) fn packed_words(&self) -> (usize, usize) {
        let free = self.stop - self.htop;
        (self.block_words as usize, free as usize)
    }

    /// Words of all blocks of its heap.
    ///
    /// # Safety
    /// The caller owns the process, which is packed.
    pub(crate) unsafe fn heap_blocks_words(&self) -> usize {
        match self.boxed_heap() {
            None => self.block_words as usize,
            Some(h) => h.block_words() + h.old_block_words() + h.frag_words,
        }
    }

    /// Frees the box of a heap, if there is one, but nothing that the heap owns.
    ///
    /// # Safety
    /// The caller owns the process, which is not packed.
    #[inline]
    pub(crate) unsafe fn drop_boxed_heap(&mut self) {
        if self.block_words == 0 {
            drop(Box::from_raw(self.heap as *mut Heap));
            self.heap = std::ptr::null_mut();
            self.block_words = INLINE_WORDS as u32;
        }
    }

    /// Expands its heap.
    ///
    /// # Safety
    /// The caller owns the process, whose heap is packed.
    #[inline]
    pub(crate) unsafe fn unpack(&mut self, h: &mut Heap) {
        if self.block_words == 0 {
            std::ptr::swap(h, self.heap as *mut Heap);
            h.inline_block = std::ptr::eq(h.heap, self.inline_words());
            return;
        }
        h.heap = self.heap;
        h.htop = self.heap.add(self.htop as usize);
        h.stop = self.heap.add(self.stop as usize);
        h.hend = self.heap.add(self.block_words as usize);
        h.high_water = self.heap.add(self.high_water as usize);
        h.old_heap = std::ptr::null_mut();
        h.old_htop = std::ptr::null_mut();
        h.old_hend = std::ptr::null_mut();
        h.frag_words = 0;
        h.off_heap = OffHeap {
            first: self.off_heap,
            bytes: self.off_heap_bytes as usize,
            regions: Default::default(),
        };
        if self.off_heap.addr() & IN_REGION != 0 {
            unpack_region(&mut h.off_heap);
        }
        if h.sent.is_some() {
            h.sent = None;
        }
        h.region_bytes = 0;
        h.region_bytes_kept = 0;
        h.old_off_heap = OffHeap::default();
        h.minor_gcs = u32::from(self.minor_gcs);
        h.need_fullsweep = false;
        h.gc_wanted = false;
        h.window = false;
        h.stack_reserve = 0;
        h.grow_next = false;
        h.all_survives = false;
        h.leaves = false;
        h.waited = false;
        h.shrink_next = self.small_sweeps & SHRINK_NEXT != 0;
        h.small_sweeps = self.small_sweeps & SWEEPS;
        h.room = ((self.small_sweeps & ROOM) >> ROOM_SHIFT) as u8;
        h.rested = self.high_water as usize;
        h.inline_block = std::ptr::eq(self.heap, self.inline_words());
        settings(h);
        if !self.ext.is_null() {
            (*self.ext).apply_settings(h);
        }
    }

    /// Packs its heap.
    ///
    /// # Safety
    /// The caller owns the process; `h` is its heap, and is empty afterwards.
    #[inline]
    pub(crate) unsafe fn pack(&mut self, h: &mut Heap) {
        debug_assert!(h.runs.is_none() || !h.old_heap.is_null());
        let simple = h.old_heap.is_null()
            && h.frags.is_empty()
            && h.old_off_heap.first.is_null()
            && packs_regions(&h.off_heap)
            && h.old_off_heap.regions.is_empty()
            && h.sent.is_none()
            && !h.leaves
            && h.off_heap.bytes <= u32::MAX as usize
            && h.block_words() <= u32::MAX as usize
            && h.minor_gcs <= u32::from(u16::MAX)
            && h.vheap_bytes == h.min_vheap_words * 8
            && !h.gc_wanted
            && !h.need_fullsweep;
        if !simple {
            if self.block_words != 0 {
                self.heap = Box::into_raw(Box::new(Heap::empty())) as *mut Term;
                self.block_words = 0;
            }
            std::ptr::swap(h, self.heap as *mut Heap);
            return;
        }
        self.drop_boxed_heap();
        let off = |p: *mut Term| ((p as usize - h.heap as usize) >> 3) as u32;
        self.htop = off(h.htop);
        self.stop = off(h.stop);
        self.high_water = off(h.high_water);
        self.heap = h.heap;
        self.block_words = h.block_words() as u32;
        self.off_heap_bytes = h.off_heap.bytes as u32;
        self.off_heap = pack_off_heap(std::mem::take(&mut h.off_heap));
        self.minor_gcs = h.minor_gcs as u16;
        self.small_sweeps =
            self.small_sweeps & TURN | h.small_sweeps.min(SWEEPS) | u16::from(h.room) << ROOM_SHIFT;
        if h.shrink_next {
            self.small_sweeps |= SHRINK_NEXT;
        }
        let n = std::ptr::null_mut();
        (h.heap, h.htop, h.stop, h.hend) = (n, n, n, n);
    }
}

/// Of the packed heap's off-heap list: see there. Objects and heads of regions are aligned to more.
const IN_REGION: usize = 1;
/// A region of more bytes asks for collections, which a packed heap doesn't count for.
const PACKED_BYTES: usize = 256 << 10;

/// Whether the regions of a young generation can be packed.
#[inline]
fn packs_regions(o: &OffHeap) -> bool {
    o.regions.is_empty()
        || (o.first.is_null() && o.regions.only().is_some() && o.regions.bytes() <= PACKED_BYTES)
}

/// The one word for a list, or for the region of which it has the count.
#[inline]
fn pack_off_heap(mut o: OffHeap) -> *mut Term {
    match o.regions.take_one() {
        None => o.first,
        Some(r) => (r as *const Region as *mut Term).wrapping_byte_add(IN_REGION),
    }
}

#[cold]
/// # Safety
/// `o` is what the packed form of a heap with one region was made from, and is not unpacked yet.
unsafe fn unpack_region(o: &mut OffHeap) {
    let r = o.first.wrapping_byte_sub(IN_REGION) as *const Region;
    o.first = std::ptr::null_mut();
    o.regions.adopt(&*r);
}

/// A context takes a process on, and lets it go.
pub trait Enter {
    /// Makes `p` the process that runs on this thread: expands its heap and restores its registers.
    ///
    /// # Safety
    /// The caller owns `p`.
    unsafe fn enter(&mut self, p: *mut Process);

    /// Packs the process that runs, to resume at `pc` with the first `live` X registers. It is still owned by the
    /// caller, and still [`Context::proc`](purlin_native::cx::Context::proc).
    ///
    /// # Safety
    /// The heap's pointers in the context are current.
    unsafe fn leave(&mut self, pc: *const u64, live: usize);
}

impl purlin_native::cx::Sees for Process {
    const PROCESS: bool = true;
}

impl purlin_native::cx::Owner for Process {
    #[inline]
    fn pid(&self) -> Term {
        Process::pid(self)
    }
}

impl Enter for Cx {
    #[inline]
    unsafe fn enter(&mut self, p: *mut Process) {
        let me = &mut *p;
        self.proc = p;
        if purlin_term::fence::on() {
            purlin_term::fence::runs(me.pid().raw());
        }
        me.unpack(&mut self.heap);
        let n = me.live as usize;
        if n > 0 {
            if me.has(REGS_IN_EXT) {
                me.flags &= !REGS_IN_EXT;
                let regs = std::mem::take(&mut me.ext_mut().regs);
                self.x[..n].copy_from_slice(&regs);
            } else {
                for i in 0..n {
                    self.x[i] = *self.heap.htop.add(i);
                }
            }
        }
    }

    #[inline]
    unsafe fn leave(&mut self, pc: *const u64, live: usize) {
        let me = &mut *self.proc;
        me.pc = pc;
        me.live = live as u16;
        if live > 0 {
            if self.heap.free_words() >= live {
                std::ptr::copy_nonoverlapping(self.x.as_ptr(), self.heap.htop, live);
            } else {
                let regs = self.x[..live].to_vec();
                me.ext_mut().regs = regs;
                me.flags |= REGS_IN_EXT;
            }
        }
        me.pack(&mut self.heap);
    }
}

/// The group leader of the process that runs.
pub fn group_leader_of(cx: &mut Cx) -> Term {
    let gl = cx.process().group_leader;
    if gl != purlin_term::am::UNDEFINED {
        return gl;
    }
    let t = cx
        .process()
        .ext()
        .and_then(|e| e.group_leader.as_ref())
        .map(|o| o.term());
    t.map_or(purlin_term::am::UNDEFINED, |t| {
        purlin_term::copy::copy(t, cx)
    })
}

/// Sets the group leader of a process that the caller owns.
pub fn set_group_leader(p: &mut Process, gl: Term) {
    if gl.is_local_pid() {
        p.group_leader = gl;
        if let Some(e) = p.ext() {
            e.group_leader = None;
        }
    } else {
        p.group_leader = purlin_term::am::UNDEFINED;
        p.ext_mut().group_leader = Some(Box::new(purlin_term::frag::OwnedTerm::copy_of(gl)));
    }
}
