//! `purlin measure`: its output, and its messages on invalid input.

#[path = "scratch/codes.rs"]
mod codes;

use codes::without_code;
use std::process::{Command, Output};

use purlin_diagnostics::json::{self, Json};

/// A command that takes more memory than Purlin itself, and one that takes three times as much.
const SMALL: &str = "head -c 20000000 /dev/zero | tail -c 19999999 >/dev/null";
const LARGE: &str = "head -c 60000000 /dev/zero | tail -c 59999999 >/dev/null";

fn measure(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.arg("measure").args(args);
    command.output().expect("runs")
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_table_has_a_line_for_each_quantity_and_command() {
    let text = out(&measure(&[
        "--runs",
        "3",
        "--warmup=0",
        "--",
        "sleep",
        "0.02",
    ]));
    assert!(
        text.starts_with("1: sleep 0.02\n3 runs, 0 before them to warm up\n"),
        "{text}"
    );
    for quantity in [
        "wall ",
        "user ",
        "system ",
        "peak memory ",
        "waits ",
        "preemptions ",
        "energy ",
    ] {
        assert!(
            text.contains(&format!("\n{quantity}")),
            "{quantity}: {text}"
        );
    }
    assert!(!text.contains("Ratios"), "{text}");
    let compared = |runs: &str| {
        out(&measure(&[
            "--runs", runs, "--", "sh", "-c", SMALL, "--", "sh", "-c", LARGE,
        ]))
    };
    let text = compared("5");
    let peak = text.lines().skip_while(|l| !l.starts_with("peak")).nth(1);
    assert!(peak.is_some_and(|l| l.ends_with("): more")), "{text}");
    let text = compared("4");
    assert!(text.contains(": too few runs"), "{text}");
    assert!(
        text.ends_with("A verdict takes 5 runs at least.\n"),
        "{text}"
    );
}

#[test]
fn json_and_csv_hold_each_run() {
    let args = [
        "--json",
        "--runs",
        "6",
        "--separator",
        "::",
        "--name",
        "short",
        "::",
    ];
    let commands = ["sh", "-c", SMALL, "--", "::", "sh", "-c", LARGE];
    let text = out(&measure(&[&args[..], &commands].concat()));
    let all = json::parse(&text).expect("is JSON");
    assert_eq!(
        all.get("schema").and_then(Json::text),
        Some("purlin-measure/1")
    );
    let commands = all.get("commands").expect("has them").list();
    let name = |i: usize| commands[i].get("name").and_then(Json::text);
    assert_eq!(
        (name(0), name(1)),
        (Some("short"), Some(&*format!("sh -c {LARGE}")))
    );
    assert_eq!(commands[0].get("words").expect("has them").list().len(), 4);
    let wall = commands[1]
        .get("results")
        .and_then(|r| r.get("wall_s"))
        .expect("wall");
    assert_eq!(wall.get("values").expect("values").list().len(), 6);
    assert!(wall.get("min").and_then(Json::number).expect("is one") > 0.0);
    let compared = all.get("comparisons").expect("has them").list();
    let peak = compared
        .iter()
        .find(|c| c.get("quantity").and_then(Json::text) == Some("peak_bytes"));
    let peak = peak.expect("is compared");
    assert_eq!(peak.get("verdict").and_then(Json::text), Some("more"));
    assert!(peak.get("low").and_then(Json::number).expect("is one") > 1.0);

    let text = out(&measure(&[
        "--csv",
        "--runs=2",
        "--any-status",
        "--name",
        "a \"b\"",
        "--",
        "false",
    ]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(
        lines[0].starts_with("command,name,run,status,wall_s,"),
        "{text}"
    );
    assert!(lines[2].starts_with("1,\"a \"\"b\"\"\",2,1,"), "{text}");
}

#[test]
fn commands_read_the_file_named_and_print_nothing() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/measure.rs");
    let lines = "[ $(wc -l) -gt 50 ] && echo printed";
    let args = [
        "--runs", "1", "--name", "it", "--input", here, "--", "sh", "-c", lines,
    ];
    let text = out(&measure(&args));
    assert!(!text.contains("printed\n"), "{text}");
    let output = measure(&[&["--show"], &args[..]].concat());
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "printed\nprinted\n"
    );
    let output = measure(&["--runs", "1", "--", "sh", "-c", "[ $(wc -c) = 0 ]"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn bad_input_is_one_line_and_a_status() {
    for (args, code, message) in [
        (
            &[][..],
            2,
            "measure needs a command: purlin measure [OPTIONS] -- COMMAND [ARGS] [-- COMMAND [ARGS]]",
        ),
        (&["--runs"], 2, "--runs needs a value"),
        (
            &["--runs", "0", "--", "true"],
            2,
            "--runs takes a number from 1 to 10000, not '0'",
        ),
        (
            &["--warmup=x", "--", "true"],
            2,
            "--warmup takes a number from 0 to 10000, not 'x'",
        ),
        (
            &["--fast", "--", "true"],
            2,
            "measure has no option '--fast'",
        ),
        (
            &["--json=1", "--", "true"],
            2,
            "measure has no option '--json=1'",
        ),
        (
            &["true", "--", "true"],
            2,
            "'true' stands before the first --: purlin measure [OPTIONS] -- COMMAND [ARGS] [-- COMMAND [ARGS]]",
        ),
        (
            &["--", "true", "--"],
            2,
            "a command is missing: purlin measure [OPTIONS] -- COMMAND [ARGS] [-- COMMAND [ARGS]]",
        ),
        (
            &["--name", "a", "--name", "b", "--", "true"],
            2,
            "there are more names than commands",
        ),
        (
            &["--", "no-such-command"],
            127,
            "no-such-command: command not found",
        ),
        (&["--", "/"], 126, "cannot run /: Permission denied"),
        (
            &["--input", "/no/such", "--", "true"],
            66,
            "cannot read /no/such: No such file or directory",
        ),
        (
            &["--", "false"],
            1,
            "false ended with status 1; --any-status measures it nevertheless",
        ),
        (
            &["--name", "it", "--", "sh", "-c", "kill -9 $$"],
            1,
            "it ended by signal 9; --any-status measures it nevertheless",
        ),
    ] {
        let output = measure(args);
        let error = without_code(&String::from_utf8_lossy(&output.stderr));
        let expected = format!("purlin: {message}\n");
        assert_eq!(
            (output.status.code(), &*error),
            (Some(code), &*expected),
            "{args:?}"
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn a_signal_ends_the_command_and_what_was_measured_is_told() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    // The second run waits until it is ended, and the first is reported.
    let script = "if [ -e $0 ]; then echo again >&2; exec sleep 60; else : >$0; fi";
    let mark = std::env::temp_dir().join(format!("purlin-measured-{}", std::process::id()));
    let _ = std::fs::remove_file(&mark);
    command.args([
        "measure", "--warmup", "0", "--runs", "5", "--", "sh", "-c", script,
    ]);
    command
        .arg(&mark)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let begun = std::time::Instant::now();
    let mut child = command.spawn().expect("starts");
    let mut errors = BufReader::new(child.stderr.take().expect("is piped"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("reads");
    assert_eq!(line, "again\n");
    // SAFETY: a process of this test.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let mut told = String::new();
    errors.read_line(&mut told).expect("reads");
    let output = child.wait_with_output().expect("ends");
    let _ = std::fs::remove_file(&mark);
    assert_eq!(output.status.code(), Some(128 + libc::SIGTERM), "{told}");
    assert_eq!(
        told,
        "purlin: ended by signal 15, after 1 of 5 runs [PURLIN-0081]\n"
    );
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("peak memory"), "{table}");
    assert!(begun.elapsed().as_secs() < 50);
}
