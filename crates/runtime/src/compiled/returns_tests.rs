//! The table of return points, by one thread.

use super::returns::{FIRST, Returns};
use purlin_term::sync::Ordering;

/// Modules come at addresses that no code had before, and go: the table stays as large as those
/// that are there need it.
#[test]
fn the_table_does_not_grow_with_what_has_gone() {
    let mut r = Returns::new(FIRST);
    let address = |round: u64, i: u64| 0x1000_0000 + 8 * (round * 100 + i);
    for round in 0..2000 {
        for i in 0..100 {
            r.set(address(round, i), 1 + i);
        }
        if round > 0 {
            for i in 0..100 {
                r.remove(address(round - 1, i));
            }
        }
        r.tidy();
        assert!(r.slots() <= 2 * FIRST, "{} slots", r.slots());
        // No thread runs code here.
        assert!(r.former.is_empty());
    }
    for i in 0..100 {
        let at = r.find(address(1999, i));
        assert_eq!(r.words[at + 1].load(Ordering::Relaxed), 1 + i);
        let gone = r.find(address(1998, i));
        assert_eq!(r.words[gone + 1].load(Ordering::Relaxed), 0);
    }
}
