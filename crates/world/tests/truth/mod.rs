//! Random programs of calls, run on a model and on the kernel, whose results are compared.
//!
//! `WORLD_PROGRAMS` sets their number, `WORLD_SEED` the seed of the first; each has the seed after
//! that of the one before. A program that differs is shrunk by removing calls and printed.

use purlin_world::Errno;
use purlin_world::streams::Stream;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

/// The sample that runs without `WORLD_PROGRAMS` ends after this time.
const SAMPLE: Duration = Duration::from_secs(2);

/// The number of programs in which every result that is wanted comes up.
const ENOUGH: u64 = 2000;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
    )
}

/// The calls that the programs of a test have agreed in.
#[derive(Default)]
pub struct Count {
    pub programs: u64,
    pub calls: u64,
    /// Calls that failed on both sides.
    pub failed: u64,
    /// Calls that the model refused, and the kernel was not asked.
    pub refused: u64,
    /// Numbers of calls by name and result.
    results: BTreeMap<(String, String), u64>,
}

impl Count {
    /// Counts a call, with the number of its error.
    pub fn call(&mut self, call: &impl Debug, error: Option<Errno>) {
        self.calls += 1;
        self.failed += u64::from(error.is_some());
        let text = format!("{call:?}");
        let name = text.trim_start_matches(|c: char| c.is_ascii_digit() || " =".contains(c));
        let name = name.split([' ', '(']).next().unwrap_or_default().to_owned();
        let error = error.map_or("ok".to_owned(), |e| format!("{e:?}"));
        *self.results.entry((name, error)).or_default() += 1;
    }

    /// Counts a call that the model refused.
    pub fn refused(&mut self) {
        self.calls += 1;
        self.refused += 1;
    }

    /// Adds the calls of another count.
    #[allow(dead_code)]
    pub fn add(&mut self, other: Count) {
        self.calls += other.calls;
        self.failed += other.failed;
        self.refused += other.refused;
        for (key, n) in other.results {
            *self.results.entry(key).or_default() += n;
        }
    }

    /// Prints the numbers, and fails if a result that is wanted has not come up.
    fn report(&self, what: &str, time: Duration, wanted: &[(&str, &str)]) {
        let Count {
            programs,
            calls,
            failed,
            refused,
            results,
        } = self;
        println!("{what}: {programs} programs agree, in {time:?}");
        println!("  {calls} calls, {failed} fail, {refused} are refused by the model");
        let mut line = String::new();
        for ((name, result), n) in results {
            if !line.starts_with(&format!("  {name} ")) {
                println!("{line}");
                line = format!("  {name} ");
            }
            line += &format!(" {result} {n}");
        }
        println!("{line}");
        // A machine under load runs few programs in the time of a sample.
        for (name, result) in wanted.iter().filter(|_| *programs >= ENOUGH) {
            let key = (name.to_string(), result.to_string());
            assert!(
                results.contains_key(&key),
                "{what}: no {name} with {result}"
            );
        }
        assert!(failed * 3 < calls * 2, "too many calls fail");
        assert!(refused * 10 < *calls, "too many calls are refused");
    }
}

/// Compares programs that `draw` makes; `run` describes the first difference of one. Of the number
/// of programs asked for it runs one part of `share`, and each result of `must` has to come up.
pub fn compare<C: Clone + Debug>(
    what: &str,
    share: u64,
    must: &[(&str, &str)],
    draw: impl Fn(&mut Stream) -> Vec<C>,
    mut run: impl FnMut(&[C], &mut Count) -> Result<(), String>,
) {
    let first = setting("WORLD_SEED").unwrap_or(1);
    let wanted = setting("WORLD_PROGRAMS").map(|n| n / share);
    let begun = Instant::now();
    let mut count = Count::default();
    for seed in first.. {
        let enough = match wanted {
            Some(n) => count.programs >= n,
            None => begun.elapsed() >= SAMPLE,
        };
        if enough {
            break;
        }
        let program = draw(&mut Stream::from_state(seed));
        if let Err(difference) = run(&program, &mut count) {
            let (program, difference) =
                shrunk(program, difference, |p| run(p, &mut Count::default()).err());
            let calls: Vec<String> = program.iter().map(|c| format!("  {c:?}")).collect();
            panic!(
                "{what}: WORLD_SEED={seed}:\n{}\n{difference}",
                calls.join("\n")
            );
        }
        count.programs += 1;
    }
    count.report(what, begun.elapsed(), must);
}

/// Removes calls as long as the program differs, first many at once, then one by one.
fn shrunk<C: Clone>(
    mut program: Vec<C>,
    mut difference: String,
    mut differs: impl FnMut(&[C]) -> Option<String>,
) -> (Vec<C>, String) {
    let mut size = program.len().div_ceil(2);
    while size > 0 {
        let mut removed = false;
        let mut at = 0;
        while at < program.len() {
            let mut fewer = program.clone();
            fewer.drain(at..(at + size).min(program.len()));
            match differs(&fewer) {
                Some(d) => {
                    (program, difference, removed) = (fewer, d, true);
                }
                None => at += size,
            }
        }
        if !removed || size > program.len() {
            size /= 2;
        }
    }
    (program, difference)
}
