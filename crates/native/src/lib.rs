//! Natives: functions of Erlang modules that are written in Rust. The context in which they run,
//! how they fail, their rows, and the exports by which code finds them.
//!
//! This crate knows no process and no loaded code.

pub mod bif;
#[cfg(debug_assertions)]
pub mod coverage_counts;
pub mod cx;
pub mod errors;
pub mod exports;
pub mod hashing;
pub mod ids;
pub mod modules;
pub mod native_state;
pub mod nif;
pub mod reschedule;
