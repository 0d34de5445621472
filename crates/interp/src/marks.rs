//! Instructions that only leave a mark: counters of coverage, and the running function for `perf`.

use super::handler::{go, op};
use std::sync::atomic::Ordering;

op!(op_count_run = CountRun(cx, pc, e, hp, reds, op) {
    // The count orders nothing: it is read when coverage is asked for.
    op.counter().fetch_add(1, Ordering::Relaxed);
    go!(cx, op.next(), e, hp, reds)
});

op!(op_running = Running(cx, pc, e, hp, reds, op) {
    // The slot belongs to this thread, in the frame in which the interpreter runs.
    *(*cx).running = op.function();
    go!(cx, op.next(), e, hp, reds)
});
