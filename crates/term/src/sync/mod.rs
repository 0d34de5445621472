//! The atomics and locks that protocols between threads are written against. `crates/models`
//! compiles the files that use them with loom's instead.

mod lock;
mod rows;

pub use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use rows::Rows;
pub use std::hint::spin_loop;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
