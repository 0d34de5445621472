//! The output of a run, kept as a checksum of each line.
//!
//! # Invariant
//! A replay must write all of these lines again, in that order. It may write more, since output may
//! be added to a program to look into it.

use crate::checksum::checksum;
use std::fmt::Write;

/// Maximum number of lines that are kept.
const MOST_LINES: usize = 10_000;

fn sums(output: &str) -> impl Iterator<Item = u32> {
    output.lines().map(|l| checksum(plain(l).as_bytes()) as u32)
}

/// Beginnings of lines of test runners whose numbers follow from the clock.
const CLOCKED: &[&str] = &[
    "Randomized with seed",
    "Running ExUnit with seed",
    "Finished in",
];
/// Texts before a line number, which changes when a line is added above.
const AT_LINE: &[&str] = &[".ex:", ".exs:", ".erl:", ".hrl:", "{line,", "line "];

/// Returns a line without the numbers that change when something is added to the program.
fn plain(line: &str) -> String {
    let clocked = CLOCKED.iter().any(|c| line.trim_start().starts_with(c));
    let mut plain = String::new();
    let mut skips = false;
    for c in line.chars() {
        let at_line = || AT_LINE.iter().any(|b| plain.ends_with(b));
        skips = c.is_ascii_digit() && (clocked || skips || at_line());
        if !skips {
            plain.push(c);
        }
    }
    plain
}

/// Writes the checksums as replay files have them. None: there is no output.
pub fn text(output: &str) -> Option<String> {
    let mut t = String::new();
    for s in sums(output).take(MOST_LINES) {
        let _ = write!(t, " {s:x}");
    }
    (!t.is_empty()).then_some(t)
}

/// Reads a text written by [`text`].
pub fn parse(text: &str) -> Option<Vec<u32>> {
    let all = text.split_ascii_whitespace();
    all.map(|w| u32::from_str_radix(w, 16).ok()).collect()
}

/// Returns the ordinal of the first written line that `output` lacks behind the lines before it.
pub fn missing(wrote: &[u32], output: &str) -> Option<usize> {
    let mut next = sums(output);
    let is_missing = |s: &u32| !next.any(|o| o == *s);
    Some(wrote.iter().position(is_missing)? + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_lines_are_written_again() {
        let wrote = text("a\nb\nc\n").and_then(|t| parse(&t)).expect("lines");
        assert_eq!(wrote.len(), 3);
        for (output, first) in [
            ("a\nb\nc\n", None),
            ("more\na\nb\nmore\nc", None),
            ("a\nc\n", Some(2)),
            ("b\na\nc\n", Some(2)),
            ("", Some(1)),
        ] {
            assert_eq!(missing(&wrote, output), first, "{output}");
        }
        let wrote = text("  t.exs:12: f\nFinished in 0.02 seconds (0.0s)\n3 of 5\n");
        let wrote = wrote.and_then(|t| parse(&t)).expect("lines");
        let other = "  t.exs:9: f\nFinished in 0.3 seconds (0.02s)\n";
        assert_eq!(missing(&wrote, &format!("{other}3 of 5")), None);
        assert_eq!(missing(&wrote, &format!("{other}4 of 5")), Some(3));
        assert_eq!(text(""), None);
        assert_eq!(parse("x y"), None);
    }
}
