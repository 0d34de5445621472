//! `perf` shows functions of a program under `+JPperf true`. Skipped with a message if there is no
//! `perf`, or if it is not permitted to sample.

use std::fs;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
-module(busy).
-export([main/0, much/0]).
main() -> work(30), halt().
%% Enough for machine code to be seen.
much() -> fib(34), halt().
work(0) -> ok;
work(N) -> fib(24), encode(30), work(N - 1).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
encode(0) -> ok;
encode(N) -> true = byte_size(term_to_binary(lists:duplicate(5000, {a, N}))) > N, encode(N - 1).
"#;

fn can_sample() -> bool {
    let args = ["record", "-q", "-o", "/dev/null", "-e", "cpu-clock", "true"];
    let ran = Command::new("perf").args(args).output();
    ran.is_ok_and(|o| o.status.success())
}

fn run(dir: &Path, program: &str, args: &[&str]) -> String {
    let mut command = Command::new(program);
    let output = command.args(args).current_dir(dir).output().expect("runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {err}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Machine code is walked down to the interpreter's frame, with all callers of this time slice. The
/// only the user can read files for it.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn perf_shows_who_called_machine_code() {
    use std::os::unix::fs::PermissionsExt;
    if !can_sample() {
        println!("skipped: no perf, or it may not sample");
        return;
    }
    let dir = std::env::temp_dir().join(format!("purlin-chains-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("makes a directory");
    fs::write(dir.join("busy.erl"), PROGRAM).expect("writes");
    let purlin = env!("CARGO_BIN_EXE_purlin");
    run(&dir, purlin, &["erlc", "busy.erl"]);
    let perf = |line: &str| run(&dir, "perf", &line.split(' ').collect::<Vec<_>>());
    let record = "record -q -k mono -o mono.data -e cpu-clock -F 499 --call-graph dwarf,16384";
    let erl = "erl +JPperf true -noshell -s busy much";
    perf(&format!("{record} {purlin} {erl}"));
    let pids = perf("script -i mono.data -G -F pid");
    let pid = pids
        .split_whitespace()
        .next()
        .expect("has samples")
        .to_string();
    perf("inject --jit -i mono.data -o jit.data");
    let samples = perf("script -i jit.data --no-inline -F comm,ip,sym");
    // The map and the dump, and what was made of the dump.
    let files = fs::read_dir("/tmp").expect("is there").flatten();
    let own: Vec<_> = files
        .filter(|f| {
            let name = f.file_name().to_string_lossy().into_owned();
            let kinds = ["perf-PID.", "jit-PID.", "jitted-PID-"];
            let names = kinds.map(|k| k.replace("PID", &pid));
            names.iter().any(|n| name.starts_with(n))
        })
        .map(|f| f.path())
        .collect();
    let is_open = |p: &&std::path::PathBuf| {
        let mode = fs::metadata(p).expect("is there").permissions().mode();
        !p.to_string_lossy().contains("jitted") && mode & 0o777 != 0o600
    };
    let open: Vec<_> = own.iter().filter(is_open).cloned().collect();
    let count = own.len();
    own.iter()
        .for_each(|p| fs::remove_file(p).expect("removes"));
    fs::remove_dir_all(&dir).expect("removes");
    assert!(count >= 3 && open.is_empty(), "{count} files, {open:?}");
    let names = |sample: &str| -> Vec<String> {
        let lines = sample.lines().skip(1);
        let name = |l: &str| l.split_whitespace().nth(1).unwrap_or_default().to_string();
        lines.map(name).collect()
    };
    let all: Vec<Vec<String>> = samples.split("\n\n").map(names).collect();
    let in_code = all
        .iter()
        .filter(|c| c.first().is_some_and(|n| n == "busy:fib/1"));
    let in_code: Vec<_> = in_code.collect();
    assert!(in_code.len() > 5, "{} samples", in_code.len());
    let whole = in_code.iter().filter(|c| {
        let depth = c.iter().take_while(|n| *n == "busy:fib/1").count();
        depth >= 3 && c.iter().any(|n| n == "purlin_run_marked")
    });
    let part = whole.count() as f64 / in_code.len() as f64;
    assert!(part > 0.5, "{part}");
}

/// The share of the samples of the thread that runs the program in which each word occurs.
fn parts(samples: &str, words: &[&str]) -> Vec<f64> {
    let all: Vec<&str> = samples
        .split("\n\n")
        .filter(|s| s.contains("purlin_run_marked"))
        .collect();
    assert!(all.len() > 20, "{} samples", all.len());
    let part = |w: &&str| {
        let n = all.iter().filter(|s| s.contains(*w)).count();
        n as f64 / all.len() as f64
    };
    words.iter().map(part).collect()
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[test]
fn perf_shows_which_erlang_function_runs() {
    if !can_sample() {
        println!("skipped: no perf, or it may not sample");
        return;
    }
    let dir = std::env::temp_dir().join(format!("purlin-perf-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("makes a directory");
    fs::write(dir.join("busy.erl"), PROGRAM).expect("writes");
    let purlin = env!("CARGO_BIN_EXE_purlin");
    run(&dir, purlin, &["erlc", "busy.erl"]);
    let samples = |mode: &str, function: &str| {
        let record = "record -q -o perf.data -e cpu-clock -F 499 --call-graph dwarf,8192";
        let erl = format!("erl +JPperf map +Fjit {mode} -noshell -s busy {function}");
        let args: Vec<&str> = record
            .split(' ')
            .chain([purlin])
            .chain(erl.split(' '))
            .collect();
        run(&dir, "perf", &args);
        let script = "script -i perf.data --no-inline -F comm,ip,sym";
        run(&dir, "perf", &script.split(' ').collect::<Vec<_>>())
    };
    let interpreted = samples("off", "main");
    // The frame of machine code has no frame above it.
    let compiled = samples("always", "much");
    let all = compiled.split("\n\n");
    let fib = all.filter(|s| s.contains("$busy:fib/1")).count();
    let shown = parts(&interpreted, &["$busy:fib/1", "$busy:encode/1", "$"]);
    fs::remove_dir_all(&dir).expect("removes");
    assert!(fib > 5, "{fib} samples in machine code");
    assert!(
        shown[0] > 0.02 && shown[1] > 0.005,
        "fib, encode, any: {shown:?}"
    );
    assert!(shown[2] > 0.8, "fib, encode, any: {shown:?}");
}
