//! Codes of the messages by which Purlin's own commands refuse, fail or warn: `PURLIN-0003`.
//!
//! [`TABLE`] has a row for each code, with what it means, its cause and its cure. `purlin help
//! PURLIN-0003` prints a row, `docs/messages.md` has all of them ([`page`]). A message gets its
//! code from [`Code::line`], in one place.
//!
//! Invariants: a code has one meaning for good. A number that is no longer used stays unused. The
//! numbers go up from row to row. One place in the sources makes the messages of a code; the test
//! `codes_of_messages_are_used_once` checks that. The messages that `erl`, `erlc` and `escript`
//! print as stock does have no codes.

#![forbid(unsafe_code)]

mod table;

pub use table::*;

use std::fmt;

/// The number of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Code(pub u16);

/// A row of [`TABLE`].
pub struct Message {
    pub code: Code,
    /// Name of the code's constant.
    pub name: &'static str,
    pub meaning: &'static str,
    pub cause: &'static str,
    pub cure: &'static str,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PURLIN-{:04}", self.0)
    }
}

impl Code {
    /// Returns the message with that text as it is printed, without the last newline.
    pub fn line(self, text: impl fmt::Display) -> String {
        self.mark(&format!("purlin: {text}"))
    }

    /// Adds the code to the first line of a text, before a carriage return.
    pub fn mark(self, text: &str) -> String {
        let end = text.find(['\r', '\n']).unwrap_or(text.len());
        let (first, rest) = text.split_at(end);
        format!("{first} [{self}]{rest}")
    }

    /// Returns the code that a word names: `PURLIN-0003`, in any case of letters, or its number.
    pub fn of_word(word: &str) -> Option<Code> {
        let digits = match word.split_at_checked(7) {
            Some((start, digits)) if start.eq_ignore_ascii_case("purlin-") => digits,
            _ => word,
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        digits.parse().ok().map(Code)
    }

    /// Returns the row of the code, if there is one.
    pub fn row(self) -> Option<&'static Message> {
        TABLE.iter().find(|row| row.code == self)
    }
}

/// Returns `docs/messages.md`.
pub fn page() -> String {
    let mut text = String::from(HEAD);
    let mut part = None;
    for row in TABLE {
        let here = PARTS.iter().rev().find(|p| p.0 <= row.code.0);
        if here != part
            && let Some((_, title)) = here
        {
            part = here;
            text += &format!("\n## {title}\n");
        }
        text += &format!("\n**{}: {}**\n\n", row.code, row.meaning);
        text += &wrapped(&format!("{} {}", row.cause, row.cure));
    }
    text
}

const HEAD: &str = "# Messages

A message by which one of Purlin's own commands refuses, fails or warns ends with a code:

    $ purlin explain 4194000
    purlin: there is no process 4194000 [PURLIN-0060]

`purlin help PURLIN-0060` prints what is below; `purlin help messages` lists all codes. A code keeps
its meaning, and scripts may rely on it; the words of a message may change. The exit status is that
of `purlin help`. What stock prints, Purlin prints as stock does, without a code.

This page is made from `crates/messages/src/table.rs`, by `purlin help messages.md`.
";

/// The first number of each part of the page, and its title.
const PARTS: &[(u16, &str)] = &[
    (1, "The command line"),
    (20, "Files and the system"),
    (40, "Erlang/OTP and Elixir"),
    (50, "exec"),
    (60, "explain and observe"),
    (80, "measure and bench"),
    (90, "build"),
    (110, "The loader"),
    (130, "schedules and replay"),
    (160, "Flags and variables of the emulator"),
];

/// Maximum number of columns of the page.
const WIDTH: usize = 100;

fn wrapped(text: &str) -> String {
    let (mut all, mut columns) = (String::new(), 0);
    for word in text.split(' ') {
        let wide = word.chars().count();
        if columns > 0 && columns + 1 + wide > WIDTH {
            all.push('\n');
            columns = 0;
        } else if columns > 0 {
            all.push(' ');
            columns += 1;
        }
        all += word;
        columns += wide;
    }
    all.push('\n');
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_up() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].code < pair[1].code, "{}", pair[1].code);
        }
    }

    #[test]
    fn rows_are_sentences() {
        for row in TABLE {
            assert!(!row.meaning.ends_with('.'), "{}", row.code);
            for text in [row.cause, row.cure] {
                assert!(text.ends_with('.'), "{}: {text}", row.code);
                let first = text.chars().next();
                let whole = first.is_some_and(|c| c.is_uppercase() || c == '`');
                assert!(whole && !text.contains("  "), "{}: {text}", row.code);
            }
        }
    }

    #[test]
    fn words_name_codes() {
        for (word, code) in [
            ("PURLIN-0012", Some(12)),
            ("purlin-12", Some(12)),
            ("12", Some(12)),
            ("PURLIN-", None),
            ("PURLIN-+1", None),
            ("purlin-é", None),
            ("purlié", None),
            ("", None),
            ("99999999999", None),
        ] {
            assert_eq!(Code::of_word(word), code.map(Code), "{word}");
        }
    }

    #[test]
    fn the_code_is_at_the_end_of_the_first_line() {
        assert_eq!(Code(7).line("a\n  b"), "purlin: a [PURLIN-0007]\n  b");
        assert_eq!(Code(7).mark("a\r\nb"), "a [PURLIN-0007]\r\nb");
        assert_eq!(Code(7).mark(""), " [PURLIN-0007]");
    }

    #[test]
    fn the_page_is_in_docs() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/messages.md");
        let found = std::fs::read_to_string(file).expect("docs/messages.md");
        assert!(
            found == page(),
            "purlin help messages.md > docs/messages.md"
        );
    }
}
