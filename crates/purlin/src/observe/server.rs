//! Answers the browser: the page, and what the page asks for.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /` | the page |
//! | `POST /api/key?token=TOKEN` | `{"key"}`, once |
//! | `GET /api/VIEW?KEY=VALUE…` | what the emulator tells; with `again=1` what it told a little while ago will do |
//! | `GET /api/explain?topic=TOPIC&top=N` | what `purlin explain` is told |
//! | `POST /api/trace-begin?…`, `POST /api/trace-end` | the same, for what changes something |
//! | `GET /api/end` | comes when the emulator has ended, or after a while |
//!
//! Only connections of [those who may ask](peer) are answered. All but the first two need the key. An error is told as `{"error"}`, with a status of 4xx; 410 says that the emulator has
//! ended.

use std::io::{self, Read};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use purlin_diagnostics::json::Json;

use super::guard::{Guard, secret};
use super::http::{self, Answer, Request};
use super::peer;
use super::target::{NoAnswer, Target, Wanted};

/// Connections at a time. Each page holds one that waits for the end.
const CONNECTIONS: usize = 64;
/// Bytes that are read and thrown away after a request that is refused.
const UNWANTED: usize = 1 << 20;
/// How long a connection may take to be read or written.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a page is let wait for the end at a time.
const WAIT: Duration = Duration::from_secs(20);
/// How often it is looked whether the emulator is still there.
const LOOK: Duration = Duration::from_millis(500);
/// How long pages have to hear of the end.
const FAREWELL: Duration = Duration::from_secs(3);

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Views that are read, and those that change something.
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
    /// Whether the emulator has ended.
    ended: Mutex<bool>,
    changed: Condvar,
}

/// A connection that is counted.
struct Counted(Arc<Server>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Server {
    /// A server for that emulator; port 0: one that is free.
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

    /// Answers on threads of its own until the emulator ends, and tells the pages that it has.
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
        // Answers under way are written; new pages aren't worth waiting for.
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
                // No descriptor is left, perhaps: there may be one later.
                std::thread::sleep(Duration::from_millis(200));
                continue;
            };
            // Others of this machine take nobody's place.
            if !peer::is_admitted(&stream) {
                continue;
            }
            let before = self.connections.fetch_add(1, Ordering::Relaxed);
            let counted = Counted(self.clone());
            let full = before >= CONNECTIONS;
            // A connection that can have no thread is closed.
            let _ = std::thread::Builder::new()
                .name("page".into())
                .stack_size(1 << 20)
                .spawn(move || {
                    let _ = counted.0.connection(stream, full);
                });
        }
    }

    fn connection(&self, mut stream: TcpStream, full: bool) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
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

    /// Waits for the emulator's end for a while: the page that asks may be gone, which is seen when it is answered.
    fn end(&self) -> Answer {
        let begun = Instant::now();
        let mut ended = self.ended.lock().unwrap_or_else(|e| e.into_inner());
        while !*ended && begun.elapsed() < WAIT {
            let left = WAIT.saturating_sub(begun.elapsed());
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

/// Closes a connection on which more may come that nobody wants. Closed at once, its other end might not get to read why.
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

/// The page, which has nothing in it that is not in Purlin's executable.
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
