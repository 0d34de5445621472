//! Instructions that only leave a mark: counters of coverage, and the function that runs for `perf`.

use super::handler::{go, op};
use std::sync::atomic::Ordering;

op!(op_count_run = CountRun(cx, pc, e, hp, reds, op) {
    // Nothing is ordered by the count: it is read when coverage is asked for.
    op.counter().fetch_add(1, Ordering::Relaxed);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_running = Running(cx, pc, e, hp, reds, op) {
    // The slot is this thread's, in the frame that the interpreter runs in.
    *(*cx).running = op.function();
    go!(cx, op.next(), e, hp, reds)
});
