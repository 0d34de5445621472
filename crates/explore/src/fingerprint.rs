//! Fingerprints of failures, made from the output of a run: two schedules fail in the same way if
//! the same tests fail at the same places.
//!
//! # Invariant
//! Numbers other than those of lines do not count, nor does the order of lines.

use crate::checksum::checksum;
use std::collections::BTreeSet;

/// Beginnings of lines that report an error.
const ERRORS: &[&str] = &[
    "** (",
    "=ERROR REPORT",
    "=CRASH REPORT",
    "Error in process",
    "exception error",
    "exception exit",
    "exception throw",
    "escript: exception",
    "{\"init terminating",
    "Runtime terminating",
];

/// Returns the fingerprints of the failures of a run: one for each test that a runner reports as
/// failed; else one of its errors, or of all its output if it reports none. `stuck`: whether the
/// run ended in a deadlock or a hang.
pub fn failures(status: i32, stuck: bool, output: &str) -> BTreeSet<u64> {
    let tests: BTreeSet<u64> = blocks(output)
        .iter()
        .map(|b| checksum(b.as_bytes()))
        .collect();
    if !tests.is_empty() && !stuck && status > 0 {
        return tests;
    }
    let lines: BTreeSet<String> = output.lines().map(plain).collect();
    let errors: BTreeSet<&str> = errors(output);
    let all: Vec<String> = match errors.is_empty() {
        true => lines.into_iter().collect(),
        false => errors.into_iter().map(plain).collect(),
    };
    BTreeSet::from([checksum(
        format!("{status} {stuck}\n{}", all.join("\n")).as_bytes(),
    )])
}

/// Returns the lines that report an error, each with those behind it up to an empty one.
fn errors(output: &str) -> BTreeSet<&str> {
    let mut of_error = false;
    let mut all = BTreeSet::new();
    for l in output.lines() {
        let begins = ERRORS.iter().any(|e| l.trim_start().starts_with(e));
        of_error = begins || (of_error && !l.trim().is_empty());
        if of_error {
            all.insert(l);
        }
    }
    all
}

/// Returns the reports of failed tests: of ExUnit and the eunit of rebar3, `  1) test …` and what
/// follows up to an empty line; of plain eunit, a line that ends in `*failed*` and what follows.
fn blocks(output: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut inside = false;
    let mut values = false;
    for l in output.lines() {
        let t = l.trim_start();
        let headline = t.split_once(") ").filter(|(n, _)| {
            l.starts_with(' ') && !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit())
        });
        if let Some((_, name)) = headline {
            (inside, values) = (true, false);
            all.push(plain(name));
        } else if t.ends_with("*failed*") {
            (inside, values) = (true, false);
            all.push(plain(t.rsplit_once("...").map_or(t, |(name, _)| name)));
        } else if inside && t.is_empty() {
            inside = false;
        } else if inside && let Some(block) = all.last_mut() {
            // Compared values differ from run to run; the place of the comparison does not.
            let begins = |names: &[&str]| names.iter().any(|n| t.starts_with(n));
            if begins(&[
                "left:",
                "right:",
                "mailbox:",
                "output:",
                "The following output",
            ]) {
                values = true;
            } else if begins(&["code:", "stacktrace:", "arguments:", "in function", "**"]) {
                values = false;
            }
            if !values {
                block.push('\n');
                block.push_str(&plain(t));
            }
        }
    }
    all
}

/// Returns a line in which each number is 0, except for line numbers of files.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut kept = false;
    for c in line.trim().chars() {
        if c.is_ascii_digit() {
            let at_line = [".ex:", ".exs:", ".erl:", ".hrl:", "{line,", "line "];
            kept |= at_line.iter().any(|b| plain.ends_with(b));
            match kept {
                true => plain.push(c),
                false if !plain.ends_with('0') => plain.push('0'),
                false => {}
            }
            continue;
        }
        kept = false;
        plain.push(c);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "..\n\n  1) test a (T)\n     t.exs:4\n     Assertion with == failed\n     code:  assert x == 1\n     left:  2\n     right: 1\n     stacktrace:\n       t.exs:8: (test)\n\n";
    const TWO: &str = "  1) test b (T)\n     t.exs:14\n     Assertion with == failed\n     code:  assert x == 1\n     left:  2\n     right: 1\n     stacktrace:\n       t.exs:18: (test)\n\n";

    #[test]
    fn different_failures_differ() {
        let one = failures(2, false, ONE);
        let other = ONE
            .replace("left:  2", "left:  [3,\n 4]")
            .replace("1) ", "2) ");
        assert_eq!(one, failures(2, false, &other));
        assert_ne!(one, failures(2, false, &ONE.replace("t.exs:8", "t.exs:9")));
        let both = failures(2, false, &format!("{ONE}{TWO}"));
        assert_eq!(both, &one | &failures(2, false, TWO));
        assert_eq!(both.len(), 2);
        assert_eq!(both, failures(2, false, &format!("{TWO}{ONE}.")));
    }

    #[test]
    fn errors_count_where_there_is_no_test_runner() {
        let crash = |n: u32, line: u32| {
            format!(
                "step {n}\nError in process <0.{n}.0> with exit value:\n{{badmatch,[{{f,[{{line,{line}}}]}}]}}\n\nstep\n"
            )
        };
        assert_eq!(
            failures(1, false, &crash(80, 7)),
            failures(1, false, &crash(81, 7))
        );
        assert_ne!(
            failures(1, false, &crash(80, 7)),
            failures(1, false, &crash(80, 8))
        );
        assert_ne!(
            failures(1, false, "3 of 5\n"),
            failures(2, false, "3 of 5\n")
        );
        assert_eq!(
            failures(1, false, "3 of 5\nb\n"),
            failures(1, false, "b\n4 of 5\n")
        );
        assert_ne!(failures(1, false, ""), failures(1, true, ""));
        let eunit = "x_tests: a_test (module 'x_tests')...*failed*\nin function x_tests:a_test/0 (x_tests.erl, line 5)\n**error:{badmatch,2}\n  output:<<\"3\">>\n\n";
        assert_eq!(
            failures(1, false, eunit),
            failures(1, false, &eunit.replace("\"3\"", "\"44\""))
        );
        assert_ne!(
            failures(1, false, eunit),
            failures(1, false, &eunit.replace("line 5", "line 6"))
        );
    }
}
