//! The parameters of a search.

use crate::deviation::Schedule;
use crate::kernel::Function;
use crate::strategy;
use crate::sweep::Sweep;
use std::path::PathBuf;
use std::time::Duration;

/// The options of a search.
#[derive(Clone, Debug)]
pub struct Search {
    /// Maximum number of schedules.
    pub schedules: usize,
    /// Maximum time.
    pub time: Option<Duration>,
    pub seed: u64,
    pub strategy: strategy::Name,
    /// Nanoseconds of the longest stall; 0 for none.
    pub stall: i64,
    /// Number of branches at a time.
    pub jobs: usize,
    /// The replay file. None: `purlin-schedule-SEED.psch`.
    pub to: Option<PathBuf>,
    /// Whether the result is printed as JSON.
    pub json: bool,
    /// Whether the search fails if the seed does not decide everything.
    pub strict: bool,
    /// Whether the search continues after a failure, for failures of other kinds.
    pub keep_going: bool,
    /// Whether messages may be held back.
    pub any_delivery: bool,
    /// A schedule that is tried first.
    pub first: Schedule,
    /// The system calls that fail. None: none do, and the schedules of the strategy are tried.
    pub sweep: Option<Sweep>,
    /// Schedules deviate from the first operation of this function on.
    pub from: Option<Function>,
    /// The command line, for the replay file.
    pub command: Vec<String>,
    /// The release of OTP, for the replay file.
    pub release: u32,
    /// The build of Purlin, for the replay file.
    pub made_by: String,
}
