//! Large terms go from process to process without being copied.
//!
//! A term above the threshold becomes a region of its own: where it is a fair part of the sender's heap it is moved
//! there, so that the sender's references point into the region too and sending it again costs nothing; else it is
//! copied there once. The walk that decides is bounded by the larger of the threshold and a quarter of the heap.

use crate::cx::Cx;
use purlin_term::region::{Builder, Region};
use purlin_term::{Term, copy, gc};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words from which on a term is shared. `usize::MAX`: never.
pub static THRESHOLD: AtomicUsize = AtomicUsize::new(DEFAULT_THRESHOLD);

/// 64 KiB: copying less than that costs about as much as making a region.
pub const DEFAULT_THRESHOLD: usize = 8192;

/// Words that were copied from process to process, and words that were shared instead.
pub static COPIED: AtomicU64 = AtomicU64::new(0);
/// See [`COPIED`].
pub static SHARED: AtomicU64 = AtomicU64::new(0);

/// Holds a region that was made for a term until the term has been handed on.
pub struct Held(Option<&'static Region>);

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(r) = self.0.take() {
            // SAFETY: whoever uses the term holds the region by a count of its own.
            unsafe { r.release() };
        }
    }
}

/// `t`, or what stands for it in a region if it is large. The caller copies it to where it goes (which holds the
/// region), drops the second part, and makes no other use of the process's terms before it returns to the interpreter,
/// which collects then.
pub fn share(cx: &mut Cx, t: Term) -> (Term, Held) {
    let threshold = THRESHOLD.load(Ordering::Relaxed);
    if t.is_immed() || threshold == usize::MAX {
        return (t, Held(None));
    }
    let h = &cx.heap;
    let all = h.used_words() + h.frag_words + (h.old_htop as usize - h.old_heap as usize) / 8;
    let limit = threshold.max(all / 4);
    match copy::size_within(t, limit) {
        Some(n) if n < threshold => (t, Held(None)),
        Some(n) => {
            let mut b = Builder::counted(n);
            let c = copy::copy(t, &mut b);
            SHARED.fetch_add(n as u64, Ordering::Relaxed);
            (c, Held(Some(b.finish())))
        }
        None => {
            // SAFETY: by what the caller promises.
            let (c, r) = unsafe { gc::freeze(&mut cx.heap, t) };
            SHARED.fetch_add(r.words as u64, Ordering::Relaxed);
            (c, Held(None))
        }
    }
}
