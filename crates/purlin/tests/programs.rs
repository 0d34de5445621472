//! Runs each program in `tests/programs` on the stock runtime and on Purlin: standard output,
//! standard error and exit status must be equal.
//!
//! `erlang/TOPIC/NAME.erl` is compiled by the stock compiler and started at `NAME:main()`.
//! `elixir/NAME.exs` is a script for `elixir`. `tools/NAME.sh` is a shell script that calls the
//! tools. `tests/programs/README.md` describes the topics. Everything runs through `sh`, on Purlin
//! below `purlin exec`, in an empty directory of its own.
//!
//! Words in the head of a program (its lines that begin with `%` or `#`):
//! - `@stress`: run again on Purlin with a collection at every allocation. Every second such
//!   program runs once more in stress with machine code of all functions.
//! - `@shared`: run again with everything that goes from process to process in shared regions
//!   (`+Fregion 1`); and with both.
//! - `@fence`: run again with freed blocks of memory out of reach (`PURLIN_FENCE=1`); and with
//!   `@stress`, both.
//! - `@atoms`: run again with a collection of atoms after every 1,000 new ones (`+Fatoms stress`);
//!   and with `@stress` and `@fence`, those too.
//! - `@seconds N`: the time limit, by default 60.
//! - `@nif NAME`: it loads a native library. `tests/nif/NAME.c` is compiled with `cc` and OTP's
//!   headers to `NAME.so` beside the programs. Without `cc` or the headers the program is left out.
//! - `@stdin TEXT`: its standard input, to the end of that line, with `\n` for a new line. Empty by
//!   default.
//!
//! Settings:
//! - `PROGRAMS_MODES`: the runs on Purlin, for all programs, whatever their heads say: `plain`,
//!   `stress`, `shared`, `shared-stress`, `fence`, `fence-stress`; `atoms`, `atoms-stress`,
//!   `atoms-fence`; `always`, `always-stress`, `always-fence` (all functions have machine code);
//!   `chaos`, `chaos-stress`, `chaos-fence` (machine code comes and goes at random, from the seed
//!   `PROGRAMS_SEED`).
//! - `PROGRAMS_STRESS=0` leaves out the stress runs.
//! - `PROGRAMS_JOBS`: how many run at once, by default one more than there are processors.
//! - `PROGRAMS_SECONDS`: the time limit of the whole. All programs run in their first mode, then in
//!   the others, from a program on that differs each day. Runs that have not begun by then count as
//!   ignored.
//! - `PURLIN`: another executable to test. `PURLIN=stock` compares the stock runtime with itself,
//!   which finds programs that are not deterministic.
//! - `PURLIN_COVERAGE`: a directory where each program leaves a file of the ops and natives that it
//!   has run, if the executable was built with debug assertions (`scripts/coverage.sh`).
//! - `PROGRAMS_CC`: the compiler of native libraries for an executable of another processor.
//! - `PROGRAMS_SLOWER`: the factor by which a program may take longer (`scripts/aarch64.sh`).
//!
//! Arguments that do not begin with `-` select programs by part of their name.
//!
//! `known_failures.txt` names programs that differ, with the reason. They count as ignored. One
//! that now agrees is reported so that it can be removed from the list.
//!
//! Before the comparison, everything that may differ between two runs of the same runtime is made
//! equal. Process identifiers, references and ports are numbered in the order in which they appear;
//! times and dates become zeros, and so do the sizes and reductions in crash reports.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A program and the requests in its head.
struct Program {
    name: String,
    path: PathBuf,
    modes: Vec<Mode>,
    limit: Duration,
    stdin: String,
    /// The native library that it loads.
    nif: Option<String>,
}

/// A way to run a program on Purlin.
#[derive(Clone, Copy, PartialEq)]
struct Mode {
    /// Collect at every allocation.
    stress: bool,
    /// Put everything that goes from process to process in regions.
    shared: bool,
    /// Put freed memory out of reach.
    fence: bool,
    /// Collect dead atoms after every 1,000 new ones. Only if the program's
    /// head or `PROGRAMS_MODES` asks for it.
    atoms: bool,
    /// The functions that have machine code; see `docs/machine-code.md`.
    code: Code,
}

/// Machine code in a mode.
#[derive(Clone, Copy, PartialEq)]
enum Code {
    /// As set in the environment, or the default.
    Usual,
    /// Every loaded function.
    Always,
    /// Every loaded function, and it exits, is dropped and comes back at random.
    Chaos,
}

impl Mode {
    const ALL: [(&'static str, Mode); 15] = [
        ("plain", Mode::of(false, false, false)),
        ("atoms", Mode::of(false, false, false).with_atoms()),
        ("atoms-stress", Mode::of(true, false, false).with_atoms()),
        ("atoms-fence", Mode::of(false, false, true).with_atoms()),
        ("stress", Mode::of(true, false, false)),
        ("shared", Mode::of(false, true, false)),
        ("shared-stress", Mode::of(true, true, false)),
        ("fence", Mode::of(false, false, true)),
        ("fence-stress", Mode::of(true, false, true)),
        ("always", Mode::of(false, false, false).with(Code::Always)),
        (
            "always-stress",
            Mode::of(true, false, false).with(Code::Always),
        ),
        (
            "always-fence",
            Mode::of(false, false, true).with(Code::Always),
        ),
        ("chaos", Mode::of(false, false, false).with(Code::Chaos)),
        (
            "chaos-stress",
            Mode::of(true, false, false).with(Code::Chaos),
        ),
        (
            "chaos-fence",
            Mode::of(false, false, true).with(Code::Chaos),
        ),
    ];
    const fn of(stress: bool, shared: bool, fence: bool) -> Mode {
        Mode {
            stress,
            shared,
            fence,
            atoms: false,
            code: Code::Usual,
        }
    }
    const fn with_atoms(mut self) -> Mode {
        self.atoms = true;
        self
    }
    const fn with(mut self, code: Code) -> Mode {
        self.code = code;
        self
    }
    fn name(self) -> &'static str {
        let row = Mode::ALL.iter().find(|(_, m)| *m == self);
        row.map_or("plain", |(name, _)| name)
    }
}

/// The outcome of a run.
#[derive(PartialEq, Eq)]
struct Outcome {
    status: String,
    stdout: String,
    stderr: String,
}

struct Setup {
    /// Holds `ebin` and the directories of the runs.
    base: PathBuf,
    /// `None`: the stock runtime is used instead.
    purlin: Option<PathBuf>,
    known: HashMap<String, String>,
    /// The compiler of native libraries for Purlin, if it is not the machine's own.
    cc: Option<String>,
    /// The factor by which a program may take longer on Purlin.
    slower: u32,
}

impl Setup {
    /// The folders of compiled programs and native libraries, each with the compiler of the
    /// libraries: for stock, then for Purlin if that has its own compiler. They are beside the
    /// directories of the runs, so that programs can refer to `../ebin`.
    fn folders(&self) -> Vec<(PathBuf, &str)> {
        let mut folders = vec![(self.base.join("ebin"), "cc")];
        folders.extend(self.cc.as_deref().map(|cc| (self.base.join("p/ebin"), cc)));
        folders
    }
}

enum Verdict {
    Agrees,
    Differs(String),
    /// The runtime was killed by a signal where stock was not, which is never excused.
    Died(String),
    Ignored(String),
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let mut programs = find(&root);
    let all = programs.len();
    if let Ok(names) = std::env::var("PROGRAMS_MODES") {
        let chosen: Vec<Mode> = names
            .split([' ', ','])
            .filter(|n| !n.is_empty())
            .map(|n| {
                let row = Mode::ALL.iter().find(|(name, _)| *name == n);
                row.expect("PROGRAMS_MODES names modes").1
            })
            .collect();
        programs.iter_mut().for_each(|p| p.modes = chosen.clone());
    }
    programs.retain(|p| wanted.is_empty() || wanted.iter().any(|w| p.name.contains(w.as_str())));
    let filtered = all - programs.len();
    let base = std::env::temp_dir().join(format!("purlin-programs-{}", std::process::id()));
    fs::create_dir_all(base.join("ebin")).expect("makes a scratch directory");
    let base = fs::canonicalize(base).expect("exists");
    let purlin = match std::env::var("PURLIN") {
        Ok(name) if name == "stock" => None,
        Ok(name) => Some(fs::canonicalize(name).expect("PURLIN names an executable")),
        Err(_) => Some(PathBuf::from(env!("CARGO_BIN_EXE_purlin"))),
    };
    let setup = Setup {
        base,
        purlin,
        known: known_failures(&root),
        cc: std::env::var("PROGRAMS_CC").ok(),
        slower: std::env::var("PROGRAMS_SLOWER")
            .map_or(1, |n| n.parse().expect("PROGRAMS_SLOWER is a number")),
    };
    let begun = Instant::now();
    println!("\nrunning {} programs", programs.len());
    let counts = match unable(&setup) {
        Some((failed, reason)) => {
            println!("nothing can be compared: {reason}");
            [0, failed, programs.len() - failed]
        }
        None => {
            compile(&setup, &programs);
            programs.retain(|p| {
                let built = p.nif.as_ref().is_none_or(|n| {
                    setup
                        .folders()
                        .iter()
                        .all(|(folder, cc)| build_library(cc, &root, n, folder))
                });
                if !built {
                    println!(
                        "test {} ... ignored\n    no C compiler, or no headers of OTP",
                        p.name
                    );
                }
                built
            });
            run_all(&setup, &programs)
        }
    };
    let _ = fs::remove_dir_all(&setup.base);
    let [passed, failed, ignored] = counts;
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; \
         {filtered} filtered out; finished in {:.2}s\n",
        begun.elapsed().as_secs_f64()
    );
    ExitCode::from(if failed == 0 { 0 } else { 101 })
}

/// The programs, in order of their names.
fn find(root: &Path) -> Vec<Program> {
    let mut programs = Vec::new();
    for (folder, extension) in [("erlang", "erl"), ("elixir", "exs"), ("tools", "sh")] {
        let mut folders = vec![root.join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("is a directory") {
                let path = entry.expect("can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == extension) {
                    programs.push(program(path));
                }
            }
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    programs
}

fn program(path: PathBuf) -> Program {
    let text = fs::read_to_string(&path).expect("is UTF-8 text");
    let head: Vec<&str> = text
        .lines()
        .take_while(|line| line.starts_with(['%', '#']))
        .collect();
    let after = |word: &str| {
        head.iter()
            .find_map(|line| line.split_once(word))
            .map(|p| p.1)
    };
    Program {
        name: path
            .file_stem()
            .expect("has a name")
            .to_string_lossy()
            .into_owned(),
        modes: Mode::ALL
            .iter()
            .map(|(_, m)| *m)
            .filter(|m| !m.atoms || after("@atoms").is_some())
            .filter(|m| !m.stress || after("@stress").is_some())
            .filter(|m| !m.shared || after("@shared").is_some())
            .filter(|m| !m.fence || after("@fence").is_some())
            .filter(|m| match m.code {
                Code::Usual => true,
                // Frequent collections expose what machine code leaves undone.
                Code::Always => m.stress && !m.fence && by_turns(&path),
                Code::Chaos => false,
            })
            .collect(),
        limit: Duration::from_secs(
            after("@seconds ").map_or(60, |n| n.trim().parse().expect("is a number of seconds")),
        ),
        stdin: after("@stdin ").map_or(String::new(), |t| t.replace("\\n", "\n")),
        nif: after("@nif ").map(|n| n.split_whitespace().next().unwrap_or_default().into()),
        path,
    }
}

/// Selects every second program, by its name.
fn by_turns(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().as_encoded_bytes();
    name.iter().fold(0, |n, &b| n ^ b) & 1 == 0
}

/// Lines `NAME REASON`; `#` begins a comment.
fn known_failures(root: &Path) -> HashMap<String, String> {
    fs::read_to_string(root.join("known_failures.txt"))
        .unwrap_or_default()
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .map(|(name, reason)| (name.to_string(), reason.trim().to_string()))
        .collect()
}

/// The obstacle to any comparison, if there is one, and the number of failures that it counts as:
/// none if the machine lacks something, one if Purlin does not even start, so that programs do not
/// each run into their time limits.
fn unable(setup: &Setup) -> Option<(usize, String)> {
    let probe = |command: &mut Command| {
        command
            .args(["-noshell", "-eval", "halt(0)."])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_or("cannot be started".into(), |c| {
                wait(c, Duration::from_secs(120) * setup.slower)
            })
    };
    if probe(&mut Command::new("erl")) != "status 0" {
        return Some((0, "no stock erl on PATH".into()));
    }
    let status = probe(Command::new(setup.purlin.as_ref()?).arg("erl"));
    (status != "status 0").then(|| (1, format!("purlin erl -noshell -eval 'halt(0).': {status}")))
}

fn compile(setup: &Setup, programs: &[Program]) {
    let mut erlc = Command::new("erlc");
    erlc.args(["-W0", "-o"]).arg(setup.base.join("ebin"));
    let before = erlc.get_args().len();
    erlc.args(
        programs
            .iter()
            .map(|p| &p.path)
            .filter(|p| p.extension().is_some_and(|e| e == "erl")),
    );
    if erlc.get_args().len() > before {
        let status = erlc.status().expect("erlc starts");
        assert!(status.success(), "a program does not compile");
    }
    for (folder, _) in &setup.folders()[1..] {
        fs::create_dir_all(folder).expect("makes a directory");
        for file in fs::read_dir(setup.base.join("ebin")).expect("is a directory") {
            let file = file.expect("can be read");
            fs::copy(file.path(), folder.join(file.file_name())).expect("copies a file");
        }
    }
}

/// Compiles a native library of the tests. Returns false if that is impossible here.
fn build_library(cc: &str, root: &Path, name: &str, folder: &Path) -> bool {
    let headers = Command::new("erl")
        .args([
            "-noshell",
            "-eval",
            "io:put_chars(code:root_dir()), halt().",
        ])
        .output()
        .map(|o| PathBuf::from(String::from_utf8_lossy(&o.stdout).trim()).join("usr/include"));
    let Some(headers) = headers.ok().filter(|h| h.join("erl_nif.h").exists()) else {
        return false;
    };
    Command::new(cc)
        .args(["-shared", "-fPIC", "-O1", "-pthread", "-I"])
        .arg(headers)
        .arg(root.join("../nif").join(name).with_extension("c"))
        .arg("-o")
        .arg(folder.join(name).with_extension("so"))
        .status()
        .is_ok_and(|s| s.success())
}

fn run_all(setup: &Setup, programs: &[Program]) -> [usize; 3] {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|v| v.parse::<usize>().ok())
    };
    // One more than there are processors: many programs wait for time to pass.
    let jobs = number("PROGRAMS_JOBS").unwrap_or_else(|| {
        let processors = std::thread::available_parallelism();
        processors.map_or(2, usize::from) + 1
    });
    let with_stress = number("PROGRAMS_STRESS").unwrap_or(1) != 0 && setup.purlin.is_some();
    let end = number("PROGRAMS_SECONDS").map(|n| SystemTime::now() + Duration::from_secs(n as u64));
    let next = AtomicUsize::new(0);
    let counts = Mutex::new([0; 3]);
    let report = |name: &str, verdict: Verdict| {
        let mut counts = counts.lock().expect("no thread panicked");
        let (column, word, detail) = match verdict {
            Verdict::Agrees => (0, "ok", String::new()),
            Verdict::Differs(detail) | Verdict::Died(detail) => (1, "FAILED", detail),
            Verdict::Ignored(reason) => (2, "ignored", format!("    {reason}\n")),
        };
        counts[column] += 1;
        print!("test {name} ... {word}\n{detail}");
        let _ = std::io::stdout().flush();
    };
    let on_stock = |program: &Program| execute(setup, program, "s", None, Mode::ALL[0].1);
    let examine = |program: &Program, mode: Mode, stock: &Outcome| {
        let name = match mode.name() {
            "plain" => program.name.clone(),
            mode => format!("{}+{mode}", program.name),
        };
        let ours = execute(setup, program, "p", setup.purlin.as_deref(), mode);
        let died = ours.status.starts_with("signal") && stock.status != ours.status;
        // A known failure of a program holds in all modes.
        let known = setup.known.get(&name).or(setup.known.get(&program.name));
        let verdict = match (difference(stock, &ours), known) {
            (None, None) => Verdict::Agrees,
            (None, Some(_)) => {
                println!("note: {name} agrees now, and is in known_failures.txt");
                Verdict::Agrees
            }
            (Some(_), Some(reason)) => Verdict::Ignored(reason.clone()),
            (Some(detail), None) if died => Verdict::Died(detail),
            (Some(detail), None) => Verdict::Differs(detail),
        };
        (name, verdict)
    };
    // A program that differs is run again, alone: a busy machine may have delayed something it
    // waits for.
    let again: Mutex<Vec<(&Program, Mode)>> = Mutex::new(Vec::new());
    let first: Vec<(usize, Mode)> = (0..programs.len())
        .filter_map(|p| Some((p, *programs[p].modes.first()?)))
        .collect();
    // Neighbours are different programs, so that they can run at the same time.
    let longest = programs.iter().map(|p| p.modes.len()).max().unwrap_or(0);
    let mut others: Vec<(usize, Mode)> = (1..longest)
        .flat_map(|n| (0..programs.len()).map(move |p| (p, n)))
        .filter_map(|(p, n)| Some((p, *programs[p].modes.get(n)?)))
        .collect();
    if let Some(end) = end {
        let days = end.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()) / 86_400;
        let from = (days as usize).wrapping_mul(others.len() * 2 / 5) % others.len().max(1);
        others.rotate_left(from);
    }
    let runs = [first, others].concat();
    // What stock does with each program. Its lock is held while the program runs: two runs of one
    // would share a directory.
    let on_stock_once: Vec<Mutex<Option<Outcome>>> =
        programs.iter().map(|_| Mutex::new(None)).collect();
    let too_late = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(&(index, mode)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if mode.stress && !with_stress {
                        continue;
                    }
                    if end.is_some_and(|end| SystemTime::now() > end) {
                        too_late.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    let program = &programs[index];
                    let mut stock = on_stock_once[index].lock().expect("no thread panicked");
                    let stock = stock.get_or_insert_with(|| on_stock(program));
                    let begun = Instant::now();
                    let (name, verdict) = examine(program, mode, stock);
                    if begun.elapsed() > Duration::from_secs(20) {
                        println!("note: {name} took {:.0?}", begun.elapsed());
                    }
                    match verdict {
                        Verdict::Differs(_) => again
                            .lock()
                            .expect("no thread panicked")
                            .push((program, mode)),
                        verdict => report(&name, verdict),
                    }
                }
            });
        }
    });
    let too_late = too_late.into_inner();
    if too_late > 0 {
        println!("note: no time was left for {too_late} runs");
        counts.lock().expect("no thread panicked")[2] += too_late;
    }
    for (program, mode) in again.into_inner().expect("no thread panicked") {
        let (name, verdict) = examine(program, mode, &on_stock(program));
        if matches!(verdict, Verdict::Agrees) {
            println!("note: {name} agrees when it runs alone");
        }
        report(&name, verdict);
    }
    counts.into_inner().expect("no thread panicked")
}

/// Runs a program once. `side` distinguishes the directories of the two runtimes. It has one letter
/// for both, since the length of a path may decide where a line is broken.
fn execute(
    setup: &Setup,
    program: &Program,
    side: &str,
    purlin: Option<&Path>,
    mode: Mode,
) -> Outcome {
    let stem = match (purlin, setup.cc.is_some()) {
        (Some(_), true) => setup.base.join("p"),
        _ => setup.base.clone(),
    };
    let stem = stem.join(format!("{}-{side}", program.name));
    let dir = stem.with_extension("d");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("makes a directory");
    let input = stem.with_extension("in");
    fs::write(&input, &program.stdin).expect("writes a file");
    let (out, err) = (stem.with_extension("out"), stem.with_extension("err"));
    let path = program.path.display();
    let script = match program.path.extension().and_then(|e| e.to_str()) {
        Some("erl") => format!(
            "exec erl -noshell -pa ../ebin -eval '{}:main(), halt(0).'",
            program.name
        ),
        Some("exs") => format!("exec elixir {path} argument"),
        _ => format!("exec sh {path}"),
    };
    let mut command = match purlin {
        Some(purlin) => {
            let mut command = Command::new(purlin);
            command.args(["exec", "--", "sh", "-c", &script]);
            command
        }
        None => {
            let mut command = Command::new("sh");
            command.args(["-c", &script]);
            command
        }
    };
    let file = |path: &Path| File::create(path).expect("makes a file");
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", &dir)
        .env("LANG", "C.UTF-8")
        .current_dir(&dir)
        .stdin(File::open(&input).expect("was written"))
        .stdout(file(&out))
        .stderr(file(&err))
        .process_group(0);
    // Links to Purlin belong in the user's cache. The changed HOME would put them in the scratch
    // directory, which is removed.
    command.env("XDG_CACHE_HOME", setup.base.join("cache"));
    // Some programs start stock, beside Purlin.
    command.env("PURLIN_EXEC", "quiet");
    // Which functions get machine code; see `purlin help erl`.
    match mode.code {
        Code::Always => command.env("PURLIN_JIT", "always"),
        Code::Chaos => {
            let seed = std::env::var("PROGRAMS_SEED").unwrap_or_else(|_| "1".into());
            command.env("PURLIN_JIT", format!("chaos:{seed}"))
        }
        Code::Usual => match std::env::var_os("PURLIN_JIT") {
            Some(mode) => command.env("PURLIN_JIT", mode),
            None => &mut command,
        },
    };
    if let Some(directory) = std::env::var_os("PURLIN_COVERAGE") {
        command.env("PURLIN_COVERAGE", Path::new(&directory).join(&program.name));
    }
    if mode.stress {
        command.env("PURLIN_GC_STRESS", "1");
    }
    if mode.shared {
        command.env("ERL_AFLAGS", "+Fregion 1");
    }
    if mode.atoms {
        command.env("ERL_AFLAGS", "+Fatoms stress");
    }
    if mode.fence {
        command.env("PURLIN_FENCE", "1");
    }
    let limit = if mode.stress || mode.fence || mode.code == Code::Chaos {
        program.limit * 4
    } else {
        program.limit
    };
    let limit = match purlin {
        Some(_) => limit * setup.slower,
        None => limit,
    };
    let status = match command.spawn() {
        Ok(child) => wait(child, limit),
        Err(error) => format!("cannot be started: {error}"),
    };
    let scratch = dir.to_string_lossy().into_owned();
    let text = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        normal(&String::from_utf8_lossy(&bytes).replace(&scratch, "$DIR"))
    };
    Outcome {
        status,
        stdout: text(&out),
        stderr: text(&err),
    }
}

/// Waits for a child and describes its exit status. A child that runs longer than `limit` is killed
/// with everything that it started.
fn wait(mut child: std::process::Child, limit: Duration) -> String {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return match (status.code(), status.signal()) {
                    (Some(code), _) => format!("status {code}"),
                    (_, signal) => format!("signal {}", signal.unwrap_or(0)),
                };
            }
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                // SAFETY: a plain system call; the group is the child's own, made by
                // `process_group(0)`.
                unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                let _ = child.wait();
                return format!("killed after {} seconds", limit.as_secs());
            }
        }
    }
}

/// `None` if they agree, otherwise the first lines that differ.
fn difference(stock: &Outcome, ours: &Outcome) -> Option<String> {
    if stock.status.starts_with("killed") {
        return Some("    the stock runtime ran out of time\n".into());
    }
    if stock == ours {
        return None;
    }
    let mut detail = String::new();
    if stock.status != ours.status {
        detail += &format!("    stock: {}\n    purlin: {}\n", stock.status, ours.status);
    }
    for (name, a, b) in [
        ("standard output", &stock.stdout, &ours.stdout),
        ("standard error", &stock.stderr, &ours.stderr),
    ] {
        if a == b {
            continue;
        }
        let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
        let same = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
        detail += &format!("    {name} from line {}:\n", same + 1);
        for (mark, lines) in [("stock ", &a), ("purlin", &b)] {
            for line in lines[same..].iter().take(6) {
                let short: String = line.chars().take(300).collect();
                detail += &format!("      {mark} | {short}\n");
            }
            if lines.len() <= same {
                detail += &format!("      {mark} | (nothing more)\n");
            }
        }
    }
    Some(detail)
}

/// `text` with everything made equal that differs between runs.
fn normal(text: &str) -> String {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let before_digit = at > 0 && bytes[at - 1].is_ascii_digit();
        let found = identifier(rest)
            .map(|(kind, n)| (n, Some(kind)))
            .or_else(|| {
                if before_digit {
                    None
                } else {
                    moment(rest).map(|n| (n, None))
                }
            });
        if let Some((n, kind)) = found {
            match kind {
                Some(kind) => {
                    let count = seen.len();
                    let number = *seen.entry(rest[..n].to_string()).or_insert(count);
                    out += &format!("{kind}{number}>");
                }
                None => out += &zeros(&rest[..n]),
            }
            at += n;
            continue;
        }
        if let Some(n) = function_in_file(rest) {
            out += &zeros(&rest[..n]);
            at += n;
            continue;
        }
        if let Some(n) = ["heap_size: ", "stack_size: ", "reductions: "]
            .iter()
            .find_map(|k| rest.strip_prefix(k).map(|r| (k.len(), digits(r))))
            .map(|(k, d)| k + d)
        {
            out += &zeros(&rest[..n]);
            at += n;
            continue;
        }
        let c = rest.chars().next().expect("not at the end");
        out.push(c);
        at += c.len_utf8();
    }
    out
}

/// Replaces each run of digits by one zero.
fn zeros(text: &str) -> String {
    let mut out = String::new();
    let mut within = false;
    for c in text.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !within {
            out.push('0');
        }
        within = c.is_ascii_digit();
    }
    out
}

/// Number of digits at the start of `text`.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A process identifier, reference or port at the start of `text`: its kind and length.
fn identifier(text: &str) -> Option<(&'static str, usize)> {
    for (opening, kind, points) in [
        ("#Ref<", "#Ref<", 3),
        ("#Port<", "#Port<", 1),
        ("<", "<", 2),
    ] {
        let Some(mut rest) = text.strip_prefix(opening) else {
            continue;
        };
        for point in 0..=points {
            let n = digits(rest);
            if n == 0 {
                return None;
            }
            rest = &rest[n..];
            rest = rest.strip_prefix(if point == points { '>' } else { '.' })?;
        }
        return Some((kind, text.len() - rest.len()));
    }
    None
}

/// A fun of a module that a script made at run time, as Elixir prints it; its number comes from a
/// clock.
fn function_in_file(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("#Function<")?;
    let rest = rest[digits(rest)..].strip_prefix('.')?;
    let rest = &rest[digits(rest)..];
    rest.starts_with(" in file:")
        .then_some(text.len() - rest.len())
}

/// The length of a date or a time of day at the start of `text`: `21-Nov-2026::07:55:11.123456`,
/// `2026-11-21`, `07:55:11.123`, and durations such as `0.3 seconds` and `12ms`.
fn moment(text: &str) -> Option<usize> {
    let d = digits(text);
    if d == 0 || d > 6 {
        return None;
    }
    let after = &text[d..];
    if d <= 2 {
        let month = after.strip_prefix('-').and_then(|r| {
            let known = r.get(..3).is_some_and(|m| {
                m.starts_with(|c: char| c.is_ascii_uppercase())
                    && m[1..].chars().all(|c| c.is_ascii_lowercase())
            });
            known.then(|| &r[3..])
        });
        if let Some(rest) = month.and_then(|r| pattern(r, &[('-', 4)])) {
            let rest = rest.strip_prefix("::").unwrap_or(rest);
            return Some(text.len() - rest.len());
        }
    }
    if let Some(rest) = pattern(after, &[(':', 2), (':', 2)]).filter(|_| d == 2) {
        let fraction = rest.strip_prefix('.').map_or(0, |f| 1 + digits(f));
        return Some(text.len() - rest.len() + fraction);
    }
    let rest = after.strip_prefix('.').map_or(after, |f| &f[digits(f)..]);
    for unit in [
        " seconds",
        "ms",
        "µs",
        " s]",
        "s async",
        "s sync",
        "s on load",
    ] {
        if let Some(r) = rest.strip_prefix(unit) {
            let n = text.len() - r.len();
            return Some(n - unit.len());
        }
    }
    None
}

/// The rest of the text after `parts`, each a separator and the number of digits after it.
fn pattern<'a>(mut rest: &'a str, parts: &[(char, usize)]) -> Option<&'a str> {
    for (separator, width) in parts {
        rest = rest.strip_prefix(*separator)?;
        if digits(rest) != *width {
            return None;
        }
        rest = &rest[*width..];
    }
    Some(rest)
}
