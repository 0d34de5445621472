//! The atomics that lock-free protocols are written against. `crates/models` compiles the files that use these with
//! loom's in their place.

pub use std::hint::spin_loop;
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
