//! `purlin build`: one executable, which runs with nothing beside it.
//!
//! Skipped with a message if there is no stock `erl`.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const PURLIN: &str = env!("CARGO_BIN_EXE_purlin");

fn is_there(program: &str) -> bool {
    let there = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|o| o.status.success());
    if !there {
        println!("skipped: there is no {program}");
    }
    there
}

/// A test's own directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("purlin-built-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("makes a directory");
        Scratch(dir)
    }
    fn file(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("has a parent")).expect("makes a directory");
        fs::write(path, text).expect("writes a file");
    }
    fn build(&self, args: &[&str]) -> Output {
        let output = Command::new(PURLIN)
            .arg("build")
            .args(args)
            .current_dir(&self.0)
            .output();
        output.expect("runs")
    }
    fn built(&self, from: &str, to: &str) -> PathBuf {
        let output = self.build(&[from, "-o", to]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{from}");
        self.0.join(to)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_the_compiler_complains_of_is_told() {
    if !is_there("erl") {
        return;
    }
    let s = Scratch::new("broken");
    s.file("broken.erl", "-module(broken).\nmain( -> ok.\n");
    let output = s.build(&["broken.erl", "-o", "broken"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("broken.erl:2"), "{text}");
    assert!(text.contains("syntax error"), "{text}");
    assert!(!s.0.join("broken").exists());
    for (name, bytes) in [("none.beam", ""), ("junk.beam", "FOR1 and nothing of it")] {
        s.file(name, bytes);
        let output = s.build(&[name, "-o", "broken"]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(
            text.contains(" is no compiled module, or damaged"),
            "{text}"
        );
        assert!(!text.contains("exception"), "{text}");
    }
}

/// Runs a program with an empty environment in a folder of its own.
fn run(program: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program)
        .args(args)
        .env_clear()
        .current_dir("/proc")
        .output()
        .expect("starts");
    essence(&output)
}

fn essence(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

const HELLO: &str = "-module(hello).
-export([main/1]).
main([\"fail\"]) -> error(told);
main([\"status\", N]) -> halt(list_to_integer(N));
main([\"wait\"]) -> io:format(\"ready~n\"), receive after infinity -> ok end;
main([\"root\"]) ->
    Root = code:root_dir(),
    {ok, Names} = file:list_dir(Root),
    {ok, F} = file:open(filename:join(Root, \"bin/purlin.boot\"), [read, binary, raw]),
    {ok, <<131, _/binary>>} = file:read(F, 10),
    {error, erofs} = file:open(filename:join(Root, \"bin/purlin.boot\"), [write, raw]),
    {error, enoent} = file:read_file(filename:join(Root, \"none\")),
    {error, enotdir} = file:list_dir(filename:join(Root, \"bin/purlin.boot\")),
    io:format(\"~s ~p ~p~n\", [Root, lists:sort(Names), filelib:is_dir(filename:join(Root, \"lib\"))]);
main([\"hash\"]) -> io:format(\"~p~n\", [byte_size(crypto:hash(sha256, <<>>))]);
main(Args) -> io:format(\"hello ~p~n\", [Args]).
";

#[test]
fn a_program_of_one_file() {
    if !is_there("erl") {
        return;
    }
    let scratch = Scratch::new("file");
    scratch.file("hello.erl", HELLO);
    let hello = scratch.built("hello.erl", "hello");
    let nothing = String::new;
    assert_eq!(
        run(&hello, &["a", "-b", "+c", "--", "d e"]),
        (
            Some(0),
            "hello [\"a\",\"-b\",\"+c\",\"--\",\"d e\"]\n".into(),
            nothing()
        )
    );
    assert_eq!(
        run(&hello, &["status", "7"]),
        (Some(7), nothing(), nothing())
    );
    let (status, _, said) = run(&hello, &["fail"]);
    assert!(status == Some(1) && said.contains("told"), "{said}");
    let (status, text, _) = run(&hello, &["root"]);
    assert_eq!(status, Some(0));
    assert!(
        text.starts_with("/proc/self/exe [\"bin\",\"erts-") && text.ends_with(" true\n"),
        "{text}"
    );
    let (_, text, _) = run(&hello, &["--purlin-version"]);
    let made = format!("hello 0 (purlin {}, Erlang/OTP ", env!("CARGO_PKG_VERSION"));
    assert!(text.starts_with(&made), "{text}");
    // The same input gives the same bytes.
    let again = scratch.built("hello.erl", "again");
    assert!(fs::read(&hello).expect("is read") == fs::read(&again).expect("is read"));
}

/// A signal ends it as it ends a node. An https server and client, of which the client checks the
/// certificate. The library of `crypto` opens another library itself, which is in the executable,
/// too.
#[test]
fn a_server_and_a_client_of_tls() {
    if !is_there("erl") {
        return;
    }
    let s = Scratch::new("tls");
    s.file("https.erl", HTTPS);
    let program = s.built("https.erl", "https");
    let expected = (Some(0), "secret\n".to_string(), String::new());
    assert_eq!(run(&program, &[]), expected);
}

const HTTPS: &str = r#"-module(https).
-export([main/1]).
main(_) ->
    logger:set_primary_config(level, none),
    {ok, _} = application:ensure_all_started(ssl),
    {ok, _} = application:ensure_all_started(inets),
    How = [{key, {rsa, 2048, 65537}}, {digest, sha256}],
    Names = #{root => How, intermediates => [], peer => How},
    #{server_config := Server, client_config := Client} =
        public_key:pkix_test_data(#{server_chain => Names, client_chain => Names}),
    {ok, Listen} = ssl:listen(0, [{reuseaddr, true}, {active, false}, {ip, {127, 0, 0, 1}} | Server]),
    {ok, {_, Port}} = ssl:sockname(Listen),
    spawn_link(fun() -> serve(Listen) end),
    Url = "https://localhost:" ++ integer_to_list(Port) ++ "/",
    Checks = [{verify, verify_peer}, {server_name_indication, disable} | Client],
    {ok, {{_, 200, _}, _, Body}} = httpc:request(get, {Url, []}, [{ssl, Checks}], []),
    {error, _} = httpc:request(get, {Url, []}, [{ssl, [{verify, verify_peer}, {cacerts, []}]}], []),
    <<_:32/binary>> = crypto:hash(sha256, Body),
    io:format("~ts~n", [Body]).
serve(Listen) ->
    {ok, S} = ssl:transport_accept(Listen),
    case ssl:handshake(S, 5000) of
        {ok, T} ->
            case ssl:recv(T, 0, 5000) of
                {ok, _} -> ok = ssl:send(T, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nsecret");
                {error, _} -> refused
            end,
            ssl:close(T);
        {error, _} -> ok
    end,
    serve(Listen).
"#;

#[test]
fn signals() {
    if !is_there("erl") {
        return;
    }
    let scratch = Scratch::new("signals");
    scratch.file("hello.erl", HELLO);
    let hello = scratch.built("hello.erl", "hello");
    let mut child = Command::new(&hello)
        .arg("wait")
        .env_clear()
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut out = std::io::BufReader::new(child.stdout.take().expect("is a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).expect("is read");
    assert_eq!(line, "ready\n");
    // SAFETY: a child of this process that has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let end = Instant::now() + Duration::from_secs(30);
    let status = loop {
        if let Some(status) = child.try_wait().expect("is waited for") {
            break status;
        }
        assert!(Instant::now() < end, "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(0));
}

/// In a root that has a C library and nothing else: no OTP, no shell, no `/proc`, no writable
/// folder.
#[test]
fn in_an_empty_root() {
    if !is_there("erl") || !is_there("chroot") || !is_there("ldd") {
        return;
    }
    // SAFETY: takes no arguments.
    if unsafe { libc::geteuid() } != 0 {
        println!("skipped: only root may change the root");
        return;
    }
    let scratch = Scratch::new("root");
    scratch.file("hello.erl", HELLO);
    fs::create_dir(scratch.0.join("root")).expect("is made");
    scratch.built("hello.erl", "root/hello");
    let root = scratch.0.join("root");
    let libraries = Command::new("ldd")
        .arg(root.join("hello"))
        .output()
        .expect("runs");
    for word in String::from_utf8_lossy(&libraries.stdout).split_ascii_whitespace() {
        if let Some(inside) = word.strip_prefix('/') {
            let to = root.join(inside);
            fs::create_dir_all(to.parent().expect("has a parent")).expect("makes a directory");
            fs::copy(word, to).expect("copies a library");
        }
    }
    let chroot = Command::new("sh")
        .args(["-c", "command -v chroot"])
        .output()
        .expect("runs");
    let chroot = String::from_utf8_lossy(&chroot.stdout).trim().to_string();
    let output = Command::new(chroot)
        .arg(&root)
        .args(["/hello", "here"])
        .env_clear()
        .output()
        .expect("runs");
    let (status, text, said) = essence(&output);
    assert_eq!(
        (status, text.as_str()),
        (Some(0), "hello [\"here\"]\n"),
        "{said}"
    );
}

#[test]
fn escripts_and_elixir() {
    if !is_there("erl") {
        return;
    }
    let scratch = Scratch::new("scripts");
    scratch.file(
        "tool",
        "#!/usr/bin/env escript\n%%! +sbwt none\nmain([\"fail\"]) -> error(told);\nmain(A) -> io:format(\"~p~n\", [A]).\n",
    );
    let tool = scratch.built("tool", "tool_built");
    assert_eq!(
        run(&tool, &["x"]),
        (Some(0), "[\"x\"]\n".into(), String::new())
    );
    assert_eq!(run(&tool, &["fail"]).0, Some(127));
    // The compiler names a script differently each time.
    scratch.file(
        "names",
        "#!/usr/bin/env escript\nmain(_) -> io:format(\"~p ~s ~p~n\", [?MODULE, ?MODULE_STRING, (fun ?MODULE:main/1) =:= fun ?MODULE:main/1]).\n",
    );
    let names = scratch.built("names", "names_1");
    let said = "names__escript names__escript true\n";
    assert_eq!(run(&names, &[]), (Some(0), said.into(), String::new()));
    let again = scratch.built("names", "names_2");
    assert!(fs::read(names).expect("is read") == fs::read(again).expect("is read"));
    scratch.file(
        "own",
        "#!/usr/bin/env escript\n-module(mine).\n-export([main/1]).\nmain(_) -> io:format(\"~p~n\", [?MODULE]).\n",
    );
    let own = scratch.built("own", "own_built");
    assert_eq!(run(&own, &[]), (Some(0), "mine\n".into(), String::new()));
    if !is_there("elixir") {
        return;
    }
    scratch.file(
        "a.ex",
        "defmodule A do\n  def main(args), do: IO.puts(\"héllo #{inspect(args)} #{inspect(System.argv())}\")\nend\n",
    );
    let a = scratch.built("a.ex", "a");
    assert_eq!(
        run(&a, &["u"]),
        (Some(0), "héllo [\"u\"] [\"u\"]\n".into(), String::new())
    );
    scratch.file(
        "s.exs",
        "IO.inspect({:script, System.argv(), Enum.sum(1..4)})\nSystem.halt(3)\n",
    );
    let s = scratch.built("s.exs", "s");
    assert_eq!(
        run(&s, &["--x", "y"]),
        (
            Some(3),
            "{:script, [\"--x\", \"y\"], 10}\n".into(),
            String::new()
        )
    );
}

/// A release with runtime configuration, files in `priv`, and a supervisor; then the same without
/// the emulator, which leaves the applications of OTP to the installation.
#[test]
fn a_mix_project() {
    if !is_there("elixir") {
        return;
    }
    let scratch = Scratch::new("mix");
    scratch.file(
        "p/lib/p.ex",
        "defmodule P do\n  use Application\n  def start(_, _) do\n    IO.puts([File.read!(Application.app_dir(:p, \"priv/words\")), Application.get_env(:p, :told)])\n    spawn(fn -> Process.sleep(1000); System.stop(4) end)\n    Supervisor.start_link([], strategy: :one_for_one)\n  end\nend\n",
    );
    scratch.file("p/priv/words", "words ");
    scratch.file("p/config/config.exs", "import Config\n");
    scratch.file(
        "p/config/runtime.exs",
        "import Config\nconfig :p, told: System.get_env(\"TOLD\", \"nothing\")\n",
    );
    let built = scratch.0.join("p_built");
    for more in ["", ", releases: [p: [include_erts: false]]"] {
        let project = format!(
            "defmodule P.MixProject do\n  use Mix.Project\n  def project, do: [app: :p, version: \"1.2.3\", elixir: \"~> 1.14\"{more}]\n  def application, do: [mod: {{P, []}}, extra_applications: [:logger]]\nend\n"
        );
        scratch.file("p/mix.exs", &project);
        let output = scratch.build(&["p", "-o", "p_built"]);
        assert!(output.status.success(), "{output:?}");
        let output = Command::new(&built)
            .env_clear()
            .env("TOLD", "something")
            .current_dir("/proc")
            .output()
            .expect("starts");
        assert_eq!(
            essence(&output),
            (Some(4), "words something\n".into(), String::new()),
            "{more}"
        );
        fs::remove_dir_all(scratch.0.join("p/_build")).expect("is removed");
    }
    assert!(
        run(&built, &["--purlin-version"])
            .1
            .starts_with("p 1.2.3 (")
    );
}

#[test]
fn what_cannot_be_built_is_told() {
    let scratch = Scratch::new("wrong");
    scratch.file("a.txt", "");
    scratch.file("empty/x", "");
    for (args, status, said) in [
        (&["--x"][..], 2, "purlin: build has no option '--x'"),
        (&[], 2, "purlin: build needs a file or a project: "),
        (&["a.erl"], 2, "purlin: build needs to know what to make: "),
        (
            &["a.erl", "b.erl", "-o", "x"],
            2,
            "purlin: build takes one file or project: ",
        ),
        (
            &["none.erl", "-o", "x"],
            66,
            "purlin: cannot read none.erl: No such file or directory",
        ),
        (&["a.txt", "-o", "x"], 2, "purlin: cannot tell what "),
        (&["empty", "-o", "x"], 2, "purlin: "),
    ] {
        let (code, out, error) = essence(&scratch.build(args));
        assert_eq!(
            (code, out.as_str()),
            (Some(status), ""),
            "{args:?}: {error}"
        );
        assert!(error.starts_with(said), "{args:?}: {error}");
        assert!(!scratch.0.join("x").exists());
    }
    // An executable with damaged contents says so and ends.
    if is_there("erl") {
        scratch.file("hello.erl", HELLO);
        let hello = scratch.built("hello.erl", "hello");
        let mut bytes = fs::read(&hello).expect("is read");
        let at = bytes.len() - 40;
        bytes[at] ^= 0xff;
        fs::write(scratch.0.join("damaged"), &bytes).expect("is written");
        fs::set_permissions(
            scratch.0.join("damaged"),
            fs::metadata(&hello).expect("is there").permissions(),
        )
        .expect("is made executable");
        let (code, out, error) = run(&scratch.0.join("damaged"), &[]);
        assert!(
            code == Some(66) && out.is_empty() && error.contains("damaged"),
            "{code:?} {error}"
        );
    }
}
