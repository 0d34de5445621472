//! Storms: random programs that do to sockets, timers, ports and whatever else processes share
//! anything they may, from all sides at once, and check that nothing is lost, doubled or late. See
//! docs/storms.md and `tests/storms`.
//!
//! ```text
//! cargo xtask storms [SECONDS]                            all storms in random modes (60 seconds)
//! SEED=N ONLY=storm_timers [MODES=...] cargo xtask storms one run again
//! ```
//!
//! A mode is a list such as `S2,always,delays7`: schedulers (`S1`, `S2`, `S4`), what has machine
//! code (`off`, `always`, `chaos` with its seed: `PURLIN_JIT`, see docs/machine-code.md), and
//! delays where locks are released, with their seed (`PURLIN_DELAYS=SEED`). It follows from the
//! seed.
//!
//! - `ONLY`: storms by name (`storm_sockets`, or `sockets`). `PARTS`: parts of them, as
//!   `PARTS="stream closes"`.
//! - `ON=stock`: stock's emulator. `PURLIN`: the executable (see `Settings::executable`).
//! - `RELEASES`: of OTP, in turn: `machine`, otp27, otp29 (roots of `scripts/roots.sh`, in
//!   `ROOTS`); by default those that are there.
//! - `MODES`: the mode of all runs. `DELAYS=always`: no mode without delays.
//! - `EACH`: seconds for a run (4). `JOBS`: the number of runs at once.
//! - `ALL=1`: until the time is over and each storm has had its turn.
//! - `LIMIT`: maximum number of seconds for a run (150 and `EACH`). `FIRST`: the first seed (from
//!   the clock).
//! - `PATIENCE`: the factor for this limit and for the times after which something counts as late;
//!   by default the number of programs that wait for each processor when a run begins.
//!
//! A fault is reported with the line that runs it again. If it shows with fewer words of the mode
//! too, that is tried for up to a minute (not with `SEED`), another line has them. Its output is in
//! `target/storms/failures`, and the status is 1.

use crate::Outcome;
use crate::environment::{Dice, Settings, in_parallel, now, root, status_number};
use crate::hunt::schedulers;
use crate::otp_release::{Otp, roots};
use crate::reduce::Tries;
use crate::work_dir::WorkDir;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Largest factor for times after which something counts as late.
const MOST_PATIENCE: u64 = 20;

/// Runs the command, and prints the faults and how many runs there were.
pub fn run(settings: &Settings, arguments: &[String]) -> Outcome {
    storm(settings, arguments, &Mutex::new(std::io::stdout()))
}

/// Runs storms, and writes what a user sees to `output`.
pub fn storm(
    settings: &Settings,
    arguments: &[String],
    output: &Mutex<impl Write + Send>,
) -> Outcome {
    let started = Instant::now();
    let mut settings = settings.clone();
    settings.take_seconds(arguments)?;
    let work = WorkDir::new("storms")?;
    let storms = Storms::new(&settings, &work, output)?;
    if settings.is_set("SEED") {
        storms.one_seed()?;
    } else {
        let (first, jobs) = (settings.number("FIRST", now())?, settings.jobs()?);
        in_parallel(jobs, |job| storms.worker(first, job, jobs))?;
    }
    let runs = storms.runs.load(Ordering::Relaxed);
    let faults = storms.faults.load(Ordering::Relaxed);
    let seconds = started.elapsed().as_secs();
    storms.say(format!("{runs} runs, {faults} faults in {seconds} seconds\n").as_bytes());
    Ok(i32::from(faults > 0))
}

/// The state that all runs share.
struct Storms<'a, W: Write + Send> {
    settings: &'a Settings,
    output: &'a Mutex<W>,
    dir: &'a Path,
    failures: PathBuf,
    /// The executable, or `None` to run stock.
    purlin: Option<PathBuf>,
    releases: Vec<Otp>,
    names: Vec<String>,
    /// Seconds for a run, and those after which it is killed.
    each: u64,
    limit: u64,
    seconds: u64,
    end: Instant,
    runs: AtomicUsize,
    faults: AtomicUsize,
}

impl<'a, W: Write + Send> Storms<'a, W> {
    fn new(
        settings: &'a Settings,
        work: &'a WorkDir,
        output: &'a Mutex<W>,
    ) -> Result<Self, String> {
        let purlin = match settings.get("ON") {
            None | Some("purlin") => Some(settings.executable()?),
            Some("stock") => None,
            Some(other) => return Err(format!("ON={other}: purlin or stock")),
        };
        let failures = root().join("target/storms/failures");
        fs::create_dir_all(&failures).map_err(|e| format!("{}: {e}", failures.display()))?;
        let names = names(settings)?;
        let releases = releases(settings)?;
        let sources: Vec<PathBuf> = erlang_files()?;
        for release in &releases {
            let modules = work.folder(&release.name)?;
            release.settings(settings).compile(&modules, &sources)?;
        }
        let seconds = settings.number("SECONDS", 60)?;
        let each = settings.number("EACH", 4)?;
        Ok(Storms {
            settings,
            output,
            dir: work.path(),
            failures,
            purlin,
            releases,
            names,
            each,
            limit: settings.number("LIMIT", 150 + each)?,
            seconds,
            end: Instant::now() + Duration::from_secs(seconds),
            runs: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
        })
    }

    fn say(&self, text: &[u8]) {
        let mut output = self.output.lock().unwrap_or_else(|e| e.into_inner());
        let _ = output.write_all(text).and_then(|()| output.flush());
    }

    /// Runs each storm with `SEED` on each release, and prints what it says.
    fn one_seed(&self) -> Result<(), String> {
        let seed = self.settings.number("SEED", 0)?;
        for release in &self.releases {
            for name in &self.names {
                let out = self.one(name, seed, release, self.seconds)?;
                self.say(&fs::read(out).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// Runs every `jobs`th seed, each with the next storm; after all storms comes the next release.
    fn worker(&self, first: u64, job: u64, jobs: u64) -> Result<(), String> {
        let mut k = job;
        let count = self.names.len() as u64;
        while Instant::now() < self.end || self.settings.is_set("ALL") && k < count {
            let name = &self.names[(k % count) as usize];
            let turn = k / count % self.releases.len() as u64;
            self.one(name, first + k, &self.releases[turn as usize], self.each)?;
            k += jobs;
        }
        Ok(())
    }

    /// Runs a storm, and returns the file with its output.
    fn one(&self, name: &str, seed: u64, release: &Otp, seconds: u64) -> Result<PathBuf, String> {
        let always = self.settings.get("DELAYS") == Some("always");
        let mode = self.settings.get("MODES").map(str::to_string);
        let mode = mode.unwrap_or_else(|| random_mode(seed, always));
        let out = self.dir.join(format!("{name}-{seed}-{}", release.name));
        let begun = Instant::now();
        let status = self
            .execute(name, seed, release, &mode, seconds, &out)
            .map_err(|e| format!("{name}: {e}"))?;
        self.runs.fetch_add(1, Ordering::Relaxed);
        if status == 0 {
            return Ok(out);
        }
        let text = fs::read(&out).unwrap_or_default();
        let again = self.again(name, seed, release, &mode);
        let what = match status {
            1 => {
                let text = String::from_utf8_lossy(&text);
                let line = text.lines().find(|l| l.contains("FAULT"));
                line.map(|l| l.chars().take(400).collect::<String>())
            }
            137 => Some(format!(
                "FAULT no end within {} seconds, times PATIENCE",
                self.limit
            )),
            _ => None,
        };
        let what = what.unwrap_or_else(|| format!("FAULT status {status}"));
        let kept = [format!("{again}\n").as_bytes(), &text].concat();
        let file = format!("{name}-{seed}-{}.txt", release.name);
        let _ = fs::write(self.failures.join(file), kept);
        let after = begun.elapsed().as_secs();
        self.say(format!("{what} (after {after} seconds): {again}\n").as_bytes());
        self.faults.fetch_add(1, Ordering::Relaxed);
        // A hang takes too long to be tried again and again.
        if status != 137 && !self.settings.is_set("SEED") {
            let fewer = self.fewest_words(name, seed, release, &mode);
            if fewer != mode {
                let again = self.again(name, seed, release, &fewer);
                self.say(format!("  with less: {again}\n").as_bytes());
            }
        }
        Ok(out)
    }

    /// The words of a mode without which the storm was not seen to fail. A storm that fails now and
    /// then may keep words that do not matter.
    fn fewest_words(&self, name: &str, seed: u64, release: &Otp, mode: &str) -> String {
        let out = self
            .dir
            .join(format!("{name}-{seed}-{}-again", release.name));
        let words: Vec<&str> = mode.split(',').collect();
        let fails = |words: &[&str]| {
            let status = self.execute(name, seed, release, &words.join(","), self.each, &out);
            matches!(status, Ok(status) if status != 0)
        };
        Tries::new().fewest(&words, fails).join(",")
    }

    /// The factor for times after which something counts as late.
    fn patience(&self) -> u64 {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|l| l.parse::<f64>().ok());
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
        let waiting = (load.unwrap_or(0.0) / processors as f64).ceil() as u64;
        let given = self.settings.number("PATIENCE", waiting);
        given.unwrap_or(waiting).clamp(1, MOST_PATIENCE)
    }

    /// The line that runs it again.
    fn again(&self, name: &str, seed: u64, release: &Otp, mode: &str) -> String {
        let mut again = String::new();
        if let Some(plant) = self.settings.get("PURLIN_PLANT") {
            again += &format!("PURLIN_PLANT={plant} ");
        }
        let on = if self.purlin.is_some() {
            "purlin"
        } else {
            "stock"
        };
        again += &format!("ON={on} RELEASES={} ONLY={name} ", release.name);
        if let Some(parts) = self.settings.get("PARTS") {
            again += &format!("PARTS=\"{parts}\" ");
        }
        again + &format!("SEED={seed} MODES={mode} cargo xtask storms")
    }

    fn execute(
        &self,
        name: &str,
        seed: u64,
        release: &Otp,
        mode: &str,
        seconds: u64,
        out: &Path,
    ) -> std::io::Result<i32> {
        let files = out.with_extension("files");
        fs::create_dir_all(&files)?;
        let patience = self.patience();
        let limit = self.limit * patience;
        let mut command = release.settings(self.settings).killed_after(limit);
        command.env("STORM_PATIENCE", patience.to_string());
        let mut flags = Vec::new();
        for word in mode.split(',') {
            let seed = |name| {
                word.strip_prefix(name)
                    .filter(|s| !s.is_empty())
                    .unwrap_or("1")
            };
            match word {
                "off" | "always" => {
                    command.env("PURLIN_JIT", word);
                }
                _ if word.starts_with("chaos") => {
                    command.env("PURLIN_JIT", format!("chaos:{}", seed("chaos")));
                }
                _ if word.starts_with("delays") => {
                    command.env("PURLIN_DELAYS", seed("delays"));
                }
                _ => flags.extend(schedulers(word)),
            }
        }
        command.env("STORM_DIR", &files);
        command.env("STORM_PARTS", self.settings.get("PARTS").unwrap_or(""));
        command
            .env("ERL_CRASH_DUMP", "/dev/null")
            .args(&self.purlin);
        command.arg("erl").args(flags).args(["-noshell", "-pa"]);
        command.arg(self.dir.join(&release.name));
        command.args(["-run", "storm", "main", name, &seed.to_string()]);
        command
            .arg((seconds * 1000).to_string())
            .current_dir(root());
        let file = File::create(out)?;
        command.stdout(file.try_clone()?).stderr(file);
        let status = status_number(command.status()?);
        fs::remove_dir_all(&files)?;
        Ok(status)
    }
}

/// The modules of `tests/storms`, sorted.
fn erlang_files() -> Result<Vec<PathBuf>, String> {
    let dir = root().join("tests/storms");
    let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.retain(|f| f.extension().is_some_and(|e| e == "erl"));
    all.sort();
    Ok(all)
}

/// The storms that `ONLY` names, or all.
fn names(settings: &Settings) -> Result<Vec<String>, String> {
    let only = settings.words("ONLY");
    let names = erlang_files()?.into_iter();
    let names = names.filter_map(|f| Some(f.file_stem()?.to_str()?.to_string()));
    let chosen: Vec<String> = names
        .filter(|n| {
            let short = n.strip_prefix("storm_");
            short.is_some_and(|s| only.is_empty() || only.iter().any(|o| o == n || o == s))
        })
        .collect();
    if chosen.is_empty() {
        return Err(format!("no storm is called {}", only.join(" ")));
    }
    Ok(chosen)
}

/// The releases that `RELEASES` names, or those that are there.
fn releases(settings: &Settings) -> Result<Vec<Otp>, String> {
    let mut words = settings.words("RELEASES");
    if words.is_empty() {
        words = ["machine", "otp27", "otp29"].map(String::from).into();
        words.retain(|r| r == "machine" || roots(settings).join(r).join("bin/erl").exists());
    }
    words.iter().map(|r| Otp::named(settings, r)).collect()
}

/// The mode that follows from a seed: schedulers, machine code, delays.
fn random_mode(seed: u64, always_delays: bool) -> String {
    let mut dice = Dice::new(seed);
    let mut mode = dice.pick("S1 S2 S2 S4").to_string();
    match dice.pick("- off always chaos") {
        "-" => {}
        "chaos" => mode += &format!(",chaos{}", dice.below(1000) + 1),
        word => mode += &format!(",{word}"),
    }
    if dice.below(4) > 0 || always_delays {
        mode += &format!(",delays{}", dice.below(1000) + 1);
    }
    mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_follow_from_the_seed() {
        assert_eq!(random_mode(9, false), random_mode(9, false));
        let all: Vec<String> = (0..200).map(|n| random_mode(n, false)).collect();
        for word in ["S1", "S4", "off", "always", "chaos", "delays"] {
            assert!(all.iter().any(|m| m.contains(word)), "{word}");
        }
        assert!(all.iter().any(|m| !m.contains("delays")));
        assert!((0..200).all(|n| random_mode(n, true).contains("delays")));
    }

    #[test]
    fn names_are_long_or_short() {
        let mut settings = Settings::default();
        settings.set("ONLY", "timers storm_files");
        assert_eq!(
            names(&settings),
            Ok(vec!["storm_files".into(), "storm_timers".into()])
        );
        settings.set("ONLY", "nothing");
        assert!(names(&settings).is_err());
    }
}
