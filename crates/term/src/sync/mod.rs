//! The atomics and locks that protocols between threads are written against. `crates/models`
//! compiles the files that use them with loom's instead.

mod biased;
mod lock;
mod rows;

pub use biased::{BiasedLock, Places, ReadGuard, Readers, WriteGuard};
pub use lock::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use rows::Rows;
pub use std::hint::spin_loop;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// Makes a function a `const fn`. In models it is an ordinary one, since loom's atomics have no
/// constant constructors.
macro_rules! constant {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])* $visibility const fn $($rest)*
    };
}
pub(crate) use constant;
