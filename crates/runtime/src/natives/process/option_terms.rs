//! Terms of process options: flags, priorities, heap sizes and limits.
//!
//! A function that reads one returns `None` for an invalid term.

use crate::cx::Cx;
use crate::lazy_atoms;
use crate::process;
use crate::process::ext::MaxHeap;
use crate::process::state::Priority;
use purlin_term::release::{self, SHARED_BINARIES_IN_LIMIT};
use purlin_term::{Alloc, Term, am};
use std::sync::atomic::Ordering;

lazy_atoms! {
    pub(crate) a_include_shared_binaries = "include_shared_binaries";
}

pub(super) fn erl_flag(t: Term) -> Option<bool> {
    if t == am::TRUE {
        Some(true)
    } else if t == am::FALSE {
        Some(false)
    } else {
        None
    }
}

/// The priority that an atom names.
pub(crate) fn priority_of(t: Term) -> Option<Priority> {
    [
        (am::LOW, Priority::Low),
        (am::NORMAL, Priority::Normal),
        (am::HIGH, Priority::High),
        (am::MAX, Priority::Max),
    ]
    .into_iter()
    .find(|p| p.0 == t)
    .map(|p| p.1)
}

pub(crate) fn priority_atom(p: Priority) -> Term {
    match p {
        Priority::Low => am::LOW,
        Priority::Normal => am::NORMAL,
        Priority::High => am::HIGH,
        Priority::Max => am::MAX,
    }
}

/// A heap limit, from an integer or a map.
pub(crate) fn max_heap(t: Term, old: Option<MaxHeap>) -> Option<MaxHeap> {
    let mut m = old.unwrap_or_else(process::max_heap_flags);
    if let Some(n) = t.as_small() {
        m.words = usize::try_from(n).ok()?;
        return Some(m);
    }
    if !t.is_map() {
        return None;
    }
    let get = |k| purlin_term::map::get(t, k);
    m.words = usize::try_from(get(am::SIZE)?.as_small()?).ok()?;
    if let Some(v) = get(am::KILL) {
        m.kill = erl_flag(v)?;
    }
    if let Some(v) = get(am::ERROR_LOGGER) {
        m.error_logger = erl_flag(v)?;
    }
    if let Some(v) = get(a_include_shared_binaries()) {
        m.include_shared_binaries = erl_flag(v)?;
    }
    Some(m)
}

/// The minimum heap size for `words` requested words; `None` if that is no more than the default,
/// with which processes start at the size that they need.
pub(super) fn asked_heap(words: usize) -> Option<u32> {
    let n = purlin_term::gc::heap_size_for(words);
    (n > process::least_heap(None)).then_some(n as u32)
}

/// The virtual binary heap size for `words` requested words: never below the default.
pub(super) fn asked_vheap(words: usize) -> usize {
    let least = process::DEFAULTS.min_vheap_words.load(Ordering::Relaxed);
    least.max(purlin_term::gc::heap_size_for(words))
}

/// The minor collections before a full sweep for a requested number; `None` if it is negative.
/// Stock keeps the lower 16 bits.
pub(super) fn asked_collections(n: i64) -> Option<u32> {
    (n >= 0).then_some((n & 0xFFFF) as u32)
}

/// The term of a `max_heap_size`.
pub(crate) fn max_heap_term(cx: &mut Cx, m: Option<MaxHeap>) -> Term {
    let m = m.unwrap_or_else(process::max_heap_flags);
    let b = |v| if v { am::TRUE } else { am::FALSE };
    let mut t = cx.flatmap(&[], &[]);
    let mut items = vec![
        (am::ERROR_LOGGER, b(m.error_logger)),
        (am::KILL, b(m.kill)),
        (am::SIZE, Term::small(m.words as i64)),
    ];
    if release::has(SHARED_BINARIES_IN_LIMIT) {
        items.push((a_include_shared_binaries(), b(m.include_shared_binaries)));
    }
    for (k, v) in items {
        t = purlin_term::map::put(cx, t, k, v);
    }
    t
}
