//! Room on the heap: how ops ask for a collection. What an op may collect is stated by its `live`.

use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;

/// Collects with the first `live` X registers as roots.
///
/// # Safety
/// As for [`Cx::collect`].
pub(crate) unsafe fn collect(cx: *mut Cx, need: usize, live: usize) {
    (*cx).collect(need, live, Also::NONE, Sweep::Due);
}

/// Collects if what natives or an op made asks for it, with `also` as one root more.
///
/// # Safety
/// As for [`Cx::collect`], unless `live` is [`NO_LIVE`]: then nothing is collected here.
///
/// [`NO_LIVE`]: purlin_isa::ops::NO_LIVE
#[inline(always)]
pub(crate) unsafe fn collect_after(cx: *mut Cx, live: usize, also: Also) {
    if (*cx).heap.gc_wanted {
        collect_with(cx, 0, live, also);
    }
}

/// As [`collect_after`], and also if fewer than `need` words are free, as the op promises them to those that follow.
///
/// # Safety
/// As for [`collect_after`].
#[inline(always)]
pub(crate) unsafe fn collect_for(cx: *mut Cx, need: usize, live: usize, also: Also) {
    if (*cx).heap.gc_wanted || (*cx).heap.free_words() < need {
        collect_with(cx, need, live, also);
    }
}

/// # Safety
/// As for [`collect_after`].
#[cold]
#[inline(never)]
unsafe fn collect_with(cx: *mut Cx, need: usize, live: usize, also: Also) {
    if live != purlin_isa::ops::NO_LIVE {
        (*cx).collect(need, live, also, Sweep::Due);
    }
}
