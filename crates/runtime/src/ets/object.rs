//! Objects as tables store them: one allocation each, which holds the tuple and everything in it.
//!
//! ```text
//!   next | hash, flags | words | first off-heap object | tuple header, elements, what they refer to…
//! ```
//! An object is immutable once it is in a table, save for `next`, `hash` and the mark of deletion, which whoever holds
//! the lock of its bucket may write. Its terms are good while that lock is held: what leaves the table is copied.

use purlin_term::block;
use purlin_term::copy::{copy_whole, size_whole};
use purlin_term::heap::OffHeap;
use purlin_term::word::header_arity;
use purlin_term::{Alloc, Term, gc};
use std::alloc::Layout;
use std::ptr::NonNull;

/// The head of a stored object; see the module head.
#[repr(C)]
pub struct Object {
    /// The next object of the bucket.
    pub next: Link,
    /// Hash of the key, without its top bit (hash tables only).
    pub hash: u32,
    /// Deleted while the table is fixed: kept for traversals only.
    pub deleted: bool,
    /// No word of it is a pointer or owns anything.
    flat: bool,
    /// Words of tuple and contents.
    words: usize,
    off_heap: *mut Term,
}

/// Words of the head, as far as memory is accounted for: what stock's objects have.
pub const HEAD_WORDS: usize = 4;
const HEAD_BYTES: usize = size_of::<Object>();

/// The chain of objects of a bucket; owns them.
pub type Link = Option<Owned>;

/// An owned object.
pub struct Owned(NonNull<Object>);

// SAFETY: an object owns its memory, and what it counts outside is counted atomically.
unsafe impl Send for Owned {}
// SAFETY: shared use only reads it.
unsafe impl Sync for Owned {}

fn layout(words: usize) -> Layout {
    // A size beyond isize::MAX can't come from a term that exists in memory.
    Layout::from_size_align(HEAD_BYTES + words * 8, 8).unwrap_or(Layout::new::<Object>())
}

impl Owned {
    /// A copy of the tuple `t`, which has at least one element.
    pub fn new(t: Term) -> Owned {
        let elements = t.as_tuple().unwrap_or_default();
        let flat = elements.iter().all(|e| e.is_immed());
        let words = if flat {
            1 + elements.len()
        } else {
            size_whole(t)
        };
        // SAFETY: the layout is not of size 0; the head and all words are written below.
        unsafe {
            let p = std::alloc::alloc(layout(words)) as *mut Object;
            let Some(p) = NonNull::new(p) else {
                std::alloc::handle_alloc_error(layout(words))
            };
            let at = (p.as_ptr() as *mut Term).byte_add(HEAD_BYTES);
            let mut off_heap = std::ptr::null_mut();
            if flat {
                std::ptr::copy_nonoverlapping(t.ptr(), at, words);
            } else {
                off_heap = block::fill(t, at, words).first;
            }
            p.write(Object {
                next: None,
                hash: 0,
                deleted: false,
                flat,
                words,
                off_heap,
            });
            Owned(p)
        }
    }
}

impl std::ops::Deref for Owned {
    type Target = Object;
    #[inline(always)]
    fn deref(&self) -> &Object {
        // SAFETY: owned and alive.
        unsafe { self.0.as_ref() }
    }
}

impl std::ops::DerefMut for Owned {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Object {
        // SAFETY: owned and alive; `&mut` makes us the only user.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // The chain is freed in a loop: it may be long.
        let mut next = self.next.take();
        while let Some(mut o) = next {
            next = o.next.take();
        }
        // SAFETY: owned; nothing refers to its terms any more (module head).
        unsafe {
            let words = self.words;
            if !self.off_heap.is_null() {
                let mut l = OffHeap {
                    first: self.off_heap,
                    bytes: 0,
                    regions: Default::default(),
                };
                gc::release_off_heap(&mut l);
            }
            std::alloc::dealloc(self.0.as_ptr() as *mut u8, layout(words));
        }
    }
}

impl Object {
    #[inline(always)]
    fn base(&self) -> *const Term {
        // SAFETY: the words follow the head in the same allocation.
        unsafe { (self as *const Object as *const Term).byte_add(HEAD_BYTES) }
    }
    /// The stored tuple. Good while the object's lock is held.
    #[inline(always)]
    pub fn tuple(&self) -> Term {
        // SAFETY: a tuple starts there.
        unsafe { Term::boxed_at(self.base()) }
    }
    /// Number of its elements.
    #[inline(always)]
    pub fn arity(&self) -> usize {
        // SAFETY: the first word is the tuple's header.
        header_arity(unsafe { (*self.base()).raw() })
    }
    /// Element `pos` (from 1), which must be there.
    #[inline(always)]
    pub fn element(&self, pos: usize) -> Term {
        debug_assert!(pos >= 1 && pos <= self.arity());
        // SAFETY: as the caller makes sure.
        unsafe { *self.base().add(pos) }
    }
    /// Words of the object: as stock counts them, but for the head of its kind of table.
    #[inline(always)]
    pub fn words(&self) -> usize {
        self.words
    }
    /// A copy of the tuple on another heap.
    #[inline]
    pub fn copy_to<A: Alloc + ?Sized>(&self, to: &mut A) -> Term {
        // SAFETY: the block is whole and alive.
        unsafe {
            if self.flat {
                let q = to.alloc(self.words);
                std::ptr::copy_nonoverlapping(self.base(), q, self.words);
                return Term::boxed_at(q);
            }
            Term::boxed_at(block::copy_out(self.base(), self.words, to))
        }
    }
    /// A copy of element `pos` on another heap.
    pub fn copy_element<A: Alloc + ?Sized>(&self, pos: usize, to: &mut A) -> Term {
        copy_whole(self.element(pos), to)
    }
}

impl Owned {
    /// Puts the immediate `t` in the place of element `pos`, if an immediate is there: no copy is needed for that.
    pub fn set_immediate(&mut self, pos: usize, t: Term) -> bool {
        if !t.is_immed() || pos < 1 || pos > self.arity() || !self.element(pos).is_immed() {
            return false;
        }
        // SAFETY: within the tuple; `&mut` makes us the only user.
        unsafe { (self.base() as *mut Term).add(pos).write(t) };
        true
    }
}
