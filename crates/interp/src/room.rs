//! Room on the heap: how ops request a collection. The operand `live` of an op is the number of X
//! registers that are roots.

use crate::collect::{Also, Collect, Sweep};
use crate::cx::Cx;

/// Collects with the first `live` X registers as roots.
///
/// # Safety
/// As for [`Cx::collect`].
pub(crate) unsafe fn collect(cx: *mut Cx, need: usize, live: usize) {
    (*cx).collect(need, live, Also::NONE, Sweep::Due);
}

/// Collects if the terms that natives or an op have made require it, with `also` as an additional
/// root.
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

/// As [`collect_after`], but also if fewer than `need` words are free, which the op reserves for
/// those that follow.
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
