//! `purlin bench`: the same file here and on stock.
//!
//! Skipped with a message if there is no stock `erl`.

#[path = "scratch/codes.rs"]
mod codes;

use codes::without_code;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use purlin_diagnostics::json::{self, Json};

const PROGRAM: &str = r#"
-module(counted).
-export([main/1]).
main(["fail"]) -> halt(3);
main(_) ->
    [begin List = lists:seq(1, 5000),
           {P, R} = spawn_monitor(fun() -> length(List) end),
           receive {'DOWN', R, process, P, normal} -> ok end
     end || _ <- lists:seq(1, 100)],
    io:format("counted on ~s~n", [erlang:system_info(machine)]).
"#;

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Option<Scratch> {
        let path = std::env::var_os("PATH")?;
        if !std::env::split_paths(&path).any(|dir| dir.join("erl").is_file()) {
            println!("skipped: no stock erl on PATH");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("purlin-bench-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).expect("makes a scratch directory");
        fs::write(dir.join("counted.erl"), PROGRAM).expect("writes a file");
        fs::write(dir.join("counted.exs"), "IO.puts(:done)\n").expect("writes a file");
        Some(Scratch(dir))
    }
    fn bench(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command.arg("bench").args(args).current_dir(&self.0);
        command.stdin(Stdio::null()).output().expect("runs")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_program_is_measured_here_and_on_stock() {
    let Some(scratch) = Scratch::new("both") else {
        return;
    };
    let args = [
        "--runs",
        "2",
        "--warmup",
        "0",
        "--against",
        "stock",
        "--json",
        "counted.erl",
    ];
    let output = scratch.bench(&args);
    assert!(output.status.success(), "{output:?}");
    let all = json::parse(&String::from_utf8_lossy(&output.stdout)).expect("is JSON");
    let commands = all.get("commands").expect("has them").list();
    let name = |i: usize| {
        commands[i]
            .get("name")
            .and_then(Json::text)
            .unwrap_or_default()
    };
    assert!(
        name(0).starts_with("stock, OTP ") && name(1).starts_with("Purlin, OTP "),
        "{all}"
    );
    let copied = all
        .get("purlin")
        .and_then(|p| p.get("copied_bytes"))
        .and_then(Json::number);
    // 100 processes capture 10,000 words each.
    assert!(copied.is_some_and(|n| n >= 8e6), "{all}");

    let output = scratch.bench(&[
        "--runs",
        "1",
        "--show",
        "--against",
        "stock",
        "counted.erl",
        "x",
    ]);
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(shown.matches("counted on BEAM\n").count(), 4, "{shown}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\nOn Purlin: copied "), "{text}");
}

#[test]
fn elixir_programs_are_measured_on_stock_too() {
    let Some(scratch) = Scratch::new("elixir") else {
        return;
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|dir| dir.join("elixir").is_file()) {
        println!("skipped: no elixir on PATH");
        return;
    }
    let args = [
        "--runs",
        "1",
        "--warmup",
        "0",
        "--show",
        "--against",
        "stock",
        "--csv",
        "counted.exs",
    ];
    let output = scratch.bench(&args);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "done\ndone\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
}

#[test]
fn bad_input_is_one_line_and_a_status() {
    let Some(scratch) = Scratch::new("bad") else {
        return;
    };
    for (args, code, message) in [
        (&[][..], 2, "bench needs a file: purlin bench FILE [ARGS]"),
        (
            &["--fast", "counted.erl"],
            2,
            "bench has no option '--fast'",
        ),
        (&["--against"], 2, "--against needs a value"),
        (
            &["--runs", "none", "counted.erl"],
            2,
            "--runs takes a number from 1 to 10000, not 'none'",
        ),
        (
            &["none.erl"],
            66,
            "cannot read none.erl: No such file or directory",
        ),
    ] {
        let output = scratch.bench(args);
        let error = without_code(&String::from_utf8_lossy(&output.stderr));
        let expected = format!("purlin: {message}\n");
        assert_eq!(
            (output.status.code(), &*error),
            (Some(code), &*expected),
            "{args:?}"
        );
    }
    let output = scratch.bench(&["--against", "/no/such/root", "counted.erl"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), error.lines().count()),
        (Some(69), 1),
        "{output:?}"
    );
    assert!(
        error.starts_with("purlin: --against /no/such/root: "),
        "{error}"
    );
    // A program that fails is not measured.
    let output = scratch.bench(&["--runs", "1", "counted.erl", "fail"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.ends_with(
            "ended with status 3; --any-status measures it nevertheless [PURLIN-0080]\n"
        ),
        "{error}"
    );
}
