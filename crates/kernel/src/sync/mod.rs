//! The atomics and locks that protocols between threads are written against. `crates/models`
//! compiles the files that use these with loom's in their place, and runs them through all
//! interleavings.

pub(crate) mod barrier;
pub(crate) mod lend;
mod once_slice;
mod spin;

pub use purlin_term::sync::*;

pub(crate) use once_slice::OnceSlice;
pub(crate) use spin::{Spin, SpinGuard};

/// Makes a function a `const fn`. In models it is an ordinary one, since loom's atomics have no
/// constant constructors.
macro_rules! constant {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        $(#[$attribute])* $visibility const fn $($rest)*
    };
}
pub(crate) use constant;
