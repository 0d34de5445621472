//! Runs OTP's and Elixir's own test suites, unmodified, on stock and on Purlin, and says case by
//! case where they differ.
//!
//! ```text
//! cargo xtask conformance [SUITE…]      none: those listed in tests/otp/suites
//! cargo xtask conformance from FILE     takes results of runs made elsewhere
//! ```
//!
//! The lines of FILE are `APP/SUITE CASE STOCK PURLIN`; `MEASURED` says what was measured, in place
//! of the versions of here.
//!
//! A suite is one of OTP's with its application (`stdlib/lists_SUITE`) or without (`lists_SUITE`),
//! or `elixir/APP` for an application of Elixir's (`elixir/eex`). `emulator`, `stdlib`, `kernel`,
//! `compiler`, `mnesia` and `elixir` stand for all of theirs.
//!
//! - The sources come from the distribution (`apt-get source`) into `CACHE`
//!   (`~/.cache/purlin/conformance`). `OTP_SOURCE` and `ELIXIR_SOURCE` name trees that are there
//!   already. `RELEASE=otp27` takes a root of `scripts/roots.sh`.
//! - Stock's results are measured once and kept in the cache; `STOCK=again` measures them again.
//! - `PURLIN`: the executable (see `Settings::executable`); `PURLIN=stock` compares stock with
//!   itself.
//! - `SUITE_SECONDS`: the limit of a suite (600; 1800 for one of Elixir's). A case of OTP's that
//!   takes the runtime down counts as failed, and the suite continues without it, `RESTARTS` (15)
//!   times. In Elixir's, what then has not run has not passed.
//! - `RESUME=1` leaves out suites that were measured with this very executable, and takes their
//!   results as they are.
//! - `TABLE=1` also writes the table in `tests/otp/results.md` and the totals in docs/testing.md,
//!   with the date and the versions, after each suite. Rows of suites that a run leaves out stay.
//!
//! Suites run in a node with a name, as upstream runs them, with an epmd of its own on each side.
//! Nodes that they start run on what is measured.
//!
//! Cases of OTP's that fail on Purlin only are repeated once, without the others of their suite: a
//! busy machine, or what the case before left behind, may be to blame. One that passes then counts
//! as passed.
//!
//! Known failures are in `tests/otp/known-failures-APP.txt` and `tests/elixir/known-failures.txt`,
//! lines `SUITE CASE REASON`. A reason that begins with `sometimes` is that of a case whose outcome
//! depends on time, and one that begins with `left out:` that of a case which does not run here at
//! all, since it would do harm. The table goes to standard output, the cases that differ to
//! `CACHE/differences.txt`, each with `unexpected`, `known` or `repeated` before it. The status is
//! 1 if there are unexpected ones, or known ones that pass.

use crate::Outcome;
use crate::environment::{Settings, root};
use crate::suite_sources::Sources;
use crate::verdict_table::{
    Verdict, compare, fallen, known, of_lines, read, take_passed, to_repeat, write,
};
use crate::work_dir::{WorkDir, processes};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs suites, and prints their table.
pub fn run(settings: &Settings, arguments: &[String]) -> Outcome {
    let is_measured_elsewhere = arguments.first().is_some_and(|a| a == "from");
    let suites = match is_measured_elsewhere {
        true => Vec::new(),
        false => meant(arguments)?,
    };
    let mut sources = Sources::new(settings)?;
    let mut table = Table::new(&sources.cache, settings)?;
    println!(
        "{:<32} {:>7} {:>7} {:>7} {:>9} {:>8}",
        "suite", "stock", "Purlin", "of", "per cent", "unexpected"
    );
    if is_measured_elsewhere {
        let file = arguments
            .get(1)
            .ok_or("from: a file of results is missing")?;
        from_file(&mut table, file)?;
        return table.end();
    }
    let purlin = match settings.get("PURLIN") {
        Some("stock") => None,
        _ => Some(settings.executable()?),
    };
    sources.find(&suites)?;
    table.by = match &purlin {
        None => "stock".to_string(),
        Some(file) => checksum(file)?,
    };
    let runner = Runner {
        sources: &sources,
        purlin,
        restarts: settings.number("RESTARTS", 15)?,
        seconds: settings.number("SUITE_SECONDS", 0)?,
    };
    for suite in &suites {
        let Some(dir) = sources.prepare(suite)? else {
            println!("{suite:<32} cannot be compiled here");
            continue;
        };
        let verdicts = |side: &str| sources.cache.join(side).join(suite);
        let has_stock = fs::metadata(verdicts("stock")).is_ok_and(|m| m.len() > 0);
        if !has_stock || settings.get("STOCK") == Some("again") {
            runner.suite("stock", suite, &dir)?;
        }
        if !settings.is_set("RESUME") || !table.is_measured(suite) {
            runner.suite("purlin", suite, &dir)?;
        }
        let both = ["stock", "purlin"].map(|s| fs::read_to_string(verdicts(s)).unwrap_or_default());
        table.row(suite, &read(&both[0]), &read(&both[1]))?;
    }
    table.end()
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |e| format!("{}: {e}", path.display())
}

/// The suites that words mean. A word that means none of the listed ones stands for itself.
fn meant(arguments: &[String]) -> Result<Vec<String>, String> {
    let list = root().join("tests/otp/suites");
    let text = fs::read_to_string(&list).map_err(io(&list))?;
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    let all: Vec<String> = lines
        .flat_map(str::split_whitespace)
        .map(str::to_string)
        .collect();
    if arguments.is_empty() {
        return Ok(all);
    }
    let mut suites = Vec::new();
    for word in arguments {
        let unknown = || format!("{word}: neither a suite nor an application of tests/otp/suites");
        suites.extend(of_word(&all, word).ok_or_else(unknown)?);
    }
    Ok(suites)
}

/// The suites that a word of the command line means. One that is not on the list may be there all
/// the same.
fn of_word(all: &[String], word: &str) -> Option<Vec<String>> {
    let is_meant = |suite: &&String| {
        let (app, name) = suite.split_once('/').unwrap_or(("", suite));
        suite.as_str() == word || app == word || name == word && word.ends_with("_SUITE")
    };
    let found: Vec<String> = all.iter().filter(is_meant).cloned().collect();
    match found.is_empty() {
        false => Some(found),
        true if word.contains('/') || word.ends_with("_SUITE") => Some(vec![word.to_string()]),
        true => None,
    }
}

/// A checksum of the executable, by which `RESUME` knows it.
fn checksum(file: &Path) -> Result<String, String> {
    let out = Command::new("md5sum").arg(file).output();
    let out = out.map_err(|e| format!("md5sum: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let sum = text.split(' ').next().filter(|s| s.len() == 32);
    sum.map(str::to_string)
        .ok_or_else(|| format!("{}: no checksum", file.display()))
}

/// Takes verdicts that were measured elsewhere.
fn from_file(table: &mut Table, file: &str) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(io(Path::new(file)))?;
    let mut suites: BTreeMap<String, [Vec<Verdict>; 2]> = BTreeMap::new();
    for line in text.lines() {
        let [suite, case, stock, purlin, ..] = line.split_whitespace().collect::<Vec<_>>()[..]
        else {
            continue;
        };
        let of = |verdict: &str| Verdict {
            case: case.to_string(),
            verdict: match verdict {
                "pass" => "passed",
                other => other,
            }
            .to_string(),
            reason: String::new(),
        };
        let [stocks, purlins] = suites.entry(suite.to_string()).or_default();
        stocks.push(of(stock));
        purlins.push(of(purlin));
    }
    table.by = "elsewhere".to_string();
    for (suite, [stock, purlin]) in &suites {
        table.row(suite, stock, purlin)?;
    }
    Ok(())
}

/// The table of results and the lists of differences.
struct Table<'a> {
    settings: &'a Settings,
    cache: PathBuf,
    /// The measured thing: the checksum of the executable, `stock` or `elsewhere`.
    by: String,
    differences: String,
    stale: Vec<String>,
    /// Cases that stock passes and that Purlin passes, by application.
    sums: BTreeMap<String, [usize; 2]>,
}

impl<'a> Table<'a> {
    fn new(cache: &Path, settings: &'a Settings) -> Result<Table<'a>, String> {
        let table = Table {
            settings,
            cache: cache.to_path_buf(),
            by: String::new(),
            differences: String::new(),
            stale: Vec::new(),
            sums: BTreeMap::new(),
        };
        table.save()?;
        Ok(table)
    }

    fn save(&self) -> Result<(), String> {
        let file = self.cache.join("differences.txt");
        fs::write(&file, &self.differences).map_err(io(&file))
    }

    /// Whether a suite was measured with this executable.
    fn is_measured(&self, suite: &str) -> bool {
        let text = fs::read_to_string(self.cache.join("measured").join(suite));
        text.is_ok_and(|t| t.trim_end().ends_with(&format!(" {}", self.by)))
    }

    /// Compares the verdicts of a suite, and prints its row.
    fn row(&mut self, suite: &str, stock: &[Verdict], purlin: &[Verdict]) -> Result<(), String> {
        let (app, name) = suite.split_once('/').unwrap_or(("", suite));
        let list = match app {
            "elixir" => "tests/elixir/known-failures.txt".to_string(),
            _ => format!("tests/otp/known-failures-{app}.txt"),
        };
        let list = fs::read_to_string(root().join(list)).unwrap_or_default();
        let found = compare(suite, stock, purlin, &known(&list, name));
        self.differences += &found.differences;
        self.save()?;
        self.stale.extend(found.stale);
        println!(
            "{suite:<32} {:>7} {:>7} {:>7} {:>8.1}% {:>8}",
            found.stock,
            found.purlin,
            found.all,
            per_cent(found.purlin, found.stock),
            found.unexpected
        );
        let measured = self.cache.join("measured").join(suite);
        // What stock passes none of measures nothing.
        if found.stock == 0 {
            let _ = fs::remove_file(&measured);
            return Ok(());
        }
        for name in [app, "all"] {
            let sum = self.sums.entry(name.to_string()).or_default();
            *sum = [sum[0] + found.stock, sum[1] + found.purlin];
        }
        if let Some(dir) = measured.parent() {
            fs::create_dir_all(dir).map_err(io(dir))?;
        }
        let numbers = format!("{suite} {} {} {}", found.stock, found.purlin, found.all);
        let line = format!("{numbers} {} {}\n", date(), self.by);
        fs::write(&measured, line).map_err(io(&measured))?;
        if self.settings.is_set("TABLE") {
            let mut sh = self.settings.command("sh");
            sh.args(["scripts/compatibility.sh", "suites"])
                .arg(&measured);
            let status = sh.current_dir(root()).status();
            if !status.is_ok_and(|s| s.success()) {
                return Err("scripts/compatibility.sh failed".to_string());
            }
        }
        Ok(())
    }

    /// Prints the totals by application, and of all. Returns the status.
    fn end(self) -> Outcome {
        let names = self.sums.keys().filter(|n| *n != "all");
        for name in names.chain(self.sums.keys().filter(|n| *n == "all")) {
            let [stock, purlin] = self.sums[name];
            let per_cent = per_cent(purlin, stock);
            println!(
                "{name:<32} {stock:>7} {purlin:>7} {:>7} {per_cent:>8.1}%",
                ""
            );
        }
        let file = self.cache.join("differences.txt");
        println!("differences, with reasons: {}", file.display());
        for line in &self.stale {
            println!("passes now, and is listed as known: {line}");
        }
        let mut lines = self.differences.lines();
        let fails = lines.any(|l| l.starts_with("unexpected")) || !self.stale.is_empty();
        Ok(i32::from(fails))
    }
}

fn per_cent(part: usize, whole: usize) -> f64 {
    match whole {
        0 => 0.0,
        _ => 100.0 * part as f64 / whole as f64,
    }
}

fn date() -> String {
    let out = Command::new("date").arg("+%F").output();
    let text = out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string());
    text.unwrap_or_default()
}

/// Runs suites on one side.
struct Runner<'a> {
    sources: &'a Sources,
    /// The executable, or `None` to run stock on both sides.
    purlin: Option<PathBuf>,
    restarts: u64,
    /// Seconds for a suite; 0 for what its kind has.
    seconds: u64,
}

impl Runner<'_> {
    fn limit(&self, default: u64) -> u64 {
        match self.seconds {
            0 => default,
            given => given,
        }
    }

    /// The command that runs a program on a side, below `timeout`.
    fn on(&self, side: &str, seconds: u64, program: &str) -> Command {
        let mut command = self.sources.settings.ended_after(seconds, 5);
        if let Some(purlin) = self.purlin.as_ref().filter(|_| side == "purlin") {
            command.arg(purlin).args(["exec", "--"]);
        }
        command.arg(program);
        command
    }

    /// Runs a suite, and leaves its verdicts in the cache.
    fn suite(&self, side: &str, suite: &str, dir: &Path) -> Result<(), String> {
        let base = self.sources.cache.join(side).join(suite);
        let lines = PathBuf::from(format!("{}.lines", base.display()));
        let log = PathBuf::from(format!("{}.log", base.display()));
        File::create(&lines).map_err(io(&lines))?;
        if let Some(app) = suite.strip_prefix("elixir/") {
            self.elixir(side, app, &lines, &log)?;
            let text = fs::read_to_string(&lines).map_err(io(&lines))?;
            return fs::write(&base, write(&of_lines(&text))).map_err(io(&base));
        }
        let (app, name) = suite.split_once('/').unwrap_or(("", suite));
        let list = root().join(format!("tests/otp/known-failures-{app}.txt"));
        let known = known(&fs::read_to_string(list).unwrap_or_default(), name);
        let harmful = known.iter().filter(|(_, why)| why.starts_with("left out:"));
        let mut left = match side {
            "purlin" => harmful.map(|(case, _)| case.clone()).collect(),
            _ => BTreeSet::new(),
        };
        let mut verdicts = self.otp(side, suite, dir, &lines, &log, left.clone())?;
        if side == "purlin" {
            let stock = self.sources.cache.join("stock").join(suite);
            let stock = read(&fs::read_to_string(stock).unwrap_or_default());
            let again = to_repeat(&stock, &verdicts, &known);
            if !again.is_empty() {
                left.extend(others(&stock, &verdicts, &again));
                let [lines, log] = ["lines", "log"]
                    .map(|kind| PathBuf::from(format!("{}.repeated.{kind}", base.display())));
                File::create(&lines).map_err(io(&lines))?;
                let repeated = self.otp(side, suite, dir, &lines, &log, left)?;
                take_passed(&mut verdicts, &repeated);
            }
        }
        fs::write(&base, write(&verdicts)).map_err(io(&base))
    }

    /// A suite of Elixir's.
    fn elixir(&self, side: &str, app: &str, lines: &Path, log: &Path) -> Result<(), String> {
        let tree = self.sources.elixir_tree(side);
        let tests = match app {
            "elixir" => "test/elixir",
            _ => "test",
        };
        let mut command = self.on(side, self.limit(1800), "elixir");
        command
            .arg("-r")
            .arg(root().join("tests/elixir/recorder.exs"));
        command.args(["-r", &format!("{tests}/test_helper.exs")]);
        command.args(["-pr", &format!("{tests}/**/*_test.exs")]);
        // Waiting for a message is not what is measured, so a loaded machine gets time for it.
        command.env("RESULTS", lines).env("LC_ALL", "C.UTF-8");
        command.env("ELIXIR_ASSERT_TIMEOUT", "4000");
        if !self.sources.settings.is_set("REBAR3") {
            // Without rebar3, what needs it fails on both sides.
            let mut sh = self.sources.settings.command("sh");
            let found = sh
                .args(["-c", "command -v rebar3 || command -v false"])
                .output();
            let found = found.map_err(|e| format!("sh: {e}"))?;
            let found = String::from_utf8_lossy(&found.stdout)
                .trim_end()
                .to_string();
            command.env("REBAR3", found);
        }
        command.current_dir(tree.join("lib").join(app));
        with_log(&mut command, log)?;
        end_leftovers(&tree);
        let text = fs::read_to_string(lines).unwrap_or_default();
        if !text.lines().any(|l| l.starts_with("done")) {
            let log = log.display();
            eprintln!("{side} did not reach the end of elixir/{app}: {log}");
        }
        Ok(())
    }

    /// Runs a suite of OTP's without the cases in `left`, and returns its verdicts. A case that
    /// takes the runtime down is left out of the next attempt.
    fn otp(
        &self,
        side: &str,
        suite: &str,
        dir: &Path,
        lines: &Path,
        log: &Path,
        mut left: BTreeSet<String>,
    ) -> Result<Vec<Verdict>, String> {
        let (_, name) = suite.split_once('/').unwrap_or(("", suite));
        let started = Instant::now();
        let limit = self.limit(600);
        // A daemon of its own, so that names are free on both sides.
        let port = (std::process::id() % 20_000 + 20_000).to_string();
        for _ in 0..=self.restarts {
            let remaining = limit.saturating_sub(started.elapsed().as_secs());
            if remaining == 0 {
                break;
            }
            let logs = WorkDir::new("suite")?;
            let mut command = self.on(side, remaining, "erl");
            command.args(["-sname", "test_server", "-noshell", "-pa"]);
            command.arg(&self.sources.cache).arg("-pa").arg(dir);
            command.args(["-run", "conformance", "main", name]).arg(dir);
            command.arg(logs.path()).arg(lines).args(&left);
            command.env("ERL_EPMD_PORT", &port).current_dir(logs.path());
            with_log(&mut command, log)?;
            drop(logs);
            end_leftovers(dir);
            let mut epmd = self.sources.settings.command("epmd");
            let _ = epmd.arg("-kill").env("ERL_EPMD_PORT", &port).output();
            let text = fs::read_to_string(lines).map_err(io(lines))?;
            if text.lines().any(|l| l.starts_with("done")) {
                break;
            }
            let Some(case) = fallen(&text) else { break };
            let text = format!("{text}end {case} failed the runtime ended\n");
            fs::write(lines, &text).map_err(io(lines))?;
            // Cases that have ended are not run again.
            let ended = of_lines(&text).into_iter();
            left.extend(ended.map(|v| atom(&v.case).to_string()));
        }
        let text = fs::read_to_string(lines).map_err(io(lines))?;
        Ok(of_lines(&text))
    }
}

/// The names of a suite's cases that are not to be repeated, as common_test takes them.
fn others(stock: &[Verdict], own: &[Verdict], again: &BTreeSet<String>) -> BTreeSet<String> {
    let repeated: BTreeSet<&str> = again.iter().map(|c| atom(c)).collect();
    let all = stock.iter().chain(own).map(|v| atom(&v.case));
    let all = all.filter(|c| !repeated.contains(c));
    all.map(str::to_string).collect()
}

/// The name of a case without its group.
fn atom(case: &str) -> &str {
    case.split('@').next().unwrap_or(case)
}

/// Runs a command. Its output goes to a log.
fn with_log(command: &mut Command, log: &Path) -> Result<(), String> {
    let out = File::create(log).map_err(io(log))?;
    command
        .stderr(out.try_clone().map_err(io(log))?)
        .stdout(out);
    let status = command.stdin(Stdio::null()).status();
    status.map_err(|e| format!("timeout: {e}"))?;
    Ok(())
}

/// Ends the nodes that tests started in the background and could not stop: processes that have no
/// parent any more and whose arguments name the folder.
fn end_leftovers(dir: &Path) {
    let dir = dir.display().to_string();
    for process in processes() {
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        let arguments = fs::read(process.join("cmdline")).unwrap_or_default();
        let arguments = String::from_utf8_lossy(&arguments);
        if status.lines().any(|l| l == "PPid:\t1") && arguments.contains(&dir) {
            let id = process.file_name().unwrap_or_default();
            let _ = Command::new("pkill").args(["-KILL", "-P"]).arg(id).status();
            let mut kill = Command::new("kill");
            let _ = kill.arg("-KILL").arg(id).stderr(Stdio::null()).status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_suites() {
        let all = ["emulator/a_SUITE", "stdlib/b_SUITE", "elixir/eex"].map(String::from);
        let of = |word| of_word(&all, word).unwrap_or_default();
        assert_eq!(of("a_SUITE"), ["emulator/a_SUITE"]);
        assert_eq!(of("stdlib"), ["stdlib/b_SUITE"]);
        assert_eq!(of("elixir/eex"), ["elixir/eex"]);
        assert_eq!(of("stdlib/c_SUITE"), ["stdlib/c_SUITE"]);
        assert_eq!(of_word(&all, "stdlbi"), None);
    }

    #[test]
    fn others_are_left_out_when_cases_are_repeated() {
        let stock = read("a passed\nb@g passed\nb@h passed\nc failed\n");
        let own = read("a failed\nd@g failed\n");
        let again = BTreeSet::from(["b@g".to_string()]);
        let left: Vec<String> = others(&stock, &own, &again).into_iter().collect();
        assert_eq!(left, ["a", "c", "d"]);
    }

    #[test]
    fn shares_are_in_per_cent() {
        assert_eq!(per_cent(1, 4), 25.0);
        assert_eq!(per_cent(0, 0), 0.0);
    }
}
