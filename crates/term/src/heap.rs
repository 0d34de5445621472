//! The heap of a process, and the contract of its collector.
//!
//! ```text
//!  heap            high_water        htop                    stop                hend
//!   | survivors      | young           | free ............... | stack (grows down) |
//! ```
//! Heap and stack share one block. `old_heap..old_htop` is the old generation, in a block of its
//! own. Objects that own something outside the heap are linked on [`OffHeap`] lists.
//!
//! # Who may collect
//! * Allocation ([`Alloc::alloc`]) never collects and never moves: if the block is full, it adds a
//!   heap fragment. The runtime collects after the native call has returned, with all live
//!   registers as roots.
//! * The interpreter's `test_heap` and `allocate` ops collect at the op, with the live registers
//!   that the op names.
//! * Collecting functions are `unsafe`: the caller promises that no `Term` outside the roots is
//!   used afterwards.
//!
//! # What a collection moves
//! A collection moves what lies in the young block, in an attached fragment, or (full sweep) in the
//! old block. It leaves every other pointer alone (literals, regions, messages still in the queue).
//! The test is by address, and positive: nothing moves unless it is known to belong to this heap.

use crate::alloc::Alloc;
use crate::frag::{Fragment, OwnedTerm};
use crate::gc::Runs;
use crate::off_heap::OffHeap;
use crate::region::{self, Region};
use crate::region_set::RegionSet;
use crate::sent_terms::Sent;
use crate::word::Term;

/// Maximum number of words that [`Heap::take_over`] copies.
const COPIED_WORDS: usize = 256;

/// The expanded heap of a process that runs or is being collected. While a process waits, its
/// control block holds a packed form; see `Process` in the kernel's `process`.
pub struct Heap {
    /// Start of the block.
    pub heap: *mut Term,
    /// First free word. The interpreter keeps it in a local while it runs code, and writes it back
    /// before others may read it.
    pub htop: *mut Term,
    /// Top of the stack (its lowest used word); the stack ends at `hend`.
    pub stop: *mut Term,
    pub hend: *mut Term,
    /// The words below it have survived one collection. After a collection in the [`Heap::window`]
    /// it is the start of the block.
    pub high_water: *mut Term,
    /// Old generation; null if there is none.
    pub old_heap: *mut Term,
    pub old_htop: *mut Term,
    pub old_hend: *mut Term,
    /// Attached fragments: made by natives when the block was full, and large received messages.
    pub frags: Vec<Fragment>,
    /// Words used in `frags`, from which the need for a collection is derived.
    pub frag_words: usize,
    pub off_heap: OffHeap,
    /// Off-heap objects of the old generation.
    pub old_off_heap: OffHeap,
    /// Virtual binary heap: collect when `off_heap.bytes` exceeds it (bytes).
    pub vheap_bytes: usize,
    pub old_vheap_bytes: usize,
    /// Minor collections since the last full sweep.
    pub minor_gcs: u32,
    /// Settings, with their documented meaning. Units: words, words (binary), collections.
    pub min_heap_words: usize,
    pub min_vheap_words: usize,
    pub fullsweep_after: u32,
    /// The next collection must be a full sweep.
    pub need_fullsweep: bool,
    /// A collection is wanted at the next safe point (fragments or virtual heap have grown).
    pub gc_wanted: bool,
    /// Stack words reserved below `stop` that natives must not use: they keep room for a return
    /// address.
    pub stack_reserve: usize,
    /// The young block is part of the process's cell: the collector moves out of it and does not
    /// free it.
    pub inline_block: bool,
    /// Terms of this heap that were copied to regions, with the limit on their private copies.
    pub sent: Option<Box<Sent>>,
    /// Bytes of regions received since the last collection, and bytes held after the last full
    /// sweep: large messages press for a collection as large heaps do.
    pub region_bytes: usize,
    pub region_bytes_kept: usize,
    /// The last collection left the block more than three quarters full: the next one makes it
    /// larger.
    pub grow_next: bool,
    /// The last full sweep found regions of which little is used, and left them to the next one.
    pub leaves: bool,
    /// Nearly all of a large young generation survived its last collection, as happens where a list
    /// is built or merged. To copy it a second time before its promotion would then be in vain and
    /// take half of the young block.
    pub all_survives: bool,
    /// The last full sweep left the block largely empty: if the next one does so too, it shrinks
    /// the block.
    pub shrink_next: bool,
    /// Sweeps of the heap while it was small, since it was compacted.
    pub small_sweeps: u16,
    /// Words that [`crate::gc::rest`] left.
    pub rested: usize,
    /// Counts how often terms of this heap were moved or words of it freed, by anything that
    /// collects, compacts or resizes a block. While it stays the same, an address in this heap
    /// means the same.
    pub collections: u32,
    /// The process looks at a message in place, in a block that is not part of this heap. A term
    /// made meanwhile may point into that block, which becomes a fragment of this heap, and may
    /// move, when the message is received. So no object made in that time may become old before: a
    /// collection promotes only what lay below the high-water mark when the window was opened, and
    /// then sets the mark to the start of the young block.
    pub window: bool,
    /// The state of a large old generation that is swept in steps.
    pub runs: Option<Box<Runs>>,
    /// `waited`: the process has waited since its last collection. `serves`: it had also waited
    /// before that one. A process that waits answers others, which wait for its collections: they
    /// are kept short. For one that computes they are kept few.
    pub waited: bool,
    pub(crate) serves: bool,
    /// Words that the last minor collection promoted.
    pub(crate) promoted: usize,
    /// Least size that the next collection gives the heap, as an index into the series of sizes; 0
    /// for none. It is the size that the heap had come to use before it was last shrunk as its
    /// process began to wait.
    pub room: u8,
    /// Size of the block that was last shrunk for being largely empty, as an index into the series
    /// of sizes; 0 if the process has waited since. A heap that has grown to that size again
    /// without waiting needs the room now and then, and keeps it.
    pub(crate) shrunk: u8,
    /// The last sweep of a large old generation found that most of it had died: promoted terms live
    /// only a little longer than the young block lasts.
    pub(crate) dies_old: bool,
}

/// A smaller term that is sent again and again keeps its private copy until the next collection,
/// whenever that comes.
const FORGET_ABOVE_WORDS: usize = 4096;

// SAFETY: a heap belongs to one process, and a process is run by one thread at a time.
unsafe impl Send for Heap {}

impl Heap {
    /// Makes a heap with no block at all: every allocation goes to fragments until the first
    /// collection.
    pub fn empty() -> Heap {
        let n = std::ptr::null_mut();
        Heap {
            heap: n,
            htop: n,
            stop: n,
            hend: n,
            high_water: n,
            old_heap: n,
            old_htop: n,
            old_hend: n,
            frags: Vec::new(),
            frag_words: 0,
            off_heap: OffHeap::default(),
            old_off_heap: OffHeap::default(),
            vheap_bytes: 46422 * 8,
            old_vheap_bytes: 46422 * 8,
            minor_gcs: 0,
            min_heap_words: 233,
            min_vheap_words: 46422,
            fullsweep_after: 65535,
            need_fullsweep: false,
            gc_wanted: false,
            stack_reserve: 0,
            inline_block: false,
            sent: None,
            region_bytes: 0,
            region_bytes_kept: 0,
            grow_next: false,
            shrink_next: false,
            all_survives: false,
            leaves: false,
            small_sweeps: 0,
            rested: 0,
            collections: 0,
            window: false,
            runs: None,
            waited: false,
            serves: false,
            promoted: 0,
            room: 0,
            shrunk: 0,
            dies_old: false,
        }
    }
    /// Asks for collections that do not sweep the whole heap, however small it is.
    pub fn keep_generations(&mut self) {
        self.small_sweeps = crate::gc::sizes::SMALL_SWEEPS;
    }
    /// Takes over the regions of a received message.
    pub fn receive_regions(&mut self, set: &mut RegionSet) {
        if set.is_empty() {
            return;
        }
        self.region_bytes += set.bytes();
        self.off_heap.regions.append(set);
        self.press();
    }
    /// Returns a term of another holder as one of this heap. A large one is not copied: its
    /// fragment becomes one of the heap.
    pub fn take_over(&mut self, t: OwnedTerm) -> Term {
        if t.words() <= COPIED_WORDS {
            return crate::copy::copy(t.term(), self);
        }
        let (term, mut f) = t.into_parts();
        self.receive_regions(&mut f.off_heap.regions);
        // SAFETY: the objects of the list are whole, and nobody else uses the fragment.
        unsafe { self.off_heap.append(&mut f.off_heap) };
        self.off_heap_grew();
        self.frag_words += f.used_words();
        self.frags.push(f);
        self.gc_wanted = true;
        term
    }
    /// Writes `t` to the word `at` of an object that existed before; there is no other way to do
    /// so. If the object is old, its generation holds the region of `t` from now on, as it does for
    /// promoted terms: old objects are not searched for regions that only code holds. Young objects
    /// are searched by the next collection.
    ///
    /// # Safety
    /// The object belongs to this heap, and `t` is not younger. The object was not remembered
    /// ([`Heap::remember_sent`]). The region of `t` has a holder at this moment.
    pub unsafe fn write_to(&mut self, at: *mut Term, t: Term) {
        // SAFETY: by the contract, `at` is a word of an object of this heap.
        unsafe { *at = t };
        let is_old = (self.old_heap..self.old_htop).contains(&at);
        if is_old && let Some(r) = region::region_of(t.ptr()).filter(|_| region::needs_holder(t)) {
            self.old_off_heap.regions.hold(r);
            // A sweep in steps may have visited the object already.
            crate::gc::steps::hold_written(self, r);
        }
    }
    /// Asks for a collection if many bytes of regions came since the last one. Regions that are
    /// dead by then are young: a minor collection frees them.
    pub(crate) fn press(&mut self) {
        if self.region_bytes > crate::gc::sizes::REGION_SLACK_BYTES + self.used_words() * 4 {
            self.gc_wanted = true;
        }
    }
    /// Whether `p` points into this heap. What lies there stays until a collection.
    pub fn owns(&self, p: *const Term) -> bool {
        let a = p as usize;
        (a >= self.heap as usize && a < self.htop as usize)
            || (a >= self.old_heap as usize && a < self.old_htop as usize)
            || self.frags.iter().any(|f| {
                f.areas()
                    .any(|(q, n)| a >= q as usize && a < q as usize + n * 8)
            })
    }
    /// Words of terms in both generations and the fragments.
    pub fn all_words(&self) -> usize {
        self.used_words()
            + ((self.old_htop as usize - self.old_heap as usize) >> 3)
            + self.frag_words
    }
    /// The memory of recently sent terms; creates it if there is none.
    #[inline]
    pub fn sent_mut(&mut self) -> &mut Sent {
        self.sent.get_or_insert_with(crate::sent_terms::fresh)
    }
    /// The copy in a region of the term `t` of this heap, if `t` was sent recently.
    pub fn sent_as(&mut self, t: Term) -> Option<Term> {
        let (shared, words) = self.sent.as_mut()?.shared_copy(t)?;
        if words.is_some_and(|n| n >= FORGET_ABOVE_WORDS && n >= self.all_words() / 4) {
            // It lives on and is sent again and again: let go of the private copy.
            self.forget_copy(t);
        }
        Some(shared)
    }
    /// Whether [`Heap::sent_as`] knows the term.
    pub fn knows_sent(&self, t: Term) -> bool {
        self.sent.as_ref().is_some_and(|s| s.knows(t))
    }
    /// Whether [`Heap::sent_as`] knows any term.
    pub fn knows_any_sent(&self) -> bool {
        self.sent
            .as_ref()
            .is_some_and(|s| s.terms().next().is_some())
    }
    /// Asks for a collection, which frees the private copy of `t`, since `t` also lies in a region.
    pub fn forget_copy(&mut self, t: Term) {
        self.gc_wanted = true;
        let a = t.ptr() as usize;
        let old = self.old_htop as usize - self.old_heap as usize;
        // A list that was built while the heap was collected may have its first cells in the young
        // generation and all others in the old one.
        let here = a.wrapping_sub(self.old_heap as usize) < old;
        if here || old > self.all_words() * 4 {
            self.need_fullsweep = true;
        }
    }
    /// Remembers that `t`, a list, tuple or map of this heap, lies in `region` as `shared`. The
    /// next collection that would move it drops it instead and redirects its references to the
    /// region.
    ///
    /// # Safety
    /// `shared` equals `t`, and nobody will ever change `t`.
    pub unsafe fn remember_sent(&mut self, t: Term, shared: Term, region: &'static Region) {
        debug_assert!(self.owns(t.ptr()));
        self.sent_mut().remember(t, shared, region);
    }
    /// Terms remembered from now on belong to another message.
    pub fn next_message(&mut self) {
        if let Some(s) = self.sent.as_mut() {
            s.next_message();
        }
    }
    /// Free words between heap and stack.
    #[inline(always)]
    pub fn free_words(&self) -> usize {
        (self.stop as usize - self.htop as usize) >> 3
    }
    /// Words of the block, stack included.
    #[inline]
    pub fn block_words(&self) -> usize {
        (self.hend as usize - self.heap as usize) >> 3
    }
    /// Words used by terms in the young block.
    #[inline]
    pub fn used_words(&self) -> usize {
        (self.htop as usize - self.heap as usize) >> 3
    }
    /// Words of terms that were made since the last collection.
    #[inline]
    pub fn fresh_words(&self) -> usize {
        ((self.htop as usize).saturating_sub(self.high_water as usize) >> 3) + self.frag_words
    }
    /// Words on the stack.
    #[inline]
    pub fn stack_words(&self) -> usize {
        (self.hend as usize - self.stop as usize) >> 3
    }
    /// Words used by terms in the old block.
    pub fn old_words(&self) -> usize {
        (self.old_htop as usize - self.old_heap as usize) >> 3
    }
    /// Free words between the used ones of the old block: see [`crate::gc::step`].
    #[inline]
    pub fn old_free_words(&self) -> usize {
        self.runs.as_ref().map_or(0, |r| r.free_words())
    }
    /// Whether the old generation is being swept in steps.
    #[inline]
    pub fn is_swept_in_steps(&self) -> bool {
        self.runs.as_ref().is_some_and(|r| r.sweeps())
    }
    /// Words of the old block, used or not.
    #[inline]
    pub fn old_block_words(&self) -> usize {
        (self.old_hend as usize - self.old_heap as usize) >> 3
    }
}

impl Alloc for Heap {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        match self.alloc_at_hand(words) {
            Some(p) => p,
            None => self.alloc_fragment(words),
        }
    }
    #[inline]
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
    #[inline]
    fn off_heap_grew(&mut self) {
        if self.off_heap.bytes > self.vheap_bytes || crate::pressure::is_pressing() {
            self.gc_wanted = true;
        }
    }
}

impl Heap {
    /// Fresh words of the block, if it has room for them beside what the stack may need.
    #[inline(always)]
    pub fn alloc_at_hand(&mut self, words: usize) -> Option<*mut Term> {
        if self.free_words() < words + self.stack_reserve {
            return None;
        }
        let p = self.htop;
        // SAFETY: the words lie inside the block, below the stack.
        self.htop = unsafe { p.add(words) };
        Some(p)
    }
    #[cold]
    #[inline(never)]
    fn alloc_fragment(&mut self, words: usize) -> *mut Term {
        self.gc_wanted = true;
        self.frag_words += words;
        if let Some(f) = self.frags.last_mut()
            && let Some(p) = f.bump(words)
        {
            return p;
        }
        // Doubling keeps the number of fragments logarithmic in what one native call builds.
        let most = crate::pressure::at_most_copied(1 << 20);
        let size = words.max(256).max(self.frag_words.min(most));
        crate::payer::note_fragment(size * 8);
        let mut f = Fragment::with_capacity(size);
        let p = f.alloc(words);
        self.frags.push(f);
        p
    }
}
