//! Sizes of a process's heap.

use purlin_term::frag::Fragment;
use purlin_term::heap::Heap;
use purlin_term::{Alloc, Term, atom};

/// Returns the sizes of a heap in words, for `process_info(Pid, garbage_collection_info)` and trace
/// messages. `size` is the number of words that a collection makes room for or has freed; only
/// trace messages have it.
pub fn gc_info(to: &mut Fragment, h: &Heap, size: Option<usize>) -> Term {
    let used = |a: *mut Term, b: *mut Term| (b as usize - a as usize) / 8;
    let items = [
        ("old_heap_block_size", h.old_block_words()),
        ("heap_block_size", h.block_words()),
        ("mbuf_size", h.frag_words),
        ("recent_size", used(h.heap, h.high_water)),
        ("stack_size", h.stack_words()),
        ("old_heap_size", h.old_words() - h.old_free_words()),
        ("heap_size", h.used_words()),
        ("bin_vheap_size", h.off_heap.bytes / 8),
        ("bin_vheap_block_size", h.vheap_bytes / 8),
        ("bin_old_vheap_size", h.old_off_heap.bytes / 8),
        ("bin_old_vheap_block_size", h.old_vheap_bytes / 8),
    ];
    let size = size.map(|n| ("wordsize", n));
    let pairs: Vec<Term> = size
        .into_iter()
        .chain(items)
        .map(|(name, n)| to.tuple(&[atom::intern(name), Term::small(n as i64)]))
        .collect();
    to.list(&pairs)
}
