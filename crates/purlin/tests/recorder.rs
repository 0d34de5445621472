//! `+Frecord` and `purlin explain show FILE`: the record of the last minute of programs that are
//! killed, fail or halt, and folders and files that cannot be used.
//!
//! Skipped with a message if there is no OTP.

use purlin_diagnostics::json::{self, Json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A program that is killed when this is dropped, also if the test fails.
struct Running(Child);

impl Running {
    fn kill(&mut self) -> u32 {
        let _ = self.0.kill();
        let _ = self.0.wait();
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits for a line of a program's output that says that it is ready. Reports of failing processes
/// come before it.
fn ready(mut c: Command) -> Running {
    let child = c.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut running = Running(child.expect("starts"));
    let lines = BufReader::new(running.0.stdout.take().expect("is piped")).lines();
    let mut lines = lines.map(|l| l.expect("is text"));
    assert!(lines.any(|l| l == "ready"));
    running
}

/// A folder for a test, and the environment of its programs.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("purlin-recorder-{name}-{}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .expect("is made");
        Place(folder)
    }
    /// `purlin` with this folder as its home, and no other place for records.
    fn purlin(&self, args: &[&str]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
        c.args(args)
            .env("HOME", &self.0)
            .env_remove("XDG_CACHE_HOME")
            .env("XDG_RUNTIME_DIR", &self.0)
            .stdin(Stdio::null());
        c
    }
    fn recorder(&self) -> PathBuf {
        self.0.join(".cache/purlin/recorder")
    }
    fn records(&self) -> Vec<String> {
        let all = fs::read_dir(self.recorder()).into_iter().flatten();
        let all = all.flatten();
        let mut all: Vec<String> = all
            .map(|e| e.file_name().into_string().expect("is text"))
            .collect();
        all.sort();
        all
    }
    fn output(&self, args: &[&str]) -> Output {
        self.purlin(args).output().expect("runs")
    }
    fn erl(&self, flags: &[&str], program: &str) -> Output {
        let mut args = vec!["erl"];
        args.extend(flags);
        args.extend(["-noshell", "-noinput", "-eval", program]);
        self.output(&args)
    }
    /// Starts a program, and waits until it says that it is ready.
    fn start(&self, flags: &[&str], program: &str) -> Running {
        let mut args = vec!["erl"];
        args.extend(flags);
        args.extend(["-noshell", "-noinput", "-eval", program]);
        ready(self.purlin(&args))
    }
    /// The record of a program that is killed that many milliseconds after it was ready.
    fn killed(&self, flags: &[&str], program: &str, after: u64) -> PathBuf {
        let mut child = self.start(flags, program);
        std::thread::sleep(Duration::from_millis(after));
        let pid = child.kill();
        let folder = match flags
            .iter()
            .find_map(|f| f.split(',').find(|w| w.starts_with('/')))
        {
            Some(folder) => folder.into(),
            None => self.recorder(),
        };
        folder.join(pid.to_string())
    }
    fn shown(&self, file: &Path, more: &[&str]) -> Output {
        let mut args = vec!["explain", "show", file.to_str().expect("is text")];
        args.extend(more);
        self.output(&args)
    }
    fn story(&self, file: &Path) -> String {
        let shown = self.shown(file, &["--top", "100"]);
        assert!(shown.status.success(), "{shown:?}");
        String::from_utf8(shown.stdout).expect("is text")
    }
    fn events(&self, file: &Path) -> Vec<Json> {
        let shown = self.shown(file, &["--json"]);
        let text = String::from_utf8(shown.stdout).expect("is text");
        let answer = json::parse(&text).expect("is JSON");
        answer.get("records").expect("has them").list().to_vec()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn there_is_erl() -> bool {
    let there = Command::new("erl").arg("-version").output().is_ok();
    if !there {
        println!("skipped: no erl");
    }
    there
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("is text")
}

/// A supervisor with a child that fails, a process that grows, a long mailbox, a native that keeps
/// its scheduler, and more processes than are recorded one by one.
const BUSY: &str = r#"
    Init = fun() -> register(failing, self()), proc_lib:init_ack({ok, self()}),
        receive {divide, N} -> 1 div N end end,
    Start = fun() -> proc_lib:start_link(erlang, apply, [Init, []]) end,
    process_flag(trap_exit, true),
    {ok, First} = Start(),
    First ! {divide, 0},
    receive {'EXIT', First, _} -> ok end,
    {ok, _} = Start(),
    Grow = fun G(L, 0) -> receive never -> L end;
               G(L, N) -> timer:sleep(5), G([lists:seq(1, 20000) | L], N - 1) end,
    spawn(fun() -> register(growing, self()), Grow([], 250) end),
    Slow = spawn(fun() -> register(flooded, self()), receive never -> ok end end),
    [Slow ! secret_message || _ <- lists:seq(1, 30000)],
    [spawn(fun() -> exit({secret_reason, N}) end) || N <- lists:seq(1, 5)],
    [spawn(fun() -> ok end) || _ <- lists:seq(1, 2000)],
    io:format("ready~n"),
    receive never -> ok end."#;

#[test]
fn a_killed_program_leaves_its_story() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("story");
    let file = place.killed(&[], BUSY, 2300);
    let mode = |p: &Path| fs::metadata(p).expect("is there").permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(&place.recorder())), (0o600, 0o700));
    let story = place.story(&file);
    for part in [
        "ended without a halt",
        "`failing` <0.",
        "ended with `badarith`",
        "restarted `failing`",
        "`growing` <0.",
        "it grew by ",
        "`flooded` <0.",
        " unread messages",
        "ended with a reason of its own",
        "processes (",
    ] {
        assert!(story.contains(part), "{part} in\n{story}");
    }
    let bytes = fs::read(&file).expect("is there");
    let has = |word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
    assert!(!has(b"secret"), "terms of the program");
    assert!(has(b"growing"));
    let events = place.events(&file);
    let of = |name: &str| {
        let named = |e: &&Json| e.get("e").and_then(Json::text) == Some(name);
        events.iter().filter(named).count()
    };
    assert!(of("second") >= 2, "{story}");
    // Each thread has its limit, and the rest is only counted.
    assert!(of("start") > 20 && of("start") < 1000, "{}", of("start"));
    let started = |e: &Json| e.get("started").and_then(Json::number).unwrap_or(0.0);
    assert!(events.iter().map(started).sum::<f64>() >= 2000.0);
}

#[test]
fn terms_are_recorded_only_if_asked_for() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("terms");
    let folder = place.0.join("elsewhere");
    let words = format!("terms,1,{}", folder.display());
    let file = place.killed(&["+Frecord", &words], BUSY, 300);
    assert!(place.story(&file).contains("ended with {secret_reason,3}"));
    assert_eq!(fs::metadata(&file).expect("is there").len(), 1 << 20);
    assert!(place.records().is_empty());
}

#[test]
fn the_next_start_reports_it_once_and_on_standard_error() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("next");
    let program = r#"io:format("ready~n"), case os:getenv("STAY") of false -> halt(3);
        _ -> receive never -> ok end end."#;
    let stay = || {
        let mut args = vec!["erl", "-noshell", "-noinput", "-eval"];
        args.push(program);
        let mut c = place.purlin(&args);
        c.env("STAY", "1");
        ready(c).kill()
    };
    let killed = stay();
    // Another program is not concerned.
    let other = place.erl(&[], r#"io:format("ready~n"), halt(4)."#);
    assert_eq!((text(&other.stdout), text(&other.stderr)), ("ready\n", ""));
    let run = |flags: &[&str]| place.erl(flags, program);
    let first = run(&[]);
    assert_eq!(
        (text(&first.stdout), first.status.code()),
        ("ready\n", Some(3))
    );
    let line = text(&first.stderr);
    let begin = format!("purlin: the last run (process {killed}) ended without a halt at ");
    let end = format!(
        "purlin explain show {}/{killed}\n",
        place.recorder().display()
    );
    assert!(line.starts_with(&begin) && line.ends_with(&end), "{line}");
    assert_eq!(line.lines().count(), 1);
    // It is reported once. Those that have halted have left nothing.
    assert_eq!(text(&run(&[]).stderr), "");
    assert_eq!(place.records(), [killed.to_string()]);
    assert!(
        place
            .story(&place.recorder().join(killed.to_string()))
            .contains("Process")
    );
    // A node with a name is the same run with other flags. Its file is not that of another name.
    let node = |name: &str, flags: &[&str]| {
        let name = format!("{name}_{}", std::process::id());
        let mut all = vec!["-start_epmd", "false", "-dist_listen", "false"];
        all.extend(["-sname", name.as_str()]);
        all.extend(flags);
        all.iter().map(|s| s.to_string()).collect::<Vec<String>>()
    };
    let flags = node("one", &[]);
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    place.killed(
        &flags,
        r#"io:format("ready~n"), receive never -> ok end."#,
        0,
    );
    for (name, more, reported) in [
        ("two", &[][..], false),
        ("one", &["+Frecord", "quiet"][..], false),
        ("one", &["+Frecord", "off"][..], false),
        ("one", &["+S", "1"][..], true),
    ] {
        let flags = node(name, more);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let error = place.erl(&flags, "halt().").stderr;
        assert_eq!(
            text(&error).contains("ended without a halt"),
            reported,
            "{name} {more:?}"
        );
    }
}

/// A start that the system refuses says so itself: the next one has nothing to report.
#[test]
fn refused_starts_are_not_reported() {
    let place = Place::new("refused");
    let limited = |files: u32| {
        let mut c = Command::new("sh");
        c.args([
            "-c",
            r#"ulimit -n "$1" && exec "$2" erl -noshell -eval 'halt().'"#,
        ])
        .args(["sh", &files.to_string(), env!("CARGO_BIN_EXE_purlin")])
        .env("HOME", &place.0)
        .env_remove("XDG_CACHE_HOME")
        .env("XDG_RUNTIME_DIR", &place.0)
        .stdin(Stdio::null());
        c.output().expect("runs")
    };
    // With some of these limits, the run has a record, and no descriptor is left when it ends.
    let mut recorded = 0;
    for files in 5..40 {
        let said = limited(files);
        let error = text(&said.stderr);
        assert!(!error.contains("the last run"), "{files}: {error}");
        if error.starts_with("purlin: cannot ") {
            assert_eq!(said.status.code(), Some(1));
            assert_eq!(error.lines().count(), 1, "{files}: {error}");
            recorded = place.records().len().max(recorded);
        }
    }
    assert!(recorded > 0, "no refused start has a record");
}

#[test]
fn a_run_that_lives_is_not_reported() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("lives");
    let program = r#"io:format("ready~n"), case os:getenv("STAY") of false -> halt(3);
        _ -> receive never -> ok end end."#;
    let mut c = place.purlin(&["erl", "-noshell", "-noinput", "-eval", program]);
    c.env("STAY", "1");
    let mut living = ready(c);
    for _ in 0..3 {
        let other = place.erl(&[], program);
        assert_eq!((text(&other.stdout), text(&other.stderr)), ("ready\n", ""));
    }
    let pid = living.kill();
    let next = place.erl(&[], program);
    let line = format!("purlin: the last run (process {pid}) ended without a halt at ");
    assert!(text(&next.stderr).starts_with(&line), "{next:?}");
}

#[test]
fn each_kill_leaves_a_readable_file_and_few_are_kept() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("kills");
    let program = r#"io:format("ready~n"),
        (fun L() -> spawn(fun() -> exit(lists:seq(1, 10)) end), L() end)()."#;
    fs::create_dir_all(place.0.join(".cache")).expect("is made");
    for n in 0..18 {
        let file = place.killed(&[], program, 7 * n);
        let story = place.story(&file);
        assert!(story.starts_with(&format!(
            "Process {}",
            file.file_name().expect("has one").display()
        )));
    }
    // Files that are not records are left alone.
    fs::write(place.recorder().join("1"), "mine").expect("is written");
    fs::write(place.recorder().join("notes"), "mine").expect("is written");
    symlink("/etc/passwd", place.recorder().join("2")).expect("is made");
    let mut living = place.start(&[], program);
    let enough = Instant::now() + Duration::from_secs(10);
    let kept = |n: &String| n.parse::<u32>().is_ok_and(|n| n > 2 && n != living.0.id());
    let count = || place.records().iter().filter(|n| kept(n)).count();
    while count() > 16 && Instant::now() < enough {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = place.records();
    // The two at the top are among the sixteen latest.
    assert!((14..=16).contains(&count()), "{left:?}");
    for name in ["1", "2", "notes", &living.0.id().to_string()] {
        assert!(left.iter().any(|n| n == name), "{name} in {left:?}");
    }
    living.kill();
}

#[test]
fn damaged_files_are_refused_with_one_line() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("damaged");
    let file = place.killed(&["+Frecord", "1"], BUSY, 0);
    let good = fs::read(&file).expect("is there");
    let bad = place.0.join("bad");
    let refused = |path: &Path, why: &str| {
        let out = place.shown(path, &[]);
        let line = text(&out.stderr).to_string();
        let shown = path.display().to_string();
        assert_eq!(
            (out.status.code(), line.lines().count()),
            (Some(66), 1),
            "{line}"
        );
        assert!(
            line.starts_with("purlin: ") && line.contains(&shown),
            "{line}"
        );
        assert!(line.contains(why) && out.stdout.is_empty(), "{line}");
    };
    let try_bytes = |bytes: &[u8], why: &str| {
        fs::write(&bad, bytes).expect("is written");
        refused(&bad, why);
    };
    try_bytes(b"", "empty");
    try_bytes(&good[..5000], "cut off");
    try_bytes(&good[..4096], "cut off");
    try_bytes(&good[..100], "cut off");
    let changed = |at: usize, to: u8| {
        let mut bytes = good.clone();
        bytes[at] ^= to;
        bytes
    };
    try_bytes(
        &changed(8, 3),
        "of format 2, and this Purlin reads format 1",
    );
    try_bytes(&changed(14, 0xff), "damaged: block 0 has another checksum");
    try_bytes(&changed(5000, 1), "damaged: block 1 has another checksum");
    try_bytes(&changed(4096, 1), "damaged: block 1 has no magic word");
    try_bytes(
        &[b"PurlinRc".as_slice(), &[0xff; 9000]].concat(),
        "of format",
    );
    refused(&place.0, "not a file");
    refused(&place.0.join("none"), "cannot read");
    refused(Path::new("/dev/zero"), "not a file");
    let pipe = place.0.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|s| s.success()));
    refused(&pipe, "not a file");
}

#[test]
fn places_that_cannot_be_used_change_nothing() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("places");
    let quiet = |c: &mut Command, why: &str| {
        let program = r#"io:format("ready~n"), os:cmd("sleep 0.2"), io:format("~s", [os:cmd(
            os:getenv("PURLIN") ++ " explain " ++ os:getpid() ++ " recorder")]), halt()."#;
        let out = c
            .env("PURLIN", env!("CARGO_BIN_EXE_purlin"))
            .args(["-noshell", "-noinput", "-eval", program])
            .output()
            .expect("runs");
        assert_eq!(
            (out.status.code(), text(&out.stderr)),
            (Some(0), ""),
            "{why}"
        );
        let out = text(&out.stdout);
        assert!(
            out.starts_with("ready\n") && out.contains(why),
            "{why}: {out}"
        );
    };
    quiet(
        &mut place.purlin(&["erl"]),
        &format!("recorded in {}", place.recorder().display()),
    );
    assert!(place.records().is_empty());
    quiet(
        &mut place.purlin(&["erl", "+Frecord", "off"]),
        "it is switched off (+Frecord off)",
    );
    for folder in ["/proc/none", "/dev/null/x", "/nowhere/at/all"] {
        quiet(
            &mut place.purlin(&["erl", "+Frecord", folder]),
            "there is no folder for it",
        );
    }
    // A link is not followed, nor is a folder entered that others can write to.
    let other = place.0.join("other");
    fs::create_dir(&other).expect("is made");
    let link = place.0.join("link");
    symlink(&other, &link).expect("is made");
    let word = link.display().to_string();
    quiet(
        &mut place.purlin(&["erl", "+Frecord", &word]),
        "there is no folder for it",
    );
    fs::set_permissions(&other, fs::Permissions::from_mode(0o777)).expect("is set");
    let word = other.join("records").display().to_string();
    quiet(
        &mut place.purlin(&["erl", "+Frecord", &word]),
        "there is no folder for it",
    );
    // Without a home the record is beside the socket.
    for home in [None, Some("/nowhere"), Some("relative"), Some("/proc")] {
        let mut c = place.purlin(&["erl"]);
        c.env_remove("HOME");
        home.map(|h| c.env("HOME", h));
        quiet(
            &mut c,
            &format!("recorded in {}/purlin/recorder/", place.0.display()),
        );
    }
}

#[test]
fn wrong_words_are_refused() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("words");
    for words in ["0", "129", "on", "relative/path", "quiet,", ""] {
        let out = place.erl(&["+Frecord", words], "halt().");
        let error = text(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{words}: {error}");
        assert!(
            error.contains("bad words for the record"),
            "{words}: {error}"
        );
    }
}

#[test]
fn ends_that_nobody_asked_for_leave_the_file() {
    if !there_is_erl() {
        return;
    }
    let place = Place::new("ends");
    let dump = r#"register(last, self()), erlang:halt("slogan")."#;
    let dumped = || {
        place
            .purlin(&["erl", "-noshell", "-noinput", "-eval", dump])
            .env("ERL_CRASH_DUMP", "/dev/null")
            .output()
            .expect("runs")
    };
    assert_eq!(dumped().status.code(), Some(1));
    let records = place.records();
    assert_eq!(records.len(), 1);
    let story = place.story(&place.recorder().join(&records[0]));
    assert!(story.contains(" and halted with a slogan"), "{story}");
    // Its crash dump says so already.
    let again = dumped();
    assert!(!text(&again.stderr).contains("last run"), "{again:?}");
    let records = place.records();
    assert_eq!(records.len(), 2);
    // A halt of any status, and a signal that asks for one, remove it.
    place.erl(&[], "erlang:halt(7).");
    place.erl(&[], "init:stop().");
    let mut child = place.start(&[], r#"io:format("ready~n"), receive never -> ok end."#);
    let asked = Command::new("kill")
        .arg(child.0.id().to_string())
        .status()
        .expect("runs");
    assert!(asked.success());
    child.0.wait().expect("ends");
    assert_eq!(place.records(), records);
}
