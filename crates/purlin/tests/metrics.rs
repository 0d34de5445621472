//! `+Fmetrics`: metrics of a program whose processes, messages and tables are known, in both
//! formats, and the messages on places that cannot be served.
//!
//! Skipped with a message if there is no OTP. If `promtool` is installed, it checks the answer.

use purlin_diagnostics::json::{self, Json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Waits until each process has as many unread messages as it is to have, and says so.
const PROGRAM: &str = r#"
    Idle = fun() -> receive never -> ok end end,
    Many = [spawn(Idle) || _ <- lists:seq(1, 7)],
    Few = [spawn(Idle) || _ <- lists:seq(1, 11)],
    [[P ! message || _ <- lists:seq(1, 100)] || P <- Many],
    [P ! message || P <- Few],
    T = ets:new(numbers, []), ets:insert(T, [{I} || I <- lists:seq(1, 5000)]),
    timer:sleep(500),
    io:format("ready ~w ~w~n", [erlang:system_info(process_count), length(ets:all())]),
    receive never -> ok end."#;

struct Node {
    child: Child,
    /// Where it serves, if the system has chosen the port.
    address: String,
    processes: f64,
    tables: f64,
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn purlin(place: &str) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
    c.args(["erl", "+Fmetrics", place, "-noshell", "-noinput", "-eval"])
        .stdin(Stdio::null());
    c
}

fn there_is_erl() -> bool {
    let there = Command::new("erl").arg("-version").output().is_ok();
    if !there {
        println!("skipped: no erl");
    }
    there
}

impl Node {
    /// `None` if there is no OTP.
    fn start(place: &str) -> Option<Node> {
        if !there_is_erl() {
            return None;
        }
        let mut child = purlin(place)
            .arg(PROGRAM)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut address = String::new();
        if place.ends_with(":0") {
            let errors = child.stderr.take().expect("is piped");
            let mut line = String::new();
            BufReader::new(errors).read_line(&mut line).expect("a line");
            let told = line.trim().strip_prefix("purlin: metrics are served at ");
            address = told.unwrap_or_else(|| panic!("{line}")).to_string();
        }
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("is piped"))
            .read_line(&mut line)
            .expect("a line");
        let numbers: Vec<f64> = line
            .split_whitespace()
            .filter_map(|n| n.parse().ok())
            .collect();
        let &[processes, tables] = &*numbers else {
            panic!("{line}")
        };
        Some(Node {
            child,
            address,
            processes,
            tables,
        })
    }

    /// The status, the media type and the body of an answer.
    fn get(&self, path: &str, accept: &str) -> (u16, String, String) {
        let stream = TcpStream::connect(&self.address).expect("is served");
        ask(stream, "GET", path, accept)
    }
}

fn ask(mut s: impl Read + Write, method: &str, path: &str, accept: &str) -> (u16, String, String) {
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n");
    s.write_all(request.as_bytes()).expect("is sent");
    let mut text = String::new();
    s.read_to_string(&mut text).expect("is answered");
    let (head, body) = text.split_once("\r\n\r\n").expect("has a head");
    let status = head.split(' ').nth(1).and_then(|n| n.parse().ok());
    let kind = head.lines().find_map(|l| l.strip_prefix("Content-Type: "));
    (
        status.expect("has a status"),
        kind.unwrap_or_default().into(),
        body.into(),
    )
}

/// Samples by their names and labels.
fn samples(body: &str) -> BTreeMap<&str, f64> {
    body.lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| {
            let (name, value) = l.rsplit_once(' ').unwrap_or_else(|| panic!("{l}"));
            (name, value.parse().unwrap_or_else(|_| panic!("{l}")))
        })
        .collect()
}

#[test]
fn metrics_are_those_of_the_program() {
    let Some(node) = Node::start("127.0.0.1:0") else {
        return;
    };
    let (status, kind, body) = node.get("/metrics", "*/*");
    assert_eq!(
        (status, &*kind),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    let all = samples(&body);
    assert_eq!(all["erlang_vm_process_count"], node.processes);
    assert_eq!(all["vm_system_counts_process_count"], node.processes);
    assert_eq!(all["erlang_vm_memory_ets_tables"], node.tables);
    assert!(all["purlin_table_objects"] >= 5000.0);
    assert!(all["erlang_vm_statistics_reductions_total"] > 10_000.0);
    // Seven processes have 100 unread messages, and eleven have one. OTP's own have none.
    let below = |n: &str| all[&*format!("purlin_unread_messages_bucket{{le=\"{n}\"}}")];
    assert_eq!(below("+Inf"), node.processes);
    assert_eq!(below("127.0") - below("63.0"), 7.0, "{body}");
    assert_eq!(below("1.0") - below("0.0"), 11.0, "{body}");
    // Resident memory by use adds up to what the system counts.
    let sum = |name: &str| -> f64 {
        let of = all.iter().filter(|(n, _)| n.starts_with(name));
        of.map(|(_, v)| v).sum()
    };
    let status = std::fs::read_to_string(format!("/proc/{}/status", node.child.id()));
    let status = status.expect("is there");
    let resident = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let resident = resident.and_then(|l| l.trim().trim_end_matches(" kB").parse::<f64>().ok());
    let resident = resident.expect("is there") * 1024.0;
    let apart = sum("purlin_resident_bytes") / resident;
    assert!((0.95..1.05).contains(&apart), "{apart}");
    let apart = sum("purlin_accounted_bytes") / resident;
    assert!((0.95..1.05).contains(&apart), "{apart}");
    // Units that are no base units only on request.
    let milliseconds = "erlang_vm_statistics_runtime_milliseconds";
    assert!(!all.contains_key(milliseconds));
    let (_, _, body) = node.get("/metrics?names=all", "*/*");
    assert!(samples(&body)[milliseconds] > 0.0);
}

/// Names of metrics in an expression.
fn names_in(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|w| {
        ["erlang_vm_", "vm_", "purlin_"]
            .iter()
            .any(|p| w.starts_with(p))
    })
}

#[test]
fn the_dashboard_asks_for_metrics_that_exist() {
    let Some(node) = Node::start("127.0.0.1:0") else {
        return;
    };
    let (_, _, body) = node.get("/metrics", "*/*");
    let all = samples(&body);
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/grafana/purlin.json"
    );
    let text = std::fs::read_to_string(file).expect("is there");
    let dashboard = json::parse(&text).expect("is JSON");
    let panels = dashboard.get("panels").expect("has them").list();
    let mut asked = 0;
    for panel in panels {
        for target in panel.get("targets").expect("has them").list() {
            let expression = target.get("expr").and_then(Json::text).expect("has one");
            for name in names_in(expression) {
                let there = |s: &&str| s.split('{').next() == Some(name);
                assert!(all.keys().any(there), "{name} in {expression}");
                asked += 1;
            }
        }
    }
    assert!(asked > 30, "{asked}");
}

#[test]
fn the_alerts_ask_for_metrics_that_exist() {
    let Some(node) = Node::start("127.0.0.1:0") else {
        return;
    };
    let (_, _, body) = node.get("/metrics", "*/*");
    let all = samples(&body);
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/prometheus/purlin.rules.yml"
    );
    let text = std::fs::read_to_string(file).expect("is there");
    let mut asked = 0;
    let expressions = text.lines().filter_map(|l| l.trim().strip_prefix("expr: "));
    for expression in expressions {
        for name in names_in(expression) {
            let there = |s: &&str| s.split('{').next() == Some(name);
            assert!(all.keys().any(there), "{name} in {expression}");
            asked += 1;
        }
        // The class of mailboxes that an alert begins at is one that is served.
        let bound = expression.split("{le=\"").nth(1);
        let bound = bound.and_then(|b| b.split('"').next());
        if let Some(bound) = bound {
            let sample = format!("purlin_unread_messages_bucket{{le=\"{bound}\"}}");
            assert!(all.contains_key(&*sample), "{sample}");
        }
    }
    assert!(asked > 8, "{asked}");
    let checked = Command::new("promtool")
        .args(["check", "rules", file])
        .output();
    match checked {
        Ok(output) => assert!(output.status.success(), "{output:?}"),
        Err(_) => eprintln!("not checked: promtool is not installed"),
    }
}

#[test]
fn both_formats_have_the_same_samples() {
    let Some(node) = Node::start("[::1]:0") else {
        return;
    };
    let (_, _, plain) = node.get("/metrics", "text/plain");
    let (status, kind, open) = node.get("/metrics", "application/openmetrics-text;version=1.0.0");
    assert_eq!(
        (status, &*kind),
        (
            200,
            "application/openmetrics-text; version=1.0.0; charset=utf-8"
        )
    );
    assert!(open.ends_with("# EOF\n") && !plain.contains("# EOF"));
    let names = |body| samples(body).into_keys().collect::<Vec<_>>().join("\n");
    assert_eq!(names(&plain), names(&open));
    assert!(open.contains("# TYPE purlin_collections counter\n"));
    assert!(plain.contains("# TYPE purlin_collections_total counter\n"));
    check(&plain);
}

/// Lets Prometheus's own tool check an answer.
fn check(body: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else {
        eprintln!("not checked: promtool is not installed");
        return;
    };
    let mut to = tool.stdin.take().expect("is piped");
    to.write_all(body.as_bytes()).expect("is written");
    drop(to);
    let output = tool.wait_with_output().expect("ends");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
}

#[test]
fn only_the_owner_opens_the_socket() {
    let path = std::env::temp_dir().join(format!("purlin-metrics-{}", std::process::id()));
    let Some(mut node) = Node::start(path.to_str().expect("is text")) else {
        return;
    };
    let mode = std::fs::metadata(&path).expect("is there").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let stream = UnixStream::connect(&path).expect("is served");
    let (status, _, body) = ask(stream, "GET", "/metrics", "*/*");
    assert_eq!(status, 200);
    assert_eq!(samples(&body)["erlang_vm_process_count"], node.processes);
    // What a killed node leaves is replaced, and removed at a normal end.
    node.child.kill().expect("is killed");
    node.child.wait().expect("ends");
    assert!(path.exists());
    let output = purlin(path.to_str().expect("is text"))
        .arg("halt().")
        .output()
        .expect("runs");
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(!path.exists());
}

#[test]
fn what_is_no_request_for_metrics_is_refused() {
    let Some(node) = Node::start("127.0.0.1:0") else {
        return;
    };
    assert_eq!(node.get("/", "*/*").0, 404);
    assert_eq!(node.get("/metrics/..", "*/*").0, 404);
    let connect = || TcpStream::connect(&node.address).expect("is served");
    assert_eq!(ask(connect(), "POST", "/metrics", "*/*").0, 405);
    assert_eq!(ask(connect(), "GET", "metrics", "*/*").0, 400);
    // Connections that send nothing take places, and give them back.
    let idle: Vec<TcpStream> = (0..50).map(|_| connect()).collect();
    std::thread::sleep(Duration::from_millis(200));
    drop(idle);
    let served = (0..50).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let mut s = connect();
        let sent = s.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        let mut text = String::new();
        sent.is_ok() && s.read_to_string(&mut text).is_ok() && text.starts_with("HTTP/1.1 200")
    });
    assert!(served);
}

#[test]
fn places_that_cannot_be_served_end_the_start() {
    if !there_is_erl() {
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("is bound");
    let taken = taken.local_addr().expect("has one").to_string();
    for (place, line) in [
        (
            &*taken,
            "cannot be served at 127.0.0.1:PORT: Address already in use (os error 98)",
        ),
        (
            "/no/such/folder/socket",
            "cannot be served at /no/such/folder/socket: No such file or directory (os error 2)",
        ),
        (
            "9568",
            "bad address of metrics 9568: IP:PORT or /PATH is expected",
        ),
        (
            "localhost:9568",
            "bad address of metrics localhost:9568: IP:PORT or /PATH is expected",
        ),
    ] {
        let output = purlin(place).arg("halt().").output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{place}");
        let port = taken.rsplit(':').next().unwrap_or_default();
        let text = String::from_utf8_lossy(&output.stderr).replace(port, "PORT");
        assert!(text.contains(line), "{text}");
    }
    let output = purlin("0.0.0.0:0").arg("halt().").output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success());
    assert!(
        text.contains("can be read by other machines, without a password"),
        "{text}"
    );
}
