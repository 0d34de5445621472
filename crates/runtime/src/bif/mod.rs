//! Natives that concern the whole system, and the list of all natives.
//!
//! A native is a function of an Erlang module that is written in Rust. Each file holds the natives
//! of one Erlang module, or of one subject of a large module, and ends with their table of rows;
//! `OWN` lists the tables. Everything else (export stubs, guard calls, `module_info`, the list of
//! missing natives) is derived from the rows. The row of a native says what is special about it.

pub mod code;
pub mod coverage;
pub mod debug;
mod debugger;
pub mod erl_tracer;
pub mod exceptions;

pub mod halt;
mod identifiers;
pub mod inspect;
mod left;
pub mod limits;
mod link_lists;
pub mod links;
pub mod memory;
pub mod monitor_stats;
mod node_refs;
pub mod os;
pub mod persistent;
pub mod ports;
pub mod process;
pub mod process_info;
pub mod settings;
pub mod sharing;
pub mod statistics;
pub mod system_flag;
pub mod system_info;
pub mod time;
pub mod timers;
pub mod trace;

pub use purlin_native::bif::{Bif, Kind};

/// The tables of natives in this folder.
const OWN: &[&[Bif]] = &[
    code::BIFS,
    coverage::BIFS,
    debug::BIFS,
    debugger::BIFS,
    erl_tracer::BIFS,
    exceptions::BIFS,
    halt::BIFS,
    identifiers::BIFS,
    inspect::BIFS,
    left::BIFS,
    limits::BIFS,
    sharing::BIFS,
    links::BIFS,
    memory::BIFS,
    monitor_stats::BIFS,
    os::BIFS,
    persistent::BIFS,
    ports::BIFS,
    process::BIFS,
    process_info::BIFS,
    settings::BIFS,
    statistics::BIFS,
    system_flag::BIFS,
    system_info::BIFS,
    time::BIFS,
    timers::BIFS,
    trace::BIFS,
];

/// The tables of all natives.
pub fn tables() -> Vec<&'static [Bif]> {
    let all = [
        OWN,
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
