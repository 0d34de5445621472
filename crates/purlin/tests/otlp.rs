//! `+Fotlp` and `purlin observe PID --otlp`: what a collector gets, and what happens if there is
//! none.
//!
//! Skipped with a message if there is no OTP. If Python has the package `opentelemetry-proto`, it
//! decodes everything too.

use purlin_diagnostics::protobuf::{Field, Fields, field, numbers};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Computes, copies large messages to a process, and waits, without end.
const PROGRAM: &str = r#"
-module(shop).
-export([main/0, once/0]).
main() -> spawn(fun() -> sell([]) end), io:format("ready~n"), receive never -> ok end.
once() -> work(60), io:format("done~n"), halt().
sell(_) ->
    Stock = lists:seq(1, 3000),
    P = spawn(fun() -> receive {_, L} -> length(L) end end),
    P ! {self(), [work(2) | Stock]},
    receive after 5 -> sell(Stock) end.
work(0) -> ok;
work(N) -> lists:sort([X * N rem 1009 || X <- lists:seq(1, 2000)]), work(N - 1).
"#;

/// A request: its path, its headers in lower case, and its body.
struct Request {
    path: String,
    head: String,
    body: Vec<u8>,
}

/// A collector that answers with a status for each path; `None` never answers.
struct Collector {
    address: String,
    requests: Receiver<Request>,
}

impl Collector {
    fn new(status: fn(&str) -> Option<u16>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("is bound");
        let address = listener.local_addr().expect("has one").to_string();
        let (to, requests) = channel();
        std::thread::spawn(move || {
            let mut unanswered = Vec::new();
            for stream in listener.incoming().flatten() {
                let Some((mut stream, request)) = receive(stream) else {
                    continue;
                };
                match status(&request.path) {
                    Some(n) => {
                        let _ = write!(stream, "HTTP/1.1 {n} X\r\nContent-Length: 0\r\n\r\n");
                    }
                    None => unanswered.push(stream),
                }
                if to.send(request).is_err() {
                    return;
                }
            }
        });
        Collector { address, requests }
    }
    /// The next request to that path.
    fn next(&self, path: &str) -> Request {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let request = self.requests.recv_timeout(left).expect("sends");
            if request.path == path {
                return request;
            }
        }
    }
}

fn receive(stream: TcpStream) -> Option<(TcpStream, Request)> {
    let mut from = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if from.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_string();
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|l| l.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    from.read_exact(&mut body).ok()?;
    Some((from.into_inner(), Request { path, head, body }))
}

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Place(std::path::PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Place {
    /// `None` if there is no OTP.
    fn new(name: &str) -> Option<Place> {
        if Command::new("erl").arg("-version").output().is_err() {
            println!("skipped: no erl");
            return None;
        }
        let dir = format!("purlin-otlp-{name}-{}", std::process::id());
        let place = Place(std::env::temp_dir().join(dir));
        fs::create_dir_all(place.0.join("run")).expect("is made");
        fs::write(place.0.join("shop.erl"), PROGRAM).expect("is written");
        let compiled = place.purlin(&["erlc", "shop.erl"]).status();
        assert!(compiled.expect("runs").success());
        Some(place)
    }
    fn purlin(&self, args: &[&str]) -> Command {
        let mut c = Command::new(env!("CARGO_BIN_EXE_purlin"));
        c.args(args).current_dir(&self.0).stdin(Stdio::null());
        c.env("XDG_RUNTIME_DIR", self.0.join("run"));
        for variable in [
            "OTEL_SERVICE_NAME",
            "OTEL_RESOURCE_ATTRIBUTES",
            "RELEASE_NAME",
        ] {
            c.env_remove(variable);
        }
        c
    }
    /// A command that runs a function of the program.
    fn erl(&self, function: &str, flags: &[&str]) -> Command {
        let args = ["erl", "-noshell", "-s", "shop", function];
        self.purlin(&[&args[..], flags].concat())
    }
}

type Message<'a> = Vec<(u64, Field<'a>)>;

fn message(bytes: &[u8]) -> Message<'_> {
    Fields::of(bytes).all().expect("is a message")
}

/// The messages in a field.
fn inner<'a>(m: &Message<'a>, number: u64) -> Vec<Message<'a>> {
    let of = m.iter().filter_map(move |f| match f {
        (n, Field::Bytes(b)) if *n == number => Some(message(b)),
        _ => None,
    });
    of.collect()
}

fn texts<'a>(m: &Message<'a>, number: u64) -> Vec<&'a str> {
    let of = m.iter().filter_map(move |f| match f {
        (n, Field::Bytes(b)) if *n == number => Some(std::str::from_utf8(b).expect("is text")),
        _ => None,
    });
    of.collect()
}

/// The attributes of the resource, as text.
fn attributes(resources: &Message) -> Vec<(String, String)> {
    let resource = &inner(resources, 1)[0];
    let one = |pair: &Message| {
        let value = &inner(pair, 2)[0];
        let shown = match texts(value, 1)[..] {
            [text] => text.to_string(),
            _ => field(value, 3).to_string(),
        };
        (texts(pair, 1)[0].to_string(), shown)
    };
    inner(resource, 1).iter().map(one).collect()
}

#[test]
fn a_collector_gets_metrics_and_profiles() {
    let Some(place) = Place::new("both") else {
        return;
    };
    let collector = Collector::new(|_| Some(200));
    let to = format!("http://{}/otlp/,1s", collector.address);
    let mut command = place.erl("main", &["+Fotlp", &to]);
    command.env(
        "OTEL_RESOURCE_ATTRIBUTES",
        "deployment.environment.name=a%20test",
    );
    let node = Node(
        command
            .env("OTEL_SERVICE_NAME", "web")
            .spawn()
            .expect("starts"),
    );
    let metrics = collector.next("/otlp/v1/metrics");
    assert!(
        metrics
            .head
            .contains("content-type: application/x-protobuf\r\n")
    );
    let request = message(&metrics.body);
    let resources = &inner(&request, 1)[0];
    let all = attributes(resources);
    let pid = node.0.id().to_string();
    for (key, value) in [
        ("service.name", "web"),
        ("deployment.environment.name", "a test"),
        ("process.pid", &pid),
        ("process.runtime.name", "purlin"),
        ("telemetry.sdk.language", "erlang"),
    ] {
        assert!(
            all.iter().any(|(k, v)| k == key && v == value),
            "{key}: {all:?}"
        );
    }
    assert!(all.iter().any(|(k, v)| k == "host.name" && !v.is_empty()));
    let scoped = &inner(resources, 2)[0];
    let list = inner(scoped, 2);
    let named = |name: &str| {
        let mut found = list.iter().filter(|m| texts(m, 1) == [name]);
        found.next().unwrap_or_else(|| panic!("no {name}"))
    };
    // A gauge, a sum with its unit, and histograms.
    assert_eq!(inner(named("erlang_vm_process_count"), 5).len(), 1);
    let reclaimed = named("purlin_reclaimed_bytes");
    assert_eq!(
        (texts(reclaimed, 3), inner(reclaimed, 7).len()),
        (vec!["By"], 1)
    );
    for name in ["purlin_wait_seconds", "purlin_unread_messages"] {
        let points = inner(&inner(named(name), 9)[0], 1);
        let sizes = points.iter().map(|p| {
            let bytes = |n| texts_len(p, n) / 8;
            (bytes(6), bytes(7))
        });
        assert!(
            sizes
                .into_iter()
                .all(|(counts, bounds)| counts == bounds + 1)
        );
    }
    // Profiles of later seconds have the program's functions for each measure.
    let wanted = [
        "time",
        "copied",
        "allocated",
        "kept_by_collections",
        "work",
        "waited",
    ];
    let mut missing: BTreeSet<&str> = wanted.into();
    let mut bodies = vec![("metrics", metrics.body.clone())];
    for _ in 0..15 {
        let profiles = collector.next("/otlp/v1development/profiles");
        for name in measures_with(&profiles.body, "shop:") {
            missing.retain(|m| *m != name);
        }
        bodies.push(("profiles", profiles.body));
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
    python_decodes(&place, &bodies);
}

fn texts_len(m: &Message, number: u64) -> usize {
    let of = m.iter().filter_map(|f| match f {
        (n, Field::Bytes(b)) if *n == number => Some(b.len()),
        _ => None,
    });
    of.sum()
}

/// Checks that all indexes of a request lead somewhere, and returns the measures with a sample in a
/// function whose name begins like this.
fn measures_with(body: &[u8], prefix: &str) -> Vec<String> {
    let request = message(body);
    let tables = &inner(&request, 2)[0];
    let strings = texts(tables, 5);
    let (locations, functions) = (inner(tables, 2), inner(tables, 3));
    let (attributes, stacks) = (inner(tables, 6), inner(tables, 7));
    assert_eq!(strings[0], "");
    for table in [&locations, &functions, &attributes, &stacks] {
        assert!(table[0].is_empty());
    }
    let at = |table: &[&str], n: u64| table[n as usize].to_string();
    let name_of = |location: u64| {
        let line = &inner(&locations[location as usize], 3)[0];
        let function = &functions[field(line, 1) as usize];
        at(&strings, field(function, 3));
        at(&strings, field(function, 1))
    };
    let mut found = Vec::new();
    for profile in inner(&inner(&inner(&request, 1)[0], 2)[0], 2) {
        let kind = &inner(&profile, 1)[0];
        let (name, unit) = (at(&strings, field(kind, 1)), at(&strings, field(kind, 2)));
        assert!(["nanoseconds", "bytes", "reductions"].contains(&&*unit));
        let samples = inner(&profile, 2);
        assert!(!samples.is_empty() && field(&profile, 4) > 0);
        let mut there = false;
        for s in &samples {
            assert!(numbers(s, 4).expect("is packed")[0] > 0);
            for a in numbers(s, 2).expect("is packed") {
                let a = &attributes[a as usize];
                assert_eq!(at(&strings, field(a, 1)), "purlin.kind");
            }
            let stack = &stacks[field(s, 1) as usize];
            let frames = numbers(stack, 1).expect("is packed");
            there |= frames.iter().any(|&l| name_of(l).starts_with(prefix));
        }
        if there {
            found.push(name);
        }
    }
    found
}

/// Decodes bodies by the messages of the package `opentelemetry-proto`.
fn python_decodes(place: &Place, bodies: &[(&str, Vec<u8>)]) {
    const SCRIPT: &str = r#"
import sys
try:
    from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as m
    from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as p
except ImportError as e:
    print("none:", e); sys.exit()
kinds = {"metrics": m.ExportMetricsServiceRequest, "profiles": p.ExportProfilesServiceRequest}
for name in sys.argv[1:]:
    r = kinds[name.split("-")[0]]()
    r.ParseFromString(open(name, "rb").read())
    if name.startswith("metrics"):
        ms = r.resource_metrics[0].scope_metrics[0].metrics
        assert len(ms) > 80 and all(x.WhichOneof("data") for x in ms)
        print("metrics", len(ms))
    else:
        d = r.dictionary
        ps = r.resource_profiles[0].scope_profiles[0].profiles
        for x in ps:
            assert len(x.profile_id) == 16 and x.time_unix_nano and x.duration_nano
            for s in x.samples:
                for l in d.stack_table[s.stack_index].location_indices:
                    f = d.function_table[d.location_table[l].lines[0].function_index]
                    assert d.string_table[f.name_strindex]
        print("profiles", [d.string_table[x.sample_type.type_strindex] for x in ps])
print("decoded")
"#;
    let mut names = Vec::new();
    for (i, (kind, body)) in bodies.iter().enumerate() {
        let name = format!("{kind}-{i}");
        fs::write(place.0.join(&name), body).expect("is written");
        names.push(name);
    }
    let ran = Command::new("python3")
        .args(["-c", SCRIPT])
        .args(&names)
        .current_dir(&place.0)
        .output();
    let Ok(output) = ran else {
        println!("not decoded by Python: there is none");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if text.starts_with("none:") {
        println!("not decoded by Python: {}", text.trim());
        return;
    }
    assert!(text.ends_with("decoded\n"), "{output:?}");
    println!("{text}");
}

/// Lines on standard error of a program that runs for some seconds.
fn lines_of(place: &Place, to: &str, seconds: u64) -> Vec<String> {
    let mut node = Node(
        place
            .erl("main", &["+Fotlp", to])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts"),
    );
    std::thread::sleep(Duration::from_secs(seconds));
    node.0.kill().expect("is killed");
    let mut text = String::new();
    let mut from = node.0.stderr.take().expect("is piped");
    from.read_to_string(&mut text).expect("is text");
    text.lines().map(str::to_string).collect()
}

#[test]
fn a_collector_that_is_not_there_is_one_line() {
    let Some(place) = Place::new("none") else {
        return;
    };
    let free = TcpListener::bind("127.0.0.1:0").expect("is bound");
    let address = free.local_addr().expect("has one");
    drop(free);
    let lines = lines_of(&place, &format!("http://{address},1s"), 5);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = format!("purlin: no collector answers at http://{address}: Connection refused");
    assert!(lines[0].starts_with(&line), "{lines:?}");
}

#[test]
fn a_collector_that_takes_no_profiles_gets_metrics() {
    let Some(place) = Place::new("metrics") else {
        return;
    };
    let collector = Collector::new(|path| match path {
        "/v1/metrics" => Some(200),
        _ => Some(404),
    });
    let to = format!("http://{}", collector.address);
    let lines = lines_of(&place, &format!("{to},1s"), 5);
    let line = format!("purlin: profiles are not taken by {to}: it answers with status 404");
    assert_eq!(lines, [format!("{line} [PURLIN-0172]")]);
    let paths: Vec<String> = collector.requests.try_iter().map(|r| r.path).collect();
    let of = |path: &str| paths.iter().filter(|p| *p == path).count();
    assert!(of("/v1/metrics") >= 2, "{paths:?}");
    assert_eq!(of("/v1development/profiles"), 1, "{paths:?}");
}

#[test]
fn a_collector_that_never_answers_blocks_nothing() {
    let Some(place) = Place::new("silent") else {
        return;
    };
    let collector = Collector::new(|_| None);
    let to = format!("http://{},1s", collector.address);
    let mut node = place.erl("main", &["+Fotlp", &to]);
    let mut node = Node(node.stdout(Stdio::piped()).spawn().expect("starts"));
    collector.next("/v1/metrics");
    // Another program with the same collector ends while its requests are open.
    let output = place.erl("once", &["+Fotlp", &to]).output().expect("runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    let pid = node.0.id().to_string();
    let asked = place.purlin(&["explain", &pid, "work"]).output();
    assert!(asked.expect("runs").status.success());
    assert!(node.0.try_wait().expect("is there").is_none());
}

#[test]
fn what_cannot_be_sent_to_ends_the_start() {
    let Some(place) = Place::new("wrong") else {
        return;
    };
    for (to, line) in [
        (
            "https://127.0.0.1:4318",
            "bad +Fotlp https://127.0.0.1:4318: notsup: no https; a collector on this machine can \
             pass it on",
        ),
        (
            "127.0.0.1:4318",
            "bad +Fotlp 127.0.0.1:4318: http://HOST:PORT is expected",
        ),
        (
            "http://me:secret@127.0.0.1",
            "bad +Fotlp http://me:secret@127.0.0.1: http://HOST:PORT is expected",
        ),
        (
            "http://127.0.0.1:4318,0s",
            "bad +Fotlp http://127.0.0.1:4318,0s: metrics, profiles or 1s to 3600s is expected",
        ),
    ] {
        let output = place.erl("once", &["+Fotlp", to]).output().expect("runs");
        assert_eq!(output.status.code(), Some(1), "{to}");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(line), "{text}");
    }
    let output = place
        .erl("once", &["+Fotlp", "http://192.0.2.1:4318,3600s"])
        .output()
        .expect("runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "purlin: http://192.0.2.1:4318 gets what this node measures, without encryption [PURLIN-0169]\n"
    );
}

#[test]
fn a_running_node_sends_while_it_is_observed() {
    let Some(place) = Place::new("observed") else {
        return;
    };
    let mut node = place.erl("main", &[]);
    let mut node = Node(node.stdout(Stdio::piped()).spawn().expect("starts"));
    let mut line = String::new();
    BufReader::new(node.0.stdout.as_mut().expect("is piped"))
        .read_line(&mut line)
        .expect("a line");
    let collector = Collector::new(|_| Some(200));
    let to = format!("http://{},1s", collector.address);
    let pid = node.0.id().to_string();
    let mut observer = place.purlin(&["observe", &pid, "--otlp", &to]);
    let mut observer = Node(observer.stderr(Stdio::piped()).spawn().expect("starts"));
    collector.next("/v1/metrics");
    let profiles = collector.next("/v1development/profiles");
    assert!(!measures_with(&profiles.body, "shop:").is_empty());
    node.0.kill().expect("is killed");
    node.0.wait().expect("ends");
    assert!(observer.0.wait().expect("ends").success());
    let mut text = String::new();
    let mut from = observer.0.stderr.take().expect("is piped");
    from.read_to_string(&mut text).expect("is text");
    let address = &collector.address;
    assert_eq!(
        text,
        format!(
            "purlin: process {pid} sends to http://{address}, until Ctrl-C\n\
             purlin: process {pid} has ended\n"
        )
    );
    let output = place
        .purlin(&["observe", &pid, "--otlp", "https://x"])
        .output();
    let output = output.expect("runs");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("notsup: no https"), "{text}");
}
