//! The contract between loader, interpreter and tools: generic and specific ops, preset atoms.
#![warn(unsafe_op_in_unsafe_fn)]

pub mod atoms;
pub mod bits;
pub mod codec;
pub mod context;
pub mod contract;
pub mod genops;
pub mod helpers;
pub mod known;
pub mod natives;
pub mod ops;
pub mod release;
pub mod types;
mod value;
pub mod view;
