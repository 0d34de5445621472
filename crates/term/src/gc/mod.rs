//! The collector of process heaps: generational copying after Cheney, without recursion.
//!
//! A minor collection copies what is reachable of the young block and the attached fragments: what lies below the
//! high-water mark (it survived once already) goes to the old block, the rest to a new young block. A full sweep
//! copies everything to one new young block. What is moved leaves a forwarding mark behind: a boxed pointer where
//! the header was, or [`Term::NON_VALUE`] in the head and the new cell in the tail. An old generation of more than a
//! few megabytes is not copied: see [`compact`]. Where others wait for the process it is swept in steps: see [`steps`].
//!
//! # Memory that terms lie in
//! For each kind: the places that may point to it, when it moves, when it goes, and the words of the verifier that checks it.
//!
//! | memory | pointed to by | moves | goes | verifier |
//! | --- | --- | --- | --- | --- |
//! | young block: what is fresh, above the high-water mark | roots, stack, young block, fragments | with each collection | when it was copied | "old word points to young", "mature word points to younger", "points into an object", "points to no cell" |
//! | young block: what is mature, below the mark | the same, and what is mature | with each collection, to the old block if it is a minor one | when it was copied | "mature word points to younger" |
//! | words in the process's cell that are its young block | as the young block | with the first collection | stay with the cell | as the young block |
//! | old block | all of the heap | in a full sweep: copied, or slid where it lies | when it was copied; a block of no words at once | "old word points to young", "old word points out of the heap" |
//! | free runs in the old block ([`steps`]) | what is dead and was not swept yet | never | when something is promoted there | "points to what a sweep found dead", "points into a free run", "two free runs hold", "no free run of"; what the dead refer to is left out |
//! | fragments: what natives made when the block was full, and messages that were received | as what is fresh | with the next collection, to the young block | with that | as the young block: nothing old or mature points there |
//! | the message that is looked at ([`Heap::window`]) | registers, what was made in the window | never | it becomes a fragment, or stays in the queue | "points nowhere known" outside the window, "old word points out of the heap" in it |
//! | messages in the queue, and signals | nobody | never | when received or flushed | "points nowhere known" |
//! | counted regions | who holds a count: a heap by generation, a message, a stored object, a region, an entry of `persistent_term` | never; what is little of them is copied out | with the last count | "a region that isn't held", "a freed region", "behind a region", "into an object of a region"; "region word points out"; "literals that are purged and not held" |
//! | uncounted regions: literals, persistent terms | everybody | never | stay | "a freed region", "behind a region" |
//! | stored objects (tables, owned terms) | nobody outside them: what is read is copied | never | with their owner | "points nowhere known" |
//! | bytes of binaries | refc binaries, by count; the base of match contexts, by way of their original | when their only writer lets them grow | with the last count | "goes beyond its bytes", "has a count of", "stale base", "goes beyond its original" |
//! | values of magic references, nodes | references and external terms, by count | never | with the last count; nodes stay | "has a count of" |
//! | entries of funs, exports | funs; entries are counted for their module's sake | never | stay | "leads to no entry" |
//! | off-heap lists | the heap, by generation; a fragment; a region | are made anew with each copy | with what is on them | "the off-heap list holds … objects, the heap …" |
//! | the stack | nobody | with the young block | with it | "stack slot": what is no return address or catch mark is checked as the young block's words are |
//! | registers, dictionary: the roots | nobody | never | — | "root": as the stack |
//! | [`Heap::sent`] | nobody: addresses of terms that lie in regions, too | the entry goes when its term is moved | with the entry | "what was sent"; the entry holds its region |
//!
//! Invariants:
//! * Only what is known by address to belong to this heap is moved. Regions and queued messages stay and are never
//!   written to.
//! * Nothing in the old block points to the young block or a fragment: terms are immutable, so an object only points
//!   to older ones, and everything below the high-water mark is promoted together.
//! * What is written to an object that was there before goes by [`Heap::write_to`], which has the old generation hold its region.
//! * An object that is not reached may lead nowhere: nobody but a copy from the roots follows pointers. The verifier leaves out
//!   what such an object says.
//! * After every collection the young block holds survivors only (`high_water == htop`) and there are no fragments. In
//!   the window ([`Heap::window`]) they don't count as survivors (`high_water == heap`): any of them may point to a message
//!   that will be a fragment, so nothing of them is promoted, whether one by one, at once, or by settling the block.
//! * The target of a copy is sized beforehand for the case that everything survives, so copying never runs out. Free runs are used
//!   besides, never counted on.
//!
//! `PURLIN_GC_STRESS=1` has each collection take one of the ways that there are at random, and leave no room; poisons what is
//! left behind, and verifies the heap before and after: see [`crate::stress`].

mod compact;
mod copy;
mod dedup;
mod driver;
mod generational;
mod invariants;
mod regions;
pub(crate) mod sizes;
pub(crate) mod steps;
mod stressed;

pub use crate::blocks::{alloc_block, free_block, heap_bytes, is_mapped, mapped_bytes};
pub use crate::off_heap::{off_heap_bytes, release_object, release_off_heap};
pub use crate::stress::{POISON, below as stress_below, once_in as stress_once};
pub use crate::stress::{roll as stress_roll, seed as stress_seed, stress, told as stress_told};
pub use crate::verify::{check_old_holds as stress_check_old_holds, look_after as stress_look};
pub use driver::{collect, rest, rest_pays, settle, settle_pays, sweep_idle, totals};
pub use generational::{destroy, shrink_to_fit};
pub(crate) use invariants::fatal;
pub use sizes::{IN_PLACE_WORDS, LEAVE_AT_MOST_WORDS, STEP_SLOTS, STEPS_ABOVE_WORDS};
pub use sizes::{heap_size_for, heap_sizes};
pub use steps::{Runs, is_sparse, is_swept_idle, step, sweep_soon};
