//! The context that code and natives run in, with the process that runs.

pub use purlin_native::cx::*;

pub use crate::process::Cx;
