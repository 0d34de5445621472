//! Processes: control blocks, the process table, links and monitors, exits.

use purlin_term::Term;

/// The control block of a process.
pub struct Process {
    pub pid: Term,
}
