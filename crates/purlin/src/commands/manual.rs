//! `help man`: a manual page in the language of `man`, made from the tables of the program.

use std::fmt::Write as _;

use super::help::RUN;
use super::table::{COMMANDS, ENVIRONMENT, GLOBAL, OptionRow, emulator_flags};
use crate::failure::MEANINGS;

/// `text` with characters escaped that are special to `man`.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

/// A word or two in bold, their arguments in italics, and an explanation.
fn entry(page: &mut String, name: &str, argument: &str, doc: &str) {
    let _ = write!(page, ".TP\n\\fB{}\\fR", escaped(name));
    if !argument.is_empty() {
        let _ = write!(page, " \\fI{}\\fR", escaped(argument));
    }
    let _ = writeln!(page, "\n{}", escaped(doc));
}

fn options(page: &mut String, rows: &[OptionRow]) {
    for row in rows {
        entry(page, row.name, row.argument, row.doc);
    }
}

pub fn page() -> String {
    let mut page = format!(
        ".TH PURLIN 1 \"\" \"purlin {}\" \"User Commands\"\n\
         .SH NAME\npurlin \\- a runtime system for Erlang/OTP and Elixir\n\
         .SH SYNOPSIS\n.B purlin\n[\\fB\\-\\-otp\\-root\\fR \\fIDIR\\fR] \\fICOMMAND\\fR ...\n\
         .SH DESCRIPTION\nPurlin runs the Erlang/OTP and Elixir that are installed, on a runtime of its own in the place of\n\
         .BR beam.smp .\nModule files are loaded as they are. A link to \\fBpurlin\\fR that is called \\fBerl\\fR, \\fBerlc\\fR or\n\
         \\fBescript\\fR is that tool.\n.SH COMMANDS\n",
        env!("CARGO_PKG_VERSION")
    );
    for row in COMMANDS {
        entry(&mut page, row.name, row.arguments, row.doc);
    }
    let _ = writeln!(page, ".PP\n{}", escaped(RUN.trim()));
    page.push_str(".SH OPTIONS\n");
    options(&mut page, GLOBAL);
    for row in COMMANDS.iter().filter(|row| !row.options.is_empty()) {
        let _ = writeln!(page, ".SS Options of {}", row.name);
        options(&mut page, row.options);
    }
    page.push_str(".SS Flags of erl\nThose with \\- are those of erl(1). Those with + are for the emulator:\n");
    for (name, argument, doc, takes_next) in emulator_flags() {
        match takes_next {
            true => entry(&mut page, &format!("+{name}"), argument, doc),
            false => entry(&mut page, &format!("+{name}{argument}"), "", doc),
        }
    }
    page.push_str(".SH EXIT STATUS\nUnless a program chooses its own:\n");
    for (code, meaning) in MEANINGS {
        entry(&mut page, &code.to_string(), "", meaning);
    }
    page.push_str(".SH ENVIRONMENT\n");
    for (name, doc) in ENVIRONMENT {
        entry(&mut page, name, "", doc);
    }
    page.push_str(
        ".SH EXAMPLES\n.nf\n\
         purlin run program.exs\n\
         purlin mix test\n\
         purlin exec \\-\\- rebar3 eunit\n\
         purlin explain run report.exs\n\
         .fi\n.SH SEE ALSO\n.BR erl (1),\n.BR erlc (1),\n.BR escript (1),\n.BR elixir (1)\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_something_to_man_is_escaped() {
        for (text, expected) in [
            (".beam", "\\&.beam"),
            ("'a > b'", "\\&'a > b'"),
            ("--x", "\\-\\-x"),
            ("a\\b", "a\\eb"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }
}
