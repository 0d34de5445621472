//! From `.beam` bytes to checked modules and specific code.
//!
//! A module is loaded in three steps:
//! - [`BeamFile::parse`] parses the container and checks every table.
//! - [`GenericCode::decode`] turns the `Code` chunk into a flat vector of generic instructions, in
//!   which every operand has been checked against the table that it indexes. Later code may
//!   therefore index without a check.
//! - [`lower::lower`] follows the flow of control through each function and checks that a register
//!   holds a term when it is read, that a Y register is inside the frame, and that terms which are
//!   built fit the reserved heap. Since the loader doesn't follow types, it doesn't promise that
//!   only a cons cell's head is taken.
//!
//! Formats are recognized per file, never by release. Nothing here is unsafe, keeps global state or
//! starts threads. Damaged input ends in a [`LoadError`]. Memory use is bounded by the size of the
//! input (for compressed data by the real inflated size, with a fixed maximum).
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
