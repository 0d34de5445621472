//! Reduces a program or a schedule that has found a fault, so that there is less to read.
//!
//! A candidate is kept if it still fails. Candidates run for real, so their number and their time
//! are limited ([`Tries`]); what has been reached then is the result.

use std::time::{Duration, Instant};

/// Maximum number of candidates.
const MOST_TRIES: usize = 30;
/// No candidate begins after this time.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The candidates that may still be tried.
pub struct Tries {
    left: usize,
    end: Instant,
}

impl Tries {
    /// The candidates for one fault.
    pub fn new() -> Tries {
        Tries {
            left: MOST_TRIES,
            end: Instant::now() + TIME_LIMIT,
        }
    }
    /// Whether a candidate fails. One that may not be tried any more counts as good.
    fn fail(&mut self, candidate: impl FnOnce() -> bool) -> bool {
        if self.left == 0 || Instant::now() >= self.end {
            return false;
        }
        self.left -= 1;
        candidate()
    }
    /// Returns the smallest number above 0 that is found to fail, given that `from` fails: `from`
    /// is halved as long as that fails, and what failed last is approached from below.
    pub fn least(&mut self, from: u64, fails: impl Fn(u64) -> bool) -> u64 {
        let mut failed = from;
        while failed > 1 && self.fail(|| fails(failed / 2)) {
            failed /= 2;
        }
        let mut good = failed / 2;
        while failed - good > 1 {
            let middle = good + (failed - good) / 2;
            match self.fail(|| fails(middle)) {
                true => failed = middle,
                false => good = middle,
            }
        }
        failed
    }
    /// Returns those of `words` without which nothing fails, given that all of them fail.
    pub fn fewest(&mut self, words: &[&str], fails: impl Fn(&[&str]) -> bool) -> Vec<String> {
        let mut kept = words.to_vec();
        let mut i = 0;
        while i < kept.len() {
            let mut fewer = kept.clone();
            fewer.remove(i);
            match !fewer.is_empty() && self.fail(|| fails(&fewer)) {
                true => kept = fewer,
                false => i += 1,
            }
        }
        kept.into_iter().map(String::from).collect()
    }
}

impl Default for Tries {
    fn default() -> Tries {
        Tries::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn numbers_shrink_to_the_least_that_fails() {
        for least in 1..=60 {
            assert_eq!(Tries::new().least(60, |n| n >= least), least);
        }
        assert_eq!(Tries::new().least(1, |_| true), 1);
    }

    #[test]
    fn words_that_do_not_matter_go() {
        let fails = |words: &[&str]| words.contains(&"S2") && words.contains(&"fence");
        let all = ["release", "S2", "shared", "fence", "stress7"];
        assert_eq!(Tries::new().fewest(&all, fails), ["S2", "fence"]);
        assert_eq!(Tries::new().fewest(&["release"], |_| true), ["release"]);
    }

    #[test]
    fn candidates_are_limited() {
        let tried = Cell::new(0);
        let fails = |n: u64| {
            tried.set(tried.get() + 1);
            n > 1 << 30
        };
        let mut tries = Tries::new();
        let first = tries.least(u64::MAX, fails);
        let second = tries.least(first, fails);
        assert_eq!((tried.get(), first), (MOST_TRIES, second));
    }
}
