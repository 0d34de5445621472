//! A program to be observed, and `purlin observe` that observes it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use purlin_diagnostics::explain::socket;
use purlin_diagnostics::json::{self, Json};

/// Time limit for everything here, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// 300 messages wait at `hog`. Twelve processes hold one large list. A table has 2,000 objects. Two
/// sockets are connected with each other. One process computes, one calls `tick/2` twenty times a
/// second. Lines on standard input are questions.
const PROGRAM: &str = r#"
-module(app).
-export([main/0, hog/0, tick/2, spin/1, holder/1, ticker/1, spinner/0]).
main() ->
    Hog = spawn(?MODULE, hog, []),
    register(hog, Hog),
    [Hog ! {order, N, lists:seq(1, 10)} || N <- lists:seq(1, 300)],
    ets:new(cache, [named_table, public]),
    [ets:insert(cache, {N, lists:seq(1, 20)}) || N <- lists:seq(1, 2000)],
    Large = lists:seq(1, 50000),
    Holders = [spawn(?MODULE, holder, [Large]) || _ <- lists:seq(1, 12)],
    [begin H ! {self(), ready}, receive {H, ready} -> ok end end || H <- Holders],
    {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    {ok, A} = gen_tcp:connect({127, 0, 0, 1}, Port, []),
    {ok, B} = gen_tcp:accept(L),
    spawn_link(?MODULE, spinner, []),
    spawn_link(?MODULE, ticker, [0]),
    io:format("ready~n"),
    questions({L, A, B, Large}).
questions(Kept) ->
    case io:get_line("") of
        "traced\n" ->
            {traced, T} = erlang:trace_info({?MODULE, tick, 2}, traced),
            {meta, M} = erlang:trace_info({?MODULE, tick, 2}, meta),
            io:format("~p~n", [case {T, M} of {false, false} -> undefined; Other -> Other end]);
        "alive\n" ->
            io:format("yes~n");
        _ ->
            halt(0)
    end,
    questions(Kept).
hog() ->
    put(answer, 42),
    wait({state, <<"of the hog">>}).
wait(State) ->
    receive never -> ok end,
    {State, ok}.
holder(Large) ->
    receive {From, ready} -> From ! {self(), ready} end,
    receive never -> length(Large) end.
spinner() ->
    spin(1000),
    spinner().
spin(0) -> 0;
spin(N) -> 1 + spin(N - 1).
ticker(N) ->
    tick(N, #{name => "tick"}),
    receive after 50 -> ok end,
    ticker(N + 1).
tick(N, _) -> N.
"#;

/// The observed program.
pub struct App {
    folder: PathBuf,
    /// Whether the folder is removed with it.
    owns: bool,
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl App {
    /// `None` if there is no OTP.
    pub fn start() -> Option<App> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("purlin-obs-{}-{number}", std::process::id()));
        fs::create_dir_all(folder.join("run")).expect("makes a scratch directory");
        let folder = fs::canonicalize(folder).expect("exists");
        let version = command(&folder, &["version"]).output().expect("runs");
        if !String::from_utf8_lossy(&version.stdout).contains("Erlang/OTP") {
            println!("skipped: no OTP");
            let _ = fs::remove_dir_all(&folder);
            return None;
        }
        fs::write(folder.join("app.erl"), PROGRAM).expect("writes a file");
        let compiled = command(&folder, &["erlc", "+debug_info", "app.erl"])
            .output()
            .expect("runs");
        assert!(compiled.status.success(), "{compiled:?}");
        Some(App::of(folder, true))
    }
    fn of(folder: PathBuf, owns: bool) -> App {
        let mut child = command(
            &folder,
            &["erl", "-noshell", "-pa", ".", "-s", "app", "main"],
        )
        .args(["+S", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
        let input = child.stdin.take().expect("is a pipe");
        let mut output = BufReader::new(child.stdout.take().expect("is a pipe"));
        let mut line = String::new();
        output.read_line(&mut line).expect("says something");
        assert_eq!(line, "ready\n");
        App {
            folder,
            owns,
            child,
            input,
            output,
        }
    }
    /// Starts another one in the same folder.
    pub fn another(&self) -> App {
        App::of(self.folder.clone(), false)
    }
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
    pub fn socket(&self) -> PathBuf {
        self.folder.join("run/purlin").join(self.pid().to_string())
    }
    pub fn folder(&self) -> PathBuf {
        self.folder.clone()
    }
    pub fn run(&self, args: &[&str]) -> Output {
        command(&self.folder, args).output().expect("runs")
    }
    pub fn kill(&mut self) {
        self.child.kill().expect("is killed");
        self.child.wait().expect("ends");
    }
    /// The program's answer to a question.
    pub fn call(&mut self, question: &str) -> String {
        let asked = format!("{question}\n");
        self.input.write_all(asked.as_bytes()).expect("writes");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("reads");
        line.trim_end().to_string()
    }
    /// Asks the program itself until `is` holds for the answer.
    pub fn until(&self, request: &str, is: impl Fn(&Json) -> bool) -> Json {
        let begun = Instant::now();
        loop {
            let answer = socket::ask(&self.socket(), request, PATIENCE).expect("answers");
            let answer = json::parse(&answer).expect("is JSON");
            if is(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{request}: {answer}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.owns {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

fn command(folder: &PathBuf, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_purlin"));
    command.args(args).current_dir(folder).stdin(Stdio::null());
    command.env("XDG_RUNTIME_DIR", folder.join("run"));
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

/// `purlin observe`, with the key of its page.
pub struct Observer {
    child: Child,
    pub address: String,
    pub port: u16,
    pub token: String,
    pub key: String,
}

impl Observer {
    pub fn start(app: &App) -> Observer {
        Observer::start_with(app, &[&app.pid().to_string(), "--no-open"])
    }
    pub fn start_with(app: &App, args: &[&str]) -> Observer {
        let mut o = Observer::unopened(app, args);
        let host = format!("Host: 127.0.0.1:{}\r\n", o.port);
        let (status, body) = http(
            o.port,
            "POST",
            &format!("/api/key?token={}", o.token),
            &host,
        );
        assert_eq!(status, 200, "{body}");
        o.key = text(&body, &["key"]).to_string();
        o
    }
    /// An observer whose address was not used.
    pub fn unopened(app: &App, args: &[&str]) -> Observer {
        let args: Vec<&str> = [&["observe"][..], args].concat();
        let mut child = command(&app.folder, &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("is a pipe");
        BufReader::new(out)
            .read_line(&mut line)
            .expect("says something");
        let address = line.trim_end().to_string();
        let rest = address
            .strip_prefix("http://127.0.0.1:")
            .unwrap_or_else(|| {
                let _ = child.kill();
                let mut why = String::new();
                let _ = child
                    .stderr
                    .as_mut()
                    .expect("is a pipe")
                    .read_to_string(&mut why);
                panic!("no address: {line} {why}")
            });
        let (port, token) = rest.split_once("/#").expect("a port and a token");
        Observer {
            child,
            port: port.parse().expect("a number"),
            token: token.to_string(),
            key: String::new(),
            address,
        }
    }
    fn ask(&self, method: &str, path: &str) -> Json {
        let (status, body) = self.asked(method, path);
        assert_eq!(status, 200, "{method} {path}: {body}");
        body
    }
    fn asked(&self, method: &str, path: &str) -> (u16, Json) {
        let headers = format!(
            "Host: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n",
            self.port, self.key
        );
        http(self.port, method, &format!("/api/{path}"), &headers)
    }
    pub fn get(&self, path: &str) -> Json {
        self.ask("GET", path)
    }
    pub fn post(&self, path: &str) -> Json {
        self.ask("POST", path)
    }
    /// Asks until `is` holds for the answer.
    pub fn until(&self, path: &str, is: impl Fn(&Json) -> bool) -> Json {
        let begun = Instant::now();
        loop {
            let (status, answer) = self.asked("GET", path);
            if status == 200 && is(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < PATIENCE, "{path}: {answer}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    /// Its status and standard error, once it has ended by itself.
    pub fn ended(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.child
            .stderr
            .as_mut()
            .expect("is a pipe")
            .read_to_string(&mut said)
            .expect("reads");
        (self.child.wait().expect("ends").code(), said)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a request. Returns the status, and the body or null if that is not JSON.
pub fn http(port: u16, method: &str, path: &str, headers: &str) -> (u16, Json) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("sets");
    // The request may be rejected before everything is written.
    let _ = stream.write_all(format!("{method} {path} HTTP/1.1\r\n{headers}\r\n").as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{method} {path}: {answer}"));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|s| s.parse().ok())
        .expect("a status");
    (status, json::parse(body).unwrap_or(Json::Null))
}

pub fn number(j: &Json, path: &[&str]) -> f64 {
    let value = path.iter().try_fold(j, |j, name| j.get(name));
    value
        .and_then(Json::number)
        .unwrap_or_else(|| panic!("no {path:?} in {j}"))
}

pub fn text<'a>(j: &'a Json, path: &[&str]) -> &'a str {
    let value = path.iter().try_fold(j, |j, name| j.get(name));
    value.and_then(Json::text).unwrap_or_default()
}
