//! Compares the model of the name server with an installed `epmd`, if there is one.

mod truth;

use purlin_world::Refusal;
use purlin_world::name_server::NameServer;
use purlin_world::streams::Stream;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use truth::Count;

/// Time that the server is given for an answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time after which a connection without an end counts as kept.
const SILENCE: Duration = Duration::from_millis(2);

const SLOTS: usize = 5;

#[derive(Clone)]
enum Call {
    /// Sends bytes on a new connection, or on that which the slot has.
    Send(usize, Vec<u8>, bool),
    Close(usize),
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Call::Send(n, bytes, is_new) => {
                let how = if *is_new { "connect and send" } else { "send" };
                write!(f, "{how} {n} \"{}\"", bytes.escape_ascii())
            }
            Call::Close(n) => write!(f, "close {n}"),
        }
    }
}

fn name(numbers: &mut Stream) -> Vec<u8> {
    match numbers.below(16) {
        0 => Vec::new(),
        1 => vec![b'n'; 255 + numbers.below(2) as usize],
        2 => "é".repeat(255 + numbers.below(2) as usize).into_bytes(),
        3 => b"a\0b".to_vec(),
        n => vec![b"abc"[(n % 3) as usize]],
    }
}

/// Draws a request without its length.
fn request(numbers: &mut Stream) -> Vec<u8> {
    let mut out = Vec::new();
    match numbers.below(12) {
        0..6 => {
            out.push(b'x');
            let port = numbers.below(1 << 16) as u16;
            out.extend(port.to_be_bytes());
            out.extend([[77, 72, 1][numbers.below(3) as usize], 0]);
            out.extend([5u16, 6, 6, 0][numbers.below(4) as usize].to_be_bytes());
            out.extend(5u16.to_be_bytes());
            let name = name(numbers);
            out.extend((name.len() as u16).to_be_bytes());
            out.extend(name);
            let extra = vec![7; numbers.below(4) as usize];
            let wrong = u16::from(numbers.below(20) == 0);
            out.extend((extra.len() as u16 + wrong).to_be_bytes());
            out.extend(extra);
        }
        6..9 => {
            out.push(b'z');
            out.extend(name(numbers));
            if numbers.below(4) == 0 {
                out.push(0);
            }
        }
        9 => out.push(b'n'),
        10 => out.extend([b"k", b"s", b"q"][numbers.below(3) as usize]),
        _ => out.extend((0..numbers.below(30)).map(|_| numbers.draw() as u8)),
    }
    if numbers.below(30) == 0 {
        out.truncate(numbers.below(out.len() as u64 + 1) as usize);
    }
    out
}

fn program(numbers: &mut Stream) -> Vec<Call> {
    let length = 1 + numbers.below(16);
    let draw = |_| {
        let slot = numbers.below(SLOTS as u64) as usize;
        if numbers.below(5) == 0 {
            return Call::Close(slot);
        }
        let request = request(numbers);
        let mut bytes = (request.len() as u16).to_be_bytes().to_vec();
        bytes.extend(request);
        match numbers.below(30) {
            0 => bytes.push(9),
            1 => bytes.truncate(numbers.below(bytes.len() as u64) as usize + 1),
            2 => bytes[0] = [4, 12][numbers.below(2) as usize],
            _ => {}
        }
        Call::Send(slot, bytes, numbers.below(12) > 0)
    };
    (0..length).map(draw).collect()
}

struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts an `epmd` on a free port, if one is installed.
fn server() -> Option<Server> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut command = Command::new("epmd");
    command.args(["-port", &port.to_string(), "-address", "127.0.0.1"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().ok()?;
    let server = Server { child, port };
    let begun = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "epmd does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(server)
}

/// Reads an answer of `len` bytes and, if it is to come, the end; or whatever comes instead.
fn answer(stream: &mut TcpStream, len: usize, closes: bool) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let wait = if bytes.len() < len || closes {
            PATIENCE
        } else {
            SILENCE
        };
        stream.set_read_timeout(Some(wait)).expect("a time");
        match stream.read(&mut buffer) {
            Ok(0) => return (bytes, true),
            Ok(n) => bytes.extend(&buffer[..n]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return (bytes, false);
            }
            // It closes with unread bytes.
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return (bytes, true),
            Err(e) => panic!("{e}"),
        }
    }
}

/// Creations of names, as the model and the server gave them last.
type Creations = BTreeMap<(Vec<u8>, usize), (u32, u32)>;

/// Replaces the creation in an answer of the server by that of the model, if the two grow alike.
fn same_creation(sent: &[u8], model: &[u8], found: &mut [u8], creations: &mut Creations) {
    let is_one = |reply: &[u8]| match reply {
        [b'v', 0, ..] => reply.len() == 6,
        [b'y', 0, ..] => reply.len() == 4,
        _ => false,
    };
    if !is_one(model) || !is_one(found) || model.len() != found.len() {
        return;
    }
    let read = |b: &[u8]| b[2..].iter().fold(0, |n: u32, b| n << 8 | u32::from(*b));
    let (m, f) = (read(model), read(found));
    // 16 bits count from 1 to 3.
    let next = |n: u32| {
        if model.len() == 6 {
            n.wrapping_add(1)
        } else {
            n % 3 + 1
        }
    };
    let len = usize::from(sent[11]) << 8 | usize::from(sent[12]);
    let key = (sent[13..13 + len].to_vec(), model.len());
    let fits = match creations.insert(key.clone(), (m, f)) {
        Some((before_m, before_f)) => (m == next(before_m)) == (f == next(before_f)),
        None => f > 3 || model.len() == 4 && f > 0,
    };
    // The other kind counts on as well.
    creations.remove(&(key.0, 10 - model.len()));
    if fits {
        found[2..].copy_from_slice(&model[2..]);
    }
}

fn run(program: &[Call], server: &Server, count: &mut Count) -> Result<(), String> {
    let mut model = NameServer::new(server.port, Stream::from_state(5));
    let mut slots: [Option<(u64, TcpStream)>; SLOTS] = Default::default();
    let mut creations = Creations::new();
    // A request may be sent in parts.
    let mut sent: [Vec<u8>; SLOTS] = Default::default();
    let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, server.port)).expect("epmd");
    let close = |model: &mut NameServer, slot: &mut Option<(u64, TcpStream)>| {
        if let Some((number, stream)) = slot.take() {
            model.close(number);
            drop(stream);
        }
    };
    // Asks until the server has seen all connections end that are closed.
    let agrees = |model: &mut NameServer| {
        let request = [0, 1, b'n'];
        model.accept(u64::MAX, true);
        let expected = model.receive(u64::MAX, &request).expect("a list").bytes;
        let begun = Instant::now();
        loop {
            let mut stream = connect();
            stream.write_all(&request).expect("room");
            let found = answer(&mut stream, 4, true).0;
            if found == expected {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let (m, f) = (expected.escape_ascii(), found.escape_ascii());
                return Err(format!("names\n  model {m}\n  epmd {f}"));
            }
        }
    };
    let mut result = agrees(&mut model);
    for (n, call) in program.iter().enumerate() {
        if result.is_err() {
            break;
        }
        let (slot, bytes, is_new) = match call {
            Call::Close(n) => {
                close(&mut model, &mut slots[*n]);
                result = agrees(&mut model);
                continue;
            }
            Call::Send(slot, bytes, is_new) => (*slot, bytes, *is_new),
        };
        if is_new || slots[slot].is_none() {
            close(&mut model, &mut slots[slot]);
            result = agrees(&mut model);
            model.accept(n as u64, true);
            slots[slot] = Some((n as u64, connect()));
            sent[slot].clear();
        }
        let Some((number, stream)) = &mut slots[slot] else {
            continue;
        };
        let mut after = model.clone();
        let expected = match after.receive(*number, bytes) {
            Ok(reply) => reply,
            Err(Refusal::NotModelled(_)) => {
                count.refused();
                close(&mut model, &mut slots[slot]);
                continue;
            }
            Err(e) => panic!("{e:?}"),
        };
        model = after;
        let _ = stream.write_all(bytes);
        sent[slot].extend(bytes);
        let (mut found, ends) = answer(stream, expected.bytes.len(), expected.closes);
        same_creation(&sent[slot], &expected.bytes, &mut found, &mut creations);
        let fails = expected.bytes.get(1) != Some(&0);
        // A request has no error number.
        count.call(call, fails.then_some(purlin_world::Errno::EINVAL));
        if (&found, ends) != (&expected.bytes, expected.closes) {
            let (m, f) = (expected.bytes.escape_ascii(), found.escape_ascii());
            let c = expected.closes;
            result = Err(format!(
                "{call:?}\n  model {m}, closes: {c}\n  epmd {f}, closes: {ends}"
            ));
        }
        if expected.closes {
            slots[slot] = None;
        }
        result = result.and_then(|()| agrees(&mut model));
    }
    drop(slots);
    // The next program begins without names.
    let mut empty = NameServer::new(server.port, Stream::from_state(5));
    result.and(agrees(&mut empty))
}

#[test]
fn names_are_answered_as_epmd_does() {
    let Some(server) = server() else {
        println!("no epmd is installed");
        return;
    };
    // A program takes a hundred times as long as one of the other tests.
    truth::compare("names", 100, &[], program, |p, count| {
        run(p, &server, count)
    });
}
