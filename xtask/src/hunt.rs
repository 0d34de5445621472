//! Random programs about memory, whose values all carry what they must be: see
//! `tests/hunt/hunt_gen.erl`. A wrong value, a signal, another status than 0, a hang, or a sum that
//! differs from stock's or from that of another mode is a fault.
//!
//! ```text
//! cargo xtask hunt [SECONDS]                        random programs in random modes (60 seconds)
//! SEED=N [RUN=N] [MODES="..."] cargo xtask hunt     one program, in the given modes
//! ```
//!
//! A mode is a list such as `release,S2,shared,fence,stress7`: the build (`release`, `debug`),
//! schedulers (`S1`, `S2`, `S8`), `shared` (`+Fregion 1`), `fence` (`PURLIN_FENCE=1`), `stress`
//! with its seed (`PURLIN_GC_STRESS=SEED`), and `off`, `always` or `chaos` with its seed
//! (`PURLIN_JIT`, see docs/machine-code.md). `stock` is erl.
//!
//! - `PURLIN`: the executable (see `Settings::executable`). `DEBUG`: that of the debug build
//!   (`target/debug/purlin`, used where it exists).
//! - `JOBS`: the number of runs at once. `FIRST`: the first seed (from the clock). `LIMIT`: seconds
//!   for a run (180).
//! - `STEPS`, `SIZE`: in place of what goes with the mode. `ONLY`: modes consist of these words
//!   alone, as `ONLY="release S1 fence"`.
//! - `RELEASE`: otp27 or otp29 takes the compiler, the libraries and the stock emulator of that
//!   root (`scripts/roots.sh`, `ROOTS`).
//! - `KINDS`: steps of these kinds alone (`kinds/0` of `hunt_gen.erl`). Seeds have other programs
//!   then.
//!
//! What found something before, in `tests/hunt/seeds.txt`, runs first (unless `FIRST` is given). A
//! fault is reported in a line. A second line has fewer steps, smaller values and fewer words of
//! the mode, as far as the program still fails with them ([`Hunt::reduced`]; not with `SEED`, nor
//! for a hang). Program, output and how to run it again are in `target/hunt/failures`, and the
//! status is 1.

use crate::Outcome;
use crate::environment::{Dice, Settings, in_parallel, now, root, status_number};
use crate::otp_release::Otp;
use crate::reduce::Tries;
use crate::work_dir::WorkDir;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs the command, and prints how many programs and faults there were.
pub fn run(settings: &Settings, arguments: &[String]) -> Outcome {
    let started = Instant::now();
    let (report, output) = hunt(settings, arguments)?;
    output.iter().for_each(|text| print!("{text}"));
    let (programs, faults) = (report.programs, report.faults);
    let seconds = started.elapsed().as_secs();
    println!("{programs} programs, {faults} faults in {seconds} seconds");
    Ok(i32::from(faults > 0))
}

/// The numbers of programs that ran and of faults.
pub struct Report {
    pub programs: usize,
    pub faults: usize,
}

/// Hunts. Also returns what a single program printed in each mode.
pub fn hunt(settings: &Settings, arguments: &[String]) -> Result<(Report, Vec<String>), String> {
    let mut settings = settings.clone();
    if let Some(release) = settings.get("RELEASE").map(str::to_string) {
        settings = Otp::named(&settings, &release)?.settings(&settings);
    }
    settings.take_seconds(arguments)?;
    let work = WorkDir::new("hunt")?;
    let hunt = Hunt::new(&settings, work.path())?;
    let first = work.folder("first")?;
    let mut output = Vec::new();
    if settings.is_set("SEED") {
        output = hunt.one_seed(&first)?;
    } else {
        hunt.known_seeds(&first)?;
        let (start, jobs) = (settings.number("FIRST", now())?, settings.jobs()?);
        in_parallel(jobs, |job| {
            let folder = work.folder(&job.to_string())?;
            hunt.worker(&folder, start + 100 * job, 100 * jobs)
        })?;
    }
    let report = Report {
        programs: hunt.programs.load(Ordering::Relaxed),
        faults: hunt.faults.load(Ordering::Relaxed),
    };
    Ok((report, output))
}

/// The state that all runs share.
struct Hunt<'a> {
    settings: &'a Settings,
    /// The folder of the compiled modules.
    modules: &'a Path,
    failures: PathBuf,
    purlin: PathBuf,
    /// The debug build, if there is one.
    debug: Option<PathBuf>,
    /// Seconds for a run.
    limit: u64,
    end: Instant,
    programs: AtomicUsize,
    faults: AtomicUsize,
}

/// One program in one mode.
#[derive(Clone, Copy)]
struct Run<'a> {
    folder: &'a Path,
    seed: u64,
    run: u64,
    mode: &'a str,
    steps: u64,
    size: u64,
}

/// The output of each program that has run, by seed, run, steps and size: all modes must agree.
type Said = HashMap<(u64, u64, u64, u64), Vec<u8>>;

impl<'a> Hunt<'a> {
    fn new(settings: &'a Settings, modules: &'a Path) -> Result<Hunt<'a>, String> {
        let debug = settings.path("DEBUG", root().join("target/debug/purlin"));
        let failures = root().join("target/hunt/failures");
        fs::create_dir_all(&failures).map_err(|e| format!("{}: {e}", failures.display()))?;
        let purlin = settings.executable()?;
        let sources = ["hunt", "hunt_v", "hunt_gen"].map(|m| format!("tests/hunt/{m}.erl"));
        settings.compile(modules, &sources.map(PathBuf::from))?;
        Ok(Hunt {
            settings,
            modules,
            failures,
            purlin,
            debug: debug.exists().then_some(debug),
            limit: settings.number("LIMIT", 180)?,
            end: Instant::now() + Duration::from_secs(settings.number("SECONDS", 60)?),
            programs: AtomicUsize::new(0),
            faults: AtomicUsize::new(0),
        })
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Runs the program of `SEED` in each of `MODES`, and returns what it printed.
    fn one_seed(&self, folder: &Path) -> Result<Vec<String>, String> {
        let (seed, run) = (
            self.settings.number("SEED", 0)?,
            self.settings.number("RUN", 1)?,
        );
        self.generate(folder, seed, 1)?;
        let mut modes = self.settings.words("MODES");
        if modes.is_empty() {
            modes = vec!["stock".to_string(), "release".to_string()];
        }
        let mut said = Said::new();
        let mut output = Vec::new();
        for mode in &modes {
            self.check(&self.in_mode(folder, seed, run, mode)?, &mut said)?;
            let files = ["out", "err"].map(|f| fs::read(folder.join(f)).unwrap_or_default());
            output.extend(
                files
                    .iter()
                    .map(|f| String::from_utf8_lossy(f).into_owned()),
            );
        }
        Ok(output)
    }

    /// Runs what found a fault before.
    fn known_seeds(&self, folder: &Path) -> Result<(), String> {
        if self.settings.is_set("FIRST") {
            return Ok(());
        }
        let list = fs::read_to_string(root().join("tests/hunt/seeds.txt")).unwrap_or_default();
        let mut said = Said::new();
        for line in list.lines().filter(|l| !l.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [seed, run, mode, steps, size, ..] = words[..] else {
                continue;
            };
            if self.is_over() {
                break;
            }
            if mode.contains("debug") && self.debug.is_none() {
                continue;
            }
            let number = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| format!("tests/hunt/seeds.txt: {line}"))
            };
            let run = Run {
                folder,
                seed: number(seed)?,
                run: number(run)?,
                mode,
                steps: number(steps)?,
                size: number(size)?,
            };
            if !folder.join(format!("hunt_{seed}.beam")).exists() {
                self.generate(folder, run.seed, 1)?;
            }
            self.check(&run, &mut said)?;
        }
        Ok(())
    }

    /// Runs programs from a seed on, in batches that are `apart` seeds from each other.
    fn worker(&self, folder: &Path, mut seed: u64, apart: u64) -> Result<(), String> {
        // The first batch is small, so that a short hunt runs something.
        let mut count = 2;
        while !self.is_over() {
            let _ = fs::remove_dir_all(folder);
            fs::create_dir_all(folder).map_err(|e| e.to_string())?;
            let mut said = Said::new();
            self.generate(folder, seed, count)?;
            for n in seed..seed + count {
                let fixed = self.settings.is_set("STEPS") || self.settings.is_set("SIZE");
                // Stock first, for some.
                if n.is_multiple_of(4) && !fixed && !self.is_over() {
                    self.check(&self.in_mode(folder, n, 1, "stock")?, &mut said)?;
                }
                for k in 1..=4 {
                    if self.is_over() {
                        return Ok(());
                    }
                    let only = self.settings.words("ONLY");
                    let mode = random_mode(n * 10 + k, &only, self.debug.is_some());
                    self.check(&self.in_mode(folder, n, 1, &mode)?, &mut said)?;
                }
            }
            seed += apart;
            count = 10;
        }
        Ok(())
    }

    /// A run with as many steps, and values as large, as take a second or so in its mode.
    fn in_mode<'b>(
        &self,
        folder: &'b Path,
        seed: u64,
        run: u64,
        mode: &'b str,
    ) -> Result<Run<'b>, String> {
        // What `make test` runs is a debug build by another name.
        let is_debug =
            mode.contains("debug") || self.purlin.components().any(|c| c.as_os_str() == "debug");
        let (steps, size) = amount(mode, is_debug);
        // The program that crosses all kinds with all takes them in turn.
        let steps = if seed == 0 { steps * 4 } else { steps };
        Ok(Run {
            folder,
            seed,
            run,
            mode,
            steps: self.settings.number("STEPS", steps)?,
            size: self.settings.number("SIZE", size)?,
        })
    }

    /// Writes and compiles the programs of some seeds.
    fn generate(&self, folder: &Path, seed: u64, count: u64) -> Result<(), String> {
        let mut erl = self.settings.killed_after(600);
        erl.args(["erl", "-noshell", "-pa"]).arg(self.modules);
        erl.args(["-run", "hunt_gen", "main"]).arg(folder);
        erl.args([seed.to_string(), count.to_string()]);
        match erl.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("hunt_gen of seed {seed}: {status}")),
            Err(e) => Err(format!("timeout: {e}")),
        }
    }

    /// Runs one program in one mode, and compares what it says with what it said before.
    fn check(&self, run: &Run, said: &mut Said) -> Result<(), String> {
        let status = self.execute(run).map_err(|e| format!("timeout: {e}"))?;
        self.programs.fetch_add(1, Ordering::Relaxed);
        let key = (run.seed, run.run, run.steps, run.size);
        let out = fs::read(run.folder.join("out")).unwrap_or_default();
        match (status, said.get(&key)) {
            (0, None) => {
                said.insert(key, out);
            }
            (0, Some(before)) if *before == out => {}
            (0, Some(before)) => self.fault(run, "other sums", before),
            (137, _) => self.fault(run, "no end", b""),
            _ => self.fault(run, &format!("status {status}"), b""),
        }
        Ok(())
    }

    /// Runs a program. Its output goes to `out` and `err` in its folder.
    fn execute(&self, run: &Run) -> std::io::Result<i32> {
        let mut command = self.settings.killed_after(self.limit);
        let mut runtime = Some(&self.purlin);
        let mut flags: Vec<String> = Vec::new();
        for word in run.mode.split(',') {
            let seed = |name| {
                word.strip_prefix(name)
                    .filter(|s| !s.is_empty())
                    .unwrap_or("1")
            };
            match word {
                "debug" => runtime = self.debug.as_ref().or(runtime),
                "stock" => runtime = None,
                "shared" => flags.extend(["+Fregion", "1"].map(String::from)),
                "fence" => {
                    command.env("PURLIN_FENCE", "1");
                }
                "off" | "always" => {
                    command.env("PURLIN_JIT", word);
                }
                _ if word.starts_with("chaos") => {
                    command.env("PURLIN_JIT", format!("chaos:{}", seed("chaos")));
                }
                _ if word.starts_with("stress") => {
                    command.env("PURLIN_GC_STRESS", seed("stress"));
                }
                _ => flags.extend(schedulers(word)),
            }
        }
        command.env("ERL_CRASH_DUMP", "/dev/null").args(runtime);
        command.arg("erl").args(flags).args(["-noshell", "-pa"]);
        command.arg(self.modules).arg("-pa").arg(run.folder);
        command.args(["-run", "hunt", "main", &format!("hunt_{}", run.seed)]);
        command.args([run.run, run.steps, run.size].map(|n| n.to_string()));
        command.current_dir(run.folder);
        command.stdout(File::create(run.folder.join("out"))?);
        command.stderr(File::create(run.folder.join("err"))?);
        Ok(status_number(command.status()?))
    }

    /// Reports a fault, and keeps its program and its output.
    fn fault(&self, run: &Run, what: &str, before: &[u8]) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let Run { seed, mode, .. } = run;
        let again = self.again(run);
        let read = |name| fs::read(run.folder.join(name)).unwrap_or_default();
        let mut kept = format!("{what}: {again}\n").into_bytes();
        kept.extend(read("out"));
        kept.extend(read("err"));
        if !before.is_empty() {
            kept.extend(b"it was:\n");
            kept.extend(before);
        }
        let name = format!("{seed}-{}-{mode}.txt", run.run);
        let kept_in = self.failures.join(name);
        let _ = fs::write(&kept_in, kept);
        let program = format!("hunt_{seed}.erl");
        let _ = fs::copy(run.folder.join(&program), self.failures.join(&program));
        let errors = String::from_utf8_lossy(&read("err")).into_owned();
        let telling = ["fault", "PURLIN", "panicked"];
        let line = errors
            .lines()
            .find(|l| telling.iter().any(|t| l.contains(t)));
        let line: String = line.unwrap_or_default().chars().take(150).collect();
        eprintln!("{what}: {again}  {line}");
        // A hang takes too long to be tried again and again, and a single program's output is
        // shown.
        if what != "no end" && !self.settings.is_set("SEED") {
            let smaller = self.reduced(run, !before.is_empty());
            eprintln!("  smaller: {smaller}");
            let file = fs::OpenOptions::new().append(true).open(&kept_in);
            let _ = file.and_then(|mut f| writeln!(f, "smaller: {smaller}"));
        }
    }

    /// The command that repeats a run.
    fn again(&self, run: &Run) -> String {
        let mut again = String::new();
        if let Some(release) = self.settings.get("RELEASE") {
            again += &format!("RELEASE={release} ");
        }
        if let Some(kinds) = self.settings.get("KINDS") {
            again += &format!("KINDS=\"{kinds}\" ");
        }
        let Run {
            seed,
            run,
            mode,
            steps,
            size,
            ..
        } = run;
        again
            + &format!(
                "SEED={seed} RUN={run} STEPS={steps} SIZE={size} MODES={mode} cargo xtask hunt"
            )
    }

    /// The command of the smallest run that is found to fail like this one. `sums`: it ended well,
    /// with other sums than before; smaller runs are then compared with stock's.
    fn reduced(&self, run: &Run, sums: bool) -> String {
        let fails = |run: &Run| {
            let output = || fs::read(run.folder.join("out")).unwrap_or_default();
            match self.execute(run) {
                Ok(0) if sums => {
                    let here = output();
                    let on_stock = Run {
                        mode: "stock",
                        ..*run
                    };
                    matches!(self.execute(&on_stock), Ok(0)) && output() != here
                }
                Ok(0 | 137) | Err(_) => false,
                Ok(_) => !sums,
            }
        };
        let mut tries = Tries::new();
        let mut least = *run;
        least.steps = tries.least(run.steps, |steps| fails(&Run { steps, ..least }));
        least.size = tries.least(run.size, |size| fails(&Run { size, ..least }));
        let words: Vec<&str> = run.mode.split(',').collect();
        let mode = tries.fewest(&words, |words| {
            let mode = &words.join(",");
            fails(&Run { mode, ..least })
        });
        let mode = mode.join(",");
        self.again(&Run {
            mode: &mode,
            ..least
        })
    }
}

/// The flags of a word such as `S2`.
pub(crate) fn schedulers(word: &str) -> Vec<String> {
    let count = word.strip_prefix('S').and_then(|n| n.parse::<u32>().ok());
    let Some(n) = count else { return Vec::new() };
    vec!["+S".to_string(), format!("{n}:{n}")]
}

/// Steps of each worker and sizes of values that take a second or so.
fn amount(mode: &str, is_debug: bool) -> (u64, u64) {
    let has = |word| mode.contains(word);
    match () {
        _ if is_debug && has("stress") => (12, 5),
        _ if has("stress") || has("chaos") => (40, 20),
        _ if has("fence") => (60, 40),
        _ if is_debug => (60, 30),
        _ => (150, 100),
    }
}

/// The words of a mode that follows from a number; some are more frequent. `only` restricts them.
fn random_mode(n: u64, only: &[String], debug: bool) -> String {
    let mut dice = Dice::new(n);
    let mut pick = |words: &str| {
        let may = |w: &&str| *w == "-" || only.is_empty() || only.iter().any(|o| o == w);
        let words: Vec<&str> = words.split(' ').filter(may).collect();
        if words.is_empty() {
            return "-".to_string();
        }
        dice.pick(&words.join(" ")).to_string()
    };
    let builds = if debug {
        "release release release debug"
    } else {
        "release"
    };
    let build = pick(builds);
    let mut mode = if build == "-" {
        "release".to_string()
    } else {
        build
    };
    for words in [
        "S1 S1 S2 S8",
        "- shared",
        "- - fence",
        "- - stress",
        "- - off always chaos chaos",
    ] {
        let word = pick(words);
        if word == "-" {
            continue;
        }
        mode += &format!(",{word}");
        if ["stress", "chaos"].contains(&word.as_str()) {
            let seed = Dice::new(n ^ u64::from(word == "chaos")).below(1000) + 1;
            mode += &seed.to_string();
        }
    }
    mode
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_follow_from_their_number_and_have_every_word() {
        let all: Vec<String> = (0..500).map(|n| random_mode(n, &[], true)).collect();
        assert_eq!(all[7], random_mode(7, &[], true));
        for word in [
            "debug", "S8", "shared", "fence", "stress", "always", "chaos",
        ] {
            assert!(all.iter().any(|m| m.contains(word)), "{word}");
        }
        let only = ["release", "S1", "fence"].map(String::from);
        let few: Vec<String> = (0..50).map(|n| random_mode(n, &only, true)).collect();
        let allowed = ["release,S1", "release,S1,fence"];
        assert!(few.iter().all(|m| allowed.contains(&m.as_str())), "{few:?}");
    }

    #[test]
    fn slow_modes_do_less() {
        assert_eq!(amount("release,S1", false), (150, 100));
        assert_eq!(amount("release,S1,fence,stress3", false), (40, 20));
        assert_eq!(amount("stress1", true), (12, 5));
        assert_eq!(schedulers("S8"), ["+S", "8:8"]);
        assert!(schedulers("release").is_empty());
    }
}
