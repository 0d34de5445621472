//! Processes: control blocks, the process table, links and monitors, exits.

pub mod state;

use purlin_term::Term;

/// The control block of a process.
pub struct Process {
    pub pid: Term,
}
