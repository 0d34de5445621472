//! The code of the runtime: modules, their versions, and what lies where. The names it is called by: `exports.rs`.
//!
//! # Invariants
//! * The code of a module stays where it is until the module is purged, and so does whatever the code refers to
//!   (string table). Literals are regions; who may refer to those of purged modules, and when they go, says `areas.rs`.
//! * `Arc`s of modules keep the code in memory for those who look at it. Those who run it are found by the purge.

pub mod areas;
pub mod breakpoint;
pub mod compiled;
pub mod coverage;
pub mod debugger;
mod disasm;
pub mod entries;
pub mod entry;
pub mod epochs;
pub mod image;
pub(crate) mod load;
pub mod memory;
pub mod objects;
pub mod perf;
pub mod permission;
pub mod purge;
mod purge_count;
pub mod returns;
pub mod stack;
mod versions;

pub use entries::{fetch, opcode_at};

pub use disasm::{disasm_at, disasm_specific, instruction_text, prepared_module};
pub use load::{LoadFailure, Prepared, constant, finish, load, load_preloaded, prepare};
pub(crate) use versions::was_loaded;
pub use versions::{
    FinishFailure, Module, NotNif, Place, Versions, current, delete, exports, find, find_each,
    finish_all, finish_on_load, function_at, is_current, loaded, mark_at, module_at, record,
    with_versions,
};

pub use purlin_native::bif::native;
pub use purlin_native::exports::*;
