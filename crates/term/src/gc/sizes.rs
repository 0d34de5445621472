//! How large heaps are made, and from which size on what is done to them: all numbers that tune the collector, and the
//! functions that choose sizes by them. They read nothing but their arguments: `crowded` says that there are so many processes
//! that what each takes matters ([`crate::pressure::set_crowded`]).

use crate::blocks::MAP_ABOVE_WORDS;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

const HEAP_SIZES: usize = 137;

/// The sizes in words that heaps have, smallest first (`system_info(heap_sizes)`): 12, 38, then each the sum of its
/// two predecessors plus one, up to 833026; beyond that each a fifth larger than the one before. As many as stock has.
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

/// The least size of the series that is at least `words`.
pub fn heap_size_for(words: usize) -> usize {
    let s = heap_sizes();
    s.get(s.partition_point(|&n| n < words))
        .copied()
        .unwrap_or(words)
}

/// A new virtual heap size, in bytes, given what it holds: keeps it between a quarter and three quarters full, in
/// the steps of the heap sizes, and not below `min_words`.
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

/// Heaps of at most this many words have no old generation, as long as they have not been swept often.
pub(super) const SMALL_WORDS: usize = 400;

/// As many sweeps of a small heap tell that its process lives for long: what stays in it is copied no more.
pub(crate) const SMALL_SWEEPS: u16 = 16;

/// Heaps of more words than this are made smaller as soon as they are largely empty.
pub(super) const LARGE_WORDS: usize = 8000;

/// A heap starts with no more than it needs, and one that is swept often gets so many words, which is what stock starts
/// with: as many processes that only wait are small as may be, and those that work don't collect all the time.
pub(super) const BUSY_WORDS: usize = 233;
/// As many sweeps are often.
pub(super) const SWEEPS_UNTIL_BUSY: u16 = 6;

/// Young generations of more words than this are promoted at once where nearly all of them live.
pub(super) const PROMOTED_AT_ONCE_WORDS: usize = 1 << 15;

/// A heap of fewer words than this is left alone when its process begins to wait, and so is one that may hold so much garbage.
pub(super) const REST_WORDS: usize = 4096;

/// Words of the largest block that a heap gets at once because it has used as many before.
pub(super) const MOST_ROOM: usize = 1 << 17;

/// Place in [`heap_sizes`] of the block that a heap which has used so many words gets at once: what was used and a quarter, and
/// no more than [`MOST_ROOM`].
pub(super) fn room_for(used: usize) -> usize {
    let room = (used + used / 4).min(MOST_ROOM);
    let sizes = heap_sizes();
    let i = sizes.partition_point(|&n| n < room);
    if sizes[i] > MOST_ROOM { i - 1 } else { i }
}

/// Bytes of binaries that a process may come to hold before it is collected, where the limit of memory is near.
pub(super) const BINARIES_IN_SHORT: usize = 4 << 20;

/// Words of the largest heap that stays as large as it is while its process runs.
pub(super) const STAY_WORDS: usize = 1 << 16;
/// Words of the smallest that does so where a minor collection has promoted most of it: smaller ones are refilled with little loss.
pub(super) const STAY_ABOVE: usize = 20_000;

/// Whether a heap of so many words is not made smaller for being largely empty: it will be as its process begins to wait.
pub(super) fn may_stay_large(size: usize, crowded: bool) -> bool {
    size <= LARGE_WORDS || (size <= STAY_WORDS && !crowded)
}

/// Words of the largest heap that stays as large as it is where it has grown so large again since it was made smaller.
const REGROWN_WORDS: usize = 1 << 19;

/// Whether a heap of so many words is not made smaller for being largely empty, since it was already, at the size with place `shrunk`
/// in the series, and its process has filled it again without waiting: it builds something deep or long again and again.
pub(super) fn is_regrown(size: usize, shrunk: u8, serves: bool, crowded: bool) -> bool {
    let fits = size > LARGE_WORDS && size <= REGROWN_WORDS;
    fits && shrunk > 0 && size >= heap_sizes()[shrunk as usize] && !serves && !crowded
}

/// The place in [`heap_sizes`] of the greatest size that is at most `words`.
pub(super) fn place_of(words: usize) -> u8 {
    heap_sizes()
        .partition_point(|&n| n <= words)
        .saturating_sub(1) as u8
}

/// Words of the block that a heap keeps which was larger and turns out to be largely empty: a young block of a process that computes is
/// filled again at once, and of what is made most is garbage by then. In a small one more is found alive, and copied, each time.
const KEPT_WORDS: usize = 1 << 15;

/// Words that a block keeps which is made smaller while its process runs. One that serves others, or is one of a crowd, keeps none.
pub(super) fn kept_words(serves: bool, crowded: bool) -> usize {
    if serves || crowded { 0 } else { KEPT_WORDS }
}

/// Words of the largest old block that stays although nothing is in it.
pub(super) fn kept_empty_words(serves: bool, crowded: bool) -> usize {
    if serves || crowded {
        SMALL_WORDS
    } else {
        LARGE_WORDS
    }
}

/// Whether a young block of so many words is to be larger the next time, of whose `fresh` words so many have survived: a third lives only
/// where a block is filled too soon.
pub(super) fn is_filled_too_soon(size: usize, fresh: usize, survived: usize) -> bool {
    size < KEPT_WORDS && fresh > size / 2 && survived > fresh / 3
}

/// Whether a young block of so many words, which a process has filled without waiting since it was collected before, is two sizes larger
/// the next time: it is at work on something that takes more, and the size that this takes is found by few collections. Smaller ones than
/// stock's first grow as they must: most processes come to little more than they were born with, and wait.
pub(super) fn is_growing(size: usize, serves: bool, crowded: bool) -> bool {
    (BUSY_WORDS..REST_WORDS).contains(&size) && !serves && !crowded
}

/// The size for a block that [`is_growing`].
pub(super) fn grown(size: usize) -> usize {
    heap_size_for(heap_size_for(size + 1) + 1)
}

/// Before a heap gets more room than so many words at once it gets [`STEP`]: it may have to wait for its turn soon, with all
/// others that have just been woken.
pub(super) const STEP_ABOVE: usize = 1 << 14;
/// Words of a step.
pub(super) const STEP: usize = 6000;

/// Heaps of fewer bytes than this lie in the processor's caches: what a scan comes to isn't fetched ahead.
pub(super) const FETCHED_BYTES: usize = 1 << 20;

/// Generations of more words than this are not copied to be collected, so that they don't take their room twice.
pub static IN_PLACE_WORDS: AtomicUsize = AtomicUsize::new(1 << 20);

/// Generations of more words than this are swept in steps: see [`super::steps`].
pub static STEPS_ABOVE_WORDS: AtomicUsize = AtomicUsize::new(1 << 18);

/// Slots that a step of marking looks at, words of the bitmap in which one looks for runs. It takes a fraction of a
/// millisecond.
pub static STEP_SLOTS: AtomicUsize = AtomicUsize::new(20_000);
/// A step of marking ends before it has looked at so many where it has taken so long, and the clock is read each so many slots.
pub(super) const STEP_TIME: Duration = Duration::from_micros(500);
pub(super) const SLOTS_BETWEEN_LOOKS: usize = 1000;
/// The part of a generation that is room enough: a sweep hurries where less is left.
pub(super) const SPARE_PART: usize = 8;
/// So many for each promoted word then, if that is more.
pub(super) const SLOTS_PER_PROMOTED: usize = 8;
/// The most.
pub(super) const MOST_STEP_SLOTS: usize = 200_000;
/// An object that owns something costs a step as much as so many slots.
pub(super) const SLOTS_PER_OWNER: usize = 8;
/// To write a run costs as much as so many slots: its words have left the processor's caches.
pub(super) const SLOTS_PER_RUN: usize = 4;
/// Words of runs whose pages the system takes back in the time of a slot.
pub(super) const GIVEN_WORDS_PER_SLOT: usize = 32;
/// Longer runs are given back in several steps.
pub(super) const GIVEN_AT_ONCE_WORDS: usize = 1 << 19;
/// Where no more live, what lives of a generation is moved together at once: it takes a millisecond or two.
pub(super) const MOVED_AT_ONCE_WORDS: usize = 1 << 18;
/// Runs of fewer words are left to the next sweep.
pub(super) const LEAST_RUN_WORDS: usize = 8;
/// Objects of more words are not promoted to runs.
pub(super) const MOST_IN_RUN_WORDS: usize = 64;

/// Room in an old generation for what is promoted, given what lives: as much garbage may gather there until it is
/// collected. As much as lives, half of it where that is more than 128 MiB. Pages that nothing was promoted to take no
/// memory. Where memory is short it is the twelfth part of more than 64 MiB.
pub(super) fn spare_words(live: usize, crowded: bool) -> usize {
    match live {
        0x80_0001.. if crowded => live / 12,
        0..=0x100_0000 => live,
        _ => live / 2,
    }
}

/// Room in an old generation of `used` words of which a full sweep has found `live` alive. One in which next to nothing had died grows,
/// and the next sweep would find the same: it gets three times the room, as long as that is less than 512 MiB.
pub(super) fn spare_words_after(used: usize, live: usize, crowded: bool) -> usize {
    let spare = spare_words(live, crowded);
    match used - live <= live / GROWING_PART && live <= GROWS_FAST_WORDS && !crowded {
        true => 3 * spare,
        false => spare,
    }
}

/// The part of what lives that may have died in a generation which grows.
const GROWING_PART: usize = 8;

/// Words of the largest generation that grows to four times its size at once.
const GROWS_FAST_WORDS: usize = 1 << 24;

/// Whether so many free words keep their pages where a generation was collected: what is promoted next, to a process that computes, is
/// written there.
pub(super) fn comes_back(words: usize, serves: bool, crowded: bool) -> bool {
    words <= KEPT_PAGES_WORDS && !serves && !crowded
}

/// The most of them: 32 MiB.
const KEPT_PAGES_WORDS: usize = 4 << 20;

/// Words of the block of an old generation that is to have room for so many.
pub(super) fn old_size_for(words: usize, crowded: bool) -> usize {
    match crowded && words > MAP_ABOVE_WORDS {
        true => words,
        false => heap_size_for(words),
    }
}

/// Old generations of more words are those of processes that compute with much.
const COMPUTED_WORDS: usize = 1 << 20;

/// Words of the young block in front of so many old words: an eighth. A process that computes with a large generation makes
/// most of what it makes for a short while: a quarter, until that comes to 32 MiB, and no less than a sixteenth. Where memory
/// is short it is an eighth, of the largest a 32nd. Where others wait for the process it is no more than can be copied in a
/// millisecond or two if all of it lives.
pub(super) fn young_part(old_words: usize, serves: bool, crowded: bool) -> usize {
    if serves {
        // What survives in front of a very large generation leads to memory in no cache, and takes longer to copy.
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

/// Whether of an old generation of so many words little lived, so that its process promotes what is about to die.
pub(super) fn died_mostly(used: usize, live: usize) -> bool {
    live <= used / 2
}

/// Words of the young block in front of so many old words where those [`died_mostly`]: as many, up to 32 MiB. 0: no more than anywhere.
/// A pass over a list that is large makes another one, and the one before dies when that is done: it is to be young then.
pub(super) fn young_part_before_death(old_words: usize, serves: bool, crowded: bool) -> usize {
    match old_words > COMPUTED_WORDS && !serves && !crowded {
        true => old_words.min(4 << 20),
        false => 0,
    }
}

/// Words of the largest young block that is made for the sake of the old generation behind it.
pub(super) const MOST_YOUNG_WORDS: usize = 1 << 17;

/// Generations of more words (128 MiB) have half as much in front of them.
const VERY_LARGE_WORDS: usize = 1 << 24;

/// Terms noted for each region.
pub(super) const SEEN_TERMS: usize = 64;

/// Regions noted at a time.
pub(super) const SEEN_REGIONS: usize = 1 << 16;

/// So often it is tried to find regions that are worth leaving together.
pub(super) const LEAVE_ROUNDS: usize = 8;

/// Regions of fewer words than this are not worth leaving.
pub(super) const LEAVE_ABOVE_WORDS: usize = 128;
/// Of larger ones a sixteenth may be copied out, of others a quarter: of those little is little.
const LEAVE_SIXTEENTH_WORDS: usize = 4096;

/// Words that may be copied out of a region of so many to leave it.
pub(super) fn leave_limit(words: usize) -> usize {
    match words < LEAVE_SIXTEENTH_WORDS {
        true => words / 4,
        false => words / 16,
    }
}

/// A heap of no more words is copied once more to leave regions whatever they have.
pub(super) const LEAVE_AT_ONCE_WORDS: usize = 4096;

/// Words copied out of a region to leave it. 0: regions are never left.
pub static LEAVE_AT_MOST_WORDS: AtomicUsize = AtomicUsize::new(1 << 18);

/// Bytes of regions that a heap may hold on to before it is pressed to look for dead ones.
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

    /// (words in use, words of the virtual heap before, after; with 233 at least)
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
            // It is kept in a byte, beside stress mode's own, which are smaller.
            assert!(i < 32);
        }
    }

    /// (words that live, words of spare, the same where memory is short)
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

    /// (words that were there, that live, words of spare)
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

    /// (words that were old, that live, words of the young block in front of so many)
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

    /// Pages stay with who computes, up to 32 MiB.
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

    /// A block that was made smaller once, and is as large again, stays; not where others wait, where memory is short, or where it is
    /// larger than four megabytes.
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
        // All places fit the byte that they are kept in.
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
        assert!(is_filled_too_soon(4185, 4000, 1400) && !is_filled_too_soon(4185, 4000, 1300));
        assert!(
            !is_filled_too_soon(4185, 2000, 2000)
                && !is_filled_too_soon(KEPT_WORDS, 30_000, 30_000)
        );
        assert!(may_stay_large(LARGE_WORDS, true) && may_stay_large(STAY_WORDS, false));
        assert!(is_growing(BUSY_WORDS, false, false) && is_growing(REST_WORDS - 1, false, false));
        assert!(!is_growing(BUSY_WORDS - 1, false, false) && !is_growing(REST_WORDS, false, false));
        assert!(!is_growing(1000, true, false) && !is_growing(1000, false, true));
        assert_eq!((grown(233), grown(610)), (610, 1598));
        assert!(!may_stay_large(STAY_WORDS, true) && !may_stay_large(STAY_WORDS + 1, false));
    }
}
