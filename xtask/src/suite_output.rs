//! Reads what test frameworks print: ExUnit, EUnit, Common Test and gleeunit.

/// The numbers of tests that passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn number(word: &str) -> Option<u64> {
    word.trim_end_matches(['.', ',']).parse().ok()
}

fn after(words: &[&str], word: &str) -> u64 {
    let at = words.iter().position(|w| *w == word);
    let next = at.and_then(|at| words.get(at + 1));
    next.and_then(|w| number(w)).unwrap_or(0)
}

/// Removes the sequences that colour text on a terminal.
pub fn without_colours(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let end = after.find(|c: char| !(c.is_ascii_digit() || c == ';'));
        match end {
            Some(end) if after[end..].starts_with('m') => rest = &after[end + 1..],
            _ => {
                out.push_str("\x1b[");
                rest = after;
            }
        }
    }
    out + rest
}

/// Sums what the summaries in a text say; `None` if it has none.
pub fn counts(text: &str) -> Option<Counts> {
    let mut sum = Counts::default();
    let mut seen = false;
    for line in without_colours(text).lines() {
        if let Some(found) = summary(line) {
            seen = true;
            sum.passed += found.passed;
            sum.failed += found.failed;
        }
    }
    seen.then_some(sum)
}

/// Counts the tests that a line reports, if it is a summary.
fn summary(line: &str) -> Option<Counts> {
    let all = words(line);
    let counts = |passed, failed| Some(Counts { passed, failed });
    if let Some(rest) = line.strip_prefix("Result: ") {
        return Some(new_ex_unit(rest));
    }
    if let Some(found) = ex_unit(line) {
        return Some(found);
    }
    match all[..] {
        // EUnit, and Common Test by rebar3.
        ["All", n, "tests", ref rest @ ..]
            if rest.first().is_some_and(|w| w.starts_with("passed")) =>
        {
            return counts(number(n)?, 0);
        }
        ["Test", "passed.", ..] => return counts(1, 0),
        // `erl.sh` prints what Common Test returns.
        ["counts:", passed, failed] => return counts(number(passed)?, number(failed)?),
        _ => {}
    }
    let has_number = |word| {
        let at = all.iter().position(|w| *w == word);
        at.and_then(|at| all.get(at + 1))
            .is_some_and(|w| number(w).is_some())
    };
    if line.contains("Passed: ") && line.contains('.') && has_number("Passed:") {
        return counts(after(&all, "Passed:"), after(&all, "Failed:"));
    }
    let of_rebar3 =
        line.contains(" tests") && (has_number("Passed") || line.starts_with("Failed "));
    if of_rebar3 && (has_number("Passed") || has_number("Failed")) {
        return counts(after(&all, "Passed"), after(&all, "Failed"));
    }
    None
}

/// ExUnit since Elixir 1.20: `Result: 100 passed (…), 2 excluded`, and `Result: 99/100 passed` if
/// one fails.
fn new_ex_unit(rest: &str) -> Counts {
    let mut sum = Counts::default();
    let rest = rest.split('(').next().unwrap_or_default();
    for part in rest.split([':', ',']) {
        let [count, what, ..] = words(part)[..] else {
            continue;
        };
        if what.starts_with("passed") {
            let (passed, of) = count.split_once('/').unwrap_or((count, count));
            let passed = number(passed).unwrap_or(0);
            sum.passed += passed;
            sum.failed += number(of).unwrap_or(passed) - passed.min(number(of).unwrap_or(passed));
        }
    }
    sum
}

/// ExUnit: `3 doctests, 2 properties, 95 tests, 1 failure, 2 excluded, 1 skipped, 1 invalid`.
/// gleeunit: `5 tests, 0 failures`.
fn ex_unit(line: &str) -> Option<Counts> {
    let parts: Vec<Vec<&str>> = line.split(',').map(words).collect();
    let kind = |part: &[&str]| part.get(1).copied().unwrap_or_default().to_string();
    let is_tests = |k: &str| {
        let k = k.trim_end_matches('s');
        ["test", "doctest", "property", "propertie"].contains(&k)
    };
    let first = parts.first()?;
    if first.len() != 2 || !is_tests(&kind(first)) || number(first[0]).is_none() {
        return None;
    }
    if !parts.iter().skip(1).any(|p| kind(p).starts_with("failure")) {
        return None;
    }
    let (mut total, mut left, mut failed) = (0, 0, 0);
    for part in &parts {
        let n = part.first().and_then(|w| number(w)).unwrap_or(0);
        let kind = kind(part);
        let is = |names: &[&str]| names.iter().any(|p| kind.starts_with(p));
        if is(&["test", "doctest", "propert"]) {
            total += n;
        } else if is(&["failure", "invalid"]) {
            failed += n;
            left += n;
        } else if is(&["excluded", "skip", "cancel"]) {
            left += n;
        }
    }
    let passed = total - left.min(total);
    Some(Counts { passed, failed })
}

/// The names of the tests that failed, sorted, each once.
pub fn failures(text: &str) -> Vec<String> {
    let text = without_colours(text);
    let mut all: Vec<String> = text.lines().filter_map(failure).collect();
    all.sort();
    all.dedup();
    all
}

/// The name of the test that a line reports as failed.
fn failure(line: &str) -> Option<String> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    // `  3) test some name (Some.Module)` of ExUnit, `  3) module:function/0: …` of EUnit.
    if let Some((n, rest)) = line.trim_start().split_once(") ")
        && (1..=4).contains(&n.len())
        && number(n).is_some()
    {
        let kinds = ["test ", "property ", "doctest "];
        if kinds.iter().any(|k| rest.starts_with(k)) {
            return Some(rest.to_string());
        }
        let (module, tail) = rest.split_once(':')?;
        let (function, tail) = tail.split_once('/')?;
        let arity: String = tail.chars().take_while(char::is_ascii_digit).collect();
        return (module.chars().all(is_name) && function.chars().all(is_name))
            .then(|| format!("{module}:{function}/{arity}"));
    }
    // Common Test by rebar3: `%%% suite ==> case: FAILED`.
    if let Some(rest) = line.strip_prefix("%%% ")
        && let Some(at) = rest.find(": FAILED")
        && rest[..at].contains(" ==> ")
    {
        return Some(rest[..at + ": FAILED".len()].to_string());
    }
    // EUnit in its long form: `module: case...*failed*`.
    if let Some(at) = line.find("*failed*")
        && let Some((module, rest)) = line[..at].split_once(": ")
        && module.chars().all(is_name)
        && rest.trim_end_matches('.').chars().all(is_name)
    {
        return Some(line[..at + "*failed*".len()].to_string());
    }
    // Common Test by itself: `Testing lib.x_SUITE: *** FAILED test case 3 of 5 ***`.
    let rest = line.strip_prefix("Testing ")?;
    let (suite, rest) = rest.split_once(": *** FAILED test case ")?;
    let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let suite = suite.rsplit('.').next().filter(|s| s.ends_with("_SUITE"))?;
    Some(format!("{suite}: FAILED test case {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(u64, u64)> {
        counts(text).map(|c| (c.passed, c.failed))
    }

    #[test]
    fn summaries_of_all_frameworks_are_counted() {
        let long =
            "3 doctests, 2 properties, 95 tests, 1 failure, 2 excluded, 1 skipped, 1 invalid";
        assert_eq!(of(long), Some((95, 2)));
        assert_eq!(of("\x1b[32m1 test, 0 failures\x1b[0m\n"), Some((1, 0)));
        assert_eq!(of("1 property, 4 tests, 2 failures"), Some((3, 2)));
        assert_eq!(
            of("Result: 100 passed (1 doctest, 99 tests), 2 excluded"),
            Some((100, 0))
        );
        assert_eq!(of("Result: 99/100 passed"), Some((99, 1)));
        assert_eq!(
            of("  All 17 tests passed.\n  Test passed.\n"),
            Some((18, 0))
        );
        assert_eq!(of("  Failed: 2.  Skipped: 0.  Passed: 11."), Some((11, 2)));
        assert_eq!(of("All 5 tests passed."), Some((5, 0)));
        assert_eq!(of("Failed 1 tests. Passed 4 tests."), Some((4, 1)));
        assert_eq!(of("counts: 3 1"), Some((3, 1)));
        assert_eq!(of("Finished in 1.0 seconds\n"), None);
        assert_eq!(of("we have 3 tests, and no failure of them"), None);
    }

    #[test]
    fn failed_tests_have_names() {
        let text = "  1) test adds (Some.Test)\n     test/some.exs:3\n\
                    %%% a_SUITE ==> one: FAILED\n\
                    \x1b[31m  12) lists_tests:sort_test/0: module 'x'\x1b[0m\n\
                    some_tests: sort_test...*failed*\n\
                    Testing lib.a_SUITE: *** FAILED test case 3 of 5 ***\n  1) test adds (Some.Test)\n";
        let expected = [
            "a_SUITE ==> one: FAILED",
            "a_SUITE: FAILED test case 3",
            "lists_tests:sort_test/0",
            "some_tests: sort_test...*failed*",
            "test adds (Some.Test)",
        ];
        assert_eq!(failures(text), expected);
    }
}
