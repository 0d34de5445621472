//! Verdicts of test cases on both runtimes, compared with the list of known failures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A case: its name, its verdict, and a reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub case: String,
    pub verdict: String,
    pub reason: String,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.verdict == "passed"
    }
}

/// Reads lines `CASE VERDICT REASON`.
pub fn read(text: &str) -> Vec<Verdict> {
    text.lines().filter_map(verdict).collect()
}

fn verdict(line: &str) -> Option<Verdict> {
    let mut words = line.splitn(3, ' ').map(str::to_string);
    Some(Verdict {
        case: words.next()?,
        verdict: words.next()?,
        reason: words.next().unwrap_or_default(),
    })
}

/// Writes such lines.
pub fn write(verdicts: &[Verdict]) -> String {
    let mut out = String::new();
    for v in verdicts {
        let line = format!("{} {} {}", v.case, v.verdict, v.reason);
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The verdicts in the lines `start CASE` and `end CASE VERDICT REASON` that a suite writes.
///
/// The first verdict of a case counts: cases that are left out of a second run are reported as
/// skipped by it.
pub fn of_lines(lines: &str) -> Vec<Verdict> {
    let mut seen = BTreeSet::new();
    let ends = lines.lines().filter_map(|l| l.strip_prefix("end "));
    let all = ends.filter_map(verdict);
    all.filter(|v| seen.insert(v.case.clone())).collect()
}

/// The case that had begun and not ended, which the runtime did not survive.
pub fn fallen(lines: &str) -> Option<String> {
    let mut case = None;
    for line in lines.lines() {
        if let Some(begun) = line.strip_prefix("start ") {
            case = begun.split(' ').next().map(str::to_string);
        } else if line.starts_with("end ") {
            case = None;
        }
    }
    case
}

/// A case in a group is `CASE@GROUP` or `GROUP/CASE`. A list may leave the group out.
pub fn plain(case: &str) -> &str {
    let case = case.split('@').next().unwrap_or(case);
    case.rsplit('/').next().unwrap_or(case)
}

/// The known failures of a suite: reasons by case.
pub fn known(list: &str, suite: &str) -> BTreeMap<String, String> {
    let rows = list.lines().filter(|l| !l.starts_with('#'));
    let rows = rows.filter_map(|l| {
        let mut words = l.splitn(3, ' ');
        (words.next() == Some(suite)).then_some(())?;
        let case = words.next()?.to_string();
        Some((case, words.next().unwrap_or_default().to_string()))
    });
    rows.collect()
}

/// The cases that stock passes, and that have failed here and are not known to.
pub fn to_repeat(
    stock: &[Verdict],
    first: &[Verdict],
    known: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let passed = |case: &str| first.iter().any(|v| v.case == case && v.passed());
    let is_known = |case: &str| known.contains_key(case) || known.contains_key(plain(case));
    let cases = stock.iter().filter(|v| v.passed()).map(|v| &v.case);
    let failed = cases.filter(|c| !passed(c) && !is_known(c));
    failed.cloned().collect()
}

/// Beginning of the reason of a case that passed when it was repeated; that of its failure follows.
const REPEATED: &str = "failed at first:";

/// Takes over the verdicts of cases that have passed when they were repeated.
pub fn take_passed(first: &mut Vec<Verdict>, repeated: &[Verdict]) {
    for again in repeated.iter().filter(|v| v.passed()) {
        let before = first.iter().position(|v| v.case == again.case);
        let before = before.map(|i| first.remove(i));
        if before.as_ref().is_some_and(Verdict::passed) {
            first.extend(before);
            continue;
        }
        let why = before.map_or("did not run".to_string(), |v| v.reason);
        first.push(Verdict {
            reason: format!("{REPEATED} {why}"),
            ..again.clone()
        });
    }
}

/// The comparison of a suite.
#[derive(Debug, Default, PartialEq)]
pub struct Comparison {
    /// All cases of stock, those that it passes, and of these those that Purlin passes.
    pub all: usize,
    pub stock: usize,
    pub purlin: usize,
    pub unexpected: usize,
    /// The cases that differ, a line for each.
    pub differences: String,
    /// Known failures that pass.
    pub stale: Vec<String>,
}

/// Compares the verdicts of a suite. The measure is how many of the cases that stock passes pass on
/// Purlin.
pub fn compare(
    suite: &str,
    stock: &[Verdict],
    purlin: &[Verdict],
    known: &BTreeMap<String, String>,
) -> Comparison {
    let purlin: BTreeMap<&str, &Verdict> = purlin.iter().map(|v| (v.case.as_str(), v)).collect();
    let mut sum = Comparison {
        all: stock.len(),
        ..Comparison::default()
    };
    let mut fails = BTreeSet::new();
    let mut passes = BTreeSet::new();
    for case in stock.iter().filter(|v| v.passed()) {
        sum.stock += 1;
        let listed = [case.case.as_str(), plain(&case.case)];
        let name = listed.into_iter().find(|n| known.contains_key(*n));
        let own = purlin.get(case.case.as_str());
        if let Some(v) = own.filter(|v| v.passed()) {
            sum.purlin += 1;
            if v.reason.starts_with(REPEATED) {
                let line = format!("repeated {suite} {} {}", v.case, v.reason);
                let _ = writeln!(sum.differences, "{}", line.trim_end());
            }
            passes.extend(name);
            continue;
        }
        fails.extend(name);
        let line = match (name, own) {
            (Some(name), _) => format!("known {suite} {} {}", case.case, known[name]),
            (None, Some(v)) => {
                format!("unexpected {suite} {} {} {}", v.case, v.verdict, v.reason)
            }
            (None, None) => format!("unexpected {suite} {} did not run", case.case),
        };
        sum.unexpected += usize::from(name.is_none());
        let _ = writeln!(sum.differences, "{}", line.trim_end());
    }
    let stale = passes.difference(&fails);
    let stale = stale.filter(|c| !known[**c].starts_with("sometimes"));
    sum.stale = stale.map(|c| format!("{suite} {c}")).collect();
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str =
        "start a\nend a passed\nstart b\nend b failed why so\nend a skipped\nstart c\n";

    #[test]
    fn first_verdicts_count() {
        let all = of_lines(LINES);
        assert_eq!(write(&all), "a passed\nb failed why so\n");
        assert_eq!(read(&write(&all)), all);
        assert_eq!(fallen(LINES).as_deref(), Some("c"));
        assert_eq!(fallen("start a\nend a passed\n"), None);
    }

    #[test]
    fn cases_are_compared_with_what_is_known() {
        let list = "# x\ns_SUITE b needs a printer\ns_SUITE d sometimes late\ns_SUITE e old\nt_SUITE a no\n";
        let known = known(list, "s_SUITE");
        assert_eq!(known.len(), 3);
        let stock =
            read("a passed\nb@g passed\nc passed\nd passed\ne passed\nf failed\ng passed\n");
        let purlin =
            read("a passed\nb@g failed\nc failed for a reason\nd passed\ne passed\nf passed\n");
        let found = compare("x/s_SUITE", &stock, &purlin, &known);
        assert_eq!((found.all, found.stock, found.purlin), (7, 6, 3));
        assert_eq!(found.unexpected, 2);
        let lines = "known x/s_SUITE b@g needs a printer\n\
                     unexpected x/s_SUITE c failed for a reason\n\
                     unexpected x/s_SUITE g did not run\n";
        assert_eq!(found.differences, lines);
        assert_eq!(found.stale, ["x/s_SUITE e"]);
    }

    #[test]
    fn cases_that_pass_when_repeated_count() {
        let known = known("s_SUITE d never\n", "s_SUITE");
        let stock = read("a passed\nb@g passed\nc passed\nd passed\ne passed\nf failed\n");
        let mut own =
            read("a passed\nb@g failed too late\nc failed for good\nd failed\nf failed\n");
        let again = to_repeat(&stock, &own, &known);
        assert_eq!(again.into_iter().collect::<Vec<_>>(), ["b@g", "c", "e"]);
        take_passed(
            &mut own,
            &read("a passed\nb@g passed\nc failed again\ne passed\n"),
        );
        let found = compare("x/s_SUITE", &stock, &own, &known);
        assert_eq!((found.stock, found.purlin, found.unexpected), (5, 3, 1));
        let lines = "repeated x/s_SUITE b@g failed at first: too late\n\
                     unexpected x/s_SUITE c failed for good\n\
                     known x/s_SUITE d never\n\
                     repeated x/s_SUITE e failed at first: did not run\n";
        assert_eq!(found.differences, lines);
    }

    #[test]
    fn groups_may_be_left_out() {
        assert_eq!(plain("case@group"), "case");
        assert_eq!(plain("group/case"), "case");
        assert_eq!(plain("case"), "case");
    }
}
