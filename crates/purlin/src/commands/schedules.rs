//! `schedules [OPTIONS] -- COMMAND`: runs a program again and again, each time in another order,
//! until it fails. `replay FILE` repeats a run that failed.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use purlin_runtime::schedules::{
    Recorded, VARIABLE, cluster, fresh_dir, function, is_span, is_strategy, no_calls, statuses,
    user, write_private,
};

use super::{
    COMMANDS, become_program, elixir, no_option, print, schedules_cluster, schedules_each,
    schedules_page,
};
use crate::context::Context;
use crate::failure::{
    self, Failure, SYSTEM, USAGE, bad_value, cannot_make, cannot_read, cannot_run, cannot_write,
    do_not_fit, missing_argument, no_own_executable, no_such_place, no_value, reason, warn,
    wrong_file,
};
use purlin_messages as messages;

const USE: &str = "purlin schedules [--seeds N] [--for SECONDS] [--seed N] [--strategy NAME] [--stall MS] [--jobs N] [--to FILE] \
[--fail-nth CALLS [--fail-for once|ever|both] [--expect STATUSES]] [--html PAGE] [--each-test [--test TEXT]] [--from FILE|M:F/A] [--delivery order|any] [--fresh-dir] [--keep-going] [--json] [--strict] [--nodes N [--faults KINDS]] -- COMMAND";

/// The build of Purlin that this is, as replay files have it.
const BUILD: &str = env!("PURLIN_BUILD");

/// The statuses of a command that could not be run, and of one that does not exist.
const NOT_BEGUN: [u8; 2] = [126, 127];

/// Maximum number of milliseconds of `--stall`.
const LONGEST_STALL: u64 = 3_600_000;

fn not_one_line(text: impl std::fmt::Display) -> Failure {
    Failure::new(messages::NOT_ONE_LINE, USAGE, text)
}

/// `purlin schedules …`
pub fn run(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    if args.first().is_some_and(|a| a == "show") {
        return show(&args[1..]);
    }
    let (o, rest) = Options::read(args)?;
    o.cluster.check(&o.given)?;
    if o.cluster.nodes.is_some() {
        let to = o.file_of(0);
        let is_text = |w: &OsString| w.to_str().is_some_and(|w| !w.contains('\n'));
        if !rest.iter().all(is_text) {
            return Err(not_one_line("--nodes: a word is no text of one line"));
        }
        same_addresses();
        let own = is_own(&rest[0].to_string_lossy());
        return schedules_cluster::search(context, &o.cluster, o.seed, to, BUILD, &rest, own);
    }
    if o.each_test {
        return schedules_each::run(context, &o, &rest);
    }
    let Some(_) = &o.html else {
        let to = o.file_of(0);
        let to = match o.fresh {
            true => absolute(&to)?,
            false => to,
        };
        let request = format!("{}seed {}\nto {}\n", o.request, o.seed, to.display());
        let folder = o.fresh.then(|| folder_of(o.seed));
        return start(context, request, &rest, folder);
    };
    // The search runs in a process of its own, since the page is written when it has ended.
    let file = o.file_of(0);
    let mut args = o.child_args(&file);
    args.extend(rest);
    let status = schedules_each::own_status(context, &args)?;
    o.write_page(&file, status)?;
    Ok(status)
}

/// The options before `--`.
pub(super) struct Options {
    /// The lines of the request to the emulator.
    request: String,
    /// The words of the options, except those that do not concern the emulator.
    words: Vec<OsString>,
    seed: u64,
    to: Option<PathBuf>,
    html: Option<PathBuf>,
    each_test: bool,
    /// A part of the names of the tests that are searched.
    pub test: Option<String>,
    pub json: bool,
    fresh: bool,
    /// Whether system calls fail, and an option that is for these searches alone.
    fails: bool,
    of_fails: Option<String>,
    /// The options of a search in a world, and all options as they were given.
    cluster: schedules_cluster::Options,
    given: Vec<OsString>,
}

/// The word in the request of an option with a value.
fn key(option: &str) -> Option<&'static str> {
    Some(match option {
        "--seeds" => "schedules",
        "--for" => "milliseconds",
        "--seed" => "seed",
        "--strategy" => "strategy",
        "--stall" => "stall",
        "--jobs" => "jobs",
        "--to" => "to",
        "--html" => "html",
        "--from" => "from",
        "--test" => "test",
        "--delivery" => "delivery",
        "--fail-nth" => "fail-nth",
        "--fail-for" => "fail-for",
        "--expect" => "expect",
        _ => return None,
    })
}

impl Options {
    /// Reads the options, and returns the command behind them.
    fn read(args: &[OsString]) -> Result<(Options, Vec<OsString>), Failure> {
        let mut o = Options {
            request: String::from("search\n"),
            words: Vec::new(),
            seed: any_seed(),
            to: None,
            html: None,
            each_test: false,
            test: None,
            json: false,
            fresh: false,
            fails: false,
            of_fails: None,
            cluster: schedules_cluster::Options::default(),
            given: Vec::new(),
        };
        let mut rest = args;
        let mut recorded = None;
        loop {
            let Some((first, more)) = rest.split_first() else {
                if let Some(command) = recorded {
                    return Ok((o, command));
                }
                return Err(missing_argument(format!(
                    "schedules needs a command: {USE}"
                )));
            };
            rest = more;
            let option = first.to_string_lossy();
            if option == "--" {
                break;
            }
            o.given.push(first.clone());
            if o.take_switch(first) {
                continue;
            }
            let for_worlds = option == "--nodes" || option == "--faults";
            let key = key(&option).filter(|_| !for_worlds);
            if key.is_none() && !for_worlds {
                return Err(failure::no_option("schedules", option));
            }
            let Some((word, more)) = rest.split_first() else {
                return Err(no_value(format!("{option} needs a value: {USE}")));
            };
            rest = more;
            let is_taken = o.cluster.take(&option, &word.to_string_lossy())?;
            let Some(key) = key.filter(|_| !is_taken) else {
                continue;
            };
            if o.take_value(key, &option, word, &mut recorded)? {
                o.words.extend([first.clone(), word.clone()]);
            }
        }
        if rest.is_empty() {
            return Err(missing_argument(format!(
                "schedules needs a command: {USE}"
            )));
        }
        // A result that cannot be written is reported before the search.
        for file in o.to.iter().chain(&o.html) {
            let folder = file.parent().filter(|p| !p.as_os_str().is_empty());
            if folder.is_some_and(|f| !f.is_dir()) {
                let text = format!("cannot write {}: there is no such folder", file.display());
                return Err(no_such_place(text));
            }
        }
        if o.test.is_some() && !o.each_test {
            return Err(do_not_fit("--test chooses among the tests of --each-test"));
        }
        if let Some(option) = o.of_fails.as_ref().filter(|_| !o.fails) {
            return Err(do_not_fit(format!("{option} is for --fail-nth")));
        }
        if o.fails && o.request.contains("\nfirst ") {
            return Err(do_not_fit(
                "--fail-nth has no use for the schedule of a file",
            ));
        }
        Ok((o, rest.to_vec()))
    }

    /// Takes an option without a value. Returns false if it is none of them.
    fn take_switch(&mut self, option: &OsString) -> bool {
        let text = option.to_string_lossy();
        match &*text {
            "--each-test" => self.each_test = true,
            "--fresh-dir" => {
                self.fresh = true;
                self.words.push(option.clone());
            }
            "--json" | "--strict" | "--keep-going" => {
                let _ = writeln!(self.request, "{}", &text[2..]);
                self.json |= text == "--json";
                self.cluster.strict |= text == "--strict";
                self.words.push(option.clone());
            }
            _ => return false,
        }
        true
    }

    /// Takes the value of an option. Returns whether each search of `--each-test` gets it, too. A
    /// replay file has a command, which goes to `recorded`.
    fn take_value(
        &mut self,
        key: &str,
        option: &str,
        word: &OsString,
        recorded: &mut Option<Vec<OsString>>,
    ) -> Result<bool, Failure> {
        let value = word.to_string_lossy();
        match key {
            "html" => {
                self.html = Some(PathBuf::from(word));
                return Ok(false);
            }
            "to" => {
                if value.contains('\n') {
                    return Err(not_one_line("--to: the name is no text of one line"));
                }
                self.to = Some(PathBuf::from(word));
                return Ok(false);
            }
            "milliseconds" => {
                let seconds = value.trim_end_matches('s').parse::<f64>().ok();
                let Some(seconds) = seconds.filter(|s| *s > 0.0 && s.is_finite()) else {
                    return Err(bad_value(format!(
                        "{option}: '{value}' is no number of seconds"
                    )));
                };
                let _ = writeln!(self.request, "{key} {}", (seconds * 1000.0) as u64);
            }
            "test" => {
                self.test = Some(value.into_owned());
                return Ok(false);
            }
            "delivery" if value != "order" && value != "any" => {
                return Err(bad_value(format!(
                    "--delivery: '{value}' is neither order nor any"
                )));
            }
            "from" if function(&value).is_none() || Path::new(word).exists() => {
                let r = read(word)?;
                for d in &r.replay.schedule {
                    let _ = writeln!(self.request, "first {}", d.text());
                }
                *recorded = Some(r.command.iter().map(OsString::from).collect());
            }
            "strategy" if !is_strategy(&value) => {
                return Err(bad_value(format!(
                    "there is no strategy '{value}': portfolio, flips, pos, pct:D, surw, delays:N, stalls, random, none"
                )));
            }
            "fail-nth" if let Some(names) = no_calls(&value) => {
                return Err(bad_value(format!(
                    "--fail-nth: '{value}' is no list of calls: {names}"
                )));
            }
            "fail-for" if !is_span(&value) => {
                return Err(bad_value(format!(
                    "--fail-for: '{value}' is neither once nor ever nor both"
                )));
            }
            "expect" if statuses(&value).is_none() => {
                return Err(bad_value(format!(
                    "--expect: '{value}' is no list of statuses"
                )));
            }
            "fail-nth" => {
                self.fails = true;
                let _ = writeln!(self.request, "{key} {value}");
            }
            "expect" | "fail-for" => {
                self.of_fails = Some(format!("--{key}"));
                let _ = writeln!(self.request, "{key} {value}");
            }
            "delivery" | "from" | "strategy" => {
                let _ = writeln!(self.request, "{key} {value}");
            }
            _ => return self.take_number(key, option, &value),
        }
        Ok(true)
    }

    /// Takes the number of an option. Returns as [`take_value`](Self::take_value).
    fn take_number(&mut self, key: &str, option: &str, value: &str) -> Result<bool, Failure> {
        let n = value
            .parse::<u64>()
            .map_err(|_| bad_value(format!("{option}: '{value}' is no number")))?;
        if n == 0 && matches!(key, "schedules" | "jobs") {
            return Err(bad_value(format!("{option}: none would run")));
        }
        if key == "stall" && n > LONGEST_STALL {
            return Err(bad_value(format!(
                "--stall: {n} ms are more than an hour ({LONGEST_STALL})"
            )));
        }
        let _ = writeln!(self.request, "{key} {n}");
        if key == "seed" {
            self.seed = n;
        }
        Ok(key != "seed")
    }

    /// Returns the replay file of search `n`; 0 for the only one.
    pub(super) fn file_of(&self, n: usize) -> PathBuf {
        let file = match &self.to {
            Some(to) => to.clone(),
            None => PathBuf::from(format!("purlin-schedule-{}.psch", self.seed)),
        };
        numbered(&file, n)
    }

    /// Returns the arguments of this program for a search that writes `file`, up to the command.
    pub(super) fn child_args(&self, file: &Path) -> Vec<OsString> {
        let mut args = vec![OsString::from("schedules")];
        args.extend(self.words.iter().cloned());
        args.extend(["--seed".into(), self.seed.to_string().into()]);
        args.extend(["--to".into(), file.into(), "--".into()]);
        args
    }

    /// Writes the page, if one is wanted and the search has written `file`.
    pub(super) fn write_page(&self, file: &Path, status: u8) -> Result<(), Failure> {
        let Some(html) = &self.html else {
            return Ok(());
        };
        if status != 1 || !file.exists() {
            return Ok(());
        }
        let n = match self.each_test {
            true => number_of(file),
            false => 0,
        };
        write_page(&read(file.as_os_str())?, &numbered(html, n))
    }
}

/// Returns the name of `file` with `-N` in it.
fn numbered(file: &Path, n: usize) -> PathBuf {
    if n == 0 {
        return file.to_path_buf();
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = match file.extension() {
        Some(e) => format!("{stem}-{n}.{}", e.to_string_lossy()),
        None => format!("{stem}-{n}"),
    };
    file.with_file_name(name)
}

/// Returns the number that [`numbered`] has added.
fn number_of(file: &Path) -> usize {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let n = stem.rsplit_once('-').and_then(|(_, n)| n.parse().ok());
    n.unwrap_or(0)
}

fn any_seed() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed();
    now.map_or(0, |d| d.as_micros() as u64 % 100_000)
}

fn write_page(r: &Recorded, html: &Path) -> Result<(), Failure> {
    // Like the replay file, it may have secrets that the program has read.
    write_private(html, schedules_page::page(r).as_bytes()).map_err(|e| {
        let name = html.display();
        cannot_write(name, &e)
    })
}

/// `purlin replay FILE`
pub fn replay(context: &Context, args: &[OsString]) -> Result<u8, Failure> {
    let (options, args): (Vec<&OsString>, Vec<&OsString>) =
        args.iter().partition(|a| *a == "--steps" || *a == "--live");
    let has = |name: &str| options.iter().any(|o| *o == name);
    let [file] = args[..] else {
        return Err(missing_argument(
            "replay needs a file: purlin replay [--steps] [--live] FILE",
        ));
    };
    no_option("replay", file)?;
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if cluster::is_one(&text) {
        if let Some(option) = options.first() {
            let option = option.to_string_lossy();
            return Err(do_not_fit(format!("{option} has no use for a cluster")));
        }
        let name = file.to_string_lossy();
        let recorded = cluster::read(&text).map_err(|why| wrong_file(&name, why))?;
        warn_of_other_build(&name, &recorded.made_by);
        same_addresses();
        let own = recorded.command.first().is_some_and(|w| is_own(w));
        return schedules_cluster::replay(context, &recorded, own);
    }
    let recorded = read(file)?;
    warn_of_other_build(&file.to_string_lossy(), &recorded.made_by);
    let file = absolute(Path::new(file))?;
    let mut request = format!("replay {}\n", file.display());
    for (option, line) in [("--steps", "steps\n"), ("--live", "live\n")] {
        if has(option) {
            request.push_str(line);
        }
    }
    let words: Vec<OsString> = recorded.command.iter().map(OsString::from).collect();
    start(context, request, &words, recorded.folder)
}

/// Whether a word is the name of a command of Purlin.
fn is_own(word: &str) -> bool {
    COMMANDS.iter().any(|row| word == row.name)
}

/// Warns that another build has made a file.
fn warn_of_other_build(file: &str, made_by: &str) {
    if made_by != BUILD {
        let text = format!(
            "{file}: made by {made_by}, and this is {BUILD}: the replay may go another way"
        );
        warn(messages::OTHER_BUILD, text);
    }
}

/// Maximum number of bytes of a replay file.
const MOST_BYTES: u64 = 256 << 20;

fn read(file: &OsStr) -> Result<Recorded, Failure> {
    let name = file.to_string_lossy();
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|f| f.take(MOST_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|e| cannot_read(&name, &e))?;
    if bytes.len() as u64 > MOST_BYTES {
        bytes.clear();
    }
    let text = String::from_utf8_lossy(&bytes);
    purlin_runtime::schedules::read(&text).map_err(|why| wrong_file(name, why))
}

/// `purlin schedules show FILE`
fn show(args: &[OsString]) -> Result<u8, Failure> {
    let (file, html) = match args {
        [file] => (file, None),
        [file, option] | [option, file] if option == "--json" => {
            return print(&json(&read(file)?));
        }
        [file, option, html] if option == "--html" => (file, Some(html)),
        _ => {
            return Err(missing_argument(
                "purlin schedules show FILE [--json | --html PAGE]",
            ));
        }
    };
    let r = read(file)?;
    if let Some(html) = html {
        write_page(&r, Path::new(html))?;
        let name = html.to_string_lossy();
        return print(&format!("{name}: the story as a page\n"));
    }
    let mut text = format!(
        "{}\nended with status {}, {} deviation{}\n\n",
        r.command.join(" "),
        r.replay.status,
        r.replay.schedule.len(),
        if r.replay.schedule.len() == 1 {
            ""
        } else {
            "s"
        }
    );
    text.push_str(&purlin_runtime::schedules::introduced(
        &r.story,
        &r.processes,
    ));
    text.push_str(&purlin_runtime::schedules::rendered(&r.story));
    let recorded = r.replay.outside.map_or(Vec::new(), |o| o.describe());
    if !recorded.is_empty() {
        let _ = writeln!(text, "\nRecorded: {}.", recorded.join(", "));
    }
    // The file may come from another user. It must not send commands to the terminal.
    let plain = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{FFFD}'
        } else {
            c
        }
    };
    print(&text.chars().map(plain).collect::<String>())
}

/// Writes the story of a file as JSON.
fn json(r: &Recorded) -> String {
    let text = |s: &str| format!("\"{}\"", schedules_each::escaped(s));
    let command: Vec<String> = r.command.iter().map(|w| text(w)).collect();
    let line = |f: &Vec<String>| {
        let get = |i: usize| f.get(i).map_or("", String::as_str).trim();
        let (place, function) = get(5).split_once("  ").unwrap_or(("", get(5)));
        format!(
            "{{\"pid\":{},\"call\":{},\"place\":{},\"function\":{},\"microseconds\":{},\"happens\":{},\"deviation\":{}}}",
            text(get(3)),
            text(get(4)),
            text(place),
            text(function),
            get(7)
                .parse::<i64>()
                .map_or("null".into(), |n| n.to_string()),
            !get(8).is_empty(),
            match get(6) {
                "" => "null".into(),
                kind => text(kind),
            }
        )
    };
    let story: Vec<String> = r.story.iter().map(line).collect();
    format!(
        "{{\"schema\":\"purlin-story/1\",\"command\":[{}],\"release\":{},\"started\":{},\"status\":{},\"hash\":\"{:016x}\",\"deviations\":{},\"story\":[{}]}}\n",
        command.join(","),
        r.release,
        r.started,
        r.replay.status,
        r.replay.hash,
        r.replay.schedule.len(),
        story.join(",")
    )
}

fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    let full = std::path::absolute(file)
        .map_err(|e| cannot_make(format_args!("name {}", file.display()), &e))?;
    match full.to_str().is_some_and(|t| !t.contains('\n')) {
        true => Ok(full),
        false => Err(not_one_line(format!(
            "{}: the name is no text of one line",
            full.display()
        ))),
    }
}

/// Returns the fresh folder of the runs of a search with that seed.
fn folder_of(seed: u64) -> PathBuf {
    std::env::temp_dir().join(format!("{}{seed}", fresh_dir::BEGIN))
}

/// Turns this process into the command, whose emulator gets the request. `at`: the fresh folder in
/// which runs begin, with a copy of the current folder.
fn start(
    context: &Context,
    mut request: String,
    words: &[OsString],
    at: Option<PathBuf>,
) -> Result<u8, Failure> {
    let _ = writeln!(request, "made-by {BUILD}");
    for w in words {
        let Some(w) = w.to_str().filter(|w| !w.contains('\n')) else {
            return Err(not_one_line(
                "the command has words that are no text of one line",
            ));
        };
        let _ = writeln!(request, "argument {w}");
    }
    if let Some(library) = elixir::library(context)
        && let Some(lib) = library.parent().and_then(|p| p.parent())
    {
        let _ = writeln!(request, "library {}", lib.display());
    }
    let otp = context.otp()?;
    let mut environment = context.environment_for_children(&otp)?;
    if let Some(folder) = at {
        let here = absolute(Path::new("."))?;
        let _ = writeln!(request, "copied {}", here.display());
        let _ = writeln!(request, "folder {}", folder.display());
        environment.set("TMPDIR", folder.join(fresh_dir::PASSING));
        // The command finds its files there. The emulator, which this process becomes, takes over
        // the folder.
        let made = fresh_dir::begin(here, folder.clone(), user());
        let made = made.and_then(|()| fresh_dir::renew());
        let made = made.and_then(|()| std::env::set_current_dir(folder.join(fresh_dir::WORK)));
        made.map_err(|e| {
            let text = format!("--fresh-dir: {}", reason(&e));
            Failure::new(messages::NO_FRESH_FOLDER, SYSTEM, text)
        })?;
    }
    environment.set(VARIABLE, &request);
    // Machine code would lie in memory that all runs share.
    environment.set("PURLIN_JIT", "off");
    environment.set("PURLIN_EXEC", "quiet");
    same_addresses();
    let me = std::env::current_exe().map_err(|e| no_own_executable(&e))?;
    let own = words
        .first()
        .is_some_and(|w| COMMANDS.iter().any(|row| w == row.name));
    let mut args: Vec<OsString> = Vec::new();
    if !own {
        args.extend(["exec".into(), "--".into()]);
    }
    args.extend(words.iter().cloned());
    if own {
        return Err(become_program(&me, &args, &environment.0));
    }
    let begun = Begun::new()?;
    request.push_str(&begun.line());
    environment.set(VARIABLE, &request);
    let status = begun.run(&me, &args, &environment.0)?;
    if begun.is_none() {
        let name = words.first().unwrap_or(&args[0]).to_string_lossy();
        // A command that could not begin has said so.
        if !NOT_BEGUN.contains(&status) {
            let ended = match status {
                0 => String::new(),
                n => format!(" and ended with status {n}"),
            };
            let text = format!(
                "schedules: '{name}' has started no emulator of Purlin{ended}: nothing was run in \
                 another order"
            );
            return Err(Failure::new(messages::NO_EMULATOR_BEGUN, USAGE, text));
        }
    }
    Ok(status)
}

/// A file in memory to which an emulator writes that it has begun. A command that is none of
/// Purlin's own may end well without starting one.
struct Begun(File);

impl Begun {
    fn new() -> Result<Begun, Failure> {
        inherited_file()
            .map(Begun)
            .map_err(|e| cannot_make("make a file in memory", &e))
    }
    /// Returns the line of the request that names the file.
    fn line(&self) -> String {
        format!("begun {}\n", self.0.as_raw_fd())
    }
    fn is_none(&self) -> bool {
        self.0.metadata().is_ok_and(|m| m.len() == 0)
    }
    /// Runs a program with this process's input and output, and returns its status. On Linux it
    /// ends when this process ends.
    fn run(
        &self,
        program: &Path,
        args: &[OsString],
        environment: &[(OsString, OsString)],
    ) -> Result<u8, Failure> {
        let mut c = Command::new(program);
        c.args(args).env_clear();
        c.envs(environment.iter().map(|(name, value)| (name, value)));
        // SAFETY: plain calls between fork and exec.
        unsafe {
            #[cfg(target_os = "linux")]
            c.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
            // Ctrl-C is for the program, which says how far it came.
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            c.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let status = c
            .status()
            .map_err(|e| cannot_run(SYSTEM, program.display(), &e))?;
        let signal = status.signal().unwrap_or(0);
        Ok(status.code().unwrap_or(128 + signal).clamp(0, 255) as u8)
    }
}

/// Makes a file without a name, which programs that this one starts inherit.
#[cfg(target_os = "linux")]
fn inherited_file() -> std::io::Result<File> {
    // SAFETY: a name, and a descriptor that is ours.
    unsafe {
        let fd = libc::memfd_create(c"begun".as_ptr(), 0);
        match fd >= 0 {
            true => Ok(File::from(OwnedFd::from_raw_fd(fd))),
            false => Err(std::io::Error::last_os_error()),
        }
    }
}
/// Makes a file that has lost its name, which programs that this one starts inherit.
#[cfg(not(target_os = "linux"))]
fn inherited_file() -> std::io::Result<File> {
    let path = std::env::temp_dir().join(format!("purlin-begun-{}", std::process::id()));
    let mut how = File::options();
    let file = how.read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    // SAFETY: an open descriptor, and a new one that is ours. The call does not ask for it to be
    // closed in other programs.
    unsafe {
        let fd = libc::fcntl(file.as_raw_fd(), libc::F_DUPFD, 0);
        match fd >= 0 {
            true => Ok(File::from(OwnedFd::from_raw_fd(fd))),
            false => Err(std::io::Error::last_os_error()),
        }
    }
}

/// Loads the program that this process becomes at the same addresses each time, so that nothing can
/// depend on them.
fn same_addresses() {
    #[cfg(target_os = "linux")]
    // SAFETY: a plain call.
    unsafe {
        let now = libc::personality(0xFFFF_FFFF);
        if now >= 0 {
            libc::personality(now as libc::c_ulong | libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
        }
    }
}
