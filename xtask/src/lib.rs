//! Test runs of Purlin that are too large for a shell script: `cargo xtask NAME`.
//!
//! Each module is one of them, and its head is its manual. Settings are environment variables, so
//! that a target of make and the line that repeats a fault look the same. Programs run below
//! `timeout`, so a hang is a fault and never stops a run.

pub mod applications;
pub mod chart;
pub mod conformance;
mod environment;
pub mod hunt;
mod library_list;
pub mod otp_release;
mod reduce;
pub mod releases;
mod results_table;
pub mod sbom;
pub mod storms;
mod suite_output;
mod suite_sources;
pub mod sweep;
mod verdict_table;
pub mod work_dir;

pub use environment::{Settings, root};

/// The outcome of a command: its exit status, or why it could not begin (status 2).
pub type Outcome = Result<i32, String>;

/// A command.
pub struct Row {
    pub name: &'static str,
    /// One line about it.
    pub doc: &'static str,
    /// The source of its module, whose head is its manual.
    source: &'static str,
    /// Gets the arguments after the name.
    pub run: fn(&Settings, &[String]) -> Outcome,
}

impl Row {
    pub fn manual(&self) -> String {
        let head = self.source.lines().map_while(|l| l.strip_prefix("//!"));
        let lines: Vec<&str> = head
            .map(|l| l.strip_prefix(' ').unwrap_or(l))
            .filter(|l| !l.starts_with("```"))
            .collect();
        lines.join("\n") + "\n"
    }
}

macro_rules! commands {
    ($($name:ident $doc:literal;)*) => {
        /// The commands. The module of each has the details.
        pub const COMMANDS: &[Row] = &[$(Row {
            name: stringify!($name),
            doc: $doc,
            source: include_str!(concat!(stringify!($name), ".rs")),
            run: $name::run,
        }),*];
    };
}
commands! {
    applications "test suites of other people's libraries, on both runtimes";
    chart "draws the chart of the README";
    conformance "OTP's and Elixir's own test suites, on both runtimes";
    hunt "random programs about memory";
    releases "makes and runs releases of mix and relx";
    sbom "the software bill of materials of a package";
    storms "random programs about what processes share";
    sweep "system calls of the test programs fail, one by one";
}
