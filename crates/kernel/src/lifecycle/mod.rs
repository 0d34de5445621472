//! The beginning and the end of a process.

pub mod exit;
pub mod spawn;
