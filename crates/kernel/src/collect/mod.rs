//! The one way to collect the process that runs.
//!
//! Every collection of a running process, of one that begins to wait, and of one that upkeep compacts comes through
//! [`Collect::collect`]: so the roots are named once, a collection is told to whoever watches, and its words are counted and held
//! against `max_heap_size` and the limit of the node's memory. Nothing else calls the collector on the heap of a process; `destroy` frees heaps of those that
//! ended.
//!
//! # Roots
//! | where terms are | why they are found |
//! | --- | --- |
//! | the first `live` X registers | named by the caller: what the instruction or the native keeps |
//! | one register more | [`Also`]: the result of an instruction, which lies behind the live ones or on the stack |
//! | the stack | the collector walks it from `heap.stop` |
//! | the process dictionary | here |
//! | the message that is looked at | not a root: it stays in its block. [`Heap::window`] keeps what was built from it young |
//!
//! Whatever else a process owns (messages in its queue, reasons of links, tasks, saved registers of one that doesn't run)
//! lies in blocks of its own and holds no pointer into the heap.
//!
//! [`Heap::window`]: purlin_term::heap::Heap::window

pub mod compact;

use crate::cx::Cx;
use crate::process::{EXIT_PENDING, OFF_HEAP_QUEUE, TRACED};
use crate::system::memory;
use purlin_term::gc;
use purlin_term::{NIL, Term};

/// Which collection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sweep {
    /// As is due: a minor collection, or a full sweep.
    Due,
    /// A full sweep.
    Full,
    /// A full sweep of a process that begins to wait, with an eye on what it will need when it is woken.
    Rest,
    /// One of a process that begins to wait and has built much: all of that is old afterwards.
    Settle,
    /// The beginning of a sweep in steps, of a process that has waited for long: see [`Collect::sweep_on`].
    Idle,
    /// A full sweep into a block of just the words in use, of a process that hibernates.
    Exact,
    /// The same of one that waits and has not asked for it.
    Compact,
}

/// A register beyond the live ones that holds a term: its place in bytes from the X registers, or with the lowest bit set
/// from the top of the stack, as instructions name what they write. Those on the stack are found without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Also(u16);

impl Also {
    /// No other register.
    pub const NONE: Also = Also(u16::MAX);

    /// The register that an instruction writes.
    #[inline(always)]
    pub fn dst(d: u16) -> Also {
        Also(d)
    }
    /// The number of the X register, if it is one that `live` doesn't cover.
    #[inline]
    fn x_beyond(self, live: usize) -> Option<usize> {
        let n = (self.0 >> 3) as usize;
        (self.0 & 1 == 0 && n >= live).then_some(n)
    }
}

/// Collections of the process in a context.
pub trait Collect {
    /// Collects the process in the context. Afterwards `need` words are free beside the stack reserve. Its first `live` X
    /// registers are kept, and `also`. Gives the words that were moved, which count
    /// as reductions unless the process begins to wait.
    ///
    /// # Safety
    /// `heap.htop` and `heap.stop` are current. The registers named hold terms of this process, and no other term of it is
    /// used afterwards.
    unsafe fn collect(&mut self, need: usize, live: usize, also: Also, sweep: Sweep) -> usize;

    /// Goes a step on with the sweep of a large old generation, which moves nothing.
    ///
    /// # Safety
    /// The process in the context is the caller's; nobody looks at its heap meanwhile.
    unsafe fn sweep_on(&mut self);

    /// Whether any word of what a collection looks through, but for the old generation, `passes`: the first `live` X registers,
    /// stack, dictionary, young block and fragments. Some are no terms: bytes, numbers, return addresses.
    ///
    /// # Safety
    /// As for [`Collect::collect`].
    unsafe fn any_word(&mut self, live: usize, passes: impl Fn(&Term) -> bool) -> bool;

    /// Whether nobody is to be told of a collection that the process doesn't ask for, and nothing waits for it.
    fn may_rest(&mut self) -> bool;
}

impl Collect for Cx {
    unsafe fn collect(&mut self, need: usize, live: usize, also: Also, sweep: Sweep) -> usize {
        let told = match sweep {
            Sweep::Due => crate::events::gc_begin(self, need),
            Sweep::Full => crate::events::gc_begin(self, 0),
            Sweep::Rest | Sweep::Settle | Sweep::Idle | Sweep::Exact | Sweep::Compact => None,
        };
        let fresh = match sweep {
            Sweep::Due | Sweep::Full => self.heap.fresh_words(),
            Sweep::Rest | Sweep::Settle | Sweep::Idle | Sweep::Exact | Sweep::Compact => 0,
        };
        let x = self.x.as_mut_ptr();
        let regs = std::slice::from_raw_parts_mut(x, live);
        let one = match also.x_beyond(live) {
            Some(n) => std::slice::from_raw_parts_mut(x.add(n), 1),
            None => &mut [],
        };
        let dictionary: &mut [Term] = match self.proc.as_mut().and_then(|p| p.ext()) {
            Some(e) => e.dict.slots_mut(),
            None => &mut [],
        };
        if self.heap.used_words() > LONG_WORDS {
            crate::sched::let_others_steal();
        }
        let roots = &mut [regs, one, dictionary];
        let mut words = match sweep {
            Sweep::Due => gc::collect(&mut self.heap, need, roots, false),
            Sweep::Full => gc::collect(&mut self.heap, need, roots, true),
            Sweep::Rest => gc::rest(&mut self.heap, roots),
            Sweep::Settle => gc::settle(&mut self.heap, roots),
            Sweep::Idle => gc::sweep_idle(&mut self.heap, roots),
            Sweep::Exact | Sweep::Compact => gc::shrink_to_fit(&mut self.heap, roots),
        };
        // What a process at the limit of memory holds is no garbage before it is held against that.
        let pressed = memory::is_pressed(self);
        if pressed && sweep == Sweep::Due {
            words += gc::collect(&mut self.heap, need, roots, true);
        }
        if fresh != 0 {
            crate::accounts::allocated(self, fresh);
            crate::accounts::kept(self, words);
        }
        if gc::stress() {
            forget_registers(self, live, also);
        }
        // Nobody ends a process that waits for what it may hold until it has itself collected, or another asks for that.
        let waits = matches!(
            sweep,
            Sweep::Rest | Sweep::Settle | Sweep::Idle | Sweep::Compact
        );
        if !waits {
            self.reds -= (words / WORDS_PER_REDUCTION) as i64;
            limit_heap(self);
            if pressed {
                memory::hold_against(self);
            }
        }
        if let Some(t) = told {
            crate::events::gc_end(self, t);
        }
        words
    }

    unsafe fn sweep_on(&mut self) {
        gc::step(&mut self.heap);
    }

    unsafe fn any_word(&mut self, live: usize, passes: impl Fn(&Term) -> bool) -> bool {
        let words = |p: *const Term, n: usize| match n {
            0 => &[][..],
            _ => std::slice::from_raw_parts(p, n),
        };
        let h = &self.heap;
        let dictionary: &[Term] = match self.proc.as_mut().and_then(|p| p.ext()) {
            Some(e) => e.dict.slots_mut(),
            None => &[],
        };
        [
            &self.x[..live],
            words(h.stop, h.stack_words()),
            dictionary,
            words(h.heap, h.used_words()),
        ]
        .into_iter()
        .chain(
            h.frags
                .iter()
                .flat_map(|f| f.areas())
                .map(|(p, n)| words(p, n)),
        )
        .any(|w| w.iter().any(&passes))
    }

    #[inline]
    fn may_rest(&mut self) -> bool {
        let p = self.process();
        !p.has(TRACED) && p.ext().is_none_or(|e| e.deferred.is_empty())
    }
}

/// Stress mode: verifies the heap after a message was received. `refused`: others were looked at before it, so that registers may
/// hold what the code left there long ago, or another process.
///
/// # Safety
/// `heap.htop` and `heap.stop` are current. If none was refused, registers hold terms that were made or found since they
/// were forgotten.
#[cold]
pub(crate) unsafe fn verify_received(cx: &mut Cx, refused: bool) {
    let dictionary: &[Term] = match cx.proc.as_mut().and_then(|p| p.ext()) {
        Some(e) => e.dict.slots_mut(),
        None => &[],
    };
    let registers = if refused { 0 } else { FORGOTTEN };
    gc::stress_look(
        &cx.heap,
        &[&cx.x[..registers], dictionary],
        "after a receive",
    );
}

/// In stress mode no register that was said to be dead holds anything afterwards.
#[cold]
pub(crate) fn forget_registers(cx: &mut Cx, live: usize, also: Also) {
    let one = also.x_beyond(live);
    for n in live..FORGOTTEN.max(live) {
        if Some(n) != one {
            cx.x[n] = NIL;
        }
    }
}

/// A function of a native library has made more than the block had room for. Such a function is called again, mostly: the collection
/// that follows makes the block as large as several such calls need, since each that finds it full has all that it made
/// copied. Stock's blocks grow to what was there before the collection. A process whose heap is limited gets no more than it needs.
pub fn make_room_for_calls(cx: &mut Cx) {
    if let Some(i) = room_for_calls(cx.heap.frag_words, cx.heap.block_words())
        && cx.process().ext().is_none_or(|e| e.max_heap.is_none())
    {
        cx.heap.room = cx.heap.room.max(i);
    }
}

/// Calls that made so many words beyond their block which the block is to have room for.
const CALLS: usize = 5;
/// Words of the largest block that is asked for.
const MOST_ROOM_FOR_CALLS: usize = 1 << 16;

/// Place in [`gc::heap_sizes`] of the block for calls that made `beyond` words beyond one of `block` words; None if that one is
/// large enough.
fn room_for_calls(beyond: usize, block: usize) -> Option<u8> {
    let want = beyond.saturating_mul(CALLS).min(MOST_ROOM_FOR_CALLS);
    let i = gc::heap_sizes().partition_point(|&n| n < want);
    u8::try_from(i).ok().filter(|_| want > block)
}

/// Ends a process that exceeds its `max_heap_size`.
fn limit_heap(cx: &mut Cx) {
    if cx.proc.is_null() {
        return;
    }
    let Some(m) = cx.process().ext().and_then(|e| e.max_heap) else {
        return;
    };
    let h = &cx.heap;
    // Room that nothing was promoted to takes no memory, and stock's blocks have a fifth of it at most.
    let old = h.old_words();
    let old = h.old_block_words().min(old + old / 5);
    let mut words = h.block_words() + old + h.frag_words;
    // Messages in the queue are part of the heap, where they aren't to be kept apart.
    if !cx.process().has(OFF_HEAP_QUEUE) {
        words += cx.process().queued_words();
    }
    let h = &cx.heap;
    if m.include_shared_binaries {
        words += (h.off_heap.bytes + h.old_off_heap.bytes) / 8;
    }
    if m.words == 0 || words <= m.words || cx.process().has(EXIT_PENDING) {
        return;
    }
    if m.error_logger {
        crate::report::max_heap_exceeded(cx, m, words);
    }
    if m.kill {
        cx.process().mark_to_exit(purlin_term::am::KILLED);
        cx.reds = 0;
    }
}

/// Words moved at the price of one reduction.
const WORDS_PER_REDUCTION: usize = 16;
/// Words of a heap from which on a collection may take longer than it takes to wake another scheduler.
const LONG_WORDS: usize = 1 << 16;

/// Registers that the stress mode clears: more than code uses.
const FORGOTTEN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// (words beyond the block, words of the block, words of the one that is asked for)
    #[test]
    fn room_is_made_for_several_calls() {
        for (beyond, block, room) in [
            (0, 233, None),
            (10, 233, None),
            (100, 233, Some(610)),
            (5000, 6772, Some(28_690)),
            (5000, 28_690, None),
            (1 << 20, 6772, Some(75_113)),
            (usize::MAX, 1 << 16, None),
        ] {
            let i = room_for_calls(beyond, block);
            assert_eq!(i.map(|i| gc::heap_sizes()[i as usize]), room, "{beyond}");
            assert!(i.is_none_or(|i| i < 32));
        }
    }
}
