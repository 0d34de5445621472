//! The code of the runtime: modules, their versions, and a map from addresses to functions. The
//! names by which code is called are in `exports.rs`.
//!
//! # Invariants
//! * The code of a module stays at its address until the module is purged, and so does everything
//!   that the code refers to (its string table). Literals lie in regions. `literal_areas.rs` says
//!   who may refer to the literals of purged modules, and when they are freed.
//! * An `Arc` of a module keeps its code in memory for those who read it. A purge finds the
//!   processes that run it.

pub mod breakpoint;
pub mod compiled;
pub mod coverage;
pub mod debugger;
pub mod entries;
pub mod epochs;
pub mod image;
mod listing;
pub mod literal_areas;
pub(crate) mod load;
pub mod memory;
mod names;
pub mod object_files;
pub mod perf;
pub mod permission;
pub mod purge;
mod purge_count;
pub mod returns;
pub mod sampling;
pub mod stack;
pub mod start;
mod versions;

pub use entries::{fetch, opcode_at};

pub use listing::{disasm_at, disasm_specific, instruction_text, prepared_module};
pub use load::{LoadFailure, Prepared, constant, finish, load, load_preloaded, prepare};
pub(crate) use versions::was_loaded;
pub use versions::{
    FinishFailure, Module, NotNif, Place, Versions, current, delete, exports, find, find_each,
    finish_all, finish_on_load, function_at, is_current, loaded, mark_at, module_at, record,
    with_versions,
};

pub use purlin_native::bif::native;
pub use purlin_native::exports::*;
