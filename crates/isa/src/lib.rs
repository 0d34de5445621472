//! The contract between loader, interpreter and tools: generic and specific ops, BIF rows, preset atoms.

pub mod atoms;
pub mod genops;
pub mod ops;
