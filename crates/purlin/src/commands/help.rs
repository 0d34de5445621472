//! `help`, `version`: texts made from the tables that the program itself works by.

use std::ffi::OsString;
use std::fmt::Write as _;

use purlin_runtime::options::flags::{FLAGS, OTHER_FLAGS};

use super::{COMMANDS, print};
use crate::context::Context;
use crate::failure::{Failure, MEANINGS, USAGE};

pub fn help(_context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    match args {
        [] => print(&general()),
        [topic] if topic == "erl" => print(&flags_of_erl()),
        [topic, ..] => {
            let topic = topic.to_string_lossy();
            if COMMANDS.iter().any(|row| row.name == topic) {
                return print(&general());
            }
            Err(Failure::new(
                USAGE,
                format!("purlin: there is no help on '{topic}'; try: purlin help"),
            ))
        }
    }
}

pub fn version(context: &Context, _args: &[OsString]) -> Result<u8, Failure> {
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

fn general() -> String {
    let mut text = String::from(
        "Purlin runs the Erlang/OTP and Elixir that are installed, on a runtime of its own.\n\n\
         Usage: purlin [--otp-root DIR] COMMAND …\n\nCommands:\n",
    );
    for row in COMMANDS {
        let _ = writeln!(
            text,
            "  {:<32} {}",
            format!("{} {}", row.name, row.arguments),
            row.doc
        );
    }
    text.push_str(
        "\nrun starts main/1 (with the arguments), else main/0, else start/0 of an Erlang or Elixir\n\
         module; an .exs file is run from top to bottom, and an .ex file that has none of them too.\n\
         \nOptions:\n  \
         --otp-root DIR                   the OTP installation to use\n  \
         -h, --help                       this text\n  \
         -V, --version                    versions\n\
         \nEnvironment:\n  \
         PURLIN_OTP_ROOT                  like --otp-root, which comes before it; without either, the\n  \
         \u{20}                                erl on PATH decides, and after it /usr/lib/erlang\n  \
         PURLIN_EXEC=strict               exec fails if the command started an emulator that is not Purlin\n  \
         PURLIN_EXEC=quiet                exec doesn't look for one\n  \
         ERL_AFLAGS ERL_FLAGS ERL_ZFLAGS  flags for erl, before and after those given\n\
         \nExit status, unless a program chooses its own:\n",
    );
    for (code, meaning) in MEANINGS {
        let _ = writeln!(text, "  {code:<5} {meaning}");
    }
    text.push_str("\nA link to purlin that is called erl, erlc or escript is that tool.\n");
    text
}

fn flags_of_erl() -> String {
    let mut text = String::from(
        "Usage: purlin erl [FLAGS]\n\nFlags with - are those of erl(1). Flags with + are for the \
         emulator:\n\n",
    );
    let rows = FLAGS
        .iter()
        .map(|row| (row.name, row.argument, row.doc, row.takes_next));
    let others = OTHER_FLAGS
        .iter()
        .map(|(name, argument, doc)| (*name, *argument, *doc, false));
    let mut rows: Vec<_> = rows.chain(others).collect();
    rows.sort_by_key(|(name, ..)| (name.to_lowercase(), *name));
    for (name, argument, doc, takes_next) in rows {
        let space = if takes_next { " " } else { "" };
        let _ = writeln!(text, "  {:<22} {doc}", format!("+{name}{space}{argument}"));
    }
    text
}
