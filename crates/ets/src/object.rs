//! Objects as tables store them: one allocation each, which holds the tuple and everything in it.
//!
//! ```text
//!   next | hash, flags | words | first off-heap object | tuple header, elements, their contents…
//! ```
//! Elements above the sharing threshold are elsewhere: they lie in counted regions, which the
//! object holds, and a lookup refers to them too. Smaller elements are also put in a region when
//! the object is looked up repeatedly; then another object takes its place.
//!
//! An object is immutable once it is in a table, except for `next`, `hash` and the deletion mark,
//! which the holder of its bucket's lock may write. Its terms are valid while that lock is held:
//! everything that leaves the table is copied.

use crate::cx::Cx;
use crate::signal::share;
use purlin_kernel::accounts::{self, Kind as Account};
use purlin_term::copy::{self, size_whole};
use purlin_term::fence;
use purlin_term::frag::Fragment;
use purlin_term::off_heap::OffHeap;
use purlin_term::packed;
use purlin_term::region::{is_counted_ptr, region_of};
use purlin_term::region_set::RegionSet;
use purlin_term::word::header_arity;
use purlin_term::{Alloc, Term, compare, gc};
use smallvec::SmallVec;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, Ordering};

/// The header of a stored object; see the module head.
#[repr(C)]
pub struct Object {
    /// The next object of the bucket.
    pub next: Link,
    /// Hash of the key, without its top bit (hash tables only).
    pub hash: u32,
    /// Whether it was deleted while the table is fixed, and is kept for traversals only.
    pub deleted: bool,
    form: Form,
    /// Number of lookups, as far as they are counted: see [`Object::looked_up`].
    looked: AtomicU8,
    /// Words that follow: tuple and contents.
    words: usize,
    off_heap: Outside,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// No word of it is a pointer or owns anything.
    Flat,
    /// All of it is in the block.
    Whole,
    /// Some elements lie in regions.
    Shared,
}

/// The memory that an object has outside its block, by its form.
union Outside {
    /// The first of the objects in the block that own something.
    first: *mut Term,
    shared: *mut Shared,
}

struct Shared {
    off_heap: OffHeap,
    /// Words that the elements in regions would take.
    words: usize,
}

/// Words that an object with elements in regions takes besides its own: [`Shared`], and the entry
/// of one region.
const SHARED_WORDS_OF_TABLE: isize = (size_of::<Shared>() / 8 + 4) as isize;

/// Words of the header for memory accounting: as many as stock's objects have.
pub(crate) const HEAD_WORDS: usize = 4;
const HEAD_BYTES: usize = size_of::<Object>();

/// Smaller elements stay in the object's own memory.
const GROUPED_WORDS: usize = 64;

/// An object of this many words is put in a region at its second lookup, and one of
/// [`FEW_SHARED_WORDS`] at its eighth: a region takes whole pages.
const SHARED_WORDS: usize = 384;
const FEW_SHARED_WORDS: usize = 128;
/// Number of lookups before those.
const LOOKED: u8 = 1;
const OFTEN_LOOKED: u8 = 7;
/// Mark of an object that needs no further treatment.
const SETTLED: u8 = u8::MAX;

/// The chain of objects of a bucket; owns them.
pub type Link = Option<Owned>;

/// An owned object.
pub struct Owned(NonNull<Object>);

// SAFETY: an object owns its memory, and its references to the outside are counted atomically.
unsafe impl Send for Owned {}
// SAFETY: shared use only reads it.
unsafe impl Sync for Owned {}

fn layout(words: usize) -> Layout {
    // A size beyond isize::MAX cannot come from a term that exists in memory.
    Layout::from_size_align(HEAD_BYTES + words * 8, 8).unwrap_or(Layout::new::<Object>())
}

impl Owned {
    /// A copy of the tuple `t`, which has at least one element. Elements that already lie in
    /// regions stay there.
    pub fn new(t: Term) -> Owned {
        Self::make(t, None, false)
    }
    /// A copy of an object's own tuple, with elements that are not small in a region.
    pub(crate) fn settled(cx: &mut Cx, t: Term) -> Owned {
        let mut o = Self::make(t, Some(cx), true);
        *o.looked.get_mut() = SETTLED;
        o
    }
    /// As [`Owned::new`], with large elements of the process put into regions.
    pub(crate) fn new_shared(cx: &mut Cx, t: Term) -> Owned {
        let o = Self::make(t, Some(cx), false);
        accounts::copied(cx, Account::TableIn, o.copied_words(), t);
        o
    }
    fn make(t: Term, mut cx: Option<&mut Cx>, settled: bool) -> Owned {
        let elements = t.as_tuple().unwrap_or_default();
        if elements.iter().all(|e| e.is_immed()) {
            return Self::flat(t, 1 + elements.len());
        }
        let mut words = 1 + elements.len();
        let mut kept: SmallVec<[Term; 4]> = SmallVec::new();
        let mut kept_words = 0;
        // The replacements of elements that were put into regions just now.
        let mut new: SmallVec<[(usize, Term); 4]> = SmallVec::new();
        // Elements, with their words, that are worth a region together.
        let mut grouped: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        let mut held = RegionSet::default();
        for (i, &e) in elements.iter().enumerate() {
            if e.is_immed() {
                continue;
            }
            if is_counted_ptr(e.ptr()) && worth_keeping(e) {
                kept.push(e);
                kept_words += region_words(e);
                continue;
            }
            let part = match cx.as_deref_mut() {
                Some(cx) if !settled => share::large_part(cx, &mut held, e),
                _ => Err(size_whole(e)),
            };
            let n = match part {
                Ok((s, n)) => {
                    kept.push(s);
                    new.push((i, s));
                    kept_words += n;
                    continue;
                }
                Err(n) => n,
            };
            words += n;
            if n >= GROUPED_WORDS {
                grouped.push((i, n));
            }
        }
        // No element is large, but all together are.
        if let Some(cx) = cx
            .filter(|_| !grouped.is_empty() && (settled || share::is_large(words - elements.len())))
        {
            let terms: Vec<Term> = grouped.iter().map(|g| elements[g.0]).collect();
            let group_words = grouped.iter().map(|g| g.1).sum();
            let stand_ins = share::group(cx, &mut held, &terms, group_words);
            for (&(i, n), s) in grouped.iter().zip(stand_ins) {
                kept.push(s);
                new.push((i, s));
                kept_words += n;
                words -= n;
            }
        }
        let mut f = Fragment::new();
        let t = if new.is_empty() {
            t
        } else {
            let mut e = elements.to_vec();
            for (i, s) in new {
                e[i] = s;
            }
            f.tuple(&e)
        };
        let outside = Outside {
            first: std::ptr::null_mut(),
        };
        let form = match kept.is_empty() {
            true => Form::Whole,
            false => Form::Shared,
        };
        let o = Self::with(words, form, outside, |at, words| {
            // SAFETY: as many words as were just counted.
            let off_heap = unsafe { packed::fill(t, at, words, &kept) };
            Some(match form {
                Form::Shared => Outside {
                    shared: Box::into_raw(Box::new(Shared {
                        off_heap,
                        words: kept_words,
                    })),
                },
                _ => Outside {
                    first: off_heap.first,
                },
            })
        });
        // SAFETY: the object holds everything that it refers to.
        unsafe { held.release_all() };
        o
    }
    /// Makes an object from a tuple of `words` words, all of whose elements are immediate.
    fn flat(t: Term, words: usize) -> Owned {
        let outside = Outside {
            first: std::ptr::null_mut(),
        };
        Self::with(words, Form::Flat, outside, |at, words| {
            // SAFETY: as many words as the tuple has.
            unsafe { std::ptr::copy_nonoverlapping(t.ptr(), at, words) };
            None
        })
    }
    /// Makes an object of `words` words, which `fill` writes.
    fn with(
        words: usize,
        form: Form,
        outside: Outside,
        fill: impl FnOnce(*mut Term, usize) -> Option<Outside>,
    ) -> Owned {
        // SAFETY: the layout is not of size 0; the header is written below, all words by `fill`.
        unsafe {
            let p = fence::allocate(fence::Kind::Object, layout(words)) as *mut Object;
            let Some(p) = NonNull::new(p) else {
                purlin_term::sys::out_of_memory("ets_alloc", layout(words).size(), "db_term")
            };
            let at = (p.as_ptr() as *mut Term).byte_add(HEAD_BYTES);
            let off_heap = fill(at, words).unwrap_or(outside);
            p.write(Object {
                next: None,
                hash: 0,
                deleted: false,
                form,
                looked: AtomicU8::new(0),
                words,
                off_heap,
            });
            Owned(p)
        }
    }
}

/// The size of an object, or a change of the size of a table.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Words as stock counts them.
    pub words: isize,
    /// Those of them that lie in shared regions. The budgets of the processes that made the
    /// regions pay for them, each once, and the owner's budget pays for the rest.
    pub shared: isize,
}

impl std::ops::Sub for Weight {
    type Output = Weight;
    fn sub(self, other: Weight) -> Weight {
        Weight {
            words: self.words - other.words,
            shared: self.shared - other.shared,
        }
    }
}

/// Whether an object refers to `t`, which lies in a counted region, instead of copying it: it is
/// all of the region, or a fair part.
fn worth_keeping(t: Term) -> bool {
    let Some(r) = region_of(t.ptr()) else {
        return false;
    };
    let (base, words) = r.area();
    std::ptr::eq(base, t.ptr()) || copy::size_whole_within(t, words / 16).is_none()
}

/// Words that a copy of `t`, which lies in a counted region, would take.
fn region_words(t: Term) -> usize {
    match region_of(t.ptr()) {
        Some(r) if std::ptr::eq(r.area().0, t.ptr()) && r.is_leaf() => r.words,
        _ => share::whole_words(t),
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
        // The chain is freed in a loop, because it may be long.
        let mut next = self.next.take();
        while let Some(mut o) = next {
            next = o.next.take();
        }
        // SAFETY: owned; nothing refers to its terms any more (module head).
        unsafe {
            let words = self.words;
            if self.form == Form::Shared {
                let mut s = Box::from_raw(self.off_heap.shared);
                gc::release_off_heap(&mut s.off_heap);
            } else if !self.off_heap.first.is_null() {
                let mut l = OffHeap {
                    first: self.off_heap.first,
                    bytes: 0,
                    regions: Default::default(),
                };
                gc::release_off_heap(&mut l);
            }
            fence::deallocate(self.0.as_ptr() as *mut u8, layout(words));
        }
    }
}

impl Object {
    #[inline(always)]
    fn base(&self) -> *const Term {
        // SAFETY: the words follow the header in the same allocation.
        unsafe { (self as *const Object as *const Term).byte_add(HEAD_BYTES) }
    }
    /// The stored tuple. Valid while the object's lock is held.
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
    /// Element `pos` (from 1). Panics if there is none.
    #[inline(always)]
    pub fn element(&self, pos: usize) -> Term {
        assert!(pos >= 1 && pos <= self.arity());
        // SAFETY: the elements follow the header; there are that many.
        unsafe { *self.base().add(pos) }
    }
    /// Whether it is exactly equal to a tuple. Most unequal objects differ in an element without
    /// structure.
    #[inline]
    pub fn is(&self, tuple: Term) -> bool {
        let Some(other) = tuple.as_tuple() else {
            return false;
        };
        // From the end, because the keys are often equal.
        other.len() == self.arity()
            && (0..other.len())
                .rev()
                .all(|i| compare::eq_exact(self.element(i + 1), other[i]))
    }
    /// Words of the object as stock counts them, except for the header of its kind of table.
    #[inline(always)]
    pub fn words(&self) -> usize {
        match self.form {
            // SAFETY: by the form.
            Form::Shared => self.words + unsafe { (*self.off_heap.shared).words },
            _ => self.words,
        }
    }
    /// Words that a copy takes.
    pub(crate) fn copied_words(&self) -> usize {
        self.words
    }
    /// Words that its table's owner pays for.
    pub(crate) fn billed_words(&self) -> usize {
        let w = self.weight(HEAD_WORDS);
        (w.words - w.shared).max(0) as usize
    }
    /// Returns what the object adds to the size of its table, with a header of `head` words.
    #[inline(always)]
    pub(crate) fn weight(&self, head: usize) -> Weight {
        let words = self.words();
        let shared = match self.form {
            Form::Shared => (words - self.words) as isize - SHARED_WORDS_OF_TABLE,
            _ => 0,
        };
        Weight {
            words: (head + words) as isize,
            shared,
        }
    }
    /// Counts a lookup. Returns whether the object has been looked up so often that it belongs in a
    /// region.
    #[inline]
    pub(crate) fn looked_up(&self) -> bool {
        self.words >= FEW_SHARED_WORDS && self.count_lookup()
    }
    fn count_lookup(&self) -> bool {
        // Two concurrent lookups may count as one.
        let n = self.looked.load(Ordering::Relaxed);
        let most = match self.words >= SHARED_WORDS {
            true => LOOKED,
            false => OFTEN_LOOKED,
        };
        if n < most {
            self.looked.store(n + 1, Ordering::Relaxed);
        }
        (most..SETTLED).contains(&n) && share::is_on()
    }
    /// Whether lookups need no further treatment.
    pub(crate) fn is_settled(&self) -> bool {
        self.looked.load(Ordering::Relaxed) == SETTLED
    }
    /// A copy of the tuple on another heap.
    #[inline]
    pub(crate) fn copy_to<A: Alloc + ?Sized>(&self, to: &mut A) -> Term {
        // SAFETY: the block is whole and alive.
        unsafe {
            if self.form == Form::Flat {
                let q = to.alloc(self.words);
                std::ptr::copy_nonoverlapping(self.base(), q, self.words);
                return Term::boxed_at(q);
            }
            if self.form == Form::Shared {
                return Term::boxed_at(packed::copy_out::<true, A>(self.base(), self.words, to));
            }
            Term::boxed_at(packed::copy_out::<false, A>(self.base(), self.words, to))
        }
    }
    /// A copy of element `pos` on another heap.
    pub(crate) fn copy_element<A: Alloc + ?Sized>(&self, pos: usize, to: &mut A) -> Term {
        copy::copy(self.element(pos), to)
    }
}

impl Owned {
    /// Replaces element `pos` by the immediate `t`, if it is an immediate itself, which needs no
    /// copy.
    pub(crate) fn set_immediate(&mut self, pos: usize, t: Term) -> bool {
        if !t.is_immed() || pos < 1 || pos > self.arity() || !self.element(pos).is_immed() {
            return false;
        }
        // SAFETY: within the tuple; `&mut` makes us the only user.
        unsafe { (self.base() as *mut Term).add(pos).write(t) };
        true
    }
}
