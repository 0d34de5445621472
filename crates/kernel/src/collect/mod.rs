//! The only way to collect a process.
//!
//! Every collection of a running process, of one that begins to wait, and of one that upkeep
//! compacts goes through [`Collect::collect`]. So the roots are named once; a collection is
//! reported to those who watch; and its words are counted and checked against `max_heap_size` and
//! the node's memory limit. Nothing else calls the collector on the heap of a process; `destroy`
//! frees the heaps of processes that have ended.
//!
//! # Roots
//! | where terms are | why they are found |
//! | --- | --- |
//! | the first `live` X registers | named by the caller: those that it keeps |
//! | one more register | [`Also`]: the result of an instruction, beyond `live` or on the stack |
//! | the stack | the collector walks it from `heap.stop` |
//! | the process dictionary | passed here |
//! | the message being looked at | no root: it stays in its block (see [`Heap::window`]) |
//!
//! Everything else that a process owns (messages in its queue, reasons of links, tasks, saved
//! registers of a process that does not run) lies in blocks of its own and holds no pointer into
//! the heap.
//!
//! [`Heap::window`]: purlin_term::heap::Heap::window

pub mod compact;

use crate::budgets;
use crate::cx::Cx;
use crate::process::{EXIT_PENDING, OFF_HEAP_QUEUE, TRACED};
use crate::system::{budget_memory, memory};
use purlin_term::gc;
use purlin_term::{NIL, Term};

/// Kinds of collections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sweep {
    /// A minor collection or a full sweep, whichever is due.
    Due,
    /// A full sweep.
    Full,
    /// A full sweep of a process that begins to wait; the new size allows for its needs after it
    /// wakes.
    Rest,
    /// A sweep of a process that begins to wait and has built much: afterwards all of it is old.
    Settle,
    /// The beginning of a sweep in steps, of a process that has waited for long: see
    /// [`Collect::sweep_on`].
    Idle,
    /// A full sweep of a process that hibernates, into a block of exactly the words in use.
    Exact,
    /// The same for a process that waits and has not asked for it.
    Compact,
}

/// A register beyond the live ones that holds a term, in the encoding of an instruction's
/// destination: its offset in bytes from the X registers or, with the lowest bit set, from the top
/// of the stack. Registers on the stack are found in any case.
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
    /// Returns the number of the X register, if `live` does not cover it.
    #[inline]
    fn x_beyond(self, live: usize) -> Option<usize> {
        let n = (self.0 >> 3) as usize;
        (self.0 & 1 == 0 && n >= live).then_some(n)
    }
}

/// Collections of the process in a context.
pub trait Collect {
    /// Collects the process in the context. Afterwards `need` words are free in addition to the
    /// stack reserve. Keeps its first `live` X registers and `also`. Returns the number of words
    /// moved, which count as reductions unless the process begins to wait.
    ///
    /// # Safety
    /// `heap.htop` and `heap.stop` are current. The registers named hold terms of this process, and
    /// no other term of it is used afterwards.
    unsafe fn collect(&mut self, need: usize, live: usize, also: Also, sweep: Sweep) -> usize;

    /// Does one more step of the sweep of a large old generation. It moves nothing.
    ///
    /// # Safety
    /// The caller owns the process in the context; nobody else looks at its heap meanwhile.
    unsafe fn sweep_on(&mut self);

    /// Whether `passes` holds for any word that a collection traverses, except in the old
    /// generation: the first `live` X registers, stack, dictionary, young block and fragments. Some
    /// of the words are not terms but bytes, numbers or return addresses.
    ///
    /// # Safety
    /// The contract of [`Collect::collect`] holds.
    unsafe fn any_word(&mut self, live: usize, passes: impl Fn(&Term) -> bool) -> bool;

    /// Whether a collection that the process does not ask for needs no report, and nothing waits
    /// for it.
    fn may_rest(&mut self) -> bool;
}

impl Collect for Cx {
    unsafe fn collect(&mut self, need: usize, live: usize, also: Also, sweep: Sweep) -> usize {
        let asked = matches!(sweep, Sweep::Due | Sweep::Full | Sweep::Exact);
        if asked && budget_memory::ends_before_copy(self, need) {
            return 0;
        }
        let told = match sweep {
            Sweep::Due => crate::events::gc_begin(self, need),
            Sweep::Full => crate::events::gc_begin(self, 0),
            Sweep::Rest | Sweep::Settle | Sweep::Idle | Sweep::Exact | Sweep::Compact => None,
        };
        let fresh = match sweep {
            Sweep::Due | Sweep::Full => self.heap.fresh_words(),
            Sweep::Rest | Sweep::Settle | Sweep::Idle | Sweep::Exact | Sweep::Compact => 0,
        };
        let began = crate::recorder::collects(self);
        let rests = matches!(
            sweep,
            Sweep::Rest | Sweep::Settle | Sweep::Idle | Sweep::Compact
        );
        // What has grown is charged before its copy is made.
        let over = budgets::on() && !rests && budget_memory::is_over(self, self.bif_pc);
        let sweep = match sweep {
            Sweep::Due if over => Sweep::Full,
            s => s,
        };
        let x = self.x.as_mut_ptr();
        // SAFETY: the X registers are an array, of which `live` is a part, and `also` lies behind.
        let (regs, one) = unsafe {
            let regs = std::slice::from_raw_parts_mut(x, live);
            let one = match also.x_beyond(live) {
                Some(n) => std::slice::from_raw_parts_mut(x.add(n), 1),
                None => &mut [],
            };
            (regs, one)
        };
        // SAFETY: null or the running process, which this thread owns.
        let dictionary: &mut [Term] = match unsafe { self.proc.as_mut() }.and_then(|p| p.ext()) {
            Some(e) => e.dict.slots_mut(),
            None => &mut [],
        };
        if self.heap.used_words() > LONG_WORDS {
            crate::sched::let_others_steal();
        }
        // Generations are slid in place unless they are small.
        let copied = self.heap.used_words() + self.heap.frag_words;
        let roots = &mut [regs, one, dictionary];
        // SAFETY: these are all roots, and by the contract they hold terms of this process.
        let mut words = unsafe {
            match sweep {
                Sweep::Due => gc::collect(&mut self.heap, need, roots, false),
                Sweep::Full => gc::collect(&mut self.heap, need, roots, true),
                Sweep::Rest => gc::rest(&mut self.heap, roots),
                Sweep::Settle => gc::settle(&mut self.heap, roots),
                Sweep::Idle => gc::sweep_idle(&mut self.heap, roots),
                Sweep::Exact | Sweep::Compact => gc::shrink_to_fit(&mut self.heap, roots),
            }
        };
        // At the memory limit, collect the garbage of a process before its size is checked.
        let pressed = memory::is_pressed(self);
        if pressed && sweep == Sweep::Due {
            // SAFETY: nothing ran since the collection above, so the same roots hold all terms.
            words += unsafe { gc::collect(&mut self.heap, need, roots, true) };
        }
        if budgets::on() && !self.proc.is_null() {
            budgets::note_copy(self.proc.get(), words.min(copied) * 8);
        }
        let exceeds = budgets::on() && !rests && budget_memory::is_over(self, self.bif_pc);
        if exceeds && sweep == Sweep::Due && !pressed {
            // SAFETY: nothing ran since the collection above, so the same roots hold all terms.
            words += unsafe { gc::collect(&mut self.heap, need, roots, true) };
        }
        crate::recorder::collected(self, began);
        if fresh != 0 {
            crate::accounts::allocated(self, fresh);
            crate::accounts::kept(self, words);
        }
        if gc::stress() {
            forget_registers(self, live, also);
        }
        // The size of a waiting process that upkeep collects is not checked: it is checked when the
        // process collects itself, or when another process asks for a collection.
        if !rests {
            self.reds -= (words / WORDS_PER_REDUCTION) as i64;
            limit_heap(self);
            if pressed {
                memory::hold_against(self);
            }
            if exceeds {
                budget_memory::hold_against(self);
            }
        }
        if let Some(t) = told {
            crate::events::gc_end(self, t);
        }
        words
    }

    unsafe fn sweep_on(&mut self) {
        // SAFETY: by the contract of this function.
        unsafe { gc::step(&mut self.heap) };
    }

    unsafe fn any_word(&mut self, live: usize, passes: impl Fn(&Term) -> bool) -> bool {
        let words = |p: *const Term, n: usize| match n {
            0 => &[][..],
            // SAFETY: each area is that long; its words are initialized, if not all terms.
            _ => unsafe { std::slice::from_raw_parts(p, n) },
        };
        let h = &self.heap;
        // SAFETY: null or the running process, which this thread owns.
        let dictionary: &[Term] = match unsafe { self.proc.as_mut() }.and_then(|p| p.ext()) {
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

/// Stress mode: verifies the heap after a message was received. `refused` says that other messages
/// were looked at before it, so that registers may hold old values of this code or of another
/// process.
///
/// # Safety
/// `heap.htop` and `heap.stop` are current. Unless `refused`, registers hold terms that were made
/// or found since [`forget_registers`] cleared them.
#[cold]
pub(crate) unsafe fn verify_received(cx: &mut Cx, refused: bool) {
    // SAFETY: null or the running process, which this thread owns.
    let dictionary: &[Term] = match unsafe { cx.proc.as_mut() }.and_then(|p| p.ext()) {
        Some(e) => e.dict.slots_mut(),
        None => &[],
    };
    let registers = if refused { 0 } else { FORGOTTEN };
    // SAFETY: by the contract of this function.
    unsafe {
        gc::stress_look(
            &cx.heap,
            &[&cx.x[..registers], dictionary],
            "after a receive",
        );
    }
}

/// Stress mode: clears all registers that are dead.
#[cold]
pub(crate) fn forget_registers(cx: &mut Cx, live: usize, also: Also) {
    let one = also.x_beyond(live);
    for n in live..FORGOTTEN.max(live) {
        if Some(n) != one {
            cx.x[n] = NIL;
        }
    }
}

/// Enlarges the next block after a function of a native library has allocated more than the block
/// had room for. Such a function is usually called again, and each call that finds the block full
/// has all of its result copied; so the next collection makes room for several calls. Stock sizes
/// blocks by what was there before the collection. A process whose heap is limited gets no more
/// than it needs.
pub fn make_room_for_calls(cx: &mut Cx) {
    if let Some(i) = room_for_calls(cx.heap.frag_words, cx.heap.block_words())
        && cx.process().ext().is_none_or(|e| e.max_heap.is_none())
    {
        cx.heap.room = cx.heap.room.max(i);
    }
}

/// Number of such calls that the block gets room for.
const CALLS: usize = 5;
/// Words of the largest block that is requested.
const MOST_ROOM_FOR_CALLS: usize = 1 << 16;

/// Returns the index in [`gc::heap_sizes`] of a block for calls that allocated `beyond` words
/// beyond a block of `block` words; None if the block is large enough.
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
    // Unused room for promotion takes no memory, and in stock it is at most a fifth of the block.
    let old = h.old_words();
    let old = h.old_block_words().min(old + old / 5);
    let mut words = h.block_words() + old + h.frag_words;
    // Messages in the queue count as heap unless they are kept off-heap.
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

/// Words moved for the price of one reduction.
const WORDS_PER_REDUCTION: usize = 16;
/// Heap size in words from which a collection may take longer than waking another scheduler.
const LONG_WORDS: usize = 1 << 16;

/// Registers that the stress mode clears: more than code uses.
const FORGOTTEN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// (words beyond the block, words of the block, words of the requested block)
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
