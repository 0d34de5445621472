//! The sweep: each program of `tests/programs/erlang` runs again and again, each time with another
//! of its system calls failing (`purlin schedules --fail-nth`). The runtime must not crash, and the
//! run must end. What the program makes of the error is its own affair.
//!
//! ```text
//! cargo xtask sweep                 all programs
//! ONLY=files cargo xtask sweep      those with that part of a name
//! ```
//!
//! - `CALLS`: the calls that fail (`all`). `SPAN`: `once`, `ever` or `both` (`once`).
//! - `RUNS`: maximum number of runs of a program (300). `EVERY`: only each Nth program (1).
//! - `LIMIT`: maximum number of seconds for a program (300). `JOBS`: programs at once.
//! - `PURLIN`: the executable (see `Settings::executable`).
//!
//! A fault is a run that is ended by a signal or without a report, or that the limit ends; the
//! status is 1 then. Runs that deadlock or hang are counted, and listed with `VERBOSE=1`: a program
//! that waits for what a failed call would have sent does so on stock, too.

use crate::Outcome;
use crate::environment::{Settings, in_parallel, root, status_number};
use crate::work_dir::WorkDir;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Runs the command.
pub fn run(settings: &Settings, arguments: &[String]) -> Outcome {
    if let Some(word) = arguments.first() {
        return Err(format!("xtask sweep takes no '{word}'"));
    }
    sweep(settings, &Mutex::new(std::io::stdout()))
}

/// Returns the programs, sorted.
fn programs(settings: &Settings) -> Result<Vec<PathBuf>, String> {
    let top = root().join("tests/programs/erlang");
    let entries = |dir: &Path| -> Result<Vec<PathBuf>, String> {
        let all = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        Ok(all.filter_map(|e| Some(e.ok()?.path())).collect())
    };
    let mut all = Vec::new();
    for topic in entries(&top)?.into_iter().filter(|p| p.is_dir()) {
        all.extend(entries(&topic)?);
    }
    let wanted = settings.words("ONLY");
    let every = settings.number("EVERY", 1)?.max(1) as usize;
    all.retain(|p| {
        let name = p.file_stem().unwrap_or_default().to_string_lossy();
        let erlang = p.extension().is_some_and(|e| e == "erl");
        erlang && (wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str())))
    });
    all.sort();
    Ok(all.into_iter().step_by(every).collect())
}

/// Sweeps programs, and writes what a user sees to `output`.
pub fn sweep(settings: &Settings, output: &Mutex<impl Write + Send>) -> Outcome {
    let began = Instant::now();
    let purlin = settings.executable()?;
    let work = WorkDir::new("sweep")?;
    let (limit, runs) = (
        settings.number("LIMIT", 300)?,
        settings.number("RUNS", 300)?,
    );
    let all = programs(settings)?;
    if all.is_empty() {
        return Err("no program has such a name".into());
    }
    let next = AtomicUsize::new(0);
    let total = Mutex::new(Total::default());
    in_parallel(settings.jobs()?, |_| {
        while let Some(program) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = program.file_stem().unwrap_or_default().to_string_lossy();
            let dir = work.path().join(&*name);
            fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
            let mut c = settings.ended_after(limit, 10);
            c.current_dir(&dir);
            c.arg(&purlin).args(["schedules", "--seed", "1"]);
            c.args(["--fail-nth", settings.get("CALLS").unwrap_or("all")]);
            c.args(["--fail-for", settings.get("SPAN").unwrap_or("once")]);
            c.args(["--expect", "any", "--keep-going", "--fresh-dir", "--json"]);
            c.args([
                "--seeds",
                &runs.to_string(),
                "--to",
                "failed.psch",
                "--",
                "run",
            ]);
            let o = c.arg(program).output().map_err(|e| e.to_string())?;
            let said = String::from_utf8_lossy(&o.stdout).into_owned();
            let of = Swept::of(status_number(o.status), &said);
            let mut total = total.lock().unwrap_or_else(|e| e.into_inner());
            total.add(&of);
            let verbose = settings.is_set("VERBOSE") && of.stuck > 0;
            if of.fault.is_some() || verbose {
                let why = of.fault.unwrap_or("stuck");
                let errors = String::from_utf8_lossy(&o.stderr);
                let text = format!("{}: {why}\n{said}{errors}\n", program.display());
                let mut out = output.lock().unwrap_or_else(|e| e.into_inner());
                let _ = out.write_all(text.as_bytes());
            }
            let _ = fs::remove_dir_all(&dir);
        }
        Ok(())
    })?;
    let t = total.into_inner().unwrap_or_else(|e| e.into_inner());
    let text = format!(
        "{} programs, {} of them base alone, {} runs with a failing call, {} stuck, {} faults in {} seconds\n",
        all.len(),
        t.unswept,
        t.runs,
        t.stuck,
        t.faults,
        began.elapsed().as_secs()
    );
    let mut out = output.lock().unwrap_or_else(|e| e.into_inner());
    let _ = out.write_all(text.as_bytes());
    Ok(i32::from(t.faults > 0))
}

#[derive(Default)]
struct Total {
    runs: u64,
    stuck: u64,
    faults: u64,
    /// Programs that fail without any failing call, or wait for something from outside.
    unswept: u64,
}

impl Total {
    fn add(&mut self, s: &Swept) {
        self.runs += s.runs;
        self.stuck += s.stuck;
        self.faults += u64::from(s.fault.is_some());
        self.unswept += u64::from(s.runs == 0 && s.fault.is_none());
    }
}

/// The sweep of a program.
struct Swept {
    runs: u64,
    stuck: u64,
    fault: Option<&'static str>,
}

impl Swept {
    /// Reads the result of `purlin schedules`.
    fn of(status: i32, said: &str) -> Swept {
        let runs = said.split("\"runs\":").nth(1).and_then(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().ok()
        });
        let stuck = said.matches("\"ended\":\"deadlocks\"").count()
            + said.matches("\"ended\":\"hangs\"").count();
        let fault = if said.contains("\"ended\":\"is ended by signal") {
            Some("a run is ended by a signal")
        } else if said.contains("\"ended\":\"ends without a report") {
            Some("a run ends without a report")
        } else if status >= 124 || runs.is_none() && status == 71 {
            Some("the sweep does not end, or crashes")
        } else {
            None
        };
        Swept {
            runs: runs.unwrap_or(0),
            stuck: stuck as u64,
            fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read() {
        let s = Swept::of(
            1,
            r#"{"failed":true,"runs":17,"failures":[{"ended":"hangs"}]}"#,
        );
        assert_eq!((s.runs, s.stuck, s.fault), (17, 1, None));
        let s = Swept::of(
            1,
            r#"{"runs":3,"failures":[{"ended":"is ended by signal 6"}]}"#,
        );
        assert!(s.fault.is_some());
        assert!(Swept::of(124, "").fault.is_some());
        assert!(Swept::of(0, r#"{"failed":false,"runs":3}"#).fault.is_none());
    }
}
