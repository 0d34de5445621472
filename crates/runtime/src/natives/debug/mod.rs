//! Natives for debugging the runtime and programs: `erts_debug`, `erl_debugger`, the tags of
//! dynamic tracing.

pub mod debugger;
pub mod dirty_test;
pub mod disassembly;
pub mod dynamic_trace;
pub mod internal_state;
pub mod link_lists;
pub mod node_refs;
pub mod sharing_sizes;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[
    debugger::BIFS,
    dirty_test::BIFS,
    disassembly::BIFS,
    dynamic_trace::BIFS,
    internal_state::BIFS,
    sharing_sizes::BIFS,
];
