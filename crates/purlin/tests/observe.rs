//! `purlin observe`: the answers that its page gets about a program whose processes, tables and
//! calls are known, and its messages on invalid input.
//!
//! Skipped with a message if there is no OTP. `observe_page.rs` tests the page in a browser.

mod observed;

use observed::{App, Observer, http, number, text};
use purlin_diagnostics::json::{self, Json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[test]
fn each_view_tells_of_the_program() {
    let Some(app) = App::start() else { return };
    let observer = Observer::start(&app);
    let get = |path: &str| observer.get(path);
    // On a busy machine a process may be silent for a while.
    let whole = |path: &str| observer.until(path, |f| number(f, &["silent"]) == 0.0);

    let all = get("overview");
    assert_eq!(text(&all, &["schema"]), "purlin-observe/1");
    assert_eq!(number(&all, &["pid"]), f64::from(app.pid()));
    assert!(number(&all, &["processes", "count"]) > 20.0, "{all}");
    assert!(number(&all, &["memory", "allocated_bytes"]) > 1e6, "{all}");
    assert!(number(&all, &["again_ms"]) >= 2000.0, "{all}");
    let schedulers = all.get("schedulers").expect("has them").list();
    assert_eq!(number(&schedulers[0], &["number"]), 1.0);

    let found = whole("processes?sort=messages&limit=2");
    let rows = found.get("rows").expect("has them").list();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (text(&rows[0], &["name"]), number(&rows[0], &["messages"])),
        ("hog", 300.0)
    );
    assert_eq!(text(&rows[0], &["initial"]), "app:hog/0");
    assert_eq!(text(&rows[0], &["status"]), "waiting");
    let hog = text(&rows[0], &["pid"]).to_string();
    let found = whole("processes?filter=APP%3Ahog&sort=pid&order=asc");
    assert_eq!(number(&found, &["found"]), 1.0, "{found}");
    let all = whole("processes?sort=memory&limit=200");
    let sizes: Vec<f64> = all
        .get("rows")
        .expect("has them")
        .list()
        .iter()
        .map(|r| number(r, &["memory_bytes"]))
        .collect();
    assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
    let second = get("processes?sort=memory&limit=1&offset=1");
    assert_eq!(
        number(&second, &["found"]),
        number(&second, &["asked"]) - number(&second, &["silent"])
    );

    let escaped = hog.replace('<', "%3C").replace('>', "%3E");
    let one = observer.until(&format!("process?pid={escaped}"), |_| true);
    assert_eq!(text(&one, &["pid"]), hog);
    assert_eq!(number(&one, &["message_count"]), 300.0);
    let messages = one.get("messages").expect("has them").list();
    assert_eq!(messages.len(), 20);
    assert_eq!(messages[0].text(), Some("{order,1,[1,2,3,4,5,6,7,8,9,10]}"));
    let stack = one.get("stack").expect("has one").list();
    assert_eq!(text(&stack[0], &["function"]), "app:wait/1");
    let holds = stack[0].get("slots").expect("has them").list();
    assert_eq!(holds[0].text(), Some("{state,<<\"of the hog\">>}"), "{one}");
    assert!(number(&stack[0], &["line"]) > 0.0 && text(&stack[0], &["file"]).ends_with("app.erl"));
    let entries = one.get("dictionary").expect("has one").list();
    assert_eq!(text(&entries[0], &["value"]), "42");
    let gone = get("process?pid=%3C0.32767.8191%3E");
    assert_eq!(gone.get("alive"), Some(&Json::Bool(false)));

    let tables = get("tables?filter=cache");
    let rows = tables.get("rows").expect("has them").list();
    assert_eq!(
        (text(&rows[0], &["name"]), number(&rows[0], &["objects"])),
        ("cache", 2000.0)
    );
    let ports = get("ports?filter=tcp_inet&sort=name");
    let rows = ports.get("rows").expect("has them").list();
    assert!(
        rows.iter()
            .any(|r| text(r, &["local"]).starts_with("127.0.0.1:")
                && text(r, &["peer"]).starts_with("127.0.0.1:")),
        "{ports}"
    );
    // The list of fifty thousand numbers.
    observer.until("regions", |regions| {
        let rows = regions.get("rows").expect("has them").list();
        let shared =
            |r: &Json| number(r, &["processes"]) >= 12.0 && number(r, &["bytes"]) >= 800_000.0;
        rows.iter().any(shared)
    });

    let copies = get("explain?topic=copies&top=5");
    assert_eq!(text(&copies, &["topic"]), "copies");
    assert!(
        !copies.get("causes").expect("has them").list().is_empty(),
        "{copies}"
    );
    for kind in ["allocation", "copies"] {
        let flame = get(&format!("flame?kind={kind}"));
        assert!(number(&flame, &["total"]) > 0.0, "{flame}");
        assert!(
            !flame.get("stacks").expect("has them").list().is_empty(),
            "{flame}"
        );
    }
}

#[test]
fn time_is_sampled_while_somebody_looks() {
    let Some(app) = App::start() else { return };
    let observer = Observer::start(&app);
    // The program computes all the time, mostly in one function, which is sampled sooner or later.
    let flame = observer.until("flame?kind=time", |f| number(f, &["total"]) > 100_000.0);
    let functions = flame.get("functions").expect("has them").list();
    let name = |i: &Json| {
        text(
            &functions[i.number().expect("an index") as usize],
            &["function"],
        )
        .to_string()
    };
    let mut spins = 0.0;
    for stack in flame.get("stacks").expect("has them").list() {
        let [weight, frames @ ..] = stack.list() else {
            panic!("an empty row in {flame}");
        };
        if frames.iter().any(|f| name(f).starts_with("app:spin/")) {
            spins += weight.number().expect("a weight");
        }
    }
    assert!(spins > number(&flame, &["total"]) / 4.0, "{flame}");
}

#[test]
fn a_function_is_traced_so_many_times() {
    let Some(mut app) = App::start() else { return };
    let observer = Observer::start(&app);
    let none = observer.get("trace");
    assert_eq!(none.get("on"), Some(&Json::Bool(false)));
    let begun = observer.post("trace-begin?function=app%3Atick%2F2&calls=5&seconds=60");
    assert_eq!(text(&begun, &["function"]), "app:tick/2");
    let over = observer.until("trace", |t| t.get("set") == Some(&Json::Bool(false)));
    assert_eq!(over.get("on"), Some(&Json::Bool(false)));
    assert_eq!(number(&over, &["count"]), 5.0);
    for (i, call) in over
        .get("calls")
        .expect("has them")
        .list()
        .iter()
        .enumerate()
    {
        assert_eq!(text(call, &["function"]), "app:tick/2");
        assert_eq!(
            text(call, &["caller", "function"]),
            "app:ticker/1",
            "{call}"
        );
        let arguments = call.get("arguments").expect("has them").list();
        let before =
            over.get("calls").expect("has them").list()[i.saturating_sub(1)].get("arguments");
        let n = |a: &[Json]| {
            a[0].text()
                .and_then(|t| t.parse::<i64>().ok())
                .expect("a number")
        };
        let first = n(before.expect("has them").list());
        assert_eq!(n(arguments), first + i64::from(i > 0));
        assert_eq!(arguments[1].text(), Some("#{name => \"tick\"}"));
    }
    // Ended by a request, by its time limit, and because nobody asks any more.
    let on = observer.post("trace-begin?function=app%3Atick&calls=1000&seconds=60");
    assert_eq!(on.get("on"), Some(&Json::Bool(true)));
    // The program does not see any of it.
    assert_eq!(app.call("traced"), "undefined");
    let off = observer.post("trace-end");
    assert_eq!(
        (off.get("on"), off.get("set")),
        (Some(&Json::Bool(false)), Some(&Json::Bool(false)))
    );
    observer.post("trace-begin?function=app%3Atick%2F2&calls=1000&seconds=1");
    observer.until("trace", |t| t.get("set") == Some(&Json::Bool(false)));
    observer.post("trace-begin?function=app%3Atick%2F2&calls=1000&seconds=60");
    drop(observer);
    std::thread::sleep(Duration::from_secs(11));
    app.until("observe trace", |t| {
        assert_eq!(t.get("on"), Some(&Json::Bool(false)));
        t.get("set") == Some(&Json::Bool(false))
    });
    assert_eq!(app.call("alive"), "yes");
}

#[test]
fn the_end_of_the_program_is_told() {
    let Some(mut app) = App::start() else { return };
    let mut observer = Observer::start(&app);
    let key = observer.key.clone();
    let port = observer.port;
    let waits = std::thread::spawn(move || {
        let headers = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n");
        // Requests are answered meanwhile.
        loop {
            let (status, body) = http(port, "GET", "/api/end", &headers);
            if status != 200 {
                return (status, body);
            }
        }
    });
    app.kill();
    let (status, body) = waits.join().expect("ends");
    assert_eq!(status, 410);
    let why = format!("process {} has ended", app.pid());
    assert_eq!(text(&body, &["error"]), why);
    let (status, said) = observer.ended();
    assert_eq!(status, Some(0));
    assert_eq!(said, format!("purlin: {why}\n"));
}

#[test]
fn whoever_has_no_key_gets_nothing() {
    let Some(mut app) = App::start() else { return };
    let observer = Observer::start(&app);
    let port = observer.port;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let key = format!("Authorization: Bearer {}\r\n", observer.key);
    let wrong_key = format!("{host}Authorization: Bearer {}0\r\n", observer.key);
    let own = format!("{host}{key}");
    let other_origin = format!("{own}Origin: http://evil.example\r\n");
    let own_origin = format!("{own}Origin: http://127.0.0.1:{port}\r\n");
    let other_host = format!("Host: evil.example:{port}\r\n{key}");
    let two_hosts = format!("Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n{key}");
    let body = format!("{own}Content-Length: 2\r\n");
    let used = format!("/api/key?token={}", observer.token);
    let long = format!("/api/{}", "x".repeat(20_000));
    for (method, path, headers, status) in [
        ("GET", "/api/overview", &own, 200),
        ("GET", "/api/overview", &own_origin, 200),
        ("GET", "/", &host, 200),
        ("GET", "/api/overview", &host, 401),
        ("GET", "/api/overview", &wrong_key, 401),
        ("GET", "/api/overview", &other_host, 403),
        ("GET", "/api/overview", &two_hosts, 403),
        ("GET", "/", &other_host, 403),
        ("GET", "/api/overview", &other_origin, 403),
        ("GET", "/api/overview", &String::new(), 403),
        ("POST", &*used, &own, 403),
        ("POST", "/api/key?token=", &own, 403),
        ("GET", &*used, &own, 405),
        ("POST", "/api/overview", &own, 405),
        ("GET", "/api/trace-begin?function=app:tick/2", &own, 405),
        ("DELETE", "/", &own, 405),
        ("GET", "/api/none", &own, 404),
        ("GET", "/../etc/passwd", &own, 404),
        ("GET", "/api/overview?x=1", &own, 400),
        ("GET", "/api/processes?sort=beauty", &own, 400),
        ("GET", "/api/processes?limit=many", &own, 400),
        ("GET", "/api/processes?filter=%zz", &own, 400),
        ("GET", "/api/process?pid=1", &own, 400),
        ("GET", "/api/explain?topic=none", &own, 400),
        ("GET", "/api/explain?topic=observe&top=trace-end", &own, 400),
        ("GET", "/api/explain", &own, 400),
        ("POST", "/api/trace-begin?function=not_there:f/1", &own, 400),
        (
            "POST",
            "/api/trace-begin?function=app:tick/2&calls=1001",
            &own,
            400,
        ),
        (
            "POST",
            "/api/trace-begin?function=app:tick/2&seconds=61",
            &own,
            400,
        ),
        ("POST", "/api/trace-begin?function=_:_", &own, 400),
        ("GET", "/api/overview", &body, 413),
        ("GET", &*long, &own, 431),
    ] {
        let (found, body) = http(port, method, path, headers);
        assert_eq!(found, status, "{method} {path} {headers}: {body}");
        if found >= 400 {
            assert!(
                !text(&body, &["error"]).is_empty(),
                "{method} {path}: {body}"
            );
        }
    }
    // Idle connections wait, and others are answered meanwhile.
    let silent: Vec<TcpStream> = (0..20)
        .filter_map(|_| TcpStream::connect(("127.0.0.1", port)).ok())
        .collect();
    assert!(number(&observer.get("overview"), &["pid"]) > 0.0);
    drop(silent);
    for bytes in [
        &b"\x16\x03\x01\0\xff\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        stream.write_all(bytes).expect("writes");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("reads");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    // The page may load nothing from elsewhere.
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream
        .write_all(format!("GET / HTTP/1.1\r\n{host}\r\n").as_bytes())
        .expect("writes");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("reads");
    assert!(
        page.contains("Content-Security-Policy: default-src 'none'; script-src 'nonce-"),
        "{page}"
    );
    assert!(
        !page.contains("https://") && !page.contains("{nonce}") && !page.contains(&observer.key)
    );
    assert_eq!(app.call("alive"), "yes");
}

#[test]
fn requests_on_the_socket_are_bounded() {
    let Some(mut app) = App::start() else { return };
    let ask = |request: &str| {
        let mut stream = UnixStream::connect(app.socket()).expect("connects");
        let _ = stream.write_all(format!("{request}\n").as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        json::parse(&answer).unwrap_or_else(|e| panic!("{request}: {e}: {answer}"))
    };
    for (request, why) in [
        ("observe", "there is no view ''"),
        ("observe halt", "there is no view 'halt'"),
        ("observe overview now", "'now' is not understood"),
        (
            "observe processes limit=1 limit=2",
            "'limit' is not understood",
        ),
        (
            "observe processes order=up",
            "order is asc or desc, not 'up'",
        ),
        ("observe flame", "flame needs a kind"),
        ("observe trace-begin", "there is no function ''"),
    ] {
        let answer = ask(request);
        assert!(
            text(&answer, &["error"]).starts_with(why),
            "{request}: {answer}"
        );
    }
    let many = ask("observe processes limit=1000000 offset=0");
    assert!(many.get("rows").expect("has them").list().len() <= 200);
    let none = ask("observe processes offset=18446744073709551615");
    assert!(none.get("rows").expect("has them").list().is_empty());
    let pids = vec!["<0.1.0>"; 300].join(",").replace('<', "%3c");
    ask(&format!("observe processes also={pids}"));
    assert_eq!(app.call("alive"), "yes");
}

#[test]
fn bad_input_is_one_line_and_a_status() {
    let Some(app) = App::start() else { return };
    let pid = app.pid();
    let said = |args: &[&str]| {
        let args: Vec<&str> = [&["observe"][..], args].concat();
        let output = app.run(&args);
        assert!(output.stdout.is_empty(), "{output:?}");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert_eq!(
        said(&["x"]),
        (
            Some(2),
            "purlin: 'x' is no process number: purlin observe [PID] [--port N] [--no-open] [--otlp URL] [PURLIN-0005]\n"
                .into()
        )
    );
    let own = std::process::id().to_string();
    let (status, line) = said(&[&own]);
    assert_eq!(status, Some(68));
    assert!(line.contains("is not a Purlin of this user"), "{line}");
    let (status, line) = said(&["4194000"]);
    assert_eq!(
        (status, line.as_str()),
        (
            Some(68),
            "purlin: there is no process 4194000 [PURLIN-0060]\n"
        )
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
    let port = taken.local_addr().expect("has one").port().to_string();
    let (status, line) = said(&[&pid.to_string(), "--no-open", "--port", &port]);
    assert_eq!(status, Some(71));
    assert!(
        line.starts_with(&format!("purlin: cannot listen on port {port}: ")),
        "{line}"
    );

    // Of several, all are listed. This user may have more than those started here.
    let other = app.another();
    let (status, lines) = said(&["--no-open"]);
    assert_eq!(status, Some(2));
    let lines: Vec<&str> = lines.lines().collect();
    assert!(lines.len() >= 3, "{lines:?}");
    assert!(
        lines[0].starts_with("purlin: there are several; name one: "),
        "{lines:?}"
    );
    for n in [pid, other.pid()] {
        assert!(
            lines
                .iter()
                .any(|l| l.trim_start().starts_with(&format!("{n}  "))),
            "{lines:?}"
        );
    }
    drop(other);
}
