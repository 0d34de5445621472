//! `.beam` bytes to checked modules.
//!
//! The way of a module: [`BeamFile::parse`] takes the container apart and checks every table;
//! [`GenericCode::decode`] turns the `Code` chunk into a flat vector of generic instructions in
//! which every operand has been checked against the table it indexes. What comes after may
//! therefore index without asking. [`lower::lower`] follows the flow of control through each function: that a register holds a
//! term when it is read, that a Y register lies inside the frame, that what is built fits what was reserved. What the loader
//! doesn't promise, since it doesn't follow types: that the head is taken of a cons only.
//!
//! Formats are told apart per file, never by release. Nothing here is unsafe, keeps global state or
//! starts threads; damaged input ends in a [`LoadError`], and memory taken is bounded by the size
//! of the input (for compressed data by what it really inflates to, with a fixed ceiling).
#![forbid(unsafe_code)]

mod debug;
mod disasm;
mod error;
mod file;
mod generic;
mod iff;
pub mod lower;
mod reader;
mod text;

pub use debug::{DebugCall, DebugFrame, DebugItem, DebugValue};
pub use disasm::{disasm_generic, disasm_instr};
pub use error::{Fault, LoadError, Table};
pub use file::{BeamFile, Export, FieldDefault, Import, Lambda, Lines, Record, Types};
pub use generic::{BigInt, Function, GenericCode, Instr, NO_INSTR, Operand};
pub use text::atom_text;
