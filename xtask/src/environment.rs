//! Settings, which are environment variables, and the programs that commands start.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::SystemTime;

/// Variables that would change what runs.
const CHANGING: &[&str] = &[
    "PURLIN_GC_STRESS",
    "PURLIN_FENCE",
    "PURLIN_JIT",
    "PURLIN_DELAYS",
    "ERL_FLAGS",
];

/// The settings of a command. Empty variables count as missing.
#[derive(Clone, Default)]
pub struct Settings {
    values: BTreeMap<String, String>,
}

impl Settings {
    /// The variables of this process.
    pub fn of_environment() -> Settings {
        let all = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v)));
        let text = all.filter_map(|(k, v)| Some((k, v.into_string().ok()?)));
        Settings {
            values: text.collect(),
        }
    }

    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_string(), value.to_string());
    }

    pub fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name)?;
        Some(value.as_str()).filter(|v| !v.is_empty())
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn words(&self, name: &str) -> Vec<String> {
        let text = self.get(name).unwrap_or_default();
        text.split_whitespace().map(str::to_string).collect()
    }

    /// The number of a setting, or `default` if it is not given.
    pub fn number(&self, name: &str, default: u64) -> Result<u64, String> {
        let Some(text) = self.get(name) else {
            return Ok(default);
        };
        let wrong = || format!("{name}={text}: not a number");
        text.trim().parse().map_err(|_| wrong())
    }

    /// Takes `SECONDS` from the arguments of a command that has no others, if it is there.
    pub fn take_seconds(&mut self, arguments: &[String]) -> Result<(), String> {
        match arguments {
            [] => {}
            [seconds] => self.set("SECONDS", seconds),
            [_, other, ..] => {
                return Err(format!("{other}: only the number of seconds may follow"));
            }
        }
        self.number("SECONDS", 0).map(drop)
    }

    pub fn path(&self, name: &str, default: impl Into<PathBuf>) -> PathBuf {
        self.get(name).map_or_else(|| default.into(), PathBuf::from)
    }

    /// The number of runs at once: as many as there are processors.
    pub fn jobs(&self) -> Result<u64, String> {
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        Ok(self.number("JOBS", processors)?.max(1))
    }

    /// The path that programs are looked for in, with Cargo's own folder first.
    pub fn search_path(&self) -> String {
        let home = self.get("HOME").unwrap_or_default();
        let path = self.get("PATH").unwrap_or_default();
        format!("{home}/.cargo/bin:{path}")
    }

    /// A command that has exactly these settings as its environment.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(&self.values);
        command.env("PATH", self.search_path()).stdin(Stdio::null());
        command
    }

    /// A command below `timeout`, which ends it by SIGKILL after that many seconds (status 137).
    /// Variables that change how Purlin runs are not passed on.
    pub fn killed_after(&self, seconds: u64) -> Command {
        let mut command = self.command("timeout");
        command.args(["-s", "KILL", &seconds.to_string()]);
        CHANGING.iter().for_each(|name| {
            command.env_remove(name);
        });
        command
    }

    /// A command below `timeout`, which ends it by SIGTERM after that many seconds (status 124),
    /// and by SIGKILL `grace` seconds later.
    pub fn ended_after(&self, seconds: u64, grace: u64) -> Command {
        let mut command = self.command("timeout");
        command.args(["-k", &grace.to_string(), &seconds.to_string()]);
        command
    }

    /// The executable to run: `PURLIN`, or `target/dist/purlin` if it is newer than the sources, or
    /// `target/release/purlin`, which is built first. `scripts/executable.sh` does the same.
    pub fn executable(&self) -> Result<PathBuf, String> {
        if let Some(given) = self.get("PURLIN") {
            let path = fs::canonicalize(given);
            return path.map_err(|e| format!("PURLIN={given}: {e}"));
        }
        let shipped = root().join("target/dist/purlin");
        if let Ok(made) = fs::metadata(&shipped).and_then(|m| m.modified())
            && !sources_are_newer(made)
        {
            return Ok(shipped);
        }
        let mut build = self.command("cargo");
        build.args(["build", "--release", "-q", "-p", "purlin"]);
        match build.current_dir(root()).status() {
            Ok(status) if status.success() => Ok(root().join("target/release/purlin")),
            _ => Err("Purlin could not be built".to_string()),
        }
    }

    /// Compiles modules of Erlang with stock's compiler into a folder.
    pub fn compile(&self, into: &Path, sources: &[PathBuf]) -> Result<(), String> {
        let mut erlc = self.command("erlc");
        erlc.args(["-W0", "-o"]).arg(into).args(sources);
        match erlc.current_dir(root()).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err("erlc refuses the modules of the tests".to_string()),
            Err(e) => Err(format!("erlc: {e}")),
        }
    }
}

/// The root of the repository.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.into(), Path::to_path_buf)
}

/// Whether a source of Purlin was changed after `made`.
fn sources_are_newer(made: SystemTime) -> bool {
    let mut todo: Vec<PathBuf> = ["crates", "Cargo.toml", "Cargo.lock"]
        .iter()
        .map(|p| root().join(p))
        .collect();
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).into_iter().flatten().flatten();
            todo.extend(entries.map(|e| e.path()));
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_source = name.ends_with(".rs") || name.ends_with(".c") || name.starts_with("Cargo.");
        let changed = fs::metadata(&path).and_then(|m| m.modified());
        if is_source && changed.is_ok_and(|c| c > made) {
            return true;
        }
    }
    false
}

/// The status as a shell says it: that of a process killed by a signal is 128 and the signal.
pub fn status_number(status: ExitStatus) -> i32 {
    let signal = status.signal().unwrap_or_default();
    status.code().unwrap_or(128 + signal)
}

/// The seconds since 1970, from which runs without `FIRST` number their seeds.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs())
}

/// Runs a function for each number below `jobs`, at once. Returns the first error.
pub fn in_parallel(
    jobs: u64,
    run: impl Fn(u64) -> Result<(), String> + Sync,
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..jobs).map(|job| scope.spawn(move || run(job))).collect();
        let ends: Vec<_> = threads.into_iter().map(|t| t.join()).collect();
        let panicked = |_| Err("a worker ended by a panic".to_string());
        ends.into_iter()
            .try_for_each(|end| end.unwrap_or_else(panicked))
    })
}

/// A generator of random numbers, the same for the same seed (SplitMix64).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }

    /// One of some words, which are separated by spaces.
    pub fn pick<'a>(&mut self, words: &'a str) -> &'a str {
        let words: Vec<&str> = words.split(' ').collect();
        words[self.below(words.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_a_number_and_stand_alone() {
        let taken = |arguments: &[&str]| {
            let mut settings = Settings {
                values: BTreeMap::new(),
            };
            let arguments: Vec<String> = arguments.iter().map(|a| a.to_string()).collect();
            settings.take_seconds(&arguments)?;
            settings.number("SECONDS", 60)
        };
        assert_eq!(taken(&[]), Ok(60));
        assert_eq!(taken(&["7"]), Ok(7));
        assert!(taken(&["--bad"]).is_err());
        assert!(taken(&["7", "x"]).is_err());
    }

    #[test]
    fn statuses_are_those_of_a_shell() {
        let of = |script: &str| {
            let status = Command::new("sh").args(["-c", script]).status();
            status_number(status.expect("sh runs"))
        };
        assert_eq!(of("exit 3"), 3);
        assert_eq!(of("kill -KILL $$"), 137);
        let mut slow = Settings::of_environment().killed_after(1);
        let status = slow.args(["sleep", "60"]).status().expect("timeout runs");
        assert_eq!(status_number(status), 137);
    }

    #[test]
    fn empty_settings_are_missing() {
        let mut settings = Settings::default();
        settings.set("SEED", "");
        settings.set("JOBS", "x");
        assert_eq!(settings.get("SEED"), None);
        assert_eq!(settings.number("SEED", 7), Ok(7));
        assert!(settings.number("JOBS", 7).is_err());
    }

    #[test]
    fn dice_repeat_and_reach_every_word() {
        let roll = |seed| Dice::new(seed).pick("a b c d").to_string();
        assert_eq!(roll(5), roll(5));
        let all: std::collections::BTreeSet<String> = (0..100).map(roll).collect();
        assert_eq!(all.len(), 4);
    }
}
