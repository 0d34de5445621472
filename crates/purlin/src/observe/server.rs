//! Answers the browser: the page, and its requests.
//!
//! | | request | answer |
//! | | --- | --- |
//! | | `GET /` | the page |
//! | | `POST /api/key?token=TOKEN` | `{"key"}`, once |
//! | | `GET /api/VIEW?KEY=VALUE…` | the emulator's answer; `again=1` accepts a recent one |
//! | | `GET /api/explain?topic=TOPIC&top=N` | the answer to `purlin explain` |
//! | | `POST /api/trace-begin?…`, `POST /api/trace-end` | the same, for requests with effects |
//! | | `GET /api/end` | arrives when the emulator has exited, or after a while |
//!
//! Only connections of [permitted users](peer) are answered. All requests but the first two need
//! the key. Errors are `{"error"}` with a status of 4xx; 410 means that the emulator has exited.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use purlin_diagnostics::http::{self, Answer, Request};
use purlin_diagnostics::json::Json;

use super::guard::{Guard, secret};
use super::peer;
use super::target::{NoAnswer, Target, Wanted};

/// Maximum number of connections. Each page has one that waits for the end.
const CONNECTIONS: usize = 64;
/// Maximum number of bytes that are read and discarded after a rejected request.
const UNWANTED: usize = 1 << 20;
/// Time limit for reading from or writing to a connection.
const IO_TIME_LIMIT: Duration = Duration::from_secs(10);
/// Maximum time that a page's request for the end waits.
const END_TIME_LIMIT: Duration = Duration::from_secs(20);
/// Interval of checks whether the emulator still exists.
const LOOK: Duration = Duration::from_millis(500);
/// Time for pages to learn of the end.
const FAREWELL: Duration = Duration::from_secs(3);

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Views that only read, and requests with effects.
const READ: &[&str] = &[
    "overview",
    "processes",
    "process",
    "regions",
    "tables",
    "ports",
    "flame",
    "trace",
];
const CHANGE: &[&str] = &["trace-begin", "trace-end"];

pub struct Server {
    target: Target,
    guard: Guard,
    connections: AtomicUsize,
    /// Whether the emulator has exited.
    ended: Mutex<bool>,
    changed: Condvar,
}

/// A connection that counts towards the maximum.
struct Counted(Arc<Server>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// A server for that emulator; port 0 selects a free one.
    pub fn new(target: Target, port: u16) -> io::Result<(Arc<Server>, TcpListener)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let guard = Guard::new(listener.local_addr()?.port())?;
        let server = Server {
            target,
            guard,
            connections: AtomicUsize::new(0),
            ended: Mutex::new(false),
            changed: Condvar::new(),
        };
        Ok((Arc::new(server), listener))
    }

    /// The address that opens the page, once.
    pub fn address(&self, listener: &TcpListener) -> io::Result<String> {
        let port = listener.local_addr()?.port();
        let token = self.guard.token().unwrap_or_default();
        Ok(format!("http://127.0.0.1:{port}/#{token}"))
    }

    /// Answers on threads of its own until the emulator exits, and then tells the pages.
    pub fn serve(self: &Arc<Server>, listener: TcpListener) -> io::Result<()> {
        let own = self.clone();
        std::thread::Builder::new()
            .name("accept".into())
            .spawn(move || own.accept(&listener))?;
        while self.target.is_there() {
            std::thread::sleep(LOOK);
        }
        *self.ended.lock().unwrap_or_else(|e| e.into_inner()) = true;
        self.changed.notify_all();
        // Responses in progress are completed; new pages are not worth a wait.
        let mut left = FAREWELL;
        while self.connections.load(Ordering::Relaxed) > 0 && !left.is_zero() {
            let step = Duration::from_millis(50);
            std::thread::sleep(step);
            left = left.saturating_sub(step);
        }
        Ok(())
    }

    fn accept(self: &Arc<Server>, listener: &TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // There may be no descriptor left now, and one later.
                std::thread::sleep(Duration::from_millis(200));
                continue;
            };
            // Other users of the machine do not occupy a connection.
            if !peer::is_admitted(&stream) {
                continue;
            }
            let before = self.connections.fetch_add(1, Ordering::Relaxed);
            let counted = Counted(self.clone());
            let full = before >= CONNECTIONS;
            // A connection for which there is no thread is closed.
            let _ = std::thread::Builder::new()
                .name("page".into())
                .stack_size(1 << 20)
                .spawn(move || {
                    let _ = counted.0.connection(stream, full);
                });
        }
    }

    fn connection(&self, mut stream: TcpStream, full: bool) -> io::Result<()> {
        stream.set_read_timeout(Some(IO_TIME_LIMIT))?;
        stream.set_write_timeout(Some(IO_TIME_LIMIT))?;
        if full {
            return wrong(503, "there are too many connections").write(&mut stream);
        }
        match http::read(&mut stream) {
            Ok(request) => self.answer(&request).write(&mut stream),
            Err(Some((status, why))) => {
                wrong(status, why).write(&mut stream)?;
                part_with(&mut stream)
            }
            Err(None) => Ok(()),
        }
    }

    fn answer(&self, r: &Request) -> Answer {
        if !self.guard.is_own_host(r.header("host")) {
            return wrong(403, "the address of this page is 127.0.0.1");
        }
        if !self.guard.is_own_origin(r.header("origin")) {
            return wrong(403, "another page may not ask here");
        }
        let get = r.method == "GET";
        let Some(name) = r.path.strip_prefix("/api/") else {
            return match &*r.path {
                "/" if get => page(),
                "/" => wrong(405, "the page is read by GET"),
                _ => wrong(404, "there is no such page"),
            };
        };
        if name == "key" {
            if r.method != "POST" {
                return wrong(405, "a key is asked for by POST");
            }
            let token = r.query.strip_prefix("token=").unwrap_or_default();
            return match self.guard.exchange(token) {
                Some(key) => Answer::json(200, Json::object([("key", key.into())]).to_string()),
                None => wrong(403, "this address was used before, or is none"),
            };
        }
        if !self.guard.admits(r.header("authorization")) {
            return wrong(401, "the key is missing or wrong");
        }
        let change = CHANGE.contains(&name);
        if !change && !READ.contains(&name) && name != "explain" && name != "end" {
            return wrong(404, "there is no such view");
        }
        if change != (r.method == "POST") || !change && !get {
            return wrong(405, "views are read by GET and changed by POST");
        }
        if name == "end" {
            return self.end();
        }
        let mut wanted = Wanted::Now;
        let mut words = Vec::new();
        for word in r.query.split('&').filter(|w| !w.is_empty()) {
            match word {
                "again=1" => wanted = Wanted::Soon,
                word => words.push(word),
            }
        }
        let request = match name {
            "explain" => {
                let topic = words.iter().find_map(|w| w.strip_prefix("topic="));
                let top = words.iter().find(|w| w.starts_with("top="));
                let topic = topic.unwrap_or_default();
                if topic.starts_with("observe") {
                    return wrong(400, "there is no such topic");
                }
                [topic, top.copied().unwrap_or_default()].join(" ")
            }
            view => format!("observe {view} {}", words.join(" ")),
        };
        match self.target.ask(request.trim(), wanted) {
            Ok(answer) => Answer::json(200, answer.to_string()),
            Err(NoAnswer::Refused(why)) => wrong(400, &why),
            Err(NoAnswer::Silent(why)) => wrong(502, why.trim_start_matches("purlin: ")),
            Err(NoAnswer::Ended) => self.farewell(),
        }
    }

    /// Waits a limited time for the emulator's exit. If the page is gone, this shows when the
    /// response is written.
    fn end(&self) -> Answer {
        let begun = Instant::now();
        let mut ended = self.ended.lock().unwrap_or_else(|e| e.into_inner());
        while !*ended && begun.elapsed() < END_TIME_LIMIT {
            let left = END_TIME_LIMIT.saturating_sub(begun.elapsed());
            ended = match self.changed.wait_timeout(ended, left) {
                Ok((ended, _)) => ended,
                Err(e) => e.into_inner().0,
            };
        }
        match *ended {
            true => self.farewell(),
            false => Answer::json(200, Json::object([("ended", false.into())]).to_string()),
        }
    }

    fn farewell(&self) -> Answer {
        wrong(410, &format!("process {} has ended", self.target.pid))
    }
}

/// Closes a connection on which unwanted input may follow. If it were closed at once, the other end
/// might not get to read the response.
fn part_with(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut part = [0; 4096];
    let mut left = UNWANTED;
    while left > 0 {
        match stream.read(&mut part)? {
            0 => break,
            n => left = left.saturating_sub(n),
        }
    }
    Ok(())
}

fn wrong(status: u16, why: &str) -> Answer {
    Answer::json(status, Json::object([("error", why.into())]).to_string())
}

/// The page, which loads nothing from outside Purlin's executable.
fn page() -> Answer {
    let Ok(nonce) = secret() else {
        return wrong(502, "there are no random numbers");
    };
    let body = PAGE
        .replace("{nonce}", &nonce)
        .replace("{style}", STYLE)
        .replace("{script}", SCRIPT);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Answer {
        status: 200,
        kind: "text/html",
        body,
        policy: Some(policy),
    }
}
