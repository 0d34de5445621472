//! The beginning and the end of a process.
#![deny(unsafe_op_in_unsafe_fn)]

pub mod exit;
pub mod spawn;
