//! What has failed in a run, by what it has written: two schedules fail in the same way where the same tests fail at the same places.
//! Pure: knows text only.

use crate::os::tape;
use std::collections::BTreeSet;

/// Words that begin with these tell of an error.
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

/// What has failed, each as a number, in a run that ended with `status`: tests that a runner tells of; else errors, or all that
/// the run has written. Numbers but for those of lines, and the order of lines, do not count.
pub(super) fn ways(status: i32, stuck: bool, output: &str) -> BTreeSet<u64> {
    let tests: BTreeSet<u64> = blocks(output)
        .iter()
        .map(|b| tape::sum(b.as_bytes()))
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
    BTreeSet::from([tape::sum(
        format!("{status} {stuck}\n{}", all.join("\n")).as_bytes(),
    )])
}

/// Lines that tell of an error, and those behind each up to an empty one.
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

/// The tests that a runner tells of as failed, as ExUnit and the eunit of rebar3 do, `  1) test …` and what follows up to an empty line; and
/// those of eunit, which has `*failed*` behind them.
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
            // What was compared differs from run to run; where it stands does not.
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

/// A line in which each number is 0, but for those of lines of a file.
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
    fn what_failed_is_told_apart() {
        let one = ways(2, false, ONE);
        let other = ONE
            .replace("left:  2", "left:  [3,\n 4]")
            .replace("1) ", "2) ");
        assert_eq!(one, ways(2, false, &other));
        assert_ne!(one, ways(2, false, &ONE.replace("t.exs:8", "t.exs:9")));
        let both = ways(2, false, &format!("{ONE}{TWO}"));
        assert_eq!(both, &one | &ways(2, false, TWO));
        assert_eq!(both.len(), 2);
        assert_eq!(both, ways(2, false, &format!("{TWO}{ONE}.")));
    }

    #[test]
    fn what_has_no_runner_is_told_by_its_errors() {
        let crash = |n: u32, line: u32| {
            format!(
                "step {n}\nError in process <0.{n}.0> with exit value:\n{{badmatch,[{{f,[{{line,{line}}}]}}]}}\n\nstep\n"
            )
        };
        assert_eq!(ways(1, false, &crash(80, 7)), ways(1, false, &crash(81, 7)));
        assert_ne!(ways(1, false, &crash(80, 7)), ways(1, false, &crash(80, 8)));
        assert_ne!(ways(1, false, "3 of 5\n"), ways(2, false, "3 of 5\n"));
        assert_eq!(ways(1, false, "3 of 5\nb\n"), ways(1, false, "b\n4 of 5\n"));
        assert_ne!(ways(1, false, ""), ways(1, true, ""));
        let eunit = "x_tests: a_test (module 'x_tests')...*failed*\nin function x_tests:a_test/0 (x_tests.erl, line 5)\n**error:{badmatch,2}\n  output:<<\"3\">>\n\n";
        assert_eq!(
            ways(1, false, eunit),
            ways(1, false, &eunit.replace("\"3\"", "\"44\""))
        );
        assert_ne!(
            ways(1, false, eunit),
            ways(1, false, &eunit.replace("line 5", "line 6"))
        );
    }
}
