//! The contract between the loader, the engines and the tools, as tables: generic instructions, ops
//! with their contracts and encoding, the fields and helpers that machine code uses, preset atoms,
//! and the differences between releases of OTP.

#![forbid(unsafe_code)]

pub mod atoms;
pub mod bit_fields;
pub mod cache_lines;
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
