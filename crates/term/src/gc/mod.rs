//! The collector of process heaps: generational copying after Cheney, without recursion.
//!
//! A minor collection copies what is reachable in the young block and the attached fragments: what
//! lies below the high-water mark (it has survived once already) goes to the old block, the rest to
//! a new young block. A full sweep copies everything to one new young block. A moved object leaves
//! a forwarding mark behind: a boxed pointer in place of the header, or [`Term::NON_VALUE`] in the
//! head of a cell and the new cell in its tail. An old generation of more than a few megabytes is
//! not copied: see [`compact`]. If other processes wait for this one, it is swept in steps: see
//! [`steps`].
//!
//! # Memory that terms lie in
//! For each kind of memory: what may point to it, when it moves, when it is freed, and the words of
//! the verifier that checks it.
//!
//! * **Young block, fresh** (above the high-water mark). Pointed to by roots, stack, young block,
//!   fragments. Moves with each collection, and is freed when it was copied. Verifier: "old word
//!   points to young", "mature word points to younger", "points into an object", "points to no
//!   cell".
//! * **Young block, mature** (below the mark). Pointed to by the same, and by mature objects. Moves
//!   with each collection, to the old block if that is a minor one; is freed when it was copied.
//!   Verifier: "mature word points to younger".
//! * **Words in the process's cell that are its young block.** Pointed to as the young block is.
//!   Move with the first collection; stay with the cell. Verifier: as for the young block.
//! * **Old block.** Pointed to by all of the heap. Moves in a full sweep: copied, or slid in place.
//!   Freed when it was copied; a block without words at once. Verifier: "old word points to young",
//!   "old word points out of the heap".
//! * **Free runs in the old block** ([`steps`]). Pointed to by dead objects that were not swept
//!   yet. Never move; go when something is promoted there. Verifier: "points to what a sweep found
//!   dead", "points into a free run", "two free runs hold", "no free run of"; pointers of dead
//!   objects are left out.
//! * **Fragments**: made by natives when the block was full, and received messages. Pointed to as
//!   fresh objects are. Move with the next collection to the young block, and are freed with it.
//!   Verifier: as for the young block; nothing old or mature points there.
//! * **The message that is looked at** ([`Heap::window`]). Pointed to by registers and by what was
//!   made in the window. Never moves; becomes a fragment, or stays in the queue. Verifier: "points
//!   nowhere known" outside the window, "old word points out of the heap" in it.
//! * **Messages in the queue, and signals.** Pointed to by nothing. Never move; go when received or
//!   flushed. Verifier: "points nowhere known".
//! * **Counted regions.** Pointed to by anything that holds a count: a heap by generation, a
//!   message, a stored object, a region, an entry of `persistent_term`. Never move; what little is
//!   used of them is copied out. Freed with the last count. Verifier: "a region that isn't held",
//!   "a freed region", "behind a region", "into an object of a region"; "region word points out";
//!   "literals that are purged and not held".
//! * **Uncounted regions**: literals, persistent terms. Pointed to by anything. Never move; stay.
//!   Verifier: "a freed region", "behind a region".
//! * **Stored objects** (tables, owned terms). Pointed to by nothing outside them: readers copy.
//!   Never move; go with their owner. Verifier: "points nowhere known".
//! * **Bytes of binaries.** Pointed to by refc binaries, by count, and by the base of match
//!   contexts, through their original. Move when their only writer lets them grow; freed with the
//!   last count. Verifier: "goes beyond its bytes", "has a count of", "stale base", "goes beyond
//!   its original".
//! * **Values of magic references, nodes.** Pointed to by references and external terms, by count.
//!   Never move; go with the last count, but nodes stay. Verifier: "has a count of".
//! * **Entries of funs, exports.** Pointed to by funs; entries are counted for the sake of their
//!   module. Never move; stay. Verifier: "leads to no entry".
//! * **Off-heap lists.** Pointed to by the heap, by generation; by a fragment; by a region. Rebuilt
//!   by each copy; go with what is on them. Verifier: "the off-heap list holds … objects, the heap
//!   …".
//! * **The stack.** Pointed to by nothing. Moves and goes with the young block. Verifier: "stack
//!   slot": a word that is no return address or catch mark is checked as the words of the young
//!   block are.
//! * **Registers, dictionary**: the roots. Pointed to by nothing. Never move. Verifier: "root": as
//!   the stack.
//! * **[`Heap::sent`].** Pointed to by nothing: it has addresses of terms that also lie in regions.
//!   An entry goes when its term is moved. Verifier: "what was sent"; the entry holds its region.
//!
//! # Invariants
//! * Only what is known by its address to belong to this heap is moved. Regions and queued messages
//!   stay and are never written to.
//! * Nothing in the old block points to the young block or a fragment: terms are immutable, so an
//!   object only points to older ones, and everything below the high-water mark is promoted
//!   together.
//! * Every store to an object that existed before goes through [`Heap::write_to`], which has the
//!   old generation hold the region of the new term.
//! * An unreachable object may have pointers that lead nowhere: only a copy that starts at the
//!   roots follows pointers. The verifier leaves out what such an object says.
//! * After every collection the young block holds survivors only (`high_water == htop`) and there
//!   are no fragments. In the window ([`Heap::window`]) they do not count as survivors (`high_water
//!   == heap`): any of them may point to a message that will become a fragment, so none of them is
//!   promoted, whether one by one, at once, or by settling the block.
//! * The target of a copy is sized beforehand for the case that everything survives, so copying
//!   never runs out of room. Free runs are used in addition, and never counted on.
//!
//! With `PURLIN_GC_STRESS=1` each collection takes one of the possible ways at random and leaves no
//! room, poisons what it leaves behind, and verifies the heap before and after: see
//! [`crate::stress`].
//!
//! [`Term::NON_VALUE`]: crate::Term::NON_VALUE
//! [`Heap::window`]: crate::heap::Heap::window
//! [`Heap::sent`]: crate::heap::Heap::sent
//! [`Heap::write_to`]: crate::heap::Heap::write_to

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
pub use crate::stress::{
    roll as stress_roll, seed as stress_seed, seed_note as stress_seed_note, stress,
};
pub use crate::verify::{check_old_holds as stress_check_old_holds, look_after as stress_look};
pub use driver::{collect, rest, rest_pays, settle, settle_pays, sweep_idle, totals};
pub use generational::{destroy, shrink_to_fit};
pub(crate) use invariants::fatal;
pub use sizes::{IN_PLACE_WORDS, LEAVE_AT_MOST_WORDS, STEP_SLOTS, STEPS_ABOVE_WORDS};
pub use sizes::{heap_size_for, heap_sizes};
pub use steps::{Runs, is_sparse, is_swept_idle, step, sweep_soon};
