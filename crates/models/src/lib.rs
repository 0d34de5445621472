//! Models of the protocols between threads: each file of `tests` compiles files of the other crates with loom's atomics
//! and locks in the place of the system's (`crate::sync`), and goes through the interleavings of a few threads that use
//! them. What a load may see by the memory model is gone through, too; a read of plain memory that is not ordered after
//! the write is reported, and so is a deadlock: a wake-up that was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What `crate::sync` is to the files under test.
pub mod sync {
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
    pub use loom::sync::{Mutex as Spin, MutexGuard as SpinGuard};
}

/// Runs `f` through its interleavings with at most `preemptions` of them (a thread that blocks or ends is not counted);
/// `None`: through all. `LOOM_MAX_PREEMPTIONS` says another number for all models, `MODEL_SECONDS` for how long each may
/// go on (10). Prints how many there were.
pub fn explore(name: &str, preemptions: Option<usize>, f: impl Fn() + Send + Sync + 'static) {
    let mut b = loom::model::Builder::new();
    if b.preemption_bound.is_none() {
        b.preemption_bound = preemptions;
    }
    b.max_branches = 20_000;
    b.checkpoint_interval = 500;
    let seconds = std::env::var("MODEL_SECONDS").ok();
    let limit = Duration::from_secs(seconds.and_then(|s| s.parse().ok()).unwrap_or(10));
    b.max_duration = Some(limit);
    let bound = b.preemption_bound;
    let n = Arc::new(AtomicUsize::new(0));
    let count = n.clone();
    let begun = Instant::now();
    b.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        f();
    });
    let cut = match begun.elapsed() < limit {
        true => "",
        false => " (not all)",
    };
    println!(
        "{name}: {} interleavings with {} preemptions{cut}, {:.1} s",
        n.load(Ordering::Relaxed),
        bound.map_or("any".to_owned(), |n| format!("at most {n}")),
        begun.elapsed().as_secs_f64()
    );
}
