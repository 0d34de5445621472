//! Natives of tracing: flags, patterns, sessions, sequential tracing. What they set is in
//! [`crate::trace`].

pub mod delivered;
pub mod erl_tracer;
pub mod flags;
pub mod patterns;
pub mod seq_trace;
pub mod trace_info;
pub mod trace_sessions;

use purlin_native::bif::Bif;

/// The tables of natives in this folder.
pub const TABLES: &[&[Bif]] = &[
    delivered::BIFS,
    erl_tracer::BIFS,
    flags::BIFS,
    patterns::BIFS,
    seq_trace::BIFS,
    trace_info::BIFS,
    trace_sessions::BIFS,
];
