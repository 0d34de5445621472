//! Joining equal objects of a small heap, when a waiting process is compacted.
//!
//! The arguments that processes are started with hold the same things several times: the pid of the
//! parent in `$ancestors` and in `$callers`, the reference to answer with, copied twice out of one
//! message. Terms do not change, so one of each is enough; with a million sleeping tasks this saves
//! fifty bytes each.
//!
//! Invariant: objects that are joined have the same words. So no child needs a look: equal pointers
//! lead to the same object.

use crate::heap::Heap;
use crate::layout;
use crate::word::{Subtag, Term, header_subtag};
use smallvec::SmallVec;

/// Heaps of more words are left alone: every object is compared with every other.
const MOST_WORDS: usize = 256;

/// An object: its start, its words, and whether it is a cell.
type Object = (*mut Term, usize, bool);

/// Makes references to equal objects refer to one of them. Returns the number of words of the
/// others, which stay until the next copy.
///
/// # Safety
/// As for [`super::collect`]; the heap was just copied, and all of it is in the young block.
pub(crate) unsafe fn dedup(heap: &mut Heap, roots: &mut [&mut [Term]]) -> usize {
    let words = heap.used_words();
    if words > MOST_WORDS || !heap.old_heap.is_null() {
        return 0;
    }
    // Keepers of addresses of this heap must look again: a term may now be its duplicate.
    heap.collections = heap.collections.wrapping_add(1);
    // All objects in the order of their addresses, without those that own something.
    let mut objects: SmallVec<[Object; 64]> = SmallVec::new();
    let mut i = 0;
    // SAFETY: the words below `used_words` are whole objects, or slots of cells.
    unsafe {
        while i < words {
            let p = heap.heap.add(i);
            let cell = !(*p).is_header();
            let n = if cell { 2 } else { layout::object_words(p) };
            if cell || is_plain(p) {
                objects.push((p, n, cell));
            }
            i += n;
        }
    }
    let mut saved = 0;
    // Joining two children may make their parents equal, so this repeats until a round finds
    // nothing.
    loop {
        // Replaced objects, and their replacements.
        let mut same: SmallVec<[(*mut Term, *mut Term); 16]> = SmallVec::new();
        // Compares each object with those before it; the first of equal ones stays.
        let mut k = 1;
        while k < objects.len() {
            let (p, n, cell) = objects[k];
            // SAFETY: objects have `n` words each.
            unsafe {
                let twin = objects[..k]
                    .iter()
                    .find(|o| o.1 == n && o.2 == cell && (0..n).all(|j| *o.0.add(j) == *p.add(j)));
                match twin {
                    Some(o) => {
                        same.push((p, o.0));
                        saved += n;
                        objects.remove(k);
                    }
                    None => k += 1,
                }
            }
        }
        if same.is_empty() {
            return saved;
        }
        let redirect = |slot: *mut Term| {
            // SAFETY: slots are roots, stack slots or words of whole objects of this heap.
            unsafe {
                let t = *slot;
                if t.is_immed() || t.is_header() {
                    return;
                }
                // The tag stays: a duplicate is of the same kind.
                if let Some(s) = same.iter().find(|s| s.0 == t.ptr()) {
                    let tag = t.raw() & 3;
                    *slot = Term::from_raw(s.1 as u64 | tag);
                }
            }
        };
        for r in roots.iter_mut() {
            r.iter_mut().for_each(|t| redirect(t));
        }
        // SAFETY: the stack has that many words.
        unsafe {
            for i in 0..heap.stack_words() {
                redirect(heap.stop.add(i));
            }
        }
        let mut i = 0;
        while i < words {
            // SAFETY: `i` is less than `words`: the start of a whole object, or a slot of a cell.
            unsafe {
                let p = heap.heap.add(i);
                if (*p).is_header() {
                    let (a, b) = layout::term_range(p);
                    (a..b).for_each(|k| redirect(p.add(k)));
                    i += layout::object_words(p);
                } else {
                    redirect(p);
                    i += 1;
                }
            }
        }
    }
}

/// Whether the object at `p` owns nothing outside the heap, and nobody has an address inside it.
///
/// # Safety
/// `p` is the header of a whole object.
unsafe fn is_plain(p: *const Term) -> bool {
    // SAFETY: by the contract, `p` is a header.
    unsafe {
        match header_subtag((*p).raw()) {
            Subtag::Tuple
            | Subtag::PosBig
            | Subtag::NegBig
            | Subtag::Float
            | Subtag::Record
            | Subtag::Map => true,
            Subtag::Ref => !layout::is_magic(p),
            _ => false,
        }
    }
}
