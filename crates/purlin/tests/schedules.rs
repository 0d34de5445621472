//! `purlin schedules` finds races in the programs of `tests/schedules`, repeats them, and finds
//! none in the corrected versions.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn purlin() -> PathBuf {
    std::env::var_os("PURLIN").map_or_else(|| env!("CARGO_BIN_EXE_purlin").into(), PathBuf::from)
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/schedules")
}

fn run(args: &[&str]) -> Output {
    run_on(None, args)
}

/// Runs a command on the OTP at that root, or else on the machine's own.
fn run_on(root: Option<&Path>, args: &[&str]) -> Output {
    let mut command = Command::new(purlin());
    if let Some(root) = root {
        command.env("PURLIN_OTP_ROOT", root);
    }
    let command = command.args(args).current_dir(programs());
    command.output().expect("runs")
}

fn text(o: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&o.stdout),
        String::from_utf8_lossy(&o.stderr)
    )
}

struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("purlin-{}-{name}.psch", std::process::id());
        File(std::env::temp_dir().join(name))
    }
    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The race is found, cut down to one deviation, and repeated; where it fails stands in the story.
fn found(program: &str, line: &str) {
    found_on(None, program, line);
}

fn found_on(root: Option<&Path>, program: &str, line: &str) {
    let run = |args: &[&str]| run_on(root, args);
    let file = File::new(program);
    let source = format!("{program}.erl");
    let o = run(&[
        "schedules",
        "--seed",
        "1",
        "--to",
        file.path(),
        "--",
        "run",
        &source,
    ]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(t.contains("to 1. Again: purlin replay"), "{t}");
    assert!(t.contains(line), "{t}");
    for _ in 0..2 {
        let o = run(&["replay", file.path()]);
        assert_eq!(o.status.code(), Some(1), "{}", text(&o));
        assert!(text(&o).contains("as recorded"), "{}", text(&o));
    }
    let o = run(&["schedules", "show", file.path()]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    assert!(text(&o).contains(line), "{}", text(&o));
    let page = format!("{}.html", file.path());
    let o = run(&["schedules", "show", file.path(), "--html", &page]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    let html = std::fs::read_to_string(&page).expect("a page");
    let _ = std::fs::remove_file(&page);
    assert!(
        html.starts_with("<!doctype html>") && html.contains("class=\"s\""),
        "{html}"
    );
    assert!(!html.contains("<0.") && !html.contains("http"), "{html}");
}

/// A replay file that was cut off, changed in one place, or belongs to another run is refused, or
/// its replay reports where it differs.
#[test]
fn a_damaged_file_is_told() {
    let file = File::new("damaged");
    let source = [
        "schedules",
        "--seed",
        "1",
        "--to",
        file.path(),
        "--",
        "run",
        "lost_race.erl",
    ];
    assert_eq!(run(&source).status.code(), Some(1));
    let whole = std::fs::read_to_string(file.path()).expect("a file");
    for bad in [
        &whole[..whole.len() / 2],
        &whole.replacen("status 1", "status 2", 1),
        "",
        "purlin schedule 6\n",
    ] {
        std::fs::write(file.path(), bad).expect("written");
        let o = run(&["replay", file.path()]);
        assert_eq!(o.status.code(), Some(66), "{}", text(&o));
        assert!(
            text(&o).contains("not a file of a schedule"),
            "{}",
            text(&o)
        );
    }
}

/// A file of another format is refused in one line, which names the build that wrote it. A file of
/// another build is replayed, with a warning.
#[test]
fn files_of_other_builds() {
    let file = File::new("builds");
    let source = ["schedules", "--seed", "1", "--to", file.path()];
    let o = run(&[&source[..], &["--", "run", "lost_race.erl"]].concat());
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    let whole = std::fs::read_to_string(file.path()).expect("a file");
    let build = whole
        .lines()
        .nth(1)
        .and_then(|l| l.strip_prefix("made-by "));
    let build = build.expect("a build").trim_matches('"');
    assert!(build.starts_with("Purlin "), "{build}");
    let o = run(&["replay", file.path()]);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    assert!(!text(&o).contains("made by"), "{}", text(&o));
    let other = whole.replacen("schedule 6", "schedule 3", 1);
    std::fs::write(file.path(), other).expect("written");
    for command in [&["replay"][..], &["schedules", "show"]] {
        let o = run(&[command, &[file.path()]].concat());
        assert_eq!(o.status.code(), Some(66), "{}", text(&o));
        let said = String::from_utf8_lossy(&o.stderr).into_owned();
        assert!(
            said.contains("in format 3, and this Purlin reads format 6"),
            "{said}"
        );
        assert!(said.contains(build) && said.lines().count() == 1, "{said}");
    }
    let (body, _) = whole.rsplit_once("sum ").expect("a checksum");
    let body = body.replacen(build, "Purlin 0.0.1 (abc)", 1);
    let byte = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
    let sum = body.bytes().fold(0xCBF2_9CE4_8422_2325, byte);
    std::fs::write(file.path(), format!("{body}sum {sum}\n")).expect("written");
    let o = run(&["replay", file.path()]);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    assert!(
        text(&o).contains("made by Purlin 0.0.1 (abc), and this is Purlin "),
        "{}",
        text(&o)
    );
}

/// Replay files name natives: nothing in them is numbered by a table of the build.
#[test]
fn files_name_natives() {
    let file = File::new("names");
    let source = ["schedules", "--seed", "1", "--to", file.path()];
    let o = run(&[&source[..], &["--", "run", "once_race.erl"]].concat());
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    let whole = std::fs::read_to_string(file.path()).expect("a file");
    let names = whole.lines().find_map(|l| l.strip_prefix("names "));
    let names: Vec<&str> = names.expect("names").split(' ').collect();
    assert!(names.contains(&"ets:insert/2"), "{names:?}");
    let known = ["send", "receive", "end"];
    assert!(
        names.iter().all(|n| known.contains(n) || n.contains(':')),
        "{names:?}"
    );
}

fn none(program: &str) {
    let source = format!("{program}.erl");
    let o = run(&[
        "schedules",
        "--seed",
        "1",
        "--seeds",
        "60",
        "--",
        "run",
        &source,
    ]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    assert!(text(&o).contains("none failed"), "{}", text(&o));
    assert!(
        text(&o).contains("Seed 1 decides all of it."),
        "{}",
        text(&o)
    );
}

#[test]
fn a_look_before_an_insert() {
    found("once_race", "once_race.erl:");
    none("once_right");
}

#[test]
fn a_table_that_comes_too_late() {
    found("ready_race", "ready_race.erl:");
    none("ready_right");
}

#[test]
fn a_lost_update() {
    found("lost_race", "lost_race.erl:");
    none("lost_right");
}

#[test]
fn an_answer_that_comes_too_late() {
    found("late_race", "is late by");
    none("late_right");
}

#[test]
fn a_process_of_library_code_that_the_base_does_not_make() {
    found("library_race", "is late by");
}

#[test]
fn a_monitor_after_the_end() {
    found("gone_race", "gone_race.erl:");
    none("gone_right");
}

#[test]
fn a_receive_that_finds_something_at_once() {
    found("early_race", "receive");
    none("early_right");
}

#[test]
fn a_name_whose_holder_ends() {
    found("name_race", "name_race.erl:");
    none("name_right");
}

#[test]
fn a_variable_of_the_environment() {
    found("variable_race", "os:putenv(");
    none("variable_right");
}

/// Only a stop before the call of that one native makes these fail.
#[test]
fn natives_with_options_are_scheduling_points() {
    found("send_after_race", "send_after_race.erl:");
    found("start_timer_race", "start_timer_race.erl:");
    found("listed_race", "listed_race.erl:");
    found("alias_race", "erlang:alias(");
    found("spawn_request_race", "erts_internal:spawn_request(");
}

/// As the test above, where `make roots` has fetched OTP 29.
#[test]
fn a_later_native_is_a_scheduling_point() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/roots/otp29");
    let root = root.join("usr/lib/erlang");
    match root.is_dir() {
        true => found_on(Some(&root), "put_new_race", "persistent_term:put_new("),
        false => println!("skipped: there is no {}", root.display()),
    }
}

/// Between the two comes a server that is not the program's.
#[test]
fn a_value_that_stands_for_a_moment() {
    found("env_race", "until <");
    none("env_right");
}

/// A failure that a sampler has found is reported as a fixed schedule if one fails in the same way,
/// else as the sampler's own run. Either fails again on replay.
#[test]
fn what_a_sampler_finds_fails_again() {
    for sampler in ["pos", "surw", "pct:3", "random"] {
        let file = File::new("sampled");
        let words = ["schedules", "--strategy", sampler, "--seed", "1", "--to"];
        let o = run(&[&words[..], &[file.path(), "--", "run", "env_race.erl"]].concat());
        let t = text(&o);
        assert_eq!(o.status.code(), Some(1), "{sampler}: {t}");
        assert!(t.contains("failed with status 1"), "{sampler}: {t}");
        let o = run(&["replay", file.path()]);
        assert!(text(&o).contains("as recorded"), "{sampler}: {}", text(&o));
    }
}

/// Numbers out of range, and a command that starts no emulator, are reported in one line. So is a
/// file that cannot be written, and no part of it is left.
#[test]
fn what_cannot_be_done_is_told() {
    let program = ["--", "run", "gone_race.erl"];
    for (options, status, what) in [
        (&["--strategy", "pct:4000000000"][..], 2, "no strategy"),
        (&["--strategy", "delays:4000000000"][..], 2, "no strategy"),
        (
            &["--stall", "9223372036854775807"][..],
            2,
            "more than an hour",
        ),
        (&["--to", "/dev/full"][..], 71, "cannot write /dev/full"),
        (
            &["--to", "/no-such/x.psch"][..],
            71,
            "cannot write /no-such/",
        ),
        (
            &["--html", "/no-such/x.html"][..],
            71,
            "cannot write /no-such/",
        ),
        (&["--seeds", "0"][..], 2, "none would run"),
        (&["--jobs", "0"][..], 2, "none would run"),
    ] {
        let o = run(&[&["schedules", "--seed", "1"], options, &program].concat());
        assert_eq!(o.status.code(), Some(status), "{}", text(&o));
        assert!(text(&o).contains(what), "{}", text(&o));
        assert!(!text(&o).contains("Again:"), "{}", text(&o));
    }
    let o = run(&["schedules", "--seed", "1", "--", "true"]);
    assert_eq!(o.status.code(), Some(2), "{}", text(&o));
    assert!(text(&o).contains("has started no emulator"), "{}", text(&o));
    let o = run(&["schedules", "--seed", "1", "--", "false"]);
    assert_eq!(o.status.code(), Some(2), "{}", text(&o));
    assert!(
        text(&o).contains("no emulator of Purlin and ended with status 1"),
        "{}",
        text(&o)
    );
    let o = run(&["schedules", "--seed", "1", "--", "no-such-command"]);
    assert_eq!(o.status.code(), Some(127), "{}", text(&o));
    let begun = "exec \"$0\" exec -- erl -noshell -eval 'halt(3).'";
    let file = File::new("begun");
    let me = purlin();
    let me = me.to_str().expect("text");
    let o = run(&[
        "schedules",
        "--seed",
        "1",
        "--to",
        file.path(),
        "--",
        "sh",
        "-c",
        begun,
        me,
    ]);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    assert!(
        text(&o).contains("the base itself failed with status 3\nAgain: purlin replay"),
        "{}",
        text(&o)
    );
}

/// A message that is held back arrives after one of another process. Messages of one sender stay in
/// order, and arrive before the signals of its exit.
#[test]
fn a_message_that_arrives_late() {
    let any = ["--delivery", "any", "--seed", "1", "--seeds", "300"];
    let file = File::new("order");
    let search = |program: &str, options: &[&str]| {
        let mut args = vec!["schedules", "--to", file.path()];
        args.extend(options);
        args.extend(["--", "run", program]);
        run(&args)
    };
    let o = search("order_race.erl", &any);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(
        t.contains("whose message waits until another process has sent to the receiver"),
        "{t}"
    );
    for _ in 0..2 {
        let o = run(&["replay", file.path()]);
        assert_eq!(o.status.code(), Some(1), "{}", text(&o));
        assert!(text(&o).contains("as recorded"), "{}", text(&o));
    }
    let o = search("order_right.erl", &any);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    let o = search("order_race.erl", &any[2..]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
}

/// Processes that spin for a lock do not keep its preempted holder from running.
#[test]
fn a_lock_that_is_asked_for_again_and_again() {
    none("spin_right");
}

/// A search finds failures of two kinds and writes a file for each. A search that begins with such
/// a file finds its failure at once, with the command that the file records.
#[test]
fn a_search_goes_on_after_a_failure() {
    let file = File::new("two");
    let o = run(&[
        "schedules",
        "--keep-going",
        "--seed",
        "1",
        "--seeds",
        "120",
        "--to",
        file.path(),
        "--",
        "run",
        "two_race.erl",
    ]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(t.contains("failed in 2 ways"), "{t}");
    assert!(
        t.contains("failed with status 3") && t.contains("failed with status 4"),
        "{t}"
    );
    let second = file.path().replace(".psch", "-2.psch");
    for f in [file.path(), &second] {
        let o = run(&["replay", f]);
        assert!(text(&o).contains("as recorded"), "{}", text(&o));
    }
    let again = File::new("again");
    let o = run(&[
        "schedules",
        "--from",
        &second,
        "--seed",
        "2",
        "--to",
        again.path(),
    ]);
    let _ = std::fs::remove_file(&second);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    assert!(
        text(&o).starts_with("2 schedules (2 distinct)"),
        "{}",
        text(&o)
    );
    let o = run(&["schedules", "show", again.path(), "--json"]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
    let json = text(&o);
    assert!(
        json.starts_with("{\"schema\":\"purlin-story/1\",\"command\":[\"run\",\"two_race.erl\"],"),
        "{json}"
    );
    assert!(json.contains("\"place\":\"two_race.erl:"), "{json}");
}

/// `--from M:F/A`: what comes before is left alone.
#[test]
fn a_search_begins_at_a_function() {
    for (from, status) in [("lost_race:main/0", 1), ("lost_race:nowhere/0", 2)] {
        let file = File::new("from");
        let o = run(&[
            "schedules",
            "--from",
            from,
            "--seed",
            "1",
            "--to",
            file.path(),
            "--",
            "run",
            "lost_race.erl",
        ]);
        assert_eq!(o.status.code(), Some(status), "{}", text(&o));
    }
}

/// `--strict` accepts a program that reads files only to load its code.
#[test]
fn strictly_under_control() {
    let strict = |expression: &str| {
        run(&[
            "schedules",
            "--strict",
            "--seed",
            "1",
            "--strategy",
            "none",
            "--",
            "erl",
            "-noshell",
            "-eval",
            expression,
        ])
    };
    let o = strict("io:format(\"~p~n\", [lists:sum([1, 2])]), halt(0).");
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
}

/// Operations that no seed decides are reported by kind, also where a server of OTP performs them;
/// reads of code are not. `--strict` accepts operations that a failing schedule records.
#[test]
fn what_no_seed_decides_is_told() {
    let dir = std::env::temp_dir().join(format!("purlin-outside-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("makes a folder");
    let source = dir.join("outside.erl");
    for (expression, what, status) in [
        (
            r#"file:read_file("once_race.erl")"#,
            "1 read of files or folders",
            0,
        ),
        (
            r#"{ok, F} = file:open("once_race.erl", [read]), {ok, _} = file:read(F, 5)"#,
            "1 file opened, 1 read of files or folders",
            0,
        ),
        (r#"open_port({spawn, "true"}, [])"#, "1 program started", 0),
        ("{ok, _} = gen_tcp:listen(0, [])", "1 socket opened", 0),
        (
            "crypto:generate_key(ecdh, secp256r1)",
            "1 call of OpenSSL that draws numbers of its own",
            5,
        ),
        (
            "os:getpid()",
            "1 look at the number of its process of the system",
            0,
        ),
    ] {
        let code =
            format!("-module(outside).\n-export([main/0]).\nmain() -> {expression}, halt(0).\n");
        std::fs::write(&source, code).expect("writes");
        let o = Command::new(purlin())
            .args(["schedules", "--strict", "--seed", "1", "--strategy", "none"])
            .args(["--", "run"])
            .arg(&source)
            .current_dir(programs())
            .output()
            .expect("runs");
        assert_eq!(o.status.code(), Some(status), "{}", text(&o));
        let told = format!("Seed 1 decides all of it but {what}.");
        assert!(text(&o).contains(&told), "{}", text(&o));
    }
    std::fs::remove_dir_all(&dir).expect("removes");
}

/// Runs do not share a forked prefix that has files open, as they would share those files. With
/// `--fresh-dir` each run has a folder of its own, so they do not meet.
#[test]
fn schedules_do_not_meet_through_files() {
    let left = "A schedule may find files that another has left";
    let search = |options: &[&str], program: &str| {
        let mut args = vec!["schedules", "--seed", "1", "--seeds", "40"];
        args.extend(options);
        args.extend(["--", "run", program]);
        let o = run(&args);
        assert_eq!(o.status.code(), Some(0), "{}", text(&o));
        text(&o)
    };
    let t = search(&[], "lock_right.erl");
    assert!(t.contains("2 files opened") && t.contains(left), "{t}");
    let t = search(&["--fresh-dir"], "left_right.erl");
    assert!(t.contains("2 writes to files"), "{t}");
    assert!(!t.contains(left), "{t}");
    assert!(!programs().join("left.txt").exists());
}

/// The story at the end of the documentation is what the tool prints. Numbers and blanks are left
/// out of the comparison, since they differ between releases.
#[test]
fn the_documentation_shows_what_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let doc = std::fs::read_to_string(root.join("docs/schedules.md")).expect("reads");
    let test = std::fs::read_to_string(programs().join("pool_test.exs")).expect("reads");
    assert!(
        doc.contains(&format!("```elixir\n{test}```")),
        "the test of the documentation is not pool_test.exs"
    );
    if Command::new("elixir").arg("--version").output().is_err() {
        println!("skipped: no elixir");
        return;
    }
    let plain = |l: &str| {
        let mut t = String::new();
        for c in l.trim().chars() {
            let c = if c.is_ascii_digit() { '0' } else { c };
            if !(matches!(c, '0' | ' ' | '.') && t.ends_with(c)) {
                t.push(c);
            }
        }
        t
    };
    let told = |text: &str| -> Vec<String> {
        let told = text.lines().filter(|l| {
            l.contains("pool_test.exs:6 ") || l.contains("stops before") || l.contains("Shrunk")
        });
        told.map(plain).collect()
    };
    let story = doc
        .split("## Its story")
        .nth(1)
        .expect("a story at the end");
    let o = run(&[
        "schedules",
        "--seed",
        "1",
        "--to",
        "/dev/null",
        "--",
        "run",
        "pool_test.exs",
    ]);
    let shown = told(story);
    assert!(shown.len() >= 5, "{shown:?}");
    let printed = text(&o).replace("/dev/null", "purlin-schedule-1.psch");
    assert_eq!(shown, told(&printed), "{printed}");
}

/// A failure that a sampler has found is shrunk to deviations, and repeated from these.
#[test]
fn each_strategy_finds_a_lost_update() {
    for strategy in ["pos", "surw", "random", "flips", "delays:1"] {
        let file = File::new(&strategy.replace(':', "-"));
        let o = run(&[
            "schedules",
            "--seed",
            "1",
            "--seeds",
            "200",
            "--strategy",
            strategy,
            "--to",
            file.path(),
            "--",
            "run",
            "lost_race.erl",
        ]);
        let t = text(&o);
        assert_eq!(o.status.code(), Some(1), "{strategy}: {t}");
        assert!(t.contains("to 1. Again: purlin replay"), "{strategy}: {t}");
        let o = run(&["replay", file.path()]);
        assert_eq!(o.status.code(), Some(1), "{strategy}: {}", text(&o));
        assert!(text(&o).contains("as recorded"), "{strategy}: {}", text(&o));
    }
}

/// With deviations while a program is being compiled, forked runs have files open; each run has its
/// own position in them.
#[test]
fn a_program_that_is_right_is_not_reported() {
    let words = ["schedules", "--seed", "3", "--strategy", "flips"];
    let o = run(&[
        &words[..],
        &["--seeds", "330", "--", "run", "hello_right.erl"],
    ]
    .concat());
    let t = text(&o);
    assert_eq!(o.status.code(), Some(0), "{t}");
    assert!(t.starts_with("330 schedules"), "{t}");
    assert!(t.contains("none failed") && !t.contains("not told"), "{t}");
}

/// A replay is the same after comments, functions, and output that is no visible operation have
/// been added to the program. It is the same in another environment: it gets the variables that its
/// run has asked for. It writes what the run wrote, or reports that it does not.
#[test]
fn a_replay_of_a_program_that_was_added_to() {
    let dir = std::env::temp_dir().join(format!("purlin-added-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("makes a folder");
    let write = |text: &str| std::fs::write(dir.join("added.erl"), text).expect("writes");
    let in_dir = |value: Option<&str>, args: &[&str]| {
        let mut c = Command::new(purlin());
        c.args(args).current_dir(&dir).env_remove("ADDED");
        c.envs(value.map(|v| ("ADDED", v)));
        c.output().expect("runs")
    };
    let text_of = std::fs::read_to_string(programs().join("lost_race.erl")).expect("reads");
    let source = text_of.replace("lost_race", "added").replace(
        "    halt(",
        "    erlang:display({os:getenv(\"ADDED\"), os:getenv(\"ADDED_NOT\")}),\n    halt(",
    );
    write(&source);
    let search = [
        "schedules",
        "--seed",
        "1",
        "--to",
        "it.psch",
        "--",
        "run",
        "added.erl",
    ];
    let o = in_dir(Some("a b"), &search);
    assert_eq!(o.status.code(), Some(1), "{}", text(&o));
    let told = "decides all of it but 2 looks at variables of the environment.\nRecorded, and given to a replay: the variables";
    assert!(text(&o).contains(told), "{}", text(&o));
    let replayed = |value: Option<&str>, with: &str| {
        let o = in_dir(value, &["replay", "it.psch"]);
        assert_eq!(o.status.code(), Some(1), "{}", text(&o));
        assert!(text(&o).contains("as recorded"), "{}", text(&o));
        assert!(text(&o).contains(with), "{}", text(&o));
    };
    replayed(None, "{\"a b\",false}");
    replayed(Some("c"), "{\"a b\",false}");
    let comment = format!("main() ->{}", "\n    % a comment".repeat(1000));
    let more = source.replace("main() ->", &comment).replace(
        "add() ->",
        "more() -> string:length(\"more\").\nadd() ->\n    erlang:display(more()),",
    );
    write(&more);
    replayed(None, "4\r\n4\r\n{\"a b\",false}");
    write(&source.replace("erlang:display({", "erlang:display({more, "));
    let o = in_dir(None, &["replay", "it.psch"]);
    assert_eq!(o.status.code(), Some(4), "{}", text(&o));
    assert!(
        text(&o).contains("line 1 of its output was not written again"),
        "{}",
        text(&o)
    );
    std::fs::remove_dir_all(&dir).expect("removes");
}

/// The status of a program is what the system reports.
#[test]
fn a_status_is_that_of_the_system() {
    for (status, expected, told) in [(256, 0, "none failed"), (259, 1, "failed with status 3")] {
        let file = File::new("status");
        let expression = format!("halt({status}).");
        let words = ["schedules", "--strategy", "none", "--to", file.path(), "--"];
        let o = run(&[&words[..], &["erl", "-noshell", "-eval", &expression]].concat());
        assert_eq!(o.status.code(), Some(expected), "{}", text(&o));
        assert!(text(&o).contains(told), "{}", text(&o));
    }
}

/// The time of `--for` ends the search, whether it runs schedules or shrinks one. If not even the
/// base ends in it, a message says so.
#[test]
fn the_time_of_a_search_ends_it() {
    let file = File::new("slow");
    let timed = |program: &str, seconds: &str| {
        let words = [
            "schedules",
            "--seed",
            "1",
            "--for",
            seconds,
            "--strategy",
            "stalls",
        ];
        let began = std::time::Instant::now();
        let o = run(&[&words[..], &["--to", file.path(), "--", "run", program]].concat());
        (o.status.code(), text(&o), began.elapsed().as_secs_f64())
    };
    let (status, t, took) = timed("slow_right.erl", "8");
    assert_eq!(status, Some(0), "{t}");
    assert!(took < 14.0, "{took}: {t}");
    let schedules: Option<u32> = t.split(' ').next().and_then(|n| n.parse().ok());
    assert!(schedules.is_some_and(|n| n < 1000), "{t}");
    let (status, t, _) = timed("slow_right.erl", "0.1");
    assert_eq!(status, Some(2), "{t}");
    assert!(t.contains("takes longer than that"), "{t}");
}

/// No process is delayed for longer than `--stall` allows, and no story says so.
#[test]
fn a_stall_is_no_longer_than_allowed() {
    none("margin_right");
    let file = File::new("late");
    let words = ["schedules", "--seed", "1", "--strategy", "stalls"];
    let words = [&words[..], &["--stall", "110", "--to", file.path()]].concat();
    let o = run(&[&words[..], &["--", "run", "margin_right.erl"]].concat());
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(t.contains("is late by 1"), "{t}");
    let of_file = std::fs::read_to_string(file.path()).expect("a file");
    let stall = of_file.lines().find_map(|l| {
        let (_, ns) = l.strip_prefix("deviation ")?.split_once(" stall ")?;
        ns.parse::<u64>().ok()
    });
    assert!(stall.is_some_and(|ns| ns <= 110_000_000), "{stall:?}");
}

/// A process that its timer keeps going does not hide a hang of the others. The report says which
/// process waits where, and a replay repeats it. A program that only waits for timers for hours,
/// and then ends, is correct.
#[test]
fn a_hang_beside_a_timer_is_told() {
    let file = File::new("beat");
    let words = ["schedules", "--seed", "1", "--to", file.path(), "--", "run"];
    let o = run(&[&words[..], &["beat_race.erl"]].concat());
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(t.contains("hangs\nShrunk from "), "{t}");
    let told = "hang: nothing but timers that repeat has moved for 3600 s of virtual time";
    assert!(t.contains(told), "{t}");
    assert!(t.contains("waits in beat_race:take/1"), "{t}");
    assert!(
        t.contains("waits in beat_race:beat/0") && t.contains("until its timer"),
        "{t}"
    );
    for _ in 0..2 {
        let o = run(&["replay", file.path()]);
        assert_eq!(o.status.code(), Some(1), "{}", text(&o));
        assert!(text(&o).contains("as recorded"), "{}", text(&o));
        assert!(text(&o).contains(told), "{}", text(&o));
    }
    let o = run(&[
        "schedules",
        "--seed",
        "1",
        "--seeds",
        "10",
        "--",
        "run",
        "beat_right.erl",
    ]);
    assert_eq!(o.status.code(), Some(0), "{}", text(&o));
}

/// A folder for a project of Elixir; None, which is said, where there is no `mix`.
fn project(name: &str) -> Option<std::path::PathBuf> {
    if Command::new("mix").arg("--version").output().is_err() {
        println!("skipped: no mix");
        return None;
    }
    let dir = std::env::temp_dir().join(format!("purlin-{name}-{}", std::process::id()));
    for folder in ["test", "lib"] {
        std::fs::create_dir_all(dir.join(folder)).expect("makes a folder");
    }
    Some(dir)
}

/// A race with a process of the application is found like one with a process that the test starts.
#[test]
fn what_the_application_has_started_races() {
    let Some(dir) = project("app") else { return };
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("writes");
    write(
        "mix.exs",
        "defmodule App.MixProject do\n  use Mix.Project\n  def project, do: [app: :app, version: \"0.1.0\"]\n  def application, do: [mod: {App, []}]\nend\n",
    );
    write(
        "lib/app.ex",
        r#"defmodule App do
  use Application
  def start(_, _) do
    Supervisor.start_link([{Registry, keys: :unique, name: App.Registry}], strategy: :one_for_one)
  end
end
"#,
    );
    write("test/test_helper.exs", "ExUnit.start()\n");
    write(
        "test/app_test.exs",
        r#"defmodule AppTest do
  use ExUnit.Case
  test "counts those that are there" do
    me = self()
    pid = spawn(fn ->
      {:ok, _} = Registry.register(App.Registry, :a, nil)
      send(me, :up)
      receive do :stop -> :ok end
    end)
    receive do :up -> :ok end
    ref = Process.monitor(pid)
    send(pid, :stop)
    receive do {:DOWN, ^ref, _, _, _} -> :ok end
    assert Registry.count(App.Registry) == 0
  end
end
"#,
    );
    let o = Command::new(purlin())
        .args([
            "schedules",
            "--seed",
            "3",
            "--seeds",
            "30",
            "--",
            "mix",
            "test",
        ])
        .current_dir(&dir)
        .output()
        .expect("runs");
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(
        t.contains("assert Registry.count(App.Registry) == 0"),
        "{t}"
    );
    std::fs::remove_dir_all(&dir).expect("removes");
}

/// The story names the processes, says when one ends and which others are notified, what timers do,
/// and how much virtual time passes.
#[test]
fn a_story_tells_of_ends_and_timers() {
    let told = |program: &str| {
        let file = File::new("told");
        let words = [
            "schedules",
            "--seed",
            "1",
            "--to",
            file.path(),
            "--",
            "run",
            program,
        ];
        let o = run(&words);
        assert_eq!(o.status.code(), Some(1), "{}", text(&o));
        let shown = text(&run(&["schedules", "show", file.path()]));
        let story = text(&o);
        let parts = shown.split("\n\n").skip(1).take(2);
        parts.for_each(|p| assert!(story.contains(p), "{story}{shown}"));
        story
    };
    let t = told("gone_race.erl");
    assert!(
        t.contains("a fun of gone_race, made by <0.9.0> at gone_race.erl:"),
        "{t}"
    );
    assert!(t.contains("runs gone_race:main/0"), "{t}");
    assert!(t.contains("ends: {result,42}\n"), "{t}");
    let t = told("late_race.erl");
    assert!(t.contains(" ms later\n"), "{t}");
    assert!(
        t.contains("receive ... after: nothing has come in time"),
        "{t}"
    );
    let t = told("tick_race.erl");
    assert!(t.contains("gets go from a timer"), "{t}");
    assert!(
        t.contains("ends: normal; an exit signal for <0.9.0>"),
        "{t}"
    );
    assert!(t.contains("  counter, "), "{t}");
}

#[test]
fn a_deadlock_is_told() {
    let file = File::new("stuck");
    let o = run(&[
        "schedules",
        "--seed",
        "1",
        "--to",
        file.path(),
        "--",
        "run",
        "stuck_race.erl",
    ]);
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    assert!(t.contains("deadlock"), "{t}");
    assert!(t.contains("stuck_race:with/2"), "{t}");
    none("stuck_right");
}

#[test]
fn wrong_words_are_refused() {
    for (args, status) in [
        (vec!["schedules"], 2),
        (
            vec!["schedules", "--seeds", "x", "--", "run", "once_race.erl"],
            2,
        ),
        (
            vec![
                "schedules",
                "--strategy",
                "luck",
                "--",
                "run",
                "once_race.erl",
            ],
            2,
        ),
        (
            vec!["schedules", "--no-such", "--", "run", "once_race.erl"],
            2,
        ),
        (vec!["replay", "no-such-file"], 66),
        (vec!["replay", "once_race.erl"], 66),
        (vec!["schedules", "show", "once_race.erl"], 66),
    ] {
        let o = run(&args);
        assert_eq!(o.status.code(), Some(status), "{args:?}: {}", text(&o));
        assert!(text(&o).starts_with("purlin: "), "{args:?}: {}", text(&o));
    }
}

/// A project of Elixir: each of its tests has a search of its own, and a page.
#[test]
fn each_test_of_a_suite_is_searched() {
    let Some(dir) = project("each") else { return };
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("writes");
    write(
        "mix.exs",
        "defmodule Each.MixProject do\n  use Mix.Project\n  def project, do: [app: :each, version: \"0.1.0\"]\nend\n",
    );
    write("test/test_helper.exs", "ExUnit.start()\n");
    write(
        "test/each_test.exs",
        r#"defmodule EachTest do
  use ExUnit.Case

  test "one looks before the other writes" do
    t = :ets.new(:t, [:public])
    f = fn -> :ets.lookup(t, :first) == [] and :ets.insert(t, {:first, self()}) end
    tasks = [Task.async(f), Task.async(f)]
    assert Enum.count(tasks, &Task.await/1) == 1
  end

  test "(right) [L#2]" do
    assert 1 + 1 == 2
  end
end
"#,
    );
    let o = Command::new(purlin())
        .args(["schedules", "--each-test", "--seed", "1", "--seeds", "60"])
        .args(["--html", "page.html", "--", "mix", "test"])
        .current_dir(&dir)
        .output()
        .expect("runs");
    let t = text(&o);
    assert_eq!(o.status.code(), Some(1), "{t}");
    let has = |name: &str| t.contains(&format!("test/each_test.exs:{name}\n"));
    assert!(has("4 test one looks before the other writes"), "{t}");
    assert!(has("11 test (right) [L#2]"), "{t}");
    assert!(t.contains("2 tests, each searched: 1 failed"), "{t}");
    let mode = std::fs::metadata(dir.join("page-1.html"))
        .expect("a page")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let page = std::fs::read_to_string(dir.join("page-1.html")).expect("a page");
    assert!(page.contains("EachTest"), "{page}");
    assert!(!dir.join("page-2.html").exists());
    std::fs::remove_dir_all(&dir).expect("removes");
}
