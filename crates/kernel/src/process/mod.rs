//! The control block of a process, which thread may touch which of its fields, and how its heap is
//! packed while it waits. The state word is in [`state`], the table of processes in [`table`].
//!
//! # The cell
//! A process is one cell of [`table::CELL_BYTES`] bytes: this control block, followed by the first
//! words of its heap and stack. Parts that most processes never have hang off it by pointers that
//! start as null ([`Mailbox`], [`Ext`]). The heap pointers are packed while the process waits (a
//! base and 32-bit offsets in words) and expanded into `Cx::heap` while it runs.
//!
//! # Who touches what
//! Any thread reads and writes `id`, `state` and `in_transit`, under the rules of their modules.
//! Everything else belongs to the owner: the thread that set `RUNNING` in the state word, or that
//! holds the cell before it is published.

mod dense;
pub mod dict;
pub mod exported;
pub mod ext;
pub mod heap_info;
mod named;
pub mod priority_messages;
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
pub mod tracer;

pub use ext::Ext;

use crate::message::blocks;
use crate::message::mailbox::Mailbox;
use crate::message::queue::InTransit;
use crate::options;
use crate::sync::{AtomicU32, AtomicUsize, Ordering};
use purlin_native::cx::Context;
use purlin_term::Term;
use purlin_term::frag::OwnedTerm;
use purlin_term::fun::Export;
use purlin_term::heap::Heap;
use purlin_term::off_heap::OffHeap;
use purlin_term::region::Region;

/// [`Process::id`] of a cell without a process. No pid has this data.
pub(crate) const NO_ID: u32 = u32::MAX;

pub const TRAP_EXIT: u16 = 1 << 0;
/// Waits in a native for a busy port or connection to another node. Only reported; decides nothing.
pub const BUSY: u16 = 1 << 1;
/// The receive timer is running.
pub const TIMER: u16 = 1 << 2;
/// The registers saved at the last yield are in `Ext::regs`.
const REGS_IN_EXT: u16 = 1 << 3;
/// A signal has ended the process; `Ext::exit_reason` has the reason.
pub const EXIT_PENDING: u16 = 1 << 4;
/// `process_flag(sensitive, true)`.
pub const SENSITIVE: u16 = 1 << 5;
/// Started by the runtime, and hidden from queries about processes.
pub const SYSTEM: u16 = 1 << 6;
/// `message_queue_data` is `off_heap`.
pub const OFF_HEAP_QUEUE: u16 = 1 << 7;
/// Began or ended a wait while waits are timed; see [`crate::waits`].
pub(crate) const TIMED: u16 = 1 << 8;
/// Waits at the `wait_timeout` instruction whose `timeout_pc` is saved.
pub(crate) const IN_RECEIVE: u16 = 1 << 9;

/// Waits for a signal. Only reported; the state word decides.
pub const WAITING: u16 = 1 << 10;
/// Is traced; `Ext::trace_flags` has the flags.
pub const TRACED: u16 = 1 << 11;
/// The system profiler has been notified that the process is inactive.
pub(crate) const INACTIVE: u16 = 1 << 12;
/// Has a sequential trace token.
pub const SEQUENTIAL: u16 = 1 << 13;
/// Was compacted when it began to wait; see [`crate::collect::compact::settle`].
pub(crate) const SETTLED: u16 = 1 << 14;
/// Saves its calls; see [`saved`].
pub const SAVES: u16 = 1 << 15;

/// Stands for `Heap::shrink_next` in `Process::small_sweeps`.
const SHRINK_NEXT: u16 = 1 << 15;
/// The bits below it hold `Heap::room`, then the time slices used of a long turn. Five bits suffice
/// for `room`: every block size that is allocated at once has an index below 32 in the series of
/// sizes.
const ROOM_SHIFT: u32 = 10;
const TURN_SHIFT: u32 = 5;
const ROOM: u16 = 0x1F << ROOM_SHIFT;
const TURN: u16 = 0x1F << TURN_SHIFT;
const SWEEPS: u16 = (1 << TURN_SHIFT) - 1;

/// The context that code and natives run in, with the process that runs.
pub type Cx = Context<Process>;

/// The control block of a process. The module docs say who may touch which field.
#[repr(C)]
pub struct Process {
    /// The 28 data bits of its pid, or [`NO_ID`]. Senders read it; the spawner and the exit write
    /// it.
    pub id: AtomicU32,
    pub state: state::State,
    /// Signals in transit to it.
    pub in_transit: InTransit,
    /// Address of the instruction where it resumes.
    pub pc: *const u64,
    /// Address where it continues when its receive timer fires. [`Process::set_resume_mark`] has
    /// another use for it.
    pub timeout_pc: *const u64,
    // The packed heap: the block, its size in words, and the offsets of top, stack and high-water
    // mark. If the size is 0, the pointer is to a box with a whole `Heap`, because the packed form
    // could not express it when it was packed last. The content of that box means nothing while the
    // process runs.
    heap: *mut Term,
    block_words: u32,
    htop: u32,
    stop: u32,
    high_water: u32,
    /// The first object of the off-heap list or, with [`IN_REGION`] added, the region that terms of
    /// the heap refer to.
    off_heap: *mut Term,
    off_heap_bytes: u32,
    /// Number of registers saved above the top of the heap.
    pub live: u16,
    minor_gcs: u16,
    pub flags: u16,
    /// See `Heap::small_sweeps`. [`SHRINK_NEXT`], [`ROOM`] and [`TURN`] share the word.
    small_sweeps: u16,
    /// Data bits of the parent's pid.
    pub parent: u32,
    pub reductions: u64,
    /// An immediate: a local pid, or `undefined` if `Ext::group_leader` holds the group leader.
    pub group_leader: Term,
    pub initial_call: *const Export,
    pub mailbox: *mut Mailbox,
    ext: *mut Ext,
}

/// Words of heap and stack in the cell.
pub(crate) const INLINE_WORDS: usize = (table::CELL_BYTES - size_of::<Process>()) / 8;

const _: () = assert!(size_of::<Process>() + 8 * 8 <= table::CELL_BYTES);

static TABLE: table::Table = table::Table::closed();

/// The process table. It is a constant static, so senders have nothing to check; until it is
/// opened, no pid is found in it.
#[inline]
pub fn table() -> &'static table::Table {
    &TABLE
}

/// Opens the process table for at most `limit` processes, or `scarce` where addresses are scarce.
/// Must be called before the first process is spawned, which opens it for the maximum.
pub fn init_table(limit: usize, scarce: usize) {
    TABLE.open(limit, scarce);
}

/// Sets the minimum heap sizes to the defaults of the runtime, which `+hms` and others change.
#[inline]
pub(crate) fn settings(heap: &mut Heap) {
    let d = &DEFAULTS;
    heap.min_heap_words = default_min_heap();
    heap.min_vheap_words = d.min_vheap_words.load(Ordering::Relaxed);
    heap.vheap_bytes = heap.min_vheap_words * 8;
    heap.old_vheap_bytes = heap.vheap_bytes;
    heap.fullsweep_after = d.fullsweep_after.load(Ordering::Relaxed);
}

/// Data limit of system pids: `init` and the runtime's own processes, which live as long as it
/// does, have pids below this.
pub static SYSTEM_PROCESSES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);

/// Whether a local pid is that of `init` or of one of the runtime's own processes.
#[inline]
pub fn is_system(pid: Term) -> bool {
    pid.pid_data() < SYSTEM_PROCESSES.load(std::sync::atomic::Ordering::Relaxed)
}

/// Settings of new processes. A `min_heap_words` of 0 means that no minimum was requested.
pub struct Defaults {
    pub min_heap_words: AtomicU32,
    pub min_vheap_words: AtomicUsize,
    pub fullsweep_after: AtomicU32,
}

/// See [`Defaults`].
pub static DEFAULTS: Defaults = Defaults {
    min_heap_words: AtomicU32::new(0),
    min_vheap_words: AtomicUsize::new(46422),
    fullsweep_after: AtomicU32::new(65535),
};

/// Whether `message_queue_data` of new processes is `off_heap` (`+hmqd`).
#[inline]
pub fn default_off_heap_queue() -> bool {
    OFF_HEAP_DEFAULT.load(std::sync::atomic::Ordering::Relaxed)
}
/// See [`default_off_heap_queue`].
pub static OFF_HEAP_DEFAULT: std::sync::atomic::AtomicBool =
    std::sync::atomic::AtomicBool::new(false);

/// `max_heap_size` of new processes, as [`packed`] writes it. A single word, because every spawn
/// reads it.
static MAX_HEAP_DEFAULT: std::sync::atomic::AtomicU64 =
    std::sync::atomic::AtomicU64::new(packed(ext::MaxHeap {
        words: 0,
        kill: true,
        error_logger: true,
        include_shared_binaries: false,
    }));
const MAX_HEAP_FLAGS: u32 = 3;

/// Returns the words of a limit above its three flags. No heap has more than 2^60 words.
const fn packed(m: ext::MaxHeap) -> u64 {
    let words = if m.words >> 60 == 0 {
        m.words
    } else {
        (1 << 60) - 1
    };
    (words as u64) << MAX_HEAP_FLAGS
        | (m.kill as u64)
        | (m.error_logger as u64) << 1
        | (m.include_shared_binaries as u64) << 2
}

/// `max_heap_size` of new processes; `None` means no limit.
#[inline]
pub fn default_max_heap() -> Option<ext::MaxHeap> {
    Some(max_heap_flags()).filter(|m| m.words > 0)
}
/// Default size limit and effects, for a process that doesn't set its own.
#[inline]
pub fn max_heap_flags() -> ext::MaxHeap {
    let m = MAX_HEAP_DEFAULT.load(Ordering::Relaxed);
    ext::MaxHeap {
        words: (m >> MAX_HEAP_FLAGS) as usize,
        kill: m & 1 != 0,
        error_logger: m & 2 != 0,
        include_shared_binaries: m & 4 != 0,
    }
}
/// Sets `max_heap_size` of new processes.
#[inline]
pub fn set_default_max_heap(m: ext::MaxHeap) {
    MAX_HEAP_DEFAULT.store(packed(m), Ordering::Relaxed);
}

/// Returns the minimum heap size in words that a process reports: the requested one, or the default
/// that stock documents.
#[inline]
pub fn reported_min_heap(p: &mut Process) -> usize {
    least_heap(p.ext().and_then(|e| e.settings.min_heap_words))
}

/// Default minimum heap size in words; 0 lets each heap be as small as it can.
#[inline]
pub fn default_min_heap() -> usize {
    DEFAULTS.min_heap_words.load(Ordering::Relaxed) as usize
}

/// Returns the reported minimum heap size in words, given the requested one.
#[inline]
pub fn least_heap(asked: Option<u32>) -> usize {
    match asked.unwrap_or_else(|| DEFAULTS.min_heap_words.load(Ordering::Relaxed)) {
        0 => 233,
        n => n as usize,
    }
}

impl Process {
    /// Returns its pid.
    #[inline]
    pub fn pid(&self) -> Term {
        Term::pid(self.id.load(Ordering::Relaxed))
    }
    /// Returns the value of a key in the process dictionary, or `undefined`.
    #[inline]
    pub fn dictionary_value(&mut self, key: Term) -> Term {
        let dict = self.ext().map(|e| &e.dict);
        dict.and_then(|d| d.get(key))
            .unwrap_or(purlin_term::am::UNDEFINED)
    }
    /// Returns the words of heap and stack in the cell.
    #[inline]
    pub(crate) fn inline_words(&mut self) -> *mut Term {
        // SAFETY: the cell is larger than the control block by INLINE_WORDS words.
        unsafe { (self as *mut Process).add(1) as *mut Term }
    }
    /// Returns the rarely used parts, if it has them.
    #[inline]
    pub fn ext(&mut self) -> Option<&mut Ext> {
        // SAFETY: owned by this process; null or from `Box::into_raw`.
        unsafe { self.ext.as_mut() }
    }
    /// Whether it continues at once after sending to a busy connection.
    pub fn is_async_dist(&mut self) -> bool {
        let own = self.ext().and_then(|e| e.async_dist);
        own.unwrap_or_else(|| options::try_current().is_some_and(|o| o.flags.dist.async_dist))
    }
    /// Returns the rarely used parts, and makes them if necessary.
    #[inline]
    pub fn ext_mut(&mut self) -> &mut Ext {
        if self.ext.is_null() {
            self.ext = blocks::boxed(Ext::default());
        }
        // SAFETY: owned by this process; from `Box::into_raw`, and not null any more.
        unsafe { &mut *self.ext }
    }
    /// Frees the rarely used parts.
    ///
    /// # Safety
    /// The caller owns the process, and nothing in it is used afterwards.
    #[inline]
    pub(crate) unsafe fn drop_ext(&mut self) {
        if !self.ext.is_null() {
            // SAFETY: by the contract, nobody uses it any more. `ext_mut` has made it.
            unsafe { blocks::unbox(self.ext) };
            self.ext = std::ptr::null_mut();
        }
    }
    /// Marks the process to end for `reason`, which is copied, unless it is marked already.
    #[inline]
    pub(crate) fn mark_to_exit(&mut self, reason: Term) {
        if self.has(EXIT_PENDING) {
            return;
        }
        self.flags |= EXIT_PENDING;
        self.ext_mut().exit_reason = Some(Box::new(OwnedTerm::copy_of(reason)));
    }
    /// Takes the reason for which a signal has ended it.
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
    /// Returns the mailbox, and makes it if necessary.
    #[inline]
    pub(crate) fn mailbox_mut(&mut self) -> &mut Mailbox {
        if self.mailbox.is_null() {
            self.mailbox = Mailbox::boxed();
        }
        // SAFETY: owned by this process.
        unsafe { &mut *self.mailbox }
    }
    /// Records that the time slice ends within the instruction at `pc`. That instruction keeps its
    /// progress in registers and learns from [`Process::take_resume_mark`] that it resumes.
    /// `timeout_pc` is free for this because the process is in no receive; an address that is no
    /// instruction's marks the case.
    pub fn set_resume_mark(&mut self, pc: *const u64) {
        debug_assert!(!self.has(TIMER));
        self.timeout_pc = pc.wrapping_byte_add(1);
    }
    /// Whether the instruction at `pc` resumes, and clears the mark.
    pub fn take_resume_mark(&mut self, pc: *const u64) -> bool {
        let resumes = std::ptr::eq(self.timeout_pc, pc.wrapping_byte_add(1));
        if resumes {
            self.timeout_pc = std::ptr::null();
        }
        resumes
    }
    /// Whether a running guard cannot belong to a receive that examines a message.
    pub fn is_outside_receive(&self) -> bool {
        // SAFETY: owned by this process; null or a mailbox.
        !self.has(TIMER) && unsafe { self.mailbox.as_ref() }.is_none_or(|m| !m.has_current())
    }
    /// Number of messages in the mailbox.
    #[inline]
    pub fn queued_messages(&self) -> usize {
        // SAFETY: owned by this process; null or a mailbox.
        unsafe { self.mailbox.as_ref().map_or(0, |m| m.len()) }
    }

    /// Words of the messages in the mailbox.
    #[inline]
    pub fn queued_words(&self) -> usize {
        // SAFETY: owned by this process; null or a mailbox.
        unsafe { self.mailbox.as_ref().map_or(0, |m| m.bytes() / 8) }
    }

    /// Initialises the fields of a cell.
    ///
    /// # Safety
    /// `p` was reserved by the caller and not published.
    pub unsafe fn init(p: *mut Process, group_leader: Term, parent: u32) {
        // SAFETY: by the contract, the cell is the caller's alone. All fields but the atomics,
        // which are valid in any cell, are integers and pointers, for which any bits are a value.
        let me = unsafe { &mut *p };
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

    /// Gives a new process its heap: terms up to `top`, the stack from `stop` on, the rest free.
    ///
    /// # Safety
    /// The caller owns the process, which has had no heap yet. The block is the one in the cell, or
    /// comes from [`purlin_term::gc`], and its terms are complete.
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
            // SAFETY: by the contract; `init` has left a packed heap.
            unsafe { self.unpack(&mut h) };
            (h.heap, h.high_water, h.htop) = (block.start, block.start, top);
            (h.stop, h.hend) = (stop, block.end);
            h.inline_block = std::ptr::eq(block.start, self.inline_words());
            h.off_heap = off_heap;
            // SAFETY: by the contract; `h` is its heap now.
            unsafe { self.pack(&mut h) };
            return;
        }
        self.heap = block.start;
        self.block_words = size as u32;
        self.htop = words(block.start, top) as u32;
        self.stop = words(block.start, stop) as u32;
        self.off_heap_bytes = off_heap.bytes as u32;
        self.off_heap = pack_off_heap(off_heap);
    }

    /// Whether its packed heap is in a box.
    #[inline]
    pub fn has_boxed_heap(&self) -> bool {
        self.block_words == 0
    }

    /// Returns its packed heap, if that is in a box.
    ///
    /// # Safety
    /// The caller owns the process, whose heap is packed.
    #[inline]
    pub(crate) unsafe fn boxed_heap(&self) -> Option<&Heap> {
        // SAFETY: by the contract, the heap is packed. Then a size of 0 says that `heap` is a box.
        (self.block_words == 0).then(|| unsafe { &*(self.heap as *const Heap) })
    }

    /// Counts a time slice of a long turn of `slices` (a power of two, at most 16). Returns whether
    /// the turn continues, and whether the process has had a whole turn since it waited.
    #[inline]
    pub(crate) fn count_turn(&mut self, slices: u16) -> (bool, bool) {
        let n = (self.small_sweeps & TURN) >> TURN_SHIFT;
        let more = !(n + 1).is_multiple_of(slices);
        // Beyond the counting bits, the bit for "has had a whole turn" stays set.
        let n = if more { n + 1 } else { slices };
        self.small_sweeps = self.small_sweeps & !TURN | n << TURN_SHIFT;
        (more, n >= slices)
    }

    /// Records that it has had a whole long turn of `slices`.
    #[inline]
    pub(crate) fn had_turn(&mut self, slices: u16) {
        self.small_sweeps = self.small_sweeps & !TURN | slices << TURN_SHIFT;
    }

    /// Ends the turn when the process begins to wait. Its next long turn is a whole one.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.small_sweeps &= !TURN;
    }

    /// Returns the words of its young block.
    ///
    /// # Safety
    /// The caller owns the process, whose heap is packed.
    #[inline]
    pub(crate) unsafe fn heap_block_words(&self) -> usize {
        // SAFETY: the contract is the same.
        match unsafe { self.boxed_heap() } {
            Some(h) => h.block_words(),
            None => self.block_words as usize,
        }
    }

    /// Returns the words of its block, and how many of them are free. The heap is packed without a
    /// box.
    #[inline]
    pub(crate) fn packed_words(&self) -> (usize, usize) {
        let free = self.stop - self.htop;
        (self.block_words as usize, free as usize)
    }

    /// Returns the words of all blocks of its heap.
    ///
    /// # Safety
    /// The caller owns the process, whose heap is packed.
    pub(crate) unsafe fn heap_blocks_words(&self) -> usize {
        // SAFETY: the contract is the same.
        match unsafe { self.boxed_heap() } {
            None => self.block_words as usize,
            Some(h) => h.block_words() + h.old_block_words() + h.frag_words,
        }
    }

    /// Frees the box of a heap, if there is one, but nothing that the heap owns.
    ///
    /// # Safety
    /// The caller owns the process, whose heap is not packed.
    #[inline]
    pub(crate) unsafe fn drop_boxed_heap(&mut self) {
        if self.block_words == 0 {
            // SAFETY: a size of 0 says that `heap` is a box. It is not used afterwards.
            drop(unsafe { Box::from_raw(self.heap as *mut Heap) });
            self.heap = std::ptr::null_mut();
            self.block_words = INLINE_WORDS as u32;
        }
    }

    /// Expands its heap into `h`.
    ///
    /// # Safety
    /// The caller owns the process, whose heap is packed.
    #[inline]
    pub(crate) unsafe fn unpack(&mut self, h: &mut Heap) {
        if self.block_words == 0 {
            // SAFETY: a size of 0 says that `heap` is a box.
            unsafe { std::ptr::swap(h, self.heap as *mut Heap) };
            h.inline_block = std::ptr::eq(h.heap, self.inline_words());
            return;
        }
        h.heap = self.heap;
        // SAFETY: the offsets are within the block, or at its end.
        unsafe {
            h.htop = self.heap.add(self.htop as usize);
            h.stop = self.heap.add(self.stop as usize);
            h.hend = self.heap.add(self.block_words as usize);
            h.high_water = self.heap.add(self.high_water as usize);
        }
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
            // SAFETY: the tag says that the word was made from one region.
            unsafe { unpack_region(&mut h.off_heap) };
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
            // SAFETY: owned by this process, and made by `ext_mut`.
            unsafe { (*self.ext).apply_settings(h) };
        }
    }

    /// Packs its heap.
    ///
    /// # Safety
    /// The caller owns the process. `h` is its heap, and is empty afterwards.
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
            // SAFETY: a size of 0 says that `heap` is a box.
            unsafe { std::ptr::swap(h, self.heap as *mut Heap) };
            return;
        }
        // SAFETY: the heap is in `h`, not in the box.
        unsafe { self.drop_boxed_heap() };
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

/// Tag in the off-heap word of a packed heap, for a region. Objects and regions are aligned to more
/// than this.
const IN_REGION: usize = 1;
/// Maximum size in bytes of a packed region. Larger ones count towards the next collection, which a
/// packed heap doesn't track.
const PACKED_BYTES: usize = 256 << 10;

/// Whether the packed form can express the regions of this off-heap list.
#[inline]
fn packs_regions(o: &OffHeap) -> bool {
    o.regions.is_empty()
        || (o.first.is_null() && o.regions.only().is_some() && o.regions.bytes() <= PACKED_BYTES)
}

/// Packs an off-heap list into one word: the list, or the region whose count it holds.
#[inline]
fn pack_off_heap(mut o: OffHeap) -> *mut Term {
    match o.regions.take_one() {
        None => o.first,
        Some(r) => (r as *const Region as *mut Term).wrapping_byte_add(IN_REGION),
    }
}

#[cold]
/// # Safety
/// `o` was made from the packed form of a heap with one region, and is not unpacked yet.
unsafe fn unpack_region(o: &mut OffHeap) {
    let r = o.first.wrapping_byte_sub(IN_REGION) as *const Region;
    o.first = std::ptr::null_mut();
    // SAFETY: by the contract, `pack_off_heap` has made the word from a region with its count.
    o.regions.adopt(unsafe { &*r });
}

/// Loads a process into a context, and saves it from there.
pub trait Enter {
    /// Makes `p` the process that runs on this thread: expands its heap and restores its registers.
    ///
    /// # Safety
    /// The caller owns `p`.
    unsafe fn enter(&mut self, p: *mut Process);

    /// Packs the running process, to resume at `pc` with the first `live` X registers. The caller
    /// still owns it, and it stays [`Context::proc`](purlin_native::cx::Context::proc).
    ///
    /// # Safety
    /// The heap pointers in the context are current.
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
        // SAFETY: by the contract, the process is the caller's.
        let me = unsafe {
            self.proc.set(p);
            &mut *p
        };
        if purlin_term::fence::on() {
            purlin_term::fence::runs(me.pid().raw());
        }
        // SAFETY: the heap of a process that is not entered is packed.
        unsafe { me.unpack(&mut self.heap) };
        let n = me.live as usize;
        if n > 0 {
            if me.has(REGS_IN_EXT) {
                me.flags &= !REGS_IN_EXT;
                let regs = std::mem::take(&mut me.ext_mut().regs);
                self.x[..n].copy_from_slice(&regs);
            } else {
                for i in 0..n {
                    // SAFETY: `leave` has saved `n` registers above the heap's top.
                    self.x[i] = unsafe { *self.heap.htop.add(i) };
                }
            }
        }
    }

    #[inline]
    unsafe fn leave(&mut self, pc: *const u64, live: usize) {
        // SAFETY: the process in a context is its thread's.
        let me = unsafe { &mut *self.proc.get() };
        me.pc = pc;
        me.live = live as u16;
        if live > 0 {
            if self.heap.free_words() >= live {
                // SAFETY: there is room for them, by the heap's pointers, which are current.
                unsafe {
                    std::ptr::copy_nonoverlapping(self.x.as_ptr(), self.heap.htop, live);
                }
            } else {
                let regs = self.x[..live].to_vec();
                me.ext_mut().regs = regs;
                me.flags |= REGS_IN_EXT;
            }
        }
        // SAFETY: the context has the heap of the process, which is the caller's.
        unsafe { me.pack(&mut self.heap) };
    }
}

/// Returns the group leader of the running process.
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
