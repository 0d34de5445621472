//! Heap fragments: separately allocated blocks of terms. A message in transit lies in one, a full
//! process heap grows by them until its next collection, and native tables keep terms in them.

use crate::alloc::Alloc;
use crate::fence::{self, Kind};
use crate::off_heap::OffHeap;
use crate::word::Term;
use std::alloc::Layout;

/// One or more allocated blocks of terms with their off-heap list. Dropping it does NOT release
/// what its terms own (most fragments end by being moved into a heap); [`Fragment::destroy`] does.
pub struct Fragment {
    /// Blocks in order of allocation: (start, capacity in words, used words). Usually one.
    blocks: smallvec::SmallVec<[Block; 1]>,
    pub off_heap: OffHeap,
}

struct Block {
    /// Memory with the [`layout`] for `words` words, at least one.
    mem: *mut Term,
    words: usize,
    /// Words in front that hold no terms.
    first: usize,
    /// Words in use, including those in front.
    used: usize,
}

fn layout(words: usize) -> Layout {
    // A request beyond the address space is treated like any other that cannot be met.
    Layout::array::<u64>(words)
        .unwrap_or_else(|_| std::alloc::handle_alloc_error(Layout::new::<u64>()))
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: a fragment owns its blocks, which were allocated with that layout.
        unsafe { fence::deallocate(self.mem as *mut u8, layout(self.words)) };
    }
}

// SAFETY: a fragment owns its memory, and its holder is its only user.
unsafe impl Send for Fragment {}

impl Fragment {
    /// An empty fragment that allocates its first block when it needs one.
    pub fn new() -> Fragment {
        Fragment {
            blocks: smallvec::SmallVec::new(),
            off_heap: OffHeap::default(),
        }
    }
    /// A fragment with room for `words` words in one block.
    pub fn with_capacity(words: usize) -> Fragment {
        let mut f = Fragment::new();
        if words > 0 {
            f.push_block(words);
        }
        f
    }
    /// Makes a fragment of a full block of `words` words whose terms start at word `first`: a
    /// received message.
    ///
    /// # Safety
    /// The block came from [`fence::allocate`] with the layout of an array of as many words (at
    /// least one), and belongs to the fragment from now on.
    pub unsafe fn from_block(
        mem: *mut Term,
        words: usize,
        first: usize,
        off_heap: OffHeap,
    ) -> Fragment {
        let mut f = Fragment::new();
        f.blocks.push(Block {
            mem,
            words,
            first,
            used: words,
        });
        f.off_heap = off_heap;
        f
    }
    fn push_block(&mut self, words: usize) {
        if words > crate::blocks::MAP_ABOVE_WORDS {
            crate::pressure::note_allocation(words * 8);
        }
        let l = layout(words);
        // SAFETY: the layout has a size.
        let mem = unsafe { fence::allocate(Kind::Fragment, l) };
        if mem.is_null() {
            crate::sys::out_of_memory("eheap_alloc", l.size(), "heap_frag");
        }
        if !fence::on() {
            // SAFETY: the block was just allocated with that size, if it is not null.
            unsafe { crate::binary_blocks::in_large_pages(mem, l.size()) };
        }
        self.blocks.push(Block {
            mem: mem as *mut Term,
            words,
            first: 0,
            used: 0,
        });
    }
    /// Room for `words` words in the last block, if it has that much.
    #[inline]
    pub fn bump(&mut self, words: usize) -> Option<*mut Term> {
        let b = self.blocks.last_mut()?;
        if b.words - b.used < words {
            return None;
        }
        // SAFETY: within the block.
        let p = unsafe { b.mem.add(b.used) };
        b.used += words;
        Some(p)
    }
    /// The used parts of all blocks: (start, words).
    pub fn areas(&self) -> impl Iterator<Item = (*mut Term, usize)> + '_ {
        self.blocks
            .iter()
            // SAFETY: within the block.
            .map(|b| (unsafe { b.mem.add(b.first) }, b.used - b.first))
    }
    /// Words in use.
    pub fn used_words(&self) -> usize {
        self.blocks.iter().map(|b| b.used - b.first).sum()
    }
    /// Words allocated.
    pub fn capacity_words(&self) -> usize {
        self.blocks.iter().map(|b| b.words).sum()
    }
    /// Frees the fragment and releases what its terms own.
    ///
    /// # Safety
    /// No term in it is used afterwards, and its off-heap list was not moved elsewhere.
    pub unsafe fn destroy(mut self) {
        // SAFETY: by the contract, the list is whole and no term is used afterwards.
        unsafe { crate::off_heap::release_off_heap(&mut self.off_heap) };
    }
}

impl Default for Fragment {
    fn default() -> Self {
        Self::new()
    }
}

impl Alloc for Fragment {
    #[inline]
    fn alloc(&mut self, words: usize) -> *mut Term {
        match self.bump(words) {
            Some(p) => p,
            None => {
                let size = words.max(16).max(self.used_words());
                self.push_block(size);
                match self.bump(words) {
                    Some(p) => p,
                    None => unreachable!("a fresh block has room"),
                }
            }
        }
    }
    fn off_heap(&mut self) -> &mut OffHeap {
        &mut self.off_heap
    }
}

/// A term in a fragment of its own: for native structures that keep terms beyond a native call.
pub struct OwnedTerm {
    term: Term,
    frag: Fragment,
}

impl OwnedTerm {
    /// A private copy of `t` (literals are not copied).
    pub fn copy_of(t: Term) -> OwnedTerm {
        if t.is_immed() {
            return OwnedTerm {
                term: t,
                frag: Fragment::new(),
            };
        }
        let mut frag = Fragment::with_capacity(crate::copy::size_of(t));
        let term = crate::copy::copy(t, &mut frag);
        OwnedTerm { term, frag }
    }
    /// Takes a fragment and a term that points into nothing but it.
    pub fn from_parts(term: Term, frag: Fragment) -> OwnedTerm {
        OwnedTerm { term, frag }
    }
    /// The term. It is valid while this is alive.
    pub fn term(&self) -> Term {
        self.term
    }
    /// Words of the fragment.
    pub fn words(&self) -> usize {
        self.frag.used_words()
    }
    pub fn into_parts(mut self) -> (Term, Fragment) {
        (self.term, std::mem::take(&mut self.frag))
    }
}

impl Drop for OwnedTerm {
    fn drop(&mut self) {
        let mut f = std::mem::take(&mut self.frag);
        // SAFETY: users of the term may use it only while this is alive.
        unsafe { crate::off_heap::release_off_heap(&mut f.off_heap) };
    }
}
