//! `help`, `version`: texts made from the same tables that the program works by.

use std::ffi::OsString;
use std::fmt::Write as _;

use purlin_diagnostics::explain::socket;
use purlin_messages::{Code, Message, TABLE};

use super::table::{
    COMMANDS, CommandRow, ENVIRONMENT, GLOBAL, HAND_ON, emulator_flags, explained_topics,
};
use super::{manual, print, shells};
use crate::context::Context;
use crate::failure::{Failure, MEANINGS, no_topic, surplus_argument};
use crate::observe::target::command_line;

/// Columns before an explanation, and characters of its lines.
const COLUMN: usize = 34;
const WIDTH: usize = 97;

/// The topics of help, besides the names of commands.
pub static TOPICS: &[(&str, &str, fn() -> String)] = &[
    ("erl", "the flags of erl", flags_of_erl),
    (
        "processes",
        "the running emulators that explain and observe can ask",
        processes,
    ),
    (
        "messages",
        "the codes of messages; purlin help PURLIN-0003 explains one",
        codes,
    ),
    (
        "messages.md",
        "the same as a page, with causes and cures",
        purlin_messages::page,
    ),
    ("man", "the manual page", manual::page),
    ("bash", "completions for bash", shells::bash),
    ("zsh", "completions for zsh", shells::zsh),
    ("fish", "completions for fish", shells::fish),
];

pub fn help(_context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let Some(topic) = args.first() else {
        return print(&general());
    };
    if let Some((_, _, text)) = TOPICS.iter().find(|row| topic == row.0) {
        return print(&text());
    }
    let topic = topic.to_string_lossy();
    match COMMANDS.iter().find(|row| row.name == topic) {
        Some(row) if row.name == "help" => print(&general()),
        Some(row) => print(&of_command(row)),
        None => match Code::of_word(&topic).and_then(Code::row) {
            Some(row) => print(&of_message(row)),
            None => {
                let text = format!("there is no help on '{topic}'; try: purlin help");
                Err(no_topic(text))
            }
        },
    }
}

fn of_command(row: &CommandRow) -> String {
    let options = match row.options {
        [] => "",
        _ => "[OPTIONS] ",
    };
    let usage = format!("Usage: purlin {} {options}{}", row.name, row.arguments);
    let mut text = format!("{}\n\n{}\n", usage.trim_end(), row.doc);
    if HAND_ON.contains(&row.name) {
        text.push_str("\nArguments are handed on as they are: the options are the tool's own.\n");
    }
    if row.name == "run" {
        text.push_str(RUN);
    }
    if row.name == "explain" {
        text.push_str(
            "\nAlso: exec -- COMMAND, show FILE (a record), diff FILE FILE (two answers).\n",
        );
        text.push_str("\nTopics, each with its question:\n");
        for (name, doc) in explained_topics() {
            entry(&mut text, name, doc);
        }
    }
    if !row.options.is_empty() {
        text.push_str("\nOptions:\n");
    }
    for option in row.options {
        entry(
            &mut text,
            format!("{} {}", option.name, option.argument).trim_end(),
            option.doc,
        );
    }
    let of_its_own = format!("PURLIN_{}=", row.name.to_uppercase());
    let mut variables = ENVIRONMENT
        .iter()
        .filter(|v| v.0.starts_with(&of_its_own))
        .peekable();
    if variables.peek().is_some() {
        text.push_str("\nEnvironment:\n");
    }
    for (name, doc) in variables {
        entry(&mut text, name, doc);
    }
    text
}

pub fn version(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    if let Some(word) = args.first() {
        let word = word.to_string_lossy();
        let text = format!("version takes nothing, and not '{word}'");
        return Err(surplus_argument(text));
    }
    let mut text = format!("purlin {}\n", env!("CARGO_PKG_VERSION"));
    let otp = context.otp();
    if otp.is_err() && context.names_otp() {
        otp?;
    } else if let Ok(otp) = otp {
        let root = otp.root.display();
        let _ = writeln!(
            text,
            "Erlang/OTP {} (erts {}) in {root}",
            otp.version, otp.erts_version
        );
    }
    print(&text)
}

/// A word and its explanation, which is wrapped between words.
fn entry(text: &mut String, word: &str, explanation: &str) {
    let mut line = format!("  {word:<width$}", width = COLUMN - 2);
    if line.chars().count() > COLUMN {
        line.push(' ');
    }
    for (at, word) in explanation.split(' ').enumerate() {
        if at > 0 && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(COLUMN) + " ";
        } else if at > 0 || line.chars().count() == COLUMN {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

fn general() -> String {
    let mut text = String::from(
        "Purlin runs the Erlang/OTP and Elixir that are installed, on a runtime of its own.\n\n\
         Usage: purlin [--otp-root DIR] COMMAND …\n\nCommands:\n",
    );
    for row in COMMANDS {
        entry(
            &mut text,
            &format!("{} {}", row.name, row.arguments),
            row.doc,
        );
    }
    text.push_str(RUN);
    text.push_str("\nOptions:\n");
    for row in GLOBAL {
        entry(
            &mut text,
            format!("{} {}", row.name, row.argument).trim_end(),
            row.doc,
        );
    }
    text.push_str("\nEnvironment:\n");
    for (name, doc) in ENVIRONMENT {
        entry(&mut text, name, doc);
    }
    text.push_str(
        "\nHelp on the options of a command: purlin help COMMAND. Other topics of purlin help:\n",
    );
    for (name, doc, _) in TOPICS {
        entry(&mut text, name, doc);
    }
    text.push_str("\nExit status, unless a program chooses its own:\n");
    for (code, meaning) in MEANINGS {
        let _ = writeln!(text, "  {code:<5} {meaning}");
    }
    text.push_str("\nA link to purlin that is called erl, erlc or escript is that tool.\n");
    text
}

/// Help on the ways in which `run` starts a program.
pub const RUN: &str = "
run starts main/1 (with the arguments), else main/0, else start/0 of an Erlang or Elixir
module; an .exs file is run from top to bottom, and an .ex file that has none of them too.
";

fn processes() -> String {
    let mut text = String::new();
    for pid in socket::running() {
        let _ = writeln!(text, "{pid}\t{}", command_line(pid));
    }
    text
}

/// The codes of messages, and what they mean.
fn codes() -> String {
    let mut text = String::new();
    for row in TABLE {
        let _ = writeln!(text, "{}  {}", row.code, row.meaning);
    }
    text
}

fn of_message(row: &Message) -> String {
    let mut text = format!("{}: {}\n\n", row.code, row.meaning);
    entry(&mut text, "Cause", row.cause);
    entry(&mut text, "Cure", row.cure);
    text
}

fn flags_of_erl() -> String {
    let mut text = String::from(
        "Usage: purlin erl [FLAGS]\n\nFlags with - are those of erl(1). Flags with + are for the \
         emulator:\n\n",
    );
    for (name, argument, doc, takes_next) in emulator_flags() {
        let space = if takes_next { " " } else { "" };
        let _ = writeln!(text, "  {:<22} {doc}", format!("+{name}{space}{argument}"));
    }
    text
}
