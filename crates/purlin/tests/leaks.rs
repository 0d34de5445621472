//! `purlin explain PID leaks`: each planted leak is named, and nothing in programs that wait for
//! good reasons.
//!
//! Skipped with a message if there is no OTP.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use purlin_diagnostics::json::{self, Json};

/// A process that is not known, and two that know only each other, one of them by a link. A process
/// that monitors another over and over, one that starts timers and forgets them, 20,000 atoms, a
/// process that keeps 100 bytes of each of 40 binaries of 64 KiB, and a table that is not read.
/// The main process knows the others by name only.
const LEAKS: &str = r#"
-module(planted).
-export([main/0, alone/0, circle/1, linked/0]).
main() ->
    spawn(?MODULE, alone, []),
    spawn(fun() -> A = self(), B = spawn(?MODULE, circle, [A]), circle(B) end),
    spawn(fun() -> spawn_link(?MODULE, linked, []), linked() end),
    register(watched, spawn(fun() -> receive never -> ok end end)),
    register(watcher, spawn(fun() -> watch(150), receive never -> ok end end)),
    register(timed, spawn(fun() -> timers(1200), receive never -> ok end end)),
    erlang:send_after(900000, nobody_has_this_name, hello),
    atoms(20000),
    register(keeper, spawn(fun() -> keep(parts(40)) end)),
    table(),
    io:format("ready~n"),
    receive never -> ok end.
alone() ->
    receive stop -> ok end.
circle(Other) ->
    receive {Other, stop} -> ok end.
linked() ->
    receive stop -> ok end.
watch(0) -> ok;
watch(N) -> monitor(process, watched), watch(N - 1).
timers(0) -> ok;
timers(N) -> erlang:send_after(900000 + N, self(), tick), timers(N - 1).
atoms(0) -> ok;
atoms(N) -> _ = list_to_atom("planted_atom_" ++ integer_to_list(N)), atoms(N - 1).
parts(N) -> [part() || _ <- lists:seq(1, N)].
part() -> <<P:100/binary, _/binary>> = binary:copy(<<7>>, 65536), P.
keep(Parts) -> receive never -> Parts end.
table() ->
    T = ets:new(forgotten, [public]),
    [ets:insert(T, {N, lists:seq(1, 40)}) || N <- lists:seq(1, 2000)],
    put(table, T).
"#;

/// Processes that wait for good reasons, each known in another way.
const HEALTHY: &str = r#"
-module(healthy).
-behaviour(gen_server).
-export([main/0, waits/0, init/1, handle_call/3, handle_cast/2]).
main() ->
    [{ok, _} = application:ensure_all_started(A) || A <- [crypto, ssl, inets, mnesia]],
    ok = mnesia:start(),
    {ok, _} = gen_server:start_link(?MODULE, [], []),
    {ok, _} = gen_server:start({local, ?MODULE}, ?MODULE, [hibernate], []),
    in_a_table(ets:new(known, [named_table, public])),
    in_a_table(T = ets:new(by_tid, [private])),
    put(table, T),
    persistent_term:put(?MODULE, #{pid => waiter()}),
    put(waiter, [{deep, waiter()}]),
    self() ! {kept, waiter()},
    %% Woken by a timer, a monitor, a link, an alias, a port, sockets.
    spawn(fun() -> erlang:send_after(900000, self(), tick), receive tick -> ok end end),
    Worker = spawn_link(?MODULE, waits, []),
    put(worker, Worker),
    spawn(fun() -> monitor(process, Worker), receive {'DOWN', _, _, _, _} -> ok end end),
    spawn(fun() -> link(Worker), receive never -> ok end end),
    Me = self(),
    spawn(fun() -> Me ! {alias, alias()}, receive reply -> ok end end),
    receive {alias, Alias} -> put(alias, Alias) end,
    spawn(fun() -> open_port({spawn, "cat"}, []), receive {_, {data, _}} -> ok end end),
    spawn(fun() ->
        {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
        spawn(fun() -> gen_tcp:accept(L) end),
        gen_tcp:accept(L)
    end),
    spawn(fun() ->
        {ok, L} = socket:open(inet, stream),
        ok = socket:bind(L, #{family => inet, addr => loopback, port => 0}),
        ok = socket:listen(L),
        spawn(fun() -> socket:accept(L) end),
        socket:accept(L)
    end),
    spawn(fun() -> net_kernel:monitor_nodes(true), receive {nodeup, _} -> ok end end),
    spawn(fun() -> put(sent, term_to_binary(self())), receive never -> ok end end),
    spawn(fun() -> process_flag(trap_exit, true), {ok, U} = gen_udp:open(0), waits_for(U) end),
    [spawn(fun() -> lists:sum(lists:seq(1, 100)), receive after 900000 -> ok end end)
     || _ <- lists:seq(1, 20)],
    spawn(fun busy/0),
    timer:sleep(300),
    io:format("ready~n"),
    receive never -> ok end.
busy() -> P = waiter(), Q = spawn(fun() -> forward() end), busy(Q, P, 0).
%% The pid of a waiting process is all the time on its way between two others.
busy(Q, P, N) -> Q ! {self(), P}, receive {Q, P1} -> busy(Q, P1, N + 1) end.
forward() -> receive {From, P} -> From ! {self(), P}, forward() end.
waits_for(U) -> receive {udp, U, _, _, _} -> ok end.
in_a_table(T) -> ets:insert(T, {pid, waiter()}).
waiter() -> spawn(?MODULE, waits, []).
waits() -> receive stop -> ok end.
init([]) -> {ok, waiter()};
init([hibernate]) -> {ok, waiter(), hibernate}.
handle_call(_, _, S) -> {reply, ok, S}.
handle_cast(_, S) -> {noreply, S}.
"#;

struct Scratch(PathBuf);

impl Scratch {
    /// `None` if there is no OTP.
    fn new(name: &str) -> Option<Scratch> {
        let dir = std::env::temp_dir().join(format!("purlin-{name}-{}", std::process::id()));
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
    /// Starts a program and waits until it is ready.
    fn start(&self, module: &str, text: &str) -> Running {
        let file = format!("{module}.erl");
        fs::write(self.0.join(&file), text).expect("writes a file");
        let compiled = self.purlin(&["erlc", "+debug_info", &file]);
        assert!(compiled.status.success(), "{compiled:?}");
        let start = [
            "-eval",
            &format!("spawn(fun() -> register(main, self()), {module}:main() end)"),
        ];
        let mut child = self
            .command(&[&["erl", "-noshell", "-pa", "."][..], &start].concat())
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("is a pipe");
        BufReader::new(out)
            .read_line(&mut line)
            .expect("says something");
        assert_eq!(line, "ready\n");
        Running(child)
    }
    fn explain(&self, args: &[&str]) -> String {
        let output = self.purlin(&[&["explain"][..], args].concat());
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
    fn json(&self, pid: &str) -> Json {
        json::parse(&self.explain(&["--json", pid, "leaks"])).expect("is JSON")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Running(Child);

impl Running {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn at<'a>(j: &'a Json, path: &[&str]) -> &'a Json {
    path.iter()
        .try_fold(j, |j, name| j.get(name))
        .unwrap_or_else(|| panic!("no {path:?} in {j}"))
}

fn number(j: &Json, path: &[&str]) -> f64 {
    at(j, path).number().expect("is a number")
}

fn word<'a>(j: &'a Json, path: &[&str]) -> &'a str {
    at(j, path).text().unwrap_or_default()
}

#[test]
fn planted_leaks_are_named() {
    let Some(s) = Scratch::new("planted") else {
        return;
    };
    let running = s.start("planted", LEAKS);
    // A table counts as unread after ten seconds.
    std::thread::sleep(std::time::Duration::from_secs(11));
    let answer = s.json(&running.pid());
    assert_eq!(number(&answer, &["processes", "stuck"]), 5.0, "{answer}");
    let stuck = at(&answer, &["processes", "top"]).list();
    let at_function = |name: &str| -> Vec<&Json> {
        let all = stuck.iter();
        all.filter(|p| word(p, &["waits_at", "function"]) == name)
            .collect()
    };
    let alone = at_function("planted:alone/0");
    assert_eq!(alone.len(), 1, "{answer}");
    assert_eq!(word(alone[0], &["initial_call"]), "planted:alone/0");
    assert!(number(alone[0], &["waits_at", "line"]) > 0.0);
    assert_eq!(word(alone[0], &["spawned_by_name"]), "main");
    assert!(at(alone[0], &["known_by"]).list().is_empty());
    for name in ["planted:circle/1", "planted:linked/0"] {
        let two = at_function(name);
        assert_eq!(two.len(), 2, "{answer}");
        let known_by = |i: usize| at(two[i], &["known_by"]).list();
        assert_eq!(known_by(0), [at(two[1], &["pid"]).clone()]);
        assert_eq!(known_by(1), [at(two[0], &["pid"]).clone()]);
    }
    let monitors = at(&answer, &["monitors"]).list();
    assert_eq!(monitors.len(), 1, "{answer}");
    assert!(word(&monitors[0], &["by"]).ends_with(" watcher"));
    assert!(word(&monitors[0], &["of"]).ends_with(" watched"));
    assert_eq!(number(&monitors[0], &["monitors"]), 150.0);
    let timers = at(&answer, &["timers"]).list();
    assert_eq!(timers.len(), 2, "{answer}");
    assert_eq!(word(&timers[0], &["to"]), "nobody_has_this_name");
    assert!(word(&timers[1], &["to"]).ends_with(" timed"));
    assert_eq!(number(&timers[1], &["timers"]), 1200.0);
    let atoms = at(&answer, &["atoms", "top"]).list();
    assert_eq!(atoms.len(), 1, "{answer}");
    assert_eq!(number(&atoms[0], &["made"]), 20000.0);
    assert_eq!(word(&atoms[0], &["site", "function"]), "planted:atoms/1");
    let binaries = at(&answer, &["binaries"]).list();
    assert_eq!(binaries.len(), 1, "{answer}");
    assert!(word(&binaries[0], &["holder"]).contains(" keeper "));
    assert_eq!(number(&binaries[0], &["binaries"]), 40.0);
    assert_eq!(number(&binaries[0], &["used_bytes"]), 4000.0);
    let tables = at(&answer, &["tables", "top"]).list();
    assert_eq!(tables.len(), 1, "{answer}");
    assert_eq!(word(&tables[0], &["name"]), "forgotten");
    assert_eq!(word(&tables[0], &["owner_name"]), "main");
    // The text names each of them, and the same processes are found again.
    let text = s.explain(&[&running.pid(), "leaks"]);
    for part in [
        "5 processes wait for ever",
        "waits at planted.erl:",
        "planted:alone/0",
        "only processes that wait for ever, too, know it: <0.",
        " watched 150 times",
        "1 timer runs for nobody_has_this_name, a name that no process has",
        "1,200 timers run for ",
        "20,000 atoms made at planted.erl:",
        "in 40 binaries, and uses 3.91 KiB of that",
        "table forgotten of ",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn nothing_is_found_in_a_program_that_waits_for_good_reasons() {
    let Some(s) = Scratch::new("healthy") else {
        return;
    };
    let running = s.start("healthy", HEALTHY);
    for _ in 0..3 {
        let answer = s.json(&running.pid());
        let stuck = at(&answer, &["processes"]);
        assert_eq!(number(stuck, &["stuck"]), 0.0, "{answer}");
        assert_eq!(number(stuck, &["silent"]), 0.0, "{answer}");
        assert!(number(stuck, &["looked_at"]) > 5.0, "{answer}");
        assert!(number(stuck, &["objects"]) > 100.0, "{answer}");
        for kind in ["monitors", "timers", "binaries"] {
            assert!(at(&answer, &[kind]).list().is_empty(), "{answer}");
        }
        for kind in ["tables", "atoms"] {
            assert!(at(&answer, &[kind, "top"]).list().is_empty(), "{answer}");
        }
    }
    let text = s.explain(&[&running.pid(), "leaks"]);
    assert!(text.starts_with("Nothing is forgotten: "), "{text}");
}
