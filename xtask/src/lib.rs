//! Test runs of Purlin that are too large for a shell script: `cargo xtask NAME`.
//!
//! Each module is one of them, and its head is its manual. Settings are environment variables, so
//! that a target of make and the line that repeats a fault look the same. Programs run below
//! `timeout`, so a hang is a fault and never stops a run.

pub mod applications;
pub mod conformance;
mod environment;
pub mod hunt;
mod library_list;
pub mod otp_release;
pub mod releases;
mod results_table;
pub mod storms;
mod suite_output;
mod suite_sources;
mod verdict_table;
pub mod work_dir;

pub use environment::{Settings, root};

/// The outcome of a command: its exit status, or why it could not begin (status 2).
pub type Outcome = Result<i32, String>;

/// A command: its name, one line about it, and its function, which gets the arguments.
pub type Row = (
    &'static str,
    &'static str,
    fn(&Settings, &[String]) -> Outcome,
);

/// The commands. The module of each has the details.
pub const COMMANDS: &[Row] = &[
    (
        "applications",
        "test suites of other people's libraries, on both runtimes",
        applications::run,
    ),
    (
        "conformance",
        "OTP's and Elixir's own test suites, on both runtimes",
        conformance::run,
    ),
    ("hunt", "random programs about memory", hunt::run),
    (
        "releases",
        "makes and runs releases of mix and relx",
        releases::run,
    ),
    (
        "storms",
        "random programs about what processes share",
        storms::run,
    ),
];
