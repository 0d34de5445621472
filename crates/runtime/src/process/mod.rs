//! Processes: control blocks, the process table, the state word.
//!
//! # The cell
//! A process is one cell of [`table::CELL_BYTES`] bytes: this control block, then the first words of its heap and
//! stack. What most processes never have hangs off it by pointers that start as null. The heap pointers are packed (a
//! base and three 32-bit offsets in words) while the process waits, and expanded into `Cx::heap` while it runs.

pub mod state;
pub mod table;

use purlin_term::Term;
use purlin_term::sync::AtomicU32;

/// In [`Process::id`] of a cell that holds no process: no pid has this data.
pub const NO_ID: u32 = u32::MAX;

/// The control block of a process. Who may touch what is said in [`state`].
#[repr(C)]
pub struct Process {
    /// The 28 data bits of its pid, or [`NO_ID`]. Read by senders, written by the spawner and at exit.
    pub id: AtomicU32,
    pub state: state::State,
    /// Signals in transit to it.
    pub in_transit: crate::signal::queue::InTransit,
    /// Its own pid.
    pub pid: Term,
}

const _: () = assert!(size_of::<Process>() <= table::CELL_BYTES);
