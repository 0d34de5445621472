//! The atomics and locks that protocols between threads are written against. `crates/models`
//! compiles the files that use these with loom's in their place, and runs them through all
//! interleavings.

pub(crate) mod barrier;
pub(crate) mod lend;
mod spin;

pub use purlin_term::sync::*;

pub(crate) use spin::{Spin, SpinGuard};
