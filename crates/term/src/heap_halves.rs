//! A heap in two halves, while a native computes on another thread and only makes terms: the native
//! has one half, and anybody who looks at the process meanwhile has the other.
//!
//! * The native's half: the rest of the young block from the top on, and what the native makes
//!   elsewhere: fragments, objects that own something outside, regions.
//! * The others' half: everything that existed before (both generations, the stack, fragments,
//!   lists, sent terms), and what they make meanwhile, none of it in the block.
//!
//! Both halves only read what existed before, and nothing moves until they are united. So neither
//! sees a word that the other writes: what the native makes in the block lies above the top that
//! the others know.

use crate::heap::Heap;
use crate::off_heap::OffHeap;
use std::mem::replace;
use std::ptr::{read, write};

/// No object fits if this many words are reserved.
const NO_ROOM_WORDS: usize = usize::MAX / 4;

impl Heap {
    /// Splits off everything except the room for what a native makes from now on; see the module
    /// head.
    ///
    /// # Safety
    /// Nobody collects either half, or changes an object in it, and [`Heap::unite`] gets back what
    /// this returns.
    pub unsafe fn divide(&mut self) -> Heap {
        // SAFETY: each field that owns something is replaced here, and what was in it is owned by
        // the result alone.
        let others = unsafe {
            let mut others = read(self);
            others.stack_reserve = NO_ROOM_WORDS;
            write(&mut self.frags, Vec::new());
            write(&mut self.off_heap, OffHeap::default());
            write(&mut self.old_off_heap, OffHeap::default());
            write(&mut self.sent, None);
            write(&mut self.runs, None);
            others
        };
        self.frag_words = 0;
        self.gc_wanted = false;
        others
    }

    /// Unites this half, the native's, with that of the others.
    ///
    /// # Safety
    /// `others` is what [`Heap::divide`] of this heap returned, and nobody else uses either.
    pub unsafe fn unite(&mut self, others: Heap) {
        let mut mine = replace(self, others);
        self.htop = mine.htop;
        self.stack_reserve = mine.stack_reserve;
        self.frags.append(&mut mine.frags);
        self.frag_words += mine.frag_words;
        // SAFETY: the objects lie on this heap.
        unsafe { self.off_heap.append(&mut mine.off_heap) };
        self.gc_wanted |= mine.gc_wanted;
        if self.off_heap.bytes > self.vheap_bytes {
            self.gc_wanted = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::frag::Fragment;
    use crate::{Alloc, NIL, Term};

    #[test]
    fn both_halves_make_terms_and_all_are_there_afterwards() {
        let mut heap = crate::heap::Heap::empty();
        let before = heap.binary(&[1; 200]);
        // SAFETY: no collection; both halves are used by this thread.
        unsafe {
            let mut others = heap.divide();
            assert!(heap.frags.is_empty() && heap.off_heap.first.is_null());
            let theirs = others.binary(&[2; 300]);
            let mine = heap.binary(&[3; 400]);
            let list = heap.list(&[before, mine]);
            heap.unite(others);
            let all = heap.list(&[before, theirs, list]);
            let frag_words: usize = heap.frags.iter().map(Fragment::used_words).sum();
            assert_eq!(heap.frag_words, frag_words);
            assert_eq!(heap.off_heap.bytes, 200 + 300 + 400);
            let sizes: Vec<_> = [before, theirs, mine]
                .iter()
                .map(|t| t.as_binary().map(|b| (b[0], b.len())))
                .collect();
            assert_eq!(sizes, [Some((1, 200)), Some((2, 300)), Some((3, 400))]);
            assert_eq!(all.list_iter().count(), 3);
            assert_eq!(heap.stack_reserve, 0);
            let _: Term = NIL;
            crate::gc::destroy(&mut heap);
        }
    }
}
