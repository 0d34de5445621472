//! Sizes of heaps, and the thresholds from which the collector works differently: all numbers that
//! tune it, and the functions that choose sizes by them. They read only their arguments. `crowded`
//! says that there are so many processes that the memory of each matters
//! ([`crate::pressure::set_crowded`]).

use crate::blocks::MAP_ABOVE_WORDS;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

const HEAP_SIZES: usize = 137;

/// The sizes in words that heaps have, smallest first (`system_info(heap_sizes)`): 12, 38, then
/// each the sum of its two predecessors plus one, up to 833026; beyond that each a fifth larger
/// than the one before. As many as stock has.
pub fn heap_sizes() -> &'static [usize] {
    static S: OnceLock<Vec<usize>> = OnceLock::new();
    S.get_or_init(|| {
        let mut v = vec![12usize, 38];
        loop {
            let (a, b) = (v[v.len() - 2], v[v.len() - 1]);
            let next = if b < 833_026 { a + b + 1 } else { b + b / 5 };
            if v.len() == HEAP_SIZES {
                return v;
            }
            v.push(next);
        }
    })
}

/// The smallest size of the series that is at least `words`.
pub fn heap_size_for(words: usize) -> usize {
    let s = heap_sizes();
    s.get(s.partition_point(|&n| n < words))
        .copied()
        .unwrap_or(words)
}

/// A new virtual heap size, in bytes, given what it holds: keeps it between a quarter and three
/// quarters full, in the steps of the heap sizes, and not below `min_words`.
pub(super) fn vheap_size_for(bytes: usize, size: usize, min_words: usize) -> usize {
    if bytes == 0 && size == min_words * 8 {
        return size;
    }
    let min = heap_size_for(min_words);
    let used = bytes / 8;
    let mut words = (size / 8).max(min);
    if used / 3 > words / 4 {
        while used / 3 > words / 4 {
            words = heap_size_for(words + 1);
        }
    } else if used < words / 4 {
        let s = heap_sizes();
        let i = s.partition_point(|&n| n < words);
        words = s[i.saturating_sub(1)].max(min);
    }
    words * 8
}

/// Heaps of at most this many words have no old generation, as long as they have not been swept
/// often.
pub(super) const SMALL_WORDS: usize = 400;

/// After this many sweeps of a small heap its process is taken to be long-lived: what stays in it
/// is copied no more.
pub(crate) const SMALL_SWEEPS: u16 = 16;

/// A heap of at most this many words shrinks only when two full sweeps in a row find it largely
/// empty.
pub(super) const LARGE_WORDS: usize = 8000;

/// A heap starts with no more than it needs. One that is swept often gets this many words, stock's
/// initial size: processes that only wait stay as small as possible, and those that work do not
/// collect all the time.
pub(super) const BUSY_WORDS: usize = 233;
/// Number of sweeps that count as often.
pub(super) const SWEEPS_UNTIL_BUSY: u16 = 6;

/// Young generations of more words are promoted at once if nearly all of them live.
pub(super) const PROMOTED_AT_ONCE_WORDS: usize = 1 << 15;

/// A heap of fewer words is left alone when its process begins to wait, and so is one that may hold
/// this much garbage.
pub(super) const REST_WORDS: usize = 4096;

/// Words of the largest block that a heap gets at once because it has used as many before.
pub(super) const MOST_ROOM: usize = 1 << 17;

/// Index into [`heap_sizes`] of the block that a heap which has used `used` words gets at once: a
/// quarter more than was used, but no more than [`MOST_ROOM`].
pub(super) fn room_for(used: usize) -> usize {
    let room = (used + used / 4).min(MOST_ROOM);
    let sizes = heap_sizes();
    let i = sizes.partition_point(|&n| n < room);
    if sizes[i] > MOST_ROOM { i - 1 } else { i }
}

/// Bytes of binaries that a process may come to hold before it is collected when memory is near its
/// limit.
pub(super) const BINARIES_IN_SHORT: usize = 4 << 20;

/// Words of the largest heap that keeps its size while its process runs.
pub(super) const STAY_WORDS: usize = 80_000;
/// Words of the smallest heap that does so after a minor collection that promoted most of it:
/// smaller ones are refilled at little cost.
pub(super) const STAY_ABOVE: usize = 20_000;

/// Whether a heap of `size` words keeps its size although it is largely empty: it shrinks when its
/// process begins to wait.
pub(super) fn may_stay_large(size: usize, crowded: bool) -> bool {
    size <= LARGE_WORDS || (size <= STAY_WORDS && !crowded)
}

/// Words of the largest heap that keeps its size because it has grown again since it shrank.
const REGROWN_WORDS: usize = 1 << 19;

/// Whether a heap of `size` words keeps its size although it is largely empty: it shrank before, at
/// the size with index `shrunk`, and its process has filled it again without waiting. It builds
/// something deep or long again and again.
pub(super) fn is_regrown(size: usize, shrunk: u8, serves: bool, crowded: bool) -> bool {
    let fits = size > LARGE_WORDS && size <= REGROWN_WORDS;
    fits && shrunk > 0 && size >= heap_sizes()[shrunk as usize] && !serves && !crowded
}

/// Index into [`heap_sizes`] of the largest size that is at most `words`.
pub(super) fn place_of(words: usize) -> u8 {
    heap_sizes()
        .partition_point(|&n| n <= words)
        .saturating_sub(1) as u8
}

/// Words of the block that a larger heap keeps when it turns out to be largely empty. A process
/// that computes fills its young block again at once, and most of it is garbage by then; in a small
/// block more is found alive, and copied, each time.
const KEPT_WORDS: usize = 1 << 15;

/// Words that a block keeps when it shrinks while its process runs; none if it serves others or
/// memory is crowded.
pub(super) fn kept_words(serves: bool, crowded: bool) -> usize {
    if serves || crowded { 0 } else { KEPT_WORDS }
}

/// Words of the largest old block that stays although it is empty.
pub(super) fn kept_empty_words(serves: bool, crowded: bool) -> usize {
    if serves || crowded {
        SMALL_WORDS
    } else {
        LARGE_WORDS
    }
}

/// Young blocks of fewer words grow because too much of them survives.
const FILLED_WORDS: usize = 1 << 16;

/// Whether a young block of `size` words is to be larger the next time, when `survived` of its
/// `fresh` words did: a quarter lives only if a block is filled too soon.
pub(super) fn is_filled_too_soon(size: usize, fresh: usize, survived: usize) -> bool {
    size < FILLED_WORDS && fresh > size / 2 && survived > fresh / 4
}

/// Whether a young block of `size` words is to have [`BUSY_WORDS`] the next time: a wait has left
/// it small, there were `times` collections since the last full sweep, and its process has just
/// filled it without waiting. If nothing survives there, no other rule makes it larger.
pub(super) fn is_busy(size: usize, times: u32, serves: bool) -> bool {
    size < BUSY_WORDS && times > u32::from(SWEEPS_UNTIL_BUSY) && !serves
}

/// Whether a young block of `size` words, which a process has filled without waiting since its last
/// collection, is two sizes larger the next time: its work takes more memory, and few collections
/// find the size that it takes. Blocks below stock's initial size grow only as they must: most
/// processes need little more than they started with, and then wait.
pub(super) fn is_growing(size: usize, serves: bool, crowded: bool) -> bool {
    (BUSY_WORDS..REST_WORDS).contains(&size) && !serves && !crowded
}

/// The size for a block that [`is_growing`].
pub(super) fn grown(size: usize) -> usize {
    heap_size_for(heap_size_for(size + 1) + 1)
}

/// Before a heap gets more than this many words at once it gets [`STEP`]: its process may soon have
/// to wait for its time slice, like all others that were just woken.
pub(super) const STEP_ABOVE: usize = 1 << 14;
/// Words of a step.
pub(super) const STEP: usize = 6000;

/// Heaps of fewer bytes lie in the processor's caches: a scan does not prefetch.
pub(super) const FETCHED_BYTES: usize = 1 << 20;

/// Generations of more words are not copied to be collected, so that they do not take their room
/// twice.
pub static IN_PLACE_WORDS: AtomicUsize = AtomicUsize::new(1 << 20);

/// Generations of more words are swept in steps: see [`super::steps`].
pub static STEPS_ABOVE_WORDS: AtomicUsize = AtomicUsize::new(1 << 18);

/// Slots that a step of marking looks at, or words of the bitmap that a step searches for runs. It
/// takes a fraction of a millisecond.
pub static STEP_SLOTS: AtomicUsize = AtomicUsize::new(20_000);
/// A step of marking ends early after this time; the clock is read after every
/// `SLOTS_BETWEEN_LOOKS` slots.
pub(super) const STEP_TIME: Duration = Duration::from_micros(500);
pub(super) const SLOTS_BETWEEN_LOOKS: usize = 1000;
/// Room enough, as a part of a generation: a sweep hurries if less is left.
pub(super) const SPARE_PART: usize = 8;
/// Slots for each promoted word that a hurried step looks at, if that is more.
pub(super) const SLOTS_PER_PROMOTED: usize = 8;
/// Maximum number of slots of a hurried step.
pub(super) const MOST_STEP_SLOTS: usize = 200_000;
/// Cost of an object that owns something, in slots.
pub(super) const SLOTS_PER_OWNER: usize = 8;
/// Cost of writing a run, in slots: its words have left the processor's caches.
pub(super) const SLOTS_PER_RUN: usize = 4;
/// Words of runs whose pages the system takes back in the time of one slot.
pub(super) const GIVEN_WORDS_PER_SLOT: usize = 32;
/// Longer runs are given back in several steps.
pub(super) const GIVEN_AT_ONCE_WORDS: usize = 1 << 19;
/// Up to this many live words of a generation are gathered at once, which takes a millisecond or
/// two.
pub(super) const MOVED_AT_ONCE_WORDS: usize = 1 << 18;
/// Runs of fewer words are left to the next sweep.
pub(super) const LEAST_RUN_WORDS: usize = 8;
/// Objects of more words are not promoted to runs.
pub(super) const MOST_IN_RUN_WORDS: usize = 64;

/// Room in an old generation for promotions, given its live words: as much garbage may gather there
/// until it is collected. As much as lives, or half of it above 128 MiB. Pages that nothing was
/// promoted to take no memory. If memory is crowded, a twelfth above 64 MiB.
pub(super) fn spare_words(live: usize, crowded: bool) -> usize {
    match live {
        0x80_0001.. if crowded => live / 12,
        0..=0x100_0000 => live,
        _ => live / 2,
    }
}

/// Room in an old generation of `used` words, `live` of which a full sweep found live. A generation
/// in which next to nothing had died is growing, and the next sweep would find the same: it gets
/// three times the room, up to [`GROWS_FAST_WORDS`].
pub(super) fn spare_words_after(used: usize, live: usize, crowded: bool) -> usize {
    let spare = spare_words(live, crowded);
    match used - live <= live / GROWING_PART && live <= GROWS_FAST_WORDS && !crowded {
        true => 3 * spare,
        false => spare,
    }
}

/// Largest part of the live words that may have died in a generation that grows.
const GROWING_PART: usize = 8;

/// Words of the largest generation that grows to four times its size at once.
const GROWS_FAST_WORDS: usize = 1 << 24;

/// Whether `words` free words keep their pages after a generation was collected: the next
/// promotions, if the process computes, are written there.
pub(super) fn comes_back(words: usize, serves: bool, crowded: bool) -> bool {
    words <= KEPT_PAGES_WORDS && !serves && !crowded
}

/// Largest number of words that keep their pages: 32 MiB.
const KEPT_PAGES_WORDS: usize = 4 << 20;

/// Words of the block of an old generation that is to have room for `words`.
pub(super) fn old_size_for(words: usize, crowded: bool) -> usize {
    match crowded && words > MAP_ABOVE_WORDS {
        true => words,
        false => heap_size_for(words),
    }
}

/// Old generations of more words belong to processes that compute with much data.
const COMPUTED_WORDS: usize = 1 << 20;

/// Words of the young block in front of `old_words` words: an eighth. A process that computes with
/// a large generation makes most terms for a short time: it gets a quarter, up to 32 MiB, and no
/// less than a sixteenth. If memory is crowded it is an eighth, for the largest a 32nd. If others
/// wait for the process, it is no more than can be copied in a millisecond or two if all of it
/// lives.
pub(super) fn young_part(old_words: usize, serves: bool, crowded: bool) -> usize {
    if serves {
        // Survivors in front of a very large generation lead to uncached memory, and take longer to
        // copy.
        let most = match old_words > VERY_LARGE_WORDS {
            true => MOST_YOUNG_WORDS / 2,
            false => MOST_YOUNG_WORDS,
        };
        (old_words / 8).min(most)
    } else if crowded {
        old_words / if old_words > 8 << 20 { 32 } else { 8 }
    } else if old_words > COMPUTED_WORDS {
        (old_words / 4).min((4 << 20).max(old_words / 16))
    } else {
        old_words / 8
    }
}

/// Whether little of an old generation was live, so that its process promotes objects that are
/// about to die.
pub(super) fn died_mostly(used: usize, live: usize) -> bool {
    live <= used / 2
}

/// Words of the young block in front of `old_words` words where those [`died_mostly`]: as many, up
/// to 32 MiB; 0 for the usual size. A pass over a large list makes another one, and the previous
/// one dies when that is done: it is to be young then.
pub(super) fn young_part_before_death(old_words: usize, serves: bool, crowded: bool) -> usize {
    match old_words > COMPUTED_WORDS && !serves && !crowded {
        true => old_words.min(4 << 20),
        false => 0,
    }
}

/// Words of the largest young block whose size comes from the old generation behind it.
pub(super) const MOST_YOUNG_WORDS: usize = 1 << 17;

/// Generations of more words (128 MiB) have half as much in front of them.
const VERY_LARGE_WORDS: usize = 1 << 24;

/// Terms noted for each region.
pub(super) const SEEN_TERMS: usize = 64;

/// Regions noted at a time.
pub(super) const SEEN_REGIONS: usize = 1 << 16;

/// Number of attempts to find regions that are worth leaving together.
pub(super) const LEAVE_ROUNDS: usize = 8;

/// Regions of fewer words are not worth leaving.
pub(super) const LEAVE_ABOVE_WORDS: usize = 128;
/// A sixteenth may be copied out of regions of at least this many words, a quarter out of others: a
/// quarter of them is little.
const LEAVE_SIXTEENTH_WORDS: usize = 4096;

/// Number of words that may be copied out of a region of `words` words to leave it.
pub(super) fn leave_limit(words: usize) -> usize {
    match words < LEAVE_SIXTEENTH_WORDS {
        true => words / 4,
        false => words / 16,
    }
}

/// A heap of no more words is copied once more to leave regions of any size.
pub(super) const LEAVE_AT_ONCE_WORDS: usize = 4096;

/// Maximum number of words copied out of a region to leave it. 0: regions are never left.
pub static LEAVE_AT_MOST_WORDS: AtomicUsize = AtomicUsize::new(1 << 18);

/// Bytes of regions that a heap may hold before it is pressed to look for dead ones.
pub(crate) const REGION_SLACK_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_stock() {
        let s = heap_sizes();
        assert_eq!(s[..8], [12, 38, 51, 90, 142, 233, 376, 610]);
        assert_eq!(s.len(), HEAP_SIZES);
        assert_eq!(s[s.len() - 2] + s[s.len() - 2] / 5, s[s.len() - 1]);
        assert!(s.windows(2).all(|w| w[0] < w[1]));
    }

    /// (words, the size that has them)
    #[test]
    fn the_least_size_is_chosen() {
        for (words, size) in [
            (0, 12),
            (12, 12),
            (13, 38),
            (233, 233),
            (234, 376),
            (833_026, 833_026),
        ] {
            assert_eq!(heap_size_for(words), size, "{words}");
        }
        assert_eq!(heap_size_for(usize::MAX), usize::MAX);
    }

    /// (words in use, words of the virtual heap before, after; at least 233)
    #[test]
    fn a_virtual_heap_follows_what_it_holds() {
        for (used, before, after) in [
            (0, 233, 233),
            (10, 233, 233),
            (177, 233, 376),
            (1000, 233, 1598),
            (1000, 2586, 2586),
            (100, 2586, 1598),
        ] {
            assert_eq!(
                vheap_size_for(used * 8, before * 8, 233) / 8,
                after,
                "{used} of {before}"
            );
        }
    }

    /// (words that were used, words of the block that the heap gets back)
    #[test]
    fn a_rested_heap_gets_back_what_it_used_and_a_quarter() {
        for (used, words) in [
            (4096, 6772),
            (8000, 10_958),
            (1 << 16, 121_536),
            (1 << 30, 121_536),
        ] {
            let i = room_for(used);
            assert_eq!(heap_sizes()[i], words, "{used}");
            // It is kept in a byte, beside the sizes of stress mode, which are smaller.
            assert!(i < 32);
        }
    }

    /// (live words, words of spare, the same if memory is crowded)
    #[test]
    fn old_generations_have_room_for_as_much_or_half() {
        for (live, spare, crowded) in [
            (0, 0, 0),
            (1 << 20, 1 << 20, 1 << 20),
            (0x80_0000, 0x80_0000, 0x80_0000),
            (0xC0_0000, 0xC0_0000, 0x10_0000),
            (0x180_0000, 0xC0_0000, 0x20_0000),
        ] {
            assert_eq!(
                (spare_words(live, false), spare_words(live, true)),
                (spare, crowded)
            );
        }
        let mapped = MAP_ABOVE_WORDS + 1;
        assert_eq!(
            (old_size_for(mapped, true), old_size_for(100, true)),
            (mapped, 142)
        );
        assert_eq!(old_size_for(mapped, false), heap_size_for(mapped));
    }

    /// (words that were there, live words, words of spare)
    #[test]
    fn what_grows_gets_three_times_the_room() {
        for (used, live, spare) in [
            (1 << 20, 1 << 20, 3 << 20),
            (9 << 18, 1 << 21, 3 << 21),
            ((9 << 18) + 1, 1 << 21, 1 << 21),
            (GROWS_FAST_WORDS, GROWS_FAST_WORDS, 3 * GROWS_FAST_WORDS),
            (
                GROWS_FAST_WORDS + 1,
                GROWS_FAST_WORDS + 1,
                GROWS_FAST_WORDS / 2,
            ),
        ] {
            let said = (
                spare_words_after(used, live, false),
                spare_words_after(used, live, true),
            );
            assert_eq!(said, (spare, spare_words(live, true)), "{live} of {used}");
        }
    }

    /// (words that were old, live words, words of the young block in front of them)
    #[test]
    fn young_blocks_are_large_where_the_old_dies() {
        for (used, live, died) in [
            (3 << 20, 1 << 20, true),
            (3 << 20, 2 << 20, false),
            (0, 0, true),
        ] {
            assert_eq!(died_mostly(used, live), died, "{live} of {used}");
        }
        for (old, young) in [
            (COMPUTED_WORDS, 0),
            (COMPUTED_WORDS + 1, COMPUTED_WORDS + 1),
            (3 << 20, 3 << 20),
            (1 << 30, 4 << 20),
        ] {
            assert_eq!(young_part_before_death(old, false, false), young, "{old}");
            assert_eq!(young_part_before_death(old, true, false), 0);
            assert_eq!(young_part_before_death(old, false, true), 0);
        }
    }

    /// A process that computes keeps pages, up to 32 MiB.
    #[test]
    fn pages_stay_where_they_are_wanted_again() {
        for (words, serves, crowded, stay) in [
            (1 << 20, false, false, true),
            (4 << 20, false, false, true),
            ((4 << 20) + 1, false, false, false),
            (1 << 20, true, false, false),
            (1 << 20, false, true, false),
        ] {
            assert_eq!(comes_back(words, serves, crowded), stay, "{words}");
        }
    }

    /// A block that shrank once, and is as large again, keeps its size; but not if others wait, if
    /// memory is crowded, or if it is larger than four megabytes.
    #[test]
    fn a_block_that_was_made_smaller_in_vain_stays() {
        let s = heap_sizes();
        let large = heap_size_for(100_000);
        let place = place_of(large + 1);
        assert_eq!(s[place as usize], large);
        let next = heap_size_for(large + 1);
        for (size, shrunk, stays) in [
            (large, place, true),
            (next, place, true),
            (large - 1, place, false),
            (large, 0, false),
            (heap_size_for(REGROWN_WORDS + 1), place, false),
            (LARGE_WORDS, 3, false),
        ] {
            assert_eq!(is_regrown(size, shrunk, false, false), stays, "{size}");
            assert!(!is_regrown(size, shrunk, true, false));
            assert!(!is_regrown(size, shrunk, false, true));
        }
        // All indices fit the byte that holds them.
        assert!(s.len() <= 256);
    }

    #[test]
    fn young_blocks_are_a_part_of_the_old() {
        let large = 16 << 20;
        assert_eq!(young_part(8000, false, true), 1000);
        assert_eq!(young_part(COMPUTED_WORDS, false, false), 1 << 17);
        assert_eq!(young_part(large, false, false), 4 << 20);
        assert_eq!(young_part(8 * large, false, false), 8 << 20);
        assert_eq!(young_part(large, false, true), 1 << 19);
        assert_eq!(young_part(large, true, false), MOST_YOUNG_WORDS);
        assert_eq!(young_part(2 * large, true, false), MOST_YOUNG_WORDS / 2);
        assert_eq!(kept_words(false, false), KEPT_WORDS);
        assert_eq!((kept_words(true, false), kept_words(false, true)), (0, 0));
        assert!(is_filled_too_soon(4185, 4000, 1001) && !is_filled_too_soon(4185, 4000, 1000));
        assert!(
            !is_filled_too_soon(4185, 2000, 2000)
                && !is_filled_too_soon(FILLED_WORDS, 60_000, 60_000)
        );
        assert!(may_stay_large(LARGE_WORDS, true) && may_stay_large(STAY_WORDS, false));
        assert!(is_growing(BUSY_WORDS, false, false) && is_growing(REST_WORDS - 1, false, false));
        assert!(!is_growing(BUSY_WORDS - 1, false, false) && !is_growing(REST_WORDS, false, false));
        assert!(!is_growing(1000, true, false) && !is_growing(1000, false, true));
        assert_eq!((grown(233), grown(610)), (610, 1598));
        assert!(!may_stay_large(STAY_WORDS, true) && !may_stay_large(STAY_WORDS + 1, false));
    }
}
