//! Natives that concern the whole system, and the list of all natives.
//!
//! A native is a function of an Erlang module that is written in Rust. Each folder holds the
//! natives of a subject, and each file ends with a table of their rows; the `mod.rs` of a folder
//! lists the tables. Everything else (export stubs, guard calls, `module_info`, the list of missing
//! natives) is derived from the rows. The row of a native says what is special about it.

pub mod code;
pub mod debug;
pub mod exceptions;
pub mod persistent;
pub mod ports;
pub mod process;
pub mod signals;
pub mod system;
pub mod terms;
pub mod time;
pub mod tracing;

pub use purlin_native::bif::{Bif, Kind};
pub use purlin_natives::atom_makers;

/// The tables of all natives.
pub fn tables() -> Vec<&'static [Bif]> {
    let all = [
        code::TABLES,
        debug::TABLES,
        &[exceptions::BIFS, persistent::BIFS, ports::BIFS],
        process::TABLES,
        signals::TABLES,
        system::TABLES,
        terms::TABLES,
        time::TABLES,
        tracing::TABLES,
        purlin_natives::TABLES,
        purlin_ets::natives::TABLES,
        purlin_io::TABLES,
        purlin_nif::TABLES,
        purlin_dist::TABLES,
    ];
    all.into_iter().flatten().copied().collect()
}

/// Registers all natives. Must be called before any module is loaded.
pub fn install() {
    purlin_native::bif::install(&tables());
}
