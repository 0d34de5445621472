//! `purlin explain PID heap`: the file is what Chrome's DevTools read, it names what holds most,
//! and the difference of two names what grew.
//!
//! Skipped with a message if there is no OTP.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use purlin_diagnostics::json::{self, Json};

/// A server whose state grows on request, a table, a large binary that two processes share, and a
/// small process.
const HOLDERS: &str = r#"
-module(holders).
-export([main/0, store/1]).
main() ->
    register(store, spawn(fun() -> store([]) end)),
    Large = binary:copy(<<"secret">>, 20000),
    [register(N, spawn(fun() -> receive never -> Large end end)) || N <- [one, two]],
    register(small, spawn(fun() ->
        N = length(registered()),
        M = #{name => {user, N, N / 3}, list => [self(), make_ref(), {a, N}, 1 bsl (60 + N)]},
        put(own_key, [M, M]),
        receive never -> M end
    end)),
    ets:new(orders, [named_table, public]),
    [ets:insert(orders, {N, {order, N, [N, N + 1]}}) || N <- lists:seq(1, 3000)],
    persistent_term:put(config, #{deep => lists:seq(1, 100)}),
    self() ! {waits, lists:seq(1, 10)},
    store ! {more, 20000, self()}, receive done -> ok end,
    io:format("ready~n"),
    {ok, _} = file:read_line(standard_io),
    store ! {more, 50000, self()}, receive done -> ok end,
    io:format("grown~n"),
    receive never -> ok end.
store(Orders) ->
    receive
        {more, N, From} ->
            More = [{order, make_ref(), {line, X}} || X <- lists:seq(1, N)],
            From ! done,
            store([More | Orders])
    end.
"#;

struct Scratch(PathBuf);

impl Scratch {
    /// `None` if there is no OTP.
    fn new() -> Option<Scratch> {
        let dir = std::env::temp_dir().join(format!("purlin-heap-{}", std::process::id()));
        fs::create_dir_all(dir.join("run")).expect("makes a scratch directory");
        let scratch = Scratch(fs::canonicalize(dir).expect("exists"));
        let version = scratch.purlin(&["version"]);
        if !String::from_utf8_lossy(&version.stdout).contains("Erlang/OTP") {
            println!("skipped: no OTP");
            return None;
        }
        Some(scratch)
    }
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command.env("XDG_RUNTIME_DIR", self.0.join("run"));
        command
    }
    fn purlin(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("runs")
    }
    fn explain(&self, args: &[&str]) -> String {
        let output = self.purlin(&[&["explain"][..], args].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
    /// Writes a snapshot and returns it and the text that goes with it.
    fn snapshot(&self, pid: &str, file: &str) -> (Json, String) {
        let text = self.explain(&[pid, "heap", "--to", file]);
        let path = self.0.join(file);
        let mode = fs::metadata(&path).expect("is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "others may not read it");
        let file = fs::read_to_string(path).expect("is text");
        assert!(!file.contains("secret"), "no contents of binaries");
        (json::parse(&file).expect("is JSON"), text)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn at<'a>(j: &'a Json, path: &[&str]) -> &'a Json {
    path.iter()
        .try_fold(j, |j, name| j.get(name))
        .unwrap_or_else(|| panic!("no {path:?}"))
}

fn numbers(j: &Json, name: &str) -> Vec<usize> {
    let all = at(j, &[name]).list().iter();
    all.map(|n| n.number().expect("is a number") as usize)
        .collect()
}

/// The nodes of a snapshot that keeps the rules of the format: name, size, and edges to others.
struct Graph {
    names: Vec<String>,
    sizes: Vec<usize>,
    edges: Vec<Vec<(String, usize)>>,
}

/// Checks what DevTools rely on.
fn checked(file: &Json) -> Graph {
    let meta = |name: &str| at(file, &["snapshot", "meta", name]).list();
    let texts: Vec<&str> = at(file, &["strings"])
        .list()
        .iter()
        .map(|t| t.text().expect("is a text"))
        .collect();
    let fields: Vec<&str> = meta("node_fields").iter().filter_map(Json::text).collect();
    assert_eq!(
        fields[..5],
        ["type", "name", "id", "self_size", "edge_count"]
    );
    let edge_fields: Vec<&str> = meta("edge_fields").iter().filter_map(Json::text).collect();
    assert_eq!(edge_fields, ["type", "name_or_index", "to_node"]);
    assert_eq!(meta("node_types").len(), fields.len());
    assert_eq!(meta("edge_types").len(), edge_fields.len());
    let (types, edge_types) = (meta("node_types")[0].list(), meta("edge_types")[0].list());
    let (nodes, edges) = (numbers(file, "nodes"), numbers(file, "edges"));
    let count = |name: &str| at(file, &["snapshot", name]).number().expect("a number") as usize;
    assert_eq!(nodes.len(), count("node_count") * fields.len());
    assert_eq!(edges.len(), count("edge_count") * edge_fields.len());
    let mut ids = HashSet::new();
    let mut graph = Graph {
        names: Vec::new(),
        sizes: Vec::new(),
        edges: Vec::new(),
    };
    let mut next = 0;
    for n in nodes.chunks(fields.len()) {
        assert!(n[0] < types.len(), "a known type of node");
        assert!(ids.insert(n[2]), "an id is of one node");
        let own = &edges[3 * next..3 * (next + n[4])];
        next += n[4];
        let own = own.chunks(3).map(|e| {
            let kind = edge_types[e[0]].text().expect("a known type of edge");
            assert_eq!(e[2] % fields.len(), 0, "an edge leads to a node");
            assert!(e[2] < nodes.len(), "an edge leads to a node");
            let label = match kind {
                "element" | "hidden" => e[1].to_string(),
                _ => texts[e[1]].to_string(),
            };
            (label, e[2] / fields.len())
        });
        graph.edges.push(own.collect());
        graph.names.push(texts[n[1]].to_string());
        graph.sizes.push(n[3]);
    }
    assert_eq!(next, count("edge_count"), "each edge is of one node");
    // Everything is reached from the root.
    let mut seen = HashSet::from([0]);
    let mut todo = vec![0];
    while let Some(n) = todo.pop() {
        todo.extend(
            graph.edges[n]
                .iter()
                .map(|e| e.1)
                .filter(|e| seen.insert(*e)),
        );
    }
    assert_eq!(seen.len(), graph.names.len(), "a node has no way to it");
    graph
}

impl Graph {
    fn find(&self, part: &str) -> usize {
        let found = self.names.iter().position(|n| n.contains(part));
        found.unwrap_or_else(|| panic!("no {part:?} in {:?}", self.names))
    }
    /// Follows edges by parts of their labels and of the names that they lead to.
    fn follow(&self, from: usize, path: &[(&str, &str)]) -> usize {
        path.iter().fold(from, |n, (label, name)| {
            let found = self.edges[n]
                .iter()
                .find(|(l, to)| l.contains(label) && self.names[*to].contains(name));
            let there = || {
                let all = self.edges[n].iter().map(|(l, to)| (l, &self.names[*to]));
                all.collect::<Vec<_>>()
            };
            found
                .unwrap_or_else(|| panic!("no {label:?} {name:?} in {:?}", there()))
                .1
        })
    }
}

#[test]
fn a_snapshot_names_holders_and_what_grew() {
    let Some(s) = Scratch::new() else { return };
    fs::write(s.0.join("holders.erl"), HOLDERS).expect("writes a file");
    let compiled = s.purlin(&["erlc", "+debug_info", "holders.erl"]);
    assert!(compiled.status.success(), "{compiled:?}");
    let start = [
        "-eval",
        "spawn(fun() -> register(main, self()), holders:main() end)",
    ];
    let child = s
        .command(&[&["erl", "-noshell", "-pa", "."][..], &start].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut running = Running(child);
    let pid = running.0.id().to_string();
    let mut out = BufReader::new(running.0.stdout.take().expect("is a pipe"));
    let mut says = |what: &str| {
        let mut line = String::new();
        out.read_line(&mut line).expect("says something");
        assert_eq!(line.trim_end(), what);
    };
    says("ready");
    let (before, text) = s.snapshot(&pid, "before.heapsnapshot");
    assert!(
        text.contains(" store, started with erlang:apply/2"),
        "{text}"
    );
    assert!(text.contains("processes were stopped for "), "{text}");
    let graph = checked(&before);
    assert_eq!(graph.names[0], "");
    // A large heap is grouped by shapes, with the variable and line that lead to it.
    let store = graph.find(" store, started with");
    let orders = graph.follow(
        store,
        &[
            ("variable of holders:store/1 at holders.erl:", "list"),
            ("item", "{order, _, _} \u{d7} 20000"),
        ],
    );
    assert_eq!(graph.sizes[orders], 20000 * 8 * 4);
    let line = graph.follow(orders, &[("3", "{line, _} \u{d7} 20000")]);
    assert_eq!(graph.sizes[line], 20000 * 8 * 3);
    // A small one is whole: both items of the list lead to the same map.
    let small = graph.find(" small, started with");
    let list = graph.follow(small, &[("dictionary: own_key", "list")]);
    let maps: Vec<usize> = graph.edges[list].iter().map(|e| e.1).collect();
    assert!(maps.len() == 2 && maps[0] == maps[1], "{maps:?}");
    let user = graph.follow(maps[0], &[("name", "{user, _, _}")]);
    graph.follow(user, &[("3", "float")]);
    graph.follow(maps[0], &[("list", "list"), ("item", "big integer")]);
    // Two processes share the binary.
    let holds = |name: &str| {
        let process = graph.find(&format!(" {name}, started with"));
        let n = graph.follow(
            process,
            &[
                ("", "reference to a binary"),
                ("bytes", "bytes of a binary"),
            ],
        );
        assert_eq!(graph.sizes[n], 120_000);
        n
    };
    assert_eq!(holds("one"), holds("two"));
    let table = graph.find("table orders of ");
    let object = graph.follow(table, &[("object", "{_, _} \u{d7} 3000")]);
    graph.follow(object, &[("2", "{order, _, _} \u{d7} 3000")]);
    graph.follow(0, &[("persistent terms", ""), ("", "config")]);
    graph.follow(0, &[("modules", ""), ("module", "holders")]);
    let main = graph.find(" main, started with");
    graph.follow(main, &[("message", "{waits, _}")]);

    let stdin = running.0.stdin.as_mut().expect("is a pipe");
    stdin.write_all(b"go on\n").expect("reads");
    says("grown");
    // A link of that name is replaced, and what it leads to stays.
    let other = s.0.join("other");
    fs::write(&other, "as it was").expect("writes");
    symlink(&other, s.0.join("after.heapsnapshot")).expect("makes a link");
    let (after, _) = s.snapshot(&pid, "after.heapsnapshot");
    assert_eq!(fs::read_to_string(&other).expect("is text"), "as it was");
    let graph = checked(&after);
    let orders = graph.find("{order, _, _} \u{d7} 70000");
    assert_eq!(graph.sizes[orders], 70000 * 8 * 4);
    let files = ["before.heapsnapshot", "after.heapsnapshot"];
    let text = s.explain(&[&["diff"][..], &files].concat());
    assert!(text.contains("50,000 more terms: <0."), "{text}");
    assert!(
        text.contains("variable of holders:store/1 at holders.erl:"),
        "{text}"
    );
    let found = s.explain(&[&["--json", "diff"][..], &files].concat());
    let found = json::parse(&found).expect("is JSON");
    let grown = at(&found, &["grown"]).list();
    let what = |g: &Json, name: &str| at(g, &[name]).text().unwrap_or_default().to_string();
    let orders = grown
        .iter()
        .find(|g| what(g, "what") == "{order, _, _}" && what(g, "holder").contains(" store,"))
        .expect("the orders have grown");
    let terms = |name: &str| at(orders, &[name]).number();
    assert_eq!(
        (terms("before_terms"), terms("after_terms")),
        (Some(20000.0), Some(70000.0))
    );
    // Nothing has grown from the second to itself, and other files are refused with a line.
    let same = s.explain(&["--json", "diff", files[1], files[1]]);
    let same = json::parse(&same).expect("is JSON");
    assert!(at(&same, &["grown"]).list().is_empty());
    fs::write(s.0.join("cut.heapsnapshot"), "{\"snapshot\":{").expect("writes");
    fs::write(
        s.0.join("odd.heapsnapshot"),
        "{\"snapshot\":{\"purlin\":{\"schema\":\"purlin-heap/1\"},\"meta\":{\"node_fields\":\
         [1,2,3,4,5]}},\"nodes\":[0,0,1,0,7],\"edges\":[],\"strings\":[\"\"]}",
    )
    .expect("writes");
    for (file, status) in [
        ("cut.heapsnapshot", 66),
        ("odd.heapsnapshot", 66),
        ("holders.erl", 2),
    ] {
        let output = s.purlin(&["explain", "diff", file, files[1]]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{file}: {output:?}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}
