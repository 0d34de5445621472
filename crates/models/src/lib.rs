//! Models of the protocols between threads. Each file of `tests` compiles files of the other crates
//! with loom's atomics and locks in place of the system's (`crate::sync`), and explores the
//! interleavings of a few threads that use them, including all values that the memory model allows
//! a load to see. Loom reports reads of plain memory that are not ordered after the write, and
//! deadlocks: lost wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The kernel's `crate::sync::constant`: here the function is an ordinary one.
#[macro_export]
macro_rules! constant {
    ($($function:tt)*) => { $($function)* };
}

/// The module that the files under test know as `crate::sync`.
pub mod sync {
    pub use self::Mutex as Spin;
    pub use crate::constant;
    pub use loom::hint::spin_loop;
    pub use loom::sync::MutexGuard;
    pub use loom::sync::MutexGuard as SpinGuard;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    pub use loom::sync::{RwLockReadGuard, RwLockWriteGuard};

    /// Loom's, with the methods of `purlin_term::sync::Mutex`.
    #[derive(Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(t: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(t))
        }
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|e| e.into_inner())
        }
        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    /// The kernel's, filled before the threads of a model begin.
    pub struct OnceSlice<T>(std::sync::OnceLock<Box<[T]>>);

    impl<T> OnceSlice<T> {
        #[allow(clippy::new_without_default)]
        pub fn new() -> OnceSlice<T> {
            OnceSlice(std::sync::OnceLock::new())
        }
        pub fn fill(&self, make: impl FnOnce() -> Box<[T]>) {
            self.0.get_or_init(make);
        }
    }

    impl<T> std::ops::Deref for OnceSlice<T> {
        type Target = [T];
        fn deref(&self) -> &[T] {
            self.0.get().map_or(&[], |all| all)
        }
    }

    /// The barriers of the kernel's `sync/barrier.rs` for systems that offer none, since loom only
    /// knows fences.
    pub mod barrier {
        use super::{Ordering, fence};

        pub fn prepare() {}
        pub fn light() {
            fence(Ordering::SeqCst);
        }
        pub fn heavy() {
            fence(Ordering::SeqCst);
        }
    }

    /// Loom's, with the methods of `purlin_term::sync::RwLock`.
    #[derive(Default)]
    pub struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub fn new(t: T) -> RwLock<T> {
            RwLock(loom::sync::RwLock::new(t))
        }
        pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }
        pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }
        pub fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap_or_else(|e| e.into_inner())
        }
        pub fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap_or_else(|e| e.into_inner())
        }
    }

    /// Loom's, with the methods of `purlin_term::sync::Condvar`.
    #[derive(Default)]
    pub struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub fn new() -> Condvar {
            Condvar(loom::sync::Condvar::new())
        }
        pub fn notify_one(&self) {
            self.0.notify_one();
        }
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
        pub fn wait<'a, T>(&self, g: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(g).unwrap_or_else(|e| e.into_inner())
        }
    }
}

/// Explores the interleavings of `f`: first those without a preemption (a thread that blocks or
/// ends is not counted), then those with one, and so on up to `preemptions`; with `None`, finally
/// all. So faults that need few preemptions are found early. `LOOM_MAX_PREEMPTIONS` sets another
/// number for all models, and `MODEL_SECONDS` the maximum time of each (10). Prints the number of
/// interleavings.
pub fn explore(name: &str, preemptions: Option<usize>, f: impl Fn() + Send + Sync + 'static) {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse().ok());
    let limit = Duration::from_secs(number("MODEL_SECONDS").unwrap_or(10) as u64);
    let most = number("LOOM_MAX_PREEMPTIONS").or(preemptions);
    let begun = Instant::now();
    let f = Arc::new(f);
    let count = Arc::new(AtomicUsize::new(0));
    let mut done = "none at all".to_owned();
    let mut before = 0;
    for bound in 0.. {
        let Some(left) = limit.checked_sub(begun.elapsed()) else {
            break;
        };
        let mut b = loom::model::Builder::new();
        b.preemption_bound = Some(bound);
        b.max_branches = 20_000;
        b.checkpoint_interval = 500;
        b.max_duration = Some(left);
        let (f, n) = (f.clone(), count.clone());
        count.store(0, Ordering::Relaxed);
        b.check(move || {
            n.fetch_add(1, Ordering::Relaxed);
            f();
        });
        if begun.elapsed() >= limit {
            done = format!("{done}, some of those with {bound}");
            break;
        }
        let n = count.load(Ordering::Relaxed);
        // As many as with one preemption less: these are all there are.
        done = match n == before {
            true => "all".to_owned(),
            false => format!("all with at most {bound} preemptions"),
        };
        if n == before || most == Some(bound) {
            break;
        }
        before = n;
    }
    println!(
        "{name}: {} interleavings ({done}), {:.1} s",
        count.load(Ordering::Relaxed),
        begun.elapsed().as_secs_f64()
    );
}
