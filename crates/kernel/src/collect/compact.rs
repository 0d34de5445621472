//! Idle compaction: a process that has waited for a while gives back memory that it does not use.
//!
//! When a process begins to wait, its owner decides by a few comparisons whether compacting may pay
//! ([`pays`]). Upkeep ([`crate::threads::upkeep`]) takes processes that have waited since its last
//! round and compacts them. The size of a large heap after compaction is remembered, so that a heap
//! that is all in use is not copied again and again.
//!
//! Nobody waits for this work. A large old generation is swept in steps ([`sweep`]); after each
//! step upkeep checks whether something has come for the process. The heap is moved only if little
//! of it is live. Otherwise the whole free pages are returned to the system, and the remaining gaps
//! are filled before the heap grows again.

use super::{Also, Collect, Sweep};
use crate::clock;
use crate::cx::Cx;
use crate::message::mailbox::Mailbox;
use crate::process::ext::Hibernation;
use crate::process::{Enter, INLINE_WORDS, Process, SETTLED, TIMER, TRACED, table};
use purlin_native::reschedule;
use purlin_term::heap::Heap;
use purlin_term::{Term, gc};

/// Heaps with fewer words are compacted whenever there is something to gain: it takes microseconds.
const SMALL_WORDS: usize = 4096;
/// Free words that a small heap keeps.
const SLACK_WORDS: usize = 8;

/// Whether a process that waits, and is packed, might give memory back.
///
/// # Safety
/// The caller owns the process.
#[inline(always)]
pub(crate) unsafe fn pays(p: *mut Process) -> bool {
    // SAFETY: the caller owns the process.
    unsafe {
        if !may_compact(p) {
            return false;
        }
        let me = &mut *p;
        if is_uncompacted(me) {
            return true;
        }
        if let Some(h) = me.boxed_heap() {
            let (used, blocks, untidy) = sizes(h);
            return pays_expanded(me, used, blocks, untidy);
        }
        let (block, free) = me.packed_words();
        if block > INLINE_WORDS && free > SLACK_WORDS {
            return block < SMALL_WORDS || grown(me, block - free);
        }
        me.mailbox.as_ref().is_some_and(|m| m.is_unused())
    }
}

/// Whether a process that waits may be compacted: it has no live registers, or they are known
/// because it hibernates.
///
/// # Safety
/// The caller owns the process.
#[inline]
unsafe fn may_compact(p: *mut Process) -> bool {
    // SAFETY: the caller owns the process.
    unsafe { !(*p).has(TRACED) && ((*p).live == 0 || is_uncompacted(&mut *p)) }
}

fn is_uncompacted(p: &mut Process) -> bool {
    p.ext()
        .is_some_and(|e| matches!(e.hibernation, Hibernation::Uncompacted { .. }))
}

/// Heaps with fewer words are compacted whenever their process hibernates.
const LARGE_WORDS: usize = 1 << 14;
/// Time in nanoseconds after which a process that hibernates uncompacted is compacted as soon as it
/// does anything. Upkeep handles it only if it does nothing.
const UNCOMPACTED: i64 = 500_000_000;

/// Handles hibernation of the running process, when no message is there and only `live` registers
/// are in use. Returns true to let other processes run first, since they may well send it a
/// message; the caller then asks again. A large heap that has not grown since it was compacted is
/// left to upkeep, which handles it if the process waits for long.
///
/// # Safety
/// The contract of [`Collect::collect`] holds.
pub unsafe fn hibernates(cx: &mut Cx, live: usize) -> bool {
    let used = sizes(&cx.heap).0;
    if used >= LARGE_WORDS || gc::stress_roll(2) {
        let tight = is_tight(&cx.heap);
        // SAFETY: by the contract of this function.
        let little = unsafe { holds_little(cx, live) };
        let e = cx.process().ext_mut();
        match e.hibernation {
            Hibernation::Not => {
                e.hibernation = Hibernation::GivesWay;
                return true;
            }
            Hibernation::Compacted if tight => return false,
            Hibernation::GivesWay | Hibernation::Compacted
                if used <= e.compacted_words + e.compacted_words / 8 && !little =>
            {
                let since = clock::elapsed();
                e.hibernation = Hibernation::Uncompacted { since };
                return false;
            }
            Hibernation::Uncompacted { since }
                if clock::elapsed() - since < UNCOMPACTED && !little =>
            {
                return false;
            }
            _ => {}
        }
    }
    // SAFETY: by the contract of this function.
    unsafe { compact_running(cx, live) };
    false
}

/// Maximum number of parts of live data that count as little. Counting them takes no time. A
/// process that hibernates with so little has dropped its data, and is compacted at once.
const LITTLE: usize = 500;

/// Whether the live data of the running process, which hibernates, is small, whatever else is on
/// its heap.
///
/// # Safety
/// The contract of [`Collect::collect`] holds.
unsafe fn holds_little(cx: &mut Cx, live: usize) -> bool {
    // SAFETY: null or the running process, which this thread owns.
    let dictionary: &[Term] = match unsafe { cx.proc.as_mut() }.and_then(|p| p.ext()) {
        Some(e) => e.dict.slots_mut(),
        None => &[],
    };
    let held = cx.x[..live].iter().chain(dictionary).copied();
    !reschedule::are_larger(held, LITTLE)
}

/// Compacts the running process, which hibernates.
///
/// # Safety
/// The contract of [`Collect::collect`] holds.
unsafe fn compact_running(cx: &mut Cx, live: usize) {
    cancel_hibernation(cx.process());
    // SAFETY: by the contract of this function.
    unsafe { cx.collect(0, live, Also::NONE, Sweep::Exact) };
    let used = sizes(&cx.heap).0;
    if used >= LARGE_WORDS {
        let e = cx.process().ext_mut();
        e.compacted_words = used;
        e.hibernation = Hibernation::Compacted;
    } else if let Some(e) = cx.process().ext() {
        e.compacted_words = 0;
    }
}

/// Runs a collection of the process in the context for another process: a full sweep or a minor
/// collection. A process that hibernates with a large heap is compacted at most once, since all of
/// it is in use until the process does something.
///
/// # Safety
/// The contract of [`Collect::collect`] holds.
pub unsafe fn collect_for_another(cx: &mut Cx, live: usize, full: bool) {
    // SAFETY: by the contract of this function.
    unsafe {
        match cx.process().ext().map(|e| e.hibernation) {
            Some(Hibernation::Compacted) if is_tight(&cx.heap) => {}
            Some(Hibernation::Compacted | Hibernation::Uncompacted { .. }) => {
                compact_running(cx, live)
            }
            _ if full => {
                cx.collect(0, live, Also::NONE, Sweep::Full);
            }
            _ => {
                cx.heap.keep_generations();
                cx.collect(0, live, Also::NONE, Sweep::Due);
            }
        }
    }
}

/// Whether [`hibernates`] must be asked again for the running process, which hibernates and was
/// woken by something other than a message.
pub fn must_retry(p: &mut Process) -> bool {
    p.ext().is_some_and(|e| {
        matches!(
            e.hibernation,
            Hibernation::GivesWay | Hibernation::Uncompacted { .. }
        )
    })
}

/// Notes that there is a message for the running process, which was about to hibernate.
pub fn cancel_hibernation(p: &mut Process) {
    if let Some(e) = p.ext()
        && e.hibernation != Hibernation::Not
    {
        e.hibernation = Hibernation::Not;
    }
}

/// Stress mode: compacts a process that begins to wait at once, leaves it to upkeep, or does
/// nothing. Returns whether it was left to upkeep, as [`pays`] does.
///
/// # Safety
/// The contract of [`compact`] holds.
#[cold]
pub unsafe fn stress_waiting(cx: &mut Cx, p: *mut Process) -> bool {
    // SAFETY: the caller owns the process.
    unsafe {
        let words = match (*p).boxed_heap() {
            Some(h) => sizes(h).0,
            None => (*p).packed_words().0,
        };
        if gc::stress_once(8, words) {
            compact(cx, p);
            return false;
        }
        gc::stress_once(3, words) && may_compact(p)
    }
}

/// Returns the words in use, the words of blocks and fragments, and whether there is more than one
/// of those.
#[inline]
fn sizes(h: &Heap) -> (usize, usize, bool) {
    let old = h.old_words() - h.old_free_words();
    let used = h.used_words() + h.stack_words() + old + h.frag_words;
    let blocks = h.block_words() + h.old_block_words() + h.frag_words;
    (used, blocks, !h.frags.is_empty() || h.old_words() > 0)
}

/// Whether the heap is one block of exactly the words in use.
fn is_tight(h: &Heap) -> bool {
    let (used, blocks, untidy) = sizes(h);
    !untidy && blocks <= used + SLACK_WORDS
}

#[cold]
fn pays_expanded(me: &mut Process, used: usize, blocks: usize, untidy: bool) -> bool {
    if blocks < SMALL_WORDS {
        return blocks > used + SLACK_WORDS || untidy;
    }
    grown(me, used)
}

/// Whether the heap has grown by more than half since it was last compacted.
#[inline]
fn grown(me: &mut Process, used: usize) -> bool {
    let before = me.ext().map_or(0, |e| e.compacted_words);
    used > before + before / 2
}

/// Number of processes that make a crowd: with so many, the memory that each holds until upkeep
/// reaches it matters.
pub(crate) const CROWD: usize = 50_000;

/// Whether [`settle`] may have something to do.
///
/// # Safety
/// The contract of [`compact`] holds.
#[inline]
pub(crate) unsafe fn settles(p: *mut Process) -> bool {
    // SAFETY: the caller owns the process.
    unsafe { (*p).has(TIMER) && !(*p).has(SETTLED) }
}

/// Compacts a process that begins to wait with a timeout for the first time and may well sleep for
/// long: one of a crowd, or one whose heap is boxed, which takes more memory than a small heap (a
/// message with a fun leaves that). Returns whether compacting it later may pay.
///
/// # Safety
/// The contract of [`compact`] holds.
#[cold]
pub unsafe fn settle(cx: &mut Cx, p: *mut Process) -> bool {
    // SAFETY: the caller owns the process.
    unsafe {
        let me = &mut *p;
        if !settles(p) || !(me.has_boxed_heap() || table().live() >= CROWD) {
            return true;
        }
        me.set_flag(SETTLED, true);
        if me.heap_blocks_words() >= SMALL_WORDS {
            return true;
        }
        compact(cx, p);
        pays(p)
    }
}

/// Sweeps the large old generation of a waiting process until something comes for the process.
/// Returns true if the sweep finished and little is live, so that the heap may be moved.
///
/// # Safety
/// The contract of [`compact`] holds; the process was entered.
unsafe fn sweep(cx: &mut Cx, p: *mut Process) -> bool {
    // SAFETY: the caller owns the process, which was entered: no term of it is in a register.
    unsafe {
        cx.collect(0, (*p).live as usize, Also::NONE, Sweep::Idle);
        while cx.heap.is_swept_in_steps() {
            if (*p).state.load().has_news() || (gc::stress() && gc::stress_below(200) == 0) {
                return false;
            }
            cx.sweep_on();
        }
        if gc::is_sparse(&cx.heap) {
            return true;
        }
        let used = sizes(&cx.heap).0;
        (*p).ext_mut().compacted_words = used;
        false
    }
}

/// Compacts a waiting process: a full sweep into a block of exactly the words in use, or a sweep in
/// steps if the heap is large. Returns the number of bytes that its blocks shrank by. The process
/// is left as it was found: packed, and owned by the caller.
///
/// # Safety
/// The caller owns the process, and `cx` runs none.
pub(crate) unsafe fn compact(cx: &mut Cx, p: *mut Process) -> usize {
    // SAFETY: the caller owns the process.
    if !unsafe { pays(p) || gc::stress() && may_compact(p) } {
        return 0;
    }
    // SAFETY: the caller owns the process, which runs nowhere. Between `enter` and `leave` its heap
    // is that of the context.
    unsafe {
        let live = (*p).live as usize;
        let hibernation = is_uncompacted(&mut *p)
            .then(|| (*p).ext().map(|e| e.hibernation))
            .flatten();
        cx.enter(p);
        cancel_hibernation(&mut *p);
        let blocks = |cx: &Cx| {
            let h = &cx.heap;
            let inline = if h.inline_block { h.block_words() } else { 0 };
            h.block_words() - inline + h.old_block_words() + h.frag_words
        };
        let before = blocks(cx);
        let mut moved = true;
        if before > 0 {
            // The process has not asked for this, so it does not pay for it.
            let reds = cx.reds;
            let limited = (*p).ext().is_some_and(|e| e.max_heap.is_some());
            moved = limited || !gc::is_swept_idle(&cx.heap) || sweep(cx, p);
            if moved {
                cx.collect(0, live, Also::NONE, Sweep::Compact);
            }
            cx.reds = reds;
        }
        let after = blocks(cx);
        let left_cell = !cx.heap.inline_block;
        if let Some(uncompacted) = hibernation {
            (*p).ext_mut().hibernation = match () {
                _ if moved => Hibernation::Compacted,
                // Something came meanwhile, so this is still to be done.
                _ if cx.heap.is_swept_in_steps() => uncompacted,
                _ => Hibernation::Not,
            };
        }
        cx.leave((*p).pc, live);
        let me = &mut *p;
        if me.mailbox.as_ref().is_some_and(|m| m.is_unused()) {
            Mailbox::destroy(me.mailbox);
            me.mailbox = std::ptr::null_mut();
        }
        // A heap that has left the cell never returns to it.
        let cell_words = me.inline_words();
        if let Some(e) = me.ext() {
            e.monitors.compact();
            if left_cell {
                e.dict.settle(cell_words, INLINE_WORDS);
            }
            if moved && (after >= SMALL_WORDS || e.compacted_words != 0) {
                e.compacted_words = after;
            }
        } else if moved && after >= SMALL_WORDS {
            me.ext_mut().compacted_words = after;
        }
        before.saturating_sub(after) * 8
    }
}
