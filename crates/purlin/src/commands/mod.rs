//! The commands, one file each. A command gets its arguments untouched and gives the exit status,
//! unless it turns into another program.

mod bench;
mod disasm;
pub mod elixir;
pub mod erl;
mod erlc;
mod erts;
mod escript;
mod exec;
pub mod explain;
mod help;
pub mod measure;
mod observe;
mod process;
mod run;
mod schedules;

use std::ffi::OsString;

use crate::context::Context;
use crate::failure::Failure;
pub use process::{become_program, become_program_named};
use process::{print, print_bytes};

pub struct CommandRow {
    pub name: &'static str,
    pub arguments: &'static str,
    pub doc: &'static str,
    /// Whether a link of this name to Purlin is this command.
    pub stock: bool,
    pub run: fn(&Context, &[OsString]) -> Result<u8, Failure>,
}

const fn own(
    name: &'static str,
    arguments: &'static str,
    doc: &'static str,
    run: fn(&Context, &[OsString]) -> Result<u8, Failure>,
) -> CommandRow {
    CommandRow {
        name,
        arguments,
        doc,
        stock: false,
        run,
    }
}

const fn stock(
    name: &'static str,
    arguments: &'static str,
    doc: &'static str,
    run: fn(&Context, &[OsString]) -> Result<u8, Failure>,
) -> CommandRow {
    CommandRow {
        name,
        arguments,
        doc,
        stock: true,
        run,
    }
}

pub static COMMANDS: &[CommandRow] = &[
    own(
        "run",
        "FILE [ARGS]",
        "run a program: .exs .ex .erl .escript .beam",
        run::run,
    ),
    stock("erl", "[FLAGS]", "the Erlang shell and emulator", erl::run),
    stock("erlc", "[OPTIONS] FILES", "the Erlang compiler", erlc::run),
    stock(
        "escript",
        "FILE [ARGS]",
        "run an Erlang script",
        escript::run,
    ),
    own(
        "elixir",
        "[OPTIONS] FILE",
        "run Elixir scripts and code",
        elixir::elixir,
    ),
    own(
        "elixirc",
        "[OPTIONS] FILES",
        "the Elixir compiler",
        elixir::elixirc,
    ),
    own("iex", "[OPTIONS]", "the Elixir shell", elixir::iex),
    own("mix", "TASK", "the Elixir build tool", elixir::mix),
    own(
        "exec",
        "-- COMMAND [ARGS]",
        "a command that finds Purlin as its erl, erlc, escript",
        exec::run,
    ),
    own(
        "erts",
        "DIR",
        "a folder for include_erts of mix release and relx",
        erts::run,
    ),
    own(
        "disasm",
        "FILE.beam",
        "show the code in a module file",
        disasm::run,
    ),
    own(
        "bench",
        "FILE [ARGS]",
        "what a program takes, here and on stock in turn",
        bench::run,
    ),
    own(
        "explain",
        "PID [TOPIC] | run FILE",
        "where memory and copies come from, by line",
        explain::run,
    ),
    own(
        "schedules",
        "-- COMMAND | show FILE",
        "run a program in other orders until it fails",
        schedules::run,
    ),
    own(
        "replay",
        "FILE",
        "repeat a run that failed, exactly",
        schedules::replay,
    ),
    own(
        "measure",
        "-- COMMAND [-- COMMAND]",
        "what commands take: time, memory, energy",
        measure::run,
    ),
    own(
        "observe",
        "[PID]",
        "a page in the browser about a running program",
        observe::run,
    ),
    own("help", "[erl]", "this text; the flags of erl", help::help),
    own(
        "version",
        "",
        "version of Purlin, and of the OTP it would use",
        help::version,
    ),
];

/// The command that `name` is likely a misspelling of.
pub fn nearest(name: &str) -> Option<&'static str> {
    let near = COMMANDS
        .iter()
        .map(|row| (distance(name, row.name), row.name))
        .min()?;
    (near.0 <= 2 && near.0 < near.1.len()).then_some(near.1)
}

/// How many letters have to be inserted, removed or replaced; names are cut to a sane length.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(20).collect();
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (line, letter) in b.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for column in 0..a.len() {
            let replaced = diagonal + usize::from(a[column] != letter);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_commands() {
        for (name, expected) in [
            ("elixr", Some("elixir")),
            ("exce", Some("exec")),
            ("disams", Some("disasm")),
            ("mixx", Some("mix")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(name), expected, "{name}");
        }
    }
}
