//! Files: module `prim_file`, file operations that a scheduler performs itself (`at_once.rs`), and
//! the driver of files in memory.

mod at_once;
mod cached;
pub mod prim_file;
pub mod prim_file_names;
pub(crate) mod ram_file;
