//! Throughput of collections on a workload that builds lists: short-lived ones, and a growing one.
use purlin_term::gc;
use purlin_term::heap::Heap;
use purlin_term::{Alloc, NIL, Term};
use std::time::Instant;

fn main() {
    for keep in [0usize, 10, 100] {
        let mut h = Heap::empty();
        let mut roots = [NIL, NIL];
        let (mut moved, mut gcs) = (0usize, 0usize);
        let cells = 20_000_000;
        let start = Instant::now();
        for i in 0..cells {
            if h.free_words() < 4 {
                // SAFETY: the two lists are the only terms in use.
                moved += unsafe { gc::collect(&mut h, 4, &mut [&mut roots], false) };
                gcs += 1;
            }
            if i % 1000 == 0 {
                roots[1] = NIL;
            }
            roots[1] = h.cons(Term::small(i as i64), roots[1]);
            if i % 1000 < keep {
                roots[0] = h.cons(Term::small(i as i64), roots[0]);
            }
        }
        let t = start.elapsed();
        println!(
            "{keep:4} kept of 1000: {:6.1} M cells/s, {gcs} collections, {moved} words moved",
            cells as f64 / t.as_secs_f64() / 1e6
        );
        // SAFETY: nothing is used after.
        unsafe { gc::destroy(&mut h) };
    }
}
