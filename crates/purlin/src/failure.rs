//! Failures of Purlin itself: one clear line and an exit status.
//!
//! `purlin help` documents the statuses; a program that runs chooses its own.

use std::fmt;
use std::io::Write;

/// A stock tool rejects its command line, or a program failed.
pub const REFUSED: u8 = 1;
/// Purlin's own command line is invalid.
pub const USAGE: u8 = 2;
/// The condition of `--fail-if` holds.
pub const CHECK_FAILED: u8 = 3;
/// An input file is missing, unreadable or damaged.
pub const NO_INPUT: u8 = 66;
/// No emulator answers.
pub const NO_ANSWER: u8 = 68;
/// There is no Erlang/OTP, or no Elixir.
pub const NO_INSTALLATION: u8 = 69;
/// The operating system refuses something that Purlin needs.
pub const SYSTEM: u8 = 71;
/// The program to run does not exist or cannot be executed, as in a shell.
pub const NOT_EXECUTABLE: u8 = 126;
pub const NOT_FOUND: u8 = 127;

/// Meaning of each exit status, for help.
pub const MEANINGS: &[(u8, &str)] = &[
    (0, "all went well"),
    (REFUSED, "a flag was refused, or the program failed"),
    (USAGE, "no such command or option of purlin"),
    (CHECK_FAILED, "explain: a condition of --fail-if holds"),
    (NO_INPUT, "a file is missing, unreadable or damaged"),
    (
        NO_ANSWER,
        "explain, observe: no emulator of this user answers",
    ),
    (NO_INSTALLATION, "no Erlang/OTP found, or no Elixir"),
    (SYSTEM, "the operating system refused what was needed"),
    (NOT_EXECUTABLE, "exec: the command cannot be executed"),
    (NOT_FOUND, "exec: there is no such command"),
];

/// A message for standard error and the exit status with which the program ends.
#[derive(Debug)]
pub struct Failure {
    pub code: u8,
    pub message: String,
}

impl Failure {
    pub fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Prints a line to standard error. Errors are ignored: if it is closed or full nobody could be
/// told.
pub fn say(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints text to standard error, unchanged.
pub fn say_text(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The text of an operating system's error, without its number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_string()
}
