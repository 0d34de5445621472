//! The memory limit of a node: processes that grow beyond it are ended, and the node continues. A
//! changed limit takes effect.
//!
//! Skipped with a message if there is no OTP. `scripts/containers.sh` does the same in a control
//! group, beside stock.

mod scratch;

use scratch::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A process that grows in one of the ways of `examples/limits` ends with a report, and the server
/// beside it answers.
fn grows(way: &str) {
    let Some(s) = Scratch::new() else { return };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/limits/limits.erl");
    let source = source.to_string_lossy();
    assert!(s.purlin(&["erlc", &source]).status.success());
    let args = ["erl", "+Mlimit", "256m", "-noshell", "-pa", "."];
    let out = s.purlin(&[&args[..], &["-run", "limits", "main", way]].concat());
    let text = String::from_utf8_lossy(&out.stdout);
    for line in ["limit 268435456", "ended killed", "serves"] {
        assert!(text.lines().any(|l| l == line), "{line}: {out:?}");
    }
    assert!(text.contains("memory limit of the node reached"), "{text}");
    assert!(out.status.success());
}

#[test]
fn a_heap_ends() {
    grows("heap");
}
#[test]
fn some_of_many_heaps_end() {
    grows("many");
}
#[test]
fn binaries_end() {
    grows("binaries");
}
#[test]
fn a_table_ends() {
    grows("ets");
}

#[test]
fn a_limit_that_changes_is_followed() {
    let Some(s) = Scratch::new() else { return };
    s.write("memory.max", "max\n");
    s.write("memory.high", "max\n");
    s.write("memory.current", "900000000\n");
    s.write("memory.stat", "anon 850000000\ninactive_file 50000000\n");
    s.write(
        "w.erl",
        r#"
-module(w).
-export([main/0]).
main() ->
    {ok, _} = application:ensure_all_started(sasl),
    tell(until(fun() -> erlang:system_info(memory_limit) =:= undefined end)),
    ok = file:write_file("memory.high", "2000000000\n"),
    tell(until(fun() -> erlang:system_info(memory_limit) =:= 2000000000 end)),
    tell(alarm_handler:get_alarms() =:= []),
    ok = file:write_file("memory.max", "1010000000\n"),
    tell(until(fun() -> alarm_handler:get_alarms() =:= [{system_memory_high_watermark, []}] end)),
    tell(until(fun() -> erlang:system_info(memory_limit) =:= 1010000000 end)),
    ok = file:write_file("memory.current", "100000000\n"),
    tell(until(fun() -> alarm_handler:get_alarms() =:= [] end)),
    halt(0).
tell(B) -> io:format("~p~n", [B]).
until(F) -> until(F, 200).
until(_, 0) -> false;
until(F, N) -> F() orelse begin timer:sleep(50), until(F, N - 1) end.
"#,
    );
    assert!(s.purlin(&["erlc", "w.erl"]).status.success());
    let mut command = s.command(&["erl", "-noshell", "-pa", ".", "-s", "w", "main"]);
    let out = command
        .env("PURLIN_MEMORY_GROUP", &s.0)
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&out.stdout);
    let told: Vec<&str> = text
        .lines()
        .filter(|l| ["true", "false"].contains(l))
        .collect();
    assert_eq!(told, ["true"; 6], "{out:?}");
    // The flag can turn the limit off, and an invalid value is refused.
    let limit = "io:format(\"~p~n\", [erlang:system_info(memory_limit)]), halt().";
    let mut command = s.command(&["erl", "+Mlimit", "off", "-noshell", "-eval", limit]);
    let out = command
        .env("PURLIN_MEMORY_GROUP", &s.0)
        .output()
        .expect("runs");
    assert_eq!(String::from_utf8_lossy(&out.stdout).trim(), "undefined");
    let out = s.purlin(&["erl", "+Mlimit", "5x", "-noshell", "-eval", limit]);
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("bad \"Mlimit\" value: 5x"), "{said}");
}

/// Other nodes begin messages that they do not finish, in fragments or as one long packet. The
/// total of all unfinished messages is bounded by half of the limit, and the node that exceeds it
/// loses its connection.
#[test]
fn unfinished_messages_of_all_nodes_have_one_bound() {
    let Some(s) = Scratch::new() else { return };
    s.write("peers.erl", include_str!("data/peers.erl"));
    assert!(s.purlin(&["erlc", "peers.erl"]).status.success());
    let args = [
        "erl", "+Mlimit", "512m", "-noshell", "-pa", ".", "-s", "peers",
    ];
    let out = s.purlin(&args);
    let text = String::from_utf8_lossy(&out.stdout);
    let told: Vec<&str> = text.lines().collect();
    // 80 and 80 MiB; 200 and 100; 150, and a node that sends little.
    let each = ["up up", "up down", "up up"];
    assert_eq!(told, [each, each, each].concat(), "{out:?}");
}

/// A crash dump is written as it is made: its text is several times as long as the heaps in it.
#[test]
fn a_crash_dump_takes_no_memory() {
    let Some(s) = Scratch::new() else { return };
    s.write(
        "full.erl",
        "-module(full).\n-export([main/0]).\nmain() ->\n    Me = self(),\n    [spawn(fun() -> holds(Me, N) end) || N <- lists:seq(1, 8)],\n    [receive held -> ok end || _ <- lists:seq(1, 8)],\n    io:get_line(\"\"),\n    halt(\"full\").\nholds(Me, N) ->\n    L = [{X, [N | X]} || X <- lists:seq(1, 100000)],\n    Me ! held,\n    receive go -> Me ! L end.\n",
    );
    assert!(s.purlin(&["erlc", "full.erl"]).status.success());
    let mut child = s
        .command(&["erl", "-noshell", "-run", "full", "main"])
        .env("ERL_CRASH_DUMP", "dump")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let peak = || {
        let text = fs::read_to_string(&status).ok()?;
        let line = text.lines().find(|l| l.starts_with("VmHWM:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    // The input ends when its contents have been seen at rest.
    let mut before = 0;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let now = peak().expect("it runs");
        if now == before && now > 40_000 {
            break;
        }
        before = now;
    }
    drop(child.stdin.take());
    let mut most = before;
    while child.try_wait().expect("is asked").is_none() {
        most = peak().unwrap_or(most);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.wait().expect("is over");
    let dump = fs::read_to_string(s.0.join("dump")).expect("is text");
    let heaps = dump.matches("\n=proc_heap:").count();
    assert!(heaps > 8 && dump.ends_with("=end\n"), "{heaps}");
    let kib = dump.len() as u64 / 1024;
    assert!(kib > 50_000, "{kib} KiB");
    assert!(most - before < kib / 4, "{kib} KiB took {}", most - before);
}
