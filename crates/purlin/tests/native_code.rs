//! Machine code as seen from outside: `purlin disasm --native`, `purlin explain PID machine_code`,
//! `PURLIN_JIT_LOG`, the files of `+JPperf`, and the names for `gdb`. Skipped with a message if
//! something that a test needs is missing.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = r#"
-module(busy).
-export([main/0, wait/0, fib/1]).
main() ->
    N = fib(24),
    io:format("~s ~p~n", [os:getpid(), N]).
wait() ->
    main(),
    receive stop -> ok end.
fib(N) when N < 2 ->
    N;
fib(N) ->
    fib(N - 1) +
        fib(N - 2).
"#;
const SUM: &str = "46368";

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Scratch {
    /// A directory with the compiled program; `None` if there is no OTP.
    fn new(name: &str) -> Option<Scratch> {
        if Command::new("erl").arg("-version").output().is_err() {
            println!("skipped: no erl");
            return None;
        }
        let name = format!("purlin-native-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).expect("makes a directory");
        let s = Scratch(dir);
        fs::write(s.0.join("busy.erl"), PROGRAM).expect("writes");
        assert!(s.purlin(&["erlc", "busy.erl"]).status.success());
        Some(s)
    }
    fn command(&self, args: &[&str]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
        c.args(args).current_dir(&self.0).env_remove("PURLIN_JIT");
        c
    }
    fn purlin(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("purlin starts")
    }
    /// Runs `busy:main()` with machine code for all functions. Returns the process number that it
    /// had.
    fn run(&self, flags: &[&str]) -> u32 {
        let mut c = self.command(&["erl"]);
        c.args(flags).args(["+Fjit", "always", "-noshell", "-eval"]);
        let out = c.arg("busy:main(), halt().").output().expect("starts");
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let (pid, sum) = text.trim().split_once(' ').unwrap_or_default();
        assert_eq!(sum, SUM, "{out:?}");
        pid.parse().expect("a number")
    }
    /// Starts `busy:wait()` and waits until it has computed.
    fn start(&self) -> Running {
        let log = fs::File::create(self.0.join("out")).expect("makes a file");
        let mut c = self.command(&["erl", "+Fjit", "always", "-noshell", "-s", "busy", "wait"]);
        let child = c.stdout(log).stdin(Stdio::null()).spawn().expect("starts");
        let running = Running(child);
        let begun = Instant::now();
        let text = || fs::read_to_string(self.0.join("out")).unwrap_or_default();
        while !text().contains(SUM) {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "it never computed"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        running
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(b: &[u8]) -> String {
    String::from_utf8_lossy(b).into_owned()
}

#[test]
fn disasm_shows_what_each_instruction_becomes() {
    let Some(s) = Scratch::new("disasm") else {
        return;
    };
    let all = s.purlin(&["disasm", "--native", "busy.beam"]);
    let shown = text(&all.stdout);
    assert!(all.status.success(), "{}", text(&all.stderr));
    for f in [
        "main/0",
        "wait/0",
        "fib/1",
        "module_info/0",
        "module_info/1",
    ] {
        assert!(shown.contains(&format!("\nfunction {f}: ")), "{f}: {shown}");
    }
    let one = s.purlin(&["disasm", "--native", "busy.beam", "busy:fib/1"]);
    let shown = text(&one.stdout);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[0], "module busy", "{shown}");
    assert_eq!(shown.matches("\nfunction ").count(), 1, "{shown}");
    // The comparison with 2, as an op and as instructions of the processor; a call of itself; a
    // rare path.
    let at = lines.iter().position(|l| l.starts_with("; is_lt"));
    let at = at.unwrap_or_else(|| panic!("{shown}"));
    let code: Vec<&&str> = lines[at + 1..]
        .iter()
        .take_while(|l| l.starts_with(' '))
        .collect();
    assert!(code.iter().any(|l| l.contains("cmp")), "{shown}");
    for part in [
        "call",
        "+0000",
        "; what is rare",
        "stub yield",
        "helper arith",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Each byte is part of an instruction.
    assert!(!shown.contains("(bad)"), "{shown}");
    for (args, code, error) in [
        (
            &["disasm", "--native", "busy.beam", "busy:fob/1"][..],
            66,
            "there is no such function",
        ),
        (
            &["disasm", "--native", "busy.beam", "lists:fib/1"],
            66,
            "there is no such function",
        ),
        (
            &["disasm", "--native", "busy.beam", "busy:fib/x"],
            2,
            "is not MODULE:FUNCTION/ARITY",
        ),
        (
            &["disasm", "busy.beam", "busy:fib/1"],
            2,
            "one file at a time",
        ),
    ] {
        let out = s.purlin(args);
        assert_eq!(out.status.code(), Some(code), "{args:?}");
        let said = text(&out.stderr);
        assert!(said.contains(error) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn explain_tells_which_functions_have_some() {
    let Some(s) = Scratch::new("explain") else {
        return;
    };
    let running = s.start();
    let pid = running.0.id().to_string();
    let out = s.purlin(&["explain", "--top", "1000", &pid, "machine_code"]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{}", text(&out.stderr));
    for part in [
        "Machine code (always): ",
        "Largest:",
        "Longest in making:",
        "32.0 MiB",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let out = s.purlin(&["explain", "--json", &pid, "machine_code"]);
    let said = text(&out.stdout);
    let number = |name: &str| {
        let rest = said.split_once(&format!("\"{name}\":")).expect("has it").1;
        let rest = rest
            .trim_start()
            .split([',', '}'])
            .next()
            .unwrap_or_default();
        rest.trim().parse::<f64>().expect("a number")
    };
    assert!(
        number("functions") > 100.0 && number("bytes") > 100_000.0,
        "{said}"
    );
    assert!(
        number("made") >= number("functions") && number("made_s") > 0.0,
        "{said}"
    );
    assert_eq!(number("limit_bytes"), f64::from(32 << 20));
}

#[test]
fn the_log_has_a_line_for_each_function() {
    let Some(s) = Scratch::new("log") else { return };
    let log = s.0.join("log");
    let mut c = s.command(&["erl", "+Fjit", "always", "-noshell", "-eval"]);
    // Another version of the module replaces this one, which is purged.
    let eval = "busy:main(), c:l(busy), busy:main(), code:purge(busy), halt().";
    let out = c
        .arg(eval)
        .env("PURLIN_JIT_LOG", &log)
        .output()
        .expect("starts");
    assert!(out.status.success(), "{out:?}");
    let lines = fs::read_to_string(&log).expect("was written");
    let of = |what: &str| {
        let of_fib = |l: &&str| l.starts_with("busy:fib/1 ");
        lines
            .lines()
            .filter(of_fib)
            .filter(|l| l.contains(what))
            .count()
    };
    assert_eq!((of("compiled"), of("taken back")), (2, 1), "{lines}");
    let last: Vec<&str> = lines
        .lines()
        .filter(|l| l.starts_with("entered "))
        .collect();
    assert!(
        last.len() == 1 && last[0].contains(" a millisecond; "),
        "{last:?}"
    );
    // Exits to the interpreter are listed by op.
    assert!(lines.lines().any(|l| l.starts_with("left ")), "{lines}");
    let nowhere = s
        .command(&["erl", "-noshell", "-eval", "halt()."])
        .env("PURLIN_JIT_LOG", "/no/log")
        .output();
    let said = text(&nowhere.expect("starts").stderr);
    assert!(
        said.starts_with("purlin: PURLIN_JIT_LOG: cannot write /no/log: "),
        "{said}"
    );
}

fn number(b: &[u8], at: usize, bytes: usize) -> u64 {
    (0..bytes)
        .rev()
        .fold(0, |n, i| n << 8 | u64::from(b[at + i]))
}

#[test]
fn perf_finds_names_and_lines() {
    let Some(s) = Scratch::new("perf") else {
        return;
    };
    let pid = s.run(&["+JPperf", "true"]);
    let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let dump = PathBuf::from(format!("/tmp/jit-{pid}.dump"));
    let (names, bytes) = (fs::read_to_string(&map), fs::read(&dump));
    let _ = (fs::remove_file(&map), fs::remove_file(&dump));
    let (names, bytes) = (names.expect("was written"), bytes.expect("was written"));
    // The mark of interpreted code, and machine code.
    let rows: Vec<(u64, u64)> = names
        .lines()
        .filter_map(|l| {
            let mut words = l.splitn(3, ' ');
            let hexadecimal = |w: &str| u64::from_str_radix(w.trim_start_matches("0x"), 16).ok();
            let (at, n) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
            (words.next() == Some("$busy:fib/1")).then_some((at, n))
        })
        .collect();
    let low: Vec<_> = rows.iter().filter(|r| r.0 < 1 << 31).collect();
    assert_eq!((rows.len(), low.len()), (2, 1), "{rows:?}");
    assert!(names.contains(" $global::shared\n"));
    // The dump: its header, then records, each of which contains its length.
    assert_eq!(number(&bytes, 0, 4), 0x4A69_5444);
    assert_eq!(number(&bytes, 4, 4), 1);
    assert_eq!(number(&bytes, 20, 4), u64::from(pid));
    let mut at = number(&bytes, 8, 4) as usize;
    let (mut lines, mut found, mut last) = (Vec::new(), 0, 0);
    while at < bytes.len() {
        let (kind, size) = (number(&bytes, at, 4), number(&bytes, at + 4, 4) as usize);
        let time = number(&bytes, at + 8, 8);
        assert!(time >= last, "times go on");
        last = time;
        let body = &bytes[at + 16..at + size];
        match kind {
            0 => {
                let name = body[40..].split(|&b| b == 0).next().unwrap_or_default();
                // The map has a `$` in front of it, the dump has not.
                if name == b"busy:fib/1" {
                    let (address, n) = (number(body, 16, 8), number(body, 24, 8));
                    assert_eq!((address, n), *low[0]);
                    assert_eq!(body.len(), 40 + name.len() + 1 + n as usize);
                    // Those of this function come directly before.
                    assert!(
                        lines
                            .iter()
                            .all(|&(a, _)| (address..address + n).contains(&a))
                    );
                    let numbers: Vec<u64> = lines.iter().map(|l| l.1).collect();
                    assert!(
                        numbers.contains(&13) && numbers.contains(&14),
                        "{numbers:?}"
                    );
                    found += 1;
                }
                lines.clear();
            }
            2 => {
                let mut entry = 16;
                for _ in 0..number(body, 8, 8) {
                    lines.push((number(body, entry, 8), number(body, entry + 8, 4)));
                    let name = body[entry + 16..]
                        .split(|&b| b == 0)
                        .next()
                        .unwrap_or_default();
                    entry += 16 + name.len() + 1;
                }
                assert_eq!(entry, body.len());
            }
            // Rules for walking the stack, which belong to the next function.
            4 => assert!(number(body, 0, 8) > 0),
            other => panic!("a record of kind {other}"),
        }
        at += size;
    }
    assert_eq!(found, 1);
    // Each by itself.
    let pid = s.run(&["+JPperf", "dump"]);
    let dump = PathBuf::from(format!("/tmp/jit-{pid}.dump"));
    assert!(dump.exists() && !Path::new(&format!("/tmp/perf-{pid}.map")).exists());
    fs::remove_file(&dump).expect("removes");
    let pid = s.run(&["+JPperf", "map"]);
    let map = PathBuf::from(format!("/tmp/perf-{pid}.map"));
    assert!(map.exists() && !Path::new(&format!("/tmp/jit-{pid}.dump")).exists());
    fs::remove_file(&map).expect("removes");
}

#[test]
fn gdb_finds_names() {
    let Some(s) = Scratch::new("gdb") else { return };
    let running = s.start();
    let pid = running.0.id().to_string();
    // From a function to its address, and back.
    let gdb = Command::new("gdb")
        .args(["-nx", "-batch", "-p", &pid])
        .args([
            "-ex",
            "info functions busy:fib",
            "-ex",
            "info symbol '$busy:fib/1'",
        ])
        .output();
    let Ok(out) = gdb else {
        println!("skipped: no gdb");
        return;
    };
    let said = text(&out.stdout);
    if text(&out.stderr).contains("ptrace: Operation not permitted") {
        println!("skipped: gdb may not look at processes");
        return;
    }
    assert!(said.contains("$busy:fib/1"), "{said}{}", text(&out.stderr));
}
