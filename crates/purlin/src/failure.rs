//! Failures of Purlin itself: one clear line and an exit status.
//!
//! `purlin help` documents the statuses; a program that runs chooses its own.

use std::fmt;
use std::io::{self, Write};

use purlin_messages::{self as messages, Code};

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
    /// Makes a failure of Purlin itself, whose message has that code.
    pub fn new(kind: Code, status: u8, text: impl fmt::Display) -> Failure {
        Failure {
            code: status,
            message: kind.line(text),
        }
    }

    /// Makes a failure of a tool of OTP, with the message that stock prints.
    pub fn of_tool(status: u8, message: impl Into<String>) -> Failure {
        Failure {
            code: status,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// An option that the command does not have.
pub fn no_option(command: &str, option: impl fmt::Display) -> Failure {
    let text = format!("{command} has no option '{option}'");
    Failure::new(messages::NO_SUCH_OPTION, USAGE, text)
}

/// An option whose value is missing.
pub fn no_value(text: impl fmt::Display) -> Failure {
    Failure::new(messages::NO_VALUE, USAGE, text)
}

/// A value out of the range of its option.
pub fn bad_value(text: impl fmt::Display) -> Failure {
    Failure::new(messages::BAD_VALUE, USAGE, text)
}

pub fn missing_argument(text: impl fmt::Display) -> Failure {
    Failure::new(messages::MISSING_ARGUMENT, USAGE, text)
}

pub fn surplus_argument(text: impl fmt::Display) -> Failure {
    Failure::new(messages::SURPLUS_ARGUMENT, USAGE, text)
}

/// Options, files or arguments that do not go together.
pub fn do_not_fit(text: impl fmt::Display) -> Failure {
    Failure::new(messages::DO_NOT_FIT, USAGE, text)
}

pub fn no_topic(text: impl fmt::Display) -> Failure {
    Failure::new(messages::NO_SUCH_TOPIC, USAGE, text)
}

/// A file of which neither name nor contents tell how it is run.
pub fn unknown_kind(text: impl fmt::Display) -> Failure {
    Failure::new(messages::UNKNOWN_KIND, USAGE, text)
}

pub fn cannot_read(file: impl fmt::Display, error: &io::Error) -> Failure {
    let text = format!("cannot read {file}: {}", reason(error));
    Failure::new(messages::CANNOT_READ, NO_INPUT, text)
}

pub fn cannot_write(file: impl fmt::Display, error: &io::Error) -> Failure {
    no_such_place(format!("cannot write {file}: {}", reason(error)))
}

/// A file that cannot be written, for the reason in the text.
pub fn no_such_place(text: impl fmt::Display) -> Failure {
    Failure::new(messages::CANNOT_WRITE, SYSTEM, text)
}

pub fn cannot_print(error: &io::Error) -> Failure {
    let text = format!("cannot write: {}", reason(error));
    Failure::new(messages::CANNOT_PRINT, SYSTEM, text)
}

pub fn no_own_executable(error: &io::Error) -> Failure {
    let text = format!("cannot find Purlin's own executable: {}", reason(error));
    Failure::new(messages::NO_OWN_EXECUTABLE, SYSTEM, text)
}

/// A file or folder of Purlin's own that cannot be made: `what` with its verb.
pub fn cannot_make(what: impl fmt::Display, error: &io::Error) -> Failure {
    let text = format!("cannot {what}: {}", reason(error));
    Failure::new(messages::CANNOT_MAKE, SYSTEM, text)
}

pub fn cannot_run(status: u8, program: impl fmt::Display, error: &io::Error) -> Failure {
    let text = format!("cannot run {program}: {}", reason(error));
    Failure::new(messages::CANNOT_RUN, status, text)
}

pub fn command_not_found(name: impl fmt::Display) -> Failure {
    let text = format!("{name}: command not found");
    Failure::new(messages::COMMAND_NOT_FOUND, NOT_FOUND, text)
}

/// A process that cannot be waited for.
pub fn lost_command(text: impl fmt::Display) -> Failure {
    Failure::new(messages::LOST_COMMAND, SYSTEM, text)
}

/// A file that is not of the kind that the command reads.
pub fn wrong_file(file: impl fmt::Display, why: impl fmt::Display) -> Failure {
    Failure::new(messages::WRONG_FILE, NO_INPUT, format!("{file}: {why}"))
}

pub fn bad_otp_root(source: impl fmt::Display, why: impl fmt::Display) -> Failure {
    let text = format!("{source}: {why}");
    Failure::new(messages::BAD_OTP_ROOT, NO_INSTALLATION, text)
}

/// Prints a message of that code, after which the command continues.
pub fn warn(kind: Code, text: impl fmt::Display) {
    say(kind.line(text));
}

/// Prints a line that only informs.
pub fn note(text: impl fmt::Display) {
    say(format_args!("purlin: {text}"));
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
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_string()
}
