//! The words of trace frames: who traces, and what is measured.
//!
//! A session is named by its number, and tracing without one by -1.

use crate::process::session::Session;
use purlin_term::{NIL, Term};
use std::sync::Arc;

/// The quantities that are measured for calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Measure {
    /// Nanoseconds.
    Time,
    /// Words that the process allocates on its heap.
    Memory,
}

/// The measured quantity and the session's number in one number, for a frame.
pub(crate) fn measure_number(what: Measure, whom: i64) -> i64 {
    whom * 2 + what as i64
}

/// The reverse of [`measure_number`].
pub(crate) fn measure_of(number: i64) -> (Measure, i64) {
    match number.rem_euclid(2) {
        0 => (Measure::Time, number.div_euclid(2)),
        _ => (Measure::Memory, number.div_euclid(2)),
    }
}

/// The word of a frame that names the receiver.
pub(crate) fn word_of(which: Which) -> Term {
    which.map_or(NIL, |s| Term::small(s.number.into()))
}

/// The side that traces: a session, or `None` for tracing without one.
pub(crate) type Which<'a> = Option<&'a Arc<Session>>;

/// The number that stands for a side in frames and measures.
pub(crate) fn number_of(which: Which) -> i64 {
    which.map_or(-1, |s| s.number.into())
}
