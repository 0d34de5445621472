//! Late messages: a message arrives after one that another process sent later.
//!
//! Erlang promises order between two processes only; "the time in between is unspecified but
//! positive" (ERTS User's Guide, Communication in Erlang). No runtime shows other orders within a
//! node, so this needs `--delivery any`. It has no name of its own: flips and the portfolio list
//! these schedules, and delays draw from the same points.
//!
//! # Invariants
//! * Only sends are listed whose receiver gets something from another process later.
//! * Nothing is listed unless the base was profiled for any delivery.

use crate::base::Base;
use crate::deviation::{Kind, Schedule};

/// Lists schedules in which one message is held back.
pub(super) fn list(base: &Base) -> Vec<Schedule> {
    base.singles(&base.late, Kind::Back)
}
